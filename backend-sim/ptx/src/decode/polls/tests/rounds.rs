//! Rounds that compare numbers with a point, compare twice, branch around a comparison, or depend on the rounds before.

use super::{around, polls};

const NOTHING: [&str; 0] = [];

#[test]
fn an_equality_of_numbers_with_a_point_is_one_of_bits() {
    assert_eq!(around("setp.eq.f32 %p1, %r1, 0fC640E400;"), ["0: Ne B32 3326141440"]);
    assert_eq!(around("setp.neu.f32 %p1, %r1, 0f3F800000;"), ["0: Eq B32 1065353216"]);
    assert_eq!(around("setp.neu.f32 %p1, %r1, 0f7F800000;"), ["0: Eq B32 2139095040"], "the infinite one");
    let zero = ["0: Ne B32 0 of >> 0 & 0x7fffffff"];
    assert_eq!(around("setp.eq.f32 %p1, %r1, 0f00000000;"), zero);
    assert_eq!(around("setp.eq.f32 %p1, %r1, 0f80000000;"), zero, "a zero of either sign equals one of the other");
    let flushed = ["0: Ne B32 0 of >> 0 & 0x7f800000"];
    assert_eq!(around("setp.eq.ftz.f32 %p1, %r1, 0f00000000;"), flushed, "and so do the smallest numbers");
    assert_eq!(around("setp.eq.ftz.f32 %p1, %r1, 0f00000001;"), flushed, "of which this is one");
    let double = "L: ld.volatile.global.f64 %rd2, [%rd1]; setp.eq.f64 %p1, %rd2, 0d8000000000000000; @%p1 bra L;";
    assert_eq!(polls(double), ["0: Ne B64 0 of >> 0 & 0x7fffffffffffffff"]);
    assert_eq!(around("setp.eq.f32 %p1, %r1, 0f7FC00000;"), NOTHING, "nothing equals what is no number");
    assert_eq!(around("setp.ne.f32 %p1, %r1, 0f3F800000;"), NOTHING, "false of what is no number, as eq is");
    assert_eq!(around("setp.lt.f32 %p1, %r1, 0f3F800000;"), NOTHING);
    assert_eq!(around("setp.eq.f32 %p1, %r1, %r2;"), NOTHING, "nobody knows whether that is zero");
    assert_eq!(around("and.b32 %r2, %r1, 255; setp.eq.f32 %p1, %r2, 0f00000000;"), NOTHING, "of some bits");
}

/// As compilers compare numbers of 16 bits.
#[test]
fn a_number_may_be_widened_before_it_is_compared() {
    let widened = |ty: &str, ends: &str| {
        polls(&format!(
            "L: ld.volatile.global.u16 %r1, [%rd1]; cvt.f32.{ty} %r2, %r1; {ends} @%p1 bra L; mov.b32 %r3, %r2;"
        ))
    };
    assert_eq!(widened("f16", "setp.neu.f32 %p1, %r2, 0fC2000000;"), ["0: Eq B16 53248, used"], "-32");
    assert_eq!(widened("bf16", "setp.eq.f32 %p1, %r2, 0fC2000000;"), ["0: Ne B16 49664, used"]);
    assert_eq!(widened("f16", "setp.eq.f32 %p1, %r2, 0f3F800001;"), NOTHING, "no number of 16 bits");
    assert_eq!(widened("f16", "setp.eq.f32 %p1, %r2, 0f7FC00000;"), NOTHING, "what is no number");
    assert_eq!(widened("f16", "setp.eq.f32 %p1, %r2, 0f7F800000;"), ["0: Ne B16 31744, used"], "the infinite one");
    assert_eq!(widened("f16", "setp.eq.f32 %p1, %r2, 0f47800000;"), NOTHING, "it would be infinite with 16 bits");
    let [zero, flushed] = ["setp.eq.f32 %p1, %r2, 0f00000000;", "setp.eq.ftz.f32 %p1, %r2, 0f00000000;"];
    assert_eq!(widened("f16", zero), ["0: Ne B16 0 of >> 0 & 0x7fff, used"]);
    assert_eq!(widened("f16", flushed), widened("f16", zero), "the least ones are none of the least with 32 bits");
    assert_eq!(widened("bf16", flushed), ["0: Ne B16 0 of >> 0 & 0x7f80, used"], "and here they are");
    let both = |sign: &str| {
        let ends = format!("setp.eq.f32 %p2, %r2, 0f00000000; mov.b32 %r4, %r2; {sign} and.pred %p1, %p2, %p3;");
        widened("bf16", &ends)
    };
    assert_eq!(both("setp.lt.s32 %p3, %r4, 0;"), ["0: Ne B16 32768, used"]);
    assert_eq!(both("setp.gt.s32 %p3, %r4, -1;"), ["0: Ne B16 0, used"]);
    assert_eq!(both("setp.lt.s32 %p3, %r4, 1;"), NOTHING, "that is more than its sign");
    let alone = "mov.b32 %r4, %r2; setp.lt.s32 %p1, %r4, 0;";
    assert_eq!(widened("f16", alone), NOTHING, "a conversion takes the sign of what is no number");
    let no_number = "and.b16 %r5, %r1, 31744; setp.eq.s16 %p2, %r5, 31744; mov.b32 %r4, %r2; setp.lt.s32 %p3, %r4, 0; and.pred %p1, %p2, %p3;";
    assert_eq!(widened("f16", no_number), NOTHING, "it may be none");
    assert_eq!(widened("f16", "add.f32 %r4, %r2, 0f3F800000; setp.eq.f32 %p1, %r4, 0f00000000;"), NOTHING);
    assert_eq!(widened("f16", "shr.u32 %r4, %r2, 16; setp.eq.s32 %p1, %r4, 7;"), NOTHING, "bits of another form");
}

/// As in a queue's poll: `while (taken == last) { last = load(ready); if (taken < last) break; sleep(); }`.
#[test]
fn a_word_may_be_compared_twice_with_a_number() {
    let queue = |first: &str, second: &str, behind: &str| {
        polls(&format!(
            "L: ld.acquire.sys.global.u32 %r1, [%rd1]; {first} @%p2 bra D; nanosleep.u32 20; {second} @%p1 bra L; D: {behind}"
        ))
    };
    let [less, equal] = ["setp.lt.u32 %p2, %r5, %r1;", "setp.eq.s32 %p1, %r5, %r1;"];
    assert_eq!(queue(less, equal, ""), ["0: Ne B32 %r5"]);
    assert_eq!(queue(less, equal, "mov.u32 %r2, %r1;"), ["0: Ne B32 %r5, used"]);
    assert_eq!(queue("setp.ne.s32 %p2, %r1, %r5;", "setp.ge.u32 %p1, %r1, %r5;", ""), ["0: Ne B32 %r5"]);
    assert_eq!(queue("setp.lt.u32 %p2, %r6, %r1;", equal, ""), NOTHING, "with different numbers");
    assert_eq!(queue("setp.le.u32 %p2, %r5, %r1;", equal, ""), NOTHING, "what is equal leaves the loop");
    let stores = "setp.eq.u32 %p4, %r1, 7; @%p4 bra E;";
    assert_eq!(queue(&format!("{stores} {less}"), equal, "ret; E: st.global.u32 [%rd3], %r2;"), NOTHING, "it may be 7");
    assert_eq!(queue(less, "setp.lt.u32 %p1, %r1, 7; mov.u32 %r5, %r1;", ""), NOTHING, "the number changes");
    let counts = "add.s32 %r6, %r6, 1; setp.eq.s32 %p1, %r5, %r1;";
    assert_eq!(queue(less, counts, ""), ["0: Ne B32 %r5"], "nobody looks at what it counts");
    assert_eq!(queue(less, counts, "mov.u32 %r7, %r6;"), NOTHING, "it tells how often it has looked");
    let late = "mov.u32 %r7, %r1; setp.eq.s32 %p1, %r5, %r1;";
    assert_eq!(queue(less, late, "mov.u32 %r8, %r7;"), NOTHING, "who leaves before it still has an older value there");
}

/// `x == 0.0f && signbit(x)`.
#[test]
fn a_sentinel_may_be_found_by_its_bits_in_two_steps() {
    let both = |zero: &str, sign: &str, how: &str| around(&format!("{zero} {sign} {how}.pred %p1, %p2, %p3;"));
    let [zero, negative] = ["setp.eq.f32 %p2, %r1, 0f00000000;", "setp.lt.s32 %p3, %r1, 0;"];
    assert_eq!(both(zero, negative, "and"), ["0: Ne B32 2147483648"]);
    assert_eq!(both(zero, "setp.gt.s32 %p3, %r1, -1;", "and"), ["0: Ne B32 0"]);
    let none = "0: Ne B32 0 of >> 0 & 0x7fffffff, used";
    assert_eq!(both(zero, negative, "or"), [none], "one of them is enough to go on");
    assert_eq!(both("setp.neu.f32 %p2, %r1, 0f00000000;", negative, "and"), NOTHING, "a negative number ends nothing");
    let other = "ld.volatile.global.u32 %r2, [%rd2]; setp.lt.s32 %p3, %r2, 0;";
    let ends = ["0: Ne B32 0 of >> 0 & 0x7fffffff, besides 2 at %rd2+0 unless Ge S32 0"];
    assert_eq!(both(zero, other, "and"), ends, "the sign of another word");
    let bits = "and.b32 %r2, %r1, 240; and.b32 %r3, %r1, 31; setp.eq.s32 %p2, %r2, 16;";
    assert_eq!(both(bits, "setp.eq.s32 %p3, %r3, 17;", "and"), ["0: Ne B32 17 of >> 0 & 0xff"]);
    assert_eq!(both(bits, "setp.eq.s32 %p3, %r3, 1;", "and"), NOTHING, "it cannot be both");
}

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

#[test]
fn who_gives_up_may_look_again_to_say_what_it_has_found() {
    let until = |fails: &str| {
        polls(&format!(
            "mov.u64 %rd3, %clock64; L: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, %r2; @%p1 bra D; \
             mov.u64 %rd4, %clock64; sub.s64 %rd5, %rd4, %rd3; setp.lt.s64 %p2, %rd5, 1000; @%p2 bra L; {fails} D:"
        ))
    };
    let says = "ld.acquire.sys.global.u32 %r3, [%rd1]; st.local.u32 [%rd6], %r3;";
    assert_eq!(until(&format!("{says} trap;")), ["1: Eq S32 %r2"]);
    assert_eq!(until(&format!("{says} bra.uni L;")), NOTHING, "it tells that each time");
}

/// `if (++looks == 10000) { looks = 0; if (load(stop)) return; }`, with a branch around the look besides.
#[test]
fn a_loop_may_be_told_to_give_up_now_and_then() {
    let told = |limit: &str, behind: &str| {
        polls(&format!(
            "L: ld.volatile.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 1; @%p1 bra D; add.s32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, {limit}; \
             mov.u32 %r6, 0; @%p3 bra M; ld.volatile.u32 %r2, [%rd2]; setp.ne.s32 %p2, %r2, 0; mov.u32 %r5, 0; selp.u32 %r6, 1, 0, %p2; \
             M: setp.eq.s32 %p4, %r6, 0; {behind}"
        ))
    };
    let waits = ["0: Eq S32 1, besides 7 at %rd2+0 unless Ne S32 0"];
    let ends = "@%p4 bra L; st.global.u32 [%rd3], %r2; D:";
    assert_eq!(told("10000", ends), waits);
    assert_eq!(told("7", ends), waits, "how often it looks does not matter");
    assert_eq!(told("%r7", ends), waits);
    let counts = "@%p4 bra L; st.global.u32 [%rd3], %r2; D: mov.u32 %r7, %r5;";
    assert_eq!(told("10000", counts), NOTHING, "somebody wants to know how often it has looked");
    assert_eq!(
        told("10000", "@!%p4 bra L; st.global.u32 [%rd3], %r2; D:"),
        NOTHING,
        "it gives up where nobody tells it to"
    );
    let stores = "@%p4 bra L; ret; D: st.global.u32 [%rd3], %r6;";
    assert_eq!(told("10000", stores), NOTHING, "who has gone round has written it, and others have not");
    let with = |rest: &str| {
        let first = "L: ld.volatile.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 1; @%p1 bra D; setp.lt.u32 %p3, %r5, %r7;";
        polls(&format!("{first} {rest} @%p4 bra E; bra.uni L; E: st.global.u32 [%rd3], %r2; D:"))
    };
    let look = "ld.volatile.u32 %r2, [%rd2];";
    assert_eq!(
        with(&format!("@%p3 bra L; {look} setp.ne.s32 %p4, %r2, 0;"))[0],
        waits[0].replace("besides 7", "besides 5")
    );
    let sometimes = format!("@%p3 bra M; {look} M: setp.ne.s32 %p4, %r2, 0;");
    assert_eq!(with(&sometimes), NOTHING, "it may compare what it has loaded in a round before");
    let turned = "xor.pred %p4, %p2, %p5;";
    let either = format!("mov.pred %p5, -1; @%p3 bra M; mov.pred %p5, 0; M: {look} setp.ne.s32 %p2, %r2, 0; {turned}");
    assert_eq!(with(&either), NOTHING, "it is told by one number in some rounds, and by another one in others");
}

/// Only what fails may depend on how many rounds there were.
#[test]
fn who_has_found_it_must_not_ask_how_often_it_has_looked() {
    let many = |then: &str| {
        polls(&format!(
            "L: ld.volatile.u32 %r1, [%rd1]; add.s32 %r5, %r5, 1; setp.ge.s32 %p3, %r5, 5000; setp.ne.s32 %p1, %r1, 1; @%p3 bra X; \
             M: @%p1 bra L; ret; X: {then} E: st.global.u32 [%rd3], 2;"
        ))
    };
    assert_eq!(many("trap;"), ["0: Eq S32 1"]);
    let asks = "mov.u32 %r5, 0; ld.volatile.u32 %r2, [%rd2]; setp.ne.s32 %p2, %r2, 0; @%p2 bra E; bra M;";
    assert_eq!(many(asks), NOTHING, "who has found it may be told to give up nevertheless");
}
