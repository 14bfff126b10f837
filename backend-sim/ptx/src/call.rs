//! Calls of functions: who is called, and which bytes of a frame hold arguments and result.

/// Bytes among the slots of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

impl Slot {
    /// The bytes that hold all of these.
    pub(crate) fn around(slots: &[Self]) -> Self {
        let offset = slots.iter().map(|slot| slot.offset).min().unwrap_or(0);
        let end = slots.iter().map(|slot| slot.offset + slot.size).max().unwrap_or(0);
        Self { offset, size: end - offset }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Slot>,
    /// From the first byte of them to the last.
    pub(crate) all: Slot,
    pub(crate) result: Option<Slot>,
    /// Whether something may look at the result.
    pub(crate) is_used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    Function(u16),
    External(u16),
    Print,
    AssertFail,
}
