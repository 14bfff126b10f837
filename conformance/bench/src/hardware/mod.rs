//! `onesided bench --backend nvshmem`: what the API costs on GPUs, beside a C++ program that makes the same calls.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan.rs` | what is measured, and how often |
//! | `worker.rs` | one PE of ours; `../peers/nvshmem.cpp` is one of the peer's |
//! | `loops.rs`, `cpp.rs` | the calls that are measured: through the API, and in C++ within a process of ours |
//! | `job.rs` | two processes of one program, and what they print |
//! | `compare.rs` | both programs in turn |
//! | `figures.rs` | which numbers are shown, and the targets |
//! | `report.rs` | the table and its JSON |
//!
//! Calls are compared in pairs: a process of ours makes them through the API and in C++, sample by sample in turn, on the
//! same memory and stream. Between processes of one program they differ by more than what the API adds. The C++ program
//! is what initialization is compared with, and shows what calls cost where nothing of ours is loaded.
//!
//! Two PEs share one GPU under MPS; where there are two GPUs, everything is measured again with a GPU for each.

mod compare;
mod cpp;
mod figures;
mod job;
mod loops;
mod plan;
mod report;
mod worker;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

use onesided_harness::complain;
use onesided_harness::hardware::machine::{settings, settings_in};
use onesided_harness::launch::{Fabric, Mps, Rig};
use onesided_harness::tool::output::Output;
use onesided_harness::tool::{interrupt, say};

use self::compare::{Limits, Line, Place, compare};
use self::figures::{Figure, chosen};
use self::job::{PES, Program};
use self::plan::{Measurement, plan};
use self::report::{Hardware, Report};
use super::machine::Machine;
use super::peers::Nvshmem;
use super::row::{Cell, Row, Unit};
use super::{Options, ROUNDS, not_all};

pub(crate) use self::worker::run as work;

/// Seconds that one job may take; it takes about three.
const JOB: u64 = 40;

/// How long one place may begin new rounds.
const ALL: Duration = Duration::from_secs(80);

/// How much longer both may take over a network.
const SLOWER: u32 = 3;

/// The symmetric heap over a network, where it cannot grow: room for both buffers of the largest put.
const HEAP: (&str, &str) = ("NVSHMEM_SYMMETRIC_SIZE", "1G");

/// The places, as the rows name them.
const ONE_GPU: &str = "1 GPU (MPS)";
const TWO_GPUS: &str = "2 GPUs";

/// Measures, prints the table, and writes the JSON if that is asked for.
///
/// # Errors
/// There is no GPU or no library here, no benchmark is called as asked for, or the file cannot be written.
pub(super) fn run(options: &Options) -> Result<ExitCode, String> {
    let (fabric, _) = options.fabric.shape(None)?;
    let (plan, figures) = chosen(plan(options.quick, fabric), options.only.as_deref())?;
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let mut hardware = find()?;
    if fabric == Fabric::Mixed {
        return Err("--fabric mixed is about several nodes, and this measures one: see --fabric network".to_string());
    }
    let rig = Rig::prepare(&options.fabric, None)?;
    rig.notes().iter().for_each(|note| complain!("note: {note}"));
    complain!("compiling the C++ program, then measuring: up to a minute and a half in each place");
    let peer = Nvshmem::compile(&hardware.file);
    let loops = peer.as_ref().map_err(Clone::clone).and_then(Nvshmem::compile_loops);
    let environment = environment(&hardware, &rig);
    hardware.fabric = fabric;
    hardware.settings.extend(settings_in(&environment));
    let slower = if fabric == Fabric::Network { SLOWER } else { 1 };
    let me = std::env::current_exe().map_err(|error| format!("this program's file is unknown: {error}"))?;
    let mut arguments = vec![OsString::from("bench")];
    if let Ok(loops) = &loops {
        arguments.extend(["--loops".into(), loops.into()]);
    }
    arguments.push("--worker".into());
    let ours = Program { file: me, arguments, environment: environment.clone() };
    let next = peer.as_ref().map_err(Clone::clone).map(|peer| {
        move || Program {
            file: peer.program(),
            arguments: vec![peer.id_file().into()],
            environment: environment.clone(),
        }
    });
    let rounds = if options.quick { 1 } else { usize::from(options.rounds.unwrap_or(ROUNDS)) };
    let gpus = hardware.gpus.len();
    let mut session = Session {
        plan,
        figures,
        ours,
        peer: next.as_ref().map(|next| next as &dyn Fn() -> Program).map_err(Clone::clone),
        no_loops: loops.err(),
        limits: Limits { rounds, job: Duration::from_secs(JOB) * slower, all: ALL * slower },
        report: Report::new(Machine::here(), hardware, options.date.clone(), options.quick),
    };
    // Ctrl-C may have come while the C++ program was compiled.
    match (!interrupt::is_wanted()).then(|| Mps::start(&[0])) {
        None => {}
        Some(Ok(mps)) => {
            session.measure(&Place { name: ONE_GPU, devices: [0, 0], environment: mps.environment(PES) });
        }
        Some(Err(why)) => session.leave_out(ONE_GPU, &why),
    }
    match gpus {
        2.. => session.measure(&Place { name: TWO_GPUS, devices: [0, 1], environment: Vec::new() }),
        _ => session.leave_out(TWO_GPUS, &format!("{gpus} GPU here")),
    }
    let report = session.report;
    say::bytes(report.to_string().as_bytes());
    if interrupt::is_wanted() {
        return Ok(not_all());
    }
    if let Some(json) = json {
        json.finish(|out| writeln!(out, "{:#}", report.to_json()))?;
    }
    Ok(ExitCode::from(report.status()))
}

/// What is the same in every place, and what came out so far.
struct Session<'a> {
    plan: Vec<Measurement>,
    figures: Vec<Figure>,
    ours: Program,
    peer: Result<&'a dyn Fn() -> Program, String>,
    /// Why there are no C++ loops for the processes of ours.
    no_loops: Option<String>,
    limits: Limits,
    report: Report,
}

impl Session<'_> {
    fn measure(&mut self, place: &Place) {
        if interrupt::is_wanted() {
            return;
        }
        let compared = compare(place, &self.plan, &self.ours, self.peer.clone(), self.limits);
        if interrupt::is_wanted() {
            return; // it was cut short
        }
        let no_pair = self.no_loops.as_deref().or(compared.no_pair());
        self.report.lines.extend(compared.lines(place.name, &self.figures, no_pair));
        self.report.rounds.push((place.name, compared.ours.jobs.len()));
        let sides = [
            ("ours", compared.ours.failed.as_deref()),
            ("C++ in our processes", no_pair),
            ("C++ alone", compared.peer.failed.as_deref()),
        ];
        for (who, why) in sides {
            self.report.notes.extend(why.map(|why| format!("{}, {who}: {why}", place.name)));
        }
    }

    /// Says why there is nothing to be seen of a place.
    fn leave_out(&mut self, place: &'static str, why: &str) {
        let first = why.lines().next().unwrap_or_default().to_string();
        let row = Row::new("everything", Unit::Ns, Cell::NotRun(first));
        self.report.lines.push(Line { place, row, ours: Vec::new(), peer: Vec::new(), program: None });
        self.report.notes.push(format!("{place}: not run: {why}"));
    }
}

/// The GPUs and the library of this machine.
fn find() -> Result<Hardware, String> {
    let lacks = |why: &dyn Display| format!("nothing can be measured on GPUs here: {why}; see `onesided doctor`");
    let driver = onesided_nvshmem::driver().map_err(|why| lacks(&why))?;
    let library = onesided_nvshmem::host_library(None).map_err(|why| lacks(&why))?;
    if driver.gpus.is_empty() {
        return Err(lacks(&"CUDA shows no GPU"));
    }
    let (major, minor) = driver.cuda;
    Ok(Hardware {
        gpus: driver.gpus,
        driver: onesided_nvshmem::kernel_module().unwrap_or_else(|| "unknown".to_string()),
        cuda: format!("{major}.{minor}"),
        library: library.version.map(|number| number.to_string()).join("."),
        file: library.file.canonicalize().unwrap_or(library.file),
        settings: settings(std::env::vars_os()),
        fabric: Fabric::P2p,
    })
}

/// What every process needs: the same library for both programs, a limit for meeting, and what the fabric takes.
fn environment(hardware: &Hardware, rig: &Rig) -> Vec<(String, OsString)> {
    let mut environment = vec![
        ("ONESIDED_NVSHMEM_LIB".to_string(), hardware.file.clone().into()),
        ("ONESIDED_TIMEOUT".to_string(), (JOB - 5).to_string().into()),
    ];
    let of_the_fabric = rig.environment().iter().cloned();
    environment
        .extend(of_the_fabric.map(|(name, value)| if name == HEAP.0 { (name, HEAP.1.into()) } else { (name, value) }));
    environment
}
