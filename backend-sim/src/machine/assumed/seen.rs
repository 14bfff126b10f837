//! What the runs of a search have seen of a word, and what is not assumed of it any more.

use std::collections::BTreeSet;

use super::super::steady::{Waited, What};

/// Something that can be seen of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// Atomics or waits look at other words that overlap it.
    Mixed,
    /// It was added to by something that does not look at it.
    Added,
    /// It was changed by `and`, `or` or `xor`, by something that does not look at it.
    Folded,
    /// It was changed or waited for as no counter is.
    Otherwise,
    /// It was negative, or something was taken from it.
    Signed,
    /// It was written plainly where a wait can be before that as well as behind it.
    Disturbed,
    /// It became something else while somebody could wait for another word as long as this one stayed as it was.
    Says,
    /// An update made a wait's condition false, or another value would end a wait that returns it.
    Falsified,
    /// An agent of a kernel made an update that tells less than the one before it, with which a wait could have ended.
    Forgets,
    /// A strong load of a kernel can miss some of its updates.
    Missed,
}

impl Fact {
    /// What is so if a doubt about a word turns out to be right.
    pub(super) fn of(what: What) -> Fact {
        match what {
            What::Falsified => Fact::Falsified,
            What::Forgets => Fact::Forgets,
            What::Harms => Fact::Otherwise,
            What::Says => Fact::Says,
        }
    }
}

/// A set of facts: a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Facts(u16);

impl Facts {
    fn has(self, fact: Fact) -> bool {
        self.0 & Facts::only(fact).0 != 0
    }

    fn any(self, facts: &[Fact]) -> bool {
        facts.iter().any(|&fact| self.has(fact))
    }

    fn only(fact: Fact) -> Facts {
        Facts(1 << fact as u16)
    }

    /// Adds those of another set. Returns whether that is news.
    fn learn(&mut self, others: Facts) -> bool {
        let before = self.0;
        self.0 |= others.0;
        self.0 != before
    }
}

/// What is no longer assumed of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refuted {
    /// Additions do not commute.
    pub(super) no_counter: bool,
    /// Other updates do not.
    pub(super) no_fold: bool,
    /// It is not steady.
    pub(super) unsteady: bool,
    /// It tells a wait only what its last update did.
    pub(super) forgetful: bool,
}

/// What was seen of a word in all runs, and what is no longer assumed of it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Its bytes; 0: not known.
    pub(super) len: usize,
    facts: Facts,
    /// The largest value that an addition has left.
    largest: u64,
    /// What waits have compared it with.
    tests: BTreeSet<Waited>,
    /// What it must stay while waits for other words go on.
    sides: BTreeSet<Waited>,
    pub(super) refuted: Refuted,
}

/// What is seen of it. Each of these returns whether that is news.
impl Seen {
    pub(super) fn note(&mut self, fact: Fact) -> bool {
        self.facts.learn(Facts::only(fact))
    }

    /// Somebody waits for it.
    pub(super) fn note_wait(&mut self, waited: Waited) -> bool {
        let news = self.tests.insert(waited);
        if news {
            self.compare_largest();
        }
        news
    }

    /// Somebody waits for another word as long as this one stays as it is.
    pub(super) fn note_side(&mut self, side: Waited) -> bool {
        self.sides.insert(side)
    }

    /// An addition has left this value. `news`: whether the addition has shown something new besides.
    pub(super) fn note_sum(&mut self, value: u64, news: bool) -> bool {
        let grows = value > self.largest;
        self.largest = self.largest.max(value);
        news | ((grows || news) && self.compare_largest())
    }

    /// What another run has seen of it.
    pub(super) fn learn(&mut self, other: Seen) -> bool {
        let mut news = self.facts.learn(other.facts);
        for side in other.sides {
            news |= self.sides.insert(side);
        }
        for test in other.tests {
            news |= self.tests.insert(test);
        }
        self.largest = self.largest.max(other.largest);
        news | self.compare_largest()
    }

    /// Compares the largest value with what somebody waits for with `==`, and how they compare negative ones: it may turn out to be no counter.
    fn compare_largest(&mut self) -> bool {
        let is_signed = self.has(Fact::Signed);
        let is_passed = |test: &Waited| test.is_passed(self.largest, self.len) || is_signed && !test.is_signed();
        self.tests.iter().any(is_passed) && self.note(Fact::Otherwise)
    }
}

/// What follows from that.
impl Seen {
    /// Nothing was seen of it yet, and this is not assumed.
    pub(super) fn without(refuted: Refuted) -> Seen {
        Seen { refuted, ..Seen::default() }
    }

    pub(super) fn has(&self, fact: Fact) -> bool {
        self.facts.has(fact)
    }

    /// Whether somebody waits for it.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.tests.is_empty()
    }

    /// Whether somebody waits for another word as long as this one stays as it is.
    pub(super) fn is_beside(&self) -> bool {
        !self.sides.is_empty()
    }

    /// Whether a wait depends on it.
    pub(super) fn is_asked(&self) -> bool {
        self.is_waited_for() || self.is_beside()
    }

    /// Whether it may tell somebody to give up who waits for another word.
    pub(super) fn tells(&self) -> bool {
        self.is_beside() && self.facts.any(&[Fact::Mixed, Fact::Added, Fact::Disturbed, Fact::Says])
    }

    /// Gives up what the facts contradict. Returns whether something is given up that was assumed until now.
    pub(super) fn give_up(&mut self, proof: bool) -> bool {
        let facts = self.facts;
        let (mixed, waited) = (facts.any(&[Fact::Mixed, Fact::Missed]), self.is_waited_for());
        let refuted = Refuted {
            no_counter: facts.has(Fact::Added) && (mixed || waited && facts.has(Fact::Otherwise)),
            no_fold: facts.has(Fact::Folded) && (mixed || waited),
            unsteady: proof && waited && facts.any(&[Fact::Added, Fact::Disturbed, Fact::Falsified, Fact::Forgets]),
            forgetful: facts.has(Fact::Forgets),
        };
        std::mem::replace(&mut self.refuted, refuted) != refuted
    }
}
