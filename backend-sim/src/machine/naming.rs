//! The steps that can be chosen, in words: which call's step it is, and by whom.

use onesided::At;

use super::Machine;
use super::agent::{Pending, State};
use super::ids::{AgentId, Id as _};
use super::transfer::{Kind, Unit, UnitStep};

impl Machine {
    /// The call that a choice is a step of: its line and its PE.
    pub(crate) fn choice_site(&self, index: usize) -> (Option<At>, usize) {
        match self.choice(index) {
            Ok(agent) => (self.call_of(agent).1, self.agents[agent].pe.index()),
            Err(unit) => {
                let transfer = self.flight.get(unit.transfer);
                (Some(transfer.at), self.issuer_of(unit).0)
            }
        }
    }

    /// A choice in words: `the delivery of put at ring.rs:7 by PE 0 to PE 1`. What hosts call is known in recorded runs. There, a transfer that is
    /// not the first of its line and stream has the step in which it was issued.
    pub(crate) fn choice_in_words(&self, index: usize) -> String {
        let by = |(pe, stream): (usize, Option<u32>), agent: Option<AgentId>| {
            let stream = stream.map(|stream| format!(" stream {stream}")).unwrap_or_default();
            let thread = agent.and_then(|agent| self.thread_of(agent)).map(|thread| format!(" ({thread})"));
            format!("by PE {pe}{stream}{}", thread.unwrap_or_default())
        };
        match self.choice(index) {
            Ok(id) => {
                let agent = &self.agents[id];
                let (call, at) = self.call_of(id);
                let part = match &agent.state {
                    State::Waiting(condition) if condition.is_loop => "",
                    State::Waiting(_) | State::Completing { .. } => "the end of ",
                    State::Pending(Pending::Enter(_)) => "the entry into ",
                    _ => "",
                };
                let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
                format!("{part}{call}{at} {}", by((agent.pe.index(), agent.stream()), Some(id)))
            }
            Err(unit) => {
                let transfer = self.flight.get(unit.transfer);
                let (step, there) = match unit.step {
                    UnitStep::Read => ("source read", format!("on PE {}", transfer.src_pe.index())),
                    UnitStep::Deliver => ("delivery", format!("to PE {}", transfer.dst_pe.index())),
                    UnitStep::Signal => ("signal", format!("to PE {}", transfer.dst_pe.index())),
                };
                let piece = match transfer.pieces {
                    2.. if unit.step != UnitStep::Signal => {
                        format!(" (piece {} of {})", unit.piece + 1, transfer.pieces)
                    }
                    _ => String::new(),
                };
                let (call, at, by) = (transfer.call, transfer.at, by(self.issuer_of(unit), transfer.issuer));
                let again = self.record.as_ref().and_then(|record| record.issued_again(transfer.key));
                let again = again.map(|step| format!(", issued in step {step}")).unwrap_or_default();
                match transfer.kind {
                    Kind::Load { .. } => format!("{call} at {at} {by}{piece}{again}"),
                    _ => format!("the {step} of {call} at {at} {by} {there}{piece}{again}"),
                }
            }
        }
    }

    fn choice(&self, index: usize) -> Result<AgentId, Unit> {
        match index.checked_sub(self.ready.len()) {
            None => Ok(self.ready[index]),
            Some(index) => Err(self.flight.units[index]),
        }
    }

    /// The call that an agent is in, or will make next.
    fn call_of(&self, agent: AgentId) -> (&'static str, Option<At>) {
        let agent = &self.agents[agent];
        match agent.queue.front() {
            Some(work) if !agent.is_host() => (work.what.name(), Some(work.at)),
            _ => (agent.call, agent.at),
        }
    }

    /// The PE that issued a transfer, and its stream. A collective's part is its source's.
    fn issuer_of(&self, unit: Unit) -> (usize, Option<u32>) {
        let transfer = self.flight.get(unit.transfer);
        match transfer.issuer {
            Some(agent) => (self.agents[agent].pe.index(), self.agents[agent].stream()),
            None => (transfer.src_pe.index(), None),
        }
    }
}
