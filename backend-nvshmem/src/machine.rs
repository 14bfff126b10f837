//! What the backend needs of a machine: NVIDIA's driver and NVSHMEM's library. A process that is not a PE can look at both. This
//! makes no CUDA context and does not initialize NVSHMEM.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

use cudarc::driver::result::{self, DriverError, device};
use onesided::{InitStatus, count};

use crate::library::{self, Library, cuda_version};
use crate::limit::within;
use crate::problem::{ANOTHER_LIBRARY, INSTALL_DRIVER, Problem, VERSION_REMEDY, nvshmem_remedy};
use crate::search::{Origin, SONAME, Search};
use crate::table::TESTED;

const LIBCUDA: &str = "libcuda.so.1";

/// One or two of each group of functions that the backend calls. A library without one of them is too old; 3.4.5 has all.
/// Functions that the backend can replace (`nvshmemx_flush_on_stream`, by a quiet) are not here.
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
    "nvshmemx_uint64_wait_until_all_vector_on_stream",
    "nvshmem_team_sync",
    "nvshmem_quiet",
    "nvshmemx_quiet_on_stream",
    "nvshmemx_barrier_on_stream",
    "nvshmemx_team_sync_on_stream",
    "nvshmemx_fcollectmem_on_stream",
    "nvshmemx_float_sum_reduce_on_stream",
];

/// NVIDIA's driver, initialized in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The newest CUDA that it supports, as major and minor.
    pub cuda: (i32, i32),
    /// The names of the GPUs that `CUDA_VISIBLE_DEVICES` lets through.
    pub gpus: Vec<String>,
    /// Their architectures, in the same order: 90 for `sm_90`.
    pub architectures: Vec<u32>,
    /// The file, if the system tells it.
    pub file: PathBuf,
}

/// NVSHMEM's host library, opened but not initialized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLibrary {
    /// Major, minor, patch.
    pub version: [i32; 3],
    /// What it says about its own state.
    pub status: InitStatus,
    /// Functions that the backend needs and this library lacks.
    pub missing: Vec<&'static str>,
    /// How many functions were looked for.
    pub needed: usize,
    /// The file.
    pub file: PathBuf,
    /// What led to it.
    pub origin: Origin,
}

/// The version of NVIDIA's kernel module, if it is loaded.
pub fn kernel_module() -> Option<String> {
    fs::read_to_string("/proc/driver/nvidia/version").ok().as_deref().and_then(module_version)
}

/// NVIDIA's driver and its GPUs. This initializes the CUDA driver and makes no context, so a process that only starts others
/// may call it.
///
/// # Errors
/// Why there is no driver, or why it gives no GPU.
pub fn driver() -> Result<Driver, Problem> {
    // cuInit wakes every GPU of the machine.
    within(library::LIMIT, LIBCUDA, || {
        // cudarc panics if it finds no driver, so ask the loader first, which gives the reason. `within` catches other
        // panics, as about a driver without a function.
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
        let architecture = |ordinal| {
            device::get(ordinal)
                .and_then(crate::cuda::architecture)
                .map_err(|error| cuda("cuDeviceGetAttribute", error))
        };
        let architectures = (0..count).map(architecture).collect::<Result<_, _>>()?;
        Ok(Driver { cuda: (version / 1000, version % 1000 / 10), gpus, architectures, file: behind_links(&library) })
    })
}

/// NVSHMEM's host library. This opens the library and does not initialize it. `library` is its file or its folder, if the user
/// named one; "Where the library is looked for" in this crate's documentation says where else it may lie.
///
/// # Errors
/// Why there is no library, or why it cannot be opened.
pub fn host_library(library: Option<&Path>) -> Result<HostLibrary, Problem> {
    nvshmem(&Search::from_environment(library))
}

/// Opens a library as this crate opens its own: within 30 s, never closed, and with an error where the loader would crash.
/// `library` is a path, or a name for the system's loader. Returns its file, with links followed.
///
/// # Errors
/// Why it cannot be opened.
pub fn open_library(library: &Path) -> Result<PathBuf, Problem> {
    let owned = library.to_path_buf();
    within(library::LIMIT, &library.display().to_string(), move || {
        Library::open(&owned).map(|library| behind_links(&library))
    })
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

/// The status with this number in NVSHMEM.
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

/// The library's file with links followed: `libcuda.so.1` links to `libcuda.so.580.95.05`, which tells the version.
fn behind_links(library: &Library) -> PathBuf {
    fs::canonicalize(library.file()).unwrap_or_else(|_| library.file().to_path_buf())
}

impl Driver {
    /// What helps if the driver cannot be used for this reason.
    pub fn remedy(problem: &Problem) -> &'static str {
        match problem {
            Problem::Refused { .. } => INSTALL_DRIVER,
            _ => "the driver is there but gives no GPU: see what nvidia-smi says, and CUDA_VISIBLE_DEVICES",
        }
    }
}

impl HostLibrary {
    /// What helps if the library cannot be used for this reason.
    pub fn remedy(problem: &Problem) -> &'static str {
        nvshmem_remedy(problem)
    }

    /// Why the backend cannot use it and what would help, if it cannot.
    pub fn misfit(&self) -> Option<String> {
        let [major, minor, _] = self.version;
        let [[first, oldest, _], [_, newest, _]] = TESTED;
        let ours = format!("the backend is for {first}.{oldest} to {first}.{newest}");
        if major != first {
            Some(format!(
                "libnvshmem_host is {}, another major version: {ours}; remedy: {VERSION_REMEDY}",
                self.release()
            ))
        } else if minor < oldest {
            Some(format!("libnvshmem_host is {}, too old: {ours}; remedy: {VERSION_REMEDY}", self.release()))
        } else if !self.missing.is_empty() {
            let functions = count(self.missing.len(), "function");
            Some(format!("libnvshmem_host lacks {functions} that the backend needs; remedy: {ANOTHER_LIBRARY}"))
        } else {
            None
        }
    }

    /// A sentence, if it is newer than any release that was tested.
    pub fn untested(&self) -> Option<String> {
        let [major, minor, _] = self.version;
        let [_, [first, newest, _]] = TESTED;
        (major == first && minor > newest).then(|| {
            let release = self.release();
            format!("NVSHMEM {release} is newer than {first}.{newest}, the last that was tested; it will probably work")
        })
    }

    /// `3.4.5`.
    pub fn release(&self) -> String {
        self.version.map(|part| part.to_string()).join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(argument: PathBuf) -> Search {
        Search { argument: Some(argument), variable: None, home: None, python: Ok(vec![]), loader: vec![] }
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

    /// The same library, cut off in the middle. The loader alone would die of SIGBUS.
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

    /// The list above is a part of the table of bindings.
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

    fn library() -> HostLibrary {
        HostLibrary {
            version: [3, 4, 5],
            status: InitStatus::NotInitialized,
            missing: vec![],
            needed: NEEDED.len(),
            file: "/opt/nvshmem/lib/libnvshmem_host.so.3".into(),
            origin: Origin::Home,
        }
    }

    #[test]
    fn the_librarys_version_decides() {
        let with = |version| {
            let library = HostLibrary { version, ..library() };
            (library.misfit(), library.untested())
        };
        for fits in [[3, 4, 0], [3, 4, 5], [3, 8, 0], [3, 8, 9]] {
            assert_eq!(with(fits), (None, None), "{fits:?}");
        }
        let newer = "NVSHMEM 3.9.0 is newer than 3.8, the last that was tested; it will probably work";
        assert_eq!(with([3, 9, 0]), (None, Some(newer.to_string())));
        for (version, why) in [
            ([2, 11, 0], "2.11.0, another major version"),
            ([4, 0, 1], "4.0.1, another major version"),
            ([3, 3, 9], "3.3.9, too old"),
        ] {
            let remedy = "pip install nvidia-nvshmem-cu13 (cu12 for CUDA 12), or set ONESIDED_NVSHMEM_LIB to a \
                          release that fits";
            let said = format!("libnvshmem_host is {why}: the backend is for 3.4 to 3.8; remedy: {remedy}");
            assert_eq!(with(version), (Some(said), None));
        }
    }

    #[test]
    fn a_library_that_lacks_functions_does_not_fit() {
        let lacks = |missing| HostLibrary { missing, ..library() }.misfit().unwrap();
        let remedy = "remedy: install the library again, or set ONESIDED_NVSHMEM_LIB to another one";
        let one = format!("libnvshmem_host lacks 1 function that the backend needs; {remedy}");
        assert_eq!(lacks(vec!["nvshmemx_team_init"]), one);
        assert!(lacks(NEEDED.to_vec()).contains("lacks 39 functions that"));
    }

    #[test]
    fn remedies_fit_the_problem() {
        let version = Problem::Version { file: "/x.so".into(), why: "4.0.0".into() };
        assert!(HostLibrary::remedy(&version).starts_with("pip install"));
        let absent = Problem::Absent { file: "/x.so".into(), named_by: "the path given" };
        assert!(HostLibrary::remedy(&absent).contains("name the file"));
        let refused = Problem::Refused { file: "libcuda.so.1".into(), why: "no such file".into() };
        assert!(Driver::remedy(&refused).starts_with("install NVIDIA's driver"));
        let failed = Problem::Failed { call: "cuInit".into(), why: "error 100, no device".into() };
        assert!(Driver::remedy(&failed).contains("CUDA_VISIBLE_DEVICES"));
    }
}
