//! A program in an ordinary test: [`prove`], [`check_random`], [`check_schedule`] and [`refute`] panic with the whole explanation.

mod checks;
mod settings;

use onesided::{Error, Pe, Result};

use crate::config::Config;
use crate::pe::Sim;
use crate::schedule::Schedule;
use crate::search::Explored;
use crate::simulation::Run;
use checks::replay;
use settings::{Settings, from_environment};

/// Proves that a program is right: no schedule of this cluster fails. Of equivalent schedules, it visits one.
///
/// The cluster is a number of PEs, or a [`Config`]. What was proved is printed; `cargo test` shows it with `-- --nocapture`.
///
/// ```
/// use onesided::{Backend, Pe, Result, expect_eq};
///
/// fn count(pe: &Pe<impl Backend>) -> Result<()> {
///     let counter = pe.alloc_zeroed::<u64>(1)?;
///     pe.host().atomic_inc(&counter, 0)?;
///     pe.host().barrier_all()?;
///     expect_eq(pe.host().g(&counter, 0)?, pe.n_pes() as u64, "the counter")?;
///     pe.free(counter)
/// }
///
/// // #[test]
/// fn the_count_is_right_in_every_order() {
///     onesided_sim::prove(3, count);
/// }
/// # the_count_is_right_in_every_order();
/// ```
///
/// Variables of the environment change what tests do, without a change of the tests:
///
/// | variable | |
/// |---|---|
/// | `ONESIDED_SCHEDULES` | how many schedules `prove` begins at most (100,000), and how many `check_random` visits (1,000) |
/// | `ONESIDED_TIME` | seconds for each call of `prove` and `check_random`. Without `ONESIDED_SCHEDULES`, it replaces the number of schedules |
/// | `ONESIDED_SEED` | where the random schedules start (0) |
/// | `ONESIDED_REPLAY` | a schedule. A call for its cluster and program runs only that one, and prints what happens, event by event |
///
/// The fingerprint of a schedule tells its program from others. Tests that it does not fit run as usual, and print why: so it can stand before a `cargo test`
/// of everything. A schedule without a fingerprint (`none`) fits every program of its cluster in which its choices are possible.
///
/// **In a property test**, each generated case is another program. Tell them apart by [`Config::with_arguments`]: a failure's schedule names
/// its case, and `ONESIDED_REPLAY` passes over the others.
///
/// ```
/// # use onesided::{Backend, Pe, Result};
/// # fn exchange(pe: &Pe<impl Backend>, elements: usize) -> Result<()> {
/// #     let buffer = pe.alloc::<u32>(elements)?;
/// #     pe.free(buffer)
/// # }
/// use onesided_sim::{Config, prove};
/// use proptest::prelude::*;
///
/// proptest! {
///     #![proptest_config(ProptestConfig::with_cases(8))]
///     // #[test]
///     fn any_number_of_elements_arrives(pes in 2usize..4, elements in 1usize..9) {
///         prove(Config::pes(pes).with_arguments(&format!("{elements}")), |pe| exchange(pe, elements));
///     }
/// }
/// # any_number_of_elements_arrives();
/// ```
///
/// # Panics
/// When a schedule fails, with what every PE was doing and the command that replays it. When the search is not complete, with
/// what bounded it. When a variable of the environment cannot be read.
#[track_caller]
pub fn prove<T>(cluster: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Explored {
    settle(Settings::new(&from_environment).and_then(|settings| settings.prove(cluster.into(), &program)))
}

/// Checks a program in order and on random schedules: for programs and clusters that are too large for [`prove`].
///
/// The environment is that of [`prove`].
///
/// ```
/// # use onesided::{Backend, Pe, Result};
/// # fn program(pe: &Pe<impl Backend>) -> Result<()> { pe.host().barrier_all() }
/// use onesided_sim::{Config, check_random};
///
/// // #[test]
/// fn it_is_right_on_two_nodes() {
///     check_random(Config { pes: 16, nodes: 2, ..Config::default() }, program);
/// }
/// # it_is_right_on_two_nodes();
/// ```
///
/// # Panics
/// When a schedule fails or is given up at a limit, as [`prove`].
#[track_caller]
pub fn check_random<T>(cluster: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Explored {
    settle(Settings::new(&from_environment).and_then(|settings| settings.check_random(cluster.into(), &program)))
}

/// Shows that a program fails: a test of a bug, or of what a test would notice. Returns a run that fails, recorded.
///
/// The schedule in order comes first, then all of them, then random ones, up to the first that fails.
///
/// ```
/// use onesided::{Backend, Cmp, Pe, Result, SignalOp};
/// use onesided_sim::{VerdictKind, refute};
///
/// /// Without a fence, the signal can overtake the data.
/// fn message(pe: &Pe<impl Backend>) -> Result<()> {
///     let (data, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
///     if pe.my_pe() == 0 {
///         pe.host().p(&data, 42, 1)?;
///         pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
///     } else {
///         pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
///         pe.read(&data)?;
///     }
///     pe.free(flag)?;
///     pe.free(data)
/// }
///
/// // #[test]
/// fn the_fence_is_needed() {
///     let run = refute(2, message);
///     assert!(matches!(run.verdict.kind, VerdictKind::Race));
///     assert_eq!(run.verdict.races[0].missing.call().0, "fence");
/// }
/// # the_fence_is_needed();
/// ```
///
/// The environment is that of [`prove`], but for `ONESIDED_REPLAY`, which changes nothing here.
///
/// # Panics
/// When none of the visited schedules fails. A run that is given up at a limit does not count as a failure. Also when the first failure is an
/// operating error ([`Error::is_operating`]), which is no bug.
#[track_caller]
pub fn refute<T>(cluster: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Run<T> {
    settle(Settings::new(&from_environment).and_then(|settings| settings.refute(&cluster.into(), &program)))
}

/// Runs one schedule of a program: one that failed once, kept as a test of what was repaired.
///
/// The schedule contains its cluster. End it with `none` in place of the fingerprint, because the repaired program has another fingerprint.
///
/// ```
/// # use onesided::{Backend, Pe, Result};
/// # fn program(pe: &Pe<impl Backend>) -> Result<()> { pe.host().barrier_all() }
/// // #[test]
/// fn the_schedule_that_failed_passes_now() {
///     onesided_sim::check_schedule("os2.4x1.spec.p4.r2a.none", program);
/// }
/// # the_schedule_that_failed_passes_now();
/// ```
///
/// # Panics
/// When the schedule fails, or is not one of this program.
#[track_caller]
pub fn check_schedule<T>(schedule: &str, program: impl Fn(&Pe<Sim>) -> Result<T>) {
    settle(schedule.parse().map_err(|error: Error| error.message().to_string()).and_then(|schedule: Schedule| {
        let config = Config { arguments: schedule.arguments, ..schedule.configure(&Config::default()) };
        let run = replay(&schedule, &config, &program)?;
        if run.is_ok() { Ok(()) } else { Err(format!("{}\n\nSchedule: {}", run.verdict, run.schedule)) }
    }));
}

/// The result, or a panic at the line of the test.
#[track_caller]
fn settle<T>(result: std::result::Result<T, String>) -> T {
    match result {
        Ok(result) => result,
        Err(why) => panic!("{why}"), // not in a closure, which would be the panic's place
    }
}
