//! Misuse: what one PE can see of it is refused with an error kind; what only the whole program shows ends the run in
//! a verdict, which no program can swallow.
//!
//! Misuse that does not compile (double free, freeing under a borrow, destroying a predefined team, passing a peer's
//! pointer to a verb, a collective on a team that one is not in) is in the `compile_fail` examples of the API.

use onesided::{
    Backend, Cmp, Error, Pe, Predefined, ReduceOp, Result, SignalOp, SymmetricBuf, SymmetricSlice, Team, TeamConfig,
};

use super::claim::Words;
use super::rma::kind;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases, with those of `mismatch.rs`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = cases![
        no_such_pe: 1,
        no_such_pe_for_atomics: 1 => |case| case.needs_host_atomics(),
        signal_inside_dst: 1,
        waits_of_wrong_lengths: 1,
        error_moves_nothing: 2,
        put_to_a_signal: 2 racy,
        put_to_a_signal_before_the_wait_begins: 2 racy,
        put_to_a_signal_behind_a_stream: 2 racy,
    ];
    let breaks = cases![
        wait_nobody_signals: 2,
        both_wait_first: 2,
        error_while_others_wait: 2,
        panic_while_others_wait: 2,
        slice_past_the_end: 1,
        quiet_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        fence_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        barrier_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        alloc_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        free_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        put_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        get_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        p_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
        g_before_nbi_can_start: 2 => |case| case.needs_peer_access(),
    ];
    let verdicts = cases![
        wait_for_a_value_never_sent: 2,
        wait_before_signal_on_one_stream: 1,
        team_barrier_skipped: 2,
        teams_in_different_order: 2,
        buffer_leaked: 2,
        team_leaked: 2,
        registration_leaked: 1 => |case| case.needs_registration(),
        two_collectives_at_once: 2,
        collective_before_an_earlier_call: 2,
        freed_with_stream_work_pending: 2,
        turn_taken_behind_a_sync: 2 racy,
    ];
    cases.extend(breaks.into_iter().map(Case::breaks));
    cases.extend(verdicts.into_iter().chain(super::mismatch::cases()).map(Case::ends_in_verdict));
    cases
}

/// A PE number that does not exist is refused by signals and peer access too (puts and gets: `rma/no_such_pe`).
fn no_such_pe<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (dst, src, flag) = (words.at(0), words.at(1), words.signal(2));
    let host = pe.host();
    let saw = seen("put_signal", kind(host.put_signal(dst, src, flag, 1, SignalOp::Set, 1)))
        .and("put_signal_nbi", kind(host.put_signal_nbi(dst, src, flag, 1, SignalOp::Set, 1)))
        .and("signal_op", kind(host.signal_op(flag, 1, SignalOp::Set, usize::MAX)))
        .and("peer", kind(pe.peer(dst, 1)));
    pe.free(words)?;
    Ok(saw)
}

/// It is refused by atomics too, which also refuse operands of more than one element.
fn no_such_pe_for_atomics<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let host = pe.host();
    let saw = seen("fetch", kind(host.atomic_fetch(words.at(0), 1)))
        .and("add", kind(host.atomic_add(words.at(0), 1, 1)))
        .and("compare_swap", kind(host.atomic_compare_swap(words.at(0), 0, 1, 1)))
        .and("two_elements", kind(host.atomic_set(&words, 1, 0)));
    pe.free(words)?;
    Ok(saw)
}

/// A signal inside the destination of its own put is refused.
fn signal_inside_dst<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (dst, src, flag) = (words.slice(..2), words.slice(2..), words.signal(1));
    let saw = seen("put_signal", kind(pe.host().put_signal(dst, src, flag, 1, SignalOp::Set, 0)))
        .and("put_signal_nbi", kind(pe.host().put_signal_nbi(dst, src, flag, 1, SignalOp::Set, 0)))
        .and("lengths", kind(pe.host().put_signal(dst, words.at(3), words.signal(2), 1, SignalOp::Set, 0)))
        .and("words", pe.read(&words)?);
    pe.free(words)?;
    Ok(saw)
}

/// Waits whose lists do not agree in length are refused; they do not block.
fn waits_of_wrong_lengths<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let host = pe.host();
    let saw = seen("wait_until", kind(host.wait_until(&words, Cmp::Eq, 1)))
        .and("skip", kind(host.wait_until_all(&words, Some(&[false]), Cmp::Eq, 1)))
        .and("values", kind(host.wait_until_all_vector(&words, None, Cmp::Eq, &[1])))
        .and("vector_skip", kind(host.wait_until_all_vector(&words, Some(&[true]), Cmp::Eq, &[1, 1])));
    pe.free(words)?;
    Ok(saw)
}

/// A refused call does nothing, and its PE can go on: the collective that follows still matches.
fn error_moves_nothing<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        saw = seen("broadcast", kind(pe.host().broadcast(pe.world(), &x, &x, 0)))
            .and("alloc", kind(pe.alloc::<u32>(0)))
            .and("split", kind(pe.team_split_strided(pe.world(), 1, 1, 2, TeamConfig::default())));
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        saw = seen("x", pe.read(&x)?[0]);
    }
    pe.free(x)?;
    Ok(saw)
}

/// A wait for a signal that no PE sends: a deadlock.
fn wait_nobody_signals<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 1 {
        pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    }
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// A signal arrives with another value than the wait expects: a deadlock.
fn wait_for_a_value_never_sent<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(words.signal(0), 2, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    }
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// Each PE waits for the other before it signals: a deadlock.
fn both_wait_first<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 1 - pe.my_pe())?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// A wait on a stream, and behind it on the same stream the signal that would end it: a deadlock.
fn wait_before_signal_on_one_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let stream = pe.stream()?;
    pe.on(&stream).signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    pe.on(&stream).signal_op(words.signal(0), 1, SignalOp::Set, 0)?;
    pe.synchronize(&stream)?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// One PE is in a barrier of a team, the other, a member too, in a barrier of the world: a deadlock.
fn team_barrier_skipped<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let team = everyone(pe)?;
    if pe.my_pe() == 0 {
        pe.host().barrier(&team)?;
    }
    pe.host().barrier_all()?;
    pe.team_destroy(team)?;
    Ok(Seen::nothing())
}

/// Two teams of the same PEs meet in one order on one PE and in the other order on the other: a deadlock.
fn teams_in_different_order<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (a, b) = (everyone(pe)?, everyone(pe)?);
    let (first, second) = if pe.my_pe() == 0 { (&a, &b) } else { (&b, &a) };
    pe.host().barrier(first)?;
    pe.host().barrier(second)?;
    pe.team_destroy(a)?;
    pe.team_destroy(b)?;
    Ok(Seen::nothing())
}

/// A team of all PEs that is not the world.
pub(super) fn everyone<B: Backend>(pe: &Pe<B>) -> Result<Team> {
    let team = pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), TeamConfig::default())?;
    team.ok_or_else(|| Error::wrong_result("not a member of a team of all PEs"))
}

/// A buffer is never freed.
fn buffer_leaked<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let _leaked = pe.alloc::<u32>(1)?;
    Ok(Seen::nothing())
}

/// A team is never destroyed.
fn team_leaked<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let _leaked = everyone(pe)?;
    Ok(Seen::nothing())
}

/// A registration is never ended.
fn registration_leaked<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let _leaked = pe.register_local(pe.alloc_external::<u32>(1)?)?;
    Ok(Seen::nothing())
}

/// Two barriers of one team on two streams, which nothing orders: one collective at a time is allowed.
fn two_collectives_at_once<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (a, b) = (pe.stream()?, pe.stream()?);
    pe.on(&a).barrier_all()?;
    pe.on(&b).barrier_all()?;
    pe.synchronize(&a)?;
    pe.synchronize(&b)?;
    Ok(Seen::nothing())
}

/// The stream that is called first waits for a signal that the other one sends behind its own collective: on every PE the
/// second call would run first. Between GPUs, 3.4.5 and 3.8.0 hang.
fn collective_before_an_earlier_call<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (words, flag) = (pe.alloc_zeroed::<u32>(3)?, pe.alloc_zeroed::<u64>(1)?);
    let (first, second) = (pe.stream()?, pe.stream()?);
    pe.on(&first).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    pe.on(&first).reduce(pe.world(), words.at(0), words.at(2), ReduceOp::Sum)?;
    pe.on(&second).reduce(pe.world(), words.at(1), words.at(2), ReduceOp::Sum)?;
    pe.on(&second).signal_op(flag.signal(0), 1, SignalOp::Set, pe.my_pe())?;
    pe.synchronize(&first)?;
    pe.free(flag)?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// A buffer is freed while a stream still has a put to it, behind a wait: free begins with a barrier, which covers the
/// host alone.
fn freed_with_stream_work_pending<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, words) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
        pe.on(&stream).p(&x, 1, 1)?;
    }
    pe.free(x)?;
    pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 0)?;
    pe.synchronize(&stream)?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// A stream waits for a signal, and has a non-blocking put behind the wait. A quiet of the host waits until the put has started,
/// although the put is of the other scope. The host sends the signal only after that: a deadlock. Measured on two H200. Behind a
/// network the host does not wait, and these programs finish: the simulator says what can happen.
fn quiet_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    before_nbi_can_start(pe, |pe| if pe.my_pe() == 0 { pe.host().quiet() } else { Ok(()) })
}

/// The same with a fence, which contains a quiet.
fn fence_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    before_nbi_can_start(pe, |pe| if pe.my_pe() == 0 { pe.host().fence() } else { Ok(()) })
}

/// With a barrier.
fn barrier_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    before_nbi_can_start(pe, |pe| pe.host().barrier_all())
}

/// With an allocation, which ends with a barrier.
fn alloc_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    before_nbi_can_start(pe, |pe| pe.free(pe.alloc::<u32>(1)?))
}

/// With a free, which begins with one.
fn free_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let other = pe.alloc::<u32>(1)?;
    before_nbi_can_start(pe, |pe| pe.free(other))
}

/// With a put to the same PE.
fn put_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    transfer_before_nbi_can_start(pe, |pe, other| pe.host().put(other.slice(..1), other.slice(1..), 1))
}

/// With a get from there.
fn get_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    transfer_before_nbi_can_start(pe, |pe, other| pe.host().get(other.slice(..1), other.slice(1..), 1))
}

/// With a value that is put there.
fn p_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    transfer_before_nbi_can_start(pe, |pe, other| pe.host().p(other.at(0), 1, 1))
}

/// With a value from there.
fn g_before_nbi_can_start<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    transfer_before_nbi_can_start(pe, |pe, other| pe.host().g(other.at(0), 1).map(drop))
}

fn transfer_before_nbi_can_start<B: Backend>(
    pe: &Pe<B>,
    transfer: impl FnOnce(&Pe<B>, &SymmetricBuf<u32>) -> Result<()>,
) -> Result<Seen> {
    let other = pe.alloc_zeroed::<u32>(2)?;
    let saw = before_nbi_can_start(pe, |pe| if pe.my_pe() == 0 { transfer(pe, &other) } else { Ok(()) })?;
    pe.free(other)?;
    Ok(saw)
}

fn before_nbi_can_start<B: Backend>(pe: &Pe<B>, quiet: impl FnOnce(&Pe<B>) -> Result<()>) -> Result<Seen> {
    let words = Words::new(pe, 1)?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        words.hold(&pe.on(&stream))?;
        words.put_nbi(&pe.on(&stream), 1)?;
    }
    quiet(pe)?;
    if pe.my_pe() == 0 {
        words.let_go(&pe.host(), 0)?;
        pe.synchronize(&stream)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
    }
    words.free(pe)?;
    Ok(Seen::nothing())
}

/// A plain put to a word at which a signal wait looks: signals are atomic with each other only. Where the
/// put comes before the wait begins, the program ends well.
fn put_to_a_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
        saw = seen("word", pe.host().signal_fetch(words.signal(0))?);
    } else {
        pe.host().p(&words, 1, 0)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// The same behind a sync, which is where the wait begins. PE 1's first look tells whether the put was there; where it was not, the
/// put comes between the look and the wait, or under the wait.
fn put_to_a_signal_before_the_wait_begins<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 1, 1)?;
        pe.read(words.at(1))?;
        pe.host().sync_all()?;
    } else {
        saw = seen("look", pe.read_one(words.at(0))?);
        pe.host().sync_all()?;
        pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// The same where the wait begins behind a stream's work.
fn put_to_a_signal_behind_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 1, 1)?;
    } else {
        let stream = pe.stream()?;
        pe.on(&stream).write(words.at(1), &[1])?;
        saw = seen("look", pe.read_one(words.at(0))?);
        pe.synchronize(&stream)?;
        pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// A stream and the host compete for a team's turn: the stream writes and enters, the host looks, meets the other PE, and enters.
/// Only where the stream enters first is nothing wrong. PE 1's read lets it come late or early, which decides whose step lets
/// the host go on.
fn turn_taken_behind_a_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let shared = pe.team(Predefined::Shared).expect("every PE is a member");
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        let stream = pe.stream()?;
        pe.on(&stream).write(words.at(0), &[1])?;
        pe.on(&stream).sync(shared)?;
        saw = seen("look", pe.read_one(words.at(0))?);
        pe.host().sync_all()?;
        pe.host().sync(shared)?;
        pe.synchronize(&stream)?;
    } else {
        pe.read(words.at(1))?;
        pe.host().sync_all()?;
        pe.host().sync(shared)?;
        pe.host().sync(shared)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// One PE gives up with an error while the other waits for it.
fn error_while_others_wait<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    if pe.my_pe() == 1 {
        return Err(Error::wrong_result("PE 1 gives up"));
    }
    pe.host().barrier_all()?;
    Ok(Seen::nothing())
}

/// One PE panics while the other waits for it.
fn panic_while_others_wait<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    if pe.my_pe() == 1 {
        panic!("PE 1 gives up");
    }
    pe.host().barrier_all()?;
    Ok(Seen::nothing())
}

/// A slice past the end of a buffer panics in the PE that makes it, before anything is sent.
fn slice_past_the_end<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let past: SymmetricSlice<'_, u32> = x.slice(..2);
    let saw = seen("len", past.len());
    pe.free(x)?;
    Ok(saw)
}
