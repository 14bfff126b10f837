//! A trial of a changed program: whether it is right, as far as the effort goes.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onesided::{Pe, Result};

use super::edit::Edit;
use super::lacking::{Lacking, lacking};
use crate::config::Config;
use crate::coroutine::Pulse;
use crate::crew::Crew;
use crate::limits::{Bound, Deadline, Limits};
use crate::pe::Sim;
use crate::search::{Explore, Strategy};
use crate::simulation::{Run, Simulation};
use crate::verdict::VerdictKind;

/// How much is tried to explain a finding. It is counted in schedules and steps, so the same finding has the same explanation on
/// every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who gives an effort says what all of it is")]
pub struct Effort {
    /// Schedules of each change that is tried.
    pub schedules: u64,
    /// Steps of everything that is tried.
    pub steps: u64,
}

impl Effort {
    /// A fraction of a second.
    pub const LITTLE: Effort = Effort { schedules: 1000, steps: 300_000 };
    /// Up to a minute.
    pub const MUCH: Effort = Effort { schedules: 100_000, steps: 60_000_000 };
}

/// Random schedules of each strategy, where not every schedule could be visited.
const RANDOM: u64 = 200;
const DEPTH: u32 = 3;

/// What a trial has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Something is wrong: what is not in order in the run that shows it.
    Fails(Vec<Lacking>),
    /// Nothing is wrong on any schedule: so many classes. `polls`: whether polls were left out that would have read nothing new.
    Proved { classes: u64, polls: bool },
    /// Nothing was wrong on so many schedules.
    NothingFound(u64),
    /// The run in order was given up: nobody knows how it ends.
    Unseen,
    /// The effort is used up.
    NotTried,
}

/// A change to try.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    config: Arc<Config>,
    edits: Vec<Edit>,
    /// Schedules and steps that it may take.
    schedules: u64,
    steps: u64,
    /// What ends all trials: somebody wants it, or the time is over.
    limits: Limits,
    /// Of the simulation whose finding is explained.
    pulse: Arc<Pulse>,
    /// Nobody needs this one any more.
    cancel: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Tried {
    trial: Trial,
    /// Steps taken.
    steps: u64,
    /// Somebody wanted it to end, or the time was over.
    stopped: bool,
}

/// Who tries changes.
pub(crate) type Triers<'a> = Crew<'a, Job, Result<Tried>>;

/// Tries changes of one program.
pub(super) struct Trials<'a, 'b> {
    config: Arc<Config>,
    limits: Limits,
    pulse: Arc<Pulse>,
    cancel: Arc<AtomicBool>,
    crew: &'a mut Triers<'b>,
    effort: Effort,
    /// Steps of one trial: the first may not take all.
    share: u64,
    /// Changes that will be tried next, unless one before them is enough; and those that are being tried ahead.
    next: VecDeque<Vec<Edit>>,
    ahead: VecDeque<(u64, Vec<Edit>)>,
    /// Trials made.
    pub(super) made: u64,
}

/// A run may take so many times the steps of the one that it explains before it is given up: it goes round in circles, most likely.
const LONGER: u64 = 20;
const AT_LEAST: u64 = 2000;

/// The most steps of a run that explains one of so many. `given`: what the cluster's runs may take.
pub(super) fn most_steps(steps: u64, given: Option<u64>) -> u64 {
    let most = LONGER.saturating_mul(steps).max(AT_LEAST);
    given.map_or(most, |given| given.min(most))
}

impl<'a, 'b> Trials<'a, 'b> {
    /// Trials of a program on the cluster of `simulation`, for as long as nobody stops that and its time lasts. `steps`: of a run of
    /// the program as it is.
    pub(super) fn new(simulation: &Simulation, effort: Effort, steps: u64, crew: &'a mut Triers<'b>) -> Trials<'a, 'b> {
        let config = simulation.config();
        let max_steps = Some(most_steps(steps, config.max_steps));
        Trials {
            config: Arc::new(Config { max_steps, ..config.clone() }),
            limits: simulation.limits(u64::MAX),
            pulse: simulation.pulse(),
            cancel: Arc::default(),
            crew,
            effort,
            share: effort.steps / 4,
            next: VecDeque::new(),
            ahead: VecDeque::new(),
            made: 0,
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Another simulation of this cluster.
    pub(super) fn another(&self) -> Result<Simulation> {
        Simulation::new_for(Config::clone(&self.config), &self.pulse)
    }

    /// What ends a run from outside.
    pub(super) fn deadline(&self) -> Deadline {
        self.limits.deadline()
    }

    /// These changes will be tried, in this order. Others may try them ahead.
    pub(super) fn expect(&mut self, changes: impl IntoIterator<Item = Vec<Edit>>) {
        self.next = changes.into_iter().collect();
    }

    /// Whether the program with these changes is right.
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub(super) fn of(&mut self, edits: &[Edit]) -> Result<Trial> {
        self.look_ahead(edits);
        let expected = self.ahead.pop_front_if(|(_, other)| other == edits);
        if self.effort.steps == 0 || self.limits.reached(0, || 0).is_some() {
            return Ok(Trial::NotTried);
        }
        self.made += 1;
        let steps = self.share.min(self.effort.steps);
        let Tried { trial, steps, stopped } = match expected {
            Some((ticket, _)) if steps == self.share => self.crew.take(ticket)?,
            other => {
                other.into_iter().for_each(|(ticket, _)| self.crew.forget(ticket));
                self.crew.run(self.job(edits, steps))?
            }
        };
        self.effort.steps = if stopped { 0 } else { self.effort.steps.saturating_sub(steps) };
        Ok(trial)
    }

    fn job(&self, edits: &[Edit], steps: u64) -> Job {
        let Trials { config, limits, pulse, cancel, effort, .. } = self;
        let (config, limits, cancel) = (Arc::clone(config), limits.clone(), Arc::clone(cancel));
        let (schedules, pulse) = (effort.schedules, Arc::clone(pulse));
        Job { config, edits: edits.to_vec(), schedules, steps, limits, pulse, cancel }
    }

    /// Lets others try what comes behind these changes. A trial is long, so few are tried ahead.
    fn look_ahead(&mut self, edits: &[Edit]) {
        let most = self.crew.ahead().min(2 * self.crew.helpers());
        self.next.pop_front_if(|next| next == edits);
        while self.ahead.len() < most + 1
            && most > 0
            && let Some(edits) = self.next.pop_front()
        {
            let ticket = self.crew.offer(self.job(&edits, self.share));
            self.ahead.push_back((ticket, edits));
        }
    }
}

impl Drop for Trials<'_, '_> {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.ahead.iter().for_each(|(ticket, _)| self.crew.forget(*ticket));
    }
}

impl Job {
    /// Tries the change.
    pub(crate) fn run<T>(self, program: &dyn Fn(&Pe<Sim>) -> Result<T>) -> Result<Tried> {
        let edits = self.config.edits.iter().chain(&self.edits).copied().collect();
        let mut simulation = Simulation::new_for(Config { edits, ..Config::clone(&self.config) }, &self.pulse)?;
        simulation.stop.clone_from(&self.limits.stop);
        let mut used = 0;
        let tried = self.run_on(&mut simulation, &mut used, program)?;
        let (trial, stopped) = tried.map_or((Trial::NotTried, true), |trial| (trial, false));
        Ok(Tried { trial, steps: used, stopped })
    }

    /// `None`: somebody wanted it to end, or the time was over.
    fn run_on<T>(
        &self,
        simulation: &mut Simulation,
        used: &mut u64,
        program: &dyn Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Option<Trial>> {
        simulation.set_budget(self.limits.left());
        let first = simulation.run(program)?;
        *used = first.steps;
        if matches!(first.verdict.kind, VerdictKind::Stopped { .. }) {
            return Ok(None);
        }
        if first.is_given_up() {
            return Ok(Some(Trial::Unseen));
        }
        if !first.is_ok() {
            return Ok(Some(Trial::Fails(lacking(&first.verdict))));
        }
        let all = Explore::All { limit: self.schedules };
        let (mut schedules, proved) = match self.explore(simulation, all, used, program)? {
            Some((Trial::NothingFound(classes), Some(polls))) => (classes, Some(Trial::Proved { classes, polls })),
            Some((Trial::NothingFound(classes), None)) => (classes, None),
            other => return Ok(other.map(|(trial, _)| trial)),
        };
        if let Some(Trial::Proved { polls: false, .. }) = proved {
            return Ok(proved);
        }
        // a loop may count its polls: random schedules take all of them
        for strategy in [Strategy::Plain, Strategy::Pos, Strategy::Pct { depth: DEPTH }] {
            let random = Explore::Random { schedules: RANDOM, seed: 0, strategy };
            match self.explore(simulation, random, used, program)? {
                Some((Trial::NothingFound(more), _)) => schedules += more,
                other => return Ok(other.map(|(trial, _)| trial)),
            }
        }
        Ok(proved.or(Some(Trial::NothingFound(schedules))))
    }

    /// Visits schedules up to the first that is wrong. If these were all, also returns whether polls were left out.
    fn explore<T>(
        &self,
        simulation: &mut Simulation,
        how: Explore,
        used: &mut u64,
        program: &dyn Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Option<(Trial, Option<bool>)>> {
        let (mut left, mut wrong) = (self.steps.saturating_sub(*used), None);
        simulation.set_budget(self.limits.left());
        let explored = simulation.explore(how, program, |run: &Run<T>| {
            left = left.saturating_sub(run.steps);
            if run.has_finding() {
                wrong = Some(lacking(&run.verdict));
            }
            let ends = wrong.is_some() || run.is_given_up() && matches!(how, Explore::All { .. });
            match ends || left == 0 || self.cancel.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        *used += explored.steps;
        if matches!(explored.bound, Some(Bound::Stopped | Bound::Time(_))) {
            return Ok(None);
        }
        let all = explored.complete.then_some(explored.polls);
        Ok(Some((wrong.map_or(Trial::NothingFound(explored.schedules), Trial::Fails), all)))
    }
}
