//! The adversary of `unordered-nic`: a few runs show what the memory model allows at its worst.

use crate::common;
use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{Config, Explore, Profile, Races, Sim, Simulation};

use crate::common::results;

fn config(profile: Profile) -> Config {
    Config { profile, races: Races::Note, ..Config::pes(2) }
}

/// What PE 1 has in the end, in order.
fn in_order(profile: Profile, program: impl Fn(&Pe<Sim>) -> Result<u64>) -> u64 {
    common::in_order(config(profile), program)[1]
}

/// PE 0 puts and signals, PE 1 waits and reads.
fn message(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut seen = 5;
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 5, 1)?;
        pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
        seen = pe.read_one(words.at(0))?;
    }
    pe.free(words)?;
    Ok(seen)
}

/// Two puts to one word.
fn twice(pe: &Pe<Sim>) -> Result<u64> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        pe.host().p(&x, 2, 1)?;
    }
    pe.host().barrier_all()?;
    let last = pe.read_one(x.at(0))?;
    pe.free(x)?;
    Ok(last)
}

/// A put, and a get of the same word behind it.
fn overtaken_by_a_get(pe: &Pe<Sim>) -> Result<u64> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let mut seen = 0;
    if pe.my_pe() == 1 {
        pe.host().p(&x, 1, 0)?;
        seen = pe.host().g(&x, 0)?;
    }
    pe.free(x)?;
    Ok(seen)
}

/// The source of a non-blocking put is overwritten.
fn overwritten(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 0 {
        pe.write(words.at(1), &[1])?;
        pe.host().put_nbi(words.at(0), words.at(1), 1)?;
        pe.write(words.at(1), &[2])?;
    }
    pe.host().barrier_all()?;
    let found = pe.read_one(words.at(0))?;
    pe.free(words)?;
    Ok(found)
}

#[test]
fn the_run_in_order_is_the_worst() {
    let [spec, worst] = [Profile::Spec, Profile::UnorderedNic].map(|profile| {
        [message, twice, overtaken_by_a_get, overwritten]
            .map(|program: fn(&Pe<Sim>) -> Result<u64>| in_order(profile, program))
    });
    assert_eq!(spec, [5, 2, 1, 1]);
    assert_eq!(worst, [0, 1, 0, 2]);
}

#[test]
fn every_random_schedule_has_it_too() {
    for seed in 0..4 {
        let mut simulation = Simulation::new(config(Profile::UnorderedNic)).unwrap();
        let explored = simulation.explore(Explore::random(20, seed), twice, |run| {
            assert_eq!(run.results[1], Some(1), "{}", run.schedule);
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(explored.unwrap().schedules, 20);
    }
}

/// The adversary does nothing that `spec` does not allow, and a search of all schedules has no use for one.
#[test]
fn all_schedules_are_those_of_spec() {
    for program in [message, twice, overtaken_by_a_get, overwritten] {
        assert_eq!(results(config(Profile::UnorderedNic), program), results(config(Profile::Spec), program));
    }
}

/// Agents that poll do not keep transfers from arriving.
#[test]
fn a_program_that_polls_ends() {
    let polls = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        let stop = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().atomic_set(&stop, 1, 1)?;
            while pe.host().atomic_fetch(&x, 0)? == 0 {}
        } else {
            while pe.host().atomic_fetch(&stop, 1)? == 0 {}
            pe.host().atomic_set(&x, 1, 0)?;
        }
        pe.free(stop)?;
        pe.free(x)
    };
    let mut simulation = Simulation::new(config(Profile::UnorderedNic)).unwrap();
    let run = simulation.run(polls).unwrap();
    assert!(run.is_ok(), "{}", run.verdict);
    simulation
        .explore(Explore::random(20, 0), polls, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
}

#[test]
fn its_schedules_replay() {
    let mut simulation = Simulation::new(config(Profile::UnorderedNic)).unwrap();
    let run = simulation.run(message).unwrap();
    let run = simulation.reproduce(&run, message).unwrap();
    assert!(run.schedule.to_string().starts_with("os2.2x1.unordered-nic.p4.o."), "{}", run.schedule);
    let again = simulation.replay(&run.schedule, message).unwrap();
    assert_eq!((again.results, again.trace), (run.results, run.trace));
}

/// The host goes first, and its stream has its turn all the same.
#[test]
fn a_host_that_polls_keeps_no_stream_for_ever() {
    let program = |pe: &Pe<Sim>| {
        let (word, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
        pe.on(&stream).signal_op(word.signal(0), 1, SignalOp::Set, pe.my_pe())?;
        while pe.host().signal_fetch(word.signal(0))? != 1 {}
        pe.synchronize(&stream)?;
        pe.free(word)
    };
    let config = Config { profile: Profile::UnorderedNic, ..Config::pes(2) };
    let run = Simulation::new(config).unwrap().run(program).unwrap();
    assert!(run.is_ok(), "{}", run.verdict);
}
