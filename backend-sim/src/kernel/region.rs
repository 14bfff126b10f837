//! [`Regions`]: what NVSHMEM 3.8 calls a region, a part of a block's work that hints at what would be fast.
//!
//! A hint changes no result: non-blocking operations may be sent together, and late, which they may be without it too. What a program sees
//! are the answers of these calls.

/// A call about the region of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// It starts, with these hints. Its handle goes to an address.
    Start { handle: u64, hints: u32 },
    /// The one with this handle stops.
    Stop { handle: u64 },
    /// Whether there is one with these hints goes to an address.
    IsActive { hints: u32, active: u64 },
}

/// The region of a block, and how many it has started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Regions {
    current: Option<Active>,
    started: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Active {
    handle: u64,
    hints: u32,
}

/// What a call returns, and what it stores where.
pub(crate) type Answer = (u64, Option<(u64, Vec<u8>)>);

/// Bits of hints that NVSHMEM knows: `NVSHMEMX_REGION_HINT_BATCH_RMA`.
const KNOWN: u32 = 1;
/// `NVSHMEMX_SUCCESS`.
const SUCCESS: u64 = 0;
/// `NVSHMEMX_ERROR_INVALID_VALUE`.
const INVALID: u64 = 1;

impl Regions {
    /// Answers a call. A block has one region at a time, and stops it by its handle.
    pub(crate) fn call(&mut self, call: Region) -> Answer {
        let is_known = |hints: u32| hints & !KNOWN == 0;
        match call {
            Region::Start { handle, hints } if handle != 0 && is_known(hints) && self.current.is_none() => {
                self.started += 1;
                self.current = Some(Active { handle: self.started, hints });
                (SUCCESS, Some((handle, self.started.to_le_bytes().to_vec())))
            }
            Region::Stop { handle } if self.current.is_some_and(|active| active.handle == handle) => {
                self.current = None;
                (SUCCESS, None)
            }
            Region::IsActive { hints, active } if active != 0 && is_known(hints) => {
                let holds = self.current.is_some_and(|active| active.hints & hints == hints);
                (SUCCESS, Some((active, i32::from(holds).to_le_bytes().to_vec())))
            }
            Region::Start { .. } | Region::Stop { .. } | Region::IsActive { .. } => (INVALID, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_one_region_at_a_time() {
        let mut regions = Regions::default();
        let start = |hints| Region::Start { handle: 64, hints };
        let is_active = |hints| Region::IsActive { hints, active: 32 };
        let told = |holds: i32| (SUCCESS, Some((32, holds.to_le_bytes().to_vec())));
        assert_eq!(regions.call(is_active(0)), told(0));
        assert_eq!(regions.call(start(0)), (SUCCESS, Some((64, 1u64.to_le_bytes().to_vec()))));
        assert_eq!((regions.call(is_active(0)), regions.call(is_active(1))), (told(1), told(0)));
        assert_eq!(regions.call(start(0)), (INVALID, None), "there is one");
        assert_eq!(regions.call(Region::Stop { handle: 2 }), (INVALID, None), "of another handle");
        assert_eq!(regions.call(Region::Stop { handle: 1 }), (SUCCESS, None));
        assert_eq!(regions.call(Region::Stop { handle: 1 }), (INVALID, None), "it is over");
        assert_eq!(regions.call(start(1)), (SUCCESS, Some((64, 2u64.to_le_bytes().to_vec()))));
        assert_eq!(regions.call(is_active(1)), told(1));
    }

    #[test]
    fn arguments_that_nvshmem_refuses_are_refused() {
        let mut regions = Regions::default();
        for wrong in [
            Region::Start { handle: 0, hints: 0 },
            Region::Start { handle: 64, hints: 2 },
            Region::IsActive { hints: 0, active: 0 },
            Region::IsActive { hints: 4, active: 32 },
        ] {
            assert_eq!(regions.call(wrong), (INVALID, None), "{wrong:?}");
        }
        assert_eq!(regions, Regions::default());
    }
}
