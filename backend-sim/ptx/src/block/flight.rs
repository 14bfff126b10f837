//! Copies of elements (`cp.async`) and asynchronous stores (`st.async`) into shared memory that no thread has waited for. Bulk copies are in
//! [`copies`](super::copies).
//!
//! Their bytes move when they are issued, so a missing wait does no harm in the simulator. To find it all the same, each copy is kept here until a thread waits for it. Until then
//! every access to its words is a race with it, also one of the thread that has issued it.

use super::shared::{By, Touch};
use super::{Block, Fault, FaultKind, Halt, Stop};
use crate::count::count;
use crate::module::Place;
use crate::op::Group;
use crate::world::World;

#[derive(Clone, Copy, Debug)]
struct Copy {
    thread: usize,
    at: usize,
    bytes: usize,
    place: Place,
    /// It ends when its thread waits for this group of its copies. `None`: threads do not wait for it so.
    group: Option<u32>,
    /// It ends when a phase of this mbarrier is over, and somebody has seen that.
    counted: Option<Counted>,
}

/// An mbarrier counts a copy in the phase in which it was then.
#[derive(Clone, Copy, Debug)]
struct Counted {
    barrier: u64,
    /// Whether that phase is over.
    is_over: bool,
}

/// Who writes a word, and where that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writer {
    thread: u16,
    place: Place,
    has_mbarrier: bool,
}

/// All copies of a block that nobody has waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    /// For each thread, the copies that it must wait for itself. Empty before the first copy.
    own: Vec<Own>,
    /// Those that mbarriers wait for.
    counted: Vec<Copy>,
    /// For each word of 4 bytes of shared memory, if there are copies.
    words: Vec<Option<Writer>>,
    /// How many copies there are.
    all: usize,
}

#[derive(Clone, Debug, Default)]
struct Own {
    copies: Vec<Copy>,
    /// How many groups it has closed.
    groups: u32,
}

impl Flights {
    /// Keeps a copy of whole words. No other one writes them: that would be a race.
    fn begin(&mut self, copy: Copy, (threads, shared): (usize, usize)) {
        self.own.resize(threads, Own::default());
        self.words.resize(shared.div_ceil(4), None);
        let has_mbarrier = copy.counted.is_some();
        let writer = Writer { thread: copy.thread as u16, place: copy.place, has_mbarrier };
        self.words[copy.at / 4..(copy.at + copy.bytes) / 4].fill(Some(writer));
        match has_mbarrier {
            true => self.counted.push(copy),
            false => self.own[copy.thread].copies.push(copy),
        }
        self.all += 1;
    }

    /// The copy that writes one of these bytes.
    #[inline]
    fn over(&self, at: usize, bytes: usize) -> Option<Writer> {
        match self.all {
            0 => None,
            _ => self.words[at / 4..(at + bytes).div_ceil(4)].iter().find_map(|word| *word),
        }
    }

    /// These copies are over.
    fn land(&mut self, landed: &[Copy]) {
        landed.iter().for_each(|copy| self.words[copy.at / 4..(copy.at + copy.bytes) / 4].fill(None));
        self.all -= landed.len();
    }

    /// Takes out those of a thread whose group comes before this one.
    fn land_own(&mut self, thread: usize, before: u32) -> Vec<Copy> {
        let Some(own) = self.own.get_mut(thread) else { return Vec::new() };
        let is_over = |copy: &mut Copy| copy.thread == thread && copy.group.is_some_and(|group| group < before);
        let mut landed: Vec<Copy> = own.copies.extract_if(.., is_over).collect();
        landed.extend(self.counted.extract_if(.., is_over));
        self.land(&landed);
        landed
    }

    /// The group of a thread that is still open.
    fn open(&self, thread: usize) -> u32 {
        self.own.get(thread).map_or(0, |own| own.groups)
    }
}

impl Block {
    /// A thread has begun a copy for which it waits itself.
    pub(super) fn takes_off(&mut self, thread: usize, (at, bytes): (u64, u64), place: Place) {
        let group = Some(self.flights.open(thread));
        self.keep(Copy { thread, at: at as usize, bytes: bytes as usize, place, group, counted: None });
    }

    /// A thread has begun a copy that an mbarrier counts. `is_over`: it was the last thing that the mbarrier's phase waited for.
    pub(super) fn takes_off_for(
        &mut self,
        thread: usize,
        (at, bytes): (u64, u64),
        (barrier, is_over): (u64, bool),
        place: Place,
    ) {
        let counted = Some(Counted { barrier, is_over });
        self.keep(Copy { thread, at: at as usize, bytes: bytes as usize, place, group: None, counted });
    }

    fn keep(&mut self, copy: Copy) {
        if self.launch.checks.races && copy.bytes > 0 {
            self.flights.begin(copy, (self.order.threads(), self.shared.bytes.len()));
        }
    }

    /// A thread closes a group of its copies, or waits for some.
    #[inline(never)]
    pub(super) fn element_group(&mut self, world: &mut impl World, thread: usize, group: Group) -> Result<(), Halt> {
        let closed = self.flights.open(thread);
        let before = match group {
            Group::Commit => {
                // Before the first copy, groups are empty.
                if let Some(own) = self.flights.own.get_mut(thread) {
                    own.groups += 1;
                }
                return Ok(());
            }
            Group::Wait { most, .. } => closed.saturating_sub(most),
            Group::WaitAll => u32::MAX,
        };
        for copy in self.flights.land_own(thread, before) {
            self.have_written(world, copy)?;
        }
        Ok(())
    }

    /// The copies that a thread has begun are, from now on, awaited at an mbarrier, too.
    pub(super) fn follow(&mut self, world: &mut impl World, thread: usize, barrier: u64) -> Result<(), Halt> {
        let Some(own) = self.flights.own.get_mut(thread) else { return Ok(()) };
        let begun = std::mem::take(&mut own.copies);
        self.flights.land(&begun);
        for copy in begun {
            self.have_written(world, copy)?;
            self.keep(Copy { counted: Some(Counted { barrier, is_over: false }), ..copy });
        }
        Ok(())
    }

    /// A phase of an mbarrier is over.
    pub(super) fn phase_is_over(&mut self, mbarrier: u64) {
        for Counted { barrier, is_over } in self.flights.counted.iter_mut().filter_map(|copy| copy.counted.as_mut()) {
            *is_over |= *barrier == mbarrier;
        }
    }

    /// Somebody has seen that the last phase of an mbarrier is over: copies that it has counted in that phase, and before, have ended.
    pub(super) fn sees_phase(&mut self, mbarrier: u64) {
        let is_over =
            |copy: &mut Copy| copy.counted.is_some_and(|counted| counted.is_over && counted.barrier == mbarrier);
        if !self.flights.counted.is_empty() {
            let landed: Vec<Copy> = self.flights.counted.extract_if(.., is_over).collect();
            self.flights.land(&landed);
        }
    }

    /// A copy may have written its words until now. So a reader must come after the wait for the copy, and not only after its issue.
    fn have_written(&mut self, world: &mut impl World, copy: Copy) -> Result<(), Halt> {
        let Copy { thread, at, bytes, place, .. } = copy;
        self.touch(world, at, bytes, Touch::write(thread, place, By::Elements))
    }

    /// Whether an access meets a copy that nobody has waited for.
    #[inline]
    pub(super) fn meets_copy(&self, at: usize, bytes: usize, touch: &Touch) -> Result<(), Halt> {
        match self.flights.over(at, bytes) {
            Some(writer) => Err(self.races_with(writer, at, bytes, touch)),
            None => Ok(()),
        }
    }

    #[cold]
    fn races_with(&self, writer: Writer, at: usize, bytes: usize, touch: &Touch) -> Halt {
        let Writer { thread, place, has_mbarrier } = writer;
        let message = format!(
            "race in shared memory: nothing orders the {} of {} at {} and an asynchronous copy to there",
            if touch.writes { "write" } else { "read" },
            count(bytes, "byte"),
            self.in_shared(at)
        );
        let what = match (has_mbarrier, usize::from(thread) == touch.thread) {
            (true, _) => "a wait at the copy's mbarrier",
            (false, true) => "a wait for the copy (cp.async.wait_group)",
            (false, false) => {
                "a wait of its thread for the copy (cp.async.wait_group), and behind that a barrier of the block (__syncthreads),"
            }
        };
        let [here, there] = [touch.place, place].map(|place| self.module.describe(place));
        let missing = match here == there {
            true => format!("{what} before {here} comes again"),
            false => format!("{what} between {there} and {here}"),
        };
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(touch.thread), touch.place, message);
        let fault = fault.with(&self.module, self.who(thread.into()), place).lacking(missing);
        Box::new(Stop::Fault(Box::new(fault)))
    }
}
