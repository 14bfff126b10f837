//! Who issues: [`Issue`] has the verbs that the host and streams share, [`Host`] adds those that return a value.
//!
//! This file has the verbs that order operations. The other verbs of the same two types are in `rma.rs`, `signal.rs`,
//! `atomic.rs` and `collective.rs`.

use std::ops::Deref;

use crate::at::At;
use crate::backend::Backend;
use crate::call::Call;
use crate::error::Result;
use crate::op::Op;
use crate::pe::Pe;
use crate::stream::Stream;
use crate::values::Values;

/// Issues operations: from the host ([`Pe::host`]) or on a stream ([`Pe::on`]).
///
/// What the host issued and what streams issued are two *scopes*. A fence, quiet or barrier of one scope promises nothing about
/// the other.
pub struct Issue<'a, B: Backend> {
    pub(crate) pe: &'a Pe<B>,
    stream: Option<&'a Stream<B>>,
}

/// [`Issue`] from the host, which can also return values.
pub struct Host<'a, B: Backend>(Issue<'a, B>);

impl<'a, B: Backend> Issue<'a, B> {
    #[inline]
    pub(crate) fn new(pe: &'a Pe<B>, stream: Option<&'a Stream<B>>) -> Self {
        Issue { pe, stream }
    }

    /// Hands a validated operation to the backend.
    ///
    /// Always inlined, like all code that verbs share. So the compiler knows which operation it is, and whether there is a
    /// stream.
    #[inline(always)]
    pub(crate) fn issue(&self, op: Op, call: Call) -> Result<u64> {
        self.issue_with(op, Values::NONE, call)
    }

    /// As [`Self::issue`], for an operation that has values.
    #[inline(always)]
    pub(crate) fn issue_with(&self, op: Op, values: Values<'_>, call: Call) -> Result<u64> {
        let stream = self.own_stream(call)?;
        self.pe.backend.issue(&op, &values, stream, call.at)
    }

    /// The stream on which a call is enqueued, which must be of the same PE; `None` from the host.
    #[inline(always)] // as its caller
    pub(crate) fn own_stream(&self, call: Call) -> Result<Option<&B::Stream>> {
        self.stream.map(|stream| call.stream(stream)).transpose()
    }

    /// A call of the verb `name`.
    #[inline]
    pub(crate) fn call(&self, name: &'static str, at: At) -> Call {
        self.pe.call(name, at)
    }

    /// The stream, unless the host issues.
    pub(crate) fn stream(&self) -> Option<&Stream<B>> {
        self.stream
    }

    pub(crate) fn is_on_stream(&self) -> bool {
        self.stream.is_some()
    }
}

impl<'a, B: Backend> Host<'a, B> {
    #[inline]
    pub(crate) fn new(pe: &'a Pe<B>) -> Self {
        Host(Issue { pe, stream: None })
    }
}

impl<'a, B: Backend> Deref for Host<'a, B> {
    type Target = Issue<'a, B>;
    #[inline]
    fn deref(&self) -> &Issue<'a, B> {
        &self.0
    }
}

impl<B: Backend> std::fmt::Debug for Issue<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?}", if self.is_on_stream() { "a stream" } else { "the host" }, self.pe)
    }
}

impl<B: Backend> std::fmt::Debug for Host<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// # Ordering
impl<B: Backend> Issue<'_, B> {
    /// Orders what this scope issued, *for each target PE*: puts, signals and atomics that were issued to a PE before the fence
    /// are delivered there before those that are issued to the same PE after it (`nvshmem_fence`).
    ///
    /// # One-sided
    /// Completes nothing, does not order gets, and promises nothing about operations to different PEs.
    ///
    /// A non-blocking transfer is ordered only by the first fence, quiet or barrier that this PE *calls* after it issued the
    /// transfer, from the host or on any stream. If a call in another scope came first, this fence does not order the transfer.
    /// So a fence that must order non-blocking transfers is called in the scope that issued them, before any other.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) on a stream where the backend has no such fence.
    ///
    /// NVSHMEM documentation, "Memory Ordering".
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let dst = pe.alloc_zeroed::<f32>(8)?;
    /// # let next = 1 - pe.my_pe();
    /// pe.host().p(dst.at(0), 1.0, next)?;
    /// pe.host().fence()?;
    /// pe.host().p(dst.at(1), 2.0, next)?; // is never seen without the first
    /// # pe.free(dst) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn fence(&self) -> Result<()> {
        let call = self.call("fence", At::caller());
        if self.is_on_stream() {
            call.require(self.pe.backend.stream_fence())?;
        }
        self.issue(Op::Fence, call).map(drop)
    }

    /// Completes what this scope issued: puts, signals and atomics are delivered at all targets, and gets have landed
    /// (`nvshmem_quiet`, `nvshmemx_quiet_on_stream`).
    ///
    /// # One-sided
    /// Promises nothing about what other PEs, or the other scope of this PE, issued.
    ///
    /// A non-blocking transfer is completed by the first quiet or barrier that this PE *calls* after it was issued, from the host
    /// or on any stream. A later quiet does not wait for it again, even where the first has not been reached by its stream yet.
    /// So a quiet that must complete non-blocking transfers is called in the scope that issued them, before any other.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let dst = pe.alloc_zeroed::<f32>(8)?;
    /// # let next = 1 - pe.my_pe();
    /// pe.host().p(dst.at(0), 1.0, next)?;
    /// pe.host().quiet()?; // delivered
    /// # pe.free(dst) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn quiet(&self) -> Result<()> {
        self.issue(Op::Quiet, self.call("quiet", At::caller())).map(drop)
    }

    /// Makes the sources of non-blocking puts reusable: of those that the host issued, or of those that were enqueued on the same
    /// stream before (`nvshmemx_flush`, `nvshmemx_flush_on_stream`).
    ///
    /// # One-sided
    /// Completes nothing at the target.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// # let next = 1 - pe.my_pe();
    /// pe.host().put_nbi(&dst, &src, next)?;
    /// pe.host().flush()?;
    /// pe.write(&src, &[0.0; 8])?; // the put has read it already
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn flush(&self) -> Result<()> {
        self.issue(Op::Flush, self.call("flush", At::caller())).map(drop)
    }
}
