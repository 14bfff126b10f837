//! The calls of the source that make accesses, as small numbers: shadow memory keeps one for each access.

use onesided::At;

/// A call in the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) call: &'static str,
    pub(super) at: At,
    /// The number of its mark, by which it may race; 0: none.
    pub(super) mark: u32,
}

/// Every call in the source that made an access.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub(super) all: Vec<Site>,
    /// So many of them had been made before the last moment that everybody knows.
    pub(super) known: u32,
    /// Their numbers, in the order of what they are.
    sorted: Vec<u32>,
    recent: [Option<(Site, u32)>; 8],
}

impl Sites {
    #[inline]
    pub(super) fn number(&mut self, call: &'static str, at: At, mark: u32) -> u32 {
        let slot = at.line() as usize % 8;
        if let Some((site, number)) = &self.recent[slot]
            && std::ptr::eq(site.call, call)
            && at.is_same(&site.at)
            && site.mark == mark
        {
            return *number;
        }
        self.look_up(Site { call, at, mark }, slot)
    }

    #[cold]
    fn look_up(&mut self, site: Site, slot: usize) -> u32 {
        let Sites { all, sorted, recent, .. } = self;
        let key = |site: &Site| (site.at, site.call, site.mark);
        let number = match sorted.binary_search_by_key(&key(&site), |&number| key(&all[number as usize])) {
            Ok(at) => sorted[at],
            Err(at) => {
                all.push(site);
                let number = all.len() as u32 - 1;
                sorted.insert(at, number);
                number
            }
        };
        recent[slot] = Some((site, number));
        number
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.known = 0;
        self.sorted.clear();
        self.recent = Default::default();
    }
}
