//! Runs programs to their end, with a limit of time.

use std::process::Command;
use std::time::{Duration, Instant};

use onesided_harness::launch::{Event, PeStatus, Running};

/// How often to check whether the time is up.
const TICK: Duration = Duration::from_millis(200);
/// How long programs have to end after they were asked to. They may have to end daemons first.
const GRACE: Duration = Duration::from_secs(10);
/// How many bytes of what was printed are kept from the beginning, and how many from the end.
const KEPT: usize = 2 << 20;

/// How programs ended that ran together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The status of the last failed one, in the order of the commands; 0 if none failed. `None` if the time was up.
    pub(crate) status: Option<i32>,
    /// What they printed to both of their outputs.
    pub(crate) printed: String,
    /// The time from the start to the end of the last one.
    pub(crate) took: Duration,
}

/// Runs these commands, all at the same time. When the time is up, or after Ctrl-C or SIGTERM, ends them and the processes that
/// they started.
///
/// # Errors
/// What cannot be started, and why.
pub(crate) fn run(commands: impl IntoIterator<Item = Command>, limit: Duration) -> Result<Ended, String> {
    let start = Instant::now();
    let mut running = Running::start(commands)?;
    running.set_grace(GRACE);
    let mut printed = Printed::default();
    let mut is_late = false;
    loop {
        if !is_late && start.elapsed() >= limit {
            is_late = true;
            running.kill();
        }
        match running.next(TICK.min(limit.saturating_sub(start.elapsed())).max(Duration::from_millis(1))) {
            Event::Line { text, .. } => printed.line(&text),
            Event::Ended { .. } | Event::Stuck { .. } | Event::Quiet => {}
            Event::AllEnded => break,
        }
    }
    let failed = |status: &Option<PeStatus>| match status {
        Some(status) => Some(status.code()).filter(|code| *code != 0),
        None => Some(128 + 9), // it was killed, and is still there
    };
    let status = running.statuses().iter().filter_map(failed).next_back().unwrap_or(0);
    let status = Some(status).filter(|_| !is_late);
    Ok(Ended { status, printed: printed.text(), took: start.elapsed() })
}

/// The printed text. If it is very long, its middle is left out.
#[derive(Default)]
struct Printed {
    beginning: String,
    end: String,
    is_cut: bool,
}

impl Printed {
    fn line(&mut self, text: &str) {
        let kept = if self.beginning.len() < KEPT { &mut self.beginning } else { &mut self.end };
        kept.push_str(text);
        kept.push('\n');
        if self.end.len() > 2 * KEPT {
            let line = self.end[self.end.ceil_char_boundary(KEPT)..].find('\n').map_or(0, |at| at + 1);
            self.end.drain(..self.end.ceil_char_boundary(KEPT) + line);
            self.is_cut = true;
        }
    }

    fn text(self) -> String {
        let cut = if self.is_cut { "[much more was printed here]\n" } else { "" };
        self.beginning + cut + &self.end
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_and_the_status_of_the_last_that_failed_are_known() {
        let ended = run([shell("echo one; echo two >&2; exit 3"), shell("exit 0")], LONG).unwrap();
        let mut lines: Vec<&str> = ended.printed.lines().collect();
        lines.sort_unstable();
        assert_eq!((lines, ended.status), (vec!["one", "two"], Some(3)));
        assert_eq!(run([shell("exit 3"), shell("kill -9 $$")], LONG).unwrap().status, Some(137));
        assert_eq!(run([shell("exit 0")], LONG).unwrap().status, Some(0));
    }

    #[test]
    fn what_takes_too_long_is_ended_with_what_it_started() {
        let ended = run([shell("echo begins; sleep 300 & sleep 300")], Duration::from_millis(300)).unwrap();
        assert_eq!((ended.status, ended.printed.as_str()), (None, "begins\n"));
        assert!(ended.took < LONG);
    }

    #[test]
    fn a_program_that_is_absent_is_an_error() {
        let why = run([Command::new("/no/such/program")], LONG).unwrap_err();
        assert!(why.starts_with("/no/such/program cannot be started: "), "{why}");
    }

    #[test]
    fn of_very_much_the_beginning_and_the_end_are_kept() {
        let mut printed = Printed::default();
        for number in 0..1_000_000 {
            printed.line(&format!("line {number} ä"));
        }
        let text = printed.text();
        assert!(text.len() < 4 * KEPT && text.starts_with("line 0 ä\nline 1 ä\n"), "{}", text.len());
        assert!(
            text.ends_with("line 999998 ä\nline 999999 ä\n") && text.contains("\n[much more was printed here]\nline ")
        );
    }
}
