//! The order of a run's strong accesses, if each thread makes its own in program order: an access comes before another if its thread
//! made it earlier, if the other's thread knows of it, or if the other reads what it has written, or overwrites what it has read. PTX promises less than
//! that.
//!
//! Accesses are named by their agents and moments. Whatever comes behind an access comes behind the earlier ones of its agent, too, so
//! one moment for each agent is enough.

use std::collections::BTreeMap;
use std::rc::Rc;

use onesided_ptx::Scope;

use super::{By, Strong, key};
use crate::machine::{AgentId, Word};
use crate::race::Detector;

/// By agent, up to which moment.
pub(super) type Upto = BTreeMap<AgentId, u64>;

/// The most entries that are kept between two moments that everybody knows: some 15 MiB. What comes behind that is not looked at.
const MOST: usize = 1 << 18;

/// The scopes that fences need at least between threads of one PE, and of two.
const LEAST: [Scope; 2] = [Scope::Gpu, Scope::Sys];

#[derive(Debug, Default)]
pub(super) struct Sequential {
    /// Of each agent of a kernel, its accesses so far, and what comes before each. What others do is ordered by what they know.
    accesses: BTreeMap<AgentId, Vec<(u64, Rc<Upto>)>>,
    words: BTreeMap<Word, Accessed>,
    fences: BTreeMap<AgentId, Vec<Fence>>,
    kept: usize,
}

/// A sequential fence of an agent.
#[derive(Debug)]
struct Fence {
    /// The last moment before it.
    time: u64,
    scope: Scope,
    /// What comes before it by synchronization, and writes that its agent has read.
    known: Upto,
    /// What comes so before sequential fences of others that come before this one: for fences of a GPU's scope at least, and of the system's.
    ordered: [Upto; 2],
}

/// What comes before a word's next accesses. Nobody sees the order of two writes but by what is read.
#[derive(Debug, Default)]
struct Accessed {
    /// Before reads: what has written the value, and updates that commute.
    writes: Upto,
    /// Before writes: the last read of each agent, when it was made, and what comes before that. A thread that reads again mostly did so in vain before.
    reads: BTreeMap<AgentId, (u64, Rc<Upto>)>,
}

impl Sequential {
    /// What comes before an access to be made, besides accesses of its word.
    pub(super) fn before(&self, by: &By<'_>, races: &Detector) -> Upto {
        self.behind((by.agent(), by.time()), |of| by.steps_known(of, races))
    }

    /// What comes before an agent's access at a moment, or its fence there. `known`: up to when it knows others.
    fn behind(&self, (me, now): (AgentId, u64), known: impl Fn(AgentId) -> u64) -> Upto {
        let mut before = Upto::new();
        let mut add = |agent: AgentId, upto: u64| {
            let last =
                self.accesses.get(&agent).and_then(|all| Some(&all[index_of_last(all, |(time, _)| *time <= upto)?]));
            if let Some((time, earlier)) = last {
                come_behind(&mut before, (agent, *time), earlier);
            }
        };
        add(me, now); // mostly, it is behind all that the others are behind
        for &agent in self.accesses.keys().filter(|agent| **agent != me) {
            add(agent, known(agent));
        }
        before
    }

    /// An access is made, behind these others and those of its word.
    pub(super) fn made(&mut self, access: &Strong<'_>, mut before: Upto, races: &Detector) {
        let Strong { by, place, reads, writes, commutes, waits, .. } = *access;
        let (agent, time) = (by.agent(), by.time());
        let word = self.words.entry(key(place.0, place.1)).or_default();
        if reads {
            join(&mut before, &word.writes);
        }
        if writes {
            word.reads.iter().for_each(|(&agent, (time, earlier))| come_behind(&mut before, (agent, *time), earlier));
        }
        self.kept += 1;
        let before = match races.is_in_kernel(agent) {
            true => keep(self.accesses.entry(agent).or_default(), &mut self.kept, time, before),
            false => Rc::new(before),
        };
        if writes {
            if !commutes {
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

    /// An agent comes to a sequential fence of a GPU's scope, or of the system's. `seen`: writes that it has read.
    pub(super) fn fences(&mut self, agent: AgentId, scope: Scope, seen: Option<&Upto>, races: &Detector) {
        if self.is_full() {
            return;
        }
        let time = races.now();
        let before = self.behind((agent, time), |of| races.steps_known(agent, of));
        let mut ordered = [Upto::new(), Upto::new()];
        for (of, upto) in before.iter().filter(|(of, _)| **of != agent) {
            let Some(fences) = self.fences.get(of) else { continue };
            for (ordered, least) in ordered.iter_mut().zip(LEAST).filter(|(_, least)| scope >= *least) {
                let earlier = |fence: &Fence| fence.time < *upto;
                let wide = fences.iter().rev().find(|fence| earlier(fence) && fence.scope >= least);
                wide.into_iter().for_each(|fence| join(ordered, &fence.known));
            }
        }
        let mut known: Upto = self.accesses.keys().map(|&of| (of, races.steps_known(agent, of))).collect();
        seen.into_iter().for_each(|seen| join(&mut known, seen));
        self.kept += known.len() + ordered.iter().map(Upto::len).sum::<usize>();
        self.fences.entry(agent).or_default().push(Fence { time, scope, known, ordered });
    }

    /// Whether sequential fences put a write before an access: one behind the write, and another thread's before the access, and that one comes later.
    pub(super) fn are_fenced(&self, (writer, time): (AgentId, u64), reader: AgentId, races: &Detector) -> bool {
        let level = if races.are_of_one_pe(writer, reader) { 0 } else { 1 };
        self.fences.iter().any(|(&agent, fences)| {
            let upto = if agent == reader { u64::MAX } else { races.steps_known(reader, agent) };
            let last = index_of_last(fences, |fence| fence.time < upto);
            last.is_some_and(|last| {
                fences[..=last].iter().any(|fence| is_behind(&fence.ordered[level], (writer, time)))
            })
        })
    }

    /// Whether kernels have accessed anything strongly.
    pub(super) fn is_empty(&self) -> bool {
        self.accesses.is_empty()
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
    accesses.insert(at, (time, Rc::clone(&before)));
    before
}

/// The last of those that come first.
fn index_of_last<T>(of: &[T], comes_first: impl Fn(&T) -> bool) -> Option<usize> {
    of.partition_point(comes_first).checked_sub(1)
}

/// Whether what comes behind all this comes behind an access.
pub(super) fn is_behind(before: &Upto, (agent, time): (AgentId, u64)) -> bool {
    before.get(&agent).is_some_and(|upto| *upto >= time)
}

/// An access comes behind another one, and what comes before that.
fn come_behind(before: &mut Upto, access: (AgentId, u64), earlier: &Upto) {
    if !is_behind(before, access) {
        join(before, earlier);
        join_one(before, access);
    }
}

fn join(into: &mut Upto, other: &Upto) {
    other.iter().for_each(|(agent, upto)| join_one(into, (*agent, *upto)));
}

fn join_one(into: &mut Upto, (agent, upto): (AgentId, u64)) {
    let known = into.entry(agent).or_insert(upto);
    *known = upto.max(*known);
}
