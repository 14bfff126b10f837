//! Time limits. A broken driver, a network file system or a stray script may never answer. Nothing here waits longer than its
//! limit.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::problem::Problem;

/// More bytes than any of the commands prints. The rest is not read.
const OUTPUT: u64 = 1 << 20;

/// Runs `work` on a thread of its own. If it does not end in time, the thread is left behind.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    call: &str,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (done, result) = mpsc::channel();
    let failed = |why: String| Problem::Failed { call: call.to_string(), why };
    let started = thread::Builder::new().spawn(move || {
        let _ = done.send(work()); // fails when nobody waits any more
    });
    if let Err(error) = started {
        return Err(failed(error.to_string()));
    }
    result.recv_timeout(limit).unwrap_or_else(|why| {
        Err(match why {
            RecvTimeoutError::Timeout => Problem::NoAnswer { call: call.to_string(), limit },
            RecvTimeoutError::Disconnected => failed("it panicked".to_string()),
        })
    })
}

/// Runs `work` in this thread, where nothing can interrupt it. If it does not end in time, prints the message and aborts the
/// process. It does not run exit handlers, which may wait for the same.
pub(crate) fn or_abort<T>(limit: Duration, message: String, work: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    let watch = thread::Builder::new().spawn(move || {
        if waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = writeln!(std::io::stderr(), "{message}"); // nobody may listen any more
            std::process::abort();
        }
    });
    let result = work();
    drop(done);
    let _ = watch.map(JoinHandle::join); // without a thread there is no limit
    result
}

/// Runs `program` and returns its standard output, if it ends well and in time. A program that does not is killed.
pub(crate) fn output(program: &Path, arguments: &[&str], limit: Duration) -> Result<String, Problem> {
    let call = program.display().to_string();
    let failed = |why: String| Problem::Failed { call: call.clone(), why };
    let deadline = Instant::now() + limit;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let stdout = child.stdout.take();
    let printed = within(limit, &call, move || {
        let mut bytes = Vec::new();
        let _ = stdout.map(|pipe| pipe.take(OUTPUT).read_to_end(&mut bytes)); // what was read counts
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    let ended = poll(&mut child, if printed.is_ok() { deadline } else { Instant::now() });
    if ended.is_none() {
        let _ = child.kill();
        let _ = thread::Builder::new().spawn(move || child.wait()); // no zombie, and no waiting for one
    }
    let printed = printed?;
    match ended {
        Some(true) => Ok(printed),
        Some(false) => Err(failed("it ended with an error".to_string())),
        None => Err(Problem::NoAnswer { call, limit }),
    }
}

/// Whether the child ended well; `None` if it still runs at the deadline.
fn poll(child: &mut Child, deadline: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// The first program of this name in the folders of `PATH`; `None` if there is none.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str, limit: Duration) -> Result<String, Problem> {
        output(Path::new("/bin/sh"), &["-c", script], limit)
    }

    #[test]
    fn a_command_gives_its_output() {
        assert_eq!(shell("echo 1.2.3; echo noise >&2", LONG).unwrap(), "1.2.3\n");
    }

    #[test]
    fn a_command_that_fails_or_is_missing_is_an_error_that_names_it() {
        assert!(shell("exit 3", LONG).unwrap_err().to_string().contains("/bin/sh"));
        let missing = output(Path::new("/no/such/program"), &[], LONG).unwrap_err();
        assert!(matches!(&missing, Problem::Failed { call, .. } if call == "/no/such/program"), "{missing:?}");
    }

    #[test]
    fn a_command_that_hangs_is_given_up() {
        let started = Instant::now();
        // The second holds its output open through a grandchild after it has itself ended.
        for script in ["sleep 30", "sleep 30 & exit 0"] {
            let gave_up = shell(script, SHORT).unwrap_err();
            assert_eq!(gave_up, Problem::NoAnswer { call: "/bin/sh".to_string(), limit: SHORT });
        }
        assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    }

    #[test]
    fn foreign_code_that_hangs_or_panics_is_an_error() {
        let hangs = within(SHORT, "hangs", || {
            thread::sleep(LONG);
            Ok(())
        });
        assert!(matches!(hangs, Err(Problem::NoAnswer { .. })));
        let panics = within(LONG, "panics", || -> Result<(), Problem> { panic!("on purpose") });
        assert!(panics.unwrap_err().to_string().contains("panicked"));
    }
}
