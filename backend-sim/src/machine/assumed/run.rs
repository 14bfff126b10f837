//! One run of a search: what it sees of words, call by call, and what it may assume of them meanwhile.

use onesided::Cmp;
use onesided::backend::{AllocId, Span};

use super::super::access::Test;
use super::super::agent::Condition;
use super::super::ids::{AgentId, PeId};
use super::super::past::Past;
use super::super::phases::Mbarrier;
use super::super::steady::{Beginning, Replaced, Waited};
use super::super::tells::Tells;
use super::super::{Fold, Touch};
use super::seen::{Fact, Seen};
use super::updates::{Update, Updates};
use super::{Assumptions, Word, near, word};
use crate::config::Reduce;

impl Assumptions {
    /// A run begins.
    pub(in crate::machine) fn begin(&mut self) {
        self.updates.clear();
        self.writes.clear();
        self.steady.begin();
        self.signs.begin();
        self.fabric.forget_reads();
        self.phases.begin();
    }

    /// Whether it does not matter when a thread looks at an mbarrier.
    pub(in crate::machine) fn is_steady_phase(&self, mbarrier: Mbarrier) -> bool {
        self.terms.allow_all() && !self.phases.matters(mbarrier)
    }

    /// A word is added to, and has this value now. Returns how that touches it.
    pub(in crate::machine) fn add(&mut self, pe: PeId, span: Span, by: u64, value: u64, step: usize) -> Touch {
        let number = |bits: u64| (bits << (64 - 8 * span.len)).cast_signed() >> (64 - 8 * span.len);
        let [by_number, before, now] = [by, value.wrapping_sub(by), value].map(number);
        // as signed numbers: what is added, the old value or the new one is negative
        let signed = [by_number, before, now].iter().any(|number| *number < 0);
        let harms = match self.terms.proof {
            true => {
                self.signs.adds(word(pe, span), step, (by_number, now), span.len)
                    || before.checked_add(by_number) != Some(now)
            }
            false => signed,
        };
        let (seen_between, commutes) = (self.fabric.matters((pe, span.alloc)), self.terms.reduce >= Reduce::Counters);
        let seen = self.meet(word(pe, span), span.len);
        let mut news = seen.note(Fact::Added);
        news |= harms && seen.note(Fact::Otherwise);
        news |= signed && seen.note(Fact::Signed);
        news |= seen.note_sum(value, news);
        let touch =
            if seen.refuted.no_counter || seen_between || !commutes { Touch::Atomic } else { Touch::Add { by } };
        self.news |= news;
        self.updates_of(word(pe, span), span.len, 0).added = true;
        touch
    }

    /// A word is updated, and not just added to. `fold`: how, where nothing else is done with it. `by_kernel`: by
    /// an agent of one, which may have seen the update before. Returns how that touches it.
    pub(in crate::machine) fn update(
        &mut self,
        pe: PeId,
        span: Span,
        (old, new): (u64, u64),
        fold: Option<Fold>,
        (step, tells): (usize, Tells),
        by_kernel: bool,
    ) -> Touch {
        let key = word(pe, span);
        let fold = fold.filter(|_| self.terms.reduce >= Reduce::Counters);
        let seen_between = self.fabric.matters((pe, span.alloc));
        let before = self.updates.get(&key).and_then(|updates| updates.all.last());
        let tells_less = by_kernel && before.is_some_and(|before| !tells.cover(&before.tells));
        let seen = self.meet(key, span.len);
        let mut news = seen.note(Fact::Otherwise);
        news |= fold.is_some() && seen.note(Fact::Folded);
        let touch = fold.filter(|_| !seen.refuted.no_fold && !seen_between).map_or(Touch::Atomic, Touch::Fold);
        self.news |= news;
        let updates = self.updates_of(key, span.len, old);
        if updates.all.last().map_or(updates.from, |last| last.value) != old {
            (updates.from, updates.all) = (old, Vec::new()); // a kernel has stored there plainly, which is no step
        }
        updates.all.push(Update { value: new, step, tells, tells_less });
        if self.watches(key) {
            self.steady.update(key, Replaced { old, new, tells_less, step });
        }
        touch
    }

    /// What is known of a word at which an atomic or a wait looks.
    pub(super) fn meet(&mut self, key: Word, len: usize) -> &mut Seen {
        let (pe, alloc, start) = key;
        if self.words.get(&key).is_none_or(|seen| seen.len != len) {
            let mut mixed = self.words.get(&key).is_some_and(|seen| seen.len > 0);
            for (other, seen) in self.words.range_mut(near(pe, Span { alloc, start, len })) {
                if *other != key && seen.len > 0 && other.2 < start + len && start < other.2 + seen.len {
                    self.news |= seen.note(Fact::Mixed);
                    mixed = true;
                }
            }
            let seen = self.words.entry(key).or_default();
            seen.len = seen.len.max(len);
            self.news |= mixed && seen.note(Fact::Mixed);
        }
        self.words.entry(key).or_default()
    }

    fn updates_of(&mut self, word: Word, len: usize, from: u64) -> &mut Updates {
        self.updates.entry(word).or_insert(Updates { len, from, all: Vec::new(), added: false })
    }

    /// A strong load can miss some of a word's updates: which, that depends on their order.
    pub(in crate::machine) fn misses(&mut self, pe: PeId, span: Span) {
        self.news |= self.meet(word(pe, span), span.len).note(Fact::Missed);
    }

    /// Memory has ended that another one follows by the same name: a block's shared memory.
    pub(in crate::machine) fn forget(&mut self, pe: PeId, alloc: AllocId) {
        self.updates.retain(|(of, word, _), _| (*of, *word) != (pe, alloc));
    }

    /// Memory is written, plainly or not. Returns what of it counts as written.
    pub(in crate::machine) fn writes(&mut self, pe: PeId, span: Span) -> Span {
        self.news |= self.parts.write(pe, span);
        self.parts.whole(pe, span)
    }

    /// Memory is written plainly. `disturbs`: perhaps without being ordered with waits for it.
    pub(in crate::machine) fn write(&mut self, pe: PeId, span: Span, disturbs: bool) {
        let near = || near(pe, span);
        if !self.updates.is_empty() {
            let meets = |(key, updates): (&Word, &Updates)| (key.2 + updates.len > span.start).then_some(*key);
            let met: Vec<Word> = self.updates.range(near()).filter_map(meets).collect();
            met.iter().for_each(|key| drop(self.updates.remove(key)));
        }
        if disturbs {
            if self.writes.last() != Some(&(pe, span)) {
                self.writes.push((pe, span));
            }
            self.disturb(pe, span);
        }
    }

    pub(super) fn disturb(&mut self, pe: PeId, span: Span) {
        for (_, seen) in self.words.range_mut(near(pe, span)).filter(|(_, seen)| seen.is_asked()) {
            self.news |= seen.note(Fact::Disturbed);
        }
    }

    /// A wait for some variables begins. `disturbed`: whether nothing orders it with the last plain write of a variable.
    pub(in crate::machine) fn wait(&mut self, condition: &Condition, mut disturbed: impl FnMut(Span) -> bool) {
        for test in condition.tests() {
            let may_grow =
                condition.may_count() && (self.terms.proof || !matches!(test.comparison.cmp, Cmp::Le | Cmp::Lt));
            let seen = self.meet(word(test.pe, test.variable), test.variable.len);
            let mut news = !may_grow && seen.note(Fact::Otherwise);
            news |= seen.note_wait(Waited::of(&test));
            news |= !seen.has(Fact::Disturbed) && disturbed(test.variable) && seen.note(Fact::Disturbed);
            self.news |= news;
        }
    }

    /// An agent waits for a word from now on. `past`: what that comes after, if pasts are kept.
    pub(in crate::machine) fn begins_to_wait(&mut self, agent: AgentId, test: &Test, past: Option<&Past>) {
        let key = word(test.pe, test.variable);
        if self.terms.proof {
            let harmed = self.signs.begins(key, (agent, Waited::of(test)), past);
            self.steady.doubts(harmed);
        }
        if self.watches(key) {
            let is_steady = self.is_steady(test.pe, test.variable);
            let beginning = Beginning { agent, past: past.filter(|_| is_steady), is_steady, is_side: false };
            let updates = self.updates.get(&key).into_iter().flat_map(Updates::replaced);
            self.steady.wait(key, Waited::of(test), beginning, updates);
        }
    }

    /// The wait of an agent has ended.
    pub(in crate::machine) fn has_waited(&mut self, agent: AgentId, test: &Test) {
        self.signs.ends(word(test.pe, test.variable), agent);
    }

    /// A step ends the wait of an agent for a steady word.
    pub(in crate::machine) fn ends(&mut self, agent: AgentId, test: &Test, step: usize) {
        self.steady.ends(word(test.pe, test.variable), agent, step);
    }

    /// Whether something is assumed of a word that updates behind waits contradict.
    fn watches(&self, word: Word) -> bool {
        let is_watched =
            |seen: &Seen| !(seen.refuted.unsteady && seen.refuted.forgetful) || seen.is_beside() && !self.terms.told;
        self.terms.proof && self.words.get(&word).is_none_or(is_watched)
    }

    /// Whether waits for the word end at once.
    pub(in crate::machine) fn is_steady(&self, pe: PeId, span: Span) -> bool {
        self.terms.allow_all() && self.words.get(&word(pe, span)).is_none_or(|seen| !seen.refuted.unsteady)
    }

    /// The update by which a condition has become true for good, and with the value that the word has now if that may matter: `Some(None)` if it has
    /// been so since the last plain write, `None` if that is not known.
    pub(in crate::machine) fn told(&self, test: &Test) -> Option<Option<&Update>> {
        let word = word(test.pe, test.variable);
        if self.words.get(&word).is_some_and(|seen| seen.refuted.forgetful) {
            return None;
        }
        let updates = self.updates.get(&word).filter(|updates| self.terms.proof && !updates.added)?;
        let now = updates.all.last().map_or(updates.from, |last| last.value);
        let holds = |value| test.comparison.holds(value, test.wanted) && (!test.returns || value == now);
        let last_false = updates.all.iter().rposition(|update| !holds(update.value));
        match last_false {
            None if holds(updates.from) => Some(None),
            _ => Some(updates.all.get(last_false.map_or(0, |last| last + 1))),
        }
    }
}
