//! Jacobi's iteration with the halo exchange in the kernel: all iterations are one launch.
//!
//! Each PE has a stripe of rows between two halo rows (`kernels/jacobi.cu`). After each sweep the block puts its edge rows into the
//! neighbours' halos, and waits for theirs. There are two grids: a neighbour that is one iteration ahead writes into the one that nobody
//! reads.
//!
//! To see it break: `--broken` launches a kernel that waits for the neighbours' rows of one iteration before.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const THREADS: u32 = 32;
const COLUMNS: usize = 8;

#[derive(clap::Args)]
struct DeviceJacobi {
    /// Rows of each PE
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    rows: u16,
    /// Sweeps over the grid
    #[arg(long, default_value_t = 4)]
    iterations: u16,
    /// Launches the broken twin, which waits for the wrong signal
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceJacobi {
    const NAME: &'static str = "device_jacobi";
    const ABOUT: &'static str = "Kernels solve Laplace's equation in stripes, and exchange halo rows while they run.";
    const CHECKS: &'static str = "its rows are those of the same iteration on one processor, bit for bit";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n, rows) = (pe.my_pe(), pe.n_pes(), usize::from(self.rows));
        let size = (rows + 2) * COLUMNS;
        let grids = pe.alloc_zeroed::<f32>(2 * size)?;
        let signals = pe.alloc_zeroed::<u64>(2)?;
        if me == 0 {
            // The upper edge of the whole grid is hot, in both grids.
            pe.write(grids.slice(..COLUMNS), &[HOT; COLUMNS])?;
            pe.write(grids.slice(size..size + COLUMNS), &[HOT; COLUMNS])?;
        }

        let source = self.compile.source(&kernel_file!("jacobi"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        let arguments = args![&grids, rows as i32, COLUMNS as i32, i32::from(self.iterations), &signals];
        let grid = Grid::new(1, THREADS).collective();
        // SAFETY: the kernel takes two grids of that many rows, with halos, and two signals.
        unsafe { pe.on(&stream).launch(&module.kernel("jacobi")?, &grid, arguments)? };
        pe.synchronize(&stream)?;

        let last = usize::from(self.iterations) % 2 * size;
        let mine = pe.read(grids.slice(last + COLUMNS..last + (rows + 1) * COLUMNS))?;
        let whole = alone(n * rows, self.iterations);
        let expected = &whole[(me * rows + 1) * COLUMNS..][..rows * COLUMNS];
        expect_eq(&mine[..], expected, "my rows")?;
        pe.free(signals)?;
        pe.free(grids)?;
        Ok(if me == 0 { format!("{} iterations on {} x {COLUMNS}", self.iterations, n * rows) } else { String::new() })
    }
}

/// The temperature of the upper edge.
const HOT: f32 = 100.0;

/// The same iteration on one processor: the rows of all PEs, with the halo rows of the whole grid.
fn alone(rows: usize, iterations: u16) -> Vec<f32> {
    let mut now = vec![0.0; (rows + 2) * COLUMNS];
    now[..COLUMNS].fill(HOT);
    for _ in 0..iterations {
        let mut next = now.clone();
        for row in 1..=rows {
            for x in 1..COLUMNS - 1 {
                let at = row * COLUMNS + x;
                next[at] = 0.25 * (now[at - 1] + now[at + 1] + now[at - COLUMNS] + now[at + COLUMNS]);
            }
        }
        now = next;
    }
    now
}

fn main() -> ExitCode {
    main_with_options::<DeviceJacobi>()
}
