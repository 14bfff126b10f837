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
