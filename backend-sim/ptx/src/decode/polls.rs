//! Loops that only load a word until it compares true, such as `while (load_acquire(flag) != 1);`, or take it then: `while (atomicCAS(lock, 0, 1) != 0);`.
//!
//! A round of such a loop that goes on leaves nothing behind: the next computes the same from what it loads itself. So the loop is a wait
//! for the word, and whoever explores schedules need not try each look in vain.
//!
//! Behind the load, or the compare-and-swap that fails, a comparison decides: of the word, or of a [part](View) of it, with a number, or with a register that the loop does not change.
//! With one of its results, all ways must lead to the load again: see [`rounds`](super::rounds).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::rounds::{Walk, lead_to_one};
use super::text::{Known, Name, Scope, Text};
use crate::syntax::{Instruction, Operand};
use crate::types::Type;
use crate::world::{Compare, Then, Until, View};

/// So many instructions may stand between a load and the comparison.
const MOST_BETWEEN: usize = 32;

/// The looks of such loops, by the numbers of their instructions in the function, and what ends the loops. A loop may begin with a look before it.
pub(super) fn of<'a>(text: &Text<'a>) -> BTreeMap<usize, Until<Operand<'a>>> {
    let looks: Vec<usize> = (0..text.body.len()).filter(|&at| is_look(text.body[at].1)).collect();
    let (in_loops, before): (Vec<usize>, Vec<usize>) = looks.iter().partition(|&&at| text.is_in_loop(at));
    let begins = |&at: &usize| in_loops.iter().any(|&look| look > at && is_alike(text, at, look));
    let before: Vec<usize> = before.into_iter().filter(begins).collect();
    in_loops.into_iter().chain(before).filter_map(|at| Some((at, poll(text, at)?))).collect()
}

/// Whether an instruction looks at a word, and changes it only if it finds what it looks for.
fn is_look(instruction: &Instruction<'_>) -> bool {
    let is_one = instruction.opcode == "ld" || instruction.opcode == "atom" && instruction.modifiers.contains(&"cas");
    is_one && instruction.guard.is_none()
}

/// Whether two looks are at the same, for the same.
fn is_alike(text: &Text<'_>, one: usize, other: usize) -> bool {
    let [(scope, one), (other_scope, other)] = [one, other].map(|at| text.body[at]);
    let is_same = |(one, other): (&Operand<'_>, &Operand<'_>)| match (one, other) {
        (Operand::Name { name, offset: 0 }, Operand::Name { name: other, offset: 0 }) => {
            text.name(scope, name) == text.name(other_scope, other)
        }
        (one, other) => one == other,
    };
    match (&one.operands[..], &other.operands[..]) {
        (
            [_, Operand::Address { base: Some(base), offset }, swapped @ ..],
            [_, Operand::Address { base: Some(other_base), offset: other_offset }, other_swapped @ ..],
        ) => {
            (one.opcode, offset, &one.modifiers) == (other.opcode, other_offset, &other.modifiers)
                && text.name(scope, base) == text.name(other_scope, other_base)
                && swapped.iter().zip(other_swapped).all(is_same)
        }
        _ => false,
    }
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
    /// What the look replaces, if it does.
    replaces: Option<Operand<'a>>,
}

impl<'a> Decides<'a> {
    /// Whether a look has replaced nothing with which a loop goes on: who finds what is to be replaced does not go on.
    fn leaves(&self, result: u64) -> bool {
        let Until { compare, view, .. } = self.until(result, false);
        let ends = |is_equal: bool| match compare {
            Compare::Eq | Compare::Le | Compare::Ge => is_equal,
            Compare::Ne => !is_equal,
            Compare::Lt | Compare::Gt => false,
        };
        self.replaces.as_ref().is_none_or(|replaced| match (replaced, &self.against) {
            _ if view.then.number().is_some() => false,
            (Operand::Bits(found), Operand::Bits(against)) => {
                let part = view.with(None::<u64>).of(*found);
                ends(part & self.ty.mask() == against & self.ty.mask())
            }
            (Operand::Name { .. }, against) => {
                replaced == against && view.shift == 0 && view.mask == self.ty.mask() && ends(true)
            }
            _ => false,
        })
    }

    /// What ends a loop that goes on with this result.
    fn until(&self, result: u64, is_used: bool) -> Until<Operand<'a>> {
        let compare = if result == 1 { self.compare.negated() } else { self.compare };
        Until { compare, ty: self.ty, against: self.against.clone(), view: self.view.clone(), is_used }
    }

    /// Whether something else looks at what was loaded.
    fn is_used(&self, text: &Text<'a>, load: usize) -> bool {
        let deciding = |at: &usize| *at == self.at || self.chain.contains(at);
        let of_chain = self.chain.iter().chain([&load]).flat_map(|&at| text.names_of(at));
        let mut read = of_chain.filter_map(|name| text.readers.get(&name));
        read.any(|all| !all.iter().all(deciding))
    }
}

/// What ends the loop of a load, if the loop does nothing else: looks in vain lead to looks alike, and leave nothing behind; and what ends one of them ends all.
fn poll<'a>(text: &Text<'a>, first: usize) -> Option<Until<Operand<'a>>> {
    let is_another = |at: usize, instruction: &Instruction<'a>| is_look(instruction) && is_alike(text, first, at);
    let mut walk = Walk::new(&is_another, None);
    let (mut looks, mut todo) = (BTreeMap::new(), vec![first]);
    while let Some(load) = todo.pop() {
        if let Entry::Vacant(look) = looks.entry(load) {
            let decides = decides(text, load)?;
            let result = in_vain(text, load, &decides, &mut walk, &mut todo)?;
            look.insert((decides, result));
        }
    }
    // what is computed from the word alone on the way to the comparison, the last look computes as well
    let of_word = looks.iter().map(|(&load, (decides, _))| text.computed_from(load, decides.at, &walk.written));
    let of_word = of_word.reduce(|all, one| all.intersection(&one).copied().collect())?;
    let ends = looks.iter().map(|(&load, &(ref decides, result))| {
        walk.again(Some((decides.at, result)));
        text.leads_to(load + 1, Known::new(), &walk)
    });
    let (end, known) = lead_to_one(ends)?;
    let asked = |name: &Name<'a>| looks.values().any(|(decides, _)| decides.asked.contains(name));
    let changes = |name: &Name<'a>| {
        asked(name) || text.is_read_beyond(name, &walk.passed) && !known.contains_key(name) && !of_word.contains(name)
    };
    let mut written = walk.written.iter().copied().chain(looks.keys().flat_map(|&load| text.names_of(load)));
    let is_used = looks.iter().any(|(&load, (decides, _))| decides.is_used(text, load));
    let untils = looks.values().map(|(decides, result)| decides.until(*result, is_used)).collect::<Vec<_>>();
    let is_one = untils.iter().all(|until| *until == untils[0]);
    (is_one && !looks.contains_key(&end) && !written.any(|name| changes(&name))).then(|| untils[0].clone())
}

/// The result of the comparison behind a load with which all ways lead to looks. With the other one, not all do.
fn in_vain<'a, 'l>(
    text: &Text<'a>,
    load: usize,
    decides: &Decides<'a>,
    walk: &mut Walk<'a, 'l>,
    todo: &mut Vec<usize>,
) -> Option<u64> {
    let mut ways = [0, 1].into_iter().filter_map(|result| {
        let (mut tried, mut looks) = (walk.clone(), Vec::new());
        tried.again(Some((decides.at, result)));
        tried.passed.insert(load);
        text.walk(load + 1, Known::new(), &mut tried, &mut looks)?;
        (!looks.is_empty() && tried.passed.contains(&decides.at)).then_some((result, tried, looks))
    });
    let (Some((result, tried, looks)), None) = (ways.next(), ways.next()) else { return None };
    if !decides.leaves(result) {
        return None;
    }
    *walk = tried;
    todo.extend(looks);
    Some(result)
}

/// What a register has of the word that was loaded.
type Views<'a> = BTreeMap<Name<'a>, (View<Operand<'a>>, BTreeSet<usize>)>;

/// The comparison behind a load: the first of something that comes from the word.
fn decides<'a>(text: &Text<'a>, load: usize) -> Option<Decides<'a>> {
    let (scope, instruction) = text.body[load];
    let [Operand::Name { name: loaded, offset: 0 }, Operand::Address { base: Some(base), .. }, ref swap @ ..] =
        instruction.operands[..]
    else {
        return None;
    };
    let replaces = swap.first().map(|operand| text.known(scope, operand));
    let of_load = instruction.modifiers.last().and_then(|ty| Type::parse(ty))?;
    if of_load.is_signed() && of_load.bytes() < 4 {
        return None; // its register is wider
    }
    let whole = View { shift: 0, mask: of_load.mask(), then: Then::Nothing };
    let mut views = Views::from([(text.name(scope, loaded), (whole, BTreeSet::new()))]);
    let mut asked = BTreeSet::from([text.name(scope, base)]);
    for operand in swap {
        asked.extend(known_in(text, (scope, scope), &text.known(scope, operand))?);
    }
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
            let against = text.known(inner, against);
            for operand in [Some(&against), view.then.number()].into_iter().flatten() {
                asked.extend(known_in(text, (scope, inner), operand)?);
            }
            let decides = Decides { at, chain, view, ty, compare, against, asked, replaces };
            return is_alike.then_some(decides);
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
            let others: Vec<Operand<'a>> = others.iter().map(|operand| text.known(scope, operand)).collect();
            let part = part((opcode, modifiers), &others, view, ty);
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
            let is_wider = to.is_signed() && to.bytes() < 4; // than the number, the register
            let are_integers = [to, ty].iter().all(|ty| ty.is_integer());
            (is_kept && !is_wider && are_integers).then(|| View { mask: view.mask & ty.mask() & to.mask(), ..view })
        }
        ("sub", [_]) => then(Then::Minus),
        ("add", [_]) => then(Then::Plus),
        ("xor", _) => then(Then::Xor),
        // no byte of the other operand, and no sign
        ("prmt", ["b32"]) if number(1)? & 0xcccc == 0 => {
            Some(View { then: Then::Bytes(others.get(1)?.clone()), mask: view.mask & u64::from(u32::MAX), ..view })
        }
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
                Then::Bytes(order) => format!(" in bytes {}", in_words_of(&order)),
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

    /// As compilers write a loop whose body does more than look.
    #[test]
    fn a_loop_may_begin_with_a_look_before_it() {
        let look = "ld.volatile.global.u64 %rd5, [%rd1]; shr.u64 %rd3, %rd5, 32; cvt.u32.u64 %r1, %rd3;";
        let body = "mov.u64 %rd4, 0; L: setp.ne.s64 %p2, %rd4, 1000000; @%p2 bra M; trap;";
        let text = format!(
            "{look} setp.eq.s32 %p1, %r1, %r2; @%p1 bra D; {body} M: {look} setp.ne.s32 %p3, %r1, %r2; \
             add.s64 %rd4, %rd4, 1; @%p3 bra L; D: st.global.u64 [%rd2], %rd5;"
        );
        let high = "Eq S32 %r2 of >> 32 & 0xffffffff, used";
        assert_eq!(polls(&text), [format!("0: {high}"), format!("9: {high}")]);
        let counts = text.replace("[%rd2], %rd5", "[%rd2], %rd4");
        let nothing: [&str; 0] = [];
        assert_eq!(polls(&counts), nothing, "somebody wants to know how often it has looked");
        let other = text.replacen("%p1, %r1, %r2", "%p1, %r1, %r3", 1);
        assert_eq!(polls(&other), [format!("9: {high}")], "the first look is for something else");
    }

    #[test]
    fn a_loop_may_take_what_it_waits_for() {
        let swaps = |swap: &str, rest: &str| {
            polls(&format!("L: atom.acquire.sys.global.cas.b32 %r1, [%rd1], {swap}; {rest} @%p1 bra L;"))
        };
        assert_eq!(swaps("0, 1", "setp.ne.s32 %p1, %r1, 0;"), ["0: Eq S32 0"]);
        assert_eq!(swaps("1, 0", "nanosleep.u32 20; setp.eq.s32 %p2, %r1, 1; not.pred %p1, %p2;"), ["0: Eq S32 1"]);
        assert_eq!(swaps("%r2, %r3", "setp.ne.s32 %p1, %r1, %r2;"), ["0: Eq S32 %r2"]);
        let moved = "mov.u32 %r2, 1; L: mov.u32 %r3, 0; atom.cas.b32 %r1, [%rd1], %r2, %r3; setp.ne.s32 %p1, %r1, 1; @%p1 bra L;";
        assert_eq!(polls(moved), ["2: Eq S32 1"], "registers with constants");
        let nothing: [&str; 0] = [];
        assert_eq!(polls(&moved.replace("bra L;", "bra L; mov.u32 %r2, 2;")), nothing, "one of them changes");
        assert_eq!(swaps("0, 1", "setp.eq.s32 %p1, %r1, 1;"), ["0: Ne S32 1"], "it also ends with another value");
        assert_eq!(swaps("3, 1", "setp.lt.u32 %p1, %r1, 3;"), ["0: Ge U32 3"]);
        assert_eq!(swaps("0, 1", "setp.eq.s32 %p1, %r1, 0;"), nothing, "it goes on where it has taken it");
        assert_eq!(swaps("0, 1", "setp.ne.s32 %p1, %r1, 2;"), nothing, "it takes something else, and goes on");
        assert_eq!(
            swaps("%r2, 1", "setp.ne.s32 %p1, %r1, %r3;"),
            nothing,
            "nobody knows whether it takes what it looks for"
        );
        assert_eq!(
            swaps("%r2, %r1", "setp.ne.s32 %p1, %r1, %r2;"),
            nothing,
            "each round leaves what the last has found"
        );
        let exchanges = "L: atom.exch.b32 %r1, [%rd1], 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;";
        assert_eq!(polls(exchanges), nothing, "it writes in any case");
        let peeled = "atom.cas.b32 %r1, [%rd1], 0, 1; setp.eq.s32 %p1, %r1, 0; @%p1 bra D; \
                      L: nanosleep.u32 20; atom.cas.b32 %r2, [%rd1], 0, 1; setp.ne.s32 %p2, %r2, 0; @%p2 bra L; D:";
        assert_eq!(polls(peeled), ["0: Eq S32 0", "4: Eq S32 0"]);
        let other = peeled.replacen("0, 1", "0, 2", 1);
        assert_eq!(polls(&other), ["4: Eq S32 0"], "the first look leaves something else");
    }

    #[test]
    fn a_loop_may_compare_a_part_of_what_it_loads() {
        assert_eq!(around("and.b32 %r2, %r1, 1; setp.eq.b32 %p1, %r2, 0;"), ["0: Ne B32 0 of >> 0 & 0x1"]);
        assert_eq!(
            around("and.b32 %r2, %r1, 1; setp.eq.b32 %p2, %r2, 1; not.pred %p1, %p2;"),
            ["0: Eq B32 1 of >> 0 & 0x1"]
        );
        let turned = "setp.eq.b32 %p2, %r2, 1; mov.pred %p3, 0; xor.pred %p4, %p2, %p3; not.pred %p1, %p4;";
        assert_eq!(around(&format!("and.b32 %r2, %r1, 1; {turned}")), ["0: Eq B32 1 of >> 0 & 0x1"]);
        assert_eq!(around("sub.s32 %r2, %r1, %r5; setp.lt.s32 %p1, %r2, 0;"), ["0: Ge S32 0 of - %r5"]);
        assert_eq!(around("add.s32 %r2, %r5, %r1; setp.lt.s32 %p1, %r2, 0;"), ["0: Ge S32 0 of + %r5"]);
        assert_eq!(
            around("xor.b32 %r2, %r1, %r5; setp.gt.s32 %p1, %r2, -1;"),
            [format!("0: Le S32 {} of ^ %r5", u64::MAX)]
        );
        assert_eq!(around("shr.u32 %r2, %r1, 16; setp.ne.s32 %p1, %r2, %r5;"), ["0: Eq S32 %r5 of >> 16 & 0xffff"]);
        assert_eq!(around("cvt.u32.u8 %r2, %r1; setp.ne.s32 %p1, %r2, 3;"), ["0: Eq S32 3 of >> 0 & 0xff"]);
        assert_eq!(around("bfe.u32 %r2, %r1, 8, 4; setp.ne.s32 %p1, %r2, 3;"), ["0: Eq S32 3 of >> 8 & 0xf"]);
        let swapped = "mov.u32 %r5, 291; prmt.b32 %r2, %r1, %r1, %r5; setp.ne.s32 %p1, %r2, 4;";
        assert_eq!(around(swapped), ["0: Eq S32 4 in bytes 291"]);
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
        assert_eq!(
            around("prmt.b32 %r2, %r1, %r3, 0x0145; setp.ne.s32 %p1, %r2, 0;"),
            nothing,
            "bytes of something else"
        );
        assert_eq!(
            around("prmt.b32 %r2, %r1, %r1, %r3; setp.ne.s32 %p1, %r2, 0;"),
            nothing,
            "nobody knows which bytes"
        );
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
        assert_eq!(counts("add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 10;"), nothing, "so many looks may be too few");
        assert_eq!(counts("add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, %r4;"), nothing, "nobody knows how many");
        let many = "add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 1000000;";
        assert_eq!(counts(many), ["0: Eq S32 %r2"]);
        let down = "add.s32 %r3, %r3, -1; setp.ne.s32 %p2, %r3, -1;";
        assert_eq!(counts(down), nothing, "it counts down from a number that may be small");
        let goes_on = format!(
            "L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, %r2; @%p1 bra D; {many} @%p2 bra L; D:"
        );
        assert_eq!(polls(&goes_on), nothing, "it goes on without");
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
