//! Which programs are robust: litmus tests whose outcomes with complete operations are known.

use std::time::Duration;

use onesided::{Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Bound, Budget, Config, Effort, Profile, Robustness, Schedule, Sim, Simulation, robustness};

type Seen = Vec<u64>;

fn judge(config: Config, program: impl Fn(&Pe<Sim>) -> Result<Seen>) -> Robustness<Seen> {
    let found = robustness(config, 100_000, program).unwrap();
    assert!(found.is_complete(), "{found}");
    found
}

/// What the PEs saw in outcomes that need a delay.
fn odd(config: Config, program: impl Fn(&Pe<Sim>) -> Result<Seen>) -> Vec<Seen> {
    let found = judge(config, program);
    found.odd.iter().map(|odd| odd.results.iter().flatten().flatten().copied().collect()).collect()
}

/// Message passing: data, then a flag, with something between.
fn message(between: fn(&Pe<Sim>) -> Result<()>) -> impl Fn(&Pe<Sim>) -> Result<Seen> {
    move |pe| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        let mut seen = Vec::new();
        if pe.my_pe() == 0 {
            pe.host().p(words.at(0), 1, 1)?;
            between(pe)?;
            pe.host().p(words.at(1), 1, 1)?;
        } else {
            seen = vec![pe.read_one(words.at(1))?, pe.read_one(words.at(0))?];
        }
        pe.free(words)?;
        Ok(seen)
    }
}

#[test]
fn message_passing_needs_a_fence() {
    assert_eq!(odd(Config::pes(2), message(|_| Ok(()))), [[1, 0]]);
    assert!(odd(Config::pes(2), message(|pe| pe.host().fence())).is_empty());
    assert!(odd(Config::pes(2), message(|pe| pe.host().quiet())).is_empty());
    let nvlink = Config { profile: Profile::Nvlink, ..Config::pes(2) };
    assert!(odd(nvlink, message(|_| Ok(()))).is_empty());
}

/// Store buffering: each PE writes to the other and reads its own word. A fence does not help; a quiet does.
#[test]
fn store_buffering_needs_a_quiet() {
    let program = |between: fn(&Pe<Sim>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let word = pe.alloc_zeroed::<u64>(1)?;
            pe.host().p(&word, 1, 1 - pe.my_pe())?;
            between(pe)?;
            let seen = pe.read_one(&word)?;
            pe.free(word)?;
            Ok(vec![seen])
        }
    };
    assert_eq!(odd(Config::pes(2), program(|_| Ok(()))), [[0, 0]]);
    assert_eq!(odd(Config::pes(2), program(|pe| pe.host().fence())), [[0, 0]]);
    assert!(odd(Config::pes(2), program(|pe| pe.host().quiet())).is_empty());
}

/// Non-blocking puts, stores through a peer's pointer, and streams are complete at once too.
#[test]
fn every_kind_of_operation_is_complete_at_once() {
    let nbi = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        if pe.my_pe() == 0 {
            pe.write(words.at(1), &[1])?;
            pe.host().put_nbi(words.at(0), words.at(1), 1)?;
            pe.write(words.at(1), &[2])?;
        }
        pe.host().barrier_all()?;
        let seen = pe.read_one(words.at(0))?;
        pe.free(words)?;
        Ok(vec![seen])
    };
    assert_eq!(odd(Config::pes(2), nbi), [[0, 2]]);
    let stores = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        let mut seen = Vec::new();
        if pe.my_pe() == 0 {
            for i in 0..2 {
                pe.peer(words.at(i), 1)?.expect("on one node").write(&[1])?;
            }
        } else {
            seen = vec![pe.read_one(words.at(1))?, pe.read_one(words.at(0))?];
        }
        pe.free(words)?;
        Ok(seen)
    };
    assert_eq!(odd(Config::pes(2), stores), [[1, 0]]);
    let streams = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(3)?;
        let (stream, mut seen) = (pe.stream()?, Vec::new());
        if pe.my_pe() == 0 {
            pe.write(words.at(2), &[1])?;
            pe.on(&stream).put(words.at(0), words.at(2), 1)?;
            pe.on(&stream).put_nbi(words.at(1), words.at(2), 1)?;
            pe.on(&stream).quiet()?;
            pe.synchronize(&stream)?;
        } else {
            seen = vec![pe.read_one(words.at(1))?, pe.read_one(words.at(0))?];
        }
        pe.free(words)?;
        Ok(seen)
    };
    assert_eq!(odd(Config::pes(2), streams), [[1, 0]]);
}

/// A race that changes nothing but the order of complete operations is robust; so is a wrong result that needs no delay.
#[test]
fn robust_is_not_right() {
    let winner = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() > 0 {
            pe.host().p(&word, pe.my_pe() as u64, 0)?;
        }
        pe.host().barrier_all()?;
        let seen = pe.read_one(&word)?;
        pe.free(word)?;
        Ok(vec![seen])
    };
    let found = judge(Config::pes(3), winner);
    let cluster = "3 PEs under spec with up to 4 pieces a transfer";
    assert_eq!(found.to_string(), format!("robust for {cluster}: 2 outcomes, all sequentially consistent"));
    let fails = |pe: &Pe<Sim>| onesided::expect_eq(pe.my_pe(), 0, "the rank").map(|()| Seen::new());
    assert!(judge(Config::pes(2), fails).is_robust());
}

#[test]
fn an_odd_outcome_is_replayed_and_what_was_not_seen_is_said() {
    let found = judge(Config::pes(2), message(|_| Ok(())));
    let cluster = "2 PEs under spec with up to 4 pieces a transfer";
    let expected = format!("not robust for {cluster}: 1 of 4 outcomes is not sequentially consistent");
    assert_eq!((found.to_string(), found.is_robust()), (expected, false));
    let schedule: &Schedule = &found.odd[0].schedule;
    let again = Simulation::new(found.config.clone()).unwrap().replay(schedule, message(|_| Ok(()))).unwrap();
    assert_eq!(again.results, found.odd[0].results);

    let bounded = robustness(Config::pes(2), 2, message(|_| Ok(()))).unwrap();
    let expected = format!("not known for {cluster}: not every schedule was seen, bounded by 2 schedules");
    assert_eq!((bounded.to_string(), bounded.is_robust()), (expected, false));
}

/// What is said of the first odd outcome.
fn told<T: Ord + Clone>(found: &Robustness<T>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> (usize, String, usize) {
    let mut simulation = Simulation::new(found.config.clone()).unwrap();
    let odd = simulation.odd_run(found, Effort::LITTLE, &program).unwrap().expect("there is one");
    assert!(odd.run.schedule.fingerprint.is_some(), "a replay knows whether it is of this program");
    let again = simulation.replay(&odd.run.schedule, &program).unwrap();
    assert_eq!(again.verdict.kind.outcome(), found.odd[0].ended);
    assert!(again.results == odd.run.results);
    let difference = odd.difference.expect("a value differs");
    (difference.pe, difference.to_string(), odd.exceptions.len())
}

/// The value that a delay changes is named, with its PE and line: of a read in pieces, of a wait, and of an atomic.
#[test]
fn the_value_that_shows_it_is_named() {
    let here = |line: u32| format!("backend-sim/tests/robust.rs:{line} found ");
    let line = line!() + 9;
    let read = |pe: &Pe<Sim>| {
        let (data, flag) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.write(&data, &[1, 2, 3, 4])?;
            pe.host().put(&data, &data, 1)?; // a fence is missing behind it
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            expect_eq(&pe.read(&data)?[..], &[1, 2, 3, 4], "the data")?;
        }
        pe.free(flag)?;
        pe.free(data)?;
        Ok(0)
    };
    let (pe, text, exceptions) = told(&robustness(Config::pes(2), 100_000, read).unwrap(), read);
    assert!(text.starts_with(&format!("PE 1's read at {}[", here(line))), "{text}");
    assert!(text.ends_with("; in the nearest run with complete operations it finds [1, 2, 3, 4]"), "{text}");
    assert_eq!((pe, exceptions), (1, 1), "one piece comes late");

    let line = line!() + 9;
    let signals = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        let mut seen = 0;
        if pe.my_pe() == 0 {
            pe.host().signal_op(word.signal(0), 2, SignalOp::Set, 1)?;
            pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 1)?; // can come first
        } else {
            pe.host().barrier_all()?;
            seen = pe.host().signal_wait_until(word.signal(0), Cmp::Ge, 1)?;
        }
        if pe.my_pe() == 0 {
            pe.host().barrier_all()?;
        }
        pe.free(word)?;
        Ok(seen)
    };
    let (pe, text, _) = told(&robustness(Config::pes(2), 100_000, signals).unwrap(), signals);
    let expected = format!(
        "PE 1's signal_wait_until at {}[2]; in the nearest run with complete operations it finds [1]",
        here(line)
    );
    assert_eq!((pe, text), (1, expected));

    let line = line!() + 7;
    let fetches = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        let mut seen = [0; 2];
        if pe.my_pe() == 0 {
            seen = [0, 1].map(|i| pe.host().atomic_inc(words.at(i), 1).map_or(9, |()| 0));
        } else {
            seen[0] = pe.host().atomic_fetch(words.at(1), 1)?;
            seen[1] = pe.host().atomic_fetch(words.at(0), 1)?;
        }
        pe.free(words)?;
        Ok(seen)
    };
    let (pe, text, _) = told(&robustness(Config::pes(2), 100_000, fetches).unwrap(), fetches);
    assert_eq!(pe, 1);
    let expected = [line, line + 1].map(|line| format!("PE 1's atomic_fetch at {}[", here(line)));
    assert!(expected.iter().any(|expected| text.starts_with(expected)), "{text}");
}

/// Both searches share the time. Where the one with complete operations is over, what the other finds is known to be odd.
#[test]
fn a_budget_bounds_both_searches() {
    let bounded = |budget, cores| {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        simulation.set_budget(budget);
        simulation.on_cores(Some(cores)).robustness(100_000, message(|_| Ok(()))).unwrap()
    };
    for cores in [1, 2] {
        let none = bounded(Budget { time: Some(Duration::ZERO), ..Budget::default() }, cores);
        assert!(none.to_string().ends_with(": not every schedule was seen, bounded by 0 s"), "{none}");
        let little = bounded(Budget { memory: Some(1), ..Budget::default() }, cores);
        assert_eq!(little.searches.map(|search| search.bound), [Some(Bound::Memory(1)); 2], "{little}");
    }
    let sequential = robustness(Config::pes(2), 100_000, message(|_| Ok(()))).unwrap().searches[1].schedules;
    let found = robustness(Config::pes(2), sequential, message(|_| Ok(()))).unwrap();
    assert_eq!((found.searches[1].complete, found.searches[0].complete), (true, false));
    let unseen = format!("not every schedule was seen, bounded by {sequential} schedules");
    assert!(found.to_string().ends_with(&unseen), "{found}");
}
