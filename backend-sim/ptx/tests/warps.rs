//! Threads of a warp that run together do what they would do one after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use onesided_ptx::{Access, AccessKind, Block, FlatMemory, Launch, Module, Refusal, Stop, World};

/// Notes who accesses what. It stops before, or puts off once, what the test says.
struct Watching {
    memory: FlatMemory,
    out: u64,
    accesses: Vec<(u32, AccessKind, u64)>,
    stops: fn(&Access) -> bool,
    put_off: Option<u32>,
    queries: usize,
}

impl World for Watching {
    fn stops(&mut self, access: &Access) -> bool {
        (self.stops)(access)
    }

    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        if !matches!(access.kind, AccessKind::Atomic(_)) {
            self.accesses.push((access.thread, access.kind, access.address.wrapping_sub(self.out)));
        }
        self.memory.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        if self.put_off == Some(access.thread) {
            self.put_off = None;
            return Err(Refusal::Wait);
        }
        self.accesses.push((access.thread, access.kind, access.address.wrapping_sub(self.out)));
        self.memory.store(access, value)
    }

    fn query(&mut self, external: usize) -> Option<u64> {
        assert_eq!(external, 0);
        self.queries += 1;
        Some(3)
    }
}

/// Accesses of all threads together, loops of lengths that differ, branches by parity, a function that calls itself, a query, a ticket.
const KERNEL: &str = "
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) nvshmem_n_pes();
.func (.param .b32 r) sum(.param .b32 n) {
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra end;
    sub.u32 %r3, %r1, 1;
    {
        .param .b32 a;
        .param .b32 b;
        st.param.b32 [a], %r3;
        call.uni (b), sum, (a);
        ld.param.b32 %r4, [b];
    }
    add.u32 %r2, %r4, %r1;
end:
    st.param.b32 [r], %r2;
    ret;
}
.visible .entry k(.param .u64 out) {
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2+512], %r1;
    ld.global.u32 %r9, [%rd2+512];
    sub.u32 %r2, %r9, %r1;
    mov.u32 %r3, 0;
more:
    add.u32 %r2, %r2, 5;
    add.u32 %r3, %r3, 1;
    setp.le.u32 %p1, %r3, %r1;
    @%p1 bra more;
    and.b32 %r4, %r1, 1;
    setp.eq.u32 %p2, %r4, 0;
    @%p2 bra even;
    {
        .param .b32 a;
        .param .b32 b;
        st.param.b32 [a], %r1;
        call.uni (b), sum, (a);
        ld.param.b32 %r5, [b];
    }
    add.u32 %r2, %r2, %r5;
even:
    {
        .param .b32 n;
        call.uni (n), nvshmem_n_pes, ();
        ld.param.b32 %r6, [n];
    }
    mad.lo.u32 %r2, %r6, 1000, %r2;
    st.global.u32 [%rd2], %r2;
    bar.sync 0;
    atom.relaxed.sys.global.add.u32 %r7, [%rd1+256], 1;
    ld.global.u32 %r8, [%rd2];
    mad.lo.u32 %r8, %r7, 10000, %r8;
    st.global.u32 [%rd2], %r8;
    ret;
}
";

fn watching(threads: u32, stops: fn(&Access) -> bool) -> (Block, Watching) {
    let mut memory = FlatMemory::default();
    let out = memory.allocate(&[0; 1024]);
    let module = Arc::new(Module::parse(KERNEL).unwrap_or_else(|error| panic!("{error}")));
    let launch = Arc::new(Launch::new(1, threads).parameter(&out.to_le_bytes()));
    let world = Watching { memory, out, accesses: Vec::new(), stops, put_off: None, queries: 0 };
    (Block::new(&module, "k", &launch, [0; 3]).unwrap(), world)
}

/// Runs to the end. The threads that the block stopped at.
fn run(block: &mut Block, world: &mut Watching) -> Vec<u32> {
    let mut stopped = Vec::new();
    loop {
        match block.run(world) {
            Stop::Access(access) => {
                stopped.push(access.thread);
                block.go_on(access.thread as usize);
            }
            Stop::Finished => return stopped,
            other => panic!("{other:?}"),
        }
    }
}

/// What the kernel means: each thread's number is known but for its ticket. The tickets, by thread.
fn tickets(world: &mut Watching, threads: u32) -> Vec<u32> {
    let tickets = (0..threads).map(|thread| {
        let bytes = world.memory.bytes(world.out)[4 * thread as usize..].first_chunk().expect("it is there");
        let value = u32::from_le_bytes(*bytes);
        let sum = if thread % 2 == 1 { thread * (thread + 1) / 2 } else { 0 };
        assert_eq!(value % 10_000, 3000 + 5 * (thread + 1) + sum, "thread {thread}");
        value / 10_000
    });
    tickets.collect()
}

/// How often each thread accesses each word plainly.
fn plain(world: &Watching) -> BTreeMap<(u32, u64), usize> {
    let mut counts = BTreeMap::new();
    for &(thread, kind, address) in &world.accesses {
        if matches!(kind, AccessKind::Load | AccessKind::Store) {
            *counts.entry((thread, address)).or_default() += 1;
        }
    }
    counts
}

/// What that is: of its own two words, two stores and a load of one, a store and a load of the other.
fn once(threads: u32) -> BTreeMap<(u32, u64), usize> {
    let own = |thread| {
        let at = 4 * u64::from(thread);
        [((thread, at), 3), ((thread, 512 + at), 2)]
    };
    (0..threads).flat_map(own).collect()
}

#[test]
fn results_do_not_depend_on_how_many_run_together() {
    for threads in [1, 2, 31, 32, 33, 64] {
        let (mut block, mut world) = watching(threads, |_| false);
        assert_eq!(run(&mut block, &mut world), [], "{threads}");
        let mut all = tickets(&mut world, threads);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..threads));
        assert!(world.queries > 0);
        assert_eq!(plain(&world), once(threads), "{threads}");
    }
}

/// Strong accesses come in the order in which threads would run one after another, each with a stop of its own.
#[test]
fn each_thread_comes_to_a_strong_access_alone() {
    let (mut block, mut world) = watching(32, |access| access.order.is_strong());
    let stopped = run(&mut block, &mut world);
    let tickets = tickets(&mut world, 32);
    let mut order: Vec<u32> = (0..32).collect();
    order.sort_by_key(|&thread| tickets[thread as usize]);
    assert_eq!(order, stopped);
    // Whoever has its ticket runs on before the next one takes one.
    let atomics = world.accesses.iter().filter(|(_, kind, _)| matches!(kind, AccessKind::Atomic(_)));
    assert!(atomics.map(|&(thread, ..)| thread).eq(stopped));
}

/// A world that stops at one plain access gets it from that thread, and nothing twice.
#[test]
fn a_stop_at_one_thread_is_a_stop_at_that_thread() {
    let (mut block, mut world) = watching(32, |access| access.thread == 7 && access.kind == AccessKind::Store);
    assert_eq!(run(&mut block, &mut world), [7, 7, 7]);
    tickets(&mut world, 32);
    assert_eq!(plain(&world), once(32));
}

/// A world that puts off one of the accesses that threads make together is asked for it again, and for no other.
#[test]
fn an_access_among_others_is_put_off() {
    let (mut block, mut world) = watching(32, |_| false);
    world.put_off = Some(9);
    assert_eq!(run(&mut block, &mut world), [9]);
    tickets(&mut world, 32);
    assert_eq!(plain(&world), once(32));
}

/// Loads and stores of every width, by some threads or all, several to a word, and one thread's beyond the end if that is asked for.
fn every_width(beyond: bool) -> String {
    let mut body = String::new();
    for (bits, wide) in [(8, "32"), (16, "32"), (32, "32"), (64, "64")] {
        let (register, size) = (if wide == "64" { "%rd4" } else { "%r4" }, bits / 8);
        let value = if wide == "64" { "cvt.u64.u32 %rd4, %r1;" } else { "mul.lo.u32 %r4, %r1, 77777;" };
        body += &format!(
            "{value}\nmul.wide.u32 %rd2, %r1, {size};\nadd.s64 %rd2, %rd1, %rd2;\nst.global.u{bits} [%rd2], {register};\n\
             shr.u32 %r2, %r1, 2;\nmul.wide.u32 %rd3, %r2, {size};\nadd.s64 %rd3, %rd1, %rd3;\nst.global.u{bits} [%rd3+320], {register};\n\
             @%p1 st.global.u{bits} [%rd2+{size}], {register};\n@%p1 ld.global.u{bits} {register}, [%rd3+320];\n\
             st.global.u{bits} [%rd2+640], {register};\n"
        );
    }
    let beyond =
        if beyond { "setp.eq.u32 %p2, %r1, 20;\n@%p2 mov.u64 %rd2, 64;\nst.global.u32 [%rd2], %r1;" } else { "" };
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nand.b32 %r3, %r1, 4;\nsetp.ne.u32 %p1, %r3, 0;\n{body}{beyond}\nret;\n}}\n"
    )
}

/// A world that makes accesses of several threads all at once leaves the same memory as one that is asked for each.
#[test]
fn accesses_all_at_once_are_those_one_by_one() {
    for beyond in [false, true] {
        let module = Module::parse(&every_width(beyond)).unwrap_or_else(|error| panic!("{error}"));
        let module = Arc::new(module);
        let start = |memory: &mut FlatMemory| {
            let out = memory.allocate(&[0xa5; 1024]);
            let launch = Arc::new(Launch::new(1, 40).parameter(&out.to_le_bytes()));
            (out, Block::new(&module, "k", &launch, [0; 3]).unwrap())
        };
        let mut at_once = FlatMemory::new();
        let (out, mut block) = start(&mut at_once);
        let ended = block.run(&mut at_once);
        let mut memory = FlatMemory::new();
        let (_, mut block) = start(&mut memory);
        let stops = |_: &Access| false;
        let mut one_by_one = Watching { memory, out, accesses: Vec::new(), stops, put_off: None, queries: 0 };
        assert_eq!(block.run(&mut one_by_one), ended);
        match ended {
            Stop::Fault(fault) => assert!(beyond && fault.who.thread == [20, 0, 0], "{fault}"),
            other => assert_eq!((other, beyond), (Stop::Finished, false)),
        }
        assert!(!one_by_one.accesses.is_empty());
        assert!(at_once.bytes(out) == one_by_one.memory.bytes(out));
    }
}
