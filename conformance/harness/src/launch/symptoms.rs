//! What some lines of NVSHMEM and UCX mean. Their words name what failed inside of the library, not what a user can change.

/// The cause of the two lines about GDRCopy, one of each tested version.
const NO_GDRCOPY: &str = "the network transport found no GDRCopy: start the PEs with --fabric, which brings a stand-in, or install GDRCopy with \
     its driver";

/// What a line has in it, and what it means: the cause, then the remedy.
const SYMPTOMS: [(&str, &str); 10] = [
    (
        "Connection reset by remote peer",
        "a PE that this one talked to over the network is gone: see how the other PEs ended, and what they wrote last",
    ),
    ("Endpoint timeout", "a PE that this one talked to over the network does not answer: see what the other PEs do"),
    (
        "Failed to create shared memory slab",
        "PEs of different nodes take each other for PEs of one node: give each node a host name and a /dev/shm of its own (two \
         containers may have been started with one of both)",
    ),
    ("unsupported without a GPU CPU mapping", NO_GDRCOPY),
    ("GDRCopy Disabled", NO_GDRCOPY),
    (
        "stand-in for GDRCopy",
        "the symmetric heap, or registered memory, is on the GPU, where only the real GDRCopy reaches it: set \
         NVSHMEM_HEAP_KIND=SYSMEM",
    ),
    (
        "libucp.so.0: cannot open shared object file",
        "UCX is not on LD_LIBRARY_PATH: start the PEs with --fabric, or install the Python package libucx-cu13",
    ),
    (
        "Unable to initialize any transports",
        "NVSHMEM has no way between its PEs: `onesided doctor` says which parts of a network are missing, and NVSHMEM_DEBUG=INFO \
         why the library took none",
    ),
    (
        "nvshmem detect topo failed",
        "NVSHMEM looked for a network device and found none that it can use: on one machine it needs none, so set \
         NVSHMEM_REMOTE_TRANSPORT=none",
    ),
    (
        "no address is available to connect",
        "UCX found no network between the PEs: see UCX_TLS, which needs tcp, and UCX_NET_DEVICES",
    ),
];

/// What a line of a PE means, if it is known.
#[doc(hidden)]
pub fn meaning(line: &str) -> Option<&'static str> {
    SYMPTOMS.iter().find(|(words, _)| line.contains(words)).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_says_is_told_in_words_of_its_user() {
        let said = "[1795318720.9] [vm:592 :0] ucp_worker.c:725 UCX ERROR Connection reset by remote peer";
        assert!(meaning(said).unwrap().starts_with("a PE that this one talked to"));
        assert!(
            meaning("init.cu:1034: non-zero status: 27 nvshmem detect topo failed ")
                .unwrap()
                .ends_with("TRANSPORT=none")
        );
        assert!(meaning("transport.cpp:363: Unable to initialize any transports. returning error.").is_some());
        assert_eq!(meaning("WARN: something else"), None);
    }
}
