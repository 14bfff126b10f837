//! Loads, stores, atomics.

use super::builder::{Builder, Local};
use super::form::Form;
use crate::error::Error;
use crate::op::{AtomicForm, Memory, Op, Reg};
use crate::syntax::Operand;
use crate::types::{Order, Scope, Space, Type};
use crate::world::AtomicOp;

/// The bytes that are discarded at once, and what they begin at a multiple of.
const DISCARDED: u64 = 128;

/// Where an access goes.
pub(super) enum Where {
    Slot(u32),
    Parameter(u32),
    Address(Reg, i32),
}

/// Whether PTX has an atomic or a reduction of this type. Those of 128 bits have rules of their own.
fn of_atomic(op: AtomicOp, ty: Type, elements: u8, noftz: bool) -> bool {
    let is_half = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    if noftz != is_half {
        return false;
    }
    if elements > 1 {
        return match op {
            AtomicOp::Add => is_half || ty == Type::F32,
            AtomicOp::Min | AtomicOp::Max => is_half,
            _ => false,
        };
    }
    match op {
        AtomicOp::Inc | AtomicOp::Dec => ty == Type::U32,
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => matches!(ty, Type::B32 | Type::B64),
        AtomicOp::CompareSwap => matches!(ty, Type::B16 | Type::B32 | Type::B64),
        // a sum with sign is the same as one without
        AtomicOp::Add => is_half || matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::F32 | Type::F64),
        AtomicOp::Min | AtomicOp::Max => matches!(ty, Type::U32 | Type::S32 | Type::U64 | Type::S64),
    }
}

impl<'a> Builder<'_, 'a> {
    pub(super) fn memory(
        &mut self,
        form: &mut Form<'a>,
        opcode: &str,
        operands: &[Operand<'a>],
    ) -> Result<bool, Error> {
        match opcode {
            "st" | "red" if form.has("async") => self.asynchronous(form, opcode, operands)?,
            "ld" | "ldu" => self.load(form, opcode == "ldu", operands)?,
            "st" => self.store(form, operands)?,
            "atom" | "red" => self.atomic(form, opcode == "atom", operands)?,
            "multimem" => self.multimem(form, operands)?,
            "cp" => self.copy_async(form, operands)?,
            "tensormap" => self.copy_map(form, operands)?,
            "discard" => self.discard(form, operands)?,
            // What only caches see.
            "prefetch" | "prefetchu" | "applypriority" => {
                form.space();
                form.one_of(&["L1", "L2", "tensormap"]);
                form.priorities();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Order, scope and space of a load or store; the number of elements of a vector.
    fn access(&mut self, form: &mut Form<'a>) -> Result<(Memory, u8, Type), Error> {
        let of_a_device = form.has("mmio"); // an access like any other where no device is behind the memory
        let order = form.order().unwrap_or(Order::Weak);
        let scope = form.scope();
        let space = form.space();
        if of_a_device && (order != Order::Relaxed || scope != Some(Scope::Sys)) {
            return Err(form.unknown());
        }
        let elements = form.elements();
        let ty = form.ty()?;
        if matches!(order, Order::Relaxed | Order::Acquire | Order::Release) && scope.is_none() {
            return Err(form.error(format!("{} has an order and no scope", form.name())));
        }
        // an access of 16 bytes is two words
        let bytes = if ty == Type::B128 && elements == 1 { 8 } else { ty.bytes() };
        if ty == Type::Pred || bytes > 8 || bytes * u32::from(elements) > 32 {
            return Err(form.unknown());
        }
        let bytes = bytes as u8;
        if bytes * elements == 32 {
            form.priorities();
        }
        if matches!(space, Space::Shared | Space::Generic) {
            self.found.narrowest = self.found.narrowest.min(bytes);
        }
        let (align, scope) = (bytes * elements, scope.unwrap_or(Scope::Sys));
        let memory = Memory { align, order, scope, ..Memory::plain(space, bytes) };
        Ok((memory, elements, ty))
    }

    /// The elements that an operand stands for.
    pub(super) fn elements<'o>(
        form: &Form<'_>,
        operand: &'o Operand<'a>,
        elements: u8,
    ) -> Result<&'o [Operand<'a>], Error> {
        let all = match operand {
            Operand::Vector(all) => &all[..],
            _ => std::slice::from_ref(operand),
        };
        if all.len() == usize::from(elements) {
            Ok(all)
        } else {
            Err(form.error(format!("{} has {elements} elements", form.name())))
        }
    }

    pub(super) fn place(
        &mut self,
        form: &Form<'a>,
        address: &Operand<'a>,
        space: Space,
        size: u32,
    ) -> Result<Where, Error> {
        let &Operand::Address { base, offset } = address else {
            return Err(form.error("expected an address in brackets"));
        };
        let Some(name) = base else {
            return Ok(Where::Address(self.constant(offset.cast_unsigned())?, 0));
        };
        if let Some((register, _)) = self.register(name) {
            let (register, offset) = self.offset(register, offset)?;
            return Ok(Where::Address(register, offset));
        }
        match self.local(name) {
            Some(Local::Slot(slot) | Local::Parameter(slot)) if matches!(space, Space::Param | Space::Generic) => {
                let begin =
                    u32::try_from(offset).ok().filter(|&begin| u64::from(begin) + u64::from(size) <= slot.size.into());
                let begin =
                    begin.ok_or_else(|| form.error(format!("{size} bytes at {offset} are not within {name}")))?;
                let at = slot.offset + begin;
                Ok(if matches!(self.local(name), Some(Local::Slot(_))) {
                    Where::Slot(at)
                } else {
                    Where::Parameter(at)
                })
            }
            _ => Ok(Where::Address(self.address_of(name, offset)?, 0)),
        }
    }

    /// `read_only`: the instruction itself says that nobody writes there while the kernel runs; `.nc` says so, too.
    fn load(&mut self, form: &mut Form<'a>, read_only: bool, operands: &[Operand<'a>]) -> Result<(), Error> {
        let hinted = form.cache_hints();
        let read_only = form.has("nc") || read_only;
        let (mut memory, elements, ty) = self.access(form)?;
        if read_only {
            if memory.order.is_strong() || !matches!(memory.space, Space::Global | Space::Generic) {
                return Err(form.unknown());
            }
            memory.order = Order::ReadOnly;
        }
        let (target, address) = match (operands, hinted) {
            ([target, address], _) | ([target, address, _], true) => (target, address),
            _ => return Err(form.unknown()),
        };
        if ty == Type::B128 {
            return self.load_wide(form, memory, target, address);
        }
        let targets = Self::elements(form, target, elements)?;
        let mut from = self.place(form, address, memory.space, u32::from(memory.align))?;
        // The register of the address may be among the targets.
        if let (Where::Address(a, _), true) = (&mut from, elements > 1) {
            let d = self.temporary()?;
            self.emit(Op::Move { d, a: *a });
            *a = d;
        }
        for (place, target) in targets.iter().enumerate() {
            let (d, register) = self.target(target)?;
            let further = place as u32 * u32::from(memory.bytes);
            let element = memory.element(place as u8, elements);
            match from {
                Where::Slot(offset) => self.emit(Op::LoadSlot { d, offset: offset + further, bytes: memory.bytes }),
                Where::Parameter(offset) => {
                    self.emit(Op::LoadParameter { d, offset: offset + further, bytes: memory.bytes })
                }
                Where::Address(a, offset) => {
                    let offset =
                        offset.checked_add_unsigned(further).ok_or_else(|| form.error("an offset beyond 2 GiB"))?;
                    let at = self.emit(Op::load(d, a, offset, element));
                    self.note_poll(place)?;
                    at
                }
            };
            self.fit(d, ty, register);
        }
        Ok(())
    }

    fn store(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let hinted = form.cache_hints();
        let (memory, elements, ty) = self.access(form)?;
        let (address, source) = match (operands, hinted) {
            ([address, source], _) | ([address, source, _], true) => (address, source),
            _ => return Err(form.unknown()),
        };
        if ty == Type::B128 {
            return self.store_wide(form, memory, address, source);
        }
        let sources = Self::elements(form, source, elements)?;
        let to = self.place(form, address, memory.space, u32::from(memory.align))?;
        for (place, source) in sources.iter().enumerate() {
            let s = self.source(source, ty)?;
            let further = place as u32 * u32::from(memory.bytes);
            let element = memory.element(place as u8, elements);
            match to {
                Where::Slot(offset) => self.emit(Op::StoreSlot { s, offset: offset + further, bytes: memory.bytes }),
                Where::Parameter(_) => return Err(form.error("a kernel cannot write its parameters")),
                Where::Address(a, offset) => {
                    let offset =
                        offset.checked_add_unsigned(further).ok_or_else(|| form.error("an offset beyond 2 GiB"))?;
                    self.emit(Op::store(s, a, offset, element))
                }
            };
        }
        Ok(())
    }

    fn atomic(&mut self, form: &mut Form<'a>, fetches: bool, operands: &[Operand<'a>]) -> Result<(), Error> {
        let hinted = form.cache_hints();
        let noftz = form.has("noftz");
        let operands = match operands.split_last() {
            Some((_, rest)) if hinted => rest,
            _ => operands,
        };
        let op = match form.one_of(&["exch", "cas"]) {
            Some("exch") => AtomicOp::Exchange,
            Some(_) => AtomicOp::CompareSwap,
            None => form.reduction()?,
        };
        // Without an order it is relaxed, without a scope it is the GPU's.
        let order = form.order().unwrap_or(Order::Relaxed);
        let scope = form.scope().unwrap_or(Scope::Gpu);
        let space = form.space();
        let elements = form.elements();
        let ty = form.ty()?;
        let fits = of_atomic(op, ty, elements, noftz);
        if ty == Type::B128
            && fetches
            && elements == 1
            && matches!(space, Space::Generic | Space::Global | Space::Shared)
        {
            return self.atomic_wide(form, op, (order, scope, space), operands);
        }
        if !fits || !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return Err(form.unknown());
        }
        if elements > 1 {
            let (found, address, values) = match operands {
                [found, address, values] if fetches => (Self::elements(form, found, elements)?, address, values),
                [address, values] if !fetches => (&[][..], address, values),
                _ => return Err(form.unknown()),
            };
            if space == Space::Shared || ty.bytes() * u32::from(elements) > 16 {
                return Err(form.unknown());
            }
            let values = Self::elements(form, values, elements)?;
            return self.atomic_vector(form, (op, ty), (order, scope, space), address, (found, values));
        }
        let (target, address, values) = match (fetches, operands) {
            (true, [target, address, values @ ..]) => (Some(target), address, values),
            (false, [address, values @ ..]) => (None, address, values),
            _ => return Err(form.unknown()),
        };
        let (b, c) = match (op, values) {
            (AtomicOp::CompareSwap, [compare, value]) => (self.source(compare, ty)?, self.source(value, ty)?),
            (AtomicOp::CompareSwap, _) => return Err(form.unknown()),
            (_, [value]) => {
                let b = self.source(value, ty)?;
                (b, b)
            }
            _ => return Err(form.unknown()),
        };
        let bytes = ty.bytes() as u8;
        let memory = Memory { order, scope, ..Memory::plain(space, bytes) };
        if matches!(space, Space::Shared | Space::Generic) {
            self.found.narrowest = self.found.narrowest.min(bytes);
        }
        let Where::Address(a, offset) = self.place(form, address, space, bytes.into())? else {
            return Err(form.unknown());
        };
        let d = match target {
            Some(target) => self.target(target)?.0,
            None => self.temporary()?,
        };
        let is_used = target.is_some_and(|target| match target {
            Operand::Name { name, .. } => self.results_used.register(name),
            _ => true,
        });
        // a sum of floating-point numbers depends on the order
        let commutes = !is_used
            && match op {
                AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => !ty.is_float(),
                AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => true,
                _ => false,
            };
        let asked = self.asked_number()?;
        let asks = asked.is_some();
        let how = self.atomic_form(AtomicForm { op, ty, memory, offset: offset.into(), commutes, is_used, asks })?;
        self.emit(Op::Atomic { d, a, b, c: asked.unwrap_or(c), how });
        self.note_poll(0)
    }

    /// That of a vector: each element is one of its own. `found`: where the old values go, if anywhere.
    fn atomic_vector(
        &mut self,
        form: &Form<'a>,
        (op, ty): (AtomicOp, Type),
        (order, scope, space): (Order, Scope, Space),
        address: &Operand<'a>,
        (found, values): (&[Operand<'a>], &[Operand<'a>]),
    ) -> Result<(), Error> {
        let (a, bytes) = (self.address(form, address)?, ty.bytes() as u8);
        let mut olds = Vec::with_capacity(found.len());
        for (place, value) in values.iter().enumerate() {
            let (b, d) = (self.source(value, ty)?, self.temporary()?);
            olds.push(d);
            let align = if place == 0 { bytes * values.len() as u8 } else { bytes };
            let memory = Memory { align, order, scope, ..Memory::plain(space, bytes) };
            let offset = place as i64 * i64::from(bytes);
            let how =
                self.atomic_form(AtomicForm { op, ty, memory, offset, commutes: false, is_used: true, asks: false })?;
            self.emit(Op::Atomic { d, a, b, c: b, how });
        }
        // behind all of them, as a register may be read and written
        for (target, old) in found.iter().zip(olds) {
            let d = self.target(target)?.0;
            self.emit(Op::Move { d, a: old });
        }
        Ok(())
    }

    /// `discard.global.L2 [a], 128`: a weak write of values that PTX leaves open. Here they are always the same, and stand out.
    fn discard(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [address, Operand::Bits(DISCARDED)] = operands else { return Err(form.unknown()) };
        if !form.has("L2") || !matches!(form.space(), Space::Global | Space::Generic) {
            return Err(form.unknown());
        }
        let (a, s) = (self.address(form, address)?, self.constant(0xdead_dead_dead_dead)?);
        for offset in (0..DISCARDED as i32).step_by(8) {
            // a generic address must be one of global memory, too
            let memory = Memory::plain(Space::Global, 8);
            let align = if offset == 0 { DISCARDED as u8 } else { memory.align };
            self.emit(Op::store(s, a, offset, Memory { align, ..memory }));
        }
        Ok(())
    }

    /// The number of the form of an atomic.
    pub(super) fn atomic_form(&mut self, form: AtomicForm) -> Result<u16, Error> {
        let how = u16::try_from(self.code.atomics.len());
        let how = how.map_err(|_| self.error("more than 65,535 atomics in a function"))?;
        self.code.atomics.push(form);
        Ok(how)
    }

    /// A register with the address that stands in brackets.
    pub(super) fn address(&mut self, form: &Form<'a>, operand: &Operand<'a>) -> Result<Reg, Error> {
        match self.place(form, operand, Space::Shared, 0)? {
            Where::Address(a, 0) => Ok(a),
            Where::Address(a, offset) => {
                let (d, b) = (self.temporary()?, self.constant(i64::from(offset).cast_unsigned())?);
                // an address that fits into 32 bits is one of shared memory, and wraps around there
                let is_narrow = |name| self.register(name).is_some_and(|(_, ty)| ty.bits() <= 32);
                match *operand {
                    Operand::Address { base: Some(name), .. } if is_narrow(name) => self.emit(Op::Add32 { d, a, b }),
                    _ => self.emit(Op::Add64 { d, a, b }),
                };
                Ok(d)
            }
            Where::Slot(_) | Where::Parameter(_) => Err(form.unknown()),
        }
    }
}
