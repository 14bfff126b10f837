//! [`Pe`]: what a program holds.

use std::cell::{OnceCell, RefCell};
use std::marker::PhantomData;

use crate::at::At;
use crate::backend::Backend;
use crate::brand::Brand;
use crate::capability::Capabilities;
use crate::error::Result;
use crate::issue::{Host, Issue};
use crate::life::{InitStatus, ThreadSupport, Version};
use crate::members::TeamId;
use crate::span::AllocId;
use crate::stream::Stream;
use crate::team::Team;

/// A processing element: this process' end of an initialized NVSHMEM job.
///
/// A program is a function over it, generic in the backend, and runs unchanged on the simulator and on GPUs:
///
/// ```
/// use onesided::{Backend, Pe, Result};
///
/// /// Every PE puts its rank into the next PE's buffer.
/// fn ring(pe: &Pe<impl Backend>) -> Result<u32> {
///     let (me, n) = (pe.my_pe(), pe.n_pes());
///     let src = pe.alloc::<u32>(1)?;
///     let dst = pe.alloc::<u32>(1)?;
///     pe.write(&src, &[me as u32])?;
///     pe.host().put(&dst, &src, (me + 1) % n)?;
///     pe.host().barrier_all()?;
///     let received = pe.read_one(&dst)?;
///     pe.free(dst)?;
///     pe.free(src)?;
///     Ok(received)
/// }
/// # onesided_sim::example(3, |pe| onesided::expect_eq(ring(pe)?, (pe.my_pe() as u32 + 2) % 3, "the sender"));
/// ```
///
/// The host issues operations through [`Pe::host`], a stream through [`Pe::on`]. Both give the same verbs. NVSHMEM is called by
/// one thread at a time, so a `Pe` stays on its thread:
/// ```compile_fail,E0277
/// # use onesided::{Backend, Pe};
/// fn wrong<B: Backend + Sync>(pe: &Pe<B>) {
///     std::thread::scope(|s| { s.spawn(|| pe.my_pe()); }); // error: `Pe<B>` cannot be shared between threads
/// }
/// ```
/// There is no `Pe` before initialization. There is none after [`Pe::finalize`] either, which consumes it:
/// ```compile_fail,E0382
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: Pe<impl Backend>) -> Result<()> {
///     pe.finalize()?;
///     pe.host().barrier_all() // error: use of moved value
/// }
/// ```
pub struct Pe<B: Backend> {
    pub(crate) backend: B,
    /// Filled in when they are first asked for.
    pub(crate) predefined: [OnceCell<Option<Box<Team>>>; 6],
    pub(crate) ledger: RefCell<Vec<Live>>,
    pub(crate) brand: Brand,
    my_pe: u32,
    n_pes: u32,
    one_thread: PhantomData<*const ()>,
}

/// Something that a PE holds, and must give back before it finalizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// What it is.
    pub what: LiveKind,
    /// Its size in bytes; 0 for teams.
    pub bytes: usize,
    /// The line that made it.
    pub at: At,
}

/// What a PE can forget to give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a backend must give back each of them")]
pub enum LiveKind {
    /// Symmetric memory.
    Buffer(AllocId),
    /// Memory outside the symmetric heap.
    ExternalMemory(AllocId),
    /// A local registration.
    Registered(AllocId),
    /// A symmetric registration.
    RegisteredSymmetric(AllocId),
    /// A team.
    Team(TeamId),
}

impl<B: Backend> Pe<B> {
    pub(crate) fn new(backend: B) -> Self {
        let (my_pe, n_pes) = (backend.my_pe(), backend.n_pes());
        Pe {
            predefined: [const { OnceCell::new() }; 6],
            ledger: RefCell::default(),
            brand: Brand::fresh(),
            my_pe: my_pe as u32,
            n_pes: n_pes as u32,
            backend,
            one_thread: PhantomData,
        }
    }

    /// The same PE on another backend, which keeps what this one has made.
    pub(crate) fn map_backend<C: Backend>(self, map: impl FnOnce(B) -> C) -> Pe<C> {
        let Pe { backend, predefined, ledger, brand, my_pe, n_pes, one_thread } = self;
        Pe { backend: map(backend), predefined, ledger, brand, my_pe, n_pes, one_thread }
    }

    /// My number among all PEs (`nvshmem_my_pe`). Local.
    ///
    /// ```
    /// # onesided_sim::example(3, |pe| {
    /// assert!(pe.my_pe() < pe.n_pes());
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.my_pe as usize
    }

    /// The number of PEs (`nvshmem_n_pes`). Local.
    ///
    /// ```
    /// # onesided_sim::example(3, |pe| {
    /// assert_eq!(pe.n_pes(), 3);
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.n_pes as usize
    }

    /// The backend's name: `sim` or `nvshmem` (`nvshmem_info_get_name`). Local.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// assert_eq!(pe.name(), "sim");
    /// # Ok(()) });
    /// ```
    pub fn name(&self) -> &'static str {
        B::NAME
    }

    /// Versions of specification, API and library (`nvshmem_info_get_version`). Local.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// println!("OpenSHMEM {:?}, {}", pe.version().openshmem_spec, pe.version().library);
    /// # Ok(()) });
    /// ```
    pub fn version(&self) -> Version {
        self.backend.version()
    }

    /// How far initialization has come (`nvshmemx_init_status`). Local.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// assert_eq!(pe.init_status(), onesided::InitStatus::Initialized);
    /// # Ok(()) });
    /// ```
    pub fn init_status(&self) -> InitStatus {
        self.backend.init_status()
    }

    /// Which threads may call (`nvshmem_query_thread`). Local.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// assert_eq!(pe.query_thread(), onesided::ThreadSupport::Serialized);
    /// # Ok(()) });
    /// ```
    pub fn query_thread(&self) -> ThreadSupport {
        self.backend.thread_support()
    }

    /// Which of the optional families of calls work here. Local.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// if pe.capabilities().host_atomics.is_available() {
    ///     let counter = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.host().atomic_inc(counter.at(0), 0)?;
    ///     pe.free(counter)?;
    /// }
    /// # Ok(()) });
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// What only this backend has, for programs that are written for one backend. Local.
    ///
    /// The backend for GPUs has device pointers and foreign streams: `onesided_nvshmem::DeviceAccess`. The simulator has
    /// nothing of its own.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// let () = pe.extension();
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn extension(&self) -> B::Extension<'_> {
        self.backend.extension()
    }

    /// The verbs, issued by the host. Each returns when its contract says so.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// pe.host().barrier_all()?; // returns when every PE is here
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn host(&self) -> Host<'_, B> {
        Host::new(self)
    }

    /// The verbs, enqueued on `stream`. Each returns at once and runs in stream order, concurrently with the host.
    ///
    /// A stream of another PE or of an earlier run is refused by the verb.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let stream = pe.stream()?;
    /// pe.on(&stream).barrier_all()?; // enqueued
    /// pe.synchronize(&stream)?; // every PE's stream was there
    /// # Ok(()) });
    /// ```
    #[inline]
    pub fn on<'a>(&'a self, stream: &'a Stream<B>) -> Issue<'a, B> {
        Issue::new(self, Some(stream))
    }

    /// Ends this PE (`nvshmem_finalize`): completes what is in flight, and reports what was not given back.
    ///
    /// # Collective
    /// Over all PEs. The harness that runs a program calls it. A program calls it only if it initialized itself.
    ///
    /// # Errors
    /// Those of the backend. Memory and teams that are still alive do not make it fail: the simulator ends the run with a leak
    /// verdict; on GPUs they are printed and freed in the order in which they were made.
    ///
    /// ```
    /// use onesided::{Bootstrap, InitMethod, Result};
    ///
    /// fn program(process: &impl Bootstrap) -> Result<()> {
    ///     let pe = process.init(InitMethod::Launcher)?;
    ///     pe.host().barrier_all()?;
    ///     pe.finalize()
    /// }
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(2))?.run_process(|process| program(process))?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[track_caller]
    pub fn finalize(self) -> Result<()> {
        self.finalize_at(At::caller())
    }

    /// As [`Pe::finalize`], for code that runs programs. Reports name the place `at`.
    ///
    /// # Errors
    /// As [`Pe::finalize`].
    #[doc(hidden)]
    pub fn finalize_at(self, at: At) -> Result<()> {
        let leaks = self.ledger.borrow();
        self.backend.finalize(&leaks, at)
    }

    /// Ends the job on all PEs, with `status` (`nvshmem_global_exit`).
    ///
    /// # One-sided
    /// One PE's call is enough. It never returns. NVSHMEM does not say when the other PEs end. They may go on for a while, and
    /// operations that this PE has issued may still take effect.
    ///
    /// ```
    /// # use onesided_sim::{Config, Simulation, VerdictKind};
    /// # let run = Simulation::new(Config::pes(2))?.run(|pe| -> onesided::Result<()> {
    /// if pe.my_pe() == 1 {
    ///     pe.global_exit(3); // PE 0 does not get past the barrier
    /// }
    /// pe.host().barrier_all()
    /// # })?;
    /// # assert!(matches!(run.verdict.kind, VerdictKind::Exited { pe: 1, status: 3, .. }));
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[track_caller]
    pub fn global_exit(&self, status: i32) -> ! {
        self.backend.global_exit(status, At::caller())
    }
}

impl<B: Backend> std::fmt::Debug for Pe<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pe {} of {} on {}", self.my_pe, self.n_pes, B::NAME)
    }
}
