//! The reference: the memory model as a transition system on a few words, as plainly as it can be said.
//!
//! It shares nothing with the simulator. Every operation is issued by a step of its own, every element of a transfer is
//! read and delivered by steps of its own, and all orders of all steps are visited. It knows `spec` only.

use std::collections::BTreeSet;

/// A straight-line program: what each agent does, in order. Agent `i` below `pes` is the host of PE `i`; the others are
/// streams, all made before anything is issued.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) pes: usize,
    pub(crate) words: usize,
    pub(crate) agents: Vec<Agent>,
}

/// A host or a stream.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) pe: usize,
    pub(crate) ops: Vec<Op>,
}

/// One operation; `to` and `from` are PEs, `dst` and `src` words of symmetric memory.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    P {
        to: usize,
        dst: usize,
        value: u8,
    },
    PeerStore {
        to: usize,
        dst: usize,
        value: u8,
    },
    Put {
        to: usize,
        dst: usize,
        src: usize,
        len: usize,
        nbi: bool,
        signal: Option<Update>,
    },
    Get {
        from: usize,
        dst: usize,
        src: usize,
        len: usize,
        nbi: bool,
    },
    G {
        from: usize,
        src: usize,
    },
    Add {
        to: usize,
        dst: usize,
        value: u8,
        fetch: bool,
    },
    Signal {
        to: usize,
        update: Update,
    },
    Read {
        src: usize,
        len: usize,
    },
    Write {
        dst: usize,
        value: u8,
    },
    Fence,
    Quiet,
    Flush,
    /// Until my word is at least 1.
    Wait {
        word: usize,
    },
    /// The world's next collective, entered by hosts.
    Enter(Collective),
}

/// What all hosts enter together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    Sync,
    Barrier,
    Broadcast { root: usize, dst: usize, src: usize, len: usize },
}

/// A signal: sets the word, or adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Update {
    pub(crate) word: usize,
    pub(crate) value: u8,
    pub(crate) add: bool,
}

/// What each agent saw, then every PE's memory in the end; `None` for a deadlock.
pub(crate) type Outcome = Option<Vec<Vec<u8>>>;

/// Where everything stands. Transfers leave the list when they are complete.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    memory: Vec<u8>,
    issued: Vec<usize>,
    /// Collectives that each host has entered.
    entered: Vec<usize>,
    saw: Vec<Vec<u8>>,
    /// Fences that each scope has issued.
    fences: Vec<u8>,
    flying: Vec<Transfer>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Transfer {
    scope: Scope,
    kind: Kind,
    target: usize,
    /// Fences of the scope before it.
    fences: u8,
    parts: Vec<Part>,
    signal: Option<(usize, Update)>,
    /// The agent whose call ends with it.
    caller: Option<usize>,
    /// The agent whose quiet waits for it: the first that came.
    quiet: Option<usize>,
    /// The agents whose flush waits for its source, as bits.
    flush: u16,
}

/// Who is answerable for a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// Two for each PE: its host and its streams.
    Of(usize),
    /// The collective with this number; no fence and no quiet is about it.
    Collective(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Put,
    Get,
    /// Of one value, to the caller.
    Fetch,
    Add(u8),
}

/// One element on its way. Places are indices of the memory of all PEs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    src: usize,
    dst: usize,
    /// Read from the source of a put.
    value: Option<u8>,
    delivered: bool,
}

impl Transfer {
    fn is_ordered_by_fences(&self) -> bool {
        matches!(self.scope, Scope::Of(_)) && !matches!(self.kind, Kind::Get | Kind::Fetch)
    }

    fn has_unread_source(&self) -> bool {
        self.kind == Kind::Put && self.parts.iter().any(|part| part.value.is_none())
    }

    fn is_complete(&self) -> bool {
        self.signal.is_none() && self.parts.iter().all(|part| part.delivered)
    }
}

/// The outcomes of all interleavings; `None` when there are more than `limit` states.
pub(crate) fn outcomes(program: &Program, limit: usize) -> Option<BTreeSet<Outcome>> {
    let program = &program.with_barriers_taken_apart();
    let agents = program.agents.len();
    let start = State {
        memory: vec![0; program.pes * program.words],
        issued: vec![0; agents],
        entered: vec![0; program.pes],
        saw: vec![Vec::new(); agents],
        fences: vec![0; 2 * program.pes],
        flying: Vec::new(),
    };
    let mut outcomes = BTreeSet::new();
    let mut visited = BTreeSet::from([start.clone()]);
    let mut to_visit = vec![start];
    while let Some(state) = to_visit.pop() {
        let next = program.next(&state);
        if next.is_empty() {
            assert!(state.flying.is_empty(), "what is in flight arrives");
            let ended = (0..agents).all(|agent| program.has_ended(&state, agent));
            let memory = state.memory.chunks(program.words).map(<[u8]>::to_vec);
            outcomes.insert(ended.then(|| state.saw.iter().cloned().chain(memory).collect()));
        }
        for mut state in next {
            state.flying.sort_unstable(); // their order means nothing
            if visited.insert(state.clone()) {
                to_visit.push(state);
            }
        }
        if visited.len() > limit {
            return None;
        }
    }
    Some(outcomes)
}

impl Program {
    fn scope(&self, agent: usize) -> usize {
        2 * self.agents[agent].pe + usize::from(agent >= self.pes)
    }

    /// A barrier is a quiet, then a sync.
    fn with_barriers_taken_apart(&self) -> Program {
        let mut program = self.clone();
        for agent in &mut program.agents {
            let apart = agent.ops.drain(..).flat_map(|op| match op {
                Op::Enter(Collective::Barrier) => vec![Op::Quiet, Op::Enter(Collective::Sync)],
                op => vec![op],
            });
            agent.ops = apart.collect();
        }
        program
    }

    /// Whether an agent's last call has not returned.
    fn is_blocked(&self, state: &State, agent: usize) -> bool {
        let by = |transfer: &Transfer| {
            let flushed = transfer.flush & (1 << agent) != 0 && transfer.has_unread_source();
            // a collective's part may arrive before its target's host enters
            let entered = match transfer.scope {
                Scope::Collective(number) => state.entered.get(agent).is_some_and(|&entered| entered > number),
                Scope::Of(_) => true,
            };
            transfer.caller == Some(agent) && entered || transfer.quiet == Some(agent) || flushed
        };
        let last = state.issued[agent].checked_sub(1).map(|last| &self.agents[agent].ops[last]);
        let missing = match last {
            Some(Op::Enter(Collective::Broadcast { root, .. })) => state.entered[*root] < state.entered[agent],
            Some(Op::Enter(_)) => state.entered.iter().any(|&entered| entered < state.entered[agent]),
            _ => false,
        };
        missing || state.flying.iter().any(by)
    }

    fn may_start(&self, state: &State, agent: usize, op: &Op) -> bool {
        match op {
            Op::Wait { word } => state.memory[self.agents[agent].pe * self.words + word] >= 1,
            _ => true,
        }
    }

    fn has_ended(&self, state: &State, agent: usize) -> bool {
        state.issued[agent] == self.agents[agent].ops.len() && !self.is_blocked(state, agent)
    }

    /// Every state that one step leads to.
    fn next(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        for agent in 0..self.agents.len() {
            if let Some(op) = self.agents[agent].ops.get(state.issued[agent])
                && !self.is_blocked(state, agent)
                && self.may_start(state, agent, op)
            {
                let mut state = state.clone();
                state.issued[agent] += 1;
                self.issue(&mut state, agent, op);
                next.push(state);
            }
        }
        for (index, transfer) in state.flying.iter().enumerate() {
            let ahead = |other: &Transfer| {
                other.is_ordered_by_fences()
                    && (other.scope, other.target) == (transfer.scope, transfer.target)
                    && other.fences < transfer.fences
            };
            let held = transfer.is_ordered_by_fences() && state.flying.iter().any(ahead);
            for (i, part) in transfer.parts.iter().enumerate() {
                if transfer.kind == Kind::Put && part.value.is_none() {
                    let mut state = state.clone();
                    state.flying[index].parts[i].value = Some(state.memory[part.src]);
                    next.push(state);
                } else if !held && !part.delivered {
                    let mut state = state.clone();
                    state.deliver(index, i);
                    next.push(state);
                }
            }
            if let (false, Some((place, update))) = (held, transfer.signal)
                && transfer.parts.iter().all(|part| part.delivered)
            {
                let mut state = state.clone();
                let word = &mut state.memory[place];
                *word = if update.add { word.wrapping_add(update.value) } else { update.value };
                state.flying.remove(index);
                next.push(state);
            }
        }
        next
    }

    /// An agent's next operation: done at once if it is local, otherwise in flight from now on.
    fn issue(&self, state: &mut State, agent: usize, op: &Op) {
        let (me, scope) = (self.agents[agent].pe, self.scope(agent));
        let place = |pe: usize, word: usize| pe * self.words + word;
        let mut launch = |kind, target, parts: Vec<Part>, signal: Option<Update>, waits: bool| {
            state.flying.push(Transfer {
                scope: Scope::Of(scope),
                kind,
                target,
                fences: state.fences[scope],
                parts,
                signal: signal.map(|update| (place(target, update.word), update)),
                caller: waits.then_some(agent),
                quiet: None,
                flush: 0,
            });
        };
        let part = |src, dst, value| Part { src, dst, value, delivered: false };
        match *op {
            Op::PeerStore { to, dst, value } if to == me => state.memory[place(me, dst)] = value,
            Op::P { to, dst, value } | Op::PeerStore { to, dst, value } => {
                launch(Kind::Put, to, vec![part(0, place(to, dst), Some(value))], None, false);
            }
            Op::Put { to, dst, src, len, nbi, signal } => {
                let memory = &state.memory;
                let element = |i| {
                    let value = (!nbi).then(|| memory[place(me, src + i)]);
                    part(place(me, src + i), place(to, dst + i), value)
                };
                let parts = (0..len).map(element).collect();
                launch(Kind::Put, to, parts, signal, false);
            }
            Op::Get { from, dst, src, len, nbi } => {
                let parts = (0..len).map(|i| part(place(from, src + i), place(me, dst + i), None)).collect();
                launch(Kind::Get, from, parts, None, !nbi);
            }
            Op::G { from, src } => launch(Kind::Fetch, from, vec![part(place(from, src), 0, None)], None, true),
            Op::Add { to, dst, value, fetch } => {
                launch(Kind::Add(value), to, vec![part(0, place(to, dst), None)], None, fetch);
            }
            Op::Signal { to, update } => launch(Kind::Put, to, Vec::new(), Some(update), false),
            Op::Read { src, len } => {
                let start = place(me, src);
                state.saw[agent].extend_from_slice(&state.memory[start..start + len]);
            }
            Op::Write { dst, value } => state.memory[place(me, dst)] = value,
            Op::Fence => state.fences[scope] += 1,
            Op::Quiet => {
                let pending = state.flying.iter_mut().filter(|transfer| transfer.scope == Scope::Of(scope));
                pending.filter(|transfer| transfer.quiet.is_none()).for_each(|transfer| transfer.quiet = Some(agent));
            }
            Op::Flush => {
                let pending = state.flying.iter_mut().filter(|transfer| transfer.scope == Scope::Of(scope));
                pending.for_each(|transfer| transfer.flush |= 1 << agent);
            }
            Op::Wait { .. } => {}
            Op::Enter(collective) => {
                state.entered[agent] += 1;
                if let Collective::Broadcast { root, dst, src, len } = collective
                    && root == me
                {
                    (0..self.pes).for_each(|to| {
                        let parts = (0..len).map(|i| part(place(me, src + i), place(to, dst + i), None)).collect();
                        state.flying.push(Transfer {
                            scope: Scope::Collective(state.entered[agent] - 1),
                            kind: Kind::Put,
                            target: to,
                            fences: 0,
                            parts,
                            signal: None,
                            caller: Some(to),
                            quiet: None,
                            flush: 1 << me,
                        });
                    });
                }
            }
        }
    }
}

impl State {
    /// Delivers one element.
    fn deliver(&mut self, index: usize, i: usize) {
        let transfer = &mut self.flying[index];
        let Part { src, dst, value, .. } = transfer.parts[i];
        transfer.parts[i].delivered = true;
        match transfer.kind {
            Kind::Put => self.memory[dst] = value.expect("delivered after it was read"),
            Kind::Get => self.memory[dst] = self.memory[src],
            Kind::Fetch => {
                let caller = transfer.caller.expect("somebody fetches");
                self.saw[caller].push(self.memory[src]);
            }
            Kind::Add(value) => {
                if let Some(caller) = transfer.caller {
                    self.saw[caller].push(self.memory[dst]);
                }
                self.memory[dst] = self.memory[dst].wrapping_add(value);
            }
        }
        if self.flying[index].is_complete() {
            self.flying.remove(index);
        }
    }
}
