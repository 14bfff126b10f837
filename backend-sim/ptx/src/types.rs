//! PTX's types, state spaces, scopes and orders.

use std::fmt;

/// A fundamental type, as an instruction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a type that PTX adds must be handled wherever one is")]
pub enum Type {
    /// A predicate.
    Pred,
    /// Untyped bits.
    B8,
    /// Untyped bits.
    B16,
    /// Untyped bits.
    B32,
    /// Untyped bits.
    B64,
    /// Untyped bits: two registers of 64.
    B128,
    /// Unsigned.
    U8,
    /// Unsigned.
    U16,
    /// Unsigned.
    U32,
    /// Unsigned.
    U64,
    /// Signed.
    S8,
    /// Signed.
    S16,
    /// Signed.
    S32,
    /// Signed.
    S64,
    /// Two unsigned numbers of 16 bits.
    U16x2,
    /// Two signed numbers of 16 bits.
    S16x2,
    /// IEEE half precision.
    F16,
    /// Two numbers in half precision.
    F16x2,
    /// The upper half of a single-precision number.
    Bf16,
    /// Two of them.
    Bf16x2,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Type {
    /// The type of a modifier such as `u32`.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "u16x2" => Self::U16x2,
            "s16x2" => Self::S16x2,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return None,
        })
    }

    /// Bytes in memory. A predicate cannot lie in memory; a register of it holds one bit.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
            _ => 4,
        }
    }

    pub(crate) fn bits(self) -> u32 {
        self.bytes() * 8
    }

    /// Whether it is of signed integers.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether it is of numbers without a point, signed or not: neither floating-point nor untyped.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64) || self.is_signed()
    }

    /// Whether it is of floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64)
    }

    /// The low bits that a value of this type has in a register.
    pub(crate) fn mask(self) -> u64 {
        if self == Self::Pred { 1 } else { mask(self.bits().min(64)) }
    }
}

/// The lowest `bits` bits.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
}

/// Who takes part in the order that a strong access or a fence makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the scopes of PTX's memory model")]
pub enum Scope {
    /// The thread block.
    Cta,
    /// The cluster of blocks.
    Cluster,
    /// One GPU.
    Gpu,
    /// All GPUs and the host.
    Sys,
}

impl Scope {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "cta" => Self::Cta,
            "cluster" => Self::Cluster,
            "gpu" => Self::Gpu,
            "sys" => Self::Sys,
            _ => return None,
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cta => "cta",
            Self::Cluster => "cluster",
            Self::Gpu => "gpu",
            Self::Sys => "sys",
        })
    }
}

/// The strength and order of a memory access. All but `Weak` and `ReadOnly` are strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the orders of PTX's memory model")]
pub enum Order {
    /// An ordinary access: two that conflict without an order between them are a race.
    Weak,
    /// `.nc`, of a load: weak, and never ordered with writes. So nobody may write to the memory while the kernel runs.
    ReadOnly,
    /// `.volatile`: relaxed at scope `sys`.
    Volatile,
    /// Strong, orders nothing else.
    Relaxed,
    /// What follows comes after the release that wrote the value.
    Acquire,
    /// What came before is visible to a thread that acquires the value.
    Release,
    /// Both, for an atomic.
    AcquireRelease,
}

impl Order {
    /// Whether the access takes part in synchronization.
    pub fn is_strong(self) -> bool {
        !matches!(self, Self::Weak | Self::ReadOnly)
    }

    /// Whether what follows is ordered after.
    pub fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireRelease)
    }

    /// Whether what came before is ordered before.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcquireRelease)
    }
}
