//! Products of matrices with CUDA's fragments, `wmma.cu`.

use half::f16;

use super::load;

/// A small number at a place of both matrices, `b` behind `a`.
fn number(at: usize) -> i32 {
    ((at * 29 + at / 7 * 13) % 65) as i32 - 32
}

/// `a × b` of as many rows, columns and depth, where the rows of `b`, or its columns, lie one behind the other.
fn expected([rows, columns, depth]: [usize; 3], in_rows: bool) -> Vec<i32> {
    let of_b = |k: usize, column: usize| rows * depth + if in_rows { k * columns + column } else { column * depth + k };
    let one =
        |at: usize| (0..depth).map(|k| number(at / columns * depth + k) * number(of_b(k, at % columns))).sum::<i32>();
    (0..rows * columns).map(one).collect()
}

/// What a kernel of one warp for each tile makes of such matrices: words of so many bytes.
fn run<const N: usize, const M: usize>(
    kernel: &str,
    [rows, columns, depth]: [usize; 3],
    tiles: u32,
    element: fn(i32) -> [u8; N],
) -> Vec<[u8; M]> {
    let mut loaded = load("wmma");
    let all: Vec<i32> = (0..rows * depth + depth * columns).map(number).collect();
    let d = loaded.array(&vec![[0xff; M]; rows * columns], |word| word);
    let (a, b) = (loaded.array(&all[..rows * depth], element), loaded.array(&all[rows * depth..], element));
    let launch = loaded.launch(tiles / 2, 64);
    let launch = [d, a, b].iter().fold(launch, |launch, address| launch.parameter(&address.to_le_bytes()));
    let launch = launch.parameter(&(columns as i32).to_le_bytes()).parameter(&(depth as i32).to_le_bytes());
    loaded.finishes(kernel, launch);
    loaded.read(d, |word| word)
}

#[test]
fn products_of_fragments() {
    for (kernel, in_rows) in [("of_halves", true), ("of_wide_halves", false)] {
        let sizes = [32, 64, 48];
        let found = run(kernel, sizes, 8, |number| f16::from_f32(number as f32 / 8.0).to_le_bytes());
        let sums = expected(sizes, in_rows);
        assert!(found.iter().zip(sums).all(|(&found, sum)| f32::from_le_bytes(found) == sum as f32 / 32.0), "{kernel}");
    }
    let sizes = [64, 16, 32];
    let found = run("of_bytes", sizes, 4, |number| (number as i8).to_le_bytes());
    assert!(found.iter().zip(expected(sizes, false)).all(|(&found, sum)| i32::from_le_bytes(found) == 3 * sum));
    let sizes = [16, 24, 12];
    let found = run("of_doubles", sizes, 6, |number| f64::from(number).to_le_bytes());
    let sums = expected(sizes, true);
    assert!(found.iter().zip(sums).all(|(&found, sum)| f64::from_le_bytes(found) == f64::from(sum) / 2.0));
}
