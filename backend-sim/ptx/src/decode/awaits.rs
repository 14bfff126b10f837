//! Loops that only test an mbarrier until its phase is over, such as `while (!try_wait(barrier, parity));`.
//!
//! As in [`polls`](super::polls), a round that goes on leaves nothing behind. So the loop is a wait for the phase. Compilers write such a loop
//! in many ways: what follows the test is computed here for both of its results, to see where the branches lead.

use std::collections::{BTreeMap, BTreeSet};

use super::polls::{computed, target};
use super::unused::{self, Times};
use crate::syntax::{Function, Instruction, Operand, Statement};

/// The tests in such loops, by the numbers of their instructions in the function.
pub(super) fn of(function: &Function<'_>) -> BTreeSet<usize> {
    let mut awaits = BTreeSet::new();
    let mut text = Text::default();
    let mut all: Option<Times<'_>> = None;
    for statement in function.body.iter().flatten() {
        match statement {
            Statement::Begin => text.opens(),
            Statement::End => text.closes(),
            Statement::Registers { name, count, .. } => text.declares(name, count.is_some()),
            Statement::Label(name, _) => _ = text.labels.insert(name, (text.body.len(), text.scope())),
            Statement::Instruction(instruction) => {
                text.body.push((text.scope(), instruction));
                let back = branches_to(instruction).and_then(|label| text.labels.get_key_value(label));
                if let Some((&label, &(begin, scope))) = back
                    && scope == text.scope()
                    && let Some(body) = text.body_since(begin)
                {
                    let inside =
                        text.labels.iter().filter(|(_, (at, _))| *at > begin).map(|(label, _)| *label).collect();
                    let all = all.get_or_insert_with(|| unused::names_of(function));
                    awaits.extend(awaited(&body, label, &inside, all).map(|test| begin + test));
                }
            }
            _ => {}
        }
    }
    awaits
}

/// A function up to a statement. Scopes have numbers; the outermost has none.
#[derive(Default)]
struct Text<'a> {
    /// The scopes that are open, and those around each one there was.
    open: Vec<usize>,
    parents: Vec<Vec<usize>>,
    /// Where labels of open scopes stand, and in which scope.
    labels: BTreeMap<&'a str, (usize, Option<usize>)>,
    /// Names that scopes declare, where; `true`: one of several registers.
    declared: Vec<(usize, usize, &'a str, bool)>,
    body: Vec<(Option<usize>, &'a Instruction<'a>)>,
}

impl<'a> Text<'a> {
    fn scope(&self) -> Option<usize> {
        self.open.last().copied()
    }

    fn opens(&mut self) {
        self.open.push(self.parents.len());
        self.parents.push(self.open.clone());
    }

    fn closes(&mut self) {
        let closed = self.open.pop();
        self.labels.retain(|_, (_, scope)| *scope != closed);
    }

    fn declares(&mut self, name: &'a str, is_counted: bool) {
        if let Some(scope) = self.scope() {
            self.declared.push((self.body.len(), scope, name, is_counted));
        }
    }

    /// The instructions from one on, if each name means the same in all of them.
    fn body_since(&self, begin: usize) -> Option<Vec<&'a Instruction<'a>>> {
        let mut names = BTreeSet::new();
        for &(_, scope, name, is_counted) in self.declared.iter().rev().take_while(|(at, ..)| *at >= begin) {
            let is_outside = |of: Option<usize>| !of.is_some_and(|of| self.parents[of].contains(&scope));
            let mentions = |instruction: &Instruction<'a>| {
                let mut times = Times::new();
                unused::count(instruction, &mut times);
                times.contains_key(name)
            };
            let mut rest = self.body[begin..].iter();
            if is_counted || !names.insert(name) || rest.any(|(of, other)| is_outside(*of) && mentions(other)) {
                return None;
            }
        }
        Some(self.body[begin..].iter().map(|(_, instruction)| *instruction).collect())
    }
}

/// The label of a branch.
fn branches_to<'a>(instruction: &Instruction<'a>) -> Option<&'a str> {
    match instruction.operands[..] {
        [Operand::Name { name, .. }] if instruction.opcode == "bra" => Some(name),
        _ => None,
    }
}

/// The test in a loop, if the loop does nothing else. `label`: where the loop begins; `inside`: the labels within it. `all`: how often the function has
/// each name.
fn awaited<'a>(body: &[&Instruction<'a>], label: &str, inside: &BTreeSet<&str>, all: &Times<'a>) -> Option<usize> {
    let at = body.iter().position(|instruction| is_test(instruction))?;
    let (before, test, behind) = (&body[..at], body[at], &body[at + 1..]);
    let is_branch = |instruction: &&&Instruction<'_>| instruction.opcode == "bra";
    let has_guard = |instruction: &&&Instruction<'_>| instruction.guard.is_some();
    if test.guard.is_some() || before.iter().any(|other| has_guard(&other) || is_branch(&other)) {
        return None;
    }
    let [Operand::Name { name: result, offset: 0 }, Operand::Address { .. }, ..] = &test.operands[..] else {
        return None;
    };

    // What is computed before the test is for nobody else, and behind it, for the round.
    let first = computed(before)?;
    let mut here = Times::new();
    before.iter().for_each(|instruction| unused::count(instruction, &mut here));
    test.operands[1..].iter().for_each(|operand| unused::count_names(operand, &mut here));
    if first.iter().any(|name| here[name] != all[name]) {
        return None;
    }
    let rest: Vec<&Instruction<'a>> = behind.iter().filter(|other| !is_branch(other)).copied().collect();
    if rest.iter().any(|other| other.guard.is_some()) {
        return None;
    }
    let second = computed(&rest)?;
    if here.keys().any(|name| second.contains(name) || name == result) || second.contains(result) {
        return None;
    }

    // It goes round again where the phase is not over, and only then.
    let goes_round = |is_over| goes_round(behind, (*result, is_over), label, inside);
    (goes_round(false)? && !goes_round(true)?).then_some(at)
}

/// Whether an instruction tests an mbarrier.
fn is_test(instruction: &Instruction<'_>) -> bool {
    let is_test = |modifier: &&str| matches!(*modifier, "test_wait" | "try_wait");
    instruction.opcode == "mbarrier" && instruction.modifiers.iter().any(is_test)
}

/// Whether the branches behind a test lead back to the loop's label, and not out of it, if the test has this result. `None`: that is not known.
fn goes_round(
    behind: &[&Instruction<'_>],
    (result, is_over): (&str, bool),
    label: &str,
    inside: &BTreeSet<&str>,
) -> Option<bool> {
    let mut known = BTreeMap::from([(result, u64::from(is_over))]);
    for instruction in behind {
        if instruction.opcode != "bra" {
            if let Some((name, value)) = target(instruction).zip(value(instruction, &known)) {
                known.insert(name, value);
            }
            continue;
        }
        let to = branches_to(instruction)?;
        let is_taken = match instruction.guard {
            Some((guard, negated)) => (*known.get(guard)? == 1) != negated,
            None => true,
        };
        if is_taken {
            return (!inside.contains(to)).then_some(to == label);
        }
    }
    Some(false)
}

/// What an instruction computes from what is known.
fn value(instruction: &Instruction<'_>, known: &BTreeMap<&str, u64>) -> Option<u64> {
    let number = |operand: &Operand<'_>| match operand {
        Operand::Bits(bits) => Some(*bits),
        Operand::Name { name, offset: 0 } => known.get(name).copied(),
        Operand::Not(name) => known.get(name).map(|value| value ^ 1),
        _ => None,
    };
    match (instruction.opcode, &instruction.modifiers[..], &instruction.operands[..]) {
        ("mov", _, [_, from]) => number(from),
        ("not", ["pred"], [_, from]) => Some(number(from)? ^ 1),
        ("selp", _, [_, yes, no, which]) => {
            if number(which)? == 1 {
                number(yes)
            } else {
                number(no)
            }
        }
        ("setp", ["eq", _], [_, one, other]) => Some((number(one)? == number(other)?).into()),
        ("setp", ["ne", _], [_, one, other]) => Some((number(one)? != number(other)?).into()),
        _ => None,
    }
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
        assert_eq!(awaits(&format!("{in_scope} L: {in_scope} setp.eq.s32 %p1, %r3, 0; @%p1 bra L;")), [2]);
        assert_eq!(awaits(&format!("M: {TEST} @!%p1 bra M; L: {TEST} @!%p1 bra L;")), [0, 2]);
    }

    #[test]
    fn a_loop_that_does_more_is_no_wait() {
        let nothing: [usize; 0] = [];
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra L;")), nothing, "it goes round while the phase is over");
        assert_eq!(awaits(&format!("L: {TEST} @%p1 bra L; bra L;")), nothing, "it goes round in any case");
        assert_eq!(awaits(&format!("L: {TEST} @%p2 bra L;")), nothing, "it does not look at the result");
        assert_eq!(awaits(&format!("L: {TEST} add.s32 %r3, %r3, 1; @!%p1 bra L;")), nothing, "it counts");
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
        assert_eq!(awaits(&format!("L: {TEST} @!%p1 bra M; bra D; M: bra L; D:")), nothing, "a branch within it");
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
        assert_eq!(
            awaits(&format!("L: {{ .reg .pred %q; {TEST} }} {{ .reg .pred %q; mov.pred %q, %p1; }} @!%p1 bra L;")),
            nothing,
            "two of a name"
        );
        assert_eq!(awaits(&format!("L: {TEST} {{ @!%p1 bra L; }}")), nothing, "in a scope of its own");
    }
}
