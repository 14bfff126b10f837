//! Processes that try to become the PEs of one job: the test's own executable, started once for each.
//!
//! A test calls [`Job::run`]. In the process that the user started, that starts the other processes and waits for them. The
//! others run the same test; there the call becomes a PE and does not return.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use onesided::{Bootstrap, Error, InitMethod, InitStatus, UniqueId};
use onesided_nvshmem::{Process, Settings};

/// Which of the job's processes this one is.
const INDEX: &str = "ONESIDED_TEST_PROCESS";
/// Where they leave the id and what became of them.
const FOLDER: &str = "ONESIDED_TEST_FOLDER";

/// What a process may need beyond the limit of `init`: to be started, to open the library, to end.
pub(crate) const SLACK: Duration = Duration::from_secs(20);

/// One process of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Becomes this PE of so many. The first process of a job makes the unique id.
    Pe(usize, usize),
    /// Becomes PE 0 of 1 in two threads at once, which both make a unique id. What became of the thread that was refused
    /// is left.
    TwoThreads,
    /// Makes the unique id, and ends.
    MakesIdOnly,
}

/// What became of a process.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How it ended.
    pub(crate) status: Option<ExitStatus>,
    /// How long `init` took.
    pub(crate) took: Duration,
    /// The error's kind, or `pe`.
    pub(crate) kind: String,
    /// The library's status afterwards.
    pub(crate) init_status: String,
    /// The error's message.
    pub(crate) message: String,
    /// What the process printed.
    pub(crate) printed: String,
}

impl Outcome {
    /// Whether the process ended by itself, as a program does that handles its error.
    pub(crate) fn ended_well(&self) -> bool {
        self.status.is_some_and(|status| status.success()) && !self.printed.contains("panicked")
    }
}

/// Several processes with one unique id.
#[derive(Debug)]
pub(crate) struct Job {
    /// The test that starts them, by its full name.
    pub(crate) test: &'static str,
    /// Its processes.
    pub(crate) roles: Vec<Role>,
    /// The limit of `init`.
    pub(crate) limit: Duration,
}

impl Job {
    /// Runs the job. When it returns, every process has ended. A process that does not end in time is killed, and has no status.
    pub(crate) fn run(&self) -> Vec<Outcome> {
        if let Some(index) = std::env::var(INDEX).ok().and_then(|index| index.parse().ok()) {
            self.be(index);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut children: Vec<Child> = (0..self.roles.len()).map(|index| self.start(index, folder.path())).collect();
        let deadline = Instant::now() + self.limit + SLACK;
        let mut statuses = Vec::new();
        for child in &mut children {
            statuses.push(wait(child, deadline));
        }
        let ended = statuses.into_iter().enumerate();
        ended.map(|(index, status)| outcome(folder.path(), index, status)).collect()
    }

    fn start(&self, index: usize, folder: &Path) -> Child {
        let log = File::create(folder.join(format!("log-{index}"))).unwrap();
        Command::new(std::env::current_exe().unwrap())
            .args([self.test, "--exact", "--nocapture", "--test-threads=1"])
            .env(INDEX, index.to_string())
            .env(FOLDER, folder)
            .env("CUDA_VISIBLE_DEVICES", "") // the same on a machine with GPUs
            .env("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo") // the same on a machine without a network
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Becomes the process `index`, leaves what became of it, and ends as a program would.
    fn be(&self, index: usize) -> ! {
        let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
        let mut settings = Settings::default();
        settings.limit = self.limit;
        let process = Process::open(settings).unwrap();
        let id = if index == 0 { make_id(&process, &folder) } else { read_id(&folder) };
        let start = Instant::now();
        let error = match self.roles[index] {
            Role::Pe(rank, n_pes) => process.init(InitMethod::UniqueId { id, rank, n_pes }).err(),
            Role::TwoThreads => {
                let another = thread::spawn(|| become_only_pe(&Process::open(Settings::default()).unwrap()));
                let errors = [become_only_pe(&process), another.join().unwrap()].map(Option::unwrap);
                errors.into_iter().find(|error| !error.message().contains("no GPU"))
            }
            Role::MakesIdOnly => std::process::exit(0),
        };
        let took = start.elapsed();
        let kind = error.as_ref().map_or("pe", |error| error.kind().name());
        let message = error.as_ref().map_or("", Error::message);
        let status = process.init_status();
        let lines = format!("{}\n{kind}\n{}\n{message}", took.as_millis(), status.name());
        fs::write(folder.join(format!("outcome-{index}")), lines).unwrap();
        assert!(status <= InitStatus::Bootstrapped, "{status:?} without a GPU");
        std::process::exit(0)
    }
}

fn become_only_pe(process: &Process) -> Option<Error> {
    let id = process.unique_id().unwrap();
    process.init(InitMethod::UniqueId { id, rank: 0, n_pes: 1 }).err()
}

fn make_id(process: &Process, folder: &Path) -> UniqueId {
    let id = process.unique_id().unwrap();
    fs::write(folder.join("new"), id.to_string()).unwrap();
    fs::rename(folder.join("new"), folder.join("id")).unwrap(); // the others see it whole
    id
}

fn read_id(folder: &Path) -> UniqueId {
    let deadline = Instant::now() + SLACK;
    loop {
        match fs::read_to_string(folder.join("id")) {
            Ok(text) => return text.parse().unwrap(),
            Err(error) => assert!(Instant::now() < deadline, "the first process left no id: {error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How the child ended; `None` when it had to be killed.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

fn outcome(folder: &Path, index: usize, status: Option<ExitStatus>) -> Outcome {
    let printed = fs::read_to_string(folder.join(format!("log-{index}"))).unwrap_or_default();
    let left = fs::read_to_string(folder.join(format!("outcome-{index}"))).unwrap_or_default();
    let mut lines = left.splitn(4, '\n').map(str::to_string);
    let took = lines.next().and_then(|millis| millis.parse().ok()).map_or(Duration::ZERO, Duration::from_millis);
    let mut line = || lines.next().unwrap_or_default();
    Outcome { status, took, kind: line(), init_status: line(), message: line(), printed }
}
