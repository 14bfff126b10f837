//! Joining the other PEs: the calls that initialize the library, with a limit on their time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::CudaContext;
use onesided::UniqueId;

use crate::bindings::{
    NVSHMEMX_INIT_WITH_MPI_COMM, NVSHMEMX_INIT_WITH_UNIQUEID, nvshmemx_init_attr_t, nvshmemx_uniqueid_t,
};
use crate::layout;
use crate::library;
use crate::limit::{or_abort, within};
use crate::mpi::World;
use crate::plugin;
use crate::problem::Problem;
use crate::table::Table;

/// The library makes one unique id at a time.
static ALONE: Mutex<()> = Mutex::new(());

const INIT: &str = "nvshmemx_hostlib_init_attr";

/// Makes a unique id, within a limit: it opens the plugin and looks at the network. The library then listens for the
/// other PEs in a thread of this process.
pub(crate) fn unique_id(table: &Table) -> Result<UniqueId, Problem> {
    const CALL: &str = "nvshmemx_get_uniqueid";
    let get = *table.functions.nvshmemx_get_uniqueid.as_ref().map_err(|_| table.absent(CALL))?;
    plugin::check(plugin::UID, &table.file)?;
    within(library::LIMIT, CALL, move || {
        let mut id = layout::unique_id();
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: writes the id, and needs no initialization. No other thread is inside. The library stays open, also
        // for a thread that is left behind.
        let status = unsafe { get(&mut id) };
        if status != 0 {
            let why = format!(
                "it returned {status}: the library found no network interface to listen on; \
                 NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME names one (lo, where all PEs are on this host)"
            );
            return Err(Problem::Failed { call: CALL.to_string(), why });
        }
        Ok(UniqueId(to_bytes(id)))
    })
}

/// Whether these bytes can be an id that a library made.
pub(crate) fn is_unique_id(id: &UniqueId) -> bool {
    from_bytes(id.0).version == layout::unique_id().version
}

/// Joins the PEs that have the same id, within `limit`.
pub(crate) fn by_unique_id(
    table: &'static Table,
    context: Option<Arc<CudaContext>>,
    id: UniqueId,
    rank: usize,
    n_pes: usize,
    limit: Duration,
) -> Result<(), Problem> {
    const SET: &str = "nvshmemx_set_attr_uniqueid_args";
    let set = *table.functions.nvshmemx_set_attr_uniqueid_args.as_ref().map_err(|_| table.absent(SET))?;
    plugin::check(plugin::UID, &table.file)?;
    on_a_thread(context, limit, move || {
        let id = from_bytes(id.0);
        let mut attr = layout::init_attr(table.version);
        // SAFETY: the attributes are in the layout of this library's version. They hold a pointer to the id, which
        // stays where it is until the initialization below has returned.
        let status = unsafe { set(rank as c_int, n_pes as c_int, &id, &mut attr) };
        check(SET, status)?;
        init(table, NVSHMEMX_INIT_WITH_UNIQUEID, &mut attr)
    })
}

/// Joins the PEs of MPI's world, within `limit`: a process that came to MPI may still not come here.
///
/// If the application initialized MPI for calls of one thread at a time, this thread makes the calls. When the time is up, it can
/// then only end the process.
pub(crate) fn by_mpi(
    table: &'static Table,
    context: Option<Arc<CudaContext>>,
    world: &World,
    limit: Duration,
) -> Result<(), Problem> {
    const SET: &str = "nvshmemx_set_attr_mpi_comm_args";
    let set = *table.functions.nvshmemx_set_attr_mpi_comm_args.as_ref().map_err(|_| table.absent(SET))?;
    plugin::check(plugin::MPI, &table.file)?;
    let communicator = world.communicator() as usize;
    let join = move || {
        let mut attr = layout::init_attr(table.version);
        // SAFETY: the attributes are in the layout of this library's version; the address is that of a communicator, and
        // stays so. Nobody finalizes MPI meanwhile, except an application that was told that the time is up.
        let status = unsafe { set(communicator as *mut c_void, &mut attr) };
        check(SET, status)?;
        init(table, NVSHMEMX_INIT_WITH_MPI_COMM, &mut attr)
    };
    if world.takes_calls_of_any_thread() {
        return on_a_thread(context, limit, join);
    }
    let problem = Problem::NoAnswer { call: INIT.to_string(), limit };
    let (rank, n_pes) = (world.rank(), world.n_pes());
    or_abort(limit, format!("PE {rank} of {n_pes}: init: {problem}: {MISSING}"), join)
}

/// What it may mean if the others do not come.
pub(crate) const MISSING: &str = "a PE may be missing, or two may have the same rank; see whether every PE was \
                                  started, once and with its own rank";

/// Lets a thread wait for the other PEs, and gives up after `limit`. The thread is then left behind, inside the library.
fn on_a_thread(
    context: Option<Arc<CudaContext>>,
    limit: Duration,
    join: impl FnOnce() -> Result<(), Problem> + Send + 'static,
) -> Result<(), Problem> {
    within(limit, INIT, move || {
        // The library takes this thread's device.
        if let Some(Err(error)) = context.map(|context| context.bind_to_thread()) {
            return Err(Problem::Failed { call: "cuCtxSetCurrent".to_string(), why: error.to_string() });
        }
        join()
    })
}

fn check(call: &str, status: c_int) -> Result<(), Problem> {
    if status == 0 {
        return Ok(());
    }
    Err(Problem::Failed { call: call.to_string(), why: format!("it returned {status}") })
}

/// Initializes the library. Some versions return 0 even without a device.
fn init(table: &Table, flags: c_int, attr: &mut nvshmemx_init_attr_t) -> Result<(), Problem> {
    let init = table.functions.nvshmemx_hostlib_init_attr.as_ref().map_err(|_| table.absent(INIT))?;
    // SAFETY: the attributes are complete for these flags, and what they point to lives until this returns.
    check(INIT, unsafe { init(flags as u32, attr) })
}

fn to_bytes(id: nvshmemx_uniqueid_t) -> [u8; 128] {
    // SAFETY: both are 128 bytes without padding, and every byte is valid in both.
    unsafe { std::mem::transmute(id) }
}

fn from_bytes(bytes: [u8; 128]) -> nvshmemx_uniqueid_t {
    // SAFETY: as above.
    unsafe { std::mem::transmute(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_from_other_bytes() {
        let mut id = UniqueId(to_bytes(layout::unique_id()));
        assert!(is_unique_id(&id) && !is_unique_id(&UniqueId::EMPTY));
        id.0[127] = 9;
        assert_eq!(to_bytes(from_bytes(id.0)), id.0);
    }
}
