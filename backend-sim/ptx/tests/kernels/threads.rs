//! `scan.cu`, `library.cu`, `grid_sync.cu` and the barriers of `ordered.cu`: what threads do together.

use super::load;

#[test]
fn scans() {
    for threads in [32, 128, 1024] {
        let mut loaded = load("scan");
        let input: Vec<i32> = (0..threads).map(|i| i * 31 % 17 - 8).collect();
        let from = loaded.array(&input, i32::to_le_bytes);
        let to = loaded.array(&vec![0_i32; threads as usize], i32::to_le_bytes);
        let elements = threads - 5;
        let launch = loaded.launch(1, threads as u32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
        loaded.finishes("scan_int", launch.parameter(&elements.to_le_bytes()));
        let mut sum = 0;
        for (i, found) in loaded.read(to, i32::from_le_bytes).into_iter().enumerate() {
            sum += input[i];
            assert_eq!(found, if i < elements as usize { sum } else { 0 }, "element {i} of {threads}");
        }
    }
    let mut loaded = load("scan");
    let input: Vec<f64> = (0..64).map(|i| f64::from(i) * 0.5).collect();
    let from = loaded.array(&input, f64::to_le_bytes);
    let to = loaded.array(&[0.0; 64], f64::to_le_bytes);
    let launch = loaded.launch(1, 64).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("scan_double", launch.parameter(&64_i32.to_le_bytes()));
    assert_eq!(loaded.read(to, f64::from_le_bytes)[63], input.iter().sum::<f64>());
}

#[test]
fn votes_and_exchanges() {
    let mut loaded = load("scan");
    let input: Vec<i32> = (0..32).map(|i| i * i % 13).collect();
    let from = loaded.array(&input, i32::to_le_bytes);
    let to = loaded.array(&[0_u32; 32 * 7], u32::to_le_bytes);
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("votes", launch);
    let lanes = |holds: &dyn Fn(i32) -> bool| (0..32).filter(|&i| holds(input[i])).fold(0_u32, |all, i| all | 1 << i);
    for (i, row) in loaded.read(to, u32::from_le_bytes).chunks(7).enumerate() {
        let partner = if (i ^ 5) & !7 == i & !7 { i ^ 5 } else { i };
        let expected = [
            lanes(&|x| x & 1 == 1),
            1, // none is above 100, all are at least 0
            lanes(&|x| x == input[i]),
            input.iter().sum::<i32>() as u32,
            input[(i * 7) & 31] as u32,
            input[partner] as u32,
            1,
        ];
        assert_eq!(row, expected, "lane {i}");
    }
}

#[test]
fn the_grid_waits_for_all_blocks() {
    let mut loaded = load("grid_sync");
    let (first, second) = (loaded.array(&[0_i32; 4], i32::to_le_bytes), loaded.array(&[0_i32; 4], i32::to_le_bytes));
    let mut launch = loaded
        .launch(4, 64)
        .parameter(&first.to_le_bytes())
        .parameter(&second.to_le_bytes())
        .parameter(&4_i32.to_le_bytes());
    assert!(loaded.module.kernel("grid_sync").unwrap().uses_grid_sync);
    launch.workspace = loaded.array(&[0_u32; 16], u32::to_le_bytes);
    loaded.finishes("grid_sync", launch);
    assert_eq!(loaded.read(second, i32::from_le_bytes), [20, 30, 40, 10]);
}

#[test]
fn tiles_of_a_warp() {
    let mut loaded = load("grid_sync");
    let input: Vec<i32> = (0..64).collect();
    let from = loaded.array(&input, i32::to_le_bytes);
    let to = loaded.array(&[0_i32; 8], i32::to_le_bytes);
    let launch = loaded.launch(1, 64).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("tiles", launch);
    let sums: Vec<i32> = input.chunks(8).map(|tile| tile.iter().sum()).collect();
    assert_eq!(loaded.read(to, i32::from_le_bytes), sums);
}

#[test]
fn named_barriers() {
    let mut loaded = load("ordered");
    let to = loaded.array(&[0_i32; 3 * 32 + 1], i32::to_le_bytes);
    let launch = loaded.launch(1, 64).parameter(&to.to_le_bytes()).parameter(&3_i32.to_le_bytes());
    loaded.finishes("pipeline", launch);
    let out = loaded.read(to, i32::from_le_bytes);
    for (at, &found) in out[..96].iter().enumerate() {
        assert_eq!(found as usize, at / 32 * 100 + at % 32);
    }
    assert_eq!(out[96], 32 * 4 + 2 + 1); // 32 odd threads, one is the fifth, all are below 64
}

#[test]
fn a_lock_in_shared_memory() {
    let mut loaded = load("ordered");
    let to = loaded.array(&[0_i32], i32::to_le_bytes);
    let launch = loaded.launch(1, 256).parameter(&to.to_le_bytes());
    loaded.finishes("lock", launch);
    assert_eq!(loaded.read(to, i32::from_le_bytes), [8]);
}

#[test]
fn cubs_scan_and_reduction() {
    let mut loaded = load("library");
    let input: Vec<i32> = (0..128).map(|i| i * 37 % 101).collect();
    let from = loaded.array(&input, i32::to_le_bytes);
    let to = loaded.array(&[0_i32; 128], i32::to_le_bytes);
    let launch = loaded.launch(1, 128).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    loaded.finishes("cub_scan", launch);
    let mut before = 0;
    for (i, found) in loaded.read(to, i32::from_le_bytes).into_iter().enumerate() {
        assert_eq!(found, if i == 0 { input.iter().sum() } else { before }, "element {i}");
        before += input[i];
    }
}

#[test]
fn cudas_atomics_and_copies() {
    let mut loaded = load("library");
    let input: Vec<i32> = (0..128).map(|i| i * 7 - 50).collect();
    let from = loaded.array(&input, i32::to_le_bytes);
    let (to, word) = (loaded.array(&[0_i32; 128], i32::to_le_bytes), loaded.array(&[1_i32], i32::to_le_bytes));
    let launch = [to, word, from].iter().fold(loaded.launch(1, 128), |launch, p| launch.parameter(&p.to_le_bytes()));
    loaded.finishes("cuda_atomics", launch);
    assert_eq!(loaded.read(word, i32::from_le_bytes), [10]);
    for (i, found) in loaded.read(to, i32::from_le_bytes).into_iter().enumerate() {
        let warp = i / 32 * 32;
        assert_eq!(found, input[127 - i] + input[warp..warp + 32].iter().sum::<i32>(), "element {i}");
    }
}
