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
use crate::span::AllocId;
use crate::stream::Stream;
use crate::team::{Team, TeamId};

/// A processing element: this process' end of an initialized NVSHMEM job.
///
/// A program is a function over it, generic in the backend, and runs unchanged on the simulator and on GPUs:
///
/// ```
/// use onesided::{Backend, Pe, Result};
///
/// /// Every PE puts its rank into the next PE's buffer.
/// fn ring<B: Backend>(pe: &Pe<B>) -> Result<u32> {
///     let (me, n) = (pe.my_pe(), pe.n_pes());
///     let src = pe.alloc::<u32>(1)?;
///     let dst = pe.alloc::<u32>(1)?;
///     pe.write(&src, &[me as u32])?;
///     pe.host().put(&dst, &src, (me + 1) % n)?;
///     pe.host().barrier_all()?;
///     let received = pe.read(&dst)?[0];
///     pe.free(dst)?;
///     pe.free(src)?;
///     Ok(received)
/// }
/// ```
///
/// Operations are issued by the host, through [`Pe::host`], or on a stream, through [`Pe::on`]; both give the same
/// verbs. NVSHMEM is called by one thread at a time, so a `Pe` stays on its thread:
/// ```compile_fail
/// # use onesided::{Backend, Pe};
/// fn wrong<B: Backend + Sync>(pe: &Pe<B>) {
///     std::thread::scope(|s| { s.spawn(|| pe.my_pe()); }); // error: `Pe<B>` is not `Sync`
/// }
/// ```
/// There is no `Pe` before initialization, and none after [`Pe::finalize`], which consumes it:
/// ```compile_fail
/// # use onesided::{Backend, Pe, Result};
/// fn wrong<B: Backend>(pe: Pe<B>) -> Result<()> {
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

/// Something that a PE holds and must give back before it finalizes.
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
pub enum LiveKind {
    /// Symmetric memory.
    Buffer(AllocId),
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

    /// My number among all PEs (`nvshmem_my_pe`). Local.
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.my_pe as usize
    }

    /// The number of PEs (`nvshmem_n_pes`). Local.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.n_pes as usize
    }

    /// The backend's name: `sim` or `nvshmem` (`nvshmem_info_get_name`). Local.
    pub fn name(&self) -> &'static str {
        B::NAME
    }

    /// Versions of specification, API and library (`nvshmem_info_get_version`). Local.
    pub fn version(&self) -> Version {
        self.backend.version()
    }

    /// How far initialization has come (`nvshmemx_init_status`). Local.
    pub fn init_status(&self) -> InitStatus {
        self.backend.init_status()
    }

    /// Which threads may call (`nvshmem_query_thread`). Local.
    pub fn query_thread(&self) -> ThreadSupport {
        self.backend.thread_support()
    }

    /// What of the optional families works here. Local.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// if pe.capabilities().host_atomics.is_available() {
    ///     let counter = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.host().atomic_inc(counter.at(0), 0)?;
    ///     pe.free(counter)?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// What only this backend has, for programs that are written for it: the one on GPUs has device pointers and
    /// foreign streams (`onesided_nvshmem::DeviceAccess`), the simulator has nothing. Local.
    ///
    /// ```
    /// # use onesided::{Backend, Pe};
    /// fn simulated(pe: &Pe<impl for<'a> Backend<Extension<'a> = ()>>) {
    ///     let () = pe.extension(); // nothing
    /// }
    /// ```
    #[inline]
    pub fn extension(&self) -> B::Extension<'_> {
        self.backend.extension()
    }

    /// The verbs, issued by the host: each returns when its contract says so.
    #[inline]
    pub fn host(&self) -> Host<'_, B> {
        Host::new(self)
    }

    /// The verbs, enqueued on `stream`: each returns at once and runs in stream order, concurrently with the host.
    #[inline]
    pub fn on<'a>(&'a self, stream: &'a Stream<B>) -> Issue<'a, B> {
        Issue::new(self, Some(stream))
    }

    /// Ends this PE (`nvshmem_finalize`): completes what is in flight, and reports what was not given back.
    ///
    /// # Collective
    /// Over all PEs. Whatever runs a program calls it; a program only does so when it initialized itself.
    ///
    /// # Errors
    /// Those of the backend. Buffers and teams that are still alive are no error here: the simulator ends the run
    /// with a leak verdict, hardware prints them and frees them in allocation order.
    #[track_caller]
    pub fn finalize(self) -> Result<()> {
        self.finalize_at(At::caller())
    }

    /// As [`Pe::finalize`], for what runs programs: `at` is the place that reports name.
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
    /// One PE's call is enough. Never returns.
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
