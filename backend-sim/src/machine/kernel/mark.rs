//! Marks of kernels: between two of them, what a thread does to global memory is free to race. A thread under a mark is as one whose kernel
//! was launched under [`Pe::intended_race`](onesided::Pe::intended_race); the other accesses of its kernel stay what they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use onesided::backend::Intended;
use onesided_ptx::Place;

use super::super::Machine;
use super::super::ids::BlockId;

/// The marks of a block's threads: for each thread that is under one, what held before each of its marks.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<usize, Vec<Option<Intended>>>);

impl Machine {
    /// A thread comes to a mark, or to the end of the last one.
    pub(super) fn thread_marks(&mut self, id: BlockId, thread: usize, reason: Option<&str>, place: Place) {
        if !self.races.is_on() {
            return;
        }
        self.kernels.has_marks = true;
        let at = self.kernels.blocks[id].launched.code.at(place);
        let mark = reason.map(|reason| Intended { reason: kept(reason), at });
        let agent = self.agent_of_thread(id, thread);
        let marks = &mut self.kernels.blocks[id].marks.0;
        match mark {
            Some(mark) => {
                let before = self.races.intend(agent, Some(mark));
                marks.entry(thread).or_default().push(before);
            }
            None => {
                let Some(before) = marks.get_mut(&thread) else { return };
                self.races.intend(agent, before.pop().flatten());
                if before.is_empty() {
                    marks.remove(&thread);
                }
            }
        }
    }
}

/// A reason, kept as long as the process: a program has few.
fn kept(reason: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match all.get(reason) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(reason.into());
            all.insert(kept);
            kept
        }
    }
}
