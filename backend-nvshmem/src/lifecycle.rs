//! What the library says about itself, and how a PE ends.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::process;
use std::rc::Rc;

use onesided::{At, InitStatus, Result, ThreadSupport, VERSION, Version};

use crate::mpi::World;
use crate::table::{Table, function};

/// What must live as long as the PE: MPI, if it brought the PEs together.
#[derive(Debug)]
pub(crate) struct Bootstrapped(pub(crate) Option<Rc<World>>);

impl Bootstrapped {
    /// Gives it up without its collective end, which other PEs may never reach.
    pub(crate) fn abandon(&self) {
        if let Some(world) = &self.0 {
            world.abandon();
        }
    }
}

/// Versions; safe before initialization.
pub(crate) fn version(table: &Table) -> Version {
    let [mut major, mut minor]: [c_int; 2] = [0; 2];
    if let Ok(get) = &table.functions.nvshmem_info_get_version {
        // SAFETY: writes two integers, and needs no initialization.
        unsafe { get(&mut major, &mut minor) };
    }
    Version {
        openshmem_spec: (major as u32, minor as u32),
        onesided: VERSION,
        library: format!("libnvshmem {}", table.version_text()),
    }
}

/// The library's status; safe before initialization. A number that this crate does not know counts as "not initialized".
pub(crate) fn init_status(table: &Table) -> InitStatus {
    let Ok(status) = &table.functions.nvshmemx_init_status else { return InitStatus::NotInitialized };
    // SAFETY: reads one variable, and needs no initialization.
    match unsafe { status() } {
        1 => InitStatus::Bootstrapped,
        2 => InitStatus::Initialized,
        3 => InitStatus::LimitedMpg,
        4 => InitStatus::FullMpg,
        _ => InitStatus::NotInitialized,
    }
}

/// The thread level; safe before initialization.
pub(crate) fn thread_support(table: &Table) -> ThreadSupport {
    let mut provided: c_int = 2;
    if let Ok(query) = &table.functions.nvshmem_query_thread {
        // SAFETY: writes one integer, and needs no initialization.
        unsafe { query(&mut provided) };
    }
    match provided {
        0 => ThreadSupport::Single,
        1 => ThreadSupport::Funneled,
        3 => ThreadSupport::Multiple,
        _ => ThreadSupport::Serialized,
    }
}

/// Ends the library. Collective. Call it only after an initialization that succeeded: otherwise it ends the process.
pub(crate) fn finalize(table: &Table, at: At) -> Result<()> {
    if init_status(table) < InitStatus::Initialized {
        return Ok(());
    }
    let finalize = function!(table, nvshmemx_hostlib_finalize, "finalize", at);
    // SAFETY: the library is initialized, and the `Pe` is consumed: nothing is issued after this.
    unsafe { finalize() };
    Ok(())
}

/// Ends the job.
pub(crate) fn global_exit(table: &Table, status: i32) -> ! {
    if let Ok(exit) = &table.functions.nvshmem_global_exit {
        // SAFETY: the library is initialized: there is a PE.
        unsafe { exit(status) };
    }
    process::exit(status)
}
