//! Turns: a team has one collective at a time, in the order of the calls, whichever stream or host of a PE enters it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Predefined, ReduceOp, SignalOp};
use onesided_sim::{Config, Explore, Reduce, Sim, Simulation};

use crate::common::{endings, verdict, without_lines};

#[test]
fn two_collectives_of_a_team_at_a_time() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(4)?;
        let (a, b) = (pe.stream()?, pe.stream()?);
        pe.on(&a).reduce(pe.world(), words.at(0), words.at(1), ReduceOp::Sum)?;
        pe.on(&b).barrier_all()?;
        pe.synchronize(&a)?;
        pe.synchronize(&b)?;
        pe.free(words)
    };
    let verdict = verdict(2, program);
    insta::assert_snapshot!(without_lines(verdict), @r"
    concurrent collectives: PE 1 entered barrier on TEAM_WORLD while it was still in reduce; a team has one collective at a time, so order the two by an event or use two teams
      PE 0: could go on; its last call was at backend-sim/tests/turns.rs:_
      PE 1: could go on; its last call was at backend-sim/tests/turns.rs:_
      PE 1 stream 0: in reduce at backend-sim/tests/turns.rs:_, waits for PE 0 to enter reduce #2 on TEAM_WORLD
      PE 1 stream 1: in barrier at backend-sim/tests/turns.rs:_, waits for a collective that went wrong
    ");
}

#[test]
fn a_collective_before_one_that_was_called_earlier() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(3)?;
        let (a, b) = (pe.stream()?, pe.stream()?);
        pe.on(&a).signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
        pe.on(&a).reduce(pe.world(), words.at(1), words.at(2), ReduceOp::Sum)?;
        pe.on(&b).barrier_all()?;
        pe.on(&b).signal_op(words.signal(0), 1, SignalOp::Set, pe.my_pe())?;
        pe.synchronize(&a)?;
        pe.free(words)
    };
    insta::assert_snapshot!(without_lines(verdict(2, program)), @r"
    collectives out of order: PE 1 entered barrier on TEAM_WORLD (called at backend-sim/tests/turns.rs:_), while reduce (called before it, at backend-sim/tests/turns.rs:_) has not begun; between GPUs, a team's collectives must run in the order of their calls: call them in that order, order the two by an event, or use two teams
      PE 0: could go on; its last call was at backend-sim/tests/turns.rs:_
      PE 1: could go on; its last call was at backend-sim/tests/turns.rs:_
      PE 1 stream 0: in signal_wait_until at backend-sim/tests/turns.rs:_, waits for buf0+0 (made at backend-sim/tests/turns.rs:_) == 1, found 0 (u64)
      PE 1 stream 1: in barrier at backend-sim/tests/turns.rs:_, waits for a collective that went wrong
    ");
}

/// The barrier of the first stream completes a put before it enters, and is an earlier call all the same.
#[test]
fn a_collective_before_a_barrier_that_still_completes() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(3)?;
        let (a, b) = (pe.stream()?, pe.stream()?);
        pe.on(&a).put_nbi(words.at(0), words.at(1), 1 - pe.my_pe())?;
        pe.on(&a).barrier_all()?;
        pe.on(&b).reduce(pe.world(), words.at(1), words.at(2), ReduceOp::Sum)?;
        pe.synchronize(&a)?;
        pe.synchronize(&b)?;
        pe.free(words)
    };
    let ends = endings(Config::pes(2), program).into_keys().collect::<Vec<_>>();
    assert_eq!(ends, ["collectives out of order", "concurrent collectives", "finished"]);
}

/// A stream and the host compete for the turns of a team: entering and leaving are part of what a step touches, or else the
/// search takes orders for equivalent that are not.
#[test]
fn all_schedules_end_as_random_ones_do_where_agents_compete() {
    let with_sync = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(3)?;
        let stream = pe.stream()?;
        pe.on(&stream).put_nbi(words.at(0), words.at(1), 1 - pe.my_pe())?;
        pe.on(&stream).barrier_all()?;
        pe.write(words.at(2), &[1])?;
        pe.host().sync_all()?;
        pe.synchronize(&stream)?;
        pe.free(words)
    };
    let with_alloc = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(1)?;
        let stream = pe.stream()?;
        pe.on(&stream).barrier_all()?;
        pe.write(&words, &[1])?;
        let more = pe.alloc::<u64>(1)?;
        pe.synchronize(&stream)?;
        pe.free(more)?;
        pe.free(words)
    };
    for program in [with_sync, with_alloc] {
        let mut random = BTreeSet::new();
        let explore = Explore::random(2000, 1);
        let explored = Simulation::new(Config::pes(2)).unwrap().explore(explore, program, |run| {
            random.insert(run.verdict.kind.outcome());
            ControlFlow::Continue(())
        });
        explored.unwrap();
        let all: BTreeSet<String> = endings(Config::pes(2), program).into_keys().collect();
        assert_eq!(all, random);
        assert_eq!(all.len(), 3, "{all:?}");
    }
}

#[test]
fn a_team_of_one_has_no_order() {
    let program = |pe: &Pe<Sim>| {
        let (a, b) = (pe.stream()?, pe.stream()?);
        pe.on(&a).barrier_all()?;
        pe.on(&b).barrier_all()?;
        pe.synchronize(&a)?;
        pe.synchronize(&b)
    };
    assert_eq!(endings(Config::pes(1), program).into_keys().collect::<Vec<_>>(), ["finished"]);
}

#[test]
fn the_same_two_collectives_in_the_order_of_an_event_are_fine() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(4)?;
        let (a, b, event) = (pe.stream()?, pe.stream()?, pe.event()?);
        pe.on(&a).reduce(pe.world(), words.at(0), words.at(1), ReduceOp::Sum)?;
        pe.record(&event, &a)?;
        pe.wait_event(&event, &b)?;
        pe.on(&b).barrier_all()?;
        pe.synchronize(&b)?;
        pe.free(words)
    };
    assert!(verdict(2, program).is_ok());
    assert_eq!(Vec::from_iter(endings(Config::pes(2), program).into_keys()), ["finished"]);
}

/// Two groups of one kind of team meet in either order: parts of their collectives have the same names in both.
#[test]
fn teams_are_called_the_same_whoever_uses_them_first() {
    let program = |pe: &Pe<Sim>| {
        let node = pe.team(Predefined::Node).expect("every PE has a node");
        let words = pe.alloc_zeroed::<u64>(2)?;
        let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        let host = pe.host();
        let signal = |word: usize, value, to| host.signal_op(words.signal(word), value, SignalOp::Set, to);
        let wait = |word: usize| host.signal_wait_until(words.signal(word), Cmp::Ge, 1).map(drop);
        match pe.my_pe() {
            0 => signal(0, 1, 1).and_then(|()| wait(1))?,
            1 => wait(0).and_then(|()| signal(1, 1, 0))?,
            2 => signal(0, 1, 3).and_then(|()| wait(1))?,
            _ => wait(0).and_then(|()| signal(1, 1, 2))?,
        }
        host.broadcast(node, &dst, &src, 0)?;
        if pe.my_pe() == 3 {
            signal(0, 2, 1)?;
        }
        pe.free(src)?;
        pe.free(dst)?;
        pe.free(words)
    };
    let config = Config { nodes: 2, ..Config::pes(4) };
    for reduce in [Reduce::Nothing, Reduce::Counters, Reduce::Everything] {
        let mut simulation = Simulation::new(Config { reduce, ..config.clone() }).unwrap();
        let explored = simulation.explore(Explore::All { limit: 100_000 }, program, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            ControlFlow::Continue(())
        });
        let explored = explored.unwrap();
        assert!(explored.complete && explored.redundant == 0, "{reduce:?} {explored:?}");
    }
}
