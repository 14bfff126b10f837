//! `onesided doctor`: which of the parts that programs on GPUs need are on this machine, and what will work. Also whether kernels
//! can be compiled.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | looks for each part, one after the other |
//! | `report.rs` | [`Report`]: what was found, as a table |
//! | `foresee.rs` | what will work and what will not |
//! | `network.rs` | whether PEs can find each other |

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use onesided::{Backend, Pe, ReduceOp, Result};
use onesided_compile::gpu::{self, Installation};
use onesided_harness::launch::{self, on_path};
use onesided_harness::say;
use onesided_harness::tool::command::failed;
use onesided_harness::tool::output::Output;
use onesided_nvshmem::{Placement, Problem};
use onesided_sim::{Config, Simulation};

use crate::processes;

mod foresee;
mod network;
mod report;

use report::{Report, Tool};

const AFTER: &str = "\
Start it in the same way as a program, once for each PE (`onesided launch -n N -- onesided doctor`). Then the doctors also \
try whether the PEs meet, and wait 5 s for each other.

The exit status is 0 also where programs cannot run on GPUs: the simulator needs none.";

const COMMAND_LIMIT: Duration = Duration::from_secs(10);
const NETWORK_LIMIT: Duration = Duration::from_secs(5);
/// How long the doctors of all PEs wait for each other: launchers start processes within a moment.
const MEETING_LIMIT: Duration = Duration::from_secs(5);

/// Open MPI 4 and 5, the MPI that NVSHMEM's bootstrap plugin was built for.
const LIBMPI: &str = "libmpi.so.40";

/// What `onesided doctor` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Options {
    /// NVSHMEM's host library or the folder that holds it, instead of the usual places
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// Write what was found to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    try_run(options).map_or_else(failed, |()| ExitCode::SUCCESS)
}

fn try_run(options: &Options) -> std::result::Result<(), String> {
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let report = look(options.library.as_deref());
    say!("{report}");
    let pes = simulate().map_err(|why| format!("the simulator does not work: {why}"))?;
    say!("Tried just now: {pes} simulated PEs met in a reduction.");
    json.map_or(Ok(()), |json| json.finish(|out| writeln!(out, "{:#}", report.to_json())))
}

/// Looks for everything that a program on GPUs needs, and meets the doctors of the other PEs, if a launcher started several. So
/// a PE that never comes, or two with the same rank, are found before a program runs.
///
/// This opens the libraries that it finds, and initializes the CUDA driver to count the GPUs, but never NVSHMEM. It ends within a
/// minute or two even if nothing answers, normally in a fraction of a second, and never ends the process.
fn look(library: Option<&Path>) -> Report {
    let placement = onesided_nvshmem::placement();
    // Before all else, because the rest takes longer on one host than on another.
    let met = meet(placement.as_ref().ok().and_then(Option::as_ref), MEETING_LIMIT);
    let nvshmem = onesided_nvshmem::host_library(library);
    Report {
        kernel_module: onesided_nvshmem::kernel_module(),
        driver: onesided_nvshmem::driver(),
        transport: match &nvshmem {
            Ok(library) => launch::has_plugin(&library.file).map(|()| "beside the library".to_string()),
            Err(_) => Err("it lies beside NVSHMEM's library, which cannot be used".to_string()),
        },
        device_library: match &nvshmem {
            Ok(library) => Installation::of(&library.file, library.version).map_err(|why| why.to_string()).map(|has| {
                let (library, includes) = (has.library().display(), has.includes().display());
                ("NVSHMEM's library and headers for kernels".to_string(), format!("{library}, {includes}"))
            }),
            Err(_) => {
                Err("libnvshmem_device.a and its headers lie beside NVSHMEM's library, which cannot be used"
                    .to_string())
            }
        },
        nvjitlink: gpu::find_linker(None).map_err(|why| why.to_string()).map(|linker| {
            let (major, minor) = linker.version();
            (format!("nvJitLink {major}.{minor}, which links kernels"), linker.file().display().to_string())
        }),
        nvshmem,
        ucx: launch::ucx_in_words(None),
        gdrcopy: launch::gdrcopy_in_words(None),
        nodes: launch::no_nodes().map_or(Ok("can be made of namespaces".to_string()), Err),
        mpirun: mpirun(),
        libmpi: onesided_nvshmem::open_library(Path::new(LIBMPI))
            .map(|file| Tool { version: LIBMPI.to_string(), file }),
        nvrtc: onesided_compile::find(None).map_err(|why| why.to_string()).map(|nvrtc| {
            let (major, minor) = nvrtc.version();
            let place = format!("{} (found through {})", nvrtc.file().display(), nvrtc.origin());
            (format!("NVRTC {major}.{minor}, which compiles kernels"), place)
        }),
        mps: tool("nvidia-cuda-mps-control").map(|file| Tool { version: "can be started".to_string(), file }),
        network: network::look(NETWORK_LIMIT),
        launcher: placement,
        met,
    }
}

/// Tries whether the PEs find each other. `None` if there is nobody to meet, or no place is known.
fn meet(placement: Option<&Placement>, limit: Duration) -> std::result::Result<Option<usize>, Problem> {
    match placement {
        Some(placement @ Placement { n_pes: 2.., meeting: Some(_), .. }) => placement.rehearse(limit).map(Some),
        _ => Ok(None),
    }
}

fn mpirun() -> std::result::Result<Tool, Problem> {
    let file = tool("mpirun")?;
    let mut command = Command::new(&file);
    command.arg("--version");
    let call = file.display().to_string();
    let ended = processes::run([command], COMMAND_LIMIT).map_err(|why| Problem::Failed { call: call.clone(), why })?;
    match ended.status {
        Some(0) => Ok(Tool { version: ended.printed.lines().next().unwrap_or("prints no version").to_string(), file }),
        Some(status) => Err(Problem::Failed { call, why: format!("it ended with status {status}") }),
        None => Err(Problem::NoAnswer { call, limit: COMMAND_LIMIT }),
    }
}

fn tool(what: &'static str) -> std::result::Result<PathBuf, Problem> {
    let found = on_path(what, &[]).next();
    found.ok_or_else(|| Problem::NotFound { what, looked: vec!["not on PATH".to_string()] })
}

/// Runs a little program on the simulator, which needs only memory for stacks and heaps.
fn simulate() -> Result<usize> {
    let results = Simulation::new(Config::default())?.run(count)?.into_results()?;
    onesided::expect_eq(&results, &vec![results.len() as u32; results.len()], "the number of PEs")?;
    Ok(results.len())
}

fn count<B: Backend>(pe: &Pe<B>) -> Result<u32> {
    let one = pe.alloc_zeroed::<u32>(1)?;
    let sum = pe.alloc_zeroed::<u32>(1)?;
    pe.write(&one, &[1])?;
    pe.host().reduce(pe.world(), &sum, &one, ReduceOp::Sum)?;
    let sum_of_ones = pe.read(&sum)?[0];
    pe.free(sum)?;
    pe.free(one)?;
    Ok(sum_of_ones)
}

#[cfg(test)]
mod tests {
    use onesided_nvshmem::{Key, Launcher};

    use super::*;

    #[test]
    fn the_doctor_answers_on_any_machine() {
        let report = look(None);
        assert_eq!(report.rows().len(), 14);
        assert!(report.to_string().contains("The simulator works here"));
    }

    /// The two PEs of a job.
    fn two(meeting: &str) -> [Placement; 2] {
        let (meeting, key) = (Some(meeting.to_string()), Some(Key::random().unwrap()));
        [0, 1].map(|rank| {
            let (meeting, key) = (meeting.clone(), key.clone());
            Placement { rank, n_pes: 2, local_rank: rank, local_size: None, meeting, key, from: Launcher::Onesided }
        })
    }

    #[test]
    fn a_doctor_meets_nobody_where_there_is_nobody_or_no_place() {
        let [nowhere, wrong] = two("no place");
        let nowhere = Placement { meeting: None, ..nowhere };
        for placement in [None, Some(&Placement::alone()), Some(&nowhere)] {
            assert_eq!(meet(placement, Duration::ZERO), Ok(None));
        }
        let wrong = meet(Some(&wrong), Duration::ZERO).unwrap_err().to_string();
        assert!(wrong.starts_with("ONESIDED_RENDEZVOUS=no place: "), "{wrong}");
        let [_, keyless] = two("127.0.0.1:9");
        let keyless = meet(Some(&Placement { key: None, ..keyless }), Duration::ZERO).unwrap_err().to_string();
        assert!(keyless.starts_with("ONESIDED_KEY: not set"), "{keyless}");
    }
}
