//! Rounds that branch around a comparison, or depend on the rounds before.

use super::{around, polls};

const NOTHING: [&str; 0] = [];

/// `(a == 0 || b == 0) | c == 0`, with a branch around the test of `b`.
#[test]
fn a_branch_may_lead_around_a_comparison() {
    let around_one = |skipped: &str, behind: &str| {
        polls(&format!(
            "L: ld.volatile.v2.u32 {{%r1, %r2}}, [%rd1]; setp.eq.u32 %p1, %r1, 0; mov.pred %p6, -1; mov.pred %p5, %p6; @%p1 bra M; \
             {skipped} M: ld.volatile.u32 %r3, [%rd2]; setp.eq.u32 %p3, %r3, 0; or.pred %p4, %p3, %p5; @%p4 bra L; {behind}"
        ))
    };
    let waits = ["0: Ne U32 0, used", "0[1]: Ne U32 0, used", "6: Ne U32 0, used"];
    let found = around_one("setp.eq.u32 %p5, %r2, 0;", "add.s32 %r4, %r1, %r2; add.s32 %r5, %r4, %r3;");
    assert_eq!(found.iter().map(|one| one.split(", besides").next().unwrap()).collect::<Vec<_>>(), waits);
    let found = around_one("setp.eq.u32 %p5, %r2, 0; add.s32 %r6, %r6, 1;", "mov.u32 %r5, %r6;");
    assert_eq!(
        found.len(),
        1,
        "what is counted only behind a look that is not in vain is none of the others' rounds: {found:?}"
    );
}

/// Rounds are none in vain if the last one goes on otherwise behind them.
#[test]
fn what_a_round_does_must_not_depend_on_the_rounds_before() {
    let third = |way: &str| around(&format!("add.s32 %r5, %r5, 1; setp.ne.s32 %p2, %r1, 1; setp.{way} %p3, %r5, 3;"));
    let not_third = |way: &str| third(&format!("{way}.s32"));
    assert_eq!(not_third("ne"), NOTHING, "another branch decides");
    let with = |rest: &str| {
        polls(&format!(
            "L: ld.acquire.sys.global.u32 %r1, [%rd1]; add.s32 %r5, %r5, 1; setp.ne.s32 %p2, %r1, 1; setp.ne.s32 %p3, %r5, 3; {rest}"
        ))
    };
    assert_eq!(with("or.pred %p1, %p2, %p3; @%p1 bra L;"), NOTHING, "it ends in its third round, or never");
    let traps =
        "not.pred %p4, %p2; and.pred %p5, %p4, %p3; @%p5 bra E; @%p2 bra L; bra D; E: st.global.u32 [%rd2], %r1; D:";
    assert_eq!(with(traps), NOTHING, "it stores, unless it was the third");
    assert_eq!(with("@%p2 bra L;"), ["0: Eq S32 1"], "nobody looks at the counter");
    let always = "L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 1; mov.pred %p2, -1; @%p2 bra M; bra N; \
                  M: st.global.u32 [%rd2], %r2; N: @%p1 bra L;";
    assert_eq!(polls(always), NOTHING, "-1 is true");
    let backs_off = "add.s32 %r5, %r5, 1; setp.lt.s32 %p3, %r5, 16; @%p3 bra L; nanosleep.u32 20; bra L; D:";
    let two = format!(
        "L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 1; @%p1 bra B; \
         ld.acquire.sys.global.u32 %r2, [%rd2]; setp.eq.s32 %p2, %r2, 1; @%p2 bra D; B: {backs_off}"
    );
    assert_eq!(polls(&two).len(), 2, "how long it sleeps does not matter");
    let vote = |counts: &str| {
        polls(&format!(
            "L: ld.acquire.sys.global.u32 %r1, [%rd1]; add.s32 %r5, %r5, 1; setp.eq.s32 %p1, %r1, 1; {counts} \
             vote.sync.all.pred %p2, %p1, -1; @!%p2 bra L;"
        ))
    };
    assert_eq!(vote(""), ["0: Eq S32 1"]);
    assert_eq!(
        vote("setp.eq.s32 %p3, %r5, 3; and.pred %p1, %p1, %p3;"),
        NOTHING,
        "it votes for an end in one round only"
    );
}
