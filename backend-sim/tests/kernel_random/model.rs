//! What random kernels can show, found by trying all orders of all steps. The model shares nothing with the simulator but the programs.
//!
//! Threads' loads, stores and atomics are steps on memory, one at a time. A signal is in flight from its issue until it is delivered, which
//! may be at any time. A fence puts what its PE has in flight before what the PE issues later to the same PE; a quiet waits for all of it.

use std::collections::BTreeSet;

use super::program::{PES, Part, Program, Step, Vote, WORDS, Word};

/// The memory in the end, and what each thread has noted, PE by PE; `None`: a deadlock.
pub(crate) type Outcome = Option<Vec<Vec<u64>>>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    memory: Vec<[u64; WORDS]>,
    /// The shared word of each PE's block.
    shared: Vec<u64>,
    threads: Vec<Thread>,
    /// Fences of each PE.
    fences: Vec<u8>,
    /// Signals on their way, in the order of all that matters of them.
    flying: Vec<Signal>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    /// Steps that it has done.
    done: usize,
    /// In a loop over two words: whether it looks at the second next.
    second: bool,
    /// What it has seen in the first.
    first: u64,
    /// It has come to a barrier.
    at_barrier: bool,
    round: Round,
    noted: u64,
}

/// Where it is in a loop with a vote.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Round {
    at: At,
    /// The most that it has told.
    told: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    #[default]
    Begin,
    Vote(bool),
    Behind,
    Read(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Signal {
    from: usize,
    to: usize,
    word: usize,
    value: u64,
    adds: bool,
    /// Fences of its PE before it.
    fences: u8,
    /// The first fence behind it.
    covered: Option<u8>,
}

impl Thread {
    fn note(&mut self, value: u64) {
        self.noted = self.noted * 10 + value;
    }
}

/// All outcomes; `None` when there are more than `limit` states.
pub(crate) fn outcomes(program: &Program, limit: usize) -> Option<BTreeSet<Outcome>> {
    let start = State {
        memory: vec![[0; WORDS]; PES],
        shared: vec![0; PES],
        threads: vec![Thread::default(); program.len()],
        fences: vec![0; PES],
        flying: Vec::new(),
    };
    let mut outcomes = BTreeSet::new();
    let (mut visited, mut to_visit) = (BTreeSet::from([start.clone()]), vec![start]);
    while let Some(state) = to_visit.pop() {
        let next = next(program, &state);
        if next.iter().all(|next| only_looks(&state, next)) && is_stuck(program, &state) {
            outcomes.insert(end(program, &state));
        }
        for state in next {
            if visited.insert(state.clone()) {
                to_visit.push(state);
            }
        }
        if visited.len() > limit {
            return None;
        }
    }
    Some(outcomes)
}

/// Whether nothing can happen any more but that loops look again.
fn is_stuck(program: &Program, state: &State) -> bool {
    let (mut visited, mut to_visit) = (BTreeSet::from([state.clone()]), vec![state.clone()]);
    while let Some(state) = to_visit.pop() {
        for next in next(program, &state) {
            if !only_looks(&state, &next) {
                return false;
            }
            if visited.insert(next.clone()) {
                to_visit.push(next);
            }
        }
    }
    true
}

/// Whether two states differ in nothing but where threads are in a loop.
fn only_looks(state: &State, next: &State) -> bool {
    let blind = |state: &State| {
        let mut state = state.clone();
        for thread in &mut state.threads {
            (thread.second, thread.first) = (false, 0);
            thread.round.at = At::Begin;
        }
        state
    };
    blind(state) == blind(next)
}

fn end(program: &Program, state: &State) -> Outcome {
    let finished = state.threads.iter().zip(program).all(|(thread, steps)| thread.done == steps.len());
    let of_pe = |pe: usize| {
        let threads = state.threads.chunks(program.len() / PES).nth(pe).expect("each PE has threads");
        state.memory[pe].into_iter().chain(threads.iter().map(|thread| thread.noted))
    };
    finished.then(|| (0..PES).map(|pe| of_pe(pe).collect()).collect())
}

/// Every state that one step leads to.
fn next(program: &Program, state: &State) -> Vec<State> {
    let mut next = Vec::new();
    for thread in 0..program.len() {
        next.extend(step(program, state, thread));
    }
    for pe in 0..PES {
        next.extend(meet(program, state, pe));
        next.extend(count(program, state, pe));
    }
    for index in 0..state.flying.len() {
        let signal = state.flying[index];
        if !is_held(state, &signal) {
            let mut state = state.clone();
            state.flying.remove(index);
            let word = &mut state.memory[signal.to][signal.word];
            *word = if signal.adds { word.wrapping_add(signal.value) } else { signal.value };
            next.push(state);
        }
    }
    next
}

/// Whether a fence puts something before what a PE issues, or has issued.
fn is_held(state: &State, later: &Signal) -> bool {
    let ahead = |other: &&Signal| (other.from, other.to) == (later.from, later.to);
    state.flying.iter().filter(ahead).any(|other| other.covered.is_some_and(|fence| fence <= later.fences))
}

/// The threads of a block that are left have all come to a barrier.
fn meet(program: &Program, state: &State, pe: usize) -> Option<State> {
    let count = program.len() / PES;
    let block = pe * count..(pe + 1) * count;
    let is_left = |thread: &usize| state.threads[*thread].done < program[*thread].len();
    let mut left = block.clone().filter(is_left).peekable();
    left.peek()?;
    left.all(|thread| state.threads[thread].at_barrier).then(|| {
        let mut state = state.clone();
        for thread in block.filter(|&thread| state.threads[thread].at_barrier).collect::<Vec<_>>() {
            state.threads[thread].at_barrier = false;
            state.threads[thread].done += 1;
        }
        state
    })
}

/// The threads of a block that vote have all come to the vote.
fn count(program: &Program, state: &State, pe: usize) -> Option<State> {
    let first = pe * (program.len() / PES);
    let &Step::Vote(Vote { voters, all, .. }) = program[first].get(state.threads[first].done)? else { return None };
    let voters = first..first + voters;
    let vote = |thread: &Thread| match thread.round.at {
        At::Vote(holds) => Some(holds),
        At::Begin | At::Behind | At::Read(_) => None,
    };
    let votes = state.threads[voters.clone()].iter().map(vote).collect::<Option<Vec<bool>>>()?;
    let is_over = if all { votes.iter().all(|&holds| holds) } else { votes.contains(&true) };
    let mut state = state.clone();
    for thread in &mut state.threads[voters] {
        thread.round.at = At::Behind;
        if is_over {
            (thread.done, thread.round) = (thread.done + 1, Round::default());
        }
    }
    Some(state)
}

/// Whether a loop goes on that has found this.
fn compares(found: u64, unless: &str, value: u64) -> bool {
    match unless {
        "lt" => found < value,
        "ne" => found != value,
        "eq" => found == value,
        "gt" => found > value,
        _ => unreachable!("no loop compares with {unless}"),
    }
}

/// A thread's next step, if it can take one.
fn step(program: &Program, before: &State, thread: usize) -> Option<State> {
    let Thread { done, second, at_barrier, .. } = before.threads[thread];
    let step = program[thread].get(done).filter(|_| !at_barrier)?;
    let pe = thread / (program.len() / PES);
    let mut state = before.clone();
    state.threads[thread].done += 1;
    let me = &mut state.threads[thread];
    let memory = &mut state.memory[pe];
    match *step {
        Step::Poll { word, unless, value, notes } => {
            let found = memory[word];
            if compares(found, unless, value) {
                return None;
            }
            if notes {
                me.note(found);
            }
        }
        Step::PollPart { word, part, notes, .. } => {
            let found = memory[word];
            let is_so = match part {
                Part::Odd => found % 2 == 1,
                Part::Above(value) => found / 2 == value,
                Part::From(value) => found >= value,
            };
            if !is_so {
                return None;
            }
            if notes {
                me.note(found);
            }
        }
        Step::Twice { words: [one, other], value } => match second {
            false if memory[one] < value => return None,
            false => (me.done, me.second) = (done, true),
            true if memory[other] == 0 => (me.done, me.second) = (done, false),
            true => me.second = false,
        },
        Step::Either { words: [one, other], value, notes } => {
            let found = memory[if second { other } else { one }];
            (me.done, me.second) = if found < value { (done, !second) } else { (done + 1, false) };
            if notes && found >= value {
                me.note(1 + u64::from(second));
            }
        }
        Step::Both { words: [one, _], .. } if !second => (me.done, me.second, me.first) = (done, true, memory[one]),
        Step::Both { words: [_, other], value, notes } => {
            let both = [std::mem::take(&mut me.first), memory[other]];
            let ends = both.iter().all(|found| *found >= value);
            (me.done, me.second) = (done + usize::from(ends), false);
            if notes && ends {
                both.iter().for_each(|found| me.note(*found));
            }
        }
        Step::Swap { of, word, from, to } | Step::Lock { of, word, from, to } => {
            let swap =
                Signal { from: pe, to: of, word, value: to, adds: false, fences: before.fences[pe], covered: None };
            // a call is in flight, also to the own PE
            let flies = of != pe || matches!(step, Step::Lock { .. });
            if before.memory[of][word] != from || flies && is_held(before, &swap) {
                return None;
            }
            state.memory[of][word] = to;
        }
        Step::Fetch { of, word, value, notes } => {
            let fetch = Signal { from: pe, to: of, word, value, adds: true, fences: before.fences[pe], covered: None };
            let found = before.memory[of][word];
            if found < value || is_held(before, &fetch) {
                return None;
            }
            if notes {
                me.note(found);
            }
        }
        Step::All { value } => {
            if memory[..2].iter().any(|found| *found < value) {
                return None;
            }
        }
        Step::Wait { word, least, value } => {
            let found = memory[word];
            if !(if least { found >= value } else { found <= value }) {
                return None;
            }
        }
        Step::Load { word } => me.note(memory[word]),
        Step::Store { word, value } => memory[word] = value,
        Step::Add { word } => memory[word] += 1,
        Step::Take { word } => {
            me.note(memory[word]);
            memory[word] += 1;
        }
        Step::Arrive { .. } if second => {
            let Step::Arrive { tells: Some(told), .. } = *step else { unreachable!("it tells somebody") };
            memory[told] += 1;
            me.second = false;
        }
        Step::Arrive { word, by, asks, tells } => {
            let word = match word {
                Word::Shared => &mut state.shared[pe],
                Word::Global(word) => &mut memory[word],
            };
            let yes = *word == asks;
            me.note(1 + u64::from(yes));
            *word += by;
            let tells = yes && tells.is_some();
            (me.done, me.second) = (done + usize::from(!tells), tells);
        }
        Step::Signal { to, word, value } => state.send(pe, to, word, value, false),
        Step::AddSignal { to, word } => state.send(pe, to, word, 1, true),
        Step::Move { word, by } => memory[word] = memory[word].wrapping_add(by.cast_unsigned()),
        Step::MoveSignal { to, word, by } => state.send(pe, to, word, by.cast_unsigned(), true),
        Step::Balance { word, least, value } => {
            let found = memory[word].cast_signed();
            if if least { found < value } else { found > value } {
                return None;
            }
        }
        Step::Ticket => {
            me.note(state.shared[pe]);
            state.shared[pe] += 1;
        }
        Step::Count => state.shared[pe] += 1,
        Step::Await { unless, value, notes } => {
            let found = state.shared[pe];
            if compares(found, unless, value) {
                return None;
            }
            if notes {
                me.note(found);
            }
        }
        Step::SetShared { value } => state.shared[pe] = value,
        Step::SwapShared { from, to } => {
            if state.shared[pe] != from {
                return None;
            }
            state.shared[pe] = to;
        }
        Step::Pull { of, word, value, notes } => {
            let found = before.memory[of][word];
            if found < value {
                return None;
            }
            if notes {
                me.note(found);
            }
        }
        Step::Meet => (me.done, me.at_barrier) = (done, true),
        Step::Vote(Vote { until, reads, tells, .. }) => {
            let shared = before.shared[pe];
            let load = |word: Word| match word {
                Word::Shared => shared,
                Word::Global(word) => memory[word],
            };
            let (at, told) = (me.round.at, me.round.told);
            me.done = done;
            me.round.at = match at {
                At::Begin => At::Vote(until.is_none_or(|(word, value)| load(word) >= value)),
                At::Vote(_) => return None,
                At::Behind => reads.map_or(At::Begin, |word| At::Read(load(word))),
                At::Read(found) => {
                    if let Some(word) = tells
                        && found > told
                    {
                        memory[word] = found;
                        me.round.told = found;
                    }
                    At::Begin
                }
            };
        }
        Step::Fence => {
            state.fences[pe] += 1;
            let mine = state.flying.iter_mut().filter(|signal| signal.from == pe);
            mine.for_each(|signal| _ = signal.covered.get_or_insert(state.fences[pe]));
            state.flying.sort_unstable();
        }
        Step::Quiet => {
            if before.flying.iter().any(|signal| signal.from == pe) {
                return None;
            }
        }
    }
    Some(state)
}

impl State {
    fn send(&mut self, from: usize, to: usize, word: usize, value: u64, adds: bool) {
        self.flying.push(Signal { from, to, word, value, adds, fences: self.fences[from], covered: None });
        self.flying.sort_unstable();
    }
}
