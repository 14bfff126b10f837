//! When threads only wait together: they meet in each round of a loop, at votes, shuffles or barriers, and the states of all of them repeat.
//!
//! None of them waits alone. A thread whose own reads find nothing new still comes to the next meeting, because others wait for it there, and goes
//! on as often as they do. So states are compared where threads meet, for all of them at once, by Brent's method, too. If all states are the same
//! again, and no thread has met others in between, all are parked behind that meeting, until something changes that one of them has read.

use std::sync::Arc;

use super::cycle::{Cycle, Standing, Watch};
use super::thread::{Frame, State};
use super::turn::{DELAY, looks_again};
use super::{Block, FaultKind, Halt};
use crate::module::Place;
use crate::world::World;

/// What is kept of a thread since a meeting.
#[derive(Clone, Debug, Default)]
pub(super) struct Circle {
    /// The threads that met there, if a state of each is kept. Only the same allocation counts as the same meeting.
    with: Option<Arc<[usize]>>,
    pub(super) cycle: Cycle,
    /// Meetings since then.
    since: u32,
    /// States are kept for so many.
    power: u32,
}

impl Circle {
    /// Back to the start, keeping allocations.
    pub(super) fn reset(&mut self) {
        (self.with, self.since, self.power) = (None, 0, 0);
        self.cycle.reset();
    }

    pub(super) fn is_kept(&self) -> bool {
        self.with.is_some()
    }

    pub(super) fn forget(&mut self) {
        self.with = None;
        self.power = 0;
    }
}

/// What a meeting is to those who come.
enum Met {
    /// They are all in the states that are kept.
    Again,
    /// Some are in other states, or only a part of the threads has met.
    Other,
    /// No common meeting of theirs is kept.
    Others,
}

impl Block {
    /// Threads have met, and are about to go on. They are parked if all that they do is to wait.
    pub(super) fn have_met(&mut self, world: &mut impl World, members: &[usize], place: Place) -> Result<(), Halt> {
        if !self.paces.any_active() {
            return Ok(());
        }
        let mut members = members.to_vec();
        members.sort_unstable();
        members.iter().for_each(|&thread| self.threads[thread].spin.meets());
        if !members.iter().all(|&thread| self.paces.is_active(thread)) {
            self.forget_circle(&members);
            return Ok(());
        }
        match self.compare(&members) {
            Met::Again => return self.circle_waits(world, &members, place),
            Met::Other => {
                let mut is_over = false;
                for &thread in &members {
                    let circle = &mut self.threads[thread].spin.circle;
                    circle.since += 1;
                    is_over |= circle.since >= circle.power;
                }
                if is_over {
                    self.keep_circle(members, 2);
                }
            }
            Met::Others => self.keep_circle(members, 1),
        }
        Ok(())
    }

    /// Threads meet in another way, so the states that are kept of them are of no use.
    pub(super) fn meet_otherwise(&mut self, members: impl IntoIterator<Item = usize>) {
        if self.paces.any_active() {
            for thread in members {
                self.threads[thread].spin.meets();
                self.threads[thread].spin.circle.forget();
            }
        }
    }

    fn stands(&self, thread: usize) -> Standing<'_> {
        let (it, registers) = (&self.threads[thread], &self.registers[thread / 32]);
        let Frame { code, pc, registers: begin, .. } = it.frame;
        let end = begin as usize + self.module.code[usize::from(code)].registers.len();
        it.standing(pc, [&registers[..end], &[]], thread % 32)
    }

    fn forget_circle(&mut self, members: &[usize]) {
        members.iter().for_each(|&thread| self.threads[thread].spin.circle.forget());
    }

    fn compare(&self, members: &[usize]) -> Met {
        let circle = |thread: usize| &self.threads[thread].spin.circle;
        let Some(with) = &circle(members[0]).with else { return Met::Others };
        let is_same = |&thread: &usize| circle(thread).with.as_ref().is_some_and(|theirs| Arc::ptr_eq(theirs, with));
        if !members.iter().all(is_same) {
            return Met::Others;
        }
        let is_back = |&thread: &usize| circle(thread).cycle.is_back(self.stands(thread));
        match with.len() == members.len() && members.iter().all(is_back) {
            true => Met::Again,
            false => Met::Other,
        }
    }

    /// Keeps the states of all, `longer` times as long as before.
    fn keep_circle(&mut self, members: Vec<usize>, longer: u32) {
        let power = members.iter().map(|&thread| self.threads[thread].spin.circle.power).max().unwrap_or(0).max(1);
        let with: Arc<[usize]> = members.into();
        for &thread in &*with {
            let mut circle = std::mem::take(&mut self.threads[thread].spin.circle);
            circle.cycle.keep(self.stands(thread), &self.changes);
            (circle.since, circle.power) = (0, power.saturating_mul(longer));
            circle.with = Some(Arc::clone(&with));
            self.threads[thread].spin.circle = circle;
        }
    }

    /// All are in the same states again.
    fn circle_waits(&mut self, world: &mut impl World, members: &[usize], place: Place) -> Result<(), Halt> {
        let (mut all, mut any, mut timed) = (Vec::new(), false, false);
        let since = self.threads[members[0]].spin.circle.cycle.begin;
        for &thread in members {
            let Circle { cycle, since, .. } = &mut self.threads[thread].spin.circle;
            any |= cycle.has_read_much();
            timed |= cycle.timed;
            all.extend(&cycle.reads);
            (cycle.begin, *since) = (self.changes.begin(), 0);
        }
        let watch = Arc::new(Watch::of(&all, any));
        if watch.is_empty() {
            return self.circle_waits_for_time(members, timed, place);
        }
        let is_again = self.changes.touch(&all, any, since);
        for &thread in members {
            let reads = std::mem::take(&mut self.threads[thread].spin.circle.cycle.reads);
            if is_again {
                looks_again(world, thread, &all);
            } else {
                let reads = Watch::of(&reads, false).ranges;
                self.threads[thread].state = State::Parked { watch: Arc::clone(&watch), reads, place };
                self.parked += 1;
            }
        }
        Ok(())
    }

    /// None of them reads memory.
    fn circle_waits_for_time(&mut self, members: &[usize], timed: bool, place: Place) -> Result<(), Halt> {
        if !timed {
            let message = "a loop that nothing can end, because no thread that goes through it reads memory";
            return Err(self.fault(FaultKind::EndlessLoop, members[0], place, message));
        }
        for &thread in members {
            let circle = &mut self.threads[thread].spin.circle;
            circle.power = 1;
            if circle.cycle.timed {
                self.paces.skip(thread, DELAY);
            }
        }
        Ok(())
    }
}
