//! The calls of the source that make accesses, as small numbers: shadow memory keeps one for each access.

use std::collections::BTreeMap;

use onesided::At;

/// A call in the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) call: &'static str,
    pub(super) at: At,
}

/// Every call in the source that made an access.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub(super) all: Vec<Site>,
    numbers: BTreeMap<(At, &'static str), u32>,
    recent: [Option<(Site, u32)>; 8],
}

impl Sites {
    #[inline]
    pub(super) fn number(&mut self, call: &'static str, at: At) -> u32 {
        let slot = at.line() as usize % 8;
        if let Some((site, number)) = &self.recent[slot]
            && std::ptr::eq(site.call, call)
            && at.is_same(&site.at)
        {
            return *number;
        }
        self.look_up(call, at, slot)
    }

    #[cold]
    fn look_up(&mut self, call: &'static str, at: At, slot: usize) -> u32 {
        let Sites { all, numbers, recent } = self;
        let number = *numbers.entry((at, call)).or_insert_with(|| {
            all.push(Site { call, at });
            all.len() as u32 - 1
        });
        recent[slot] = Some((Site { call, at }, number));
        number
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.numbers.clear();
        self.recent = Default::default();
    }
}
