//! The life cycle, memory and registration: calls that are not operations.

use onesided::backend::{AllocId, Span};
use onesided::{At, Error, ErrorKind, UniqueId};

use super::agent::{Phase, Work};
use super::flight::Transfer;
use super::{Collective, Machine, Progress, Reply};
use crate::request::Call;
use crate::verdict::VerdictKind;

impl Machine {
    /// Performs a call that is no operation and no local access.
    pub(super) fn live(&mut self, pe: u32, call: &mut Call<'_>, at: At) -> Progress {
        match call {
            Call::Init { .. } if self.pes[pe as usize].initialized => {
                let message = "this process is a PE already; the library would ignore the second call's parameters";
                self.answer(pe, Reply::Failed(Error::new(ErrorKind::InvalidArgument, "init", message, at)))
            }
            Call::IsInitialized => {
                let initialized = self.pes[pe as usize].initialized;
                self.answer(pe, Reply::Value(u64::from(initialized)))
            }
            Call::Init { method, id } => {
                let what = Collective::Init { method, id: *id };
                self.enter(pe, 0, &what, at)
            }
            Call::Finalize { leaks } => {
                self.leaks.extend(leaks.iter().map(|live| (pe as usize, live.clone())));
                self.drain(pe)
            }
            Call::GlobalExit { status } => {
                self.found(VerdictKind::Exited { pe: pe as usize, status: *status });
                self.block(pe, Phase::Done)
            }
            Call::Alloc(layout) => self.quiet(pe, Some(&Collective::Alloc(*layout))),
            Call::Free(alloc) => self.quiet(pe, Some(&Collective::Free(*alloc))),
            Call::AllocExternal(bytes) => {
                let reply = match self.heap.alloc_external(pe, *bytes) {
                    Ok(alloc) => Reply::Alloc(alloc),
                    Err(why) => Reply::Failed(Error::new(ErrorKind::OutOfMemory, "alloc_external", why, at)),
                };
                self.answer(pe, reply)
            }
            Call::FreeExternal(alloc) => {
                self.heap.free_external(pe, *alloc);
                Progress::Done
            }
            Call::RegisterLocal => Progress::Done,
            Call::UnregisterLocal(alloc) => {
                self.still_used(*alloc, Some(pe), "unregister_local");
                Progress::Done
            }
            Call::RegisterSymmetric(alloc) => {
                let bytes = self.heap.external_len(pe, *alloc);
                self.enter_with(pe, 0, &Collective::Register { bytes }, alloc.0, at)
            }
            Call::UnregisterSymmetric(alloc) => self.quiet(pe, Some(&Collective::Unregister(*alloc))),
            Call::Team(request) => self.team_request(pe, request, at),
            Call::TeamMembers(team) => {
                let members = self.team_members(pe, *team);
                self.answer(pe, Reply::Members(Box::new(members)))
            }
            Call::TeamUniqueId => {
                let id = self.fresh_team_unique_id(pe);
                self.answer(pe, Reply::Value(id))
            }
            Call::UniqueId => {
                self.unique_ids += 1;
                let mut id = UniqueId::EMPTY;
                id.0[..12].copy_from_slice(b"onesided-sim");
                id.0[16..20].copy_from_slice(&pe.to_le_bytes());
                id.0[24..32].copy_from_slice(&self.unique_ids.to_le_bytes());
                self.answer(pe, Reply::UniqueId(Box::new(id)))
            }
            other => unreachable!("{} is handled elsewhere", other.name()),
        }
    }

    /// Everyone has entered a collective that moves no data: does it, and sets every member's reply.
    pub(super) fn complete_life(&mut self, team: u32, seq: u32, what: &Collective) {
        match what {
            Collective::Op(_) => {}
            Collective::Init { .. } => self.pes.iter_mut().for_each(|pe| pe.initialized = true),
            Collective::Finalize => {
                self.pes.iter_mut().for_each(|pe| pe.initialized = false);
                if !self.leaks.is_empty() {
                    let leaks = std::mem::take(&mut self.leaks);
                    self.found(VerdictKind::Leak { leaks });
                }
            }
            Collective::Alloc(layout) => {
                let at = self.entry_place(team, seq);
                let result = self.heap.alloc(*layout, at);
                self.reply_to_all(team, seq, |at| match &result {
                    Ok(alloc) => Reply::Alloc(*alloc),
                    Err(why) => Reply::Failed(Error::new(ErrorKind::OutOfMemory, "alloc", why.as_str(), at)),
                });
            }
            Collective::Free(alloc) => {
                if !self.still_used(*alloc, None, "free") {
                    self.heap.free(*alloc);
                }
            }
            Collective::Register { .. } => {
                let instance = self.teams.get(team).instance_ref(seq);
                let parts: Vec<AllocId> = instance.entries.iter().map(|entry| AllocId(entry.private)).collect();
                let at = self.entry_place(team, seq);
                let alloc = self.heap.register(&parts, at);
                self.reply_to_all(team, seq, |_| Reply::Alloc(alloc));
            }
            Collective::Unregister(alloc) => {
                if !self.still_used(*alloc, None, "unregister_symmetric") {
                    self.heap.unregister(*alloc);
                }
            }
            Collective::Split { .. } | Collective::Split2d { .. } => match self.split(team, what) {
                Ok(teams) => {
                    let mut teams = teams.into_iter();
                    self.reply_to_all(team, seq, |_| Reply::Teams(teams.next().expect("one for each member")));
                }
                Err(call) => {
                    let error = self.out_of_teams(call, self.entry_place(team, seq));
                    self.reply_to_all(team, seq, |_| Reply::Failed(error.clone()));
                }
            },
            Collective::Destroy => self.team_destroyed(),
        }
    }

    fn entry_place(&self, team: u32, seq: u32) -> At {
        let instance = self.teams.get(team).instance_ref(seq);
        instance.entries.iter().find_map(|entry| entry.at).expect("everyone has entered")
    }

    fn reply_to_all(&mut self, team: u32, seq: u32, mut reply: impl FnMut(At) -> Reply) {
        for member in 0..self.teams.get(team).instance_ref(seq).entries.len() {
            let entry = self.teams.get(team).instance_ref(seq).entries[member];
            self.agents[entry.agent as usize].reply = reply(entry.at.expect("everyone has entered"));
        }
    }

    /// Whether a transfer in flight, work on a stream or a collective still uses memory that is being given up (by all
    /// PEs, or by `owner` alone): a bug.
    fn still_used(&mut self, alloc: AllocId, owner: Option<u32>, call: &'static str) -> bool {
        let pes = owner.map_or(0..self.config.pes as u32, |pe| pe..pe + 1);
        for pe in pes.clone() {
            self.touch(pe, Span { alloc, start: 0, len: usize::MAX }, true); // its end and its use do not commute
        }
        let user = pes.clone().find_map(|pe| self.user_of(pe, alloc));
        let user = user.or_else(|| self.teams.collective_using(alloc));
        let Some((pe, at)) = user else { return false };
        let made_at = self.heap.made_at(alloc);
        self.found(VerdictKind::FreedInUse { call, alloc, made_at, pe: pe as usize, at });
        true
    }

    /// The line of something that a PE has issued and that still uses the memory.
    fn user_of(&self, pe: u32, alloc: AllocId) -> Option<(u32, At)> {
        let uses = |transfer: &Transfer| {
            let signal = transfer.signal.is_some_and(|update| update.word.alloc == alloc);
            signal || transfer.dst.alloc == alloc || transfer.src.alloc == alloc
        };
        let in_flight = [2 * pe, 2 * pe + 1].into_iter().find_map(|scope| {
            let transfer = self.flight.live(scope).find(|transfer| uses(transfer))?;
            Some((pe, transfer.at))
        });
        let mut agents = self.pes[pe as usize].streams.iter().map(|&stream| &self.agents[stream as usize]);
        in_flight.or_else(|| {
            agents.find_map(|stream| {
                let waits = stream.condition.as_ref().filter(|condition| condition.vars.alloc == alloc);
                let queued = stream.queue.iter().find_map(|work| match work {
                    Work::Op { op, at, .. } if op.uses(alloc) => Some(*at),
                    _ => None,
                });
                Some((pe, waits.and(stream.at).or(queued)?))
            })
        })
    }
}
