//! What is complete when a call returns, and what a call must not wait for. Those that need several PEs run as a job of one, too.

use std::ptr;

use cudarc::driver::sys;
use onesided::{Cmp, Element, Pe, Result, SignalOp, SymmetricBuf, Waitable, expect_eq};
use onesided_nvshmem::{DeviceAccess, Nvshmem};

use super::Test;

pub(super) const TESTS: [(&str, Test); 6] = [
    ("a_wait_for_many_variables_does_not_block_the_host", a_wait_for_many_variables_does_not_block_the_host),
    ("waits_for_all_compare_in_the_order_of_their_type", waits_for_all_compare_in_the_order_of_their_type),
    ("a_signal_is_fetched_while_the_default_stream_waits", a_signal_is_fetched_while_the_default_stream_waits),
    ("alloc_completes_the_atomics_of_the_host", alloc_completes_the_atomics_of_the_host),
    ("a_put_of_the_host_has_read_its_source", a_put_of_the_host_has_read_its_source),
    ("what_the_host_moves_over_a_network_is_complete", what_the_host_moves_over_a_network_is_complete),
];

/// CUDA takes about a thousand launches for a stream, and then blocks the host, which here is what ends the stream's wait. What the
/// calls are given may change when they have returned.
fn a_wait_for_many_variables_does_not_block_the_host(pe: &Pe<Nvshmem>) -> Result<()> {
    const MANY: usize = 4096;
    let (me, host) = (pe.my_pe(), pe.host());
    let (vars, words) = (pe.alloc_zeroed::<u64>(MANY)?, pe.alloc_zeroed::<u64>(2)?);
    let (begin, end) = (words.signal(0), words.signal(1));
    let numbers: Vec<u64> = (1..=MANY as u64).collect();
    let (mut wanted, mut skip) = (numbers.clone(), vec![false; MANY]);
    skip[0] = true;

    let stream = pe.stream()?;
    let on = pe.on(&stream);
    // CUDA may load the kernels when they are launched for the first time, which can wait for what is enqueued
    on.wait_until_all(&vars, None, Cmp::Ge, 0)?;
    on.wait_until_all_vector(&vars, None, Cmp::Eq, &vec![0; MANY])?;
    pe.synchronize(&stream)?;

    on.signal_wait_until(begin, Cmp::Eq, 1)?;
    on.wait_until_all(&vars, None, Cmp::Ge, 1)?;
    on.wait_until_all(&vars, Some(&skip), Cmp::Ge, 2)?;
    on.wait_until_all_vector(&vars, None, Cmp::Eq, &wanted)?;
    wanted[0] = 7; // the first variable is left out
    on.wait_until_all_vector(&vars, Some(&skip), Cmp::Eq, &wanted)?;
    on.wait_until_all(&vars, Some(&vec![true; MANY]), Cmp::Eq, 0)?; // waits for nothing
    wanted.fill(0);
    skip.fill(false);
    on.signal_op(end, 1, SignalOp::Set, me)?;

    let last = MANY - 1..;
    pe.write(vars.slice(..MANY - 1), &numbers[..MANY - 1])?;
    host.signal_op(begin, 1, SignalOp::Set, me)?;
    for _ in 0..100 {
        expect_eq(host.signal_fetch(end)?, 0, "the signal behind waits of which one variable is not there")?;
    }
    pe.write(vars.slice(last.clone()), &numbers[last])?;
    pe.synchronize(&stream)?;
    expect_eq(host.signal_fetch(end)?, 1, "the signal behind the waits")?;
    pe.free(words)?;
    pe.free(vars)
}

/// In another order one of these waits would never end.
fn waits_for_all_compare_in_the_order_of_their_type(pe: &Pe<Nvshmem>) -> Result<()> {
    extremes(pe, i16::MIN, -1, i16::MAX)?;
    extremes(pe, u16::MIN, 1, u16::MAX)?;
    extremes(pe, i32::MIN, -1, i32::MAX)?;
    extremes(pe, u32::MIN, 1, u32::MAX)?;
    extremes(pe, i64::MIN, -1, i64::MAX)?;
    extremes(pe, u64::MIN, 1, u64::MAX)
}

fn extremes<T: Waitable + Element>(pe: &Pe<Nvshmem>, least: T, between: T, most: T) -> Result<()> {
    let vars = pe.alloc::<T>(3)?;
    pe.write(&vars, &[least, between, most])?;
    let stream = pe.stream()?;
    for on in [&*pe.host(), &pe.on(&stream)] {
        on.wait_until_all(&vars, None, Cmp::Ge, least)?;
        on.wait_until_all(&vars, None, Cmp::Le, most)?;
        on.wait_until_all(&vars, Some(&[true, false, false]), Cmp::Gt, least)?;
        on.wait_until_all(&vars, Some(&[false, false, true]), Cmp::Lt, most)?;
        on.wait_until_all_vector(&vars, None, Cmp::Eq, &[least, between, most])?;
        on.wait_until_all_vector(&vars, None, Cmp::Ne, &[between, most, least])?;
        on.wait_until_all_vector(&vars, None, Cmp::Le, &[between, most, most])?;
        on.wait_until_all_vector(&vars, Some(&[true, false, true]), Cmp::Gt, &[most, least, most])?;
    }
    pe.synchronize(&stream)?;
    pe.free(vars)
}

/// The library's call for this copies on that stream.
fn a_signal_is_fetched_while_the_default_stream_waits(pe: &Pe<Nvshmem>) -> Result<()> {
    const AT_LEAST: u32 = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
    let words = pe.alloc_zeroed::<u64>(2)?;
    pe.host().signal_op(words.signal(1), 5, SignalOp::Set, pe.my_pe())?;
    let default = ptr::null_mut();
    // SAFETY: the stream waits for a word that lives until it has been waited for; the context is this PE's.
    let waits = unsafe { sys::cuStreamWaitValue64_v2(default, pe.device_ptr(words.at(0))?, 1, AT_LEAST) };
    waits.result().expect("a stream that waits for a word");
    expect_eq(pe.host().signal_fetch(words.signal(1))?, 5, "the signal")?;
    pe.write(words.at(0), &[1])?;
    // SAFETY: takes nothing but the default stream.
    unsafe { sys::cuStreamSynchronize(default) }.result().expect("the wait ends");
    pe.free(words)
}

fn alloc_completes_the_atomics_of_the_host(pe: &Pe<Nvshmem>) -> Result<()> {
    const MANY: u64 = 1000;
    let support = pe.capabilities().host_atomics;
    if !support.is_available() {
        println!("not run: {support}");
        return Ok(());
    }
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let counts = pe.alloc_zeroed::<u64>(10)?;
    for count in 0..10 {
        for _ in 0..MANY {
            pe.host().atomic_inc(counts.at(count), next)?;
        }
        let block = pe.alloc::<u64>(1)?;
        expect_eq(pe.read_one(counts.at(count))?, MANY, "what atomics before an alloc have counted")?;
        pe.free(block)?;
    }
    pe.free(counts)
}

/// So the source can be used again. Over a network the library's put returns before that.
fn a_put_of_the_host_has_read_its_source(pe: &Pe<Nvshmem>) -> Result<()> {
    const WORDS: usize = 1 << 17; // 1 MiB
    const OTHER: u64 = u64::MAX;
    let (me, n, host) = (pe.my_pe(), pe.n_pes(), pe.host());
    let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
    let (dst, src) = (pe.alloc_zeroed::<u64>(WORDS)?, pe.alloc_zeroed::<u64>(WORDS)?);
    let strided = pe.alloc_zeroed::<u64>(256)?;
    let other = vec![OTHER; WORDS];
    for round in 0..50 {
        let number = |pe: usize| (round * n + pe) as u64;
        pe.write(&src, &vec![number(me); WORDS])?;
        host.put(&dst, &src, next)?;
        pe.write(&src, &other)?;
        pe.write(src.slice(..256), &[number(me); 256])?;
        host.iput(&strided, src.slice(..256), 2, 2, 128, next)?;
        pe.write(src.slice(..256), &other[..256])?;
        host.barrier_all()?;
        let wrong = pe.read(&dst)?.iter().filter(|word| **word != number(previous)).count();
        expect_eq(wrong, 0, "the words of a put that are not what the source was")?;
        let wrong = pe.read(&strided)?.iter().step_by(2).filter(|word| **word != number(previous)).count();
        expect_eq(wrong, 0, "the words of an iput that are not what the source was")?;
        host.barrier_all()?;
    }
    pe.free(strided)?;
    pe.free(src)?;
    pe.free(dst)
}

/// Also while a stream's nbi operation to a PE that loads and stores reach is under way: the host must not wait for it, because it
/// may be what lets the stream go on.
fn what_the_host_moves_over_a_network_is_complete(pe: &Pe<Nvshmem>) -> Result<()> {
    let (me, n, host) = (pe.my_pe(), pe.n_pes(), pe.host());
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (src, dst) = (pe.alloc::<u64>(64)?, pe.alloc_zeroed::<u64>(64 * n)?);
    pe.write(&src, &[me as u64 + 1; 64])?;
    host.barrier_all()?;
    let reached: Vec<bool> = (0..n).map(|other| Ok(pe.peer(&words, other)?.is_some())).collect::<Result<_>>()?;
    let got = pe.alloc_zeroed::<u64>(64)?;
    match reached.iter().position(|reached| !reached) {
        Some(far) => move_to_and_from(pe, far, &words, [&src, &dst, &got])?,
        None => println!("not run: loads and stores reach every PE"),
    }
    host.barrier_all()?;
    pe.free(got)?;
    pe.free(dst)?;
    pe.free(src)?;
    pe.free(words)
}

fn move_to_and_from(
    pe: &Pe<Nvshmem>,
    far: usize,
    words: &SymmetricBuf<u64>,
    [src, dst, got]: [&SymmetricBuf<u64>; 3],
) -> Result<()> {
    let (me, host) = (pe.my_pe(), pe.host());
    let stream = pe.stream()?;
    // In memory of the host, a copy behind a wait would block the call that enqueues it.
    let blocks = std::env::var("NVSHMEM_HEAP_KIND").as_deref() != Ok("SYSMEM");
    for round in 1..=100 {
        if round % 2 == 0 {
            if blocks {
                pe.on(&stream).signal_wait_until(words.signal(0), Cmp::Ge, round)?;
            }
            pe.on(&stream).put_nbi(words.at(1), src.at(0), me)?;
        }
        let value = far as u64 + 1;
        pe.write(got, &[0; 64])?;
        host.get(got, src, far)?;
        expect_eq(pe.read(got)?, vec![value; 64], "what a get has brought")?;
        pe.write(got, &[0; 64])?;
        host.iget(got, src, 2, 2, 32, far)?;
        expect_eq(pe.read(got)?.iter().step_by(2).all(|word| *word == value), true, "what an iget has brought")?;
        expect_eq(host.g(src.at(7), far)?, value, "g")?;
        let mine = me * 64..(me + 1) * 64;
        pe.write(got, &[round; 64])?;
        host.put(dst.slice(mine.clone()), got, far)?;
        pe.write(got, &[0; 64])?;
        host.get(got, dst.slice(mine), far)?;
        expect_eq(pe.read(got)?, vec![round; 64], "what was put, and got back")?;
        host.signal_op(words.signal(0), round, SignalOp::Set, me)?;
        pe.synchronize(&stream)?;
        if round % 4 == 0 {
            host.quiet()?;
        }
    }
    Ok(())
}
