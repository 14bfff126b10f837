//! Quiet, fence and sync: which transfers each completes, and who has claimed what.
//!
//! The library runs non-blocking operations beside their stream and keeps one list of them for each PE. *Any* quiet or
//! barrier, at its call, claims everything on that list. A later quiet does not wait for it again. The text promises less in one
//! way and more in another: a quiet completes what its own issue scope issued, and nothing else. `spec` allows what either
//! allows:
//!
//! * A quiet claims, when it is called, every non-blocking operation of the PE that nobody has claimed. When its turn comes, it
//!   also claims the blocking operations of its own scope.
//! * It waits for the delivery of what its own scope issued. Of what the other scope issued, it waits for the start:
//!   the library would hang where that never starts. It may wait for the delivery, as the library does, or not, as the text
//!   allows: its end is a step of its own, which may come at any time from then on.
//! * What it has claimed and need not deliver is *lent*. A quiet of the right scope that finds a lent operation leaves it to the
//!   claimer, which then has to deliver it. What is still lent when the claimer ends is free again.
//! * A fence is composed as a quiet, so it claims as one. It has to deliver nothing.
//!
//! Nobody claims what kernels issue. The device waits for all that is outstanding, whoever waits for it besides: each quiet
//! delivers what it covers ([`Quiet`](crate::Quiet)), and so does a quiet on a stream, behind the kernel.

use onesided::backend::{Effect, Op};

use super::agent::{Agent, State, Task};
use super::ids::{AgentId, ClaimId, ScopeId, Table};
use super::instance::Collective;
use super::past::Past;
use super::transfer::{Kind, Rank, Transfer};
use super::{Machine, Object, Progress, Touch};
use crate::race::{Detector, Ticket};

/// What a call completes before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completes {
    /// Everything of the issuer's scope: quiet, barrier, and what contains one.
    Scope,
    /// The same, but blocking operations stay on their streams' account: a fence that completes.
    Delivery,
    /// Nothing: a fence, which claims all the same.
    Nothing,
    /// The issuer's stores through peer pointers: sync.
    Stores,
}

impl Completes {
    /// Whether it waits for the delivery of its own scope's non-blocking operations.
    fn delivers_nbi(self) -> bool {
        match self {
            Completes::Scope | Completes::Delivery => true,
            Completes::Nothing | Completes::Stores => false,
        }
    }

    /// Whether it waits for the delivery of a blocking operation of its own scope.
    pub(crate) fn delivers(self, is_store: bool) -> bool {
        match self {
            Completes::Scope | Completes::Delivery => true,
            Completes::Nothing => false,
            Completes::Stores => is_store,
        }
    }
}

/// All claims.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    claims: Table<ClaimId, Claim>,
    free: Vec<ClaimId>,
}

/// What a call has claimed.
#[derive(Debug)]
struct Claim {
    owner: AgentId,
    /// Whether the owner's turn has come, so that it waits.
    waiting: bool,
    /// Claimed operations that have not started.
    unstarted: u32,
    /// Claimed operations that must be delivered, and are not.
    owed: u32,
    /// Whether it has claimed something that need not be delivered.
    lends: bool,
    /// Steps before the starts that it waits for.
    starts: Past,
}

/// Who has claimed an operation, and whether that one must deliver it: of a transfer, or of work on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) by: Option<ClaimId>,
    pub(crate) owed: bool,
}

/// How far an operation has come when it is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    InFlight,
    Landed,
}

impl Claims {
    pub(crate) fn clear(&mut self) {
        self.claims.truncate(0);
        self.free.clear();
    }

    fn open(&mut self, owner: AgentId) -> ClaimId {
        let claim = Claim { owner, waiting: false, unstarted: 0, owed: 0, lends: false, starts: Past::default() };
        match self.free.pop() {
            Some(id) => {
                self.claims[id] = claim;
                id
            }
            None => self.claims.push(claim),
        }
    }

    /// Operations that a claim still waits for: not started, not delivered.
    pub(crate) fn waits_for(&self, claim: ClaimId) -> (u32, u32) {
        (self.claims[claim].unstarted, self.claims[claim].owed)
    }

    pub(crate) fn lends(&self, claim: ClaimId) -> bool {
        self.claims[claim].lends
    }

    /// Whether the owner may end.
    fn is_complete(&self, claim: ClaimId) -> bool {
        self.waits_for(claim) == (0, 0)
    }
}

/// A call that claims.
struct Claimer<'a> {
    claims: &'a mut Claims,
    claim: Option<ClaimId>,
    owner: AgentId,
    /// Claims that were left something, which they have to deliver now.
    burdened: Vec<ClaimId>,
}

impl Claimer<'_> {
    /// Claims an operation, or leaves it to its claimer.
    fn take(&mut self, claimed: &mut Claimed, must_deliver: bool, stage: Stage) {
        let owes = u32::from(must_deliver && stage != Stage::Landed);
        match claimed.by {
            None => {
                let id = *self.claim.get_or_insert_with(|| self.claims.open(self.owner));
                *claimed = Claimed { by: Some(id), owed: must_deliver };
                let claim = &mut self.claims.claims[id];
                claim.unstarted += u32::from(stage == Stage::Queued);
                claim.owed += owes;
                claim.lends |= !must_deliver;
            }
            Some(other) if must_deliver && !claimed.owed => {
                claimed.owed = true;
                let claim = &mut self.claims.claims[other];
                claim.owed += owes;
                self.burdened.push(other);
            }
            Some(_) => {}
        }
    }

    /// Waits for an operation's delivery, whoever has claimed it.
    fn wait_for(&mut self, transfer: &mut Transfer) {
        let id = *self.claim.get_or_insert_with(|| self.claims.open(self.owner));
        self.claims.claims[id].owed += 1;
        transfer.awaited.push(id);
    }

    /// As [`Claimer::take`], of what the race detector knows of an operation: nobody waits for that.
    fn note(&mut self, claimed: &mut Claimed, must_deliver: bool) {
        match claimed.by {
            None => {
                let id = *self.claim.get_or_insert_with(|| self.claims.open(self.owner));
                *claimed = Claimed { by: Some(id), owed: must_deliver };
            }
            Some(_) => claimed.owed |= must_deliver,
        }
    }
}

/// # Claiming
impl Machine {
    /// A call that completes is made, by a host or for a stream: it claims the PE's non-blocking operations.
    #[inline]
    pub(super) fn claim_at_call(&mut self, agent: AgentId, completes: Completes) -> Option<ClaimId> {
        if completes == Completes::Stores || self.agents[agent].is_in_kernel() {
            return None; // neither do kernels claim what others issue
        }
        let state = &self.pes[self.agents[agent].pe];
        let scopes = [state.host_scope, state.stream_scope];
        let idle = state.unstarted == 0 && scopes.iter().all(|&scope| self.flight.is_quiet(scope));
        if idle && !self.mode.needs.tracking && !self.races.has_nbi(self.agents[agent].pe) {
            return None;
        }
        self.claim_outstanding(agent, completes, scopes)
    }

    fn claim_outstanding(&mut self, agent: AgentId, completes: Completes, scopes: [ScopeId; 2]) -> Option<ClaimId> {
        let Agent { pe, scope: own, .. } = self.agents[agent];
        let is_host = self.agents[agent].is_host();
        let state = &self.pes[pe];
        let outstanding = self.races.has_nbi(pe);
        let mut claimer = Claimer { claims: &mut self.claims, claim: None, owner: agent, burdened: Vec::new() };
        let mut starts = Past::default();
        for scope in scopes {
            let must_deliver = completes.delivers_nbi() && scope == own;
            // a host waits in its call, so nobody would see what it lends
            let takes = must_deliver || !is_host;
            let mut claim = |claimed: &mut Claimed, issued: Option<&Past>, stage| {
                if let (None, Some(issued)) = (claimed.by, issued) {
                    starts.join(issued); // it would have waited for the start
                }
                if takes {
                    claimer.take(claimed, must_deliver, stage);
                }
            };
            self.flight.for_each_live(scope, |transfer| {
                if transfer.nbi {
                    let issued = transfer.past.as_ref().map(|past| &past.issued);
                    claim(&mut transfer.claimed, issued, Stage::InFlight);
                }
            });
            self.flight.for_each_landed(scope, |landed| {
                if landed.nbi && !landed.complete {
                    claim(&mut landed.claimed, Some(&landed.issued), Stage::Landed);
                }
            });
        }
        if state.unstarted > 0 {
            let must_deliver = completes.delivers_nbi() && !is_host;
            for &stream in &state.streams {
                for work in &mut self.agents[stream].queue {
                    if let Task::Op { op, claimed, .. } = &mut work.what
                        && is_nbi(op)
                    {
                        claimer.take(claimed, must_deliver, Stage::Queued);
                    }
                }
            }
        }
        if starts != Past::default() {
            let claim = *claimer.claim.get_or_insert_with(|| claimer.claims.open(agent));
            claimer.claims.claims[claim].starts.join(&starts);
        }
        if outstanding {
            let starts = self.races.claim_nbi(agent, |own, claimed| {
                let must_deliver = completes.delivers_nbi() && own;
                if must_deliver || !is_host {
                    claimer.note(claimed, must_deliver);
                }
            });
            if let Some(starts) = starts {
                let claim = *claimer.claim.get_or_insert_with(|| claimer.claims.open(agent));
                self.races.will_learn(claim, &starts);
            }
        }
        let Claimer { claim, burdened, .. } = claimer;
        for other in burdened {
            self.settle(other); // it may not end yet
        }
        let claim = claim?;
        self.pes[pe].lends |= !is_host && self.claims.lends(claim);
        Some(claim)
    }

    /// The turn of a call that completes has come: it claims what is left of its scope, and waits. Then it enters a
    /// collective, if there is one.
    pub(super) fn complete(
        &mut self,
        agent: AgentId,
        claim: Option<ClaimId>,
        completes: Completes,
        then: Option<&Collective>,
    ) -> Progress {
        let (pe, scope) = (self.agents[agent].pe, self.agents[agent].scope);
        self.races.complete(agent, completes);
        // on a stream it is a quiet of the GPU, which covers what kernels have issued
        let (kernels, in_kernel) = (self.pes[pe].kernel_scope, self.agents[agent].is_in_kernel());
        let covers_kernels = match completes {
            Completes::Scope | Completes::Delivery => !self.agents[agent].is_host(),
            Completes::Stores => in_kernel, // a stream stores nothing through pointers
            Completes::Nothing => false,
        };
        if self.in_chosen_step {
            if self.agents[agent].is_stream() && completes != Completes::Stores {
                self.touch(Object::Scope(scope), Touch::Write);
            }
            // what a thread comes after is the same in every order
            let by_thread = in_kernel && self.orders_by_thread();
            let beside = completes != Completes::Stores || self.may_race(agent);
            if !by_thread && beside && (covers_kernels || in_kernel) {
                self.touch(Object::Scope(kernels), Touch::Read);
            }
            if claim.is_some_and(|claim| self.claims.lends(claim)) {
                self.touch(Object::Claims(pe), Touch::Read);
            }
        }
        let mut claim = claim;
        if !in_kernel && (!self.flight.is_quiet(scope) || self.mode.needs.tracking) {
            claim = self.claim_scope(agent, claim, completes);
        }
        if covers_kernels && (!self.flight.is_quiet(kernels) || self.mode.needs.tracking) {
            claim = self.await_kernels(agent, claim, completes);
        }
        self.wait_for_claim(agent, claim, then)
    }

    /// Claims the blocking operations of the agent's scope that the call completes.
    fn claim_scope(&mut self, agent: AgentId, claim: Option<ClaimId>, completes: Completes) -> Option<ClaimId> {
        let scope = self.agents[agent].scope;
        let mut claimer = Claimer { claims: &mut self.claims, claim, owner: agent, burdened: Vec::new() };
        self.flight.for_each_live(scope, |transfer| {
            let delivers = completes.delivers(transfer.kind == Kind::Store);
            if transfer.nbi || !delivers {
                return;
            }
            if completes == Completes::Delivery {
                claimer.wait_for(transfer);
            } else if transfer.claimed.by.is_none() {
                claimer.take(&mut transfer.claimed, true, Stage::InFlight);
            }
        });
        let past = &mut self.agents[agent].past;
        self.flight.for_each_landed(scope, |landed| {
            // a fence that completes waits for what is in flight, whoever has claimed it
            let counts = !landed.complete || completes == Completes::Delivery;
            if !landed.nbi && counts && completes.delivers(landed.rank.store.is_some()) {
                past.join(&landed.past);
                landed.complete |= completes == Completes::Scope;
            }
        });
        claimer.claim
    }

    /// Waits for what kernels have issued and the call covers, whoever waits for it besides.
    fn await_kernels(&mut self, agent: AgentId, claim: Option<ClaimId>, completes: Completes) -> Option<ClaimId> {
        let kernels = self.pes[self.agents[agent].pe].kernel_scope;
        let mut claimer = Claimer { claims: &mut self.claims, claim, owner: agent, burdened: Vec::new() };
        let (races, past) = (&self.races, &mut self.agents[agent].past);
        let covers = |rank: &Rank, ticket: &Option<Ticket>| match (completes, rank.store) {
            (Completes::Stores, store) => store.is_some() && races.comes_after_store(agent, ticket.as_ref()),
            (_, store) => completes.delivers(store.is_some()) && races.quiet_covers(agent, ticket.as_ref()),
        };
        self.flight.for_each_live(kernels, |transfer| {
            if covers(&transfer.rank, &transfer.ticket) {
                claimer.wait_for(transfer);
            }
        });
        self.flight.for_each_landed(kernels, |landed| {
            if covers(&landed.rank, &landed.ticket) {
                past.join(&landed.past);
            }
        });
        claimer.claim
    }
}

/// # What comes before what a kernel does itself
impl Machine {
    /// A thread of a kernel waits for some of what the PE's kernels have issued.
    pub(super) fn await_issued(
        &mut self,
        agent: AgentId,
        comes_first: impl Fn(&Detector, &Rank, Option<&Ticket>) -> bool,
    ) -> Progress {
        let kernels = self.agents[agent].scope;
        let mut claimer = Claimer { claims: &mut self.claims, claim: None, owner: agent, burdened: Vec::new() };
        let (races, past) = (&self.races, &mut self.agents[agent].past);
        let comes_first = |rank: &Rank, ticket: Option<&Ticket>| comes_first(races, rank, ticket);
        self.flight.for_each_live(kernels, |transfer| {
            if comes_first(&transfer.rank, transfer.ticket.as_ref()) {
                claimer.wait_for(transfer);
            }
        });
        self.flight.for_each_landed(kernels, |landed| {
            if comes_first(&landed.rank, landed.ticket.as_ref()) {
                past.join(&landed.past);
            }
        });
        let Claimer { claim, .. } = claimer;
        self.wait_for_claim(agent, claim, None)
    }
}

/// # Waiting for what is claimed
impl Machine {
    fn wait_for_claim(&mut self, agent: AgentId, claim: Option<ClaimId>, then: Option<&Collective>) -> Progress {
        let Some(claim) = claim else { return self.completed(agent, then) };
        if self.claims.is_complete(claim) && !self.ends_by_choice(claim) {
            self.end_claim(claim);
            return self.completed(agent, then);
        }
        self.claims.claims[claim].waiting = true;
        let then = then.map(|then| Box::new(then.clone()));
        self.agents[agent].state = State::Completing { claim, then };
        self.settle(claim);
        Progress::Blocked
    }

    /// Whether the owner's end is a step of its own: it has lent something, which others may find until then.
    fn ends_by_choice(&self, claim: ClaimId) -> bool {
        let Claim { owner, lends, .. } = self.claims.claims[claim];
        lends && self.mode.needs.relaxed && !self.agents[owner].is_host()
    }

    /// What the agent had to complete is complete.
    fn completed(&mut self, agent: AgentId, then: Option<&Collective>) -> Progress {
        match then {
            None => Progress::Done,
            Some(collective) => self.enter_in_turn(agent, collective),
        }
    }

    /// An operation of a stream that may be claimed has started.
    pub(super) fn started(&mut self, stream: AgentId, Claimed { by, owed }: Claimed, launched: bool) {
        let Some(claim) = by else { return };
        self.races.started(stream, claim);
        let state = &mut self.claims.claims[claim];
        state.starts.join(&self.agents[stream].past);
        state.unstarted -= 1;
        if owed && !launched {
            state.owed -= 1; // in order, or without data: it is delivered already
        }
        self.settle(claim);
    }

    /// What a transfer is claimed by once it has started. What a host has claimed and need not deliver is free then.
    pub(super) fn claimed_by_transfer(&self, claimed: Claimed) -> Claimed {
        match claimed.by {
            Some(claim) if !claimed.owed && self.agents[self.claims.claims[claim].owner].is_host() => {
                Claimed::default()
            }
            _ => claimed,
        }
    }

    /// A claimed operation has been delivered.
    pub(super) fn claimed_landed(&mut self, Claimed { by, owed }: Claimed, awaited: &[ClaimId]) {
        for claim in by.filter(|_| owed).into_iter().chain(awaited.iter().copied()) {
            self.claims.claims[claim].owed -= 1;
            self.settle(claim);
        }
    }

    /// Lets the owner go on, if it waits and nothing is left to wait for.
    fn settle(&mut self, claim: ClaimId) {
        let Claim { owner, waiting, .. } = self.claims.claims[claim];
        if !waiting {
            return;
        }
        let complete = self.claims.is_complete(claim);
        match (self.ends_by_choice(claim), self.agents[owner].ready.is_some()) {
            (true, ready) if complete => {
                self.learn_claim(claim);
                if !ready {
                    self.make_ready(owner);
                }
            }
            (true, true) if !complete => self.unready(owner),
            (false, _) if complete => self.end_completing(owner),
            _ => {}
        }
    }

    /// The owner ends, although it may have lent something that is not delivered.
    pub(super) fn end_by_choice(&mut self, owner: AgentId) {
        self.touch(Object::Claims(self.agents[owner].pe), Touch::Read);
        self.in_chosen_step = false;
        self.end_completing(owner);
    }

    fn end_completing(&mut self, owner: AgentId) {
        let state = std::mem::replace(&mut self.agents[owner].state, State::Running);
        let State::Completing { claim, then } = state else { unreachable!("the owner of a claim waits for it") };
        self.end_claim(claim);
        if self.completed(owner, then.as_deref()) == Progress::Done {
            self.finish(owner);
        }
    }

    /// The owner comes after what it waited for.
    fn learn_claim(&mut self, claim: ClaimId) {
        let Claim { owner, ref starts, .. } = self.claims.claims[claim];
        let Agent { pe, ref mut past, .. } = self.agents[owner];
        past.join(starts);
        for scope in self.pes[pe].scopes() {
            self.flight.for_each_landed(scope, |landed| {
                if landed.claimed == (Claimed { by: Some(claim), owed: true }) || landed.awaited.contains(&claim) {
                    past.join(&landed.past);
                }
            });
        }
    }

    /// The owner goes on: what it waited for is complete, and what it lent is free again.
    fn end_claim(&mut self, claim: ClaimId) {
        self.learn_claim(claim);
        let Claim { owner, lends, .. } = self.claims.claims[claim];
        self.races.end_claim(owner, claim);
        let pe = self.agents[owner].pe;
        let gives_back = lends && !self.agents[owner].is_host();
        for scope in self.pes[pe].scopes() {
            if gives_back {
                self.flight.for_each_live(scope, |transfer| {
                    if transfer.claimed.by == Some(claim) {
                        transfer.claimed = Claimed::default();
                    }
                });
            }
            self.flight.for_each_landed(scope, |landed| {
                if landed.claimed.by == Some(claim) {
                    landed.complete = landed.claimed.owed;
                    landed.claimed = Claimed::default();
                }
                landed.awaited.retain(|&other| other != claim);
            });
        }
        self.claims.free.push(claim);
    }
}

/// Whether the operation is one of those that run beside their stream.
pub(super) fn is_nbi(op: &Op) -> bool {
    matches!(op.effect(), Effect::Transfer(transfer) if transfer.nbi)
}
