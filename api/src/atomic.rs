//! Atomic memory operations. The host issues them, and a backend may lack them.

use crate::at::At;
use crate::backend::Backend;
use crate::call::Call;
use crate::element::{Atomic, AtomicBits, AtomicSwap, Element};
use crate::error::Result;
use crate::issue::Host;
use crate::op::Op;
use crate::operand::Symmetric;
use crate::operator::AmoOp;

/// # Atomics
///
/// Each works on one element of symmetric memory on `pe`, and is atomic with respect to the other atomics of the same type. An
/// atomic that fetches returns the old value; when it returns, its update is visible. An atomic that does not fetch returns at
/// once. Its update becomes visible at any time until it is completed, like that of a put.
///
/// [`Capabilities::host_atomics`](crate::Capabilities::host_atomics) says whether they work. libnvshmem exports them for the host
/// as stubs that print a line and do nothing. So its backend runs a kernel of its own for each, or refuses them with
/// [`Unsupported`](crate::ErrorKind::Unsupported) where it cannot make one. NVSHMEM has no atomics on streams.
///
/// ```
/// # onesided_sim::example(2, |pe| {
/// let counter = pe.alloc_zeroed::<u64>(1)?;
/// let ticket = pe.host().atomic_fetch_add(&counter, 1, 0)?;
/// println!("PE {} drew ticket {ticket}", pe.my_pe());
/// # pe.free(counter) });
/// ```
impl<B: Backend> Host<'_, B> {
    /// The word's value (`nvshmem_atomic_fetch`).
    ///
    /// # One-sided
    /// Fetches.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `word` is not one element or there is no such PE;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) without host atomics.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let word = pe.alloc_zeroed::<u64>(1)?;
    /// let value = pe.host().atomic_fetch(&word, 0)?;
    /// assert_eq!(value, 0);
    /// # pe.free(word) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn atomic_fetch<T: AtomicSwap>(&self, word: impl Symmetric<T>, pe: usize) -> Result<T> {
        self.amo(self.call("atomic_fetch", At::caller()), word, AmoOp::Fetch, [None, None], true, pe)
    }

    /// Stores `value` (`nvshmem_atomic_set`).
    ///
    /// # One-sided
    /// Returns at once.
    ///
    /// # Errors
    /// As [`Host::atomic_fetch`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let word = pe.alloc_zeroed::<u64>(1)?;
    /// pe.host().atomic_set(&word, 7, pe.my_pe())?;
    /// pe.host().quiet()?;
    /// assert_eq!(pe.read_one(&word)?, 7);
    /// # pe.free(word) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn atomic_set<T: AtomicSwap>(&self, word: impl Symmetric<T>, value: T, pe: usize) -> Result<()> {
        self.amo(self.call("atomic_set", At::caller()), word, AmoOp::Set, [Some(value), None], false, pe).map(drop)
    }

    /// Stores `value` and returns the old one (`nvshmem_atomic_swap`).
    ///
    /// # One-sided
    /// Fetches.
    ///
    /// # Errors
    /// As [`Host::atomic_fetch`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let word = pe.alloc_zeroed::<u64>(1)?;
    /// let mine = pe.my_pe() as u64 + 1;
    /// let before = pe.host().atomic_swap(&word, mine, 0)?;
    /// assert!(before != mine);
    /// # pe.free(word) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn atomic_swap<T: AtomicSwap>(&self, word: impl Symmetric<T>, value: T, pe: usize) -> Result<T> {
        self.amo(self.call("atomic_swap", At::caller()), word, AmoOp::Set, [Some(value), None], true, pe)
    }

    /// Stores `value` if the word equals `cond`; returns the old value (`nvshmem_atomic_compare_swap`).
    ///
    /// # One-sided
    /// Fetches.
    ///
    /// # Errors
    /// As [`Host::atomic_fetch`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let word = pe.alloc_zeroed::<u64>(1)?;
    /// let mine = pe.my_pe() as u64 + 1;
    /// let before = pe.host().atomic_compare_swap(&word, 0, mine, 0)?;
    /// let winner = if before == 0 { mine } else { before };
    /// assert_eq!(pe.host().atomic_fetch(&word, 0)?, winner);
    /// # pe.free(word) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn atomic_compare_swap<T: Atomic>(&self, word: impl Symmetric<T>, cond: T, value: T, pe: usize) -> Result<T> {
        let operands = [Some(value), Some(cond)];
        self.amo(self.call("atomic_compare_swap", At::caller()), word, AmoOp::CompareSwap, operands, true, pe)
    }

    /// Adds one (`nvshmem_atomic_inc`).
    ///
    /// # One-sided
    /// Returns at once.
    ///
    /// # Errors
    /// As [`Host::atomic_fetch`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let word = pe.alloc_zeroed::<u64>(1)?;
    /// pe.host().atomic_inc(&word, 0)?;
    /// pe.host().barrier_all()?;
    /// assert_eq!(pe.host().g(&word, 0)?, pe.n_pes() as u64);
    /// # pe.free(word) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn atomic_inc<T: Atomic>(&self, word: impl Symmetric<T>, pe: usize) -> Result<()> {
        let one = Some(T::from_bits64(1));
        self.amo(self.call("atomic_inc", At::caller()), word, AmoOp::Add, [one, None], false, pe).map(drop)
    }

    /// Adds one and returns the old value (`nvshmem_atomic_fetch_inc`).
    ///
    /// # One-sided
    /// Fetches.
    ///
    /// # Errors
    /// As [`Host::atomic_fetch`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let word = pe.alloc_zeroed::<u64>(1)?;
    /// let ticket = pe.host().atomic_fetch_inc(&word, 0)?;
    /// assert!(ticket < pe.n_pes() as u64);
    /// # pe.free(word) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn atomic_fetch_inc<T: Atomic>(&self, word: impl Symmetric<T>, pe: usize) -> Result<T> {
        let one = Some(T::from_bits64(1));
        self.amo(self.call("atomic_fetch_inc", At::caller()), word, AmoOp::Add, [one, None], true, pe)
    }

    #[inline(always)]
    fn amo<T: Element>(
        &self,
        call: Call,
        word: impl Symmetric<T>,
        op: AmoOp,
        [value, cond]: [Option<T>; 2],
        fetch: bool,
        pe: usize,
    ) -> Result<T> {
        let dst = call.element::<T>("word", word)?;
        let pe = call.pe(pe)?;
        call.require(self.pe.backend.capabilities().host_atomics)?;
        let [value, cond] = [value, cond].map(|operand| operand.map_or(0, T::to_bits64));
        self.issue(Op::Amo { dst, dtype: T::DTYPE, op, value, cond, fetch, pe }, call).map(T::from_bits64)
    }
}

/// The verbs that come as a pair, with and without the old value. `$start`, `$value` and `$end` are for their examples.
macro_rules! pairs {
    ($($plain:ident, $fetching:ident, $bound:ident, $op:ident, $does:literal, [$start:literal, $value:literal, $end:literal];)*) => {
        /// # Atomics that combine
        impl<B: Backend> Host<'_, B> {$(
            #[doc = concat!($does, " (`nvshmem_", stringify!($plain), "`).")]
            ///
            /// # One-sided
            /// Returns at once.
            ///
            /// # Errors
            /// As [`Host::atomic_fetch`].
            ///
            /// ```
            /// # onesided_sim::example(2, |pe| {
            /// # let word = pe.alloc::<u32>(1)?;
            #[doc = concat!("pe.write(&word, &[", $start, "])?;")]
            #[doc = concat!("pe.host().", stringify!($plain), "(&word, ", $value, ", pe.my_pe())?;")]
            /// pe.host().quiet()?;
            #[doc = concat!("assert_eq!(pe.read_one(&word)?, ", $end, ");")]
            /// # pe.free(word) });
            /// ```
            #[inline]
            #[track_caller]
            pub fn $plain<T: $bound>(&self, word: impl Symmetric<T>, value: T, pe: usize) -> Result<()> {
                let call = self.call(stringify!($plain), At::caller());
                self.amo(call, word, AmoOp::$op, [Some(value), None], false, pe).map(drop)
            }

            #[doc = concat!($does, " and returns the old value (`nvshmem_", stringify!($fetching), "`).")]
            ///
            /// # One-sided
            /// Fetches.
            ///
            /// # Errors
            /// As [`Host::atomic_fetch`].
            ///
            /// ```
            /// # onesided_sim::example(2, |pe| {
            /// # let word = pe.alloc::<u32>(1)?;
            #[doc = concat!("pe.write(&word, &[", $start, "])?;")]
            #[doc = concat!("let old = pe.host().", stringify!($fetching), "(&word, ", $value, ", pe.my_pe())?;")]
            #[doc = concat!("assert_eq!((old, pe.read_one(&word)?), (", $start, ", ", $end, "));")]
            /// # pe.free(word) });
            /// ```
            #[inline]
            #[track_caller]
            pub fn $fetching<T: $bound>(&self, word: impl Symmetric<T>, value: T, pe: usize) -> Result<T> {
                let call = self.call(stringify!($fetching), At::caller());
                self.amo(call, word, AmoOp::$op, [Some(value), None], true, pe)
            }
        )*}
    };
}

pairs! {
    atomic_add, atomic_fetch_add, Atomic, Add, "Adds `value`, wrapping", ["40", "2", "42"];
    atomic_and, atomic_fetch_and, AtomicBits, And, "Combines with `value` by bitwise and", ["0b1100", "0b1010", "0b1000"];
    atomic_or, atomic_fetch_or, AtomicBits, Or, "Combines with `value` by bitwise or", ["0b1100", "0b1010", "0b1110"];
    atomic_xor, atomic_fetch_xor, AtomicBits, Xor, "Combines with `value` by bitwise exclusive or", ["0b1100", "0b1010", "0b0110"];
}
