//! A 5-point stencil on a grid that is spread over a grid of PEs: neighbours exchange the edges of their tiles.
//!
//! Beyond the tutorial. Rows are contiguous and go by `put_signal`. Columns are strided: `iput` carries no signal, so a
//! fence and a `signal_op` follow.
//!
//! A PE can be one step ahead of its neighbour, never two. It needs the neighbour's edge of step `s` before it sends step `s + 1`, and
//! the neighbour sends step `s` only when it is done with the tile of step `s - 1`. So there are two of everything, used in
//! turn: two tiles, because the halo of step `s - 1` may still be in use when that of `s` arrives; and two sets of signals,
//! because those of two steps may be in flight at once, and puts keep no order.
//!
//! To see it break: leave the parity out of `signal` (an old value overwrites a new one, and a wait misses it) or out of
//! `tile_of`, leave out the fence, or write whole tiles instead of their interior.

use std::ops::Range;
use std::process::ExitCode;

use onesided::{Backend, Cmp, Pe, Result, SignalOp, SymmetricBuf, SymmetricSlice, expect_eq};
use onesided_harness::Program;

/// Rows of a PE's tile, without the halo.
const ROWS: usize = 2;
/// Columns of a PE's tile, without the halo.
const COLS: usize = 3;
/// How often the stencil is applied.
const STEPS: usize = 3;
/// Elements from one row of a tile to the next, halo included.
const PITCH: usize = COLS + 2;
/// Elements of a tile, halo included.
const TILE: usize = (ROWS + 2) * PITCH;

struct Halo;

impl Program for Halo {
    const NAME: &'static str = "halo";
    const ABOUT: &'static str = "Computes a stencil on a distributed grid, exchanging halos without any barrier.";
    const CHECKS: &'static str = "its tile equals, exactly, the one of a serial computation";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let place = Place::new(pe.my_pe(), pe.n_pes());
        let tiles = pe.alloc_zeroed::<f64>(2 * TILE)?; // beyond the grid's edge, halos stay 0
        let arrived = pe.alloc_zeroed::<u64>(2 * SIDES)?;
        for r in 0..ROWS {
            let row: Vec<f64> = (0..COLS).map(|c| initial(place.row * ROWS + r, place.column * COLS + c)).collect();
            pe.write(tiles.slice(..TILE).slice(interior(r)), &row)?;
        }

        for step in 0..STEPS {
            exchange(pe, &place, &tiles, &arrived, step)?;
            advance(pe, &tiles, step)?;
        }

        let tile = pe.read(tile_of(&tiles, STEPS))?;
        let grid = serial(place.rows, place.columns);
        let pitch = place.columns * COLS + 2;
        for r in 0..ROWS {
            let start = (place.row * ROWS + r + 1) * pitch + place.column * COLS + 1;
            expect_eq(&tile[interior(r)], &grid[start..start + COLS], "a row of my tile")?;
        }
        pe.free(arrived)?;
        pe.free(tiles)?;
        let Place { row, rows, column, columns, .. } = place;
        let first = &tile[interior(0)];
        Ok(format!("PE {} at ({row}, {column}) of {rows}x{columns}: its tile begins with {first:?}", pe.my_pe()))
    }
}

/// Where a PE stands in the grid of PEs.
struct Place {
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
    /// The PE on each side, if the grid goes on there.
    neighbours: [Option<usize>; SIDES],
}

// The sides of a tile: indices of neighbours and of signals.
const NORTH: usize = 0;
const SOUTH: usize = 1;
const WEST: usize = 2;
const EAST: usize = 3;
const SIDES: usize = 4;

impl Place {
    /// The most nearly square grid of `n` PEs, row by row: one column if `n` is prime.
    fn new(me: usize, n: usize) -> Place {
        let columns = (1..=n).rev().find(|c| n.is_multiple_of(*c) && c * c <= n).expect("1 divides n");
        let (rows, row, column) = (n / columns, me / columns, me % columns);
        let mut neighbours = [None; SIDES];
        neighbours[NORTH] = (row > 0).then(|| me - columns);
        neighbours[SOUTH] = (row + 1 < rows).then(|| me + columns);
        neighbours[WEST] = (column > 0).then(|| me - 1);
        neighbours[EAST] = (column + 1 < columns).then(|| me + 1);
        Place { row, column, rows, columns, neighbours }
    }
}

/// Sends the edges of this step's tile to the neighbours, and waits for theirs.
fn exchange(
    pe: &Pe<impl Backend>,
    place: &Place,
    tiles: &SymmetricBuf<f64>,
    arrived: &SymmetricBuf<u64>,
    step: usize,
) -> Result<()> {
    let host = pe.host();
    let tile = tile_of(tiles, step);
    let row = |r: usize| tile.slice(r * PITCH + 1..=r * PITCH + COLS); // 0 and ROWS + 1 are halos
    let column = |c: usize| tile.slice(PITCH + c..); // its first element; 0 and COLS + 1 are halos
    // The receiver's signal for that side. Its value grows, so that it needs no reset.
    let signal = |side: usize| arrived.signal(step % 2 * SIDES + side);
    let value = step as u64 + 1;
    let [north, south, west, east] = place.neighbours;

    if let Some(north) = north {
        host.put_signal(row(ROWS + 1), row(1), signal(SOUTH), value, SignalOp::Set, north)?;
    }
    if let Some(south) = south {
        host.put_signal(row(0), row(ROWS), signal(NORTH), value, SignalOp::Set, south)?;
    }
    if let Some(west) = west {
        host.iput(column(COLS + 1), column(1), PITCH, PITCH, ROWS, west)?;
    }
    if let Some(east) = east {
        host.iput(column(0), column(COLS), PITCH, PITCH, ROWS, east)?;
    }
    host.fence()?; // no signal below overtakes the column above
    if let Some(west) = west {
        host.signal_op(signal(EAST), value, SignalOp::Set, west)?;
    }
    if let Some(east) = east {
        host.signal_op(signal(WEST), value, SignalOp::Set, east)?;
    }

    for side in (0..SIDES).filter(|&side| place.neighbours[side].is_some()) {
        host.signal_wait_until(signal(side), Cmp::Eq, value)?;
    }
    Ok(())
}

/// Computes the next step's interior from this step's tile. The halo of the next tile belongs to the neighbours.
fn advance(pe: &Pe<impl Backend>, tiles: &SymmetricBuf<f64>, step: usize) -> Result<()> {
    let tile = pe.read(tile_of(tiles, step))?;
    for r in 0..ROWS {
        let row: Vec<f64> = interior(r).map(|at| stencil(&tile, at, PITCH)).collect();
        pe.write(tile_of(tiles, step + 1).slice(interior(r)), &row)?;
    }
    Ok(())
}

/// Half of each cell stays, an eighth comes from each neighbour: exact in binary for a few steps.
fn stencil(cells: &[f64], at: usize, pitch: usize) -> f64 {
    0.5 * cells[at] + 0.125 * (cells[at - pitch] + cells[at - 1] + cells[at + 1] + cells[at + pitch])
}

/// The value of a cell at the start, by its place in the whole grid.
fn initial(row: usize, column: usize) -> f64 {
    ((7 * row + 3 * column) % 11) as f64
}

/// The tile that holds a step's values: two take turns.
fn tile_of(tiles: &SymmetricBuf<f64>, step: usize) -> SymmetricSlice<'_, f64> {
    tiles.slice(step % 2 * TILE..).slice(..TILE)
}

/// The elements of a tile's row, without the halo.
fn interior(row: usize) -> Range<usize> {
    let start = (row + 1) * PITCH + 1;
    start..start + COLS
}

/// The whole grid, with a border of zeros, after all steps: what the tiles are compared with.
fn serial(rows_of_pes: usize, columns_of_pes: usize) -> Vec<f64> {
    let (rows, columns) = (rows_of_pes * ROWS, columns_of_pes * COLS);
    let pitch = columns + 2;
    let mut grid = vec![0.0; (rows + 2) * pitch];
    let cells = || (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c, (r + 1) * pitch + c + 1)));
    for (r, c, at) in cells() {
        grid[at] = initial(r, c);
    }
    for _ in 0..STEPS {
        let old = grid.clone();
        for (_, _, at) in cells() {
            grid[at] = stencil(&old, at, pitch);
        }
    }
    grid
}

fn main() -> ExitCode {
    onesided_harness::main(Halo)
}
