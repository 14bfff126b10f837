//! [`Critical`]: the step of a failing run after which every schedule fails.

use std::fmt;
use std::sync::Arc;

use onesided::{At, Pe, Result, count};

use super::minimize::Runs;
use super::trial::Effort;
use crate::crew::Crew;
use crate::exception::StepName;
use crate::execution::{Executed, Program};
use crate::explore::{All, Attempting, Behind, Chooser, Exceptions, Random};
use crate::machine::Needs;
use crate::pe::Sim;
use crate::simulation::{Run, Simulation, launched, with_pe};
use crate::verdict::{Unseen, VerdictKind};

/// The critical step of a failing run: before it some schedule goes well, behind it none does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Critical {
    /// The step in words: `the delivery of put at ring.rs:7 by PE 0 to PE 1`.
    pub step: String,
    /// The line that asked for it.
    pub at: Option<At>,
    /// The PE that did.
    pub pe: usize,
    /// Its number among the run's steps that could have come in another order, from 1.
    pub number: usize,
    /// How many of these there are.
    pub of: usize,
    /// The time at which it was taken, as [`Event::step`](crate::Event::step) counts.
    pub time: u64,
    /// The step in words that a schedule takes in its place that goes well.
    pub instead: String,
    /// What was shown of the schedules behind it.
    pub shown: NoWayBack,
}

/// What was shown of the schedules behind a critical step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "all of them were visited, or not")]
pub enum NoWayBack {
    /// All fail: so many classes.
    Proved {
        /// Classes of schedules.
        classes: u64,
    },
    /// So many were tried, and none went well.
    Tried {
        /// Schedules.
        schedules: u64,
    },
}

/// Random schedules that are tried behind each prefix, besides the one in order.
const RANDOM: u64 = 60;
/// The most steps of a run that is looked at.
const STEPS: usize = 5000;
/// The most schedules behind a prefix that are visited, where none of those at random goes well.
const BEHIND: u64 = 20_000;

/// A schedule to try: it begins with the first steps of a run.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    steps: Arc<[StepName]>,
    /// How many of them.
    prefix: usize,
    /// In order behind that, or at random.
    seed: Option<u64>,
    max_steps: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Tried {
    /// Whether it went well, and began as it should.
    well: bool,
    /// It was ended from outside.
    stopped: bool,
    steps: u64,
    /// Its steps.
    taken: Vec<StepName>,
}

/// Who tries schedules.
pub(crate) type Triers<'a> = Crew<'a, Job, Result<Tried>>;

impl Job {
    /// Runs it.
    pub(crate) fn run<T>(self, simulation: &mut Simulation, program: &Program<'_, T>) -> Result<Tried> {
        let (steps, max) = (&self.steps[..self.prefix], self.max_steps);
        Ok(match self.seed {
            None => tried(steps, Exceptions::default(), max, simulation, program)?,
            Some(seed) => tried(steps, Random::new(seed), max, simulation, program)?,
        })
    }
}

fn tried<T, C: Chooser>(
    steps: &[StepName],
    behind: C,
    max_steps: u64,
    simulation: &mut Simulation,
    program: &Program<'_, T>,
) -> Result<Tried> {
    let mut chooser = Behind::new(steps, behind);
    let run = simulation.execute_by(&mut chooser, max_steps, false, program)?;
    let stopped = matches!(run.verdict.kind, VerdictKind::Stopped { .. });
    Ok(Tried { well: run.verdict.is_ok() && !chooser.is_lost, stopped, steps: run.steps, taken: chooser.taken })
}

impl Simulation {
    /// Looks for the step of a failing run after which every schedule fails: what came before it did no harm yet. Schedules that
    /// begin as the run does are tried, in order, at random, and then all of them if they are few. `None`: every schedule fails
    /// from the start, as where a race is the finding, or the effort does not last.
    ///
    /// ```
    /// use onesided::{Backend, Cmp, Pe, Result, SignalOp};
    /// use onesided_sim::{Config, Effort, Explore, Simulation};
    /// use std::ops::ControlFlow;
    ///
    /// fn program(pe: &Pe<impl Backend>) -> Result<()> {
    ///     let flag = pe.alloc_zeroed::<u64>(1)?;
    ///     if pe.my_pe() == 0 {
    ///         pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    ///         pe.host().signal_op(flag.signal(0), 2, SignalOp::Set, 1)?; // can come first
    ///     } else {
    ///         pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 2)?;
    ///     }
    ///     pe.free(flag)
    /// }
    ///
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let mut found = None;
    /// simulation.explore(Explore::All { limit: 100 }, program, |run| {
    ///     found = (!run.is_ok()).then(|| run.without_results());
    ///     if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// let critical = simulation.critical(&found.unwrap(), Effort::LITTLE, program)?.unwrap();
    /// assert!(critical.step.starts_with("the signal of signal_op at "), "{critical}");
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub fn critical<T>(
        &self,
        run: &Run<T>,
        effort: Effort,
        program: impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Option<Critical>> {
        let process = with_pe(program);
        let program = launched(&process);
        let mut own = Simulation::new_for(self.config().clone(), &self.pulse())?;
        own.engine.ends_at(self.limits(u64::MAX).deadline());
        let mut job = |job: Job| job.run(&mut own, &program);
        self.critical_with(run, effort, &program, &mut Crew::alone(&mut job))
    }

    /// The same, with a crew.
    pub(crate) fn critical_with<T>(
        &self,
        run: &Run<T>,
        effort: Effort,
        program: &Program<'_, T>,
        crew: &mut Triers<'_>,
    ) -> Result<Option<Critical>> {
        if run.verdict.has_reached_a_limit() {
            return Ok(None); // another run would be as long, and not end either
        }
        let mut runs = Runs::new(self, effort, Program { run: program.run, starts: program.starts }, run.steps)?;
        let Some(steps) = runs.all_steps_of(&run.schedule.choices)?.filter(|steps| steps.len() <= STEPS) else {
            return Ok(None);
        };
        let (outcome, steps) = (run.verdict.kind.outcome(), Arc::<[StepName]>::from(steps));
        // the run is followed by the names of its steps; a loop that polls has others where a search looks at it
        let again = runs.with(&mut Behind::new(&steps, Exceptions::default()))?;
        if again.is_none_or(|again| again.verdict.kind.outcome() != outcome) {
            return Ok(None);
        }
        let mut search = Search { runs, steps, crew, is_race: matches!(run.verdict.kind, VerdictKind::Race) };
        search.run()
    }
}

struct Search<'a, 'b, 'c, T> {
    runs: Runs<'a, T>,
    steps: Arc<[StepName]>,
    crew: &'b mut Triers<'c>,
    is_race: bool,
}

/// What is known of the schedules behind a prefix.
enum Look {
    /// One goes well. Its steps.
    Well(Vec<StepName>),
    Fails(NoWayBack),
    /// The effort did not last.
    Unknown,
}

/// Which prefixes of a run can still go well.
struct Known {
    /// The longest one behind which a schedule does.
    before: usize,
    /// The shortest one behind which none was found to.
    behind: Option<(usize, NoWayBack)>,
    /// The steps of the run.
    of: usize,
}

impl Known {
    /// The next prefix to look at: at last the whole run, because a step may be critical that is the last.
    fn next(&self) -> Option<usize> {
        let behind = self.behind.map_or(self.of, |(behind, _)| behind);
        match self.before + 1 < behind {
            true => Some(self.before + (behind - self.before).div_ceil(2)),
            false => (self.behind.is_none() && self.before < self.of).then_some(self.of),
        }
    }

    /// A schedule with this prefix goes well. If it goes beyond a failure that an earlier look has found, that one no longer counts.
    fn goes_well(&mut self, prefix: usize) {
        self.before = prefix;
        self.behind = self.behind.filter(|(behind, _)| *behind > prefix);
    }
}

impl<T> Search<'_, '_, '_, T> {
    fn run(&mut self) -> Result<Option<Critical>> {
        let Look::Well(mut well) = self.look(0)? else { return Ok(None) };
        let mut known = Known { before: self.common(&well), behind: None, of: self.steps.len() };
        while let Some(middle) = known.next() {
            match self.look(middle)? {
                Look::Well(other) => {
                    known.goes_well(self.common(&other).max(middle));
                    well = other;
                }
                Look::Fails(shown) => known.behind = Some((middle, shown)),
                Look::Unknown => return Ok(None),
            }
        }
        let Some((number, shown)) = known.behind else { return Ok(None) };
        self.in_words(number, &well, shown)
    }

    /// How many steps at its beginning another run has in common with this one.
    fn common(&self, other: &[StepName]) -> usize {
        self.steps.iter().zip(other).take_while(|(step, other)| step == other).count()
    }

    /// Looks for a schedule that begins with so many steps and goes well.
    fn look(&mut self, prefix: usize) -> Result<Look> {
        let job = |search: &Self, index: u64| Job {
            steps: Arc::clone(&search.steps),
            prefix,
            seed: index.checked_sub(1).map(|index| Random::nth_seed(prefix as u64, index)),
            max_steps: search.runs.max_steps,
        };
        let (mut next, mut offered) = (0, std::collections::VecDeque::new());
        let mut found = Look::Unknown;
        for _ in 0..=RANDOM {
            while next <= RANDOM && offered.len() < self.crew.ahead() {
                offered.push_back(self.crew.offer(job(self, next)));
                next += 1;
            }
            let Tried { well, stopped, steps, taken } = match offered.pop_front() {
                Some(ticket) => self.crew.take(ticket)?,
                None => {
                    next += 1;
                    self.crew.run(job(self, next - 1))?
                }
            };
            self.runs.left = if stopped { 0 } else { self.runs.left.saturating_sub(steps) };
            if well {
                found = Look::Well(taken);
            }
            if well || self.runs.is_over() {
                break;
            }
        }
        offered.into_iter().for_each(|ticket| self.crew.forget(ticket));
        match found {
            Look::Unknown if !(self.runs.is_over() || self.is_race && prefix == 0) => self.look_at_all(prefix),
            found => Ok(found),
        }
    }

    /// The same, at all that are not equivalent.
    fn look_at_all(&mut self, prefix: usize) -> Result<Look> {
        let tried = Look::Fails(NoWayBack::Tried { schedules: RANDOM + 1 });
        let steps = Arc::clone(&self.steps);
        let mut names = Behind::new(&steps[..prefix], Tracked);
        let Some(_) = self.runs.with(&mut names)? else { return Ok(Look::Unknown) };
        if names.is_lost {
            return Ok(tried); // steps have other names in a search of all
        }
        let mut all = All::behind(names.known);
        let (mut classes, mut complete) = (0, true);
        loop {
            let mut attempting = Attempting::new(all.attempt().0);
            let Some(executed) = self.runs.with(&mut attempting)? else { return Ok(tried) };
            let Executed { verdict, unseen, .. } = executed;
            if unseen == Some(Unseen::Limit) {
                return Ok(tried); // long schedules are not all visited, and their order takes time in the square of their steps
            }
            all.took(attempting.done());
            if all.has_diverged(false) || all.starts_again(|_| ()) {
                return Ok(tried);
            }
            classes += u64::from(!all.is_redundant());
            complete &= all.is_redundant() || !verdict.kind.is_given_up();
            if verdict.is_ok() && !all.is_redundant() {
                return Ok(Look::Well(all.steps()));
            }
            if !all.next_schedule() {
                break;
            }
            if classes >= BEHIND {
                complete = false;
                break;
            }
        }
        let schedules = RANDOM + 1 + classes;
        let is_all = complete && !all.leaves_out_polls();
        Ok(Look::Fails(if is_all { NoWayBack::Proved { classes } } else { NoWayBack::Tried { schedules } }))
    }

    /// The step with this number, and the one that another run takes in its place.
    fn in_words(&mut self, number: usize, well: &[StepName], shown: NoWayBack) -> Result<Option<Critical>> {
        let mut word = |steps: &[StepName]| -> Result<_> {
            let mut chooser = Behind::new(steps, Exceptions::default());
            chooser.named = number - 1;
            let max = self.runs.max_steps;
            self.runs.simulation.execute_by(&mut chooser, max, true, &self.runs.program)?;
            Ok(chooser.words.filter(|_| !chooser.is_lost))
        };
        let (own, other) = (word(&self.steps)?, word(well)?);
        let (Some(own), Some(other)) = (own, other) else { return Ok(None) };
        let (of, instead) = (self.steps.len(), other.text);
        let (step, at, pe, time) = (own.text, own.at, own.pe, own.time);
        Ok(Some(Critical { step, at, pe, number, of, time, instead, shown }))
    }
}

/// Nothing is picked behind the prefix but the first step, as a search of all sees it.
struct Tracked;

impl Chooser for Tracked {
    const NEEDS: Needs = Needs::PASTS;

    fn pick(&mut self, _: &crate::machine::Machine, _: usize) -> usize {
        0
    }
}

impl fmt::Display for NoWayBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoWayBack::Proved { classes: 1 } => f.write_str("the only class of schedules behind it fails"),
            NoWayBack::Proved { classes } => write!(f, "all {classes} classes of schedules behind it fail"),
            NoWayBack::Tried { schedules } => {
                let schedules = count(*schedules, "schedule");
                write!(f, "none of {schedules} that were tried behind it goes well")
            }
        }
    }
}

impl fmt::Display for Critical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Critical { step, time, instead, shown, .. } = self;
        write!(f, "{step}, in step {time}: {shown}; with {instead} in its place it could go well")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: NoWayBack = NoWayBack::Tried { schedules: 61 };

    /// What was tried in vain is no longer critical once a schedule has come further and gone well.
    #[test]
    fn a_schedule_that_was_missed_takes_back_what_was_tried() {
        let mut known = Known { before: 2, behind: None, of: 20 };
        assert_eq!(known.next(), Some(11));
        known.behind = Some((11, SHOWN));
        assert_eq!(known.next(), Some(7));
        known.goes_well(13);
        assert_eq!((known.before, known.behind, known.next()), (13, None, Some(17)));
        known.behind = Some((17, SHOWN));
        known.goes_well(16);
        assert_eq!((known.behind, known.next()), (Some((17, SHOWN)), None));
    }

    #[test]
    fn the_last_step_is_looked_at_too() {
        let mut known = Known { before: 4, behind: None, of: 5 };
        assert_eq!(known.next(), Some(5));
        known.goes_well(5);
        assert_eq!(known.next(), None);
    }
}
