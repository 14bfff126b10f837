//! What every agent is doing and waits for, in words: the body of every report.

use onesided::DType;

use super::Machine;
use super::agent::{Agent, NONE, Phase};
use crate::verdict::{AgentState, Standing};

impl Machine {
    /// Where every host stands, and every stream that has something to do.
    pub(crate) fn agents_report(&self) -> Vec<AgentState> {
        let n = self.config.pes as u32;
        let streams = |pe: u32| {
            self.pes[pe as usize].streams.iter().copied().filter(|&stream| !self.agents[stream as usize].is_idle())
        };
        (0..n).flat_map(|pe| std::iter::once(pe).chain(streams(pe))).map(|agent| self.agent_report(agent)).collect()
    }

    fn agent_report(&self, agent: u32) -> AgentState {
        let Agent { pe, stream, call, at, phase, .. } = self.agents[agent as usize];
        let standing = match phase {
            Phase::Done => Standing::Finished,
            Phase::Running | Phase::Pending => Standing::Runs,
            _ => Standing::Waits(self.waits_for(agent)),
        };
        AgentState {
            pe: pe as usize,
            stream: (stream != NONE).then_some(stream as usize),
            call,
            last: None,
            at,
            standing,
        }
    }

    fn waits_for(&self, agent: u32) -> String {
        let Agent { pe, stream, phase, quieting, .. } = self.agents[agent as usize];
        match phase {
            Phase::Memory => self.condition_report(agent),
            Phase::Quiet if quieting == 1 => "a transfer to be delivered".into(),
            Phase::Quiet => format!("{quieting} transfers to be delivered"),
            Phase::Fence => "its transfers to be delivered (a fence completes, under this profile)".into(),
            Phase::Flush => "the sources of its non-blocking puts to be read".into(),
            Phase::Transfer => "its transfer to be delivered".into(),
            Phase::Collective { team, seq } => self.collective_report(team, seq),
            Phase::TeamInit { unique_id } => format!("the other members of the new team with id {unique_id}"),
            Phase::Synchronize { stream, .. } => {
                format!("its stream {} to finish", self.agents[stream as usize].stream)
            }
            Phase::Event { event, .. } => format!("its event {event} to be reached"),
            Phase::Drain => {
                let busy = self.pes[pe as usize].streams.iter().find(|&&s| !self.agents[s as usize].is_idle());
                match busy {
                    Some(&busy) => format!("its stream {} to finish", self.agents[busy as usize].stream),
                    None => "its transfers to be delivered".into(),
                }
            }
            Phase::Running | Phase::Pending | Phase::Done => format!("nothing (stream {stream})"),
        }
    }

    fn condition_report(&self, agent: u32) -> String {
        let Agent { pe, ref condition, .. } = self.agents[agent as usize];
        let condition = condition.as_ref().expect("an agent in a wait has a condition");
        match condition.first_unmet(&self.heap, pe) {
            Some((span, found, wanted)) => {
                let (symbol, dtype) = (condition.cmp.symbol(), condition.dtype);
                let made = self.heap.made_at(span.alloc).map(|at| format!(" (made at {at})"));
                let made = made.unwrap_or_default();
                let (wanted, found) = (signed(dtype, wanted), signed(dtype, found));
                format!("{}+{}{made} {symbol} {wanted}, found {found} ({dtype})", span.alloc, span.start)
            }
            None => "its condition, which holds".into(),
        }
    }

    fn collective_report(&self, team: u32, seq: u32) -> String {
        if seq == u32::MAX || self.teams.get(team).is_over(seq) {
            return "a collective that went wrong".into();
        }
        let state = self.teams.get(team);
        let instance = state.instance_ref(seq);
        let what = instance.what.as_ref().map_or("a collective", |what| what.name());
        let missing: Vec<usize> = (instance.entries.iter().enumerate())
            .filter(|(_, e)| e.agent == NONE)
            .map(|(m, _)| state.members.get(m))
            .collect();
        if missing.is_empty() {
            return format!("its data of {what} #{seq} on {}", self.team_name(team));
        }
        format!("{} to enter {what} #{seq} on {}", pes(&missing), self.team_name(team))
    }
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

/// The number that the bits of an element stand for. Only integers can be waited on.
fn signed(dtype: DType, bits: u64) -> i128 {
    match dtype {
        DType::I8 => i128::from(bits as i8),
        DType::I16 => i128::from(bits as i16),
        DType::I32 => i128::from(bits as i32),
        DType::I64 => i128::from(bits as i64),
        _ => i128::from(bits),
    }
}
