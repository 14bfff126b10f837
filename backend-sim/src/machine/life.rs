//! The life cycle: initialization, finalization, exit.

use onesided::backend::Live;
use onesided::{At, Error, ErrorKind, UniqueId};

use super::agent::State;
use super::ids::{AgentId, Id as _, PeId, TeamIndex};
use super::instance::Made;
use super::{Collective, Machine, Progress, Reply};
use crate::request::Call;
use crate::verdict::VerdictKind;

/// Steps that the others may take behind the end of the job: they may be in a loop that only the end leaves.
const BEHIND_AN_EXIT: u64 = 10_000;

impl Machine {
    /// Performs a call that is no operation, no local access and about no stream.
    pub(super) fn live(&mut self, host: AgentId, call: &mut Call<'_>, at: At) -> Progress {
        let pe = self.agents[host].pe;
        match call {
            Call::Init { .. } if self.pes[pe].initialized => {
                let message = "this process is a PE already; the library would ignore the second call's parameters";
                self.answer(host, Reply::Failed(Error::new(ErrorKind::InvalidArgument, "init", message, at)))
            }
            Call::IsInitialized => {
                let initialized = self.pes[pe].initialized;
                self.answer(host, Reply::Value(u64::from(initialized)))
            }
            Call::Init { method, id } => {
                let what = Collective::Init { method, id: id.map(Box::new) };
                self.enter(host, TeamIndex(0), &what, at)
            }
            Call::Finalize { leaks } => {
                self.note_leaks(pe, leaks);
                self.drain(host)
            }
            Call::GlobalExit { status } => {
                self.exit(VerdictKind::Exited { pe: pe.index(), status: *status, kernel: None });
                self.block(host, State::Done)
            }
            Call::Team(request) => self.team_request(host, request, at),
            Call::TeamMembers(team) => {
                let members = self.team_members(pe, *team);
                self.answer(host, Reply::Members(Box::new(members)))
            }
            Call::TeamUniqueId => {
                let id = self.fresh_team_unique_id(pe);
                self.answer(host, Reply::Value(id))
            }
            Call::UniqueId => {
                self.unique_ids += 1;
                let mut id = UniqueId::EMPTY;
                id.0[..12].copy_from_slice(b"onesided-sim");
                id.0[16..20].copy_from_slice(&pe.0.to_le_bytes());
                id.0[24..32].copy_from_slice(&self.unique_ids.to_le_bytes());
                self.answer(host, Reply::UniqueId(Box::new(id)))
            }
            memory => self.memory_call(host, memory, at),
        }
    }

    /// A PE ends the job. The others may have gone on for any time before they see it, so a relaxed run lets them: what they do then, they
    /// do in some schedule where the end comes later. Nobody waits for the end, so it is no choice.
    pub(super) fn exit(&mut self, exited: VerdictKind) {
        if !self.mode.needs.relaxed || !exited.is_ok() {
            return self.found(exited);
        }
        self.exited.get_or_insert(exited);
        self.until = self.until.min(self.steps + BEHIND_AN_EXIT);
    }

    /// A host finalizes as its last act: it need not be resumed for that.
    pub(crate) fn leave_job(&mut self, host: AgentId, leaks: &[Live], at: At) {
        let pe = self.agents[host].pe;
        self.agents[host].at = Some(at);
        self.agents[host].call = "finalize";
        self.step();
        self.record_named(host, "finalize", at);
        self.note_leaks(pe, leaks);
        self.pes[pe].leaving = true;
        self.drain(host);
    }

    fn note_leaks(&mut self, pe: PeId, leaks: &[Live]) {
        self.leaks.extend(leaks.iter().map(|live| (pe.index(), live.clone())));
    }

    /// A PE finalizes: waits for its streams and for everything in flight, then enters.
    fn drain(&mut self, host: AgentId) -> Progress {
        self.block(host, State::Draining);
        self.drain_further(self.agents[host].pe);
        Progress::Blocked
    }

    /// Something of the PE has ended; a finalize that waits for it may go on.
    #[inline]
    pub(super) fn drain_further(&mut self, pe: PeId) {
        if matches!(self.agents[self.pes[pe].host].state, State::Draining) {
            self.try_finalize(pe);
        }
    }

    fn try_finalize(&mut self, pe: PeId) {
        let host = self.pes[pe].host;
        let state = &self.pes[pe];
        let idle = state.streams.iter().all(|&stream| self.agents[stream].is_idle());
        if !idle || state.scopes().iter().any(|&scope| !self.flight.is_quiet(scope)) {
            return;
        }
        if self.mode.needs.tracking {
            self.learn_everything(pe);
        }
        let at = self.agents[host].at.expect("a call has a place");
        self.agents[host].state = State::Running;
        if self.enter(host, TeamIndex(0), &Collective::Finalize, at) == Progress::Done {
            self.finish(host);
        }
    }

    /// The host comes after everything that its PE has issued.
    fn learn_everything(&mut self, pe: PeId) {
        let state = &self.pes[pe];
        let (host, streams, scopes) = (state.host, state.streams.clone(), state.scopes());
        for stream in streams {
            let past = self.agents[stream].past.clone();
            self.agents[host].past.join(&past);
        }
        let past = &mut self.agents[host].past;
        for scope in scopes {
            self.flight.for_each_landed(scope, |landed| past.join(&landed.past));
        }
    }

    /// Everyone has entered a collective that members leave together: does it, and sets every member's reply.
    pub(super) fn complete_life(&mut self, team: TeamIndex, seq: u32, what: &Collective) {
        match what {
            Collective::Op(_) => {}
            Collective::Init { .. } => self.pes.iter_mut().for_each(|pe| pe.initialized = true),
            Collective::Finalize => {
                self.pes.iter_mut().for_each(|pe| pe.initialized = false);
                self.launches_are_complete();
                if !self.leaks.is_empty() {
                    let mut leaks = std::mem::take(&mut self.leaks);
                    leaks.sort_by_key(|(pe, _)| *pe);
                    self.found(VerdictKind::Leak { leaks });
                }
            }
            Collective::Alloc(layout) => self.allocate(team, seq, *layout),
            Collective::Free(alloc) => self.free(team, seq, *alloc),
            Collective::Unregister(alloc) => self.unregister(team, seq, *alloc),
            Collective::Register { .. }
            | Collective::Split { .. }
            | Collective::Split2d { .. }
            | Collective::Destroy => unreachable!("{what} is left at once"),
        }
    }

    /// A member has entered a collective that members leave at once, the first or the `last`: what all of them get.
    pub(super) fn make(&mut self, team: TeamIndex, what: &Collective, last: bool, at: At) -> Made {
        match what {
            Collective::Split { .. } | Collective::Split2d { .. } => self.split(team, what, last, at),
            Collective::Register { bytes } => Made::Alloc(self.heap.begin_registration(*bytes, at)),
            Collective::Destroy => Made::Nothing,
            Collective::Op(_)
            | Collective::Init { .. }
            | Collective::Finalize
            | Collective::Alloc(_)
            | Collective::Free(_)
            | Collective::Unregister(_) => unreachable!("{what} is not left at once"),
        }
    }

    /// A member of such a collective gets its own.
    pub(super) fn member_takes(&mut self, agent: AgentId, team: TeamIndex, what: &Collective, reply: &Reply) {
        match (what, reply) {
            (_, Reply::Teams(teams)) => self.takes_teams(agent, teams),
            (Collective::Destroy, _) => self.destroys_team(agent, team),
            (_, Reply::Alloc(alloc)) => self.register_part(agent, *alloc),
            _ => {}
        }
    }

    /// Sets what everyone's call returns.
    pub(super) fn reply_to_all(&mut self, team: TeamIndex, seq: u32, mut reply: impl FnMut(At) -> Reply) {
        for entry in &self.teams.get(team).instance_ref(seq).entries {
            let (agent, at) = entry.agent.zip(entry.at).expect("everyone has entered");
            self.agents[agent].answer(reply(at));
        }
    }
}
