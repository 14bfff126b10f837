//! [`How`]: what an access does to a word, and which two accesses conflict.

/// What an access does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// A transfer writes whole elements: a wait may look at one.
    Deliver,
    /// Reads atomically: a fetch, or a wait for a signal.
    AtomicRead,
    /// Updates atomically: a signal or an atomic.
    AtomicUpdate,
    /// A wait for any variable: what a put delivers may be what it waits for.
    Wait,
    /// An atomic of a kernel reads and updates.
    AtomicFetch,
}

impl How {
    const ALL: [How; 7] =
        [How::Read, How::Write, How::Deliver, How::AtomicRead, How::AtomicUpdate, How::Wait, How::AtomicFetch];

    pub(super) fn from_bits(bits: u32) -> How {
        How::ALL[bits as usize]
    }

    pub(super) fn writes(self) -> bool {
        matches!(self, How::Write | How::Deliver) || self.updates_atomically()
    }

    pub(super) fn updates_atomically(self) -> bool {
        matches!(self, How::AtomicUpdate | How::AtomicFetch)
    }

    /// Whether it looks at what atomic updates have left.
    pub(super) fn reads_atomically(self) -> bool {
        matches!(self, How::AtomicRead | How::AtomicFetch)
    }

    pub(super) fn is_plain_write(self) -> bool {
        matches!(self, How::Write | How::Deliver)
    }

    /// Whether two accesses that nothing orders are a race; `same_size`: of words of one size. Each is given by its number in
    /// [`How::ALL`], with whatever lies above its three bits.
    #[inline(always)]
    pub(super) fn conflicts(one: u32, other: u32, same_size: bool) -> bool {
        let bit = 1 << (other & 7);
        let row = (one & 7) as usize;
        ALWAYS[row] & bit != 0 || !same_size && UNLESS_OF_ONE_SIZE[row] & bit != 0
    }
}

/// For each kind of access, in the order of [`How::ALL`], those that it conflicts with whatever the sizes: a bit each.
const ALWAYS: [u8; 8] = [0b101_0110, 0b111_1111, 0b101_1111, 0b000_0110, 0b000_0111, 0b000_0010, 0b000_0111, 0];
/// The same, where the words differ in size.
const UNLESS_OF_ONE_SIZE: [u8; 8] = [0, 0, 0b010_0000, 0b101_0000, 0b111_1000, 0b101_0100, 0b111_1000, 0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_conflicts_is_the_same_from_both_sides() {
        use How::{AtomicFetch, AtomicRead, AtomicUpdate, Deliver, Read, Wait, Write};
        let conflicts = |one: How, other: How, same_size| {
            let there = How::conflicts(one as u32, other as u32, same_size);
            assert_eq!(there, How::conflicts(other as u32, one as u32, same_size), "{one:?} {other:?}");
            there
        };
        for one in How::ALL {
            for other in How::ALL {
                let as_update = |how: How| if how == AtomicFetch { AtomicUpdate } else { how };
                let by_size = match (as_update(one), as_update(other)) {
                    (Read | AtomicRead | Wait, Read | AtomicRead | Wait) => Some(false),
                    (Write, _) | (_, Write) => Some(true),
                    (Deliver, Wait) | (Wait, Deliver) => None,
                    (Deliver, _) | (_, Deliver) | (AtomicUpdate, Read) | (Read, AtomicUpdate) => Some(true),
                    (AtomicUpdate, AtomicRead | Wait | AtomicUpdate) | (AtomicRead | Wait, AtomicUpdate) => None,
                    (AtomicFetch, _) | (_, AtomicFetch) => unreachable!("it is as an update"),
                };
                assert_eq!(conflicts(one, other, true), by_size.unwrap_or(false), "{one:?} {other:?}");
                assert_eq!(conflicts(one, other, false), by_size.unwrap_or(true), "{one:?} {other:?}");
            }
        }
    }
}
