//! `onesided suite --promote`: writes outcome files. What it wrote is then reviewed, as code is.

use std::process::ExitCode;

use onesided::count;
use onesided_harness::say;
use onesided_harness::tool::interrupt;
use onesided_sim::{Explore, Profile, Sim};

use crate::case::Case;
use crate::expected::Folder;
use crate::outcome::{self, LIMIT};

/// Writes the files of each case from all its schedules under each profile. Status 1 if that was impossible for one of them.
pub(super) fn run(cases: &[Case<Sim>], expected: &Folder) -> Result<ExitCode, String> {
    let mut refused = 0;
    for case in cases {
        for profile in Profile::ALL {
            if interrupt::is_wanted() {
                return Ok(interrupt::status());
            }
            match write(case, profile, expected) {
                Ok(line) => say!("{line}"),
                Err(why) => {
                    refused += 1;
                    say!("REFUSED  {}, profile {profile}: {why}", case.name);
                }
            }
        }
    }
    let whole = count(cases.len(), "case");
    say!(
        "{whole} under {} profiles, {refused} refused; the files are in {}",
        Profile::ALL.len(),
        expected.path().display()
    );
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Writes the file of a case under one profile. What was done, in a line.
fn write(case: &Case<Sim>, profile: Profile, expected: &Folder) -> Result<String, String> {
    let visited = outcome::visit(case, profile, Explore::All { limit: LIMIT }).map_err(|error| error.to_string())?;
    let schedules = count(visited.schedules, "schedule");
    if !visited.complete {
        return Err(format!("{schedules} were not all"));
    }
    let what = if expected.write(case, profile, &visited)? { "written" } else { "unchanged" };
    let outcomes = count(visited.outcomes.len(), "outcome");
    Ok(format!("{what}  {}: {outcomes} of {schedules}", expected.name(&case.name, profile)))
}
