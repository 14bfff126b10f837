//! Loops that compare and swap, and compare what they have found with a register of their own.

use super::polls;

const NOTHING: [&str; 0] = [];
const SWAPS: &str = "L: add.s32 %r3, %r4, -1; atom.cas.b32 %r1, [%rd1], %r3, 0; setp.ne.s32 %p1, %r1, %r2; @%p1 bra L;";

#[test]
fn what_is_swapped_may_be_computed_again() {
    assert_eq!(polls(&format!("add.s32 %r2, %r4, -1; {SWAPS}")), ["2: Eq S32 %r2"]);
    let copied = "mov.u32 %r2, %tid.x; L: mov.u32 %r3, %r2; atom.cas.b32 %r1, [%rd1], %r3, 0; \
                  setp.eq.s32 %p1, %r1, %r2; @%p1 bra M; bra L; M:";
    assert_eq!(polls(copied), ["2: Eq S32 %r2"]);
    let leaves = "add.s32 %r2, %r4, 1; L: add.s32 %r3, %r4, 1; atom.cas.b32 %r1, [%rd1], %r3, %r2; \
                  setp.lt.s32 %p1, %r1, %r5; @%p1 bra L;";
    assert_eq!(polls(leaves), ["2: Ge S32 %r5"], "it changes nothing");
    let rounds = format!("O: add.s32 %r2, %r4, -1; {SWAPS} add.s32 %r4, %r4, 1; @%p2 bra O;");
    assert_eq!(polls(&rounds), ["2: Eq S32 %r2"], "each round of another loop waits for another number");
}

#[test]
fn what_is_swapped_must_be_what_is_looked_for() {
    assert_eq!(polls(&format!("add.s32 %r2, %r4, 1; {SWAPS}")), NOTHING, "another number");
    assert_eq!(polls(&format!("add.s32 %r2, %r5, -1; {SWAPS}")), NOTHING, "of another register");
    let later = format!("add.s32 %r2, %r4, -1; add.s32 %r4, %r4, 1; {SWAPS}");
    assert_eq!(polls(&later), NOTHING, "the register has changed between");
    let rounds = format!("add.s32 %r2, %r4, -1; O: {SWAPS} add.s32 %r4, %r4, 1; @%p2 bra O;");
    assert_eq!(polls(&rounds), NOTHING, "it changes in another loop");
    let twice = format!("add.s32 %r2, %r4, -1; @%p2 bra L; mov.u32 %r2, %r5; {SWAPS}");
    assert_eq!(polls(&twice), NOTHING, "there are two ways to compute it");
    let around = format!("@%p2 bra L; add.s32 %r2, %r4, -1; {SWAPS}");
    assert_eq!(polls(&around), NOTHING, "a way leads around it");
    let clock = "mov.u32 %r2, %clock; L: mov.u32 %r3, %clock; atom.cas.b32 %r1, [%rd1], %r3, 0; \
                 setp.ne.s32 %p1, %r1, %r2; @%p1 bra L;";
    assert_eq!(polls(clock), NOTHING, "a clock goes on");
    let between = "L: mov.u32 %r3, %r2; atom.cas.b32 %r1, [%rd1], %r3, 0; add.s32 %r2, %r2, 1; \
                   setp.ne.s32 %p1, %r1, %r2; @%p1 bra L;";
    assert_eq!(polls(between), NOTHING, "it changes before it is compared");
}

#[test]
fn a_look_before_the_loop_may_swap_by_other_registers() {
    let peeled = "mov.u32 %r3, 7; atom.cas.b32 %r1, [%rd1], %r3, %r3; setp.eq.s32 %p1, %r1, 7; @%p1 bra D; L: mov.u32 %r4, 7; \
                  atom.cas.b32 %r2, [%rd1], %r4, %r4; setp.ne.s32 %p2, %r2, 7; @%p2 bra L; D:";
    assert_eq!(polls(peeled), ["1: Eq S32 7", "5: Eq S32 7"]);
    assert_eq!(polls(&peeled.replace("%r3, 7", "%r3, 8")), ["5: Eq S32 7"], "the first look is for something else");
}
