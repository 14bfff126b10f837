//! A block and its world: where threads stop, what the world is told, how they go on.

use std::sync::Arc;

use onesided_ptx::{
    Access, AccessKind, AtomicOp, Block, FaultKind, FlatMemory, Group, Launch, Module, Order, Place, Refusal, Scope,
    Stop, World, Written,
};

/// Stops before strong accesses, notes everything, and refuses what the test says.
#[derive(Default)]
struct Noting {
    memory: FlatMemory,
    noted: Vec<String>,
    /// So many loads are put off.
    put_off: usize,
    /// Who has accessed shared memory strongly.
    accessed: Vec<u32>,
    out: u64,
}

impl World for Noting {
    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        if self.put_off > 0 {
            self.put_off -= 1;
            return Err(Refusal::Wait);
        }
        self.noted.push(format!("{:?} {:?} {} {}", access.kind, access.order, access.scope, access.bytes));
        self.memory.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        if value == 666 {
            return Err(Refusal::fault("this number is not allowed"));
        }
        self.noted.push(format!("{:?} {:?} {} {}", access.kind, access.order, access.scope, access.bytes));
        self.memory.store(access, value)
    }

    fn copies(&mut self, access: &Access) -> Result<Vec<u64>, Refusal> {
        Ok(vec![access.address])
    }

    fn accessed_shared(&mut self, access: &Access, _: Option<&Written>) {
        self.accessed.push(access.thread);
    }

    fn fence(&mut self, thread: u32, scope: Scope, sequential: bool, _: Place) {
        self.noted.push(format!("fence {scope} {sequential} {thread}"));
    }
}

fn block(body: &str, threads: u32, world: &mut Noting) -> Block {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) nvshmem_int_test(.param .b64 a, .param .b32 b, .param .b32 c);\n\
         .visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n"
    );
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}")));
    let out = world.memory.allocate(&[0; 64]);
    world.out = out;
    let launch = Launch::new(1, threads).parameter(&out.to_le_bytes());
    Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap()
}

#[test]
fn a_thread_stops_before_each_strong_access() {
    let mut world = Noting::default();
    let body = "st.global.u32 [%rd1], 5;\nst.release.gpu.global.u32 [%rd1+4], 6;\nld.volatile.global.u32 %r2, [%rd1];\nmembar.sys;\n\
                atom.acq_rel.sys.global.add.u32 %r3, [%rd1], 1;\nst.global.u32 [%rd1+8], %r3;";
    let mut block = block(body, 1, &mut world);
    let mut stops = Vec::new();
    let last = loop {
        match block.run(&mut world) {
            Stop::Access(access) => {
                stops.push((access.kind, access.order, access.scope, world.noted.len()));
                block.go_on(0);
            }
            other => break other,
        }
    };
    assert_eq!(last, Stop::Finished);
    // Each comes before the access itself is noted.
    assert_eq!(
        stops,
        [
            (AccessKind::Store, Order::Release, Scope::Gpu, 1),
            (AccessKind::Load, Order::Volatile, Scope::Sys, 2),
            (AccessKind::Atomic(AtomicOp::Add), Order::AcquireRelease, Scope::Sys, 4),
        ]
    );
    insta::assert_snapshot!(world.noted.join("\n"));
    assert_eq!(block.run(&mut world), Stop::Finished);
}

#[test]
fn threads_that_have_stopped_go_on_in_any_order() {
    let body = ".shared .align 4 .b8 ticket[4];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [ticket], 0;\nbar.sync 0;\n\
                atom.shared.add.u32 %r2, [ticket], 1;\nmad.wide.u32 %rd1, %r1, 4, %rd1;\nst.global.u32 [%rd1], %r2;";
    let mut world = Noting::default();
    let mut block = block(body, 3, &mut world);
    let mut stopped = [0; 3].map(|_| match block.run(&mut world) {
        Stop::Access(access) if access.is_shared() => access.thread,
        other => panic!("{other:?}"),
    });
    stopped.sort_unstable();
    assert_eq!(stopped, [0, 1, 2]);
    assert_eq!(block.run(&mut world), Stop::Idle);
    assert_eq!(block.idle().stopped.len(), 3);
    for thread in [2, 0] {
        block.go_on(thread);
        assert_eq!(block.run(&mut world), Stop::Idle);
    }
    block.go_on(1);
    assert_eq!(block.run(&mut world), Stop::Finished);
    assert_eq!(world.accessed, [2, 0, 1]);
    let tickets: Vec<u8> = world.memory.bytes(world.out)[..12].iter().copied().step_by(4).collect();
    assert_eq!(tickets, [1, 2, 0]);
}

#[test]
fn an_access_that_is_put_off_is_asked_for_again() {
    let mut world = Noting { put_off: 3, ..Noting::default() };
    let mut block =
        block("ld.global.u32 %r2, [%rd1];\nadd.s32 %r2, %r2, 9;\nst.global.u32 [%rd1], %r2;", 1, &mut world);
    for _ in 0..3 {
        assert!(matches!(block.run(&mut world), Stop::Access(access) if access.kind == AccessKind::Load));
        assert_eq!(block.run(&mut world), Stop::Idle, "it waits to be let go on");
        block.go_on(0);
    }
    assert_eq!(block.run(&mut world), Stop::Finished);
    assert_eq!(world.noted, ["Load Weak sys 4", "Store Weak sys 4"]);
}

#[test]
fn a_refused_access_is_a_fault_and_stays_one() {
    let mut world = Noting::default();
    let mut block = block("st.global.u32 [%rd1], 666;", 1, &mut world);
    let first = block.run(&mut world);
    assert!(
        matches!(&first, Stop::Fault(fault) if fault.kind == FaultKind::Memory && fault.message == "this number is not allowed")
    );
    assert_eq!(block.run(&mut world), first);
}

#[test]
fn a_block_can_be_copied_and_goes_on_twice() {
    let mut world = Noting::default();
    let mut first = block(
        "st.relaxed.sys.global.u32 [%rd1], %r1;\nadd.s32 %r2, %r1, 100;\nst.global.u32 [%rd1+4], %r2;",
        2,
        &mut world,
    );
    assert!(matches!(first.run(&mut world), Stop::Access(_)));
    let mut second = first.clone();
    let mut goes_on_twice = |block: &mut Block| {
        block.go_on(0);
        assert!(matches!(block.run(&mut world), Stop::Access(access) if access.thread == 1));
        block.go_on(1);
        assert_eq!(block.run(&mut world), Stop::Finished);
        std::mem::take(&mut world.noted)
    };
    assert_eq!(goes_on_twice(&mut first), goes_on_twice(&mut second));
    assert_eq!((first.steps(), first.position()), (second.steps(), [0; 3]));
}

#[test]
fn a_loop_around_a_call_that_only_looks_is_a_spin() {
    let test = "{\n.param .b64 a;\n.param .b32 b;\n.param .b32 c;\n.param .b32 r;\nst.param.b64 [a], %rd1;\nst.param.b32 [b], 0;\nst.param.b32 [c], 1;\n\
                call.uni (r), nvshmem_int_test, (a, b, c);\nld.param.b32 %r2, [r];\n}";
    let body = format!("again:\n{test}\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra again;");
    let mut world = Noting::default();
    let mut looking = block(&body, 1, &mut world);
    let idle = (0..100).find_map(|_| match looking.run(&mut world) {
        Stop::Call(call) => {
            let address = call.argument(0);
            looking.reply(&call, 0, Some(&[(address, 4)]));
            None
        }
        Stop::Idle => Some(looking.idle()),
        other => panic!("{other:?}"),
    });
    assert_eq!(idle.expect("the loop is a spin").parked[0].reads.len(), 1);

    // If the call is taken for one that others can see, the loop is none.
    let mut changing = block(&body, 1, &mut world);
    for _ in 0..100 {
        let Stop::Call(call) = changing.run(&mut world) else { panic!("no call") };
        changing.reply(&call, 0, None);
    }
}

#[test]
fn launches_that_do_not_fit() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u8 b)\n.maxntid 64, 1, 1\n{ ret; }\n.global .u32 g;";
    let module = Arc::new(Module::parse(text).unwrap());
    let good = || Launch::new(2, 64).parameter(&1_u64.to_le_bytes()).parameter(&[1]).globals(vec![4096]);
    let launch = |change: &dyn Fn(&mut Launch)| {
        let mut launch = good();
        change(&mut launch);
        Block::new(&module, "k", &Arc::new(launch), [0; 3])
            .err()
            .map_or("launches".to_owned(), |error| error.to_string())
    };
    let all = [
        launch(&|_| {}),
        launch(&|launch| launch.block = [65, 1, 1]),
        launch(&|launch| launch.block = [0, 1, 1]),
        launch(&|launch| launch.block = [1024, 2, 1]),
        launch(&|launch| launch.grid = [1, 70000, 1]),
        launch(&|launch| launch.parameters.push(1)),
        launch(&|launch| launch.dynamic_shared = 1 << 20),
        launch(&|launch| launch.globals.clear()),
        Block::new(&module, "k", &Arc::new(good()), [2, 0, 0]).unwrap_err().to_string(),
        Block::new(&module, "q", &Arc::new(good()), [0; 3]).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn names_say_who_calls_together() {
    let names = [
        "nvshmem_quiet",
        "nvshmemx_int_put_nbi_warp",
        "nvshmemx_barrier_all_block",
        "_Z24nvshmemx_int32_put_block_nbst",
    ];
    let declarations: String = names.iter().map(|name| format!(".extern .func {name};\n")).collect();
    let module = Module::parse(&format!(".version 9.0\n.target sm_90\n.address_size 64\n{declarations}")).unwrap();
    let groups: Vec<Group> = module.externals().iter().map(|external| external.group).collect();
    assert_eq!(groups, [Group::Thread, Group::Warp, Group::Block, Group::Block]);
}

#[test]
fn who_spins_on_what_another_thread_reads_is_woken_by_that_only() {
    // As Triton polls: one thread reads, and hands the value to the others through shared memory.
    let body = "setp.eq.u32 %p1, %r1, 0;\nloop:\nbar.sync 0;\n@%p1 ld.acquire.sys.global.u32 %r2, [%rd1];\n\
                @%p1 st.shared.u32 [handed], %r2;\nbar.sync 0;\nld.shared.u32 %r3, [handed];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra loop;";
    let mut world = Noting::default();
    let mut block = block(&format!(".shared .align 4 .b8 handed[4];\n{body}"), 64, &mut world);
    let idle = |block: &mut Block, world: &mut Noting| loop {
        match block.run(world) {
            Stop::Access(access) => block.go_on(access.thread as usize),
            Stop::Idle => break block.idle(),
            other => panic!("{other:?}"),
        }
    };
    let parked = idle(&mut block, &mut world).parked;
    assert_eq!(parked.len(), 64);
    let [(address, 4), (handed, 4)] = parked[0].reads[..] else { panic!("{:?}", parked[0]) };
    assert!(onesided_ptx::is_shared(handed));
    let looked = world.noted.len();
    block.wake(address + 4, 8, 0);
    assert_eq!(idle(&mut block, &mut world).parked, parked);
    assert_eq!(world.noted.len(), looked, "nobody has looked again");
    block.wake(address, 4, 0);
    assert_eq!(idle(&mut block, &mut world).parked.len(), 64);
    assert!(world.noted.len() > looked);
}

#[test]
fn a_thread_stops_before_each_element_of_a_reduction_in_bulk() {
    let mut world = Noting::default();
    let body = "{ .shared .align 16 .b8 room[32];\nmov.u32 %r2, room;\nst.shared.v4.u32 [%r2], {1, 2, 3, 4};\nst.shared.v4.u32 [%r2+16], {5, 6, 7, 8};\n\
                fence.proxy.async;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 32; }";
    let mut block = block(body, 1, &mut world);
    let mut stops = Vec::new();
    while let Stop::Access(access) = block.run(&mut world) {
        assert_eq!(
            (access.kind, access.order, access.scope),
            (AccessKind::Atomic(AtomicOp::Add), Order::Relaxed, Scope::Gpu)
        );
        assert!(access.commutes);
        stops.push(access.address - world.out);
        assert!(stops.len() < 20, "{stops:?}");
        block.go_on(0);
    }
    assert_eq!(stops, [0, 4, 8, 12, 16, 20, 24, 28]);
    let words = world.memory.bytes(world.out)[..36].chunks_exact(4).map(|word| word[0]);
    assert_eq!(words.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 0]);
}

/// Other GPUs are to see it, so without a scope it is for the whole system.
#[test]
fn a_multicast_reduction_without_a_scope_is_of_the_system() {
    let mut world = Noting::default();
    let mut block = block("multimem.red.global.add.u32 [%rd1], %r1;", 1, &mut world);
    let Stop::Access(access) = block.run(&mut world) else { panic!("no stop") };
    assert_eq!(
        (access.kind, access.order, access.scope),
        (AccessKind::Atomic(AtomicOp::Add), Order::Relaxed, Scope::Sys)
    );
}
