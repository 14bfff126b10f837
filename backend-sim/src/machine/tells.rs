//! [`Tells`]: what an update of a word tells those who read it, as the race detector knows it.

use std::rc::Rc;

use onesided::backend::Span;
use onesided_ptx::ToldInBlock;

use super::ids::PeId;
use crate::race::{Detector, Narrow, Nearby, Told};

/// What a word tells since an update.
#[derive(Debug)]
pub(crate) struct Tells {
    /// Everybody.
    pub(crate) told: Option<Told>,
    /// What of it kernels have told, since a transfer has updated the word.
    pub(crate) by_kernels: Option<Told>,
    /// If a kernel has made the update: agents of kernels in narrow scopes, besides.
    pub(crate) nearby: Option<Rc<Nearby>>,
    /// Of a word of shared memory: threads of its block, about that.
    pub(crate) in_block: Option<ToldInBlock>,
}

impl Tells {
    /// Whether they tell all that others do.
    pub(crate) fn cover(&self, other: &Tells) -> bool {
        let covers = |one: &Option<Told>, other: &Option<Told>| {
            other.as_ref().is_none_or(|other| one.as_ref().is_some_and(|one| one.covers(other)))
        };
        let near = |one: &Nearby, other: &Nearby| {
            let has = |(place, narrow): (_, &Narrow)| one.get(place).is_some_and(|own| own.told.covers(&narrow.told));
            other.iter().all(has)
        };
        let none = Rc::default();
        let nearby = [self, other].map(|tells| tells.nearby.as_ref().unwrap_or(&none));
        covers(&self.told, &other.told) && covers(&self.by_kernels, &other.by_kernels) && near(nearby[0], nearby[1])
    }

    /// Now.
    pub(crate) fn of(races: &mut Detector, pe: PeId, word: Span) -> Tells {
        let told = races.told(pe, word);
        let (by_kernels, nearby) = (races.told_by_kernels(pe, word), races.told_nearby(pe, word));
        Tells { told, by_kernels, nearby, in_block: None }
    }

    /// The same of a word of shared memory.
    pub(crate) fn in_block(told: Option<Told>, in_block: ToldInBlock) -> Tells {
        Tells { told, by_kernels: None, nearby: None, in_block: Some(in_block) }
    }
}
