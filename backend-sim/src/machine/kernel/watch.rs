//! Threads that poll, in a tracked run: the next poll depends on all that a thread has read when it was parked, and on what has changed it.
//!
//! Each thread has a watch of its own. Threads of a block poll beside each other, and a change wakes only those that read it. With one
//! watch for all of them, the first that looked would have taken the changes along, and nobody would know why the others look.

use std::collections::BTreeMap;

use onesided::backend::Span;
use onesided_ptx::Block;

use super::super::ids::{BlockId, PeId};
use super::super::{Machine, Touch};
use super::address;

/// Memory of a PE.
type Spot = (PeId, Span);

/// What the threads of a block poll, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Watches {
    of: BTreeMap<usize, Watch>,
    /// All changes of others since the block began, and their steps.
    all: Vec<(Spot, usize)>,
}

/// What a thread polled when it was parked.
#[derive(Debug, Default)]
struct Watch {
    reads: Vec<Spot>,
    /// Steps that changed some of it since then.
    changes: Vec<usize>,
}

impl Watch {
    fn is_read(&self, (pe, span): Spot) -> bool {
        self.reads.iter().any(|(of, read)| *of == pe && read.overlaps(&span))
    }
}

fn spots(reads: &[(u64, u8)]) -> impl Iterator<Item = Spot> {
    reads.iter().filter_map(|&(address, bytes)| address::place(address, bytes.into()))
}

impl Watches {
    /// A poll of a thread is made again, because something was changed since it was begun. Since then, others have made so many changes.
    pub(super) fn begin_behind(&mut self, thread: usize, reads: &[(u64, u8)], changes: u64) {
        let mut watch = Watch { reads: spots(reads).collect(), changes: Vec::new() };
        let begin = self.all.len().saturating_sub(changes as usize);
        let read = self.all[begin..].iter().filter(|(at, _)| watch.is_read(*at));
        watch.changes = read.map(|(_, step)| *step).collect();
        self.of.insert(thread, watch);
    }

    /// A turn of the block is over. What a change has woken may not have looked yet: it depends on that change still.
    pub(super) fn parked(&mut self, block: &Block) {
        for (thread, reads) in block.parked() {
            let watch = self.of.entry(thread).or_default();
            if watch.changes.is_empty() {
                watch.reads.clear();
            }
            for spot in spots(reads) {
                if !watch.reads.contains(&spot) {
                    watch.reads.push(spot);
                }
            }
        }
    }

    /// Memory has changed in a step, of others or of the block's own.
    pub(super) fn changed(&mut self, at: Spot, (step, of_others): (usize, bool)) {
        if of_others {
            self.all.push((at, step));
        }
        self.of.values_mut().filter(|watch| watch.is_read(at)).for_each(|watch| watch.changes.push(step));
    }

    /// At a thread's first access to something that it has polled, and that has changed since then: what it was.
    fn polls(&mut self, thread: usize, at: Spot) -> Option<Watch> {
        let watch = self.of.get_mut(&thread)?;
        (watch.is_read(at) && !watch.changes.is_empty()).then(|| std::mem::take(watch))
    }
}

impl Machine {
    /// In a tracked run: a step that looks at what its thread has polled in vain depends on all of that, and on what has changed it.
    pub(in crate::machine) fn depend_on_polled(&mut self, id: BlockId, thread: usize, at: Spot) {
        if self.mode.tracking
            && self.noting
            && let Some(Watch { reads, changes }) = self.kernels.blocks[id].watches.polls(thread, at)
        {
            reads.into_iter().for_each(|(pe, read)| self.touch_memory(pe, read, Touch::Read));
            self.step.enabled_by.extend(changes);
        }
    }
}
