//! What a warp group does together, for the comparison: products whose matrices lie in shared memory in every way that a descriptor can say.
//!
//! Kernels of 128 threads have these in place of what a warp does. Factors have very few digits, as tensor cores add up those of 8 bits with few.

use std::fmt::Write as _;

use super::Random;
use super::warp::{fold, input, numbers};

/// Registers and memory that the instructions need, besides those of the kernel.
pub(crate) const DECLARATIONS: &str =
    "    .reg .b32 %u<64>;\n    .reg .b64 %w<4>;\n    .shared .align 1024 .b8 room[16384];\n";

/// Of `a` and `b`: their names, and what they are added up to.
const KINDS: [(&str, &str, &[&str]); 11] = [
    ("f16", "f16", &["f32", "f16"]),
    ("bf16", "bf16", &["f32"]),
    ("tf32", "tf32", &["f32"]),
    ("e4m3", "e4m3", &["f32", "f16"]),
    ("e4m3", "e5m2", &["f32", "f16"]),
    ("e5m2", "e4m3", &["f32", "f16"]),
    ("e5m2", "e5m2", &["f32", "f16"]),
    ("s8", "s8", &["s32"]),
    ("s8", "u8", &["s32"]),
    ("u8", "s8", &["s32"]),
    ("u8", "u8", &["s32"]),
];

/// Registers with inputs of which some bits stay and some are set.
fn masked(text: &mut String, random: &mut Random, names: &[String], (keep, set): (u64, u64), from: &mut Vec<String>) {
    let (keep, set) = (keep & 0xffff_ffff, set & 0xffff_ffff);
    for name in names {
        let origin = input(random, 'r');
        let _ = writeln!(text, "    and.b32 {name}, {origin}, {keep:#x};\n    or.b32 {name}, {name}, {set:#x};");
        from.push(origin);
    }
}

/// A descriptor, but for where the room begins.
fn descriptor(random: &mut Random) -> u64 {
    let mut field = |units: usize, at: u32| (random.below(units) as u64) << at;
    let (start, leading, stride, base) = (field(256, 0), field(48, 16), field(48, 32), field(8, 49));
    let mode = field(4, 62);
    start | leading | stride | mode | if mode == 0 { 0 } else { base }
}

/// Writes a product whose results together give the register `%rTARGET`: the form, the result's class, and the registers that it comes from.
pub(crate) fn write(text: &mut String, random: &mut Random, target: usize) -> (String, u8, Vec<String>) {
    let (a, b, sums) = random.of(&KINDS);
    let sum = random.of(sums);
    let depth = match a {
        "tf32" => 8,
        "f16" | "bf16" => 16,
        _ => 32,
    };
    let columns = if sum == "s32" { random.of(&[8, 16, 24, 32, 48, 64]) } else { 8 * (1 + random.below(8)) };
    let (in_registers, saturates) = (random.below(3) == 0, sum == "s32" && random.below(2) == 0);
    let factors = match a {
        "e4m3" => (0x8484_8484, 0x3838_3838),
        "e5m2" => (0x8282_8282, 0x3c3c_3c3c),
        other => numbers(other, sum),
    };
    let mut origins = vec![format!("%r{target}")];
    let names =
        |first: usize, count: usize| -> Vec<String> { (first..first + count).map(|n| format!("%u{n}")).collect() };
    let (words, of_a) = (names(48, 8), names(40, 4));
    let of_d = names(0, columns / if sum == "f16" { 4 } else { 2 });
    masked(text, random, &words, factors, &mut origins);
    masked(text, random, &of_a, factors, &mut origins);
    masked(text, random, &of_d, numbers(sum, sum), &mut origins);
    text.push_str(
        "    bar.sync 0;\n    mov.u32 %u60, room;\n    mov.u32 %u61, %tid.x;\n    mad.lo.u32 %u61, %u61, 16, %u60;\n",
    );
    for block in 0..8 {
        let four: Vec<&str> = (0..4).map(|word| &words[(word * 3 + block) % 8][..]).collect();
        let _ = writeln!(text, "    st.shared.v4.b32 [%u61+{}], {{{}}};", block * 2048, four.join(", "));
    }
    let _ = write!(
        text,
        "    fence.proxy.async;\n    bar.sync 0;\n    shr.u32 %u60, %u60, 4;\n    cvt.u64.u32 %w0, %u60;\n    add.u64 %w1, %w0, {};\n    \
         add.u64 %w2, %w0, {};\n",
        descriptor(random),
        descriptor(random)
    );
    let mut rest = vec![random.of(&["0", "1"])];
    if sum != "s32" {
        rest.extend([random.of(&["1", "-1"]), random.of(&["1", "-1"])]);
    }
    if depth == 16 {
        rest.extend((0..if in_registers { 1 } else { 2 }).map(|_| random.of(&["0", "1"])));
    }
    let form = format!(
        "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}{}.{sum}.{a}.{b}",
        if saturates { ".satfinite" } else { "" }
    );
    let first = if in_registers { format!("{{{}}}", of_a.join(", ")) } else { "%w1".to_owned() };
    let _ = write!(
        text,
        "    wgmma.fence.sync.aligned;\n    {form} {{{}}}, {first}, %w2, {};\n    wgmma.commit_group.sync.aligned;\n    \
         wgmma.wait_group.sync.aligned 0;\n",
        of_d.join(", "),
        rest.join(", ")
    );
    fold(text, 'u', of_d.len(), &origins[0]);
    (form, b'r', origins)
}
