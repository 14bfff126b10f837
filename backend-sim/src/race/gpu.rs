//! Fences in the scope of a GPU: what they tell, agents of the same PE learn. Another PE is another process, and may be on another GPU.
//! And what agents of kernels do not learn, because a fence lacks something.

use std::collections::BTreeMap;
use std::rc::Rc;

use onesided::At;
use onesided::backend::{AllocId, Span};

use super::clock::Clock;
use super::{Detector, Kind, Mark, Told, View, join_told, knows, steps_of};
use crate::machine::{AgentId, PeId, Table};

/// What was told within GPUs in this run.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    /// By PE, allocation and offset: what strong stores to words tell on their GPU.
    words: BTreeMap<(PeId, AllocId, usize), Near>,
    /// What agents of a PE would know if their fences lacked nothing: one for each lack.
    missed: Vec<Missed>,
}

#[derive(Debug)]
struct Near {
    gpu: PeId,
    /// When the word was updated: later updates by others replace this.
    time: u64,
    told: Option<Narrow>,
    /// What it tells everybody.
    tells: Option<Rc<Clock>>,
    /// The same, and what kernels had told at it before, back to the last transfer that has updated it.
    by_kernels: Option<Told>,
    /// What its last update would have told, had a fence stood right before it.
    withheld: Withheld,
    /// Who has read it last, of others: when, and where.
    heard: Option<(AgentId, u64, At)>,
}

/// What an agent knew, and had done, when it updated a word.
#[derive(Debug)]
struct Withheld {
    agent: AgentId,
    last: u64,
    clock: Rc<Clock>,
    /// The line of the update.
    at: At,
}

/// What fences in the scope of a GPU or of the system tell, and the line of the last one that has the scope of the GPU.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    pub(crate) told: Told,
    pub(crate) fence: Option<At>,
}

#[derive(Debug)]
struct Missed {
    by: PeId,
    clock: Rc<Clock>,
    lack: Lack,
}

/// What a fence lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It has the scope of a GPU, and the other thread is on another.
    Scope { fence: At },
    /// It is behind a barrier, and another thread before the barrier has read what is to be acquired.
    Place { fence: At, read: At },
    /// There is none before a flag is set.
    Release { flag: At },
    /// There is none behind the read of a flag.
    Acquire { read: At },
    /// It is behind a load, and what a transfer has brought is told by NVSHMEM's waits only.
    Wait { read: At },
}

impl Narrow {
    pub(crate) fn join(&mut self, other: &Narrow) {
        self.told.join(&other.told);
        self.fence = other.fence.or(self.fence);
    }
}

impl Gpus {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.missed.clear();
    }

    /// An agent of a PE does not learn what it was told.
    fn misses(&mut self, by: PeId, told: &Told, lack: Lack) {
        match self.missed.iter_mut().find(|missed| (missed.by, missed.lack) == (by, lack)) {
            Some(missed) if Rc::ptr_eq(&missed.clock, &told.clock) => {}
            Some(missed) => Rc::make_mut(&mut missed.clock).join(&told.clock),
            None => self.missed.push(Missed { by, clock: Rc::clone(&told.clock), lack }),
        }
    }

    /// What the fence lacks that would order two accesses else.
    pub(super) fn missing(&self, first: &Mark, second: &Mark, agents: &Table<AgentId, View>) -> Option<Lack> {
        let reader = agents[second.agent()].pe;
        let orders =
            |missed: &&Missed| missed.by == reader && steps_of(&missed.clock, agents, first.agent()) >= first.time;
        self.missed
            .iter()
            .filter(|missed| !matches!(missed.lack, Lack::Wait { .. }))
            .find(orders)
            .map(|missed| missed.lack)
    }

    /// The load in place of a wait: with a wait, the arrival of the first at a PE would be known.
    pub(super) fn wait_missing(
        &self,
        [first, second]: [&Mark; 2],
        pe: PeId,
        agents: &Table<AgentId, View>,
    ) -> Option<Lack> {
        let reader = agents[second.agent()].pe;
        let orders = |missed: &&Missed| {
            let Mark { time, .. } = *first;
            let is_of_a_wait = missed.by == reader && matches!(missed.lack, Lack::Wait { .. });
            is_of_a_wait && knows(&missed.clock, agents, first.agent(), first.lane(), time, pe)
        };
        self.missed.iter().find(orders).map(|missed| missed.lack)
    }

    /// What is missing of a fence: with it, a flag that was set behind the first access and read before the second would order the two.
    pub(super) fn fence_missing(&self, [first, second]: &[Mark; 2], agents: &Table<AgentId, View>) -> Option<Lack> {
        let reader = agents[second.agent()].pe;
        let covers = |clock: &Clock| steps_of(clock, agents, first.agent()) >= first.time;
        self.words.values().find_map(|near| {
            let (by, _, read) = near.heard.filter(|&(by, when, _)| agents[by].pe == reader && when <= second.time)?;
            let Withheld { agent, last, ref clock, at: flag } = near.withheld;
            if !(covers(clock) || agent == first.agent() && last >= first.time) {
                return None;
            }
            let near_told = near.told.as_ref().filter(|_| near.gpu == reader).map(|near| &*near.told.clock);
            if !near.tells.as_deref().into_iter().chain(near_told).any(covers) {
                return Some(Lack::Release { flag });
            }
            let view = &agents[by];
            let known = view.block.map(|block| &agents[block]).filter(|block| block.met != view.met).unwrap_or(view);
            (!covers(&known.clock)).then_some(Lack::Acquire { read })
        })
    }
}

/// # Strong accesses of kernels
impl Detector {
    /// What was told at a word within a GPU, if nobody else has updated the word since.
    fn near(&self, pe: PeId, word: Span) -> Option<&Near> {
        if self.gpus.words.is_empty() {
            return None;
        }
        let (time, _) = self.shadow.released(pe, word)?;
        let near = self.gpus.words.get(&(pe, word.alloc, word.start));
        near.filter(|near| near.time == *time)
    }

    /// A kernel has updated a word itself. From now on it tells everybody one thing, and its own GPU another. `replaces`: whatever it held before.
    pub(crate) fn update_by_kernel(
        &mut self,
        agent: AgentId,
        (pe, word): (PeId, Span),
        (told, narrow): (Option<Told>, Option<Narrow>),
        replaces: bool,
    ) {
        if !self.on {
            return;
        }
        let gpu = self.agents[agent].pe;
        let near = self.near(pe, word).filter(|_| !replaces);
        let before = near.filter(|near| near.gpu == gpu).and_then(|near| near.told.clone());
        let mut by_kernels = told.clone();
        join_told(&mut by_kernels, near.and_then(|near| near.by_kernels.as_ref()));
        let both = match (before, narrow) {
            (Some(mut one), Some(other)) => {
                one.join(&other);
                Some(one)
            }
            (one, other) => other.or(one),
        };
        self.update(agent, pe, word, told.as_ref(), replaces);
        let View { last, site, ref clock, .. } = self.agents[agent];
        let withheld = Withheld { agent, last, clock: Rc::clone(clock), at: self.sites.all[site as usize].at };
        let tells = told.map(|told| told.clock);
        let near = Near { gpu, time: last, told: both, tells, by_kernels, withheld, heard: None };
        self.gpus.words.insert((pe, word.alloc, word.start), near);
    }

    /// What a word tells agents of kernels on the GPU of a PE besides, and that PE.
    pub(crate) fn told_nearby(&self, pe: PeId, word: Span) -> Option<(PeId, Option<Told>)> {
        let Near { gpu, told, .. } = self.near(pe, word)?;
        Some((*gpu, told.as_ref().map(|near| near.told.clone())))
    }

    /// What kernels alone tell by a word, since a transfer has updated it.
    pub(crate) fn told_by_kernels(&self, pe: PeId, word: Span) -> Option<Told> {
        self.near(pe, word)?.by_kernels.clone()
    }

    /// What a word of a PE tells an agent of a kernel that reads it by a load or an atomic of its own. Where that does not show what transfers have
    /// brought to the PE, it tells of them only what kernels have told.
    fn told_to_a_load(
        &mut self,
        agent: AgentId,
        pe: PeId,
        told: Option<Told>,
        by_kernels: Option<Told>,
    ) -> Option<Told> {
        let told = told?;
        if self.promises.loads_suffice || by_kernels.as_ref().is_some_and(|by_kernels| by_kernels.is(&told)) {
            return Some(told);
        }
        let Some(clock) = told.clock.without_arrivals(pe) else { return Some(told) };
        let read = self.sites.all[self.agents[agent].site as usize].at;
        self.misses(agent, &told, Lack::Wait { read });
        let mut seen = Some(Told { time: told.time, clock: Rc::new(clock) });
        join_told(&mut seen, by_kernels.as_ref());
        seen
    }

    /// What a word tells an agent of a kernel that reads it strongly, and whether only a fence of the system's scope may learn it.
    pub(crate) fn heard(&mut self, agent: AgentId, pe: PeId, word: Span) -> Option<(Told, bool)> {
        let (told, by_kernels) = (self.told(pe, word), self.told_by_kernels(pe, word));
        let mut told = self.told_to_a_load(agent, pe, told, by_kernels);
        self.hears(agent, pe, word);
        let me = self.agents[agent].pe;
        let Some(Near { gpu, told: near, .. }) = self.near(pe, word) else { return Some((told?, true)) };
        let (is_own, near) = (*gpu == me, near.clone());
        if is_own {
            join_told(&mut told, near.map(|near| near.told).as_ref());
            return Some((told?, false));
        }
        if let Some(Narrow { told, fence: Some(fence) }) = near {
            self.misses(agent, &told, Lack::Scope { fence });
        }
        Some((told?, true))
    }

    /// The same of an update that has told this; what later ones have told, the agent need not come after.
    pub(crate) fn heard_since(
        &mut self,
        agent: AgentId,
        (pe, word): (PeId, Span),
        (told, by_kernels): (Option<Told>, Option<Told>),
        nearby: Option<&(PeId, Option<Told>)>,
    ) -> Option<(Told, bool)> {
        self.hears(agent, pe, word);
        let me = self.agents[agent].pe;
        let mut told = self.told_to_a_load(agent, pe, told, by_kernels);
        let nearby = nearby.filter(|(gpu, _)| *gpu == me);
        join_told(&mut told, nearby.and_then(|(_, near)| near.as_ref()));
        Some((told?, nearby.is_none()))
    }

    /// Notes who has read a word that a kernel has updated.
    fn hears(&mut self, agent: AgentId, pe: PeId, word: Span) {
        let View { last, site, .. } = self.agents[agent];
        let near = self.gpus.words.get_mut(&(pe, word.alloc, word.start));
        if let Some(near) = near.filter(|near| near.withheld.agent != agent) {
            near.heard = Some((agent, last, self.sites.all[site as usize].at));
        }
    }

    /// An agent does not learn what it was told, because of what a fence lacks.
    pub(crate) fn misses(&mut self, agent: AgentId, told: &Told, lack: Lack) {
        self.gpus.misses(self.agents[agent].pe, told, lack);
    }

    /// An agent has read a word by a call: on the same GPU it learns what was told there.
    pub(super) fn acquire_near(&mut self, agent: AgentId, pe: PeId, word: Span) {
        self.hears(agent, pe, word);
        let View { pe: me, kind, .. } = self.agents[agent];
        if matches!(kind, Kind::Kernel(_))
            && let Some(Near { gpu, told: Some(near), .. }) = self.near(pe, word)
            && *gpu == me
        {
            let told = near.told.clone();
            self.learn_told(agent, &told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop comes to its fence again and again, and each time the word has told something else.
    #[test]
    fn what_the_fence_of_a_loop_lacks_is_kept_once() {
        let (mut gpus, at, agent) = (Gpus::default(), At::foreign("loop.cu", 7, 1, None), AgentId(3));
        for time in 1..=1000 {
            for by in [PeId(0), PeId(1)] {
                gpus.misses(by, &Told::of(agent, time), Lack::Scope { fence: at });
                gpus.misses(by, &Told::of(agent, time), Lack::Acquire { read: at });
            }
        }
        assert_eq!(gpus.missed.len(), 4);
        assert!(gpus.missed.iter().all(|missed| missed.clock.steps(agent) == 1000));
    }
}
