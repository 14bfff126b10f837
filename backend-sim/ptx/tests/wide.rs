//! Registers and accesses of 128 bits.

use std::sync::Arc;

use onesided_ptx::{Access, Block, Fault, FaultKind, FlatMemory, Launch, Module, Refusal, Stop, World};

fn module(body: &str) -> Arc<Module> {
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 words, .param .align 16 .b8 both[16])\n{{\n\
         .reg .b128 %q<5>;\n.reg .b128 %one;\n.reg .b64 %rd<10>;\n.reg .b32 %r<4>;\n.reg .pred %p<3>;\n.shared .align 16 .b8 room[64];\n\
         ld.param.u64 %rd1, [words];\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n"
    );
    Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

fn launch(threads: u32, words: u64) -> Arc<Launch> {
    let mut launch = Launch::new(1, threads);
    launch.parameters = [words, 0, 0x11, 0x22].map(u64::to_le_bytes).concat();
    Arc::new(launch)
}

/// The words of global memory behind a run, which begin as 1, 2, 3 and so on.
fn run(body: &str, threads: u32) -> Result<Vec<u64>, Box<Fault>> {
    let mut memory = FlatMemory::new();
    let begin: Vec<u8> = (1..=16_u64).flat_map(u64::to_le_bytes).collect();
    let words = memory.allocate(&begin);
    match Block::new(&module(body), "k", &launch(threads, words), [0; 3]).unwrap().run(&mut memory) {
        Stop::Finished => {}
        Stop::Fault(fault) => return Err(fault),
        other => panic!("{other:?}\n{body}"),
    }
    Ok(memory.bytes(words).chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect())
}

#[test]
fn moves() {
    let body = "mov.b128 %q1, {%rd1, 7};\nmov.b64 %rd2, 5;\nmov.b128 %q2, {%rd2, 6};\nmov.b128 %one, %q2;\nmov.b128 {%rd2, %rd3}, %one;\n\
                mov.b128 %q4, {%rd3, %rd2};\nmov.b128 {%rd4, %rd5}, %q4;\nmov.b128 {%rd6, _}, %q1;\nsub.u64 %rd6, %rd6, %rd1;\nmov.b128 {_, %rd7}, %q1;\n\
                st.global.v2.u64 [%rd1], {%rd2, %rd3};\nst.global.v2.u64 [%rd1+16], {%rd4, %rd5};\nst.global.v2.u64 [%rd1+32], {%rd6, %rd7};\n\
                mov.b128 %q0, {%rd2, %rd3};\nmov.b128 {%rd3, %rd2}, %q0;\nst.global.v2.u64 [%rd1+48], {%rd2, %rd3};";
    assert_eq!(run(body, 1).unwrap()[..8], [5, 6, 6, 5, 0, 7, 6, 5]);
    // Halves that change places.
    let body = "mov.b64 %rd2, 5;\nmov.b64 %rd3, 6;\nmov.b128 %q1, {%rd2, %rd3};\nmov.b128 %q2, {%rd3, %rd2};\nmov.b128 {%rd3, %rd2}, %q2;\n\
                st.global.v2.u64 [%rd1], {%rd2, %rd3};\nst.global.b128 [%rd1+16], %q2;";
    assert_eq!(run(body, 1).unwrap()[..4], [5, 6, 6, 5]);
}

#[test]
fn loads_and_stores() {
    for order in ["", ".relaxed.gpu", ".acquire.sys", ".volatile"] {
        let (loads, stores) = (format!("ld{order}"), format!("st{}", order.replace("acquire", "release")));
        let body = format!(
            "{loads}.global.b128 %q1, [%rd1+16];\n{stores}.global.b128 [%rd1+48], %q1;\ncvta.shared.u64 %rd2, 0;\n\
             {stores}.shared.b128 [room+16], %q1;\n{loads}.b128 %q2, [%rd2+16];\n{stores}.b128 [%rd1+80], %q2;"
        );
        let words = run(&body, 1).unwrap();
        assert_eq!((&words[6..8], &words[10..12]), (&[3, 4][..], &[3, 4][..]), "{body}");
        let misaligned = run(&format!("{loads}.global.b128 %q1, [%rd1+8];"), 1).unwrap_err();
        assert_eq!(misaligned.kind, FaultKind::Misaligned, "{misaligned}");
        let beyond = run(&format!("{stores}.shared.b128 [room+64], %q1;"), 1).unwrap_err();
        assert_eq!(beyond.kind, FaultKind::OutOfBounds, "{beyond}");
    }
    let words = run("ld.param.b128 %q1, [both];\nst.global.b128 [%rd1], %q1;", 1).unwrap();
    assert_eq!(words[..3], [0x11, 0x22, 3]);
    // A register for the address and one for the result, and all threads of a warp.
    let body = "mul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd1, %rd1, %rd2;\nld.global.b128 %q3, [%rd1];\nmov.b128 {%rd3, %rd4}, %q3;\n\
                mov.b128 %q3, {%rd4, %rd3};\nst.global.b128 [%rd1], %q3;";
    assert_eq!(run(body, 8).unwrap(), [2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15]);
    let race = run("st.shared.b128 [room], %q1;\nld.shared.u32 %r2, [room+12];", 2).unwrap_err();
    assert_eq!(race.kind, FaultKind::Race, "{race}");
}

/// Each element is an atomic of its own. The old values may go where the new ones come from.
#[test]
fn atomics_of_vectors() {
    let of_two =
        "atom.relaxed.sys.global.add.v2.f32 {%f2, %f1}, [%rd1], {%f1, %f2};\nst.global.v2.f32 [%rd1+16], {%f2, %f1};";
    let of_four =
        "atom.add.v4.f32 {%f3, %f4, %f5, _}, [%rd1], {%f1, %f2, %f1, %f2};\nst.global.v2.f32 [%rd1+16], {%f4, %f5};";
    for (atomic, expected) in
        [(of_two, [11.0, 22.0, 3.0, 4.0, 1.0, 2.0]), (of_four, [11.0, 22.0, 13.0, 24.0, 2.0, 3.0])]
    {
        let body = format!(
            ".reg .f32 %f<6>;\nmov.f32 %f1, 0f41200000;\nmov.f32 %f2, 0f41A00000;\n\
             st.global.v4.f32 [%rd1], {{0f3F800000, 0f40000000, 0f40400000, 0f40800000}};\n{atomic}"
        );
        let words = run(&body, 1).unwrap();
        let numbers = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32].map(f32::from_bits));
        assert_eq!(numbers.take(6).collect::<Vec<_>>(), expected, "{atomic}");
    }
    let misaligned = run(".reg .f32 %f<3>;\natom.global.add.v2.f32 {%f1, %f2}, [%rd1+4], {%f1, %f2};", 1).unwrap_err();
    assert_eq!(misaligned.kind, FaultKind::Misaligned, "{misaligned}");
}

#[test]
fn atomics() {
    let wide = "mov.b64 %rd2, 3;\nmov.b64 %rd3, 4;\nmov.b64 %rd4, 50;\nmov.b64 %rd5, 60;\nmov.b128 %q1, {%rd2, %rd3};\nmov.b128 %q2, {%rd4, %rd5};";
    let shared = "ld.global.b128 %q3, [%rd1+16];\nst.shared.b128 [room+16], %q3;\nmov.b64 %rd7, room;\ncvta.shared.u64 %rd8, %rd7;";
    for (space, at) in [(".global", "%rd1"), ("", "%rd1"), (".shared", "room"), ("", "%rd8")] {
        let of = |operation: &str| {
            let back = format!("ld{space}.b128 %q3, [{at}+16];");
            let words = run(
                &format!(
                    "{wide}\n{shared}\n{operation}\nst.global.b128 [%rd1], %q4;\n{back}\nst.global.b128 [%rd1+32], %q3;"
                ),
                1,
            )
            .unwrap();
            ([words[0], words[1]], [words[4], words[5]])
        };
        assert_eq!(of(&format!("atom{space}.exch.b128 %q4, [{at}+16], %q2;")), ([3, 4], [50, 60]));
        assert_eq!(of(&format!("atom.acq_rel.gpu{space}.cas.b128 %q4, [{at}+16], %q1, %q2;")), ([3, 4], [50, 60]));
        for (low, high) in [("%rd2", "%rd2"), ("%rd3", "%rd3"), ("%rd4", "%rd5")] {
            let compare = format!("mov.b128 %q1, {{{low}, {high}}};\natom{space}.cas.b128 %q4, [{at}+16], %q1, %q2;");
            assert_eq!(of(&compare), ([3, 4], [3, 4]), "{compare}");
        }
    }
    let misaligned = run(&format!("{wide}\natom.global.exch.b128 %q4, [%rd1+8], %q2;"), 1).unwrap_err();
    assert_eq!(misaligned.kind, FaultKind::Misaligned, "{misaligned}");
}

/// Memory before whose strong accesses threads stop.
struct Stops(FlatMemory);

impl World for Stops {
    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        self.0.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        self.0.store(access, value)
    }

    fn atomic(&mut self, access: &Access, ty: onesided_ptx::Type, b: u64, c: u64) -> Result<(u64, bool), Refusal> {
        self.0.atomic(access, ty, b, c)
    }

    fn stops(&mut self, access: &Access) -> bool {
        access.order.is_strong()
    }
}

/// Two threads swap in turn: each sees both words of the other, whoever goes on first.
#[test]
fn nothing_comes_between_the_words() {
    let body = "mov.b64 %rd2, 100;\nmov.b64 %rd3, 200;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 mov.b64 %rd2, 101;\n@%p1 mov.b64 %rd3, 201;\n\
                mov.b128 %q1, {%rd2, %rd3};\n$\nmul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd4, %rd1, %rd4;\nst.global.b128 [%rd4+16], %q2;";
    let read = "ld.global.b128 %q3, [%rd1];";
    for operation in [
        "atom.global.exch.b128 %q2, [%rd1], %q1;",
        "atom.relaxed.sys.global.cas.b128 %q2, [%rd1], %q3, %q1;",
        "st.relaxed.gpu.global.b128 [%rd1], %q1;\nld.relaxed.gpu.global.b128 %q2, [%rd1];",
    ] {
        for first in [0, 1] {
            let mut world = Stops(FlatMemory::new());
            let words = world.0.allocate(&(1..=16_u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>());
            let module = module(&body.replace('$', &format!("{read}\n{operation}")));
            let mut block = Block::new(&module, "k", &launch(2, words), [0; 3]).unwrap();
            let (mut stopped, mut stops) = (Vec::new(), 0);
            loop {
                match block.run(&mut world) {
                    Stop::Finished => break,
                    Stop::Access(access) => {
                        assert_eq!((access.address, access.bytes), (words, 8), "{operation}");
                        stopped.push(access.thread as usize);
                        stops += 1;
                    }
                    Stop::Idle => {
                        let next = if first == 0 { stopped.remove(0) } else { stopped.pop().unwrap() };
                        block.go_on(next);
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(stops, 2 * operation.lines().count(), "{operation}");
            let found: Vec<u64> =
                world.0.bytes(words).chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            for pair in found[..6].as_chunks::<2>().0 {
                assert!(matches!(pair, [1, 2] | [100, 200] | [101, 201]), "{operation}: {found:?}");
            }
        }
    }
}
