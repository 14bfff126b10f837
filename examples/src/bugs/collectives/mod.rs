//! Barriers, collectives and teams.

mod barrier_of_another_team;
mod broadcast_again;
mod broadcast_taken_for_barrier;
mod collective_skipped;
mod collectives_in_another_order;
mod counts_differ;
mod destination_zeroed_late;
mod dropped_barrier;
mod later_collective_first;
mod reduction_taken_for_quiet;
mod registration_taken_for_barrier;
mod split_taken_for_barrier;
mod team_members_disagree;
mod two_collectives_at_a_time;

crate::chapter! { "collectives":
    dropped_barrier,
    broadcast_again,
    destination_zeroed_late,
    reduction_taken_for_quiet,
    broadcast_taken_for_barrier,
    split_taken_for_barrier,
    registration_taken_for_barrier,
    barrier_of_another_team,
    collective_skipped,
    collectives_in_another_order,
    counts_differ,
    two_collectives_at_a_time,
    later_collective_first,
    team_members_disagree,
}
