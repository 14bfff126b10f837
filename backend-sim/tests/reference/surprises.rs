//! Programs whose outcomes may surprise: what the library does beyond the text, and what looks like one step and is not.
//!
//! Words 0 and 1 are data, word 2 is a flag, word 3 the source of what is put.

use onesided::Cmp;
use onesided::backend::AmoOp;
use onesided_sim::Profile::{self, Nvlink, Spec};

use super::compare::{left, races, seen};
use super::program::Op::*;
use super::program::{Call, Collective, Op, Program, Update, host, on};

const FLAG: usize = 2;
const SOURCE: usize = 3;

/// A program of two PEs.
fn program(first: impl Into<Vec<Call>>, second: impl Into<Vec<Call>>) -> Program {
    Program::new(4, [first.into(), second.into()])
}

fn source() -> Call {
    host(Write { dst: SOURCE, len: 1, value: 7 })
}

fn put(nbi: bool) -> Op {
    Put { to: 1, dst: 0, src: SOURCE, len: 1, nbi, signal: None }
}

fn signal(to: usize) -> Op {
    Signal { to, update: Update { word: FLAG, value: 1, add: false } }
}

fn wait() -> Op {
    Wait { word: FLAG, cmp: Cmp::Ge, value: 1, signal: false }
}

fn read() -> Call {
    host(Read { src: 0, len: 1 })
}

fn look() -> Vec<Call> {
    vec![host(wait()), read()]
}

fn barrier() -> Call {
    host(Enter(Collective::Barrier))
}

#[test]
fn a_quiet_on_a_stream_claims_a_nonblocking_put_of_the_host() {
    let send = |claim: Vec<Call>, nbi| {
        let calls = [source(), host(put(nbi))].into_iter().chain(claim).chain([host(Quiet), host(signal(1))]);
        program(calls.collect::<Vec<_>>(), look())
    };
    for profile in Profile::ALL {
        assert_eq!(seen(&send(vec![], true), profile), ["7"]);
        assert_eq!(seen(&send(vec![on(0, Quiet)], true), profile), ["0", "7"]);
        assert_eq!(seen(&send(vec![on(0, Quiet), host(Synchronize { stream: 0 })], true), profile), ["7"]);
        assert_eq!(seen(&send(vec![on(0, Quiet)], false), profile), ["7"]);
    }
}

#[test]
fn a_quiet_claims_when_it_is_called_and_not_when_its_stream_reaches_it() {
    let send = |nbi| [source(), on(0, wait()), on(1, put(nbi)), on(0, Quiet), on(1, Quiet), on(1, signal(1))];
    let look = [host(wait()), read(), host(signal(0))];
    assert_eq!(seen(&program(send(true), look), Spec), ["0", "7"]);
    assert_eq!(seen(&program(send(false), look), Spec), ["7"]);
}

#[test]
fn a_quiet_of_the_host_waits_for_nonblocking_puts_that_their_streams_have_not_reached() {
    let stuck = |order, nbi| {
        let calls = [source(), on(0, wait()), on(0, put(nbi)), host(order), host(signal(0))];
        program(calls, if matches!(order, Enter(_)) { vec![host(order)] } else { vec![] })
    };
    for profile in Profile::ALL {
        for order in [Quiet, Fence, Enter(Collective::Barrier), Enter(Collective::AllocFree)] {
            assert_eq!(seen(&stuck(order, true), profile), ["deadlock"], "{order:?} under {profile}");
            assert_eq!(seen(&stuck(order, false), profile), [""], "{order:?} under {profile}");
        }
        assert_eq!(seen(&stuck(Enter(Collective::Sync), true), profile), [""]);
    }
}

#[test]
fn a_fence_claims_and_orders_nothing_that_others_have_claimed() {
    // composed as a quiet, the fence has claimed the put: the quiet on another stream waits for nothing
    let claimed = [source(), on(0, put(true)), on(0, Fence), on(1, Quiet), on(1, signal(1))];
    let alone = [source(), on(0, put(true)), on(1, Quiet), on(1, signal(1))];
    // and it waits for nothing where a quiet has claimed
    let too_late = [source(), on(0, wait()), on(1, put(true)), on(0, Quiet), on(1, Fence), on(1, signal(1))];
    let in_time = [source(), on(0, wait()), on(1, put(true)), on(1, Fence), on(0, Quiet), on(1, signal(1))];
    let answer = [host(wait()), read(), host(signal(0))];
    for profile in Profile::ALL {
        assert_eq!(seen(&program(claimed, look()), profile), ["0", "7"]);
        assert_eq!(seen(&program(alone, look()), profile), ["7"]);
        assert_eq!(seen(&program(too_late, answer), profile), ["0", "7"]);
        assert_eq!(seen(&program(in_time, answer), profile), ["7"]);
    }
}

#[test]
fn a_claimer_owes_what_a_quiet_of_the_right_scope_has_found_claimed() {
    // the stream's quiet need not deliver what the host has put, unless the host's quiet has left it that
    let send = |order: &[Call]| {
        let first = [source(), on(0, wait()), host(put(true)), on(0, Quiet)];
        let last = [host(signal(0)), on(0, signal(1))];
        program([&first, order, &last].concat(), look())
    };
    assert_eq!(seen(&send(&[]), Spec), ["0", "7"]);
    assert_eq!(seen(&send(&[host(Quiet)]), Spec), ["7"]);
}

#[test]
fn a_blocking_put_of_a_stream_belongs_to_the_first_quiet_that_is_reached() {
    let send = |quiets: &[Call]| {
        let put = [source(), on(0, put(false)), host(Synchronize { stream: 0 })];
        program([&put, quiets, &[on(0, signal(1))]].concat(), look())
    };
    let synchronize = host(Synchronize { stream: 1 });
    assert_eq!(seen(&send(&[on(0, Quiet)]), Spec), ["7"]);
    assert_eq!(seen(&send(&[on(1, Quiet), on(0, Quiet)]), Spec), ["0", "7"]);
    assert_eq!(seen(&send(&[on(1, Quiet), synchronize, on(0, Quiet)]), Spec), ["7"]);
}

#[test]
fn variables_that_are_waited_for_together_are_satisfied_one_after_the_other() {
    let p = |dst, value| host(P { to: 1, dst, value });
    let all = WaitAll { word: 0, cmp: Cmp::Eq, values: [Some(1), Some(1)] };
    // the first is right, then wrong; only then the second is right
    let send = [p(0, 1), host(Fence), p(0, 0), host(Fence), p(1, 1)];
    assert_eq!(seen(&program(send, [host(all), read()]), Spec), ["0", "deadlock"]);
    // in the order of their indices: when the second is looked at, it is wrong again for good
    let send = [p(1, 1), host(Fence), p(1, 0), host(Fence), p(0, 1)];
    assert_eq!(seen(&program(send, [host(all), read()]), Spec), ["deadlock"]);
}

#[test]
fn what_follows_on_a_stream_overtakes_a_nonblocking_put() {
    for profile in Profile::ALL {
        assert_eq!(seen(&program([source(), on(0, put(true)), on(0, signal(1))], look()), profile), ["0", "7"]);
        assert_eq!(seen(&program([source(), host(put(true)), host(signal(1))], look()), profile), ["0", "7"]);
    }
    assert_eq!(seen(&program([source(), on(0, put(false)), on(0, signal(1))], look()), Nvlink), ["7"]);
    assert_eq!(seen(&program([source(), host(put(false)), host(signal(1))], look()), Nvlink), ["7"]);
}

#[test]
fn a_flush_is_about_its_own_stream() {
    let change = |stream| {
        let order = [on(0, Record { event: 0 }), on(1, WaitEvent { event: 0 })];
        let first = [source(), on(0, put(true))].into_iter();
        let second = [on(stream, Flush), on(1, Write { dst: SOURCE, len: 1, value: 9 })];
        if stream == 0 {
            let flushed = [source(), on(0, put(true)), on(0, Flush)].into_iter();
            return program(flushed.chain(order).chain([second[1]]).collect::<Vec<_>>(), []);
        }
        program(first.chain(order).chain(second).collect::<Vec<_>>(), [])
    };
    assert_eq!(left(&change(0), Spec, 1, 0), [7]);
    assert_eq!(left(&change(1), Spec, 1, 0), [7, 9]);
}

#[test]
fn a_flush_waits_for_what_was_issued_before_it() {
    let again = Put { to: 1, dst: 1, src: FLAG, len: 1, nbi: true, signal: None };
    let calls = [on(0, put(true)), on(0, Flush), on(0, P { to: 0, dst: FLAG, value: 7 }), on(1, again)];
    assert_eq!(left(&program(calls, []), Spec, 1, 1), [0, 7]);
}

#[test]
fn a_plain_write_and_a_wait_for_a_signal_meet_or_do_not() {
    let sync = || host(Enter(Collective::Sync));
    let p = host(P { to: 1, dst: FLAG, value: 1 });
    let look = || host(Read { src: FLAG, len: 1 });
    let wait = Wait { word: FLAG, cmp: Cmp::Ge, value: 1, signal: true };
    let program = program([p, look(), sync()], [look(), sync(), host(wait)]);
    assert_eq!(seen(&program, Spec), ["0 0 1", "0 1 1"]);
}

#[test]
fn a_sync_completes_stores_through_a_peers_pointer() {
    let store = host(PeerStore { to: 1, dst: 0, len: 2, value: 7 });
    let sync = || host(Enter(Collective::Sync));
    for profile in Profile::ALL {
        assert_eq!(seen(&program([store, sync()], [sync(), read()]), profile), ["7"]);
    }
    // nothing else does, and a put is no store
    assert_eq!(seen(&program([store, host(signal(1))], look()), Spec), ["0", "7"]);
    assert_eq!(seen(&program([store, host(Fence), host(signal(1))], look()), Spec), ["7"]);
    let put = host(P { to: 1, dst: 0, value: 7 });
    assert_eq!(seen(&program([put, sync()], [sync(), read()]), Spec), ["0", "7"]);
}

#[test]
fn stores_to_a_word_are_seen_by_their_own_agent_and_follow_each_other() {
    let store = |value| host(PeerStore { to: 1, dst: 0, len: 1, value });
    let load = host(PeerLoad { of: 1, src: 0, len: 1 });
    for profile in Profile::ALL {
        assert_eq!(seen(&program([store(1), load], []), profile), ["1"]);
        assert_eq!(seen(&program([store(1), store(2), load], []), profile), ["2"]);
        assert_eq!(left(&program([store(1), store(2)], []), profile, 1, 0), [2]);
    }
    // what the agent has seen need not be there for others
    let signalled = [store(1), load, host(signal(1))];
    assert_eq!(seen(&program(signalled, look()), Spec), ["1 0", "1 1"]);
}

#[test]
fn a_get_does_not_see_what_its_agent_has_stored_and_races_with_it() {
    let store = host(PeerStore { to: 1, dst: 0, len: 1, value: 1 });
    let load = host(PeerLoad { of: 1, src: 0, len: 1 });
    let gets = [G { from: 1, src: 0 }, Get { from: 1, dst: 1, src: 0, len: 1, nbi: false }].map(host);
    for profile in Profile::ALL {
        assert_eq!(seen(&program([store, gets[0]], []), profile), ["0", "1"]);
        assert_eq!(seen(&program([store, host(Quiet), gets[0]], []), profile), ["1"]);
        for get in gets {
            assert!(races(&program([store, get], []), profile));
            assert!(!races(&program([store, host(Quiet), get], []), profile));
            assert!(!races(&program([get, store], []), profile));
        }
        assert!(!races(&program([store, load], []), profile));
    }
}

/// Under `nvlink` transfers to a PE arrive in order, and a put returns when it has arrived.
#[test]
fn a_put_that_returns_when_it_has_arrived_tells_what_arrived_before_it() {
    let add = host(Amo { to: 1, dst: 0, op: AmoOp::Add, value: 7, cond: 0, fetch: false });
    let sync = || host(Enter(Collective::Sync));
    let tell = |put: Call| program([add, put, sync()], [sync(), read()]);
    let near = || host(Put { to: 1, dst: 1, src: SOURCE, len: 1, nbi: false, signal: None });
    for (put, arrives) in [(near(), true), (host(put(true)), false), (host(Quiet), true)] {
        assert_eq!(races(&tell(put), Nvlink), !arrives, "{put:?}");
    }
    assert!(races(&tell(near()), Spec) && !races(&tell(host(Quiet)), Spec));
    // a put to another PE tells nothing of this one
    let far = host(Put { to: 0, dst: 1, src: SOURCE, len: 1, nbi: false, signal: None });
    assert!(races(&tell(far), Nvlink));
}

/// Where transfers arrive in the order of issue, nothing is in order if the issues are not.
#[test]
fn the_order_of_issue_orders_only_what_is_issued_in_order() {
    let puts = |between: &[Call]| {
        let [first, second] = [0, 1].map(|stream| on(stream, P { to: 1, dst: 0, value: 7 }));
        program([&[first][..], between, &[second]].concat(), [])
    };
    let event = [on(0, Record { event: 0 }), on(1, WaitEvent { event: 0 })];
    for profile in [Profile::Network, Nvlink] {
        assert!(races(&puts(&[]), profile));
        assert!(!races(&puts(&event), profile));
    }
    assert!(races(&puts(&event), Spec));
}

#[test]
fn making_and_destroying_teams_orders_no_data() {
    let team = || host(Enter(Collective::Team));
    let send = [source(), host(put(false)), host(Quiet), team()];
    assert_eq!(seen(&program(send, [team(), read()]), Spec), ["0", "7"]);
    assert_eq!(seen(&program([&send[..], &[barrier()]].concat(), [team(), barrier(), read()]), Spec), ["7"]);
}

#[test]
fn a_copy_of_several_words_is_several_steps() {
    let send = [host(P { to: 1, dst: 0, value: 7 }), host(Fence), host(P { to: 1, dst: 1, value: 1 })];
    let torn = ["0 0", "0 1", "7 0", "7 1"];
    let whole = ["0 0", "7 0", "7 1"];
    let reads = [Read { src: 0, len: 2 }, Read { src: 0, len: 2 }];
    for (pieces, expected) in [(2, &torn[..]), (1, &whole[..])] {
        let at_once = program(send, [host(reads[0])]).in_pieces(pieces);
        assert_eq!(seen(&at_once, Spec), expected);
        let load = Program::new(4, [vec![host(PeerLoad { of: 1, src: 0, len: 2 })], vec![], send.to_vec()]);
        assert_eq!(seen(&load.in_pieces(pieces), Spec), expected);
        // the source of a put, and what a get reads
        let put = Put { to: 1, dst: SOURCE - 1, src: 0, len: 2, nbi: false, signal: None };
        let copy = |op| program(send, [host(op), barrier(), host(Read { src: SOURCE - 1, len: 2 })]);
        let with_barrier = |program: Program| {
            let mut program = program.in_pieces(pieces);
            program.hosts[0].push(barrier());
            program
        };
        assert_eq!(seen(&with_barrier(copy(put)), Spec), expected);
        let get = Get { from: 1, dst: SOURCE - 1, src: 0, len: 2, nbi: false };
        assert_eq!(seen(&with_barrier(copy(get)), Spec), expected);
    }
}

#[test]
fn a_stream_compares_a_signal_in_a_circle() {
    const HALF: u64 = 1 << 63;
    let wait = |value, signal| Wait { word: FLAG, cmp: Cmp::Ge, value, signal };
    assert_eq!(seen(&program([on(0, wait(HALF + 1, true))], []), Spec), [""]);
    assert_eq!(seen(&program([on(0, wait(HALF, true))], []), Spec), ["deadlock"]);
    assert_eq!(seen(&program([on(0, wait(HALF + 1, false))], []), Spec), ["deadlock"]);
    assert_eq!(seen(&program([host(wait(HALF + 1, true))], []), Spec), ["deadlock"]);
}

/// The library waits, in a quiet, for what the quiet has claimed; the text asks for less. A quiet may do either, also when what
/// it owes has arrived.
#[test]
fn a_quiet_may_keep_what_it_has_claimed_after_what_it_owes_has_arrived() {
    let flag = |to, word| Signal { to, update: Update { word, value: 1, add: false } };
    let wait = |word| host(Wait { word, cmp: Cmp::Ge, value: 1, signal: false });
    let owed = Put { to: 1, dst: 1, src: SOURCE, len: 1, nbi: true, signal: None };
    let first = [
        source(),
        on(0, owed),
        host(put(true)),
        on(0, Quiet),
        host(Wait { word: 1, cmp: Cmp::Ge, value: 1, signal: false }),
        host(Quiet),
        host(flag(1, FLAG)),
    ];
    let second = [host(Wait { word: 1, cmp: Cmp::Ge, value: 1, signal: false }), host(flag(0, 1)), wait(FLAG), read()];
    assert_eq!(seen(&program(first, second), Spec), ["0", "7"]);
}

#[test]
fn a_store_follows_earlier_ones_of_its_agent_byte_by_byte() {
    let store = |dst, value| host(PeerStore { to: 1, dst, len: 2, value });
    let look = [host(Read { src: 2, len: 1 }), host(Read { src: 0, len: 1 })];
    let seen = seen(&program([store(0, 1), store(1, 2)], look), Spec);
    assert_eq!(seen, ["0 0", "0 1", "2 0", "2 1"]);
}

#[test]
fn a_strided_source_is_read_element_by_element() {
    let put = IPut { to: 1, dst: 0, src: 0, strides: (1, 2), count: 2 };
    let first = [host(put), barrier()];
    let change = [host(P { to: 0, dst: 2, value: 5 }), host(Fence), host(P { to: 0, dst: 0, value: 6 })];
    let second = change.into_iter().chain([barrier(), host(Read { src: 0, len: 1 }), host(Read { src: 1, len: 1 })]);
    assert_eq!(seen(&program(first, second.collect::<Vec<_>>()), Spec), ["0 0", "0 5", "6 0", "6 5"]);
}
