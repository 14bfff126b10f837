//! Random programs that showed a fault, as small as they were found.

use onesided::Cmp;
use onesided::backend::AmoOp;
use onesided_sim::Profile;

use super::compare::seen;
use super::program::Op::*;
use super::program::{Program, Update, host, on};

fn set(word: usize, value: u64) -> Update {
    Update { word, value, add: false }
}

/// Compares a program under every profile.
#[track_caller]
fn compare(program: &Program) {
    for profile in Profile::ALL {
        seen(program, profile);
    }
}

/// A fence that completes orders, too: what another stream issues while it waits comes behind what it waits for. Else `ibgda` would show
/// what `spec` does not.
#[test]
fn what_is_issued_while_a_fence_waits_comes_behind_it() {
    compare(
        &Program::new(
            4,
            [
                vec![
                    on(1, P { to: 1, dst: 0, value: 1 }),
                    on(1, Fence),
                    on(0, Put { to: 1, dst: 0, src: 1, len: 2, nbi: false, signal: None }),
                    on(1, P { to: 1, dst: 2, value: 4 }),
                ],
                vec![
                    host(Wait { word: 2, cmp: Cmp::Ge, value: 1, signal: false }),
                    host(Read { src: 0, len: 3 }),
                    host(Signal { to: 0, update: set(2, 7) }),
                ],
            ],
        )
        .in_pieces(2),
    );
}

/// What is read or delivered while it is lent does not depend on who claims it.
#[test]
fn steps_of_what_is_lent_commute_with_claims() {
    compare(&Program::new(
        2,
        [
            vec![
                on(0, Write { dst: 0, len: 1, value: 0 }),
                on(1, P { to: 0, dst: 0, value: 2 }),
                host(Put { to: 1, dst: 0, src: 0, len: 1, nbi: true, signal: None }),
                on(0, Fence),
            ],
            vec![],
        ],
    ));
    let flag = Some(set(2, 5));
    compare(
        &Program::new(
            4,
            [
                vec![
                    host(Write { dst: 3, len: 1, value: 1 }),
                    host(Get { from: 1, dst: 3, src: 1, len: 1, nbi: true }),
                    on(0, Put { to: 1, dst: 0, src: 3, len: 1, nbi: true, signal: None }),
                    on(1, Quiet),
                    on(0, Put { to: 1, dst: 0, src: 1, len: 1, nbi: true, signal: flag }),
                ],
                vec![host(Wait { word: 2, cmp: Cmp::Ge, value: 1, signal: false }), host(Read { src: 0, len: 1 })],
            ],
        )
        .in_pieces(1),
    );
}

/// A claimer that is left something that has landed already comes after its landing.
#[test]
fn a_claimer_comes_after_what_it_was_left() {
    compare(&Program::new(
        2,
        [
            vec![on(0, Put { to: 0, dst: 0, src: 0, len: 1, nbi: true, signal: None }), on(0, Fence), on(0, Quiet)],
            vec![host(IPut { to: 0, dst: 0, src: 0, strides: (1, 1), count: 1 })],
        ],
    ));
}

/// Under `nvlink` a fence waits for a blocking operation that a quiet of another stream has claimed.
#[test]
fn a_fence_that_completes_comes_after_what_others_have_claimed() {
    let put = Put { to: 1, dst: 0, src: 1, len: 1, nbi: true, signal: Some(set(2, 4)) };
    let send = vec![on(1, Signal { to: 1, update: set(0, 1) }), on(1, Quiet), on(0, Fence), on(0, put)];
    compare(&Program::new(4, [send, vec![host(Read { src: 0, len: 3 })]]).in_pieces(1));
}

/// A wait whose word is stored in two pieces may end behind either of them. The search asked only what the word held before both.
#[test]
fn a_wait_may_end_behind_any_piece_of_its_word() {
    let store = host(PeerStore { to: 1, dst: 4, len: 2, value: u64::MAX }).in_bytes();
    let wait = host(Wait { word: 1, cmp: Cmp::Ge, value: 1, signal: false });
    let program = Program::new(2, [vec![store], vec![wait, host(Read { src: 1, len: 1 })]]).of_bytes(4).in_pieces(2);
    assert_eq!(seen(&program, Profile::Spec), ["255", "65280", "65535"]);
    compare(&program);
}

/// A call that is made twice and reads the same is no loop: once the host has gone on behind it, it begins as other calls do, also where nothing has changed.
/// Else it began by a choice there, and a search said that the program is not deterministic.
#[test]
fn a_call_that_is_made_twice_may_be_in_vain() {
    compare(
        &Program::new(
            5,
            [
                vec![],
                vec![host(Write { dst: 0, len: 1, value: 3 })],
                vec![host(G { from: 1, src: 0 }), host(G { from: 1, src: 0 })],
                vec![],
            ],
        )
        .in_pieces(1),
    );
}

/// Who has read a word twice in vain, and then changes another word or the same, has not polled: a search took the second read for a poll that nothing depends on, and
/// missed that it may find more than the first.
#[test]
fn a_host_that_changes_a_word_behind_two_reads_does_not_poll() {
    let read = || host(Read { src: 0, len: 1 });
    for to in [0, 1] {
        let change = host(Amo { to, dst: 0, op: AmoOp::Set, value: 4, cond: 0, fetch: true });
        compare(&Program::new(2, [vec![host(Signal { to: 1, update: set(0, 1) })], vec![read(), read(), change]]));
    }
}

/// Nor has who reads something else, and then the first word again.
#[test]
fn a_host_that_reads_another_word_behind_two_reads_does_not_poll() {
    let read = |src| host(Read { src, len: 1 });
    let program = [vec![host(Signal { to: 1, update: set(0, 1) })], vec![read(0), read(0), read(1), read(0)]];
    compare(&Program::new(2, program));
}

/// A host that has polled a signal plainly, marked as meant, comes after what the signal followed, and knows nothing of it. The simulator had the race, the model none.
#[test]
fn who_polls_plainly_knows_nothing() {
    let signal = Some(set(2, 1));
    let poll = host(Poll { plainly: true, word: 2, also: None, cmp: Cmp::Ge, value: 1 });
    let send = host(Put { to: 1, dst: 0, src: 0, len: 1, nbi: false, signal });
    compare(&Program::new(4, [vec![send], vec![poll, host(Read { src: 0, len: 1 })]]).in_pieces(1));
}
