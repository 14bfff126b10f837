//! Types and modifiers that PTX has for an instruction. What computes a result of any type is not asked here; see the families of instructions.

use super::form::Form;
use crate::types::Type;

/// Whether PTX may have the instruction, as far as its type and the modifiers that go with it say.
pub(super) fn is_known(form: &Form<'_>, opcode: &str) -> bool {
    if let ("cvt", &[to, from]) = (opcode, &form.types[..]) {
        return is_conversion(form, to, from);
    }
    let [ty] = form.types[..] else { return true };
    let is_bits = matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64);
    let is_bfloat = matches!(ty, Type::Bf16 | Type::Bf16x2);
    let is_half = is_bfloat || matches!(ty, Type::F16 | Type::F16x2);
    let is_pair = matches!(ty, Type::U16x2 | Type::S16x2);
    let flushes = form.says("ftz");
    match opcode {
        "add" | "sub" | "mul" if is_half => !["rz", "rm", "rp"].iter().any(|rounding| form.says(rounding)),
        "fma" if is_half => form.says("rn") && !(form.says("relu") && form.says("sat")),
        "mad" if is_half => false,
        "add" | "addc" | "sub" | "subc" | "mul" | "div" | "rem" | "min" | "max" | "mad" | "madc" | "sad" => !is_bits,
        "not" | "cnot" => is_bits || ty == Type::Pred,
        // bits are equal or not; they are no numbers
        "setp" if is_bits => form.says("eq") || form.says("ne"),
        "neg" | "abs" => !flushes || !is_bfloat && ty != Type::F64,
        "ex2" if is_half => flushes == is_bfloat,
        "tanh" => !flushes,
        "sqrt" if ty == Type::F64 => !flushes,
        // the one up to an error flushes always
        "rcp" if ty == Type::F64 => flushes || !form.says("approx"),
        // numbers of 16 bits are moved as bits
        "mov" | "selp" | "ld" | "ldu" | "st" => !is_half && !is_pair,
        "red" => !form.says("exch") && !form.says("cas"),
        _ => true,
    }
}

/// Between integers nothing is rounded. To integers is rounded to a whole number, and from them to what the other type has.
fn is_conversion(form: &Form<'_>, to: Type, from: Type) -> bool {
    let says = |words: [&str; 4]| words.iter().any(|word| form.says(word));
    let (is_whole, is_rounded) = (says(["rni", "rzi", "rmi", "rpi"]), says(["rn", "rz", "rm", "rp"]));
    match [to, from].map(|ty| (ty.is_integer(), ty.is_float())) {
        [(true, _), (true, _)] => !is_whole && !is_rounded && !form.says("ftz"),
        [(true, _), (_, true)] => is_whole && !is_rounded,
        [(_, true), (true, _)] => is_rounded && !is_whole,
        [(_, true), (_, true)] => true,
        _ => false,
    }
}
