//! Bulk copies in flight, for the race detector. From its issue until somebody knows that it is complete, a copy may be reading its source and
//! writing its destination.
//!
//! Knowledge is a matter of happens-before: [`Order`](super::order::Order) has a number for each copy beside the clocks of threads. A copy into shared memory
//! is complete for a thread that has waited for its mbarrier's phase, and for all that come after that. A copy to global memory is complete for its own
//! thread behind `cp.async.bulk.wait_group`; with `.read`, only the read of its source in shared memory is. The world looks for races in global
//! memory, and is told of copies as of threads.
//!
//! Copies of elements are in [`flight`](super::flight).

use std::collections::{BTreeMap, VecDeque};

use super::order::Sync;
use super::shared::Touch;
use super::thread::Thread;
use super::{Block, Fault, FaultKind, Halt, Stop};
use crate::count::count;
use crate::decode::window;
use crate::module::Place;
use crate::op::{Bulk, Group};
use crate::world::World;

/// How many bulk copies in flight of a block are told apart. To a [`World`], copy `n` is number `threads + n` of the block. Numbers are
/// reused in turn, so a copy counts as complete after this many later copies of the block.
pub const COPIES: usize = 64;

/// The number of groups that are kept for a thread that does not wait for them.
const GROUPS: usize = 64;

/// The number of a copy, and how many copies have had that number so far.
pub(super) type Name = (usize, u32);

#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// Whether copies are told apart.
    on: bool,
    flying: Vec<Copy>,
    /// How many there were.
    count: u32,
    /// By thread.
    groups: BTreeMap<usize, Groups>,
    /// The copy that is being made.
    current: Option<usize>,
}

/// A copy's part of shared memory.
#[derive(Clone, Debug)]
struct Copy {
    name: Name,
    begin: usize,
    end: usize,
    kind: Bulk,
    thread: usize,
    place: Place,
    moment: u64,
}

/// Copies of a thread to global memory for which it has not waited.
#[derive(Clone, Debug, Default)]
struct Groups {
    open: Vec<Name>,
    committed: VecDeque<Vec<Name>>,
}

impl Copies {
    /// The copies that touch a part of shared memory: the name, who makes it, and where.
    pub(super) fn over(&self, part: std::ops::Range<usize>) -> impl Iterator<Item = (Name, usize, Place)> {
        let touches = move |copy: &&Copy| copy.begin < part.end && part.start < copy.end;
        self.flying.iter().filter(touches).map(|copy| (copy.name, copy.thread, copy.place))
    }

    pub(super) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }
}

impl Block {
    /// A thread makes a copy, or goes on with it.
    pub(super) fn begin_copy(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        kind: Bulk,
        (shared, bytes): (u64, u64),
        place: Place,
    ) -> Result<(), Halt> {
        if !self.copies.on || kind == Bulk::Elements || bytes == 0 {
            return Ok(());
        }
        let threads = self.order.threads();
        if thread.copy.is_none() {
            let name = (self.copies.count as usize % COPIES, self.copies.count / COPIES as u32 + 1);
            self.copies.count += 1;
            let begin = self.shared_range(index, shared, 1, place)?;
            self.order.also(Sync::Meet { from: vec![index], into: vec![threads + name.0] });
            self.tell(world);
            let moment = world.moment((threads + name.0) as u32);
            let order = &self.order;
            self.copies.flying.retain(|copy| copy.name.0 != name.0 && !order.is_over(copy.name));
            let end = begin.saturating_add(bytes as usize);
            self.copies.flying.push(Copy { name, begin, end, kind, thread: index, place, moment });
            if kind != Bulk::ToShared {
                self.copies.groups.entry(index).or_default().open.push(name);
            }
            thread.copy = Some(name.0);
        }
        self.copies.current = thread.copy;
        world.copying(thread.copy.map(|copy| threads + copy));
        Ok(())
    }

    /// The copy that a thread makes into shared memory reads shared memory, too.
    pub(super) fn copy_reads(
        &mut self,
        thread: &Thread,
        index: usize,
        (shared, bytes): (u64, u64),
        place: Place,
    ) -> Result<(), Halt> {
        let of_it = |copy: &&Copy| Some(copy.name.0) == thread.copy;
        let known: Vec<&Copy> = self.copies.flying.iter().filter(of_it).collect();
        // it has both parts already if it was stopped within
        if let [copy] = known[..] {
            let copy = copy.clone();
            let begin = self.shared_range(index, shared, 1, place)?;
            let end = begin.saturating_add(bytes as usize);
            self.copies.flying.push(Copy { begin, end, kind: Bulk::Within, ..copy });
        }
        Ok(())
    }

    /// All bytes of a copy have moved. A thread that sees the phase of its mbarrier end learns that the copy is over.
    pub(super) fn end_copy(
        &mut self,
        world: &mut impl World,
        thread: &Thread,
        (index, place): (usize, Place),
        kind: Bulk,
        barrier: u64,
    ) {
        let Some(number) = thread.copy else { return };
        self.copies.current = None;
        world.copying(None);
        if kind == Bulk::ToShared
            && let Some(copy) = self.copies.flying.iter().find(|copy| copy.name.0 == number)
        {
            let address = window::SHARED + self.blocks.place(index, barrier % window::SHARED);
            self.order.tells_over(address, copy.name);
            let thread = self.order.threads() + number;
            self.order.also(Sync::Write { thread, place, address, releases: true, atomic: true });
        }
    }

    /// A thread closes a group of copies, or waits for groups.
    pub(super) fn bulk_group(&mut self, world: &mut impl World, thread: usize, group: Group) {
        let Some(groups) = self.copies.groups.get_mut(&thread) else { return };
        let (most, read) = match group {
            Group::Commit => {
                groups.committed.push_back(std::mem::take(&mut groups.open));
                if groups.committed.len() > GROUPS {
                    groups.committed.pop_front();
                }
                return;
            }
            Group::Wait { most, read } => (most as usize, read),
            Group::WaitAll => (0, false),
        };
        let over = groups.committed.len().saturating_sub(most);
        let names: Vec<Name> = groups.committed.iter().take(over).flatten().copied().collect();
        names.iter().for_each(|name| self.order.learns_over(thread, *name));
        if !read && over > 0 {
            groups.committed.drain(..over);
            let threads = self.order.threads();
            let from = names.iter().map(|(copy, _)| threads + copy).collect();
            self.order.also(Sync::Meet { from, into: vec![thread] });
            self.tell(world);
        }
    }

    /// An access to shared memory that a copy in flight may be reading or writing is a race.
    pub(super) fn meets_copies(
        &mut self,
        world: &mut impl World,
        (at, bytes): (usize, usize),
        touch: &Touch,
    ) -> Result<(), Halt> {
        if self.copies.flying.is_empty() {
            return Ok(());
        }
        let threads = self.order.threads();
        let races = |copy: &&Copy| {
            let writes = copy.kind == Bulk::ToShared;
            copy.begin < at + bytes
                && at < copy.end
                && (writes || touch.writes)
                && self.copies.current != Some(copy.name.0)
                && !self.order.knows_over(touch.thread, copy.name)
                && !world.comes_after(touch.thread as u32, (threads + copy.name.0) as u32, copy.moment)
        };
        let Some(copy) = self.copies.flying.iter().find(races) else { return Ok(()) };
        let (does, wait) = match copy.kind {
            Bulk::ToShared => ("writes", "a wait for the phase of its mbarrier"),
            Bulk::Within => ("reads", "a wait for the phase of its mbarrier"),
            _ => ("reads", "cp.async.bulk.wait_group.read of its thread, behind cp.async.bulk.commit_group"),
        };
        let what = if touch.writes { "write" } else { "read" };
        let message = format!(
            "race in shared memory: the {what} of {} at {} may come before a bulk copy that {does} there is over",
            count(bytes, "byte"),
            self.in_shared(at)
        );
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(touch.thread), touch.place, message);
        let [here, there] = [touch.place, copy.place].map(|place| self.module.describe(place));
        let missing = format!("{wait}, between {there} and {here}");
        let fault = fault.with(&self.module, self.who(copy.thread), copy.place).lacking(missing);
        Err(Box::new(Stop::Fault(Box::new(fault))))
    }

    /// The fault of a copy or product that comes after a thread's write without a fence that makes the write visible to it.
    #[cold]
    pub(super) fn may_not_see(
        &self,
        (at, bytes): (usize, usize),
        (what, touch): (&str, &Touch),
        (writer, written): (usize, Place),
    ) -> Halt {
        let (does, so) = if touch.writes { ("writes", "come before") } else { ("reads", "not see") };
        let message = format!(
            "race in shared memory: {what} {does} {} at {} and may {so} an earlier write there: nothing makes that write visible to the async proxy",
            count(bytes, "byte"),
            self.in_shared(at)
        );
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(touch.thread), touch.place, message);
        let [here, there] = [touch.place, written].map(|place| self.module.describe(place));
        let missing = format!(
            "fence.proxy.async.shared::cta between {there} and {here}, by each thread that writes, before they meet"
        );
        let fault = fault.with(&self.module, self.who(writer), written).lacking(missing);
        Box::new(Stop::Fault(Box::new(fault)))
    }
}
