//! Random straight-line kernels for a comparison with a GPU: writes PTX, inputs and our outputs.
//!
//! `cargo run --release -p onesided-ptx --example compare -- FOLDER [KERNELS] [SEED]` writes into the folder, for each kernel,
//! `NAME.ptx`, `NAME.in` and `NAME.out`. `examples/compare.py FOLDER` runs them on a GPU and compares, and says which instruction
//! differed first. Each kernel applies one random instruction after another to the words of its threads' inputs, and stores each result; one of
//! eight is of the whole warp; in one of eight kernels, of the whole warp group.

#[path = "compare/fragment.rs"]
mod fragment;
#[path = "compare/group.rs"]
mod group;
#[path = "compare/warp.rs"]
mod warp;

use std::fmt::Write as _;
use std::sync::Arc;

use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};

/// Instructions of a kernel, words of input that a thread has.
const INSTRUCTIONS: usize = 64;
const INPUTS: usize = 8;

/// `xorshift64*`: the same kernels for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A word with interesting bits: edges of integers and of floats, small numbers, anything.
    fn word(&mut self) -> u64 {
        let doubles =
            [0.0, -0.0, 1.0, -1.5, 0.1, 1e-310, 1e308, f64::INFINITY, f64::NAN, 3.5, 2.5, -7.25, 65504.0, 1e-8];
        match self.below(8) {
            0 => self.of(&[
                0,
                1,
                u64::MAX,
                i64::MAX as u64,
                i64::MIN as u64,
                0x7fff_ffff,
                0x8000_0000,
                0xffff_ffff,
                31,
                32,
                64,
            ]),
            1 => self.of(&doubles).to_bits(),
            2 => {
                u64::from((self.of(&doubles) as f32).to_bits()) << 32 | u64::from((self.of(&doubles) as f32).to_bits())
            }
            3 => self.next() & 0xff,
            // Floats of moderate size, so that results are not all zero or infinite.
            4 => ((self.next() as i32 as f64) / 1e5).to_bits(),
            5 => {
                u64::from((self.next() as i32 as f32 / 1e6).to_bits()) << 32
                    | u64::from((self.next() as i32 as f32 / 1e7).to_bits())
            }
            _ => self.next(),
        }
    }
}

/// An instruction: the class of its result, then those of its operands. `h`, `r`, `l` are registers of 16, 32 and 64 bits, `f` and
/// `d` floats, `p` a predicate, `b` a number below 32, `x` a number of 32 bits as it stands.
fn forms() -> Vec<(String, &'static str)> {
    let mut all: Vec<(String, &'static str)> = Vec::new();
    let mut add = |name: String, classes: &'static str| all.push((name, classes));
    for (suffix, classes) in
        [("16", ["hhh", "hh", "hhhh"]), ("32", ["rrr", "rr", "rrrr"]), ("64", ["lll", "ll", "llll"])]
    {
        for sign in ["u", "s"] {
            for op in ["add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"] {
                add(format!("{op}.{sign}{suffix}"), classes[0]);
            }
            for op in ["mad.lo", "mad.hi", "sad"] {
                add(format!("{op}.{sign}{suffix}"), classes[2]);
            }
            for comparison in ["eq", "ne", "lt", "le", "gt", "ge"] {
                add(
                    format!("setp.{comparison}.{sign}{suffix}"),
                    ["phh", "prr", "pll"][(suffix.parse::<usize>().unwrap_or(16) / 16).ilog2() as usize],
                );
            }
            add(
                format!("shr.{sign}{suffix}"),
                ["hhr", "rrr", "llr"][(suffix.parse::<usize>().unwrap_or(16) / 16).ilog2() as usize],
            );
        }
        for op in ["and", "or", "xor"] {
            add(format!("{op}.b{suffix}"), classes[0]);
        }
        for op in ["neg.s", "abs.s", "not.b"] {
            add(format!("{op}{suffix}"), classes[1]);
        }
        add(
            format!("shl.b{suffix}"),
            ["hhr", "rrr", "llr"][(suffix.parse::<usize>().unwrap_or(16) / 16).ilog2() as usize],
        );
        add(
            format!("selp.b{suffix}"),
            ["hhhp", "rrrp", "lllp"][(suffix.parse::<usize>().unwrap_or(16) / 16).ilog2() as usize],
        );
    }
    for (name, classes) in [
        ("mul.wide.u32", "lrr"),
        ("mul.wide.s32", "lrr"),
        ("mul.wide.u16", "rhh"),
        ("mul.wide.s16", "rhh"),
        ("mad.wide.s32", "lrrl"),
        ("add.sat.s32", "rrr"),
        ("sub.sat.s32", "rrr"),
        ("mad.hi.sat.s32", "rrrr"),
        ("popc.b32", "rr"),
        ("popc.b64", "rl"),
        ("clz.b32", "rr"),
        ("clz.b64", "rl"),
        ("brev.b32", "rr"),
        ("brev.b64", "ll"),
        ("bfind.u32", "rr"),
        ("bfind.s32", "rr"),
        ("bfind.u64", "rl"),
        ("bfind.s64", "rl"),
        ("bfind.shiftamt.u32", "rr"),
        ("bfind.shiftamt.s64", "rl"),
        ("bfe.u32", "rrbb"),
        ("bfe.s32", "rrbb"),
        ("bfe.u64", "llbb"),
        ("bfe.s64", "llbb"),
        ("bfe.s32", "rrrr"),
        ("bfi.b32", "rrrbb"),
        ("bfi.b64", "lllbb"),
        ("bfi.b32", "rrrrr"),
        ("prmt.b32", "rrrr"),
        ("prmt.b32.f4e", "rrrb"),
        ("prmt.b32.b4e", "rrrb"),
        ("prmt.b32.rc8", "rrrb"),
        ("prmt.b32.ecl", "rrrb"),
        ("prmt.b32.ecr", "rrrb"),
        ("prmt.b32.rc16", "rrrb"),
        ("shf.l.wrap.b32", "rrrr"),
        ("shf.r.wrap.b32", "rrrr"),
        ("shf.l.clamp.b32", "rrrr"),
        ("shf.r.clamp.b32", "rrrr"),
        ("dp4a.s32.s32", "rrrr"),
        ("dp4a.u32.s32", "rrrr"),
        ("dp2a.lo.s32.u32", "rrrr"),
        ("dp2a.hi.u32.u32", "rrrr"),
        ("cnot.b32", "rr"),
        ("fns.b32", "rrbr"),
        ("fns.b32", "rrbb"),
        ("add.u16x2", "rrr"),
        ("bmsk.clamp.b32", "rrr"),
        ("bmsk.wrap.b32", "rrr"),
        ("szext.clamp.s32", "rrr"),
        ("szext.wrap.u32", "rrr"),
        ("min.s16x2", "rrr"),
        ("max.u16x2", "rrr"),
        ("slct.b32.s32", "rrrr"),
        ("slct.b64.f32", "lllf"),
        ("and.pred", "ppp"),
        ("or.pred", "ppp"),
        ("xor.pred", "ppp"),
        ("not.pred", "pp"),
    ] {
        add(name.to_owned(), classes);
    }
    for (elements, what) in [("2", ["u32", "s32", "u32"]), ("4", ["s32", "u32", "s32"]), ("4", ["u32", "u32", "u32"])] {
        let [d, a, b] = what;
        for op in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"] {
            for then in ["", ".sat", ".add"] {
                add(format!("{op}{elements}.{d}.{a}.{b}{then}"), "rrrr");
            }
        }
        for comparison in ["eq", "ne", "lt", "le", "gt", "ge"] {
            add(format!("vset{elements}.{a}.{b}.{comparison}"), "rrrr");
        }
    }
    for (ty, classes) in [("f32", ["fff", "ffff", "ff", "pff"]), ("f64", ["ddd", "dddd", "dd", "pdd"])] {
        for op in ["add", "sub", "mul", "div"] {
            for rounding in ["rn", "rz", "rm", "rp"] {
                add(format!("{op}.{rounding}.{ty}"), classes[0]);
            }
        }
        for rounding in ["rn", "rz", "rm", "rp"] {
            add(format!("fma.{rounding}.{ty}"), classes[1]);
            add(format!("sqrt.{rounding}.{ty}"), classes[2]);
            add(format!("rcp.{rounding}.{ty}"), classes[2]);
        }
        for op in ["min", "max", "copysign"] {
            add(format!("{op}.{ty}"), classes[0]);
        }
        for op in ["neg", "abs"] {
            add(format!("{op}.{ty}"), classes[2]);
        }
        for comparison in ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
            add(format!("setp.{comparison}.{ty}"), classes[3]);
        }
        for what in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
            add(format!("testp.{what}.{ty}"), if ty == "f32" { "pf" } else { "pd" });
        }
    }
    for op in [
        "add.ftz.f32",
        "mul.ftz.f32",
        "add.sat.f32",
        "mul.rz.ftz.sat.f32",
        "max.NaN.f32",
        "min.ftz.f32",
        "max.xorsign.abs.f32",
        "min.NaN.xorsign.abs.f32",
    ] {
        add(op.to_owned(), "fff");
    }
    for (ty, classes) in [
        ("f16", ["hhh", "hhhh", "hh"]),
        ("bf16", ["hhh", "hhhh", "hh"]),
        ("f16x2", ["rrr", "rrrr", "rr"]),
        ("bf16x2", ["rrr", "rrrr", "rr"]),
    ] {
        for op in ["add", "sub", "mul", "min", "max", "min.NaN", "max.NaN", "min.xorsign.abs", "max.NaN.xorsign.abs"] {
            add(format!("{op}.{ty}"), classes[0]);
        }
        add(format!("fma.rn.{ty}"), classes[1]);
        add(format!("fma.rn.relu.{ty}"), classes[1]);
        add(format!("neg.{ty}"), classes[2]);
        add(format!("abs.{ty}"), classes[2]);
    }
    let integers =
        [("u8", "r"), ("s8", "r"), ("u16", "h"), ("s16", "h"), ("u32", "r"), ("s32", "r"), ("u64", "l"), ("s64", "l")];
    let floats = [("f16", "h"), ("f32", "f"), ("f64", "d")];
    let classes = |to: &str, from: &str| -> &'static str {
        match (to, from) {
            ("h", "h") => "hh",
            ("h", "r") => "hr",
            ("h", "l") => "hl",
            ("h", "f") => "hf",
            ("h", "d") => "hd",
            ("r", "h") => "rh",
            ("r", "r") => "rr",
            ("r", "l") => "rl",
            ("r", "f") => "rf",
            ("r", "d") => "rd",
            ("l", "h") => "lh",
            ("l", "r") => "lr",
            ("l", "l") => "ll",
            ("l", "f") => "lf",
            ("l", "d") => "ld",
            ("f", "h") => "fh",
            ("f", "r") => "fr",
            ("f", "l") => "fl",
            ("f", "f") => "ff",
            ("f", "d") => "fd",
            ("d", "h") => "dh",
            ("d", "r") => "dr",
            ("d", "l") => "dl",
            ("d", "f") => "df",
            _ => "dd",
        }
    };
    for (to, a) in integers {
        for (from, b) in integers {
            add(format!("cvt.{to}.{from}"), classes(a, b));
            let bits = |ty: &str| ty[1..].parse().unwrap_or(0_u32);
            let (narrower, signs) = (bits(to) < bits(from), (to.starts_with('s'), from.starts_with('s')));
            if narrower || signs == (false, true) || (bits(to) == bits(from) && signs == (true, false)) {
                add(format!("cvt.sat.{to}.{from}"), classes(a, b)); // elsewhere there is nothing to clamp, and `.sat` is forbidden
            }
        }
        for (float, b) in floats {
            for rounding in ["rni", "rzi", "rmi", "rpi"] {
                add(format!("cvt.{rounding}.{to}.{float}"), classes(a, b));
            }
            for rounding in ["rn", "rz", "rm", "rp"] {
                add(format!("cvt.{rounding}.{float}.{to}"), classes(b, a));
            }
        }
    }
    for (name, classes) in [
        ("cvt.f32.f16", "fh"),
        ("cvt.f64.f16", "dh"),
        ("cvt.f64.f32", "df"),
        ("cvt.rn.f16.f32", "hf"),
        ("cvt.rz.f16.f32", "hf"),
        ("cvt.rm.f16.f64", "hd"),
        ("cvt.rn.f32.f64", "fd"),
        ("cvt.rz.f32.f64", "fd"),
        ("cvt.rm.f32.f64", "fd"),
        ("cvt.rp.f32.f64", "fd"),
        ("cvt.rn.bf16.f32", "hf"),
        ("cvt.rz.bf16.f32", "hf"),
        ("cvt.f32.bf16", "fh"),
        ("cvt.rn.f16x2.f32", "rff"),
        ("cvt.rn.bf16x2.f32", "rff"),
        ("cvt.rz.relu.bf16x2.f32", "rff"),
        ("cvt.rni.f32.f32", "ff"),
        ("cvt.rmi.f64.f64", "dd"),
        ("cvt.rpi.f16.f16", "hh"),
        ("cvt.rzi.f32.f32", "ff"),
        ("cvt.sat.f32.f32", "ff"),
        ("cvt.ftz.f32.f32", "ff"),
        ("cvt.rn.ftz.f32.f64", "fd"),
    ] {
        add(name.to_owned(), classes);
    }
    all
}

/// How a result of this class is stored: as a word of 64 bits.
fn widened(class: u8, name: &str) -> String {
    match class {
        b'h' => format!("cvt.u64.u16 %rd1, {name};"),
        b'r' => format!("cvt.u64.u32 %rd1, {name};"),
        b'f' => format!("mov.b32 %r0, {name};\n    cvt.u64.u32 %rd1, %r0;"),
        b'd' => format!("mov.b64 %rd1, {name};"),
        b'p' => format!("selp.u64 %rd1, 1, 0, {name};"),
        _ => format!("mov.u64 %rd1, {name};"),
    }
}

/// Writes an instruction of each thread: the form, its result's class, the result's register and those that the operands come from.
fn instruction(
    text: &mut String,
    random: &mut Random,
    forms: &[(String, &'static str)],
    live: &std::collections::BTreeMap<u8, Vec<usize>>,
    target: usize,
) -> (String, u8, Vec<String>) {
    let (form, classes) = &forms[random.below(forms.len())];
    let (result, operands) = (classes.as_bytes()[0], &classes.as_bytes()[1..]);
    let mut arguments = vec![format!("%{}{target}", char::from(result))];
    // The registers that the operands come from, for the comparison.
    let mut origins = arguments.clone();
    for &class in operands {
        let small = class == b'b';
        let class = if small { b'r' } else { class };
        let origin = format!("%{}{}", char::from(class), random.of(&live[&class]));
        if small {
            let register = format!("%r{}", 150 + arguments.len());
            let _ = writeln!(text, "    and.b32 {register}, {origin}, 31;");
            arguments.push(register);
        } else {
            arguments.push(origin.clone());
        }
        origins.push(origin);
    }
    let _ = writeln!(text, "    {form} {};", arguments.join(", "));
    (form.clone(), result, origins)
}

/// A kernel of random instructions. Every operand is an earlier result or a part of an input.
fn kernel(random: &mut Random, forms: &[(String, &'static str)], name: &str, threads: usize) -> String {
    let is_group = threads > 32;
    let (architecture, declarations) =
        if is_group { ("sm_90a", group::DECLARATIONS) } else { ("sm_90", warp::DECLARATIONS) };
    let mut text = format!(
        ".version 8.7\n.target {architecture}\n.address_size 64\n.visible .entry {name}(.param .u64 out, .param .u64 in)\n.reqntid {threads}\n{{\n    .reg .pred %p<200>;\n    \
         .reg .b16 %h<200>;\n    .reg .b32 %r<200>;\n    .reg .b64 %l<200>;\n    .reg .f32 %f<200>;\n    .reg .f64 %d<200>;\n    .reg .b64 %rd<4>;\n    \
         .reg .b32 %t0;\n{}    ld.param.u64 %rd2, [out];\n    ld.param.u64 %rd3, [in];\n    mov.u32 %t0, %tid.x;\n    \
         mul.wide.u32 %rd0, %t0, {};\n    add.s64 %rd3, %rd3, %rd0;\n    mul.wide.u32 %rd0, %t0, {};\n    add.s64 %rd2, %rd2, %rd0;\n",
        declarations,
        INPUTS * 8,
        INSTRUCTIONS * 8
    );
    // Registers of each class that hold something. Number 0 is scratch.
    for i in 1..=INPUTS {
        let _ = write!(
            text,
            "    ld.global.u64 %l{i}, [%rd3+{}];\n    cvt.u32.u64 %r{i}, %l{i};\n    cvt.u16.u64 %h{i}, %l{i};\n    mov.b32 %f{i}, %r{i};\n    \
             mov.b64 %d{i}, %l{i};\n    setp.lt.s64 %p{i}, %l{i}, 0;\n",
            (i - 1) * 8
        );
    }
    let mut live: std::collections::BTreeMap<u8, Vec<usize>> =
        b"hrlfdp".iter().map(|&class| (class, (1..=INPUTS).collect())).collect();
    for step in 0..INSTRUCTIONS {
        let target = INPUTS + 1 + step;
        let (form, result, origins) = match random.below(8) {
            0 if is_group => group::write(&mut text, random, target),
            0 => warp::write(&mut text, random, target),
            _ => instruction(&mut text, random, forms, &live, target),
        };
        let name = &origins[0];
        let (widened, at) = (widened(result, name), step * 8);
        let _ = writeln!(text, "    {widened}\n    st.global.u64 [%rd2+{at}], %rd1; // {form} {}", origins.join(", "));
        live.entry(result).or_default().push(target);
    }
    text.push_str("    ret;\n}\n");
    text
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: compare FOLDER [KERNELS] [SEED]")?;
    let kernels: usize = arguments.next().map_or(Ok(100), |count| count.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    std::fs::create_dir_all(&folder)?;
    let forms = forms();
    let mut cases = 0;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for number in 0..kernels {
        let name = format!("k{number}");
        let threads = if number % 8 == 7 { 128 } else { 32 };
        let text = kernel(&mut random, &forms, &name, threads);
        let module = Arc::new(Module::parse(&text).map_err(|error| format!("{error}\n{text}"))?);
        let words: Vec<u64> = (0..threads * INPUTS).map(|_| random.word()).collect();
        let input: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut memory = FlatMemory::new();
        let out = memory.allocate(&vec![0; threads * INSTRUCTIONS * 8]);
        let from = memory.allocate(&input);
        let launch = Launch::new(1, threads as u32).parameter(&out.to_le_bytes()).parameter(&from.to_le_bytes());
        match Block::new(&module, &name, &Arc::new(launch), [0; 3])?.run(&mut memory) {
            Stop::Finished => {}
            other => return Err(format!("{name}: {other:?}").into()),
        }
        cases += threads * INSTRUCTIONS;
        std::fs::write(format!("{folder}/{name}.ptx"), &text)?;
        std::fs::write(format!("{folder}/{name}.in"), &input)?;
        std::fs::write(format!("{folder}/{name}.out"), memory.bytes(out))?;
    }
    println!(
        "{kernels} kernels of {INSTRUCTIONS} instructions from {} forms: {cases} instruction cases in {folder}",
        forms.len()
    );
    Ok(())
}
