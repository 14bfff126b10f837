//! `onesided bootstrap`: initializes a PE by one of the methods, meets the other PEs in a reduction, and says so.
//!
//! A launcher starts it once for each PE. It shows whether PEs find each other on a machine, without any program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use onesided::{Bootstrap, InitMethod, Pe, ReduceOp, UniqueId, expect_eq};
use onesided_harness::say;
use onesided_harness::tool::command::failed;
use onesided_nvshmem::{Nvshmem, Placement, Process, Settings, placement};

/// What `onesided bootstrap` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// How the PEs find each other
    #[arg(long, value_enum, default_value_t = Method::Launcher)]
    method: Method,
    /// With `uid`: the file by which PE 0 passes its unique id to the others. PE 0 refuses a file that exists already. The
    /// others wait while the file is of another job, if the launcher or ONESIDED_RENDEZVOUS tells jobs apart
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
    let meeting = match options.method {
        Method::Uid => Some(Meeting::new(options.id.as_deref())?),
        _ if options.id.is_some() => return Err("--id is about --method uid: no other method reads a file".to_string()),
        _ => None,
    };
    let process = Process::open(settings).map_err(|error| error.to_string())?;
    let method = match (&meeting, options.method) {
        (Some(meeting), _) => meeting.init_method(&process, limit)?,
        (None, Method::Mpi) => InitMethod::Mpi,
        (None, Method::EmulatedMpi) => InitMethod::EmulatedMpi,
        (None, _) => InitMethod::Launcher,
    };
    let start = Instant::now();
    let pe = process.init(method.clone());
    let took = start.elapsed();
    if let Some(meeting) = meeting.filter(|meeting| meeting.placement.rank == 0) {
        let _ = fs::remove_file(meeting.file); // all have read it, or will never; a job after this one must not
    }
    let pe = pe.map_err(|error| error.to_string())?;
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

/// Sums a one from each PE.
fn meet(pe: &Pe<Nvshmem>) -> onesided::Result<()> {
    let (one, sum) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&one, &[1])?;
    pe.host().reduce(pe.world(), &sum, &one, ReduceOp::Sum)?;
    expect_eq(pe.read(&sum)?, vec![pe.n_pes() as u32], "the sum of ones")?;
    pe.free(sum)?;
    pe.free(one)
}

/// A file through which the PEs of a job get their unique id: its first line is the job, the second the id.
struct Meeting {
    placement: Placement,
    file: PathBuf,
    /// A name that other jobs do not have, if the launcher gives one.
    job: String,
}

impl Meeting {
    /// # Errors
    /// On PE 0, the file exists already: the others may have read an earlier job's id from it.
    fn new(file: Option<&Path>) -> Result<Meeting, String> {
        let Some(placement) = placement().map_err(|problem| problem.to_string())? else {
            return Err(
                "nothing says which PE this process is: start it by `onesided launch` or another launcher".to_string()
            );
        };
        let job = placement.meeting.as_deref().unwrap_or("alone").replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let file = file.map_or_else(|| std::env::temp_dir().join(format!("onesided-id-{job}")), Path::to_path_buf);
        if placement.rank == 0 && file.exists() {
            return Err(format!(
                "{} exists already: another job uses it, or one that was killed left it; remove it, or name another by --id",
                file.display()
            ));
        }
        Ok(Meeting { placement, file, job })
    }

    /// PE 0 makes the id and writes it to the file, under another name first so that nobody reads half of it. The others
    /// wait for it.
    fn init_method(&self, process: &Process, limit: Duration) -> Result<InitMethod, String> {
        let Placement { rank, n_pes, .. } = self.placement;
        let id = if rank == 0 {
            let id = process.unique_id().map_err(|error| error.to_string())?;
            self.write(id).map_err(|why| format!("{}: {why}", self.file.display()))?;
            id
        } else {
            self.wait(limit)?
        };
        Ok(InitMethod::UniqueId { id, rank, n_pes })
    }

    fn write(&self, id: UniqueId) -> io::Result<()> {
        let unfinished = self.file.with_added_extension("part"); // names differ in what stands behind their last dot
        fs::write(&unfinished, format!("{}\n{id}\n", self.job))?;
        fs::rename(&unfinished, &self.file)
    }

    fn wait(&self, limit: Duration) -> Result<UniqueId, String> {
        let start = Instant::now();
        loop {
            let read = fs::read_to_string(&self.file);
            let why = match read.as_deref().map(|text| text.split_once('\n').unwrap_or(("", text))) {
                Ok((job, id)) if job == self.job => {
                    return id.trim().parse().map_err(|error| format!("{}: {error}", self.file.display()));
                }
                Ok((job, _)) => format!("of the job {job:?}, and this one is {:?}", self.job),
                Err(why) => why.to_string(),
            };
            if start.elapsed() >= limit {
                return Err(format!("{}: {why}, after {} s; PE 0 writes it", self.file.display(), limit.as_secs()));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_job_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let of = |job: &str| Meeting { placement: Placement::alone(), file: file.clone(), job: job.to_string() };
        let absent = of("this").wait(Duration::ZERO).unwrap_err();
        assert!(absent.contains("after 0 s; PE 0 writes it"), "{absent}");
        of("earlier").write(UniqueId([7; 128])).unwrap();
        let stale = of("this").wait(Duration::ZERO).unwrap_err();
        assert!(stale.contains("of the job \"earlier\", and this one is \"this\""), "{stale}");
        of("this").write(UniqueId([8; 128])).unwrap();
        assert_eq!(of("this").wait(Duration::MAX).unwrap(), UniqueId([8; 128]));
    }
}
