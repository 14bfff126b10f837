//! Random kernels that pass messages, and hosts and streams around them: what each does, and the kernels as PTX.

use std::fmt::Write;

pub(crate) const PES: usize = 2;
pub(crate) const BLOCKS: usize = 2;
/// Data, then flags that strong accesses share. One word more is a signal, and behind it each thread has one for what it has seen.
pub(crate) const WORDS: usize = 4;

/// In place of a PE: the shared memory of the thread's block.
pub(crate) const SHARED: usize = PES;
/// The word that signals change, and waits and strong loads look at.
pub(crate) const SIGNAL: usize = WORDS;

/// The threads that an access or a fence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Cta,
    Gpu,
    Sys,
}

/// How strong an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Weak,
    Relaxed(Scope),
    /// A load acquires, a store releases, an atomic does both.
    Strong(Scope),
}

/// What a thread does with what it finds where it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    Nothing,
    /// Notes it.
    Notes,
    /// Notes whether it is this number. If that is not so, or is so and `unless`, it leaves out the next steps.
    Asks {
        number: u64,
        unless: bool,
        steps: usize,
    },
}

/// What a thread does. `of` is the PE whose word it is, or [`SHARED`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Loads, and notes what is there.
    Read {
        of: usize,
        word: usize,
        order: Order,
    },
    Write {
        of: usize,
        word: usize,
        value: u64,
        order: Order,
    },
    /// Adds 1.
    Add {
        of: usize,
        word: usize,
        order: Order,
        fetch: Fetch,
    },
    /// Loads until the word is as large.
    Await {
        of: usize,
        word: usize,
        value: u64,
        order: Order,
    },
    /// `sc`: sequential; otherwise it releases and acquires.
    Fence {
        scope: Scope,
        sc: bool,
    },
    /// All threads of the block that are left meet.
    Meet,
    /// Arrives at the barrier of the cluster, which is the block, and goes on. `releases`: and tells what came before.
    Arrive {
        releases: bool,
    },
    /// Until all threads of the block that are left have arrived. A thread does both once, or neither.
    Arrived,
    /// Adds 1 to the PE's signal.
    Signal {
        to: usize,
    },
    /// Until its own PE's signal is as large: by a call that waits, or by a loop around one that fetches.
    Wait {
        value: u64,
    },
    /// The same by a loop around a load.
    Look {
        value: u64,
        order: Order,
    },
    /// Puts a value.
    P {
        to: usize,
        word: usize,
        value: u64,
    },
    /// Gets, and notes what was there.
    G {
        of: usize,
        word: usize,
    },
    /// Puts one of its own PE's words, without waiting.
    Put {
        to: usize,
        word: usize,
        src: usize,
    },
    NvshmemFence,
    Quiet,
    /// A host launches the kernel, and enqueues the steps of its stream behind it.
    Launch,
    /// A host waits for its stream.
    Synchronize,
}

/// What each thread does, and hosts and streams, if there are any.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The steps of the threads: those of a block one after the other, and the blocks of a PE. Behind them those of each PE's host, and then of each
    /// PE's stream.
    pub(crate) steps: Vec<Vec<Step>>,
    /// How many are threads.
    pub(crate) threads: usize,
}

/// Who acts: what it issues belongs to the scope of these on its PE, and is ordered and completed by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Thread,
    Host,
    Stream,
}

impl Program {
    /// A kernel alone.
    pub(crate) fn of_threads(steps: Vec<Vec<Step>>) -> Program {
        Program { threads: steps.len(), steps }
    }

    pub(crate) fn has_hosts(&self) -> bool {
        self.steps.len() > self.threads
    }

    /// The host of a PE.
    pub(crate) fn host(&self, pe: usize) -> usize {
        self.threads + pe
    }

    /// The stream of a PE.
    pub(crate) fn stream(&self, pe: usize) -> usize {
        self.threads + PES + pe
    }

    /// The threads of a PE.
    pub(crate) fn threads_of(&self, pe: usize) -> std::ops::Range<usize> {
        let of_pe = self.threads / PES;
        pe * of_pe..(pe + 1) * of_pe
    }

    pub(crate) fn role(&self, agent: usize) -> Role {
        match agent.checked_sub(self.threads) {
            None => Role::Thread,
            Some(behind) if behind < PES => Role::Host,
            Some(_) => Role::Stream,
        }
    }

    /// The PE and the block of a thread. Others are in a block of their own.
    pub(crate) fn place(&self, agent: usize) -> (usize, usize) {
        let of_block = self.threads / PES / BLOCKS;
        match agent.checked_sub(self.threads) {
            None => (agent / of_block / BLOCKS, agent / of_block),
            Some(behind) => (behind % PES, PES * BLOCKS + behind),
        }
    }
}

impl Step {
    /// As a thread of this PE makes it.
    pub(crate) fn on(self, pe: usize) -> Step {
        match self {
            Step::Look { value, order } => Step::Await { of: pe, word: SIGNAL, value, order },
            step => step,
        }
    }
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }
}

impl Order {
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Order::Weak => None,
            Order::Relaxed(scope) | Order::Strong(scope) => Some(scope),
        }
    }

    /// As PTX; `strong`: the name of what is more than relaxed.
    fn suffix(self, strong: &str) -> String {
        match self {
            Order::Weak => String::new(),
            Order::Relaxed(scope) => format!(".relaxed.{}", scope.name()),
            Order::Strong(scope) => format!(".{strong}.{}", scope.name()),
        }
    }
}

/// A thread's steps. %rd1 is the memory, %rd6 that of the other PE, %rd2 what was seen.
fn lines(pe: usize, thread: usize, noted_at: usize, steps: &[Step]) -> String {
    let space = |of: usize| if of == SHARED { ".shared" } else { ".global" };
    let at = |of: usize, word: usize| {
        let base = match of {
            SHARED => "shared",
            _ if of == pe => "%rd1",
            _ => "%rd6",
        };
        format!("[{base}+{}]", 8 * word)
    };
    let note = "mad.lo.u64 %rd2, %rd2, 10, %rd4;\n";
    let mut text = String::new();
    let mut over: Vec<(usize, String)> = Vec::new(); // the last steps that are left out, and where it goes on
    for (i, step) in steps.iter().enumerate() {
        let step = step.on(pe);
        let label = format!("$T{thread}S{i}");
        text += &match step {
            Step::Read { of, word, order } => {
                format!("ld{}{}.u64 %rd4, {};\n{note}", order.suffix("acquire"), space(of), at(of, word))
            }
            Step::Write { of, word, value, order } => {
                format!("st{}{}.u64 {}, {value};\n", order.suffix("release"), space(of), at(of, word))
            }
            Step::Add { of, word, order, fetch: Fetch::Notes } => {
                format!("atom{}{}.add.u64 %rd4, {}, 1;\n{note}", order.suffix("acq_rel"), space(of), at(of, word))
            }
            Step::Add { of, word, order, fetch: Fetch::Asks { number, unless, steps } } => {
                over.push((i + steps, format!("{label}A:\n")));
                format!(
                    "{{\n.reg .b64 %old; .reg .pred %yes;\natom{}{}.add.u64 %old, {}, 1;\nsetp.eq.u64 %yes, %old, {number};\n\
                     selp.u64 %rd4, 2, 1, %yes;\n}}\n{note}setp.eq.u64 %p1, %rd4, {};\n@%p1 bra {label}A;\n",
                    order.suffix("acq_rel"),
                    space(of),
                    at(of, word),
                    if unless { 2 } else { 1 },
                )
            }
            Step::Add { of, word, order, fetch: Fetch::Nothing } => {
                format!("red{}{}.add.u64 {}, 1;\n", order.suffix("release"), space(of), at(of, word))
            }
            Step::Await { of, word, value, order } => format!(
                "{label}: ld{}{}.u64 %rd4, {};\nsetp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n",
                order.suffix("acquire"),
                space(of),
                at(of, word)
            ),
            Step::Fence { scope, sc } => format!("fence.{}.{};\n", if sc { "sc" } else { "acq_rel" }, scope.name()),
            Step::Meet => "barrier.sync 0;\n".to_string(),
            Step::Arrive { releases: true } => "barrier.cluster.arrive;\n".to_string(),
            Step::Arrive { releases: false } => "barrier.cluster.arrive.relaxed;\n".to_string(),
            Step::Arrived => "barrier.cluster.wait;\n".to_string(),
            Step::Signal { to } => format!(
                "add.u64 %rd3, %rd1, {};\n{{ .param .b64 a; st.param.b64 [a], %rd3; .param .b64 b; st.param.b64 [b], 1;\n\
                 .param .b32 c; st.param.b32 [c], 10; .param .b32 d; st.param.b32 [d], {to};\n\
                 call.uni nvshmemx_signal_op, (a, b, c, d); }}\n",
                8 * WORDS
            ),
            Step::Wait { value } if (thread + i) % 2 == 1 => format!(
                "add.u64 %rd3, %rd1, {};\n{label}: {{ .param .b64 result; .param .b64 a; st.param.b64 [a], %rd3;\n\
                 call.uni (result), nvshmem_signal_fetch, (a); ld.param.b64 %rd4, [result]; }}\n\
                 setp.lt.u64 %p1, %rd4, {value};\n@%p1 bra {label};\n",
                8 * WORDS
            ),
            Step::Wait { value } => format!(
                "add.u64 %rd3, %rd1, {};\n{{ .param .b64 result; .param .b64 a; st.param.b64 [a], %rd3;\n\
                 .param .b32 b; st.param.b32 [b], 5; .param .b64 c; st.param.b64 [c], {value};\n\
                 call.uni (result), nvshmem_signal_wait_until, (a, b, c); }}\n",
                8 * WORDS
            ),
            Step::P { to, word, value } => format!(
                "add.u64 %rd3, %rd1, {};\n{{ .param .b64 a; st.param.b64 [a], %rd3; .param .b64 b; st.param.b64 [b], {value};\n\
                 .param .b32 c; st.param.b32 [c], {to}; call.uni nvshmem_uint64_p, (a, b, c); }}\n",
                8 * word
            ),
            Step::G { of, word } => format!(
                "add.u64 %rd3, %rd1, {};\n{{ .param .b64 result; .param .b64 a; st.param.b64 [a], %rd3; .param .b32 b; st.param.b32 [b], {of};\n\
                 call.uni (result), nvshmem_uint64_g, (a, b); ld.param.b64 %rd4, [result]; }}\n{note}",
                8 * word
            ),
            Step::Put { to, word, src } => format!(
                "add.u64 %rd3, %rd1, {};\nadd.u64 %rd5, %rd1, {};\n{{ .param .b64 a; st.param.b64 [a], %rd3; .param .b64 b; st.param.b64 [b], %rd5;\n\
                 .param .b64 c; st.param.b64 [c], 1; .param .b32 d; st.param.b32 [d], {to}; call.uni nvshmem_uint64_put_nbi, (a, b, c, d); }}\n",
                8 * word,
                8 * src
            ),
            Step::Look { .. } => unreachable!("it is an `Await`"),
            Step::Launch | Step::Synchronize => unreachable!("they are a host's"),
            Step::NvshmemFence => "{ call.uni nvshmem_fence, (); }\n".to_string(),
            Step::Quiet => "{ call.uni nvshmem_quiet, (); }\n".to_string(),
        };
        over.iter().filter(|(last, _)| *last == i).for_each(|(_, label)| text += label);
    }
    _ = writeln!(text, "st.global.u64 [%rd1+{}], %rd2;\nbra.uni $END;", 8 * (WORDS + 1 + noted_at));
    text
}

pub(crate) fn source(program: &Program) -> String {
    let of_pe = program.threads / PES;
    let mut dispatch = String::new();
    let mut threads = String::new();
    for (i, steps) in program.steps[..program.threads].iter().enumerate() {
        _ = writeln!(dispatch, "setp.eq.s32 %p1, %r3, {i};\n@%p1 bra $T{i};");
        _ = write!(threads, "$T{i}:\n{}", lines(i / of_pe, i, i % of_pe, steps));
    }
    let of_block = of_pe / BLOCKS;
    let zero: String = (0..WORDS).map(|word| format!("@%p1 st.shared.u64 [shared+{}], 0;\n", 8 * word)).collect();
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func (.param .b64 r) nvshmem_ptr (.param .b64 a, .param .b32 b);
.extern .func nvshmem_fence;
.extern .func nvshmem_quiet;
.extern .func nvshmem_uint64_p (.param .b64 a, .param .b64 b, .param .b32 c);
.extern .func (.param .b64 r) nvshmem_uint64_g (.param .b64 a, .param .b32 b);
.extern .func nvshmem_uint64_put_nbi (.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d);
.extern .func (.param .b64 r) nvshmem_signal_wait_until (.param .b64 a, .param .b32 b, .param .b64 c);
.extern .func (.param .b64 r) nvshmem_signal_fetch (.param .b64 a);
.extern .func nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.visible .entry k(.param .u64 k_param_0)
{{
.shared .align 8 .b64 shared[{WORDS}];
.reg .b64 %rd<7>; .reg .b32 %r<6>; .reg .pred %p<2>;
mov.u32 %r2, %tid.x;
setp.eq.s32 %p1, %r2, 0;
{zero}barrier.sync 0;
ld.param.u64 %rd1, [k_param_0];
mov.u64 %rd2, 0;
mov.u32 %r2, %tid.x;
mov.u32 %r4, %ctaid.x;
mad.lo.s32 %r2, %r4, {of_block}, %r2;
{{ .param .b32 result; call.uni (result), nvshmem_my_pe, (); ld.param.b32 %r1, [result]; }}
sub.s32 %r5, 1, %r1;
{{ .param .b64 result; .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], %r5;
call.uni (result), nvshmem_ptr, (a, b); ld.param.b64 %rd6, [result]; }}
mad.lo.s32 %r3, %r1, {of_pe}, %r2;
{dispatch}bra.uni $END;
{threads}$END: ret;
}}
"
    )
}
