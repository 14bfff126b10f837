//! One thread: its registers, its stack, and what it waits for.

use super::cycle::Watch;
use super::spin::Spin;
use std::sync::Arc;

use crate::bytes;
use crate::module::{Module, Place};
use crate::op::{CallSite, Code, Reg, Slot, Warp};
use crate::tensor::TensorMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// The callers.
    pub(super) frames: Vec<Frame>,
    /// The running frame.
    pub(super) frame: Frame,
    /// Parameters, results and slots of calls, of all frames.
    pub(super) slots: Vec<u8>,
    /// Local memory of all frames.
    pub(super) local: Vec<u8>,
    pub(super) carry: bool,
    /// How many bytes of a bulk copy are copied, or how many copies a multicast access has reached. It is kept because the thread may be stopped in between.
    pub(super) copied: u64,
    /// The bulk copy that it makes, within which it was stopped.
    pub(super) copy: Option<usize>,
    /// The tensor of which it copies a tile, within which it was stopped.
    pub(super) tensor: Option<Box<TensorMap>>,
    /// What a multicast load has read so far.
    pub(super) reduced: u64,
    pub(super) state: State,
    pub(super) spin: Spin,
}

/// Where a function runs, and where its part of the thread's registers and memory begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) code: u16,
    pub(super) pc: u32,
    pub(super) registers: u32,
    pub(super) slots: u32,
    pub(super) local: u32,
    /// The call of the caller that led here.
    pub(super) call: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Ready,
    Exited,
    Barrier {
        number: usize,
        place: Place,
        d: Reg,
    },
    Warp(Together),
    Call {
        external: u16,
        call: u16,
        place: Place,
        issued: bool,
    },
    Parked {
        /// What ends it.
        watch: Arc<Watch>,
        /// What it reads of that itself.
        reads: Vec<(u64, u8)>,
        place: Place,
    },
    /// At an access or fence that was announced, until the world lets it go on.
    Stopped {
        place: Place,
    },
    /// It has gone wrong, and does nothing any more.
    Failed {
        place: Place,
    },
}

/// What a thread brings to what its warp does together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Together {
    pub(super) kind: Warp,
    pub(super) mask: u32,
    pub(super) values: [u64; 3],
    pub(super) d: Reg,
    pub(super) q: Reg,
    pub(super) place: Place,
}

impl Together {
    /// Whether two threads take part in the same operation. With matrices they must be at the same instruction.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        let same_place = self.place == other.place || !matches!(self.kind, Warp::Matrix(_) | Warp::Group(_));
        same_place && self.kind == other.kind && self.mask == other.mask
    }
}

impl Thread {
    /// It is to begin a kernel, and keeps the allocations that it has from another one.
    pub(super) fn reset(&mut self, index: u16, code: &Code) {
        self.frames.clear();
        self.frame = Frame { code: index, ..Frame::default() };
        self.slots.clear();
        self.slots.resize(code.slots as usize, 0);
        self.local.clear();
        self.local.resize(code.local as usize, 0);
        self.carry = false;
        (self.copied, self.copy, self.tensor, self.reduced) = (0, None, None, 0);
        self.state = State::Ready;
        self.spin.reset();
    }

    /// Returns from a function: the result goes into the caller's slot, and the caller goes on. A thread without a caller ends.
    pub(super) fn leave(&mut self, module: &Module) {
        let Some(caller) = self.frames.pop() else {
            self.state = State::Exited;
            return;
        };
        let result = module.code[usize::from(caller.code)].calls[usize::from(self.frame.call)].result;
        if let (Some(from), Some(to)) = (module.code[usize::from(self.frame.code)].result, result) {
            let from = (self.frame.slots + from.offset) as usize;
            self.slots.copy_within(from..from + to.size as usize, (caller.slots + to.offset) as usize);
        }
        self.slots.truncate(self.frame.slots as usize);
        self.leaves_own(self.frame.local as usize);
        self.local.truncate(self.frame.local as usize);
        self.frame = caller;
        self.frame.pc += 1;
    }

    /// A call has this result, of which the low bytes are taken.
    pub(super) fn take_result(&mut self, call: &CallSite, value: u64) {
        if let Some(Slot { offset, size }) = call.result {
            let begin = (self.frame.slots + offset) as usize;
            if let 1 | 2 | 4 | 8 = size {
                bytes::put(&mut self.slots, begin, size as u8, value);
                return;
            }
            let bytes = &mut self.slots[begin..begin + size as usize];
            bytes.fill(0);
            let size = bytes.len().min(8);
            bytes[..size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }

    /// The bytes of a call's arguments, one argument after the other.
    pub(super) fn arguments<'a>(&'a self, call: &'a CallSite) -> impl Iterator<Item = &'a [u8]> {
        call.arguments.iter().map(|slot| self.slot(*slot))
    }

    /// The bytes of a slot of the running frame.
    #[inline(always)]
    pub(super) fn slot(&self, slot: Slot) -> &[u8] {
        let begin = (self.frame.slots + slot.offset) as usize;
        &self.slots[begin..begin + slot.size as usize]
    }

    pub(super) fn is_live(&self) -> bool {
        self.state != State::Exited
    }
}
