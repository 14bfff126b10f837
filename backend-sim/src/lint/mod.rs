//! Lints: calls that work in this run, although the specification does not promise it, or a slower network would break them.
//!
//! The machine tells the lints what it tells the race detector (`machine/observe.rs`), and they ask the detector what is ordered.
//! One file each:
//!
//! | file | what it finds |
//! |---|---|
//! | `counter.rs` | a wait for a counter that a later transfer can end |
//! | `equality.rs` | a wait for one value, which can be passed |
//! | `plain_data.rs` | a wait for a word that a plain put writes |
//! | `plain_wait.rs` | a signal that is waited for by the plain wait |
//! | `polled.rs` | a signal that is read by a plain read |
//! | `reused.rs` | data that is overwritten before its reader can have read it |
//! | `scope.rs` | a quiet or fence of the wrong scope |
//! | `target.rs` | a fence between data and a flag that go to different PEs |
//! | `stale.rs` | a kernel's strong load that can find an older value |
//! | `unwritten.rs` | a read of memory that nobody has written |
//!
//! `report.rs` has what a person reads of each, and `sequential.rs` the order of a run's strong accesses.
//!
//! They look at recorded runs, and at every run where a lint is a finding ([`Config::strict`](crate::Config::strict)). So other
//! runs pay nothing for them, but for `stale.rs`: that also looks at searches of all schedules, where kernels are launched, for what a proof supposes.

mod counter;
mod equality;
mod plain_data;
mod plain_wait;
mod polled;
mod report;
mod reused;
mod scope;
mod sequential;
mod stale;
mod target;
mod unwritten;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;

use onesided::backend::{Against, AllocId, Span, Transfer};
use onesided::{At, Cmp, DType};
use onesided_ptx::Scope;

use crate::config::Loads;
use crate::machine::{AgentId, PeId, Word};
use crate::race::{Detector, Ticket};
use report::Found;
pub use report::{Lint, LintKind, LintSite};
pub(crate) use stale::Missed;

/// What the machine tells the lints.
#[derive(Debug)]
pub(crate) enum Notice<'a> {
    /// A transfer is issued.
    Issued { transfer: &'a Transfer, ticket: &'a Ticket },
    /// A transfer updates a word atomically. `before`: what the word holds until then.
    Updated { ticket: &'a Ticket, pe: PeId, word: Span, update: Update, before: u64 },
    /// Memory is written in another way.
    Written { pe: PeId, span: Span },
    /// Memory now holds what somebody has written, in whatever way.
    Changed { pe: PeId, span: Span },
    /// Memory of these PEs is allocated, and is not zeroed.
    Made { agent: AgentId, alloc: AllocId, bytes: usize, pes: &'a [PeId], asked: (&'static str, At) },
    /// An agent reads memory itself.
    Read { agent: AgentId, pe: PeId, span: Span, asked: (&'static str, At) },
    /// An agent reads a word of its PE atomically.
    Fetched { agent: AgentId, pe: PeId, span: Span, asked: (&'static str, At) },
    /// A transfer reads memory for the agent that issued it.
    Loaded { ticket: &'a Ticket, pe: PeId, span: Span },
    /// A transfer reads from its source, of which `span` is the whole, and copies that to other memory.
    Copied { ticket: &'a Ticket, pe: PeId, span: Span },
    /// An agent begins to wait for words of its PE.
    Waits { agent: AgentId, waiting: Waiting, words: &'a [Span] },
    /// The word is what the agent waits for.
    Ends { agent: AgentId, word: Span },
    /// An agent orders or completes what its scope has issued, before it goes on.
    Orders { agent: AgentId, order: Ordering, asked: (&'static str, At) },
    /// A kernel's strong access happens, or a call looks at a word. Its thread has learned nothing from that yet.
    Strong(Strong<'a>),
    /// A thread of a kernel comes to a sequential fence.
    Fences { agent: AgentId, scope: Scope },
    /// Everybody knows everything that has happened.
    Known,
}

/// An access of a word by which kernels synchronize, or an update of it by a transfer.
#[derive(Debug)]
pub(crate) struct Strong<'a> {
    pub(crate) by: By<'a>,
    pub(crate) place: (PeId, Span),
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Whether it is a load, and no atomic.
    pub(crate) is_load: bool,
    /// Whether it leaves nothing of what the word held before.
    pub(crate) replaces: bool,
    /// Whether it only waits, as a loop that does nothing else or a call.
    pub(crate) waits: bool,
    /// Whether it is an element of less than 8 bytes of a vector, or a half of 16 bytes. Those of one access come in any order anyway.
    pub(crate) is_part: bool,
    /// What the word holds until then.
    pub(crate) before: u64,
}

/// What makes a strong access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By<'a> {
    /// An agent itself, at a time.
    Agent { agent: AgentId, time: u64, asked: (&'static str, At) },
    /// A transfer, or a store of a kernel, that arrives.
    Transfer(&'a Ticket),
}

/// How a word is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Add(u64),
    Set(u64),
    Other,
}

/// What an agent does to what its scope has issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordering {
    Fence,
    Quiet,
    /// Completes it, and meets others.
    Barrier,
    /// Meets others.
    Sync,
}

/// A wait of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) pe: PeId,
    pub(crate) asked: (&'static str, At),
    pub(crate) dtype: DType,
    pub(crate) cmp: Cmp,
    pub(crate) against: Against,
    /// Whether it is the wait for signals.
    pub(crate) signal: bool,
    /// The moment at which it began.
    pub(crate) time: u64,
}

impl<'a> Strong<'a> {
    /// A transfer, or a store of a kernel, updates a word.
    pub(crate) fn arrival(ticket: &'a Ticket, place: (PeId, Span), replaces: bool, before: u64) -> Strong<'a> {
        let by = By::Transfer(ticket);
        let [reads, writes, is_load, waits, is_part] = [false, true, false, false, false];
        Strong { by, place, reads, writes, is_load, replaces, waits, is_part, before }
    }

    /// A call of an agent has looked at a word, and goes on with what it has found.
    pub(crate) fn look(agent: AgentId, time: u64, place: (PeId, Span), asked: (&'static str, At)) -> Strong<'a> {
        let by = By::Agent { agent, time, asked };
        let [reads, writes, is_load, replaces, waits, is_part] = [true, false, false, false, true, false];
        Strong { by, place, reads, writes, is_load, replaces, waits, is_part, before: 0 }
    }
}

impl By<'_> {
    fn agent(&self) -> AgentId {
        match self {
            By::Agent { agent, .. } => *agent,
            By::Transfer(ticket) => ticket.agent(),
        }
    }

    /// When the access was made; of what arrives later, when it was issued.
    fn time(&self) -> u64 {
        match self {
            By::Agent { time, .. } => *time,
            By::Transfer(ticket) => ticket.time(),
        }
    }

    /// The last step of another agent that it comes after.
    fn steps_known(&self, of: AgentId, races: &Detector) -> u64 {
        match self {
            By::Agent { agent, .. } => races.steps_known(*agent, of),
            By::Transfer(ticket) => races.steps_known_at(ticket, of),
        }
    }

    fn site(&self, races: &Detector) -> LintSite {
        match self {
            By::Agent { agent, asked, .. } => races.site(*agent, *asked),
            By::Transfer(ticket) => races.site_of(ticket),
        }
    }
}

impl Update {
    fn apply(self, before: u64) -> Option<u64> {
        match self {
            Update::Add(value) => Some(before.wrapping_add(value)),
            Update::Set(value) => Some(value),
            Update::Other => None,
        }
    }

    fn commutes(self, other: Update) -> bool {
        match (self, other) {
            (Update::Add(_), Update::Add(_)) => true,
            (Update::Set(one), Update::Set(other)) => one == other,
            _ => false,
        }
    }
}

/// One lint.
trait Rule {
    /// Something happens.
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>);
    /// Everybody knows everything, or the run is over. The rule judges what it has kept, and forgets it.
    fn settle(&mut self, _found: &mut Found) {}
}

/// What rules ask, and where they tell what they found.
struct Known<'a> {
    races: &'a mut Detector,
    found: &'a mut Found,
    /// The wait that each agent began last.
    waits: &'a BTreeMap<AgentId, Waiting>,
    loads: Loads,
    /// What the load that is noticed misses.
    missed: &'a mut Missed,
}

/// The lints of a run.
#[derive(Debug, Default)]
pub(crate) struct Lints {
    /// Whether all are looked for, and not only those of strong loads.
    all: bool,
    counter: counter::Counters,
    equality: equality::Equalities,
    plain_data: plain_data::PlainData,
    plain_wait: plain_wait::PlainWait,
    polled: polled::Polled,
    reused: reused::Reused,
    scope: scope::WrongScope,
    stale: stale::StaleLoad,
    target: target::WrongTarget,
    unwritten: unwritten::UnwrittenRead,
    waits: BTreeMap<AgentId, Waiting>,
    found: Found,
    loads: Loads,
    missed: Missed,
}

impl Lints {
    /// All of them, or those of strong loads.
    pub(crate) fn new(all: bool, loads: Loads) -> Lints {
        Lints { all, loads, ..Lints::default() }
    }

    /// What the load that was noticed last misses: see [`Loads::Oldest`].
    pub(crate) fn take_missed(&mut self) -> Missed {
        std::mem::take(&mut self.missed)
    }

    pub(crate) fn are_all(&self) -> bool {
        self.all
    }

    #[cold]
    pub(crate) fn notice(&mut self, notice: &Notice<'_>, races: &mut Detector) {
        if let Notice::Waits { agent, waiting, .. } = notice {
            self.waits.insert(*agent, *waiting);
        }
        let Lints {
            counter,
            equality,
            plain_data,
            plain_wait,
            polled,
            reused,
            scope,
            stale,
            target,
            unwritten,
            waits,
            found,
            loads,
            missed,
            all,
        } = self;
        // the first one is that which is looked for alone
        let rules: [&mut dyn Rule; 10] =
            [stale, counter, equality, plain_data, plain_wait, polled, reused, scope, target, unwritten];
        let looked_for = if *all { rules.len() } else { 1 };
        for rule in rules.into_iter().take(looked_for) {
            match notice {
                Notice::Known => rule.settle(found),
                _ => rule.notice(notice, &mut Known { races, found, waits, loads: *loads, missed }),
            }
        }
    }

    /// What was found, by kind and line, and whether loads were no longer looked at from some moment on. A search may let others go on, so what loads can
    /// miss is still known.
    pub(crate) fn found(&mut self, races: &mut Detector) -> (Vec<Lint>, bool) {
        let stale = std::mem::take(&mut self.stale);
        self.notice(&Notice::Known, races);
        self.stale = stale;
        (self.found.lints(), self.found.is_cut)
    }
}

/// A word, as a key.
fn key(pe: PeId, word: Span) -> Word {
    (pe, word.alloc, word.start)
}

/// The keys of all words that may have a byte of some memory.
fn keys(pe: PeId, span: Span) -> Range<(PeId, AllocId, usize)> {
    (pe, span.alloc, span.start.saturating_sub(7))..(pe, span.alloc, span.start + span.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_commute_where_the_order_leaves_the_same_value() {
        let (one, two, other) = (Update::Set(1), Update::Set(2), Update::Other);
        assert!(Update::Add(1).commutes(Update::Add(2)) && one.commutes(one));
        assert!(!one.commutes(two) && !one.commutes(Update::Add(1)) && !other.commutes(other));
        assert_eq!([Update::Add(3).apply(4), two.apply(4), other.apply(4)], [Some(7), Some(2), None]);
    }

    #[test]
    fn a_write_reaches_the_words_that_it_overlaps() {
        let span = |start, len| Span { alloc: AllocId(0), start, len };
        let reaches = |write: Span, word: Span| keys(PeId(0), write).contains(&key(PeId(0), word));
        assert!(reaches(span(0, 64), span(8, 8)) && reaches(span(12, 4), span(8, 8)));
        assert!(!reaches(span(16, 8), span(8, 8)) && !reaches(span(0, 8), span(8, 8)));
    }
}
