//! Shadow memory: for every byte that was accessed, the last write and the accesses since that are not ordered among each other.
//!
//! Memory is divided into blocks of 1 KiB. A block that was only accessed as a whole has one cell. Any other has a cell for
//! each granule of 8 bytes, or of 4, 2 or 1 where an access is finer. A cell forgets an access only when a later one stands
//! for it: whatever is not ordered with the former is not ordered with the latter, and conflicts with it too.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use onesided::backend::{AllocId, Span};

use super::clock::Clock;
use super::{Issue, Mark, Who};
use crate::machine::{Id as _, PeId};

/// What an access does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// A transfer writes whole elements: a wait may look at one.
    Deliver,
    /// Reads atomically: a fetch, or a wait for a signal.
    AtomicRead,
    /// Updates atomically: a signal or an atomic.
    AtomicUpdate,
    /// A wait for any variable: what a put delivers may be what it waits for.
    Wait,
}

impl How {
    const ALL: [How; 6] = [How::Read, How::Write, How::Deliver, How::AtomicRead, How::AtomicUpdate, How::Wait];

    pub(super) fn from_bits(bits: u32) -> How {
        How::ALL[bits as usize]
    }

    pub(super) fn writes(self) -> bool {
        matches!(self, How::Write | How::Deliver | How::AtomicUpdate)
    }

    fn is_plain_write(self) -> bool {
        matches!(self, How::Write | How::Deliver)
    }

    /// Whether two accesses that nothing orders are a race; `same_size`: of words of one size.
    pub(super) fn conflicts(self, other: How, same_size: bool) -> bool {
        use How::{AtomicRead, AtomicUpdate, Deliver, Read, Wait, Write};
        match (self, other) {
            (Read | AtomicRead | Wait, Read | AtomicRead | Wait) => false,
            (Write, _) | (_, Write) => true,
            (Deliver, Wait) | (Wait, Deliver) => !same_size,
            (Deliver, _) | (_, Deliver) => true,
            (AtomicUpdate, Read) | (Read, AtomicUpdate) => true,
            (AtomicUpdate, AtomicRead | Wait | AtomicUpdate) | (AtomicRead | Wait, AtomicUpdate) => !same_size,
        }
    }
}

/// The accesses to a granule that can still be part of a race.
#[derive(Clone, Debug)]
struct Cell {
    /// The last write that is not atomic.
    write: Mark,
    /// What its transfer knew, if a transfer wrote it.
    by: Option<Rc<Issue>>,
    /// Another access since.
    other: Mark,
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
struct More {
    /// Further accesses since the last write.
    marks: Vec<Mark>,
    /// What the word tells those who read it atomically, and when it was last updated.
    release: Option<(u64, Rc<Clock>)>,
}

const BLANK: Cell = Cell { write: Mark::BLANK, by: None, other: Mark::BLANK, more: None };

/// What reading a word atomically tells.
pub(super) enum Released {
    /// What its updates have told.
    Clock(Rc<Clock>),
    /// It was written by a transfer, which is this mark's.
    Transfer(Mark, Rc<Issue>),
}

impl Cell {
    /// Notes an access; what it races with goes to `found`.
    #[inline]
    fn access(&mut self, who: &Who<'_>, mark: Mark, found: &mut Vec<Mark>) {
        if mark.conflicts(&self.write) && !who.knows(&self.write) {
            found.push(self.write);
        }
        if mark.conflicts(&self.other) && !who.knows(&self.other) {
            found.push(self.other);
        }
        if let Some(more) = &self.more {
            found.extend(more.marks.iter().filter(|other| mark.conflicts(other) && !who.knows(other)));
        }
        if mark.how().is_plain_write() {
            return self.write(who, mark);
        }
        if self.other.is_blank() || self.other.stands_for(&mark) && who.knows(&self.other) {
            self.other = mark;
        } else if self.other != mark {
            let marks = &mut self.more.get_or_insert_default().marks;
            marks.retain(|other| !other.stands_for(&mark) || !who.knows(other));
            if marks.last() != Some(&mark) {
                marks.push(mark);
            }
        }
    }

    fn write(&mut self, who: &Who<'_>, mark: Mark) {
        self.write = mark;
        match (who.issue, &self.by) {
            (Some(issue), Some(by)) if Rc::ptr_eq(issue, by) => {}
            (issue, _) => self.by = issue.cloned(),
        }
        // a wait that nothing orders with a put is no race with it, and may be one with what comes later
        let stays = |other: &Mark| !other.is_blank() && !mark.conflicts(other) && !who.knows(other);
        if !stays(&self.other) {
            self.other = Mark::BLANK;
        }
        if let Some(mut more) = self.more.take() {
            more.marks.retain(stays);
            more.release = None;
            self.more = Some(more).filter(|more| !more.marks.is_empty());
        }
    }

    fn marks(&self) -> impl Iterator<Item = &Mark> {
        let more = self.more.iter().flat_map(|more| &more.marks);
        [&self.write, &self.other].into_iter().chain(more)
    }
}

const BLOCK: usize = 1024;
/// Blocks that are made at a time.
const CHUNK: usize = 64;

#[derive(Debug, Default)]
enum Block {
    #[default]
    Untouched,
    Whole(Cell),
    /// Cells of so many bytes, as a power of two; those behind the last were not accessed.
    Split {
        granule: u32,
        cells: Vec<Cell>,
    },
}

impl Block {
    /// The cells of a part of the block, which then has cells fine enough for it.
    #[inline]
    fn cells(&mut self, part: Range<usize>, spare: &mut Vec<Vec<Cell>>) -> &mut [Cell] {
        if let Block::Untouched = self {
            *self = Block::Split { granule: 3, cells: spare.pop().unwrap_or_default() };
        } else if let Block::Whole(cell) = self {
            *self = Block::Split { granule: 3, cells: vec![cell.clone(); BLOCK >> 3] };
        }
        let Block::Split { granule, cells } = self else { unreachable!("it was split") };
        let fits = ((part.start | part.end).trailing_zeros()).min(3);
        if fits < *granule {
            let times = 1 << (*granule - fits);
            *cells = cells.iter().flat_map(|cell| std::iter::repeat_n(cell, times)).cloned().collect();
            *granule = fits;
        }
        let range = part.start >> *granule..part.end >> *granule;
        if cells.len() < range.end {
            cells.resize(range.end, BLANK);
        }
        &mut cells[range]
    }
}

/// One PE's part of an allocation.
#[derive(Debug, Default)]
struct Part {
    chunks: Vec<Vec<Block>>,
}

impl Part {
    fn block(&mut self, number: usize) -> &mut Block {
        let (chunk, index) = (number / CHUNK, number % CHUNK);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, Vec::new);
        }
        let blocks = &mut self.chunks[chunk];
        if blocks.len() <= index {
            blocks.resize_with(index + 1, Block::default);
        }
        &mut blocks[index]
    }
}

/// All memory of all PEs.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// By allocation and PE.
    symmetric: Vec<Vec<Part>>,
    external: BTreeMap<(PeId, AllocId), Part>,
    /// Cells to be used again.
    spare: Vec<Vec<Cell>>,
}

impl Shadow {
    pub(super) fn clear(&mut self) {
        let Shadow { symmetric, external, spare } = self;
        symmetric.drain(..).flatten().for_each(|part| retire(part, spare));
        std::mem::take(external).into_values().for_each(|part| retire(part, spare));
    }

    #[inline]
    fn part(&mut self, pe: PeId, alloc: AllocId) -> (&mut Part, &mut Vec<Vec<Cell>>) {
        if alloc.external().is_some() {
            return (self.external.entry((pe, alloc)).or_default(), &mut self.spare);
        }
        let (alloc, pe) = (alloc.0 as usize, pe.index());
        if self.symmetric.len() <= alloc {
            self.symmetric.resize_with(alloc + 1, Vec::new);
        }
        let parts = &mut self.symmetric[alloc];
        if parts.len() <= pe {
            parts.resize_with(pe + 1, Part::default);
        }
        (&mut parts[pe], &mut self.spare)
    }

    /// Notes an access; `found` gets each mark that it races with, and the bytes of both.
    #[inline]
    pub(super) fn access(&mut self, who: &Who<'_>, span: Span, mark: Mark, mut found: impl FnMut(Mark, Span)) {
        let (part, spare) = self.part(who.pe, span.alloc);
        let (start, end) = (span.start, span.start + span.len);
        let mut races = Vec::new();
        let mut from = start;
        while from < end {
            let number = from / BLOCK;
            let to = end.min((number + 1) * BLOCK);
            let block = part.block(number);
            match block {
                Block::Whole(cell) if to - from == BLOCK => cell.access(who, mark, &mut races),
                Block::Untouched if to - from == BLOCK => {
                    let mut cell = BLANK;
                    cell.access(who, mark, &mut races);
                    *block = Block::Whole(cell);
                }
                _ => {
                    let cells = block.cells(from % BLOCK..to - number * BLOCK, spare);
                    cells.iter_mut().for_each(|cell| cell.access(who, mark, &mut races));
                    if to - from == BLOCK && mark.how().is_plain_write() {
                        merge(block, spare);
                    }
                }
            }
            for race in races.drain(..) {
                found(race, Span { start: from, len: to - from, ..span });
            }
            from = to;
        }
    }

    /// An atomic update of a word tells those who read it `clock`: in place of what it told before, or besides.
    pub(super) fn release(&mut self, pe: PeId, word: Span, time: u64, clock: &Rc<Clock>, replaces: bool) {
        for cell in self.word(pe, word) {
            let release = &mut cell.more.get_or_insert_default().release;
            match release {
                Some((updated, known)) if !replaces => {
                    *updated = time;
                    Rc::make_mut(known).join(clock);
                }
                _ => *release = Some((time, Rc::clone(clock))),
            }
        }
    }

    /// What reading a word atomically tells, unless everybody knows it (`base`).
    pub(super) fn acquire(&mut self, pe: PeId, word: Span, waits: bool, base: u64) -> Option<Released> {
        let cell = self.word(pe, word).first()?;
        if let Some((time, clock)) = cell.more.as_ref().and_then(|more| more.release.as_ref()) {
            return (*time > base).then(|| Released::Clock(Rc::clone(clock)));
        }
        let delivered = waits && cell.write.how() == How::Deliver && cell.write.time > base;
        let issue = cell.by.as_ref().filter(|_| delivered)?;
        Some(Released::Transfer(cell.write, Rc::clone(issue)))
    }

    fn word(&mut self, pe: PeId, word: Span) -> &mut [Cell] {
        let (part, spare) = self.part(pe, word.alloc);
        let start = word.start % BLOCK;
        part.block(word.start / BLOCK).cells(start..start + word.len, spare)
    }

    /// Every access to an allocation that can still be part of a race, with its PE and bytes.
    pub(super) fn each(&self, alloc: AllocId, mut f: impl FnMut(PeId, Span, &Mark)) {
        for (pe, part) in self.symmetric.get(alloc.0 as usize).into_iter().flatten().enumerate() {
            for (number, block) in (part.chunks.iter().enumerate())
                .flat_map(|(chunk, blocks)| blocks.iter().enumerate().map(move |(i, block)| (chunk * CHUNK + i, block)))
            {
                let (cells, size): (&[Cell], usize) = match block {
                    Block::Untouched => continue,
                    Block::Whole(cell) => (std::slice::from_ref(cell), BLOCK),
                    Block::Split { granule, cells } => (cells, 1 << granule),
                };
                for (index, cell) in cells.iter().enumerate() {
                    let span = Span { alloc, start: number * BLOCK + index * size, len: size };
                    cell.marks().filter(|mark| !mark.is_blank()).for_each(|mark| f(PeId::new(pe), span, mark));
                }
            }
        }
    }
}

/// A block that one write has covered needs one cell.
fn merge(block: &mut Block, spare: &mut Vec<Vec<Cell>>) {
    if let Block::Split { cells, .. } = std::mem::take(block) {
        *block = Block::Whole(cells[0].clone());
        keep(cells, spare);
    }
}

fn retire(part: Part, spare: &mut Vec<Vec<Cell>>) {
    for block in part.chunks.into_iter().flatten() {
        if let Block::Split { cells, .. } = block {
            keep(cells, spare);
        }
    }
}

fn keep(mut cells: Vec<Cell>, spare: &mut Vec<Vec<Cell>>) {
    if spare.len() < 64 {
        cells.clear();
        spare.push(cells);
    }
}
