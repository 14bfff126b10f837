//! Reads of memory that nobody has written. On GPUs, the content of fresh memory differs from run to run.
//!
//! A read of the host, a wait that ends, and an atomic that keeps a part of the old value use a whole value, so every byte must be written. A
//! transfer or a collective may carry bytes that its receiver ignores. So its source is a finding only if nobody has written any of it.
//! What it has delivered counts as written.

use std::collections::BTreeMap;

use onesided::backend::{AllocId, Span};

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Rule, Update};
use crate::machine::PeId;

#[derive(Debug, Default)]
pub(super) struct UnwrittenRead {
    /// The calls that made memory which is not zeroed.
    made: BTreeMap<AllocId, LintSite>,
    /// What nobody has written of it on each PE.
    blank: BTreeMap<(PeId, AllocId), Blank>,
}

/// Bytes: the first of each interval, and the one behind its last.
#[derive(Debug)]
struct Blank(BTreeMap<usize, usize>);

impl Rule for UnwrittenRead {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        if let Notice::Made { agent, alloc, bytes, pes, asked } = *notice {
            self.made.insert(alloc, known.races.site(agent, asked));
            self.blank.extend(pes.iter().map(|pe| ((*pe, alloc), Blank([(0, bytes)].into()))));
        }
        if self.blank.is_empty() {
            return;
        }
        match *notice {
            Notice::Changed { pe, span } => self.changed(pe, span),
            Notice::Read { agent, pe, span, asked } | Notice::Fetched { agent, pe, span, asked }
                if self.is_blank(pe, span, Blank::has_of) =>
            {
                self.note(span, known.races.site(agent, asked), known.found);
            }
            Notice::Loaded { ticket, pe, span } if self.is_blank(pe, span, Blank::has_of) => {
                self.note(span, known.races.site_of(ticket), known.found);
            }
            Notice::Copied { ticket, pe, span } if self.is_blank(pe, span, Blank::has_all_of) => {
                self.note(span, known.races.site_of(ticket), known.found);
            }
            Notice::Updated { ticket, pe, word, update: Update::Add(_) | Update::Other, .. }
                if self.is_blank(pe, word, Blank::has_of) =>
            {
                self.note(word, known.races.site_of(ticket), known.found);
            }
            Notice::Ends { agent, word } => {
                if let Some(waiting) = known.waits.get(&agent).copied()
                    && self.is_blank(waiting.pe, word, Blank::has_of)
                {
                    self.note(word, known.races.site(agent, waiting.asked), known.found);
                }
            }
            _ => {}
        }
    }
}

impl UnwrittenRead {
    fn is_blank(&self, pe: PeId, span: Span, has: fn(&Blank, Span) -> bool) -> bool {
        self.blank.get(&(pe, span.alloc)).is_some_and(|blank| has(blank, span))
    }

    fn changed(&mut self, pe: PeId, span: Span) {
        let Some(blank) = self.blank.get_mut(&(pe, span.alloc)) else { return };
        blank.remove(span);
        if blank.0.is_empty() {
            self.blank.remove(&(pe, span.alloc));
        }
    }

    fn note(&self, span: Span, read: LintSite, found: &mut Found) {
        found.note(LintKind::UnwrittenRead, self.made[&span.alloc], read, None);
    }
}

impl Blank {
    /// Whether any of these bytes is here.
    fn has_of(&self, span: Span) -> bool {
        self.0.range(..span.start + span.len).next_back().is_some_and(|(_, &end)| end > span.start)
    }

    /// Whether all of them are, and there are any.
    fn has_all_of(&self, span: Span) -> bool {
        let interval = self.0.range(..=span.start).next_back();
        span.len > 0 && interval.is_some_and(|(_, &end)| end >= span.start + span.len)
    }

    fn remove(&mut self, span: Span) {
        let (start, end) = (span.start, span.start + span.len);
        while let Some((&from, &to)) = self.0.range(..end).next_back().filter(|(_, to)| **to > start) {
            self.0.remove(&from);
            if from < start {
                self.0.insert(from, start);
            }
            if to > end {
                self.0.insert(end, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, len: usize) -> Span {
        Span { alloc: AllocId(0), start, len }
    }

    #[test]
    fn what_is_written_is_no_longer_blank() {
        let mut blank = Blank([(0, 64)].into());
        blank.remove(span(8, 8));
        blank.remove(span(32, 8));
        assert_eq!(Vec::from_iter(blank.0.clone()), [(0, 8), (16, 32), (40, 64)]);
        assert!(!blank.has_of(span(8, 8)) && blank.has_of(span(8, 9)) && blank.has_of(span(7, 9)));
        assert!(blank.has_all_of(span(16, 16)) && !blank.has_all_of(span(16, 17)) && !blank.has_all_of(span(0, 0)));
        blank.remove(span(4, 40));
        assert_eq!(Vec::from_iter(blank.0.clone()), [(0, 4), (44, 64)]);
        blank.remove(span(0, 64));
        assert!(blank.0.is_empty());
    }
}
