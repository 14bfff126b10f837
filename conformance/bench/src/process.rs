//! Runs another program, with a limit of time.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What a program that succeeded left behind.
#[derive(Debug)]
pub(super) struct Finished {
    /// What it printed.
    pub(super) output: String,
    /// From start to end of the process.
    pub(super) time: Duration,
}

/// Runs a command to its end. One that takes longer than `limit` is killed; that, and failing in any other way, is an
/// error in words.
pub(super) fn run(command: &mut Command, limit: Duration) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    let errors = drain(child.stderr.take());
    let output = drain(child.stdout.take());
    // Both streams end when the process does: waiting for them needs no polling, which would blur the time.
    let printed = output.recv_timeout(limit);
    if printed.is_err() {
        let _ = child.kill(); // it may have ended by now
    }
    let status = child.wait().map_err(|error| format!("{name} is lost: {error}"))?;
    let time = start.elapsed();
    match printed {
        Err(_) => Err(format!("{name} took longer than {} s", limit.as_secs())),
        Ok(output) if status.success() => Ok(Finished { output, time }),
        Ok(_) => {
            let errors = errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
            let first = errors.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric));
            Err(format!("{name} ended with {status}: {}", first.unwrap_or("no message")))
        }
    }
}

/// Reads a stream to its end, on a thread of its own.
fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes); // what could be read is what there is
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned()); // nobody may wait any more
    });
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Finished, String> {
        run(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn output_and_time_of_a_program_that_ends() {
        let finished = shell("echo 42", Duration::from_secs(60)).unwrap();
        assert_eq!(finished.output, "42\n");
        assert!(finished.time > Duration::ZERO);
    }

    #[test]
    fn failures_say_why() {
        let limit = Duration::from_secs(60);
        assert_eq!(shell("echo ---; echo why >&2; exit 3", limit).unwrap_err(), "sh ended with exit status: 3: why");
        assert_eq!(shell("exec sleep 60", Duration::from_millis(10)).unwrap_err(), "sh took longer than 0 s");
        let absent = run(&mut Command::new("onesided-no-such-program"), limit).unwrap_err();
        assert!(absent.starts_with("onesided-no-such-program cannot be started"), "{absent}");
    }
}
