//! What an instruction says of its accesses to memory.

use crate::types::{Order, Scope, Space, Type};
use crate::world::{AtomicOp, Within};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) space: Space,
    pub(crate) bytes: u8,
    /// The address must be a multiple of this. For the first element of a vector, it is the size of the vector.
    pub(crate) align: u8,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    pub(crate) within: Within,
    pub(crate) unit: Unit,
}

/// What the rule is about by which an access is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Access,
    /// A matrix of `wmma`.
    Fragment,
    TensorMap,
}

impl Unit {
    /// Why an address must be a multiple of something. Each lane's part of a matrix is looked at by itself, and so the rule may ask for more.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Unit::Access => ", the size of what is accessed",
            Unit::Fragment => ": a matrix of wmma begins at a multiple of 32 bytes, and its stride is a multiple of 16",
            Unit::TensorMap => ": a tensor map lies at a multiple of 64 bytes",
        }
    }
}

impl Memory {
    /// A plain access by itself, at a multiple of its size.
    pub(crate) fn plain(space: Space, bytes: u8) -> Memory {
        let (order, scope, within, unit) = (Order::Weak, Scope::Sys, Within::Alone, Unit::Access);
        Memory { space, bytes, align: bytes, order, scope, within, unit }
    }

    /// The address that lies so many bytes behind that in a register. In spaces other than global memory, addresses have 32 bits, so the sum wraps around there. A register
    /// with bits above them holds an address of another kind: it is left as it is, and is out of bounds.
    #[inline(always)]
    pub(crate) fn at(&self, base: u64, offset: i64) -> u64 {
        let sum = base.wrapping_add_signed(offset);
        let wraps = !matches!(self.space, Space::Global | Space::Generic) && base >> 32 == 0;
        if wraps { sum & 0xffff_ffff } else { sum }
    }

    /// The element of a vector at a place, of so many.
    pub(crate) fn element(self, place: u8, elements: u8) -> Memory {
        let Memory { bytes, align, .. } = self;
        let align = if place == 0 { align } else { bytes };
        Memory { align, within: Within::word(place, elements, bytes), ..self }
    }

    /// The bytes of a plain access that may be to global memory. `None` for other accesses, and for the first of several elements of a vector.
    pub(crate) fn plain_bytes(self) -> Option<u8> {
        let is_global = matches!(self.space, Space::Global | Space::Generic);
        (is_global && self.order == Order::Weak && self.align == self.bytes).then_some(self.bytes)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicForm {
    pub(crate) op: AtomicOp,
    pub(crate) ty: Type,
    pub(crate) memory: Memory,
    pub(crate) offset: i64,
    /// Nobody looks at the old value, and atomics of this kind leave the same value in any order.
    pub(crate) commutes: bool,
    pub(crate) is_used: bool,
    /// What is looked at is only whether the old value is the third operand.
    pub(crate) asks: bool,
}
