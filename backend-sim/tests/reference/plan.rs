//! A program taken apart: what each host and each stream does, in order.
//!
//! All of this follows from the program's text, because programs are straight lines: no schedule changes the order in
//! which a host makes its calls.

use std::collections::BTreeSet;

use super::fabrics::{OnPath, read_on_paths};
use super::profiles::Rules;
use super::program::{Collective, Op, Program};
use super::state::State;

/// The agents of a program and what each does.
pub(crate) struct Plan {
    pub(crate) pes: usize,
    /// Cells of memory on each PE: its words, or their bytes.
    pub(crate) cells: usize,
    /// Cells of a word.
    pub(crate) of_word: usize,
    pub(crate) pieces: usize,
    /// The members of each team: first the world, then the program's.
    pub(crate) teams: Vec<Vec<usize>>,
    pub(crate) rules: Rules,
    /// Words that PEs read of each other, where there are two fabrics.
    pub(crate) read_on_paths: BTreeSet<OnPath>,
    /// The hosts, in order of their PEs; then the streams.
    pub(crate) agents: Vec<Agent>,
}

/// A host or a stream.
pub(crate) struct Agent {
    pub(crate) pe: usize,
    pub(crate) is_host: bool,
    pub(crate) work: Vec<Work>,
}

/// One thing that an agent does.
pub(crate) struct Work {
    pub(crate) task: Task,
    /// The number of things that the PE's host has done before it makes the call.
    pub(crate) called_after: usize,
    /// Cells of an element.
    pub(crate) width: usize,
}

/// What a call becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A transfer, a local access, a flush or a wait.
    Op(Op),
    /// A quiet or a fence, when its turn has come.
    Complete(Completing),
    /// The host calls a quiet or a fence for one of its streams.
    Call(Completing),
    /// Until the agent's stores through peers' pointers have been delivered.
    CompleteStores,
    /// The PE's collective with this number of a team.
    Enter {
        collective: Collective,
        team: usize,
        number: usize,
    },
    /// Until an agent has done a thing.
    Await(Option<Place>),
    /// Until all of these have begun.
    AwaitStarts(Vec<Place>),
    Nothing,
}

/// A call that completes what was issued before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completing {
    /// Where it is done.
    pub(crate) by: Place,
    /// The non-blocking operations of the PE that were called before.
    pub(crate) earlier: Vec<Place>,
    pub(crate) kind: Completes,
}

/// What a call that completes waits for, of what its scope has issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completes {
    /// A quiet: everything that no other quiet is answerable for.
    Quiet,
    /// A fence that completes: non-blocking operations as a quiet, blocking ones whoever is answerable.
    Fence,
    /// A fence that orders: nothing.
    Nothing,
}

/// A place in the work of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) agent: usize,
    pub(crate) index: usize,
}

impl Plan {
    pub(crate) fn new(program: &Program, rules: Rules) -> Plan {
        let pes = program.pes();
        let agent = |pe, is_host| Agent { pe, is_host, work: Vec::new() };
        let agents = (0..pes).map(|pe| agent(pe, true)).collect();
        let read_on_paths = read_on_paths(program);
        let teams = [(0..pes).collect()].into_iter().chain(program.teams.iter().cloned()).collect();
        let (of_word, pieces) = (program.cells(), program.pieces);
        let cells = program.words * of_word;
        let mut plan = Plan { pes, cells, of_word, pieces, teams, rules, read_on_paths, agents };
        for pe in 0..pes {
            let first = plan.agents.len();
            plan.agents.extend((0..program.streams(pe)).map(|_| agent(pe, false)));
            plan.take_apart(program, pe, first);
        }
        plan
    }

    /// The calls of one PE, whose streams are the agents from `first`.
    fn take_apart(&mut self, program: &Program, pe: usize, first: usize) {
        let (mut nbi, mut nbi_puts) = (Vec::new(), Vec::new());
        let mut records = vec![None; program.events(pe)];
        let mut entered = vec![0; self.teams.len()];
        for call in &program.hosts[pe] {
            let agent = call.stream.map_or(pe, |stream| first + stream);
            let next = self.agents[agent].work.len();
            let complete = |kind| Completing { by: Place { agent, index: next }, earlier: nbi.clone(), kind };
            let quiet = || Task::Complete(complete(Completes::Quiet));
            let mut enter = |team: usize, collective| {
                entered[team] += 1;
                Task::Enter { collective, team, number: entered[team] - 1 }
            };
            let (team, op) = match call.op {
                Op::EnterOf { team, what } => (1 + team, Op::Enter(what)),
                op => (0, op),
            };
            let tasks = match op {
                Op::Quiet => vec![quiet()],
                Op::Fence if self.rules.fence_is_quiet => vec![Task::Complete(complete(Completes::Fence))],
                Op::Fence => vec![Task::Complete(complete(Completes::Nothing))],
                Op::Enter(Collective::Barrier) => vec![quiet(), enter(team, Collective::Sync)],
                Op::Enter(Collective::AllocFree) => {
                    // the second barrier finds nothing that the first has not completed, or seen start
                    vec![quiet(), enter(team, Collective::Sync), enter(team, Collective::Sync)]
                }
                Op::Enter(Collective::Sync) => vec![Task::CompleteStores, enter(team, Collective::Sync)],
                Op::Enter(Collective::Team) => vec![Task::Nothing], // promises no synchronization
                Op::Enter(collective) => vec![enter(team, collective)],
                Op::Record { event } => {
                    records[event] = Some(Place { agent, index: next });
                    vec![Task::Nothing]
                }
                Op::WaitEvent { event } | Op::SynchronizeEvent { event } => vec![Task::Await(records[event])],
                Op::Synchronize { stream } => {
                    let agent = first + stream;
                    let last = self.agents[agent].work.len().checked_sub(1);
                    vec![Task::Await(last.map(|index| Place { agent, index }))]
                }
                op => {
                    // a host's put or get waits until its streams have come to what they put to the same PE
                    let awaits = self.rules.awaits_starts && call.stream.is_none();
                    let to_same = |(to, _): &&(usize, Place)| awaits && op.puts_or_gets() == Some(*to);
                    let pending: Vec<Place> = nbi_puts.iter().filter(to_same).map(|&(_, place)| place).collect();
                    let behind = (!pending.is_empty()).then_some(Task::AwaitStarts(pending));
                    behind.into_iter().chain([Task::Op(op)]).collect()
                }
            };
            if call.op.is_nbi() {
                nbi.push(Place { agent, index: next });
            }
            if let (Some(_), Op::Put { to, nbi: true, .. }) = (call.stream, call.op) {
                nbi_puts.push((to, Place { agent, index: next }));
            }
            // most calls for streams change nothing when they are made, and need no step of the host
            if let (Some(_), Task::Complete(completing)) = (call.stream, &tasks[0]) {
                self.agents[pe].work.push(Work { task: Task::Call(completing.clone()), called_after: 0, width: 0 });
            }
            let called_after = self.agents[pe].work.len();
            let width = if call.in_bytes { 1 } else { self.of_word };
            self.agents[agent].work.extend(tasks.into_iter().map(|task| Work { task, called_after, width }));
        }
    }

    /// Whether somebody waits until streams have come to something.
    pub(crate) fn awaits_starts(&self) -> bool {
        self.agents.iter().flat_map(|agent| &agent.work).any(|work| matches!(work.task, Task::AwaitStarts(_)))
    }

    /// The issue scope of an agent: a PE has two, its host's and its streams'.
    pub(crate) fn scope(&self, agent: usize) -> usize {
        2 * self.agents[agent].pe + usize::from(!self.agents[agent].is_host)
    }

    /// The cells of an element of the last thing that an agent has begun.
    pub(crate) fn width(&self, state: &State, agent: usize) -> usize {
        self.agents[agent].work[state.agents[agent].begun - 1].width
    }

    /// The index of a cell in the memory of all PEs.
    pub(crate) fn place(&self, pe: usize, cell: usize) -> usize {
        pe * self.cells + cell
    }

    /// Where the word with an index begins.
    pub(crate) fn word(&self, pe: usize, word: usize) -> usize {
        self.place(pe, word * self.of_word)
    }

    /// The part of a value that the cell `part` of an element holds.
    pub(crate) fn part(&self, value: u64, part: usize) -> u64 {
        if self.of_word == 1 { value } else { value >> (8 * part) & 0xff }
    }

    /// The number in an element's cells.
    pub(crate) fn number(&self, cells: &[u64]) -> u64 {
        cells.iter().rev().fold(0, |number, cell| if self.of_word == 1 { *cell } else { number << 8 | cell })
    }
}
