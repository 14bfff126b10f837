//! [`World`]: MPI's world communicator, for the two ways to initialize that go through MPI.
//!
//! Only with the feature `mpi`. It links MPI, so a program that is built with it starts only on machines that have `libmpi`.
//!
//! Everything here has a limit, though MPI itself knows none:
//!
//! * `MPI_Init` and `MPI_Finalize` wait for all processes. They run on a thread of their own, which is left behind if it does
//!   not answer. Both run on the same thread, because MPI must be finalized by the thread that initialized it.
//! * Data is sent by nonblocking collectives, which are tested until the time is up.
//!
//! After a failure MPI is not finalized, because that would wait for processes that may never come. The process must end.
//! `mpirun` then ends the job, because a process left without `MPI_Finalize`.

use std::ffi::c_void;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::request::{Request, StaticScope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Root};

use crate::problem::Problem;

/// How long to sleep between two tests of a request.
const PAUSE: Duration = Duration::from_micros(200);

/// Variables by which launchers tell the number of processes. If one of them says more than one, but MPI's world has one
/// process, this MPI does not understand the launcher.
const SIZES: [&str; 5] =
    ["ONESIDED_PES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// MPI's world. Whoever holds one may use MPI. The last one that is dropped finalizes MPI, if we initialized it.
///
/// MPI cannot be started twice, so a process keeps its `World` as long as it needs MPI. NVSHMEM must be finalized before the
/// `World` is dropped.
#[derive(Debug)]
pub(crate) struct World {
    /// Leaked, because its address is passed on, also to a thread that may be left behind. It has a few bytes.
    communicator: &'static <SimpleCommunicator as AsRaw>::Raw,
    rank: usize,
    n_pes: usize,
    local_rank: usize,
    limit: Duration,
    /// Absent if the application initialized MPI, and so finalizes it.
    ours: Option<Arc<Ours>>,
}

/// MPI, initialized by us.
#[derive(Debug)]
struct Ours {
    /// Dropped to let the thread finalize MPI.
    leave: Option<Sender<()>>,
    thread: JoinHandle<()>,
    limit: Duration,
    /// Whether something failed, so that MPI is left as it is.
    abandoned: AtomicBool,
}

/// What we initialized, for a second [`World`] in the same process.
static OURS: Mutex<Weak<Ours>> = Mutex::new(Weak::new());

impl World {
    /// Initializes MPI, unless that was done already, and asks who this process is. Collective over all processes of the job.
    /// It waits for them for `limit`, which is also the limit of everything that follows.
    ///
    /// Without `mpirun`, the world has one process.
    pub(crate) fn join(limit: Duration) -> Result<World, Problem> {
        let deadline = Instant::now() + limit;
        let mut started = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        if mpi::is_finalized() {
            return Err(failed("MPI was finalized in this process, and cannot be started again".to_string()));
        }
        let ours = match started.upgrade() {
            Some(ours) => Some(ours),
            None if mpi::is_initialized() => None,
            None => Some(initialize(limit)?),
        };
        *started = ours.as_ref().map_or_else(Weak::new, Arc::downgrade);
        drop(started);

        let world = SimpleCommunicator::world();
        let [rank, n_pes] = [world.rank(), world.size()].map(|n| n as usize); // MPI's are never negative
        let communicator = Box::leak(Box::new(world.as_raw()));
        let mut joined = World { communicator, rank, n_pes, local_rank: 0, limit, ours };
        alone_by_mistake(n_pes).map_or(Ok(()), Err)?;
        joined.local_rank = joined.learn_local_rank(deadline)?;
        Ok(joined)
    }

    /// This process's number in the world.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes the world has.
    pub(crate) fn n_pes(&self) -> usize {
        self.n_pes
    }

    /// How many processes of a lower rank run on this host.
    pub(crate) fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Gives rank 0's id to all others. Collective over all processes of the job.
    pub(crate) fn broadcast(&self, id: &mut [u8; 128]) -> Result<(), Problem> {
        let buffer = Box::leak(Box::new(*id));
        let request =
            SimpleCommunicator::world().process_at_rank(0).immediate_broadcast_into(StaticScope, &mut buffer[..]);
        let received = self.wait(request, "MPI_Ibcast, in which every process of the job must take part", None)?;
        id.copy_from_slice(received);
        Ok(())
    }

    /// Whether a thread may call MPI that is left behind if the call does not return. It may if we initialized MPI, because we
    /// make no other call then. An application that initialized MPI may make other calls, so MPI must allow several threads.
    pub(crate) fn takes_calls_of_any_thread(&self) -> bool {
        self.ours.is_some() || mpi::environment::threading_support() == Threading::Multiple
    }

    /// The address of an `MPI_Comm`, for `nvshmemx_set_attr_mpi_comm_args`.
    pub(crate) fn communicator(&self) -> *mut c_void {
        std::ptr::from_ref(self.communicator).cast_mut().cast()
    }

    /// Leaves MPI as it is, for a process that ends because something failed. `MPI_Finalize` would wait for the other
    /// processes, which may never come, or may wait for this process elsewhere. `mpirun` ends them when this process ends.
    /// MPI that the application initialized is not touched.
    pub(crate) fn abandon(&self) {
        if let Some(ours) = &self.ours {
            ours.abandoned.store(true, Ordering::Relaxed);
        }
    }

    /// Counts the lower ranks that give the same name to the machine that they run on.
    fn learn_local_rank(&self, deadline: Instant) -> Result<usize, Problem> {
        let host = mpi::environment::processor_name().map_err(|_| failed("the host's name is not text".to_string()))?;
        let mut hasher = DefaultHasher::new(); // the same on all hosts: its keys are fixed
        host.hash(&mut hasher);
        let mine: &[u64] = Box::leak(Box::new([hasher.finish()]));
        let all: &mut [u64] = Box::leak(vec![0; self.n_pes].into());
        let request = SimpleCommunicator::world().immediate_all_gather_into(StaticScope, mine, all);
        let call = "MPI_Iallgather, in which every process of the job must take part";
        let hosts = self.wait(request, call, Some(deadline))?;
        Ok(hosts[..self.rank].iter().filter(|host| **host == mine[0]).count())
    }

    /// Tests `request` until it is complete, or until [`World::limit`] if no other deadline is given.
    ///
    /// Callers leak their buffers of a few bytes, because MPI may still write to a request that was given up.
    fn wait<D: ?Sized>(
        &self,
        mut request: Request<'static, D, StaticScope>,
        call: &str,
        deadline: Option<Instant>,
    ) -> Result<&'static D, Problem> {
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.limit);
        loop {
            request = match request.test_with_data() {
                Ok((_, data)) => return Ok(data),
                Err(pending) => pending,
            };
            if Instant::now() >= deadline {
                mem::forget(request); // its destructor panics
                self.abandon();
                return Err(Problem::NoAnswer { call: call.to_string(), limit: self.limit });
            }
            thread::sleep(PAUSE);
        }
    }
}

/// `MPI_Init_thread`, on a thread that stays to finalize.
///
/// Other threads call MPI too, one at a time. MPI calls this level "serialized".
fn initialize(limit: Duration) -> Result<Arc<Ours>, Problem> {
    let (ready, level) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    let thread = thread::Builder::new().name("mpi".to_string()).spawn(move || {
        let Some((universe, level)) = mpi::initialize_with_threading(Threading::Serialized) else {
            return; // another thread was faster; `ready` is dropped, which says so
        };
        let _ = ready.send(level); // nobody waits any more: then nobody will ever ask for the end either
        let _ = left.recv(); // an error is what is waited for: the other end is dropped
        drop(universe);
    });
    let thread = thread.map_err(|error| failed(format!("no thread for it: {error}")))?;
    let level = level.recv_timeout(limit);
    let ours = Ours { leave: Some(leave), thread, limit, abandoned: AtomicBool::new(level.is_err()) };
    match level {
        Ok(level) if level >= Threading::Serialized => Ok(Arc::new(ours)),
        Ok(level) => Err(failed(format!("this MPI supports threads only as {level:?}; Serialized is needed"))),
        Err(RecvTimeoutError::Timeout) => {
            Err(Problem::NoAnswer { call: "MPI_Init, to which every process of the job must come".to_string(), limit })
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(failed("another thread initialized MPI at the same time; initialize PEs after that".to_string()))
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let leave = self.leave.take();
        if *self.abandoned.get_mut() || thread::panicking() {
            mem::forget(leave); // the thread waits for the end of the process
            return;
        }
        drop(leave);
        let deadline = Instant::now() + self.limit;
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
    }
}

/// The problem of a launcher that speaks of more processes than MPI knows.
fn alone_by_mistake(n_pes: usize) -> Option<Problem> {
    let said = |name: &str| std::env::var(name).ok()?.trim().parse::<usize>().ok();
    let (name, said) = SIZES.into_iter().filter_map(|name| Some((name, said(name)?))).find(|(_, n)| *n > 1)?;
    (n_pes == 1).then(|| {
        failed(format!(
            "MPI knows only this process, but {name} is {said}: its launcher does not belong to this program's MPI. \
             Use the mpirun of the MPI that the program was built with (under Slurm: srun --mpi=pmix), or initialize \
             by the launcher's environment"
        ))
    })
}

fn failed(why: String) -> Problem {
    Problem::Failed { call: "MPI_Init".to_string(), why }
}

#[cfg(test)]
#[path = "mpi_tests.rs"]
mod tests;
