//! Large puts: how close they come to a plain copy of memory.

use std::hint::black_box;
use std::time::Instant;

use onesided::{Backend, Pe, Result};

use super::lab::{Bench, Lab, in_order};
use super::row::{Cell, Row, Target, Unit};

/// Name, bytes, repetitions in a pass.
const SIZES: [(&str, usize, u64); 2] = [("put 1 MiB", 1 << 20, 500), ("put 64 MiB", 64 << 20, 5)];

pub(super) fn benches() -> Vec<Bench> {
    let against_copy = |(name, bytes, count): (&'static str, usize, u64)| {
        Bench::new(name, move |lab| vec![copy_row(lab, name, bytes, count)])
    };
    let mut benches: Vec<Bench> = SIZES.into_iter().map(against_copy).collect();
    benches.push(Bench::new("put 1 MiB and quiet", |lab| vec![oshmem_row(lab, "put 1 MiB and quiet")]));
    benches
}

fn copy_row(lab: &Lab, name: &str, bytes: usize, count: u64) -> Row {
    let count = lab.times(count);
    let (ours, peer) =
        lab.race(Unit::GBPerS, || in_order(2, |pe| puts(pe, bytes, count)), || Cell::Value(copies(bytes, count)));
    let row = Row::new(name, Unit::GBPerS, ours).beside("copy_from_slice between two vectors", peer);
    row.target(Target::Ratio(0.8))
}

fn oshmem_row(lab: &Lab, name: &str) -> Row {
    let (_, bytes, count) = SIZES[0];
    let count = lab.times(count);
    let (size, times) = (bytes.to_string(), count.to_string());
    let (ours, peer) = lab.race(
        Unit::GBPerS,
        || in_order(2, |pe| puts(pe, bytes, count)),
        || lab.oshmem(|oshmem| oshmem.measure(2, &["bulk", &size, &times])),
    );
    Row::new(name, Unit::GBPerS, ours).beside(format!("{}, put and quiet", lab.oshmem_name(2)), peer)
}

/// PE 0 puts its buffer to PE 1's and completes that, `count` times after a first time; gives GB/s.
pub(super) fn puts(pe: &Pe<impl Backend>, bytes: usize, count: u64) -> Result<f64> {
    let buf = pe.alloc::<u8>(bytes)?;
    let mut rate = 0.0;
    if pe.my_pe() == 0 {
        pe.host().put(&buf, &buf, 1)?;
        pe.host().quiet()?;
        let start = Instant::now();
        for _ in 0..count {
            pe.host().put(&buf, &buf, 1)?;
            pe.host().quiet()?;
        }
        rate = gb_per_s(bytes, count, start);
    }
    pe.host().barrier_all()?;
    pe.free(buf)?;
    Ok(rate)
}

/// The same with two vectors.
fn copies(bytes: usize, count: u64) -> f64 {
    let (src, mut dst) = (vec![1u8; bytes], vec![2u8; bytes]);
    dst.copy_from_slice(black_box(&src));
    let start = Instant::now();
    for _ in 0..count {
        dst.copy_from_slice(black_box(&src));
        black_box(&mut dst);
    }
    gb_per_s(bytes, count, start)
}

fn gb_per_s(bytes: usize, count: u64, start: Instant) -> f64 {
    (bytes as u64 * count) as f64 / start.elapsed().as_nanos() as f64
}
