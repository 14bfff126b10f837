//! `onesided hardware`: everything that needs a GPU, step by step, each with a limit of time; `ci/hardware` calls it.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | the options; runs the steps of each part, with each library |
//! | `parts.rs`, `mistakes.rs` | which steps the parts have |
//! | `step.rs` | [`Step`]: what is run, and what must come of it |
//! | `record.rs` | what became of the steps: lines, counts, the report |

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

use onesided_harness::launch::{self, Fabric, FabricOptions, Mps, Sharing, free_port, is_program, on_path};
use onesided_harness::say;
use onesided_harness::tool::command::failed;
use onesided_harness::tool::interrupt;
use onesided_harness::tool::number::whole;
use onesided_harness::tool::output::Output;
use onesided_nvshmem::Key;
use serde::Deserialize;

use crate::processes::{self, Ended};
use parts::{Part, Rig};
use record::{Head, Record};
use step::{Launcher, Outcome, Shown, Step, Task, typed};

mod mistakes;
mod parts;
mod record;
mod step;

/// How long the doctor may take.
const DOCTOR: Duration = Duration::from_secs(120);
/// How many lines are shown of the output of a step that failed.
const TAIL: usize = 40;
/// The variable that names the library to use.
const LIBRARY: &str = "ONESIDED_NVSHMEM_LIB";

const AFTER: &str = "\
With one GPU, PEs share it under CUDA's multi-process service. Every command has a limit of time. The last lines are one \
for each step, and `N passed, N failed, N not run`.\n\n\
Exit status: 0 if something ran and nothing failed, or if there is no GPU; 1 if a step failed, or if there is no GPU with \
--require-hardware; 2 if it could not run; 130 and 143 if Ctrl-C or SIGTERM ended it, with what was done until then in a \
report of its own.";

/// What `onesided hardware` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Options {
    /// The folder with the programs; an `onesided` with MPI lies in DIR/mpi [default: $ONESIDED_BINARIES, or
    /// this program's]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// NVSHMEM's library to use, instead of the one that is found; may be repeated
    #[arg(long = "library", value_name = "DIR")]
    libraries: Vec<PathBuf>,
    /// Where the JSON reports go
    #[arg(long, value_name = "DIR", default_value = "conformance/reports")]
    reports: PathBuf,
    /// The folder with the sources of this project: its examples, expected outcomes and scripts
    #[arg(long, value_name = "DIR", default_value = ".")]
    sources: PathBuf,
    /// Run only this part; may be repeated
    #[arg(long, value_name = "PART", value_enum)]
    only: Vec<Part>,
    /// Run only this example; may be repeated
    #[arg(long, value_name = "NAME")]
    example: Vec<String>,
    /// Spread PEs over N nodes, made of namespaces of this machine [default: 1; with --fabric mixed: 2]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1000))]
    nodes: Option<usize>,
    /// How PEs of several nodes share a GPU [default: those of a node, where they have to, under a service of the node]
    #[arg(long, value_enum, value_name = "HOW")]
    mps: Option<Sharing>,
    #[command(flatten)]
    fabric: FabricOptions,
    /// Fail where there is no GPU, instead of saying `not run`
    #[arg(long)]
    require_hardware: bool,
    /// Cases of the suite [default: all]
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    interrupt::watch();
    try_run(options).unwrap_or_else(failed)
}

fn try_run(options: &Options) -> Result<ExitCode, String> {
    let mut run = Run::new(options)?;
    let libraries: Vec<Option<PathBuf>> = match options.libraries.as_slice() {
        [] => vec![None],
        several => several.iter().map(|library| absolute(library).map(Some)).collect::<Result<_, _>>()?,
    };
    for library in libraries {
        run.library = library;
        let machine = run.look();
        if interrupt::is_wanted() {
            return Ok(interrupt::status());
        }
        let machine = machine?;
        if machine.gpus.is_empty() {
            say!("not run: no GPU");
            return Ok(ExitCode::from(u8::from(options.require_hardware)));
        }
        if let Some(status) = run.with_library(&machine)? {
            return Ok(status);
        }
    }
    say!("\n{}", run.record.summary());
    Ok(ExitCode::from(u8::from(!run.record.is_well())))
}

/// The part of the doctor's report (`onesided-doctor/1`) that is needed here.
#[derive(Debug, Deserialize)]
struct Machine {
    driver: Option<String>,
    cuda: Option<String>,
    gpus: Vec<String>,
    library: Option<String>,
}

/// A run, with its options and its record.
struct Run<'a> {
    options: &'a Options,
    binaries: PathBuf,
    date: String,
    parts: Vec<Part>,
    /// The library in use, if the user named one.
    library: Option<PathBuf>,
    /// The key of PEs that another launcher starts.
    key: Key,
    /// The multi-process service for those PEs, once they need it.
    mps: Option<Mps>,
    folder: tempfile::TempDir,
    record: Record,
    fabric: Fabric,
    nodes: usize,
    /// What a network takes, for programs that start their own PEs or are started by another launcher. On several nodes there
    /// are no such programs.
    network: launch::Rig,
}

impl<'a> Run<'a> {
    fn new(options: &'a Options) -> Result<Run<'a>, String> {
        let named = std::env::var_os("ONESIDED_BINARIES").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let binaries = match options.binaries.clone().or(named) {
            Some(folder) => absolute(&folder)?,
            None => {
                let me =
                    std::env::current_exe().map_err(|why| format!("this program does not know its file: {why}"))?;
                me.parent().unwrap_or(Path::new("/")).to_path_buf()
            }
        };
        let onesided = binaries.join("onesided");
        if !is_program(&onesided) {
            let onesided = onesided.display();
            return Err(format!("no program {onesided}: name the folder with --binaries, or build it"));
        }
        let parts = if options.only.is_empty() { all_parts() } else { options.only.clone() };
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let folder = tempfile::tempdir().map_err(|why| format!("no folder for the time of this run: {why}"))?;
        let key = Key::random().map_err(|problem| problem.to_string())?;
        let date = date[..10].to_string();
        let record = Record::default();
        let (fabric, nodes) = options.fabric.shape(options.nodes)?;
        let network = launch::Rig::default();
        Ok(Run {
            options,
            binaries,
            date,
            parts,
            library: None,
            key,
            mps: None,
            folder,
            record,
            fabric,
            nodes,
            network,
        })
    }

    /// Asks the doctor in a process of its own, because a process can open one library only.
    fn look(&self) -> Result<Machine, String> {
        let file = self.folder.path().join("doctor.json");
        let mut doctor = Command::new(self.binaries.join("onesided"));
        doctor.arg("doctor").arg("--json").arg(&file);
        doctor.envs(self.library.iter().map(|library| (LIBRARY, library)));
        let Ended { status, printed, .. } = processes::run([doctor], DOCTOR)?;
        let text = fs::read_to_string(&file).map_err(|why| why.to_string());
        let found = text.and_then(|text| serde_json::from_str(&text).map_err(|why| why.to_string()));
        found.map_err(|why| {
            let status =
                status.map_or("did not end in time".to_string(), |status| format!("ended with status {status}"));
            format!("the doctor {status}, and its report cannot be read: {why}\n{}", tail(&printed, TAIL))
        })
    }

    /// Runs all parts with one library, and writes the report. Returns the exit status, if the user ended the run.
    fn with_library(&mut self, machine: &Machine) -> Result<Option<ExitCode>, String> {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_string());
        let head = Head {
            schema: "onesided-hardware/1",
            library: or_unknown(&machine.library),
            device: device(&machine.gpus),
            fabric: self.fabric.to_string(),
            nodes: self.nodes,
            driver: or_unknown(&machine.driver),
            cuda: or_unknown(&machine.cuda),
            date: self.date.clone(),
        };
        let sources = &self.options.sources;
        if !sources.is_dir() {
            return Err(format!("there is no folder {}: name that of the sources with --sources", sources.display()));
        }
        let reports = &self.options.reports;
        fs::create_dir_all(reports).map_err(|why| format!("cannot make the folder {}: {why}", reports.display()))?;
        let rig = Rig {
            binaries: self.binaries.clone(),
            sources: sources.clone(), // as it was given: what the suite says of a file gets into its report
            reports: absolute(reports)?,
            suffix: format!("-{}-{}{}-{}", head.library, head.device, self.in_names(), head.date),
            date: self.date.clone(),
            gpus: machine.gpus.len(),
            no_slurm: parts::no_slurm(),
            has_mpirun: on_path("mpirun", &[]).next().is_some(),
            patterns: self.options.patterns.clone(),
            chosen_examples: self.options.example.clone(),
            fabric: self.fabric,
            nodes: self.nodes,
            words: self.words(),
            sharing: self.options.mps,
        };
        if self.fabric == Fabric::Network && self.nodes == 1 {
            let options = FabricOptions { library: self.library.clone(), ..self.options.fabric.clone() };
            self.network = launch::Rig::prepare(&options, None)?;
            self.network.notes().iter().for_each(|note| say!("note: {note}"));
        }
        let only: Vec<String> = self.options.only.iter().map(|part| format!("-{}", part.name())).collect();
        let chosen = [&self.options.patterns[..], &self.options.example].concat();
        let name = format!("steps{}{}{}", only.concat(), "{}", parts::cases(&chosen));
        let report = |name: &str| rig.reports.join(format!("{name}{}.json", rig.suffix));
        // Errors come now, not after hours.
        let tasks: Vec<(Part, Vec<Task>)> = self
            .parts
            .iter()
            .map(|&part| Ok((part, part.tasks(&rig, &mut free_port)?)))
            .collect::<Result<_, String>>()?;
        let output = Output::prepare(&report(&name.replace("{}", "")))?;

        say!("\n=== NVSHMEM {}, {}{}", head.library, head.device, self.in_names().replace('-', " "));
        for (part, tasks) in tasks {
            say!("\n--- {}", part.name());
            for task in tasks {
                self.perform(task, &head.library);
                if interrupt::is_wanted() {
                    drop(output); // a partial run does not replace the report of a whole one
                    let why = Some("the user ended the run".to_string());
                    say!("{}", self.record.add("the rest", &head.library, Outcome::NotRun, 0, why));
                    self.write(Output::prepare(&report(&name.replace("{}", "-interrupted")))?, &head)?;
                    return Ok(Some(interrupt::status()));
                }
            }
        }
        self.write(output, &head)?;
        Ok(None)
    }

    /// The fabric in the names of reports.
    fn in_names(&self) -> String {
        match (self.fabric, self.nodes) {
            (Fabric::P2p, _) => String::new(),
            (fabric, 1) => format!("-{fabric}"),
            (fabric, nodes) => format!("-{fabric}-{nodes}nodes"),
        }
    }

    /// The fabric in the words of a command line.
    fn words(&self) -> Vec<OsString> {
        let mut words = self.options.fabric.words();
        if self.nodes > 1 {
            words.extend(["--nodes".into(), self.nodes.to_string().into()]);
        }
        words
    }

    fn write(&mut self, output: Output, head: &Head) -> Result<(), String> {
        output.finish(|out| self.record.report(out, head))
    }

    /// Runs a step, prints how it went, and records it. A step that the user ended is not recorded.
    fn perform(&mut self, task: Task, library: &str) {
        let step = match task {
            Task::NotRun { name, why } => {
                return say!("{}", self.record.add(&name, library, Outcome::NotRun, 0, Some(why)));
            }
            Task::Run(step) => step,
        };
        let typed = step.commands.iter().map(typed).collect::<Vec<_>>().join("\n");
        let name = step.name.clone();
        let (ended, outcome, why, shows) = match self.start(step) {
            Err(why) => {
                say!("{}", self.record.add(&name, library, Outcome::Failed, 0, Some(why)));
                return;
            }
            Ok(done) => done,
        };
        if interrupt::is_wanted() {
            return;
        }
        let last = (outcome == Outcome::Failed).then(|| tail(&ended.printed, TAIL));
        if let Some(last) = &last {
            say!("----- {typed}\n{last}\n-----");
        }
        say!("{}", self.record.add(&name, library, outcome, ended.took.as_secs(), why));
        if let Some(last) = &last {
            self.record.keep(last);
        }
        match shows {
            Shown::Last(lines) if outcome == Outcome::Ok => say!("{}", tail(&ended.printed, lines)),
            Shown::Everything if outcome == Outcome::Ok => say!("{}", ended.printed.trim_end()),
            _ => {}
        }
    }

    /// Runs a step to its end, in its environment.
    fn start(&mut self, mut step: Step) -> Result<(Ended, Outcome, Option<String>, Shown), String> {
        let mut environment = self.network.environment().to_vec();
        if let Launcher::Foreign { pes_per_gpu } = step.launcher {
            environment.push((Key::VARIABLE.to_string(), self.key.reveal().into()));
            if pes_per_gpu > 1 {
                let mps = match self.mps.take() {
                    Some(mps) => mps,
                    None => Mps::start(&[])?,
                };
                environment.extend(self.mps.insert(mps).environment(pes_per_gpu));
            }
        }
        environment.extend(self.library.iter().map(|library| (LIBRARY.to_string(), library.into())));
        for command in &mut step.commands {
            let own: Vec<_> = command.get_envs().map(|(name, _)| name.to_os_string()).collect();
            command.envs(environment.iter().filter(|(name, _)| own.iter().all(|own| own != name.as_str())).cloned());
        }
        let ended = processes::run(std::mem::take(&mut step.commands), step.limit)?;
        let (outcome, why) = step.judge(&ended);
        Ok((ended, outcome, why, step.shows))
    }
}

fn all_parts() -> Vec<Part> {
    clap::ValueEnum::value_variants().to_vec()
}

/// The path from the root.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|why| format!("{}: {why}", path.display()))
}

/// The GPUs in the names of reports: `2xH200`.
fn device(gpus: &[String]) -> String {
    let name = gpus.first().map_or("", String::as_str);
    let name = name.strip_prefix("NVIDIA ").unwrap_or(name);
    // `H100 80GB HBM3` is an H100.
    let is_size =
        |word: &str| word.find("GB").is_some_and(|at| at > 0 && word[..at].bytes().all(|digit| digit.is_ascii_digit()));
    let words: Vec<&str> =
        name.split(' ').enumerate().take_while(|(at, word)| *at == 0 || !is_size(word)).map(|(_, word)| word).collect();
    let mut plain = String::new();
    for letter in words.join(" ").chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() => plain.push(letter),
            _ if plain.ends_with('-') => {}
            _ => plain.push('-'),
        }
    }
    format!("{}x{plain}", gpus.len())
}

/// The last lines.
fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_have_short_names() {
        for (name, short) in [
            ("NVIDIA H200", "1xH200"),
            ("NVIDIA H100 80GB HBM3", "1xH100"),
            ("NVIDIA A100-SXM4-40GB", "1xA100-SXM4-40GB"),
            ("NVIDIA GeForce RTX 4090 (Laptop)", "1xGeForce-RTX-4090-Laptop-"),
            ("Tesla T4", "1xTesla-T4"),
        ] {
            assert_eq!(device(&[name.to_string()]), short);
        }
        assert_eq!(device(&vec!["NVIDIA H200".to_string(); 4]), "4xH200");
    }

    #[test]
    fn the_parts_are_in_the_order_in_which_they_run() {
        let names: Vec<String> = all_parts().into_iter().map(Part::name).collect();
        assert_eq!(names, ["doctor", "tests", "suite", "examples", "bootstraps", "mistakes", "bench"]);
    }
}
