//! [`Capabilities`]: which optional families of calls a backend has.

/// How a backend provides a family of calls that not every library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "directly, by other calls, or not at all")]
pub enum Support {
    /// Directly.
    Native,
    /// By other calls, with the same meaning and a higher cost.
    Composed(&'static str),
    /// Not at all. The calls return [`Unsupported`](crate::ErrorKind::Unsupported) with this reason.
    Missing(&'static str),
}

impl Support {
    /// Whether the calls work.
    pub fn is_available(self) -> bool {
        !matches!(self, Support::Missing(_))
    }
}

impl std::fmt::Display for Support {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Support::Native => f.write_str("yes"),
            Support::Composed(how) => write!(f, "composed: {how}"),
            Support::Missing(why) => write!(f, "no: {why}"),
        }
    }
}

/// The families of calls in which libraries differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Atomic memory operations issued by the host. libnvshmem exports them as stubs that do nothing: its backend composes them.
    pub host_atomics: Support,
    /// `put_signal`, `signal_op` and waits issued by the host without a stream.
    pub host_signals: Support,
    /// `fence` on a stream.
    pub stream_fence: Support,
    /// Loads and stores through a peer's pointer.
    pub peer_access: Support,
    /// Multicast loads and stores.
    pub multicast: Support,
    /// Memory from outside the heap, and its local registration.
    pub registration: Support,
    /// Its symmetric registration. NVSHMEM has none where its heap cannot grow, as in memory of the host.
    pub symmetric_registration: Support,
    /// Kernels: [`Pe::module`](crate::Pe::module) and [`Issue::launch`](crate::Issue::launch).
    pub kernels: Support,
    /// Atomics of kernels on a word that PEs on several GPUs update: NVSHMEM's, and the GPU's own through a peer's pointer. If
    /// they are missing, kernels still run, but updates get lost without an error.
    pub kernel_atomics: Support,
    /// What NVSHMEM has for kernels from 3.8 on: flushes, queue pairs, regions, shared memory that the library may use. A module that calls one of
    /// them is refused where they are missing.
    pub kernel_extensions: Support,
}
