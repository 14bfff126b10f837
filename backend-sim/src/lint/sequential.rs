//! The order of a run's strong accesses, if each thread makes its own in program order: an access comes before another if its thread
//! made it earlier, if the other's thread knows of it, or if the other reads what it has written, or overwrites what it has read. PTX promises less than
//! that.
//!
//! Accesses are named by their agents and moments. Whatever comes behind an access comes behind the earlier ones of its agent, too, so
//! one moment for each agent is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use onesided_ptx::Scope;

use super::{By, Strong, key};
use crate::machine::{AgentId, Word};
use crate::race::Detector;

/// By agent, up to which moment.
pub(super) type Upto = BTreeMap<AgentId, u64>;

/// An access: its agent and its moment.
pub(super) type Access = (AgentId, u64);

/// The most entries that are kept between two moments that everybody knows, before no more is looked at. Some 700 threads reach it if each takes a ticket of
/// one word.
const MOST: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Sequential {
    /// Of each agent of a kernel, its accesses and sequential fences so far, and what comes before each.
    in_kernels: BTreeMap<AgentId, Vec<(u64, Rc<Upto>)>>,
    /// The same of hosts and streams, by their transfers.
    others: BTreeMap<AgentId, Vec<(u64, Rc<Upto>)>>,
    words: BTreeMap<Word, Accessed>,
    fences: BTreeMap<AgentId, Vec<Fence>>,
    /// Each agent's place in a [`Table`].
    places: BTreeMap<AgentId, usize>,
    kept: usize,
}

/// A sequential fence of an agent.
#[derive(Debug)]
struct Fence {
    time: u64,
    scope: Scope,
    /// What comes before it by synchronization, and the writes that its agent has read.
    known: Table,
    seen: Rc<BTreeSet<Access>>,
    /// What sequential fences put before it: all that comes so before earlier fences of others.
    ordered: Table,
    ordered_seen: BTreeSet<Access>,
}

/// By an agent's place, one more than up to which moment; 0: nothing. A fence comes behind those of all threads of a block, and joins what each of them knows.
#[derive(Clone, Debug, Default)]
struct Table(Vec<u64>);

impl Table {
    fn get(&self, place: usize) -> Option<u64> {
        self.0.get(place).and_then(|upto| upto.checked_sub(1))
    }

    fn len(&self) -> usize {
        self.0.iter().filter(|upto| **upto > 0).count()
    }

    fn join(&mut self, other: &Table) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(upto, other)| *upto = (*upto).max(*other));
    }
}

/// What comes before a word's next accesses. Nobody sees the order of two writes but by what is read.
#[derive(Debug, Default)]
struct Accessed {
    /// Before reads: the writes of which the value is made, and what comes before them.
    writes: Upto,
    /// Before writes: the last read of each agent, when it was made, and what comes before that. libcu++ looks some twenty times before its loop that
    /// waits: whoever looks again has looked in vain.
    reads: BTreeMap<AgentId, (u64, Rc<Upto>)>,
}

impl Sequential {
    /// What comes before an access to be made, besides accesses of its word.
    pub(super) fn before(&self, by: &By<'_>, races: &Detector) -> Upto {
        let me = by.agent();
        self.behind((me, by.time()), races.is_in_kernel(me), |of| by.steps_known(of, races))
    }

    /// What comes before an agent's access at a moment, or its fence there. `known`: up to when it knows others.
    fn behind(&self, (me, now): Access, in_kernel: bool, known: impl Fn(AgentId) -> u64) -> Upto {
        let mut before = Upto::new();
        let mut add = |agent: AgentId, upto: u64, all: &Vec<(u64, Rc<Upto>)>| {
            if let Some((time, earlier)) = last(all, |(time, _)| *time <= upto) {
                come_behind(&mut before, (agent, *time), earlier);
            }
        };
        let own = self.in_kernels.get(&me).or_else(|| self.others.get(&me));
        own.into_iter().for_each(|own| add(me, now, own)); // mostly, it is behind all that the others are behind
        for (&agent, all) in self.in_kernels.iter().filter(|(agent, _)| **agent != me) {
            add(agent, known(agent), all);
        }
        // hosts and streams are many, and know of each other by synchronization alone
        for (&agent, all) in self.others.iter().filter(|_| in_kernel) {
            add(agent, known(agent), all);
        }
        before
    }

    /// An access is made, behind these others and those of its word, but for the last writes if it misses them.
    pub(super) fn made(&mut self, access: &Strong<'_>, mut before: Upto, misses: bool, races: &Detector) {
        let Strong { by, place, reads, writes, replaces, waits, .. } = *access;
        let (agent, time) = (by.agent(), by.time());
        let word = self.words.entry(key(place.0, place.1)).or_default();
        if reads && !misses {
            join(&mut before, &word.writes);
        }
        if writes {
            word.reads.iter().for_each(|(&agent, (time, earlier))| come_behind(&mut before, (agent, *time), earlier));
        }
        let all = if races.is_in_kernel(agent) { &mut self.in_kernels } else { &mut self.others };
        let before = keep(all.entry(agent).or_default(), &mut self.kept, time, before);
        if writes {
            if replaces {
                word.writes.clear();
            }
            join(&mut word.writes, &before);
            join_one(&mut word.writes, (agent, time));
        }
        if waits {
            word.reads.remove(&agent); // a look of a loop may come later, and so does its loop
        } else if reads {
            word.reads.insert(agent, (time, before));
        }
    }

    /// An agent comes to a sequential fence. `seen`: writes that it has read.
    pub(super) fn fences(&mut self, agent: AgentId, scope: Scope, seen: Rc<BTreeSet<Access>>, races: &mut Detector) {
        let time = races.moment_of_its_own();
        let before = self.behind((agent, time), true, |of| races.steps_known(agent, of));
        let mut known = Table::default();
        for &of in self.in_kernels.keys().chain(self.others.keys()) {
            let next = self.places.len();
            let place = *self.places.entry(of).or_insert(next);
            known.0.resize(self.places.len(), 0);
            known.0[place] = races.steps_known(agent, of) + 1;
        }
        let own = self.fences.entry(agent).or_default().last();
        let (mut ordered, mut ordered_seen) =
            own.map(|fence| (fence.ordered.clone(), fence.ordered_seen.clone())).unwrap_or_default();
        for (&of, &upto) in before.iter().filter(|(of, _)| **of != agent) {
            let least = races.scope_of_both(of, agent);
            let fits = |fence: &&Fence| fence.time <= upto && fence.scope >= least;
            let earlier = self.fences.get(&of).and_then(|fences| fences.iter().rev().find(fits));
            if let Some(earlier) = earlier.filter(|_| scope >= least) {
                ordered.join(&earlier.known);
                ordered.join(&earlier.ordered);
                ordered_seen.extend(earlier.seen.iter().chain(&earlier.ordered_seen));
            }
        }
        self.kept += known.len() + ordered.len() + ordered_seen.len();
        keep(self.in_kernels.entry(agent).or_default(), &mut self.kept, time, before);
        let fence = Fence { time, scope, known, seen, ordered, ordered_seen };
        self.fences.entry(agent).or_default().push(fence);
    }

    /// Whether sequential fences put a write before what an agent does now: one behind the write, and another thread's later one before this.
    pub(super) fn are_fenced(&self, write: Access, reader: AgentId, races: &Detector) -> bool {
        self.fences.iter().any(|(&agent, fences)| {
            let upto = if agent == reader { u64::MAX } else { races.steps_known(reader, agent) };
            let last = last(fences, |fence| fence.time <= upto);
            last.is_some_and(|last| self.is_in(&last.ordered, write) || last.ordered_seen.contains(&write))
        })
    }

    /// Whether a load that misses a write would put sequential fences in an order that is not known yet: one that the reader comes after
    /// before one that comes after the write.
    pub(super) fn would_order_fences(&self, write: Access, reader: AgentId, races: &Detector) -> bool {
        let known = |agent| if agent == reader { u64::MAX } else { races.steps_known(reader, agent) };
        self.fences.iter().any(|(&one, fences)| {
            let Some(before) = last(fences, |fence| fence.time <= known(one)) else { return false };
            self.fences.iter().filter(|(other, _)| **other != one).any(|(&other, fences)| {
                let least = races.scope_of_both(one, other);
                let is_behind_write = |fence: &&Fence| {
                    fence.scope >= least && (self.is_in(&fence.known, write) || fence.seen.contains(&write))
                };
                let upto = self.places.get(&one).and_then(|&place| before.known.get(place));
                let is_ordered = |fence: &Fence| upto.is_some_and(|upto| self.is_in(&fence.ordered, (one, upto)));
                before.scope >= least && fences.iter().find(is_behind_write).is_some_and(|fence| !is_ordered(fence))
            })
        })
    }

    /// Whether what comes behind all of a table comes behind an access.
    fn is_in(&self, table: &Table, (agent, time): Access) -> bool {
        self.places.get(&agent).and_then(|&place| table.get(place)).is_some_and(|upto| upto >= time)
    }

    /// Whether so much is kept that no more is.
    pub(super) fn is_full(&self) -> bool {
        self.kept > MOST
    }
}

/// Keeps an access among those of its agent, and what comes before it: often the same as before the last one.
fn keep(accesses: &mut Vec<(u64, Rc<Upto>)>, kept: &mut usize, time: u64, before: Upto) -> Rc<Upto> {
    let at = accesses.partition_point(|(other, _)| *other < time);
    let before = match at.checked_sub(1).map(|at| &accesses[at].1) {
        Some(same) if **same == before => Rc::clone(same),
        _ => {
            *kept += before.len();
            Rc::new(before)
        }
    };
    *kept += 1;
    accesses.insert(at, (time, Rc::clone(&before)));
    before
}

/// The last of those that come first.
fn last<T>(of: &[T], comes_first: impl Fn(&T) -> bool) -> Option<&T> {
    of.partition_point(comes_first).checked_sub(1).map(|at| &of[at])
}

/// Whether what comes behind all this comes behind an access.
pub(super) fn is_behind(before: &Upto, (agent, time): Access) -> bool {
    before.get(&agent).is_some_and(|upto| *upto >= time)
}

/// An access comes behind another one, and what comes before that.
fn come_behind(before: &mut Upto, access: Access, earlier: &Upto) {
    if !is_behind(before, access) {
        join(before, earlier);
        join_one(before, access);
    }
}

fn join(into: &mut Upto, other: &Upto) {
    other.iter().for_each(|(agent, upto)| join_one(into, (*agent, *upto)));
}

fn join_one(into: &mut Upto, (agent, upto): Access) {
    let known = into.entry(agent).or_insert(upto);
    *known = upto.max(*known);
}
