//! Races that a program means: what a mark covers, what it does not, and what summaries say of it.

use std::ops::{ControlFlow, Range};

use crate::common::without_lines;
use onesided::{Cmp, Grid, Pe, Result, SignalOp, Source, args};
use onesided_sim::{Config, Explore, IntendedRaces, Races, Reduce, Run, Sim, Simulation, VerdictKind};

fn run(config: Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Run<()> {
    Simulation::new(config).unwrap().run(program).unwrap()
}

/// The number of races that are findings, and for each mark how many it stands for.
fn races(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> (usize, Vec<u64>) {
    let run = run(Config::pes(pes), program);
    assert_eq!(run.is_ok(), run.verdict.races.is_empty(), "{}", run.verdict);
    (run.verdict.races.len(), run.verdict.intended.iter().map(|mark| mark.races).collect())
}

/// One side of a race is marked: that is enough, whichever it is.
#[test]
fn a_mark_on_either_side_is_enough() {
    let program = |put: bool, read: bool| {
        move |pe: &Pe<Sim>| {
            let word = pe.alloc_zeroed::<u32>(1)?;
            match pe.my_pe() {
                0 if put => pe.intended_race("a hint", |pe| pe.host().p(&word, 1, 1))?,
                0 => pe.host().p(&word, 1, 1)?,
                _ if read => drop(pe.intended_race("a look", |pe| pe.read_one(&word))?),
                _ => drop(pe.read_one(&word)?),
            }
            pe.free(word)
        }
    };
    assert_eq!(races(2, program(false, false)), (1, vec![]));
    assert_eq!(races(2, program(true, false)), (0, vec![1]));
    assert_eq!(races(2, program(false, true)), (0, vec![1]));
    assert_eq!(races(2, program(true, true)).0, 0);
}

/// A mark covers what is done under it, and nothing else of the same call's line or of the same memory.
#[test]
fn a_mark_ends_with_its_accesses() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u32>(2)?;
        let put = |pe: &Pe<Sim>, i: usize| pe.host().p(words.at(i), 1, 0);
        if pe.my_pe() > 0 {
            pe.intended_race("the first word", |pe| put(pe, 0))?;
            put(pe, 1)?;
        }
        pe.free(words)
    };
    let run = run(Config::pes(3), program);
    let [race] = &run.verdict.races[..] else { panic!("{}", run.verdict) };
    assert_eq!(race.span.start, 4);
    assert_eq!(run.verdict.intended[0].races, 1);
}

/// What is enqueued under a mark is marked when its stream comes to it, and what follows is not.
#[test]
fn work_of_a_stream_takes_its_mark_along() {
    let program = |marked: usize| {
        move |pe: &Pe<Sim>| {
            let words = pe.alloc_zeroed::<u32>(3)?;
            let stream = pe.stream()?;
            if pe.my_pe() > 0 {
                for i in 0..2 {
                    let put = |pe: &Pe<Sim>| pe.on(&stream).put(words.at(i), words.at(2), 0);
                    if i == marked { pe.intended_race("both write", put)? } else { put(pe)? }
                }
                pe.on(&stream).quiet()?;
                pe.synchronize(&stream)?;
            }
            pe.host().barrier_all()?;
            pe.free(words)
        }
    };
    for marked in 0..2 {
        let mut simulation = Simulation::new(Config::pes(3)).unwrap();
        let mut runs = 0;
        let explored = simulation.explore(Explore::random(50, 0), program(marked), |run| {
            let starts: Vec<usize> = run.verdict.races.iter().map(|race| race.span.start / 4).collect();
            assert_eq!((starts, run.verdict.intended[0].races), (vec![1 - marked], 1), "{}", run.verdict);
            runs += 1;
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(explored.unwrap().schedules, runs);
    }
}

/// Marks nest, and end when their accesses panic.
#[test]
fn an_outer_mark_comes_back() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u32>(4)?;
        let put = |i: usize| pe.host().p(words.at(i), 1, 0);
        if pe.my_pe() > 0 {
            pe.intended_race("outside", |pe| {
                put(0)?;
                pe.intended_race("inside", |_| put(1))?;
                put(2)
            })?;
            let caught = std::panic::AssertUnwindSafe(|| pe.intended_race("panics", |_| panic!("on purpose")));
            let _: std::result::Result<(), _> = std::panic::catch_unwind(caught);
            put(3)?;
        }
        pe.free(words)
    };
    let run = run(Config::pes(3), program);
    let starts: Vec<usize> = run.verdict.races.iter().map(|race| race.span.start / 4).collect();
    assert_eq!(starts, [3], "{}", run.verdict);
    let marks: Vec<(&str, u64)> = run.verdict.intended.iter().map(|mark| (mark.reason, mark.races)).collect();
    assert_eq!(marks, [("outside", 1), ("inside", 1), ("panics", 0)], "pairs of calls");
}

/// A mark is no step: the schedules, their number and their fingerprints are those without it. Every order is explored.
#[test]
fn no_schedule_sees_a_mark() {
    let program = |marked: bool| {
        move |pe: &Pe<Sim>| {
            let word = pe.alloc_zeroed::<u32>(1)?;
            let put = |pe: &Pe<Sim>| pe.host().p(&word, pe.my_pe() as u32, 0);
            if pe.my_pe() > 0 {
                if marked { pe.intended_race("any may win", put)? } else { put(pe)? }
            }
            pe.host().barrier_all()?;
            let won = pe.read_one(&word)?;
            pe.free(word)?;
            Ok(won)
        }
    };
    let seen = |marked: bool| {
        let races = if marked { Races::Find } else { Races::Note };
        let mut simulation = Simulation::new(Config { races, ..Config::pes(3) }).unwrap();
        let mut seen = Vec::new();
        let explored = simulation.explore(Explore::All { limit: 1000 }, program(marked), |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            seen.push((run.results[0], run.steps));
            std::ops::ControlFlow::Continue(())
        });
        assert!(explored.unwrap().complete);
        let run = simulation.run(program(marked)).unwrap();
        (seen, simulation.reproduce(&run, program(marked)).unwrap().schedule.fingerprint)
    };
    assert_eq!(seen(true), seen(false));
}

#[test]
fn marks_of_several_runs_are_counted_together() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u32>(2)?;
        if pe.my_pe() > 0 {
            pe.intended_race("any PE may win", |pe| pe.host().p(words.at(0), 1, 0))?;
        }
        pe.intended_race("nobody else looks", |pe| pe.read_one(words.at(1)))?;
        pe.free(words)
    };
    let mut marks = IntendedRaces::default();
    assert!(marks.is_empty() && marks.to_string().is_empty());
    for _ in 0..2 {
        marks.add(&run(Config::pes(3), program).verdict);
    }
    insta::assert_snapshot!(without_lines(&marks), @r"
    1 race is marked as intended: any PE may win (backend-sim/tests/intended.rs:_)
    what is marked at backend-sim/tests/intended.rs:_ has not raced: nobody else looks
    ");
}

/// Where races are not looked for, a mark says nothing.
#[test]
fn without_a_detector_there_are_no_marks() {
    let program = |pe: &Pe<Sim>| pe.intended_race("nothing", |pe| pe.host().barrier_all());
    let run = run(Config { races: Races::Ignore, ..Config::pes(2) }, program);
    assert!(run.is_ok() && run.verdict.intended.is_empty());
}

/// A wait ends before a write that races with it, or never: a search sees both, whatever else it leaves out.
#[test]
fn a_wait_and_a_write_of_a_stream_that_are_meant_to_race_come_in_both_orders() {
    let program = |pe: &Pe<Sim>| {
        let (word, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
        pe.intended_race("either may be first", |pe| {
            pe.on(&stream).write(&word, &[2])?;
            pe.host().wait_until(&word, Cmp::Le, 1)
        })?;
        pe.synchronize(&stream)?;
        pe.free(word)
    };
    for reduce in [Reduce::Nothing, Reduce::Counters, Reduce::Everything] {
        let mut deadlocks = 0;
        let mut simulation = Simulation::new(Config { reduce, ..Config::pes(1) }).unwrap();
        let explored = simulation.explore(Explore::All { limit: 100 }, program, |run| {
            deadlocks += u32::from(matches!(run.verdict.kind, VerdictKind::Deadlock));
            ControlFlow::Continue(())
        });
        assert!(explored.unwrap().complete && deadlocks > 0, "{reduce:?}");
    }
}

/// A race with a marked access is intended; what comes after that access alone races as before.
#[test]
fn a_marked_write_hides_no_race_of_what_it_does_not_know() {
    let all = (0..12).map(|how| (how & 1 == 0, how & 2 == 0, how / 4));
    for (reads, marked, first) in all {
        let program = move |pe: &Pe<Sim>| {
            let (word, told) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
            let put = |pe: &Pe<Sim>| pe.host().p(&word, 1, first);
            match (pe.my_pe() + 3 - first) % 3 {
                0 if reads => drop(pe.read_one(&word)?),
                0 => pe.write(&word, &[7])?,
                1 => {
                    if marked {
                        pe.intended_race("a hint", put)?
                    } else {
                        put(pe)?
                    }
                    pe.host().quiet()?;
                    pe.host().signal_op(told.signal(0), 1, SignalOp::Set, (first + 2) % 3)?;
                }
                _ => {
                    pe.host().signal_wait_until(told.signal(0), Cmp::Eq, 1)?;
                    put(pe)?;
                }
            }
            pe.host().barrier_all()?;
            pe.free(told)?;
            pe.free(word)
        };
        let (races, marks) = races(3, program);
        assert_eq!((races, marks), (1, if marked { vec![1] } else { vec![] }), "{reads} {marked} {first}");
    }
}

/// What a kernel does that was launched under a mark is marked, and what a later one does on the same stream is not.
#[test]
fn a_kernel_takes_the_mark_of_its_launch_along() {
    for marked in 0..2 {
        let (races, marks) = races(1, move |pe: &Pe<Sim>| {
            let data = pe.alloc_zeroed::<i32>(64)?;
            let (flag, seen) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
            let module = pe.module(&Source::ptx("scopes.ptx", include_str!("../ptx/kernels/scopes.ptx")))?;
            let (stream, kernel) = (pe.stream()?, module.kernel("row")?);
            for round in 0..2 {
                let arguments = args![&data, &flag, &seen, round];
                // SAFETY: the kernel takes these arguments.
                let launch = |pe: &Pe<Sim>| unsafe { pe.on(&stream).launch(&kernel, &Grid::new(2, 32), arguments) };
                if round == marked { pe.intended_race("both write the same", launch)? } else { launch(pe)? }
            }
            pe.synchronize(&stream)?;
            pe.free(seen)?;
            pe.free(flag)?;
            pe.free(data)
        });
        assert_eq!((races, marks), (1, vec![1]), "{marked}");
    }
}

/// What a large write has covered needs little memory; what races with it as intended is kept of its word alone.
#[test]
fn a_marked_write_of_much_memory_hides_no_race_of_a_word() {
    let program = |read: Range<usize>, written: usize, len: usize, first: usize| {
        move |pe: &Pe<Sim>| {
            let (words, told) = (pe.alloc_zeroed::<u64>(len)?, pe.alloc_zeroed::<u64>(1)?);
            let source = pe.alloc_zeroed::<u64>(len)?;
            match (pe.my_pe() + 3 - first) % 3 {
                0 => drop(pe.read(words.slice(read.clone()))?),
                1 => {
                    pe.intended_race("a hint", |pe| pe.host().put(&words, &source, first))?;
                    pe.host().quiet()?;
                    pe.host().signal_op(told.signal(0), 1, SignalOp::Set, (first + 2) % 3)?;
                }
                _ => {
                    pe.host().signal_wait_until(told.signal(0), Cmp::Eq, 1)?;
                    pe.host().p(words.at(written), 1, first)?;
                }
            }
            pe.host().barrier_all()?;
            pe.free(source)?;
            pe.free(told)?;
            pe.free(words)
        }
    };
    for (read, written) in [(0, 0), (0, 9), (7, 7), (7, 0), (127, 127), (128, 128), (128, 127)] {
        for (len, first) in [(256, 0), (256, 1), (256, 2), (16 << 10, 0), (16 << 10, 1), (16 << 10, 2)] {
            let (races, _) = races(3, program(read..read + 1, written, len, first));
            assert_eq!(races, usize::from(read == written), "{read} {written} {len} {first}");
        }
    }
    for (written, expected) in [(0, 0), (8063, 0), (8064, 1), (8191, 1), (8192, 0)] {
        for first in 0..3 {
            assert_eq!(races(3, program(8064..8192, written, 16 << 10, first)).0, expected, "{written} {first}");
        }
    }
}
