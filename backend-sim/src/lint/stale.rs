//! Strong loads of kernels that can find an older value than in this run. PTX promises no order between the strong accesses of a thread to
//! different words: the machine makes them in program order, and lets only stores and atomics to other PEs' memory arrive later.
//!
//! A load is a finding if its word was written before it [in the order of this run](super::sequential), but no synchronization and no pair of
//! sequential fences puts the write before the load. A load that ends a loop only ends it later, so it is none,
//! and the machine itself shows the elements of a vector in any order where a profile allows that. Of two atomics one comes first, and the other reads
//! that: if they came the other way round, each thread would find other values from there on.

use std::collections::BTreeMap;

use onesided_ptx::Scope;

use super::report::{Found, LintKind, LintSite};
use super::sequential::{Sequential, Upto, is_behind};
use super::{By, Known, Notice, Ordering, Rule, Strong, Update, key, keys};
use crate::machine::{AgentId, PeId, Word};
use crate::race::{Detector, Ticket};

#[derive(Debug, Default)]
pub(super) struct StaleLoad {
    order: Sequential,
    words: BTreeMap<Word, History>,
    /// By agent, the writes that it has read.
    seen: BTreeMap<AgentId, Upto>,
}

/// The updates of a word since its last plain write, and who has read it: behind how many of them.
#[derive(Debug, Default)]
struct History {
    writes: Vec<Write>,
    reads: BTreeMap<AgentId, Vec<(u64, usize)>>,
}

#[derive(Debug)]
struct Write {
    agent: AgentId,
    time: u64,
    ticket: Option<Ticket>,
    /// Whether it has also read.
    reads: bool,
    site: LintSite,
}

impl Rule for StaleLoad {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Strong(ref access) => self.accessed(access, known),
            Notice::Updated { ticket, pe, word, update, .. } => {
                let commutes = matches!(update, Update::Add(_));
                self.accessed(&Strong::arrival(ticket, (pe, word), commutes), known);
            }
            Notice::Written { pe, span } => {
                let words: Vec<Word> = self.words.range(keys(pe, span)).map(|(word, _)| *word).collect();
                words.iter().for_each(|word| _ = self.words.remove(word)); // whoever comes behind it sees nothing older
            }
            Notice::Fences { agent, scope } => self.order.fences(agent, scope, self.seen.get(&agent), known.races),
            // what it has completed, nobody misses who reads later
            Notice::Orders { agent, order: Ordering::Quiet | Ordering::Barrier, .. } if !self.order.is_empty() => {
                self.order.fences(agent, Scope::Sys, self.seen.get(&agent), known.races);
            }
            _ => {}
        }
    }

    fn settle(&mut self, _: &mut Found) {
        *self = StaleLoad::default(); // nobody can miss what everybody knows
    }
}

impl StaleLoad {
    fn accessed(&mut self, access: &Strong<'_>, known: &mut Known<'_>) {
        if self.order.is_full() {
            return;
        }
        let before = self.order.before(&access.by, known.races);
        let (agent, time) = (access.by.agent(), access.by.time());
        let history = self.words.entry(key(access.place.0, access.place.1)).or_default();
        if access.reads {
            let may_miss = |write: &&Write| {
                let written = (write.agent, write.time);
                !(write.reads && access.writes)
                    && is_behind(&before, written)
                    && !self.order.are_fenced(written, agent, known.races)
            };
            if !(access.waits || access.is_part)
                && known.races.mark(agent) == 0
                && let Some(write) = history.unseen(agent, access.place.0, known.races).find(may_miss)
            {
                known.found.note(LintKind::StaleLoad, write.site, access.by.site(known.races), None);
            }
            if let Some(write) = history.writes.last() {
                let upto = self.seen.entry(agent).or_default().entry(write.agent).or_default();
                *upto = write.time.max(*upto);
            }
            history.read_by(agent, time);
        }
        if access.writes {
            let ticket = match access.by {
                By::Agent { .. } => None,
                By::Transfer(ticket) => Some(ticket.clone()),
            };
            history.writes.push(Write { agent, time, ticket, reads: access.reads, site: access.by.site(known.races) });
        }
        self.order.made(access, before, known.races);
    }
}

impl History {
    /// The updates that a reader need not see: those behind the last that it knows of, and behind what it has read, or somebody of whom it knows.
    fn unseen(&self, reader: AgentId, pe: PeId, races: &Detector) -> impl Iterator<Item = &Write> {
        let steps = |of| races.steps_known(reader, of);
        let known = self.writes.iter().rposition(|write| match &write.ticket {
            Some(ticket) if write.agent != reader => races.knows_arrival(reader, ticket, pe),
            _ => write.time <= steps(write.agent),
        });
        let read = self.reads.iter().filter_map(|(&agent, reads)| {
            let last = reads.partition_point(|(time, _)| *time <= steps(agent)).checked_sub(1)?;
            Some(reads[last].1)
        });
        let from = read.max().max(known.map(|last| last + 1));
        self.writes[from.unwrap_or(0)..].iter()
    }

    fn read_by(&mut self, agent: AgentId, time: u64) {
        let reads = self.reads.entry(agent).or_default();
        if reads.last().is_none_or(|(_, behind)| *behind < self.writes.len()) {
            reads.push((time, self.writes.len()));
        }
    }
}
