//! The `onesided` command; see [`onesided_conformance::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    onesided_conformance::command::main()
}
