//! Instructions on multicast addresses, which stand for the same memory of several GPUs: stores and reductions to all of it, and loads that reduce.

use super::builder::Builder;
use super::form::Form;
use crate::error::Error;
use crate::op::{AtomicForm, Memory, Multi, Op};
use crate::syntax::Operand;
use crate::types::{Order, Scope, Space, Type};
use crate::world::AtomicOp;

impl<'a> Builder<'_, 'a> {
    /// Each element of a vector is an operation of its own, and each copy of it an access.
    pub(super) fn multimem(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let kind = match form.need(&["ld_reduce", "st", "red"])? {
            "ld_reduce" => Multi::Load,
            "st" => Multi::Store,
            _ => Multi::Reduce,
        };
        let weak = if kind == Multi::Reduce { Order::Relaxed } else { Order::Weak };
        let order = form.order().unwrap_or(weak);
        let scope = form.scope();
        if order.is_strong() && kind != Multi::Reduce && scope.is_none() {
            return Err(form.error(format!("{} has an order and no scope", form.name())));
        }
        let scope = scope.unwrap_or(Scope::Sys);
        if !matches!(form.space(), Space::Global | Space::Generic) || order == Order::Volatile {
            return Err(form.unknown());
        }
        form.one_of(&["acc::f32", "acc::f16"]);
        let elements = form.elements();
        let ty = form.ty()?;
        let op = match kind {
            Multi::Store => AtomicOp::Exchange,
            _ => match form.need(&["add", "min", "max", "and", "or", "xor"])? {
                "add" => AtomicOp::Add,
                "min" => AtomicOp::Min,
                "max" => AtomicOp::Max,
                "and" => AtomicOp::And,
                "or" => AtomicOp::Or,
                _ => AtomicOp::Xor,
            },
        };
        let bitwise = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
        let is_plain = matches!(ty, Type::B32 | Type::B64);
        let fits = match ty {
            Type::B32 | Type::B64 => kind == Multi::Store || bitwise,
            Type::S64 => !bitwise && op != AtomicOp::Add && elements == 1,
            Type::U32 | Type::S32 | Type::U64 => !bitwise && elements == 1,
            Type::F32 => matches!(op, AtomicOp::Add | AtomicOp::Exchange),
            Type::F64 => matches!(op, AtomicOp::Add | AtomicOp::Exchange) && elements == 1,
            Type::F16x2 | Type::Bf16x2 => !bitwise,
            Type::F16 | Type::Bf16 => !bitwise && elements > 1,
            _ => false,
        };
        let bytes = ty.bytes() as u8;
        if !fits || is_plain && bitwise && elements > 1 || bytes * elements > 16 {
            return Err(form.unknown());
        }
        let (values, address) = match (kind, operands) {
            (Multi::Load, [values, address]) | (_, [address, values]) => (values, address),
            _ => return Err(form.unknown()),
        };
        // a load or a store may have braces around what is no vector, and this may not
        if elements == 1 && matches!(values, Operand::Vector(_)) {
            return Err(form.error(format!("{} is no access to a vector, so there are no braces here", form.name())));
        }
        let values = Self::elements(form, values, elements)?;
        let a = self.address(form, address)?;
        let memory = Memory { align: bytes * elements, order, scope, ..Memory::plain(Space::Global, bytes) };
        for (place, value) in values.iter().enumerate() {
            let register = match kind {
                Multi::Load => self.target(value)?.0,
                _ => self.source(value, ty)?,
            };
            let memory = Memory { align: if place == 0 { memory.align } else { bytes }, ..memory };
            let commutes = kind == Multi::Reduce && !ty.is_float();
            let offset = place as i64 * i64::from(bytes);
            let how = self.atomic_form(AtomicForm {
                op,
                ty,
                memory,
                offset,
                commutes,
                is_used: kind != Multi::Reduce,
                asks: false,
            })?;
            self.emit(Op::Multi { kind, r: register, a, how });
        }
        Ok(())
    }
}
