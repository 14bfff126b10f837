//! [`Cores`]: what a simulation does, on several cores.

use std::fmt;
use std::ops::ControlFlow;
use std::thread;

use onesided::{Pe, Result};

use crate::crew::with_helpers;
use crate::explain::{Critical, CriticalJob, Effort, Fixes, TrialJob, Weaker};
use crate::explore::Attempted;
use crate::mappings::cores_that_fit;
use crate::pe::{Sim, SimProcess};
use crate::robust::{self, Robustness};
use crate::search::{Explore, Explored};
use crate::simulation::{Run, Simulation, Visitor, launched, with_pe};

/// A simulation that uses several cores: [`Simulation::on_cores`].
///
/// The result does not depend on their number. One thread decides, visits and counts, as on one core. The others run
/// ahead the schedules that it will need. Each has a cluster of its own, so [`Config::memory`](crate::Config::memory) holds for each.
pub struct Cores<'a> {
    simulation: &'a mut Simulation,
    /// Threads besides this one.
    helpers: usize,
}

impl Simulation {
    /// The same simulation on so many cores; `None`: on all that this process may use. With many PEs there may be fewer: the
    /// operating system limits how many stacks a process can have.
    ///
    /// ```
    /// use onesided::{Backend, Pe, Result};
    /// use onesided_sim::{Config, Explore, Simulation};
    /// use std::ops::ControlFlow;
    ///
    /// fn tickets(pe: &Pe<impl Backend>) -> Result<u64> {
    ///     let counter = pe.alloc_zeroed::<u64>(1)?;
    ///     let mine = pe.host().atomic_fetch_inc(&counter, 0)?;
    ///     pe.free(counter)?;
    ///     Ok(mine)
    /// }
    ///
    /// let mut simulation = Simulation::new(Config::pes(4))?;
    /// let mut seen = Vec::new();
    /// let explored = simulation.on_cores(Some(2)).explore(Explore::All { limit: 1000 }, tickets, |run| {
    ///     seen.push(run.results.clone()); // on this thread, in the order of a search on one core
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!((explored.schedules, explored.complete), (24, true));
    /// assert!(seen.contains(&vec![Some(0), Some(1), Some(2), Some(3)]));
    /// # Ok::<(), onesided::Error>(())
    /// ```
    pub fn on_cores(&mut self, cores: Option<usize>) -> Cores<'_> {
        let cores = cores.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let cores = cores_that_fit(cores, self.config().pes);
        Cores { simulation: self, helpers: cores.saturating_sub(1) }
    }
}

impl Cores<'_> {
    /// As [`Simulation::explore`], with the same result. `visit` is called on this thread.
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    #[track_caller]
    pub fn explore<T: Send>(
        &mut self,
        how: Explore,
        program: impl Fn(&Pe<Sim>) -> Result<T> + Sync,
        mut visit: impl FnMut(&Run<T>) -> ControlFlow<()>,
    ) -> Result<Explored> {
        self.explore_program(how, &with_pe(program), &mut visit)
    }

    #[track_caller]
    fn explore_program<T: Send>(
        &mut self,
        how: Explore,
        run: &(dyn Fn(&SimProcess) -> Result<T> + Sync),
        visit: Visitor<'_, T>,
    ) -> Result<Explored> {
        let (helpers, config, pulse) = (self.helpers, self.simulation.config().clone(), self.simulation.pulse());
        self.simulation.visit(how, &launched(run), visit, |simulation, setup, body| {
            let make = || {
                let mut own = Simulation::new_for(config.clone(), &pulse).expect("the cluster is the same");
                own.set_up(setup);
                move |job| {
                    let ordered = |(executed, attempted): (_, Option<Box<Attempted>>)| {
                        (executed, attempted.map(|attempted| Box::new(attempted.ordered())))
                    };
                    own.job(job, &launched(run)).into_iter().map(|ran| ran.map(ordered)).collect()
                }
            };
            with_helpers(helpers, make, &mut |job| simulation.job(job, &launched(run)), body)
        })
    }

    /// As [`Simulation::fix`], with the same result. Several changes are tried at a time.
    ///
    /// # Errors
    /// As [`Simulation::fix`].
    pub fn fix<T>(
        &self,
        run: &Run<T>,
        effort: Effort,
        program: impl Fn(&Pe<Sim>) -> Result<T> + Sync,
    ) -> Result<Fixes> {
        let program = &program;
        let make = || move |job: TrialJob| job.run(program);
        with_helpers(self.helpers, make, &mut |job| job.run(program), |crew| {
            self.simulation.fix_with(run, effort, program, crew)
        })
    }

    /// As [`Simulation::weaken`], with the same result. Several changes are tried at a time.
    ///
    /// # Errors
    /// As [`Simulation::weaken`].
    pub fn weaken<T>(&self, effort: Effort, program: impl Fn(&Pe<Sim>) -> Result<T> + Sync) -> Result<Vec<Weaker>> {
        let program = &program;
        let make = || move |job: TrialJob| job.run(program);
        with_helpers(self.helpers, make, &mut |job| job.run(program), |crew| {
            self.simulation.weaken_with(effort, program, crew)
        })
    }

    /// As [`robustness`](crate::robustness) on the simulation's cluster, with the same result. It ends early where
    /// [`Simulation::stop_when`] says so. Both searches share the time of [`Simulation::set_budget`], and each may use its memory.
    ///
    /// ```
    /// # use onesided_sim::{Config, Simulation, robustness};
    /// let program = |pe: &onesided::Pe<onesided_sim::Sim>| {
    ///     let word = pe.alloc_zeroed::<u64>(1)?;
    ///     let before = pe.host().atomic_fetch_inc(&word, 0)?;
    ///     pe.free(word)?;
    ///     Ok(before)
    /// };
    /// let found = Simulation::new(Config::pes(3))?.on_cores(Some(2)).robustness(1000, program)?;
    /// assert_eq!(found.to_string(), robustness(Config::pes(3), 1000, program)?.to_string());
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub fn robustness<T: Ord + Clone + Send>(
        &self,
        limit: u64,
        program: impl Fn(&Pe<Sim>) -> Result<T> + Sync,
    ) -> Result<Robustness<T>> {
        let pulse = self.simulation.pulse();
        robust::compare(self.simulation.config().clone(), self.simulation.budget, |config, left, visit| {
            let mut simulation = Simulation::new_for(config, &pulse)?;
            simulation.set_budget(left);
            simulation.stop.clone_from(&self.simulation.stop);
            simulation.on_cores(Some(self.helpers + 1)).explore(Explore::All { limit }, &program, visit)
        })
    }

    /// As [`Simulation::critical`], with the same result. Several schedules are tried at a time.
    ///
    /// # Errors
    /// As [`Simulation::critical`].
    pub fn critical<T>(
        &self,
        run: &Run<T>,
        effort: Effort,
        program: impl Fn(&Pe<Sim>) -> Result<T> + Sync,
    ) -> Result<Option<Critical>> {
        let program = with_pe(program);
        let process: &(dyn Fn(&SimProcess) -> Result<T> + Sync) = &program;
        let (config, deadline) = (self.simulation.config(), self.simulation.limits(u64::MAX).deadline());
        let pulse = self.simulation.pulse();
        let make = || {
            let mut own = Simulation::new_for(config.clone(), &pulse).expect("the cluster is the same");
            own.engine.ends_at(deadline.clone());
            move |job: CriticalJob| job.run(&mut own, &launched(process))
        };
        let mut own = make();
        with_helpers(self.helpers, make, &mut own, |crew| {
            self.simulation.critical_with(run, effort, &launched(process), crew)
        })
    }
}

impl fmt::Debug for Cores<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a simulation on {} cores", self.helpers + 1)
    }
}
