//! What explains a finding of a program that launches kernels.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Beside, Config, DeviceCall, Edit, Effort, KernelChange, Ordering, Sim, Simulation};

/// Each thread doubles its element.
const TWICE: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 twice_param_0)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [twice_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    add.s32 %r2, %r2, %r2;
    st.global.u32 [%rd4], %r2;
    ret;
}
";

/// A kernel, and the host's put of its result to the next PE.
fn program(pe: &Pe<Sim>) -> Result<Vec<i32>> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (src, dst) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(4)?);
    pe.write(&src, &[me as i32 + 1; 4])?;
    let (stream, module) = (pe.stream()?, pe.module(&Source::ptx("twice.ptx", TWICE))?);
    // SAFETY: the kernel takes a pointer to as many elements as there are threads.
    unsafe { pe.on(&stream).launch(&module.kernel("twice")?, &Grid::new(1, 4), args![&src])? }; // launch
    pe.host().put(&dst, &src, (me + 1) % n)?;
    pe.host().barrier_all()?;
    pe.synchronize(&stream)?;
    let found = pe.read(&dst)?;
    pe.free(dst)?;
    pe.free(src)?;
    Ok(found)
}

#[test]
fn a_stream_is_synchronized_behind_a_launch() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(program).unwrap();
    let fix = simulation.fix(&run, Effort::LITTLE, program).unwrap().fix.expect("a fix");
    let [Edit::Insert { call: Ordering::Synchronize, after, .. }] = fix.edits[..] else { panic!("{fix}") };
    let line = include_str!("explain_kernels.rs").lines().nth(after.line() as usize - 1);
    assert!(line.is_some_and(|line| line.ends_with("// launch")), "{fix}");
}

/// A stream is synchronized behind the launch, and not behind a line of the kernel; and the words say in which direction.
#[test]
fn what_is_missing_behind_a_kernel_names_its_launch() {
    let run = Simulation::new(Config::pes(2)).unwrap().run(program).unwrap();
    let race = &run.verdict.races[0];
    let line = |end: &str| {
        let mut lines = include_str!("explain_kernels.rs").lines();
        format!("backend-sim/tests/explain_kernels.rs:{}", 1 + lines.position(|line| line.ends_with(end)).unwrap())
    };
    let (launch, put) = (line("// launch"), line("pe.host().put(&dst, &src, (me + 1) % n)?;"));
    let expected = format!("synchronizing the stream after the launch at {launch} and before {put}");
    assert_eq!(race.missing.to_string(), expected);
}

/// PE 0 sends a number and a signal, and PE 1 reads the number when the signal is there. Line 1 sends, line 2 signals, line 3 waits, and line 4 reads.
const SEND: &str = "
.version 8.0
.target sm_90
.address_size 64
.extern .func nvshmem_int_p(.param .b64 a, .param .b32 b, .param .b32 c);
.extern .func nvshmemx_signal_op(.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.extern .func (.param .b64 r) nvshmem_signal_wait_until(.param .b64 a, .param .b32 b, .param .b64 c);
.visible .entry send(.param .u64 send_param_0, .param .u64 send_param_1, .param .u32 send_param_2)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [send_param_0];
    ld.param.u64 %rd2, [send_param_1];
    ld.param.u32 %r1, [send_param_2];
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra $reads;
    .loc 1 1 1
    { .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], 7; .param .b32 c; st.param.b32 [c], 1;
    call.uni nvshmem_int_p, (a, b, c); }
    .loc 1 2 1
    { .param .b64 a; st.param.b64 [a], %rd2; .param .b64 b; st.param.b64 [b], 1; .param .b32 c; st.param.b32 [c], 9;
    .param .b32 d; st.param.b32 [d], 1; call.uni nvshmemx_signal_op, (a, b, c, d); }
    ret;
$reads:
    .loc 1 3 1
    { .param .b64 a; st.param.b64 [a], %rd2; .param .b32 b; st.param.b32 [b], 0; .param .b64 c; st.param.b64 [c], 1;
    .param .b64 r; call.uni (r), nvshmem_signal_wait_until, (a, b, c); }
    .loc 1 4 1
    ld.u32 %r2, [%rd1];
    ret;
}
.file 1 \"send.cu\"
";

fn sends(pe: &Pe<Sim>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let arguments = args![&data, &flag, pe.my_pe() as i32];
    crate::hand_over::run(pe, &Source::ptx("send.ptx", SEND), "send", &Grid::new(1, 1), arguments)?;
    pe.free(flag)?;
    pe.free(data)
}

/// The fence that is missing in a kernel goes where the kernel's lines are.
#[test]
fn a_call_of_a_kernel_is_inserted() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(sends).unwrap();
    let fix = simulation.fix(&run, Effort::LITTLE, sends).unwrap().fix.expect("a fix");
    assert_eq!(fix.to_string(), "insert `nvshmem_fence` after send.cu:1: proved; nothing weaker is enough");
    let [edit @ Edit::InKernel { at, change }] = fix.edits[..] else { panic!("{fix}") };
    assert_eq!(change, KernelChange::Insert(DeviceCall::Fence, Beside::Behind));

    // in front of the signal it does the same; in front of the put it does nothing
    let with = |edit| Simulation::new(Config { edits: vec![edit], ..Config::pes(2) }).unwrap().run(sends).unwrap();
    let in_front = KernelChange::Insert(DeviceCall::Fence, Beside::InFront);
    let signal = onesided::At::foreign("send.cu", 2, 1, None);
    assert!(with(edit).is_ok() && with(Edit::InKernel { at: signal, change: in_front }).is_ok());
    assert!(!with(Edit::InKernel { at, change: in_front }).is_ok());
}
