//! `onesided bootstrap`: becomes a PE in one of the ways that there are, meets the others, and says so.
//!
//! Started once for each PE, by a launcher. It tells whether PEs find each other on a machine, before a program is blamed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use onesided::{Bootstrap, InitMethod, Pe, ReduceOp, UniqueId, expect_eq};
use onesided_nvshmem::{Nvshmem, Process, Settings, placement};

use super::failed;
use crate::tool::say::say;

/// What `onesided bootstrap` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// How the PEs find each other
    #[arg(long, value_enum, default_value_t = Method::Launcher)]
    method: Method,
    /// With `uid`: the file through which PE 0 gives its unique id to the others; it must not exist yet
    #[arg(long, value_name = "FILE")]
    id: Option<PathBuf>,
}

/// NVSHMEM4Py's names of the methods, and the launcher's environment.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    /// Rank and size from the environment, the unique id from PE 0 over TCP
    Launcher,
    /// Rank and size from the environment, the unique id through a file
    Uid,
    /// MPI's world communicator (built with --features mpi)
    Mpi,
    /// MPI broadcasts a unique id (built with --features mpi)
    #[value(name = "emulated_mpi")]
    EmulatedMpi,
}

pub(super) fn run(options: &Options) -> ExitCode {
    match bootstrap(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(why),
    }
}

fn bootstrap(options: &Options) -> Result<(), String> {
    let settings = Settings::from_environment().map_err(|error| error.to_string())?;
    let limit = settings.limit;
    let process = Process::open(settings).map_err(|error| error.to_string())?;
    let method = match options.method {
        Method::Launcher => InitMethod::Launcher,
        Method::Mpi => InitMethod::Mpi,
        Method::EmulatedMpi => InitMethod::EmulatedMpi,
        Method::Uid => by_file(&process, options.id.as_deref(), limit)?,
    };
    let start = Instant::now();
    let pe = process.init(method.clone()).map_err(|error| error.to_string())?;
    let took = start.elapsed();
    meet(&pe).map_err(|error| format!("PE {}: {error}", pe.my_pe()))?;
    say!(
        "PE {} of {} by {} on {}, {}: met all in a reduction; init took {:.2} s",
        pe.my_pe(),
        pe.n_pes(),
        method.name(),
        pe.version().library,
        pe.init_status().name(),
        took.as_secs_f64()
    );
    pe.finalize().map_err(|error| error.to_string())
}

/// All PEs reduce a one each.
fn meet(pe: &Pe<Nvshmem>) -> onesided::Result<()> {
    let (one, sum) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&one, &[1])?;
    pe.host().reduce(pe.world(), &sum, &one, ReduceOp::Sum)?;
    expect_eq(pe.read(&sum)?, vec![pe.n_pes() as u32], "the sum of ones")?;
    pe.free(sum)?;
    pe.free(one)
}

/// PE 0 makes the id and writes it to the file, under another name first so that nobody reads half of it.
fn by_file(process: &Process, file: Option<&Path>, limit: Duration) -> Result<InitMethod, String> {
    let Some(placement) = placement().map_err(|problem| problem.to_string())? else {
        return Err(
            "nothing says which PE this process is: start it by `onesided launch` or another launcher".to_string()
        );
    };
    let default = || {
        let job = placement.meeting.as_deref().unwrap_or("alone").replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        std::env::temp_dir().join(format!("onesided-id-{job}"))
    };
    let file = file.map_or_else(default, Path::to_path_buf);
    let wrong = |why: std::io::Error| format!("{}: {why}", file.display());
    let id = if placement.rank == 0 {
        let id = process.unique_id().map_err(|error| error.to_string())?;
        let unfinished = file.with_extension("part");
        fs::write(&unfinished, id.to_string()).map_err(wrong)?;
        fs::rename(&unfinished, &file).map_err(wrong)?;
        id
    } else {
        wait_for(&file, limit)?
    };
    Ok(InitMethod::UniqueId { id, rank: placement.rank, n_pes: placement.n_pes })
}

fn wait_for(file: &Path, limit: Duration) -> Result<UniqueId, String> {
    let deadline = Instant::now() + limit;
    loop {
        match fs::read_to_string(file) {
            Ok(text) => return text.parse().map_err(|error| format!("{}: {error}", file.display())),
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            Err(why) => return Err(format!("{}: {why}, after {} s; PE 0 writes it", file.display(), limit.as_secs())),
        }
    }
}
