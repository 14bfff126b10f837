//! What runs beside the threads: copies, and stores and reductions that an mbarrier counts.
//!
//! Their bytes are moved at once here, which is one of the times at which they may be.

use super::builder::Builder;
use super::form::Form;
use super::moves::select;
use crate::error::Error;
use crate::op::{AtomicForm, Bulk, Group, MBarrier, Memory, Op, Reg};
use crate::syntax::Operand;
use crate::types::{Order, Scope, Space, Type};
use crate::world::AtomicOp;

/// A mask of a multicast has a bit for each block that a cluster may have.
const BLOCKS: u64 = 16;

impl<'a> Builder<'_, 'a> {
    /// `cp.async.mbarrier.arrive.noinc.shared.b64 [mbarrier]`.
    fn arrive_behind_copies(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let (true, [address]) = (form.has("arrive"), operands) else { return Err(form.unknown()) };
        let (counts, shared) = (form.has("noinc"), form.one_of(&["shared", "shared::cta"]).is_some());
        if form.ty()? != Type::B64 {
            return Err(form.unknown());
        }
        let (a, b, d) = (self.address(form, address)?, self.constant(1)?, self.temporary()?);
        self.emit(Op::MBarrier { kind: MBarrier::ArriveBehindCopies { counts }, d, a, b, shared, relaxed: false });
        Ok(())
    }

    /// Copies, and what closes groups of them and waits.
    pub(super) fn copy_async(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let reduces = form.has("reduce");
        if !form.has("async") {
            return Err(form.unknown());
        }
        if form.has("tensor") {
            return self.tile(form, operands, reduces);
        }
        if reduces {
            return self.reduce_in_bulk(form, operands);
        }
        let hinted = form.cache_hints();
        let bulk = form.has("bulk");
        if bulk && form.has("prefetch") {
            form.has("L2");
            form.take_spaces();
            return Ok(()); // what only caches see
        }
        if form.has("mbarrier") {
            return self.arrive_behind_copies(form, operands);
        }
        if let Some(word) = form.one_of(&["commit_group", "wait_group", "wait_all"]) {
            let read = bulk && form.has("read");
            let group = match (word, operands) {
                ("commit_group", []) => Group::Commit,
                ("wait_all", []) if !bulk => Group::WaitAll,
                ("wait_group", &[Operand::Bits(most)]) => {
                    Group::Wait { most: u32::try_from(most).map_err(|_| form.unknown())?, read }
                }
                _ => return Err(form.unknown()),
            };
            self.emit(Op::Group { group, bulk });
            return Ok(());
        }
        // The destination's space comes first.
        let spaces: Vec<&str> = form.take_spaces();
        form.has("bulk_group");
        let counted = form.has("mbarrier::complete_tx::bytes");
        if counted && form.has("multicast::cluster") {
            return self.multicast_in_bulk(form, &spaces, operands, hinted);
        }
        let mut size = None;
        let (kind, t, s, n, barrier) = match (&spaces[..], bulk, counted, operands) {
            (["shared::cluster" | "shared::cta", "global"], true, true, [t, s, n, barrier])
            | (["shared::cluster" | "shared::cta", "global"], true, true, [t, s, n, barrier, _]) => {
                (Bulk::ToShared, t, s, n, Some(barrier))
            }
            (["shared::cluster", "shared::cta"], true, true, [t, s, n, barrier]) if !hinted => {
                (Bulk::Within, t, s, n, Some(barrier))
            }
            (["global", "shared::cta"], true, false, [t, s, n] | [t, s, n, _]) => (Bulk::ToGlobal, t, s, n, None),
            (["shared" | "shared::cta", "global"], false, false, [t, s, n]) => (Bulk::Elements, t, s, n, None),
            (["shared" | "shared::cta", "global"], false, false, [t, s, n, _]) if hinted => {
                (Bulk::Elements, t, s, n, None)
            }
            // Less may be read than is written: zeros are the rest.
            (["shared" | "shared::cta", "global"], false, false, [t, s, n, read])
            | (["shared" | "shared::cta", "global"], false, false, [t, s, n, read, _])
                if operands.len() == 4 + usize::from(hinted) =>
            {
                // A size, or a predicate that says to read nothing.
                let is_predicate = match read {
                    Operand::Name { name, .. } => self.register(name).is_some_and(|(_, ty)| ty == Type::Pred),
                    read => matches!(read, Operand::Not(_)),
                };
                size = Some(match is_predicate {
                    true => {
                        let (a, b) = (self.constant(0)?, self.source(n, Type::U32)?);
                        let (c, d) = (self.source(read, Type::Pred)?, self.temporary()?);
                        self.emit(Op::Ternary { f: select, d, a, b, c });
                        d
                    }
                    false => self.source(read, Type::U32)?,
                });
                (Bulk::Elements, t, s, n, None)
            }
            _ => return Err(form.unknown()),
        };
        let (t, s, n) = (self.address(form, t)?, self.address(form, s)?, self.source(n, Type::U32)?);
        let barrier = match barrier {
            Some(barrier) => self.address(form, barrier)?,
            None => size.unwrap_or(n),
        };
        self.found.copies |= kind != Bulk::Elements;
        self.emit(Op::Bulk { kind, t, s, n, barrier });
        Ok(())
    }

    /// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [to], [from], bytes, [mbarrier], mask`.
    fn multicast_in_bulk(
        &mut self,
        form: &Form<'a>,
        spaces: &[&str],
        operands: &[Operand<'a>],
        hinted: bool,
    ) -> Result<(), Error> {
        let (t, s, n, barrier, mask) = match (operands, hinted) {
            ([t, s, n, barrier, mask], false) | ([t, s, n, barrier, mask, _], true) => (t, s, n, barrier, mask),
            _ => return Err(form.unknown()),
        };
        if spaces != ["shared::cluster", "global"] {
            return Err(form.unknown());
        }
        let (t, s, n) = (self.address(form, t)?, self.address(form, s)?, self.source(n, Type::U32)?);
        let (barrier, mask) = (self.address(form, barrier)?, self.source(mask, Type::U16)?);
        self.found.copies = true;
        self.in_each_block(mask, (t, barrier), |builder, (t, barrier)| {
            builder.emit(Op::Bulk { kind: Bulk::ToShared, t, s, n, barrier });
            Ok(())
        })
    }

    /// What a multicast does in each block of the cluster that a mask names: to the same place of its shared memory, counted by its own mbarrier.
    pub(super) fn in_each_block(
        &mut self,
        mask: Reg,
        (target, barrier): (Reg, Reg),
        mut copy: impl FnMut(&mut Self, (Reg, Reg)) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let [t, b, p] = [self.temporary()?, self.temporary()?, self.temporary()?];
        for rank in 0..BLOCKS {
            let rank = self.constant(rank)?;
            self.emit(Op::Binary { f: |mask, rank| mask >> rank & 1, d: p, a: mask, b: rank });
            let skip = self.emit(Op::BranchIf { p, unless: true, target: 0 });
            self.emit(Op::InCluster { d: t, a: target, b: rank });
            self.emit(Op::InCluster { d: b, a: barrier, b: rank });
            copy(self, (t, b))?;
            let end = self.code.ops.len() as u32;
            self.code.ops[skip] = Op::BranchIf { p, unless: true, target: end };
        }
        Ok(())
    }

    /// `cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [to], [from], bytes`.
    fn reduce_in_bulk(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let hinted = form.cache_hints();
        let (to, from, bytes) = match (operands, hinted) {
            ([to, from, bytes], false) | ([to, from, bytes, _], true) => (to, from, bytes),
            _ => return Err(form.unknown()),
        };
        let is_known = form.has("bulk") && form.has("bulk_group");
        if !is_known || form.take_spaces() != ["global", "shared::cta"] {
            return Err(form.unknown());
        }
        let (op, ty) = (form.reduction()?, form.ty()?);
        let noftz = form.has("noftz");
        let fits = match ty {
            Type::F16 | Type::Bf16 => match op {
                AtomicOp::Add => noftz,
                _ => matches!(op, AtomicOp::Min | AtomicOp::Max) && !noftz,
            },
            Type::F32 | Type::F64 => op == AtomicOp::Add,
            Type::B32 | Type::B64 => matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor),
            Type::U32 => matches!(op, AtomicOp::Add | AtomicOp::Inc | AtomicOp::Dec | AtomicOp::Min | AtomicOp::Max),
            Type::S32 | Type::U64 => matches!(op, AtomicOp::Add | AtomicOp::Min | AtomicOp::Max),
            Type::S64 => matches!(op, AtomicOp::Min | AtomicOp::Max),
            _ => false,
        };
        if !fits || noftz && !matches!(ty, Type::F16 | Type::Bf16) {
            return Err(form.unknown());
        }
        let width = ty.bytes() as u8;
        let (order, scope) = (Order::Relaxed, Scope::Gpu);
        let memory = Memory { order, scope, ..Memory::plain(Space::Global, width) };
        let commutes = !ty.is_float() && !matches!(op, AtomicOp::Inc | AtomicOp::Dec);
        let how = self.atomic_form(AtomicForm { op, ty, memory, offset: 0, commutes, is_used: false, asks: false })?;
        self.found.narrowest = self.found.narrowest.min(width);
        self.found.copies = true;
        let (t, s, n) = (self.address(form, to)?, self.address(form, from)?, self.source(bytes, Type::U32)?);
        self.emit(Op::Bulk { kind: Bulk::Reduce(how), t, s, n, barrier: n });
        Ok(())
    }

    /// `st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], value, [mbarrier]` and `red.async`: the access, and then its bytes at the
    /// mbarrier.
    pub(super) fn asynchronous(
        &mut self,
        form: &mut Form<'a>,
        opcode: &str,
        operands: &[Operand<'a>],
    ) -> Result<(), Error> {
        let [to, value, mbarrier] = operands else { return Err(form.unknown()) };
        if !form.has("mbarrier::complete_tx::bytes") || !form.has("shared::cluster") {
            return Err(form.unknown());
        }
        match opcode {
            "st" => self.store_async(form, to, value, mbarrier),
            _ => self.reduce_async(form, to, value, mbarrier),
        }
    }

    fn store_async(
        &mut self,
        form: &mut Form<'a>,
        to: &Operand<'a>,
        value: &Operand<'a>,
        mbarrier: &Operand<'a>,
    ) -> Result<(), Error> {
        form.has("weak");
        let elements = form.elements();
        let ty = form.ty()?;
        let is_word = matches!(ty, Type::B32 | Type::U32 | Type::S32 | Type::F32);
        let is_double = matches!(ty, Type::B64 | Type::U64 | Type::S64 | Type::F64);
        if elements > 4 || !(is_word || is_double && elements <= 2) {
            return Err(form.unknown());
        }
        let bytes = ty.bytes() as u8;
        let a = self.address(form, to)?;
        for (place, value) in Self::elements(form, value, elements)?.iter().enumerate() {
            let s = self.source(value, ty)?;
            let align = if place == 0 { bytes * elements } else { bytes };
            let memory = Memory { align, ..Memory::plain(Space::Shared, bytes) };
            self.emit(Op::store(s, a, place as i32 * i32::from(bytes), memory));
        }
        let (barrier, before) = self.complete(form, mbarrier, bytes * elements)?;
        self.emit(Op::UnderWay { a, bytes: bytes * elements, barrier, before });
        Ok(())
    }

    fn reduce_async(
        &mut self,
        form: &mut Form<'a>,
        to: &Operand<'a>,
        value: &Operand<'a>,
        mbarrier: &Operand<'a>,
    ) -> Result<(), Error> {
        form.has("relaxed");
        form.has("cluster");
        let (op, ty) = (form.reduction()?, form.ty()?);
        let fits = match op {
            AtomicOp::Inc | AtomicOp::Dec => ty == Type::U32,
            AtomicOp::Min | AtomicOp::Max => matches!(ty, Type::U32 | Type::S32),
            AtomicOp::Add => matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::S64),
            _ => ty == Type::B32,
        };
        if !fits {
            return Err(form.unknown());
        }
        let (a, b, d) = (self.address(form, to)?, self.source(value, ty)?, self.temporary()?);
        let bytes = ty.bytes() as u8;
        let (order, scope) = (Order::Relaxed, Scope::Cluster);
        let memory = Memory { order, scope, ..Memory::plain(Space::Shared, bytes) };
        let commutes = !matches!(op, AtomicOp::Inc | AtomicOp::Dec);
        let how = self.atomic_form(AtomicForm { op, ty, memory, offset: 0, commutes, is_used: false, asks: false })?;
        self.emit(Op::Atomic { d, a, b, c: b, how });
        self.complete(form, mbarrier, bytes)?;
        Ok(())
    }

    /// Bytes have come, as an mbarrier counts them: its address, and what it was before.
    fn complete(&mut self, form: &Form<'a>, mbarrier: &Operand<'a>, bytes: u8) -> Result<(Reg, Reg), Error> {
        let (a, b, d) = (self.address(form, mbarrier)?, self.constant(bytes.into())?, self.temporary()?);
        self.emit(Op::MBarrier { kind: MBarrier::CompleteTx, d, a, b, shared: true, relaxed: false });
        Ok((a, d))
    }
}
