//! `cargo run --release -- --help` shows the options.

use std::process::ExitCode;

fn main() -> ExitCode {
    onesided_harness::main_with_options::<exchange::Exchange>()
}
