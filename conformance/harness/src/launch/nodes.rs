//! [`Node`]: a node of a cluster, made of namespaces of this host.
//!
//! NVSHMEM tells nodes apart by their host names, and the PEs of a node share memory in `/dev/shm`. So a node is a host name and a
//! `/dev/shm` of its own. Both last as long as a process is in the node. The first is the *keeper*, a shell that waits for the end
//! of its input. Only this process has the other end of that pipe. When this process ends in any way, the keeper ends, and
//! the node with its last PE. PEs enter by `nsenter` and keep the process number that they were started with, so the job's process
//! group and its ends stay what they are. The network, the process numbers and the IPC objects are those of the host: UCX's shared memory,
//! by which libnvshmem 3.4.5 reaches PEs of other nodes, does not cross an IPC namespace.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::group::apart;
use super::programs::{is_program, on_path};

/// What a keeper does: makes `/dev/shm` and the host name, and says that they are made. A system without the program
/// `hostname` may let the name be written.
const KEEPER: &str = "trap '' HUP INT QUIT TERM\n\
    mount -t tmpfs -o mode=1777 none /dev/shm || exit 1\n\
    hostname \"$1\" 2>/dev/null || echo \"$1\" >/proc/sys/kernel/hostname\n\
    [ \"$(uname -n)\" = \"$1\" ] || { echo \"its host name cannot be set\" >&2; exit 1; }\n\
    echo ready\nread -r _";
/// What enters a node: goes back to the folder of this process, because `nsenter` leaves it at the root, and becomes the
/// program.
const ENTER: &str = "cd -- \"$1\" && shift && exec \"$@\"";
const LIMIT: Duration = Duration::from_secs(20);

/// A node. It is there until the last clone is dropped and the last process in it has ended.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    keeper: Arc<Keeper>,
    /// What is set in the environment of each PE of this node.
    pub environment: Vec<(String, OsString)>,
}

#[derive(Debug)]
struct Keeper {
    process: Child,
    rights: Rights,
}

/// By which right the node was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    /// `CAP_SYS_ADMIN`, which root has.
    Admin,
    /// Those over a user namespace of its own.
    UserNamespace,
}

impl Node {
    /// Makes so many nodes, `node0` and so on.
    ///
    /// # Errors
    /// A sentence that says which right or program is missing. No node is left behind then.
    pub fn make(number: usize) -> Result<Vec<Node>, String> {
        for tool in ["unshare", "nsenter"] {
            if on_path(tool, &[]).next().is_none() {
                return Err(format!("nodes need the program {tool}: install util-linux"));
            }
        }
        let rights = match Keeper::start("node0", Rights::Admin) {
            Ok(_) => Rights::Admin,
            Err(as_admin) => match Keeper::start("node0", Rights::UserNamespace) {
                Ok(_) => Rights::UserNamespace,
                Err(as_user) => return Err(refused(&as_admin, &as_user)),
            },
        };
        let make = |node: usize| {
            let name = format!("node{node}");
            let keeper = Keeper::start(&name, rights).map_err(|why| format!("{name} cannot be made: {why}"))?;
            Ok(Node { name, keeper: Arc::new(keeper), environment: Vec::new() })
        };
        (0..number).map(make).collect()
    }

    /// Its host name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that becomes this program in the node, in the folder of this process.
    pub(super) fn enter(&self, program: &OsStr, arguments: impl IntoIterator<Item = OsString>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.keeper.process.id().to_string()]);
        if self.keeper.rights == Rights::UserNamespace {
            command.args(["--user", "--preserve-credentials"]);
        }
        let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
        command.args(["--uts", "--mount", "--", "sh", "-c", ENTER, "sh"]).arg(folder);
        command.arg(program).args(arguments);
        command
    }
}

impl Keeper {
    fn start(name: &str, rights: Rights) -> Result<Keeper, String> {
        let mut unshare = Command::new("unshare");
        if rights == Rights::UserNamespace {
            unshare.args(["--user", "--map-root-user"]);
        }
        unshare.args(["--uts", "--mount", "sh", "-c", KEEPER, "sh", name]);
        unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = apart(&mut unshare)?.spawn().map_err(|why| format!("unshare cannot be started: {why}"))?;
        let out = process.stdout.take();
        let mut keeper = Keeper { process, rights }; // from now on dropping it ends it
        if out.is_some_and(says_ready) {
            return Ok(keeper);
        }
        let _ = keeper.process.kill();
        let mut why = String::new();
        let _ = keeper.process.stderr.take().map(|mut err| err.read_to_string(&mut why));
        let why = why.lines().next().unwrap_or("unshare did not say why").to_string();
        Err(why)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.process.wait(); // closes the pipe first
    }
}

/// Waits until the keeper says that the node is made. `false` if it ends or takes too long.
fn says_ready(out: ChildStdout) -> bool {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(out).read_line(&mut line);
        sender.send(line) // fails if nobody waits any more
    });
    receiver.recv_timeout(LIMIT).is_ok_and(|line| line.trim() == "ready")
}

/// Which right is missing, and how to get it.
fn refused(as_admin: &str, as_user: &str) -> String {
    let setting = |file: &str| fs::read_to_string(Path::new("/proc/sys").join(file)).unwrap_or_default();
    let is = |file: &str, value: &str| setting(file).trim() == value;
    let remedy = if is("user/max_user_namespaces", "0") {
        "user namespaces are switched off (user.max_user_namespaces is 0)"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "user namespaces are for root only (kernel.unprivileged_userns_clone is 0)"
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)"
    } else {
        "in a container, it must be started with --cap-add SYS_ADMIN, or --privileged"
    };
    format!(
        "nodes of namespaces cannot be made: {as_admin}; in a user namespace: {as_user}; it takes root (CAP_SYS_ADMIN) or a \
         user namespace, and {remedy}"
    )
}

/// Why nodes cannot be made here; `None` if they can. Makes a node to find out, and ends it.
#[doc(hidden)]
pub fn no_nodes() -> Option<String> {
    Node::make(1).err()
}

/// Checks that a program exists before it is started in a node. Otherwise only the shell in the node would notice that it is
/// missing.
pub(super) fn check_program(program: &Path) -> io::Result<()> {
    let is_there = if program.components().count() > 1 {
        is_program(program)
    } else {
        program.to_str().is_some_and(|name| on_path(name, &[]).next().is_some())
    };
    if is_there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Two nodes, or `None`, with a line that says why, where they cannot be made.
    fn two() -> Option<[Node; 2]> {
        match Node::make(2) {
            Ok(nodes) => Some(nodes.try_into().unwrap()),
            Err(why) => {
                println!("not run: {why}");
                None
            }
        }
    }

    fn said(node: &Node, script: &str) -> String {
        let output = node.enter(OsStr::new("sh"), ["-c".into(), script.into()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    }

    #[test]
    fn nodes_have_names_and_shared_memory_of_their_own() {
        let Some([one, other]) = two() else { return };
        assert_eq!((said(&one, "uname -n"), said(&other, "uname -n")), ("node0".to_string(), "node1".to_string()));
        assert_eq!((one.name(), other.name()), ("node0", "node1"));
        said(&one, "echo slab >/dev/shm/onesided-test");
        assert_eq!(said(&one, "cat /dev/shm/onesided-test"), "slab"); // another PE of the node
        assert_eq!(said(&other, "ls /dev/shm"), "");
        assert!(!Path::new("/dev/shm/onesided-test").exists());
        // The folder and the process numbers are the host's.
        assert_eq!(Path::new(&said(&one, "pwd")), std::env::current_dir().unwrap());
        let mut child = one.enter(OsStr::new("sh"), ["-c".into(), "echo $$".into()]);
        let child = child.stdout(Stdio::piped()).spawn().unwrap();
        let number = child.id().to_string();
        assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim(), number);
    }

    #[test]
    fn a_node_is_gone_with_its_last_clone_or_when_this_process_is_killed() {
        let Some([mut one, other]) = two() else { return };
        let space = |process: u32| fs::read_link(format!("/proc/{process}/ns/mnt"));
        let (host, process) = (space(std::process::id()).unwrap(), other.keeper.process.id());
        assert_ne!(space(process).unwrap(), host);
        let clone = other.clone();
        drop(other);
        assert_ne!(space(process).unwrap(), host);
        drop(clone);
        assert!(space(process).is_err());
        // The system closes the pipe of a process that is killed.
        let keeper = Arc::get_mut(&mut one.keeper).unwrap();
        drop(keeper.process.stdin.take());
        assert!(keeper.process.wait().unwrap().code().is_some());
    }

    #[test]
    fn what_is_missing_is_named() {
        let why = refused("unshare: unshare failed: Operation not permitted", "unshare: write failed");
        assert!(why.contains("failed: Operation not permitted; in a user namespace: unshare: write failed"), "{why}");
        assert!(why.contains("root (CAP_SYS_ADMIN)"), "{why}");
        assert!(check_program(Path::new("no-such-program")).is_err() && check_program(Path::new("sh")).is_ok());
        assert!(check_program(Path::new("./no/such")).is_err() && check_program(Path::new("/bin/sh")).is_ok());
    }
}
