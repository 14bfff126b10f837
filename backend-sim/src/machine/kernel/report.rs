//! What kernels wait for, what is wrong with them, and what they print, in words.

use std::io::{self, Write as _};

use onesided::{At, Error};
use onesided_ptx::{Call, Fault, FaultKind, Unordered, Waiting, Who, demangle};

use super::super::Machine;
use super::super::agent::{Agent, AgentKind};
use super::super::ids::{AgentId, BlockId, Id as _};
use super::{Running, address, awaits};
use crate::limits::Bound;
use crate::race::MissingEdge;
use crate::verdict::VerdictKind;

/// # Findings
impl Machine {
    /// A block goes wrong, or is given up.
    pub(super) fn kernel_failed(&mut self, agent: AgentId, fault: &Fault) {
        let other = fault.other.as_ref().map(|(who, at)| format!("the other: {at}, {who}"));
        let memory = fault.address.and_then(|address| self.memory_at(address)).unwrap_or_default();
        let missing = fault.missing.as_ref().map(|missing| format!("missing: {missing}"));
        let at = self.kernels.blocks[self.block_of(agent)].launched.code.at(fault.place);
        match fault.kind {
            FaultKind::Stopped => {
                let bound = self.deadline.over().unwrap_or(Bound::Stopped);
                self.found(VerdictKind::Stopped { bound });
            }
            FaultKind::StepLimit => {
                let (pe, kernel) = (self.agents[agent].pe.index(), self.kernel_name(agent));
                let (thread, instructions) = (fault.who.to_string(), self.config.max_instructions);
                self.found(VerdictKind::InstructionLimit { pe, kernel, thread, instructions, at });
            }
            _ => {
                let code = &self.kernels.blocks[self.block_of(agent)].launched.code;
                let races_with =
                    fault.other_place.filter(|_| fault.kind == FaultKind::Race).map(|place| code.at(place));
                let fence = races_with.and_then(|other| self.fence_in_shared(agent, fault.unordered?, [other, at]));
                let missing = fence.map(|fence| format!("missing: {fence}")).or(missing);
                let details = other.into_iter().chain(missing).collect();
                let message = format!("{}{memory}", fault.message);
                self.kernel_finding(agent, message, (fault.who.to_string(), at), details, (races_with, fence));
            }
        }
    }

    /// A call has arguments that are wrong.
    pub(super) fn call_refused(&mut self, agent: AgentId, call: &Call, at: At, why: &str) {
        self.kernel_finding(agent, why.into(), (call.who.to_string(), at), Vec::new(), (None, None));
    }

    /// A thread ends the job, as `global_exit` of a host does. The thread waits for ever.
    pub(super) fn exit_in_kernel(&mut self, agent: AgentId, call: &Call, status: i32, at: At) {
        self.agents[agent].at = Some(at);
        let (pe, kernel) = (self.agents[agent].pe.index(), self.kernel_name(agent));
        let kernel = Some((format!("kernel {kernel}, {}", call.who), at));
        self.exit(VerdictKind::Exited { pe, status, kernel });
    }

    /// An operation could not be performed.
    pub(super) fn operation_failed(&mut self, agent: AgentId, at: At, error: &Error) {
        self.kernel_finding(agent, error.message().into(), ("a thread".into(), at), Vec::new(), (None, None));
    }

    fn kernel_finding(
        &mut self,
        agent: AgentId,
        message: String,
        (thread, at): (String, At),
        details: Vec<String>,
        (races_with, missing): (Option<At>, Option<MissingEdge>),
    ) {
        let (pe, kernel) = (self.agents[agent].pe.index(), self.kernel_name(agent));
        self.found(VerdictKind::Kernel { pe, kernel, thread, message, at, races_with, missing, details });
    }

    /// The fence that would order two accesses of a block to its shared memory.
    fn fence_in_shared(&mut self, agent: AgentId, two: Unordered, lines: [At; 2]) -> Option<MissingEdge> {
        let block = self.block_of(agent);
        let both = [two.first, two.second].map(|thread| self.thread_acts(block, thread));
        self.races.missing_in_shared(both, two.moment, lines)
    }

    fn kernel_name(&self, agent: AgentId) -> String {
        demangle(&self.kernels.blocks[self.block_of(agent)].launched.name)
    }
}

/// So many words that a thread polls are named.
const MOST_NAMED: usize = 4;

/// # Who waits for what
impl Machine {
    /// Where a thread of a kernel is.
    pub(in crate::machine) fn thread_of(&self, agent: AgentId) -> Option<Who> {
        let AgentKind::Thread(kernel) = self.agents[agent].kind else { return None };
        let Running { launched, number, threads, makers, .. } = &self.kernels.blocks[kernel.block];
        let thread = threads.iter().position(|of| *of == Some(agent))?;
        let thread = makers.get(&thread).copied().unwrap_or(thread);
        Some(launched.launch.who(launched.launch.first_block(*number), thread as u32))
    }

    /// The line that launched what an agent of kernels ran; `None` where it is not one line.
    pub(in crate::machine) fn launch_of(&self, agent: AgentId) -> Option<At> {
        let runs = |block: &&Running| block.agent == agent || block.threads.contains(&Some(agent));
        let mut lines = self.kernels.blocks.iter().filter(runs).map(|block| block.launched.at);
        let first = lines.next()?;
        lines.all(|other| other == first).then_some(first)
    }

    /// Whether a report has a line for an agent of a kernel: a thread that is in a call, or a block of which threads wait for something else; or
    /// it still runs where the run is given up.
    pub(in crate::machine) fn is_reported(&self, agent: AgentId) -> bool {
        match self.agents[agent].kind {
            AgentKind::Block(kernel) => match self.kernels.blocks[kernel.block].idle() {
                Some(idle) => {
                    let calls = idle.calls.len() + idle.stopped.len();
                    !idle.parked.is_empty() || !idle.inside.is_empty() || calls == 0
                }
                None => !self.agents[agent].is_running() || self.steps > self.until,
            },
            _ => !self.agents[agent].is_running() || !self.agents[agent].queue.is_empty(),
        }
    }

    /// What a stream waits for whose kernel runs.
    pub(in crate::machine) fn kernel_report(&self, stream: &Agent) -> String {
        let started =
            self.kernels.progress.iter().find(|(agent, _)| std::ptr::eq(&raw const self.agents[**agent], stream));
        let Some((_, started)) = started else { return "its kernel".into() };
        let (launched, name) = (&started.launched, demangle(&started.launched.name));
        let in_cluster = launched.blocks_in_cluster();
        let [blocks, begun, ended, most] = [launched.clusters(), started.begun, started.ended, launched.resident]
            .map(|clusters| clusters * in_cluster);
        match (blocks - begun, blocks) {
            (0, 1) => format!("kernel {name} to end"),
            (0, _) => format!("kernel {name} to end: {ended} of {blocks} blocks have"),
            (waiting, _) => format!(
                "kernel {name} to end: {ended} of {blocks} blocks have; {waiting} cannot begin before others end, because a GPU holds {most} of \
                 them at once"
            ),
        }
    }

    /// What a block waits for of which nobody can go on, or a thread that looks at words.
    pub(in crate::machine) fn parked_report(&self, agent: &Agent) -> String {
        let AgentKind::Block(kernel) = agent.kind else { return "one of several words".into() };
        let running = &self.kernels.blocks[kernel.block];
        let Some(idle) = running.idle() else { return "its threads' calls".into() };
        let code = &running.launched.code;
        let waiting = |of: &Waiting, how: &str| format!("{} {how} at {:#}", of.who, code.at(of.place));
        let spins = |of: &Waiting| match of.reads.first() {
            Some(&(address, bytes))
                if address::place(address, bytes.into())
                    .is_some_and(|(pe, span)| self.kernels.workspaces.has(pe, span.alloc)) =>
            {
                waiting(of, "waits for other blocks to synchronize the grid,")
            }
            _ => {
                let polled: Vec<String> =
                    of.reads.iter().filter_map(|&read| self.polled_report(running, read)).collect();
                let text = match &polled[..] {
                    [] => waiting(of, "polls"),
                    few if few.len() <= MOST_NAMED => waiting(of, &format!("polls {},", few.join(" and "))),
                    all => waiting(of, &format!("polls {}, and {} more words,", all[0], all.len() - 1)),
                };
                match of.timed {
                    true => format!("{text} (a time limit of such a loop never runs out in the simulator)"),
                    false => text,
                }
            }
        };
        let first = match (idle.parked.first(), idle.inside.first()) {
            (Some(parked), _) => spins(parked),
            (None, Some(inside)) => waiting(inside, "waits for others of its block"),
            (None, None) => return "its threads' calls".into(),
        };
        let others = idle.parked.len() + idle.inside.len() - 1;
        let name = demangle(&running.launched.name);
        match others {
            0 => format!("{name}: {first}"),
            _ => format!("{name}: {first}, and {others} more of its threads"),
        }
    }

    /// A word that a thread polls, and what is there.
    fn polled_report(&self, running: &Running, (address, bytes): (u64, u8)) -> Option<String> {
        if onesided_ptx::is_shared(address) {
            let block = running.block.as_ref()?;
            if let Some(phase) = block.lasting_phase(address) {
                let (name, missing) = (block.named_in_shared(address), awaits::missing_in(block, phase));
                return Some(format!("the mbarrier {name}, in its {} phase ({missing})", awaits::name_of(phase)));
            }
            let (name, found) = (block.named_in_shared(address), block.found_in_shared(address, bytes));
            return Some(format!("{name} in shared memory, found {found}"));
        }
        let (pe, span) = address::place(address, bytes.into())?;
        self.heap.len(pe, span.alloc)?;
        let found = self.heap.load(pe, span);
        Some(format!("{}+{} on PE {}, found {found}", span.alloc, span.start, pe.index()))
    }

    /// A thread prints, in runs that somebody reads.
    pub(super) fn kernel_prints(&self, id: BlockId, who: Who, text: &str) {
        if !self.prints {
            return;
        }
        let running = &self.kernels.blocks[id];
        let pe = self.agents[running.agent].pe.index();
        for line in text.lines() {
            // a reader that has gone ends no run
            _ = writeln!(io::stdout(), "PE {pe}, {}, {}: {line}", demangle(&running.launched.name), who);
        }
    }
}
