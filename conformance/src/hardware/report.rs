//! What a person reads of a suite on GPUs, and its JSON.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use onesided::Backend;
use onesided::count;
use onesided_harness::hardware::machine::Machine;
use onesided_harness::launch::Fabric;
use onesided_harness::say;
use serde_json::{Value, json};

use super::suite::{Ran, Results, Settings};
use crate::case::Case;
use crate::check::{Checked, Status};

/// What belongs to all results of a suite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The machine.
    pub(crate) machine: &'a Machine,
    /// How the cases ran.
    pub(crate) settings: &'a Settings,
    /// How long it took.
    pub(crate) time: Duration,
}

/// Makes a line for each case when it ends.
#[derive(Debug)]
pub(crate) struct Printer {
    width: usize,
    /// Why the last case failed. If many fail for the same reason, it is printed once.
    why: String,
}

impl Printer {
    /// For these cases.
    pub(crate) fn new<B: Backend>(cases: &[Case<B>]) -> Printer {
        Printer { width: cases.iter().map(|case| case.name.len()).max().unwrap_or(0), why: String::new() }
    }

    /// The line about a case that ran.
    pub(crate) fn line(&mut self, ran: &Ran) -> String {
        let checked = &ran.checked;
        let is_again = checked.status == Status::Failed && checked.why == self.why;
        self.why.clone_from(&checked.why);
        if is_again {
            let again = Checked { why: "as the case before it".to_string(), ..checked.clone() };
            return again.line(self.width, "run");
        }
        checked.line(self.width, "run")
    }
}

/// Repeats what failed, says what did not run and why, and where everything ran. The last line is for programs.
pub(crate) fn summary(results: &Results, facts: &Facts<'_>, [passed, failed, not_run]: [usize; 3]) {
    let of = |status: Status| results.cases.iter().filter(move |ran| ran.checked.status == status);
    let (mut runs, mut reasons) = (0, BTreeMap::<&str, u64>::new());
    results.cases.iter().for_each(|ran| runs += ran.checked.visits);
    of(Status::NotRun).for_each(|ran| *reasons.entry(&ran.checked.why).or_default() += 1);
    say!("");
    for (why, number) in reasons {
        say!("{number} not run: {why}");
    }
    for ran in of(Status::Failed) {
        say!("FAILED  {}", ran.checked.name);
    }
    for problem in &results.problems {
        say!("FAILED  {problem}");
    }
    let seconds = facts.time.as_secs_f64();
    say!("{} on {}, {seconds:.1} s", count(runs, "run"), place(results, facts.machine, facts.settings));
    say!("{passed} passed, {failed} failed, {not_run} not run");
}

/// The backend, its library, the driver, the GPUs: `nvshmem (libnvshmem 3.4.5, …)`.
pub(crate) fn place(results: &Results, machine: &Machine, settings: &Settings) -> String {
    let library = results.library.as_deref().unwrap_or("library unknown: no job started");
    let driver = machine.driver.as_ref().map(|driver| format!("driver {driver}, ")).unwrap_or_default();
    let mps = if results.mps { ", shared under MPS" } else { "" };
    let gpus = machine.gpus_in_words(&settings.gpus);
    let fabric = match (settings.rig.fabric(), settings.rig.nodes().len()) {
        (Fabric::P2p, _) => String::new(),
        (fabric, 0) => format!(", fabric {fabric}"),
        (fabric, nodes) => format!(", fabric {fabric} with {nodes} nodes"),
    };
    format!("nvshmem ({library}, {driver}CUDA {}, {gpus}{mps}{fabric})", machine.cuda)
}

/// The report `onesided-suite/2`; the crate's README describes its fields.
pub(crate) fn to_json(results: &Results, facts: &Facts<'_>) -> Value {
    let cases = results.cases.iter().map(|Ran { checked, gpus, coverage, .. }| {
        let Checked { name, pes, status, visits, outcomes, why, .. } = checked;
        let coverage = coverage.map(|[seen, allowed]| json!({ "seen": seen, "allowed": allowed }));
        json!({
            "name": name, "pes": pes, "gpus": gpus, "status": status.name(), "runs": visits, "outcomes": outcomes,
            "coverage": coverage, "why": without_folders(why),
        })
    });
    let mut report = json!({
        "schema": "onesided-suite/2",
        "date": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "backend": "nvshmem",
        "version": onesided::VERSION,
        "library": results.library,
        "mps": results.mps,
        "profile": facts.settings.profile().name(),
        "fabric": facts.settings.rig.fabric().to_string(),
        "nodes": facts.settings.rig.nodes().len().max(1),
        "runs": facts.settings.runs,
        "problems": results.problems.iter().map(|problem| without_folders(problem)).collect::<Vec<_>>(),
        "cases": cases.collect::<Vec<_>>(),
    });
    if let (Value::Object(report), Value::Object(machine)) = (&mut report, facts.machine.to_json(&facts.settings.gpus))
    {
        report.extend(machine);
    }
    report
}

/// What a library or a PE has said, with the names of its files only: folders are of the machine where it was built, or ran.
fn without_folders(said: &str) -> String {
    let is_between = |c: char| c.is_whitespace() || "`'\"(;,".contains(c);
    let shortened = said.split_inclusive(is_between).map(|word| {
        let is_path = word.strip_prefix('/').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
        match word.rsplit_once('/') {
            Some((_, file)) if is_path && file.starts_with(char::is_alphanumeric) => file,
            _ => word,
        }
    });
    shortened.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_files_without_their_folders() {
        let said = "PE 1: /build/src/ucx.cpp:480: status 7 (/a/b); a / b, 1/2, src/main.rs:3 and /only/folders/";
        let expected = "PE 1: ucx.cpp:480: status 7 (b); a / b, 1/2, src/main.rs:3 and /only/folders/";
        assert_eq!(without_folders(said), expected);
    }
}
