//! Collectives: what a member moves when it enters, and what it waits for before it leaves.

use onesided::ReduceOp;

use super::plan::{Plan, Task};
use super::program::Collective;
use super::state::State;
use super::transfers::{Element, Issuer, Kind, Transfer};

impl Plan {
    /// An agent enters its PE's next collective. What needs only this member's source starts.
    pub(crate) fn enter(&self, state: &mut State, agent: usize, collective: Collective, number: usize) {
        let me = self.agents[agent].pe;
        state.entered[me] += 1;
        let all_entered = state.entered.iter().all(|&entered| entered > number);
        let mut send = |to: usize, dst: usize, src: usize, len: usize| {
            let between = |i| (self.place(me, src + i), self.place(to, dst + i), None);
            self.start_part(state, number, me, to, (0..len).map(between).collect());
        };
        match collective {
            Collective::Broadcast { root, dst, src, len } if root == me => {
                (0..self.pes).for_each(|to| send(to, dst, src, len));
            }
            Collective::Fcollect { dst, src, len } => {
                (0..self.pes).for_each(|to| send(to, dst + me * len, src, len));
            }
            Collective::Alltoall { dst, src, len } => {
                (0..self.pes).for_each(|to| send(to, dst + me * len, src + to * len, len));
            }
            Collective::Reduce { .. } | Collective::ReduceScatter { .. } if all_entered => {
                self.start_part(state, number, 0, 0, vec![(0, 0, None)]);
                state.flying.last_mut().expect("just started").kind = Kind::Combine;
            }
            _ => {}
        }
    }

    /// Whether an agent cannot leave the collective that it has entered.
    pub(crate) fn is_in_collective(&self, state: &State, agent: usize, collective: Collective, number: usize) -> bool {
        let me = self.agents[agent].pe;
        let has_entered = |pe: usize| state.entered[pe] > number;
        let missing = match collective {
            Collective::Broadcast { root, .. } => !has_entered(root),
            _ => !(0..self.pes).all(has_entered),
        };
        let mine = |transfer: &Transfer| match transfer.issuer {
            Issuer::Collective { number: of, from } if of == number => {
                transfer.kind == Kind::Combine || transfer.target == me || from == me && transfer.has_unread_source()
            }
            _ => false,
        };
        missing || state.flying.iter().any(mine)
    }

    /// The reduction that a transfer combines: target, source, length and operator, and the number of blocks.
    fn reduction(&self, combine: &Transfer) -> (usize, usize, usize, ReduceOp, usize) {
        let Issuer::Collective { number, .. } = combine.issuer else { unreachable!("only collectives combine") };
        let is_it = |task: &Task| matches!(task, Task::Enter { number: of, .. } if *of == number);
        let task = self.agents.iter().flat_map(|agent| &agent.work).map(|work| &work.task).find(|task| is_it(task));
        match task {
            Some(&Task::Enter { collective: Collective::Reduce { dst, src, len, op }, .. }) => (dst, src, len, op, 1),
            Some(&Task::Enter { collective: Collective::ReduceScatter { dst, src, len, op }, .. }) => {
                (dst, src, len, op, self.pes)
            }
            other => unreachable!("{other:?} combines nothing"),
        }
    }

    /// The words that a reduction reads.
    pub(crate) fn combined(&self, combine: &Transfer) -> Vec<usize> {
        let (_, src, len, _, blocks) = self.reduction(combine);
        (0..self.pes).flat_map(|pe| (src..src + blocks * len).map(move |word| self.place(pe, word))).collect()
    }

    /// A reduction reads all sources: the results start towards every member's target.
    pub(crate) fn combine(&self, state: &mut State, combine: &Transfer) {
        let Issuer::Collective { number, .. } = combine.issuer else { unreachable!("only collectives combine") };
        let (dst, src, len, op, blocks) = self.reduction(combine);
        let of = |state: &State, pe: usize, i: usize| state.memory[self.place(pe, src + i)];
        let sums: Vec<u64> = (0..blocks * len)
            .map(|i| (1..self.pes).fold(of(state, 0, i), |sum, pe| reduced(op, sum, of(state, pe, i))))
            .collect();
        for to in 0..self.pes {
            let block = if blocks == 1 { 0 } else { to };
            let element = |i| (0, self.place(to, dst + i), Some(sums[block * len + i]));
            self.start_part(state, number, to, to, (0..len).map(element).collect());
        }
    }

    /// Elements of a collective on their way to a member: from where, to where, and what is read already.
    fn start_part(
        &self,
        state: &mut State,
        number: usize,
        from: usize,
        to: usize,
        elements: Vec<(usize, usize, Option<u64>)>,
    ) {
        let element = |(from, to, read)| Element { piece: 0, from, to, read, delivered: false };
        let mut elements: Vec<Element> = elements.into_iter().map(element).collect();
        self.cut(&mut elements);
        state.flying.push(Transfer {
            issuer: Issuer::Collective { number, from },
            kind: Kind::Put,
            target: to,
            nbi: false,
            fences: 0,
            covered: None,
            awaited: 0,
            quiet: None,
            elements,
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
