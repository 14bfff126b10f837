//! [`Loops`]: which calls a host makes again and again.

use onesided::At;

use super::Machine;
use super::ids::{AgentId, Id, PeId};
use crate::request::Call;
use crate::verdict::Repeated;

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
