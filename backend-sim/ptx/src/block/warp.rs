//! What the lanes of a warp compute together, when all that take part have come.

use super::thread::{State, Together};
use super::{Block, FaultKind, Halt};
use crate::alu;
use crate::op::Warp;
use crate::types::mask;
use crate::world::World;

impl Block {
    /// A lane has come to an operation of its warp. If it is the last one, the operation is executed.
    pub(super) fn together(&mut self, world: &mut impl World, index: usize, together: Together) -> Result<(), Halt> {
        if let Warp::Group(what) = together.kind {
            return self.come_in_group(world, index, what, together);
        }
        let Together { kind, mask: lanes, place, .. } = together;
        if lanes >> (index % 32) & 1 == 0 {
            let message = format!("the lane is not among those that compute together: {lanes:#010x}");
            return Err(self.fault(FaultKind::MissingLanes, index, place, message));
        }
        let warp = self.warp_of(index);
        let member = |&thread: &usize| lanes >> (thread % 32) & 1 == 1 && self.threads[thread].is_live();
        let members: Vec<usize> = warp.clone().filter(member).collect();
        if let Warp::Matrix(_) = kind
            && members.len() < 32
        {
            return Err(self.lane_is_missing(index, &members, place));
        }
        let mut come = Vec::with_capacity(members.len());
        for &thread in &members {
            match self.threads[thread].state {
                State::Warp(theirs) if theirs.is_with(&together) => come.push((thread, theirs)),
                _ => return Ok(()),
            }
        }
        if let Warp::Matrix(how) = kind {
            self.matrices(warp.start, how);
            self.meet_otherwise(members);
            return Ok(());
        }
        let results = self.results(kind, &come)?;
        for (&(thread, theirs), (value, holds)) in come.iter().zip(results) {
            self.set(thread, theirs.d, value);
            self.set(thread, theirs.q, u64::from(holds));
            self.threads[thread].state = State::Ready;
        }
        self.order.meet(&members, &members);
        self.have_met(world, &members, place)
    }

    /// For each lane that takes part its result and predicate.
    fn results(&self, kind: Warp, come: &[(usize, Together)]) -> Result<Vec<(u64, bool)>, Halt> {
        let value = |together: &Together| together.values[0];
        let holds = |together: &Together| value(together) & 1 == 1;
        let everybody = |result: bool| Ok(vec![(u64::from(result), result); come.len()]);
        let set = |wanted: &dyn Fn(&Together) -> bool| {
            come.iter()
                .filter(|(_, together)| wanted(together))
                .fold(0, |all, (thread, _)| all | 1_u64 << (thread % 32))
        };
        match kind {
            Warp::Sync | Warp::Matrix(_) | Warp::Group(_) => everybody(false),
            Warp::All => everybody(come.iter().all(|(_, together)| holds(together))),
            Warp::Any => everybody(come.iter().any(|(_, together)| holds(together))),
            Warp::Uniform => everybody(come.iter().all(|(_, together)| holds(together) == holds(&come[0].1))),
            Warp::Ballot => Ok(vec![(set(&holds), false); come.len()]),
            Warp::MatchAny(bytes) => {
                let low = mask(u32::from(bytes) * 8);
                let same = |mine: &Together| set(&|other| value(other) & low == value(mine) & low);
                Ok(come.iter().map(|(_, together)| (same(together), false)).collect())
            }
            Warp::MatchAll(bytes) => {
                let low = mask(u32::from(bytes) * 8);
                let same = come.iter().all(|(_, together)| value(together) & low == value(&come[0].1) & low);
                Ok(vec![(if same { set(&|_| true) } else { 0 }, same); come.len()])
            }
            Warp::Elect => {
                let leader = come[0].0;
                Ok(come.iter().map(|&(thread, _)| ((leader % 32) as u64, thread == leader)).collect())
            }
            Warp::Reduce(op, ty) => {
                let all = come[1..]
                    .iter()
                    .fold(value(&come[0].1), |all, (_, together)| alu::atomic(op, ty, all, value(together), 0));
                Ok(vec![(all, false); come.len()])
            }
            Warp::Up | Warp::Down | Warp::Butterfly | Warp::Index => {
                come.iter().map(|(thread, together)| self.shuffled(*thread, together, come)).collect()
            }
        }
    }

    /// The value of the lane that this lane reads, and whether that lies within its segment: the formulas of the PTX manual.
    fn shuffled(&self, thread: usize, together: &Together, come: &[(usize, Together)]) -> Result<(u64, bool), Halt> {
        let lane = (thread % 32) as i64;
        let [_, b, c] = together.values;
        let (distance, clamp, segment) = ((b & 31) as i64, (c & 31) as i64, (c >> 8 & 31) as i64);
        let highest = (lane & segment) | (clamp & !segment);
        let lowest = lane & segment;
        let (source, within) = match together.kind {
            Warp::Up => (lane - distance, lane - distance >= highest),
            Warp::Down => (lane + distance, lane + distance <= highest),
            Warp::Butterfly => (lane ^ distance, lane ^ distance <= highest),
            _ => {
                let source = lowest | (distance & !segment);
                (source, source <= highest)
            }
        };
        let source = if within { source } else { lane };
        match come.iter().find(|(other, _)| (other % 32) as i64 == source) {
            Some((_, theirs)) => Ok((theirs.values[0], within)),
            None => {
                let message = format!("a shuffle reads lane {source}, which does not take part");
                Err(self.fault(FaultKind::MissingLanes, thread, together.place, message))
            }
        }
    }
}
