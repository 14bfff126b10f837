//! [`Loops`]: the calls that a host repeats at the step limit; and how a run goes on after the end of its schedule.

use onesided::At;

use super::ids::{AgentId, Id, PeId};
use super::record::Record;
use super::{Machine, TURN};
use crate::request::Call;
use crate::verdict::Repeated;

/// What a run has come to, while something goes on behind it.
pub(crate) struct Paused {
    record: Option<Box<Record>>,
    steps: u64,
}

/// The calls of hosts since they are counted, in the order in which each was first made.
#[derive(Debug, Default)]
pub(crate) struct Loops(Vec<(PeId, Repeated)>);

impl Loops {
    /// The calls that a PE has made at least twice.
    pub(crate) fn of(&self, pe: usize) -> Vec<Repeated> {
        let own = self.0.iter().filter(|(of, call)| of.index() == pe && call.times > 1);
        own.map(|(_, call)| call.clone()).collect()
    }

    fn add(&mut self, pe: PeId, call: &Call<'_>, at: At) {
        match self.0.iter_mut().find(|(of, other)| (*of, other.at) == (pe, at)) {
            Some((_, same)) => same.times += 1,
            None => self.0.push((pe, Repeated { call: call.in_words(), at, times: 1 })),
        }
    }
}

impl Machine {
    /// What follows is no part of the run. `counts`: whether the calls of hosts are counted in it.
    pub(crate) fn pause(&mut self, counts: bool) -> Paused {
        self.loops = counts.then(Box::default);
        self.paused = true;
        Paused { record: self.record.take(), steps: self.steps }
    }

    /// The run is again as it was, except for the races that were found.
    pub(crate) fn resume(&mut self, Paused { record, steps }: Paused) {
        (self.record, self.steps, self.loops, self.paused) = (record, steps, None, false);
    }

    /// When the turn ends that begins: at the limit of steps at the latest. Where calls are counted, each ends one.
    #[inline]
    pub(super) fn turn_end(&self) -> u64 {
        if self.loops.is_some() { self.steps } else { (self.steps + TURN).min(self.until.saturating_add(1)) }
    }

    /// A host has made a call, which ends its turn or makes it wait.
    #[inline]
    pub(super) fn count_call(&mut self, host: AgentId, call: &Call<'_>, at: At) {
        if let Some(loops) = &mut self.loops {
            loops.add(self.agents[host].pe, call, at);
        }
    }

    /// What was counted since the run was paused.
    pub(crate) fn loops(&mut self) -> &Loops {
        self.loops.get_or_insert_default()
    }
}
