//! The rows of the table: which number of a job each shows, and what ours should be.

use std::fmt;

use super::job::Measured;
use super::plan::{Kind, Measurement, size};
use crate::bench::row::{Target, Unit};

/// What a small operation's issue may cost, in times of the C++ program's.
const ISSUE: Target = Target::TimesPeer(1.05);
/// What the bandwidth of a large transfer must be.
const BANDWIDTH: Target = Target::TimesPeer(0.99);
/// What initialization may take.
const INIT: Target = Target::TimesPeer(1.1);

/// From so many bytes on, a transfer is large: its bandwidth counts, and not what the call costs.
const LARGE: usize = 1 << 20;

/// One number of a job.
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) target: Option<Target>,
    /// Whether the C++ program has this number too.
    pub(super) has_peer: bool,
    /// The measurement that it comes from; `None` for those of initialization.
    pub(super) measurement: Option<Measurement>,
    pub(super) of: Box<Of>,
}

/// Takes the number out of what a job said, if it is there.
type Of = dyn Fn(&Measured) -> Option<f64>;

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Figure({})", self.name)
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
    let ms = |name: &str, target, has_peer, of: fn(&Measured) -> Option<f64>| Figure {
        name: name.to_string(),
        unit: Unit::Ms,
        target,
        has_peer,
        measurement: None,
        of: Box::new(of),
    };
    vec![
        ms("init", Some(INIT), true, |job| Some(job.init.get("init_ns")? / 1e6)),
        ms("start of the processes to the end of init", Some(INIT), true, |job| Some(job.ready.as_secs_f64() * 1e3)),
        ms("loading the library", None, false, |job| Some(job.init.get("load_ns")? / 1e6)),
    ]
}

fn figures_of(measurement: Measurement) -> Vec<Figure> {
    let (bytes, of) = (measurement.bytes, size(measurement.bytes));
    let figure = |name: String, unit, target, of: fn(&Measured, Measurement) -> Option<f64>| Figure {
        name,
        unit,
        target,
        has_peer: true,
        measurement: Some(measurement),
        of: Box::new(move |job| of(job, measurement)),
    };
    let issue = |name: String| figure(name, Unit::Ns, Some(ISSUE), |job, m| Some(job.medians.get(&m)?.issue));
    let done = |name: String| figure(name, Unit::Ns, None, |job, m| Some(job.medians.get(&m)?.done));
    let rate = |name: String, target| {
        figure(name, Unit::GBPerS, target, |job, m| Some(m.bytes as f64 / job.medians.get(&m)?.done))
    };
    match measurement.kind {
        Kind::Put if bytes < LARGE => vec![issue(format!("put {of}, issue")), done(format!("put {of}, completed"))],
        Kind::Put => vec![rate(format!("put {of}"), Some(BANDWIDTH))],
        Kind::PingPong => {
            vec![issue(format!("put_signal {of} and wait, issue")), done(format!("ping-pong {of}, there and back"))]
        }
        Kind::Barrier => vec![issue("barrier, issue".to_string()), done("barrier, completed".to_string())],
        Kind::Reduce if bytes < LARGE => {
            vec![issue(format!("reduce {of}, issue")), done(format!("reduce {of}, completed"))]
        }
        Kind::Reduce => vec![rate(format!("reduce {of}"), None)],
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
    let needed = |measurement: &Measurement| figures.iter().any(|figure| figure.measurement == Some(*measurement));
    let plan = plan.into_iter().filter(needed).collect();
    Ok((plan, figures))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::plan::plan;
    use super::*;

    #[test]
    fn every_measurement_has_rows_and_every_row_its_own_name() {
        let figures = figures(&plan(false));
        let names: BTreeSet<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names.len(), figures.len(), "{figures:?}");
        for measurement in plan(false) {
            assert!(figures.iter().any(|figure| figure.measurement == Some(measurement)), "{measurement}");
        }
    }

    #[test]
    fn the_targets_are_those_of_small_operations_large_transfers_and_init() {
        let figures = figures(&plan(false));
        for figure in &figures {
            let expected = match &figure.name {
                name if name.ends_with(", issue") => Some(ISSUE),
                name if name.starts_with("put ") && name.ends_with(" MiB") => Some(BANDWIDTH),
                name if name.ends_with("init") => Some(INIT),
                _ => None,
            };
            assert_eq!(figure.target, expected, "{figure:?}");
        }
        assert!(figures.iter().any(|figure| figure.name == "put 256 MiB"), "{figures:?}");
    }

    #[test]
    fn a_pattern_chooses_rows_and_what_they_need() {
        let (measurements, figures) = chosen(plan(false), Some("barrier")).unwrap();
        assert_eq!(measurements.len(), 1);
        assert_eq!(
            figures.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
            ["barrier, issue", "barrier, completed"]
        );
        let (none, init) = chosen(plan(false), Some("library")).unwrap();
        assert_eq!((none.len(), init.len()), (0, 1));
        assert!(chosen(plan(false), Some("parsec")).unwrap_err().contains("there are:\n  init\n"));
    }
}
