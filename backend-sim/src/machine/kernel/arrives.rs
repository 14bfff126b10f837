//! Atomics that count, of whose old value a thread only asks whether it is some number: who comes last, or first.
//!
//! `if (atomicAdd(&count, 1) == blocks - 1)`: all blocks but the last get the answer no, and it does not matter in which order they come. So two such
//! atomics commute if both get the answer no, and each of them counts in the same way and asks for the same number. The one that gets the answer yes commutes with none.
//!
//! The answer no tells nothing about others that got it: in some schedule with the same answers, they come later. So a thread that gets it comes after what the word told
//! before all of these, in every run. Who gets the answer yes comes after all of them.

use std::collections::BTreeMap;

use onesided::backend::{AllocId, Span};
use onesided_ptx::{Access, AccessKind, Asks};

use super::super::access::{Arrival, Fold};
use super::super::ids::{AgentId, PeId};
use super::super::tells::Tells;
use super::super::{Machine, Object, Touch};
use crate::race::Heard;

/// What words told before atomics that follow each other and got the answer no.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<(PeId, AllocId, usize), Refusal>);

#[derive(Debug)]
struct Refusal {
    arrival: Arrival,
    tells: Tells,
    /// When the last of them was made.
    last: Option<u64>,
}

impl Refusals {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// How an atomic counts, if it only asks whether it comes last.
pub(super) fn arrival(access: &Access) -> Option<Arrival> {
    let (AccessKind::Atomic(op), Some(Asks { by, number })) = (access.kind, access.asks) else { return None };
    Some(Arrival { op, by, asks: number })
}

impl Arrival {
    /// Whether the one that finds this gets the answer yes.
    pub(super) fn is_last(self, old: u64) -> bool {
        old == u64::from(self.asks)
    }
}

impl Machine {
    /// In the step that was chosen, an atomic counts. `tells`: of a word of shared memory, what it tells since then.
    pub(super) fn touch_arrival(
        &mut self,
        (pe, word): (PeId, Span),
        (old, new): (u64, u64),
        arrival: Arrival,
        tells: Option<Tells>,
    ) {
        let (fold, is_shared) = (Some(Fold::Arrives(arrival)).filter(|_| !arrival.is_last(old)), tells.is_some());
        let touch = match self.touch_of_update((pe, word), (old, new), (None, fold), tells) {
            Touch::Atomic if arrival.is_last(old) => Touch::Last(arrival),
            touch => touch,
        };
        match is_shared {
            true => self.touch(Object::memory(pe, word), touch),
            false => self.touch_memory(pe, word, touch),
        }
        if fold.is_some() && arrival.is_last(new) {
            self.touch(Object::memory(pe, word), Touch::Ends); // the next one gets the answer yes
        }
    }

    /// Whether an atomic that gets the answer no follows another one that got it, with nothing between them.
    pub(super) fn follows_refused(&self, (pe, word): (PeId, Span), arrival: Arrival) -> bool {
        let refusal = self.kernels.refusals.0.get(&(pe, word.alloc, word.start));
        refusal.is_some_and(|refusal| refusal.arrival == arrival && refusal.last == self.races.last_update(pe, word))
    }

    /// What a word tells an agent whose atomic gets the answer no.
    pub(super) fn heard_refused(&mut self, agent: AgentId, (pe, word): (PeId, Span), arrival: Arrival) -> Heard {
        let (key, follows) = ((pe, word.alloc, word.start), self.follows_refused((pe, word), arrival));
        let refusal = match self.kernels.refusals.0.remove(&key).filter(|_| follows) {
            Some(refusal) => refusal,
            None => Refusal { arrival, tells: Tells::of(&mut self.races, pe, word), last: None },
        };
        let heard = self.heard_as_of(agent, pe, &refusal.tells);
        self.kernels.refusals.0.insert(key, refusal);
        heard
    }

    /// It has been made.
    pub(super) fn has_refused(&mut self, (pe, word): (PeId, Span)) {
        let last = self.races.last_update(pe, word);
        if let Some(refusal) = self.kernels.refusals.0.get_mut(&(pe, word.alloc, word.start)) {
            refusal.last = last;
        }
    }

    /// Somebody reads a word: what comes later comes after what was there.
    pub(super) fn reads_between(&mut self, (pe, word): (PeId, Span)) {
        self.kernels.refusals.0.remove(&(pe, word.alloc, word.start));
    }
}
