//! Barriers of all PEs.

use std::time::Instant;

use onesided::{Backend, Pe, Result};

use super::lab::{Bench, Lab, in_order, ns_each};
use super::row::{Row, Target, Unit};

/// Numbers of PEs, and what a barrier of them should take in nanoseconds.
const SIZES: [(usize, Option<f64>); 3] = [(2, None), (4, None), (8, Some(1500.0))];

pub(super) fn benches() -> Vec<Bench> {
    let of = |(pes, most): (usize, Option<f64>)| {
        let name = format!("barrier of {pes} PEs");
        Bench::new(name.clone(), move |lab| vec![row(lab, &name, pes, most)])
    };
    SIZES.into_iter().map(of).collect()
}

fn row(lab: &Lab, name: &str, pes: usize, most: Option<f64>) -> Row {
    let count = lab.times(200_000 / pes as u64);
    let arguments = lab.times(20_000 / pes as u64).to_string();
    let (ours, peer) = lab.race(
        Unit::Ns,
        || in_order(pes, |pe| barriers(pe, count)),
        || lab.oshmem(|oshmem| oshmem.measure(pes, &["barrier", &arguments])),
    );
    let row = Row::new(name, Unit::Ns, ours).beside(lab.oshmem_name(pes), peer);
    most.map_or(row.clone(), |most| row.target(Target::AtMost(most)))
}

/// Nanoseconds per barrier, all PEs through it.
fn barriers(pe: &Pe<impl Backend>, count: u64) -> Result<f64> {
    pe.host().barrier_all()?;
    let start = Instant::now();
    for _ in 0..count {
        pe.host().barrier_all()?;
    }
    Ok(ns_each(start, count))
}
