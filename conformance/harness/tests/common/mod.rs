//! Programs that are started by the test that holds them: it runs itself, with the program's name in the environment.

use std::env;
use std::process::{Command, Output};

use libtest_mimic::Failed;

/// Names the program to be run.
pub(crate) const VARIABLE: &str = "ONESIDED_TEST_PROGRAM";

/// The arguments in a command that replays a schedule.
pub(crate) fn arguments_of(command: &str) -> Vec<&str> {
    command[command.find("--replay ").expect("a schedule")..].split(' ').collect()
}

/// The tests of a file: functions of these names. A process that was started as a program runs that one, by `play`, and no test.
macro_rules! tests {
    ($play:ident; $($(#[$when:meta])* $test:ident,)*) => {
        fn main() -> ExitCode {
            if let Ok(name) = std::env::var(common::VARIABLE) {
                return $play(&name);
            }
            let trials = vec![$($(#[$when])* libtest_mimic::Trial::test(stringify!($test), $test)),*];
            libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
        }
    };
}
pub(crate) use tests;

/// What a program printed, and its exit status.
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program of that name.
pub(crate) fn run(name: &str, arguments: &[&str]) -> Said {
    let program = env::current_exe().expect("the path of this test");
    let output: Output = Command::new(program).env(VARIABLE, name).args(arguments).output().expect("it can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Said {
    /// The command that replays the finding.
    pub(crate) fn replay_line(&self) -> &str {
        self.out.split_once("\nReplay it: ").expect("a command").1.lines().next().expect("a line")
    }

    /// Its arguments. (What stands before them is how this test was called.)
    pub(crate) fn replay(&self) -> Vec<&str> {
        arguments_of(self.replay_line())
    }

    /// Whether it ended so, and printed that.
    pub(crate) fn expect(&self, status: i32, text: &str) -> std::result::Result<(), Failed> {
        if self.status == Some(status) && (self.out.contains(text) || self.err.contains(text)) {
            return Ok(());
        }
        let Said { status: found, out, err } = self;
        Err(format!("expected status {status} and {text:?}; found {found:?}, standard output and error:\n{out}\n{err}")
            .into())
    }
}

/// A program without options.
#[allow(unused_macros, reason = "each test binary uses its part")]
macro_rules! program {
    ($name:ident, $text:literal, $pes:literal, |$pe:ident| $body:block) => {
        struct $name;

        impl Program for $name {
            const NAME: &'static str = $text;
            const ABOUT: &'static str = "Goes wrong on purpose.";
            const CHECKS: &'static str = "it goes wrong";
            const PES: usize = $pes;

            fn run(&self, $pe: &Pe<impl Backend>) -> Result<String> $body
        }
    };
}
#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use program;
