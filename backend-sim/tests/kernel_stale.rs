//! Strong loads of kernels that can find an older value than the machine shows: a lint, with twins that fences put in order.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{
    Config, Event, EventKind, Explore, Explored, Lint, LintKind, Loads, Profile, Races, Schedule, Sim, Simulation,
    robustness,
};
use proptest::prelude::*;

use crate::hand_over::run;
use crate::random;

mod axioms;
mod program;

use program::{Program, Step, WORDS};

const STALE: &str = include_str!("../ptx/kernels/stale.ptx");

/// What each PE has seen.
fn sees(name: &str) -> impl Fn(&Pe<Sim>) -> Result<u64> + '_ {
    move |pe| {
        let (words, seen) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(1)?);
        let block = if name.contains("_another") || name.contains("_a_block") { 64 } else { 1 };
        run(pe, &Source::ptx("stale.ptx", STALE), name, &Grid::new(1, block).collective(), args![&words, &seen])?;
        let result = pe.read_one(&seen)?;
        pe.free(seen)?;
        pe.free(words)?;
        Ok(result)
    }
}

/// The lints of the run in order, which is right.
fn lints(config: Config, name: &str) -> Vec<Lint> {
    let mut simulation = Simulation::new(config).unwrap();
    let run = simulation.run(sees(name)).unwrap();
    let run = simulation.reproduce(&run, sees(name)).unwrap();
    assert!(run.is_ok(), "{name}: {}", run.verdict);
    run.verdict.lints
}

/// On how many of some random schedules a kernel's loads can miss something. Nothing else is wrong with them.
fn missing(name: &str) -> usize {
    let strict = Config { strict: true, ..Config::pes(2) };
    let mut found = 0;
    let explored = Simulation::new(strict).unwrap().explore(Explore::random(100, 1), sees(name), |run| {
        let lints = &run.verdict.lints;
        assert!(run.is_ok() || !lints.is_empty(), "{name}: {}", run.verdict);
        assert!(lints.iter().all(|lint| lint.kind == LintKind::StaleLoad), "{name}: {lints:?}");
        found += usize::from(!lints.is_empty());
        ControlFlow::<()>::Continue(())
    });
    explored.unwrap();
    found
}

const PAIRS: [&str; 7] =
    ["looks", "looks_for_another", "looks_at_a_signal", "stores", "raises", "raises_in_a_block", "locks"];

const RIGHT: [&str; 8] = [
    "loads_the_flag_again",
    "waits_twice",
    "takes_tickets",
    "counts",
    "adds_only",
    "raises_and_completes",
    "fences_for_another",
    "swaps_nothing",
];

#[test]
fn a_load_can_miss_what_only_the_text_of_a_program_puts_before_it() {
    for profile in [Profile::Spec, Profile::Nvlink] {
        for name in PAIRS {
            let found = lints(Config { profile, ..Config::pes(2) }, name);
            let kinds: Vec<LintKind> = found.iter().map(|lint| lint.kind).collect();
            assert_eq!(kinds, [LintKind::StaleLoad], "{profile}: {name}");
        }
    }
    for name in ["raises_and_releases", "raises_with_fences_of_the_gpu"] {
        assert_eq!(lints(Config::pes(2), name).len(), 1, "{name}");
    }
}

#[test]
fn and_none_that_synchronization_or_sequential_fences_put_before_it() {
    for profile in [Profile::Spec, Profile::Nvlink] {
        for name in PAIRS {
            let found = lints(Config { profile, ..Config::pes(2) }, &format!("{name}_ordered"));
            assert_eq!(found, [], "{profile}: {name}");
        }
    }
    for name in RIGHT {
        assert_eq!(lints(Config::pes(2), name), [], "{name}");
    }
}

#[test]
fn in_random_orders_too() {
    for name in PAIRS {
        assert!(missing(name) > 10, "{name}");
        assert_eq!(missing(&format!("{name}_ordered")), 0, "{name}");
    }
    for name in RIGHT {
        assert_eq!(missing(name), 0, "{name}");
    }
}

/// What a proof on two PEs says it supposes.
fn supposed(name: &str) -> bool {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let all = Explore::All { limit: 100 };
    let explored = simulation.explore(all, sees(name), |_| ControlFlow::<()>::Continue(())).unwrap();
    let proof = explored.proof(simulation.config());
    assert!(proof.starts_with("proved for 2 PEs under spec"), "{name}: {proof}");
    assert_eq!(
        explored.stale_loads,
        proof.ends_with(", if the strong accesses of each thread keep their order (lint stale-load)")
    );
    explored.stale_loads
}

#[test]
fn a_proof_says_that_it_supposes_their_order() {
    for name in PAIRS {
        assert!(supposed(name), "{name}");
        assert!(!supposed(&format!("{name}_ordered")), "{name}");
    }
    for name in RIGHT {
        assert!(!supposed(name), "{name}");
    }
}

#[test]
fn a_lint_names_what_is_missed_and_the_load() {
    let [lint] = &lints(Config::pes(2), "looks")[..] else { panic!("one lint") };
    insta::assert_snapshot!(lint, @r"
    stale-load: volatile store at stale.cu:37 by PE 0 stream 0 and volatile load at stale.cu:37 by PE 1 stream 0
        PTX promises no order between a thread's strong accesses to different words, so the load can miss the first access
        better: a release of what is stored and an acquire before the load, or fence.sc in both threads if each stores before it loads
    ");
}

/// What two PEs have seen in all orders, and what else there is to say. All of them finish.
fn all_seen(name: &str, config: Config) -> (BTreeSet<Vec<u64>>, Explored) {
    let mut seen = BTreeSet::new();
    let mut simulation = Simulation::new(config).unwrap();
    let explored = simulation.explore(Explore::All { limit: 1_000 }, sees(name), |run| {
        assert!(run.is_ok(), "{name}: {}", run.verdict);
        seen.insert(run.results.iter().map(|seen| seen.expect("it is ok")).collect());
        ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete, "{name}: {explored:?}");
    (seen, explored)
}

/// Of each pair, what the two PEs see where loads find the oldest values.
const OLDEST: [(&str, &[[u64; 2]]); 7] = [
    ("looks", &[[0, 0]]),
    ("looks_for_another", &[[0, 0]]),
    ("looks_at_a_signal", &[[0, 0]]),
    ("stores", &[[0, 0]]),
    ("raises", &[[0, 0], [1, 1]]),
    ("raises_in_a_block", &[[0, 0], [0, 2], [2, 0], [2, 2]]),
    ("locks", &[[0, 0]]),
];

/// A search with the oldest values shows what loads can miss, and where they can miss nothing it shows what others show.
#[test]
fn a_search_with_the_oldest_values_shows_what_loads_can_miss() {
    assert_eq!(PAIRS, OLDEST.map(|(name, _)| name));
    for profile in [Profile::Spec, Profile::Nvlink] {
        let [newest, oldest] = [Loads::Newest, Loads::Oldest].map(|loads| Config { loads, profile, ..Config::pes(2) });
        for (name, expected) in OLDEST {
            let [(new, _), (old, explored)] = [&newest, &oldest].map(|config| all_seen(name, config.clone()));
            assert_eq!(old, expected.iter().map(|seen| seen.to_vec()).collect(), "{profile}: {name}");
            // what a lock guards lies in another PE's memory, where stores arrive late in any case
            assert_eq!(old.is_subset(&new), name == "locks", "{name}: {new:?}");
            let proof = explored.proof(&oldest);
            assert!(proof.contains("where strong loads find the oldest values that PTX allows, with"), "{proof}");
            assert!(!proof.contains("keep their order"), "{proof}");
            let ordered = format!("{name}_ordered");
            assert_eq!(all_seen(&ordered, newest.clone()).0, all_seen(&ordered, oldest.clone()).0, "{profile}: {name}");
        }
        for name in RIGHT {
            assert_eq!(all_seen(name, newest.clone()).0, all_seen(name, oldest.clone()).0, "{profile}: {name}");
        }
    }
}

/// Each ticket comes behind all tickets before it, so this many are too much to be kept.
#[test]
fn strong_accesses_that_were_not_looked_at_are_supposed_to_keep_their_order() {
    for (threads, cut) in [(64, false), (1024, true)] {
        let strict = Config { strict: true, ..Config::pes(1) };
        let program = |pe: &Pe<Sim>| {
            let (words, seen) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            run(
                pe,
                &Source::ptx("stale.ptx", STALE),
                "takes_tickets",
                &Grid::new(1, threads).collective(),
                args![&words, &seen],
            )?;
            pe.free(seen)?;
            pe.free(words)
        };
        let explored = Simulation::new(strict).unwrap().explore(Explore::random(1, 1), program, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            assert_eq!(run.verdict.lints_cut, cut);
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(explored.unwrap().stale_loads, cut);
    }
}

/// A proof with old values still supposes something where a load has found the newest value and may miss it.
#[test]
fn a_proof_with_old_values_says_what_it_supposes() {
    let oldest = Config { loads: Loads::Oldest, ..Config::pes(2) };
    for (name, supposes) in [("compares_and_swaps", true), ("looks", false)] {
        let (_, explored) = all_seen(name, oldest.clone());
        assert_eq!(explored.stale_loads, supposes, "{name}");
        assert_eq!(explored.proof(&oldest).ends_with("keep their order (lint stale-load)"), supposes, "{name}");
    }
}

/// Sequential consistency has no old values: those of a program that relies on its text are outcomes besides.
#[test]
fn old_values_are_outcomes_that_are_not_sequentially_consistent() {
    for (loads, is_robust) in [(Loads::Newest, true), (Loads::Oldest, false)] {
        let config = Config { loads, ..Config::pes(2) };
        assert_eq!(robustness(config.clone(), 1_000, sees("raises")).unwrap().is_robust(), is_robust);
        assert!(robustness(config, 1_000, sees("raises_ordered")).unwrap().is_robust());
    }
}

#[test]
fn a_loop_that_loads_an_old_value_goes_on() {
    let [newest, oldest] = [Loads::Newest, Loads::Oldest].map(|loads| Config { loads, ..Config::pes(2) });
    assert_eq!(all_seen("loads_until", newest).0, BTreeSet::from([vec![0, 1]]));
    assert_eq!(all_seen("loads_until", oldest).0, BTreeSet::from([vec![0, 2]]));
}

#[test]
fn waits_and_atomics_find_the_newest_value_and_later_loads_nothing_older() {
    for (name, result) in [("waits_by_a_call", 1), ("compares_and_swaps", 7)] {
        for loads in [Loads::Newest, Loads::Oldest] {
            assert_eq!(all_seen(name, Config { loads, ..Config::pes(2) }).0, BTreeSet::from([vec![0, result]]));
        }
    }
}

/// A search exchanges the first launch with what a host has sent before: both orders show the same.
#[test]
fn what_hosts_send_before_the_first_launch_can_be_missed() {
    let program = |pe: &Pe<Sim>| {
        let (words, seen) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().atomic_set(words.at(1), 1, 1)?;
        }
        let grid = Grid::new(1, 1).collective();
        run(pe, &Source::ptx("stale.ptx", STALE), "looks_for_a_host", &grid, args![&words, &seen])?;
        let result = pe.read_one(&seen)?;
        pe.free(seen)?;
        pe.free(words)?;
        Ok(result)
    };
    let mut simulation = Simulation::new(Config { loads: Loads::Oldest, ..Config::pes(2) }).unwrap();
    let mut replays = Simulation::new(simulation.config().clone()).unwrap();
    let explored = simulation.explore(Explore::All { limit: 1_000 }, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        assert_eq!(run.results, [Some(0), Some(0)]);
        assert_eq!(replays.reproduce(run, program).unwrap().results, run.results);
        ControlFlow::<()>::Continue(())
    });
    assert!(explored.unwrap().complete);
}

/// A search does not exchange additions that nobody can tell apart. A load that misses one of them can.
#[test]
fn the_order_of_additions_matters_to_who_may_miss_one() {
    let at_once = Config { sequential: true, ..Config::pes(3) };
    let seen = |loads| all_seen("adds_in_two_orders", Config { loads, ..at_once.clone() }).0;
    assert_eq!(seen(Loads::Newest), BTreeSet::from([vec![3, 0, 0]]));
    assert_eq!(seen(Loads::Oldest), BTreeSet::from([vec![2, 0, 0], vec![3, 0, 0]]));
}

/// An acquire of a word acquires what earlier reads of that word have read, too.
#[test]
fn who_acquires_a_word_has_acquired_what_it_has_read_there() {
    for loads in [Loads::Newest, Loads::Oldest] {
        let (seen, _) = all_seen("acquires_behind_another", Config { loads, ..Config::pes(2) });
        assert_eq!(seen, BTreeSet::from([vec![0, 7]]));
    }
}

/// In a trace, such a load names no event that it has read from.
#[test]
fn a_trace_says_which_load_has_found_an_old_value() {
    let mut simulation = Simulation::new(Config { loads: Loads::Oldest, ..Config::pes(2) }).unwrap();
    let run = simulation.run(sees("looks")).unwrap();
    let trace = simulation.reproduce(&run, sees("looks")).unwrap().trace.unwrap();
    let text = |event: &Event| event.to_json()["text"].as_str().unwrap().replace(" (block 0, thread 0)", "");
    let loads: Vec<(String, Option<String>)> = (trace.iter())
        .filter_map(|event| match event.kind {
            EventKind::Access { writes: false, by, .. } => Some((text(event), by.map(|by| text(&trace[by])))),
            _ => None,
        })
        .collect();
    let [(look, Some(store)), (old, None)] = &loads[..] else { panic!("{loads:?}") };
    assert_eq!(
        [look, store, old].map(|text| &text[..]),
        [
            "volatile load buf0+0..8 on PE 1",
            "volatile store buf0+0..8 on PE 1",
            "volatile load buf0+8..16 on PE 1, an older value"
        ]
    );
}

/// A schedule says which values its loads find, so it replays as it was.
#[test]
fn a_schedule_with_old_values_is_replayed() {
    let oldest = Config { loads: Loads::Oldest, ..Config::pes(2) };
    for explore in [Explore::random(20, 1), Explore::All { limit: 100 }] {
        let mut lines = Vec::new();
        let mut simulation = Simulation::new(oldest.clone()).unwrap();
        let explored = simulation.explore(explore, sees("looks"), |run| {
            lines.push((run.schedule.to_string(), run.results.clone()));
            ControlFlow::<()>::Continue(())
        });
        explored.unwrap();
        assert!(lines.iter().any(|(_, results)| results[1] == Some(0)), "{lines:?}");
        for (line, results) in lines {
            assert!(line.starts_with("os2.2x1.spec.p4l."), "{line}");
            let schedule: Schedule = line.parse().unwrap();
            let mut simulation = Simulation::new(schedule.configure(&Config::default())).unwrap();
            assert_eq!(simulation.replay(&schedule, sees("looks")).unwrap().results, results, "{line}");
        }
    }
    let never = Simulation::new(Config { races: Races::Ignore, ..oldest });
    assert!(never.unwrap_err().to_string().contains("Loads::Oldest needs the race detector"));
}

/// What each PE's reads find in one order of a program's accesses, and whether loads can miss something there.
type Outcome = (Vec<u64>, bool);

/// The outcomes of all orders.
fn outcomes(program: &Program, config: Config) -> std::result::Result<BTreeSet<Outcome>, String> {
    let source = Source::ptx("random.ptx", program.source());
    let (mut found, mut other) = (BTreeSet::new(), None);
    let explored = Simulation::new(config).unwrap().explore(
        Explore::All { limit: 100_000 },
        |pe| {
            let (words, seen) = (pe.alloc_zeroed::<u64>(WORDS)?, pe.alloc_zeroed::<u64>(1)?);
            run(pe, &source, "k", &Grid::new(1, 1).collective(), args![&words, &seen])?;
            let result = pe.read_one(&seen)?;
            pe.free(seen)?;
            pe.free(words)?;
            Ok(result)
        },
        |run| {
            found.insert((run.results.iter().flatten().copied().collect(), !run.verdict.lints.is_empty()));
            if !run.is_ok() && run.verdict.kind.outcome() != "lint" {
                other = Some(run.verdict.to_string());
            }
            ControlFlow::<()>::Continue(())
        },
    );
    let explored = explored.map_err(|error| error.to_string())?;
    match other {
        None if explored.complete => Ok(found),
        other => Err(other.unwrap_or_else(|| format!("{explored:?}"))),
    }
}

/// Whether a program's loads can miss something in any order of its accesses. `sequential`: where stores to another PE arrive at once.
fn misses(program: &Program, sequential: bool) -> std::result::Result<bool, String> {
    let config = Config { strict: true, sequential, ..Config::pes(program.threads.len()) };
    Ok(outcomes(program, config)?.iter().any(|(_, misses)| *misses))
}

/// A program in which PTX's axioms let a read miss a write has the lint in some schedule. One for which they allow nothing but interleavings, or other
/// orders of what is written, has it in none. Where stores to another PE arrive later, the simulator itself shows some of
/// that.
fn compare(program: &Program) -> std::result::Result<bool, String> {
    let axioms::Allowed { others, may_miss, missed, .. } = axioms::allowed(program);
    let mut found = false;
    for sequential in [true, false] {
        found = misses(program, sequential)?;
        match found {
            true if !(may_miss || others && !sequential) => {
                return Err(format!("sequential {sequential}: a lint, and PTX lets no read miss a write"));
            }
            false if sequential && !missed.is_empty() => {
                return Err(format!("no lint, and PTX lets the reads find {missed:?}"));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// A thread that has read a flag knows nothing of what its sender has done before, if nothing releases that: nor do sequential fences behind it.
#[test]
fn who_reads_one_write_knows_no_other() {
    let store = |word, value| Step::Store { word, value, release: false };
    let load = |word| Step::Load { word, acquire: false };
    let fence = Step::Fence { sc: true };
    let [x, y, z] = [0, 1, 2];
    let threads =
        vec![vec![store(x, 1), store(y, 2)], vec![load(y), fence, store(z, 3)], vec![load(z), fence, load(x)]];
    assert_eq!(compare(&Program { threads }), Ok(true));
}

/// What loads that find the oldest values show: only what the axioms allow. Returns how much of what only misses lead to is shown, and how much there is.
fn compare_oldest(program: &Program) -> std::result::Result<(usize, usize), String> {
    let axioms::Allowed { all, missed, .. } = axioms::allowed(program);
    let [all, missed] = [all, missed].map(|all| all.iter().map(|found| program.sees(found)).collect::<BTreeSet<_>>());
    let mut shown = BTreeSet::new();
    for sequential in [true, false] {
        let config = Config { loads: Loads::Oldest, sequential, ..Config::pes(program.threads.len()) };
        for (seen, _) in outcomes(program, config)? {
            if !all.contains(&seen) {
                return Err(format!("sequential {sequential}: {seen:x?} is shown, and PTX allows only {all:x?}"));
            }
            if missed.contains(&seen) {
                shown.insert(seen);
            }
        }
    }
    Ok((shown.len(), missed.len()))
}

/// A load that misses a write puts the fence before it in front of the fences of whoever has read that write.
#[test]
fn two_misses_do_not_contradict_each_other_about_fences() {
    let store = |word| Step::Store { word, value: 1, release: false };
    let load = |word| Step::Load { word, acquire: false };
    let fence = Step::Fence { sc: true };
    let [x, y, z, v] = [0, 1, 2, 3];
    for reads in [load(y), Step::Exchange { word: y, value: 2, both: false }] {
        let threads = vec![
            vec![store(y), store(z)],
            vec![load(z), store(x), store(v), fence, load(y)],
            vec![load(v), reads, fence, load(x)],
        ];
        let (shown, missed) = compare_oldest(&Program { threads }).unwrap();
        assert!(shown > 0 && shown <= missed, "{shown} of {missed}");
    }
}

/// A run does not mix old values with new ones where PTX allows both, so it does not show every outcome.
#[test]
fn the_oldest_values_are_those_that_the_axioms_allow() {
    for (programs, cases) in [(program::programs(2, 4, 2), 1_500), (program::programs(3, 3, 3), 1_000)] {
        let (shown, missed) = (Cell::new(0), Cell::new(0));
        random::check_all(programs, cases, 0x6f6c_6465, |program| {
            let (more, of) = compare_oldest(&program).map_err(TestCaseError::fail)?;
            shown.set(shown.get() + more);
            missed.set(missed.get() + of);
            Ok(())
        });
        let (shown, missed) = (shown.get(), missed.get());
        assert!(shown * 4 > missed * 3, "{shown} of {missed} outcomes are shown");
    }
}

fn compare_all(programs: impl Strategy<Value = Program>, cases: u32) {
    let found = Cell::new(0);
    let cases = random::check_all(programs, cases, 0x7374_616c, |program| {
        found.set(found.get() + u32::from(compare(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    let found = found.get();
    assert!(found > cases / 20 && found < cases - cases / 20, "{found} of {cases} programs have a lint");
}

#[test]
fn two_threads_miss_what_the_axioms_let_them_miss() {
    compare_all(program::programs(2, 4, 2), 3_000);
}

#[test]
fn three_threads_miss_what_the_axioms_let_them_miss() {
    compare_all(program::programs(3, 3, 3), 2_000);
}
