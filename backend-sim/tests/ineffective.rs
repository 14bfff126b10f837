//! A race that lacks a quiet or fence where one stands: the report says why that one does not help.

use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{IneffectiveOrder, IneffectiveReason, Sim, refute};

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
        assert_eq!(of(&[true, false]), None, "the last wait counts");
        assert_eq!(of(&[false]), None);
        assert_eq!(of(&[]), None);
    }
}

/// The only quiet of the PE has nothing taken away from it: it comes too late, or its stream has not come to it.
#[test]
fn a_quiet_that_nobody_came_before_has_nobody_to_blame() {
    let call = |late: bool| {
        ineffective(move |pe| {
            let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
            let (flag, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
            if pe.my_pe() == 0 {
                pe.on(&stream).put(&data, &from, 1)?;
                if late {
                    pe.synchronize(&stream)?;
                    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
                    pe.on(&stream).quiet()?;
                } else {
                    pe.on(&stream).quiet()?;
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
        })
    };
    assert_eq!([call(false), call(true)], [None, None]);
}
