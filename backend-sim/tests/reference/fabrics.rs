//! Two fabrics: PEs 0 and 1 are a node, PEs 2 and 3 another, and a PE is read on a path from its own node and on one from the other.
//!
//! Each word has, for each path, the values that its readers still have to pass before they see what is in memory. What arrives on one
//! path leaves such a value behind on the other, and is seen at once on its own. A word's readers pass one value at a time, whenever they
//! like. They pass all of them when the PE synchronizes: when something arrives that it has issued, or when it enters a collective.

use std::collections::BTreeSet;

use super::plan::{Plan, Task};
use super::program::{Op, Program};
use super::races::Access;
use super::state::{State, Step};

/// PEs of a node, where there are two.
const NODE: usize = 2;

/// A word of a PE on a path: whether that comes from the other node, and the word in the memory of all PEs.
pub(crate) type OnPath = (bool, usize);

/// The nodes that a program's PEs are on, where there is more than one fabric.
pub(crate) fn nodes(pes: usize) -> usize {
    if pes == 2 * NODE { 2 } else { 1 }
}

/// Where a program's PEs read each other's words: what others leave behind elsewhere, nobody sees.
pub(crate) fn read_on_paths(program: &Program) -> BTreeSet<OnPath> {
    let mut read = BTreeSet::new();
    for (me, call) in program.hosts.iter().enumerate().flat_map(|(me, calls)| calls.iter().map(move |call| (me, call)))
    {
        let (of, first, step, count) = match call.op {
            Op::G { from, src } => (from, src, 1, 1),
            Op::Get { from, src, len, .. } => (from, src, 1, len),
            Op::IGet { from, src, strides, count, .. } => (from, src, strides.1, count),
            Op::PeerLoad { of, src, len } => (of, src, 1, len),
            _ => continue,
        };
        if of != me && nodes(program.pes()) > 1 {
            read.extend((0..count).map(|i| (is_far(me, of), of * program.words + first + i * step)));
        }
    }
    read
}

fn is_far(from: usize, to: usize) -> bool {
    from / NODE != to / NODE
}

impl Plan {
    /// The path on which a PE reads a word, where there are two.
    pub(crate) fn path(&self, reader: usize, word: usize) -> Option<bool> {
        let pe = word / self.cells;
        (!self.rules.one_fabric && reader != pe).then(|| is_far(reader, pe))
    }

    /// What a PE finds in a word.
    pub(crate) fn found(&self, state: &State, reader: usize, word: usize) -> u64 {
        let path = (is_far(reader, word / self.cells), word);
        let older = state.older.get(&path).filter(|_| reader != word / self.cells);
        older.map_or(state.memory[word], |older| older[0])
    }

    /// A PE's transfer changes a word.
    pub(crate) fn arrive(&self, state: &mut State, writer: usize, word: usize, value: u64) {
        let pe = word / self.cells;
        if !self.rules.one_fabric && writer != pe {
            let far = is_far(writer, pe);
            state.older.remove(&(far, word));
            if self.read_on_paths.contains(&(!far, word)) {
                state.older.entry((!far, word)).or_default().push(state.memory[word]);
            }
        }
        state.memory[word] = value;
    }

    /// A PE synchronizes with others: they see what has arrived there.
    pub(crate) fn synchronize(&self, state: &mut State, pe: usize) {
        state.older.retain(|(_, word), _| *word / self.cells != pe);
    }

    /// Readers pass an older value.
    pub(crate) fn pass(&self, state: &State, next: &mut Vec<Step>) {
        for path in state.older.keys() {
            let mut state = state.clone();
            let older = state.older.get_mut(path).expect("it is a key");
            older.remove(0);
            if older.is_empty() {
                state.older.remove(path);
            }
            next.push(Step { to: state, accesses: Access::pass(*path) });
        }
    }

    /// Whether entering synchronizes, which all but tasks that promise nothing do.
    pub(crate) fn enters(&self, state: &mut State, agent: usize, task: &Task) {
        if matches!(task, Task::Enter { .. }) {
            self.synchronize(state, self.agents[agent].pe);
        }
    }
}
