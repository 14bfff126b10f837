//! Which updates of a word could come before the end of a wait whose condition they make false. Such a word is not steady (`assumed.rs`).
//!
//! Flags are set and taken back again and again, so many updates make some wait's condition false. That does no harm where the update comes
//! behind the wait's end in every schedule, because who makes it has heard of the end, or before the wait's beginning. Nothing depends on when
//! such a wait ends. Where neither is so, a schedule has the update first.
//!
//! Which steps come before others is known once the run is over. Until then, an update that may do harm is a [`Doubt`]. Updates of one word
//! have an order in every schedule of a class. So of those behind a wait the first is in doubt, and of those before its beginning the last.

use std::collections::BTreeMap;

use super::access::{Comparison, Test};
use super::assumed::Word;
use super::ids::AgentId;
use super::past::Past;

/// An update has replaced this value by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) old: u64,
    pub(super) new: u64,
    /// Whether it tells less than the update before it, and may never come before that.
    pub(super) tells_less: bool,
    /// The step that made it.
    pub(super) step: usize,
}

/// A wait for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waited {
    pub(super) comparison: Comparison,
    pub(super) wanted: u64,
    /// Whether it returns the value that it has seen, and that may matter.
    pub(super) returns: bool,
}

impl Waited {
    pub(super) fn of(test: &Test) -> Waited {
        Waited { comparison: test.comparison, wanted: test.wanted, returns: test.returns }
    }

    /// Whether it holds before an update, and behind it.
    fn holds_around(&self, update: &Replaced) -> [bool; 2] {
        let [before, behind] = [update.old, update.new].map(|value| self.comparison.holds(value, self.wanted));
        [before, behind && !(before && update.old != update.new && self.returns)]
    }

    /// Whether this makes the condition false, or ends the wait with another value.
    fn is_falsified_by(&self, update: &Replaced) -> bool {
        self.holds_around(update) == [true, false]
    }

    /// Whether a wait that could have ended before this update would come after fewer steps behind it.
    fn is_forgotten_by(&self, update: &Replaced) -> bool {
        update.tells_less && self.holds_around(update) == [true, true]
    }
}

/// A wait of the current run.
#[derive(Debug)]
struct Course {
    agent: AgentId,
    waited: Waited,
    is_side: bool,
    /// The step that has ended it.
    ended: Option<usize>,
    /// Whether a doubt is noted about an update that makes the condition false, or none is needed. Below, the same for one that tells less.
    falsified: bool,
    forgotten: bool,
}

/// How an agent begins to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning<'a> {
    pub(super) agent: AgentId,
    /// What that comes after, if that and the wait's end are known.
    pub(super) past: Option<&'a Past>,
    /// Whether the word is taken to be steady.
    pub(super) is_steady: bool,
    /// Whether another word ends the wait, and this one must only stay as it is: see [`sides`](super::assumed::sides).
    pub(super) is_side: bool,
}

/// What may be wrong with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An update makes the condition of a wait false that has not ended.
    Falsified,
    /// A wait that has not ended learns less behind an update.
    Forgets,
    /// An addition harms a wait that it can come behind.
    Harms,
    /// A word that should say nothing says something to somebody who waits.
    Says,
}

/// An update and a wait that contradict what is assumed of their word, unless their order is the same in every schedule.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) word: Word,
    pub(super) what: What,
    update: usize,
    wait: Place,
}

/// Where a wait would have to be.
#[derive(Debug)]
enum Place {
    /// Before the update: the step that has ended it, if one has.
    Ended(Option<usize>),
    /// Behind the update: what the wait's beginning comes after.
    Begun(Past),
}

impl Doubt {
    /// An addition that came before a wait, whose beginning comes after this.
    pub(super) fn added_before(word: Word, step: usize, past: Option<&Past>) -> Doubt {
        let wait = past.map_or(Place::Ended(None), |past| Place::Begun(past.clone()));
        Doubt { word, what: What::Harms, update: step, wait }
    }

    /// Whether every schedule of the run's class has the two in this order. `before`: all that comes before a step.
    pub(super) fn is_harmless<'a>(&self, before: impl Fn(usize) -> Option<&'a Past>) -> bool {
        match &self.wait {
            Place::Ended(end) => end.is_some_and(|end| before(self.update).is_some_and(|past| past.contains(end))),
            Place::Begun(past) => past.closure(before).contains(self.update),
        }
    }
}

/// The waits of the current run, and what is in doubt.
#[derive(Debug, Default)]
pub(super) struct Steady {
    waits: BTreeMap<Word, Vec<Course>>,
    doubts: Vec<Doubt>,
}

impl Steady {
    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.waits.clear();
        self.doubts.clear();
    }

    /// An agent begins to wait. `updates`: of the word, until now.
    pub(super) fn wait(
        &mut self,
        word: Word,
        waited: Waited,
        Beginning { agent, past, is_steady, is_side }: Beginning<'_>,
        mut updates: impl DoubleEndedIterator<Item = Replaced> + Clone,
    ) {
        let mut doubt =
            |update: Replaced, what, wait| self.doubts.push(Doubt { word, what, update: update.step, wait });
        let falsified = if is_side { What::Says } else { What::Falsified };
        if let Some(update) = updates.clone().rfind(|update| waited.is_falsified_by(update))
            && is_steady
            && !past.is_some_and(|past| past.contains(update.step))
        {
            doubt(update, falsified, past.map_or(Place::Ended(None), |past| Place::Begun(past.clone())));
        }
        if let Some(update) = updates.rfind(|update| !is_side && waited.is_forgotten_by(update)) {
            doubt(update, What::Forgets, Place::Ended(None));
        }
        let waits = self.waits.entry(word).or_default();
        // an update behind this wait's end comes behind theirs, too
        let is_behind = |other: &Course| past.is_none_or(|past| other.ended.is_some_and(|end| past.contains(end)));
        waits.retain(|other| other.waited != waited || other.is_side != is_side || !is_behind(other));
        waits.push(Course { agent, waited, is_side, ended: None, falsified: !is_steady, forgotten: is_side });
    }

    /// A step ends the wait of an agent.
    pub(super) fn ends(&mut self, word: Word, agent: AgentId, step: usize) {
        let mut waits = self.waits.get_mut(&word).into_iter().flatten();
        if let Some(wait) = waits.find(|wait| wait.agent == agent && wait.ended.is_none()) {
            wait.ended = Some(step);
        }
    }

    /// A word is updated.
    pub(super) fn update(&mut self, word: Word, update: Replaced) {
        for wait in self.waits.get_mut(&word).into_iter().flatten() {
            let Course { waited, is_side, ended, falsified, forgotten, .. } = wait;
            let mut doubt = |what| {
                self.doubts.push(Doubt { word, what, update: update.step, wait: Place::Ended(*ended) });
                true
            };
            if !*falsified && waited.is_falsified_by(&update) {
                *falsified = doubt(if *is_side { What::Says } else { What::Falsified });
            }
            if !*forgotten && waited.is_forgotten_by(&update) {
                *forgotten = doubt(What::Forgets);
            }
        }
    }

    /// Something else is in doubt.
    pub(super) fn doubts(&mut self, doubts: impl Iterator<Item = Doubt>) {
        self.doubts.extend(doubts);
    }

    /// What is in doubt.
    pub(super) fn into_doubts(self) -> Vec<Doubt> {
        self.doubts
    }
}

#[cfg(test)]
mod tests {
    use onesided::backend::AllocId;
    use onesided::{Cmp, DType};

    use super::super::ids::PeId;
    use super::*;

    const IT: Word = (PeId(0), AllocId(0), 0);
    const ME: AgentId = AgentId(1);

    fn for_value(wanted: u64) -> Waited {
        let comparison = Comparison { cmp: Cmp::Eq, dtype: DType::U64, or_cyclic: false, view: None };
        Waited { comparison, wanted, returns: false }
    }

    fn update(step: usize, old: u64, new: u64) -> Replaced {
        Replaced { old, new, tells_less: false, step }
    }

    fn past(steps: &[usize]) -> Past {
        let mut past = Past::default();
        steps.iter().for_each(|&step| past.add(step));
        past
    }

    fn me(past: &Past) -> Beginning<'_> {
        Beginning { agent: ME, past: Some(past), is_steady: true, is_side: false }
    }

    /// What is wrong where these come before the steps.
    fn wrong(steady: Steady, before: &[Past]) -> Vec<(usize, What)> {
        let mut doubts = steady.into_doubts();
        doubts.retain(|doubt| !doubt.is_harmless(|step| before.get(step)));
        doubts.iter().map(|doubt| (doubt.update, doubt.what)).collect()
    }

    /// A flag is set in step 0, seen in step 1, and taken back in step 2, which comes after this.
    fn taken_back(behind: &[usize]) -> Vec<(usize, What)> {
        let mut steady = Steady::default();
        let sets = [update(0, 0, 1)];
        steady.update(IT, sets[0]);
        steady.wait(IT, for_value(1), me(&past(&[])), sets.into_iter());
        steady.ends(IT, ME, 1);
        steady.update(IT, update(2, 1, 0));
        wrong(steady, &[past(&[]), past(&[0]), past(behind)])
    }

    #[test]
    fn an_update_behind_the_end_of_a_wait_does_no_harm() {
        assert_eq!(taken_back(&[0, 1]), []);
        assert_eq!(taken_back(&[0]), [(2, What::Falsified)], "it can come before the wait ends");
    }

    #[test]
    fn an_update_before_the_beginning_of_a_wait_does_no_harm() {
        let updates = [update(0, 0, 1), update(1, 1, 0)];
        let before = [past(&[]), past(&[0]), past(&[0, 1]), past(&[0])];
        for (begins_behind, is_wrong) in [(1, false), (2, false), (0, true), (3, true)] {
            let mut steady = Steady::default();
            steady.wait(IT, for_value(1), me(&past(&[begins_behind])), updates.into_iter());
            assert_eq!(!wrong(steady, &before).is_empty(), is_wrong, "begins behind {begins_behind}");
        }
    }

    #[test]
    fn a_wait_that_never_ends_is_falsified() {
        let mut steady = Steady::default();
        steady.wait(IT, for_value(1), me(&past(&[])), [].into_iter());
        [update(0, 0, 1), update(1, 1, 2)].into_iter().for_each(|update| steady.update(IT, update));
        assert_eq!(wrong(steady, &[past(&[]), past(&[0])]), [(1, What::Falsified)]);
    }

    #[test]
    fn of_waits_one_behind_the_other_the_last_is_enough() {
        let mut steady = Steady::default();
        for step in [0, 1, 2] {
            steady.wait(IT, for_value(0), me(&past(&(0..step).collect::<Vec<_>>())), [].into_iter());
            steady.ends(IT, ME, step);
        }
        assert_eq!(steady.waits[&IT].len(), 1);
        steady.update(IT, update(3, 0, 1));
        assert_eq!(steady.doubts.len(), 1);
    }

    #[test]
    fn an_update_that_tells_less_is_forgotten_unless_it_comes_behind() {
        let less = Replaced { tells_less: true, ..update(1, 1, 1) };
        for (ended, behind, is_wrong) in [(true, &[0][..], false), (true, &[], true), (false, &[0], true)] {
            let mut steady = Steady::default();
            steady.wait(IT, for_value(1), me(&past(&[])), [].into_iter());
            if ended {
                steady.ends(IT, ME, 0);
            }
            steady.update(IT, less);
            assert_eq!(!wrong(steady, &[past(&[]), past(behind)]).is_empty(), is_wrong);
        }
        let mut steady = Steady::default();
        steady.wait(IT, for_value(1), me(&past(&[1])), [less].into_iter());
        assert_eq!(wrong(steady, &[]), [(1, What::Forgets)], "whoever waits behind it comes after less");
    }

    #[test]
    fn another_value_is_another_end_for_a_wait_that_returns_it() {
        let more = Waited {
            returns: true,
            comparison: Comparison { cmp: Cmp::Ge, ..for_value(1).comparison },
            ..for_value(1)
        };
        assert!(more.is_falsified_by(&update(0, 1, 2)) && !more.is_falsified_by(&update(0, 0, 1)));
        assert!(!Waited { returns: false, ..more }.is_falsified_by(&update(0, 1, 2)));
    }
}
