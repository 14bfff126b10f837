//! Runs a plan on the simulator, up to the first finding.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use onesided::{Error, ErrorKind, Result};
use onesided_nvshmem::CAPABILITIES;
use onesided_sim::{
    Bound, Effort, Explore, Explored, IntendedRaces, Lint, Race, Races, Run, Simulation, VerdictKind, Weaker,
};

use super::Main;
use super::explain::{Explained, explain};
use super::next::has_several_elements;
use super::options::SCHEDULES;
use super::plan::{Plan, Search};
use super::report;
use super::results::{Results, outcome};
use crate::tool::interrupt;
use crate::tool::progress::{Progress, Things};
use crate::tool::stall::Watch;
use crate::{complain, say};

/// What happened when a plan was run.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) end: End,
    /// What the PEs returned on the first schedule.
    pub(super) lines: Vec<Option<String>>,
    /// Steps of the run in order, or of the replayed one, if there was one.
    pub(super) alone: Option<u64>,
    /// What was visited besides.
    pub(super) explored: Explored,
    /// Random schedules besides a search of all that came to a limit.
    pub(super) beside: Option<Explored>,
    pub(super) time: Duration,
    /// The recorded run to report: the finding's, or the first one if a trace is wanted.
    pub(super) recorded: Option<Run<String>>,
    /// What explains the finding, if that was looked for.
    pub(super) explained: Option<Explained>,
    /// The user ended that, or the look for calls that are not needed.
    pub(super) cut: bool,
    /// What is known of calls that order others, where a right program was tried without them.
    pub(super) weaker: Vec<Weaker>,
    /// What the program uses that libnvshmem does not have: the family of calls, and why.
    pub(super) unsupported: Option<(&'static str, &'static str)>,
    /// What the program has marked as free to race, and how many races that stands for.
    pub(super) marks: IntendedRaces,
    /// How many reads of the recorded run returned what nobody has written, and the first of them.
    pub(super) unwritten: Option<(usize, String)>,
    /// The races of the first run that has some, where races are no findings.
    pub(super) noted: Vec<Race>,
    /// What works in the recorded run by luck or without a promise.
    pub(super) lints: Vec<Lint>,
    /// Whether it sends several elements at once, which can arrive in pieces.
    pub(super) sends_several_elements: bool,
    /// Set where nothing wrong was found but the PEs' results depend on the schedule: how many different results there are,
    /// and a recorded run whose results differ from the first run's.
    pub(super) differing: Option<(String, Run<String>)>,
    /// Every different outcome, as a hash, where outcomes are compared.
    pub(super) outcomes: BTreeSet<u64>,
    /// Whether there may be others: a proof does not look at every order behind a race.
    pub(super) has_more_outcomes: bool,
}

/// How a run ended.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    /// Nothing wrong was found.
    Fine,
    /// The recorded run has a finding.
    Finding,
    /// The recorded run was given up at a limit. Nothing wrong was found before it.
    GivenUp,
    /// An exhaustive search found nothing wrong, and was ended by a bound: there are more schedules. Or time was over within the first
    /// schedule.
    Bounded,
    /// The user ended the run before anything was found.
    Interrupted,
    /// The program could not be run.
    Error(String),
}

/// A first run of fewer steps is recorded, to see what the program uses.
const LONG: u64 = 100_000;

/// Runs a plan. `before`: what was found before it and is not printed yet, which is not to be lost with the process.
pub(super) fn run(main: Main<'_>, plan: &Plan, before: Option<String>) -> Done {
    let start = Instant::now();
    let mut done = Done {
        end: End::Fine,
        lines: Vec::new(),
        alone: None,
        explored: Explored::default(),
        beside: None,
        time: Duration::ZERO,
        recorded: None,
        explained: None,
        cut: false,
        weaker: Vec::new(),
        unsupported: None,
        marks: IntendedRaces::default(),
        unwritten: None,
        noted: Vec::new(),
        lints: Vec::new(),
        sends_several_elements: false,
        differing: None,
        outcomes: BTreeSet::new(),
        has_more_outcomes: false,
    };
    if let Err(error) = visit(main, plan, before, &mut done) {
        done.end = End::Error(error.message().to_string());
    }
    if let Some(run) = done.recorded.as_ref().filter(|_| done.end == End::Finding)
        && let VerdictKind::Failed { pe, error } = &run.verdict.kind
        && error.is_operating()
    {
        done.end = End::Error(advise(*pe, error));
    }
    done.time = start.elapsed();
    done
}

fn visit(main: Main<'_>, plan: &Plan, before: Option<String>, done: &mut Done) -> Result<()> {
    let mut simulation = Simulation::new(plan.config.clone())?;
    simulation.stop_when(interrupt::flag());
    simulation.set_budget(plan.budget);
    simulation.count_classes();
    let is_first = before.is_none();
    let watch = Watch::start(simulation.pulse());
    before.into_iter().for_each(|text| watch.found(text));
    if let Search::Replay(schedule) = &plan.search {
        if schedule.fingerprint.is_none() {
            complain!(
                "note: the schedule has no fingerprint, because its run was not recorded; so nothing tells whether it is a \
                 schedule of this program"
            );
        }
        let run = simulation.replay(schedule, main)?;
        done.saw_first(&run, &mut |line| say!("{line}"));
        done.marks.add(&run.verdict);
        done.alone = Some(run.steps);
        done.note_races(plan, &run);
        done.end = End::of(&run);
        done.tell(&watch, plan, &run);
        done.look(&run);
        done.explain(plan, &mut simulation, run, main);
        return Ok(());
    }

    let mut results = Results::default();
    let (first, finding) = search(main, plan, &mut simulation, done, &mut results)?;
    if let Some(run) = &finding {
        done.end = End::of(run);
        if is_first {
            done.tell(&watch, plan, run);
        }
    } else if done.explored.bound == Some(Bound::Stopped) {
        done.end = End::Interrupted;
    } else if plan.is_all() && !done.explored.complete || done.schedules() == 0 {
        done.end = End::Bounded;
    }
    if let (None, Some(other)) = (&finding, results.other()) {
        done.differing = Some((results.count(), simulation.reproduce(other, main)?));
    }
    if plan.weaken && done.end == End::Fine {
        done.weaker = simulation.on_cores(plan.cores).weaken(Effort::MUCH, main)?;
        done.cut = interrupt::is_wanted();
    }
    // Recording takes time. So the run to report is run again, and recorded then.
    let has_finding = finding.is_some();
    if let Some(run) = finding.or(first).filter(|run| has_finding || plan.needs_a_record() || run.steps < LONG) {
        let recorded = simulation.reproduce(&run, main)?;
        done.look(&recorded);
        match has_finding {
            true => done.explain(plan, &mut simulation, recorded, main),
            false => done.recorded = Some(recorded).filter(|_| plan.needs_a_record()),
        }
    }
    Ok(())
}

/// The first run, and the first finding.
type Found = (Option<Run<String>>, Option<Run<String>>);

/// Visits what the plan asks for, up to the first finding.
fn search(
    main: Main<'_>,
    plan: &Plan,
    simulation: &mut Simulation,
    done: &mut Done,
    results: &mut Results,
) -> Result<Found> {
    let (mut first, mut finding) = (None, None);
    let explore = match plan.search {
        Search::InOrder { then } => {
            let run = simulation.run(main)?;
            if let VerdictKind::Stopped { bound } = run.verdict.kind {
                done.explored.bound = Some(bound);
                return Ok((None, None));
            }
            done.saw_first(&run, &mut |line| plan.print(line));
            done.marks.add(&run.verdict);
            done.alone = Some(run.steps);
            done.note_races(plan, &run);
            if run.is_ok() {
                results.add(&run);
                first = Some(run);
            } else if plan.compares && !run.is_given_up() {
                finding = Some(run);
            } else if plan.is_all() && matches!(run.verdict.kind, VerdictKind::StepLimit { .. }) {
                finding = Some(run); // a search of all takes no poll in vain
            } else {
                return Ok((None, Some(run)));
            }
            then
        }
        Search::Only(explore) => Some(explore),
        Search::Replay(_) => None,
    };
    if let Some(how) = explore {
        let is_found = finding.as_ref().is_some_and(|run| !run.is_given_up());
        let found = explore_up_to_a_finding(main, plan, simulation, how, done, (&mut first, is_found), results)?;
        if !is_found && (found.is_some() || done.explored.complete) {
            finding = found;
        }
        if plan.is_all() && finding.as_ref().is_some_and(is_at_a_limit) {
            finding = look_beside(main, simulation, plan, done)?.or(finding);
        }
    }
    Ok((first, finding))
}

/// Whether a run was given up at a limit.
fn is_at_a_limit(run: &Run<String>) -> bool {
    matches!(run.verdict.kind, VerdictKind::StepLimit { .. } | VerdictKind::InstructionLimit { .. })
}

/// Looks for a finding in random schedules. A search of all schedules never leaves a loop without an end, and most bugs show in
/// random schedules too.
fn look_beside(
    main: Main<'_>,
    simulation: &mut Simulation,
    plan: &Plan,
    done: &mut Done,
) -> Result<Option<Run<String>>> {
    let (mut finding, mut steps) = (None, 0);
    let explored = simulation.on_cores(plan.cores).explore(Explore::random(SCHEDULES, 0), main, |run| {
        steps += run.steps;
        done.marks.add(&run.verdict);
        if run.has_finding() {
            finding = Some(run.without_results());
        }
        if finding.is_some() || steps > STEPS_BESIDE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    done.beside = Some(explored);
    Ok(finding)
}

/// Steps of random schedules besides a search of all: a few seconds.
const STEPS_BESIDE: u64 = 10_000_000;

/// Visits schedules up to the first finding, which it returns. Where outcomes are compared, it visits those behind it too.
fn explore_up_to_a_finding(
    main: Main<'_>,
    plan: &Plan,
    simulation: &mut Simulation,
    how: Explore,
    done: &mut Done,
    (first, is_found): (&mut Option<Run<String>>, bool),
    results: &mut Results,
) -> Result<Option<Run<String>>> {
    let (total, things) = match how {
        Explore::Random { schedules, .. } => (Some(schedules).filter(|&n| n < u64::MAX - 1), Things::SCHEDULES),
        Explore::All { .. } => (None, Things::CLASSES),
    };
    let (progress, outlook) = (Progress::new(total, things), simulation.outlook());
    let (mut finding, mut behind) = (None, is_found.then_some(0));
    let (before, marks) = (results.before_proof(), done.marks.clone());
    done.explored = simulation.on_cores(plan.cores).explore(how, main, |run| {
        progress.step_of(|| outlook.look().estimated);
        if run.begins_again {
            // what it saw before may not be the program's results
            results.begin_again(&before);
            done.marks.clone_from(&marks);
            done.outcomes.clear();
            done.has_more_outcomes = false;
            *first = Some(run.without_results());
        }
        done.marks.add(&run.verdict);
        done.note_races(plan, run);
        if first.is_none() {
            *first = Some(run.without_results());
            done.saw_first(run, &mut |line| {
                if !plan.in_table {
                    progress.println(line)
                }
            });
        }
        if plan.compares {
            done.outcomes.insert(outcome(run));
            done.has_more_outcomes |= plan.config.races == Races::Find && !run.verdict.races.is_empty();
        }
        behind = behind.map(|classes| classes + 1);
        if behind.is_some_and(|classes| classes > plan.behind) {
            return ControlFlow::Break(()); // it has a finding, and its outcomes are too many to compare
        }
        if run.is_ok() {
            results.add(run);
            return ControlFlow::Continue(());
        }
        behind = behind.or((!run.is_given_up()).then_some(0));
        // in another class a loop that polls may end, or something may be wrong
        let polls = matches!(run.verdict.kind, VerdictKind::PollsBounded);
        if finding.as_ref().is_none_or(|other: &Run<String>| other.is_given_up() && !run.is_given_up()) {
            finding = Some(run.without_results());
        }
        if polls || plan.compares && !run.is_given_up() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(finding)
}

impl End {
    /// How the visit ended, if this run is its last.
    fn of(run: &Run<String>) -> End {
        match run.is_ok() {
            true => End::Fine,
            false if matches!(run.verdict.kind, VerdictKind::Stopped { bound: Bound::Stopped }) => End::Interrupted,
            false if run.is_given_up() => End::GivenUp,
            false => End::Finding,
        }
    }
}

impl Done {
    /// Schedules visited, the one in order included.
    pub(super) fn schedules(&self) -> u64 {
        u64::from(self.alone.is_some()) + self.explored.schedules
    }

    /// Why the search ended early. A number of random schedules includes the one in order, as `--schedules` does.
    pub(super) fn bound(&self, plan: &Plan) -> Option<Bound> {
        let in_order = u64::from(self.alone.is_some() && !plan.is_all());
        self.explored.bound.map(|bound| match bound {
            Bound::Schedules(others) => Bound::Schedules(others + in_order),
            other => other,
        })
    }

    /// Steps taken in all.
    pub(super) fn steps(&self) -> u64 {
        self.alone.unwrap_or(0) + self.explored.steps
    }

    /// Keeps the recorded run to report, and explains it.
    fn explain(&mut self, plan: &Plan, simulation: &mut Simulation, run: Run<String>, main: Main<'_>) {
        let is_about_the_program = match &run.verdict.kind {
            VerdictKind::Failed { error, .. } => !error.is_operating(),
            _ => self.end == End::Finding,
        };
        if is_about_the_program && !plan.in_table {
            let (run, explained) = explain(plan, simulation, run, main);
            self.cut = interrupt::is_wanted();
            (self.recorded, self.explained) = (Some(run), Some(explained));
        } else {
            self.recorded = Some(run);
        }
    }

    /// A finding is to be explained, by runs that may not end: then it is told without that.
    fn tell(&self, watch: &Watch, plan: &Plan, run: &Run<String>) {
        if self.end == End::Finding {
            watch.found(format!("FINDING {}", report::finding(plan, self, run)));
        }
    }

    /// Keeps the races of a run, if they are no findings.
    fn note_races(&mut self, plan: &Plan, run: &Run<String>) {
        if plan.config.races == Races::Note && self.noted.is_empty() {
            self.noted.clone_from(&run.verdict.races);
        }
    }

    /// Looks at what a recorded run uses.
    fn look(&mut self, run: &Run<String>) {
        let events = || run.trace.iter().flatten();
        self.unsupported = events().find_map(|event| event.unsupported(&CAPABILITIES));
        let mut blank = events().filter_map(|event| Some((event, event.unwritten.as_ref()?)));
        self.unwritten = blank.next().map(|(event, what)| {
            let stream = event.stream.map(|stream| format!(" stream {stream}")).unwrap_or_default();
            (1 + blank.count(), format!("PE {}{stream} at {}: {what}", event.pe, event.at))
        });
        self.lints.clone_from(&run.verdict.lints);
        let mut ops = events().filter_map(|event| event.op());
        self.sends_several_elements = ops.any(|op| has_several_elements(&op.effect()));
    }

    /// Prints what the PEs returned, before the exploration that may take long.
    fn saw_first(&mut self, run: &Run<String>, print: &mut dyn FnMut(&str)) {
        run.results.iter().flatten().filter(|text| !text.is_empty()).for_each(|text| print(text));
        self.lines = run.results.clone();
    }
}

/// What an error says that is about this machine, and what helps.
pub(super) fn advise(pe: usize, error: &Error) -> String {
    let advice = match error.kind() {
        ErrorKind::OutOfMemory => {
            "; give each PE more by --heap, or all of them by --memory, or free what is no longer needed"
        }
        _ => "",
    };
    format!("PE {pe}: {error}{advice}")
}

#[cfg(test)]
mod tests {
    use onesided::{Pe, expect_eq};
    use onesided_sim::Sim;

    use super::*;
    use crate::program::plan::test::plan_of;

    /// The last PE's ticket is one too many, on every schedule: n! classes.
    fn tickets(pe: &Pe<Sim>) -> Result<String> {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        let ticket = pe.host().atomic_fetch_inc(&counter, 0)?;
        expect_eq(ticket + 1 < pe.n_pes() as u64, true, "a ticket")?;
        pe.free(counter)?;
        Ok(String::new())
    }

    /// A row of a table whose outcomes are compared goes on behind its finding, and not for ever.
    #[test]
    fn behind_a_finding_the_comparison_is_bounded() {
        let searched = |behind: u64| {
            let plan = plan_of("--all --pes 4 --jobs 1");
            let done = run(&tickets, &Plan { in_table: true, compares: true, behind, ..plan }, None);
            assert!(done.end == End::Finding && done.recorded.is_some());
            (done.explored.schedules, done.explored.complete)
        };
        assert_eq!([searched(u64::MAX), searched(24), searched(5)], [(24, true), (24, true), (6, false)]);
    }
}
