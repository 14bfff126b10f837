//! `cargo run --release --bin bugs -- put_signal_by_hand`: what is found in a bug, or in its repaired twin.

use std::process::ExitCode;

use onesided::{Backend, Pe, Result, count};
use onesided_bugs::{Bug, Program as Run, all, simulated};
use onesided_harness::{Program, clap, main_with_options};

/// What stands behind the name of a repaired twin.
const FIXED: &str = "_fixed";

#[derive(clap::Args)]
struct Bugs {
    /// A bug, as examples/src/bugs/README.md lists them; with _fixed behind it, its repaired twin
    #[arg(value_parser = known)]
    name: String,
}

/// The name of a bug, or of a repaired twin.
fn known(name: &str) -> std::result::Result<String, String> {
    let stem = name.strip_suffix(FIXED).unwrap_or(name);
    let bugs = simulated();
    if bugs.iter().any(|bug| bug.name == stem) {
        return Ok(name.to_string());
    }
    let similar =
        bugs.iter().map(|bug| bug.name).filter(|bug| !stem.is_empty() && bug.contains(stem)).collect::<Vec<_>>();
    let similar = if similar.is_empty() { String::new() } else { format!("there is {}; ", similar.join(", ")) };
    Err(format!("there is no such bug; {similar}examples/src/bugs/README.md lists all"))
}

impl Bugs {
    /// The program of that name, and its number of PEs.
    fn find<B: Backend>(&self) -> Option<(Run<B>, usize)> {
        let (name, is_fixed) = match self.name.strip_suffix(FIXED) {
            Some(name) => (name, true),
            None => (self.name.as_str(), false),
        };
        let Bug { label, buggy, fixed, .. } = all().into_iter().find(|bug| bug.name == name)?;
        Some((if is_fixed { fixed } else { buggy }, label.pes))
    }
}

impl Program for Bugs {
    const NAME: &'static str = "bugs";
    const ABOUT: &'static str = "Runs a bug of the corpus, or its repaired twin.";
    const CHECKS: &'static str = "it read what the repaired program reads";
    const PES: usize = 2;

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        match self.find::<onesided_sim::Sim>() {
            Some((_, pes)) if pes != n_pes => Err(format!("{} is about {}: --pes {pes}", self.name, count(pes, "PE"))),
            _ => Ok(()),
        }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (program, _) = self.find().expect("the precondition holds");
        program(pe).map(|()| String::new())
    }
}

fn main() -> ExitCode {
    main_with_options::<Bugs>()
}
