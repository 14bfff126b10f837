//! Random programs of strong accesses and fences: one thread on each PE.

use std::fmt::Write;

use proptest::prelude::*;

/// Words, one after the other on each PE.
pub(crate) const WORDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Every write of a program has a value of its own, from 1 on.
    Store {
        word: usize,
        value: u64,
        release: bool,
    },
    Load {
        word: usize,
        acquire: bool,
    },
    /// Writes, and finds what was there; `both`: releases and acquires.
    Exchange {
        word: usize,
        value: u64,
        both: bool,
    },
    /// `sc`: sequential; otherwise it releases and acquires.
    Fence {
        sc: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) threads: Vec<Vec<Step>>,
}

impl Step {
    pub(crate) fn word(self) -> Option<usize> {
        match self {
            Step::Store { word, .. } | Step::Load { word, .. } | Step::Exchange { word, .. } => Some(word),
            Step::Fence { .. } => None,
        }
    }

    pub(crate) fn reads(self) -> Option<usize> {
        self.word().filter(|_| !matches!(self, Step::Store { .. }))
    }

    pub(crate) fn writes_to(self) -> Option<usize> {
        self.word().filter(|_| !matches!(self, Step::Load { .. }))
    }

    pub(crate) fn value(self) -> Option<u64> {
        match self {
            Step::Store { value, .. } | Step::Exchange { value, .. } => Some(value),
            Step::Load { .. } | Step::Fence { .. } => None,
        }
    }

    pub(crate) fn releases(self) -> bool {
        matches!(self, Step::Store { release: true, .. } | Step::Exchange { both: true, .. })
    }

    pub(crate) fn acquires(self) -> bool {
        matches!(self, Step::Load { acquire: true, .. } | Step::Exchange { both: true, .. })
    }
}

/// Programs of so many threads, with up to so many steps each, of so many words.
pub(crate) fn programs(threads: usize, steps: usize, words: usize) -> impl Strategy<Value = Program> {
    let (word, value) = (|| 0..words, 0);
    let step = prop_oneof![
        4 => (word(), prop::bool::weighted(0.3)).prop_map(move |(word, release)| Step::Store { word, value, release }),
        4 => (word(), prop::bool::weighted(0.3)).prop_map(|(word, acquire)| Step::Load { word, acquire }),
        2 => (word(), any::<bool>()).prop_map(move |(word, both)| Step::Exchange { word, value, both }),
        2 => any::<bool>().prop_map(|sc| Step::Fence { sc }),
    ];
    let thread = prop::collection::vec(step, 2..=steps);
    prop::collection::vec(thread, threads).prop_map(|mut threads| {
        let mut last = 0;
        for step in threads.iter_mut().flatten() {
            if let Step::Store { value, .. } | Step::Exchange { value, .. } = step {
                last += 1;
                *value = last;
            }
        }
        Program { threads }
    })
}

impl Program {
    /// What each thread has seen where its reads find this: those of the first thread come first.
    pub(crate) fn sees(&self, found: &[u64]) -> Vec<u64> {
        let mut found = found.iter();
        let of = |steps: &Vec<Step>| {
            let reads = steps.iter().filter(|step| step.reads().is_some());
            reads.zip(&mut found).fold(0, |seen, (_, value)| seen << 4 | value)
        };
        self.threads.iter().map(of).collect()
    }

    /// As a kernel of one thread. %rd1 is the memory, %rd4 what was found.
    pub(crate) fn source(&self) -> String {
        let pes = self.threads.len();
        let mut text = String::new();
        for (pe, steps) in self.threads.iter().enumerate() {
            _ = writeln!(text, "setp.ne.s32 %p1, %r1, {pe};\n@%p1 bra $T{pe};");
            for step in steps {
                let at = step.word().map(|word| format!("[%base{}+{}]", word % pes, 8 * word)).unwrap_or_default();
                text += &match step {
                    Step::Store { value, release, .. } => {
                        format!("st.{}.sys.global.u64 {at}, {value};\n", if *release { "release" } else { "relaxed" })
                    }
                    Step::Load { acquire, .. } => {
                        format!("ld.{}.sys.global.u64 %rd3, {at};\n", if *acquire { "acquire" } else { "relaxed" })
                    }
                    Step::Exchange { value, both, .. } => {
                        let order = if *both { "acq_rel" } else { "relaxed" };
                        format!("mov.u64 %rd2, {value};\natom.{order}.sys.global.exch.b64 %rd3, {at}, %rd2;\n")
                    }
                    Step::Fence { sc } => format!("fence.{}.sys;\n", if *sc { "sc" } else { "acq_rel" }),
                };
                if step.reads().is_some() {
                    text += "shl.b64 %rd4, %rd4, 4;\nadd.u64 %rd4, %rd4, %rd3;\n";
                }
            }
            _ = writeln!(text, "$T{pe}:");
        }
        let base = |pe: usize| {
            format!(
                "{{ .param .b64 result; .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], {pe};\n\
                 call.uni (result), nvshmem_ptr, (a, b); ld.param.b64 %base{pe}, [result]; }}\n"
            )
        };
        let bases: String = (0..pes).map(base).collect();
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func (.param .b64 r) nvshmem_ptr (.param .b64 a, .param .b32 b);
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{{
.reg .b64 %rd<6>; .reg .b64 %base<{pes}>; .reg .b32 %r<3>; .reg .pred %p<2>;
ld.param.u64 %rd1, [k_param_0];
ld.param.u64 %rd5, [k_param_1];
mov.u64 %rd4, 0;
{{ .param .b32 result; call.uni (result), nvshmem_my_pe, (); ld.param.b32 %r1, [result]; }}
{bases}{text}st.global.u64 [%rd5], %rd4;
ret;
}}
"
        )
    }
}
