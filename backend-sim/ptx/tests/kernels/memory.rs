//! `histogram.cu`, `bulk.cu` and the accesses of `ordered.cu`.

use super::load;

#[test]
fn atomics() {
    let mut loaded = load("histogram");
    let mut words = [0_u32; 16 + 64];
    words[3] = 3;
    words[4] = 1000;
    words[6] = u32::MAX;
    let u = loaded.array(&words, u32::to_le_bytes);
    let s = loaded.array(&[0_i32, -1000], i32::to_le_bytes);
    let l = loaded.array(&[1_u64, 7, 5], u64::to_le_bytes);
    let f = loaded.array(&[0.25_f32], f32::to_le_bytes);
    let d = loaded.array(&[1.0_f64], f64::to_le_bytes);
    let launch = [u, s, l, f, d].iter().fold(loaded.launch(1, 64), |launch, p| launch.parameter(&p.to_le_bytes()));
    loaded.finishes("atomics", launch);
    let found = loaded.read(u, u32::from_le_bytes);
    let sum: u32 = (0..64).sum();
    assert_eq!(found[0], sum);
    assert_eq!(found[1], 0_u32.wrapping_sub(sum));
    assert_eq!(found[2], 64 % 6); // 0, 1, … 5, and again from 0
    assert_eq!(found[3], (0..64).fold(3, |old, _| if old == 0 { 5 } else { old - 1 }));
    assert_eq!(found[4..11], [0, 63, 0, u32::MAX, (0..64).fold(0, |all, i| all ^ i), 63, 1]);
    assert_eq!(found[11..13], [64, 64]);
    assert_eq!(found[16..], (0..64_u32).map(|i| i.saturating_sub(1)).collect::<Vec<_>>()); // each finds the one before
    assert_eq!(loaded.read(s, i32::from_le_bytes), [-63, 0]);
    assert_eq!(loaded.read(l, u64::from_le_bytes), [1 + (64 << 33), 8, 63 << 40]);
    assert_eq!(loaded.read(f, f32::from_le_bytes), [32.25]);
    assert_eq!(loaded.read(d, f64::from_le_bytes), [17.0]);
}

#[test]
fn orders_and_scopes() {
    let mut loaded = load("ordered");
    let word = loaded.array(&(0..16).collect::<Vec<u32>>(), u32::to_le_bytes);
    let wide = loaded.array(&[10_u64], u64::to_le_bytes);
    let launch = loaded.launch(1, 1).parameter(&word.to_le_bytes()).parameter(&wide.to_le_bytes());
    loaded.finishes("forms", launch);
    // 0 becomes 1, then 2; their sum is 0 + 1 + 2; the vector comes back in reverse.
    assert_eq!(loaded.read(word, u32::from_le_bytes)[..12], [2, 3, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4]);
    assert_eq!(loaded.read(wide, u64::from_le_bytes), [15]);
}

#[test]
fn bulk_copies() {
    let mut loaded = load("bulk");
    let from = loaded.array(&(0..256).collect::<Vec<i32>>(), i32::to_le_bytes);
    let to = loaded.array(&[0_i32; 256], i32::to_le_bytes);
    let launch = loaded.launch(1, 256).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("bulk", launch.parameter(&1024_i32.to_le_bytes()));
    assert_eq!(loaded.read(to, i32::from_le_bytes), (1000..1256).collect::<Vec<i32>>());
}

#[test]
fn an_elected_thread() {
    let mut loaded = load("bulk");
    let to = loaded.array(&[0_i32], i32::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes());
    loaded.finishes("elected", launch);
    assert_eq!(loaded.read(to, i32::from_le_bytes), [100]);
}

/// Two words that change together.
#[test]
fn words_of_128_bits() {
    let mut loaded = load("wide");
    let both = loaded.array(&[0_u64; 2], u64::to_le_bytes);
    let values = loaded.array(&(1..=96).collect::<Vec<u64>>(), u64::to_le_bytes);
    let launch = loaded.launch(3, 32).parameter(&both.to_le_bytes()).parameter(&values.to_le_bytes());
    loaded.finishes("add_together", launch);
    assert_eq!(loaded.read(both, u64::from_le_bytes), [96 * 97 / 2, 96]);
    let last = loaded.array(&[0_u64; 2], u64::to_le_bytes);
    let taken = loaded.array(&[0_u64; 128], u64::to_le_bytes);
    let launch = loaded.launch(1, 64).parameter(&last.to_le_bytes()).parameter(&taken.to_le_bytes());
    loaded.finishes("hand_on", launch);
    // Each pair has been taken once, or is the last; the first that was there is none of them.
    let all = [loaded.read(last, u64::from_le_bytes), loaded.read(taken, u64::from_le_bytes)].concat();
    let mut pairs: Vec<[u64; 2]> = all.as_chunks().0.to_vec();
    pairs.sort_unstable();
    let expected = (0..64).map(|me| [me, 2 * me]).chain([[u64::MAX; 2]]);
    assert_eq!(pairs, expected.collect::<Vec<_>>());
}
