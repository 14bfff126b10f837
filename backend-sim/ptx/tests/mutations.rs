//! Real PTX, mutated: whatever the text, it is refused with an error or it runs. Nothing panics, and nothing hangs.
//!
//! `ONESIDED_FUZZ=60 cargo test --release -p onesided-ptx --test mutations -- --nocapture` goes on for a minute; `ci/fuzz-ptx` calls that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Folders with PTX: the interpreter's own, and beside it those of the examples, the corpus of bugs, other front ends and the suite.
const FOLDERS: [&str; 5] = [
    "kernels",
    "../../examples/src/kernels",
    "../../examples/src/bugs/kernels",
    "../../examples/src/kernels/python",
    "../../conformance/src/suite/device",
];

fn texts() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    // The package alone has the first.
    let folders = FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir());
    let mut paths: Vec<_> =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// A change of a text: what, where, and with what.
#[derive(Clone, Debug)]
struct Mutation {
    kind: u8,
    at: usize,
    other: usize,
    word: &'static str,
}

/// Texts of one round.
const CASES: u32 = 2000;

const WORDS: [&str; 42] = [
    "0",
    "-1",
    "4294967295",
    "18446744073709551615",
    "0x",
    "0f7fc00000",
    "0d7ff8000000000000",
    "1e400",
    "%r1",
    "%rd1",
    "%p1",
    "%tid.x",
    "WARP_SZ",
    "_",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "|",
    "@",
    "!",
    ":",
    "\"",
    "/*",
    ".reg",
    ".param",
    ".shared .b8 x[99999999];",
    ".local",
    ".u8",
    ".v4",
    ".f16x2",
    ".b64",
    ".sat",
    "bar.sync",
    "ret;",
    "vadd4.u32.s32.u32.sat %r1.b0, %r1.b7654, %r2, %r1;",
    ".b3210",
    "\u{e9}",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    (0..10_u8, any::<usize>(), any::<usize>(), prop::sample::select(&WORDS[..]))
        .prop_map(|(kind, at, other, word)| Mutation { kind, at, other, word })
}

/// Lines and words of the text, changed.
fn mutated(text: &str, mutations: &[Mutation]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for mutation in mutations {
        if lines.is_empty() {
            break;
        }
        let (at, other) = (mutation.at % lines.len(), mutation.other % lines.len());
        match mutation.kind {
            0 => _ = lines.remove(at),
            1 => lines.insert(at, lines[other].clone()),
            2 => lines.swap(at, other),
            3 => lines.truncate(at),
            8 => lines[at] = without_operands(&lines[at]),
            9 => lines[at] = with_an_empty_list(&lines[at]),
            kind => {
                let mut words: Vec<&str> = lines[at].split_inclusive([' ', '\t', ',', '.']).collect();
                if words.is_empty() {
                    continue;
                }
                let place = mutation.other % words.len();
                let from = lines[other].split_inclusive([' ', '\t', ',', '.']).nth(place).unwrap_or("");
                match kind {
                    4 => words[place] = mutation.word,
                    5 => words.insert(place, mutation.word),
                    6 => words[place] = from,
                    _ => _ = words.remove(place),
                }
                lines[at] = words.concat();
            }
        }
    }
    lines.join("\n")
}

/// An instruction's line up to its opcode.
fn without_operands(line: &str) -> String {
    match line.trim_start().split_once([' ', '\t']) {
        Some((opcode, _)) => format!("{opcode};"),
        None => line.to_owned(),
    }
}

/// The same line, with nothing between its braces.
fn with_an_empty_list(line: &str) -> String {
    match (line.find('{'), line.rfind('}')) {
        (Some(begin), Some(end)) if begin < end => format!("{}{}", &line[..=begin], &line[end..]),
        _ => line.to_owned(),
    }
}

/// Parses; what is accepted runs for a while, with every parameter a pointer to zeros.
fn try_it(text: &str) -> Result<(), TestCaseError> {
    let module = match Module::parse(text) {
        Ok(module) => Arc::new(module),
        Err(error) => {
            prop_assert!(!error.message.is_empty());
            return Ok(());
        }
    };
    for kernel in module.kernels() {
        let mut memory = FlatMemory::new();
        let globals = memory.load_globals(&module);
        let room = memory.allocate(&[0; 4096]);
        let mut launch = Launch::new(1, kernel.max_threads.unwrap_or(40).min(40)).globals(globals);
        launch.parameters = room.to_le_bytes().iter().copied().cycle().take(kernel.parameter_bytes as usize).collect();
        launch.workspace = room;
        launch.max_steps = 5_000;
        if kernel.parameter_bytes > 1 << 16 {
            continue;
        }
        let Ok(mut block) = Block::new(&module, &kernel.name, &Arc::new(launch), [0; 3]) else { continue };
        for _ in 0..200 {
            match block.run(&mut memory) {
                Stop::Call(call) => block.reply(&call, 1, None),
                Stop::Looks => {}
                Stop::Idle => block.wake_all(),
                Stop::Access(access) => block.go_on(access.thread as usize),
                Stop::Fence(thread, _) => block.go_on(thread),
                Stop::Finished | Stop::Fault(_) => break,
            }
        }
    }
    Ok(())
}

#[test]
fn mutated_texts_are_refused_or_run() {
    let texts = texts();
    let seconds: Option<u64> = std::env::var("ONESIDED_FUZZ")
        .ok()
        .map(|seconds| seconds.parse().expect("ONESIDED_FUZZ is a number of seconds"));
    let strategy = (0..texts.len(), prop::collection::vec(mutation(), 1..6));
    let begin = Instant::now();
    let mut cases = 0;
    loop {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        // Without a duration the cases are always the same ones.
        let mut runner = match seconds {
            None => TestRunner::new_with_rng(
                config,
                proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
            ),
            Some(_) => TestRunner::new(config),
        };
        runner
            .run(&strategy, |(text, mutations)| try_it(&mutated(&texts[text], &mutations)))
            .unwrap_or_else(|failure| panic!("{failure}"));
        cases += CASES;
        if seconds.is_none_or(|seconds| begin.elapsed() >= Duration::from_secs(seconds)) {
            break;
        }
    }
    if seconds.is_some() {
        println!("{cases} mutated texts in {} s: none panicked", begin.elapsed().as_secs());
    }
}

#[test]
fn a_text_that_is_cut_off_is_refused() {
    for text in texts() {
        let step = text.len() / 60;
        for end in (0..text.len() - 200).step_by(step.max(1)).filter(|&end| text.is_char_boundary(end)) {
            let cut = &text[..end];
            // Between two items of the module the text is whole.
            let depth = cut.matches('{').count() as i64 - cut.matches('}').count() as i64;
            if depth > 0 {
                let error = Module::parse(cut).expect_err("it was cut off within braces");
                assert!(error.line > 0, "{error}");
            }
        }
    }
}
