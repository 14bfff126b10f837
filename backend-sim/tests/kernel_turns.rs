//! Where transfers arrive in the order of issue, that is said of those whose threads follow each other. Transfers of other threads arrive in any
//! order, and it does not matter who issues first.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Quiet, Sim, Simulation, VerdictKind};

use crate::hand_over::run;

const TURNS: &str = include_str!("../ptx/kernels/turns.ptx");

/// Runs a kernel of a few threads on each of two PEs. What PE 1 has seen.
fn program(name: &str, threads: u32) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let (data, signal) = (pe.alloc_zeroed::<i32>(64)?, pe.alloc_zeroed::<u64>(32)?);
        run(pe, &Source::ptx("turns.ptx", TURNS), name, &Grid::new(1, threads), args![&data, &signal])?;
        let seen = pe.read_one(data.at(32))?;
        pe.free(signal)?;
        pe.free(data)?;
        Ok(seen)
    }
}

/// How many classes a proof has, and what PE 1 has seen in them, or what is missing if it finds a race.
fn proved(config: Config, name: &str, threads: u32) -> (u64, std::result::Result<BTreeSet<i32>, String>) {
    let (mut missing, mut seen) = (None, BTreeSet::new());
    let mut simulation = Simulation::new(config).unwrap();
    let explored = simulation.explore(Explore::All { limit: 1_000 }, program(name, threads), |run| {
        match &run.verdict.kind {
            VerdictKind::Race => missing = Some(run.verdict.races[0].missing.to_string()),
            _ => {
                assert!(run.is_ok(), "{}", run.verdict);
                seen.extend(run.results[1]);
            }
        }
        ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete, "{name}: {explored:?}");
    (explored.schedules, missing.map_or(Ok(seen), Err))
}

/// The profiles, and whether transfers arrive in the order of issue.
const PROFILES: [(Profile, bool); 4] =
    [(Profile::Spec, false), (Profile::Ibgda, false), (Profile::Network, true), (Profile::Nvlink, true)];

#[test]
fn who_issues_first_is_no_choice() {
    for (profile, _) in PROFILES {
        for quiet in [Quiet::Pe, Quiet::Thread] {
            let config = || Config { profile, quiet, ..Config::pes(2) };
            for name in ["all_by_p", "all_by_put", "all_by_add"] {
                let (classes, seen) = proved(config(), name, 4);
                assert_eq!((classes, seen), (1, Ok(BTreeSet::from([0]))), "{profile}, {quiet:?}: {name}");
            }
            let (classes, seen) = proved(config(), "each_waits", 4);
            assert_eq!((classes, seen), (1, Ok(BTreeSet::from([1]))), "{profile}, {quiet:?}: each_waits");
        }
    }
}

#[test]
fn transfers_of_threads_that_follow_each_other_arrive_in_order() {
    for (profile, in_order) in PROFILES {
        let config = || Config { profile, ..Config::pes(2) };
        for name in ["value_behind_a_barrier", "value_behind_a_release"] {
            let (_, seen) = proved(config(), name, 2);
            match in_order {
                true => assert_eq!(seen, Ok(BTreeSet::from([7])), "{profile}: {name}"),
                false => assert!(seen.is_err(), "{profile}: {name}: {seen:?}"),
            }
        }
        for name in ["signal_behind_a_barrier", "signal_behind_a_release"] {
            let (_, seen) = proved(config(), name, 2);
            let expected = if in_order { BTreeSet::from([7]) } else { BTreeSet::from([0, 7]) };
            assert_eq!(seen, Ok(expected), "{profile}: {name}");
        }
    }
}

#[test]
fn others_arrive_in_any_order() {
    for (profile, _) in PROFILES {
        let config = || Config { profile, ..Config::pes(2) };
        for name in ["value_behind_nothing", "value_behind_a_relaxed_store"] {
            let (_, seen) = proved(config(), name, 2);
            assert!(seen.is_err(), "{profile}: {name}: {seen:?}");
        }
        let (_, seen) = proved(config(), "signal_behind_nothing", 2);
        assert_eq!(seen, Ok(BTreeSet::from([0, 7])), "{profile}");
    }
}
