//! Quiets and fences: what each claims, and waits for.
//!
//! The library has one list of non-blocking operations for each PE. Any quiet, barrier or fence claims, when it is called,
//! all that are on it, started or not; it waits for them, and later ones do not. The text says instead that a quiet waits for
//! what its own scope has issued. Both may happen:
//!
//! * A call claims the PE's non-blocking operations that nobody has claimed. It *owes* those of its own scope, if it is no
//!   fence; and what another quiet of that scope finds claimed, its claimer owes from then on.
//! * It ends when all that it has claimed is complete; or earlier, if everything has started and it owes nothing. Then the rest
//!   is free again.
//! * Blocking operations of the scope that are in flight when the call's turn comes belong to the first quiet.
//! * A fence puts before what follows the blocking operations of its scope, and the non-blocking ones that it has claimed itself. One
//!   that completes does so too: what another stream issues while it waits follows it.

use super::plan::{Completes, Completing, Place, Plan, Task};
use super::state::{State, Step};
use super::transfers::{Issuer, Transfer};

/// A claim to a non-blocking operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    by: Place,
    /// Whether the claimer must not end before.
    owed: bool,
}

impl Plan {
    /// A quiet or a fence is called.
    pub(crate) fn claim_at_call(&self, state: &mut State, completing: &Completing) {
        for &operation in &completing.earlier {
            let owed =
                completing.kind != Completes::Nothing && self.scope(operation.agent) == self.scope(completing.by.agent);
            if !self.has_started(state, operation) || state.flying.iter().any(|transfer| transfer.is_at(operation)) {
                let claim = state.claims.entry(operation).or_insert(Claim { by: completing.by, owed });
                claim.owed |= owed;
            }
        }
    }

    /// Its turn has come.
    pub(crate) fn complete(&self, state: &mut State, completing: &Completing) {
        let Place { agent, .. } = completing.by;
        if self.agents[agent].is_host {
            self.claim_at_call(state, completing);
        }
        let State { flying, claims, fences, .. } = state;
        let scope = self.scope(agent);
        let of_scope = flying.iter_mut().filter(|transfer| transfer.is_of(scope));
        if completing.kind == Completes::Quiet {
            let outstanding = of_scope.filter(|transfer| transfer.quiet.is_none() && !transfer.nbi);
            return outstanding.for_each(|transfer| transfer.quiet = Some(agent));
        }
        fences[scope] += 1;
        let is_mine = |transfer: &Transfer| {
            claims.iter().any(|(&operation, claim)| transfer.is_at(operation) && claim.by == completing.by)
        };
        for transfer in of_scope.filter(|transfer| !transfer.nbi || is_mine(transfer)) {
            transfer.covered.get_or_insert(fences[scope]);
            if completing.kind == Completes::Fence && !transfer.nbi {
                transfer.awaited |= 1 << agent;
            }
        }
    }

    /// Whether it waits.
    pub(crate) fn is_completing(&self, state: &State, completing: &Completing) -> bool {
        let Place { agent, .. } = completing.by;
        state.claims.values().any(|claim| claim.by == completing.by) || self.awaits_blocking(state, agent)
    }

    /// Whether an agent's quiet or fence waits for a blocking operation.
    fn awaits_blocking(&self, state: &State, agent: usize) -> bool {
        let awaited = |transfer: &Transfer| transfer.quiet == Some(agent) || transfer.awaited & (1 << agent) != 0;
        state.flying.iter().any(awaited)
    }

    /// A quiet or fence that owes nothing may end before all that it has claimed is complete.
    pub(crate) fn end_early(&self, state: &State, agent: usize, next: &mut Vec<Step>) {
        let Some(last) = state.agents[agent].begun.checked_sub(1) else { return };
        let Task::Complete(completing) = &self.agents[agent].work[last].task else { return };
        let claimed = |of: &Claim| of.by == completing.by;
        let mut claims = state.claims.iter().filter(|&(_, claim)| claimed(claim)).peekable();
        if claims.peek().is_some()
            && claims.all(|(&operation, claim)| self.has_started(state, operation) && !claim.owed)
            && !self.awaits_blocking(state, agent)
        {
            let mut state = state.clone();
            state.claims.retain(|_, claim| !claimed(claim));
            next.push(Step { to: state, accesses: Vec::new() });
        }
    }

    /// Whether an agent has begun a thing.
    pub(crate) fn has_started(&self, state: &State, operation: Place) -> bool {
        state.agents[operation.agent].begun > operation.index
    }
}

impl Transfer {
    /// Whether an agent issued it at this place of its work.
    fn is_at(&self, at: Place) -> bool {
        matches!(self.issuer, Issuer::Agent { place, .. } if place == at)
    }
}
