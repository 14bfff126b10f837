//! The calls of a measurement, and who makes them: the API here, C++ in `cpp.rs`.
#![allow(unsafe_code)] // kernels are launched

use onesided::{
    Argument, Backend, Cmp, Error, Grid, Kernel, Module, Pe, ReduceOp, Result, SignalOp, Source, Stream,
    SymmetricSlice, args,
};

/// The kernels of the measurements.
const TEXT: &str = include_str!("../../kernels/calls.cu");
const PTX: &str = include_str!("../../kernels/calls.ptx");
const NOTHING: &str = include_str!("../../kernels/nothing.ptx");

/// The kernels as they run on both backends: PTX, whose calls of NVSHMEM are calls.
pub(super) fn kernels() -> Source {
    Source::ptx("calls.cu", PTX)
}

/// A kernel that does nothing, in a module of its own, as the one is that C++ launches.
pub(super) fn nothing() -> Source {
    Source::ptx("nothing.cu", NOTHING)
}

/// The same kernels with NVSHMEM's own headers.
pub(super) fn inlined() -> Source {
    Source::cuda("calls.cu", TEXT).inlined()
}

/// Calls of one kind, with their operands.
#[derive(Debug)]
pub(super) enum Calls<'a, B: Backend> {
    /// Puts to PE 1.
    Put { dst: SymmetricSlice<'a, u8>, src: SymmetricSlice<'a, u8> },
    /// Gets from PE 1, on the stream.
    Get { dst: SymmetricSlice<'a, u8>, src: SymmetricSlice<'a, u8> },
    /// Gets from PE 1, by the host.
    HostGet { dst: SymmetricSlice<'a, u8>, src: SymmetricSlice<'a, u8> },
    /// Each a put with signal and a wait for one, there and back between PE 0 and PE 1.
    PingPong {
        dst: SymmetricSlice<'a, u8>,
        src: SymmetricSlice<'a, u8>,
        /// One word.
        flag: SymmetricSlice<'a, u64>,
        /// The last value that the flag had: every loop goes on from there, and each call adds one.
        turn: u64,
    },
    /// Barriers of all PEs.
    Barrier,
    /// Sums over all PEs.
    Reduce { sums: SymmetricSlice<'a, f32>, addends: SymmetricSlice<'a, f32> },
    /// Launches of the kernel that does nothing.
    Launch { kernel: &'a Kernel<'a, B>, is_cooperative: bool, operands: Operands<'a> },
    /// Calls by a thread of a kernel of `calls.cu`.
    Device { kernel: &'a Kernel<'a, B>, operands: Operands<'a> },
}

// A derived one would ask for a backend that can be copied.
impl<B: Backend> Copy for Calls<'_, B> {}
impl<B: Backend> Clone for Calls<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

/// What every kernel takes, but the number of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands<'a> {
    /// As long as the source, in whole `long long`.
    pub(super) dst: SymmetricSlice<'a, u8>,
    pub(super) src: SymmetricSlice<'a, u8>,
    /// One word.
    pub(super) flag: SymmetricSlice<'a, u64>,
}

impl Operands<'_> {
    /// The number of `long long` to put.
    pub(super) fn count(&self) -> i32 {
        (self.src.len() / 8) as i32
    }

    fn arguments(&self, calls: u32) -> [Argument; 5] {
        let [dst, src, flag, count, calls] = args![self.dst, self.src, self.flag, self.count(), calls as i32];
        [dst, src, flag, count, calls].map(Clone::clone)
    }
}

/// Someone who makes the calls.
pub(super) trait Loops<B: Backend> {
    /// Makes `operations` calls on the stream, and nothing else: what this takes is what is measured.
    fn issue(&self, pe: &Pe<B>, stream: &Stream<B>, calls: Calls<'_, B>, operations: u32) -> Result<()>;
}

/// The calls as a program makes them, through the API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Api;

impl<B: Backend> Loops<B> for Api {
    fn issue(&self, pe: &Pe<B>, stream: &Stream<B>, calls: Calls<'_, B>, operations: u32) -> Result<()> {
        match calls {
            Calls::Put { dst, src } => {
                for _ in 0..operations {
                    pe.on(stream).put(dst, src, 1)?;
                }
            }
            Calls::Get { dst, src } => {
                for _ in 0..operations {
                    pe.on(stream).get(dst, src, 1)?;
                }
            }
            Calls::HostGet { dst, src } => {
                for _ in 0..operations {
                    pe.host().get(dst, src, 1)?;
                }
            }
            Calls::PingPong { dst, src, flag, turn } => {
                let (on, me, flag) = (pe.on(stream), pe.my_pe(), flag.signal(0));
                for turn in (turn + 1..).take(operations as usize) {
                    if me == 1 {
                        on.signal_wait_until(flag, Cmp::Ge, turn)?;
                    }
                    on.put_signal(dst, src, flag, turn, SignalOp::Set, 1 - me)?;
                    if me == 0 {
                        on.signal_wait_until(flag, Cmp::Ge, turn)?;
                    }
                }
            }
            Calls::Barrier => {
                for _ in 0..operations {
                    pe.on(stream).barrier_all()?;
                }
            }
            Calls::Reduce { sums, addends } => {
                let on = pe.on(stream);
                for _ in 0..operations {
                    on.reduce(pe.world(), sums, addends, ReduceOp::Sum)?;
                }
            }
            Calls::Launch { kernel, is_cooperative, operands } => {
                let (on, grid) = (pe.on(stream), Grid::new(1, 1));
                let grid = if is_cooperative { grid.cooperative() } else { grid };
                let Operands { dst, src, flag, .. } = operands;
                for _ in 0..operations {
                    // SAFETY: as the kernels of calls.cu it takes these arguments, and it accesses nothing.
                    unsafe { on.launch(kernel, &grid, args![dst, src, flag, operands.count(), 0i32])? };
                }
            }
            Calls::Device { kernel, operands } => launch_once(pe, stream, kernel, operands, operations)?,
        }
        Ok(())
    }
}

/// The same device calls in kernels that were compiled with NVSHMEM's own headers.
#[derive(Debug)]
pub(super) struct Inlined<'m, B: Backend>(pub(super) &'m Module<B>);

impl<B: Backend> Loops<B> for Inlined<'_, B> {
    fn issue(&self, pe: &Pe<B>, stream: &Stream<B>, calls: Calls<'_, B>, operations: u32) -> Result<()> {
        let Calls::Device { kernel, operands } = calls else {
            return Err(Error::wrong_result("only calls of kernels are compared with NVSHMEM's headers".to_string()));
        };
        launch_once(pe, stream, &self.0.kernel(kernel.name())?, operands, operations)
    }
}

fn launch_once<B: Backend>(
    pe: &Pe<B>,
    stream: &Stream<B>,
    kernel: &Kernel<'_, B>,
    operands: Operands<'_>,
    calls: u32,
) -> Result<()> {
    // SAFETY: as all kernels of calls.cu it takes these arguments, and accesses what they give it: `count` elements of the slices, which are
    // as long, and one word of the flag. The measurements wait for the stream before they free the memory.
    unsafe { pe.on(stream).launch(kernel, &Grid::new(1, 1), &operands.arguments(calls)) }
}
