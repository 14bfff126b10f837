//! What the race detector and the lints are told of operations: each access with whoever makes it, what it releases or acquires.

use std::ops::Range;

use onesided::backend::{
    self, AllocId, AmoOp, Collective, CollectiveKind, Effect, Intended, Layout, Moves, Op, Order, Shape, SignalUpdate,
    Span, Until,
};
use onesided::{At, SignalOp};

use super::Machine;
use super::ids::{AgentId, PeId};
use super::relaxed::Asked;
use super::transfer::{Kind, Transfer, Unit, UnitStep, parts};
use crate::config::Loads;
use crate::lint::{Lint, Lints, Notice, Ordering, Strong, Update};
use crate::race::{Detector, How, IntendedRace, Lane, Ticket};

impl Machine {
    /// An agent issues a transfer, and races are looked for.
    #[inline(always)] // on the hottest path
    pub(super) fn observe_issue(&mut self, agent: AgentId, transfer: &backend::Transfer, asked: Asked) -> Ticket {
        let lane = match (transfer.moves, transfer.nbi) {
            (Moves::Get { .. } | Moves::Fetch, false) => Lane::Steps,
            (Moves::Get { .. } | Moves::Fetch, true) => Lane::Gets,
            (Moves::Put { .. } | Moves::Value(_) | Moves::Nothing | Moves::Amo { .. }, false) => Lane::Puts,
            (Moves::Put { .. } | Moves::Value(_) | Moves::Nothing | Moves::Amo { .. }, true) => Lane::Nbi,
        };
        let arrives = transfer.until == Until::SourceRead && transfer.shape.count > 0;
        let peer = PeId(transfer.peer);
        if transfer.signal.is_some() || matches!(transfer.moves, Moves::Amo { .. }) {
            self.races.synchronizes(agent, Some(peer), asked); // whoever knows the transfer knows this
        }
        let ticket = self.races.issue_now(agent, peer, lane, arrives, asked);
        if self.looks_for_all_lints() {
            let (transfer, ticket) = (&transfer.clone(), &ticket); // the description itself stays in registers
            self.lint(|| Notice::Issued { transfer, ticket });
        }
        ticket
    }

    /// A non-blocking operation is outstanding from its issue on.
    fn observe_outstanding(&mut self, ticket: &Ticket, nbi: bool) {
        if nbi {
            self.races.outstanding(ticket, self.starting.unwrap_or_default());
        }
    }

    /// An agent issues a transfer that will be in flight, and races are looked for.
    #[inline(always)] // on a hot path
    pub(super) fn observe_flying(&mut self, agent: AgentId, transfer: &backend::Transfer, asked: Asked) -> Ticket {
        let ticket = self.observe_issue(agent, transfer, asked);
        self.observe_outstanding(&ticket, transfer.nbi);
        ticket
    }

    /// The whole transfer happens at once, and races are looked for.
    #[inline(always)] // on the hottest path, where most of the description folds away
    pub(super) fn observe_now(&mut self, agent: AgentId, transfer: &backend::Transfer, asked: Asked) {
        let ticket = self.observe_issue(agent, transfer, asked);
        let me = self.agents[agent].pe;
        let backend::Transfer { moves, remote, shape, signal, nbi, until, .. } = *transfer;
        let peer = PeId(transfer.peer);
        let all = 0..shape.count;
        match moves {
            Moves::Put { src } => {
                self.observe_read(&ticket, (me, src), shape, all.clone());
                self.observe_write(&ticket, How::Deliver, (peer, remote), shape, all);
            }
            Moves::Value(_) => self.observe_write(&ticket, How::Deliver, (peer, remote), shape, all),
            Moves::Nothing => {}
            Moves::Get { dst } => {
                self.observe_read(&ticket, (peer, remote), shape, all.clone());
                self.observe_write(&ticket, How::Write, (me, dst), shape, all);
            }
            Moves::Fetch => self.observe_load(&ticket, (peer, remote), shape, all),
            Moves::Amo { op, value, cond, .. } => {
                let waiter = (until == Until::Delivered).then_some(agent);
                self.observe_amo(&ticket, (op, value, cond), (peer, remote), waiter);
            }
        }
        if let Some(update) = signal {
            self.observe_signal(&ticket, peer, update);
        }
        self.races.put_returns(agent, &ticket, peer);
        self.observe_outstanding(&ticket, nbi);
    }

    /// A transfer in flight takes a step.
    pub(super) fn observe_unit(&mut self, Unit { transfer: id, piece, step }: Unit) {
        let transfer = self.flight.get(id);
        let Some(ticket) = transfer.ticket.clone() else { return };
        let Transfer { kind, dst_pe, src_pe, dst, src, shape, signal, waiter, .. } = *transfer;
        if step == UnitStep::Signal {
            if let Some(update) = signal {
                self.observe_signal(&ticket, dst_pe, update);
            }
            return;
        }
        let elements = transfer.elements(piece);
        if step == UnitStep::Read {
            return self.observe_read(&ticket, (src_pe, src), shape, elements);
        }
        match kind {
            Kind::Put => {
                // a wait may look at what a put delivers, and not at parts of collectives
                let how = if transfer.part.is_some() { How::Write } else { How::Deliver };
                self.observe_write(&ticket, how, (dst_pe, dst), shape, elements);
            }
            Kind::Store if !self.agents[ticket.agent()].is_in_kernel() => {
                self.observe_write(&ticket, How::Write, (dst_pe, dst), shape, elements);
            }
            Kind::Store | Kind::Strong { .. } => {} // observed when a kernel issued it
            Kind::Get => {
                self.observe_read(&ticket, (src_pe, src), shape, elements.clone());
                self.observe_write(&ticket, How::Write, (dst_pe, dst), shape, elements);
            }
            Kind::Fetch => self.observe_load(&ticket, (src_pe, src), shape, elements),
            Kind::Load { .. } => {
                for span in parts(src, shape.size, shape.src_stride, elements) {
                    self.races.load(&ticket, src_pe, span, shape.size);
                    self.lint(|| Notice::Loaded { ticket: &ticket, pe: src_pe, span });
                }
            }
            Kind::Amo { op, value, cond } => {
                let waiter = waiter.map(|(agent, _)| agent);
                self.observe_amo(&ticket, (op, value, cond), (dst_pe, dst), waiter);
            }
            Kind::Combine { .. } | Kind::Spread => {}
        }
    }

    /// A transfer reads elements of its source.
    #[inline(always)] // as its callers
    pub(super) fn observe_read(
        &mut self,
        ticket: &Ticket,
        (pe, src): (PeId, Span),
        shape: Shape,
        elements: Range<usize>,
    ) {
        for part in parts(src, shape.size, shape.src_stride, elements) {
            self.races.transfer(ticket, pe, part, How::Read, shape.size);
        }
        self.lint(|| Notice::Copied { ticket, pe, span: src });
    }

    /// A transfer reads elements for the agent that issued it.
    #[inline(always)] // as its callers
    fn observe_load(&mut self, ticket: &Ticket, (pe, src): (PeId, Span), shape: Shape, elements: Range<usize>) {
        for span in parts(src, shape.size, shape.src_stride, elements) {
            self.races.transfer(ticket, pe, span, How::Read, shape.size);
            self.lint(|| Notice::Loaded { ticket, pe, span });
        }
    }

    /// A transfer writes elements of its target.
    #[inline(always)] // as its callers
    pub(super) fn observe_write(
        &mut self,
        ticket: &Ticket,
        how: How,
        (pe, dst): (PeId, Span),
        shape: Shape,
        elements: Range<usize>,
    ) {
        for part in parts(dst, shape.size, shape.dst_stride, elements) {
            self.races.transfer(ticket, pe, part, how, shape.size);
        }
        self.lint(|| Notice::Written { pe, span: dst });
    }

    fn observe_signal(&mut self, ticket: &Ticket, pe: PeId, update: SignalUpdate) {
        let SignalUpdate { word, op, value } = update;
        let signal = if op == SignalOp::Set { Update::Set(value) } else { Update::Add(value) };
        self.lint_update(ticket, pe, word, signal);
        self.races.transfer(ticket, pe, word, How::AtomicUpdate, word.len);
        self.races.release(ticket, pe, word, op == SignalOp::Set);
    }

    /// An atomic is about to reach its word. `waiter`: the agent that its old value goes to.
    pub(super) fn observe_amo(
        &mut self,
        ticket: &Ticket,
        (op, value, cond): (AmoOp, u64, u64),
        (pe, word): (PeId, Span),
        waiter: Option<AgentId>,
    ) {
        // a compare_swap that finds another value leaves nothing that could tell of it
        let only_reads = match op {
            AmoOp::Fetch => true,
            AmoOp::CompareSwap => {
                let there = self.heap.load(pe, word);
                op.apply(there, !there, cond, word.len) == there
            }
            _ => false,
        };
        if !only_reads {
            let update = match op {
                AmoOp::Add => Update::Add(value),
                AmoOp::Set => Update::Set(value),
                AmoOp::Fetch | AmoOp::And | AmoOp::Or | AmoOp::Xor | AmoOp::CompareSwap => Update::Other,
            };
            self.lint_update(ticket, pe, word, update);
        }
        let how = if only_reads { How::AtomicRead } else { How::AtomicUpdate };
        self.races.transfer(ticket, pe, word, how, word.len);
        if let Some(agent) = waiter {
            self.lint_look(agent, (pe, word));
            self.races.acquire(agent, pe, word, false);
        }
        if !only_reads {
            let replaces = op == AmoOp::Set && waiter.is_none(); // a swap has read what it replaces
            self.races.release(ticket, pe, word, replaces);
        }
        if let Some(agent) = waiter {
            self.races.arrived(agent, ticket, pe);
        }
    }

    /// An agent reads or writes memory itself.
    #[inline(always)] // on a hot path, where mostly nobody wants to know
    pub(super) fn observe(
        &mut self,
        agent: AgentId,
        pe: PeId,
        span: Span,
        how: How,
        size: usize,
        asked: (&'static str, At),
    ) {
        if self.races.is_on() {
            self.observe_access(agent, pe, span, how, size, asked);
        }
    }

    fn observe_access(&mut self, agent: AgentId, pe: PeId, span: Span, how: How, size: usize, asked: Asked) {
        self.races.touch(agent, pe, span, how, size, asked);
        if self.lints.is_none() {
            return;
        }
        match how {
            How::Read => self.lint(|| Notice::Read { agent, pe, span, asked }),
            How::Write => self.lint(|| Notice::Written { pe, span }),
            How::Deliver | How::AtomicRead | How::AtomicUpdate | How::AtomicFetch | How::Wait => {}
        }
    }
}

/// # Races that are meant
impl Machine {
    /// What an agent does from now on is marked, or is not. Returns the mark until now.
    pub(crate) fn intends(&mut self, agent: AgentId, mark: Option<Intended>) -> Option<Intended> {
        self.races.intend(agent, mark)
    }

    /// What the program has marked as free to race.
    pub(crate) fn intended(&self) -> Vec<IntendedRace> {
        self.races.intended()
    }
}

/// # Lints
impl Machine {
    /// Whether all lints are looked for.
    #[inline]
    pub(super) fn looks_for_all_lints(&self) -> bool {
        self.lints.as_ref().is_some_and(|lints| lints.are_all())
    }

    /// A kernel is launched. A search of all schedules says whether strong loads can miss what none of them shows.
    pub(super) fn lints_of_kernels(&mut self) {
        if self.mode.needs.tracking && self.mode.races {
            self.lints.get_or_insert_with(|| Box::new(Lints::new(false, Loads::Newest)));
        }
    }

    /// The lints that were found, and whether strong loads were no longer looked at from some moment on.
    pub(crate) fn lints(&mut self) -> (Vec<Lint>, bool) {
        self.lints.as_mut().map_or_else(Default::default, |lints| lints.found(&mut self.races))
    }

    /// Tells the lints of something, where they are looked for. Elsewhere the notice is not made.
    #[inline(always)] // so that what the notice needs is not put into memory for it
    pub(super) fn lint<'a>(&mut self, notice: impl FnOnce() -> Notice<'a>) {
        if let Some(lints) = &mut self.lints {
            lints.notice(&notice(), &mut self.races);
        }
    }

    /// A call of an agent has looked at a word, and goes on with what it has found.
    #[inline]
    pub(super) fn lint_look(&mut self, agent: AgentId, place: (PeId, Span)) {
        look(&mut self.lints, &mut self.races, agent, place, self.agents[agent].asked());
    }

    /// Memory is allocated.
    pub(super) fn lint_made(&mut self, agent: AgentId, alloc: AllocId, layout: Layout, at: At) {
        if self.looks_for_all_lints() && !layout.zeroed {
            let pes: Vec<PeId> = self.pes.ids().collect();
            self.lint(|| Notice::Made { agent, alloc, bytes: layout.bytes, pes: &pes, asked: ("alloc", at) });
        }
    }

    /// A word is about to be updated.
    fn lint_update(&mut self, ticket: &Ticket, pe: PeId, word: Span, update: Update) {
        if self.lints.is_some() {
            let before = self.heap.load(pe, word);
            self.lint(|| Notice::Updated { ticket, pe, word, update, before });
        }
    }

    /// An agent performs an operation that may order others.
    #[inline(always)] // on a hot path, where mostly nobody wants to know
    pub(super) fn lint_order(&mut self, agent: AgentId, effect: Effect, op: &Op, at: At) {
        if self.lints.is_some() {
            self.lint_order_now(agent, effect, (op.name(), at));
        }
    }

    fn lint_order_now(&mut self, agent: AgentId, effect: Effect, asked: Asked) {
        let order = match effect {
            Effect::Order(Order::Fence) => Ordering::Fence,
            Effect::Order(Order::Quiet) => Ordering::Quiet,
            Effect::Collective(Collective { kind: CollectiveKind::Barrier, .. }) => Ordering::Barrier,
            Effect::Collective(Collective { kind: CollectiveKind::Sync, .. }) => Ordering::Sync,
            _ => return,
        };
        self.lint(|| Notice::Orders { agent, order, asked });
    }
}

/// Tells the lints that a call of an agent has looked at a word.
#[inline]
pub(super) fn look(
    lints: &mut Option<Box<Lints>>,
    races: &mut Detector,
    agent: AgentId,
    place: (PeId, Span),
    (call, at): (&'static str, Option<At>),
) {
    if let Some((lints, at)) = lints.as_mut().zip(at) {
        lints.notice(&Notice::Strong(Strong::look(agent, races.last_step(agent), place, (call, at))), races);
    }
}
