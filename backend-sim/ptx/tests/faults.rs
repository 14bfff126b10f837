//! What is wrong with a block is said with both lines, and its repaired twin runs.

use std::sync::Arc;

use onesided_ptx::{Access, Block, Fault, FaultKind, FlatMemory, Idle, Launch, Module, Refusal, Stop, World};

/// A kernel `k` with one pointer to 64 words, and this body. The source's lines are those of the body.
fn kernel(body: &str) -> String {
    let lines: String =
        body.lines().enumerate().map(|(line, text)| format!(".loc 1 {} 1\n{text}\n", line + 1)).collect();
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func nvshmemx_barrier_all_block;\n.extern .func nvshmem_fence;\n\
         .extern .func nvshmemx_putmem_warp(.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d);\n\
         .visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.reg .b16 %rs<4>;\n\
         .shared .align 16 .b8 room[256];\n.local .align 16 .b8 stack[16];\n\
         ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n\
         mov.u64 %rd4, room;\nadd.s64 %rd5, %rd4, %rd2;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    )
}

fn run(body: &str, threads: u32) -> Stop {
    ends(body, threads).0
}

/// How a block's turn ends, and the block.
fn ends(body: &str, threads: u32) -> (Stop, Block) {
    let text = kernel(body);
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let out = memory.allocate(&[0; 256]);
    let mut launch = Launch::new(1, threads).parameter(&out.to_le_bytes());
    launch.max_steps = 100_000;
    let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
    (block.run(&mut memory), block)
}

/// What all threads wait for.
fn waits(body: &str, threads: u32) -> Idle {
    let (stop, block) = ends(body, threads);
    assert_eq!(stop, Stop::Idle);
    block.idle()
}

fn fault(body: &str, threads: u32) -> Fault {
    match run(body, threads) {
        Stop::Fault(fault) => *fault,
        other => panic!("no fault: {other:?}"),
    }
}

fn finishes(body: &str, threads: u32) {
    assert_eq!(run(body, threads), Stop::Finished, "{body}");
}

#[test]
fn a_race_between_threads() {
    let race = "st.shared.u32 [%rd5], %r1;\nxor.b32 %r2, %r1, 1;\nmul.wide.u32 %rd6, %r2, 4;\nadd.s64 %rd6, %rd4, %rd6;\nld.shared.u32 %r3, [%rd6];";
    let written = format!("st.shared.u32 [%rd5], 0;\nbar.sync 0;\n{race}");
    let found = fault(&written, 64);
    assert_eq!(found.kind, FaultKind::Race);
    insta::assert_snapshot!(found);
    finishes(&written.replace("xor.b32", "bar.sync 0;\nxor.b32"), 64);
    // Two threads of one warp: a barrier of the warp will do, and so does a shuffle.
    finishes(&written.replace("xor.b32", "bar.warp.sync -1;\nxor.b32"), 64);
    finishes(&written.replace("xor.b32", "shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;\nxor.b32"), 64);
    // Between warps, it will not.
    let between = written.replace("%r1, 1;\nmul", "%r1, 32;\nmul");
    assert_eq!(fault(&between.replace("xor.b32", "bar.warp.sync -1;\nxor.b32"), 64).kind, FaultKind::Race);
    finishes(&between.replace("xor.b32", "bar.sync 0;\nxor.b32"), 64);
    finishes(&between.replace("xor.b32", "bar.sync 3, 64;\nxor.b32"), 64);
}

/// As Triton does where several threads hold the same element.
#[test]
fn threads_that_store_the_same_by_one_instruction_do_not_race() {
    let same = "st.shared.u32 [%rd4], 7;\nbar.sync 0;\nld.shared.u32 %r2, [%rd4];";
    finishes(same, 64);
    assert_eq!(fault(&same.replace(", 7", ", %r1"), 64).kind, FaultKind::Race);
    let two = "setp.lt.u32 %p1, %r1, 32;\n@%p1 st.shared.u32 [%rd4], 7;\n@!%p1 st.shared.u32 [%rd4], 7;";
    assert_eq!(fault(two, 64).kind, FaultKind::Race, "two instructions");
    // One warp waits for the second one only, and stores something else: what the first one stores may come later.
    let later = |meets: &str| {
        format!(
            "setp.lt.u32 %p2, %r1, 64;\n@!%p2 bra last;\nst.shared.u32 [%rd4], 7;\nsetp.lt.u32 %p1, %r1, 32;\n{meets}\nbar.sync 1, 64;\nret;\n\
             last: bar.sync 1, 64;\nst.shared.u32 [%rd4+4], 1;\nsetp.eq.u32 %p1, %r1, 64;\n@%p1 st.shared.u32 [%rd4], 9;"
        )
    };
    let found = fault(&later("@%p1 ret;"), 96);
    assert!(found.kind == FaultKind::Race && found.who.thread == [64, 0, 0], "{found}");
    assert!(found.other.as_ref().is_some_and(|(who, _)| who.thread[0] < 32), "{found}");
    finishes(&later("bar.sync 2, 64;\n@%p1 ret;"), 96);
}

#[test]
fn a_race_of_a_write_with_an_earlier_read() {
    let body = "st.shared.u32 [%rd5], 7;\nbar.sync 0;\nld.shared.u32 %r2, [%rd4];\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 st.shared.u32 [%rd4], 1;";
    let found = fault(body, 32);
    assert_eq!(found.kind, FaultKind::Race);
    insta::assert_snapshot!(found);
    finishes(&body.replace("setp", "bar.sync 0;\nsetp"), 32);
}

/// Three warps read, and two of them meet the one that writes then.
#[test]
fn a_race_with_the_first_of_three_readers() {
    let body = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%rd4], 7;\nbar.sync 0;\nsetp.ge.u32 %p1, %r1, 96;\n@%p1 bra meet;\nld.shared.u32 %r2, [%rd4];\n\
                setp.lt.u32 %p1, %r1, 32;\n@%p1 bra end;\nmeet:\nbar.sync 1, 96;\nsetp.ne.u32 %p1, %r1, 96;\n@%p1 bra end;\n\
                st.shared.u32 [%rd4], 1;\nend:";
    let found = fault(body, 128);
    assert_eq!((found.kind, found.who.thread), (FaultKind::Race, [96, 0, 0]), "{found}");
    let (reader, at) = found.other.expect("two threads race");
    assert!(reader.thread[0] < 32 && at == "k.cu:6", "{reader} {at}");
    finishes(&body.replace("lt.u32 %p1, %r1, 32", "lt.u32 %p1, %r1, 0").replace("1, 96;\nsetp", "1, 128;\nsetp"), 128);
}

#[test]
fn release_and_acquire_order_accesses() {
    // Thread 0 writes and raises a flag, thread 32 waits for the flag and reads.
    let body = |store: &str, load: &str| {
        format!(
            "setp.eq.u32 %p3, %r1, 0;\n@%p3 st.shared.u32 [%rd4+128], 0;\nbar.sync 0;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r1, 32;\n@%p1 bra write;\n@%p2 bra wait;\nret;\n\
             write:\nst.shared.u32 [%rd4], 42;\n{store}\nret;\n\
             wait:\n{load}\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra wait;\nld.shared.u32 %r4, [%rd4];\nst.global.u32 [%rd1], %r4;"
        )
    };
    finishes(&body("st.release.cta.shared.u32 [%rd4+128], 1;", "ld.acquire.cta.shared.u32 %r3, [%rd4+128];"), 64);
    finishes(
        &body("atom.release.cta.shared.exch.b32 %r5, [%rd4+128], 1;", "ld.acquire.cta.shared.u32 %r3, [%rd4+128];"),
        64,
    );
    finishes(
        &body(
            "membar.cta;\nst.volatile.shared.u32 [%rd4+128], 1;",
            "ld.volatile.shared.u32 %r3, [%rd4+128];\nmembar.cta;",
        ),
        64,
    );
    for (store, load) in [
        ("st.volatile.shared.u32 [%rd4+128], 1;", "ld.volatile.shared.u32 %r3, [%rd4+128];\nmembar.cta;"),
        ("membar.cta;\nst.volatile.shared.u32 [%rd4+128], 1;", "ld.volatile.shared.u32 %r3, [%rd4+128];"),
        ("st.relaxed.cta.shared.u32 [%rd4+128], 1;", "ld.acquire.cta.shared.u32 %r3, [%rd4+128];"),
        // What is written after the release is not released.
        (
            "st.release.cta.shared.u32 [%rd4+128], 1;\nst.shared.u32 [%rd4], 43;",
            "ld.acquire.cta.shared.u32 %r3, [%rd4+128];",
        ),
        (
            "membar.cta;\nst.shared.u32 [%rd4], 43;\nst.volatile.shared.u32 [%rd4+128], 1;",
            "ld.acquire.cta.shared.u32 %r3, [%rd4+128];",
        ),
    ] {
        assert_eq!(fault(&body(store, load), 64).kind, FaultKind::Race, "{store} {load}");
    }
}

#[test]
fn memory_that_nobody_wrote() {
    let found = fault("ld.shared.u32 %r2, [%rd5];", 1);
    assert_eq!(found.kind, FaultKind::Uninitialized);
    insta::assert_snapshot!(found);
    finishes("st.shared.u32 [%rd5], 1;\nld.shared.u32 %r2, [%rd5];", 1);
    // Half of a word.
    assert_eq!(fault("st.shared.u16 [%rd5], %rs1;\nld.shared.u32 %r2, [%rd5];", 1).kind, FaultKind::Uninitialized);
    finishes("st.shared.u16 [%rd5], %rs1;\nst.shared.u16 [%rd5+2], %rs1;\nld.shared.u32 %r2, [%rd5];", 1);
}

#[test]
fn accesses_that_are_out_of_bounds_or_misaligned() {
    for (body, kind) in [
        ("st.shared.u32 [%rd4+256], 1;", FaultKind::OutOfBounds),
        ("st.shared.u64 [%rd4+252], %rd1;", FaultKind::Misaligned),
        ("mov.u64 %rd6, stack;\nst.local.u32 [%rd6+16], %r1;", FaultKind::OutOfBounds),
        ("mov.u64 %rd6, stack;\ncvta.local.u64 %rd6, %rd6;\nld.u32 %r2, [%rd6+-4];", FaultKind::OutOfBounds),
        ("ld.global.u32 %r2, [%rd1+2];", FaultKind::Misaligned),
        ("ld.global.v2.u32 {%r2, %r3}, [%rd1+4];", FaultKind::Misaligned),
        ("ld.global.u32 %r2, [%rd1+256];", FaultKind::Memory),
        ("ld.global.u32 %r2, [0];", FaultKind::Memory),
        ("atom.shared.add.u32 %r2, [%rd4+258], 1;", FaultKind::Misaligned),
    ] {
        assert_eq!(fault(body, 1).kind, kind, "{body}");
    }
    insta::assert_snapshot!(fault("add.s32 %r3, %r1, 1;\nst.shared.u32 [%rd4+300], %r3;", 1));
    finishes("mov.u64 %rd6, stack;\nst.local.v4.u32 [%rd6], {%r1, %r1, %r1, %r1};\nld.local.u32 %r2, [%rd6+12];", 32);
    finishes("cvta.shared.u64 %rd6, %rd5;\nst.u32 [%rd6], %r1;\nld.u32 %r2, [%rd6];\nst.global.u32 [%rd3], %r2;", 32);
}

#[test]
fn barriers_that_diverge() {
    // Within a warp.
    let body = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra low;\nbar.sync 0;\nret;\nlow:\nbar.sync 0;";
    let found = fault(body, 32);
    assert_eq!(found.kind, FaultKind::BarrierDivergence);
    insta::assert_snapshot!(found);
    // Different barriers, in different warps.
    let body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra low;\nbar.sync 1;\nret;\nlow:\nbar.sync 2;";
    let found = fault(body, 64);
    assert_eq!(found.kind, FaultKind::BarrierDivergence);
    insta::assert_snapshot!(found);
    // Threads that have ended are counted out.
    finishes("setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 0;", 64);
    assert_eq!(fault("bar.sync 0, 33;", 64).kind, FaultKind::InvalidOperand);
    assert_eq!(fault("bar.sync 16;", 64).kind, FaultKind::InvalidOperand);
    assert_eq!(fault("bar.sync 1, 96;", 64).kind, FaultKind::BarrierDivergence);
    // A number of threads counts warps in full: of the last one only 16 lanes exist, of the others some have ended.
    finishes("bar.sync 1, 64;", 48);
    finishes("and.b32 %r2, %r1, 3;\nsetp.eq.u32 %p1, %r2, 3;\n@%p1 ret;\nbar.sync 1, 64;", 64);
    assert_eq!(fault("bar.sync 1, 96;", 48).kind, FaultKind::BarrierDivergence);
}

#[test]
fn lanes_that_are_missing() {
    let body =
        "setp.eq.u32 %p1, %r1, 3;\n@%p1 bra wait;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nret;\nwait:\nbar.sync 0;";
    let found = fault(body, 32);
    assert_eq!(found.kind, FaultKind::MissingLanes);
    insta::assert_snapshot!(found);
    // A lane that does not exist, or has ended, gives no value.
    let down = "shfl.sync.down.b32 %r2, %r1, 8, 31, -1;";
    assert_eq!(fault(down, 16).kind, FaultKind::MissingLanes);
    finishes(down, 32);
    // A lane that is not in its own mask.
    assert_eq!(fault("vote.sync.any.pred %p1, %p2, 1;", 2).kind, FaultKind::MissingLanes);
    finishes("vote.sync.any.pred %p1, %p2, 3;", 2);
}

#[test]
fn traps_and_loops() {
    insta::assert_snapshot!(fault("setp.eq.u32 %p1, %r1, 2;\n@%p1 trap;", 4));
    let found = fault("add.s32 %r2, %r1, 1;\nloop:\nmov.u32 %r3, 4;\nbra loop;", 1);
    assert_eq!(found.kind, FaultKind::EndlessLoop);
    insta::assert_snapshot!(found);
    let found = fault("loop: mov.u32 %r3, 4; bra loop;", 1);
    assert_eq!((&found.message[..], found.other), ("a loop that nothing can end, because it reads no memory", None));
    let found = fault("loop:\nadd.s32 %r3, %r3, 1;\nst.global.u32 [%rd1], %r3;\nbra loop;", 1);
    assert_eq!(found.kind, FaultKind::StepLimit);
    insta::assert_snapshot!(found);
}

/// A world that ends every block which asks.
struct Over(FlatMemory);

impl World for Over {
    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        self.0.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        self.0.store(access, value)
    }

    fn goes_on(&mut self) -> bool {
        false
    }
}

/// A world that counts how often it is asked whether a block goes on.
struct Asked(FlatMemory, u32);

impl World for Asked {
    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        self.0.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        self.0.store(access, value)
    }

    fn stops(&mut self, _: &Access) -> bool {
        false
    }

    fn goes_on(&mut self) -> bool {
        self.1 += 1;
        true
    }
}

/// A loop of strong accesses meets the limit where it should, and asks the world often: strong accesses take longer than other instructions.
#[test]
fn strong_accesses_without_end() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{\n.reg .b64 %rd<2>;\n\
                .reg .b32 %r<2>;\nld.param.u64 %rd1, [k_param_0];\n$L:\nld.volatile.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\n\
                st.volatile.global.u32 [%rd1], %r1;\nbra.uni $L;\n}\n";
    let module = Arc::new(Module::parse(text).unwrap());
    let mut memory = FlatMemory::new();
    let word = memory.allocate(&[0; 4]);
    let mut launch = Launch::new(1, 1);
    (launch.max_steps, launch.parameters) = (1_000_000, word.to_le_bytes().to_vec());
    let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
    let mut world = Asked(memory, 0);
    let stop = block.run(&mut world);
    assert!(matches!(stop, Stop::Fault(fault) if fault.kind == FaultKind::StepLimit));
    assert!((1_000_000..1_000_010).contains(&block.steps()), "{}", block.steps());
    assert!((10..100).contains(&world.1), "{}", world.1);
}

/// A tree of calls, 30 deep and without a loop, meets the limit too, and can be ended from outside.
#[test]
fn calls_without_end() {
    let call = "{\n.param .b32 p;\nst.param.b32 [p], %r2;\ncall.uni down, (p);\n}";
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.func down(.param .b32 n)\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n\
         ld.param.u32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\nsub.u32 %r2, %r1, 1;\n{call}\n{call}\nret;\n}}\n\
         .visible .entry k()\n{{\n.reg .b32 %r<4>;\nmov.u32 %r2, DEPTH;\n{call}\nret;\n}}\n"
    );
    let block = |depth: &str| {
        let module = Arc::new(Module::parse(&text.replace("DEPTH", depth)).unwrap());
        let mut launch = Launch::new(1, 33);
        launch.max_steps = 100_000;
        Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap()
    };
    assert_eq!(block("3").run(&mut FlatMemory::new()), Stop::Finished);
    let stop = block("30").run(&mut FlatMemory::new());
    assert!(matches!(stop, Stop::Fault(fault) if fault.kind == FaultKind::StepLimit));
    let stop = block("30").run(&mut Over(FlatMemory::new()));
    assert!(matches!(stop, Stop::Fault(fault) if fault.kind == FaultKind::Stopped));
}

#[test]
fn calls_of_a_group() {
    let call = "{\n.param .b64 p0;\n.param .b64 p1;\n.param .b64 p2;\n.param .b32 p3;\nst.param.b64 [p0], %rd1;\nst.param.b64 [p1], %rd1;\nst.param.b64 [p2], 8;\nst.param.b32 [p3], %r2;\n\
                call.uni nvshmemx_putmem_warp, (p0, p1, p2, p3);\n}";
    // Equal arguments: a call by each warp.
    assert!(matches!(run(&format!("mov.u32 %r2, 1;\n{call}"), 64), Stop::Call(call) if call.threads.len() == 32));
    let found = fault(&format!("setp.eq.u32 %p1, %r1, 9;\nselp.b32 %r2, 1, 0, %p1;\n{call}"), 32);
    assert_eq!(found.kind, FaultKind::GroupCall);
    insta::assert_snapshot!(found);
    let found = fault(&format!("setp.eq.u32 %p1, %r1, 9;\n@%p1 ret;\nmov.u32 %r2, 1;\n{call}"), 32);
    assert_eq!(found.kind, FaultKind::GroupCall);
    insta::assert_snapshot!(found);
    let found = fault(
        "setp.eq.u32 %p1, %r1, 9;\n@%p1 bra other;\ncall.uni nvshmemx_barrier_all_block;\nret;\nother:\nbar.sync 0;",
        32,
    );
    assert_eq!(found.kind, FaultKind::GroupCall);
    insta::assert_snapshot!(found);
}

#[test]
fn spins_of_a_warp_together() {
    // Lane 0 looks at the flag, a vote tells the others.
    let body = "loop:\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra vote;\nld.volatile.global.u32 %r2, [%rd1];\nvote:\nsetp.ne.u32 %p2, %r2, 0;\n\
                vote.sync.any.pred %p3, %p2, -1;\n@!%p3 bra loop;";
    let idle = waits(body, 32);
    assert_eq!(idle.parked.len() + idle.inside.len(), 32);
    assert!(idle.parked.iter().all(|waiting| !waiting.any && waiting.reads.is_empty() != (waiting.who.thread[0] == 0)));
    // One thread polls, the others wait at the barrier.
    let body = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra meet;\nloop:\nld.acquire.sys.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra loop;\nmeet:\nbar.sync 0;";
    let idle = waits(body, 64);
    assert_eq!((idle.parked.len(), idle.inside.len()), (1, 63));
    // An atomic that takes a lock which is never given back.
    let body = "loop:\natom.global.cas.b32 %r2, [%rd1], 1, 2;\nsetp.ne.u32 %p2, %r2, 1;\n@%p2 bra loop;";
    let idle = waits(body, 2);
    assert_eq!(idle.parked.len(), 2);
    // Barriers within a loop whose rounds are counted by one thread only: nobody waits for ever.
    let body = "mov.u32 %r3, 0;\nloop:\nsetp.eq.u32 %p1, %r1, 0;\n@!%p1 bra meet;\nadd.s32 %r3, %r3, 1;\nmeet:\nsetp.gt.u32 %p2, %r3, 100;\n\
                bar.red.or.pred %p3, 0, %p2;\n@!%p3 bra loop;";
    finishes(body, 64);
}

/// The states of a thread are the same in each call, and those of its caller are not.
#[test]
fn a_function_that_is_called_again_and_again_is_no_spin() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.func (.param .b32 r) count(.param .b64 at) {\n.reg .pred %p<2>;\n\
                .reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [at];\nmov.u32 %r1, 0;\nL:\nld.volatile.global.u32 %r2, [%rd1];\n\
                add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 4;\n@%p1 bra L;\nst.param.b32 [r], %r1;\nret;\n}\n\
                .visible .entry k(.param .u64 out) {\n.reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\n\
                mov.u32 %r3, 0;\nmov.u32 %r5, 0;\nM:\n{ .param .b64 a; .param .b32 b;\nst.param.b64 [a], %rd1;\ncall.uni (b), count, (a);\n\
                ld.param.b32 %r4, [b]; }\nadd.s32 %r5, %r5, %r4;\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, 100;\n@%p1 bra M;\n\
                st.global.u32 [%rd1+4], %r5;\nret;\n}\n";
    let module = Arc::new(Module::parse(text).unwrap());
    let mut memory = FlatMemory::new();
    let out = memory.allocate(&[0; 8]);
    for threads in [1, 32] {
        let launch = Launch::new(1, threads).parameter(&out.to_le_bytes());
        let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
        assert_eq!(block.run(&mut memory), Stop::Finished);
        assert_eq!(memory.bytes(out)[4..8], 400_u32.to_le_bytes());
    }
}

/// Two groups of lanes wait, and the lane that ends belongs to the second.
#[test]
fn a_lane_that_ends_lets_each_group_of_its_warp_go_on() {
    finishes(
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra low;\nsetp.ne.u32 %p2, %r1, 31;\n@%p2 bra high;\nmov.u32 %r4, 0;\nwaste:\nadd.u32 %r4, %r4, 1;\n\
         setp.lt.u32 %p3, %r4, 50;\n@%p3 bra waste;\nret;\nhigh:\nbar.warp.sync 0xffff0000;\nbra.uni end;\nlow:\nsetp.ne.u32 %p2, %r1, 15;\n\
         @%p2 bra go;\nmov.u32 %r4, 0;\nmore:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, 5000;\n@%p3 bra more;\ngo:\nbar.warp.sync 0xffff;\nend:\n\
         bar.sync 0;",
        32,
    );
}

/// All that expect arrivals drop out: the phase is over, and the mbarrier stays one.
#[test]
fn an_mbarrier_that_all_have_left_is_one_still() {
    finishes(
        "mbarrier.init.shared.b64 [room], 1;\nmbarrier.arrive_drop.shared.b64 %rd6, [room];\n\
         mbarrier.test_wait.shared.b64 %p1, [room], %rd6;\n@!%p1 trap;",
        1,
    );
    let left = "mbarrier.init.shared.b64 [room], 1;\nmbarrier.inval.shared.b64 [room];\nmbarrier.arrive.shared.b64 %rd6, [room];";
    assert_eq!(fault(left, 1).kind, FaultKind::InvalidOperand);
}

/// An mbarrier counts so many bytes and no more, at once or one after the other.
#[test]
fn an_mbarrier_expects_fewer_than_2_to_20_bytes() {
    let init = "mbarrier.init.shared.b64 [room], 2;";
    for expects in
        ["mbarrier.arrive.expect_tx.shared.b64 %rd6, [room], ", "mbarrier.expect_tx.relaxed.cta.shared.b64 [room], "]
    {
        finishes(&format!("{init}\n{expects}1048575;"), 1);
        let found = fault(&format!("{init}\n{expects}1048576;"), 1);
        assert_eq!(found.kind, FaultKind::InvalidOperand);
        assert!(found.message.contains("an mbarrier that expects 1048576 bytes; at most 1048575"), "{found}");
        let found = fault(&format!("{init}\n{expects}1048575;\n{expects}1;"), 1);
        assert_eq!(found.kind, FaultKind::InvalidOperand, "{found}");
    }
}

/// A copy of a thread's own: its fourth operand is a size, or with a hint a policy.
#[test]
fn a_policy_of_a_cache_is_no_size() {
    let all = |copy: &str| {
        format!(
            "createpolicy.fractional.L2::evict_first.b64 %rd6, 1.0;\nmov.u32 %r2, 7;\nst.global.v4.u32 [%rd1], {{%r2, %r2, %r2, %r2}};\n\
             mov.u32 %r3, 0;\n{copy}\ncp.async.wait_all;\nld.shared.u32 %r4, [room];\n"
        )
    };
    let whole = "setp.ne.u32 %p1, %r4, 7;\n@%p1 trap;";
    for copy in [
        "cp.async.cg.shared.global.L2::cache_hint [room], [%rd1], 16, %rd6;",
        "cp.async.ca.shared.global [room], [%rd1], 4;",
    ] {
        finishes(&format!("{}{whole}", all(copy)), 1);
    }
    let none = "setp.ne.u32 %p1, %r4, 0;\n@%p1 trap;";
    for copy in [
        "cp.async.cg.shared.global [room], [%rd1], 16, %r3;",
        "cp.async.cg.shared.global.L2::cache_hint [room], [%rd1], 16, %r3, %rd6;",
    ] {
        finishes(&format!("{}{none}", all(copy)), 1);
    }
    assert_eq!(fault("cp.async.cg.shared.global [room], [%rd1+4], 16;", 1).kind, FaultKind::Misaligned);
    assert_eq!(fault("cp.async.ca.shared.global [room], [%rd1], 12;", 1).kind, FaultKind::InvalidOperand);
    // Or a predicate: if it holds, nothing is read, and zeros are written.
    for (predicate, expected) in [("%p2", whole), ("!%p2", none)] {
        for policy in ["", ", %rd6"] {
            let hint = if policy.is_empty() { "" } else { ".L2::cache_hint" };
            let copy = format!(
                "setp.ne.u32 %p2, %r2, 7;\ncp.async.cg.shared.global{hint} [room], [%rd1], 16, {predicate}{policy};"
            );
            finishes(&format!("{}{expected}", all(&copy)), 1);
        }
    }
}

/// Both results are combined with what the predicate was before.
#[test]
fn a_comparison_may_write_what_it_is_combined_with() {
    for (left, right, first, second) in [(1, 2, 1, 0), (2, 1, 0, 1)] {
        finishes(
            &format!(
                "mov.u32 %r2, {left};\nmov.u32 %r3, {right};\nsetp.eq.u32 %p1, %r2, %r2;\nsetp.lt.and.s32 %p1|%p2, %r2, %r3, %p1;\n\
                 selp.u32 %r4, 1, 0, %p1;\nselp.u32 %r5, 1, 0, %p2;\nsetp.ne.u32 %p3, %r4, {first};\n@%p3 trap;\nsetp.ne.u32 %p3, %r5, {second};\n\
                 @%p3 trap;"
            ),
            1,
        );
    }
}

/// The memory that a launch gives begins at a multiple of what its array asks for.
#[test]
fn the_memory_of_a_launch_is_aligned_as_its_array_asks() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .align 128 .b8 given[];\n.visible .entry k() {\n\
                .reg .pred %p<2>;\n.reg .b64 %rd<4>;\n.shared .align 8 .b8 own[8];\nmov.u64 %rd1, given;\nand.b64 %rd2, %rd1, 127;\n\
                setp.ne.u64 %p1, %rd2, 0;\n@%p1 trap;\nst.shared.u32 [given+252], 1;\nmov.u64 %rd3, own;\nret;\n}\n";
    let module = Arc::new(Module::parse(text).unwrap());
    let mut launch = Launch::new(1, 1);
    launch.dynamic_shared = 256;
    let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
    assert_eq!(block.run(&mut FlatMemory::new()), Stop::Finished);
    let module = Arc::new(Module::parse(&text.replace("@%p1 trap;", "")).unwrap());
    let mut block = Block::new(&module, "k", &Arc::new(Launch::new(1, 1)), [0; 3]).unwrap();
    let Stop::Fault(none) = block.run(&mut FlatMemory::new()) else { panic!("there is no such memory") };
    insta::assert_snapshot!(none.message, @"an access of 4 bytes at 0x104 is beyond shared memory, which has 8 bytes: the launch gives none for what is declared extern (Grid::shared)");
}

/// Time passes for who only looks at a clock.
#[test]
fn a_wait_for_a_time_ends() {
    for (clock, time, threads) in
        [("clock64", 1_000_000, 40), ("globaltimer", 1_000_000, 40), ("clock64", 500_000_000, 1)]
    {
        finishes(
            &format!(
                "mov.u64 %rd6, %{clock};\nL:\nmov.u64 %rd7, %{clock};\nsub.s64 %rd7, %rd7, %rd6;\nsetp.lt.s64 %p1, %rd7, {time};\n@%p1 bra L;"
            ),
            threads,
        );
    }
    let endless = fault("L:\nsetp.eq.u32 %p1, %r1, %r1;\n@%p1 bra L;", 1);
    assert_eq!(endless.kind, FaultKind::EndlessLoop);
}

/// A fence between proxies orders nothing between threads.
#[test]
fn a_fence_of_a_proxy_tells_others_nothing() {
    let hand_over = |fence: &str| {
        format!(
            "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra reads;\nst.shared.u32 [room], 1;\n{fence}\nst.volatile.shared.u32 [room+4], 1;\nbra.uni end;\n\
             reads:\nld.volatile.shared.u32 %r2, [room+4];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra reads;\n{fence}\nld.shared.u32 %r3, [room];\nend:"
        )
    };
    let zeroed = "setp.ne.u32 %p3, %r1, 0;\n@%p3 bra.uni met;\nst.shared.u32 [room+4], 0;\nmet:\nbar.sync 0;\n";
    let zeroed = zeroed.replace("bra.uni met", "bra met");
    finishes(&format!("{zeroed}{}", hand_over("fence.acq_rel.cta;")), 2);
    assert_eq!(fault(&format!("{zeroed}{}", hand_over("fence.proxy.async;")), 2).kind, FaultKind::Race);
}

/// A thread that has read a strong write comes after it, and not after what came before it.
#[test]
fn a_strong_write_that_was_read() {
    let poll = |then: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 0;\nst.shared.u32 [room+128], 0;\nst.shared.u32 [room], 0;\nbar.sync 0;\n@!%p1 bra polls;\nst.shared.u32 [room+128], 5;\n\
             st.volatile.shared.u32 [room], 1;\nbra done;\npolls:\nld.volatile.shared.u32 %r2, [room];\nsetp.ne.u32 %p2, %r2, 1;\n@%p2 bra polls;\n{then}\ndone:"
        )
    };
    finishes(&poll("st.shared.u32 [room], 0;"), 2);
    finishes(&poll("ld.shared.u32 %r3, [room];"), 2);
    assert_eq!(fault(&poll("ld.shared.u32 %r3, [room+128];"), 2).kind, FaultKind::Race);
    // a plain poll has seen nothing
    let plain = poll("st.shared.u32 [room], 0;").replace("ld.volatile", "ld");
    assert_eq!(fault(&plain, 2).kind, FaultKind::Race);
}

/// A strong write does not hide an earlier one: thread 2 knows of the second only.
#[test]
fn strong_writes_in_no_order() {
    let body = |first: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r1, 1;\nst.shared.u32 [room], 0;\nst.shared.u32 [room+64], 0;\nbar.sync 0;\n@%p1 {first}\n\
             @%p2 st.volatile.shared.u32 [room], 2;\n@%p2 st.release.cta.shared.u32 [room+64], 1;\n@%p1 bra done;\n@%p2 bra done;\n\
             polls:\nld.acquire.cta.shared.u32 %r2, [room+64];\nsetp.ne.u32 %p3, %r2, 1;\n@%p3 bra polls;\nst.shared.u32 [room], 3;\ndone:"
        )
    };
    finishes(&body("bra done;"), 3);
    for first in ["st.volatile.shared.u32 [room], 1;", "ld.volatile.shared.u32 %r2, [room];"] {
        let found = fault(&body(first), 3);
        assert_eq!((found.kind, found.who.thread[0]), (FaultKind::Race, 2), "{found}");
        assert_eq!(found.other.unwrap().0.thread[0], 0);
    }
}

/// What is relaxed at an mbarrier orders nothing else.
#[test]
fn relaxed_operations_on_mbarriers() {
    let body = |arrive: &str, wait: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 0;\nst.shared.u32 [room], 0;\n@%p1 mbarrier.init.shared.b64 [room+64], 1;\nbar.sync 0;\n@!%p1 bra waits;\n\
             st.shared.u32 [room], 5;\n{arrive}\nbra done;\nwaits:\nmbarrier.try_wait.parity{wait}.shared::cta.b64 %p2, [room+64], 0;\n@!%p2 bra waits;\nld.shared.u32 %r3, [room];\ndone:"
        )
    };
    let release = "mbarrier.arrive.release.cta.shared::cta.b64 _, [room+64];";
    let relaxed = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [room+64];";
    finishes(&body(release, ".acquire.cta"), 2);
    finishes(&body(&format!("fence.acq_rel.cta;\n{relaxed}"), ".acquire.cta"), 2);
    for (arrive, wait) in [(relaxed, ".acquire.cta"), (release, ".relaxed.cta")] {
        assert_eq!(fault(&body(arrive, wait), 2).kind, FaultKind::Race, "{arrive} {wait}");
    }
    let fenced = body(release, ".relaxed.cta").replace("ld.shared.u32 %r3", "fence.acq_rel.cta;\nld.shared.u32 %r3");
    finishes(&fenced, 2);
    let none = fault(&body("mbarrier.arrive.shared::cta.b64 _, [room+64], 0;", ""), 2);
    assert_eq!(none.kind, FaultKind::InvalidOperand);
}

#[test]
fn a_barrier_with_the_number_of_all_threads_is_one_without() {
    let body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra first;\nbar.sync 1, 64;\nbra done;\nfirst:\nbar.sync 1;\ndone:";
    finishes(body, 64);
    assert_eq!(fault(body, 96).kind, FaultKind::BarrierDivergence);
}
