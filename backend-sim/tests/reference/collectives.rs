//! Collectives: what a member moves when it enters, and what it waits for before it leaves.

use onesided::ReduceOp;

use super::plan::{Plan, Task};
use super::program::Collective;
use super::state::State;
use super::transfers::{Cell, Issuer, Kind, Transfer};

impl Plan {
    /// An agent enters its PE's next collective of a team. What needs only this member's source starts.
    pub(crate) fn enter(&self, state: &mut State, agent: usize, collective: Collective, which: (usize, usize)) {
        let (pe, width, (team, _)) = (self.agents[agent].pe, self.width(state, agent), which);
        state.entered[team * self.pes + pe] += 1;
        let members = &self.teams[team];
        let me = members.iter().position(|&member| member == pe).expect("only members enter");
        let all_entered = members.iter().all(|&member| self.has_entered(state, member, which));
        let mut send = |to: usize, dst: usize, src: usize, len: usize| {
            let between = |i| (self.place(pe, src * width + i), self.place(members[to], dst * width + i), None);
            self.start_part(state, which, (pe, members[to]), width, (0..len * width).map(between).collect());
        };
        match collective {
            Collective::Broadcast { root, dst, src, len } if root == me => {
                (0..members.len()).for_each(|to| send(to, dst, src, len));
            }
            Collective::Fcollect { dst, src, len } => {
                (0..members.len()).for_each(|to| send(to, dst + me * len, src, len));
            }
            Collective::Alltoall { dst, src, len } => {
                (0..members.len()).for_each(|to| send(to, dst + me * len, src + to * len, len));
            }
            Collective::Reduce { .. } | Collective::ReduceScatter { .. } if all_entered => {
                self.start_part(state, which, (0, 0), width, vec![(0, 0, None)]);
                state.flying.last_mut().expect("just started").kind = Kind::Combine;
            }
            _ => {}
        }
    }

    /// Whether a PE has entered a team's collective with a number.
    fn has_entered(&self, state: &State, pe: usize, (team, number): (usize, usize)) -> bool {
        state.entered[team * self.pes + pe] > number
    }

    /// Whether an agent cannot leave the collective that it has entered.
    pub(crate) fn is_in_collective(
        &self,
        state: &State,
        agent: usize,
        collective: Collective,
        which: (usize, usize),
    ) -> bool {
        let (me, members) = (self.agents[agent].pe, &self.teams[which.0]);
        let missing = match collective {
            Collective::Broadcast { root, .. } => !self.has_entered(state, members[root], which),
            _ => !members.iter().all(|&member| self.has_entered(state, member, which)),
        };
        let mine = |transfer: &Transfer| match transfer.issuer {
            Issuer::Collective { team, number, from } if (team, number) == which => {
                transfer.kind == Kind::Combine || transfer.target == me || from == me && transfer.has_unread_source()
            }
            _ => false,
        };
        missing || state.flying.iter().any(mine)
    }

    /// The reduction that a transfer combines: target, source, length and operator, and the number of blocks.
    fn reduction(&self, combine: &Transfer) -> (usize, usize, usize, ReduceOp, usize) {
        let which = Self::collective_of(combine);
        let is_it = |task: &Task| matches!(task, Task::Enter { team, number, .. } if (*team, *number) == which);
        let task = self.agents.iter().flat_map(|agent| &agent.work).map(|work| &work.task).find(|task| is_it(task));
        match task {
            Some(&Task::Enter { collective: Collective::Reduce { dst, src, len, op }, .. }) => (dst, src, len, op, 1),
            Some(&Task::Enter { collective: Collective::ReduceScatter { dst, src, len, op }, .. }) => {
                (dst, src, len, op, self.teams[which.0].len())
            }
            other => unreachable!("{other:?} combines nothing"),
        }
    }

    /// The team and the number of the collective that combines.
    fn collective_of(combine: &Transfer) -> (usize, usize) {
        let Issuer::Collective { team, number, .. } = combine.issuer else { unreachable!("only collectives combine") };
        (team, number)
    }

    /// Where the elements begin that a reduction reads.
    pub(crate) fn combined(&self, combine: &Transfer) -> Vec<usize> {
        let (_, src, len, _, blocks) = self.reduction(combine);
        let members = &self.teams[Self::collective_of(combine).0];
        members
            .iter()
            .flat_map(|&pe| (src..src + blocks * len).map(move |i| self.place(pe, i * combine.width)))
            .collect()
    }

    /// A reduction reads all sources: the results start towards every member's target.
    pub(crate) fn combine(&self, state: &mut State, combine: &Transfer) {
        let which = Self::collective_of(combine);
        let (dst, src, len, op, blocks) = self.reduction(combine);
        let members = &self.teams[which.0];
        let width = combine.width;
        let sum = |i| {
            let first = |pe| self.place(pe, (src + i) * width);
            let operands = members.iter().map(|&pe| self.number(&state.memory[first(pe)..first(pe) + width]));
            operands.reduce(|sum, operand| reduced(op, sum, operand)).expect("a team has members")
        };
        let sums: Vec<u64> = (0..blocks * len).map(sum).collect();
        for (member, &to) in members.iter().enumerate() {
            let block = if blocks == 1 { 0 } else { member };
            let cell = |i| {
                let sum = self.part(sums[block * len + i / width], i % width);
                (0, self.place(to, dst * width + i), Some(sum))
            };
            self.start_part(state, which, (to, to), width, (0..len * width).map(cell).collect());
        }
    }

    /// Elements of a collective on their way to a member: from where, to where, and what is read already.
    fn start_part(
        &self,
        state: &mut State,
        (team, number): (usize, usize),
        (from, to): (usize, usize),
        width: usize,
        cells: Vec<(usize, usize, Option<u64>)>,
    ) {
        let cell = |(i, (from, to, read))| Cell { piece: 0, part: i % width, from, to, read, delivered: false };
        let mut cells: Vec<Cell> = cells.into_iter().enumerate().map(cell).collect();
        self.cut(&mut cells, width);
        state.flying.push(Transfer {
            issuer: Issuer::Collective { team, number, from },
            kind: Kind::Put,
            target: to,
            nbi: false,
            fences: 0,
            covered: None,
            awaited: 0,
            quiet: None,
            cells,
            width,
            signal: None,
        });
    }
}

fn reduced(op: ReduceOp, a: u64, b: u64) -> u64 {
    match op {
        ReduceOp::Sum => a.wrapping_add(b),
        ReduceOp::Prod => a.wrapping_mul(b),
        ReduceOp::Min => a.min(b),
        ReduceOp::Max => a.max(b),
        ReduceOp::And => a & b,
        ReduceOp::Or => a | b,
        ReduceOp::Xor => a ^ b,
    }
}
