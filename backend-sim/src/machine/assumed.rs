//! What a search of all schedules assumes of every word until a run shows otherwise. Then it starts again without that assumption.
//!
//! **Updates that commute.** Additions that return nothing leave the same value in either order, and so do two `and`, two `or`, two `xor`,
//! and two minima or maxima. So the search does not exchange them. Reads and fetches between them are exchanged with each. A wait is
//! another thing: it may need several updates more or fewer at once, which no single exchange reaches. So where somebody waits
//! for a word, additions commute only if it is a **counter**: only added to, never negative, and only waited for with `>=` or `>`. In a proof, it may also
//! be negative and waited for with `<=` or `<`, as a signed number, and something may be taken from it where that harms no wait (`signs.rs`).
//! The search then finds, for each wait, every *set* of additions that can come before it, one addition more or less at a time. That is
//! all there is as long as a larger value never ends a wait later. A wait with `==` is one with `>=` where no addition exceeds its value:
//! in every order a counter ends with the same value, so a run shows it if one does. Other updates commute only where nobody waits.
//!
//! In a proof there is more. A **steady** word is updated by signals and atomics that do not add, and no update makes a condition false that somebody
//! still waits for (`steady.rs`). So a wait that can end can always end. Its end is taken before everything else, and depends on nothing. The search
//! visits all orders of the updates in any case, so a run shows it if one of them makes a condition false. A wait that
//! returns the value that it has seen must find the same value in all runs, because the program may look at it.
//!
//! **What quiets in kernels complete.** A proof assumes that the program is right where a thread's quiet completes, and its fence orders,
//! only what the thread comes after ([`Quiet::Thread`](crate::Quiet)). Then it is right where they are about everything of the PE, too, because
//! that orders more. Such a quiet is about the same in every order, so far fewer schedules differ. A run that fails ends this assumption.
//!
//! **What is seen on paths** is assumed in `fabric.rs`, of words that are written in parts in `parts.rs`, of mbarriers in `phases.rs`, and of words by which
//! loops can be told to give up in `assumed/sides.rs`.
//!
//! **What a wait learns.** A wait learns what the word told when its condition became true for good, and not what it told later: there is
//! a schedule in which it ended then. A schedule in which it learns more shows fewer races. If it returns the value that it has seen, that is when the
//! word got this value: who has seen a later one may do more, and knows more. Where a plain write made the condition true, it learns
//! nothing. One thing is not seen so: an update that always comes behind another one, and tells less. An agent of a kernel can see an update by
//! a relaxed load, and so come behind it without coming after what it tells. Of a word that **forgets** so, a wait learns what the last update
//! told, and the word is not steady.

pub(super) mod sides;
mod updates;

use std::collections::{BTreeMap, BTreeSet};

use onesided::Cmp;
use onesided::backend::{AllocId, Span};

use super::access::Test;
use super::agent::Condition;
use super::fabric::Fabric;
use super::ids::{AgentId, PeId};
use super::parts::Parts;
use super::past::Past;
use super::phases::{Mbarrier, Phases};
use super::signs::Signs;
use super::steady::{Beginning, Doubt, Replaced, Steady, Waited, What};
use super::tells::Tells;
use super::{Fold, Machine, Touch};
use crate::config::{Quiet, Reduce};
use updates::{Update, Updates};

/// A word of a PE's memory: its first byte.
pub(crate) type Word = (PeId, AllocId, usize);

/// The assumptions of a search, and what its runs have shown.
#[derive(Debug, Default)]
pub(crate) struct Assumptions {
    /// Whether it is a proof: words are steady, too.
    proof: bool,
    /// What may be assumed of words at all.
    reduce: Reduce,
    /// Whether quiets and fences in kernels are about what their threads come after, though the program may rely on more.
    by_thread: bool,
    /// A word may tell somebody to give up who waits for another one.
    told: bool,
    /// A thread of a kernel has made a quiet or fence; the last run has failed.
    ordered: bool,
    failed: bool,
    /// What is seen on paths.
    pub(super) fabric: Fabric,
    /// Words that are written in parts.
    pub(super) parts: Parts,
    /// Phases of mbarriers.
    pub(super) phases: Phases,
    words: BTreeMap<Word, Seen>,
    /// Waits of the current run, and updates that may make their conditions false.
    steady: Steady,
    /// Waits and additions of the current run.
    signs: Signs,
    /// The updates of the current run since each word's last plain write.
    updates: BTreeMap<Word, Updates>,
    /// Plain writes of the current run that may disturb waits.
    writes: Vec<(PeId, Span)>,
    /// Whether something was seen that was not seen before.
    news: bool,
}

/// What is assumed of quiets, and not any more of words: all that a run depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GivenUp {
    proof: bool,
    reduce: Reduce,
    by_thread: bool,
    fabric: Fabric,
    told: bool,
    words: BTreeMap<Word, [bool; 4]>,
    in_parts: BTreeMap<Word, usize>,
    mbarriers: BTreeSet<Mbarrier>,
}

/// What one run has seen.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    ordered: bool,
    fabric: Fabric,
    parts: Parts,
    phases: Phases,
    words: BTreeMap<Word, Seen>,
    doubts: Vec<Doubt>,
    writes: Vec<(PeId, Span)>,
}

impl Sightings {
    /// Whether something depends on which steps come before others in every schedule.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// Of what is in doubt, leaves what is wrong. `before`: all that comes before a step of the run.
    pub(crate) fn settle<'a>(&mut self, before: impl Fn(usize) -> Option<&'a Past>) {
        self.doubts.retain(|doubt| !doubt.is_harmless(&before));
    }

    /// The run was not looked at to its end.
    pub(crate) fn drop_doubts(&mut self) {
        self.doubts.clear();
    }
}

/// What was seen of a word in all runs, and what is no longer assumed of it.
#[derive(Debug, Default)]
struct Seen {
    /// Its bytes; 0: not known.
    len: usize,
    /// Atomics or waits look at other words that overlap it.
    mixed: bool,
    /// It was added to by something that does not look at it.
    added: bool,
    /// It was changed by `and`, `or` or `xor`, by something that does not look at it.
    folded: bool,
    /// It was changed or waited for as no counter is.
    otherwise: bool,
    /// The largest value that an addition has left.
    largest: u64,
    /// It was negative, or something was taken from it.
    signed: bool,
    /// It was written plainly where a wait can be before that as well as behind it.
    disturbed: bool,
    /// What waits have compared it with.
    tests: BTreeSet<Waited>,
    /// What it must stay while waits for other words go on.
    sides: BTreeSet<Waited>,
    /// It became something else.
    says: bool,
    /// An update made a wait's condition false, or another value would end a wait that returns it.
    falsified: bool,
    /// An agent of a kernel made an update that tells less than the one before it, with which a wait could have ended.
    forgets: bool,
    /// Additions do not commute, other updates do not, it is not steady, it tells a wait only what its last update did.
    no_counter: bool,
    no_fold: bool,
    unsteady: bool,
    forgetful: bool,
}

pub(super) fn word(pe: PeId, span: Span) -> Word {
    (pe, span.alloc, span.start)
}

/// Words that may overlap a span: they have 8 bytes at most.
pub(super) fn near(pe: PeId, span: Span) -> std::ops::Range<Word> {
    word(pe, Span { start: span.start.saturating_sub(7), ..span })
        ..word(pe, Span { start: span.start + span.len, ..span })
}

impl Seen {
    /// Compares the largest value with what somebody waits for with `==`, and how they compare negative ones. Returns whether it is news that the word is
    /// no counter.
    fn compare_largest(&mut self) -> bool {
        let is_passed = |test: &Waited| test.is_passed(self.largest, self.len) || self.signed && !test.is_signed();
        let passed = self.tests.iter().any(is_passed);
        let news = passed && !self.otherwise;
        self.otherwise |= passed;
        news
    }

    /// Whether it may tell somebody to give up who waits for another word.
    fn tells(&self) -> bool {
        !self.sides.is_empty() && (self.mixed || self.added || self.disturbed || self.says)
    }

    /// Whether a wait depends on it.
    fn is_asked(&self) -> bool {
        !(self.tests.is_empty() && self.sides.is_empty())
    }

    fn given_up(&self) -> [bool; 4] {
        [self.no_counter, self.no_fold, self.unsteady, self.forgetful]
    }
}

impl Assumptions {
    /// For a proof, or for a search of all outcomes.
    pub(crate) fn new(proof: bool, reduce: Reduce) -> Assumptions {
        Assumptions { proof, reduce, ..Assumptions::default() }
    }

    /// The same, for a proof of programs that may rely on more than what a thread's quiet is about.
    pub(crate) fn by_thread(self) -> Assumptions {
        Assumptions { by_thread: true, ..self }
    }

    /// Whether a run depended on what threads' quiets are assumed to be about.
    pub(crate) fn is_by_thread(&self) -> bool {
        self.by_thread && self.ordered
    }

    /// How the last run has ended: whether nothing was wrong.
    pub(crate) fn has_ended(&mut self, well: bool) {
        self.failed = !well;
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.updates.clear();
        self.writes.clear();
        self.steady.begin();
        self.signs.begin();
        self.fabric.forget_reads();
        self.phases.begin();
    }

    /// Whether the runs so far contradict something that was assumed. It is not assumed any more.
    pub(crate) fn give_up(&mut self) -> bool {
        let mut some = self.is_by_thread() && self.failed;
        self.by_thread &= !some;
        some |= self.fabric.give_up();
        some |= self.phases.give_up();
        if self.news {
            let waited = self.words.iter().filter(|(_, seen)| !seen.tests.is_empty());
            some |= self.parts.give_up(waited.map(|(word, seen)| (*word, seen.len)));
        }
        if self.news && !self.told {
            self.told = self.words.values().any(Seen::tells);
            some |= self.told;
        }
        for seen in self.words.values_mut().filter(|_| self.news) {
            let before = seen.given_up();
            let waited = !seen.tests.is_empty();
            seen.no_counter = seen.added && (seen.mixed || waited && seen.otherwise);
            seen.no_fold = seen.folded && (seen.mixed || waited);
            seen.forgetful = seen.forgets;
            seen.unsteady = self.proof && waited && (seen.added || seen.disturbed || seen.falsified || seen.forgets);
            some |= before != seen.given_up();
        }
        self.news = false;
        some
    }

    /// What is not assumed any more.
    pub(crate) fn given_up(&self) -> GivenUp {
        let words = self.words.iter().map(|(word, seen)| (*word, seen.given_up()));
        GivenUp {
            proof: self.proof,
            reduce: self.reduce,
            by_thread: self.by_thread,
            told: self.told,
            fabric: self.fabric.without_reads(),
            words: words.filter(|(_, flags)| flags.contains(&true)).collect(),
            in_parts: self.parts.known().clone(),
            mbarriers: self.phases.known().clone(),
        }
    }

    /// For one run: nothing was seen yet.
    pub(crate) fn without(given_up: &GivenUp) -> Assumptions {
        let seen = |&[no_counter, no_fold, unsteady, forgetful]: &[bool; 4]| Seen {
            no_counter,
            no_fold,
            unsteady,
            forgetful,
            ..Seen::default()
        };
        let words = given_up.words.iter().map(|(word, flags)| (*word, seen(flags))).collect();
        let GivenUp { proof, reduce, by_thread, told, ref fabric, ref in_parts, .. } = *given_up;
        let (fabric, parts, phases) = (fabric.clone(), Parts::of(in_parts), Phases::of(&given_up.mbarriers));
        Assumptions { proof, reduce, by_thread, told, fabric, parts, phases, words, ..Assumptions::default() }
    }

    /// What was seen.
    pub(crate) fn sightings(self) -> Sightings {
        Sightings {
            ordered: self.ordered,
            fabric: self.fabric,
            parts: self.parts,
            phases: self.phases,
            words: self.words,
            doubts: self.steady.into_doubts(),
            writes: self.writes,
        }
    }

    /// What was in doubt is so.
    fn believe(&mut self, doubts: Vec<Doubt>) {
        for Doubt { word, what, .. } in doubts {
            let seen = self.words.entry(word).or_default();
            let seen = match what {
                What::Falsified => &mut seen.falsified,
                What::Forgets => &mut seen.forgets,
                What::Harms => &mut seen.otherwise,
                What::Says => &mut seen.says,
            };
            self.news |= !std::mem::replace(seen, true);
        }
    }

    /// Adds what another run has seen, as if it had been run with these.
    pub(crate) fn learn(&mut self, of: Sightings) {
        self.ordered |= of.ordered;
        self.fabric.learn(of.fabric);
        self.phases.learn(of.phases);
        self.news |= self.parts.learn(of.parts);
        self.believe(of.doubts);
        of.writes.into_iter().for_each(|(pe, span)| self.disturb(pe, span));
        for (word, other) in of.words {
            if other.len > 0 {
                self.meet(word, other.len);
            }
            let seen = self.words.entry(word).or_default();
            let [before, now] = [&*seen, &other].map(|seen| {
                [
                    seen.added,
                    seen.folded,
                    seen.mixed,
                    seen.otherwise,
                    seen.disturbed,
                    seen.falsified,
                    seen.forgets,
                    seen.signed,
                    seen.says,
                ]
            });
            self.news |= before.iter().zip(now).any(|(before, now)| now && !before);
            seen.added |= other.added;
            seen.folded |= other.folded;
            seen.mixed |= other.mixed;
            seen.otherwise |= other.otherwise;
            seen.disturbed |= other.disturbed;
            seen.falsified |= other.falsified;
            seen.forgets |= other.forgets;
            seen.signed |= other.signed;
            seen.says |= other.says;
            for side in other.sides {
                self.news |= seen.sides.insert(side);
            }
            seen.largest = seen.largest.max(other.largest);
            for test in other.tests {
                self.news |= seen.tests.insert(test);
            }
            self.news |= seen.compare_largest();
        }
    }

    /// Whether it does not matter when a thread looks at an mbarrier.
    pub(super) fn is_steady_phase(&self, mbarrier: Mbarrier) -> bool {
        self.proof && self.reduce == Reduce::Everything && !self.phases.matters(mbarrier)
    }

    /// A word is added to, and has this value now. Returns how that touches it.
    pub(super) fn add(&mut self, pe: PeId, span: Span, by: u64, value: u64, step: usize) -> Touch {
        let number = |bits: u64| (bits << (64 - 8 * span.len)).cast_signed() >> (64 - 8 * span.len);
        let [by_number, before, now] = [by, value.wrapping_sub(by), value].map(number);
        // as signed numbers: what is added, the old value or the new one is negative
        let signed = [by_number, before, now].iter().any(|number| *number < 0);
        let harms = match self.proof {
            true => {
                self.signs.adds(word(pe, span), step, (by_number, now), span.len)
                    || before.checked_add(by_number) != Some(now)
            }
            false => signed,
        };
        let (seen_between, commutes) = (self.fabric.matters((pe, span.alloc)), self.reduce >= Reduce::Counters);
        let seen = self.meet(word(pe, span), span.len);
        let mut news = !seen.added || harms && !seen.otherwise || signed && !seen.signed;
        seen.added = true;
        seen.otherwise |= harms;
        seen.signed |= signed;
        if value > seen.largest || news {
            seen.largest = seen.largest.max(value);
            news |= seen.compare_largest();
        }
        let touch = if seen.no_counter || seen_between || !commutes { Touch::Atomic } else { Touch::Add { by } };
        self.news |= news;
        self.updates_of(word(pe, span), span.len, 0).added = true;
        touch
    }

    /// A word is updated, and not just added to. `fold`: how, where nothing else is done with it. `by_kernel`: by
    /// an agent of one, which may have seen the update before. Returns how that touches it.
    pub(super) fn update(
        &mut self,
        pe: PeId,
        span: Span,
        (old, new): (u64, u64),
        fold: Option<Fold>,
        (step, tells): (usize, Tells),
        by_kernel: bool,
    ) -> Touch {
        let key = word(pe, span);
        let fold = fold.filter(|_| self.reduce >= Reduce::Counters);
        let seen_between = self.fabric.matters((pe, span.alloc));
        let before = self.updates.get(&key).and_then(|updates| updates.all.last());
        let tells_less = by_kernel && before.is_some_and(|before| !tells.cover(&before.tells));
        let seen = self.meet(key, span.len);
        let mut news = !std::mem::replace(&mut seen.otherwise, true);
        news |= fold.is_some() && !std::mem::replace(&mut seen.folded, fold.is_some());
        let touch = fold.filter(|_| !seen.no_fold && !seen_between).map_or(Touch::Atomic, Touch::Fold);
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
    fn meet(&mut self, key: Word, len: usize) -> &mut Seen {
        let (pe, alloc, start) = key;
        if self.words.get(&key).is_none_or(|seen| seen.len != len) {
            let mut mixed = self.words.get(&key).is_some_and(|seen| seen.len > 0);
            for (other, seen) in self.words.range_mut(near(pe, Span { alloc, start, len })) {
                if *other != key && seen.len > 0 && other.2 < start + len && start < other.2 + seen.len {
                    self.news |= !std::mem::replace(&mut seen.mixed, true);
                    mixed = true;
                }
            }
            let seen = self.words.entry(key).or_default();
            seen.len = seen.len.max(len);
            self.news |= mixed && !seen.mixed;
            seen.mixed |= mixed;
        }
        self.words.entry(key).or_default()
    }

    fn updates_of(&mut self, word: Word, len: usize, from: u64) -> &mut Updates {
        self.updates.entry(word).or_insert(Updates { len, from, all: Vec::new(), added: false })
    }

    /// Memory has ended that another one follows by the same name: a block's shared memory.
    pub(super) fn forget(&mut self, pe: PeId, alloc: AllocId) {
        self.updates.retain(|(of, word, _), _| (*of, *word) != (pe, alloc));
    }

    /// Memory is written, plainly or not. Returns what of it counts as written.
    pub(super) fn writes(&mut self, pe: PeId, span: Span) -> Span {
        self.news |= self.parts.write(pe, span);
        self.parts.whole(pe, span)
    }

    /// Memory is written plainly. `disturbs`: perhaps without being ordered with waits for it.
    pub(super) fn write(&mut self, pe: PeId, span: Span, disturbs: bool) {
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

    fn disturb(&mut self, pe: PeId, span: Span) {
        let waited = self.words.range_mut(near(pe, span)).filter(|(_, seen)| seen.is_asked() && !seen.disturbed);
        for (_, seen) in waited {
            (seen.disturbed, self.news) = (true, true);
        }
    }

    /// A wait for some variables begins. `disturbed`: whether nothing orders it with the last plain write of a variable.
    pub(super) fn wait(&mut self, condition: &Condition, mut disturbed: impl FnMut(Span) -> bool) {
        for test in condition.tests() {
            let may_grow = condition.may_count() && (self.proof || !matches!(test.comparison.cmp, Cmp::Le | Cmp::Lt));
            let seen = self.meet(word(test.pe, test.variable), test.variable.len);
            let mut news = !may_grow && !seen.otherwise;
            seen.otherwise |= !may_grow;
            if seen.tests.insert(Waited::of(&test)) {
                seen.compare_largest();
                news = true;
            }
            if !seen.disturbed && disturbed(test.variable) {
                (seen.disturbed, news) = (true, true);
            }
            self.news |= news;
        }
    }

    /// An agent waits for a word from now on. `past`: what that comes after, if pasts are kept.
    pub(super) fn begins_to_wait(&mut self, agent: AgentId, test: &Test, past: Option<&Past>) {
        let key = word(test.pe, test.variable);
        if self.proof {
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
    pub(super) fn has_waited(&mut self, agent: AgentId, test: &Test) {
        self.signs.ends(word(test.pe, test.variable), agent);
    }

    /// A step ends the wait of an agent for a steady word.
    pub(super) fn ends(&mut self, agent: AgentId, test: &Test, step: usize) {
        self.steady.ends(word(test.pe, test.variable), agent, step);
    }

    /// Whether something is assumed of a word that updates behind waits contradict.
    fn watches(&self, word: Word) -> bool {
        let is_watched = |seen: &Seen| !(seen.unsteady && seen.forgetful) || !seen.sides.is_empty() && !self.told;
        self.proof && self.words.get(&word).is_none_or(is_watched)
    }

    /// Whether waits for the word end at once.
    pub(super) fn is_steady(&self, pe: PeId, span: Span) -> bool {
        let may_be = self.proof && self.reduce == Reduce::Everything;
        may_be && self.words.get(&word(pe, span)).is_none_or(|seen| !seen.unsteady)
    }

    /// The update by which a condition has become true for good, and with the value that the word has now if that may matter: `Some(None)` if it has
    /// been so since the last plain write, `None` if that is not known.
    pub(super) fn told(&self, test: &Test) -> Option<Option<&Update>> {
        let word = word(test.pe, test.variable);
        if self.words.get(&word).is_some_and(|seen| seen.forgetful) {
            return None;
        }
        let updates = self.updates.get(&word).filter(|updates| self.proof && !updates.added)?;
        let now = updates.all.last().map_or(updates.from, |last| last.value);
        let holds = |value| test.comparison.holds(value, test.wanted) && (!test.returns || value == now);
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
        if self.paths.matter() && !assumed.proof {
            return; // an update that arrives can show others what has arrived before it
        }
        assumed.begin();
        if assumed.by_thread {
            self.races.read_quiets(Quiet::Thread);
        }
        self.assumed = Some(assumed);
    }

    /// A thread of a kernel makes a quiet or fence. Returns whether that is about what the thread comes after.
    pub(super) fn orders_by_thread(&mut self) -> bool {
        if let Some(assumed) = &mut self.assumed {
            assumed.ordered = true;
        }
        self.races.quiet() == Quiet::Thread
    }

    /// Gives back what was assumed.
    pub(crate) fn take_assumed(&mut self) -> Option<Box<Assumptions>> {
        let mut assumed = self.assumed.take()?;
        if !self.races.has_intended() {
            assumed.fabric.forget_reads();
        }
        Some(assumed)
    }
}
