//! The loops of a search. They decide, visit and count on one thread; schedules are run by a crew.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use onesided::{At, Error, Result};
use smallvec::{SmallVec, smallvec};

use crate::config::{Config, Quiet, Races};
use crate::coroutine::must_be_alone;
use crate::crew::Crew;
use crate::determinism::not_deterministic;
use crate::execution::{Executed, Program};
use crate::explore::{All, Attempt, Attempted, Attempting, Class, Random};
use crate::limits::{Bound, Deadline, is_due};
use crate::machine::GivenUp;
use crate::schedule::Choices;
use crate::search::{Explore, Explored, Strategy};
use crate::simulation::{MAX_STEPS_OF_ALL, Simulation, Visitor};
use crate::verdict::VerdictKind;

/// Schedules to run.
#[derive(Debug)]
pub(crate) enum Job {
    /// Random ones, one after the other.
    Random(SmallVec<[Choices; 1]>),
    /// One of an exhaustive search.
    Attempt(Box<Attempt>),
}

/// The result of a schedule; in an exhaustive search, also what the search learned from it.
pub(crate) type Ran<T> = Result<(Executed<T>, Option<Box<Attempted>>)>;

/// The results of a job: one for each of its schedules.
pub(crate) type Done<T> = SmallVec<[Ran<T>; 1]>;

/// Handing over a job takes about as long as so many steps of a run. So shorter runs are handed over together.
const STEPS_OF_A_JOB: u64 = 1000;
/// So many at most.
const RUNS_OF_A_JOB: u64 = 64;

/// What helpers of a search need besides the program and its jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    /// If classes are counted: the words about which nothing is assumed then.
    classes: Option<Arc<Option<GivenUp>>>,
    /// What ends a run.
    deadline: Deadline,
}

/// The body of a search, for a crew.
pub(crate) type Body<'a, T> = dyn FnMut(&mut Crew<'_, Job, Done<T>>) -> Result<End> + 'a;

/// How a search ended.
#[derive(Debug)]
pub(crate) enum End {
    Explored(Explored),
    /// The program is not deterministic: why.
    Diverged(&'static str),
}

impl Simulation {
    /// Visits schedules of a program. `gather` calls the body with a crew.
    #[track_caller]
    pub(crate) fn visit<T>(
        &mut self,
        how: Explore,
        program: &Program<'_, T>,
        visit: Visitor<'_, T>,
        gather: impl FnOnce(&mut Simulation, &Setup, &mut Body<'_, T>) -> Result<End>,
    ) -> Result<Explored> {
        must_be_alone();
        let end = match how {
            Explore::Random { schedules: 0, .. } | Explore::All { limit: 0 } => {
                let why = "the number of schedules must be at least 1";
                return Err(Error::invalid("explore", why, At::caller()));
            }
            Explore::Random { schedules, seed, strategy } => {
                self.visit_random((schedules, seed, strategy), program, visit, gather)
            }
            Explore::All { limit } => self.visit_all(limit, visit, gather),
        };
        self.engine.ends_at(Deadline::default());
        match end? {
            End::Explored(explored) => Ok(explored),
            End::Diverged(what) => Err(not_deterministic(what, self.first_difference(&Choices::InOrder, program))),
        }
    }

    /// Runs schedules of a search.
    pub(crate) fn job<T>(&mut self, job: Job, program: &Program<'_, T>) -> Done<T> {
        match job {
            Job::Random(all) => all.iter().map(|choices| Ok((self.execute(choices, false, program)?, None))).collect(),
            Job::Attempt(attempt) => smallvec![self.attempt(*attempt, program)],
        }
    }

    fn attempt<T>(&mut self, attempt: Attempt, program: &Program<'_, T>) -> Ran<T> {
        let mut attempting = Attempting::new(attempt);
        let executed =
            program.collect(self.config().pes, &mut |program| self.execute_attempt(&mut attempting, program))?;
        Ok((executed, Some(Box::new(attempting.done()))))
    }

    fn execute_attempt(&mut self, attempting: &mut Attempting, program: &Program<'_>) -> Result<Executed> {
        let max = self.config().max_steps.unwrap_or(MAX_STEPS_OF_ALL);
        self.engine.execute(attempting, max, false, program, At::caller())
    }

    /// Makes a simulation ready to do jobs of a search.
    pub(crate) fn set_up(&mut self, setup: &Setup) {
        self.class = setup.classes.as_ref().map(|given_up| Box::new(Class::without(given_up.as_ref().as_ref())));
        self.engine.ends_at(setup.deadline.clone());
    }

    fn visit_random<T>(
        &mut self,
        (schedules, seed, strategy): (u64, u64, Strategy),
        program: &Program<'_, T>,
        visit: Visitor<'_, T>,
        gather: impl FnOnce(&mut Simulation, &Setup, &mut Body<'_, T>) -> Result<End>,
    ) -> Result<End> {
        let limits = self.limits(schedules);
        self.engine.ends_at(limits.deadline());
        let Config { races, loads, reduce, .. } = *self.config();
        let (proof, reduce) = (races == Races::Find, loads.reduces(reduce));
        if let Some(class) = &mut self.class {
            **class = Class::new(proof, reduce);
        }
        let choices = |index: u64, steps: u64| {
            let seed = Random::nth_seed(seed, index);
            match strategy {
                Strategy::Plain => Choices::Seed(seed),
                Strategy::Pos => Choices::Pos { seed },
                Strategy::Pct { depth } => Choices::Pct { depth, steps, seed },
            }
        };
        // the first schedule is the measure of all others
        let mut first = self.execute(&choices(0, 0), false, program)?;
        let steps = first.picked as u64;
        while self.class.as_mut().is_some_and(|class| class.starts_again()) {
            first = self.execute(&choices(0, 0), false, program)?;
        }
        let classes = self.class.as_ref().map(|class| Arc::new(class.given_up()));
        let setup = Setup { classes, deadline: limits.deadline() };
        let (finish, outlook) = (self.finisher(), Arc::clone(&self.outlook));
        let (counts, mut first) = (self.class.is_some(), Some(first));
        gather(self, &setup, &mut |crew| {
            let (mut explored, mut classes) = (Explored::default(), BTreeSet::new());
            let (mut offered, mut next) = (VecDeque::new(), 1);
            let together = (STEPS_OF_A_JOB / (steps + 1)).clamp(1, RUNS_OF_A_JOB);
            let mut ran = Done::new().into_iter();
            while explored.bound.is_none() {
                let index = explored.schedules;
                while offered.len() < crew.ahead() && next < schedules {
                    let some = next..schedules.min(next + together);
                    next = some.end;
                    offered.push_back(crew.offer(Job::Random(some.map(|index| choices(index, steps)).collect())));
                }
                let (choices, executed) = match first.take() {
                    Some(first) => (choices(0, 0), first),
                    None => {
                        let executed = ran.next().unwrap_or_else(|| {
                            let done = match offered.pop_front() {
                                Some(ticket) => crew.take(ticket),
                                None => crew.run(Job::Random(smallvec![choices(index, steps)])),
                            };
                            ran = done.into_iter();
                            ran.next().expect("a job is one schedule at least")
                        });
                        (choices(index, steps), executed?.0)
                    }
                };
                if let VerdictKind::Stopped { bound } = executed.verdict.kind {
                    explored.bound = Some(bound);
                    break; // the run does not count as a schedule: its end is not known
                }
                classes.extend(executed.class);
                let run = finish(choices, executed);
                explored.count(&run);
                explored.classes = counts.then_some(classes.len() as u64);
                outlook.tell(&explored);
                explored.bound = match visit(&run) {
                    ControlFlow::Break(()) => Some(Bound::Visitor),
                    ControlFlow::Continue(()) => {
                        limits.reached(explored.schedules, || 2 * size_of::<u64>() * classes.len())
                    }
                };
            }
            Ok(End::Explored(explored))
        })
    }

    fn visit_all<T>(
        &mut self,
        limit: u64,
        visit: Visitor<'_, T>,
        gather: impl FnOnce(&mut Simulation, &Setup, &mut Body<'_, T>) -> Result<End>,
    ) -> Result<End> {
        let Config { races, quiet, loads, reduce, .. } = *self.config();
        let (proof, limits) = (races == Races::Find, self.limits(limit));
        self.engine.ends_at(limits.deadline());
        let setup = Setup { deadline: limits.deadline(), ..Setup::default() };
        let by_thread = proof && quiet == Quiet::Pe;
        let (finish, outlook) = (self.finisher(), Arc::clone(&self.outlook));
        gather(self, &setup, &mut |crew| {
            let (mut explored, mut all) = (Explored::default(), All::new(proof, loads.reduces(reduce), by_thread));
            outlook.tell(&explored);
            let (mut was_by_thread, mut races, mut marked) = (false, false, false);
            loop {
                let (executed, attempted) = next(&mut all, crew)?;
                if let VerdictKind::Stopped { bound } = executed.verdict.kind {
                    explored.bound = Some(bound);
                    return Ok(End::Explored(explored));
                }
                all.took(*attempted);
                all.has_ended(executed.verdict.is_ok());
                if all.starts_again(|ticket| crew.forget(ticket)) {
                    explored = Explored { bound: limits.reached(0, || 0), ..Explored::default() };
                    if explored.bound.is_some() {
                        return Ok(End::Explored(explored));
                    }
                    continue;
                }
                races |= proof && !executed.verdict.races.is_empty();
                marked |= !executed.verdict.intended.is_empty();
                if all.has_diverged(races || marked) {
                    return Ok(End::Diverged("the same choices led to different ones later"));
                }
                if all.is_redundant() {
                    explored.redundant += 1;
                    // behind an intended race, a step may have been enabled that was not tried
                    explored.given_up += u64::from(all.is_astray() && !races);
                    explored.steps += executed.steps;
                } else {
                    let mut run = finish(all.choices(), executed);
                    let is_by_thread = all.is_by_thread();
                    if is_by_thread {
                        run.schedule.quiet = Quiet::Thread;
                    }
                    run.begins_again = was_by_thread && !is_by_thread;
                    was_by_thread = is_by_thread;
                    explored.count(&run);
                    if visit(&run).is_break() {
                        explored.bound = Some(Bound::Visitor);
                        return Ok(End::Explored(explored));
                    }
                }
                let has_more = all.next_schedule();
                let begun = explored.schedules + explored.redundant;
                if has_more {
                    explored.bound = limits.reached(begun, || all.memory());
                }
                let ends = !has_more || explored.bound.is_some();
                if ends || is_due(begun) {
                    explored.estimated = Some(all.estimate(explored.schedules));
                }
                outlook.tell(&explored);
                if ends {
                    explored.complete = explored.bound.is_none() && explored.given_up == 0;
                    explored.polls = all.leaves_out_polls();
                    return Ok(End::Explored(explored));
                }
            }
        })
    }
}

/// Runs the next schedule of an exhaustive search, or takes its result from the helper that has run it ahead.
fn next<T>(all: &mut All, crew: &mut Crew<'_, Job, Done<T>>) -> Result<(Executed<T>, Box<Attempted>)> {
    let (attempt, ticket) = all.attempt();
    let ahead = crew.ahead();
    if ahead > 0 {
        all.look_ahead(ahead, |attempt| crew.offer(Job::Attempt(Box::new(attempt))));
    }
    let done = match ticket {
        Some(ticket) if all.is_as_foreseen(ticket, &attempt) => crew.take(ticket),
        stale => {
            stale.into_iter().for_each(|ticket| crew.forget(ticket));
            crew.run(Job::Attempt(Box::new(attempt)))
        }
    };
    let (executed, attempted) = done.into_iter().next().expect("it is one schedule")?;
    Ok((executed, attempted.expect("it is of an exhaustive search")))
}
