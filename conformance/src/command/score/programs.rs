//! Runs a program: one of the corpus on the simulator, or somebody else's by a command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::Duration;

use onesided_bugs::{Bug, Class, Program, simulated};
use onesided_harness::tool::finding::{of_fix, of_verdict};
use onesided_harness::tool::interrupt;
use onesided_show::Finding;
use onesided_sim::{Config, Effort, Explore, Run, Sim, Simulation};

use super::labels::Label;
use crate::processes;

/// What runs programs.
#[derive(Debug)]
pub(super) enum Runner {
    /// Those of the corpus, in this process.
    Corpus { programs: BTreeMap<String, Program<Sim>>, schedules: u64 },
    /// A command for each.
    Command { words: Vec<OsString>, limit: Duration },
}

/// Steps after which a run of the corpus is given up: its programs take some hundred, unless they poll.
const MAX_STEPS: u64 = 100_000;

impl Runner {
    pub(super) fn corpus(schedules: u64) -> Runner {
        let both =
            |Bug { name, buggy, fixed, .. }: Bug<Sim>| [(name.to_string(), buggy), (format!("{name}_fixed"), fixed)];
        Runner::Corpus { programs: simulated().into_iter().flat_map(both).collect(), schedules }
    }

    /// # Errors
    /// A sentence, if there is no command.
    pub(super) fn command(words: &[OsString], seconds: u64) -> Result<Runner, String> {
        match words {
            [] => {
                Err("no command behind --; it runs a program, whose name comes behind it or in the place of {}"
                    .to_string())
            }
            words => Ok(Runner::Command { words: words.to_vec(), limit: Duration::from_secs(seconds) }),
        }
    }

    /// What is found in a program; `None` if it is nothing.
    ///
    /// # Errors
    /// Why it could not be run.
    pub(super) fn run(&self, label: &Label, profile: &str) -> Result<Option<Finding>, String> {
        match self {
            Runner::Corpus { programs, schedules } => simulate(programs[&label.name], label, profile, *schedules),
            Runner::Command { words, limit } => call(words, label, profile, *limit),
        }
    }
}

/// Visits schedules of a program, the one in order first, up to a finding.
fn simulate(program: Program<Sim>, label: &Label, profile: &str, schedules: u64) -> Result<Option<Finding>, String> {
    let config = Config { profile: profile.parse()?, max_steps: Some(MAX_STEPS), ..Config::pes(label.pes) };
    let wrong = |error: onesided::Error| error.message().to_string();
    let mut simulation = Simulation::new(config).map_err(wrong)?;
    simulation.stop_when(interrupt::flag()); // the caller drops what was stopped
    let found = |simulation: &mut Simulation, run: &Run<()>| {
        let run = simulation.reproduce(run, program)?;
        let fixes = simulation.fix(&run, Effort::LITTLE, program)?;
        Ok(Finding { fix: fixes.fix.as_ref().map(of_fix), ..of_verdict(&run.verdict) })
    };
    let run = simulation.run(program).map_err(wrong)?;
    if run.has_finding() {
        return found(&mut simulation, &run).map(Some).map_err(wrong);
    }
    let mut finding = None;
    if schedules > 1 {
        let others = Explore::random(schedules - 1, 0);
        let visited = simulation.explore(others, program, |run| {
            if run.is_ok() || run.is_given_up() {
                return ControlFlow::Continue(());
            }
            finding = Some(run.without_results());
            ControlFlow::Break(())
        });
        visited.map_err(wrong)?;
    }
    finding.map(|run| found(&mut simulation, &run)).transpose().map_err(wrong)
}

/// Calls a command, and reads what it has found.
fn call(words: &[OsString], label: &Label, profile: &str, limit: Duration) -> Result<Option<Finding>, String> {
    let folder = tempfile::tempdir().map_err(|why| format!("no folder for its finding: {why}"))?;
    let file = folder.path().join("finding.json");
    let mut words = with_name(words, &label.name).into_iter();
    let mut command = Command::new(words.next().expect("there is a command"));
    command.args(words).args(["--pes", &label.pes.to_string(), "--profile", profile, "--finding"]).arg(&file);
    if label.class == Some(Class::Lint) {
        command.arg("--strict"); // only then a lint is a finding
    }
    let ended = processes::run([command], limit)?;
    let said = || reason(&ended.printed).unwrap_or("it printed nothing").to_string();
    match ended.status {
        Some(0 | 1 | 3) => {}
        Some(status) => return Err(format!("status {status}: {}", said())),
        None => return Err(format!("no end within {} s: {}", limit.as_secs(), said())),
    }
    match fs::read_to_string(&file) {
        Ok(text) => Finding::read("its finding", &text).map(Some),
        Err(_) if ended.status == Some(0) => Ok(None), // a tool that writes only what it finds
        Err(_) => Err(format!("status {} and no finding: {}", ended.status.unwrap_or_default(), said())),
    }
}

/// The words of a command for the program of that name.
fn with_name(words: &[OsString], name: &str) -> Vec<OsString> {
    let place = |word: &OsString| word.to_str().filter(|word| word.contains("{}")).map(|word| word.replace("{}", name));
    let mut named: Vec<OsString> = words.iter().map(|word| place(word).map_or(word.clone(), OsString::from)).collect();
    if words.iter().all(|word| place(word).is_none()) {
        named.push(name.into());
    }
    named
}

/// The line by which a program says why it has ended: an error, or the last one.
fn reason(printed: &str) -> Option<&str> {
    let lines = || printed.lines().filter(|line| !line.trim().is_empty());
    lines().find(|line| line.starts_with("error")).or_else(|| lines().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_program_ended_is_its_error_or_its_last_line() {
        let usage = "error: invalid value 'x'\n\nFor more information, try '--help'.\n";
        assert_eq!(reason(usage), Some("error: invalid value 'x'"));
        assert_eq!(reason("one\ntwo\n\n"), Some("two"));
        assert_eq!(reason("\n"), None);
    }

    #[test]
    fn a_name_stands_where_the_command_says() {
        let named = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            with_name(&words, "mp").into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(named(&["bugs"]), ["bugs", "mp"]);
        assert_eq!(named(&["cargo", "run", "--bin", "{}", "--"]), ["cargo", "run", "--bin", "mp", "--"]);
        assert_eq!(named(&["target/{}", "--name={}"]), ["target/mp", "--name=mp"]);
    }
}
