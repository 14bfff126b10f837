//! A schedule is a value: every visited run comes back from its text, and nothing else is run in its place.

use std::cell::Cell;
use std::ops::ControlFlow;

use onesided::{Cmp, ErrorKind, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Choices, Config, Event, Explore, Profile, Run, Schedule, Sim, Simulation, Verdict};

/// A message without a fence, and a receiver that checks it: finished or failed.
fn stale(pe: &Pe<Sim>) -> Result<u64> {
    let x = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = 0;
    if pe.my_pe() == 0 {
        pe.host().p(x.at(0), 7, 1)?;
        pe.host().signal_op(x.signal(1), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(x.signal(1), Cmp::Eq, 1)?;
        saw = pe.read(x.at(0))?[0];
        expect_eq(pe.host().signal_fetch(x.signal(1))? * saw, 7, "the product")?;
    }
    pe.free(x)?;
    Ok(saw)
}

/// Two signals, and a wait for the first that may miss it: finished or deadlock.
fn missed(pe: &Pe<Sim>) -> Result<u64> {
    let x = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 1)?;
        pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 1)?;
    } else {
        pe.read(x.at(1))?;
        pe.host().signal_wait_until(x.signal(0), Cmp::Eq, 1)?;
    }
    pe.free(x)?;
    Ok(0)
}

/// An error where two puts arrive in the wrong order; streams, bulk transfers and a collective besides.
fn overtaken(pe: &Pe<Sim>) -> Result<u64> {
    let (x, src) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(3)?);
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2, 3])?;
        pe.on(&stream).put_nbi(&x, &src, 1)?;
        pe.on(&stream).p(x.at(1), 9, 1)?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let saw = pe.read(&x)?;
    expect_eq(pe.my_pe() == 1 && saw[1] == 2, false, "the bulk put arrived last")?;
    pe.host().broadcast(pe.world(), &src, &x, 0)?;
    pe.free(src)?;
    pe.free(x)?;
    Ok(saw[1])
}

fn json(trace: &[Event]) -> Vec<String> {
    trace.iter().map(|event| event.to_json().to_string()).collect()
}

/// The verdict, without what is told of recorded runs only.
fn said<T>(run: &Run<T>) -> String {
    Verdict { reads: Vec::new(), ..run.verdict.clone() }.to_string()
}

/// Replays every run that `how` visits, from its text, and compares everything.
fn every_run_comes_back(config: &Config, how: Explore, program: fn(&Pe<Sim>) -> Result<u64>) -> usize {
    let mut visited = Vec::new();
    let explored = Simulation::new(config.clone()).unwrap().explore(how, program, |run| {
        visited.push((run.schedule.to_string(), said(run), run.results.clone(), run.steps));
        ControlFlow::Continue(())
    });
    explored.unwrap();
    // another simulation, which has run nothing before, and one for all
    let mut one = Simulation::new(config.clone()).unwrap();
    for (text, verdict, results, steps) in &visited {
        let schedule: Schedule = text.parse().unwrap();
        let first = one.replay(&schedule, program).unwrap();
        let second = Simulation::new(config.clone()).unwrap().replay(&schedule, program).unwrap();
        for run in [&first, &second] {
            assert_eq!((&said(run), &run.results, &run.steps), (verdict, results, steps), "{text}");
        }
        let [first_trace, second_trace] = [&first, &second].map(|run| json(run.trace.as_deref().unwrap()));
        assert_eq!(first_trace, second_trace, "{text}");
        assert!(!first_trace.is_empty());
        // recorded, it has a fingerprint; and with that it replays too
        assert!(first.schedule.fingerprint.is_some());
        let text = first.schedule.to_string();
        let third = one.replay(&text.parse().unwrap(), program).unwrap();
        assert_eq!((said(&third), third.schedule.to_string()), (verdict.clone(), text));
    }
    let mut endings: Vec<&String> = visited.iter().map(|(_, verdict, ..)| verdict).collect();
    endings.sort();
    endings.dedup();
    endings.len()
}

#[test]
fn every_run_of_every_search_replays_to_the_same_verdict_results_and_trace() {
    for program in [stale, missed, overtaken] {
        for profile in Profile::ALL {
            let config = Config { profile, ..Config::pes(2) };
            let all = every_run_comes_back(&config, Explore::All { limit: 5000 }, program);
            let random = every_run_comes_back(&config, Explore::random(50, 3), program);
            if profile == Profile::Spec {
                assert!(all > 1 && random > 1, "{all} and {random} ways to end");
            }
        }
    }
}

#[test]
fn a_run_in_order_replays_too() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(stale).unwrap();
    assert_eq!(run.schedule.choices, Choices::InOrder);
    assert!(run.trace.is_none());
    let recorded = simulation.reproduce(&run, stale).unwrap();
    let again = simulation.replay(&recorded.schedule, stale).unwrap();
    assert_eq!(json(&recorded.trace.unwrap()), json(&again.trace.unwrap()));
    assert_eq!(run.results, again.results);
}

#[test]
fn schedules_round_trip_through_text_with_every_part() {
    let config = Config { pes: 8, nodes: 2, gpus: Some(4), profile: Profile::Nvlink, pieces: 2, ..Config::default() };
    let mut simulation = Simulation::new(config).unwrap();
    let program = |pe: &Pe<Sim>| pe.host().barrier_all();
    let run = simulation.run(program).unwrap();
    let recorded = simulation.reproduce(&run, program).unwrap().schedule;
    let text = recorded.to_string();
    assert!(text.starts_with("os2.8x2g4.nvlink.p2.o."), "{text}");
    assert_eq!(text.parse::<Schedule>().unwrap(), recorded);
    let configured = recorded.configure(&Config { heap: 4096, ..Config::default() });
    assert_eq!((configured.pes, configured.nodes, configured.gpus, configured.heap), (8, 2, Some(4), 4096));
    let random: Schedule = "os2.8x2g4.nvlink.p2.r1f.none".parse().unwrap();
    assert_eq!(simulation.replay(&random, program).unwrap().schedule.choices, Choices::Seed(0x1f));
}

/// The recorded schedule of a run of `stale` that fails.
fn failing() -> Schedule {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let mut found = None;
    let all = Explore::All { limit: 100 };
    let explored = simulation.explore(all, stale, |run| match &run.schedule.choices {
        Choices::Picks(picks) if !run.is_ok() && !picks.is_empty() => {
            found = Some(run.schedule.clone());
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    assert!(!explored.unwrap().complete);
    simulation.replay(&found.unwrap(), stale).unwrap().schedule
}

/// The message of the refusal.
fn refused<T>(result: Result<Run<T>>) -> String {
    let error = result.err().expect("the schedule is refused");
    assert_eq!((error.kind(), error.call()), (ErrorKind::InvalidArgument, "replay"));
    error.message().to_string()
}

#[test]
fn a_schedule_of_another_cluster_or_profile_is_refused() {
    let schedule = failing();
    let others = [
        Config::pes(3),
        Config { nodes: 2, ..Config::pes(2) },
        Config { gpus: Some(1), ..Config::pes(2) },
        Config { profile: Profile::Nvlink, ..Config::pes(2) },
        Config { pieces: 1, ..Config::pes(2) },
    ];
    for config in others {
        let mut simulation = Simulation::new(config.clone()).unwrap();
        let message = refused(simulation.replay(&schedule, stale));
        assert!(message.contains("another cluster or profile"), "{message}");
        // and runs where its own cluster is
        let mut simulation = Simulation::new(schedule.configure(&config)).unwrap();
        assert!(!simulation.replay(&schedule, stale).unwrap().is_ok());
    }
}

#[test]
fn a_schedule_of_another_program_is_refused() {
    let schedule = failing();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    // other choices
    let message = refused(simulation.replay(&schedule, |pe| pe.host().barrier_all()));
    assert!(message.contains("do not fit"), "{message}");
    // the same choices, and something else besides
    let message = refused(simulation.replay(&schedule, |pe| pe.stream().and_then(|_| stale(pe))));
    assert!(message.contains("different program, or another version of this one"), "{message}");
    // picks that there are not
    let picks = |picks: Vec<u32>| Schedule { choices: Choices::Picks(picks), ..schedule.clone() };
    for wrong in [picks(vec![77]), picks(vec![0; 1000])] {
        let message = refused(simulation.replay(&wrong, stale));
        assert!(message.contains("do not fit"), "{message}");
    }
    // another fingerprint
    let wrong = Schedule { fingerprint: schedule.fingerprint.map(|hash| hash ^ 2), ..schedule.clone() };
    assert!(refused(simulation.replay(&wrong, stale)).contains("different program"));
    assert!(simulation.replay(&schedule, stale).is_ok());
}

#[test]
fn a_schedule_with_other_arguments_is_refused() {
    let given = |text| Config::pes(2).with_arguments(text);
    let mut simulation = Simulation::new(given("--rows 4")).unwrap();
    let run = simulation.run(stale).unwrap();
    let recorded = simulation.reproduce(&run, stale).unwrap().schedule;
    assert!(recorded.to_string().contains(&format!(".p4.a{:08x}.o.", recorded.arguments)), "{recorded}");
    assert!(simulation.replay(&recorded, stale).is_ok());
    for other in [given("--rows 5"), given("")] {
        let message = refused(Simulation::new(recorded.configure(&other)).unwrap().replay(&recorded, stale));
        assert!(message.contains("with other arguments"), "{message}");
    }
}

/// Where a run begins and ends is no line of the program, and none of the simulator's, which is a path of another machine.
#[test]
fn a_trace_names_lines_of_the_program_only() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(overtaken).unwrap();
    let trace = simulation.reproduce(&run, overtaken).unwrap().trace.unwrap();
    let calls = trace.iter().filter(|event| !event.implied);
    let places: Vec<String> = calls.map(|event| event.to_json()["at"].as_str().unwrap().to_string()).collect();
    let elsewhere = places.iter().filter(|place| !place.contains("tests/replay.rs:"));
    assert_eq!(
        elsewhere.collect::<Vec<_>>(),
        ["the start of the run", "the start of the run", "the end of the run", "the end of the run"]
    );
}

/// PE `who` loads from PE 0. A load is a choice, so everything else has happened by then: only who loads tells the runs apart.
fn load_by(who: usize) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == who {
            pe.peer(&x, 0)?.expect("one node").read()?;
        }
        pe.free(x)
    }
}

/// Every PE puts to PE 0, on this one of two streams.
fn put_on(which: usize) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        let stream = &[pe.stream()?, pe.stream()?][which];
        pe.on(stream).p(&x, 1, 0)?;
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
        pe.free(x)
    }
}

/// Checks that a schedule of `one` is none of `other`.
fn tell_apart(one: impl Fn(&Pe<Sim>) -> Result<()>, other: impl Fn(&Pe<Sim>) -> Result<()>) {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let mut first = None;
    let explored = simulation.explore(Explore::All { limit: 100 }, &one, |run| {
        first = Some(run.without_results());
        ControlFlow::Break(())
    });
    explored.unwrap();
    let schedule = simulation.reproduce(&first.expect("there is a run"), &one).unwrap().schedule;
    simulation.replay(&schedule, &one).unwrap();
    let message = refused(simulation.replay(&schedule, &other));
    assert!(message.contains("different program"), "{message}");
}

#[test]
fn a_schedule_of_the_same_calls_by_others_is_refused() {
    tell_apart(load_by(0), load_by(1));
    tell_apart(put_on(0), put_on(1));
}

#[test]
fn moving_lines_does_not_invalidate_a_schedule() {
    let program = |pe: &Pe<Sim>| pe.host().barrier_all();
    let moved = |pe: &Pe<Sim>| {
        pe.host() //
            .barrier_all()
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(program).unwrap();
    let recorded = simulation.reproduce(&run, program).unwrap();
    assert!(simulation.replay(&recorded.schedule, moved).is_ok());
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    let traces = |seed: u64| {
        let schedule: Schedule = format!("os2.2x1.spec.p4.r{seed:x}.none").parse().unwrap();
        let run = Simulation::new(Config::pes(2)).unwrap().replay(&schedule, overtaken).unwrap();
        json(run.trace.as_deref().unwrap())
    };
    let first: Vec<_> = (0..20).map(traces).collect();
    let second: Vec<_> = (0..20).map(traces).collect();
    assert_eq!(first, second);
    let mut different = first;
    different.sort();
    different.dedup();
    assert!(different.len() > 5, "seeds differ in what they choose: {}", different.len());
}

/// One event, as it stands in a trace: names and order of the fields are read by others.
#[test]
fn an_event_as_json() {
    let program = |pe: &Pe<Sim>| pe.host().barrier_all();
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let run = simulation.run(program).unwrap();
    let trace = simulation.reproduce(&run, program).unwrap().trace.unwrap();
    let barrier = trace.iter().find(|event| event.op().is_some()).unwrap().to_json();
    let line = barrier["at"].as_str().unwrap();
    assert!(line.contains("replay.rs:"), "{line}");
    assert_eq!((&barrier["event"], &barrier["op"], &barrier["pe"]), (&"op".into(), &"barrier".into(), &0.into()));
    assert_eq!((&barrier["stream"], &barrier["text"]), (&serde_json::Value::Null, &"barrier(TEAM_WORLD)".into()));
}

/// What a vector wait compares with lies in the host's memory, and stands in the trace all the same.
#[test]
fn a_trace_shows_what_a_wait_compares_with() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<i32>(2)?;
        let stream = pe.stream()?;
        for on in [&*pe.host(), &pe.on(&stream)] {
            on.wait_until_all_vector(&words, None, Cmp::Ge, &[0, -1])?;
        }
        pe.free(words)
    };
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let run = simulation.run(program).unwrap();
    let trace = simulation.reproduce(&run, program).unwrap().trace.unwrap();
    let wait = "wait_until<i32>(buf0+0..8 >= a value each): [0, 4294967295]";
    let texts: Vec<String> = trace
        .iter()
        .filter(|event| event.op().is_some_and(|op| op.name() == "wait_until"))
        .map(|event| event.to_json()["text"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(texts, [wait, &format!("on stream 0: {wait}"), wait]);
}

#[test]
fn a_program_that_is_not_deterministic_is_reported() {
    let runs = Cell::new(0);
    // every run has one put more to the same word: other choices at the same place
    let growing = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            runs.set(runs.get() + 1);
            (0..=runs.get()).try_for_each(|value| pe.host().p(&x, value, 1))?;
        }
        pe.free(x)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let error = simulation.explore(Explore::All { limit: 100 }, growing, |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!((error.kind(), error.call()), (ErrorKind::WrongResult, "explore"));
    assert!(error.message().contains("not deterministic"), "{error}");

    // a run that does not come back
    runs.set(0);
    let flipping = |pe: &Pe<Sim>| {
        runs.set(runs.get() + 1);
        expect_eq(runs.get() % 2, 1, "the number of this run").and_then(|()| pe.host().barrier_all())
    };
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let run = simulation.run(flipping).unwrap();
    assert!(run.is_ok());
    let error = simulation.reproduce(&run, flipping).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongResult);
    let message = error.message();
    assert!(message.contains("ended with finished after") && message.contains("then with failed"), "{message}");
}
