//! What a step that can be chosen is going to touch, as far as it is known beforehand: by that a random search tells which steps
//! depend on each other. An exhaustive search goes by what steps have touched.

use onesided::backend::{Effect, How, Whose};

use super::agent::{Pending, State, Task};
use super::ids::{AgentId, PeId};
use super::transfer::{Kind, Unit, UnitStep, part_of};
use super::{Machine, Object};
use crate::request::Call;

/// One thing that a step is going to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aim {
    object: Object,
    writes: bool,
}

impl Aim {
    pub(super) fn new(object: Object, writes: bool) -> Aim {
        Aim { object, writes }
    }

    /// Whether the order of two steps with these aims can matter.
    pub(crate) fn meets(&self, other: &Aim) -> bool {
        (self.writes || other.writes) && self.object.overlaps(&other.object)
    }
}

impl Machine {
    /// Who acts if this choice is taken: an agent, or the PE that a transfer goes to.
    pub(crate) fn choice_owner(&self, index: usize) -> u64 {
        match index.checked_sub(self.agent_choices()) {
            None => self.choice_key(index),
            Some(unit) => u64::from(self.flight.get(self.flight.units[unit].transfer).dst_pe.0),
        }
    }

    /// Adds what this choice is going to touch.
    pub(crate) fn aims(&self, index: usize, into: &mut Vec<Aim>) {
        match index.checked_sub(self.agent_choices()) {
            None => self.aims_of_agent(self.ready[index], into),
            Some(unit) => self.aims_of_unit(self.flight.units[unit], into),
        }
    }

    fn aims_of_unit(&self, Unit { transfer, piece, step }: Unit, into: &mut Vec<Aim>) {
        let transfer = self.flight.get(transfer);
        let shape = transfer.shape;
        let piece_of = |span, stride| match stride {
            1 => part_of(span, transfer.bytes_of(piece).start, transfer.bytes_of(piece).len()),
            _ => span,
        };
        let memory = |pe, span, writes| Aim { object: Object::memory(pe, span), writes };
        let source = || memory(transfer.src_pe, piece_of(transfer.src, shape.src_stride), false);
        let target = || memory(transfer.dst_pe, piece_of(transfer.dst, shape.dst_stride), true);
        match (step, transfer.kind) {
            (UnitStep::Read, _) => into.push(source()),
            (UnitStep::Signal, _) => {
                into.extend(transfer.signal.map(|update| memory(transfer.dst_pe, update.word, true)));
            }
            (UnitStep::Deliver, Kind::Put | Kind::Store | Kind::Strong { .. }) => into.push(target()),
            (UnitStep::Deliver, Kind::Get) => into.extend([source(), target()]),
            (UnitStep::Deliver, Kind::Fetch | Kind::Load { .. }) => into.push(source()),
            (UnitStep::Deliver, Kind::Amo { .. }) => into.push(memory(transfer.dst_pe, transfer.dst, true)),
            (UnitStep::Deliver, Kind::Combine { .. } | Kind::Spread) => {}
        }
    }

    fn aims_of_agent(&self, id: AgentId, into: &mut Vec<Aim>) {
        let agent = &self.agents[id];
        match &agent.state {
            State::Pending(Pending::Call) if agent.queue.is_empty() => into.extend(agent.aim), // a host
            State::Pending(Pending::Access) => into.extend(agent.aim),
            State::Pending(Pending::Call) => {
                if let Some(Task::Op { op, .. }) = agent.queue.front().map(|work| &work.what) {
                    into.extend(aim_of(agent.pe, &op.effect()));
                }
                into.push(Aim { object: Object::Scope(agent.scope), writes: true });
            }
            State::Waiting(condition) => {
                let object = Object::memory(condition.pe, condition.variable());
                into.push(Aim { object, writes: condition.takes });
            }
            State::AwaitingPhase(phase) => {
                let block = self.block_name(self.block_of(id));
                into.extend(Object::shared(block, phase.mbarrier, 8).map(|object| Aim { object, writes: false }));
            }
            _ => {}
        }
    }

    /// Notes what a host's call is going to touch, once it is chosen.
    pub(super) fn aim(&mut self, host: AgentId, call: &Call<'_>) {
        let pe = self.agents[host].pe;
        self.agents[host].aim = match call {
            Call::Read { src, pe, .. } => Some(Aim { object: Object::memory(PeId(*pe), *src), writes: false }),
            Call::Write { dst, pe, .. } => Some(Aim { object: Object::memory(PeId(*pe), *dst), writes: true }),
            Call::Issue { op, stream: None, .. } => aim_of(pe, &op.effect()),
            _ => None,
        };
    }
}

/// What an operation touches of its issuer's own memory when it begins.
fn aim_of(pe: PeId, effect: &Effect) -> Option<Aim> {
    let mine = effect.accesses().find(|access| access.whose == Whose::Mine)?;
    let begins = match effect {
        Effect::Transfer(transfer) => transfer.reads_source(),
        _ => true,
    };
    let writes = matches!(mine.how, How::Write | How::AtomicUpdate);
    begins.then_some(Aim { object: Object::memory(pe, mine.span), writes })
}
