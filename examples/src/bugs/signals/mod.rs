//! Signals, counters, waits, and barriers made of them.

mod barrier_used_twice;
mod barrier_without_fence;
mod both_wait_first;
mod counter_of_chunks;
mod equality_wait_overtaken;
mod equality_wait_passed;
mod flag_not_zeroed;
mod flag_of_the_last_round;
mod flag_reset_too_late;
mod one_flag_for_two_senders;
mod polled_by_read;
mod put_to_a_signal;
mod signal_read_plainly;
mod signal_waited_for_plainly;
mod signal_zeroed_after_arrival;
mod team_rank_taken_for_a_pe;
mod wrong_flag;

crate::chapter! { "signals":
    counter_of_chunks,
    barrier_without_fence,
    barrier_used_twice,
    flag_reset_too_late,
    signal_zeroed_after_arrival,
    signal_waited_for_plainly,
    flag_of_the_last_round,
    flag_not_zeroed,
    wrong_flag,
    one_flag_for_two_senders,
    put_to_a_signal,
    signal_read_plainly,
    polled_by_read,
    equality_wait_passed,
    equality_wait_overtaken,
    both_wait_first,
    team_rank_taken_for_a_pe,
}
