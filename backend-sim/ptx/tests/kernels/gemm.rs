//! Products of matrices on tensor cores, whose next tiles are copied meanwhile: `gemm.cu`, and `triton_dot.py`. And what happens where a wait or a
//! barrier is missing.

use half::f16;
use onesided_ptx::{Fault, FaultKind, Launch, Stop};

use super::{Loaded, load, parse};

const ROWS: usize = 64;
const COLUMNS: usize = 96;

/// Elements that are exact in sums: eighths between -4 and 4.
fn elements(count: usize, seed: usize) -> Vec<f16> {
    (0..count).map(|i| f16::from_f32(((i * 29 + i / 7 * 13 + seed) % 65) as f32 / 8.0 - 4.0)).collect()
}

/// The module, a launch of one of its kernels, where the result will be, and what it will be.
fn prepare(depth: usize) -> (Loaded, Launch, u64, Vec<f32>) {
    let mut loaded = load("gemm");
    let (a, b) = (elements(ROWS * depth, 3), elements(depth * COLUMNS, 11));
    let expected = (0..ROWS * COLUMNS).map(|at| {
        let (row, column) = (at / COLUMNS, at % COLUMNS);
        (0..depth).map(|k| a[row * depth + k].to_f32() * b[k * COLUMNS + column].to_f32()).sum()
    });
    let expected = expected.collect();
    let bits = |element: f16| element.to_le_bytes();
    let d = loaded.array(&vec![f32::NAN; ROWS * COLUMNS], f32::to_le_bytes);
    let (a, b) = (loaded.array(&a, bits), loaded.array(&b, bits));
    let blocks = (ROWS / 32 * (COLUMNS / 32)) as u32;
    let launch = [d, a, b].iter().fold(loaded.launch(blocks, 128), |launch, p| launch.parameter(&p.to_le_bytes()));
    let launch = launch.parameter(&(COLUMNS as i32).to_le_bytes()).parameter(&(depth as i32).to_le_bytes());
    (loaded, launch, d, expected)
}

#[test]
fn tiles_are_multiplied_while_the_next_are_copied() {
    for depth in [16, 32, 80] {
        let (mut loaded, launch, d, expected) = prepare(depth);
        loaded.finishes("gemm", launch);
        assert!(loaded.read(d, f32::from_le_bytes) == expected, "depth {depth}");
    }
}

fn race(kernel: &str, depth: usize) -> Fault {
    let (mut loaded, mut launch, ..) = prepare(depth);
    launch.checks.uninitialized = false; // in the first step, what nobody has written yet is found before the race is
    match loaded.run(kernel, launch) {
        Stop::Fault(fault) if fault.kind == FaultKind::Race => *fault,
        other => panic!("{kernel}: {other:?}"),
    }
}

#[test]
fn what_is_missing_is_a_race() {
    let found: Vec<Fault> = ["gemm_without_wait", "gemm_without_barrier_before", "gemm_without_barrier_behind"]
        .map(|kernel| race(kernel, 80))
        .into();
    let all: Vec<String> = found.iter().map(Fault::to_string).collect();
    insta::assert_snapshot!(all.join("\n"));
}

/// In the last step, nothing is copied any more: the barrier behind it does nothing, and one step alone needs none.
#[test]
fn a_barrier_that_one_step_does_not_need() {
    let (mut loaded, launch, d, expected) = prepare(16);
    loaded.finishes("gemm_without_barrier_behind", launch);
    assert_eq!(loaded.read(d, f32::from_le_bytes), expected);
}

/// What a kernel of Triton makes of matrices of 128 × 128 elements, as 32-bit words; some lines of its text are left out.
fn triton<const N: usize>(name: &str, shared: u32, element: fn(usize) -> [u8; N], without: &str) -> (Stop, Vec<u32>) {
    let path = format!("{}/kernels/triton.{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let kept = |line: &&str| without.is_empty() || !line.contains(without);
    let mut loaded = parse(&path, &text.lines().filter(kept).collect::<Vec<_>>().join("\n"));
    let [a, b] = [0, SIZE * SIZE].map(|from| loaded.array(&(from..from + SIZE * SIZE).collect::<Vec<_>>(), element));
    let d = loaded.array(&vec![u32::MAX; SIZE * SIZE], u32::to_le_bytes);
    let mut launch = [d, a, b].iter().fold(loaded.launch(4, 128), |launch, p| launch.parameter(&p.to_le_bytes()));
    launch.dynamic_shared = shared;
    for size in [SIZE as i32; 2] {
        launch = launch.parameter(&size.to_le_bytes());
    }
    let launch = launch.parameter(&0_u64.to_le_bytes()).parameter(&0_u64.to_le_bytes());
    let stop = loaded.run(name.split('.').next().unwrap(), launch);
    (stop, loaded.read(d, u32::from_le_bytes))
}

const SIZE: usize = 128;

/// The number at a place of the two matrices, which lie one behind the other.
fn number(at: usize) -> i8 {
    ((at * 29 + at / 7 * 13) % 65) as i8 - 32
}

fn half(at: usize) -> [u8; 2] {
    f16::from_f32(f32::from(number(at)) / 8.0).to_le_bytes()
}

#[test]
fn products_of_triton() {
    let sum = |at: usize| -> i32 {
        let product =
            |k| i32::from(number(at / SIZE * SIZE + k)) * i32::from(number(SIZE * SIZE + k * SIZE + at % SIZE));
        (0..SIZE).map(product).sum()
    };
    for (kind, shared) in [("dot.s8", 8192), ("wgmma.s8", 16384)] {
        let (stop, integers) = triton(kind, shared, |at| number(at).to_le_bytes(), "");
        assert_eq!(stop, Stop::Finished);
        assert!((0..SIZE * SIZE).all(|at| integers[at] as i32 == sum(at)), "{kind}");
    }
    for (kind, shared) in [("dot.f16", 16384), ("wgmma.f16", 49152)] {
        let (stop, floats) = triton(kind, shared, half, "");
        assert_eq!(stop, Stop::Finished);
        assert!((0..SIZE * SIZE).all(|at| f32::from_bits(floats[at]) == sum(at) as f32 / 64.0), "{kind}");
        for without in ["cp.async.wait_group", "bar.sync"] {
            let (stop, _) = triton(kind, shared, half, without);
            let is_found =
                matches!(&stop, Stop::Fault(fault) if matches!(fault.kind, FaultKind::Race | FaultKind::Uninitialized));
            assert!(is_found, "{kind} without {without}: {stop:?}");
        }
    }
    // Of 8 bits, three of them behind the point.
    let eight = |at: usize| [(number(at) as u8 & 0x8f) | 0x38];
    let sign = |at: usize| if number(at) < 0 { -1.0 } else { 1.0 };
    let value = |at: usize| sign(at) * (1.0 + f64::from(number(at) & 7) / 8.0);
    let (stop, floats) = triton("wgmma.e4m3", 16384, eight, "");
    assert_eq!(stop, Stop::Finished);
    for (at, &found) in floats.iter().enumerate() {
        let product = |k| value(at / SIZE * SIZE + k) * value(SIZE * SIZE + k * SIZE + at % SIZE);
        assert_eq!(f64::from(f32::from_bits(found)), (0..SIZE).map(product).sum::<f64>());
    }
    // A product that reads tiles which the next copies overwrite.
    let (stop, _) = triton("wgmma.f16", 49152, half, "wgmma.wait_group.sync.aligned");
    assert!(matches!(&stop, Stop::Fault(fault) if fault.kind == FaultKind::Race), "{stop:?}");
}
