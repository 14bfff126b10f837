//! Loops that only load a word until it compares true, such as `while (load_acquire(flag) != 1);`.
//!
//! A round of such a loop that goes on leaves nothing behind: the next computes the same from what it loads itself. So the loop is a wait
//! for the word, and whoever explores schedules need not try each look in vain.

use std::collections::{BTreeMap, BTreeSet};

use super::unused::{self, Times};
use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;
use crate::world::{Compare, Until};

/// Instructions that only compute a register, their first operand, from the others.
pub(super) const PURE: &[&str] = &[
    "add", "and", "bfe", "bfi", "cvt", "cvta", "mad", "max", "min", "mov", "mul", "neg", "not", "or", "prmt", "selp",
    "setp", "shl", "shr", "sub", "xor",
];

/// Instructions that compute nothing. What a fence orders, the last round orders as well.
pub(super) const IDLE: &[&str] = &["nanosleep", "membar", "fence"];

/// The loads in such loops, by the numbers of their instructions in the function, and what ends the loops: the word is compared with a
/// number, or with a register that the loop does not change.
pub(super) fn of<'a>(function: &Function<'a>) -> BTreeMap<usize, Until<Operand<'a>>> {
    let mut polls = BTreeMap::new();
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    let mut body: Vec<&Instruction<'a>> = Vec::new();
    let mut all: Option<Times<'a>> = None;
    for statement in function.body.iter().flatten() {
        match statement {
            Statement::Label(name, _) => _ = labels.insert(name, body.len()),
            // names of other scopes are other names
            Statement::Begin | Statement::End => labels.clear(),
            Statement::Instruction(instruction) => {
                body.push(instruction);
                let begin = jumps_to(instruction).and_then(|label| labels.get(label));
                if let Some(&begin) = begin {
                    let all = all.get_or_insert_with(|| unused::names_of(function));
                    polls.extend(poll(&body[begin..], all).map(|(load, poll)| (begin + load, poll)));
                }
            }
            _ => {}
        }
    }
    polls
}

/// The label of a branch that depends on a predicate.
fn jumps_to<'a>(instruction: &Instruction<'a>) -> Option<&'a str> {
    match instruction.operands[..] {
        [Operand::Name { name, .. }] if instruction.opcode == "bra" && instruction.guard.is_some() => Some(name),
        _ => None,
    }
}

/// The load in a loop, and what ends it, if the loop does nothing else. `all`: how often the function has each name.
fn poll<'a>(body: &[&Instruction<'a>], all: &Times<'a>) -> Option<(usize, Until<Operand<'a>>)> {
    let (last, body) = body.split_last()?;
    let (guard, negated) = last.guard?;
    if body.iter().any(|instruction| instruction.guard.is_some()) {
        return None;
    }
    let at = body.iter().position(|instruction| instruction.opcode == "ld")?;
    let (before, load, behind) = (&body[..at], body[at], &body[at + 1..]);
    let [Operand::Name { name: loaded, .. }, Operand::Address { base: Some(base), .. }] = load.operands[..] else {
        return None;
    };

    // What is computed before the load is for nobody else, and behind it, for the round.
    let first = computed(before)?;
    let mut here = Times::new();
    before.iter().for_each(|instruction| unused::count(instruction, &mut here));
    if first.iter().any(|name| here[name] != all[name]) {
        return None;
    }
    let mut second = computed(behind)?;
    let both = here.keys().any(|name| second.contains(name) || *name == loaded);
    if both || second.contains(base) || base == loaded || !second.insert(loaded) {
        return None;
    }

    let mut tests = behind.iter().filter(|instruction| target(instruction) == Some(guard));
    let (Some(test), None) = (tests.next(), tests.next()) else { return None };
    let (&[compare, ty], [_, one, other]) = (&test.modifiers[..], &test.operands[..]) else { return None };
    let is_loaded = |operand: &Operand<'_>| matches!(operand, Operand::Name { name, offset: 0 } if *name == loaded);
    let (against, is_mirrored) = match (is_loaded(one), is_loaded(other)) {
        (true, false) => (other, false),
        (false, true) => (one, true),
        _ => return None,
    };
    let is_known = match against {
        Operand::Bits(_) => true,
        Operand::Name { name, offset: 0 } => !second.contains(name) && !name.contains('.'),
        _ => false,
    };
    let ty = Type::parse(ty).filter(|ty| ty.is_integer() || matches!(ty, Type::B16 | Type::B32 | Type::B64))?;
    let width = load.modifiers.last().and_then(|ty| Type::parse(ty))?.bytes();
    if test.opcode != "setp" || !is_known || ty.bytes() != width {
        return None;
    }
    let compare = Compare::parse(compare, ty)?;
    let compare = if is_mirrored { compare.mirrored() } else { compare };
    let compare = if negated { compare } else { compare.negated() }; // the loop goes on where the branch is taken
    Some((at, Until { compare, ty, against: against.clone(), is_used: all[loaded] > 2 }))
}

/// The registers that instructions compute, if they do nothing else, and none is read before it is computed, or computed twice.
fn computed<'a>(instructions: &[&Instruction<'a>]) -> Option<BTreeSet<&'a str>> {
    let all: BTreeSet<&str> = instructions.iter().filter_map(|instruction| target(instruction)).collect();
    let mut computed = BTreeSet::new();
    for instruction in instructions {
        let to = target(instruction);
        let sources = &instruction.operands[usize::from(to.is_some())..];
        let mut read = Times::new();
        sources.iter().for_each(|operand| unused::count_names(operand, &mut read));
        let is_alone = to.is_some() && PURE.contains(&instruction.opcode) || IDLE.contains(&instruction.opcode);
        if !is_alone || read.keys().any(|name| all.contains(name) && !computed.contains(name)) {
            return None;
        }
        if to.is_some_and(|name| !computed.insert(name)) {
            return None;
        }
    }
    Some(computed)
}

/// The register that an instruction computes, if it is one.
pub(super) fn target<'a>(instruction: &Instruction<'a>) -> Option<&'a str> {
    match instruction.operands.first() {
        Some(Operand::Name { name, offset: 0 }) if !IDLE.contains(&instruction.opcode) => Some(name),
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
            let against = match poll.against {
                Operand::Bits(bits) => bits.to_string(),
                Operand::Name { name, .. } => name.into(),
                other => panic!("{other:?}"),
            };
            let used = if poll.is_used { ", used" } else { "" };
            format!("{number}: {:?} {:?} {against}{used}", poll.compare, poll.ty)
        };
        of(&text.functions[0]).into_iter().map(in_words).collect()
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
    }

    #[test]
    fn a_loop_that_leaves_something_behind_is_none() {
        let nothing: [&str; 0] = [];
        assert_eq!(around("add.s32 %r2, %r2, 1; setp.ne.s32 %p1, %r1, 1;"), nothing, "it counts");
        assert_eq!(around("st.global.u32 [%rd2], %r1; setp.ne.s32 %p1, %r1, 1;"), nothing, "it stores");
        assert_eq!(around("ld.global.u32 %r2, [%rd2]; setp.ne.s32 %p1, %r1, 1;"), nothing, "it loads more");
        assert_eq!(around("setp.ne.s32 %p1, %r1, 1; @%p2 bra M;"), nothing, "it has another end");
        assert_eq!(around("setp.ne.s32 %p1, %r1, 1; @%p2 mov.u32 %r2, 1;"), nothing, "something may happen or not");
        assert_eq!(around("cvt.u64.u32 %rd1, %r1; setp.ne.s32 %p1, %r1, 1;"), nothing, "it moves on");
        assert_eq!(around("mov.u32 %r2, %r1; setp.ne.s32 %p1, %r1, %r2;"), nothing, "it compares with itself");
        let backs_off = "L: nanosleep.u32 %r5; ld.volatile.global.u32 %r1, [%rd1]; add.s32 %r5, %r5, 1; setp.eq.s32 %p1, %r1, 0; @%p1 bra L;";
        assert_eq!(polls(backs_off), nothing, "it sleeps longer each time");
        let says_so = "bra M; L: mov.u32 %r5, 1; M: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra L; mov.u32 %r2, %r5;";
        assert_eq!(polls(says_so), nothing, "it tells that it has waited");
        let follows =
            "L: mov.u64 %rd1, %rd3; ld.volatile.global.u64 %rd3, [%rd1]; setp.eq.s64 %p1, %rd3, 0; @%p1 bra L;";
        assert_eq!(polls(follows), nothing, "it follows what it loads");
    }

    #[test]
    fn a_comparison_of_another_kind_is_none() {
        let nothing: [&str; 0] = [];
        assert_eq!(around("setp.ne.s64 %p1, %r1, 1;"), nothing, "of another width");
        assert_eq!(around("setp.ne.f32 %p1, %r1, %r2;"), nothing, "of numbers with a point");
        assert_eq!(around("setp.ne.and.s32 %p1, %r1, 1, %p2;"), nothing, "combined");
        assert_eq!(around("setp.lt.b32 %p1, %r1, 1;"), nothing, "of bits by size");
        assert_eq!(around("setp.ne.s32 %p2, %r1, 1;"), nothing, "for another branch");
        let scoped = format!("{FLAG} {{ setp.ne.s32 %p1, %r1, 1; @%p1 bra L; }}");
        assert_eq!(polls(&scoped), nothing, "in a scope of its own");
    }
}
