//! [`Lint`]: what was found, in words.

use std::collections::BTreeMap;
use std::fmt;

use onesided::At;

/// What is wrong in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LintKind {
    /// Transfers that may overtake each other add to one counter, and a wait for `>=` can end by a later one's addition.
    CounterOvertaken,
    /// A wait for one value, which the word can have passed before the wait looks.
    EqualityPassed,
    /// A wait for a word that a plain put writes.
    WaitOnPlainData,
    /// A signal is waited for by the plain wait.
    PlainWaitOnSignal,
    /// A signal is read by a plain read.
    SignalPolled,
    /// Data is overwritten that its receiver was told of, before the receiver has answered.
    DestinationReused,
    /// A quiet or fence that covers nothing, while the PE's other scope has operations outstanding.
    WrongScope,
    /// A fence between data and a flag that go to different PEs.
    FenceToAnotherPe,
    /// A kernel's strong load that can find an older value than its place in the program suggests.
    StaleLoad,
    /// A read of memory that nobody has written.
    UnwrittenRead,
}

impl LintKind {
    /// Every kind.
    pub const ALL: [LintKind; 10] = [
        LintKind::CounterOvertaken,
        LintKind::EqualityPassed,
        LintKind::WaitOnPlainData,
        LintKind::PlainWaitOnSignal,
        LintKind::SignalPolled,
        LintKind::DestinationReused,
        LintKind::WrongScope,
        LintKind::FenceToAnotherPe,
        LintKind::StaleLoad,
        LintKind::UnwrittenRead,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            LintKind::CounterOvertaken => "counter-overtaken",
            LintKind::EqualityPassed => "equality-passed",
            LintKind::WaitOnPlainData => "wait-on-plain-data",
            LintKind::PlainWaitOnSignal => "plain-wait-on-signal",
            LintKind::SignalPolled => "signal-polled",
            LintKind::DestinationReused => "destination-reused",
            LintKind::WrongScope => "wrong-scope",
            LintKind::FenceToAnotherPe => "fence-to-another-pe",
            LintKind::StaleLoad => "stale-load",
            LintKind::UnwrittenRead => "unwritten-read",
        }
    }

    /// What is wrong, and what to write in its place.
    pub fn explanation(self) -> (&'static str, &'static str) {
        match self {
            LintKind::CounterOvertaken => (
                "nothing orders the transfers that add to the counter, so a later one can end the wait for an earlier one",
                "a word for each transfer; if one PE sends them, a fence between them",
            ),
            LintKind::EqualityPassed => (
                "the word can pass the one value that the wait accepts, before the wait looks",
                "a wait for >=, or an answer that the sender waits for",
            ),
            LintKind::WaitOnPlainData => (
                "a plain put ends the wait: OpenSHMEM promises that of signals and atomics only",
                "put_signal, signal_op or an atomic",
            ),
            LintKind::PlainWaitOnSignal => {
                ("the plain wait is not promised to see a signal", "signal_wait_until in place of the plain wait")
            }
            LintKind::SignalPolled => {
                ("a plain read is not promised ever to see a signal", "signal_fetch or signal_wait_until")
            }
            LintKind::DestinationReused => (
                "the second call overwrites what the first has announced, and the receiver may not have read that yet",
                "an answer of the receiver that the sender waits for, or another buffer",
            ),
            LintKind::WrongScope => (
                "the call between the two covers nothing: the host and the streams of a PE are two scopes",
                "a quiet in the scope that issued the first call",
            ),
            LintKind::FenceToAnotherPe => {
                ("a fence orders what goes to one PE, and these go to two", "a quiet in place of the fence")
            }
            LintKind::StaleLoad => (
                "PTX promises no order between a thread's strong accesses to different words, so the load can miss the first access",
                "a release of what is stored and an acquire before the load, or fence.sc in both threads if each stores before it loads",
            ),
            LintKind::UnwrittenRead => (
                "nobody has written what the second call reads of that memory, and fresh memory can hold anything",
                "alloc_zeroed, or a write that comes before the read",
            ),
        }
    }
}

/// A call of the program that a lint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LintSite {
    /// The line.
    pub at: At,
    /// The call.
    pub call: &'static str,
    /// The PE that made it first.
    pub pe: usize,
    /// Which of its streams; `None` for the host.
    pub stream: Option<usize>,
}

impl LintSite {
    pub(crate) fn new((call, at): (&'static str, At), pe: usize, stream: Option<usize>) -> LintSite {
        LintSite { at, call, pe, stream }
    }
}

/// Two calls of a program that work together by luck, or without a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lint {
    /// What is wrong with them.
    pub kind: LintKind,
    /// The call that comes first: the one that sends, mostly, or that allocates.
    pub first: LintSite,
    /// The other.
    pub second: LintSite,
    /// The call between them that does not do what it seems to do.
    pub between: Option<LintSite>,
    /// How often it was seen in the run.
    pub times: u64,
    /// Whether the run shows each time what it can lead to: loads have found [old values](crate::Loads::Oldest).
    pub is_shown: bool,
}

impl fmt::Display for LintSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LintSite { at, call, pe, stream } = self;
        write!(f, "{call} at {at} by PE {pe}")?;
        match stream {
            Some(stream) => write!(f, " stream {stream}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lint { kind, first, second, between, times, is_shown } = self;
        let (what, instead) = kind.explanation();
        write!(f, "{}: {first} and {second}", kind.name())?;
        if let Some(between) = between {
            write!(f, ", with {between} between them")?;
        }
        write!(f, "\n    {what}\n    better: {instead}")?;
        if *is_shown {
            f.write_str("\n    this run shows it: the load has found an older value")?;
        }
        match times {
            1 => Ok(()),
            more => write!(f, "\n    {more} times in this run"),
        }
    }
}

/// The calls of a lint, by which it is found again.
type Calls = (LintKind, (At, &'static str), (At, &'static str));

/// The lints of a run so far: one for each kind and pair of calls.
#[derive(Debug, Default)]
pub(super) struct Found {
    lints: BTreeMap<Calls, Lint>,
    /// Whether strong loads were no longer looked at from some moment on.
    pub(super) is_cut: bool,
}

impl Found {
    pub(super) fn note(&mut self, kind: LintKind, first: LintSite, second: LintSite, between: Option<LintSite>) {
        self.note_shown(kind, first, second, between, false);
    }

    /// The same; `is_shown`: the run shows what it can lead to.
    pub(super) fn note_shown(
        &mut self,
        kind: LintKind,
        first: LintSite,
        second: LintSite,
        between: Option<LintSite>,
        is_shown: bool,
    ) {
        let calls = (kind, (first.at, first.call), (second.at, second.call));
        let new = Lint { kind, first, second, between, times: 0, is_shown: true };
        let lint = self.lints.entry(calls).or_insert(new);
        lint.times += 1;
        lint.is_shown &= is_shown;
    }

    pub(super) fn lints(&self) -> Vec<Lint> {
        self.lints.values().cloned().collect()
    }
}
