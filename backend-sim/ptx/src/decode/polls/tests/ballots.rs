//! Ballots that stand for votes.

use super::polls;

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
