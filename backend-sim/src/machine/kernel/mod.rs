//! Kernels: a stream begins one, its blocks run as agents of the PE, and the stream goes on when all have ended.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | beginning and ending kernels and blocks |
//! | `launch.rs` | a launch: checked, and enqueued on its stream |
//! | `address.rs` | the addresses that kernels see |
//! | `turn.rs` | a block's turn: until somebody else may act |
//! | `world.rs` | global memory, as a block sees it |
//! | `ends_loop.rs` | loops around a load, or a call that looks, which are waits |
//! | `fetches.rs` | loops around atomic fetches |
//! | `besides.rs` | what the rounds of such a loop look at besides |
//! | `awaits.rs` | loops around the test of an mbarrier |
//! | `events.rs` | which accesses a trace has |
//! | `grid.rs` | how a grid synchronizes |
//! | `order.rs` | what strong accesses and fences tell |
//! | `watch.rs` | what threads poll, and which steps have changed it |
//! | `mark.rs` | races that the program marks as intended |
//! | `tensor.rs` | tensor maps among a kernel's arguments |
//! | `store.rs` | stores to other PEs' memory that are in flight |
//! | `together.rs` | launches that all PEs make together |
//! | `threads.rs` | the threads of a block, as the race detector sees them |
//! | `call.rs` | calls of NVSHMEM's device functions |
//! | `report.rs` | what kernels wait for, and what is wrong with them, in words |
//!
//! **Threads are agents, and so are blocks.** A thread's steps are its strong accesses, to global and to shared memory, and its calls. A call
//! that a warp or block makes together is one of its first thread. A block runs its threads in a fixed order, each until it is stopped at its
//! next step, and has no steps itself. In a search, a thread's step comes after what the thread has done before, and others with which it
//! has met. Where races are looked for, threads know of each other only what barriers, shuffles and strong accesses tell: what depends on
//! more is a race.
//!
//! **Plain accesses are no choices.** They happen with the step before them. Where that matters, two accesses race, and races are
//! findings. Where races are no findings, each access to global memory is a step, and a store to another PE's memory arrives in a step of its own.

mod address;
mod arrives;
mod awaits;
mod besides;
mod call;
mod ends_loop;
mod events;
mod fetches;
mod grid;
mod launch;
mod mark;
mod order;
mod report;
mod store;
mod tensor;
mod threads;
mod together;
mod turn;
mod watch;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
pub(super) use store::left_by;

use onesided::backend::{AllocId, Span};
use onesided_ptx::{Block, Idle, Spare};

use super::access::Test;
use super::access::{Arrival, BlockName, shared_of};
use super::agent::{Agent, AgentKind, InKernel, State};
use super::ids::{AgentId, BlockId, Id as _, PeId, Table};
use super::past::Past;
use super::pe::PeState;
use super::{Machine, Object, Progress};
use crate::kernel::{Code, Regions};
use crate::race::Kind;
use arrives::Refusals;
use call::Calling;
pub(crate) use call::Look;
use ends_loop::{Ending, Looking};
pub(super) use events::Accesses;
use fetches::Fetch;
use grid::Workspaces;
pub(crate) use launch::Launched;
use order::Heard;
use watch::Watches;

/// Streams of a PE that kernels can be launched on: agents' names have room for so many.
const STREAMS: u32 = 16;

/// The first number of an agent of a kernel among its PE's agents.
const FIRST: u32 = 2048;

/// Kernels that run.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    blocks: Table<BlockId, Running>,
    /// Blocks that have not ended.
    live: Vec<BlockId>,
    /// What blocks that have ended left to later ones, also those of later runs.
    spare: Vec<Spare>,
    /// By stream: blocks of its kernel that have ended, and that have begun.
    progress: BTreeMap<AgentId, Started>,
    /// The load that is made next ends a loop.
    ending: Option<Ending>,
    /// The atomic that is made next asks whether it comes last, and does not.
    refused: Option<Arrival>,
    refusals: Refusals,
    /// Of threads that wait in a loop around an atomic: which.
    fetching: BTreeMap<AgentId, Fetch>,
    /// Of threads that wait for several words in a loop: what they have passed.
    passed: BTreeMap<AgentId, Vec<Ending>>,
    /// The test of an mbarrier that is made next ends a loop, and it does not matter when.
    sees_steady_phase: bool,
    /// Whether a thread has come to a mark in this run.
    has_marks: bool,
    /// Threads that poll by calls.
    polling: Vec<AgentId>,
    /// Threads that wait in loops only as long as this is so.
    sides: BTreeMap<AgentId, Vec<Test>>,
    /// Addresses of modules' variables on a PE, and of the words by which grids synchronize.
    globals: Vec<(PeId, Arc<Code>, Vec<u64>)>,
    workspaces: Workspaces,
    /// Collective launches, in their order.
    together: Vec<together::Together>,
    /// Where the run is recorded: memory that kernels have accessed otherwise than by operations, and whether they have written there.
    by_pointer: BTreeMap<(PeId, AllocId), bool>,
    /// Turns of blocks since the deadline was looked at.
    turns: u32,
}

#[derive(Debug)]
struct Started {
    launched: Arc<Launched>,
    begun: u64,
    ended: u64,
}

/// A block that runs; or a cluster of blocks, which is one block for the machine.
#[derive(Debug)]
struct Running {
    agent: AgentId,
    stream: AgentId,
    launched: Arc<Launched>,
    /// Its number among the blocks, or clusters, of the grid.
    number: u64,
    /// Not there while it runs, and once it has ended.
    block: Option<Box<Block>>,
    /// The calls that its threads make, by the thread that makes them.
    calls: BTreeMap<usize, Calling>,
    /// Agents of threads whose calls ended during a turn of the block. They are answered when it is over.
    answered: Vec<AgentId>,
    /// The agents of its threads that have acted, and of bulk copies behind them.
    threads: Vec<Option<AgentId>>,
    /// The threads that made the bulk copies behind them.
    makers: BTreeMap<usize, usize>,
    heard: Heard,
    /// In a search: what the steps of each thread come after, since all of them met.
    pasts: BTreeMap<usize, Past>,
    /// In a search: what those had done who arrived at a barrier.
    arrived: BTreeMap<usize, Past>,
    /// Accesses and calls to which threads have come that do nothing else in a loop, and what ends that.
    loops: BTreeMap<AgentId, Looking>,
    /// Threads that wait for phases of mbarriers.
    awaiting: Vec<AgentId>,
    /// Nobody of it can go on.
    is_idle: bool,
    watches: Watches,
    regions: Regions,
    marks: mark::Marks,
}

impl Running {
    /// What it waits for, if nobody of it can go on.
    fn idle(&self) -> Option<Idle> {
        let block = self.block.as_ref().filter(|_| self.is_idle);
        block.map(|block| block.idle())
    }
}

impl Kernels {
    /// Whether no kernel runs.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether a thread of a kernel can go on: the run was given up before.
    pub(super) fn can_go_on(&self) -> bool {
        self.live.iter().any(|&id| !self.blocks[id].is_idle)
    }

    pub(super) fn clear(&mut self) {
        self.blocks.truncate(0);
        self.live.clear();
        self.progress.clear();
        self.ending = None;
        self.fetching.clear();
        self.passed.clear();
        self.sees_steady_phase = false;
        self.has_marks = false;
        self.polling.clear();
        self.refusals.clear();
        self.sides.clear();
        self.globals.clear();
        self.workspaces.clear();
        self.together.clear();
        self.turns = 0;
        self.by_pointer.clear();
    }
}

/// # What a trace need not show
impl Machine {
    /// A kernel accesses memory otherwise than by an operation.
    #[inline]
    fn note_by_pointer(&mut self, pe: PeId, alloc: AllocId, writes: bool) {
        if self.record.is_some() {
            *self.kernels.by_pointer.entry((pe, alloc)).or_default() |= writes;
        }
    }

    /// Whether kernels have written to memory of a PE otherwise than by operations; `None`: they have not read it so, either.
    pub(super) fn accessed_by_pointer(&self, pe: PeId, alloc: AllocId) -> Option<bool> {
        self.kernels.by_pointer.get(&(pe, alloc)).copied()
    }
}

/// # Running
impl Machine {
    /// A stream begins a kernel.
    pub(super) fn begin_kernel(&mut self, stream: AgentId, launched: &Arc<Launched>) -> Progress {
        let started = Started { launched: Arc::clone(launched), begun: 0, ended: 0 };
        self.kernels.progress.insert(stream, started);
        self.agents[stream].state = State::InKernel;
        for _ in 0..launched.clusters().min(launched.resident) {
            self.begin_block(stream);
        }
        Progress::Blocked
    }

    /// The next block of a stream's kernel begins, if there is one.
    fn begin_block(&mut self, stream: AgentId) {
        let Some(started) = self.kernels.progress.get_mut(&stream) else { return };
        let (number, launched) = (started.begun, Arc::clone(&started.launched));
        if number == launched.clusters() {
            return;
        }
        started.begun += 1;
        let id = BlockId::new(self.kernels.blocks.len());
        let pe = self.agents[stream].pe;
        let agent = self.agent_in_kernel(pe, id, (&launched, number, None));
        self.agents[agent].call = "start";
        self.agents[agent].at = self.agents[stream].at;
        let spare = self.kernels.spare.pop().unwrap_or_default();
        let position = launched.launch.first_block(number);
        let block = Block::again(spare, &launched.code.module, &launched.name, &launched.launch, position);
        let block = block.expect("the launch was checked");
        let (calls, heard) = (BTreeMap::new(), Heard::default());
        let threads = vec![None; launched.agents() as usize];
        let block = Some(Box::new(block));
        self.kernels.blocks.push(Running {
            agent,
            stream,
            launched,
            number,
            block,
            calls,
            answered: Vec::new(),
            threads,
            makers: BTreeMap::new(),
            marks: mark::Marks::default(),
            heard,
            pasts: BTreeMap::new(),
            arrived: BTreeMap::new(),
            loops: BTreeMap::new(),
            awaiting: Vec::new(),
            is_idle: false,
            watches: Watches::default(),
            regions: Regions::default(),
        });
        self.kernels.live.push(id);
        self.races.set_mark(agent, self.races.mark(stream));
        self.learn_past(agent, stream);
        self.races.block_begins(agent);
        self.fences_at_the_beginning(id);
        self.woken.push_back(agent);
    }

    /// The agent for a block of a stream's kernel, or for one of its threads. Kernels of a stream follow each other, so the agents are used
    /// again, by blocks of the same size: a thread stays one of the same block, whose moments say what its threads have done.
    fn agent_in_kernel(
        &mut self,
        pe: PeId,
        block: BlockId,
        (launched, number, thread): (&Launched, u64, Option<usize>),
    ) -> AgentId {
        let (stream, threads) = (launched.stream, launched.agents());
        let local = number * (threads + 1) + thread.map_or(0, |thread| thread as u64 + 1);
        let ordinal = FIRST + local as u32 * STREAMS + stream;
        let kernel = InKernel { stream, block, ordinal };
        let kind = if thread.is_some() { AgentKind::Thread(kernel) } else { AgentKind::Block(kernel) };
        let first = FIRST + (number * (threads + 1)) as u32 * STREAMS + stream;
        let PeState { in_kernels, kernel_scope, .. } = &mut self.pes[pe];
        let of_block = in_kernels.entry((first, threads)).or_insert_with(|| vec![None; threads as usize + 1]);
        let known = &mut of_block[thread.map_or(0, |thread| thread + 1)];
        if let Some(agent) = *known {
            self.agents[agent].kind = kind;
            return agent;
        }
        let scope = *kernel_scope;
        let agent = self.agents.push_again(|agent| agent.reset(pe, kind, scope), || Agent::new(pe, kind, scope));
        *known = Some(agent);
        self.races.new_agent(pe, Kind::Kernel(stream));
        agent
    }

    /// All threads of a block have ended.
    fn block_ended(&mut self, id: BlockId) {
        let Running { agent, stream, ref launched, .. } = self.kernels.blocks[id];
        let last = launched.clusters();
        let block = self.kernels.blocks[id].block.take();
        self.kernels.spare.extend(block.map(|block| block.retire()));
        self.kernels.live.retain(|&live| live != id);
        self.agents[agent].state = State::Running;
        self.fences_at_the_end(id);
        self.copies_end(id);
        let (pe, shared) = shared_of(self.block_name(id));
        self.assumed.iter_mut().for_each(|assumed| assumed.forget(pe, shared));
        self.all_threads_meet(id);
        self.races.block_ends(agent, self.kernels.blocks[id].threads.iter().copied().flatten());
        if self.mode.needs.tracking {
            let past = self.agents[agent].past.clone();
            self.agents[stream].past.join(&past);
        }
        let started = self.kernels.progress.get_mut(&stream).expect("its kernel runs");
        started.ended += 1;
        if started.ended == last {
            let ended = self.kernels.progress.remove(&stream).expect("it is there").launched;
            let blocks = self.kernels.blocks.iter().filter(|block| Arc::ptr_eq(&block.launched, &ended));
            // not before: a block that begins when another has ended does not come after what that one did
            blocks.for_each(|block| self.races.learn_all(stream, block.agent));
            return self.finish(stream);
        }
        self.begin_block(stream);
    }

    /// What a block is called in every schedule.
    pub(super) fn block_name(&self, id: BlockId) -> BlockName {
        let agent = &self.agents[self.kernels.blocks[id].agent];
        (agent.pe, agent.ordinal())
    }

    /// The block of an agent in a kernel.
    pub(super) fn block_of(&self, agent: AgentId) -> BlockId {
        match self.agents[agent].kind {
            AgentKind::Block(kernel) | AgentKind::Thread(kernel) => kernel.block,
            AgentKind::Host | AgentKind::Stream(_) => unreachable!("only kernels have blocks"),
        }
    }

    /// Whether somebody looks at the memory of a PE, or notes it, whenever a word of it changes: not only blocks that wait.
    #[inline]
    pub(super) fn looks_at_writes(&self, pe: PeId) -> bool {
        self.mode.needs.tracking
            || self.looks_for_all_lints()
            || !self.pes[pe].waiting.is_empty()
            || !self.kernels.polling.is_empty()
    }

    /// Memory has changed: blocks that spin on it look again, and threads that poll it.
    pub(super) fn wake_kernels(&mut self, pe: PeId, span: Span) {
        if let Ok(address) = address::join(pe, span.alloc, span.start) {
            let number = self.number();
            for index in 0..self.kernels.live.len() {
                let id = self.kernels.live[index];
                let running = &mut self.kernels.blocks[id];
                if self.mode.needs.tracking && !self.kernels.workspaces.has(pe, span.alloc) {
                    running.watches.changed(Object::memory(pe, span), number);
                }
                let Some(block) = &mut running.block else { continue }; // it runs, and sees by itself what it changes
                block.wake(address, span.len as u64, self.begun as u64);
                if running.is_idle {
                    self.wake_block(id);
                }
            }
        }
        let polling = std::mem::take(&mut self.kernels.polling);
        for agent in polling {
            self.look_again(agent, pe, span);
        }
    }

    /// Somebody of a block may go on.
    fn wake_block(&mut self, id: BlockId) {
        let Running { agent, is_idle, .. } = &mut self.kernels.blocks[id];
        *is_idle = false;
        let agent = *agent;
        if matches!(self.agents[agent].state, State::Parked) {
            self.agents[agent].state = State::Running;
            self.woken.push_back(agent);
        }
    }
}
