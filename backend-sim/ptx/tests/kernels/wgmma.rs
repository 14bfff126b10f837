//! Products of matrices by warp groups, `wgmma.cu`: tiles that all threads copy, and tiles that a warp of its own copies ahead in bulk. And what
//! happens where something is missing.

use half::f16;
use onesided_ptx::{Fault, FaultKind, Launch, Stop, TensorMap, Type};

use super::{Loaded, load};

const ROWS: usize = 128;
const COLUMNS: usize = 192;
const TILE: usize = 64;

/// An element that is exact in sums: eighths between -4 and 4.
fn element(at: usize) -> f16 {
    f16::from_f32(((at * 29 + at / 7 * 13) % 65) as f32 / 8.0 - 4.0)
}

/// `d = a × b`, by functions of row and column.
fn products(
    (rows, columns, depth): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f16,
    b: impl Fn(usize, usize) -> f16,
) -> Vec<f32> {
    let one = |at: usize| (0..depth).map(|k| a(at / columns, k).to_f32() * b(k, at % columns).to_f32()).sum();
    (0..rows * columns).map(one).collect()
}

/// The module, a launch of one of its kernels, where the result will be, and what it will be.
fn prepare(depth: usize) -> (Loaded, Launch, u64, Vec<f32>) {
    let mut loaded = load("wgmma");
    let behind = ROWS * depth;
    let expected = products(
        (ROWS, COLUMNS, depth),
        |row, k| element(row * depth + k),
        |k, column| element(behind + k * COLUMNS + column),
    );
    let all: Vec<f16> = (0..behind + depth * COLUMNS).map(element).collect();
    let bits = |element: f16| element.to_le_bytes();
    let d = loaded.array(&vec![f32::NAN; ROWS * COLUMNS], f32::to_le_bytes);
    let (a, b) = (loaded.array(&all[..behind], bits), loaded.array(&all[behind..], bits));
    let blocks = (ROWS / TILE * (COLUMNS / TILE)) as u32;
    let launch = [d, a, b].iter().fold(loaded.launch(blocks, 128), |launch, p| launch.parameter(&p.to_le_bytes()));
    let launch = launch.parameter(&(COLUMNS as i32).to_le_bytes()).parameter(&(depth as i32).to_le_bytes());
    (loaded, launch, d, expected)
}

#[test]
fn tiles_are_multiplied_while_the_next_are_copied() {
    for depth in [64, 128, 320] {
        let (mut loaded, launch, d, expected) = prepare(depth);
        loaded.finishes("product_of_group", launch);
        assert!(loaded.read(d, f32::from_le_bytes) == expected, "depth {depth}");
    }
}

fn race(stop: Stop) -> Fault {
    match stop {
        Stop::Fault(fault) if fault.kind == FaultKind::Race => *fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_missing_is_a_race() {
    let kernels = ["product_without_wait_for_copy", "product_without_barrier", "product_without_wait_for_product"];
    let found = kernels.map(|kernel| {
        let (mut loaded, launch, ..) = prepare(320);
        race(loaded.run(kernel, launch)).to_string()
    });
    insta::assert_snapshot!(found.join("\n"));
}

/// Tiles of both matrices as they will lie in shared memory: 16 bytes of 8 rows, or columns, one behind the other.
fn pipeline(kernel: &str, steps: usize) -> (Stop, Vec<f32>, Vec<f32>) {
    let mut loaded = load("wgmma");
    let depth = steps * TILE;
    let (a, b) = (|row, k| element(row * depth + k), |k, column| element(7 + column * depth + k));
    let expected = products((TILE, TILE, depth), a, b);
    let mut tiles = vec![f16::ZERO; 2 * TILE * depth];
    for (major, k) in (0..TILE).flat_map(|major| (0..depth).map(move |k| (major, k))) {
        let (step, k_within) = (k / TILE, k % TILE);
        let at = major / 8 * 512 + k_within / 8 * 64 + major % 8 * 8 + k_within % 8;
        tiles[step * 2 * TILE * TILE + at] = a(major, k);
        tiles[(step * 2 + 1) * TILE * TILE + at] = b(k, major);
    }
    let d = loaded.array(&vec![f32::NAN; TILE * TILE], f32::to_le_bytes);
    let tiles = loaded.array(&tiles, |element: f16| element.to_le_bytes());
    let launch = [d, tiles].iter().fold(loaded.launch(1, 160), |launch, p| launch.parameter(&p.to_le_bytes()));
    let stop = loaded.run(kernel, launch.parameter(&(steps as i32).to_le_bytes()));
    let found = loaded.read(d, f32::from_le_bytes);
    (stop, found, expected)
}

#[test]
fn a_warp_of_its_own_copies_ahead() {
    for steps in [1, 2, 7] {
        let (stop, found, expected) = pipeline("pipeline_of_group", steps);
        assert_eq!(stop, Stop::Finished);
        assert!(found == expected, "{steps} steps");
    }
    let (stop, ..) = pipeline("pipeline_that_frees_early", 7);
    insta::assert_snapshot!(race(stop));
}

/// A tensor map of a matrix of halves, with swizzled tiles of 64 × 64.
fn tiles(address: u64, rows: usize, columns: usize) -> TensorMap {
    TensorMap {
        address,
        ty: Type::F16,
        rank: 2,
        sizes: [columns as u64, rows as u64, 1, 1, 1],
        strides: [2 * columns as u64, 0, 0, 0],
        tile: [TILE as u32, TILE as u32, 1, 1, 1],
        steps: [1; 5],
        swizzle: 128,
        fills_nan: false,
    }
}

/// Tiles lie where products look for them, whatever the swizzle makes of it; and a copy must not come before the product that reads the last tile is over.
#[test]
fn tiles_come_as_tensor_maps_describe_them() {
    let prepare = |depth: usize| {
        let (loaded, launch, d, expected) = prepare(depth);
        let word = |at: usize| u64::from_le_bytes(launch.parameters[at..at + 8].try_into().unwrap());
        let maps = [tiles(word(8), ROWS, depth), tiles(word(16), depth, COLUMNS)].map(|map| map.encode().unwrap());
        let mut launch = loaded.launch((ROWS / TILE * (COLUMNS / TILE)) as u32, 128);
        launch.parameters.extend(d.to_le_bytes());
        launch.parameters.resize(64, 0);
        launch.parameters.extend(maps.as_flattened());
        launch.parameters.extend([COLUMNS as i32, depth as i32].iter().flat_map(|number| number.to_le_bytes()));
        (loaded, launch, d, expected)
    };
    for depth in [64, 192] {
        let (mut loaded, launch, d, expected) = prepare(depth);
        loaded.finishes("product_of_tiles", launch);
        assert!(loaded.read(d, f32::from_le_bytes) == expected, "depth {depth}");
    }
    let (mut loaded, launch, ..) = prepare(192);
    insta::assert_snapshot!(race(loaded.run("product_that_copies_early", launch)));
}
