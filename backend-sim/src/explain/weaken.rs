//! [`Weaker`]: calls that order others, and whether a program needs them.

use std::fmt;
use std::ops::ControlFlow;

use onesided::{At, Pe, Result, count};

use super::edit::{Edit, Ordering};
use super::fix::Shown;
use super::lines::Calls;
use super::trial::{Effort, Job, Trial, Trials, Triers};
use crate::crew::Crew;
use crate::pe::Sim;
use crate::search::Explore;
use crate::simulation::{Run, Simulation};

/// The most classes of schedules from which a program's calls are learned.
const CLASSES: u64 = 64;

/// A call that orders others or completes them, and whether something weaker is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weaker {
    /// The call.
    pub call: Ordering,
    /// Its place.
    pub at: At,
    /// What is enough.
    pub enough: Enough,
}

/// What is enough in place of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a call is needed, or something weaker is enough, or it is not known")]
pub enum Enough {
    /// Nothing: the call can be left out.
    Nothing(Shown),
    /// A weaker call.
    Call(Ordering, Shown),
    /// The call is needed: the program fails without it, and with everything weaker.
    Itself,
    /// It is not known: the effort did not last, or a run without the call was given up.
    NotTried,
}

impl Simulation {
    /// Looks for calls that a program does not need on this cluster: each `fence`, `flush`, `quiet`, barrier and sync is left out, and
    /// then replaced by what is weaker, while the program runs. Each is changed alone, so a call may be needed once another is gone.
    /// Which calls a program makes is learned from up to 64 classes of its schedules. What is said holds for this cluster and this profile only. The
    /// program should be right as it is.
    ///
    /// ```
    /// use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
    /// use onesided_sim::{Config, Effort, Simulation};
    ///
    /// fn program(pe: &Pe<impl Backend>) -> Result<()> {
    ///     let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    ///     if pe.my_pe() == 0 {
    ///         pe.host().p(&data, 7, 1)?;
    ///         pe.host().quiet()?; // a fence is enough
    ///         pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    ///         pe.host().quiet()?; // free completes what is left
    ///     } else {
    ///         pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    ///         expect_eq(pe.read_one(&data)?, 7, "the data")?;
    ///     }
    ///     pe.free(flag)?;
    ///     pe.free(data)
    /// }
    ///
    /// let simulation = Simulation::new(Config::pes(2))?;
    /// let weaker = simulation.weaken(Effort::LITTLE, program)?;
    /// let said: Vec<String> = weaker.iter().map(|weaker| weaker.in_words(simulation.config().pes)).collect();
    /// assert!(said[0].ends_with("removable for 2 PEs if a `fence` takes its place: proved"), "{said:?}");
    /// assert!(said[1].ends_with("removable for 2 PEs: proved"), "{said:?}");
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub fn weaken<T>(&self, effort: Effort, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Result<Vec<Weaker>> {
        self.weaken_with(effort, &program, &mut Crew::alone(&mut |job: Job| job.run(&program)))
    }

    /// The same, with a crew.
    pub(crate) fn weaken_with<T>(
        &self,
        effort: Effort,
        program: &dyn Fn(&Pe<Sim>) -> Result<T>,
        crew: &mut Triers<'_>,
    ) -> Result<Vec<Weaker>> {
        let mut simulation = Simulation::new_for(self.config().clone(), &self.pulse())?;
        let run = simulation.run(program)?;
        let calls = self.calls_of_classes(&run, effort, program)?;
        let mut lines: Vec<(Ordering, At)> =
            calls.all.iter().filter_map(|((at, _), line)| Some((line.orders?, *at))).collect();
        lines.sort_by_key(|(_, at)| *at);
        lines.dedup();
        let mut found: Vec<Weaker> =
            lines.into_iter().map(|(call, at)| Weaker { call, at, enough: Enough::Itself }).collect();
        let mut trials = Trials::new(self, effort, run.steps, crew);
        // A round tries one change of each call that is still thought to be needed. So what a round tries is known before it begins.
        let mut open: Vec<&mut Weaker> = found.iter_mut().collect();
        for round in 0.. {
            let change = |weaker: &Weaker| {
                let by = *weaker_than(weaker.call).get(round)?;
                Some((by, vec![Edit::Replace { at: weaker.at, by }]))
            };
            open.retain(|weaker| change(weaker).is_some());
            if open.is_empty() {
                break;
            }
            trials.expect(open.iter().filter_map(|weaker| change(weaker)).map(|(_, edits)| edits));
            for weaker in std::mem::take(&mut open) {
                let Some((by, edits)) = change(weaker) else { continue };
                let shown = match trials.of(&edits)? {
                    Trial::Fails(_) => {
                        open.push(weaker);
                        continue;
                    }
                    Trial::Unseen => {
                        weaker.enough = Enough::NotTried; // unless something else is enough
                        open.push(weaker);
                        continue;
                    }
                    Trial::NotTried => {
                        weaker.enough = Enough::NotTried;
                        continue;
                    }
                    Trial::Proved { classes, polls } => Shown::Proved { classes, polls },
                    Trial::NothingFound(schedules) => Shown::NothingFound { schedules },
                };
                weaker.enough = by.map_or(Enough::Nothing(shown), |by| Enough::Call(by, shown));
            }
        }
        Ok(found)
    }
}

impl Simulation {
    /// The calls of a program, as the first classes of its schedules make them: which one is made may depend on who comes first.
    fn calls_of_classes<T>(
        &self,
        in_order: &Run<T>,
        effort: Effort,
        program: &dyn Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Calls> {
        let mut simulation = Simulation::new_for(self.config().clone(), &self.pulse())?;
        let mut calls = Calls::default();
        let recorded = simulation.reproduce(in_order, program)?;
        calls.add(recorded.trace.as_deref().unwrap_or_default());
        let limit = CLASSES.min(effort.steps / 4 / in_order.steps.max(1));
        if limit < 2 {
            return Ok(calls);
        }
        let (mut others, mut failed) = (Simulation::new_for(self.config().clone(), &self.pulse())?, None);
        others.stop.clone_from(&self.stop);
        others.set_budget(self.budget);
        others.explore(Explore::All { limit }, program, |run: &Run<T>| {
            match simulation.reproduce(run, program) {
                Ok(recorded) => calls.add(recorded.trace.as_deref().unwrap_or_default()),
                Err(why) => failed = Some(why),
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        failed.map_or(Ok(calls), Err)
    }
}

/// What is weaker than a call, the weakest first; `None` is no call.
fn weaker_than(call: Ordering) -> Vec<Option<Ordering>> {
    match call {
        Ordering::Fence | Ordering::Flush | Ordering::Synchronize | Ordering::Sync => vec![None],
        Ordering::Quiet => vec![None, Some(Ordering::Fence), Some(Ordering::Flush)],
        Ordering::Barrier => {
            let own = [Ordering::Fence, Ordering::Flush, Ordering::Quiet, Ordering::Sync];
            std::iter::once(None).chain(own.map(Some)).collect()
        }
    }
}

impl Weaker {
    /// What was shown for so many PEs, in a sentence.
    pub fn in_words(&self, pes: usize) -> String {
        let pes = count(pes, "PE");
        let shown = |shown: &Shown| match shown {
            Shown::Proved { polls, .. } => super::fix::proved(*polls),
            Shown::NothingFound { schedules } => super::fix::not_proved(*schedules),
        };
        match &self.enough {
            Enough::Nothing(how) => format!("{self}: removable for {pes}: {}", shown(how)),
            Enough::Call(call, how) => {
                let name = call.name();
                format!("{self}: removable for {pes} if a `{name}` takes its place: {}", shown(how))
            }
            Enough::Itself => format!("{self}: needed for {pes}"),
            Enough::NotTried => format!("{self}: not known: the effort did not last, or a run without it did not end"),
        }
    }
}

/// The call and its line.
impl fmt::Display for Weaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.call {
            Ordering::Barrier => "barrier",
            Ordering::Sync => "sync",
            call => call.name(),
        };
        write!(f, "`{name}` at {}", self.at)
    }
}
