//! Loops of kernels that do nothing but load a word, look at it by an atomic that mostly leaves it as it was, or by a call such as `nvshmem_signal_fetch`: waits,
//! as if by a call that waits. Plain loads of the PE's own memory too, where their races are no findings: elsewhere such a loop is a race, or has no end.
//!
//! A look in vain leaves nothing behind, so it is no step, and a loop that is ended by one update has one class. The race detector is
//! told of the access that ends it, and of a strong one also when the loop begins.
//!
//! The word may be one of the block's shared memory. Only the block's own threads change that, and only in a turn of the block: so behind each turn the
//! waits for it are looked at again.

use std::sync::Arc;

use onesided::backend::{Against, AmoOp, Effect, Moves, Span, Transfer, Wait};
use onesided::{At, Cmp, DType};
use onesided_ptx::{Access, AccessKind, Call, Compare, Looks, Type, Until, Within};

use super::super::access::{Awaited, Test, is_shared, shared_at};
use super::super::agent::{Condition, State, Task};
use super::super::ids::{AgentId, BlockId, PeId};
use super::super::tells::Tells;
use super::super::{Machine, Object, Touch};
use super::besides::Besides;
use super::call::Tests;
use super::fetches::Fetch;
use super::world::KernelWorld;
use crate::kernel::Convention;
use crate::race::{Heard, How};

/// The load of a word ends its loop.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Ending {
    pub(super) test: Test,
    /// Whether nothing depends on when.
    pub(super) is_steady: bool,
}

impl Ending {
    /// Whether it is this load.
    pub(super) fn is_load_of(&self, pe: PeId, word: Span) -> bool {
        (self.test.pe, self.test.variable) == (pe, word)
    }
}

/// A look to which a thread has come that does nothing else in a loop.
#[derive(Debug)]
pub(super) struct Looking {
    look: Glance,
    /// What ends the loop.
    condition: Condition,
    pub(super) besides: Besides,
    pub(super) begins: Begins,
}

/// When a thread begins to wait in its loop.
#[derive(Debug)]
pub(super) enum Begins {
    /// When it comes there.
    Now,
    /// With a step of its own: it issues what fetches the word.
    Issuing,
    /// It has issued that, and waits for what comes before it.
    Issued(Fetch),
}

/// How a thread looks at a word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Glance {
    Access(Access),
    Call { word: (PeId, Span), how: How, asked: (&'static str, At) },
}

impl Machine {
    /// A thread comes to an access. If it is in a loop that does nothing else: what ends the loop, and what else its rounds look at.
    pub(super) fn ends_loop(&mut self, thread: AgentId, id: BlockId, access: &Access) -> Option<Looking> {
        let takes = matches!(access.kind, AccessKind::Atomic(_));
        let me = self.agents[thread].pe;
        if !takes && access.kind != AccessKind::Load {
            return None;
        }
        if !access.order.is_strong() && !self.may_race(thread) {
            return None;
        }
        let block = self.kernels.blocks[id].block.as_ref().expect("its turn is over");
        let (access, looks) = block.ends_loop(access, self.promises.whole_words)?;
        let (pe, word) = match shared_at(self.block_name(id), access.address, access.bytes) {
            Some(shared) => shared,
            None => self.at_address(me, access.address, access.bytes.into()).ok()?,
        };
        // a load of another PE's memory may also see what its own PE has sent there; on another path it may see less
        let may_have_stored = || self.kernels.has_marks || self.may_race(thread);
        if pe != me && (self.paths.matter() || !takes && may_have_stored()) {
            return None;
        }
        if !self.may_wait((thread, access.thread as usize), id, (pe, word), &looks) {
            return None;
        }
        let mut condition = self.condition_at((pe, word), &looks.until)?;
        condition.takes = takes;
        condition.loads_more = match access.within {
            Within::Alone => false,
            Within::Low | Within::High => true,
            Within::First | Within::Inner | Within::Last => self.promises.whole_words,
        };
        let besides = self.besides((id, me), &looks)?;
        Some(Looking { look: Glance::Access(access), condition, besides, begins: Begins::Now })
    }

    /// The same of a thread that makes a call.
    pub(super) fn call_ends_loop(
        &mut self,
        thread: AgentId,
        id: BlockId,
        call: &Call,
        (what, at): (&Task, At),
    ) -> Option<Looking> {
        let (me, running) = (self.agents[thread].pe, &self.kernels.blocks[id]);
        let is_direct = running.launched.code.functions[call.external].convention == Convention::C;
        if !self.mode.needs.relaxed || !is_direct {
            return None; // in order, nobody chooses when it looks
        }
        let looks = running.block.as_ref().expect("its turn is over").call_ends_loop(call)?;
        let (mut how, mut tests, mut begins, mut takes) = (How::AtomicRead, None, Begins::Now, false);
        let word = match what {
            Task::Op { op, .. } => match op.effect() {
                Effect::FetchSignal { word } => (me, word),
                Effect::Transfer(Transfer { moves: Moves::Amo { op, .. }, peer, remote, .. }) => {
                    (begins, takes) = (Begins::Issuing, op != AmoOp::Fetch);
                    (PeId(peer), remote)
                }
                _ => return None,
            },
            Task::Look(look) => {
                let block = running.block.as_ref().expect("its turn is over");
                let own = |at: u64| block.read_own(call, at, 0).is_some() && !onesided_ptx::is_shared(at);
                if !look.asks_the_same(|number| own(call.argument(number))) {
                    return None;
                }
                let all = look.tests()?;
                let words = all.wait.vars;
                (how, tests) = (How::Wait, Some(all));
                (me, words)
            }
            _ => return None,
        };
        // a fetch that arrives may show others what has arrived before it
        let shows = matches!(begins, Begins::Issuing) && self.paths.matter();
        if shows || !self.may_wait((thread, call.threads[0]), id, word, &looks) {
            return None;
        }
        let (mut condition, word) = match tests {
            None => (self.condition_at(word, &looks.until)?, word),
            Some(tests) => {
                let first = tests.first;
                (until_returned(me, tests, &looks.until)?, (me, first))
            }
        };
        condition.takes = takes;
        let besides = self.besides((id, me), &looks)?;
        let look = Glance::Call { word, how, asked: (what.name(), at) };
        Some(Looking { look, condition, besides, begins })
    }

    /// Whether the thread may wait for a word at its look.
    fn may_wait(
        &mut self,
        (thread, number): (AgentId, usize),
        id: BlockId,
        (pe, word): (PeId, Span),
        looks: &Looks,
    ) -> bool {
        if looks.until.reloads && self.may_race(thread) {
            return false; // elsewhere in the loop it may find something else each time
        }
        // a change of what the thread has polled, in a loop around this one, may have woken it
        self.kernels.blocks[id].watches.is_over(number, &Object::memory(pe, word))
    }

    /// A wait for a word until a look that finds it ends its loop.
    fn condition_at(&self, word: (PeId, Span), until: &Until) -> Option<Condition> {
        condition_of(word, until, until.is_used && self.config.values_matter)
    }

    /// A thread begins to wait for what ends its loop.
    pub(super) fn waits_in_loop(&mut self, thread: AgentId, id: BlockId, looking: Looking) {
        let Looking { look, condition, besides, .. } = looking;
        if self.looks_before(thread, id, &look) && self.looks_besides(thread, id, besides) {
            if let Glance::Call { how, asked, .. } = look {
                for word in condition.variables().skip(1) {
                    self.observe(thread, condition.pe, word, how, word.len, asked);
                }
            }
            self.assume_of_wait(thread, &condition);
            self.wait_for(thread, condition);
        }
    }

    /// A thread looks before it waits: the look may race with what others do. Whether nothing was wrong with it where it is at shared memory.
    pub(super) fn looks_before(&mut self, thread: AgentId, id: BlockId, look: &Glance) -> bool {
        match look {
            Glance::Access(access) if onesided_ptx::is_shared(access.address) => {
                return self.looks_in_shared(thread, id, access);
            }
            Glance::Access(access) => {
                if let Ok(place) = self.at_address(self.agents[thread].pe, access.address, access.bytes.into()) {
                    self.looks_at_word(id, access, place);
                }
            }
            &Glance::Call { word: (pe, word), how, asked } => {
                self.observe(thread, pe, word, how, word.len, asked);
            }
        }
        true
    }

    fn looks_in_shared(&mut self, thread: AgentId, id: BlockId, access: &Access) -> bool {
        let mut block = self.kernels.blocks[id].block.take().expect("its turn is over");
        let (agent, code) = (self.kernels.blocks[id].agent, Arc::clone(&self.kernels.blocks[id].launched.code));
        let fault = block.looks(&mut KernelWorld::new(self, agent, id, &code), access);
        if let Some(fault) = &fault {
            self.kernel_failed(thread, fault);
            block.goes_on_without(fault); // where the run goes on
        }
        self.kernels.blocks[id].block = Some(block);
        fault.is_none()
    }

    /// Behind a turn of a block: its threads that wait for words of its shared memory may go on, or no longer go on.
    pub(super) fn recheck_block(&mut self, id: BlockId) {
        let (pe, _) = self.block_name(id);
        for at in 0..self.pes[pe].waiting.len() {
            let agent = self.pes[pe].waiting[at];
            let State::Waiting(condition) = &self.agents[agent].state else { unreachable!("it waits") };
            if is_shared(condition.wait.vars.alloc) && self.block_of(agent) == id {
                let holds = self.holds(agent, condition);
                self.goes_on_if(agent, holds);
            }
        }
    }

    /// A word of the shared memory of an agent's block.
    pub(in crate::machine) fn found_in_shared(&self, agent: AgentId, word: Span) -> u64 {
        let block = self.kernels.blocks[self.block_of(agent)].block.as_ref().expect("it is between two turns");
        block.found_in_shared(word.start as u64, word.len as u8)
    }

    /// What lies there, in words.
    pub(in crate::machine) fn named_in_shared(&self, agent: AgentId, word: Span) -> String {
        let block = self.kernels.blocks[self.block_of(agent)].block.as_ref();
        block.map_or_else(|| "shared memory".into(), |block| block.named_in_shared(word.start as u64))
    }

    /// A loop ends with the step that was chosen.
    pub(in crate::machine) fn loop_ends(&mut self, thread: AgentId, test: Test, is_steady: bool) {
        if is_steady {
            self.comes_after_what_told(thread, &test);
            if is_shared(test.variable.alloc) {
                self.looks_as_of(self.block_of(thread), thread, &test);
            }
        }
        self.ends_beside(thread);
        self.step.test = (self.mode.needs.tracking && !is_steady).then_some(Awaited::Word(test));
        self.pes[test.pe].waiting.retain(|&other| other != thread);
        self.agents[thread].set(State::Running);
        self.kernels.ending = Some(Ending { test, is_steady });
        match (self.calls(thread), self.agents[thread].queue.is_empty()) {
            (true, false) => self.perform_stream_op(thread),
            (true, true) => self.fetch_ends(thread, &test), // it was issued when the loop began
            (false, _) => self.thread_goes_on(thread),
        }
        self.kernels.ending = None;
        self.kernels.passed.remove(&thread);
    }

    /// One of several words is so that a loop can end, and the thread goes on to the next. It has not looked at any of them until it looks at all.
    pub(in crate::machine) fn passes_in_loop(&mut self, thread: AgentId, test: Test, is_steady: bool) {
        if is_steady {
            self.comes_after_what_told(thread, &test);
        }
        self.kernels.passed.entry(thread).or_default().push(Ending { test, is_steady });
    }

    /// A call of an agent looks at a word. If that ends a loop: how.
    pub(in crate::machine) fn looks_by_call(&mut self, agent: AgentId, (pe, word): (PeId, Span)) -> Option<Ending> {
        let is_it = |ending: &&Ending| ending.is_load_of(pe, word);
        let passed = self.kernels.passed.get(&agent).and_then(|passed| passed.iter().find(is_it)).copied();
        let ending = self.kernels.ending.take_if(|ending| ending.is_load_of(pe, word)).or(passed);
        if !ending.is_some_and(|ending| ending.is_steady) {
            self.touch_memory(pe, word, Touch::Read);
        }
        ending
    }

    /// An agent learns what a word tells at which it has looked by a call. `plain`: also from a put that wrote the word.
    pub(in crate::machine) fn hears_by_call(
        &mut self,
        agent: AgentId,
        ending: Option<Ending>,
        (pe, word): (PeId, Span),
        plain: bool,
    ) {
        match ending {
            Some(ending) => self.learn_seen(agent, &ending.test, plain),
            None => self.races.acquire(agent, pe, word, plain),
        }
    }

    /// What a word tells an agent that reads it strongly.
    pub(super) fn heard(&mut self, agent: AgentId, ending: Option<Ending>, (pe, word): (PeId, Span)) -> Heard {
        let told =
            ending.and_then(|ending| self.assumed.as_ref().filter(|_| self.mode.needs.tracking)?.told(&ending.test));
        match told {
            Some(None) if self.races.knows_last_write(agent, pe, word) => Heard::new(),
            None | Some(None) => self.races.heard(agent, pe, word),
            Some(Some(update)) => {
                let Tells { told, by_kernels, nearby, .. } = &update.tells;
                self.races.heard_since(agent, (pe, word), (told.clone(), by_kernels.clone()), nearby.as_deref())
            }
        }
    }

    /// The same, where it reads what the word of a PE told earlier.
    pub(super) fn heard_as_of(&mut self, agent: AgentId, pe: PeId, tells: &Tells) -> Heard {
        let Tells { told, by_kernels, nearby, .. } = tells;
        self.races.heard_of(agent, pe, (told.clone(), by_kernels.clone()), nearby.as_deref())
    }
}

/// A wait for a word until this is so. `returns`: whether the value that ends it may matter.
pub(super) fn condition_of((pe, word): (PeId, Span), until: &Until, returns: bool) -> Option<Condition> {
    let Until { compare, against, view, ty, .. } = *until;
    let (dtype, compared) = (unsigned(word.len)?, dtype_of(ty)?);
    let wait = Wait { vars: word, dtype, cmp: cmp_of(compare), against: Against::One(against), signal: false };
    Some(Condition::of_loop(pe, wait, (view, compared), returns))
}

/// A wait for words until a test of them returns what ends a loop: that they compare so, or that the only one does not. `None`: the loop asks something else.
fn until_returned(pe: PeId, tests: Tests, until: &Until) -> Option<Condition> {
    let Tests { wait, values, returns, results, may_find_in_vain, .. } = tests;
    let result = Span { len: returns.bytes() as usize, ..wait.vars };
    let Test { comparison, wanted, .. } = condition_of((pe, result), until, false)?.test();
    let mut condition = Condition::new(pe, wait, values, false);
    condition.is_loop = true;
    match results.map(|result| comparison.holds(result, wanted)) {
        [false, true] => Some(condition),
        [true, false] if may_find_in_vain => Some(condition.negated()),
        _ => None,
    }
}

/// The integers that a comparison is of. Bits are compared for equality only.
fn dtype_of(ty: Type) -> Option<DType> {
    Some(match ty {
        Type::S16 => DType::I16,
        Type::S32 => DType::I32,
        Type::S64 => DType::I64,
        Type::U16 | Type::B16 => DType::U16,
        Type::U32 | Type::B32 => DType::U32,
        Type::U64 | Type::B64 => DType::U64,
        _ => return None,
    })
}

/// A word of so many bytes.
fn unsigned(bytes: usize) -> Option<DType> {
    [DType::U8, DType::U16, DType::U32, DType::U64].into_iter().find(|dtype| dtype.size() == bytes)
}

fn cmp_of(compare: Compare) -> Cmp {
    match compare {
        Compare::Eq => Cmp::Eq,
        Compare::Ne => Cmp::Ne,
        Compare::Lt => Cmp::Lt,
        Compare::Le => Cmp::Le,
        Compare::Gt => Cmp::Gt,
        Compare::Ge => Cmp::Ge,
    }
}
