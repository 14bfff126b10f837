//! An operation begins. Its description decides what happens; whether that happens at once (`immediate.rs`) or as a transfer
//! (`relaxed.rs`) is decided here, and nowhere else.

use onesided::backend::{self, AllocId, CollectiveKind, Effect, Op, Order, Values};
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

impl Machine {
    /// A host performs an operation.
    #[inline]
    pub(super) fn issue(&mut self, host: AgentId, op: &Op, values: &Values<'_>, at: At) -> Progress {
        let plain = !self.mode.relaxed && !self.races.is_on();
        if plain && let Effect::Transfer(transfer) = op.effect() {
            return self.transfer_now(host, &transfer); // the hottest path: most of the description folds away here
        }
        match (op.effect(), self.mode.relaxed) {
            (Effect::Transfer(_), false) => self.issue_observed(host, op, at),
            (Effect::Transfer(_), true) => self.issue_relaxed(host, op, at),
            _ => self.issue_other(host, op, values, at),
        }
    }

    /// A transfer in an in-order run that looks for races.
    #[inline(never)]
    fn issue_observed(&mut self, host: AgentId, op: &Op, at: At) -> Progress {
        let Effect::Transfer(transfer) = op.effect() else { unreachable!("it is one") };
        self.observe_now(host, &transfer, (op.name(), at));
        self.transfer_now(host, &transfer)
    }

    /// A transfer in a relaxed run. A host shares its scope with nobody, so this touches no scope.
    #[inline(never)]
    fn issue_relaxed(&mut self, host: AgentId, op: &Op, at: At) -> Progress {
        let effect = op.effect();
        let Effect::Transfer(transfer) = &effect else { unreachable!("it is one") };
        self.launch(host, transfer, (op.name(), at))
    }

    fn issue_other(&mut self, host: AgentId, op: &Op, values: &Values<'_>, at: At) -> Progress {
        let effect = op.effect();
        if let Effect::Wait(_) | Effect::FetchSignal { .. } | Effect::Fill { .. } = effect {
            return self.begin(host, op, effect, values, at, None);
        }
        let pe = self.agents[host].pe;
        let completes = self.completes(effect);
        if !self.mode.relaxed && self.pes[pe].unstarted == 0 && !self.races.has_nbi(pe) {
            // in order, nothing is in flight: nothing is to be claimed
            let is_fence = effect == Effect::Order(Order::Fence);
            if completes.is_some() || matches!(effect, Effect::Collective(_)) {
                self.lint_order(host, effect, (op.name(), at));
                if is_fence {
                    self.races.fence(host, None);
                }
                if let Some(completes) = completes {
                    self.races.complete(host, completes);
                }
                return match effect {
                    Effect::Collective(_) => self.enter_now(host, &Collective::Op(*op)),
                    _ => Progress::Done,
                };
            }
        }
        let claim = completes.and_then(|completes| self.claim_at_call(host, completes));
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
        self.lint_order(agent, effect, (op.name(), at));
        match effect {
            Effect::Transfer(transfer) => {
                self.touch_scope(agent, &transfer);
                match self.mode.relaxed {
                    true => self.launch(agent, &transfer, (op.name(), at)),
                    false => {
                        self.observe_now(agent, &transfer, (op.name(), at));
                        self.transfer_now(agent, &transfer)
                    }
                }
            }
            Effect::FetchSignal { word } => {
                let pe = self.agents[agent].pe;
                self.observe(agent, pe, word, How::AtomicRead, word.len, (op.name(), at));
                self.lint(&Notice::Fetched { agent, pe, span: word, asked: (op.name(), at) });
                self.races.acquire(agent, pe, word, false);
                self.touch_memory(pe, word, Touch::Read);
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
                let on_stream = self.agents[agent].is_stream();
                self.wait(agent, Condition::new(wait, OwnedValues::new(values), on_stream), (op.name(), at))
            }
            Effect::Order(Order::Flush) => self.flush(agent),
            Effect::Order(order @ (Order::Fence | Order::Quiet)) => {
                if order == Order::Fence {
                    let Agent { scope, .. } = self.agents[agent];
                    self.races.fence(agent, claim);
                    match self.agents[agent].is_in_kernel() && self.orders_by_thread() {
                        true => self.flight.fence_of_thread(scope),
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
        if self.noting && self.completes(effect).is_some() {
            self.touch(Object::Claims(self.agents[host].pe), Touch::Write);
        }
    }

    /// Notes that an agent issues into the scope that it shares with others. The order of two issues matters only where
    /// transfers are delivered in order; the order of an issue and of what orders it or completes it always does.
    fn touch_scope(&mut self, agent: AgentId, transfer: &backend::Transfer) {
        if self.noting && !self.agents[agent].is_host() {
            let ordered = self.promises.in_order && !transfer.nbi;
            let touch = if ordered { Touch::Write } else { Touch::Add { by: 1 } };
            self.touch(Object::Scope(self.agents[agent].scope), touch);
        }
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
