//! What somebody comes after, and what words and fences tell of it.

use std::collections::BTreeMap;

use super::program::Scope;

/// What somebody comes after.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Past {
    pub(super) steps: u128,
    /// Stores to other PEs, and transfers, that have arrived, and sources that were read.
    pub(super) arrived: u128,
    /// Stores and transfers that NVSHMEM's fences put before what is issued to the same PE.
    pub(super) fenced: u128,
}

impl Past {
    pub(super) fn join(&mut self, other: Past) {
        self.steps |= other.steps;
        self.arrived |= other.arrived;
        self.fenced |= other.fenced;
    }
}

/// Whom a word, or a fence, tells something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Block(usize),
    Gpu(usize),
    All,
}

impl Place {
    /// The scope that one at this place needs to be told.
    pub(super) fn scope(self) -> Scope {
        match self {
            Place::Block(_) => Scope::Cta,
            Place::Gpu(_) => Scope::Gpu,
            Place::All => Scope::Sys,
        }
    }
}

pub(super) type Told = BTreeMap<Place, Past>;

pub(super) fn join(one: &mut Told, other: &Told) {
    other.iter().for_each(|(&place, &past)| one.entry(place).or_default().join(past));
}
