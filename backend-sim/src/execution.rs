//! One program, one schedule, from start to verdict.

use std::rc::Rc;

use onesided::{Error, ErrorKind, Result};

use crate::config::Config;
use crate::coroutine::{Channel, Hosts, Stacks, Turn};
use crate::explore::Chooser;
use crate::machine::{Machine, Progress};
use crate::pe::SimProcess;
use crate::trace::Event;
use crate::verdict::{Verdict, VerdictKind};

/// In order, a host that never blocks lets the others go first after so many calls: polling loops make progress.
const TURN: u32 = 256;

/// What one run left behind.
pub(crate) struct Executed<T> {
    pub(crate) verdict: Verdict,
    pub(crate) results: Vec<Option<T>>,
    pub(crate) steps: u64,
    pub(crate) trace: Option<Vec<Event>>,
}

/// What is kept from run to run: memory, stacks, tables.
#[derive(Debug)]
pub(crate) struct Engine {
    machine: Machine,
    stacks: Stacks,
    config: Rc<Config>,
}

impl Engine {
    pub(crate) fn new(config: Config) -> Engine {
        Engine { stacks: Stacks::new(config.stack), machine: Machine::new(config.clone()), config: Rc::new(config) }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Runs `program` on every PE, with `chooser` picking.
    ///
    /// # Errors
    /// Only when there is no memory for the PEs' stacks; everything else is a verdict.
    #[track_caller]
    pub(crate) fn execute<T, C: Chooser>(
        &mut self,
        chooser: &mut C,
        max_steps: u64,
        tracing: bool,
        program: &dyn Fn(&SimProcess) -> Result<T>,
    ) -> Result<Executed<T>> {
        let n = self.config.pes;
        let at = std::panic::Location::caller();
        let config = Rc::clone(&self.config);
        let body = move |channel: Channel| program(&SimProcess::new(channel, Rc::clone(&config)));
        let machine = &mut self.machine;
        machine.reset(C::RELAXED, C::TRACKING, tracing);
        let mut results = Vec::with_capacity(n);
        results.resize_with(n, || None);
        let drive = |hosts: &mut Hosts<Result<T>>| drive(machine, hosts, chooser, max_steps, &mut results);
        let verdict = Hosts::with(n, &mut self.stacks, &body, drive)
            .map_err(|why| Error::new(ErrorKind::OutOfMemory, "simulation", why, at))?;
        let (steps, trace) = (self.machine.steps, self.machine.take_trace());
        Ok(Executed { verdict, results, steps, trace })
    }
}

/// Takes steps until nothing can happen any more, or something is found.
fn drive<T, C: Chooser>(
    machine: &mut Machine,
    hosts: &mut Hosts<Result<T>>,
    chooser: &mut C,
    max_steps: u64,
    results: &mut [Option<T>],
) -> Verdict {
    loop {
        while let Some(pe) = machine.next_host() {
            if let Some(kind) = run_host(machine, hosts, pe, max_steps, results) {
                return Verdict { kind, agents: machine.agents_report() };
            }
        }
        let n = machine.choices();
        if n == 0 || machine.has_finding() {
            break;
        }
        let index = chooser.pick(machine, n);
        if let Some(pe) = machine.take(index) {
            let (call, at) = hosts.call(pe);
            if machine.perform(pe, call, at) == Progress::Done {
                machine.yield_host(pe);
            }
        }
        chooser.took(&machine.touched);
        if machine.steps > max_steps {
            return Verdict { kind: VerdictKind::StepLimit { steps: max_steps }, agents: machine.agents_report() };
        }
    }
    if let Some(kind) = machine.take_finding() {
        return Verdict { kind, agents: machine.agents_report() };
    }
    if machine.is_over() {
        return Verdict::finished();
    }
    Verdict { kind: VerdictKind::Deadlock, agents: machine.agents_report() }
}

/// Lets one host run until it blocks; the reason to end the run, if there is one.
#[inline]
fn run_host<T>(
    machine: &mut Machine,
    hosts: &mut Hosts<Result<T>>,
    pe: u32,
    max_steps: u64,
    results: &mut [Option<T>],
) -> Option<VerdictKind> {
    for _ in 0..TURN {
        match hosts.resume(pe, machine.reply(pe)) {
            Turn::Asked => {
                let (call, at) = hosts.call(pe);
                let progress = machine.submit(pe, call, at);
                if machine.has_finding() {
                    return machine.take_finding();
                }
                if progress == Progress::Blocked {
                    return None;
                }
            }
            Turn::Returned(Ok(value)) => {
                results[pe as usize] = Some(value);
                machine.host_returned(pe);
                return None;
            }
            Turn::Returned(Err(error)) => {
                machine.host_returned(pe);
                return Some(VerdictKind::Failed { pe: pe as usize, error });
            }
            Turn::Panicked(message) => {
                machine.host_returned(pe);
                return Some(VerdictKind::Panicked { pe: pe as usize, message });
            }
        }
    }
    if machine.steps > max_steps {
        return Some(VerdictKind::StepLimit { steps: max_steps });
    }
    machine.yield_host(pe);
    None
}
