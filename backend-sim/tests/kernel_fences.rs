//! A fence that is not sequential puts a strong store to another PE before whatever its thread writes or calls, and who comes after that fence.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Races, Sim, Simulation};

const FENCES: &str = include_str!("../ptx/kernels/fences.ptx");

/// What PE 1 has seen: 2 if it was told, and 1 if the data was there.
fn sees(name: &str) -> impl Fn(&Pe<Sim>) -> Result<u64> + '_ {
    move |pe| {
        let (words, seen) = (pe.alloc_zeroed::<u64>(4)?, pe.alloc_zeroed::<u64>(1)?);
        let (module, stream) = (pe.module(&Source::ptx("fences.ptx", FENCES))?, pe.stream()?);
        // SAFETY: the kernels take two pointers, to four words and to one.
        unsafe {
            let grid = Grid::new(1, 64).collective();
            pe.on(&stream).launch(&module.kernel(name)?, &grid, args![&words, &seen])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        let found = pe.read_one(&seen)?;
        pe.free(words)?;
        pe.free(seen)?;
        Ok(found)
    }
}

/// How many schedules there are, and what PE 1 sees.
fn explored(config: Config, how: Explore, name: &str) -> (u64, BTreeSet<u64>) {
    let mut seen = BTreeSet::new();
    let explored = Simulation::new(config).unwrap().explore(how, sees(name), |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        seen.insert(*run.results[1].as_ref().unwrap());
        ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(!matches!(how, Explore::All { .. }) || explored.complete, "{explored:?}");
    (explored.schedules, seen)
}

#[test]
fn whatever_tells_of_the_store_comes_behind_its_arrival() {
    for profile in [Profile::Spec, Profile::Network, Profile::Nvlink, Profile::Ibgda] {
        for races in [Races::Find, Races::Note, Races::Ignore] {
            let config = || Config { profile, races, ..Config::pes(2) };
            for (name, classes, seen) in [
                ("by_a_store", 3, &[0, 1, 3][..]),
                ("by_a_store_of_another_thread", 3, &[0, 1, 3]),
                ("by_an_atomic", 3, &[0, 1, 3]),
                ("by_a_signal", 3, &[0, 1, 3]),
                ("by_a_call_of_the_block", 3, &[0, 1, 3]),
                ("not_behind_the_fence", 4, &[0, 1, 2, 3]),
            ] {
                let (seen, all) = (BTreeSet::from_iter(seen.iter().copied()), Explore::All { limit: 100 });
                assert_eq!(explored(config(), all, name), (classes, seen.clone()), "{profile}, {races:?}: {name}");
                assert_eq!(explored(config(), Explore::random(100, 1), name).1, seen, "{profile}, {races:?}: {name}");
            }
        }
    }
}
