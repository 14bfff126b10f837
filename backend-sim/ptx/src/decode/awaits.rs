//! Tests of mbarriers that are waits: a test that fails only leads to the same test again, and leaves nothing behind.
//!
//! Examples are `while (!try_wait(barrier, parity));` and the wait of a `cuda::barrier`, which tests, counts, looks at a clock, sleeps,
//! and tests again. As in [`polls`](super::polls), whoever explores schedules need not try each test in vain: the thread goes on when the phase is over.
//!
//! What follows a test is walked through for both of its [results](super::rounds). Where it fails, all ways must lead to tests of the same phase of the same
//! mbarrier. Where it succeeds, all these tests must lead to the same place.

use std::collections::BTreeSet;

use super::again::is_strong_load;
use super::rounds::{Step, Walk, lead_to_one};
use super::text::{Known, Name, Text, target};
use super::unused::{self, Times};
use crate::syntax::{Instruction, Operand};

/// The tests that are waits, by the numbers of their instructions in the function.
pub(super) fn of(text: &Text<'_>) -> BTreeSet<usize> {
    let tests = text.body.iter().enumerate().filter(|(_, (_, instruction))| is_test(instruction));
    tests.map(|(at, _)| at).filter(|&at| waits(text, at).is_some()).map(|at| text.parts[at].0).collect()
}

/// Whether an instruction tests an mbarrier.
fn is_test(instruction: &Instruction<'_>) -> bool {
    let is_test = |modifier: &&str| matches!(*modifier, "test_wait" | "try_wait");
    instruction.opcode == "mbarrier" && instruction.modifiers.iter().any(is_test)
}

/// If a test is a wait: where it leads when it succeeds.
fn waits(text: &Text<'_>, at: usize) -> Option<usize> {
    let phase = phase(text, at)?;
    let mut walk = Walk::new(&|_, instruction| is_test(instruction), None);
    let tests = tests_behind(text, at, &phase, &mut walk)?;
    if walk.passed.iter().any(|&at| is_strong_load(text.body[at].1)) {
        return None; // a thread that waits would not make this load
    }
    let ends = tests.iter().map(|&test| text.leads_to(test + 1, known_behind(text, test, 1), &walk));
    let (end, known) = lead_to_one(ends)?;
    let changes = |name| phase.contains(name) || text.is_read_beyond(name, &walk.passed) && !known.contains_key(name);
    (!walk.is_given_up() && !tests.contains(&end) && !walk.written.iter().any(changes)).then_some(end)
}

/// The registers that say which phase of which mbarrier a test is about, in their order; `None` if it is something else than a test, or one that may
/// not be made.
fn phase<'a>(text: &Text<'a>, at: usize) -> Option<Vec<Name<'a>>> {
    let (scope, instruction) = text.body[at];
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
        names.extend(times.keys().map(|name| text.name(scope, name)));
    }
    Some(names)
}

/// Whether two tests ask the same.
fn is_alike(text: &Text<'_>, one: usize, other: usize) -> bool {
    let [one, other] = [one, other].map(|at| text.body[at].1);
    let same = |number: usize| one.operands.get(number) == other.operands.get(number);
    one.modifiers.contains(&"parity") == other.modifiers.contains(&"parity") && same(1) && same(2)
}

/// What is known behind a test with this result.
fn known_behind<'a>(text: &Text<'a>, test: usize, result: u64) -> Known<'a> {
    let (scope, instruction) = text.body[test];
    target(instruction).map(|name| (text.name(scope, name), result)).into_iter().collect()
}

/// Walks all ways from a test that fails to the next tests, and from those. `None`: one leads somewhere else, or to no test at all.
fn tests_behind<'a>(
    text: &Text<'a>,
    first: usize,
    asked: &[Name<'a>],
    walk: &mut Walk<'a, '_>,
) -> Option<BTreeSet<usize>> {
    let (mut tests, mut todo) = (BTreeSet::new(), vec![first]);
    while let Some(test) = todo.pop() {
        if !tests.insert(test) {
            continue;
        }
        if phase(text, test)? != asked || !is_alike(text, first, test) {
            return None;
        }
        walk.passed.insert(test);
        let known = known_behind(text, test, 0);
        walk.written.extend(known.keys());
        walk.again(None);
        text.walk(Step::new(test + 1, known), walk, &mut todo)?;
    }
    Some(tests)
}

#[cfg(test)]
mod tests {
    use super::super::simpler::Simpler;
    use super::*;

    fn awaits(body: &str) -> Vec<usize> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n\
             .reg .pred %p<9>;\n{body}\nret;\n}}\n"
        );
        let text = crate::parser::parse(&text).unwrap();
        let (function, simpler) = (&text.functions[0], Simpler::of(&text.functions[0], &BTreeSet::new()));
        of(&Text::of(function, &simpler)).into_iter().collect()
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
        assert_eq!(awaits(&text.replace("nanosleep.u32 %r4", "trap")), [1, 17], "no time passes for who waits");
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
