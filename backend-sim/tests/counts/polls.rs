//! Loops that poll: how many classes they have when no poll is repeated before something has changed.

use std::ops::ControlFlow;

use onesided::{Pe, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Explore, Explored, Races, Sim, Simulation, VerdictKind};

use super::with_words;

/// A proof, of which no run may be a finding or reach the step limit.
fn proof<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Explored {
    search(Config::pes(pes), program)
}

fn search<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Explored {
    let config = Config { pieces: 1, ..config };
    let explored = Simulation::new(config).unwrap().explore(Explore::All { limit: 100_000 }, program, |run| {
        assert!(run.is_ok() || matches!(run.verdict.kind, VerdictKind::PollsBounded), "{}", run.verdict);
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.bound.is_none() && explored.redundant == 0, "{explored:?}");
    assert_eq!(explored.given_up, explored.polls_bounded);
    explored
}

/// Classes of a program that is proved, also where races are only noted.
#[track_caller]
fn classes<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> u64 {
    let (all, proof) = (search(Config { races: Races::Note, ..Config::pes(pes) }, &program), proof(pes, &program));
    assert!(all.complete && proof.complete && proof.polls, "{proof:?}");
    assert_eq!(all.schedules, proof.schedules);
    proof.schedules
}

#[test]
fn a_poll_fails_once_or_not_at_all() {
    let program = with_words(2, |pe, x| {
        if pe.my_pe() == 1 {
            pe.host().p(x.at(1), 7, 0)?;
            pe.host().fence()?;
            return pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 0);
        }
        while pe.host().signal_fetch(x.signal(0))? == 0 {}
        pe.read(x.at(1)).map(drop)
    });
    assert_eq!(classes(2, program), 2);
    // the same from afar
    let remote = with_words(1, |pe, x| match pe.my_pe() {
        1 => pe.host().atomic_set(x, 1, 0),
        _ => {
            while pe.host().atomic_fetch(x, 0)? == 0 {}
            Ok(())
        }
    });
    assert_eq!(classes(2, remote), 2);
}

#[test]
fn a_poll_fails_between_updates_that_do_not_end_its_loop() {
    // the values 0, 1, 2 come one after the other, and the loop ends with 2: it fails at each of 0 and 1, or does not
    let program = with_words(1, |pe, x| {
        if pe.my_pe() == 1 {
            pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 0)?;
            pe.host().fence()?;
            return pe.host().signal_op(x.signal(0), 2, SignalOp::Set, 0);
        }
        while pe.host().signal_fetch(x.signal(0))? < 2 {}
        Ok(())
    });
    assert_eq!(classes(2, program), 4);
}

/// A spin lock: who fails to take it is the next to try when it has changed hands.
fn spin_lock(pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    while pe.host().atomic_compare_swap(words.at(0), 0, 1, 0)? != 0 {}
    let found = pe.host().g(words.at(1), 0)?;
    pe.host().p(words.at(1), found + 1, 0)?;
    pe.host().quiet()?;
    pe.host().atomic_set(words.at(0), 0, 0)?;
    pe.host().barrier_all()?;
    assert_eq!(pe.host().g(words.at(1), 0)?, pe.n_pes() as u64);
    pe.free(words)
}

#[test]
fn a_spin_lock_is_proved() {
    // who is second fails while the first has the lock, or does not
    assert_eq!(classes(2, spin_lock), 2 * 2);
    // while the first has it, neither of the others fails, or one, or both in either order; then the third fails, or does not
    assert_eq!(classes(3, spin_lock), 6 * 5 * 2);
}

#[test]
fn a_ticket_lock_is_proved() {
    let lock = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(3)?;
        let mine = pe.host().atomic_fetch_inc(words.at(2), 0)?;
        while pe.host().atomic_fetch(words.at(0), 0)? != mine {}
        let found = pe.host().g(words.at(1), 0)?;
        pe.host().p(words.at(1), found + 1, 0)?;
        pe.host().quiet()?;
        pe.host().atomic_inc(words.at(0), 0)?;
        pe.free(words)
    };
    // the second looks before the first is done, or only then
    assert_eq!(classes(2, lock), 2 * 2);
}

#[test]
fn who_polls_two_words_goes_on_when_either_changes() {
    let program = with_words(2, |pe, x| match pe.my_pe() {
        0 => {
            while pe.host().signal_fetch(x.signal(0))? == 0 && pe.host().signal_fetch(x.signal(1))? == 0 {}
            Ok(())
        }
        sender => pe.host().signal_op(x.signal(sender - 1), 1, SignalOp::Set, 0),
    });
    // with one sender to the second word: the loop looks there in vain once, or not at all
    let second_alone = with_words(2, |pe, x| match pe.my_pe() {
        0 => {
            while pe.host().signal_fetch(x.signal(0))? == 0 && pe.host().signal_fetch(x.signal(1))? == 0 {}
            Ok(())
        }
        _ => pe.host().signal_op(x.signal(1), 1, SignalOp::Set, 0),
    });
    assert_eq!(classes(2, second_alone), 2);
    // the first look finds the first signal; or the second look the second; or both are too early, and the next look comes behind the
    // first signal, or the second, or both
    assert_eq!(classes(3, program), 5);
}

#[test]
fn a_loop_that_nobody_ends_bounds_the_search_and_is_no_deadlock() {
    let endless = with_words(1, |pe, x| {
        while pe.my_pe() == 0 && pe.host().signal_fetch(x.signal(0))? == 0 {}
        Ok(())
    });
    let explored = proof(2, endless);
    assert_eq!((explored.schedules, explored.polls_bounded, explored.complete, explored.findings), (1, 1, false, 0));
    assert_eq!(
        explored.proof(&Config::pes(2)),
        "not proved for 2 PEs under spec with up to 4 pieces a transfer: nothing wrong in 1 class, polls bounded in 1"
    );
}

#[test]
fn a_proof_says_what_it_supposes_of_loops() {
    let explored = proof(2, spin_lock);
    assert_eq!(
        explored.proof(&Config::pes(2)),
        "proved for 2 PEs under spec with up to 4 pieces a transfer: 4 classes, no race, no deadlock, nothing else, if no loop \
         counts more than 32 polls"
    );
}

/// A word of one's own, fetched in one place for everybody who asks.
fn fetched(pe: &Pe<Sim>, x: &SymmetricBuf<u64>) -> Result<u64> {
    pe.host().signal_fetch(x.signal(0))
}

#[test]
fn a_call_that_is_made_again_is_no_loop() {
    // the same line reads the same twice, whatever happens between: before both signals, between them, or behind
    let twice = with_words(1, |pe, x| {
        if pe.my_pe() == 0 {
            fetched(pe, x)?;
            return fetched(pe, x).map(drop);
        }
        pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 0)
    });
    let explored = proof(2, twice);
    assert_eq!((explored.schedules, explored.complete, explored.polls), (3, true, false));
}

#[test]
fn a_loop_that_gives_up_is_seen_to_its_end() {
    // it looks five times: before the signal each time, or once less, and so on
    let patient = |signals: bool| {
        with_words(2, move |pe, x| {
            if pe.my_pe() == 1 {
                return if signals { pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 0) } else { Ok(()) };
            }
            let mut times = 0;
            while times < 5 && fetched(pe, x)? == 0 {
                times += 1;
            }
            Ok(())
        })
    };
    let without = proof(2, patient(false));
    assert_eq!((without.schedules, without.complete, without.polls), (1, true, false));
    let with = proof(2, patient(true));
    assert_eq!((with.schedules, with.complete, with.polls), (6, true, false));
}

#[test]
fn a_loop_that_counts_is_seen_to_its_end_if_nothing_else_can_happen() {
    let counts = |most| {
        with_words(1, move |pe, x| {
            let mut times = 0;
            while pe.my_pe() == 0 && times < most && fetched(pe, x)? == 0 {
                times += 1;
            }
            pe.host().barrier_all()
        })
    };
    let explored = proof(2, counts(200));
    assert_eq!((explored.schedules, explored.complete, explored.polls), (1, true, false));
    // more than a search is ready to look at
    let explored = proof(2, counts(5000));
    assert_eq!((explored.polls_bounded, explored.complete), (1, false));
    // the same where somebody else reads plainly meanwhile, and where both count
    let both = with_words(1, |pe, x| {
        for _ in 0..200 {
            pe.read_one(x)?;
        }
        pe.host().barrier_all()
    });
    let noted = search(Config { races: Races::Note, ..Config::pes(2) }, both);
    assert_eq!((noted.schedules, noted.complete, noted.polls), (1, true, false));
}

#[test]
fn loops_over_two_words_can_follow_each_other() {
    let either = |pe: &Pe<Sim>, x: &SymmetricBuf<u64>| -> Result<()> {
        loop {
            for word in [1, 0] {
                if pe.host().signal_fetch(x.signal(word))? > 0 {
                    return Ok(());
                }
            }
        }
    };
    let program = with_words(2, move |pe, x| {
        if pe.my_pe() == 1 {
            return pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 0);
        }
        either(pe, x)?;
        either(pe, x)
    });
    // the second loop makes the call again that the first one has made: so it is let to, and the first may fail twice
    assert_eq!(classes(2, program), 3);
}

/// Classes where races are only noted, and of a proof in which the plain reads are marked.
#[track_caller]
fn plain_classes(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> u64 {
    let noted = search(Config { races: Races::Note, ..Config::pes(pes) }, &program);
    let marked = proof(pes, |pe| pe.intended_race("polled plainly", |pe| program(pe)));
    assert!(noted.complete && marked.complete && marked.polls, "{noted:?} {marked:?}");
    assert_eq!(noted.schedules, marked.schedules);
    noted.schedules
}

#[test]
fn a_loop_of_plain_reads_fails_once_or_not_at_all() {
    let own = with_words(1, |pe, x| match pe.my_pe() {
        1 => pe.host().p(x, 1, 0),
        _ => {
            while pe.read_one(x)? == 0 {}
            Ok(())
        }
    });
    assert_eq!(plain_classes(2, own), 2);
    let from_afar = with_words(1, |pe, x| match pe.my_pe() {
        1 => pe.write(x, &[1]),
        _ => {
            while pe.host().g(x, 1)? == 0 {}
            Ok(())
        }
    });
    assert_eq!(plain_classes(2, from_afar), 2);
    let of_a_peer = with_words(1, |pe, x| match pe.my_pe() {
        1 => pe.write(x, &[1]),
        _ => {
            let there = pe.peer(x, 1)?.expect("one node");
            while there.read()?[0] == 0 {}
            Ok(())
        }
    });
    assert_eq!(plain_classes(2, of_a_peer), 2);
}

#[test]
fn a_loop_of_plain_reads_of_two_words_goes_on_when_either_changes() {
    let program = with_words(2, |pe, x| match pe.my_pe() {
        0 => {
            while pe.read_one(x.at(0))? == 0 && pe.read_one(x.at(1))? == 0 {}
            Ok(())
        }
        sender => pe.host().p(x.at(sender - 1), 1, 0),
    });
    assert_eq!(plain_classes(3, program), 5);
}

#[test]
fn a_loop_of_plain_reads_that_nobody_ends_bounds_the_search() {
    let endless = with_words(1, |pe, x| {
        while pe.my_pe() == 0 && pe.read_one(x)? == 0 {}
        Ok(())
    });
    let noted = search(Config { races: Races::Note, ..Config::pes(2) }, endless);
    assert_eq!((noted.schedules, noted.polls_bounded, noted.complete), (1, 1, false));
}
