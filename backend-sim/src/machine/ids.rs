//! Indices of what the machine keeps in tables: a type for each, so that none is taken for another.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An index into a [`Table`].
pub(crate) trait Id: Copy {
    fn new(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);

        impl Id for $name {
            #[inline(always)]
            fn new(index: usize) -> Self {
                $name(index as u32)
            }
            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A PE: its world rank.
    PeId;
    /// Who acts: the host program of a PE, one of its streams, a block of a kernel, or a thread of one.
    AgentId;
    /// An issue scope: what a fence, quiet or barrier is about.
    ScopeId;
    /// A team, as an index of the machine's teams, in the order in which a run first uses them. Programs see a
    /// [`TeamId`](onesided::backend::TeamId).
    TeamIndex;
    /// A team, as it is called in every schedule.
    TeamName;
    /// A transfer in flight.
    TransferId;
    /// What a quiet has claimed.
    ClaimId;
    /// A block of a kernel.
    BlockId;
}

/// A vector with an index type of its own.
#[derive(Debug)]
pub(crate) struct Table<I, T> {
    /// The items, and behind them those that are kept to be used again.
    items: Vec<T>,
    len: usize,
    index: PhantomData<I>,
}

impl<I: Id, T> Table<I, T> {
    pub(crate) fn push(&mut self, item: T) -> I {
        self.items.truncate(self.len);
        self.items.push(item);
        self.len += 1;
        I::new(self.len - 1)
    }

    /// Adds an item that was [kept](Table::keep), once it is made what it has to be; or a new one.
    #[inline]
    pub(crate) fn push_again(&mut self, again: impl FnOnce(&mut T), new: impl FnOnce() -> T) -> I {
        match self.items.get_mut(self.len) {
            Some(kept) => again(kept),
            None => self.items.push(new()),
        }
        self.len += 1;
        I::new(self.len - 1)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.len = self.items.len();
    }

    /// Takes away the items from `len` on, and keeps them to be used again.
    pub(crate) fn keep(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn resize_with(&mut self, len: usize, item: impl FnMut() -> T) {
        self.items.truncate(self.len);
        self.items.resize_with(len, item);
        self.len = len;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items[..self.len].iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items[..self.len].iter_mut()
    }

    /// All indices, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.len).map(I::new)
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Table { items: Vec::new(), len: 0, index: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}
