//! The calls of a measurement, and who makes them: the API here, C++ in `cpp.rs`.

use onesided::{Backend, Cmp, Pe, ReduceOp, Result, SignalOp, Stream, SymmetricSlice};

/// Calls of one kind, with their operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Calls<'a> {
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
}

/// Someone who makes the calls.
pub(super) trait Loops<B: Backend> {
    /// Makes `operations` calls on the stream, and nothing else: what this takes is what is measured.
    fn issue(&self, pe: &Pe<B>, stream: &Stream<B>, calls: Calls<'_>, operations: u32) -> Result<()>;
}

/// The calls as a program makes them, through the API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Api;

impl<B: Backend> Loops<B> for Api {
    fn issue(&self, pe: &Pe<B>, stream: &Stream<B>, calls: Calls<'_>, operations: u32) -> Result<()> {
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
        }
        Ok(())
    }
}
