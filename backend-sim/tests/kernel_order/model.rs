//! What such kernels can show, and whether they race: all orders of all steps, and for each what PTX's causality order says.
//!
//! An access is a bit. Whoever comes after accesses holds a set of them. A weak store to another PE is two accesses: its PE's threads come
//! after the store, and others after its arrival, which a fence or a release of the system's scope, or a quiet, tells. Two accesses
//! race that conflict, where the later does not come after the earlier, unless both are strong and the scope of each has the other's thread.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{BLOCKS, Order, PES, Program, Scope, Step, WORDS, place};

/// What all orders show.
#[derive(Default)]
pub(crate) struct Allowed {
    /// The words in the end, with the signal, and what each thread has noted, PE by PE; `None`: a deadlock. Of orders without a race.
    pub(crate) outcomes: BTreeSet<Option<Vec<Vec<u64>>>>,
    pub(crate) racy: bool,
}

/// What somebody comes after.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Past {
    steps: u64,
    /// Stores to other PEs that have arrived.
    arrived: u64,
    /// Stores that NVSHMEM's fences put before what is issued to the same PE.
    fenced: u64,
}

impl Past {
    fn join(&mut self, other: Past) {
        self.steps |= other.steps;
        self.arrived |= other.arrived;
        self.fenced |= other.fenced;
    }
}

/// Whom a word, or a fence, tells something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Block(usize),
    Gpu(usize),
    All,
}

impl Place {
    /// The scope that one at this place needs to be told.
    fn scope(self) -> Scope {
        match self {
            Place::Block(_) => Scope::Cta,
            Place::Gpu(_) => Scope::Gpu,
            Place::All => Scope::Sys,
        }
    }
}

type Told = BTreeMap<Place, Past>;

fn join(one: &mut Told, other: &Told) {
    other.iter().for_each(|(&place, &past)| one.entry(place).or_default().join(past));
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    memory: Vec<[u64; WORDS]>,
    signals: Vec<u64>,
    /// Accesses that were made.
    made: u64,
    threads: Vec<Thread>,
    /// What fences before a block's last barrier tell.
    met: Vec<Told>,
    /// What words tell.
    told: BTreeMap<(usize, usize), Told>,
    signalled: Vec<Past>,
    fences: Vec<u8>,
    flying: Vec<Signal>,
}

#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    done: usize,
    at_barrier: bool,
    noted: u64,
    past: Past,
    /// What its fences tell.
    fenced: Told,
    /// What it has read, and a fence of this scope will acquire.
    pending: Vec<(Scope, Past)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Signal {
    from: usize,
    to: usize,
    past: Past,
    fences: u8,
    covered: Option<u8>,
}

/// What is allowed; `None` when there are more than `limit` states.
pub(crate) fn allowed(program: &Program, limit: usize) -> Option<Allowed> {
    let mut allowed = Allowed::default();
    let start = State {
        memory: vec![[0; WORDS]; PES],
        signals: vec![0; PES],
        made: 0,
        threads: vec![Thread::default(); program.len()],
        met: vec![Told::new(); PES * BLOCKS],
        told: BTreeMap::new(),
        signalled: vec![Past::default(); PES],
        fences: vec![0; PES],
        flying: Vec::new(),
    };
    let model = Model { program };
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

struct Model<'a> {
    program: &'a Program,
}

/// The bit of a thread's step.
fn bit(thread: usize, step: usize) -> u64 {
    1 << (8 * thread + step)
}

impl Model<'_> {
    fn end(&self, state: &State) -> Option<Vec<Vec<u64>>> {
        let of_pe = self.program.len() / PES;
        let finished = state.threads.iter().zip(self.program).all(|(thread, steps)| thread.done == steps.len());
        let words = |pe: usize| {
            let noted = state.threads[pe * of_pe..(pe + 1) * of_pe].iter().map(|thread| thread.noted);
            state.memory[pe].into_iter().chain([state.signals[pe]]).chain(noted).collect()
        };
        finished.then(|| (0..PES).map(words).collect())
    }

    /// Every state that one step leads to, and whether that is a look in vain. A step that races leads nowhere: what follows is no matter.
    fn next(&self, state: &State, racy: &mut bool) -> Vec<(State, bool)> {
        let mut next = Vec::new();
        for thread in 0..self.program.len() {
            match self.step(state, thread) {
                Some(Ok(step)) => next.push(step),
                Some(Err(Race)) => *racy = true,
                None => {}
            }
        }
        next.extend((0..PES * BLOCKS).filter_map(|block| self.meet(state, block)).map(|state| (state, false)));
        for index in 0..state.flying.len() {
            let signal = state.flying[index];
            let ahead = |other: &&Signal| (other.from, other.to) == (signal.from, signal.to);
            let mut ahead = state.flying.iter().filter(ahead);
            if !ahead.any(|other| other.covered.is_some_and(|fence| fence <= signal.fences)) {
                let mut state = state.clone();
                state.flying.remove(index);
                state.signals[signal.to] += 1;
                state.signalled[signal.to].join(signal.past);
                next.push((state, false));
            }
        }
        next
    }

    fn meet(&self, state: &State, block: usize) -> Option<State> {
        let of_block = self.program.len() / PES / BLOCKS;
        let threads = || block * of_block..(block + 1) * of_block;
        let is_left = |thread: &usize| state.threads[*thread].done < self.program[*thread].len();
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
    fn past_and_own(&self, state: &State, thread: usize) -> Past {
        let Thread { past, done, .. } = state.threads[thread];
        let own = (0..done).map(|step| bit(thread, step)).fold(0, |all, bit| all | bit);
        Past { steps: past.steps | own & state.made, ..past }
    }

    /// The weak stores of a PE's threads to other PEs, and those to one of them.
    fn stores(&self, pe: usize, to: Option<usize>) -> u64 {
        let mut stores = 0;
        for (thread, steps) in self.program.iter().enumerate().filter(|(thread, _)| self.pe(*thread) == pe) {
            for (i, step) in steps.iter().enumerate() {
                if matches!(*step, Step::Write { of, order: Order::Weak, .. } if of != pe && to.is_none_or(|to| to == of))
                {
                    stores |= bit(thread, i);
                }
            }
        }
        stores
    }

    fn pe(&self, thread: usize) -> usize {
        place(self.program, thread).0
    }

    fn tells(&self, thread: usize, place: Place) -> bool {
        let (pe, block) = super::program::place(self.program, thread);
        match place {
            Place::Block(of) => of == block,
            Place::Gpu(of) => of == pe,
            Place::All => true,
        }
    }

    fn places(&self, thread: usize) -> [Place; 3] {
        let (pe, block) = place(self.program, thread);
        [Place::Block(block), Place::Gpu(pe), Place::All]
    }

    /// Whether an access races with one that was made.
    fn races(&self, state: &State, (thread, step): (usize, usize), past: Past) -> bool {
        let Some((spot, writes, order)) = access(&self.program[thread][step]) else { return false };
        let mut made = self
            .program
            .iter()
            .enumerate()
            .flat_map(|(other, steps)| steps.iter().enumerate().map(move |(i, step)| ((other, i), access(step))));
        made.any(|((other, i), earlier)| {
            let Some((its, it_writes, its_order)) = earlier else { return false };
            let before = bit(other, i);
            if other == thread || its != spot || !(writes || it_writes) || state.made & before == 0 {
                return false;
            }
            let sees = |one: usize, order: Order, two: usize| match order.scope() {
                None => false,
                Some(Scope::Cta) => place(self.program, one) == place(self.program, two),
                Some(Scope::Gpu) => self.pe(one) == self.pe(two),
                Some(Scope::Sys) => true,
            };
            let morally_strong = sees(thread, order, other) && sees(other, its_order, thread);
            let is_store = self.stores(self.pe(other), None) & before != 0;
            let known = match is_store && self.pe(other) != self.pe(thread) {
                true => past.arrived & before != 0,
                false => past.steps & before != 0,
            };
            !morally_strong && !known
        })
    }

    /// A thread's next step, if it can take one.
    fn step(&self, before: &State, thread: usize) -> Option<Result<(State, bool), Race>> {
        let Thread { done, at_barrier, .. } = before.threads[thread];
        let step = self.program[thread].get(done).filter(|_| !at_barrier)?;
        let pe = self.pe(thread);
        let own = bit(thread, done);
        let mut past = self.past_and_own(before, thread);
        if let Step::Write { of, .. } | Step::Add { of, .. } = *step
            && of != pe
        {
            past.arrived |= past.fenced & self.stores(pe, Some(of)); // it comes behind what NVSHMEM's fences put before it
        }
        if self.races(before, (thread, done), past) {
            return Some(Err(Race));
        }
        let mut state = before.clone();
        state.made |= access(step).map_or(0, |_| own);
        state.threads[thread].done += 1;
        match *step {
            Step::Read { of, word, order } => {
                let found = state.memory[of][word];
                state.threads[thread].noted = state.threads[thread].noted * 10 + found;
                self.hears(&mut state, thread, (of, word), order);
            }
            Step::Await { of, word, value, order } => {
                if state.memory[of][word] < value {
                    state.threads[thread].done = done;
                    return Some(Ok((state, true)));
                }
                self.hears(&mut state, thread, (of, word), order);
            }
            Step::Write { of, word, value, order } => {
                state.memory[of][word] = value;
                let told = self.releases(&state, thread, order, past);
                state.told.insert((of, word), told);
            }
            Step::Add { of, word, order, fetch } => {
                let found = state.memory[of][word];
                state.memory[of][word] += 1;
                if fetch {
                    state.threads[thread].noted = state.threads[thread].noted * 10 + found;
                    self.hears(&mut state, thread, (of, word), order);
                }
                past.join(state.threads[thread].past);
                let told = self.releases(&state, thread, order, past);
                join(state.told.entry((of, word)).or_default(), &told);
            }
            Step::Fence(scope) => {
                let me = &mut state.threads[thread];
                for (_, read) in me.pending.extract_if(.., |(needs, _)| *needs <= scope) {
                    me.past.join(read);
                }
                self.fence(&mut state, thread, scope);
            }
            Step::Meet => {
                state.threads[thread].at_barrier = true;
                state.threads[thread].done = done;
            }
            Step::Signal { to } => {
                past.arrived |= past.fenced & self.stores(pe, Some(to));
                let past = Past { fenced: 0, ..past };
                state.flying.push(Signal { from: pe, to, past, fences: state.fences[pe], covered: None });
                state.flying.sort_unstable();
            }
            Step::Wait { value } => {
                if state.signals[pe] < value {
                    return None;
                }
                let signalled = state.signalled[pe];
                state.threads[thread].past.join(signalled);
            }
            Step::NvshmemFence => {
                state.threads[thread].past.fenced |= past.steps & self.stores(pe, None);
                state.fences[pe] += 1;
                let mine = state.flying.iter_mut().filter(|signal| signal.from == pe);
                mine.for_each(|signal| _ = signal.covered.get_or_insert(state.fences[pe]));
                state.flying.sort_unstable();
            }
            Step::Quiet => {
                if before.flying.iter().any(|signal| signal.from == pe) {
                    return None;
                }
                self.fence(&mut state, thread, Scope::Sys);
            }
        }
        Some(Ok((state, false)))
    }

    /// A fence tells all that comes before it, in its scope.
    fn fence(&self, state: &mut State, thread: usize, scope: Scope) {
        let past = self.past_and_own(state, thread);
        let pe = self.pe(thread);
        if scope == Scope::Sys {
            state.threads[thread].past.arrived |= past.steps & self.stores(pe, None);
        }
        let past = Past { arrived: state.threads[thread].past.arrived, ..past };
        for place in self.places(thread).into_iter().filter(|place| place.scope() <= scope) {
            state.threads[thread].fenced.insert(place, past);
        }
    }

    /// What a strong write tells. `past`: what comes before it.
    fn releases(&self, state: &State, thread: usize, order: Order, mut past: Past) -> Told {
        let (pe, block) = place(self.program, thread);
        match order {
            Order::Weak => Told::new(),
            Order::Relaxed(_) => {
                let mut told = state.met[block].clone();
                join(&mut told, &state.threads[thread].fenced);
                told
            }
            Order::Strong(scope) => {
                if scope == Scope::Sys {
                    past.arrived |= past.steps & self.stores(pe, None);
                }
                let places = self.places(thread).into_iter().filter(|place| place.scope() <= scope);
                places.map(|place| (place, past)).collect()
            }
        }
    }

    /// A thread has read a word: it comes after the strong writes there, and after what the word tells, at once or from a fence on.
    fn hears(&self, state: &mut State, thread: usize, spot: (usize, usize), order: Order) {
        if order == Order::Weak {
            return;
        }
        for (other, steps) in self.program.iter().enumerate() {
            for (i, step) in steps.iter().enumerate() {
                let is_update =
                    access(step).is_some_and(|(its, writes, order)| its == spot && writes && order != Order::Weak);
                if is_update && other != thread && state.made & bit(other, i) != 0 {
                    state.threads[thread].past.steps |= bit(other, i);
                }
            }
        }
        let told = state.told.get(&spot).cloned().unwrap_or_default();
        for (place, past) in told.into_iter().filter(|&(place, _)| self.tells(thread, place)) {
            let me = &mut state.threads[thread];
            match order {
                Order::Strong(_) => me.past.join(past),
                _ => me.pending.push((place.scope(), past)),
            }
        }
        state.threads[thread].pending.sort_unstable();
        state.threads[thread].pending.dedup();
    }
}

struct Race;

/// The word that a step accesses, whether it writes, and how.
fn access(step: &Step) -> Option<((usize, usize), bool, Order)> {
    match *step {
        Step::Read { of, word, order } | Step::Await { of, word, order, .. } => Some(((of, word), false, order)),
        Step::Write { of, word, order, .. } | Step::Add { of, word, order, .. } => Some(((of, word), true, order)),
        _ => None,
    }
}
