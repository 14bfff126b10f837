//! Symmetric memory: made, initialized, given back.

mod freed_in_another_order;
mod freed_under_a_put;
mod freed_under_a_reduction;
mod initialized_too_late;
mod leaked_on_an_early_return;
mod sizes_differ;
mod team_kept_by_one;
mod unregistered_too_early;

crate::chapter! { "memory":
    freed_under_a_reduction,
    freed_under_a_put,
    unregistered_too_early,
    initialized_too_late,
    sizes_differ,
    freed_in_another_order,
    leaked_on_an_early_return,
    team_kept_by_one,
}
