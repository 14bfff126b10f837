//! How a run ended: finished, or with a bug of the whole program.

use std::fmt;

use onesided::backend::{AllocId, Live, LiveKind, Span};
use onesided::{At, Error, ErrorKind};
use onesided_ptx::Who as KernelThread;

use crate::lint::Lint;
use crate::machine::Loops;
use crate::race::{IntendedRace, Race};
use crate::search::Bound;
use crate::trace::LastRead;

/// The end of a run, with what every PE was doing then.
///
/// It prints the first of several races and counts the others; `{:#}` prints all.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was found.
    pub kind: VerdictKind,
    /// Accesses that nothing orders, those between the first lines first. A verdict of another kind may come from them.
    pub races: Vec<Race>,
    /// What the program has marked as free to race, by line.
    pub intended: Vec<IntendedRace>,
    /// What works by luck or without a promise, by kind and line: of recorded runs, and of all under
    /// [`Config::strict`](crate::Config::strict). It is not printed, unless it is the finding.
    pub lints: Vec<Lint>,
    /// Every host, and every stream that had work left. Empty when the run finished.
    pub agents: Vec<AgentState>,
    /// What was in flight then, by PE and order of issue: to the PE that failed, if there is one and it was sent
    /// something; else all of it. Empty when the run finished.
    pub undelivered: Vec<Undelivered>,
    /// Where a program's own check failed, or it panicked: what its PE had read last, the last call first. Of recorded runs only.
    pub reads: Vec<LastRead>,
}

/// A transfer of which something was not delivered yet when the run ended.
#[derive(Clone, Debug)]
pub struct Undelivered {
    /// The PE that issued it.
    pub pe: usize,
    /// The operation.
    pub call: &'static str,
    /// The line that issued it.
    pub at: At,
    /// The PE whose memory it is for; for a fetch, the one whose memory it reads.
    pub to: usize,
    /// That memory.
    pub span: Span,
    /// How many bytes of it.
    pub bytes: usize,
    /// Pieces that were not delivered; 0 where only the signal was not.
    pub missing: u16,
    /// Pieces in all.
    pub pieces: u16,
    /// The operation and line of what the same host or stream issued later, to the same PE, and was delivered before: a
    /// signal rather than another. `None` also where that was long ago.
    pub overtaken_by: Option<(&'static str, At)>,
}

/// A report lists so many undelivered transfers, or calls of a loop, and counts the others.
const LISTED: usize = 8;

/// What a run ends with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum VerdictKind {
    /// Every PE returned, and nothing was wrong.
    Finished,
    /// Somebody waits, and nothing can happen any more.
    Deadlock,
    /// Members of a team called different collectives, or the same with different arguments.
    Mismatch {
        /// The team.
        team: String,
        /// The collective's number on the team, from 0.
        number: u32,
        /// The argument that differs.
        field: &'static str,
        /// The calls compared, by PE.
        calls: Vec<Entered>,
    },
    /// Two agents of one PE were in collectives of the same team at a time.
    ConcurrentCollectives {
        /// The team.
        team: String,
        /// The PE.
        pe: usize,
        /// Both calls.
        calls: [&'static str; 2],
    },
    /// A PE entered a collective before one of the same team that it had called earlier.
    CollectivesOutOfOrder {
        /// The team.
        team: String,
        /// The PE.
        pe: usize,
        /// The later call, which was entered, and the earlier one, with their lines.
        calls: [(&'static str, At); 2],
    },
    /// Memory was freed or unregistered while a transfer or stream still used it.
    FreedInUse {
        /// The call that ended it.
        call: &'static str,
        /// The memory.
        alloc: AllocId,
        /// The line that made it; `None` for external memory.
        made_at: Option<At>,
        /// The PE that issued what still uses it.
        pe: usize,
        /// The line that issued it.
        at: At,
    },
    /// A kernel did what it must not: see the message.
    Kernel {
        /// The PE.
        pe: usize,
        /// The kernel, as the linker knows it.
        kernel: String,
        /// Block and thread.
        thread: String,
        /// What is wrong.
        message: String,
        /// The line of the kernel.
        at: At,
        /// What else is known, a line for each: the other thread, what is missing.
        details: Vec<String>,
    },
    /// Accesses raced, and nothing else was wrong: see [`Verdict::races`].
    Race,
    /// Under [`Config::strict`](crate::Config::strict): see [`Verdict::lints`].
    Lint,
    /// PEs finalized while they still held buffers, registrations or teams.
    Leak {
        /// What each PE held.
        leaks: Vec<(usize, Live)>,
    },
    /// The run was given up, because it took more steps than allowed. Nothing wrong was found in it.
    StepLimit {
        /// The limit.
        steps: u64,
    },
    /// The run was given up, because a block of a kernel executed more instructions than
    /// [`Config::max_instructions`](crate::Config::max_instructions). Nothing wrong was found in it.
    InstructionLimit {
        /// The PE.
        pe: usize,
        /// The kernel, as the linker knows it.
        kernel: String,
        /// Block and thread.
        thread: String,
        /// The limit.
        instructions: u64,
        /// The line of the kernel that it had come to.
        at: At,
    },
    /// The run was ended from outside while a block of a kernel computed. Nothing wrong was found in it until then. See
    /// [`Simulation::stop_when`](crate::Simulation::stop_when) and [`Budget::time`](crate::Budget::time).
    Stopped {
        /// What has ended it.
        bound: Bound,
    },
    /// Only hosts that poll are left, and hosts that wait for those. A search of all schedules repeats a poll only after something has
    /// changed that it reads. So it does not know what a loop does that gives up. Nothing wrong was found in the run.
    PollsBounded,
    /// A PE's program panicked.
    Panicked {
        /// The PE.
        pe: usize,
        /// The panic's message.
        message: String,
        /// Its line; `None` where the process's panic hook was replaced after the first simulation was made.
        at: Option<At>,
    },
    /// A PE's program returned an error.
    Failed {
        /// The PE.
        pe: usize,
        /// The error.
        error: Error,
    },
    /// A PE ended the job.
    Exited {
        /// The PE.
        pe: usize,
        /// Its status; 0 is no finding.
        status: i32,
    },
}

/// One PE's call of a collective.
#[derive(Clone, Debug)]
pub struct Entered {
    /// The PE.
    pub pe: usize,
    /// The call with its arguments.
    pub call: String,
    /// Its line.
    pub at: At,
}

/// What a host, a stream or a thread of a kernel was doing when the run ended.
#[derive(Clone, Debug)]
pub struct AgentState {
    /// The PE.
    pub pe: usize,
    /// Which of its streams; `None` for the host.
    pub stream: Option<usize>,
    /// Of a kernel on the stream, the thread.
    pub thread: Option<KernelThread>,
    /// The call that it is in, if it waits.
    pub call: &'static str,
    /// The line of its last call.
    pub at: Option<At>,
    /// The calls that the host made again and again behind the step limit: its loop, if it is in one.
    pub loops: Vec<Repeated>,
    /// How it stood.
    pub standing: Standing,
}

impl AgentState {
    /// Whether both are of one stream, and in the same call of one line.
    fn is_beside(&self, other: &AgentState) -> bool {
        let of = |state: &AgentState| (state.pe, state.stream, state.call, state.at);
        self.stream.is_some() && of(self) == of(other)
    }
}

/// A call that a host made again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The call in words, as it was made the first time.
    pub call: String,
    /// Its line.
    pub at: At,
    /// How often the host made it in some steps behind the limit, at least twice.
    pub times: usize,
}

/// Whether an agent was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an agent is over, or goes on, or waits")]
pub enum Standing {
    /// The program has returned.
    Finished,
    /// The program returned an error or panicked, which ended the run.
    Failed,
    /// Could have gone on.
    Runs,
    /// Waits for this.
    Waits(String),
}

impl Verdict {
    /// The verdict without anybody's state.
    pub(crate) fn finished() -> Verdict {
        Verdict {
            kind: VerdictKind::Finished,
            races: Vec::new(),
            intended: Vec::new(),
            lints: Vec::new(),
            agents: Vec::new(),
            undelivered: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Whether nothing was wrong.
    pub fn is_ok(&self) -> bool {
        self.kind.is_ok()
    }

    /// Says of each host which calls it makes again and again.
    pub(crate) fn goes_round(&mut self, loops: &Loops) {
        for state in self.agents.iter_mut().filter(|state| state.stream.is_none()) {
            state.loops = loops.of(state.pe);
        }
    }
}

/// What could still have happened when a verdict ended its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing, or nothing that would be expected.
    Nothing,
    /// Something, and what is not known: the process ended.
    NotKnown,
    /// Steps of other PEs, which are of interest for their races only: the bug stands in their way.
    OthersForRaces,
    /// Steps of other PEs, as if the PE or thread that failed had ended.
    Others,
}

impl After {
    /// Whether other PEs could have gone on.
    pub(crate) fn is_of_others(self) -> bool {
        matches!(self, After::OthersForRaces | After::Others)
    }
}

/// Why nobody has seen the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// It reached a limit.
    Limit,
    /// Only polls were left.
    Polls,
}

impl VerdictKind {
    pub(crate) fn is_ok(&self) -> bool {
        matches!(self, VerdictKind::Finished | VerdictKind::Exited { status: 0, .. })
    }

    /// Whether the run was given up: its end is not known.
    pub(crate) fn is_given_up(&self) -> bool {
        self.unseen().is_some()
    }

    /// Why the end of the run is not known, if it was given up.
    pub(crate) fn unseen(&self) -> Option<Unseen> {
        match self {
            VerdictKind::StepLimit { .. } | VerdictKind::InstructionLimit { .. } | VerdictKind::Stopped { .. } => {
                Some(Unseen::Limit)
            }
            VerdictKind::PollsBounded => Some(Unseen::Polls),
            _ => None,
        }
    }

    /// What could still have happened when it ended the run.
    pub(crate) fn after(&self) -> After {
        match self {
            // nothing more is expected of a run that is given up
            VerdictKind::Finished
            | VerdictKind::Deadlock
            | VerdictKind::Race
            | VerdictKind::Lint
            | VerdictKind::Leak { .. }
            | VerdictKind::StepLimit { .. }
            | VerdictKind::InstructionLimit { .. }
            | VerdictKind::Stopped { .. }
            | VerdictKind::PollsBounded => After::Nothing,
            VerdictKind::Exited { .. } => After::NotKnown,
            VerdictKind::Mismatch { .. }
            | VerdictKind::ConcurrentCollectives { .. }
            | VerdictKind::CollectivesOutOfOrder { .. }
            | VerdictKind::FreedInUse { .. } => After::OthersForRaces,
            VerdictKind::Kernel { .. } | VerdictKind::Panicked { .. } | VerdictKind::Failed { .. } => After::Others,
        }
    }

    /// The PE whose own check failed, or that panicked: what it has read may be why.
    pub(crate) fn checking_pe(&self) -> Option<usize> {
        match self {
            VerdictKind::Panicked { pe, .. } => Some(*pe),
            VerdictKind::Failed { pe, error } if error.kind() == ErrorKind::WrongResult => Some(*pe),
            _ => None,
        }
    }

    /// The PE that failed, for bugs that one PE shows.
    pub(crate) fn failed_pe(&self) -> Option<usize> {
        match *self {
            VerdictKind::Panicked { pe, .. } | VerdictKind::Failed { pe, .. } | VerdictKind::Exited { pe, .. } => {
                Some(pe)
            }
            _ => None,
        }
    }

    /// The verdict as an outcome of a case: short, and the same on every schedule that fails alike.
    ///
    /// ```
    /// use onesided_sim::VerdictKind;
    /// assert_eq!(VerdictKind::Deadlock.outcome(), "deadlock");
    /// ```
    pub fn outcome(&self) -> String {
        match self {
            VerdictKind::Finished => "finished".into(),
            VerdictKind::Deadlock => "deadlock".into(),
            VerdictKind::Mismatch { field, .. } => format!("collective mismatch: {field}"),
            VerdictKind::ConcurrentCollectives { .. } => "concurrent collectives".into(),
            VerdictKind::CollectivesOutOfOrder { .. } => "collectives out of order".into(),
            VerdictKind::FreedInUse { call, .. } => format!("{call} of memory in use"),
            VerdictKind::Kernel { .. } => "kernel fault".into(),
            VerdictKind::Race => "race".into(),
            VerdictKind::Lint => "lint".into(),
            VerdictKind::Leak { leaks } => {
                let teams = leaks.iter().filter(|(_, live)| matches!(live.what, LiveKind::Team(_))).count();
                match (leaks.len() - teams, teams) {
                    (_, 0) => "leak: buffers".into(),
                    (0, _) => "leak: teams".into(),
                    _ => "leak: buffers and teams".into(),
                }
            }
            VerdictKind::StepLimit { .. } => "step limit".into(),
            VerdictKind::InstructionLimit { .. } => "instruction limit".into(),
            VerdictKind::Stopped { .. } => "stopped".into(),
            VerdictKind::PollsBounded => "polls bounded".into(),
            VerdictKind::Panicked { .. } => "panicked".into(),
            VerdictKind::Failed { error, .. } => format!("failed: {}", error.kind()),
            VerdictKind::Exited { status, .. } => format!("exited: {status}"),
        }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerdictKind::Finished => f.write_str("finished"),
            VerdictKind::Deadlock => f.write_str("deadlock: nothing can happen any more, and somebody waits"),
            VerdictKind::Mismatch { team, number, field, calls } => {
                write!(f, "collective mismatch: collective #{number} of {team} differs in {field}")?;
                calls.iter().try_for_each(|Entered { pe, call, at }| write!(f, "\n    PE {pe} called {call} at {at}"))
            }
            VerdictKind::ConcurrentCollectives { team, pe, calls: [first, second] } => {
                write!(
                    f,
                    "concurrent collectives: PE {pe} entered {second} on {team} while it was still in {first}; "
                )?;
                f.write_str("a team has one collective at a time, so order the two by an event or use two teams")
            }
            VerdictKind::CollectivesOutOfOrder { team, pe, calls: [(later, at), (earlier, before)] } => {
                write!(
                    f,
                    "collectives out of order: PE {pe} entered {later} on {team} (called at {at}), while {earlier} (called \
                     before it, at {before}) has not begun; "
                )?;
                f.write_str("between GPUs, a team's collectives must run in the order of their calls: ")?;
                f.write_str("call them in that order, order the two by an event, or use two teams")
            }
            VerdictKind::FreedInUse { call, alloc, made_at, pe, at } => {
                let made = made_at.map(|at| format!(", made at {at},")).unwrap_or_default();
                write!(f, "{call} of memory in use: {alloc}{made} ")?;
                write!(f, "is still used by what PE {pe} issued at {at}; ")?;
                f.write_str("complete it first (quiet and synchronize the stream)")
            }
            VerdictKind::Kernel { pe, kernel, thread, message, at, details } => {
                write!(f, "kernel {kernel} on PE {pe}: {message} ({at:#}, {thread})")?;
                details.iter().try_for_each(|line| write!(f, "\n    {line}"))
            }
            VerdictKind::Race => f.write_str("data race"),
            VerdictKind::Lint => f.write_str("lint"),
            VerdictKind::Leak { leaks } => {
                f.write_str("leak: not given back before finalize")?;
                leaks.iter().try_for_each(|(pe, live)| write!(f, "\n    PE {pe} holds {}", held(live)))
            }
            VerdictKind::StepLimit { steps } => {
                write!(f, "step limit: given up after {steps} steps, and whether the run would have ended is not known")
            }
            VerdictKind::InstructionLimit { pe, kernel, thread, instructions, at } => {
                write!(
                    f,
                    "instruction limit: given up after {instructions} instructions of a block of kernel {kernel} on PE {pe}, and whether it \
                     would have ended is not known ({at:#}, {thread})"
                )
            }
            VerdictKind::Stopped { bound } => write!(f, "stopped while a kernel computed: {bound}"),
            VerdictKind::PollsBounded => {
                f.write_str(
                    "polls bounded: every PE that is left polls without a change, or waits for one that does; ",
                )?;
                f.write_str("the search does not know what happens if a loop gives up polling")
            }
            VerdictKind::Panicked { pe, message, at: Some(at) } => write!(f, "PE {pe} panicked at {at}: {message}"),
            VerdictKind::Panicked { pe, message, at: None } => write!(f, "PE {pe} panicked: {message}"),
            VerdictKind::Failed { pe, error } => write!(f, "PE {pe} failed: {error}"),
            VerdictKind::Exited { pe, status } => write!(f, "PE {pe} ended the job with status {status}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kind, &self.races[..]) {
            (VerdictKind::Race, [first, ..]) => write!(f, "{first}")?,
            (VerdictKind::Lint, _) => return write_lints(f, &self.lints),
            (kind, [first, ..]) if !kind.is_ok() => write!(f, "{kind}\n  besides, {first}")?,
            (kind, _) => write!(f, "{kind}")?,
        }
        match self.races.len() {
            0 | 1 => {}
            _ if f.alternate() => self.races[1..].iter().try_for_each(|race| write!(f, "\n  {race}"))?,
            2 => f.write_str("\n    one more pair of calls races")?,
            more => write!(f, "\n    {} more pairs of calls race", more - 1)?,
        }
        self.reads.iter().try_for_each(|read| write!(f, "\n  {}", read.to_string().replace('\n', "\n  ")))?;
        write_agents(f, &self.agents)?;
        let Some(first) = self.undelivered.first() else { return Ok(()) };
        match self.kind.failed_pe() {
            Some(pe) if pe == first.to => write!(f, "\n  not yet delivered to PE {pe}:")?,
            _ => f.write_str("\n  not yet delivered:")?,
        }
        self.undelivered.iter().take(LISTED).try_for_each(|transfer| write!(f, "\n    {transfer}"))?;
        match self.undelivered.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\n    and {more} more"),
        }
    }
}

/// A line for each; of many blocks or threads of a kernel that stand at one line, the first and the number of the others.
fn write_agents(f: &mut fmt::Formatter<'_>, agents: &[AgentState]) -> fmt::Result {
    for alike in agents.chunk_by(|one, other| one.is_beside(other)) {
        let shown = if alike.len() > LISTED { &alike[..LISTED / 2] } else { alike };
        shown.iter().try_for_each(|agent| write!(f, "\n  {agent}"))?;
        if let more @ 1.. = alike.len() - shown.len() {
            let at = alike[0].at.map(|at| format!(" at {at:#}")).unwrap_or_default();
            write!(f, "\n    and {more} more of this kernel{at}")?;
        }
    }
    Ok(())
}

/// The first lint and the number of the others; all of them in `{:#}`.
fn write_lints(f: &mut fmt::Formatter<'_>, lints: &[Lint]) -> fmt::Result {
    for (number, lint) in lints.iter().enumerate().take(if f.alternate() { lints.len() } else { 1 }) {
        write!(f, "{}lint {lint}", if number > 0 { "\n  " } else { "" })?;
    }
    match lints.len() {
        2.. if f.alternate() => Ok(()),
        0 | 1 => Ok(()),
        2 => f.write_str("\n    one more lint"),
        more => write!(f, "\n    {} more lints", more - 1),
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Undelivered { pe, call, at, to, span, bytes, missing, pieces, overtaken_by } = self;
        write!(f, "{call} by PE {pe} at {at}: {bytes} bytes of {span} on PE {to}")?;
        if missing < pieces && *missing > 0 {
            write!(f, ", {missing} of {pieces} pieces")?;
        }
        match overtaken_by {
            Some((call, at)) => write!(f, ", overtaken by {call} at {at}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgentState { pe, stream, thread, call, at, loops, standing } = self;
        write!(f, "PE {pe}")?;
        if let Some(stream) = stream {
            write!(f, " stream {stream}")?;
        }
        if let Some(thread) = thread {
            write!(f, ", {thread}")?;
        }
        let stands = match standing {
            Standing::Waits(_) => "",
            Standing::Finished => "has returned",
            Standing::Failed => "failed here",
            Standing::Runs => "could go on",
        };
        match (standing, at) {
            (Standing::Waits(what), Some(at)) => write!(f, ": in {call} at {at:#}, waits for {what}")?,
            (Standing::Waits(what), None) => write!(f, ": in {call}, waits for {what}")?,
            (_, Some(at)) => write!(f, ": {stands}; its last call was at {at:#}")?,
            (_, None) => write!(f, ": {stands}; it made no call")?,
        }
        for (number, Repeated { call, at, .. }) in loops.iter().take(LISTED).enumerate() {
            write!(f, "{} {call} at {at}", if number == 0 { "; it goes on calling" } else { "," })?;
        }
        match loops.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn held(live: &Live) -> String {
    let what = match live.what {
        LiveKind::Buffer(alloc) => format!("{alloc} of {} bytes", live.bytes),
        LiveKind::Registered(alloc) => format!("a local registration of {alloc}"),
        LiveKind::RegisteredSymmetric(alloc) => format!("a symmetric registration, {alloc}"),
        LiveKind::Team(team) => team.to_string(),
    };
    format!("{what}, made at {}", live.at)
}
