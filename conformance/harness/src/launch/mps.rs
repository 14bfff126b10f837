//! [`Mps`]: CUDA's multi-process service, with which several PEs compute on one GPU at once.
//!
//! NVSHMEM needs it as soon as PEs share a GPU: without it most functions of the library end the process. This service has a
//! folder of its own. So it neither uses nor disturbs a service that runs on the machine already.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::group::apart;
use super::nodes::{Node, check_program};

/// The program that starts the service, and talks to it.
const CONTROL: &str = "nvidia-cuda-mps-control";
const ABSENT: &str = "nvidia-cuda-mps-control is not on PATH: install the utilities that belong to NVIDIA's driver \
                      (Ubuntu: nvidia-compute-utils-VERSION); in a container, start it with them mounted";
const LIMIT: Duration = Duration::from_secs(20);
/// The folder holds a Unix socket, whose path may have 107 bytes. The names in it have up to 30.
const LONGEST: usize = 60;

/// This shell ends the service within 25 seconds after its pipe to this process closes, also if this process is killed.
const KEEPER: &str =
    concat!("trap '' HUP INT QUIT TERM; read -r _\n", include_str!("end_mps.sh"), "rm -rf -- \"$folder\"");

/// A CUDA multi-process service of our own. Dropping it ends it.
#[derive(Debug)]
pub struct Mps {
    program: PathBuf,
    /// The node in which it runs; `None` for this host.
    node: Option<Node>,
    folder: TempDir,
    keeper: Child,
    visible: Visible,
}

/// The GPUs that the service offers. The service numbers them anew, so its clients must not choose among them again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Visible {
    /// `CUDA_VISIBLE_DEVICES` for the service; `None` for all.
    service: Option<String>,
    /// The same for its clients, in the service's numbers. A GPU has the number that it would have without a service.
    clients: Option<String>,
}

impl Mps {
    /// Starts the service, and makes sure that it answers. `devices` are the GPUs that PEs will use, as CUDA numbers them
    /// in this process; any GPU if it is empty.
    ///
    /// # Errors
    /// A sentence that says that the service is not installed, or what it said when it did not start.
    pub fn start(devices: &[u32]) -> Result<Mps, String> {
        Mps::start_with(Path::new(CONTROL), None, devices)
    }

    /// Starts the service in a node. Its clients are the PEs of that node: they share the node's `/dev/shm` with it.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_in(node: &Node, devices: &[u32]) -> Result<Mps, String> {
        // The node's own environment may grow later, and holds nothing that the service needs.
        Mps::start_with(Path::new(CONTROL), Some(node), devices)
    }

    fn start_with(program: &Path, node: Option<&Node>, devices: &[u32]) -> Result<Mps, String> {
        let temporary = env::temp_dir();
        let temporary = if temporary.as_os_str().len() > LONGEST { Path::new("/tmp") } else { &temporary };
        let folder = tempfile::Builder::new().prefix("mps-").tempdir_in(temporary);
        let folder = folder.map_err(|why| format!("no folder for the multi-process service: {why}"))?;
        let visible = Visible::new(env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(), devices);

        let script = ["-c".into(), KEEPER.into(), "sh".into(), program.into(), folder.path().into()];
        let mut keeper = command(node, Path::new("sh"), script);
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = apart(&mut keeper)?.spawn().map_err(|why| format!("sh cannot be started: {why}"))?;

        let mps = Mps { program: program.to_path_buf(), node: node.cloned(), folder, keeper, visible };
        mps.control(&["-d"], None, LIMIT)?;
        mps.control(&[], Some("get_server_list"), LIMIT)
            .map_err(|why| format!("the multi-process service was started and does not answer: {why}"))?;
        Ok(mps)
    }

    /// What a PE needs in its environment to use the service, if at most so many PEs share a GPU. Each PE may use that part
    /// of the GPU: NVSHMEM requires that the parts sum up to 100 % at most.
    pub fn environment(&self, pes_per_gpu: usize) -> Vec<(String, OsString)> {
        let part = (100 / pes_per_gpu.max(1)).max(1);
        let mut environment = directories(self.folder.path()).to_vec();
        environment.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE".to_string(), part.to_string().into()));
        environment
            .extend(self.visible.clients.iter().map(|list| ("CUDA_VISIBLE_DEVICES".to_string(), list.clone().into())));
        environment
    }

    /// Runs the control program and returns what it prints. What it starts in the background inherits its outputs, so these
    /// go to a file: a pipe would stay open.
    fn control(&self, arguments: &[&str], input: Option<&str>, limit: Duration) -> Result<String, String> {
        let (asked, said) = (self.folder.path().join("asked"), self.folder.path().join("said"));
        let failed = |why: &dyn std::fmt::Display| format!("{CONTROL}: {why}");
        let outputs = File::create(&said).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = outputs.map_err(|why| failed(&why))?;
        let stdin = match input {
            Some(input) => {
                fs::write(&asked, format!("{input}\n")).map_err(|why| failed(&why))?;
                File::open(&asked).map_err(|why| failed(&why))?.into()
            }
            None => Stdio::null(),
        };
        if check_program(&self.program).is_err() {
            return Err(ABSENT.to_string());
        }
        let mut command = command(self.node.as_ref(), &self.program, arguments.iter().map(OsString::from));
        command.envs(directories(self.folder.path())).stdin(stdin).stdout(out).stderr(err);
        if let Some(devices) = &self.visible.service {
            command.env("CUDA_VISIBLE_DEVICES", devices);
        }
        // In a group of its own, Ctrl-C does not reach the service: the PEs end first.
        let mut child = apart(&mut command)?.spawn().map_err(|why| failed(&why))?;
        let deadline = Instant::now() + limit;
        let status = loop {
            match child.try_wait().map_err(|why| failed(&why))? {
                Some(status) => break status,
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                None => {
                    let _ = child.kill();
                    let _ = child.wait(); // it was killed, so this ends
                    return Err(failed(&format!("no answer within {} s", limit.as_secs())));
                }
            }
        };
        let said = fs::read(&said).map_err(|why| failed(&why))?;
        let said = String::from_utf8_lossy(&said).trim().to_string();
        if status.success() { Ok(said) } else { Err(failed(&format!("{status}: {said}"))) }
    }
}

impl Drop for Mps {
    fn drop(&mut self) {
        let _ = self.keeper.wait(); // closes the pipe first
    }
}

/// What starts a program in a node, or on this host.
fn command(node: Option<&Node>, program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Command {
    match node {
        Some(node) => node.enter(program.as_os_str(), arguments),
        None => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    }
}

/// How the service and its clients find each other.
fn directories(folder: &Path) -> [(String, OsString); 2] {
    ["CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"].map(|name| (name.to_string(), folder.into()))
}

impl Visible {
    /// The GPUs for the service and for its clients, from the user's `CUDA_VISIBLE_DEVICES` and the GPUs wanted. The service
    /// gets all GPUs up to the last one wanted, in the user's order. So its numbers are the same as the user's.
    fn new(user: Option<&str>, devices: &[u32]) -> Visible {
        let users: Option<Vec<&str>> = user.map(|list| list.split(',').map(str::trim).collect());
        let last = devices.iter().max().map(|&last| last as usize + 1);
        let count = match (&users, last) {
            (Some(users), last) => last.unwrap_or(users.len()).min(users.len()),
            (None, Some(last)) => last,
            (None, None) => return Visible { service: None, clients: None },
        };
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        let numbers = numbers.join(",");
        let service = users.map_or_else(|| numbers.clone(), |users| users[..count].join(","));
        Visible { service: Some(service), clients: Some(numbers) }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A control program for tests: a daemon that only waits, ended by `quit` unless it is stubborn. It bears the program's
    /// name, as what a script starts by forking does.
    fn fake(folder: &Path, quits: bool) -> PathBuf {
        let program = folder.join(CONTROL);
        let quit = if quits { "kill $daemon" } else { "exit 1" };
        let script = format!(
            "#!/bin/sh\nfile=$CUDA_MPS_PIPE_DIRECTORY/{CONTROL}.pid\n\
             if [ \"$1\" = -d ]; then mkfifo $file.never; (read -r _ <>$file.never) & echo $! >$file; exit; fi\n\
             daemon=$(cat $file); read -r word\n\
             case $word in quit) {quit};; get_server_list) cat $file.servers 2>/dev/null; exit 0;; *) exit 1;; esac\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// Whether a process runs; a zombie of somebody else does not.
    fn runs(process: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, state)| !state.trim_start().starts_with('Z'))
    }

    /// Waits until a process has ended, for a while: the system takes its time to kill.
    fn has_ended(process: &str) -> bool {
        let deadline = Instant::now() + LIMIT;
        while runs(process) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        !runs(process)
    }

    #[test]
    fn a_service_is_started_used_and_ended() {
        for quits in [true, false] {
            let place = tempfile::tempdir().unwrap();
            let mps = Mps::start_with(&fake(place.path(), quits), None, &[0]).unwrap();
            let folder = mps.folder.path().to_path_buf();
            let environment = mps.environment(3);
            assert_eq!(environment[0], ("CUDA_MPS_PIPE_DIRECTORY".to_string(), folder.clone().into()));
            assert_eq!(environment[2], ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE".to_string(), "33".into()));
            let daemon = fs::read_to_string(folder.join(format!("{CONTROL}.pid"))).unwrap();
            let daemon = daemon.trim();
            assert!(runs(daemon));
            // A server ended, and another program got its number.
            let mut other = Command::new("sleep").arg("300").spawn().unwrap();
            fs::write(folder.join(format!("{CONTROL}.pid.servers")), other.id().to_string()).unwrap();
            drop(mps);
            assert!(has_ended(daemon) && !folder.exists(), "quits: {quits}");
            assert!(other.try_wait().unwrap().is_none(), "quits: {quits}");
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_service_of_a_node_runs_in_that_node() {
        let node = match Node::make(1) {
            Ok(nodes) => nodes.into_iter().next().unwrap(),
            Err(why) => return println!("not run: {why}"),
        };
        let place = tempfile::tempdir().unwrap();
        let mps = Mps::start_with(&fake(place.path(), true), Some(&node), &[0]).unwrap();
        let daemon = fs::read_to_string(mps.folder.path().join(format!("{CONTROL}.pid"))).unwrap();
        let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).unwrap();
        assert_ne!(space(daemon.trim()), space("self"));
        drop(node); // the service keeps it
        assert!(runs(daemon.trim()));
        drop(mps);
        assert!(has_ended(daemon.trim()));
    }

    #[test]
    fn a_killed_process_leaves_no_stubborn_service() {
        let place = tempfile::tempdir().unwrap();
        let mut mps = Mps::start_with(&fake(place.path(), false), None, &[]).unwrap();
        let daemon = fs::read_to_string(mps.folder.path().join(format!("{CONTROL}.pid"))).unwrap();
        drop(mps.keeper.stdin.take()); // as the system does when a process is killed
        assert!(has_ended(daemon.trim()));
    }

    #[test]
    fn a_service_that_does_not_start_is_an_error_that_says_why() {
        let place = tempfile::tempdir().unwrap();
        let absent = Mps::start_with(&place.path().join(CONTROL), None, &[]).unwrap_err();
        assert!(absent.contains("nvidia-compute-utils"), "{absent}");
        let broken = fake(place.path(), true);
        fs::write(&broken, "#!/bin/sh\necho no GPU here >&2; exit 3\n").unwrap();
        let why = Mps::start_with(&broken, None, &[]).unwrap_err();
        assert!(why.contains("exit status: 3: no GPU here"), "{why}");
    }

    #[test]
    fn a_gpu_keeps_its_number() {
        let visible = |user, devices: &[u32]| {
            let Visible { service, clients } = Visible::new(user, devices);
            (service.unwrap_or_default(), clients.unwrap_or_default())
        };
        let both = |service: &str, clients: &str| (service.to_string(), clients.to_string());
        assert_eq!(visible(None, &[]), both("", ""));
        assert_eq!(visible(None, &[0]), both("0", "0"));
        assert_eq!(visible(None, &[2, 1]), both("0,1,2", "0,1,2"));
        assert_eq!(visible(Some("3,GPU-a, 5"), &[1]), both("3,GPU-a", "0,1"));
        assert_eq!(visible(Some("3,5"), &[]), both("3,5", "0,1"));
        assert_eq!(visible(Some("3,5"), &[7]), both("3,5", "0,1"));
    }
}
