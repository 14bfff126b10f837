//! What PTX's memory model allows a program of strong accesses, all in the scope of the system: every choice of what each read finds and of the
//! order of each word's writes that fits its axioms (PTX ISA, "Memory Consistency Model").

use std::collections::BTreeSet;

use super::program::{Program, Step, WORDS};

/// What the reads find.
pub(crate) type Found = Vec<u64>;

#[derive(Debug, Default)]
pub(crate) struct Allowed {
    /// All of it.
    pub(crate) all: BTreeSet<Found>,
    /// What some order of all accesses leads to that has each thread's in program order.
    sequential: BTreeSet<Found>,
    /// Whether other choices are allowed.
    pub(crate) others: bool,
    /// Whether such choices are allowed that some order of all accesses has, except that reads miss writes which come before them.
    pub(crate) may_miss: bool,
    /// What nothing but such choices leads to, without those in which an exchange misses a write.
    pub(crate) missed: BTreeSet<Found>,
}

/// Pairs of events: a bit for each that comes behind.
type Relation = Vec<u32>;

struct Event {
    thread: usize,
    step: Step,
}

struct Execution<'a> {
    events: &'a [Event],
    po: &'a Relation,
    /// Of each event that reads, the write that it reads; `None`: what was there in the beginning.
    reads: Vec<Option<usize>>,
    /// The writes of each word, in their order.
    writes: Vec<Vec<usize>>,
}

pub(crate) fn allowed(program: &Program) -> Allowed {
    let events: Vec<Event> = (program.threads.iter().enumerate())
        .flat_map(|(thread, steps)| steps.iter().map(move |&step| Event { thread, step }))
        .collect();
    let po = relation(events.len(), |a, b| a < b && events[a].thread == events[b].thread);
    let writes_to = |e: usize| events[e].step.writes_to();
    let of_word = |word| (0..events.len()).filter(|&e| writes_to(e) == Some(word)).collect::<Vec<usize>>();
    let mut allowed = Allowed::default();
    let all: Vec<Vec<Vec<usize>>> = (0..WORDS).map(|word| permutations(&of_word(word))).collect();
    for writes in product(&all) {
        let choices: Vec<Vec<Option<usize>>> = (events.iter())
            .map(|event| match event.step.reads() {
                None => vec![None],
                Some(word) => std::iter::once(None).chain(writes[word].iter().copied().map(Some)).collect(),
            })
            .collect();
        for reads in product(&choices) {
            Execution { events: &events, po: &po, reads, writes: writes.clone() }.note(&mut allowed);
        }
    }
    let Allowed { sequential, missed, .. } = &mut allowed;
    missed.retain(|found| !sequential.contains(found));
    allowed
}

impl Execution<'_> {
    /// Notes what it leads to, if the axioms allow it.
    fn note(&self, allowed: &mut Allowed) {
        let n = self.events.len();
        let place = |write: Option<usize>, word: usize| match write {
            None => 0,
            Some(write) => 1 + self.writes[word].iter().position(|&other| other == write).unwrap(),
        };
        let is_atomic = |e: usize| match (self.events[e].step.reads(), self.events[e].step.writes_to()) {
            (Some(word), Some(_)) => place(Some(e), word) == place(self.reads[e], word) + 1,
            _ => true,
        };
        if !(0..n).all(is_atomic) {
            return;
        }
        let words = |e: usize| self.events[e].step.word();
        let rf = relation(n, |a, b| self.reads[b] == Some(a));
        let co = relation(n, |a, b| {
            let of = |e: usize| self.events[e].step.writes_to();
            of(a).is_some() && of(a) == of(b) && place(Some(a), of(a).unwrap()) < place(Some(b), of(a).unwrap())
        });
        let fr = relation(n, |a, b| {
            let (read, write) = (self.events[a].step.reads(), self.events[b].step.writes_to());
            a != b
                && read.is_some()
                && read == write
                && place(self.reads[a], read.unwrap()) < place(Some(b), read.unwrap())
        });
        let communicates = join(&[&rf, &co, &fr]);
        let po_loc = relation(n, |a, b| has(self.po, a, b) && words(a).is_some() && words(a) == words(b));
        if !is_acyclic(&join(&[&po_loc, &communicates])) {
            return;
        }
        let fences: Vec<usize> = (0..n).filter(|&e| self.events[e].step == Step::Fence { sc: true }).collect();
        let fits = |order: Vec<usize>| self.fits(&order, [&rf, &co, &fr, &po_loc]);
        if !permutations(&fences).into_iter().any(fits) {
            return;
        }
        let found: Found =
            (0..n).filter(|&e| self.events[e].step.reads().is_some()).map(|e| self.value(self.reads[e])).collect();
        allowed.all.insert(found.clone());
        if is_acyclic(&join(&[self.po, &communicates])) {
            allowed.sequential.insert(found);
            return;
        }
        allowed.others = true;
        // an exchange that misses a write has written before that
        let of_stores = relation(n, |a, b| has(&co, a, b) && self.events[a].step.reads().is_none());
        allowed.may_miss |= is_acyclic(&join(&[self.po, &rf, &of_stores]));
        if is_acyclic(&join(&[self.po, &rf, &co])) {
            allowed.missed.insert(found);
        }
    }

    fn value(&self, write: Option<usize>) -> u64 {
        write.map_or(0, |write| self.events[write].step.value().unwrap())
    }

    /// Whether the execution fits this order of the sequential fences.
    fn fits(&self, fences: &[usize], [rf, co, fr, po_loc]: [&Relation; 4]) -> bool {
        let n = self.events.len();
        let step = |e: usize| self.events[e].step;
        let is_fence = |e: usize| matches!(step(e), Step::Fence { .. });
        // by a chain of atomics, each of which reads what the one before has written
        let rmw = |e: usize| step(e).reads().is_some() && step(e).writes_to().is_some();
        let through = closure(&relation(n, |a, b| has(rf, a, b) && rmw(a)));
        let observed =
            relation(n, |a, b| has(rf, a, b) || (0..n).any(|z| has(rf, a, z) && rmw(z) && has(&through, z, b)));
        // a release, or a fence, and then a strong write; a strong read, and then an acquire of the word or a fence
        let releases = |x: usize, w: usize| {
            step(w).writes_to().is_some()
                && (x == w && step(x).releases()
                    || has(po_loc, x, w) && step(x).releases()
                    || has(self.po, x, w) && is_fence(x))
        };
        let acquires = |r: usize, y: usize| {
            step(r).reads().is_some()
                && (r == y && step(y).acquires()
                    || has(po_loc, r, y) && step(y).acquires()
                    || has(self.po, r, y) && is_fence(y))
        };
        let position = |e: usize| fences.iter().position(|&fence| fence == e);
        let synchronizes = relation(n, |x, y| {
            let told = || (0..n).any(|w| releases(x, w) && (0..n).any(|r| has(&observed, w, r) && acquires(r, y)));
            position(x).is_some_and(|x| position(y).is_some_and(|y| x < y)) || told()
        });
        let or_same = |relation: &Relation, a: usize, b: usize| a == b || has(relation, a, b);
        let links = relation(n, |a, b| {
            (0..n).any(|x| or_same(self.po, a, x) && (0..n).any(|y| has(&synchronizes, x, y) && or_same(self.po, y, b)))
        });
        let base = closure(&links);
        let cause = relation(n, |a, b| {
            has(&base, a, b) || (0..n).any(|z| has(&observed, a, z) && (has(&base, z, b) || has(po_loc, z, b)))
        });
        let is_write = |e: usize| step(e).writes_to().is_some();
        let coherent = |a: usize, b: usize| {
            let same = is_write(a) && is_write(b) && step(a).word() == step(b).word();
            !(has(&cause, a, b) && same) || has(co, a, b)
        };
        let causal = |a: usize, b: usize| !(has(&cause, a, b) && (has(rf, b, a) || has(fr, b, a)));
        let in_order = |a: usize, b: usize| {
            !(has(&cause, a, b) && position(b).is_some_and(|b| position(a).is_some_and(|a| b < a)))
        };
        (0..n).all(|a| (0..n).all(|b| coherent(a, b) && causal(a, b) && in_order(a, b)))
    }
}

fn relation(n: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
    (0..n).map(|a| (0..n).filter(|&b| holds(a, b)).fold(0, |all, b| all | 1 << b)).collect()
}

fn has(relation: &Relation, a: usize, b: usize) -> bool {
    relation[a] >> b & 1 == 1
}

fn join(all: &[&Relation]) -> Relation {
    (0..all[0].len()).map(|a| all.iter().fold(0, |joined, one| joined | one[a])).collect()
}

fn closure(relation: &Relation) -> Relation {
    let mut all = relation.clone();
    for via in 0..all.len() {
        for a in 0..all.len() {
            if all[a] >> via & 1 == 1 {
                all[a] |= all[via];
            }
        }
    }
    all
}

fn is_acyclic(relation: &Relation) -> bool {
    let all = closure(relation);
    (0..all.len()).all(|a| all[a] >> a & 1 == 0)
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![vec![]];
    }
    let begins = |i: usize| {
        let mut rest = of.to_vec();
        let first = rest.remove(i);
        permutations(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..of.len()).flat_map(begins).collect()
}

/// Every way to choose one of each.
fn product<T: Clone>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    choices.iter().fold(vec![vec![]], |all, next| {
        all.iter().flat_map(|begun| next.iter().map(move |one| [begun.clone(), vec![one.clone()]].concat())).collect()
    })
}
