//! [`Values`]: what an operation takes from the host's private memory.

/// Values of an operation that lie in the host's private memory. They travel beside the [`Op`](crate::backend::Op), borrowed. A
/// backend that needs them after the call copies them.
///
/// [`Op::Fill`](crate::backend::Op::Fill) stores `bytes`. [`Op::Wait`](crate::backend::Op::Wait) leaves out the variables that `skip`
/// names, and compares with `bytes` if it says [`Against::Each`](crate::backend::Against::Each). The other operations have
/// [`Values::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    /// Elements of the operation's type.
    pub bytes: &'a [u8],
    /// Which variables are left out (`status[i] != 0`): a flag for each variable, or none.
    pub skip: &'a [bool],
}

impl Values<'_> {
    /// No values.
    pub const NONE: Values<'static> = Values { bytes: &[], skip: &[] };

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.skip.is_empty()
    }

    /// Whether variable `i` of a wait is left out.
    #[inline]
    pub fn skips(&self, i: usize) -> bool {
        self.skip.get(i).copied().unwrap_or(false)
    }

    /// The bits of element `i`, zero-extended, where each has `size` bytes: at most 8.
    ///
    /// # Panics
    /// When there are not so many elements.
    #[inline]
    pub fn bits(&self, i: usize, size: usize) -> u64 {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&self.bytes[i * size..(i + 1) * size]);
        u64::from_le_bytes(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;

    #[test]
    fn elements_are_found_by_number_and_size() {
        let values = [7i16, -1];
        let values = Values { bytes: bytemuck::must_cast_slice(&values), skip: &[true, false] };
        assert_eq!([values.bits(0, 2), values.bits(1, 2)], [7, (-1i16).to_bits64()]);
        assert_eq!([values.skips(0), values.skips(1), Values::NONE.skips(0)], [true, false, false]);
        assert!(Values::NONE.is_empty() && !values.is_empty());
    }
}
