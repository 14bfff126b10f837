//! Random kernels: two or three threads of a block on each of two PEs poll, wait, store, add and signal, also in shared memory.
//!
//! Nothing is known of their outcomes beforehand. A search has to come to an end without saying that the program is not deterministic. It has
//! to find every outcome that random schedules have, and a proof has to find a race or a deadlock where they have one.
//!
//! Other programs, and more of them: `REFERENCE_SEED=7 REFERENCE_TIMES=5 cargo test -p onesided-sim --test kernel_random`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Races, Run, Sim, Simulation, VerdictKind};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

const PES: usize = 2;
/// Words that threads poll and change; behind them, each thread has one for what it has seen.
const WORDS: usize = 3;

/// What a thread does. `word` is one of its own PE, unless a PE is named.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Loads the word until it compares true: `setp`'s name of the opposite.
    Poll {
        word: usize,
        unless: &'static str,
        value: u64,
        /// Whether it notes what it has seen.
        notes: bool,
    },
    /// Loads a word until it is as large, then another one, and begins again until that is not 0.
    Twice {
        words: [usize; 2],
        value: u64,
    },
    /// Loads one word and then another, until one of them is as large.
    Either {
        words: [usize; 2],
        value: u64,
    },
    /// Fetches the word until it is as large.
    Fetch {
        of: usize,
        word: usize,
        value: u64,
    },
    /// Until the word is at least, or at most, this.
    Wait {
        word: usize,
        least: bool,
        value: u64,
    },
    Load {
        word: usize,
    },
    Store {
        word: usize,
        value: u64,
    },
    Add {
        word: usize,
    },
    /// Adds, and looks at what was there.
    Take {
        word: usize,
    },
    Signal {
        to: usize,
        word: usize,
        value: u64,
    },
    AddSignal {
        to: usize,
        word: usize,
    },
    /// Takes a ticket in shared memory.
    Ticket,
    /// Adds in shared memory, and looks at nothing.
    Count,
    /// Loads the shared word until it is as large.
    Await {
        value: u64,
    },
    /// All threads of the block that are left meet.
    Meet,
    Fence,
    Quiet,
}

type Program = Vec<Vec<Step>>;

/// A call of a device function.
fn call(result: &str, function: &str, arguments: &[(&str, String)]) -> String {
    let mut text = "{\n".to_string();
    let returns = if result.is_empty() { "" } else { "(result), " };
    if !result.is_empty() {
        text += ".param .b64 result;\n";
    }
    for (i, (ty, value)) in arguments.iter().enumerate() {
        _ = writeln!(text, ".param .{ty} param{i}; st.param.{ty} [param{i}], {value};");
    }
    let names: Vec<String> = (0..arguments.len()).map(|i| format!("param{i}")).collect();
    _ = writeln!(text, "call.uni {returns}{function}, ({});", names.join(", "));
    if !result.is_empty() {
        _ = writeln!(text, "ld.param.b64 {result}, [result];");
    }
    text + "}\n"
}

/// A thread's steps as PTX. %rd1 is the memory, %rd2 what was seen.
fn lines(thread: usize, threads: usize, steps: &[Step]) -> String {
    let at = |word: usize| format!("[%rd1+{}]", 8 * word);
    let mut text = String::new();
    for (i, step) in steps.iter().enumerate() {
        let label = format!("$T{thread}S{i}");
        let address = |word: usize| format!("add.u64 %rd3, %rd1, {};\n", 8 * word);
        let word_of = |rest: &[(&'static str, String)]| [&[("b64", "%rd3".to_string())], rest].concat();
        text += &match *step {
            Step::Poll { word, unless, value, notes } => {
                let note = if notes { "mad.lo.u64 %rd2, %rd2, 10, %rd5;\n" } else { "" };
                let loaded = if notes { "%rd5" } else { "%rd4" };
                format!(
                    "{label}: ld.volatile.global.u64 {loaded}, {};\nsetp.{unless}.u64 %p1, {loaded}, {value};\n@%p1 bra {label};\n{note}",
                    at(word)
                )
            }
            Step::Twice { words: [one, other], value } => format!(
                "{label}: ld.volatile.global.u64 %rd4, {};\nsetp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n\
                 ld.volatile.global.u64 %rd4, {};\nsetp.eq.u64 %p1, %rd4, 0;\n@%p1 bra {label};\n",
                at(one),
                at(other)
            ),
            Step::Either { words: [one, other], value } => format!(
                "{label}: ld.volatile.global.u64 %rd4, {};\nsetp.ge.u64 %p1, %rd4, {value};\n@%p1 bra {label}E;\n\
                 ld.volatile.global.u64 %rd4, {};\nsetp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n{label}E:\n",
                at(one),
                at(other)
            ),
            Step::Fetch { of, word, value } => {
                let fetch = call("%rd4", "nvshmem_uint64_atomic_fetch", &word_of(&[("b32", of.to_string())]));
                format!("{}{label}: {fetch}setp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n", address(word))
            }
            Step::Wait { word, least, value } => {
                let cmp = if least { 5 } else { 3 };
                let rest = [("b32", cmp.to_string()), ("b64", value.to_string())];
                address(word) + &call("%rd4", "nvshmem_signal_wait_until", &word_of(&rest))
            }
            Step::Load { word } => {
                format!("ld.volatile.global.u64 %rd4, {};\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n", at(word))
            }
            Step::Store { word, value } => format!("st.volatile.global.u64 {}, {value};\n", at(word)),
            Step::Add { word } => format!("red.global.sys.add.u64 {}, 1;\n", at(word)),
            Step::Take { word } => {
                format!("atom.global.sys.add.u64 %rd4, {}, 1;\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n", at(word))
            }
            Step::Signal { to, word, value } => {
                let rest = [("b64", value.to_string()), ("b32", "9".to_string()), ("b32", to.to_string())];
                address(word) + &call("", "nvshmemx_signal_op", &word_of(&rest))
            }
            Step::AddSignal { to, word } => {
                let rest = [("b64", "1".to_string()), ("b32", "10".to_string()), ("b32", to.to_string())];
                address(word) + &call("", "nvshmemx_signal_op", &word_of(&rest))
            }
            Step::Ticket => "atom.shared.add.u64 %rd4, [shared], 1;\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n".to_string(),
            Step::Count => "red.shared.add.u64 [shared], 1;\n".to_string(),
            Step::Await { value } => format!(
                "{label}: ld.volatile.shared.u64 %rd4, [shared];\nsetp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n"
            ),
            Step::Meet => "barrier.sync 0;\n".to_string(),
            Step::Fence => call("", "nvshmem_fence", &[]),
            Step::Quiet => call("", "nvshmem_quiet", &[]),
        };
    }
    let seen = format!("st.global.u64 {}, %rd2;\n", at(WORDS + thread % threads));
    text + &seen + "bra.uni $END;\n"
}

fn source(program: &Program) -> String {
    let dispatch: String =
        (0..program.len()).map(|i| format!("setp.eq.s32 %p1, %r3, {i};\n@%p1 bra $T{i};\n")).collect();
    let count = program.len() / PES;
    let lines = |(i, steps): (usize, &Vec<Step>)| format!("$T{i}:\n{}", lines(i, count, steps));
    let threads: String = program.iter().enumerate().map(lines).collect();
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func nvshmem_fence;
.extern .func nvshmem_quiet;
.extern .func (.param .b64 r) nvshmem_uint64_atomic_fetch (.param .b64 a, .param .b32 b);
.extern .func (.param .b64 r) nvshmem_signal_wait_until (.param .b64 a, .param .b32 b, .param .b64 c);
.extern .func nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.visible .entry k(.param .u64 k_param_0)
{{
.shared .align 8 .b64 shared;
.reg .b64 %rd<6>; .reg .b32 %r<4>; .reg .pred %p<3>;
setp.eq.u32 %p2, 0, 0;
ld.param.u64 %rd1, [k_param_0];
mov.u64 %rd2, 0;
mov.u32 %r2, %tid.x;
setp.eq.s32 %p1, %r2, 0;
@%p1 st.shared.u64 [shared], 0;
barrier.sync 0;
{{ .param .b32 result; call.uni (result), nvshmem_my_pe, (); ld.param.b32 %r1, [result]; }}
mad.lo.s32 %r3, %r1, {count}, %r2;
{dispatch}bra.uni $END;
{threads}$END: ret;
}}
"
    )
}

fn perform(source: &Source, threads: usize, pe: &Pe<Sim>) -> Result<Vec<u64>> {
    let words = pe.alloc_zeroed::<u64>(WORDS + threads)?;
    let module = pe.module(source)?;
    let kernel = module.kernel("k")?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes one pointer.
    unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, threads as u32), args![&words])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let seen = pe.read(&words)?;
    pe.free(words)?;
    Ok(seen)
}

struct Seen {
    complete: bool,
    classes: u64,
    races: bool,
    outcomes: BTreeSet<String>,
}

fn outcome(run: &Run<Vec<u64>>) -> String {
    match &run.verdict.kind {
        VerdictKind::Finished => format!("{:?}", run.results.iter().flatten().collect::<Vec<_>>()),
        VerdictKind::Deadlock => "deadlock".to_string(),
        other => format!("{other:?}"),
    }
}

fn seen((source, threads): (&Source, usize), how: Explore, races: Races) -> std::result::Result<Seen, String> {
    let mut seen = Seen { complete: false, classes: 0, races: false, outcomes: BTreeSet::new() };
    let config = Config { races, pieces: 1, max_steps: Some(20_000), ..Config::pes(PES) };
    let explored = Simulation::new(config).unwrap().explore(
        how,
        |pe| perform(source, threads, pe),
        |run| {
            seen.races |= !run.verdict.races.is_empty();
            seen.outcomes.insert(outcome(run));
            ControlFlow::Continue(())
        },
    );
    let explored = explored.map_err(|error| format!("{races:?}: {error}"))?;
    let complete = explored.bound.is_none() && explored.given_up == 0;
    Ok(Seen { complete, classes: explored.schedules, ..seen })
}

const LIMIT: u64 = 1_000;

/// Whether the program was small enough.
fn check(program: &Program) -> std::result::Result<bool, String> {
    let source = (&Source::ptx("random.ptx", source(program)), program.len() / PES);
    let all = Explore::All { limit: LIMIT };
    let proof = seen(source, all, Races::Find)?;
    let noted = seen(source, all, Races::Note)?;
    let random = seen(source, Explore::random(40, 1), Races::Note)?;
    if proof.complete && !proof.races && random.races {
        return Err("a random schedule has a race, and no proof".to_string());
    }
    if proof.complete && !proof.races && random.outcomes.contains("deadlock") && !proof.outcomes.contains("deadlock") {
        return Err(format!("a random schedule has a deadlock, and no proof: {:?}", proof.outcomes));
    }
    if noted.complete && !random.outcomes.is_subset(&noted.outcomes) {
        let missed: Vec<&String> = random.outcomes.difference(&noted.outcomes).collect();
        return Err(format!("a search misses {missed:?} of {:?}", noted.outcomes));
    }
    Ok(noted.complete && proof.complete)
}

fn poll() -> impl Strategy<Value = Step> {
    let unless = prop_oneof![4 => Just("lt"), 2 => Just("ne"), 1 => Just("eq"), 1 => Just("gt")];
    (0..WORDS, 1..=2u64, unless, any::<bool>()).prop_map(|(word, value, unless, notes)| Step::Poll {
        word,
        unless,
        value,
        notes,
    })
}

/// Threads that send words to each other, and poll them.
fn talk() -> impl Strategy<Value = Vec<Step>> {
    let (word, value) = (|| 0..WORDS, || 1..=2u64);
    let step = prop_oneof![
        4 => poll(),
        1 => (word(), word(), value()).prop_map(|(one, other, value)| Step::Twice { words: [one, other], value }),
        1 => word().prop_map(|word| Step::Load { word }),
        1 => (word(), value()).prop_map(|(word, value)| Step::Store { word, value }),
        1 => word().prop_map(|word| Step::Add { word }),
        4 => (0..PES, word(), value()).prop_map(|(to, word, value)| Step::Signal { to, word, value }),
        2 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
    ];
    prop::collection::vec(step, 1..=3)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let word = || 0..WORDS;
    let value = || 1..=2u64;
    let step = prop_oneof![
        4 => poll(),
        1 => (word(), word(), value()).prop_map(|(one, other, value)| Step::Twice { words: [one, other], value }),
        1 => (word(), word(), value()).prop_map(|(one, other, value)| Step::Either { words: [one, other], value }),
        2 => (0..PES, word(), value()).prop_map(|(of, word, value)| Step::Fetch { of, word, value }),
        2 => (word(), any::<bool>(), value()).prop_map(|(word, least, value)| Step::Wait { word, least, value }),
        2 => word().prop_map(|word| Step::Load { word }),
        2 => (word(), value()).prop_map(|(word, value)| Step::Store { word, value }),
        1 => word().prop_map(|word| Step::Add { word }),
        1 => word().prop_map(|word| Step::Take { word }),
        4 => (0..PES, word(), value()).prop_map(|(to, word, value)| Step::Signal { to, word, value }),
        2 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
        1 => Just(Step::Ticket),
        1 => Just(Step::Count),
        1 => value().prop_map(|value| Step::Await { value }),
        1 => Just(Step::Meet),
        1 => Just(Step::Fence),
        1 => Just(Step::Quiet),
    ];
    prop::collection::vec(step, 0..=2)
}

fn times(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok())
}

#[test]
fn a_search_of_random_kernels_ends() {
    let cases = 2_000 * times("REFERENCE_TIMES").unwrap_or(1) as u32;
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(times("REFERENCE_SEED").unwrap_or(0x6b65_726e)),
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    };
    let small = Cell::new(0);
    let programs = (2..=3usize).prop_flat_map(|threads| prop::collection::vec(steps(), PES * threads));
    let result = TestRunner::new(config).run(&programs, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases * 9 / 10, "only {} of {cases} were small enough", small.get());
}

/// A loop around a load is a wait only where the loop does nothing else. With an instruction that is not known to do nothing, it looks
/// in vain, step by step: that changes nothing but the number of classes.
#[test]
fn a_loop_that_is_a_wait_has_the_outcomes_of_one_that_looks_in_vain() {
    let config = ProptestConfig {
        cases: 400 * times("REFERENCE_TIMES").unwrap_or(1) as u32,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(times("REFERENCE_SEED").unwrap_or(0x6c6f_6f70)),
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    };
    let (compared, fewer) = (Cell::new(0), Cell::new(0));
    let programs = (1..=2usize).prop_flat_map(|threads| prop::collection::vec(talk(), PES * threads));
    let polls = |program: &Program| program.iter().flatten().any(|step| matches!(step, Step::Poll { .. }));
    let result = TestRunner::new(config).run(&programs.prop_filter("it has a loop", polls), |program| {
        let (text, threads) = (source(&program), program.len() / PES);
        let looks = ["lt", "ne", "eq", "gt"].into_iter().fold(text.clone(), |text, unless| {
            (1..=2).fold(text, |text, value| {
                ["%rd4", "%rd5"].into_iter().fold(text, |text, loaded| {
                    let [waits, looks] = [("", ""), (".and", ", %p2")]
                        .map(|(and, more)| format!("setp.{unless}{and}.u64 %p1, {loaded}, {value}{more};"));
                    text.replace(&waits, &looks)
                })
            })
        });
        for races in [Races::Find, Races::Note] {
            let [waits, looks] = [&text, &looks].map(|text| {
                let source = Source::ptx("random.ptx", text.clone());
                seen((&source, threads), Explore::All { limit: LIMIT }, races).map_err(TestCaseError::fail)
            });
            let (waits, looks) = (waits?, looks?);
            if !looks.complete {
                continue;
            }
            prop_assert!(waits.complete, "{:?}", races);
            prop_assert_eq!(waits.races, looks.races, "{:?}", races);
            if races == Races::Note || !waits.races {
                prop_assert_eq!(&waits.outcomes, &looks.outcomes, "{:?}", races);
            }
            compared.set(compared.get() + 1);
            fewer.set(fewer.get() + u32::from(waits.classes < looks.classes));
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    eprintln!("{} searches compared; {} had fewer classes", compared.get(), fewer.get());
    assert!(fewer.get() * 4 > compared.get(), "only {} of {} searches had fewer classes", fewer.get(), compared.get());
}

/// One thread's poll takes nothing away from another's. Each of these was said not to be deterministic.
#[test]
fn threads_of_a_block_poll_beside_each_other() {
    use Step::*;
    let poll = |word| Poll { word, unless: "lt", value: 1, notes: false };
    let first_call_of_a_word_that_another_polls = vec![
        vec![],
        vec![Fence],
        vec![Signal { to: 1, word: 0, value: 2 }, Fetch { of: 1, word: 0, value: 1 }],
        vec![poll(0), Quiet],
    ];
    let load_of_another_word = vec![
        vec![Fence, Quiet],
        vec![Signal { to: 1, word: 2, value: 1 }, AddSignal { to: 1, word: 0 }],
        vec![poll(0)],
        vec![Load { word: 2 }, Quiet],
    ];
    let two_words = vec![
        vec![poll(2)],
        vec![poll(0)],
        vec![Signal { to: 0, word: 2, value: 1 }],
        vec![AddSignal { to: 1, word: 2 }, Signal { to: 0, word: 0, value: 2 }],
    ];
    for program in [first_call_of_a_word_that_another_polls, load_of_another_word, two_words] {
        assert_eq!(check(&program), Ok(true), "{program:?}");
    }
}
