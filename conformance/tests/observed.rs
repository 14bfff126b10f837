//! The model allows what GPUs have shown: every outcome in the committed reports of the suite is in its case's file of `spec`.
//!
//! The suite compares when it runs, with the files of that day. This holds today's files against all reports: a change of
//! the model that forbids what hardware does fails here, without a GPU.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use onesided_conformance::case::Case;
use onesided_conformance::expected::Folder;
use onesided_conformance::suite::cases;
use onesided_sim::{Profile, Sim};
use serde_json::Value;

/// Reports of two GPUs that lost each other's updates of a heap in memory of the host, before the backend said that there are no atomics
/// (`Capabilities::kernel_atomics`).
const LOST_UPDATES: &str = "suite-lost-updates-";

/// What the suite's reports say: of each file, each case with its number of PEs, its status and its outcomes.
fn reports() -> BTreeMap<String, Vec<Observed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let mut reports = BTreeMap::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap().to_string();
        if !name.starts_with("suite-") {
            continue;
        }
        let json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(json["schema"], "onesided-suite/2", "{name}");
        reports.insert(name, json["cases"].as_array().unwrap().iter().map(Observed::of).collect());
    }
    reports
}

/// The outcome of a run that CUDA has ended.
const FAILED: &str = "failed: device";

struct Observed {
    case: String,
    pes: u64,
    outcomes: Vec<String>,
}

impl Observed {
    fn of(case: &Value) -> Observed {
        Observed {
            case: case["name"].as_str().unwrap().to_string(),
            pes: case["pes"].as_u64().unwrap(),
            // A device that fails says what the library cannot do, and nothing of an order.
            outcomes: case["outcomes"].as_object().unwrap().keys().filter(|&seen| seen != FAILED).cloned().collect(),
        }
    }
}

#[test]
fn spec_allows_what_gpus_have_shown() {
    let (reports, folder) = (reports(), Folder::new(None));
    assert!(!reports.is_empty(), "there are no reports of the suite on GPUs");
    let known: BTreeMap<String, Case<Sim>> = cases::<Sim>().into_iter().map(|case| (case.name.clone(), case)).collect();
    let (mut compared, mut lost) = (0, BTreeSet::new());
    for (report, cases) in &reports {
        for Observed { case, pes: ran_on, outcomes } in cases {
            let Some(Case { pes, needs, .. }) = known.get(case) else { continue };
            assert_eq!(*ran_on, *pes as u64, "{report}: {case} ran on another cluster than the case has now");
            let allowed = folder.read(case, Profile::Spec).unwrap();
            let may_lose = report.starts_with(LOST_UPDATES) && (needs.kernel_atomics || needs.host_atomics);
            for outcome in outcomes {
                if may_lose && !allowed.contains(outcome) {
                    lost.insert(report);
                    continue;
                }
                assert!(allowed.contains(outcome), "{report}: GPUs showed {outcome}, which {case} does not allow");
                compared += 1;
            }
        }
    }
    assert_eq!(lost.len(), 1, "these reports show lost updates: {lost:?}");
    assert!(compared > 1000, "only {compared} outcomes were compared");
}

/// A case that was renamed or removed would take what GPUs showed out of the comparison.
#[test]
fn every_case_of_a_report_is_in_the_suite() {
    let cases: BTreeSet<String> = cases::<Sim>().into_iter().map(|case| case.name).collect();
    let reported: BTreeSet<String> = reports().into_values().flatten().map(|observed| observed.case).collect();
    let gone: Vec<&String> = reported.difference(&cases).collect();
    assert_eq!(gone, [""; 0], "run the suite anew, or keep the cases");
}
