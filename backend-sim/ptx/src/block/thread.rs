//! One thread: its registers, its stack, and what it waits for.

use super::spin::{Spin, Watch};
use crate::module::Place;
use crate::op::{Code, Reg, Warp};

#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// The registers of all frames, the running one's last.
    pub(super) registers: Vec<u64>,
    /// The callers.
    pub(super) frames: Vec<Frame>,
    /// The running frame.
    pub(super) frame: Frame,
    /// Parameters, results and slots of calls, of all frames.
    pub(super) slots: Vec<u8>,
    /// Local memory of all frames.
    pub(super) local: Vec<u8>,
    pub(super) carry: bool,
    pub(super) state: State,
    pub(super) spin: Spin,
    /// The last backward branch: of an endless loop, its end and its begin.
    pub(super) last_loop: (u32, u32),
}

/// Where a function runs, and where its part of the thread's memory begins.
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
        arguments: Vec<u8>,
        place: Place,
        issued: bool,
    },
    Parked {
        watch: Watch,
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

impl Thread {
    pub(super) fn new(index: u16, code: &Code) -> Self {
        Self {
            registers: code.registers.clone(),
            frame: Frame { code: index, ..Frame::default() },
            slots: vec![0; code.slots as usize],
            local: vec![0; code.local as usize],
            ..Self::default()
        }
    }

    pub(super) fn set(&mut self, register: Reg, value: u64) {
        let at = self.frame.registers as usize + usize::from(register);
        self.registers[at] = value;
    }

    pub(super) fn is_live(&self) -> bool {
        self.state != State::Exited
    }
}
