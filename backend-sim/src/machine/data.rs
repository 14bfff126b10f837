//! What collectives move: which part of whose source goes where, and when.
//!
//! There is no synchronization on entry: a part leaves as soon as *its source's* PE has entered, whatever its target is
//! doing. In a relaxed run every part is a transfer with a late source read, outside every fence and quiet.

use onesided::backend::{Op, Span};
use onesided::{DType, ReduceOp};

use super::Machine;
use super::flight::{Data, Kind, Part, Shape};
use super::issue::part as part_of;
use super::{Collective, agent::NONE};
use crate::reduce;

/// Parts of collectives are named apart from agents' transfers.
const PART: u64 = 1 << 54;

impl Machine {
    /// A member has entered a collective that moves data: what only needs its source starts.
    pub(super) fn member_entered(&mut self, team: u32, seq: u32, member: u32, last: bool) {
        let state = self.teams.get(team);
        let n = state.members.len() as u32;
        let Some(Collective::Op(op)) = &state.instance_ref(seq).what else { unreachable!("data moves by operations") };
        let op = *op;
        let part = |to| Part { team, seq, from: member, to };
        match op {
            Op::Broadcast { dst, src, dtype, root, .. } if root == member => {
                (0..n).for_each(|to| self.move_part(part(to), dst, src, dtype));
            }
            Op::Fcollect { dst, src, dtype, .. } => {
                let block = part_of(dst, member as usize * src.len, src.len);
                (0..n).for_each(|to| self.move_part(part(to), block, src, dtype));
            }
            Op::Alltoall { dst, src, dtype, .. } => {
                let len = src.len / n as usize;
                for to in 0..n {
                    let from = part_of(src, to as usize * len, len);
                    self.move_part(part(to), part_of(dst, member as usize * len, len), from, dtype);
                }
            }
            Op::Reduce { .. } | Op::ReduceScatter { .. } if last => self.start_reduction(part(member)),
            _ => {}
        }
    }

    /// Moves one member's source to one member's target: now, or as a transfer.
    fn move_part(&mut self, part: Part, dst: Span, src: Span, dtype: DType) {
        let members = &self.teams.get(part.team).members;
        let (from, to) = (members.get(part.from as usize) as u32, members.get(part.to as usize) as u32);
        if !self.relaxed {
            self.heap.copy(to, dst, from, src);
            self.wrote_plain(to, dst);
            self.part_landed(part);
            return;
        }
        self.teams.get_mut(part.team).instance(part.seq).entries[part.from as usize].src_parts += 1;
        let slot = self.draft_part(part, Kind::Put, (to, dst), (from, src), dtype);
        self.flight.get_mut(slot).part = Some(part);
        self.flight.launch(slot, NONE, self.config.pieces, false);
    }

    fn draft_part(&mut self, part: Part, kind: Kind, dst: (u32, Span), src: (u32, Span), dtype: DType) -> u32 {
        let state = self.teams.get(part.team);
        let n = state.members.len() as u64;
        let pair = u64::from(part.from) * n + u64::from(part.to);
        let key = PART | u64::from(part.team & 0xff) << 44 | u64::from(part.seq & 0xfff) << 32 | (pair & 0xffff_ffff);
        let instance = state.instance_ref(part.seq);
        let call = instance.what.as_ref().map_or("collective", Collective::name);
        let at = instance.entries.iter().find_map(|entry| entry.at).expect("somebody has entered");
        let shape = Shape::contiguous(dst.1.len, dtype.size());
        self.flight.draft(key, kind, dst, src, shape, (call, at))
    }

    /// Everyone has entered a reduction: the sources are read and combined, now or at a time of its own.
    fn start_reduction(&mut self, part: Part) {
        if !self.relaxed {
            let results = self.reduction(part.team, part.seq);
            for (to, (dst, bytes)) in results.into_iter().enumerate() {
                let pe = self.teams.get(part.team).members.get(to) as u32;
                self.heap.bytes_mut(pe, dst).copy_from_slice(&bytes);
                self.wrote_plain(pe, dst);
                let entry = &mut self.teams.get_mut(part.team).instance(part.seq).entries[to];
                (entry.dst_parts, entry.src_parts) = (0, 0);
            }
            return;
        }
        let Part { team, seq, .. } = part;
        let kind = Kind::Combine { team, seq };
        let nothing = (0, Span { alloc: onesided::backend::AllocId(u32::MAX), start: 0, len: 1 });
        let slot = self.draft_part(Part { from: 0, to: 0, ..part }, kind, nothing, nothing, DType::U8);
        self.flight.get_mut(slot).key |= 1 << 53; // apart from the result to member 0
        self.flight.launch(slot, NONE, 1, false);
    }

    /// The sources of a reduction are read: results start towards every member's target.
    pub(super) fn combine(&mut self, team: u32, seq: u32) {
        let results = self.reduction(team, seq);
        let n = results.len() as u32;
        for (to, (dst, bytes)) in results.into_iter().enumerate() {
            let part = Part { team, seq, from: to as u32, to: to as u32 };
            let pe = self.teams.get(team).members.get(to) as u32;
            let dtype = self.reduction_type(team, seq).1;
            let slot = self.draft_part(part, Kind::Put, (pe, dst), (pe, dst), dtype);
            let transfer = self.flight.get_mut(slot);
            transfer.data = match bytes.len() {
                len if len == dtype.size() => {
                    let mut word = [0; 8];
                    word[..len].copy_from_slice(&bytes);
                    Data::Word(u64::from_le_bytes(word))
                }
                _ => Data::Bytes(bytes),
            };
            transfer.part = Some(part);
            self.flight.launch(slot, NONE, self.config.pieces, false);
        }
        for member in 0..n {
            self.teams.get_mut(team).instance(seq).entries[member as usize].src_parts -= 1;
            self.try_leave(team, seq, member);
        }
    }

    fn reduction_type(&self, team: u32, seq: u32) -> (Span, DType, ReduceOp) {
        match self.teams.get(team).instance_ref(seq).what {
            Some(Collective::Op(Op::Reduce { src, dtype, op, .. } | Op::ReduceScatter { src, dtype, op, .. })) => {
                (src, dtype, op)
            }
            _ => unreachable!("only reductions combine"),
        }
    }

    /// Reads all sources and reduces them in team order; the target and bytes of each member.
    fn reduction(&mut self, team: u32, seq: u32) -> Vec<(Span, Vec<u8>)> {
        let (src, dtype, op) = self.reduction_type(team, seq);
        let members = self.teams.get(team).members.clone();
        let mut result = Vec::new();
        for (i, pe) in members.iter().enumerate() {
            self.touch(pe as u32, src, false);
            let bytes = self.heap.bytes(pe as u32, src);
            match i {
                0 => result.extend_from_slice(bytes),
                _ => reduce::combine(dtype, op, &mut result, bytes),
            }
        }
        match self.teams.get(team).instance_ref(seq).what {
            Some(Collective::Op(Op::ReduceScatter { dst, .. })) => {
                result.chunks_exact(dst.len).map(|block| (dst, block.to_vec())).collect()
            }
            Some(Collective::Op(Op::Reduce { dst, .. })) => vec![(dst, result); members.len()],
            _ => unreachable!("only reductions combine"),
        }
    }

    /// The whole source of a part has been read.
    pub(super) fn part_read(&mut self, part: Part) {
        self.teams.get_mut(part.team).instance(part.seq).entries[part.from as usize].src_parts -= 1;
        self.try_leave(part.team, part.seq, part.from);
    }

    /// A part has arrived.
    pub(super) fn part_landed(&mut self, part: Part) {
        self.teams.get_mut(part.team).instance(part.seq).entries[part.to as usize].dst_parts -= 1;
        self.try_leave(part.team, part.seq, part.to);
    }
}
