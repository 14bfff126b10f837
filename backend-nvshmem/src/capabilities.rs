//! [`CAPABILITIES`]: which of the optional families of calls work on GPUs.

use onesided::{Capabilities, Support};

/// Why atomics are refused.
pub(crate) const NO_ATOMICS: &str =
    "libnvshmem exports the atomics of the host as stubs that print a line and do nothing";

/// Why multicast is refused.
pub(crate) const NO_MULTICAST: &str = "multicast loads and stores are instructions of kernels; the host has none";

/// What `Pe::capabilities` returns on every GPU, with every version of the library.
///
/// This needs no GPU and no library. So a tool can say on a laptop what will not run on GPUs.
///
/// ```
/// use onesided::Support;
/// use onesided_nvshmem::CAPABILITIES;
///
/// assert!(!CAPABILITIES.host_atomics.is_available());
/// if let Support::Missing(why) = CAPABILITIES.host_atomics {
///     println!("this program uses host atomics: {why}");
/// }
/// ```
pub const CAPABILITIES: Capabilities = Capabilities {
    host_atomics: Support::Missing(NO_ATOMICS),
    host_signals: Support::Composed("issued on a stream of the backend's own, and waited for"),
    stream_fence: Support::Composed("a quiet on the stream that claims nothing"),
    peer_access: Support::Composed("copies through the pointer that nvshmem_ptr gives"),
    multicast: Support::Missing(NO_MULTICAST),
    registration: Support::Native,
};
