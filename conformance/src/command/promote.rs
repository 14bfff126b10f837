//! `onesided suite --promote`: writes outcome files. What it wrote is then reviewed, as code is.

use std::process::ExitCode;

use onesided_harness::say;
use onesided_harness::tool::interrupt;
use onesided_sim::{Explore, Profile, Sim};

use crate::case::Case;
use crate::expected::Folder;
use crate::outcome::{self, LIMIT};

/// Writes the file of each case from all its schedules. Status 1 if that was impossible for one of them.
pub(super) fn run(cases: &[Case<Sim>], expected: &Folder) -> Result<ExitCode, String> {
    let mut refused = 0;
    for case in cases {
        if interrupt::is_wanted() {
            return Ok(interrupt::status());
        }
        let name = &case.name;
        match outcome::visit(case, Profile::Spec, Explore::All { limit: LIMIT }) {
            Ok(visited) if visited.complete => {
                let what = if expected.write(case, &visited)? { "written" } else { "unchanged" };
                say!("{what}  {name}: {} outcomes of {} schedules", visited.outcomes.len(), visited.schedules);
            }
            Ok(visited) => {
                refused += 1;
                say!("REFUSED  {name}: {} schedules were not all", visited.schedules);
            }
            Err(why) => {
                refused += 1;
                say!("REFUSED  {name}: {why}");
            }
        }
    }
    say!("{} files in {}", cases.len() - refused, expected.path().display());
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
