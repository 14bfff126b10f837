//! What a simulated machine looks like, and how far a run may go.

use onesided::{At, Capabilities, Error, ErrorKind, Result, Support, count};

use crate::coroutine::Ending;
use crate::explain::Edit;
use crate::profile::Profile;
use crate::schedule::hash_of;

/// A simulated cluster and the limits of one run.
///
/// ```
/// use onesided_sim::{Config, Profile};
/// let config = Config { pes: 8, nodes: 2, profile: Profile::Nvlink, ..Config::default() };
/// assert!(config.check().is_ok());
/// assert!(Config { pes: 7, nodes: 2, ..Config::default() }.check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of PEs.
    pub pes: usize,
    /// Number of nodes; PEs are dealt to them in blocks of equal size. PEs of one node reach each other's memory.
    pub nodes: usize,
    /// Number of GPUs in all; PEs of a node share its GPUs in blocks of equal size. `None`: one GPU a PE.
    pub gpus: Option<usize>,
    /// Which optional families of calls work. In the simulator all of them can. A program that must also run elsewhere can be
    /// restricted to what works there; `onesided_nvshmem::CAPABILITIES` says that for GPUs.
    pub capabilities: Capabilities,
    /// Size of each PE's symmetric heap, in bytes.
    pub heap: usize,
    /// Memory that all PEs' allocations may take together, in bytes: what this computer is ready to give.
    pub memory: usize,
    /// Teams that can exist at a time, predefined ones included (`NVSHMEM_MAX_TEAMS`).
    pub max_teams: usize,
    /// What is guaranteed beyond the specification's text.
    pub profile: Profile,
    /// What is done about data races.
    pub races: Races,
    /// What a quiet in a kernel completes, and a fence orders.
    pub quiet: Quiet,
    /// What strong loads in kernels find.
    pub loads: Loads,
    /// Whether the program looks at the values that `signal_wait_until` returns. If it does not, a proof leaves out
    /// schedules that differ only in these values, and its sentence says so.
    pub values_matter: bool,
    /// Which orders a search of all schedules leaves out because they show nothing new.
    pub reduce: Reduce,
    /// Whether a [`Lint`](crate::Lint) is a finding, [`VerdictKind::Lint`](crate::VerdictKind::Lint), unless something else is
    /// wrong. Then every run looks for lints; else only recorded ones do. None does under [`Races::Ignore`].
    pub strict: bool,
    /// Whether every operation is complete before its host or stream goes on, under every profile. This is sequential consistency, to
    /// which [`robustness`](crate::robustness) compares. The text of a schedule does not contain it.
    pub sequential: bool,
    /// A transfer of several elements arrives in at most so many pieces (1 to 64), in any order.
    pub pieces: usize,
    /// Steps after which a run is given up, as one that may never end. `None`: a million, and 100,000 for each schedule of
    /// an exhaustive search.
    pub max_steps: Option<u64>,
    /// After how many instructions of all its threads a block of a kernel is given up, because it may never end. 200 million unless
    /// set. (A loop that nothing can end is found earlier.)
    pub max_instructions: u64,
    /// What the program is given besides its cluster, as a number: a hash of its arguments, say. It stands in schedules, so
    /// that a replay with other arguments is refused. 0: nothing is given.
    pub arguments: u32,
    /// Size of each PE's stack, in bytes. Only pages that are touched count.
    pub stack: usize,
    /// How hosts are ended that have not returned when a run is over.
    pub ending: Ending,
    /// Changes of the program, made while it runs: to try a repair, or to do without a call.
    pub edits: Vec<Edit>,
}

/// What a simulation does about data races.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "who runs a program must say what a race means")]
pub enum Races {
    /// A run with a race ends in a finding, [`VerdictKind::Race`](crate::VerdictKind::Race), unless something else is wrong too. A
    /// search of all schedules is a proof then.
    #[default]
    Find,
    /// Races are listed in [`Verdict::races`](crate::Verdict::races). The verdict is that of everything else: for litmus tests,
    /// whose races are intended.
    Note,
    /// Races are not looked for, which is faster.
    Ignore,
}

/// Which orders a search of all schedules leaves out, besides those of steps that commute in any case. Neither reduction loses an outcome or a
/// finding (DESIGN.md says why). With less, a search takes longer, and its classes can be compared.
///
/// ```
/// use onesided::SignalOp;
/// use onesided_sim::{Config, Explore, Reduce, Simulation};
/// # fn main() -> onesided::Result<()> {
/// // three PEs add to a word of PE 0: in 3! orders, of which a search visits one
/// let classes = |reduce| {
///     let mut simulation = Simulation::new(Config { reduce, ..Config::pes(3) })?;
///     let explored = simulation.explore(Explore::All { limit: 100 }, |pe| {
///         let word = pe.alloc_zeroed::<u64>(1)?;
///         pe.host().signal_op(word.signal(0), 1, SignalOp::Add, 0)?;
///         pe.free(word)
///     }, |_| std::ops::ControlFlow::Continue(()))?;
///     onesided::Result::Ok(explored.schedules)
/// };
/// assert_eq!((classes(Reduce::Everything)?, classes(Reduce::Nothing)?), (1, 6));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[expect(clippy::exhaustive_enums, reason = "there are two reductions, and the second needs the first")]
pub enum Reduce {
    /// None.
    Nothing,
    /// The orders of additions to one word that return nothing, and those of `and`, `or` and `xor`.
    Counters,
    /// In a proof, also the orders of a wait and later updates of its word, if no update can make the condition false before the wait has ended.
    #[default]
    Everything,
}

/// What a thread of a kernel completes by a quiet, or by a barrier, which contains one, and what it orders by a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "there are the specification's text, and what GPUs do")]
pub enum Quiet {
    /// What any thread of any kernel of its PE has issued: the specification's text. A proof first tries whether the program is right in
    /// the other reading, where far fewer schedules differ.
    #[default]
    Pe,
    /// What the thread itself has issued, and what other threads had issued before they synchronized with it, by a barrier of the block for
    /// example. Over NVLink the library's quiet is a fence of the calling thread. Likewise, a fence orders these operations before the operations of
    /// each thread that comes after the fence. A program that is right in this reading is right in both. This needs happens-before from the race detector,
    /// so it is not possible with [`Races::Ignore`].
    Thread,
}

/// Which value a strong load in a kernel finds, where PTX allows several.
///
/// ```
/// use onesided_sim::{Config, Loads};
/// let config = Config { loads: Loads::Oldest, ..Config::pes(2) };
/// assert!(config.in_words().contains("where strong loads find the oldest values that PTX allows"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a program that both readings agree on need not ask for more")]
pub enum Loads {
    /// What the last write of the schedule has left. Each thread's strong accesses then happen in program order. Where PTX promises less, the lint
    /// [`LintKind::StaleLoad`](crate::LintKind::StaleLoad) says so.
    #[default]
    Newest,
    /// At the loads where that lint would be found, the oldest value that PTX allows: it misses all writes that no synchronization, no pair of
    /// sequential fences and no earlier read puts before the load. So a program's own check fails where it relies on more.
    ///
    /// Loads that end a loop find the newest value: they only end it later. So do atomics, loads of a word that is written in another size, a load that has
    /// missed the same writes before, by the same thread at the same line, and one whose miss alone would put two sequential fences in order. A proof still says
    /// then what it supposes. A load finds the newest value or the oldest one, and none between them.
    ///
    /// This needs happens-before from the race detector, so it is not possible with [`Races::Ignore`].
    Oldest,
}

impl Loads {
    /// What of these orders a search may leave out. What a load misses depends on when waits of its thread have looked.
    pub(crate) fn reduces(self, reduce: Reduce) -> Reduce {
        match self {
            Loads::Newest => reduce,
            Loads::Oldest => reduce.min(Reduce::Counters),
        }
    }
}

/// The most pieces of a transfer.
const MAX_PIECES: usize = 64;

/// What the simulator has.
const EVERYTHING: Capabilities = Capabilities {
    host_atomics: Support::Native,
    host_signals: Support::Native,
    stream_fence: Support::Native,
    peer_access: Support::Native,
    multicast: Support::Native,
    registration: Support::Native,
    symmetric_registration: Support::Native,
    kernels: Support::Native,
    kernel_atomics: Support::Native,
    kernel_extensions: Support::Native,
};

impl Default for Config {
    /// Four PEs with a GPU each on one node, 1 GiB of heap each (as NVSHMEM's default), under [`Profile::Spec`].
    fn default() -> Self {
        Config {
            pes: 4,
            nodes: 1,
            gpus: None,
            capabilities: EVERYTHING,
            heap: 1 << 30,
            memory: 8 << 30,
            max_teams: 256,
            profile: Profile::Spec,
            races: Races::Find,
            quiet: Quiet::Pe,
            loads: Loads::Newest,
            values_matter: true,
            reduce: Reduce::Everything,
            strict: false,
            sequential: false,
            pieces: 4,
            max_steps: None,
            max_instructions: 200_000_000,
            arguments: 0,
            stack: 256 << 10,
            ending: Ending::Unwind,
            edits: Vec::new(),
        }
    }
}

/// The default cluster with so many PEs.
impl From<usize> for Config {
    fn from(pes: usize) -> Config {
        Config::pes(pes)
    }
}

impl Config {
    /// The default cluster with another number of PEs.
    pub fn pes(pes: usize) -> Config {
        Config { pes, ..Config::default() }
    }

    /// The cluster with [`Config::arguments`] made from a text that tells one input of the program from others.
    ///
    /// ```
    /// use onesided_sim::Config;
    /// let given = |text| Config::pes(2).with_arguments(text).arguments;
    /// assert!(given("--rows 4") != given("--rows 5") && given("") == 0);
    /// ```
    #[must_use]
    pub fn with_arguments(self, text: &str) -> Config {
        Config { arguments: if text.is_empty() { 0 } else { hash_of(text) }, ..self }
    }

    /// The cluster in words, with what bounds a proof on it: `4 PEs under spec with up to 4 pieces a transfer`.
    pub fn in_words(&self) -> String {
        let Config { pes, nodes, gpus, profile, pieces, quiet, loads, .. } = *self;
        let quiet = if quiet == Quiet::Thread { ", where a kernel's quiet is its thread's," } else { "" };
        let loads = match loads {
            Loads::Newest => "",
            Loads::Oldest => ", where strong loads find the oldest values that PTX allows,",
        };
        let on = if nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
        let with = gpus.map(|gpus| format!(" with {}", count(gpus, "GPU"))).unwrap_or_default();
        format!(
            "{}{on}{with} under {profile}{quiet}{loads} with up to {} a transfer",
            count(pes, "PE"),
            count(pieces, "piece")
        )
    }

    /// The cluster with sequential consistency in place of its profile.
    pub(crate) fn sequentially_consistent(&self) -> Config {
        Config { sequential: true, loads: Loads::Newest, ..self.clone() }
    }

    /// PEs on one node.
    pub(crate) fn pes_per_node(&self) -> usize {
        self.pes / self.nodes
    }

    /// PEs on one node, where PEs of the same node and of other nodes see different things.
    pub(crate) fn nodes_matter(&self) -> Option<usize> {
        let on = self.pes_per_node();
        (!self.profile.promises().one_fabric && self.nodes > 1 && on > 1).then_some(on)
    }

    /// PEs on one GPU.
    pub(crate) fn pes_per_gpu(&self) -> usize {
        self.pes / self.gpus.unwrap_or(self.pes)
    }

    /// Refuses what cannot be simulated.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] naming the field, its value and what would be right.
    #[track_caller]
    pub fn check(&self) -> Result<()> {
        let at = At::caller();
        let wrong = |message: String| Err(Error::new(ErrorKind::InvalidArgument, "simulation", message, at));
        let Config { pes, nodes, gpus, .. } = *self;
        if pes == 0 || pes > 32_000 {
            return wrong(format!("{pes} PEs; a simulation has 1 to 32000"));
        }
        if nodes == 0 || !pes.is_multiple_of(nodes) {
            return wrong(format!("{} cannot be spread evenly over {}", count(pes, "PE"), count(nodes, "node")));
        }
        if let Some(gpus) = gpus
            && (gpus == 0 || !gpus.is_multiple_of(nodes) || !pes.is_multiple_of(gpus))
        {
            let [pes, nodes, gpus] = [(pes, "PE"), (nodes, "node"), (gpus, "GPU")].map(|(n, what)| count(n, what));
            return wrong(format!("{pes} on {nodes} cannot share {gpus} evenly"));
        }
        if self.pieces > MAX_PIECES {
            return wrong(format!("{} pieces; a transfer arrives in at most {MAX_PIECES}", self.pieces));
        }
        let least = [
            (self.heap == 0, "the heap"),
            (self.memory == 0, "the memory of all PEs' allocations"),
            (self.pieces == 0, "the number of pieces"),
            (self.max_steps == Some(0), "the limit of steps"),
            (self.max_instructions == 0, "the limit of instructions"),
        ];
        if let Some((_, what)) = least.iter().find(|(is_zero, _)| *is_zero) {
            return wrong(format!("{what} is 0; it must be at least 1"));
        }
        if self.max_teams < 6 {
            return wrong(format!("max_teams {} is less than the 6 predefined teams", self.max_teams));
        }
        let by_happens_before = [
            (self.quiet == Quiet::Thread, "Quiet::Thread needs"),
            (self.loads == Loads::Oldest, "Loads::Oldest needs"),
        ];
        if let Some((_, needs)) = by_happens_before.iter().find(|(is_set, _)| *is_set && self.races == Races::Ignore) {
            return wrong(format!("{needs} the race detector: races must not be Races::Ignore"));
        }
        if self.stack < 32 << 10 {
            return wrong(format!("a stack of {} is too small; PEs need at least 32 KiB", count(self.stack, "byte")));
        }
        Ok(())
    }
}
