//! The rows of the table: which number of a job each shows, and what ours should be.

use super::job::{Measured, Medians};
use super::plan::{Beside, Kind, Measurement, size};
use crate::row::{Target, Unit};

/// What a small operation's issue may cost, in times of the same calls in C++.
const ISSUE: Target = Target::TimesPeer(1.05);
/// What the bandwidth of a large transfer must be.
const BANDWIDTH: Target = Target::TimesPeer(0.99);
/// What initialization may take.
const INIT: Target = Target::TimesPeer(1.1);

/// From so many bytes on, a transfer is large: its bandwidth counts, and not what the call costs.
const LARGE: usize = 1 << 20;

/// One number of a job.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) target: Option<Target>,
    pub(super) peer: Peer,
    source: Source,
}

/// What ours is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Nothing.
    Nobody,
    /// The same number of the C++ program.
    Program,
    /// The same calls in C++, in the same process; the C++ program's number is shown beside.
    Pair,
    /// The same kernel with NVSHMEM's own headers, in the same process.
    Headers,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// What a job says of its start.
    Start(fn(&Measured) -> Option<f64>),
    /// What the calls of a measurement took.
    Calls(Measurement, fn(Medians, Measurement) -> f64),
}

impl Figure {
    /// The measurement that it comes from, if it comes from one.
    pub(super) fn measurement(&self) -> Option<Measurement> {
        match self.source {
            Source::Start(_) => None,
            Source::Calls(measurement, _) => Some(measurement),
        }
    }

    /// The number out of what a job said, if it is there: of ours through the API, of the C++ program its own.
    pub(super) fn of(&self, job: &Measured) -> Option<f64> {
        match self.source {
            Source::Start(of) => of(job),
            Source::Calls(measurement, of) => Some(of(*job.medians.get(&measurement)?, measurement)),
        }
    }

    /// The same number of the C++ loops in the processes of a job, if they were there.
    pub(super) fn of_pair(&self, job: &Measured) -> Option<f64> {
        match self.source {
            Source::Start(_) => None,
            Source::Calls(measurement, of) => Some(of(*job.pairs.get(&measurement)?, measurement)),
        }
    }
}

/// The figures of initialization, and of each measurement, in the order of the table.
pub(super) fn figures(plan: &[Measurement]) -> Vec<Figure> {
    plan.iter().fold(initialization(), |mut figures, &measurement| {
        figures.extend(figures_of(measurement));
        figures
    })
}

fn initialization() -> Vec<Figure> {
    let ms = |name: &str, target, peer, of| Figure {
        name: name.to_string(),
        unit: Unit::Ms,
        target,
        peer,
        source: Source::Start(of),
    };
    vec![
        ms("init", Some(INIT), Peer::Program, |job| Some(job.init.get("init_ns")? / 1e6)),
        ms("start of the processes to the end of init", Some(INIT), Peer::Program, |job| {
            Some(job.ready.as_secs_f64() * 1e3)
        }),
        ms("loading the library", None, Peer::Nobody, |job| Some(job.init.get("load_ns")? / 1e6)),
    ]
}

fn figures_of(measurement: Measurement) -> Vec<Figure> {
    let (bytes, of) = (measurement.bytes, size(measurement.bytes));
    let peer = match measurement.beside() {
        Beside::Nothing => Peer::Nobody,
        Beside::Cpp => Peer::Pair,
        Beside::Headers => Peer::Headers,
    };
    let figure =
        |name: String, unit, target, of| Figure { name, unit, target, peer, source: Source::Calls(measurement, of) };
    let issue = |name: String| figure(name, Unit::Ns, Some(ISSUE), |medians, _| medians.issue);
    let done = |name: String| figure(name, Unit::Ns, None, |medians, _| medians.done);
    let rate = |name: String, target| figure(name, Unit::GBPerS, target, |medians, m| m.bytes as f64 / medians.done);
    match measurement.kind {
        Kind::Put if bytes == 0 => {
            let name = "put of nothing, issue (our own path)".to_string();
            vec![figure(name, Unit::Ns, None, |medians, _| medians.issue)]
        }
        Kind::Put if bytes < LARGE => vec![issue(format!("put {of}, issue")), done(format!("put {of}, completed"))],
        Kind::Put => vec![rate(format!("put {of}"), Some(BANDWIDTH))],
        Kind::Get => vec![issue(format!("get {of}, issue")), done(format!("get {of}, completed"))],
        Kind::HostGet => {
            let name = format!("get {of} of the host");
            vec![figure(name, Unit::Ns, Some(ISSUE), |medians, _| medians.done)]
        }
        Kind::PingPong => {
            vec![issue(format!("put_signal {of} and wait, issue")), done(format!("ping-pong {of}, there and back"))]
        }
        Kind::Barrier => vec![issue("barrier, issue".to_string()), done("barrier, completed".to_string())],
        Kind::Reduce if bytes < LARGE => {
            vec![issue(format!("reduce {of}, issue")), done(format!("reduce {of}, completed"))]
        }
        Kind::Reduce => vec![rate(format!("reduce {of}"), None)],
        Kind::Launch => vec![issue("launch, issue".to_string()), done("launch, completed".to_string())],
        Kind::Cooperative => {
            let name = "cooperative launch";
            vec![issue(format!("{name}, issue")), done(format!("{name}, completed"))]
        }
        Kind::DeviceP => vec![done("p in a kernel".to_string())],
        Kind::DeviceG => vec![done("g in a kernel".to_string())],
        Kind::DevicePut => vec![done(format!("put {of} in a kernel"))],
        Kind::DeviceSignal => vec![done("signal_op in a kernel".to_string())],
        Kind::DeviceFence => vec![done("fence in a kernel".to_string())],
        Kind::DeviceQuiet => vec![done("quiet in a kernel".to_string())],
    }
}

/// The figures whose name contains the pattern, and the measurements that they come from.
///
/// # Errors
/// No name contains it; the sentence lists the names.
pub(super) fn chosen(plan: Vec<Measurement>, pattern: Option<&str>) -> Result<(Vec<Measurement>, Vec<Figure>), String> {
    let mut figures = figures(&plan);
    let Some(pattern) = pattern else { return Ok((plan, figures)) };
    let names: Vec<String> = figures.iter().map(|figure| figure.name.clone()).collect();
    figures.retain(|figure| figure.name.contains(pattern));
    if figures.is_empty() {
        return Err(format!("no benchmark's name contains '{pattern}'; there are:\n  {}", names.join("\n  ")));
    }
    let needed = |measurement: &Measurement| figures.iter().any(|figure| figure.measurement() == Some(*measurement));
    let plan = plan.into_iter().filter(needed).collect();
    Ok((plan, figures))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onesided_harness::launch::Fabric;

    use super::super::plan::plan;
    use super::*;

    #[test]
    fn every_measurement_has_rows_and_every_row_its_own_name() {
        let figures = figures(&plan(false, Fabric::P2p));
        let names: BTreeSet<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names.len(), figures.len(), "{figures:?}");
        for measurement in plan(false, Fabric::P2p) {
            assert!(figures.iter().any(|figure| figure.measurement() == Some(measurement)), "{measurement}");
        }
    }

    #[test]
    fn the_targets_are_those_of_small_operations_large_transfers_and_init() {
        let figures = figures(&plan(false, Fabric::P2p));
        for figure in &figures {
            let expected = match &figure.name {
                name if name.ends_with(", issue") || name.ends_with("of the host") => Some(ISSUE),
                name if name.starts_with("put ") && name.ends_with(" MiB") => Some(BANDWIDTH),
                name if name.ends_with("init") => Some(INIT),
                _ => None,
            };
            assert_eq!(figure.target, expected, "{figure:?}");
        }
        assert!(figures.iter().any(|figure| figure.name == "put 256 MiB"), "{figures:?}");
    }

    #[test]
    fn calls_of_the_library_are_compared_in_pairs_and_initialization_with_the_program() {
        for figure in figures(&plan(false, Fabric::P2p)) {
            let expected = match &figure.name {
                name if name.ends_with("init") => Peer::Program,
                name if name == "loading the library" || name.ends_with("(our own path)") => Peer::Nobody,
                name if name.ends_with(" in a kernel") => Peer::Headers,
                _ => Peer::Pair,
            };
            assert_eq!(figure.peer, expected, "{figure:?}");
        }
    }

    #[test]
    fn a_pattern_chooses_rows_and_what_they_need() {
        let (measurements, figures) = chosen(plan(false, Fabric::P2p), Some("barrier")).unwrap();
        assert_eq!(measurements.len(), 1);
        assert_eq!(
            figures.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
            ["barrier, issue", "barrier, completed"]
        );
        let (none, init) = chosen(plan(false, Fabric::P2p), Some("library")).unwrap();
        assert_eq!((none.len(), init.len()), (0, 1));
        assert!(chosen(plan(false, Fabric::P2p), Some("parsec")).unwrap_err().contains("there are:\n  init\n"));
    }
}
