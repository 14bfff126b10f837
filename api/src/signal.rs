//! Signals and waits: how one PE tells another that data is there.

use crate::at::At;
use crate::backend::Backend;
use crate::buffer::Signal;
use crate::call::Call;
use crate::element::{DType, Waitable};
use crate::error::Result;
use crate::issue::{Host, Issue};
use crate::op::{Against, Op, SignalUpdate};
use crate::operand::{Local, Operand, Symmetric};
use crate::operator::{Cmp, SignalOp};
use crate::span::Span;
use crate::values::Values;

/// # Signals
///
/// ```text
/// producer   put_signal(dst, src, signal, 1, Set, 1) ──► its own data delivered ──► signal delivered
/// consumer                                  signal_wait_until(signal, Eq, 1) ──────► returns; dst may be read
/// ```
impl<B: Backend> Issue<'_, B> {
    /// Copies my `src` to `dst` on `pe` as [`put`](Issue::put) does, then updates `signal` on `pe`
    /// (`nvshmemx_put_signal_on_stream`).
    ///
    /// # One-sided
    /// Whoever waits for the signal sees *this* put's data. The signal is not ordered with any other transfer, not even with
    /// earlier ones of the same PE. From the host, the backend for GPUs composes it of a stream operation and a synchronize.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ, the signal lies inside `dst`, there is no such
    /// PE, or `pe` is the calling PE and `dst` and `src` overlap without being the same.
    ///
    /// NVSHMEM documentation, "Signaling Operations".
    ///
    /// ```
    /// # use onesided::{Cmp, SignalOp};
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src, flags) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?, pe.alloc_zeroed::<u64>(1)?);
    /// if pe.my_pe() == 0 {
    ///     pe.host().put_signal(&dst, &src, flags.signal(0), 1, SignalOp::Set, 1)?;
    /// } else if pe.my_pe() == 1 {
    ///     pe.host().signal_wait_until(flags.signal(0), Cmp::Eq, 1)?;
    ///     let data = pe.read(&dst)?; // PE 0's src
    /// }
    /// # pe.free(dst)?; pe.free(src)?; pe.free(flags) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn put_signal<T: crate::Element>(
        &self,
        dst: impl Symmetric<T>,
        src: impl Local<T>,
        signal: Signal<'_>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<()> {
        let call = self.call("put_signal", At::caller());
        self.put_signal_op(call, (dst, src, T::DTYPE), (signal, value, op), pe, false)
    }

    /// As [`Issue::put_signal`], but returns at once: `src` must not change until a quiet or flush
    /// (`nvshmemx_put_signal_nbi_on_stream`).
    ///
    /// # One-sided
    /// As [`Issue::put_signal`]. Without a fence between them, two of these calls are not ordered.
    ///
    /// # Errors
    /// As [`Issue::put_signal`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// let flags = pe.alloc_zeroed::<u64>(1)?;
    /// # let next = 1 - pe.my_pe();
    /// pe.host().put_signal_nbi(&dst, &src, flags.signal(0), 1, onesided::SignalOp::Add, next)?;
    /// pe.host().quiet()?; // src may change again
    /// pe.free(flags)?;
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn put_signal_nbi<T: crate::Element>(
        &self,
        dst: impl Symmetric<T>,
        src: impl Local<T>,
        signal: Signal<'_>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<()> {
        let call = self.call("put_signal_nbi", At::caller());
        self.put_signal_op(call, (dst, src, T::DTYPE), (signal, value, op), pe, true)
    }

    #[inline(always)]
    fn put_signal_op(
        &self,
        call: Call,
        (dst, src, dtype): (impl Operand, impl Operand, DType),
        (signal, value, op): (Signal<'_>, u64, SignalOp),
        pe: usize,
        nbi: bool,
    ) -> Result<()> {
        let (dst, src, word) = (call.span("dst", dst)?, call.span("src", src)?, call.signal(signal)?);
        call.same_elements(dst, src, dtype)?;
        let pe = call.pe(pe)?;
        call.apart(pe as usize == self.pe.my_pe(), dst, src)?;
        if dst.overlaps(&word) {
            return Err(call.refuse(format!("the signal {word} lies inside dst {dst}")));
        }
        self.check_host_signals(call)?;
        let signal = Some(SignalUpdate { word, value, op });
        self.issue(Op::Put { dst, src, dtype, pe, nbi, signal }, call).map(drop)
    }

    /// Updates `signal` on `pe` (`nvshmemx_signal_op_on_stream`).
    ///
    /// # One-sided
    /// Returns at once. The update becomes visible at any time until this scope completes it. Only [`Issue::fence`] or
    /// [`Issue::quiet`] orders it behind earlier transfers to the same PE.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when there is no such PE.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let flags = pe.alloc_zeroed::<u64>(8)?;
    /// pe.host().signal_op(flags.signal(0), 1, onesided::SignalOp::Add, 0)?; // count me in
    /// # pe.free(flags) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn signal_op(&self, signal: Signal<'_>, value: u64, op: SignalOp, pe: usize) -> Result<()> {
        let call = self.call("signal_op", At::caller());
        let (word, pe) = (call.signal(signal)?, call.pe(pe)?);
        self.check_host_signals(call)?;
        self.issue(Op::Signal { update: SignalUpdate { word, value, op }, pe }, call).map(drop)
    }

    /// Waits until my `signal` compares true with `value` (`nvshmemx_signal_wait_until_on_stream`).
    ///
    /// # One-sided
    /// Local. Afterwards the data that the signal covers can be read. A wait with [`Cmp::Eq`] can miss a value that is overwritten
    /// at once.
    ///
    /// The host compares unsigned numbers. A stream does so too, except for `>=`, which can be CUDA's `cuStreamWaitValue64`: it
    /// holds if the difference is not negative as a signed number. Then 0 `>=` `u64::MAX` holds, and `u64::MAX` `>=` 0 does
    /// not. The two agree as long as values are less than half the range apart.
    ///
    /// # Errors
    /// Those of the device. A wait that can never end is a deadlock: a verdict of the simulator, a hang on hardware.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let flags = pe.alloc_zeroed::<u64>(8)?;
    /// pe.host().signal_op(flags.signal(0), 1, onesided::SignalOp::Set, pe.my_pe())?;
    /// pe.host().signal_wait_until(flags.signal(0), onesided::Cmp::Ge, 1)?;
    /// # pe.free(flags) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn signal_wait_until(&self, signal: Signal<'_>, cmp: Cmp, value: u64) -> Result<()> {
        self.signal_wait(signal, cmp, value, At::caller()).map(drop)
    }

    #[inline(always)]
    fn signal_wait(&self, signal: Signal<'_>, cmp: Cmp, value: u64, at: At) -> Result<u64> {
        let call = self.call("signal_wait_until", at);
        let vars = call.signal(signal)?;
        self.check_host_signals(call)?;
        let (against, dtype) = (Against::One(value), DType::U64);
        self.issue(Op::Wait { vars, dtype, cmp, against, signal: true }, call)
    }

    /// Waits until my variable compares true with `value` (`nvshmemx_wait_until_on_stream`).
    ///
    /// # One-sided
    /// Local. Atomics and signals synchronize with a wait: what they cover can be read afterwards. NVSHMEM also lets one wait for
    /// a value that a plain put of the whole variable wrote. OpenSHMEM 1.6 no longer does.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `var` is not one element.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let words = pe.alloc_zeroed::<i32>(8)?;
    /// pe.host().atomic_set(words.at(0), 7, pe.my_pe())?;
    /// pe.host().wait_until(words.at(0), onesided::Cmp::Eq, 7)?;
    /// # pe.free(words) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn wait_until<T: Waitable>(&self, var: impl Symmetric<T>, cmp: Cmp, value: T) -> Result<()> {
        let call = self.call("wait_until", At::caller());
        let var = call.element::<T>("var", var)?;
        self.wait::<T>(call, var, cmp, Against::One(value.to_bits64()), Values::NONE)
    }

    /// Waits until each of my variables has compared true with `value` (`nvshmemx_wait_until_all_on_stream`). Where
    /// `skip` is given, variables with `skip[i]` are left out.
    ///
    /// # One-sided
    /// As [`Issue::wait_until`], for one variable after the other: each has compared true at some time, and the first may
    /// have changed again when the last does.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `skip` is not as long as `vars`.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let words = pe.alloc_zeroed::<u64>(8)?;
    /// // all but the last
    /// let skip = [false, false, false, false, false, false, false, true];
    /// pe.host().wait_until_all(&words, Some(&skip), onesided::Cmp::Ge, 0)?;
    /// # pe.free(words) });
    /// ```
    #[track_caller]
    pub fn wait_until_all<T: Waitable>(
        &self,
        vars: impl Symmetric<T>,
        skip: Option<&[bool]>,
        cmp: Cmp,
        value: T,
    ) -> Result<()> {
        let call = self.call("wait_until_all", At::caller());
        let vars = call.span("vars", vars)?;
        let skip = checked_skip::<T>(call, vars, skip)?;
        self.wait::<T>(call, vars, cmp, Against::One(value.to_bits64()), Values { bytes: &[], skip })
    }

    /// Waits until each of my variables has compared true with its own value
    /// (`nvshmemx_wait_until_all_vector_on_stream`).
    ///
    /// # One-sided
    /// As [`Issue::wait_until_all`].
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `skip` or `values` is not as long as `vars`.
    ///
    /// ```
    /// # use onesided::Cmp;
    /// # onesided_sim::example(2, |pe| {
    /// # let counters = pe.alloc_zeroed::<u64>(3)?;
    /// pe.host().wait_until_all_vector(&counters, None, Cmp::Ge, &[0, 0, 0])?;
    /// # pe.free(counters) });
    /// ```
    #[track_caller]
    pub fn wait_until_all_vector<T: Waitable>(
        &self,
        vars: impl Symmetric<T>,
        skip: Option<&[bool]>,
        cmp: Cmp,
        values: &[T],
    ) -> Result<()> {
        let call = self.call("wait_until_all_vector", At::caller());
        let vars = call.span("vars", vars)?;
        call.same_len([("vars", vars.len / size_of::<T>()), ("values", values.len())])?;
        let skip = checked_skip::<T>(call, vars, skip)?;
        let bytes = bytemuck::must_cast_slice(values);
        self.wait::<T>(call, vars, cmp, Against::Each, Values { bytes, skip })
    }

    #[inline(always)]
    fn wait<T: Waitable>(&self, call: Call, vars: Span, cmp: Cmp, against: Against, values: Values<'_>) -> Result<()> {
        self.check_host_signals(call)?;
        self.issue_with(Op::Wait { vars, dtype: T::DTYPE, cmp, against, signal: false }, values, call).map(drop)
    }

    #[inline]
    fn check_host_signals(&self, call: Call) -> Result<()> {
        if self.is_on_stream() {
            return Ok(());
        }
        call.require(self.pe.backend.host_signals())
    }
}

/// # Signals that return a value
impl<B: Backend> Host<'_, B> {
    /// My signal's value (`nvshmem_signal_fetch`).
    ///
    /// # One-sided
    /// Local, and atomic against signals. When it returns a signal's value, the data that the signal covers can be read.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let flags = pe.alloc_zeroed::<u64>(8)?;
    /// pe.host().signal_op(flags.signal(0), 2, onesided::SignalOp::Set, pe.my_pe())?;
    /// pe.host().quiet()?;
    /// assert_eq!(pe.host().signal_fetch(flags.signal(0))?, 2);
    /// # pe.free(flags) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn signal_fetch(&self, signal: Signal<'_>) -> Result<u64> {
        let call = self.call("signal_fetch", At::caller());
        self.issue(Op::SignalFetch { word: call.signal(signal)? }, call)
    }

    /// As [`Issue::signal_wait_until`]; returns a value of the signal that compared true (`nvshmem_signal_wait_until`).
    ///
    /// # One-sided
    /// Local. The value is one with which the wait ended. The signal may have changed again since.
    ///
    /// # Errors
    /// As [`Issue::signal_wait_until`].
    ///
    /// ```
    /// # use onesided::{Cmp, SignalOp};
    /// # onesided_sim::example(2, |pe| {
    /// # let flags = pe.alloc_zeroed::<u64>(8)?;
    /// pe.host().signal_op(flags.signal(0), 3, SignalOp::Set, pe.my_pe())?;
    /// let arrived = pe.host().signal_wait_until(flags.signal(0), Cmp::Ge, 1)?;
    /// assert_eq!(arrived, 3);
    /// # pe.free(flags) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn signal_wait_until(&self, signal: Signal<'_>, cmp: Cmp, value: u64) -> Result<u64> {
        self.signal_wait(signal, cmp, value, At::caller())
    }
}

/// The flags of variables that a wait leaves out, as [`Values`] has them.
fn checked_skip<T: Waitable>(call: Call, vars: Span, skip: Option<&[bool]>) -> Result<&[bool]> {
    let Some(skip) = skip else { return Ok(&[]) };
    call.same_len([("vars", vars.len / size_of::<T>()), ("skip", skip.len())])?;
    Ok(skip)
}
