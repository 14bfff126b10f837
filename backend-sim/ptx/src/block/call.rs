//! Calls of external functions, by a thread or by a group together; printf and assert.

use std::ops::Range;
use std::sync::Arc;

use super::print;
use super::shared::{By, Touch};
use super::thread::{State, Thread};
use super::{Block, Fault, FaultKind, Halt, Stop, Who};
use crate::decode::window;
use crate::module::{Group, Module, Place};
use crate::op::{CallSite, Memory};
use crate::types::Space;
use crate::world::{AccessKind, World, is_shared};

/// A call of an external function, by a thread or by a group that has arrived with equal arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The function: an index into [`Module::externals`](crate::Module::externals).
    pub external: usize,
    /// Its name.
    pub name: String,
    /// Who calls together.
    pub group: Group,
    /// The threads, by their numbers in the block: `x + y * X + z * X * Y`.
    pub threads: Vec<usize>,
    /// The first of them.
    pub who: Who,
    /// The bytes of all arguments, one behind the other.
    pub arguments: Vec<u8>,
    /// Where each argument begins, and its bytes.
    pub layout: Vec<(usize, usize)>,
    /// Whether the caller may look at the result.
    pub is_used: bool,
    /// Where the first thread calls; [`Module::describe`](crate::Module::describe) says it in words.
    pub place: Place,
}

impl Call {
    /// An argument of at most 8 bytes, as a number without sign.
    ///
    /// # Panics
    /// If there is no such argument, or it is a larger structure.
    pub fn argument(&self, index: usize) -> u64 {
        let (begin, size) = self.layout[index];
        let mut value = [0; 8];
        value[..size].copy_from_slice(&self.arguments[begin..begin + size]);
        u64::from_le_bytes(value)
    }
}

impl Block {
    /// Answers a call: its threads go on with this result, whose low bytes are taken. If the call changed global memory, say so to
    /// [`Block::wake`], too. `observed` says that the call changed nothing and only looked at global memory at these addresses (as
    /// `nvshmem_test` does, or a compare-and-swap that fails): then a loop that calls it again and again is a spin on them. Other calls are
    /// visible to others, so a loop around them is not a spin.
    ///
    /// # Panics
    /// If no such call waits for an answer.
    pub fn reply(&mut self, call: &Call, result: u64, observed: Option<&[(u64, u8)]>) {
        self.is_idle = false;
        let group = call.threads.len() > 1;
        for &index in &call.threads {
            let thread = &mut self.threads[index];
            let State::Call { call: site, issued: true, .. } = thread.state else {
                panic!("{} by thread {index} waits for no answer", call.name)
            };
            let code = &self.module.code[usize::from(thread.frame.code)];
            thread.take_result(&code.calls[usize::from(site)], result);
            thread.state = State::Ready;
            match observed {
                None => self.paces.visible(index),
                Some(reads) => {
                    if self.paces.is_active(index) {
                        reads.iter().for_each(|&(address, bytes)| thread.spin.read(address, bytes, &self.changes));
                    }
                    if !reads.is_empty() {
                        self.paces.looked(index);
                    }
                }
            }
        }
        if group {
            self.meet_otherwise(call.threads.iter().copied());
            // They have met: what each did before is known to all.
            self.order.meet(&call.threads, &call.threads);
        }
    }

    /// Bytes of the block's own memory that an argument of a call points to: shared memory, or local memory of the call's first thread. `None` if the address is
    /// not in such memory, or if not all bytes lie within it.
    pub fn read_own(&self, call: &Call, address: u64, bytes: usize) -> Option<&[u8]> {
        let (first, within) = (*call.threads.first()?, address & (window::SHARED - 1));
        match address & !(window::SHARED - 1) {
            window::SHARED => {
                let at = usize::try_from(self.blocks.place(first, within)).ok()?;
                let end = at.checked_add(bytes)?;
                let fits = self.blocks.owner(at).1.checked_add(bytes)? <= self.shared_bytes as usize;
                self.shared.bytes.get(at..end).filter(|_| fits)
            }
            window::LOCAL => {
                let at = usize::try_from(within).ok()?;
                self.threads.get(first)?.local.get(at..at.checked_add(bytes)?)
            }
            _ => None,
        }
    }

    /// Notes that a call has read bytes to which one of its arguments points: those of shared memory as a plain read by its first thread. Other memory is left to
    /// the world.
    ///
    /// # Errors
    /// A race, or bytes that nobody has written.
    pub fn call_reads(
        &mut self,
        world: &mut impl World,
        call: &Call,
        address: u64,
        bytes: usize,
    ) -> Result<(), Box<Fault>> {
        match is_shared(address) && self.read_own(call, address, bytes).is_some() {
            true => self.touched_by_call(world, address, bytes, Touch::read(call.threads[0], call.place, By::Thread)),
            false => Ok(()),
        }
    }

    fn touched_by_call(
        &mut self,
        world: &mut impl World,
        address: u64,
        bytes: usize,
        touch: Touch,
    ) -> Result<(), Box<Fault>> {
        let at = self.blocks.place(touch.thread, address & (window::SHARED - 1)) as usize;
        self.touch(world, at, bytes, touch).map_err(|halt| match *halt {
            Stop::Fault(fault) => fault,
            other => unreachable!("an access was checked, not made: {other:?}"),
        })
    }

    /// Writes to the block's own memory that an argument of a call points to, before the call is answered. If that is local memory, it writes to that of each
    /// calling thread; if it is shared memory, its first thread writes. False if not all bytes lie within such memory; then nothing was written.
    ///
    /// # Errors
    /// A race; nothing was written.
    pub fn write_own(
        &mut self,
        world: &mut impl World,
        call: &Call,
        address: u64,
        bytes: &[u8],
    ) -> Result<bool, Box<Fault>> {
        if self.read_own(call, address, bytes.len()).is_none() {
            return Ok(false);
        }
        let (at, thread) = ((address & (window::SHARED - 1)) as usize, call.threads[0]);
        if address & !(window::SHARED - 1) == window::LOCAL {
            let mut memories = call.threads.iter().map(|&thread| self.threads[thread].local.get(at..at + bytes.len()));
            if memories.any(|memory| memory.is_none()) {
                return Ok(false);
            }
            for &thread in &call.threads {
                let thread = &mut self.threads[thread];
                // a loop that calls it again and again is given the same
                if thread.local[at..at + bytes.len()] != *bytes {
                    thread.lost_own();
                    thread.local[at..at + bytes.len()].copy_from_slice(bytes);
                }
            }
            return Ok(true);
        }
        self.touched_by_call(world, address, bytes.len(), Touch::write(thread, call.place, By::Thread))?;
        let at = self.blocks.place(thread, at as u64) as usize;
        self.shared.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.wake(window::SHARED + at as u64, bytes.len() as u64, self.changes.now);
        Ok(true)
    }

    /// A thread prints.
    pub(super) fn print(
        &mut self,
        world: &mut impl World,
        index: usize,
        thread: &mut Thread,
        call: u16,
    ) -> Result<(), Halt> {
        let module = Arc::clone(&self.module);
        let (site, place) = site(&module, thread, call);
        let [format, arguments] = words(thread, site);
        let text = self.text(world, thread, index, format, place)?;
        let mut at = arguments;
        let printed = print::format(&text, |request| {
            Ok::<_, Halt>(match request {
                print::Request::Word(bytes) => {
                    at = at.checked_next_multiple_of(bytes.into()).unwrap_or(u64::MAX);
                    let value = self.inspect(world, thread, index, at, bytes, place)?;
                    at = at.wrapping_add(bytes.into());
                    print::Answer::Word(value)
                }
                print::Request::Text => {
                    at = at.checked_next_multiple_of(8).unwrap_or(u64::MAX);
                    let text = self.inspect(world, thread, index, at, 8, place)?;
                    at = at.wrapping_add(8);
                    print::Answer::Text(self.text(world, thread, index, text, place)?)
                }
            })
        })?;
        world.print(self.who(index), &printed.text);
        self.paces.visible(index);
        thread.take_result(site, printed.arguments.into());
        thread.frame.pc += 1;
        Ok(())
    }

    /// The fault of an `assert` that does not hold. Fails if its texts cannot be read.
    pub(super) fn assertion(
        &mut self,
        world: &mut impl World,
        index: usize,
        thread: &mut Thread,
        call: u16,
    ) -> Result<Halt, Halt> {
        let module = Arc::clone(&self.module);
        let (site, place) = site(&module, thread, call);
        let [condition, file, line, function] = words(thread, site);
        let mut read = |address| self.text(world, thread, index, address, place);
        let (condition, file, function) = (read(condition)?, read(file)?, read(function)?);
        let message = format!("assertion `{condition}` failed in {function} ({file}:{line})");
        Ok(self.fault(FaultKind::Assert, index, place, message))
    }

    /// The threads that call together with this one.
    fn members(&self, group: Group, index: usize) -> Range<usize> {
        match group {
            Group::Thread => index..index + 1,
            Group::Warp => self.warp_of(index),
            Group::Warpgroup => {
                let block = self.blocks.threads_of(self.blocks.rank(index));
                let first = block.start + (index - block.start) / 128 * 128;
                first..(first + 128).min(block.end)
            }
            Group::Block => self.blocks.threads_of(self.blocks.rank(index)),
        }
    }

    /// A thread has come to an external call. Stops with the call if the thread calls alone, or if all threads of its group have come.
    pub(super) fn called(&mut self, index: usize) -> Result<(), Halt> {
        let State::Call { external, place, .. } = self.threads[index].state else { return Ok(()) };
        let function = &self.module.externals[usize::from(external)];
        let members = self.members(function.group, index);
        let mut missing = false;
        for other in members.clone().filter(|&other| other != index) {
            match self.threads[other].state {
                State::Call { external: same, place: there, issued: false, .. } if same == external => {
                    if !self.same_arguments(other, index) {
                        let message = format!("threads call {} together with different arguments", function.name);
                        let (mut one, mut another) = ((index, place), (other, there));
                        if one < another {
                            std::mem::swap(&mut one, &mut another);
                        }
                        return Err(self.fault_with(FaultKind::GroupCall, one, another, message));
                    }
                }
                State::Exited => return Err(self.ended_without(index, other)),
                _ => missing = true,
            }
        }
        if missing {
            return Ok(());
        }
        let mut layout = Vec::with_capacity(function.parameters.len());
        let mut bytes = Vec::with_capacity(function.parameters.iter().map(|&size| size as usize).sum());
        for argument in self.arguments(index) {
            layout.push((bytes.len(), argument.len()));
            bytes.extend_from_slice(argument);
        }
        let may_look = |thread: &Thread| match thread.state {
            State::Call { call: site, .. } => {
                self.module.code[usize::from(thread.frame.code)].calls[usize::from(site)].is_used
            }
            _ => true,
        };
        let call = Call {
            external: external.into(),
            name: function.name.clone(),
            group: function.group,
            who: self.who(members.start),
            arguments: bytes,
            layout,
            is_used: self.threads[members.clone()].iter().any(may_look),
            place,
            threads: members.clone().collect(),
        };
        for thread in &mut self.threads[members] {
            if let State::Call { issued, .. } = &mut thread.state {
                *issued = true;
            }
        }
        Err(Box::new(Stop::Call(call)))
    }

    /// Whether two threads call with equal arguments.
    fn same_arguments(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|index| &self.threads[index]);
        let (State::Call { call: at, .. }, State::Call { call: there, .. }) = (&one.state, &other.state) else {
            return false;
        };
        let site =
            |thread: &Thread, call: u16| &self.module.code[usize::from(thread.frame.code)].calls[usize::from(call)];
        let (mine, theirs) = (site(one, *at), site(other, *there));
        // Where they call from the same place, mostly all bytes are equal, also those between the arguments.
        if std::ptr::eq(mine, theirs) && one.slot(mine.all) == other.slot(theirs.all) {
            return true;
        }
        mine.arguments.iter().zip(&theirs.arguments).all(|(mine, theirs)| equal(one.slot(*mine), other.slot(*theirs)))
    }

    /// The bytes of the arguments with which a thread calls, one argument after the other.
    fn arguments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let thread = &self.threads[index];
        let calls = &self.module.code[usize::from(thread.frame.code)].calls;
        let site = match thread.state {
            State::Call { call, .. } => calls.get(usize::from(call)),
            _ => None,
        };
        site.into_iter().flat_map(|site| thread.arguments(site))
    }

    /// The fault of a call of a group, one of whose threads has ended.
    fn ended_without(&self, index: usize, ended: usize) -> Halt {
        let (name, place) = match self.threads[index].state {
            State::Call { external, place, .. } => (&self.module.externals[usize::from(external)].name[..], place),
            _ => ("a function together", Place::default()),
        };
        let message = format!("all threads of the group call {name}, and {} has ended", self.who(ended));
        self.fault(FaultKind::GroupCall, index, place, message)
    }

    /// The fault of a call of a group, one of whose threads waits elsewhere.
    pub(super) fn missing_from_group(&self, index: usize) -> Halt {
        let State::Call { external, place, .. } = &self.threads[index].state else {
            return self.fault(FaultKind::GroupCall, index, Place::default(), "a call of a group is not complete");
        };
        let function = &self.module.externals[usize::from(*external)];
        let members = self.members(function.group, index);
        if let Some(ended) = members.clone().find(|&other| !self.threads[other].is_live()) {
            return self.ended_without(index, ended);
        }
        let elsewhere = members.into_iter().find_map(|other| match &self.threads[other].state {
            State::Call { external: same, .. } if same == external => None,
            State::Call { place, .. }
            | State::Barrier { place, .. }
            | State::Parked { place, .. }
            | State::Stopped { place }
            | State::Failed { place } => Some((other, *place)),
            State::Warp(together) => Some((other, together.place)),
            State::Ready | State::Exited => None,
        });
        let message = format!("all threads of the group call {} together, and one waits elsewhere", function.name);
        self.fault_with(FaultKind::GroupCall, (index, *place), elsewhere.unwrap_or((index, *place)), message)
    }

    /// Reads text to print, or a tensor map. In global memory, that does not count as an access of the kernel.
    pub(super) fn inspect(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        address: u64,
        bytes: u8,
        place: Place,
    ) -> Result<u64, Halt> {
        let memory = Memory { align: 1, ..Memory::plain(Space::Generic, bytes) };
        if address >> 56 != 0 {
            return self.load(world, thread, index, &memory, address, place, true);
        }
        let access = self.access(index, &memory, address, AccessKind::Inspect, place);
        let value = world.load(&access);
        self.accepted(value, &access, index)
    }

    /// Text up to its zero byte.
    fn text(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        address: u64,
        place: Place,
    ) -> Result<String, Halt> {
        let mut bytes = Vec::new();
        while bytes.len() < 1 << 16 {
            match self.inspect(world, thread, index, address.wrapping_add(bytes.len() as u64), 1, place)? {
                0 => break,
                byte => bytes.push(byte as u8),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The call at which a thread stands.
fn site<'m>(module: &'m Module, thread: &Thread, call: u16) -> (&'m CallSite, Place) {
    let code = &module.code[usize::from(thread.frame.code)];
    (&code.calls[usize::from(call)], Place(code.first_place + thread.frame.pc))
}

/// Whether two arguments of a function are equal. Most have 8 or 4 bytes.
#[inline(always)]
fn equal(one: &[u8], other: &[u8]) -> bool {
    match (one.len(), one.first_chunk::<8>(), one.first_chunk::<4>()) {
        (8, Some(word), _) => other.first_chunk() == Some(word),
        (4, _, Some(word)) => other.first_chunk() == Some(word),
        _ => one == other,
    }
}

/// The first arguments of a call, as numbers of at most 8 bytes.
fn words<const N: usize>(thread: &Thread, site: &CallSite) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(thread.arguments(site)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(value);
    }
    words
}
