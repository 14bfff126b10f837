//! Every case on the simulator against its outcome file, as named tests: all schedules, random ones, the one in order,
//! and all under a profile that promises more.
//!
//! ```text
//! cargo test --test suite                    all
//! cargo test --test suite litmus/mp_fenced   those of one case
//! ```

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use onesided_conformance::case::Case;
use onesided_conformance::check::{Settings, Status, check};
use onesided_conformance::outcome::{in_order, outcome};
use onesided_conformance::suite::cases;
use onesided_sim::{Profile, Sim};

/// Random schedules of each case: few, because the exhaustive search is the test; enough to show that both agree.
const RANDOM: u64 = 500;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // Panics of PEs are outcomes of cases, and a failed test says why by itself.
    std::panic::set_hook(Box::new(|_| {}));
    let trials = cases::<Sim>().into_iter().enumerate().flat_map(|(index, case)| trials(index, &case.name)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials(index: usize, name: &str) -> [Trial; 4] {
    let trial = |kind: &str, test: fn(&Case<Sim>) -> Result<(), Failed>| {
        // A case cannot be cloned or shared: each test takes its own from a fresh list.
        let run = move || test(&cases::<Sim>()[index]);
        Trial::test(format!("{name} {kind}"), run)
    };
    [
        trial("all", |case| agrees(case, &Settings::default())),
        trial("random", |case| agrees(case, &Settings { schedules: Some(RANDOM), ..Settings::default() })),
        trial("nvlink", |case| agrees(case, &Settings { profile: Profile::Nvlink, ..Settings::default() })),
        trial("in order", runs_in_order),
    ]
}

fn agrees(case: &Case<Sim>, settings: &Settings) -> Result<(), Failed> {
    let checked = check(case, settings);
    if checked.status == Status::Passed { Ok(()) } else { Err(checked.why.into()) }
}

fn runs_in_order(case: &Case<Sim>) -> Result<(), Failed> {
    let expected = Settings::default().expected.read(&case.name)?;
    let run = in_order(case, Profile::Spec).map_err(|error| error.to_string())?;
    let outcome = outcome(&run);
    if expected.contains(&outcome) {
        return Ok(());
    }
    Err(format!("in order, its outcome is {outcome}, which is not in its file").into())
}
