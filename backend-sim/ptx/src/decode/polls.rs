//! Loops that only load a word until it compares true, such as `while (load_acquire(flag) != 1);`.
//!
//! A round of such a loop that goes on leaves nothing behind: the next computes the same from what it loads itself. So the loop is a wait
//! for the word, and whoever explores schedules need not try each look in vain.
//!
//! Behind the load, a comparison decides: of the word, or of a [part](View) of it, with a number, or with a register that the loop does not change.
//! With one of its results, all ways must lead to the load again: see [`rounds`](super::rounds).

use std::collections::{BTreeMap, BTreeSet};

use super::rounds::Walk;
use super::text::{Known, Name, Scope, Text};
use crate::syntax::{Instruction, Operand};
use crate::types::Type;
use crate::world::{Compare, Then, Until, View};

/// So many instructions may stand between a load and the comparison.
const MOST_BETWEEN: usize = 32;

/// The loads in such loops, by the numbers of their instructions in the function, and what ends the loops.
pub(super) fn of<'a>(text: &Text<'a>) -> BTreeMap<usize, Until<Operand<'a>>> {
    let is_load = |instruction: &Instruction<'_>| instruction.opcode == "ld" && instruction.guard.is_none();
    let loads = (0..text.body.len()).filter(|&at| is_load(text.body[at].1) && text.is_in_loop(at));
    loads.filter_map(|at| Some((at, poll(text, at)?))).collect()
}

/// What decides about a round.
struct Decides<'a> {
    /// The instruction, and those that compute from the word what it compares.
    at: usize,
    chain: BTreeSet<usize>,
    view: View<Operand<'a>>,
    ty: Type,
    /// True is its result where the part of the word compares so.
    compare: Compare,
    against: Operand<'a>,
    /// Registers that the loop may not change.
    asked: BTreeSet<Name<'a>>,
}

/// What ends the loop of a load, if the loop does nothing else.
fn poll<'a>(text: &Text<'a>, load: usize) -> Option<Until<Operand<'a>>> {
    let decides = decides(text, load)?;
    let mut in_vain = [1, 0].into_iter().filter_map(|result| Some((result, round(text, load, &decides, result)?)));
    let ((result, is_used), None) = (in_vain.next()?, in_vain.next()) else { return None };
    let Decides { view, ty, compare, against, .. } = decides;
    let compare = if result == 1 { compare.negated() } else { compare };
    Some(Until { compare, ty, against, view, is_used })
}

/// Whether a round with this result of the comparison leaves nothing behind, and leads to the load again. If so, whether something else may look at
/// what was loaded.
fn round<'a>(text: &Text<'a>, load: usize, decides: &Decides<'a>, result: u64) -> Option<bool> {
    let is_look = |at: usize, _: &Instruction<'a>| at == load;
    let mut walk = Walk::new(&is_look, Some((decides.at, result)));
    walk.passed.insert(load);
    let mut looks = Vec::new();
    text.walk(load + 1, Known::new(), &mut walk, &mut looks)?;
    if looks.is_empty() || !walk.passed.contains(&decides.at) {
        return None;
    }
    let (_, known) = text.leads_to(load + 1, Known::new(), &walk)?;
    // what is computed from the word alone on the way to the comparison, the last round computes as well
    let of_word = text.computed_from(load, decides.at, &walk.written);
    let is_read = |name: &Name<'a>| text.readers.get(name).is_some_and(|all| !all.is_subset(&walk.passed));
    let changes = |name: &Name<'a>| {
        decides.asked.contains(name) || is_read(name) && !known.contains_key(name) && !of_word.contains(name)
    };
    if walk.written.iter().any(changes) || text.names_of(load).any(|name| decides.asked.contains(&name)) {
        return None;
    }
    let deciding = |at: &usize| *at == decides.at || decides.chain.contains(at);
    let of_chain = decides.chain.iter().chain([&load]).flat_map(|&at| text.names_of(at));
    let is_used = of_chain.into_iter().any(|name| text.readers.get(&name).is_some_and(|all| !all.iter().all(deciding)));
    Some(is_used)
}

/// What a register has of the word that was loaded.
type Views<'a> = BTreeMap<Name<'a>, (View<Operand<'a>>, BTreeSet<usize>)>;

/// The comparison behind a load: the first of something that comes from the word.
fn decides<'a>(text: &Text<'a>, load: usize) -> Option<Decides<'a>> {
    let (scope, instruction) = text.body[load];
    let [Operand::Name { name: loaded, offset: 0 }, Operand::Address { base: Some(base), .. }] =
        instruction.operands[..]
    else {
        return None;
    };
    let of_load = instruction.modifiers.last().and_then(|ty| Type::parse(ty))?;
    if of_load.is_signed() && of_load.bytes() < 4 {
        return None; // its register is wider
    }
    let whole = View { shift: 0, mask: of_load.mask(), then: Then::Nothing };
    let mut views = Views::from([(text.name(scope, loaded), (whole, BTreeSet::new()))]);
    let mut asked = BTreeSet::from([text.name(scope, base)]);
    for at in load + 1..(load + MOST_BETWEEN).min(text.body.len()) {
        let (inner, instruction) = text.body[at];
        if instruction.guard.is_some() || !text.computes(instruction) || text.is_label(at) {
            return None;
        }
        if instruction.opcode == "setp" {
            let (&[compare, ty], [_, one, other]) = (&instruction.modifiers[..], &instruction.operands[..]) else {
                continue;
            };
            let view = |operand: &Operand<'a>| match operand {
                Operand::Name { name, offset: 0 } => views.get(&text.name(inner, name)).cloned(),
                _ => None,
            };
            let ((view, chain), against, is_mirrored) = match (view(one), view(other)) {
                (Some(view), None) => (view, other, false),
                (None, Some(view)) => (view, one, true),
                _ => continue,
            };
            let ty = Type::parse(ty).filter(|ty| ty.is_integer() || matches!(ty, Type::B16 | Type::B32 | Type::B64))?;
            let compare = Compare::parse(compare, ty)?;
            let compare = if is_mirrored { compare.mirrored() } else { compare };
            let is_whole = view.then.number().is_none() && view.shift == 0 && view.mask == of_load.mask();
            // a signed number that is narrower than its register is another one there
            let is_alike = ty.bytes() == of_load.bytes() || !is_whole || !of_load.is_signed();
            for operand in [Some(against), view.then.number()].into_iter().flatten() {
                asked.extend(known_in(text, (scope, inner), operand)?);
            }
            return is_alike.then(|| Decides { at, chain, view, ty, compare, against: against.clone(), asked });
        }
        step(text, at, of_load, &mut views);
    }
    None
}

/// A number, or a register that has the same name where the load stands: its name, if it is one. `None`: something else.
fn known_in<'a>(text: &Text<'a>, (outer, inner): (Scope, Scope), operand: &Operand<'a>) -> Option<Option<Name<'a>>> {
    match operand {
        Operand::Bits(_) => Some(None),
        Operand::Name { name, offset: 0 } if !name.contains('.') => {
            let [there, here] = [outer, inner].map(|scope| text.name(scope, name));
            (there == here).then_some(Some(here))
        }
        _ => None,
    }
}

/// What registers have of the word behind an instruction.
fn step<'a>(text: &Text<'a>, at: usize, loaded: Type, views: &mut Views<'a>) {
    let (scope, instruction) = text.body[at];
    let Instruction { opcode, modifiers, operands, .. } = instruction;
    let has = |at: usize| match operands.get(at) {
        Some(Operand::Name { name, offset: 0 }) => views.get(&text.name(scope, name)).cloned(),
        _ => None,
    };
    let (mut from, mut others) = (has(1), operands.get(2..).unwrap_or_default());
    if from.is_none() && matches!(*opcode, "add" | "and" | "xor") {
        (from, others) = (has(2), operands.get(1..2).unwrap_or_default());
    }
    text.names_of(at).for_each(|name| _ = views.remove(&name));
    let (Some((view, mut chain)), Some(ty)) = (from, modifiers.last().and_then(|ty| Type::parse(ty))) else { return };
    if loaded.is_signed() && ty.bytes() > loaded.bytes() {
        return;
    }
    chain.insert(at);
    match &operands[0] {
        Operand::Name { name, offset: 0 } => {
            let part = part((opcode, modifiers), others, view, ty);
            views.extend(part.map(|view| (text.name(scope, name), (view, chain))));
        }
        Operand::Vector(all) if view.then.number().is_none() => {
            let bits = 8 * ty.bytes() / all.len() as u32;
            for (number, operand) in all.iter().enumerate() {
                let part = view.clone().bits(bits * number as u32, bits);
                if let (Operand::Name { name, offset: 0 }, Some(view)) = (operand, part) {
                    views.insert(text.name(scope, name), (view, chain.clone()));
                }
            }
        }
        _ => {}
    }
}

/// What an instruction makes of a part of a word, if that is a part, too.
fn part<'a>(
    (opcode, modifiers): (&str, &[&str]),
    others: &[Operand<'a>],
    view: View<Operand<'a>>,
    ty: Type,
) -> Option<View<Operand<'a>>> {
    let number = |at: usize| match others.get(at) {
        Some(Operand::Bits(bits)) => Some(*bits),
        _ => None,
    };
    if opcode == "mov" {
        return Some(view);
    }
    if view.then.number().is_some() {
        return None;
    }
    let bits = 8 * ty.bytes();
    let then = |then: fn(Operand<'a>) -> Then<Operand<'a>>| Some(View { then: then(others.first()?.clone()), ..view });
    match (opcode, modifiers) {
        ("and", _) => Some(View { mask: view.mask & number(0)?, ..view }),
        ("shr", _) if !ty.is_signed() => view.bits(u32::try_from(number(0)?).ok()?, bits),
        ("bfe", _) if !ty.is_signed() => view.bits(u32::try_from(number(0)?).ok()?, u32::try_from(number(1)?).ok()?),
        ("cvt", &[to, _]) => {
            let to = Type::parse(to)?;
            let is_kept = to.bytes() <= ty.bytes() || !ty.is_signed();
            let are_integers = [to, ty].iter().all(|ty| ty.is_integer());
            (is_kept && are_integers).then(|| View { mask: view.mask & to.mask(), ..view })
        }
        ("sub", [_]) => then(Then::Minus),
        ("add", [_]) => then(Then::Plus),
        ("xor", _) => then(Then::Xor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loops of a kernel with this body: the number of the load, what ends the loop, whether the word is used.
    fn polls(body: &str) -> Vec<String> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n\
             .reg .pred %p<9>;\n{body}\nret;\n}}\n"
        );
        let text = crate::parser::parse(&text).unwrap();
        let in_words = |(number, poll): (usize, Until<Operand<'_>>)| {
            let against = in_words_of(&poll.against);
            let used = if poll.is_used { ", used" } else { "" };
            let View { shift, mask, then } = poll.view;
            let is_all = mask == poll.ty.mask() && shift == 0;
            let part = if is_all { String::new() } else { format!(" of >> {shift} & {mask:#x}") };
            let then = match then {
                Then::Nothing => String::new(),
                Then::Plus(number) => format!(" of + {}", in_words_of(&number)),
                Then::Minus(number) => format!(" of - {}", in_words_of(&number)),
                Then::Xor(number) => format!(" of ^ {}", in_words_of(&number)),
            };
            format!("{number}: {:?} {:?} {against}{part}{then}{used}", poll.compare, poll.ty)
        };
        of(&Text::of(&text.functions[0])).into_iter().map(in_words).collect()
    }

    fn in_words_of(operand: &Operand<'_>) -> String {
        match operand {
            Operand::Bits(bits) => bits.to_string(),
            Operand::Name { name, .. } => (*name).into(),
            other => panic!("{other:?}"),
        }
    }

    const FLAG: &str = "L: ld.acquire.sys.global.u32 %r1, [%rd1];";

    fn around(rest: &str) -> Vec<String> {
        polls(&format!("{FLAG} {rest} @%p1 bra L;"))
    }

    #[test]
    fn a_loop_around_a_load_ends_when_its_branch_is_not_taken() {
        assert_eq!(around("setp.ne.s32 %p1, %r1, 1;"), ["0: Eq S32 1"]);
        assert_eq!(around("setp.lt.s32 %p1, %r1, %r2;"), ["0: Ge S32 %r2"]);
        assert_eq!(around("setp.gt.u32 %p1, %r2, %r1;"), ["0: Ge U32 %r2"], "mirrored");
        assert_eq!(around("setp.hs.u32 %p1, %r1, 3;"), ["0: Lt U32 3"]);
        let negated = format!("{FLAG} setp.eq.b32 %p1, %r1, 1; @!%p1 bra L;");
        assert_eq!(polls(&negated), ["0: Eq B32 1"]);
        let later = format!("mov.u32 %r2, 7; {FLAG} setp.ne.s32 %p1, %r1, 1; @%p1 bra L; mov.u32 %r3, %r1;");
        assert_eq!(polls(&later), ["1: Eq S32 1, used"]);
    }

    #[test]
    fn a_loop_may_sleep_and_fence_and_compute_for_itself() {
        assert_eq!(around("fence.acq_rel.sys; setp.ne.s32 %p1, %r1, 1;"), ["0: Eq S32 1"]);
        assert_eq!(around("cvt.u64.u32 %rd2, %r1; setp.ne.s32 %p1, %r1, 1;"), ["0: Eq S32 1, used"]);
        let sleeps = "L: mov.u32 %r5, 20; nanosleep.u32 %r5; ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra L;";
        assert_eq!(polls(sleeps), ["2: Ne S32 0"]);
        let backs_off = "L: nanosleep.u32 %r5; ld.volatile.global.u32 %r1, [%rd1]; add.s32 %r5, %r5, 1; setp.eq.s32 %p1, %r1, 0; @%p1 bra L;";
        assert_eq!(polls(backs_off), ["1: Ne S32 0"], "no time passes for who waits");
    }

    #[test]
    fn a_loop_that_leaves_something_behind_is_none() {
        let nothing: [&str; 0] = [];
        let counts =
            |rest: &str| polls(&format!("{FLAG} add.s32 %r2, %r2, 1; setp.ne.s32 %p1, %r1, 1; @%p1 bra L; {rest}"));
        assert_eq!(counts("mov.u32 %r3, %r2;"), nothing, "it counts");
        assert_eq!(counts(""), ["0: Eq S32 1"], "nobody looks at what it counts");
        assert_eq!(around("st.global.u32 [%rd2], %r1; setp.ne.s32 %p1, %r1, 1;"), nothing, "it stores");
        assert_eq!(around("ld.global.u32 %r2, [%rd2]; setp.ne.s32 %p1, %r1, 1;"), nothing, "it loads more");
        assert_eq!(around("setp.ne.s32 %p1, %r1, 1; @%p2 bra M;"), nothing, "it has another end");
        assert_eq!(around("setp.ne.s32 %p1, %r1, 1; @%p2 mov.u32 %r2, 1;"), nothing, "something may happen or not");
        assert_eq!(around("cvt.u64.u32 %rd1, %r1; setp.ne.s32 %p1, %r1, 1;"), nothing, "it moves on");
        assert_eq!(around("mov.u32 %r2, %r1; setp.ne.s32 %p1, %r1, %r2;"), nothing, "it compares with itself");
        let says_so = "bra M; L: mov.u32 %r5, 1; M: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra L; mov.u32 %r2, %r5;";
        assert_eq!(polls(says_so), nothing, "it tells that it has waited");
        let follows =
            "L: mov.u64 %rd1, %rd3; ld.volatile.global.u64 %rd3, [%rd1]; setp.eq.s64 %p1, %rd3, 0; @%p1 bra L;";
        assert_eq!(polls(follows), nothing, "it follows what it loads");
    }

    #[test]
    fn a_loop_may_compare_a_part_of_what_it_loads() {
        assert_eq!(around("and.b32 %r2, %r1, 1; setp.eq.b32 %p1, %r2, 0;"), ["0: Ne B32 0 of >> 0 & 0x1"]);
        assert_eq!(
            around("and.b32 %r2, %r1, 1; setp.eq.b32 %p2, %r2, 1; not.pred %p1, %p2;"),
            ["0: Eq B32 1 of >> 0 & 0x1"]
        );
        assert_eq!(around("sub.s32 %r2, %r1, %r5; setp.lt.s32 %p1, %r2, 0;"), ["0: Ge S32 0 of - %r5"]);
        assert_eq!(around("add.s32 %r2, %r5, %r1; setp.lt.s32 %p1, %r2, 0;"), ["0: Ge S32 0 of + %r5"]);
        assert_eq!(
            around("xor.b32 %r2, %r1, %r5; setp.gt.s32 %p1, %r2, -1;"),
            [format!("0: Le S32 {} of ^ %r5", u64::MAX)]
        );
        assert_eq!(around("shr.u32 %r2, %r1, 16; setp.ne.s32 %p1, %r2, %r5;"), ["0: Eq S32 %r5 of >> 16 & 0xffff"]);
        assert_eq!(around("bfe.u32 %r2, %r1, 8, 4; setp.ne.s32 %p1, %r2, 3;"), ["0: Eq S32 3 of >> 8 & 0xf"]);
        let packed = |rest: &str| polls(&format!("L: ld.acquire.sys.global.u64 %rd2, [%rd1]; {rest} @%p1 bra L;"));
        assert_eq!(packed("mov.b64 {%r1, %r2}, %rd2; setp.ne.s32 %p1, %r2, 1;"), ["0: Eq S32 1 of >> 32 & 0xffffffff"]);
        assert_eq!(
            packed("shr.u64 %rd3, %rd2, 32; cvt.u32.u64 %r1, %rd3; setp.ne.s32 %p1, %r1, %r5;"),
            ["0: Eq S32 %r5 of >> 32 & 0xffffffff"]
        );
        assert_eq!(packed("cvt.u32.u64 %r1, %rd2; setp.ne.s32 %p1, %r1, 1;"), ["0: Eq S32 1"]);
        let low =
            "cvt.u32.u64 %r1, %rd2; setp.ne.s32 %p1, %r1, 1; @%p1 bra L; mov.b64 {%r3, %r4}, %rd2; mov.u32 %r5, %r4;";
        assert_eq!(polls(&format!("L: ld.acquire.sys.global.u64 %rd2, [%rd1]; {low}")), ["0: Eq S32 1, used"]);
        let nothing: [&str; 0] = [];
        assert_eq!(around("not.b32 %r2, %r1; setp.ne.s32 %p1, %r2, 0;"), nothing, "another number");
        assert_eq!(around("add.s32 %r2, %r1, %r1; setp.ne.s32 %p1, %r2, 0;"), nothing, "twice the number");
        assert_eq!(around("sub.s32 %r2, %r5, %r1; setp.gt.s32 %p1, %r2, 0;"), nothing, "the other way round");
        assert_eq!(around("and.b32 %r2, %r1, %r5; setp.eq.b32 %p1, %r2, 0;"), nothing, "of bits that are not known");
    }

    #[test]
    fn a_loop_may_give_up() {
        let until = |fails: &str| {
            polls(&format!(
                "mov.u64 %rd3, %clock64; L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, %r2; @%p1 bra D; \
                 mov.u64 %rd4, %clock64; sub.s64 %rd5, %rd4, %rd3; setp.lt.s64 %p2, %rd5, 1000; @%p2 bra L; {fails} D:"
            ))
        };
        assert_eq!(until("trap;"), ["1: Eq S32 %r2"]);
        assert_eq!(
            until("st.local.u32 [%rd6], %r1; bra.uni E; E: trap;"),
            ["1: Eq S32 %r2, used"],
            "it says what it has seen"
        );
        assert_eq!(until("ret;"), ["1: Eq S32 %r2"]);
        assert_eq!(until(""), ["1: Eq S32 %r2"], "it goes on without");
        let nothing: [&str; 0] = [];
        let counts = |limit: &str| {
            polls(&format!(
                "L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, %r2; @%p1 bra D; \
                 {limit} @%p2 bra L; trap; D:"
            ))
        };
        assert_eq!(counts("add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 1000;"), nothing, "so many looks may be too few");
        assert_eq!(counts("mov.u32 %r3, %clock; setp.lt.u32 %p2, %r3, 0;"), nothing, "no time at all");
    }

    #[test]
    fn a_comparison_of_another_kind_is_none() {
        let nothing: [&str; 0] = [];
        let wider = "L: ld.acquire.sys.global.s32 %rd2, [%rd1]; setp.ne.s64 %p1, %rd2, 1; @%p1 bra L;";
        assert_eq!(polls(wider), nothing, "of another width");
        assert_eq!(around("setp.ne.f32 %p1, %r1, %r2;"), nothing, "of numbers with a point");
        assert_eq!(around("setp.ne.and.s32 %p1, %r1, 1, %p2;"), nothing, "combined");
        assert_eq!(around("setp.lt.b32 %p1, %r1, 1;"), nothing, "of bits by size");
        assert_eq!(around("setp.ne.s32 %p2, %r1, 1;"), nothing, "for another branch");
        let scoped = |declares: &str| polls(&format!("{FLAG} {{ {declares} setp.ne.s32 %p1, %r1, 1; @%p1 bra L; }}"));
        assert_eq!(scoped(""), ["0: Eq S32 1"]);
        assert_eq!(scoped(".reg .b32 %r1;"), nothing, "of another register of that name");
    }
}
