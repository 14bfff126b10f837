//! Who acts: the host program of each PE, each of its streams, and blocks and threads of kernels.

use std::collections::VecDeque;
use std::sync::Arc;

use onesided::backend::{Against, AllocId, Op, Shape, Span, TeamId, Values, Wait};
use onesided::{At, Cmp, DType};
use onesided_ptx::{Phase, View};

use super::access::{Comparison, Test};
use super::aim::Aim;
use super::claim::Claimed;
use super::ids::{AgentId, BlockId, ClaimId, PeId, ScopeId, TeamIndex};
use super::instance::Collective;
use super::kernel::{Launched, Look};
use super::past::Past;
use super::poll::Polls;
use crate::race::Snapshot;
use crate::request::Reply;

/// One that acts, with what it is doing.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) pe: PeId,
    pub(crate) kind: AgentKind,
    /// The scope in which it issues.
    pub(crate) scope: ScopeId,
    pub(crate) state: State,
    /// The call that the agent is in, if it blocks.
    pub(crate) call: &'static str,
    /// The line of the agent's last call.
    pub(crate) at: Option<At>,
    /// The host's call was chosen, and is to be performed.
    pub(crate) chosen: bool,
    /// What the host's call is going to touch, if a random search wants to know.
    pub(crate) aim: Option<Aim>,
    /// Where the agent stands in the machine's list of choices, if its next step is one.
    pub(crate) ready: Option<u32>,
    /// Transfers issued so far, to name them.
    pub(crate) issued: u32,
    /// Pieces of its own non-blocking puts whose source is not read yet.
    pub(crate) unread: u32,
    /// What the call returns, once it does.
    pub(crate) reply: Reply,
    /// The number of the current operation among those that the PE called, over all of its streams. The host, which calls
    /// when it performs, is always behind them all.
    pub(crate) called: u64,
    /// Work enqueued and not started (streams).
    pub(crate) queue: VecDeque<Work>,
    /// Work enqueued and finished, ever (streams).
    pub(crate) enqueued: u64,
    pub(crate) finished: u64,
    /// Steps that come before whatever the agent does next.
    pub(crate) past: Past,
    /// Source reads of its non-blocking puts: what a flush learns.
    pub(crate) reads: Past,
    /// What the host polls, in a tracked run.
    pub(crate) polls: Polls,
}

/// What an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// The host program.
    Host,
    /// A stream, by its number among the PE's.
    Stream(u32),
    /// A block of a kernel on a stream: its threads run in it.
    Block(InKernel),
    /// A thread of a block that calls NVSHMEM, for itself or for its warp or block.
    Thread(InKernel),
}

/// Where an agent of a kernel belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InKernel {
    /// The stream that the kernel runs on.
    pub(crate) stream: u32,
    pub(crate) block: BlockId,
    /// Its number among the PE's agents, the same in every schedule.
    pub(crate) ordinal: u32,
}

/// What an agent is doing. What it waits for lies here.
#[derive(Debug)]
pub(crate) enum State {
    /// A host that runs its own code, or a stream with nothing to do.
    Running,
    /// Its next step is one of the choices.
    Pending(Pending),
    /// Waits for its memory; a choice while the condition holds.
    Waiting(Condition),
    /// A thread of a kernel: until a phase of an mbarrier is over; a choice while it is.
    AwaitingPhase(Phase),
    /// Waits until what it claimed is complete; then goes on with a collective, if there is one.
    Completing { claim: ClaimId, then: Option<Box<Collective>> },
    /// Waits until the sources of its own non-blocking puts are read.
    Flushing,
    /// Waits until its own transfer is done.
    Transferring,
    /// Waits until the source of its own blocking put is read.
    Reading,
    /// Waits in a collective.
    Inside { team: TeamIndex, seq: u32 },
    /// Its collective went wrong, which is a finding: it never goes on.
    Stuck,
    /// Waits for the other members of a team that `team_init` makes.
    JoiningTeam { unique_id: u64 },
    /// Waits until every PE has registered its part of what its call needs. `peer`: for a host's put or get, the PE that it is about.
    Exchanging { registration: AllocId, peer: Option<PeId> },
    /// Waits until a stream has finished so much.
    Synchronizing { stream: AgentId, upto: u64 },
    /// Waits until a record of an event has been reached.
    AwaitingEvent { event: u32, record: usize },
    /// A host's put or get: waits until the PE's streams have come to what they put to the same PE.
    AwaitingStarts { peer: PeId, is_choice: bool },
    /// Finalizes: waits for its streams and everything in flight.
    Draining,
    /// A stream: until all blocks of its kernel have ended.
    InKernel,
    /// A block whose threads all wait, or a thread that polls: until memory changes that they read.
    Parked,
    /// The program has returned.
    Done,
}

impl State {
    /// Whether there is something to drop.
    #[inline]
    fn owns_memory(&self) -> bool {
        match self {
            State::Waiting(_) | State::Completing { .. } | State::Pending(Pending::Enter(_)) => true,
            State::Running
            | State::Pending(Pending::Call | Pending::Access)
            | State::AwaitingPhase(_)
            | State::Flushing
            | State::Transferring
            | State::Reading
            | State::Inside { .. }
            | State::Stuck
            | State::JoiningTeam { .. }
            | State::Exchanging { .. }
            | State::Synchronizing { .. }
            | State::AwaitingEvent { .. }
            | State::AwaitingStarts { .. }
            | State::Draining
            | State::InKernel
            | State::Parked
            | State::Done => false,
        }
    }
}

/// A step that is a choice.
#[derive(Debug)]
pub(crate) enum Pending {
    /// The host's call, or the operation at the front of a stream's queue.
    Call,
    /// The access or fence of a kernel's thread, at which it was stopped.
    Access,
    /// Entering a collective, after what it had to complete.
    Enter(Box<Collective>),
}

/// Work on a stream.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) what: Task,
    pub(crate) at: At,
    /// Steps before the call that enqueued it.
    pub(crate) past: Past,
    /// What the host knew then.
    pub(crate) known: Option<Snapshot>,
    /// Whether it may race: the number of its mark.
    pub(crate) mark: u32,
}

/// What a stream has to do.
#[derive(Debug)]
pub(crate) enum Task {
    Op {
        op: Op,
        values: OwnedValues,
        /// Its number among the operations that the PE called, over all of its streams.
        called: u64,
        /// For an operation that completes others: what it claimed when it was called.
        claim: Option<ClaimId>,
        /// For a non-blocking operation: who has claimed it before it started.
        claimed: Claimed,
    },
    Record {
        event: u32,
        record: usize,
    },
    WaitEvent {
        event: u32,
        record: usize,
    },
    /// A kernel.
    Launch(Arc<Launched>),
    /// A thread of a kernel looks at words.
    Look(Box<Look>),
}

/// What a wait waits for: each variable in turn, at a moment of its own.
#[derive(Debug)]
pub(crate) struct Condition {
    /// Whose memory it is about.
    pub(crate) pe: PeId,
    pub(crate) wait: Wait,
    pub(crate) values: OwnedValues,
    /// How many variables it has, and the one that it looks at.
    count: usize,
    next: usize,
    comparison: Comparison,
    /// It is no call that waits, but a loop of a kernel around a look, which ends the loop.
    pub(crate) is_loop: bool,
    /// What ends it changes the word.
    pub(crate) takes: bool,
    /// The look that ends it also loads other elements of a vector.
    pub(crate) loads_more: bool,
    /// It held while it waits, and holds no longer: the word was changed before anybody looked.
    pub(crate) has_held: bool,
    /// The value that ends it may matter.
    pub(crate) returns: bool,
}

/// The values of an operation that runs, or waits, after its call has returned. Few operations have any.
#[derive(Debug)]
pub(crate) struct OwnedValues(Option<Box<(Vec<u8>, Vec<bool>)>>);

impl OwnedValues {
    #[inline]
    pub(crate) fn new(values: &Values<'_>) -> OwnedValues {
        let copy = || Box::new((values.bytes.to_vec(), values.skip.to_vec()));
        OwnedValues((!values.is_empty()).then(copy))
    }

    #[inline]
    pub(crate) fn borrow(&self) -> Values<'_> {
        match self.0.as_deref() {
            None => Values::NONE,
            Some((bytes, skip)) => Values { bytes, skip },
        }
    }
}

impl Agent {
    pub(crate) fn new(pe: PeId, kind: AgentKind, scope: ScopeId) -> Agent {
        Agent {
            pe,
            kind,
            scope,
            state: State::Running,
            call: "start",
            at: None,
            chosen: false,
            aim: None,
            ready: None,
            issued: 0,
            unread: 0,
            reply: Reply::Unit,
            called: u64::MAX,
            queue: VecDeque::new(),
            enqueued: 0,
            finished: 0,
            past: Past::default(),
            reads: Past::default(),
            polls: Polls::default(),
        }
    }

    /// Back to the start, keeping allocations.
    pub(crate) fn reset(&mut self, pe: PeId, kind: AgentKind, scope: ScopeId) {
        // field by field: a run of a few steps starts often enough for a copied Agent to show
        self.pe = pe;
        self.kind = kind;
        self.scope = scope;
        self.set(State::Running);
        self.call = "start";
        self.at = None;
        self.chosen = false;
        self.aim = None;
        self.ready = None;
        self.issued = 0;
        self.unread = 0;
        self.answer(Reply::Unit);
        self.called = u64::MAX;
        self.queue.clear();
        self.enqueued = 0;
        self.finished = 0;
        self.past.clear();
        self.reads.clear();
        self.polls.clear();
    }

    #[inline]
    pub(crate) fn is_host(&self) -> bool {
        self.kind == AgentKind::Host
    }

    /// Its number among the PE's agents: the host, then the streams.
    #[inline]
    pub(crate) fn ordinal(&self) -> u32 {
        match self.kind {
            AgentKind::Host => 0,
            AgentKind::Stream(number) => number + 1,
            AgentKind::Block(kernel) | AgentKind::Thread(kernel) => kernel.ordinal,
        }
    }

    /// Its number among the PE's streams, or that of the stream that its kernel runs on.
    pub(crate) fn stream(&self) -> Option<u32> {
        match self.kind {
            AgentKind::Host => None,
            AgentKind::Stream(number) => Some(number),
            AgentKind::Block(kernel) | AgentKind::Thread(kernel) => Some(kernel.stream),
        }
    }

    /// Its call, and where that stands.
    pub(super) fn asked(&self) -> (&'static str, Option<At>) {
        (self.call, self.at)
    }

    #[inline]
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.kind, AgentKind::Stream(_))
    }

    #[inline]
    pub(crate) fn is_in_kernel(&self) -> bool {
        matches!(self.kind, AgentKind::Block(_) | AgentKind::Thread(_))
    }

    /// Changes what it is doing. Most states own nothing: there is nothing to drop, and no drop to call.
    #[inline]
    pub(crate) fn set(&mut self, state: State) {
        match self.state.owns_memory() {
            true => self.state = state,
            false => std::mem::forget(std::mem::replace(&mut self.state, state)),
        }
    }

    /// Sets what its call returns. Likewise: what a call returned before was taken, or is a number.
    #[inline]
    pub(crate) fn answer(&mut self, reply: Reply) {
        match self.reply.owns_memory() {
            true => self.reply = reply,
            false => std::mem::forget(std::mem::replace(&mut self.reply, reply)),
        }
    }

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    /// Whether it still completes what comes before a collective of the team, or is about to enter it.
    pub(crate) fn is_about_to_enter(&self, team: Option<TeamId>) -> bool {
        match &self.state {
            State::Completing { then: Some(collective), .. } | State::Pending(Pending::Enter(collective)) => {
                collective.team() == team
            }
            _ => false,
        }
    }

    /// A stream with nothing left to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.is_running()
    }
}

impl Condition {
    /// On a stream, a signal is compared by the driver or by a kernel: the library decides by what the GPU can do.
    pub(crate) fn new(pe: PeId, wait: Wait, values: OwnedValues, on_stream: bool) -> Condition {
        let comparison =
            Comparison { cmp: wait.cmp, dtype: wait.dtype, or_cyclic: on_stream && wait.signal, view: None };
        let count = Shape::contiguous(wait.vars.len, wait.dtype.size()).count;
        let [is_loop, takes, loads_more, has_held, returns] = [false; 5];
        let mut condition =
            Condition { pe, wait, values, count, next: 0, comparison, is_loop, takes, loads_more, has_held, returns };
        condition.skip();
        condition
    }

    /// That of a loop around a load. `compared`: the part of the variable that is compared, as numbers of what type. `returns`: whether the value that
    /// ends it may matter.
    pub(crate) fn of_loop(pe: PeId, wait: Wait, compared: (View, DType), returns: bool) -> Condition {
        let mut condition = Condition::new(pe, wait, OwnedValues::new(&Values::NONE), false);
        let (view, dtype) = compared;
        let is_all = view.shift == 0 && view.is_plain() && view.mask >= u64::MAX >> (64 - 8 * wait.dtype.size());
        condition.comparison.dtype = dtype;
        condition.comparison.view = (!is_all).then_some(view);
        Condition { is_loop: true, returns, ..condition }
    }

    /// It waits until its comparison is false.
    pub(crate) fn negated(self) -> Condition {
        Condition { comparison: self.comparison.negated(), ..self }
    }

    /// Whether it stays true where its variable only grows, or only shrinks, or looks for a single value.
    pub(crate) fn may_count(&self) -> bool {
        let Comparison { cmp, or_cyclic, view, .. } = self.comparison;
        view.is_none() && (matches!(cmp, Cmp::Eq | Cmp::Le | Cmp::Lt) || matches!(cmp, Cmp::Ge | Cmp::Gt) && !or_cyclic)
    }

    /// How it compares.
    pub(crate) fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// Whether nothing is left to wait for.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.next >= self.count
    }

    /// Whether it waits for another variable behind the one that it looks at now.
    pub(crate) fn has_more(&self) -> bool {
        self.looked_at().any(|i| i > self.next)
    }

    /// The variable that it looks at now.
    #[inline]
    pub(crate) fn variable(&self) -> Span {
        self.variable_at(self.next)
    }

    #[inline]
    fn variable_at(&self, i: usize) -> Span {
        let size = self.wait.dtype.size();
        Span { start: self.wait.vars.start + i * size, len: size, ..self.wait.vars }
    }

    /// The variable that it looked at last, once it has gone on.
    pub(crate) fn last(&self) -> Span {
        let seen = |i: &usize| self.values.0.is_none() || !self.values.borrow().skips(*i);
        self.variable_at((0..self.next).rev().find(seen).unwrap_or(0))
    }

    /// Every variable that it looks at.
    pub(crate) fn variables(&self) -> impl Iterator<Item = Span> + use<'_> {
        self.looked_at().map(|i| self.variable_at(i))
    }

    /// What it looks at, and what with.
    pub(crate) fn tests(&self) -> impl Iterator<Item = Test> + use<'_> {
        self.looked_at().map(move |i| self.test_at(i))
    }

    fn looked_at(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.count).filter(|&i| self.values.0.is_none() || !self.values.borrow().skips(i))
    }

    /// Whether a value of that variable compares true.
    #[inline]
    pub(crate) fn is_satisfied_by(&self, value: u64) -> bool {
        self.comparison.holds(value, self.wanted())
    }

    /// What it looks at now.
    pub(crate) fn test(&self) -> Test {
        self.test_at(self.next)
    }

    fn test_at(&self, i: usize) -> Test {
        let (variable, wanted) = (self.variable_at(i), self.wanted_at(i));
        Test { pe: self.pe, variable, comparison: self.comparison, wanted, returns: self.returns }
    }

    /// The value that the variable is compared with.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted_at(self.next)
    }

    fn wanted_at(&self, i: usize) -> u64 {
        match self.wait.against {
            Against::One(value) => value,
            Against::Each => self.values.borrow().bits(i, self.wait.dtype.size()),
        }
    }

    /// The variable was seen to compare true: on to the next.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.next += 1;
        self.has_held = false;
        self.skip();
    }

    fn skip(&mut self) {
        if self.values.0.is_none() {
            return;
        }
        while self.next < self.count && self.values.borrow().skips(self.next) {
            self.next += 1;
        }
    }
}

/// The number that the bits of an element stand for. Only integers can be waited on.
pub(crate) fn signed(dtype: DType, bits: u64) -> i128 {
    match dtype {
        DType::I8 => i128::from(bits as i8),
        DType::I16 => i128::from(bits as i16),
        DType::I32 => i128::from(bits as i32),
        DType::I64 => i128::from(bits as i64),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => i128::from(bits),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => i128::from(bits),
    }
}
