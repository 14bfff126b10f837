//! Shadow memory: for every byte that was accessed, the last write and the accesses since that are not ordered among each other.
//!
//! Memory is divided into chunks of 64 KiB, and these into blocks of 1 KiB. A chunk or block that was only accessed as a whole has
//! one [cell](super::cell). Any other block has a cell for each granule of 8 bytes, or of 4, 2 or 1 where an access is finer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use onesided::backend::{AllocId, Span};

use super::cell::{BLANK, Cell};
use super::clock::Clock;
use super::how::How;
use super::words::Tells;
use super::{Issue, Mark, Ticket, Who};
use crate::machine::{Id as _, PeId};

/// What reading a word atomically tells.
pub(super) enum Released {
    /// What its updates have told.
    Told(Tells),
    /// It was written by a transfer, which is this mark's.
    Transfer(Mark, Rc<Issue>),
}

const BLOCK: usize = 1024;
/// Blocks of a chunk.
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
        let fits = ((part.start | part.end).trailing_zeros()).min(3);
        self.cells_of(fits, part, spare)
    }

    /// The cells of a part of the block, of at most so many bytes each, as a power of two.
    #[inline]
    fn cells_of(&mut self, fits: u32, part: Range<usize>, spare: &mut Vec<Vec<Cell>>) -> &mut [Cell] {
        if let Block::Untouched = self {
            *self = Block::Split { granule: 3, cells: spare.pop().unwrap_or_default() };
        } else if let Block::Whole(cell) = self {
            *self = Block::Split { granule: 3, cells: vec![cell.clone(); BLOCK >> 3] };
        }
        let Block::Split { granule, cells } = self else { unreachable!("it was split") };
        if fits < *granule {
            let times = 1 << (*granule - fits);
            let mut finer = spare.pop().unwrap_or_default();
            finer.reserve_exact(BLOCK >> fits);
            for cell in cells.drain(..) {
                (1..times).for_each(|_| finer.push(cell.clone()));
                finer.push(cell);
            }
            keep(std::mem::replace(cells, finer), spare);
            *granule = fits;
        }
        let range = part.start >> *granule..part.end >> *granule;
        if cells.len() < range.end {
            if range.len() > 1 {
                cells.reserve_exact((BLOCK >> *granule) - cells.len()); // the rest is likely to follow
            }
            cells.resize_with(range.end, || BLANK); // quicker than clones
        }
        &mut cells[range]
    }
}

/// 64 KiB: a cell for all of it, or its blocks.
#[derive(Debug, Default)]
enum Chunk {
    #[default]
    Untouched,
    Whole(Cell),
    /// Those behind the last were not accessed.
    Blocks(Vec<Block>),
}

const CHUNK_BYTES: usize = CHUNK * BLOCK;

impl Chunk {
    /// One of its blocks.
    #[inline]
    fn block(&mut self, number: usize) -> &mut Block {
        if let Chunk::Blocks(blocks) = self
            && number < blocks.len()
        {
            let Chunk::Blocks(blocks) = self else { unreachable!("it has blocks") };
            return &mut blocks[number];
        }
        self.divide(number)
    }

    fn divide(&mut self, number: usize) -> &mut Block {
        match self {
            Chunk::Blocks(_) => {}
            Chunk::Untouched => *self = Chunk::Blocks(Vec::new()),
            Chunk::Whole(cell) => {
                let whole = std::iter::repeat_with(|| Block::Whole(cell.clone())).take(CHUNK);
                *self = Chunk::Blocks(whole.collect());
            }
        }
        let Chunk::Blocks(blocks) = self else { unreachable!("it was divided") };
        if blocks.len() <= number {
            blocks.resize_with(number + 1, Block::default);
        }
        &mut blocks[number]
    }
}

/// One PE's part of an allocation.
#[derive(Debug, Default)]
struct Part {
    chunks: Vec<Chunk>,
}

impl Part {
    #[inline]
    fn chunk(&mut self, number: usize) -> &mut Chunk {
        if self.chunks.len() <= number {
            self.chunks.resize_with(number + 1, Chunk::default);
        }
        &mut self.chunks[number]
    }

    #[inline]
    fn block(&mut self, number: usize) -> &mut Block {
        self.chunk(number / CHUNK).block(number % CHUNK)
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

    /// Notes an access; `found` gets each mark that it races with, its own, and the bytes of both.
    pub(super) fn access(&mut self, who: &Who<'_>, span: Span, mark: Mark, mut found: impl FnMut(Mark, Mark, Span)) {
        match self.cell(who.pe, span) {
            Some(cell) => cell.access(who, mark, |race, mark| found(race, mark, span)),
            None => self.access_chunks(who, span, mark, &mut found),
        }
    }

    /// Notes an access to a word, if it plainly races with nothing. `issue`: that of its transfer, if it is one's.
    #[inline(always)] // on the hottest path
    pub(super) fn access_known(
        &mut self,
        pe: PeId,
        span: Span,
        mark: Mark,
        issue: Option<&Rc<Issue>>,
        base: u64,
    ) -> bool {
        self.cell(pe, span).is_some_and(|cell| cell.access_known(mark, issue, pe, base))
    }

    /// Notes accesses of threads to words that lie one behind the other, as far as they plainly race with nothing, each by its own
    /// mark. `unknown` gets the others. Whether it was done: the words may have no cells of their own.
    #[inline]
    pub(super) fn access_words(
        &mut self,
        pe: PeId,
        words: Span,
        base: u64,
        marks: &[Mark],
        mut unknown: impl FnMut(usize),
    ) -> bool {
        let Some(cells) = self.cells_of_words(pe, words, words.len / marks.len()) else { return false };
        for (index, (cell, &mark)) in cells.iter_mut().zip(marks).enumerate() {
            if !cell.access_known(mark, None, pe, base) {
                unknown(index);
            }
        }
        true
    }

    /// The cells of words of one block, if each has one.
    #[inline]
    fn cells_of_words(&mut self, pe: PeId, words: Span, size: usize) -> Option<&mut [Cell]> {
        let begin = words.start % BLOCK;
        let part = begin..begin + words.len;
        if part.end > BLOCK || begin & (size - 1) != 0 {
            return None;
        }
        let (memory, spare) = self.part(pe, words.alloc);
        let cells = memory.block(words.start / BLOCK).cells_of(size.trailing_zeros(), part, spare);
        (cells.len() * size == words.len).then_some(cells)
    }

    /// The cell of just these bytes, if there is one: most accesses are to a word that has been accessed before.
    #[inline(always)] // on the hottest path
    fn cell(&mut self, pe: PeId, span: Span) -> Option<&mut Cell> {
        let part = self.symmetric.get_mut(span.alloc.0 as usize)?.get_mut(pe.index())?;
        let Chunk::Blocks(blocks) = part.chunks.get_mut(span.start / CHUNK_BYTES)? else { return None };
        let Block::Split { granule, cells } = blocks.get_mut(span.start / BLOCK % CHUNK)? else { return None };
        let is_one = span.len == 1 << *granule && span.start & (span.len - 1) == 0;
        cells.get_mut((span.start % BLOCK) >> *granule).filter(|_| is_one)
    }

    #[inline(never)]
    fn access_chunks(&mut self, who: &Who<'_>, span: Span, mark: Mark, found: &mut dyn FnMut(Mark, Mark, Span)) {
        let (part, spare) = self.part(who.pe, span.alloc);
        let end = span.start + span.len;
        let mut from = span.start;
        while from < end {
            let number = from / CHUNK_BYTES;
            let to = end.min((number + 1) * CHUNK_BYTES);
            let chunk = part.chunk(number);
            let here = Span { start: from, len: to - from, ..span };
            match chunk {
                Chunk::Whole(cell) if to - from == CHUNK_BYTES => {
                    cell.access(who, mark, |race, mark| found(race, mark, here))
                }
                Chunk::Untouched if to - from == CHUNK_BYTES => {
                    let mut cell = BLANK;
                    cell.access(who, mark, |race, mark| found(race, mark, here));
                    *chunk = Chunk::Whole(cell);
                }
                _ => {
                    access_blocks(chunk, spare, who, here, mark, found);
                    if to - from == CHUNK_BYTES && mark.how().is_plain_write() {
                        merge_chunk(chunk, spare);
                    }
                }
            }
            from = to;
        }
    }

    /// An atomic update of a word tells those who read it this: in place of what it told before, or besides. `tell` adds what is
    /// known with an arrival.
    pub(super) fn release(
        &mut self,
        pe: PeId,
        word: Span,
        (time, tells): (u64, &Tells),
        replaces: bool,
        tell: impl Fn(&Ticket, &mut Clock),
    ) {
        self.for_each_cell(pe, word, |cell| {
            let release = &mut cell.more.get_or_insert_default().release;
            let tells = match release.take() {
                Some((_, before)) if !replaces => tells.besides(before, &tell),
                _ => tells.clone(),
            };
            *release = Some((time, tells));
        });
    }

    /// What reading a word atomically tells, unless everybody knows it (`base`).
    pub(super) fn acquire(&self, pe: PeId, word: Span, waits: bool, base: u64) -> Option<Released> {
        let cell = self.first(pe, word)?;
        if let Some((time, tells)) = cell.release() {
            return (*time > base).then(|| Released::Told(tells.clone()));
        }
        let delivered = waits && cell.write.how() == How::Deliver && cell.write.time > base;
        let issue = cell.by.as_ref().filter(|_| delivered)?;
        Some(Released::Transfer(cell.write, Rc::clone(issue)))
    }

    /// What a word tells since its last plain write, and when it was last updated.
    pub(super) fn released(&self, pe: PeId, word: Span) -> Option<&(u64, Tells)> {
        self.first(pe, word)?.release()
    }

    /// The last plain write of a word.
    pub(super) fn last_write(&self, pe: PeId, word: Span) -> Option<&Mark> {
        self.first(pe, word).map(|cell| &cell.write).filter(|write| !write.is_blank())
    }

    /// Writes to a word that somebody does not know: the last plain one, then updates.
    pub(super) fn unknown_writes(&self, who: &Who<'_>, word: Span) -> Vec<Mark> {
        let Some(cell) = self.first(who.pe, word) else { return Vec::new() };
        let seen = cell.was_seen(who).then_some(cell.write);
        let unknown = |mark: &&Mark| {
            !mark.is_blank() && mark.how().writes() && !who.knows(mark) && seen.is_none_or(|seen| seen != **mark)
        };
        cell.marks().filter(unknown).copied().collect()
    }

    /// Calls `f` with the writes to a word that can still be part of a race: the last plain one of each cell, and updates since.
    pub(super) fn writes(&self, pe: PeId, word: Span, mut f: impl FnMut(&Cell, &Mark)) {
        let mut before: Option<&Cell> = None;
        for start in word.start..word.start + word.len {
            let Some(cell) = self.first(pe, Span { start, len: 1, ..word }) else { continue };
            if before.is_none_or(|before| !std::ptr::eq(before, cell)) {
                cell.marks().filter(|mark| !mark.is_blank() && mark.how().writes()).for_each(|mark| f(cell, mark));
            }
            before = Some(cell);
        }
    }

    /// A wait has ended by what was last written to a word.
    pub(super) fn seen(&mut self, pe: PeId, word: Span, wait: Mark) {
        self.for_each_cell(pe, word, |cell| {
            let seen = &mut cell.more.get_or_insert_default().seen;
            if seen.iter().all(|earlier| earlier.agent() != wait.agent()) {
                seen.push(wait); // whoever comes after a later one comes after this
            }
        });
    }

    /// The cell of a word's first byte, if it was accessed.
    fn first(&self, pe: PeId, word: Span) -> Option<&Cell> {
        let part = match word.alloc.external() {
            Some(_) => self.external.get(&(pe, word.alloc))?,
            None => self.symmetric.get(word.alloc.0 as usize)?.get(pe.index())?,
        };
        let block = match part.chunks.get(word.start / CHUNK_BYTES)? {
            Chunk::Untouched => return None,
            Chunk::Whole(cell) => return Some(cell),
            Chunk::Blocks(blocks) => blocks.get(word.start / BLOCK % CHUNK)?,
        };
        match block {
            Block::Untouched => None,
            Block::Whole(cell) => Some(cell),
            Block::Split { granule, cells } => cells.get((word.start % BLOCK) >> granule),
        }
    }

    /// Calls `f` with each cell of a word.
    fn for_each_cell(&mut self, pe: PeId, word: Span, mut f: impl FnMut(&mut Cell)) {
        if let Some(cell) = self.cell(pe, word) {
            return f(cell);
        }
        let (part, spare) = self.part(pe, word.alloc);
        let start = word.start % BLOCK;
        part.block(word.start / BLOCK).cells(start..start + word.len, spare).iter_mut().for_each(f);
    }

    /// An allocation has ended: nobody accesses it any more.
    pub(super) fn forget(&mut self, alloc: AllocId) {
        let Shadow { symmetric, spare, .. } = self;
        let parts = symmetric.get_mut(alloc.0 as usize).map(std::mem::take);
        parts.into_iter().flatten().for_each(|part| retire(part, spare));
    }

    /// Every access to an allocation that can still be part of a race, with its PE, bytes and cell.
    pub(super) fn each(&self, alloc: AllocId, mut f: impl FnMut(PeId, Span, (&Cell, &Mark))) {
        let symmetric = self.symmetric.get(alloc.0 as usize).into_iter().flatten().enumerate();
        let symmetric = symmetric.map(|(pe, part)| (PeId::new(pe), part));
        let external = self.external.iter().filter(|((_, of), _)| *of == alloc).map(|((pe, _), part)| (*pe, part));
        for (pe, part) in symmetric.chain(external) {
            let mut each = |start: usize, size: usize, cells: &[Cell]| {
                for (index, cell) in cells.iter().enumerate() {
                    let span = Span { alloc, start: start + index * size, len: size };
                    cell.marks().filter(|mark| !mark.is_blank()).for_each(|mark| f(pe, span, (cell, mark)));
                }
            };
            for (number, chunk) in part.chunks.iter().enumerate() {
                let start = number * CHUNK_BYTES;
                match chunk {
                    Chunk::Untouched => {}
                    Chunk::Whole(cell) => each(start, CHUNK_BYTES, std::slice::from_ref(cell)),
                    Chunk::Blocks(blocks) => {
                        for (number, block) in blocks.iter().enumerate() {
                            let start = start + number * BLOCK;
                            match block {
                                Block::Untouched => {}
                                Block::Whole(cell) => each(start, BLOCK, std::slice::from_ref(cell)),
                                Block::Split { granule, cells } => each(start, 1 << granule, cells),
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Notes an access to some blocks of a chunk.
#[inline]
fn access_blocks(
    chunk: &mut Chunk,
    spare: &mut Vec<Vec<Cell>>,
    who: &Who<'_>,
    span: Span,
    mark: Mark,
    found: &mut dyn FnMut(Mark, Mark, Span),
) {
    let end = span.start + span.len;
    let mut from = span.start;
    while from < end {
        let number = from / BLOCK;
        let to = end.min((number + 1) * BLOCK);
        let block = chunk.block(number % CHUNK);
        let here = Span { start: from, len: to - from, ..span };
        match block {
            Block::Whole(cell) if to - from == BLOCK => cell.access(who, mark, |race, mark| found(race, mark, here)),
            Block::Untouched if to - from == BLOCK => {
                let mut cell = BLANK;
                cell.access(who, mark, |race, mark| found(race, mark, here));
                *block = Block::Whole(cell);
            }
            _ => {
                let cells = block.cells(from % BLOCK..to - number * BLOCK, spare);
                cells.iter_mut().for_each(|cell| cell.access(who, mark, |race, mark| found(race, mark, here)));
                if to - from == BLOCK && mark.how().is_plain_write() {
                    merge(block, spare);
                }
            }
        }
        from = to;
    }
}

/// A chunk that one write has covered needs one cell, if nothing else is kept of any part.
fn merge_chunk(chunk: &mut Chunk, spare: &mut Vec<Vec<Cell>>) {
    let Chunk::Blocks(blocks) = chunk else { unreachable!("it has blocks") };
    if !blocks.iter().all(|block| matches!(block, Block::Whole(cell) if cell.is_written_only())) {
        return;
    }
    if let Some(Block::Whole(cell)) = blocks.pop() {
        let Chunk::Blocks(blocks) = std::mem::replace(chunk, Chunk::Whole(cell)) else { unreachable!("it had blocks") };
        blocks.into_iter().for_each(|block| retire_block(block, spare));
    }
}

/// A block that one write has covered needs one cell, if nothing else is kept of any part.
fn merge(block: &mut Block, spare: &mut Vec<Vec<Cell>>) {
    if let Block::Split { cells, .. } = block
        && cells.iter().all(Cell::is_written_only)
    {
        let whole = Block::Whole(cells[0].clone());
        if let Block::Split { cells, .. } = std::mem::replace(block, whole) {
            keep(cells, spare);
        }
    }
}

fn retire(part: Part, spare: &mut Vec<Vec<Cell>>) {
    for chunk in part.chunks {
        if let Chunk::Blocks(blocks) = chunk {
            blocks.into_iter().for_each(|block| retire_block(block, spare));
        }
    }
}

fn retire_block(block: Block, spare: &mut Vec<Vec<Cell>>) {
    if let Block::Split { cells, .. } = block {
        keep(cells, spare);
    }
}

fn keep(mut cells: Vec<Cell>, spare: &mut Vec<Vec<Cell>>) {
    if spare.len() < 64 {
        cells.clear();
        spare.push(cells);
    }
}
