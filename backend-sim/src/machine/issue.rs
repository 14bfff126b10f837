//! An operation begins. Its description decides what happens; whether that happens at once (`immediate.rs`) or as a transfer
//! (`relaxed.rs`) is decided here, and nowhere else.

use onesided::backend::{self, AllocId, CollectiveKind, Effect, Listener, Op, Order, Values};
use onesided::{At, DType};

use super::agent::{Agent, Condition, OwnedValues, State};
use super::claim::Completes;
use super::ids::{AgentId, ClaimId};
use super::instance::Collective;
use super::starts::peer_of;
use super::{Machine, Object, Progress, Touch};
use crate::lint::Notice;
use crate::race::How;
use crate::request::{Call, Reply};

/// A host's operation in an in-order run: the hottest path, of which each kind of operation has its own copy.
struct InOrder<'a> {
    machine: &'a mut Machine,
    host: AgentId,
    op: &'a Op,
    values: &'a Values<'a>,
    at: At,
}

impl Listener for InOrder<'_> {
    type Answer = Progress;

    #[inline(always)]
    fn hear(self, effect: Effect) -> Progress {
        let InOrder { machine, host, op, values, at } = self;
        match effect {
            Effect::Transfer(transfer) => {
                if machine.races.is_on() {
                    machine.observe_now(host, &transfer, (op.name(), at));
                }
                machine.transfer_now(host, &transfer)
            }
            // in order, nothing is in flight: mostly nothing is to be claimed
            Effect::Order(Order::Fence | Order::Quiet) | Effect::Collective(_) if !machine.has_unclaimed(host) => {
                machine.complete_now(host, op, effect, at)
            }
            Effect::Wait(_) | Effect::FetchSignal { .. } | Effect::Fill { .. } => {
                machine.begin(host, op, effect, values, at, None)
            }
            Effect::Order(_) | Effect::Collective(_) => machine.issue_completing(host, op, values, at),
        }
    }
}

/// A host's operation in a relaxed run: likewise.
struct Relaxed<'a>(InOrder<'a>);

impl Listener for Relaxed<'_> {
    type Answer = Progress;

    #[inline(always)]
    fn hear(self, effect: Effect) -> Progress {
        let Relaxed(InOrder { machine, host, op, values, at }) = self;
        match effect {
            Effect::Transfer(transfer) => machine.launch(host, &transfer, (op.name(), at)),
            Effect::Wait(_) | Effect::FetchSignal { .. } | Effect::Fill { .. } => {
                machine.begin(host, op, effect, values, at, None)
            }
            Effect::Order(_) | Effect::Collective(_) => machine.issue_completing(host, op, values, at),
        }
    }
}

impl Machine {
    /// A host performs an operation.
    pub(super) fn issue(&mut self, host: AgentId, op: &Op, values: &Values<'_>, at: At) -> Progress {
        match self.mode.needs.relaxed {
            true => self.issue_relaxed(host, op, values, at),
            false => op.describe_to(InOrder { machine: self, host, op, values, at }),
        }
    }

    #[inline(never)]
    fn issue_relaxed(&mut self, host: AgentId, op: &Op, values: &Values<'_>, at: At) -> Progress {
        op.describe_to(Relaxed(InOrder { machine: self, host, op, values, at }))
    }

    /// Whether a call that completes may have something to claim, in an in-order run.
    #[inline(always)] // as its caller
    fn has_unclaimed(&self, host: AgentId) -> bool {
        let pe = self.agents[host].pe;
        self.pes[pe].unstarted > 0 || self.races.has_nbi(pe)
    }

    /// A host orders or completes what it has issued, of which nothing is left to wait for; or it enters a collective.
    #[inline(always)] // as its caller
    fn complete_now(&mut self, host: AgentId, op: &Op, effect: Effect, at: At) -> Progress {
        self.lint_order(host, effect, op, at);
        if effect == Effect::Order(Order::Fence) {
            self.races.fence(host, None, Some(at));
        }
        if let Some(completes) = self.completes(effect) {
            self.races.complete(host, completes);
        }
        match effect {
            Effect::Collective(_) => self.enter_now(host, &Collective::Op(*op)),
            _ => Progress::Done,
        }
    }

    /// A host completes, orders or meets: it claims what is outstanding, and waits.
    fn issue_completing(&mut self, host: AgentId, op: &Op, values: &Values<'_>, at: At) -> Progress {
        let effect = op.effect();
        let claim = self.completes(effect).and_then(|completes| self.claim_at_call(host, completes));
        self.touch_claims(host, effect);
        self.begin(host, op, effect, values, at, claim)
    }

    /// An agent, host or stream, performs an operation. What it completes, it has claimed.
    pub(super) fn begin(
        &mut self,
        agent: AgentId,
        op: &Op,
        effect: Effect,
        values: &Values<'_>,
        at: At,
        claim: Option<ClaimId>,
    ) -> Progress {
        self.lint_order(agent, effect, op, at);
        match effect {
            Effect::Transfer(transfer) => {
                self.touch_scope(agent, &transfer);
                match self.mode.needs.relaxed {
                    true => self.launch(agent, &transfer, (op.name(), at)),
                    false => {
                        if self.races.is_on() {
                            self.observe_now(agent, &transfer, (op.name(), at));
                        }
                        self.transfer_now(agent, &transfer)
                    }
                }
            }
            Effect::FetchSignal { word } => {
                let pe = self.agents[agent].pe;
                self.observe(agent, pe, word, How::AtomicRead, word.len, (op.name(), at));
                self.lint(|| Notice::Fetched { agent, pe, span: word, asked: (op.name(), at) });
                self.lint_look(agent, (pe, word));
                let ending = self.looks_by_call(agent, (pe, word));
                self.hears_by_call(agent, ending, (pe, word), false);
                self.call_has_read(agent, (pe, word));
                self.has_polled(agent, pe, word, false);
                let value = self.heap.load(pe, word);
                self.answer(agent, Reply::Value(value))
            }
            Effect::Fill { dst } => {
                let pe = self.agents[agent].pe;
                self.observe(agent, pe, dst, How::Write, op.dtype().map_or(1, DType::size), (op.name(), at));
                self.write(pe, dst, values.bytes);
                Progress::Done
            }
            Effect::Wait(wait) => {
                let Agent { pe, .. } = self.agents[agent];
                let on_stream = self.agents[agent].is_stream();
                self.wait(agent, Condition::new(pe, wait, OwnedValues::new(values), on_stream), (op.name(), at))
            }
            Effect::Order(Order::Flush) => self.flush(agent),
            Effect::Order(order @ (Order::Fence | Order::Quiet)) => {
                if order == Order::Fence {
                    let Agent { scope, .. } = self.agents[agent];
                    self.races.fence(agent, claim, self.agents[agent].at);
                    match self.agents[agent].is_in_kernel() && self.orders_by_thread() {
                        true => self.flight.order_by_thread(scope),
                        false => self.flight.fence(scope, claim, !self.agents[agent].is_stream()),
                    }
                }
                let completes = self.completes(effect).expect("a fence and a quiet complete");
                self.complete(agent, claim, completes, None)
            }
            Effect::Collective(backend::Collective { team: _, kind }) => match kind {
                CollectiveKind::Barrier => self.complete(agent, claim, Completes::Scope, Some(&Collective::Op(*op))),
                CollectiveKind::Sync => self.complete(agent, claim, Completes::Stores, Some(&Collective::Op(*op))),
                CollectiveKind::Data(_) => self.enter_now(agent, &Collective::Op(*op)),
            },
        }
    }

    /// What an operation completes before it ends, if it is one that completes.
    #[inline(always)] // as its callers
    pub(super) fn completes(&self, effect: Effect) -> Option<Completes> {
        match effect {
            Effect::Order(Order::Quiet) => Some(Completes::Scope),
            Effect::Order(Order::Fence) if self.promises.fence_completes => Some(Completes::Delivery),
            Effect::Order(Order::Fence) => Some(Completes::Nothing),
            Effect::Order(Order::Flush) => None,
            Effect::Collective(backend::Collective { kind: CollectiveKind::Barrier, .. }) => Some(Completes::Scope),
            Effect::Collective(backend::Collective { kind: CollectiveKind::Sync, .. }) => Some(Completes::Stores),
            Effect::Collective(backend::Collective { kind: CollectiveKind::Data(_), .. }) => None,
            Effect::Transfer(_) | Effect::FetchSignal { .. } | Effect::Fill { .. } | Effect::Wait(_) => None,
        }
    }

    /// Notes that the step looks at what the PE has claimed: see [`Machine::is_choice`].
    pub(super) fn touch_claims(&mut self, host: AgentId, effect: Effect) {
        if self.in_chosen_step && self.completes(effect).is_some() {
            self.touch(Object::Claims(self.agents[host].pe), Touch::Write);
        }
    }

    /// Notes that an agent issues into the scope that it shares with others. The order of two issues matters only where
    /// transfers are delivered in order, also if the threads do not follow each other; the order of an issue and of what orders it or completes it
    /// always does.
    pub(super) fn touch_scope(&mut self, agent: AgentId, transfer: &backend::Transfer) {
        if self.in_chosen_step && !self.agents[agent].is_host() {
            let takes_turn = self.promises.in_order && !transfer.nbi;
            let ordered = takes_turn && !self.takes_turns_by_thread(agent);
            let touch = if ordered { Touch::Write } else { Touch::Add { by: 1 } };
            self.touch(Object::Scope(self.agents[agent].scope), touch);
        }
    }

    /// An agent's transfer takes its turn among those of its scope. Returns whether the turn is behind those alone that the agent comes after.
    pub(super) fn takes_turns_by_thread(&mut self, agent: AgentId) -> bool {
        self.agents[agent].is_in_kernel() && self.orders_by_thread()
    }

    /// Blocks a host whose call needs memory that is not registered on every PE yet: the handles are exchanged then.
    #[cold]
    pub(super) fn exchanges(&mut self, host: AgentId, call: &Call<'_>) -> bool {
        self.learn_registrations(host);
        let me = self.agents[host].pe;
        let missing = match call {
            Call::Issue { op, stream: None, .. } => self.missing(op),
            Call::Read { src: span, pe, .. } | Call::Write { dst: span, pe, .. } if *pe != me.0 => {
                Some(span.alloc).filter(|&alloc| self.heap.is_incomplete(alloc))
            }
            Call::MulticastRead { src: span, .. } | Call::MulticastWrite { dst: span, .. } => {
                Some(span.alloc).filter(|&alloc| self.heap.is_incomplete(alloc))
            }
            _ => None,
        };
        let Some(alloc) = missing else { return false };
        self.agents[host].call = call.name();
        self.block(host, State::Exchanging { registration: alloc, peer: peer_of(call) });
        true
    }

    /// Memory of others that an operation needs and that is not registered on every PE yet.
    pub(super) fn missing(&self, op: &Op) -> Option<AllocId> {
        let mut others = op.effect().accesses().filter(|access| access.whose != backend::Whose::Mine);
        others.find_map(|access| Some(access.span.alloc).filter(|&alloc| self.heap.is_incomplete(alloc)))
    }
}
