//! `wmma`: whole matrices in memory that a warp loads, multiplies and stores, against three loops.

use std::sync::Arc;

use half::f16;
use onesided_ptx::{Block, FaultKind, FlatMemory, Launch, Module, Stop};

use super::{BF16, F16, F32, F64, Kind, Matrix, Random, S8, TF32, U8};

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug)]
struct Layout {
    in_rows: bool,
    /// Elements from a row, or column, to the next; nothing: as many as there are.
    stride: Option<usize>,
}

impl Layout {
    fn word(self) -> &'static str {
        if self.in_rows { "row" } else { "col" }
    }

    fn stride(self, [rows, columns]: [usize; 2]) -> usize {
        self.stride.unwrap_or(if self.in_rows { columns } else { rows })
    }

    /// Which element of the memory it is.
    fn place(self, sizes: [usize; 2], row: usize, column: usize) -> usize {
        let (line, within) = if self.in_rows { (row, column) } else { (column, row) };
        line * self.stride(sizes) + within
    }

    fn bytes(self, matrix: &Matrix, kind: Kind) -> Vec<u8> {
        let mut bytes = vec![0xee; ROOM];
        let (sizes, width) = ([matrix.len(), matrix[0].len()], kind.bits as usize / 8);
        for (row, line) in matrix.iter().enumerate() {
            for (column, element) in line.iter().enumerate() {
                let at = self.place(sizes, row, column) * width;
                bytes[at..at + width].copy_from_slice(&element.to_le_bytes()[..width]);
            }
        }
        bytes
    }
}

/// Bytes of memory of a matrix.
const ROOM: usize = 8192;

struct Case {
    shape: &'static str,
    sizes: [usize; 3],
    /// Of `a`, `b`, `c` and `d`, and how many registers each has.
    kinds: [Kind; 4],
    registers: [usize; 4],
    layouts: [Layout; 4],
    space: &'static str,
    modifiers: &'static str,
}

impl Case {
    /// What the types of `wmma.mma` are called.
    fn types(&self) -> String {
        let [a, b, c, d] = self.kinds.map(|kind| kind.name);
        if a == "f16" { format!("{d}.{c}") } else { format!("{d}.{a}.{b}.{c}") }
    }

    fn text(&self) -> String {
        let [a, b, c, d] = self.layouts;
        let name = |which: usize| ["a", "b", "c", "d"][which];
        let vector = |which: usize| {
            let all: Vec<String> = (0..self.registers[which]).map(|n| format!("%{}{n}", name(which))).collect();
            format!("{{{}}}", all.join(", "))
        };
        let mut text = String::from(
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n\
             .reg .b64 %p<4>;\n.reg .b64 %from;\n.reg .b64 %to;\n.reg .b64 %at;\n.reg .b32 %r<4>;\n.reg .pred %again;\n\
             .shared .align 32 .b8 room[32768];\nmov.u32 %r1, %tid.x;\nmul.lo.u32 %r1, %r1, 8;\ncvt.u64.u32 %at, %r1;\n",
        );
        for which in 0..4 {
            let class = if self.kinds[which].bits == 64 { "f64" } else { "b32" };
            text += &format!(".reg .{class} %{}<8>;\nld.param.u64 %p{which}, [{}];\n", name(which), name(which));
            if self.space != ".global" {
                let loop_ = format!("copy{which}");
                text += &format!(
                    "add.u64 %from, %p{which}, %at;\nmov.u64 %to, room;\nadd.u64 %p{which}, %to, {};\nadd.u64 %to, %p{which}, %at;\n\
                     mov.u32 %r2, 0;\n{loop_}:\nld.global.b64 %from, [%from];\n",
                    which * ROOM
                );
                // The address is read again, as the register holds the word.
                text += &format!(
                    "st.shared.b64 [%to], %from;\nadd.u32 %r2, %r2, 256;\nld.param.u64 %from, [{}];\nadd.u64 %from, %from, %at;\n\
                     cvt.u64.u32 %to, %r2;\nadd.u64 %from, %from, %to;\nadd.u64 %to, %p{which}, %to;\nadd.u64 %to, %to, %at;\n\
                     setp.lt.u32 %again, %r2, {ROOM};\n@%again bra {loop_};\n",
                    name(which)
                );
                if self.space.is_empty() {
                    text += &format!("cvta.shared.u64 %p{which}, %p{which};\n");
                }
            }
        }
        let space = self.space;
        let stride = |layout: Layout| layout.stride.map(|stride| format!(", {stride}")).unwrap_or_default();
        text += "bar.sync 0;\n";
        for (which, layout) in [a, b, c].into_iter().enumerate() {
            text += &format!(
                "wmma.load.{}.sync.aligned.{}.{}{space}.{} {}, [%p{which}]{};\n",
                name(which),
                layout.word(),
                self.shape,
                self.kinds[which].name,
                vector(which),
                stride(layout)
            );
        }
        text += &format!(
            "wmma.mma.sync.aligned.{}.{}.{}{}{} {}, {}, {}, {};\n",
            a.word(),
            b.word(),
            self.shape,
            if self.modifiers.starts_with(".r") { self.modifiers } else { "" },
            format!(".{}", self.types()) + if self.modifiers == ".satfinite" { ".satfinite" } else { "" },
            vector(3),
            vector(0),
            vector(1),
            vector(2)
        );
        text += &format!(
            "bar.sync 0;\nwmma.store.d.sync.aligned.{}.{}{space}.{} [%p3], {}{};\n",
            d.word(),
            self.shape,
            self.kinds[3].name,
            vector(3),
            stride(d)
        );
        if space != ".global" {
            text += &format!(
                "bar.sync 0;\nmov.u64 %to, room;\nadd.u64 %to, %to, {};\nadd.u64 %to, %to, %at;\nld.param.u64 %p3, [d];\nadd.u64 %p3, %p3, %at;\n\
                 mov.u32 %r2, 0;\nback:\nld.shared.b64 %from, [%to];\nst.global.b64 [%p3], %from;\nadd.u64 %to, %to, 256;\nadd.u64 %p3, %p3, 256;\n\
                 add.u32 %r2, %r2, 256;\nsetp.lt.u32 %again, %r2, {ROOM};\n@%again bra back;\n",
                3 * ROOM
            );
        }
        text + "ret;\n}\n"
    }

    fn check(&self, random: &mut Random) {
        let [m, n, k] = self.sizes;
        let [of_a, of_b, of_c, of_d] = self.kinds;
        let [a, b, c] =
            [random.matrix(m, k, of_a.some), random.matrix(k, n, of_b.some), random.matrix(m, n, of_c.some)];
        let text = self.text();
        let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
        let mut memory = FlatMemory::new();
        let [first, second, third, _] = self.layouts;
        let given = [first.bytes(&a, of_a), second.bytes(&b, of_b), third.bytes(&c, of_c), vec![0xee; ROOM]]
            .map(|bytes| memory.allocate(&bytes));
        let launch = given.iter().fold(Launch::new(1, 32), |launch, address| launch.parameter(&address.to_le_bytes()));
        let stop = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap().run(&mut memory);
        assert_eq!(stop, Stop::Finished, "{text}");
        let found = memory.bytes(given[3]);
        let width = of_d.bits as usize / 8;
        let mut untouched = vec![true; ROOM];
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let at = self.layouts[3].place([m, n], row, column) * width;
            untouched[at..at + width].fill(false);
            let mut bits = [0; 8];
            bits[..width].copy_from_slice(&found[at..at + width]);
            let mut sum = (of_c.value)(c[row][column]);
            for (inner, &left) in a[row].iter().enumerate() {
                sum += (of_a.value)(left) * (of_b.value)(b[inner][column]);
            }
            let expected = match (of_d.name, self.modifiers) {
                ("f16", _) => f16::from_f64(sum).into(),
                ("s32", ".satfinite") => sum.clamp(i32::MIN.into(), i32::MAX.into()),
                ("s32", _) => f64::from(sum as i64 as i32),
                _ => sum,
            };
            let bits = u64::from_le_bytes(bits);
            assert_eq!((of_d.value)(bits), expected, "row {row}, column {column} of\n{text}");
        }
        // Nothing is stored between and behind the rows.
        assert!(found.iter().zip(untouched).all(|(&byte, untouched)| !untouched || byte == 0xee), "{text}");
    }
}

const S32: Kind =
    Kind { name: "s32", bits: 32, some: |random| random & 0x0fff_ffff, value: |bits| f64::from(bits as u32 as i32) };

/// The layouts of all matrices: rows and columns in turn, with a gap behind each or without.
fn layouts(mut random: impl FnMut() -> u64) -> [Layout; 4] {
    [(); 4].map(|()| {
        let random = random();
        let stride = if random & 2 == 0 { None } else { Some(32 + 16 * (random >> 2 & 1) as usize) };
        Layout { in_rows: random & 1 == 0, stride }
    })
}

#[test]
fn products() {
    let mut random = Random(11);
    for (shape, sizes, factor) in [
        ("m16n16k16", [16, 16, 16], [[4, 4], [2, 2]]),
        ("m8n32k16", [8, 32, 16], [[2, 8], [1, 4]]),
        ("m32n8k16", [32, 8, 16], [[8, 2], [4, 1]]),
    ] {
        let [[of_a, of_b], [a_of_8, b_of_8]] = factor;
        for (kinds, registers) in [
            ([F16, F16, F16, F16], [8, 8, 4, 4]),
            ([F16, F16, F32, F32], [8, 8, 8, 8]),
            ([F16, F16, F16, F32], [8, 8, 4, 8]),
            ([F16, F16, F32, F16], [8, 8, 8, 4]),
            ([BF16, BF16, F32, F32], [of_a, of_b, 8, 8]),
            ([S8, S8, S32, S32], [a_of_8, b_of_8, 8, 8]),
            ([U8, U8, S32, S32], [a_of_8, b_of_8, 8, 8]),
        ] {
            for space in [".global", ".shared", ""] {
                for _ in 0..4 {
                    let layouts = layouts(|| random.next());
                    Case { shape, sizes, kinds, registers, layouts, space, modifiers: "" }.check(&mut random);
                }
            }
        }
    }
    for _ in 0..16 {
        let (layouts, space) = (layouts(|| random.next()), ".global");
        let kinds = [TF32, TF32, F32, F32];
        let (shape, sizes, registers) = ("m16n16k8", [16, 16, 8], [4, 4, 8, 8]);
        Case { shape, sizes, kinds, registers, layouts, space, modifiers: "" }.check(&mut random);
        let (shape, sizes, registers) = ("m8n8k4", [8, 8, 4], [1, 1, 2, 2]);
        let modifiers = ["", ".rn", ".rz"][random.next() as usize % 3];
        Case { shape, sizes, kinds: [F64; 4], registers, layouts, space, modifiers }.check(&mut random);
    }
    let large = Kind { some: |random| 0x7fff_ffff - random % 0x2_0000, ..S32 };
    for modifiers in ["", ".satfinite"] {
        let (layouts, space) = (layouts(|| random.next()), ".global");
        let (shape, sizes, registers) = ("m16n16k16", [16, 16, 16], [2, 2, 8, 8]);
        Case { shape, sizes, kinds: [U8, U8, large, large], registers, layouts, space, modifiers }.check(&mut random);
    }
}

/// How a kernel with these lines ends.
fn run(lines: &str, threads: u32) -> Stop {
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<16>;\n.reg .pred %p;\n\
         .shared .align 16 .b8 room[512];\nmov.u32 %r9, %tid.x;\nmad.lo.u32 %r10, %r9, 16, room;\n{lines}\nret;\n}}\n"
    );
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let launch = Arc::new(Launch::new(1, threads));
    Block::new(&module, "k", &launch, [0; 3]).unwrap().run(&mut FlatMemory::new())
}

#[test]
fn lanes_and_accesses() {
    let kind = |lines: &str, threads: u32| match run(lines, threads) {
        Stop::Fault(fault) => Some(fault.kind),
        Stop::Finished => None,
        other => panic!("{other:?}"),
    };
    let fill = "st.shared.v4.b32 [%r10], {0, 0, 0, 0};";
    let load = "wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%r0, %r1, %r2, %r3}, [room];";
    assert_eq!(kind(&format!("{fill}\nbar.sync 0;\n{load}"), 32), None);
    assert_eq!(kind(load, 32), Some(FaultKind::Uninitialized));
    // A lane loads its own part: that of another column is a race without a barrier.
    assert_eq!(kind(&format!("{fill}\n{}", load.replace("row", "col")), 32), Some(FaultKind::Race));
    assert_eq!(
        kind(&format!("{fill}\nbar.sync 0;\n{}", load.replace("[room]", "[room+16]")), 32),
        Some(FaultKind::OutOfBounds)
    );
    assert_eq!(
        kind(&format!("{fill}\nbar.sync 0;\n{}", load.replace("[room]", "[room+8]")), 32),
        Some(FaultKind::Misaligned)
    );
    let store = "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [room], {%r0, %r1, %r2, %r3};";
    let product = "wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16 {%r0, %r1, %r2, %r3}, {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0}, \
                   {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0}, {%r0, %r1, %r2, %r3};";
    for instruction in [load, store, product] {
        let filled = format!("{fill}\nbar.sync 0;\n$\n{instruction}");
        assert_eq!(kind(&filled.replace('$', ""), 32), None);
        assert_eq!(kind(&filled.replace('$', ""), 31), Some(FaultKind::MissingLanes));
        let skip = "setp.eq.u32 %p, %r9, 5;\n@%p ret;";
        assert_eq!(kind(&filled.replace('$', skip), 32), Some(FaultKind::MissingLanes));
    }
}
