//! What a user's tests say: [`prove`], [`check_random`] and [`check_schedule`] in ordinary tests.

use std::{panic, thread};

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Profile, Races, Sim, VerdictKind, check_random, check_schedule, prove, refute};

/// PE 0 sends data, then a signal, with or without a fence between them.
fn message(pe: &Pe<impl Backend>, fenced: bool) -> Result<()> {
    let data = pe.alloc_zeroed::<u32>(1)?;
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&data, 42, 1)?;
        if fenced {
            pe.host().fence()?;
        }
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read(&data)?[0], 42, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}

/// The message of the panic, without source lines, in a thread that is named as a test's is.
fn panics<T: Send>(test: impl FnOnce() -> T + Send) -> String {
    let panic = thread::scope(|scope| {
        let test = thread::Builder::new().name("their_test".into()).spawn_scoped(scope, test).expect("a thread");
        test.join().err().expect("the test fails")
    });
    let message = panic.downcast_ref::<String>().expect("a panic with a text");
    let word = |word: &str| match word.split_once(".rs:") {
        Some((file, rest)) => format!("{file}.rs:[line]{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => word.to_string(),
    };
    message.lines().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn a_right_program_passes() {
    let proved = prove(2, |pe| message(pe, true));
    assert!(proved.complete && proved.findings == 0);
    let checked = check_random(2, |pe| message(pe, true));
    assert_eq!((checked.schedules, checked.findings), (1000, 0));
    check_schedule("os2.2x1.spec.p4.r2a.none", |pe| message(pe, true));
    // what is wrong on another network is right here
    prove(Config { profile: Profile::Nvlink, ..Config::pes(2) }, |pe| message(pe, false));
}

#[test]
fn a_bug_that_a_test_expects_is_found() {
    let run = refute(2, |pe| message(pe, false));
    assert!(matches!(run.verdict.kind, VerdictKind::Race) && run.trace.is_some(), "{}", run.verdict);
    // found by no schedule in order, and by one of all
    let overtaken = |pe: &Pe<onesided_sim::Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            (1..=2).try_for_each(|value| pe.host().signal_op(word.signal(0), value, SignalOp::Set, 1))?;
        }
        pe.host().barrier_all()?;
        expect_eq(pe.read(&word)?[0] != 1, true, "the second signal coming last")?;
        pe.free(word)
    };
    assert!(matches!(refute(2, overtaken).verdict.kind, VerdictKind::Failed { pe: 1, .. }));
    // found by random ones only: a search of all does not come back from a loop of plain reads
    let reads_again = |pe: &Pe<onesided_sim::Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 1 {
            (1..=2).try_for_each(|value| pe.host().p(&word, value, 0))?;
            pe.host().quiet()?;
        }
        while pe.my_pe() == 0 && pe.read_one(&word)? == 0 {}
        expect_eq(pe.my_pe() == 1 || pe.read_one(&word)? == 2, true, "the last value")?;
        pe.free(word)
    };
    let config = Config { races: Races::Note, max_steps: Some(1000), ..Config::pes(2) };
    assert!(matches!(refute(config, reads_again).verdict.kind, VerdictKind::Failed { pe: 0, .. }));
}

#[test]
fn a_bug_that_is_not_there_fails_the_test() {
    let said = panics(|| refute(2, |pe| message(pe, true)));
    assert!(said.starts_with("no schedule fails: proved for 2 PEs under spec"), "{said}");
    let endless = |pe: &Pe<onesided_sim::Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        while pe.read_one(&word)? == 0 {}
        pe.free(word)
    };
    let said = panics(|| refute(Config { max_steps: Some(100), ..Config::pes(1) }, endless));
    assert!(said.starts_with("no schedule was found that fails: not proved for 1 PE"), "{said}");
    assert!(said.contains("; and 1000 random schedules from seed 0"), "{said}");
}

#[test]
fn a_failed_proof_explains_itself() {
    insta::assert_snapshot!(panics(|| prove(2, |pe| message(pe, false))));
}

#[test]
fn the_place_of_the_panic_is_the_line_of_the_test() {
    let (place, places) = std::sync::mpsc::channel();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str().is_some_and(|why| why.contains("data race")) {
            let _ = place.send(info.location().expect("a place").file().to_string());
        }
        before(info);
    }));
    panics(|| prove(2, |pe| message(pe, false)));
    panics(|| check_random(2, |pe| message(pe, false)));
    let places: Vec<String> = places.try_iter().collect(); // those of other tests of this file, too
    assert!(places.len() >= 2 && places.iter().all(|place| place == file!()), "{places:?}");
}

#[test]
fn a_failed_check_explains_itself() {
    insta::assert_snapshot!(panics(|| check_random(2, |pe| message(pe, false))));
}

#[test]
fn a_program_that_fails_in_order_is_found_before_anything_is_random() {
    let said = panics(|| check_random(2, |pe: &Pe<_>| expect_eq(pe.my_pe(), 0, "the rank")));
    assert!(said.starts_with("fails on the last of 1 schedule (1 in order, 0 random from seed 0)"), "{said}");
    assert!(said.contains("check_schedule(\"os2.2x1.spec.p4.o.none\", program)"), "{said}");
    assert!(!said.contains("ONESIDED_REPLAY=os2.2x1.spec.p4.o.none"), "it has a fingerprint: {said}");
}

/// Whether it ends is not known, so it has not passed.
#[test]
fn a_program_that_may_never_end_does_not_pass() {
    let endless = |pe: &Pe<onesided_sim::Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        while pe.host().signal_fetch(word.signal(0))? == 0 {}
        pe.free(word)
    };
    let config = Config { max_steps: Some(500), ..Config::pes(1) };
    let said = panics(|| check_random(config.clone(), endless));
    assert!(said.contains("step limit: given up after 500 steps"), "{said}");
    assert!(said.contains("Whether the run would have ended is not known: Config::max_steps can be higher"), "{said}");
    let said = panics(|| prove(config, endless));
    assert!(
        said.contains("polls bounded in 1\n") && said.contains("waits for a change of buf0+0..8 on PE 0"),
        "{said}"
    );
}

#[test]
fn a_schedule_that_fails_or_does_not_fit_is_named() {
    let failing = |pe: &Pe<_>| expect_eq(pe.my_pe(), 0, "the rank");
    let said = panics(|| check_schedule("os2.2x1.spec.p4.o.none", failing));
    assert!(said.contains("the rank") && said.contains("Schedule: os2.2x1.spec.p4.o."), "{said}");
    let said = panics(|| check_schedule("os2.2x1.spec.p4", failing));
    assert!(said.starts_with("\"os2.2x1.spec.p4\" is not a schedule: ") && !said.contains("schedule.rs"), "{said}");
    assert!(said.contains("4 parts, and not 6"), "{said}");
    let said = panics(|| check_schedule("os2.2x1.spec.p4.c7.none", failing));
    assert!(said.contains("its choices do not fit"), "{said}");
}

#[test]
fn a_cluster_that_cannot_be_is_refused() {
    let said = panics(|| prove(0, |pe| message(pe, true)));
    assert!(said.starts_with("0 PEs; a simulation has 1 to 32000"), "{said}");
}

/// What the machine lacks is no bug, so a test of a bug does not pass by it.
#[test]
fn an_operating_error_refutes_nothing() {
    let too_large = |pe: &Pe<Sim>| pe.alloc::<u64>(1 << 40).and_then(|buffer| pe.free(buffer));
    let said = panics(|| refute(2, too_large));
    assert!(said.contains("which is no bug that a test could show: PE 1: alloc"), "{said}");
}
