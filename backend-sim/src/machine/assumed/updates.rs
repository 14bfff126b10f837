//! The updates of a word in a run, since its last plain write.

use super::super::steady::Replaced;
use super::super::tells::Tells;

/// Those of a word.
#[derive(Debug)]
pub(super) struct Updates {
    pub(super) len: usize,
    /// The value before all of them.
    pub(super) from: u64,
    pub(super) all: Vec<Update>,
    /// The word was added to.
    pub(super) added: bool,
}

/// One update of a word.
#[derive(Debug)]
pub(in crate::machine) struct Update {
    pub(super) value: u64,
    /// The step that made it.
    pub(in crate::machine) step: usize,
    pub(in crate::machine) tells: Tells,
    /// Whether that is less than the update before it has told, and it may never come before that.
    pub(super) tells_less: bool,
}

impl Updates {
    /// All of them, each with what it has replaced.
    pub(super) fn replaced(&self) -> impl DoubleEndedIterator<Item = Replaced> + Clone {
        let old = |at: usize| at.checked_sub(1).map_or(self.from, |before| self.all[before].value);
        let numbered = self.all.iter().enumerate();
        numbered.map(move |(at, &Update { value: new, step, tells_less, .. })| Replaced {
            old: old(at),
            new,
            tells_less,
            step,
        })
    }
}
