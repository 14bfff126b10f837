//! Reductions: every operator, every type, and where the result goes.

use onesided::{Backend, Cmp, Element, Pe, ReduceOp, Result, SignalOp, bf16, f16};

use super::collective::{collect, mine};
use super::rma::kind;
use crate::case::{Case, Seen, cases, seen};

/// This part of the chapter `collective`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        reduce_sum: 2,
        reduce_prod: 2,
        reduce_min: 2,
        reduce_max: 2,
        reduce_and: 2,
        reduce_or: 2,
        reduce_xor: 2,
        reduce_on_stream: 2,
        reduce_in_place: 2,
        reduce_again_after_a_barrier: 2,
        reduce_wraps: 2,
        reduce_min_is_signed: 2,
        reduce_max_of_floats: 2,
        reduce_i8: 2,
        reduce_i16: 2,
        reduce_i32: 2,
        reduce_i64: 2,
        reduce_u8: 2,
        reduce_u16: 2,
        reduce_u64: 2,
        reduce_f16: 2,
        reduce_bf16: 2,
        reduce_f32: 2,
        reduce_f64: 2,
        reducescatter: 2,
        reducescatter_on_stream: 2,
        reductions_behind_a_wait: 2,
        reduce_value: 2,
        reduction_errors: 1,
    ]
}

/// Member `i` gets block `i` of the sums.
fn reducescatter<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, false, 1, &mine(pe), |issue, dst, src| issue.reducescatter(pe.world(), dst, src, ReduceOp::Sum))
}

/// The same on a stream.
fn reducescatter_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, true, 1, &mine(pe), |issue, dst, src| issue.reducescatter(pe.world(), dst, src, ReduceOp::Sum))
}

/// A stream waits for what another one is given later, and is given reductions in the meantime, of types and operators that
/// no other case has on a stream: a GPU must load their kernels without waiting for the stream.
fn reductions_behind_a_wait<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (least, numbers, flag) = (pe.alloc_zeroed::<i16>(1)?, pe.alloc_zeroed::<i16>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let (most, pairs) = (pe.alloc_zeroed::<u16>(1)?, pe.alloc_zeroed::<u16>(2)?);
    let (waits, signals) = (pe.stream()?, pe.stream()?);
    let me = pe.my_pe();
    pe.write(&numbers, &[[-3, 5][me]])?;
    pe.write(&pairs, &[[6, 1], [2, 9]][me])?;
    pe.on(&waits).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    pe.on(&waits).reduce(pe.world(), &least, &numbers, ReduceOp::Min)?;
    pe.on(&waits).reducescatter(pe.world(), &most, &pairs, ReduceOp::Max)?;
    pe.on(&signals).signal_op(flag.signal(0), 1, SignalOp::Set, me)?;
    pe.synchronize(&waits)?;
    let saw = seen("least", pe.read(&least)?[0]).and("most", pe.read(&most)?[0]);
    pe.free(pairs)?;
    pe.free(most)?;
    pe.free(flag)?;
    pe.free(numbers)?;
    pe.free(least)?;
    Ok(saw)
}

/// One value of each PE, three times with the same scratch and nothing between the calls.
fn reduce_value<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let scratch = pe.alloc::<u32>(1)?;
    let of_all = |value, op| pe.host().reduce_value(pe.world(), &scratch, value, op);
    let mine = 1 + pe.my_pe() as u32;
    let (sum, prod) = (of_all(mine, ReduceOp::Sum)?, of_all(1 + mine, ReduceOp::Prod)?);
    let saw = seen("sum", sum).and("prod", prod).and("max", of_all(10 * mine, ReduceOp::Max)?);
    pe.free(scratch)?;
    Ok(saw)
}

/// Reduces the first number, on PE 0, with the second, on PE 1.
fn reduce<B: Backend, T: Element>(pe: &Pe<B>, on_stream: bool, op: ReduceOp, numbers: [T; 2]) -> Result<Seen> {
    collect(pe, on_stream, 1, &[numbers[pe.my_pe()]], |issue, dst, src| issue.reduce(pe.world(), dst, src, op))
}

/// One case for each reduction or type: `/// doc; name: op, numbers;`.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: $op:ident, $numbers:expr;)*) => {$(
        $(#[$doc])*
        fn $name<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
            reduce(pe, false, ReduceOp::$op, $numbers)
        }
    )*};
}

reductions! {
    /// The sum of 12 and 10. The other operators reduce the same numbers, each to another result.
    reduce_sum: Sum, [12_u32, 10];
    /// Their product.
    reduce_prod: Prod, [12_u32, 10];
    /// The smaller.
    reduce_min: Min, [12_u32, 10];
    /// The larger.
    reduce_max: Max, [12_u32, 10];
    /// Bitwise and.
    reduce_and: And, [12_u32, 10];
    /// Bitwise or.
    reduce_or: Or, [12_u32, 10];
    /// Bitwise exclusive or.
    reduce_xor: Xor, [12_u32, 10];
    /// Integer sums wrap.
    reduce_wraps: Sum, [200_u8, 100];
    /// A signed type reduces signed.
    reduce_min_is_signed: Min, [-1_i32, 1];
    /// A float reduces as a number, not as bits.
    reduce_max_of_floats: Max, [-2.0_f32, -0.5];
    /// The sum of 3 and 4 on every type; `u32` is in `reduce_sum`. Small enough to be exact.
    reduce_i8: Sum, [3_i8, 4];
    /// The same.
    reduce_i16: Sum, [3_i16, 4];
    /// The same.
    reduce_i32: Sum, [3_i32, 4];
    /// The same.
    reduce_i64: Sum, [3_i64, 4];
    /// The same.
    reduce_u8: Sum, [3_u8, 4];
    /// The same.
    reduce_u16: Sum, [3_u16, 4];
    /// The same.
    reduce_u64: Sum, [3_u64, 4];
    /// The same.
    reduce_f16: Sum, [3.0, 4.0].map(f16::from_f64);
    /// The same.
    reduce_bf16: Sum, [3.0, 4.0].map(bf16::from_f64);
    /// The same.
    reduce_f32: Sum, [3.0_f32, 4.0];
    /// The same.
    reduce_f64: Sum, [3.0_f64, 4.0];
}

/// A reduction on a stream.
fn reduce_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    reduce(pe, true, ReduceOp::Sum, [12_u32, 10])
}

/// Destination and source may be the same.
fn reduce_in_place<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    pe.write(&x, &mine(pe)[..1])?;
    pe.host().reduce(pe.world(), &x, &x, ReduceOp::Sum)?;
    let saw = seen("x", pe.read(&x)?[0]);
    pe.free(x)?;
    Ok(saw)
}

/// A destination is used again after a barrier: the second sum doubles the first.
fn reduce_again_after_a_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, false, 1, &mine(pe)[..1], |issue, dst, src| {
        issue.reduce(pe.world(), dst, src, ReduceOp::Sum)?;
        pe.write(src, &pe.read(dst)?)?;
        issue.barrier_all()?;
        issue.reduce(pe.world(), dst, src, ReduceOp::Sum)
    })
}

/// Floats have no bitwise reductions.
fn reduction_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<f32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    let saw = ReduceOp::ALL.into_iter().filter(|op| op.is_bitwise()).fold(Seen::nothing(), |saw, op| {
        let scatter = kind(pe.host().reducescatter(pe.world(), dst, src, op));
        saw.and(op.name(), [kind(pe.host().reduce(pe.world(), dst, src, op)), scatter])
    });
    pe.free(words)?;
    Ok(saw)
}
