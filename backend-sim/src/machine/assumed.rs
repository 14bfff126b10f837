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
//! still waits for (`steady.rs`). So a wait that can end can always end. Its end is taken before everything else, and depends on nothing, unless
//! the look that ends a loop also changes the word or loads other elements of a vector. The search
//! visits all orders of the updates in any case, so a run shows it if one of them makes a condition false. A wait that
//! returns the value that it has seen must find the same value in all runs, because the program may look at it.
//!
//! **What quiets in kernels complete.** A proof assumes that the program is right where a thread's quiet completes, and its fence orders,
//! only what the thread comes after ([`Quiet::Thread`](crate::Quiet)). Then it is right where they are about everything of the PE, too, because
//! that orders more. Such a quiet is about the same in every order, so far fewer schedules differ. Likewise, where transfers arrive in the order of issue, a proof
//! assumes that those of two threads do so only if the second comes after the issue of the first. A run that fails ends this assumption.
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
//!
//! This file has what is assumed from run to run. `assumed/run.rs` has what a run sees, call by call, and `assumed/seen.rs` what follows from that for a word.

mod run;
mod seen;
pub(super) mod sides;
mod updates;

use std::collections::{BTreeMap, BTreeSet};

use onesided::backend::{AllocId, Span};

use super::Machine;
use super::fabric::Fabric;
use super::ids::PeId;
use super::parts::Parts;
use super::past::Past;
use super::phases::{Mbarrier, Phases};
use super::signs::Signs;
use super::steady::{Doubt, Steady};
use crate::config::{Quiet, Reduce};
use seen::{Fact, Refuted, Seen};
use updates::Updates;

/// A word of a PE's memory: its first byte.
pub(crate) type Word = (PeId, AllocId, usize);

/// What is assumed on the whole, and not of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Terms {
    /// Whether it is a proof: words are steady, too.
    proof: bool,
    /// What may be assumed of words at all.
    reduce: Reduce,
    /// Whether quiets, fences and issues in kernels are about what their threads come after, though the program may rely on more.
    by_thread: bool,
    /// A word may tell somebody to give up who waits for another one.
    told: bool,
}

impl Terms {
    /// Whether everything may be assumed that a proof assumes.
    fn allow_all(&self) -> bool {
        self.proof && self.reduce == Reduce::Everything
    }
}

/// The assumptions of a search, and what its runs have shown.
#[derive(Debug, Default)]
pub(crate) struct Assumptions {
    terms: Terms,
    /// A thread of a kernel has made a quiet or fence, or its transfer arrives in the order of issue; the last run has failed.
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
    terms: Terms,
    fabric: Fabric,
    words: BTreeMap<Word, Refuted>,
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

pub(super) fn word(pe: PeId, span: Span) -> Word {
    (pe, span.alloc, span.start)
}

/// Words that may overlap a span: they have 8 bytes at most.
pub(super) fn near(pe: PeId, span: Span) -> std::ops::Range<Word> {
    word(pe, Span { start: span.start.saturating_sub(7), ..span })
        ..word(pe, Span { start: span.start + span.len, ..span })
}

impl Assumptions {
    /// For a proof, or for a search of all outcomes.
    pub(crate) fn new(proof: bool, reduce: Reduce) -> Assumptions {
        Assumptions { terms: Terms { proof, reduce, ..Terms::default() }, ..Assumptions::default() }
    }

    /// The same, for a proof of programs that may rely on more than what a thread's quiet is about.
    pub(crate) fn by_thread(self) -> Assumptions {
        Assumptions { terms: Terms { by_thread: true, ..self.terms }, ..self }
    }

    /// Whether a run depended on what threads' quiets are assumed to be about.
    pub(crate) fn is_by_thread(&self) -> bool {
        self.terms.by_thread && self.ordered
    }

    /// How the last run has ended: whether nothing was wrong.
    pub(crate) fn has_ended(&mut self, well: bool) {
        self.failed = !well;
    }

    /// Whether the runs so far contradict something that was assumed. It is not assumed any more.
    pub(crate) fn give_up(&mut self) -> bool {
        let mut some = self.is_by_thread() && self.failed;
        self.terms.by_thread &= !some;
        some |= self.fabric.give_up();
        some |= self.phases.give_up();
        some |= std::mem::take(&mut self.news) && self.give_up_of_words();
        some
    }

    /// The same of words, of which there is news.
    fn give_up_of_words(&mut self) -> bool {
        let waited = self.words.iter().filter(|(_, seen)| seen.is_waited_for());
        let mut some = self.parts.give_up(waited.map(|(word, seen)| (*word, seen.len)));
        if !self.terms.told {
            self.terms.told = self.words.values().any(Seen::tells);
            some |= self.terms.told;
        }
        for seen in self.words.values_mut() {
            some |= seen.give_up(self.terms.proof);
        }
        some
    }

    /// What is not assumed any more.
    pub(crate) fn given_up(&self) -> GivenUp {
        let words = self.words.iter().map(|(word, seen)| (*word, seen.refuted));
        GivenUp {
            terms: self.terms,
            fabric: self.fabric.without_reads(),
            words: words.filter(|(_, refuted)| *refuted != Refuted::default()).collect(),
            in_parts: self.parts.known().clone(),
            mbarriers: self.phases.known().clone(),
        }
    }

    /// For one run: nothing was seen yet.
    pub(crate) fn without(given_up: &GivenUp) -> Assumptions {
        Assumptions {
            terms: given_up.terms,
            fabric: given_up.fabric.clone(),
            parts: Parts::of(&given_up.in_parts),
            phases: Phases::of(&given_up.mbarriers),
            words: given_up.words.iter().map(|(word, refuted)| (*word, Seen::without(*refuted))).collect(),
            ..Assumptions::default()
        }
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
            self.news |= self.words.entry(word).or_default().note(Fact::of(what));
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
            self.news |= self.words.entry(word).or_default().learn(other);
        }
    }
}

impl Machine {
    /// The run that begins assumes this of words, and adds what it sees.
    pub(crate) fn assume(&mut self, mut assumed: Box<Assumptions>) {
        if self.paths.matter() && !assumed.terms.proof {
            return; // an update that arrives can show others what has arrived before it
        }
        assumed.begin();
        if assumed.terms.by_thread {
            self.races.read_quiets(Quiet::Thread);
        }
        self.assumed = Some(assumed);
    }

    /// A thread of a kernel makes a quiet or fence, or issues what arrives in order. Returns whether that is about what the thread comes after.
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
