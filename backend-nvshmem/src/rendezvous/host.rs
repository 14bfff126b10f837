//! [`Host`]: on which machine a PE runs. The library takes PEs whose hosts have one name for PEs of one node. Where they are on two
//! machines, it waits for memory that is not there, or fails without naming the cause. So PE 0 compares the hosts before that.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// What tells two machines apart. Each number is a part of a sum; 0: this system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    /// Of the host's name, which the library goes by.
    pub(super) name: u64,
    /// Of what only one running machine has, and of what the PEs of a node must share.
    pub(super) machine: u64,
}

impl Host {
    /// The host that this process is on.
    pub(super) fn here() -> Host {
        let read = |file: &str| fs::read(file).ok().filter(|text| !text.is_empty());
        let name = read("/proc/sys/kernel/hostname");
        let machine = read("/proc/sys/kernel/random/boot_id").map(|mut id| {
            id.extend(shared_memory().unwrap_or(0).to_le_bytes());
            id
        });
        let sum = |text: Option<Vec<u8>>| text.map_or(0, |text| sum(&text));
        Host { name: sum(name), machine: sum(machine) }
    }

    /// Whether the library would take both hosts for one node, although they are not.
    pub(super) fn is_mistaken_for(self, other: Host) -> bool {
        let known = ![self.name, self.machine, other.name, other.machine].contains(&0);
        known && self.name == other.name && self.machine != other.machine
    }
}

fn sum(text: &[u8]) -> u64 {
    let sum = Sha256::digest(text);
    u64::from_le_bytes(std::array::from_fn(|byte| sum[byte])).max(1)
}

/// The number of the file system that the symmetric heaps lie in, where they lie in memory of the host: PEs of a node share it.
#[cfg(unix)]
fn shared_memory() -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;

    let kind = std::env::var_os("NVSHMEM_HEAP_KIND")?;
    let is_on_host = kind.eq_ignore_ascii_case("SYSMEM");
    is_on_host.then(|| Path::new("/dev/shm").metadata().map(|found| found.dev()).ok())?
}

#[cfg(not(unix))]
fn shared_memory() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_on_two_machines_is_a_mistake() {
        let host = |name, machine| Host { name, machine };
        for (one, other, expected) in [
            (host(1, 1), host(1, 1), false),
            (host(1, 1), host(1, 2), true),
            (host(1, 1), host(2, 2), false),
            (host(1, 1), host(2, 1), false), // two nodes of namespaces
            (host(1, 0), host(1, 2), false),
            (host(0, 1), host(0, 2), false),
        ] {
            assert_eq!(
                (one.is_mistaken_for(other), other.is_mistaken_for(one)),
                (expected, expected),
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn a_process_knows_its_host() {
        assert_eq!(Host::here(), Host::here());
        if cfg!(target_os = "linux") {
            assert!(Host::here().name != 0 && Host::here().machine != 0, "{:?}", Host::here());
        }
    }
}
