//! Additions of both signs to words that somebody waits for, in a proof.
//!
//! Additions commute though somebody waits for the word, as long as each can only help the wait: what is added makes `>=` true, and what is
//! taken away makes `<=` true (`assumed.rs`). An addition of the other sign does no harm where it comes before the wait's beginning in every
//! schedule, or behind its end: a barrier may add to its own word, and wait until others have taken that away again. It does harm where
//! it comes while somebody waits. If a wait has ended before it, and could as well have ended behind it, the two do not commute, and the
//! search visits that.

use std::collections::BTreeMap;

use onesided::{Cmp, DType};

use super::assumed::Word;
use super::ids::AgentId;
use super::past::Past;
use super::steady::{Doubt, Waited};

/// The waits and the additions of the current run.
#[derive(Debug, Default)]
pub(super) struct Signs {
    waits: BTreeMap<Word, Vec<(AgentId, Waited)>>,
    sums: BTreeMap<Word, Sum>,
}

/// The additions to a word.
#[derive(Debug, Default)]
struct Sum {
    /// The steps that add, and those that take away.
    steps: [Vec<usize>; 2],
    /// All that was added and taken away.
    moved: u128,
}

impl Waited {
    /// Whether a counter of so many bytes, which has been as large as this, has exceeded what this waits for with `==`. A negative value is
    /// larger than others here, so nothing is assumed of counters that begin or end below 0.
    pub(super) fn is_passed(&self, largest: u64, len: usize) -> bool {
        let wants_negative = self.wanted >> (8 * len - 1) & 1 == 1;
        self.comparison.cmp == Cmp::Eq && (wants_negative || largest > self.wanted)
    }

    /// Whether it compares signed numbers by size.
    pub(super) fn is_signed(&self) -> bool {
        let is_signed = matches!(self.comparison.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        is_signed && self.comparison.cmp != Cmp::Eq
    }

    /// Whether it may end when something has been added, or taken away.
    fn is_helped(&self, takes_away: bool) -> bool {
        matches!(self.comparison.cmp, Cmp::Le | Cmp::Lt) == takes_away
    }
}

impl Signs {
    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.waits.clear();
        self.sums.clear();
    }

    /// An agent begins to wait for a word. `past`: what that comes after, if that is known. Returns the additions that may harm it, if they can come later.
    pub(super) fn begins(
        &mut self,
        word: Word,
        (agent, waited): (AgentId, Waited),
        past: Option<&Past>,
    ) -> impl Iterator<Item = Doubt> {
        self.waits.entry(word).or_default().push((agent, waited));
        let harmful = usize::from(waited.is_helped(false));
        let steps = self.sums.get(&word).into_iter().flat_map(move |sum| &sum.steps[harmful]);
        let may_be_later = move |step: &&usize| !past.is_some_and(|past| past.contains(**step));
        steps.filter(may_be_later).map(move |&step| Doubt::added_before(word, step, past))
    }

    /// The wait of an agent has ended.
    pub(super) fn ends(&mut self, word: Word, agent: AgentId) {
        if let Some(waits) = self.waits.get_mut(&word) {
            waits.retain(|(other, _)| *other != agent);
        }
    }

    /// A step has added to a word of so many bytes, which has this value now. Returns whether that harms a wait, or could exceed the word in another order.
    pub(super) fn adds(&mut self, word: Word, step: usize, (by, value): (i64, i64), bytes: usize) -> bool {
        let takes_away = by < 0;
        let sum = self.sums.entry(word).or_default();
        sum.steps[usize::from(takes_away)].push(step);
        sum.moved += u128::from(by.unsigned_abs());
        let exceeds = u128::from(value.unsigned_abs()) + sum.moved > (1 << (8 * bytes - 1)) - 1;
        let harms = |(_, waited): &(AgentId, Waited)| !waited.is_helped(takes_away);
        exceeds && !sum.steps[1].is_empty() || self.waits.get(&word).into_iter().flatten().any(harms)
    }
}
