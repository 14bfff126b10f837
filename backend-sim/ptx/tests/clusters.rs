//! Clusters of several blocks: whose threads and memory are whose, what orders them, and how long a block's shared memory is there for others.

use std::sync::Arc;

use onesided_ptx::{Block, Fault, FaultKind, FlatMemory, Launch, Module, Stop};

/// A kernel of clusters of two blocks. A thread has a word at `%own` of shared memory, and at `%other` in the other block, and 16 bytes of global memory at `%rd1`. `%bar` is an
/// mbarrier, and `%far` that of the other block.
fn kernel(body: &str) -> String {
    let lines: String =
        body.lines().enumerate().map(|(line, text)| format!(".loc 1 {} 1\n{text}\n", line + 1)).collect();
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in)\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{{\n\
         .reg .pred %p<4>;\n.reg .b16 %h<2>;\n.reg .b32 %r<16>;\n.reg .b32 %rank;\n.reg .b32 %own;\n.reg .b32 %other;\n.reg .b32 %bar;\n.reg .b32 %far;\n\
         .reg .b64 %rd<8>;\n.shared .align 128 .b8 room[512];\n.shared .align 8 .b8 barrier[8];\nld.param.u64 %rd1, [in];\n\
         mov.u32 %rank, %cluster_ctarank;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\n\
         mad.lo.s32 %r1, %r1, %r2, %r0;\nmul.wide.u32 %rd3, %r1, 16;\nadd.s64 %rd1, %rd1, %rd3;\nmov.u32 %own, room;\nmov.u32 %bar, barrier;\n\
         mad.lo.s32 %own, %r0, 4, %own;\nxor.b32 %r3, %rank, 1;\nmapa.shared::cluster.u32 %other, %own, %r3;\n\
         mapa.shared::cluster.u32 %far, %bar, %r3;\nsetp.eq.u32 %p1, %rank, 0;\nsetp.eq.u32 %p2, %r0, 0;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    )
}

const SYNC: &str = "barrier.cluster.arrive;\nbarrier.cluster.wait;";

/// How the clusters of a grid end, one after the other, and the words of global memory then.
fn ends(body: &str, (blocks, threads): (u32, u32), races: bool) -> (Vec<Stop>, Vec<u32>) {
    let text = kernel(body);
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let from = memory.allocate(&vec![7; 16 * (blocks * threads) as usize]);
    let mut launch = Launch::new(blocks, threads).parameter(&from.to_le_bytes());
    launch.cluster = module.kernels()[0].cluster;
    launch.checks.races = races;
    let launch = Arc::new(launch);
    let run = |cluster: u32| {
        let first = launch.first_block(cluster.into());
        Block::new(&module, "k", &launch, first).unwrap().run(&mut memory)
    };
    let stops = (0..blocks / 2).map(run).collect();
    let words = memory.bytes(from).chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    (stops, words.collect())
}

fn leaves(body: &str, blocks: u32, threads: u32) -> Vec<u32> {
    let (stops, words) = ends(body, (blocks, threads), true);
    assert!(stops.iter().all(|stop| *stop == Stop::Finished), "{stops:?}\n{body}");
    words
}

fn fault(body: &str, threads: u32) -> Fault {
    match ends(body, (2, threads), true).0.remove(0) {
        Stop::Fault(fault) => *fault,
        other => panic!("no fault: {other:?}\n{body}"),
    }
}

/// A race, without which nothing goes wrong here.
fn race(body: &str) -> String {
    let found = fault(body, 32);
    assert_eq!(found.kind, FaultKind::Race, "{found}\n{body}");
    assert_eq!(ends(body, (2, 32), false).0, [Stop::Finished], "{body}");
    found.to_string()
}

#[test]
fn who_is_where() {
    let body = "mov.u32 %r4, %clusterid.x;\nmov.u32 %r5, %nclusterid.x;\nmov.u32 %r6, %cluster_nctarank;\nmov.u32 %r7, %cluster_ctaid.x;\n\
                mov.u32 %r8, %cluster_nctaid.x;\nmov.pred %p3, %is_explicit_cluster;\nselp.u32 %r9, 1, 0, %p3;\nmov.u32 %r10, %warpid;\nmov.u32 %r11, %nwarpid;\n\
                getctarank.shared::cluster.u32 %r12, %other;\ngetctarank.shared::cluster.u32 %r13, %own;\n\
                mad.lo.s32 %r4, %r4, 10, %r5;\nmad.lo.s32 %r4, %r4, 10, %r6;\nmad.lo.s32 %r4, %r4, 10, %r7;\nmad.lo.s32 %r4, %r4, 10, %r8;\n\
                mad.lo.s32 %r4, %r4, 10, %r9;\nmad.lo.s32 %r5, %rank, 10, %r10;\nmad.lo.s32 %r5, %r5, 10, %r11;\n\
                mad.lo.s32 %r6, %r12, 10, %r13;\nst.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r0};";
    let words = leaves(body, 4, 64);
    for (number, words) in words.chunks_exact(4).enumerate() {
        let (block, thread) = (number as u32 / 64, number as u32 % 64);
        let (cluster, rank) = (block / 2, block % 2);
        let wanted = [
            cluster * 100_000 + 2 * 10_000 + 2 * 1000 + rank * 100 + 21,
            rank * 100 + thread / 32 * 10 + 2,
            (1 - rank) * 10 + rank,
            thread,
        ];
        assert_eq!(words, wanted, "block {block}, thread {thread}");
    }
}

/// Shared memory is a block's own, or that of its cluster.
#[test]
fn whose_memory_an_address_is_in() {
    let asks = |address: &str| {
        let bits = ["shared", "shared::cta", "shared::cluster", "global"].iter().fold(String::new(), |all, space| {
            all + &format!(
                "isspacep.{space} %p3, {address};\nselp.u32 %r5, 1, 0, %p3;\nmad.lo.s32 %r4, %r4, 10, %r5;\n"
            )
        });
        format!("mov.u32 %r4, 0;\n{bits}")
    };
    let addresses = "cvt.u64.u32 %rd4, %own;\ncvta.shared.u64 %rd4, %rd4;\nmapa.u64 %rd5, %rd4, %r3;\nmapa.u64 %rd6, %rd4, %rank;\n";
    for (address, found) in [("%rd4", 1110), ("%rd6", 1110), ("%rd5", 10), ("%rd1", 1)] {
        let words = leaves(&format!("{addresses}{}st.global.u32 [%rd1], %r4;", asks(address)), 2, 32);
        assert!(words.chunks_exact(4).all(|words| words[0] == found), "{address}: {words:?}");
    }
}

/// Blocks that fill no whole warps have warps of their own all the same.
#[test]
fn blocks_of_few_threads() {
    let sums = "redux.sync.add.s32 %r4, %r1, 0xffffffff;\nbar.sync 0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nst.global.u32 [%rd1], %r4;";
    for threads in [1, 5, 40] {
        let words = leaves(sums, 4, threads);
        for (number, words) in words.chunks_exact(4).enumerate() {
            let (block, thread) = (number as u32 / threads, number as u32 % threads);
            let warp = thread / 32 * 32..threads.min(thread / 32 * 32 + 32);
            assert_eq!(words[0], warp.map(|other| block * threads + other).sum::<u32>(), "{threads}, {number}");
        }
    }
    // A barrier that takes a number of threads counts whole warps, and the threads that have ended are those of the block.
    let counted = "setp.lt.u32 %p3, %r0, 3;\n@%p3 exit;\nbar.sync 1, 64;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nst.global.u32 [%rd1], %r0;";
    let words = leaves(counted, 2, 40);
    assert!(
        words.chunks_exact(4).enumerate().all(|(number, words)| number % 40 < 3 || words[0] as usize == number % 40)
    );
}

/// Each thread writes into the other block's memory and reads what the other block has written into its own.
#[test]
fn blocks_reach_each_others_shared_memory() {
    let body = format!(
        "{SYNC}\nst.shared::cluster.u32 [%other], %r1;\n{SYNC}\nld.shared.u32 %r4, [%own];\nst.global.u32 [%rd1], %r4;"
    );
    let words = leaves(&body, 4, 64);
    for (number, words) in words.chunks_exact(4).enumerate() {
        assert_eq!(words[0] as usize, number ^ 64);
    }
    // by generic addresses, also of a block's own memory
    let body = format!(
        "cvt.u64.u32 %rd4, %own;\ncvta.shared.u64 %rd4, %rd4;\nmapa.u64 %rd5, %rd4, %r3;\nmapa.u64 %rd6, %rd4, %rank;\n{SYNC}\n\
         st.u32 [%rd5], %r1;\n{SYNC}\nld.u32 %r4, [%rd6];\nadd.u32 %r4, %r4, 1;\nst.u32 [%rd4], %r4;\n{SYNC}\nld.u32 %r4, [%rd5];\nst.global.u32 [%rd1], %r4;\n{SYNC}"
    );
    let words = leaves(&body, 2, 32);
    for (number, words) in words.chunks_exact(4).enumerate() {
        assert_eq!(words[0] as usize, number + 1);
    }
}

/// A block's barriers are its own.
#[test]
fn barriers_of_blocks() {
    let body = format!(
        "@%p1 bra first;\nbar.sync 0;\nbra all;\nfirst:\nbar.sync 0;\nbar.sync 1, 64;\nbar.red.popc.u32 %r5, 0, %p1;\nbar.sync 0;\nst.global.u32 [%rd1+4], %r5;\n\
         all:\nst.shared.u32 [%own], %r0;\nbar.sync 0;\nxor.b32 %r4, %own, 4;\nld.shared.u32 %r4, [%r4];\nst.global.u32 [%rd1], %r4;\n{SYNC}"
    );
    let words = leaves(&body, 2, 64);
    assert!(words.chunks_exact(4).enumerate().all(|(number, words)| words[0] as usize == (number % 64) ^ 1));
    assert_eq!((words[1], words[4 * 64 + 1]), (64, 0x0707_0707));
    // A thread that has ended counts no more, in its own block.
    let body = "@!%p1 bra all;\n@%p2 exit;\nall:\nbar.sync 0;\nst.global.u32 [%rd1], %rank;";
    assert_eq!(leaves(body, 2, 64)[4 * 64..][..5], [1, 0x0707_0707, 0x0707_0707, 0x0707_0707, 1]);
    // What orders the threads of one block does not order those of another.
    let race = race(&format!(
        "st.shared.u32 [%own], %r1;\n{SYNC}\nst.shared::cluster.u32 [%other], %r1;\nbar.sync 0;\nld.shared.u32 %r4, [%own];\n{SYNC}"
    ));
    insta::assert_snapshot!(race, @r"
    race in shared memory: nothing orders the write of 4 bytes at room+0 of block 1 of the cluster and an earlier read there
        k.cu:4 by block 0, thread 0
        k.cu:6 by block 1, thread 0
        missing: a barrier of the cluster (cluster.sync()) between k.cu:6 and k.cu:4
    ");
}

#[test]
fn shared_memory_lives_as_long_as_its_block() {
    let both = |between: &str, end: &str| {
        format!("st.shared.u32 [%own], %r1;\n{between}\n@%p1 ld.shared::cluster.u32 %r4, [%other];\n{end}")
    };
    assert_eq!(leaves(&both(SYNC, SYNC), 2, 32)[0], 0x0707_0707);
    // The block that is read may have ended before, or may end first.
    insta::assert_snapshot!(race(&both(SYNC, "")), @r"
    race in shared memory: the read of 4 bytes at room+0 of block 1 of the cluster comes when that block has ended
        k.cu:4 by block 0, thread 0
        missing: a barrier of the cluster (cluster.sync()) behind k.cu:4, before the block ends
    ");
    let other = both(SYNC, "").replace("@%p1 ld", "@!%p1 ld");
    insta::assert_snapshot!(race(&other), @r"
    race in shared memory: block 0 of the cluster ends, and nothing orders that behind another block's read in its shared memory
        k.cu:4 by block 0, thread 31
        k.cu:4 by block 1, thread 0
        missing: a barrier of the cluster (cluster.sync()) between k.cu:4 and k.cu:4
    ");
    // It may not have begun. A barrier that orders no accesses says that it has.
    let begins = |wait: &str| format!("{wait}\n@%p1 st.shared::cluster.u32 [%other], %r1;\n{SYNC}");
    insta::assert_snapshot!(race(&begins("")), @r"
    race in shared memory: the write of 4 bytes at room+0 of block 1 of the cluster may come before that block has begun
        k.cu:2 by block 0, thread 0
        missing: a barrier of the cluster (cluster.sync()) before k.cu:2
    ");
    leaves(&begins("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;"), 2, 32);
    // A wait for an mbarrier of the one that is read does, too, at the end.
    let signals = "@%p2 mbarrier.init.shared.b64 [%bar], 32;\nst.shared.u32 [%own], %r1;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;";
    let reads = "@!%p1 bra waits;\nld.shared::cluster.u32 %r4, [%other];\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];\nbra done;\nwaits:\n\
                 again:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%bar], 0;\n@!%p3 bra again;\ndone:";
    leaves(&format!("{signals}\n{reads}"), 2, 32);
}

/// A flag of the first block, which a thread of the second one raises: the narrowest scope that both accesses have must take in both blocks.
#[test]
fn scopes_between_blocks() {
    let body = |store: &str, load: &str| {
        format!(
            "@%p2 st.shared.u32 [%own], 0;\n{SYNC}\n@!%p2 bra done;\n@%p1 bra waits;\n{store} [%other], 1;\nbra done;\n\
             waits:\n{load} %r4, [%own];\nsetp.eq.u32 %p3, %r4, 0;\n@%p3 bra waits;\ndone:\n{SYNC}"
        )
    };
    let wide = ("st.release.cluster.shared::cluster.u32", "ld.acquire.cluster.shared.u32");
    leaves(&body(wide.0, wide.1), 2, 32);
    leaves(&body("st.volatile.shared::cluster.u32", "ld.volatile.shared.u32"), 2, 32);
    leaves(&body("red.shared::cluster.add.u32", wide.1), 2, 32);
    insta::assert_snapshot!(race(&body("st.release.cta.shared::cluster.u32", wide.1)), @r"
    race in shared memory: nothing orders the write of 4 bytes at room+0 of block 0 of the cluster and an earlier read there
        k.cu:6 by block 1, thread 0
        k.cu:9 by block 0, thread 0
        missing: scope cluster or gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.cluster) in place of the narrower one at k.cu:6: to another block such an access is no atomic
    ");
    insta::assert_snapshot!(race(&body(wide.0, "ld.acquire.cta.shared.u32")), @r"
    race in shared memory: nothing orders the write of 4 bytes at room+0 of block 0 of the cluster and an earlier read there
        k.cu:6 by block 1, thread 0
        k.cu:9 by block 0, thread 0
        missing: scope cluster or gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.cluster) in place of the narrower one at k.cu:9: to another block such an access is no atomic
    ");
    insta::assert_snapshot!(race(&body("red.relaxed.cta.shared::cluster.add.u32", "ld.relaxed.cta.shared.u32")), @r"
    race in shared memory: nothing orders the write of 4 bytes at room+0 of block 0 of the cluster and an earlier read there
        k.cu:6 by block 1, thread 0
        k.cu:9 by block 0, thread 0
        missing: scope cluster or gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.cluster) in place of the narrower one at k.cu:6 and k.cu:9: to another block such an access is no atomic
    ");
    // Within a block it is enough, and so it is where a barrier comes between.
    let own = "st.shared.u32 [%own], 0;\nbar.sync 0;\natom.relaxed.cta.shared.add.u32 %r4, [room], 1;";
    leaves(&format!("{own}\n{SYNC}\n@!%p1 atom.relaxed.cta.shared::cluster.add.u32 %r4, [%other], 1;\n{SYNC}"), 2, 64);
    // An access in another block's scope is behind one of the own block's.
    let third = format!(
        "@%p2 st.shared.u32 [%own], 0;\n{SYNC}\n@!%p2 bra done;\n@%p1 st.relaxed.cluster.shared.u32 [%own], 1;\n\
         @!%p1 red.relaxed.cta.shared::cluster.add.u32 [%other], 1;\ndone:\n{SYNC}"
    );
    race(&third);
    leaves(&third.replace("relaxed.cta", "relaxed.cluster"), 2, 32);
}

/// Arrivals at an mbarrier of the other block, and stores that one counts.
#[test]
fn mbarriers_of_other_blocks() {
    let init = format!("@%p2 mbarrier.init.shared.b64 [%bar], 1;\n{SYNC}");
    let wait = "again:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%bar], 0;\n@!%p3 bra again;\nld.shared.u32 %r4, [%own];\nst.global.u32 [%rd1], %r4;";
    let counted = format!(
        "{init}\n@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;\nst.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%other], %r1, [%far];\n{wait}"
    );
    let words = leaves(&counted, 2, 32);
    assert!(words.chunks_exact(4).enumerate().all(|(number, words)| words[0] as usize == number ^ 32));
    let arrives = "st.shared::cluster.u32 [%other], %r1;\nbar.sync 0;\n@%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];";
    let words = leaves(&format!("{init}\n{arrives}\n{wait}"), 2, 32);
    assert!(words.chunks_exact(4).enumerate().all(|(number, words)| words[0] as usize == number ^ 32));
    // Without the barrier, only the thread that arrives has released its store.
    let early = format!("{init}\n{arrives}\n{wait}").replace("bar.sync 0;\n", "");
    insta::assert_snapshot!(race(&early), @r"
    race in shared memory: nothing orders the read of 4 bytes at room+4 of block 1 of the cluster and an earlier write there
        k.cu:9 by block 1, thread 1
        k.cu:4 by block 0, thread 1
        missing: a barrier of the cluster (cluster.sync()) between k.cu:4 and k.cu:9
    ");
}

#[test]
fn copies_to_several_blocks() {
    let init = format!(
        "@%p2 mbarrier.init.shared.b64 [%bar], 1;\n@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 64;\n{SYNC}"
    );
    let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [room], [%rd1], 64, [%bar], %h1;";
    let wait = "again:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%bar], 0;\n@!%p3 bra again;\nld.shared.u32 %r4, [room+60];";
    let all = format!(
        "mov.b16 %h1, 3;\n{init}\n@!%p2 bra copied;\n@%p1 {copy}\ncopied:\n{wait}\nst.global.u32 [%rd1+1024], %r4;"
    );
    let text = kernel(&all).replace("[%rd1+1024]", "[%rd1]");
    assert!(Module::parse(&text).is_ok());
    // Each block takes it up for itself: one that does not wait is not told.
    let words = leaves(
        &all.replace(
            "st.global.u32 [%rd1+1024]",
            "setp.ne.u32 %p3, %r4, 0x07070707;\n@%p3 trap;\nadd.u32 %r4, %r4, 1;\n@!%p2 st.global.u32 [%rd1]",
        ),
        2,
        32,
    );
    assert_eq!((words[4], words[4 * 33]), (0x0707_0708, 0x0707_0708));
    let one = all.replace("%h1, 3;", "%h1, 1;").replace("st.global.u32 [%rd1+1024], %r4;", "");
    assert_eq!(ends(&one, (2, 32), true).0, [Stop::Idle]);
    // The block to which it goes must not end before it is over.
    let ends = format!("mov.b16 %h1, 3;\n{init}\n@!%p2 bra copied;\n@%p1 {copy}\ncopied:\n@!%p1 exit;\n{wait}");
    insta::assert_snapshot!(race(&ends), @r"
    race in shared memory: block 1 of the cluster ends, and nothing orders that behind another block's bulk copy in its shared memory
        k.cu:11 by block 1, thread 0
        k.cu:7 by block 0, thread 0
        missing: a wait of the block for the phase of the copy's mbarrier between k.cu:7 and k.cu:11
    ");
    let beyond = all.replace("%h1, 3;", "%h1, 4;");
    insta::assert_snapshot!(fault(&beyond, 32), @r"
    block 2 of the cluster, which has 2 blocks, from 0 on
        k.cu:7 by block 0, thread 0
    ");
}

#[test]
fn no_access_beyond_a_blocks_own_part() {
    for at in ["[room+520]", "[%own+1024]", "[%other+520]", "[%other+1024]"] {
        let found = fault(&format!("{SYNC}\nst.shared::cluster.u32 {at}, %r1;"), 32);
        assert_eq!(found.kind, FaultKind::OutOfBounds, "{at}: {found}");
    }
    let found = fault("mapa.shared::cluster.u32 %r4, %own, 2;", 32);
    insta::assert_snapshot!(found, @r"
    block 2 of the cluster, which has 2 blocks, from 0 on
        k.cu:1 by block 0, thread 0
    ");
}

/// A kernel that has no shared memory has none in any block.
#[test]
fn no_shared_memory() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .align 64 .b8 map[128])\n.reqnctapercluster 2\n{\n.reg .b32 %r<2>;\n\
                .reg .b64 %rd<2>;\nmov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;\nmov.u32 %r1, 0;\nWHAT\nret;\n}\n";
    let tile = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {0}], [%r1];";
    for what in ["st.shared.u32 [%r1], 1;", "mbarrier.arrive.shared.b64 _, [%r1];", tile] {
        let module = Arc::new(Module::parse(&text.replace("WHAT", what)).unwrap());
        let mut launch = Launch::new(2, 32);
        launch.parameters = vec![0; 128];
        launch.cluster = Some([2, 1, 1]);
        let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
        assert!(matches!(block.run(&mut FlatMemory::new()), Stop::Fault(_)), "{what}");
    }
}

#[test]
fn launches_that_form_no_clusters() {
    let module = Module::parse(&kernel("")).unwrap();
    let refused = |blocks, threads, cluster| {
        let mut launch = Launch::new(blocks, threads).parameter(&[0; 8]);
        launch.cluster = cluster;
        Block::check(&module, "k", &launch).unwrap_err().to_string()
    };
    let two = Some([2, 1, 1]);
    let all = [refused(3, 32, two), refused(2, 32, None), refused(4, 32, Some([4, 1, 1]))];
    insta::assert_snapshot!(all.join("\n"), @r"
    k: a grid of 3 x 1 x 1 blocks in clusters of 2 x 1 x 1: in each dimension, it has a multiple of a cluster's blocks
    k: no clusters; it was compiled for clusters of 2 x 1 x 1 blocks
    k: clusters of 4 x 1 x 1 blocks; it was compiled for clusters of 2 x 1 x 1 blocks
    ");
    let large = Module::parse(&kernel("").replace("2, 1, 1", "4, 2, 2")).unwrap();
    let mut launch = Launch::new(16, 32).parameter(&[0; 8]);
    launch.cluster = large.kernels()[0].cluster;
    insta::assert_snapshot!(Block::check(&large, "k", &launch).unwrap_err(), @"k: clusters of 4 x 2 x 2 blocks; at least 1 and at most 8 in all");
}
