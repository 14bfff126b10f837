//! The program is right in every order of events that NVSHMEM allows.

use exchange::Exchange;
use onesided::{Backend, Cmp, Pe, Result, SignalOp};
use onesided_harness::Program;
use onesided_sim::{Config, check_random, check_schedule, prove, refute};
use proptest::prelude::*;

#[test]
fn every_order_is_right() {
    let program = Exchange { elements: 2 };
    prove(2, |pe| program.run(pe));
}

#[test]
fn random_orders_of_more_pes_are_right() {
    let program = Exchange { elements: 9 };
    check_random(8, |pe| program.run(pe));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Each case runs in many orders. Its arguments tell it apart from others, so a failure's schedule replays this case only.
    #[test]
    fn messages_of_any_length_are_right(pairs in 1usize..4, elements in 1usize..20) {
        let program = Exchange { elements };
        let case = Config::pes(2 * pairs).with_arguments(&format!("{program:?}"));
        check_random(case, |pe| program.run(pe));
    }
}

/// A schedule that failed once, kept as a test of what was repaired.
#[test]
fn the_schedule_that_failed_passes_now() {
    let program = Exchange { elements: 2 };
    check_schedule("os2.4x1.spec.p4.r2a.none", |pe| program.run(pe));
}

/// As the program, but the signal can overtake the data.
fn unfenced(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, arrived) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.host().p(&data, 42, pe.my_pe() ^ 1)?;
    pe.host().signal_op(arrived.signal(0), 1, SignalOp::Set, pe.my_pe() ^ 1)?;
    pe.host().signal_wait_until(arrived.signal(0), Cmp::Eq, 1)?;
    pe.read(&data)?;
    pe.free(arrived)?;
    pe.free(data)
}

/// The tests here would notice a missing fence.
#[test]
fn a_missing_fence_is_found() {
    let run = refute(2, unfenced);
    assert_eq!(run.verdict.races[0].missing.call().0, "fence");
}
