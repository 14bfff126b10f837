//! Waits. The library has them on streams only: one of the host is enqueued on the backend's own stream, and the host waits for
//! that stream.
//!
//! A wait for several variables is one launch. The library's kernel reads the wanted values, and which variables are left out,
//! when the stream gets there. The memory must be one that the GPU reaches, so they are staged in page-locked memory.
//!
//! On a stream, where the GPU can flush remote writes, the library makes a signal's `>=` of `cuStreamWaitValue64`. That looks at
//! the sign of the difference, and so is wrong for numbers that are half the range apart or more (`wait-order` in
//! `MEASURED.md`). All other comparisons are made by a kernel, in the order of the type. So the host asks for `> value - 1`
//! instead of `>= value`.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

use cudarc::driver::CudaStream;
use onesided::backend::{Against, Op, Values};
use onesided::{At, Cmp, DType, Result};

use crate::bindings::{
    NVSHMEM_CMP_EQ, NVSHMEM_CMP_GE, NVSHMEM_CMP_GT, NVSHMEM_CMP_LE, NVSHMEM_CMP_LT, NVSHMEM_CMP_NE, cudaStream_t,
};
use crate::cuda::device;
use crate::pe::Nvshmem;
use crate::table::function;

impl Nvshmem {
    /// Enqueues a wait for variables that are no signal. It is one launch for any number of variables. CUDA queues about a
    /// thousand launches of a stream, and then blocks the host. The stream's wait may need this host to go on.
    pub(crate) fn wait_on(&self, op: &Op, values: &Values<'_>, stream: &CudaStream, at: At) -> Result<()> {
        let Op::Wait { vars, dtype, cmp, against, .. } = *op else { unreachable!("{op} is no wait") };
        let (call, count) = (op.name(), vars.len / dtype.size());
        if (0..count).all(|index| values.skips(index)) {
            return Ok(()); // also if there are none
        }
        let wanted = if against == Against::Each { vars.len } else { 0 };
        let is_whole = values.bytes.len() == wanted && (values.skip.is_empty() || values.skip.len() == count);
        assert!(is_whole, "values or statuses for another number of variables");
        let (how, s): (c_int, cudaStream_t) = (compare(cmp), stream.cu_stream().cast());
        // In each call: `Memory` asserts that the variables lie inside a living allocation, and they have the type of `dtype`. The
        // stream is alive and of the context that is bound. What is staged has room for as many, and stays until the stream is behind
        // the wait.
        macro_rules! wait {
            ($T:ty, $one:ident, $all:ident, $each:ident) => {{
                let vars = self.memory.address(vars).cast::<$T>();
                match against {
                    Against::One(value) if count == 1 => {
                        let wait = function!(self.table, $one, call, at);
                        // SAFETY: as above.
                        unsafe { wait(vars, how, value as $T, s) };
                        Ok(())
                    }
                    Against::One(value) if values.skip.is_empty() => {
                        let wait = function!(self.table, $all, call, at);
                        // SAFETY: as above; without statuses no variable is left out.
                        unsafe { wait(vars, count, ptr::null(), how, value as $T, s) };
                        Ok(())
                    }
                    Against::One(value) => {
                        let wait = function!(self.table, $all, call, at);
                        self.staged(values, stream, call, at, |_, statuses| {
                            // SAFETY: as above; there is a status for each variable.
                            unsafe { wait(vars, count, statuses, how, value as $T, s) };
                        })
                    }
                    Against::Each => {
                        let wait = function!(self.table, $each, call, at);
                        self.staged(values, stream, call, at, |wanted, statuses| {
                            // SAFETY: as above; there is a value for each variable, and a status for each or none. The kernel only
                            // reads the values, although the type says otherwise.
                            unsafe { wait(vars, count, statuses, how, wanted.cast::<$T>().cast_mut(), s) };
                        })
                    }
                }
            }};
        }
        match dtype {
            DType::I16 => wait!(
                i16,
                nvshmemx_short_wait_until_on_stream,
                nvshmemx_short_wait_until_all_on_stream,
                nvshmemx_short_wait_until_all_vector_on_stream
            ),
            DType::U16 => wait!(
                u16,
                nvshmemx_ushort_wait_until_on_stream,
                nvshmemx_ushort_wait_until_all_on_stream,
                nvshmemx_ushort_wait_until_all_vector_on_stream
            ),
            DType::I32 => wait!(
                i32,
                nvshmemx_int32_wait_until_on_stream,
                nvshmemx_int32_wait_until_all_on_stream,
                nvshmemx_int32_wait_until_all_vector_on_stream
            ),
            DType::U32 => wait!(
                u32,
                nvshmemx_uint32_wait_until_on_stream,
                nvshmemx_uint32_wait_until_all_on_stream,
                nvshmemx_uint32_wait_until_all_vector_on_stream
            ),
            DType::I64 => wait!(
                i64,
                nvshmemx_int64_wait_until_on_stream,
                nvshmemx_int64_wait_until_all_on_stream,
                nvshmemx_int64_wait_until_all_vector_on_stream
            ),
            DType::U64 => wait!(
                u64,
                nvshmemx_uint64_wait_until_on_stream,
                nvshmemx_uint64_wait_until_all_on_stream,
                nvshmemx_uint64_wait_until_all_vector_on_stream
            ),
            _ => unreachable!("`Waitable` has no other type"),
        }
    }

    /// Stages the values and the statuses of a wait, and calls `enqueue` with where they lie: the statuses at the null pointer if
    /// there are none.
    fn staged(
        &self,
        values: &Values<'_>,
        stream: &CudaStream,
        call: &'static str,
        at: At,
        enqueue: impl FnOnce(*const u8, *const c_int),
    ) -> Result<()> {
        let (start, bytes) = layout(values);
        let fill = |block: &mut [u8]| lay_out(values, block);
        let enqueue = |block: &[u8]| {
            let statuses = if values.skip.is_empty() { ptr::null() } else { block[start..].as_ptr().cast() };
            enqueue(block.as_ptr(), statuses);
            Ok(())
        };
        self.device().stage(bytes, fill, stream, enqueue).map_err(|error| device(call, error, at))
    }

    /// Waits. Returns a value of the signal that ended the wait; 0 where the variables are no signal.
    pub(crate) fn wait_from_host(&self, op: &Op, values: &Values<'_>, at: At) -> Result<u64> {
        let call = op.name();
        let side = self.device().side(call, at)?;
        let Op::Wait { vars, dtype, cmp, against: Against::One(wanted), signal: true } = *op else {
            self.issue_on(op, values, side, at)?;
            side.synchronize().map_err(|error| device(call, error, at))?;
            return Ok(0);
        };
        loop {
            if let Some((cmp, against)) = without_ge(cmp, wanted) {
                let against = Against::One(against);
                self.issue_on(&Op::Wait { vars, dtype, cmp, against, signal: true }, values, side, at)?;
            }
            // SAFETY: `Memory` asserts that the signal lies inside a living allocation.
            let value = unsafe { self.device().read_word(self.memory.address(vars) as u64, side, call, at)? };
            // The signal may have changed between the wait and this read. Then the wait begins again.
            if cmp.holds(value, wanted) {
                return Ok(value);
            }
        }
    }

    /// Enqueues a wait whose condition holds already, to load the kernel for waits. Later, loading would wait for what is
    /// enqueued. Called at the end of `init`; `word` is any symmetric memory.
    pub(crate) fn load_waits(&self, word: u64, at: At) -> Result<()> {
        const CALL: &str = "init";
        let side = self.device().side(CALL, at)?;
        let (stream, always): (cudaStream_t, c_int) = (side.cu_stream().cast(), NVSHMEM_CMP_LE as c_int);
        // SAFETY: a word of symmetric memory, and a stream of the context that is bound.
        unsafe {
            function!(self.table, nvshmemx_signal_wait_until_on_stream, CALL, at)(
                word as *mut u64,
                always,
                u64::MAX,
                stream,
            )
        };
        side.synchronize().map_err(|error| device(CALL, error, at))
    }
}

/// The same condition on a signal without `>=`; `None` if it always holds.
fn without_ge(cmp: Cmp, wanted: u64) -> Option<(Cmp, u64)> {
    match cmp {
        Cmp::Ge => Some((Cmp::Gt, wanted.checked_sub(1)?)),
        _ => Some((cmp, wanted)),
    }
}

/// NVSHMEM's number of a comparison.
pub(crate) fn compare(cmp: Cmp) -> c_int {
    let number = match cmp {
        Cmp::Eq => NVSHMEM_CMP_EQ,
        Cmp::Ne => NVSHMEM_CMP_NE,
        Cmp::Gt => NVSHMEM_CMP_GT,
        Cmp::Le => NVSHMEM_CMP_LE,
        Cmp::Lt => NVSHMEM_CMP_LT,
        Cmp::Ge => NVSHMEM_CMP_GE,
    };
    number as c_int
}

/// Where the statuses of a wait begin behind its values, and how many bytes both take.
fn layout(values: &Values<'_>) -> (usize, usize) {
    let start = values.bytes.len().next_multiple_of(align_of::<c_int>());
    (start, start + values.skip.len() * size_of::<c_int>())
}

/// Writes the values, and behind them a status for each variable: not 0 if it is left out.
fn lay_out(values: &Values<'_>, block: &mut [u8]) {
    let (wanted, statuses) = block.split_at_mut(layout(values).0);
    wanted[..values.bytes.len()].copy_from_slice(values.bytes);
    for (status, skip) in statuses.chunks_exact_mut(size_of::<c_int>()).zip(values.skip) {
        status.copy_from_slice(&c_int::from(*skip).to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_lie_aligned_behind_the_values() {
        let values = Values { bytes: &[1, 2, 3, 4, 5, 6], skip: &[false, true, false] };
        assert_eq!(layout(&values), (8, 20));
        let mut block = [9; 20];
        lay_out(&values, &mut block);
        assert_eq!(block[..6], [1, 2, 3, 4, 5, 6]);
        assert_eq!(block[8..], [[0; 4], 1_i32.to_ne_bytes(), [0; 4]].concat());
        assert_eq!(layout(&Values { bytes: &[0; 16], skip: &[] }), (16, 16));
    }

    #[test]
    fn a_condition_without_ge_holds_for_the_same_values() {
        const HALF: u64 = 1 << 63;
        let numbers = [0, 1, 2, HALF - 1, HALF, HALF + 1, u64::MAX - 1, u64::MAX];
        for cmp in Cmp::ALL {
            for wanted in numbers {
                let same = without_ge(cmp, wanted);
                assert_ne!(same.map(|(cmp, _)| cmp), Some(Cmp::Ge));
                for value in numbers {
                    let holds = same.is_none_or(|(cmp, wanted)| cmp.holds(value, wanted));
                    assert_eq!(holds, cmp.holds(value, wanted), "{value} {} {wanted}", cmp.symbol());
                }
            }
        }
    }
}
