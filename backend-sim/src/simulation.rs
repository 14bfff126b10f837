//! [`Simulation`]: run one schedule, many, or all; replay one.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use onesided::{At, Error, ErrorKind, Pe, Result, count};

use crate::config::{Config, Races};
use crate::coroutine::{Pulse, Shown, must_be_alone};
use crate::crew::Crew;
use crate::determinism::{difference, not_deterministic};
use crate::execution::{Engine, Executed, Program};
use crate::explore::{Chooser, Class, Classified, Exceptions, InOrder, Late, Pct, Pos, Random, Replay};
use crate::limits::{Budget, Deadline, Limits};
use crate::pe::{Sim, SimProcess};
use crate::schedule::{Choices, Schedule, fingerprint};
use crate::search::{Explore, Explored, Outlook};
use crate::trace::Event;
use crate::verdict::{Unseen, Verdict, VerdictKind};

/// Steps after which a run is given up, unless [`Config::max_steps`] says otherwise.
const MAX_STEPS: u64 = 1_000_000;
/// The same for each schedule of an exhaustive search.
pub(crate) const MAX_STEPS_OF_ALL: u64 = 100_000;

/// So many runs of a program that is not deterministic are compared, to name the first call that differs.
const RUNS_TO_COMPARE: usize = 8;

/// A simulated cluster, ready to run programs.
///
/// ```
/// use onesided::{Backend, Pe, Result};
/// use onesided_sim::{Config, Explore, Simulation};
///
/// fn program(pe: &Pe<impl Backend>) -> Result<u64> {
///     let x = pe.alloc_zeroed::<u64>(1)?;
///     if pe.my_pe() == 0 {
///         pe.host().p(&x, 1, 1)?;
///         pe.host().p(&x, 2, 1)?; // no fence: may arrive first
///     }
///     pe.host().barrier_all()?;
///     let seen = pe.read(&x)?[0];
///     pe.free(x)?;
///     Ok(seen)
/// }
///
/// let mut simulation = Simulation::new(Config::pes(2))?;
/// let run = simulation.run(program)?; // in order
/// assert_eq!(run.results, [Some(0), Some(2)]);
///
/// let mut seen = std::collections::BTreeSet::new();
/// let all = simulation.explore(Explore::All { limit: 1000 }, program, |run| {
///     seen.insert(run.results[1]);
///     std::ops::ControlFlow::Continue(())
/// })?;
/// assert_eq!(Vec::from_iter(seen), [Some(1), Some(2)]);
/// assert!(all.complete);
/// # Ok::<(), onesided::Error>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    pub(crate) engine: Engine,
    pub(crate) stop: Option<Arc<AtomicBool>>,
    pub(crate) budget: Budget,
    /// The class of the last random schedule, where classes are counted.
    pub(crate) class: Option<Box<Class>>,
    pub(crate) outlook: Arc<Outlook>,
    /// It does a part of another one's work.
    #[expect(dead_code, reason = "it is there to be dropped")]
    shown: Option<Shown>,
}

/// Called with each run of a search, one after the other. It breaks to end the search.
pub(crate) type Visitor<'a, T> = &'a mut dyn FnMut(&Run<T>) -> ControlFlow<()>;

/// One run of a program.
#[derive(Debug)]
pub struct Run<T> {
    /// How it ended.
    pub verdict: Verdict,
    /// What each PE returned; `None` for PEs that did not get that far.
    pub results: Vec<Option<T>>,
    /// Steps taken.
    pub steps: u64,
    /// Which run it was. It has a fingerprint if the run was recorded.
    pub schedule: Schedule,
    /// What happened, if the run was recorded.
    pub trace: Option<Vec<Event>>,
    /// Whether a proof began again with this run. That happens when a run in the reading [`Quiet::Thread`] failed, because in that reading a quiet completes less
    /// than the specification promises. Discard what earlier runs have shown.
    ///
    /// [`Quiet::Thread`]: crate::Quiet::Thread
    pub begins_again: bool,
    /// Why the end is not known: of the run, or of what the other PEs did after a finding.
    pub(crate) unseen: Option<Unseen>,
}

impl Simulation {
    /// A cluster as `config` says.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when there is no such cluster.
    #[track_caller]
    pub fn new(config: Config) -> Result<Simulation> {
        config.check()?;
        Ok(Simulation {
            engine: Engine::new(config),
            stop: None,
            budget: Budget::default(),
            class: None,
            outlook: Arc::default(),
            shown: None,
        })
    }

    /// A cluster for a part of another simulation's work: whoever watches that one, by its pulse, sees this one too.
    pub(crate) fn new_for(config: Config, pulse: &Arc<Pulse>) -> Result<Simulation> {
        let simulation = Simulation::new(config)?;
        Ok(Simulation { shown: Some(pulse.show(simulation.pulse())), ..simulation })
    }

    /// Once `flag` is set (by a signal handler, say), an exploration or an explanation ends after the current schedule, or within it if that is
    /// long. It keeps what it has found. A single run ends while a kernel computes, or before one of its choices:
    /// [`VerdictKind::Stopped`].
    pub fn stop_when(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    /// Limits the time and memory of later explorations and explanations. Their numbers of schedules and [`Effort`](crate::Effort) still
    /// apply.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// From now on random explorations count the different classes of equivalent schedules that they visit:
    /// [`Explored::classes`]. This costs time, and changes nothing in what is run.
    pub fn count_classes(&mut self) {
        self.class = Some(Box::default());
    }

    /// How far an exploration is, for whoever watches: the visitor, or another thread. Looking changes nothing in what is run.
    ///
    /// ```
    /// # use onesided::Backend;
    /// # use onesided_sim::{Config, Explore, Simulation};
    /// # fn main() -> onesided::Result<()> {
    /// let mut simulation = Simulation::new(Config::pes(3))?;
    /// let outlook = simulation.outlook();
    /// let program = |pe: &onesided::Pe<onesided_sim::Sim>| {
    ///     let counter = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.host().atomic_fetch_inc(&counter, 0)?;
    ///     pe.free(counter)
    /// };
    /// let mut totals = Vec::new();
    /// simulation.explore(Explore::All { limit: 1000 }, program, |_| {
    ///     totals.push(outlook.look().estimated); // None before the first schedule is over
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(totals, [None, Some(4), Some(6), Some(6), Some(6), Some(6)]);
    /// # Ok(()) }
    /// ```
    pub fn outlook(&self) -> Arc<Outlook> {
        Arc::clone(&self.outlook)
    }

    /// Shows a watching thread which PE runs, because a PE that computes for ever, or sleeps, cannot be interrupted.
    /// It also shows the PEs of the runs that explain a finding. Looking changes nothing in what is run.
    ///
    /// ```
    /// # use onesided_sim::{Config, Simulation};
    /// # fn main() -> onesided::Result<()> {
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let pulse = simulation.pulse(); // to be given to another thread
    /// simulation.run(|pe| pe.host().barrier_all())?.into_results()?;
    /// let beat = pulse.look();
    /// assert!(beat.pe.is_none() && beat.calls > 0); // nobody runs any more
    /// # Ok(()) }
    /// ```
    pub fn pulse(&self) -> Arc<Pulse> {
        self.engine.pulse()
    }

    pub(crate) fn limits(&self, schedules: u64) -> Limits {
        Limits { schedules, budget: self.budget, start: Instant::now(), stop: self.stop.clone() }
    }

    /// What the cluster looks like.
    pub fn config(&self) -> &Config {
        self.engine.config()
    }

    /// Runs a program in order: every step at once, PEs by rank. The fastest way, and one of the schedules.
    ///
    /// Each PE is initialized before `program` and finalized after it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] when there is no memory for the PEs' stacks. What the program does wrong is the
    /// run's verdict.
    #[track_caller]
    pub fn run<T>(&mut self, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Result<Run<T>> {
        self.run_program(&launched(&with_pe(program)))
    }

    /// As [`Simulation::run`], for a program that initializes itself.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    ///
    /// ```
    /// use onesided::{Bootstrap, InitMethod};
    /// use onesided_sim::{Config, Simulation};
    /// let run = Simulation::new(Config::pes(2))?.run_process(|process| {
    ///     let pe = process.init(InitMethod::Mpi)?;
    ///     let me = pe.my_pe();
    ///     pe.finalize()?;
    ///     Ok(me)
    /// })?;
    /// assert_eq!(run.results, [Some(0), Some(1)]);
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[track_caller]
    pub fn run_process<T>(&mut self, program: impl Fn(&SimProcess) -> Result<T>) -> Result<Run<T>> {
        self.run_program(&process(&program))
    }

    #[track_caller]
    fn run_program<T>(&mut self, program: &Program<'_, T>) -> Result<Run<T>> {
        self.engine.ends_at(self.limits(1).deadline());
        self.engine.prints(true);
        let executed = self.execute(&Choices::InOrder, false, program);
        self.engine.prints(false);
        self.engine.ends_at(Deadline::default());
        Ok(self.finished(Choices::InOrder, executed?))
    }

    /// Runs one schedule of a program, and records what happens.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when the schedule is of another cluster or profile (see
    /// [`Schedule::configure`]), was recorded with other arguments ([`Config::arguments`]), or from another program:
    /// nothing else is run in its place. A schedule without a fingerprint is replayed unless its choices do not fit.
    #[track_caller]
    pub fn replay<T>(&mut self, schedule: &Schedule, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Result<Run<T>> {
        self.replay_program(schedule, &launched(&with_pe(program)))
    }

    /// As [`Simulation::replay`], for a program that initializes itself.
    ///
    /// # Errors
    /// As [`Simulation::replay`].
    #[track_caller]
    pub fn replay_process<T>(
        &mut self,
        schedule: &Schedule,
        program: impl Fn(&SimProcess) -> Result<T>,
    ) -> Result<Run<T>> {
        self.replay_program(schedule, &process(&program))
    }

    #[track_caller]
    fn replay_program<T>(&mut self, schedule: &Schedule, program: &Program<'_, T>) -> Result<Run<T>> {
        let at = At::caller();
        let other = |message: String| Err(Error::new(ErrorKind::InvalidArgument, "replay", message, at));
        let here = Schedule::new(self.config(), schedule.choices.clone());
        if (Schedule { fingerprint: schedule.fingerprint, arguments: schedule.arguments, ..here }) != *schedule {
            return other(format!("the schedule {schedule} is of another cluster or profile than this simulation"));
        }
        if self.config().arguments != schedule.arguments {
            return other(format!("the schedule {schedule} was recorded with other arguments of the program"));
        }
        self.engine.ends_at(self.limits(1).deadline());
        self.engine.prints(true);
        let run = self.record(&schedule.choices, program);
        self.engine.prints(false);
        self.engine.ends_at(Deadline::default());
        let run = run?;
        if !matches!(run.verdict.kind, VerdictKind::Stopped { .. })
            && let (Some(recorded), Some(found)) = (schedule.fingerprint, run.schedule.fingerprint)
            && recorded != found
        {
            return other(format!(
                "the schedule {schedule} was recorded from a different program, or another version of this one: \
                 what happened here has fingerprint {found:08x}"
            ));
        }
        Ok(run)
    }

    /// Visits schedules of a program until `visit` breaks or there are no more.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when the budget is 0; [`ErrorKind::WrongResult`] when the program is not
    /// deterministic, which an exhaustive search notices; as [`Simulation::run`].
    #[track_caller]
    pub fn explore<T>(
        &mut self,
        how: Explore,
        program: impl Fn(&Pe<Sim>) -> Result<T>,
        mut visit: impl FnMut(&Run<T>) -> ControlFlow<()>,
    ) -> Result<Explored> {
        self.explore_program(how, &launched(&with_pe(program)), &mut visit)
    }

    /// As [`Simulation::explore`], for a program that initializes itself.
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    ///
    /// ```
    /// use onesided::{Bootstrap, InitMethod};
    /// use onesided_sim::{Config, Explore, Simulation};
    /// use std::ops::ControlFlow;
    ///
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let explored = simulation.explore_process(
    ///     Explore::All { limit: 1000 },
    ///     |process| process.init(InitMethod::Launcher)?.finalize(),
    ///     |run| {
    ///         assert!(run.is_ok());
    ///         ControlFlow::Continue(())
    ///     },
    /// )?;
    /// assert!(explored.complete);
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[track_caller]
    pub fn explore_process<T>(
        &mut self,
        how: Explore,
        program: impl Fn(&SimProcess) -> Result<T>,
        mut visit: impl FnMut(&Run<T>) -> ControlFlow<()>,
    ) -> Result<Explored> {
        self.explore_program(how, &process(&program), &mut visit)
    }

    #[track_caller]
    fn explore_program<T>(
        &mut self,
        how: Explore,
        program: &Program<'_, T>,
        visit: Visitor<'_, T>,
    ) -> Result<Explored> {
        self.visit(how, program, visit, |simulation, _, body| {
            body(&mut Crew::alone(&mut |job| simulation.job(job, program)))
        })
    }

    /// Runs a schedule that [`Simulation::explore`] visited once more, and records what happens: the run to report.
    ///
    /// # Errors
    /// [`ErrorKind::WrongResult`] when it ends differently, because the program is not deterministic.
    #[track_caller]
    pub fn reproduce<T>(&mut self, run: &Run<T>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Result<Run<T>> {
        self.reproduce_program(run, &launched(&with_pe(program)))
    }

    /// As [`Simulation::reproduce`], for a program that initializes itself.
    ///
    /// # Errors
    /// As [`Simulation::reproduce`].
    #[track_caller]
    pub fn reproduce_process<T>(&mut self, run: &Run<T>, program: impl Fn(&SimProcess) -> Result<T>) -> Result<Run<T>> {
        self.reproduce_program(run, &process(&program))
    }

    #[track_caller]
    fn reproduce_program<T>(&mut self, run: &Run<T>, program: &Program<'_, T>) -> Result<Run<T>> {
        if run.schedule.quiet != self.config().quiet {
            // the run may be of a proof's first part, which reads quiets as those of threads
            let mut alike = Simulation::new_for(run.schedule.configure(self.config()), &self.pulse())?;
            (alike.stop, alike.budget) = (self.stop.clone(), self.budget);
            return alike.reproduce_program(run, program);
        }
        // The run in order has printed already, and the runs of a search have not.
        self.engine.prints(run.schedule.choices != Choices::InOrder);
        let again = self.record(&run.schedule.choices, program);
        self.engine.prints(false);
        let again = again?;
        let (first, second) = (run.verdict.kind.outcome(), again.verdict.kind.outcome());
        if first != second || run.steps != again.steps {
            let what = format!(
                "the same schedule ended with {first} after {}, then with {second} after {}",
                count(run.steps, "step"),
                again.steps
            );
            let difference = self.first_difference(&run.schedule.choices, program);
            return Err(not_deterministic(&what, difference));
        }
        Ok(again)
    }

    /// The first call that differs between runs of one schedule, if a few runs show one.
    #[track_caller]
    pub(crate) fn first_difference<T>(&mut self, choices: &Choices, program: &Program<'_, T>) -> Option<String> {
        let mut before: Option<Vec<Event>> = None;
        for _ in 0..RUNS_TO_COMPARE {
            let trace = self.record(choices, program).ok()?.trace?;
            if let Some(difference) = before.as_deref().and_then(|before| difference(before, &trace)) {
                return Some(difference);
            }
            before = Some(trace);
        }
        None
    }

    /// Runs a schedule, for what the program returns.
    #[track_caller]
    pub(crate) fn execute<T>(
        &mut self,
        choices: &Choices,
        tracing: bool,
        program: &Program<'_, T>,
    ) -> Result<Executed<T>> {
        must_be_alone();
        let at = At::caller();
        program.collect(self.config().pes, &mut |program| self.execute_untyped(choices, tracing, program, at))
    }

    /// Runs what a chooser picks, for what the program returns.
    #[track_caller]
    pub(crate) fn execute_by<T, C: Chooser>(
        &mut self,
        chooser: &mut C,
        max_steps: u64,
        tracing: bool,
        program: &Program<'_, T>,
    ) -> Result<Executed<T>> {
        let (n, at) = (self.config().pes, At::caller());
        program.collect(n, &mut |program| self.engine.execute(chooser, max_steps, tracing, program, at))
    }

    fn execute_untyped(&mut self, choices: &Choices, tracing: bool, program: &Program<'_>, at: At) -> Result<Executed> {
        let given = self.config().max_steps;
        let max = given.unwrap_or(MAX_STEPS);
        match choices {
            Choices::InOrder if self.config().profile.is_adversary() => {
                self.engine.execute(&mut Late::new(None), max, tracing, program, at)
            }
            Choices::Seed(seed) if self.config().profile.is_adversary() => {
                self.draw(Late::new(Some(*seed)), max, tracing, program, at)
            }
            Choices::InOrder => self.engine.execute(&mut InOrder, max, tracing, program, at),
            Choices::Seed(seed) => self.draw(Random::new(*seed), max, tracing, program, at),
            Choices::Pos { seed } => self.draw(Pos::new(*seed), max, tracing, program, at),
            Choices::Pct { depth, steps, seed } => {
                self.draw(Pct::new(*seed, *depth, *steps), max, tracing, program, at)
            }
            Choices::Exceptions(exceptions) => {
                let mut chooser = Exceptions::new(exceptions);
                let executed = self.engine.execute(&mut chooser, max, tracing, program, at)?;
                if !chooser.fits() {
                    let message = "the schedule was recorded from a different program: its exceptions do not fit: a step that they \
                                   name does not happen, or comes that late already";
                    return Err(Error::invalid("replay", message, at));
                }
                Ok(executed)
            }
            Choices::Picks(picks) | Choices::Stepwise(picks) => {
                let mut replay = match choices {
                    Choices::Stepwise(_) => Replay::stepwise(picks),
                    _ => Replay::new(picks, self.config().races == Races::Find),
                };
                let max = given.unwrap_or(MAX_STEPS_OF_ALL); // picks come from an exhaustive search
                let executed = self.engine.execute(&mut replay, max, tracing, program, at)?;
                if replay.diverged || !replay.is_used_up() {
                    let message = "the schedule was recorded from a different program: its choices do not fit";
                    return Err(Error::invalid("replay", message, at));
                }
                Ok(executed)
            }
        }
    }

    /// Runs a random schedule, and classifies it if classes are counted.
    fn draw<C: Chooser>(
        &mut self,
        mut chooser: C,
        max_steps: u64,
        tracing: bool,
        program: &Program<'_>,
        at: At,
    ) -> Result<Executed> {
        let Some(class) = &mut self.class else {
            return self.engine.execute(&mut chooser, max_steps, tracing, program, at);
        };
        let executed = self.engine.execute(&mut Classified::new(chooser, class), max_steps, tracing, program, at)?;
        Ok(Executed { class: Some(class.hash()), ..executed })
    }

    #[track_caller]
    pub(crate) fn record<T>(&mut self, choices: &Choices, program: &Program<'_, T>) -> Result<Run<T>> {
        let executed = self.execute(choices, true, program)?;
        let mut run = self.finished(choices.clone(), executed);
        run.schedule.fingerprint = run.trace.as_deref().map(fingerprint);
        Ok(run)
    }

    pub(crate) fn finished<T>(&self, choices: Choices, executed: Executed<T>) -> Run<T> {
        self.finisher()(choices, executed)
    }

    /// Makes runs of what was executed.
    pub(crate) fn finisher<T>(&self) -> impl Fn(Choices, Executed<T>) -> Run<T> + use<T> {
        let none = Schedule::new(self.config(), Choices::InOrder);
        move |choices, executed| {
            let Executed { verdict, results, steps, trace, unseen, .. } = executed;
            let schedule = Schedule { choices, ..none.clone() };
            Run { verdict, results, steps, schedule, trace, begins_again: false, unseen }
        }
    }
}

/// The places at which a run initializes and finalizes PEs, because no line of the program does that.
static FRAME: LazyLock<[At; 2]> =
    LazyLock::new(|| ["the start of the run", "the end of the run"].map(|place| At::foreign(place, 0, 0, None)));

/// Turns a program over a PE into one over a process that already is a PE.
pub(crate) fn with_pe<T>(program: impl Fn(&Pe<Sim>) -> Result<T>) -> impl Fn(&SimProcess) -> Result<T> {
    move |process| {
        let pe = process.launched();
        let result = program(&pe)?;
        pe.finalize_at(FRAME[1])?;
        Ok(result)
    }
}

/// Every process becomes a PE before the program begins.
pub(crate) fn launched<T>(run: &dyn Fn(&SimProcess) -> Result<T>) -> Program<'_, T> {
    Program { run, starts: Some(FRAME[0]) }
}

/// The program initializes itself.
fn process<T>(run: &dyn Fn(&SimProcess) -> Result<T>) -> Program<'_, T> {
    Program { run, starts: None }
}

impl<T> Run<T> {
    /// Whether the run found nothing wrong.
    pub fn is_ok(&self) -> bool {
        self.verdict.is_ok()
    }

    /// Whether something wrong was found.
    pub fn has_finding(&self) -> bool {
        !self.is_ok() && !self.is_given_up()
    }

    /// Whether the run was given up, at a limit, with PEs that poll, or from outside: nothing wrong was found in it, and its end is not
    /// known.
    pub fn is_given_up(&self) -> bool {
        self.verdict.kind.is_given_up()
    }

    /// The run without what the PEs returned: all that [`Simulation::reproduce`] needs of it. (A run that is visited is
    /// borrowed from the search.)
    pub fn without_results(&self) -> Run<T> {
        Run {
            verdict: self.verdict.clone(),
            results: Vec::new(),
            steps: self.steps,
            schedule: self.schedule.clone(),
            trace: None,
            begins_again: self.begins_again,
            unseen: self.unseen,
        }
    }

    /// What every PE returned.
    ///
    /// # Errors
    /// The failed PE's own error if the verdict is one, else [`ErrorKind::WrongResult`] with the verdict's text.
    #[track_caller]
    pub fn into_results(self) -> Result<Vec<T>> {
        match self.verdict.kind {
            VerdictKind::Finished => Ok(self.results.into_iter().flatten().collect()),
            VerdictKind::Failed { error, .. } => Err(error),
            _ => Err(Error::wrong_result(self.verdict.to_string())),
        }
    }
}
