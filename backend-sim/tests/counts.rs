//! How many schedules small programs have: each number is derived, and no two of the schedules visited are equivalent.
//!
//! Two schedules are equivalent when every two steps of which one writes what the other touches come in the same order.
//! So a number of schedules is a number of ways to order conflicting steps, whatever else the program does.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::common;
use onesided::{Cmp, Pe, ReduceOp, Result, SignalOp};
use onesided_sim::{Config, Explore, Races, Reduce, Sim, Simulation, VerdictKind};

mod classes;
mod polls;
mod table;

use classes::classes;

/// The number of schedules, after checking that they are all different and that random ones are among them.
fn schedules<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> u64 {
    let (all, random) = classes(config, program);
    assert!(random.is_subset(&all.classes), "a random schedule is equivalent to none of those visited");
    assert_eq!(all.classes.len() as u64, all.schedules, "two visited schedules are equivalent");
    all.schedules
}

/// A program with `words` words, which begins and ends with all PEs and returns nothing.
fn with_words<F>(words: usize, body: F) -> impl Fn(&Pe<Sim>) -> Result<()>
where
    F: Fn(&Pe<Sim>, &onesided::SymmetricBuf<u64>) -> Result<()>,
{
    move |pe| {
        let x = pe.alloc_zeroed::<u64>(words)?;
        body(pe, &x)?;
        pe.free(x)
    }
}

fn factorial(n: u64) -> u64 {
    (1..=n).product()
}

#[test]
fn a_program_without_memory_accesses_has_one() {
    let program = |pe: &Pe<Sim>| {
        pe.host().barrier_all()?;
        pe.host().sync_all()?;
        let (x, y) = pe.team_split_2d(pe.world(), 2, Default::default(), Default::default())?;
        pe.team_destroy(y)?;
        pe.team_destroy(x)
    };
    assert_eq!(schedules(Config::pes(4), program), 1);
}

#[test]
fn deliveries_to_different_words_are_independent() {
    // nobody reads them, so the order of all these deliveries does not matter
    let program = with_words(4, |pe, x| {
        let me = pe.my_pe();
        pe.host().p(x.at(2 * me), 1, 0)?;
        pe.host().p(x.at(2 * me + 1), 1, 0)
    });
    assert_eq!(schedules(Config::pes(2), program), 1);
}

#[test]
fn two_puts_to_one_word_have_two_orders_unless_something_orders_them() {
    let two = |between: fn(&Pe<Sim>) -> Result<()>| {
        let program = with_words(1, move |pe, x| {
            if pe.my_pe() == 0 {
                pe.host().p(x, 1, 1)?;
                between(pe)?;
                pe.host().p(x, 2, 1)?;
            }
            Ok(())
        });
        schedules(Config::pes(2), program)
    };
    assert_eq!(two(|_| Ok(())), 2);
    assert_eq!(two(|pe| pe.host().fence()), 1);
    assert_eq!(two(|pe| pe.host().quiet()), 1);
    assert_eq!(two(|pe| pe.host().flush()), 2); // completes no put
}

#[test]
fn n_writers_of_one_word_have_n_factorial() {
    for n in 1..=5 {
        let program = with_words(1, |pe, x| pe.host().p(x, pe.my_pe() as u64, 0));
        assert_eq!(schedules(Config::pes(n), program), factorial(n as u64), "{n} writers");
    }
}

/// Updates that return nothing and leave the same in either order are not exchanged.
#[test]
fn updates_that_commute_have_one() {
    type Update = fn(&Pe<Sim>, &onesided::SymmetricBuf<u64>) -> Result<()>;
    let updates: [Update; 5] = [
        |pe, x| pe.host().atomic_add(x, 1, 0),
        |pe, x| pe.host().atomic_and(x, 6, 0),
        |pe, x| pe.host().atomic_or(x, 1 << pe.my_pe(), 0),
        |pe, x| pe.host().atomic_xor(x, 3, 0),
        |pe, x| pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 0),
    ];
    for n in 1..=5 {
        for update in updates {
            assert_eq!(schedules(Config::pes(n), with_words(1, update)), 1);
        }
        let fetching = with_words(1, |pe, x| pe.host().atomic_fetch_add(x, 1, 0).map(drop));
        assert_eq!(schedules(Config::pes(n), fetching), factorial(n as u64), "a fetch looks between");
        let sets = with_words(1, |pe, x| pe.host().atomic_set(x, pe.my_pe() as u64, 0));
        assert_eq!(schedules(Config::pes(n), sets), factorial(n as u64));
    }
}

/// Updates of two kinds do not commute. A class says of each addition and each `or` which came first: 2 to the number of pairs, without
/// those in which two additions and two `or` would come in a circle.
#[test]
fn updates_of_two_kinds_are_exchanged() {
    for (adds, ors, expected) in [(1, 1, 2), (2, 1, 4), (3, 1, 8), (2, 2, 14)] {
        let program = with_words(1, move |pe, x| match pe.my_pe() < adds {
            true => pe.host().atomic_add(x, 1, 0),
            false => pe.host().atomic_or(x, 1, 0),
        });
        assert_eq!(schedules(Config::pes(adds + ors), program), expected, "{adds} additions, {ors} `or`");
    }
}

/// A reader sees which additions came before it: 2^n sets. Two of them that read in their order: pairs of sets that grow, 3^n.
#[test]
fn who_looks_between_additions_sees_every_set_of_them() {
    for n in 1..=4 {
        for reads in 0..=2 {
            let program = with_words(1, move |pe, x| match pe.my_pe() {
                0 => (0..reads).try_for_each(|_| pe.host().atomic_fetch(x, 0).map(drop)),
                _ => pe.host().atomic_add(x, 1, 0),
            });
            let expected = (reads as u64 + 1).pow(n as u32);
            assert_eq!(all(n + 1, program), expected, "{n} additions, {reads} reads");
        }
    }
}

/// A wait for a larger value is like a read; another comparison needs all orders.
#[test]
fn a_wait_decides_whether_additions_commute() {
    let waits = |cmp: Cmp, n: usize| {
        let config = Config { races: Races::Note, ..Config::pes(n + 1) };
        let program = with_words(1, move |pe, x| match pe.my_pe() {
            0 => pe.host().signal_wait_until(x.signal(0), cmp, 1).map(drop),
            _ => pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 0),
        });
        let visit = |_: &onesided_sim::Run<()>| ControlFlow::Continue(());
        let explored = Simulation::new(config).unwrap().explore(Explore::All { limit: 10_000 }, program, visit);
        explored.unwrap().schedules
    };
    // `>=`: it ends behind any set of additions but none
    assert_eq!([1, 2, 3, 4].map(|n| waits(Cmp::Ge, n)), [1, 3, 7, 15]);
    // `==` with a value that is passed is no counter: n! orders, in each of which it ends behind the first, or never
    assert_eq!([1, 2, 3].map(|n| waits(Cmp::Eq, n)), [1, 4, 12]);
}

/// A sum that does not fit is smaller than what it was: who has waited for more must have looked before that.
#[test]
fn a_counter_that_overflows_is_no_counter() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<i32>(1)?;
        if pe.my_pe() == 4 {
            pe.write(&x, &[i32::MAX - 1])?;
        }
        pe.host().barrier_all()?;
        let mut seen = 0;
        match pe.my_pe() {
            4 => {
                pe.host().wait_until(&x, Cmp::Ge, i32::MAX)?;
                seen = pe.host().atomic_fetch(&x, 4)?;
            }
            other => pe.host().atomic_add(&x, [3, 1, 3, 1][other], 4)?,
        }
        pe.free(x)?;
        Ok(seen)
    };
    let outcomes = |how| {
        let mut outcomes = BTreeSet::new();
        let visit = |run: &onesided_sim::Run<i32>| {
            outcomes.insert((run.verdict.kind.outcome(), run.results[4]));
            ControlFlow::Continue(())
        };
        Simulation::new(Config::pes(5)).unwrap().explore(how, program, visit).unwrap();
        outcomes
    };
    let random = outcomes(Explore::random(2_000, 1));
    assert!(random.contains(&("deadlock".into(), None)) && random.len() > 3, "{random:?}");
    assert_eq!(outcomes(Explore::All { limit: 10_000 }), random);
}

#[test]
fn readers_stand_somewhere_between_the_writers() {
    // w writes in w! orders; each of r reads stands in one of the w + 1 gaps; reads among themselves commute
    for (w, r) in [(1, 0), (1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2)] {
        let program = with_words(1, |pe, x| match pe.my_pe() {
            me if me < w => pe.host().p(x, me as u64, 0),
            _ => pe.host().g(x, 0).map(drop),
        });
        let expected = factorial(w as u64) * (w as u64 + 1).pow(r);
        assert_eq!(schedules(Config::pes(w + r as usize), program), expected, "{w} writers, {r} readers");
    }
}

#[test]
fn reads_of_one_pe_stand_in_program_order() {
    // one write against two reads of one PE: before both, between, after both
    let program = with_words(1, |pe, x| {
        if pe.my_pe() == 0 {
            return pe.host().p(x, 1, 1);
        }
        pe.read(x)?;
        pe.read(x).map(drop)
    });
    assert_eq!(schedules(Config::pes(2), program), 3);
}

#[test]
fn a_bulk_put_arrives_in_pieces_each_before_or_after_a_read() {
    for (elements, pieces, expected) in [(1, 4, 2), (2, 4, 4), (3, 4, 8), (8, 4, 16), (8, 2, 4), (8, 1, 2)] {
        let program = |pe: &Pe<Sim>| {
            let (x, src) = (pe.alloc_zeroed::<u16>(elements)?, pe.alloc_zeroed::<u16>(elements)?);
            if pe.my_pe() == 0 {
                pe.host().put(&x, &src, 1)?;
            } else {
                pe.read(&x)?;
            }
            pe.host().barrier_all()?;
            pe.free(src)?;
            pe.free(x)
        };
        let config = Config { pieces, ..Config::pes(2) };
        assert_eq!(schedules(config, program), expected, "{elements} elements in {pieces} pieces");
    }
}

#[test]
fn the_source_of_a_put_nbi_is_read_before_or_after_it_is_overwritten() {
    let overwrite = |elements: usize, between: fn(&Pe<Sim>) -> Result<()>| {
        let program = with_words(2 * elements, move |pe, x| {
            let (dst, src) = (x.slice(..elements), x.slice(elements..));
            if pe.my_pe() == 0 {
                pe.host().put_nbi(dst, src, 1)?;
                between(pe)?;
                pe.write(src, &vec![1; elements])?;
            }
            Ok(())
        });
        schedules(Config::pes(2), program)
    };
    // each element on its own
    assert_eq!([1, 2, 3].map(|elements| overwrite(elements, |_| Ok(()))), [2, 4, 8]);
    assert_eq!(overwrite(2, |pe| pe.host().fence()), 4); // a fence is about delivery
    assert_eq!(overwrite(2, |pe| pe.host().flush()), 1);
    assert_eq!(overwrite(2, |pe| pe.host().quiet()), 1);
}

#[test]
fn a_get_nbi_lands_before_or_after_a_read_of_its_target() {
    let get = |between: fn(&Pe<Sim>) -> Result<()>| {
        let program = with_words(2, move |pe, x| {
            if pe.my_pe() == 0 {
                pe.host().get_nbi(x.at(0), x.at(1), 1)?;
                between(pe)?;
                pe.read(x.at(0))?;
            }
            Ok(())
        });
        schedules(Config::pes(2), program)
    };
    assert_eq!(get(|_| Ok(())), 2);
    assert_eq!(get(|pe| pe.host().fence()), 2); // orders no get
    assert_eq!(get(|pe| pe.host().quiet()), 1);
}

#[test]
fn store_buffering_has_four_and_with_a_quiet_three() {
    // each delivery before or after the other PE's read: 2 · 2; with a quiet not both after, as that would be a cycle
    let sb = |quiet: bool| {
        let program = with_words(1, move |pe, x| {
            pe.host().p(x, 1, 1 - pe.my_pe())?;
            if quiet {
                pe.host().quiet()?;
            }
            pe.read(x).map(drop)
        });
        schedules(Config::pes(2), program)
    };
    assert_eq!((sb(false), sb(true)), (4, 3));
}

#[test]
fn independent_reads_of_independent_writes_have_fifteen() {
    // four reads, each before or after its write: 2^4, less the one that would be a cycle
    let program = with_words(2, |pe, x| match pe.my_pe() {
        0 => pe.host().p(x.at(0), 1, 0),
        1 => pe.host().p(x.at(1), 1, 0),
        2 => pe.host().g(x.at(0), 0).and_then(|_| pe.host().g(x.at(1), 0)).map(drop),
        _ => pe.host().g(x.at(1), 0).and_then(|_| pe.host().g(x.at(0), 0)).map(drop),
    });
    assert_eq!(schedules(Config::pes(4), program), 15);
}

#[test]
fn put_signal_leaves_nothing_to_choose() {
    // data, signal, end of the wait, read: each after the one before
    let program = with_words(3, |pe, x| {
        if pe.my_pe() == 0 {
            return pe.host().put_signal(x.at(0), x.at(1), x.signal(2), 1, SignalOp::Set, 1);
        }
        pe.host().signal_wait_until(x.signal(2), Cmp::Eq, 1)?;
        pe.read(x.at(0)).map(drop)
    });
    assert_eq!(schedules(Config::pes(2), program), 1);
}

#[test]
fn the_end_of_a_wait_is_a_read() {
    // the wait for the sum stands behind both signals, the wait for one of them also behind one or the other
    let waits = |least: u64| {
        let program = with_words(1, move |pe, x| {
            if pe.my_pe() > 0 {
                return pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 0);
            }
            pe.host().signal_wait_until(x.signal(0), Cmp::Ge, least).map(drop)
        });
        common::visit_all(Config::pes(3), program, |run| assert!(run.is_ok())).schedules
    };
    assert_eq!((waits(2), waits(1)), (1, 3));
}

#[test]
fn collectives_move_their_data_without_choices() {
    let program = with_words(9, |pe, x| {
        pe.host().broadcast(pe.world(), x.at(0), x.at(1), 1)?;
        pe.host().fcollect(pe.world(), x.slice(2..5), x.at(0))?;
        pe.host().alltoall(pe.world(), x.slice(5..8), x.slice(2..5))?;
        pe.host().reduce(pe.world(), x.at(8), x.at(5), ReduceOp::Sum)
    });
    // a member returns when its own part is complete; what follows reads only that
    assert_eq!(common::visit_all(Config::pes(3), program, |run| assert!(run.is_ok())).schedules, 1);
}

#[test]
fn a_broadcast_arrives_before_or_after_what_a_late_member_does() {
    // the root has entered already: its part comes before or after the other's read of the same word
    let program = with_words(2, |pe, x| {
        if pe.my_pe() == 1 {
            pe.read(x.at(0))?;
        }
        pe.host().broadcast(pe.world(), x.at(0), x.at(1), 0)
    });
    assert_eq!(common::visit_all(Config::pes(2), program, |run| assert!(run.is_ok())).schedules, 2);
}

#[test]
fn streams_of_a_pe_share_a_scope_so_that_issue_and_quiet_have_an_order() {
    let streams = |on_second: fn(&onesided::Issue<'_, Sim>) -> Result<()>| {
        let program = with_words(2, move |pe, x| {
            let (a, b) = (pe.stream()?, pe.stream()?);
            if pe.my_pe() == 0 {
                pe.on(&a).p(x.at(0), 1, 1)?;
                on_second(&pe.on(&b))?;
            }
            pe.synchronize(&a)?;
            pe.synchronize(&b)?;
            pe.on(&a).barrier_all()?;
            pe.synchronize(&a)
        });
        common::visit_all(Config::pes(2), program, |run| assert!(run.is_ok())).schedules
    };
    assert_eq!(streams(|_| Ok(())), 1);
    // two issues commute, an issue and a quiet or fence do not; a flush is about its own stream
    assert_eq!(streams(|b| b.flush()), 1);
    assert_eq!(streams(|b| b.fence()), 2);
    assert_eq!(streams(|b| b.quiet()), 2);
}

/// Begun and completed, of programs whose numbers are known from the theory of the search.
#[test]
fn every_schedule_that_is_begun_is_completed() {
    let begun = |config: Config, program: &dyn Fn(&Pe<Sim>) -> Result<()>| {
        let explored = common::visit_all(config, program, |run| {
            assert!(run.is_ok() || matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
        });
        assert_eq!(explored.redundant, 0);
        explored.schedules
    };
    let ring_on_a_stream = |pe: &Pe<Sim>| {
        let (x, stream) = (pe.alloc_zeroed::<u64>(8)?, pe.stream()?);
        pe.on(&stream).put(x.slice(..4), x.slice(4..), (pe.my_pe() + 1) % pe.n_pes())?;
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        pe.read(x.slice(..4))?;
        pe.free(x)
    };
    assert_eq!([2, 3, 4, 8].map(|pes| begun(Config::pes(pes), &ring_on_a_stream)), [1; 4]);
    let all_to_all = with_words(12, |pe, x| {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let others = || (0..n).filter(|&other| other != me);
        for to in others() {
            pe.host().put_signal(x.at(me), x.at(11), x.signal(4 + me), 1, SignalOp::Set, to)?;
        }
        others().try_for_each(|from| pe.host().signal_wait_until(x.signal(4 + from), Cmp::Eq, 1).map(drop))
    });
    assert_eq!([3, 4].map(|pes| begun(Config::pes(pes), &all_to_all)), [1; 2]);
    // the wait sees all additions
    let fan_in = with_words(1, |pe, x| match pe.my_pe() {
        0 => pe.host().signal_wait_until(x.signal(0), Cmp::Ge, pe.n_pes() as u64 - 1).map(drop),
        _ => pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 0),
    });
    assert_eq!([3, 4, 5, 6].map(|pes| begun(Config::pes(pes), &fan_in)), [1; 4]);
    // in one class the wait ends, in the other it never does
    let unequal = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        match pe.my_pe() {
            0 => pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 1)?,
            _ => {
                pe.host().g(x.at(1), 0)?;
                pe.host().signal_wait_until(x.signal(0), Cmp::Ne, 1).map(drop)?;
            }
        }
        pe.free(x)
    };
    assert_eq!(begun(Config::pes(2), &unequal), 2);
}

/// The number of schedules of a proof, in which additions to counters commute.
fn proof<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> u64 {
    completed(Config::pes(pes), program)
}

/// The number of all schedules.
fn all<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> u64 {
    completed(Config { races: Races::Note, ..Config::pes(pes) }, program)
}

fn completed<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> u64 {
    let mut simulation = Simulation::new(Config { pieces: 1, ..config }).unwrap();
    let explored = simulation.explore(Explore::All { limit: 10_000 }, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete && explored.redundant == 0, "{explored:?}");
    explored.schedules
}

/// Every other PE adds one to a counter of PE 0, which waits.
fn fan_in(cmp: Cmp, wanted: impl Fn(usize) -> u64 + Copy) -> impl Fn(&Pe<Sim>) -> Result<()> {
    with_words(1, move |pe, x| match pe.my_pe() {
        0 => pe.host().signal_wait_until(x.signal(0), cmp, wanted(pe.n_pes() - 1)).map(drop),
        _ => pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 0),
    })
}

#[test]
fn additions_to_a_counter_commute() {
    for n in 2..=6 {
        assert_eq!(proof(n + 1, fan_in(Cmp::Ge, |senders| senders as u64)), 1, "{n} senders");
        assert_eq!(proof(n + 1, fan_in(Cmp::Gt, |senders| senders as u64 - 1)), 1, "{n} senders");
    }
    assert_eq!(all(4, fan_in(Cmp::Ge, |senders| senders as u64)), 1);
    // all sets of additions, with one at least: seven
    assert_eq!(proof(4, fan_in(Cmp::Ge, |_| 1)), 7);
    // an equality with the last value is as good
    assert_eq!(proof(4, fan_in(Cmp::Eq, |senders| senders as u64)), 1);
    assert_eq!(all(4, fan_in(Cmp::Eq, |senders| senders as u64)), 1);
    let added = with_words(1, |pe, x| {
        (0..2).try_for_each(|_| pe.host().atomic_add(x, 1, 0))?;
        pe.host().barrier_all()?;
        pe.host().atomic_fetch(x, 0).map(drop)
    });
    assert_eq!(proof(3, added), 1);
    let fetched = with_words(1, |pe, x| (0..2).try_for_each(|_| pe.host().atomic_fetch_add(x, 1, 0).map(drop)));
    assert_eq!(proof(3, fetched), 90);
}

#[test]
fn an_all_to_all_with_one_counter_each_has_one_schedule() {
    let program = |pe: &Pe<Sim>| {
        let (n, me) = (pe.n_pes(), pe.my_pe());
        let (data, counter) = (pe.alloc_zeroed::<u64>(n)?, pe.alloc_zeroed::<u64>(1)?);
        let mine = pe.alloc_zeroed::<u64>(1)?;
        for to in (0..n).filter(|&to| to != me) {
            pe.host().put_signal(data.at(me), &mine, counter.signal(0), 1, SignalOp::Add, to)?;
        }
        pe.host().signal_wait_until(counter.signal(0), Cmp::Ge, n as u64 - 1)?;
        pe.read(&data)?;
        pe.free(mine)?;
        pe.free(counter)?;
        pe.free(data)
    };
    assert_eq!(all(3, program), 1);
    for n in [3, 4, 8] {
        assert_eq!(proof(n, program), 1, "{n} PEs");
    }
}

#[test]
fn tickets_have_as_many_classes_as_their_counter_leaves() {
    // producers draw a ticket, then count; the consumer waits for one of them, looks, waits for all, looks
    let program = with_words(2, |pe, x| {
        let producers = pe.n_pes() as u64 - 1;
        if pe.my_pe() > 0 {
            pe.host().atomic_fetch_add(x.at(0), 1, 0)?;
            return pe.host().signal_op(x.signal(1), 1, SignalOp::Add, 0);
        }
        pe.host().signal_wait_until(x.signal(1), Cmp::Ge, 1)?;
        pe.host().atomic_fetch(x.at(0), 0)?;
        pe.host().signal_wait_until(x.signal(1), Cmp::Ge, producers)?;
        pe.host().atomic_fetch(x.at(0), 0).map(drop)
    });
    assert_eq!([3, 4, 5].map(|pes| proof(pes, &program)), [8, 66, 624]);
    assert_eq!([3, 4, 5].map(|pes| all(pes, &program)), [8, 66, 624]);
    for (pes, classes) in [(3, 10), (4, 156), (5, 3696)] {
        let mut simulation = Simulation::new(Config { reduce: Reduce::Nothing, ..Config::pes(pes) }).unwrap();
        let explored = simulation.explore(Explore::All { limit: 10_000 }, &program, |_| ControlFlow::Continue(()));
        let explored = explored.unwrap();
        assert_eq!((explored.complete, explored.schedules, explored.redundant), (true, classes, 0));
    }
}

/// An `or` can end a wait, and then all orders count: each of the two in which one of them comes first, with the wait behind it or behind both.
#[test]
fn a_wait_makes_other_updates_choices() {
    let program = |same: bool| {
        with_words(1, move |pe, x| match pe.my_pe() {
            0 => pe.host().signal_wait_until(x.signal(0), Cmp::Ge, 1).map(drop),
            me => pe.host().atomic_or(x, if same { 1 } else { me as u64 }, 0),
        })
    };
    assert_eq!([all(3, program(false)), all(3, program(true))], [4, 4]);
}
