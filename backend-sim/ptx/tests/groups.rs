//! Products of warp groups (`wgmma`) beside the threads: who may touch their matrices when, and who must come to them.

use std::sync::Arc;

use onesided_ptx::{Block, Fault, FaultKind, FlatMemory, Launch, Module, Stop};

/// A kernel with room for `a` (2048 bytes, 16 of each of 128 threads, at `%own`) and `b` (256 bytes behind them) in shared memory, and the same
/// again behind that. `%da` and `%db` describe them, `%dc` and `%dd` those behind.
fn kernel(body: &str) -> String {
    let lines: String =
        body.lines().enumerate().map(|(line, text)| format!(".loc 1 {} 1\n{text}\n", line + 1)).collect();
    let descriptors: String = [("da", 0), ("db", 2048), ("dc", 2304), ("dd", 2304 + 2048)]
        .map(|(name, at)| format!("mov.u64 %{name}, {};\n", (at | 128 << 16 | 256_u64 << 32) >> 4))
        .concat();
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n\
         .reg .b32 %thread;\n.reg .b32 %own;\n.reg .b32 %a<4>;\n.reg .b32 %bar;\n.reg .f32 %f<8>;\n.reg .b64 %rd<8>;\n.reg .b64 %da;\n.reg .b64 %db;\n\
         .reg .b64 %dc;\n.reg .b64 %dd;\n.shared .align 16 .b8 room[4608];\n.shared .align 8 .b8 barriers[16];\n{descriptors}\
         ld.param.u64 %rd1, [in];\nmov.u32 %thread, %tid.x;\nmul.wide.u32 %rd3, %thread, 16;\nadd.s64 %rd2, %rd1, %rd3;\n\
         mov.u32 %bar, barriers;\nmov.u32 %own, room;\nmad.lo.s32 %own, %thread, 16, %own;\nsetp.lt.u32 %p1, %thread, 16;\n\
         setp.lt.u32 %p2, %thread, 128;\nsetp.eq.u32 %p3, %thread, 0;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    )
}

fn run(body: &str, threads: u32, races: bool) -> Stop {
    let text = kernel(body);
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let from = memory.allocate(&[0; 4096]);
    let mut launch = Launch::new(1, threads).parameter(&from.to_le_bytes());
    launch.checks.races = races;
    Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap().run(&mut memory)
}

fn finishes(body: &str, threads: u32) {
    assert_eq!(run(body, threads, true), Stop::Finished, "{body}");
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

fn fault(body: &str, threads: u32) -> Fault {
    match run(body, threads, true) {
        Stop::Fault(fault) => *fault,
        other => panic!("no fault: {other:?}\n{body}"),
    }
}

const FENCE: &str = "fence.proxy.async.shared::cta;";
const WRITE: &str = "@%p2 st.shared.v4.u32 [%own], {0, 0, 0, 0};\n@%p1 st.shared.v4.u32 [%own+2048], {0, 0, 0, 0};\nfence.proxy.async.shared::cta;";
const AGAIN: &str = "st.shared.v4.u32 [%own+2304], {0, 0, 0, 0};\n@%p1 st.shared.v4.u32 [%own+4352], {0, 0, 0, 0};\nfence.proxy.async.shared::cta;";
const PRODUCT: &str = "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %da, %db, 0, 1, 1, 0, 0;";
const SECOND: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %dc, %dd, 1, 1, 1, 0, 0;";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;";

#[test]
fn all_threads_come_after_who_wrote_the_matrices() {
    let found = race(&format!("{WRITE}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    insta::assert_snapshot!(found);
    finishes(&format!("{WRITE}\nbar.sync 0;\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    // A barrier of each warp is not enough, nor one that some threads do not pass.
    race(&format!("{WRITE}\nbar.warp.sync -1;\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    let one = "@%p2 bra other;\nbar.sync 1, 64;\nret;\nother:\nsetp.lt.u32 %p3, %thread, 32;\n@%p3 bar.sync 1, 64;";
    let writer = "@%p2 bra done;\nst.shared.u32 [2000], 0;\nfence.proxy.async.shared::cta;\ndone:";
    race(&format!("{WRITE}\nbar.sync 0;\n{writer}\n{one}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 160);
    let all = one.replace("64", "160").replace("@%p3 bar", "bar");
    finishes(&format!("{WRITE}\nbar.sync 0;\n{writer}\n{all}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 160);
    // Another warp writes `b`, and the group itself `a`: it knows of these writes, and not of those.
    let parts = "@!%p2 bra other;\nst.shared.v4.u32 [%own], {0, 0, 0, 0};\nfence.proxy.async;\nbar.sync 1, 128;\nbra product;\nother:\n\
                 st.shared.v4.u32 [%own], {0, 0, 0, 0};\nfence.proxy.async;\nret;\nproduct:";
    race(&format!("{parts}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 160);
    let together = parts.replace("bar.sync 1, 128", "bar.sync 1, 160").replace("\nret;", "\nbar.sync 1, 160;\nret;");
    finishes(&format!("{together}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 160);
    // What the group reads must be there: all of `a`, and all of `b`.
    for line in [0, 1] {
        let partly = WRITE.lines().nth(line).unwrap();
        let found = fault(&format!("{partly}\n{FENCE}\nbar.sync 0;\n{PRODUCT}"), 128);
        assert_eq!(found.kind, FaultKind::Uninitialized, "{found}");
    }
}

/// A product reads through the async proxy: what threads write is visible to it behind a fence, which a barrier or `wgmma.fence` is not.
#[test]
fn a_product_does_not_see_what_threads_have_written() {
    let write = WRITE.replace(FENCE, "");
    let product = format!("{PRODUCT}\n{COMMIT}\n{WAIT}");
    insta::assert_snapshot!(race(&format!("{write}\nbar.sync 0;\n{product}"), 128));
    finishes(&format!("{write}\n{FENCE}\nbar.sync 0;\n{product}"), 128);
    finishes(&format!("{write}\nbar.sync 0;\n{FENCE}\n{product}"), 128);
    // One thread that makes the fence behind the barrier is of the group that begins the product.
    finishes(&format!("{write}\nbar.sync 0;\n@%p3 {FENCE}\n{product}"), 128);
    race(&format!("{FENCE}\n{write}\nbar.sync 0;\n{product}"), 128);
    // One of the writers has made none.
    race(&format!("{write}\nsetp.eq.u32 %p2, %thread, 77;\n@!%p2 {FENCE}\nbar.sync 0;\n{product}"), 128);
    // Copies of elements need none.
    let copy = "cp.async.cg.shared.global [%own], [%rd2], 16;\ncp.async.wait_all;\nbar.sync 0;";
    finishes(&format!("{WRITE}\nbar.sync 0;\n{copy}\n{product}"), 128);
}

#[test]
fn nobody_writes_the_matrices_before_the_wait() {
    let filled = format!("{WRITE}\n{AGAIN}\nbar.sync 0;");
    let found = race(&format!("{filled}\n{PRODUCT}\n{COMMIT}\nst.shared.u32 [%own], 1;\n{WAIT}"), 128);
    insta::assert_snapshot!(found);
    for write in
        ["st.shared.u32 [%own], 1;", "@%p1 st.shared.u8 [%own+2063], 1;", "atom.shared.add.u32 %r1, [%own+8], 1;"]
    {
        finishes(&format!("{filled}\n{PRODUCT}\n{COMMIT}\n{WAIT}\n{write}"), 128);
        // A wait that comes before the product is in a set waits for nothing, and a barrier does neither.
        race(&format!("{filled}\n{PRODUCT}\n{WAIT}\n{write}\n{COMMIT}"), 128);
        race(&format!("{filled}\n{PRODUCT}\n{COMMIT}\nbar.sync 0;\n{write}"), 128);
        race(&format!("{filled}\n{PRODUCT}\n{COMMIT}\nwgmma.wait_group.sync.aligned 1;\n{write}"), 128);
        race(&format!("{filled}\n{PRODUCT}\n{COMMIT}\ncp.async.wait_all;\n{write}"), 128);
        // Of two sets, the wait for all but one ends the first.
        let two = format!("{filled}\n{PRODUCT}\n{COMMIT}\n{SECOND}\n{COMMIT}\nwgmma.wait_group.sync.aligned 1;");
        finishes(&format!("{two}\n{write}"), 128);
        let behind = write.replace("+2063", "+4367").replace("+8", "+2312").replace("%own]", "%own+2304]");
        race(&format!("{two}\n{behind}"), 128);
        finishes(&format!("{two}\n{WAIT}\n{behind}"), 128);
    }
    // Reads do no harm, and what lies beside is not read.
    finishes(
        &format!("{filled}\n{PRODUCT}\nld.shared.u32 %r1, [%own];\nst.shared.u32 [%own+2304], 1;\n{COMMIT}\n{WAIT}"),
        128,
    );
    // The same place again in a loop: the set of the round before is over.
    let round = |most: u32| {
        format!(
            "{filled}\nmov.u32 %r7, 0;\nagain:\n{PRODUCT}\n{COMMIT}\n{SECOND}\n{COMMIT}\nwgmma.wait_group.sync.aligned {most};\n\
             st.shared.u32 [%own], %r7;\n{FENCE}\nbar.sync 0;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p2, %r7, 300;\n@%p2 bra again;\n{WAIT}"
        )
    };
    finishes(&round(1), 128);
    race(&round(2), 128);
}

#[test]
fn one_thread_of_the_group_tells_others() {
    // The fifth warp writes when one warp, or one thread, has told it that the group's product is over.
    let producer = |tells: &str| {
        format!(
            "{WRITE}\n@%p3 mbarrier.init.shared.b64 [%bar], 1;\nbar.sync 0;\n@!%p2 bra writer;\n{PRODUCT}\n{COMMIT}\n{tells}\nret;\n\
             writer:\nmbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0;\n@!%p3 bra writer;\n\
             st.shared.u32 [%own], 1;\nsub.u32 %own, %own, 2048;\nst.shared.u32 [%own], 1;"
        )
    };
    let tell = "@%p3 mbarrier.arrive.shared.b64 %rd5, [%bar];";
    finishes(&producer(&format!("{WAIT}\n{tell}")), 160);
    let found = race(&producer(&format!("{tell}\n{WAIT}")), 160);
    assert_eq!(found.who.thread[0] / 32, 4, "{found}");
    // Behind the wait nobody is told.
    let found = race(&producer(&format!("{tell}\n{WAIT}\n{tell}")), 160);
    assert_eq!(found.who.thread[0] / 32, 4, "{found}");
}

#[test]
fn copies_and_products() {
    let copy = "cp.async.cg.shared.global [%own], [%rd2], 16;";
    let land = "cp.async.wait_all;\nbar.sync 0;";
    finishes(&format!("{WRITE}\nbar.sync 0;\n{copy}\n{land}\n{PRODUCT}\n{COMMIT}\n{WAIT}\n{copy}"), 128);
    race(&format!("{WRITE}\nbar.sync 0;\n{copy}\nbar.sync 0;\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    race(&format!("{WRITE}\nbar.sync 0;\n{copy}\ncp.async.wait_all;\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    race(&format!("{WRITE}\nbar.sync 0;\n{PRODUCT}\n{COMMIT}\n{copy}\n{WAIT}"), 128);
    // In bulk, an mbarrier tells that the bytes have come; one thread's wait there is not that of all.
    let bulk = "@!%p3 bra issued;\nmbarrier.arrive.expect_tx.shared.b64 %rd5, [%bar], 2048;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%own], [%rd1], 2048, [%bar];\nissued:";
    let wait = "spin:\nmbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0;\n@!%p3 bra spin;";
    let begin = format!("{WRITE}\n@%p3 mbarrier.init.shared.b64 [%bar], 1;\nbar.sync 0;");
    finishes(&format!("{begin}\n{bulk}\n{wait}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    race(&format!("{begin}\n{bulk}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    // All know that it was begun, and not that it is over.
    race(&format!("{begin}\n{bulk}\nbar.sync 0;\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    race(&format!("{begin}\n{bulk}\n@!%p3 bra over;\n{wait}\nover:\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
    race(&format!("{begin}\n{PRODUCT}\n{COMMIT}\n{bulk}\n{wait}\n{WAIT}"), 128);
    finishes(&format!("{begin}\n{PRODUCT}\n{COMMIT}\n{WAIT}\nbar.sync 0;\n{bulk}\n{wait}"), 128);
}

#[test]
fn all_threads_of_the_group_take_part() {
    let filled = format!("{WRITE}\nbar.sync 0;");
    finishes(&format!("{filled}\n{PRODUCT}"), 128);
    let short = fault(&format!("{WRITE}\n{PRODUCT}"), 96);
    assert_eq!(short.kind, FaultKind::MissingLanes);
    insta::assert_snapshot!(short);
    for instruction in [PRODUCT, COMMIT, WAIT, "wgmma.fence.sync.aligned;"] {
        // A thread has ended, before the others come or after, or a lane of a warp waits elsewhere.
        for thread in [3, 127] {
            let skip = format!("setp.eq.u32 %p3, %thread, {thread};\n@%p3 ret;");
            let found = fault(&format!("{filled}\n{skip}\n{instruction}"), 128);
            assert_eq!(found.kind, FaultKind::MissingLanes, "{instruction}\n{found}");
        }
        let apart = format!(
            "{filled}\nsetp.eq.u32 %p3, %thread, 3;\n@%p3 bra other;\n{instruction}\nbra done;\nother:\n{instruction}\ndone:"
        );
        assert_eq!(fault(&apart, 128).kind, FaultKind::MissingLanes, "{instruction}");
    }
    // A warp of the group has ended, or comes to another product; the fourth is alone.
    let gone = format!("{filled}\nsetp.ge.u32 %p3, %thread, 96;\n@%p3 ret;\n{PRODUCT}");
    assert_eq!(fault(&gone, 128).kind, FaultKind::MissingLanes);
    let elsewhere = format!(
        "{filled}\nsetp.ge.u32 %p3, %thread, 96;\n@%p3 bra other;\n{PRODUCT}\nbra done;\nother:\n{PRODUCT}\ndone:"
    );
    let found = fault(&elsewhere, 128);
    assert_eq!(found.kind, FaultKind::MissingLanes);
    insta::assert_snapshot!(found);
    // It is found when the warp ends, also where others wait for something else.
    let polls = "@%p2 bra group;\npoll:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra poll;\nret;\ngroup:";
    let gone = format!("{filled}\n{polls}\nsetp.ge.u32 %p3, %thread, 96;\n@%p3 ret;\n{PRODUCT}");
    assert_eq!(fault(&gone, 160).kind, FaultKind::MissingLanes);
    // Two groups do not wait for each other.
    finishes(
        &format!(
            "{filled}\n@%p2 bra first;\nbar.sync 1, 256;\nfirst:\n{PRODUCT}\n{COMMIT}\n{WAIT}\n@%p2 bar.sync 1, 256;"
        ),
        256,
    );
    // Warps may come one after the other.
    let late = "setp.lt.u32 %p3, %thread, 40;\n@%p3 bra join;\nadd.u32 %r1, %thread, 1;\njoin:";
    finishes(&format!("{filled}\n{late}\n{PRODUCT}\n{COMMIT}\n{WAIT}"), 128);
}

#[test]
fn descriptors_that_differ_or_lead_nowhere() {
    let filled = format!("{WRITE}\nbar.sync 0;");
    for (change, what) in [
        ("@%p1 mov.u64 %da, %dc;", "the descriptor of a"),
        ("@%p1 mov.u64 %db, %dd;", "the descriptor of b"),
        ("mov.pred %p2, %p1;", "whether it adds"),
    ] {
        let product = PRODUCT.replace(", 0, 1, 1,", ", %p2, 1, 1,");
        let found = fault(&format!("{filled}\n{change}\n{product}"), 128);
        assert_eq!(found.kind, FaultKind::InvalidOperand, "{found}");
        assert!(found.message.contains(what), "{found}");
    }
    let beyond = format!("{filled}\nmov.u64 %da, 0x100;\n{PRODUCT}");
    assert_eq!(fault(&beyond, 128).kind, FaultKind::Uninitialized);
    let beyond = format!("{filled}\nmov.u64 %da, 0x3fff;\n{PRODUCT}");
    assert_eq!(fault(&beyond, 128).kind, FaultKind::OutOfBounds);
}

#[test]
fn registers_of_products_are_left_alone() {
    let filled = format!("{WRITE}\nbar.sync 0;\nmov.b32 %a0, 0;\nmov.b32 %a1, 0;\nmov.b32 %a2, 0;\nmov.b32 %a3, 0;");
    let begun = format!("{filled}\n{PRODUCT}\n{COMMIT}");
    let again = PRODUCT.lines().nth(1).unwrap();
    for access in ["add.f32 %f4, %f2, %f2;", "abs.f32 %f3, %f4;", "st.global.v2.f32 [%rd1], {%f1, %f0};"] {
        finishes(&format!("{begun}\n{WAIT}\n{access}"), 128);
        for early in [String::new(), "wgmma.wait_group.sync.aligned 1;\n".into(), "bar.sync 0;\n".into()] {
            let found = fault(&format!("{begun}\n{early}{access}\n{WAIT}"), 128);
            assert_eq!(found.kind, FaultKind::Unawaited, "{access}\n{found}");
            assert_eq!(run(&format!("{begun}\n{early}{access}\n{WAIT}"), 128, false), Stop::Finished);
        }
        // Where it is jumped over nothing happens.
        finishes(&format!("{begun}\n@%p3 bra over;\n@%p3 {access}\nover:\n{WAIT}"), 128);
        // Between access and product there must be a fence.
        let found = fault(&format!("{begun}\n{WAIT}\n{access}\n{again}"), 128);
        assert_eq!(found.kind, FaultKind::Unawaited, "{access}\n{found}");
        finishes(&format!("{begun}\n{WAIT}\n{access}\n{PRODUCT}\n{again}\n{COMMIT}\n{WAIT}"), 128);
    }
    // A wait for all but one set leaves the last one's registers alone, and no others.
    let other = again.replace("%f0, %f1, %f2, %f3", "%f4, %f5, %f6, %f7");
    let two = format!("{begun}\n{other}\n{COMMIT}\nwgmma.wait_group.sync.aligned 1;");
    finishes(&format!("{two}\nadd.f32 %f1, %f2, %f2;\n{WAIT}"), 128);
    assert_eq!(fault(&format!("{two}\nadd.f32 %f5, %f2, %f2;\n{WAIT}"), 128).kind, FaultKind::Unawaited);
    // Compilers copy registers where they like.
    let copies = PRODUCT.replace("aligned;\n", "aligned;\nmov.f32 %f1, 0f00000000;\n");
    finishes(&format!("{filled}\n{copies}\n{COMMIT}\nmov.f32 %f4, %f2;\n{WAIT}"), 128);
    insta::assert_snapshot!(fault(&format!("{begun}\nadd.f32 %f4, %f2, %f2;"), 128));
    insta::assert_snapshot!(fault(&format!("{begun}\n{WAIT}\nabs.f32 %f1, %f4;\n{again}"), 128));
    insta::assert_snapshot!(fault(&format!("{filled}\n{again}"), 128));
    // Registers of `a` are only read: another read does no harm.
    let product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, %db, 0, 1, 1, 0;";
    let begun = format!("{filled}\nwgmma.fence.sync.aligned;\n{product}\n{COMMIT}");
    finishes(&format!("{begun}\nst.global.b32 [%rd2], %a1;\n{product}\n{COMMIT}\n{WAIT}\nnot.b32 %a1, %a0;"), 128);
    let found = fault(&format!("{begun}\nnot.b32 %a1, %a0;\n{WAIT}"), 128);
    assert_eq!(found.kind, FaultKind::Unawaited, "{found}");
    insta::assert_snapshot!(found);
    let found = fault(&format!("{begun}\n{WAIT}\nnot.b32 %a1, %a0;\n{product}"), 128);
    assert_eq!(found.kind, FaultKind::Unawaited, "{found}");
    // Some threads of a warp are enough.
    let found = fault(&format!("{begun}\n@%p3 not.b32 %a1, %a0;\n{WAIT}"), 128);
    assert_eq!((found.kind, found.who.thread), (FaultKind::Unawaited, [0; 3]), "{found}");
}
