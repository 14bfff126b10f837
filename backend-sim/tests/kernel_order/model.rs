//! What such programs can show, and whether they race: all orders of all steps, and for each what PTX's causality order says.
//!
//! An access is a bit. Whoever comes after accesses holds a set of them. A store is two accesses: its PE's threads come
//! after the store, and others after its arrival, which a fence or a release of the system's scope, or a quiet, tells. A strong one is seen there
//! when it arrives, which may be behind later steps of its thread, and so is an addition that fetches nothing. Two accesses
//! race that conflict, where the later does not come after the earlier, unless both are strong and the scope of each has the other's thread.

use std::collections::{BTreeMap, BTreeSet};

use onesided_sim::{Promises, Quiet};

use super::access::{Access, all_accesses, bit, home};
use super::past::{Past, Place, Told, join};
use super::program::{BLOCKS, PES, Program, Role, SIGNAL, Scope, WORDS};

/// What all orders show.
#[derive(Default)]
pub(crate) struct Allowed {
    /// The words in the end, with the signal, and what each thread has noted, PE by PE; `None`: a deadlock. Of orders without a race.
    pub(crate) outcomes: BTreeSet<Option<Vec<Vec<u64>>>>,
    pub(crate) racy: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    /// Of each PE, and then the shared memory of each block. A PE's last word is its signal.
    pub(super) memory: Vec<[u64; WORDS + 1]>,
    /// What each PE's host comes after when it launches the kernel.
    pub(super) launches: Vec<Past>,
    /// Accesses that were made.
    pub(super) made: u128,
    /// Of puts to the thread's own PE and, `true`, of sources of puts, by thread and step: the accesses before them to the same place.
    pub(super) under_puts: Vec<((usize, usize), bool, u128)>,
    /// Threads, hosts and streams.
    pub(super) threads: Vec<Thread>,
    /// What fences before a block's last barrier tell.
    pub(super) met: Vec<Told>,
    /// What those had done, and fenced, who have arrived at a block's other barrier.
    pub(super) arrived: Vec<(Past, Told)>,
    /// What words tell.
    pub(super) told: BTreeMap<(usize, usize), Told>,
    /// What signals tell each PE's waits, and its loads: these do not show what transfers have brought.
    pub(super) signalled: Vec<[Past; 2]>,
    /// Of each issue scope.
    pub(super) fences: Vec<u8>,
    /// What fences of a scope put before what it issues later to each PE, if they are about the whole scope.
    pub(super) fenced: Vec<[Past; PES]>,
    pub(super) flying: Vec<Flying>,
}

#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thread {
    pub(super) done: usize,
    pub(super) at_barrier: bool,
    pub(super) has_arrived: bool,
    pub(super) noted: u64,
    pub(super) past: Past,
    /// What its fences tell.
    pub(super) fenced: Told,
    /// What it has read, and a fence of this scope will acquire.
    pub(super) pending: Vec<(Scope, Past)>,
    /// Accesses that came before what it has stored to the same place: its loads see its own store, or what is newer.
    pub(super) overwritten: u128,
    /// What came before its last transfer to each PE.
    pub(super) sent: [Option<Past>; PES],
}

/// A signal or a strong write to another PE, on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flying {
    /// The issue scope, as a number.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Its step.
    pub(super) bit: u128,
    /// What NVSHMEM's fences put before it.
    pub(super) fenced: u128,
    pub(super) fences: u8,
    pub(super) covered: Option<u8>,
    pub(super) what: What,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// `seen`: the same as `past`, without what is known to arrive before it because of fences.
    Signal { past: Past, seen: Past },
    /// `told`: what its word tells from then on; `adds`: besides what it told before.
    Write { word: usize, value: u64, adds: bool, told: Told },
}

impl State {
    /// The steps of what is on its way from an issue scope.
    pub(super) fn on_its_way(&self, from: usize) -> u128 {
        self.flying.iter().filter(|flying| flying.from == from).fold(0, |all, flying| all | flying.bit)
    }

    /// The steps of strong writes that have not arrived: at one place, or anywhere.
    pub(super) fn writes_on_their_way(&self, at: Option<(usize, usize)>) -> u128 {
        let stores = self.flying.iter().filter(|flying| match flying.what {
            What::Signal { .. } => false,
            What::Write { word, .. } => at.is_none_or(|at| at == (flying.to, word)),
        });
        stores.fold(0, |all, flying| all | flying.bit)
    }
}

/// What is allowed; `None` when there are more than `limit` states.
pub(crate) fn allowed(program: &Program, quiet: Quiet, promises: &Promises, limit: usize) -> Option<Allowed> {
    let mut allowed = Allowed::default();
    let start = State {
        memory: vec![[0; WORDS + 1]; PES + PES * BLOCKS],
        launches: vec![Past::default(); PES],
        made: 0,
        under_puts: Vec::new(),
        threads: vec![Thread::default(); program.steps.len()],
        met: vec![Told::new(); PES * BLOCKS],
        arrived: vec![Default::default(); PES * BLOCKS],
        told: BTreeMap::new(),
        signalled: vec![[Past::default(); 2]; PES],
        fences: vec![0; SCOPES],
        fenced: vec![[Past::default(); PES]; SCOPES],
        flying: Vec::new(),
    };
    let model = Model { program, accesses: all_accesses(program, promises), quiet, promises };
    let (mut visited, mut to_visit) = (BTreeSet::from([start.clone()]), vec![start]);
    while let Some(state) = to_visit.pop() {
        let mut moves = false;
        for next in model.next(&state, &mut allowed.racy) {
            moves |= !next.1;
            if visited.insert(next.0.clone()) {
                to_visit.push(next.0);
            }
        }
        if !moves {
            allowed.outcomes.insert(model.end(&state));
        }
        if visited.len() > limit {
            return None;
        }
    }
    Some(allowed)
}

/// Issue scopes: each PE has one for its threads, one for its host, and one for its stream.
const SCOPES: usize = 3 * PES;

/// An issue scope as a number.
pub(super) fn number((pe, role): (usize, Role)) -> usize {
    3 * pe + role as usize
}

pub(super) struct Model<'a> {
    pub(super) program: &'a Program,
    /// What each step of each agent accesses.
    pub(super) accesses: Vec<Vec<Vec<Access>>>,
    pub(super) promises: &'a Promises,
    /// Whether quiets and fences are about the PE: what it has issued at any time before, whether or not the thread comes after that.
    pub(super) quiet: Quiet,
}

impl Model<'_> {
    pub(super) fn end(&self, state: &State) -> Option<Vec<Vec<u64>>> {
        let program = self.program;
        let finished = state.threads.iter().zip(&program.steps).all(|(thread, steps)| thread.done == steps.len());
        let words = |pe: usize| {
            let host = program.has_hosts().then(|| program.host(pe));
            let noted = program.threads_of(pe).chain(host).map(|agent| state.threads[agent].noted);
            state.memory[pe].into_iter().chain(noted).collect()
        };
        finished.then(|| (0..PES).map(words).collect())
    }

    /// Every state that one step leads to, and whether that is a look in vain. A step that races leads nowhere: what follows is no matter.
    pub(super) fn next(&self, state: &State, racy: &mut bool) -> Vec<(State, bool)> {
        let mut next = Vec::new();
        for thread in 0..self.program.steps.len() {
            match self.step(state, thread) {
                Some(Ok(step)) => next.push(step),
                Some(Err(Race)) => *racy = true,
                None => {}
            }
        }
        next.extend((0..PES * BLOCKS).filter_map(|block| self.meet(state, block)).map(|state| (state, false)));
        for index in 0..state.flying.len() {
            let flying = &state.flying[index];
            if state.flying.iter().any(|other| self.precedes(other, flying)) {
                continue;
            }
            let mut state = state.clone();
            let Flying { to, what, .. } = state.flying.remove(index);
            match what {
                What::Signal { past, seen } => {
                    state.memory[to][SIGNAL] += 1;
                    let [waits, loads] = &mut state.signalled[to];
                    waits.join(past);
                    loads.join(seen);
                }
                What::Write { word, value, adds: true, told } => {
                    state.memory[to][word] += value;
                    join(state.told.entry((to, word)).or_default(), &told);
                }
                What::Write { word, value, adds: false, told } => {
                    state.memory[to][word] = value;
                    state.told.insert((to, word), told);
                }
            }
            next.push((state, false));
        }
        next
    }

    /// Whether NVSHMEM's fences put something before something else that is on its way to the same PE.
    fn precedes(&self, other: &Flying, later: &Flying) -> bool {
        (other.from, other.to) == (later.from, later.to)
            && match self.quiet {
                Quiet::Pe => other.covered.is_some_and(|fence| fence <= later.fences),
                Quiet::Thread => later.fenced & other.bit != 0,
            }
    }

    pub(super) fn meet(&self, state: &State, block: usize) -> Option<State> {
        let of_block = self.program.threads / PES / BLOCKS;
        let threads = || block * of_block..(block + 1) * of_block;
        let is_left = |thread: &usize| state.threads[*thread].done < self.program.steps[*thread].len();
        threads().find(is_left)?;
        if !threads().filter(is_left).all(|thread| state.threads[thread].at_barrier) {
            return None;
        }
        let mut state = state.clone();
        let mut past = Past::default();
        let met: Vec<usize> = threads().filter(|&thread| state.threads[thread].at_barrier).collect();
        for thread in threads() {
            // who has ended has met the others: the barrier waited for that
            past.join(self.past_and_own(&state, thread));
            let fenced = std::mem::take(&mut state.threads[thread].fenced);
            join(&mut state.met[block], &fenced);
        }
        for thread in met {
            let thread = &mut state.threads[thread];
            thread.at_barrier = false;
            thread.done += 1;
            thread.past.join(past);
        }
        Some(state)
    }

    /// What comes before whatever a thread does next.
    pub(super) fn past_and_own(&self, state: &State, thread: usize) -> Past {
        let Thread { past, done, .. } = state.threads[thread];
        let own = (0..done).fold(0, |all, step| all | bit(thread, step, false) | bit(thread, step, true));
        Past { steps: past.steps | own & state.made, ..past }
    }

    /// Where the memory is that a thread means.
    pub(super) fn home(&self, thread: usize, of: usize) -> usize {
        home(of, self.program.place(thread))
    }

    pub(super) fn pe(&self, thread: usize) -> usize {
        self.program.place(thread).0
    }

    /// The scope that an agent issues into.
    pub(super) fn scope(&self, agent: usize) -> (usize, Role) {
        (self.pe(agent), self.program.role(agent))
    }

    pub(super) fn tells(&self, thread: usize, place: Place) -> bool {
        let (pe, block) = self.program.place(thread);
        match place {
            Place::Block(of) => of == block,
            Place::Gpu(of) => of == pe,
            Place::All => true,
        }
    }

    pub(super) fn places(&self, thread: usize) -> [Place; 3] {
        let (pe, block) = self.program.place(thread);
        [Place::Block(block), Place::Gpu(pe), Place::All]
    }
}

/// The step would race.
pub(super) struct Race;
