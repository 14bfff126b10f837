//! Kernels as work of streams: their arguments, the dimensions of a launch, variables of a module, and kernels between a stream's
//! other operations.

use onesided::{Argument, Backend, Cmp, Grid, Pe, Result, SignalOp, Source, Stream, args};

use super::run::{Memory, with_memory};
use super::thread;
use crate::case::{Case, Seen, cases};

/// This part of the chapter.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        structure: 2,
        numbers: 1,
        dimensions: 1,
        module_variables: 1,
        kernels_in_a_row: 2,
        kernels_in_a_row_without_fence: 2 racy,
        kernels_on_two_streams: 2,
        event_between_kernels: 2,
        write_before_a_kernel: 2,
        put_signal_of_a_stream_to_a_kernel: 2,
        signal_of_a_kernel_to_a_stream: 2,
        quiet_of_a_stream_after_a_kernel: 2,
        signal_of_a_stream_after_a_kernel: 2 racy,
    ]
}

/// Launches kernels of `launches.cu`, by name.
type Launch<'a> = dyn Fn(&str) -> Result<()> + 'a;

/// Kernels and other work on a stream.
fn on_a_stream<B: Backend>(
    pe: &Pe<B>,
    work: impl FnOnce(&Launch<'_>, &Stream<B>, &Memory) -> Result<()>,
) -> Result<Seen> {
    let module = pe.module(&source())?;
    with_memory(pe, |stream, memory| {
        let launch = |name: &str| memory.launch(pe, stream, &module.kernel(name)?, &thread(), &[]);
        work(&launch, stream, memory)
    })
}

fn source() -> Source {
    Source::ptx("launches.ptx", include_str!("launches.ptx"))
}

/// One kernel, with arguments besides those of the chapter.
fn one<B: Backend>(pe: &Pe<B>, name: &str, grid: &Grid, further: &[Argument]) -> Result<Seen> {
    let module = pe.module(&source())?;
    let kernel = module.kernel(name)?;
    with_memory(pe, |stream, memory| memory.launch(pe, stream, &kernel, grid, further))
}

/// A structure by value, with gaps between its members: how many elements are put, how far, and a factor.
fn structure<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let mut work = [0; 16];
    work[..2].copy_from_slice(&3i16.to_ne_bytes());
    work[2] = 1;
    work[8..].copy_from_slice(&2.5f64.to_ne_bytes());
    one(pe, "structure", &thread(), &[Argument::bytes(&work, 8)])
}

/// Numbers of every size, below zero too, and a null pointer.
fn numbers<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let mut further = args![-2i8, 0xfffeu16, -3i32, 5u64 << 32, 1.75f32, -0.625f64, true].to_vec();
    further.push(Argument::null());
    one(pe, "numbers", &thread(), &further)
}

/// Threads and blocks of a launch in three dimensions have each their number.
fn dimensions<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    one(pe, "dimensions", &Grid::new((2, 1, 2), (2, 2, 2)), &[])
}

/// A module's variable keeps its value from one launch to the next.
fn module_variables<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    on_a_stream(pe, |launch, _, _| (0..3).try_for_each(|_| launch("variables")))
}

/// What a kernel has put, a later one of the stream orders by its fence.
fn kernels_in_a_row<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    on_a_stream(pe, |launch, _, _| ["put_one", "fence_and_signal", "wait_and_read"].into_iter().try_for_each(launch))
}

/// The end of a kernel does not complete what it has put, by the text.
fn kernels_in_a_row_without_fence<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    on_a_stream(pe, |launch, _, _| ["put_one", "signal", "wait_and_read"].into_iter().try_for_each(launch))
}

/// One stream's kernel waits while another stream's kernel puts.
fn kernels_on_two_streams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let module = pe.module(&source())?;
    with_memory(pe, |stream, memory| {
        let second = pe.stream()?;
        memory.launch(pe, stream, &module.kernel("wait_and_read")?, &thread(), &[])?;
        memory.launch(pe, &second, &module.kernel("put_one")?, &thread(), &[])?;
        memory.launch(pe, &second, &module.kernel("fence_and_signal")?, &thread(), &[])?;
        pe.synchronize(&second)
    })
}

/// An event lets a kernel of one stream read what a kernel of another has written.
fn event_between_kernels<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let module = pe.module(&source())?;
    with_memory(pe, |stream, memory| {
        let (first, event) = (pe.stream()?, pe.event()?);
        memory.launch(pe, &first, &module.kernel("change")?, &thread(), &[])?;
        pe.record(&event, &first)?;
        pe.wait_event(&event, stream)?;
        memory.launch(pe, stream, &module.kernel("put_one")?, &thread(), &[])?;
        pe.synchronize(&first)
    })
}

/// A kernel puts what its stream has written before.
fn write_before_a_kernel<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    on_a_stream(pe, |launch, stream, memory| {
        pe.on(stream).write(memory.mine.at(1), &[7])?;
        launch("put_one")
    })
}

/// A stream puts with a signal, and a kernel waits for it.
fn put_signal_of_a_stream_to_a_kernel<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    on_a_stream(pe, |launch, stream, memory| {
        let (flag, next) = (memory.words.signal(0), (pe.my_pe() + 1) % pe.n_pes());
        pe.on(stream).put_signal(memory.data.at(0), memory.mine.at(1), flag, 1, SignalOp::Set, next)?;
        launch("wait_and_read")
    })
}

/// A kernel puts and signals, and a stream waits for it before its next kernel reads.
fn signal_of_a_kernel_to_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    on_a_stream(pe, |launch, stream, memory| {
        ["put_one", "fence_and_signal"].into_iter().try_for_each(launch)?;
        pe.on(stream).signal_wait_until(memory.words.signal(0), Cmp::Eq, 1)?;
        launch("read")
    })
}

/// A quiet on a stream completes what its kernels have put.
fn quiet_of_a_stream_after_a_kernel<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_after_a_kernel(pe, |stream| pe.on(stream).quiet())
}

/// Without it, a signal of the stream may come before what its kernel has put.
fn signal_of_a_stream_after_a_kernel<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_after_a_kernel(pe, |_| Ok(()))
}

fn signal_after_a_kernel<B: Backend>(pe: &Pe<B>, between: impl FnOnce(&Stream<B>) -> Result<()>) -> Result<Seen> {
    on_a_stream(pe, |launch, stream, memory| {
        launch("put_nbi")?;
        between(stream)?;
        pe.on(stream).signal_op(memory.words.signal(0), 1, SignalOp::Set, (pe.my_pe() + 1) % pe.n_pes())?;
        launch("wait_and_read")
    })
}
