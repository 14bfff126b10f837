//! What is proposed for bugs in kernels, at lines of the kernels.

use onesided_bugs::simulated;
use onesided_sim::{Config, Effort, Simulation};

/// Bugs of the chapter about kernels that one or two changes of the kernel repair, with what is proposed. The others need another protocol, or are
/// mistakes of their own, such as a barrier in a branch.
const FIXES: [(&str, &str); 17] = [
    ("put_then_signal", "insert `nvshmem_fence` after put_then_signal.cu:10: proved; nothing weaker is enough"),
    (
        "signal_before_the_block",
        "insert `__syncthreads` after signal_before_the_block.cu:10: proved; nothing weaker is enough",
    ),
    (
        "read_before_the_waiter",
        "insert `__syncthreads` before read_before_the_waiter.cu:13: proved; nothing weaker is enough",
    ),
    ("sync_for_barrier", "insert `nvshmem_quiet` after sync_for_barrier.cu:9: proved; nothing weaker is enough"),
    ("source_overwritten", "insert `nvshmemx_flush` after source_overwritten.cu:8: proved; nothing weaker is enough"),
    ("get_nbi_used_early", "insert `nvshmem_quiet` after get_nbi_used_early.cu:8: proved; nothing weaker is enough"),
    (
        "slot_filled_again",
        "insert `nvshmem_sync_all` after the condition of slot_filled_again.cu:12: proved; nothing weaker is enough",
    ),
    (
        "polled_by_a_volatile_load",
        "`nvshmem_signal_fetch` in place of the load at polled_by_a_volatile_load.cu:12: proved; nothing weaker is enough",
    ),
    (
        "polled_behind_a_fence",
        "`nvshmem_signal_fetch` in place of the load at polled_behind_a_fence.cu:10: proved; nothing weaker is enough",
    ),
    (
        "fence_behind_the_barrier",
        "insert `__threadfence_system` after fence_behind_the_barrier.cu:16: proved; nothing weaker is enough",
    ),
    (
        "fence_of_the_block",
        "the scope of the GPU in place of the narrower one at fence_of_the_block.cu:11, and the scope of the GPU in place of the narrower one at fence_of_the_block.cu:15: proved",
    ),
    (
        "read_only_load",
        "a plain load in place of the read-only one at read_only_load.cu:14: proved; nothing weaker is enough",
    ),
    (
        "waited_for_the_source",
        "insert `cp.async.bulk.wait_group 0` after waited_for_the_source.cu:14: proved; nothing weaker is enough",
    ),
    (
        "atomic_within_the_gpu",
        "the scope of the system in place of the narrower one at atomic_within_the_gpu.cu:10: proved; nothing weaker is enough",
    ),
    (
        "fetched_without_a_fence",
        "insert `__threadfence_system` after fetched_without_a_fence.cu:11: proved; nothing weaker is enough",
    ),
    (
        "copied_without_a_fence",
        "insert `fence.proxy.async.shared::cta` after copied_without_a_fence.cu:21: proved; nothing weaker is enough",
    ),
    ("tile_read_early", "insert `__syncthreads` after tile_read_early.cu:10: proved; nothing weaker is enough"),
];

#[test]
fn bugs_in_kernels_are_repaired_at_their_lines() {
    let mut found = Vec::new();
    for bug in simulated().into_iter().filter(|bug| bug.file.starts_with("kernels/")) {
        let mut simulation = Simulation::new(Config::pes(bug.label.pes)).unwrap();
        let run = simulation.run(bug.buggy).unwrap();
        if let Some(fix) = simulation.fix(&run, Effort::LITTLE, bug.buggy).unwrap().fix {
            found.push((bug.name, fix.to_string()));
        }
    }
    let found: Vec<(&str, &str)> = found.iter().map(|(name, fix)| (*name, fix.as_str())).collect();
    assert_eq!(found, FIXES);
}
