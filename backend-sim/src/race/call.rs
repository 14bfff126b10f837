//! What the name of a call says. An access is kept with its call's name only. That is the name of one of the API's operations, or the one by
//! which reports name an access of a kernel (`machine/kernel/turn.rs`).

/// Whether it is a put, with a signal or without.
pub(crate) fn puts(call: &str) -> bool {
    matches!(call, "put" | "put_nbi") || puts_and_signals(call)
}

/// Whether it is a put whose signal comes with its data.
pub(crate) fn puts_and_signals(call: &str) -> bool {
    matches!(call, "put_signal" | "put_signal_nbi")
}

/// Whether it is a signal that comes with no data.
pub(crate) fn only_signals(call: &str) -> bool {
    call == "signal_op"
}

/// Whether it updates a word as a signal, and not as an atomic.
pub(crate) fn signals(call: &str) -> bool {
    only_signals(call) || puts_and_signals(call)
}

/// Whether it is the API's atomic that compares and swaps.
pub(crate) fn compares_and_swaps(call: &str) -> bool {
    call == "atomic_compare_swap"
}

/// Whether it is the atomic of CUDA C++ that compares and swaps.
pub(crate) fn compares_and_swaps_in_cuda(call: &str) -> bool {
    atomic_of_cuda(call) == Some("CAS")
}

/// Whether it is an atomic whose caller goes on whatever the word was, as one that counts does. What the API's atomics fetch, and what a swap
/// returns, is taken to be looked at.
pub(crate) fn counts(call: &str) -> bool {
    let in_cuda = matches!(atomic_of_cuda(call), Some("Add" | "Inc" | "Dec" | "Min" | "Max" | "And" | "Or" | "Xor"));
    in_cuda
        || reduces_in_bulk(call)
        || matches!(call, "atomic_set" | "atomic_add" | "atomic_and" | "atomic_or" | "atomic_xor")
}

/// Whether it is a reduction that a bulk copy makes of one element.
pub(crate) fn reduces_in_bulk(call: &str) -> bool {
    call == REDUCTION_IN_BULK
}

/// The name of that.
pub(crate) const REDUCTION_IN_BULK: &str = "reduction of a bulk copy";

/// What an atomic of CUDA C++ does, in whatever scope: `Add` of `atomicAdd_block`.
fn atomic_of_cuda(call: &str) -> Option<&str> {
    call.strip_prefix("atomic")?.split('_').next()
}

/// Whether it gives up the right to use memory in transfers, and not the memory.
pub(crate) fn ends_transfers_only(call: &str) -> bool {
    call == "unregister_local"
}

/// `machine/kernel/turn.rs` has the test for the names of kernels' accesses.
#[cfg(test)]
mod tests {
    use onesided::backend::{AllocId, AmoOp, Op, SignalUpdate, Span};
    use onesided::{DType, SignalOp};

    use super::*;
    use crate::request::Call;

    const WORD: Span = Span { alloc: AllocId(0), start: 0, len: 8 };
    const UPDATE: SignalUpdate = SignalUpdate { word: WORD, value: 1, op: SignalOp::Add };

    /// The names for which the answer is yes.
    fn names(says: fn(&str) -> bool) -> Vec<&'static str> {
        Op::NAMES.into_iter().filter(|name| says(name)).collect()
    }

    #[test]
    fn the_calls_that_put_and_signal_are_those_of_the_api() {
        let put = |nbi, signal| Op::Put { dst: WORD, src: WORD, dtype: DType::U64, pe: 0, nbi, signal }.name();
        let plain = [false, true].map(|nbi| put(nbi, None));
        let with_data = [false, true].map(|nbi| put(nbi, Some(UPDATE)));
        let alone = Op::Signal { update: UPDATE, pe: 0 }.name();
        assert_eq!(names(puts), [plain, with_data].concat());
        assert_eq!(names(puts_and_signals), with_data);
        assert_eq!(names(only_signals), [alone]);
        assert_eq!(names(signals), [with_data[0], with_data[1], alone]);
    }

    #[test]
    fn the_atomics_are_those_of_the_api() {
        let swap = AmoOp::CompareSwap.verb(true);
        assert_eq!(names(compares_and_swaps), [swap]);
        let counting = [AmoOp::Set, AmoOp::Add, AmoOp::And, AmoOp::Or, AmoOp::Xor];
        assert_eq!(names(counts), counting.map(|op| op.verb(false)));
        assert!(names(compares_and_swaps_in_cuda).is_empty());
    }

    #[test]
    fn the_call_that_only_ends_transfers_is_that_of_the_api() {
        assert!(ends_transfers_only(Call::UnregisterLocal(AllocId(0)).name()));
    }
}
