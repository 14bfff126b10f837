//! A trial of a changed program: whether it is right, as far as the effort goes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use onesided::{Pe, Result};

use super::edit::Edit;
use crate::config::Config;
use crate::pe::Sim;
use crate::race::Race;
use crate::search::{Bound, Explore, Strategy};
use crate::simulation::{Run, Simulation};

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
pub(super) enum Trial {
    /// Something is wrong. With the races that the run has which shows it.
    Fails(Vec<Race>),
    /// Nothing is wrong on any schedule: so many classes.
    Proved(u64),
    /// Nothing was wrong on so many schedules.
    NothingFound(u64),
    /// The effort is used up.
    NotTried,
}

/// Tries changes of one program.
pub(super) struct Trials<'a, T> {
    config: Config,
    stop: Option<Arc<AtomicBool>>,
    program: &'a dyn Fn(&Pe<Sim>) -> Result<T>,
    effort: Effort,
    /// Steps of one trial: the first may not take all.
    share: u64,
    /// Steps left of the trial that is being made.
    left: u64,
    /// Trials made.
    pub(super) made: u64,
}

/// A changed program may take so many times the steps of the original one before it is given up.
const LONGER: u64 = 20;
const AT_LEAST: u64 = 2000;

impl<'a, T> Trials<'a, T> {
    /// Trials of a program on the cluster of `simulation`, for as long as nobody stops that. `steps`: of a run of the program as
    /// it is.
    pub(super) fn new(
        simulation: &Simulation,
        effort: Effort,
        steps: u64,
        program: &'a dyn Fn(&Pe<Sim>) -> Result<T>,
    ) -> Trials<'a, T> {
        let config = simulation.config();
        let most = (LONGER * steps).max(AT_LEAST);
        let max_steps = Some(config.max_steps.map_or(most, |given| given.min(most)));
        let stop = simulation.stop.clone();
        Trials {
            config: Config { max_steps, ..config.clone() },
            stop,
            program,
            effort,
            share: effort.steps / 4,
            left: 0,
            made: 0,
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the program with these changes is right.
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub(super) fn of(&mut self, edits: &[Edit]) -> Result<Trial> {
        if self.effort.steps == 0 {
            return Ok(Trial::NotTried);
        }
        self.made += 1;
        self.left = self.share.min(self.effort.steps);
        let edits = self.config.edits.iter().chain(edits).copied().collect();
        let mut simulation = Simulation::new(Config { edits, ..self.config.clone() })?;
        if let Some(flag) = &self.stop {
            simulation.stop_when(Arc::clone(flag));
        }
        let first = simulation.run(self.program)?;
        self.uses(first.steps);
        if !first.is_ok() {
            return Ok(Trial::Fails(first.verdict.races));
        }
        let all = Explore::All { limit: self.effort.schedules };
        let classes = match self.explore(&mut simulation, all)? {
            (Trial::NothingFound(classes), true) => return Ok(Trial::Proved(classes)),
            (Trial::NothingFound(classes), false) => classes,
            (other, _) => return Ok(other),
        };
        let mut schedules = classes;
        for strategy in [Strategy::Plain, Strategy::Pos, Strategy::Pct { depth: DEPTH }] {
            let random = Explore::Random { schedules: RANDOM, seed: 0, strategy };
            match self.explore(&mut simulation, random)? {
                (Trial::NothingFound(more), _) => schedules += more,
                (other, _) => return Ok(other),
            }
        }
        Ok(Trial::NothingFound(schedules))
    }

    /// Visits schedules up to the first that is wrong. Returns whether these were all.
    fn explore(&mut self, simulation: &mut Simulation, how: Explore) -> Result<(Trial, bool)> {
        let (mut left, mut wrong) = (self.left, None);
        let explored = simulation.explore(how, self.program, |run: &Run<T>| {
            left = left.saturating_sub(run.steps);
            if !run.is_ok() && !run.is_given_up() {
                wrong = Some(run.verdict.races.clone());
            }
            match wrong.is_some() || run.is_given_up() && matches!(how, Explore::All { .. }) || left == 0 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        self.uses(explored.steps);
        if explored.bound == Some(Bound::Stopped) {
            self.effort.steps = 0;
            return Ok((Trial::NotTried, false));
        }
        Ok((wrong.map_or(Trial::NothingFound(explored.schedules), Trial::Fails), explored.complete))
    }

    fn uses(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.effort.steps = self.effort.steps.saturating_sub(steps);
    }
}
