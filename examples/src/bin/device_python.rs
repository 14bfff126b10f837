//! Kernels that were written in Python: with Numba, with NVSHMEM4Py's functions in Numba, in Triton, and in CuTe DSL.
//!
//! `kernels/python` has the scripts, and the PTX that the front ends make of them without a GPU. A ring sends data with a signal
//! to the next PE; an exchange sends a block to each PE, and all sum what they receive.
//!
//! To see it break: `--broken` launches the twins, which forget a fence, or sync where a barrier is needed.

use std::process::ExitCode;

use onesided::{Argument, Backend, Buf, Element, Grid, Pe, Result, Source, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

/// Elements of a block. Triton's kernels are compiled for it.
const N: usize = 32;

/// Who made the PTX.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Front {
    Numba,
    Nvshmem4py,
    Triton,
    Cute,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Kernel {
    Ring,
    Exchange,
}

#[derive(clap::Args)]
struct DevicePython {
    /// What made the PTX
    #[arg(long, default_value = "numba")]
    front: Front,
    /// What it does
    #[arg(long, default_value = "ring")]
    kernel: Kernel,
    /// Launches the broken twin
    #[arg(long)]
    broken: bool,
}

impl Program for DevicePython {
    const NAME: &'static str = "device_python";
    const ABOUT: &'static str =
        "Kernels from Numba, NVSHMEM4Py, Triton and CuTe DSL: around a ring, or from all to all.";
    const CHECKS: &'static str = "it holds the sum of what it should have received";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let all = if self.kernel == Kernel::Ring { N } else { n * N };
        let src = pe.alloc::<i32>(all)?;
        let dst = pe.alloc_zeroed::<i32>(all)?;
        let out = pe.alloc_zeroed::<i32>(N)?;
        let signal = pe.alloc_zeroed::<u64>(1)?;
        pe.write(&src, &(0..all).map(|i| element(me, i)).collect::<Vec<_>>())?;

        let mut arguments = Vec::new();
        for array in [&dst, &src, &out] {
            arguments.extend(self.array(array));
        }
        let (name, expected): (_, Vec<i32>) = match self.kernel {
            Kernel::Ring => {
                arguments.extend(self.array(&signal));
                let previous = (me + n - 1) % n;
                ("ring", (0..N).map(|i| element(me, i) + element(previous, i)).collect())
            }
            Kernel::Exchange => ("exchange", (0..N).map(|i| (0..n).map(|pe| element(pe, me * N + i)).sum()).collect()),
        };
        let mut grid = Grid::new(1, 32).collective();
        if let Front::Triton = self.front {
            if self.kernel == Kernel::Ring {
                arguments.push(Argument::from(N as i32));
                grid = grid.shared(8); // in which one thread hands the others what it has polled
            }
            // Triton gives every kernel two workspaces, which these do not use.
            arguments.extend([Argument::null(), Argument::null()]);
        }

        let module = pe.module(&self.source())?;
        let stream = pe.stream()?;
        // SAFETY: the kernels take these arrays, as their front ends pass them.
        unsafe { pe.on(&stream).launch(&module.kernel(name)?, &grid, &arguments)? };
        pe.on(&stream).barrier_all()?; // completes what a broken kernel has left
        pe.synchronize(&stream)?;

        expect_eq(pe.read(&out)?, expected, "the sum")?;
        pe.free(signal)?;
        pe.free(out)?;
        pe.free(dst)?;
        pe.free(src)?;
        Ok(if me == 0 { format!("all {n} PEs hold the sums of {N} elements") } else { String::new() })
    }
}

/// Element `i` of the array that a PE brings.
fn element(pe: usize, i: usize) -> i32 {
    (100 * pe + i) as i32
}

impl DevicePython {
    /// An array as this front end passes it to a kernel.
    fn array<T: Element, K>(&self, array: &Buf<T, K>) -> Vec<Argument> {
        let (len, size) = (array.len(), size_of::<T>());
        match self.front {
            // Two pointers to objects of Python, number and size of elements, data, shape, strides in bytes.
            Front::Numba | Front::Nvshmem4py => {
                args![Argument::null(), Argument::null(), len, size, array, len, size].to_vec()
            }
            Front::Triton => args![array].to_vec(),
            // Data and shape.
            Front::Cute => vec![Argument::structure(args![array, len as i32])],
        }
    }

    fn source(&self) -> Source {
        macro_rules! texts {
            ($front:literal) => {
                [
                    include_str!(concat!("../kernels/python/", $front, ".ring.ptx")),
                    include_str!(concat!("../kernels/python/", $front, ".ring.broken.ptx")),
                    include_str!(concat!("../kernels/python/", $front, ".exchange.ptx")),
                    include_str!(concat!("../kernels/python/", $front, ".exchange.broken.ptx")),
                ]
            };
        }
        macro_rules! front {
            ($front:literal) => {{
                let file = concat!($front, "_kernels.py");
                (file, include_str!(concat!("../kernels/python/", $front, "_kernels.py")), texts!($front))
            }};
        }
        let (file, python, texts) = match self.front {
            Front::Numba => front!("numba"),
            Front::Nvshmem4py => front!("nvshmem4py"),
            Front::Triton => front!("triton"),
            Front::Cute => front!("cute"),
        };
        Source::ptx(file, texts[2 * self.kernel as usize + usize::from(self.broken)]).compiled_from(file, python)
    }
}

fn main() -> ExitCode {
    main_with_options::<DevicePython>()
}
