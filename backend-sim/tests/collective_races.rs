//! Data races around collectives: what is known once all have met, and what moved data brings.

use crate::common::races;
use onesided::{Cmp, Pe, Predefined, ReduceOp, Result, TeamConfig};
use onesided_sim::Sim;

/// A host comes after a put of its stream, and not after the quiet that completes it. Then it meets the others.
#[test]
fn a_quiet_that_nobody_has_waited_for_tells_nobody() {
    let program = |nbi: bool, other: bool, waits: bool| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<i32>(2)?;
            let (puts, beside, put) = (pe.stream()?, pe.stream()?, pe.event()?);
            if pe.my_pe() == 0 {
                match nbi {
                    true => pe.on(&puts).put_nbi(x.at(0), x.at(1), 1)?,
                    false => pe.on(&puts).put(x.at(0), x.at(1), 1)?,
                }
                pe.record(&put, &puts)?;
                pe.wait_event(&put, &beside)?;
                let quiets = if other { &beside } else { &puts };
                pe.on(quiets).quiet()?;
                pe.synchronize_event(&put)?;
                if waits {
                    pe.synchronize(quiets)?;
                }
            }
            pe.host().sync_all()?;
            if pe.my_pe() == 1 {
                pe.read_one(x.at(0))?;
            }
            pe.synchronize(&beside)?;
            pe.synchronize(&puts)?;
            pe.free(x)
        }
    };
    for (nbi, other) in [(false, false), (false, true), (true, false), (true, true)] {
        let call = if nbi { "put_nbi" } else { "put" };
        assert_eq!(races(2, program(nbi, other, false)), [format!("{call} | read")], "{call}, {other}");
        assert!(races(2, program(nbi, other, true)).is_empty(), "{call}, {other}");
    }
}

/// All hosts meet. What streams do then comes after the calls that enqueued it, and not after that.
#[test]
fn what_streams_have_to_do_when_hosts_meet_does_not_come_after_that() {
    let program = |waits: bool| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<i32>(2)?;
            let stream = pe.stream()?;
            match pe.my_pe() {
                0 => pe.on(&stream).get(x.at(0), x.at(1), 1)?,
                1 if !waits => pe.write(x.at(1), &[7])?,
                _ => {}
            }
            if waits {
                pe.synchronize(&stream)?;
            }
            pe.host().sync_all()?;
            if pe.my_pe() == 1 && waits {
                pe.write(x.at(1), &[7])?;
            }
            pe.synchronize(&stream)?;
            pe.free(x)
        }
    };
    assert_eq!(races(2, program(false)), ["get | write"]);
    assert!(races(2, program(true)).is_empty());
}

/// The streams meet, and not the hosts.
#[test]
fn where_streams_meet_hosts_know_nothing() {
    let program = |waits: bool| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<i32>(1)?;
            let stream = pe.stream()?;
            if pe.my_pe() == 0 && waits {
                pe.write(&x, &[7])?;
            }
            pe.on(&stream).sync_all()?;
            match pe.my_pe() {
                0 if !waits => pe.write(&x, &[7])?,
                0 => {}
                _ => {
                    pe.synchronize(&stream)?;
                    pe.host().g(&x, 0)?;
                }
            }
            pe.synchronize(&stream)?;
            pe.free(x)
        }
    };
    assert_eq!(races(2, program(false)), ["g | write"]);
    assert!(races(2, program(true)).is_empty());
}

/// The root returns before the other one enters, on another team. The hosts meet before that, or before the other one's host has
/// waited for its stream.
#[test]
fn what_a_broadcast_is_still_to_bring_is_not_known_when_hosts_meet() {
    let program = |on_stream: bool, waits: bool| {
        move |pe: &Pe<Sim>| {
            let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            let stream = pe.stream()?;
            let shared = pe.team(Predefined::Shared).expect("all PEs share a node");
            let enters_first = pe.my_pe() == 0 || on_stream || waits;
            let broadcast = || match on_stream && pe.my_pe() == 1 {
                true => pe.on(&stream).broadcast(shared, &dst, &src, 0),
                false => pe.host().broadcast(shared, &dst, &src, 0),
            };
            if enters_first {
                broadcast()?;
            }
            if waits {
                pe.synchronize(&stream)?;
            }
            pe.host().sync_all()?;
            if pe.my_pe() == 1 {
                pe.read(&dst)?;
            }
            if !enters_first {
                broadcast()?;
            }
            pe.synchronize(&stream)?;
            pe.free(src)?;
            pe.free(dst)
        }
    };
    for on_stream in [false, true] {
        assert_eq!(races(2, program(on_stream, false)), ["broadcast | read"], "{on_stream}");
        assert!(races(2, program(on_stream, true)).is_empty(), "{on_stream}");
    }
}

#[test]
fn collectives_order_what_they_move_and_no_more() {
    let program = |between: fn(&Pe<Sim>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let (dst, src) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?);
            pe.write(src.at(0), &[1])?;
            pe.write(dst.at(0), &[1])?; // a peer may write it as soon as that peer has entered
            between(pe)?;
            pe.host().fcollect(pe.world(), &dst, src.at(0))?;
            pe.read(&dst)?;
            pe.write(src.at(0), &[2])?;
            pe.free(src)?;
            pe.free(dst)
        }
    };
    assert!(races(2, program(|pe| pe.host().sync_all())).is_empty());
    assert_eq!(races(2, program(|_| Ok(()))), ["fcollect | write"]);
    let reduced = |pe: &Pe<Sim>| {
        let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        pe.host().reduce(pe.world(), &dst, &src, ReduceOp::Sum)?;
        pe.host().p(&src, 1, 1 - pe.my_pe())?; // the peer's source has been read
        pe.free(src)?;
        pe.free(dst)
    };
    assert!(races(2, reduced).is_empty());
    // a broadcast may return on its root before the others have entered
    let broadcast = |pe: &Pe<Sim>| {
        let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        pe.host().broadcast(pe.world(), &dst, &src, 0)?;
        if pe.my_pe() == 0 {
            pe.host().g(&dst, 1)?;
        }
        pe.free(src)?;
        pe.free(dst)
    };
    assert_eq!(races(2, broadcast), ["broadcast | g"]);
}

#[test]
fn teams_order_nothing_when_they_are_made_or_destroyed() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().p(&x, 1, 1)?;
            pe.host().quiet()?;
        }
        let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?.expect("a team of all");
        if pe.my_pe() == 1 {
            pe.read(&x)?;
        }
        pe.team_destroy(team)?;
        pe.free(x)
    };
    assert_eq!(races(2, program), ["p | read"]);
}

/// A wait may look at what a put delivers. What collectives deliver races with it, in order and in every other run.
#[test]
fn a_wait_for_what_a_collective_delivers_races_with_it() {
    let broadcast = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        if pe.my_pe() == 0 {
            pe.host().wait_until(x.at(0), Cmp::Le, 1)?;
        }
        pe.host().broadcast(pe.world(), x.at(0), x.at(1), 1)?;
        pe.free(x)
    };
    assert_eq!(races(2, broadcast), ["broadcast | wait_until"]);
    let reduce = |pe: &Pe<Sim>| {
        let (x, stream) = (pe.alloc_zeroed::<u64>(2)?, pe.stream()?);
        pe.on(&stream).wait_until(x.at(0), Cmp::Le, 9)?;
        pe.host().reduce(pe.world(), x.at(0), x.at(1), ReduceOp::Sum)?;
        pe.synchronize(&stream)?;
        pe.free(x)
    };
    assert_eq!(races(2, reduce), ["reduce | wait_until"]);
}
