//! A program on GPUs: what the options ask for, and the process that starts the PEs, hears them and ends them.

use onesided::count;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::options::{Machine as Asked, OnGpus, Options, Output as Files, Search};
use super::own::Own;
use super::{Facts, Program, gpus_report, pe, wrote};
use crate::hardware::job::{End, News, Script, follow};
use crate::hardware::machine::{self, Machine};
use crate::hardware::protocol::{LISTENS, Ready};
use crate::hardware::trouble::Trouble;
use crate::launch::{self, Channel, Fabric, FabricOptions, Job, Rig, Services, Sharing, devices_on, most_on_one};
use crate::tool::interrupt;
use crate::tool::output::Output;
use crate::{complain, say};

/// After so many seconds without progress the PEs are ended, unless the user gives another number.
const TIMEOUT: u64 = 60;
/// How long the PEs may take to initialize. Each waits a minute for the others.
const START: Duration = Duration::from_secs(90);
/// NVSHMEM's variable for the size of the symmetric heap.
const HEAP: &str = "NVSHMEM_SYMMETRIC_SIZE";

/// What the options ask for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) pes: Option<usize>,
    pub(super) gpus: Option<String>,
    pub(super) heap: Option<usize>,
    pub(super) nodes: Option<usize>,
    pub(super) fabric: FabricOptions,
    pub(super) mps: Option<Sharing>,
    pub(super) timeout: Option<u64>,
    pub(super) json: Option<PathBuf>,
    /// The program's own options.
    pub(super) own: Own,
}

/// What happened in the run.
#[derive(Debug)]
pub(super) struct Done {
    /// PEs.
    pub(super) pes: usize,
    /// Where they ran.
    pub(super) place: Place,
    /// What the PEs say of themselves, if all were initialized.
    pub(super) ready: Option<Ready>,
    /// What each returned; `None` where that is not known.
    pub(super) lines: Vec<Option<String>>,
    /// How it ended.
    pub(super) end: End,
    /// How long it took.
    pub(super) time: Duration,
}

/// Where PEs run.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) machine: Machine,
    /// The GPUs, as CUDA numbers them.
    pub(super) gpus: Vec<u32>,
    pub(super) nodes: usize,
    pub(super) fabric: Fabric,
    /// Whether PEs share a GPU under CUDA's multi-process service.
    pub(super) mps: bool,
}

impl Plan {
    /// What the options ask for.
    ///
    /// # Errors
    /// An option is for the simulator, or there are too few PEs.
    pub(super) fn new(facts: &Facts, options: Options, own: Own) -> Result<Plan, String> {
        let Options { machine, search, output } = options;
        let Asked { pes, nodes, gpus, heap, memory, stack, profile, pieces, like, on_gpus, .. } = machine;
        let Search {
            schedules,
            all,
            robust,
            strategy,
            seed,
            time,
            jobs,
            max_steps,
            max_instructions,
            races,
            quiet,
            loads,
            ignore_values,
            reduce,
            strict,
            all_races,
            explain,
            weaken,
            replay,
            events,
        } = search;
        let is_of_the_simulator = |option: &str| option != "--json";
        let file = output.given().find(|(option, _)| is_of_the_simulator(option)).map(|(option, _)| option);
        let Files { json, .. } = output;
        let of_the_simulator = [
            ("--memory", memory.is_some()),
            ("--stack", stack.is_some()),
            ("--profile", profile.is_some()),
            ("--pieces", pieces.is_some()),
            ("--like", like.is_some()),
            ("--schedules", schedules.is_some()),
            ("--all", all),
            ("--strategy", strategy.is_some()),
            ("--seed", seed.is_some()),
            ("--time", time.is_some()),
            ("--jobs", jobs.is_some()),
            ("--max-steps", max_steps.is_some()),
            ("--max-instructions", max_instructions.is_some()),
            ("--races", races.is_some()),
            ("--quiet", quiet.is_some()),
            ("--loads", loads.is_some()),
            ("--ignore-values", ignore_values),
            ("--reduce", reduce.is_some()),
            ("--strict", strict),
            ("--robust", robust),
            ("--all-races", all_races),
            ("--explain", explain),
            ("--weaken", weaken),
            ("--replay", replay.is_some()),
            ("--events", events),
            (file.unwrap_or_default(), file.is_some()),
        ];
        if let Some((option, _)) = of_the_simulator.into_iter().find(|(_, is_given)| *is_given) {
            return Err(format!("{option} is about the simulator: leave it out, or leave --backend nvshmem out"));
        }
        let pes = match pes.map(|pes| pes.0) {
            None => None,
            Some(pes) if pes.len() == 1 => Some(pes[0]),
            Some(_) => {
                return Err("several numbers of PEs are about the simulator: on GPUs, give --pes one".to_string());
            }
        };
        if let Some(pes) = pes.filter(|pes| *pes < facts.min_pes) {
            return Err(format!("{} needs at least {} PEs, not {pes}", facts.name, facts.min_pes));
        }
        let OnGpus { mps, timeout, fabric } = on_gpus;
        Ok(Plan { pes, gpus, heap, nodes, fabric, mps, timeout, json, own })
    }

    /// Refuses options that are for the process that starts the PEs. A launcher started this process as one of them.
    ///
    /// # Errors
    /// A sentence with the option.
    pub(super) fn check_pe(&self, n_pes: usize) -> Result<(), String> {
        let Plan { pes, gpus, heap, nodes, fabric, mps, timeout, json, own: _ } = self;
        if let Some(pes) = pes.filter(|pes| *pes != n_pes) {
            return Err(format!("--pes {pes} contradicts the launcher, which started {n_pes}; leave it out"));
        }
        if heap.is_some() {
            return Err(format!("--heap cannot be set in a PE that runs already; set {HEAP} for all of them"));
        }
        let given = [
            ("--gpus", gpus.is_some()),
            ("--nodes", nodes.is_some()),
            ("--mps", mps.is_some()),
            ("--timeout", timeout.is_some()),
            ("--json", json.is_some()),
        ];
        let given = given.into_iter().find_map(|(option, is_given)| is_given.then_some(option));
        match given.or(fabric.given()) {
            Some(option) => Err(format!(
                "{option} is for the process that starts the PEs, and here a launcher did; leave it out, or start the \
                 program without a launcher"
            )),
            None => Ok(()),
        }
    }

    /// The job, and where it runs. The services are to be kept until it has ended.
    ///
    /// # Errors
    /// There are more PEs than GPUs and no `--mps`, or this machine lacks something else.
    fn job(&self, facts: &Facts, rig: &Rig, machine: Machine) -> Result<(Job, Place, Services), String> {
        let mut gpus = machine::choose(self.gpus.as_deref(), machine.gpus.len())?;
        let pes = self.pes.unwrap_or(facts.pes);
        let nodes = rig.nodes().len().max(1);
        if !pes.is_multiple_of(nodes) {
            return Err(format!("{} cannot be spread evenly over {}", count(pes, "PE"), count(nodes, "node")));
        }
        let devices = devices_on(nodes, pes, &gpus);
        // PEs of different nodes take turns on a GPU, if nothing else is there.
        if most_on_one(&devices[..pes / nodes]) > 1 && self.mps.is_none() {
            return Err(format!(
                "{} on {}: let them share by --mps (CUDA's multi-process service), or use --pes {}",
                count(pes, "PE"),
                count(gpus.len(), "GPU"),
                gpus.len().max(nodes)
            ));
        }
        gpus.retain(|gpu| devices.contains(gpu));
        let program = std::env::current_exe().map_err(|why| format!("this program does not know its file: {why}"))?;
        let arguments =
            ["--backend".into(), "nvshmem".into()].into_iter().chain(self.own.given.iter().cloned()).collect();
        let mut environment = rig.environment().to_vec();
        environment.push((LISTENS.to_string(), "1".into()));
        environment.extend(self.heap.map(|bytes| (HEAP.to_string(), bytes.to_string().into())));
        let mut machine = machine;
        machine.add_settings(&environment);
        let mut job = Job { pes, program, arguments, environment, devices, nodes: rig.nodes().to_vec() };
        let services = Services::start(self.mps.unwrap_or(Sharing::None), &job.nodes, &gpus)?;
        services.equip(&mut job);
        let place = Place { machine, gpus, nodes, fabric: rig.fabric(), mps: services.are_there() };
        Ok((job, place, services))
    }
}

/// Runs the program: as one of its PEs if this process was started as one, otherwise by starting them all.
pub(super) fn run<P: Program>(facts: &Facts, program: &P, plan: &Plan) -> Result<ExitCode, String> {
    match onesided_nvshmem::placement().map_err(|problem| problem.to_string())? {
        Some(placement) => {
            launch::restart_to_load_kernels_early();
            pe::run(facts, program, plan, &placement)
        }
        None => {
            let pes = plan.pes.unwrap_or(facts.pes);
            program.precondition(pes).map_err(|why| facts.cannot_run(pes, &why))?;
            start(facts, plan)
        }
    }
}

/// Starts the PEs, prints what they return, and says how it ended.
fn start(facts: &Facts, plan: &Plan) -> Result<ExitCode, String> {
    interrupt::watch();
    let machine = Machine::look()?;
    let json = plan.json.as_deref().map(Output::prepare).transpose()?;
    let rig = Rig::prepare(&plan.fabric, plan.nodes)?;
    rig.notes().iter().for_each(|note| complain!("note: {note}"));
    let (job, place, services) = plan.job(facts, &rig, machine)?;
    let limit = Duration::from_secs(plan.timeout.unwrap_or(TIMEOUT));
    let done = hear(facts.name, &job, limit, place);
    // Before what is printed last, so that their end delays no one who reads that.
    drop((job, services, rig));

    gpus_report::print(facts, &done);
    if let Some(json) = json {
        json.finish(|out| gpus_report::write_json(out, facts, plan, &done))?;
        wrote(plan.json.as_deref(), "a summary");
    }
    match &done.end {
        End::Complete => Ok(ExitCode::SUCCESS),
        End::Interrupted => Ok(interrupt::status()),
        End::NotStarted(trouble) => Err(format!("the PEs could not be started: {}", gpus_report::advised(trouble))),
        End::Broke { trouble, .. } if trouble.is_operating() => Err(gpus_report::advised(trouble)),
        End::Broke { trouble, .. } if is_wanted(trouble) => Ok(ExitCode::SUCCESS),
        End::Broke { .. } => Ok(ExitCode::from(1)),
    }
}

/// Whether a PE ended the job by `global_exit` with status 0, which is not a finding.
pub(super) fn is_wanted(trouble: &Trouble) -> bool {
    trouble.outcome().as_deref() == Some("exited: 0")
}

/// Runs the job. Passes on at once what PEs print, and keeps what they return.
pub(super) fn hear(name: &str, job: &Job, limit: Duration, place: Place) -> Done {
    let start = Instant::now();
    let (mut ready, mut lines) = (None, vec![None; job.pes]);
    let end = follow(job, &Script { names: &[name], start: START, limit }, &mut |news| match news {
        News::Ready(about) => ready = Some(about.clone()),
        News::Returned { pe, text } => lines[pe] = Some(text.to_string()),
        News::Printed { channel: Channel::Out, text, .. } => say!("{text}"),
        News::Printed { pe, channel: Channel::Err, text } => complain!("PE {pe}: {text}"),
        News::Done { .. } => {}
    });
    Done { pes: job.pes, place, ready, lines, end, time: start.elapsed() }
}

/// What a run that ended well proves: `4 PEs on nvshmem (…): every PE checked that …`.
pub(super) fn sentence(facts: &Facts, pes: usize, about: &[&str]) -> String {
    format!("{} on nvshmem ({}): every PE checked that {}.", count(pes, "PE"), about.join(", "), facts.checks)
}

#[cfg(test)]
mod tests {
    use super::super::Cores;
    use super::*;

    const FACTS: Facts =
        Facts { name: "demo", about: "", checks: "all is well", pes: 2, min_pes: 1, cores: Cores::All };

    fn job(pes: usize, gpus: usize, mps: Option<Sharing>) -> Result<(Job, Place), String> {
        let fabric = FabricOptions::default();
        let (nodes, timeout, json) = (None, None, None);
        let plan =
            Plan { pes: Some(pes), gpus: None, heap: None, nodes, fabric, mps, timeout, json, own: Own::default() };
        let machine = Machine { gpus: vec!["A".into(); gpus], ..Machine::default() };
        plan.job(&FACTS, &Rig::default(), machine).map(|(job, place, _)| (job, place))
    }

    #[test]
    fn pes_that_would_share_a_gpu_need_the_service() {
        let (job_of_2, place) = job(2, 3, None).unwrap();
        assert_eq!((job_of_2.devices, place.gpus, place.mps), (vec![0, 1], vec![0, 1], false));
        let why = job(4, 2, None).unwrap_err();
        assert_eq!(why, "4 PEs on 2 GPUs: let them share by --mps (CUDA's multi-process service), or use --pes 2");
        let (job_of_4, place) = job(4, 2, Some(Sharing::None)).unwrap(); // the user has a service of their own
        assert_eq!((job_of_4.devices, place.nodes, place.fabric), (vec![0, 1, 0, 1], 1, Fabric::P2p));
    }
}
