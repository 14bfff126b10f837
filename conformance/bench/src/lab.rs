//! How a number is measured.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use onesided::{Error, Pe, Result};
use onesided_harness::tool::interrupt;
use onesided_sim::{Config, Explore, Sim, Simulation};

use super::peers::Oshmem;
use super::row::{Cell, Row, Unit};
use super::search::Search;

/// How often each side is measured.
const PASSES: usize = 7;

/// After so long, three passes are enough.
const LONG: Duration = Duration::from_secs(20);

/// One benchmark: some rows or searches that are measured together. Their names begin with its own.
pub(super) struct Bench {
    pub(super) name: String,
    pub(super) measure: Box<Measure>,
}

/// Measures.
type Measure = dyn Fn(&Lab) -> Measured;

/// What a benchmark gave.
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) searches: Vec<Search>,
}

impl Bench {
    pub(super) fn new(name: impl Into<String>, measure: impl Fn(&Lab) -> Vec<Row> + 'static) -> Bench {
        Bench { name: name.into(), measure: Box::new(move |lab| Measured { rows: measure(lab), searches: Vec::new() }) }
    }

    pub(super) fn of_searches(name: impl Into<String>, measure: impl Fn(&Lab) -> Vec<Search> + 'static) -> Bench {
        Bench { name: name.into(), measure: Box::new(move |lab| Measured { rows: Vec::new(), searches: measure(lab) }) }
    }
}

/// What all benchmarks share.
pub(super) struct Lab {
    quick: bool,
    oshmem: OnceCell<std::result::Result<Oshmem, String>>,
}

impl Lab {
    pub(super) fn new(quick: bool) -> Lab {
        Lab { quick, oshmem: OnceCell::new() }
    }

    /// Whether it is only to be shown that everything runs.
    pub(super) fn is_quick(&self) -> bool {
        self.quick
    }

    /// So many repetitions, or a few if it is to be quick.
    pub(super) fn times(&self, full: u64) -> u64 {
        if self.quick { full.min(10) } else { full }
    }

    /// Measures ours and the peer's in turn, several times, and gives the best of each: what disturbs one pass then
    /// disturbs both, and the best pass is the one that was disturbed least.
    pub(super) fn race(
        &self,
        unit: Unit,
        mut ours: impl FnMut() -> Cell,
        mut peer: impl FnMut() -> Cell,
    ) -> (Cell, Cell) {
        let start = Instant::now();
        let (mut best_ours, mut best_peer) = (ours(), peer());
        let passes = if self.quick { 1 } else { PASSES };
        for pass in 1..passes {
            if (pass >= 3 && start.elapsed() > LONG) || interrupt::is_wanted() {
                break;
            }
            improve(unit, &mut best_ours, &mut ours);
            improve(unit, &mut best_peer, &mut peer);
        }
        (best_ours, best_peer)
    }

    /// As [`Lab::race`], where there is no peer.
    pub(super) fn alone(&self, unit: Unit, ours: impl FnMut() -> Cell) -> Cell {
        self.race(unit, ours, || Cell::Absent).0
    }

    /// The same measurement by Open MPI's OpenSHMEM.
    pub(super) fn oshmem(&self, measure: impl Fn(&Oshmem) -> Cell) -> Cell {
        match self.oshmem.get_or_init(Oshmem::find) {
            Ok(oshmem) => measure(oshmem),
            Err(why) => Cell::NotRun(why.clone()),
        }
    }

    /// Its name, with so many processes.
    pub(super) fn oshmem_name(&self, pes: usize) -> String {
        let version = self.oshmem.get_or_init(Oshmem::find).as_ref().map_or("Open MPI", |oshmem| oshmem.version());
        format!("{version} OpenSHMEM, {pes} processes")
    }
}

/// Measures again, if there was a number at all.
fn improve(unit: Unit, best: &mut Cell, measure: &mut impl FnMut() -> Cell) {
    let Some(value) = best.value() else { return };
    match measure() {
        Cell::Value(again) => *best = Cell::Value(unit.better(value, again)),
        trouble => *best = trouble,
    }
}

/// Runs a program in order and gives what its PE 0 measured.
pub(super) fn in_order(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<f64>) -> Cell {
    in_order_on(endless(pes), program)
}

/// The same, on any cluster.
pub(super) fn in_order_on(config: Config, program: impl Fn(&Pe<Sim>) -> Result<f64>) -> Cell {
    let measured = || {
        let mut simulation = Simulation::new(config)?;
        let results = simulation.run(program)?.into_results()?;
        results.first().copied().ok_or_else(|| Error::wrong_result("no PE returned"))
    };
    measured().into()
}

/// The cores that are used where the number of them is compared.
pub(super) const CORES: [usize; 2] = [1, 2];

/// Why the machine has not so many.
pub(super) fn too_few_cores(cores: usize) -> Option<String> {
    let has = std::thread::available_parallelism().map_or(1, usize::from);
    (has < cores).then(|| format!("cores of this machine: {has}"))
}

/// The time that so many random schedules of a program take on so many cores, start and end of each included.
pub(super) fn random<T: Send>(
    cores: usize,
    pes: usize,
    schedules: u64,
    program: impl Fn(&Pe<Sim>) -> Result<T> + Sync,
) -> Result<Duration> {
    let mut simulation = Simulation::new(endless(pes))?;
    let mut bug = None;
    let start = Instant::now();
    simulation.on_cores(Some(cores)).explore(Explore::random(schedules, 1), program, |run| {
        if run.is_ok() {
            return ControlFlow::Continue(());
        }
        bug = Some(run.verdict.to_string());
        ControlFlow::Break(())
    })?;
    let time = start.elapsed();
    bug.map_or(Ok(time), |verdict| Err(Error::wrong_result(verdict)))
}

/// The default cluster without a limit of steps: a benchmark takes many, and ends.
pub(super) fn endless(pes: usize) -> Config {
    Config { max_steps: Some(u64::MAX), ..Config::pes(pes) }
}

/// Nanoseconds for each of `count` things since `start`.
pub(super) fn ns_each(start: Instant, count: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Things per second.
pub(super) fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(values: &mut Vec<Cell>) -> Cell {
        values.remove(0)
    }

    #[test]
    fn the_best_pass_counts_and_trouble_stays() {
        let mut ours: Vec<Cell> = [5.0, 3.0, 4.0, 9.0, 9.0, 9.0, 9.0].map(Cell::Value).into();
        let mut peer = vec![Cell::Value(1.0), Cell::Failed("gone".into())];
        let best = Lab::new(false).race(Unit::Ns, || next(&mut ours), || next(&mut peer));
        assert_eq!(best, (Cell::Value(3.0), Cell::Failed("gone".into())));
        let mut rates: Vec<Cell> = [5.0, 3.0, 4.0, 9.0, 1.0, 1.0, 1.0].map(Cell::Value).into();
        assert_eq!(Lab::new(false).alone(Unit::GBPerS, || next(&mut rates)), Cell::Value(9.0));
    }

    #[test]
    fn quick_measures_once() {
        let mut calls = 0;
        Lab::new(true).alone(Unit::Ns, || {
            calls += 1;
            Cell::Value(1.0)
        });
        assert_eq!(calls, 1);
    }
}
