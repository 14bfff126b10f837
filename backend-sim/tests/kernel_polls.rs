//! Kernels that poll by calls: loops around NVSHMEM's atomics are waits.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Argument, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Sim, Simulation, VerdictKind};

const POLLS: &str = include_str!("../ptx/kernels/polls.ptx");

fn launch(pe: &Pe<Sim>, name: &str, arguments: &[Argument]) -> Result<()> {
    launch_of(pe, &Source::ptx("polls.ptx", POLLS), name, arguments)
}

fn launch_of(pe: &Pe<Sim>, source: &Source, name: &str, arguments: &[Argument]) -> Result<()> {
    let module = pe.module(source)?;
    let kernel = module.kernel(name)?;
    let stream = pe.stream()?;
    // SAFETY: each test passes what its kernel takes.
    unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 1), arguments)? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)
}

/// PE 1 polls a flag, and then takes the data.
fn message(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + use<'_> {
    move |pe| {
        let (data, flag, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        launch(pe, name, args![&data, &flag, &seen])?;
        let result = pe.read_one(&seen)?;
        pe.free(seen)?;
        pe.free(flag)?;
        pe.free(data)?;
        Ok(result)
    }
}

/// PE 1 waits for a flag, and says what it has seen.
fn seen(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + use<'_> {
    seen_by(Source::ptx("polls.ptx", POLLS), name)
}

fn seen_by(source: Source, name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + use<'_> {
    move |pe| {
        let (flag, seen) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        launch_of(pe, &source, name, args![&flag, &seen])?;
        let result = pe.read_one(&seen)?;
        pe.free(seen)?;
        pe.free(flag)?;
        Ok(result)
    }
}

/// PE 0 sets one of two flags that PE 1 polls.
fn either(name: &str, which: i32) -> impl Fn(&Pe<Sim>) -> Result<i32> + use<'_> {
    move |pe| {
        let flags = pe.alloc_zeroed::<u64>(2)?;
        launch(pe, name, args![&flags, which])?;
        pe.free(flags)?;
        Ok(0)
    }
}

fn explore<T>(how: Explore, config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> (BTreeSet<String>, Explored)
where
    T: std::fmt::Debug + Copy,
{
    let mut outcomes = BTreeSet::new();
    let explored = Simulation::new(config).unwrap().explore(how, program, |run| {
        outcomes.insert(match &run.verdict.kind {
            VerdictKind::Finished => {
                format!("{:?}", run.results.iter().map(|value| value.unwrap()).collect::<Vec<_>>())
            }
            kind => kind.outcome(),
        });
        ControlFlow::Continue(())
    });
    (outcomes, explored.unwrap())
}

/// All schedules have this outcome, and so many classes; and random ones have it.
fn always<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>, outcome: &str, classes: u64)
where
    T: std::fmt::Debug + Copy,
{
    let expected = BTreeSet::from([outcome.to_string()]);
    let (outcomes, explored) = explore(Explore::All { limit: 20_000 }, config.clone(), &program);
    assert_eq!(outcomes, expected);
    assert!(explored.complete, "{explored:?}");
    assert_eq!((explored.schedules, explored.redundant), (classes, 0));
    assert_eq!(explore(Explore::random(200, 1), config, &program).0, expected);
}

/// A loop around `atomic_fetch` or `test` does not look in vain. With a quiet in it, it looks step by step, which makes four classes.
#[test]
fn polls_by_fetch_and_by_test_are_waits() {
    always(Config::pes(2), message("poll_by_fetch"), "[0, 42]", 4);
    always(Config::pes(2), message("poll_by_test"), "[0, 42]", 1);
}

/// One of two flags is set, and the loop waits for the other: that one was seen again and again changes nothing.
#[test]
fn a_loop_around_tests_of_which_one_holds_is_a_wait() {
    for name in ["test_one_and_one", "test_all_of_two", "test_some_of_two"] {
        for (flags, outcome) in [(2, "[0, 0]"), (1, "deadlock")] {
            let (outcomes, explored) = explore(Explore::All { limit: 2_000 }, Config::pes(2), either(name, flags));
            assert!(explored.complete && explored.given_up == 0, "{name}: {explored:?}");
            assert_eq!(outcomes, BTreeSet::from([outcome.to_string()]), "{name}");
            let (outcomes, _) = explore(Explore::random(100, 1), Config::pes(2), either(name, flags));
            assert_eq!(outcomes, BTreeSet::from([outcome.to_string()]), "{name}");
        }
    }
}

/// The first flag may be set when the second one is about to be read: then the block must not wait for either.
#[test]
fn a_change_within_a_round_is_not_missed() {
    for name in ["either", "either_by_loads"] {
        for which in [0, 1] {
            let (outcomes, explored) = explore(Explore::random(200, 1), Config::pes(2), either(name, which));
            assert_eq!(outcomes, BTreeSet::from(["[0, 0]".to_string()]), "{name} {which}: {explored:?}");
            let (outcomes, explored) = explore(Explore::All { limit: 20_000 }, Config::pes(2), either(name, which));
            assert_eq!(outcomes, BTreeSet::from(["[0, 0]".to_string()]), "{name} {which}");
            assert!(explored.complete, "{name} {which}: {explored:?}");
        }
    }
}

/// What the call returns is loaded in any case: it counts whether something reads that.
#[test]
fn a_wait_whose_value_nobody_looks_at_is_no_choice() {
    let all = |name, values_matter| {
        let config = Config { values_matter, ..Config::pes(2) };
        let (outcomes, explored) = explore(Explore::All { limit: 100 }, config, seen(name));
        assert!(explored.complete);
        (outcomes.len(), explored.schedules)
    };
    assert_eq!((all("wait_and_look", true), all("wait_and_look", false)), ((2, 2), (1, 1)));
    assert_eq!(all("wait_only", true), (1, 1));
}

/// A kernel's own atomic changes a word as an operation of NVSHMEM does.
#[test]
fn a_wait_may_see_each_value_that_atomics_of_a_kernel_leave() {
    for (name, expected) in [("atomics_and_look", ["[0, 1]", "[0, 2]"]), ("atomics_pass_by", ["[0, 1]", "deadlock"])] {
        let expected = BTreeSet::from(expected.map(String::from));
        for how in [Explore::All { limit: 100 }, Explore::random(200, 1)] {
            assert_eq!(explore(how, Config::pes(2), seen(name)).0, expected, "{name}, {how:?}");
        }
    }
}

/// Who has found that two words were sent comes after both, and not only after the first, behind which it could have gone on.
#[test]
fn a_poll_that_finds_a_later_value_comes_after_what_that_tells() {
    let program = |pe: &Pe<Sim>| {
        let data = pe.alloc_zeroed::<u64>(2)?;
        let (flag, seen) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        launch(pe, "read_as_many", args![&data, &flag, &seen])?;
        let result = pe.read_one(&seen)?;
        pe.free(seen)?;
        pe.free(flag)?;
        pe.free(data)?;
        Ok(result)
    };
    for how in [Explore::All { limit: 100 }, Explore::random(200, 1)] {
        let expected = BTreeSet::from(["[0, 10]", "[0, 21]"].map(String::from));
        assert_eq!(explore(how, Config::pes(2), program).0, expected, "{how:?}");
    }
}

/// A call as Numba writes it: what the function returns comes through memory. Each argument has a type and an operand.
fn call(function: &str, arguments: &[(&str, &str)]) -> String {
    let all = [&[("b64", "%rd4")], arguments].concat();
    let declared = |(index, (ty, value)): (usize, &(&str, &str))| {
        format!(".param .{ty} param{index}; st.param.{ty} [param{index}], {value};\n")
    };
    let parameters: String = all.iter().enumerate().map(declared).collect();
    let names: Vec<String> = (0..all.len()).map(|index| format!("param{index}")).collect();
    let names = names.join(", ");
    format!(
        "{{ {parameters} .param .b32 retval0; call.uni (retval0), {function}, ({names}); ld.param.b32 %r9, [retval0]; }}\n"
    )
}

/// PE 0 signals 1, then 2. PE 1 waits for 1 or more, and looks at the value, which the call has stored.
#[test]
fn a_wait_that_returns_its_value_through_memory_is_a_choice() {
    let [my_pe, fence] = ["nvshmem_my_pe", "nvshmem_fence"].map(|function| call(function, &[]));
    let [one, two] = ["1", "2"]
        .map(|value| call("nvshmemx_signal_op", &[("b64", "%rd1"), ("b64", value), ("b32", "9"), ("b32", "1")]));
    let wait = call("nvshmem_signal_wait_until", &[("b64", "%rd1"), ("b32", "5"), ("b64", "1")]);
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64
        .extern .func (.param .b32 r) nvshmem_my_pe (.param .b64 a);
        .extern .func (.param .b32 r) nvshmem_fence (.param .b64 a);
        .extern .func (.param .b32 r) nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d, .param .b32 e);
        .extern .func (.param .b32 r) nvshmem_signal_wait_until (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d);
        .visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
        {{
            .local .align 8 .b8 result[8];
            .reg .b64 %rd<6>; .reg .b32 %r<10>; .reg .pred %p<2>;
            mov.u64 %rd3, result; cvta.local.u64 %rd4, %rd3;
            ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1]; cvta.to.global.u64 %rd2, %rd2;
            {my_pe} ld.u32 %r2, [%rd4]; setp.eq.s32 %p1, %r2, 1; @%p1 bra $waits;
            {one} {fence} {two} ret;
            $waits: {wait} ld.u64 %rd5, [%rd4]; cvt.u32.u64 %r7, %rd5; st.global.u32 [%rd2], %r7; ret;
        }}"
    );
    let program = seen_by(Source::ptx("numba.ptx", &text), "k");
    for how in [Explore::All { limit: 100 }, Explore::random(200, 1)] {
        let seen = BTreeSet::from(["[0, 1]", "[0, 2]"].map(String::from));
        assert_eq!(explore(how, Config::pes(2), &program).0, seen, "{how:?}");
    }
}

/// Additions of 4 and of 8 bytes to one word: a race, and where they come in the other order, nothing that is waited for.
#[test]
fn words_of_two_sizes_that_overlap_are_tried_in_all_orders() {
    let config = || Config { races: onesided_sim::Races::Note, ..Config::pes(2) };
    let both = BTreeSet::from(["[0, 1]", "deadlock"].map(String::from));
    assert_eq!(explore(Explore::random(500, 1), config(), seen("two_sizes")).0, both);
    let (outcomes, explored) = explore(Explore::All { limit: 1_000 }, config(), seen("two_sizes"));
    assert_eq!((outcomes, explored.complete), (both, true));
    let (outcomes, explored) = explore(Explore::All { limit: 1_000 }, Config::pes(2), seen("two_sizes"));
    let found = BTreeSet::from(["race", "deadlock"].map(String::from));
    assert_eq!((outcomes, explored.complete), (found, true));
}
