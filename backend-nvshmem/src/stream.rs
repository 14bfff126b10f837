//! Operations on streams. Each is one call of a `…_on_stream` function of the library, unless its comment says otherwise.
#![allow(unsafe_code)]

use std::ffi::c_int;

use cudarc::driver::CudaStream;
use onesided::backend::{Against, Op, Values};
use onesided::{At, Error, ErrorKind, Result, SignalOp};

use crate::bindings::{NVSHMEM_SIGNAL_ADD, NVSHMEM_SIGNAL_SET, cudaStream_t};
use crate::capabilities::NO_ATOMICS;
use crate::memory::check;
use crate::pe::Nvshmem;
use crate::strided::{elements, is_wide};
use crate::table::{Reduction, by_size, call_of, function};
use crate::wait::compare;

impl Nvshmem {
    /// Enqueues an operation.
    ///
    /// Always inlined: each verb knows which operation it makes, so the compiler keeps one arm of the match. On one H100 that,
    /// and operations that are plain copies, reduced the issue of a put of 8 B from 1.028 to 1.007 of C++. Rare operations are
    /// in `issue_other_on`, so that little code is repeated.
    #[inline(always)]
    pub(crate) fn issue_on(&self, op: &Op, values: &Values<'_>, stream: &CudaStream, at: At) -> Result<()> {
        let s: cudaStream_t = stream.cu_stream().cast();
        macro_rules! call {
            ($($call:tt)*) => { call_of!(self.table, op.name(), at, $($call)*) };
        }
        let address = |span| self.memory.address(span);
        match op {
            Op::Put { src, signal: None, .. } | Op::Get { src, .. } if src.len == 0 => {}
            Op::Put { dst, src, pe, nbi, signal: None, .. } => {
                let (dst, src, bytes, pe) = (address(*dst), address(*src), src.len, *pe as c_int);
                if *nbi {
                    self.unclaimed.add(pe as usize);
                    call!(nvshmemx_putmem_nbi_on_stream(dst, src, bytes, pe, s));
                } else {
                    call!(nvshmemx_putmem_on_stream(dst, src, bytes, pe, s));
                }
            }
            Op::Put { dst, src, pe, nbi, signal: Some(update), .. } if src.len > 0 => {
                let (dst, src, bytes, pe) = (address(*dst), address(*src), src.len, *pe as c_int);
                let (word, value, how) = (address(update.word).cast(), update.value, signal_op(update.op));
                // Behind a network the nbi form orders nothing: its signal may arrive before its data (`network.rs`).
                if *nbi && !self.is_far(pe as u32) {
                    self.unclaimed.add(pe as usize);
                    call!(nvshmemx_putmem_signal_nbi_on_stream(dst, src, bytes, word, value, how, pe, s));
                } else {
                    call!(nvshmemx_putmem_signal_on_stream(dst, src, bytes, word, value, how, pe, s));
                }
            }
            Op::Get { dst, src, pe, nbi, .. } => {
                let (dst, src, bytes, pe) = (address(*dst), address(*src), src.len, *pe as c_int);
                if *nbi {
                    self.unclaimed.add(pe as usize);
                    call!(nvshmemx_getmem_nbi_on_stream(dst, src, bytes, pe, s));
                } else {
                    call!(nvshmemx_getmem_on_stream(dst, src, bytes, pe, s));
                }
            }
            Op::P { dst, value, pe, dtype } if self.is_far(*pe) => {
                self.put_value_far((*dst, *dtype, *pe), *value, stream, at)?;
            }
            Op::P { dst, value, pe, dtype } => {
                let (dst, pe) = (address(*dst), *pe as c_int);
                by_size!(
                    dtype.size(),
                    call![nvshmemx_uint8_p_on_stream nvshmemx_uint16_p_on_stream
                          nvshmemx_uint32_p_on_stream nvshmemx_uint64_p_on_stream](
                        dst.cast(), *value as _, pe, s
                    )
                );
            }
            Op::Signal { update, pe } => {
                let word = address(update.word).cast();
                call!(nvshmemx_signal_op_on_stream(word, update.value, signal_op(update.op), *pe as c_int, s));
            }
            Op::Wait { vars, cmp, against: Against::One(value), signal: true, .. } => {
                call!(nvshmemx_signal_wait_until_on_stream(address(*vars).cast(), compare(*cmp), *value, s));
            }
            // The library has no fence on a stream. A quiet is a fence, if it claims nothing.
            Op::Fence => {
                call!(nvshmemx_quiet_on_stream(s));
                self.unclaim(op.name(), at)?;
            }
            Op::Quiet => {
                call!(nvshmemx_quiet_on_stream(s));
                self.unclaimed.clear();
            }
            Op::Barrier { team } if team.0 == 0 => {
                call!(nvshmemx_barrier_all_on_stream(s));
                self.unclaimed.clear();
            }
            Op::Reduce { .. } | Op::ReduceScatter { .. } => {
                let reduction = Reduction::of(op).expect("a reduction");
                self.reduce_on(&reduction, stream, at)?;
            }
            _ => return self.issue_other_on(op, values, stream, at),
        }
        Ok(())
    }

    /// Enqueues an operation that [`Nvshmem::issue_on`] leaves out.
    fn issue_other_on(&self, op: &Op, values: &Values<'_>, stream: &CudaStream, at: At) -> Result<()> {
        let s: cudaStream_t = stream.cu_stream().cast();
        macro_rules! call {
            ($($call:tt)*) => { call_of!(self.table, op.name(), at, $($call)*) };
        }
        macro_rules! checked {
            ($name:ident $arguments:tt) => { check(call!($name $arguments), stringify!($name), op.name(), at)? };
        }
        let address = |span| self.memory.address(span);
        match op {
            // A put of no bytes still signals.
            Op::Put { src, signal: Some(update), pe, .. } if src.len == 0 => {
                return self.issue_on(&Op::Signal { update: *update, pe: *pe }, values, stream, at);
            }
            Op::IPut { count: 0, .. } | Op::IGet { count: 0, .. } => {}
            Op::IPut { pe, .. } | Op::IGet { pe, .. } if self.is_far(*pe) || is_wide(op) => {
                for element in elements(op) {
                    self.issue_on(&element, values, stream, at)?;
                }
            }
            Op::IPut { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let (dst, src) = (address(*dst), address(*src));
                let (to, from, count, pe) = (*dst_stride as isize, *src_stride as isize, *count as usize, *pe as c_int);
                by_size!(
                    dtype.size(),
                    call![nvshmemx_iput8_on_stream nvshmemx_iput16_on_stream
                          nvshmemx_iput32_on_stream nvshmemx_iput64_on_stream](
                        dst, src, to, from, count, pe, s
                    )
                );
            }
            Op::IGet { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let (dst, src) = (address(*dst), address(*src));
                let (to, from, count, pe) = (*dst_stride as isize, *src_stride as isize, *count as usize, *pe as c_int);
                by_size!(
                    dtype.size(),
                    call![nvshmemx_iget8_on_stream nvshmemx_iget16_on_stream
                          nvshmemx_iget32_on_stream nvshmemx_iget64_on_stream](
                        dst, src, to, from, count, pe, s
                    )
                );
            }
            Op::Wait { .. } => return self.wait_on(op, values, stream, at),
            Op::Fill { dst, .. } => {
                assert_eq!(dst.len, values.bytes.len(), "a span and a slice of different lengths");
                // SAFETY: `Memory` asserts that the span lies inside a living allocation, and it has room for the bytes.
                unsafe {
                    let to = (address(*dst) as u64, self.memory.is_host(*dst));
                    self.device().fill(to, values.bytes, stream, at)?;
                }
            }
            Op::Flush => {
                match &self.table.functions.nvshmemx_flush_on_stream {
                    // SAFETY: the stream is alive and of the context that is bound.
                    Ok(flush) => unsafe { flush(s) },
                    Err(_) => call!(nvshmemx_quiet_on_stream(s)), // libraries before 3.8: a quiet is a flush
                }
                self.unclaim(op.name(), at)?; // either claims
            }
            Op::Barrier { team } => {
                checked!(nvshmemx_barrier_on_stream(self.handle(*team), s));
                self.unclaimed.clear();
            }
            Op::Sync { team } => {
                checked!(nvshmemx_team_sync_on_stream(self.handle(*team), s));
            }
            Op::Broadcast { team, dst, src, root, .. } => {
                let (dst, bytes, root) = (address(*dst), src.len, *root as c_int);
                checked!(nvshmemx_broadcastmem_on_stream(self.handle(*team), dst, address(*src), bytes, root, s));
            }
            Op::Fcollect { team, dst, src, .. } => {
                let (dst, bytes) = (address(*dst), src.len);
                checked!(nvshmemx_fcollectmem_on_stream(self.handle(*team), dst, address(*src), bytes, s));
            }
            Op::Alltoall { team, dst, src, .. } => {
                let (dst, block) = (address(*dst), src.len / self.team_size(*team));
                checked!(nvshmemx_alltoallmem_on_stream(self.handle(*team), dst, address(*src), block, s));
            }
            Op::Amo { .. } => return Err(Error::new(ErrorKind::Unsupported, op.name(), NO_ATOMICS, at)),
            Op::G { .. } | Op::SignalFetch { .. } => {
                unreachable!("the API offers what returns a value from the host only")
            }
            Op::Put { .. }
            | Op::Get { .. }
            | Op::P { .. }
            | Op::Signal { .. }
            | Op::Fence
            | Op::Quiet
            | Op::Reduce { .. }
            | Op::ReduceScatter { .. } => unreachable!("`issue_on` has enqueued it"),
        }
        Ok(())
    }
}

/// NVSHMEM's number of a signal's operation.
fn signal_op(op: SignalOp) -> c_int {
    let number = match op {
        SignalOp::Set => NVSHMEM_SIGNAL_SET,
        SignalOp::Add => NVSHMEM_SIGNAL_ADD,
    };
    number as c_int
}
