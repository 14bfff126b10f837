//! Small programs for counting instructions, which do not depend on what else the machine does. `DESIGN.md` has the numbers.
//!
//! `instructions PROGRAM TIMES [--ignore-races]` under `valgrind --tool=callgrind`: what two numbers of times differ by, divided by their
//! difference, is the cost of one.

use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{Config, Explore, Races, Sim, Simulation};

const PROGRAMS: &str = "put (1,024 of them), quiet, ping-pong (there and back), barrier, frame (of 4 PEs), \
                        writes (1,000 of 4 PEs), puts (500 of 4 PEs)";

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
        "frame" | "writes" | "puts" => {
            let program = match &name[..] {
                "frame" => frame,
                "writes" => writes,
                _ => puts,
            };
            simulation(4)?.explore(Explore::random(times, 1), program, |_| ControlFlow::Continue(()))?;
            Vec::new()
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
