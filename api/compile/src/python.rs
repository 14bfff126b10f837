//! [`python_folders`]: where Python's packages lie. NVIDIA's libraries come in such packages.

use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(5);
/// More bytes than Python prints. The rest is not read.
const OUTPUT: u64 = 1 << 20;

/// The folders in which `python3` looks for packages. It imports none of them: only the file matters.
///
/// # Errors
/// There is no `python3`, or it does not answer within 5 s: in words.
#[doc(hidden)] // the backend for GPUs looks there too
pub fn python_folders() -> Result<Vec<PathBuf>, String> {
    let printed = output("python3", &["-c", "import sys; print('\\n'.join(sys.path))"], LIMIT)?;
    Ok(printed.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

/// Runs `program` and returns its standard output, if it ends well and in time. A program that does not is killed. Nobody waits for
/// what it leaves behind, which may hold its output open. (The crate `process_control` does: its limit of 0.2 s took 30 s then.)
fn output(program: &str, arguments: &[&str], limit: Duration) -> Result<String, String> {
    let deadline = Instant::now() + limit;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("no {program} on PATH"),
        _ => format!("{program} cannot be started: {error}"),
    })?;
    let stdout = child.stdout.take();
    let (done, printed) = mpsc::channel();
    let reader = thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.map(|pipe| pipe.take(OUTPUT).read_to_end(&mut bytes)); // what was read counts
        done.send(bytes) // fails if nobody waits any more
    });
    let printed = reader.ok().and_then(|_| printed.recv_timeout(limit).ok());
    let ended = poll(&mut child, if printed.is_some() { deadline } else { Instant::now() });
    if ended.is_none() {
        let _ = child.kill();
        let _ = thread::Builder::new().spawn(move || child.wait()); // no zombie, and no waiting for one
    }
    match (ended, printed) {
        (Some(true), Some(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        (Some(false), _) => Err(format!("{program} ended with an error")),
        _ => Err(format!("{program} does not answer within {} s", limit.as_secs_f64())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_this_machines_python_are_paths() {
        match python_folders() {
            Ok(folders) => assert!(folders.iter().any(|folder| folder.is_absolute()), "{folders:?}"),
            Err(why) => assert!(why.contains("python3"), "{why}"),
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_gives_its_output_or_is_an_error_that_names_it() {
        const LONG: Duration = Duration::from_secs(20);
        let shell = |script: &str, limit| output("/bin/sh", &["-c", script], limit);
        assert_eq!(shell("echo 1.2.3; echo noise >&2", LONG).unwrap(), "1.2.3\n");
        assert_eq!(shell("exit 3", LONG).unwrap_err(), "/bin/sh ended with an error");
        assert_eq!(output("no-such-program", &[], LONG).unwrap_err(), "no no-such-program on PATH");
        let started = Instant::now();
        // The second holds its output open through a grandchild after it has itself ended.
        for script in ["sleep 30", "sleep 30 & exit 0"] {
            let gave_up = shell(script, Duration::from_millis(200)).unwrap_err();
            assert_eq!(gave_up, "/bin/sh does not answer within 0.2 s");
        }
        assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    }
}
