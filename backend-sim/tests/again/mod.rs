//! A test that starts itself once more, as a process of its own, in which its PEs do what ends a process.

use std::env;
use std::process::{Command, Stdio};

/// Set in such processes.
const VARIABLE: &str = "ONESIDED_TEST_AGAIN";

/// Whether this is such a process.
pub(crate) fn is_again() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The test of this name, once more.
pub(crate) fn again(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(VARIABLE, "1").stdout(Stdio::null());
    command
}
