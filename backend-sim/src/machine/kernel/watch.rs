//! Threads that poll, in a tracked run: the next poll depends on all that a thread has read when it was parked, and on what has changed it.
//!
//! Each thread has a watch of its own. Threads of a block poll beside each other, and a change wakes only those that read it. With one
//! watch for all of them, the first that looked would have taken the changes along, and nobody would know why the others look.

use std::collections::BTreeMap;

use onesided_ptx::Block;

use super::super::access::BlockName;
use super::super::ids::BlockId;
use super::super::{Machine, Object, Touch};
use super::address;
use super::grid::Workspaces;

/// What the threads of a block poll, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Watches {
    of: BTreeMap<usize, Watch>,
    /// All changes since the block began, and their steps.
    all: Vec<(Object, usize)>,
}

/// What a thread polled when it was parked.
#[derive(Debug, Default)]
struct Watch {
    reads: Vec<Object>,
    /// Steps that changed some of it since then.
    changes: Vec<usize>,
}

impl Watch {
    fn is_read(&self, object: &Object) -> bool {
        self.reads.iter().any(|read| read.overlaps(object))
    }
}

impl Watches {
    /// A thread polls again, because something that it has read was changed. `reads`: each object, with the first step whose changes count.
    pub(super) fn begin_behind(&mut self, thread: usize, reads: Vec<(Object, usize)>) {
        let mut watch = Watch::default();
        for (object, since) in reads {
            let begin = self.all.partition_point(|(_, step)| *step < since);
            let changes = self.all[begin..].iter().filter(|(at, _)| object.overlaps(at));
            watch.changes.extend(changes.map(|(_, step)| *step));
            if !watch.reads.contains(&object) {
                watch.reads.push(object);
            }
        }
        watch.changes.sort_unstable();
        watch.changes.dedup();
        self.of.insert(thread, watch);
    }

    /// A turn of the block is over. What a change has woken may not have looked yet: it depends on that change still.
    pub(super) fn parked(&mut self, name: BlockName, block: &Block, workspaces: &Workspaces) {
        for (thread, reads) in block.parked() {
            let watch = self.of.entry(thread).or_default();
            if watch.changes.is_empty() {
                watch.reads.clear();
            }
            for object in objects(name, reads, workspaces) {
                if !watch.reads.contains(&object) {
                    watch.reads.push(object);
                }
            }
        }
    }

    /// Memory has changed in a step.
    pub(super) fn changed(&mut self, at: Object, step: usize) {
        self.all.push((at, step));
        self.of.values_mut().filter(|watch| watch.is_read(&at)).for_each(|watch| watch.changes.push(step));
    }

    /// Whether an access polls nothing again. It does if the thread has polled this object, and something in its watch has changed since. Otherwise the
    /// watch ends here.
    pub(super) fn is_over(&mut self, thread: usize, at: &Object) -> bool {
        match self.of.get_mut(&thread) {
            Some(watch) if watch.is_read(at) && !watch.changes.is_empty() => false,
            Some(watch) => {
                *watch = Watch::default();
                true
            }
            None => true,
        }
    }

    /// At a thread's first access to an object that it has polled, if something in its watch has changed since: takes the watch.
    fn polls(&mut self, thread: usize, at: &Object) -> Option<Watch> {
        let watch = self.of.get_mut(&thread)?;
        (watch.is_read(at) && !watch.changes.is_empty()).then(|| std::mem::take(watch))
    }
}

/// What was read at these addresses, of global memory and of the block's shared memory. Without the words by which grids
/// synchronize: these are not polled in steps.
pub(super) fn objects(block: BlockName, reads: &[(u64, u8)], workspaces: &Workspaces) -> impl Iterator<Item = Object> {
    reads.iter().filter_map(move |&(address, bytes)| match address::place(address, bytes.into()) {
        Some((pe, span)) if workspaces.has(pe, span.alloc) => None,
        Some((pe, span)) => Some(Object::memory(pe, span)),
        None => Object::shared(block, address, bytes),
    })
}

impl Machine {
    /// In a tracked run: a step that looks at what its thread has polled in vain depends on all of that, and on what has changed it.
    pub(in crate::machine) fn depend_on_polled(&mut self, id: BlockId, thread: usize, at: &Object) {
        if self.mode.needs.tracking
            && self.in_chosen_step
            && let Some(Watch { reads, changes }) = self.kernels.blocks[id].watches.polls(thread, at)
        {
            reads.into_iter().for_each(|read| self.touch(read, Touch::Read));
            self.step.enabled_by.extend(changes);
        }
    }
}
