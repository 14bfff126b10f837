//! The kernels of the examples on several PEs, where every operation happens at once: what they ask for is what they mean.
//!
//! This needs nothing of the machine. It says that names, arguments and replies fit together, and that the kernels are right in order.

use std::sync::Arc;

use onesided::backend::{Against, AllocId, AmoOp, Op, SignalUpdate, Span, TeamId};
use onesided::{Element, Members};
use onesided_ptx::{Access, Block, Call, Launch, Module, Refusal, Stop, World};

use super::{Function, Request, Resolve};

const N: usize = 3;

/// Symmetric memory: of each PE, of each allocation, the bytes. Allocation `i` begins at address `(i + 1) << 20`.
struct Memory(Vec<Vec<Vec<u8>>>);

/// What a PE sees of it.
struct View<'a> {
    memory: &'a mut Memory,
    pe: usize,
}

struct Agent {
    pe: usize,
    block: Block,
    module: Arc<Module>,
    /// Waits and meetings that have not ended.
    pending: Vec<(Call, Op)>,
    finished: bool,
}

impl Memory {
    fn new(allocations: &[usize]) -> Memory {
        Memory(vec![allocations.iter().map(|&bytes| vec![0; bytes]).collect(); N])
    }

    fn bytes(&mut self, pe: usize, span: Span) -> &mut [u8] {
        &mut self.0[pe][span.alloc.0 as usize][span.start..span.start + span.len]
    }

    fn word(&mut self, pe: usize, span: Span) -> u64 {
        let mut word = [0; 8];
        word[..span.len].copy_from_slice(self.bytes(pe, span));
        u64::from_le_bytes(word)
    }

    fn set(&mut self, pe: usize, span: Span, value: u64) {
        self.bytes(pe, span).copy_from_slice(&value.to_le_bytes()[..span.len]);
    }

    fn signal(&mut self, pe: u32, update: SignalUpdate) {
        let old = self.word(pe as usize, update.word);
        self.set(pe as usize, update.word, update.op.apply(old, update.value));
    }

    fn elements<T: Element>(&self, pe: usize, alloc: usize) -> Vec<T> {
        self.0[pe][alloc].chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }

    fn write<T: Element>(&mut self, pe: usize, alloc: usize, values: &[T]) {
        self.0[pe][alloc].copy_from_slice(bytemuck::must_cast_slice(values));
    }
}

impl Resolve for View<'_> {
    fn my_pe(&self) -> usize {
        self.pe
    }

    fn n_pes(&self) -> usize {
        N
    }

    fn span(&self, address: u64, bytes: usize) -> Result<Span, String> {
        let (alloc, start) = ((address >> 20).wrapping_sub(1), (address & 0xf_ffff) as usize);
        let memory = self.memory.0[self.pe].get(alloc as usize).ok_or("no memory")?;
        if start + bytes > memory.len() {
            return Err(format!("{bytes} bytes from {start} on end behind it"));
        }
        Ok(Span { alloc: AllocId(alloc as u32), start, len: bytes })
    }

    fn has_own(&self, _: u64, _: usize) -> bool {
        false
    }

    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let Span { alloc, start, len } = self.span(address, bytes)?;
        Ok(self.memory.0[self.pe][alloc.0 as usize][start..start + len].to_vec())
    }

    fn team(&self, handle: i32) -> Result<TeamId, String> {
        if handle == 0 { Ok(TeamId(0)) } else { Err("no team".into()) }
    }

    fn members(&self, _: TeamId) -> Members {
        Members::Strided { start: 0, stride: 1, size: N as u32 }
    }
}

impl World for View<'_> {
    fn stops(&mut self, _: &Access) -> bool {
        false
    }

    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        let span = self.span(access.address, access.bytes.into()).map_err(Refusal::fault)?;
        Ok(self.memory.word(self.pe, span))
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        let span = self.span(access.address, access.bytes.into()).map_err(Refusal::fault)?;
        self.memory.set(self.pe, span, value);
        Ok(true)
    }
}

/// What an operation returns when it has ended; nothing while it waits.
fn perform(memory: &mut Memory, me: usize, op: &Op, arrived: &mut [usize]) -> Option<u64> {
    match *op {
        Op::Put { dst, src, pe, signal, .. } => {
            let data = memory.bytes(me, src).to_vec();
            memory.bytes(pe as usize, dst).copy_from_slice(&data);
            if let Some(update) = signal {
                memory.signal(pe, update);
            }
        }
        Op::P { dst, value, pe, .. } => memory.set(pe as usize, dst, value),
        Op::G { src, pe, .. } => return Some(memory.word(pe as usize, src)),
        Op::Signal { update, pe } => memory.signal(pe, update),
        Op::Amo { dst, op: AmoOp::Add, value, pe, .. } => {
            let old = memory.word(pe as usize, dst);
            memory.set(pe as usize, dst, AmoOp::Add.apply(old, value, 0, dst.len));
            return Some(old);
        }
        Op::Wait { vars, dtype, cmp, against: Against::One(wanted), .. } => {
            let found = memory.word(me, vars);
            return cmp.holds_bits(dtype, found, wanted).then_some(found);
        }
        Op::Sync { .. } => {
            arrived[me] = 1;
            return arrived.iter().all(|&here| here == 1).then_some(0);
        }
        Op::Fence | Op::Quiet => {}
        ref other => panic!("{other} is not among the kernels of the examples"),
    }
    Some(0)
}

impl Agent {
    /// Runs until nothing goes on. Whether anything did.
    fn turns(&mut self, memory: &mut Memory, arrived: &mut [usize]) -> bool {
        let mut moved = false;
        for (call, op) in std::mem::take(&mut self.pending) {
            match perform(memory, self.pe, &op, arrived) {
                Some(value) => {
                    self.block.reply(&call, value, None);
                    moved = true;
                }
                None => self.pending.push((call, op)),
            }
        }
        while !self.finished {
            match self.block.run(&mut View { memory, pe: self.pe }) {
                Stop::Finished => self.finished = true,
                Stop::Idle => return moved,
                Stop::Call(call) => self.call(call, memory, arrived),
                other => panic!("{other:?}"),
            }
            moved = true;
        }
        moved
    }

    fn call(&mut self, call: Call, memory: &mut Memory, arrived: &mut [usize]) {
        let function = Function::decode(&self.module.externals()[call.external]).unwrap();
        let values: Vec<u64> = (0..call.layout.len()).map(|place| call.argument(place)).collect();
        match function.request(&values, &View { memory, pe: self.pe }).unwrap() {
            Request::Query(value) => self.block.reply(&call, value, None),
            Request::Op(op, _) => match perform(memory, self.pe, &op, arrived) {
                Some(value) => self.block.reply(&call, function.widened(value), None),
                None => self.pending.push((call, op)),
            },
            other => panic!("{other:?} is not among the kernels of the examples"),
        }
    }
}

/// A kernel of every PE: file, name, blocks, threads, dynamic shared memory, and arguments as bytes.
type Kernel<'a> = (&'a str, &'a str, u32, u32, u32, Vec<Vec<u8>>);

fn run(memory: &mut Memory, kernels: &[Kernel<'_>]) {
    let mut agents = Vec::new();
    for (file, name, blocks, threads, shared, arguments) in kernels {
        let path = format!("{}/../examples/src/kernels/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
        let module = Arc::new(Module::parse(&std::fs::read_to_string(path).unwrap()).unwrap());
        let mut launch = arguments.iter().fold(Launch::new(*blocks, *threads), |launch, bytes| launch.parameter(bytes));
        launch.dynamic_shared = *shared;
        let launch = Arc::new(launch);
        for pe in 0..N {
            for position in 0..*blocks {
                let block = Block::new(&module, name, &launch, [position, 0, 0]).unwrap();
                agents.push(Agent { pe, block, module: Arc::clone(&module), pending: Vec::new(), finished: false });
            }
        }
    }
    let mut arrived = vec![0; N];
    while agents.iter().any(|agent| !agent.finished) {
        let mut moved = false;
        for agent in &mut agents {
            moved |= agent.turns(memory, &mut arrived);
        }
        assert!(moved, "all agents wait");
    }
}

/// The address of an allocation, as an argument.
fn at(alloc: u64) -> Vec<u8> {
    ((alloc + 1) << 20).to_le_bytes().to_vec()
}

fn int(value: i32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

#[test]
fn puts_of_threads_and_blocks() {
    let mut memory = Memory::new(&[4]);
    run(&mut memory, &[("device_ring", "ring", 1, 1, 0, vec![at(0)])]);
    assert_eq!([0, 1, 2].map(|pe| memory.elements::<i32>(pe, 0)[0]), [2, 0, 1]);

    let mut memory = Memory::new(&[4 * 48, 4 * 48]);
    run(&mut memory, &[("put_block", "set_and_shift", 2, 32, 0, vec![at(0), at(1), int(48)])]);
    for pe in 0..N {
        let previous = (pe + N - 1) % N;
        let expected: Vec<f32> = (0..48).map(|i| (1000 * previous + i) as f32).collect();
        assert_eq!((memory.elements::<f32>(pe, 0), memory.elements::<f32>(pe, 1)), (expected, vec![-1.0; 48]));
    }
}

#[test]
fn reductions() {
    const CHUNK: usize = 8;
    let contribution = |pe: usize, i: usize| (10 * pe + i) as f32;
    let sum = |i: usize| (0..N).map(|pe| contribution(pe, i)).sum::<f32>();
    let mut memory = Memory::new(&[4 * N * CHUNK, 4 * N * CHUNK, 4 * N * CHUNK, 16 * N]);
    for pe in 0..N {
        memory.write(pe, 0, &(0..N * CHUNK).map(|i| contribution(pe, i)).collect::<Vec<_>>());
    }
    let arguments = vec![at(0), at(1), at(2), int(CHUNK as i32), at(3)];
    run(&mut memory, &[("ring_reduce", "ring_reduce", 1, 32, 0, arguments)]);
    for pe in 0..N {
        assert_eq!(memory.elements::<f32>(pe, 2), (0..N * CHUNK).map(sum).collect::<Vec<_>>());
    }

    let mut memory = Memory::new(&[4 * CHUNK, 4 * CHUNK, 8 * N * CHUNK, 8 * N]);
    for pe in 0..N {
        memory.write(pe, 0, &(0..CHUNK).map(|i| contribution(pe, i)).collect::<Vec<_>>());
    }
    for round in 1..=3 {
        let arguments = vec![at(1), at(0), at(2), int(CHUNK as i32), at(3), int(round)];
        run(&mut memory, &[("allreduce", "allreduce", 1, 32, 0, arguments)]);
        for pe in 0..N {
            assert_eq!(memory.elements::<f32>(pe, 1), (0..CHUNK).map(sum).collect::<Vec<_>>());
        }
    }
}

#[test]
fn exchanges() {
    let mut memory = Memory::new(&[4 * 4 * N, 4 * 4 * N, 4]);
    let part = |from: usize, to: usize| (0..4).map(move |i| (1000 * from + 10 * to + i) as i32);
    for pe in 0..N {
        memory.write(pe, 1, &(0..N).flat_map(|to| part(pe, to)).collect::<Vec<_>>());
    }
    run(&mut memory, &[("alltoall", "alltoall", 2, 32, 0, vec![at(0), at(1), int(4), at(2)])]);
    for pe in 0..N {
        assert_eq!(memory.elements::<i32>(pe, 0), (0..N).flat_map(|from| part(from, pe)).collect::<Vec<_>>());
    }

    const BINS: usize = 5;
    let value = |pe: usize, i: usize| ((i * i + pe) % BINS) as i32;
    let mut memory = Memory::new(&[4 * 2, 4 * 20]);
    for pe in 0..N {
        memory.write(pe, 1, &(0..20).map(|i| value(pe, i)).collect::<Vec<_>>());
    }
    run(&mut memory, &[("histogram", "histogram", 2, 8, 0, vec![at(0), at(1), int(20)])]);
    let all: Vec<i32> = (0..N).flat_map(|pe| (0..20).map(move |i| value(pe, i))).collect();
    for pe in 0..N {
        let count = |bin: usize| all.iter().filter(|&&value| value as usize == bin * N + pe).count() as u32;
        assert_eq!(memory.elements::<u32>(pe, 0), [count(0), count(1)]);
    }
}

#[test]
fn experts_get_tokens_and_send_them_back() {
    const COUNT: usize = 6;
    let expert = |pe: usize, token: usize| (pe + token * token) % N;
    let element = |pe: usize, i: usize| (100 * pe + i) as f32;
    let tokens = 16 * COUNT;
    let mut memory = Memory::new(&[4 * COUNT, tokens, tokens * N, 4 * COUNT * N, tokens, 8 * N, 8]);
    for pe in 0..N {
        memory.write(pe, 0, &(0..COUNT).map(|token| expert(pe, token) as i32).collect::<Vec<_>>());
        memory.write(pe, 1, &(0..4 * COUNT).map(|i| element(pe, i)).collect::<Vec<_>>());
    }
    let count = int(COUNT as i32);
    let dispatch = vec![at(0), at(1), count.clone(), at(2), at(3), at(5)];
    run(&mut memory, &[("moe_dispatch", "dispatch", 1, 32, 4 * N as u32, dispatch)]);
    run(&mut memory, &[("moe_dispatch", "combine", 1, 32, 0, vec![at(2), at(3), count, at(4), at(5), at(6)])]);
    for pe in 0..N {
        let expected = (0..4 * COUNT).map(|i| element(pe, i) * 2.0 + expert(pe, i / 4) as f32);
        assert_eq!(memory.elements::<f32>(pe, 4), expected.collect::<Vec<_>>());
    }
}

#[test]
fn kernels_that_run_side_by_side() {
    let mut memory = Memory::new(&[4 * 2 * 4, 4 * 4, 4 * 4, 16, 16]);
    let produce = vec![at(0), at(1), int(4), int(5), at(3), at(4)];
    let consume = vec![at(2), at(0), int(4), int(5), at(3), at(4)];
    run(&mut memory, &[("pipeline", "produce", 1, 32, 0, produce), ("pipeline", "consume", 1, 32, 0, consume)]);
    for pe in 0..N {
        let previous = (pe + N - 1) % N;
        assert_eq!(memory.elements::<i32>(pe, 2), [500 * previous as i32 + 10; 4]);
    }
}

#[test]
fn jacobi_is_what_one_processor_computes() {
    const ROWS: usize = 2;
    const COLUMNS: usize = 8;
    const SIZE: usize = (ROWS + 2) * COLUMNS;
    let mut memory = Memory::new(&[4 * 2 * SIZE, 16]);
    let mut grid = vec![0.0_f32; (N * ROWS + 2) * COLUMNS];
    grid[..COLUMNS].fill(100.0);
    let mut first = vec![0.0_f32; 2 * SIZE];
    first[..COLUMNS].fill(100.0);
    first[SIZE..SIZE + COLUMNS].fill(100.0);
    memory.write(0, 0, &first);
    let arguments = vec![at(0), int(ROWS as i32), int(COLUMNS as i32), int(4), at(1)];
    run(&mut memory, &[("jacobi", "jacobi", 1, 32, 0, arguments)]);
    for _ in 0..4 {
        let old = grid.clone();
        for at in (1..=N * ROWS).flat_map(|row| (1..COLUMNS - 1).map(move |x| row * COLUMNS + x)) {
            grid[at] = 0.25 * (old[at - 1] + old[at + 1] + old[at - COLUMNS] + old[at + COLUMNS]);
        }
    }
    for pe in 0..N {
        let mine = &memory.elements::<f32>(pe, 0)[COLUMNS..][..ROWS * COLUMNS];
        assert_eq!(mine, &grid[(pe * ROWS + 1) * COLUMNS..][..ROWS * COLUMNS]);
    }
}
