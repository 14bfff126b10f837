//! Loops around calls that only look at a word.

use super::{polls, polls_of};

/// A call, whose result is one of `ty`.
fn call((result, ty): (&str, &str), function: &str, arguments: &[&str]) -> String {
    let give = |(number, value): (usize, &&str)| format!(".param .b64 p{number}; st.param.b64 [p{number}+0], {value};");
    let given: String = arguments.iter().enumerate().map(give).collect();
    let names: Vec<String> = (0..arguments.len()).map(|number| format!("p{number}")).collect();
    let names = names.join(", ");
    format!(
        "{{ {given} .param .{ty} back; call.uni (back), {function}, ({names}); ld.param.{ty} {result}, [back+0]; }}"
    )
}

fn fetch(address: &str) -> String {
    call(("%rd2", "b64"), "nvshmem_signal_fetch", &[address])
}

fn test(ty: &str, [address, compare, value]: [&str; 3]) -> String {
    call(("%r1", "b32"), &format!("nvshmem_{ty}_test"), &[address, compare, value])
}

#[test]
fn a_loop_around_a_call_that_looks_ends_when_it_returns_something() {
    let fetches = fetch("%rd1");
    assert_eq!(polls(&format!("L: {fetches} setp.lt.u64 %p1, %rd2, %rd3; @%p1 bra L;")), ["1: Ge U64 %rd3"]);
    let later = format!("L: {fetches} setp.eq.s64 %p1, %rd2, 0; @%p1 bra L; mov.u64 %rd4, %rd2;");
    assert_eq!(polls(&later), ["1: Ne S64 0, used"]);
    let part = format!("L: {fetches} shr.u64 %rd4, %rd2, 32; setp.eq.s64 %p1, %rd4, 0; @%p1 bra L;");
    assert_eq!(polls(&part), ["1: Ne S64 0 of >> 32 & 0xffffffff"]);
    let tests = test("uint64", ["%rd1", "5", "%rd3"]);
    assert_eq!(polls(&format!("L: {tests} setp.eq.s32 %p1, %r1, 0; @%p1 bra L;")), ["3: Ne S32 0"]);
    assert_eq!(polls(&format!("L: {tests} setp.ne.s32 %p1, %r1, 0; @%p1 bra L;")), ["3: Eq S32 0"], "while it holds");
}

#[test]
fn a_loop_around_a_swap_ends_when_it_takes_the_word() {
    let nothing: [&str; 0] = [];
    let around = |function: &str, what: &[&str], rest: &str, goes_on: &str| {
        let swaps = call(("%r1", "b32"), function, what);
        polls(&format!("L: {rest} {swaps} setp.{goes_on} %p1, %r1, 0; @%p1 bra L;"))
    };
    let compares = |what: [&str; 3], rest: &str, goes_on: &str| {
        around("nvshmem_int_atomic_compare_swap", &[&["%rd1"], &what[..]].concat(), rest, goes_on)
    };
    assert_eq!(compares(["0", "1", "%r3"], "", "ne.s32"), ["4: Eq S32 0"]);
    assert_eq!(compares(["0", "%r4", "%r3"], "", "ne.s32"), ["4: Eq S32 0"], "what is left there is anything");
    assert_eq!(compares(["0", "1", "%r3"], "", "eq.s32"), nothing, "it takes the word and goes on");
    assert_eq!(compares(["2", "1", "%r3"], "", "ne.s32"), nothing, "it takes another value");
    assert_eq!(compares(["0", "1", "%r3"], "xor.b32 %r3, %r3, 1;", "ne.s32"), nothing, "of another PE");
    assert_eq!(compares(["0", "%r4", "%r3"], "add.s32 %r4, %r4, 1;", "ne.s32"), nothing, "it leaves something else");
    let swaps = |what: [&str; 2], goes_on: &str| {
        around("nvshmem_int_atomic_swap", &[&["%rd1"], &what[..]].concat(), "", goes_on)
    };
    assert_eq!(swaps(["1", "%r3"], "ne.s32"), ["3: Ne B32 1"], "it leaves what it finds");
    assert_eq!(swaps(["0", "%r3"], "ne.s32"), nothing, "what it has found is gone");
    assert_eq!(swaps(["1", "%r3"], "eq.s32"), nothing, "so is this");
}

#[test]
fn a_loop_around_an_atomic_fetch_ends_when_it_returns_something() {
    let nothing: [&str; 0] = [];
    let around = |function: &str, what: &[&str], rest: &str| {
        let fetches = call(("%r1", "b32"), function, what);
        polls(&format!("L: {rest} {fetches} setp.ne.s32 %p1, %r1, 1; @%p1 bra L;"))
    };
    let fetches = "nvshmem_int_atomic_fetch";
    assert_eq!(around(fetches, &["%rd1", "%r3"], ""), ["2: Eq S32 1"]);
    assert_eq!(around(fetches, &["%rd1", "%r3"], "xor.b32 %r3, %r3, 1;"), nothing, "of another PE");
    assert_eq!(around("nvshmem_int_atomic_fetch_add", &["%rd1", "1", "%r3"], ""), nothing, "it adds");
    let me = call(("%r3", "b32"), "nvshmem_my_pe", &[]);
    assert_eq!(around(fetches, &["%rd1", "%r3"], &me), ["4: Eq S32 1"], "who asks is the same in each round");
    let n = me.replace("my_pe", "n_pes");
    let first = |pe: &str| {
        let [first, again] = [pe, &me].map(|pe| {
            let fetches = call(("%r1", "b32"), fetches, &["%rd1", "%r3"]);
            format!("{pe} {fetches} setp.ne.s32 %p1, %r1, 1;")
        });
        polls(&format!("{first} @!%p1 bra D; L: {again} @%p1 bra L; D:"))
    };
    assert_eq!(first(&me), ["4: Eq S32 1, used", "12: Eq S32 1, used"]);
    assert_eq!(first(&n), ["12: Eq S32 1, used"], "it asks another PE");
    let other = me.replace("my_pe", "other");
    assert_eq!(around(fetches, &["%rd1", "%r3"], &other), nothing, "nobody knows what that is");
}

#[test]
fn each_round_must_ask_the_same() {
    let nothing: [&str; 0] = [];
    let around = |tests: &str, rest: &str| polls(&format!("L: {tests} {rest} setp.eq.s32 %p1, %r1, 0; @%p1 bra L;"));
    let tests = |what| test("uint64", what);
    assert_eq!(around(&tests(["%rd1", "5", "%rd3"]), "add.s64 %rd3, %rd3, 1;"), nothing, "another value");
    assert_eq!(around(&tests(["%rd1", "%r3", "1"]), "xor.b32 %r3, %r3, 1;"), nothing, "another comparison");
    assert_eq!(around(&tests(["%rd1", "5", "1"]), "add.s64 %rd1, %rd1, 8;"), nothing, "another word");
    let first = |other: &str| {
        let tests = tests(["%rd1", "5", "1"]);
        polls(&format!(
            "{other} setp.ne.s32 %p1, %r1, 0; @%p1 bra D; L: {tests} setp.eq.s32 %p1, %r1, 0; @%p1 bra L; D:"
        ))
    };
    assert_eq!(first(&tests(["%rd1", "5", "1"])), ["3: Ne S32 0, used", "10: Ne S32 0, used"]);
    assert_eq!(first(&tests(["%rd1", "5", "2"])), ["10: Ne S32 0, used"], "it asks for another value");
    assert_eq!(first(&test("int64", ["%rd1", "5", "1"])), ["10: Ne S32 0, used"], "it compares other numbers");
}

#[test]
fn other_calls_are_no_looks() {
    let nothing: [&str; 0] = [];
    let around = |call: &str| polls(&format!("L: {call} setp.eq.s64 %p1, %rd2, 0; @%p1 bra L;"));
    assert_eq!(around(&call(("%rd2", "b64"), "nvshmem_uint64_g", &["%rd1", "%r1"])), nothing, "another function");
    assert_eq!(around(&call(("%rd2", "b64"), "nvshmem_signal_fetch", &["%rd1", "1"])), nothing, "of two parameters");
    let tests = |name: &str, what: &[&str]| around(&call(("%rd2", "b64"), &format!("nvshmem_uint64_{name}"), what));
    assert_eq!(tests("test_all", &["%rd1", "%r1", "0", "5", "%rd3"]), ["5: Ne S64 0"]);
    assert_eq!(tests("test_some_vector", &["%rd1", "%r1", "%rd4", "0", "5", "%rd3"]), ["6: Ne S64 0"]);
    assert_eq!(tests("wait_until_all", &["%rd1", "%r1", "0", "5", "%rd3"]), nothing, "it waits");
    assert_eq!(tests("test_all", &["%rd1", "5", "1"]), nothing, "of three parameters");
    assert_eq!(around(&fetch("%rd1").replace("call.uni", "@%p2 call.uni")), nothing, "it may not look");
    assert_eq!(around(&fetch("%rd1").replace("[back+0]", "[other+0]")), nothing, "it takes something else");
    let defined = format!("L: {} setp.eq.s64 %p1, %rd2, 0; @%p1 bra L;", fetch("%rd1"));
    let functions = [(".visible .entry k", &defined[..]), (".func nvshmem_signal_fetch", "st.global.u32 [%rd1], 1;")];
    assert_eq!(polls_of(&functions), nothing, "the module's own");
}

#[test]
fn calls_may_look_besides() {
    let (fetches, tells) = (fetch("%rd1"), fetch("%rd5").replace("%rd2", "%rd6"));
    let told = |look: &str| {
        polls(&format!(
            "L: {fetches} setp.ne.s64 %p1, %rd2, 0; @%p1 bra D; {look} setp.eq.s64 %p2, %rd6, 0; @%p2 bra L; D:"
        ))
    };
    assert_eq!(
        told(&tells),
        ["1: Ne S64 0, besides 6 at %rd5+0 unless Ne S64 0", "6: Ne S64 0, besides 1 at %rd1+0 unless Ne S64 0"]
    );
    let by_load = "ld.volatile.global.u64 %rd6, [%rd5];";
    assert_eq!(told(by_load)[0], "1: Ne S64 0, besides 5 at %rd5+0 unless Ne S64 0");
    assert_eq!(told("ld.volatile.global.u64 %rd6, [%rd5]; st.global.u64 [%rd5], 1;"), [""; 0], "it stores");
}
