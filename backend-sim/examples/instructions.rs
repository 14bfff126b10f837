//! Small programs for counting instructions, which do not depend on what else the machine does. `DESIGN.md` has the numbers.
//!
//! Run `instructions PROGRAM TIMES [--ignore-races]` under `valgrind --tool=callgrind` for two values of `TIMES`. The difference of the counts, divided by the
//! difference of the values, is the cost of one operation.

#![allow(unsafe_code)] // kernels are launched

use std::ops::ControlFlow;

use onesided::{Cmp, Grid, Pe, Result, SignalOp, Source, args};
use onesided_sim::{Config, Explore, Races, Sim, Simulation};

const PROGRAMS: &str = "put (1,024 of them), quiet, ping-pong (there and back), barrier, frame (of 4 PEs), \
                        writes (1,000 of 4 PEs), puts (500 of 4 PEs), ring-reduce (of 4 PEs with a block of 32 threads), \
                        axpy (a loop of 32 threads over 65,536 elements of global memory)";

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, times, races) = match &arguments[..] {
        [name, times] => (name, times, Races::Find),
        [name, times, ignore] if ignore == "--ignore-races" => (name, times, Races::Ignore),
        _ => return Err(format!("usage: instructions PROGRAM TIMES [--ignore-races]; the programs: {PROGRAMS}").into()),
    };
    let times: u64 = times.parse().map_err(|why| format!("TIMES is {times}: {why}"))?;
    let simulation = |pes| Simulation::new(Config { races, max_steps: Some(u64::MAX), ..Config::pes(pes) });
    match &name[..] {
        "put" => simulation(2)?.run(|pe| put(pe, times))?.into_results()?,
        "quiet" => simulation(2)?.run(|pe| quiet(pe, times))?.into_results()?,
        "ping-pong" => simulation(2)?.run(|pe| ping_pong(pe, times))?.into_results()?,
        "barrier" => simulation(8)?.run(|pe| (0..times).try_for_each(|_| pe.host().barrier_all()))?.into_results()?,
        "axpy" => simulation(1)?.run(|pe| (0..times).try_for_each(|_| axpy(pe)))?.into_results()?,
        "frame" | "writes" | "puts" | "ring-reduce" => {
            let program = match &name[..] {
                "frame" => frame,
                "writes" => writes,
                "puts" => puts,
                _ => ring_reduce,
            };
            let mut wrong = None;
            simulation(4)?.explore(Explore::random(times, 1), program, |run| {
                wrong = (!run.is_ok()).then(|| run.verdict.to_string());
                if wrong.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            wrong.map_or(Ok(Vec::new()), Err)?
        }
        _ => return Err(format!("there is no program {name}; there are: {PROGRAMS}").into()),
    };
    Ok(())
}

/// PE 0 puts a word to each of 1,024, and completes them.
fn put(pe: &Pe<Sim>, times: u64) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(1024)?, pe.alloc_zeroed::<u64>(1)?);
    for _ in 0..if pe.my_pe() == 0 { times } else { 0 } {
        (0..1024).try_for_each(|word| pe.host().put(dst.at(word), &src, 1))?;
        pe.host().quiet()?;
    }
    pe.host().barrier_all()?;
    pe.free(src)?;
    pe.free(dst)
}

/// PE 0 puts a word, and completes it.
fn quiet(pe: &Pe<Sim>, times: u64) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    for _ in 0..if pe.my_pe() == 0 { times } else { 0 } {
        pe.host().put(&dst, &src, 1)?;
        pe.host().quiet()?;
    }
    pe.host().barrier_all()?;
    pe.free(src)?;
    pe.free(dst)
}

/// A word with a signal goes to PE 1 and comes back.
fn ping_pong(pe: &Pe<Sim>, times: u64) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let flag = pe.alloc_zeroed::<u64>(1)?;
    for turn in 1..=times {
        if pe.my_pe() == 1 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, turn)?;
        }
        pe.host().put_signal(&dst, &src, flag.signal(0), turn, SignalOp::Set, 1 - pe.my_pe())?;
        if pe.my_pe() == 0 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, turn)?;
        }
    }
    pe.host().barrier_all()?;
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}

/// What every schedule begins and ends with.
fn frame(pe: &Pe<Sim>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    pe.free(word)
}

/// Each PE writes its own word 250 times.
fn writes(pe: &Pe<Sim>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    (0..250).try_for_each(|i| pe.write(&word, &[i]))?;
    pe.free(word)
}

/// Each PE puts 125 words to the next one.
fn puts(pe: &Pe<Sim>) -> Result<()> {
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let words = pe.alloc_zeroed::<u64>(126)?;
    (0..125).try_for_each(|word| pe.host().put(words.at(word), words.at(125), next))?;
    pe.free(words)
}

/// A sum around a ring in one launch of one block of 32 threads.
fn ring_reduce(pe: &Pe<Sim>) -> Result<()> {
    const LENGTH: usize = 32;
    let (sum, mine) = (pe.alloc_zeroed::<i32>(LENGTH)?, pe.alloc::<i32>(LENGTH)?);
    let (incoming, signal) = (pe.alloc_zeroed::<i32>(LENGTH)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&mine, &[1; LENGTH])?;
    let module = pe.module(&Source::ptx("ring_reduce.cu", include_str!("../ptx/kernels/ring_reduce.ptx")))?;
    let stream = pe.stream()?;
    let arguments = args![&sum, &mine, &incoming, LENGTH as i32, &signal];
    // SAFETY: the kernel takes three arrays of so many numbers and a signal for each block.
    unsafe { pe.on(&stream).launch(&module.kernel("ring_reduce")?, &Grid::new(1, 32).collective(), arguments)? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    pe.free(signal)?;
    pe.free(incoming)?;
    pe.free(mine)?;
    pe.free(sum)
}

/// `y[i] += a * x[i]` by 32 threads.
fn axpy(pe: &Pe<Sim>) -> Result<()> {
    const ELEMENTS: usize = 1 << 16;
    let arrays = pe.alloc_zeroed::<f32>(2 * ELEMENTS)?;
    let module = pe.module(&Source::ptx("axpy.cu", include_str!("../ptx/kernels/axpy.ptx")))?;
    let stream = pe.stream()?;
    let arguments = args![&arrays, arrays.slice(ELEMENTS..), 0.5f32, ELEMENTS as i32];
    // SAFETY: the kernel takes two arrays of so many elements.
    unsafe { pe.on(&stream).launch(&module.kernel("axpy")?, &Grid::new(1, 32), arguments)? };
    pe.synchronize(&stream)?;
    pe.free(arrays)
}
