//! What each step of a thread, host or stream changes.

use onesided_sim::Quiet;

use super::access::{Access, Kind, bit};
use super::model::{Flying, Model, Race, State, Thread, What, number};
use super::past::{Past, Place, Told, join};
use super::program::{Fetch, Order, PES, Role, SHARED, SIGNAL, Scope, Step};

impl Model<'_> {
    /// A thread's next step, if it can take one.
    pub(super) fn step(&self, before: &State, thread: usize) -> Option<Result<(State, bool), Race>> {
        let Thread { done, at_barrier, .. } = before.threads[thread];
        let step = self.program.steps[thread].get(done).filter(|_| !at_barrier)?;
        let (pe, scope) = (self.pe(thread), self.scope(thread));
        let step = &step.on(pe);
        if !self.may_begin(before, thread) {
            return None;
        }
        let mut own = self.past_and_own(before, thread);
        own.join(self.begins_behind(before, thread));
        let mut past = own;
        let mut behind = Past::default(); // what a strong write tells in any case
        // what changes another PE's memory, or is a transfer, comes behind what NVSHMEM's fences put before it
        match *step {
            // a plain store is no step of a search: it comes behind those fences alone that it comes after
            Step::Write { of: to, order: Order::Weak, .. } if to != pe && to != SHARED => {
                past.arrived |= past.fenced & self.on_their_way(scope, &[Kind::Store, Kind::Transfer], Some(to));
            }
            Step::Write { of: to, .. } | Step::Add { of: to, .. } if to != pe && to != SHARED => {
                self.fenced_arrive(before, &mut past, scope, to);
                // not what came before the issue of what arrives: for that, it must release
                (past.steps, behind.arrived) = (own.steps, past.arrived & !own.arrived);
            }
            Step::P { to, .. } | Step::Put { to, .. } | Step::Signal { to } => {
                self.fenced_arrive(before, &mut past, scope, to);
            }
            _ => {}
        }
        if let Step::P { to, .. } | Step::Signal { to } = *step {
            past.arrived |= past.steps & self.in_order(scope, to);
        }
        if self.must_wait(before, step, own, scope) {
            return None;
        }
        let sends_to = match *step {
            Step::P { to, .. } | Step::Put { to, .. } | Step::Signal { to } => Some(to),
            _ => None,
        };
        if self.races(before, (thread, done), (own, past)) {
            return Some(Err(Race));
        }
        let mut state = before.clone();
        let touched = &self.accesses[thread][done];
        state.made |= touched.iter().fold(0, |all, access| all | bit(thread, done, access.second));
        let sends = |what, to, fences: u8| {
            let (from, bit) = (number(scope), bit(thread, done, false));
            Flying { from, to, bit, fenced: own.fenced, fences, covered: None, what }
        };
        state.threads[thread].done += 1;
        state.threads[thread].past.join(self.begins_behind(before, thread));
        if let Some(to) = sends_to {
            let past = self.past_and_own(&state, thread);
            state.threads[thread].sent[to] = Some(past);
        }
        if let Step::P { to, word, .. } | Step::Put { to, word, .. } = *step
            && to == pe
        {
            state.under_puts.push(((thread, done), false, self.known_at(before, (to, word), own)));
        }
        if let Step::Put { src, .. } = *step {
            state.under_puts.push(((thread, done), true, self.known_at(before, (pe, src), own)));
        }
        state.under_puts.sort_unstable();
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
                state.threads[thread].overwritten |= self.known_at(before, (of, word), past);
                let told = self.releases(&state, thread, order, past, behind);
                if order != Order::Weak && of < PES && of != pe {
                    let what = What::Write { word, value, adds: false, told };
                    state.flying.push(sends(what, of, state.fences[number(scope)]));
                    state.flying.sort_unstable();
                } else {
                    state.memory[of][word] = value;
                    state.told.insert((of, word), told);
                }
            }
            Step::Add { of, word, order, fetch } => {
                let of = self.home(thread, of);
                if fetch == Fetch::Nothing && of < PES && of != pe {
                    let told = self.releases(&state, thread, order, past, behind);
                    let what = What::Write { word, value: 1, adds: true, told };
                    state.flying.push(sends(what, of, state.fences[number(scope)]));
                    state.flying.sort_unstable();
                    return Some(Ok((state, false)));
                }
                let found = state.memory[of][word];
                state.memory[of][word] += 1;
                let noted = match fetch {
                    Fetch::Nothing => None,
                    Fetch::Notes => Some(found),
                    Fetch::Asks { number, unless, steps } => {
                        let yes = found == number;
                        state.threads[thread].done += if yes == unless { steps } else { 0 };
                        Some(1 + u64::from(yes))
                    }
                };
                if let Some(noted) = noted {
                    state.threads[thread].noted = state.threads[thread].noted * 10 + noted;
                    self.hears(&mut state, thread, (of, word), order);
                }
                past.join(state.threads[thread].past);
                let told = self.releases(&state, thread, order, past, behind);
                join(state.told.entry((of, word)).or_default(), &told);
            }
            Step::Fence { scope, .. } => {
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
            Step::Arrive { releases } => {
                let (_, block) = self.program.place(thread);
                state.threads[thread].has_arrived = true;
                if releases {
                    state.arrived[block].0.join(past);
                    join(&mut state.arrived[block].1, &before.threads[thread].fenced);
                }
            }
            Step::Arrived => {
                let (_, block) = self.program.place(thread);
                let mut left = (0..self.program.threads).filter(|&other| {
                    let is_left = before.threads[other].done < self.program.steps[other].len();
                    self.program.place(other).1 == block && is_left
                });
                if !left.all(|other| before.threads[other].has_arrived) {
                    return None;
                }
                let (arrived, fenced) = before.arrived[block].clone();
                state.threads[thread].past.join(arrived);
                join(&mut state.threads[thread].fenced, &fenced);
            }
            Step::Signal { to } => {
                let seen = self.seen_by_loads(own, past, scope);
                state.made |= bit(thread, done, false);
                state.flying.push(sends(What::Signal { past, seen }, to, state.fences[number(scope)]));
                state.flying.sort_unstable();
            }
            Step::Wait { value } => {
                if state.memory[pe][SIGNAL] < value {
                    return None;
                }
                let [signalled, _] = state.signalled[pe];
                state.threads[thread].past.join(signalled);
            }
            Step::NvshmemFence => {
                state.threads[thread].past.fenced |=
                    past.steps & self.on_their_way(scope, &[Kind::Store, Kind::Transfer], None);
                let from = number(scope);
                if self.quiet == Quiet::Pe {
                    for to in 0..PES {
                        let transfers = self.on_their_way(scope, &[Kind::Transfer], Some(to));
                        let stores = self.on_their_way(scope, &[Kind::Store], Some(to));
                        state.fenced[from][to].arrived |= state.made & transfers | past.steps & stores;
                        let sent: Vec<Past> = self.sent(before, scope, to).collect();
                        sent.into_iter().for_each(|past| state.fenced[from][to].join(past));
                    }
                }
                state.fences[from] += 1;
                let mine = state.flying.iter_mut().filter(|signal| signal.from == from);
                mine.for_each(|signal| _ = signal.covered.get_or_insert(state.fences[from]));
                state.flying.sort_unstable();
                if self.promises.fence_completes {
                    return self.completes(before, state, thread, past);
                }
            }
            Step::Quiet => return self.completes(before, state, thread, past),
            // nobody can tell when it arrives who does not race with it
            Step::P { to, word, value } => state.memory[to][word] = value,
            Step::Put { to, word, src } => state.memory[to][word] = state.memory[pe][src],
            Step::G { of, word } => {
                state.threads[thread].noted = state.threads[thread].noted * 10 + state.memory[of][word]
            }
            Step::Launch => state.launches[pe] = past,
            Step::Synchronize => {
                let stream = self.program.stream(pe);
                if before.threads[stream].done < self.program.steps[stream].len() || !self.kernel_has_ended(before, pe)
                {
                    return None;
                }
                state.threads[thread].past.join(self.past_of_kernel(before, pe));
                state.threads[thread].past.join(self.past_and_own(before, stream));
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
        for scope in self.completed_by(thread) {
            let on_its_way = before.on_its_way(number(scope));
            let covers = match self.quiet {
                Quiet::Thread if self.scope(thread) == scope => past.steps,
                Quiet::Thread | Quiet::Pe => u128::MAX,
            };
            if on_its_way & covers != 0 {
                return None;
            }
            let transfers = self.on_their_way(scope, &[Kind::Transfer], None);
            state.threads[thread].past.arrived |= past.steps & transfers;
            if self.quiet == Quiet::Pe {
                state.threads[thread].past.arrived |= state.made & transfers;
                let sent = (0..PES).flat_map(|to| self.sent(before, scope, to));
                sent.for_each(|past| state.threads[thread].past.join(past));
            }
        }
        self.fence(&mut state, thread, Scope::Sys);
        Some(Ok((state, false)))
    }

    /// The scopes that a quiet of an agent completes: on a stream it is one of the GPU, which completes what kernels have issued too.
    fn completed_by(&self, agent: usize) -> Vec<(usize, Role)> {
        let (pe, role) = self.scope(agent);
        match role {
            Role::Stream => vec![(pe, Role::Stream), (pe, Role::Thread)],
            Role::Thread | Role::Host => vec![(pe, role)],
        }
    }

    /// Whether something has to arrive before an agent of a scope takes a step. `own`: what it comes after.
    fn must_wait(&self, state: &State, step: &Step, own: Past, scope @ (pe, role): (usize, Role)) -> bool {
        let mine = state.on_its_way(number(scope)) & state.writes_on_their_way(None);
        let is_peer = |of: usize| of < PES && of != pe;
        match *step {
            Step::Fence { scope: Scope::Sys, sc } => sc && mine & own.steps != 0,
            // what a fence has told to arrive has arrived before whatever is written, or moved
            Step::P { .. } | Step::G { .. } | Step::Put { .. } | Step::Signal { .. } if role == Role::Thread => {
                mine & own.arrived != 0
            }
            Step::Read { of, word, order }
            | Step::Await { of, word, order, .. }
            | Step::Write { of, word, order, .. }
            | Step::Add { of, word, order, .. }
                if role == Role::Thread =>
            {
                let writes = !matches!(step, Step::Read { .. } | Step::Await { .. });
                let releases = writes && order == Order::Strong(Scope::Sys) && of != SHARED;
                let there = is_peer(of) && mine & state.writes_on_their_way(Some((of, word))) & own.steps != 0;
                let flies = match step {
                    Step::Add { fetch, .. } => *fetch == Fetch::Nothing,
                    _ => order != Order::Weak,
                };
                let fenced = writes && is_peer(of) && !flies && {
                    let mut to_it =
                        state.flying.iter().filter(|flying| (flying.from, flying.to) == (number(scope), of));
                    to_it.any(|flying| {
                        let by_scope = self.quiet == Quiet::Pe && order != Order::Weak && flying.covered.is_some();
                        by_scope || own.fenced & flying.bit != 0
                    })
                };
                let behind_fence = writes && order != Order::Weak && of != SHARED && mine & own.arrived != 0;
                there || fenced || behind_fence || releases && mine & own.steps != 0
            }
            _ => false,
        }
    }

    /// Accesses to a place that somebody comes after who comes after these.
    fn known_at(&self, state: &State, spot: (usize, usize), past: Past) -> u128 {
        let mut known = 0;
        for (agent, steps) in self.accesses.iter().enumerate() {
            for (i, accesses) in steps.iter().enumerate() {
                for access in accesses.iter().filter(|access| access.spot == spot) {
                    let all = if access.kind == Kind::Transfer { past.arrived } else { past.steps | past.arrived };
                    known |= all & bit(agent, i, access.second);
                }
            }
        }
        known & state.made
    }

    /// What came before the last transfers of a scope's agents to a PE.
    fn sent(&self, state: &State, scope: (usize, Role), to: usize) -> impl Iterator<Item = Past> {
        let threads = state.threads.iter().enumerate().filter(|(agent, _)| self.scope(*agent) == scope);
        threads.filter_map(|(_, thread)| thread.sent[to]).collect::<Vec<_>>().into_iter()
    }

    /// Whether an agent has been started: threads by a launch, and their stream behind them.
    fn may_begin(&self, state: &State, agent: usize) -> bool {
        let (pe, role) = self.scope(agent);
        match role {
            Role::Host => true,
            _ if !self.program.has_hosts() => true,
            Role::Thread => self.is_launched(state, pe),
            Role::Stream => self.is_launched(state, pe) && self.kernel_has_ended(state, pe),
        }
    }

    fn launched_at(&self, pe: usize) -> usize {
        let steps = &self.program.steps[self.program.host(pe)];
        steps.iter().position(|step| matches!(step, Step::Launch)).expect("every host launches the kernel")
    }

    fn is_launched(&self, state: &State, pe: usize) -> bool {
        state.threads[self.program.host(pe)].done > self.launched_at(pe)
    }

    fn kernel_has_ended(&self, state: &State, pe: usize) -> bool {
        let stores = state.on_its_way(number((pe, Role::Thread))) & state.writes_on_their_way(None);
        let mut threads = self.program.threads_of(pe);
        stores == 0 && threads.all(|thread| state.threads[thread].done == self.program.steps[thread].len())
    }

    /// What an agent comes after that takes its first step.
    fn begins_behind(&self, state: &State, agent: usize) -> Past {
        let (pe, role) = self.scope(agent);
        match role {
            Role::Thread if self.program.has_hosts() && state.threads[agent].done == 0 => state.launches[pe],
            Role::Stream if state.threads[agent].done == 0 => self.past_of_kernel(state, pe),
            Role::Thread | Role::Host | Role::Stream => Past::default(),
        }
    }

    /// What whoever comes after a kernel comes after: what its threads have done, and their stores to other PEs have arrived.
    fn past_of_kernel(&self, state: &State, pe: usize) -> Past {
        let mut past = state.launches[pe];
        for thread in self.program.threads_of(pe) {
            past.join(self.past_and_own(state, thread));
            // the kernel's end is a fence
            state.threads[thread].pending.iter().for_each(|(_, read)| past.join(*read));
        }
        past.arrived |= past.steps & self.on_their_way((pe, Role::Thread), &[Kind::Store], None);
        past
    }

    /// What a signal tells a load: not what transfers have brought, unless loads suffice. `own`: what its thread comes after.
    fn seen_by_loads(&self, own: Past, past: Past, scope: (usize, Role)) -> Past {
        if self.promises.loads_suffice {
            return past;
        }
        let brought = past.arrived & !own.arrived & self.on_their_way(scope, &[Kind::Transfer], None);
        Past { arrived: past.arrived & !brought, ..past }
    }

    /// What fences of NVSHMEM put before what a scope issues to a PE.
    fn fenced_arrive(&self, state: &State, past: &mut Past, scope: (usize, Role), to: usize) {
        past.join(state.fenced[number(scope)][to]);
        past.arrived |= past.fenced & self.on_their_way(scope, &[Kind::Store, Kind::Transfer], Some(to));
    }

    /// A fence tells all that comes before it, in its scope.
    fn fence(&self, state: &mut State, thread: usize, scope: Scope) {
        let past = self.past_and_own(state, thread);
        if scope == Scope::Sys {
            let stores = self.on_their_way(self.scope(thread), &[Kind::Store], None);
            state.threads[thread].past.arrived |= past.steps & stores;
        }
        let past = Past { arrived: state.threads[thread].past.arrived, ..past };
        for place in self.places(thread).into_iter().filter(|place| place.scope() <= scope) {
            state.threads[thread].fenced.insert(place, past);
        }
    }

    /// What a strong write tells. `past`: what comes before it; `behind`: what NVSHMEM's fences put before it at its target.
    fn releases(&self, state: &State, thread: usize, order: Order, mut past: Past, behind: Past) -> Told {
        let (pe, block) = self.program.place(thread);
        let mut told = match order {
            Order::Weak => return Told::new(),
            Order::Relaxed(_) => {
                let mut told = state.met[block].clone();
                join(&mut told, &state.threads[thread].fenced);
                if self.program.has_hosts() {
                    // the kernel's beginning is a fence of its stream
                    let places = self.places(thread).into_iter();
                    join(&mut told, &places.map(|place| (place, state.launches[pe])).collect());
                }
                told
            }
            Order::Strong(scope) => {
                if scope == Scope::Sys {
                    past.arrived |= past.steps & self.on_their_way(self.scope(thread), &[Kind::Store], None);
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
                    let arrived = state.made & bit(other, i, false) & !state.writes_on_their_way(None);
                    state.threads[thread].past.steps |= arrived;
                    state.threads[thread].past.arrived |= arrived;
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
