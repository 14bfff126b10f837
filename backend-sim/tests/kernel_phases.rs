//! Loops that wait for a phase of an mbarrier: they are waits, and a proof need not try each look. Programs are compared with themselves, where every
//! look is a step: there the loop does something that changes nothing.

#![allow(unsafe_code)] // kernels are launched

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::random;
use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Reduce, Run, Sim, Simulation, VerdictKind};
use proptest::prelude::*;

/// Words of global and of shared memory.
const WORDS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive {
        at: usize,
    },
    /// Announces no bytes, which arrivals do not commute with.
    Expect {
        at: usize,
    },
    Wait {
        at: usize,
        odd: bool,
    },
    /// One look, which counts as a read.
    Look {
        at: usize,
        odd: bool,
    },
    Write {
        shared: bool,
        word: usize,
    },
    Read {
        shared: bool,
        word: usize,
    },
}
use Step::{Arrive, Read, Wait, Write};

/// What each thread does. Mbarriers take so many arrivals.
#[derive(Clone, Debug)]
struct Program {
    takes: Vec<usize>,
    threads: Vec<Vec<Step>>,
}

impl Program {
    /// `waits`: whether loops are recognized as such.
    fn text(&self, waits: bool) -> String {
        let mut text = String::from(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<5>;\n\
             .shared .align 8 .b64 bars[4]; .shared .align 4 .b32 room[4];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r5, 0;\n\
             setp.ne.u32 %p1, %r1, 0;\n@%p1 bra begun;\n",
        );
        for (at, takes) in self.takes.iter().enumerate() {
            text += &format!("mbarrier.init.shared.b64 [bars+{}], {takes};\n", 8 * at);
        }
        (0..WORDS).for_each(|word| text += &format!("st.shared.u32 [room+{}], 0;\n", 4 * word));
        text += "begun: bar.sync 0;\n";
        for thread in 0..self.threads.len() {
            text += &format!("setp.eq.u32 %p1, %r1, {thread};\n@%p1 bra T{thread};\n");
        }
        for (thread, steps) in self.threads.iter().enumerate() {
            text += &format!("T{thread}:\n");
            for (number, step) in steps.iter().enumerate() {
                text += &instruction(step, &format!("L{thread}_{number}"), waits);
            }
            text += "bra.uni end;\n";
        }
        text += &format!(
            "end: mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd2, %rd1;\nst.global.u32 [%rd2+{}], %r5;\nret;\n}}\n",
            4 * WORDS
        );
        text
    }
}

fn instruction(step: &Step, label: &str, waits: bool) -> String {
    let test = |at: usize, odd: bool| {
        format!("mbarrier.test_wait.parity.shared.b64 %p2, [bars+{}], {};\n", 8 * at, u8::from(odd))
    };
    let place = |shared: bool, word: usize| match shared {
        true => ("shared", format!("[room+{}]", 4 * word)),
        false => ("global", format!("[%rd1+{}]", 4 * word)),
    };
    let note = "mad.lo.s32 %r5, %r5, 10, %r4;\n";
    match *step {
        Step::Arrive { at } => format!("mbarrier.arrive.shared.b64 _, [bars+{}];\n", 8 * at),
        Step::Expect { at } => format!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars+{}], 0;\n", 8 * at),
        Step::Wait { at, odd } => {
            let nothing = if waits { "" } else { "xor.b32 %r6, %r6, 0;\n" };
            format!("{label}: {}{nothing}@!%p2 bra {label};\n", test(at, odd))
        }
        Step::Look { at, odd } => format!("{}selp.u32 %r4, 1, 0, %p2;\n{note}", test(at, odd)),
        Step::Write { shared, word } => {
            let (space, place) = place(shared, word);
            format!("st.{space}.u32 {place}, 7;\n")
        }
        Step::Read { shared, word } => {
            let (space, place) = place(shared, word);
            format!("ld.{space}.u32 %r4, {place};\n{note}")
        }
    }
}

/// Words of global memory, and what each thread has noted.
fn launch(pe: &Pe<Sim>, source: &Source, threads: usize) -> Result<Vec<u32>> {
    let words = pe.alloc_zeroed::<u32>(WORDS + threads)?;
    let (module, stream) = (pe.module(source)?, pe.stream()?);
    // SAFETY: the kernel takes one pointer.
    unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, threads as u32), args![&words])? };
    pe.synchronize(&stream)?;
    let seen = pe.read(&words)?;
    pe.free(words)?;
    Ok(seen)
}

/// What a search has found: what is wrong, or what threads have noted.
#[derive(Debug, PartialEq)]
struct Found {
    complete: bool,
    classes: u64,
    races: bool,
    outcomes: BTreeSet<String>,
}

fn explore(program: &Program, (waits, reduce): (bool, Reduce), strategy: Explore) -> Found {
    let source = Source::ptx("phases.ptx", program.text(waits));
    let threads = program.threads.len();
    let run = |pe: &Pe<Sim>| launch(pe, &source, threads);
    let mut found = Found { complete: false, classes: 0, races: false, outcomes: BTreeSet::new() };
    let mut simulation = Simulation::new(Config { reduce, ..Config::pes(1) }).unwrap();
    let explored = simulation.explore(strategy, run, |run| {
        let text = run.verdict.to_string();
        match &run.verdict.kind {
            _ if !run.verdict.races.is_empty() || text.contains("race in shared") => found.races = true,
            VerdictKind::Finished => _ = found.outcomes.insert(format!("{:?}", run.results)),
            VerdictKind::Deadlock => _ = found.outcomes.insert("deadlock".into()),
            _ => _ = found.outcomes.insert(text),
        }
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap_or_else(|error| panic!("{error}\n{program:?}"));
    (found.complete, found.classes) = (explored.complete, explored.schedules);
    found
}

const ALL: Explore = Explore::All { limit: 20_000 };

fn proved(program: &Program) -> Found {
    explore(program, (true, Reduce::Everything), ALL)
}

/// Each thread arrives and waits, phase after phase.
fn rounds(threads: usize, rounds: usize) -> Program {
    let one =
        |_: usize| (0..rounds).flat_map(|round| [Arrive { at: 0 }, Wait { at: 0, odd: round % 2 == 1 }]).collect();
    Program { takes: vec![threads], threads: (0..threads).map(one).collect() }
}

#[test]
fn threads_that_meet_at_an_mbarrier_have_one_class() {
    for (threads, times) in [(2, 1), (3, 3), (64, 1), (64, 4), (200, 2)] {
        let found = proved(&rounds(threads, times));
        assert!(
            found.complete && found.classes == 1 && !found.races && found.outcomes.len() == 1,
            "{threads}: {found:?}"
        );
    }
    // Where each look is a step, two threads have several, and more have too many.
    assert!(explore(&rounds(2, 1), (false, Reduce::Nothing), ALL).classes > 1);
    assert!(!explore(&rounds(9, 1), (false, Reduce::Nothing), ALL).complete);
}

/// A ring of two buffers between a producer and a consumer, with an mbarrier for each that is full, and for each that is empty.
#[test]
fn a_pipeline_has_one_class() {
    let round = |round: usize| (round % 2, round / 2 % 2 == 1);
    let produce = |number: usize| {
        let (slot, odd) = round(number);
        [Wait { at: 2 + slot, odd: !odd }, Write { shared: true, word: slot }, Arrive { at: slot }]
    };
    let consume = |number: usize| {
        let (slot, odd) = round(number);
        [Wait { at: slot, odd }, Read { shared: true, word: slot }, Arrive { at: 2 + slot }]
    };
    let program = Program {
        takes: vec![1; 4],
        threads: vec![(0..8).flat_map(produce).collect(), (0..8).flat_map(consume).collect()],
    };
    let found = proved(&program);
    assert!(found.complete && found.classes == 1 && !found.races, "{found:?}");
    // The consumer does not say that a buffer is empty.
    let mut broken = program.clone();
    broken.threads[0].retain(|step| !matches!(step, Wait { .. }));
    assert!(proved(&broken).races);
}

/// Who looks too late takes the next phase for the one before.
#[test]
fn a_phase_that_may_be_missed_is_a_deadlock() {
    let twice = Program { takes: vec![1], threads: vec![vec![Arrive { at: 0 }; 2], vec![Wait { at: 0, odd: false }]] };
    let found = proved(&twice);
    assert!(found.complete && found.outcomes.contains("deadlock") && found.outcomes.len() == 2, "{found:?}");
    // It is found again by its line.
    let source = Source::ptx("phases.ptx", twice.text(true));
    let run = |pe: &Pe<Sim>| launch(pe, &source, 2);
    let mut lines = Vec::new();
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let notes = |run: &Run<Vec<u32>>| {
        lines.extend((!run.is_ok()).then(|| run.schedule.to_string()));
        ControlFlow::Continue(())
    };
    simulation.explore(ALL, run, notes).unwrap();
    assert_eq!(lines.len(), 1);
    let again = simulation.replay(&lines[0].parse().unwrap(), run).unwrap();
    assert!(matches!(again.verdict.kind, VerdictKind::Deadlock), "{}", again.verdict);
    let text = again.verdict.to_string();
    insta::assert_snapshot!(text.lines().last().unwrap(), @"  PE 0 stream 0, block 0, thread 1: in wait at an mbarrier at phases.ptx:26, waits for an mbarrier's even phase to end: 1 arrival missing");
    let thrice = Program { threads: vec![vec![Arrive { at: 0 }; 3], twice.threads[1].clone()], ..twice };
    let found = proved(&thrice);
    assert!(found.complete && found.outcomes.len() == 1 && !found.races, "{found:?}");
}

/// What is told at an mbarrier in its next phase is not what a wait for this one learns, however late it comes.
#[test]
fn a_wait_learns_what_its_phase_tells() {
    let first = vec![Arrive { at: 0 }, Wait { at: 0, odd: false }, Write { shared: false, word: 0 }, Arrive { at: 0 }];
    let second = vec![Arrive { at: 0 }, Wait { at: 0, odd: false }, Read { shared: false, word: 0 }];
    for shared in [false, true] {
        let mut program = Program { takes: vec![2], threads: vec![first.clone(), second.clone()] };
        (program.threads[0][2], program.threads[1][2]) = (Write { shared, word: 0 }, Read { shared, word: 0 });
        for strategy in [ALL, Explore::random(1, 7), Explore::random(50, 1)] {
            assert!(explore(&program, (true, Reduce::Everything), strategy).races, "{shared}");
        }
        // Behind the next phase it is known.
        program.threads[1].splice(2..2, [Arrive { at: 0 }, Wait { at: 0, odd: true }]);
        assert!(!proved(&program).races);
    }
}

/// The barriers of CUDA C++ test, count, look at the clock, sleep, and test again.
#[test]
fn the_barriers_of_cuda_wait() {
    const TILE: usize = 64;
    const TILES: usize = 5;
    let source = Source::ptx("barriers.ptx", include_str!("../ptx/kernels/barriers.ptx"));
    let run = |pe: &Pe<Sim>, slots: i32| -> Result<Vec<i32>> {
        let (sums, from) = (pe.alloc_zeroed::<i32>(TILE)?, pe.alloc_zeroed::<i32>(TILES * TILE)?);
        pe.write(&from, &std::array::from_fn::<i32, { TILES * TILE }, _>(|at| at as i32))?;
        let (module, stream) = (pe.module(&source)?, pe.stream()?);
        let arguments = args![&sums, &from, TILES as i32, slots];
        // SAFETY: the kernel takes two arrays of so many tiles, and how many there are.
        unsafe { pe.on(&stream).launch(&module.kernel("add_up")?, &Grid::new(1, TILE as u32), arguments)? };
        pe.synchronize(&stream)?;
        let seen = pe.read(&sums)?;
        pe.free(from)?;
        pe.free(sums)?;
        Ok(seen)
    };
    let explore = |slots: i32| {
        let mut faults = Vec::new();
        let mut simulation = Simulation::new(Config::pes(1)).unwrap();
        let explored = simulation.explore(
            ALL,
            |pe| run(pe, slots),
            |run| {
                match &run.results[0] {
                    Some(sums) => assert!(sums.iter().enumerate().all(|(at, sum)| *sum == 5 * at as i32 + 640)),
                    None => faults.push(run.verdict.to_string()),
                }
                ControlFlow::Continue(())
            },
        );
        (explored.unwrap(), faults)
    };
    let (explored, faults) = explore(2);
    assert!(explored.complete && explored.schedules == 1 && faults.is_empty(), "{explored:?} {faults:?}");
    let (_, faults) = explore(1);
    assert!(faults.first().is_some_and(|fault| fault.contains("race in shared memory")), "{faults:?}");
}

fn programs() -> impl Strategy<Value = Program> {
    let at = 0..2_usize;
    let step = prop_oneof![
        4 => at.clone().prop_map(|at| Arrive { at }),
        4 => (at.clone(), any::<bool>()).prop_map(|(at, odd)| Wait { at, odd }),
        1 => (at.clone(), any::<bool>()).prop_map(|(at, odd)| Step::Look { at, odd }),
        1 => at.prop_map(|at| Step::Expect { at }),
        1 => (any::<bool>(), 0..WORDS).prop_map(|(shared, word)| Write { shared, word }),
        2 => (any::<bool>(), 0..WORDS).prop_map(|(shared, word)| Read { shared, word }),
    ];
    let threads = proptest::collection::vec(proptest::collection::vec(step, 1..6), 2..4);
    (proptest::collection::vec(1..3_usize, 2), threads).prop_map(|(takes, threads)| Program { takes, threads })
}

/// Proofs in which loops are waits find what searches find in which each look is a step, and so do searches without assumptions.
#[test]
fn waits_for_phases_find_what_looks_find() {
    let counts = Cell::new([0_u32; 4]);
    random::check_all(programs(), 1_500, 27, |program| {
        let [mut compared, mut raced, mut missed, mut fewer] = counts.get();
        let looks = explore(&program, (false, Reduce::Nothing), ALL);
        if !looks.complete {
            return Ok(());
        }
        compared += 1;
        for reduce in [Reduce::Nothing, Reduce::Everything] {
            let waits = explore(&program, (true, reduce), ALL);
            prop_assert!(waits.complete, "{waits:?}");
            prop_assert_eq!(waits.races, looks.races, "{:?}", reduce);
            if !looks.races {
                prop_assert_eq!(&waits.outcomes, &looks.outcomes, "{:?}", reduce);
            }
            let some = explore(&program, (true, reduce), Explore::random(10, 5));
            prop_assert!(looks.races || some.outcomes.is_subset(&looks.outcomes), "{some:?}");
            prop_assert!(looks.races || !some.races);
            fewer += u32::from(waits.classes < looks.classes);
        }
        raced += u32::from(looks.races);
        missed += u32::from(!looks.races && looks.outcomes.contains("deadlock") && looks.outcomes.len() > 1);
        counts.set([compared, raced, missed, fewer]);
        Ok(())
    });
    let [compared, raced, missed, fewer] = counts.get();
    println!("{compared} compared, {raced} race, {missed} can miss a phase, {fewer} have fewer classes");
    assert!(compared > 1_200 && raced > 60 && missed > 100 && fewer > 1_000, "{compared} {raced} {missed} {fewer}");
}
