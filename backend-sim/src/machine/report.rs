//! What every agent is doing and waits for, in words: the body of every report.

use std::fmt::Write as _;

use onesided::At;
use onesided_ptx::{Then, View};

use super::Machine;
use super::access::{Comparison, is_shared};
use super::agent::{Condition, State, Task, signed};
use super::claim::Claimed;
use super::ids::{AgentId, ClaimId, Id as _, PeId, TeamIndex};
use crate::verdict::{AgentState, Standing};

impl Machine {
    /// Where every host stands, and every stream that has something to do.
    pub(crate) fn agents_report(&self) -> Vec<AgentState> {
        let of = |pe: PeId| {
            let streams = self.pes[pe].streams.iter().copied().filter(|&stream| !self.agents[stream].is_idle());
            let in_kernels = self.pes[pe].in_kernels.values().flatten().flatten().copied();
            let mut in_kernels: Vec<AgentId> = in_kernels.filter(|&agent| self.is_reported(agent)).collect();
            in_kernels.sort_by_key(|&agent| self.agents[agent].ordinal());
            std::iter::once(self.pes[pe].host).chain(streams).chain(in_kernels).map(|agent| self.agent_report(agent))
        };
        self.pes.ids().flat_map(of).collect()
    }

    pub(super) fn agent_report(&self, id: AgentId) -> AgentState {
        let agent = &self.agents[id];
        let standing = match &agent.state {
            State::Done => Standing::Finished,
            State::Running | State::Pending(_) => self.polls_report(agent).map_or(Standing::Runs, Standing::Waits),
            waiting => Standing::Waits(self.waits_for(id, waiting)),
        };
        let stream = agent.stream().map(|number| number as usize);
        let (pe, thread) = (agent.pe.index(), self.thread_of(id));
        AgentState { pe, stream, thread, call: agent.call, at: agent.at, loops: Vec::new(), standing }
    }

    fn waits_for(&self, id: AgentId, state: &State) -> String {
        let agent = &self.agents[id];
        match state {
            State::Waiting(condition) => self.condition_report(id, condition) + &self.sides_report(id),
            State::Completing { claim, .. } => self.claim_report(agent.pe, *claim),
            &State::AwaitingPhase(phase) => self.phase_report(id, phase),
            State::Flushing => "the sources of its non-blocking puts to be read".into(),
            State::Transferring => "its transfer to be delivered".into(),
            State::Reading => "the source of its put to be read".into(),
            State::Inside { team, seq } => self.collective_report(*team, *seq),
            State::Stuck => "a collective that went wrong".into(),
            State::JoiningTeam { unique_id } => format!("the other members of the new team with id {unique_id}"),
            State::Exchanging { registration, .. } => {
                format!("every PE to register its part of {registration}{}", self.made_at(*registration))
            }
            State::Synchronizing { stream, .. } => format!("{} to finish", self.stream_name(*stream)),
            State::AwaitingEvent { event, .. } => format!("its event {event} to be reached"),
            State::AwaitingStarts { peer, .. } => {
                let (stream, op, at) = self.pending_put(agent.pe, *peer).expect("it waits for one");
                self.not_reached(op.name(), at, stream)
            }
            State::Draining => {
                let busy = self.pes[agent.pe].streams.iter().find(|&&stream| !self.agents[stream].is_idle());
                busy.map_or("its transfers to be delivered".into(), |&busy| {
                    format!("{} to finish", self.stream_name(busy))
                })
            }
            State::InKernel => self.kernel_report(agent),
            State::Parked => self.parked_report(agent),
            State::Running | State::Pending(_) | State::Done => "nothing".into(),
        }
    }

    fn stream_name(&self, stream: AgentId) -> String {
        format!("its stream {}", self.agents[stream].stream().unwrap_or_default())
    }

    /// What a quiet still waits for. An operation that its stream has not reached may never start: it is named.
    fn claim_report(&self, pe: PeId, claim: ClaimId) -> String {
        let (unstarted, owed) = self.claims.waits_for(claim);
        if unstarted > 0 {
            let mut streams = self.pes[pe].streams.iter().map(|&stream| (stream, &self.agents[stream].queue));
            let pending = streams.find_map(|(stream, queue)| {
                queue.iter().find_map(|work| match &work.what {
                    Task::Op { op, claimed: Claimed { by: Some(by), .. }, .. } if *by == claim => {
                        Some(self.not_reached(op.name(), work.at, stream))
                    }
                    Task::Op { .. } | Task::Record { .. } | Task::WaitEvent { .. } => None,
                    Task::Launch(_) | Task::Look(_) => None,
                })
            });
            return pending.expect("an operation that has not started is in its stream's queue");
        }
        match owed {
            1 => "a transfer to be delivered".into(),
            more => format!("{more} transfers to be delivered"),
        }
    }

    fn not_reached(&self, call: &str, at: At, stream: AgentId) -> String {
        format!("{call} at {at}, which {} has not reached", self.stream_name(stream))
    }

    fn made_at(&self, alloc: onesided::backend::AllocId) -> String {
        self.heap.made_at(alloc).map(|at| format!(" (made at {at})")).unwrap_or_default()
    }

    fn condition_report(&self, agent: AgentId, condition: &Condition) -> String {
        let (me, pe, found) = (self.agents[agent].pe, condition.pe, self.found_by(agent, condition));
        if condition.is_satisfied_by(found) {
            return "its condition, which holds".into();
        }
        let (span, dtype) = (condition.variable(), condition.wait.dtype);
        let Comparison { cmp, dtype: compared, view, .. } = condition.comparison();
        let dtype = if view.is_none() { compared } else { dtype };
        let (wanted, found) = (signed(compared, condition.wanted()), signed(dtype, found));
        let (made, symbol) = (self.made_at(span.alloc), cmp.symbol());
        let part = view.map(part).unwrap_or_default();
        let held = if condition.has_held { "; it held before, and was changed before the wait saw it" } else { "" };
        let compared = format!("{part} {symbol} {wanted}, found {found} ({dtype}){held}");
        if is_shared(span.alloc) {
            return format!("{} in shared memory{compared}", self.named_in_shared(agent, span));
        }
        let of = if pe == me { String::new() } else { format!(" of PE {}", pe.0) };
        let unsent = self.unsent_report(pe, span, condition.wait.signal);
        format!("{}+{}{of}{made}{compared}{unsent}", span.alloc, span.start)
    }

    /// What else would end a kernel's loop that waits.
    fn sides_report(&self, agent: AgentId) -> String {
        let sides = self.sides_of(agent).iter().map(|side| {
            let (Comparison { cmp, dtype, view, .. }, span) = (side.comparison.negated(), side.variable);
            let part = view.map(part).unwrap_or_default();
            format!("; or for {}+{}{part} {} {}", span.alloc, span.start, cmp.symbol(), signed(dtype, side.wanted))
        });
        sides.collect()
    }

    fn collective_report(&self, team: TeamIndex, seq: u32) -> String {
        if self.teams.get(team).is_over(seq) {
            return "a collective that is over".into();
        }
        let state = self.teams.get(team);
        let instance = state.instance_ref(seq);
        let what = instance.what.as_ref().map_or("a collective", |what| what.name());
        let missing: Vec<usize> = (instance.entries.iter().enumerate())
            .filter(|(_, entry)| entry.agent.is_none())
            .map(|(member, _)| state.members.get(member))
            .collect();
        if missing.is_empty() {
            return format!("its data of {what} #{seq} on {}", self.team_name(team));
        }
        format!("{} to enter {what} #{seq} on {}", pes(&missing), self.team_name(team))
    }
}

/// What of a word is compared, behind its name: ` >> 32 & 0xffffffff - 5`.
fn part(View { shift, mask, then }: View) -> String {
    let mut text = String::new();
    if shift > 0 {
        _ = write!(text, " >> {shift}");
    }
    if mask.leading_zeros() > u32::from(shift) {
        _ = write!(text, " & {mask:#x}");
    }
    for then in then {
        _ = match then {
            Then::Nothing => Ok(()),
            Then::Plus(number) => write!(text, " + {number}"),
            Then::Minus(number) => write!(text, " - {number}"),
            Then::From(number) => write!(text, ", which is taken from {number},"),
            Then::Xor(number) => write!(text, " ^ {number:#x}"),
            Then::Bytes(order) => write!(text, ", its bytes as {order:#06x}"),
        };
    }
    text
}

/// `PE 3`, `PEs 1, 2`, or how many where there are too many to list.
fn pes(list: &[usize]) -> String {
    match list {
        [one] => format!("PE {one}"),
        few if few.len() <= 8 => {
            format!("PEs {}", few.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
        }
        many => format!("PEs {}, {}, {} and {} others", many[0], many[1], many[2], many.len() - 3),
    }
}
