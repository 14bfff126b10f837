//! Registers of 128 bits, which are two of 64: moves, loads, stores and atomics.
//!
//! A weak access is one of two words. A strong one, or an atomic, nothing comes between.

use super::builder::Builder;
use super::form::Form;
use super::memory::Where;
use crate::error::Error;
use crate::op::{AtomicForm, Memory, Op, Reg, Wide};
use crate::syntax::Operand;
use crate::types::{Order, Scope, Space, Type};
use crate::world::AtomicOp;

impl<'a> Builder<'_, 'a> {
    /// The first of the two registers of a name; the other is behind it. `_` takes a result that nobody wants.
    fn wide(&mut self, operand: &Operand<'a>) -> Result<Reg, Error> {
        match *operand {
            Operand::Name { name: "_", .. } => self.new_wide(),
            Operand::Name { name, offset: 0 } => match self.register(name) {
                Some((register, Type::B128)) => Ok(register),
                _ => Err(self.error(format!("{name} is no register of 128 bits"))),
            },
            _ => Err(self.error("expected a register of 128 bits")),
        }
    }

    fn new_wide(&mut self) -> Result<Reg, Error> {
        let low = self.temporary()?;
        self.temporary()?;
        Ok(low)
    }

    /// `mov.b128`: from one such register to another, or from and to two of 64 bits.
    pub(super) fn mov_wide(&mut self, form: &Form<'a>, d: &Operand<'a>, a: &Operand<'a>) -> Result<(), Error> {
        let (from, to) = match (a, d) {
            (Operand::Vector(words), wide) => match &words[..] {
                [low, high] => {
                    let from = [self.source(low, Type::B64)?, self.source(high, Type::B64)?];
                    let low = self.wide(wide)?;
                    (from, [low, low + 1])
                }
                _ => return Err(form.unknown()),
            },
            (wide, Operand::Vector(words)) => match &words[..] {
                [low, high] => {
                    let to = [self.target(low)?.0, self.target(high)?.0];
                    let low = self.wide(wide)?;
                    ([low, low + 1], to)
                }
                _ => return Err(form.unknown()),
            },
            (from, to) => {
                let (from, to) = (self.wide(from)?, self.wide(to)?);
                ([from, from + 1], [to, to + 1])
            }
        };
        for (d, a) in to.into_iter().zip(from) {
            self.emit(Op::Move { d, a });
        }
        Ok(())
    }

    /// `ld.b128`, of a memory whose words have 8 bytes.
    pub(super) fn load_wide(
        &mut self,
        form: &Form<'a>,
        memory: Memory,
        target: &Operand<'a>,
        address: &Operand<'a>,
    ) -> Result<(), Error> {
        let low = self.wide(target)?;
        match self.place(form, address, memory.space, 16)? {
            Where::Address(a, offset) if memory.order.is_strong() => {
                self.wide_access(Wide::Load, [low, a, a, a], memory, offset)?;
            }
            from => {
                for (d, further, memory) in Self::words(low, memory) {
                    match from {
                        Where::Slot(offset) => self.emit(Op::LoadSlot { d, offset: offset + further, bytes: 8 }),
                        Where::Parameter(offset) => {
                            self.emit(Op::LoadParameter { d, offset: offset + further, bytes: 8 })
                        }
                        Where::Address(a, offset) => {
                            self.emit(Op::load(d, a, Self::behind(form, offset, further)?, memory))
                        }
                    };
                }
            }
        }
        Ok(())
    }

    pub(super) fn store_wide(
        &mut self,
        form: &Form<'a>,
        memory: Memory,
        address: &Operand<'a>,
        source: &Operand<'a>,
    ) -> Result<(), Error> {
        let low = self.wide(source)?;
        match self.place(form, address, memory.space, 16)? {
            Where::Address(a, offset) if memory.order.is_strong() => {
                let nothing = self.new_wide()?;
                self.wide_access(Wide::Store, [nothing, a, low, low], memory, offset)?;
            }
            to => {
                for (s, further, memory) in Self::words(low, memory) {
                    match to {
                        Where::Slot(offset) => self.emit(Op::StoreSlot { s, offset: offset + further, bytes: 8 }),
                        Where::Parameter(_) => return Err(form.error("a kernel cannot write its parameters")),
                        Where::Address(a, offset) => {
                            self.emit(Op::store(s, a, Self::behind(form, offset, further)?, memory))
                        }
                    };
                }
            }
        }
        Ok(())
    }

    /// Both words: their registers, how far behind the address they lie, and their accesses.
    fn words(low: Reg, memory: Memory) -> [(Reg, u32, Memory); 2] {
        [(low, 0, Memory { align: 16, ..memory }), (low + 1, 8, Memory { align: 8, ..memory })]
    }

    fn behind(form: &Form<'a>, offset: i32, further: u32) -> Result<i32, Error> {
        offset.checked_add_unsigned(further).ok_or_else(|| form.error("an offset beyond 2 GiB"))
    }

    /// `atom.exch.b128` and `atom.cas.b128`.
    pub(super) fn atomic_wide(
        &mut self,
        form: &Form<'a>,
        op: AtomicOp,
        (order, scope, space): (Order, Scope, Space),
        operands: &[Operand<'a>],
    ) -> Result<(), Error> {
        let (kind, target, address, b, c) = match (op, operands) {
            (AtomicOp::Exchange, [target, address, value]) => (Wide::Exchange, target, address, value, value),
            (AtomicOp::CompareSwap, [target, address, compare, value]) => {
                (Wide::CompareSwap, target, address, compare, value)
            }
            _ => return Err(form.unknown()),
        };
        let (d, b, c) = (self.wide(target)?, self.wide(b)?, self.wide(c)?);
        let Where::Address(a, offset) = self.place(form, address, space, 16)? else { return Err(form.unknown()) };
        self.wide_access(kind, [d, a, b, c], Memory { align: 16, order, scope, ..Memory::plain(space, 8) }, offset)
    }

    fn wide_access(&mut self, kind: Wide, [d, a, b, c]: [Reg; 4], memory: Memory, offset: i32) -> Result<(), Error> {
        let (op, ty) = (AtomicOp::Exchange, Type::B64);
        let memory = Memory { bytes: 8, align: 16, ..memory };
        let how = self.atomic_form(AtomicForm {
            op,
            ty,
            memory,
            offset: offset.into(),
            commutes: false,
            is_used: true,
            asks: false,
        })?;
        self.emit(Op::Wide { kind, d, a, b, c, how });
        Ok(())
    }
}
