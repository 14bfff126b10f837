//! Kernels that are right or wrong by an order of steps that no single word decides: a search tries it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Quiet, Races, Sim, Simulation, prove};

const PROOFS: &str = include_str!("../ptx/kernels/proofs.ptx");

/// What a kernel of proofs.cu leaves in the words that it has seen, and in the first word of the data.
fn launch(pe: &Pe<Sim>, name: &str, blocks: u32, threads: u32) -> Result<[i32; 3]> {
    let (data, flags, seen) = (pe.alloc_zeroed::<i32>(2)?, pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<i32>(2)?);
    pe.write(data.at(1), &[21])?;
    let (module, stream) = (pe.module(&Source::ptx("proofs.ptx", PROOFS))?, pe.stream()?);
    pe.host().barrier_all()?;
    let grid = Grid::new(blocks, threads);
    // SAFETY: every kernel of the file takes these three, and stays inside them.
    unsafe { pe.on(&stream).launch(&module.kernel(name)?, &grid, args![&data, &flags, &seen])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let result = [pe.read_one(seen.at(0))?, pe.read_one(seen.at(1))?, pe.read_one(data.at(0))?];
    pe.free(seen)?;
    pe.free(flags)?;
    pe.free(data)?;
    Ok(result)
}

/// What PE `of` has seen in all schedules, and the kinds of findings.
fn outcomes(config: Config, name: &str, of: usize) -> BTreeSet<String> {
    let mut outcomes = BTreeSet::new();
    let explored = Simulation::new(config).unwrap().explore(
        Explore::All { limit: 200_000 },
        |pe| launch(pe, name, 1, 2),
        |run| {
            outcomes.insert(match run.verdict.is_ok() {
                true => format!("{:?}", run.results[of].expect("it has ended")),
                false => run.verdict.kind.outcome(),
            });
            ControlFlow::Continue(())
        },
    );
    assert!(explored.unwrap().complete, "{name}");
    outcomes
}

fn set(outcomes: &[&str]) -> BTreeSet<String> {
    outcomes.iter().map(|outcome| (*outcome).to_string()).collect()
}

#[test]
fn a_fence_of_another_thread_may_come_too_late() {
    let found = outcomes(Config { quiet: Quiet::Pe, ..Config::pes(2) }, "fenced_by_another", 1);
    assert!(found.contains("race"), "{found:?}");
    let config = Config { races: Races::Note, ..Config::pes(2) };
    assert_eq!(outcomes(config, "fenced_by_another", 1), set(&["[0, 0, 7]", "[7, 0, 7]"]));
}

#[test]
fn a_signal_that_is_taken_back_plainly_tells_anew() {
    prove(2, |pe| {
        assert_eq!(launch(pe, "taken_back", 1, 1)?[0], if pe.my_pe() == 1 { 42 } else { 0 });
        Ok(())
    });
}

#[test]
fn additions_of_two_sizes_to_shared_memory_do_not_commute() {
    for races in [Races::Find, Races::Note] {
        let found = outcomes(Config { races, ..Config::pes(1) }, "carry", 0);
        assert_eq!(found, set(&["[0, 0, 0]", "[1, 0, 0]"]), "{races:?}");
    }
}

/// Where races are no findings, every order is tried.
#[test]
fn stores_to_a_word_of_another_pe_come_in_both_orders() {
    let config = Config { races: Races::Note, ..Config::pes(2) };
    assert_eq!(outcomes(config.clone(), "two_stores", 1), set(&["[0, 0, 1]", "[0, 0, 2]"]));
    assert_eq!(outcomes(config, "load_in_flight", 0), set(&["[0, 0, 0]", "[0, 1, 0]"]));
}

/// The last of so many blocks begins when another one has ended, and comes after none of them.
#[test]
fn a_block_that_begins_later_comes_after_no_other() {
    for blocks in [4000, 4300] {
        let run = Simulation::new(Config::pes(1)).unwrap().run(|pe| launch(pe, "late_block", blocks, 32)).unwrap();
        assert_eq!(run.verdict.races.len(), 1, "{blocks}: {}", run.verdict);
    }
}

/// Arrivals commute within a phase, and not across two.
#[test]
fn an_arrival_may_be_one_of_the_next_phase() {
    let found = outcomes(Config::pes(1), "arrivals", 0);
    assert!(found.contains("deadlock") && found.len() == 2, "{found:?}");
    assert_eq!(outcomes(Config::pes(1), "two_phases", 0), set(&["[0, 0, 0]"]));
}

/// A store that changes nothing in one round of a spin may change something in the next.
#[test]
fn a_spin_that_stores_goes_on_when_its_word_has_changed() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(Config::pes(1)).unwrap();
        let explored = simulation.explore(
            Explore::random(20, seed),
            |pe| launch(pe, "asks_again", 1, 2),
            |run| {
                assert!(run.is_ok(), "{}", run.verdict);
                ControlFlow::Continue(())
            },
        );
        assert_eq!(explored.unwrap().schedules, 20);
    }
}
