//! When CUDA loads kernels: with the library, not at their first launch.
//!
//! By default CUDA loads a kernel at its first launch, and loading may wait for everything that is enqueued. A program would hang
//! if it enqueued its first collective behind a wait for something that it does later. Nothing in NVSHMEM's model explains
//! such a hang. CUDA reads the variable when it is initialized, so it is set where processes begin.

use std::env;
use std::io;
use std::process::Command;

/// CUDA's variable, and what it is set to.
pub const KERNELS_EARLY: (&str, &str) = (VARIABLE, EARLY);
const VARIABLE: &str = "CUDA_MODULE_LOADING";
const EARLY: &str = "EAGER";

/// Sets it for the process that `command` starts, unless the user has set it.
pub fn load_kernels_early(command: &mut Command) {
    if env::var_os(VARIABLE).is_none() {
        command.env(VARIABLE, EARLY);
    }
}

/// Starts this process anew with the variable set, unless it is set. Call this first: only the process's number, its
/// environment and its arguments survive.
pub fn restart_to_load_kernels_early() {
    if env::var_os(VARIABLE).is_some() {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut command = Command::new(program);
        command.args(env::args_os().skip(1)).env(VARIABLE, EARLY);
        let _ = replace(&mut command); // if that fails, kernels are loaded later
    }
}

/// Replaces this process. Returns only the error, if that fails.
#[cfg(unix)]
pub fn replace(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

#[cfg(not(unix))]
pub fn replace(_command: &mut Command) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
