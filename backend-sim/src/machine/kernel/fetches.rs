//! Loops around an atomic fetch, `while (nvshmem_int_atomic_fetch(flag, pe) != 1);`, and around a swap that takes the word,
//! `while (nvshmem_int_atomic_compare_swap(lock, 0, 1, pe) != 0);`.
//!
//! A fetch is a transfer: fences put others before it, and it is issued in a step. The fetch that begins the loop is issued as every fetch is, and
//! the loop waits until what comes before it has been delivered. From then on it is a [wait](super::ends_loop): a fetch that finds the word in vain leaves
//! nothing behind, and the one that ends the loop may be issued just before it finds the word, or as early as the first. So
//! whatever other threads issue, fence or complete meanwhile keeps it from nothing, and it keeps nobody waiting.
//!
//! What the race detector is told is no more than what holds for the first fetch and for the last one. The first has been issued: what a fence puts before it has arrived. The
//! last has read the word, and the quiet of another thread may have come before its issue.

use onesided::DType;
use onesided::backend::{AmoOp, Moves, Span, Transfer};

use super::super::Machine;
use super::super::access::Test;
use super::super::ids::{AgentId, BlockId, PeId};
use super::super::relaxed::Asked;
use super::ends_loop::{Begins, Looking};
use crate::machine::Progress;
use crate::race::{How, Ticket};
use crate::request::Reply;

/// An atomic that a thread has issued in a loop.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    peer: PeId,
    /// The atomic, and its operands of this type.
    amo: (AmoOp, u64, u64),
    dtype: DType,
    ticket: Option<Ticket>,
}

impl Machine {
    /// A thread issues a transfer. If it fetches a word in a loop that does nothing else, the thread waits from now on. Returns whether it does.
    pub(super) fn fetches_in_loop(&mut self, thread: AgentId, transfer: &Transfer, asked: Asked) -> bool {
        let id = self.block_of(thread);
        let Some(mut looking) = self.kernels.blocks[id].loops.remove(&thread) else { return false };
        if !self.says_nothing(&looking.besides) {
            return false;
        }
        self.touch_scope(thread, transfer);
        let ticket = self.races.is_on().then(|| self.observe_issue(thread, transfer, asked));
        let Moves::Amo { op, value, cond } = transfer.moves else { unreachable!("it is an atomic") };
        let peer = PeId(transfer.peer);
        let (by_thread, own) = (self.promises.in_order && self.takes_turns_by_thread(thread), ticket.clone());
        looking.begins = Begins::Issued(Fetch { peer, amo: (op, value, cond), dtype: transfer.dtype, ticket });
        let before = self.await_issued(thread, |races, rank, ticket| {
            let comes_after =
                || !by_thread || ticket.zip(own.as_ref()).is_none_or(|(one, own)| one.is_issued_before(own));
            let in_order = rank.target == peer && rank.turn.is_some() && comes_after();
            in_order || rank.precedes_next(peer, races.has_fenced(thread, ticket), true)
        });
        match before {
            Progress::Done | Progress::DoneLater => self.waits_behind_issue(thread, id, looking),
            Progress::Blocked => _ = self.kernels.blocks[id].loops.insert(thread, looking),
        }
        true
    }

    /// What comes before the fetch of a thread has been delivered: it waits for the word.
    pub(super) fn waits_behind_issue(&mut self, thread: AgentId, id: BlockId, looking: Looking) {
        if let Begins::Issued(fetch) = &looking.begins {
            if let Some(ticket) = &fetch.ticket {
                self.races.arrived(thread, ticket, fetch.peer);
            }
            self.kernels.fetching.insert(thread, fetch.clone());
        }
        self.waits_in_loop(thread, id, looking);
    }

    /// The fetch of a thread has found what ends its loop, or its swap takes the word.
    pub(super) fn fetch_ends(&mut self, thread: AgentId, test: &Test) {
        let Test { pe, variable: word, .. } = *test;
        let fetch = self.kernels.fetching.remove(&thread).expect("it was issued when the loop began");
        let value = match fetch.amo.0 {
            AmoOp::Fetch => self.fetches(thread, (pe, word)),
            _ => self.takes(thread, (pe, word), &fetch),
        };
        self.in_chosen_step = false;
        self.record_waited(thread, word, test.comparison.dtype, value);
        self.agents[thread].answer(Reply::Value(value));
        self.finish(thread);
    }

    fn fetches(&mut self, thread: AgentId, (pe, word): (PeId, Span)) -> u64 {
        let (call, at) = self.agents[thread].asked();
        self.observe(thread, pe, word, How::AtomicRead, word.len, (call, at.expect("it has called")));
        self.lint_look(thread, (pe, word));
        let ending = self.looks_by_call(thread, (pe, word));
        self.hears_by_call(thread, ending, (pe, word), false);
        self.call_has_read(thread, (pe, word));
        self.heap.load(pe, word)
    }

    /// A thread's swap changes a word. Returns what it has found there.
    fn takes(&mut self, thread: AgentId, (pe, word): (PeId, Span), fetch: &Fetch) -> u64 {
        let &Fetch { amo: amo @ (op, value, cond), dtype, ref ticket, .. } = fetch;
        self.record_taken(thread, (pe, word), dtype, amo);
        if let Some(ticket) = ticket {
            self.observe_amo(ticket, amo, (pe, word), Some(thread));
        }
        self.apply_amo(pe, word, op, (value, cond), true)
    }
}
