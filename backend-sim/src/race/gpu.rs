//! Words that kernels access strongly: what they tell, by [scope](super::scope), and what agents of kernels do not learn, because a fence lacks
//! something.

use std::collections::BTreeMap;
use std::rc::Rc;

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::Scope;
use smallvec::SmallVec;

use super::call::counts;
use super::clock::Clock;
use super::missing::{MissingEdge, Reach};
use super::scope::{Nearby, Place, Scoped, join_nearby, places};
use super::site::{Site, Sites};
use super::{Detector, Kind, Lane, Mark, Narrow, Told, View, join_told, knows, steps_of};
use crate::machine::{AgentId, PeId, Table};

/// What kernels have told by words in this run.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    /// What strong stores to words tell.
    words: BTreeMap<Word, Near>,
    /// What agents of a PE would know if their fences lacked nothing: one for each lack.
    missed: Vec<Missed>,
}

/// A word by which threads of kernels tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    /// Of a PE's memory, by its allocation and offset.
    Global(PeId, AllocId, usize),
    /// Of the shared memory of a block or cluster, by its address.
    Shared(AgentId, u64),
}

impl Word {
    fn of(pe: PeId, span: Span) -> Word {
        Word::Global(pe, span.alloc, span.start)
    }
}

/// When an agent accessed something.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    pub(super) agent: AgentId,
    pub(super) time: u64,
}

impl From<&Mark> for When {
    fn from(mark: &Mark) -> When {
        When { agent: mark.agent(), time: mark.time }
    }
}

/// The most agents whose withheld knowledge a word keeps, if they have changed it one after the other.
const MOST_WITHHELD: usize = 8;

#[derive(Clone, Debug)]
struct Near {
    /// When the word was updated: later updates by others replace this.
    time: u64,
    /// What it tells in the scopes of blocks and GPUs.
    nearby: Rc<Nearby>,
    /// What it tells everybody, and what kernels had told at it before, back to the last transfer that has updated it.
    by_kernels: Option<Told>,
    /// What its updates would have told, had a fence stood right before each: the last one's, and those of others that it has only changed.
    withheld: SmallVec<[Withheld; 2]>,
    /// Who has read it last, of others.
    heard: Option<Reader>,
    /// The same before an atomic that has read it and changed it in one step: a flag that its reader takes back so.
    taken: Option<Box<Near>>,
}

/// An agent that has read a word.
#[derive(Clone, Copy, Debug)]
struct Reader {
    agent: AgentId,
    when: u64,
    read: At,
    /// Whether it has only counted, by an atomic addition: it goes on whatever it has read.
    counts: bool,
}

/// What an agent knew, and had done, when it updated a word.
#[derive(Clone, Debug)]
struct Withheld {
    agent: AgentId,
    last: u64,
    clock: Rc<Clock>,
    /// The line of the update.
    at: At,
}

/// What a kernel's update of a word tells, and what its thread knew when it made it.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    tells: Scoped,
    by: Withheld,
}

/// What a word tells who reads it, and the scope of the fence by which that is learned.
pub(crate) type Heard = SmallVec<[(Told, Scope); 3]>;

#[derive(Debug)]
struct Missed {
    by: PeId,
    /// When that was first so.
    since: u64,
    clock: Rc<Clock>,
    lack: Lack,
}

/// What a fence lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It has the scope of a block or of a GPU, and the other thread is in another.
    Scope { fence: At },
    /// It is behind a barrier, and another thread before the barrier has read what is to be acquired.
    Place { fence: At, read: At, reach: Reach },
    /// There is none before a flag is set. `reach`: who reads the flag. `counts`: it does so by counting.
    Release { flag: At, reach: Reach, counts: bool },
    /// There is none behind the read of a flag. `reach`: who has set it. `tells`: the line by which the reader tells others.
    Acquire { read: At, reach: Reach, counts: bool, tells: Option<At> },
    /// It is behind a load, and what a transfer has brought is told by NVSHMEM's waits only.
    Wait { read: At },
}

impl Lack {
    /// What is missing between two lines. `of_one_pe`: whether kernels of one PE made both accesses.
    pub(super) fn edge(self, [after, before]: [At; 2], of_one_pe: bool) -> MissingEdge {
        match self {
            Lack::Scope { fence } if of_one_pe => MissingEdge::GpuFence { at: fence },
            Lack::Scope { fence } => MissingEdge::SystemFence { at: fence },
            Lack::Place { fence, read, reach } => MissingEdge::ReadersFence { fence, read, reach },
            Lack::Release { flag, reach, .. } => MissingEdge::ReleasingFence { after, flag, reach },
            Lack::Acquire { read, reach, tells, .. } => {
                MissingEdge::AcquiringFence { read, before: tells.unwrap_or(before), reach }
            }
            Lack::Wait { read } => MissingEdge::Wait { at: read },
        }
    }
}

impl Reach {
    /// From one thread of a kernel to another one.
    fn between(one: AgentId, other: AgentId, agents: &Table<AgentId, View>) -> Reach {
        let [a, b] = [one, other].map(|agent| &agents[agent]);
        let block = |view: &View| view.block.map(|block| (block, view.rank));
        match a.pe == b.pe {
            true if block(a).is_some() && block(a) == block(b) => Reach::Block,
            true => Reach::Gpu,
            false => Reach::System,
        }
    }
}

impl Gpus {
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.missed.clear();
    }

    /// An allocation has ended.
    pub(super) fn forget(&mut self, ended: AllocId) {
        if !self.words.is_empty() {
            self.words.retain(|word, _| !matches!(word, Word::Global(_, alloc, _) if *alloc == ended));
        }
    }

    /// An agent of a PE does not learn what it was told, at this moment.
    fn misses(&mut self, (by, since): (PeId, u64), told: &Told, lack: Lack) {
        match self.missed.iter_mut().find(|missed| (missed.by, missed.lack) == (by, lack)) {
            Some(missed) if Rc::ptr_eq(&missed.clock, &told.clock) => {}
            Some(missed) => Rc::make_mut(&mut missed.clock).join(&told.clock),
            None => self.missed.push(Missed { by, since, clock: Rc::clone(&told.clock), lack }),
        }
    }

    /// What the fence lacks that would otherwise order two accesses. This is asked when they race, as what fences lack later is no reason for the race.
    pub(super) fn missing(&self, [first, second]: [When; 2], agents: &Table<AgentId, View>) -> Option<Lack> {
        let covers = |clock: &Clock| steps_of(clock, agents, first.agent) >= first.time;
        self.missed_before(second, agents)
            .find(|missed| !matches!(missed.lack, Lack::Wait { .. }) && covers(&missed.clock))
            .map(|missed| missed.lack)
    }

    /// A load that stands in place of a wait: behind a wait, the arrival of the first access at a PE would be known. An access that is no arrival needs
    /// no wait.
    pub(super) fn wait_missing(
        &self,
        [first, second]: [&Mark; 2],
        pe: PeId,
        agents: &Table<AgentId, View>,
    ) -> Option<Lack> {
        if matches!(first.lane(), Lane::Steps | Lane::Stores) {
            return None;
        }
        let covers = |clock: &Clock| knows(clock, agents, first.agent(), first.lane(), first.time, pe);
        self.missed_before(second.into(), agents)
            .find(|missed| matches!(missed.lack, Lack::Wait { .. }) && covers(&missed.clock))
            .map(|missed| missed.lack)
    }

    /// What the PE of an access has missed before it.
    fn missed_before<'a>(&'a self, access: When, agents: &Table<AgentId, View>) -> impl Iterator<Item = &'a Missed> {
        let (reader, time) = (agents[access.agent].pe, access.time);
        self.missed.iter().filter(move |missed| missed.by == reader && missed.since <= time)
    }

    /// The fence that is missing, where with it a flag that was set behind the first access would order the two. A thread of the second one's PE has
    /// read the flag before the second access. If both are `of_one_block`, the second one's own thread has, or one of whom it knows that. Or the flag was read
    /// by somebody of whom the second access knows: `knows` is that access's clock, and the PE whose memory it accesses.
    pub(super) fn fence_missing(
        &self,
        [first, second]: [When; 2],
        knows: Option<(&Clock, PeId)>,
        of_one_block: bool,
        (agents, sites): (&Table<AgentId, View>, &Sites),
    ) -> Option<Lack> {
        let covers = |clock: &Clock| steps_of(clock, agents, first.agent) >= first.time;
        let is_told = |of: &Reader| knows.is_some_and(|(clock, _)| steps_of(clock, agents, of.agent) >= of.when);
        let is_reader = |of: &Reader| {
            let reads = match of_one_block {
                true => of.agent == second.agent || is_told(of),
                false => agents[of.agent].pe == agents[second.agent].pe,
            };
            reads && of.when <= second.time
        };
        self.told().find_map(|near| {
            let reader @ Reader { agent: by, when, read, counts } = near.heard?;
            let pe = agents[by].pe;
            // a call of NVSHMEM sends by itself what its thread comes after; a store of its own does so behind a fence of the system
            let (tells, is_sent) = match is_reader(&reader) {
                true => (None, true),
                false if of_one_block => return None,
                false => {
                    let in_a_call = knows.and_then(|(clock, pe)| {
                        let upto = Some(steps_of(clock, agents, by)).filter(|upto| *upto > when)?;
                        Some(sites.all[agents[by].tells(when, upto, [pe; 2])?.0 as usize].at)
                    });
                    let is_sent = in_a_call.is_some() || agents[second.agent].pe == pe;
                    (Some(in_a_call.or_else(|| self.flag_set_by(by, when, is_reader))?), is_sent)
                }
            };
            let withholds = |one: &&Withheld| covers(&one.clock) || one.agent == first.agent && one.last >= first.time;
            let &Withheld { agent, at: flag, .. } = near.withheld.iter().find(withholds)?;
            let reach = Reach::between(agent, by, agents);
            let nearby = places(by, agents).into_iter().filter_map(|place| near.nearby.get(&place));
            let near_told = nearby.map(|near| &*near.told.clock);
            let told = near.by_kernels.as_ref().map(|told| &*told.clock);
            if !told.into_iter().chain(near_told).any(covers) {
                return Some(Lack::Release { flag, reach, counts });
            }
            // who has told the second of its reading has told it of nothing before the flag
            let learned = tells.is_none() && covers(agents[by].last_clock(agents));
            let reach = if is_sent { reach } else { Reach::System };
            (!learned).then_some(Lack::Acquire { read, reach, counts, tells })
        })
    }

    /// A word that others than this agent have updated.
    fn set_by_others(&mut self, agent: AgentId, word: Word) -> Option<&mut Near> {
        self.words.get_mut(&word).filter(|near| near.withheld.iter().any(|one| one.agent != agent))
    }

    /// A word is updated. `places`: those of who does it. `is_more`: what was told there before stays.
    fn update(&mut self, (scoped, places): (&Scoped, [Place; 2]), by: &Withheld, word: Word, is_more: bool) {
        let before = self.words.remove(&word).filter(|_| is_more);
        let mut by_kernels = scoped.system.clone();
        join_told(&mut by_kernels, before.as_ref().and_then(|near| near.by_kernels.as_ref()));
        let mut nearby = before.as_ref().map(|near| Rc::clone(&near.nearby)).unwrap_or_default();
        let is_taken = |near: &Near| near.heard.is_some_and(|reader| reader.agent == by.agent);
        let (taken, mut withheld) = match before {
            Some(near) if is_taken(&near) => (Some(Box::new(Near { taken: None, ..near.clone() })), near.withheld),
            Some(near) => (None, near.withheld),
            None => (None, SmallVec::new()),
        };
        if scoped.block.is_some() {
            join_nearby(Rc::make_mut(&mut nearby), places, scoped);
        }
        withheld.retain(|of_another| of_another.agent != by.agent);
        if withheld.len() == MOST_WITHHELD {
            withheld.remove(0);
        }
        withheld.push(by.clone());
        self.words.insert(word, Near { time: by.last, nearby, by_kernels, withheld, heard: None, taken });
    }

    /// What kernels have told by words, also before an atomic that has read a word and changed it.
    fn told(&self) -> impl Iterator<Item = &Near> {
        self.words.values().flat_map(|near| [Some(near), near.taken.as_deref()]).flatten()
    }

    /// The line by which an agent has set a flag behind a moment, one that a reader has read.
    fn flag_set_by(&self, agent: AgentId, behind: u64, is_reader: impl Fn(&Reader) -> bool) -> Option<At> {
        let flags = self.told().filter(|near| near.heard.as_ref().is_some_and(&is_reader));
        let mut updates = flags.flat_map(|near| &near.withheld);
        updates.find(|one| one.agent == agent && one.last > behind).map(|one| one.at)
    }
}

/// # Strong accesses of kernels
impl Detector {
    /// What kernels have told at a word, if nobody else has updated the word since.
    fn near(&self, pe: PeId, word: Span) -> Option<&Near> {
        if self.gpus.words.is_empty() {
            return None;
        }
        let (time, _) = self.shadow.released(pe, word)?;
        let near = self.gpus.words.get(&Word::of(pe, word));
        near.filter(|near| near.time == *time)
    }

    /// What a word tells once an update that an agent of a kernel has made now has arrived there.
    pub(crate) fn update_of(&self, agent: AgentId, tells: Scoped) -> Update {
        let View { last, site, ref clock, .. } = self.agents[agent];
        let by = Withheld { agent, last, clock: Rc::clone(clock), at: self.sites.all[site as usize].at };
        Update { tells, by }
    }

    /// A kernel's update of a word arrives. `replaces`: whatever the word held before.
    pub(crate) fn update_by_kernel(&mut self, update: &Update, (pe, word): (PeId, Span), replaces: bool) {
        let Update { tells: scoped, by } = update;
        let is_more = !replaces && self.near(pe, word).is_some();
        self.update(by.last, pe, word, scoped.system.as_ref(), replaces);
        let places = places(by.agent, &self.agents);
        self.gpus.update((scoped, places), by, Word::of(pe, word), is_more);
    }

    /// A thread of a block writes strongly to shared memory, and tells this by it. `adds`: to what was told there before.
    pub(crate) fn update_in_shared(
        &mut self,
        (thread, block): (AgentId, AgentId),
        address: u64,
        (told, adds): (Option<&Told>, bool),
        at: At,
    ) {
        self.has_acted(thread);
        let View { last, ref clock, .. } = self.agents[thread];
        let by = Withheld { agent: thread, last, clock: Rc::clone(clock), at };
        let scoped = told.map(|told| Scoped::of(told.clone(), Scope::Cta, None)).unwrap_or_default();
        self.gpus.update((&scoped, places(thread, &self.agents)), &by, Word::Shared(block, address), adds);
    }

    /// A block has ended, and with it its shared memory.
    pub(crate) fn forget_shared(&mut self, block: AgentId) {
        if self.gpus.words.is_empty() {
            return;
        }
        self.gpus.words.retain(|word, _| !matches!(word, Word::Shared(of, _) if *of == block));
    }

    /// A fence that would order two accesses to shared memory by threads of one block: the one at a moment, and the other now.
    pub(crate) fn missing_in_shared(
        &self,
        [first, second]: [AgentId; 2],
        moment: u64,
        lines: [At; 2],
    ) -> Option<MissingEdge> {
        // whatever the first thread tells behind its access, it tells later than at that moment
        let both = [When { agent: first, time: moment + 1 }, When { agent: second, time: self.now }];
        let View { pe, ref clock, .. } = self.agents[second];
        let lack = self.gpus.missing(both, &self.agents);
        let lack = lack.or_else(|| self.gpus.fence_missing(both, Some((clock, pe)), true, (&self.agents, &self.sites)));
        lack.map(|lack| lack.edge(lines, true))
    }

    /// What a word tells agents of kernels in narrow scopes.
    pub(crate) fn told_nearby(&self, pe: PeId, word: Span) -> Option<Rc<Nearby>> {
        Some(Rc::clone(&self.near(pe, word)?.nearby))
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

    /// What a word tells an agent of a kernel that reads it strongly.
    pub(crate) fn heard(&mut self, agent: AgentId, pe: PeId, word: Span) -> Heard {
        let told = (self.told(pe, word), self.told_by_kernels(pe, word));
        let nearby = self.told_nearby(pe, word);
        self.heard_since(agent, (pe, word), told, nearby.as_deref())
    }

    /// The same of an update that has told this; what later ones have told, the agent need not come after.
    pub(crate) fn heard_since(
        &mut self,
        agent: AgentId,
        (pe, word): (PeId, Span),
        (told, by_kernels): (Option<Told>, Option<Told>),
        nearby: Option<&Nearby>,
    ) -> Heard {
        self.hears(agent, pe, word);
        self.heard_of(agent, pe, (told, by_kernels), nearby)
    }

    /// The same of what a word has told earlier, which is all that the agent reads.
    pub(crate) fn heard_of(
        &mut self,
        agent: AgentId,
        pe: PeId,
        (told, by_kernels): (Option<Told>, Option<Told>),
        nearby: Option<&Nearby>,
    ) -> Heard {
        let told = self.told_to_a_load(agent, pe, told, by_kernels);
        let [block, gpu] = places(agent, &self.agents);
        let mut heard: Heard = told.into_iter().map(|told| (told, Scope::Sys)).collect();
        for (&place, Narrow { told, fence }) in nearby.into_iter().flatten() {
            let scope = match place {
                _ if place == block => Scope::Cta,
                _ if place == gpu => Scope::Gpu,
                _ => {
                    fence.iter().for_each(|&fence| self.misses(agent, told, Lack::Scope { fence }));
                    continue;
                }
            };
            match heard.iter_mut().find(|(other, _)| other.is(told)) {
                Some((_, of)) => *of = scope.min(*of),
                None => heard.push((told.clone(), scope)),
            }
        }
        heard
    }

    /// Notes who has read a word that a kernel has updated.
    fn hears(&mut self, agent: AgentId, pe: PeId, word: Span) {
        let View { last, site, .. } = self.agents[agent];
        if let Some(near) = self.gpus.set_by_others(agent, Word::of(pe, word)) {
            let Site { call, at, .. } = self.sites.all[site as usize];
            near.heard = Some(Reader { agent, when: last, read: at, counts: counts(call) });
        }
    }

    /// A thread of a block reads shared memory strongly. `counts`: it goes on whatever it has read.
    pub(crate) fn hears_in_shared(
        &mut self,
        (agent, block): (AgentId, AgentId),
        address: u64,
        (read, counts): (At, bool),
    ) {
        self.has_acted(agent);
        let when = self.agents[agent].last;
        if let Some(near) = self.gpus.set_by_others(agent, Word::Shared(block, address)) {
            near.heard = Some(Reader { agent, when, read, counts });
        }
    }

    /// An agent does not learn what it was told, because of what a fence lacks.
    pub(crate) fn misses(&mut self, agent: AgentId, told: &Told, lack: Lack) {
        let View { pe, last, .. } = self.agents[agent];
        self.gpus.misses((pe, last), told, lack);
    }

    /// An agent has read a word by a call: it learns what was told in the scopes of its block and its GPU.
    pub(super) fn acquire_near(&mut self, agent: AgentId, pe: PeId, word: Span) {
        self.hears(agent, pe, word);
        if let Some(nearby) = self.told_nearby(pe, word) {
            self.learn_nearby(agent, &nearby);
        }
    }

    /// An agent learns what was told in the scopes of its block and its GPU, if it is one of a kernel.
    pub(crate) fn learn_nearby(&mut self, agent: AgentId, nearby: &Nearby) {
        if matches!(self.agents[agent].kind, Kind::Kernel(_)) {
            let near = places(agent, &self.agents).into_iter().filter_map(|place| nearby.get(&place));
            near.for_each(|near| self.learn_told(agent, &near.told));
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
                gpus.misses((by, time), &Told::of(agent, time), Lack::Scope { fence: at });
                gpus.misses((by, time), &Told::of(agent, time), Lack::Wait { read: at });
            }
        }
        assert_eq!(gpus.missed.len(), 4);
        assert!(gpus.missed.iter().all(|missed| missed.clock.steps(agent) == 1000));
    }
}
