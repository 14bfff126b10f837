//! What [`prove`](super::prove) and the others do, and what they say when it fails.

use std::ops::ControlFlow;
use std::thread;

use onesided::{Error, ErrorKind, Pe, Result, count};

use super::settings::Settings;
use crate::config::Config;
use crate::explain::{Effort, Minimized};
use crate::limits::{Bound, Budget};
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

impl Settings {
    pub(super) fn prove<T>(
        &self,
        config: Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Explored, String> {
        if let Some(replayed) = self.replay(&config, program)? {
            return Ok(replayed);
        }
        let limit = self.schedules(CLASSES);
        let (explored, marks, failed) = self.search(&config, Explore::All { limit }, polls_are_bounded, program)?;
        let proof = explored.proof(&config);
        if let Some(run) = failed {
            return Err(self.failure(&proof, &config, run, program)?);
        }
        println!("{proof}");
        note(&marks);
        if explored.complete {
            return Ok(explored);
        }
        let higher = match explored.bound {
            Some(Bound::Time(time)) => format!("ONESIDED_TIME={}", 10 * time.as_secs().max(1)),
            _ => format!("ONESIDED_SCHEDULES={} or ONESIDED_TIME=SECONDS", limit.saturating_mul(10)),
        };
        Err(format!(
            "{proof}\n\nNothing wrong was found, and not everything was seen. To let the search go on, set a higher limit: \
             {higher}. To make it smaller, use fewer PEs, smaller data, or Config {{ pieces: 1, .. }}. For random schedules in place of a \
             proof, call check_random."
        ))
    }

    pub(super) fn check_random<T>(
        &self,
        config: Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Explored, String> {
        if let Some(replayed) = self.replay(&config, program)? {
            return Ok(replayed);
        }
        let (schedules, seed) = (self.schedules(RANDOM), self.seed);
        let mut simulation = Simulation::new(config.clone()).map_err(text)?;
        let first = simulation.run(program).map_err(text)?;
        let failed = (!first.is_ok()).then(|| simulation.reproduce(&first, program));
        let (mut explored, mut failed) = (Explored::default(), failed.transpose().map_err(text)?);
        let mut marks = IntendedRaces::default();
        if failed.is_none() && schedules > 1 {
            let random = Explore::random(schedules - 1, seed);
            (explored, marks, failed) = self.search(&config, random, polls_are_bounded, program)?;
        }
        explored.count(&first);
        marks.add(&first.verdict);
        let mut how = format!("1 in order, {} random from seed {seed}", explored.schedules - 1);
        if let Some(n) = explored.classes {
            how += &format!(": {}", count(n, "class"));
        }
        let done = format!("{} ({how}) for {}", count(explored.schedules, "schedule"), config.in_words());
        if let Some(run) = failed {
            return Err(self.failure(&format!("fails on the last of {done}"), &config, run, program)?);
        }
        println!("nothing wrong in {done}");
        note(&marks);
        Ok(explored)
    }

    pub(super) fn refute<T>(
        &self,
        config: &Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Run<T>, String> {
        let mut simulation = Simulation::new(config.clone()).map_err(text)?;
        let first = simulation.run(program).map_err(text)?;
        if first.has_finding() {
            return simulation.reproduce(&first, program).map_err(text).and_then(bug);
        }
        let (all, random) = (self.schedules(CLASSES), self.schedules(RANDOM));
        let (explored, _, failed) = self.search(config, Explore::All { limit: all }, polls_are_bounded, program)?;
        if let Some(run) = failed.filter(Run::has_finding) {
            return bug(run);
        }
        let proof = explored.proof(config);
        if explored.complete {
            return Err(format!("no schedule fails: {proof}"));
        }
        let random = Explore::random(random, self.seed);
        let (explored, _, failed) = self.search(config, random, |run| run.is_given_up(), program)?;
        let random = count(explored.schedules, "random schedule");
        let why = || format!("no schedule was found that fails: {proof}; and {random} from seed {}", self.seed);
        failed.filter(Run::has_finding).ok_or_else(why).and_then(bug)
    }

    /// Visits schedules up to the first that is not right, and returns that run, recorded. `goes_on`: whether to go on behind a run that is not right. Then the
    /// first such run is returned if no other ends the search.
    fn search<T>(
        &self,
        config: &Config,
        how: Explore,
        goes_on: impl Fn(&Run<T>) -> bool,
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
            let goes_on = goes_on(run);
            if failed.is_none() || !goes_on {
                failed = Some(run.without_results());
            }
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let failed = failed.map(|run: Run<T>| simulation.reproduce(&run, program)).transpose();
        Ok((explored.map_err(text)?, marks, failed.map_err(text)?))
    }

    /// Runs the schedule that the environment asks for, and tells every event. `None`: there is none, or it is of another program. Then
    /// this one is to run as usual, because the variable stands for all tests of `cargo test`.
    fn replay<T>(
        &self,
        config: &Config,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<Option<Explored>, String> {
        let Some(schedule) = &self.replay else { return Ok(None) };
        let has_other_arguments = schedule.arguments != config.arguments;
        if has_other_arguments || schedule.configure(config) != *config {
            let other = if has_other_arguments { ", with other arguments" } else { "" };
            let what = format!("ONESIDED_REPLAY is a schedule for {}{other}", schedule.configure(config).in_words());
            if schedule.arguments != 0 && config.arguments != 0 {
                println!("not run: {what}"); // mostly another case of the same property test
                return Ok(Some(Explored::default()));
            }
            println!("run as usual: {what}");
            return Ok(None);
        }
        let mut simulation = Simulation::new(config.clone()).map_err(text)?;
        let run = match simulation.replay(schedule, program) {
            Err(why) if why.kind() == ErrorKind::InvalidArgument => {
                println!("run as usual: ONESIDED_REPLAY does not fit here: {}", why.message());
                return Ok(None);
            }
            run => run.map_err(text)?,
        };
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
        Ok(Some(explored))
    }

    /// A failed run behind what was `done`: the verdict, what explains it, and what to do.
    fn failure<T>(
        &self,
        done: &str,
        config: &Config,
        run: Run<T>,
        program: &impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> std::result::Result<String, String> {
        let (run, explained) = explain(config, run, program)?;
        Ok(format!("{done}\n\n{}{explained}\n\n{}", run.verdict, self.advice(&run)))
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

/// Whether only polls were left. Then another class may still show what is wrong, so the search goes on.
fn polls_are_bounded<T>(run: &Run<T>) -> bool {
    matches!(run.verdict.kind, VerdictKind::PollsBounded)
}

/// The simplest run that fails alike, and lines that explain it, to print behind its verdict. A failed explanation does not hide the verdict.
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

pub(super) fn replay<T>(
    schedule: &Schedule,
    config: &Config,
    program: &impl Fn(&Pe<Sim>) -> Result<T>,
) -> std::result::Result<Run<T>, String> {
    Simulation::new(config.clone()).and_then(|mut simulation| simulation.replay(schedule, program)).map_err(text)
}

/// A run that fails, if that is a bug of the program.
fn bug<T>(run: Run<T>) -> std::result::Result<Run<T>, String> {
    match &run.verdict.kind {
        VerdictKind::Failed { pe, error } if error.is_operating() => Err(format!(
            "the program cannot do what it asks for, which is no bug that a test could show: PE {pe}: {error}"
        )),
        _ => Ok(run),
    }
}

/// An error as the message of a panic, which has a line of its own.
fn text(error: Error) -> String {
    error.message().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::settings;
    use super::*;
    use onesided::{Backend, SignalOp, expect_eq};

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
    fn a_schedule_in_the_environment_names_its_case() {
        let case = |elements: u64| Config::pes(2).with_arguments(&elements.to_string());
        let program = |elements: u64| {
            move |pe: &Pe<Sim>| match elements {
                3 => overtaken(pe),
                _ => tickets(pe),
            }
        };
        let why = settings(&[]).unwrap().prove(case(3), &program(3)).unwrap_err();
        let (_, schedule) = why.split_once("ONESIDED_REPLAY=").unwrap();
        let replaying = settings(&[("ONESIDED_REPLAY", schedule.split(' ').next().unwrap())]).unwrap();
        assert_eq!(replaying.prove(case(2), &program(2)).unwrap().schedules, 0);
        // what is no case of a property test is another test
        assert!(replaying.prove(2.into(), &program(2)).unwrap().complete);
        assert!(replaying.prove(case(3), &program(3)).unwrap_err().contains("the second signal coming last"));
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
        // of another cluster or program, it changes nothing
        assert!(replaying.prove(3.into(), &overtaken).unwrap_err().starts_with("fails "));
        assert_eq!(replaying.prove(3.into(), &tickets).unwrap().schedules, 6);
        let other = replaying.prove(2.into(), &tickets).unwrap();
        assert!(other.complete && other.schedules == 2, "{other:?}");
        assert_eq!(replaying.check_random(2.into(), &tickets).unwrap().schedules, RANDOM);
        // nor where its picks or exceptions are none of the program
        for choices in ["c7", "xt1c02lg100000000n3"] {
            let wild = format!("os2.2x1.spec.p4.{choices}.none");
            let proved = settings(&[("ONESIDED_REPLAY", &wild)]).unwrap().prove(2.into(), &tickets).unwrap();
            assert!(proved.complete, "{choices}: {proved:?}");
        }
    }
}
