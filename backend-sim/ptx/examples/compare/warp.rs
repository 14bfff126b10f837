//! What a warp does together, for the comparison: matrices that it loads, stores, transposes and multiplies.
//!
//! Operands are inputs only: a lane's result that differs would spoil those of all others. Floating-point factors are such that every partial
//! sum is exact, as PTX leaves open in which order tensor cores add up and how they round.

use std::fmt::Write as _;

use super::{INPUTS, Random, fragment};

/// Registers and memory that the instructions need, besides those of the kernel.
pub(crate) const DECLARATIONS: &str =
    "    .reg .b32 %u<64>;\n    .reg .b64 %w<40>;\n    .shared .align 32 .b8 room[4096];\n";

/// Bits of a random word that stay, and bits that are set, so that it holds numbers of about 1 with few digits.
pub(crate) fn numbers(element: &str, sum: &str) -> (u64, u64) {
    match (element, sum) {
        ("f16", "f16") => (0x8600_8600, 0x3800_3800),
        ("f16", _) => (0x8780_8780, 0x3800_3800),
        ("bf16", _) => (0x80f0_80f0, 0x3f00_3f00),
        // the lowest 13 bits do not count
        ("tf32", _) => (0x80f0_1fff, 0x3f00_0000),
        ("f32", _) => (0x80f0_0000, 0x3f00_0000),
        ("e4m3", "f16") => (0x8c8c_8c8c, 0x3030_3030),
        ("e4m3", _) => (0x8f8f_8f8f, 0x3030_3030),
        ("e5m2", "f16") => (0x8686_8686, 0x3838_3838),
        ("e5m2", _) => (0x8787_8787, 0x3838_3838),
        // here every digit counts
        ("f64", _) => (0x807f_ffff_ffff_ffff, 0x3f80_0000_0000_0000),
        _ => (u64::MAX, 0),
    }
}

/// Products: shape, what `a`, `b` and the sum consist of, and the registers of each.
fn products() -> Vec<(String, [&'static str; 3], [usize; 3])> {
    let mut all = Vec::new();
    let mut add = |shape: &str, a, b, sum, registers| {
        all.push((format!("mma.sync.aligned.{shape}.row.col.{sum}.{a}.{b}.{sum}"), [a, b, sum], registers));
    };
    for (shape, of_a, of_b) in [("m16n8k8", 2, 1), ("m16n8k16", 4, 2)] {
        add(shape, "f16", "f16", "f32", [of_a, of_b, 4]);
        add(shape, "f16", "f16", "f16", [of_a, of_b, 2]);
        add(shape, "bf16", "bf16", "f32", [of_a, of_b, 4]);
    }
    add("m16n8k4", "tf32", "tf32", "f32", [2, 1, 4]);
    add("m16n8k8", "tf32", "tf32", "f32", [4, 2, 4]);
    for (shape, of_a, of_b, of_c) in
        [("m8n8k4", 1, 1, 2), ("m16n8k4", 2, 1, 4), ("m16n8k8", 4, 2, 4), ("m16n8k16", 8, 4, 4)]
    {
        add(shape, "f64", "f64", "f64", [of_a, of_b, of_c]);
    }
    for (shape, of_a, of_b, of_c) in [("m8n8k16", 1, 1, 2), ("m16n8k16", 2, 1, 4), ("m16n8k32", 4, 2, 4)] {
        for (a, b) in [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")] {
            add(shape, a, b, "s32", [of_a, of_b, of_c]);
        }
    }
    for (shape, of_a, of_b) in [("m16n8k16", 2, 1), ("m16n8k32", 4, 2)] {
        for (a, b) in [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")] {
            add(shape, a, b, "f32", [of_a, of_b, 4]);
            add(shape, a, b, "f16", [of_a, of_b, 2]);
        }
    }
    all
}

/// Writes an instruction whose results together give the register `%lTARGET` or `%rTARGET`: the form, the result's class, and the registers that it
/// comes from.
pub(crate) fn write(text: &mut String, random: &mut Random, target: usize) -> (String, u8, Vec<String>) {
    match random.below(10) {
        0 => transpose(text, random, target),
        1 | 2 => rows(text, random, target),
        3 | 4 => fragment::write(text, random, target),
        _ => product(text, random, target),
    }
}

pub(crate) fn input(random: &mut Random, class: char) -> String {
    format!("%{class}{}", 1 + random.below(INPUTS))
}

fn transpose(text: &mut String, random: &mut Random, target: usize) -> (String, u8, Vec<String>) {
    let (form, from) = ("movmatrix.sync.aligned.m8n8.trans.b16", input(random, 'r'));
    let _ = writeln!(text, "    {form} %r{target}, {from};");
    (form.to_owned(), b'r', vec![format!("%r{target}"), from])
}

/// All results in one word, each at its place.
pub(crate) fn fold(text: &mut String, scratch: char, count: usize, result: &str) {
    let ty = if scratch == 'w' { "u64" } else { "u32" };
    for register in 1..count {
        let _ = writeln!(text, "    mad.lo.{ty} %{scratch}0, %{scratch}0, 31, %{scratch}{register};");
    }
    let _ = writeln!(text, "    mov.{ty} {result}, %{scratch}0;");
}

fn rows(text: &mut String, random: &mut Random, target: usize) -> (String, u8, Vec<String>) {
    let matrices = random.of(&[1, 2, 4]);
    let trans = random.of(&["", ".trans"]);
    let stores = random.below(2) == 0;
    let result = format!("%r{target}");
    let from: Vec<String> = (0..4).map(|_| input(random, 'r')).collect();
    // A lane's own row, and the one that it names.
    let _ = write!(
        text,
        "    mov.u32 %u8, room;\n    mov.u32 %u9, %laneid;\n    mad.lo.u32 %u10, %u9, 16, %u8;\n    xor.b32 %u9, %u9, {};\n    \
         mad.lo.u32 %u11, %u9, 16, %u8;\n    bar.warp.sync -1;\n    st.shared.v4.b32 [%u10], {{{}}};\n    bar.warp.sync -1;\n",
        random.below(32),
        from.join(", ")
    );
    let opcode = if stores { "stmatrix" } else { "ldmatrix" };
    let form = format!("{opcode}.sync.aligned.m8n8.x{matrices}{trans}.shared.b16");
    let count = if stores {
        let _ = write!(
            text,
            "    {form} [%u11], {{{}}};\n    bar.warp.sync -1;\n    ld.shared.v4.b32 {{%u0, %u1, %u2, %u3}}, [%u10];\n",
            from[..matrices].join(", ")
        );
        4
    } else {
        let held = ["%u0", "%u1", "%u2", "%u3"];
        let _ = writeln!(text, "    {form} {{{}}}, [%u11];", held[..matrices].join(", "));
        matrices
    };
    fold(text, 'u', count, &result);
    let origins = std::iter::once(result).chain(from).collect();
    (form, b'r', origins)
}

fn product(text: &mut String, random: &mut Random, target: usize) -> (String, u8, Vec<String>) {
    let products = products();
    let (name, elements, registers) = &products[random.below(products.len())];
    let wide = elements[2] == "f64";
    let (class, scratch) = if wide { ('l', 'w') } else { ('r', 'u') };
    let (bits, result) = (if wide { 64 } else { 32 }, format!("%{class}{target}"));
    let mut origins = vec![result.clone()];
    let mut next = 8;
    let operands: Vec<String> = elements
        .iter()
        .zip(registers)
        .map(|(element, &count)| {
            let (keep, set) = numbers(element, elements[2]);
            let keep = if wide { keep } else { keep & 0xffff_ffff };
            let names: Vec<String> = (0..count)
                .map(|_| {
                    let (from, name) = (input(random, class), format!("%{scratch}{next}"));
                    next += 1;
                    let _ = write!(
                        text,
                        "    and.b{bits} {name}, {from}, {keep:#x};\n    or.b{bits} {name}, {name}, {set:#x};\n"
                    );
                    origins.push(from);
                    name
                })
                .collect();
            format!("{{{}}}", names.join(", "))
        })
        .collect();
    let saturates = elements[2] == "s32" && random.below(2) == 0;
    let form = if saturates { name.replacen(".s32.", ".satfinite.s32.", 1) } else { name.clone() };
    let held: Vec<String> = (0..registers[2]).map(|register| format!("%{scratch}{register}")).collect();
    let _ = writeln!(text, "    {form} {{{}}}, {};", held.join(", "), operands.join(", "));
    fold(text, scratch, registers[2], &result);
    (form, class as u8, origins)
}
