//! Counters, locks and queues in another PE's memory.

mod counter_read_early;
mod counter_without_atomics;
mod lock_at_another_pe;
mod lock_without_fence;
mod queue_slot_not_filled;
mod reset_overtakes_add;
mod winner_by_put;

crate::chapter! { "atomics":
    counter_without_atomics,
    counter_read_early,
    winner_by_put,
    queue_slot_not_filled,
    lock_without_fence,
    lock_at_another_pe,
    reset_overtakes_add,
}
