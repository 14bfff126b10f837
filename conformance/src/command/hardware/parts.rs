//! What each part of `onesided hardware` runs, as a list of steps.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use onesided_harness::launch::{Fabric, Sharing, is_program, on_path};

use super::step::{Expected, Launcher, Shown, Step, Task};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// What is found
    Doctor,
    /// The backend's own tests on hardware
    Tests,
    /// The suite, with 1 to 4 PEs
    Suite,
    /// Each example, with 2 and with 4 PEs
    Examples,
    /// PEs that find each other in every possible way
    Bootstraps,
    /// What must end in a message
    Mistakes,
    /// What calls cost, beside a C++ program
    Bench,
}

/// Where things are, and what this machine has.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    /// The folder with the programs.
    pub(super) binaries: PathBuf,
    /// The folder with `examples`, `conformance` and `ci`.
    pub(super) sources: PathBuf,
    /// Where the reports go.
    pub(super) reports: PathBuf,
    /// What the names of reports end with: library, device and date.
    pub(super) suffix: String,
    pub(super) date: String,
    /// How many GPUs there are.
    pub(super) gpus: usize,
    /// Why Slurm cannot start PEs on this machine, if it cannot.
    pub(super) no_slurm: Option<String>,
    pub(super) has_mpirun: bool,
    /// Cases of the suite; all if empty.
    pub(super) patterns: Vec<String>,
    /// Examples by name; all if empty.
    pub(super) chosen_examples: Vec<String>,
    /// How PEs reach each other.
    pub(super) fabric: Fabric,
    /// How many nodes PEs are spread over.
    pub(super) nodes: usize,
    /// Both, as options of the programs.
    pub(super) words: Vec<OsString>,
    /// How PEs share GPUs, if the user says so.
    pub(super) sharing: Option<Sharing>,
}

/// Settings of an environment.
type Settings = &'static [(&'static str, &'static str)];

/// Tests in which several PEs agree on something: the step, the test, and the settings.
const TOGETHER: [(&str, &str, Settings); 5] = [
    ("a full GPU", "what_a_full_gpu_has_no_room_for_is_refused", &[]),
    // Few teams, because making one takes a while.
    (
        "the last team",
        "a_split_after_the_last_team_is_an_error",
        &[("NVSHMEM_MAX_TEAMS", "12"), ("NVSHMEM_DISABLE_NCCL", "1")],
    ),
    ("what finalize gives back", "finalize_gives_back_what_the_program_forgot", &[]),
    ("the source of a put", "a_put_of_the_host_has_read_its_source", &[]),
    ("what the host moves", "what_the_host_moves_over_a_network_is_complete", &[]),
];

impl Part {
    /// Its name on the command line and in the names of reports.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
    }

    /// What it runs. `port` returns a free port, another one each time.
    ///
    /// # Errors
    /// The examples' sources are not where they should be; an example that was asked for is not among them; no port is free.
    pub(super) fn tasks(self, rig: &Rig, port: &mut dyn FnMut() -> Result<u16, String>) -> Result<Vec<Task>, String> {
        Ok(match self {
            Part::Doctor => vec![Task::Run(Step::new("doctor", 120, [rig.onesided(&["doctor"])]))],
            Part::Tests => rig.tests(),
            Part::Suite => vec![rig.suite()],
            Part::Examples => rig.examples()?,
            Part::Bootstraps => rig.bootstraps(port)?,
            Part::Mistakes => rig.mistakes(port)?,
            Part::Bench if rig.nodes > 1 => vec![not_run("bench", "it measures one node")],
            Part::Bench => vec![rig.bench()],
        })
    }
}

/// Why Slurm cannot start PEs on this machine, if it cannot.
pub(super) fn no_slurm() -> Option<String> {
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return Some("CUDA_VISIBLE_DEVICES is set".to_string()); // Slurm would not know
    }
    on_path("slurmctld", &["/usr/sbin"]).next().is_none().then(|| "no slurmctld".to_string())
}

fn not_run(name: impl Into<String>, why: &str) -> Task {
    Task::NotRun { name: name.into(), why: why.to_string() }
}

impl Rig {
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }

    pub(super) fn onesided(&self, arguments: &[&str]) -> Command {
        command(&self.program("onesided"), arguments)
    }

    /// A program of the harness with so many PEs, which share GPUs if there are too few.
    fn on_gpus(&self, program: &str, pes: usize) -> Command {
        let mut command = self.alone(program);
        command.args(["--pes", &pes.to_string()]).args(self.shared(pes)).args(&self.words);
        command
    }

    /// A program of the harness, started as a PE by something else.
    pub(super) fn alone(&self, program: &str) -> Command {
        command(&self.program(program), &["--backend", "nvshmem"])
    }

    /// `onesided launch` with so many PEs, which share GPUs if there are too few.
    pub(super) fn launch(&self, pes: usize, seconds: u64) -> Command {
        let mut launch = self.onesided(&["launch", "-n", &pes.to_string(), "--timeout", &seconds.to_string()]);
        launch.args(self.shared(pes)).args(&self.words).arg("--");
        launch
    }

    /// The option by which PEs share GPUs. Without a word of the user, PEs of different nodes take turns.
    fn shared(&self, pes: usize) -> Option<String> {
        let of_a_node = if self.gpus < self.nodes { self.gpus } else { self.gpus / self.nodes };
        match self.sharing {
            None => (pes / self.nodes > of_a_node).then(|| "--mps".to_string()),
            Some(how) => (pes > self.gpus).then(|| format!("--mps={how}")),
        }
    }

    /// Two PEs that another launcher starts.
    fn foreign(&self, name: &str, commands: Vec<Command>) -> Step {
        let launcher = Launcher::Foreign { pes_per_gpu: if self.gpus < 2 { 2 } else { 1 } };
        Step { launcher, ..Step::new(name, 120, commands) }
    }

    fn report(&self, name: &str) -> PathBuf {
        self.reports.join(format!("{name}{}{}.json", cases(&self.patterns), self.suffix))
    }

    fn tests(&self) -> Vec<Task> {
        let tests = self.program("hardware");
        if !is_program(&tests) {
            let why = format!("no program {}", tests.display());
            return ["tests of the backend"]
                .into_iter()
                .chain(TOGETHER.map(|(name, ..)| name))
                .map(|name| not_run(name, &why))
                .collect();
        }
        let mut tasks = Vec::new();
        if self.fabric == Fabric::P2p {
            tasks.push(Step::new("tests of the backend", 300, [command(&tests, &[])])); // most have one PE
        }
        for pes in [2, 4] {
            for (name, test, settings) in TOGETHER {
                let mut launch = self.launch(pes, 100);
                launch.arg(&tests).args(["--exact", test]).envs(settings.iter().copied());
                tasks.push(Step::new(format!("{name}, {pes} PEs"), 120, [launch]));
            }
        }
        for command in tasks.iter_mut().flat_map(|step| &mut step.commands) {
            command.env("ONESIDED_REQUIRE_HARDWARE", "1");
        }
        tasks.into_iter().map(Task::Run).collect()
    }

    fn suite(&self) -> Task {
        let mut suite = self.onesided(&["suite", "--backend", "nvshmem", "--require-hardware", "--runs", "100"]);
        suite.arg("--expected").arg(self.sources.join("conformance/expected"));
        suite.args(&self.words).args(self.sharing.map(|how| format!("--mps={how}")));
        suite.arg("--json").arg(self.report("suite")).args(&self.patterns);
        Task::Run(Step { shows: Shown::Last(5), may_lack: false, ..Step::new("suite", 5400, [suite]) })
    }

    fn bench(&self) -> Task {
        let mut bench = self.onesided(&["bench", "--backend", "nvshmem", "--date", &self.date]);
        bench.args(&self.words).arg("--json").arg(self.report("bench"));
        let seconds = if self.fabric == Fabric::P2p { 400 } else { 1200 }; // a network is slower
        Task::Run(Step { shows: Shown::Everything, ..Step::new("bench", seconds, [bench]) })
    }

    fn examples(&self) -> Result<Vec<Task>, String> {
        let folder = self.sources.join("examples/src/bin");
        let wrong = |why: std::io::Error| {
            format!("{}: {why}; the examples are known by their sources: see --sources", folder.display())
        };
        let files = fs::read_dir(&folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut files: Vec<PathBuf> = files.map_err(wrong)?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        files.sort();
        let names: Vec<&str> = files.iter().filter_map(|file| file.file_stem()?.to_str()).collect();
        let chosen = &self.chosen_examples;
        if let Some(unknown) = chosen.iter().find(|chosen| !names.contains(&chosen.as_str())) {
            return Err(format!("--example {unknown}: there is none; there are {}", names.join(", ")));
        }
        let is_wanted = |name: &&str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
        let steps = names.into_iter().filter(is_wanted).flat_map(|name| match name {
            "device_python" => self.front_ends(name),
            _ => [2, 4].map(|pes| self.example(name, pes)).into(),
        });
        Ok(steps.map(Task::Run).collect())
    }

    /// The kernels of every front end, as each calls NVSHMEM in its own way.
    fn front_ends(&self, program: &str) -> Vec<Step> {
        let steps = ["numba", "nvshmem4py", "triton", "cute"].into_iter().flat_map(|front| {
            ["ring", "exchange"].into_iter().flat_map(move |kernel| {
                [2, 4].map(|pes| {
                    let mut command = self.on_gpus(program, pes);
                    command.args(["--front", front, "--kernel", kernel]);
                    Step::new(format!("{program}, {front} {kernel}, {pes} PEs"), 120, [command])
                })
            })
        });
        steps.collect()
    }

    fn example(&self, program: &str, pes: usize) -> Step {
        let name = format!("{program}, {pes} PEs");
        match program {
            // It does not have the command line of the harness.
            "kernel" => {
                let mut launch = self.launch(pes, 60);
                launch.arg(self.program(program));
                Step::new(name, 120, [launch])
            }
            // Its bug may or may not show here.
            "missing_fence" => {
                Step { status: Expected::One(&[0, 1]), ..Step::new(name, 120, [self.on_gpus(program, pes)]) }
            }
            _ => Step::new(name, 120, [self.on_gpus(program, pes)]),
        }
    }

    fn bootstraps(&self, port: &mut dyn FnMut() -> Result<u16, String>) -> Result<Vec<Task>, String> {
        let mut tasks = Vec::new();
        let mut launch = self.launch(2, 60);
        launch.arg(self.program("ring")).args(["--backend", "nvshmem"]);
        tasks.push(Task::Run(Step::new("launch", 120, [launch])));
        for method in ["launcher", "uid"] {
            let mut launch = self.launch(2, 60);
            launch.arg(self.program("onesided")).args(["bootstrap", "--method", method]);
            tasks.push(Task::Run(Step::new(format!("launch, {method}"), 120, [launch])));
        }

        if self.nodes > 1 {
            let why = "PEs that another launcher starts are on one node here";
            let others = ["environment of torchrun", "environment of srun", "Slurm", "mpirun"];
            tasks.extend(others.map(|name| not_run(name, why)));
            return Ok(tasks);
        }

        // Their PEs meet at the port behind the launcher's own.
        let master = (port()? - 1).to_string();
        let torchrun = [0, 1].map(|rank: usize| {
            let mut ring = self.alone("ring");
            ring.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string());
            ring.env("WORLD_SIZE", "2").env("LOCAL_WORLD_SIZE", "2");
            ring.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &master);
            ring
        });
        tasks.push(Task::Run(self.foreign("environment of torchrun", torchrun.into())));
        let meeting = format!("127.0.0.1:{}", port()?);
        let srun = [0, 1].map(|rank: usize| {
            let mut ring = self.alone("ring");
            ring.env("SLURM_PROCID", rank.to_string()).env("SLURM_LOCALID", rank.to_string());
            ring.env("SLURM_STEP_ID", "0").env("SLURM_JOB_ID", "1");
            ring.env("SLURM_NTASKS", "2").env("SLURM_STEP_NUM_TASKS", "2").env("ONESIDED_RENDEZVOUS", &meeting);
            ring
        });
        tasks.push(Task::Run(self.foreign("environment of srun", srun.into())));
        tasks.extend(self.slurm());
        tasks.extend(self.mpirun(port)?);
        Ok(tasks)
    }

    fn slurm(&self) -> Vec<Task> {
        if let Some(why) = &self.no_slurm {
            return ["Slurm, sbatch", "Slurm, srun"].map(|name| not_run(name, why)).into();
        }
        let with_slurm = || Command::new(self.sources.join("ci/with-slurm"));
        let gpus = self.gpus.min(2);
        let mut batch = with_slurm();
        batch.args(["--batch", "--ntasks-per-node=2", &format!("--gpus-per-node={gpus}")]);
        batch.arg(self.sources.join("examples/slurm.sh")).arg(self.program("ring")).args(["--backend", "nvshmem"]);
        let mut srun = with_slurm();
        srun.args(["srun", "--ntasks=2", &format!("--gpus={gpus}"), "--gpu-bind=none"]);
        srun.arg(self.program("onesided")).args(["bootstrap", "--method", "launcher"]);
        vec![
            Task::Run(Step { says: &["every PE checked"], ..self.foreign("Slurm, sbatch", vec![batch]) }),
            Task::Run(self.foreign("Slurm, srun", vec![srun])),
        ]
    }

    fn mpirun(&self, port: &mut dyn FnMut() -> Result<u16, String>) -> Result<Vec<Task>, String> {
        if !self.has_mpirun {
            return Ok(["mpirun", "mpirun, emulated_mpi", "mpirun, mpi"].map(|name| not_run(name, "no mpirun")).into());
        }
        let mpirun = || command(Path::new("mpirun"), &["--allow-run-as-root", "--oversubscribe", "-n", "2"]);
        let mut ring = mpirun();
        ring.args(["-x", &format!("ONESIDED_RENDEZVOUS=127.0.0.1:{}", port()?)]);
        ring.arg(self.program("ring")).args(["--backend", "nvshmem"]);
        let mut tasks = vec![Task::Run(self.foreign("mpirun", vec![ring]))];
        let with_mpi = Some(self.program("mpi/onesided")).filter(|program| is_program(program));
        let onesided = with_mpi.unwrap_or_else(|| self.program("onesided"));
        for method in ["emulated_mpi", "mpi"] {
            let mut bootstrap = mpirun();
            bootstrap.arg(&onesided).args(["bootstrap", "--method", method]);
            tasks.push(Task::Run(self.foreign(&format!("mpirun, {method}"), vec![bootstrap])));
        }
        Ok(tasks)
    }
}

/// The chosen cases in the names of reports. A run of some must not replace the report of all.
pub(super) fn cases(patterns: &[String]) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '-' };
    patterns.iter().map(|pattern| format!("-{}", pattern.replace(|letter| plain(letter) != letter, "-"))).collect()
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fmt::Write as _;

    use super::super::step::typed;
    use super::*;

    fn rig(gpus: usize) -> Rig {
        Rig {
            binaries: "bin".into(),
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
            reports: "reports".into(),
            suffix: "-3.4.5-1xH100-2026-11-21".to_string(),
            date: "2026-11-21".to_string(),
            gpus,
            no_slurm: None,
            has_mpirun: true,
            patterns: vec![],
            chosen_examples: vec![],
            fabric: Fabric::P2p,
            nodes: 1,
            words: vec![],
            sharing: None,
        }
    }

    /// Each step in a few lines.
    fn listed(part: Part, rig: &Rig) -> String {
        let mut last = 20_000;
        let tasks = part.tasks(rig, &mut || {
            last += 1;
            Ok(last)
        });
        let mut text = String::new();
        for task in tasks.unwrap() {
            match task {
                Task::NotRun { name, why } => writeln!(text, "{name}: not run: {why}").unwrap(),
                Task::Run(step) => {
                    let Step { name, limit, status, says, launcher, .. } = &step;
                    writeln!(text, "{name}: {} s, {status:?}, {says:?}, {launcher:?}", limit.as_secs()).unwrap();
                    for command in &step.commands {
                        let set = |(name, value): (&OsStr, Option<&OsStr>)| {
                            format!("{}={} ", name.display(), value.unwrap().display())
                        };
                        let typed = typed(command).replace(&*rig.sources.to_string_lossy(), "SOURCES");
                        writeln!(text, "  {}{typed}", command.get_envs().map(set).collect::<String>()).unwrap();
                    }
                }
            }
        }
        text
    }

    #[test]
    fn parts_on_one_gpu_and_on_two() {
        let parts = [Part::Doctor, Part::Suite, Part::Bootstraps, Part::Mistakes, Part::Bench];
        for gpus in [1, 2] {
            let text: String =
                parts.iter().map(|&part| format!("--- {}\n{}", part.name(), listed(part, &rig(gpus)))).collect();
            insta::assert_snapshot!(format!("parts_{gpus}"), text);
        }
    }

    #[test]
    fn examples_are_those_of_the_workspace_and_three_are_special() {
        let text = listed(Part::Examples, &rig(2));
        assert!(
            text.starts_with(
                "allreduce, 2 PEs: 120 s, One([0]), [], Ours\n  bin/allreduce --backend nvshmem --pes 2\n"
            )
        );
        assert!(text.contains("  bin/hello --backend nvshmem --pes 4 --mps\n"), "{text}");
        assert!(text.contains("missing_fence, 2 PEs: 120 s, One([0, 1]), [], Ours\n"), "{text}");
        assert!(text.contains("  bin/onesided launch -n 4 --timeout 60 --mps -- bin/kernel\n"), "{text}");
        let python = "device_python, cute exchange, 4 PEs: 120 s, One([0]), [], Ours\n  bin/device_python --backend nvshmem --pes 4 --mps \
                      --front cute --kernel exchange\n";
        assert!(text.contains(python), "{text}");
        let chosen =
            |names: &[&str]| Rig { chosen_examples: names.iter().map(ToString::to_string).collect(), ..rig(2) };
        let text = listed(Part::Examples, &chosen(&["teams", "hello"]));
        let steps: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).map(|line| &line[..13]).collect();
        assert_eq!(steps, ["hello, 2 PEs:", "hello, 4 PEs:", "teams, 2 PEs:", "teams, 4 PEs:"]);
        let why = Part::Examples.tasks(&chosen(&["team"]), &mut || Ok(1)).unwrap_err();
        assert!(why.starts_with("--example team: there is none; there are allreduce, "), "{why}");
        let nowhere = Rig { sources: "/no/such/folder".into(), ..rig(1) };
        let why = Part::Examples.tasks(&nowhere, &mut || Ok(1)).unwrap_err();
        assert!(why.starts_with("/no/such/folder/examples/src/bin: ") && why.ends_with("see --sources"), "{why}");
    }

    #[test]
    fn on_a_network_and_on_nodes_pes_are_started_with_the_same_words() {
        let words: Vec<OsString> = ["--fabric", "mixed", "--nodes", "2"].map(Into::into).into();
        let mixed = Rig { fabric: Fabric::Mixed, nodes: 2, words, ..rig(1) };
        let text = listed(Part::Examples, &mixed);
        assert!(text.contains("  bin/hello --backend nvshmem --pes 2 --fabric mixed --nodes 2\n"), "{text}");
        assert!(text.contains("  bin/hello --backend nvshmem --pes 4 --mps --fabric mixed --nodes 2\n"), "{text}");
        let text = listed(Part::Bootstraps, &mixed);
        assert!(text.contains("launch -n 2 --timeout 60 --fabric mixed --nodes 2 -- bin/ring --backend"), "{text}");
        assert!(text.ends_with("mpirun: not run: PEs that another launcher starts are on one node here\n"), "{text}");
        assert_eq!(listed(Part::Bench, &mixed), "bench: not run: it measures one node\n");
        let text = listed(Part::Mistakes, &mixed);
        let no_ucx = "no UCX: 60 s, One([2]), [\"no libucp.so.0\"], Ours\n  bin/onesided launch -n 2 --timeout 40 --fabric mixed \
                      --nodes 2 --ucx bin/absent -- bin/ring --backend nvshmem\n";
        assert!(text.starts_with(no_ucx) && text.contains("NVSHMEM_HEAP_KIND=VIDMEM bin/onesided launch"), "{text}");
        let one = Rig { sharing: Some(Sharing::One), ..mixed };
        assert!(listed(Part::Suite, &one).contains(" --fabric mixed --nodes 2 --mps=one --json "));
        assert!(listed(Part::Examples, &one).contains("--pes 2 --mps=one --fabric mixed"));
        assert!(!listed(Part::Examples, &Rig { gpus: 4, ..one }).contains("--mps"));
    }

    #[test]
    fn what_cannot_run_is_named() {
        let text = listed(Part::Tests, &rig(1));
        assert_eq!(text.lines().count(), 6);
        assert!(text.contains("the last team: not run: no program bin/hardware\n"), "{text}");
        let bare = Rig { no_slurm: Some("no slurmctld".to_string()), has_mpirun: false, ..rig(1) };
        let text = listed(Part::Bootstraps, &bare);
        assert!(text.contains("Slurm, sbatch: not run: no slurmctld\n"), "{text}");
        assert!(text.ends_with("mpirun, mpi: not run: no mpirun\n"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn the_backends_tests_are_run_alone_and_together() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("hardware")).unwrap();
        let text = listed(Part::Tests, &Rig { binaries: folder.path().to_path_buf(), ..rig(2) });
        let text = text.replace(&*folder.path().to_string_lossy(), "BIN");
        insta::assert_snapshot!("parts_tests", text);
    }

    #[test]
    fn reports_of_some_cases_have_their_names() {
        let patterns = |texts: &[&str]| cases(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(patterns(&[]), "");
        assert_eq!(patterns(&["order", "litmus/sb"]), "-order-litmus-sb");
    }
}
