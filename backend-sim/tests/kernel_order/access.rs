//! What each step accesses, and which accesses race.

use onesided_sim::Promises;

use super::model::{Model, State};
use super::past::Past;
use super::program::{Fetch, Order, PES, Program, Role, SHARED, Scope, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A load, a store or an atomic.
    Own,
    /// A store of a thread, or an addition that fetches nothing: other PEs see it later.
    Store,
    /// What a call of NVSHMEM does before it ends: it is no load and no store.
    Call,
    /// A put arrives, or reads its source.
    Transfer,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The PE, and its word.
    pub(super) spot: (usize, usize),
    pub(super) writes: bool,
    pub(super) order: Order,
    pub(super) kind: Kind,
    /// It is the source of a put.
    pub(super) second: bool,
}

pub(super) fn home(of: usize, (_, block): (usize, usize)) -> usize {
    if of == SHARED { PES + block } else { of }
}

/// What a step of a thread in a place accesses, its target first.
fn accesses(step: &Step, place: (usize, usize), role: Role, promises: &Promises) -> Vec<Access> {
    let (pe, _) = place;
    let step = step.on(pe);
    let one = |spot, writes, order, kind| vec![Access { spot, writes, order, kind, second: false }];
    match step {
        Step::Read { of, word, order } | Step::Await { of, word, order, .. } => {
            one((home(of, place), word), false, order, Kind::Own)
        }
        Step::Write { of, word, order, .. } | Step::Add { of, word, order, fetch: Fetch::Nothing }
            if of != pe && of != SHARED =>
        {
            one((of, word), true, order, Kind::Store)
        }
        Step::Write { of, word, order, .. } | Step::Add { of, word, order, .. } if of == pe && role == Role::Thread => {
            one((of, word), true, order, Kind::Store)
        }
        Step::Write { of, word, order, .. } | Step::Add { of, word, order, .. } => {
            one((home(of, place), word), true, order, Kind::Own)
        }
        // its call ends when it has arrived
        Step::P { to, word, .. } if promises.put_arrives => one((to, word), true, Order::Weak, Kind::Call),
        Step::P { to, word, .. } => one((to, word), true, Order::Weak, Kind::Transfer),
        Step::G { of, word } => one((of, word), false, Order::Weak, Kind::Call),
        Step::Put { to, word, src } => {
            let mut accesses = one((to, word), true, Order::Weak, Kind::Transfer);
            accesses.push(Access {
                spot: (pe, src),
                writes: false,
                order: Order::Weak,
                kind: Kind::Transfer,
                second: true,
            });
            accesses
        }
        Step::Fence { .. }
        | Step::Meet
        | Step::Arrive { .. }
        | Step::Arrived
        | Step::Signal { .. }
        | Step::Wait { .. }
        | Step::Look { .. }
        | Step::NvshmemFence
        | Step::Quiet
        | Step::Launch
        | Step::Synchronize => {
            vec![]
        }
    }
}

/// The bit of an agent's step; `second`: of the source that it reads later.
pub(super) fn bit(thread: usize, step: usize, second: bool) -> u128 {
    1 << (16 * thread + 2 * step + usize::from(second))
}

/// Of all agents: what each step accesses.
pub(super) fn all_accesses(program: &Program, promises: &Promises) -> Vec<Vec<Vec<Access>>> {
    let of_agent = |(agent, steps): (usize, &Vec<Step>)| {
        steps.iter().map(|step| accesses(step, program.place(agent), program.role(agent), promises)).collect()
    };
    program.steps.iter().enumerate().map(of_agent).collect()
}

impl Model<'_> {
    /// The accesses of an issue scope that are on their way for a time, of these kinds: all, or those to one PE. Signals are transfers.
    pub(super) fn on_their_way(&self, scope: (usize, Role), kinds: &[Kind], to: Option<usize>) -> u128 {
        let mut all = 0;
        for (thread, steps) in self.accesses.iter().enumerate().filter(|(agent, _)| self.scope(*agent) == scope) {
            for (i, accesses) in steps.iter().enumerate() {
                // a source has been read when the data has arrived
                let target = accesses.first().map(|access| access.spot.0);
                let accesses = accesses.iter().filter(|access| kinds.contains(&access.kind));
                let accesses = accesses.filter(|_| to.is_none_or(|to| Some(to) == target));
                all |= accesses.fold(0, |all, access| all | bit(thread, i, access.second));
                if let Step::Signal { to: target } = self.program.steps[thread][i]
                    && kinds.contains(&Kind::Transfer)
                    && to.is_none_or(|to| to == target)
                {
                    all |= bit(thread, i, false);
                }
            }
        }
        all
    }

    /// Blocking puts of an issue scope on their way to a PE: where transfers arrive in the order of issue, these do.
    pub(super) fn in_order(&self, scope: (usize, Role), to: usize) -> u128 {
        let mut all = 0;
        for (thread, steps) in self.program.steps.iter().enumerate().filter(|(agent, _)| self.scope(*agent) == scope) {
            let puts =
                steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::P { to: its, .. } if *its == to));
            all |= puts.fold(0, |all, (i, _)| all | bit(thread, i, false));
        }
        if self.promises.in_order { all } else { 0 }
    }

    /// Whether a step races with one that was made. `own`: what its thread comes after; `past`: what comes before it arrives. A source is read before that.
    pub(super) fn races(&self, state: &State, (thread, step): (usize, usize), (own, past): (Past, Past)) -> bool {
        self.accesses[thread][step].iter().any(|access| {
            let past = if access.second { own } else { past };
            self.races_with_any(state, (thread, step), access, past)
        })
    }

    /// Stores that somebody comes after who knows of a put that has replaced them, or read them.
    fn behind_puts(&self, state: &State, past: Past) -> u128 {
        let is_known = |&((thread, step), second, _): &((usize, usize), bool, u128)| {
            let all = match self.accesses[thread][step][0].kind {
                Kind::Transfer => past.arrived,
                _ => past.steps | past.arrived,
            };
            all & bit(thread, step, second) != 0
        };
        state.under_puts.iter().filter(|put| is_known(put)).fold(0, |all, (.., stores)| all | stores)
    }

    fn races_with_any(&self, state: &State, (thread, step): (usize, usize), access: &Access, past: Past) -> bool {
        let all = self.accesses.iter().enumerate().flat_map(|(other, steps)| {
            let of_step = move |(i, accesses): (usize, &'_ Vec<Access>)| {
                accesses.clone().into_iter().map(move |earlier| ((other, i), earlier))
            };
            steps.iter().enumerate().flat_map(of_step)
        });
        let mut made = all.filter(|((other, i), earlier)| state.made & bit(*other, *i, earlier.second) != 0);
        made.any(|((other, i), earlier)| {
            if (other, i) == (thread, step) || earlier.spot != access.spot || !(access.writes || earlier.writes) {
                return false;
            }
            let sees = |one: usize, order: Order, two: usize| match order.scope() {
                None => false,
                Some(Scope::Cta) => self.program.place(one) == self.program.place(two),
                Some(Scope::Gpu) => self.pe(one) == self.pe(two),
                Some(Scope::Sys) => true,
            };
            let morally_strong = sees(thread, access.order, other) && sees(other, earlier.order, thread);
            let same_gpu = self.pe(other) == self.pe(thread) && matches!(access.kind, Kind::Own | Kind::Store);
            let must_arrive = match earlier.kind {
                Kind::Own | Kind::Call => false,
                // a PE's kernels see at once what they have stored there
                Kind::Store if earlier.spot.0 == self.pe(other) => self.scope(thread) != self.scope(other),
                Kind::Store => !same_gpu, // a GPU's loads and stores come after its stores, and a get does not
                Kind::Transfer => true,
            };
            let known = if must_arrive { past.arrived } else { past.steps | past.arrived };
            let known = if access.kind == Kind::Own { known | state.threads[thread].overwritten } else { known };
            let known = known | self.behind_puts(state, past);
            !morally_strong && known & bit(other, i, earlier.second) == 0
        })
    }
}
