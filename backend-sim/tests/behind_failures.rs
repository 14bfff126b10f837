//! Races that lie behind another failure of the same schedule: both are named, whoever ran the schedule.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp, SymmetricBuf, expect_eq};
use onesided_sim::{Access, Config, Explore, Race, Races, Run, Sim, Simulation};

/// The races of a verdict, as the calls and PEs of both sides.
fn races(run: &Run<()>) -> BTreeSet<String> {
    let side = |access: &Access| format!("{} by PE {}", access.call, access.pe);
    let pair = |race: &Race| {
        let mut sides = [&race.first, &race.second].map(side);
        sides.sort();
        sides.join(" | ")
    };
    run.verdict.races.iter().map(pair).collect()
}

/// How the run in order, every class, each class once more, and random schedules end, with their races.
fn endings(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()> + Sync) -> BTreeSet<(String, BTreeSet<String>)> {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    let mut endings = BTreeSet::new();
    let mut runs = vec![simulation.run(&program).unwrap()];
    for how in [Explore::All { limit: 10_000 }, Explore::random(20, 0)] {
        let explored = simulation.on_cores(Some(2)).explore(how, &program, |run| {
            runs.push(run.without_results());
            ControlFlow::Continue(())
        });
        assert!(explored.unwrap().schedules >= 1);
    }
    for run in &runs {
        endings.insert((run.verdict.kind.outcome(), races(run)));
        let again = simulation.reproduce(run, &program).unwrap();
        endings.insert((again.verdict.kind.outcome(), races(&again)));
    }
    endings
}

/// What PEs 1 and 2 do: an unordered put and read, after `before`.
fn race_of_two(pe: &Pe<Sim>, before: impl Fn(&Pe<Sim>) -> Result<()>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    match pe.my_pe() {
        0 => before(pe)?,
        1 => pe.host().p(&x, 1, 2)?,
        _ => drop(pe.read(&x)?),
    }
    pe.free(x)
}

fn only(outcome: &str, race: &str) -> BTreeSet<(String, BTreeSet<String>)> {
    BTreeSet::from([(outcome.to_string(), BTreeSet::from([race.to_string()]))])
}

#[test]
fn a_failed_check_hides_no_race_of_the_others() {
    let found = endings(3, |pe| race_of_two(pe, |_| expect_eq(1, 2, "the sum")));
    assert_eq!(found, only("failed: wrong result", "p by PE 1 | read by PE 2"));
}

#[test]
fn a_panic_hides_no_race_of_the_others() {
    let found = endings(3, |pe| race_of_two(pe, |_| panic!("as it should")));
    assert_eq!(found, only("panicked", "p by PE 1 | read by PE 2"));
}

/// PE 0 enters another collective than the others, who race before they come to it.
#[test]
fn a_mismatch_hides_no_race_of_who_goes_on() {
    let found = endings(4, |pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        match pe.my_pe() {
            0 => pe.host().barrier_all()?,
            1 => {}
            2 => pe.host().p(&x, 1, 3)?,
            _ => drop(pe.read(&x)?),
        }
        pe.free(x)
    });
    let outcomes: BTreeSet<&String> = found.iter().map(|(outcome, _)| outcome).collect();
    assert_eq!(outcomes.len(), 1, "{found:?}");
    assert!(found.iter().all(|(_, races)| races.contains("p by PE 2 | read by PE 3")), "{found:?}");
}

/// PE 0's stream still uses the memory that all PEs free, and the others race behind the free.
#[test]
fn memory_freed_in_use_hides_no_race() {
    let found = endings(3, |pe| {
        let (x, used) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        let stream = pe.stream()?;
        if pe.my_pe() == 0 {
            pe.on(&stream).signal_wait_until(x.signal(0), Cmp::Eq, 1)?;
            pe.on(&stream).p(&used, 1, 0)?;
        }
        pe.free(used)?;
        match pe.my_pe() {
            1 => pe.host().p(&x, 2, 2)?,
            2 => drop(pe.read(&x)?),
            _ => {}
        }
        pe.host().barrier_all()?;
        pe.free(x)
    });
    assert_eq!(found, only("free of memory in use", "p by PE 1 | read by PE 2"));
}

/// Two agents of PE 0 are in a collective of one team at once, and the others race.
#[test]
fn two_collectives_at_once_hide_no_race() {
    let found = endings(3, |pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        let stream = pe.stream()?;
        pe.on(&stream).sync_all()?;
        if pe.my_pe() == 0 {
            pe.host().sync_all()?;
        }
        match pe.my_pe() {
            1 => pe.host().p(&x, 2, 2)?,
            2 => drop(pe.read(&x)?),
            _ => {}
        }
        pe.synchronize(&stream)?;
        pe.free(x)
    });
    assert!(found.iter().all(|(_, races)| races.contains("p by PE 1 | read by PE 2")), "{found:?}");
}

type Words = SymmetricBuf<u64>;

/// PE 0 fails where it would have sent a flag, and the others go on.
fn without_the_flag(
    others: impl Fn(&Pe<Sim>, &Words, &Words) -> Result<()> + Sync,
) -> BTreeSet<(String, BTreeSet<String>)> {
    endings(3, |pe| {
        let (x, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            expect_eq(1, 2, "the sum")?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            others(pe, &x, &flag)?;
        }
        pe.free(flag)?;
        pe.free(x)
    })
}

/// Where somebody waits for who failed, the run ends as a deadlock would, and what happened besides is still told.
#[test]
fn who_waits_for_the_pe_that_failed_does_not_keep_the_others() {
    let found = without_the_flag(|pe, x, flag| {
        if pe.my_pe() == 1 {
            pe.host().p(x, 1, 2)?;
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        } else {
            pe.read(x)?;
        }
        Ok(())
    });
    assert_eq!(found, only("failed: wrong result", "p by PE 1 | read by PE 2"));
}

/// A PE polls for what the failed one would have sent: that ends, too.
#[test]
fn who_polls_for_the_pe_that_failed_does_not_keep_the_others() {
    let found = without_the_flag(|pe, x, flag| {
        if pe.my_pe() == 1 {
            while pe.host().signal_fetch(flag.signal(0))? == 0 {}
            pe.host().barrier_all()
        } else {
            pe.host().p(x, 1, 1)?;
            pe.host().p(x, 2, 1)
        }
    });
    assert_eq!(found, only("failed: wrong result", "p by PE 2 | p by PE 2"));
}

/// Where a search compares outcomes, races are noted, and those behind a failure as well; where they are ignored nothing goes on.
#[test]
fn races_are_noted_behind_a_failure_and_not_where_they_are_ignored() {
    let program = |pe: &Pe<Sim>| race_of_two(pe, |_| expect_eq(1, 2, "the sum"));
    for (meaning, expected) in [(Races::Note, 1), (Races::Ignore, 0)] {
        let mut simulation = Simulation::new(Config { races: meaning, ..Config::pes(3) }).unwrap();
        simulation
            .explore(Explore::All { limit: 1000 }, program, |run| {
                assert_eq!(races(run).len(), expected, "{}", run.verdict);
                ControlFlow::Continue(())
            })
            .unwrap();
    }
}
