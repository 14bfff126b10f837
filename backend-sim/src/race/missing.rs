//! What is missing where two accesses race.

use std::fmt;

use onesided::At;
use onesided_ptx::Scope;

/// What would order the two accesses of a [`Race`](super::Race).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingEdge {
    /// Both go to one PE from one scope, or a signal that follows goes where the data went: a fence is enough.
    Fence {
        /// The line behind which it belongs.
        after: At,
        /// The line before which it belongs.
        before: At,
        /// Whether one `put_signal` in place of both calls does it too.
        put_signal: bool,
        /// In a kernel: the line of a fence by another thread of the block, which does not order these two.
        by_another: Option<At>,
    },
    /// Threads of a block send, and another one signals for all: a fence by each of them, or one behind a barrier of the block.
    BlocksFence {
        /// The line that sends, behind which it belongs.
        after: At,
        /// The line that signals, before which it belongs.
        before: At,
        /// The line of a fence by another thread, which does not order these two.
        by_another: Option<At>,
    },
    /// The transfer must be complete: a quiet.
    Quiet {
        /// The line behind which it belongs.
        after: At,
        /// The line before which it belongs.
        before: At,
    },
    /// The source of a non-blocking put is used again: a flush, or a quiet.
    Flush {
        /// The line behind which it belongs.
        after: At,
        /// The line before which it belongs.
        before: At,
    },
    /// A stream's work and what its PE does beside it: synchronize the stream, after a quiet on it if a transfer must be complete.
    Synchronize {
        /// The line behind which it belongs: of a kernel, its launch if that is known.
        after: At,
        /// The line before which it belongs.
        before: At,
        /// Whether the stream needs a quiet too. In a recorded run it does not if it has one behind the access: that is the line, then.
        quiet: bool,
        /// Whether the first line is a launch.
        launch: bool,
    },
    /// One access is atomic, and the other is not.
    Atomic {
        /// The line of the one that is not.
        at: At,
        /// Whether that one writes.
        writes: bool,
        /// Whether it is to another PE's memory, or to a word that is swapped, where no signal can be waited for.
        remote: bool,
    },
    /// Both are atomic, of different sizes: to each other they are not.
    OneSize {
        /// The line of the first.
        at: At,
        /// The line of the second.
        other: At,
    },
    /// Two kernels: the one stores plainly what the other loads strongly, so the load tells nothing.
    StrongStore {
        /// The line that stores.
        at: At,
        /// The line that loads.
        read: At,
    },
    /// A kernel loads plainly a word that a kernel compares and swaps.
    StrongLoad {
        /// The line that loads.
        at: At,
    },
    /// The transfer is complete, and was promised to its destination only: that PE must have seen it and then synchronize with the
    /// reader, who reads on another path.
    Through {
        /// The destination.
        pe: usize,
        /// The line behind which it belongs.
        after: At,
        /// The line before which it belongs.
        before: At,
    },
    /// A put writes again what its reader may not have read yet: a signal of the reader that the writer waits for, or a barrier.
    Answer {
        /// The line that reads, behind which the answer belongs.
        after: At,
        /// The line that writes, before whose next call the writer waits.
        before: At,
    },
    /// Nothing leads from one PE to the other: a barrier, or a signal that is sent behind the one and awaited before the other.
    Barrier {
        /// The line behind which it belongs.
        after: At,
        /// The line before which it belongs.
        before: At,
    },
    /// Two PEs, and a fence of a kernel that orders what is done on one GPU, or in one block, only.
    SystemFence {
        /// The line of the fence.
        at: At,
    },
    /// Two blocks of a PE, and a fence of a kernel that orders what is done in one block only.
    GpuFence {
        /// The line of the fence.
        at: At,
    },
    /// An access of a kernel that is atomic on its own GPU, or in its own block, only: the scope of the system, or of the GPU.
    Scope {
        /// The line of the access.
        at: At,
        /// The line of the other, if its scope is too narrow too.
        also: Option<At>,
        /// Whether the two are of two blocks of one PE: the scope of the GPU is enough.
        blocks: bool,
    },
    /// A reduction of a bulk copy, which is atomic on its own GPU only, and another PE: atomics of the system's scope.
    Reduction {
        /// The line of the reduction.
        at: At,
    },
    /// A fence behind a barrier of threads, where a thread before the barrier has read what is to be acquired: that thread must fence.
    ReadersFence {
        /// The line of the fence.
        fence: At,
        /// The line of the read, behind which it belongs.
        read: At,
        /// Who has set the flag.
        reach: Reach,
    },
    /// A kernel stores, and then sets a flag: a fence between the two.
    ReleasingFence {
        /// The line of what is stored.
        after: At,
        /// The line that sets the flag.
        flag: At,
        /// Who reads the flag.
        reach: Reach,
    },
    /// A thread of a kernel reads a flag, and then what the flag is about: a fence between the two.
    AcquiringFence {
        /// The line that reads the flag.
        read: At,
        /// The line before which it belongs.
        before: At,
        /// Who has set the flag.
        reach: Reach,
    },
    /// A kernel polls by a load of its own a word that a transfer updates. Over a network only NVSHMEM's waits and tests promise that what
    /// arrived before is visible.
    Wait {
        /// The line of the load.
        at: At,
    },
    /// A kernel reads by a read-only load what is written while it runs. Nothing but the kernel's launch orders such a load after a write.
    PlainLoad {
        /// The line of the load.
        at: At,
    },
    /// A bulk copy of a kernel may not be over: nobody has waited for it. What its thread does behind it, also a release, says nothing of it.
    Copy {
        /// The line of the copy.
        at: At,
        /// The line before which the wait belongs, behind which its thread tells others.
        before: At,
        /// Whether it writes to global memory, and is waited for by `cp.async.bulk.wait_group`; if not, by its mbarrier.
        writes: bool,
    },
    /// Several threads of a kernel write to one place by one line: one of them should, or each atomically.
    OneThread {
        /// The line.
        at: At,
        /// Whether they read the place there, too.
        updates: bool,
    },
    /// Blocks of one grid: a barrier of the grid, or a flag that the one sets behind a fence and the other waits for.
    Blocks {
        /// The line of the first access.
        after: At,
        /// The line of the second.
        before: At,
    },
    /// Threads of one block of a kernel: a barrier of the block. Or threads of several blocks of a cluster: a barrier of the cluster.
    Threads {
        /// The line of the first access.
        after: At,
        /// The line of the second.
        before: At,
        /// Where the threads of the block or cluster are.
        side: Side,
        /// Whether they are of several blocks of a cluster.
        cluster: bool,
    },
}

/// Of which access of a [`Race`](super::Race) the block or cluster is that lacks a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Side {
    /// Of both: two threads of one block or cluster.
    Both,
    /// Of the first: another of its threads signalled to the second access, and is not ordered after the first.
    First,
    /// Of the second: another of its threads learned of the first access, and is not ordered before the second.
    Second,
}

/// How far a fence of a kernel must reach: to the thread that reads the flag, or has set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// It is of the same block.
    Block,
    /// It is of the same PE.
    Gpu,
    /// It is of another PE.
    System,
}

impl Reach {
    /// That of a fence of a scope. The simulator takes a cluster for one block, but its fence is that of the GPU in CUDA C++.
    pub(crate) fn of(scope: Scope) -> Reach {
        match scope {
            Scope::Cta => Reach::Block,
            Scope::Cluster | Scope::Gpu => Reach::Gpu,
            Scope::Sys => Reach::System,
        }
    }

    /// The fence of CUDA C++ that reaches so far, and no farther.
    ///
    /// ```
    /// assert_eq!(onesided_sim::Reach::Gpu.fence(), "__threadfence");
    /// ```
    pub fn fence(self) -> &'static str {
        match self {
            Reach::Block => "__threadfence_block",
            Reach::Gpu => "__threadfence",
            Reach::System => "__threadfence_system",
        }
    }
}

impl MissingEdge {
    /// The end of a stream's work, behind a quiet if it sends something.
    pub(super) fn synchronize(after: At, before: At, quiet: bool) -> MissingEdge {
        MissingEdge::Synchronize { after, before, quiet, launch: false }
    }

    /// The same, where a line of a kernel stands for the launch of it: the host synchronizes behind that.
    pub(super) fn behind_the_launch(self, launch_of: impl Fn(At) -> Option<At>) -> MissingEdge {
        match self {
            MissingEdge::Synchronize { after, before, quiet, .. } if let Some(after) = launch_of(after) => {
                MissingEdge::Synchronize { after, before, quiet, launch: true }
            }
            other => other,
        }
    }

    /// The call to insert, and the two lines that it goes between. To replace a call, both are that call's line.
    pub fn call(&self) -> (&'static str, At, At) {
        match *self {
            MissingEdge::Fence { after, before, .. } | MissingEdge::BlocksFence { after, before, .. } => {
                ("fence", after, before)
            }
            MissingEdge::Quiet { after, before } => ("quiet", after, before),
            MissingEdge::Flush { after, before } => ("flush", after, before),
            MissingEdge::Synchronize { after, before, .. } => ("synchronize", after, before),
            MissingEdge::Barrier { after, before }
            | MissingEdge::Through { after, before, .. }
            | MissingEdge::Answer { after, before } => ("barrier_all", after, before),
            MissingEdge::Threads { after, before, cluster, .. } => {
                (if cluster { "cluster.sync" } else { "__syncthreads" }, after, before)
            }
            MissingEdge::Blocks { after, before } => ("grid.sync", after, before),
            MissingEdge::SystemFence { at } => ("__threadfence_system", at, at),
            MissingEdge::GpuFence { at } => ("__threadfence", at, at),
            MissingEdge::Scope { at, blocks, .. } => (if blocks { "scope gpu" } else { "scope sys" }, at, at),
            MissingEdge::Reduction { at } => ("atomicAdd_system", at, at),
            MissingEdge::ReadersFence { fence, read, reach } => (reach.fence(), read, fence),
            MissingEdge::ReleasingFence { after, flag, reach } => (reach.fence(), after, flag),
            MissingEdge::AcquiringFence { read, before, reach } => (reach.fence(), read, before),
            MissingEdge::OneThread { at, .. } => ("atomicAdd", at, at),
            MissingEdge::Wait { at } => ("nvshmem_signal_wait_until", at, at),
            MissingEdge::PlainLoad { at } => ("ld.global", at, at),
            MissingEdge::Copy { at, before, writes: true } => ("cp.async.bulk.wait_group", at, before),
            MissingEdge::Copy { at, before, .. } => ("mbarrier.try_wait", at, before),
            MissingEdge::StrongStore { at, .. } => ("volatile store", at, at),
            MissingEdge::StrongLoad { at } => ("volatile load", at, at),
            MissingEdge::OneSize { at, other } => ("access of one size", at, other),
            MissingEdge::Atomic { at, writes: true, .. } => ("signal_op", at, at),
            MissingEdge::Atomic { at, remote: true, .. } => ("atomic_fetch", at, at),
            MissingEdge::Atomic { at, .. } => ("signal_fetch", at, at),
        }
    }
}

/// Where two calls are that stand in one line: ` (columns 9 and 33)`.
pub(crate) fn in_one_line(one: At, other: At) -> String {
    let is_one = (one.file(), one.line()) == (other.file(), other.line());
    match [one.column(), other.column()] {
        [first, second] if is_one && first != second => format!(" (columns {first} and {second})"),
        _ => String::new(),
    }
}

impl fmt::Display for MissingEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = |f: &mut fmt::Formatter<'_>, what: &str, after: &At, before: &At| {
            match after == before {
                true => write!(f, "{what} between one call at {after:#} and the next"), // in a loop
                false => write!(f, "{what} between {after:#} and {before:#}{}", in_one_line(*after, *before)),
            }
        };
        match self {
            MissingEdge::Fence { after, before, put_signal, by_another } => {
                let who = if by_another.is_some() { "a fence by the same thread" } else { "a fence" };
                between(f, who, after, before)?;
                f.write_str(if *put_signal { ", or one put_signal" } else { "" })?;
                match by_another {
                    Some(at) => {
                        write!(f, "; the fence at {at} is another thread's, and no barrier puts it between them")
                    }
                    None => Ok(()),
                }
            }
            MissingEdge::BlocksFence { after, before, by_another } => {
                write!(
                    f,
                    "a fence by each thread that sends at {after}, or one behind a barrier of the block, before {before}, where another \
                     thread signals"
                )?;
                by_another.map_or(Ok(()), |at| {
                    write!(f, "; the fence at {at} is another thread's, and no barrier puts it between them")
                })
            }
            MissingEdge::Quiet { after, before } => between(f, "a quiet", after, before),
            MissingEdge::Flush { after, before } => between(f, "a flush or quiet", after, before),
            MissingEdge::Synchronize { after, before, quiet, launch } => {
                let quiet = if *quiet { "a quiet on the stream, and " } else { "" };
                let launch = if *launch { "the launch at " } else { "" };
                write!(f, "{quiet}synchronizing the stream after {launch}{after} and before {before}")
            }
            MissingEdge::Atomic { at, writes: true, .. } => {
                write!(f, "an atomic update (put_signal, signal_op) in place of the call at {at}")
            }
            MissingEdge::Atomic { at, remote, .. } => {
                let call = if *remote { "atomic_fetch" } else { "signal_fetch, signal_wait_until" };
                write!(f, "an atomic read ({call}) in place of the call at {at}")
            }
            MissingEdge::StrongStore { at, read } => write!(
                f,
                "a strong store (volatile, st.relaxed.sys, or an atomic of the system) in place of the plain one at {at:#}: the strong load at \
                 {read:#} knows nothing of a plain store"
            ),
            MissingEdge::OneSize { at, other } => write!(
                f,
                "accesses of one size at {at:#} and {other:#}: each is atomic, but to one of another size it is not"
            ),
            MissingEdge::StrongLoad { at } => write!(
                f,
                "a strong load (volatile, ld.relaxed.sys) in place of the plain one at {at:#}: the word is compared and swapped beside it"
            ),
            MissingEdge::SystemFence { at } => {
                write!(f, "a fence of system scope (__threadfence_system) in place of the one at {at}")
            }
            MissingEdge::GpuFence { at } => {
                write!(f, "a fence in the scope of the GPU (__threadfence) in place of the one at {at}")
            }
            MissingEdge::Scope { at, also, blocks } => {
                let also = also.map_or(String::new(), |also| format!(" and {also}"));
                let (wider, whom) = match blocks {
                    true => ("gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.gpu)", "block"),
                    false => ("sys (atomicAdd_system, cuda::thread_scope_system, ld.acquire.sys)", "PE"),
                };
                write!(
                    f,
                    "scope {wider} in place of the narrower one at {at}{also}: to another {whom} such an access is no atomic"
                )
            }
            MissingEdge::Reduction { at } => write!(
                f,
                "atomics of scope sys (atomicAdd_system, red.sys) in place of the reduction of a bulk copy at {at}: that has the scope of \
                 its GPU, so to another PE it is no atomic"
            ),
            MissingEdge::ReadersFence { fence, read, reach } => write!(
                f,
                "a fence ({}) by the thread that reads the flag, behind {read} and before the barrier; the one at \
                 {fence} is behind it, and acquires only what its own thread has read",
                reach.fence()
            ),
            MissingEdge::ReleasingFence { after, flag, reach } => {
                between(f, &format!("a fence ({})", reach.fence()), after, flag)?;
                f.write_str(", which sets the flag")
            }
            MissingEdge::AcquiringFence { read, before, reach } => {
                let what = format!("a fence ({}), by the thread that reads the flag,", reach.fence());
                between(f, &what, read, before)
            }
            MissingEdge::Wait { at } => write!(
                f,
                "a wait of NVSHMEM (nvshmem_signal_wait_until, nvshmem_uint64_wait_until, or a test) in place of the load at {at}: over a network, \
                 a load does not show what arrived before"
            ),
            MissingEdge::PlainLoad { at } => write!(
                f,
                "a plain load in place of the read-only one at {at} (__ldg, ld.global.nc, or a load that the compiler has made one, through a \
                 pointer that is const and __restrict__: leave out one of these): memory that is read so must not be written while the kernel \
                 runs, and no wait, fence or barrier in the kernel orders the load behind a write"
            ),
            MissingEdge::Copy { at, before, writes: true } => {
                let what = "cp.async.bulk.wait_group (without .read, which waits for the source only) by the thread that copies, behind \
                            cp.async.bulk.commit_group,";
                between(f, what, at, before)
            }
            MissingEdge::Copy { at, before, .. } => {
                between(f, "a wait for the phase of the mbarrier that counts the bulk copy,", at, before)
            }
            MissingEdge::OneThread { at, updates: true } => {
                write!(
                    f,
                    "an atomic (atomicAdd) in place of what several threads read and write at {at}, or a barrier between them"
                )
            }
            MissingEdge::OneThread { at, updates: false } => write!(
                f,
                "one thread that writes at {at} in place of several (it is a race also if all write the same), or an atomic, or a barrier \
                 between them"
            ),
            MissingEdge::Blocks { after, before } => {
                let what =
                    "a barrier of the grid (grid.sync), or an atomic flag set behind a __threadfence and waited for,";
                between(f, what, after, before)
            }
            MissingEdge::Threads { after, before, side, cluster } => {
                let (what, another) = match cluster {
                    true => ("a barrier of the cluster (cluster.sync())", "a thread of another of its blocks"),
                    false => ("a barrier of the block (__syncthreads)", "another of its threads"),
                };
                match side {
                    Side::Both => between(f, what, after, before),
                    Side::First => write!(
                        f,
                        "{what} behind {after}, before the call by which {another} tells the reader at {before}"
                    ),
                    Side::Second => {
                        write!(f, "{what} before {before}, behind the wait by which {another} knows of {after}")
                    }
                }
            }
            MissingEdge::Through { pe, after, before } => {
                let what = format!("a barrier, or a signal of PE {pe}, behind what tells PE {pe} of the first,");
                between(f, &what, after, before)
            }
            MissingEdge::Answer { after, before } => write!(
                f,
                "an answer behind {after}, for which the writer waits before it calls {before} again: a signal, or a barrier"
            ),
            // perhaps in a loop, perhaps each PE calls it once
            MissingEdge::Barrier { after, before } if after == before => write!(
                f,
                "a barrier, or a signal and a wait for it, between the call of one PE at {after:#} and that of the other; or other memory for \
                 one of them"
            ),
            MissingEdge::Barrier { after, before } => {
                between(f, "a barrier, or a signal and a wait for it,", after, before)
            }
        }
    }
}
