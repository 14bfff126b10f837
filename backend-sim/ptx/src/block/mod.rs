//! A thread block, or several that form a cluster. It runs its threads in a fixed order, each until it must wait, and stops where others may act. Threads of a warp that are
//! at the same instruction run together.

mod access;
mod barrier;
mod blocks;
mod bulk;
mod call;
mod changes;
mod circle;
mod cluster;
mod copies;
mod cycle;
mod execute;
mod fault;
mod flight;
mod group;
mod lanes;
mod launch;
mod lifetime;
mod limit;
mod looks;
mod matrix;
mod mbarrier;
mod multi;
mod order;
mod pace;
mod print;
mod shared;
mod spin;
mod straight;
mod thread;
mod tile;
mod turn;
mod under_way;
mod warp;
mod wide;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use call::Call;
pub use copies::COPIES;
pub use fault::{Fault, FaultKind, Unordered, Who};
pub use lanes::each_lane;
pub use launch::{Checks, Launch, LaunchError};

use crate::module::{Kernel, Module, Place};
use crate::op::Reg;
use crate::world::{Access, World};
use barrier::Named;
use blocks::Blocks;
use changes::Changes;
use cluster::Cluster;
use copies::Copies;
use flight::Flights;
use lanes::Row;
pub use mbarrier::Phase;
pub(crate) use mbarrier::pending_count;
use order::Order;
pub use order::{InVain, Sync, ToldInBlock};
use pace::Paces;
use shared::Shared;
use thread::{State, Thread};
use under_way::Groups;

/// A thread block of a launch, or a cluster of blocks, which reach each other's shared memory and so run as one: their threads are numbered block after block.
/// It holds everything but global memory, which is the [`World`]'s.
#[derive(Clone, Debug)]
pub struct Block {
    module: Arc<Module>,
    launch: Arc<Launch>,
    position: [u32; 3],
    threads: Vec<Thread>,
    /// The registers of each warp's threads: of all frames, one behind the other.
    registers: Vec<Vec<Row>>,
    shared: Shared,
    /// The kernel: its place among the module's functions.
    kernel: u16,
    /// Where dynamic shared memory of a block ends.
    shared_bytes: u32,
    blocks: Blocks,
    order: Order,
    barriers: Vec<Named>,
    cluster: Cluster,
    /// The generic addresses of mbarriers that were initialized, and not invalidated: by which thread, and where.
    mbarriers: BTreeMap<u64, (usize, Place)>,
    copies: Copies,
    flights: Flights,
    groups: Groups,
    /// The barriers at which threads wait, a bit for each: 16 of each block.
    waited_at: u128,
    /// The thread whose turn it is.
    current: usize,
    /// That thread was stopped at an access or fence, and makes it now.
    announced: bool,
    /// That thread has reached an operation that each thread executes alone.
    alone: bool,
    /// That thread has looked at memory so long that others come first.
    others_first: bool,
    live: usize,
    /// The same, of each block.
    live_of: Vec<usize>,
    parked: usize,
    /// No thread could go on, and nothing has happened since that would enable one. So the next `run` returns at once.
    is_idle: bool,
    changes: Changes,
    paces: Paces,
    /// What has changed in this turn while threads are parked: they look again when it is over.
    changed: Vec<(u64, u8)>,
    steps: u64,
    /// After this many steps, a thread that jumps back checks whether the block may go on.
    asks_at: u64,
    fault: Option<Box<Fault>>,
}

/// Allocations of a block that has ended.
#[derive(Clone, Debug, Default)]
pub struct Spare {
    threads: Vec<Thread>,
    registers: Vec<Vec<Row>>,
}

/// Why a block's turn has ended.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "who runs blocks must handle every reason")]
pub enum Stop {
    /// A thread, or a group that has arrived together, calls an external function. [`Block::reply`] answers. Until then the others
    /// can run.
    Call(Call),
    /// A thread is about to access memory in a way at which the world [stops](World::stops) it. [`Block::go_on`] lets it. Until then the
    /// others can run.
    Access(Access),
    /// A thread, by its number in the block, is about to come to a fence at which the world [stops](World::stops_at_fence).
    /// [`Block::go_on`] lets it. Until then the others can run.
    Fence(usize, Place),
    /// A thread has looked at memory for many rounds of a loop that has not ended, and the world lets [others come
    /// first](World::others_first). [`Block::run`] goes on, with the next thread.
    Looks,
    /// Every thread waits: for replies, to be let go on, or for changes of memory. [`Block::idle`] says for what; see [`Block::wake`].
    Idle,
    /// Every thread has ended.
    Finished,
    /// Something is wrong. The block cannot go on.
    Fault(Box<Fault>),
}

/// What the threads of a block wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Idle {
    /// Threads that spin: they read the same memory again and again.
    pub parked: Vec<Waiting>,
    /// Threads whose call has not been answered.
    pub calls: Vec<Waiting>,
    /// Threads that were stopped at an access or a fence.
    pub stopped: Vec<Waiting>,
    /// Threads that wait for others of the block: at a barrier, for their warp, for the rest of a group.
    pub inside: Vec<Waiting>,
}

/// A thread that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The thread.
    pub who: Who,
    /// Where it waits; [`Module::describe`] says it in words.
    pub place: Place,
    /// Of a spin, the global and shared memory that it reads: address and bytes.
    pub reads: Vec<(u64, u8)>,
    /// Whether a change anywhere could end it, as it reads more than is kept.
    pub any: bool,
    /// Whether a spin looks at a clock, too, which does not advance meanwhile.
    pub timed: bool,
}

/// What interrupts a thread's turn: the block's turn ends, too.
type Halt = Box<Stop>;

impl Block {
    /// Whether a launch fits a kernel.
    ///
    /// # Errors
    /// If the module has no such kernel, or the launch does not fit it.
    pub fn check(module: &Module, kernel: &str, launch: &Launch) -> Result<(), LaunchError> {
        launch.check(module, Self::find(module, kernel)?, [0; 3])
    }

    fn find<'m>(module: &'m Module, kernel: &str) -> Result<&'m Kernel, LaunchError> {
        module.kernel(kernel).ok_or_else(|| {
            let all = module.kernels().iter().map(|kernel| &kernel.name[..]).collect::<Vec<_>>().join(", ");
            LaunchError(format!("there is no kernel {kernel} in the module, which has: {all}"))
        })
    }

    /// The block at a position of the launch's grid, before its first instruction; or the cluster whose first block is there.
    ///
    /// # Errors
    /// If the module has no such kernel, or the launch does not fit it.
    pub fn new(
        module: &Arc<Module>,
        kernel: &str,
        launch: &Arc<Launch>,
        position: [u32; 3],
    ) -> Result<Self, LaunchError> {
        Self::again(Spare::default(), module, kernel, launch, position)
    }

    /// A block as [`new`](Self::new) makes it, in the allocations that another block has [left](Self::retire). That block may have run any kernel;
    /// nothing of what it computed is there.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn again(
        spare: Spare,
        module: &Arc<Module>,
        kernel: &str,
        launch: &Arc<Launch>,
        position: [u32; 3],
    ) -> Result<Self, LaunchError> {
        let found = Self::find(module, kernel)?;
        launch.check(module, found, position)?;
        let Kernel { code, shared_bytes, dynamic_align, narrowest, .. } = *found;
        let shared_bytes = if launch.dynamic_shared == 0 {
            shared_bytes
        } else {
            shared_bytes.next_multiple_of(dynamic_align) + launch.dynamic_shared
        };
        let blocks = Blocks::new(launch, shared_bytes as usize);
        let threads = blocks.numbers();
        let shadow = launch.checks.races || launch.checks.uninitialized;
        let copies = if launch.checks.races && found.makes_bulk_copies { COPIES } else { 0 };
        let groups = Groups::count(threads, launch.checks.races && found.multiplies_in_groups);
        let code_index = code;
        let code = &module.code[usize::from(code_index)];
        let Spare { threads: mut all, mut registers } = spare;
        all.resize_with(threads, Thread::default);
        all.iter_mut().for_each(|thread| thread.reset(code_index, code));
        let none = (0..threads).filter(|&thread| !blocks.has(thread));
        none.for_each(|thread| all[thread].state = State::Exited);
        registers.resize_with(threads.div_ceil(32), Vec::new);
        for warp in &mut registers {
            warp.clear();
            warp.extend(code.registers.iter().map(|&value| [value; 32]));
        }
        Ok(Self {
            module: Arc::clone(module),
            launch: Arc::clone(launch),
            position,
            threads: all,
            registers,
            shared: Shared::new(blocks.shared(shared_bytes as usize), narrowest, shadow, blocks.several()),
            kernel: code_index,
            shared_bytes,
            blocks,
            order: Order::new(threads, copies + groups, launch.checks.races || launch.checks.order),
            barriers: vec![Named::default(); barrier::NUMBERS * blocks.count],
            cluster: Cluster::default(),
            mbarriers: BTreeMap::new(),
            copies: Copies::new(copies > 0),
            flights: Flights::default(),
            groups: Groups::new(threads, groups, copies),
            waited_at: 0,
            current: 0,
            announced: false,
            alone: false,
            others_first: false,
            live: blocks.count * blocks.threads,
            live_of: vec![blocks.threads; blocks.count],
            parked: 0,
            is_idle: false,
            changes: Changes::default(),
            paces: Paces::new(threads),
            changed: Vec::new(),
            steps: 0,
            asks_at: 0,
            fault: None,
        })
    }

    /// Ends the block, and gives back its allocations for [another one](Self::again).
    pub fn retire(self) -> Spare {
        Spare { threads: self.threads, registers: self.registers }
    }

    /// Runs until somebody else may act, or nobody in the block can go on.
    pub fn run(&mut self, world: &mut impl World) -> Stop {
        if self.is_idle {
            return Stop::Idle;
        }
        if let Some(fault) = &self.fault {
            return Stop::Fault(fault.clone());
        }
        self.changes.now = world.now();
        self.tell(world);
        let stop = loop {
            let Some(thread) = self.next_ready() else { break self.nobody_ready() };
            self.current = thread;
            let turn = self.turn(world, thread);
            self.tell(world);
            if let Err(halt) = turn {
                break *halt;
            }
        };
        match &stop {
            Stop::Fault(fault) => self.fault = Some(fault.clone()),
            Stop::Idle => self.is_idle = true,
            &Stop::Access(Access { thread, place, .. }) => self.stopped(thread as usize, place),
            &Stop::Fence(thread, place) => self.stopped(thread, place),
            Stop::Call(_) | Stop::Looks | Stop::Finished => {}
        }
        stop
    }

    /// After a [fault](Stop::Fault): stops the thread that caused it for good, and lets the others go on.
    pub fn goes_on_without(&mut self, fault: &Fault) {
        let is_it = |&thread: &usize| self.who(thread) == fault.who && self.threads[thread].is_live();
        let number = (0..self.threads.len()).find(is_it);
        if let Some(number) = number {
            self.threads[number].state = State::Failed { place: fault.place };
        }
        (self.fault, self.announced) = (None, false);
    }

    fn stopped(&mut self, thread: usize, place: Place) {
        self.threads[thread].state = State::Stopped { place };
        self.announced = false;
    }

    /// Lets a thread go on that was stopped at an access or fence. The next turn begins with that.
    ///
    /// # Panics
    /// If the thread was not stopped.
    pub fn go_on(&mut self, thread: usize) {
        let State::Stopped { .. } = self.threads[thread].state else { panic!("thread {thread} was not stopped") };
        self.threads[thread].state = State::Ready;
        (self.current, self.announced, self.is_idle) = (thread, true, false);
    }

    /// Tells the world what has ordered threads since it was told last.
    #[inline]
    fn tell(&mut self, world: &mut impl World) {
        if let Some(untold) = &mut self.order.untold
            && !untold.is_empty()
        {
            untold.drain(..).for_each(|sync| world.synchronize(&sync));
        }
    }

    /// Says that global memory has changed at these addresses. Threads that spin on them run again. `now`: see [`World::now`].
    pub fn wake(&mut self, address: u64, bytes: u64, now: u64) {
        self.changes.now = now;
        self.changes.note(address, bytes);
        if self.parked == 0 {
            return;
        }
        self.wake_where(|watch| watch.covers(address, bytes));
    }

    /// Lets those who are parked look again.
    fn wake_where(&mut self, who: impl Fn(&cycle::Watch) -> bool) {
        for thread in &mut self.threads {
            if matches!(&thread.state, State::Parked { watch, .. } if who(watch)) {
                thread.state = State::Ready;
                thread.spin.woken(&self.changes);
                self.parked -= 1;
                self.is_idle = false;
            }
        }
    }

    /// Lets every thread that spins look again.
    pub fn wake_all(&mut self) {
        self.is_idle = false;
        for thread in &mut self.threads {
            if matches!(thread.state, State::Parked { .. }) {
                thread.state = State::Ready;
                thread.spin.woken(&self.changes);
            }
        }
        self.parked = 0;
    }

    /// How many instructions the block has executed.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The block's position in the grid; of a cluster, that of its first block.
    pub fn position(&self) -> [u32; 3] {
        self.position
    }

    /// The bytes of shared memory: what the kernel declares, then what the launch adds. In a cluster, that of the next block follows at a multiple of 1024.
    pub fn shared_memory(&self) -> &[u8] {
        &self.shared.bytes
    }

    fn next_ready(&self) -> Option<usize> {
        let ready = |thread: &usize| matches!(self.threads[*thread].state, State::Ready);
        (self.current..self.threads.len()).find(ready).or_else(|| (0..self.current).find(ready))
    }

    /// Sets a register of a thread's running function.
    fn set(&mut self, thread: usize, register: Reg, value: u64) {
        let at = self.threads[thread].frame.registers as usize + usize::from(register);
        self.registers[thread / 32][at][thread % 32] = value;
    }

    /// Where a thread is, by its number in the block.
    ///
    /// # Panics
    /// If the block has fewer threads.
    #[inline]
    pub fn who(&self, thread: usize) -> Who {
        self.launch.who(self.position, thread as u32)
    }

    /// The threads of this thread's warp.
    fn warp_of(&self, thread: usize) -> std::ops::Range<usize> {
        let first = thread / 32 * 32;
        first..(first + 32).min(self.blocks.threads_of(self.blocks.rank(thread)).end)
    }

    fn fault(&self, kind: FaultKind, thread: usize, place: Place, message: impl Into<String>) -> Halt {
        Box::new(Stop::Fault(Box::new(Fault::new(&self.module, kind, self.who(thread), place, message))))
    }

    fn fault_with(
        &self,
        kind: FaultKind,
        thread: (usize, Place),
        other: (usize, Place),
        message: impl Into<String>,
    ) -> Halt {
        let fault = Fault::new(&self.module, kind, self.who(thread.0), thread.1, message);
        Box::new(Stop::Fault(Box::new(fault.with(&self.module, self.who(other.0), other.1))))
    }

    /// What lies at an offset of shared memory.
    fn in_shared(&self, at: usize) -> String {
        let dynamic = self.shared_bytes - self.launch.dynamic_shared;
        let (rank, at) = self.blocks.owner(at);
        let name = self.module.in_shared(self.kernel, at as u64, dynamic.into());
        match self.blocks.are_several() {
            true => format!("{name} of block {rank} of the cluster"),
            false => name,
        }
    }

    /// A thread has changed memory. Threads of the block that spin on it look again.
    #[inline]
    fn changed(&mut self, index: usize, address: u64, bytes: u8) {
        if self.paces.any_active() {
            self.changes.note(address, bytes.into());
        }
        self.paces.visible(index);
        if self.parked > 0 {
            self.changed.push((address, bytes));
        }
    }

    /// The same, of threads on these lanes of a warp.
    #[inline]
    fn changed_together(&mut self, first: usize, lanes: u32, addresses: &Row, bytes: u8) {
        if self.paces.any_active() {
            each_lane(lanes).for_each(|lane| self.changed(first + lane, addresses[lane], bytes));
        } else {
            self.paces.visible_together(first, lanes);
        }
    }

    /// A thread has read memory.
    #[inline]
    fn has_read(&self, thread: &mut Thread, index: usize, address: u64, bytes: u8) {
        if self.paces.is_active(index) {
            thread.spin.read(address, bytes, &self.changes);
        }
    }

    fn waiting(&self, thread: usize, place: Place) -> Waiting {
        Waiting { who: self.who(thread), place, reads: Vec::new(), any: false, timed: false }
    }

    /// No thread can run. Returns why: all have ended, some wait for the world, or the threads of the block wait for each other, which is a fault.
    fn nobody_ready(&mut self) -> Stop {
        if self.live == 0 {
            return Stop::Finished;
        }
        let outside = |thread: &Thread| {
            matches!(thread.state, State::Call { issued: true, .. } | State::Stopped { .. } | State::Failed { .. })
        };
        match self.parked == 0 && !self.threads.iter().any(outside) {
            true => *self.stuck(),
            false => Stop::Idle,
        }
    }

    /// Whether [`Block::run`] would return [`Stop::Idle`] at once: it did so before, and nothing has happened since that enables a thread.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// The threads that spin, by their numbers, and what each reads: address and bytes.
    pub fn parked(&self) -> impl Iterator<Item = (usize, &[(u64, u8)])> {
        let threads = if self.parked > 0 { &self.threads[..] } else { &[] };
        threads.iter().enumerate().filter_map(|(index, thread)| match &thread.state {
            State::Parked { watch, .. } => Some((index, &watch.ranges[..])),
            _ => None,
        })
    }

    /// What the threads wait for. Those that can go on wait for nothing.
    pub fn idle(&self) -> Idle {
        let mut idle = Idle::default();
        for (index, thread) in self.threads.iter().enumerate() {
            match &thread.state {
                State::Ready | State::Exited | State::Failed { .. } => {}
                State::Stopped { place } => idle.stopped.push(self.waiting(index, *place)),
                State::Parked { watch, reads, place } => {
                    let (reads, timed) = (reads.clone(), thread.spin.waits_for_time());
                    idle.parked.push(Waiting { reads, any: watch.any, timed, ..self.waiting(index, *place) });
                }
                State::Call { place, issued: true, .. } => idle.calls.push(self.waiting(index, *place)),
                State::Call { place, .. } | State::Barrier { place, .. } => {
                    idle.inside.push(self.waiting(index, *place))
                }
                State::Warp(together) => idle.inside.push(self.waiting(index, together.place)),
            }
        }
        idle
    }
}
