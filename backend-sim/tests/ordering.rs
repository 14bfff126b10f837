//! What fences, profiles and events put in order: each operation before each other one.

use onesided::{Cmp, Issue, Pe, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Profile, Sim};

use crate::common::results;

/// The words of PE 1: what is sent first, the flag that is sent second, and a source; a spare one.
const DATA: usize = 0;
const FLAG: usize = 1;
const SOURCE: usize = 2;
const SPARE: usize = 3;

/// An operation of PE 0 by which a word of PE 1 becomes 1, with its name.
type Send = (&'static str, fn(&Pe<Sim>, &Issue<'_, Sim>, &SymmetricBuf<u64>, usize) -> Result<()>);

/// What blocks until its source may be reused.
const PUTS: [Send; 4] = [
    ("p", |_, on, x, word| on.p(x.at(word), 1, 1)),
    ("put", |_, on, x, word| on.put(x.at(word), x.at(SOURCE), 1)),
    ("iput", |_, on, x, word| on.iput(x.slice(word..), x.at(SOURCE), 1, 1, 1, 1)),
    ("put_signal", |_, on, x, word| on.put_signal(x.at(word), x.at(SOURCE), x.signal(SPARE), 1, SignalOp::Set, 1)),
];

const NONBLOCKING: [Send; 2] = [
    ("put_nbi", |_, on, x, word| on.put_nbi(x.at(word), x.at(SOURCE), 1)),
    ("put_signal_nbi", |_, on, x, word| {
        on.put_signal_nbi(x.at(word), x.at(SOURCE), x.signal(SPARE), 1, SignalOp::Set, 1)
    }),
];

/// What ends at once.
const OTHERS: [Send; 6] = [
    ("signal_op", |_, on, x, word| on.signal_op(x.signal(word), 1, SignalOp::Set, 1)),
    ("the signal of a put", |_, on, x, word| {
        on.put_signal(x.at(SPARE), x.at(SOURCE), x.signal(word), 1, SignalOp::Add, 1)
    }),
    ("atomic_set", |pe, _, x, word| pe.host().atomic_set(x.at(word), 1, 1)),
    ("atomic_add", |pe, _, x, word| pe.host().atomic_add(x.at(word), 1, 1)),
    ("peer write", |pe, _, x, word| pe.peer(x.at(word), 1)?.expect("one node").write(&[1])),
    ("multicast write", |pe, _, x, word| {
        pe.multicast(pe.world(), x.at(word))?.expect("there is multicast").write(&[1])
    }),
];

/// What PE 1 finds in the data when it has seen the flag; `send` is what PE 0 does.
fn found(profile: Profile, send: impl Fn(&Pe<Sim>, &SymmetricBuf<u64>) -> Result<()>) -> Vec<u64> {
    let found = results(Config { profile, ..Config::pes(2) }, |pe| {
        let x = pe.alloc_zeroed::<u64>(4)?;
        pe.write(x.at(SOURCE), &[1])?;
        let mut found = 0;
        if pe.my_pe() == 0 {
            send(pe, &x)?;
        } else {
            pe.host().wait_until(x.at(FLAG), Cmp::Eq, 1)?;
            found = pe.read(x.at(DATA))?[0];
        }
        pe.free(x)?;
        Ok(found)
    });
    found.into_keys().map(|of_pes| of_pes[1]).collect()
}

/// The same for every pair of operations, in the host's program; `between` is done between them.
fn pairs(
    profile: Profile,
    [first, second]: [&[Send]; 2],
    between: fn(&Issue<'_, Sim>) -> Result<()>,
    expected: &[u64],
) {
    for first in first {
        for second in second {
            let found = found(profile, |pe, x| {
                first.1(pe, &pe.host(), x, DATA)?;
                between(&pe.host())?;
                second.1(pe, &pe.host(), x, FLAG)
            });
            assert_eq!(found, expected, "{}, then {} under {profile}", first.0, second.0);
        }
    }
}

#[test]
fn a_fence_and_a_quiet_hold_back_what_follows_each_operation() {
    let all = [&PUTS[..], &NONBLOCKING, &OTHERS].concat();
    pairs(Profile::Spec, [&all, &all], |_| Ok(()), &[0, 1]);
    for profile in Profile::ALL {
        pairs(profile, [&all, &all], |on| on.fence(), &[1]);
        pairs(profile, [&all, &all], |on| on.quiet(), &[1]);
    }
}

#[test]
fn what_is_sent_to_a_pe_arrives_in_order_where_that_is_promised() {
    let ordered = [&PUTS[..], &OTHERS].concat();
    for profile in Profile::ALL {
        let found: &[u64] = if profile.promises().in_order { &[1] } else { &[0, 1] };
        // behind a put that has arrived nothing is left to be overtaken
        let first: &[Send] = if profile.promises().put_arrives { &ordered } else { &PUTS };
        pairs(profile, [first, &ordered], |_| Ok(()), found);
    }
}

/// What PE 1 finds in the data behind a sync, which completes no put, when PE 0 has sent it before.
fn found_behind_a_sync(profile: Profile, (_, send): Send, on_stream: bool) -> Vec<u64> {
    let found = results(Config { profile, ..Config::pes(2) }, |pe| {
        let x = pe.alloc_zeroed::<u64>(4)?;
        let stream = pe.stream()?;
        pe.write(x.at(SOURCE), &[1])?;
        if pe.my_pe() == 0 {
            let (host, on) = (pe.host(), pe.on(&stream));
            send(pe, if on_stream { &on } else { &host }, &x, DATA)?;
            pe.synchronize(&stream)?;
        }
        pe.host().sync_all()?;
        let found = pe.read(x.at(DATA))?[0];
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        pe.free(x)?;
        Ok(found)
    });
    found.into_keys().map(|of_pes| of_pes[1]).collect()
}

#[test]
fn a_blocking_put_has_arrived_when_it_returns_where_that_is_promised() {
    for put in PUTS {
        for (profile, on_stream) in Profile::ALL.into_iter().flat_map(|profile| [(profile, false), (profile, true)]) {
            let found = found_behind_a_sync(profile, put, on_stream);
            let expected: &[u64] = if profile.promises().put_arrives { &[1] } else { &[0, 1] };
            assert_eq!(found, expected, "{} under {profile}, on a stream: {on_stream}", put.0);
        }
    }
}

/// An event that was recorded twice is the second record.
#[test]
fn a_wait_for_an_event_is_for_its_last_record() {
    let found_when = |host_waits: bool| {
        found(Profile::Spec, |pe, x| {
            let (a, b, event) = (pe.stream()?, pe.stream()?, pe.event()?);
            pe.record(&event, &a)?;
            pe.on(&a).p(x.at(DATA), 1, 1)?;
            pe.on(&a).quiet()?;
            pe.record(&event, &a)?;
            if host_waits {
                pe.synchronize_event(&event)?;
                return pe.host().p(x.at(FLAG), 1, 1);
            }
            pe.wait_event(&event, &b)?;
            pe.on(&b).p(x.at(FLAG), 1, 1)?;
            pe.on(&b).quiet()?;
            pe.synchronize(&b)
        })
    };
    assert_eq!(found_when(true), [1]);
    assert_eq!(found_when(false), [1]);
}
