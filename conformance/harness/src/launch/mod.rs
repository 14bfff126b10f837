//! Starts the PEs of a program on this host, one process each, and reports what they print and how they end.
//!
//! | file | what it holds |
//! |---|---|
//! | `running.rs` | [`Running`]: the PEs from start to end, as a sequence of [`Event`]s |
//! | `group.rs` | the process group: whatever happens to this process, what is in the group ends with it |
//! | `port.rs` | where the PEs meet |
//! | `loading.rs` | makes CUDA load kernels before they are launched |
//! | `mps.rs` | [`Mps`]: CUDA's multi-process service, for several PEs on one GPU |
//! | `end_mps.sh` | ends such a service, also if this process was killed |
//! | `sharing.rs` | [`Services`]: the services of a job, on one node and on several |
//! | `nodes.rs` | [`Node`]: a node made of namespaces of this host |
//! | `fabric.rs` | [`Fabric`]: how PEs reach each other, and [`Rig`], what that needs |
//! | `ucx.rs`, `gdrcopy.rs` | the libraries of NVSHMEM's network transport |
//! | `flush.rs` | what keeps a quiet over UCX from hanging |
//! | `symptoms.rs` | what some lines of those libraries mean |
//!
//! A PE learns who it is from its environment: `ONESIDED_RANK`, `ONESIDED_PES`, `ONESIDED_LOCAL_RANK`,
//! `ONESIDED_RENDEZVOUS`, `ONESIDED_KEY` and, where it was assigned a GPU, `ONESIDED_DEVICE`. The key is random and only of
//! this job: PEs that meet prove to each other that they know it. `CUDA_MODULE_LOADING` is set to `EAGER` where it is not
//! set. [`Rig::environment`] has what a network needs. Everything else in the environment is the user's and stays as it is.
//!
//! A process may leave the job's group, under `setsid` or in a shell with job control. If it is a PE, it is killed all the same,
//! unless this process was killed first. If a PE started it, nobody ends it. A PE that the system cannot end, because a
//! driver holds on to it, is given up some seconds after it was killed; [`Event::Stuck`] names it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use onesided::count;
use onesided_nvshmem::Key;

mod fabric;
mod flush;
mod gdrcopy;
mod group;
mod loading;
mod mps;
mod nodes;
mod port;
mod programs;
mod running;
mod sharing;
mod symptoms;
mod ucx;

#[doc(hidden)]
pub use fabric::gdrcopy_in_words;
pub use fabric::{Fabric, FabricOptions, Rig};

#[doc(hidden)]
pub use loading::{KERNELS_EARLY, load_kernels_early, replace, restart_to_load_kernels_early};
pub use mps::Mps;
pub use nodes::Node;
#[doc(hidden)]
pub use nodes::no_nodes;
#[doc(hidden)]
pub use port::free_port;
#[doc(hidden)]
pub use programs::{is_program, on_path};
#[doc(hidden)]
pub use running::cannot_start;
pub use running::{Event, Running};
pub use sharing::{Services, Sharing, devices_on, most_on_one};
#[doc(hidden)]
pub use symptoms::meaning;
#[doc(hidden)]
pub use ucx::{has_plugin, ucx_in_words};

/// A program to be started once for each PE, all on this host.
///
/// ```
/// use onesided_harness::launch::{Event, Job};
/// use std::time::Duration;
///
/// let job = Job { arguments: vec!["-c".into(), "echo I am $ONESIDED_RANK".into()], ..Job::new(2, "sh") };
/// let mut running = job.start()?;
/// let mut lines = Vec::new();
/// loop {
///     match running.next(Duration::from_secs(10)) {
///         Event::Line { pe, text, .. } => lines.push((pe, text)),
///         Event::Ended { .. } | Event::Stuck { .. } => {}
///         Event::AllEnded => break,
///         Event::Quiet => running.kill(),
///     }
/// }
/// lines.sort();
/// assert_eq!(lines, [(0, "I am 0".to_string()), (1, "I am 1".to_string())]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    /// How many PEs, at least 1.
    pub pes: usize,
    /// The program: a path, or a name to be found on `PATH`.
    pub program: PathBuf,
    /// Its arguments, the same for each PE.
    pub arguments: Vec<OsString>,
    /// What is set in each PE's environment beside what this process has.
    pub environment: Vec<(String, OsString)>,
    /// The GPU of each PE, as CUDA numbers it; empty: the PEs choose themselves.
    pub devices: Vec<u32>,
    /// The nodes, over which the PEs are spread in blocks; empty: this host is the only one.
    pub nodes: Vec<Node>,
}

/// Which of its two outputs a PE wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a process has two outputs")]
pub enum Channel {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a PE's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a process ends by itself or by a signal")]
pub enum PeStatus {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl PeStatus {
    /// Whether it ended well: by itself, with status 0.
    pub fn is_ok(self) -> bool {
        self == PeStatus::Exited(0)
    }

    /// The status that a shell reports for it: a signal's number counts from 128.
    pub fn code(self) -> i32 {
        match self {
            PeStatus::Exited(status) => status,
            PeStatus::Killed(signal) => 128 + signal,
        }
    }
}

/// `ended with status 3`, `was killed by signal 9`.
impl fmt::Display for PeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeStatus::Exited(status) => write!(f, "ended with status {status}"),
            PeStatus::Killed(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

impl Job {
    /// A job of so many PEs on this host, without arguments, additions to the environment and GPUs.
    pub fn new(pes: usize, program: impl Into<PathBuf>) -> Job {
        let program = program.into();
        Job { pes, program, arguments: vec![], environment: vec![], devices: vec![], nodes: vec![] }
    }

    /// Starts all PEs. Their standard input is empty.
    ///
    /// From now on the first Ctrl-C ends the PEs, and is otherwise only noted.
    ///
    /// # Errors
    /// A sentence that says what cannot be started, and why. Nothing is left running then.
    pub fn start(&self) -> Result<Running, String> {
        if self.pes == 0 {
            return Err("a job has at least 1 PE".to_string());
        }
        if !self.devices.is_empty() && self.devices.len() != self.pes {
            let (gpus, pes) = (count(self.devices.len(), "GPU"), count(self.pes, "PE"));
            return Err(format!("{gpus} for {pes}; each needs one"));
        }
        let nodes = self.nodes.len().max(1);
        if !self.pes.is_multiple_of(nodes) {
            return Err(format!("{} cannot be spread evenly over {}", count(self.pes, "PE"), count(nodes, "node")));
        }
        if nodes > 1 {
            nodes::check_program(&self.program).map_err(|why| cannot_start(&Command::new(&self.program), &why))?;
        }
        let meeting = port::meeting()?;
        let key = Key::random().map_err(|problem| problem.to_string())?;
        Running::start((0..self.pes).map(|pe| self.command(pe, &meeting, &key)))
    }

    /// What starts one PE.
    fn command(&self, pe: usize, meeting: &str, key: &Key) -> Command {
        let on_each = self.pes / self.nodes.len().max(1);
        let node = self.nodes.get(pe / on_each);
        let mut command = match node {
            None => {
                let mut command = Command::new(&self.program);
                command.args(&self.arguments);
                command
            }
            Some(node) => node.enter(self.program.as_os_str(), self.arguments.iter().cloned()),
        };
        load_kernels_early(&mut command);
        let of_node = node.iter().flat_map(|node| &node.environment);
        command.envs(self.environment.iter().chain(of_node).map(|(name, value)| (name, value)));
        command.env("ONESIDED_RANK", pe.to_string());
        command.env("ONESIDED_PES", self.pes.to_string());
        command.env("ONESIDED_LOCAL_RANK", (pe % on_each).to_string());
        command.env("ONESIDED_RENDEZVOUS", meeting).env(Key::VARIABLE, key.reveal());
        if let Some(device) = self.devices.get(pe) {
            command.env("ONESIDED_DEVICE", device.to_string());
        }
        command
    }
}

/// Of so many GPUs, how many these PEs use: all, or the most that can have the same number of PEs. Where PEs share GPUs
/// unevenly, NVSHMEM does not initialize (3 PEs on 2 GPUs, seen with 3.8.0).
///
/// ```
/// use onesided_harness::launch::evenly;
/// assert_eq!([evenly(1, 4), evenly(4, 4), evenly(4, 3), evenly(3, 2), evenly(2, 0)], [1, 4, 2, 1, 0]);
/// ```
pub fn evenly(pes: usize, gpus: usize) -> usize {
    (1..=gpus.min(pes)).rev().find(|number| pes.is_multiple_of(*number)).unwrap_or(0)
}

/// Which GPU each PE gets: one after the other, and from the front again. Empty where there are no GPUs.
///
/// ```
/// assert_eq!(onesided_harness::launch::devices(4, &[0, 2]), [0, 2, 0, 2]);
/// assert_eq!(onesided_harness::launch::devices(3, &[0, 2]), [0, 0, 0]); // see `evenly`
/// ```
pub fn devices(pes: usize, gpus: &[u32]) -> Vec<u32> {
    gpus[..evenly(pes, gpus.len())].iter().copied().cycle().take(pes).collect()
}

/// Where what belongs to a program may lie: the folder of this process's program, and the one above it, as for tests.
fn beside_this_program() -> impl Iterator<Item = PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().map(Path::to_path_buf);
    let above =
        folder.as_deref().filter(|folder| folder.ends_with("deps")).and_then(Path::parent).map(Path::to_path_buf);
    [folder, above].into_iter().flatten()
}
