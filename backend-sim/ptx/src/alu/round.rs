//! Rounding: an exact number, or all that rounding needs to know of one, to a floating-point format.

use crate::types::Type;

/// The direction in which a result is rounded that the format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest; of two, to the even one.
    Nearest,
    /// To the nearest; of two, away from zero.
    NearestAway,
    Zero,
    Down,
    Up,
}

impl Rounding {
    /// `rn`, `rni` and their kin.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "rn" | "rni" => Self::Nearest,
            "rna" => Self::NearestAway,
            "rz" | "rzi" => Self::Zero,
            "rm" | "rmi" => Self::Down,
            "rp" | "rpi" => Self::Up,
            _ => return None,
        })
    }
}

/// A floating-point format: bits of the fraction and of the exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) fraction: u32,
    pub(crate) exponent: u32,
    /// The bits of the NaN that operations return.
    pub(crate) nan: u64,
}

pub(crate) const HALF: Format = Format { fraction: 10, exponent: 5, nan: 0x7fff };
pub(crate) const BFLOAT: Format = Format { fraction: 7, exponent: 8, nan: 0x7fff };
pub(crate) const SINGLE: Format = Format { fraction: 23, exponent: 8, nan: 0x7fff_ffff };
pub(crate) const DOUBLE: Format = Format { fraction: 52, exponent: 11, nan: 0xfff8_0000_0000_0000 };

impl Format {
    pub(crate) fn of(ty: Type) -> Option<Self> {
        Some(match ty {
            Type::F16 => HALF,
            Type::Bf16 => BFLOAT,
            Type::F32 => SINGLE,
            Type::F64 => DOUBLE,
            _ => return None,
        })
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub(crate) fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub(crate) fn sign(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    /// The bits of `± m × 2^e`, rounded. `more`: the exact number is larger in magnitude, by less than one unit in `m`'s
    /// last place. Then `m` must have at least two bits more than the fraction.
    pub(crate) fn pack(self, negative: bool, m: u64, e: i32, more: bool, rounding: Rounding) -> u64 {
        let sign = if negative { self.sign() } else { 0 };
        if m == 0 && !more {
            return sign;
        }
        // The exponent of the leading bit decides which bit is the last one kept: subnormal numbers keep fewer.
        let leading = 63 - m.max(1).leading_zeros() as i32 + e;
        let last = (leading - self.fraction as i32).max(1 - self.bias() - self.fraction as i32);
        let shift = last - e;
        let (kept, rest, half) = if shift <= 0 {
            (m << shift.unsigned_abs().min(63), 0, 1)
        } else if shift > 63 {
            (0, 1, 4)
        } else {
            (m >> shift, m & ((1 << shift) - 1), 1 << (shift - 1))
        };
        let inexact = rest != 0 || more;
        let up = match rounding {
            Rounding::Nearest => rest > half || (rest == half && (more || kept & 1 == 1)),
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => negative && inexact,
            Rounding::Up => !negative && inexact,
        } && inexact;
        let kept = kept + u64::from(up);
        // A carry out of the fraction raises the exponent by itself, as the bits are laid out.
        let hidden = 1_u64 << self.fraction;
        let exponent = last + self.fraction as i32 + self.bias();
        let bits = if kept < hidden { kept } else { ((exponent as u64) << self.fraction) + (kept - hidden) };
        if bits >= self.infinity() || exponent >= (1 << self.exponent) {
            let largest = self.infinity() - 1;
            return sign
                | match rounding {
                    Rounding::Zero => largest,
                    Rounding::Down if !negative => largest,
                    Rounding::Up if negative => largest,
                    _ => self.infinity(),
                };
        }
        sign | bits
    }

    /// The bits of a double, rounded; every format but `DOUBLE` loses digits.
    pub(crate) fn round(self, value: f64, rounding: Rounding) -> u64 {
        if value.is_nan() {
            return self.nan;
        }
        let negative = value.is_sign_negative();
        if value.is_infinite() {
            return self.infinity() | if negative { self.sign() } else { 0 };
        }
        let (m, e) = split(value);
        self.pack(negative, m, e, false, rounding)
    }

    /// The value of these bits: exact, as a double holds every number of every format.
    pub(crate) fn to_f64(self, bits: u64) -> f64 {
        if self == SINGLE {
            return f64::from(f32::from_bits(bits as u32));
        }
        if self == DOUBLE {
            return f64::from_bits(bits);
        }
        if self == BFLOAT {
            return f64::from(f32::from_bits((bits as u32 & 0xffff) << 16));
        }
        let magnitude = bits & (self.sign() - 1);
        let value = if magnitude > self.infinity() {
            f64::NAN
        } else if magnitude == self.infinity() {
            f64::INFINITY
        } else {
            let exponent = (magnitude >> self.fraction) as i32;
            let fraction = magnitude & ((1 << self.fraction) - 1);
            let m = if exponent == 0 { fraction } else { fraction | 1 << self.fraction };
            // Two exact steps: powers of two, and a product that fits.
            m as f64 * f64::from_bits(((exponent.max(1) - self.bias() - self.fraction as i32 + 1023) as u64) << 52)
        };
        if bits & self.sign() == 0 { value } else { -value }
    }
}

/// A finite double as `m × 2^e`, without its sign.
fn split(value: f64) -> (u64, i32) {
    let bits = value.abs().to_bits();
    let exponent = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// The nearest double to `sum + error`, rounded to odd: a further rounding to a format of at most half the digits then gives what rounding
/// the exact number once gives.
pub(crate) fn to_odd(sum: f64, error: f64) -> f64 {
    if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    // An even result that is not exact: the odd neighbour on the side of the exact number.
    let away = (error > 0.0) == (sum > 0.0);
    if sum == 0.0 {
        return error;
    }
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

/// `a + b` and what rounding it lost, exactly.
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// `a × b + c` where the product is exact in a double: of factors of at most 26 digits.
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    let (sum, error) = two_sum(a * b, c);
    to_odd(sum, if error.is_nan() { 0.0 } else { error })
}
