//! What collectives move: which part of whose source goes where, and when.
//!
//! There is no synchronization on entry: a part leaves as soon as *its source's* PE has entered, whatever its target is
//! doing. In a relaxed run every part is a transfer with a late source read, outside every fence and quiet.

use std::rc::Rc;

use onesided::DType;
use onesided::backend::{Data, Pattern, Shape, Span};

use super::flight::Draft;
use super::ids::{AgentId, Id as _, PeId, TeamIndex, TransferId};
use super::past::Past;
use super::relaxed::Asked;
use super::transfer::{self, Kind, NO_SPAN, Part, TransferPast, part_of};
use super::{Collective, Machine, Touch};
use crate::race::{Detector, How, Ticket};
use crate::reduce;

/// Parts of collectives are named apart from agents' transfers.
const PART: u64 = 1 << 54;

impl Machine {
    /// A member has entered a collective that moves data: what only needs its source starts.
    pub(super) fn member_entered(&mut self, team: TeamIndex, seq: u32, member: u32, last: bool) {
        let n = self.teams.get(team).members.len() as u32;
        let Data { pattern, dst, src, dtype } = self.moved_data(team, seq);
        let part = |to| Part { team, seq, from: member, to };
        match pattern {
            Pattern::Broadcast { root } if root == member => {
                (0..n).for_each(|to| self.move_part(part(to), dst, src, dtype));
            }
            Pattern::Broadcast { .. } => {}
            Pattern::Fcollect => {
                let block = part_of(dst, member as usize * src.len, src.len);
                (0..n).for_each(|to| self.move_part(part(to), block, src, dtype));
            }
            Pattern::Alltoall => {
                let len = src.len / n as usize;
                for to in 0..n {
                    let from = part_of(src, to as usize * len, len);
                    self.move_part(part(to), part_of(dst, member as usize * len, len), from, dtype);
                }
            }
            Pattern::Reduce(_) | Pattern::ReduceScatter(_) if last => self.start_reduction(part(member)),
            Pattern::Reduce(_) | Pattern::ReduceScatter(_) => {}
        }
    }

    fn moved_data(&self, team: TeamIndex, seq: u32) -> Data {
        let what = self.teams.get(team).instance_ref(seq).what.as_ref();
        what.and_then(Collective::data).expect("a collective that moves data")
    }

    fn member_pe(&self, team: TeamIndex, member: u32) -> PeId {
        PeId::new(self.teams.get(team).members.get(member as usize))
    }

    /// Moves one member's source to one member's target: now, or as a transfer.
    fn move_part(&mut self, part: Part, dst: Span, src: Span, dtype: DType) {
        let (from, to) = (self.member_pe(part.team, part.from), self.member_pe(part.team, part.to));
        let asked = self.part_asked(part);
        let entries = &self.teams.get(part.team).instance_ref(part.seq).entries;
        let ticket = entries[part.from as usize].entered.as_ref().map(|entered| self.races.part(entered, to, asked));
        if !self.mode.needs.relaxed {
            if self.record.is_some() {
                let bytes = self.heap.bytes(from, src).to_vec();
                self.record_part_now(part, (to, dst), &bytes, dtype);
            }
            if let Some(ticket) = &ticket {
                let shape = Shape::contiguous(src.len, dtype.size());
                self.observe_read(ticket, (from, src), shape, 0..shape.count);
                self.observe_write(ticket, How::Write, (to, dst), shape, 0..shape.count);
            }
            self.heap.copy(to, dst, from, src);
            self.wrote(to, dst);
            return self.part_landed(part, None, ticket.as_ref());
        }
        self.teams.get_mut(part.team).instance(part.seq).entries[part.from as usize].src_parts += 1;
        let id = self.draft_part(part, Kind::Put, (to, dst), (from, src), dtype);
        self.flight.get_mut(id).ticket = ticket;
        let past = self.teams.get(part.team).instance_ref(part.seq).entries[part.from as usize].past.clone();
        self.launch_part(id, Some(part), past);
    }

    fn draft_part(&mut self, part: Part, kind: Kind, dst: (PeId, Span), src: (PeId, Span), dtype: DType) -> TransferId {
        let team = self.teams.get(part.team);
        let [from, to] = [part.from, part.to].map(|member| team.members.get(member as usize));
        let pair = (from * self.config.pes + to) as u64;
        let key = PART | team.bits(part.from) << 44 | u64::from(part.seq & 0xfff) << 32 | (pair & 0xffff_ffff);
        let (call, at) = self.part_asked(part);
        let shape = Shape::contiguous(dst.1.len, dtype.size());
        if self.record.is_some() {
            self.record_part(part, key, dtype);
        }
        self.flight.draft(Draft { key, kind, dst, src, shape, call, at })
    }

    /// The collective of a part, and the line of the member that its source belongs to, if that has entered.
    fn part_asked(&self, part: Part) -> Asked {
        let instance = self.teams.get(part.team).instance_ref(part.seq);
        let call = instance.what.as_ref().map_or("collective", Collective::name);
        let mut lines = instance.entries[part.from as usize..].iter().chain(&instance.entries);
        let at = lines.find_map(|entry| entry.at).expect("somebody has entered");
        (call, at)
    }

    fn launch_part(&mut self, id: TransferId, part: Option<Part>, issued: Past) {
        let transfer = self.flight.get_mut(id);
        transfer.part = part;
        if self.mode.needs.tracking {
            transfer.past = Some(Box::new(TransferPast { issued, ..TransferPast::default() }));
        }
        self.flight.launch(id, None, self.config.pieces, false);
    }

    /// Everyone has entered a reduction: the sources are read and combined, now or at a time of its own.
    fn start_reduction(&mut self, part: Part) {
        let Part { team, seq, .. } = part;
        if !self.mode.needs.relaxed {
            let tickets = self.observe_sources(team, seq);
            let results = self.reduction(team, seq);
            for (to, (dst, bytes)) in results.into_iter().enumerate() {
                let pe = self.member_pe(team, to as u32);
                if self.record.is_some() {
                    let dtype = self.moved_data(team, seq).dtype;
                    let part = Part { team, seq, from: to as u32, to: to as u32 };
                    self.record_part_now(part, (pe, dst), &bytes, dtype);
                }
                if let Some(ticket) = tickets.get(to) {
                    let dtype = self.moved_data(team, seq).dtype;
                    let shape = Shape::contiguous(dst.len, dtype.size());
                    self.observe_write(ticket, How::Write, (pe, dst), shape, 0..shape.count);
                    self.learn_landed(Part { to: to as u32, ..part }, ticket);
                }
                self.heap.bytes_mut(pe, dst).copy_from_slice(&bytes);
                self.wrote(pe, dst);
                let entry = &mut self.teams.get_mut(team).instance(seq).entries[to];
                (entry.dst_parts, entry.src_parts) = (0, 0);
            }
            return;
        }
        let nothing = (PeId(0), Span { len: 1, ..NO_SPAN });
        let kind = Kind::Combine { team, seq };
        let id = self.draft_part(Part { from: 0, to: 0, ..part }, kind, nothing, nothing, DType::U8);
        self.flight.get_mut(id).key |= 1 << 53; // apart from the result to member 0
        let past = self.teams.get(team).instance_ref(seq).past.clone();
        self.launch_part(id, None, past);
    }

    /// The sources of a reduction are read: results start towards every member's target.
    pub(super) fn combine(&mut self, team: TeamIndex, seq: u32) {
        let tickets = self.observe_sources(team, seq);
        let results = self.reduction(team, seq);
        self.in_chosen_step = false;
        let mut past = self.teams.get(team).instance_ref(seq).past.clone();
        if self.mode.needs.tracking {
            past.add(self.taken);
        }
        let n = results.len() as u32;
        let dtype = self.moved_data(team, seq).dtype;
        for (to, (dst, bytes)) in results.into_iter().enumerate() {
            let part = Part { team, seq, from: to as u32, to: to as u32 };
            let pe = self.member_pe(team, to as u32);
            let id = self.draft_part(part, Kind::Put, (pe, dst), (pe, dst), dtype);
            self.flight.get_mut(id).ticket = tickets.get(to).cloned();
            self.flight.get_mut(id).data = match bytes.len() {
                len if len == dtype.size() => {
                    let mut word = [0; 8];
                    word[..len].copy_from_slice(&bytes);
                    transfer::Data::Word(u64::from_le_bytes(word))
                }
                _ => transfer::Data::Bytes(bytes),
            };
            self.launch_part(id, Some(part), past.clone());
        }
        for member in 0..n {
            let entry = &mut self.teams.get_mut(team).instance(seq).entries[member as usize];
            entry.src_parts -= 1;
            entry.learned.join(&past);
            self.try_leave(team, seq, member);
        }
    }

    /// The sources of a reduction are read, after every member's entry: the tickets of the results, one for each member. All
    /// learn that all sources have been read.
    fn observe_sources(&mut self, team: TeamIndex, seq: u32) -> Vec<Ticket> {
        if !self.races.is_on() {
            return Vec::new();
        }
        let Data { src, dtype, .. } = self.moved_data(team, seq);
        let shape = Shape::contiguous(src.len, dtype.size());
        let entries = &self.teams.get(team).instance_ref(seq).entries;
        let mut learned = Detector::entries(entries.iter().filter_map(|entry| entry.entered.as_ref()));
        let all = Rc::new(learned.clone());
        let agents: Vec<AgentId> = entries.iter().filter_map(|entry| entry.agent).collect();
        let mut tickets = Vec::with_capacity(agents.len());
        for (member, agent) in agents.into_iter().enumerate() {
            let pe = self.agents[agent].pe;
            let member = member as u32;
            let asked = self.part_asked(Part { team, seq, from: member, to: member });
            let ticket = self.races.result(&all, agent, pe, asked);
            self.observe_read(&ticket, (pe, src), shape, 0..shape.count);
            Detector::source_read(&ticket, &mut learned);
            tickets.push(ticket);
        }
        for entry in &mut self.teams.get_mut(team).instance(seq).entries {
            entry.known.clone_from(&learned);
        }
        tickets
    }

    /// Reads all sources and reduces them in team order; the target and bytes of each member.
    fn reduction(&mut self, team: TeamIndex, seq: u32) -> Vec<(Span, Vec<u8>)> {
        let Data { pattern, dst, src, dtype } = self.moved_data(team, seq);
        let (Pattern::Reduce(op) | Pattern::ReduceScatter(op)) = pattern else {
            unreachable!("only reductions combine")
        };
        let members = self.teams.get(team).members.clone();
        let mut result = Vec::new();
        for (i, pe) in members.iter().map(PeId::new).enumerate() {
            self.touch_memory(pe, src, Touch::Read);
            self.touch_leaving(pe, team, seq);
            let bytes = self.heap.bytes(pe, src);
            match i {
                0 => result.extend_from_slice(bytes),
                _ => reduce::combine(dtype, op, &mut result, bytes),
            }
        }
        match pattern {
            Pattern::ReduceScatter(_) => result.chunks_exact(dst.len).map(|block| (dst, block.to_vec())).collect(),
            _ => vec![(dst, result); members.len()],
        }
    }

    /// The whole source of a part has been read.
    pub(super) fn part_read(&mut self, part: Part, id: TransferId) {
        let entry = &mut self.teams.get_mut(part.team).instance(part.seq).entries[part.from as usize];
        entry.src_parts -= 1;
        if let Some(past) = &self.flight.get(id).past {
            past.reads.iter().for_each(|read| entry.learned.join(read));
        }
        self.try_leave(part.team, part.seq, part.from);
    }

    /// A part has arrived.
    pub(super) fn part_landed(&mut self, part: Part, past: Option<&Past>, ticket: Option<&Ticket>) {
        if let Some(ticket) = ticket {
            self.learn_landed(part, ticket);
        }
        let entry = &mut self.teams.get_mut(part.team).instance(part.seq).entries[part.to as usize];
        entry.dst_parts -= 1;
        if let Some(past) = past {
            entry.learned.join(past);
        }
        self.try_leave(part.team, part.seq, part.to);
    }

    /// The member that a part goes to learns what the part knew.
    fn learn_landed(&mut self, part: Part, ticket: &Ticket) {
        let to = self.member_pe(part.team, part.to);
        let entry = &mut self.teams.get_mut(part.team).instance(part.seq).entries[part.to as usize];
        self.races.part_landed(ticket, to, &mut entry.known);
    }

    /// Notes that a step of a part may let a member leave.
    pub(super) fn touch_part(&mut self, part: Part, delivers: bool) {
        let member = if delivers { part.to } else { part.from };
        let pe = self.member_pe(part.team, member);
        self.touch_leaving(pe, part.team, part.seq);
    }
}
