//! Ballots that stand for votes.

use super::{polls, polls_of};

/// `while (ballot(mask, load(flag) == 1) != mask);`
#[test]
fn a_ballot_may_be_about_going_on() {
    let votes = |ballot: &str, rest: &str| {
        polls(&format!(
            "L: setp.gt.s32 %p3, %r9, 3; mov.pred %p1, -1; @%p3 bra M; ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 1; M: {ballot}; {rest}"
        ))
    };
    let (waits, nothing): (_, [&str; 0]) = (["3: Eq S32 1"], []);
    let ballot = "vote.sync.ballot.b32 %r2, %p1, -1";
    assert_eq!(votes(ballot, "setp.ne.s32 %p2, %r2, -1; @%p2 bra L;"), waits);
    assert_eq!(votes(ballot, "setp.eq.b32 %p2, %r2, 4294967295; @!%p2 bra L;"), waits);
    let some = "vote.sync.ballot.b32 %r2, %p1, 15";
    assert_eq!(votes(some, "setp.ne.s32 %p2, %r2, 15; @%p2 bra L;"), waits);
    assert_eq!(votes(some, "setp.ne.s32 %p2, %r2, 7; @%p2 bra L;"), nothing, "of other lanes");
    let missing = "not.pred %p1, %p1; vote.sync.ballot.b32 %r2, %p1, -1";
    assert_eq!(votes(missing, "setp.ne.s32 %p2, %r2, 0; @%p2 bra L;"), waits, "somebody misses it");
    assert_eq!(votes(missing, "setp.eq.s32 %p2, %r2, 0; @!%p2 bra L;"), waits);
    assert_eq!(votes(missing, "setp.eq.s32 %p2, %r2, 0; @%p2 bra L;"), nothing, "it goes on until somebody misses it");
    assert_eq!(votes(ballot, "setp.ne.s32 %p2, %r2, 0; @%p2 bra L;"), ["3: Ne S32 1"], "while somebody sees it");
    assert_eq!(votes(ballot, "setp.eq.s32 %p2, %r2, 0; @%p2 bra L;"), nothing, "one of them is enough");
    assert_eq!(votes(ballot, "setp.gt.u32 %p2, %r2, 7; @!%p2 bra L;"), nothing, "another comparison");
    assert_eq!(
        votes(ballot, "setp.ne.s32 %p2, %r2, -1; @%p2 bra L; mov.u32 %r3, %r2;"),
        nothing,
        "it is looked at behind"
    );
    assert_eq!(
        votes(ballot, "mov.pred %p4, %p2; setp.ne.s32 %p2, %r2, -1; @%p2 bra L;"),
        nothing,
        "the last result is"
    );
    let by_register = "mov.u32 %r4, -1; vote.sync.ballot.b32 %r2, %p1, %r4";
    assert_eq!(votes(by_register, "setp.ne.s32 %p2, %r2, -1; @%p2 bra L;"), waits);
    assert_eq!(votes(by_register, "setp.ne.s32 %p2, %r2, -1; @%p2 bra L; mov.u32 %r4, 3;"), nothing, "some mask");
    let other = "setp.ne.s32 %p2, %r2, -1; @%p2 bra L; vote.sync.ballot.b32 %r5, %p4, -1;";
    assert_eq!(votes(ballot, other), nothing, "others may vote elsewhere");
    let all = "setp.ne.s32 %p2, %r2, -1; @%p2 bra L; vote.sync.all.pred %p5, %p4, -1;";
    assert_eq!(votes(ballot, all), waits, "which is no ballot");
}

/// The loops of all functions of a module, and the votes of those that run in one kernel.
#[test]
fn threads_may_vote_in_functions() {
    const VOTES: &str = "L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 1; vote.sync.all.pred %p2, %p1, -1; @!%p2 bra L;";
    const KERNEL: &str = ".visible .entry k";
    let (waits, both, nothing): (_, _, [&str; 0]) = (["0: Eq S32 1"], ["0: Eq S32 1", "1: Eq S32 1"], []);
    let with = |votes: &str, kernel: &str| polls_of(&[(".func f", votes), (KERNEL, kernel)]);
    let other = "vote.sync.all.pred %p2, %p1, -1;";
    assert_eq!(with(VOTES, "call f;"), waits);
    assert_eq!(with(VOTES, &format!("call f; {VOTES}")), both, "threads may vote in the one or in the other");
    assert_eq!(with(VOTES, &format!("call f; {other}")), nothing, "others may vote elsewhere");
    assert_eq!(with(VOTES, "call f; vote.sync.all.pred %p2, %p1, 3;"), waits, "others among themselves");
    assert_eq!(with(VOTES, "mov.u32 %r2, 3; call f; vote.sync.all.pred %p2, %p1, %r2;"), waits, "by a register");
    assert_eq!(with(VOTES, "call f; vote.sync.all.pred %p2, %p1, %r2;"), nothing, "nobody knows with whom");
    assert_eq!(with("add.s32 %r1, %r1, 1;", &format!("call f; {VOTES}")), both[1..], "it calls one that does not vote");
    assert_eq!(with(other, &format!("call f; {VOTES}")), nothing, "it calls one that does");
    assert_eq!(with(other, VOTES), waits, "nobody calls it");
    let stores = VOTES.replace("vote", "st.global.u32 [%rd3], %r2; vote");
    assert_eq!(with(VOTES, &format!("call f; {stores}")), nothing, "one of the loops does more");
    let deep =
        |votes: &str| polls_of(&[(".func g", votes), (".func f", "call g;"), (KERNEL, &format!("call f; {VOTES}"))]);
    assert_eq!(deep(VOTES), both);
    assert_eq!(deep(other), nothing, "it is called in the end");
    let two = |second: &str| polls_of(&[(".func f", VOTES), (KERNEL, "call f;"), (".visible .entry k2", second)]);
    assert_eq!(two(other), waits, "another kernel does not run in this block");
    assert_eq!(two(&format!("call f; {other}")), nothing, "this one runs the function, too");
    assert_eq!(with(VOTES, "call f; call h;"), nothing, "nobody knows what that does");
    assert_eq!(with(VOTES, "call f; call nvshmem_quiet;"), waits);
}
