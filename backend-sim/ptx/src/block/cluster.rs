//! The barrier of a cluster. A cluster has one block here, so those who meet are its threads.

use super::thread::State;
use super::{Block, FaultKind, Halt};
use crate::module::Place;
use crate::world::World;

/// The number of this barrier, beyond those of named barriers. Threads may arrive for the next time before all have waited for the last time.
/// So [`Order`](super::order::Order) uses this number and the next one in turn.
const NUMBER: usize = 16;

/// Who has come to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// Who has arrived since all had arrived last.
    arrived: Vec<usize>,
    /// The threads that had arrived by then, and have not waited for it yet.
    through: Vec<usize>,
    /// How often all have arrived.
    times: usize,
}

impl Block {
    /// Threads of a warp arrive at the barrier, or wait until all have arrived.
    pub(super) fn come_to_cluster(
        &mut self,
        world: &mut impl World,
        members: impl Iterator<Item = usize>,
        waits: bool,
        releases: bool,
        place: Place,
    ) -> Result<(), Halt> {
        for index in members {
            let Cluster { arrived, through, times } = &mut self.cluster;
            let is_through = through.iter().position(|&other| other == index);
            match (waits, is_through, arrived.contains(&index)) {
                (false, None, false) => {
                    let first = arrived.is_empty();
                    arrived.push(index);
                    self.order.arrive(&[index], NUMBER + *times % 2, first, releases);
                    self.threads[index].spin.meets();
                }
                (true, Some(at), _) => {
                    through.swap_remove(at);
                    self.order.pass(&[index], NUMBER + (*times - 1) % 2);
                    self.meet_otherwise([index]);
                }
                (true, None, true) => self.threads[index].state = State::Barrier { number: NUMBER, place, d: 0 },
                (true, None, false) => {
                    let message = "waits at the barrier of the cluster, and has not arrived there";
                    return Err(self.fault(FaultKind::BarrierDivergence, index, place, message));
                }
                (false, ..) => {
                    let message = "arrives at the barrier of the cluster again, and has not waited there";
                    return Err(self.fault(FaultKind::BarrierDivergence, index, place, message));
                }
            }
        }
        self.complete_cluster(world)
    }

    /// Lets those go on who wait, if all threads that are left have arrived.
    pub(super) fn complete_cluster(&mut self, world: &mut impl World) -> Result<(), Halt> {
        let arrived = &self.cluster.arrived;
        let is_live = |index: &&usize| self.threads[**index].is_live();
        if arrived.is_empty() || arrived.iter().filter(is_live).count() < self.live {
            return Ok(());
        }
        // the barrier has waited for the end of those that have not arrived, but that does not order what they have done
        let is_missing = |index: &usize| !self.threads[*index].is_live() && !arrived.contains(index);
        let missing: Vec<usize> = (0..self.threads.len()).filter(is_missing).collect();
        let mut waiting = std::mem::take(&mut self.cluster.arrived);
        let mut at = Place::default();
        waiting.retain(|&index| match self.threads[index].state {
            State::Barrier { number: NUMBER, place, .. } => {
                self.threads[index].state = State::Ready;
                at = place;
                true
            }
            State::Exited => false,
            _ => {
                self.cluster.through.push(index);
                false
            }
        });
        let barrier = NUMBER + self.cluster.times % 2;
        if !missing.is_empty() {
            self.order.arrive(&missing, barrier, false, false);
        }
        self.order.pass(&waiting, barrier);
        self.cluster.times += 1;
        match self.cluster.through.is_empty() {
            true => self.have_met(world, &waiting, at),
            false => {
                self.meet_otherwise(waiting);
                Ok(())
            }
        }
    }
}
