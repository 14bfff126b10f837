//! Random kernels: what each thread does, and that as PTX.

use std::fmt::Write;

pub(crate) const PES: usize = 2;
/// Words that threads poll and change; behind them, each thread has one for what it has seen.
pub(crate) const WORDS: usize = 3;

/// What a thread does. `word` is one of its own PE, unless a PE is named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Loads the word until it compares true: `setp`'s name of the opposite.
    Poll {
        word: usize,
        unless: &'static str,
        value: u64,
        /// Whether it notes what it has seen.
        notes: bool,
    },
    /// Loads the word until a part of it is so, or gives up after a time that never passes.
    PollPart {
        word: usize,
        part: Part,
        gives_up: bool,
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
        /// Whether it notes which.
        notes: bool,
    },
    /// Loads one word and then another, as a vector if they are one, until both of them are as large.
    Both {
        words: [usize; 2],
        value: u64,
        notes: bool,
    },
    /// Compares and swaps the word until it has found what it replaces.
    Swap {
        of: usize,
        word: usize,
        from: u64,
        to: u64,
    },
    /// The same by a call.
    Lock {
        of: usize,
        word: usize,
        from: u64,
        to: u64,
    },
    /// Fetches the word until it is as large.
    Fetch {
        of: usize,
        word: usize,
        value: u64,
        notes: bool,
    },
    /// Tests whether the first two words are as large, at once, until they are.
    All {
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
    /// Adds, and only asks whether that was this. If it was, another word is added to.
    Arrive {
        word: Word,
        by: u64,
        asks: u64,
        tells: Option<usize>,
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
    /// Adds this, which may be negative.
    Move {
        word: usize,
        by: i64,
    },
    /// The same by a signal.
    MoveSignal {
        to: usize,
        word: usize,
        by: i64,
    },
    /// Loads the word until, as a signed number, it is at least, or at most, this.
    Balance {
        word: usize,
        least: bool,
        value: i64,
    },
    /// Takes a ticket in shared memory.
    Ticket,
    /// Adds in shared memory, and looks at nothing.
    Count,
    /// Loads the shared word until it compares so, and notes what it has found.
    Await {
        unless: &'static str,
        value: u64,
        notes: bool,
    },
    /// Stores in shared memory.
    SetShared {
        value: u64,
    },
    /// Swaps the shared word when it is as expected.
    SwapShared {
        from: u64,
        to: u64,
    },
    /// Loads a word of a PE, mostly of the other, until it is as large.
    Pull {
        of: usize,
        word: usize,
        value: u64,
        notes: bool,
    },
    /// All threads of the block that are left meet.
    Meet,
    /// The first threads of the block, each of which comes to such a step once, vote in each round of a loop, until all hold, or any does.
    Vote(Vote),
    Fence,
    Quiet,
}

/// What of a word is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Its lowest bit is set.
    Odd,
    /// The bits above that are as large a number.
    Above(u64),
    /// What is left of it without this is not negative.
    From(u64),
}

/// What a thread does in a loop with a vote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vote {
    /// How many threads vote.
    pub(crate) voters: usize,
    /// Whether all have to hold.
    pub(crate) all: bool,
    /// It holds from this value of the word on; without a word, always.
    pub(crate) until: Option<(Word, u64)>,
    /// Behind the vote, it reads this.
    pub(crate) reads: Option<Word>,
    /// It stores here what it has read there, whenever that has grown.
    pub(crate) tells: Option<usize>,
}

/// A word of the own PE, or the shared one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Global(usize),
    Shared,
}

pub(crate) type Program = Vec<Vec<Step>>;

/// A call of a device function.
fn call(result: &str, function: &str, arguments: &[(&str, String)]) -> String {
    let mut text = "{\n".to_string();
    let returns = if result.is_empty() { "" } else { "(result), " };
    let ty = if result.starts_with("%rd") { "b64" } else { "b32" };
    if !result.is_empty() {
        _ = writeln!(text, ".param .{ty} result;");
    }
    for (i, (ty, value)) in arguments.iter().enumerate() {
        _ = writeln!(text, ".param .{ty} param{i}; st.param.{ty} [param{i}], {value};");
    }
    let names: Vec<String> = (0..arguments.len()).map(|i| format!("param{i}")).collect();
    _ = writeln!(text, "call.uni {returns}{function}, ({});", names.join(", "));
    if !result.is_empty() {
        _ = writeln!(text, "ld.param.{ty} {result}, [result];");
    }
    text + "}\n"
}

/// The vote of a PE's threads, if they may all go through the same instructions: they only look, at global memory.
fn vote_together(threads: &[Vec<Step>]) -> Option<Vote> {
    let votes = threads.iter().flatten().filter_map(|step| match step {
        Step::Vote(vote) => Some(*vote),
        _ => None,
    });
    let votes: Vec<Vote> = votes.collect();
    let only_looks = |vote: &Vote| vote.reads.is_none() && !matches!(vote.until, Some((Word::Shared, _)));
    votes.iter().all(only_looks).then_some(*votes.first()?)
}

/// The loop of such a vote of the threads from `first` on, which then go on where they came from.
fn votes_together(pe: usize, first: usize, Vote { voters, all, .. }: Vote) -> String {
    let (how, mask) = (if all { "all" } else { "any" }, (1 << voters) - 1);
    let back: String =
        (first..first + voters).map(|i| format!("setp.eq.s32 %p1, %r3, {i};\n@%p1 bra $T{i}V;\n")).collect();
    format!(
        "$V{pe}:\nsetp.eq.u64 %p1, %rd5, 0;\n@%p1 bra $V{pe}M;\nld.volatile.global.u64 %rd4, [%rd3];\n\
         setp.ge.u64 %p1, %rd4, %rd5;\n$V{pe}M: vote.sync.{how}.pred %p3, %p1, {mask};\n@!%p3 bra $V{pe};\n{back}bra.uni $END;\n"
    )
}

/// A thread's steps as PTX. %rd1 is the memory, %rd2 what was seen.
fn lines(thread: usize, threads: usize, steps: &[Step], together: bool) -> String {
    let at = |word: usize| format!("[%rd1+{}]", 8 * word);
    let mut text = String::new();
    for (i, step) in steps.iter().enumerate() {
        let label = format!("$T{thread}S{i}");
        let address = |word: usize| format!("add.u64 %rd3, %rd1, {};\n", 8 * word);
        let word_of = |rest: &[(&'static str, String)]| [&[("b64", "%rd3".to_string())], rest].concat();
        // what comes before the loop, and the look: a load, or a call
        let look = |to: &str, word: usize, base: &str, is_call: bool| match is_call {
            true => [
                format!("add.u64 {base}, %rd1, {};\n", 8 * word),
                call(to, "nvshmem_signal_fetch", &[("b64", base.to_string())]),
            ],
            false => [String::new(), format!("ld.volatile.global.u64 {to}, {};\n", at(word))],
        };
        let looks = |[one, other]: [usize; 2]| {
            let how = (thread + i) % 4;
            [look("%rd4", one, "%rd6", how % 2 == 1), look("%rd4", other, "%rd7", how / 2 == 1)]
        };
        text += &match *step {
            Step::Poll { word, unless, value, notes } => {
                let note = if notes { "mad.lo.u64 %rd2, %rd2, 10, %rd5;\n" } else { "" };
                let loaded = if notes { "%rd5" } else { "%rd4" };
                let [begin, look] = look(loaded, word, "%rd6", (thread + i) % 3 == 1);
                format!("{begin}{label}: {look}setp.{unless}.u64 %p1, {loaded}, {value};\n@%p1 bra {label};\n{note}")
            }
            Step::PollPart { word, part, gives_up, notes } => {
                let goes_on = match part {
                    Part::Odd => "and.b64 %rd5, %rd4, 1;\nsetp.eq.u64 %p1, %rd5, 0;".to_string(),
                    Part::Above(value) => format!("shr.u64 %rd5, %rd4, 1;\nsetp.ne.u64 %p1, %rd5, {value};"),
                    Part::From(value) => format!("sub.s64 %rd5, %rd4, {value};\nsetp.lt.s64 %p1, %rd5, 0;"),
                };
                let again = match gives_up {
                    false => format!("@%p1 bra {label};"),
                    true => format!(
                        "@!%p1 bra {label}E;\nmov.u64 %rd5, %clock64;\nsetp.lt.u64 %p1, %rd5, 1000000;\n@%p1 bra {label};\ntrap;\n{label}E:"
                    ),
                };
                let note = if notes { "mad.lo.u64 %rd2, %rd2, 10, %rd4;\n" } else { "" };
                format!("{label}: ld.volatile.global.u64 %rd4, {};\n{goes_on}\n{again}\n{note}", at(word))
            }
            Step::Twice { words, value } => {
                let [[begin, one], [begins, other]] = looks(words);
                format!(
                    "{begin}{begins}{label}: {one}setp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n\
                     {other}setp.eq.u64 %p1, %rd4, 0;\n@%p1 bra {label};\n"
                )
            }
            Step::Either { words, value, notes } => {
                let [[begin, one], [begins, other]] = looks(words);
                let note = |which: u64| match notes {
                    true => format!("mad.lo.u64 %rd2, %rd2, 10, {which};\n"),
                    false => String::new(),
                };
                // a number says what the second comparison has found, behind a branch that something else decides
                let goes_on = match value {
                    1 => format!("setp.lt.u64 %p1, %rd4, {value};\n"),
                    _ => format!(
                        "setp.ge.u64 %p1, %rd4, {value};\nselp.u64 %rd5, 1, 0, %p1;\nsetp.eq.u64 %p2, %rd1, 0;\n\
                         @%p2 bra {label}M;\nmov.u64 %rd5, %rd5;\n{label}M: setp.eq.u64 %p1, %rd5, 0;\n"
                    ),
                };
                format!(
                    "{begin}{begins}{label}: {one}setp.ge.u64 %p1, %rd4, {value};\n@%p1 bra {label}E;\n\
                     {other}{goes_on}@%p1 bra {label};\n\
                     {}bra.uni {label}D;\n{label}E:\n{}{label}D:\n",
                    note(2),
                    note(1)
                )
            }
            Step::Both { words: [one, other], value, notes } => {
                let note =
                    ["mad.lo.u64 %rd2, %rd2, 10, %rd4;\nmad.lo.u64 %rd2, %rd2, 10, %rd5;\n", ""][usize::from(!notes)];
                let loads = match [one, other] {
                    [0, 1] => format!("ld.volatile.global.v2.u64 {{%rd4, %rd5}}, {};\n", at(0)),
                    _ => format!(
                        "ld.volatile.global.u64 %rd4, {};\nld.volatile.global.u64 %rd5, {};\n",
                        at(one),
                        at(other)
                    ),
                };
                format!(
                    "{label}: {loads}setp.lt.u64 %p1, %rd4, {value};\nsetp.lt.u64 %p3, %rd5, {value};\nor.pred %p3, %p1, %p3;\n\
                     @%p3 bra {label};\n{note}"
                )
            }
            Step::Swap { of, word, from, to } => format!(
                "{}{}{label}: atom.acq_rel.sys.global.cas.b64 %rd4, [%rd3], {from}, {to};\nsetp.ne.u64 %p1, %rd4, {from};\n@%p1 bra {label};\n",
                address(word),
                call("%rd3", "nvshmem_ptr", &word_of(&[("b32", of.to_string())])),
            ),
            Step::Lock { of, word, from, to } => {
                let rest = [("b64", from.to_string()), ("b64", to.to_string()), ("b32", of.to_string())];
                let swap = call("%rd4", "nvshmem_uint64_atomic_compare_swap", &word_of(&rest));
                format!("{}{label}: {swap}setp.ne.u64 %p1, %rd4, {from};\n@%p1 bra {label};\n", address(word))
            }
            Step::Fetch { of, word, value, notes } => {
                let fetch = call("%rd4", "nvshmem_uint64_atomic_fetch", &word_of(&[("b32", of.to_string())]));
                let note = if notes { "mad.lo.u64 %rd2, %rd2, 10, %rd4;\n" } else { "" };
                format!("{}{label}: {fetch}setp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n{note}", address(word))
            }
            Step::All { value } => {
                let rest =
                    [("b64", 2), ("b64", 0), ("b32", 5), ("b64", value)].map(|(ty, value)| (ty, value.to_string()));
                let test = call("%r2", "nvshmem_uint64_test_all", &word_of(&rest));
                format!("{}{label}: {test}setp.eq.s32 %p1, %r2, 0;\n@%p1 bra {label};\n", address(0))
            }
            Step::Wait { word, least, value } => {
                let cmp = if least { 5 } else { 3 };
                let rest = word_of(&[("b32", cmp.to_string()), ("b64", value.to_string())]);
                let unless = if least { "lt" } else { "gt" };
                let wait = match (thread + i) % 3 {
                    0 => call("%rd4", "nvshmem_signal_wait_until", &rest),
                    1 => {
                        let fetch = call("%rd4", "nvshmem_signal_fetch", &word_of(&[]));
                        format!("{label}: {fetch}setp.{unless}.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n")
                    }
                    _ => {
                        let test = call("%r2", "nvshmem_uint64_test", &rest);
                        format!("{label}: {test}setp.eq.s32 %p1, %r2, 0;\n@%p1 bra {label};\n")
                    }
                };
                address(word) + &wait
            }
            Step::Load { word } => {
                format!("ld.volatile.global.u64 %rd4, {};\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n", at(word))
            }
            Step::Store { word, value } => format!("st.volatile.global.u64 {}, {value};\n", at(word)),
            Step::Add { word } => format!("red.global.sys.add.u64 {}, 1;\n", at(word)),
            Step::Take { word } => {
                format!("atom.global.sys.add.u64 %rd4, {}, 1;\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n", at(word))
            }
            Step::Arrive { word, by, asks, tells } => {
                let tell = tells.map(|told| format!("@%yes red.global.sys.add.u64 {}, 1;\n", at(told)));
                let counts = match word {
                    Word::Shared => format!("atom.shared.add.u64 %old, [shared], {by};"),
                    Word::Global(word) => format!("atom.global.sys.add.u64 %old, {}, {by};", at(word)),
                };
                format!(
                    "{{\n.reg .b64 %old; .reg .pred %yes;\n{counts}\nsetp.eq.u64 %yes, %old, {asks};\n\
                     selp.u64 %rd4, 2, 1, %yes;\n{}}}\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n",
                    tell.unwrap_or_default()
                )
            }
            Step::Signal { to, word, value } => {
                let rest = [("b64", value.to_string()), ("b32", "9".to_string()), ("b32", to.to_string())];
                address(word) + &call("", "nvshmemx_signal_op", &word_of(&rest))
            }
            Step::AddSignal { to, word } => {
                let rest = [("b64", "1".to_string()), ("b32", "10".to_string()), ("b32", to.to_string())];
                address(word) + &call("", "nvshmemx_signal_op", &word_of(&rest))
            }
            Step::Move { word, by } => format!("red.global.sys.add.u64 {}, {by};\n", at(word)),
            Step::MoveSignal { to, word, by } => {
                let rest = [("b64", by.to_string()), ("b32", "10".to_string()), ("b32", to.to_string())];
                address(word) + &call("", "nvshmemx_signal_op", &word_of(&rest))
            }
            Step::Balance { word, least, value } => {
                let goes_on = if least { "lt" } else { "gt" };
                format!(
                    "{label}: ld.volatile.global.s64 %rd4, {};\nsetp.{goes_on}.s64 %p1, %rd4, {value};\n@%p1 bra {label};\n",
                    at(word)
                )
            }
            Step::Ticket => "atom.shared.add.u64 %rd4, [shared], 1;\nmad.lo.u64 %rd2, %rd2, 10, %rd4;\n".to_string(),
            Step::Count => "red.shared.add.u64 [shared], 1;\n".to_string(),
            Step::Await { unless, value, notes } => {
                let note = if notes { "mad.lo.u64 %rd2, %rd2, 10, %rd4;\n" } else { "" };
                format!(
                    "{label}: ld.volatile.shared.u64 %rd4, [shared];\nsetp.{unless}.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n{note}"
                )
            }
            Step::SetShared { value } => format!("st.volatile.shared.u64 [shared], {value};\n"),
            Step::SwapShared { from, to } => format!(
                "{label}: atom.acq_rel.cta.shared.cas.b64 %rd4, [shared], {from}, {to};\nsetp.ne.u64 %p1, %rd4, {from};\n@%p1 bra {label};\n"
            ),
            Step::Pull { of, word, value, notes } => {
                let note = if notes { "mad.lo.u64 %rd2, %rd2, 10, %rd4;\n" } else { "" };
                format!(
                    "{}{}{label}: ld.volatile.global.u64 %rd4, [%rd3];\nsetp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n{note}",
                    address(word),
                    call("%rd3", "nvshmem_ptr", &word_of(&[("b32", of.to_string())])),
                )
            }
            Step::Meet => "barrier.sync 0;\n".to_string(),
            Step::Vote(vote) if together => {
                // %rd3 is the word, %rd5 from what on it holds; %p3 says whether the thread looks at all
                let (word, value) = match vote.until {
                    Some((Word::Global(word), value)) => (word, value),
                    _ => (0, 0),
                };
                let pe = thread / threads;
                format!("{}mov.u64 %rd4, 0;\nmov.u64 %rd5, {value};\nbra.uni $V{pe};\n$T{thread}V:\n", address(word))
            }
            Step::Vote(Vote { voters, all, until, reads, tells }) => {
                let load = |word| match word {
                    Word::Shared => "ld.volatile.shared.u64 %rd4, [shared];\n".to_string(),
                    Word::Global(word) => format!("ld.volatile.global.u64 %rd4, {};\n", at(word)),
                };
                let holds = until.map_or("setp.eq.u64 %p1, 0, 0;\n".to_string(), |(word, value)| {
                    format!("{}setp.ge.u64 %p1, %rd4, {value};\n", load(word))
                });
                let told = tells.filter(|_| reads.is_some()).map_or(String::new(), |word| {
                    let grown = "setp.gt.u64 %p3, %rd4, %rd5;\n";
                    format!("{grown}@%p3 st.volatile.global.u64 {}, %rd4;\n@%p3 mov.u64 %rd5, %rd4;\n", at(word))
                });
                let (how, mask) = (if all { "all" } else { "any" }, (1 << voters) - 1);
                let read = reads.map_or(String::new(), load) + &told;
                format!(
                    "mov.u64 %rd5, 0;\nmov.u64 %rd4, 0;\n{label}: {holds}vote.sync.{how}.pred %p3, %p1, {mask};\n\
                     @%p3 bra {label}E;\n{read}bra.uni {label};\n{label}E:\n"
                )
            }
            Step::Fence => call("", "nvshmem_fence", &[]),
            Step::Quiet => call("", "nvshmem_quiet", &[]),
        };
    }
    let seen = format!("st.global.u64 {}, %rd2;\n", at(WORDS + thread % threads));
    text + &seen + "bra.uni $END;\n"
}

pub(crate) fn source(program: &Program) -> String {
    let dispatch: String =
        (0..program.len()).map(|i| format!("setp.eq.s32 %p1, %r3, {i};\n@%p1 bra $T{i};\n")).collect();
    let count = program.len() / PES;
    let together: Vec<Option<Vote>> = program.chunks(count).map(vote_together).collect();
    let lines =
        |(i, steps): (usize, &Vec<Step>)| format!("$T{i}:\n{}", lines(i, count, steps, together[i / count].is_some()));
    let threads: String = program.iter().enumerate().map(lines).collect();
    let votes = together.iter().enumerate().filter_map(|(pe, vote)| Some(votes_together(pe, pe * count, (*vote)?)));
    let threads = threads + &votes.collect::<String>();
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func nvshmem_fence;
.extern .func nvshmem_quiet;
.extern .func (.param .b64 r) nvshmem_uint64_atomic_compare_swap (.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d);
.extern .func (.param .b64 r) nvshmem_uint64_atomic_fetch (.param .b64 a, .param .b32 b);
.extern .func (.param .b64 r) nvshmem_ptr (.param .b64 a, .param .b32 b);
.extern .func (.param .b64 r) nvshmem_signal_wait_until (.param .b64 a, .param .b32 b, .param .b64 c);
.extern .func (.param .b64 r) nvshmem_signal_fetch (.param .b64 a);
.extern .func (.param .b32 r) nvshmem_uint64_test (.param .b64 a, .param .b32 b, .param .b64 c);
.extern .func (.param .b32 r) nvshmem_uint64_test_all (.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d, .param .b64 e);
.extern .func nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.visible .entry k(.param .u64 k_param_0)
{{
.shared .align 8 .b64 shared;
.reg .b64 %rd<8>; .reg .b32 %r<4>; .reg .pred %p<4>;
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
