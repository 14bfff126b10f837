//! [`placement`]: who this process is among the PEs, according to what started it.
//!
//! Launchers tell their processes by environment variables. The first launcher in this order decides whose variables are set:
//! ours, Open MPI's, torchrun, PMI, Slurm. The order matters because one launcher may start the next.

use std::env;
use std::fmt;
use std::time::Duration;

use crate::key::Key;
use crate::problem::Problem;
use crate::rendezvous;

/// The variable in which a user, or our launcher, says where PEs meet.
pub(crate) const RENDEZVOUS: &str = "ONESIDED_RENDEZVOUS";

/// More PEs than any job has. A larger number is a mistake, for which PE 0 would allocate memory.
pub(crate) const MOST_PES: usize = 1 << 20;

/// The ports that are derived from a job's name. Services have the ports below, and systems hand out those above.
const PORTS: std::ops::Range<u16> = 10_240..32_768;
/// Step numbers from here on are Slurm's own: the batch script, an interactive shell. `srun` did not start them.
const SLURM_RESERVED: u64 = 0xffff_fff0;

/// A process's place among the PEs of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The number of this PE, less than `n_pes`.
    pub rank: usize,
    /// How many PEs the job has.
    pub n_pes: usize,
    /// The number of this PE among those on its host; its rank, if the launcher does not tell.
    pub local_rank: usize,
    /// How many PEs are on its host, if the launcher tells.
    pub local_size: Option<usize>,
    /// Where the PEs meet: `host:port`, or `host:port/job` with the job's name. `None` if that is not known; see
    /// [`meeting`](Self::meeting).
    pub meeting: Option<String>,
    /// The secret of this job's PEs. `None` if the launcher passes none; see [`key`](Self::key).
    pub key: Option<Key>,
    /// What started this process.
    pub from: Launcher,
}

/// What started a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// `onesided launch`, or a user who set its variables.
    Onesided,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// Slurm's `srun`.
    Slurm,
    /// A launcher with PMI: that of MPICH, of Intel MPI, or NVSHMEM's own.
    Pmi,
    /// `torchrun`.
    Torchrun,
    /// Nothing. The process is the only PE of its job.
    Alone,
}

/// This process's place, from its environment. `None` if no launcher started it.
///
/// # Errors
/// [`Problem::Variable`] if a launcher's variables contradict each other: a rank without a size, a rank that is not less
/// than the size, a value that is not a number; or if the key is too short.
pub fn placement() -> Result<Option<Placement>, Problem> {
    // A value that is not Unicode is not a number either, and is reported as such.
    placement_in(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

/// The place according to an environment.
pub(crate) fn placement_in(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Option<Placement>, Problem> {
    let environment = Environment { lookup };
    let readers = [Environment::onesided, Environment::open_mpi, Environment::torchrun, Environment::pmi];
    for read in readers.into_iter().chain([Environment::slurm as fn(&_) -> _]) {
        if let Some(mut placement) = read(&environment)? {
            if let Some(meeting) = environment.text(RENDEZVOUS) {
                placement.meeting = Some(meeting);
            }
            if let Some(key) = environment.text(Key::VARIABLE) {
                placement.key = Some(Key::from_user(key)?);
            }
            return Ok(Some(placement));
        }
    }
    Ok(None)
}

impl Placement {
    /// The place of a process that is a job by itself.
    pub fn alone() -> Placement {
        Placement {
            rank: 0,
            n_pes: 1,
            local_rank: 0,
            local_size: Some(1),
            meeting: None,
            key: None,
            from: Launcher::Alone,
        }
    }

    /// Where the PEs meet.
    ///
    /// # Errors
    /// [`Problem::Variable`] if that is not known. It says which variable to set.
    pub fn meeting(&self) -> Result<&str, Problem> {
        self.meeting.as_deref().ok_or_else(|| Problem::Variable {
            variable: RENDEZVOUS.to_string(),
            why: format!(
                "not set, and {} does not say where the {} PEs can meet: set it, the same for all, to host:port with \
                 the host of PE 0 and a free port there",
                self.from, self.n_pes
            ),
        })
    }

    /// The secret of this job's PEs. When they meet, they prove to each other that they know it.
    ///
    /// # Errors
    /// [`Problem::Variable`] if the launcher passes none and the user has set none.
    pub fn key(&self) -> Result<&Key, Problem> {
        let variable = Key::VARIABLE;
        self.key.as_ref().ok_or_else(|| Problem::Variable {
            variable: variable.to_string(),
            why: format!(
                "not set, and {} passes no secret by which the {} PEs would know each other: set it, the same for all, \
                 to random text before they are started (export {variable}=$(openssl rand -hex 32))",
                self.from, self.n_pes
            ),
        })
    }

    /// Tries whether the PEs find each other. They meet where the PEs of a program would, and exchange nothing. Returns how many
    /// met. A program whose PEs meet at the same place does not take them for its own.
    ///
    /// Every process of the job must call this.
    ///
    /// # Errors
    /// On all PEs that wait: [`Problem::Missing`] if not all came within the limit, [`Problem::Disagreement`] if two have the
    /// same rank or another number of PEs. On this PE: the errors of [`meeting`](Self::meeting) and [`key`](Self::key), or
    /// that the address cannot be used.
    pub fn rehearse(&self, limit: Duration) -> Result<usize, Problem> {
        rendezvous::exchange(self, rendezvous::REHEARSAL, limit, || Ok([0; 128])).map(|_| self.n_pes)
    }

    /// If all PEs are on this host, lets them meet here, at a port that follows from the job's name.
    fn meet_here(mut self, job: Option<String>) -> Placement {
        if self.local_size == Some(self.n_pes) {
            self.meeting = job.map(|job| format!("127.0.0.1:{}/{job}", port(&job)));
        }
        self
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Onesided => "onesided launch (or who set its variables)",
            Launcher::OpenMpi => "Open MPI's mpirun",
            Launcher::Slurm => "Slurm's srun",
            Launcher::Pmi => "a launcher with PMI (MPICH, Intel MPI)",
            Launcher::Torchrun => "torchrun",
            Launcher::Alone => "no launcher",
        })
    }
}

/// The environment of a process.
struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Environment<'_> {
    fn onesided(&self) -> Result<Option<Placement>, Problem> {
        let Some((rank, n_pes)) = self.rank("ONESIDED_RANK", "ONESIDED_PES")? else { return Ok(None) };
        let local_rank = self.number("ONESIDED_LOCAL_RANK")?;
        // PEs that meet at a loopback address are all on this host.
        let is_local = self.text(RENDEZVOUS).is_some_and(|meeting| is_loopback(&meeting));
        Ok(Some(Placement {
            local_rank: local_rank.unwrap_or(rank),
            local_size: is_local.then_some(n_pes),
            ..Placement::new(rank, n_pes, Launcher::Onesided)
        }))
    }

    fn open_mpi(&self) -> Result<Option<Placement>, Problem> {
        let Some((rank, n_pes)) = self.rank("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")? else { return Ok(None) };
        let here = self.local("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", rank, n_pes)?;
        // A later job may have the same numbers. The key tells them apart. Version 5 makes no key.
        let names = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"];
        let job: Vec<String> = names.into_iter().filter_map(|name| self.text(name)).collect();
        let job = Some(job.join(".")).filter(|job| !job.is_empty());
        let mut placement = Placement::new(rank, n_pes, Launcher::OpenMpi).here(here).meet_here(job);
        placement.key = self.text("OMPI_MCA_orte_precondition_transports").and_then(|text| Key::of_open_mpi(&text));
        Ok(Some(placement))
    }

    /// Others may use the names `RANK` and `WORLD_SIZE` too. torchrun also sets one of two other variables.
    fn torchrun(&self) -> Result<Option<Placement>, Problem> {
        let (run, address) = (self.text("TORCHELASTIC_RUN_ID"), self.text("MASTER_ADDR"));
        let is_set = self.text("RANK").is_some() || self.text("WORLD_SIZE").is_some();
        if !is_set || run.is_none() && address.is_none() {
            return Ok(None);
        }
        let Some((rank, n_pes)) = self.rank("RANK", "WORLD_SIZE")? else { return Ok(None) };
        let here = self.local("LOCAL_RANK", "LOCAL_WORLD_SIZE", rank, n_pes)?;
        let mut placement = Placement::new(rank, n_pes, Launcher::Torchrun).here(here);
        if let (Some(address), Some(port)) = (address, self.number("MASTER_PORT")?) {
            // torchrun's own store listens at MASTER_PORT; the job's name is the same on all PEs.
            let port = port.checked_add(1).filter(|&port| port <= usize::from(u16::MAX)).unwrap_or(port - 1);
            let host = if address.contains(':') { format!("[{address}]") } else { address };
            placement.meeting = Some(format!("{host}:{port}/{}", run.unwrap_or_default()));
        }
        Ok(Some(placement))
    }

    /// Slurm sets PMI's variables too. If rank and size of both agree, Slurm's variables are used, because they say more. If
    /// not, a PMI launcher used `srun` to start itself.
    fn pmi(&self) -> Result<Option<Placement>, Problem> {
        let Some((rank, n_pes)) = self.rank("PMI_RANK", "PMI_SIZE")? else { return Ok(None) };
        if let Ok(Some(slurm)) = self.slurm()
            && (slurm.rank, slurm.n_pes) == (rank, n_pes)
        {
            return Ok(Some(slurm));
        }
        let here = self.local("MPI_LOCALRANKID", "MPI_LOCALNRANKS", rank, n_pes)?;
        // The address at which the launcher listens names the job.
        Ok(Some(Placement::new(rank, n_pes, Launcher::Pmi).here(here).meet_here(self.text("PMI_PORT"))))
    }

    /// Only for processes that `srun` started: the batch script has a rank too, but is not a PE.
    fn slurm(&self) -> Result<Option<Placement>, Problem> {
        let step = self.first(&["SLURM_STEP_ID", "SLURM_STEPID"]);
        let Some((_, step)) = step.filter(|(_, step)| step.parse::<u64>().is_ok_and(|step| step < SLURM_RESERVED))
        else {
            return Ok(None);
        };
        let size = self.first(&["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"]).map_or("SLURM_NTASKS", |(name, _)| name);
        let Some((rank, n_pes)) = self.rank("SLURM_PROCID", size)? else { return Ok(None) };
        let node = self.number("SLURM_NODEID")?.unwrap_or(0);
        let tasks = self.first(&["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"]);
        let local_size = tasks.and_then(|(_, list)| tasks_of_node(&list, node));
        let here = (self.number("SLURM_LOCALID")?.unwrap_or(rank), local_size);
        let job =
            format!("{}.{step}", self.first(&["SLURM_JOB_ID", "SLURM_JOBID"]).map_or(String::new(), |(_, job)| job));
        let mut placement = Placement::new(rank, n_pes, Launcher::Slurm).here(here).meet_here(Some(job.clone()));
        let nodes = self.first(&["SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"]);
        if let (None, Some((_, nodes))) = (&placement.meeting, nodes) {
            // PE 0 is on the first node.
            placement.meeting = Some(format!("{}:{}/{job}", first_host(&nodes), port(&job)));
        }
        Ok(Some(placement))
    }

    /// A variable that is set and not empty.
    fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        names.iter().find_map(|&name| Some((name, self.text(name)?)))
    }

    fn number(&self, name: &str) -> Result<Option<usize>, Problem> {
        let Some(value) = self.text(name) else { return Ok(None) };
        let number = value.trim().parse().map_err(|_| wrong(name, &value, "not a whole number from 0 on"));
        number.map(Some)
    }

    /// Rank and size, if both are set.
    fn rank(&self, rank_name: &str, size_name: &str) -> Result<Option<(usize, usize)>, Problem> {
        let beside = |there: &str, number: usize, other: &str| {
            Err(wrong(there, number, &format!("{other} is not set beside it; set both or neither")))
        };
        match (self.number(rank_name)?, self.number(size_name)?) {
            (None, None) => Ok(None),
            (Some(rank), None) => beside(rank_name, rank, size_name),
            (None, Some(size)) => beside(size_name, size, rank_name),
            (Some(_), Some(size)) if size > MOST_PES => Err(wrong(size_name, size, &format!("{MOST_PES} PEs at most"))),
            (Some(rank), Some(size)) if rank < size => Ok(Some((rank, size))),
            (Some(rank), Some(0)) => Err(wrong(size_name, 0, &format!("no PEs at all, and yet {rank_name}={rank}"))),
            (Some(rank), Some(size)) => {
                let last = size - 1;
                Err(wrong(rank_name, rank, &format!("PEs count from 0 to {last}, because {size_name}={size}")))
            }
        }
    }

    /// Rank and size on this host. If the rank is not set, it is the rank among all PEs, so that the PEs of a host take different
    /// GPUs. If the size is not set, it is known only for a job of one PE.
    fn local(
        &self,
        rank_name: &str,
        size_name: &str,
        rank: usize,
        n_pes: usize,
    ) -> Result<(usize, Option<usize>), Problem> {
        let (local_rank, size) = (self.number(rank_name)?, self.number(size_name)?);
        match (local_rank, size) {
            (Some(here), Some(size)) if here >= size || size > n_pes => {
                Err(wrong(rank_name, here, &format!("no PE of {size_name}={size} on this host, of {n_pes} in all")))
            }
            _ => Ok((local_rank.unwrap_or(rank), size.or((n_pes == 1).then_some(1)))),
        }
    }
}

impl Placement {
    fn new(rank: usize, n_pes: usize, from: Launcher) -> Placement {
        Placement { rank, n_pes, local_rank: rank, local_size: None, meeting: None, key: None, from }
    }

    fn here(self, (local_rank, local_size): (usize, Option<usize>)) -> Placement {
        Placement { local_rank, local_size, ..self }
    }
}

fn wrong(name: &str, value: impl fmt::Display, why: &str) -> Problem {
    Problem::Variable { variable: format!("{name}={value}"), why: why.to_string() }
}

/// Whether an address is written as a loopback address.
pub(crate) fn is_loopback(meeting: &str) -> bool {
    ["127.", "localhost:", "[::1]:"].iter().any(|start| meeting.starts_with(start))
}

/// The port of a job, which all its PEs compute: a hash (FNV-1a) of the job's name.
fn port(job: &str) -> u16 {
    let count = u64::from(PORTS.end - PORTS.start);
    PORTS.start + (fnv(job.as_bytes()) % count) as u16
}

/// The same number for the same bytes, on every machine and in every version.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The first host of Slurm's list: `node[03-05,9],login` begins with `node03`.
fn first_host(list: &str) -> String {
    let (mut host, mut in_brackets, mut is_skipping) = (String::new(), false, false);
    for letter in list.chars() {
        match letter {
            '[' => in_brackets = true,
            ']' => (in_brackets, is_skipping) = (false, false),
            ',' | '-' if in_brackets => is_skipping = true,
            ',' => break,
            _ if is_skipping => {}
            _ => host.push(letter),
        }
    }
    host
}

/// How many tasks a node has, from Slurm's list: `4(x2),3` is 4, 4, 3.
fn tasks_of_node(list: &str, node: usize) -> Option<usize> {
    let mut before = 0;
    for part in list.split(',') {
        let (tasks, times) =
            part.split_once("(x").map_or((part, "1"), |(tasks, times)| (tasks, times.trim_end_matches(')')));
        before += times.parse::<usize>().ok()?;
        if node < before {
            return tasks.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests;
