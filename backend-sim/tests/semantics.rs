//! The memory model's rules that need more than one PE's view: streams against hosts, who claims what, collectives
//! without entry synchronization, and how transfers arrive. Each rule has its control.

use std::collections::BTreeSet;

use onesided::{Cmp, Issue, Pe, Predefined, ReduceOp, Result, SignalOp, Stream, SymmetricBuf};
use onesided_sim::{Config, Sim};

use crate::common::{endings, results};

/// What PE 1 returned over all schedules.
fn seen_by_1<T: Ord + Clone>(program: impl Fn(&Pe<Sim>) -> Result<T>) -> BTreeSet<T> {
    results(Config::pes(2), program).into_keys().map(|all| all[1].clone()).collect()
}

/// PE 0 does `act` with two streams and signals from its host; PE 1 waits for that and reads `x`.
fn then_signal(act: impl Fn(&Pe<Sim>, [&Stream<Sim>; 2], &SymmetricBuf<u64>) -> Result<()>) -> Vec<u64> {
    let seen = seen_by_1(|pe| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        let flag = pe.alloc_zeroed::<u64>(1)?;
        let (a, b) = (pe.stream()?, pe.stream()?);
        let mut saw = 0;
        if pe.my_pe() == 0 {
            act(pe, [&a, &b], &x)?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            saw = pe.read(x.at(0))?[0];
        }
        // everything is complete before the memory goes
        for stream in [&a, &b] {
            pe.synchronize(stream)?;
        }
        for stream in [&a, &b] {
            pe.on(stream).quiet()?;
            pe.synchronize(stream)?;
        }
        pe.free(flag)?;
        pe.free(x)?;
        Ok(saw)
    });
    Vec::from_iter(seen)
}

#[test]
fn host_quiet_fence_and_barrier_are_about_what_the_host_issued() {
    assert_eq!(then_signal(|pe, _, x| pe.host().p(x.at(0), 1, 1).and_then(|()| pe.host().quiet())), [1]);
    let on_stream = |then: fn(&Pe<Sim>, &Stream<Sim>) -> Result<()>| {
        then_signal(move |pe, [a, _], x| {
            pe.on(a).p(x.at(0), 1, 1)?;
            pe.synchronize(a)?;
            then(pe, a)
        })
    };
    assert_eq!(on_stream(|_, _| Ok(())), [0, 1]); // synchronized is issued, not arrived
    assert_eq!(on_stream(|pe, _| pe.host().quiet()), [0, 1]);
    assert_eq!(on_stream(|pe, _| pe.host().fence()), [0, 1]);
    assert_eq!(on_stream(|pe, a| pe.on(a).quiet().and_then(|()| pe.synchronize(a))), [1]);
    assert_eq!(on_stream(|pe, a| pe.on(a).quiet()), [0, 1]); // enqueued only
}

#[test]
fn stream_quiet_is_about_what_streams_issued() {
    let quiet_elsewhere = then_signal(|pe, [a, _], x| {
        pe.host().p(x.at(0), 1, 1)?;
        pe.on(a).quiet()?;
        pe.synchronize(a)
    });
    assert_eq!(quiet_elsewhere, [0, 1]);
}

#[test]
fn a_quiet_on_one_stream_claims_what_all_streams_have_in_flight() {
    let two = |claim: bool, last: fn(&Pe<Sim>, [&Stream<Sim>; 2]) -> Result<()>| {
        then_signal(move |pe, [a, b], x| {
            pe.on(a).p(x.at(0), 1, 1)?;
            pe.synchronize(a)?;
            if claim {
                pe.on(b).quiet()?; // nobody waits for it
            }
            last(pe, [a, b])
        })
    };
    let quiet_on_a = |pe: &Pe<Sim>, [a, _]: [&Stream<Sim>; 2]| pe.on(a).quiet().and_then(|()| pe.synchronize(a));
    let quiet_on_b = |pe: &Pe<Sim>, [_, b]: [&Stream<Sim>; 2]| pe.on(b).quiet().and_then(|()| pe.synchronize(b));
    assert_eq!(two(false, quiet_on_a), [1]);
    assert_eq!(two(false, quiet_on_b), [1]); // covers the other stream's put
    assert_eq!(two(true, quiet_on_a), [0, 1]); // which is why this one does not wait for it again
    assert_eq!(two(true, quiet_on_b), [1]);
}

#[test]
fn the_host_barrier_does_not_wait_for_streams() {
    let barrier = |on_stream: bool| {
        seen_by_1(move |pe| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            let stream = pe.stream()?;
            if pe.my_pe() == 0 {
                pe.on(&stream).p(&x, 1, 1)?;
            }
            if on_stream {
                pe.on(&stream).barrier_all()?;
                pe.synchronize(&stream)?;
            } else {
                pe.host().barrier_all()?;
            }
            let saw = pe.read(&x)?[0];
            pe.on(&stream).quiet()?;
            pe.synchronize(&stream)?;
            pe.free(x)?;
            Ok(saw)
        })
    };
    assert_eq!(Vec::from_iter(barrier(false)), [0, 1]);
    assert_eq!(Vec::from_iter(barrier(true)), [1]);
}

/// A stream copies my word; the host overwrites it.
fn beside_the_host(between: impl Fn(&Pe<Sim>, &Stream<Sim>) -> Result<()>) -> Vec<u64> {
    let copied = seen_by_1(|pe| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        let (first, second) = (pe.stream()?, pe.stream()?);
        pe.on(&first).put(x.at(1), x.at(0), pe.my_pe())?;
        between(pe, &first)?;
        pe.write(x.at(0), &[1])?;
        pe.synchronize(&first)?;
        pe.on(&second).barrier_all()?;
        pe.synchronize(&second)?;
        let saw = pe.read(x.at(1))?[0];
        pe.free(x)?;
        Ok(saw)
    });
    Vec::from_iter(copied)
}

#[test]
fn streams_run_beside_the_host_until_an_event_or_a_synchronize() {
    assert_eq!(beside_the_host(|_, _| Ok(())), [0, 1]);
    assert_eq!(beside_the_host(|pe, stream| pe.synchronize(stream)), [0]);
    let recorded = |pe: &Pe<Sim>, stream: &Stream<Sim>| {
        let event = pe.event()?;
        pe.record(&event, stream)?;
        pe.synchronize_event(&event)
    };
    assert_eq!(beside_the_host(recorded), [0]);
    // an event that was not recorded orders nothing, and neither does a record on another stream
    assert_eq!(beside_the_host(|pe, _| pe.event().and_then(|event| pe.synchronize_event(&event))), [0, 1]);
    let elsewhere = |pe: &Pe<Sim>, _: &Stream<Sim>| {
        let (event, other) = (pe.event()?, pe.stream()?);
        pe.record(&event, &other)?;
        pe.synchronize_event(&event)
    };
    assert_eq!(beside_the_host(elsewhere), [0, 1]);
}

#[test]
fn an_event_orders_two_streams_from_its_last_record_on() {
    let copy = |order: fn(&Pe<Sim>, [&Stream<Sim>; 2]) -> Result<()>| {
        let copied = seen_by_1(move |pe| {
            let x = pe.alloc_zeroed::<u64>(2)?;
            let (a, b) = (pe.stream()?, pe.stream()?);
            pe.on(&a).write(x.at(0), &[1])?;
            order(pe, [&a, &b])?;
            pe.on(&a).write(x.at(0), &[2])?;
            pe.on(&b).put(x.at(1), x.at(0), pe.my_pe())?;
            pe.synchronize(&a)?;
            pe.synchronize(&b)?;
            pe.on(&b).barrier_all()?;
            pe.synchronize(&b)?;
            let saw = pe.read(x.at(1))?[0];
            pe.free(x)?;
            Ok(saw)
        });
        Vec::from_iter(copied)
    };
    assert_eq!(copy(|_, _| Ok(())), [0, 1, 2]);
    let recorded = |pe: &Pe<Sim>, [a, b]: [&Stream<Sim>; 2]| {
        let event = pe.event()?;
        pe.record(&event, a)?;
        pe.wait_event(&event, b)
    };
    assert_eq!(copy(recorded), [1, 2]);
    // a wait is for the record that there is: a later one does not count
    let recorded_later = |pe: &Pe<Sim>, [a, b]: [&Stream<Sim>; 2]| {
        let event = pe.event()?;
        pe.wait_event(&event, b)?;
        pe.record(&event, a)
    };
    assert_eq!(copy(recorded_later), [0, 1, 2]);
}

/// On one stream a transfer of a word, then a store to that word; what arrived.
fn then_overwritten(put: impl Fn(&Issue<'_, Sim>, &SymmetricBuf<u64>) -> Result<()>) -> Vec<u64> {
    let arrived = seen_by_1(|pe| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        let stream = pe.stream()?;
        if pe.my_pe() == 0 {
            put(&pe.on(&stream), &x)?;
            pe.on(&stream).write(x.at(0), &[1])?;
        }
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        let saw = pe.read(x.at(1))?[0];
        pe.free(x)?;
        Ok(saw)
    });
    Vec::from_iter(arrived)
}

#[test]
fn later_work_of_a_stream_overtakes_a_nonblocking_transfer() {
    assert_eq!(then_overwritten(|on, x| on.put(x.at(1), x.at(0), 1)), [0]);
    assert_eq!(then_overwritten(|on, x| on.put_nbi(x.at(1), x.at(0), 1)), [0, 1]);
    assert_eq!(then_overwritten(|on, x| on.put_nbi(x.at(1), x.at(0), 1).and_then(|()| on.fence())), [0, 1]);
    assert_eq!(then_overwritten(|on, x| on.put_nbi(x.at(1), x.at(0), 1).and_then(|()| on.flush())), [0]);
    assert_eq!(then_overwritten(|on, x| on.put_nbi(x.at(1), x.at(0), 1).and_then(|()| on.quiet())), [0]);
}

#[test]
fn a_fence_on_a_stream_orders_what_all_streams_issued_before_it() {
    let two = |fence: fn(&Pe<Sim>, [&Stream<Sim>; 2]) -> Result<()>| {
        let last = seen_by_1(move |pe| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            let (a, b) = (pe.stream()?, pe.stream()?);
            if pe.my_pe() == 0 {
                pe.on(&a).p(&x, 1, 1)?;
                pe.synchronize(&a)?;
                fence(pe, [&a, &b])?;
                pe.on(&b).p(&x, 2, 1)?;
                pe.synchronize(&b)?;
            }
            pe.on(&b).barrier_all()?;
            pe.synchronize(&b)?;
            let saw = pe.read(&x)?[0];
            pe.free(x)?;
            Ok(saw)
        });
        Vec::from_iter(last)
    };
    assert_eq!(two(|_, _| Ok(())), [1, 2]);
    assert_eq!(two(|pe, [_, b]| pe.on(b).fence()), [2]);
    assert_eq!(two(|pe, _| pe.host().fence()), [1, 2]); // another scope
}

#[test]
fn a_put_arrives_in_as_many_pieces_as_configured() {
    let arrivals = |pieces: usize| -> Vec<String> {
        let config = Config { pieces, ..Config::pes(2) };
        let seen = results(config, |pe| {
            let (x, src) = (pe.alloc_zeroed::<u8>(4)?, pe.alloc_zeroed::<u8>(4)?);
            let mut saw = String::new();
            if pe.my_pe() == 0 {
                pe.write(&src, &[1; 4])?;
                pe.host().put(&x, &src, 1)?;
            } else {
                saw = pe.read(&x)?.iter().map(u8::to_string).collect();
            }
            pe.free(src)?;
            pe.free(x)?;
            Ok(saw)
        });
        seen.into_keys().map(|all| all[1].clone()).collect()
    };
    assert_eq!(arrivals(1), ["0000", "1111"]);
    assert_eq!(arrivals(2), ["0000", "0011", "1100", "1111"]);
    assert_eq!(arrivals(4).len(), 16);
    assert_eq!(arrivals(64), arrivals(4)); // an element never tears
}

#[test]
fn a_signal_follows_all_pieces_of_its_own_put() {
    let seen = results(Config::pes(2), |pe| {
        let x = pe.alloc_zeroed::<u64>(9)?;
        let mut saw = 4;
        if pe.my_pe() == 0 {
            pe.write(x.slice(..4), &[1; 4])?;
            pe.host().put_signal_nbi(x.slice(4..8), x.slice(..4), x.signal(8), 1, SignalOp::Add, 1)?;
        } else {
            pe.host().signal_wait_until(x.signal(8), Cmp::Eq, 1)?;
            saw = pe.read(x.slice(4..8))?.iter().sum();
        }
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(Vec::from_iter(seen.into_keys()), [vec![4, 4]]);
}

/// PE 0 enters and then signals; PE 1 enters only after that signal.
fn entered_late(call: impl Fn(&Pe<Sim>, &SymmetricBuf<u64>) -> Result<()>) -> Vec<String> {
    let endings = endings(Config::pes(2), |pe| {
        let x = pe.alloc_zeroed::<u64>(9)?;
        if pe.my_pe() == 0 {
            call(pe, &x)?;
            pe.host().signal_op(x.signal(8), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(x.signal(8), Cmp::Eq, 1)?;
            call(pe, &x)?;
        }
        pe.free(x)
    });
    Vec::from_iter(endings.into_keys())
}

#[test]
fn a_root_leaves_a_broadcast_before_the_others_enter_and_nobody_leaves_the_rest() {
    assert_eq!(entered_late(|pe, x| pe.host().broadcast(pe.world(), x.at(0), x.at(1), 0)), ["finished"]);
    assert_eq!(entered_late(|pe, x| pe.host().broadcast(pe.world(), x.at(0), x.at(1), 1)), ["deadlock"]);
    assert_eq!(entered_late(|pe, x| pe.host().fcollect(pe.world(), x.slice(..2), x.at(2))), ["deadlock"]);
    assert_eq!(entered_late(|pe, x| pe.host().alltoall(pe.world(), x.slice(..2), x.slice(2..4))), ["deadlock"]);
    assert_eq!(entered_late(|pe, x| pe.host().reduce(pe.world(), x.at(0), x.at(1), ReduceOp::Sum)), ["deadlock"]);
    let scatter = |pe: &Pe<Sim>, x: &SymmetricBuf<u64>| {
        pe.host().reducescatter(pe.world(), x.at(0), x.slice(1..3), ReduceOp::Sum)
    };
    assert_eq!(entered_late(scatter), ["deadlock"]);
}

#[test]
fn a_member_may_reuse_its_source_as_soon_as_it_returns() {
    let seen = results(Config::pes(2), |pe| {
        let x = pe.alloc_zeroed::<u64>(3)?;
        let me = pe.my_pe() as u64;
        pe.write(x.at(0), &[me + 1])?;
        pe.host().fcollect(pe.world(), x.slice(1..), x.at(0))?;
        pe.write(x.at(0), &[9])?;
        let saw = pe.read(x.slice(1..))?;
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(Vec::from_iter(seen.into_keys()), [vec![vec![1, 2]; 2]]);
}

#[test]
fn teams_of_several_nodes_have_their_own_sequences_of_collectives() {
    let config = Config { nodes: 2, ..Config::pes(4) };
    let seen = results(config, |pe| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        pe.write(x.at(0), &[1 << pe.my_pe()])?;
        let node = pe.team(Predefined::Node).expect("every PE is on a node");
        let across = pe.team(Predefined::SameMypeNode).expect("every PE has a rank on its node");
        // more rounds on one node than on the other
        for _ in 0..=node.members().get(0) {
            pe.host().reduce(node, x.at(1), x.at(0), ReduceOp::Sum)?;
        }
        let on_node = pe.read(x.at(1))?[0];
        pe.host().reduce(across, x.at(0), x.at(1), ReduceOp::Sum)?;
        let saw = (on_node, pe.read(x.at(0))?[0]);
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(Vec::from_iter(seen.into_keys()), [vec![(3, 15), (3, 15), (12, 15), (12, 15)]]);
}

#[test]
fn a_wait_for_a_signal_returns_a_value_that_ended_it() {
    let waited = |at_least| {
        seen_by_1(move |pe| {
            let flag = pe.alloc_zeroed::<u64>(1)?;
            let mut found = 0;
            if pe.my_pe() == 0 {
                pe.host().signal_op(flag.signal(0), 1, SignalOp::Add, 1)?;
                pe.host().signal_op(flag.signal(0), 1, SignalOp::Add, 1)?;
            } else {
                found = pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, at_least)?;
            }
            pe.free(flag)?;
            Ok(found)
        })
    };
    assert_eq!(Vec::from_iter(waited(0)), [0, 1, 2]);
    assert_eq!(Vec::from_iter(waited(1)), [1, 2]);
    assert_eq!(Vec::from_iter(waited(2)), [2]);
}

#[test]
fn values_are_reduced_again_and_again_with_one_scratch() {
    for pes in [2, 3] {
        let seen = results(Config::pes(pes), |pe| {
            let scratch = pe.alloc::<u64>(1)?;
            let mine = 1 + pe.my_pe() as u64;
            let sum = pe.host().reduce_value(pe.world(), &scratch, mine, ReduceOp::Sum)?;
            let product = pe.host().reduce_value(pe.world(), scratch.at(0), mine, ReduceOp::Prod)?;
            pe.free(scratch)?;
            Ok((sum, product))
        });
        let expected = if pes == 2 { (3, 2) } else { (6, 6) };
        assert_eq!(Vec::from_iter(seen.into_keys()), [vec![expected; pes]]);
    }
}
