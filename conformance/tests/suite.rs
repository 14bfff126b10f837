//! Every case on the simulator against its outcome files, as named tests: all schedules under each profile, random ones under
//! each, and the one in order.
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
const RANDOM: u64 = 100;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // Panics of PEs are outcomes of cases, and a failed test says why by itself.
    std::panic::set_hook(Box::new(|_| {}));
    let trials = cases::<Sim>().into_iter().enumerate().flat_map(|(index, case)| trials(index, &case.name)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials(index: usize, name: &str) -> Vec<Trial> {
    // A case cannot be cloned or shared: each test takes its own from a fresh list.
    let case = move || cases::<Sim>().swap_remove(index);
    let mut trials = vec![Trial::test(format!("{name} in order"), move || runs_in_order(&case()))];
    for profile in Profile::ALL {
        for (kind, schedules) in [("all", None), ("random", Some(RANDOM))] {
            let settings = move || Settings { profile, schedules, ..Settings::default() };
            trials.push(Trial::test(format!("{name} {profile} {kind}"), move || agrees(&case(), &settings())));
        }
    }
    trials
}

fn agrees(case: &Case<Sim>, settings: &Settings) -> Result<(), Failed> {
    let checked = check(case, settings);
    if checked.status == Status::Passed { Ok(()) } else { Err(checked.why.into()) }
}

/// What happens in order may happen under every profile.
fn runs_in_order(case: &Case<Sim>) -> Result<(), Failed> {
    for profile in Profile::ALL {
        let run = in_order(case, profile).map_err(|error| error.to_string())?;
        let outcome = outcome(&run);
        if !Settings::default().expected.read(&case.name, profile)?.contains(&outcome) {
            return Err(format!("in order, its outcome is {outcome}, which is not in its file of {profile}").into());
        }
    }
    Ok(())
}
