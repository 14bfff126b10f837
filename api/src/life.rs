//! The life cycle: versions, unique ids, initialization, status.

use std::fmt;
use std::str::FromStr;

use crate::at::At;
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::pe::Pe;

/// Versions of the specification, of this API and of the library behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The OpenSHMEM specification that the library follows, as major and minor.
    pub openshmem_spec: (u32, u32),
    /// This crate's version.
    pub onesided: &'static str,
    /// The backend's library and its version, e.g. `libnvshmem 3.8.0`.
    pub library: String,
}

/// This crate's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// 128 bytes by which the PEs of one job find each other. One PE makes them and gives them to all others before `init`.
///
/// As text they are 256 hexadecimal digits, which fit into an environment variable or a file.
/// ```
/// use onesided::UniqueId;
/// let id = UniqueId([7; 128]);
/// assert_eq!(id.to_string().parse::<UniqueId>().unwrap(), id);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UniqueId(pub [u8; 128]);

impl UniqueId {
    /// An id of zeros: the place for one that is received later.
    pub const EMPTY: UniqueId = UniqueId([0; 128]);
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UniqueId({:02x}{:02x}{:02x}{:02x}…)", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

impl FromStr for UniqueId {
    type Err = Error;

    #[track_caller]
    fn from_str(text: &str) -> Result<UniqueId> {
        let wrong = |what: String| Error::new(ErrorKind::InvalidArgument, "UniqueId", what, At::caller());
        if text.len() != 256 || !text.is_ascii() {
            return Err(wrong(format!("{} characters, expected 256 hexadecimal digits", text.chars().count())));
        }
        let mut id = UniqueId::EMPTY;
        for (i, byte) in id.0.iter_mut().enumerate() {
            let digits = &text[2 * i..2 * i + 2];
            let number = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
            *byte = number.ok_or_else(|| wrong(format!("{digits:?} is not a hexadecimal byte")))?;
        }
        Ok(id)
    }
}

/// How the PEs of a job find each other. The last three are the `initializer_method`s of NVSHMEM4Py.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a backend must answer every method")]
pub enum InitMethod {
    /// The simulator, or a launcher by environment variables, tells this process its rank and the number of PEs.
    Launcher,
    /// `"uid"`: a unique id, received from the PE that made it.
    UniqueId {
        /// The id, the same on all PEs.
        id: UniqueId,
        /// My rank.
        rank: usize,
        /// Number of PEs.
        n_pes: usize,
    },
    /// `"mpi"`: MPI's world communicator.
    Mpi,
    /// `"emulated_mpi"`: MPI broadcasts a unique id and does nothing else.
    EmulatedMpi,
}

impl InitMethod {
    /// NVSHMEM4Py's name of the method.
    pub fn name(&self) -> &'static str {
        match self {
            InitMethod::Launcher => "launcher",
            InitMethod::UniqueId { .. } => "uid",
            InitMethod::Mpi => "mpi",
            InitMethod::EmulatedMpi => "emulated_mpi",
        }
    }
}

/// How far initialization has come (`nvshmemx_init_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InitStatus {
    /// Nothing has been initialized, or everything was finalized.
    NotInitialized,
    /// The PEs know each other, but no GPU was selected.
    Bootstrapped,
    /// Ready, with one PE on each GPU.
    Initialized,
    /// Several PEs share a GPU without MPS: no teams, collectives or waits.
    LimitedMpg,
    /// Several PEs share a GPU under MPS: everything works.
    FullMpg,
}

impl InitStatus {
    /// The status as NVSHMEM names it.
    pub fn name(self) -> &'static str {
        match self {
            InitStatus::NotInitialized => "not initialized",
            InitStatus::Bootstrapped => "bootstrapped",
            InitStatus::Initialized => "initialized",
            InitStatus::LimitedMpg => "limited MPG",
            InitStatus::FullMpg => "full MPG",
        }
    }
}

/// Which threads may call the library (`nvshmem_query_thread`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the levels of the specification")]
pub enum ThreadSupport {
    /// The process has one thread.
    Single,
    /// Only the thread that initialized.
    Funneled,
    /// One thread at a time: what NVSHMEM gives, and what `Pe: !Send + !Sync` enforces.
    Serialized,
    /// Any thread at any time.
    Multiple,
}

impl ThreadSupport {
    /// The level as OpenSHMEM names it.
    pub fn name(self) -> &'static str {
        match self {
            ThreadSupport::Single => "single",
            ThreadSupport::Funneled => "funneled",
            ThreadSupport::Serialized => "serialized",
            ThreadSupport::Multiple => "multiple",
        }
    }
}

/// A process that is not a PE: before `init`, and again after `finalize`.
///
/// Programs usually start with a ready [`Pe`], because the harness that runs them initializes and finalizes. A program that does so
/// itself is written against this trait.
///
/// ```
/// use onesided::{Bootstrap, InitMethod, Result};
///
/// fn twice(process: &impl Bootstrap) -> Result<()> {
///     for _ in 0..2 {
///         let pe = process.init(InitMethod::Launcher)?;
///         pe.host().barrier_all()?;
///         pe.finalize()?;
///     }
///     Ok(())
/// }
/// # use onesided_sim::{Config, Simulation};
/// # Simulation::new(Config::pes(2))?.run_process(|process| twice(process))?.into_results()?;
/// # Ok::<(), onesided::Error>(())
/// ```
pub trait Bootstrap {
    /// The backend that `init` starts.
    type Backend: Backend;

    /// Versions; can be called before `init`. Local.
    ///
    /// ```
    /// # use onesided::{Bootstrap, InitMethod, InitStatus, Result};
    /// # fn example(process: &impl Bootstrap) -> Result<()> {
    /// println!("{}", process.version().library);
    /// # Ok(()) }
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(2))?.run_process(|process| example(process))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    fn version(&self) -> Version;

    /// How far initialization has come. Local.
    ///
    /// ```
    /// # use onesided::{Bootstrap, InitMethod, InitStatus, Result};
    /// # fn example(process: &impl Bootstrap) -> Result<()> {
    /// assert_eq!(process.init_status(), InitStatus::NotInitialized);
    /// let pe = process.init(InitMethod::Launcher)?;
    /// assert_eq!(process.init_status(), InitStatus::Initialized);
    /// pe.finalize()?;
    /// # Ok(()) }
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(2))?.run_process(|process| example(process))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    fn init_status(&self) -> InitStatus;

    /// Makes a unique id, to be given to all other PEs. Local; one PE calls it.
    ///
    /// # Errors
    /// [`ErrorKind::Initialization`] when the library cannot listen for the others.
    ///
    /// ```
    /// use onesided::{Bootstrap, InitMethod, Result, UniqueId};
    ///
    /// /// `exchange` gives all processes what process 0 made.
    /// fn join(process: &impl Bootstrap, rank: usize, n_pes: usize, exchange: impl Fn(UniqueId) -> UniqueId) -> Result<()> {
    ///     let made = if rank == 0 { process.unique_id()? } else { UniqueId::EMPTY };
    ///     let pe = process.init(InitMethod::UniqueId { id: exchange(made), rank, n_pes })?;
    ///     pe.finalize()
    /// }
    /// # use onesided_sim::{Config, Simulation};
    /// # let first = std::cell::Cell::new(UniqueId::EMPTY);
    /// # let exchange = |made| { if made != UniqueId::EMPTY { first.set(made) }; first.get() };
    /// # Simulation::new(Config::pes(2))?.run_process(|process| join(process, process.rank(), 2, exchange))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[track_caller]
    fn unique_id(&self) -> Result<UniqueId> {
        self.unique_id_at(At::caller())
    }

    /// As [`Bootstrap::unique_id`], for a binding for another language: the call stands at `at`.
    ///
    /// # Errors
    /// As [`Bootstrap::unique_id`].
    ///
    /// ```
    /// # use onesided::{At, Bootstrap, Result, UniqueId};
    /// # fn example(process: &impl Bootstrap) -> Result<()> {
    /// let id = process.unique_id_at(At::foreign("ring.py", 2, 6, None))?;
    /// assert_ne!(id, UniqueId::EMPTY);
    /// # Ok(()) }
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(1))?.run_process(|process| example(process))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    fn unique_id_at(&self, at: At) -> Result<UniqueId>;

    /// Becomes a PE.
    ///
    /// # Collective
    /// Over all PEs of the job, with the same method.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when the rank is not below the number of PEs, or this process is a PE already (the library
    /// would ignore the second call's parameters); [`ErrorKind::Initialization`] when the library fails;
    /// [`ErrorKind::Unsupported`] for a method that this backend does not have.
    ///
    /// ```
    /// # use onesided::{Bootstrap, InitMethod, InitStatus, Result};
    /// # fn example(process: &impl Bootstrap) -> Result<()> {
    /// let pe = process.init(InitMethod::Launcher)?;
    /// assert!(process.init(InitMethod::Launcher).is_err()); // it is a PE already
    /// pe.finalize()?;
    /// # Ok(()) }
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(2))?.run_process(|process| example(process))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[track_caller]
    fn init(&self, method: InitMethod) -> Result<Pe<Self::Backend>> {
        self.init_at(method, At::caller())
    }

    /// As [`Bootstrap::init`], for a binding for another language: the call stands at `at`. Its PE is then
    /// [`placed`](crate::backend::placed).
    ///
    /// # Collective
    /// As [`Bootstrap::init`].
    ///
    /// # Errors
    /// As [`Bootstrap::init`].
    ///
    /// ```
    /// # use onesided::{At, Bootstrap, InitMethod, Result};
    /// # fn example(process: &impl Bootstrap) -> Result<()> {
    /// let pe = process.init_at(InitMethod::Launcher, At::foreign("ring.py", 3, 6, None))?;
    /// pe.finalize()?;
    /// # Ok(()) }
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(2))?.run_process(|process| example(process))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    fn init_at(&self, method: InitMethod, at: At) -> Result<Pe<Self::Backend>>;
}
