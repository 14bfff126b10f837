//! What PTX calls undefined, and alignments of its own.

use std::sync::Arc;

use onesided_ptx::{
    Access, AccessKind, Block, Fault, FaultKind, FlatMemory, Launch, Module, Order, Refusal, Stop, World,
};

/// A kernel of one warp with a pointer to 256 bytes, at a multiple of 256, in `%rd1`. `room` begins at a multiple of 128. The source's lines are those of the body.
fn module(body: &str) -> Arc<Module> {
    let lines: String =
        body.lines().enumerate().map(|(line, text)| format!(".loc 1 {} 1\n{text}\n", line + 1)).collect();
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 words)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n\
         .reg .b64 %rd<9>;\n.shared .align 128 .b8 room[1024];\nld.param.u64 %rd1, [words];\nmov.u32 %r1, %tid.x;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    );
    Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Global memory, and the accesses to it other than loads.
#[derive(Default)]
struct Noting(FlatMemory, Vec<Access>);

impl World for Noting {
    fn stops(&mut self, _: &Access) -> bool {
        false
    }

    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        self.0.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        self.1.push(*access);
        self.0.store(access, value)
    }
}

/// How a block of so many threads ends, and global memory then.
fn ends(body: &str, threads: u32) -> (Stop, Noting, u64) {
    let mut world = Noting::default();
    let words = world.0.allocate(&[7; 256]);
    let launch = Arc::new(Launch::new(1, threads).parameter(&words.to_le_bytes()));
    let stop = Block::new(&module(body), "k", &launch, [0; 3]).unwrap().run(&mut world);
    (stop, world, words)
}

fn fault(body: &str, threads: u32) -> Fault {
    match ends(body, threads).0 {
        Stop::Fault(fault) => *fault,
        other => panic!("no fault: {other:?}\n{body}"),
    }
}

fn finishes(body: &str, threads: u32) {
    assert_eq!(ends(body, threads).0, Stop::Finished, "{body}");
}

/// It is a weak write of 128 bytes, of no value in particular.
#[test]
fn what_is_discarded_is_lost() {
    for discard in ["discard.global.L2 [%rd1+128], 128;", "discard.L2 [%rd1+128], 128;"] {
        let (stop, world, words) = ends(discard, 1);
        assert_eq!(stop, Stop::Finished);
        let (kept, lost) = world.0.bytes(words).split_at(128);
        assert!(kept.iter().all(|byte| *byte == 7) && lost.iter().all(|byte| *byte != 7), "{lost:?}");
        let weak = |access: &Access| (access.kind, access.order, access.bytes) == (AccessKind::Store, Order::Weak, 8);
        assert!(world.1.iter().all(weak));
        let written: Vec<u64> = world.1.iter().map(|access| access.address).collect();
        assert_eq!(written, (words + 128..words + 256).step_by(8).collect::<Vec<_>>());
    }
    insta::assert_snapshot!(fault("discard.global.L2 [%rd1+64], 128;", 1).message, @"address 0x1140 is no multiple of 128, the size of what is accessed");
    insta::assert_snapshot!(fault("discard.global.L2 [%rd1+256], 128;", 1).message, @"an access of 8 bytes at 0x1200 is in no allocation");
    assert_eq!(fault("cvta.shared.u64 %rd2, room;\ndiscard.L2 [%rd2], 128;", 1).kind, FaultKind::Memory);
    // Hints write nothing.
    let hints = "prefetch.global.L2 [%rd1];\napplypriority.global.L2::evict_normal [%rd1], 128;\nprefetchu.L1 [%rd1];";
    assert!(ends(hints, 1).1.1.is_empty());
}

#[test]
fn an_mbarrier_in_place_of_another_one() {
    let init = "mbarrier.init.shared.b64 [room], 2;";
    let again = |between: &str| format!("{init}\n{between}\n{init}\nmbarrier.arrive.shared.b64 %rd2, [room];");
    insta::assert_snapshot!(fault(&again(""), 1), @r"
    an mbarrier is initialized where another one is in use, which mbarrier.inval must end before
        k.cu:3 by block 0, thread 0
        k.cu:1 by block 0, thread 0
    ");
    assert_eq!(fault(&again("mbarrier.arrive.shared.b64 %rd2, [room], 2;"), 1).kind, FaultKind::InvalidOperand);
    finishes(&again("mbarrier.inval.shared.b64 [room];"), 1);
    // It is gone where something else was stored, and others are elsewhere.
    finishes(&again("st.shared.u64 [room], 0;"), 1);
    finishes(&again("").replacen("[room]", "[room+8]", 1), 1);
    // By another thread.
    let two = format!("setp.eq.u32 %p1, %r1, 0;\n@%p1 {init}\nbar.sync 0;\n@!%p1 {init}");
    let found = fault(&two, 2);
    assert_eq!(
        (found.who.thread[0], found.other.map(|(who, at)| (who.thread[0], at))),
        (1, Some((0, "k.cu:2".into())))
    );
}

#[test]
fn an_arrival_that_does_not_complete_the_phase() {
    let arrives = |opcode: &str, times: u32| {
        format!(
            "mbarrier.init.shared.b64 [room], 3;\nmbarrier.{opcode}.noComplete.shared.b64 %rd2, [room], {times};\n\
             mbarrier.arrive.shared.b64 %rd3, [room];\nmbarrier.test_wait.shared.b64 %p1, [room], %rd3;\n@!%p1 trap;"
        )
    };
    for opcode in ["arrive", "arrive_drop"] {
        finishes(&arrives(opcode, 2), 1);
        let found = fault(&arrives(opcode, 3), 1);
        assert_eq!(found.kind, FaultKind::InvalidOperand, "{found}");
    }
    insta::assert_snapshot!(fault(&arrives("arrive", 3), 1), @r"
    an arrival with .noComplete completes the mbarrier's phase
        k.cu:2 by block 0, thread 0
    ");
    // With bytes to come, the phase goes on.
    finishes(
        "mbarrier.init.shared.b64 [room], 4;\nmbarrier.arrive.expect_tx.shared.b64 %rd2, [room], 8;\n\
         mbarrier.arrive.noComplete.shared.b64 %rd2, [room], 3;\nmbarrier.test_wait.shared.b64 %p1, [room], %rd2;\n@%p1 trap;",
        1,
    );
}

/// The reason is the rule of the instruction, and not the size of one lane's part.
#[test]
fn rules_of_alignment() {
    let filled = |body: &str| {
        format!(
            "mad.lo.u32 %r8, %r1, 16, room;\nst.shared.v4.b32 [%r8], {{0, 0, 0, 0}};\nst.shared.v4.b32 [%r8+512], {{0, 0, 0, 0}};\nbar.sync 0;\n{body}"
        )
    };
    let message = |body: &str| {
        let found = fault(&filled(body), 32);
        assert_eq!(found.kind, FaultKind::Misaligned, "{found}");
        found.message
    };
    let held = "{%r2, %r3, %r4, %r5}";
    let load = format!("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {held}, [room+8];");
    insta::assert_snapshot!(message(&load), @"address 0x8 is no multiple of 16: a matrix of wmma begins at a multiple of 32 bytes, and its stride is a multiple of 16");
    let stride = format!("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {held}, [room], 20;");
    insta::assert_snapshot!(message(&stride), @"address 0x28 is no multiple of 16: a matrix of wmma begins at a multiple of 32 bytes, and its stride is a multiple of 16");
    let store = format!("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1+4], {held};");
    insta::assert_snapshot!(message(&store), @"address 0x1104 is no multiple of 16: a matrix of wmma begins at a multiple of 32 bytes, and its stride is a multiple of 16");
    let columns = format!("wmma.store.d.sync.aligned.col.m16n16k16.global.f16 [%rd1+1], {held};");
    insta::assert_snapshot!(message(&columns), @"address 0x1101 is no multiple of 2: a matrix of wmma begins at a multiple of 32 bytes, and its stride is a multiple of 16");
    let copy = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned";
    insta::assert_snapshot!(message(&format!("{copy} [%rd1+32], [room], 128;")), @"address 0x1120 is no multiple of 64: a tensor map lies at a multiple of 64 bytes");
    insta::assert_snapshot!(message(&format!("{copy} [%rd1], [room+4], 128;")), @"address 0x4 is no multiple of 8: a tensor map lies at a multiple of 64 bytes");
    // Of a vector, it is the size.
    insta::assert_snapshot!(message("ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [room+8];"), @"address 0x8 is no multiple of 16, the size of what is accessed");
}
