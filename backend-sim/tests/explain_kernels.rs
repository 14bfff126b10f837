//! What explains a finding of a program that launches kernels.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Edit, Effort, Ordering, Sim, Simulation};

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
