//! `onesided suite --backend nvshmem`: many runs of each case, on GPUs.

use std::process::ExitCode;
use std::time::Instant;

use onesided_harness::tool::output::Output;
use onesided_harness::tool::progress::Progress;
use onesided_nvshmem::Nvshmem;

use super::{Options, counts, status};
use crate::check::Status;
use crate::command::list;
use crate::expected::Folder;
use crate::hardware::report::{Facts, Printer};
use crate::hardware::{self, report};
use crate::known;

/// Runs the cases that the user chose.
pub(super) fn run(options: &Options) -> Result<ExitCode, String> {
    Folder::new(options.expected.as_deref()).check()?;
    let cases = list::chosen::<Nvshmem>(&options.patterns)?;
    let known = known::of("nvshmem", &crate::suite::cases::<Nvshmem>())?;
    let (machine, settings) = options.on_gpus.settings(options.expected.as_deref())?;
    let json = options.json.as_deref().map(Output::prepare).transpose()?;

    let start = Instant::now();
    let progress = Progress::new(Some(cases.len() as u64), "cases");
    let mut printer = Printer::new(&cases);
    let results = hardware::run(&cases, &settings, &known, &mut |ran| {
        progress.step();
        if ran.checked.status != Status::NotRun {
            progress.println(&printer.line(ran));
        }
    });
    drop(progress);
    let [passed, failed, not_run] = counts(results.cases.iter().map(|ran| &ran.checked));
    let counts = [passed, failed + results.problems.len(), not_run];
    let facts = Facts { machine: &machine, settings: &settings, time: start.elapsed() };
    report::summary(&results, &facts, counts);
    if let Some(json) = json {
        json.finish(|out| writeln!(out, "{:#}", report::to_json(&results, &facts)))?;
    }
    status(counts)
}
