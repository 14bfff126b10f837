//! Named barriers, and threads of a block that wait for each other in vain.

use super::lanes::each_lane;
use super::thread::State;
use super::{Block, FaultKind, Halt};
use crate::module::Place;
use crate::op::{Barrier, InGroup, Reg, Warp};
use crate::world::World;

/// Barriers of a block.
pub(super) const NUMBERS: usize = 16;

/// Who has come to a barrier so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    waiting: Vec<usize>,
    /// Those who only arrive, and go on.
    passed: Vec<usize>,
    /// The number of threads that it takes, if the instruction says.
    count: Option<u32>,
    kind: Option<Barrier>,
    holding: u32,
}

/// Threads of a warp come to a barrier.
pub(super) struct Arrival {
    pub(super) kind: Barrier,
    pub(super) number: u32,
    pub(super) count: Option<u32>,
    pub(super) aligned: bool,
    /// Where the result of a reduction goes.
    pub(super) d: Reg,
    pub(super) place: Place,
}

impl Block {
    /// Threads of a warp come to a barrier and wait, unless they are the last ones. `holding`: the lanes whose predicate to reduce is true.
    pub(super) fn come_to_barrier(
        &mut self,
        world: &mut impl World,
        members: impl Iterator<Item = usize> + Clone,
        arrival: &Arrival,
        holding: u32,
    ) -> Result<(), Halt> {
        let &Arrival { kind, number, place, d, .. } = arrival;
        let Some(first) = members.clone().next() else { return Ok(()) };
        self.check_barrier(first, arrival)?;
        let number = self.barrier_of(first, number);
        let barrier = &mut self.barriers[number];
        barrier.holding += holding.count_ones();
        if kind == Barrier::Arrive {
            let come = barrier.passed.len();
            barrier.passed.extend(members);
            self.order.arrive(&barrier.passed[come..], number, come == 0, true);
            self.meet_otherwise(self.barriers[number].passed[come..].to_vec());
        } else {
            barrier.kind = Some(kind);
            barrier.waiting.extend(members.clone());
            self.waited_at |= 1 << number;
            members.for_each(|index| self.threads[index].state = State::Barrier { number, place, d });
        }
        self.complete(world, number)
    }

    /// The place of a barrier of the thread's block among those of all blocks.
    fn barrier_of(&self, index: usize, number: u32) -> usize {
        self.blocks.rank(index) * NUMBERS + number as usize
    }

    /// Whether threads of the warp of this one may come to the barrier in this way. The first that come say in which.
    fn check_barrier(&mut self, index: usize, arrival: &Arrival) -> Result<(), Halt> {
        let &Arrival { kind, number, count, aligned, place, .. } = arrival;
        let invalid = |message: String| Err(self.fault(FaultKind::InvalidOperand, index, place, message));
        if number as usize >= NUMBERS {
            return invalid(format!("barrier {number}; a block has barriers 0 to 15"));
        }
        if count.is_some_and(|count| count == 0 || count % 32 != 0) {
            return invalid(format!(
                "a barrier of {} threads; the number is a multiple of the size of a warp",
                count.unwrap_or(0)
            ));
        }
        let number = self.barrier_of(index, number);
        if aligned {
            // All threads of a warp come to the same instruction.
            let elsewhere = self.warp_of(index).find_map(|other| match self.threads[other].state {
                State::Barrier { place: there, number: same, .. } if there != place && same == number => {
                    Some((other, there))
                }
                _ => None,
            });
            if let Some(other) = elsewhere {
                let message = "barrier divergence: threads of one warp are at different barriers";
                return Err(self.fault_with(FaultKind::BarrierDivergence, (index, place), other, message));
            }
        }
        let barrier = &mut self.barriers[number];
        if barrier.waiting.is_empty() && barrier.passed.is_empty() {
            (barrier.count, barrier.kind, barrier.holding) = (count, None, 0);
        }
        // without a number, a barrier takes all threads of the block
        let taken = |count: Option<u32>| count.map_or(self.blocks.threads.next_multiple_of(32), |count| count as usize);
        let mixed = barrier.kind.is_some_and(|other| kind != Barrier::Arrive && other != kind);
        if taken(barrier.count) != taken(count) || mixed {
            let other = barrier.waiting.first().or(barrier.passed.first()).copied().unwrap_or(index);
            let message = "barrier divergence: threads come to one barrier with different numbers of threads or different reductions";
            return Err(self.fault_with(
                FaultKind::BarrierDivergence,
                (index, place),
                (other, self.place_of(other, place)),
                message,
            ));
        }
        Ok(())
    }

    /// How many threads have come to a barrier that was given a number of threads. A warp counts as 32 once all its live threads have come, even if
    /// others have exited or never existed.
    fn counted(&self, barrier: &Named) -> usize {
        let come = || barrier.waiting.iter().chain(&barrier.passed).copied();
        let mut warps: Vec<usize> = come().map(|index| index / 32).collect();
        warps.sort_unstable();
        let mut counted = 0;
        for warp in warps.chunk_by(|one, other| one == other) {
            let members = self.warp_of(32 * warp[0]);
            let live = members.filter(|&index| self.threads[index].is_live()).count();
            counted += if warp.len() >= live { 32 } else { warp.len() };
        }
        counted
    }

    /// In the warps that have come, the threads that have ended without arriving. The barrier has waited for their end, but that does not order what they have done.
    fn ended_beside(&self, barrier: &Named) -> Vec<usize> {
        if self.live == self.blocks.count * self.blocks.threads {
            return Vec::new();
        }
        let has_come = |warp: usize| barrier.waiting.iter().chain(&barrier.passed).any(|index| index / 32 == warp);
        let is_missing = |&index: &usize| {
            self.blocks.has(index) && !self.threads[index].is_live() && !barrier.passed.contains(&index)
        };
        (0..self.threads.len()).filter(|index| is_missing(index) && has_come(index / 32)).collect()
    }

    /// Lets everybody go if all have come.
    fn complete(&mut self, world: &mut impl World, number: usize) -> Result<(), Halt> {
        let barrier = &self.barriers[number];
        let (rank, come) = (number / NUMBERS, barrier.waiting.len() + barrier.passed.len());
        let live = self.live_of[rank];
        let (counted, needed) = match barrier.count {
            None => (come, live), // threads that have exited are counted out
            Some(count) => (self.counted(barrier), count as usize),
        };
        if come == 0 || counted < needed {
            return Ok(());
        }
        let mut barrier = std::mem::take(&mut self.barriers[number]);
        // a barrier that was given a number of threads has not waited for those that have exited
        let for_all_left = barrier.count.is_none() || live == self.blocks.threads;
        if come == live && barrier.passed.is_empty() && for_all_left {
            match self.blocks.are_several() {
                true => self.order.meet(&self.blocks.threads_of(rank).collect::<Vec<_>>(), &barrier.waiting),
                false => self.order.meet_all(),
            }
        } else {
            self.order.meet(&barrier.waiting, &barrier.waiting);
            let ended = self.ended_beside(&barrier);
            if !ended.is_empty() {
                self.order.arrive(&ended, number, barrier.passed.is_empty(), false);
            }
            if !(ended.is_empty() && barrier.passed.is_empty()) {
                self.order.pass(&barrier.waiting, number);
            }
        }
        let waiting = barrier.waiting.len() as u32;
        let result = match barrier.kind {
            Some(Barrier::Count) => barrier.holding,
            Some(Barrier::And) => u32::from(barrier.holding == waiting),
            Some(Barrier::Or) => u32::from(barrier.holding > 0),
            _ => 0,
        };
        let mut at = Place::default();
        for &index in &barrier.waiting {
            if let State::Barrier { d, place, .. } = self.threads[index].state {
                self.set(index, d, result.into());
                self.threads[index].state = State::Ready;
                at = place;
            }
        }
        match barrier.passed.is_empty() {
            true => self.have_met(world, &barrier.waiting, at)?,
            false => self.meet_otherwise(barrier.waiting.iter().copied()),
        }
        // The next time needs the room again.
        barrier.waiting.clear();
        barrier.passed.clear();
        self.waited_at &= !(1 << number);
        self.barriers[number] = barrier;
        Ok(())
    }

    /// A thread has ended. That may complete what others wait for, because they wait for all threads that are left. `is_first`: of those of its warp that end
    /// in this turn.
    pub(super) fn exited(&mut self, world: &mut impl World, index: usize, is_first: bool) -> Result<(), Halt> {
        self.live -= 1;
        let rank = self.blocks.rank(index);
        self.live_of[rank] -= 1;
        let thread = &mut self.threads[index];
        let place = Place(self.module.code[usize::from(thread.frame.code)].first_place + thread.frame.pc);
        thread.local = Vec::new(); // it is not needed any more, and may be large
        if self.live_of[rank] == 0 {
            self.ends(world, (index, place))?;
        }
        for number in each_lane((self.waited_at >> (rank * NUMBERS)) as u32 & 0xffff) {
            self.complete(world, rank * NUMBERS + number)?;
        }
        self.complete_cluster(world)?;
        if !is_first {
            return Ok(()); // whoever waits together with its warp has seen that it ends
        }
        let of_group = Self::partners(index, Warp::Group(InGroup::Multiply(0)));
        for other in of_group.start..of_group.end.min(self.threads.len()) {
            if let State::Warp(together) = self.threads[other].state
                && Self::partners(other, together.kind).contains(&index)
            {
                self.together(world, other, together)?;
            }
        }
        Ok(())
    }

    fn place_of(&self, thread: usize, otherwise: Place) -> Place {
        match &self.threads[thread].state {
            State::Barrier { place, .. }
            | State::Parked { place, .. }
            | State::Call { place, .. }
            | State::Stopped { place }
            | State::Failed { place } => *place,
            State::Warp(together) => together.place,
            State::Ready | State::Exited => otherwise,
        }
    }

    /// The fault of a block whose threads all wait for each other. It names two of them.
    pub(super) fn stuck(&self) -> Halt {
        let waiting = || self.threads.iter().enumerate().filter(|(_, thread)| thread.is_live());
        let first =
            |wanted: fn(&State) -> bool| waiting().find(|(_, thread)| wanted(&thread.state)).map(|(index, _)| index);
        let at = |index: usize| (index, self.place_of(index, Place::default()));
        if let Some(call) = first(|state| matches!(state, State::Call { .. })) {
            return self.missing_from_group(call);
        }
        if let Some(lane) = first(|state| matches!(state, State::Warp(_))) {
            let State::Warp(together) = self.threads[lane].state else {
                return self.fault(FaultKind::MissingLanes, lane, Place::default(), "");
            };
            let mut partners = Self::partners(lane, together.kind).filter(|&other| other < self.threads.len());
            let missing = partners.find(|&other| {
                together.mask >> (other % 32) & 1 == 1
                    && self.threads[other].is_live()
                    && !matches!(self.threads[other].state, State::Warp(theirs) if theirs.is_with(&together))
            });
            let message = match together.kind {
                Warp::Group(InGroup::Multiply(_)) => {
                    "the 128 threads of a warp group compute together, and one of them waits elsewhere".to_owned()
                }
                _ => format!(
                    "lanes {:#010x} of the warp compute together, and one of them waits elsewhere",
                    together.mask
                ),
            };
            return self.fault_with(
                FaultKind::MissingLanes,
                (lane, together.place),
                at(missing.unwrap_or(lane)),
                message,
            );
        }
        // Barriers are left: some wait at one, the others at another.
        let some = waiting().map(|(index, _)| index).next().unwrap_or(0);
        let differs = |&index: &usize| at(index).1 != at(some).1;
        let other = waiting().map(|(index, _)| index).find(differs).unwrap_or(some);
        let message = "barrier divergence: not all threads come to the same barrier";
        self.fault_with(FaultKind::BarrierDivergence, at(some), at(other), message)
    }
}
