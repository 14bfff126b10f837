//! Protocols of every kind: how many classes of schedules they have in all, and in a proof. The numbers were computed by an
//! abstract model that shares nothing with the simulator.

use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Explore, Races, Reduce, Sim, Simulation, VerdictKind};

use super::{factorial, fan_in, with_words};

/// What a search has found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// So many classes, and no race.
    Classes(u64),
    Race,
}

use Found::{Classes, Race};

fn search<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Found {
    let config = Config { pieces: 1, ..config };
    let (mut simulation, mut races) = (Simulation::new(config).unwrap(), false);
    let explored = simulation.explore(Explore::All { limit: 10_000 }, program, |run| {
        races = matches!(run.verdict.kind, VerdictKind::Race);
        assert!(races || run.is_ok() || matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
        if races { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let explored = explored.unwrap();
    assert!(explored.complete != races && explored.redundant == 0, "{explored:?}");
    if races { Race } else { Classes(explored.schedules) }
}

fn all<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> u64 {
    match search(Config { races: Races::Note, ..Config::pes(pes) }, program) {
        Classes(n) => n,
        Race => unreachable!("races are not findings"),
    }
}

fn proof<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Found {
    search(Config::pes(pes), program)
}

/// The classes of a proof that reduces no more than this.
fn reduced<T>(reduce: Reduce, pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Found {
    search(Config { reduce, ..Config::pes(pes) }, program)
}

/// All classes of a program without a race, and those of its proof.
#[track_caller]
fn expect<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>, in_all: u64, proved: u64) {
    assert_eq!((all(pes, &program), proof(pes, &program)), (in_all, Classes(proved)));
}

type Words = SymmetricBuf<u64>;

fn set(pe: &Pe<Sim>, x: &Words, word: usize, value: u64, to: usize) -> Result<()> {
    pe.host().signal_op(x.signal(word), value, SignalOp::Set, to)
}

fn add(pe: &Pe<Sim>, x: &Words, word: usize, to: usize) -> Result<()> {
    pe.host().signal_op(x.signal(word), 1, SignalOp::Add, to)
}

fn wait(pe: &Pe<Sim>, x: &Words, word: usize, cmp: Cmp, value: u64) -> Result<()> {
    pe.host().signal_wait_until(x.signal(word), cmp, value).map(drop)
}

#[test]
fn a_ring_has_one() {
    let ring = with_words(8, |pe, x| {
        pe.host().put(x.slice(..4), x.slice(4..), (pe.my_pe() + 1) % pe.n_pes())?;
        pe.host().barrier_all()?;
        pe.read(x.slice(..4)).map(drop)
    });
    for pes in [2, 3, 4] {
        expect(pes, &ring, 1, 1);
    }
}

#[test]
fn an_all_to_all_has_one_with_a_flag_each_and_with_a_counter() {
    let exchange = |op: SignalOp| {
        with_words(9, move |pe, x| {
            let (me, n) = (pe.my_pe(), pe.n_pes());
            let others = || (0..n).filter(|&other| other != me);
            let word = |from| if op == SignalOp::Set { 4 + from } else { 4 };
            others().try_for_each(|to| pe.host().put_signal(x.at(me), x.at(8), x.signal(word(me)), 1, op, to))?;
            match op {
                SignalOp::Set => others().try_for_each(|from| wait(pe, x, word(from), Cmp::Ge, 1)),
                _ => wait(pe, x, 4, Cmp::Ge, n as u64 - 1),
            }?;
            others().try_for_each(|from| pe.read(x.at(from)).map(drop))
        })
    };
    for pes in [3, 4] {
        expect(pes, exchange(SignalOp::Set), 1, 1);
    }
    // each PE's counter is added to in any order
    for (pes, orders) in [(3, 8), (4, 1296)] {
        expect(pes, exchange(SignalOp::Add), 1, 1);
        assert_eq!(reduced(Reduce::Counters, pes, exchange(SignalOp::Add)), Classes(1));
        assert_eq!(reduced(Reduce::Nothing, pes, exchange(SignalOp::Add)), Classes(orders));
        let all = Config { races: Races::Note, reduce: Reduce::Nothing, ..Config::pes(pes) };
        assert_eq!(search(all, exchange(SignalOp::Add)), Classes(orders));
    }
}

#[test]
fn a_ping_pong_has_one_whatever_its_rounds() {
    for rounds in [1, 4, 20] {
        let ping_pong = with_words(2, move |pe, x| {
            let (me, other) = (pe.my_pe(), 1 - pe.my_pe());
            (1..=rounds).try_for_each(|round| {
                let send = || pe.host().put_signal(x.at(0), x.at(0), x.signal(1), round, SignalOp::Set, other);
                let receive = || wait(pe, x, 1, Cmp::Ge, round);
                if me == 0 { send().and_then(|()| receive()) } else { receive().and_then(|()| send()) }
            })
        });
        expect(2, ping_pong, 1, 1);
    }
}

#[test]
fn a_fan_in_has_one() {
    for n in 2..=6 {
        for cmp in [Cmp::Ge, Cmp::Eq] {
            expect(n + 1, fan_in(cmp, |senders| senders as u64), 1, 1);
        }
        for (reduce, classes) in [(Reduce::Counters, 1), (Reduce::Nothing, factorial(n as u64))] {
            let counted = reduced(reduce, n + 1, fan_in(Cmp::Ge, |senders| senders as u64));
            assert_eq!(counted, Classes(classes), "{n} {reduce:?}");
        }
    }
}

#[test]
fn fetching_additions_have_all_orders() {
    let fetches = |times: usize| {
        with_words(1, move |pe, x| (0..times).try_for_each(|_| pe.host().atomic_fetch_add(x, 1, 0).map(drop)))
    };
    expect(3, fetches(2), 90, 90);
    expect(2, fetches(3), 20, 20);
    let added = with_words(1, |pe, x| {
        (0..2).try_for_each(|_| pe.host().atomic_add(x, 1, 0))?;
        pe.host().barrier_all()?;
        pe.host().atomic_fetch(x, 0).map(drop)
    });
    expect(3, &added, 1, 1);
    assert_eq!(reduced(Reduce::Counters, 3, &added), Classes(1));
    assert_eq!(reduced(Reduce::Nothing, 3, &added), Classes(720));
}

/// A halo exchange of four PEs in a square: each puts its part to two neighbours, with a flag a side that grows with each iteration.
fn halo(iterations: u64, fences: bool) -> impl Fn(&Pe<Sim>) -> Result<()> {
    with_words(6, move |pe, x| {
        let neighbours = [pe.my_pe() ^ 1, pe.my_pe() ^ 2];
        (1..=iterations).try_for_each(|iteration| {
            for (side, to) in neighbours.into_iter().enumerate() {
                let (halo, mine, flag) = (x.at(side), x.at(2 + side), x.signal(4 + side));
                pe.host().put_signal(halo, mine, flag, iteration, SignalOp::Set, to)?;
            }
            (0..2).try_for_each(|side| wait(pe, x, 4 + side, Cmp::Ge, iteration))?;
            if fences { pe.host().fence() } else { Ok(()) }
        })
    })
}

#[test]
fn a_halo_exchange_whose_flags_grow_has_one_if_the_values_do_not_matter() {
    expect(4, halo(1, true), 1, 1);
    // a wait for 1 can return 2
    expect(4, halo(2, true), 79, 79);
    let unseen =
        |iterations, fences| search(Config { values_matter: false, ..Config::pes(4) }, halo(iterations, fences));
    assert_eq!([1, 2, 20].map(|iterations| unseen(iterations, true)), [1; 3].map(Classes));
    for reduce in [Reduce::Nothing, Reduce::Counters] {
        let unseen = Config { values_matter: false, reduce, ..Config::pes(4) };
        assert_eq!(search(unseen.clone(), halo(2, true)), Classes(79));
        assert_eq!(search(unseen, halo(2, false)), Race);
    }
    assert_eq!((proof(4, halo(2, false)), unseen(2, false)), (Race, Race));
}

#[test]
fn signals_to_words_of_their_own_have_one() {
    let signals = with_words(8, |pe, x| match pe.my_pe() {
        0 => (0..8).try_for_each(|word| set(pe, x, word, 1, 1)),
        _ => (0..8).try_for_each(|word| wait(pe, x, word, Cmp::Eq, 1)),
    });
    expect(2, signals, 1, 1);
}

#[test]
fn a_ring_all_reduce_with_a_flag_a_step_has_one() {
    let all_reduce = with_words(16, |pe, x| {
        let (n, right) = (pe.n_pes(), (pe.my_pe() + 1) % pe.n_pes());
        (0..2 * (n - 1)).try_for_each(|step| {
            pe.host().put_signal(x.at(step + 1), x.at(step), x.signal(8 + step), 1, SignalOp::Set, right)?;
            wait(pe, x, 8 + step, Cmp::Ge, 1)?;
            pe.read(x.at(step + 1)).map(drop)
        })
    });
    for pes in [2, 3, 4] {
        expect(pes, &all_reduce, 1, 1);
    }
}

#[test]
fn a_message_has_two_unless_it_is_ordered_and_a_race_then() {
    let message = |order: fn(&Pe<Sim>) -> Result<()>| {
        with_words(2, move |pe, x| {
            if pe.my_pe() == 0 {
                pe.host().p(x.at(0), 7, 1)?;
                order(pe)?;
                return set(pe, x, 1, 1, 1);
            }
            wait(pe, x, 1, Cmp::Ge, 1)?;
            pe.read(x.at(0)).map(drop)
        })
    };
    let racy = message(|_| Ok(()));
    assert_eq!((all(2, &racy), proof(2, &racy)), (2, Race));
    expect(2, message(|pe| pe.host().fence()), 1, 1);
    expect(2, message(|pe| pe.host().quiet()), 1, 1);
}

#[test]
fn store_buffering_with_atomics_has_four() {
    let buffering = with_words(2, |pe, x| {
        let me = pe.my_pe();
        pe.host().atomic_set(x.at(me), 1, 0)?;
        pe.host().atomic_fetch(x.at(1 - me), 0).map(drop)
    });
    expect(2, buffering, 4, 4);
}

/// One counter for several chunks: a later one can satisfy the wait for an earlier one.
#[test]
fn one_counter_for_two_chunks_is_a_race_unless_a_fence_orders_them() {
    let chunks = |fence: bool| {
        with_words(4, move |pe, x| {
            if pe.my_pe() == 0 {
                pe.host().put_signal(x.at(0), x.at(2), x.signal(3), 1, SignalOp::Add, 1)?;
                if fence {
                    pe.host().fence()?;
                }
                return pe.host().put_signal(x.at(1), x.at(2), x.signal(3), 1, SignalOp::Add, 1);
            }
            (0..2).try_for_each(|chunk| {
                wait(pe, x, 3, Cmp::Ge, chunk as u64 + 1)?;
                pe.read(x.at(chunk)).map(drop)
            })
        })
    };
    assert_eq!((all(2, chunks(false)), proof(2, chunks(false))), (4, Race));
    let all = Config { races: Races::Note, reduce: Reduce::Nothing, ..Config::pes(2) };
    assert_eq!(search(all, chunks(false)), Classes(5));
    assert_eq!(reduced(Reduce::Nothing, 2, chunks(false)), Race);
    assert_eq!(reduced(Reduce::Nothing, 2, chunks(true)), Classes(2));
    expect(2, chunks(true), 2, 2);
}

#[test]
fn waits_that_an_update_can_falsify_are_choices() {
    let equal = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        match pe.my_pe() {
            0 => set(pe, &x, 0, 1, 2)?,
            1 => {
                set(pe, &x, 0, 2, 2)?;
                pe.host().quiet()?;
                set(pe, &x, 0, 1, 2)?;
            }
            _ => wait(pe, &x, 0, Cmp::Eq, 1)?,
        }
        pe.free(x)
    };
    expect(3, equal, 6, 6);
    // in one class the wait ends, in the other it never does
    let unequal = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        if pe.my_pe() == 0 {
            set(pe, &x, 0, 1, 1)?;
        } else {
            pe.host().g(x.at(1), 0)?;
            wait(pe, &x, 0, Cmp::Ne, 1)?;
        }
        pe.free(x)
    };
    expect(2, unequal, 2, 2);
}

#[test]
fn unordered_puts_to_one_word_have_all_orders_and_are_a_race() {
    for n in 2..=5 {
        let puts = with_words(1, |pe, x| pe.host().p(x, pe.my_pe() as u64, 0));
        assert_eq!((all(n, &puts), proof(n, &puts)), (factorial(n as u64), Race), "{n} puts");
    }
}

/// Non-blocking puts of one stream, and what quiets of two find.
#[test]
fn quiets_of_two_streams_stand_somewhere_among_the_puts() {
    let streams = |k: usize| {
        with_words(2 * k, move |pe, x| {
            let streams = [pe.stream()?, pe.stream()?];
            if pe.my_pe() == 0 {
                for (which, stream) in streams.iter().enumerate() {
                    (0..k).try_for_each(|i| pe.on(stream).p(x.at(which * k + i), 1, 1))?;
                    pe.on(stream).quiet()?;
                }
            }
            streams.iter().try_for_each(|stream| pe.synchronize(stream))
        })
    };
    for k in 1..=4 {
        expect(2, streams(k), 2 * k as u64 + 2, 2 * k as u64 + 2);
    }
}

#[test]
fn a_quiet_of_one_stream_that_finds_what_another_has_claimed_is_a_race() {
    let send = with_words(4, |pe, x| {
        if pe.my_pe() == 1 {
            return (0..2).try_for_each(|which| {
                wait(pe, x, 2 + which, Cmp::Ge, 1)?;
                pe.read(x.at(which)).map(drop)
            });
        }
        let streams = [pe.stream()?, pe.stream()?];
        for (which, stream) in streams.iter().enumerate() {
            pe.on(stream).p(x.at(which), 1, 1)?;
            pe.on(stream).quiet()?;
            pe.on(stream).signal_op(x.signal(2 + which), 1, SignalOp::Set, 1)?;
        }
        streams.iter().try_for_each(|stream| pe.synchronize(stream))
    });
    assert_eq!((all(2, &send), proof(2, &send)), (9, Race));
}

#[test]
fn a_wait_for_a_word_that_is_reset_is_as_steady_as_its_iterations() {
    // each iteration waits for 1, and takes it away before the other can send again
    for iterations in [1, 2, 5] {
        let program = with_words(3, move |pe, x| {
            (0..iterations).try_for_each(|_| {
                if pe.my_pe() == 0 {
                    pe.host().put_signal(x.at(0), x.at(1), x.signal(2), 1, SignalOp::Set, 1)?;
                } else {
                    wait(pe, x, 2, Cmp::Eq, 1)?;
                    pe.read(x.at(0))?;
                    pe.write(x.at(2), &[0])?;
                }
                pe.host().barrier_all()
            })
        });
        expect(2, program, 1, 1);
    }
}

/// All PEs meet, by flags that each sets at all others, to three values in turn. Who waits may find the next value already, but not the one behind that.
#[test]
fn a_flag_of_three_values_is_as_steady_as_one_that_grows() {
    let barriers = |rounds: u64, values: u64| {
        with_words(3, move |pe, x| {
            let (me, n) = (pe.my_pe(), pe.n_pes());
            (1..=rounds).try_for_each(|round| {
                let (now, before) = (round % values, (round + values - 1) % values);
                let others = || (0..n).filter(move |&other| other != me);
                others().try_for_each(|other| pe.host().signal_op(x.signal(me), now, SignalOp::Set, other))?;
                others().try_for_each(|other| wait(pe, x, other, Cmp::Ne, before))?;
                pe.host().fence()
            })
        })
    };
    // in each round but the last, one of two may find the other's next value, or neither
    assert_eq!([1, 2, 3, 5].map(|rounds| all(2, barriers(rounds, 3))), [1, 3, 9, 81]);
    let unseen =
        |rounds, reduce| search(Config { values_matter: false, reduce, ..Config::pes(2) }, barriers(rounds, 3));
    assert_eq!([2, 3, 5, 20].map(|rounds| unseen(rounds, Reduce::Everything)), [1; 4].map(Classes));
    assert_eq!([2, 5].map(|rounds| unseen(rounds, Reduce::Counters)), [3, 81].map(Classes));
    // with two values, the next one is that which it waits to change from: it can miss its flag, and is in order with all updates
    assert_eq!(search(Config { values_matter: false, ..Config::pes(2) }, barriers(2, 2)), Classes(3));
}

#[test]
fn additions_to_a_word_make_its_waits_choices() {
    let program = with_words(1, |pe, x| match pe.my_pe() {
        0 => wait(pe, x, 0, Cmp::Ge, 1),
        _ => add(pe, x, 0, 0),
    });
    // before the first addition the wait cannot end; it ends behind one of them, or behind both
    expect(3, program, 3, 3);
}
