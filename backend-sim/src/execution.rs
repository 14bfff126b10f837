//! One program, one schedule, from start to verdict.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use onesided::{At, Error, ErrorKind, Result};

use crate::config::{Config, Races};
use crate::coroutine::{Channel, Hosts, Link, Pulse, Stacks, Turn};
use crate::explore::{Chooser, Random};
use crate::last_words;
use crate::limits::Deadline;
use crate::machine::{Machine, Mode, Needs};
use crate::panics::{self, Watch};
use crate::pe::SimProcess;
use crate::trace::Event;
use crate::verdict::{After, Standing, Unseen, Verdict, VerdictKind};

/// A program, as every PE's process runs it. The code that runs it does not know the type that it returns ([`Program::collect`]). So that code is compiled once, and
/// not for each program.
pub(crate) struct Program<'a, T = ()> {
    pub(crate) run: &'a dyn Fn(&SimProcess) -> Result<T>,
    /// The place at which every process becomes a PE before it begins; `None` if the program does that itself.
    pub(crate) starts: Option<At>,
}

impl<T> Program<'_, T> {
    /// Runs it with `execute` on `n` PEs, and adds the results of the PEs that have returned in time.
    pub(crate) fn collect(
        &self,
        n: usize,
        execute: &mut dyn FnMut(&Program<'_>) -> Result<Executed>,
    ) -> Result<Executed<T>> {
        let mut values = Vec::with_capacity(n);
        values.resize_with(n, || None);
        let values = RefCell::new(values);
        let run = |process: &SimProcess| {
            let value = (self.run)(process)?;
            values.borrow_mut()[process.rank()] = Some(value);
            Ok(())
        };
        let executed = execute(&Program { run: &run, starts: self.starts })?;
        let mut results = values.into_inner();
        // a host that was ended after the run may still have returned something, which does not count
        for (value, in_time) in results.iter_mut().zip(&executed.results) {
            if in_time.is_none() {
                *value = None;
            }
        }
        let Executed { verdict, results: _, steps, picked, class, trace, unseen } = executed;
        Ok(Executed { verdict, results, steps, picked, class, trace, unseen })
    }
}

/// What one run left behind.
pub(crate) struct Executed<T = ()> {
    pub(crate) verdict: Verdict,
    pub(crate) results: Vec<Option<T>>,
    pub(crate) steps: u64,
    /// Steps that were picked, as a number.
    pub(crate) picked: usize,
    /// The class of its schedule, if that was asked for.
    pub(crate) class: Option<u64>,
    pub(crate) trace: Option<Vec<Event>>,
    /// Why the end is not known: of the run, or of what the other PEs did after a finding.
    pub(crate) unseen: Option<Unseen>,
}

/// What is kept from run to run: memory, stacks, tables.
#[derive(Debug)]
pub(crate) struct Engine {
    link: Rc<Link>,
    stacks: Stacks,
    config: Rc<Config>,
}

impl Engine {
    pub(crate) fn new(config: Config) -> Engine {
        panics::install_hook();
        last_words::listen();
        let link = Link::new(Machine::new(config.clone()));
        Engine { link, stacks: Stacks::new(config.stack), config: Rc::new(config) }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// What ends each run from now on, from outside.
    pub(crate) fn ends_at(&mut self, deadline: Deadline) {
        self.link.machine.borrow_mut().deadline = deadline;
    }

    /// Whether the output of kernels is printed from now on. It is printed once for a run that the user asked for, and not for the many runs
    /// of a search.
    pub(crate) fn prints(&mut self, prints: bool) {
        self.link.machine.borrow_mut().prints = prints;
    }

    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.link.pulse)
    }

    /// Runs `program` on every PE, with `chooser` picking.
    ///
    /// # Errors
    /// Only when there is no memory for the PEs' stacks, at `at`; everything else is a verdict.
    pub(crate) fn execute<C: Chooser>(
        &mut self,
        chooser: &mut C,
        max_steps: u64,
        tracing: bool,
        program: &Program<'_>,
        at: At,
    ) -> Result<Executed> {
        let n = self.config.pes;
        let config = Rc::clone(&self.config);
        let body = move |channel: Channel| (program.run)(&SimProcess::new(channel, Rc::clone(&config)));
        let link = &self.link;
        let races = self.config.races != Races::Ignore;
        let mode =
            Mode { needs: C::NEEDS, tracing, races, lints: tracing || self.config.strict, initialized: program.starts };
        link.machine.borrow_mut().reset(mode);
        chooser.prepare(&mut link.machine.borrow_mut());
        let mut results = vec![None; n];
        let watch = Watch::over(link);
        let (meaning, strict) = (self.config.races, self.config.strict);
        let drive =
            |hosts: &mut Hosts<'_>| drive(link, hosts, &watch, chooser, max_steps, &mut results, (meaning, strict));
        let (mut verdict, unseen) = Hosts::with(n, link, &mut self.stacks, self.config.ending, &body, drive)
            .map_err(|why| Error::new(ErrorKind::OutOfMemory, "simulation", why, at))?;
        let mut machine = link.machine.borrow_mut();
        let (trace, reads) = machine.take_trace(verdict.kind.checking_pe()).unzip();
        verdict.reads = reads.unwrap_or_default();
        if let Some(trace) = &trace {
            verdict.races.iter_mut().for_each(|race| race.find_ineffective_order(trace));
        }
        Ok(Executed { verdict, results, steps: machine.steps, picked: machine.picked(), class: None, trace, unseen })
    }
}

/// Takes steps until nothing can happen any more, or something is found. In an exhaustive search, the others go on behind a finding that
/// leaves them as they are, so that the search learns what they would have done.
fn drive<C: Chooser>(
    link: &Link,
    hosts: &mut Hosts<'_>,
    watch: &Watch,
    chooser: &mut C,
    max_steps: u64,
    results: &mut [Option<()>],
    (meaning, strict): (Races, bool),
) -> (Verdict, Option<Unseen>) {
    let mut first = None;
    let kind = loop {
        let kind = take_turns(link, hosts, watch, chooser, max_steps, results);
        if !C::NEEDS.tracking || kind.after() != After::Others {
            break kind;
        }
        let mut machine = link.machine.borrow_mut();
        first.get_or_insert_with(|| report(&mut machine, kind));
        machine.blocks_go_on();
    };
    let mut machine = link.machine.borrow_mut();
    chooser.ended(&mut machine, kind.after() != After::Nothing);
    let unseen = kind.unseen();
    let finds_races = meaning == Races::Find;
    if let Some(verdict) = first {
        return (Verdict { races: machine.races(), ..verdict }, unseen);
    }
    if let VerdictKind::Finished = kind {
        let (races, intended, (lints, lints_cut)) = (machine.races(), machine.intended(), machine.lints());
        let kind = match kind {
            _ if finds_races && !races.is_empty() => VerdictKind::Race,
            _ if strict && !lints.is_empty() => VerdictKind::Lint,
            kind => kind,
        };
        return (Verdict { kind, races, intended, lints, lints_cut, ..Verdict::finished() }, unseen);
    }
    let mut verdict = report(&mut machine, kind);
    let at_the_limit = matches!(verdict.kind, VerdictKind::StepLimit { .. });
    let steps = match verdict.kind.after().is_of_others() && meaning != Races::Ignore {
        _ if at_the_limit => Some(AT_THE_LIMIT.max(results.len() as u64 * ROUNDS)),
        behind => behind.then_some(BEHIND_A_FAILURE),
    };
    if finds_races {
        verdict.prefer_race();
    }
    let Some(steps) = steps else { return (verdict, unseen) };
    let paused = machine.pause(at_the_limit);
    drop(machine);
    let n = results.len();
    match C::NEEDS.tracking || at_the_limit {
        true => go_on(link, hosts, watch, &mut Random::new(0), steps, n),
        false => go_on(link, hosts, watch, chooser, steps, n), // a chooser that names steps learns which are late
    }
    let mut machine = link.machine.borrow_mut();
    match at_the_limit {
        true => verdict.goes_round(machine.loops_report()),
        false => verdict.races = machine.races(),
    }
    machine.resume(paused);
    (verdict, unseen)
}

/// What is to be said of a run that does not end well, as it stands now.
fn report(machine: &mut Machine, kind: VerdictKind) -> Verdict {
    let (races, intended, (lints, lints_cut)) = (machine.races(), machine.intended(), machine.lints());
    let mut agents = machine.agents_report();
    if let VerdictKind::Failed { pe, .. } | VerdictKind::Panicked { pe, .. } = kind {
        let host = agents.iter_mut().find(|agent| agent.pe == pe && agent.stream.is_none());
        host.expect("every host is in the report").standing = Standing::Failed;
    }
    let undelivered = if kind.is_ok() { Vec::new() } else { machine.undelivered(kind.failed_pe()) };
    Verdict { kind, given_up: None, races, intended, lints, lints_cut, agents, undelivered, reads: Vec::new() }
}

/// After how many steps the deadline is checked. A step takes time in proportion to what is in flight.
const LOOK: u64 = 256;
/// How many steps the others may take behind a failure. It may come from a race whose second access is still to come.
const BEHIND_A_FAILURE: u64 = 10_000;
/// How many steps a run takes behind the step limit, so that loops show which calls they make. `ROUNDS` is the least number for each PE.
const AT_THE_LIMIT: u64 = 1000;
const ROUNDS: u64 = 20;

/// Goes on after the schedule's end, to see more races, or the calls that a loop makes. These steps are not part of the schedule, so a
/// search does not choose among them.
#[cold]
fn go_on<C: Chooser>(link: &Link, hosts: &mut Hosts<'_>, watch: &Watch, chooser: &mut C, steps: u64, n: usize) {
    let mut results = vec![None; n];
    let max_steps = link.machine.borrow().steps + steps;
    while take_turns(link, hosts, watch, chooser, max_steps, &mut results).after().is_of_others() {}
}

#[inline]
fn take_turns<C: Chooser>(
    link: &Link,
    hosts: &mut Hosts<'_>,
    watch: &Watch,
    chooser: &mut C,
    max_steps: u64,
    results: &mut [Option<()>],
) -> VerdictKind {
    let mut machine = link.machine.borrow_mut();
    machine.until = max_steps;
    let mut look_at = machine.steps + LOOK;
    loop {
        if machine.has_finding() {
            return machine.take_finding().expect("there is one");
        }
        if machine.steps > machine.until {
            return limit(&mut machine, C::NEEDS, max_steps);
        }
        if machine.steps >= look_at {
            look_at = machine.steps + LOOK;
            if let Some(bound) = machine.deadline.over() {
                return VerdictKind::Stopped { bound };
            }
        }
        // A host that can go on without a choice goes first, because nothing depends on when.
        let (pe, chosen) = match machine.next_host() {
            Some(pe) => (pe, false),
            None if machine.has_finding() || machine.steps > machine.until => continue, // a kernel's
            None => {
                let n = machine.choices();
                if n == 0 {
                    let is_over = machine.is_over();
                    return machine.ends_as(if is_over { VerdictKind::Finished } else { VerdictKind::Deadlock });
                }
                if C::NEEDS.tracking && machine.is_bounded() {
                    return machine.ends_as(VerdictKind::PollsBounded);
                }
                let index = chooser.pick(&machine, n);
                match machine.take(index) {
                    Some(pe) => (pe, true),
                    None => {
                        chooser.took(&machine.step);
                        continue;
                    }
                }
            }
        };
        drop(machine);
        let turn = hosts.resume(pe.0);
        machine = link.machine.borrow_mut();
        if chosen {
            chooser.took(&machine.step);
        }
        let index = pe.0 as usize;
        match turn {
            Turn::Suspended => {}
            Turn::Returned(Ok(())) => {
                results[index] = Some(());
                machine.host_returned(pe);
            }
            Turn::Returned(Err(error)) => {
                machine.host_returned(pe);
                return VerdictKind::Failed { pe: index, error };
            }
            Turn::Panicked(panic) => {
                machine.host_returned(pe);
                return VerdictKind::Panicked { pe: index, message: panic_message(&*panic), at: watch.line(pe.0) };
            }
        }
    }
}

/// How a run ends at its step limit. If a PE has ended the job before, the run ends with that. But a search of all schedules
/// gives the run up, because it has not seen every step that the others can still take.
#[cold]
fn limit(machine: &mut Machine, needs: Needs, max_steps: u64) -> VerdictKind {
    if needs.tracking && machine.has_only_polled() {
        return machine.ends_as(VerdictKind::PollsBounded);
    }
    let kind = VerdictKind::StepLimit { steps: machine.until.min(max_steps) };
    if needs.tracking { kind } else { machine.ends_as(kind) }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no message)".into())
}
