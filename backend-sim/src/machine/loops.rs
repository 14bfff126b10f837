//! [`Loops`]: the calls that a host, or a thread of a kernel, repeats at the step limit; and how a run goes on after the end of its schedule.

use std::collections::BTreeMap;

use onesided::At;

use super::agent::Task;
use super::ids::AgentId;
use super::record::Record;
use super::{Machine, TURN};
use crate::request::Call;
use crate::verdict::{AgentState, Repeated, Standing};

/// What a run has come to, while something goes on behind it.
pub(crate) struct Paused {
    record: Option<Box<Record>>,
    steps: u64,
}

/// The calls of hosts and of kernels' threads since they are counted, in the order in which each was first made.
#[derive(Debug, Default)]
pub(crate) struct Loops(Vec<(AgentId, Repeated)>);

impl Loops {
    fn add(&mut self, agent: AgentId, at: At, in_words: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|(of, other)| (*of, other.at) == (agent, at)) {
            Some((_, same)) => same.times += 1,
            None => self.0.push((agent, Repeated { call: in_words(), at, times: 1 })),
        }
    }
}

impl Machine {
    /// What follows is no part of the run. `counts`: whether calls are counted in it.
    pub(crate) fn pause(&mut self, counts: bool) -> Paused {
        if counts {
            self.blocks_go_on(); // the limit has interrupted them
        }
        self.loops = counts.then(Box::default);
        self.paused = true;
        Paused { record: self.record.take(), steps: self.steps }
    }

    /// The run is again as it was, except for the races that were found.
    pub(crate) fn resume(&mut self, Paused { record, steps }: Paused) {
        (self.record, self.steps, self.loops, self.paused) = (record, steps, None, false);
    }

    /// When the turn of a host ends that begins: at the limit of steps at the latest. Where calls are counted, or something was found, each ends
    /// one.
    #[inline]
    pub(super) fn turn_end(&self) -> u64 {
        let ends_at_once = self.loops.is_some() || self.finding.is_some();
        if ends_at_once { self.steps } else { (self.steps + TURN).min(self.until.saturating_add(1)) }
    }

    /// A host has made a call, which ends its turn or makes it wait.
    #[inline]
    pub(super) fn count_call(&mut self, host: AgentId, call: &Call<'_>, at: At) {
        if let Some(loops) = &mut self.loops {
            loops.add(host, at, || call.in_words());
        }
    }

    /// A thread of a kernel has made a call.
    #[inline]
    pub(super) fn count_call_of_thread(&mut self, thread: AgentId, what: &Task, at: At) {
        if let Some(loops) = &mut self.loops {
            loops.add(thread, at, || what.in_words());
        }
    }

    /// Who has made calls at least twice since the run was paused, and which. Who has returned since then was in no loop without an end.
    pub(crate) fn loops_report(&self) -> Vec<AgentState> {
        let mut loops: BTreeMap<AgentId, Vec<Repeated>> = BTreeMap::new();
        let counted = self.loops.iter().flat_map(|loops| &loops.0).filter(|(_, call)| call.times > 1);
        counted.for_each(|(agent, call)| loops.entry(*agent).or_default().push(call.clone()));
        let reports = loops.into_iter().map(|(agent, loops)| (loops, self.agent_report(agent)));
        let goes_on = reports.filter(|(_, state)| state.standing != Standing::Finished);
        goes_on.map(|(loops, state)| AgentState { loops, standing: Standing::Runs, ..state }).collect()
    }
}
