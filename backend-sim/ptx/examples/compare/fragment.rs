//! Fragments of whole matrices, for the comparison. Which lane has which element is a GPU's own business: so they are loaded from shared memory, and
//! what is compared is what they store there.

use std::fmt::Write as _;

use super::Random;
use super::warp::{fold, input, numbers};

/// Shapes, what `a` and `b` consist of, what they are added up to, and the registers of `a` and `b`.
const KINDS: [(&str, &str, &[&str], [usize; 2]); 14] = [
    ("m16n16k16", "f16", &["f32", "f16"], [8, 8]),
    ("m8n32k16", "f16", &["f32", "f16"], [8, 8]),
    ("m32n8k16", "f16", &["f32", "f16"], [8, 8]),
    ("m16n16k16", "bf16", &["f32"], [4, 4]),
    ("m8n32k16", "bf16", &["f32"], [2, 8]),
    ("m32n8k16", "bf16", &["f32"], [8, 2]),
    ("m16n16k16", "s8", &["s32"], [2, 2]),
    ("m8n32k16", "s8", &["s32"], [1, 4]),
    ("m32n8k16", "s8", &["s32"], [4, 1]),
    ("m16n16k16", "u8", &["s32"], [2, 2]),
    ("m8n32k16", "u8", &["s32"], [1, 4]),
    ("m32n8k16", "u8", &["s32"], [4, 1]),
    ("m16n16k8", "tf32", &["f32"], [4, 4]),
    ("m8n8k4", "f64", &["f64"], [1, 1]),
];

/// Writes a product whose results together give the register `%lTARGET`: the form, the result's class, and the registers that it comes from.
pub(crate) fn write(text: &mut String, random: &mut Random, target: usize) -> (String, u8, Vec<String>) {
    let (shape, factor, sums, [of_a, of_b]) = random.of(&KINDS);
    let (from, to) = (random.of(sums), random.of(sums));
    let mut origins = vec![format!("%l{target}")];
    // Each lane fills 32 bytes of the kilobyte that each matrix has.
    text.push_str("    mov.u32 %u8, room;\n    mov.u32 %u9, %laneid;\n    mad.lo.u32 %u10, %u9, 32, %u8;\n    bar.warp.sync -1;\n");
    let narrowest = if to == "f16" || from == "f16" { "f16" } else { to };
    for (place, (keep, set)) in
        [numbers(factor, narrowest), numbers(factor, narrowest), numbers(from, from), (0, 0)].into_iter().enumerate()
    {
        let twice = |bits: u64| if factor == "f64" { bits } else { bits & 0xffff_ffff | bits << 32 };
        for word in 0..4 {
            let origin = input(random, 'l');
            let _ = write!(
                text,
                "    and.b64 %w0, {origin}, {:#x};\n    or.b64 %w0, %w0, {:#x};\n    st.shared.b64 [%u10+{}], %w0;\n",
                twice(keep),
                twice(set),
                1024 * place + 8 * word
            );
            origins.push(origin);
        }
    }
    text.push_str("    bar.warp.sync -1;\n");
    let class = if factor == "f64" { 'w' } else { 'u' };
    let of_sum = |name: &str| match name {
        "f16" => 4,
        "f64" => 2,
        _ => 8,
    };
    let mut next = 11;
    let mut vector = |count: usize| {
        let all: Vec<String> = (next..next + count).map(|register| format!("%{class}{register}")).collect();
        next += count;
        format!("{{{}}}", all.join(", "))
    };
    let held = [vector(of_a), vector(of_b), vector(of_sum(from)), vector(of_sum(to))];
    let layouts: [&str; 4] = std::array::from_fn(|_| random.of(&["row", "col"]));
    for (place, (which, ty)) in [("a", factor), ("b", factor), ("c", from)].into_iter().enumerate() {
        let (layout, held) = (layouts[place], &held[place]);
        let _ = writeln!(
            text,
            "    add.u32 %u8, %u8, {};\n    wmma.load.{which}.sync.aligned.{layout}.{shape}.shared.{ty} {held}, [%u8];",
            if place == 0 { 0 } else { 1024 }
        );
    }
    let types = match factor {
        "f16" => format!("{to}.{from}"),
        other => format!("{to}.{other}.{other}.{from}"),
    };
    let saturates = if to == "s32" && random.below(2) == 0 { ".satfinite" } else { "" };
    let form = format!("wmma.mma.sync.aligned.{}.{}.{shape}.{types}{saturates}", layouts[0], layouts[1]);
    let _ = write!(
        text,
        "    {form} {}, {}, {}, {};\n    wmma.store.d.sync.aligned.{}.{shape}.shared.{to} [%u8+1024], {};\n    bar.warp.sync -1;\n",
        held[3], held[0], held[1], held[2], layouts[3], held[3]
    );
    for word in 0..4 {
        let _ = writeln!(text, "    ld.shared.b64 %w{word}, [%u10+{}];", 3072 + 8 * word);
    }
    fold(text, 'w', 4, &origins[0]);
    (form, b'l', origins)
}
