//! What explains a finding: the weakest change that repairs it, found by trying.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Edit, Effort, Explore, Fix, Fixes, Ordering, Profile, Run, Shown, Sim, Simulation};

/// The line of this file that has a mark.
fn line(mark: &str) -> u32 {
    let text = include_str!("explain.rs");
    let found = text.lines().zip(1..).find(|(line, _)| line.ends_with(&format!("// {mark}")));
    found.map(|(_, number)| number).unwrap_or_else(|| panic!("no line is marked {mark}"))
}

/// The first finding of a program, in order or at random, recorded.
fn finding(config: &Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> (Simulation, Run<()>) {
    let mut simulation = Simulation::new(config.clone()).unwrap();
    let first = simulation.run(&program).unwrap();
    let mut found = (!first.is_ok()).then_some(first);
    if found.is_none() {
        let explored = simulation.explore(Explore::random(2000, 0), &program, |run| match run.is_ok() {
            true => std::ops::ControlFlow::Continue(()),
            false => {
                found = Some(run.without_results());
                std::ops::ControlFlow::Break(())
            }
        });
        explored.unwrap();
    }
    let run = simulation.reproduce(&found.expect("something is wrong"), &program).unwrap();
    (simulation, run)
}

fn fixes(config: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Fixes {
    let (simulation, run) = finding(&config.into(), &program);
    simulation.fix(&run, Effort::LITTLE, &program).unwrap()
}

#[track_caller]
fn fix(config: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Fix {
    fixes(config, program).fix.expect("a fix")
}

/// Calls, each with the line behind which it goes and whether it is on the stream.
fn edits(fix: &Fix) -> Vec<(&'static str, u32, bool)> {
    let edit = |edit: &Edit| match *edit {
        Edit::Insert { call, after, on_stream } => (call.name(), after.line(), on_stream),
        Edit::PutSignal { put, .. } => ("put_signal", put.line(), false),
        Edit::Meet { after, .. } => ("meet", after.line(), false),
        Edit::Synchronize { after, .. } => ("synchronize", after.line(), false),
        Edit::InKernel { .. } | Edit::Replace { .. } => unreachable!("it has no kernels, and a fix takes nothing away"),
    };
    fix.edits.iter().map(edit).collect()
}

fn is_proved(fix: &Fix) -> bool {
    matches!(fix.shown, Shown::Proved { classes: 1.., .. })
}

fn flag_by_put(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?; // data
        pe.host().p(&flag, 1, 1)?; // flag
    } else {
        pe.host().wait_until(&flag, Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}

#[test]
fn a_race_gets_the_weakest_call_and_its_line() {
    let fix = fix(2, flag_by_put);
    assert_eq!(edits(&fix), [("fence", line("data"), false)]);
    assert_eq!(fix.before[0].map(|at| at.line()), Some(line("flag")));
    assert!(is_proved(&fix) && fix.is_weakest);
    assert!(
        fix.to_string().ends_with(&format!("explain.rs:{}: proved; nothing weaker is enough", line("data"))),
        "{fix}"
    );
}

/// In each round one PE writes what the next one gets, and the others do neither.
fn get_without_barrier(pe: &Pe<impl Backend>, rounds: u64) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    for round in 1..=rounds {
        let mut found = round;
        if pe.my_pe() == 0 {
            pe.write(&x, &[round])?; // written
        }
        if pe.my_pe() == 1 {
            found = pe.host().g(&x, 0)?; // got
        }
        pe.host().sync_all()?; // round
        expect_eq(found, round, "the value")?;
    }
    pe.free(x)
}

#[test]
fn a_barrier_between_calls_of_different_pes_is_where_all_come() {
    for (pes, rounds) in [(2, 1), (3, 1), (4, 3)] {
        let program = |pe: &Pe<Sim>| get_without_barrier(pe, rounds);
        let fix = fix(pes, program);
        assert_eq!(edits(&fix), [("meet", line("written"), false)], "{pes} PEs: {fix}");
        assert_eq!(fix.before[0].map(|at| at.line()), Some(line("got")));
        assert!(is_proved(&fix), "{fix}");
        let text = fix.to_string();
        let lines = format!(
            "explain.rs:{} and backend-sim/tests/explain.rs:{}, where all PEs come",
            line("written"),
            line("got")
        );
        assert!(text.starts_with("insert `barrier_all` between ") && text.contains(&lines), "{text}");
    }
}

/// Both updates are atomic: the second barrier's epoch can arrive first, and is overwritten.
fn barrier_without_fence(pe: &Pe<impl Backend>) -> Result<()> {
    let arrived = pe.alloc_zeroed::<u64>(2)?;
    for epoch in 1..=2 {
        pe.host().atomic_set(arrived.at(pe.my_pe()), epoch, 1 - pe.my_pe())?; // epoch
        pe.host().wait_until(arrived.at(1 - pe.my_pe()), Cmp::Ge, epoch)?;
    }
    pe.free(arrived)
}

#[test]
fn a_deadlock_by_overtaking_gets_a_fence() {
    let fix = fix(2, barrier_without_fence);
    assert_eq!(edits(&fix), [("fence", line("epoch"), false)]);
    assert!(is_proved(&fix) && fix.is_weakest);
}

/// The host signals what a stream puts.
fn on_a_stream(pe: &Pe<impl Backend>, with_quiet: bool) -> Result<()> {
    let (src, dst, flag) = (pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).put_nbi(&dst, &src, 1)?; // enqueued
        if with_quiet {
            pe.on(&stream).quiet()?; // quiet
        }
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.on(&stream).quiet()?;
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(dst)?;
    pe.free(src)
}

#[test]
fn what_a_stream_transfers_for_others_needs_two_calls() {
    let both = fix(2, |pe| on_a_stream(pe, false));
    let line = |mark| (line(mark), true);
    let wanted = |call, (line, on_stream)| (call, line, on_stream);
    assert_eq!(edits(&both), [wanted("quiet", line("enqueued")), wanted("synchronize", line("enqueued"))]);
    assert!(is_proved(&both));
    assert!(both.to_string().starts_with("insert `quiet` on the stream after "), "{both}");
    let one = fix(2, |pe| on_a_stream(pe, true));
    assert_eq!(edits(&one), [wanted("synchronize", line("quiet"))]);
}

/// A stream waits for a signal that each PE sends only then; and its word is freed at once.
fn freed_under_a_stream(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let stream = pe.stream()?;
    pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // stream waits
    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1 - pe.my_pe())?; // sent to streams
    pe.free(flag) // freed
}

/// Behind the stream's wait, `synchronize` would wait for ever: the host has not sent yet.
#[test]
fn a_stream_is_synchronized_when_it_can_end() {
    let late = fix(2, freed_under_a_stream);
    assert_eq!(edits(&late), [("synchronize", line("sent to streams"), false)]);
    assert_eq!(late.before[0].map(|at| at.line()), Some(line("freed")));
    assert!(is_proved(&late) && late.is_weakest, "{late}");
    let of = format!(
        "explain.rs:{}, of the stream of backend-sim/tests/explain.rs:{}: proved",
        line("sent to streams"),
        line("stream waits")
    );
    assert!(late.to_string().contains(&of), "{late}");
}

/// Each PE sends two messages to the other, and neither is ordered before its flag.
fn two_messages(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flags) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?);
    let peer = 1 - pe.my_pe();
    pe.host().p(data.at(0), 7, peer)?; // one message
    pe.host().p(flags.at(0), 1, peer)?;
    pe.host().p(data.at(1), 8, peer)?; // another message
    pe.host().p(flags.at(1), 1, peer)?; // both sent
    for (number, wanted) in [7, 8].into_iter().enumerate() {
        pe.host().wait_until(flags.at(number), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(data.at(number))?, wanted, "a message")?;
    }
    pe.free(flags)?;
    pe.free(data)
}

/// One barrier behind the last call would do, too. It waits for everybody, and a fence for nobody.
#[test]
fn two_calls_of_a_pe_come_before_a_barrier() {
    let both = fix(2, two_messages);
    assert_eq!(edits(&both), [("fence", line("one message"), false), ("fence", line("another message"), false)]);
    assert!(is_proved(&both) && both.is_weakest, "{both}");
}

fn source_changed(pe: &Pe<impl Backend>) -> Result<()> {
    let (src, dst) = (pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&src, &[7])?;
    if pe.my_pe() == 0 {
        pe.host().put_nbi(&dst, &src, 1)?; // source
        pe.write(&src, &[8])?;
    }
    pe.host().barrier_all()?;
    pe.free(dst)?;
    pe.free(src)
}

/// Under nvlink a fence would do too. It completes there, so a flush is the weaker call.
#[test]
fn the_weakest_call_is_that_of_the_profile() {
    for profile in Profile::ALL {
        let fix = fix(Config { profile, ..Config::pes(2) }, source_changed);
        assert_eq!(edits(&fix), [("flush", line("source"), false)], "{profile}");
    }
}

/// Only PE 0 makes the put, and both read. Behind the allocation a barrier is too early, and behind the read too late.
fn nobody_waits(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?; // only one
    }
    let found = pe.read_one(&data)?; // read
    pe.host().barrier_all()?;
    let wanted = if pe.my_pe() == 0 { [0, 0] } else { [0, 7] };
    expect_eq(wanted.contains(&found), true, "what it finds")?;
    pe.free(data)
}

#[test]
fn a_barrier_goes_where_all_pes_come_by() {
    let between = fix(2, nobody_waits);
    assert_eq!(edits(&between), [("meet", line("only one"), false)]);
    assert_eq!(between.before[0].map(|at| at.line()), Some(line("read")));
    assert!(is_proved(&between) && between.is_weakest && !between.sync_is_enough, "a sync delivers no put: {between}");
    let nothing = fixes(2, |pe| nobody_waits(pe).and_then(|()| expect_eq(pe.n_pes(), 3, "the PEs")));
    assert!(nothing.fix.is_none() && nothing.tried >= 4, "{nothing:?}");
    let all = fix(2, |pe| {
        let data = pe.alloc_zeroed::<u32>(1)?;
        pe.host().p(&data, 7, 1 - pe.my_pe())?; // both
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
        pe.free(data)
    });
    assert_eq!(edits(&all), [("barrier_all", line("both"), false)]);
}

#[test]
fn what_no_order_cures_gets_no_fix() {
    let leak = fixes(2, |pe| pe.alloc::<u32>(1).map(std::mem::forget));
    assert_eq!((leak.fix, leak.tried), (None, 0));
    let never = fixes(2, |pe| {
        let flag = pe.alloc_zeroed::<u64>(1)?;
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        pe.free(flag)
    });
    assert!(never.fix.is_none() && never.tried > 0, "{never:?}");
    let (simulation, run) = finding(&Config::pes(2), flag_by_put);
    let without = simulation.fix(&run, Effort { schedules: 1, steps: 0 }, flag_by_put).unwrap();
    assert_eq!((without.fix, without.tried), (None, 0));
}

/// What is not proved is said to be not proved.
#[test]
fn a_bounded_trial_is_no_proof() {
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        for _ in 0..3 {
            pe.host().atomic_fetch_inc(&counter, 0)?; // 1,680 orders
        }
        pe.free(counter)?;
        flag_by_put(pe)
    };
    let (simulation, run) = finding(&Config::pes(2), program);
    let little = Effort { schedules: 5, ..Effort::LITTLE };
    let fix = simulation.fix(&run, little, program).unwrap().fix.unwrap();
    assert!(matches!(fix.shown, Shown::NothingFound { schedules: 605 }), "{fix:?}");
    assert!(fix.to_string().contains(": nothing wrong in 605 schedules, but not proved"), "{fix}");
}

fn by_hand(pe: &Pe<impl Backend>, between: bool) -> Result<()> {
    let (src, dst, flag) = (pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    if pe.my_pe() == 0 {
        pe.host().put(&dst, &src, 1)?; // put
        if between {
            pe.write(&src, &[8])?;
        }
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?; // signal
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(dst)?;
    pe.free(src)
}

/// A put and a signal become one call where nothing stands between them, and nothing is lost where something does.
#[test]
fn a_put_and_its_signal_become_one() {
    let (_, run) = finding(&Config::pes(2), |pe| by_hand(pe, false));
    let at = |mark: &str| {
        let events = run.trace.iter().flatten().filter(|event| event.op().is_some());
        events.map(|event| event.at).find(|at| at.line() == line(mark)).unwrap()
    };
    let edits = vec![Edit::PutSignal { put: at("put"), signal: at("signal") }];
    let explored = |between| {
        let config = Config { edits: edits.clone(), ..Config::pes(2) };
        let mut findings = Vec::new();
        let explored = Simulation::new(config).unwrap().explore(
            Explore::All { limit: 1000 },
            |pe| by_hand(pe, between),
            |run| {
                findings.extend((!run.is_ok()).then(|| run.verdict.kind.outcome()));
                std::ops::ControlFlow::Continue(())
            },
        );
        (explored.unwrap().complete, findings)
    };
    assert_eq!(explored(false), (true, Vec::new()));
    let (complete, apart) = explored(true);
    assert!(complete && !apart.is_empty() && apart.iter().all(|end| end != "deadlock"), "{apart:?}");
}

/// A call that is left out, and one that is made weaker.
#[test]
fn a_call_is_replaced() {
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let data = pe.alloc_zeroed::<u32>(1)?;
        pe.host().p(&data, 7, 1 - pe.my_pe())?;
        pe.host().barrier_all()?; // barrier
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
        pe.free(data)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(program).unwrap();
    let trace = simulation.reproduce(&run, program).unwrap().trace.unwrap();
    let at = trace.iter().map(|event| event.at).find(|at| at.line() == line("barrier")).unwrap();
    let outcome = |by| {
        let config = Config { edits: vec![Edit::Replace { at, by }], ..Config::pes(2) };
        Simulation::new(config).unwrap().run(program).unwrap().verdict.kind.outcome()
    };
    assert_eq!(outcome(None), "failed: wrong result");
    assert_eq!(
        [Ordering::Sync, Ordering::Quiet, Ordering::Barrier].map(|by| outcome(Some(by)) == "finished"),
        [false, false, true]
    );
}

/// What PE 0 sends to PE 1 is in the way of nothing; of the two signals the later one must come last.
fn overtaken(pe: &Pe<impl Backend>, noise: usize) -> Result<()> {
    let (word, data) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(16)?);
    if pe.my_pe() == 0 {
        for i in 0..noise {
            pe.host().p(data.at(i), i as u64, 1)?;
        }
        pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 1)?; // one
        pe.host().signal_op(word.signal(0), 2, SignalOp::Set, 1)?; // two
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.host().signal_fetch(word.signal(0))?, 2, "the last signal")?;
    }
    pe.free(data)?;
    pe.free(word)
}

/// Text without the path of this file, with the marks of its lines.
fn marked(text: &str, marks: &[&str]) -> String {
    let text = text.replace("backend-sim/tests/explain.rs:", "");
    marks.iter().fold(text, |text, mark| text.replace(&line(mark).to_string(), mark))
}

#[test]
fn a_schedule_is_the_one_in_order_with_few_exceptions() {
    let program = |pe: &Pe<Sim>| overtaken(pe, 12);
    for how in [Explore::random(1000, 7), Explore::All { limit: 1000 }] {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let mut found = None;
        let explored = simulation.explore(how, program, |run| {
            found = (!run.is_ok()).then(|| run.without_results());
            if found.is_some() { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        });
        explored.unwrap();
        let minimized = simulation.minimize(&found.unwrap(), Effort::LITTLE, program).unwrap().unwrap();
        let [[late, after]] = &minimized.exceptions[..] else { panic!("{how:?}: {:?}", minimized.exceptions) };
        let marks = ["one", "two"];
        assert_eq!(marked(late, &marks), "the signal of signal_op at one by PE 0 to PE 1", "{how:?}");
        assert_eq!(marked(after, &marks), "the signal of signal_op at two by PE 0 to PE 1", "{how:?}");

        // its text leads to the same end, also where the source has moved
        let text = minimized.run.schedule.to_string();
        assert!(text.starts_with("os2.2x1.spec.p4.xt") && text.len() < 60, "{text}");
        let again = simulation.replay(&text.parse().unwrap(), |pe: &Pe<Sim>| overtaken(pe, 12)).unwrap();
        assert_eq!(again.verdict.kind.outcome(), "failed: wrong result");
        // with fewer puts it is another program; without a fingerprint the exceptions tell
        let other = simulation.replay(&text.parse().unwrap(), |pe: &Pe<Sim>| overtaken(pe, 11)).unwrap_err();
        assert!(other.message().contains("was recorded from a different program"), "{other}");
        let schedule = onesided_sim::Schedule { fingerprint: None, ..text.parse().unwrap() };
        let other = simulation.replay(&schedule, |pe: &Pe<Sim>| overtaken(pe, 3)).unwrap_err();
        assert!(other.message().contains("its exceptions do not fit"), "{other}");
    }
}

#[test]
fn what_fails_in_order_has_nothing_to_minimize() {
    let (simulation, run) = finding(&Config::pes(2), flag_by_put);
    assert!(simulation.minimize(&run, Effort::LITTLE, flag_by_put).unwrap().is_none());
}

/// Two writers of one word: of the same value, or of two.
fn two_writers(pe: &Pe<impl Backend>, same: bool) -> Result<u32> {
    let word = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() > 0 {
        let value = if same { 7 } else { pe.my_pe() as u32 };
        pe.host().p(&word, value, 0)?; // writers
    }
    pe.host().barrier_all()?;
    let found = pe.read_one(&word)?;
    pe.free(word)?;
    Ok(found)
}

#[test]
fn a_race_matters_if_it_changes_a_result() {
    let witness = |same: bool| {
        let program = |pe: &Pe<Sim>| two_writers(pe, same);
        let mut simulation = Simulation::new(Config::pes(3)).unwrap();
        let run = simulation.run(program).unwrap();
        simulation.witness(&run.verdict.races[0], Effort::LITTLE, program).unwrap()
    };
    let matters = witness(false);
    let run = matters.run.unwrap();
    let mut both = [matters.in_order[0], run.run.results[0]];
    both.sort();
    assert_eq!(both, [Some(1), Some(2)]);
    assert_eq!(run.exceptions.len(), 1);
    for text in &run.exceptions[0] {
        assert!(marked(text, &["writers"]).starts_with("the delivery of p at writers by PE "), "{text}");
    }
    let harmless = witness(true);
    assert!(harmless.run.is_none() && harmless.other.is_none() && harmless.tried > 200, "{harmless:?}");
}

/// Who is first at a counter differs from run to run, and is no matter of the race.
#[test]
fn a_result_that_differs_without_the_race_is_no_witness() {
    let program = |pe: &Pe<Sim>| {
        let ticket = pe.alloc_zeroed::<u32>(1)?;
        let mine = pe.host().atomic_fetch_inc(&ticket, 0)?;
        two_writers(pe, true)?;
        pe.free(ticket)?;
        Ok(mine)
    };
    let mut simulation = Simulation::new(Config::pes(3)).unwrap();
    let run = simulation.run(program).unwrap();
    let witness = simulation.witness(&run.verdict.races[0], Effort::LITTLE, program).unwrap();
    assert!(witness.run.is_none(), "{witness:?}");
    let other = witness.other.expect("who comes first differs");
    assert_ne!(other.run.results, witness.in_order);
}

/// Each PE puts to the next one and reads what the one before it has put.
fn ring(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<u32>(1)?;
    let (me, n) = (pe.my_pe(), pe.n_pes());
    pe.host().p(&data, me as u32, (me + 1) % n)?;
    pe.host().fence()?; // nothing comes behind it
    pe.host().quiet()?; // the barrier does it
    pe.host().barrier_all()?; // everybody
    expect_eq(pe.read_one(&data)?, ((me + n - 1) % n) as u32, "the data")?;
    pe.host().barrier_all()?; // for nobody
    pe.free(data)
}

#[test]
fn what_is_not_needed_is_said_for_the_number_of_pes() {
    let simulation = Simulation::new(Config::pes(3)).unwrap();
    let weaker = simulation.weaken(Effort::LITTLE, ring).unwrap();
    let marks = ["nothing comes behind it", "the barrier does it", "everybody", "for nobody"];
    let said: Vec<String> = weaker.iter().map(|weaker| marked(&weaker.in_words(3), &marks)).collect();
    assert_eq!(
        said,
        [
            "`fence` at nothing comes behind it: removable for 3 PEs: proved",
            "`quiet` at the barrier does it: removable for 3 PEs: proved",
            "`barrier` at everybody: removable for 3 PEs if a `sync_all` takes its place: proved",
            "`barrier` at for nobody: removable for 3 PEs: proved",
        ]
    );
    let needed = simulation.weaken(Effort::LITTLE, source_changed_in_time).unwrap();
    let said: Vec<String> = needed.iter().map(|weaker| marked(&weaker.in_words(3), &["in time"])).collect();
    assert_eq!(said[0], "`flush` at in time: needed for 3 PEs");
    let none = simulation.weaken(Effort { schedules: 1, steps: 0 }, ring).unwrap();
    assert!(none.iter().all(|weaker| weaker.enough == onesided_sim::Enough::NotTried), "{none:?}");
}

/// All count in one word what they have sent. Who is a round ahead is counted for one who is late.
fn rounds_by_one_counter(pe: &Pe<impl Backend>) -> Result<()> {
    let (n, me) = (pe.n_pes(), pe.my_pe());
    let (slots, count) = (pe.alloc_zeroed::<u64>(2 * n)?, pe.alloc_zeroed::<u64>(1)?);
    let mine = pe.alloc_zeroed::<u64>(1)?;
    for round in 0..2 {
        for peer in 0..n {
            pe.host().put_signal(slots.at(round * n + me), &mine, count.signal(0), 1, SignalOp::Add, peer)?; // counted
        }
        pe.host().signal_wait_until(count.signal(0), Cmp::Ge, ((round + 1) * n) as u64)?;
        pe.read(slots.slice(round * n..(round + 1) * n))?;
    }
    pe.host().barrier_all()?;
    pe.free(mine)?;
    pe.free(count)?;
    pe.free(slots)
}

/// A barrier behind what is sent repairs it, and so does a sync at the end of a round.
#[test]
fn a_barrier_is_not_the_weakest_if_a_sync_elsewhere_is_enough() {
    let fix = fix(3, rounds_by_one_counter);
    assert_eq!(edits(&fix), [("barrier_all", line("counted"), false)]);
    assert!(is_proved(&fix) && !fix.is_weakest && !fix.sync_is_enough, "{fix}");
}

/// Who comes first makes calls that the other one does not.
fn in_a_branch(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, turn) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.host().atomic_fetch_inc(&turn, 0)? == 0 && pe.my_pe() == 1 {
        pe.host().p(&data, 7, 0)?;
        pe.host().quiet()?; // only if PE 1 comes first
    }
    pe.free(turn)?;
    pe.free(data)
}

#[test]
fn what_is_called_in_some_schedules_only_is_looked_at_too() {
    let weaker = Simulation::new(Config::pes(2)).unwrap().weaken(Effort::LITTLE, in_a_branch).unwrap();
    let lines: Vec<u32> = weaker.iter().map(|weaker| weaker.at.line()).collect();
    assert_eq!(lines, [line("only if PE 1 comes first")], "{weaker:?}");
}

fn source_changed_in_time(pe: &Pe<impl Backend>) -> Result<()> {
    let (src, dst) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().put_nbi(&dst, &src, 1)?;
        pe.host().flush()?; // in time
        pe.write(&src, &[8])?;
    }
    pe.free(dst)?;
    pe.free(src)
}

/// Who stops a simulation, or has given its time away, waits for no explanation.
#[test]
fn a_flag_and_a_time_end_an_explanation() {
    let stopped = |simulation: &mut Simulation| simulation.stop_when(std::sync::Arc::new(true.into()));
    let out_of_time = |simulation: &mut Simulation| {
        let time = Some(std::time::Duration::ZERO);
        simulation.set_budget(onesided_sim::Budget { time, ..Default::default() });
    };
    for end in [stopped as fn(&mut Simulation), out_of_time] {
        let (mut simulation, run) = finding(&Config::pes(2), flag_by_put);
        let tried = |simulation: &Simulation| {
            let fixes = simulation.fix(&run, Effort::LITTLE, flag_by_put).unwrap();
            let witness = simulation.witness(&run.verdict.races[0], Effort::LITTLE, flag_by_put).unwrap();
            (fixes.fix.is_some(), fixes.tried, witness.tried)
        };
        let (has_fix, changes, runs) = tried(&simulation);
        assert!(has_fix && changes > 0 && runs > 0);
        end(&mut simulation);
        assert_eq!(tried(&simulation), (false, 0, 0));
        assert!(simulation.minimize(&run, Effort::LITTLE, flag_by_put).unwrap().is_none());
        assert!(simulation.critical(&run, Effort::LITTLE, flag_by_put).unwrap().is_none());
    }
}
