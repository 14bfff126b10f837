//! Clocks: what an agent, or a transfer, knows of everybody's accesses.
//!
//! Time is one number that grows with every access, for all PEs. Most knowledge is a prefix: "everything up to this moment". A
//! quiet of one stream knows what was issued since the quiet of another, and a signal knows its own data: these are intervals
//! behind the prefix. An interval begins with the moment of the transfer before it to the same PE, so that neighbours merge.

use smallvec::SmallVec;

use super::Lane;
use crate::machine::{AgentId, PeId};

/// A set of moments: all up to `upto`, and intervals behind it, each without its first moment and with its last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    upto: u64,
    /// Mostly one.
    later: SmallVec<[(u64, u64); 1]>,
}

/// Every signal copies clocks. A slice of intervals is copied as a whole, which is faster than one by one.
impl Clone for Times {
    #[inline]
    fn clone(&self) -> Times {
        Times { upto: self.upto, later: SmallVec::from_slice(&self.later) }
    }
}

impl Times {
    /// The moments behind `from`, up to `to`.
    pub(super) fn between(from: u64, to: u64) -> Times {
        let mut times = Times::default();
        times.add(from, to);
        times
    }

    #[inline]
    pub(super) fn contains(&self, time: u64) -> bool {
        time <= self.upto || self.later.iter().any(|&(from, to)| from < time && time <= to)
    }

    /// Adds the moments behind `from`, up to `to`.
    #[inline]
    pub(super) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        match self.later.last_mut() {
            None if from <= self.upto => self.upto = self.upto.max(to),
            Some((start, end)) if *start <= from && from <= *end => *end = to.max(*end),
            _ => self.insert(from, to),
        }
    }

    fn insert(&mut self, from: u64, to: u64) {
        if from <= self.upto {
            self.upto = self.upto.max(to);
        } else {
            // those that it touches become one with it
            let first = self.later.partition_point(|&(_, end)| end < from);
            let behind = first + self.later[first..].iter().take_while(|&&(start, _)| start <= to).count();
            if first == behind {
                self.later.insert(first, (from, to));
            } else {
                let (start, end) = (self.later[first].0.min(from), self.later[behind - 1].1.max(to));
                self.later[first] = (start, end);
                self.later.drain(first + 1..behind);
            }
        }
        // the prefix takes what it reaches
        let reached = self.later.iter().take_while(|&&(start, _)| start <= self.upto).count();
        if reached > 0 {
            self.upto = self.upto.max(self.later[reached - 1].1);
            self.later.drain(..reached);
        }
    }

    /// The last moment.
    fn last(&self) -> u64 {
        self.later.last().map_or(self.upto, |&(_, to)| to)
    }

    /// Removes the moments behind `from`, up to `to`.
    pub(super) fn remove(&mut self, from: u64, to: u64) {
        let all = std::iter::once((0, self.upto)).chain(self.later.iter().copied());
        let mut left = Times::default();
        for (start, end) in all {
            left.add(start, end.min(from));
            left.add(start.max(to), end);
        }
        *self = left;
    }

    pub(super) fn join(&mut self, other: &Times) {
        self.add(0, other.upto);
        other.later.iter().for_each(|&(from, to)| self.add(from, to));
    }
}

/// What is known of one agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    agent: AgentId,
    /// Its own accesses, in program order.
    pub(super) steps: u64,
    /// Its transfers: those to memory of one PE, which is what fences and signals tell, or of all. Mostly one thing is known.
    transfers: SmallVec<[(Option<PeId>, What, Times); 1]>,
}

/// What is known of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Those of a lane have made their accesses.
    Over(Lane),
    /// A thread's fence puts them before whatever is issued by somebody who comes after the fence.
    Fenced,
}

/// Every signal copies clocks. The usual case, one kind of transfers, needs no loop.
impl Clone for Known {
    #[inline]
    fn clone(&self) -> Known {
        let transfers = match self.transfers.as_slice() {
            [] => SmallVec::new(),
            [(to, what, times)] => SmallVec::from_buf([(*to, *what, times.clone())]),
            many => {
                let mut transfers = SmallVec::with_capacity(many.len());
                many.iter().for_each(|known| transfers.push(known.clone()));
                transfers
            }
        };
        Known { agent: self.agent, steps: self.steps, transfers }
    }
}

impl Known {
    fn new(agent: AgentId) -> Known {
        Known { agent, steps: 0, transfers: SmallVec::new() }
    }

    /// What is known of transfers to whatever PE.
    pub(super) fn lane(&mut self, lane: Lane) -> &mut Times {
        self.of(None, What::Over(lane))
    }

    /// Which ones fences of threads put before what is issued now.
    pub(super) fn fenced(&mut self) -> &mut Times {
        self.of(None, What::Fenced)
    }

    /// What is known of transfers to memory of one PE.
    pub(super) fn to(&mut self, pe: PeId, lane: Lane) -> &mut Times {
        self.of(Some(pe), What::Over(lane))
    }

    #[inline]
    fn of(&mut self, to: Option<PeId>, what: What) -> &mut Times {
        let same = |(of, which, _): &(Option<PeId>, What, Times)| (*of, *which) == (to, what);
        let at = self.transfers.iter().position(same).unwrap_or_else(|| {
            self.transfers.push((to, what, Times::default()));
            self.transfers.len() - 1
        });
        &mut self.transfers[at].2
    }

    fn join(&mut self, other: &Known) {
        self.steps = self.steps.max(other.steps);
        for (to, what, times) in &other.transfers {
            if !self.covers(*to, *what, times) {
                self.of(*to, *what).join(times);
            }
        }
        if other.transfers.iter().any(|(to, ..)| to.is_none()) {
            self.prune();
        }
    }

    /// Whether these transfers are known by what is known of transfers to all PEs.
    fn covers(&self, to: Option<PeId>, what: What, times: &Times) -> bool {
        let upto = |what: What| {
            let of_all = self.transfers.iter().find(|(to, which, _)| to.is_none() && *which == what);
            of_all.map_or(0, |(.., times)| times.upto)
        };
        let is_read = what == What::Over(Lane::Reads) && times.last() <= upto(What::Over(Lane::Nbi)); // what has arrived was read
        is_read || to.is_some() && times.last() <= upto(what)
    }

    /// Forgets what need not be kept, because it is known of transfers to all PEs.
    pub(super) fn prune(&mut self) {
        let mut at = 0;
        while at < self.transfers.len() {
            let (to, what, ref times) = self.transfers[at];
            match self.transfers.len() > 1 && self.covers(to, what, times) {
                true => drop(self.transfers.swap_remove(at)),
                false => at += 1,
            }
        }
    }

    /// Whether it has an access of a lane to memory of a PE.
    fn has(&self, lane: Lane, time: u64, pe: PeId) -> bool {
        let has = |lane: Lane, to: Option<PeId>| {
            let known = |(of, which, times): &(Option<PeId>, What, Times)| {
                *which == What::Over(lane) && (of.is_none() || *of == to) && times.contains(time)
            };
            self.transfers.iter().any(known)
        };
        match lane {
            Lane::Steps | Lane::Arrived => time <= self.steps,
            Lane::Gets => has(Lane::Nbi, None),
            Lane::Reads => has(Lane::Reads, None) || has(Lane::Nbi, None),
            Lane::Puts | Lane::Nbi | Lane::Stores | Lane::Parts => has(lane, Some(pe)),
        }
    }
}

/// A clock that knows of so many is joined in one pass.
const MANY: usize = 8;

/// What somebody knows of everybody. Nothing is said of what came before the last moment that everybody knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// By agent. Mostly one has news of few.
    known: SmallVec<[Known; 2]>,
    /// Where the path to a PE's memory matters, by PE: what that PE knew when this one heard of it.
    through: Vec<(PeId, Clock)>,
}

/// A clock is copied to learn something. Mostly that is about somebody it knows of already, so a small one needs no memory of its own;
/// a large one has room for news.
impl Clone for Clock {
    fn clone(&self) -> Clock {
        let mut known = SmallVec::new();
        if self.known.spilled() {
            known.reserve_exact(self.known.len() + 2);
        }
        self.known.iter().for_each(|of| known.push(of.clone()));
        Clock { known, through: self.through.clone() }
    }
}

impl Clock {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What is known of an agent, to be added to.
    #[inline]
    pub(super) fn of(&mut self, agent: AgentId) -> &mut Known {
        let at = match self.known.binary_search_by_key(&agent, |known| known.agent) {
            Ok(at) => at,
            Err(at) => {
                self.known.insert(at, Known::new(agent));
                at
            }
        };
        &mut self.known[at]
    }

    #[inline]
    fn get(&self, agent: AgentId) -> Option<&Known> {
        match self.known.as_slice() {
            [] => None,
            [only] => Some(only).filter(|known| known.agent == agent),
            many => many.binary_search_by_key(&agent, |known| known.agent).ok().map(|at| &many[at]),
        }
    }

    /// The last own access of an agent that is known; 0 if none is.
    pub(super) fn steps(&self, agent: AgentId) -> u64 {
        self.get(agent).map_or(0, |known| known.steps)
    }

    /// All agents that are known, each with its last own access that is.
    pub(super) fn all_steps(&self) -> impl Iterator<Item = (AgentId, u64)> {
        self.known.iter().map(|known| (known.agent, known.steps))
    }

    /// Learns the own accesses of an agent up to a moment.
    pub(super) fn learn_steps(&mut self, agent: AgentId, time: u64) {
        let steps = &mut self.of(agent).steps;
        *steps = (*steps).max(time);
    }

    /// Learns transfers of an agent to memory of one PE.
    pub(super) fn learn_to(&mut self, agent: AgentId, lane: Lane, pe: PeId, times: &Times) {
        self.of(agent).to(pe, lane).join(times);
    }

    pub(super) fn join(&mut self, other: &Clock) {
        if self.known.is_empty() {
            self.known.clone_from(&other.known);
        } else if other.known.len() < MANY {
            other.known.iter().for_each(|known| self.of(known.agent).join(known));
        } else {
            self.join_many(&other.known);
        }
        other.through.iter().for_each(|(pe, clock)| self.hear(*pe, clock));
    }

    /// Both are in the order of agents: threads of a kernel know of hundreds.
    fn join_many(&mut self, others: &[Known]) {
        let (mut at, mut news) = (0, SmallVec::<[&Known; 2 * MANY]>::new());
        for known in others {
            at += self.known[at..].iter().take_while(|mine| mine.agent < known.agent).count();
            match self.known.get_mut(at) {
                Some(mine) if mine.agent == known.agent => mine.join(known),
                _ => news.push(known),
            }
        }
        if news.is_empty() {
            return;
        }
        let mine = std::mem::take(&mut self.known);
        self.known.reserve_exact(mine.len() + news.len());
        let mut news = news.into_iter().peekable();
        for known in mine {
            while let Some(new) = news.next_if(|new| new.agent < known.agent) {
                self.known.push(new.clone());
            }
            self.known.push(known);
        }
        self.known.extend(news.cloned());
    }

    /// Whether it knows of transfers that have arrived at a PE.
    fn has_arrivals(&self, pe: PeId) -> bool {
        self.known.iter().any(|known| known.transfers.iter().any(|known| is_arrival(known, pe)))
    }

    /// This clock without what it knows of arrivals at a PE. `None`: it knows of none.
    pub(super) fn without_arrivals(&self, pe: PeId) -> Option<Clock> {
        self.has_arrivals(pe).then(|| {
            let mut clock = self.clone();
            clock.known.iter_mut().for_each(|known| known.transfers.retain(|known| !is_arrival(known, pe)));
            clock
        })
    }

    /// Hears what a PE knows.
    pub(super) fn hear(&mut self, pe: PeId, theirs: &Clock) {
        let at = self.through.iter().position(|(of, _)| *of == pe).unwrap_or_else(|| {
            self.through.push((pe, Clock::default()));
            self.through.len() - 1
        });
        let heard = &mut self.through[at].1;
        theirs.known.iter().for_each(|known| heard.of(known.agent).join(known));
    }

    /// What a PE knew when this one heard of that PE.
    pub(super) fn through(&self, pe: PeId) -> Option<&Clock> {
        self.through.iter().find(|(of, _)| *of == pe).map(|(_, clock)| clock)
    }

    /// What fences of threads have put before whatever is issued now, by the agents that issued it.
    pub(super) fn fenced(&self) -> impl Iterator<Item = (AgentId, &Times)> {
        self.known.iter().flat_map(|known| {
            let fenced = known.transfers.iter().filter(|(_, what, _)| *what == What::Fenced);
            fenced.map(|(.., times)| (known.agent, times))
        })
    }

    /// Whether a fence of a thread puts a transfer of an agent before whatever is issued now.
    pub(super) fn has_fenced(&self, agent: AgentId, time: u64) -> bool {
        self.fenced().any(|(of, times)| of == agent && times.contains(time))
    }

    /// Whether this is known, for all PEs, of each of a block's threads up to a moment.
    pub(super) fn knows_all(
        &self,
        block: AgentId,
        what: What,
        mut threads: impl Iterator<Item = (AgentId, u64)>,
    ) -> bool {
        let has = |agent: AgentId, time: u64| {
            let is_it = |(to, which, times): &(Option<PeId>, What, Times)| {
                to.is_none() && *which == what && times.contains(time)
            };
            self.get(agent).is_some_and(|known| known.transfers.iter().any(is_it))
        };
        threads.all(|(agent, time)| has(block, time) || has(agent, time))
    }

    /// Says this of a block, up to a moment, in place of saying it of the threads that `forgets` names.
    pub(super) fn gather(&mut self, block: AgentId, what: What, upto: u64, forgets: impl Fn(AgentId) -> bool) {
        self.of(block).of(None, what).add(0, upto);
        self.known.retain(|known| {
            if !forgets(known.agent) {
                return true;
            }
            known.transfers.retain(|(to, which, _)| to.is_some() || *which != what);
            !known.transfers.is_empty()
        });
    }

    /// Says what is known of the own accesses of a block's threads up to a moment in one place.
    pub(super) fn gather_steps(&mut self, block: AgentId, upto: u64, is_of_block: impl Fn(AgentId) -> bool) {
        self.learn_steps(block, upto);
        self.known.retain(|known| !is_of_block(known.agent) || !known.transfers.is_empty());
    }

    /// Whether an access of a lane of an agent, to memory of a PE, is known.
    #[inline]
    pub(super) fn knows(&self, agent: AgentId, lane: Lane, time: u64, pe: PeId) -> bool {
        self.get(agent).is_some_and(|known| known.has(lane, time, pe))
    }
}

/// Whether transfers that are known have arrived at a PE.
fn is_arrival((to, what, _): &(Option<PeId>, What, Times), pe: PeId) -> bool {
    *to == Some(pe) && matches!(what, What::Over(Lane::Puts | Lane::Nbi | Lane::Parts))
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn times(parts: &[(u64, u64)]) -> Times {
        let mut times = Times::default();
        parts.iter().for_each(|&(from, to)| times.add(from, to));
        times
    }

    #[test]
    fn neighbouring_intervals_merge_and_join_the_prefix() {
        assert_eq!(times(&[(5, 7), (9, 11), (7, 9)]), Times { upto: 0, later: smallvec![(5, 11)] });
        assert_eq!(times(&[(5, 7), (0, 5)]), Times { upto: 7, later: smallvec![] });
        assert_eq!(times(&[(4, 9), (2, 5), (12, 13)]), Times { upto: 0, later: smallvec![(2, 9), (12, 13)] });
        assert_eq!(times(&[(3, 3)]), Times::default());
    }

    #[test]
    fn an_interval_has_its_end_and_not_its_start() {
        let some = times(&[(0, 2), (5, 7)]);
        assert_eq!(
            [1, 2, 3, 5, 6, 7, 8].map(|time| some.contains(time)),
            [true, true, false, false, true, true, false]
        );
    }

    #[test]
    fn moments_are_removed() {
        let mut some = times(&[(0, 10), (20, 30)]);
        some.remove(4, 6);
        some.remove(25, 40);
        assert_eq!(some, Times { upto: 4, later: smallvec![(6, 10), (20, 25)] });
    }

    #[test]
    fn a_large_clock_is_joined_as_its_parts_are() {
        let clock = |agents: &[u32], time: u64| {
            let mut clock = Clock::default();
            agents.iter().for_each(|&agent| clock.learn_steps(AgentId(agent), time + u64::from(agent % 3)));
            clock
        };
        let many: Vec<u32> = (0..40).filter(|agent| agent % 3 != 1).collect();
        for mine in [&[1][..], &[0, 5, 7, 39, 50], &[2, 3, 4, 30, 31, 32, 33, 34, 35, 36], &[60, 61]] {
            for times in [(5, 6), (6, 5)] {
                let (mut joined, mut one_by_one) = (clock(mine, times.0), clock(mine, times.0));
                let other = clock(&many, times.1);
                joined.join(&other);
                other.known.iter().for_each(|known| one_by_one.of(known.agent).join(known));
                assert_eq!(joined, one_by_one);
            }
        }
    }

    #[test]
    fn a_clock_knows_transfers_by_lane_and_target() {
        let (a, b) = (AgentId(0), AgentId(1));
        let mut clock = Clock::default();
        clock.learn_steps(a, 5);
        clock.learn_to(a, Lane::Puts, PeId(1), &times(&[(5, 6)]));
        clock.of(b).lane(Lane::Nbi).add(0, 9);
        assert!(clock.knows(a, Lane::Steps, 5, PeId(0)) && !clock.knows(a, Lane::Steps, 6, PeId(0)));
        assert!(clock.knows(a, Lane::Puts, 6, PeId(1)) && !clock.knows(a, Lane::Puts, 6, PeId(2)));
        assert!(clock.knows(b, Lane::Gets, 9, PeId(0)) && clock.knows(b, Lane::Reads, 9, PeId(0)));
        assert!(!clock.knows(b, Lane::Puts, 9, PeId(0)));
        let mut other = Clock::default();
        other.join(&clock);
        assert_eq!((other.steps(a), other.steps(b)), (5, 0));
    }
}
