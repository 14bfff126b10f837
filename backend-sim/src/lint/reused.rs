//! Data that a sender overwrites after it has announced it, without an answer of the receiver. The receiver can find the later
//! data in place of the earlier, even where a fence orders the two.
//!
//! Data is announced by the signal of its own put, or by the next signal or atomic that its sender issues to the same PE.

use std::collections::BTreeMap;

use onesided::backend::{Against, Moves, Span, Transfer};

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Rule, Waiting};
use crate::machine::{AgentId, PeId};
use crate::race::Ticket;

/// So much is kept of each PE.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Reused {
    /// Data that is sent and not announced, by its sender.
    silent: BTreeMap<(AgentId, PeId), Vec<(Span, Ticket)>>,
    of: BTreeMap<PeId, Receiver>,
}

/// What a PE was told, and what it waited for.
#[derive(Debug, Default)]
struct Receiver {
    announced: Vec<Announced>,
    waits: Vec<(AgentId, Waiting, Span)>,
}

#[derive(Debug)]
struct Announced {
    data: Span,
    ticket: Ticket,
    site: LintSite,
    /// The transfer that announces it, and its word.
    by: u64,
    word: Span,
    /// What the word holds then, once it does.
    value: Option<u64>,
    /// The call that overwrites the data.
    reused: Option<LintSite>,
}

impl Rule for Reused {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Issued { transfer, ticket } => self.issued(transfer, ticket, known),
            Notice::Updated { ticket, pe, word, update, before } => {
                let Some(receiver) = self.of.get_mut(&pe) else { return };
                for announced in &mut receiver.announced {
                    if announced.by == ticket.time() && announced.word == word {
                        announced.value = update.apply(before);
                        announced.judge(&receiver.waits, known);
                    }
                }
            }
            Notice::Waits { agent, ref waiting, words } => {
                let receiver = self.of.entry(waiting.pe).or_default();
                if receiver.waits.len() < MOST {
                    receiver.waits.extend(words.iter().map(|word| (agent, *waiting, *word)));
                }
                receiver.announced.iter_mut().for_each(|announced| announced.judge(&receiver.waits, known));
            }
            _ => {}
        }
    }

    fn settle(&mut self, _: &mut Found) {
        self.silent.clear();
        self.of.clear();
    }
}

impl Reused {
    fn issued(&mut self, transfer: &Transfer, ticket: &Ticket, known: &mut Known<'_>) {
        let peer = PeId(transfer.peer);
        let sends = matches!(transfer.moves, Moves::Put { .. } | Moves::Value(_)) && transfer.shape.count > 0;
        let word = match transfer.moves {
            Moves::Amo { .. } => Some(transfer.remote),
            _ => transfer.signal.map(|signal| signal.word),
        };
        if !sends && word.is_none() {
            return;
        }
        let receiver = self.of.entry(peer).or_default();
        let site = known.races.site_of(ticket);
        if sends {
            for announced in &mut receiver.announced {
                let overwrites = announced.reused.is_none() && announced.data.overlaps(&transfer.remote);
                if overwrites && !known.races.has_heard(ticket, peer, announced.ticket.time()) {
                    announced.reused = Some(site);
                    announced.judge(&receiver.waits, known);
                }
            }
        }
        let silent = self.silent.entry((ticket.agent(), peer)).or_default();
        if sends {
            silent.push((transfer.remote, ticket.clone()));
        }
        let Some(word) = word else {
            if silent.len() > MOST {
                silent.remove(0);
            }
            return;
        };
        for (data, ticket_of_data) in silent.drain(..) {
            let site = known.races.site_of(&ticket_of_data);
            let by = ticket.time();
            receiver.announced.push(Announced {
                data,
                ticket: ticket_of_data,
                site,
                by,
                word,
                value: None,
                reused: None,
            });
        }
        let surplus = receiver.announced.len().saturating_sub(MOST);
        receiver.announced.drain(..surplus);
    }
}

impl Announced {
    /// Whether the receiver has waited for this data, and not for what came before.
    fn judge(&mut self, waits: &[(AgentId, Waiting, Span)], known: &mut Known<'_>) {
        let (Some(value), Some(reused)) = (self.value, self.reused) else { return };
        let waited = waits.iter().any(|(agent, waiting, word)| {
            let Against::One(wanted) = waiting.against else { return false };
            *word == self.word
                && waiting.cmp.holds_bits(waiting.dtype, value, wanted)
                && !known.races.is_told(&self.ticket, *agent, waiting.time)
        });
        if waited {
            known.found.note(LintKind::DestinationReused, self.site, reused, None);
            self.reused = None;
            self.value = None;
        }
    }
}
