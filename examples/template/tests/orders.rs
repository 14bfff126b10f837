//! The program is right in every order of events that NVSHMEM allows.

use exchange::Exchange;
use onesided_harness::Program;

#[test]
fn every_order_is_right() {
    let program = Exchange { elements: 2 };
    onesided_sim::prove(2, |pe| program.run(pe));
}

#[test]
fn random_orders_of_more_pes_are_right() {
    let program = Exchange { elements: 9 };
    onesided_sim::check_random(8, |pe| program.run(pe));
}

/// A schedule that failed once, kept as a test of what was repaired.
#[test]
fn the_schedule_that_failed_passes_now() {
    let program = Exchange { elements: 2 };
    onesided_sim::check_schedule("os2.4x1.spec.p4.r2a.none", |pe| program.run(pe));
}
