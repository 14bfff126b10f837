//! What a proof assumes of paths until a run shows otherwise: no read sees an old value because of the path that it takes.
//!
//! A reader can learn of a write only through a synchronization of the PE that the write went to, and that makes the write visible. So
//! a reader that sees the old value has not learned of the write: it races with it. A proof ends with the first race. Until then, it does
//! not matter when what has arrived becomes visible on the other path. So that happens at once, and is in no order with anything.
//!
//! A race that the program means is no finding, and the program goes on with what it has read. Then the memory that others read
//! in that run is given up: the search starts again, and takes in every order what arrives there, what shows it, and who looks.

use std::collections::BTreeSet;

use onesided::backend::AllocId;

use super::ids::PeId;

/// An allocation in a PE's memory. A step of a transfer brings something to one of them only.
pub(crate) type Place = (PeId, AllocId);

/// Memory that PEs read on paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fabric {
    /// Where old values may be seen.
    matters: BTreeSet<Place>,
    /// Where others have read, in runs with races that are meant.
    read: BTreeSet<Place>,
}

impl Fabric {
    /// Nothing was read yet.
    pub(super) fn without_reads(&self) -> Fabric {
        Fabric { matters: self.matters.clone(), read: BTreeSet::new() }
    }

    /// Whether a PE's memory may show others old values.
    pub(super) fn matters(&self, place: Place) -> bool {
        self.matters.contains(&place)
    }

    /// Whether any of it may.
    pub(super) fn matters_at(&self, pe: PeId) -> bool {
        self.matters.range((pe, AllocId(0))..=(pe, AllocId(u32::MAX))).next().is_some()
    }

    /// Another PE reads there.
    pub(super) fn read(&mut self, place: Place) {
        self.read.insert(place);
    }

    /// The run has no race that is meant, or is about to begin: what was read does not matter.
    pub(super) fn forget_reads(&mut self) {
        self.read.clear();
    }

    /// Adds what another run has read.
    pub(super) fn learn(&mut self, of: Fabric) {
        self.read.extend(of.read);
    }

    /// Gives up what is assumed of memory that was read. Returns whether there was any.
    pub(super) fn give_up(&mut self) -> bool {
        let before = self.matters.len();
        self.matters.append(&mut self.read);
        self.matters.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_read_is_given_up_once() {
        let place = |pe, alloc| (PeId(pe), AllocId(alloc));
        let mut fabric = Fabric::default();
        fabric.read(place(1, 7));
        fabric.forget_reads();
        assert!(!fabric.give_up() && !fabric.matters_at(PeId(1)));
        fabric.read(place(1, 7));
        assert!(fabric.give_up());
        assert!(fabric.matters(place(1, 7)) && !fabric.matters(place(1, 6)) && !fabric.matters(place(0, 7)));
        assert_eq!([0, 1, 2].map(|pe| fabric.matters_at(PeId(pe))), [false, true, false]);
        fabric.read(place(1, 7));
        assert!(!fabric.give_up());
    }
}
