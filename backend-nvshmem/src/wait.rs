//! Waits of the host. The library has waits on streams only: each is enqueued on the backend's own stream, and the host
//! waits for that stream.
//!
//! On a stream, where the GPU can flush remote writes, the library makes a signal's `>=` of `cuStreamWaitValue64`. That looks at
//! the sign of the difference, and so is wrong for numbers that are half the range apart or more (`wait-order` in
//! `MEASURED.md`). All other comparisons are made by a kernel, in the order of the type. So the host asks for `> value - 1`
//! instead of `>= value`.
#![allow(unsafe_code)]

use std::ffi::c_int;

use onesided::backend::{Against, Op, Values};
use onesided::{At, Cmp, Result};

use crate::bindings::{NVSHMEM_CMP_LE, cudaStream_t};
use crate::cuda::device;
use crate::pe::Nvshmem;
use crate::table::function;

impl Nvshmem {
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
            // The signal may have changed between the wait and the look. Then this is a poll that has not seen what ends it.
            if cmp.holds(value, wanted) {
                return Ok(value);
            }
        }
    }

    /// Waits for what holds already, so that the kernel for waits is loaded before anything is enqueued for which loading
    /// would wait. At the end of `init`; `word` is any symmetric memory.
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

#[cfg(test)]
mod tests {
    use super::*;

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
