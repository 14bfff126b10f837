//! One cell of [shadow memory](super::shadow): the accesses to a granule that can still be part of a race.
//!
//! A cell forgets an access only when a later one stands for it: whatever would race with the earlier access also races with the later one.

use std::rc::Rc;

use smallvec::SmallVec;

use super::words::Tells;
use super::{Issue, Lane, Mark, Who};
use crate::machine::PeId;

/// The accesses to a granule that can still be part of a race.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The last write that is not atomic.
    pub(super) write: Mark,
    /// What its transfer knew, if a transfer wrote it.
    pub(super) by: Option<Rc<Issue>>,
    /// Another access since.
    other: Mark,
    pub(super) more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct More {
    /// Further accesses since the last write. Mostly they are few.
    marks: SmallVec<[Mark; 2]>,
    /// What the word tells those who read it atomically, and when it was last updated.
    pub(super) release: Option<(u64, Tells)>,
    /// Waits that ended by the last write: whoever comes after one of them comes after the write, of this word.
    pub(super) seen: Vec<Mark>,
    /// Updates by transfers, each with a strong load of a kernel that has read it: whoever comes after the load comes after the update, of this word.
    loaded: Vec<(Mark, Mark)>,
}

pub(super) const BLANK: Cell = Cell { write: Mark::BLANK, by: None, other: Mark::BLANK, more: None };

impl Mark {
    /// Whether whoever makes another access knows this one at a glance: everybody does (`base`), or it was done by the same agent in the
    /// same way before.
    #[inline(always)] // on the hottest path
    fn is_plainly_known_to(&self, other: &Mark, issue: Option<&Rc<Issue>>, pe: PeId, base: u64) -> bool {
        self.time <= base
            || self.owner == other.owner
                && match other.lane() {
                    Lane::Steps | Lane::Arrived => self.time <= other.time,
                    lane => issue.is_some_and(|issue| issue.clock.knows(other.agent(), lane, self.time, pe)),
                }
    }
}

impl Cell {
    /// Notes an access; `found` gets what it races with, and its own mark.
    #[inline]
    pub(super) fn access(&mut self, who: &Who<'_>, mark: Mark, mut found: impl FnMut(Mark, Mark)) {
        let mark = match mark.how().is_plain_write() {
            true => mark.over(&self.write),
            false if mark.is_source() && self.marks().any(Mark::is_source) => mark.once(),
            false => mark,
        };
        if who.conflicts(&mark, &self.write) && !who.knows(&self.write) && !self.was_seen(who) {
            found(self.write, mark);
        }
        if who.conflicts(&mark, &self.other) && !who.knows(&self.other) && !self.was_read(who, &self.other) {
            found(self.other, mark);
        }
        if let Some(more) = &self.more {
            let unknown = more.marks.iter().filter(|other| who.conflicts(&mark, other) && !who.knows(other));
            unknown.filter(|other| !self.was_read(who, other)).for_each(|race| found(*race, mark));
        }
        if mark.how().is_plain_write() {
            return self.write(who, mark);
        }
        if mark.how().reads_atomically() && mark.lane() == Lane::Steps {
            self.load(who, mark);
        }
        if self.other.is_blank() || who.is_over(&self.other, &mark) {
            self.other = mark;
        } else if self.other != mark {
            let marks = &mut self.more.get_or_insert_default().marks;
            let is_over = |other: &Mark| who.is_over(other, &mark);
            match &mut marks[..] {
                [only] if is_over(only) => *only = mark, // mostly
                _ => {
                    marks.retain(|other| !is_over(other));
                    if marks.last() != Some(&mark) {
                        marks.push(mark);
                    }
                }
            }
        }
    }

    /// Notes an access, if nothing races with it as far as a glance shows: what conflicts with it is known to everybody (`base`),
    /// or was done by the same agent in the same way before. Most accesses are like that. `issue`: that of its transfer, if it is
    /// one's.
    #[inline(always)] // on the hottest path
    pub(super) fn access_known(&mut self, mark: Mark, issue: Option<&Rc<Issue>>, pe: PeId, base: u64) -> bool {
        let knows = |other: &Mark| other.is_plainly_known_to(&mark, issue, pe, base);
        if self.more.is_some() || !knows(&self.other) {
            return false;
        }
        if mark.how().is_plain_write() {
            if !knows(&self.write) {
                return false; // plain writes conflict with each other
            }
            (self.write, self.other) = (mark.over(&self.write), Mark::BLANK);
            self.set_by(issue);
        } else {
            // what it stands for does not conflict with it
            let stands = self.other.is_blank() || self.other.stands_for(&mark);
            if !stands || !knows(&self.write) && mark.conflicts_afar(&self.write) {
                return false;
            }
            self.other = mark;
        }
        true
    }

    /// Whether nothing is kept but the last write.
    pub(super) fn is_written_only(&self) -> bool {
        self.other.is_blank() && self.more.is_none()
    }

    /// Whether somebody comes after a wait that ended by the last write, or after a transfer that has read it: what a kernel has stored is in memory when
    /// a transfer reads it there.
    pub(super) fn was_seen(&self, who: &Who<'_>) -> bool {
        let is_sent = |read: &Mark| read.is_source() && read.time > self.write.time && who.knows(read);
        self.more.as_ref().is_some_and(|more| more.seen.iter().any(|wait| who.knows(wait))) || self.marks().any(is_sent)
    }

    /// Whether somebody comes after an access of this cell.
    pub(super) fn is_known(&self, who: &Who<'_>, other: &Mark) -> bool {
        who.knows(other) || *other == self.write && self.was_seen(who) || self.was_read(who, other)
    }

    /// A strong load: which updates by transfers it has read, of those that its agent does not come after. They are here, so they have arrived.
    #[cold]
    fn load(&mut self, who: &Who<'_>, load: Mark) {
        let arrived = self.marks().filter(|mark| mark.how().updates_atomically() && mark.lane() != Lane::Steps);
        let arrived: Vec<Mark> = arrived.filter(|update| !who.knows(update)).copied().collect();
        if arrived.is_empty() {
            return;
        }
        let loaded = &mut self.more.get_or_insert_default().loaded;
        for update in arrived {
            if loaded.iter().all(|(of, by)| *of != update || by.agent() != load.agent()) {
                loaded.push((update, load)); // whoever comes after a later load comes after this one
            }
        }
    }

    /// Whether somebody comes after a strong access of a kernel that has read what this update has left, or what came after
    /// that: who reads it comes after it (PTX's causality order), also without a fence.
    fn was_read(&self, who: &Who<'_>, update: &Mark) -> bool {
        if update.lane() != Lane::Steps {
            let loaded = self.more.iter().flat_map(|more| &more.loaded);
            return loaded.into_iter().any(|(of, by)| of == update && who.knows(by));
        }
        let has_read = |other: &Mark| {
            other.how().reads_atomically()
                && other.lane() == Lane::Steps
                && other.time > update.time
                && who.knows(other)
        };
        update.how().updates_atomically() && update.lane() == Lane::Steps && self.marks().any(has_read)
    }

    #[inline]
    fn set_by(&mut self, issue: Option<&Rc<Issue>>) {
        match (issue, &self.by) {
            (None, None) => {}
            (Some(issue), Some(by)) if Rc::ptr_eq(issue, by) => {}
            (issue, _) => self.by = issue.cloned(),
        }
    }

    fn write(&mut self, who: &Who<'_>, mark: Mark) {
        // these stay, as they may race with later accesses: a wait that nothing orders with this put, which is no race with it; what an agent
        // did itself while its store was on the way; and what races with this access only as intended
        let stays = |other: &Mark| {
            let hides = || (!mark.conflicts(other) || who.races_as_intended(&mark, other)) && !who.knows(other);
            !other.is_blank() && (who.is_overtaken(other) || hides())
        };
        let hidden = Some(self.write).filter(|write| who.has_marks() && stays(write));
        self.write = mark;
        self.set_by(who.issue);
        if !stays(&self.other) {
            self.other = Mark::BLANK;
        }
        if let Some(mut more) = self.more.take() {
            more.marks.retain(|mark| stays(mark));
            more.release = None;
            more.seen.clear();
            more.loaded.clear();
            self.more = Some(more).filter(|more| !more.marks.is_empty());
        }
        if let Some(write) = hidden {
            self.more.get_or_insert_default().marks.push(write);
        }
    }

    pub(super) fn release(&self) -> Option<&(u64, Tells)> {
        self.more.as_ref()?.release.as_ref()
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = &Mark> {
        let more = self.more.iter().flat_map(|more| &more.marks);
        [&self.write, &self.other].into_iter().chain(more)
    }
}
