//! What an explanation claims is so: what was shown is shown, what is needed is needed, and a run that stands for another one ends as it does.

use std::ops::ControlFlow;

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Edit, Effort, Enough, Explore, Fix, Ordering, Run, Shown, Sim, Simulation, robustness};

/// The line of this file that has a mark.
fn line(mark: &str) -> u32 {
    let text = include_str!("explain_claims.rs");
    let found = text.lines().zip(1..).find(|(line, _)| line.ends_with(&format!("// {mark}")));
    found.map(|(_, number)| number).unwrap_or_else(|| panic!("no line is marked {mark}"))
}

/// The first finding of a search of all schedules that is meant, recorded.
fn finding<T>(
    simulation: &mut Simulation,
    program: impl Fn(&Pe<Sim>) -> Result<T>,
    is_meant: impl Fn(&Run<T>) -> bool,
) -> Run<T> {
    let mut found = None;
    let explored = simulation.explore(Explore::All { limit: 10_000 }, &program, |run| {
        found = (run.has_finding() && is_meant(run)).then(|| run.without_results());
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    explored.unwrap();
    simulation.reproduce(&found.expect("something is wrong"), &program).unwrap()
}

#[track_caller]
fn fix(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Fix {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    let run = finding(&mut simulation, &program, |_| true);
    simulation.fix(&run, Effort::LITTLE, &program).unwrap().fix.expect("a fix")
}

/// PE 1 gives up after so many polls, and PE 0 may come later than that. The proof says what it supposes, as that of the whole program does.
#[test]
fn a_loop_that_counts_its_polls_is_proved_if_it_counts_few() {
    let fix = fix(2, |pe| {
        let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().p(&data, 7, 1)?; // polled for
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            let mut polls = 0;
            while pe.host().signal_fetch(flag.signal(0))? == 0 {
                polls += 1;
                expect_eq(polls < 1000, true, "it comes in time")?;
            }
            expect_eq(pe.read_one(&data)?, 7, "the data")?;
        }
        pe.free(flag)?;
        pe.free(data)
    });
    let [Edit::Insert { call: Ordering::Fence, after, .. }] = fix.edits[..] else { panic!("{fix}") };
    assert_eq!(after.line(), line("polled for"));
    assert!(matches!(fix.shown, Shown::Proved { polls: true, .. }), "{fix}");
    assert!(fix.to_string().contains("proved, if no loop counts more than 32 polls"), "{fix}");
}

/// A barrier is the strongest call. Where a sync does it, something weaker is enough.
#[test]
fn a_barrier_is_needed_only_where_a_sync_is_not_enough() {
    let overwritten = fix(2, |pe| {
        let data = pe.alloc_zeroed::<u64>(1)?;
        pe.read_one(&data)?; // read before
        pe.host().p(&data, 7, 1 - pe.my_pe())?;
        pe.host().barrier_all()?;
        pe.free(data)
    });
    let sent = fix(2, |pe| {
        let data = pe.alloc_zeroed::<u64>(1)?;
        pe.host().p(&data, 7, 1 - pe.my_pe())?; // sent before
        pe.read_one(&data)?;
        pe.free(data)
    });
    for (fix, mark, is_weakest) in [(overwritten, "read before", false), (sent, "sent before", true)] {
        let [Edit::Insert { call: Ordering::Barrier, after, .. }] = fix.edits[..] else { panic!("{fix}") };
        assert_eq!((after.line(), fix.is_weakest), (line(mark), is_weakest), "{fix}");
        assert!(matches!(fix.shown, Shown::Proved { .. }), "{fix}");
        let is_said = fix.to_string().ends_with(": proved; `sync_all` in place of `barrier_all` is enough");
        assert_eq!((fix.sync_is_enough, is_said), (!is_weakest, !is_weakest), "{fix}");
    }
}

/// Nobody but the writer is in the line that writes, and nobody but the reader in the one that reads. They meet behind both, once in each round.
#[test]
fn rounds_of_two_pes_get_a_barrier_behind_each_side() {
    let fix = fix(2, |pe| {
        let (slot, block, full) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        for round in 1..=2 {
            if pe.my_pe() == 0 {
                pe.write(&block, &[round])?;
                pe.host().put_signal(&slot, &block, full.signal(0), round, SignalOp::Set, 1)?; // written
                pe.host().quiet()?;
            } else {
                pe.host().signal_wait_until(full.signal(0), Cmp::Ge, round)?;
                expect_eq(pe.read_one(&slot)?, round, "the block")?; // seen
            }
        }
        pe.free(full)?;
        pe.free(block)?;
        pe.free(slot)
    });
    let places = |edit: &Edit| match *edit {
        Edit::Insert { call: Ordering::Barrier, after, on_stream: false } => after.line(),
        _ => panic!("{fix}"),
    };
    assert_eq!(fix.edits.iter().map(places).collect::<Vec<_>>(), [line("seen"), line("written")]);
    assert!(matches!(fix.shown, Shown::Proved { .. }) && !fix.is_weakest, "{fix}");
}

/// PE 0 asks again and again, and sends something in between: in order it never ends, and it need not be wrong.
#[test]
fn what_did_not_end_is_not_needed() {
    let program = |pe: &Pe<Sim>| {
        let (flag, count) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 1 {
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 0)?;
            pe.host().quiet()?;
        }
        pe.host().sync_all()?; // before the loop
        if pe.my_pe() == 0 {
            while pe.host().signal_fetch(flag.signal(0))? == 0 {
                pe.host().atomic_inc(&count, 1)?;
            }
        }
        pe.free(count)?;
        pe.free(flag)
    };
    let simulation = Simulation::new(Config { max_steps: Some(25), ..Config::pes(2) }).unwrap();
    let weaker = simulation.weaken(Effort::LITTLE, program).unwrap();
    let sync = weaker.iter().find(|weaker| weaker.at.line() == line("before the loop")).expect("it is a call");
    assert_eq!(sync.enough, Enough::NotTried, "{}", sync.in_words(2));
}

/// Two waits that never end, and one of them needs more that comes in another order.
fn two_deadlocks(pe: &Pe<impl Backend>) -> Result<()> {
    let (word, never) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?);
    if pe.my_pe() == 0 {
        for number in [0, 1] {
            pe.host().signal_op(word.signal(number), 1, SignalOp::Set, 1)?;
            pe.host().signal_op(word.signal(number), 2, SignalOp::Set, 1)?;
        }
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 && pe.host().signal_fetch(word.signal(0))? == 1 {
        if pe.host().signal_fetch(word.signal(1))? == 1 {
            pe.host().signal_wait_until(never.signal(0), Cmp::Eq, 1)?; // both overtaken
        }
        pe.host().signal_wait_until(never.signal(1), Cmp::Eq, 1)?;
    }
    pe.free(never)?;
    pe.free(word)
}

#[test]
fn a_deadlock_stands_for_one_in_the_same_lines() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let waits = |run: &Run<()>| run.verdict.agents[1].at.map(|at| at.line());
    let run = finding(&mut simulation, two_deadlocks, |run| waits(run) == Some(line("both overtaken")));
    let minimized = simulation.minimize(&run, Effort::LITTLE, two_deadlocks).unwrap().unwrap();
    assert_eq!(waits(&minimized.run), Some(line("both overtaken")), "{}", minimized.run.verdict);
    assert_eq!(minimized.exceptions.len(), 2, "{:?}", minimized.exceptions);
}

/// Whoever is first has the first ticket. Both then write the same, and that matters to nobody: what follows a ticket is no reason for it.
#[test]
fn what_comes_behind_a_difference_is_no_witness() {
    for pes in [2, 3] {
        let program = |pe: &Pe<Sim>| -> Result<u64> {
            let (ticket, word) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            let mine = pe.host().atomic_fetch_inc(&ticket, 0)?;
            pe.host().p(&word, 7, 0)?;
            pe.host().quiet()?;
            pe.host().barrier_all()?;
            pe.free(word)?;
            pe.free(ticket)?;
            Ok(mine)
        };
        let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
        let run = simulation.run(program).unwrap();
        let witness = simulation.witness(&run.verdict.races[0], Effort::LITTLE, program).unwrap();
        assert!(witness.run.is_none() && witness.other.is_some(), "{:?}", witness.run.map(|run| run.exceptions));
    }
}

/// PE 0 sends to itself until its own message has come: with complete operations that is at once, and otherwise nobody knows when.
#[test]
fn a_run_that_is_given_up_is_no_outcome() {
    let program = |pe: &Pe<Sim>| -> Result<u64> {
        let words = pe.alloc_zeroed::<u64>(2)?;
        let mut seen = 0;
        if pe.my_pe() == 0 {
            pe.host().p(words.at(0), 1, 0)?;
            while pe.read_one(words.at(0))? == 0 {
                pe.host().atomic_inc(words.at(1), 0)?;
            }
            seen = 1;
        }
        pe.free(words)?;
        Ok(seen)
    };
    let found = robustness(Config { max_steps: Some(40), ..Config::pes(1) }, 1000, program).unwrap();
    assert!(!found.is_complete() && found.odd.is_empty(), "{found}");
    assert!(found.to_string().starts_with("not known for "), "{found}");
}
