//! Multiply and add of floats, the most frequent operation that computes.
//!
//! A product of two floats is exact in double precision. The sum is rounded to a double, and then to a float. That is right unless the first
//! rounding gave exactly the middle of two floats. So most results need no call of a function, and those of a warp can be computed together.

/// The bits of a multiply-add, and whether they may be wrong. Then [`exact`] must compute them.
#[inline(always)]
pub(crate) fn quick(a: u64, b: u64, c: u64) -> (u64, bool) {
    let [a, b, c] = [a, b, c].map(|bits| f64::from(f32::from_bits(bits as u32)));
    let sum = a * b + c;
    // Below the normal numbers, floats lie as far apart as the smallest of them.
    let is_small = sum.abs() < f64::from(f32::MIN_POSITIVE) && sum != 0.0;
    let is_middle = sum.to_bits() as u32 & 0x1fff_ffff == 0x1000_0000;
    (bits(sum as f32), is_small | is_middle)
}

/// The same, always right.
pub(crate) fn exact(a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
    bits(a.mul_add(b, c))
}

/// NaN is always the same.
#[inline(always)]
fn bits(result: f32) -> u64 {
    u64::from(if result.is_nan() { 0x7fff_ffff } else { result.to_bits() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Close to middles, to the smallest normal number and to the largest: what is quick is exact, or says that it may not be.
    #[test]
    fn quick_results_are_exact() {
        let mut state = 1_u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut doubtful, mut all) = (0, 0);
        for _ in 0..1_000_000 {
            // Few bits that are set, and exponents that meet, so that sums fall on middles often.
            let mut float = |spread: u64| {
                let mantissa = match random(4) {
                    0 => 0,
                    1 => 1 << random(23),
                    2 => 0x7f_ffff & !(1 << random(23)),
                    _ => random(1 << 23),
                };
                let exponent = match random(8) {
                    0 => random(256),
                    1 => random(4),
                    2 => 255 - random(4),
                    _ => 127 + random(spread) - spread / 2,
                };
                random(2) << 31 | exponent << 23 | mantissa
            };
            let (a, b, c) = (float(16), float(16), float(64));
            let (result, may_be_wrong) = quick(a, b, c);
            assert!(may_be_wrong || result == exact(a, b, c), "{a:#x} * {b:#x} + {c:#x}");
            doubtful += u32::from(may_be_wrong);
            all += 1;
        }
        assert!(doubtful > 100 && doubtful < all / 4, "{doubtful}");
    }

    #[test]
    fn zeros_are_quick() {
        for (a, b, c) in [(0.0_f32, 1.0_f32, 0.0_f32), (-1.0, 0.0, 0.0), (-1.0, 0.0, -0.0), (1.0, 1.0, -1.0)] {
            let [a, b, c] = [a, b, c].map(|float| u64::from(float.to_bits()));
            assert_eq!(quick(a, b, c), (exact(a, b, c), false));
        }
    }
}
