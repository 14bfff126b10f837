//! CUDA kernels in the simulator: what an instruction costs, whole programs, and how long it takes to load one.
//!
//! The files in `kernels` are links to those of the examples and of the interpreter's tests: a package holds copies of them.
#![allow(unsafe_code)] // kernels are launched

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use onesided::{Backend, Grid, Pe, Result, Source, args, expect_eq};
use onesided_compile::{CompileError, Options};
use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};
use onesided_sim::{Config, Explore, Races, Simulation};

use super::lab::{Bench, CORES, Lab, endless, in_order_on, ns_each, per_second, random, too_few_cores};
use super::row::{Cell, Row, Target, Unit};

/// Loops over arrays in global and in shared memory.
const AXPY: &str = include_str!("../kernels/axpy.ptx");
const RING_REDUCE: &str = include_str!("../kernels/ring_reduce.ptx");
const JACOBI: &str = include_str!("../kernels/jacobi.ptx");
/// What is compiled: 102 lines.
const TEXT: &str = concat!(
    include_str!("../kernels/ring_reduce.cu"),
    include_str!("../kernels/jacobi.cu"),
    include_str!("../kernels/device_ring.cu")
);

/// PEs of the programs.
const PES: usize = 4;
/// Elements of the arrays of a loop.
const ELEMENTS: usize = 1 << 13;

pub(super) fn benches() -> Vec<Bench> {
    let loops = |name: &'static str, threads, target| {
        Bench::new(name, move |lab| vec![instruction_row(lab, name, threads, target)])
    };
    let (shared, global) = ("kernel: races in shared memory", "kernel: races in global memory");
    let (ring, jacobi) = ("kernel: ring all-reduce of 4 PEs", "kernel: Jacobi of 4 PEs");
    let load = "kernel: compile and load 102 lines";
    vec![
        loops("kernel: an instruction of 32 threads", 32, 2.5),
        loops("kernel: an instruction of one thread", 1, 5.0),
        Bench::new(shared, move |lab| vec![shared_row(lab, shared)]),
        Bench::new(global, move |lab| vec![global_row(lab, global)]),
        Bench::new(ring, move |lab| ring_rows(lab, ring)),
        Bench::new(jacobi, move |lab| vec![jacobi_row(lab, jacobi)]),
        Bench::new(load, move |lab| load_rows(lab, load)),
    ]
}

/// Two arrays of global memory, one behind the other, and the address of the first.
fn arrays() -> (FlatMemory, u64) {
    let mut memory = FlatMemory::new();
    let numbers: Vec<u8> = (0..2 * ELEMENTS).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let first = memory.allocate(&numbers);
    (memory, first)
}

/// Nanoseconds for each instruction of each thread of a block, and how many there are.
fn run_block(module: &Arc<Module>, kernel: &str, launch: &Arc<Launch>) -> std::result::Result<(f64, u64), String> {
    let (mut memory, _) = arrays();
    let mut block = Block::new(module, kernel, launch, [0; 3]).map_err(|why| why.to_string())?;
    let start = Instant::now();
    match block.run(&mut memory) {
        Stop::Finished => Ok((ns_each(start, block.steps()), block.steps())),
        other => Err(format!("{other:?}")),
    }
}

fn parsed() -> std::result::Result<Arc<Module>, String> {
    Module::parse(AXPY).map(Arc::new).map_err(|why| why.to_string())
}

fn cell(measured: std::result::Result<f64, String>) -> Cell {
    measured.map_or_else(Cell::Failed, Cell::Value)
}

/// A loop of load, multiply-add and store, every access checked, beside the same loop in Rust: for each instruction of the kernel.
fn instruction_row(lab: &Lab, name: &str, threads: usize, times: f64) -> Row {
    let (_, first) = arrays();
    let launch = Launch::new(1, threads as u32).parameter(&first.to_le_bytes());
    let launch = launch.parameter(&(first + 4 * ELEMENTS as u64).to_le_bytes()).parameter(&0.5_f32.to_le_bytes());
    let launch = Arc::new(launch.parameter(&(ELEMENTS as i32).to_le_bytes()));
    let mut instructions = 1;
    let module = parsed();
    if let Ok(module) = &module
        && let Ok((_, steps)) = run_block(module, "axpy", &launch)
    {
        instructions = steps;
    }
    let rounds = lab.times(50);
    let (ours, peer) = lab.race(
        Unit::Ns,
        || {
            cell(module.clone().and_then(|module| {
                let runs = (0..rounds).map(|_| run_block(&module, "axpy", &launch).map(|(ns, _)| ns));
                runs.collect::<std::result::Result<Vec<f64>, String>>().map(least)
            }))
        },
        || Cell::Value(least((0..rounds).map(|_| rust_loop(threads, instructions)).collect())),
    );
    Row::new(name, Unit::Ns, ours).beside("the same loop in Rust", peer).target(Target::TimesPeer(times))
}

fn least(all: Vec<f64>) -> f64 {
    all.into_iter().fold(f64::INFINITY, f64::min)
}

fn rust_loop(threads: usize, instructions: u64) -> f64 {
    let (mut ys, xs): (Vec<f32>, Vec<f32>) = ((0..ELEMENTS).map(|i| i as f32).collect(), vec![1.5; ELEMENTS]);
    let start = Instant::now();
    for first in 0..black_box(threads) {
        let mut i = first;
        while i < black_box(ELEMENTS) {
            ys[i] = 0.5_f32.mul_add(xs[i], ys[i]);
            i += threads;
        }
    }
    black_box(&mut ys);
    ns_each(start, instructions)
}

/// The same loop in shared memory, where every access is looked at.
fn shared_row(lab: &Lab, name: &str) -> Row {
    let rounds = lab.times(20);
    let measure = |checks: bool| {
        let launch = Launch::new(1, 64).parameter(&arrays().1.to_le_bytes()).parameter(&0.5_f32.to_le_bytes());
        let mut launch = launch.parameter(&1024_i32.to_le_bytes()).parameter(&16_i32.to_le_bytes());
        launch.dynamic_shared = 8192;
        (launch.checks.races, launch.checks.uninitialized) = (checks, checks);
        let launch = Arc::new(launch);
        cell(parsed().and_then(|module| {
            let runs = (0..rounds).map(|_| run_block(&module, "axpy_shared", &launch).map(|(ns, _)| ns));
            runs.collect::<std::result::Result<Vec<f64>, String>>().map(least)
        }))
    };
    let (with, without) = lab.race(Unit::Ns, || measure(true), || measure(false));
    Row::new(name, Unit::Ns, with)
        .beside("the same, races and uninitialized memory not looked for", without)
        .target(Target::TimesPeer(2.5))
}

/// A whole program around the loop in global memory, in order. So many elements, a few instructions for each.
fn global_row(lab: &Lab, name: &str) -> Row {
    let elements = lab.times(1 << 16) as usize;
    let measure = |races| -> Cell {
        in_order_on(Config { races, ..endless(1) }, |pe| {
            let arrays = pe.alloc_zeroed::<f32>(2 * elements)?;
            let module = pe.module(&Source::ptx("axpy.cu", AXPY))?;
            let stream = pe.stream()?;
            let arguments = args![&arrays, arrays.slice(elements..), 0.5f32, elements as i32];
            let start = Instant::now();
            // SAFETY: the kernel takes two arrays of so many elements.
            unsafe { pe.on(&stream).launch(&module.kernel("axpy")?, &Grid::new(1, 32), arguments)? };
            pe.synchronize(&stream)?;
            let time = ns_each(start, elements as u64);
            pe.free(arrays)?;
            Ok(time)
        })
    };
    let (with, without) = lab.race(Unit::Ns, || measure(Races::Find), || measure(Races::Ignore));
    Row::new(name, Unit::Ns, with).beside("the same, races not looked for", without).target(Target::TimesPeer(2.5))
}

/// An all-reduce around a ring in one launch of one block of 32 threads: chunks of 8 elements.
fn ring(pe: &Pe<impl Backend>) -> Result<()> {
    static SOURCE: LazyLock<Source> = LazyLock::new(|| Source::ptx("ring_reduce.cu", RING_REDUCE));
    const CHUNK: usize = 8;
    let n = pe.n_pes();
    let mine = pe.alloc::<f32>(n * CHUNK)?;
    let slots = pe.alloc_zeroed::<f32>(n * CHUNK)?;
    let total = pe.alloc_zeroed::<f32>(n * CHUNK)?;
    let signals = pe.alloc_zeroed::<u64>(2 * n)?;
    pe.write(&mine, &vec![1.0; n * CHUNK])?;
    let module = pe.module(&SOURCE)?;
    let stream = pe.stream()?;
    let arguments = args![&mine, &slots, &total, CHUNK as i32, &signals];
    // SAFETY: the kernel takes arrays of n chunks and 2 n signals, as they are here, and the length of a chunk.
    unsafe { pe.on(&stream).launch(&module.kernel("ring_reduce")?, &Grid::new(1, 32).collective(), arguments)? };
    pe.synchronize(&stream)?;
    expect_eq(pe.read(&total)?, vec![n as f32; n * CHUNK], "the sum over all PEs")?;
    pe.free(signals)?;
    pe.free(total)?;
    pe.free(slots)?;
    pe.free(mine)
}

fn ring_rows(lab: &Lab, name: &str) -> Vec<Row> {
    let schedules = lab.times(2000);
    let rate = |cores| match too_few_cores(cores) {
        Some(why) => Cell::NotRun(why),
        None => lab.alone(Unit::SchedulesPerS, || {
            random(cores, PES, schedules, ring).map(|time| per_second(schedules, time)).into()
        }),
    };
    let proof = lab.alone(Unit::S, || {
        let proved = || -> Result<f64> {
            let mut simulation = Simulation::new(endless(PES))?;
            let start = Instant::now();
            let mut wrong = None;
            let explored = simulation.explore(Explore::All { limit: u64::MAX }, ring, |run| {
                wrong = wrong.take().or_else(|| (!run.is_ok()).then(|| run.verdict.to_string()));
                std::ops::ControlFlow::Continue(())
            })?;
            let time = start.elapsed().as_secs_f64();
            match wrong {
                Some(wrong) => Err(onesided::Error::wrong_result(wrong)),
                None if !explored.complete => Err(onesided::Error::wrong_result("the search is not complete")),
                None => Ok(time),
            }
        };
        proved().into()
    });
    let mut rows = vec![Row::new(format!("{name}, proof"), Unit::S, proof).target(Target::AtMost(1.0))];
    rows.extend(CORES.map(|cores| {
        let name = format!("{name}, at random, cores: {cores}");
        Row::new(name, Unit::SchedulesPerS, rate(cores)).target(Target::AtLeast(5000.0))
    }));
    rows
}

/// Jacobi's iteration on 64 x 64 points in stripes, ten times, in order: from the start of the run to its end.
fn jacobi_row(lab: &Lab, name: &str) -> Row {
    let time = lab.alone(Unit::S, || {
        let run = || -> Result<f64> {
            let start = Instant::now();
            let run = Simulation::new(endless(PES))?.run(|pe| {
                let (rows, columns) = (64 / PES, 64);
                let grids = pe.alloc_zeroed::<f32>(2 * (rows + 2) * columns)?;
                let signals = pe.alloc_zeroed::<u64>(2)?;
                let module = pe.module(&Source::ptx("jacobi.cu", JACOBI))?;
                let stream = pe.stream()?;
                let arguments = args![&grids, rows as i32, columns as i32, 10i32, &signals];
                let grid = Grid::new(1, 32).collective();
                // SAFETY: the kernel takes two grids of that many rows, with halos, and two signals.
                unsafe { pe.on(&stream).launch(&module.kernel("jacobi")?, &grid, arguments)? };
                pe.synchronize(&stream)?;
                pe.free(signals)?;
                pe.free(grids)
            })?;
            run.into_results()?;
            Ok(start.elapsed().as_secs_f64())
        };
        run().into()
    });
    Row::new(name, Unit::S, time).target(Target::AtMost(1.0))
}

/// From CUDA C++ to a module that can be launched: by NVRTC, and with its PTX from the cache.
fn load_rows(lab: &Lab, name: &str) -> Vec<Row> {
    let source = onesided_compile::Source::new("bench.cu", TEXT);
    let measure = |options: &Options| {
        let start = Instant::now();
        match onesided_compile::compile(&source, options) {
            Ok(ptx) => match Module::parse(ptx.text()) {
                Ok(_) => Cell::Value(start.elapsed().as_secs_f64()),
                Err(why) => Cell::Failed(why.to_string()),
            },
            Err(why @ (CompileError::NotFound { .. } | CompileError::Unusable { .. })) => Cell::NotRun(why.to_string()),
            Err(why) => Cell::Failed(why.to_string()),
        }
    };
    let compiled = lab.alone(Unit::S, || measure(&Options::new().without_cache()));
    let cached = tempfile::tempdir().map_err(|why| why.to_string()).map(|folder| {
        let options = Options::new().cache(folder.path());
        let first = measure(&options);
        if first.value().is_some() { lab.alone(Unit::S, || measure(&options)) } else { first }
    });
    vec![
        Row::new(name, Unit::S, compiled).target(Target::AtMost(0.3)),
        Row::new(format!("{name}, from the cache"), Unit::Ms, cached.unwrap_or_else(Cell::Failed).map(|s| 1e3 * s))
            .target(Target::AtMost(10.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_those_of_the_examples_and_of_the_interpreter() {
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for (file, folder) in [
            ("axpy.ptx", "../../backend-sim/ptx/kernels"),
            ("ring_reduce.cu", "../../examples/src/kernels"),
            ("ring_reduce.ptx", "../../examples/src/kernels"),
            ("jacobi.cu", "../../examples/src/kernels"),
            ("jacobi.ptx", "../../examples/src/kernels"),
            ("device_ring.cu", "../../examples/src/kernels"),
        ] {
            let [ours, theirs] =
                [here.join("kernels"), here.join(folder)].map(|folder| std::fs::read(folder.join(file)));
            assert!(ours.unwrap() == theirs.unwrap(), "{file} differs from the one in {folder}: copy it");
        }
        assert_eq!(TEXT.lines().count(), 102);
    }

    #[test]
    fn everything_that_is_measured_works() {
        let lab = Lab::new(true);
        for row in benches().iter().flat_map(|bench| (bench.measure)(&lab).rows) {
            assert!(!matches!(row.ours, Cell::Failed(_)) && row.peer.why_not().is_none(), "{row:?}");
        }
    }
}
