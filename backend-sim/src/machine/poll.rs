//! Polling: a host that makes a call again and again until it reads something new.
//!
//! A poll is *in vain* if the host has made the same call before, has done nothing since that others can see, and nothing has
//! changed that it has read since. An exhaustive search takes no poll in vain: there would be no end of them, and a loop that only polls
//! would do the same again. The next poll depends on all that the host has read in the round: any change of that lets it go on.
//!
//! **Not every call that is made again is a loop.** A host may fetch a word twice, or count its polls. So it is tried: a host polls up to [`MOST`] times
//! in vain before anything else happens. If it goes on after some, it is given so much [`Patience`]: these polls
//! are steps like others from then on, and the search starts again. If not, it is left alone until something changes. If only such hosts
//! are left, they poll on, up to [`ALONE`] times. If none goes on, the run is bounded, and no deadlock.
//!
//! **Plain reads** are polls where their races are no findings, also because they are marked: then a loop around them may end. Elsewhere such a loop is a race,
//! or has no end. A read of several elements in pieces is no poll.

use onesided::At;
use onesided::backend::{Effect, Moves, Op, Span, Until};

use super::agent::{Agent, Pending, State};
use super::ids::{AgentId, PeId};
use super::{KEPT, Machine, Object, Touch};
use crate::request::Call;

/// So often a host is let to poll in vain, to see whether it goes on.
const MOST: u32 = 32;

/// So often, where nothing else can happen.
const ALONE: u32 = 250;

/// What a host has called and read since it last did anything that others can see.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    /// Its polls, each with how much was read before it.
    calls: Vec<(Poll, usize)>,
    reads: Vec<Read>,
    /// If the call that it makes now is one that it has made before: what it has read since.
    round: Vec<Read>,
    /// The call that it has made again last, what it had read before that, and how often in a row that was in vain.
    repeated: Option<Poll>,
    before: Vec<Found>,
    times: u32,
    /// Whether that call is a choice only because it is made again.
    remote: bool,
    /// Whether the host is let to poll on, to see whether it goes on. Such polls depend on nothing.
    tried: bool,
}

/// A call at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Poll {
    asks: Asks,
    at: At,
}

/// What a poll asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// An operation that returns what it reads.
    Op(Op),
    /// Loads from a PE's memory.
    Load(PeId, Span),
}

/// Memory, and what was there.
type Found = (PeId, Span, Box<[u8]>);

#[derive(Debug)]
struct Read {
    found: Found,
    /// Steps since, behind which something else was there.
    changes: Vec<usize>,
}

/// How often polls are taken although they are in vain, because hosts went on after so many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    with: Vec<(PeId, Poll, u32)>,
    grown: bool,
}

/// What a call means for a loop that polls.
enum Means {
    /// It is a poll: it reads what others may change meanwhile.
    Poll(Asks),
    /// It does nothing that others can see.
    Nothing,
    /// It may.
    Effect,
}

impl Patience {
    /// Whether it has grown since this was last asked.
    pub(crate) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.grown)
    }

    fn of(&self, pe: PeId, poll: &Poll) -> u32 {
        let with = self.with.iter().find(|(of, other, _)| (of, other) == (&pe, poll));
        with.map_or(0, |(.., times)| *times)
    }

    fn grow(&mut self, pe: PeId, poll: Poll, times: u32) {
        if times > self.of(pe, &poll) {
            self.with.retain(|(of, other, _)| (*of, *other) != (pe, poll));
            self.with.push((pe, poll, times));
            self.grown = true;
        }
    }
}

impl Polls {
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.reads.clear();
        self.round.clear();
        self.before.clear();
        (self.repeated, self.times, self.tried) = (None, 0, false);
    }

    /// The call that is made again, if it is, and whether that is in vain.
    fn again(&self) -> Option<(&Poll, bool)> {
        let (poll, _) = self.calls.last().filter(|_| !self.round.is_empty())?;
        Some((poll, self.round.iter().all(|read| read.changes.is_empty())))
    }

    /// Whether it has polled in vain as often as it may.
    fn has_polled_enough(&self, most: u32) -> bool {
        self.times >= most && self.again().is_some_and(|(_, in_vain)| in_vain)
    }
}

/// `plainly`: whether plain accesses may race, so that a loop of them may end.
fn meaning(call: &Call<'_>, plainly: bool) -> Means {
    match call {
        Call::Issue { op, stream: None, .. } => match op.effect() {
            Effect::FetchSignal { .. } => Means::Poll(Asks::Op(**op)),
            Effect::Transfer(transfer) => match transfer.moves {
                Moves::Amo { .. } if transfer.until == Until::Delivered => Means::Poll(Asks::Op(**op)),
                Moves::Fetch if plainly && transfer.until == Until::Delivered => Means::Poll(Asks::Op(**op)),
                Moves::Get { .. } | Moves::Fetch if transfer.until == Until::Delivered => Means::Nothing,
                _ => Means::Effect,
            },
            Effect::Order(_) => Means::Nothing,
            Effect::Fill { .. } | Effect::Wait(_) | Effect::Collective(_) => Means::Effect,
        },
        Call::Read { pe, src, .. } if plainly => Means::Poll(Asks::Load(PeId(*pe), *src)),
        Call::Read { .. } | Call::MulticastRead { .. } | Call::IsInitialized | Call::TeamMembers(_) => Means::Nothing,
        _ => Means::Effect,
    }
}

/// # What a host does
impl Machine {
    /// A host makes a call, in a tracked run. Returns whether it is a poll that is made again.
    pub(super) fn polls_again(&mut self, host: AgentId, call: &Call<'_>, at: At) -> bool {
        let in_pieces = matches!(call, Call::Read { src, dtype, .. } if self.is_in_pieces(*src, *dtype));
        let poll = match meaning(call, !in_pieces && self.polls_plainly(host)) {
            Means::Poll(asks) => Poll { asks, at },
            Means::Nothing => {
                self.agents[host].polls.tried = false;
                return false;
            }
            Means::Effect => {
                self.goes_on(host);
                self.agents[host].polls.clear();
                return false;
            }
        };
        let known = self.agents[host].polls.calls.iter().position(|(other, _)| *other == poll);
        let Some(again) = known else {
            let target = match poll.asks {
                Asks::Load(pe, span) => (pe, span),
                Asks::Op(op) => match op.effect() {
                    Effect::Transfer(transfer) => (PeId(transfer.peer), transfer.remote),
                    Effect::FetchSignal { word } => (self.agents[host].pe, word),
                    _ => unreachable!("it is a poll"),
                },
            };
            let is_old = |(pe, span, _): &Found| (*pe, *span) == target;
            if !self.agents[host].polls.before.iter().any(is_old) {
                self.goes_on(host);
                self.agents[host].polls.tried = false;
            }
            let polls = &mut self.agents[host].polls;
            polls.calls.push((poll, polls.reads.len()));
            return false;
        };
        if self.agents[host].polls.repeated != Some(poll) {
            self.goes_on(host);
        }
        let remote = !self.is_choice(host, call);
        let polls = &mut self.agents[host].polls;
        let (_, read) = polls.calls[again];
        polls.calls.truncate(again);
        polls.round = polls.reads.split_off(read);
        let is_known = polls.round.iter().map(|read| &read.found).eq(&polls.before);
        if !is_known {
            (polls.times, polls.tried) = (0, false); // the round before has read something new
            polls.before = polls.round.iter().map(|read| read.found.clone()).collect();
        }
        polls.calls.push((poll, polls.reads.len()));
        (polls.repeated, polls.remote) = (Some(poll), remote);
        self.agents[host].call = call.name();
        true
    }

    /// Whether a host's plain reads are polls too: where their races are no findings, a loop of them may end. Where what a host reads depends on
    /// its path, it may see a change later than memory does.
    fn polls_plainly(&self, host: AgentId) -> bool {
        self.may_race(host) && !self.paths.matter()
    }

    /// A host does something else than before. If it has polled in vain, that was no loop without an end.
    fn goes_on(&mut self, host: AgentId) {
        self.only_polls = false;
        let Agent { pe, polls, .. } = &mut self.agents[host];
        let times = std::mem::take(&mut polls.times);
        if let Some(poll) = polls.repeated {
            self.patience.grow(*pe, poll, times);
        }
    }

    /// A host's plain access has read memory.
    #[inline]
    pub(super) fn has_read_plainly(&mut self, host: AgentId, pe: PeId, span: Span) {
        if self.mode.needs.tracking {
            match self.polls_plainly(host) {
                true => self.has_polled(host, pe, span, false),
                false => self.has_read(host, pe, span),
            }
        }
    }

    /// A host's call has read memory.
    pub(super) fn has_read(&mut self, host: AgentId, pe: PeId, span: Span) {
        if self.mode.needs.tracking && self.agents[host].is_host() && span.len <= KEPT {
            let found = (pe, span, self.heap.bytes(pe, span).into());
            self.agents[host].polls.reads.push(Read { found, changes: Vec::new() });
        }
    }

    /// A poll has read a word, in the step that was chosen. `changes`: whether it also changes it.
    pub(super) fn has_polled(&mut self, host: AgentId, pe: PeId, word: Span, changes: bool) {
        if !self.mode.needs.tracking || self.agents[host].is_in_kernel() {
            return;
        }
        let Agent { pe: of, polls, .. } = &mut self.agents[host];
        if let Some((poll, in_vain)) = polls.again() {
            let is_patient = polls.times < self.patience.of(*of, poll);
            polls.times = if in_vain { polls.times + 1 } else { 0 };
            polls.tried = in_vain && !is_patient;
            let round = std::mem::take(&mut polls.round);
            for read in round.into_iter().filter(|_| !is_patient) {
                self.touch(Object::memory(read.found.0, read.found.1), Touch::Read);
                self.step.enabled_by.extend(read.changes);
            }
        }
        if self.agents[host].polls.tried {
            self.step.touched.clear(); // it reads again what it has read, before anything has changed
            self.step.enabled_by.clear();
        }
        if changes {
            self.goes_on(host);
            return self.agents[host].polls.clear();
        }
        self.has_read(host, pe, word);
    }

    /// Memory has changed: polls of who has read it are no longer in vain.
    pub(super) fn changed(&mut self, pe: PeId, span: Span) {
        let number = self.number();
        let Machine { heap, agents, pes, .. } = self;
        for state in pes.iter() {
            let Polls { reads, round, .. } = &mut agents[state.host].polls;
            let changed = |read: &&mut Read| {
                let (of, read, bytes) = &read.found;
                *of == pe && read.overlaps(&span) && *heap.bytes(pe, *read) != **bytes
            };
            reads.iter_mut().chain(round).filter(changed).for_each(|read| read.changes.push(number));
        }
    }
}

/// # What a search asks
impl Machine {
    /// The poll that a choice is, if the host makes it again, and whether it is in vain.
    fn poll_again(&self, index: usize) -> Option<(&Agent, &Poll, bool)> {
        let agent = &self.agents[*self.ready.get(index)?];
        let (poll, in_vain) = agent.polls.again().filter(|_| matches!(agent.state, State::Pending(Pending::Call)))?;
        Some((agent, poll, in_vain))
    }

    /// Whether a choice is a poll that need not be taken while anything else can happen.
    pub(crate) fn is_in_vain(&self, index: usize) -> bool {
        self.poll_again(index)
            .is_some_and(|(agent, poll, in_vain)| in_vain && agent.polls.times >= self.patience.of(agent.pe, poll))
    }

    /// Whether a choice is a step of a poll that nothing depends on: its issue, if it reads later, or any step while it is tried
    /// whether the host goes on.
    pub(super) fn is_idle_poll(&self, index: usize) -> bool {
        let Some(&host) = self.ready.get(index) else {
            let transfer = self.flight.get(self.flight.units[index - self.ready.len()].transfer);
            return transfer.waiter.is_some_and(|(host, _)| self.is_tried(host));
        };
        let agent = &self.agents[host];
        let is_taken =
            |(poll, in_vain): (&Poll, bool)| !in_vain || agent.polls.times < self.patience.of(agent.pe, poll);
        let issues = || agent.polls.remote && agent.polls.again().is_some_and(is_taken);
        matches!(agent.state, State::Pending(Pending::Call)) && (issues() || self.is_tried(host))
    }

    /// Whether a host polls to see whether it goes on.
    pub(super) fn is_tried(&self, host: AgentId) -> bool {
        let Agent { pe, polls, .. } = &self.agents[host];
        match polls.again() {
            None => polls.tried,
            Some((poll, in_vain)) => in_vain && (self.patience.of(*pe, poll)..self.most_polls()).contains(&polls.times),
        }
    }

    /// Whether nothing has happened for a time but polls in vain.
    pub(crate) fn has_only_polled(&self) -> bool {
        self.only_polls
    }

    /// How often a host is let to poll in vain.
    fn most_polls(&self) -> u32 {
        if self.only_polls { ALONE } else { MOST }
    }

    /// Whether nothing can be chosen but polls that are not taken again. Before it says so, the hosts are let to poll more often.
    pub(crate) fn is_bounded(&mut self) -> bool {
        let is_left = |machine: &Machine, most| {
            let has_enough =
                |index| machine.poll_again(index).is_some_and(|(agent, ..)| agent.polls.has_polled_enough(most));
            machine.flight.units.is_empty() && (0..machine.ready.len()).all(has_enough)
        };
        self.only_polls |= is_left(self, MOST);
        self.only_polls && is_left(self, ALONE)
    }

    /// How often polls in vain are taken in the run that begins.
    pub(crate) fn be_patient(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Gives back what was given, and what the run has added.
    pub(crate) fn take_patience(&mut self) -> Patience {
        std::mem::take(&mut self.patience)
    }

    /// What a host waits for that has polled enough, in words.
    pub(super) fn polls_report(&self, agent: &Agent) -> Option<String> {
        let polls = Some(&agent.polls).filter(|polls| polls.has_polled_enough(MOST))?;
        let mut words: Vec<String> =
            polls.round.iter().map(|Read { found: (pe, span, _), .. }| format!("{span} on PE {}", pe.0)).collect();
        words.dedup();
        Some(format!("a change of {}", words.join(" or of ")))
    }
}
