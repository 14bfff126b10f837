//! What is noted of programs that work by luck or without a promise, and in which words. Pairs of programs with a lint and
//! without it are cases of the conformance suite, in its chapter `lint`.

use crate::common::without_lines;
use onesided::{Cmp, Pe, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Explore, LintKind, Profile, Races, Run, Sim, Simulation, VerdictKind};

/// PE 0 puts data and behind a fence a flag, for which PE 1 waits plainly.
fn flag_by_put(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 7, 1)?;
        pe.host().fence()?;
        pe.host().p(words.at(1), 1, 1)?;
    } else {
        pe.host().wait_until(words.at(1), Cmp::Eq, 1)?;
    }
    pe.free(words)
}

fn recorded(config: Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Run<()> {
    let mut simulation = Simulation::new(config).unwrap();
    let run = simulation.run(&program).unwrap();
    simulation.reproduce(&run, &program).unwrap()
}

fn kinds(run: &Run<()>) -> Vec<LintKind> {
    run.verdict.lints.iter().map(|lint| lint.kind).collect()
}

#[test]
fn lints_are_found_in_recorded_runs_and_everywhere_under_strict() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(flag_by_put).unwrap();
    assert!(run.is_ok() && run.verdict.lints.is_empty(), "a run that is not recorded pays nothing");
    let run = recorded(Config::pes(2), flag_by_put);
    assert!(run.is_ok());
    assert_eq!(kinds(&run), [LintKind::WaitOnPlainData]);
    let ignored = recorded(Config { races: Races::Ignore, ..Config::pes(2) }, flag_by_put);
    assert_eq!(kinds(&ignored), []);

    let strict = Config { strict: true, ..Config::pes(2) };
    let mut simulation = Simulation::new(strict).unwrap();
    let run = simulation.run(flag_by_put).unwrap();
    assert!(matches!(run.verdict.kind, VerdictKind::Lint) && !run.is_ok());
    assert_eq!(run.verdict.kind.outcome(), "lint");
    let explored = simulation.explore(Explore::All { limit: 100 }, flag_by_put, |run| {
        assert_eq!(kinds(run), [LintKind::WaitOnPlainData], "on every schedule");
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().findings, 1);
}

/// A lint behind something worse is not the finding.
#[test]
fn a_race_comes_before_a_lint() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        if pe.my_pe() == 0 {
            pe.host().p(words.at(0), 7, 1)?;
            pe.host().p(words.at(1), 1, 1)?;
        } else {
            pe.host().wait_until(words.at(1), Cmp::Eq, 1)?;
            pe.read(words.at(0))?;
        }
        pe.free(words)
    };
    let run = recorded(Config { strict: true, ..Config::pes(2) }, program);
    assert!(matches!(run.verdict.kind, VerdictKind::Race));
    assert_eq!(kinds(&run), [LintKind::WaitOnPlainData]);
}

#[test]
fn a_lint_names_both_lines_and_what_is_better() {
    let run = recorded(Config { strict: true, ..Config::pes(2) }, flag_by_put);
    insta::assert_snapshot!(without_lines(&run.verdict), @r"
    lint wait-on-plain-data: p at backend-sim/tests/lints.rs:_ by PE 0 and wait_until at backend-sim/tests/lints.rs:_ by PE 1
        a plain put ends the wait: OpenSHMEM promises that of signals and atomics only
        better: put_signal, signal_op or an atomic
    ");
}

/// Sends two chunks that count one word up, from the host or from two PEs, with whatever stands between.
fn chunks(between: impl Fn(&Pe<Sim>) -> Result<()>, least: u64) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let words = pe.alloc_zeroed::<u64>(4)?;
        if pe.my_pe() == 0 {
            for chunk in 0..2 {
                pe.host().put_signal(words.at(chunk), words.at(2), words.signal(3), 1, SignalOp::Add, 1)?;
                between(pe)?;
            }
        } else {
            pe.host().signal_wait_until(words.signal(3), Cmp::Ge, least)?;
        }
        pe.free(words)
    }
}

#[test]
fn a_counter_is_right_if_it_waits_for_all_or_they_are_ordered() {
    let of = |program: &dyn Fn(&Pe<Sim>) -> Result<()>| kinds(&recorded(Config::pes(2), program));
    assert_eq!(of(&chunks(|_| Ok(()), 1)), [LintKind::CounterOvertaken]);
    assert_eq!(of(&chunks(|_| Ok(()), 2)), []);
    assert_eq!(of(&chunks(|pe| pe.host().fence(), 1)), []);
    assert_eq!(of(&chunks(|pe| pe.host().quiet(), 1)), []);
    let nvlink = recorded(Config { profile: Profile::Nvlink, ..Config::pes(2) }, chunks(|_| Ok(()), 1));
    assert_eq!(kinds(&nvlink), [], "they arrive in order");
}

/// In rounds with a barrier between, a counter that goes on counting is right; without it, the next round can help out.
#[test]
fn a_counter_goes_on_over_rounds() {
    let rounds = |barrier: bool| {
        move |pe: &Pe<Sim>| {
            let (me, n) = (pe.my_pe(), pe.n_pes());
            let (data, count) = (pe.alloc_zeroed::<u64>(2 * n)?, pe.alloc_zeroed::<u64>(1)?);
            for round in 0..2 {
                for to in (0..n).filter(|to| *to != me) {
                    let dst = data.at(round * n + me);
                    pe.host().put_signal(dst, data.at(round * n + me), count.signal(0), 1, SignalOp::Add, to)?;
                }
                let all = ((round + 1) * (n - 1)) as u64;
                pe.host().signal_wait_until(count.signal(0), Cmp::Ge, all)?;
                if barrier {
                    pe.host().barrier_all()?;
                }
            }
            pe.free(count)?;
            pe.free(data)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(3), rounds(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(3), rounds(false))), [LintKind::CounterOvertaken]);
}

/// What a wait for all has seen is there, whatever is waited for then. Chunks that come later can still overtake each other.
#[test]
fn a_counter_that_has_counted_all_is_right() {
    let again = |more: bool| {
        move |pe: &Pe<Sim>| {
            let words = pe.alloc_zeroed::<u64>(6)?;
            let (count, answer) = (words.signal(4), words.signal(5));
            for round in 0..1 + usize::from(more) {
                if pe.my_pe() == 0 {
                    for chunk in 0..2 {
                        let to = words.at(2 * round + chunk);
                        pe.host().put_signal(to, words.at(chunk), count, 1, SignalOp::Add, 1)?;
                    }
                    pe.host().signal_wait_until(answer, Cmp::Ge, 1)?;
                } else {
                    let all = 2 * round as u64 + 2;
                    pe.host().signal_wait_until(count, Cmp::Ge, all - round as u64)?;
                    pe.host().signal_wait_until(count, Cmp::Ge, 1)?;
                    pe.host().signal_op(answer, 1, SignalOp::Set, 0)?;
                }
            }
            pe.free(words)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(2), again(false))), []);
    assert_eq!(
        kinds(&recorded(Config::pes(2), again(true))),
        [LintKind::CounterOvertaken; 2],
        "neither wait needs both"
    );
    assert_proved(Config::pes(2), &again(false));
}

/// One value is passed only by an update that may come between the one that is waited for and the wait.
#[test]
fn an_equality_that_cannot_be_passed_is_right() {
    let fan_in = |wanted: u64| {
        move |pe: &Pe<Sim>| {
            let word = pe.alloc_zeroed::<u64>(1)?;
            match pe.my_pe() {
                0 => drop(pe.host().signal_wait_until(word.signal(0), Cmp::Eq, wanted)?),
                _ => pe.host().signal_op(word.signal(0), 1, SignalOp::Add, 0)?,
            }
            pe.free(word)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(3), fan_in(2))), [], "both are there");
    assert_eq!(kinds(&recorded(Config::pes(3), fan_in(1))), [LintKind::EqualityPassed]);
    let answered = |answers: bool| {
        move |pe: &Pe<Sim>| {
            let words = pe.alloc_zeroed::<u64>(2)?;
            if pe.my_pe() == 0 {
                pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 1)?;
                if answers {
                    pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
                }
                pe.host().signal_op(words.signal(0), 2, SignalOp::Set, 1)?;
            } else {
                pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
                pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 0)?;
            }
            pe.free(words)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(2), answered(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(2), answered(false))), [LintKind::EqualityPassed]);
}

/// A fence that orders something else that follows is no mistake, whoever is signalled besides.
#[test]
fn a_fence_that_orders_something_is_right() {
    let program = |own_flag: bool| {
        move |pe: &Pe<Sim>| {
            let words = pe.alloc_zeroed::<u64>(2)?;
            if pe.my_pe() == 0 {
                pe.host().p(words.at(0), 1, 1)?;
                pe.host().fence()?;
                pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 2)?;
                if own_flag {
                    pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 1)?;
                }
            }
            pe.free(words)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(3), program(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(3), program(false))), [LintKind::FenceToAnotherPe]);
}

/// A quiet that covers nothing is a mistake only where somebody relies on the other scope.
#[test]
fn a_quiet_that_covers_nothing_needs_somebody_who_relies_on_it() {
    let program = |signals: bool| {
        move |pe: &Pe<Sim>| {
            let words = pe.alloc_zeroed::<u64>(2)?;
            let stream = pe.stream()?;
            if pe.my_pe() == 0 {
                pe.on(&stream).put(words.at(0), words.at(0), 1)?;
                pe.host().quiet()?;
                if signals {
                    pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 1)?;
                }
                pe.on(&stream).quiet()?;
                pe.synchronize(&stream)?;
            }
            pe.host().barrier_all()?;
            pe.free(words)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(2), program(false))), []);
    assert_eq!(kinds(&recorded(Config::pes(2), program(true))), [LintKind::WrongScope]);
}

/// Columns are written in turn, and what lies between the elements of one is another's.
#[test]
fn columns_that_share_no_element_are_not_overwritten() {
    let columns = |second: usize| {
        move |pe: &Pe<Sim>| {
            let (tile, told) = (pe.alloc_zeroed::<u64>(16)?, pe.alloc_zeroed::<u64>(2)?);
            for (number, column) in [0, second].into_iter().enumerate() {
                if pe.my_pe() == 0 {
                    pe.host().iput(tile.slice(column..), tile.slice(1..), 4, 4, 3, 1)?;
                    pe.host().fence()?;
                    pe.host().signal_op(told.signal(number), 1, SignalOp::Set, 1)?;
                } else {
                    pe.host().signal_wait_until(told.signal(number), Cmp::Eq, 1)?;
                }
            }
            pe.free(told)?;
            pe.free(tile)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(2), columns(3))), []);
    assert_eq!(kinds(&recorded(Config::pes(2), columns(0))), [LintKind::DestinationReused]);
    assert_eq!(kinds(&recorded(Config::pes(2), columns(4))), [LintKind::DestinationReused], "two of its elements");
}

/// Where the receiver is the sender, its own wait stands between the two calls.
#[test]
fn a_pe_that_has_waited_for_its_own_data_may_send_again() {
    let rounds = |waits: bool| {
        move |pe: &Pe<Sim>| {
            let (me, words) = (pe.my_pe(), pe.alloc_zeroed::<u64>(4)?);
            let (told, done) = (words.signal(2), words.signal(3));
            for round in 1..=3 {
                pe.host().put_signal(words.at(0), words.at(1), told, round, SignalOp::Set, me)?;
                if waits {
                    pe.host().signal_wait_until(told, Cmp::Eq, round)?;
                    pe.host().signal_op(done, round, SignalOp::Set, me)?;
                    pe.host().signal_wait_until(done, Cmp::Eq, round)?;
                } else {
                    pe.host().fence()?;
                }
            }
            pe.host().signal_wait_until(told, Cmp::Ge, 1)?;
            pe.free(words)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(1), rounds(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(1), rounds(false))), [LintKind::DestinationReused]);
    assert_proved(Config::pes(1), &rounds(true));
}

/// The host waits for what a stream sends to its own PE. The stream sends again without having heard of the host.
#[test]
fn a_stream_is_not_the_host_that_waits() {
    let program = |synchronizes: bool| {
        move |pe: &Pe<Sim>| {
            let (me, words, stream) = (pe.my_pe(), pe.alloc_zeroed::<u64>(3)?, pe.stream()?);
            let send =
                |value| pe.on(&stream).put_signal(words.at(0), words.at(1), words.signal(2), value, SignalOp::Set, me);
            send(1)?;
            if !synchronizes {
                pe.on(&stream).fence()?;
                send(2)?;
            }
            pe.host().signal_wait_until(words.signal(2), Cmp::Ge, 1)?;
            if synchronizes {
                send(2)?; // enqueued behind the wait
            }
            pe.synchronize(&stream)?;
            pe.host().barrier_all()?;
            pe.free(words)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(1), program(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(1), program(false))), [LintKind::DestinationReused]);
}

/// Everybody sends to everybody, itself included, and sends again when all have answered.
fn answered_rounds(pe: &Pe<Sim>) -> Result<()> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let data = pe.alloc_zeroed::<u64>(n + 1)?;
    let (told, answered) = (pe.alloc_zeroed::<u64>(n)?, pe.alloc_zeroed::<u64>(n)?);
    for round in 1..=3 {
        for to in 0..n {
            pe.host().put_signal(data.at(me), data.at(n), told.signal(me), round, SignalOp::Set, to)?;
        }
        for from in 0..n {
            pe.host().signal_wait_until(told.signal(from), Cmp::Eq, round)?;
            pe.read_one(data.at(from))?;
            pe.host().signal_op(answered.signal(me), round, SignalOp::Set, from)?;
        }
        for from in 0..n {
            pe.host().signal_wait_until(answered.signal(from), Cmp::Eq, round)?;
        }
    }
    pe.free(answered)?;
    pe.free(told)?;
    pe.free(data)
}

#[test]
fn an_exchange_with_oneself_among_all_is_right() {
    assert_eq!(kinds(&recorded(Config::pes(3), answered_rounds)), []);
    assert_proved(Config::pes(3), &answered_rounds);
}

/// Every schedule is seen, and none has a lint.
fn assert_proved(config: Config, program: &(impl Fn(&Pe<Sim>) -> Result<()> + Sync)) {
    let mut simulation = Simulation::new(Config { strict: true, ..config }).unwrap();
    let explored = simulation.explore(Explore::All { limit: 10_000 }, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        std::ops::ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.findings == 0 && explored.complete, "{explored:?}");
}

/// What each way of reading says of memory that is not zeroed: `write` is what PE 0 does before.
fn reads(
    write: impl Fn(&Pe<Sim>, &SymmetricBuf<u64>) -> Result<()>,
    read: impl Fn(&Pe<Sim>, &SymmetricBuf<u64>) -> Result<()>,
) -> Vec<LintKind> {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc::<u64>(4)?;
        if pe.my_pe() == 0 {
            write(pe, &words)?;
        }
        pe.host().barrier_all()?;
        if pe.my_pe() == 0 {
            read(pe, &words)?;
        }
        pe.host().barrier_all()?;
        pe.free(words)
    };
    let strict = Config { strict: true, ..Config::pes(2) };
    let run = recorded(strict.clone(), program);
    let kind = if run.verdict.lints.is_empty() { "finished" } else { "lint" };
    assert_eq!(run.verdict.kind.outcome(), kind, "{}", run.verdict);
    let mut simulation = Simulation::new(strict).unwrap();
    let explored = simulation.explore(Explore::random(20, 0), program, |other| {
        assert_eq!(kinds(other), kinds(&run), "in every order: {}", other.schedule);
        std::ops::ControlFlow::Continue(())
    });
    explored.unwrap();
    kinds(&run)
}

#[test]
fn what_nobody_has_written_is_not_read() {
    const FOUND: &[LintKind] = &[LintKind::UnwrittenRead];
    let some = |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.write(words.slice(..2), &[1, 2]);
    let part = reads(some, |pe, words| pe.read(words.slice(..2)).map(drop));
    assert_eq!(part, [], "it is written");
    assert_eq!(reads(some, |pe, words| pe.read(words).map(drop)), FOUND, "a part of it");
    assert_eq!(reads(some, |pe, words| pe.host().g(words.at(1), 0).map(drop)), []);
    assert_eq!(reads(some, |pe, words| pe.host().g(words.at(1), 1).map(drop)), FOUND, "another PE's");
    assert_eq!(reads(some, |pe, words| pe.host().signal_fetch(words.signal(3)).map(drop)), FOUND);
    assert_eq!(reads(some, |pe, words| pe.host().signal_op(words.signal(3), 1, SignalOp::Add, 0)), FOUND);
    let set = |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.host().signal_op(words.signal(3), 1, SignalOp::Set, 0);
    assert_eq!(reads(set, |pe, words| pe.host().signal_fetch(words.signal(3)).map(drop)), []);
    let wait =
        |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.host().signal_wait_until(words.signal(3), Cmp::Ge, 1).map(drop);
    assert_eq!(reads(set, wait), [], "the signal has come");
    assert_eq!(reads(some, wait), FOUND, "what is there by chance ends it");
}

/// A message may be shorter than its buffer; one of which nobody has written anything says nothing.
#[test]
fn a_transfer_may_carry_a_part_that_nobody_has_written() {
    const FOUND: &[LintKind] = &[LintKind::UnwrittenRead];
    let none = |_: &Pe<Sim>, _: &SymmetricBuf<u64>| Ok(());
    let some = |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.write(words.at(0), &[1]);
    let put = |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.host().put(words, words, 1);
    let nbi = |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.host().put_nbi(words, words, 1);
    let get = |pe: &Pe<Sim>, words: &SymmetricBuf<u64>| pe.host().get(words, words, 1);
    assert_eq!(reads(some, put), []);
    assert_eq!(reads(some, nbi), []);
    assert_eq!([reads(none, put), reads(none, nbi), reads(some, get)], [FOUND, FOUND, FOUND]);
}

#[test]
fn an_unwritten_read_names_the_lines_of_the_read_and_of_the_allocation() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc::<u32>(4)?;
        pe.read(&words)?;
        pe.free(words)
    };
    let run = recorded(Config { strict: true, ..Config::pes(2) }, program);
    insta::assert_snapshot!(without_lines(&run.verdict), @r"
    lint unwritten-read: alloc at backend-sim/tests/lints.rs:_ by PE 0 and read at backend-sim/tests/lints.rs:_ by PE 1
        nobody has written what the second call reads of that memory, and fresh memory can hold anything
        better: alloc_zeroed, or a write that comes before the read
        2 times in this run
    ");
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = LintKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), LintKind::ALL.len());
}

/// A fence orders signals and atomics, too.
#[test]
fn a_fence_between_two_signals_to_one_pe_is_no_fence_to_another() {
    let program = |both: bool| {
        move |pe: &Pe<Sim>| {
            let (x, flags) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(3)?);
            let host = pe.host();
            if pe.my_pe() == 0 {
                host.p(&x, 7, 1)?;
                host.fence()?;
                host.signal_op(flags.signal(0), 1, SignalOp::Set, 1)?;
                if both {
                    host.signal_op(flags.signal(1), 1, SignalOp::Set, 2)?;
                }
                host.fence()?;
                host.signal_op(flags.signal(2), 1, SignalOp::Set, 2)?;
            }
            pe.free(flags)?;
            pe.free(x)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(3), program(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(3), program(false))), [LintKind::FenceToAnotherPe]);
}

/// Data that its receiver has answered is there. Nobody needs the fence then, and nothing is wrong.
#[test]
fn a_fence_behind_an_answer_is_no_fence_to_another() {
    let program = |answered: bool| {
        move |pe: &Pe<Sim>| {
            let (x, flags, host) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(2)?, pe.host());
            match pe.my_pe() {
                0 => {
                    host.put_signal(&x, &x, flags.signal(0), 1, SignalOp::Set, 1)?;
                    if answered {
                        host.signal_wait_until(flags.signal(1), Cmp::Eq, 1)?;
                    }
                    host.fence()?;
                    host.signal_op(flags.signal(0), 1, SignalOp::Set, 2)?;
                }
                1 => {
                    host.signal_wait_until(flags.signal(0), Cmp::Eq, 1)?;
                    host.signal_op(flags.signal(1), 1, SignalOp::Set, 0)?;
                }
                _ => {
                    host.signal_wait_until(flags.signal(0), Cmp::Eq, 1)?;
                    if answered {
                        host.g(&x, 1)?;
                    }
                }
            }
            pe.free(flags)?;
            pe.free(x)
        }
    };
    assert_eq!(kinds(&recorded(Config::pes(3), program(true))), []);
    assert_eq!(kinds(&recorded(Config::pes(3), program(false))), [LintKind::FenceToAnotherPe]);
    assert_proved(Config::pes(3), &program(true));
}

/// A quiet covers whatever its scope has issued, and a put with a signal tells of itself.
#[test]
fn a_quiet_that_covers_a_get_is_in_no_wrong_scope() {
    let program = |gets: bool, signals: bool| {
        move |pe: &Pe<Sim>| {
            let (x, src, flags) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(2)?);
            let stream = pe.stream()?;
            if pe.my_pe() == 0 {
                if signals {
                    pe.on(&stream).put_signal(x.at(0), &src, flags.signal(0), 1, SignalOp::Set, 1)?;
                } else {
                    pe.on(&stream).put(x.at(0), &src, 1)?;
                }
                if gets {
                    pe.host().get_nbi(x.at(1), x.at(2), 1)?;
                }
                pe.host().quiet()?;
                pe.host().signal_op(flags.signal(1), 1, SignalOp::Set, 1)?;
            }
            pe.synchronize(&stream)?;
            pe.free(flags)?;
            pe.free(src)?;
            pe.free(x)
        }
    };
    let found = |gets, signals| kinds(&recorded(Config::pes(2), program(gets, signals)));
    assert_eq!(found(false, false), [LintKind::WrongScope]);
    for (gets, signals) in [(true, false), (false, true), (true, true)] {
        assert!(!found(gets, signals).contains(&LintKind::WrongScope), "{gets} {signals}");
    }
}

/// A PE sees its own store through a pointer before anybody else does.
#[test]
fn what_a_pe_has_stored_itself_is_written() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc::<u64>(1)?;
        if pe.my_pe() == 0 {
            let there = pe.peer(&x, 1)?.expect("one node");
            there.write(&[7])?;
            onesided::expect_eq(there.read()?[0], 7, "its own store")?;
        }
        pe.free(x)
    };
    let mut simulation = Simulation::new(Config { strict: true, ..Config::pes(2) }).unwrap();
    let explored = simulation.explore(Explore::random(50, 0), program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 50);
}
