//! Data that a sender overwrites after it has announced it, without an answer of the receiver. The receiver can find the later
//! data in place of the earlier, even where a fence orders the two.
//!
//! Data is announced by the signal of its own put, or by the next signal or atomic that its sender issues to the same PE.

use std::collections::BTreeMap;

use onesided::backend::{Against, Moves, Shape, Span, Transfer};

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Rule, Waiting};
use crate::machine::{AgentId, PeId, parts};
use crate::race::Ticket;

/// How many entries of each kind are kept for a PE.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Reused {
    /// Data that is sent and not announced, by its sender.
    silent: BTreeMap<(AgentId, PeId), Vec<(Target, Ticket)>>,
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
    data: Target,
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

/// The elements that a put writes: those of a column have others between them.
#[derive(Clone, Copy, Debug)]
struct Target {
    span: Span,
    shape: Shape,
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
        let target = Target { span: transfer.remote, shape: transfer.shape };
        let receiver = self.of.entry(peer).or_default();
        let site = known.races.site_of(ticket);
        if sends {
            for announced in &mut receiver.announced {
                let overwrites = announced.reused.is_none() && announced.data.meets(&target);
                let has_heard = known.races.has_heard(ticket, peer, announced.ticket.time());
                if overwrites && !has_heard && !announced.is_seen_by(ticket.agent(), &receiver.waits, known) {
                    announced.reused = Some(site);
                    announced.judge(&receiver.waits, known);
                }
            }
        }
        let silent = self.silent.entry((ticket.agent(), peer)).or_default();
        if sends {
            silent.push((target, ticket.clone()));
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
    /// Notes the lint if the data is overwritten, and the receiver has waited for its announcement, and not for an earlier one.
    fn judge(&mut self, waits: &[(AgentId, Waiting, Span)], known: &mut Known<'_>) {
        let Some(reused) = self.reused else { return };
        if waits.iter().any(|wait| self.ends(wait, known)) {
            known.found.note(LintKind::DestinationReused, self.site, reused, None);
            self.reused = None;
            self.value = None;
        }
    }

    /// Whether an agent is the receiver and has waited for this data. Then what it does now comes after its wait.
    fn is_seen_by(&self, agent: AgentId, waits: &[(AgentId, Waiting, Span)], known: &Known<'_>) -> bool {
        waits.iter().any(|wait| wait.0 == agent && self.ends(wait, known))
    }

    /// Whether the announcement ends a wait that did not come before it.
    fn ends(&self, (agent, waiting, word): &(AgentId, Waiting, Span), known: &Known<'_>) -> bool {
        let (Some(value), Against::One(wanted)) = (self.value, waiting.against) else { return false };
        *word == self.word
            && waiting.cmp.holds_bits(waiting.dtype, value, wanted)
            && !known.races.is_told(&self.ticket, *agent, waiting.time)
    }
}

impl Target {
    /// Whether an element of the one and an element of the other share a byte.
    fn meets(&self, other: &Target) -> bool {
        let Shape { count, size, dst_stride, .. } = self.shape;
        self.span.overlaps(&other.span) && parts(self.span, size, dst_stride, 0..count).any(|part| other.has(part))
    }

    /// Whether an element has one of these bytes.
    fn has(&self, part: Span) -> bool {
        let Shape { count, size, dst_stride, .. } = self.shape;
        if dst_stride <= 1 {
            return self.span.overlaps(&part);
        }
        let step = size * dst_stride;
        // the first element that ends behind the first byte of `part`
        let first = (part.start + step).saturating_sub(self.span.start + size) / step;
        self.span.overlaps(&part) && first < count && self.span.start + first * step < part.start + part.len
    }
}

#[cfg(test)]
mod tests {
    use onesided::backend::AllocId;

    use super::*;

    fn column(start: usize, count: usize, dst_stride: usize) -> Target {
        let shape = Shape { count, size: 8, dst_stride, src_stride: 1 };
        Target { span: Span { alloc: AllocId(0), start, len: ((count - 1) * dst_stride + 1) * 8 }, shape }
    }

    #[test]
    fn columns_meet_where_an_element_is_the_same() {
        let meet = |one: Target, other: Target| {
            assert_eq!(one.meets(&other), other.meets(&one), "{one:?} {other:?}");
            one.meets(&other)
        };
        assert!(meet(column(0, 3, 4), column(0, 3, 4)) && meet(column(0, 3, 4), column(32, 1, 1)));
        assert!(meet(column(0, 3, 4), column(64, 5, 2)) && meet(column(0, 7, 1), column(48, 3, 4)));
        assert!(!meet(column(0, 3, 4), column(8, 3, 4)), "they lie between each other");
        assert!(!meet(column(0, 3, 4), column(40, 3, 1)) && !meet(column(0, 3, 4), column(72, 3, 4)));
        assert!(meet(column(0, 3, 4), column(8, 4, 1)) && !meet(column(0, 5, 3), column(8, 1, 1)));
    }
}
