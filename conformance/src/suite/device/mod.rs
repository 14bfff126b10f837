//! Kernels: operations of threads, warps and blocks, signals, waits, atomics and collectives from the device, memory of peers by pointer, libcu++.
//!
//! Each case launches the kernel of its name, which stands in the file of its part: `operations.cu` and so on. The PTX beside it is what
//! runs. The kernels say what they are about. The host program is in `run.rs`; the cases of `launches.rs` have their own.

mod launches;
mod run;

use onesided::{Backend, Grid, Pe, Source};

use crate::case::Case;
use run::{run, run_on_a_team};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let alone = [
        operations(),
        groups(),
        signals(),
        waits(),
        atomics(),
        order(),
        memory(),
        blocks(),
        clusters(),
        packets(),
        library(),
        extensions(),
    ];
    let together = [barriers(), collectives(), reductions()];
    let of_a_team = [barriers_of_a_team(), collectives_of_a_team(), reductions_of_a_team()];
    let all = alone.into_iter().chain(together).chain(of_a_team).chain([misuse(), launches::cases()]);
    all.flatten().map(Case::needs_kernels).collect()
}

/// The modules of all parts.
pub(super) fn sources() -> Vec<Source> {
    macro_rules! all {
        ($($file:literal),*) => { vec![$(Source::ptx(concat!($file, ".ptx"), include_str!(concat!($file, ".ptx")))),*] };
    }
    all!(
        "operations",
        "groups",
        "signals",
        "waits",
        "atomics",
        "order",
        "memory",
        "blocks",
        "clusters",
        "barriers",
        "collectives",
        "reductions",
        "misuse",
        "launches",
        "packets",
        "library",
        "extensions"
    )
}

/// The module of what NVSHMEM has from 3.8 on.
pub(super) const EXTENSIONS: &str = "extensions.ptx";

/// A part of the chapter: its kernels with their numbers of PEs and their grids. What else is to be said of a case stands behind.
macro_rules! part {
    ($part:ident in $file:literal by $run:ident:
     $($name:ident: $pes:literal $($racy:ident)?, $grid:expr $(=> $with:expr)?;)*) => {
        fn $part<B: Backend>() -> Vec<Case<B>> {
            vec![$({
                let case = Case::new(stringify!($name), $pes, |pe: &Pe<B>| {
                    let source = Source::ptx(concat!($file, ".ptx"), include_str!(concat!($file, ".ptx")));
                    $run(pe, &source, stringify!($name), &$grid)
                });
                $(let case = case.$racy();)?
                $(let case = ($with as fn(Case<B>) -> Case<B>)(case);)?
                case
            }),*]
        }
    };
}

/// So many blocks of so many threads, all of which run at the same time on all PEs, because they wait for each other.
fn grid(blocks: u32, threads: u32) -> Grid {
    Grid::new(blocks, threads).collective()
}

fn thread() -> Grid {
    grid(1, 1)
}

fn warp() -> Grid {
    grid(1, 32)
}

fn block() -> Grid {
    grid(1, 64)
}

/// Only members of a team launch: a collective launch is for all PEs.
fn of_members(grid: Grid) -> Grid {
    grid.cooperative()
}

/// A launch whose blocks wait for nobody.
fn alone(blocks: u32, threads: u32) -> Grid {
    Grid::new(blocks, threads)
}

/// What kernels cannot do over a network: libnvshmem 3.4.5 has no strided operations there, and its UCX transport lacks atomics of 32 bits.
fn near<B: Backend>(case: Case<B>) -> Case<B> {
    case.needs_peer_access()
}

/// Several PEs update a word, or one does while its owner fetches it.
fn updated<B: Backend>(case: Case<B>) -> Case<B> {
    case.needs_kernel_atomics()
}

/// The same through a peer's pointer.
fn updated_by_pointer<B: Backend>(case: Case<B>) -> Case<B> {
    case.needs_peer_access().needs_kernel_atomics()
}

/// What NVSHMEM has from 3.8 on.
fn newer<B: Backend>(case: Case<B>) -> Case<B> {
    case.needs_kernel_extensions()
}

part! { operations in "operations" by run:
    p: 2, thread();
    g: 2, thread();
    p_of_every_size: 2, thread();
    g_of_every_size: 2, thread();
    p_of_signed_numbers: 2, thread();
    g_of_signed_numbers: 2, thread();
    p_of_floats: 2, thread();
    g_of_floats: 2, thread();
    p_by_all_threads: 2, grid(1, 2);
    put: 2, thread();
    put8: 2, thread();
    put16: 2, thread();
    put32: 2, thread();
    put64: 2, thread();
    put128: 2, thread();
    putmem: 2, thread();
    put_of_doubles: 2, thread();
    put_of_shorts: 2, thread();
    put_to_self: 2, thread();
    put_of_nothing: 2, thread();
    get: 2, thread();
    get8: 2, thread();
    get16: 2, thread();
    get32: 2, thread();
    get64: 2, thread();
    get128: 2, thread();
    getmem: 2, thread();
    get_of_floats: 2, thread();
    get_from_self: 2, thread();
    put_nbi: 2, thread();
    get_nbi: 2, thread();
    put_nbi_of_every_size: 2, thread();
    get_nbi_of_every_size: 2, thread();
    iput: 2, thread() => near;
    iget: 2, thread() => near;
    iput8: 2, thread() => near;
    iput64: 2, thread() => near;
    iget16: 2, thread() => near;
    iget_of_doubles: 2, thread() => near;
    source_after_put: 2, thread();
    source_after_put_nbi: 2 racy, thread();
    source_after_quiet: 2, thread();
    get_nbi_looked_at_early: 2 racy, thread();
    put_to_each: 3, thread();
    get_from_each: 3, thread();
    queries: 2, thread();
    queries_of_the_node: 2, thread();
}

part! { groups in "groups" by run:
    put_warp: 2, warp();
    put_block: 2, block();
    put8_warp: 2, warp();
    put64_block: 2, block();
    put128_warp: 2, warp();
    putmem_block: 2, block();
    put_of_shorts_warp: 2, warp();
    put_of_doubles_block: 2, block();
    get_warp: 2, warp();
    get_block: 2, block();
    get16_block: 2, block();
    getmem_warp: 2, warp();
    get_of_floats_block: 2, block();
    put_nbi_warp: 2, warp();
    put_nbi_block: 2, block();
    get_nbi_warp: 2, warp();
    get_nbi_block: 2, block();
    iput_warp: 2, warp() => near;
    iget_block: 2, block() => near;
    put_of_what_the_block_wrote: 2, block();
    block_changes_what_it_got: 2, block();
    each_warp_puts: 2, block();
    warps_differ: 2, block();
    each_block_puts: 2, grid(2, 32);
    put_block_of_40: 2, grid(1, 40);
    put_block_in_two_dimensions: 2, Grid::new(1, (8, 4)).collective();
}

part! { signals in "signals" by run:
    put_signal: 2, thread();
    put_signal_add: 2, thread();
    put_signal_nbi: 2, thread();
    put_signal_of_bytes: 2, thread();
    put_signal_of_doubles: 2, thread();
    put_signal_to_self: 2, thread();
    put_signal_warp: 2, warp();
    put_signal_warp_add: 2, warp();
    put_signal_nbi_warp: 2, warp();
    put_signal_block: 2, block();
    put_signal_block_set: 2, block();
    put_signal_nbi_block: 2, block();
    signal_set: 2, thread();
    signal_add: 2, thread() => updated;
    signal_to_self: 2, thread();
    signal_fetch: 2, thread();
    wait_ge: 2, thread();
    wait_gt: 2, thread();
    wait_ne: 2, thread();
    wait_le: 2, thread();
    wait_lt: 2, thread();
    ping_pong: 2, thread();
    token_of_three: 3, thread();
    token_of_four: 4, thread();
    data_of_two: 3, thread() => updated;
    credit: 2, thread();
    without_credit: 2 racy, thread();
    block_passes_on_what_a_thread_waited_for: 2, block();
    each_thread_waits: 2, grid(1, 2);
    a_warp_for_each_direction: 2, block();
}

part! { waits in "waits" by run:
    wait_until_eq: 2, thread();
    wait_until_ne: 2, thread();
    wait_until_gt: 2, thread();
    wait_until_ge: 2, thread();
    wait_until_lt: 2, thread();
    wait_until_le: 2, thread();
    wait_for_an_atomic: 3, thread() => updated;
    wait_until_all: 2, thread();
    wait_until_all_but_some: 2, thread();
    wait_until_all_vector: 2, thread();
    wait_until_any: 2, thread();
    wait_until_any_of_two: 3, thread();
    wait_until_any_twice: 3, thread();
    wait_until_any_vector: 3, thread();
    wait_until_some: 3, thread();
    wait_until_some_vector: 3, thread();
    test: 2, thread();
    test_all: 3, thread();
    test_any: 3, thread();
    test_some: 3, thread();
    test_all_vector: 3, thread();
    test_any_vector: 3, thread();
    test_some_vector: 3, thread();
    test_in_a_loop: 2, thread();
    test_any_in_a_loop: 3, thread();
}

part! { packets in "packets" by run:
    packet_of_two: 2, thread() => near;
    packets_of_four: 2, thread() => near;
    packet_with_one_flag: 2, thread() => near;
    packet_of_halves: 2, thread() => near;
    packets_in_rounds: 2, thread() => near;
    packet_in_two_stores: 2, thread() => near;
    packet_in_two_loads: 2, thread() => near;
}

part! { library in "library" by run:
    atomic_wait: 2, thread() => near;
    atomic_wait_for_change: 2, thread() => updated_by_pointer;
    semaphore: 2, thread() => updated_by_pointer;
    barrier_of_cuda: 2, thread() => updated_by_pointer;
}

part! { atomics in "atomics" by run:
    atomic_inc: 2, grid(2, 1) => updated;
    atomic_add: 2, thread() => updated;
    atomic_or: 2, thread() => updated;
    atomic_xor: 2, thread() => updated;
    atomic_set: 2, thread() => updated;
    atomic_swap: 2, thread() => updated;
    atomic_fetch_inc: 2, thread() => updated;
    atomic_fetch_add: 2, thread() => updated;
    atomic_fetch_or: 2, thread() => updated;
    atomic_fetch_xor: 2, thread() => updated;
    atomic_compare_swap: 2, thread() => updated;
    atomic_fetch: 2, thread() => updated;
    atomic_and: 2, thread() => updated;
    atomic_swap_set_fetch: 2, thread();
    atomics_of_64_bits: 2, thread();
    atomics_of_32_bits: 2, thread() => near;
    updates_of_32_bits: 2, thread() => updated;
    atomics_below_zero: 2, thread();
    atomics_of_floats: 2, thread();
    compare_swap_of_another_value: 2, thread();
    atomic_on_ones_own: 1, thread();
    tickets_of_threads: 2, grid(1, 2);
    tickets_of_blocks: 2, grid(2, 1);
    queue: 3, thread() => updated;
}

part! { order in "order" by run:
    fenced_flag: 2, thread();
    flag_without_fence: 2 racy, thread();
    flag_after_quiet: 2, thread();
    fence_after_put: 2, thread();
    fence_after_put_nbi: 2, thread();
    quiet_after_put_nbi: 2, thread();
    flag_without_quiet_of_nbi: 2 racy, thread();
    fence_after_iput: 2, thread() => near;
    fence_after_atomic: 2, thread();
    flag_after_atomic_that_fetches: 2, thread();
    signal_covers_its_own_data: 2 racy, thread();
    fenced_flag_warp: 2, warp();
    fenced_flag_block: 2, block();
    quiet_of_a_block_then_flag: 2, block();
    each_thread_quiets: 2, grid(1, 2);
    each_thread_quiets_and_signals: 2, grid(1, 2);
    each_thread_fences_and_signals: 2, grid(1, 2);
    each_thread_signals_without_order: 2 racy, grid(1, 2);
    each_block_fences: 2, grid(2, 1);
    word_put_twice: 2 racy, thread();
    word_put_twice_fenced: 2, thread();
    word_put_by_two: 3 racy, thread();
    puts_overlap: 2 racy, thread();
    puts_overlap_fenced: 2, thread();
    get_after_fence: 2 racy, thread();
    get_after_quiet: 2, thread();
    flag_to_a_third_after_fence: 3 racy, thread();
    flag_to_a_third_after_quiet: 3, thread();
    flag_over_a_third_after_fence: 3 racy, thread();
    flag_over_a_third_after_quiet: 3, thread();
    store_buffering: 2, thread() => updated;
    store_buffering_with_quiet: 2, thread() => updated;
    set_twice_and_read_twice: 2, thread() => updated;
    set_twice_fenced_and_read_twice: 2, thread() => updated;
    two_words_fenced: 2, thread() => updated;
}

part! { memory in "memory" by run:
    pointer_store: 2, thread() => |case| case.needs_peer_access();
    pointer_store_without_fence: 2 racy, thread() => |case| case.needs_peer_access();
    pointer_release: 2, thread() => |case| case.needs_peer_access();
    pointer_relaxed: 2 racy, thread() => |case| case.needs_peer_access();
    pointer_relaxed_with_fences: 2, thread() => |case| case.needs_peer_access();
    pointer_poll_without_fence: 2 racy, thread() => |case| case.needs_peer_access();
    pointer_add_release: 2, thread() => updated_by_pointer;
    pointer_add_relaxed: 2 racy, thread() => updated_by_pointer;
    pointer_store_then_fence: 2, thread() => |case| case.needs_peer_access();
    pointer_store_then_quiet: 2, thread() => |case| case.needs_peer_access();
    pointer_load_after_signal: 2, thread() => |case| case.needs_peer_access();
    pointer_load: 2, thread() => |case| case.needs_peer_access();
    pointer_load_of_vectors: 2, thread() => |case| case.needs_peer_access();
    pointer_store_of_vectors: 2, thread() => |case| case.needs_peer_access();
    pointer_store_of_every_size: 2, thread() => |case| case.needs_peer_access();
    pointer_to_each: 3, thread() => |case| case.needs_peer_access();
    pointer_atomic_add: 2, thread() => updated_by_pointer;
    pointer_atomic_of_each_kind: 2, thread() => updated_by_pointer;
    pointer_exchange: 2, thread() => updated_by_pointer;
    pointer_compare_and_swap: 2, thread() => updated_by_pointer;
    pointer_lock: 2, thread() => updated_by_pointer;
    pointer_store_by_a_block: 2, block() => |case| case.needs_peer_access();
    pointer_release_is_passed_on: 3, thread() => |case| case.needs_peer_access();
    pointer_ping_pong: 2, thread() => |case| case.needs_peer_access();
    store_then_load: 2, thread() => |case| case.needs_peer_access();
    store_then_load_with_fences: 2, thread() => |case| case.needs_peer_access();
    store_then_load_with_one_fence: 2, thread() => |case| case.needs_peer_access();
    store_then_load_with_fences_of_the_gpu: 2, thread() => |case| case.needs_peer_access();
    release_then_acquire: 2, thread() => |case| case.needs_peer_access();
    add_then_load: 2, thread() => updated_by_pointer;
    add_then_load_with_fences: 2, thread() => updated_by_pointer;
    store_then_load_there: 2, thread() => |case| case.needs_peer_access();
    exchange_then_load: 2, thread() => updated_by_pointer;
    fetch_then_load: 2, thread() => updated_by_pointer;
    own_store_then_load_there: 2, thread() => |case| case.needs_peer_access().lints(&["stale-load"]);
    own_store_then_load_there_with_fences: 2, thread() => |case| case.needs_peer_access().lints(&[]);
    relaxed_look_then_load: 2, thread() => |case| case.needs_peer_access().lints(&["stale-load"]);
    relaxed_look_then_load_with_fence: 2, thread() => |case| case.needs_peer_access().lints(&[]);
    blocks_store_then_load: 1, grid(2, 1);
    strong_data_then_flag: 2, thread() => |case| case.needs_peer_access();
    strong_data_then_flag_with_fence: 2, thread() => |case| case.needs_peer_access();
    strong_data_then_flag_with_acq_rel_fence: 2, thread() => |case| case.needs_peer_access();
    store_then_load_with_acq_rel_fences: 2, thread() => |case| case.needs_peer_access();
    store_then_load_with_one_acq_rel_fence: 2, thread() => |case| case.needs_peer_access();
    multicast_pointer: 2, thread();
}

part! { blocks in "blocks" by run:
    blocks_add: 1, alone(3, 2);
    blocks_hand_over: 1, grid(2, 2);
    blocks_hand_over_without_fence: 1 racy, grid(2, 1);
    blocks_release_and_acquire: 1, grid(2, 1);
    blocks_lock: 1, grid(2, 1);
    blocks_take_tickets: 1, alone(3, 1);
    blocks_compare_and_swap: 1, alone(2, 1);
    stride_loop: 1, alone(2, 2);
    a_block_for_each_peer: 3, alone(3, 32);
    last_block_puts: 2, alone(2, 1);
    grid_meets_before_a_put: 2, grid(2, 32);
    grid_meets_after_a_wait: 2, grid(2, 32);
    stride_loop_of_puts: 2, alone(2, 1);
    grid_in_two_dimensions: 2, Grid::new((2, 2), 1);
    shared_memory: 1, alone(1, 64);
    dynamic_shared_memory: 1, alone(1, 64).shared(256);
    shared_memory_staged_for_a_put: 2, alone(1, 64);
    sum_in_shared_memory_to_an_atomic: 2, alone(1, 64) => updated;
    shuffle: 1, alone(1, 32);
    sum_of_a_warp_is_put: 2, alone(1, 32);
    vote_decides_who_puts: 2, alone(1, 32);
    vote_of_all: 2, alone(1, 32);
    match_decides_where_to_put: 2, alone(1, 32);
    value_of_a_wait_is_handed_round: 2, warp();
    named_barrier: 2, block();
    a_warp_puts_and_a_warp_waits: 2, block();
    barrier_that_counts: 2, alone(1, 64);
}

part! { clusters in "clusters" by run:
    cluster_positions: 2, alone(4, 32);
    cluster_sum: 2, alone(2, 64);
    cluster_swap: 2, alone(2, 32);
    cluster_block_puts: 2, alone(2, 64);
    cluster_multicast: 2, alone(2, 32);
    cluster_counted_stores: 2, alone(2, 48);
    cluster_hand_over: 2, grid(2, 32);
    cluster_scope: 2, alone(2, 1);
    cluster_of_a_launch: 2, alone(4, 32).clusters(2);
}

part! { extensions in "extensions" by run:
    source_after_flush: 2, thread() => newer;
    source_after_flush_warp: 2, warp() => newer;
    source_after_flush_block: 2, block() => newer;
    source_after_flush_by_another: 2 racy, grid(1, 2) => newer;
    flag_after_flush: 2 racy, thread() => newer;
    qp_p: 2, thread() => newer;
    qp_g: 2, thread() => newer;
    qp_put: 2, thread() => newer;
    qp_get: 2, thread() => newer;
    qp_put_warp: 2, warp() => newer;
    qp_get_block: 2, block() => newer;
    qp_put_signal: 2, thread() => newer;
    qp_put_signal_nbi_block: 2, block() => newer;
    qp_source_after_put_nbi: 2 racy, thread() => newer;
    flag_after_qp_quiet: 2, thread() => newer;
    flag_after_qp_quiet_block: 2, block() => newer;
    flag_after_qp_fence: 2, thread() => newer;
    flag_without_qp_fence: 2 racy, thread() => newer;
    put_in_a_region: 2, block() => newer;
}

part! { barriers in "barriers" by run:
    barrier_thread: 2, thread();
    barrier_warp: 2, warp();
    barrier_block: 2, block();
    barrier_completes_nbi: 2, thread();
    two_barriers: 2, thread();
    sync_thread: 2, thread();
    sync_warp: 2, warp();
    sync_block: 2, block();
    sync_does_not_complete: 2 racy, thread();
    quiet_and_sync: 2, thread();
    pointer_store_then_barrier: 2, thread() => |case| case.needs_peer_access();
    pointer_store_then_sync: 2, thread() => |case| case.needs_peer_access();
    barrier_against_sync: 2, thread() => |case| case.ends_in_verdict();
    sync_skipped: 2, thread() => |case| case.ends_in_verdict();
}

part! { barriers_of_a_team in "barriers" by run_on_a_team:
    team_queries: 3, of_members(thread());
    team_barrier: 3, of_members(thread());
    team_barrier_block: 3, of_members(block());
    team_sync_warp: 3, of_members(warp());
}

part! { collectives in "collectives" by run:
    broadcast_thread: 2, thread();
    broadcast_warp: 2, warp();
    broadcast: 2, block();
    broadcast_of_bytes: 2, block();
    fcollect_thread: 2, thread();
    fcollect_warp: 2, warp();
    fcollect: 2, block();
    alltoall_thread: 2, thread();
    alltoall_warp: 2, warp();
    alltoall: 2, block();
    alltoall_of_three: 3, block();
    roots_differ: 2, thread() => |case| case.ends_in_verdict();
}

part! { collectives_of_a_team in "collectives" by run_on_a_team:
    team_broadcast: 3, of_members(block());
    team_fcollect: 3, of_members(thread());
}

part! { reductions in "reductions" by run:
    sum_reduce_thread: 2, thread();
    sum_reduce: 2, block();
    sum_reduce_of_three: 3, block();
    sum_reduce_of_four: 4, thread();
    prod_reduce: 2, block();
    min_reduce: 2, block();
    max_reduce_warp: 2, warp();
    and_reduce: 2, block();
    or_reduce_warp: 2, warp();
    xor_reduce_thread: 2, thread();
    float_sum_reduce: 2, block();
    sum_reduce_in_place: 2, block();
    reducescatter: 2, block();
    reducescatter_max_warp: 2, warp();
    reducescatter_min_thread: 2, thread();
    reduction_of_a_reduction: 2, block();
    counts_differ: 2, thread() => |case| case.ends_in_verdict();
    reduction_overlaps: 2, thread() => |case| case.ends_in_verdict();
}

part! { reductions_of_a_team in "reductions" by run_on_a_team:
    team_sum_reduce: 3, of_members(warp());
}

part! { misuse in "misuse" by run:
    put_beyond_the_end: 2, thread() => |case| case.ends_in_verdict();
    put_up_to_the_end: 2, thread();
    put_to_nobody: 2, thread() => |case| case.ends_in_verdict();
    put_to_somebody: 2, thread();
    put_from_shared_memory: 2, block() => |case| case.ends_in_verdict();
    put_of_a_copy_of_shared_memory: 2, block();
    put_to_a_pointer_of_a_peer: 2, thread() => |case| case.needs_peer_access().ends_in_verdict();
    store_to_a_pointer_of_a_peer: 2, thread() => |case| case.needs_peer_access();
    signal_inside_the_data: 2, thread() => |case| case.ends_in_verdict();
    signal_beside_the_data: 2, thread();
    half_a_block_puts: 2, block() => |case| case.ends_in_verdict();
    half_a_block_puts_as_a_warp: 2, block();
    each_thread_another_count: 2, warp() => |case| case.ends_in_verdict();
    all_threads_the_same_count: 2, warp();
    some_lanes_shuffle: 1, alone(1, 32) => |case| case.ends_in_verdict();
    lanes_of_the_mask_shuffle: 1, alone(1, 32);
    shared_memory_races: 1, alone(1, 64) => |case| case.ends_in_verdict();
    shared_memory_behind_a_barrier: 1, alone(1, 64);
    shared_memory_nobody_wrote: 1, alone(1, 64) => |case| case.ends_in_verdict();
    shared_memory_somebody_wrote: 1, alone(1, 64);
    nobody_signals: 1, thread() => |case| case.ends_in_verdict();
    somebody_signals: 1, thread();
    all_wait_before_they_signal: 2, thread() => |case| case.ends_in_verdict();
    one_signals_before_it_waits: 2, thread();
    poll_of_a_plain_word: 2 racy, thread() => |case| case.ends_in_verdict();
    poll_of_a_volatile_word: 2, thread();
    data_behind_an_acquiring_poll: 2 racy, thread();
    data_behind_a_wait: 2, thread();
    flag_within_the_gpu: 2 racy, thread() => |case| case.needs_peer_access();
    flag_within_the_system: 2, thread() => |case| case.needs_peer_access();
    fence_behind_the_barrier: 2 racy, block() => |case| case.needs_peer_access();
    fence_before_the_barrier: 2, block() => |case| case.needs_peer_access();
    store_beyond_the_end: 1, thread() => |case| case.ends_in_verdict();
    store_up_to_the_end: 1, thread();
    misaligned_load: 1, thread() => |case| case.ends_in_verdict();
    aligned_load: 1, thread();
    trap: 2, thread() => |case| case.ends_in_verdict();
    no_trap: 2, thread();
    word_polled: 2 racy, thread();
    word_polled_as_meant: 2, thread();
    word_read_as_meant: 2, thread();
}
