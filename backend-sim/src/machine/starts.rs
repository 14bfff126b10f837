//! A host's blocking put or get to a PE waits until its own streams have started every earlier `put_nbi` to that PE.
//!
//! libnvshmem does so over NVLink (`put-pending` and what follows it in `backend-nvshmem/MEASURED.md`), as a quiet does; the
//! specification does not ask for it. If the stream waits for something that the host does later, the program hangs. So the simulator
//! shows that hang. The wait orders nothing, because it does not exist over a network.

use onesided::At;
use onesided::backend::{self, Effect, Moves, Op};

use super::Machine;
use super::agent::{State, Task};
use super::ids::{AgentId, PeId};
use super::transfer::Kind;
use crate::request::Call;

impl Machine {
    /// The PE that a host's call is about, if the call has to wait for what streams put to that PE.
    pub(super) fn waits_for_starts(&mut self, host: AgentId, call: &Call<'_>) -> Option<PeId> {
        let peer = peer_of(call)?;
        let me = self.agents[host].pe;
        if self.pes[me].unstarted > 0 && self.pending_put(me, peer).is_some() {
            return Some(peer);
        }
        self.follow_starts(host, peer);
        None
    }

    /// Blocks a host until streams have come to what they put to a PE.
    pub(super) fn await_starts(&mut self, host: AgentId, call: &Call<'_>, peer: PeId, at: At) {
        self.count_call(host, call, at);
        self.agents[host].call = call.name();
        if self.mode.needs.aiming {
            self.aim(host, call);
        }
        let is_choice = self.mode.needs.relaxed && self.is_choice(host, call);
        self.block(host, State::AwaitingStarts { peer, is_choice });
    }

    /// A stream has come to a non-blocking operation: the host may go on that waits for it.
    pub(super) fn has_started(&mut self, pe: PeId) {
        let host = self.pes[pe].host;
        if let State::AwaitingStarts { peer, is_choice } = self.agents[host].state {
            self.go_on_behind_starts(host, Some(peer), is_choice);
        }
    }

    /// A host that was kept from its call makes it, as soon as streams have come to what they put to the PE that it is about.
    pub(super) fn go_on_behind_starts(&mut self, host: AgentId, peer: Option<PeId>, is_choice: bool) {
        if let Some(peer) = peer {
            if self.pending_put(self.agents[host].pe, peer).is_some() {
                self.agents[host].state = State::AwaitingStarts { peer, is_choice };
                return;
            }
            self.follow_starts(host, peer);
        }
        self.goes_on_with_call(host, is_choice);
    }

    /// The first non-blocking put to a PE that a stream of `pe` has not come to: the stream, and the put.
    pub(super) fn pending_put(&self, pe: PeId, peer: PeId) -> Option<(AgentId, Op, At)> {
        self.pes[pe].streams.iter().find_map(|&stream| {
            self.agents[stream].queue.iter().find_map(|work| match &work.what {
                Task::Op { op, .. } if is_nbi_put(op, peer) => Some((stream, *op, work.at)),
                _ => None,
            })
        })
    }

    /// In every schedule the host's call comes after these starts, whether it had to wait or not.
    fn follow_starts(&mut self, host: AgentId, peer: PeId) {
        if !self.mode.needs.tracking {
            return;
        }
        let Machine { flight, agents, pes, .. } = self;
        let (scope, past) = (pes[agents[host].pe].stream_scope, &mut agents[host].past);
        flight.for_each_live(scope, |transfer| {
            let starts = transfer.past.as_ref().filter(|_| transfer.nbi && transfer.kind == Kind::Put);
            if let Some(starts) = starts.filter(|_| transfer.dst_pe == peer) {
                past.join(&starts.issued);
            }
        });
        flight.for_each_landed(scope, |landed| {
            if landed.nbi && landed.is_put && landed.rank.target == peer {
                past.join(&landed.issued);
            }
        });
    }
}

/// The PE that a host's blocking put without a signal goes to, or that its blocking get comes from.
pub(super) fn peer_of(call: &Call<'_>) -> Option<PeId> {
    let Call::Issue { op, stream: None, .. } = call else { return None };
    let Effect::Transfer(backend::Transfer { moves, peer, nbi: false, signal: None, .. }) = op.effect() else {
        return None;
    };
    matches!(moves, Moves::Put { .. } | Moves::Value(_) | Moves::Get { .. } | Moves::Fetch).then_some(PeId(peer))
}

/// Whether it is a non-blocking put to a PE that moves anything.
fn is_nbi_put(op: &Op, to: PeId) -> bool {
    match op.effect() {
        Effect::Transfer(backend::Transfer { moves: Moves::Put { .. }, peer, nbi: true, shape, signal, .. }) => {
            PeId(peer) == to && (shape.count > 0 || signal.is_some())
        }
        _ => false,
    }
}
