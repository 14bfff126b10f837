//! [`CAPABILITIES`]: which of the optional families of calls work on GPUs.

use onesided::{Capabilities, Support};

/// Why atomics are refused.
pub(crate) const NO_ATOMICS: &str =
    "libnvshmem exports the atomics of the host as stubs that print a line and do nothing";

/// Why kernels are refused.
pub(crate) const NO_KERNELS: &str = "this backend does not launch kernels yet";

/// Why multicast is refused.
pub(crate) const NO_MULTICAST: &str = "multicast loads and stores are instructions of kernels; the host has none";

/// Why no memory of the GPU joins a heap that is memory of the host.
pub(crate) const NO_REGISTRATION: &str =
    "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which no memory of the GPU can join";

/// Why no memory of the GPU is a local operand beside such a heap.
const CRASHES: &str = "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), beside which libraries before 3.8 end the \
                       process when memory of the GPU is registered";

/// The first version that registers memory of the GPU beside a heap in memory of the host.
const REGISTERS: [i32; 3] = [3, 8, 0];

/// What `Pe::capabilities` returns on every GPU, with every version of the library. There is one exception: a PE whose heap is memory
/// of the host (`NVSHMEM_HEAP_KIND=SYSMEM`) has no symmetric registration, and with libraries before 3.8 no registration at all.
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
    symmetric_registration: Support::Native,
    kernels: Support::Missing(NO_KERNELS),
};

/// What works with this heap and this version.
pub(crate) fn capabilities(heap_is_host: bool, version: [i32; 3]) -> Capabilities {
    if !heap_is_host {
        return CAPABILITIES;
    }
    let registration = if version < REGISTERS { Support::Missing(CRASHES) } else { CAPABILITIES.registration };
    Capabilities { registration, symmetric_registration: Support::Missing(NO_REGISTRATION), ..CAPABILITIES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_in_memory_of_the_host_has_less_registration() {
        assert_eq!(capabilities(false, [3, 4, 5]), CAPABILITIES);
        let registers = [[3, 4, 5], [3, 8, 0]].map(|version| {
            let can = capabilities(true, version);
            (can.registration.is_available(), can.symmetric_registration.is_available())
        });
        assert_eq!(registers, [(false, false), (true, false)]);
    }
}
