//! `onesided suite --backend nvshmem`: many runs of each case, on GPUs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use onesided_harness::complain;
use onesided_harness::hardware::machine::Machine;
use onesided_harness::tool::output::Output;
use onesided_harness::tool::progress::{Progress, Things};
use onesided_nvshmem::{Ahead, Nvshmem};

use super::{Options, counts, status};
use crate::ahead;
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

    if cases.iter().any(|case| case.needs.kernels || case.needs.host_atomics) {
        compile(&machine, &settings.gpus);
    }
    let start = Instant::now();
    let progress = Progress::new(Some(cases.len() as u64), Things::new("case", "cases"));
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

/// Compiles what the suite's kernels need and the cache lacks. Without it, PEs would wait for that in the middle of a case. Where it is not
/// possible, they say why.
fn compile(machine: &Machine, gpus: &[u32]) {
    let Ok(library) = onesided_nvshmem::host_library(None) else { return };
    let architectures = gpus.iter().filter_map(|gpu| machine.architectures.get(*gpu as usize));
    for architecture in architectures.collect::<BTreeSet<_>>() {
        let Ok(compiler) = Ahead::new(&library, *architecture) else { return };
        let arguments = ["compile", "--suite", "--for", &format!("sm_{architecture}")].map(OsString::from);
        if let Err(why) = ahead::provide(&compiler, &ahead::of_the_suite(&compiler), &arguments, None) {
            complain!("note: kernels are not compiled ahead: {why}");
        }
    }
}
