//! Operations issued by the host. Most are a call of the library. What the library has on streams only is enqueued on a stream
//! of the backend's own, and waited for.
#![allow(unsafe_code)]

use std::iter;

use onesided::backend::{Op, Values};
use onesided::{At, Result};

use crate::cuda::device;
use crate::memory::check;
use crate::pe::Nvshmem;
use crate::strided::{elements, is_wide};
use crate::table::{Reduction, by_size, call_of, function};

impl Nvshmem {
    /// Performs an operation of the host. Returns the bits that it fetched, or the value with which a wait for a signal ended;
    /// else 0.
    #[inline]
    pub(crate) fn issue_from_host(&self, op: &Op, values: &Values<'_>, at: At) -> Result<u64> {
        let (table, call) = (self.table, op.name());
        macro_rules! call {
            ($($call:tt)*) => { call_of!(table, call, at, $($call)*) };
        }
        macro_rules! checked {
            ($name:ident $arguments:tt) => { check(call!($name $arguments), stringify!($name), call, at)? };
        }
        let address = |span| self.memory.address(span);
        match op {
            Op::Wait { .. } => return self.wait_from_host(op, values, at),
            Op::Put { signal: Some(_), .. } | Op::Signal { .. } => {
                let side = self.device().side(call, at)?;
                self.side_used.set(true);
                self.issue_on(op, values, side, at)?;
                side.synchronize().map_err(|error| device(call, error, at))?;
            }
            // There is nothing to move, and the library does not check lengths.
            Op::Put { src, .. } | Op::Get { src, .. } if src.len == 0 => {}
            Op::IPut { count: 0, .. } | Op::IGet { count: 0, .. } => {}
            Op::Put { pe, nbi: false, .. } | Op::Get { pe, nbi: false, .. } if self.is_far(*pe) => {
                self.transfer_far(iter::once(*op), call, at)?;
            }
            Op::IPut { pe, .. } | Op::IGet { pe, .. } if self.is_far(*pe) => {
                self.transfer_far(elements(op), call, at)?;
            }
            Op::Put { dst, src, pe, nbi: false, .. } => {
                call!(nvshmem_putmem(address(*dst), address(*src), src.len, *pe as i32));
            }
            Op::Put { dst, src, pe, nbi: true, .. } => {
                self.unclaimed.add(*pe as usize);
                call!(nvshmem_putmem_nbi(address(*dst), address(*src), src.len, *pe as i32));
            }
            Op::Get { dst, src, pe, nbi: false, .. } => {
                call!(nvshmem_getmem(address(*dst), address(*src), src.len, *pe as i32));
            }
            Op::Get { dst, src, pe, nbi: true, .. } => {
                self.unclaimed.add(*pe as usize);
                call!(nvshmem_getmem_nbi(address(*dst), address(*src), src.len, *pe as i32));
            }
            Op::P { dst, value, pe, dtype } => {
                let (dst, pe) = (address(*dst), *pe as i32);
                by_size!(
                    dtype.size(),
                    call![nvshmem_uint8_p nvshmem_uint16_p
                          nvshmem_uint32_p nvshmem_uint64_p](dst.cast(), *value as _, pe)
                );
            }
            Op::G { src, pe, dtype } if self.is_far(*pe) => return self.fetch_far(*src, *dtype, *pe, at),
            Op::G { src, pe, dtype } => {
                let (src, pe) = (address(*src), *pe as i32);
                return Ok(match dtype.size() {
                    1 => u64::from(call!(nvshmem_uint8_g(src.cast(), pe))),
                    2 => u64::from(call!(nvshmem_uint16_g(src.cast(), pe))),
                    4 => u64::from(call!(nvshmem_uint32_g(src.cast(), pe))),
                    _ => call!(nvshmem_uint64_g(src.cast(), pe)),
                });
            }
            Op::IPut { .. } | Op::IGet { .. } if is_wide(op) => {
                for element in elements(op) {
                    self.issue_from_host(&element, &Values::NONE, at)?;
                }
            }
            Op::IPut { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let (dst, src) = (address(*dst), address(*src));
                let (to, from, count, pe) = (*dst_stride as isize, *src_stride as isize, *count as usize, *pe as i32);
                by_size!(
                    dtype.size(),
                    call![nvshmem_iput8 nvshmem_iput16 nvshmem_iput32 nvshmem_iput64](dst, src, to, from, count, pe)
                );
            }
            Op::IGet { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let (dst, src) = (address(*dst), address(*src));
                let (to, from, count, pe) = (*dst_stride as isize, *src_stride as isize, *count as usize, *pe as i32);
                by_size!(
                    dtype.size(),
                    call![nvshmem_iget8 nvshmem_iget16 nvshmem_iget32 nvshmem_iget64](dst, src, to, from, count, pe)
                );
            }
            // The library's call copies on the legacy default stream, which waits for streams of other code. So it is not used.
            Op::SignalFetch { word } => {
                // SAFETY: `Memory` asserts that the signal lies inside a living allocation. The context is bound.
                return unsafe { self.device().word_now(address(*word) as u64, call, at) };
            }
            Op::Amo { .. } => return self.atomic_from_host(op, at),
            Op::Fill { dst, .. } => {
                assert_eq!(dst.len, values.bytes.len(), "a span and a slice of different lengths");
                // SAFETY: `Memory` asserts that the span lies inside a living allocation, and it has room for the bytes.
                unsafe { self.device().write(address(*dst) as u64, values.bytes, at)? }
            }
            // The library's fence does not order the stream on which signals of the host run. A quiet is a fence.
            Op::Fence | Op::Quiet => {
                self.quiet_side(call, at)?;
                call!(nvshmem_quiet());
                self.unclaimed.clear(); // all of it is complete, so a fence that claims it takes nothing away
            }
            Op::Flush => {
                self.quiet_side(call, at)?;
                match &table.functions.nvshmemx_flush {
                    // SAFETY: takes nothing.
                    Ok(flush) => unsafe { flush() },
                    Err(_) => call!(nvshmem_quiet()), // libraries before 3.8: a quiet is a flush
                }
            }
            Op::Barrier { team } => {
                self.quiet_side(call, at)?;
                if team.0 == 0 {
                    call!(nvshmem_barrier_all());
                } else {
                    checked!(nvshmem_barrier(self.handle(*team)));
                }
                self.unclaimed.clear(); // it begins with a quiet
            }
            Op::Sync { team } => checked!(nvshmem_team_sync(self.handle(*team))),
            Op::Broadcast { team, dst, src, root, .. } => {
                let (dst, bytes) = (address(*dst), src.len);
                checked!(nvshmem_broadcastmem(self.handle(*team), dst, address(*src), bytes, *root as i32));
            }
            Op::Fcollect { team, dst, src, .. } => {
                checked!(nvshmem_fcollectmem(self.handle(*team), address(*dst), address(*src), src.len));
            }
            Op::Alltoall { team, dst, src, .. } => {
                let block = src.len / self.team_size(*team);
                checked!(nvshmem_alltoallmem(self.handle(*team), address(*dst), address(*src), block));
            }
            Op::Reduce { .. } | Op::ReduceScatter { .. } => {
                let reduction = Reduction::of(op).expect("a reduction");
                self.reduce_from_host(&reduction, at)?;
            }
        }
        Ok(0)
    }

    /// Completes the signals that were enqueued for the host, which the library's quiet of the host does not do.
    #[inline]
    pub(crate) fn quiet_side(&self, call: &'static str, at: At) -> Result<()> {
        if !self.side_used.get() {
            return Ok(());
        }
        let side = self.device().side(call, at)?;
        self.issue_on(&Op::Quiet, &Values::NONE, side, at)?;
        side.synchronize().map_err(|error| device(call, error, at))?;
        self.side_used.set(false);
        Ok(())
    }
}
