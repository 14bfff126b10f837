//! `onesided compare`: compares two reports of the suite, of the simulator and of GPUs, or of two versions of a library.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onesided::count;
use onesided_harness::say;
use onesided_harness::tool::command::failed;
use serde::Deserialize;

/// What `onesided compare` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 the reports agree, 1 they contradict each other, 2 one cannot be read.")]
pub(super) struct Options {
    /// A report that `onesided suite --json` wrote
    a: PathBuf,
    /// The report to compare it with
    b: PathBuf,
}

/// The schemas that can be read; the second is that of GPUs.
const SCHEMAS: [&str; 2] = ["onesided-suite/1", "onesided-suite/2"];

/// The part of a report that is compared.
#[derive(Debug, Deserialize)]
struct Report {
    schema: String,
    backend: String,
    library: Option<String>,
    /// Of the simulator: what it promised; `all` for each profile.
    profile: Option<String>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    /// Of the simulator, under several profiles: this one.
    #[serde(default)]
    profile: Option<String>,
    status: String,
    outcomes: BTreeMap<String, u64>,
    why: String,
    /// Of the simulator: whether these are the outcomes of all schedules.
    #[serde(default)]
    complete: bool,
}

pub(super) fn run(options: &Options) -> ExitCode {
    compare_files(options).unwrap_or_else(failed)
}

fn compare_files(options: &Options) -> Result<ExitCode, String> {
    let (a, b) = (read(&options.a)?, read(&options.b)?);
    for (name, file, report) in [("A", &options.a, &a), ("B", &options.b, &b)] {
        let library = report.library.as_deref().unwrap_or("library unknown");
        say!("{name}: {} on {} ({library})", file.display(), report.backend);
    }
    let Compared { lines, both, contradictions } = compare(&a, &b)?;
    say!("");
    lines.iter().for_each(|line| say!("{line}"));
    say!("{} ran in both; different: {}, contradicting: {contradictions}", count(both, "case"), lines.len());
    Ok(ExitCode::from(u8::from(contradictions > 0)))
}

fn read(file: &Path) -> Result<Report, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let text = fs::read_to_string(file).map_err(|why| wrong(&why))?;
    let mut report: Report =
        serde_json::from_str(&text).map_err(|why| wrong(&format!("not a report of the suite: {why}")))?;
    if !SCHEMAS.contains(&report.schema.as_str()) {
        return Err(wrong(&format!("its schema {} is not one of {}", report.schema, SCHEMAS.join(", "))));
    }
    if report.profile.as_deref() == Some("all") {
        // what spec allows is what everybody is compared with
        report.cases.retain(|case| case.profile.as_deref() == Some("spec"));
        report.profile = Some("spec".to_string());
    }
    Ok(report)
}

#[derive(Debug)]
struct Compared {
    /// A line or more of each case that differs.
    lines: Vec<String>,
    /// Cases that ran in both.
    both: usize,
    /// Cases that cannot be right in both.
    contradictions: usize,
}

/// Compares the cases that are in both reports. Two runs may see different parts of what is allowed. But no run may see an
/// outcome that a search of all schedules under `spec` does not have.
fn compare(a: &Report, b: &Report) -> Result<Compared, String> {
    let others: BTreeMap<&str, &Case> = b.cases.iter().map(|case| (case.name.as_str(), case)).collect();
    let pairs = a.cases.iter().filter_map(|case| Some((case, *others.get(case.name.as_str())?)));
    let [all_of_a, all_of_b] = [a, b].map(|report| report.profile.as_deref() == Some("spec"));
    let ran = |case: &Case| case.status != "not run";
    let mut compared = Compared { lines: Vec::new(), both: 0, contradictions: 0 };
    for (a, b) in pairs.filter(|(a, b)| ran(a) && ran(b)) {
        compared.both += 1;
        let (only_a, only_b) = (only(a, b), only(b, a));
        let is_more = all_of_b && b.complete && !only_a.is_empty() || all_of_a && a.complete && !only_b.is_empty();
        let contradicts = a.status != b.status || is_more;
        compared.contradictions += usize::from(contradicts);
        if !contradicts && only_a.is_empty() && only_b.is_empty() {
            continue;
        }
        let mark = if contradicts { "CONTRADICTS" } else { "differs" };
        let mut line = format!("{mark}  {}", a.name);
        for (name, case, only) in [("A", a, only_a), ("B", b, only_b)] {
            if a.status != b.status {
                let why = if case.why.is_empty() { String::new() } else { format!(": {}", case.why) };
                line += &format!("\n        {name} {}{why}", case.status);
            }
            only.iter().for_each(|outcome| line += &format!("\n        only in {name}: {outcome}"));
        }
        compared.lines.push(line);
    }
    if compared.both == 0 {
        return Err("no case ran in both".to_string());
    }
    Ok(compared)
}

/// The outcomes of one that the other does not have.
fn only<'a>(one: &'a Case, other: &Case) -> BTreeSet<&'a str> {
    one.outcomes.keys().filter(|outcome| !other.outcomes.contains_key(*outcome)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of one case.
    fn report(profile: Option<&str>, complete: bool, status: &str, outcomes: &[&str]) -> Report {
        let outcomes = outcomes.iter().map(|outcome| (outcome.to_string(), 1)).collect();
        let profile = profile.map(String::from);
        let case = Case {
            name: "a/b".into(),
            profile: profile.clone(),
            status: status.into(),
            outcomes,
            why: "for a reason".into(),
            complete,
        };
        Report { schema: SCHEMAS[1].into(), backend: "sim".into(), library: None, profile, cases: vec![case] }
    }

    #[test]
    fn gpus_may_see_less_than_the_simulator_and_not_more() {
        let all = report(Some("spec"), true, "passed", &["x", "y"]);
        let less = compare(&report(None, false, "passed", &["x"]), &all).unwrap();
        assert_eq!((less.contradictions, less.lines), (0, vec!["differs  a/b\n        only in B: y".to_string()]));
        let more = compare(&report(None, false, "passed", &["x", "z"]), &all).unwrap();
        assert_eq!(more.contradictions, 1);
        // Two runs that drew their schedules, or ran on GPUs, may differ in any way.
        let drawn = report(Some("spec"), false, "passed", &["y"]);
        assert_eq!(compare(&report(None, false, "passed", &["x"]), &drawn).unwrap().contradictions, 0);
    }

    #[test]
    fn a_case_that_fails_in_one_contradicts() {
        let compared = compare(&report(None, false, "failed", &["x"]), &report(None, false, "passed", &["x"]));
        let Compared { lines, contradictions, .. } = compared.unwrap();
        assert_eq!(contradictions, 1);
        assert_eq!(lines, ["CONTRADICTS  a/b\n        A failed: for a reason\n        B passed: for a reason"]);
    }

    #[test]
    fn nothing_in_common_is_an_error() {
        let passed = report(None, false, "passed", &[]);
        let not_run = report(None, false, "not run", &[]);
        assert_eq!(compare(&passed, &not_run).unwrap_err(), "no case ran in both");
    }
}
