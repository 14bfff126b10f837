//! Allocation and registration, and the host's accesses by multicast.

use onesided::backend::{AllocId, Layout, Span, TeamId};
use onesided::{At, DType, Error, ErrorKind, ReduceOp};

use super::agent::{State, Task};
use super::claim::Completes;
use super::ids::{AgentId, Id as _, PeId, TeamIndex};
use super::relaxed::Asked;
use super::transfer::Transfer;
use super::{Collective, Machine, Object, Past, Progress, Reply, Touch};
use crate::race::How;
use crate::request::Call;
use crate::verdict::VerdictKind;

/// A symmetric registration: the steps before its entries, which whoever uses it comes after.
#[derive(Debug)]
pub(crate) struct Registration {
    alloc: AllocId,
    past: Past,
}

impl Machine {
    /// Performs a call about memory.
    pub(super) fn memory_call(&mut self, host: AgentId, call: &mut Call<'_>, at: At) -> Progress {
        let pe = self.agents[host].pe;
        match call {
            Call::Alloc(layout) => self.complete_and_enter(host, &Collective::Alloc(*layout)),
            Call::Free(alloc) => self.complete_and_enter(host, &Collective::Free(*alloc)),
            Call::UnregisterSymmetric(alloc) => self.complete_and_enter(host, &Collective::Unregister(*alloc)),
            Call::AllocExternal(bytes) => {
                let reply = match self.heap.alloc_external(pe, *bytes) {
                    Ok(alloc) => Reply::Alloc(alloc),
                    Err(why) => Reply::Failed(Error::new(ErrorKind::OutOfMemory, "alloc_external", why, at)),
                };
                self.answer(host, reply)
            }
            Call::FreeExternal(alloc) => {
                self.gives_up(host, *alloc, ("free_external", at));
                if !self.paused && !self.has_finding() {
                    self.heap.free_external(pe, *alloc); // behind the finding that it is in use, it still is
                }
                Progress::Done
            }
            Call::RegisterLocal => Progress::Done,
            Call::UnregisterLocal(alloc) => {
                self.gives_up(host, *alloc, ("unregister_local", at));
                Progress::Done
            }
            Call::RegisterSymmetric(alloc) => {
                let bytes = self.heap.external_len(pe, *alloc);
                self.pes[pe].registering = Some(*alloc);
                self.enter(host, TeamIndex(0), &Collective::Register { bytes }, at)
            }
            other => unreachable!("{} is handled elsewhere", other.name()),
        }
    }

    /// A PE gives up memory of its own, or the right to use it in transfers. That is a write to all of it.
    fn gives_up(&mut self, host: AgentId, alloc: AllocId, asked: Asked) {
        let owner = Some(self.agents[host].pe);
        if !self.still_used(alloc, owner, asked.0) {
            self.races.freed(host, (alloc, owner), asked);
        }
    }

    /// What begins with a quiet of the host: a barrier in all but name.
    fn complete_and_enter(&mut self, host: AgentId, what: &Collective) -> Progress {
        if self.in_chosen_step {
            self.touch(Object::Claims(self.agents[host].pe), Touch::Write);
        }
        let claim = self.claim_at_call(host, Completes::Scope);
        self.complete(host, claim, Completes::Scope, Some(what))
    }

    pub(super) fn allocate(&mut self, team: TeamIndex, seq: u32, layout: Layout) {
        let entries = &self.teams.get(team).instance_ref(seq).entries;
        let at = entries.iter().find_map(|entry| entry.at).expect("everyone has entered");
        let by = entries.iter().find_map(|entry| entry.agent);
        let result = self.heap.alloc(layout, at);
        if let (Some(agent), Ok(alloc)) = (by, &result) {
            self.lint_made(agent, *alloc, layout, at);
        }
        self.reply_to_all(team, seq, |at| match &result {
            Ok(alloc) => Reply::Alloc(*alloc),
            Err(why) => Reply::Failed(Error::new(ErrorKind::OutOfMemory, "alloc", why.as_str(), at)),
        });
    }

    pub(super) fn free(&mut self, team: TeamIndex, seq: u32, alloc: AllocId) {
        if !self.still_used(alloc, None, "free") {
            self.observe_freed(team, seq, alloc, "free");
            self.heap.free(alloc);
            self.paths.freed(alloc);
        }
    }

    pub(super) fn unregister(&mut self, team: TeamIndex, seq: u32, alloc: AllocId) {
        if !self.still_used(alloc, None, "unregister_symmetric") {
            self.observe_freed(team, seq, alloc, "unregister_symmetric");
            self.heap.unregister(alloc);
            self.registrations.retain(|registration| registration.alloc != alloc);
        }
    }

    /// The end of memory is a write to all of it, behind every member's entry.
    fn observe_freed(&mut self, team: TeamIndex, seq: u32, alloc: AllocId, call: &'static str) {
        let entry = self.teams.get(team).instance_ref(seq).entries.first();
        if let Some((agent, at)) = entry.and_then(|entry| entry.agent.zip(entry.at)) {
            self.races.freed(agent, (alloc, None), (call, at));
        }
    }

    /// A PE's external memory becomes its part of a registration. With the last one, those go on that need the others'.
    pub(super) fn register_part(&mut self, host: AgentId, alloc: AllocId) {
        let pe = self.agents[host].pe;
        let external = self.pes[pe].registering.take().expect("the PE registers something");
        let complete = self.heap.register_part(alloc, pe, external);
        let known = self.registrations.iter().position(|registration| registration.alloc == alloc);
        let index = known.unwrap_or_else(|| {
            self.registrations.push(Registration { alloc, past: Past::default() });
            self.registrations.len() - 1
        });
        self.registrations[index].past.join(&self.agents[host].past);
        if complete {
            self.exchanged(alloc);
        }
    }

    /// The handles of a registration are there: agents that need them go on with the call that they have not begun.
    fn exchanged(&mut self, alloc: AllocId) {
        for agent in self.agents.ids() {
            let State::Exchanging { registration, peer } = self.agents[agent].state else { continue };
            if registration != alloc {
                continue;
            }
            self.learn_registrations(agent);
            match self.agents[agent].is_host() {
                true => self.go_on_behind_starts(agent, peer, self.mode.needs.relaxed),
                false => {
                    self.agents[agent].state = State::Running;
                    self.woken.push_back(agent);
                }
            }
        }
    }

    /// Whoever uses registered memory comes after its registration on every PE.
    pub(super) fn learn_registrations(&mut self, agent: AgentId) {
        for Registration { alloc, past } in &self.registrations {
            if !self.heap.is_incomplete(*alloc) {
                self.agents[agent].past.join(past);
            }
        }
    }

    /// Whether a transfer in flight, work on a stream or a collective still uses memory that is being given up (by all
    /// PEs, or by `owner` alone): a bug.
    fn still_used(&mut self, alloc: AllocId, owner: Option<PeId>, call: &'static str) -> bool {
        let pes = owner.map_or(0..self.pes.len(), |pe| pe.index()..pe.index() + 1);
        for pe in pes.clone().map(PeId::new) {
            self.touch_memory(pe, Span { alloc, start: 0, len: usize::MAX }, Touch::Write); // its end and its use do not commute
        }
        let user = pes.map(PeId::new).find_map(|pe| self.user_of(pe, alloc));
        let user = user.or_else(|| self.teams.collective_using(alloc));
        let Some((pe, at)) = user else { return false };
        let made_at = self.heap.made_at(alloc);
        self.found(VerdictKind::FreedInUse { call, alloc, made_at, pe: pe.index(), at });
        true
    }

    /// The line of something that a PE has issued and that still uses the memory.
    fn user_of(&self, pe: PeId, alloc: AllocId) -> Option<(PeId, At)> {
        let uses = |transfer: &&Transfer| {
            let signal = transfer.signal.is_some_and(|update| update.word.alloc == alloc);
            let reads = transfer.reads_later() && transfer.src.alloc == alloc;
            signal || reads || transfer.dst.alloc == alloc
        };
        let scopes = self.pes[pe].scopes();
        let in_flight = scopes.into_iter().find_map(|scope| self.flight.live(scope).find(uses));
        let mut streams = self.pes[pe].streams.iter().map(|&stream| &self.agents[stream]);
        let at = in_flight.map(|transfer| transfer.at).or_else(|| {
            streams.find_map(|stream| {
                let waits = matches!(&stream.state, State::Waiting(waits) if waits.wait.vars.alloc == alloc);
                let queued = stream.queue.iter().find_map(|work| match &work.what {
                    Task::Op { op, .. } if op.uses(alloc) => Some(work.at),
                    Task::Launch(launched) if launched.uses(alloc) => Some(work.at),
                    Task::Op { .. } | Task::Record { .. } | Task::WaitEvent { .. } => None,
                    Task::Launch(_) | Task::Look(_) => None,
                });
                stream.at.filter(|_| waits).or(queued)
            })
        });
        Some((pe, at?))
    }
}

/// # Multicast
impl Machine {
    /// A host stores to every member's memory: to its own at once.
    pub(super) fn multicast_write(
        &mut self,
        host: AgentId,
        team: TeamId,
        (dst, dtype): (Span, DType),
        from: &[u8],
        at: At,
    ) -> Progress {
        let me = self.agents[host].pe;
        for of in self.team_members(me, team).iter().map(PeId::new) {
            if of == me {
                self.observe(host, me, dst, How::Write, dtype.size(), ("write", at)); // as a write of its own
                self.write(me, dst, from);
            } else {
                self.store(host, of, dst, dtype, from, at);
            }
        }
        Progress::Done
    }

    /// A host loads the reduction of every member's memory.
    pub(super) fn multicast_read(
        &mut self,
        host: AgentId,
        team: TeamId,
        (src, dtype, op): (Span, DType, ReduceOp),
        into: &mut [u8],
        asked: Asked,
    ) -> Progress {
        for (i, of) in self.team_members(self.agents[host].pe, team).iter().enumerate() {
            self.observe(host, PeId::new(of), src, How::Read, dtype.size(), asked);
            self.touch_memory(PeId::new(of), src, Touch::Read);
            let bytes = self.heap.bytes(PeId::new(of), src);
            match i {
                0 => into.copy_from_slice(bytes),
                _ => crate::reduce::combine(dtype, op, into, bytes),
            }
        }
        Progress::Done
    }
}
