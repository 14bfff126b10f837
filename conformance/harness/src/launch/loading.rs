//! When CUDA loads kernels: with the library, not at their first launch.
//!
//! Left alone, CUDA loads a kernel when it is launched first, and to load one it may wait for everything that is enqueued. A
//! program whose first collective is enqueued behind a wait for something that this program does later would hang, which
//! nothing in NVSHMEM's model explains. CUDA reads the variable when it is initialized, so it is set where processes begin.

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

/// Starts this process anew with the variable set, unless it is set. To be called before there is anything to lose: all
/// that is left is the process's number, its environment and its arguments.
pub fn restart_to_load_kernels_early() {
    if env::var_os(VARIABLE).is_some() {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut command = Command::new(program);
        command.args(env::args_os().skip(1)).env(VARIABLE, EARLY);
        let _ = replace(&mut command); // where that cannot be done, kernels are loaded later
    }
}

/// Replaces this process. Returns only to say why it could not.
#[cfg(unix)]
pub fn replace(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

#[cfg(not(unix))]
pub fn replace(_command: &mut Command) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
