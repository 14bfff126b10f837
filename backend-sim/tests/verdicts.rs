//! How runs end: each verdict with the report that a person reads. Mismatches are in `mismatches.rs`; panics, errors and
//! what becomes of the other PEs then in `unwinding.rs`; collectives that compete in `turns.rs`.

use onesided::{Cmp, Pe, Predefined, Result, SignalOp, Stream, SymmetricBuf, expect_eq};
use onesided_sim::{Config, Explore, Races, Sim, Simulation, Standing, VerdictKind};

use crate::common::{endings, verdict, visit_all, without_lines};

#[test]
fn a_deadlock_names_everybody_and_what_they_wait_for() {
    let verdict = verdict(4, |pe| {
        let words = pe.alloc_zeroed::<i32>(4)?;
        let flags = pe.alloc_zeroed::<u64>(4)?;
        let stream = pe.stream()?;
        match pe.my_pe() {
            0 => pe.host().signal_op(flags.signal(3), 2, SignalOp::Set, 1)?,
            1 => pe.host().signal_wait_until(flags.signal(3), Cmp::Eq, 1).map(drop)?,
            2 => pe.host().wait_until(words.at(2), Cmp::Gt, 7)?,
            _ => {
                pe.on(&stream).wait_until_all_vector(words.slice(..2), None, Cmp::Ge, &[0, 1])?;
                pe.synchronize(&stream)?;
            }
        }
        pe.host().barrier_all()?;
        pe.free(flags)?;
        pe.free(words)
    });
    insta::assert_snapshot!(without_lines(verdict), @r"
    deadlock: nothing can happen any more, and somebody waits
      PE 0: in barrier at backend-sim/tests/verdicts.rs:_, waits for PEs 1, 2, 3 to enter barrier #3 on TEAM_WORLD
      PE 1: in signal_wait_until at backend-sim/tests/verdicts.rs:_, waits for buf1+24 (made at backend-sim/tests/verdicts.rs:_) == 1, found 2 (u64)
      PE 2: in wait_until at backend-sim/tests/verdicts.rs:_, waits for buf0+8 (made at backend-sim/tests/verdicts.rs:_) > 7, found 0 (i32)
      PE 3: in synchronize at backend-sim/tests/verdicts.rs:_, waits for its stream 0 to finish
      PE 3 stream 0: in wait_until at backend-sim/tests/verdicts.rs:_, waits for buf0+4 (made at backend-sim/tests/verdicts.rs:_) >= 1, found 0 (i32)
    ");
}

/// What a deadlocked host waits for.
fn waits(verdict: &onesided_sim::Verdict, pe: usize) -> &str {
    assert!(matches!(verdict.kind, VerdictKind::Deadlock), "{verdict}");
    let agent =
        verdict.agents.iter().find(|agent| agent.pe == pe && agent.stream.is_none()).expect("every PE is listed");
    match &agent.standing {
        Standing::Waits(what) => what,
        other => panic!("PE {pe} does not wait: {other:?}"),
    }
}

#[test]
fn a_deadlock_in_a_barrier_names_who_is_missing() {
    let absent = |pes: usize, absent: &'static [usize]| {
        let deadlock = verdict(pes, |pe| {
            let word = pe.alloc_zeroed::<u64>(1)?;
            if absent.contains(&pe.my_pe()) {
                pe.host().signal_wait_until(word.signal(0), Cmp::Ne, 0)?;
            }
            pe.host().barrier_all()?;
            pe.free(word)
        });
        waits(&deadlock, 0).to_string()
    };
    assert_eq!(absent(2, &[1]), "PE 1 to enter barrier #2 on TEAM_WORLD");
    assert_eq!(absent(5, &[1, 3]), "PEs 1, 3 to enter barrier #2 on TEAM_WORLD");
    let many = absent(12, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(many, "PEs 1, 2, 3 and 7 others to enter barrier #2 on TEAM_WORLD");
}

/// A wait for one value, which the word has had and has not any more.
#[test]
fn a_deadlock_says_that_a_wait_has_missed_its_value() {
    let mut found = std::collections::BTreeSet::new();
    visit_all(
        Config::pes(2),
        |pe| {
            let flag = pe.alloc_zeroed::<u64>(1)?;
            if pe.my_pe() == 0 {
                pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
                pe.host().signal_op(flag.signal(0), 2, SignalOp::Set, 1)?;
            } else {
                pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            }
            pe.free(flag)
        },
        |run| {
            if !run.is_ok() {
                let what = waits(&run.verdict, 1);
                found.insert(what.split_once(" == ").expect("it compares").1.to_string());
            }
        },
    );
    let missed = "1, found 2 (u64); it held before, and was changed before the wait saw it";
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [missed]);
}

/// A call of a PE that has a stream.
type WithStream = dyn Fn(&Pe<Sim>, &Stream<Sim>) -> Result<()>;

#[test]
fn every_way_to_wait_has_its_words() {
    let never = |pe: &Pe<Sim>, call: &WithStream| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        let stream = pe.stream()?;
        pe.on(&stream).signal_wait_until(word.signal(0), Cmp::Ge, 1)?;
        call(pe, &stream)?;
        pe.free(word)
    };
    let on_one = |call: &WithStream| {
        let deadlock = verdict(1, |pe| never(pe, call));
        let stream = deadlock.agents.iter().find(|agent| agent.stream == Some(0)).expect("the stream is listed");
        assert!(
            matches!(&stream.standing, Standing::Waits(what) if what.contains(">= 1, found 0 (u64)")),
            "{deadlock}"
        );
        waits(&deadlock, 0).to_string()
    };
    assert_eq!(on_one(&|pe, stream| pe.synchronize(stream)), "its stream 0 to finish");
    let event = on_one(&|pe, stream| {
        let event = pe.event()?;
        pe.record(&event, stream)?;
        pe.synchronize_event(&event)
    });
    assert_eq!(event, "its event 0 to be reached");

    let deadlock = verdict(2, |pe| {
        let unique_id = Some(onesided::TeamUniqueId(5));
        let config = onesided::TeamConfig { unique_id, ..Default::default() };
        if pe.my_pe() == 0 { pe.team_init(config, 2, 0).map(drop) } else { Ok(()) }
    });
    assert_eq!(waits(&deadlock, 0), "the other members of the new team with id 5");
    assert_eq!(waits(&deadlock, 1), "PE 0 to enter finalize #1 on TEAM_WORLD");

    // a stream that never gets ready keeps its PE from finalizing
    let deadlock = verdict(1, |pe| {
        let word = pe.alloc_zeroed::<u64>(2)?;
        let stream = pe.stream()?;
        pe.on(&stream).signal_wait_until(word.signal(0), Cmp::Ge, 1)?;
        Ok(word)
    });
    assert_eq!(waits(&deadlock, 0), "its stream 0 to finish");

    // a non-root waits for the root, and the root for nobody: it has returned
    let deadlock = verdict(2, |pe| {
        let node = pe.team(Predefined::Node).expect("every PE is on a node");
        let words = pe.alloc_zeroed::<u64>(2)?;
        if pe.my_pe() == 1 {
            pe.host().broadcast(node, words.at(0), words.at(1), 0)?;
        }
        pe.free(words)
    });
    assert_eq!(waits(&deadlock, 1), "PE 0 to enter broadcast #0 on TEAM_NODE");
    assert_eq!(waits(&deadlock, 0), "PE 1 to enter free #2 on TEAM_WORLD");
}

/// The report of the first schedule, of all, that ends with an error.
fn first_failure(config: Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> onesided_sim::Verdict {
    let mut found = None;
    visit_all(config, program, |run| {
        if found.is_none() && matches!(run.verdict.kind, VerdictKind::Failed { .. }) {
            found = Some(run.verdict.clone());
        }
    });
    found.expect("a schedule fails")
}

#[test]
fn a_failure_lists_what_was_on_its_way_and_what_overtook_it() {
    let sends = |pe: &Pe<Sim>| {
        let (data, flag) = (pe.alloc_zeroed::<u32>(8)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.write(data.slice(4..), &[2; 4])?;
            pe.host().put(data.slice(..4), data.slice(4..), 1)?;
            pe.host().p(data.at(0), 2, 2)?; // to a PE that does not fail: not listed
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else if pe.my_pe() == 1 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            expect_eq(&pe.read(data.slice(..4))?[..], &[2; 4], "the data")?;
        }
        pe.free(flag)?;
        pe.free(data)
    };
    insta::assert_snapshot!(without_lines(first_failure(Config::pes(3), sends)), @r"
    PE 1 failed: check: the data is [2, 0, 2, 2], expected [2, 2, 2, 2] (wrong result, backend-sim/tests/verdicts.rs:_)
      besides, data race: delivery of put at backend-sim/tests/verdicts.rs:_ by PE 0 and read at backend-sim/tests/verdicts.rs:_ by PE 1, on buf0+12..16 of PE 1 (made at backend-sim/tests/verdicts.rs:_)
        nothing orders them; missing: a fence between backend-sim/tests/verdicts.rs:_ and backend-sim/tests/verdicts.rs:_, or one put_signal
        issued in steps 11 and 24
        PE 1 knows PE 0 up to signal_op at backend-sim/tests/verdicts.rs:_
        PE 0 knows PE 1 up to alloc at backend-sim/tests/verdicts.rs:_
        4 times in this run
      PE 0: in free at backend-sim/tests/verdicts.rs:_, waits for a transfer to be delivered
      PE 1: failed here; its last call was at backend-sim/tests/verdicts.rs:_
      PE 2: in free at backend-sim/tests/verdicts.rs:_, waits for PEs 0, 1 to enter free #3 on TEAM_WORLD
      not yet delivered to PE 1:
        put by PE 0 at backend-sim/tests/verdicts.rs:_: 16 bytes of buf0+0..16 on PE 1, 1 of 4 pieces, overtaken by signal_op at backend-sim/tests/verdicts.rs:_
    ");
}

/// A stream waits for a signal; behind the wait it has a non-blocking put. What contains a quiet of the host waits for the put, and
/// says which it is.
#[test]
fn a_quiet_of_the_host_names_what_a_stream_has_not_reached() {
    type Quiet = fn(&Pe<Sim>, SymmetricBuf<u64>) -> Result<()>;
    let stuck = |quiet: Quiet| {
        let verdict = verdict(1, |pe| {
            let (words, other) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc::<u64>(1)?);
            let stream = pe.stream()?;
            pe.on(&stream).signal_wait_until(words.signal(2), Cmp::Eq, 1)?;
            pe.on(&stream).put_nbi(words.at(0), words.at(1), 0)?;
            quiet(pe, other)?;
            pe.host().signal_op(words.signal(2), 1, SignalOp::Set, 0)?;
            pe.synchronize(&stream)?;
            pe.free(words)
        });
        without_lines(verdict)
    };
    let quiet: Quiet = |pe, _| pe.host().quiet();
    insta::assert_snapshot!(stuck(quiet), @r"
    deadlock: nothing can happen any more, and somebody waits
      PE 0: in quiet at backend-sim/tests/verdicts.rs:_, waits for put_nbi at backend-sim/tests/verdicts.rs:_, which its stream 0 has not reached
      PE 0 stream 0: in signal_wait_until at backend-sim/tests/verdicts.rs:_, waits for buf0+16 (made at backend-sim/tests/verdicts.rs:_) == 1, found 0 (u64)
    ");
    let others: [(&str, Quiet); 8] = [
        ("fence", |pe, _| pe.host().fence()),
        ("barrier", |pe, _| pe.host().barrier_all()),
        ("alloc", |pe, _| pe.free(pe.alloc::<u64>(1)?)),
        ("free", |pe, other| pe.free(other)),
        ("p", |pe, other| pe.host().p(&other, 1, 0)),
        ("g", |pe, other| pe.host().g(&other, 0).map(drop)),
        ("put", |pe, other| pe.host().put(&other, &other, 0)),
        ("get", |pe, other| pe.host().get(&other, &other, 0)),
    ];
    for (name, call) in others {
        assert_eq!(stuck(call), stuck(quiet).replace("in quiet", &format!("in {name}")));
    }
}

/// A put that first has to wait for a peer's registration waits for what its stream puts there all the same.
#[test]
fn a_put_to_registered_memory_names_what_a_stream_has_not_reached() {
    let stuck = verdict(2, |pe| {
        let words = pe.alloc_zeroed::<u64>(4)?;
        let stream = pe.stream()?;
        if pe.my_pe() == 0 {
            pe.on(&stream).signal_wait_until(words.signal(2), Cmp::Eq, 1)?;
            pe.on(&stream).put_nbi(words.at(0), words.at(1), 1)?;
        } else {
            pe.host().signal_wait_until(words.signal(3), Cmp::Eq, 1)?;
        }
        let registered = pe.register_symmetric(pe.alloc_external::<u64>(1)?)?;
        if pe.my_pe() == 0 {
            pe.host().signal_op(words.signal(3), 1, SignalOp::Set, 1)?;
            pe.host().put(&registered, words.at(1), 1)?;
            pe.host().signal_op(words.signal(2), 1, SignalOp::Set, 0)?;
            pe.synchronize(&stream)?;
        }
        pe.free_external(pe.unregister_symmetric(registered)?)?;
        pe.free(words)
    });
    assert!(without_lines(stuck).contains("in put at backend-sim/tests/verdicts.rs:_, waits for put_nbi at"));
}

#[test]
fn many_undelivered_transfers_are_counted() {
    let many = |pe: &Pe<Sim>| {
        let data = pe.alloc_zeroed::<u32>(20)?;
        if pe.my_pe() == 0 {
            (0..20).try_for_each(|i| pe.host().p(data.at(i), 1, 1))?;
            expect_eq(0, 1, "the data here")?;
        }
        pe.free(data)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let random = Explore::random(1, 1);
    let mut report = String::new();
    let visit = |run: &onesided_sim::Run<()>| {
        report = without_lines(&run.verdict);
        assert!(run.verdict.undelivered.len() > 8, "{report}");
        let (_, counted) = report.rsplit_once("\n    and ").expect("a count");
        assert_eq!(counted, format!("{} more", run.verdict.undelivered.len() - 8));
        std::ops::ControlFlow::Continue(())
    };
    simulation.explore(random, many, visit).unwrap();
    assert_eq!(report.matches("p by PE 0 at ").count(), 8, "{report}");
}

#[test]
fn memory_freed_under_work_that_waits_on_a_stream() {
    let verdict = verdict(2, |pe| {
        let (x, go) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc_zeroed::<u64>(1)?);
        let stream = pe.stream()?;
        pe.on(&stream).signal_wait_until(go.signal(0), Cmp::Eq, 1)?;
        if pe.my_pe() == 1 {
            pe.on(&stream).put(x.slice(..2), x.slice(2..), 0)?;
        }
        pe.free(x)?;
        pe.host().signal_op(go.signal(0), 1, SignalOp::Set, pe.my_pe())?;
        pe.synchronize(&stream)?;
        pe.free(go)
    });
    insta::assert_snapshot!(without_lines(verdict), @r"
    free of memory in use: buf0, made at backend-sim/tests/verdicts.rs:_, is still used by what PE 1 issued at backend-sim/tests/verdicts.rs:_; complete it first (quiet and synchronize the stream)
      PE 0: could go on; its last call was at backend-sim/tests/verdicts.rs:_
      PE 0 stream 0: in signal_wait_until at backend-sim/tests/verdicts.rs:_, waits for buf1+0 (made at backend-sim/tests/verdicts.rs:_) == 1, found 0 (u64)
      PE 1: could go on; its last call was at backend-sim/tests/verdicts.rs:_
      PE 1 stream 0: in signal_wait_until at backend-sim/tests/verdicts.rs:_, waits for buf1+0 (made at backend-sim/tests/verdicts.rs:_) == 1, found 0 (u64)
    ");
}

#[test]
fn memory_freed_under_a_transfer_or_a_wait() {
    // the stream's put is under way on some schedules, and has arrived on others
    let transfer = |pe: &Pe<Sim>| {
        let (x, y) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
        let stream = pe.stream()?;
        if pe.my_pe() == 0 {
            pe.on(&stream).p(&x, 1, 1)?;
            pe.synchronize(&stream)?;
        }
        pe.read(&y)?;
        pe.free(x)?;
        pe.free(y)
    };
    assert_eq!(verdict(2, transfer).kind.outcome(), "race");
    let random = Explore::random(50, 1);
    let mut found = Vec::new();
    let config = Config { races: Races::Note, ..Config::pes(2) };
    let explored = Simulation::new(config).unwrap().explore(random, transfer, |run| {
        found.push(run.verdict.kind.outcome());
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 50);
    found.sort();
    found.dedup();
    assert_eq!(found, ["finished", "free of memory in use"]);

    let waited_on = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        let stream = pe.stream()?;
        pe.on(&stream).wait_until(&word, Cmp::Eq, 1)?;
        pe.free(word)
    };
    let VerdictKind::FreedInUse { call, pe, at, made_at, .. } = verdict(1, waited_on).kind else { panic!("freed") };
    assert_eq!((call, pe), ("free", 0));
    assert_eq!(at.line(), made_at.expect("it is symmetric").line() + 2, "the line of the wait");

    // the host's own transfers are completed by the free itself
    let own = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u32>(1)?;
        pe.host().p(&x, 1, 1)?;
        pe.free(x)
    };
    assert_eq!(Vec::from_iter(endings(Config::pes(2), own).into_keys()), ["finished"]);

    let unregistered = |pe: &Pe<Sim>| {
        let x = pe.register_symmetric(pe.alloc_external::<u32>(1)?)?;
        let stream = pe.stream()?;
        pe.on(&stream).wait_until(x.at(0), Cmp::Eq, 1)?;
        pe.unregister_symmetric(x).map(drop)
    };
    assert_eq!(verdict(1, unregistered).kind.outcome(), "unregister_symmetric of memory in use");
}

#[test]
fn a_plain_put_to_a_word_that_is_waited_on_as_a_signal() {
    let verdict = verdict(2, |pe| {
        let words = pe.alloc_zeroed::<u64>(4)?;
        if pe.my_pe() == 0 {
            pe.host().p(words.at(2), 1, 1)?;
        } else {
            pe.host().signal_wait_until(words.signal(2), Cmp::Eq, 1)?; // in order, the last PE to allocate goes on first
        }
        pe.free(words)
    });
    insta::assert_snapshot!(without_lines(verdict), @r"
    data race: atomic read of signal_wait_until at backend-sim/tests/verdicts.rs:_ by PE 1 and delivery of p at backend-sim/tests/verdicts.rs:_ by PE 0, on buf0+16..24 of PE 1 (made at backend-sim/tests/verdicts.rs:_)
        nothing orders them; missing: an atomic update (put_signal, signal_op) in place of the call at backend-sim/tests/verdicts.rs:_
        issued in steps 3 and 4
        PE 0 knows PE 1 up to alloc at backend-sim/tests/verdicts.rs:_
        PE 1 knows PE 0 up to alloc at backend-sim/tests/verdicts.rs:_
    ");
}

#[test]
fn leaks_have_the_lines_that_made_what_was_not_given_back() {
    let verdict = verdict(2, |pe| {
        let kept = pe.alloc::<f64>(3)?;
        let freed = pe.alloc::<f64>(3)?;
        let local = pe.register_local(pe.alloc_external::<u8>(10)?)?;
        let symmetric = pe.register_symmetric(pe.alloc_external::<u8>(20)?)?;
        let team = pe.team_split_strided(pe.world(), 1, 1, 1, Default::default())?;
        pe.free(freed)?;
        Ok((kept, local, symmetric, team))
    });
    insta::assert_snapshot!(without_lines(&verdict.kind), @r"
    leak: not given back before finalize
        PE 0 holds buf0 of 24 bytes, made at backend-sim/tests/verdicts.rs:_
        PE 0 holds a local registration of ext0, made at backend-sim/tests/verdicts.rs:_
        PE 0 holds a symmetric registration, buf2, made at backend-sim/tests/verdicts.rs:_
        PE 1 holds buf0 of 24 bytes, made at backend-sim/tests/verdicts.rs:_
        PE 1 holds a local registration of ext0, made at backend-sim/tests/verdicts.rs:_
        PE 1 holds a symmetric registration, buf2, made at backend-sim/tests/verdicts.rs:_
        PE 1 holds team 7, made at backend-sim/tests/verdicts.rs:_
    ");
    let VerdictKind::Leak { leaks } = verdict.kind else { panic!("a leak") };
    assert!(leaks.iter().all(|(_, live)| live.at.file().ends_with("verdicts.rs")));
}

#[test]
fn leaks_of_buffers_and_of_teams_are_told_apart() {
    let buffer = |pe: &Pe<Sim>| pe.alloc::<u8>(1);
    let team = |pe: &Pe<Sim>| pe.team_split_2d(pe.world(), 1, Default::default(), Default::default());
    assert_eq!(verdict(2, buffer).kind.outcome(), "leak: buffers");
    assert_eq!(verdict(2, team).kind.outcome(), "leak: teams");
    assert_eq!(verdict(2, |pe| Ok((buffer(pe)?, team(pe)?))).kind.outcome(), "leak: buffers and teams");
}

/// Waits by polling: right or wrong, an exhaustive search never sees the end of it.
fn poll(pe: &Pe<Sim>, sender: usize) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == sender {
        pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 0)?;
    }
    while pe.my_pe() == 0 && pe.host().signal_fetch(word.signal(0))? == 0 {}
    pe.free(word)
}

#[test]
fn a_polling_loop_that_nobody_satisfies_reaches_the_step_limit() {
    let config = Config { max_steps: Some(1000), ..Config::pes(2) };
    let mut simulation = Simulation::new(config).unwrap();
    let run = simulation.run(|pe| poll(pe, 2)).unwrap();
    assert!(matches!(run.verdict.kind, VerdictKind::StepLimit { steps: 1000 }), "{}", run.verdict);
    assert_eq!(run.steps, 1001, "one too many shows that the run goes on");
    assert!(run.is_given_up() && !run.is_ok());
    insta::assert_snapshot!(without_lines(run.verdict), @r"
    step limit: given up after 1000 steps, and whether the run would have ended is not known
      PE 0: could go on; its last call was at backend-sim/tests/verdicts.rs:_; it goes on calling signal_fetch(buf0+0..8) at backend-sim/tests/verdicts.rs:_
      PE 1: in free at backend-sim/tests/verdicts.rs:_, waits for PE 0 to enter free #2 on TEAM_WORLD
    ");
}

/// A loop that changes something each time has endless schedules: a search of them is not complete, also where the bound on schedules
/// is never reached, and each that was given up is counted.
#[test]
fn a_search_in_which_schedules_are_given_up_is_never_complete() {
    let counts = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        while pe.my_pe() == 0 && pe.host().signal_fetch(words.signal(0))? == 0 {
            pe.host().atomic_inc(words.at(1), 0)?;
        }
        if pe.my_pe() == 1 {
            pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 0)?;
        }
        pe.free(words)
    };
    let config = Config { max_steps: Some(60), ..Config::pes(2) };
    let mut given_up = 0;
    let all = Explore::All { limit: 100_000 };
    let explored = Simulation::new(config).unwrap().explore(all, counts, |run| {
        assert!(run.is_ok() || run.is_given_up(), "{}", run.verdict);
        given_up += u64::from(run.is_given_up());
        std::ops::ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(!explored.complete && explored.given_up == given_up && given_up > 0, "{explored:?}");
    assert_eq!(explored.polls_bounded, 0);
}

/// A search does not poll in vain; what is polled stands in the report.
#[test]
fn a_search_that_ends_with_polls_says_what_is_polled() {
    let mut found = None;
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(
        Explore::All { limit: 10 },
        |pe| poll(pe, 2),
        |run| {
            found = Some(run.without_results());
            std::ops::ControlFlow::Continue(())
        },
    );
    assert_eq!(explored.unwrap().given_up, 1);
    let again = simulation.reproduce(&found.unwrap(), |pe| poll(pe, 2)).unwrap();
    assert!(again.is_given_up());
    insta::assert_snapshot!(without_lines(again.verdict), @r"
    polls bounded: every PE that is left polls without a change, or waits for one that does; the search does not know what happens if a loop gives up polling
      PE 0: in signal_fetch at backend-sim/tests/verdicts.rs:_, waits for a change of buf0+0..8 on PE 0
      PE 1: in free at backend-sim/tests/verdicts.rs:_, waits for PE 0 to enter free #2 on TEAM_WORLD
    ");
}

/// Never ends, and changes something each time.
fn spins(pe: &Pe<Sim>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    loop {
        pe.write(&word, &[1])?;
    }
}

#[test]
fn a_step_limit_that_is_given_replaces_the_default_also_in_a_search() {
    for (max_steps, steps) in [(None, 100_000), (Some(500), 500), (Some(150_000), 150_000)] {
        let config = Config { max_steps, ..Config::pes(2) };
        let mut found = None;
        let all = Explore::All { limit: 1 };
        let explored = Simulation::new(config).unwrap().explore(all, spins, |run| {
            found = Some(run.verdict.kind.clone());
            std::ops::ControlFlow::Break(())
        });
        explored.unwrap();
        assert!(matches!(found, Some(VerdictKind::StepLimit { steps: found }) if found == steps), "{found:?}");
    }
}

#[test]
fn a_pe_without_a_call_has_no_last_call() {
    let run = Simulation::new(Config::pes(2)).unwrap().run_process(|process| -> Result<()> {
        assert!(process.rank() == 1, "at once");
        Ok(())
    });
    let report = without_lines(run.unwrap().verdict);
    assert!(report.contains("PE 0: failed here; it made no call\n"), "{report}");
}

#[test]
fn a_polling_loop_that_is_satisfied_ends() {
    // in order, although the sender comes after the poller; and at random
    assert!(verdict(2, |pe| poll(pe, 1)).is_ok());
    let random = Explore::random(50, 2);
    let explored = Simulation::new(Config::pes(2)).unwrap().explore(
        random,
        |pe| poll(pe, 1),
        |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            std::ops::ControlFlow::Continue(())
        },
    );
    assert_eq!(explored.unwrap().schedules, 50);
}

#[test]
fn a_job_ends_with_a_status_of_which_0_is_no_finding() {
    let exit = |status: i32| {
        let program = move |pe: &Pe<Sim>| {
            if pe.my_pe() == 1 {
                pe.global_exit(status);
            }
            pe.host().barrier_all()
        };
        let run = Simulation::new(Config::pes(3)).unwrap().run(program).unwrap();
        assert_eq!(run.results, [None, None, None]);
        run
    };
    let (good, bad) = (exit(0), exit(3));
    assert!(good.is_ok() && !bad.is_ok());
    assert_eq!(bad.verdict.kind.to_string(), "PE 1 ended the job with status 3");
    assert_eq!([&good, &bad].map(|run| run.verdict.kind.outcome()), ["exited: 0", "exited: 3"]);
    assert!(bad.into_results().unwrap_err().message().contains("status 3"));
}

#[test]
fn a_schedule_that_fails_hides_no_other() {
    // the search begins with the schedule that fails: the step that does has to be known as one that reads `x`
    let early = |pe: &Pe<Sim>, check: fn(u64) -> Result<()>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        match pe.my_pe() {
            0 => pe.host().p(&x, 1, 1)?,
            _ => check(pe.read(&x)?[0])?,
        }
        pe.free(x)
    };
    let ends = |check: fn(u64) -> Result<()>| Vec::from_iter(endings(Config::pes(2), |pe| early(pe, check)));
    let once = |ending: &str| (ending.to_string(), 1);
    assert_eq!(ends(|x| expect_eq(x, 1, "x")), [once("failed: wrong result"), once("finished")]);
    assert_eq!(ends(|x| expect_eq(x, 0, "x")), [once("failed: wrong result"), once("finished")]);
    let panics = ends(|x| if x == 0 { panic!("too early") } else { Ok(()) });
    assert_eq!(panics, [once("finished"), once("panicked")]);
}
