//! Small puts: what one operation costs from issue to delivery.

use std::time::{Duration, Instant};

use onesided::{Backend, Pe, Result, expect_eq};

use super::lab::{Bench, Lab, in_order, ns_each, random};
use super::row::{Cell, Row, Target, Unit};

/// Words that are put to in turn, each once until the next quiet: the program has no race.
const WORDS: usize = 1024;

/// A put is two events: its source is read when it is issued, and it is delivered.
const EVENTS: f64 = 2.0;

pub(super) fn benches() -> Vec<Bench> {
    let plain = "put 8 B, in order";
    let at_random = "put 8 B, random order";
    vec![
        Bench::new(plain, |lab| in_order_rows(lab, plain)),
        Bench::new("put 8 B and quiet, in order", |lab| vec![quiet_row(lab, "put 8 B and quiet, in order")]),
        Bench::new(at_random, |lab| random_rows(lab, at_random)),
    ]
}

/// In order, a put is delivered when the call returns: its time is that of both events.
fn in_order_rows(lab: &Lab, name: &str) -> Vec<Row> {
    let rounds = lab.times(1000);
    let (ours, peer) = lab.race(Unit::Ns, || in_order(2, |pe| puts(pe, rounds)), || oshmem_put(lab));
    vec![
        Row::new(name, Unit::Ns, ours.clone()).beside(format!("{}, put and quiet", lab.oshmem_name(2)), peer),
        Row::new(format!("{name}, per event"), Unit::NsPerEvent, ours.map(|ns| ns / EVENTS))
            .target(Target::AtMost(50.0)),
    ]
}

/// The same two calls as the peer makes.
fn quiet_row(lab: &Lab, name: &str) -> Row {
    let count = lab.times(500_000);
    let (ours, peer) = lab.race(Unit::Ns, || in_order(2, |pe| puts_and_quiets(pe, count)), || oshmem_put(lab));
    Row::new(name, Unit::Ns, ours).beside(format!("{}, put and quiet", lab.oshmem_name(2)), peer)
}

/// Whole random schedules of 1,024 puts, start and end included. Under each seed, transfers in flight pile up
/// differently; the number is the mean over the seeds.
fn random_rows(lab: &Lab, name: &str) -> Vec<Row> {
    let schedules = lab.times(200);
    let each = |time: Duration| time.as_nanos() as f64 / (schedules * WORDS as u64) as f64;
    let ours = lab.alone(Unit::Ns, || random(1, 2, schedules, |pe| puts(pe, 1)).map(each).into());
    vec![
        Row::new(name, Unit::Ns, ours.clone()),
        Row::new(format!("{name}, per event"), Unit::NsPerEvent, ours.map(|ns| ns / EVENTS))
            .target(Target::AtMost(80.0)),
    ]
}

fn oshmem_put(lab: &Lab) -> Cell {
    let count = lab.times(500_000).to_string();
    lab.oshmem(|oshmem| oshmem.measure(2, &["put", &count]))
}

/// PE 0 puts a word to each word of PE 1, `rounds` times; gives nanoseconds per put.
pub(super) fn puts(pe: &Pe<impl Backend>, rounds: u64) -> Result<f64> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(WORDS)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let start = Instant::now();
    if pe.my_pe() == 0 {
        for _ in 0..rounds {
            for word in 0..WORDS {
                pe.host().put(dst.at(word), &src, 1)?;
            }
            pe.host().quiet()?;
        }
    }
    let ns = ns_each(start, rounds * WORDS as u64);
    pe.host().barrier_all()?;
    expect_eq(pe.read(dst.at(WORDS - 1))?[0], 7 * pe.my_pe() as u64, "the last word")?;
    pe.free(dst)?;
    pe.free(src)?;
    Ok(ns)
}

/// PE 0 puts one word to PE 1 and completes it, `count` times; gives nanoseconds per pair of calls.
fn puts_and_quiets(pe: &Pe<impl Backend>, count: u64) -> Result<f64> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let start = Instant::now();
    if pe.my_pe() == 0 {
        for _ in 0..count {
            pe.host().put(&dst, &src, 1)?;
            pe.host().quiet()?;
        }
    }
    let ns = ns_each(start, count);
    pe.host().barrier_all()?;
    pe.free(dst)?;
    pe.free(src)?;
    Ok(ns)
}
