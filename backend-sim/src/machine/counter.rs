//! Counter words: words that are only added to, and only waited for with `>=` or `>`.
//!
//! Two additions to a word commute. The search of a proof does not exchange them. It then finds, for each wait, every *set* of
//! additions that can come before it, one addition more or less at a time. That is all there is as long as a larger value never
//! ends a wait later. So it is assumed of every word, until a run shows another kind of update or wait on it: then the search
//! starts again without the assumption for that word.

use std::collections::BTreeSet;
use std::rc::Rc;

use onesided::Cmp;
use onesided::backend::{AllocId, Span};

use super::Touch;
use super::agent::Condition;
use super::ids::PeId;

/// A word of a PE's memory: its first byte.
pub(crate) type Word = (PeId, AllocId, usize);

/// Which words a run takes for counters, and what it saw of them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Words that are none; `None`: nothing is assumed.
    given_up: Option<Rc<BTreeSet<Word>>>,
    /// Words that were added to.
    added: BTreeSet<Word>,
    /// Words that were changed or waited for in another way.
    otherwise: BTreeSet<Word>,
}

impl Counters {
    pub(super) fn reset(&mut self) {
        self.given_up = None;
        self.added.clear();
        self.otherwise.clear();
    }

    /// Takes every word for a counter except these.
    pub(super) fn assume(&mut self, given_up: &Rc<BTreeSet<Word>>) {
        self.given_up = Some(Rc::clone(given_up));
    }

    /// How an addition touches a word. `None` for `value`: it also returns what was there.
    pub(super) fn add(&mut self, pe: PeId, word: Span, value: Option<u64>) -> Touch {
        let (Some(given_up), Some(by)) = (&self.given_up, value) else { return Touch::Atomic };
        let negative = by >> (8 * word.len - 1) & 1 == 1;
        let word = (pe, word.alloc, word.start);
        self.added.insert(word);
        if negative {
            self.otherwise.insert(word);
        }
        if negative || given_up.contains(&word) { Touch::Atomic } else { Touch::Add { by } }
    }

    /// A word is changed by something else than an addition.
    pub(super) fn change(&mut self, pe: PeId, word: Span) {
        if self.given_up.is_some() {
            self.otherwise.insert((pe, word.alloc, word.start));
        }
    }

    /// A wait begins.
    pub(super) fn wait(&mut self, pe: PeId, condition: &Condition) {
        let grows = matches!(condition.wait.cmp, Cmp::Ge | Cmp::Gt) && !condition.may_be_cyclic();
        if self.given_up.is_some() && !grows {
            self.otherwise.extend(condition.variables().map(|word| (pe, word.alloc, word.start)));
        }
    }

    /// Words that were taken for counters and are none.
    pub(super) fn disproved(&self) -> Vec<Word> {
        let Some(given_up) = &self.given_up else { return Vec::new() };
        self.added.intersection(&self.otherwise).filter(|word| !given_up.contains(word)).copied().collect()
    }
}
