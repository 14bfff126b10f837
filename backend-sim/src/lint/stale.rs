//! Strong loads of kernels that can find an older value than in this run. PTX promises no order between the strong accesses of a thread to
//! different words: the machine makes them in program order, and lets only stores and atomics to other PEs' memory arrive later.
//!
//! A load is a finding if its word was written before it [in the order of this run](super::sequential), but no synchronization and no pair of
//! sequential fences puts the write before the load. A load that ends a loop only ends it later, so it is none. The machine itself shows the elements of
//! one vector in any order where a profile allows that. An atomic that reads cannot miss another atomic that reads: the other one would then find what
//! this one leaves, and its thread would go on differently.
//!
//! With [`Loads::Oldest`], such a load finds what the word held before the first write that it may miss, and learns what the word told then. It misses
//! the same writes no second time at that line, as a loop would else never end. Nor does it miss a write where that alone would put two sequential fences in
//! order: what loads behind them have found may have decided otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use onesided::At;

use super::report::{Found, LintKind, LintSite};
use super::sequential::{Access, Sequential, Upto, is_behind};
use super::{By, Known, Notice, Rule, Strong, Update, key, keys};
use crate::config::Loads;
use crate::machine::{AgentId, PeId, Tells, Word};
use crate::race::{Detector, Ticket};

/// What a load misses.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// What it finds in place of what its word holds.
    pub(crate) older: Option<Older>,
    /// Whether it can miss some of the writes in some order of them.
    pub(crate) may: bool,
}

/// What a load finds that misses writes.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) value: u64,
    /// What the word told then.
    pub(crate) tells: Rc<Tells>,
}

#[derive(Debug, Default)]
pub(super) struct StaleLoad {
    order: Sequential,
    words: BTreeMap<Word, History>,
    /// By agent, the writes that it has read.
    seen: BTreeMap<AgentId, Rc<BTreeSet<Access>>>,
}

/// The updates of a word since its last plain write, and who has read it: behind how many of them.
#[derive(Debug, Default)]
struct History {
    writes: Vec<Write>,
    reads: BTreeMap<AgentId, Vec<(u64, usize)>>,
    /// How many of the writes agents do not miss again, by the lines where they have.
    missed: BTreeMap<(AgentId, At), usize>,
}

#[derive(Debug)]
struct Write {
    agent: AgentId,
    time: u64,
    ticket: Option<Ticket>,
    /// Whether it has also read.
    reads: bool,
    /// Whether it is marked as a race that is intended.
    is_marked: bool,
    site: LintSite,
    /// What the word held until then, and how many bytes of it are written.
    before: (u64, usize),
    /// What it told until then. It is kept where loads find old values.
    told: Option<Rc<Tells>>,
}

impl Rule for StaleLoad {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Strong(ref access) => self.accessed(access, known),
            Notice::Updated { ticket, pe, word, update, before } => {
                let replaces = matches!(update, Update::Set(_));
                self.accessed(&Strong::arrival(ticket, (pe, word), replaces, before), known);
            }
            Notice::Written { pe, span } => {
                let words: Vec<Word> = self.words.range(keys(pe, span)).map(|(word, _)| *word).collect();
                words.iter().for_each(|word| _ = self.words.remove(word)); // whoever comes behind it sees nothing older
            }
            Notice::Fences { agent, scope } if !self.order.is_full() => {
                let seen = self.seen.entry(agent).or_default();
                self.order.fences(agent, scope, Rc::clone(seen), known.races);
            }
            _ => {}
        }
    }

    fn settle(&mut self, _: &mut Found) {
        *self = StaleLoad::default(); // all of it happens before later loads
    }
}

impl StaleLoad {
    fn accessed(&mut self, access: &Strong<'_>, known: &mut Known<'_>) {
        if self.order.is_full() {
            known.found.is_cut |= access.reads && !access.waits;
            return;
        }
        let before = self.order.before(&access.by, known.races);
        let (agent, time, word) = (access.by.agent(), access.by.time(), key(access.place.0, access.place.1));
        let behind = if access.reads { self.read(access, word, &before, known) } else { 0 };
        let history = self.words.entry(word).or_default();
        if let Some(write) = behind.checked_sub(1).map(|last| &history.writes[last]) {
            Rc::make_mut(self.seen.entry(agent).or_default()).insert((write.agent, write.time));
        }
        if access.reads {
            history.read_by(agent, time, behind);
        }
        if access.writes {
            let (ticket, is_marked) = match access.by {
                By::Agent { .. } => (None, known.races.mark(agent) != 0),
                By::Transfer(ticket) => (Some(ticket.clone()), false),
            };
            let site = access.by.site(known.races);
            let before = (access.before, access.place.1.len);
            let (pe, span) = access.place;
            let told = (known.loads == Loads::Oldest).then(|| Rc::new(Tells::of(known.races, pe, span)));
            history.writes.push(Write { agent, time, ticket, reads: access.reads, is_marked, site, before, told });
        }
        self.order.made(access, before, known.missed.older.is_some(), known.races);
    }

    /// An access reads, behind others. Returns how many of the word's writes it comes after: all, unless it finds an old value.
    fn read(&mut self, access: &Strong<'_>, word: Word, before: &Upto, known: &mut Known<'_>) -> usize {
        let agent = access.by.agent();
        let Some(history) = self.words.get_mut(&word) else { return 0 };
        let all = history.writes.len();
        if access.waits || access.is_part || known.races.mark(agent) != 0 {
            return all;
        }
        let unread = history.unread(agent, known.races);
        let is_seen = |write: &Write| {
            write.is_known(agent, access.place.0, known.races)
                || self.order.are_fenced((write.agent, write.time), agent, known.races)
        };
        let is_missed = |write: &Write| {
            let cannot = write.is_marked || write.reads && access.writes;
            !cannot && is_behind(before, (write.agent, write.time))
        };
        let shows = known.loads == Loads::Oldest && access.is_load;
        known.missed.may = shows && unread.iter().any(|write| is_missed(write) && !is_seen(write));
        let unseen = &unread[unread.iter().rposition(is_seen).map_or(0, |last| last + 1)..];
        let Some(write) = unseen.iter().find(|write| is_missed(write)) else { return all };
        let site = access.by.site(known.races);
        let missed = history.not_missed_at(agent, site.at, unseen);
        let can_be_shown = |write: &Write| {
            let of_this_size = write.before.1 == access.place.1.len;
            of_this_size && !self.order.would_order_fences((write.agent, write.time), agent, known.races)
        };
        let shown = shows && missed.iter().any(is_missed) && missed.iter().all(can_be_shown);
        known.found.note_shown(LintKind::StaleLoad, write.site, site, None, shown);
        if !shown {
            return all;
        }
        let Write { before: (value, _), ref told, .. } = missed[0];
        known.missed.older = Some(Older { value, tells: Rc::clone(told.as_ref().expect("it is kept")) });
        let behind = all - missed.len();
        history.missed.insert((agent, site.at), all);
        behind
    }
}

impl Write {
    /// Whether an agent comes after it.
    fn is_known(&self, reader: AgentId, pe: PeId, races: &Detector) -> bool {
        match &self.ticket {
            Some(ticket) if self.agent != reader => races.knows_arrival(reader, ticket, pe),
            _ => self.time <= races.steps_known(reader, self.agent),
        }
    }
}

impl History {
    /// The updates behind what a reader has read, or somebody of whom it knows.
    fn unread(&self, reader: AgentId, races: &Detector) -> &[Write] {
        let read = self.reads.iter().filter_map(|(&agent, reads)| {
            let steps = races.steps_known(reader, agent);
            let last = reads.partition_point(|(time, _)| *time <= steps).checked_sub(1)?;
            Some(reads[last].1)
        });
        &self.writes[read.max().unwrap_or(0)..]
    }

    /// Of the last updates, those that an agent has not missed before at a line.
    fn not_missed_at<'a>(&self, agent: AgentId, line: At, last: &'a [Write]) -> &'a [Write] {
        let upto = self.missed.get(&(agent, line)).copied().unwrap_or(0);
        let seen = self.writes.len() - last.len();
        last.get(upto.saturating_sub(seen)..).unwrap_or_default()
    }

    /// An agent reads behind so many of the writes.
    fn read_by(&mut self, agent: AgentId, time: u64, behind: usize) {
        let reads = self.reads.entry(agent).or_default();
        if reads.last().is_none_or(|(_, before)| *before < behind) {
            reads.push((time, behind));
        }
    }
}
