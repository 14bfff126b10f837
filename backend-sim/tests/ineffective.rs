//! A race that lacks a quiet or fence where one stands: the report says why that one does not help.

use onesided::{Cmp, Pe, Predefined, Result, SignalOp};
use onesided_sim::{IneffectiveOrder, IneffectiveReason, MissingEdge, Sim, refute};

/// The line of this file that has a mark.
fn line(mark: &str) -> u32 {
    let text = include_str!("ineffective.rs");
    let found = text.lines().zip(1..).find(|(line, _)| line.ends_with(&format!("// {mark}")));
    found.map(|(_, number)| number).unwrap_or_else(|| panic!("no line is marked {mark}"))
}

/// What the first race says of a call in vain, in the first run of 3 PEs that has one.
fn ineffective(program: impl Fn(&Pe<Sim>) -> Result<()>) -> Option<IneffectiveOrder> {
    let run = refute(3, program);
    let race = run.verdict.races.first().expect("it races");
    if let Some(call) = race.ineffective {
        let ending = format!("; the {} at {} ", call.call, call.at);
        assert!(race.missing_in_words().contains(&ending), "{race}");
        assert!(race.to_string().contains(&race.missing_in_words()), "{race}");
    }
    race.ineffective
}

/// The host's or a stream's put, and what may follow it.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    HostsQuiet,
    StreamsQuiet,
    StreamsBarrier,
    OtherStream,
    Fence,
    Claimed,
    Nothing,
}

/// PE 0 sends data to PE 1, and then signals to PE 2, which gets them from there.
fn message(pe: &Pe<Sim>, way: Way) -> Result<()> {
    let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let (a, b) = (pe.stream()?, pe.stream()?);
    match pe.my_pe() {
        0 => {
            match way {
                Way::HostsQuiet => {
                    pe.on(&a).put(&data, &from, 1)?;
                    pe.synchronize(&a)?;
                    pe.host().quiet()?;
                }
                Way::StreamsBarrier => {
                    pe.host().put(&data, &from, 1)?;
                    let alone = pe.team(Predefined::SameGpu).expect("each has one");
                    pe.on(&a).barrier(alone)?; // completes nothing of the host
                    pe.synchronize(&a)?;
                }
                Way::StreamsQuiet => {
                    pe.host().put(&data, &from, 1)?;
                    pe.on(&a).quiet()?;
                    pe.synchronize(&a)?;
                }
                Way::OtherStream => {
                    pe.on(&a).put_nbi(&data, &from, 1)?;
                    pe.on(&b).flush()?;
                    pe.synchronize(&a)?;
                    pe.synchronize(&b)?;
                    pe.write(&from, &[7])?;
                }
                Way::Fence => {
                    pe.host().put(&data, &from, 1)?;
                    pe.host().fence()?;
                }
                Way::Claimed => {
                    pe.on(&a).signal_wait_until(flag.signal(0), Cmp::Eq, 9)?; // holds the quiet behind it
                    pe.host().put_nbi(&data, &from, 1)?;
                    pe.on(&a).quiet()?;
                    pe.host().quiet()?;
                }
                Way::Nothing => pe.host().put(&data, &from, 1)?,
            }
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?;
            pe.host().quiet()?; // too late
        }
        2 => {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.host().g(&data, 1)?;
        }
        _ => {}
    }
    pe.synchronize(&a)?;
    pe.free(flag)?;
    pe.free(from)?;
    pe.free(data)
}

#[test]
fn a_call_that_does_not_help_is_named_with_why() {
    let call = |way| ineffective(|pe| message(pe, way)).map(|call| (call.call, call.stream, call.reason));
    let scope = |stream| Some(("quiet", stream, IneffectiveReason::Scope));
    assert_eq!(call(Way::HostsQuiet), scope(None));
    assert_eq!(call(Way::StreamsQuiet), scope(Some(0)));
    assert_eq!(call(Way::StreamsBarrier), Some(("barrier", Some(0), IneffectiveReason::Scope)));
    assert_eq!(call(Way::OtherStream), Some(("flush", Some(1), IneffectiveReason::Stream)));
    assert_eq!(call(Way::Fence), Some(("fence", None, IneffectiveReason::Fence)));
    assert_eq!(call(Way::Claimed), Some(("quiet", None, IneffectiveReason::Claimed)));
    assert_eq!(call(Way::Nothing), None);
}

/// A fence is missing, and no other one is to blame.
#[test]
fn a_fence_before_the_data_is_none() {
    let call = ineffective(|pe| {
        let (data, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().fence()?;
            pe.host().p(&data, 1, 1)?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
            pe.host().fence()?;
        } else if pe.my_pe() == 1 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.read_one(&data)?;
        }
        pe.free(flag)?;
        pe.free(data)
    });
    assert_eq!(call, None);
}

/// A stream fills a buffer. Another one sends it on, or the host reads it, behind a wait for an event that the first stream records: too early, in
/// time, or too early once and in time later.
fn hand_over(by_host: bool, waits: &[bool]) -> Option<IneffectiveOrder> {
    ineffective(|pe| {
        let (from, to) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
        let (producer, consumer, ready) = (pe.stream()?, pe.stream()?, pe.event()?);
        let wait = || if by_host { pe.synchronize_event(&ready) } else { pe.wait_event(&ready, &consumer) };
        for &too_early in waits {
            if too_early {
                wait()?;
            }
            pe.on(&producer).write(from.at(0), &[7])?;
            pe.record(&ready, &producer)?;
            if !too_early {
                wait()?;
            }
        }
        pe.on(&producer).write(from.at(1), &[7])?; // races with what follows, whoever waited
        let never = pe.event()?;
        if by_host {
            pe.read(&from)?;
            pe.synchronize_event(&never)?; // too late to matter
        } else {
            pe.on(&consumer).put(&to, &from, (pe.my_pe() + 1) % pe.n_pes())?;
            pe.wait_event(&never, &consumer)?;
        }
        pe.synchronize(&producer)?;
        pe.on(&consumer).barrier_all()?;
        pe.synchronize(&consumer)?;
        pe.free(to)?;
        pe.free(from)
    })
}

#[test]
fn a_wait_for_an_event_without_a_record_is_named() {
    for (by_host, call, stream) in [(false, "wait_event", Some(1)), (true, "synchronize_event", None)] {
        let of = |waits: &[bool]| hand_over(by_host, waits).map(|call| (call.call, call.stream, call.reason));
        assert_eq!(of(&[true]), Some((call, stream, IneffectiveReason::Unrecorded)));
        let early = [of(&[true, false]), of(&[false])]; // the last wait counts, and it waits for the first write
        let is_early = |found: &Option<(_, _, IneffectiveReason)>| match found {
            Some((name, by, IneffectiveReason::Recorded { record, before })) => {
                (*name, *by) == (call, stream) && record.line() + 9 > before.line() && record.line() < before.line()
            }
            _ => false,
        };
        assert!(early.iter().all(is_early), "{early:?}");
        assert_eq!(of(&[]), None);
    }
}

/// A stream's message, and a signal of another stream or of the host.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Stream,
    /// The host's comes behind the end of the stream's work: a fence is not enough there.
    Host,
    /// An event that is recorded before the fence.
    EventTooEarly,
    EventInTime,
}

fn message_beside(pe: &Pe<Sim>, way: Beside) -> Result<()> {
    let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let (a, b, ready) = (pe.stream()?, pe.stream()?, pe.event()?);
    match pe.my_pe() {
        0 => {
            pe.on(&a).put(&data, &from, 1)?; // put
            if way == Beside::EventTooEarly {
                pe.record(&ready, &a)?; // too early
            }
            pe.on(&a).fence()?; // fence
            if way == Beside::EventInTime {
                pe.record(&ready, &a)?;
            }
            if way == Beside::Host {
                pe.synchronize(&a)?;
                pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
            } else {
                pe.wait_event(&ready, &b)?; // wait
                pe.on(&b).signal_op(flag.signal(0), 1, SignalOp::Set, 1)?; // by a stream
            }
        }
        1 => {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.read_one(&data)?;
        }
        _ => {}
    }
    pe.synchronize(&b)?;
    pe.on(&a).quiet()?;
    pe.synchronize(&a)?;
    pe.free(flag)?;
    pe.free(from)?;
    pe.free(data)
}

#[test]
fn a_signal_that_does_not_wait_for_the_stream_is_named() {
    let found = |way| ineffective(|pe| message_beside(pe, way)).map(|call| (call.call, call.at.line(), call.reason));
    assert_eq!(found(Beside::Stream), Some(("signal_op", line("by a stream"), IneffectiveReason::Unordered)));
    assert_eq!(found(Beside::Host), Some(("fence", line("fence"), IneffectiveReason::Fence)));
}

#[test]
fn an_event_that_is_recorded_before_the_fence_is_named() {
    let found = ineffective(|pe| message_beside(pe, Beside::EventTooEarly)).expect("the wait");
    let IneffectiveReason::Recorded { record, before } = found.reason else { panic!("{found}") };
    assert_eq!(
        (found.call, found.at.line(), record.line(), before.line()),
        ("wait_event", line("wait"), line("too early"), line("fence"))
    );
    onesided_sim::prove(3, |pe: &Pe<Sim>| message_beside(pe, Beside::EventInTime));
}

/// The stream's quiet has taken the put away from the host's barrier, and waits for what comes behind that.
#[test]
fn a_barrier_that_another_quiet_has_taken_a_put_from_is_named() {
    let found = ineffective(|pe| {
        let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
        let (flag, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
        if pe.my_pe() == 0 {
            pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 9)?;
            pe.host().put_nbi(&data, &from, 1)?;
            pe.on(&stream).quiet()?;
        }
        pe.host().barrier_all()?; // taken from
        if pe.my_pe() == 1 {
            pe.read_one(&data)?;
            pe.host().signal_op(flag.signal(0), 9, SignalOp::Set, 0)?;
        }
        pe.synchronize(&stream)?;
        pe.free(flag)?;
        pe.free(from)?;
        pe.free(data)
    });
    let found = found.expect("the barrier");
    let claimed = ("barrier", line("taken from"), IneffectiveReason::Claimed);
    assert_eq!((found.call, found.at.line(), found.reason), claimed);
}

/// The only quiet of the PE has nothing taken away from it: it comes too late, or its stream has not come to it.
#[test]
fn a_quiet_that_nobody_came_before_has_nobody_to_blame() {
    let program = |late: bool| {
        move |pe: &Pe<Sim>| {
            let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
            let (flag, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
            if pe.my_pe() == 0 {
                pe.on(&stream).put(&data, &from, 1)?; // put late
                if late {
                    pe.synchronize(&stream)?;
                    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
                    pe.on(&stream).quiet()?;
                } else {
                    pe.on(&stream).quiet()?; // quiet in time
                    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
                }
            } else if pe.my_pe() == 1 {
                pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
                pe.read_one(&data)?;
            }
            pe.synchronize(&stream)?;
            pe.free(flag)?;
            pe.free(from)?;
            pe.free(data)
        }
    };
    assert_eq!([false, true].map(|late| ineffective(program(late))), [None, None]);
    let missing = |late| refute(3, program(late)).verdict.races[0].missing;
    let MissingEdge::Quiet { after, .. } = missing(true) else { panic!("something else is missing") };
    assert_eq!(after.line(), line("put late"));
    let MissingEdge::Synchronize { after, quiet: false, .. } = missing(false) else { panic!("the quiet is there") };
    assert_eq!(after.line(), line("quiet in time"));
}
