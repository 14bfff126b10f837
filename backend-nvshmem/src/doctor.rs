//! [`doctor`]: looks for each part, one after the other.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudarc::driver::result::{self, DriverError, device};
use onesided::InitStatus;

use crate::launcher::{Placement, placement};
use crate::library::{self, Library, cuda_version};
use crate::limit::{on_path, output, within};
use crate::network::network;
use crate::problem::Problem;
use crate::rendezvous;
use crate::report::{Driver, HostLibrary, Report, Tool};
use crate::search::{SONAME, Search};

const COMMAND_LIMIT: Duration = Duration::from_secs(10);
const NETWORK_LIMIT: Duration = Duration::from_secs(5);
/// For the doctors of all PEs to meet: launchers start processes within a moment of each other.
const MEETING_LIMIT: Duration = Duration::from_secs(5);

const LIBCUDA: &str = "libcuda.so.1";
/// Open MPI 4 and 5, the MPI that NVSHMEM's bootstrap plugin was built for.
const LIBMPI: &str = "libmpi.so.40";

/// Of each group of functions that the backend is built on, one or two: a library without one of them is too old.
/// All are in 3.4.5. What the backend can compose where it is missing (`nvshmemx_flush_on_stream`, by a quiet) is not here.
const NEEDED: [&str; 39] = [
    "nvshmemx_get_uniqueid",
    "nvshmemx_set_attr_uniqueid_args",
    "nvshmemx_set_attr_mpi_comm_args",
    "nvshmemx_hostlib_init_attr",
    "nvshmemx_hostlib_finalize",
    "nvshmemx_init_status",
    "nvshmem_query_thread",
    "nvshmem_global_exit",
    "nvshmem_team_my_pe",
    "nvshmem_team_n_pes",
    "nvshmem_malloc",
    "nvshmem_calloc",
    "nvshmem_align",
    "nvshmem_free",
    "nvshmem_ptr",
    "nvshmem_team_translate_pe",
    "nvshmemx_buffer_register",
    "nvshmemx_buffer_register_symmetric",
    "nvshmem_team_split_strided",
    "nvshmem_team_split_2d",
    "nvshmem_team_destroy",
    "nvshmemx_team_get_uniqueid",
    "nvshmemx_team_init",
    "nvshmem_putmem",
    "nvshmem_getmem_nbi",
    "nvshmemx_putmem_on_stream",
    "nvshmemx_getmem_nbi_on_stream",
    "nvshmemx_putmem_signal_on_stream",
    "nvshmemx_signal_op_on_stream",
    "nvshmemx_signal_wait_until_on_stream",
    "nvshmemx_uint64_wait_until_on_stream",
    "nvshmem_signal_fetch",
    "nvshmem_team_sync",
    "nvshmem_quiet",
    "nvshmemx_quiet_on_stream",
    "nvshmemx_barrier_on_stream",
    "nvshmemx_team_sync_on_stream",
    "nvshmemx_fcollectmem_on_stream",
    "nvshmemx_float_sum_reduce_on_stream",
];

/// Looks for everything that a program on GPUs needs. `library` is NVSHMEM's host library or its folder, if the user
/// named one; see [`Search`] for where else it may lie.
///
/// Where a launcher started this process as one of several PEs, it also meets the doctors of the others, at the place
/// where the PEs of a program would meet, and waits 5 s for them: so a PE that never comes, or two with the same rank,
/// are found out before a program runs. [`host_report`] meets nobody.
///
/// Opens the libraries that it finds, and initializes the CUDA driver to count the GPUs, but never NVSHMEM. Ends
/// within a minute or two even if nothing answers, normally in a fraction of a second, and never ends the process.
pub fn doctor(library: Option<&Path>) -> Report {
    // Before all else: the rest takes longer on one host than on another.
    let met = meet(placement().ok().flatten().as_ref(), MEETING_LIMIT);
    Report { met, ..host_report(library) }
}

/// [`doctor`] for this host alone: for a process that does not run once for each PE.
pub fn host_report(library: Option<&Path>) -> Report {
    Report {
        kernel_module: kernel_module(),
        driver: driver(),
        nvshmem: host_library(library),
        mpirun: mpirun(),
        libmpi: within(library::LIMIT, LIBMPI, || {
            let library = Library::open(Path::new(LIBMPI))?;
            Ok(Tool { version: LIBMPI.to_string(), file: behind_links(&library) })
        }),
        mps: tool("nvidia-cuda-mps-control").map(|file| Tool { version: "can be started".to_string(), file }),
        network: within(NETWORK_LIMIT, "127.0.0.1", || network(NETWORK_LIMIT)),
        launcher: placement(),
        met: Ok(None),
    }
}

/// Tries whether the PEs find each other: their doctors meet where they would, and tell each other nothing. `None`
/// where there is nobody to be met, or no place is known.
fn meet(placement: Option<&Placement>, limit: Duration) -> Result<Option<usize>, Problem> {
    let Some(placement @ Placement { n_pes: n_pes @ 2.., meeting: Some(_), .. }) = placement else { return Ok(None) };
    rendezvous::exchange(placement, rendezvous::DOCTOR, limit, || Ok([0; 128])).map(|_| Some(*n_pes))
}

/// The part of [`doctor`] that is about the kernel module: its version, if it is loaded.
pub fn kernel_module() -> Option<String> {
    fs::read_to_string("/proc/driver/nvidia/version").ok().as_deref().and_then(module_version)
}

/// The part of [`doctor`] that is about the driver and its GPUs. It initializes the CUDA driver, and makes no context:
/// a process that only starts others may call it.
///
/// # Errors
/// Why there is no driver, or why it gives no GPU.
pub fn driver() -> Result<Driver, Problem> {
    // cuInit wakes every GPU of the machine.
    within(library::LIMIT, LIBCUDA, || {
        // cudarc panics where it finds no driver: then the loader gives the reason. What else it panics at, a driver
        // without a function, `within` catches.
        let library = Library::open(Path::new(LIBCUDA))?;
        let cuda = |call: &str, error: DriverError| {
            let text = error.error_string().map(CStr::to_string_lossy).unwrap_or("unknown".into());
            Problem::Failed { call: call.to_string(), why: format!("error {}, {text}", error.0 as u32) }
        };
        result::init().map_err(|error| cuda("cuInit", error))?;
        let version = cuda_version().map_err(|error| cuda("cuDriverGetVersion", error))?;
        let count = device::get_count().map_err(|error| cuda("cuDeviceGetCount", error))?;
        let name =
            |ordinal| device::get(ordinal).and_then(device::get_name).map_err(|error| cuda("cuDeviceGetName", error));
        let gpus = (0..count).map(name).collect::<Result<_, _>>()?;
        Ok(Driver { cuda: (version / 1000, version % 1000 / 10), gpus, file: behind_links(&library) })
    })
}

/// The part of [`doctor`] that is about NVSHMEM's host library, which it opens and does not initialize.
///
/// # Errors
/// Why there is none, or why it cannot be opened.
pub fn host_library(library: Option<&Path>) -> Result<HostLibrary, Problem> {
    nvshmem(&Search::from_environment(library))
}

fn nvshmem(search: &Search) -> Result<HostLibrary, Problem> {
    let search = search.clone();
    within(library::LIMIT, SONAME, move || {
        let (library, origin) = Library::find(&search)?;
        let version = library.nvshmem_version()?;
        let status = init_status(library.nvshmem_init_status()?)?;
        let missing = NEEDED.into_iter().filter(|name| !library.exports(name)).collect();
        let file = library.file().to_path_buf();
        Ok(HostLibrary { version, status, missing, needed: NEEDED.len(), file, origin })
    })
}

fn mpirun() -> Result<Tool, Problem> {
    let file = tool("mpirun")?;
    let printed = output(&file, &["--version"], COMMAND_LIMIT)?;
    Ok(Tool { version: printed.lines().next().unwrap_or("prints no version").to_string(), file })
}

fn tool(what: &'static str) -> Result<PathBuf, Problem> {
    on_path(what).ok_or_else(|| Problem::NotFound { what, looked: vec!["not on PATH".to_string()] })
}

/// The status that NVSHMEM numbers so.
fn init_status(number: i32) -> Result<InitStatus, Problem> {
    Ok(match number {
        0 => InitStatus::NotInitialized,
        1 => InitStatus::Bootstrapped,
        2 => InitStatus::Initialized,
        3 => InitStatus::LimitedMpg,
        4 => InitStatus::FullMpg,
        other => {
            let why = format!("{other} is no status that this version knows");
            return Err(Problem::Failed { call: "nvshmemx_init_status".to_string(), why });
        }
    })
}

/// The version in the first line of `/proc/driver/nvidia/version`: the first word that begins with a digit and has a
/// point. (The words before it differ between the open and the closed kernel module.)
fn module_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_string)
}

/// The library's file with links followed: `libcuda.so.1` is one to `libcuda.so.580.95.05`, which tells the version.
fn behind_links(library: &Library) -> PathBuf {
    fs::canonicalize(library.file()).unwrap_or_else(|_| library.file().to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::launcher::Launcher;
    use crate::search::Origin;

    fn only(argument: PathBuf) -> Search {
        Search { argument: Some(argument), variable: None, home: None, python: Ok(vec![]), loader: vec![] }
    }

    #[test]
    fn the_doctor_answers_on_any_machine() {
        let report = doctor(None);
        assert_eq!(report.rows().len(), 7);
        assert!(report.to_string().contains("The simulator works here"));
    }

    #[test]
    fn an_absent_or_damaged_library_is_reported_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(SONAME);
        assert_eq!(
            nvshmem(&only(file.clone())),
            Err(Problem::Absent { file: file.clone(), named_by: "the path given" })
        );
        fs::write(&file, "not a library at all, but longer than the header of one: 0123456789 0123456789").unwrap();
        let found = nvshmem(&only(folder.path().to_path_buf()));
        assert!(matches!(&found, Err(Problem::Damaged { file: named, .. }) if *named == file), "{found:?}");
    }

    #[test]
    fn a_library_that_is_nowhere_is_reported_with_every_place() {
        let search = Search {
            argument: None,
            variable: None,
            home: Some("/no/such/nvshmem".into()),
            python: Ok(vec!["/no/such/site".into()]),
            loader: vec![],
        };
        match nvshmem(&search) {
            Ok(found) => assert_eq!(found.origin, Origin::Loader), // this machine has it installed
            Err(problem) => {
                let text = problem.to_string();
                for place in ["/no/such/nvshmem/lib", "1 package folders", "the loader: libnvshmem_host.so.3"] {
                    assert!(text.contains(place), "{place} in {text}");
                }
            }
        }
    }

    /// With the library that this machine has, if any: every release 3.x must pass.
    #[test]
    fn real_library_else_not_run() {
        match nvshmem(&Search::from_environment(None)) {
            Err(problem) => println!("not run: no library ({problem})"),
            Ok(found) => {
                println!("{found:?}");
                assert_eq!((found.version[0], found.status), (3, InitStatus::NotInitialized));
                assert!(found.file.is_absolute(), "{:?}", found.file);
            }
        }
    }

    /// The same library cut off in the middle, which the loader alone would answer with SIGBUS.
    #[test]
    fn real_library_cut_off_else_not_run() {
        let Ok(whole) = nvshmem(&Search::from_environment(None)) else {
            println!("not run: no library");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let bytes = fs::read(&whole.file).unwrap();
        fs::write(folder.path().join(SONAME), &bytes[..bytes.len() / 2]).unwrap();
        let cut = nvshmem(&only(folder.path().to_path_buf())).unwrap_err();
        assert!(cut.to_string().contains("cut off"), "{cut}");
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
    fn doctors_meet_as_a_job_of_their_own() {
        const LONG: Duration = Duration::from_secs(30);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let [first, second] = &two(&format!("{}/job", free.local_addr().unwrap()));
        drop(free);
        std::thread::scope(|scope| {
            let met = scope.spawn(|| meet(Some(first), LONG));
            std::thread::sleep(Duration::from_millis(50));
            // A PE of a program with the same place is sent away, and no doctor takes it for one of its own.
            let program = rendezvous::exchange(second, rendezvous::PROGRAM, LONG, || Ok([1; 128]));
            let why = program.unwrap_err().to_string();
            assert!(why.contains("PE 0 there is of another job"), "{why}");
            assert_eq!(meet(Some(second), LONG), Ok(Some(2)));
            assert_eq!(met.join().unwrap(), Ok(Some(2)));
        });
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

    /// The list above is a choice from the table of bindings, not a second one.
    #[test]
    fn what_is_needed_is_what_is_called() {
        let table = include_str!("bindings.rs");
        let by_name = |name: &str| name.ends_with("_sum_reduce_on_stream"); // the reductions are looked up
        let strangers: Vec<_> =
            NEEDED.iter().filter(|name| !table.contains(&format!("pub {name}: Result")) && !by_name(name)).collect();
        assert!(strangers.is_empty(), "{strangers:?}");
    }

    #[test]
    fn both_kernel_modules_tell_their_version() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)";
        assert_eq!(module_version(closed).as_deref(), Some("535.104.05"));
        assert_eq!(module_version(open).as_deref(), Some("580.95.05"));
        assert_eq!(module_version(""), None);
    }

    #[test]
    fn every_status_has_its_number() {
        let numbers: Vec<_> = (0..5).map(|number| init_status(number).unwrap()).collect();
        assert!(numbers.is_sorted() && numbers[4] == InitStatus::FullMpg);
        assert!(init_status(5).is_err());
    }
}
