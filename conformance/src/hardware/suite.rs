//! Runs cases on GPUs and compares what they did with their outcome files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use onesided::{Backend, count};
use onesided_harness::hardware::job::{End, News, Script, follow};
use onesided_harness::hardware::protocol::Ready;
use onesided_harness::hardware::trouble::Trouble;
use onesided_harness::launch::{Fabric, Job, Rig, Services, Sharing, devices_on, most_on_one};
use onesided_harness::tool::interrupt;
use onesided_sim::Profile;

use super::plan::{self, Group, Place};
use crate::case::Case;
use crate::check::{Checked, Status};
use crate::expected::{Difference, Folder, Relation};
use crate::known::Known;
use crate::outcome::combine;

/// The step in which NVSHMEM's heap grows. Registered memory must be a multiple of it. It is half a gigabyte, unless this
/// variable says otherwise. 3.4.5 and 3.8.0 keep registered memory until the process ends, because a file descriptor of
/// it stays open. So hundreds of runs of a case would fill a GPU.
const GRANULARITY: &str = "NVSHMEM_CUMEM_GRANULARITY";
const SMALL_STEPS: &str = "2097152";

/// How the cases run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What each PE's process runs, usually this program.
    pub program: PathBuf,
    /// Its arguments. The names of the cases follow them.
    pub arguments: Vec<OsString>,
    /// The GPUs, as CUDA numbers them.
    pub gpus: Vec<u32>,
    /// Runs of each case.
    pub runs: u64,
    /// How long no PE may make progress before the case is given up.
    pub limit: Duration,
    /// How long the PEs of a job may take to initialize.
    pub start: Duration,
    /// The outcome files.
    pub expected: Folder,
    /// How PEs reach each other, and the nodes.
    pub rig: Arc<Rig>,
    /// How PEs share GPUs; `None`: under a service for each node, if PEs of a node have to.
    pub sharing: Option<Sharing>,
}

impl Settings {
    /// The profile whose outcome files are compared with: `spec` over loads and stores, and over another fabric the profile of
    /// that fabric.
    pub fn profile(&self) -> Profile {
        match self.rig.fabric() {
            Fabric::P2p => Profile::Spec,
            Fabric::Network => Profile::Network,
            Fabric::Mixed => Profile::MixedFabric,
        }
    }
}

/// What became of a case on GPUs.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its place among the cases.
    pub index: usize,
    /// As on the simulator, with runs instead of schedules.
    pub checked: Checked,
    /// The number of GPUs that its PEs used; `None` if it did not run.
    pub gpus: Option<usize>,
    /// How many of the outcomes in its file were seen, and how many the file has.
    pub coverage: Option<[usize; 2]>,
}

/// What became of all cases.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The cases, in the suite's order.
    pub cases: Vec<Ran>,
    /// The library, as the first job's PEs named it; `None` if no job started.
    pub library: Option<String>,
    /// Whether PEs shared GPUs, under MPS.
    pub mps: bool,
    /// What went wrong outside of any case.
    pub problems: Vec<String>,
}

/// How long to wait for progress in a case that is about a hang.
const DEADLOCK: Duration = Duration::from_secs(5);

/// After so many jobs in a row that do not start, the rest of a group is given up.
const STARTS: usize = 2;

/// Runs the cases, and reports each as soon as it has ended.
pub fn run<B: Backend>(cases: &[Case<B>], settings: &Settings, known: &[Known], tell: &mut dyn FnMut(&Ran)) -> Results {
    let mut suite = Suite {
        cases,
        settings,
        known,
        tell,
        ran: BTreeMap::new(),
        problems: Vec::new(),
        library: None,
        services: None,
        shared: false,
        starts: true,
    };
    let Settings { gpus, rig, sharing, .. } = settings;
    let place = Place {
        gpus: gpus.len(),
        nodes: rig.nodes().len().max(1),
        no_peer_access: rig.no_peer_access(),
        sharing: *sharing,
    };
    for (index, case) in cases.iter().enumerate() {
        if let Some(why) = plan::refusal(case, &place) {
            suite.not_run(index, &why);
        }
    }
    for group in plan::groups(cases, &place) {
        suite.run(&group);
    }
    let Suite { ran, library, shared, problems, .. } = suite;
    Results { cases: ran.into_values().collect(), library, mps: shared, problems }
}

struct Suite<'a, B: Backend> {
    cases: &'a [Case<B>],
    settings: &'a Settings,
    known: &'a [Known],
    tell: &'a mut dyn FnMut(&Ran),
    ran: BTreeMap<usize, Ran>,
    problems: Vec<String>,
    library: Option<String>,
    /// The services, started when they are first needed, or why they did not start; and the number of nodes.
    services: Option<(usize, Result<Services, String>)>,
    /// Whether it was ever started.
    shared: bool,
    /// Whether jobs start here, as far as is known.
    starts: bool,
}

impl<B: Backend> Suite<'_, B> {
    /// Runs a group, with a new job after each that broke.
    fn run(&mut self, group: &Group) {
        let (mut rest, mut failed_starts) = (group.cases.clone(), 0);
        while !rest.is_empty() {
            if interrupt::is_wanted() {
                return self.interrupted(rest); // before a service is started for them
            }
            let end = match self.job(group, &rest) {
                Ok(job) => self.follow(group, &job, &rest),
                Err(why) => return self.give_up(group, &rest, &why),
            };
            rest.retain(|index| !self.ran.contains_key(index));
            if end != End::Complete && self.services.as_ref().is_some_and(|(_, services)| services.is_ok()) {
                self.services = None; // a client that was killed can leave the service unusable
            }
            match end {
                End::Complete => {
                    for index in rest {
                        self.failed(group, index, "its PEs ended well and did not run it");
                    }
                    return;
                }
                End::Interrupted => return self.interrupted(rest),
                End::NotStarted(trouble) => {
                    failed_starts += 1;
                    if failed_starts == STARTS || !self.starts {
                        self.starts = self.library.is_some();
                        let why = format!("the job did not start: {}", trouble.with_tail());
                        return self.give_up(group, &rest, &why);
                    }
                }
                End::Broke { name, runs, trouble } => {
                    failed_starts = 0;
                    // A job that broke before its first case counts against that case.
                    let Some(broken) = name.or(rest.first().copied()) else {
                        let Group { pes, gpus, .. } = group;
                        let (pes, gpus, why) = (count(*pes, "PE"), count(*gpus, "GPU"), trouble.with_tail());
                        return self.problems.push(format!("a job of {pes} on {gpus}, without a case to run: {why}"));
                    };
                    rest.retain(|&index| index != broken);
                    self.broke(group, broken, &runs, &trouble);
                }
            }
        }
    }

    fn interrupted(&mut self, rest: Vec<usize>) {
        rest.into_iter().for_each(|index| self.not_run(index, "interrupted"));
    }

    fn give_up(&mut self, group: &Group, rest: &[usize], why: &str) {
        for &index in rest {
            self.failed(group, index, why);
        }
    }

    /// The job for these cases.
    fn job(&mut self, group: &Group, rest: &[usize]) -> Result<Job, String> {
        let Settings { program, arguments, gpus, rig, sharing, .. } = self.settings;
        let mut environment = rig.environment().to_vec();
        if std::env::var_os(GRANULARITY).is_none() {
            environment.push((GRANULARITY.to_string(), SMALL_STEPS.into()));
        }
        let names = rest.iter().map(|&index| OsString::from(&self.cases[index].name));
        // A case of one node runs on this host itself, in none of the nodes.
        let nodes = if group.nodes > 1 { rig.nodes()[..group.nodes].to_vec() } else { Vec::new() };
        let devices = devices_on(group.nodes, group.pes, &gpus[..group.gpus]);
        // PEs of different nodes take turns on a GPU, unless the user wants a service for them.
        let of_a_node = &devices[..group.pes / group.nodes];
        let shares = most_on_one(if sharing.is_some() { &devices } else { of_a_node }) > 1;
        let mut job = Job {
            pes: group.pes,
            program: program.clone(),
            arguments: arguments.iter().cloned().chain(names).collect(),
            environment,
            devices,
            nodes,
        };
        if shares && *sharing != Some(Sharing::None) {
            if self.services.as_ref().is_some_and(|(nodes, _)| *nodes != group.nodes) {
                self.services = None;
            }
            let start = || (group.nodes, Services::start(sharing.unwrap_or_default(), &job.nodes, gpus));
            let (_, services) = self.services.get_or_insert_with(start);
            let services = services.as_ref();
            let services =
                services.map_err(|why| format!("several PEs on one GPU need MPS, which did not start: {why}"))?;
            services.equip(&mut job);
            self.shared = true;
        }
        Ok(job)
    }

    /// Runs a job. The index in its end is that of the case.
    fn follow(&mut self, group: &Group, job: &Job, rest: &[usize]) -> End {
        let cases = self.cases;
        let names: Vec<&str> = rest.iter().map(|&index| cases[index].name.as_str()).collect();
        let Settings { start, limit, .. } = *self.settings;
        let limit = if group.breaks { limit.min(DEADLOCK) } else { limit };
        let end = follow(job, &Script { names: &names, start, limit }, &mut |news| match news {
            News::Ready(ready) => self.ready(ready, rest),
            News::Done { name, runs, enough } => self.done(group, rest[name], &runs, enough),
            News::Returned { .. } | News::Printed { .. } => {} // shown if the job breaks
        });
        match end {
            End::Broke { name, runs, trouble } => End::Broke { name: name.map(|name| rest[name]), runs, trouble },
            end => end,
        }
    }

    /// Notes the cases that the PEs skip, because they cannot run them.
    fn ready(&mut self, ready: &Ready, rest: &[usize]) {
        self.library.get_or_insert_with(|| ready.library.clone());
        self.starts = true;
        for &index in rest {
            if let Some(why) = self.cases[index].needs.unmet(&ready.missing) {
                self.not_run(index, &why);
            }
        }
    }

    fn done(&mut self, group: &Group, index: usize, runs: &[Vec<String>], enough: bool) {
        let asked = self.settings.runs;
        let few = format!("its PEs ended well after {} of {}", runs.len(), count(asked, "run"));
        let complete = runs.len() as u64 >= asked || (enough && !runs.is_empty());
        let why = if complete { String::new() } else { few };
        self.compared(group, index, tally(runs), runs.len() as u64, &why);
    }

    fn broke(&mut self, group: &Group, index: usize, runs: &[Vec<String>], trouble: &Trouble) {
        let mut outcomes = tally(runs);
        if group.breaks
            && runs.is_empty()
            && let Some(verdict) = trouble.verdict()
            && self
                .settings
                .expected
                .read(&self.cases[index].name, self.settings.profile())
                .is_ok_and(|file| file.contains(&verdict))
        {
            return self.compared(group, index, BTreeMap::from([(verdict, 1)]), 1, "");
        }
        let mut visits = runs.len() as u64;
        if let Some(outcome) = trouble.outcome() {
            *outcomes.entry(outcome).or_default() += 1;
            visits += 1;
        }
        self.compared(group, index, outcomes, visits, &trouble.with_tail());
    }

    fn failed(&mut self, group: &Group, index: usize, why: &str) {
        self.compared(group, index, BTreeMap::new(), 0, why);
    }

    /// Compares with the file; `broke` says what went wrong besides.
    fn compared(&mut self, group: &Group, index: usize, outcomes: BTreeMap<String, u64>, visits: u64, broke: &str) {
        let case = &self.cases[index];
        let (coverage, difference) = match self.settings.expected.read(&case.name, self.settings.profile()) {
            Ok(expected) => {
                let seen = outcomes.keys().filter(|outcome| expected.contains(*outcome)).count();
                let difference = Difference::new(outcomes.keys(), &expected, Relation::Subset);
                (Some([seen, expected.len()]), difference.to_string())
            }
            Err(why) => (None, why),
        };
        let why: Vec<&str> = [difference.as_str(), broke].into_iter().filter(|why| !why.is_empty()).collect();
        let checked = Checked {
            name: case.name.clone(),
            pes: case.pes,
            status: if why.is_empty() { Status::Passed } else { Status::Failed },
            visits,
            complete: false,
            outcomes,
            why: why.join("; "),
        };
        let checked = checked.with_known(self.known);
        self.record(Ran { index, checked, gpus: Some(group.gpus), coverage });
    }

    fn not_run(&mut self, index: usize, why: &str) {
        let checked = Checked::ended(&self.cases[index], Status::NotRun, why);
        self.record(Ran { index, checked, gpus: None, coverage: None });
    }

    fn record(&mut self, ran: Ran) {
        (self.tell)(&ran);
        self.ran.insert(ran.index, ran);
    }
}

/// How often each outcome was seen.
fn tally(runs: &[Vec<String>]) -> BTreeMap<String, u64> {
    let mut outcomes = BTreeMap::new();
    for run in runs {
        *outcomes.entry(combine(run.iter().map(String::as_str))).or_default() += 1;
    }
    outcomes
}
