//! Tests of what only this backend has, on a GPU. Each test is a job of one PE in this process, or of several PEs if a launcher
//! started this program.
//!
//! Without a GPU nothing runs, and the program says why. With `ONESIDED_REQUIRE_HARDWARE=1` it fails instead.
#![allow(unsafe_code)] // device pointers and kernels are unsafe to use, and the counting allocator is an allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::ExitCode;

use cudarc::driver::{LaunchConfig, PushKernelArg, result};
use cudarc::nvrtc::Ptx;
use libtest_mimic::{Arguments, Failed, Trial};
use onesided::{
    Bootstrap, Cmp, ErrorKind, InitMethod, InitStatus, Pe, ReduceOp, Result, SignalOp, TeamConfig, expect_eq,
};
use onesided_nvshmem::{DeviceAccess, Nvshmem, Process, Settings, driver, host_library, placement};

#[path = "hardware/completion.rs"]
mod completion;
#[path = "hardware/kernels.rs"]
mod kernels;
#[path = "hardware/tensors.rs"]
mod tensors;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1)); // a thread may be ending
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A test: what a job of one PE does.
type Test = fn(&Pe<Nvshmem>) -> Result<()>;

const TESTS: [(&str, Test); 9] = [
    ("kernels_and_verbs_share_memory_and_streams", kernels_and_verbs_share_memory_and_streams),
    ("streams_of_other_code_take_verbs", streams_of_other_code_take_verbs),
    ("no_operation_allocates", no_operation_allocates),
    ("waits_of_the_host_compare_in_the_order_of_their_type", waits_of_the_host_compare_in_the_order_of_their_type),
    (
        "a_fence_and_a_flush_leave_the_work_of_streams_to_a_later_quiet",
        a_fence_and_a_flush_leave_the_work_of_streams_to_a_later_quiet,
    ),
    ("what_the_library_lacks_is_refused_with_its_reason", what_the_library_lacks_is_refused_with_its_reason),
    ("what_a_full_gpu_has_no_room_for_is_refused", what_a_full_gpu_has_no_room_for_is_refused),
    ("a_split_after_the_last_team_is_an_error", a_split_after_the_last_team_is_an_error),
    ("finalize_gives_back_what_the_program_forgot", finalize_gives_back_what_the_program_forgot),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1); // the library has one state a process
    if let Some(obstacle) = obstacle() {
        println!(
            "not run: {} tests on hardware: {obstacle}",
            TESTS.len() + completion::TESTS.len() + kernels::TESTS.len() + tensors::TESTS.len() + 1
        );
        let required = std::env::var_os("ONESIDED_REQUIRE_HARDWARE").is_some();
        return if required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    if std::env::var_os(kernels::FAULTS).is_some() {
        kernels::fault();
    }
    let all = TESTS.into_iter().chain(completion::TESTS).chain(kernels::TESTS).chain(tensors::TESTS);
    let mut trials: Vec<Trial> = all.map(|(name, test)| Trial::test(name, move || run(test))).collect();
    trials.push(Trial::test("a_team_does_not_outlive_finalize", a_team_does_not_outlive_finalize));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Why nothing can run here.
fn obstacle() -> Option<String> {
    match (driver(), host_library(None)) {
        (Err(problem), _) | (_, Err(problem)) => Some(problem.to_string()),
        (Ok(driver), _) if driver.gpus.is_empty() => Some("the driver shows no GPU".to_string()),
        (_, Ok(library)) => library.misfit(),
    }
}

/// Runs a test as a job of one PE, or as one PE of those that the launcher started. Initializes before the test and finalizes
/// after it.
fn run(test: impl FnOnce(&Pe<Nvshmem>) -> Result<()>) -> std::result::Result<(), Failed> {
    let process = Process::open(Settings::from_environment()?)?;
    let method = match placement()? {
        Some(_) => InitMethod::Launcher,
        None => InitMethod::UniqueId { id: process.unique_id()?, rank: 0, n_pes: 1 },
    };
    let pe = process.init(method.clone())?;
    let again = process.init(method).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InvalidArgument, "{again}");
    assert!(process.init_status() >= InitStatus::Initialized);
    let result = test(&pe);
    pe.finalize()?;
    assert_eq!(process.init_status(), InitStatus::NotInitialized);
    Ok(result?)
}

/// Doubles `n` floats: `extern "C" __global__ void twice(float *data, int n)`, in PTX.
const TWICE: &str = r"
.version 6.5
.target sm_75
.address_size 64
.visible .entry twice(.param .u64 data, .param .u32 n) {
    .reg .pred %p1;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd4], %f2;
DONE:
    ret;
}
";

fn kernels_and_verbs_share_memory_and_streams(pe: &Pe<Nvshmem>) -> Result<()> {
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let src = pe.alloc::<f32>(values.len())?;
    let dst = pe.alloc_zeroed::<f32>(values.len())?;
    pe.write(&src, &values)?;

    let stream = pe.stream()?;
    let module = pe.cuda().load_module(Ptx::from_src(TWICE)).unwrap();
    let twice = module.load_function("twice").unwrap();
    let n = values.len() as i32;
    // SAFETY: both kernels stay inside the buffers, which are freed after the stream was waited for.
    unsafe {
        let launch = LaunchConfig::for_num_elems(n as u32);
        let address = pe.device_ptr(&src)?;
        let cuda = stream.backend_stream().cuda();
        cuda.launch_builder(&twice).arg(&address).arg(&n).launch(launch).unwrap();
        pe.on(&stream).put(&dst, &src, 0)?;
        let mut slice = pe.device_slice(&dst, &stream)?;
        cuda.launch_builder(&twice).arg(&mut slice.view_mut()).arg(&n).launch(launch).unwrap();
        expect_eq(slice.view().len(), values.len(), "the view's length")?;
    }
    pe.synchronize(&stream)?;
    expect_eq(pe.read(&dst)?, values.iter().map(|value| 4.0 * value).collect(), "twice, put, twice")?;

    // SAFETY: the address is only looked at.
    let (mine, peer) = unsafe { (pe.device_ptr(&dst)?, pe.peer_ptr(&dst, 0)?) };
    expect_eq(peer, Some(mine), "my own pointer as a peer's")?;
    // SAFETY: as above.
    let missing = unsafe { pe.peer_ptr(&dst, 7) }.expect_err("there is no such PE");
    expect_eq(missing.kind(), ErrorKind::InvalidArgument, "the error of a PE that does not exist")?;
    pe.free(dst)?;
    pe.free(src)
}

fn streams_of_other_code_take_verbs(pe: &Pe<Nvshmem>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    expect_eq(pe.cuda().is_event_tracking(), true, "slices of the program are tracked by cudarc")?;
    let legacy = pe.adopt_stream(pe.cuda().default_stream()).unwrap_err();
    assert!(
        legacy.kind() == ErrorKind::InvalidArgument && legacy.message().contains("make a stream instead"),
        "{legacy}"
    );
    let own = pe.cuda().new_stream().unwrap();
    let adopted = pe.adopt_stream(own.clone())?;
    pe.on(&adopted).signal_op(word.signal(0), 3, SignalOp::Set, 0)?;
    // SAFETY: `own` outlives it, and is of this context.
    let foreign = unsafe { pe.foreign_stream(own.cu_stream()) };
    pe.on(&foreign).signal_wait_until(word.signal(0), Cmp::Eq, 3)?;
    pe.synchronize(&foreign)?;
    drop((adopted, foreign));
    own.synchronize().unwrap(); // still alive
    pe.free(word)
}

fn no_operation_allocates(pe: &Pe<Nvshmem>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(64)?, pe.alloc_zeroed::<u32>(64)?);
    let words = pe.alloc_zeroed::<u64>(2)?;
    let stream = pe.stream()?;
    let round = || -> Result<()> {
        for on in [&*pe.host(), &pe.on(&stream)] {
            on.put(&dst, &src, 0)?;
            on.put_nbi(dst.slice(..8), src.slice(..8), 0)?;
            on.get(&dst, &src, 0)?;
            on.get_nbi(dst.slice(..8), src.slice(..8), 0)?;
            on.p(dst.at(0), 7, 0)?;
            on.iput(dst.slice(..8), src.slice(..4), 2, 1, 4, 0)?;
            on.put_signal(&dst, &src, words.signal(0), 1, SignalOp::Add, 0)?;
            on.signal_op(words.signal(1), 1, SignalOp::Set, 0)?;
            on.signal_wait_until(words.signal(1), Cmp::Ge, 1)?;
            on.wait_until(src.at(0), Cmp::Eq, 0)?;
            on.wait_until_all(src.slice(..4), Some(&[true, false, false, true]), Cmp::Eq, 0)?;
            on.wait_until_all_vector(src.slice(..4), None, Cmp::Ge, &[0; 4])?;
            on.write(&src, &[0; 64])?;
            on.fence()?;
            on.quiet()?;
            on.flush()?;
            on.barrier_all()?;
            on.sync(pe.world())?;
            on.broadcast(pe.world(), &dst, &src, 0)?;
            on.fcollect(pe.world(), &dst, &src)?;
            on.alltoall(pe.world(), &dst, &src)?;
            on.reduce(pe.world(), &dst, &src, ReduceOp::Sum)?;
            on.reducescatter(pe.world(), &dst, &src, ReduceOp::Max)?;
        }
        pe.host().g(src.at(0), 0)?;
        pe.read_one(src.at(0))?;
        pe.host().signal_fetch(words.signal(0))?;
        pe.synchronize(&stream)
    };
    // What is made once and stays: teams, the backend's stream, page-locked memory for values; and what the second round
    // asks first of all, whether that memory is free, for which cudarc looks a function up.
    round()?;
    round()?;
    let before = ALLOCATIONS.get();
    for _ in 0..10 {
        round()?;
    }
    expect_eq(ALLOCATIONS.get() - before, 0, "the number of allocations of 10 rounds")?;
    pe.free(words)?;
    pe.free(src)?;
    pe.free(dst)
}

/// A stream's wait compares a signal by `>=` in another way: one of these waits would never end, another would end at once.
fn waits_of_the_host_compare_in_the_order_of_their_type(pe: &Pe<Nvshmem>) -> Result<()> {
    const MIB: usize = 1 << 20;
    let (me, host) = (pe.my_pe(), pe.host());
    let words = pe.alloc_zeroed::<u64>(1)?;
    let signal = words.signal(0);
    pe.write(&words, &[u64::MAX])?;
    expect_eq(host.signal_wait_until(signal, Cmp::Ge, 0)?, u64::MAX, "what ended the wait for >= 0")?;
    expect_eq(host.signal_wait_until(signal, Cmp::Ge, 1)?, u64::MAX, "what ended the wait for >= 1")?;

    // 0 is one more than the largest number, if one counts on. What ends the wait comes behind copies that take a while.
    pe.write(&words, &[0])?;
    let block = pe.alloc::<u8>(512 * MIB)?;
    let stream = pe.stream()?;
    for _ in 0..20 {
        pe.on(&stream).put(block.slice(..256 * MIB), block.slice(256 * MIB..), me)?;
    }
    pe.on(&stream).signal_op(signal, u64::MAX, SignalOp::Set, me)?;
    expect_eq(host.signal_wait_until(signal, Cmp::Ge, u64::MAX)?, u64::MAX, "what ended the wait for the largest")?;
    pe.synchronize(&stream)?;

    let numbers = pe.alloc::<i64>(2)?;
    pe.write(&numbers, &[i64::MIN, i64::MAX])?;
    host.wait_until(numbers.at(0), Cmp::Le, i64::MAX)?;
    host.wait_until(numbers.at(1), Cmp::Ge, i64::MIN)?;
    host.wait_until_all_vector(&numbers, None, Cmp::Ge, &[i64::MIN, 1])?;
    pe.free(numbers)?;
    pe.free(block)?;
    pe.free(words)
}

/// A quiet waits for the nbi operations of all streams, unless another quiet has claimed them. A fence is composed as a quiet.
fn a_fence_and_a_flush_leave_the_work_of_streams_to_a_later_quiet(pe: &Pe<Nvshmem>) -> Result<()> {
    const WORDS: usize = 1 << 26; // 512 MiB, whose copy takes longer than a few calls
    let me = pe.my_pe();
    let (dst, src) = (pe.alloc_zeroed::<u64>(WORDS)?, pe.alloc_zeroed::<u64>(WORDS)?);
    let seen = pe.alloc_zeroed::<u64>(1)?;
    let (first, second) = (pe.stream()?, pe.stream()?);
    let last = WORDS - 1..;
    for round in 1..=10 {
        pe.write(src.slice(last.clone()), &[round])?;
        pe.on(&first).put_nbi(&dst, &src, me)?;
        if round % 2 == 0 {
            pe.on(&first).fence()?;
        } else {
            pe.on(&first).flush()?;
        }
        pe.on(&second).quiet()?;
        pe.on(&second).put(&seen, dst.slice(last.clone()), me)?;
        pe.synchronize(&second)?;
        expect_eq(pe.read(&seen)?, vec![round], "the last word behind the quiet")?;
        pe.synchronize(&first)?;
    }
    pe.free(seen)?;
    pe.free(src)?;
    pe.free(dst)
}

fn what_the_library_lacks_is_refused_with_its_reason(pe: &Pe<Nvshmem>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    assert!(pe.multicast(pe.world(), &word)?.is_none());
    let much = pe.alloc::<u8>(1 << 50).unwrap_err();
    expect_eq(much.kind(), ErrorKind::OutOfMemory, "the error of a petabyte")?;
    // Each half fits, and both together do not: the library would end the process.
    let most = pe.cuda().total_mem().unwrap() / 10 * 6;
    let half = pe.alloc::<u8>(most)?;
    let other = pe.alloc::<u8>(most).unwrap_err();
    expect_eq(other.kind(), ErrorKind::OutOfMemory, "the error of the second half")?;
    pe.free(half)?;
    let half = pe.alloc::<u8>(most)?; // the heap keeps its memory
    pe.free(half)?;
    pe.free(word)
}

/// Small allocations work as long as the heap has memory. When it would have to grow, they are an error on all PEs, where the
/// library would end the process. Only the GPU of PE 0 is full, which the other PEs cannot know by themselves.
fn what_a_full_gpu_has_no_room_for_is_refused(pe: &Pe<Nvshmem>) -> Result<()> {
    const MIB: usize = 1 << 20;
    const MORE_THAN_A_STEP: usize = 600 * MIB;
    if std::env::var("NVSHMEM_HEAP_KIND").is_ok_and(|kind| kind.eq_ignore_ascii_case("SYSMEM")) {
        println!(
            "not run: the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), and no GPU's memory makes room in it"
        );
        return Ok(());
    }
    let mut filling = Vec::new();
    let mut bytes = 1024 * MIB;
    while pe.my_pe() == 0 && bytes >= 2 * MIB {
        // SAFETY: nothing uses the memory, and it is freed once.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(block) => filling.push(block),
            Err(_) => bytes /= 2,
        }
    }
    pe.host().sync_all()?;
    let mut small = Vec::new();
    let refused = loop {
        match pe.alloc::<u8>(MIB) {
            Ok(block) => small.push(block),
            Err(refused) => break refused,
        }
    };
    expect_eq(refused.kind(), ErrorKind::OutOfMemory, "the error of the last MiB")?;
    println!("PE {}: {} MiB, then: {refused}", pe.my_pe(), small.len());
    assert!(!small.is_empty(), "the heap has some memory from the start");
    let large = pe.alloc::<u8>(MORE_THAN_A_STEP).unwrap_err();
    expect_eq(large.kind(), ErrorKind::OutOfMemory, "the error of 600 MiB")?;
    // What is freed can be used again, and the PEs still agree on everything.
    pe.free(small.remove(small.len() / 2))?;
    small.push(pe.alloc::<u8>(MIB)?);
    pe.host().barrier_all()?;
    for block in filling {
        // SAFETY: allocated above, and used by nobody.
        unsafe { result::free_sync(block) }.expect("memory of the GPU that can be freed");
    }
    pe.host().sync_all()?;
    pe.free(pe.alloc::<u8>(MORE_THAN_A_STEP)?)?;
    pe.free(pe.alloc_zeroed::<u64>(MORE_THAN_A_STEP / 4)?)?; // twice as much: more than two steps
    small.into_iter().try_for_each(|block| pe.free(block))
}

/// The library is never asked for more teams than it can have: 3.8.0 would end the process later. A destroyed team makes room.
fn a_split_after_the_last_team_is_an_error(pe: &Pe<Nvshmem>) -> Result<()> {
    if std::env::var_os("NVSHMEM_MAX_TEAMS").is_none() {
        println!("not run: hundreds of teams; NVSHMEM_MAX_TEAMS=12 allows few");
        return Ok(());
    }
    let split = || pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), TeamConfig::default());
    let mut teams = Vec::new();
    let refused = loop {
        match split() {
            Ok(team) => teams.push(team.expect("every PE is in it")),
            Err(refused) => break refused,
        }
    };
    println!("PE {}: {} teams, then: {refused}", pe.my_pe(), teams.len());
    expect_eq(refused.kind(), ErrorKind::OutOfTeams, "the error of the last split")?;
    pe.team_destroy(teams.remove(1))?;
    teams.extend(split()?);
    expect_eq(split().unwrap_err().kind(), ErrorKind::OutOfTeams, "the error of the next split")?;
    for team in &teams {
        pe.host().barrier(team)?;
    }
    teams.into_iter().try_for_each(|team| pe.team_destroy(team))
}

fn finalize_gives_back_what_the_program_forgot(pe: &Pe<Nvshmem>) -> Result<()> {
    let buf = pe.alloc_zeroed::<u32>(4)?;
    let team = pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), TeamConfig::default())?;
    let registered = pe.register_local(pe.alloc_external::<u32>(4)?)?;
    let symmetric = pe.register_symmetric(pe.alloc_external::<u32>(4)?)?;
    drop((buf, team, registered, symmetric));
    Ok(())
}

/// Two PEs of this process, one after the other. The library gives the second one's first team the same handle.
fn a_team_does_not_outlive_finalize() -> std::result::Result<(), Failed> {
    let split = |pe: &Pe<Nvshmem>| pe.team_split_strided(pe.world(), 0, 1, 1, TeamConfig::default());
    let mut kept = None;
    run(|pe| {
        kept = split(pe)?;
        Ok(())
    })?;
    let kept = kept.ok_or("PE 0 is in the team")?;
    run(|pe| {
        let new = split(pe)?.expect("PE 0 is in it");
        pe.host().barrier(&new)?;
        let refused = pe.host().barrier(&kept).expect_err("a team of an earlier PE was taken for one of this PE");
        expect_eq(refused.kind(), ErrorKind::InvalidArgument, "the error of a team of an earlier PE")?;
        pe.team_destroy(new)
    })
}
