//! How a run ended: finished, or with a bug of the whole program.

mod text;

use onesided::backend::{AllocId, Live, LiveKind, Span};
use onesided::{At, Error, ErrorKind};
use onesided_ptx::Who as KernelThread;

use crate::limits::Bound;
use crate::lint::Lint;
use crate::race::{IntendedRace, MissingEdge, Race};
use crate::trace::LastRead;

/// The end of a run, with what every PE was doing then.
///
/// It prints the first of several races and counts the others; `{:#}` prints all.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was found.
    pub kind: VerdictKind,
    /// For a race: why its run was given up, if it was. Then nobody knows how the run would have ended.
    pub given_up: Option<Box<VerdictKind>>,
    /// Accesses that nothing orders, those between the first lines first. A verdict of another kind may come from them.
    pub races: Vec<Race>,
    /// What the program has marked as free to race, by line.
    pub intended: Vec<IntendedRace>,
    /// What works by luck or without a promise, by kind and line. Recorded runs have it, and under [`Config::strict`](crate::Config::strict) all
    /// runs do; those of a search of all schedules have what is about kernels' strong loads. It is not printed, unless it is the finding.
    pub lints: Vec<Lint>,
    /// Whether so much happened that from some moment on strong loads of kernels were no longer looked at
    /// ([`LintKind::StaleLoad`](crate::LintKind::StaleLoad)).
    pub lints_cut: bool,
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
    /// An operation that the same host or stream issued later to the same PE, and that was delivered before this one; a
    /// signal if there is one. `None` if there is none, or if it was delivered long ago.
    pub overtaken_by: Option<(&'static str, At)>,
}

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
        /// Of a race in shared memory, the line of the access before it.
        races_with: Option<At>,
        /// Of a race in shared memory, the fence that would order the two, where a flag in shared memory goes from the one to the other.
        missing: Option<MissingEdge>,
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
    /// The run was given up, because it took more steps than allowed. Nothing wrong was found in it: a race would be the finding, with this
    /// as [`Verdict::given_up`].
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
    /// The run was ended from outside, while a block of a kernel computed or before a choice. Nothing wrong was found in it until then. See
    /// [`Simulation::stop_when`](crate::Simulation::stop_when) and [`Budget::time`](crate::Budget::time).
    Stopped {
        /// What has ended it.
        bound: Bound,
    },
    /// Only hosts that poll are left, and hosts that wait for them. A search of all schedules repeats a poll only after something that it
    /// reads has changed. So it cannot tell what a loop does that gives up after some polls. Nothing wrong was found in the run.
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
        /// If a kernel did: which one and which thread, and the line of the call.
        kernel: Option<(String, At)>,
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
    /// The calls that the host, or the thread, made again and again behind the step limit: its loop, if it is in one.
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

/// A call that a host, or a thread of a kernel, made again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The call in words, as it was made the first time.
    pub call: String,
    /// Its line.
    pub at: At,
    /// How often it was made in some steps behind the limit, at least twice.
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
            given_up: None,
            races: Vec::new(),
            intended: Vec::new(),
            lints: Vec::new(),
            lints_cut: false,
            agents: Vec::new(),
            undelivered: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Whether nothing was wrong.
    pub fn is_ok(&self) -> bool {
        self.kind.is_ok()
    }

    /// Makes the race the finding of a run that has one, and that was given up or ended by the program.
    pub(crate) fn prefer_race(&mut self) {
        if self.kind.is_ok() && !self.races.is_empty() {
            self.kind = VerdictKind::Race;
        }
        let is_no_schedule = matches!(self.kind, VerdictKind::Stopped { .. });
        if self.kind.is_given_up() && !is_no_schedule && !self.races.is_empty() {
            self.given_up = Some(Box::new(std::mem::replace(&mut self.kind, VerdictKind::Race)));
        }
    }

    /// Whether it is a race in a run that was given up at a limit.
    pub(crate) fn has_reached_a_limit(&self) -> bool {
        self.given_up.as_ref().is_some_and(|kind| kind.unseen() == Some(Unseen::Limit))
    }

    /// Says of some who make calls again and again which these are.
    pub(crate) fn goes_round(&mut self, some: Vec<AgentState>) {
        for one in some {
            let is_it =
                |state: &&mut AgentState| (state.pe, state.stream, state.thread) == (one.pe, one.stream, one.thread);
            match self.agents.iter_mut().find(is_it) {
                Some(state) => state.loops = one.loops,
                None => {
                    let behind = self.agents.partition_point(|state| state.pe <= one.pe);
                    self.agents.insert(behind, one);
                }
            }
        }
    }
}

/// What could still have happened when a verdict ended its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing, or nothing that would be expected.
    Nothing,
    /// Steps of other PEs, of which only the races matter, because the bug affects everything else.
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
            VerdictKind::Exited { status: 0, .. }
            | VerdictKind::Finished
            | VerdictKind::Deadlock
            | VerdictKind::Race
            | VerdictKind::Lint
            | VerdictKind::Leak { .. }
            | VerdictKind::StepLimit { .. }
            | VerdictKind::InstructionLimit { .. }
            | VerdictKind::Stopped { .. }
            | VerdictKind::PollsBounded => After::Nothing,
            VerdictKind::Mismatch { .. }
            | VerdictKind::ConcurrentCollectives { .. }
            | VerdictKind::CollectivesOutOfOrder { .. }
            | VerdictKind::FreedInUse { .. } => After::OthersForRaces,
            VerdictKind::Kernel { .. }
            | VerdictKind::Panicked { .. }
            | VerdictKind::Failed { .. }
            | VerdictKind::Exited { .. } => After::Others,
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
