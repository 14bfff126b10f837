//! Random programs: how many are checked, and which, the environment can ask for.

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult, TestRunner};

/// A number from the environment.
pub(crate) fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

/// Checks so many programs, `REFERENCE_TIMES` times over, from a seed that `REFERENCE_SEED` replaces. The smallest that fails is printed. Returns how
/// many were checked.
#[track_caller]
pub(crate) fn check_all<S: Strategy>(
    programs: S,
    cases: u32,
    seed: u64,
    check: impl Fn(S::Value) -> TestCaseResult,
) -> u32 {
    let cases = cases * asked("REFERENCE_TIMES", 1) as u32;
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(asked("REFERENCE_SEED", seed)),
        max_shrink_iters: 4_000,
        ..ProptestConfig::default()
    };
    if let Err(error) = TestRunner::new(config).run(&programs, check) {
        panic!("{error}");
    }
    cases
}
