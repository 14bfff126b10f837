//! What the options ask for: a cluster, and the schedules to visit on it.

use std::fmt::Display;

use onesided_nvshmem::CAPABILITIES;
use onesided_sim::{Budget, Config, Effort, Explore, Loads, Profile, Quiet, Races, Reduce, Schedule};

use super::options::{
    BEHIND, COVERED, Kind, LIMIT, Like, LoadsFind, OnGpus, Options, Output, QuietIs, RacesMean, SCHEDULES,
};
use super::own::Own;
use super::{Cores, Facts};
use crate::say;
use crate::tool::invocation::{invocation, quote};
use crate::tool::output::{each_its_own, is_standard};
use crate::tool::profiles::Profiles;
use crate::tool::shortened;

/// Everything that a simulated run depends on besides the program.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) config: Config,
    /// Which backend the simulator is held to.
    pub(super) like: Option<Like>,
    /// The program's own options.
    pub(super) own: Own,
    pub(super) search: Search,
    pub(super) budget: Budget,
    /// How many cores are used; `None`: all.
    pub(super) cores: Option<usize>,
    /// Whether every race of a finding is printed, not only the first.
    pub(super) all_races: bool,
    /// Whether outcomes are compared with those of sequential consistency.
    pub(super) robust: bool,
    /// Whether a finding is worth some time to explain it.
    pub(super) explain: bool,
    /// Whether it is tried without the calls that order others.
    pub(super) weaken: bool,
    /// Whether the events are printed.
    pub(super) events: bool,
    pub(super) output: Output,
    /// Whether it is one row of a table: what the PEs return is not printed.
    pub(super) in_table: bool,
    /// Whether its outcomes are compared with those of others: the search goes on behind a finding.
    pub(super) compares: bool,
    /// For so many classes at most.
    pub(super) behind: u64,
}

/// Which schedules are visited.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Search {
    /// The one in order, then others.
    InOrder {
        /// The others.
        then: Option<Explore>,
    },
    /// Others only.
    Only(Explore),
    /// This one.
    Replay(Schedule),
}

/// Linux takes an argument of 128 KiB: a longer schedule is read from a file.
pub(super) const LONGEST: usize = 100_000;

impl Plan {
    /// The same, where a weaker profile has been proved. The search only tells whether this one has as many outcomes, so it ends early, unless the user
    /// bounds it.
    pub(super) fn if_covered(&self) -> Plan {
        let search = match &self.search {
            Search::InOrder { then: Some(Explore::All { .. }) } if self.behind == BEHIND => {
                Search::InOrder { then: Some(Explore::All { limit: COVERED }) }
            }
            other => other.clone(),
        };
        Plan { search, ..self.clone() }
    }

    /// What the options ask for.
    ///
    /// # Errors
    /// A sentence for the user: which options contradict each other, or what cannot be simulated.
    pub(super) fn new(facts: &Facts, options: Options, own: Own) -> Result<Plan, String> {
        each_its_own(options.output.given())?;
        let Options { machine, search, output } = options;
        let OnGpus { mps, timeout, fabric } = &machine.on_gpus;
        let about_gpus = [("--mps", mps.is_some()), ("--timeout", timeout.is_some())];
        let about_gpus = about_gpus.into_iter().find_map(|(option, is_given)| is_given.then_some(option));
        if let Some(option) = about_gpus.or(fabric.given()) {
            return Err(format!("{option} is about GPUs: it needs --backend nvshmem"));
        }
        let given_pes = machine.pes.as_ref().map(|pes| pes.0[0]);
        let given_profile = machine.profile.map(|profile| match profile {
            Profiles::One(profile) => profile,
            Profiles::All => Profile::default(), // a table makes plans with one each
        });
        let given_gpus = machine.gpus.as_deref().map(number_of_gpus).transpose()?;
        if let Some(schedule) = &search.replay {
            let Schedule { pes, nodes, gpus, profile, pieces, quiet, loads, .. } = schedule;
            agree("--pes", given_pes, *pes)?;
            agree("--nodes", machine.nodes, *nodes)?;
            agree("--gpus", given_gpus, gpus.unwrap_or(*pes))?;
            agree("--profile", given_profile, *profile)?;
            agree("--pieces", machine.pieces, *pieces)?;
            agree("--quiet", search.quiet, QuietIs::from(*quiet))?;
            agree("--loads", search.loads, LoadsFind::from(*loads))?;
        }
        let usual = Config::default();
        let mut config = Config {
            pes: given_pes.unwrap_or(facts.pes),
            nodes: machine.nodes.unwrap_or(usual.nodes),
            gpus: given_gpus,
            heap: machine.heap.unwrap_or(usual.heap),
            memory: machine.memory.unwrap_or(usual.memory),
            stack: machine.stack.unwrap_or(usual.stack),
            profile: given_profile.unwrap_or(usual.profile),
            pieces: machine.pieces.unwrap_or(usual.pieces),
            max_steps: search.max_steps,
            max_instructions: search.max_instructions.unwrap_or(usual.max_instructions),
            races: match search.races {
                _ if search.robust => Races::Note,
                None | Some(RacesMean::Find) => Races::Find,
                Some(RacesMean::Note) => Races::Note,
                Some(RacesMean::Ignore) => Races::Ignore,
            },
            quiet: search.quiet.map_or(usual.quiet, Quiet::from),
            loads: search.loads.map_or(usual.loads, Loads::from),
            strict: search.strict,
            values_matter: !search.ignore_values,
            reduce: search.reduce.map_or(Reduce::Everything, Reduce::from),
            ..usual
        }
        .with_arguments(&own.in_effect);
        if machine.like == Some(Like::Nvshmem) {
            config.capabilities = CAPABILITIES;
        }
        if let Some(schedule) = &search.replay {
            config = schedule.configure(&config);
            if schedule.arguments != config.arguments {
                return Err(other_arguments(facts, &own, schedule));
            }
        }
        let with_races = [
            (config.strict, "--strict", "is about lints, which are looked for with races"),
            (config.quiet == Quiet::Thread, "--quiet thread", "needs happens-before, which is there for races"),
            (config.loads == Loads::Oldest, "--loads oldest", "needs happens-before, which is there for races"),
        ];
        if config.races == Races::Ignore
            && let Some((_, option, why)) = with_races.iter().find(|(is_set, ..)| *is_set)
        {
            return Err(format!("{option} {why}: leave out {option} or --races ignore"));
        }
        config.check().map_err(|error| error.message().to_string())?;
        if config.pes < facts.min_pes {
            return Err(format!("{} needs at least {} PEs, not {}", facts.name, facts.min_pes, config.pes));
        }

        let (events, all_races, explain, weaken) = (search.events, search.all_races, search.explain, search.weaken);
        let robust = search.robust;
        let cores = cores(facts, search.jobs)?;
        let seed = search.seed.unwrap_or(0);
        let is_bounded = search.time.is_some() || search.schedules.is_some();
        let budget = Budget { time: search.time, memory: Some(config.memory) };
        // If the user gives a time and no number of schedules, the search uses all of the time.
        let unless_given = |usual| search.schedules.unwrap_or(if search.time.is_some() { u64::MAX } else { usual });
        let schedules = unless_given(SCHEDULES);
        let search = match (search.replay, search.strategy) {
            (Some(schedule), _) => Search::Replay(schedule),
            (None, Some(Kind::InOrder)) if search.schedules.is_some_and(|schedules| schedules > 1) => {
                return Err("in order there is one schedule; leave --schedules out".to_string());
            }
            (None, Some(Kind::InOrder)) => Search::InOrder { then: None },
            (None, Some(Kind::Random(strategy))) => Search::Only(Explore::Random { schedules, seed, strategy }),
            (None, None) if search.all || robust || weaken => {
                Search::InOrder { then: Some(Explore::All { limit: unless_given(LIMIT) }) }
            }
            (None, None) => {
                let others = Explore::random(schedules - 1, seed);
                Search::InOrder { then: (schedules > 1).then_some(others) }
            }
        };
        Ok(Plan {
            config,
            like: machine.like,
            own,
            search,
            budget,
            cores,
            all_races,
            robust,
            explain,
            weaken,
            events,
            output,
            in_table: false,
            compares: false,
            behind: if is_bounded { u64::MAX } else { BEHIND },
        })
    }

    /// Prints a line that a PE returned.
    pub(super) fn print(&self, line: &str) {
        if !self.in_table {
            say!("{line}");
        }
    }

    /// How much is tried to explain a finding.
    pub(super) fn effort(&self) -> Effort {
        if self.explain { Effort::MUCH } else { Effort::LITTLE }
    }

    /// Whether every schedule is to be visited.
    pub(super) fn is_all(&self) -> bool {
        matches!(self.search, Search::InOrder { then: Some(Explore::All { .. }) })
    }

    /// Whether the run to report has to be recorded although it may be long.
    pub(super) fn needs_a_record(&self) -> bool {
        self.events || self.output.needs_a_record()
    }

    /// The command that runs a schedule again, as it is typed where this program was started.
    pub(super) fn replay_command(&self, schedule: &Schedule) -> String {
        self.replay_of(&schedule.to_string())
    }

    fn replay_of(&self, schedule: &str) -> String {
        format!("{} --replay {schedule}{}", invocation(), self.beside_the_schedule())
    }

    /// As [`Self::replay_command`], for a person. A schedule that is too long for a command line is read from a file. The text
    /// then says how `option` writes that file.
    pub(super) fn replay_line(&self, schedule: &Schedule, option: &str) -> String {
        let length = schedule.to_string().len();
        if length <= LONGEST {
            return self.replay_command(schedule);
        }
        let given = self.output.given().find(|(given, file)| *given == option && !is_standard(file));
        let (file, how) = match given {
            Some((_, file)) => (quote(file.as_os_str()), "which has it".to_string()),
            None => ("FILE".to_string(), format!("once the same command with {option} FILE has written it")),
        };
        let command = self.replay_of(&format!("@{file}"));
        format!("{command} ({how}: the schedule has {length} characters, more than a command line takes)")
    }

    /// The program as it was started: its name, what it is held to, and its own options.
    pub(super) fn program(&self, facts: &Facts) -> String {
        let like = if self.like == Some(Like::Nvshmem) { " --like nvshmem" } else { "" };
        format!("{}{like}{}", facts.name, self.own.typed())
    }

    /// The options that a replay needs beside the schedule.
    fn beside_the_schedule(&self) -> String {
        let usual = Config::default();
        let mut options = String::new();
        let Config { heap, memory, stack, .. } = self.config;
        let sizes = [("heap", heap, usual.heap), ("memory", memory, usual.memory), ("stack", stack, usual.stack)];
        for (option, size, _) in sizes.into_iter().filter(|(_, size, usual)| size != usual) {
            options += &format!(" --{option} {size}");
        }
        if let Some(steps) = self.config.max_steps {
            options += &format!(" --max-steps {steps}");
        }
        if self.config.max_instructions != usual.max_instructions {
            options += &format!(" --max-instructions {}", self.config.max_instructions);
        }
        match self.config.races {
            Races::Find => {}
            Races::Note => options += " --races note",
            Races::Ignore => options += " --races ignore",
        }
        if !self.config.values_matter {
            options += " --ignore-values";
        }
        if self.config.strict {
            options += " --strict";
        }
        if self.like == Some(Like::Nvshmem) {
            options += " --like nvshmem";
        }
        options + &self.own.typed()
    }
}

/// The message for a schedule that was recorded with other options of the program.
fn other_arguments(facts: &Facts, own: &Own, schedule: &Schedule) -> String {
    if schedule.arguments == 0 {
        return format!(
            "the schedule {} was recorded without options of a program, and {} has some: its schedules have a part `a…`, a hash of \
             what the options were",
            shortened(&schedule.to_string()),
            facts.name
        );
    }
    let given = match own.typed() {
        none if none.is_empty() => "none".to_string(),
        given => given.trim_start().to_string(),
    };
    format!(
        "the schedule {} was recorded with other options of {} than are given here ({given}); give those that stand \
         behind it in the command that was printed with it",
        shortened(&schedule.to_string()),
        facts.name
    )
}

/// Reads `--gpus` for the simulator: a count, because simulated GPUs have no numbers.
fn number_of_gpus(text: &str) -> Result<usize, String> {
    let most = 32_000;
    if text.contains(',') {
        return Err(format!("--gpus {text}: a list of GPUs needs --backend nvshmem; simulated ones have no numbers"));
    }
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("--gpus {text}: expected a number of GPUs from 1 to {most}"))
}

/// How many cores the search uses; `None`: all.
fn cores(facts: &Facts, jobs: Option<usize>) -> Result<Option<usize>, String> {
    match (facts.cores, jobs) {
        (Cores::All, jobs) => Ok(jobs),
        (Cores::One, None | Some(1)) => Ok(Some(1)),
        (Cores::One, Some(jobs)) => {
            Err(format!("--jobs {jobs}: {} is not Sync and runs on one core; leave --jobs out", facts.name))
        }
    }
}

/// Refuses an option that contradicts the schedule to be replayed.
fn agree<T: PartialEq + Display>(option: &str, given: Option<T>, recorded: T) -> Result<(), String> {
    match given {
        Some(given) if given != recorded => {
            Err(format!("{option} {given} contradicts the schedule, which has {recorded}; leave {option} out"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod test {
    use onesided_sim::Strategy;

    use super::*;
    use crate::program::options::{command, parse};

    /// A plan that these arguments ask for.
    pub(in crate::program) fn plan_of(arguments: &str) -> Plan {
        plan(arguments).unwrap()
    }

    const FACTS: Facts = Facts { name: "demo", about: "", checks: "", pes: 4, min_pes: 2, cores: Cores::All };

    /// The program's own option.
    fn rounds(command: clap::Command) -> clap::Command {
        command.arg(clap::Arg::new("rounds").long("rounds").default_value("3"))
    }

    fn plan(arguments: &str) -> Result<Plan, String> {
        let words = std::iter::once("demo").chain(arguments.split_whitespace()).map(Into::into);
        let (options, matches) = parse(&mut command(&FACTS, rounds), words).map_err(|error| error.to_string())?;
        Plan::new(&FACTS, options, Own::of(rounds, &matches))
    }

    #[test]
    fn schedules_count_the_one_in_order() {
        let search = |arguments| plan(arguments).unwrap().search;
        let random = |schedules, seed| Some(Explore::random(schedules, seed));
        assert_eq!(search(""), Search::InOrder { then: random(199, 0) });
        assert_eq!(search("--schedules 1"), Search::InOrder { then: None });
        assert_eq!(search("--strategy in-order"), Search::InOrder { then: None });
        assert_eq!(search("--strategy plain --seed 3"), Search::Only(Explore::random(200, 3)));
        let sampled = |strategy| Search::Only(Explore::Random { schedules: 200, seed: 0, strategy });
        assert_eq!(search("--strategy pos"), sampled(Strategy::Pos));
        assert_eq!(search("--strategy pct"), sampled(Strategy::Pct { depth: 3 }));
        assert_eq!(search("--strategy pct:5"), sampled(Strategy::Pct { depth: 5 }));
        assert_eq!(search("--all"), Search::InOrder { then: Some(Explore::All { limit: 1_000_000 }) });
        assert_eq!(search("--all --schedules 9"), Search::InOrder { then: Some(Explore::All { limit: 9 }) });
    }

    #[test]
    fn a_time_replaces_the_usual_number_of_schedules() {
        let bounds = |arguments| {
            let Plan { search, budget, .. } = plan(arguments).unwrap();
            let Search::InOrder { then: Some(then) } = search else { panic!("{search:?}") };
            let most = match then {
                Explore::All { limit } => limit,
                Explore::Random { schedules, .. } => schedules,
            };
            (most, budget.time.map(|time| time.as_secs()), budget.memory)
        };
        let usual = Some(8 << 30);
        assert_eq!(bounds("--all"), (1_000_000, None, usual));
        assert_eq!(bounds("--all --time 5"), (u64::MAX, Some(5), usual));
        assert_eq!(bounds("--all --time 1.5"), (u64::MAX, Some(1), usual));
        assert_eq!(bounds("--time 5"), (u64::MAX - 1, Some(5), usual));
        assert_eq!(bounds("--time 5 --schedules 9 --memory 2M"), (8, Some(5), Some(2 << 20)));
        assert_eq!(bounds("--robust --time 5 --memory 2M"), (u64::MAX, Some(5), Some(2 << 20)));
        let behind =
            ["--all", "--all --time 5", "--all --schedules 9"].map(|arguments| plan(arguments).unwrap().behind);
        assert_eq!(behind, [20_000, u64::MAX, u64::MAX]);
    }

    /// A schedule of the program with its usual option.
    fn of(cluster: &str) -> String {
        format!("os2.{cluster}.a{:08x}.o.none", plan("").unwrap().config.arguments)
    }

    #[test]
    fn n_is_short_for_pes() {
        for arguments in ["--pes 6", "-n 6", "-n6"] {
            assert_eq!(plan(arguments).unwrap().config.pes, 6, "{arguments}");
        }
    }

    #[test]
    fn a_schedule_brings_its_cluster() {
        let plan = plan(&format!("--replay {} --pes 8 --heap 1M", of("8x2g4.nvlink.p2"))).unwrap();
        let Config { pes, nodes, gpus, pieces, heap, .. } = plan.config;
        assert_eq!((pes, nodes, gpus, pieces, heap), (8, 2, Some(4), 2, 1 << 20));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        let replay = |of: String, more: &str| format!("--replay {of} {more}");
        for (arguments, why) in [
            (replay(of("4x1.spec.p4"), "--pes 8"), "--pes 8 contradicts the schedule, which has 4"),
            (replay(of("4x1.spec.p4t"), "--quiet pe"), "--quiet pe contradicts the schedule, which has thread"),
            (replay(of("4x1.spec.p4l"), "--loads newest"), "--loads newest contradicts the schedule, which has oldest"),
            (replay(of("4x1.spec.p4"), "--all"), "cannot be used with"),
            (replay(of("4x1.spec.p4"), "--time 3"), "cannot be used with"),
            (replay(of("1x1.spec.p4"), ""), "needs at least 2 PEs"),
            (
                replay(of("4x1.spec.p4"), "--rounds 4"),
                "recorded with other options of demo than are given here (--rounds 4)",
            ),
            (
                replay("os2.4x1.spec.p4.o.none".into(), ""),
                "was recorded without options of a program, and demo has some",
            ),
            (replay("os1.4x1.spec.p4.o.0".into(), ""), "of another version of this project"),
        ] {
            let error = plan(&arguments).unwrap_err();
            assert!(error.contains(why), "{arguments}: {error}");
        }
        for (arguments, why) in [
            ("--pes 1", "needs at least 2 PEs"),
            ("--pes 40000", "'40000' for '--pes <N>': expected a whole number from 1 to 32000"),
            ("--pes 0", "'0' for '--pes <N>': expected a whole number from 1 to 32000"),
            ("--pes -1", "'-1' for '--pes <N>': expected a whole number from 1 to 32000"),
            ("--schedules 1e6", "'1e6' for '--schedules <N>': expected a whole number from 1 to 1844"),
            ("--pieces 65", "'65' for '--pieces <N>': expected a whole number from 1 to 64"),
            ("--heap 99999999999G", "'99999999999G' for '--heap <SIZE>': expected a size from 1 to 1T"),
            ("--stack 1K", "'1K' for '--stack <SIZE>': expected a size from 32K to 1G"),
            ("--gpus 0", "--gpus 0: expected a number of GPUs from 1 to 32000"),
            ("--pes 4 --nodes 3", "3 nodes"),
            ("--time 0", "'0' for '--time <S>': expected a number of seconds, more than 0 and at most 31536000"),
            ("--schedules 0", "expected a whole number from 1 to 1844"),
            ("--all --strategy pos", "cannot be used with"),
            ("--robust --weaken", "cannot be used with"),
            ("--strict --races ignore", "lints, which are looked for with races"),
            ("--quiet thread --races ignore", "leave out --quiet thread or --races ignore"),
            ("--loads oldest --races ignore", "leave out --loads oldest or --races ignore"),
            ("--strategy in-order --schedules 2", "there is one schedule"),
            ("--strategy random", "\"random\" is not a way to draw schedules; there are in-order, plain, pos and pct"),
            ("--strategy pct:0", "which can have a depth from 1 to 1000: pct:3"),
            ("--profile infiniband", "there are spec, unordered-nic, mixed-fabric"),
            ("--replay nonsense", "is not a schedule"),
            ("-n 0", "'0' for '--pes <N>': expected a whole number from 1 to 32000"),
            ("--like sim", "invalid value 'sim'"),
            ("--gpus 0,1", "--gpus 0,1: a list of GPUs needs --backend nvshmem"),
            ("--mps", "--mps is about GPUs: it needs --backend nvshmem"),
            ("--timeout 3", "needs --backend nvshmem"),
            ("--fabric network", "--fabric is about GPUs: it needs --backend nvshmem"),
            ("--unknown", "unexpected argument"),
        ] {
            let error = plan(arguments).unwrap_err();
            assert!(error.contains(why), "{arguments}: {error}");
        }
    }

    #[test]
    fn a_replay_takes_along_what_is_not_in_the_schedule() {
        for (given, beside) in [
            ("", ""),
            ("--all --schedules 7", ""),
            ("--heap 64K", " --heap 65536"),
            ("--max-steps 500 --like nvshmem", " --max-steps 500 --like nvshmem"),
            ("--max-instructions 200000000", ""),
            ("--max-instructions 5000", " --max-instructions 5000"),
            ("--rounds 4", " --rounds 4"),
            ("--strict", " --strict"),
            ("--all --ignore-values --jobs 2", " --ignore-values"),
            ("--quiet thread --loads oldest", ""),
        ] {
            assert_eq!(plan(given).unwrap().beside_the_schedule(), beside);
        }
        let command = plan("--rounds 4").unwrap().replay_command(&of("4x1.spec.p4").parse().unwrap());
        assert!(command.ends_with(&format!(" --replay {} --rounds 4", of("4x1.spec.p4"))), "{command}");
    }

    #[test]
    fn a_schedule_that_no_command_line_takes_is_read_from_a_file() {
        let picks = |picks: usize| {
            let line = of("4x1.spec.p4").replace(".o.none", &format!(".c{}.none", "12".repeat(picks)));
            line.parse::<Schedule>().unwrap()
        };
        let line = |options: &str, schedule: &Schedule| plan(options).unwrap().replay_line(schedule, "--finding");
        let (short, long) = (picks(9), picks(200_000));
        assert!(long.to_string().len() > LONGEST);
        assert!(line("", &short).ends_with(&format!(" --replay {short}")));
        let said = line("--rounds 4", &long);
        assert!(
            said.contains(" --replay @FILE --rounds 4 (once the same command with --finding FILE has written it"),
            "{said}"
        );
        let said = line("--finding f.json", &long);
        assert!(said.contains(" --replay @f.json (which has it: the schedule has "), "{said}");
        assert!(said.len() < 1000 && plan("").unwrap().replay_command(&long).len() > LONGEST);
    }
}
