//! [`Step`]: a program to run, and what it must do.

use std::process::Command;
use std::time::Duration;

use crate::processes::Ended;

/// A step to run, or the reason why it is not run.
#[derive(Debug)]
pub(super) enum Task {
    Run(Step),
    NotRun { name: String, why: String },
}

/// One program, or several at the same time, with a time limit and what they must do.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) commands: Vec<Command>,
    pub(super) limit: Duration,
    /// The exit status that is right.
    pub(super) status: Expected,
    /// A line that they print must contain one of these. If there are none, they must print something.
    pub(super) says: &'static [&'static str],
    /// Whether the words of [`LACKS`] say that the machine lacks what the whole step needs. The suite says it of single cases.
    pub(super) may_lack: bool,
    /// What to show of their output if all is well.
    pub(super) shows: Shown,
    /// What starts the PEs.
    pub(super) launcher: Launcher,
}

/// The exit status that is right.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// One of these.
    One(&'static [i32]),
    /// Any status with which a program itself reports an error.
    Error,
}

/// What to show of the output of a step that is well.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    Nothing,
    /// So many of the last lines.
    Last(usize),
    Everything,
}

/// What starts the PEs of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Launcher {
    /// `onesided launch`, or a program that starts its own PEs.
    Ours,
    /// Something else. The PEs need a key, and a multi-process service if several share a GPU.
    Foreign { pes_per_gpu: usize },
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Failed,
    NotRun,
}

/// If a program fails and prints these words, the machine lacks something, and the step counts as not run. The flag says
/// whether a line must begin with the words.
const LACKS: [(&str, bool); 4] = [
    ("built without MPI", false),
    ("no Slurm: ", true),
    ("libnvshmem has stubs for them, and", false),
    ("the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM)", false),
];
/// The status of `timeout` and of our launchers when the time is up, and that of a program that was killed.
const ENDED_BY_OTHERS: [i32; 2] = [124, 137];

impl Step {
    /// A step whose program must end with status 0 and print something.
    pub(super) fn new(name: impl Into<String>, seconds: u64, commands: impl IntoIterator<Item = Command>) -> Step {
        Step {
            name: name.into(),
            commands: commands.into_iter().collect(),
            limit: Duration::from_secs(seconds),
            status: Expected::One(&[0]),
            says: &[],
            may_lack: true,
            shows: Shown::Nothing,
            launcher: Launcher::Ours,
        }
    }

    /// Whether this end is right, and why not.
    pub(super) fn judge(&self, ended: &Ended) -> (Outcome, Option<String>) {
        // A program that lacks something ends by itself.
        let failed = ended.status.is_some_and(|status| status != 0 && !ENDED_BY_OTHERS.contains(&status));
        if failed
            && self.may_lack
            && let Some(why) = ended.printed.lines().find_map(lacks)
        {
            return (Outcome::NotRun, Some(why.to_string()));
        }
        let wrong = self.wrong_status(ended.status).or_else(|| self.wrong_text(&ended.printed));
        (if wrong.is_some() { Outcome::Failed } else { Outcome::Ok }, wrong)
    }

    fn wrong_status(&self, status: Option<i32>) -> Option<String> {
        let Some(status) = status else { return Some(format!("no end within {} s", self.limit.as_secs())) };
        let is_right = match self.status {
            _ if ENDED_BY_OTHERS.contains(&status) => false,
            Expected::Error if status == 0 => return Some("no error".to_string()),
            Expected::Error => status < 126, // from there on a shell or a signal ended it
            Expected::One(right) => right.contains(&status),
        };
        (!is_right).then(|| format!("status {status}"))
    }

    fn wrong_text(&self, printed: &str) -> Option<String> {
        if self.says.is_empty() {
            return printed.trim().is_empty().then(|| "it printed nothing".to_string());
        }
        let is_said = printed.lines().any(|line| self.says.iter().any(|words| line.contains(words)));
        (!is_said).then(|| format!("nothing in what it printed matches '{}'", self.says.join("' or '")))
    }
}

/// A command as it would be typed, without its environment.
pub(super) fn typed(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What the machine lacks, if this line says so.
fn lacks(line: &str) -> Option<&str> {
    LACKS.iter().find_map(|&(words, begins_line)| {
        let at = line.find(words).filter(|&at| at == 0 || !begins_line)?;
        Some(&line[at..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(step: &Step, status: Option<i32>, printed: &str) -> (Outcome, String) {
        let (outcome, why) = step.judge(&Ended { status, printed: printed.to_string(), took: Duration::ZERO });
        (outcome, why.unwrap_or_default())
    }

    fn failed(why: &str) -> (Outcome, String) {
        (Outcome::Failed, why.to_string())
    }

    #[test]
    fn the_status_must_be_right_and_something_must_be_printed() {
        let well = (Outcome::Ok, String::new());
        let step = Step::new("works", 60, [Command::new("true")]);
        assert_eq!(judged(&step, Some(0), "words\n"), well);
        assert_eq!(judged(&step, Some(0), " \n"), failed("it printed nothing"));
        assert_eq!(judged(&step, Some(1), "words\n"), failed("status 1"));
        assert_eq!(judged(&step, None, "words\n"), failed("no end within 60 s"));
        let either = Step { status: Expected::One(&[0, 1]), ..Step::new("a bug", 60, [Command::new("true")]) };
        assert_eq!([judged(&either, Some(0), "x"), judged(&either, Some(1), "x")], [well.clone(), well]);
        assert_eq!(judged(&either, Some(2), "x"), failed("status 2"));
    }

    #[test]
    fn a_suite_that_fails_is_not_excused_by_cases_that_it_did_not_run() {
        let suite = Step { may_lack: false, ..Step::new("suite", 60, [Command::new("true")]) };
        let heap = "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which no memory of the GPU can join";
        let case = format!("not run  atomic/tickets  needs symmetric registration: {heap}\n");
        let summary = format!(
            "\n12 not run: needs symmetric registration: {heap}\nFAILED  order/mp\n30 passed, 1 failed, 12 not run\n"
        );
        for printed in [case, summary] {
            assert_eq!(judged(&suite, Some(1), &printed), failed("status 1"));
            assert_eq!(judged(&suite, None, &printed), failed("no end within 60 s"));
        }
    }

    #[test]
    fn what_did_not_end_by_itself_is_not_excused() {
        let example = Step::new("histogram", 60, [Command::new("true")]);
        let printed = "histogram: unsupported: libnvshmem has stubs for them, and the kernel cannot be made\n";
        assert_eq!(judged(&example, Some(2), printed).0, Outcome::NotRun);
        assert_eq!(judged(&example, None, printed), failed("no end within 60 s"));
        assert_eq!(judged(&example, Some(124), printed), failed("status 124"));
    }

    #[test]
    fn an_error_is_one_that_the_program_reports_itself() {
        let step =
            Step { status: Expected::Error, says: &["PE 1", "rank 1"], ..Step::new("x", 5, [Command::new("x")]) };
        for status in [1, 2, 3, 125] {
            assert_eq!(judged(&step, Some(status), "no\nwhere is rank 1?\n").0, Outcome::Ok, "{status}");
        }
        assert_eq!(judged(&step, Some(0), "PE 1"), failed("no error"));
        for status in [124, 126, 127, 137, 139] {
            assert_eq!(judged(&step, Some(status), "PE 1"), failed(&format!("status {status}")));
        }
        let said = "nothing in what it printed matches 'PE 1' or 'rank 1'";
        assert_eq!(judged(&step, Some(2), "PE 2\n"), failed(said));
    }

    #[test]
    fn what_a_machine_lacks_is_not_run() {
        let step = Step::new("x", 60, [Command::new("x")]);
        for (line, why) in [
            ("error: this program was built without MPI", "built without MPI"),
            ("no Slurm: only root can start one", "no Slurm: only root can start one"),
            (
                "PE 0 failed: the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which",
                "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which",
            ),
            ("refused: libnvshmem has stubs for them, and no", "libnvshmem has stubs for them, and no"),
        ] {
            let printed = format!("first\n{line}\nlast\n");
            assert_eq!(judged(&step, Some(2), &printed), (Outcome::NotRun, why.to_string()));
            assert_eq!(judged(&step, Some(0), &printed).0, Outcome::Ok);
        }
        assert_eq!(judged(&step, Some(2), "there is no Slurm: why?"), failed("status 2"));
    }

    #[test]
    fn commands_are_shown_without_their_environment() {
        let mut command = Command::new("ring");
        command.args(["--pes", "2"]).env("ONESIDED_KEY", "a secret");
        assert_eq!(typed(&command), "ring --pes 2");
    }
}
