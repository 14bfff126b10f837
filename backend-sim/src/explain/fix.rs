//! [`Fix`]: the weakest calls whose insertion makes a program right, found by trying.

use std::fmt;

use onesided::{At, Pe, Result, count};

use super::edit::{Edit, Ordering};
use super::lacking::Lacking;
use super::lines::{Call, Calls};
use super::trial::{Effort, Job, Trial, Trials, Triers};
use crate::crew::Crew;
use crate::explore::Random;
use crate::pe::Sim;
use crate::race::{MissingEdge, Race, in_one_line};
use crate::schedule::Choices;
use crate::search::UNLESS_POLLS_ARE_COUNTED;
use crate::simulation::{Run, Simulation, launched, with_pe};
use crate::verdict::{After, VerdictKind};

/// A change of a few calls that makes a program right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// The changes: one, or several that are needed together: two of hosts, or up to three of kernels.
    pub edits: Vec<Edit>,
    /// For each change the call that a PE makes next. The new call can stand anywhere before it.
    pub before: Vec<Option<At>>,
    /// What the program with these changes was shown to be.
    pub shown: Shown,
    /// Whether every weaker change was tried, and each one fails: in place of a barrier, a sync too. In kernels, at the lines of the race.
    pub is_weakest: bool,
    /// Whether a sync in place of each barrier was proved right, too.
    pub sync_is_enough: bool,
}

/// What was shown of a changed program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a change is proved right, or it is not")]
pub enum Shown {
    /// It is right on every schedule: so many classes.
    Proved {
        /// Classes of schedules.
        classes: u64,
        /// Whether polls were left out that would have read nothing new, as [`Explored::polls`](crate::Explored::polls) says.
        polls: bool,
    },
    /// Nothing was wrong on so many schedules, and there are more.
    NothingFound {
        /// Schedules.
        schedules: u64,
    },
}

/// What came of the search for a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fixes {
    /// The weakest change that was found.
    pub fix: Option<Fix>,
    /// Changes that were tried.
    pub tried: u64,
}

/// The most places of each kind of call that are tried.
const PLACES: usize = 12;
/// The most pairs of changes that are tried.
const PAIRS: usize = 16;

impl Simulation {
    /// Looks for the weakest change that makes a program right: one call (`fence`, `put_signal` in place of a put and a signal, `flush`,
    /// `quiet`, `synchronize`, in this order; a flush comes first where a fence completes), two of them, or with a `barrier_all`. Each change
    /// is tried: the program runs with it, on every schedule if they are few enough. A `synchronize` is tried behind what is put on a stream,
    /// and before what races with that. A barrier is only tried where all PEs make the call before it, between two calls that race, and
    /// behind each of two calls that different PEs make in the rounds of a loop.
    ///
    /// `run` is the finding: a run of `program` on this cluster. Findings that no order cures have no fix: a leak, say.
    ///
    /// ```
    /// use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
    /// use onesided_sim::{Config, Effort, Simulation};
    ///
    /// fn program(pe: &Pe<impl Backend>) -> Result<()> {
    ///     let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    ///     if pe.my_pe() == 0 {
    ///         pe.host().p(&data, 7, 1)?; // a fence is missing behind it
    ///         pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    ///     } else {
    ///         pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    ///         expect_eq(pe.read_one(&data)?, 7, "the data")?;
    ///     }
    ///     pe.free(flag)?;
    ///     pe.free(data)
    /// }
    ///
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let finding = simulation.run(program)?;
    /// let fix = simulation.fix(&finding, Effort::LITTLE, program)?.fix.unwrap();
    /// assert_eq!(
    ///     fix.to_string(),
    ///     format!("insert `fence` after {}: proved; nothing weaker is enough", finding.verdict.races[0].first.at)
    /// );
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub fn fix<T>(&self, run: &Run<T>, effort: Effort, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Result<Fixes> {
        self.fix_with(run, effort, &program, &mut Crew::alone(&mut |job: Job| job.run(&program)))
    }

    /// The same, with a crew.
    pub(crate) fn fix_with<T>(
        &self,
        run: &Run<T>,
        effort: Effort,
        program: &dyn Fn(&Pe<Sim>) -> Result<T>,
        crew: &mut Triers<'_>,
    ) -> Result<Fixes> {
        if !can_be_cured(&run.verdict.kind) || run.verdict.has_reached_a_limit() || run.steps > effort.steps / 4 {
            return Ok(Fixes { fix: None, tried: 0 });
        }
        let trials = Trials::new(self, effort, run.steps, crew);
        let mut search = Search {
            calls: calls_of(&trials, run, program)?,
            trials,
            races: &run.verdict.races,
            is_weakest: true,
            lacks: run.verdict.races.first().and_then(|race| lacks(&race.missing)),
            helping: Vec::new(),
            not_proved: None,
        };
        let fix = match search.in_kernels(&run.verdict)? {
            Some(fix) => Some(fix),
            None => search.weakest()?,
        };
        Ok(Fixes { fix, tried: search.trials.made })
    }
}

/// Random runs from which calls are learned.
const RUNS: u64 = 8;

/// The calls of a program: of the run in order, and of the finding. Where the one in order was cut, some random runs show more.
fn calls_of<T>(of: &Trials<'_, '_>, run: &Run<T>, program: &dyn Fn(&Pe<Sim>) -> Result<T>) -> Result<Calls> {
    let mut simulation = of.another()?;
    simulation.engine.ends_at(of.deadline());
    let process = with_pe(program);
    let program = launched(&process);
    let mut calls = Calls::default();
    let in_order = simulation.record(&Choices::InOrder, &program)?;
    calls.add(in_order.trace.as_deref().unwrap_or_default());
    if in_order.verdict.kind.after() != After::Nothing {
        for index in 0..RUNS {
            let random = Choices::Seed(Random::nth_seed(0, index));
            calls.add(simulation.record(&random, &program)?.trace.as_deref().unwrap_or_default());
        }
    }
    calls.add(run.trace.as_deref().unwrap_or_default());
    Ok(calls)
}

/// Whether another order of calls may help.
fn can_be_cured(kind: &VerdictKind) -> bool {
    match kind {
        VerdictKind::Race
        | VerdictKind::Deadlock
        | VerdictKind::Failed { .. }
        | VerdictKind::Panicked { .. }
        | VerdictKind::FreedInUse { .. }
        | VerdictKind::ConcurrentCollectives { .. }
        | VerdictKind::CollectivesOutOfOrder { .. }
        | VerdictKind::Kernel { races_with: Some(_), .. } => true,
        VerdictKind::Finished
        | VerdictKind::Lint
        | VerdictKind::Kernel { races_with: None, .. }
        | VerdictKind::Mismatch { .. }
        | VerdictKind::Leak { .. }
        | VerdictKind::StepLimit { .. }
        | VerdictKind::InstructionLimit { .. }
        | VerdictKind::Stopped { .. }
        | VerdictKind::PollsBounded
        | VerdictKind::Exited { .. } => false,
    }
}

pub(super) struct Search<'a, 'b> {
    pub(super) trials: Trials<'a, 'b>,
    pub(super) races: &'a [Race],
    calls: Calls,
    /// Whether everything weaker was tried, and fails.
    pub(super) is_weakest: bool,
    /// The call that the finding's first race lacks.
    lacks: Option<Ordering>,
    /// Changes after which some race of the finding is gone.
    helping: Vec<Edit>,
    /// The weakest change with which nothing wrong was found, and that is not proved.
    not_proved: Option<Fix>,
}

/// A kind of change: a weaker one is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    PutSignal,
    Inserts(Ordering),
}

impl Search<'_, '_> {
    /// The weakest change: one call of a PE, or two, and only then calls by which PEs meet.
    fn weakest(&mut self) -> Result<Option<Fix>> {
        let kinds = self.kinds();
        if let Some(fix) = self.single(&kinds)? {
            return Ok(Some(fix));
        }
        if self.not_proved.is_none() {
            let pairs = self.ends_of_streams().into_iter().chain(self.pairs_that_help(0)).collect();
            if let Some(fix) = self.pair(pairs)? {
                return Ok(Some(fix));
            }
        }
        let tried = self.helping.len();
        let one = self.single(&[Kind::Inserts(Ordering::Barrier)])?;
        if let Some(fix) = one.or_else(|| self.not_proved.take()) {
            return Ok(Some(fix));
        }
        let rounds = self.calls.rounds(self.races).into_iter();
        self.pair(rounds.chain(self.pairs_that_help(tried)).collect())
    }

    /// One change of these kinds, in their order.
    fn single(&mut self, kinds: &[Kind]) -> Result<Option<Fix>> {
        let kinds: Vec<(Kind, Vec<Edit>)> = kinds.iter().map(|&kind| (kind, self.edits(kind))).collect();
        let changes = kinds.iter().flat_map(|(_, edits)| edits.iter().take(PLACES)).map(|edit| vec![*edit]);
        self.trials.expect(changes);
        for (kind, edits) in kinds {
            self.is_weakest &= edits.len() <= PLACES;
            for edit in edits.into_iter().take(PLACES) {
                if let Some(fix) = self.attempt(kind, vec![edit])? {
                    return Ok(Some(fix));
                }
            }
        }
        Ok(None)
    }

    /// The kinds of changes by which a PE waits for no other, the weakest first. Where a fence completes what it orders, a flush is weaker.
    fn kinds(&self) -> [Kind; 5] {
        use Kind::{Inserts, PutSignal};
        let first = match self.trials.config().profile.promises().fence_completes {
            false => [Inserts(Ordering::Fence), PutSignal, Inserts(Ordering::Flush)],
            true => [Inserts(Ordering::Flush), Inserts(Ordering::Fence), PutSignal],
        };
        let [a, b, c] = first;
        [a, b, c, Inserts(Ordering::Quiet), Inserts(Ordering::Synchronize)]
    }

    fn edits(&self, kind: Kind) -> Vec<Edit> {
        match kind {
            Kind::Inserts(call) => {
                let places = self.places(call).into_iter();
                let insert = places.map(|(after, on_stream)| Edit::Insert { call, after, on_stream });
                match call {
                    Ordering::Barrier => self.calls.meetings(self.races).into_iter().chain(insert).collect(),
                    Ordering::Synchronize => insert.chain(self.calls.late_ends(self.races)).collect(),
                    _ => insert.collect(),
                }
            }
            Kind::PutSignal => {
                let pairs = self.calls.puts_and_signals.iter();
                pairs.map(|&((put, _), signal)| Edit::PutSignal { put, signal }).collect()
            }
        }
    }

    /// A stream's transfer that the host uses needs a flush or quiet on the stream and its end.
    fn ends_of_streams(&self) -> Vec<Vec<Edit>> {
        let calls = [Ordering::Flush, Ordering::Quiet].into_iter();
        let places = calls.flat_map(|call| self.places(call).into_iter().map(move |place| (call, place)));
        let on_streams = places.filter(|(_, (_, on_stream))| *on_stream);
        let both = |(call, (after, on_stream))| {
            Vec::from([call, Ordering::Synchronize].map(|call| Edit::Insert { call, after, on_stream }))
        };
        on_streams.map(both).collect()
    }

    /// Several races may need a call each. Of the changes that help, one of each pair is not among the first `tried`.
    fn pairs_that_help(&self, tried: usize) -> Vec<Vec<Edit>> {
        let all = self.helping.iter().enumerate();
        let pairs = all.flat_map(|(number, &one)| {
            let others = self.helping.iter().skip(tried.max(number + 1));
            others.filter(move |other| place(other) != place(&one)).map(move |&other| vec![one, other])
        });
        pairs.collect()
    }

    /// Two changes that are needed together, the weakest first.
    fn pair(&mut self, mut pairs: Vec<Vec<Edit>>) -> Result<Option<Fix>> {
        self.is_weakest &= pairs.len() <= PAIRS;
        pairs.truncate(PAIRS);
        self.trials.expect(pairs.iter().cloned());
        for pair in pairs {
            if let Some(fix) = self.attempt(Kind::Inserts(Ordering::Barrier), pair)? {
                return Ok(Some(fix));
            }
        }
        Ok(None)
    }

    /// The places behind which that call is tried.
    fn places(&self, call: Ordering) -> Vec<Call> {
        self.calls.behind_which(call, self.races, self.trials.config().pes)
    }

    /// Tries a change. One that is not proved is taken at once only if it is as strong as the call that the race lacks.
    fn attempt(&mut self, kind: Kind, edits: Vec<Edit>) -> Result<Option<Fix>> {
        let trial = self.trials.of(&edits)?;
        if let (Trial::Fails(left), [edit]) = (&trial, &edits[..])
            && self.helps(left)
        {
            self.helping.push(*edit);
        }
        self.judged(Some(kind), edits, trial)
    }

    /// The fix that a trial has shown, if it has shown one. `kind`: that of a change of the host.
    pub(super) fn judged(&mut self, kind: Option<Kind>, edits: Vec<Edit>, trial: Trial) -> Result<Option<Fix>> {
        let shown = match trial {
            Trial::Fails(_) => return Ok(None),
            Trial::NotTried | Trial::Unseen => {
                self.is_weakest = false;
                return Ok(None);
            }
            Trial::Proved { classes, polls } => Shown::Proved { classes, polls },
            Trial::NothingFound(schedules) => Shown::NothingFound { schedules },
        };
        let before = edits.iter().map(|edit| self.next_of(edit)).collect();
        let sync = self.with_syncs(&edits)?;
        let sync_is_enough = matches!(sync, Some(Trial::Proved { .. }));
        let is_weakest = self.is_weakest
            && match sync {
                None => true,
                Some(Trial::Fails(_)) => self.needs_more_than_syncs(&edits)?,
                Some(_) => false,
            };
        let fix = Fix { edits, before, shown, is_weakest, sync_is_enough };
        if matches!(shown, Shown::Proved { .. }) || self.lacks.is_none_or(|lacks| kind >= Some(Kind::Inserts(lacks))) {
            return Ok(Some(fix));
        }
        self.is_weakest = false;
        self.not_proved.get_or_insert(fix);
        Ok(None)
    }

    /// What the same change is with syncs in place of barriers, if it has any.
    fn with_syncs(&mut self, edits: &[Edit]) -> Result<Option<Trial>> {
        let mut weaker = edits.to_vec();
        for edit in &mut weaker {
            if let Edit::Insert { call: call @ Ordering::Barrier, .. } | Edit::Meet { call, .. } = edit {
                *call = Ordering::Sync;
            }
        }
        (weaker != edits).then(|| self.trials.of(&weaker)).transpose()
    }

    /// Whether no sync is enough, at any other place than that of the barrier: the order of other calls may be what is missing.
    fn needs_more_than_syncs(&mut self, edits: &[Edit]) -> Result<bool> {
        let [_] = edits else { return Ok(false) }; // not tried
        let syncs = self.edits(Kind::Inserts(Ordering::Sync));
        for sync in syncs.iter().take(PLACES) {
            if !matches!(self.trials.of(&[*sync])?, Trial::Fails(_)) {
                return Ok(false);
            }
        }
        Ok(syncs.len() <= PLACES)
    }

    /// Whether a race of the finding is not among those that are left.
    fn helps(&self, left: &[Lacking]) -> bool {
        self.races.iter().map(Lacking::from).any(|race| left.iter().all(|other| other.lines != race.lines))
    }

    fn next_of(&self, edit: &Edit) -> Option<At> {
        match *edit {
            Edit::Insert { after, on_stream, .. } => self.calls.all.get(&(after, on_stream))?.next,
            Edit::Synchronize { after, .. } => self.calls.all.get(&(after, false))?.next,
            Edit::PutSignal { signal, .. } => Some(signal),
            Edit::Meet { before, .. } => Some(before),
            Edit::InKernel { .. } | Edit::Replace { .. } => None,
        }
    }
}

/// The call that would make a missing edge.
fn lacks(missing: &MissingEdge) -> Option<Ordering> {
    match missing {
        MissingEdge::Fence { .. } | MissingEdge::BlocksFence { .. } => Some(Ordering::Fence),
        MissingEdge::Quiet { .. } => Some(Ordering::Quiet),
        MissingEdge::Flush { .. } => Some(Ordering::Flush),
        MissingEdge::Synchronize { .. } => Some(Ordering::Synchronize),
        MissingEdge::Barrier { .. } | MissingEdge::Through { .. } | MissingEdge::Answer { .. } => {
            Some(Ordering::Barrier)
        }
        MissingEdge::Atomic { .. }
        | MissingEdge::StrongLoad { .. }
        | MissingEdge::OneSize { .. }
        | MissingEdge::Scope { .. }
        | MissingEdge::Reduction { .. }
        | MissingEdge::SystemFence { .. }
        | MissingEdge::GpuFence { .. }
        | MissingEdge::ReadersFence { .. }
        | MissingEdge::ReleasingFence { .. }
        | MissingEdge::AcquiringFence { .. }
        | MissingEdge::OneThread { .. }
        | MissingEdge::Threads { .. }
        | MissingEdge::Blocks { .. }
        | MissingEdge::StrongStore { .. }
        | MissingEdge::Wait { .. }
        | MissingEdge::PlainLoad { .. }
        | MissingEdge::Copy { .. } => None,
    }
}

/// Where a change is.
fn place(edit: &Edit) -> At {
    match *edit {
        Edit::Insert { after, .. } | Edit::Meet { after, .. } | Edit::Synchronize { after, .. } => after,
        Edit::PutSignal { put, .. } => put,
        Edit::InKernel { at, .. } | Edit::Replace { at, .. } => at,
    }
}

/// That a change was proved right, in words.
pub(super) fn proved(polls: bool) -> String {
    format!("proved{}", if polls { UNLESS_POLLS_ARE_COUNTED } else { "" })
}

/// That nothing wrong was found in so many schedules, in words.
pub(super) fn not_proved(schedules: u64) -> String {
    format!("nothing wrong in {}, but not proved", count(schedules, "schedule"))
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, edit) in self.edits.iter().enumerate() {
            let columns = self.before.get(number).copied().flatten().map(|before| in_one_line(place(edit), before));
            let and = if number == 0 { "" } else { ", and " };
            write!(f, "{and}{edit}{}", columns.unwrap_or_default())?;
        }
        match self.shown {
            Shown::Proved { polls, .. } => write!(f, ": {}", proved(polls))?,
            Shown::NothingFound { schedules } => {
                write!(f, ": {}", not_proved(schedules))?;
            }
        }
        match (self.is_weakest, self.sync_is_enough) {
            (true, _) => f.write_str("; nothing weaker is enough"),
            (false, true) => f.write_str("; `sync_all` in place of `barrier_all` is enough"),
            (false, false) => Ok(()),
        }
    }
}
