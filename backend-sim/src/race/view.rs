//! [`View`]: what the detector keeps of one agent.

use std::rc::Rc;

use onesided::At;

use super::{Began, Clock, Issue, Lane};
use crate::machine::{AgentId, PeId, Table};

/// An agent, as the detector sees it.
#[derive(Debug)]
pub(super) struct View {
    pub(super) pe: PeId,
    pub(super) kind: Kind,
    /// Of a thread of a kernel, its block; or its cluster, and the number of its block there.
    pub(super) block: Option<AgentId>,
    pub(super) rank: u32,
    /// Of a bulk copy, the thread that makes it, and when.
    pub(super) made_by: Option<(AgentId, u64)>,
    /// Of a block, how often its threads have all met; of a thread, how often they had when it last learned what its block knows.
    pub(super) met: u32,
    /// Of a block: when its threads met last, and the time before.
    pub(super) met_at: [u64; 2],
    pub(super) clock: Rc<Clock>,
    /// What its next transfer knows, until that changes.
    pub(super) issue: Option<Rc<Issue>>,
    /// The number of the mark under which it acts; 0: none.
    pub(super) mark: u32,
    /// Of a block, what its kernel comes after.
    pub(super) began: Option<Rc<Began>>,
    /// Its last own access, and the call of that, or of its last transfer.
    pub(super) last: u64,
    pub(super) site: u32,
    /// Of a thread of a kernel: whether it has accessed shared memory since.
    pub(super) acted: bool,
    /// Its last blocking transfer or store, and the last of these that a quiet has claimed. Of an agent of a kernel, non-blocking ones too.
    pub(super) issued: u64,
    pub(super) claimed: u64,
    /// Its last store through a peer pointer.
    pub(super) stored: u64,
    /// Of an agent of a kernel, its last store to any PE's memory; of a block, that of its threads.
    pub(super) wrote: u64,
    /// Its last fence, of a thread of a kernel: when, and where.
    pub(super) fence: Option<(u64, At)>,
    /// For a stream or an agent of a kernel: its last operation to each PE that others of its scope can complete or order, and what it knew then. Plain
    /// stores do not count. Without a PE: the last non-blocking get, which fences do not order.
    pub(super) sent: Vec<(Option<PeId>, u64, Rc<Issue>)>,
    /// Its last transfer of each lane to each PE.
    pub(super) previous: Vec<(PeId, Lane, u64)>,
    /// Its non-blocking puts since the last moment that everybody knows: when, and to which PE.
    pub(super) nbi_puts: Vec<(u64, PeId)>,
    /// Its last non-blocking operation.
    pub(super) nbi: u64,
    /// Its calls that others synchronize with, from the last that everybody knows: when, which, and the PE that is signalled.
    pub(super) log: Vec<(u64, u32, Option<PeId>)>,
}

/// Whose operations a quiet or fence is about: see the machine's scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    /// A stream, by its number among the PE's.
    Stream(u32),
    /// A block or thread of a kernel on this stream.
    Kernel(u32),
}

impl Kind {
    /// Which of the PE's scopes it issues in.
    pub(super) fn scope(self) -> usize {
        match self {
            Kind::Host => 0,
            Kind::Stream(_) => 1,
            Kind::Kernel(_) => 2,
        }
    }
}

impl View {
    /// `nothing`: the clock of one who knows nothing.
    pub(super) fn new(pe: PeId, kind: Kind, nothing: &Rc<Clock>) -> View {
        View {
            pe,
            kind,
            block: None,
            rank: 0,
            made_by: None,
            met: 0,
            met_at: [0; 2],
            clock: Rc::clone(nothing),
            issue: None,
            mark: 0,
            began: None,
            last: 0,
            acted: false,
            site: 0,
            issued: 0,
            claimed: 0,
            stored: 0,
            wrote: 0,
            fence: None,
            sent: Vec::new(),
            previous: Vec::new(),
            nbi_puts: Vec::new(),
            nbi: 0,
            log: Vec::new(),
        }
    }

    /// Back to the start, keeping allocations.
    pub(super) fn reset(&mut self, pe: PeId, kind: Kind, nothing: &Rc<Clock>) {
        // field by field, as many threads of kernels begin in each run; none can be forgotten
        let View {
            pe: of,
            kind: is,
            block,
            rank,
            made_by,
            met,
            met_at,
            clock,
            issue,
            mark,
            began,
            last,
            site,
            acted,
            issued,
            claimed,
            stored,
            wrote,
            fence,
            sent,
            previous,
            nbi_puts,
            nbi,
            log,
        } = self;
        (*of, *is) = (pe, kind);
        (*block, *rank, *made_by) = (None, 0, None);
        (*met, *met_at) = (0, [0; 2]);
        if !Rc::ptr_eq(clock, nothing) {
            *clock = Rc::clone(nothing);
        }
        (*issue, *began) = (None, None);
        (*mark, *last, *site, *acted) = (0, 0, 0, false);
        (*issued, *claimed, *stored, *wrote) = (0, 0, 0, 0);
        (*fence, *nbi) = (None, 0);
        sent.clear();
        previous.clear();
        nbi_puts.clear();
        log.clear();
    }

    pub(super) fn is_host(&self) -> bool {
        self.kind == Kind::Host
    }

    pub(super) fn is_in_kernel(&self) -> bool {
        matches!(self.kind, Kind::Kernel(_))
    }

    /// The stream, or that of the kernel; `None` for the host.
    pub(super) fn stream(&self) -> Option<u32> {
        match self.kind {
            Kind::Host => None,
            Kind::Stream(number) | Kind::Kernel(number) => Some(number),
        }
    }

    /// What a quiet or fence is about.
    pub(super) fn scope(&self) -> (PeId, usize) {
        (self.pe, self.kind.scope())
    }

    /// It has issued something to a PE, or a get.
    pub(super) fn sends(&mut self, to: Option<PeId>, time: u64, issue: &Rc<Issue>) {
        match self.sent.iter_mut().find(|(pe, ..)| *pe == to) {
            Some(sent) => (sent.1, sent.2) = (time, Rc::clone(issue)),
            None => self.sent.push((to, time, Rc::clone(issue))),
        }
    }

    /// Its last call until a moment that others synchronize with.
    pub(super) fn last_synchronization(&self, upto: u64) -> Option<u32> {
        self.log.iter().rev().find(|(time, ..)| *time <= upto).map(|(_, site, _)| *site)
    }

    /// The first call behind a moment by which somebody of the PE `reader` may know of that moment, and the PE that the call signals. `upto`: the last
    /// moment that is known there. If the last known call signals `pe` or the reader, only calls that signal the same PE count.
    pub(super) fn tells(&self, behind: u64, upto: u64, [pe, reader]: [PeId; 2]) -> Option<(u32, Option<PeId>)> {
        let mut later = self.log.iter().filter(|(time, ..)| *time > behind).map(|&(time, site, to)| (time, (site, to)));
        let last = later.clone().rfind(|(time, _)| *time <= upto).and_then(|(_, (_, to))| to);
        let signalled = last.filter(|to| *to == pe || *to == reader);
        later.find(|(_, (_, to))| signalled.is_none() || *to == signalled).map(|(_, call)| call)
    }

    /// Somebody waits for a put of it, which is a call that others synchronize with only then.
    pub(super) fn synchronized(&mut self, time: u64, site: u32, to: PeId) {
        let at = self.log.partition_point(|(other, ..)| *other < time);
        if self.log.get(at).is_none_or(|(other, ..)| *other != time) {
            self.log.insert(at, (time, site, Some(to)));
        }
    }

    /// Where the non-blocking put went that it issued at a moment.
    pub(super) fn nbi_put_to(&self, time: u64) -> Option<PeId> {
        self.nbi_puts.binary_search_by_key(&time, |&(time, _)| time).ok().map(|at| self.nbi_puts[at].1)
    }

    /// What it knew when it last acted, or, of a thread, what its block has learned since.
    pub(super) fn last_clock<'a>(&'a self, agents: &'a Table<AgentId, View>) -> &'a Clock {
        let block = self.block.map(|block| &agents[block]).filter(|block| block.met != self.met);
        &block.unwrap_or(self).clock
    }

    /// What it knows, to be added to.
    pub(super) fn clock(&mut self) -> &mut Clock {
        self.issue = None;
        Rc::make_mut(&mut self.clock)
    }

    #[inline]
    pub(super) fn previous(&mut self, pe: PeId, lane: Lane, time: u64) -> u64 {
        for (to, of, last) in &mut self.previous {
            if (*to, *of) == (pe, lane) {
                return std::mem::replace(last, time);
            }
        }
        self.previous.push((pe, lane, time));
        0
    }
}
