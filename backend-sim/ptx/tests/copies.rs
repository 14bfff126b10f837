//! Copies that run beside the threads: who reads or writes their words before they are awaited races with them.

use std::sync::Arc;

use onesided_ptx::{Block, Fault, FaultKind, FlatMemory, Launch, Module, Stop};

/// A kernel in which each thread has 16 bytes of shared memory at `%own` and of global memory at `%rd1`, and those of its neighbour at `%other`. There
/// are two mbarriers, `%bar` and the one behind it.
fn kernel(body: &str) -> String {
    let lines: String =
        body.lines().enumerate().map(|(line, text)| format!(".loc 1 {} 1\n{text}\n", line + 1)).collect();
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n\
         .reg .b32 %lane;\n.reg .b32 %own;\n.reg .b32 %other;\n.reg .b32 %bar;\n.reg .b64 %rd<8>;\n.shared .align 16 .b8 room[4096];\n\
         .shared .align 8 .b8 barriers[16];\nld.param.u64 %rd1, [in];\nmov.u32 %lane, %tid.x;\nmul.wide.u32 %rd3, %lane, 16;\n\
         add.s64 %rd1, %rd1, %rd3;\nmov.u32 %bar, barriers;\nmov.u32 %own, room;\nxor.b32 %r1, %lane, 1;\nmad.lo.s32 %other, %r1, 16, %own;\n\
         mad.lo.s32 %own, %lane, 16, %own;\nsetp.ne.u32 %p1, %lane, 0;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    )
}

fn run(body: &str, threads: u32, races: bool) -> Stop {
    ends(body, threads, races).0
}

/// How it ends, and the words of global memory then.
fn ends(body: &str, threads: u32, races: bool) -> (Stop, Vec<u32>) {
    let text = kernel(body);
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let from = memory.allocate(&vec![1; 16 * threads as usize + 2048]);
    let mut launch = Launch::new(1, threads).parameter(&from.to_le_bytes());
    launch.checks.races = races;
    let stop = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap().run(&mut memory);
    let words = memory.bytes(from).chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    (stop, words.collect())
}

fn finishes(body: &str, threads: u32) {
    let stop = run(body, threads, true);
    assert_eq!(stop, Stop::Finished, "{body}");
}

/// The words of global memory that it leaves behind.
fn leaves(body: &str, threads: u32) -> Vec<u32> {
    let (stop, words) = ends(body, threads, true);
    assert_eq!(stop, Stop::Finished, "{body}");
    words
}

fn race(body: &str, threads: u32) -> Fault {
    match run(body, threads, true) {
        Stop::Fault(fault) if fault.kind == FaultKind::Race => {
            // Without the check, nothing goes wrong.
            assert_eq!(run(body, threads, false), Stop::Finished, "{body}");
            *fault
        }
        other => panic!("no race: {other:?}\n{body}"),
    }
}

const COPY: &str = "cp.async.cg.shared.global [%own], [%rd1], 16;";
const FURTHER: &str = "cp.async.ca.shared.global [%own+1024], [%rd1], 8;";
const READ: &str = "ld.shared.u32 %r2, [%own+12];";
/// Writes it before, so that nothing is read which nobody wrote.
const FILL: &str = "st.shared.v4.u32 [%own], {0, 0, 0, 0};\nbar.sync 0;";
const OTHERS: &str = "ld.shared.u32 %r2, [%other+12];";

#[test]
fn a_thread_waits_for_its_own_copies() {
    let found = race(&format!("{COPY}\n{READ}"), 1);
    insta::assert_snapshot!(found);
    for wait in ["cp.async.wait_all;", "cp.async.commit_group;\ncp.async.wait_group 0;"] {
        finishes(&format!("{COPY}\n{wait}\n{READ}"), 64);
    }
    // What is in no group yet is not waited for by groups, and a group alone waits for nothing.
    race(&format!("{COPY}\ncp.async.wait_group 0;\n{READ}"), 1);
    race(&format!("{COPY}\ncp.async.commit_group;\n{READ}"), 1);
    // A barrier does not wait for copies.
    race(&format!("{COPY}\ncp.async.commit_group;\nbar.sync 0;\n{READ}"), 1);
    // Nor do groups of bulk copies.
    race(&format!("{COPY}\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n{READ}"), 1);
    // Writes race as reads do, and copies race with each other. What lies beside is not touched.
    for instruction in ["st.shared.u8 [%own], 1;", "atom.shared.add.u32 %r2, [%own+8], 1;", COPY] {
        race(&format!("{COPY}\n{instruction}"), 1);
    }
    finishes(
        &format!("st.shared.v4.u32 [%own], {{0, 0, 0, 0}};\n{FURTHER}\n{READ}\nst.shared.u32 [%own+1032], 0;"),
        32,
    );
    // A barrier behind the last read, and none behind the copy that fills the words again.
    finishes(&format!("{COPY}\ncp.async.wait_all;\nbar.sync 0;\n{OTHERS}\nbar.sync 0;\n{COPY}"), 32);
    assert!(matches!(
        run(&format!("{COPY}\ncp.async.wait_all;\nbar.sync 0;\n{OTHERS}\n{COPY}"), 32, true),
        Stop::Fault(_)
    ));
}

/// A copy that reads less than it writes has zeros behind what it reads.
#[test]
fn a_partial_copy_reads_what_it_is_asked_for() {
    for (bytes, expected) in [(0, [0, 0]), (4, [0x0101_0101, 0]), (5, [0x0101_0101, 1]), (7, [0x0101_0101, 0x01_0101])]
    {
        let body = format!(
            "cp.async.ca.shared.global [%own], [%rd1], 8, {bytes};\ncp.async.wait_all;\nld.shared.v2.u32 {{%r2, %r3}}, [%own];\n\
             st.global.v2.u32 [%rd1+16], {{%r2, %r3}};"
        );
        assert_eq!(leaves(&body, 1)[4..6], expected, "{bytes}");
    }
}

#[test]
fn the_last_groups_stay_under_way() {
    let two = format!("{COPY}\ncp.async.commit_group;\n{FURTHER}\ncp.async.commit_group;");
    let read_further = "ld.shared.u32 %r2, [%own+1028];";
    finishes(&format!("{two}\ncp.async.wait_group 1;\n{READ}"), 32);
    race(&format!("{two}\ncp.async.wait_group 1;\n{read_further}"), 1);
    race(&format!("{two}\ncp.async.wait_group 2;\n{READ}"), 1);
    finishes(&format!("{two}\ncp.async.wait_group 0;\n{read_further}"), 32);
    // An empty group counts.
    finishes(&format!("{two}\ncp.async.commit_group;\ncp.async.wait_group 1;\n{read_further}"), 32);
}

#[test]
fn others_need_the_wait_and_then_a_barrier() {
    finishes(&format!("{COPY}\ncp.async.wait_all;\nbar.sync 0;\n{OTHERS}"), 64);
    insta::assert_snapshot!(race(&format!("{COPY}\nbar.sync 0;\n{OTHERS}"), 64));
    // The other way round: the wait of another thread says nothing, and who comes behind the barrier does not come behind the wait.
    let found = race(&format!("{COPY}\nbar.sync 0;\ncp.async.wait_all;\n{OTHERS}"), 64);
    assert_eq!((found.at.as_str(), found.other.map(|(_, at)| at)), ("k.cu:4", Some("k.cu:1".to_owned())));
    race(&format!("{FILL}\n{COPY}\ncp.async.wait_all;\n{OTHERS}"), 64);
    // One thread waits only for its own.
    race(&format!("{COPY}\nbar.sync 0;\n@%p1 bra on;\ncp.async.wait_all;\non:\nbar.sync 0;\n{READ}"), 2);
}

/// Waits for the first phase of the mbarrier at an address.
fn wait(mbarrier: &str) -> String {
    let again = format!("again_{}", mbarrier.len());
    format!("{again}:\nmbarrier.try_wait.parity.shared.b64 %p2, [{mbarrier}], 0;\n@!%p2 bra {again};")
}

#[test]
fn an_mbarrier_waits_for_the_copies_of_all() {
    let begin = |count: u32| format!("@%p1 bra begun;\nmbarrier.init.shared.b64 [%bar], {count};\nbegun:\nbar.sync 0;");
    let arrive = "cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];";
    let waits = wait("%bar");
    finishes(&format!("{}\n{COPY}\n{arrive}\n{waits}\n{OTHERS}\n{READ}", begin(64)), 64);
    // Without a wait, also of the thread's own; and what is begun behind the arrival is not waited for.
    insta::assert_snapshot!(race(&format!("{}\n{COPY}\n{arrive}\n{READ}", begin(1)), 1));
    race(&format!("{FILL}\n{}\n{COPY}\n{arrive}\n{OTHERS}", begin(64)), 64);
    race(&format!("{}\n{arrive}\n{COPY}\n{waits}\n{READ}", begin(1)), 1);
    // Who waits at another mbarrier has not waited for them.
    let two =
        format!("{}\nmbarrier.init.shared.b64 [%bar+8], 1;\nmbarrier.arrive.shared.b64 %rd4, [%bar+8];", begin(1));
    race(&format!("{two}\n{COPY}\n{arrive}\n{}\n{READ}", wait("%bar+8")), 1);
    // The end of the phase before says nothing of them.
    let before = format!("{}\nmbarrier.arrive.shared.b64 %rd4, [%bar], 2;", begin(2));
    race(&format!("{before}\n{COPY}\n{arrive}\n{waits}\n{READ}"), 1);
    // Nor does it help a thread that another one has waited: the copy may have ended behind the barrier that it has passed.
    let third = format!(
        "setp.eq.u32 %p3, %lane, 2;\n@%p3 bra third;\n@%p1 bra second;\n{arrive}\nret;\nthird:\n{waits}\n\
                         st.volatile.shared.u32 [%bar+8], 1;\nret;\nsecond:\nld.volatile.shared.u32 %r3, [%bar+8];\n\
                         setp.eq.u32 %p2, %r3, 0;\n@%p2 bra second;\n$\nld.shared.u32 %r2, [room];"
    );
    let third = format!("{}\n@!%p1 st.volatile.shared.u32 [%bar+8], 0;\n@!%p1 {COPY}\nbar.sync 0;\n{third}", begin(1));
    race(&third.replace('$', ""), 3);
    finishes(&third.replace('$', &wait("%bar+0")), 3);
    // It does not count as an arrival of those that the mbarrier expects, but with `.noinc`.
    let counted = "cp.async.mbarrier.arrive.shared.b64 [%bar];";
    let both = format!("{}\n{COPY}\n{counted}\nmbarrier.arrive.shared.b64 %rd4, [%bar];", begin(64));
    finishes(&format!("{both}\n{waits}\n{OTHERS}"), 64);
    assert!(matches!(run(&format!("{}\n{COPY}\n{counted}\n{waits}", begin(1)), 1, true), Stop::Idle));
    // With `.noinc` it counts: of three arrivals, the last is of the next phase.
    let found = run(&format!("{}\n{COPY}\n{arrive}\n{arrive}\n{arrive}\n{waits}\n{READ}", begin(2)), 1, true);
    assert_eq!(found, Stop::Finished);
}

#[test]
fn a_bulk_copy_is_awaited_at_its_mbarrier() {
    let begin = "@%p1 bra begun;\nmbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%bar], 16;\n\
                 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%own], [%rd1], 16, [%bar];";
    race(&format!("{begin}\n{READ}\nbegun:"), 1);
    finishes(&format!("{begin}\n{}\n{READ}\nbegun:", wait("%bar")), 1);
    // Of two threads, both wait, or the barrier is behind the wait of one.
    let first = "ld.shared.u32 %r2, [room];";
    finishes(&format!("{begin}\n{}\nbegun:\nbar.sync 0;\n{first}", wait("%bar")), 64);
    race(&format!("{begin}\nbegun:\nbar.sync 0;\n{first}"), 64);
    finishes(&format!("{begin}\nbegun:\nbar.sync 0;\n{}\n{first}", wait("%bar")), 64);
    // Between two barriers only one waits, and nothing else happens: all know of it then.
    let one = format!("@%p1 bra waited;\n{}\nwaited:\nbar.sync 0;", wait("%bar"));
    finishes(&format!("{begin}\nbegun:\nbar.sync 0;\n{one}\n{first}"), 64);
}

/// From shared to shared memory: it writes its target and reads its source until its mbarrier's phase ends.
#[test]
fn a_bulk_copy_within_shared_memory() {
    let init = "mbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%bar], 32;";
    let fill = "st.shared.v4.u32 [%own], {1, 2, 3, 4};\nst.shared.v4.u32 [%own+16], {5, 6, 7, 8};";
    let copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%own+64], [%own], 32, [%bar];";
    let begin = format!("{init}\n{fill}\n{FENCE}\n{copy}");
    let read = "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%own+80];\nst.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};";
    assert_eq!(leaves(&format!("{begin}\n{}\n{read}", wait("%bar")), 1)[..4], [5, 6, 7, 8]);
    insta::assert_snapshot!(race(&format!("{begin}\n{read}"), 1));
    let again = "st.shared.u32 [%own+28], 0;";
    finishes(&format!("{begin}\n{}\n{again}", wait("%bar")), 1);
    insta::assert_snapshot!(race(&format!("{begin}\n{again}"), 1));
    // Who only reads the source need not wait. What was written needs the fence.
    finishes(&format!("{begin}\nld.shared.u32 %r2, [%own+28];\nst.shared.u32 [%own+32], 0;"), 1);
    race(&format!("{init}\n{fill}\n{copy}"), 1);
    // The mbarrier counts the bytes.
    assert!(matches!(
        run(&format!("{}\n{}", begin.replace("], 32, [", "], 16, ["), wait("%bar")), 1, true),
        Stop::Idle
    ));
    for wrong in
        [copy.replace("[%own]", "[%own+8]"), copy.replace("32", "24"), copy.replace("[%own+64]", "[%own+4080]")]
    {
        assert!(matches!(run(&format!("{init}\n{fill}\n{FENCE}\n{wrong}"), 1, true), Stop::Fault(_)), "{wrong}");
    }
}

const FENCE: &str = "fence.proxy.async.shared::cta;";

/// What threads write is not visible to a bulk copy, until one of those between the write and the copy makes a fence.
#[test]
fn a_bulk_copy_does_not_see_what_threads_have_written() {
    let fill = "st.shared.v4.u32 [%own], {1, 2, 3, 4};";
    let copy = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [room], 64;";
    let reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [room], 64;";
    let load = "mbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%bar], 16;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%rd1], 16, [%bar];";
    let barrier = "bar.sync 0;";
    let last = "@%p1 bra end;";
    for copy in [copy, reduce, load] {
        // Each writer makes the fence, or the thread that copies, or one that has heard of all of them.
        finishes(&format!("{fill}\n{FENCE}\n{barrier}\n{last}\n{copy}\nend:"), 64);
        finishes(&format!("{fill}\n{barrier}\n{last}\n{FENCE}\n{copy}\nend:"), 64);
        let by_another = format!("setp.ne.u32 %p2, %lane, 40;\n@%p2 bra on;\n{FENCE}\non:");
        finishes(&format!("{fill}\n{barrier}\n{by_another}\n{barrier}\n{last}\n{copy}\nend:"), 64);
        // It comes too early, is made by one who has not heard, or is about something else.
        race(&format!("{fill}\n{barrier}\n{last}\n{copy}\nend:"), 64);
        race(&format!("{FENCE}\n{fill}\n{barrier}\n{last}\n{copy}\nend:"), 64);
        race(&format!("{fill}\n{by_another}\n{barrier}\n{last}\n{copy}\nend:"), 64);
        race(&format!("{fill}\n{FENCE}\n{fill}\n{barrier}\n{last}\n{copy}\nend:"), 64);
        // One thread is enough.
        let copy = copy.replace("64;", "16;");
        for other in [
            "fence.proxy.async.global;",
            "fence.proxy.alias;",
            "fence.acq_rel.cta;",
            "fence.mbarrier_init.release.cluster;",
        ] {
            race(&format!("{fill}\n{other}\n{copy}"), 1);
        }
        race(&format!("{fill}\nfence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n{copy}"), 1);
        for fence in ["fence.proxy.async;", "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"] {
            finishes(&format!("{fill}\n{fence}\n{copy}"), 1);
        }
    }
    insta::assert_snapshot!(race(&format!("{fill}\n{barrier}\n{last}\n{copy}\nend:"), 64));
    // Nor is one needed behind a copy: who has waited for it sees what it has written, and another copy does too.
    let lands = format!("{load}\n{}", wait("%bar"));
    finishes(&format!("{last}\n{lands}\n{}\nend:", copy.replace("64", "16")), 1);
    finishes(&format!("{last}\n{lands}\nst.shared.u32 [room], 5;\n{FENCE}\n{}\nend:", copy.replace("64", "16")), 1);
    race(&format!("{lands}\nst.shared.u32 [room], 5;\n{}", copy.replace("64", "16")), 1);
    // A flag in shared memory tells of a fence as a barrier does.
    let flag = |first: &str, second: &str| {
        format!(
            "setp.ne.u32 %p2, %lane, 1;\n@%p2 bra copies;\n{fill}\n{first}\nst.release.cta.shared.u32 [%bar+8], 1;\nbra end;\ncopies:\n\
             ld.acquire.cta.shared.u32 %r3, [%bar+8];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra copies;\n{second}\n\
             cp.async.bulk.global.shared::cta.bulk_group [%rd1], [room+16], 16;\nend:"
        )
    };
    let begin = "@%p1 bra begun;\nst.volatile.shared.u32 [%bar+8], 0;\nbegun:\nbar.sync 0;";
    finishes(&format!("{begin}\n{}", flag(FENCE, "")), 2);
    finishes(&format!("{begin}\n{}", flag("", FENCE)), 2);
    race(&format!("{begin}\n{}", flag("", "")), 2);
}

const ONES: u32 = 0x0101_0101;

#[test]
fn stores_that_an_mbarrier_counts() {
    let begin = |bytes: u32| {
        format!(
            "@%p1 bra begun;\nmbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%bar], {bytes};\nbegun:\nbar.sync 0;"
        )
    };
    let store = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%other+12], %lane, [%bar];";
    let publish = "st.global.u32 [%rd1], %r2;";
    // Each thread stores for its neighbour, and waits for what all have stored.
    let whole = format!("{}\n{store}\n{}\n{READ}\n{publish}", begin(256), wait("%bar"));
    let words = leaves(&whole, 64);
    assert!((0..64).all(|lane| words[4 * lane] == lane as u32 ^ 1));
    for (elements, kind) in [("", "b64"), (".v2", "f32"), (".v4", "b32"), (".v2", "s64")] {
        let wide = kind.ends_with("64");
        let register = if wide { "%rd5" } else { "%lane" };
        let count = elements.strip_prefix(".v").map_or(1, |count| count.parse().unwrap());
        let vector = format!("{{{}}}", [register; 4][..count].join(", "));
        let value = if count == 1 { register } else { &vector };
        let store = format!(
            "cvt.u64.u32 %rd5, %lane;\nst.async.shared::cluster.mbarrier::complete_tx::bytes{elements}.{kind} [%own], {value}, [%bar];"
        );
        let bytes = count as u32 * if wide { 8 } else { 4 };
        let last = format!("ld.shared.u32 %r2, [%own+{}];", bytes - if wide { 8 } else { 4 });
        let words = leaves(&format!("{}\n{store}\n{}\n{last}\n{publish}", begin(32 * bytes), wait("%bar")), 32);
        assert!((0..32).all(|lane| words[4 * lane] == lane as u32), "{elements}.{kind}");
        // One byte is missing in the count, or is too many: the phase does not end.
        let waits = format!("{}\n{store}\n{}", begin(32 * bytes + 4), wait("%bar"));
        assert_eq!(run(&waits, 32, true), Stop::Idle);
        if count * if wide { 8 } else { 4 } == 16 {
            let misaligned = format!("{}\n{}", begin(16), store.replace("%own", "%own+8"));
            assert!(matches!(run(&misaligned, 1, true), Stop::Fault(fault) if fault.kind == FaultKind::Misaligned));
        }
    }
    // Nobody waits: neither who has stored nor the other may look, or store again.
    let filled = format!("{FILL}\n{}\n{store}", begin(256));
    for access in [READ, OTHERS, "st.shared.u32 [%other+12], 0;", store] {
        race(&format!("{filled}\n{access}"), 64);
    }
    let beyond = format!("{}\n{}", begin(4), store.replace("%other+12", "%own+8192"));
    assert!(matches!(run(&beyond, 1, true), Stop::Fault(fault) if fault.kind == FaultKind::OutOfBounds));
}

#[test]
fn reductions_that_an_mbarrier_counts() {
    let reduce = |op: &str, begin: u32| {
        let all = format!(
            "@%p1 bra begun;\nmbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%bar], 256;\n\
             st.shared.u32 [room], {begin};\nbegun:\nbar.sync 0;\n\
             red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op} [%r5], %lane, [%bar];\n$\n\
             ld.shared.u32 %r2, [room];\nst.global.u32 [%rd1], %r2;"
        );
        let all = format!("mov.u32 %r5, room;\n{all}");
        race(&all.replace('$', ""), 64);
        let words = leaves(&all.replace('$', &wait("%bar")), 64);
        assert!((0..64).all(|lane| words[4 * lane] == words[0]), "{op}");
        words[0]
    };
    assert_eq!(reduce("add.u32", 5), 5 + 63 * 32);
    assert_eq!(reduce("max.s32", 7), 63);
    assert_eq!(reduce("min.u32", 7), 0);
    assert_eq!(reduce("or.b32", 0x100), 0x13f);
    assert_eq!(reduce("and.b32", 0xff), 0);
    assert_eq!(reduce("xor.b32", 1), 1);
}

#[test]
fn reductions_in_bulk() {
    let fill = |value: &str| {
        format!("st.shared.v4.b32 [%own], {{{0}, {0}, {0}, {0}}};\n{FENCE}\nbar.sync 0;\n@%p1 ret;", value)
    };
    let reduce = |form: &str| {
        format!("mov.u32 %r5, room;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.{form} [%rd1], [%r5], 64;")
    };
    let words = |value: &str, form: &str| leaves(&format!("{}\n{}", fill(value), reduce(form)), 4);
    let sum = words("%lane", "add.u32");
    for (at, &word) in sum.iter().enumerate() {
        assert_eq!(word, if at < 16 { ONES + at as u32 / 4 } else { ONES });
    }
    assert_eq!(words("%lane", "or.b32")[8], ONES | 2);
    assert_eq!(words("0", "min.u64")[..2], [0, 0]);
    assert_eq!(words("%lane", "max.s32")[12], ONES);
    // Of half precision, each element by itself: 1 + 2 = 3.
    assert_eq!(words("0x40004000", "add.noftz.f16")[0], f16_sum(0x4000));
    assert_eq!(words("0f3f800000", "add.f32")[0], (f32::from_bits(ONES) + 1.0).to_bits());
    // What a thread of the block has not told of is not in it.
    let unordered = format!("st.shared.v4.b32 [%own], {{0, 0, 0, 0}};\n@%p1 ret;\n{}", reduce("add.u32"));
    race(&format!("{FILL}\n{unordered}"), 4);
    let found = run(&reduce("add.u32"), 4, true);
    assert!(matches!(found, Stop::Fault(fault) if fault.kind == FaultKind::Uninitialized));
    let misaligned = format!("{}\n{}", fill("0"), reduce("add.u32").replace("64;", "40;"));
    assert!(matches!(run(&misaligned, 4, true), Stop::Fault(fault) if fault.kind == FaultKind::Misaligned));
}

/// The smallest numbers in global memory, plus a number in half precision, in both halves.
fn f16_sum(bits: u16) -> u32 {
    let sum = half::f16::from_f64(half::f16::from_bits(ONES as u16).to_f64() + half::f16::from_bits(bits).to_f64());
    u32::from(sum.to_bits()) * 0x1_0001
}

/// A thread may wait for its copies by itself, even if an mbarrier counts them, too.
#[test]
fn counted_copies_are_awaited_by_their_thread() {
    let counted = format!(
        "@!%p1 mbarrier.init.shared.b64 [%bar], 1;\nbar.sync 0;\n{COPY}\ncp.async.mbarrier.arrive.noinc.shared.b64 [%bar];"
    );
    race(&format!("{counted}\n{READ}"), 1);
    for wait in ["cp.async.wait_all;", "cp.async.commit_group;\ncp.async.wait_group 0;"] {
        finishes(&format!("{counted}\n{wait}\n{READ}"), 1);
    }
}

/// The end of a phase says that those before it have ended, too, even if nobody has looked at them.
#[test]
fn a_later_phase_ends_a_copy() {
    let stores = "@!%p1 mbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd4, [%bar], 4;\n\
                  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%own], %lane, [%bar];\nmbarrier.arrive.shared.b64 %rd4, [%bar];";
    let looks = "again:\nmbarrier.try_wait.parity.shared.b64 %p2, [%bar], 1;\n@!%p2 bra again;";
    race(&format!("{stores}\nld.shared.u32 %r2, [%own];"), 1);
    finishes(&format!("{stores}\n{looks}\nld.shared.u32 %r2, [%own];"), 1);
}
