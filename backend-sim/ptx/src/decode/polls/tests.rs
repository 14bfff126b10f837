use super::super::simpler::Simpler;
use super::*;
use crate::world::{Then, View};

/// The loops of a kernel with this body: the number of the load, what ends the loop, whether the word is used.
fn polls(body: &str) -> Vec<String> {
    polls_of(&[(".visible .entry k", body)])
}

/// The same, of functions with these beginnings and bodies.
fn polls_of(functions: &[(&str, &str)]) -> Vec<String> {
    let function = |(begin, body): &(&str, &str)| {
        format!("{begin}()\n{{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n{body}\nret;\n}}\n")
    };
    let functions: String = functions.iter().map(function).collect();
    let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n{functions}");
    let text = crate::parser::parse(&text).unwrap();
    let part_in_words = |(number, element): Part| match element {
        0 => number.to_string(),
        _ => format!("{number}[{element}]"),
    };
    let in_words = |(part, Poll { until, besides, .. }): (Part, Poll<'_>)| {
        let besides = besides.into_iter().map(|Beside { load, base, offset, otherwise }| {
            let unless =
                otherwise.map_or_else(String::new, |otherwise| format!(" unless {}", until_in_words(&otherwise)));
            format!(", besides {} at {}+{offset}{unless}", part_in_words(load), in_words_of(&base))
        });
        [part_in_words(part), ": ".into(), until_in_words(&until)].into_iter().chain(besides).collect()
    };
    let bodies: Vec<_> = text.functions.iter().filter(|function| function.body.is_some()).collect();
    let defined = bodies.iter().map(|function| function.name).collect();
    let simpler: Vec<Simpler<'_>> = bodies.iter().map(|function| Simpler::of(function, &defined)).collect();
    let texts: Vec<Text<'_>> =
        bodies.iter().zip(&simpler).map(|(function, simpler)| Text::of(function, simpler)).collect();
    of_all(&texts).into_iter().flatten().map(in_words).collect()
}

fn until_in_words(until: &Until<Operand<'_>>) -> String {
    let against = in_words_of(&until.against);
    let used = if until.is_used { ", used" } else { "" };
    let again = if until.reloads { ", again" } else { "" };
    let View { shift, mask, then } = &until.view;
    let is_all = *mask == until.ty.mask() && *shift == 0;
    let part = if is_all { String::new() } else { format!(" of >> {shift} & {mask:#x}") };
    let then = then.clone().map(|then| match then {
        Then::Nothing => String::new(),
        Then::Plus(number) => format!(" of + {}", in_words_of(&number)),
        Then::Minus(number) => format!(" of - {}", in_words_of(&number)),
        Then::From(number) => format!(" from {}", in_words_of(&number)),
        Then::Xor(number) => format!(" of ^ {}", in_words_of(&number)),
        Then::Bytes(order) => format!(" in bytes {}", in_words_of(&order)),
    });
    let then = then.concat();
    format!("{:?} {:?} {against}{part}{then}{used}{again}", until.compare, until.ty)
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
    let follows = "L: mov.u64 %rd1, %rd3; ld.volatile.global.u64 %rd3, [%rd1]; setp.eq.s64 %p1, %rd3, 0; @%p1 bra L;";
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
    let moved =
        "mov.u32 %r2, 1; L: mov.u32 %r3, 0; atom.cas.b32 %r1, [%rd1], %r2, %r3; setp.ne.s32 %p1, %r1, 1; @%p1 bra L;";
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
    assert_eq!(swaps("%r2, %r1", "setp.ne.s32 %p1, %r1, %r2;"), nothing, "each round leaves what the last has found");
    let peeled = "atom.cas.b32 %r1, [%rd1], 0, 1; setp.eq.s32 %p1, %r1, 0; @%p1 bra D; \
                  L: nanosleep.u32 20; atom.cas.b32 %r2, [%rd1], 0, 1; setp.ne.s32 %p2, %r2, 0; @%p2 bra L; D:";
    assert_eq!(polls(peeled), ["0: Eq S32 0", "4: Eq S32 0"]);
    let other = peeled.replacen("0, 1", "0, 2", 1);
    assert_eq!(polls(&other), ["4: Eq S32 0"], "the first look leaves something else");
}

#[test]
fn a_loop_may_exchange_what_it_waits_for() {
    let exchanges =
        |left: &str, rest: &str| polls(&format!("L: atom.exch.b32 %r1, [%rd1], {left}; {rest} @%p1 bra L;"));
    assert_eq!(
        exchanges("1", "setp.ne.s32 %p1, %r1, 0;"),
        ["0: Ne B32 1"],
        "nothing changes while it finds what it leaves"
    );
    assert_eq!(exchanges("1", "setp.eq.s32 %p1, %r1, 1;"), ["0: Ne B32 1"]);
    assert_eq!(exchanges("1", "and.b32 %r2, %r1, 255; setp.ne.s32 %p1, %r2, 0;"), ["0: Ne B32 1"]);
    let moved = "mov.u32 %r3, 1; L: atom.exch.b32 %r1, [%rd1], %r3; setp.ne.s32 %p1, %r1, 0; @%p1 bra L;";
    assert_eq!(polls(moved), ["1: Ne B32 1"]);
    let nothing: [&str; 0] = [];
    assert_eq!(exchanges("0", "setp.ne.s32 %p1, %r1, 0;"), nothing, "the next finds it");
    assert_eq!(exchanges("1", "setp.eq.s32 %p1, %r1, 0;"), nothing, "it goes on where it has taken it");
    assert_eq!(exchanges("%r2", "setp.ne.s32 %p1, %r1, 0;"), nothing, "nobody knows what it leaves");
    assert_eq!(exchanges("%r1", "setp.ne.s32 %p1, %r1, 0;"), nothing, "it turns two values round");
    assert_eq!(exchanges("1", "setp.gt.s32 %p1, %r1, 0;"), nothing, "of other comparisons nobody asks what it leaves");
}

/// `while (load(a) != 1 || load(b) != 1);`
#[test]
fn a_loop_may_look_at_several_words_in_turn() {
    let look = |register: &str, at: &str| format!("ld.acquire.sys.global.u32 {register}, [{at}];");
    let [one, other] = [look("%r1", "%rd1"), look("%r2", "%rd2")];
    let both = |behind: &str| {
        polls(&format!(
            "L: {one} setp.ne.s32 %p1, %r1, 1; @%p1 bra L; {other} setp.ne.s32 %p2, %r2, 1; @%p2 bra L; {behind}"
        ))
    };
    assert_eq!(both(""), ["0: Eq S32 1", "3: Eq S32 1"]);
    assert_eq!(both("mov.u32 %r3, %r2;"), ["0: Eq S32 1", "3: Eq S32 1, used"]);
    let of_its_round = both("mov.u32 %r3, %r1;");
    assert_eq!(of_its_round, ["0: Eq S32 1, used", "3: Eq S32 1"], "it may have looked there in the last round");
    let nothing: [&str; 0] = [];
    let any = format!("L: {one} setp.eq.s32 %p1, %r1, 1; @%p1 bra D; {other} setp.ne.s32 %p2, %r2, 1; @%p2 bra L; D:");
    let [first, second] = ["at %rd1+0 unless Eq S32 1", "at %rd2+0 unless Eq S32 1"];
    assert_eq!(polls(&any), [format!("0: Eq S32 1, besides 3 {second}"), format!("3: Eq S32 1, besides 0 {first}")]);
    let later = format!("L: {one} setp.eq.s32 %p1, %r1, 1; @%p1 bra D; {other} bra L; D:");
    let races = ["0: Eq S32 1, besides 3 at %rd2+0"];
    assert_eq!(polls(&later), races, "what it looks at when it has looked in vain, it may race for");
    let follows = format!("L: {one} cvt.u64.u32 %rd2, %r1; {other} setp.ne.s32 %p2, %r2, 1; @%p2 bra L;");
    assert_eq!(polls(&follows), nothing, "it looks where the first word says");
    let hangs = format!("{other} L: setp.ne.s32 %p2, %r2, 1; @%p2 bra M; bra D; M: bra M; D:");
    assert_eq!(polls(&hangs), nothing, "it does not look again");
    let stays = format!("L: {other} setp.ne.s32 %p2, %r2, 1; @!%p2 bra D; {one} M: bra M; bra L; D:");
    assert_eq!(polls(&stays), nothing, "nor does it here");
}

#[test]
fn a_loop_may_look_at_several_words_at_once() {
    let look = |register: &str, at: &str| format!("ld.volatile.global.u32 {register}, [{at}];");
    let looks = [look("%r1", "%rd1"), look("%r2", "%rd2+8")].concat();
    let both = |ends: &str, behind: &str| polls(&format!("L: {looks} {ends} {behind}"));
    let neither = "setp.ne.s32 %p1, %r1, 1; setp.ne.s32 %p2, %r2, 5; or.pred %p3, %p1, %p2; @%p3 bra L;";
    let waits = ["0: Eq S32 1, besides 1 at %rd2+8", "1: Eq S32 5"];
    assert_eq!(both(neither, ""), waits);
    let all = "setp.eq.s32 %p1, %r1, 1; setp.eq.s32 %p2, %r2, 5; and.pred %p3, %p1, %p2; @!%p3 bra L;";
    assert_eq!(both(all, ""), waits);
    let used = ["0: Eq S32 1, used, besides 1 at %rd2+8", "1: Eq S32 5"];
    assert_eq!(both(neither, "add.s32 %r3, %r1, 2;"), used, "the thread may be slow between the two");
    let nothing: [&str; 0] = [];
    assert_eq!(both("setp.ne.s32 %p1, %r1, %r2; @%p1 bra L;", ""), nothing, "the words are compared with each other");
    let any = "setp.ne.s32 %p1, %r1, 1; setp.ne.s32 %p2, %r2, 5; and.pred %p3, %p1, %p2; @%p3 bra L;";
    let either = ["0: Eq S32 1, besides 1 at %rd2+8 unless Eq S32 5"];
    assert_eq!(both(any, ""), either, "one of them is enough");
    let moves =
        "setp.ne.s32 %p1, %r1, 1; setp.ne.s32 %p2, %r2, 5; or.pred %p3, %p1, %p2; add.s64 %rd2, %rd2, 8; @%p3 bra L;";
    assert_eq!(both(moves, ""), nothing, "it looks elsewhere in each round");
}

#[test]
fn a_loop_may_look_at_elements_of_a_vector() {
    let packet = |load: &str, behind: &str| polls(&format!("L: {load} setp.ne.s32 %p1, %r2, 7; @%p1 bra L; {behind}"));
    let pair = "ld.volatile.global.v2.u32 {%r1, %r2}, [%rd1+8];";
    assert_eq!(packet(pair, "mov.u32 %r3, %r1;"), ["0[1]: Eq S32 7"], "the data is of its round");
    let checks = "setp.ne.s32 %p2, %r1, 5; @%p2 bra X; ret; X: trap;";
    assert_eq!(packet(pair, checks), ["0[1]: Eq S32 7"], "nobody waits for the data");
    let flag_first = "ld.volatile.global.v2.u32 {%r2, %r1}, [%rd1+8];";
    assert_eq!(packet(flag_first, "mov.u32 %r3, %r1;"), ["0: Eq S32 7, besides 0[1] at %rd1+12"]);
    let both = "L: ld.volatile.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]; setp.ne.s32 %p1, %r2, 7; setp.ne.s32 %p2, %r4, 7; \
                or.pred %p3, %p2, %p1; @%p3 bra L; add.s32 %r5, %r1, %r3;";
    let besides = "besides 0[2] at %rd1+8, besides 0[3] at %rd1+12";
    assert_eq!(polls(both), [format!("0[1]: Eq S32 7, {besides}"), "0[3]: Eq S32 7".into()]);
    let nothing: [&str; 0] = [];
    let over_itself = "L: ld.volatile.v2.u64 {%rd1, %rd2}, [%rd1]; setp.ne.s64 %p1, %rd2, 7; @%p1 bra L;";
    assert_eq!(polls(over_itself), nothing, "it follows what it loads");
    let table = "ld.global.v2.u32 {%r5, %r6}, [%rd3];";
    let says = format!("L: {table} ld.volatile.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, %r6; @%p1 bra L;");
    assert_eq!(polls(&says), ["1: Eq S32 %r6, again"], "a vector is loaded plainly");
    let plainly = format!("L: ld.volatile.global.u32 %r1, [%rd1]; {table} setp.ne.s32 %p1, %r1, 1; @%p1 bra L;");
    assert_eq!(polls(&plainly), nothing, "it loads more");
}

/// `while (load(flag) != 1) if (load(stop)) return;`
#[test]
fn a_loop_may_give_up_when_it_is_told_to() {
    let flag = "ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 1;";
    let stop = "ld.volatile.global.u32 %r2, [%rd2]; setp.ne.s32 %p2, %r2, 0;";
    let gives_up = "E: st.global.u32 [%rd3], %r2; D:";
    let behind = format!("L: {flag} @%p1 bra D; {stop} @%p2 bra E; bra L; {gives_up}");
    let [unless_stopped, unless_set] = ["at %rd2+0 unless Ne S32 0", "at %rd1+0 unless Eq S32 1"];
    let waits =
        [format!("0: Eq S32 1, besides 3 {unless_stopped}"), format!("3: Ne S32 0, used, besides 0 {unless_set}")];
    assert_eq!(polls(&behind), waits);
    let before = format!("L: {stop} @%p2 bra E; {flag} @!%p1 bra L; bra D; {gives_up}");
    let waits =
        [format!("0: Ne S32 0, used, besides 3 {unless_set}"), format!("3: Eq S32 1, besides 0 {unless_stopped}")];
    assert_eq!(polls(&before), waits);
    let now_and_then = format!(
        "L: {flag} @%p1 bra D; add.s32 %r5, %r5, 1; setp.ne.s32 %p3, %r5, 10000; @%p3 bra L; mov.u32 %r5, 0; \
         {stop} @%p2 bra E; bra L; {gives_up}"
    );
    assert_eq!(polls(&now_and_then)[0], format!("0: Eq S32 1, besides 7 {unless_stopped}"));
    let old = format!(
        "L: ld.volatile.global.u32 %r2, [%rd2]; {flag} @%p1 bra D; setp.ne.s32 %p2, %r2, 0; @%p2 bra E; bra L; {gives_up}"
    );
    let nothing: [&str; 0] = [];
    let told_first = [format!("0: Ne S32 0, used, besides 1 {unless_set}")];
    assert_eq!(polls(&old), told_first, "beside the flag, the first round is told by what was there before it looked");
    let moves = behind.replace("bra L; E:", "add.s64 %rd2, %rd2, 8; bra L; E:");
    assert_eq!(polls(&moves), nothing, "it is told elsewhere in each round");
}

#[test]
fn a_loop_may_look_by_an_atomic_that_changes_nothing() {
    let looks = |atomic: &str| polls(&format!("L: atom.{atomic}; setp.lt.u32 %p1, %r1, 3; @%p1 bra L;"));
    for changes_nothing in
        ["add.u32 %r1, [%rd1], 0", "or.b32 %r1, [%rd1], 0", "xor.b32 %r1, [%rd1], 0", "cas.b32 %r1, [%rd1], 0, 0"]
    {
        assert_eq!(looks(changes_nothing), ["0: Ge U32 3"], "{changes_nothing}");
    }
    let nothing: [&str; 0] = [];
    for changes in
        ["add.u32 %r1, [%rd1], 1", "add.u32 %r1, [%rd1], %r2", "and.b32 %r1, [%rd1], 0", "cas.b32 %r1, [%rd1], 0, 1"]
    {
        assert_eq!(looks(changes), nothing, "{changes}");
    }
}

/// `while (!all(skips || load(flag) == 1));` and the like.
#[test]
fn threads_may_vote_about_going_on() {
    let votes = |vote: &str, rest: &str| {
        polls(&format!(
            "L: setp.gt.s32 %p3, %r9, 3; mov.pred %p1, -1; @%p3 bra M; ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 1; M: {vote}; {rest}"
        ))
    };
    let all = "vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(all, "@!%p2 bra L;"), ["3: Eq S32 1"]);
    assert_eq!(votes(all, "@%p2 bra D; nanosleep.u32 20; bra.uni L; D:"), ["3: Eq S32 1"]);
    assert_eq!(votes("not.pred %p1, %p1; vote.sync.any.pred %p2, %p1, -1", "@%p2 bra L;"), ["3: Eq S32 1"]);
    assert_eq!(votes("vote.sync.any.pred %p2, !%p1, -1", "@%p2 bra L;"), ["3: Eq S32 1"]);
    assert_eq!(votes("bar.red.and.pred %p2, 0, %p1", "@!%p2 bra L;"), ["3: Eq S32 1"]);
    assert_eq!(votes("barrier.red.or.pred %p2, 1, 64, !%p1", "@%p2 bra L;"), ["3: Eq S32 1"]);
    assert_eq!(votes(all, "@!%p2 bra L; mov.u32 %r2, %r1;"), ["3: Eq S32 1, used"]);
    let late = "mov.u64 %rd2, %clock64; sub.s64 %rd3, %rd2, %rd4; setp.lt.s64 %p4, %rd3, 2000; or.pred %p5, %p3, %p4; @%p5 bra L; trap; D:";
    assert_eq!(votes(all, &format!("@%p2 bra D; {late}")), ["3: Eq S32 1"]);
    let nothing: [&str; 0] = [];
    assert_eq!(votes("vote.sync.any.pred %p2, %p1, -1", "@!%p2 bra L;"), nothing, "another's is enough");
    assert_eq!(votes(all, "@%p2 bra L;"), nothing, "it goes round while all have seen it");
    assert_eq!(votes(all, "add.s32 %r2, %r2, 1; @!%p2 bra L; mov.u32 %r3, %r2;"), nothing, "it counts");
    assert_eq!(votes(all, "mov.u32 %r9, %r8; @!%p2 bra L;"), nothing, "next time it may not look");
    assert_eq!(votes(all, "add.s64 %rd1, %rd1, 4; @!%p2 bra L;"), nothing, "it moves on");
    let counts = "@!%p3 bra N; add.s32 %r1, %r1, 1; N: vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(counts, "@!%p2 bra L; mov.u32 %r3, %r1;"), nothing, "who does not look counts there");
    assert_eq!(votes("@%p4 vote.sync.all.pred %p2, %p1, -1", "@!%p2 bra L;"), nothing, "not all may vote");
    let counts = "@%p1 bra N; add.s32 %r2, %r2, 1; N: vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(counts, "@!%p2 bra L; mov.u32 %r3, %r2;"), nothing, "who looks in vain counts");
    let counts = "@!%p1 bra N; add.s32 %r2, %r2, 1; N: vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(counts, "@!%p2 bra L; mov.u32 %r3, %r2;"), nothing, "who has seen it counts");
    let counts = "@!%p3 bra N; add.s32 %r2, %r2, 1; N: vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(counts, "@!%p2 bra L; mov.u32 %r3, %r2;"), nothing, "who does not look counts");
    let stores = "@!%p3 bra N; st.global.u32 [%rd2], %r2; N: vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(stores, "@!%p2 bra L;"), nothing, "who does not look stores");
    let alone = "@!%p3 bra N; vote.sync.all.pred %p2, %p4, -1; @!%p2 bra L; N: vote.sync.all.pred %p2, %p1, -1";
    assert_eq!(votes(alone, "@!%p2 bra L;"), nothing, "who does not look votes elsewhere");
    let barrier = "bar.red.and.pred %p2, 0, %p1";
    assert_eq!(votes(barrier, "@!%p2 bra L; bar.red.and.pred %p2, 0, %p4;"), nothing, "others may vote elsewhere");
    assert_eq!(votes(barrier, "@!%p2 bra L; bar.red.popc.u32 %r2, 0, %p4;"), nothing, "which is an error");
    assert_eq!(votes(barrier, "@!%p2 bra L; bar.red.and.pred %p2, 1, %p4;"), ["3: Eq S32 1"], "another barrier");
    for vote in [all, barrier] {
        assert_eq!(votes(vote, "@!%p2 bra L; call f;"), nothing, "or there");
        assert_eq!(votes(vote, "@!%p2 bra L; call nvshmem_quiet;"), ["3: Eq S32 1"]);
    }
    assert_eq!(votes(all, "@!%p2 bra L; vote.sync.all.pred %p2, %p4, -1;"), nothing, "others may vote elsewhere");
    assert_eq!(votes(all, "@!%p2 bra L; vote.sync.all.pred %p2, %p4, %r3;"), nothing, "nobody knows with whom");
    assert_eq!(votes(all, "@!%p2 bra L; vote.sync.all.pred %p2, %p4, 3;"), ["3: Eq S32 1"], "others among themselves");
    assert_eq!(votes(all, "@!%p2 bra L; vote.sync.any.pred %p2, %p4, -1;"), ["3: Eq S32 1"], "about something else");
    let again = "N: ld.acquire.sys.global.u32 %r2, [%rd2]; setp.eq.s32 %p1, %r2, 1; vote.sync.all.pred %p2, %p1, -1; @!%p2 bra N;";
    assert_eq!(votes(all, &format!("@!%p2 bra L; {again}")), ["3: Eq S32 1", "7: Eq S32 1"], "two such loops");
    let stores = again.replace("vote", "st.global.u32 [%rd3], %r2; vote");
    assert_eq!(votes(all, &format!("@!%p2 bra L; {stores}")), nothing, "one of them does more");
}

/// The address of a look may be computed again in each round, as long as that gives the same.
#[test]
fn a_loop_may_compute_again_where_it_looks() {
    let around = |before: &str, behind: &str| {
        polls(&format!(
            "L: {before} ld.acquire.sys.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 1; {behind} @%p1 bra L;"
        ))
    };
    assert_eq!(around("add.s64 %rd1, %rd2, 8;", ""), ["1: Eq S32 1"]);
    assert_eq!(around("mul.wide.s32 %rd3, %r2, 4; add.s64 %rd1, %rd2, %rd3;", ""), ["2: Eq S32 1"]);
    assert_eq!(around("ld.local.u64 %rd3, [%rd4+8]; add.s64 %rd1, %rd3, 8;", ""), ["2: Eq S32 1"], "its own memory");
    assert_eq!(around("ld.global.u64 %rd3, [%rd4+8]; add.s64 %rd1, %rd3, 8;", ""), ["2: Eq S32 1, again"]);
    assert_eq!(around("ld.u64 %rd1, [%rd4];", ""), ["1: Eq S32 1, again"]);
    let asks =
        |function: &str| format!("call (%r3), {function}, (); mul.wide.s32 %rd3, %r2, 4; add.s64 %rd1, %rd2, %rd3;");
    assert_eq!(around(&asks("nvshmem_n_pes"), ""), ["3: Eq S32 1"]);
    let nothing: [&str; 0] = [];
    assert_eq!(around(&asks("nvshmem_quiet"), ""), nothing, "a call that does something");
    assert_eq!(around("add.s64 %rd1, %rd1, 8;", ""), nothing, "it moves on");
    assert_eq!(around("add.s64 %rd1, %rd2, 8;", "add.s64 %rd2, %rd2, 8;"), nothing, "it moves on");
    assert_eq!(around("mov.u64 %rd2, %clock64; add.s64 %rd1, %rd4, %rd2;", ""), nothing, "elsewhere each time");
    assert_eq!(around("add.s64 %rd1, %rd4, %clock64;", ""), nothing, "elsewhere each time");
    assert_eq!(around("ld.volatile.global.u64 %rd1, [%rd4];", ""), nothing, "others may turn it");
    assert_eq!(around("", "ld.global.u32 %r2, [%rd4];"), nothing, "what it loads it may not load when it waits");
    assert_eq!(
        around("ld.global.u64 %rd3, [%rd4]; ld.global.u64 %rd1, [%rd3];", "mov.u64 %rd4, %rd3;"),
        nothing,
        "it follows a list"
    );
    let mixed = "add.s64 %rd1, %rd1, %rd3; add.s64 %rd3, %rd3, %rd1;".repeat(100);
    let mixed = format!("mov.u64 %rd1, %rd2; mov.u64 %rd3, %rd2; {mixed}");
    assert_eq!(around(&mixed, ""), nothing, "of too many parts to be looked at");
    let some = format!("mov.u64 %rd1, %rd2; {}", "add.s64 %rd1, %rd1, 8;".repeat(20));
    assert_eq!(around(&some, ""), ["21: Eq S32 1"]);
    let two = "add.s64 %rd1, %rd2, 8; bra M; L: add.s64 %rd1, %rd3, 8; M: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 1; @%p1 bra L;";
    assert_eq!(polls(two), nothing, "first somewhere, then elsewhere");
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
    assert_eq!(around("sub.s32 %r2, %r5, %r1; setp.ge.s32 %p1, %r2, 4;"), ["0: Lt S32 4 from %r5"]);
    // what is free of a queue, from its head
    let free = "sub.s32 %r2, %r5, %r1; sub.s32 %r3, %r6, %r2; setp.lt.s32 %p1, %r3, %r7;";
    assert_eq!(around(free), ["0: Ge S32 %r7 from %r5 from %r6"]);
    let three = "sub.s32 %r2, %r5, %r1; sub.s32 %r3, %r6, %r2; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r7;";
    assert_eq!(around(three), Vec::<String>::new());
    let nothing = "sub.s32 %r2, %r5, %r1; and.b32 %r3, %r2, 7; setp.lt.s32 %p1, %r3, %r7;";
    assert_eq!(around(nothing), Vec::<String>::new());
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
    let low = "cvt.u32.u64 %r1, %rd2; setp.ne.s32 %p1, %r1, 1; @%p1 bra L; mov.b64 {%r3, %r4}, %rd2; mov.u32 %r5, %r4;";
    assert_eq!(polls(&format!("L: ld.acquire.sys.global.u64 %rd2, [%rd1]; {low}")), ["0: Eq S32 1, used"]);
    let nothing: [&str; 0] = [];
    assert_eq!(around("not.b32 %r2, %r1; setp.ne.s32 %p1, %r2, 0;"), nothing, "another number");
    assert_eq!(around("add.s32 %r2, %r1, %r1; setp.ne.s32 %p1, %r2, 0;"), nothing, "twice the number");
    assert_eq!(around("prmt.b32 %r2, %r1, %r3, 0x0145; setp.ne.s32 %p1, %r2, 0;"), nothing, "bytes of something else");
    assert_eq!(around("prmt.b32 %r2, %r1, %r1, %r3; setp.ne.s32 %p1, %r2, 0;"), nothing, "nobody knows which bytes");
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
    assert_eq!(around("setp.lt.f32 %p1, %r1, 0f3F800000;"), nothing, "which of them is larger");
    assert_eq!(around("setp.ne.and.s32 %p1, %r1, 1, %p2;"), nothing, "combined");
    assert_eq!(around("setp.lt.b32 %p1, %r1, 1;"), nothing, "of bits by size");
    assert_eq!(around("setp.ne.s32 %p2, %r1, 1;"), nothing, "for another branch");
    let scoped = |declares: &str| polls(&format!("{FLAG} {{ {declares} setp.ne.s32 %p1, %r1, 1; @%p1 bra L; }}"));
    assert_eq!(scoped(""), ["0: Eq S32 1"]);
    assert_eq!(scoped(".reg .b32 %r1;"), nothing, "of another register of that name");
}

#[test]
fn a_copy_of_an_address_is_the_address() {
    let first = "mov.u64 %rd3, %rd2; ld.acquire.sys.u32 %r1, [%rd3]; setp.eq.s32 %p2, %r1, 1; @%p2 bra D;";
    let round = "mov.u64 %rd4, %rd2; ld.acquire.sys.u32 %r2, [%rd4]; setp.ne.s32 %p1, %r2, 1; @%p1 bra L;";
    let both = polls(&format!("add.s64 %rd2, %rd1, 8; {first} L: {round} D:"));
    assert_eq!(both, ["2: Eq S32 1", "6: Eq S32 1"], "a look before the loop is one of it");
    let of_copy = "mov.u64 %rd3, %rd2; mov.u64 %rd4, %rd3; ld.acquire.sys.u32 %r2, [%rd4];";
    let of_copy = format!("add.s64 %rd2, %rd1, 8; L: {of_copy} setp.ne.s32 %p1, %r2, 1; @%p1 bra L;");
    assert_eq!(polls(&of_copy), ["3: Eq S32 1"]);
    let nothing: [&str; 0] = [];
    let moves_on = |before: &str, after: &str| {
        polls(&format!(
            "{before} L: {after} mov.u64 %rd4, %rd2; ld.acquire.sys.u32 %r2, [%rd4]; setp.ne.s32 %p1, %r2, 1; @%p1 bra L;"
        ))
    };
    assert_eq!(moves_on("add.s64 %rd2, %rd1, 8;", "add.s64 %rd2, %rd2, 8;"), nothing, "it is written twice");
    assert_eq!(moves_on("", "ld.relaxed.sys.u64 %rd2, [%rd1];"), nothing, "it is written in each round");
}

#[test]
fn a_look_that_is_not_in_vain_may_lead_to_another_one() {
    let again = |rest: &str| {
        polls(&format!("{FLAG} setp.ne.s32 %p1, %r1, 1; @%p1 bra L; ld.acquire.sys.global.u32 %r2, [%rd1]; {rest}"))
    };
    assert_eq!(again("setp.ne.s32 %p2, %r2, 1; @%p2 bra L;"), ["0: Eq S32 1", "3: Eq S32 1"]);
    assert_eq!(again("setp.eq.s32 %p2, %r2, 1; @!%p2 bra L; mov.u32 %r3, 1;"), ["0: Eq S32 1", "3: Eq S32 1"]);
    let first = ["0: Eq S32 1"];
    assert_eq!(
        again("setp.ne.s32 %p2, %r2, 2; @%p2 bra L;"),
        first,
        "it looks for something else, which the loop before leads to"
    );
    assert_eq!(
        again("setp.ne.s32 %p2, %r2, 1; @%p2 bra E; ret; E: st.u32 [%rd2], %r3; bra.uni L;"),
        first,
        "in vain, it stores"
    );
    assert_eq!(again("setp.ne.s32 %p2, %r2, 1; bra.uni L;"), first, "it looks again, whatever it finds");
}

#[test]
fn a_number_that_is_greater_than_4_is_at_least_5() {
    let both = |first: &str, round: &str| {
        let first = format!("ld.acquire.sys.u32 %r1, [%rd1]; {first} @%p2 bra D;");
        polls(&format!("{first} L: ld.acquire.sys.u32 %r2, [%rd1]; {round} @%p1 bra L; D:"))
    };
    let ends = ["0: Gt S32 4", "3: Ge S32 5"];
    assert_eq!(both("setp.gt.s32 %p2, %r1, 4;", "setp.lt.s32 %p1, %r2, 5;"), ends);
    let negative = ["0: Lt S32 0", "3: Le S32 18446744073709551615"];
    assert_eq!(both("setp.lt.s32 %p2, %r1, 0;", "setp.gt.s32 %p1, %r2, -1;"), negative);
    let only = ["3: Ge S32 4"];
    assert_eq!(both("setp.gt.s32 %p2, %r1, 4;", "setp.lt.s32 %p1, %r2, 4;"), only, "the loop ends with 4");
    assert_eq!(both("setp.gt.u32 %p2, %r1, 4294967295;", "setp.ne.s32 %p1, %r2, 0;"), ["3: Eq S32 0"], "there is none");
}

/// Each of these decides a branch, one way of which leads to a store, and so does the end. All ways would be more than four thousand millions.
#[test]
fn many_looks_besides_are_looked_through_once() {
    let beside =
        |number: usize| format!("ld.acquire.sys.u32 %r2, [%rd2+{}]; setp.eq.s32 %p2, %r2, 1; @%p2 bra D;", 4 * number);
    let besides: String = (0..32).map(beside).collect();
    let nothing: [&str; 0] = [];
    let rounds = |end: &str| {
        polls(&format!(
            "{FLAG} setp.ne.s32 %p1, %r1, 1; @%p1 bra M; ret; M: {besides} {end} bra.uni L; D: st.u32 [%rd3], %r1; bra.uni L;"
        ))
    };
    assert_eq!(rounds("st.u32 [%rd3], %r1;"), nothing);
    assert_eq!(rounds("").len(), 33, "each of them may end the loop");
    let clock = "mov.u64 %rd4, %clock64; setp.gt.s64 %p3, %rd4, %rd5; @%p3 bra D;".repeat(32);
    assert_eq!(
        polls(&format!(
            "{FLAG} setp.ne.s32 %p1, %r1, 1; @%p1 bra M; ret; M: {clock} D: st.u32 [%rd3], %r1; bra.uni L;"
        )),
        nothing
    );
    let long = |times: usize| {
        let checks = "mov.u64 %rd4, %clock64; setp.gt.s64 %p3, %rd4, %rd5; @%p3 bra L;".repeat(times);
        polls(&format!("{FLAG} setp.ne.s32 %p1, %r1, 1; @%p1 bra M; ret; M: {checks} bra.uni L;"))
    };
    assert_eq!(long(100), ["0: Eq S32 1"]);
    assert_eq!(long(400), nothing, "nobody has come to its end");
}

/// Elements are compared one after the other, and each that is not there leads back.
#[test]
fn elements_may_be_compared_one_by_one() {
    let both = |first: &str, second: &str| {
        polls(&format!(
            "L: ld.volatile.global.v2.u32 {{%r1, %r2}}, [%rd1]; setp.eq.u32 %p1, %r1, 0; {first} setp.eq.u32 %p2, %r2, 0; {second} add.s32 %r3, %r1, %r2; OUT: ret;"
        ))
    };
    assert_eq!(
        both("@%p1 bra L;", "@%p2 bra L;"),
        ["0: Ne U32 0, used, besides 0[1] at %rd1+4", "0[1]: Ne U32 0, used"]
    );
    assert_eq!(both("@%p1 bra OUT;", "@%p2 bra L;"), [""; 0], "the first may end the loop, whatever the second is");
    let of_the_round_before = "L: ld.volatile.global.u32 %r1, [%rd1]; @%p1 bra L; setp.eq.u32 %p2, %r1, 0; add.s32 %r4, %r4, 1; \
                               setp.gt.u32 %p1, %r4, 9; @%p2 bra L;";
    assert_eq!(polls(of_the_round_before), [""; 0], "ten rounds are other ones than nine");
    let counted = both("@%p1 bra L; add.s32 %r4, %r4, 1;", "@%p2 bra L; mov.u32 %r5, %r4;");
    assert_eq!(counted, ["0: Ne U32 0, used, besides 0[1] at %rd1+4"], "the rounds between the two are counted");
}

mod ballots;
mod calls;
mod rounds;
mod values;
