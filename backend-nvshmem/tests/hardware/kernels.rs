//! Kernels and atomics of the host, on a GPU. They need NVRTC and nvJitLink there.

use std::process::Command;
use std::time::Instant;

use cudarc::driver::{result, sys};
use onesided::{
    Argument, Atomic, AtomicBits, AtomicSwap, ErrorKind, Grid, Pe, Result, SignalOp, Source, args, expect_eq,
};
use onesided_nvshmem::{DeviceAccess, Nvshmem};

use super::{Test, run};

pub(super) const TESTS: [(&str, Test); 10] = [
    ("a_kernel_communicates_in_both_ways", a_kernel_communicates_in_both_ways),
    ("arguments_arrive_as_they_are", arguments_arrive_as_they_are),
    ("shared_memory_is_what_a_kernel_declares_and_what_a_launch_adds", shared_memory_is_declared_and_added),
    ("what_does_not_fit_is_refused_with_its_limit", what_does_not_fit_is_refused_with_its_limit),
    ("what_does_not_compile_is_refused_with_its_line", what_does_not_compile_is_refused_with_its_line),
    ("a_kernel_of_64_bit_integers_is_found_in_both_ways", a_kernel_of_64_bit_integers_is_found_in_both_ways),
    ("a_module_may_be_loaded_as_often_as_one_likes", a_module_may_be_loaded_as_often_as_one_likes),
    ("a_kernel_is_launched_whatever_context_is_current", a_kernel_is_launched_whatever_context_is_current),
    ("atomics_of_the_host_are_atomic", atomics_of_the_host_are_atomic),
    ("a_fault_names_its_kernel", a_fault_names_its_kernel),
];

/// Set in the process that lets a kernel fault: CUDA is of no use there afterwards.
pub(super) const FAULTS: &str = "ONESIDED_TEST_FAULTS";

const RING: &str = r#"
#include <nvshmemx.h>
extern "C" __global__ void ring(int *numbers, float *blocks, float *sums, uint64_t *signal, nvshmem_team_t team, int round) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    nvshmemx_float_put_block(blocks + 64, blocks, 64, next);
    if (threadIdx.x == 0) {
        nvshmem_int_p(numbers, me + 1, next);
        nvshmem_fence();
        nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, next);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, round);
        numbers[1] = nvshmem_int_g(numbers, next);
        nvshmem_uint64_atomic_fetch_add(signal + 1, me + 1, 0);
        nvshmem_quiet();
    }
    nvshmemx_float_sum_reduce_block(team, sums + 64, sums, 64);
    nvshmemx_barrier_all_block();
}
"#;

fn a_kernel_communicates_in_both_ways(pe: &Pe<Nvshmem>) -> Result<()> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let previous = (me + n - 1) % n;
    let numbers = pe.alloc_zeroed::<i32>(2)?;
    let blocks = pe.alloc_zeroed::<f32>(128)?;
    let sums = pe.alloc_zeroed::<f32>(128)?;
    let words = pe.alloc_zeroed::<u64>(2)?;
    let stream = pe.stream()?;
    for (round, source) in [(1, Source::cuda("ring.cu", RING)), (2, Source::cuda("ring.cu", RING).inlined())] {
        let begun = Instant::now();
        let module = pe.module(&source)?;
        println!("PE {me}: round {round} loaded in {:.2} s", begun.elapsed().as_secs_f64());
        let ring = module.kernel("ring")?;
        pe.write(blocks.slice(..64), &[me as f32; 64])?;
        pe.write(sums.slice(..64), &[(me + round) as f32; 64])?;
        pe.host().barrier_all()?;
        let grid = Grid::new(1, 64).collective();
        let arguments = args![&numbers, &blocks, &sums, &words, pe.world(), round as i32];
        // SAFETY: the arguments have the kernel's types, and it stays inside the buffers.
        unsafe { pe.on(&stream).launch(&ring, &grid, arguments)? };
        pe.synchronize(&stream)?;
        expect_eq(&pe.read(&numbers)?[..], &[previous as i32 + 1, me as i32 + 1], "p and g")?;
        expect_eq(pe.read(blocks.slice(64..))?, vec![previous as f32; 64], "put by a block")?;
        let sum: usize = (0..n).map(|pe| pe + round).sum();
        expect_eq(pe.read(sums.slice(64..))?, vec![sum as f32; 64], "a reduction by a block")?;
        pe.host().barrier_all()?;
        let counted = round * (1..=n).sum::<usize>();
        expect_eq(pe.host().g(words.at(1), 0)?, counted as u64, "the atomics of all PEs")?;
        pe.host().barrier_all()?;
    }
    // From the cache: nothing is compiled.
    let begun = Instant::now();
    pe.module(&Source::cuda("ring.cu", RING))?;
    println!("PE {me}: loaded again in {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    pe.free(words)?;
    pe.free(sums)?;
    pe.free(blocks)?;
    pe.free(numbers)
}

fn arguments_arrive_as_they_are(pe: &Pe<Nvshmem>) -> Result<()> {
    const TEXT: &str = r#"
        struct Pair { int a; double b; };
        template <int N> __global__ void take(double *out, bool flag, signed char c, float f, Pair pair, unsigned long long big) {
            extern __shared__ double room[];
            room[threadIdx.x + 6500] = N;
            __syncthreads();
            if (threadIdx.x == 0) {
                out[0] = flag; out[1] = c; out[2] = f; out[3] = pair.a; out[4] = pair.b; out[5] = big; out[6] = room[6500 + 31];
            }
        }"#;
    let out = pe.alloc_zeroed::<f64>(7)?;
    let module = pe.module(&Source::cuda("take.cu", TEXT).instance("take<7>"))?;
    let take = module.kernel("take<7>")?;
    let pair: Vec<u8> = [3_u64.to_ne_bytes(), 2.5_f64.to_ne_bytes()].concat();
    let stream = pe.stream()?;
    let grid = Grid::new(1, 32).shared(8 * 6532);
    let arguments = args![&out, true, -5_i8, 0.5_f32, Argument::bytes(&pair, 8), 1_u64 << 40];
    // SAFETY: the arguments have the kernel's types, and it stays inside the buffer.
    unsafe { pe.on(&stream).launch(&take, &grid, arguments)? };
    pe.synchronize(&stream)?;
    expect_eq(&pe.read(&out)?[..], &[1.0, -5.0, 0.5, 3.0, 2.5, (1_u64 << 40) as f64, 7.0], "arguments")?;
    pe.free(out)
}

/// C++ gives it another name with NVSHMEM's headers, where these integers are `long`, than with ours, where they are `long long`.
fn a_kernel_of_64_bit_integers_is_found_in_both_ways(pe: &Pe<Nvshmem>) -> Result<()> {
    const TEXT: &str = "#include <nvshmem.h>\n\
        __global__ void count(int64_t *seen, uint64_t more) { *seen = nvshmem_n_pes() + more; }\n";
    let seen = pe.alloc_zeroed::<i64>(1)?;
    let stream = pe.stream()?;
    let source = || Source::cuda("count.cu", TEXT).instance("count");
    for (source, more) in [(source(), 5_u64), (source().inlined(), 1 << 40)] {
        let module = pe.module(&source)?;
        // SAFETY: the arguments have the kernel's types.
        unsafe { pe.on(&stream).launch(&module.kernel("count")?, &Grid::new(1, 1), args![&seen, more])? };
        pe.synchronize(&stream)?;
        expect_eq(pe.read_one(&seen)?, pe.n_pes() as i64 + more as i64, "what the kernel has counted")?;
    }
    pe.free(seen)
}

/// Each module has variables of its own. One without any takes room on the GPU once.
fn a_module_may_be_loaded_as_often_as_one_likes(pe: &Pe<Nvshmem>) -> Result<()> {
    const COUNT: &str = "__device__ int count;\nextern \"C\" __global__ void add(int *seen) { *seen = ++count; }\n";
    const RING: &str = include_str!("../../../examples/src/kernels/device_ring.ptx");
    let seen = pe.alloc_zeroed::<i32>(1)?;
    let stream = pe.stream()?;
    let modules = [0, 1].map(|_| pe.module(&Source::cuda("count.cu", COUNT)));
    for (module, expected) in [(0, 1), (0, 2), (1, 1), (0, 3), (1, 2)] {
        let add = modules[module].as_ref().map_err(Clone::clone)?.kernel("add")?;
        // SAFETY: the argument has the kernel's type.
        unsafe { pe.on(&stream).launch(&add, &Grid::new(1, 1), args![&seen])? };
        pe.synchronize(&stream)?;
        expect_eq(pe.read_one(&seen)?, expected, "the variable of a module")?;
    }
    pe.module(&Source::ptx("device_ring.ptx", RING))?;
    let free = || cudarc::driver::result::mem_get_info().map(|(free, _)| free).expect("a context is bound");
    let (begun, before) = (Instant::now(), free());
    for _ in 0..500 {
        pe.module(&Source::ptx("device_ring.ptx", RING))?;
    }
    let taken = before.saturating_sub(free()) >> 20;
    println!("PE {}: loaded 500 times in {:.2} s, {taken} MiB", pe.my_pe(), begun.elapsed().as_secs_f64());
    expect_eq(taken < 16, true, "one copy on the GPU")?;
    pe.free(seen)
}

/// Code between the calls may leave another context current, or none.
fn a_kernel_is_launched_whatever_context_is_current(pe: &Pe<Nvshmem>) -> Result<()> {
    const TEXT: &str =
        "extern \"C\" __global__ void add(int *x) { extern __shared__ int y[]; y[0] = 1; *x += y[0]; }\n";
    let module = pe.module(&Source::cuda("add.cu", TEXT))?;
    let add = module.kernel("add")?;
    let sum = pe.alloc_zeroed::<i32>(1)?;
    let stream = pe.stream()?;
    let device = pe.cuda().cu_device();
    let mut other = std::ptr::null_mut();
    // SAFETY: a context of the same device, which this thread creates and destroys.
    let created = unsafe { sys::cuCtxCreate_v4(&raw mut other, std::ptr::null_mut(), 0, device) };
    if let Err(error) = created.result() {
        println!("only without a context: a second one cannot be created: {error}");
    }
    let grids =
        [Grid::new(1, 1).shared(64), Grid::new(1, 1).shared(64 << 10), Grid::new(1, 1).shared(64).cooperative()];
    for context in if other.is_null() { vec![other] } else { vec![std::ptr::null_mut(), other] } {
        for grid in &grids {
            // SAFETY: a context that exists, or none. The kernel takes one word, and is launched with memory for `y`.
            unsafe {
                result::ctx::set_current(context).expect("it exists");
                pe.on(&stream).launch(&add, grid, args![&sum])?;
            }
        }
    }
    if !other.is_null() {
        // SAFETY: created above, and nothing uses it.
        unsafe { sys::cuCtxDestroy_v2(other) }.result().expect("it exists");
    }
    pe.synchronize(&stream)?;
    let launches = if other.is_null() { 3 } else { 6 };
    expect_eq(pe.read_one(&sum)?, launches, "as many additions as launches")?;
    pe.free(sum)
}

/// Each part alone needs no permission of CUDA, and both together do.
fn shared_memory_is_declared_and_added(pe: &Pe<Nvshmem>) -> Result<()> {
    const TEXT: &str = r#"
        extern "C" __global__ void both(int *out, int n) {
            __shared__ int declared[10240];
            extern __shared__ int added[];
            for (int i = threadIdx.x; i < 10240; i += blockDim.x) declared[i] = i + n;
            for (int i = threadIdx.x; i < 5120; i += blockDim.x) added[i] = i - n;
            __syncthreads();
            if (threadIdx.x == 0) { out[0] = declared[10239 - n]; out[1] = added[5119 - n]; }
        }"#;
    let module = pe.module(&Source::cuda("both.cu", TEXT))?;
    let both = module.kernel("both")?;
    let out = pe.alloc_zeroed::<i32>(2)?;
    let stream = pe.stream()?;
    let grid = || Grid::new(1, 128).shared(20 << 10);
    for (n, grid) in [(1, grid()), (2, grid().cooperative())] {
        // SAFETY: the arguments have the kernel's types, and it stays inside the buffer.
        unsafe { pe.on(&stream).launch(&both, &grid, args![&out, n])? };
        pe.synchronize(&stream)?;
        expect_eq(&pe.read(&out)?[..], &[10239, 5119 - 2 * n], "the last words of both")?;
    }
    pe.free(out)
}

fn what_does_not_fit_is_refused_with_its_limit(pe: &Pe<Nvshmem>) -> Result<()> {
    const TEXT: &str = "extern \"C\" __global__ void __launch_bounds__(64) small(int *x) { *x = 1; }\n";
    let module = pe.module(&Source::cuda("small.cu", TEXT))?;
    let small = module.kernel("small")?;
    let word = pe.alloc_zeroed::<i32>(1)?;
    let stream = pe.stream()?;
    for (grid, expected) in [
        (Grid::new(1, 128), "128 threads in a block; with"),
        (
            Grid::new(1, 32).shared(1 << 20),
            "1048576 bytes of shared memory, and 0 that it declares; a block of this GPU has",
        ),
        (Grid::new(1_000_000, 64).cooperative(), "1000000 blocks that must run at the same time; "),
        (Grid::new(1_000_000, 64).collective(), "1000000 blocks that must run at the same time; "),
    ] {
        // SAFETY: it is refused.
        let error = unsafe { pe.on(&stream).launch(&small, &grid, args![&word]) }.unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(expected), "{error}");
    }
    // SAFETY: the kernel writes the word that it is given.
    unsafe { pe.on(&stream).launch(&small, &Grid::new(1_000_000, 64), args![&word])? };
    pe.synchronize(&stream)?;
    expect_eq(pe.read_one(&word)?, 1, "what the kernel wrote")?;
    pe.free(word)
}

fn what_does_not_compile_is_refused_with_its_line(pe: &Pe<Nvshmem>) -> Result<()> {
    for (source, expected) in [
        (Source::cuda("own.cu", "\n__global__ void k() { y = 1; }\n"), "own.cu:2: error: identifier \"y\""),
        (Source::ptx("own.ptx", ".version 9.0\n.target sm_70\n.entry k() { no.such; }"), "own.ptx: line 3"),
        (Source::ptx("own.ptx", ".version 9.0\n.target sm_999\n"), "it is PTX for sm_999, and this GPU is an sm_"),
    ] {
        let error = pe.module(&source).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(expected), "{error}");
    }
    Ok(())
}

fn atomics_of_the_host_are_atomic(pe: &Pe<Nvshmem>) -> Result<()> {
    let support = pe.capabilities().host_atomics;
    if !support.is_available() {
        println!("not run: {support}");
        return Ok(());
    }
    swaps(pe, 1.5_f32, -2.0, 8.25)?;
    swaps(pe, 1.5_f64, -2.0, 1e300)?;
    sums(pe, -7_i32, 5, 1 << 30)?;
    sums(pe, 7_u32, 5, 3)?;
    sums(pe, -7_i64, 5, 1 << 40)?;
    sums(pe, 7_u64, 1 << 60, 3)?;
    bits(pe, 0b1100_u32, 0b1010)?;
    bits(pe, -1_i64, 1 << 40)?;

    // Tickets: all PEs draw from one word at once.
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let words = pe.alloc_zeroed::<u64>(2)?;
    let begun = Instant::now();
    let mut last = None;
    for _ in 0..100 {
        let ticket = pe.host().atomic_fetch_inc(words.at(0), 0)?;
        assert!(last < Some(ticket), "{last:?} before {ticket}");
        last = Some(ticket);
    }
    let fetched = begun.elapsed() / 100;
    let begun = Instant::now();
    for _ in 0..100 {
        pe.host().atomic_add(words.at(1), me as u64, 0)?;
    }
    let issued = begun.elapsed() / 100;
    pe.host().barrier_all()?;
    println!("PE {me}: an atomic that fetches takes {fetched:?}, one that does not is issued in {issued:?}");
    let (drawn, sum) = (pe.host().g(words.at(0), 0)?, pe.host().g(words.at(1), 0)?);
    expect_eq((drawn, sum), (100 * n as u64, 100 * (0..n as u64).sum::<u64>()), "what all PEs did")?;

    // A fence orders an atomic behind a signal, as it does puts.
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let next = (me + 1) % n;
    pe.host().atomic_add(flags.at(0), 42, next)?;
    pe.host().fence()?;
    pe.host().signal_op(flags.signal(1), 1, SignalOp::Set, next)?;
    pe.host().signal_wait_until(flags.signal(1), onesided::Cmp::Eq, 1)?;
    expect_eq(pe.read_one(flags.at(0))?, 42, "an atomic before a fence and a signal")?;
    pe.host().barrier_all()?;
    pe.free(flags)?;
    pe.free(words)
}

/// Every operation on one type, on the next PE's word.
fn swaps<T: AtomicSwap + PartialEq + std::fmt::Debug>(pe: &Pe<Nvshmem>, a: T, b: T, c: T) -> Result<()> {
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let word = pe.alloc::<T>(1)?;
    pe.write(&word, &[a])?;
    pe.host().barrier_all()?;
    expect_eq(pe.host().atomic_swap(&word, b, next)?, a, "swap")?;
    expect_eq(pe.host().atomic_fetch(&word, next)?, b, "fetch")?;
    pe.host().atomic_set(&word, c, next)?;
    pe.host().barrier_all()?;
    expect_eq(pe.read_one(&word)?, c, "set")?;
    pe.free(word)
}

fn sums<T: Atomic + PartialEq + std::fmt::Debug>(pe: &Pe<Nvshmem>, a: T, b: T, c: T) -> Result<()> {
    swaps(pe, a, b, c)?;
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let word = pe.alloc::<T>(1)?;
    pe.write(&word, &[a])?;
    pe.host().barrier_all()?;
    expect_eq(pe.host().atomic_compare_swap(&word, b, c, next)?, a, "compare_swap that fails")?;
    expect_eq(pe.host().atomic_compare_swap(&word, a, b, next)?, a, "compare_swap")?;
    expect_eq(pe.host().atomic_fetch_add(&word, c, next)?, b, "fetch_add")?;
    let sum = T::from_bits64(b.to_bits64().wrapping_add(c.to_bits64()));
    expect_eq(pe.host().atomic_fetch_inc(&word, next)?, sum, "add")?;
    pe.host().atomic_inc(&word, next)?;
    pe.host().barrier_all()?;
    expect_eq(pe.read_one(&word)?, T::from_bits64(sum.to_bits64().wrapping_add(2)), "inc")?;
    pe.free(word)
}

fn bits<T: AtomicBits + PartialEq + std::fmt::Debug>(pe: &Pe<Nvshmem>, a: T, b: T) -> Result<()> {
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let word = pe.alloc::<T>(1)?;
    let (x, y) = (a.to_bits64(), b.to_bits64());
    for (fetches, fetching) in [(false, "plain"), (true, "fetching")] {
        for (name, expected) in [("and", x & y), ("or", x | y), ("xor", x ^ y)] {
            pe.write(&word, &[a])?;
            pe.host().barrier_all()?;
            let host = pe.host();
            let old = match (name, fetches) {
                ("and", true) => Some(host.atomic_fetch_and(&word, b, next)?),
                ("or", true) => Some(host.atomic_fetch_or(&word, b, next)?),
                ("xor", true) => Some(host.atomic_fetch_xor(&word, b, next)?),
                ("and", _) => host.atomic_and(&word, b, next).map(|()| None)?,
                ("or", _) => host.atomic_or(&word, b, next).map(|()| None)?,
                _ => host.atomic_xor(&word, b, next).map(|()| None)?,
            };
            expect_eq(old.unwrap_or(a), a, fetching)?;
            pe.host().barrier_all()?;
            expect_eq(pe.read_one(&word)?, T::from_bits64(expected), name)?;
        }
    }
    pe.free(word)
}

/// In a process of its own, which CUDA leaves of no use.
fn a_fault_names_its_kernel(pe: &Pe<Nvshmem>) -> Result<()> {
    if pe.n_pes() > 1 {
        println!("not run: PEs would wait for the one that faults");
        return Ok(());
    }
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).env(FAULTS, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && said.contains("in the kernel faulty, launched at "),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// What that process does: prints the error and ends.
pub(super) fn fault() -> ! {
    const TEXT: &str = "extern \"C\" __global__ void faulty(int *x) { *x = 1; }\n";
    let failed = run(|pe| {
        let module = pe.module(&Source::cuda("faulty.cu", TEXT))?;
        let faulty = module.kernel("faulty")?;
        let stream = pe.stream()?;
        // SAFETY: none: the kernel faults, which ends this process.
        unsafe { pe.on(&stream).launch(&faulty, &Grid::new(1, 1), args![Argument::null()])? };
        println!("{}", pe.synchronize(&stream).unwrap_err());
        std::process::exit(0)
    });
    println!("{failed:?}");
    std::process::exit(1)
}
