//! Kernels whose threads each poll a word, and vote about going on, or poll several in turn: each wait is for one word, and in a proof nothing depends on when.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, VerdictKind, prove};

const UNANIMOUS: &str = include_str!("../ptx/kernels/unanimous.ptx");

/// A block of 64 threads on each PE.
fn runs(name: &str) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let [flags, data, seen] = [pe.alloc_zeroed::<i32>(8)?, pe.alloc_zeroed(3)?, pe.alloc_zeroed(3)?];
        let (module, stream) = (pe.module(&Source::ptx("unanimous.ptx", UNANIMOUS))?, pe.stream()?);
        // SAFETY: the kernels take three pointers to numbers, of so many elements.
        unsafe {
            let kernel = module.kernel(name)?;
            pe.on(&stream).launch(&kernel, &Grid::new(1, 64).collective(), args![&flags, &data, &seen])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        onesided::expect_eq(&pe.read(&seen)?[..], &[0, 1, 2], "what has come")?;
        [flags, data, seen].into_iter().try_for_each(|words| pe.free(words))
    }
}

#[test]
fn who_polls_several_words_waits_for_one_after_the_other() {
    let by_ballots = ["warp_ballots", "warp_ballots_for_one"];
    let functions = ["votes_in_a_function", "votes_beside_a_function"];
    for name in ["warp_votes", "warp_votes_for_one", "block_votes", "takes_away", "looks_at_both"]
        .into_iter()
        .chain(by_ballots)
        .chain(functions)
    {
        for pes in [2, 3, 4] {
            assert_eq!(prove(pes, runs(name)).schedules, 1, "{name} on {pes} PEs");
        }
        onesided_sim::check_random(3, runs(name));
    }
}

#[test]
fn a_vote_without_one_of_them_is_a_race() {
    for name in ["forgets_one", "ballot_forgets_one"] {
        let run = Simulation::new(Config::pes(2)).unwrap().run(runs(name)).unwrap();
        let said = run.verdict.to_string();
        assert!(
            said.contains("race") && said.contains("unanimous.cu:25") && said.contains("unanimous.cu:29"),
            "{said}"
        );
    }
}

/// Each lane that waits in vain is said to wait, for its own word.
#[test]
fn a_vote_that_comes_to_nothing_is_a_deadlock() {
    let mut said = Vec::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::All { limit: 100 }, runs("waits_for_another"), |run| {
        assert!(matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
        said.push(run.verdict.to_string());
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert!(explored.unwrap().complete);
    let waits = "unanimous.cu:75, inlined at unanimous.cu:28, inlined at unanimous.cu:74, waits for buf0+4";
    assert!(said[0].contains(waits) && said[0].contains("found 1"), "{}", said[0]);
}

/// A lane that votes elsewhere tells how often the others have looked: their loop is no wait, though it is in a function of its own.
#[test]
fn who_votes_beside_a_function_counts_its_rounds() {
    let program = |pe: &Pe<Sim>| {
        let [flags, data, seen] = [pe.alloc_zeroed::<i32>(8)?, pe.alloc_zeroed(3)?, pe.alloc_zeroed(3)?];
        let (module, stream) = (pe.module(&Source::ptx("unanimous.ptx", UNANIMOUS))?, pe.stream()?);
        // SAFETY: the kernel takes three pointers to numbers, of so many elements.
        unsafe {
            let kernel = module.kernel("votes_in_a_function_and_elsewhere")?;
            pe.on(&stream).launch(&kernel, &Grid::new(1, 32).collective(), args![&flags, &data, &seen])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        let votes = pe.read(&seen)?[0];
        [flags, data, seen].into_iter().try_for_each(|words| pe.free(words))?;
        Ok(votes)
    };
    let mut counted = std::collections::BTreeSet::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::random(100, 1), program, |run| {
        counted.extend(run.results[1]);
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!(explored.unwrap().findings, 0);
    assert!(counted.len() > 1, "{counted:?}");
}
