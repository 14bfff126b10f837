//! Mbarriers: barriers in shared memory that count arrivals of threads and bytes of copies, phase after phase.
//!
//! A thread that sees the end of a phase comes after what was released at the mbarrier before that end, and not after later releases. So what was released
//! by then is kept when a phase ends.

use super::shared::{By, Strength, Touch};
use super::thread::{Frame, Thread};
use super::{Block, FaultKind, Halt};
use crate::decode::window;
use crate::module::Place;
use crate::op::{MBarrier, Memory, Op};
use crate::types::{Order, Scope, Space};
use crate::world::{Access, AccessKind, World};

/// An mbarrier, as it lies in its 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Arrivals that are missing in this phase.
    pending: u64,
    /// Arrivals that a phase takes.
    expected: u64,
    /// Bytes that are announced and have not come.
    bytes: i64,
    phase: u64,
    /// Whether it was initialized and not invalidated. `expected` does not say so: it is 0 if all participants have dropped out.
    is_valid: bool,
}

/// The most arrivals of a phase, and the most bytes.
const COUNT: u64 = (1 << 20) - 1;
/// The bits of the bytes that are announced and have not come, with a sign.
const BYTES: u64 = (1 << 22) - 1;
const VALID: u64 = 1 << 62;

impl State {
    fn unpack(word: u64) -> Self {
        let bytes = (word >> 40 & BYTES) as i64;
        let bytes = if bytes >> 21 == 1 { bytes - (1 << 22) } else { bytes };
        Self {
            pending: word & COUNT,
            expected: word >> 20 & COUNT,
            bytes,
            phase: word >> 63,
            is_valid: word & VALID != 0,
        }
    }

    fn pack(self) -> u64 {
        self.pending & COUNT
            | (self.expected & COUNT) << 20
            | (self.bytes.cast_unsigned() & BYTES) << 40
            | self.phase << 63
            | if self.is_valid { VALID } else { 0 }
    }

    /// When everything has come, the next phase begins.
    fn settled(mut self) -> Self {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
        self
    }
}

/// `mbarrier.pending_count`: the arrivals that a state says are missing.
pub(crate) fn pending_count(state: u64) -> u64 {
    State::unpack(state).pending
}

/// A phase of an mbarrier that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phase {
    /// The generic address of the mbarrier.
    pub mbarrier: u64,
    /// Whether it is the second phase, the fourth and so on. A phase is over while the next one lasts.
    pub is_odd: bool,
}

/// # Waits
impl Block {
    /// The phase that a thread waits for, if it was stopped at a test of an mbarrier in a loop that does nothing else. `None` if the test is not in such a loop. A failed test leaves
    /// nothing behind, so the world may let the thread go on only when the phase [is over](Self::is_over).
    pub fn awaits(&self, test: &Access) -> Option<Phase> {
        let index = test.thread as usize;
        let Frame { code, registers, .. } = self.threads[index].frame;
        let code = &self.module.code[usize::from(code)];
        let op = test.place.0.checked_sub(code.first_place).filter(|op| code.awaits.contains(op))?;
        let Op::MBarrier { kind: MBarrier::Test { parity }, b, .. } = code.ops[op as usize] else { return None };
        let operand = self.registers[index / 32][registers as usize + usize::from(b)][index % 32];
        Some(Phase { mbarrier: test.address, is_odd: is_odd(operand, parity) })
    }

    /// Whether a phase is over. True also if there is no mbarrier, so that the thread goes on and its test reports that.
    pub fn is_over(&self, phase: Phase) -> bool {
        let state = self.mbarrier_at(phase);
        !state.is_valid || (state.phase == 1) != phase.is_odd
    }

    /// How many arrivals, and bytes of copies, are missing until a phase is over that is not over yet.
    pub fn missing_in(&self, phase: Phase) -> (u64, i64) {
        let state = self.mbarrier_at(phase);
        (state.pending, state.bytes)
    }

    fn mbarrier_at(&self, phase: Phase) -> State {
        State::unpack(self.shared.load((phase.mbarrier % window::SHARED) as usize, 8))
    }

    /// The phase that lasts at the mbarrier at this generic address. `None` if no thread has initialized one there.
    pub fn lasting_phase(&self, mbarrier: u64) -> Option<Phase> {
        let phase = Phase { mbarrier, is_odd: false };
        let is_one = self.mbarriers.contains_key(&mbarrier);
        is_one.then(|| Phase { is_odd: self.mbarrier_at(phase).phase == 1, ..phase })
    }
}

/// Whether a test is about an odd phase. The operand is the parity itself, or a state of the mbarrier in that phase.
fn is_odd(operand: u64, is_parity: bool) -> bool {
    let bit = if is_parity { operand } else { operand >> 63 };
    bit & 1 == 1
}

/// # Operations
impl Block {
    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    pub(super) fn mbarrier(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        (kind, relaxed): (MBarrier, bool),
        (address, operand): (u64, u64),
        in_space: bool,
        place: Place,
    ) -> Result<u64, Halt> {
        let address = self.shared_address(address, in_space, index, place)?;
        if !address.is_multiple_of(8) {
            return Err(self.fault(
                FaultKind::Misaligned,
                index,
                place,
                format!("an mbarrier at {address:#x}, no multiple of 8"),
            ));
        }
        let at = self.shared_range(index, address, 8, place)?;
        let generic = window::SHARED + at as u64;
        let mut access = self.mbarrier_access(index, (kind, relaxed), generic, place);
        if access.order.is_strong() {
            self.announce(world, &access)?;
        }
        // operations on an mbarrier do not race with each other, except its initialization
        let reads = kind != MBarrier::Init;
        let strength = if reads { Strength::Strong } else { Strength::Weak };
        let touch = Touch { reads, strength, ..Touch::write(index, place, By::Thread) };
        self.touch(world, at, 8, touch)?;
        let word = self.shared.load(at, 8);
        let old = State::unpack(word);
        let invalid =
            |block: &Self, message: String| Err(block.fault(FaultKind::InvalidOperand, index, place, message));
        let mut new = old;
        match kind {
            MBarrier::Init => {
                if operand == 0 || operand > COUNT {
                    return invalid(
                        self,
                        format!("an mbarrier for {operand} arrivals; at least 1 and at most {COUNT}"),
                    );
                }
                // where something else was stored since, none is left
                if let Some(&first) = self.mbarriers.get(&generic).filter(|_| old.is_valid) {
                    return Err(self.initialized_twice((index, place), first));
                }
                new = State { pending: operand, expected: operand, bytes: 0, phase: 0, is_valid: true };
            }
            MBarrier::Invalidate => new = State::unpack(0),
            _ if !old.is_valid => return invalid(self, "an mbarrier that is not initialized".into()),
            MBarrier::Arrive { .. } | MBarrier::ArriveDrop { .. } if operand == 0 => {
                return invalid(self, "an arrival at an mbarrier that counts for none; at least one".into());
            }
            MBarrier::ExpectTx | MBarrier::ArriveExpectTx if operand > COUNT => {
                return invalid(self, format!("an mbarrier that expects {operand} bytes; at most {COUNT}"));
            }
            MBarrier::Test { parity } => {
                self.has_read(thread, index, generic, 8);
                let done = (old.phase == 1) != is_odd(operand, parity);
                if done {
                    match relaxed {
                        true => self.order.read((index, place), generic, false),
                        false => self.order.sees_phase(index, generic),
                    }
                    self.sees_phase(address);
                }
                world.accessed_shared(&access, None);
                return Ok(u64::from(done));
            }
            MBarrier::ExpectTx => new.bytes = new.bytes.saturating_add_unsigned(operand),
            MBarrier::ArriveExpectTx => {
                new.bytes = new.bytes.saturating_add_unsigned(operand);
                new.pending = new.pending.wrapping_sub(1);
            }
            MBarrier::Arrive { .. } => new.pending = new.pending.checked_sub(operand).unwrap_or(u64::MAX),
            MBarrier::ArriveDrop { .. } => {
                new.pending = new.pending.checked_sub(operand).unwrap_or(u64::MAX);
                new.expected = new.expected.saturating_sub(operand);
            }
            MBarrier::CompleteTx => new.bytes = new.bytes.saturating_sub_unsigned(operand),
            MBarrier::ArriveBehindCopies { counts } => {
                self.follow(world, index, address)?;
                new.pending = new.pending.wrapping_sub(counts.into());
            }
        }
        if new.pending > COUNT || new.bytes.unsigned_abs() > COUNT {
            return invalid(self, "more arrivals or bytes than the mbarrier's phase takes".into());
        }
        match kind {
            MBarrier::Init => _ = self.mbarriers.insert(generic, (index, place)),
            MBarrier::Invalidate => _ = self.mbarriers.remove(&generic),
            _ => new = new.settled(),
        }
        let goes_on = matches!(kind, MBarrier::Arrive { completes: false } | MBarrier::ArriveDrop { completes: false });
        if goes_on && new.phase != old.phase {
            return invalid(self, "an arrival with .noComplete completes the mbarrier's phase".into());
        }
        self.order.write((index, place), generic, !relaxed, true);
        if let AccessKind::Arrive { odd, ends } = &mut access.kind {
            (*odd, *ends) = (old.phase == 1, new.phase != old.phase);
            if *ends {
                self.order.phase_ends(generic);
                self.phase_is_over(address);
            }
        }
        let changed = self.shared.store(at, 8, new.pack());
        if access.order.is_strong() {
            self.wrote_shared(world, &access, at, word);
        }
        if changed {
            self.changed(index, generic, 8);
        }
        Ok(word)
    }

    #[cold]
    fn initialized_twice(&self, again: (usize, Place), first: (usize, Place)) -> Halt {
        let message = "an mbarrier is initialized where another one is in use, which mbarrier.inval must end before";
        self.fault_with(FaultKind::InvalidOperand, again, first, message)
    }

    /// The access that the world sees for an operation on an mbarrier. Arrivals in one phase commute: the result that they return identifies that phase,
    /// unless the module asks it for more.
    fn mbarrier_access(&self, index: usize, (kind, relaxed): (MBarrier, bool), address: u64, place: Place) -> Access {
        // bytes that are announced after the last arrival are those of the next phase
        let commutes =
            !matches!(kind, MBarrier::Init | MBarrier::Invalidate | MBarrier::Test { .. } | MBarrier::ExpectTx)
                && !self.module.counts_arrivals;
        let (order, kind) = match kind {
            MBarrier::Init => (Order::Weak, AccessKind::Store),
            MBarrier::Invalidate => (Order::Relaxed, AccessKind::Store),
            MBarrier::Test { .. } => (Order::Acquire, AccessKind::Load),
            MBarrier::ExpectTx
            | MBarrier::Arrive { .. }
            | MBarrier::ArriveExpectTx
            | MBarrier::ArriveDrop { .. }
            | MBarrier::CompleteTx
            | MBarrier::ArriveBehindCopies { .. } => (Order::Release, AccessKind::Arrive { odd: false, ends: false }),
        };
        let order = if relaxed { Order::Relaxed } else { order };
        let memory = Memory { order, scope: Scope::Cta, ..Memory::plain(Space::Shared, 8) };
        Access { commutes, ..self.access(index, &memory, address, kind, place) }
    }

    /// A thread has made an asynchronous store to shared memory, counted by an mbarrier that was in a state before.
    pub(super) fn is_under_way(
        &mut self,
        index: usize,
        (address, bytes): (u64, u8),
        (barrier, before): (u64, u64),
        place: Place,
    ) -> Result<(), Halt> {
        let [barrier, address] =
            [self.shared_address(barrier, true, index, place)?, self.shared_address(address, true, index, place)?];
        let now = State::unpack(self.shared.load(barrier as usize, 8));
        let is_over = now.phase != State::unpack(before).phase;
        self.takes_off_for(index, (address, bytes.into()), (barrier, is_over), place);
        Ok(())
    }
}
