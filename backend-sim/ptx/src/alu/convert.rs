//! `cvt`: from every type to every other one that PTX converts to.

use super::round::{DOUBLE, Format, Rounding};
use crate::types::{Type, mask};

/// A conversion, as it was decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) to: Type,
    pub(crate) from: Type,
    pub(crate) rounding: Rounding,
    /// Whether a float becomes an integral float (`cvt.rni.f32.f32`).
    pub(crate) integral: bool,
    pub(crate) saturate: bool,
    /// To the largest finite number instead of infinity.
    pub(crate) finite: bool,
    /// Negative results become zero.
    pub(crate) relu: bool,
    /// Subnormal numbers in single precision become zero.
    pub(crate) flush: bool,
    /// Bits of the register that takes the result, which a narrow signed number fills with its sign.
    pub(crate) register: u32,
}

impl Conversion {
    pub(crate) fn apply(&self, a: u64) -> u64 {
        match (self.from.is_float(), self.to.is_float()) {
            (true, true) => self.float_to_float(a),
            (true, false) => self.float_to_integer(a),
            (false, true) => self.integer_to_float(a),
            (false, false) => self.integer_to_integer(a),
        }
    }

    fn integer(&self, a: u64) -> i128 {
        let bits = self.from.bits();
        let unsigned = i128::from(a & mask(bits));
        if self.from.is_signed() && unsigned >> (bits - 1) & 1 == 1 { unsigned - (1 << bits) } else { unsigned }
    }

    fn in_register(&self, value: i128) -> u64 {
        let bits = self.to.bits();
        let low = value as u64 & mask(bits);
        let negative = self.to.is_signed() && low >> (bits - 1) & 1 == 1;
        (if negative { low | !mask(bits) } else { low }) & mask(self.register)
    }

    fn limits(&self) -> (i128, i128) {
        let bits = self.to.bits();
        if self.to.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    fn integer_to_integer(&self, a: u64) -> u64 {
        let value = self.integer(a);
        let (low, high) = self.limits();
        self.in_register(if self.saturate { value.clamp(low, high) } else { value })
    }

    /// Always saturates. What is no number becomes zero. Where 64 bits are involved on either side, GPUs give the number with the
    /// highest bit alone instead (measured on an H200).
    fn float_to_integer(&self, a: u64) -> u64 {
        let value = integral(self.float(a), self.rounding);
        let (low, high) = self.limits();
        let value = if value.is_nan() {
            let is_wide = self.from == Type::F64 || self.to.bits() == 64;
            if is_wide { 1 << (self.to.bits() - 1) } else { 0 }
        } else {
            (value as i128).clamp(low, high) // `as` saturates, far beyond the limits
        };
        self.in_register(value)
    }

    fn integer_to_float(&self, a: u64) -> u64 {
        let Some(format) = Format::of(self.to) else { return 0 };
        let value = self.integer(a);
        let magnitude = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX); // at most 64 bits by its type
        self.finish(format, format.pack(value < 0, magnitude, 0, false, self.rounding))
    }

    fn float_to_float(&self, a: u64) -> u64 {
        let Some(format) = Format::of(self.to) else { return 0 };
        let value = self.float(a);
        if value.is_nan()
            && let Some(bits) = quiet(self.from, self.to, a)
        {
            return self.finish(format, bits);
        }
        let value = if self.integral { integral(value, self.rounding) } else { value };
        self.finish(format, format.round(value, self.rounding))
    }

    fn float(&self, a: u64) -> f64 {
        let a = if self.flush && self.from == Type::F32 && a & 0x7f80_0000 == 0 { a & 0x8000_0000 } else { a };
        Format::of(self.from).map_or(0.0, |format| format.to_f64(a & self.from.mask()))
    }

    fn finish(&self, format: Format, bits: u64) -> u64 {
        let value = format.to_f64(bits);
        if self.saturate {
            let one = format.round(1.0, Rounding::Nearest);
            return if value > 1.0 {
                one
            } else if value > 0.0 {
                bits
            } else {
                0
            };
        }
        if self.relu && value.is_sign_negative() && !value.is_nan() {
            return 0; // of a negative zero, too
        }
        if self.finite && value.is_infinite() {
            return bits - 1;
        }
        if self.flush && self.to == Type::F32 && bits & 0x7f80_0000 == 0 {
            return bits & 0x8000_0000;
        }
        bits
    }
}

/// The result for a NaN, if the conversion keeps its sign and payload; mostly it becomes quiet. `None` if the result is the usual NaN. PTX leaves this open: the table is what an H100 does.
fn quiet(from: Type, to: Type, a: u64) -> Option<u64> {
    let sign = |from: u32, to: u32| (a >> from & 1) << to;
    match (from, to) {
        (Type::F64, Type::F64) => Some(a | 1 << 51),
        (Type::F32, Type::F64) => Some(sign(31, 63) | 0x7ff8_0000_0000_0000 | (a & 0x3f_ffff) << 29),
        (Type::F16, Type::F64) => Some(sign(15, 63) | 0x7ff8_0000_0000_0000 | (a & 0x1ff) << 42),
        (Type::F64, Type::F32) => Some(sign(63, 31) | 0x7fc0_0000 | a >> 29 & 0x3f_ffff),
        (Type::F64, Type::F16) => Some(sign(63, 15) | 0x7e00 | a >> 42 & 0x1ff),
        (Type::Bf16, Type::F32) => Some((a & 0xffff) << 16), // a move, which leaves it as it is
        (_, Type::F64) => Some(DOUBLE.nan),
        _ => None,
    }
}

fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => libm::rint(value),
        Rounding::NearestAway => libm::round(value),
        Rounding::Zero => libm::trunc(value),
        Rounding::Down => libm::floor(value),
        Rounding::Up => libm::ceil(value),
    }
}
