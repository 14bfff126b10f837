//! What each step of a thread changes.

use onesided_sim::Quiet;

use super::access::{Access, Kind, bit};
use super::model::{Model, Race, Signal, State, Thread};
use super::past::{Past, Place, Told, join};
use super::program::{Order, PES, SHARED, SIGNAL, Scope, Step, place};

impl Model<'_> {
    /// A thread's next step, if it can take one.
    pub(super) fn step(&self, before: &State, thread: usize) -> Option<Result<(State, bool), Race>> {
        let Thread { done, at_barrier, .. } = before.threads[thread];
        let step = self.program[thread].get(done).filter(|_| !at_barrier)?;
        let pe = self.pe(thread);
        let step = &step.on(pe);
        let own = self.past_and_own(before, thread);
        let mut past = own;
        let mut behind = Past::default(); // what a strong write tells in any case
        // what changes another PE's memory, or is a transfer, comes behind what NVSHMEM's fences put before it
        match *step {
            // a plain store is no step of a search: it comes behind those fences alone that it comes after
            Step::Write { of: to, order: Order::Weak, .. } if to != pe && to != SHARED => {
                past.arrived |= past.fenced & self.on_their_way(pe, &[Kind::Store, Kind::Transfer], Some(to));
            }
            Step::Write { of: to, .. } | Step::Add { of: to, .. } if to != pe && to != SHARED => {
                self.fenced_arrive(before, &mut past, pe, to);
                // not what came before the issue of what arrives: for that, it must release
                (past.steps, behind.arrived) = (own.steps, past.arrived & !own.arrived);
            }
            Step::P { to, .. } | Step::Put { to, .. } | Step::Signal { to } => {
                self.fenced_arrive(before, &mut past, pe, to);
            }
            _ => {}
        }
        if let Step::P { to, .. } | Step::Signal { to } = *step {
            past.arrived |= past.steps & self.in_order(pe, to);
        }
        let sends_to = match *step {
            Step::P { to, .. } | Step::Put { to, .. } | Step::Signal { to } => Some(to),
            _ => None,
        };
        if self.races(before, (thread, done), past) {
            return Some(Err(Race));
        }
        let mut state = before.clone();
        let touched = &self.accesses[thread][done];
        state.made |= touched.iter().fold(0, |all, access| all | bit(thread, done, access.second));
        state.threads[thread].done += 1;
        if let Some(to) = sends_to {
            let past = self.past_and_own(&state, thread);
            state.threads[thread].sent[to] = Some(past);
        }
        match *step {
            Step::Read { of, word, order } => {
                let of = self.home(thread, of);
                let found = state.memory[of][word];
                state.threads[thread].noted = state.threads[thread].noted * 10 + found;
                self.hears(&mut state, thread, (of, word), order);
            }
            Step::Await { of, word, value, order } => {
                let of = self.home(thread, of);
                if state.memory[of][word] < value {
                    state.threads[thread].done = done;
                    return Some(Ok((state, true)));
                }
                self.hears(&mut state, thread, (of, word), order);
            }
            Step::Write { of, word, value, order } => {
                let of = self.home(thread, of);
                state.memory[of][word] = value;
                let told = self.releases(&state, thread, order, past, behind);
                state.told.insert((of, word), told);
            }
            Step::Add { of, word, order, fetch } => {
                let of = self.home(thread, of);
                let found = state.memory[of][word];
                state.memory[of][word] += 1;
                if fetch {
                    state.threads[thread].noted = state.threads[thread].noted * 10 + found;
                    self.hears(&mut state, thread, (of, word), order);
                }
                past.join(state.threads[thread].past);
                let told = self.releases(&state, thread, order, past, behind);
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
                let seen = self.seen_by_loads(own, past, pe);
                state.flying.push(Signal { from: pe, to, past, seen, fences: state.fences[pe], covered: None });
                state.flying.sort_unstable();
            }
            Step::Wait { value } => {
                if state.memory[pe][SIGNAL] < value {
                    return None;
                }
                let [signalled, _] = state.signalled[pe];
                state.threads[thread].past.join(signalled);
            }
            Step::NvshmemFence if self.promises.fence_completes => return self.completes(before, state, thread, past),
            Step::NvshmemFence => {
                state.threads[thread].past.fenced |=
                    past.steps & self.on_their_way(pe, &[Kind::Store, Kind::Transfer], None);
                if self.quiet == Quiet::Pe {
                    for to in 0..PES {
                        let transfers = self.on_their_way(pe, &[Kind::Transfer], Some(to));
                        let stores = self.on_their_way(pe, &[Kind::Store], Some(to));
                        state.fenced[pe][to].arrived |= state.made & transfers | past.steps & stores;
                        let sent: Vec<Past> = self.sent(before, pe, to).collect();
                        sent.into_iter().for_each(|past| state.fenced[pe][to].join(past));
                    }
                }
                state.fences[pe] += 1;
                let mine = state.flying.iter_mut().filter(|signal| signal.from == pe);
                mine.for_each(|signal| _ = signal.covered.get_or_insert(state.fences[pe]));
                state.flying.sort_unstable();
            }
            Step::Quiet => return self.completes(before, state, thread, past),
            // nobody can tell when it arrives who does not race with it
            Step::P { to, word, value } => state.memory[to][word] = value,
            Step::Put { to, word, src } => state.memory[to][word] = state.memory[pe][src],
            Step::G { of, word } => {
                state.threads[thread].noted = state.threads[thread].noted * 10 + state.memory[of][word]
            }
            Step::Look { .. } => unreachable!("it is an `Await`"),
        }
        Some(Ok((state, false)))
    }

    /// A quiet, or a fence that is one, ends.
    fn completes(
        &self,
        before: &State,
        mut state: State,
        thread: usize,
        past: Past,
    ) -> Option<Result<(State, bool), Race>> {
        let pe = self.pe(thread);
        if before.flying.iter().any(|signal| signal.from == pe) {
            return None;
        }
        let transfers = self.on_their_way(pe, &[Kind::Transfer], None);
        state.threads[thread].past.arrived |= past.steps & transfers;
        if self.quiet == Quiet::Pe {
            state.threads[thread].past.arrived |= state.made & transfers;
            let sent = (0..PES).flat_map(|to| self.sent(before, pe, to));
            sent.for_each(|past| state.threads[thread].past.join(past));
        }
        self.fence(&mut state, thread, Scope::Sys);
        Some(Ok((state, false)))
    }

    /// What came before the last transfers of a PE's threads to another PE.
    fn sent(&self, state: &State, pe: usize, to: usize) -> impl Iterator<Item = Past> {
        let of_pe = self.program.len() / PES;
        state.threads[pe * of_pe..(pe + 1) * of_pe]
            .iter()
            .filter_map(move |thread| thread.sent[to])
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// What a signal tells a load: not what transfers have brought, unless loads suffice. `own`: what its thread comes after.
    fn seen_by_loads(&self, own: Past, past: Past, pe: usize) -> Past {
        if self.promises.loads_suffice {
            return past;
        }
        let brought = past.arrived & !own.arrived & self.on_their_way(pe, &[Kind::Transfer], None);
        Past { arrived: past.arrived & !brought, ..past }
    }

    /// What fences of NVSHMEM put before what a PE issues to another one.
    fn fenced_arrive(&self, state: &State, past: &mut Past, pe: usize, to: usize) {
        past.join(state.fenced[pe][to]);
        past.arrived |= past.fenced & self.on_their_way(pe, &[Kind::Store, Kind::Transfer], Some(to));
    }

    /// A fence tells all that comes before it, in its scope.
    fn fence(&self, state: &mut State, thread: usize, scope: Scope) {
        let past = self.past_and_own(state, thread);
        let pe = self.pe(thread);
        if scope == Scope::Sys {
            state.threads[thread].past.arrived |= past.steps & self.on_their_way(pe, &[Kind::Store], None);
        }
        let past = Past { arrived: state.threads[thread].past.arrived, ..past };
        for place in self.places(thread).into_iter().filter(|place| place.scope() <= scope) {
            state.threads[thread].fenced.insert(place, past);
        }
    }

    /// What a strong write tells. `past`: what comes before it; `behind`: what NVSHMEM's fences put before it at its target.
    fn releases(&self, state: &State, thread: usize, order: Order, mut past: Past, behind: Past) -> Told {
        let (pe, block) = place(self.program, thread);
        let mut told = match order {
            Order::Weak => return Told::new(),
            Order::Relaxed(_) => {
                let mut told = state.met[block].clone();
                join(&mut told, &state.threads[thread].fenced);
                told
            }
            Order::Strong(scope) => {
                if scope == Scope::Sys {
                    past.arrived |= past.steps & self.on_their_way(pe, &[Kind::Store], None);
                }
                let places = self.places(thread).into_iter().filter(|place| place.scope() <= scope);
                places.map(|place| (place, past)).collect()
            }
        };
        if behind != Past::default() {
            join(&mut told, &self.places(thread).into_iter().map(|place| (place, behind)).collect());
        }
        told
    }

    /// A thread has read a word: it comes after the strong writes there, and after what the word tells, at once or from a fence on.
    fn hears(&self, state: &mut State, thread: usize, spot: (usize, usize), order: Order) {
        if order == Order::Weak {
            return;
        }
        for (other, steps) in self.accesses.iter().enumerate().filter(|(other, _)| *other != thread) {
            for (i, accesses) in steps.iter().enumerate() {
                let is_update = |access: &Access| access.spot == spot && access.writes && access.order != Order::Weak;
                if accesses.iter().any(is_update) {
                    state.threads[thread].past.steps |= state.made & bit(other, i, false);
                }
            }
        }
        let mut told = state.told.get(&spot).cloned().unwrap_or_default();
        if spot.1 == SIGNAL {
            told.insert(Place::All, state.signalled[spot.0][1]);
        }
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
