//! Loads of what nobody may write while their kernel runs (`ld.global.nc`). They are in no order with writes made
//! while it runs, whatever waits, fences and barriers stand between. Such a load comes after what its kernel's launch comes after, and after nothing else.

use std::rc::Rc;

use onesided::backend::Span;

use super::clock::Clock;
use super::how::How;
use super::who::knows;
use super::{Detector, Lane, Mark, View, Who};
use crate::machine::{AgentId, PeId, Table};

/// What a kernel comes after.
#[derive(Debug)]
pub(super) struct Began {
    clock: Rc<Clock>,
    base: u64,
}

impl Began {
    fn is_behind(&self, write: &Mark, pe: PeId, agents: &Table<AgentId, View>) -> bool {
        write.time <= self.base || knows(&self.clock, agents, write.agent(), write.lane(), write.time, pe)
    }
}

impl Detector {
    /// A block of a kernel begins, and knows what its stream does. One that begins when others have ended knows no more.
    pub(crate) fn block_begins(&mut self, block: AgentId) {
        if self.on {
            let began = Began { clock: Rc::clone(&self.agents[block].clock), base: self.base };
            self.agents[block].began = Some(Rc::new(began));
        }
    }

    /// A thread has just read a word that nobody may write while its kernel runs. Where nothing orders a write before the read, that race is
    /// noted already.
    pub(crate) fn reads_only(&mut self, thread: AgentId, pe: PeId, word: Span) {
        let View { block, last, site, .. } = self.agents[thread];
        let Some(began) = block.and_then(|block| self.agents[block].began.clone()) else { return };
        let mark = Mark::new(thread, Lane::Steps, last, site, How::Read, word.len);
        let Detector { base, agents, shadow, found, gpus, sites, .. } = self;
        let who = Who { pe, ..Who::agent(thread, last, *base, agents) };
        shadow.writes(pe, word, |cell, write| {
            if !began.is_behind(write, pe, agents) && cell.is_known(&who, write) {
                found.note_read_only(*write, mark, &who, word, (agents, gpus, sites));
            }
        });
    }
}
