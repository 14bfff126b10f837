//! What agents wait for, and what holds transfers back: fences, and the order of stores.

use super::plan::{Plan, Task};
use super::program::Op;
use super::state::State;
use super::transfers::{Issuer, Kind, Transfer};

/// # Agents
impl Plan {
    /// Whether an agent has done its first `count` things.
    pub(crate) fn has_done(&self, state: &State, agent: usize, count: usize) -> bool {
        let begun = state.agents[agent].begun;
        begun > count || begun == count && !self.is_blocked(state, agent)
    }

    /// Whether the last thing that an agent has begun is not done.
    fn is_blocked(&self, state: &State, agent: usize) -> bool {
        let Some(last) = state.agents[agent].begun.checked_sub(1) else { return false };
        let mut mine = state.flying.iter().filter(|transfer| transfer.is_by(agent));
        match &self.agents[agent].work[last].task {
            Task::Op(Op::Wait { .. } | Op::WaitAll { .. } | Op::Poll { .. }) => state.agents[agent].looks_at.is_some(),
            // a flush is about non-blocking puts: other puts were read when their calls ended
            Task::Op(Op::Flush) => mine.any(Transfer::has_unread_source),
            Task::Op(_) => mine.any(|transfer| self.keeps_its_caller(transfer)),
            Task::Complete(completing) => self.is_completing(state, completing),
            Task::CompleteStores => mine.any(|transfer| transfer.kind == Kind::Store),
            Task::Enter { collective, team, number } => {
                self.is_in_collective(state, agent, *collective, (*team, *number))
            }
            Task::Await(place) => place.is_some_and(|place| !self.has_done(state, place.agent, place.index + 1)),
            Task::AwaitStarts(places) => places.iter().any(|&place| !self.has_started(state, place)),
            Task::Call(_) | Task::Nothing => false,
        }
    }

    /// Whether the call that issued a transfer waits for it: a put's until its source may be reused, a read's until
    /// the data is there.
    fn keeps_its_caller(&self, transfer: &Transfer) -> bool {
        match transfer.kind {
            _ if transfer.nbi => false,
            Kind::Put if self.rules.put_returns_delivered && !transfer.cells.is_empty() => true,
            Kind::Put => transfer.has_unread_source(),
            Kind::Store => false,
            Kind::Get | Kind::Fetch | Kind::Load => true,
            Kind::Amo { fetch, .. } => fetch,
            Kind::Combine => unreachable!("no agent combines"),
        }
    }
}

/// # Transfers
impl Plan {
    /// Whether a piece of a transfer, or its signal, must wait for others.
    pub(crate) fn is_held(&self, state: &State, index: usize, piece: usize) -> bool {
        let transfer = &state.flying[index];
        let Issuer::Agent { scope, .. } = transfer.issuer else { return false };
        if !transfer.is_ordered_by_fences() {
            return false;
        }
        let in_order = |earlier: &Transfer| self.rules.same_target_in_order && !earlier.nbi && !transfer.nbi;
        let mut earlier = state.flying[..index].iter();
        let ahead =
            |other: &Transfer| other.is_ordered_by_fences() && other.is_of(scope) && other.target == transfer.target;
        state.flying.iter().any(|other| ahead(other) && other.covered.is_some_and(|fence| fence <= transfer.fences))
            || earlier.any(|other| ahead(other) && in_order(other))
            || self.follows_a_store(state, transfer, piece)
    }

    /// Whether a piece of a store follows an earlier store of the same agent to the same word.
    fn follows_a_store(&self, state: &State, transfer: &Transfer, piece: usize) -> bool {
        let same = |other: &&Transfer| other.kind == Kind::Store && other.is_before(transfer);
        transfer.kind == Kind::Store
            && state.flying.iter().filter(same).any(|earlier| {
                let mut stored = earlier.cells.iter().filter(|cell| !cell.delivered);
                stored.any(|stored| transfer.undelivered(piece).any(|cell| cell.to == stored.to))
            })
    }

    /// What a load of a word finds: the agent's last store there, wherever that is, or what is in memory.
    pub(crate) fn load(&self, state: &State, load: &Transfer, word: usize) -> u64 {
        let stores = state.flying.iter().filter(|other| other.kind == Kind::Store && other.is_before(load));
        let stored = stores.flat_map(|store| store.cells.iter().map(move |cell| (store.issuer, cell)));
        let last = stored.filter(|(_, cell)| cell.to == word && !cell.delivered).max_by_key(|&(issuer, _)| issuer);
        let Issuer::Agent { place, .. } = load.issuer else { unreachable!("no collective loads") };
        let found = || self.found(state, self.agents[place.agent].pe, word);
        last.map_or_else(found, |(_, cell)| cell.read.expect("stores have their values"))
    }

    /// Puts what is in flight in an order that depends on nothing that does not matter: within a scope the order of
    /// issue may matter, between scopes it does not.
    pub(crate) fn forget_order(&self, state: &mut State) {
        if self.rules.same_target_in_order {
            state.flying.sort_by_key(|transfer| match transfer.issuer {
                Issuer::Agent { scope, .. } => (0, scope, 0),
                Issuer::Collective { team, number, from } => (1 + team, number, from),
            });
        } else {
            state.flying.sort_unstable();
        }
    }
}

impl Transfer {
    /// Whether the same agent issued it earlier.
    fn is_before(&self, later: &Transfer) -> bool {
        match (self.issuer, later.issuer) {
            (Issuer::Agent { place: a, .. }, Issuer::Agent { place: b, .. }) => a.agent == b.agent && a.index < b.index,
            _ => false,
        }
    }
}
