//! What a run tells that reaches the step limit: which calls its loops make, and that its end was not seen.

use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args, expect_eq};
use onesided_sim::{Config, Effort, Explore, Explored, Races, Sim, Simulation, Strategy, VerdictKind};

use crate::hand_over::run;

/// PE 0 prepares much and then counts for ever, in a loop of two calls.
fn count_for_ever(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    for _ in 0..300 {
        pe.read(&words)?;
    }
    while pe.my_pe() == 0 && pe.host().signal_fetch(words.signal(0))? == 0 {
        pe.host().atomic_inc(words.at(1), 1)?;
    }
    pe.free(words)
}

/// Whoever chose the schedule, and whether it was recorded or not: the loop is named, and not what was called before it.
#[test]
fn a_run_that_is_given_up_names_the_calls_of_its_loop() {
    let config = Config { max_steps: Some(5000), races: Races::Note, ..Config::pes(2) };
    let mut simulation = Simulation::new(config).unwrap();
    let mut verdicts = vec![simulation.run(count_for_ever).unwrap().verdict];
    let ways = [Strategy::Plain, Strategy::Pos, Strategy::Pct { depth: 3 }];
    let ways = ways.map(|strategy| Explore::Random { schedules: 3, seed: 0, strategy });
    for how in ways.into_iter().chain([Explore::All { limit: 3 }]) {
        let mut runs = Vec::new();
        let visit = |run: &onesided_sim::Run<()>| {
            runs.push(run.without_results());
            ControlFlow::Continue(())
        };
        simulation.explore(how, count_for_ever, visit).unwrap();
        verdicts.extend(runs.iter().map(|run| run.verdict.clone()));
        let recorded = simulation.reproduce(&runs[0], count_for_ever).unwrap();
        assert!(recorded.trace.is_some_and(|trace| trace.iter().all(|event| event.step <= recorded.steps)));
        verdicts.push(recorded.verdict);
    }
    assert!(verdicts.len() >= 9, "{}", verdicts.len());
    for verdict in verdicts {
        assert!(matches!(verdict.kind, VerdictKind::StepLimit { .. }), "{verdict}");
        let loops = &verdict.agents.iter().find(|agent| agent.pe == 0).unwrap().loops;
        let mut calls: Vec<&str> = loops.iter().map(|call| call.call.as_str()).collect();
        calls.sort_unstable();
        assert_eq!(calls, ["atomic_add<u64>(buf0+8..16 on PE 1, 1)", "signal_fetch(buf0+0..8)"], "{verdict}");
        let lines: Vec<u32> = loops.iter().map(|call| call.at.line()).collect();
        assert_eq!(lines[0].abs_diff(lines[1]), 1);
    }
}

/// Every PE adds three times, and returns.
fn counts_a_little(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    for _ in 0..3 {
        pe.host().atomic_inc(&words, 0)?;
    }
    pe.free(words)
}

/// A limit that is too low for the program is no sign of a loop without an end.
#[test]
fn a_loop_that_ends_soon_behind_the_limit_is_not_named() {
    let config = Config { max_steps: Some(3), ..Config::pes(2) };
    let verdict = Simulation::new(config).unwrap().run(counts_a_little).unwrap().verdict;
    assert!(matches!(verdict.kind, VerdictKind::StepLimit { steps: 3 }), "{verdict}");
    assert!(verdict.agents.iter().all(|agent| agent.loops.is_empty()), "{verdict}");
}

/// [`count_for_ever`] in a kernel.
fn count_for_ever_in_a_kernel(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<i32>(4)?;
    let source = Source::ptx("repeats.ptx", include_str!("../ptx/kernels/repeats.ptx"));
    run(pe, &source, "count_for_ever", &Grid::new(2, 2), args![&words])?;
    pe.free(words)
}

#[test]
fn a_run_that_is_given_up_names_the_calls_of_a_kernel_s_loop() {
    let config = Config { max_steps: Some(3000), races: Races::Note, ..Config::pes(2) };
    let mut simulation = Simulation::new(config).unwrap();
    let mut verdicts = vec![simulation.run(count_for_ever_in_a_kernel).unwrap().verdict];
    let visit = |run: &onesided_sim::Run<()>| {
        verdicts.push(run.verdict.clone());
        ControlFlow::Continue(())
    };
    simulation.explore(Explore::random(3, 0), count_for_ever_in_a_kernel, visit).unwrap();
    let visit = |run: &onesided_sim::Run<()>| {
        verdicts.push(run.verdict.clone());
        ControlFlow::<()>::Continue(())
    };
    simulation.explore(Explore::All { limit: 2 }, count_for_ever_in_a_kernel, visit).unwrap();
    assert!(verdicts.len() >= 6, "{}", verdicts.len());
    for verdict in verdicts {
        assert!(matches!(verdict.kind, VerdictKind::StepLimit { .. }), "{verdict}");
        let repeat: Vec<_> = verdict.agents.iter().filter(|agent| !agent.loops.is_empty()).collect();
        let [thread] = repeat[..] else { panic!("one thread goes round: {verdict}") };
        let who = thread.thread.expect("it is a thread of a kernel");
        assert_eq!((thread.pe, thread.stream, who.block, who.thread), (0, Some(0), [1, 0, 0], [1, 0, 0]), "{verdict}");
        let mut calls: Vec<(&str, u32)> =
            thread.loops.iter().map(|call| (call.call.as_str(), call.at.line())).collect();
        calls.sort_unstable();
        let expected = [("atomic_add<i32>(buf0+4..8 on PE 1, 1)", 12), ("g<i32>(buf0+0..4 on PE 1)", 11)];
        assert_eq!(calls, expected, "{verdict}");
        let said = verdict.to_string();
        let line = said.lines().find(|line| line.contains("it goes on calling")).unwrap_or_default();
        assert!(line.starts_with("  PE 0 stream 0, block 1, thread 1: "), "{said}");
        assert!(line.contains("g<i32>(buf0+0..4 on PE 1) at ") && line.contains("repeats.cu:11"), "{said}");
    }
}

/// PE 0's check fails at once. PE 1 counts for ever, or for a while.
fn fails_beside_a_counter(pe: &Pe<Sim>, rounds: u64) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 0 {
        return expect_eq(1, 2, "one");
    }
    for _ in 0..rounds {
        pe.host().atomic_inc(words.at(1), 1)?;
    }
    pe.free(words)
}

/// What the others do behind a failed check belongs to a search. One that has not seen the end of it is not complete.
#[test]
fn a_search_is_complete_only_if_the_end_behind_a_finding_was_seen() {
    for (rounds, given_up) in [(10, 0), (u64::MAX, 1)] {
        let config = Config { max_steps: Some(1000), ..Config::pes(2) };
        let mut simulation = Simulation::new(config).unwrap();
        let program = |pe: &Pe<Sim>| fails_beside_a_counter(pe, rounds);
        let visit = |run: &onesided_sim::Run<()>| {
            assert!(matches!(run.verdict.kind, VerdictKind::Failed { pe: 0, .. }), "{}", run.verdict);
            ControlFlow::Continue(())
        };
        let explored = simulation.explore(Explore::All { limit: 100 }, program, visit).unwrap();
        let seen = (explored.findings, explored.given_up, explored.complete);
        assert_eq!(seen, (explored.schedules, given_up * explored.schedules, given_up == 0));
        let proof = explored.proof(simulation.config());
        assert_eq!(proof.contains("given up at a limit"), given_up > 0, "{proof}");
    }
}

/// PE 1 writes twice without an order, and PE 0 counts for ever.
fn races_beside_a_counter(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 1 {
        pe.host().p(words.at(0), 1, 0)?;
        pe.host().p(words.at(0), 2, 0)?;
    } else {
        loop {
            pe.host().atomic_fetch_inc(words.at(1), 1)?;
        }
    }
    pe.free(words)
}

/// A race is a finding, whether or not the run ends.
#[test]
fn a_race_in_a_run_that_is_given_up_is_a_finding() {
    let config = Config { max_steps: Some(2000), ..Config::pes(2) };
    let mut simulation = Simulation::new(config.clone()).unwrap();
    let run = simulation.run(races_beside_a_counter).unwrap();
    let text = run.verdict.to_string();
    assert!(matches!(run.verdict.kind, VerdictKind::Race) && !run.is_given_up(), "{text}");
    assert!(matches!(run.verdict.given_up.as_deref(), Some(VerdictKind::StepLimit { steps: 2000 })), "{text}");
    assert!(text.starts_with("data race") && text.contains("\n  besides, step limit: given up after 2000"), "{text}");
    assert!(text.contains("it goes on calling atomic_fetch_add<u64>"), "{text}");
    assert_eq!(simulation.reproduce(&run, races_beside_a_counter).unwrap().verdict.to_string(), text);
    // what explains it would take as long, and show no end either
    assert!(simulation.minimize(&run, Effort::LITTLE, races_beside_a_counter).unwrap().is_none());
    assert!(simulation.critical(&run, Effort::LITTLE, races_beside_a_counter).unwrap().is_none());
    assert_eq!(simulation.fix(&run, Effort::LITTLE, races_beside_a_counter).unwrap().tried, 0);
    let witness = simulation.witness(&run.verdict.races[0], Effort::LITTLE, races_beside_a_counter).unwrap();
    assert!(witness.run.is_none() && witness.other.is_none());
    for how in [Explore::random(5, 0), Explore::All { limit: 5 }] {
        let explored = simulation.explore(how, races_beside_a_counter, |_| ControlFlow::Continue(())).unwrap();
        let Explored { schedules, findings, given_up, complete, .. } = explored;
        assert!(findings > 0 && given_up == schedules && !complete, "{explored:?}");
        let proof = explored.proof(simulation.config());
        let at_a_limit = format!("{given_up} given up at a limit");
        assert!(proof.starts_with("fails for 2 PEs") && proof.contains(&at_a_limit), "{proof}");
    }
    let noted = Config { races: Races::Note, ..config };
    let run = Simulation::new(noted).unwrap().run(races_beside_a_counter).unwrap();
    assert!(run.is_given_up() && run.verdict.given_up.is_none(), "{}", run.verdict);
}

/// Every PE takes a number and writes back the next one, until it has taken 2.
fn waits_for_its_own_set(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    loop {
        let number = pe.host().atomic_fetch(&words, 0)?;
        pe.host().atomic_set(&words, number + 1, 0)?;
        if number >= 2 {
            break;
        }
    }
    pe.free(words)
}

/// A search lets what is in flight arrive at last, so such a loop ends.
#[test]
fn a_search_delivers_what_a_loop_waits_for() {
    let mut simulation = Simulation::new(Config { max_steps: Some(20_000), ..Config::pes(2) }).unwrap();
    let visit = |run: &onesided_sim::Run<()>| {
        assert!(run.is_ok(), "{} {}", run.steps, run.verdict);
        ControlFlow::Continue(())
    };
    let explored = simulation.explore(Explore::All { limit: 20 }, waits_for_its_own_set, visit).unwrap();
    assert_eq!((explored.schedules, explored.redundant), (20, 0));
}

/// PE 1 writes 1 and then 2 without an order. PE 0 waits for the 2, which may never be there for long enough.
fn waits_for_the_last(pe: &Pe<Sim>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 1 {
        pe.host().p(&word, 1, 0)?;
        pe.host().p(&word, 2, 0)?;
    }
    while pe.my_pe() == 0 && pe.read_one(&word)? != 2 {}
    pe.free(word)
}

/// Where the 1 comes last, the loop has no end. Nobody knows what PE 0 would have returned, so that is no other result.
#[test]
fn a_run_that_is_given_up_is_no_other_result() {
    let config = Config { max_steps: Some(1000), ..Config::pes(2) };
    let mut simulation = Simulation::new(config).unwrap();
    let run = simulation.run(waits_for_the_last).unwrap();
    assert!(run.verdict.given_up.is_none(), "{}", run.verdict);
    let mut given_up = 0;
    let visit = |run: &onesided_sim::Run<()>| {
        given_up += u64::from(run.verdict.given_up.is_some());
        ControlFlow::Continue(())
    };
    simulation.explore(Explore::random(200, 0), waits_for_the_last, visit).unwrap();
    assert!(given_up > 0);
    for race in &run.verdict.races {
        let witness = simulation.witness(race, Effort::MUCH, waits_for_the_last).unwrap();
        assert!(witness.run.is_none() && witness.other.is_none() && witness.tried > 100, "{}", witness.tried);
    }
}
