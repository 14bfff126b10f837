//! Exploration: schedules per second, beside shuttle.
//!
//! What is counted, on both sides: whole schedules, with everything that starts and ends one. An *event* is a step
//! that the scheduler chooses among all possible ones, and that touches memory:
//!
//! * shuttle: an atomic operation of a thread. Starting and joining the threads is chosen too, and not counted.
//! * ours, "writes": a local write of a PE, like a store in shuttle.
//! * ours, "puts": the two halves of a put to the next PE, which reads its source and is delivered later, at any
//!   point: half as many puts as shuttle has additions. (Of an odd number, the last event is a write.)
//!
//! Initialization, an allocation, its free with a barrier, and the end of the program come on top in ours, and are not
//! counted.

use onesided::{Backend, Pe, Result};

use super::lab::{Bench, CORES, Lab, per_second, random, too_few_cores};
use super::peers::shuttle;
use super::row::{Cell, Row, Target, Unit};

/// PEs, events of each, schedules in a pass.
const SIZES: [(usize, u64, u64); 2] = [(2, 5, 50_000), (4, 250, 1000)];

pub(super) fn benches() -> Vec<Bench> {
    let of = |(pes, events, schedules): (usize, u64, u64)| {
        [("writes", shuttle::Target::Own), ("puts", shuttle::Target::Next)].map(|(what, target)| {
            let name = format!("explore {pes} PEs of {events} events, {what}");
            Bench::new(name.clone(), move |lab| {
                CORES.into_iter().flat_map(|cores| rows(lab, &name, cores, (pes, events, schedules), target)).collect()
            })
        })
    };
    SIZES.into_iter().flat_map(of).collect()
}

/// On several cores, shuttle searches with as many schedulers, each with its part of the schedules.
fn rows(
    lab: &Lab,
    name: &str,
    cores: usize,
    (pes, events, schedules): (usize, u64, u64),
    target: shuttle::Target,
) -> Vec<Row> {
    let name = format!("{name}, cores: {cores}");
    if let Some(why) = too_few_cores(cores) {
        return vec![Row::new(name, Unit::SchedulesPerS, Cell::NotRun(why)).target(Target::Ratio(5.0))];
    }
    let schedules = lab.times(schedules).next_multiple_of(cores as u64);
    let ours = || {
        let time = match target {
            shuttle::Target::Own => random(cores, pes, schedules, |pe| writes(pe, events)),
            shuttle::Target::Next => random(cores, pes, schedules, |pe| puts(pe, events)),
        };
        time.map(|time| per_second(schedules, time)).into()
    };
    let peer = || Cell::Value(per_second(schedules, shuttle::random(cores, schedules, pes, events, target)));
    let (ours, peer) = lab.race(Unit::SchedulesPerS, ours, peer);
    let ns_per_event = |rate: f64| 1e9 / (rate * (pes as u64 * events) as f64);
    let peer_name = match target {
        shuttle::Target::Own => "shuttle, random, atomic stores",
        shuttle::Target::Next => "shuttle, random, atomic additions",
    };
    vec![
        Row::new(&name, Unit::SchedulesPerS, ours.clone()).beside(peer_name, peer.clone()).target(Target::Ratio(5.0)),
        Row::new(format!("{name}, per event"), Unit::NsPerEvent, ours.map(ns_per_event))
            .beside(peer_name, peer.map(ns_per_event)),
    ]
}

/// As many local writes as events.
fn writes(pe: &Pe<impl Backend>, events: u64) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    for i in 0..events {
        pe.write(&word, &[i])?;
    }
    pe.free(word)
}

/// Puts of one word each to the next PE: each is read, then delivered to a word of its own.
fn puts(pe: &Pe<impl Backend>, events: u64) -> Result<()> {
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let puts = events as usize / 2;
    let words = pe.alloc_zeroed::<u64>(puts + 1)?;
    for i in 0..puts {
        pe.host().put(words.at(i), words.at(puts), next)?;
    }
    if events % 2 == 1 {
        pe.write(words.at(puts), &[1])?;
    }
    pe.free(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onesided_sim::{Config, Explore, Sim, Simulation};
    use std::ops::ControlFlow;

    /// Everything that happens in a random run, as its trace tells.
    fn happened(program: fn(&Pe<Sim>, u64) -> Result<()>, events: u64) -> usize {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let mut schedule = None;
        let how = Explore::random(1, 3);
        let visit = |run: &onesided_sim::Run<()>| {
            schedule = Some(run.schedule.clone());
            ControlFlow::Continue(())
        };
        simulation.explore(how, |pe| program(pe, events), visit).unwrap();
        simulation.replay(&schedule.unwrap(), |pe| program(pe, events)).unwrap().trace.unwrap().len()
    }

    #[test]
    fn both_programs_have_the_events_that_they_claim() {
        for program in [writes, puts] {
            let besides = happened(program, 0);
            assert_eq!(happened(program, 4) - besides, 2 * 4);
            assert_eq!(happened(program, 5) - besides, 2 * 5);
        }
    }
}
