//! What a proof assumes of mbarriers until a run shows otherwise: a thread that waits for a phase sees its end before the next phase ends, too.
//!
//! A thread knows a phase by its parity only. If one more phase ended before the thread looked, it would wait on. If two more ended, it would take the
//! last for its own. Right programs do not let that happen: a thread that waits for a phase does something before the next one can end, mostly an
//! arrival. Then it does not matter when the thread sees the end of the phase: it does so at once, and that is in no order with arrivals.
//!
//! A run shows otherwise if nothing orders a thread's look and the end of the phase behind the one that it saw. The mbarrier is given up then: the search
//! starts again, and tries each look in all orders with arrivals.

use std::collections::{BTreeMap, BTreeSet};

use super::access::BlockName;
use super::past::Past;

/// An mbarrier of a block, by its address in shared memory.
pub(crate) type Mbarrier = (BlockName, u64);

/// The mbarriers of a search.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    /// Those that are given up.
    matters: BTreeSet<Mbarrier>,
    /// Those of which a run has shown that a look could come too late.
    missed: BTreeSet<Mbarrier>,
    /// The current run.
    course: BTreeMap<Mbarrier, Course>,
}

/// What has happened at an mbarrier in a run.
#[derive(Debug, Default)]
struct Course {
    /// The arrivals in the phase that lasts, and what those come after.
    arrivals: Past,
    arrived: Past,
    /// The arrivals in the phase that ended last, and what they come after.
    ended: Past,
    /// The arrivals in each phase that has ended. It does not matter which of them came last.
    phases: Vec<Past>,
    /// The steps of those who have seen that the last phase has ended.
    seen: Vec<usize>,
}

impl Course {
    /// Whether a look with this past could have come before the end of the last phase but one. For a look that does not find its phase over: before
    /// the end of the last phase.
    fn is_late(&self, past: &Past, finds_it_over: bool) -> bool {
        let phase = self.phases.len().checked_sub(1 + usize::from(finds_it_over));
        phase.is_some_and(|phase| !self.phases[phase].iter().all(|arrival| past.contains(arrival)))
    }
}

impl Phases {
    /// Without what is given up.
    pub(super) fn of(matters: &BTreeSet<Mbarrier>) -> Phases {
        Phases { matters: matters.clone(), ..Phases::default() }
    }

    /// What is given up.
    pub(super) fn known(&self) -> &BTreeSet<Mbarrier> {
        &self.matters
    }

    /// Whether it matters when a thread looks at an mbarrier.
    pub(super) fn matters(&self, mbarrier: Mbarrier) -> bool {
        self.matters.contains(&mbarrier)
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.course.clear();
    }

    /// Somebody arrives in a step. `past`: what comes before whatever that does next. `ends`: the phase is over.
    pub(super) fn arrive(&mut self, mbarrier: Mbarrier, (step, past): (usize, &Past), ends: bool) {
        let course = self.course.entry(mbarrier).or_default();
        course.arrivals.add(step);
        course.arrived.join(past);
        if ends {
            if !course.seen.drain(..).all(|look| course.arrived.contains(look)) {
                self.missed.insert(mbarrier);
            }
            course.ended = std::mem::take(&mut course.arrived);
            course.phases.push(std::mem::take(&mut course.arrivals));
        }
    }

    /// A thread sees, in a step, that the last phase is over. `past`: what comes before the step. Returns what else does.
    pub(super) fn see(&mut self, mbarrier: Mbarrier, step: usize, past: &Past) -> Past {
        let course = self.course.entry(mbarrier).or_default();
        course.seen.push(step);
        if course.is_late(past, true) {
            self.missed.insert(mbarrier);
        }
        course.ended.clone()
    }

    /// A thread waits at the end of a run.
    pub(super) fn waits(&mut self, mbarrier: Mbarrier, past: &Past) {
        if self.course.get(&mbarrier).is_some_and(|course| course.is_late(past, false)) {
            self.missed.insert(mbarrier);
        }
    }

    /// Adds what another run has shown.
    pub(super) fn learn(&mut self, of: Phases) {
        self.missed.extend(of.missed);
    }

    /// Gives up what runs have shown to be wrong. Returns whether there was any.
    pub(super) fn give_up(&mut self) -> bool {
        let before = self.matters.len();
        self.matters.append(&mut self.missed);
        self.matters.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::PeId;
    use super::*;

    const IT: Mbarrier = ((PeId(1), 7), 64);

    fn past(steps: &[usize]) -> Past {
        let mut past = Past::default();
        steps.iter().for_each(|&step| past.add(step));
        past
    }

    /// Two threads arrive and look, phase after phase: each look comes before the arrival of the same thread.
    #[test]
    fn a_look_before_the_next_arrival_is_in_time() {
        let mut phases = Phases::default();
        let (mut mine, mut other) = (past(&[]), past(&[]));
        for step in (0..40).step_by(4) {
            mine.add(step);
            phases.arrive(IT, (step, &mine), false);
            other.add(step + 1);
            phases.arrive(IT, (step + 1, &other), true);
            for (look, own) in [(step + 2, &mut mine), (step + 3, &mut other)] {
                let more = phases.see(IT, look, own);
                assert!(more.contains(step) && more.contains(step + 1));
                own.join(&more);
                own.add(look);
            }
        }
        assert!(!phases.give_up());
    }

    #[test]
    fn a_look_that_nothing_orders_before_the_next_end_is_late() {
        let mut phases = Phases::default();
        phases.arrive(IT, (0, &past(&[0])), true);
        phases.see(IT, 1, &past(&[]));
        phases.arrive(IT, (2, &past(&[0, 2])), true);
        assert!(phases.give_up() && phases.matters(IT) && !phases.matters(((PeId(0), 7), 64)));
        assert!(!phases.give_up(), "once is enough");
    }

    #[test]
    fn a_look_behind_two_ends_that_it_does_not_know_is_late() {
        for (known, is_late) in [(past(&[]), true), (past(&[0]), false)] {
            let mut phases = Phases::default();
            phases.arrive(IT, (0, &past(&[0])), true);
            phases.arrive(IT, (1, &past(&[0, 1])), true);
            phases.see(IT, 2, &known);
            assert_eq!(phases.give_up(), is_late);
        }
        for (known, is_late) in [(past(&[]), true), (past(&[0]), false)] {
            let mut phases = Phases::default();
            phases.arrive(IT, (0, &past(&[0])), true);
            phases.waits(IT, &known);
            assert_eq!(phases.give_up(), is_late, "who still waits, and could have seen the end");
        }
        let mut phases = Phases::default();
        phases.arrive(IT, (0, &past(&[0])), false);
        phases.arrive(IT, (1, &past(&[1])), true);
        phases.waits(IT, &past(&[1]));
        assert!(phases.give_up(), "who has ended the phase need not know of the other arrival");
    }

    #[test]
    fn a_run_says_what_it_has_shown() {
        let mut one = Phases::default();
        one.arrive(IT, (0, &past(&[0])), true);
        one.waits(IT, &past(&[]));
        let mut all = Phases::default();
        all.learn(one);
        assert!(all.give_up());
        assert!(Phases::of(all.known()).matters(IT));
        all.begin();
        all.waits(IT, &past(&[]));
        assert!(!all.give_up());
    }
}
