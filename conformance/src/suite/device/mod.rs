//! Kernels: operations of threads, warps and blocks, signals, waits, atomics and collectives from the device, and memory of peers by pointer.
//!
//! The kernels stand in `operations.cu`, and the PTX beside it is what runs.

use onesided::{Backend, Grid, Pe, Result, Source, args};

use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        p: 2 => |case| case.needs_kernels(),
        g: 2 => |case| case.needs_kernels(),
        put: 2 => |case| case.needs_kernels(),
        put_nbi: 2 => |case| case.needs_kernels(),
        get: 2 => |case| case.needs_kernels(),
        get_nbi: 2 => |case| case.needs_kernels(),
        putmem: 2 => |case| case.needs_kernels(),
        iput: 2 => |case| case.needs_kernels(),
        iget: 2 => |case| case.needs_kernels(),
        p_by_all_threads: 2 => |case| case.needs_kernels(),
        put_to_self: 2 => |case| case.needs_kernels(),
        put_warp: 2 => |case| case.needs_kernels(),
        put_block: 2 => |case| case.needs_kernels(),
        get_warp: 2 => |case| case.needs_kernels(),
        get_block: 2 => |case| case.needs_kernels(),
        put_nbi_block: 2 => |case| case.needs_kernels(),
        put_of_what_the_block_wrote: 2 => |case| case.needs_kernels(),
        put_signal: 2 => |case| case.needs_kernels(),
        put_signal_block: 2 => |case| case.needs_kernels(),
        fenced_flag: 2 => |case| case.needs_kernels(),
        flag_without_fence: 2 racy => |case| case.needs_kernels(),
        block_passes_on_what_a_thread_waited_for: 2 => |case| case.needs_kernels(),
        ping_pong: 2 => |case| case.needs_kernels(),
        wait_until_all: 2 => |case| case.needs_kernels(),
        wait_until_any: 2 => |case| case.needs_kernels(),
        test_in_a_loop: 2 => |case| case.needs_kernels(),
        atomic_inc: 2 => |case| case.needs_kernels(),
        atomic_fetch_add: 2 => |case| case.needs_kernels(),
        atomic_compare_swap: 2 => |case| case.needs_kernels(),
        atomic_or: 2 => |case| case.needs_kernels(),
        atomic_swap_set_fetch: 2 => |case| case.needs_kernels(),
        barrier_thread: 2 => |case| case.needs_kernels(),
        barrier_block: 2 => |case| case.needs_kernels(),
        sync_warp: 2 => |case| case.needs_kernels(),
        broadcast: 2 => |case| case.needs_kernels(),
        fcollect: 2 => |case| case.needs_kernels(),
        alltoall: 2 => |case| case.needs_kernels(),
        sum_reduce: 2 => |case| case.needs_kernels(),
        max_reduce_warp: 2 => |case| case.needs_kernels(),
        reducescatter: 2 => |case| case.needs_kernels(),
        queries: 2 => |case| case.needs_kernels(),
        pointer_store: 2 => |case| case.needs_kernels().needs_peer_access(),
        pointer_store_without_fence: 2 racy => |case| case.needs_kernels().needs_peer_access(),
        pointer_load: 2 => |case| case.needs_kernels().needs_peer_access(),
        blocks_add: 1 => |case| case.needs_kernels(),
        blocks_hand_over: 1 => |case| case.needs_kernels(),
        shared_memory: 1 => |case| case.needs_kernels(),
        shuffle: 1 => |case| case.needs_kernels(),
    ]
}

/// Each case is the kernel of its name.
macro_rules! kernels {
    ($($name:ident: $grid:expr;)*) => {$(
        fn $name<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
            run(pe, stringify!($name), &$grid)
        }
    )*};
}
kernels! {
    p: Grid::new(1, 1).collective();
    g: Grid::new(1, 1).collective();
    put: Grid::new(1, 1).collective();
    put_nbi: Grid::new(1, 1).collective();
    get: Grid::new(1, 1).collective();
    get_nbi: Grid::new(1, 1).collective();
    putmem: Grid::new(1, 1).collective();
    iput: Grid::new(1, 1).collective();
    iget: Grid::new(1, 1).collective();
    p_by_all_threads: Grid::new(1, 2).collective();
    put_to_self: Grid::new(1, 1).collective();
    put_warp: Grid::new(1, 32).collective();
    put_block: Grid::new(1, 64).collective();
    get_warp: Grid::new(1, 32).collective();
    get_block: Grid::new(1, 64).collective();
    put_nbi_block: Grid::new(1, 64).collective();
    put_of_what_the_block_wrote: Grid::new(1, 64).collective();
    put_signal: Grid::new(1, 1).collective();
    put_signal_block: Grid::new(1, 64).collective();
    fenced_flag: Grid::new(1, 1).collective();
    flag_without_fence: Grid::new(1, 1).collective();
    block_passes_on_what_a_thread_waited_for: Grid::new(1, 64).collective();
    ping_pong: Grid::new(1, 1).collective();
    wait_until_all: Grid::new(1, 1).collective();
    wait_until_any: Grid::new(1, 1).collective();
    test_in_a_loop: Grid::new(1, 1).collective();
    atomic_inc: Grid::new(2, 1).collective();
    atomic_fetch_add: Grid::new(1, 1).collective();
    atomic_compare_swap: Grid::new(1, 1).collective();
    atomic_or: Grid::new(1, 1).collective();
    atomic_swap_set_fetch: Grid::new(1, 1).collective();
    barrier_thread: Grid::new(1, 1).collective();
    barrier_block: Grid::new(1, 64).collective();
    sync_warp: Grid::new(1, 32).collective();
    broadcast: Grid::new(1, 64).collective();
    fcollect: Grid::new(1, 64).collective();
    alltoall: Grid::new(1, 64).collective();
    sum_reduce: Grid::new(1, 64).collective();
    max_reduce_warp: Grid::new(1, 32).collective();
    reducescatter: Grid::new(1, 64).collective();
    queries: Grid::new(1, 1).collective();
    pointer_store: Grid::new(1, 1).collective();
    pointer_store_without_fence: Grid::new(1, 1).collective();
    pointer_load: Grid::new(1, 1).collective();
    blocks_add: Grid::new(3, 2);
    blocks_hand_over: Grid::new(2, 2).cooperative();
    shared_memory: Grid::new(1, 64);
    shuffle: Grid::new(1, 32);
}

/// Runs a kernel on every PE. What is seen is what has arrived in `data` and `words`, and what the kernel has put in `out`.
fn run<B: Backend>(pe: &Pe<B>, name: &str, grid: &Grid) -> Result<Seen> {
    let module = pe.module(&Source::ptx("operations.ptx", include_str!("operations.ptx")))?;
    let kernel = module.kernel(name)?;
    let (mine, data) = (pe.alloc::<i32>(8)?, pe.alloc_zeroed::<i32>(32)?);
    let (words, out) = (pe.alloc_zeroed::<u64>(8)?, pe.alloc_zeroed::<i32>(8)?);
    let values: Vec<i32> = (0..8).map(|i| 100 * pe.my_pe() as i32 + i).collect();
    pe.write(&mine, &values)?;
    pe.host().barrier_all()?;
    let stream = pe.stream()?;
    // SAFETY: every kernel of the file takes these four, and stays inside them.
    #[expect(unsafe_code, reason = "kernels are launched")]
    unsafe {
        pe.on(&stream).launch(&kernel, grid, args![&mine, &data, &words, &out])?
    };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let saw =
        seen("data", pe.read(data.slice(..8))?).and("words", pe.read(words.slice(..4))?).and("out", pe.read(&out)?);
    pe.free(out)?;
    pe.free(words)?;
    pe.free(data)?;
    pe.free(mine)?;
    Ok(saw)
}
