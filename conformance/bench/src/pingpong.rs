//! Ping-pong: eight bytes and a signal to the other PE, and back.

use std::time::Instant;

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use super::lab::{Bench, Lab, in_order, ns_each};
use super::row::{Row, Target, Unit};

pub(super) fn benches() -> Vec<Bench> {
    let name = "ping-pong of 8 B with signals, one way";
    vec![Bench::new(name, |lab| vec![row(lab, name)])]
}

/// The peer has no put with signal (OpenSHMEM 1.4): it puts the data, fences, and puts the flag.
fn row(lab: &Lab, name: &str) -> Row {
    let count = lab.times(200_000);
    let arguments = count.to_string();
    let (ours, peer) = lab.race(
        Unit::Ns,
        || in_order(2, |pe| ping_pong(pe, count)),
        || lab.oshmem(|oshmem| oshmem.measure(2, &["pingpong", &arguments])),
    );
    let peer_name = format!("{}, put, fence, put of the flag", lab.oshmem_name(2));
    Row::new(name, Unit::Ns, ours).beside(peer_name, peer).target(Target::AtMost(250.0))
}

/// Nanoseconds for one way, over `count` ways there and back.
fn ping_pong(pe: &Pe<impl Backend>, count: u64) -> Result<f64> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let start = Instant::now();
    for turn in 1..=count {
        if pe.my_pe() == 1 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, turn)?;
        }
        pe.host().put_signal(&dst, &src, flag.signal(0), turn, SignalOp::Set, 1 - pe.my_pe())?;
        if pe.my_pe() == 0 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, turn)?;
        }
    }
    let ns = ns_each(start, 2 * count);
    pe.host().barrier_all()?;
    pe.free(dst)?;
    pe.free(src)?;
    pe.free(flag)?;
    Ok(ns)
}
