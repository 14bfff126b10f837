//! [`Process`]: a process that is not yet a PE, with the library loaded.

use std::cell::OnceCell;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use onesided::{At, Bootstrap, Error, ErrorKind, InitMethod, InitStatus, Pe, Result, UniqueId, Version, count};

use crate::claim::Claim;
use crate::cuda::Device;
use crate::join::MISSING;
use crate::launcher::{self, MOST_PES, Placement};
use crate::library::{self, Library};
use crate::lifecycle::{self, Bootstrapped};
use crate::limit::within;
use crate::mpi::World;
use crate::pe::Nvshmem;
use crate::problem::{INSTALL_DRIVER, Problem, nvshmem_remedy};
use crate::reduction::Scratch;
use crate::search::{SONAME, Search};
use crate::setting;
use crate::table::Table;
use crate::{join, rendezvous, vmm};

/// The longest limit, in seconds: 68 years. The clock cannot count the end of a much longer one.
const LONGEST: u64 = i32::MAX as u64;

/// Choices of a process before it becomes a PE.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// NVSHMEM's host library or the folder that holds it; `None` for the usual places (see "Where the
    /// library is looked for" above).
    pub library: Option<PathBuf>,
    /// The GPU of this PE, as CUDA numbers it; `None` for the rank on this host, modulo the number of GPUs.
    pub device: Option<usize>,
    /// How long to wait for the other PEs in `init`. PEs wait for each other twice: when they meet, and when the library
    /// connects them. Each wait has this limit, so that the last PE to come has time for the second. The longest limit is
    /// 2147483647 s (68 years); more counts as that.
    pub limit: Duration,
}

impl Default for Settings {
    /// The usual library, a GPU by rank, and a minute to wait for the others.
    fn default() -> Self {
        Settings { library: None, device: None, limit: Duration::from_secs(60) }
    }
}

impl Settings {
    /// [`Settings::default`], changed by two environment variables: `ONESIDED_DEVICE`, which `onesided launch` sets, and
    /// `ONESIDED_TIMEOUT` (seconds), for the user.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if a value is not a whole number, or too large.
    #[track_caller]
    pub fn from_environment() -> Result<Settings> {
        let at = At::caller();
        let number =
            |variable, largest| setting::number(variable, largest).map_err(|problem| problem.error("settings", at));
        let mut settings = Settings::default();
        if let Some(device) = number("ONESIDED_DEVICE", i32::MAX as u64)? {
            settings.device = Some(device as usize);
        }
        if let Some(seconds) = number("ONESIDED_TIMEOUT", LONGEST)? {
            settings.limit = Duration::from_secs(seconds);
        }
        Ok(settings)
    }
}

/// A process that is not yet a PE, with the library loaded. It implements [`Bootstrap`].
///
/// ```no_run
/// use onesided::{Bootstrap, InitMethod, Result};
/// use onesided_nvshmem::{Process, Settings};
///
/// fn main() -> Result<()> {
///     let pe = Process::open(Settings::from_environment()?)?.init(InitMethod::Launcher)?;
///     println!("PE {} of {}", pe.my_pe(), pe.n_pes());
///     pe.finalize()
/// }
/// ```
#[derive(Debug)]
pub struct Process {
    table: &'static Table,
    settings: Settings,
    scratch: Scratch,
    /// MPI, after the first PE that used it. MPI can be initialized only once, but a process can be several PEs in turn.
    world: OnceCell<Rc<World>>,
}

/// Who this process is among the PEs, and on which GPU.
struct Place {
    rank: usize,
    n_pes: usize,
    local_rank: usize,
}

impl Process {
    /// Finds and loads the library. No GPU is needed yet.
    ///
    /// # Errors
    /// * [`ErrorKind::Initialization`] if the library is absent, damaged, or of a version that this crate does not support. The
    ///   message says where it was looked for.
    /// * [`ErrorKind::Timeout`] if it cannot be opened in 30 s.
    /// * [`ErrorKind::InvalidArgument`] if `NVSHMEM_REDUCE_SCRATCH_SIZE` or `NVSHMEM_CUMEM_GRANULARITY` is not a size, or if the
    ///   first is not a multiple of 128 bytes. The library would then leave elements out of reductions.
    #[track_caller]
    pub fn open(settings: Settings) -> Result<Process> {
        let settings = Settings { limit: settings.limit.min(Duration::from_secs(LONGEST)), ..settings };
        let at = At::caller();
        let wrong = |problem: Problem| problem.error("open", at);
        let scratch = Scratch::from_environment().map_err(wrong)?;
        vmm::check_step().map_err(wrong)?;
        let table = load(&Search::from_environment(settings.library.as_deref()));
        let table = table.map_err(|problem| problem.error_with_remedy(nvshmem_remedy(&problem), "open", at))?;
        Ok(Process { table, settings, scratch, world: OnceCell::new() })
    }

    /// The library's file.
    pub fn library(&self) -> &Path {
        &self.table.file
    }

    fn initialize(&self, method: &InitMethod, at: At) -> Result<Pe<Nvshmem>> {
        const CALL: &str = "init";
        let wrong = |message: String| Err(Error::invalid(CALL, message, at));
        // An error gives the claim back, as long as nothing has reached the library.
        let problem = |problem: Problem| problem.error(CALL, at);
        let claim = Claim::take().map_err(problem)?;
        match self.init_status() {
            InitStatus::NotInitialized => {}
            InitStatus::Bootstrapped => return Err(Problem::Spent.error(CALL, at)),
            _ => return Err(Problem::Taken.error(CALL, at)),
        }
        let by_mpi = |problem: Problem| match problem {
            Problem::NoAnswer { .. } => problem.error_with_remedy(MPI_REMEDY, CALL, at),
            _ => problem.error(CALL, at), // its text says what would help
        };
        let limit = self.settings.limit;
        match *method {
            InitMethod::Launcher => {
                let Some(placement) = launcher::placement().map_err(problem)? else {
                    let message = "nothing says which PE this process is: start it by `onesided launch -n N -- …`, mpirun, \
                                   srun or torchrun, or set ONESIDED_RANK, ONESIDED_PES, ONESIDED_RENDEZVOUS and ONESIDED_KEY";
                    return Err(Error::new(ErrorKind::Initialization, CALL, message, at));
                };
                let Placement { rank, n_pes, local_rank, .. } = placement;
                let make = || join::unique_id(self.table).map(|id| id.0);
                let id = rendezvous::exchange(&placement, rendezvous::PROGRAM, limit, make);
                self.by_unique_id(claim, UniqueId(id.map_err(problem)?), &Place { rank, n_pes, local_rank }, None, at)
            }
            InitMethod::UniqueId { id, rank, n_pes } => {
                if rank >= n_pes {
                    let pes = count(n_pes, "PE");
                    return wrong(format!("rank {rank} of {pes}: ranks go from 0 to the number of PEs less one"));
                }
                if n_pes > MOST_PES {
                    return wrong(format!("{n_pes} PEs are more than any job has: {MOST_PES} at most"));
                }
                if !join::is_unique_id(&id) {
                    return wrong(
                        "these bytes are not a unique id: one PE makes it by unique_id() and gives it to all".into(),
                    );
                }
                let local_rank = launcher::placement().ok().flatten().map_or(rank, |placement| placement.local_rank);
                self.by_unique_id(claim, id, &Place { rank, n_pes, local_rank }, None, at)
            }
            InitMethod::EmulatedMpi => {
                let world = self.world().map_err(by_mpi)?;
                let place = Place { rank: world.rank(), n_pes: world.n_pes(), local_rank: world.local_rank() };
                let mut id = UniqueId::EMPTY;
                if place.rank == 0 {
                    id = join::unique_id(self.table).map_err(problem)?;
                }
                world.broadcast(&mut id.0).map_err(by_mpi)?;
                self.by_unique_id(claim, id, &place, Some(world), at)
            }
            InitMethod::Mpi => {
                let world = self.world().map_err(by_mpi)?;
                let device = self.device(world.local_rank());
                let context = device.as_ref().ok().map(|device| device.context().clone());
                let join = || join::by_mpi(self.table, context, &world, self.settings.limit);
                let joined = if is_dead(&device) { Ok(()) } else { join() };
                let place = Place { rank: world.rank(), n_pes: world.n_pes(), local_rank: world.local_rank() };
                self.become_pe(claim, &place, device, joined, Some(world), at)
            }
        }
    }

    fn world(&self) -> Result<Rc<World>, Problem> {
        if self.world.get().is_none() {
            let _ = self.world.set(Rc::new(World::join(self.settings.limit)?)); // it is empty
        }
        Ok(Rc::clone(self.world.get().expect("just set")))
    }

    fn by_unique_id(
        &self,
        claim: Claim,
        id: UniqueId,
        place: &Place,
        world: Option<Rc<World>>,
        at: At,
    ) -> Result<Pe<Nvshmem>> {
        // Without a GPU the PEs still meet. Each then says what it lacks, and nobody waits for a PE that gave up early.
        let device = self.device(place.local_rank);
        let context = device.as_ref().ok().map(|device| device.context().clone());
        let Place { rank, n_pes, .. } = *place;
        let join = || join::by_unique_id(self.table, context, id, rank, n_pes, self.settings.limit);
        let joined = if is_dead(&device) { Ok(()) } else { join() };
        self.become_pe(claim, place, device, joined, world, at)
    }

    /// Takes this PE's GPU and makes its context current. This waits for the driver and not for other PEs, so a short limit for
    /// PEs does not apply.
    fn device(&self, local_rank: usize) -> Result<Device, Problem> {
        let chosen = self.settings.device;
        let awake = within(self.settings.limit.max(library::LIMIT), "waking the GPU", move || match chosen {
            Some(device) => Device::wake(device),
            None => Device::wake(local_rank % Device::count()?.max(1)),
        })?;
        Device::new(awake)
    }

    /// Looks at the result of the initialization. A failed one is never finalized, because the library would end the process.
    fn become_pe(
        &self,
        claim: Claim,
        place: &Place,
        device: Result<Device, Problem>,
        joined: Result<(), Problem>,
        world: Option<Rc<World>>,
        at: At,
    ) -> Result<Pe<Nvshmem>> {
        const CALL: &str = "init";
        let Place { rank, n_pes, .. } = place;
        let status = self.init_status();
        let bootstrap = Bootstrapped(world);
        let failed = |claim: Claim, kind, why: String| {
            claim.fail();
            bootstrap.abandon();
            Err(Error::new(kind, CALL, format!("PE {rank} of {n_pes}: {why}"), at))
        };
        // A failure from here on leaves the device as it is, because the library may still use its context.
        let device = device.map(ManuallyDrop::new);
        let device = match (device, joined) {
            (_, Err(problem @ Problem::NoAnswer { .. })) => {
                let why = format!("{problem}: {MISSING}");
                return failed(claim, ErrorKind::Timeout, why);
            }
            (Err(problem), _) => {
                let met = if status == InitStatus::Bootstrapped { "the PEs met, but " } else { "" };
                return failed(claim, problem.kind(), format!("{met}this PE has no GPU: {}", no_gpu(&problem)));
            }
            (Ok(_), Err(problem)) => {
                let why =
                    format!("{problem}; the library's status is {}. NVSHMEM_DEBUG=WARN shows more", status.name());
                return failed(claim, ErrorKind::Initialization, why);
            }
            (Ok(device), Ok(())) => device,
        };
        match status {
            InitStatus::Initialized | InitStatus::FullMpg => {
                let device = ManuallyDrop::into_inner(device);
                let pe = Nvshmem::new(self.table, device, self.scratch, (*rank, *n_pes), claim, bootstrap);
                pe.prepare(at)?;
                Ok(onesided::backend::new_pe(pe))
            }
            InitStatus::LimitedMpg => {
                let why = "several PEs share a GPU without MPS, or with shares that sum up to more than 100 %: teams, \
                           collectives and waits would end the process. Start the PEs by `onesided launch --mps`, or \
                           give each a GPU of its own";
                failed(claim, ErrorKind::Initialization, why.to_string())
            }
            _ => {
                let why =
                    format!("the library is {} only, and gives no reason; NVSHMEM_DEBUG=WARN does", status.name());
                failed(claim, ErrorKind::Initialization, why)
            }
        }
    }
}

impl Bootstrap for Process {
    type Backend = Nvshmem;

    fn version(&self) -> Version {
        lifecycle::version(self.table)
    }

    fn init_status(&self) -> InitStatus {
        lifecycle::init_status(self.table)
    }

    fn unique_id_at(&self, at: At) -> Result<UniqueId> {
        join::unique_id(self.table).map_err(|problem| problem.error("unique_id", at))
    }

    fn init_at(&self, method: InitMethod, at: At) -> Result<Pe<Nvshmem>> {
        self.table.check_complete().map_err(|problem| problem.error("init", at))?;
        self.initialize(&method, at)
    }
}

/// Opens the library that the search finds.
fn load(search: &Search) -> Result<&'static Table, Problem> {
    let search = search.clone();
    within(library::LIMIT, SONAME, move || Table::new(Library::find(&search)?.0))
}

/// Whether the driver did not answer. The library would ask it next, and wait.
fn is_dead(device: &Result<Device, Problem>) -> bool {
    matches!(device, Err(Problem::NoAnswer { .. }))
}

/// What helps if processes do not come to MPI, or stop there.
const MPI_REMEDY: &str =
    "see whether one mpirun started all of them, whether each initializes by MPI, and whether one ended";

/// Why there is no GPU, with what would help unless the reason says it.
fn no_gpu(problem: &Problem) -> String {
    match problem {
        Problem::NotFound { .. } => format!("{problem}; remedy: {INSTALL_DRIVER}"),
        Problem::NoAnswer { .. } => format!("{problem}; remedy: see whether nvidia-smi answers"),
        _ => problem.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin;

    /// Under its name the loader gives a library that is loaded already, wherever it lies.
    #[test]
    fn real_library_that_the_loader_finds_has_its_plugins_beside_it_else_not_run() {
        let named = match load(&Search::from_environment(None)) {
            Err(problem) => return println!("not run: no library ({problem})"),
            Ok(table) => table,
        };
        let by_name = Search { argument: None, variable: None, home: None, python: Ok(vec![]), loader: vec![] };
        let found = load(&by_name).unwrap();
        assert_eq!((&found.file, found.file.is_absolute()), (&named.file, true));
        assert_eq!(plugin::check(plugin::UID, &found.file), Ok(()));
    }

    #[test]
    fn why_there_is_no_gpu_comes_with_what_would_help_once() {
        let no_driver = Problem::NotFound { what: "libcuda.so.1", looked: vec!["nowhere".to_string()] };
        let remedy = "no libcuda.so.1: nowhere; remedy: install NVIDIA's driver";
        assert!(no_gpu(&no_driver).starts_with(remedy), "{}", no_gpu(&no_driver));
        let sleeps = Problem::NoAnswer { call: "waking the GPU".to_string(), limit: Duration::from_secs(30) };
        assert_eq!(no_gpu(&sleeps), "waking the GPU: no answer within 30 s; remedy: see whether nvidia-smi answers");
        let choice = Problem::Failed { call: "choosing a GPU".to_string(), why: "none; see nvidia-smi".to_string() };
        assert_eq!(no_gpu(&choice), choice.to_string());
    }

    #[test]
    fn the_clock_counts_the_longest_limit() {
        assert!(std::time::Instant::now().checked_add(Duration::from_secs(LONGEST)).is_some());
    }
}
