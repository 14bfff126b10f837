//! What the rounds of a loop look at besides the word that ends it, while their thread waits for that.
//!
//! Such a look may race, so the race detector is told of one. If the loop goes on only while a word says nothing, the thread waits only in a proof, which
//! [assumes](super::super::assumed::sides) that the word stays as it is. Elsewhere the thread looks step by step: it may be told to give up
//! between two looks, although the word that it waits for has come meanwhile.

use onesided::backend::Span;
use onesided_ptx::{Access, LookBeside, Looks, Until};

use super::super::Machine;
use super::super::access::Test;
use super::super::ids::{AgentId, BlockId, PeId};
use super::ends_loop::{Glance, condition_of};
use super::turn::name_of;
use crate::race::How;

/// What rounds look at besides.
#[derive(Debug)]
pub(super) struct Besides {
    looks: Vec<Glance>,
    /// What must be so for the loop to go on.
    sides: Vec<Test>,
}

impl Machine {
    /// What they are, if a thread can wait beside them. `None`: it looks step by step.
    pub(super) fn besides(&mut self, (id, me): (BlockId, PeId), looks: &Looks) -> Option<Besides> {
        let sides =
            looks.besides.iter().filter_map(|LookBeside { access, otherwise, .. }| Some((access, (*otherwise)?)));
        let sides: Vec<Test> =
            sides.map(|(access, otherwise)| self.side(me, access, otherwise)).collect::<Option<_>>()?;
        let glances = looks.besides.iter().map(|look| self.glance((id, me), look)).collect::<Option<_>>()?;
        let besides = Besides { looks: glances, sides };
        self.says_nothing(&besides).then_some(besides)
    }

    fn glance(&self, (id, me): (BlockId, PeId), look: &LookBeside) -> Option<Glance> {
        let LookBeside { access, is_call, .. } = *look;
        if !is_call {
            return Some(Glance::Access(access));
        }
        let word = self.at_address(me, access.address, access.bytes.into()).ok()?;
        let at = self.kernels.blocks[id].launched.code.at(access.place);
        Some(Glance::Call { word, how: How::AtomicRead, asked: ("signal_fetch", at) })
    }

    /// What must be so for a loop to go on, of a word of the PE's own memory.
    fn side(&self, me: PeId, access: &Access, otherwise: Until) -> Option<Test> {
        let (pe, word) = self.at_address(me, access.address, access.bytes.into()).ok()?;
        if pe != me || self.paths.matter() {
            return None;
        }
        // a search knows whether a thread may be told between two looks: at random, it has to look
        let stays = self.assumed.as_ref().is_some_and(|assumed| assumed.stay());
        let test = condition_of((pe, word), &otherwise, false)?.test();
        let stay = Test { comparison: test.comparison.negated(), ..test };
        stays.then_some(stay)
    }

    /// Whether a loop goes on, for all that its rounds look at besides.
    pub(super) fn says_nothing(&mut self, besides: &Besides) -> bool {
        let told: Vec<&Test> = besides.sides.iter().filter(|side| !self.is_so(side)).collect();
        if let Some(assumed) = &mut self.assumed {
            told.iter().for_each(|side| assumed.says(side)); // in another schedule, the thread may wait before that
        }
        told.is_empty()
    }

    fn is_so(&self, side: &Test) -> bool {
        side.comparison.holds(self.heap.load(side.pe, side.variable), side.wanted)
    }

    /// A thread begins to wait. It looks there now: that may race with what others do. Returns whether these looks were
    /// right.
    pub(super) fn looks_besides(&mut self, thread: AgentId, id: BlockId, besides: Besides) -> bool {
        for look in &besides.looks {
            if !self.looks_before(thread, id, look) {
                return false;
            }
        }
        for side in &besides.sides {
            let Test { pe, variable, .. } = *side;
            if let Some(assumed) = &mut self.assumed {
                let past = self.mode.needs.tracking.then_some(&self.agents[thread].past);
                let disturbed = !self.races.knows_last_write(thread, pe, variable);
                assumed.begins_beside(thread, side, past, disturbed);
            }
        }
        if !besides.sides.is_empty() {
            self.kernels.sides.insert(thread, besides.sides);
        }
        true
    }

    /// The race detector is told of a strong look at a word of global memory.
    pub(super) fn looks_at_word(&mut self, id: BlockId, look: &Access, place: (PeId, Span)) {
        let at = self.kernels.blocks[id].launched.code.at(look.place);
        if look.order.is_strong() && self.races.is_on() {
            let agent = self.thread_acts(id, look.thread as usize);
            let read = (How::AtomicRead, look.scope);
            self.races.touch_strongly(agent, place, read, None, (name_of(look), at));
        }
    }

    /// A loop has ended by the word that its thread waited for.
    pub(super) fn ends_beside(&mut self, thread: AgentId) {
        let number = self.number();
        for side in self.kernels.sides.remove(&thread).into_iter().flatten() {
            if let Some(assumed) = self.assumed.as_mut().filter(|_| self.mode.needs.tracking) {
                assumed.ends(thread, &side, number);
            }
        }
    }

    /// What must be so for an agent to wait on.
    pub(in crate::machine) fn sides_of(&self, agent: AgentId) -> &[Test] {
        self.kernels.sides.get(&agent).map_or(&[], Vec::as_slice)
    }

    /// Whether somebody waits beside a part of this memory.
    pub(in crate::machine) fn is_beside(&self, pe: PeId, span: Span) -> bool {
        self.kernels.sides.values().flatten().any(|side| side.pe == pe && side.variable.overlaps(&span))
    }
}
