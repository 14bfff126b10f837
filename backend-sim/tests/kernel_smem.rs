//! Groups that NVSHMEM 3.8 has: shared memory that the library may use, and a barrier by four warps.

use onesided::{Grid, Pe, Result, Source, args, expect_eq};
use onesided_sim::{Config, Sim, Simulation, prove};

const SMEM: &str = include_str!("../ptx/kernels/smem.ptx");

/// Bytes that the library needs at least.
const LEAST: u32 = 1136;

/// Each PE sends 32 numbers to the next. `size`: the bytes given; 0: the least. `who`: how many threads give; 0: all.
fn give(pe: &Pe<Sim>, room: u32, size: i32, who: i32) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<i32>(32)?, pe.alloc::<i32>(32)?);
    pe.write(&src, &[pe.my_pe() as i32; 32])?;
    let module = pe.module(&Source::ptx("smem.ptx", SMEM))?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes these arguments.
    unsafe {
        let grid = Grid::new(1, 64).shared(room);
        pe.on(&stream).launch(&module.kernel("give")?, &grid, args![&dst, &src, size, who])?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let previous = (pe.my_pe() + pe.n_pes() - 1) % pe.n_pes();
    expect_eq(&pe.read(&dst)?[..], &[previous as i32; 32], "what the previous PE sent")?;
    pe.free(src)?;
    pe.free(dst)
}

fn why(program: impl Fn(&Pe<Sim>) -> Result<()>) -> String {
    let run = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap();
    assert!(!run.is_ok());
    run.verdict.to_string().lines().next().unwrap().to_string()
}

#[test]
fn shared_memory_that_is_given_changes_nothing() {
    for (room, size) in [(LEAST, 0), (LEAST, LEAST as i32), (65536, 32768)] {
        prove(2, |pe| give(pe, room, size, 0));
    }
}

#[test]
fn all_threads_of_a_block_give_what_the_launch_has_given() {
    insta::assert_snapshot!(why(|pe| give(pe, LEAST, 65536, 0)), @"kernel give on PE 0: nvshmemx_give_smem: smem is not shared memory of 65536 bytes; give the launch as much (Grid::shared) (smem.cu:8, block 0, thread 0)");
    insta::assert_snapshot!(why(|pe| give(pe, LEAST, 0, 32)), @"kernel give on PE 0: all threads of the group call nvshmemx_give_smem together, and one waits elsewhere (smem.cu:8, block 0, thread 0)");
}

#[test]
fn shared_memory_is_no_source_and_the_error_says_what_to_do() {
    let put = why(|pe| {
        let dst = pe.alloc_zeroed::<i32>(32)?;
        let module = pe.module(&Source::ptx("smem.ptx", SMEM))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes one array.
        unsafe { pe.on(&stream).launch(&module.kernel("put_from_smem")?, &Grid::new(1, 32), args![&dst])? };
        pe.synchronize(&stream)?;
        pe.free(dst)
    });
    insta::assert_snapshot!(put, @"kernel put_from_smem on PE 0: nvshmemx_int_put_block: source: is shared or local memory of the kernel, which NVSHMEM cannot reach over a network; copy to symmetric memory before a put, or from it behind a get (smem.cu:20, block 0, thread 0)");
}

fn four_warps(pe: &Pe<Sim>, all: bool) -> Result<()> {
    let (dst, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?);
    let module = pe.module(&Source::ptx("smem.ptx", SMEM))?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes these arguments.
    unsafe {
        let grid = Grid::new(1, 160).collective();
        pe.on(&stream).launch(&module.kernel("four_warps")?, &grid, args![&dst, &seen, all])?;
    }
    pe.synchronize(&stream)?;
    expect_eq(pe.read_one(&seen)?, 42, "what the previous PE put")?;
    pe.free(seen)?;
    pe.free(dst)
}

/// It is a barrier of the PEs, and one of its 128 threads, as the race detector sees.
#[test]
fn four_warps_meet_the_other_pes() {
    prove(2, |pe| four_warps(pe, true));
    insta::assert_snapshot!(why(|pe| four_warps(pe, false)), @"kernel four_warps on PE 0: all threads of the group call nvshmemx_barrier_warpgroup, and block 0, thread 100 has ended (smem.cu:27, block 0, thread 0)");
}
