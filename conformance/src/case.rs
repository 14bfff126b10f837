//! What a case of the suite is: a generic program that records what it saw.
//!
//! A case asserts nothing about what is nondeterministic. It returns a [`Seen`]; the set of what may be seen is in its
//! file under `expected/`. The simulator over all schedules must produce exactly that set, anything else a subset.

use std::fmt;

use onesided::{Backend, Pe, Result, count};
use onesided_harness::hardware::protocol::Missing;

/// What one PE saw in one run, as text: `x=1 y=0`. Empty for a PE that only helps.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen(String);

impl Seen {
    /// Nothing.
    pub fn nothing() -> Seen {
        Seen::default()
    }

    /// Adds `name=value`. Lists print as `[1, 2]`; a line break in a value becomes a blank.
    #[must_use]
    pub fn and(mut self, name: &str, value: impl fmt::Debug) -> Seen {
        use fmt::Write as _;
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        let value = format!("{value:?}").replace('\n', " ");
        let _ = write!(self.0, "{name}={value}"); // writing to a String cannot fail
        self
    }

    /// The text, as it stands in outcome files.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shorthand for [`Seen::nothing`]`.and(name, value)`.
pub fn seen(name: &str, value: impl fmt::Debug) -> Seen {
    Seen::nothing().and(name, value)
}

/// What a backend must offer for a case to run on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Atomics issued by the host.
    pub host_atomics: bool,
    /// Loads and stores to peers on the same node.
    pub peer_access: bool,
    /// Multicast on the world team.
    pub multicast: bool,
    /// Registration of external memory.
    pub registration: bool,
    /// Its symmetric registration.
    pub symmetric_registration: bool,
    /// Kernels.
    pub kernels: bool,
    /// Atomics of kernels on a word that several PEs update.
    pub kernel_atomics: bool,
    /// What NVSHMEM has for kernels from 3.8 on.
    pub kernel_extensions: bool,
    /// A bug of the whole program, on purpose: only the simulator survives it, with a verdict.
    pub verdict: bool,
}

impl Needs {
    /// The first need that cannot be met, with the reason; `None` if the case can run.
    pub fn unmet(&self, missing: &Missing) -> Option<String> {
        let families = [
            (self.host_atomics, &missing.host_atomics, "atomics issued by the host"),
            (self.peer_access, &missing.peer_access, "access to its peers' memory"),
            (self.multicast, &missing.multicast, "multicast"),
            (self.registration, &missing.registration, "registration of external memory"),
            (self.symmetric_registration, &missing.symmetric_registration, "symmetric registration"),
            (self.kernels, &missing.kernels, "kernels"),
            (self.kernel_atomics, &missing.kernel_atomics, "atomics of kernels by several GPUs"),
            (self.kernel_extensions, &missing.kernel_extensions, "extensions of NVSHMEM 3.8 for kernels"),
        ];
        let unmet =
            families.into_iter().find_map(|(needed, why, family)| Some((family, why.as_ref().filter(|_| needed)?)));
        unmet.map(|(family, why)| format!("needs {family}: {why}"))
    }
}

/// One case: a program, and the cluster that it needs.
pub struct Case<B: Backend> {
    /// `chapter/name`; the name of the outcome file.
    pub name: String,
    /// Number of PEs.
    pub pes: usize,
    /// Number of nodes that they are spread over.
    pub nodes: usize,
    /// Number of GPUs that they share; one each if `None`.
    pub gpus: Option<usize>,
    /// What it needs.
    pub needs: Needs,
    /// Whether it ends in a verdict that GPUs show too.
    pub breaks: bool,
    /// Whether it has a data race, under `spec` at least.
    pub racy: bool,
    /// Whether it has one only where what has arrived is not visible to all PEs.
    pub racy_when_mixed: bool,
    /// The names of the lints of its run in order under `spec`, if that is what it is about.
    pub lints: Option<&'static [&'static str]>,
    /// The program.
    pub body: fn(&Pe<B>) -> Result<Seen>,
}

impl<B: Backend> Case<B> {
    /// The case `name` of the chapter, on `pes` PEs of one node.
    pub fn new(name: &str, pes: usize, body: fn(&Pe<B>) -> Result<Seen>) -> Self {
        let needs = Needs::default();
        Case {
            name: name.to_string(),
            pes,
            nodes: 1,
            gpus: None,
            needs,
            breaks: false,
            racy: false,
            racy_when_mixed: false,
            lints: None,
            body,
        }
    }

    /// Spreads the PEs over so many nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Lets the PEs share so many GPUs.
    #[must_use]
    pub fn gpus(mut self, gpus: usize) -> Self {
        self.gpus = Some(gpus);
        self
    }

    /// Needs atomics issued by the host.
    #[must_use]
    pub fn needs_host_atomics(mut self) -> Self {
        self.needs.host_atomics = true;
        self
    }

    /// Needs loads and stores to peers.
    #[must_use]
    pub fn needs_peer_access(mut self) -> Self {
        self.needs.peer_access = true;
        self
    }

    /// Needs multicast on the world team.
    #[must_use]
    pub fn needs_multicast(mut self) -> Self {
        self.needs.multicast = true;
        self
    }

    /// Needs registration of external memory.
    #[must_use]
    pub fn needs_registration(mut self) -> Self {
        self.needs.registration = true;
        self
    }

    /// Needs symmetric registration of external memory.
    #[must_use]
    pub fn needs_symmetric_registration(mut self) -> Self {
        self.needs.symmetric_registration = true;
        self
    }

    /// Needs kernels.
    #[must_use]
    pub fn needs_kernels(mut self) -> Self {
        self.needs.kernels = true;
        self
    }

    /// Needs atomics of kernels on a word that several PEs update.
    #[must_use]
    pub fn needs_kernel_atomics(mut self) -> Self {
        self.needs.kernel_atomics = true;
        self
    }

    /// Needs what NVSHMEM has for kernels from 3.8 on.
    #[must_use]
    pub fn needs_kernel_extensions(mut self) -> Self {
        self.needs.kernel_extensions = true;
        self
    }

    /// Ends in a verdict on at least one schedule (a deadlock, a mismatch, a leak): simulator only.
    #[must_use]
    pub fn ends_in_verdict(mut self) -> Self {
        self.needs.verdict = true;
        self
    }

    /// Has a data race on some schedule under `spec`: on purpose, as a litmus test.
    #[must_use]
    pub fn racy(mut self) -> Self {
        self.racy = true;
        self
    }

    /// Has a data race on some schedule under `mixed-fabric`, and none under `spec`.
    #[must_use]
    pub fn racy_when_mixed(mut self) -> Self {
        self.racy_when_mixed = true;
        self
    }

    /// Has these lints and no others.
    #[must_use]
    pub fn lints(mut self, lints: &'static [&'static str]) -> Self {
        self.lints = Some(lints);
        self
    }

    /// Ends in a verdict on every schedule, and in the same way on GPUs, where it runs once. A PE panics or fails while others
    /// wait, or all wait for ever. On GPUs a time limit ends such a wait.
    #[must_use]
    pub fn breaks(mut self) -> Self {
        self.breaks = true;
        self
    }
}

impl<B: Backend> fmt::Debug for Case<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, count(self.pes, "PE"))
    }
}

/// Lists the cases of a chapter with their numbers of PEs: `cases![mp_fenced: 2, mp: 2 racy]`. Further properties stand behind:
/// `cases![iriw: 4 => |case| case.nodes(2)]`.
macro_rules! cases {
    ($($name:ident: $pes:literal $($racy:ident)? $(=> $with:expr)?),* $(,)?) => {
        vec![$({
            let case = $crate::case::Case::new(stringify!($name), $pes, $name::<B>);
            $(let case = case.$racy();)?
            $(let case = ($with as fn($crate::case::Case<B>) -> $crate::case::Case<B>)(case);)?
            case
        }),*]
    };
}
pub(crate) use cases;
