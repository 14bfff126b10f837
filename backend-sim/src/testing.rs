//! A program in an ordinary test: [`prove`], [`check_random`] and [`check_schedule`] panic with the whole explanation.

use std::env;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use onesided::{Error, Pe, Result};

use crate::config::Config;
use crate::explain::{Effort, Minimized};
use crate::limits::Budget;
use crate::pe::Sim;
use crate::race::IntendedRaces;
use crate::schedule::Schedule;
use crate::search::{Explore, Explored};
use crate::simulation::{Run, Simulation};
use crate::verdict::VerdictKind;

/// Schedules that a proof begins at most, unless the environment has another limit.
const CLASSES: u64 = 100_000;
/// Schedules of a random check, the one in order included.
const RANDOM: u64 = 1000;

/// Proves that a program is right: it fails on no schedule of this cluster that can make a difference.
///
/// The cluster is a number of PEs, or a [`Config`]. What was proved is printed; `cargo test` shows it with `-- --nocapture`.
///
/// ```
/// use onesided::{Backend, Pe, Result, expect_eq};
///
/// fn count(pe: &Pe<impl Backend>) -> Result<()> {
///     let counter = pe.alloc_zeroed::<u64>(1)?;
///     pe.host().atomic_inc(&counter, 0)?;
///     pe.host().barrier_all()?;
///     expect_eq(pe.host().g(&counter, 0)?, pe.n_pes() as u64, "the counter")?;
///     pe.free(counter)
/// }
///
/// // #[test]
/// fn the_count_is_right_in_every_order() {
///     onesided_sim::prove(3, count);
/// }
/// # the_count_is_right_in_every_order();
/// ```
///
/// Variables of the environment change what tests do, without a change of the tests:
///
/// | variable | |
/// |---|---|
/// | `ONESIDED_SCHEDULES` | how many schedules `prove` begins at most (100,000), and how many `check_random` visits (1,000) |
/// | `ONESIDED_TIME` | seconds for each call of `prove` and `check_random`. Without `ONESIDED_SCHEDULES`, it replaces the number of schedules |
/// | `ONESIDED_SEED` | where the random schedules start (0) |
/// | `ONESIDED_REPLAY` | a schedule. Calls for its cluster run only that one, and print what happens, event by event |
///
/// # Panics
/// When a schedule fails, with what every PE was doing and the command that replays it. When the search is not complete, with
/// what bounded it. When a variable of the environment cannot be read.
#[track_caller]
pub fn prove<T>(cluster: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Explored {
    settle(Settings::new(&from_environment).and_then(|settings| settings.prove(cluster.into(), &program)))
}

/// Checks a program in order and on random schedules: for programs and clusters that are too large for [`prove`].
///
/// The environment is that of [`prove`].
///
/// ```
/// # use onesided::{Backend, Pe, Result};
/// # fn program(pe: &Pe<impl Backend>) -> Result<()> { pe.host().barrier_all() }
/// use onesided_sim::{Config, check_random};
///
/// // #[test]
/// fn it_is_right_on_two_nodes() {
///     check_random(Config { pes: 16, nodes: 2, ..Config::default() }, program);
/// }
/// # it_is_right_on_two_nodes();
/// ```
///
/// # Panics
/// When a schedule fails or is given up at a limit, as [`prove`].
#[track_caller]
pub fn check_random<T>(cluster: impl Into<Config>, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Explored {
    settle(Settings::new(&from_environment).and_then(|settings| settings.check_random(cluster.into(), &program)))
}

/// Runs one schedule of a program: one that failed once, kept as a test of what was repaired.
///
/// The schedule brings its cluster. End it with `none` in place of the fingerprint: the repaired program has another one.
///
/// ```
/// # use onesided::{Backend, Pe, Result};
/// # fn program(pe: &Pe<impl Backend>) -> Result<()> { pe.host().barrier_all() }
/// // #[test]
/// fn the_schedule_that_failed_passes_now() {
///     onesided_sim::check_schedule("os2.4x1.spec.p4.r2a.none", program);
/// }
/// # the_schedule_that_failed_passes_now();
/// ```
///
/// # Panics
/// When the schedule fails, or is not one of this program.
#[track_caller]
pub fn check_schedule<T>(schedule: &str, program: impl Fn(&Pe<Sim>) -> Result<T>) {
    settle(schedule.parse().map_err(|error: Error| error.to_string()).and_then(|schedule: Schedule| {
        let config = Config { arguments: schedule.arguments, ..schedule.configure(&Config::default()) };
        let run = replay(&schedule, &config, &program)?;
        if run.is_ok() { Ok(()) } else { Err(format!("{}\n\nSchedule: {}", run.verdict, run.schedule)) }
    }));
}

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    schedules: Option<u64>,
    time: Option<Duration>,
    seed: u64,
    replay: Option<Schedule>,
}

fn from_environment(variable: &str) -> Option<String> {
    env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// The result, or a panic at the line of the test.
#[track_caller]
fn settle<T>(result: std::result::Result<T, String>) -> T {
    match result {
        Ok(result) => result,
        Err(why) => panic!("{why}"), // not in a closure, which would be the panic's place
    }
}

impl Settings {
    fn new(variable: &dyn Fn(&str) -> Option<String>) -> std::result::Result<Settings, String> {
        fn number<T: FromStr>(name: &str, text: Option<String>) -> std::result::Result<Option<T>, String> {
            let Some(text) = text else { return Ok(None) };
            let wrong = |_| format!("{name} is {text:?} in the environment; expected a whole number");
            text.parse().map(Some).map_err(wrong)
        }
        let get = |name: &str| number::<u64>(name, variable(name));
        let replay = variable("ONESIDED_REPLAY")
            .map(|text| text.parse().map_err(|error: Error| format!("ONESIDED_REPLAY: {}", error.message())));
        let (schedules, time) = (get("ONESIDED_SCHEDULES")?, get("ONESIDED_TIME")?.map(Duration::from_secs));
        match schedules {
            Some(0) => Err("ONESIDED_SCHEDULES is 0 in the environment; expected at least 1".to_string()),
            _ => {
                Ok(Settings { schedules, time, seed: get("ONESIDED_SEED")?.unwrap_or(0), replay: replay.transpose()? })
            }
        }
    }

    /// How many schedules, where so many are usual. Who gives a time wants all of it to be used.
    fn schedules(&self, usual: u64) -> u64 {
        self.schedules.unwrap_or(if self.time.is_some() { u64::MAX } else { usual })
    }

    fn prove<T>(
        &self,
        config: Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Explored, String> {
        if let Some(schedule) = &self.replay {
            return self.replay(schedule, &config, program);
        }
        let limit = self.schedules(CLASSES);
        let (explored, marks, failed) = self.search(&config, Explore::All { limit }, program)?;
        let proof = explored.proof(&config);
        if let Some(run) = failed {
            let (run, explained) = explain(&config, run, program)?;
            return Err(format!("{proof}\n\n{}{explained}\n\n{}", run.verdict, self.advice(&run)));
        }
        println!("{proof}");
        note(&marks);
        if explored.complete {
            return Ok(explored);
        }
        Err(format!(
            "{proof}\n\nNothing wrong was found, and not everything was seen. To let the search go on, set a higher limit: \
             ONESIDED_SCHEDULES={} or ONESIDED_TIME=SECONDS. To make it smaller, use fewer PEs, smaller data, or \
             Config {{ pieces: 1, .. }}. For random schedules in place of a proof, call check_random.",
            limit.saturating_mul(10)
        ))
    }

    fn check_random<T>(
        &self,
        config: Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Explored, String> {
        if let Some(schedule) = &self.replay {
            return self.replay(schedule, &config, program);
        }
        let (schedules, seed) = (self.schedules(RANDOM), self.seed);
        let mut simulation = Simulation::new(config.clone()).map_err(text)?;
        let first = simulation.run(program).map_err(text)?;
        let failed = (!first.is_ok()).then(|| simulation.reproduce(&first, program));
        let (mut explored, mut failed) = (Explored::default(), failed.transpose().map_err(text)?);
        let mut marks = IntendedRaces::default();
        if failed.is_none() && schedules > 1 {
            let random = Explore::random(schedules - 1, seed);
            (explored, marks, failed) = self.search(&config, random, program)?;
        }
        explored.count(&first);
        marks.add(&first.verdict);
        let mut how = format!("1 in order, {} random from seed {seed}", explored.schedules - 1);
        if let Some(n) = explored.classes {
            how += &format!(": {n} class{}", if n == 1 { "" } else { "es" });
        }
        let s = if explored.schedules == 1 { "" } else { "s" };
        let done = format!("{} schedule{s} ({how}) for {}", explored.schedules, config.in_words());
        if let Some(run) = failed {
            let (run, explained) = explain(&config, run, program)?;
            return Err(format!("fails on the last of {done}\n\n{}{explained}\n\n{}", run.verdict, self.advice(&run)));
        }
        println!("nothing wrong in {done}");
        note(&marks);
        Ok(explored)
    }

    /// Visits schedules up to the first that is not right, which is returned recorded.
    fn search<T>(
        &self,
        config: &Config,
        how: Explore,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<(Explored, IntendedRaces, Option<Run<T>>), String> {
        let mut simulation = Simulation::new(config.clone()).map_err(text)?;
        simulation.set_budget(Budget { time: self.time, memory: Some(config.memory) });
        simulation.count_classes();
        let (mut failed, mut marks) = (None, IntendedRaces::default());
        let explored = simulation.explore(how, program, |run| {
            marks.add(&run.verdict);
            if run.is_ok() {
                return ControlFlow::Continue(());
            }
            // behind a loop that polls for ever there may be something wrong in another class
            let goes_on = matches!(run.verdict.kind, VerdictKind::PollsBounded);
            if failed.is_none() || !goes_on {
                failed = Some(run.without_results());
            }
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let failed = failed.map(|run: Run<T>| simulation.reproduce(&run, program)).transpose();
        Ok((explored.map_err(text)?, marks, failed.map_err(text)?))
    }

    /// Runs the schedule that the environment asks for, and tells every event.
    fn replay<T>(
        &self,
        schedule: &Schedule,
        config: &Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Explored, String> {
        if schedule.configure(config) != *config || schedule.arguments != config.arguments {
            println!("not run: ONESIDED_REPLAY is a schedule for {}", schedule.configure(config).in_words());
            return Ok(Explored::default());
        }
        let run = replay(schedule, config, program)?;
        for event in run.trace.iter().flatten() {
            let json = event.to_json();
            let (text, pe, at) = (json["text"].as_str().unwrap_or_default(), event.pe, event.at);
            println!("{:>6} PE {pe}: {text} at {at}", event.step);
        }
        let mut explored = Explored::default();
        explored.count(&run);
        if !run.is_ok() {
            return Err(format!("{}\n\nwith ONESIDED_REPLAY={schedule}", run.verdict));
        }
        println!("the schedule {schedule} passes");
        Ok(explored)
    }

    /// What to do after a failure.
    fn advice<T>(&self, run: &Run<T>) -> String {
        let schedule = &run.schedule;
        let named = thread::current().name().filter(|name| *name != "main").map(|name| format!(" {name} -- --exact"));
        let test = named.map_or_else(String::new, |name| format!("{name} --nocapture"));
        let limit = match run.verdict.kind {
            VerdictKind::StepLimit { .. } => {
                "Whether the run would have ended is not known: Config::max_steps can be higher.\n"
            }
            VerdictKind::InstructionLimit { .. } => "Config::max_instructions can be higher.\n",
            _ => "",
        };
        format!(
            "{limit}Replay it: ONESIDED_REPLAY={schedule} cargo test{test}\n\
             Keep it as a test: onesided_sim::check_schedule(\"{}\", program)",
            Schedule { fingerprint: None, ..schedule.clone() }
        )
    }
}

/// The simplest run that fails alike, and what explains it: lines behind its verdict. What cannot be explained hides no verdict.
fn explain<T>(
    config: &Config,
    run: Run<T>,
    program: &impl Fn(&Pe<Sim>) -> Result<T>,
) -> std::result::Result<(Run<T>, String), String> {
    let simulation = Simulation::new(config.clone()).map_err(text)?;
    let mut failed = String::new();
    let mut note = |error: Error| failed = format!("\n\nA part of the explanation is missing: {}", text(error));
    let minimized = simulation.minimize(&run, Effort::LITTLE, program).map_err(&mut note).ok().flatten();
    let (run, exceptions) = match minimized {
        Some(Minimized { run, exceptions, .. }) => (run, exceptions),
        None => (run, Vec::new()),
    };
    let mut lines = String::new();
    if !exceptions.is_empty() {
        lines += "\n\nOther than in order:";
    }
    for [late, after] in exceptions {
        lines += &format!("\n    {late}\n        comes after {after}");
    }
    if let Some(critical) = simulation.critical(&run, Effort::LITTLE, program).map_err(&mut note).ok().flatten() {
        lines += &format!("\n\nCritical step: {critical}");
    }
    if let Some(fix) = simulation.fix(&run, Effort::LITTLE, program).map_err(&mut note).ok().and_then(|fixes| fixes.fix)
    {
        lines += &format!("\n\nFix: {fix}");
    }
    Ok((run, lines + &failed))
}

/// Prints what the program has marked as free to race.
fn note(marks: &IntendedRaces) {
    if !marks.is_empty() {
        println!("{marks}");
    }
}

fn replay<T>(
    schedule: &Schedule,
    config: &Config,
    program: &impl Fn(&Pe<Sim>) -> Result<T>,
) -> std::result::Result<Run<T>, String> {
    Simulation::new(config.clone()).and_then(|mut simulation| simulation.replay(schedule, program)).map_err(text)
}

/// An error as the message of a panic, which has a line of its own.
fn text(error: Error) -> String {
    error.message().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onesided::{Backend, SignalOp, expect_eq};

    /// The settings of an environment with these variables.
    fn settings(variables: &[(&str, &str)]) -> std::result::Result<Settings, String> {
        Settings::new(&|name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string()))
    }

    /// Every PE takes a ticket: n! classes.
    fn tickets(pe: &Pe<impl Backend>) -> Result<()> {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        pe.host().atomic_fetch_inc(&counter, 0)?;
        pe.free(counter)
    }

    /// Fails where the second of two signals comes first, which is no data race.
    fn overtaken(pe: &Pe<impl Backend>) -> Result<()> {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 1)?;
            pe.host().signal_op(word.signal(0), 2, SignalOp::Set, 1)?;
        }
        pe.host().barrier_all()?;
        expect_eq(pe.read(&word)?[0] != 1, true, "the second signal coming last")?;
        pe.free(word)
    }

    #[test]
    fn the_environment_is_read_and_what_is_wrong_in_it_named() {
        let usual = Settings { schedules: None, time: None, seed: 0, replay: None };
        assert_eq!(settings(&[]), Ok(usual.clone()));
        let given = [("ONESIDED_SCHEDULES", "7"), ("ONESIDED_TIME", "60"), ("ONESIDED_SEED", "3")];
        let time = Some(Duration::from_secs(60));
        assert_eq!(settings(&given), Ok(Settings { schedules: Some(7), time, seed: 3, ..usual.clone() }));
        let replay = settings(&[("ONESIDED_REPLAY", "os2.2x1.spec.p4.r2a.none")]).unwrap();
        assert_eq!(replay.replay.unwrap().to_string(), "os2.2x1.spec.p4.r2a.none");
        for (variable, value, why) in [
            ("ONESIDED_SCHEDULES", "1e6", "ONESIDED_SCHEDULES is \"1e6\" in the environment; expected a whole number"),
            ("ONESIDED_SCHEDULES", "0", "ONESIDED_SCHEDULES is 0 in the environment; expected at least 1"),
            ("ONESIDED_TIME", "", "ONESIDED_TIME is \"\" in the environment; expected a whole number"),
            ("ONESIDED_SEED", "-1", "ONESIDED_SEED is \"-1\" in the environment; expected a whole number"),
            ("ONESIDED_REPLAY", "os2", "ONESIDED_REPLAY: \"os2\" is not a schedule: it has 1 parts of 6"),
        ] {
            let error = settings(&[(variable, value)]).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn a_time_replaces_the_usual_number_of_schedules() {
        let schedules = |variables: &[(&str, &str)]| settings(variables).unwrap().schedules(50);
        assert_eq!(schedules(&[]), 50);
        assert_eq!(schedules(&[("ONESIDED_TIME", "1")]), u64::MAX);
        assert_eq!(schedules(&[("ONESIDED_TIME", "1"), ("ONESIDED_SCHEDULES", "8")]), 8);
    }

    #[test]
    fn the_environment_bounds_proofs_and_checks() {
        let few = settings(&[("ONESIDED_SCHEDULES", "20")]).unwrap();
        let why = few.prove(4.into(), &tickets).unwrap_err();
        let begins =
            "not proved for 4 PEs under spec with up to 4 pieces a transfer: nothing wrong in 20 classes of about ";
        assert!(why.starts_with(begins) && why.contains("ONESIDED_SCHEDULES=200 or ONESIDED_TIME=SECONDS"), "{why}");
        assert_eq!(few.prove(3.into(), &tickets).unwrap().schedules, 6);
        assert_eq!(few.check_random(9.into(), &tickets).unwrap().schedules, 20);
        let one = settings(&[("ONESIDED_SCHEDULES", "1")]).unwrap();
        assert_eq!(one.check_random(9.into(), &tickets).unwrap().schedules, 1);
        let timed = settings(&[("ONESIDED_TIME", "0")]).unwrap();
        assert_eq!(timed.check_random(9.into(), &tickets).unwrap().schedules, 2);
    }

    /// The seed decides which schedules are visited, and so how many until the first that fails.
    #[test]
    fn the_environment_has_the_seed() {
        let until = |seed: &str| {
            let settings = settings(&[("ONESIDED_SEED", seed)]).unwrap();
            let why = settings.check_random(2.into(), &overtaken).unwrap_err();
            assert!(why.contains(&format!("random from seed {seed}: ")), "{why}");
            why.split(" schedule").next().map(str::to_string)
        };
        let numbers: std::collections::BTreeSet<_> = ["0", "1", "2", "3", "4", "5"].map(until).into();
        assert!(numbers.len() > 1, "{numbers:?}");
    }

    #[test]
    fn a_schedule_in_the_environment_is_the_only_one() {
        let usual = settings(&[]).unwrap();
        let why = usual.prove(2.into(), &overtaken).unwrap_err();
        let line = why.lines().find_map(|line| line.strip_prefix("Replay it: ONESIDED_REPLAY=")).unwrap();
        let schedule = line.split(' ').next().unwrap();
        let replaying = settings(&[("ONESIDED_REPLAY", schedule)]).unwrap();
        for again in [replaying.prove(2.into(), &overtaken), replaying.check_random(2.into(), &overtaken)] {
            let again = again.unwrap_err();
            assert!(again.starts_with("PE 1 failed: check: the second signal coming last"), "{again}");
        }
        // of another cluster it is not run; of another program it is refused
        assert_eq!(replaying.prove(3.into(), &overtaken).unwrap().schedules, 0);
        let other = replaying.prove(2.into(), &tickets).unwrap_err();
        assert!(other.contains("was recorded from a different program"), "{other}");
    }
}
