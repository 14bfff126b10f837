//! Whole programs, from start to end: time and memory of a process that does nothing else.

use std::cell::RefCell;

use super::child::{Outcome, Part};
use super::lab::{Bench, Lab};
use super::row::{Cell, Row, Target, Unit};

/// Numbers of PEs of the empty program.
const SIZES: [usize; 3] = [2, 8, 64];

/// PEs of the large ring.
const MANY: usize = 4096;

pub(super) fn benches() -> Vec<Bench> {
    let empty = |pes: usize| {
        let name = format!("empty program of {pes} PEs");
        Bench::new(name.clone(), move |lab| empty_rows(lab, &name, pes))
    };
    let mut benches: Vec<Bench> = SIZES.into_iter().map(empty).collect();
    let ring = format!("ring of {MANY} PEs");
    benches.push(Bench::new(ring.clone(), move |lab| ring_rows(lab, &ring)));
    benches
}

/// Both sides from the start of a process to its end: of this program, and of `oshrun`.
fn empty_rows(lab: &Lab, name: &str, pes: usize) -> Vec<Row> {
    let child = Child::new(Part::Empty(pes));
    let (ours, peer) =
        lab.race(Unit::Ms, || child.time(1e3), || lab.oshmem(|oshmem| oshmem.process_ms(pes, &["empty"])));
    let mut time = Row::new(name, Unit::Ms, ours).beside(format!("{}, oshrun to its end", lab.oshmem_name(pes)), peer);
    if pes < 64 {
        return vec![time];
    }
    time = time.target(Target::AtMost(5.0));
    let one = Child::new(Part::Empty(1));
    let alone = lab.alone(Unit::MiB, || {
        one.time(1e3);
        one.peak()
    });
    let more = match (child.peak(), alone) {
        (Cell::Value(all), Cell::Value(one)) => Cell::Value(all - one),
        (Cell::Value(_), trouble) | (trouble, _) => trouble,
    };
    let memory = Row::new(format!("{name}, memory beyond that of 1 PE"), Unit::MiB, more);
    vec![time, memory.target(Target::AtMost(32.0))]
}

/// Open MPI cannot start so many processes here; threads are what comes closest.
fn ring_rows(lab: &Lab, name: &str) -> Vec<Row> {
    let (ours, threads) = (Child::new(Part::Ring(MANY)), Child::new(Part::Threads(MANY)));
    let (time, peer_time) = lab.race(Unit::S, || ours.time(1.0), || not_run(threads.time(1.0)));
    let peer_name = format!("{MANY} threads with atomics and std's Barrier");
    vec![
        Row::new(name, Unit::S, time).beside(peer_name.clone(), peer_time).target(Target::AtMost(2.0)),
        Row::new(format!("{name}, memory"), Unit::MiB, ours.peak())
            .beside(peer_name, not_run(threads.peak()))
            .target(Target::AtMost(512.0)),
    ]
}

/// A part that is played again and again, and the least memory that it took.
struct Child {
    part: Part,
    peak: RefCell<Cell>,
}

impl Child {
    fn new(part: Part) -> Child {
        Child { part, peak: RefCell::new(Cell::Absent) }
    }

    /// The time of one more process, in seconds times `scale`.
    fn time(&self, scale: f64) -> Cell {
        match self.part.measure() {
            Ok(Outcome { time, peak_mib, .. }) => {
                let known = self.peak.borrow().value().unwrap_or(f64::INFINITY);
                *self.peak.borrow_mut() = match peak_mib {
                    Some(peak) => Cell::Value(peak.min(known)),
                    None => Cell::NotRun("no /proc/self/status".into()),
                };
                Cell::Value(time.as_secs_f64() * scale)
            }
            Err(why) => {
                *self.peak.borrow_mut() = Cell::Failed(why.clone());
                Cell::Failed(why)
            }
        }
    }

    /// The least peak of the processes so far.
    fn peak(&self) -> Cell {
        self.peak.borrow().clone()
    }
}

/// A peer that goes wrong is no failure of ours.
fn not_run(cell: Cell) -> Cell {
    if let Cell::Failed(why) = cell { Cell::NotRun(why) } else { cell }
}
