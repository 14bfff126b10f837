//! What kernels do: each file has two kernels, `buggy` and `fixed`, and its compiled text beside it.
//!
//! A bug is a name, what is wrong with it, and the grid on which each PE launches the kernel.
#![allow(unsafe_code)] // kernels are launched

use onesided::{Backend, Grid, Pe, Result, Source, args, expect_eq};

use crate::{Class, Edit, Label};

/// Elements of the arrays that kernels work on.
const ELEMENTS: usize = 64;

/// Every PE launches a kernel: on an array of zeros, one of 1, 2, 3 and so on, some flags, and a word in which it says that it has
/// read something wrong.
fn launch(pe: &Pe<impl Backend>, source: &Source, kernel: &str, grid: &Grid) -> Result<()> {
    let data = pe.alloc_zeroed::<i32>(ELEMENTS)?;
    let mine = pe.alloc::<i32>(ELEMENTS)?;
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let wrong = pe.alloc_zeroed::<i32>(1)?;
    pe.write(&mine, &(1..=ELEMENTS as i32).collect::<Vec<_>>())?;
    pe.host().barrier_all()?;
    let (module, stream) = (pe.module(source)?, pe.stream()?);
    // SAFETY: every kernel of this chapter takes these arguments, and accesses nothing else. What one of them does wrong is a finding of
    // the simulator.
    unsafe { pe.on(&stream).launch(&module.kernel(kernel)?, grid, args![&data, &mine, &flags, &wrong])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    expect_eq(pe.read_one(&wrong)?, 0, "what the kernel has to complain of")?;
    pe.free(wrong)?;
    pe.free(flags)?;
    pe.free(mine)?;
    pe.free(data)
}

macro_rules! kernels {
    ($($name:ident: $label:expr, $blocks:literal x $threads:literal;)*) => {
        /// The chapter's bugs.
        pub(crate) fn bugs<B: Backend>() -> Vec<crate::Bug<B>> {
            vec![$({
                const FILE: &str = concat!(stringify!($name), ".cu");
                const TEXT: &str = include_str!(concat!(stringify!($name), ".cu"));
                fn source() -> Source {
                    Source::ptx(FILE, include_str!(concat!(stringify!($name), ".ptx"))).compiled_from(FILE, TEXT)
                }
                crate::Bug {
                    name: stringify!($name),
                    chapter: "kernels",
                    label: $label,
                    file: concat!("kernels/", stringify!($name), ".cu"),
                    text: TEXT,
                    buggy: |pe| launch(pe, &source(), "buggy", &Grid::new($blocks, $threads)),
                    fixed: |pe| launch(pe, &source(), "fixed", &Grid::new($blocks, $threads)),
                }
            }),*]
        }
    };
}

kernels! {
    put_then_signal: race().seen("MISUSE.md, row 16").fixed_by(Edit::Fence), 1 x 1;
    signal_before_the_block: race().on_nvlink_too().seen("MISUSE.md, row 16"), 1 x 64;
    read_before_the_waiter: race().on_nvlink_too().seen("MISUSE.md, row 15"), 1 x 64;
    sync_for_barrier: race().seen("MISUSE.md, row 19").fixed_by(Edit::Quiet), 1 x 1;
    source_overwritten: race().on_nvlink_too().seen("MISUSE.md, row 13").fixed_by(Edit::Flush), 1 x 1;
    get_nbi_used_early: race().on_nvlink_too().seen("MISUSE.md, row 14").fixed_by(Edit::Quiet), 1 x 1;
    slot_filled_again: race().on_nvlink_too().seen("deepseek-ai/DeepEP, issue 166"), 1 x 1;
    flag_zeroed_by_the_kernel: race().on_nvlink_too().seen("NVSHMEM4Py tutorial, put-with-signal cell").fixed_by(Edit::Barrier), 1 x 1;
    counter_by_get_and_put: race().on_nvlink_too().seen("MISUSE.md, row 25"), 1 x 1;
    blocks_without_order: race().on_nvlink_too().seen("conformance suite, device/misuse"), 2 x 1;
    polled_by_a_volatile_load: race().on_nvlink_too().seen("conformance suite, device/misuse"), 1 x 1;
    polled_behind_a_fence: race().seen("MISUSE.md, row 62"), 1 x 1;
    fence_behind_the_barrier: race().on_nvlink_too().seen("vllm-project/vllm, pull request 50941"), 1 x 64;
    fence_of_the_block: race().on_nvlink_too().seen("MISUSE.md, row 63"), 2 x 1;
    read_only_load: race().on_nvlink_too().seen("MISUSE.md, row 64"), 1 x 1;
    waited_for_the_source: race().on_nvlink_too().seen("MISUSE.md, row 65"), 1 x 1;
    kernels_wait_for_each_other: Label::deadlock(2).on_nvlink_too().seen("conformance suite, misuse/both_wait_first"), 1 x 1;
    loaded_behind_a_look: Label::new(Class::Lint, 2).on_nvlink_too().seen("MISUSE.md, row 67"), 1 x 1;
    atomic_within_the_gpu: race().on_nvlink_too().seen("MISUSE.md, row 61"), 1 x 1;
    put_by_half_a_block: fault().seen("conformance suite, device/misuse"), 1 x 64;
    fetched_without_a_fence: race().on_nvlink_too().seen("MISUSE.md, row 68"), 1 x 32;
    barrier_in_a_branch: fault().seen("conformance suite, device/misuse"), 1 x 32;
    copied_without_a_fence: fault().seen("MISUSE.md, row 66"), 1 x 64;
    tile_read_early: fault().seen("conformance suite, device/misuse"), 1 x 64;
    put_beyond_the_end: fault().seen("conformance suite, device/misuse"), 1 x 64;
}

const fn race() -> Label {
    Label::race(2)
}

/// A mistake inside a kernel that no order of transfers hides.
const fn fault() -> Label {
    Label::new(Class::Kernel, 2).on_nvlink_too()
}
