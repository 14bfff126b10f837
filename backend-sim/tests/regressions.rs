//! What was wrong once and must stay right: each test is the smallest program that showed it.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::common;
use onesided::{Bootstrap, Cmp, ErrorKind, InitMethod, Pe, Result, SignalOp};
use onesided_sim::{Config, Explore, Profile, Races, Sim, Simulation, Strategy};

use crate::common::{endings, results};

/// A stream that is made later may quiet before an earlier stream has issued what is enqueued on it.
#[test]
fn work_enqueued_before_a_second_stream_exists_may_run_after_its_quiet() {
    let seen = results(Config::pes(2), |pe| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        let mut saw = 0;
        if pe.my_pe() == 0 {
            let first = pe.stream()?;
            pe.on(&first).p(x.at(0), 1, 1)?;
            let second = pe.stream()?;
            pe.on(&second).quiet()?;
            pe.synchronize(&second)?;
            pe.host().signal_op(x.signal(1), 1, SignalOp::Set, 1)?;
            pe.synchronize(&first)?;
            pe.on(&first).quiet()?;
            pe.synchronize(&first)?;
        } else {
            pe.host().signal_wait_until(x.signal(1), Cmp::Eq, 1)?;
            saw = pe.read(x.at(0))?[0];
        }
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(Vec::from_iter(seen.into_keys()), [[0, 0], [0, 1]]);
}

/// Whether memory is in use when it is freed depends on what has arrived by then.
#[test]
fn an_exhaustive_search_also_finds_the_schedules_in_which_freed_memory_is_no_longer_used() {
    let found = endings(Config::pes(2), |pe| {
        let (x, y) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        let stream = pe.stream()?;
        if pe.my_pe() == 0 {
            pe.on(&stream).p(&x, 1, 1)?;
        } else {
            pe.read(&y)?;
        }
        pe.free(x)?;
        pe.free(y)
    });
    assert_eq!(Vec::from_iter(found.into_keys()), ["finished", "free of memory in use"]);
}

/// A program whose later runs have fewer choices than its first.
#[test]
fn a_program_that_does_less_each_time_is_not_deterministic() {
    let runs = Cell::new(0);
    let shrinking = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            runs.set(runs.get() + 1);
            let puts = if runs.get() == 1 { 2 } else { 0 };
            (0..puts).try_for_each(|value| pe.host().p(&x, value, 1))?;
        }
        pe.free(x)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let all = Explore::All { limit: 100 };
    let error = simulation.explore(all, shrinking, |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongResult);
}

/// The limit of an exhaustive search is another than that of single runs.
#[test]
fn a_run_that_reached_the_step_limit_of_a_search_comes_back() {
    let polls = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        while pe.my_pe() == 1 && pe.read(&x)?[0] == 0 {}
        pe.free(x)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let mut found = None;
    let explored = simulation.explore(Explore::All { limit: 1 }, polls, |run| {
        found = Some(run.without_results());
        ControlFlow::Break(())
    });
    explored.unwrap();
    let again = simulation.reproduce(&found.unwrap(), polls).unwrap();
    assert_eq!(again.verdict.kind.outcome(), "step limit");
}

/// The stack that its yielder lies on belongs to somebody else by then.
#[test]
fn a_pe_kept_from_an_earlier_run_is_refused_in_a_later_one() {
    let kept: OnceCell<Pe<Sim>> = OnceCell::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let first = simulation.run_process(|process| {
        let pe = process.init(InitMethod::Launcher)?;
        if process.rank() == 0 {
            kept.get_or_init(|| pe);
        }
        Ok(())
    });
    assert!(first.unwrap().is_ok());
    let second = simulation.run_process(|process| {
        let pe = process.init(InitMethod::Launcher)?;
        let stale = kept.get().expect("the first run kept it");
        let kind = stale.host().quiet().err().map(|error| error.kind());
        pe.finalize()?;
        Ok(kind)
    });
    assert_eq!(second.unwrap().into_results().unwrap(), [Some(ErrorKind::Aborted); 2]);
}

#[test]
fn a_report_shows_negative_numbers_as_such() {
    let verdict = common::verdict(1, |pe| {
        let x = pe.alloc_zeroed::<i32>(1)?;
        pe.write(&x, &[-5])?;
        pe.host().wait_until(&x, Cmp::Gt, -1)?;
        pe.free(x)
    });
    assert!(verdict.to_string().contains("> -1, found -5 (i32)"), "{verdict}");
}

/// Allocation ends with a barrier (memory model, section 7), and a barrier completes what the host issued.
#[test]
fn an_allocation_completes_earlier_puts_of_the_host() {
    let seen = results(Config::pes(2), |pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().p(&x, 1, 1)?;
        }
        let y = pe.alloc::<u64>(1)?;
        let saw = pe.read(&x)?[0];
        pe.free(y)?;
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(Vec::from_iter(seen.into_keys()), [[0, 1]]);
}

/// Transfers have names of their own however many streams there are.
#[test]
fn transfers_of_the_256th_stream_are_not_taken_for_the_hosts() {
    let seen = results(Config::pes(2), |pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        let streams = (0..256).map(|_| pe.stream()).collect::<Result<Vec<_>>>()?;
        if pe.my_pe() == 0 {
            pe.host().p(&x, 1, 1)?;
            pe.on(&streams[255]).p(&x, 2, 1)?;
            pe.synchronize(&streams[255])?;
        }
        pe.on(&streams[255]).barrier_all()?;
        pe.synchronize(&streams[255])?;
        pe.host().barrier_all()?;
        let saw = pe.read(&x)?[0];
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(Vec::from_iter(seen.into_keys()), [[0, 1], [0, 2]]);
}

/// Under `nvlink` a fence completes, as a quiet does; but it must not take transfers away from other streams' quiets, which
/// a fence under `spec` does not: everything that `nvlink` allows is allowed by `spec`.
#[test]
fn a_fence_that_is_a_quiet_leaves_other_streams_their_quiets() {
    let seen = |profile: Profile| {
        let all = results(Config { profile, ..Config::pes(1) }, |pe| {
            let x = pe.alloc_zeroed::<u64>(2)?;
            let (first, second) = (pe.stream()?, pe.stream()?);
            pe.on(&first).fence()?;
            pe.on(&second).signal_op(x.signal(0), 1, SignalOp::Set, 0)?;
            pe.on(&second).quiet()?;
            pe.on(&second).put(x.at(1), x.at(0), 0)?;
            for stream in [&first, &second] {
                pe.synchronize(stream)?;
            }
            for stream in [&first, &second] {
                pe.on(stream).quiet()?;
                pe.synchronize(stream)?;
            }
            let saw = pe.read(&x)?;
            pe.free(x)?;
            Ok(saw)
        });
        Vec::from_iter(all.into_keys())
    };
    assert_eq!(seen(Profile::Spec), [[[1, 1]]]);
    assert_eq!(seen(Profile::Nvlink), [[[1, 1]]]);
}

/// A word that begins as a large number passes zero when it is added to: it is no counter for a wait.
#[test]
fn a_word_that_overflows_is_no_counter() {
    let mut outcomes = std::collections::BTreeSet::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let program = |pe: &Pe<Sim>| {
        let (flag, other) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 1 {
            pe.write(&flag, &[u64::MAX])?;
        }
        pe.host().barrier_all()?;
        let mut seen = 0;
        if pe.my_pe() == 0 {
            for _ in 0..3 {
                pe.host().signal_op(flag.signal(0), 1, SignalOp::Add, 1)?;
            }
        } else {
            for _ in 0..4 {
                pe.host().atomic_fetch(&other, 0)?;
            }
            pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, 2)?;
            seen = pe.host().signal_fetch(flag.signal(0))?;
        }
        pe.free(other)?;
        pe.free(flag)?;
        Ok(seen >= 100)
    };
    let explored = simulation.explore(Explore::All { limit: 10_000 }, program, |run| {
        outcomes.insert(run.results[1]);
        ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete);
    assert_eq!(outcomes, [Some(false), Some(true)].into());
}

/// The wait looks at one word of a put of many, which come together.
#[test]
fn a_wait_may_look_at_a_word_of_a_large_put() {
    for (races, pieces) in [(Races::Find, 1), (Races::Find, 2), (Races::Note, 1), (Races::Note, 4)] {
        let config = Config { races, pieces, ..Config::pes(2) };
        let mut simulation = Simulation::new(config).unwrap();
        let program = |pe: &Pe<Sim>| {
            let (data, source) = (pe.alloc_zeroed::<i32>(1024)?, pe.alloc::<i32>(1024)?);
            pe.write(&source, &(1..=1024).collect::<Vec<i32>>())?;
            if pe.my_pe() == 0 {
                pe.host().put(&data, &source, 1)?;
            } else {
                pe.host().wait_until(data.at(1000), Cmp::Eq, 1001)?;
            }
            pe.free(source)?;
            pe.free(data)
        };
        let explored = simulation.explore(Explore::All { limit: 1000 }, program, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            ControlFlow::Continue(())
        });
        assert!(explored.unwrap().complete, "{races:?} {pieces}");
    }
}

/// A poll goes on by a change that a call of another host makes itself.
#[test]
fn a_poll_depends_on_the_call_that_changes_its_word() {
    for races in [Races::Find, Races::Note] {
        let mut simulation = Simulation::new(Config { races, ..Config::pes(2) }).unwrap();
        let program = |pe: &Pe<Sim>| {
            let word = pe.alloc_zeroed::<u64>(1)?;
            pe.intended_race("a flag", |pe| {
                if pe.my_pe() == 0 {
                    return pe.write(&word, &[1]);
                }
                while pe.host().atomic_fetch(&word, 0)? != 1 {}
                Ok(())
            })?;
            pe.free(word)
        };
        let explored = simulation.explore(Explore::All { limit: 1000 }, program, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            ControlFlow::Continue(())
        });
        let explored = explored.unwrap();
        assert_eq!(explored.given_up, 0, "{races:?} {explored:?}");
    }
}

/// A program that ends all PEs with status 0 may have raced before.
#[test]
fn a_race_before_the_end_of_all_is_found() {
    let program = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().p(&word, 1, 1)?;
        } else {
            pe.read(&word)?;
        }
        pe.host().barrier_all()?;
        if pe.my_pe() == 0 {
            pe.global_exit(0);
        }
        pe.free(word)
    };
    let run = Simulation::new(Config::pes(2)).unwrap().run(program).unwrap();
    assert_eq!((run.verdict.kind.outcome().as_str(), run.verdict.races.len()), ("race", 1), "{}", run.verdict);
}

/// A PE that goes on as soon as it can, and then ends the program for all, does so in every schedule that can still be told apart.
#[test]
fn what_happens_before_a_pe_ends_the_program_for_all_is_tried() {
    let saw = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        match pe.my_pe() {
            0 => {
                pe.host().atomic_set(words.at(0), 1, 1)?;
                pe.host().fence()?;
                pe.host().atomic_set(words.at(1), 1, 2)?;
            }
            1 => {
                pe.host().wait_until(words.at(0), Cmp::Ge, 1)?;
                pe.global_exit(0);
            }
            _ if pe.host().atomic_fetch(words.at(1), 2)? == 1 => panic!("it saw 1"),
            _ => {}
        }
        pe.free(words)
    };
    let all = Explore::All { limit: 100 };
    assert_eq!(outcomes(Races::Note, 3, all, saw), ["exited: 0", "panicked"]);
    assert_eq!(outcomes(Races::Find, 3, all, saw), ["exited: 0", "panicked"]);
}

/// How the schedules of a search end, in one word each.
fn outcomes(races: Races, pes: usize, explore: Explore, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Vec<String> {
    let mut simulation = Simulation::new(Config { races, ..Config::pes(pes) }).unwrap();
    let mut outcomes = BTreeSet::new();
    let visited = simulation.explore(explore, program, |run| {
        outcomes.insert(run.verdict.kind.outcome());
        ControlFlow::Continue(())
    });
    visited.unwrap();
    Vec::from_iter(outcomes)
}

const RANDOM: Explore = Explore::Random { seed: 1, schedules: 2, strategy: Strategy::Plain };

/// What a PE has issued before it ends the program for all may still have an effect.
#[test]
fn what_a_pe_issues_before_it_ends_the_program_for_all_may_be_seen() {
    let told = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 1)?;
            pe.global_exit(0);
        }
        pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
        panic!("it was told")
    };
    for explore in [RANDOM, Explore::All { limit: 10 }] {
        assert_eq!(outcomes(Races::Find, 2, explore, told), ["panicked"], "{explore:?}");
    }
}

/// Others may be in a loop that only the end of the program leaves.
#[test]
fn a_loop_that_only_the_end_of_the_program_leaves_is_no_finding() {
    let reads = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.global_exit(0);
        }
        while pe.read(&word)?[0] == 0 {}
        pe.free(word)
    };
    assert!(Simulation::new(Config::pes(2)).unwrap().run(reads).unwrap().is_ok());
    assert_eq!(outcomes(Races::Find, 2, RANDOM, reads), ["exited: 0"]);
    // a search says that it has not looked at every step
    assert_eq!(outcomes(Races::Find, 2, Explore::All { limit: 10 }, reads), ["step limit"]);
}

/// A store by multicast is one of its own PE to its own copy: what that does next follows it.
#[test]
fn a_multicast_store_is_seen_at_once_by_its_own_pe() {
    for again in [false, true] {
        let seen = results(Config::pes(2), |pe| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            let mut saw = 7;
            if pe.my_pe() == 0 {
                pe.multicast(pe.world(), &x)?.expect("there is multicast").write(&[7])?;
                if again {
                    pe.write(&x, &[9])?;
                    pe.host().barrier_all()?;
                } else {
                    saw = pe.read_one(&x)?;
                    pe.host().barrier_all()?;
                }
            } else {
                pe.host().barrier_all()?;
            }
            if again && pe.my_pe() == 0 {
                saw = pe.read_one(&x)?;
            }
            pe.free(x)?;
            Ok(saw)
        });
        assert_eq!(Vec::from_iter(seen.into_keys()), [[if again { 9 } else { 7 }, 7]]);
    }
}

/// A store through a peer's pointer arrives in pieces, here of three words each. A piece that had no power of two as its size was a panic.
#[test]
fn a_store_through_a_pointer_arrives_in_pieces_of_any_size() {
    onesided_sim::prove(2, |pe| {
        let buf = pe.alloc_zeroed::<u64>(12)?;
        if pe.my_pe() == 0 {
            pe.peer(&buf, 1)?.expect("both are on one node").write(&[7; 12])?;
        }
        pe.host().barrier_all()?;
        onesided::expect_eq(&pe.read(&buf)?, &vec![7 * pe.my_pe() as u64; 12], "what was stored")?;
        pe.free(buf)
    });
}

/// A word is stored in two parts, and waited for. The wait may end behind either of them: the search asked only what was there before both.
#[test]
fn a_wait_may_end_behind_any_part_of_its_word() {
    let found = results(Config::pes(2), |pe| {
        let word = pe.alloc_zeroed::<u16>(1)?;
        let mut found = 0;
        if pe.my_pe() == 0 {
            pe.peer(word.at(0).as_bytes(), 1)?.expect("both are on one node").write(&[7, 7])?;
        } else {
            pe.host().wait_until(&word, Cmp::Ne, 0)?;
            found = pe.read(&word)?[0];
        }
        pe.free(word)?;
        Ok(found)
    });
    assert_eq!(Vec::from_iter(found.into_keys()), [[0, 0x0007], [0, 0x0700], [0, 0x0707]]);
}

/// Two elements are sent, each with a signal that says how many there are by now. Who waits for one, and is told of two, may read both: in a proof, it
/// was told only what came with the first.
#[test]
fn a_wait_that_returns_a_later_value_comes_after_what_that_tells() {
    onesided_sim::prove(2, |pe: &Pe<Sim>| {
        let (data, sent) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            for i in 0..2 {
                pe.host().p(data.at(i), 10 + i as u64, 1)?;
                pe.host().fence()?;
                pe.host().signal_op(sent.signal(0), i as u64 + 1, SignalOp::Set, 1)?;
            }
        } else {
            let count = pe.host().signal_wait_until(sent.signal(0), Cmp::Ge, 1)? as usize;
            onesided::expect_eq(&pe.read(data.slice(..count))?[..], &[10, 11][..count], "what was sent")?;
        }
        pe.free(sent)?;
        pe.free(data)
    });
}
