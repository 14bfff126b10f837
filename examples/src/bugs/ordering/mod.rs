//! What one PE sends to another, and in which order it arrives.

mod fence_across_targets;
mod fence_taken_for_completion;
mod flag_by_put;
mod flag_inside_the_data;
mod flush_taken_for_quiet;
mod get_behind_a_store;
mod get_without_barrier;
mod multicast_without_barrier;
mod peer_load_without_barrier;
mod peer_store_without_fence;
mod put_signal_by_hand;
mod quiet_of_the_reader;
mod signal_before_the_data;
mod signal_of_another_put;
mod sync_taken_for_barrier;
mod told_by_a_third_pe;
mod two_puts_to_one_address;

crate::chapter! { "ordering":
    put_signal_by_hand,
    two_puts_to_one_address,
    flag_by_put,
    flag_inside_the_data,
    signal_of_another_put,
    signal_before_the_data,
    fence_taken_for_completion,
    fence_across_targets,
    told_by_a_third_pe,
    sync_taken_for_barrier,
    quiet_of_the_reader,
    flush_taken_for_quiet,
    get_without_barrier,
    peer_store_without_fence,
    peer_load_without_barrier,
    get_behind_a_store,
    multicast_without_barrier,
}
