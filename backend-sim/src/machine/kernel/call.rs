//! Calls of NVSHMEM's device functions: each becomes an operation of the thread that makes it, or an answer at once.

use std::cell::RefCell;
use std::sync::Arc;

use onesided::backend::{Against, Effect, Moves, Op, Span, TeamId, Transfer, Values, Wait};
use onesided::{At, Members};
use onesided_ptx::{Block, Call, Fault, Sync, Type};

use super::super::agent::{Agent, OwnedValues, State, Task, Work};
use super::super::claim::{Claimed, Completes};
use super::super::ids::{AgentId, BlockId, PeId};
use super::super::{Machine, Object, Progress};
use super::world::KernelWorld;
use super::{Running, address};
use crate::kernel::{Convention, Form, Function, NO_INDEX, Request, Resolve, Select, Wanted};
use crate::race::How;
use crate::request::Reply;

/// A call that a thread makes, until it is answered.
#[derive(Debug)]
pub(super) struct Calling {
    call: Call,
    /// Which of the module's external functions.
    function: usize,
    /// If it changes nothing, the words that it has read: their addresses and bytes. A loop around it waits for them.
    reads: Option<Vec<(u64, u8)>>,
    /// It completes something, as a quiet: what its thread stores strongly behind it tells what is complete.
    completes: bool,
}

/// A thread looks at words, or waits for some of them.
#[derive(Debug)]
pub(crate) struct Look {
    /// The function.
    pub(crate) call: &'static str,
    select: Select,
    /// In a tracked run: steps that have changed what it looks at, since it began to wait.
    changes: Vec<usize>,
}

impl Look {
    /// The wait that ends when this returns something else than in vain, if it tests one word, or whether all words are so.
    pub(super) fn tests(&self) -> Option<Tests> {
        let Select { vars, dtype, cmp, form, test, ref wanted, ref skip, .. } = self.select;
        let mut words = self.select.variables();
        let (first, is_one) = (words.next()?, words.next().is_none());
        if !test || !is_one && form != Form::All {
            return None;
        }
        let (against, bytes) = match wanted {
            Wanted::One(value) => (Against::One(*value), Vec::new()),
            Wanted::Each(all) => (
                Against::Each,
                all.iter().flat_map(|value| value.to_le_bytes().into_iter().take(dtype.size())).collect(),
            ),
        };
        Some(Tests {
            wait: Wait { vars, dtype, cmp, against, signal: false },
            values: OwnedValues::new(&Values { bytes: &bytes, skip }),
            first: first.1,
            returns: if matches!(form, Form::Any | Form::Some) { Type::U64 } else { Type::U32 },
            results: if form == Form::Any { [NO_INDEX, first.0 as u64] } else { [0, 1] },
            // any of several words could end it, and a round of `test_some` would leave indices behind
            may_find_in_vain: is_one && form != Form::Some,
        })
    }

    /// Whether it asks what its thread alone can change: where its numbers lie, others cannot write.
    pub(super) fn asks_the_same(&self, asked: impl Fn(usize) -> bool) -> bool {
        let Select { form, ref wanted, ref skip, .. } = self.select;
        let by_value = |at: usize| form == Form::One || skip.is_empty() || asked(at);
        let status = if form == Form::Some { 3 } else { 2 };
        by_value(status) && (matches!(wanted, Wanted::One(_)) || asked(status + 2))
    }
}

/// A test that is made in a loop, as a wait.
#[derive(Debug)]
pub(super) struct Tests {
    pub(super) wait: Wait,
    pub(super) values: OwnedValues,
    /// The first word that it looks at.
    pub(super) first: Span,
    /// The type of what it returns, and what it returns where not all words are so, and where they are.
    pub(super) returns: Type,
    pub(super) results: [u64; 2],
    /// Whether a loop may go on as long as all words are so.
    pub(super) may_find_in_vain: bool,
}

/// What addresses and handles mean to a thread.
struct Resolver<'m> {
    machine: &'m Machine,
    pe: PeId,
    block: &'m Block,
    call: &'m Call,
    /// What the call has read through its arguments: addresses and bytes.
    read: RefCell<Vec<(u64, usize)>>,
}

impl Resolve for Resolver<'_> {
    fn my_pe(&self) -> usize {
        self.pe.0 as usize
    }

    fn n_pes(&self) -> usize {
        self.machine.pes.len()
    }

    fn span(&self, address: u64, bytes: usize) -> Result<Span, String> {
        if self.block.read_own(self.call, address, 0).is_some() {
            return Err("is shared or local memory of the kernel, which NVSHMEM cannot reach over a network; copy to symmetric memory before a put, or from it behind a get".into());
        }
        match self.machine.at_address(self.pe, address, bytes)? {
            (pe, span) if pe == self.pe => Ok(span),
            (pe, span) => Err(format!("is the address of {} on PE {}; NVSHMEM takes one's own", span.alloc, pe.0)),
        }
    }

    fn has_own(&self, address: u64, bytes: usize) -> bool {
        self.block.read_own(self.call, address, bytes).is_some()
    }

    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        self.read.borrow_mut().push((address, bytes));
        if let Some(own) = self.block.read_own(self.call, address, bytes) {
            return Ok(own.to_vec());
        }
        let (pe, span) = self.machine.at_address(self.pe, address, bytes)?;
        Ok(self.machine.heap.bytes(pe, span).to_vec())
    }

    fn team(&self, handle: i32) -> Result<TeamId, String> {
        let team = TeamId(handle as u32);
        match self.machine.teams.is_member(&self.machine.config, self.pe, team) {
            true => Ok(team),
            false => Err(format!(
                "{handle} is the handle of no team that PE {} is a member of and has not destroyed",
                self.pe.0
            )),
        }
    }

    fn members(&self, team: TeamId) -> Members {
        self.machine.teams.members_of(&self.machine.config, self.pe, team)
    }
}

/// # Calls
impl Machine {
    /// A thread, or a group that has met, calls an external function.
    pub(super) fn call_of_thread(&mut self, block_agent: AgentId, call: Call) {
        let id = self.block_of(block_agent);
        let launched = Arc::clone(&self.kernels.blocks[id].launched);
        let function = &launched.code.functions[call.external];
        let at = launched.code.at(call.place);
        let (request, read) = self.request_of(id, function, &call);
        let request = match request {
            Ok(request) => request,
            Err(why) => return self.call_refused(block_agent, &call, at, &why),
        };
        if !self.reads_of_call((id, function), &call, &read) {
            return;
        }
        let pe = self.agents[block_agent].pe;
        match request {
            // such a call does nothing that others see: a loop around it waits for something else
            Request::Nothing => self.answer_thread(id, &call, function, 0, Some(&[])),
            Request::Query(value) => self.answer_thread(id, &call, function, value, Some(&[])),
            Request::Ptr { address, pe: of } => {
                let value = self.pointer(pe, address, PeId(of));
                self.answer_thread(id, &call, function, value, Some(&[]));
            }
            Request::McPtr { team, address } => {
                let members = self.teams.members_of(&self.config, pe, team).len();
                let value = self.multicast_pointer(pe, members, address);
                self.answer_thread(id, &call, function, value, Some(&[]));
            }
            Request::Write(parts) => {
                if parts.iter().all(|(address, bytes)| self.write_back((id, function), &call, *address, bytes)) {
                    self.answer_thread(id, &call, function, 0, None);
                }
            }
            Request::Region(asked) => {
                let (value, stored) = self.kernels.blocks[id].regions.call(asked);
                if stored.is_none_or(|(address, bytes)| self.write_back((id, function), &call, address, &bytes)) {
                    self.answer_thread(id, &call, function, value, None);
                }
            }
            // its thread is never answered
            Request::Exit(status) => self.exit_in_kernel(block_agent, &call, status, at),
            Request::Op(op, held) => {
                let values = OwnedValues::new(&held.borrow());
                let called = launched.called;
                let what = Task::Op { op, values, called, claim: None, claimed: Claimed::default() };
                self.begin_call(id, call, what, at);
            }
            Request::Select(select) => {
                let name = if select.test { "test" } else { "wait_until_some" };
                self.begin_call(id, call, Task::Look(Box::new(Look { call: name, select, changes: Vec::new() })), at);
            }
        }
    }

    /// What a call asks for, and what it has read through its arguments.
    fn request_of(
        &self,
        id: BlockId,
        function: &Function,
        call: &Call,
    ) -> (Result<Request, String>, Vec<(u64, usize)>) {
        let running = &self.kernels.blocks[id];
        let block = running.block.as_deref().expect("its turn is over");
        let pe = self.agents[running.agent].pe;
        let resolver = Resolver { machine: self, pe, block, call, read: RefCell::default() };
        let request = self.values_of(function, &resolver).and_then(|values| function.request(&values, &resolver));
        (request, resolver.read.into_inner())
    }

    fn values_of(&self, function: &Function, resolver: &Resolver<'_>) -> Result<Vec<u64>, String> {
        let call = resolver.call;
        Ok(match function.convention {
            Convention::C => (0..call.layout.len()).map(|index| call.argument(index)).collect(),
            Convention::Numba => (1..call.layout.len()).map(|index| call.argument(index)).collect(),
            Convention::References => {
                let sizes = function.sizes();
                let value = |(index, &size): (usize, &u32)| {
                    let mut bytes = resolver.read(call.argument(index + 1), size as usize)?;
                    bytes.resize(8, 0);
                    Ok(u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
                };
                sizes.iter().enumerate().map(value).collect::<Result<Vec<_>, String>>()?
            }
        })
    }

    /// Its first thread has read what the arguments of a call point to. Returns whether the run goes on behind it.
    fn reads_of_call(&mut self, (id, function): (BlockId, &Function), call: &Call, read: &[(u64, usize)]) -> bool {
        let (pe, at) =
            (self.agents[self.kernels.blocks[id].agent].pe, self.kernels.blocks[id].launched.code.at(call.place));
        for &(address, bytes) in read {
            if let Ok((pe, span)) = self.at_address(pe, address, bytes) {
                self.plain_access(id, call.threads[0], (pe, span), How::Read, ("argument of a call", at));
            } else if let Err(fault) = self.with_block(id, |block, world| block.call_reads(world, call, address, bytes))
            {
                self.call_failed(id, *fault, function);
                return false;
            }
        }
        true
    }

    /// A block does something between two turns.
    fn with_block<T>(&mut self, id: BlockId, act: impl FnOnce(&mut Block, &mut KernelWorld<'_>) -> T) -> T {
        let running = &mut self.kernels.blocks[id];
        let (agent, code) = (running.agent, Arc::clone(&running.launched.code));
        let mut block = running.block.take().expect("its turn is over");
        let acted = act(&mut block, &mut KernelWorld::new(self, agent, id, &code));
        self.kernels.blocks[id].block = Some(block);
        acted
    }

    /// A call's own access to shared memory goes wrong.
    fn call_failed(&mut self, id: BlockId, mut fault: Fault, function: &Function) {
        fault.message.insert_str(0, &format!("{}: ", function.name));
        self.kernel_failed(self.kernels.blocks[id].agent, &fault);
        let block = self.kernels.blocks[id].block.as_mut().expect("its turn is over");
        block.goes_on_without(&fault); // where the run goes on
    }

    /// The address by which a PE reaches another's memory, or null.
    fn pointer(&self, me: PeId, of: u64, pe: PeId) -> u64 {
        let symmetric = |spot: &address::Spot| spot.alloc.external().is_none();
        match address::split(of).filter(symmetric) {
            Some(spot) if self.is_near(me, pe) => address::join(pe, spot.alloc, spot.offset).unwrap_or(0),
            _ => 0,
        }
    }

    /// A call that may take time begins, as work of its thread.
    fn begin_call(&mut self, id: BlockId, call: Call, what: Task, at: At) {
        let first = call.threads[0];
        let agent = self.agent_of_thread(id, first);
        self.races.thread_acts(agent);
        if call.threads.len() > 1 && what.is_collective() {
            self.threads_synchronize(id, &Sync::Meet { from: call.threads.clone(), into: vec![first] });
        }
        self.count_call_of_thread(agent, &what, at);
        let waits = self.wait_before_call(id, (agent, &call.threads), (&what, at));
        let (past, mark) = (self.past_of_threads(id, &call.threads), self.races.mark(agent));
        // a fence or a quiet in a loop that polls ends nothing that the loop waits for
        let orders = matches!(&what, Task::Op { op, .. } if matches!(op.effect(), Effect::Order(_)));
        let reads = orders.then(Vec::new);
        let completes = match &what {
            Task::Op { op, .. } => self.completes(op.effect()).is_some_and(|completes| completes != Completes::Nothing),
            _ => false,
        };
        if let Some(looking) = self.call_ends_loop(agent, id, &call, (&what, at)) {
            (self.agents[agent].call, self.agents[agent].at) = (what.name(), Some(at));
            self.kernels.blocks[id].loops.insert(agent, looking);
        }
        self.agents[agent].queue.push_back(Work { what, at, past, known: None, mark });
        self.kernels.blocks[id].calls.insert(first, Calling { function: call.external, call, reads, completes });
        if waits == Progress::Done {
            self.run_stream(agent);
        }
    }

    /// A thread performs an operation.
    pub(in crate::machine) fn perform_in_kernel(
        &mut self,
        agent: AgentId,
        op: &Op,
        values: &Values<'_>,
        at: At,
    ) -> Progress {
        let effect = op.effect();
        if let Effect::Transfer(Transfer { moves: Moves::Amo { .. } | Moves::Fetch, peer, remote, .. }) = effect {
            self.depend_on_polled_by(agent, (PeId(peer), remote)); // it is made again behind a change
        }
        if let Effect::Transfer(transfer) = &effect
            && self.fetches_in_loop(agent, transfer, (op.name(), at))
        {
            return Progress::Blocked;
        }
        self.begin(agent, op, effect, values, at, None)
    }

    /// An agent's operation has read a word, and has not changed it: if it is a thread's, a loop around its call waits for the word.
    #[inline]
    pub(in crate::machine) fn call_has_read(&mut self, agent: AgentId, at: (PeId, Span)) {
        if self.agents[agent].is_in_kernel() {
            self.call_of_thread_has_read(agent, at);
        }
    }

    fn call_of_thread_has_read(&mut self, agent: AgentId, (pe, word): (PeId, Span)) {
        let (id, first) = (self.block_of(agent), self.first_of(self.block_of(agent), agent));
        self.depend_on_polled_by(agent, (pe, word));
        if let Some(calling) = self.kernels.blocks[id].calls.get_mut(&first) {
            calling.reads = address::join(pe, word.alloc, word.start).ok().map(|at| vec![(at, word.len as u8)]);
        }
    }

    /// An operation looks at a word, for all threads that have made its call.
    fn depend_on_polled_by(&mut self, agent: AgentId, at: (PeId, Span)) {
        if !self.mode.needs.tracking || !self.in_chosen_step {
            return;
        }
        let (id, first) = (self.block_of(agent), self.first_of(self.block_of(agent), agent));
        let threads = self.kernels.blocks[id].calls.get(&first).map(|calling| calling.call.threads.clone());
        let at = Object::memory(at.0, at.1);
        threads.unwrap_or_default().into_iter().for_each(|thread| self.depend_on_polled(id, thread, &at));
    }

    /// Whether a thread may look at what its call returns.
    pub(in crate::machine) fn call_is_used(&self, agent: AgentId) -> bool {
        let id = self.block_of(agent);
        let calling = self.kernels.blocks[id].calls.get(&self.first_of(id, agent));
        let code = &self.kernels.blocks[id].launched.code;
        // other conventions return it through memory
        calling
            .is_none_or(|calling| calling.call.is_used || code.functions[calling.function].convention != Convention::C)
    }

    /// A thread's operation is over: its call is answered.
    pub(in crate::machine) fn call_of_thread_finished(&mut self, agent: AgentId) {
        let id = self.block_of(agent);
        let running = &mut self.kernels.blocks[id];
        if running.block.is_none() {
            return running.answered.push(agent);
        }
        if let Some(looking) = running.loops.remove(&agent) {
            return self.waits_behind_issue(agent, id, looking); // only what comes before its fetch has ended
        }
        let reply = std::mem::take(&mut self.agents[agent].reply);
        let value = match reply {
            Reply::Value(value) => value,
            Reply::Failed(error) => {
                let block = self.kernels.blocks[id].agent;
                let at = self.agents[agent].at.unwrap_or(error.at());
                return self.operation_failed(block, at, &error);
            }
            _ => 0,
        };
        self.answer_call(agent, value, None);
    }

    /// Answers the call of a thread's agent.
    fn answer_call(&mut self, agent: AgentId, value: u64, observed: Option<&[(u64, u8)]>) {
        let id = self.block_of(agent);
        let first = self.first_of(id, agent);
        let Some(Calling { call, function, reads, completes }) = self.kernels.blocks[id].calls.remove(&first) else {
            return;
        };
        if completes {
            self.completion_releases(id, first);
        }
        if self.mode.needs.tracking {
            let pasts = &mut self.kernels.blocks[id].pasts;
            call.threads.iter().for_each(|&thread| pasts.entry(thread).or_default().join(&self.agents[agent].past));
        }
        let observed = observed.or(reads.as_deref());
        let launched = Arc::clone(&self.kernels.blocks[id].launched);
        let function = &launched.code.functions[function];
        self.answer_thread(id, &call, function, value, observed);
    }

    /// Whether an agent of a thread is in a call.
    pub(in crate::machine) fn calls(&self, agent: AgentId) -> bool {
        let id = self.block_of(agent);
        self.kernels.blocks[id].calls.contains_key(&self.first_of(id, agent))
    }

    /// The number of the thread in its block whose agent this is.
    pub(super) fn first_of(&self, id: BlockId, agent: AgentId) -> usize {
        let threads = self.kernels.blocks[id].launched.agents();
        let local = u64::from((self.agents[agent].ordinal() - super::FIRST) / super::STREAMS);
        (local % (threads + 1)) as usize - 1
    }

    fn answer_thread(
        &mut self,
        id: BlockId,
        call: &Call,
        function: &Function,
        value: u64,
        observed: Option<&[(u64, u8)]>,
    ) {
        let value = function.widened(value);
        let result = match function.convention {
            Convention::C => value,
            Convention::Numba | Convention::References => {
                let bytes = function.result() as usize;
                let (result, value) = (call.argument(0), value.to_le_bytes());
                if bytes > 0 && !self.write_back((id, function), call, result, &value[..bytes]) {
                    return;
                }
                0
            }
        };
        let block = self.kernels.blocks[id].block.as_mut().expect("its turn is over");
        block.reply(call, result, observed);
        self.wake_block(id);
    }

    /// A call stores in its caller's memory. Returns whether it could.
    fn write_back(&mut self, (id, function): (BlockId, &Function), call: &Call, address: u64, bytes: &[u8]) -> bool {
        match self.with_block(id, |block, world| block.write_own(world, call, address, bytes)) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(fault) => {
                self.call_failed(id, *fault, function);
                return false;
            }
        }
        let Running { agent, ref launched, .. } = self.kernels.blocks[id];
        let at = launched.code.at(call.place);
        match self.at_address(self.agents[agent].pe, address, bytes.len()) {
            Ok((pe, span)) => {
                self.note_by_pointer(pe, span.alloc, true);
                self.plain_access(id, call.threads[0], (pe, span), How::Write, ("result of a call", at));
                self.write(pe, span, bytes);
                true
            }
            Err(why) => {
                self.call_refused(agent, call, at, &why);
                false
            }
        }
    }
}

/// # Looking at words
impl Machine {
    /// A thread looks at words, in one step. If it waits for some of them and none compares true, it looks again when one changes.
    pub(in crate::machine) fn look(&mut self, agent: AgentId, mut look: Box<Look>, at: At) -> Progress {
        self.kernels.polling.retain(|&other| other != agent);
        self.step.enabled_by.append(&mut look.changes);
        let pe = self.agents[agent].pe;
        let words: Vec<Span> = look.select.variables().map(|(_, span)| span).collect();
        let mut endings = Vec::new();
        for &word in &words {
            self.note_by_pointer(pe, word.alloc, false);
            self.observe(agent, pe, word, How::Wait, word.len, (look.call, at));
            endings.push(self.looks_by_call(agent, (pe, word)));
            self.depend_on_polled_by(agent, (pe, word));
        }
        self.in_chosen_step = false;
        let Some(selected) = look.select.look(|span| self.heap.load(pe, span)) else {
            let (past, known, mark) =
                (self.agents[agent].past.clone(), self.races.snapshot(agent), self.races.mark(agent));
            self.agents[agent].queue.push_front(Work { what: Task::Look(look), at, past, known, mark });
            self.agents[agent].state = State::Parked;
            self.kernels.polling.push(agent);
            return Progress::Blocked;
        };
        let size = look.select.dtype.size();
        words.iter().for_each(|&word| self.lint_look(agent, (pe, word)));
        for &index in &selected.indices {
            let word = Span { start: look.select.vars.start + index as usize * size, len: size, ..look.select.vars };
            let ending = words.iter().position(|other| *other == word).and_then(|number| endings[number]);
            self.hears_by_call(agent, ending, (pe, word), true);
        }
        let id = self.block_of(agent);
        if let Some(address) = look.select.indices {
            let bytes: Vec<u8> = selected.indices.iter().flat_map(|index| index.to_le_bytes()).collect();
            let first = self.first_of(id, agent);
            let calling = self.kernels.blocks[id].calls.remove(&first).expect("the thread calls");
            let launched = Arc::clone(&self.kernels.blocks[id].launched);
            let function = &launched.code.functions[calling.function];
            let is_written = self.write_back((id, function), &calling.call, address, &bytes);
            self.kernels.blocks[id].calls.insert(first, calling);
            if !is_written {
                return Progress::Blocked;
            }
        }
        // a test only looks, whatever it finds: in a loop around several, one may hold in each round
        let is_test = look.select.test;
        let reads: Vec<(u64, u8)> = (words.iter())
            .filter_map(|word| Some((address::join(pe, word.alloc, word.start).ok()?, word.len as u8)))
            .collect();
        self.answer_call(agent, selected.result, is_test.then_some(&reads[..]));
        Progress::Blocked // it is answered: nothing is to be answered again
    }

    /// Memory has changed: a thread that waits for some of several words looks again, if it looks at this.
    pub(super) fn look_again(&mut self, agent: AgentId, pe: PeId, span: Span) {
        self.kernels.polling.push(agent);
        let number = self.number();
        let Agent { pe: me, ref mut queue, ref mut state, .. } = self.agents[agent];
        let Some(Task::Look(look)) = queue.front_mut().map(|work| &mut work.what) else { return };
        if me != pe || !look.select.vars.overlaps(&span) {
            return;
        }
        if self.mode.needs.tracking {
            look.changes.push(number);
        }
        if matches!(state, State::Parked) {
            *state = State::Running;
            self.woken.push_back(agent);
        }
    }
}
