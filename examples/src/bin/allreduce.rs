//! A ring all-reduce from `put_signal` and waits only: what `reduce` does, written by hand.
//!
//! Beyond the tutorial. The array has one chunk a PE, and both phases only send to the next PE:
//! ```text
//! reduce-scatter  step s: my partial sum of chunk me-s+1 goes to the next PE, which adds its own chunk;
//!                         after n-1 steps I hold the complete sum of chunk me+1
//! all-gather      step s: the complete chunk that came last goes on; after n-1 steps everyone has all
//! ```
//! No PE asks whether it may write. Puts are not ordered with each other, and nobody waits for the receiver. So each step has a slot and
//! a signal of its own, and every remote word is written once.
//!
//! To see it break: use one signal for all steps (a later step's signal then ends an earlier step's wait), or one slot
//! (a fast PE overwrites a sum that was not yet read).

use std::process::ExitCode;

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_harness::Program;

/// Elements of a chunk; the array has as many chunks as there are PEs.
const CHUNK: usize = 2;
/// A step's signal when its data has arrived.
const ARRIVED: u64 = 1;

struct Allreduce;

impl Program for Allreduce {
    const NAME: &'static str = "allreduce";
    const ABOUT: &'static str = "Sums an array over all PEs around a ring, by puts with signals only.";
    const CHECKS: &'static str = "it holds the sum over all PEs, in every element";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let mine: Vec<f32> = (0..n * CHUNK).map(|i| contribution(me, i)).collect();
        let sum = ring_allreduce(pe, &mine)?;

        // Small whole numbers: the sum is exact in any order.
        let expected: Vec<f32> = (0..n * CHUNK).map(|i| (0..n).map(|pe| contribution(pe, i)).sum()).collect();
        expect_eq(&sum, &expected, "the sum over all PEs")?;
        Ok(if me == 0 { format!("all {n} PEs hold {sum:?}") } else { String::new() })
    }
}

/// Element `i` of the array that a PE brings.
fn contribution(pe: usize, i: usize) -> f32 {
    (10 * pe + i) as f32
}

/// The sum of all PEs' `mine`, on every PE. Collective over the world; `mine` is a chunk for each PE.
fn ring_allreduce(pe: &Pe<impl Backend>, mine: &[f32]) -> Result<Vec<f32>> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let next = (me + 1) % n;
    let part = |i: usize| i * CHUNK..(i + 1) * CHUNK;
    let partial = pe.alloc::<f32>(n * CHUNK)?; // slot s: the partial sum that arrives in step s
    let total = pe.alloc::<f32>(n * CHUNK)?; // chunk c: the complete sum of chunk c
    let arrived = pe.alloc_zeroed::<u64>(2 * n)?; // a signal for each step of both phases
    let (reduced, gathered) = (|step| arrived.signal(step), |step| arrived.signal(n + step));

    // Reduce-scatter. Slot 0 is where my own chunk starts its way around the ring.
    pe.write(partial.slice(part(0)), &mine[part(me)])?;
    for step in 1..n {
        let (before, now) = (partial.slice(part(step - 1)), partial.slice(part(step)));
        pe.host().put_signal(now, before, reduced(step), ARRIVED, SignalOp::Set, next)?;
        pe.host().signal_wait_until(reduced(step), Cmp::Eq, ARRIVED)?;
        let own = &mine[part((me + n - step) % n)];
        let sum: Vec<f32> = pe.read(now)?.iter().zip(own).map(|(theirs, own)| theirs + own).collect();
        pe.write(now, &sum)?;
    }

    // All-gather. The last slot holds a complete chunk: the one that the next PE started.
    let complete = pe.read(partial.slice(part(n - 1)))?;
    pe.write(total.slice(part(next)), &complete)?;
    for step in 1..n {
        let newest = total.slice(part((next + n - (step - 1)) % n));
        pe.host().put_signal(newest, newest, gathered(step), ARRIVED, SignalOp::Set, next)?;
        pe.host().signal_wait_until(gathered(step), Cmp::Eq, ARRIVED)?;
    }

    let sum = pe.read(&total)?;
    pe.free(arrived)?;
    pe.free(total)?;
    pe.free(partial)?;
    Ok(sum)
}

fn main() -> ExitCode {
    onesided_harness::main(Allreduce)
}
