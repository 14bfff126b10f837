//! [`CAPABILITIES`]: which of the optional families of calls work on GPUs.

use onesided::{Capabilities, Support};

/// How atomics work: libnvshmem exports those of the host as stubs that print a line and do nothing.
const ATOMICS: &str = "a kernel of one thread, which NVRTC and nvJitLink make when first needed";

/// Why there are no atomics on streams.
pub(crate) const NO_ATOMICS: &str = "NVSHMEM has no atomics on streams";

/// Why multicast is refused.
pub(crate) const NO_MULTICAST: &str = "multicast loads and stores are instructions of kernels; the host has none";

/// Why no memory of the GPU joins a heap that is memory of the host.
pub(crate) const NO_REGISTRATION: &str =
    "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which no memory of the GPU can join";

/// Why no memory of the GPU is a local operand beside such a heap.
const CRASHES: &str = "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), beside which libraries before 3.8 end the \
                       process when memory of the GPU is registered";

/// Why atomics of several GPUs are not atomic there.
pub(crate) const LOSES: &str = "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), where this machine's GPUs read, change and write back by \
                     themselves: of two GPUs, one loses the other's update";

/// Why some functions of kernels are missing.
const NO_EXTENSIONS: &str = "flushes, queue pairs and regions of kernels are not in libraries before 3.8";

/// The first of the versions that were tried that has them.
const EXTENDS: [i32; 3] = [3, 8, 0];

/// The first version that registers memory of the GPU beside a heap in memory of the host.
const REGISTERS: [i32; 3] = [3, 8, 0];

/// What `Pe::capabilities` returns on every GPU, with every version of the library, except for these cases:
///
/// * Libraries before 3.8 have no extensions for kernels.
/// * A PE whose heap is memory of the host (`NVSHMEM_HEAP_KIND=SYSMEM`) has no symmetric registration. With libraries before
///   3.8 it has no registration at all, and no atomics of the host.
/// * If another GPU reaches that heap by loads and stores, and the machine has no atomics between GPU and host, the PE has
///   neither atomics of the host nor those of kernels on words that several GPUs update.
/// * There are no atomics of the host if NVRTC, nvJitLink, or NVSHMEM's headers and library for kernels are not installed.
///
/// This needs no GPU and no library. So a tool can say on a laptop what will not run on GPUs.
///
/// ```
/// use onesided::Support;
/// use onesided_nvshmem::CAPABILITIES;
///
/// assert!(!CAPABILITIES.multicast.is_available());
/// if let Support::Missing(why) = CAPABILITIES.multicast {
///     println!("this program uses multicast: {why}");
/// }
/// ```
pub const CAPABILITIES: Capabilities = Capabilities {
    host_atomics: Support::Composed(ATOMICS),
    host_signals: Support::Composed("issued on a stream of the backend's own, and waited for"),
    stream_fence: Support::Composed("a quiet on the stream that claims nothing"),
    peer_access: Support::Composed("copies through the pointer that nvshmem_ptr gives"),
    multicast: Support::Missing(NO_MULTICAST),
    registration: Support::Native,
    symmetric_registration: Support::Native,
    kernels: Support::Native,
    kernel_atomics: Support::Native,
    kernel_extensions: Support::Native,
};

/// Whether a library has for kernels what 3.8 has.
pub(crate) fn has_kernel_extensions(version: [i32; 3]) -> bool {
    version >= EXTENDS
}

/// The heap, as far as calls depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapKind {
    /// It is memory of the host.
    pub(crate) is_host: bool,
    /// It is memory of the host, several GPUs update it, and some of their updates get lost.
    pub(crate) loses_updates: bool,
}

/// Why memory of the GPU cannot be a local operand beside this heap; `None` if it can.
pub(crate) fn no_registration(heap: HeapKind, version: [i32; 3]) -> Option<&'static str> {
    (heap.is_host && version < REGISTERS).then_some(CRASHES)
}

/// The capabilities with this heap and this version. `no_atomics` says why the host has no atomics; `None` if it has them.
pub(crate) fn capabilities(heap: HeapKind, version: [i32; 3], no_atomics: Option<&'static str>) -> Capabilities {
    let host_atomics = no_atomics.map_or(CAPABILITIES.host_atomics, Support::Missing);
    let kernel_atomics = if heap.loses_updates { Support::Missing(LOSES) } else { CAPABILITIES.kernel_atomics };
    let kernel_extensions = match has_kernel_extensions(version) {
        true => CAPABILITIES.kernel_extensions,
        false => Support::Missing(NO_EXTENSIONS),
    };
    let all = Capabilities { host_atomics, kernel_atomics, kernel_extensions, ..CAPABILITIES };
    if !heap.is_host {
        return all;
    }
    let registration = no_registration(heap, version).map_or(CAPABILITIES.registration, Support::Missing);
    Capabilities { registration, symmetric_registration: Support::Missing(NO_REGISTRATION), ..all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_in_memory_of_the_host_has_less_registration() {
        let host = HeapKind { is_host: true, loses_updates: false };
        assert_eq!(capabilities(HeapKind::default(), [3, 8, 0], None), CAPABILITIES);
        assert_eq!(capabilities(host, [3, 8, 0], Some("no")).host_atomics, Support::Missing("no"));
        let registers = [[3, 4, 5], [3, 8, 0]].map(|version| {
            let can = capabilities(host, version, None);
            (can.registration.is_available(), can.symmetric_registration.is_available())
        });
        assert_eq!(registers, [(false, false), (true, false)]);
    }

    #[test]
    fn older_libraries_have_no_extensions_for_kernels() {
        let of = |version| capabilities(HeapKind::default(), version, None);
        let older = Capabilities { kernel_extensions: Support::Missing(NO_EXTENSIONS), ..CAPABILITIES };
        assert_eq!((of([3, 4, 5]), of([3, 8, 0])), (older, CAPABILITIES));
    }

    #[test]
    fn where_updates_of_gpus_get_lost_kernels_have_no_atomics() {
        let of = |loses_updates| {
            let can = capabilities(HeapKind { is_host: true, loses_updates }, [3, 8, 0], None);
            can.kernel_atomics.is_available()
        };
        assert_eq!((of(false), of(true)), (true, false));
    }
}
