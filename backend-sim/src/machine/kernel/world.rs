//! Global memory, as a block sees it: everything that its PE was given, and what it reaches of others.

use std::sync::Arc;

use onesided::DType;
use onesided::backend::Span;
use onesided_ptx::{
    Access, AccessKind, AtomicOp, Order, Place, Refusal, Scope, Sync, Type, Who, World, Written, each_lane, gather,
    gather_row, in_a_row, scatter_row,
};

use super::super::ids::{AgentId, BlockId, Id as _, PeId, TransferId};
use super::super::{Machine, Object, Touch};
use super::address;
use super::arrives::arrival;
use super::events::Values;
use super::threads::fold_of;
use super::turn::name_of;
use super::watch::objects;
use crate::kernel::Code;
use crate::race::How;
use crate::race::call::REDUCTION_IN_BULK;

/// What a block runs against, for one turn.
pub(super) struct KernelWorld<'m> {
    machine: &'m mut Machine,
    agent: AgentId,
    block: BlockId,
    pe: PeId,
    code: &'m Arc<Code>,
    /// The bulk copy that accesses memory in place of its thread.
    copying: Option<usize>,
    /// A strong store of which only the first elements have been made.
    sending: Option<TransferId>,
    /// Whether the last strong load has found an old value.
    is_old: bool,
}

impl<'m> KernelWorld<'m> {
    pub(super) fn new(machine: &'m mut Machine, agent: AgentId, block: BlockId, code: &'m Arc<Code>) -> Self {
        let pe = machine.agents[agent].pe;
        KernelWorld { machine, agent, block, pe, code, copying: None, sending: None, is_old: false }
    }

    #[inline(always)]
    fn resolve(&self, access: &Access) -> Result<(PeId, Span), Refusal> {
        match self.machine.find_address(self.pe, access.address, access.bytes.into()) {
            Some(found) => Ok(found),
            None => Err(Refusal::fault(self.machine.why_not_at_address(self.pe, access.address, access.bytes.into()))),
        }
    }

    /// An access happens: what it touches, and what it tells. Returns what a load finds that is older than what the word holds.
    #[inline]
    fn observe(&mut self, access: &Access, (pe, span): (PeId, Span), how: How, touch: Option<Touch>) -> Option<u64> {
        self.machine.note_by_pointer(pe, span.alloc, how == How::Write);
        let is_noticed = access.order.is_strong() || self.machine.in_chosen_step || self.machine.races.is_on();
        if is_noticed { self.tell(access, (pe, span), how, touch) } else { None }
    }

    fn tell(&mut self, access: &Access, (pe, span): (PeId, Span), how: How, touch: Option<Touch>) -> Option<u64> {
        let name = match access.kind {
            AccessKind::Atomic(_) if self.copying.is_some() => REDUCTION_IN_BULK,
            _ => name_of(access),
        };
        let asked = (name, self.code.at(access.place));
        let machine = &mut *self.machine;
        let ending = machine.kernels.ending.take_if(|ending| ending.is_load_of(pe, span));
        let touch = touch.filter(|_| !ending.is_some_and(|ending| ending.is_steady));
        if machine.kernels.workspaces.has(pe, span.alloc) {
            machine.meets_in_grid(self.block, access.thread as usize, (pe, span));
        } else if let Some(touch) = touch {
            machine.touch_memory(pe, span, touch);
        }
        if !access.order.is_strong() {
            machine.depend_on_polled(self.block, access.thread as usize, &Object::memory(pe, span));
            machine.plain_access(self.block, self.copying.unwrap_or(access.thread as usize), (pe, span), how, asked);
            if access.order == Order::ReadOnly {
                machine.reads_only(self.block, access.thread as usize, (pe, span));
            }
            return None;
        }
        machine.agents[self.agent].at = Some(asked.1);
        let by = self.copying.unwrap_or(access.thread as usize);
        machine.strong_access(self.block, (access, by), (pe, span), (how == How::Write, ending), asked)
    }

    /// The agent of a thread; of the block, if the thread has not acted.
    fn agent_of(&self, thread: u32) -> AgentId {
        self.machine.kernels.blocks[self.block].threads[thread as usize].unwrap_or(self.agent)
    }

    /// Whether races of a thread's plain accesses are no findings.
    fn may_race(&self, thread: u32) -> bool {
        let machine = &*self.machine;
        machine.may_race(self.agent) || machine.kernels.has_marks && machine.may_race(self.agent_of(thread))
    }

    /// The same of any thread that takes part in an access.
    fn any_may_race(&self, access: &Access, lanes: u32) -> bool {
        let first = access.thread - lanes.trailing_zeros();
        match self.machine.kernels.has_marks {
            true => each_lane(lanes).any(|lane| self.may_race(first + lane as u32)),
            false => self.may_race(access.thread),
        }
    }

    /// Whether it is an access by which the grid synchronizes.
    fn synchronizes_grid(&self, access: &Access) -> bool {
        let place = address::place(access.address, access.bytes.into());
        place.is_some_and(|(pe, span)| self.machine.kernels.workspaces.has(pe, span.alloc))
    }

    /// Whether an access to another PE's memory comes after something that its own PE has issued: behind a fence, or a strong store to the
    /// same place.
    fn comes_after_issued(&mut self, access: &Access) -> bool {
        let place = address::place(access.address, access.bytes.into());
        let Some((pe, span)) = place.filter(|&(pe, _)| pe != self.pe) else { return false };
        if access.kind == AccessKind::Inspect || !self.machine.has_issued(self.agent) {
            return false; // mostly
        }
        let thread = self.machine.thread_acts(self.block, access.thread as usize);
        let writes = matches!(access.kind, AccessKind::Store | AccessKind::Atomic(_) | AccessKind::Arrive { .. });
        writes && self.machine.comes_after_fenced(thread, access, pe)
            || self.machine.comes_after_store_there(thread, access, (pe, span))
    }

    /// The step that was chosen ends with the access that it was chosen for, and what is made with that.
    fn done(&mut self, access: &Access) {
        if !access.goes_on(self.accesses_words()) {
            self.machine.in_chosen_step = false;
        }
    }

    /// A write to another PE's memory is made, and arrives later. `event`: where the run is recorded.
    fn send(
        &mut self,
        access: &Access,
        (pe, span): (PeId, Span),
        (value, atomic): (u64, Option<(AtomicOp, Type)>),
        event: Option<(usize, DType)>,
    ) {
        self.machine.note_by_pointer(pe, span.alloc, true);
        let asked = (name_of(access), self.code.at(access.place));
        let thread = self.machine.agent_of_thread(self.block, access.thread as usize);
        let id = if access.order.is_strong() {
            self.machine.agents[self.agent].at = Some(asked.1);
            let known = self.machine.strong_write(self.block, access, (pe, span), asked);
            let begun = self.sending.take();
            let id = self.machine.sends_strongly(thread, (begun, atomic), (pe, span), (value, known), asked);
            match access.goes_on(self.accesses_words()) {
                true => self.sending = Some(id),
                false => self.machine.fly(thread, id),
            }
            id
        } else {
            self.machine.depend_on_polled(self.block, access.thread as usize, &Object::memory(pe, span));
            self.machine.sends_plainly((self.block, thread), access, (pe, span), value, asked)
        };
        if let Some(event) = event {
            self.machine.record_sent(self.machine.flight.get(id).key, event);
        }
    }
}

impl World for KernelWorld<'_> {
    /// A plain access is a step only where its races are no findings, as its outcome is to be seen then, and where it comes after what a
    /// fence orders, or after a strong store to the same place.
    fn stops(&mut self, access: &Access) -> bool {
        let plain = || self.may_race(access.thread) && access.kind != AccessKind::Inspect;
        self.machine.mode.needs.relaxed
            && (access.order.is_strong() || plain() || self.comes_after_issued(access))
            && !self.synchronizes_grid(access)
    }

    fn accesses_words(&self) -> bool {
        self.machine.promises.whole_words
    }

    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        let (pe, span) = self.resolve(access)?;
        let older = match access.kind {
            AccessKind::Inspect => None,
            _ => self.observe(access, (pe, span), How::Read, Some(Touch::Read)),
        };
        self.is_old = older.is_some();
        let value = match older {
            Some(older) => older,
            None if pe == self.pe => self.machine.heap.load(pe, span),
            None => self.machine.load_from_peer(self.agent, pe, span),
        };
        if access.kind != AccessKind::Inspect {
            self.record(access, (pe, span), (Some(value), None));
        }
        if !matches!(access.kind, AccessKind::Atomic(_)) {
            self.done(access);
        }
        Ok(value)
    }

    fn found_older(&self) -> bool {
        self.is_old
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        let (pe, span) = self.resolve(access)?;
        let event = self.record(access, (pe, span), (None, Some(masked(value, span))));
        if self.machine.arrives_later(access, self.agent_of(access.thread), pe) {
            self.send(access, (pe, span), (masked(value, span), None), event);
            self.done(access);
            // what is there already changes nothing: a loop that writes it again and again can be a wait
            return Ok(!access.order.is_strong() || self.machine.heap.load(pe, span) != masked(value, span));
        }
        let strong = access.order.is_strong();
        self.observe(access, (pe, span), How::Write, (!strong).then_some(Touch::Write));
        if strong && self.machine.in_chosen_step {
            let old = self.machine.heap.load(pe, span);
            self.machine.touch_atomically(pe, span, (old, masked(value, span)), (None, None));
        }
        let changed = self.write(pe, span, value);
        self.done(access);
        Ok(changed)
    }

    fn load_together(&mut self, access: &Access, lanes: u32, from: &[u64; 32], into: &mut [u64; 32]) -> bool {
        let Some((pe, all)) = self.together(access, lanes, from) else { return false };
        self.observe_together(access, (pe, all), (lanes, from), How::Read);
        if let Some(count) = in_a_row(from, lanes, access.bytes) {
            let lead = lanes.trailing_zeros() as usize;
            let words = self.machine.heap.bytes(pe, row(access, count, all));
            gather_row(words, access.bytes, &mut into[lead..lead + count]);
        } else {
            gather(self.machine.heap.bytes(pe, all), access.bytes, lanes, |lane| address::offset(from[lane]), into);
        }
        self.record_together(access, (pe, all), (lanes, from), |lane| (Some(into[lane]), None));
        true
    }

    fn store_together(&mut self, access: &Access, lanes: u32, to: &[u64; 32], values: &[u64; 32]) -> Option<u32> {
        let (pe, all) = self.together(access, lanes, to)?;
        self.observe_together(access, (pe, all), (lanes, to), How::Write);
        self.record_together(access, (pe, all), (lanes, to), |lane| (None, Some(values[lane])));
        let word = |lane: usize| Span { start: address::offset(to[lane]), len: access.bytes.into(), ..all };
        if let Some(count) = in_a_row(to, lanes, access.bytes)
            && !self.machine.looks_at_writes(pe)
        {
            let lead = lanes.trailing_zeros() as usize;
            let words = self.machine.heap.bytes_mut(pe, row(access, count, all));
            let changed = scatter_row(words, access.bytes, &values[lead..lead + count]) << lead;
            if self.machine.kernels.live.len() > 1 {
                each_lane(changed).for_each(|lane| self.machine.wake_kernels(pe, word(lane)));
            }
            return Some(changed);
        }
        Some(each_lane(lanes).fold(0, |all, lane| all | u32::from(self.write(pe, word(lane), values[lane])) << lane))
    }

    fn copies(&mut self, access: &Access) -> Result<Vec<u64>, Refusal> {
        self.machine.copies(self.pe, access.address, access.bytes.into()).map_err(Refusal::fault)
    }

    /// Behind a fence that is not sequential, loads may come before the stores in front of it. What the thread writes or calls waits for them, if
    /// the race detector knows which they are.
    fn stops_at_fence(&mut self, thread: u32, scope: Scope, sequential: bool) -> bool {
        let waits = scope == Scope::Sys && (sequential || !self.machine.races.is_on());
        waits && self.machine.has_issued(self.agent) && {
            let thread = self.machine.thread_acts(self.block, thread as usize);
            self.machine.comes_after_stores(thread)
        }
    }

    fn atomic(&mut self, access: &Access, ty: Type, b: u64, c: u64) -> Result<(u64, bool), Refusal> {
        let AccessKind::Atomic(op) = access.kind else { return Err(Refusal::fault("no atomic")) };
        let (pe, span) = self.resolve(access)?;
        let old = self.machine.heap.load(pe, span);
        let new = op.apply(ty, old, b, c);
        if self.copying.is_none() && self.machine.arrives_later(access, self.agent_of(access.thread), pe) {
            let by = masked(b, span);
            let event = self.record(access, (pe, span), (None, Some(by)));
            self.send(access, (pe, span), (by, Some((op, ty))), event);
            self.done(access);
            return Ok((old, masked(new, span) != old)); // nobody looks at what it finds
        }
        self.record(access, (pe, span), (Some(old), Some(masked(new, span))));
        let finds_another = op == AtomicOp::CompareSwap && masked(old, span) != masked(b, span);
        let arrival = arrival(access);
        self.machine.kernels.refused = arrival.filter(|arrival| !arrival.is_last(old));
        self.observe(access, (pe, span), if finds_another { How::Read } else { How::Write }, None);
        if self.machine.in_chosen_step && !self.machine.kernels.workspaces.has(pe, span.alloc) {
            let adds = (access.commutes && op == AtomicOp::Add).then_some(b);
            let fold = fold_of(op, ty).filter(|_| access.commutes);
            let replaced = (old, masked(new, span));
            match arrival {
                Some(arrival) => self.machine.touch_arrival((pe, span), replaced, arrival, None),
                None => self.machine.touch_atomically(pe, span, replaced, (adds, fold)),
            }
        }
        let changed = self.write(pe, span, new);
        self.done(access);
        Ok((old, changed))
    }

    fn fence(&mut self, thread: u32, scope: Scope, sequential: bool, place: Place) {
        let at = self.code.at(place);
        self.machine.kernel_fence(self.block, thread as usize, (scope, sequential), at);
    }

    fn marks(&mut self, thread: u32, reason: Option<&str>, place: Place) {
        self.machine.thread_marks(self.block, thread as usize, reason, place);
    }

    /// In order, nobody chooses who comes next: a loop that counts how often it looks would end before others have done anything.
    fn others_first(&mut self) -> bool {
        !self.machine.mode.needs.relaxed
    }

    fn goes_on(&mut self) -> bool {
        self.machine.deadline.over().is_none()
    }

    fn synchronize(&mut self, sync: &Sync) {
        self.machine.threads_synchronize(self.block, sync);
    }

    fn accessed_shared(&mut self, access: &Access, written: Option<&Written>) {
        self.machine.accessed_shared(self.block, access, written);
        self.done(access);
    }

    fn now(&self) -> u64 {
        self.machine.begun as u64
    }

    fn looks_again(&mut self, thread: u32, reads: &[(u64, u8, u64)]) {
        if self.machine.mode.needs.tracking {
            let name = self.machine.block_name(self.block);
            let workspaces = &self.machine.kernels.workspaces;
            let object = |&(address, bytes, since): &(u64, u8, u64)| {
                Some((objects(name, &[(address, bytes)], workspaces).next()?, since as usize))
            };
            let reads = reads.iter().filter_map(object).collect();
            self.machine.kernels.blocks[self.block].watches.begin_behind(thread as usize, reads);
        }
    }

    fn moment(&mut self, thread: u32) -> u64 {
        self.machine.acts_in_block(self.block, thread as usize)
    }

    fn comes_after(&mut self, thread: u32, of: u32, moment: u64) -> bool {
        self.machine.thread_comes_after(self.block, thread as usize, of as usize, moment)
    }

    fn copying(&mut self, copy: Option<usize>) {
        self.copying = copy;
    }

    fn query(&mut self, external: usize) -> Option<u64> {
        self.code.functions[external].constant(self.pe.index(), self.machine.pes.len())
    }

    fn print(&mut self, who: Who, text: &str) {
        self.machine.kernel_prints(self.block, who, text);
    }
}

/// The low bytes of a value.
pub(super) fn masked(value: u64, span: Span) -> u64 {
    if span.len == 8 { value } else { value & ((1 << (8 * span.len)) - 1) }
}

/// So many words of an allocation, from that of an access on.
fn row(access: &Access, count: usize, all: Span) -> Span {
    Span { start: address::offset(access.address), len: count * usize::from(access.bytes), ..all }
}

impl KernelWorld<'_> {
    /// The memory in which plain accesses of several threads lie, if they happen all at once: all of an allocation of the PE's own. Where
    /// each is a step, or one of them is wrong, they come one by one.
    #[inline(always)]
    fn together(&self, access: &Access, lanes: u32, addresses: &[u64; 32]) -> Option<(PeId, Span)> {
        if self.machine.in_chosen_step || self.machine.mode.needs.relaxed && self.any_may_race(access, lanes) {
            return None;
        }
        let (pe, Span { alloc, .. }) = address::place(access.address, 0)?;
        let len = self.machine.heap.len(pe, alloc)?;
        if let Some(count) = in_a_row(addresses, lanes, access.bytes) {
            let words = count * usize::from(access.bytes);
            let is_inside = address::is_within(address::offset(access.address), words, len);
            return (pe == self.pe && is_inside).then_some((pe, Span { alloc, start: 0, len }));
        }
        let inside = |lane: usize| {
            address::same_allocation(addresses[lane], access.address)
                && address::is_within(address::offset(addresses[lane]), access.bytes.into(), len)
        };
        (pe == self.pe && each_lane(lanes).all(inside)).then_some((pe, Span { alloc, start: 0, len }))
    }

    /// What is told of plain accesses that happen together.
    #[inline]
    fn observe_together(
        &mut self,
        access: &Access,
        (pe, all): (PeId, Span),
        (lanes, addresses): (u32, &[u64; 32]),
        how: How,
    ) {
        self.machine.note_by_pointer(pe, all.alloc, how == How::Write);
        if !self.machine.races.is_on() {
            return;
        }
        let asked = (name_of(access), self.code.at(access.place));
        self.machine.plain_accesses(self.block, access, (lanes, addresses), (pe, all), how, asked);
        if access.order == Order::ReadOnly {
            let first = access.thread as usize - lanes.trailing_zeros() as usize;
            for lane in each_lane(lanes) {
                let word = Span { start: address::offset(addresses[lane]), len: access.bytes.into(), ..all };
                self.machine.reads_only(self.block, first + lane, (pe, word));
            }
        }
    }

    /// Notes an access where the run is recorded.
    #[inline]
    fn record(&mut self, access: &Access, word: (PeId, Span), values: Values) -> Option<(usize, DType)> {
        if !self.machine.is_recorded() {
            return None;
        }
        let older = self.is_old && access.kind == AccessKind::Load && access.order.is_strong();
        self.machine.record_access(self.block, access, self.code.at(access.place), word, (values, older))
    }

    /// The same, of accesses that happen together.
    #[inline]
    fn record_together(
        &mut self,
        access: &Access,
        (pe, all): (PeId, Span),
        (lanes, addresses): (u32, &[u64; 32]),
        values: impl Fn(usize) -> Values,
    ) {
        if !self.machine.is_recorded() {
            return;
        }
        let first = access.thread - lanes.trailing_zeros();
        let mut access = *access;
        for lane in each_lane(lanes) {
            access.thread = first + lane as u32;
            let word = Span { start: address::offset(addresses[lane]), len: access.bytes.into(), ..all };
            self.record(&access, (pe, word), values(lane));
        }
    }

    /// Whether it changed the memory.
    fn write(&mut self, pe: PeId, span: Span, value: u64) -> bool {
        self.machine.write_word(pe, span, masked(value, span))
    }
}
