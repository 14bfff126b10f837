//! How many stacks a process can have: an operating system limits the number of a process's memory mappings.

/// Mappings of a stack: its pages, and the guard page below them.
const OF_A_STACK: usize = 2;

/// Of so many cores, those that can each have a cluster of `pes` PEs: their stacks take half of the mappings at most, and leave
/// the others to memory. One core always remains.
pub(crate) fn cores_that_fit(cores: usize, pes: usize) -> usize {
    most().map_or(cores, |most| fitting(cores, pes, most))
}

fn fitting(cores: usize, pes: usize, most: usize) -> usize {
    cores.min(most / 2 / (OF_A_STACK * pes)).max(1)
}

/// What helps where there was no memory for another stack.
pub(crate) fn advice() -> String {
    match most() {
        Some(most) => format!(
            "; take fewer PEs, or raise the number of memory mappings that Linux allows a process (sysctl vm.max_map_count, now \
             {most}): each stack takes {OF_A_STACK}"
        ),
        None => "; take fewer PEs, or smaller stacks".to_string(),
    }
}

/// The most mappings that this process may have, where that is limited.
fn most() -> Option<usize> {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_for_each_core_fits_or_there_are_fewer_cores() {
        for (cores, pes, fits) in [(64, 4, 64), (64, 256, 63), (64, 1000, 16), (64, 4096, 3), (2, 32_000, 1), (1, 1, 1)]
        {
            assert_eq!(fitting(cores, pes, 65_530), fits, "{pes} PEs on {cores} cores");
        }
    }
}
