//! [`Minimized`]: a schedule that fails, as the run in order with the fewest exceptions.

use std::collections::{BTreeMap, BTreeSet};

use onesided::{At, Pe, Result};

use super::trial::{Effort, most_steps};
use crate::config::Races;
use crate::exception::{Exception, StepName};
use crate::execution::{Executed, Program};
use crate::explore::{Chooser, Exceptions, Late, Named, Pct, Pos, Random, Replay};
use crate::limits::{Deadline, Limits};
use crate::pe::Sim;
use crate::schedule::Choices;
use crate::simulation::{Run, Simulation, launched, with_pe};
use crate::verdict::{Standing, Verdict, VerdictKind};

/// A run that ends as another one did, with as few exceptions from the run in order as were found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Minimized<T> {
    /// The run, recorded. Its schedule is the list of exceptions.
    pub run: Run<T>,
    /// Each exception in words: the step that comes later, and the one that it comes after.
    pub exceptions: Vec<[String; 2]>,
}

/// The most steps of a run that is minimized.
const STEPS: usize = 20_000;

impl Simulation {
    /// Looks for a run that ends as `run` did and differs less from the run in order: "this delivery comes after that read". Each
    /// attempt is one run. `None`: `run` is the one in order, or nothing simpler was found.
    ///
    /// Two runs end alike if their verdicts are of one kind, at the same lines: of a deadlock, those in which somebody waits. And where a race
    /// is all that is wrong, the first race of the one is a race of the other.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use onesided::{Backend, Pe, Result, SignalOp, expect_eq};
    /// use onesided_sim::{Config, Effort, Explore, Simulation};
    ///
    /// fn program(pe: &Pe<impl Backend>) -> Result<()> {
    ///     let word = pe.alloc_zeroed::<u64>(1)?;
    ///     if pe.my_pe() == 0 {
    ///         pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 1)?;
    ///         pe.host().signal_op(word.signal(0), 2, SignalOp::Set, 1)?; // can come first
    ///     }
    ///     pe.host().barrier_all()?;
    ///     if pe.my_pe() == 1 {
    ///         expect_eq(pe.host().signal_fetch(word.signal(0))?, 2, "the last signal")?;
    ///     }
    ///     pe.free(word)
    /// }
    ///
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let mut found = None;
    /// simulation.explore(Explore::random(100, 0), program, |run| {
    ///     found = (!run.is_ok()).then(|| run.without_results());
    ///     if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// let shortest = simulation.minimize(&found.unwrap(), Effort::LITTLE, program)?.unwrap();
    /// assert_eq!(shortest.exceptions.len(), 1);
    /// let again = simulation.replay(&shortest.run.schedule, program)?;
    /// assert!(!again.is_ok());
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub fn minimize<T>(
        &self,
        run: &Run<T>,
        effort: Effort,
        program: impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Option<Minimized<T>>> {
        if run.verdict.has_reached_a_limit() {
            return Ok(None); // another run would be as long, and not end either
        }
        let wanted = Ending::of(&run.verdict);
        let process = with_pe(program);
        let mut runs = Runs::new(self, effort, launched(&process), run.steps)?;
        let Some(steps) = runs.steps_of(&run.schedule.choices)? else { return Ok(None) };
        runs.reduce(&steps, |other| wanted.is_that_of(&other.verdict))
    }
}

/// How a run ended: what two runs must have in common to end alike.
#[derive(Debug)]
struct Ending {
    outcome: String,
    /// The lines that it is about.
    lines: BTreeSet<At>,
    race: Option<[At; 2]>,
}

impl Ending {
    fn of(verdict: &Verdict) -> Ending {
        let lines = match &verdict.kind {
            VerdictKind::Failed { error, .. } => [error.at()].into(),
            VerdictKind::Panicked { at, .. } => at.iter().copied().collect(),
            VerdictKind::FreedInUse { at, .. } | VerdictKind::Kernel { at, .. } => [*at].into(),
            VerdictKind::Mismatch { calls, .. } => calls.iter().map(|call| call.at).collect(),
            VerdictKind::CollectivesOutOfOrder { calls, .. } => calls.iter().map(|(_, at)| *at).collect(),
            VerdictKind::Leak { leaks } => leaks.iter().map(|(_, live)| live.at).collect(),
            VerdictKind::Deadlock => {
                let waiting = verdict.agents.iter().filter(|state| matches!(state.standing, Standing::Waits(_)));
                waiting.filter_map(|state| state.at).collect()
            }
            _ => BTreeSet::new(),
        };
        // which races lie behind a failure depends on what follows it
        let race = verdict.races.first().filter(|_| matches!(verdict.kind, VerdictKind::Race));
        let race = race.map(|race| [race.first.at, race.second.at]);
        Ending { outcome: verdict.kind.outcome(), lines, race }
    }

    fn is_that_of(&self, verdict: &Verdict) -> bool {
        let other = Ending::of(verdict);
        let has_race = |race: &[At; 2]| verdict.races.iter().any(|other| [other.first.at, other.second.at] == *race);
        (&self.outcome, &self.lines) == (&other.outcome, &other.lines) && self.race.as_ref().is_none_or(has_race)
    }
}

/// Runs of one program, as long as the effort lasts.
pub(super) struct Runs<'a, T> {
    pub(super) simulation: Simulation,
    pub(super) program: Program<'a, T>,
    /// Steps left.
    pub(super) left: u64,
    pub(super) max_steps: u64,
    /// Runs made.
    pub(super) made: u64,
    /// Who stops the search, and its time, end this too.
    limits: Limits,
}

/// Steps after which a run is given up in any case.
pub(super) const LONG: u64 = 100_000;

impl<'a, T> Runs<'a, T> {
    /// `steps`: of a run that is known. Others are given up when they take far more than that and the run in order.
    pub(super) fn new(of: &Simulation, effort: Effort, program: Program<'a, T>, steps: u64) -> Result<Runs<'a, T>> {
        let mut simulation = Simulation::new_for(of.config().clone(), &of.pulse())?;
        let max_steps = of.config().max_steps.unwrap_or(LONG).min(LONG);
        let limits = of.limits(u64::MAX);
        simulation.engine.ends_at(limits.deadline());
        let mut runs = Runs { simulation, program, left: effort.steps, max_steps, made: 0, limits };
        let in_order = runs.with(&mut Exceptions::default())?.filter(|run| run.unseen.is_none());
        runs.max_steps = most_steps(in_order.map_or(steps, |run| run.steps.max(steps)), Some(max_steps));
        runs.made = 0;
        Ok(runs)
    }

    /// Whether the effort is used up, or somebody wants an end.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0 || self.limits.reached(0, || 0).is_some()
    }

    /// A run, unless the effort is used up.
    pub(super) fn with<C: Chooser>(&mut self, chooser: &mut C) -> Result<Option<Executed<T>>> {
        if self.is_over() {
            return Ok(None);
        }
        self.made += 1;
        let executed = self.simulation.execute_by(chooser, self.max_steps, false, &self.program)?;
        if matches!(executed.verdict.kind, VerdictKind::Stopped { .. }) {
            self.left = 0;
            return Ok(None);
        }
        self.left = self.left.saturating_sub(executed.steps);
        Ok(Some(executed))
    }

    /// The steps of a schedule; `None` where it is the one in order, or too long.
    pub(super) fn steps_of(&mut self, choices: &Choices) -> Result<Option<Vec<StepName>>> {
        let steps = match choices {
            Choices::InOrder => return Ok(None),
            Choices::Seed(seed) if self.simulation.config().profile.is_adversary() => {
                self.named(Late::new(Some(*seed)))?
            }
            Choices::Seed(seed) => self.named(Random::new(*seed))?,
            Choices::Pos { seed } => self.named(Pos::new(*seed))?,
            Choices::Pct { depth, steps, seed } => self.named(Pct::new(*seed, *depth, *steps))?,
            Choices::Picks(picks) => {
                let is_proof = self.simulation.config().races == Races::Find;
                self.named(Replay::new(picks, is_proof))?
            }
            Choices::Stepwise(picks) => self.named(Replay::stepwise(picks))?,
            Choices::Exceptions(exceptions) => self.named(Exceptions::new(exceptions))?,
        };
        Ok(steps.filter(|steps| steps.len() <= STEPS))
    }

    /// The same, also of the run in order.
    pub(super) fn all_steps_of(&mut self, choices: &Choices) -> Result<Option<Vec<StepName>>> {
        match choices {
            Choices::InOrder => self.named(Exceptions::default()),
            other => self.steps_of(other),
        }
    }

    pub(super) fn named<C: Chooser>(&mut self, chooser: C) -> Result<Option<Vec<StepName>>> {
        let mut named = Named::new(chooser);
        Ok(self.with(&mut named)?.map(|_| named.steps))
    }

    /// The fewest exceptions with which a run has what `wanted` asks for; `steps` are those of a run that has it.
    pub(super) fn reduce(
        &mut self,
        steps: &[StepName],
        wanted: impl Fn(&Executed<T>) -> bool,
    ) -> Result<Option<Minimized<T>>> {
        let Some(in_order) = self.named(Exceptions::default())? else { return Ok(None) };
        let has = |runs: &mut Runs<'a, T>, exceptions: &[Exception]| -> Result<bool> {
            Ok(runs.with(&mut Exceptions::new(exceptions))?.is_some_and(|executed| wanted(&executed)))
        };
        let mut found = None;
        for exceptions in [inversions(steps, &in_order), chain(steps, &in_order)] {
            if has(self, &exceptions)? {
                found = Some(exceptions);
                break;
            }
        }
        let Some(mut exceptions) = found else { return Ok(None) };
        // delta debugging: leave out ever smaller parts
        let mut part = exceptions.len();
        while part > 0 && !self.is_over() {
            let mut from = 0;
            let before = exceptions.len();
            while from < exceptions.len() && !self.is_over() {
                let mut fewer = exceptions.clone();
                fewer.drain(from..(from + part).min(exceptions.len()));
                match has(self, &fewer)? {
                    true => exceptions = fewer,
                    false => from += part,
                }
            }
            part = if part == 1 && exceptions.len() < before { 1 } else { part / 2 };
        }
        self.recorded(exceptions).map(Some)
    }

    /// The run with these exceptions, recorded and in words. Where the effort did not last, some of them may make no difference: a schedule has none
    /// of those.
    pub(super) fn recorded(&mut self, mut exceptions: Vec<Exception>) -> Result<Minimized<T>> {
        self.simulation.engine.ends_at(Deadline::default()); // what was found is kept
        let mut chooser = Exceptions::new(&exceptions);
        self.simulation.execute_by(&mut chooser, self.max_steps, true, &self.program)?;
        exceptions.retain(|exception| chooser.has_held(exception));
        let words: &BTreeMap<StepName, String> = &chooser.words;
        let unreached = exceptions.iter().map(|exception| exception.after).filter(|step| !words.contains_key(step));
        let mut in_order = Exceptions::naming(unreached); // the run in order may come to them
        if !in_order.is_settled() {
            self.simulation.execute_by(&mut in_order, self.max_steps, true, &self.program)?;
        }
        let unreached = |step: &StepName| match in_order.words.get(step) {
            Some(words) => format!("{words}, which is not reached"),
            None => "a step that was not reached".to_string(),
        };
        let word = |step: &StepName| words.get(step).cloned().unwrap_or_else(|| unreached(step));
        let in_words = exceptions.iter().map(|Exception { late, after }| [word(late), word(after)]).collect();
        let run = self.simulation.record(&Choices::Exceptions(exceptions), &self.program)?;
        Ok(Minimized { run, exceptions: in_words })
    }
}

/// For each step the last one before it that comes behind it in order. A step that the run did not come to is behind all of its steps.
fn inversions(steps: &[StepName], in_order: &[StepName]) -> Vec<Exception> {
    let places: BTreeMap<StepName, usize> = in_order.iter().enumerate().map(|(place, step)| (*step, place)).collect();
    let place = |step: &StepName| places.get(step).copied().unwrap_or(usize::MAX);
    let mut exceptions = Vec::new();
    // those that can still be the last for somebody: each further one comes earlier in order
    let mut behind: Vec<(usize, StepName)> = Vec::new();
    for late in steps {
        let mine = place(late);
        while behind.pop_if(|(other, _)| *other <= mine).is_some() {}
        exceptions.extend(behind.last().map(|(_, after)| Exception { late: *late, after: *after }));
        behind.push((mine, *late));
    }
    for late in unreached(steps, in_order) {
        let last = behind.partition_point(|(other, _)| *other > place(&late));
        exceptions.extend(last.checked_sub(1).map(|last| Exception { late, after: behind[last].1 }));
    }
    exceptions
}

/// Each step after the one before it, and what was not reached behind the last: the whole schedule.
fn chain(steps: &[StepName], in_order: &[StepName]) -> Vec<Exception> {
    let pairs = steps.windows(2).map(|pair| Exception { late: pair[1], after: pair[0] });
    let last = steps.last().copied();
    let rest = unreached(steps, in_order).filter_map(|late| Some(Exception { late, after: last? }));
    pairs.chain(rest).collect()
}

/// Steps of the run in order that another run did not come to.
fn unreached<'a>(steps: &[StepName], in_order: &'a [StepName]) -> impl Iterator<Item = StepName> + use<'a> {
    let reached: BTreeSet<StepName> = steps.iter().copied().collect();
    in_order.iter().copied().filter(move |step| !reached.contains(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(keys: &[u64]) -> Vec<StepName> {
        keys.iter().map(|key| StepName { key: *key, times: 0 }).collect()
    }

    #[test]
    fn a_step_that_comes_later_is_an_exception() {
        let of = |run: &[u64]| -> Vec<(u64, u64)> {
            let exceptions = inversions(&steps(run), &steps(&[1, 2, 3, 4, 5]));
            exceptions.iter().map(|Exception { late, after }| (late.key, after.key)).collect()
        };
        assert_eq!(of(&[1, 2, 3, 4, 5]), []);
        assert_eq!(of(&[1, 3, 4, 2, 5]), [(2, 4)]);
        assert_eq!(of(&[2, 5, 1, 3, 4]), [(1, 5), (3, 5), (4, 5)]);
        assert_eq!(of(&[1, 2]), [], "it ends early");
        assert_eq!(of(&[1, 4]), [(2, 4), (3, 4)], "steps that it does not come to");
        assert_eq!(of(&[1, 9, 2, 3, 4, 5]), [(2, 9), (3, 9), (4, 9), (5, 9)], "a step that is not there in order");
    }

    /// One that comes first and is the last in order. A look at it for each step that comes behind would take seconds.
    #[test]
    fn in_a_long_run_one_step_is_behind_all_others() {
        let n = STEPS as u64;
        let (run, in_order) =
            (steps(&Vec::from_iter((0..n).rev().take(1).chain(0..n / 2))), steps(&Vec::from_iter(0..n)));
        let exceptions = inversions(&run, &in_order);
        assert_eq!(exceptions.len(), n as usize - 1);
        assert!(exceptions.iter().all(|exception| exception.after == run[0]));
    }
}
