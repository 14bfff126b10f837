//! A strong store to another PE arrives later than it is made: Dekker's lock needs a fence between the store and the load.

use std::collections::BTreeSet;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Races, Sim, Simulation};

use crate::hand_over::{explored, run};

const DEKKER: &str = include_str!("../ptx/kernels/dekker.ptx");

/// Whether the PE has entered.
fn enters(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let (raised, inside) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?);
        let (source, grid) = (Source::ptx("dekker.ptx", DEKKER), Grid::new(1, 1).collective());
        run(pe, &source, name, &grid, args![&raised, &inside])?;
        let entered = pe.read_one(&inside)?;
        pe.free(raised)?;
        pe.free(inside)?;
        Ok(entered)
    }
}

const NOT_BOTH: [[i32; 2]; 3] = [[0, 0], [0, 1], [1, 0]];
const ANY: [[i32; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

/// No profile promises more, as GPUs show it over NVLink.
#[test]
fn both_enter_without_a_fence_of_the_system() {
    for profile in [Profile::Spec, Profile::Network, Profile::Nvlink, Profile::Ibgda] {
        let config = || Config { profile, ..Config::pes(2) };
        for (name, seen) in [
            ("by_a_store", &NOT_BOTH[..]),
            ("by_an_exchange", &NOT_BOTH),
            ("by_a_store_without_fence", &ANY),
            ("by_a_store_and_a_fence_of_the_gpu", &ANY),
            ("by_a_store_and_a_fence_that_is_not_sequential", &ANY),
            ("by_an_exchange_without_fence", &ANY),
            ("by_an_addition_without_fence", &ANY),
        ] {
            let (seen, all) = (BTreeSet::from_iter(seen.iter().map(|seen| seen.to_vec())), Explore::All { limit: 100 });
            assert_eq!(explored(config(), all, enters(name)), (seen.len() as u64, seen.clone()), "{profile}: {name}");
            assert_eq!(explored(config(), Explore::random(100, 1), enters(name)).1, seen, "{profile}: {name}");
        }
    }
}

/// Without the race detector nobody knows which stores a fence puts before a write. So the fence waits for them.
#[test]
fn where_races_are_ignored_any_fence_of_the_system_waits() {
    let config = Config { races: Races::Ignore, ..Config::pes(2) };
    let name = "by_a_store_and_a_fence_that_is_not_sequential";
    let seen = NOT_BOTH.iter().map(|seen| seen.to_vec()).collect();
    assert_eq!(explored(config, Explore::All { limit: 100 }, enters(name)), (3, seen));
}

/// In order, a store arrives at once, as in a sequential run.
#[test]
fn the_second_one_does_not_enter_in_order() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(enters("by_a_store_without_fence")).unwrap();
    assert!(NOT_BOTH.contains(&[0, 1].map(|pe: usize| *run.results[pe].as_ref().unwrap())), "{}", run.verdict);
}
