//! Words that somebody waits for, and that are written in parts: by bytes, or by words of another size.
//!
//! Two writes to different bytes commute, but not for who waits for a word that has both: the wait may end behind one of them, and not
//! behind the other, or not behind both. Such writes count as writes of the whole word, so that a search takes them in every order. Which words
//! these are, runs show: until one does, there are none.

use std::collections::{BTreeMap, BTreeSet};

use onesided::backend::Span;

use super::assumed::{Word, near, word};
use super::ids::PeId;

/// What was seen of words in parts, and which are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Where writes begin or end, if not between aligned words of 8 bytes.
    cuts: BTreeSet<Word>,
    /// Words that somebody waits for and that have a cut, with their bytes.
    words: BTreeMap<Word, usize>,
}

impl Parts {
    /// What is known.
    pub(super) fn known(&self) -> &BTreeMap<Word, usize> {
        &self.words
    }

    /// Only so much is known.
    pub(super) fn of(known: &BTreeMap<Word, usize>) -> Parts {
        Parts { words: known.clone(), ..Parts::default() }
    }

    /// Memory is written. Returns whether that is news.
    pub(super) fn write(&mut self, pe: PeId, span: Span) -> bool {
        let ends = [span.start, span.start.saturating_add(span.len)];
        let cuts = ends.into_iter().filter(|at| !at.is_multiple_of(8) && *at < usize::MAX);
        let before = self.cuts.len();
        self.cuts.extend(cuts.map(|at| word(pe, Span { start: at, ..span })));
        self.cuts.len() > before
    }

    /// Adds what another run has seen. Returns whether that is news.
    pub(super) fn learn(&mut self, mut of: Parts) -> bool {
        let before = self.cuts.len();
        self.cuts.append(&mut of.cuts);
        self.cuts.len() > before
    }

    /// Looks for cuts within words that somebody waits for. Returns whether there are such words that were not known.
    pub(super) fn give_up(&mut self, waited: impl Iterator<Item = (Word, usize)>) -> bool {
        let mut some = false;
        for ((pe, alloc, start), len) in waited {
            let inside = (pe, alloc, start + 1)..(pe, alloc, start + len.max(1));
            if self.cuts.range(inside).next().is_some() {
                some |= self.words.insert((pe, alloc, start), len) != Some(len);
            }
        }
        some
    }

    /// Memory that is written, with the whole of words that are written in parts.
    pub(super) fn whole(&self, pe: PeId, span: Span) -> Span {
        if self.words.is_empty() {
            return span;
        }
        let mut whole = span.start..span.start.saturating_add(span.len);
        for (&(.., start), len) in self.words.range(near(pe, span)) {
            if start + len > span.start {
                whole = whole.start.min(start)..whole.end.max(start + len);
            }
        }
        Span { start: whole.start, len: whole.len(), ..span }
    }
}

#[cfg(test)]
mod tests {
    use onesided::backend::AllocId;

    use super::*;

    fn bytes(start: usize, len: usize) -> Span {
        Span { alloc: AllocId(3), start, len }
    }

    #[test]
    fn a_write_within_a_word_that_is_waited_for_counts_for_all_of_it() {
        let (pe, waited) = (PeId(1), [(word(PeId(1), bytes(8, 4)), 4)]);
        let mut parts = Parts::default();
        assert!(!parts.write(pe, bytes(0, 16)) && parts.write(pe, bytes(0, 12)));
        assert!(!parts.give_up(waited.into_iter()), "both are of whole words");
        assert!(parts.write(pe, bytes(9, 1)) && !parts.write(pe, bytes(9, 1)));
        assert_eq!(parts.whole(pe, bytes(9, 1)), bytes(9, 1));
        assert!(parts.give_up(waited.into_iter()) && !parts.give_up(waited.into_iter()));
        assert_eq!(parts.whole(pe, bytes(9, 1)), bytes(8, 4));
        assert_eq!(parts.whole(pe, bytes(2, 9)), bytes(2, 10));
        assert_eq!([bytes(12, 1), bytes(7, 1)].map(|span| parts.whole(pe, span)), [bytes(12, 1), bytes(7, 1)]);
        assert_eq!(parts.whole(PeId(0), bytes(9, 1)), bytes(9, 1));
    }
}
