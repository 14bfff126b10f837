//! What a proof assumes of every word until a run shows otherwise. Then the search starts again without that assumption.
//!
//! A **counter** is only added to, and only waited for with `>=` or `>`. Two additions commute, so the search does not exchange
//! them. It then finds, for each wait, every *set* of additions that can come before it, one addition more or less at a time.
//! That is all there is as long as a larger value never ends a wait later.
//!
//! A **steady** word is updated by signals and atomics that do not add, and no update makes a condition false that somebody
//! waits for. So a wait that can end can always end. Its end is taken before everything else, and depends on nothing. The search
//! visits all orders of the updates in any case, so a run shows it if one of them makes a condition false. A wait that
//! returns the value that it has seen must find the same value in all runs, because the program may look at it.
//!
//! **What a wait learns.** A wait learns what the word told when its condition became true for good, and not what it told later: there is
//! a schedule in which it ended then. A schedule in which it learns more shows fewer races. Where a plain write made the condition
//! true, it learns nothing.

use std::collections::{BTreeMap, BTreeSet};

use onesided::Cmp;
use onesided::backend::{AllocId, Span};

use super::access::{Comparison, Test};
use super::agent::Condition;
use super::ids::PeId;
use super::{Machine, Touch};
use crate::race::Told;

/// A word of a PE's memory: its first byte.
pub(crate) type Word = (PeId, AllocId, usize);

/// The assumptions of a search, and what its runs have shown.
#[derive(Debug, Default)]
pub(crate) struct Assumptions {
    words: BTreeMap<Word, Seen>,
    /// The updates of the current run since each word's last plain write.
    updates: BTreeMap<Word, Updates>,
    /// Whether something was seen that was not seen before.
    news: bool,
}

/// What was seen of a word in all runs, and what is no longer assumed of it.
#[derive(Debug, Default)]
struct Seen {
    /// It was added to by something that does not look at it.
    added: bool,
    /// It was changed or waited for as no counter is.
    otherwise: bool,
    /// It was written plainly where a wait can be before that as well as behind it.
    disturbed: bool,
    /// Values that updates have replaced, and by which.
    replaced: BTreeSet<(u64, u64)>,
    /// What waits have compared it with.
    tests: BTreeSet<Waited>,
    /// An update made a wait's condition false, or another value would end a wait that returns it.
    falsified: bool,
    no_counter: bool,
    unsteady: bool,
}

/// A wait for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waited {
    comparison: Comparison,
    wanted: u64,
    /// Whether it returns the value that it has seen, and that may matter.
    returns: bool,
}

#[derive(Debug)]
struct Updates {
    len: usize,
    /// The value before all of them.
    from: u64,
    all: Vec<Update>,
    /// The word was added to.
    added: bool,
}

/// One update of a word.
#[derive(Debug)]
pub(super) struct Update {
    value: u64,
    /// The step that made it.
    pub(super) step: usize,
    /// What the word has told since.
    pub(super) told: Option<Told>,
}

fn word(pe: PeId, span: Span) -> Word {
    (pe, span.alloc, span.start)
}

impl Waited {
    /// Whether this replacement makes the condition false, or ends the wait with another value.
    fn is_falsified_by(&self, &(old, new): &(u64, u64)) -> bool {
        let [before, behind] = [old, new].map(|value| self.comparison.holds(value, self.wanted));
        before && (self.returns || !behind)
    }
}

impl Assumptions {
    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.updates.clear();
    }

    /// Whether the runs so far contradict something that was assumed. It is not assumed any more.
    pub(crate) fn give_up(&mut self) -> bool {
        let mut some = false;
        for seen in self.words.values_mut().filter(|_| self.news) {
            let no_counter = seen.added && seen.otherwise;
            let unsteady = !seen.tests.is_empty() && (seen.added || seen.disturbed || seen.falsified);
            some |= (no_counter, unsteady) != (seen.no_counter, seen.unsteady);
            (seen.no_counter, seen.unsteady) = (no_counter, unsteady);
        }
        self.news = false;
        some
    }

    /// A word is added to. Returns how that touches it.
    pub(super) fn add(&mut self, pe: PeId, span: Span, by: u64) -> Touch {
        let negative = by >> (8 * span.len - 1) & 1 == 1;
        let seen = self.words.entry(word(pe, span)).or_default();
        self.news |= !seen.added || negative && !seen.otherwise;
        seen.added = true;
        seen.otherwise |= negative;
        let touch = if negative || seen.no_counter { Touch::Atomic } else { Touch::Add { by } };
        self.updates_of(word(pe, span), span.len, 0).added = true;
        touch
    }

    /// A word is updated, and not just added to.
    pub(super) fn update(&mut self, pe: PeId, span: Span, (old, new): (u64, u64), step: usize, told: Option<Told>) {
        let key = word(pe, span);
        let seen = self.words.entry(key).or_default();
        self.news |= !std::mem::replace(&mut seen.otherwise, true);
        if old != new && seen.replaced.insert((old, new)) {
            seen.falsified |= seen.tests.iter().any(|test| test.is_falsified_by(&(old, new)));
            self.news = true;
        }
        self.updates_of(key, span.len, old).all.push(Update { value: new, step, told });
    }

    fn updates_of(&mut self, word: Word, len: usize, from: u64) -> &mut Updates {
        self.updates.entry(word).or_insert(Updates { len, from, all: Vec::new(), added: false })
    }

    /// Memory is written plainly. `disturbs`: perhaps without being ordered with waits for it.
    pub(super) fn write(&mut self, pe: PeId, span: Span, disturbs: bool) {
        let end = span.start + span.len;
        // words have 8 bytes at most
        let near =
            || word(pe, Span { start: span.start.saturating_sub(7), ..span })..word(pe, Span { start: end, ..span });
        if !self.updates.is_empty() {
            let meets = |(key, updates): (&Word, &Updates)| (key.2 + updates.len > span.start).then_some(*key);
            let met: Vec<Word> = self.updates.range(near()).filter_map(meets).collect();
            met.iter().for_each(|key| drop(self.updates.remove(key)));
        }
        if disturbs {
            let waited = self.words.range_mut(near()).filter(|(_, seen)| !seen.tests.is_empty() && !seen.disturbed);
            for (_, seen) in waited {
                (seen.disturbed, self.news) = (true, true);
            }
        }
    }

    /// A wait for some variables begins. `disturbed`: whether nothing orders it with the last plain write of a variable.
    /// `returns`: whether it returns a value that may matter.
    pub(super) fn wait(
        &mut self,
        pe: PeId,
        condition: &Condition,
        returns: bool,
        mut disturbed: impl FnMut(Span) -> bool,
    ) {
        let grows = matches!(condition.wait.cmp, Cmp::Ge | Cmp::Gt) && !condition.may_be_cyclic();
        for test in condition.tests(pe) {
            let seen = self.words.entry(word(pe, test.variable)).or_default();
            self.news |= !grows && !seen.otherwise;
            seen.otherwise |= !grows;
            let waited = Waited { comparison: test.comparison, wanted: test.wanted, returns };
            if seen.tests.insert(waited) {
                seen.falsified |= seen.replaced.iter().any(|replaced| waited.is_falsified_by(replaced));
                self.news = true;
            }
            if !seen.disturbed && disturbed(test.variable) {
                (seen.disturbed, self.news) = (true, true);
            }
        }
    }

    /// Whether waits for the word end at once.
    pub(super) fn is_steady(&self, pe: PeId, span: Span) -> bool {
        self.words.get(&word(pe, span)).is_none_or(|seen| !seen.unsteady)
    }

    /// The update by which a condition has become true for good: `Some(None)` if it has been true since the last plain write,
    /// `None` if that is not known.
    pub(super) fn told(&self, test: &Test) -> Option<Option<&Update>> {
        let updates = self.updates.get(&word(test.pe, test.variable)).filter(|updates| !updates.added)?;
        let holds = |value| test.comparison.holds(value, test.wanted);
        let last_false = updates.all.iter().rposition(|update| !holds(update.value));
        match last_false {
            None if holds(updates.from) => Some(None),
            _ => Some(updates.all.get(last_false.map_or(0, |last| last + 1))),
        }
    }
}

impl Machine {
    /// The run that begins assumes this of words, and adds what it sees.
    pub(crate) fn assume(&mut self, mut assumed: Box<Assumptions>) {
        assumed.begin();
        self.assumed = Some(assumed);
    }

    /// Gives back what was assumed.
    pub(crate) fn take_assumed(&mut self) -> Option<Box<Assumptions>> {
        self.assumed.take()
    }
}
