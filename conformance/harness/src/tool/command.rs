//! What all command lines here have in common.

use std::fmt;
use std::process::ExitCode;

use clap::ValueEnum;

use super::say;
use crate::complain;

/// The status of wrong usage, and of a command that could not do its work.
const FAILED: u8 = 2;
/// The status of a search that found nothing wrong and is not complete.
pub const NOT_COMPLETE: u8 = 3;

/// Prints what clap says: an error, or a help text that was asked for.
pub fn refused(error: &clap::Error) -> ExitCode {
    match say::unless_gone(error.print()) {
        Err(why) if !error.use_stderr() => failed(format_args!("cannot write to standard output: {why}")),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED)),
    }
}

/// Says why a command could not do its work.
pub fn failed(why: impl fmt::Display) -> ExitCode {
    complain!("error: {why}");
    ExitCode::from(FAILED)
}

/// The exit status of a command: 2 if it failed, or if something that it printed was lost.
pub fn ended(done: Result<ExitCode, String>) -> ExitCode {
    match done.and_then(|status| say::all_printed().map(|()| status)) {
        Ok(status) => status,
        Err(why) => failed(why),
    }
}

/// Reads `-1` as the value of an option. The option then refuses it, by its name and its range.
pub fn let_values_be_negative(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values() && !arg.is_allow_hyphen_values_set();
        if takes_values { arg.allow_negative_numbers(true) } else { arg }
    })
}

/// Lets `-h` print a line for each option: one of these, by its id, or else the beginning of its help. `--help` prints all of that.
pub fn with_short_help(command: clap::Command, lines: &[(&str, &'static str)]) -> clap::Command {
    command.mut_args(|arg| {
        let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
        let line = lines.iter().find(|(id, _)| arg.get_id() == *id);
        let line = line.map_or_else(|| beginning(&help).to_string(), |(_, line)| line.to_string());
        let whole = arg.get_long_help().map_or(help, ToString::to_string);
        arg.help(line).long_help(whole)
    })
}

/// A help text until it explains itself; what is long until its first comma.
fn beginning(help: &str) -> &str {
    const LONG: usize = 60;
    let until = |ends: &[&str]| {
        let end = ends.iter().filter_map(|end| help.find(end)).min();
        &help[..end.unwrap_or(help.len())]
    };
    let ends = [". ", ": ", "; ", " [", " (", ", "];
    match until(&ends[..5]) {
        line if line.len() <= LONG => line,
        _ => until(&ends),
    }
}

/// Where programs and cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "each is run by code of its own")]
pub enum Backend {
    /// The deterministic simulator: all PEs in this process, no GPU needed
    Sim,
    /// libnvshmem on GPUs: one process for each PE
    Nvshmem,
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn a_line_of_help_ends_where_the_help_explains_itself() {
        for (help, line) in [
            ("Use N cores [default: all]. What is found does not depend on it", "Use N cores"),
            ("Draw that run to FILE: one page", "Draw that run to FILE"),
            (
                "Visit N schedules, the first of them in order; with --all less",
                "Visit N schedules, the first of them in order",
            ),
            ("Elements", "Elements"),
        ] {
            assert_eq!(beginning(help), line);
        }
        let long = "x".repeat(59);
        assert_eq!(beginning(&format!("{long}, and more of it: so much")), long);
        assert_eq!(beginning(&format!("{long}\u{e4}{long}")).len(), 120, "nothing to end at");
    }
}
