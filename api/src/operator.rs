//! What comparisons, signals, reductions and atomics do to values, as plain data with its arithmetic.
#![expect(clippy::exhaustive_enums, reason = "a backend must do each of them")]

use crate::element::DType;

/// How `wait_until` compares the value in memory (left) with the given one (right).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cmp {
    /// equal (`NVSHMEM_CMP_EQ`)
    Eq,
    /// not equal (`NVSHMEM_CMP_NE`)
    Ne,
    /// greater (`NVSHMEM_CMP_GT`)
    Gt,
    /// less or equal (`NVSHMEM_CMP_LE`)
    Le,
    /// less (`NVSHMEM_CMP_LT`)
    Lt,
    /// greater or equal (`NVSHMEM_CMP_GE`)
    Ge,
}

impl Cmp {
    /// Every comparison.
    pub const ALL: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Gt, Cmp::Le, Cmp::Lt, Cmp::Ge];

    /// Whether `found <cmp> wanted` holds.
    ///
    /// ```
    /// use onesided::Cmp;
    /// assert!(Cmp::Ge.holds(3, 3));
    /// assert!(!Cmp::Lt.holds(3, 3));
    /// ```
    #[inline]
    pub fn holds<T: PartialOrd>(self, found: T, wanted: T) -> bool {
        match self {
            Cmp::Eq => found == wanted,
            Cmp::Ne => found != wanted,
            Cmp::Gt => found > wanted,
            Cmp::Le => found <= wanted,
            Cmp::Lt => found < wanted,
            Cmp::Ge => found >= wanted,
        }
    }

    /// [`Cmp::holds`] on element bits, zero-extended to 64, of an integer type.
    #[inline]
    pub fn holds_bits(self, dtype: DType, found: u64, wanted: u64) -> bool {
        match dtype {
            DType::I8 => self.holds(found as i8, wanted as i8),
            DType::I16 => self.holds(found as i16, wanted as i16),
            DType::I32 => self.holds(found as i32, wanted as i32),
            DType::I64 => self.holds(found as i64, wanted as i64),
            _ => self.holds(found, wanted),
        }
    }

    /// The comparison as it is written between two values.
    pub fn symbol(self) -> &'static str {
        match self {
            Cmp::Eq => "==",
            Cmp::Ne => "!=",
            Cmp::Gt => ">",
            Cmp::Le => "<=",
            Cmp::Lt => "<",
            Cmp::Ge => ">=",
        }
    }
}

/// How a signal changes its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalOp {
    /// The word becomes the value (`NVSHMEM_SIGNAL_SET`).
    Set,
    /// The value is added, wrapping (`NVSHMEM_SIGNAL_ADD`).
    Add,
}

impl SignalOp {
    /// The word after the update.
    #[inline]
    pub fn apply(self, old: u64, value: u64) -> u64 {
        match self {
            SignalOp::Set => value,
            SignalOp::Add => old.wrapping_add(value),
        }
    }

    /// The name in traces.
    pub fn name(self) -> &'static str {
        match self {
            SignalOp::Set => "set",
            SignalOp::Add => "add",
        }
    }
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReduceOp {
    /// Sum; integers wrap.
    Sum,
    /// Product; integers wrap.
    Prod,
    /// The smallest element.
    Min,
    /// The largest element.
    Max,
    /// Bitwise and; integers only.
    And,
    /// Bitwise or; integers only.
    Or,
    /// Bitwise exclusive or; integers only.
    Xor,
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: [ReduceOp; 7] =
        [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max, ReduceOp::And, ReduceOp::Or, ReduceOp::Xor];

    /// Whether it reduces integers only.
    pub fn is_bitwise(self) -> bool {
        matches!(self, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
    }

    /// Whether NVSHMEM has this reduction of elements of the type: the bitwise ones are of integers alone.
    ///
    /// ```
    /// use onesided::{DType, ReduceOp};
    /// assert!(ReduceOp::Sum.reduces(DType::F32) && !ReduceOp::Xor.reduces(DType::F32));
    /// ```
    #[inline]
    pub fn reduces(self, dtype: DType) -> bool {
        !(self.is_bitwise() && dtype.is_float())
    }

    /// The name in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Min => "min",
            ReduceOp::Max => "max",
            ReduceOp::And => "and",
            ReduceOp::Or => "or",
            ReduceOp::Xor => "xor",
        }
    }
}

/// What an atomic operation does to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AmoOp {
    /// Only fetches.
    Fetch,
    /// Stores the value.
    Set,
    /// Adds the value, wrapping; `inc` is an add of one.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Stores the value if the word equals the condition.
    CompareSwap,
}

impl AmoOp {
    /// Every atomic operation.
    pub const ALL: [AmoOp; 7] =
        [AmoOp::Fetch, AmoOp::Set, AmoOp::Add, AmoOp::And, AmoOp::Or, AmoOp::Xor, AmoOp::CompareSwap];

    /// The word after the operation, on the bits of an element of `size` bytes.
    #[inline]
    pub fn apply(self, old: u64, value: u64, cond: u64, size: usize) -> u64 {
        let new = match self {
            AmoOp::Fetch => old,
            AmoOp::Set => value,
            AmoOp::Add => old.wrapping_add(value),
            AmoOp::And => old & value,
            AmoOp::Or => old | value,
            AmoOp::Xor => old ^ value,
            AmoOp::CompareSwap => {
                if old == cond {
                    value
                } else {
                    old
                }
            }
        };
        if size == 8 { new } else { new & ((1u64 << (8 * size)) - 1) }
    }

    /// The verb of the API that does it, by which operations and traces name it: one of [`Op::NAMES`](crate::backend::Op::NAMES).
    /// `fetches`: it returns the old value.
    ///
    /// ```
    /// use onesided::backend::AmoOp;
    ///
    /// assert_eq!(AmoOp::Set.verb(true), "atomic_swap");
    /// ```
    pub fn verb(self, fetches: bool) -> &'static str {
        match (self, fetches) {
            (AmoOp::Fetch, _) => "atomic_fetch",
            (AmoOp::Set, false) => "atomic_set",
            (AmoOp::Set, true) => "atomic_swap",
            (AmoOp::Add, false) => "atomic_add",
            (AmoOp::Add, true) => "atomic_fetch_add",
            (AmoOp::And, false) => "atomic_and",
            (AmoOp::And, true) => "atomic_fetch_and",
            (AmoOp::Or, false) => "atomic_or",
            (AmoOp::Or, true) => "atomic_fetch_or",
            (AmoOp::Xor, false) => "atomic_xor",
            (AmoOp::Xor, true) => "atomic_fetch_xor",
            (AmoOp::CompareSwap, _) => "atomic_compare_swap",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_stay_inside_their_width() {
        assert_eq!(AmoOp::Add.apply(0xffff_ffff, 1, 0, 4), 0);
        assert_eq!(AmoOp::Add.apply(u64::MAX, 2, 0, 8), 1);
        assert_eq!(AmoOp::CompareSwap.apply(5, 9, 5, 4), 9);
        assert_eq!(AmoOp::CompareSwap.apply(5, 9, 6, 4), 5);
        assert_eq!(AmoOp::Xor.apply(0b1100, 0b1010, 0, 4), 0b0110);
    }

    #[test]
    fn comparisons() {
        for (cmp, less, same, more) in [
            (Cmp::Eq, false, true, false),
            (Cmp::Ne, true, false, true),
            (Cmp::Gt, false, false, true),
            (Cmp::Le, true, true, false),
            (Cmp::Lt, true, false, false),
            (Cmp::Ge, false, true, true),
        ] {
            assert_eq!((cmp.holds(1, 2), cmp.holds(2, 2), cmp.holds(3, 2)), (less, same, more), "{cmp:?}");
        }
    }
}
