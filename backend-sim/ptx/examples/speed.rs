//! How long a thread-instruction takes: a loop of load, multiply-add and store, every access checked, beside the same loop in Rust.
//!
//! `cargo run --release -p onesided-ptx --example speed`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};

/// The shortest time of a thread-instruction, and how many there are.
fn measure(
    module: &Arc<Module>,
    kernel: &str,
    launch: Launch,
    memory: &mut FlatMemory,
) -> Result<(f64, u64), Box<dyn std::error::Error>> {
    let launch = Arc::new(launch);
    let (mut best, mut steps) = (f64::INFINITY, 0);
    for _ in 0..200 {
        let mut block = Block::new(module, kernel, &launch, [0; 3])?;
        let begin = Instant::now();
        assert_eq!(block.run(memory), Stop::Finished);
        steps = block.steps();
        best = best.min(begin.elapsed().as_secs_f64() * 1e9 / steps as f64);
    }
    Ok((best, steps))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const ELEMENTS: usize = 1 << 13;
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/axpy.ptx"))?;
    let module = Arc::new(Module::parse(&text)?);
    let parsing = Instant::now();
    for _ in 0..100 {
        black_box(Module::parse(black_box(&text))?);
    }
    println!("parse and decode {} lines: {:.1} µs", text.lines().count(), parsing.elapsed().as_secs_f64() * 1e4);

    let mut memory = FlatMemory::new();
    let y = memory.allocate(&(0..ELEMENTS * 2).flat_map(|i| (i as f32).to_le_bytes()).collect::<Vec<u8>>());
    let x = y + 4 * ELEMENTS as u64;
    for (checks, races, uninitialized) in
        [("all checks", true, true), ("all checks but races", false, true), ("bounds only", false, false)]
    {
        let launch = Launch::new(1, 64).parameter(&y.to_le_bytes()).parameter(&0.5_f32.to_le_bytes());
        let mut launch = launch.parameter(&1024_i32.to_le_bytes()).parameter(&16_i32.to_le_bytes());
        launch.dynamic_shared = 8192;
        (launch.checks.races, launch.checks.uninitialized) = (races, uninitialized);
        let (nanoseconds, _) = measure(&module, "axpy_shared", launch, &mut memory)?;
        println!("in shared memory with {checks}: {nanoseconds:.2} ns a thread-instruction");
    }

    for threads in [1, 32] {
        let launch = Launch::new(1, threads).parameter(&y.to_le_bytes()).parameter(&x.to_le_bytes());
        let launch = launch.parameter(&0.5_f32.to_le_bytes()).parameter(&(ELEMENTS as i32).to_le_bytes());
        let (ours, steps) = measure(&module, "axpy", launch, &mut memory)?;
        let native = in_rust(threads as usize, ELEMENTS) / steps as f64;
        println!(
            "in global memory, threads: {threads}: {ours:.2} ns a thread-instruction; the same loop in Rust {native:.2} ns, {:.1} times faster",
            ours / native
        );
    }
    Ok(())
}

/// The shortest time in nanoseconds of the loop in Rust, by one thread after another.
fn in_rust(threads: usize, elements: usize) -> f64 {
    let (mut ys, xs): (Vec<f32>, Vec<f32>) = ((0..elements).map(|i| i as f32).collect(), vec![1.5; elements]);
    let mut shortest = f64::INFINITY;
    for _ in 0..200 {
        let begin = Instant::now();
        for first in 0..black_box(threads) {
            let mut i = first;
            while i < black_box(elements) {
                ys[i] = 0.5_f32.mul_add(xs[i], ys[i]);
                i += threads;
            }
        }
        black_box(&mut ys);
        shortest = shortest.min(begin.elapsed().as_secs_f64() * 1e9);
    }
    shortest
}
