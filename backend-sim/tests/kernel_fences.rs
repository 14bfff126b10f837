//! A fence that is not sequential puts a strong store to another PE before whatever its thread writes or calls, and who comes after that fence.

use std::collections::BTreeSet;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Races, Sim};

use crate::hand_over::{explored, run};

const FENCES: &str = include_str!("../ptx/kernels/fences.ptx");

/// What PE 1 has seen: 2 if it was told, and 1 if the data was there.
fn sees(name: &str) -> impl Fn(&Pe<Sim>) -> Result<u64> + '_ {
    move |pe| {
        let (words, seen) = (pe.alloc_zeroed::<u64>(4)?, pe.alloc_zeroed::<u64>(1)?);
        let (source, grid) = (Source::ptx("fences.ptx", FENCES), Grid::new(1, 64).collective());
        run(pe, &source, name, &grid, args![&words, &seen])?;
        let found = pe.read_one(&seen)?;
        pe.free(words)?;
        pe.free(seen)?;
        Ok(found)
    }
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
                let (seen, all) =
                    (BTreeSet::from_iter(seen.iter().map(|&seen| vec![0, seen])), Explore::All { limit: 100 });
                assert_eq!(
                    explored(config(), all, sees(name)),
                    (classes, seen.clone()),
                    "{profile}, {races:?}: {name}"
                );
                assert_eq!(
                    explored(config(), Explore::random(100, 1), sees(name)).1,
                    seen,
                    "{profile}, {races:?}: {name}"
                );
            }
        }
    }
}
