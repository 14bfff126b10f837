//! One program, one schedule, from start to verdict.

use std::rc::Rc;

use onesided::{Error, ErrorKind, Result};

use crate::config::Config;
use crate::coroutine::{Channel, Hosts, Link, Stacks, Turn};
use crate::explore::Chooser;
use crate::machine::Machine;
use crate::pe::SimProcess;
use crate::trace::Event;
use crate::verdict::{Verdict, VerdictKind};

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
    link: Rc<Link>,
    stacks: Stacks,
    config: Rc<Config>,
}

impl Engine {
    pub(crate) fn new(config: Config) -> Engine {
        let link = Link::new(Machine::new(config.clone()));
        Engine { link, stacks: Stacks::new(config.stack), config: Rc::new(config) }
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
        let link = &self.link;
        link.machine.borrow_mut().reset(C::RELAXED, C::TRACKING, tracing);
        let mut results = Vec::with_capacity(n);
        results.resize_with(n, || None);
        let drive = |hosts: &mut Hosts<'_, Result<T>>| drive(link, hosts, chooser, max_steps, &mut results);
        let verdict = Hosts::with(n, link, &mut self.stacks, &body, drive)
            .map_err(|why| Error::new(ErrorKind::OutOfMemory, "simulation", why, at))?;
        let mut machine = link.machine.borrow_mut();
        Ok(Executed { verdict, results, steps: machine.steps, trace: machine.take_trace() })
    }
}

/// Takes steps until nothing can happen any more, or something is found.
fn drive<T, C: Chooser>(
    link: &Link,
    hosts: &mut Hosts<'_, Result<T>>,
    chooser: &mut C,
    max_steps: u64,
    results: &mut [Option<T>],
) -> Verdict {
    let ended = |kind| Verdict { kind, agents: link.machine.borrow().agents_report() };
    let mut run = |pe: u32| {
        let kind = match hosts.resume(pe) {
            Turn::Suspended => return None,
            Turn::Returned(Ok(value)) => {
                results[pe as usize] = Some(value);
                None
            }
            Turn::Returned(Err(error)) => Some(VerdictKind::Failed { pe: pe as usize, error }),
            Turn::Panicked(message) => Some(VerdictKind::Panicked { pe: pe as usize, message }),
        };
        link.machine.borrow_mut().host_returned(pe);
        kind
    };
    loop {
        let mut machine = link.machine.borrow_mut();
        while let Some(pe) = machine.next_host() {
            drop(machine);
            if let Some(kind) = run(pe) {
                return ended(kind);
            }
            machine = link.machine.borrow_mut();
            if machine.has_finding() || machine.steps > max_steps {
                break;
            }
        }
        if let Some(kind) = machine.take_finding() {
            drop(machine);
            return ended(kind);
        }
        if machine.steps > max_steps {
            drop(machine);
            return ended(VerdictKind::StepLimit { steps: max_steps });
        }
        let n = machine.choices();
        if n == 0 {
            break;
        }
        let index = chooser.pick(&machine, n);
        let mut failed = None;
        if let Some(pe) = machine.take(index) {
            drop(machine);
            failed = run(pe);
            machine = link.machine.borrow_mut();
        }
        chooser.took(&machine.touched);
        if let Some(kind) = failed {
            drop(machine);
            return ended(kind);
        }
    }
    if link.machine.borrow().is_over() { Verdict::finished() } else { ended(VerdictKind::Deadlock) }
}
