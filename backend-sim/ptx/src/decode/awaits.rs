//! Tests of mbarriers that are waits: a test that fails only leads to the same test again, and leaves nothing behind.
//!
//! So it is in `while (!try_wait(barrier, parity));`, and in the wait of a `cuda::barrier`, which tests, counts, looks at a clock, sleeps, and tests again. As in
//! [`polls`](super::polls), whoever explores schedules need not try each test in vain: the thread goes on when the phase is over.
//!
//! What follows a test is walked through for both of its results. Where it fails, all ways must lead to tests of the same phase of the same mbarrier,
//! through instructions that compute registers at which nothing else looks, or to an assertion that fails, as those of `cuda::barrier` do after some seconds. Where it
//! succeeds, all these tests must lead to the same place.

use std::collections::{BTreeMap, BTreeSet};

use super::polls::{IDLE, PURE, target};
use super::unused::{self, Times};
use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;

/// More steps than this on the ways from a test that fails: it is no wait.
const MOST_STEPS: usize = 1_000;

/// A scope of names, by its number; the outermost has none.
type Scope = Option<usize>;

/// A register or label, in the scope that declares it.
type Name<'a> = (Scope, &'a str);

/// What is known of registers.
type Known<'a> = BTreeMap<Name<'a>, u64>;

/// The tests that are waits, by the numbers of their instructions in the function.
pub(super) fn of(function: &Function<'_>) -> BTreeSet<usize> {
    let has_tests = function.body.iter().flatten().any(|statement| match statement {
        Statement::Instruction(instruction) => is_test(instruction),
        _ => false,
    });
    if !has_tests {
        return BTreeSet::new();
    }
    let text = Text::of(function);
    let tests = text.body.iter().enumerate().filter(|(_, (_, instruction))| is_test(instruction));
    tests.map(|(at, _)| at).filter(|&at| text.waits(at).is_some()).collect()
}

/// Whether a call of this says that an assertion fails.
fn is_assertion(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Name { name: "__assertfail", .. })
}

/// Whether an instruction tests an mbarrier.
fn is_test(instruction: &Instruction<'_>) -> bool {
    let is_test = |modifier: &&str| matches!(*modifier, "test_wait" | "try_wait");
    instruction.opcode == "mbarrier" && instruction.modifiers.iter().any(is_test)
}

/// A function.
#[derive(Default)]
struct Text<'a> {
    /// The scopes around each one, from within.
    around: Vec<Vec<usize>>,
    /// What scopes declare; `true`: several registers, whose names begin so.
    declared: BTreeSet<(usize, &'a str, bool)>,
    labels: BTreeMap<Name<'a>, usize>,
    body: Vec<(Scope, &'a Instruction<'a>)>,
    /// The instructions that read a register.
    readers: BTreeMap<Name<'a>, BTreeSet<usize>>,
}

/// What a walk from a test that fails has come to.
#[derive(Default)]
struct Walk<'a> {
    passed: BTreeSet<usize>,
    written: BTreeSet<Name<'a>>,
    tests: BTreeSet<usize>,
    /// Where it has been, with what was known there, since the last test; `true`: all ways from there lead to tests.
    seen: BTreeMap<(usize, Known<'a>), bool>,
}

impl<'a> Text<'a> {
    fn of(function: &'a Function<'a>) -> Self {
        let mut text = Self::default();
        let mut open: Vec<usize> = Vec::new();
        for statement in function.body.iter().flatten() {
            let scope = open.last().copied();
            match statement {
                Statement::Begin => {
                    open.push(text.around.len());
                    text.around.push(open.iter().rev().copied().collect());
                }
                Statement::End => _ = open.pop(),
                Statement::Registers { name, count, .. } => {
                    text.declared.extend(scope.map(|scope| (scope, *name, count.is_some())));
                }
                Statement::Label(name, _) => _ = text.labels.insert((scope, name), text.body.len()),
                Statement::Instruction(instruction) => text.body.push((scope, instruction)),
                _ => {}
            }
        }
        for (at, &(scope, instruction)) in text.body.iter().enumerate() {
            let mut names = Times::new();
            names.extend(instruction.guard.map(|(guard, _)| (guard, 1)));
            let sources = &instruction.operands[usize::from(target(instruction).is_some())..];
            sources.iter().for_each(|operand| unused::count_names(operand, &mut names));
            for name in names.keys() {
                let name = name_in(&text.around, &text.declared, scope, name);
                text.readers.entry(name).or_default().insert(at);
            }
        }
        text
    }

    fn name(&self, scope: Scope, name: &'a str) -> Name<'a> {
        name_in(&self.around, &self.declared, scope, name)
    }

    /// If a test is a wait: where it leads when it succeeds.
    fn waits(&self, at: usize) -> Option<usize> {
        let phase = self.phase(at)?;
        let mut walk = Walk::default();
        self.walk_from(at, &phase, &mut walk)?;
        let mut ends = walk.tests.iter().map(|&test| self.leads_to(test, &walk));
        let (end, mut known) = ends.next()??;
        for other in ends {
            let (other_end, other_known) = other?;
            known.retain(|name, value| other_known.get(name) == Some(value));
            if other_end != end {
                return None;
            }
        }
        let is_read = |name: &Name<'a>| self.readers.get(name).is_some_and(|all| !all.is_subset(&walk.passed));
        let changes = |name| phase.contains(name) || is_read(name) && !known.contains_key(name);
        (!walk.tests.contains(&end) && !walk.written.iter().any(changes)).then_some(end)
    }

    /// The registers that say which phase of which mbarrier a test is about, in their order; `None` if it is something else than a test, or one that may
    /// not be made.
    fn phase(&self, at: usize) -> Option<Vec<Name<'a>>> {
        let (scope, instruction) = self.body[at];
        let [Operand::Name { offset: 0, .. }, address @ Operand::Address { .. }, state, ..] = &instruction.operands[..]
        else {
            return None;
        };
        if !is_test(instruction) || instruction.guard.is_some() {
            return None;
        }
        let mut names = Vec::new();
        for operand in [address, state] {
            let mut times = Times::new();
            unused::count_names(operand, &mut times);
            names.extend(times.keys().map(|name| self.name(scope, name)));
        }
        Some(names)
    }

    /// Whether two tests ask the same.
    fn is_alike(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|at| self.body[at].1);
        let same =
            |number: usize| format!("{:?}", one.operands.get(number)) == format!("{:?}", other.operands.get(number));
        one.modifiers.contains(&"parity") == other.modifiers.contains(&"parity") && same(1) && same(2)
    }

    /// What is known behind a test with this result.
    fn known_behind(&self, test: usize, result: u64) -> Known<'a> {
        let (scope, instruction) = self.body[test];
        target(instruction).map(|name| (self.name(scope, name), result)).into_iter().collect()
    }

    /// Walks all ways from a test that fails to the next tests, and from those. `None`: one leads somewhere else, or to no test at all.
    fn walk_from(&self, test: usize, phase: &[Name<'a>], walk: &mut Walk<'a>) -> Option<()> {
        let mut todo = vec![test];
        let first = test;
        while let Some(test) = todo.pop() {
            if !walk.tests.insert(test) {
                continue;
            }
            if self.phase(test)? != phase || !self.is_alike(first, test) {
                return None;
            }
            walk.passed.insert(test);
            let known = self.known_behind(test, 0);
            walk.written.extend(known.keys());
            walk.seen.clear();
            self.walk(test + 1, known, walk, &mut todo)?;
        }
        Some(())
    }

    /// Walks all ways from an instruction to the next tests.
    fn walk(&self, mut at: usize, mut known: Known<'a>, walk: &mut Walk<'a>, tests: &mut Vec<usize>) -> Option<()> {
        let mut way = Vec::new();
        loop {
            let here = (at, known.clone());
            match walk.seen.get(&here) {
                Some(true) => break,
                Some(false) => return None, // it goes round without a test
                None if walk.seen.len() > MOST_STEPS => return None,
                None => {}
            }
            let &(scope, instruction) = self.body.get(at)?;
            if is_test(instruction) {
                tests.push(at);
                break;
            }
            walk.seen.insert(here.clone(), false);
            way.push(here);
            walk.passed.insert(at);
            if instruction.opcode == "call" && instruction.operands.iter().any(is_assertion) {
                break; // no time passes for who waits
            }
            if instruction.opcode == "bra" {
                let to = self.branches_to(at)?;
                let taken = match instruction.guard {
                    None => Some(true),
                    Some((guard, negated)) => known.get(&self.name(scope, guard)).map(|value| (*value == 1) != negated),
                };
                if taken.is_none() {
                    self.walk(at + 1, known.clone(), walk, tests)?;
                }
                at = if taken == Some(false) { at + 1 } else { to };
                continue;
            }
            if !self.computes(instruction) || instruction.guard.is_some() {
                return None;
            }
            walk.written.extend(self.compute(at, &mut known));
            at += 1;
        }
        way.into_iter().for_each(|here| _ = walk.seen.insert(here, true));
        Some(())
    }

    /// Where a test leads when it succeeds, behind all that only the walk looks at; and what is known there.
    fn leads_to(&self, test: usize, walk: &Walk<'a>) -> Option<(usize, Known<'a>)> {
        let (mut at, mut known) = (test + 1, self.known_behind(test, 1));
        for _ in 0..MOST_STEPS {
            let Some(&(scope, instruction)) = self.body.get(at) else { return Some((at, known)) };
            if instruction.opcode == "bra" {
                let is_taken = match instruction.guard {
                    None => true,
                    Some((guard, negated)) => match known.get(&self.name(scope, guard)) {
                        Some(value) => (*value == 1) != negated,
                        None => return Some((at, known)),
                    },
                };
                at = if is_taken { self.branches_to(at)? } else { at + 1 };
                continue;
            }
            if !walk.passed.contains(&at) || !self.computes(instruction) {
                return Some((at, known));
            }
            self.compute(at, &mut known);
            at += 1;
        }
        None
    }

    /// Whether an instruction only computes a register, or nothing; or loads a constant by its name, or stores an argument of a call.
    fn computes(&self, instruction: &Instruction<'_>) -> bool {
        let &Instruction { opcode, ref modifiers, ref operands, .. } = instruction;
        let is_plain = |word: &&str| matches!(*word, "global" | "const" | "param") || Type::parse(word).is_some();
        match opcode {
            "ld" => modifiers.iter().all(is_plain) && operands[1..].iter().all(|from| self.is_variable(from)),
            "st" => modifiers.first() == Some(&"param"),
            _ if IDLE.contains(&opcode) => true,
            _ => PURE.contains(&opcode) && target(instruction).is_some() && !modifiers.contains(&"cc"),
        }
    }

    /// Whether an address is that of something with a name, which no register has.
    fn is_variable(&self, address: &Operand<'_>) -> bool {
        let Operand::Address { base: Some(base), .. } = address else { return false };
        !base.starts_with('%') && !self.declared.iter().any(|(_, name, _)| name == base)
    }

    /// The register that an instruction computes. Its value is known from now on, or is not.
    fn compute(&self, at: usize, known: &mut Known<'a>) -> Option<Name<'a>> {
        let (scope, instruction) = self.body[at];
        let name = self.name(scope, target(instruction)?);
        match self.value(scope, instruction, known) {
            Some(value) => known.insert(name, value),
            None => known.remove(&name),
        };
        Some(name)
    }

    fn value(&self, scope: Scope, instruction: &'a Instruction<'a>, known: &Known<'a>) -> Option<u64> {
        let number = |operand: &'a Operand<'a>| match operand {
            Operand::Bits(bits) => Some(*bits),
            Operand::Name { name, offset: 0 } => known.get(&self.name(scope, name)).copied(),
            Operand::Not(name) => known.get(&self.name(scope, name)).map(|value| value ^ 1),
            _ => None,
        };
        let equal = |ty: &str, one, other| Some((number(one)? ^ number(other)?) & Type::parse(ty)?.mask() == 0);
        match (instruction.opcode, &instruction.modifiers[..], &instruction.operands[..]) {
            ("mov", _, [_, from]) => number(from),
            ("not", ["pred"], [_, from]) => Some(number(from)? ^ 1),
            ("selp", _, [_, yes, no, which]) => number(if number(which)? == 1 { yes } else { no }),
            ("setp", ["eq", ty], [_, one, other]) => equal(ty, one, other).map(u64::from),
            ("setp", ["ne", ty], [_, one, other]) => equal(ty, one, other).map(|equal| u64::from(!equal)),
            _ => None,
        }
    }

    /// Where a branch leads.
    fn branches_to(&self, at: usize) -> Option<usize> {
        let (scope, instruction) = self.body[at];
        let [Operand::Name { name, .. }] = &instruction.operands[..] else { return None };
        let around = scope.map_or(&[][..], |scope| &self.around[scope]);
        let mut scopes = around.iter().copied().map(Some).chain([None]);
        scopes.find_map(|scope| self.labels.get(&(scope, *name)).copied())
    }
}

/// A name, in the scope that declares it.
fn name_in<'a>(
    around: &[Vec<usize>],
    declared: &BTreeSet<(usize, &'a str, bool)>,
    scope: Scope,
    name: &'a str,
) -> Name<'a> {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let declares = |scope: &usize| {
        let mut of_scope = declared.range((*scope, "", false)..).take_while(|(of, ..)| of == scope);
        of_scope.any(|&(_, begin, is_counted)| match is_counted {
            true => name.strip_prefix(begin).is_some_and(is_number),
            false => name == begin,
        })
    };
    let around = scope.map_or(&[][..], |scope| &around[scope]);
    (around.iter().find(|scope| declares(scope)).copied(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaits(body: &str) -> Vec<usize> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n\
             .reg .pred %p<9>;\n{body}\nret;\n}}\n"
        );
        let text = crate::parser::parse(&text).unwrap();
        of(&text.functions[0]).into_iter().collect()
    }

    const TEST: &str = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;";

    #[test]
    fn a_loop_ends_when_the_phase_is_over() {
        assert_eq!(awaits(&format!("L: {TEST} @!%p1 bra L;")), [0]);
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra D; bra L; D:")), [0], "as in inline assembly");
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra D; bra.uni L; D:")), [0]);
        assert_eq!(awaits(&format!("L: {TEST} selp.b32 %r3, 1, 0, %p1; setp.eq.s32 %p2, %r3, 0; @%p2 bra L;")), [0]);
        assert_eq!(
            awaits(&format!(
                "L: {TEST} selp.b32 %r3, 1, 0, %p1; setp.ne.s32 %p2, %r3, 0; not.pred %p3, %p2; @%p3 bra L;"
            )),
            [0]
        );
        assert_eq!(awaits(&format!("L: {TEST} selp.u32 %r3, 0, 1, %p1; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;")), [0]);
        assert_eq!(
            awaits(
                "mov.u32 %r1, 8; L: nanosleep.u32 20; mbarrier.test_wait.shared.b64 %p1, [%r1+8], %rd1; @!%p1 bra L;"
            ),
            [2]
        );
        assert_eq!(
            awaits("L: mov.u32 %r4, 7; mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0, %r4; @!%p1 bra L;"),
            [1],
            "with a hint"
        );
        assert_eq!(awaits(&format!("{{ .reg .pred %q; L: {} @%q bra D; bra L; D: }}", TEST.replace("%p1", "%q"))), [0]);
        let in_scope = format!("{{ .reg .pred p; {} selp.b32 %r3, 1, 0, p; }}", TEST.replace("%p1", "p"));
        assert_eq!(awaits(&format!("L: {in_scope} setp.eq.s32 %p1, %r3, 0; @%p1 bra L;")), [0]);
        assert_eq!(awaits(&format!("L: {TEST} {{ @!%p1 bra L; }}")), [0]);
        assert_eq!(awaits(&format!("L: {TEST} @!%p1 bra M; bra D; M: bra L; D:")), [0], "a branch within it");
        let twice = "{ .reg .pred %q; mov.pred %q, %p1; }";
        assert_eq!(awaits(&format!("L: {TEST} {twice} {twice} @!%p1 bra L;")), [0], "two of a name");
        assert_eq!(
            awaits(&format!("L: {TEST} add.s32 %r3, %r3, 1; @!%p1 bra L;")),
            [0],
            "nobody looks at what it counts"
        );
        assert_eq!(awaits(&format!("M: {TEST} @!%p1 bra M; L: {TEST} @!%p1 bra L;")), [0, 2]);
    }

    /// As in the wait of a `cuda::barrier`: a test, then a loop that counts, looks at a clock and sleeps, with a test at its end.
    #[test]
    fn a_loop_may_back_off() {
        let test = |to: &str| {
            format!("{{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%r1], %rd1; selp.b32 {to}, 1, 0, p; }}")
        };
        let text = format!(
            "mov.u64 %rd2, %globaltimer; {} setp.ne.s32 %p3, %r2, 0; @%p3 bra D; mov.u32 %r3, 0; L: setp.lt.s32 %p4, %r3, 16; @%p4 bra C; bra.uni S; \
             C: add.s32 %r3, %r3, 1; bra.uni T; S: mov.u64 %rd3, %globaltimer; sub.s64 %rd4, %rd3, %rd2; setp.lt.s64 %p5, %rd4, 40000; @%p5 bra T; \
             cvt.u32.u64 %r4, %rd4; nanosleep.u32 %r4; T: {} setp.eq.s32 %p7, %r5, 0; @%p7 bra L; D: st.global.u64 [%rd5], %rd5;",
            test("%r2"),
            test("%r5")
        );
        assert_eq!(awaits(&text), [1, 17]);
        let nothing: [usize; 0] = [];
        assert_eq!(
            awaits(&text.replace("[%rd5], %rd5", "[%rd5], %rd3")),
            nothing,
            "somebody wants to know how late it is"
        );
        assert_eq!(awaits(&text.replace("nanosleep.u32 %r4", "trap")), nothing, "it gives up");
        assert_eq!(awaits(&text.replace("bra.uni T", "bra.uni C")), nothing, "it counts for ever");
        let load = |from: &str| {
            text.replace(
                "mov.u64 %rd3, %globaltimer;",
                &format!("mov.u64 %rd3, %globaltimer; ld.global.u64 %rd6, [{from}];"),
            )
        };
        assert_eq!(awaits(&load("limit")), [1, 18], "a constant of the module");
        assert_eq!(awaits(&load("%rd7")), nothing, "what may be no address");
    }

    #[test]
    fn a_loop_that_does_more_is_no_wait() {
        let nothing: [usize; 0] = [];
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra L;")), nothing, "it goes round while the phase is over");
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra L; bra L;")), nothing, "it goes round in any case");
        assert_eq!(awaits(&format!("L: {TEST} @%p2 bra L;")), nothing, "it does not look at the result");
        assert_eq!(
            awaits(&format!("L: {TEST} add.s32 %r3, %r3, 1; @!%p1 bra L; mov.u32 %r4, %r3;")),
            nothing,
            "it counts"
        );
        assert_eq!(
            awaits(&format!("L: {TEST} xor.b32 %r2, %r2, 1; @!%p1 bra L;")),
            nothing,
            "it waits for another phase each time"
        );
        assert_eq!(awaits(&format!("L: {TEST} @%p2 bra D; @!%p1 bra L; D:")), nothing, "it has another end");
        assert_eq!(
            awaits(&format!("L: {TEST} @!%p1 bra M; bra D; M: st.global.u32 [%rd1], %r1; bra L; D:")),
            nothing,
            "it stores"
        );
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra D; M: bra M; bra L; D:")), nothing, "it does not come back");
        let first = format!("{TEST} @%p1 bra D; L: {TEST} @!%p1 bra L;");
        assert_eq!(
            awaits(&format!("{first} mov.u32 %r3, 1; D: mov.u32 %r4, %r3;")),
            [2],
            "the first says that there was no wait"
        );
        let other = first.replacen("%r2", "%r7", 1);
        assert_eq!(awaits(&format!("{other} D:")), [2], "the first is about another phase");
        assert_eq!(awaits(&format!("L: {TEST} add.cc.u32 %r3, %r4, 1; @!%p1 bra L;")), nothing, "it leaves a carry");
        assert_eq!(awaits(&format!("L: ld.shared.u32 %r2, [%r4]; {TEST} @!%p1 bra L;")), nothing, "it loads");
        assert_eq!(
            awaits(&format!("bra M; L: mov.u32 %r5, 1; M: {TEST} @!%p1 bra L; mov.u32 %r3, %r5;")),
            nothing,
            "it tells that it has waited"
        );
        assert_eq!(awaits(&format!("L: {TEST} {TEST} @!%p1 bra L;")), nothing, "it tests twice");
        assert_eq!(awaits(&format!("L: @%p3 {TEST} @!%p1 bra L;")), nothing, "it may not test");
        let other = format!("{{ .reg .pred %p1; {TEST} }}");
        assert_eq!(awaits(&format!("L: {other} @!%p1 bra L;")), nothing, "another one of that name");
    }
}
