//! Matrices that a warp holds together: loaded, stored, transposed; and what is wrong with their rows or their lanes.

use std::sync::Arc;

use onesided_ptx::{Block, Fault, FaultKind, FlatMemory, Launch, Module, Stop};

/// A kernel in which each thread has `%lane`, `%own` (the shared address of 16 bytes of its own), `%rd1` (its 4 words of the output) and `%rd2`,
/// where 1024 bytes of input begin.
fn kernel(body: &str) -> String {
    let lines: String =
        body.lines().enumerate().map(|(line, text)| format!(".loc 1 {} 1\n{text}\n", line + 1)).collect();
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.func helper()\n{{\n.reg .b32 %r<2>;\n\
         movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;\nret;\n}}\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n.reg .pred %p<4>;\n\
         .reg .b32 %r<16>;\n.reg .b32 %lane;\n.reg .b32 %own;\n.reg .b64 %rd<8>;\n.shared .align 16 .b8 room[512];\n\
         ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %lane, %tid.x;\nmul.wide.u32 %rd3, %lane, 16;\n\
         add.s64 %rd1, %rd1, %rd3;\nmov.u32 %own, room;\nmad.lo.s32 %own, %lane, 16, %own;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    )
}

/// Each thread writes 16 bytes of the input to its own row, and knows of the others'.
const FILL: &str = "add.s64 %rd4, %rd2, %rd3;\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd4];\nst.shared.v4.u32 [%own], {%r1, %r2, %r3, %r4};\nbar.sync 0;";

/// The words that threads wrote to the output, if nothing is wrong.
fn run(body: &str, threads: u32, input: &[u32]) -> Result<Vec<[u32; 4]>, Box<Fault>> {
    let text = kernel(body);
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let out = memory.allocate(&vec![0; 16 * threads as usize]);
    let input: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    let from = memory.allocate(&input);
    let launch = Launch::new(1, threads).parameter(&out.to_le_bytes()).parameter(&from.to_le_bytes());
    let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
    match block.run(&mut memory) {
        Stop::Finished => {}
        Stop::Fault(fault) => return Err(fault),
        other => panic!("{other:?}"),
    }
    let words = memory.bytes(out).chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    Ok(words.collect::<Vec<_>>().as_chunks().0.to_vec())
}

fn fault(body: &str, threads: u32) -> Fault {
    *run(body, threads, &[7; 256]).expect_err("a fault")
}

fn finishes(body: &str, threads: u32) {
    if let Err(fault) = run(body, threads, &[7; 256]) {
        panic!("{body}\n{fault}");
    }
}

/// 256 elements of 16 bits, all different, two to a word: 32 rows of 8.
fn elements() -> (Vec<u32>, impl Fn(usize, usize) -> u32) {
    let element = |row: usize, column: usize| 0x1000 + 64 * row as u32 + 3 * column as u32;
    let words = (0..128).map(|word| element(word / 4, word % 4 * 2) | element(word / 4, word % 4 * 2 + 1) << 16);
    (words.collect(), element)
}

#[test]
fn loads() {
    let (input, element) = elements();
    for matrices in [1, 2, 4] {
        for transposed in [false, true] {
            let targets = ["%r5", "%r6", "%r7", "%r8"][..matrices].join(", ");
            let trans = if transposed { ".trans" } else { "" };
            // Lane L names row 31 - L. The address is of the space, or generic.
            for (space, to_generic) in [(".shared", ""), (".shared::cta", ""), ("", "cvta.shared.u64 %rd5, %rd5;")] {
                let body = format!(
                    "{FILL}\nxor.b32 %r9, %lane, 31;\nmul.lo.u32 %r9, %r9, 16;\nmov.u32 %r10, room;\nadd.u32 %r9, %r9, %r10;\n\
                     mov.b32 %r6, 0;\nmov.b32 %r7, 0;\nmov.b32 %r8, 0;\ncvt.u64.u32 %rd5, %r9;\n{to_generic}\n\
                     ldmatrix.sync.aligned.m8n8.x{matrices}{trans}{space}.b16 {{{targets}}}, [%rd5];\n\
                     st.global.v4.u32 [%rd1], {{%r5, %r6, %r7, %r8}};"
                );
                let found = run(&body, 32, &input).unwrap();
                for (lane, held) in found.iter().enumerate() {
                    for (matrix, &word) in held.iter().enumerate() {
                        let (line, pair) = (lane / 4, lane % 4 * 2);
                        let at = |row: usize, column: usize| element(31 - (8 * matrix + row), column);
                        let expected = match (matrix < matrices, transposed) {
                            (false, _) => 0,
                            (true, false) => at(line, pair) | at(line, pair + 1) << 16,
                            (true, true) => at(pair, line) | at(pair + 1, line) << 16,
                        };
                        assert_eq!(word, expected, "x{matrices}{trans}, lane {lane}, matrix {matrix}");
                    }
                }
            }
        }
    }
}

#[test]
fn stores() {
    let (input, element) = elements();
    for matrices in [1, 2, 4] {
        for transposed in [false, true] {
            let sources = ["%r1", "%r2", "%r3", "%r4"][..matrices].join(", ");
            let trans = if transposed { ".trans" } else { "" };
            // What lane L holds of each matrix are its four words of the input.
            let body = format!(
                "add.s64 %rd4, %rd2, %rd3;\nld.global.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd4];\nst.shared.v4.u32 [%own], {{0, 0, 0, 0}};\nbar.sync 0;\n\
                 xor.b32 %r9, %lane, 31;\nmul.lo.u32 %r9, %r9, 16;\nmov.u32 %r10, room;\nadd.u32 %r9, %r9, %r10;\n\
                 stmatrix.sync.aligned.m8n8.x{matrices}{trans}.shared.b16 [%r9], {{{sources}}};\nbar.sync 0;\n\
                 ld.shared.v4.u32 {{%r5, %r6, %r7, %r8}}, [%own];\nst.global.v4.u32 [%rd1], {{%r5, %r6, %r7, %r8}};"
            );
            let found = run(&body, 32, &input).unwrap();
            for (stored, words) in found.iter().enumerate() {
                let (matrix, row) = ((31 - stored) / 8, (31 - stored) % 8);
                for (column, half) in words.iter().flat_map(|&word| [word & 0xffff, word >> 16]).enumerate() {
                    let (line, place) = if transposed { (column, row) } else { (row, column) };
                    let held = element(4 * line + place / 2, 2 * matrix + place % 2);
                    let expected = if matrix < matrices { held } else { 0 };
                    assert_eq!(half, expected, "x{matrices}{trans}, row {row} of matrix {matrix}, column {column}");
                }
            }
        }
    }
}

#[test]
fn transposes() {
    let (input, _) = elements();
    let body = "add.s64 %rd4, %rd2, %rd3;\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd4];\n\
                movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r1;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;\n\
                st.global.v4.u32 [%rd1], {%r5, %r1, %r2, %r3};";
    let found = run(body, 32, &input).unwrap();
    let held = |row: usize, column: usize| input[4 * (4 * row + column / 2)] >> (column % 2 * 16) & 0xffff;
    for (lane, words) in found.iter().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let expected = held(column, row) | held(column + 1, row) << 16;
        assert_eq!(words[..2], [expected; 2], "lane {lane}");
    }
}

const LOAD: &str = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%own];";
const STORE: &str = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%own], {%lane, %lane, %lane, %lane};";

#[test]
fn rows_that_are_misaligned_out_of_bounds_or_not_shared() {
    for instruction in [LOAD, STORE] {
        let at = |address: &str| format!("{FILL}\n{}", instruction.replace("%own", address));
        finishes(&at("%own"), 32);
        let misaligned = fault(&at("%own+8"), 32);
        assert_eq!(misaligned.kind, FaultKind::Misaligned, "{misaligned}");
        assert_eq!((misaligned.at.as_str(), misaligned.who.thread), ("k.cu:5", [0; 3]));
        let beyond = fault(&at("%own+16"), 32);
        assert_eq!((beyond.kind, beyond.who.thread), (FaultKind::OutOfBounds, [31, 0, 0]), "{beyond}");
        let global = instruction.replace(".shared", "").replace("%own", "%rd2");
        assert_eq!(fault(&global, 32).kind, FaultKind::OutOfBounds);
    }
    // Only as many lanes name rows as there are rows.
    let few = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%own+384];";
    finishes(&format!("{FILL}\n{few}"), 32);
    let found = fault(&format!("{FILL}\n{}", few.replace("x1", "x2").replace("{%r5}", "{%r5, %r6}")), 32);
    assert_eq!((found.kind, found.who.thread), (FaultKind::OutOfBounds, [8, 0, 0]), "{found}");
}

#[test]
fn rows_that_nobody_wrote() {
    let found = fault(LOAD, 32);
    assert_eq!((found.kind, found.at.as_str()), (FaultKind::Uninitialized, "k.cu:1"), "{found}");
    // One byte of the second half of one row is missing.
    let partly = "setp.ne.u32 %p1, %lane, 9;\nst.shared.v2.u32 [%own], {0, 0};\n@%p1 st.shared.u32 [%own+8], 0;\nst.shared.u32 [%own+12], 0;\nbar.sync 0;";
    let found = fault(&format!("{partly}\n{LOAD}"), 32);
    assert_eq!((found.kind, found.who.thread), (FaultKind::Uninitialized, [9, 0, 0]), "{found}");
    finishes(&format!("{STORE}\nbar.warp.sync -1;\n{LOAD}"), 32);
}

#[test]
fn rows_race_as_accesses_of_the_lane_that_names_them() {
    // Another lane's row: a barrier is missing before the load.
    let neighbour = LOAD.replace("%own", "%r9");
    let swap = "xor.b32 %r9, %lane, 1;\nmul.lo.u32 %r9, %r9, 16;\nmov.u32 %r10, room;\nadd.u32 %r9, %r9, %r10;";
    let written = format!("{swap}\n{}", FILL.replace("bar.sync 0;", "$"));
    let race = fault(&written.replace('$', &neighbour), 32);
    assert_eq!((race.kind, race.who.thread), (FaultKind::Race, [0; 3]), "{race}");
    assert_eq!(race.other.as_ref().map(|(who, at)| (who.thread, at.as_str())), Some(([1, 0, 0], "k.cu:7")));
    finishes(&written.replace('$', &format!("bar.warp.sync -1;\n{neighbour}")), 32);
    // Its own row is nobody else's business.
    finishes(&written.replace('$', LOAD), 32);
    // Reads count: a write of another lane behind a load races with it, and products order nothing either.
    let product = "mov.b32 %r11, 0;\nmma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r12, %r13}, {%r11, %r11}, {%r11}, {%r11, %r11};";
    for between in ["", product, "movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r9;"] {
        let race = fault(&format!("{FILL}\n{swap}\n{LOAD}\n{between}\nst.shared.u32 [%r9+12], %lane;"), 32);
        assert_eq!(race.kind, FaultKind::Race, "{between}\n{race}");
    }
    finishes(&format!("{FILL}\n{swap}\n{LOAD}\nbar.warp.sync -1;\nst.shared.u32 [%r9+12], %lane;"), 32);
    // Stores of rows, of two warps.
    let both = "and.b32 %r9, %lane, 31;\nmul.lo.u32 %r9, %r9, 16;\nmov.u32 %r10, room;\nadd.u32 %r9, %r9, %r10;";
    let store = STORE.replace("%own", "%r9");
    let race = fault(&format!("{both}\n{store}"), 64);
    assert_eq!((race.kind, race.who.thread), (FaultKind::Race, [32, 0, 0]), "{race}");
    finishes(&format!("{both}\n{store}\nbar.sync 0;\n{store}"), 32);
}

#[test]
fn all_lanes_take_part() {
    let product = "mov.b32 %r9, 0;\nmma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r10, %r11}, {%r9, %r9}, {%r9}, {%r9, %r9};";
    let move_ = "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %lane;";
    for instruction in [LOAD, STORE, product, move_] {
        let filled = format!("st.shared.v4.u32 [%own], {{0, 0, 0, 0}};\nbar.sync 0;\n$\n{instruction}");
        finishes(&filled.replace('$', ""), 32);
        // No warp is whole, or one is.
        for (threads, who) in [(16, 0), (31, 0)] {
            let found = fault(&filled.replace('$', ""), threads);
            assert_eq!((found.kind, found.who.thread[0]), (FaultKind::MissingLanes, who), "{instruction}: {found}");
        }
        // A lane has ended, before the others come or after.
        for skip in ["setp.eq.u32 %p1, %lane, 3;\n@%p1 ret;", "setp.eq.u32 %p1, %lane, 30;\n@%p1 ret;"] {
            assert_eq!(fault(&filled.replace('$', skip), 32).kind, FaultKind::MissingLanes, "{instruction}");
        }
        // A lane waits elsewhere: at a barrier, or at another instruction of the same form.
        let apart = format!(
            "setp.eq.u32 %p1, %lane, 3;\n@%p1 bra other;\n{instruction}\nbra done;\nother:\n{instruction}\ndone:"
        );
        let found = fault(&format!("st.shared.v4.u32 [%own], {{0, 0, 0, 0}};\nbar.sync 0;\n{apart}"), 32);
        assert_eq!(found.kind, FaultKind::MissingLanes, "{instruction}: {found}");
        assert!(found.other.is_some(), "{found}");
    }
    let waits = "setp.eq.u32 %p1, %lane, 3;\n@%p1 bra wait;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r5, %lane;\nret;\nwait:\nbar.sync 0;";
    let found = fault(waits, 32);
    assert_eq!(found.kind, FaultKind::MissingLanes);
    insta::assert_snapshot!(found);
    insta::assert_snapshot!(fault(
        "setp.eq.u32 %p1, %lane, 3;\n@%p1 ret;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r5, %lane;",
        32
    ));
    // Instructions of two functions, each the first there.
    let elsewhere = waits.replace("bar.sync 0;", "call helper, ();");
    assert_eq!(fault(&elsewhere, 32).kind, FaultKind::MissingLanes);
    finishes("call helper, ();", 32);
    // Lanes may come there one after the other.
    let late = "setp.lt.u32 %p1, %lane, 7;\n@%p1 bra join;\nadd.u32 %r9, %lane, 1;\njoin:\nmovmatrix.sync.aligned.m8n8.trans.b16 %r5, %lane;";
    finishes(late, 64);
}
