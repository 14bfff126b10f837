//! `arithmetic.cu`, `vectors.cu` and `generic.cu`.

use half::{bf16, f16};

use super::load;

/// Numbers with interesting bits, always the same ones.
fn words(n: usize) -> Vec<u32> {
    let mut state = 0x2545_f491_u32;
    let edges = [0, 1, 2, 31, 32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_0000, 0x5555_5555];
    let random = std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        Some(state)
    });
    edges.into_iter().chain(random).take(n).collect()
}

#[test]
fn integers() {
    let mut loaded = load("arithmetic");
    let input = words(96);
    let from = loaded.array(&input, u32::to_le_bytes);
    let to = loaded.array(&[0; 32 * 24], u32::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("integers", launch);
    let out = loaded.read(to, u32::from_le_bytes);
    for (row, values) in out.chunks(24).zip(input.chunks(3)) {
        let [a, b, c] = [values[0], values[1], values[2]];
        let (signed_a, signed_b) = (a as i32, b as i32);
        let odd = b | 1;
        let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
        let permuted = (0..4).map(|i| u32::from(bytes[(c >> (4 * i) & 7) as usize]) << (8 * i)).sum::<u32>();
        let pair = u64::from(b) << 32 | u64::from(a);
        let dot = (0..4).map(|i| i32::from((a >> (8 * i)) as i8) * i32::from((b >> (8 * i)) as i8)).sum::<i32>();
        let halves = (a & 0xffff).wrapping_add(b & 0xffff) & 0xffff | (a >> 16).wrapping_add(b >> 16) << 16;
        let (position, length) = (b & 31, c & 31);
        let field = if length == 0 { 0 } else { (u64::from(a) >> position & ((1 << length) - 1)) as u32 };
        let signed_field = if length == 0 {
            0
        } else {
            // Sign of the field's last bit, or of the number's if the field reaches beyond it.
            ((i64::from(signed_a) >> position) << (64 - length) >> (64 - length)) as u32
        };
        let (place, size) = (c & 31, b & 31);
        let place_mask = (((1_u64 << size) - 1) << place) as u32;
        let significant = if signed_a < 0 { !a } else { a };
        let product = u64::from(a) * u64::from(b);
        let expected = [
            a.reverse_bits(),
            a.leading_zeros(),
            a.count_ones(),
            if a == 0 { 0 } else { a.trailing_zeros() + 1 },
            permuted,
            ((pair << (c & 31)) >> 32) as u32,
            (pair >> c.min(32)) as u32,
            (product >> 32) as u32,
            ((i64::from(signed_a) * i64::from(signed_b)) >> 32) as u32,
            c.wrapping_add(a.abs_diff(b)),
            c.wrapping_add(dot as u32),
            halves,
            (a / odd).wrapping_add(signed_a.wrapping_div(odd as i32) as u32),
            (a % odd).wrapping_add(signed_a.wrapping_rem(odd as i32) as u32),
            field,
            signed_field,
            b & !place_mask | a.wrapping_shl(place) & place_mask,
            a & b | b & c | a & c,
            if a == 0 { u32::MAX } else { a.leading_zeros() },
            if significant == 0 { u32::MAX } else { 31 - significant.leading_zeros() },
            signed_a.saturating_add(signed_b) as u32,
            c.wrapping_add(u32::from(a.checked_add(b).is_none())),
            (product >> 32) as u32 + u32::from((product as u32).checked_add(c).is_none()),
            if c as i32 >= 0 { a } else { b },
        ];
        assert_eq!(row, expected, "of {a:#x}, {b:#x}, {c:#x}");
    }
}

#[test]
fn wide_integers() {
    let mut loaded = load("arithmetic");
    let input: Vec<u64> = words(128).chunks(2).map(|w| u64::from(w[0]) << 32 | u64::from(w[1])).collect();
    let from = loaded.array(&input, u64::to_le_bytes);
    let to = loaded.array(&[0; 32 * 8], u64::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("wide", launch);
    for (row, values) in loaded.read(to, u64::from_le_bytes).chunks(8).zip(input.chunks(2)) {
        let [a, b] = [values[0], values[1]];
        let product = u128::from(a) * u128::from(b) + u128::from(a);
        let expected = [
            product as u64,
            (product >> 64) as u64,
            u64::from(a.leading_zeros() * 64 + b.count_ones()),
            a.reverse_bits(),
            (a as i64).wrapping_div((b | 1) as i64) as u64,
            a % (b | 1),
            ((a as i64) >> (b & 63)) as u64,
            (a >> 32) * (b & 0xffff_ffff),
        ];
        assert_eq!(row, expected, "of {a:#x}, {b:#x}");
    }
}

#[test]
fn floats() {
    let mut loaded = load("arithmetic");
    let mut input: Vec<f32> = vec![1.5, -2.25, 0.1, 3.7, -0.0, 1e-20, 88.0, 0.5, 2.5, -2.5, 1e9, -7.0];
    input.extend(words(52).iter().map(|w| *w as i32 as f32 / 3e8));
    let from = loaded.array(&input, f32::to_le_bytes);
    let to = loaded.array(&[0.0; 32 * 12], f32::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("floats", launch);
    for (row, values) in loaded.read(to, f32::from_le_bytes).chunks(12).zip(input.chunks(2)) {
        let [a, b] = [values[0], values[1]];
        let exact = [
            (0, a / b),
            (1, a.sqrt()),
            (2, a.min(b) + a.max(b)),
            (3, a.abs() - b),
            (4, a.mul_add(b, 1.0)),
            (9, a.copysign(b) + a.trunc() + b.round()),
            (10, a as i32 as f32 + b.abs() as u32 as f32),
            (11, a.clamp(0.0, 1.0)),
        ];
        for (place, expected) in exact {
            let same = row[place] == expected || (row[place].is_nan() && expected.is_nan());
            assert!(same, "result {place} of {a:e}, {b:e}: {:e}, not {expected:e}", row[place]);
        }
        let close = [(5, 1.0 / a.sqrt()), (6, a.exp()), (7, a.sin() + b.cos()), (8, a / b)];
        for (place, expected) in close {
            let (found, expected) = (f64::from(row[place]), f64::from(expected));
            // Large arguments of sin and cos are reduced differently.
            let near = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0)
                || (place == 7 && a.abs().max(b.abs()) > 1e3);
            let both_nan = found.is_nan() && expected.is_nan();
            assert!(
                near || both_nan || found == expected,
                "result {place} of {a:e}, {b:e}: {found:e}, not {expected:e}"
            );
        }
    }
}

#[test]
fn doubles() {
    let mut loaded = load("arithmetic");
    let input: Vec<f64> = words(64).iter().map(|w| f64::from(*w as i32) / 1234.5).collect();
    let from = loaded.array(&input, f64::to_le_bytes);
    let to = loaded.array(&[0.0; 32 * 6], f64::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("doubles", launch);
    for (row, values) in loaded.read(to, f64::from_le_bytes).chunks(6).zip(input.chunks(2)) {
        let [a, b] = [values[0], values[1]];
        assert_eq!(
            row[0].to_bits(),
            if b == 0.0 && a == 0.0 { 0xfff8_0000_0000_0000 } else { (a / b).to_bits() },
            "{a} / {b}"
        );
        assert!(row[1] == a.sqrt() || a < 0.0 && row[1].is_nan());
        assert_eq!(row[2], a.mul_add(b, -a));
        // Rounded up: the sum or the next number.
        let sum = a + b;
        assert!(row[3] == sum || row[3] == sum.next_up(), "{a} + {b} = {}", row[3]);
        let expected = a.sin() + (b.abs() + 1.0).ln();
        assert!((row[4] - expected).abs() < 1e-9, "{} of {a}, {b}, not {expected}", row[4]);
        let mixed = f64::from_bits(a.to_bits() & !0xffff_ffff | b.to_bits() & 0xffff_ffff);
        assert_eq!(row[5], a as i64 as f64 + f64::from(b as f32) + mixed);
    }
}

#[test]
fn half_precision() {
    let mut loaded = load("vectors");
    let numbers: Vec<f16> = words(64).iter().map(|&w| f16::from_f32((w as i32 as f32) / 1e8)).collect();
    let bits: Vec<u16> = numbers.iter().map(|x| x.to_bits()).collect();
    let (a, b) = (loaded.array(&bits[..32], u16::to_le_bytes), loaded.array(&bits[32..], u16::to_le_bytes));
    let to = loaded.array(&[0; 16 * 6 * 2], u16::to_le_bytes);
    let launch = [to, a, b].iter().fold(loaded.launch(1, 16), |launch, p| launch.parameter(&p.to_le_bytes()));
    loaded.finishes("half_pairs", launch);
    let out = loaded.read(to, u16::from_le_bytes);
    for i in 0..16 {
        for half in 0..2 {
            let (x, y) = (numbers[i * 2 + half], numbers[32 + i * 2 + half]);
            let found: Vec<f16> = (0..6).map(|k| f16::from_bits(out[(i * 6 + k) * 2 + half])).collect();
            // Sums and products of two of them are exact in double precision.
            let exact = |value: f64| f16::from_f64(value);
            let (p, q) = (f64::from(x), f64::from(y));
            let larger = if p > q { 1.0 } else { 0.0 };
            let expected = [p + q, p * q, p * q + p, p.max(q), p - q, larger].map(exact);
            assert_eq!(found, expected, "of {x}, {y}");
        }
    }
}

#[test]
fn half_axpy_and_bf16() {
    let mut loaded = load("vectors");
    let numbers: Vec<u16> = (0..64).map(|i| f16::from_f32(i as f32 * 0.37 - 9.0).to_bits()).collect();
    let (y, x) = (loaded.array(&numbers, u16::to_le_bytes), loaded.array(&numbers, u16::to_le_bytes));
    let launch = loaded.launch(2, 32).parameter(&y.to_le_bytes()).parameter(&x.to_le_bytes());
    loaded.finishes("half_axpy", launch.parameter(&1.25_f32.to_le_bytes()).parameter(&60_i32.to_le_bytes()));
    for (i, (&found, &old)) in loaded.read(y, u16::from_le_bytes).iter().zip(&numbers).enumerate() {
        let value = f64::from(f16::from_bits(old));
        let expected = if i < 60 { f16::from_f64(1.25 * value + value).to_bits() } else { old };
        assert_eq!(found, expected, "element {i}");
    }

    let mut loaded = load("vectors");
    let numbers: Vec<u16> = (0..512).map(|i| bf16::from_f32(i as f32 * 1.7 - 90.0).to_bits()).collect();
    let (a, b) = (loaded.array(&numbers[..256], u16::to_le_bytes), loaded.array(&numbers[256..], u16::to_le_bytes));
    let to = loaded.array(&[0; 256], u16::to_le_bytes);
    let launch = [to, a, b].iter().fold(loaded.launch(1, 32), |launch, p| launch.parameter(&p.to_le_bytes()));
    loaded.finishes("bf16_sum", launch);
    for (i, found) in loaded.read(to, u16::from_le_bytes).into_iter().enumerate() {
        let (x, y) = (bf16::from_bits(numbers[i]).to_f32(), bf16::from_bits(numbers[256 + i]).to_f32());
        assert_eq!(found, bf16::from_f32(x + y).to_bits(), "element {i}");
    }
}

#[test]
fn conversions() {
    let mut loaded = load("vectors");
    let input: Vec<f32> = (0..32).map(|i| i as f32 * 37.77 - 500.0).collect();
    let from = loaded.array(&input, f32::to_le_bytes);
    let to = loaded.array(&[0.0; 32 * 6], f32::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("conversions", launch);
    for (row, &x) in loaded.read(to, f32::from_le_bytes).chunks(6).zip(&input) {
        let nearest = f16::from_f32(x).to_f32();
        // Towards zero: the nearest, or the one before it.
        assert!(row[0].abs() <= x.abs() && (row[0] - x).abs() <= 0.5, "{} of {x}", row[0]);
        assert_eq!(row[1], bf16::from_f32(x).to_f32());
        assert_eq!(row[2], nearest.round_ties_even());
        assert_eq!(row[3], f16::from_f32((x as i32) as f32).to_f32());
        assert_eq!(row[4], x);
        let below = |exact: f64| {
            let near = exact as f32;
            if f64::from(near.abs()) > exact.abs() { f32::from_bits(near.to_bits() - 1) } else { near }
        };
        let above = |exact: f64| {
            let near = exact as f32;
            if f64::from(near) < exact { near.next_up() } else { near }
        };
        let sum = below(f64::from(x) + f64::from(1e-8_f32))
            + above(f64::from(x) * 3.0)
            + x.round_ties_even()
            + x.floor()
            + x.ceil();
        assert_eq!(row[5], sum, "of {x}");
    }
}

#[test]
fn templates_structures_and_calls() {
    let mut loaded = load("generic");
    let input: Vec<i32> = (0..36).map(|i| i * 7 % 23 - 11).collect();
    let from = loaded.array(&input, i32::to_le_bytes);
    let to = loaded.array(&[0_i64; 32 * 6], i64::to_le_bytes);
    let mut launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    // Range { first, last, step, inclusive } and Pair { value, index }, with the gaps of C.
    launch.parameters.extend(
        [&10_i64.to_le_bytes()[..], &100_i64.to_le_bytes(), &7_i16.to_le_bytes(), &[1, 0, 0, 0, 0, 0]].concat(),
    );
    launch.parameters.extend([&(-3.0_f64).to_le_bytes()[..], &9_i32.to_le_bytes(), &[0; 4]].concat());
    loaded.finishes("generic", launch);
    let fibonacci = |n: usize| (0..n).fold((0_i64, 1_i64), |(a, b), _| (b, a + b)).0;
    for (i, row) in loaded.read(to, i64::from_le_bytes).chunks(6).enumerate() {
        let window: Vec<i32> = (0..4).map(|k| input[i + k] * [1, -2, 3, -4][k]).collect();
        let mut order = [0_i64; 8];
        for k in 0..8 {
            order[((k * input[i]) & 7) as usize] = k.into();
        }
        let mut found = (-3.0, 9);
        for (k, &value) in window.iter().enumerate() {
            if found.0 < f64::from(value) * 0.5 {
                found = (f64::from(value) * 0.5, k as i64);
            }
        }
        let expected = [
            i64::from(window.iter().sum::<i32>()),
            i64::from(*window.iter().max().unwrap()),
            (100 - 10 + 1) / 7,
            (found.0 * 4.0) as i64 * 16 + found.1,
            fibonacci(i % 12),
            order[(input[i] & 7) as usize],
        ];
        // An element of `order` that no step wrote is uninitialized in the source: it is not compared.
        let compared = if (0..8).any(|k| (k * input[i]) & 7 == input[i] & 7) { 6 } else { 5 };
        assert_eq!(row[..compared], expected[..compared], "thread {i}");
    }
    // The variable of the module was 40.
    let counter = loaded.module.globals().iter().position(|global| global.name == "counter").unwrap();
    assert_eq!(loaded.read(loaded.globals[counter], u64::from_le_bytes), [42]);
}

#[test]
fn branches() {
    for (kind, expected) in [(0, 10), (1, 4), (2, 7), (3, -2), (4, 40), (5, 55), (6, 0), (9, -1)] {
        let mut loaded = load("generic");
        let to = loaded.array(&[0_i32; 4], i32::to_le_bytes);
        let launch = loaded.launch(1, 4).parameter(&to.to_le_bytes()).parameter(&i32::to_le_bytes(kind));
        loaded.finishes("kinds", launch.parameter(&3.5_f32.to_le_bytes()));
        assert_eq!(loaded.read(to, i32::from_le_bytes)[1], expected, "kind {kind}");
    }
}

#[test]
fn numbers_of_8_bits() {
    // what is exact, what is rounded to even, what is too small, what is too large, what is no number
    let input = [1.0, -1.0, 1.0625, 1.1875, 1.0e-9, 500.0, f32::NAN, f32::NEG_INFINITY, 0.25, -0.0];
    let mut loaded = load("eight");
    let from = loaded.array(&input, f32::to_le_bytes);
    let to = loaded.array(&[0; 4 * 5], u16::to_le_bytes);
    let back = loaded.array(&[0; 2 * 5], u32::to_le_bytes);
    let launch = loaded.launch(1, 5).parameter(&to.to_le_bytes());
    loaded.finishes("eight", launch.parameter(&back.to_le_bytes()).parameter(&from.to_le_bytes()));
    let [one, quarter] = [0x38, 0x28];
    let e4m3 = [one << 8 | 0xb8, one << 8 | 0x3a, 0x7e, 0x7ffe, quarter << 8 | 0x80];
    let e5m2 = [0x3cbc, 0x3c3d, 0x0060, 0x7ffb, 0x3480];
    for (row, (e4m3, e5m2)) in loaded.read(to, u16::from_le_bytes).chunks(4).zip(e4m3.into_iter().zip(e5m2)) {
        // negative numbers become zero in the last
        let positive = if e5m2 & 0x80 != 0 { e5m2 & 0xff00 } else { e5m2 };
        assert_eq!(row, [e4m3, e5m2, e4m3, positive]);
    }
    let halves =
        |high: f32, low: f32| u32::from(f16::from_f32(high).to_bits()) << 16 | u32::from(f16::from_f32(low).to_bits());
    let expected = [
        [halves(1.0, -1.0), halves(1.0, 0.0)],
        [halves(1.0, 1.25), halves(1.0, 1.25)],
        [halves(0.0, 448.0), halves(0.0, 512.0)],
        [0x7fff_0000 | halves(0.0, -448.0), 0x7fff_0000],
        [halves(0.25, -0.0), halves(0.25, 0.0)],
    ];
    assert_eq!(loaded.read(back, u32::from_le_bytes), expected.as_flattened());
}
