//! `mma` (and in `products/`, `wmma` and `wgmma`): whole matrices, given to the lanes as the PTX manual's formulas say, against three loops.

mod fragment;
mod group;

use std::sync::Arc;

use half::{bf16, f16};
use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};

/// The registers that a warp holds after an instruction: those of its operands begin as given. `wide`: they have 64 bits.
fn execute(name: &str, wide: bool, operands: [&[[u64; 32]]; 3]) -> Vec<[u64; 32]> {
    let mut text = String::from(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in)\n{\n.reg .b32 %r<40>;\n\
         .reg .f64 %d<40>;\n.reg .b64 %l;\n.reg .b64 %rd<4>;\n.reg .b32 %lane;\nld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n\
         mov.u32 %lane, %tid.x;\nmul.wide.u32 %rd3, %lane, 8;\nadd.s64 %rd1, %rd1, %rd3;\nadd.s64 %rd2, %rd2, %rd3;\n",
    );
    let class = if wide { "%d" } else { "%r" };
    let count: usize = operands.iter().map(|registers| registers.len()).sum();
    for register in 0..count {
        text += &format!("ld.global.b64 %l, [%rd2+{}];\n", 256 * register);
        text += &if wide { format!("mov.b64 %d{register}, %l;\n") } else { format!("cvt.u32.u64 %r{register}, %l;\n") };
    }
    let mut next = 0;
    let mut vector = |count: usize| {
        let names: Vec<String> = (next..next + count).map(|register| format!("{class}{register}")).collect();
        next += count;
        format!("{{{}}}", names.join(", "))
    };
    let [a, b, c] = operands.map(|registers| vector(registers.len()));
    let sums = operands[2].len();
    let d = vector(sums);
    text += &format!("{name} {d}, {a}, {b}, {c};\n");
    for register in 0..sums {
        let from = count + register;
        text += &if wide { format!("mov.b64 %l, %d{from};\n") } else { format!("cvt.u64.u32 %l, %r{from};\n") };
        text += &format!("st.global.b64 [%rd1+{}], %l;\n", 256 * register);
    }
    text += "ret;\n}\n";
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let input: Vec<u8> = operands.concat().as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
    let (out, from) = (memory.allocate(&vec![0; 256 * sums]), memory.allocate(&input));
    let launch = Launch::new(1, 32).parameter(&out.to_le_bytes()).parameter(&from.to_le_bytes());
    match Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap().run(&mut memory) {
        Stop::Finished => {}
        other => panic!("{name}: {other:?}"),
    }
    let words = memory.bytes(out).chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.collect::<Vec<_>>().as_chunks().0.to_vec()
}

/// Row and column of the element `i` of `a` that a lane holds.
fn of_a(shape: &str, bits: u32, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let upper = |first: bool| if first { group } else { group + 8 };
    match (shape, bits) {
        ("m8n8k4", 64) => (group, thread),
        ("m8n8k16", 8) => (group, thread * 4 + i),
        ("m16n8k4", 32 | 64) => (upper(i == 0), thread),
        ("m16n8k8", 16) => (upper(i < 2), thread * 2 + (i & 1)),
        ("m16n8k8", 32 | 64) => (upper(i == 0 || i == 2), if i < 2 { thread } else { thread + 4 }),
        ("m16n8k16", 16) => (upper(i < 2 || (4..6).contains(&i)), thread * 2 + (i & 1) + if i < 4 { 0 } else { 8 }),
        ("m16n8k16", 64) => {
            if i.is_multiple_of(2) {
                (group, i * 2 + thread)
            } else {
                (group + 8, i * 2 - 2 + thread)
            }
        }
        ("m16n8k16", 8) => (upper(i < 4), thread * 4 + (i & 3)),
        ("m16n8k32", 8) => (upper(i < 4 || (8..12).contains(&i)), thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 }),
        _ => panic!("{shape} of {bits} bits"),
    }
}

/// The same of `b`.
fn of_b(shape: &str, bits: u32, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let row = match (shape, bits) {
        ("m8n8k4", 64) | ("m16n8k4", 32 | 64) => thread,
        ("m8n8k16" | "m16n8k16", 8) => thread * 4 + i,
        ("m16n8k8", 16) => thread * 2 + i,
        ("m16n8k8", 32 | 64) => thread + i * 4,
        ("m16n8k16", 16) => thread * 2 + (i & 1) + if i < 2 { 0 } else { 8 },
        ("m16n8k16", 64) => i * 4 + thread,
        ("m16n8k32", 8) => thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 },
        _ => panic!("{shape} of {bits} bits"),
    };
    (row, group)
}

/// The same of `c` and `d`.
fn of_c(lane: usize, i: usize) -> (usize, usize) {
    (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))
}

/// The bits of a matrix's elements, by row and column.
type Matrix = Vec<Vec<u64>>;

/// Gives the elements to the lanes, the first of each register into its low bits.
fn fragments(
    matrix: &Matrix,
    bits: u32,
    register: u32,
    place: impl Fn(usize, usize) -> (usize, usize),
) -> Vec<[u64; 32]> {
    let elements = matrix.len() * matrix[0].len() / 32;
    let in_one = (register / bits) as usize;
    let mut registers = vec![[0; 32]; elements / in_one];
    for (lane, i) in (0..32).flat_map(|lane| (0..elements).map(move |i| (lane, i))) {
        let (row, column) = place(lane, i);
        registers[i / in_one][lane] |= matrix[row][column] << (i % in_one * bits as usize);
    }
    registers
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn matrix(&mut self, rows: usize, columns: usize, element: impl Fn(u64) -> u64) -> Matrix {
        (0..rows).map(|_| (0..columns).map(|_| element(self.next())).collect()).collect()
    }
}

/// A type of elements: its name, its bits, some that are small in number and exact in sums, and what they mean.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    bits: u32,
    some: fn(u64) -> u64,
    value: fn(u64) -> f64,
}

/// A number of at most 8 binary digits behind the point, between -8 and 8.
fn small(random: u64) -> f32 {
    (random % 129) as f32 / 8.0 - 8.0
}

const F16: Kind = Kind {
    name: "f16",
    bits: 16,
    some: |random| f16::from_f32(small(random)).to_bits().into(),
    value: |bits| f16::from_bits(bits as u16).into(),
};
const BF16: Kind = Kind {
    name: "bf16",
    bits: 16,
    some: |random| bf16::from_f32(small(random)).to_bits().into(),
    value: |bits| bf16::from_bits(bits as u16).into(),
};
/// The bits below those that count are not zero.
const TF32: Kind = Kind {
    name: "tf32",
    bits: 32,
    some: |random| u64::from(small(random).to_bits()) | (random >> 8 & 0x1fff),
    value: |bits| f32::from_bits(bits as u32 & !0x1fff).into(),
};
const F32: Kind = Kind {
    name: "f32",
    bits: 32,
    some: |random| small(random).to_bits().into(),
    value: |bits| f32::from_bits(bits as u32).into(),
};
const F64: Kind =
    Kind { name: "f64", bits: 64, some: |random| f64::from(small(random)).to_bits(), value: f64::from_bits };
const E4M3: Kind = Kind {
    name: "e4m3",
    bits: 8,
    some: |random| random & 0x80 | (5 + random % 5) << 3 | random >> 8 & 7,
    value: |bits| sign(bits) * (8 + (bits & 7)) as f64 * f64::from((bits >> 3 & 15) as i32 - 10).exp2(),
};
const E5M2: Kind = Kind {
    name: "e5m2",
    bits: 8,
    some: |random| random & 0x80 | (13 + random % 5) << 2 | random >> 8 & 3,
    value: |bits| sign(bits) * (4 + (bits & 3)) as f64 * f64::from((bits >> 2 & 31) as i32 - 17).exp2(),
};
const S8: Kind = Kind { name: "s8", bits: 8, some: |random| random & 0xff, value: |bits| f64::from(bits as u8 as i8) };
const U8: Kind = Kind { name: "u8", bits: 8, some: |random| random & 0xff, value: |bits| f64::from(bits as u8) };

fn sign(bits: u64) -> f64 {
    if bits & 0x80 == 0 { 1.0 } else { -1.0 }
}

fn size(shape: &str) -> (usize, usize) {
    let (rows, depth) = shape[1..].split_once("n8k").unwrap();
    (rows.parse().unwrap(), depth.parse().unwrap())
}

/// The instruction's `d` by rows, and `a`, `b` and `c`.
fn product(shape: &str, [a, b, c]: [Kind; 3], modifiers: &str, random: &mut Random) -> [Matrix; 4] {
    let (rows, depth) = size(shape);
    let first = random.matrix(rows, depth, a.some);
    let second = random.matrix(depth, 8, b.some);
    let third = random.matrix(rows, 8, c.some);
    let register = if a.bits == 64 { 64 } else { 32 };
    let operands = [
        fragments(&first, a.bits, register, |lane, i| of_a(shape, a.bits, lane, i)),
        fragments(&second, b.bits, register, |lane, i| of_b(shape, b.bits, lane, i)),
        fragments(&third, c.bits, register, of_c),
    ];
    let name = format!("mma.sync.aligned.{shape}.row.col{modifiers}.{}.{}.{}.{}", c.name, a.name, b.name, c.name);
    let held = execute(&name, a.bits == 64, operands.each_ref().map(|operand| &operand[..]));
    let in_one = (register / c.bits) as usize;
    let mut found = vec![vec![0; 8]; rows];
    for (lane, i) in (0..32).flat_map(|lane| (0..rows * 8 / 32).map(move |i| (lane, i))) {
        let (row, column) = of_c(lane, i);
        let word = held[i / in_one][lane] >> (i % in_one * c.bits as usize);
        found[row][column] = if c.bits == 64 { word } else { word & ((1 << c.bits) - 1) };
    }
    [found, first, second, third]
}

#[test]
fn products_of_floats() {
    let mut random = Random(1);
    for (shape, a, b, c) in [
        ("m16n8k8", F16, F16, F32),
        ("m16n8k8", F16, F16, F16),
        ("m16n8k16", F16, F16, F32),
        ("m16n8k16", F16, F16, F16),
        ("m16n8k8", BF16, BF16, F32),
        ("m16n8k16", BF16, BF16, F32),
        ("m16n8k4", TF32, TF32, F32),
        ("m16n8k8", TF32, TF32, F32),
        ("m8n8k4", F64, F64, F64),
        ("m16n8k4", F64, F64, F64),
        ("m16n8k8", F64, F64, F64),
        ("m16n8k16", F64, F64, F64),
        ("m16n8k16", E4M3, E4M3, F32),
        ("m16n8k16", E5M2, E4M3, F16),
        ("m16n8k32", E4M3, E4M3, F32),
        ("m16n8k32", E4M3, E5M2, F32),
        ("m16n8k32", E5M2, E4M3, F32),
        ("m16n8k32", E5M2, E5M2, F16),
    ] {
        let name = format!("{shape} of {} and {} to {}", a.name, b.name, c.name);
        let [found, first, second, third] = product(shape, [a, b, c], "", &mut random);
        for (row, found) in found.iter().enumerate() {
            for (column, &found) in found.iter().enumerate() {
                let mut sum = (c.value)(third[row][column]);
                for (k, &left) in first[row].iter().enumerate() {
                    sum += (a.value)(left) * (b.value)(second[k][column]);
                }
                let sum = if c.bits == 16 { f16::from_f64(sum).into() } else { sum };
                assert_eq!((c.value)(found), sum, "{name}: row {row}, column {column}");
            }
        }
    }
}

#[test]
fn products_of_integers() {
    let mut random = Random(2);
    for shape in ["m8n8k16", "m16n8k16", "m16n8k32"] {
        for (a, b) in [(S8, S8), (S8, U8), (U8, S8), (U8, U8)] {
            // Sums that are near the limits, that wrap or saturate, and some that are not.
            for some in [
                (|random| random) as fn(u64) -> u64,
                |random| 0x7fff_ffff - random % 0x2_0000,
                |random| 0x8000_0000 + random % 0x2_0000,
            ] {
                let c = Kind { name: "s32", bits: 32, some, value: |bits| f64::from(bits as u32 as i32) };
                for modifiers in ["", ".satfinite"] {
                    let [found, first, second, third] = product(shape, [a, b, c], modifiers, &mut random);
                    for (row, found) in found.iter().enumerate() {
                        for (column, &found) in found.iter().enumerate() {
                            let mut sum = i64::from(third[row][column] as u32 as i32);
                            for (k, &left) in first[row].iter().enumerate() {
                                sum += (a.value)(left) as i64 * (b.value)(second[k][column]) as i64;
                            }
                            let expected = match modifiers {
                                "" => sum as i32,
                                _ => i32::try_from(sum).unwrap_or(if sum < 0 { i32::MIN } else { i32::MAX }),
                            };
                            assert_eq!(
                                found as u32 as i32, expected,
                                "{shape}{modifiers} of {} and {}",
                                a.name, b.name
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The first element of `d`, whose row of `a` and column of `b` begin with these elements; the rest are zeros.
fn first(name: &str, in_one: usize, pairs: &[(u64, u64)], c: u64, registers: [usize; 3]) -> u64 {
    let wide = in_one == 1 && name.contains("f64");
    let bits = if wide { 64 } else { 32 / in_one };
    let mut operands = registers.map(|count| vec![[0; 32]; count]);
    for (k, &(a, b)) in pairs.iter().enumerate() {
        let (lane, shift) = (k / in_one, k % in_one * bits);
        operands[0][0][lane] |= a << shift;
        operands[1][0][lane] |= b << shift;
    }
    operands[2][0][0] = c;
    execute(name, wide, operands.each_ref().map(|operand| &operand[..]))[0][0]
}

#[test]
fn sums_are_exact_and_rounded_once() {
    let single = |value: f32| u64::from(value.to_bits());
    let half = |value: f32| u64::from(f16::from_f32(value).to_bits());
    let name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
    let one = |pairs: &[(u64, u64)], c: u64| first(name, 2, pairs, c, [4, 2, 4]);
    // Each alone is lost beside 1: together they are not. The smallest number in half precision is one of them.
    let tiny = (1, half(1.0));
    assert_eq!(one(&[tiny], single(1.0)), single(1.0));
    assert_eq!(one(&[tiny, tiny], single(1.0)), single(1.0 + f32::EPSILON));
    // Products are exact, and what cancels leaves the rest.
    let large = half(60000.0);
    assert_eq!(one(&[(large, large), (half(1.0), half(0.5)), (large, half(-60000.0))], single(0.25)), single(0.75));
    assert_eq!(one(&[(half(f32::INFINITY), half(1.0)), (half(1.0), half(1.0))], single(1.0)), single(f32::INFINITY));
    assert_eq!(one(&[(half(f32::INFINITY), half(0.0))], single(1.0)), 0x7fff_ffff, "no number");
    // To half precision: the nearest, of two the even one; beyond the largest, infinity.
    let name = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16";
    let one = |pairs: &[(u64, u64)], c: u64| first(name, 2, pairs, c, [4, 2, 2]) & 0xffff;
    assert_eq!(one(&[(half(2049.0 / 2048.0), half(1.0)), (half(1.0 / 2048.0), half(1.0))], 0), half(1.0));
    assert_eq!(one(&[(half(1.0), half(3.0 / 2048.0))], half(1.0)), half(1.0 + 2.0 / 1024.0));
    assert_eq!(one(&[(half(60000.0), half(1.0))], half(60000.0)), half(f32::INFINITY));
    // In double precision, each product is fused with what was added up so far, `c` first.
    let double = f64::to_bits;
    let (a, b) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
    for (rounding, expected) in [("", -f64::EPSILON * f64::EPSILON), (".rz", -f64::EPSILON * f64::EPSILON)] {
        let name = format!("mma.sync.aligned.m8n8k4.row.col{rounding}.f64.f64.f64.f64");
        let found = first(&name, 1, &[(double(a), double(b))], double(-1.0), [1, 1, 2]);
        assert_eq!(f64::from_bits(found), expected);
    }
    for (rounding, expected) in [("", 1.0), (".rp", 1.0 + f64::EPSILON), (".rm", 1.0), (".rz", 1.0)] {
        let name = format!("mma.sync.aligned.m8n8k4.row.col{rounding}.f64.f64.f64.f64");
        let found = first(&name, 1, &[(double(1e-20), double(1.0))], double(1.0), [1, 1, 2]);
        assert_eq!(f64::from_bits(found), expected, "{rounding}");
    }
    let name = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64";
    let half_epsilon = (double(f64::EPSILON / 2.0), double(1.0));
    let found = first(name, 1, &[half_epsilon, half_epsilon], double(1.0), [1, 1, 2]);
    assert_eq!(f64::from_bits(found), 1.0, "one after the other");
    let pairs = [1e20, -1e20, 1.0].map(|a| (double(a), double(1.0)));
    assert_eq!(f64::from_bits(first(name, 1, &pairs, 0, [1, 1, 2])), 1.0, "the first at first");
}
