//! `wgmma`: whole matrices, laid out in shared memory as the pictures of the PTX manual show them, against three loops.

use std::sync::Arc;

use half::f16;
use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};

use super::{BF16, E4M3, E5M2, F16, F32, Kind, Matrix, Random, S8, TF32, U8, of_a};

/// Shared memory of the kernels.
const SHARED: usize = 48 << 10;

/// What 128 threads hold in `sums` registers after an instruction, of which these are the first words and the last operands. The registers of `d`
/// and of `a` begin as given.
fn execute(
    name: &str,
    a: Option<&[[u64; 128]]>,
    descriptors: [u64; 2],
    rest: &str,
    shared: &[u8],
    before: &[[u64; 128]],
) -> Vec<[u64; 128]> {
    let registers = |prefix: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|register| format!("%{prefix}{register}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let sums = before.len();
    let mut text = format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 room[];\n\
         .visible .entry k(.param .u64 out, .param .u64 in, .param .u64 fill)\n{{\n.reg .pred %p;\n.reg .b32 %d<{sums}>;\n.reg .b32 %a<4>;\n\
         .reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .b64 %of<2>;\nld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n\
         ld.param.u64 %rd3, [fill];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd1, %rd1, %rd4;\nadd.s64 %rd2, %rd2, %rd4;\n\
         mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd3, %rd3, %rd4;\nmov.u32 %r2, room;\nmad.lo.u32 %r2, %r1, 16, %r2;\nmov.u32 %r3, 0;\n\
         copy:\nld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd3];\nst.shared.v4.b32 [%r2], {{%r4, %r5, %r6, %r7}};\nadd.s64 %rd3, %rd3, 2048;\n\
         add.u32 %r2, %r2, 2048;\nadd.u32 %r3, %r3, 2048;\nsetp.lt.u32 %p, %r3, {SHARED};\n@%p bra copy;\nfence.proxy.async;\nbar.sync 0;\n\
         mov.u64 %of0, {};\nmov.u64 %of1, {};\n",
        descriptors[0], descriptors[1]
    );
    let held = a.unwrap_or_default();
    for (register, name) in
        (0..sums).map(|n| format!("%d{n}")).chain((0..held.len()).map(|n| format!("%a{n}"))).enumerate()
    {
        text += &format!("ld.global.b32 {name}, [%rd2+{}];\n", 512 * register);
    }
    let first = if a.is_some() { registers("a", 4) } else { "%of0".to_owned() };
    text += &format!(
        "wgmma.fence.sync.aligned;\n{name} {}, {first}, %of1, {rest};\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        registers("d", sums)
    );
    for register in 0..sums {
        text += &format!("st.global.b32 [%rd1+{}], %d{register};\n", 512 * register);
    }
    text += "ret;\n}\n";
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let words = |rows: &[[u64; 128]]| -> Vec<u8> {
        rows.iter().flatten().flat_map(|&word| (word as u32).to_le_bytes()).collect()
    };
    let input = [words(before), words(held)].concat();
    let (out, from) = (memory.allocate(&vec![0; 512 * sums]), memory.allocate(&input));
    let fill = memory.allocate(shared);
    let mut launch = Launch::new(1, 128);
    launch.dynamic_shared = SHARED as u32;
    let launch = [out, from, fill].iter().fold(launch, |launch, address| launch.parameter(&address.to_le_bytes()));
    match Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap().run(&mut memory) {
        Stop::Finished => {}
        other => panic!("{name}: {other:?}"),
    }
    let words = memory.bytes(out).chunks_exact(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())));
    words.collect::<Vec<_>>().as_chunks().0.to_vec()
}

/// How a matrix lies in shared memory.
#[derive(Clone, Copy, Debug)]
struct Layout {
    begin: usize,
    /// Bytes of the swizzle: 16 (none), 32, 64 or 128.
    swizzle: usize,
    /// Whether the rows of `a`, or columns of `b`, run across the units of 16 bytes.
    transposed: bool,
    /// The distance of blocks of 8 units in the one direction, and in the other.
    leading: usize,
    stride: usize,
}

impl Layout {
    fn descriptor(self) -> u64 {
        let mode = match self.swizzle {
            128 => 1,
            64 => 2,
            32 => 3,
            _ => 0,
        };
        (self.begin | self.leading << 16 | self.stride << 32) as u64 >> 4 | mode << 62
    }

    /// Where a unit of 16 bytes lies in a block of 8 lines, each as wide as the swizzle.
    fn in_block(self, line: usize, unit: usize) -> usize {
        let place = match self.swizzle {
            128 => unit ^ line,
            64 => unit ^ (line / 2),
            32 => unit ^ (line / 4),
            _ => unit,
        };
        line * self.swizzle + place * 16
    }

    /// Where an element of so many bytes lies: at `k` of the row of `a`, or column of `b`.
    fn place(self, major: usize, k: usize, bytes: usize) -> usize {
        let (across, along) = if self.transposed { (k, major) } else { (major, k) };
        let (unit, within) = (along * bytes / 16, along * bytes % 16);
        let units = self.swizzle / 16;
        // Blocks in the direction of k, and of rows or columns.
        let (blocks_along, blocks_across) = match (self.transposed, self.swizzle) {
            (false, _) | (true, 32 | 64 | 128) => (self.leading, self.stride),
            (true, _) => (self.stride, self.leading),
        };
        self.begin
            + unit / units * blocks_along
            + across / 8 * blocks_across
            + self.in_block(across % 8, unit % units)
            + within
    }

    fn write(self, shared: &mut [u8], matrix: &Matrix, bytes: usize) {
        for (major, row) in matrix.iter().enumerate() {
            for (k, element) in row.iter().enumerate() {
                let at = self.place(major, k, bytes);
                shared[at..at + bytes].copy_from_slice(&element.to_le_bytes()[..bytes]);
            }
        }
    }
}

/// A product of so many columns, whose matrices lie as given; without a layout, `a` lies in registers.
struct Case {
    columns: usize,
    kinds: [Kind; 3],
    a: Option<Layout>,
    b: Layout,
    adds: bool,
    signs: [i32; 2],
    modifiers: &'static str,
}

impl Case {
    fn check(&self, random: &mut Random) {
        let &Case { columns, kinds: [a, b, c], adds, signs, modifiers, .. } = self;
        let (bytes, depth) = (a.bits as usize / 8, 256 / a.bits as usize);
        let (left, right) = (random.matrix(64, depth, a.some), random.matrix(columns, depth, b.some));
        let third = random.matrix(64, columns, c.some);
        let mut shared = vec![0xa5; SHARED];
        self.b.write(&mut shared, &right, bytes);
        // As a warp holds them, 16 rows each.
        let in_one = 32 / c.bits as usize;
        let mut sums = vec![[0; 128]; columns / 2 / in_one];
        let of_d = |thread: usize, i: usize| {
            let (lane, upper) = (thread % 32, i / 2 % 2 * 8);
            (thread / 32 * 16 + lane / 4 + upper, i / 4 * 8 + lane % 4 * 2 + i % 2)
        };
        for (thread, i) in (0..128).flat_map(|thread| (0..columns / 2).map(move |i| (thread, i))) {
            let (row, column) = of_d(thread, i);
            sums[i / in_one][thread] |= third[row][column] << (i % in_one * c.bits as usize);
        }
        let shape = ["m16n8k32", "m16n8k16", "", "m16n8k8"][bytes - 1];
        let mut held = vec![[0; 128]; 4];
        for (thread, i) in (0..128).flat_map(|thread| (0..depth / 2).map(move |i| (thread, i))) {
            let (row, k) = of_a(shape, a.bits, thread % 32, i);
            held[i * bytes / 4][thread] |= left[thread / 32 * 16 + row][k] << (i * bytes % 4 * 8);
        }
        let mut rest = format!("{}", u32::from(adds));
        if c.name != "s32" {
            rest += &format!(", {}, {}", signs[0], signs[1]);
        }
        let in_registers = self.a.is_none();
        if let Some(layout) = self.a {
            layout.write(&mut shared, &left, bytes);
        }
        if bytes == 2 {
            let transposed = |layout: Layout| u32::from(layout.transposed);
            rest += &self.a.map(|layout| format!(", {}", transposed(layout))).unwrap_or_default();
            rest += &format!(", {}", transposed(self.b));
        }
        let name =
            format!("wgmma.mma_async.sync.aligned.m64n{columns}k{depth}{modifiers}.{}.{}.{}", c.name, a.name, b.name);
        let descriptors = [self.a.map_or(0, Layout::descriptor), self.b.descriptor()];
        let found = execute(&name, in_registers.then_some(&held[..]), descriptors, &rest, &shared, &sums);
        for (thread, i) in (0..128).flat_map(|thread| (0..columns / 2).map(move |i| (thread, i))) {
            let (row, column) = of_d(thread, i);
            let bits = found[i / in_one][thread] >> (i % in_one * c.bits as usize) & ((1 << c.bits) - 1);
            let products = (0..depth).map(|k| (a.value)(left[row][k]) * (b.value)(right[column][k]));
            let sum = products.sum::<f64>() * f64::from(signs[0] * signs[1]);
            let sum = sum + if adds { (c.value)(third[row][column]) } else { 0.0 };
            let expected = match (c.name, modifiers) {
                ("f16", _) => f16::from_f64(sum).into(),
                ("s32", "") => f64::from(sum as i64 as i32),
                ("s32", _) => sum.clamp(i32::MIN.into(), i32::MAX.into()),
                _ => sum,
            };
            let say = || format!("{name} {rest}: row {row}, column {column}, {:?}, {:?}", self.a, self.b);
            assert_eq!((c.value)(bits), expected, "{}", say());
        }
    }
}

const S32: Kind =
    Kind { name: "s32", bits: 32, some: |random| random & 0x0fff_ffff, value: |bits| f64::from(bits as u32 as i32) };
const A: usize = 32 << 10;

fn plain(swizzle: usize) -> Layout {
    // Blocks of 8 lines, with a gap behind each; the leading offset matters without a swizzle only.
    let stride = if swizzle == 16 { 272 } else { 8 * swizzle };
    Layout { begin: 0, swizzle, transposed: false, leading: 128, stride }
}

fn of(columns: usize, kinds: [Kind; 3], a: Option<Layout>, b: Layout) -> Case {
    Case { columns, kinds, a, b, adds: true, signs: [1, 1], modifiers: "" }
}

#[test]
fn products_of_all_kinds() {
    let mut random = Random(3);
    for kinds in [
        [F16, F16, F32],
        [F16, F16, F16],
        [BF16, BF16, F32],
        [TF32, TF32, F32],
        [E4M3, E4M3, F32],
        [E4M3, E5M2, F16],
        [E5M2, E4M3, F32],
        [E5M2, E5M2, F16],
        [S8, S8, S32],
        [S8, U8, S32],
        [U8, S8, S32],
        [U8, U8, S32],
    ] {
        for columns in [8, 16, 24, 256] {
            let b = plain(128);
            of(columns, kinds, Some(Layout { begin: A, ..b }), b).check(&mut random);
            of(columns, kinds, None, b).check(&mut random);
        }
    }
}

#[test]
fn layouts_in_shared_memory() {
    let mut random = Random(4);
    for swizzle in [16, 32, 64, 128] {
        for kinds in [[F16, F16, F32], [TF32, TF32, F32], [S8, S8, S32]] {
            let b = plain(swizzle);
            for other in [16, 32, 64, 128] {
                let a = Layout { begin: A, ..plain(other) };
                of(72 - 8 * usize::from(kinds[2].name == "s32"), kinds, Some(a), b).check(&mut random);
            }
        }
        // Transposed: 8 units of a swizzle's width lie one behind the other, and so on in both directions.
        let leading = if swizzle == 16 { 4096 } else { 16 * swizzle + 1024 };
        let across = Layout { begin: 0, swizzle, transposed: true, leading, stride: 8 * swizzle };
        let a = Layout { begin: A, ..across };
        let along = plain(64);
        of(136, [BF16, BF16, F32], Some(Layout { begin: A, ..along }), across).check(&mut random);
        of(32, [F16, F16, F16], Some(a), across).check(&mut random);
        of(64, [F16, F16, F32], Some(a), along).check(&mut random);
        of(40, [F16, F16, F32], None, across).check(&mut random);
    }
}

/// Within a block, the next columns of `a` begin 32 bytes further on; and a pattern may begin elsewhere than at a multiple of its size.
#[test]
fn parts_of_a_block() {
    let mut random = Random(5);
    for further in [32, 64, 96] {
        let (a, b) = (Layout { begin: A, ..plain(128) }, plain(128));
        let depth = 64;
        let (left, right) = (random.matrix(64, depth, F16.some), random.matrix(16, depth, F16.some));
        let mut shared = vec![0; SHARED];
        a.write(&mut shared, &left, 2);
        b.write(&mut shared, &right, 2);
        // A row of the pattern later, which the base offset takes back.
        for (shift, base) in [(0, 0), (128, 1_u64), (640, 5)] {
            let mut moved = vec![0; SHARED];
            moved[shift..].copy_from_slice(&shared[..SHARED - shift]);
            let from = |layout: Layout| {
                let begin = layout.begin + shift + further;
                Layout { begin, ..layout }.descriptor() | base << 49
            };
            let name = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16";
            let found = execute(name, None, [from(a), from(b)], "0, 1, 1, 0, 0", &moved, &[[0; 128]; 8]);
            let first = further / 2;
            let sum = |row: usize, column: usize| {
                (first..first + 16).map(|k| (F16.value)(left[row][k]) * (F16.value)(right[column][k])).sum::<f64>()
            };
            for (row, column) in [(0, 0), (7, 1), (23, 8), (63, 15)] {
                let (thread, i) =
                    (row / 16 * 32 + row % 8 * 4 + column % 8 / 2, row / 8 % 2 * 2 + column % 2 + column / 8 * 4);
                let expected = sum(row, column);
                assert_eq!((F32.value)(found[i][thread]), expected, "{further} {shift}: row {row}, column {column}");
            }
        }
    }
}

#[test]
fn signs_sums_and_saturation() {
    let mut random = Random(6);
    let b = plain(64);
    for signs in [[1, -1], [-1, 1], [-1, -1]] {
        for adds in [true, false] {
            for (kinds, a) in [([F16, F16, F32], None), ([TF32, TF32, F32], Some(Layout { begin: A, ..b }))] {
                Case { adds, signs, ..of(16, kinds, a, b) }.check(&mut random);
            }
        }
    }
    let large = Kind { some: |random| 0x7fff_ffff - random % 0x2_0000, ..S32 };
    for modifiers in ["", ".satfinite"] {
        for adds in [true, false] {
            Case { adds, modifiers, ..of(32, [S8, U8, large], None, b) }.check(&mut random);
        }
    }
}
