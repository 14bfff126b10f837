//! Tiles of tensors (`cp.async.bulk.tensor`) against a model that copies element after element; what happens outside of the tensor; and what goes wrong.

use std::fmt::Write as _;
use std::sync::Arc;

use half::f16;
use onesided_ptx::{Block, Fault, FaultKind, FlatMemory, Launch, Module, Stop, TensorMap, Type};

/// Bytes of shared memory for a tile.
const ROOM: u32 = 160 << 10;

/// A kernel of one thread, unless it says otherwise: `%map`, `%c0` to `%c4`, `%at` (the tile in shared memory), `%bar`, `%data`, `%words`, `%lane`.
fn kernel(body: &str) -> String {
    let lines = body.lines().enumerate().fold(String::new(), |mut all, (line, text)| {
        write!(all, ".loc 1 {} 1\n{text}\n", line + 1).unwrap();
        all
    });
    let corner: String = (0..5).map(|i| format!("ld.param.s32 %c{i}, [corner+{}];\n", 4 * i)).collect();
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.extern .shared .align 1024 .b8 room[];\n\
         .visible .entry k(.param .align 64 .b8 tensor[128], .param .align 4 .b8 corner[20], .param .u32 shift, .param .u32 words, .param .u64 data)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .b32 %c<5>;\n.reg .b32 %at;\n.reg .b32 %bar;\n.reg .b32 %words;\n\
         .reg .b32 %lane;\n.reg .b64 %map;\n.reg .b64 %data;\n.shared .align 8 .b8 barrier[8];\n\
         mov.b64 %map, tensor;\ncvta.param.u64 %map, %map;\n{corner}ld.param.u32 %at, [shift];\nld.param.u32 %words, [words];\n\
         ld.param.u64 %data, [data];\nmov.u32 %r1, room;\nadd.s32 %at, %at, %r1;\nmov.u32 %bar, barrier;\nmov.u32 %lane, %tid.x;\n\
         setp.ne.u32 %p1, %lane, 0;\n{lines}\nret;\n}}\n.file 1 \"k.cu\"\n"
    )
}

/// `{%c0, %c1}`.
fn corner(rank: usize) -> String {
    format!("{{{}}}", ["%c0", "%c1", "%c2", "%c3", "%c4"][..rank].join(", "))
}

/// Begins a load that an mbarrier counts.
fn load(map: &TensorMap) -> String {
    format!(
        "mbarrier.init.shared.b64 [%bar], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd1, [%bar], {};\n\
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%at], [%map, {}], [%bar];",
        map.bytes(),
        corner(map.rank),
        rank = map.rank,
    )
}

const WAIT: &str = "again: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;\n@!%p2 bra again;";
const FENCE: &str = "fence.proxy.async.shared::cta;";
const END: &str = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";

/// An instruction from shared memory: `store(map, "cp", "")`, or with a reduction.
fn store(map: &TensorMap, reduction: &str) -> String {
    let (opcode, reduction) = match reduction {
        "" => ("cp.async", String::new()),
        other => ("cp.reduce.async", format!(".{other}")),
    };
    format!(
        "{opcode}.bulk.tensor.{}d.global.shared::cta{reduction}.tile.bulk_group [%map, {}], [%at];",
        map.rank,
        corner(map.rank)
    )
}

/// Words of the tile in shared memory go to `%data`, or come from there.
fn words(from_shared: bool) -> String {
    let (first, second) = match from_shared {
        true => ("ld.shared.u32 %r4, [%r2];", "st.global.u32 [%rd2], %r4;"),
        false => ("ld.global.u32 %r4, [%rd2];", "st.shared.u32 [%r2], %r4;"),
    };
    format!(
        "mov.u32 %r3, 0;\nmov.u32 %r2, %at;\nmov.b64 %rd2, %data;\nnext: setp.ge.u32 %p3, %r3, %words;\n@%p3 bra done;\n{first}\n{second}\n\
         add.s32 %r2, %r2, 4;\nadd.s64 %rd2, %rd2, 4;\nadd.s32 %r3, %r3, 1;\nbra next;\ndone:"
    )
}

/// A tensor in memory, and what a kernel is given.
struct Setup {
    map: TensorMap,
    corner: [i32; 5],
    shift: u32,
    tensor: Vec<u8>,
    /// What `%data` points to.
    data: Vec<u8>,
    threads: u32,
    uninitialized: bool,
}

/// How it ends, and the tensor and the data then.
fn run(setup: &Setup, body: &str) -> (Stop, Vec<u8>, Vec<u8>) {
    let text = kernel(body);
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let tensor = memory.allocate(&setup.tensor);
    let data = memory.allocate(&setup.data);
    let mut launch = Launch::new(1, setup.threads);
    launch.parameters = TensorMap { address: tensor, ..setup.map }.encode().unwrap().to_vec();
    launch.parameters.extend(setup.corner.iter().flat_map(|at| at.to_le_bytes()));
    launch.parameters.extend(setup.shift.to_le_bytes());
    launch.parameters.extend((setup.data.len() as u32 / 4).to_le_bytes());
    launch.parameters.resize(launch.parameters.len().next_multiple_of(8), 0);
    launch.parameters.extend(data.to_le_bytes());
    (launch.dynamic_shared, launch.checks.uninitialized) = (ROOM, setup.uninitialized);
    let stop = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap().run(&mut memory);
    (stop, memory.bytes(tensor).to_vec(), memory.bytes(data).to_vec())
}

struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

const TYPES: [Type; 10] =
    [Type::U8, Type::U16, Type::U32, Type::S32, Type::U64, Type::S64, Type::F16, Type::Bf16, Type::F32, Type::F64];

/// A tensor and a tile of it, of any shape; the tile often lies partly outside.
fn random(random: &mut Random, stores: bool, types: &[Type]) -> Setup {
    let ty = types[random.below(types.len() as u64) as usize];
    let width = u64::from(ty.bytes());
    let rank = 1 + random.below(5) as usize;
    let swizzle = [0, 32, 64, 128][random.below(4) as usize];
    let widest = if swizzle > 0 { u64::from(swizzle) / 16 } else { 12 };
    let (mut sizes, mut strides, mut tile, mut steps) = ([1; 5], [0; 4], [1; 5], [1; 5]);
    tile[0] = ((1 + random.below(widest)) * 16 / width).min(256 / (16 / width).max(1) * (16 / width).max(1)) as u32;
    sizes[0] = 1 + random.below(2 * u64::from(tile[0]));
    let mut end = (sizes[0] * width).next_multiple_of(16);
    for dimension in 1..rank {
        tile[dimension] = 1 + random.below(if rank > 3 { 3 } else { 9 }) as u32;
        sizes[dimension] = 1 + random.below(if rank > 3 { 4 } else { 12 });
        if random.below(3) == 0 {
            steps[dimension] = 1 + random.below(3) as u32;
        }
        strides[dimension - 1] = end + 16 * random.below(2);
        end = strides[dimension - 1] * sizes[dimension];
    }
    let least = |size: u32| if stores { 0 } else { -(i64::from(size) / 2) };
    let corner = std::array::from_fn(|dimension| {
        let (least, most) = (least(tile[dimension]), sizes[dimension] as i64 + 1);
        let anywhere = (least + random.below((most - least) as u64) as i64) as i32;
        let unit = if dimension == 0 { (16 / width) as i32 } else { 1 }; // rows begin at multiples of 16 bytes
        if random.below(2) == 0 { 0 } else { anywhere / unit * unit }
    });
    let (fills_nan, shift) = (ty.is_float() && random.below(2) == 0, 128 * random.below(8) as u32);
    let map = TensorMap { address: 0, ty, rank, sizes, strides, tile, steps, swizzle, fills_nan };
    let tensor = random.bytes(end as usize);
    Setup { map, corner, shift, tensor, data: Vec::new(), threads: 1, uninitialized: false }
}

/// All elements of a tile: where each lies in shared memory, from the beginning of the pattern on, and in the tensor if it does.
fn places(setup: &Setup, stores: bool) -> Vec<(usize, Option<usize>)> {
    let Setup { map, corner, shift, .. } = setup;
    let width = map.ty.bytes() as usize;
    let row = map.tile[0] as usize * width;
    let pitch = row.max(map.swizzle as usize);
    let mut all = Vec::new();
    let mut rows = 0;
    let mut sizes = map.sizes;
    if stores {
        sizes[0] = (sizes[0] * width as u64).next_multiple_of(16) / width as u64; // whole units of 16 bytes
    }
    let axis = |dimension: usize| {
        (0..if dimension < map.rank { map.tile[dimension] } else { 1 }).step_by(map.steps[dimension] as usize)
    };
    for e in axis(4) {
        for d in axis(3) {
            for c in axis(2) {
                for b in axis(1) {
                    for a in 0..map.tile[0] {
                        let tile = [a, b, c, d, e].map(i64::from);
                        let at: Vec<i64> = (0..map.rank).map(|i| tile[i] + i64::from(corner[i])).collect();
                        let inside = at.iter().zip(sizes).all(|(at, size)| *at >= 0 && *at < size as i64);
                        let strides = std::iter::once(width as i64).chain(map.strides.map(|stride| stride as i64));
                        let offset = at.iter().zip(strides).map(|(at, stride)| at * stride).sum::<i64>();
                        let plain = *shift as usize + rows * pitch + a as usize * width;
                        let (line, unit, within) = (plain / 128, plain / 16 % 8, plain % 16);
                        let unit = match map.swizzle {
                            0 => unit,
                            32 => unit ^ (line % 2),
                            64 => unit ^ (line % 4),
                            _ => unit ^ (line % 8),
                        };
                        all.push((line * 128 + unit * 16 + within, inside.then_some(offset as usize)));
                    }
                    rows += 1;
                }
            }
        }
    }
    all
}

#[test]
fn loads_are_what_the_model_says() {
    let mut source = Random(5);
    let (mut outside, mut inside) = (0, 0);
    for _ in 0..600 {
        let mut setup = random(&mut source, false, &TYPES);
        let (width, map) = (setup.map.ty.bytes() as usize, setup.map);
        let places = places(&setup, false);
        assert_eq!(map.bytes() as usize, places.len() * width);
        let end = places.iter().map(|(at, _)| at + width).max().unwrap();
        setup.data = vec![0; (end - setup.shift as usize).next_multiple_of(4)];
        let mut expected = setup.data.clone();
        for (at, from) in places {
            let to = &mut expected[at - setup.shift as usize..][..width];
            match from {
                Some(from) => to.copy_from_slice(&setup.tensor[from..from + width]),
                None if map.fills_nan => (0..width).for_each(|i| to[i] = [0xf7, 0x7f][i % 2]),
                None => {}
            }
            if from.is_some() { inside += 1 } else { outside += 1 }
        }
        let body = format!("{}\n{WAIT}\n{}", load(&map), words(true));
        let (stop, tensor, data) = run(&setup, &body);
        assert_eq!(stop, Stop::Finished, "{map:?}");
        assert!(tensor == setup.tensor && data == expected, "{map:?} at {:?}", setup.corner);
        // to all blocks of a cluster that has one
        let to_all = body.replace("::bytes [", "::bytes.multicast::cluster [").replace("}], [%bar];", "}], [%bar], 1;");
        assert_ne!(to_all, body);
        assert_eq!(run(&setup, &to_all), (stop, tensor, data), "{map:?} at {:?}", setup.corner);
    }
    assert!(outside > 10_000 && inside > 10_000, "{outside} {inside}");
}

/// Fills shared memory as far as a tile reaches, and copies the tile.
fn fill_and(instruction: &str) -> String {
    format!("{}\n{FENCE}\n{instruction}\n{END}", words(false))
}

#[test]
fn stores_are_what_the_model_says() {
    let mut source = Random(6);
    for _ in 0..400 {
        let mut setup = random(&mut source, true, &TYPES);
        let width = setup.map.ty.bytes() as usize;
        let places = places(&setup, true);
        let end = places.iter().map(|(at, _)| at + width).max().unwrap();
        setup.data = source.bytes((end - setup.shift as usize).next_multiple_of(4));
        let mut expected = setup.tensor.clone();
        for (at, to) in places {
            if let Some(to) = to {
                expected[to..to + width].copy_from_slice(&setup.data[at - setup.shift as usize..][..width]);
            }
        }
        let (stop, tensor, _) = run(&setup, &fill_and(&store(&setup.map, "")));
        assert_eq!(stop, Stop::Finished, "{:?}", setup.map);
        assert!(tensor == expected, "{:?} at {:?}", setup.map, setup.corner);
    }
}

/// What reduces two elements of four bytes.
type Reduction = (&'static str, Type, fn(u32, u32) -> u32);

#[test]
fn reductions_are_what_the_model_says() {
    let reductions: [Reduction; 9] = [
        ("add", Type::U32, u32::wrapping_add),
        ("add", Type::F32, |a, b| (f32::from_bits(a) + f32::from_bits(b)).to_bits()),
        ("min", Type::S32, |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned()),
        ("max", Type::U32, u32::max),
        ("inc", Type::U32, |a, b| if a >= b { 0 } else { a + 1 }),
        ("dec", Type::U32, |a, b| if a == 0 || a > b { b } else { a - 1 }),
        ("and", Type::S32, |a, b| a & b),
        ("or", Type::U32, |a, b| a | b),
        ("xor", Type::F32, |a, b| a ^ b),
    ];
    let mut source = Random(7);
    for (name, ty, apply) in reductions {
        for _ in 0..20 {
            let mut setup = random(&mut source, true, &[ty]);
            let small = |bytes: &mut [u8]| bytes.chunks_exact_mut(4).for_each(|word| word[3] = 0x40 | word[3] & 0x83);
            let places = places(&setup, true);
            let end = places.iter().map(|(at, _)| at + 4).max().unwrap();
            setup.data = source.bytes((end - setup.shift as usize).next_multiple_of(4));
            small(&mut setup.tensor);
            small(&mut setup.data);
            let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let mut expected = setup.tensor.clone();
            for (at, to) in places {
                if let Some(to) = to {
                    let new = apply(word(&expected, to), word(&setup.data, at - setup.shift as usize));
                    expected[to..to + 4].copy_from_slice(&new.to_le_bytes());
                }
            }
            let (stop, tensor, _) = run(&setup, &fill_and(&store(&setup.map, name)));
            assert_eq!(stop, Stop::Finished, "{name} {:?}", setup.map);
            assert!(tensor == expected, "{name} {:?} at {:?}", setup.map, setup.corner);
        }
    }
}

#[test]
fn halves_are_added_too() {
    let mut setup = plain();
    setup.map.ty = Type::F16;
    setup.map.tile[0] = 8;
    let halves = |value: f32, count: usize| [f16::from_f32(value).to_le_bytes(); 1].concat().repeat(count);
    (setup.tensor, setup.data) = (halves(1.5, 512), halves(0.25, 64));
    let (stop, tensor, _) = run(&setup, &fill_and(&store(&setup.map, "add")));
    assert_eq!(stop, Stop::Finished);
    let sums = tensor.chunks_exact(2).filter(|half| **half == f16::from_f32(1.75).to_le_bytes());
    assert_eq!(sums.count(), 64);
}

/// Tiles of 4 × 8 words, of a matrix of 16 × 16.
fn plain() -> Setup {
    let map = TensorMap {
        address: 0,
        ty: Type::U32,
        rank: 2,
        sizes: [16, 16, 1, 1, 1],
        strides: [64, 0, 0, 0],
        tile: [4, 8, 1, 1, 1],
        steps: [1; 5],
        swizzle: 0,
        fills_nan: false,
    };
    let (tensor, data) = (vec![1; 1024], vec![2; 128]);
    Setup { map, corner: [0; 5], shift: 0, tensor, data, threads: 1, uninitialized: true }
}

fn fault(setup: &Setup, body: &str) -> Fault {
    match run(setup, body).0 {
        Stop::Fault(fault) => *fault,
        other => panic!("no fault: {other:?}\n{body}"),
    }
}

fn finishes(setup: &Setup, body: &str) {
    assert_eq!(run(setup, body).0, Stop::Finished, "{body}");
}

const READ: &str = "ld.shared.u32 %r5, [room+12];";

#[test]
fn a_load_is_in_flight_until_its_phase_ends() {
    let setup = plain();
    let load = load(&setup.map);
    finishes(&setup, &format!("{load}\n{WAIT}\n{READ}"));
    insta::assert_snapshot!(fault(&setup, &format!("{load}\n{READ}")));
    // What lies behind the tile is not touched.
    finishes(&setup, &format!("{load}\nst.shared.u32 [room+128], 1;\nld.shared.u32 %r5, [room+128];"));
    // The whole tile is counted, also what lies outside.
    let outside = Setup { corner: [-4, 12, 0, 0, 0], ..plain() };
    finishes(&outside, &format!("{load}\n{WAIT}\n{READ}"));
    let less = load.replace("%rd1, [%bar], 128", "%rd1, [%bar], 64");
    assert_eq!(run(&outside, &format!("{less}\n{WAIT}\n{READ}")).0, Stop::Idle);
    // With a swizzle of 128 bytes, each of its 8 rows takes as many.
    let wide = Setup { map: TensorMap { swizzle: 128, ..setup.map }, ..plain() };
    let last = "ld.shared.u32 %r5, [room+1008];";
    finishes(&wide, &format!("{load}\n{WAIT}\n{last}"));
    assert_eq!(fault(&wide, &format!("{load}\n{last}")).kind, FaultKind::Race);
    assert_eq!(fault(&Setup { shift: ROOM - 512, ..wide }, &load).kind, FaultKind::OutOfBounds);
    // Others come behind the wait, or behind a barrier that comes after it.
    let two = Setup { threads: 64, ..plain() };
    let others = |wait: &str| format!("@%p1 bra begun;\n{load}\n{wait}\nbegun:\nbar.sync 0;\n{READ}");
    finishes(&two, &others(WAIT));
    assert_eq!(fault(&two, &others("")).kind, FaultKind::Race);
}

#[test]
fn a_store_sees_what_is_behind_a_fence_and_is_awaited() {
    for reduction in ["", "add"] {
        let setup = plain();
        let copy = store(&setup.map, reduction);
        let fill = words(false);
        finishes(&setup, &fill_and(&copy));
        let invisible = fault(&setup, &format!("{fill}\n{copy}\n{END}"));
        assert!(invisible.to_string().contains("missing: fence.proxy.async.shared::cta"), "{invisible}");
        // One that is about the map and not about the tile.
        let other = "fence.proxy.tensormap::generic.release.cta;";
        assert_eq!(fault(&setup, &format!("{fill}\n{other}\n{copy}\n{END}")).kind, FaultKind::Race);
        let over = "st.shared.u32 [room+4], 7;";
        finishes(&setup, &format!("{}\n{over}", fill_and(&copy)));
        let early = fault(&setup, &format!("{fill}\n{FENCE}\n{copy}\ncp.async.bulk.commit_group;\n{over}"));
        assert!(early.to_string().contains("missing: cp.async.bulk.wait_group.read"), "{early}");
        let read = END.replace("group 0", "group.read 0");
        finishes(&setup, &format!("{fill}\n{FENCE}\n{copy}\n{read}\n{over}"));
        // Nobody has written what it reads.
        assert_eq!(fault(&setup, &format!("{copy}\n{END}")).kind, FaultKind::Uninitialized);
        // What it does not store, it need not find.
        let beyond = Setup { corner: [16, 0, 0, 0, 0], ..plain() };
        finishes(&beyond, &format!("{copy}\n{END}"));
    }
}

/// A load over what threads have written needs a fence, too.
#[test]
fn a_load_comes_behind_what_threads_have_written() {
    let setup = plain();
    let load = load(&setup.map);
    let write = "st.shared.u32 [room], 3;";
    finishes(&setup, &format!("{write}\n{FENCE}\n{load}\n{WAIT}"));
    assert_eq!(fault(&setup, &format!("{write}\n{load}\n{WAIT}")).kind, FaultKind::Race);
}

#[test]
fn what_is_wrong_with_an_instruction() {
    let setup = plain();
    let (load, store) = (load(&setup.map), fill_and(&store(&setup.map, "")));
    let mut found = Vec::new();
    let mut add = |what: &str, setup: &Setup, body: &str| found.push(format!("{what}\n    {}", fault(setup, body)));
    add("another rank", &setup, &load.replace(".2d.", ".1d.").replace("{%c0, %c1}", "{%c0}"));
    add("not at a multiple of 128", &Setup { shift: 64, ..plain() }, &load);
    add("beyond shared memory", &Setup { shift: ROOM, ..plain() }, &load);
    add("an address of no shared memory", &setup, &load.replace("[%at]", "[%map]"));
    add("in the middle of 16 bytes", &Setup { corner: [-3, 0, 0, 0, 0], ..plain() }, &load);
    add("stored before the beginning", &Setup { corner: [0, -1, 0, 0, 0], ..plain() }, &store);
    let doubles = Setup { map: TensorMap { ty: Type::S64, ..setup.map }, data: vec![0; 256], ..plain() };
    let doubles = Setup { map: TensorMap { tile: [4, 8, 1, 1, 1], sizes: [8, 16, 1, 1, 1], ..doubles.map }, ..doubles };
    add(
        "a reduction that there is not",
        &doubles,
        &store.replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor").replace("cta.tile", "cta.add.tile"),
    );
    add("no tensor map", &setup, &format!("add.s64 %map, %map, 64;\n{load}"));
    add("not at a multiple of 64", &setup, &format!("add.s64 %map, %map, 8;\n{load}"));
    add("beyond the parameters", &setup, &format!("add.s64 %map, %map, 1024;\n{load}"));
    add("in shared memory", &setup, &format!("cvta.shared.u64 %map, %rd5;\n{load}"));
    add("global memory that is no map", &setup, &format!("mov.b64 %map, %data;\n{load}"));
    let beyond = Setup { tensor: vec![1; 512], corner: [0, 8, 0, 0, 0], ..plain() };
    add("a tensor that is not all there", &beyond, &load);
    insta::assert_snapshot!(found.join("\n"));
}

/// A map that the kernel has copied to global memory is one there; one of which it has written a word is none.
#[test]
fn a_map_may_lie_in_global_memory() {
    let copy: String = (0..16)
        .map(|i| format!("ld.param.u64 %rd3, [tensor+{}];\nst.global.u64 [%data+{}], %rd3;\n", 8 * i, 8 * i))
        .collect();
    let load = load(&plain().map);
    let setup = Setup { data: vec![0; 128], ..plain() };
    let fences =
        "fence.proxy.tensormap::generic.release.gpu;\nfence.proxy.tensormap::generic.acquire.gpu [%data], 128;";
    finishes(
        &setup,
        &format!("{copy}{fences}\nprefetch.tensormap [%data];\nmov.b64 %map, %data;\n{load}\n{WAIT}\n{READ}"),
    );
    let other = fault(&setup, &format!("{copy}st.global.u32 [%data+16], 3;\nmov.b64 %map, %data;\n{load}"));
    assert_eq!(other.kind, FaultKind::InvalidOperand);
}
