//! The barrier of a cluster, at which the threads of all of its blocks meet.

use super::thread::State;
use super::{Block, FaultKind, Halt};
use crate::module::Place;
use crate::world::World;

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

impl Cluster {
    /// Whether a thread has waited here for all others.
    pub(super) fn has_been_passed_by(&self, thread: usize) -> bool {
        self.times > usize::from(self.through.contains(&thread))
    }
}

impl Block {
    /// The number of this barrier, beyond those of named barriers. Threads may arrive for the next time before all have waited for the last time.
    /// So [`Order`](super::order::Order) uses this number and the next one in turn.
    fn of_cluster(&self) -> usize {
        self.barriers.len()
    }

    /// Threads of a warp arrive at the barrier, or wait until all have arrived.
    pub(super) fn come_to_cluster(
        &mut self,
        world: &mut impl World,
        members: impl Iterator<Item = usize>,
        waits: bool,
        releases: bool,
        place: Place,
    ) -> Result<(), Halt> {
        let number = self.of_cluster();
        for index in members {
            let Cluster { arrived, through, times } = &mut self.cluster;
            let is_through = through.iter().position(|&other| other == index);
            match (waits, is_through, arrived.contains(&index)) {
                (false, None, false) => {
                    let first = arrived.is_empty();
                    arrived.push(index);
                    self.order.arrive(&[index], number + *times % 2, first, releases);
                    self.threads[index].spin.meets();
                }
                (true, Some(at), _) => {
                    through.swap_remove(at);
                    self.order.pass(&[index], number + (*times - 1) % 2);
                    self.meet_otherwise([index]);
                }
                (true, None, true) => self.threads[index].state = State::Barrier { number, place, d: 0 },
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
        let is_missing =
            |&index: &usize| self.blocks.has(index) && !self.threads[index].is_live() && !arrived.contains(&index);
        let missing: Vec<usize> = (0..self.threads.len()).filter(is_missing).collect();
        let mut waiting = std::mem::take(&mut self.cluster.arrived);
        let (mut at, of_cluster) = (Place::default(), self.of_cluster());
        waiting.retain(|&index| match self.threads[index].state {
            State::Barrier { number, place, .. } if number == of_cluster => {
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
        let barrier = of_cluster + self.cluster.times % 2;
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
