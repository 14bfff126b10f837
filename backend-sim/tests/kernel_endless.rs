//! Kernels that call NVSHMEM in a loop without an end: the step limit ends them, although no block waits for anybody, and so does a flag.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onesided::{Cmp, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, VerdictKind};

const LOOP: &str = ".version 8.0\n.target sm_90\n.address_size 64
.extern .func nvshmem_quiet;
.extern .func nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.visible .entry k(.param .u64 k_param_0)
{
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [k_param_0];
$L:
{ .param .b64 a; st.param.b64 [a], %rd1; .param .b64 b; st.param.b64 [b], 1; .param .b32 c; st.param.b32 [c], 10;
.param .b32 d; st.param.b32 [d], 0; call.uni nvshmemx_signal_op, (a, b, c, d); }
{ call.uni nvshmem_quiet, (); }
bra.uni $L;
}
";

fn adds_for_ever(pe: &Pe<Sim>) -> Result<()> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    let module = pe.module(&Source::ptx("loop.ptx", LOOP))?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes one pointer to a word.
    unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&word])? };
    pe.synchronize(&stream)?;
    pe.free(word)
}

#[test]
fn a_loop_of_calls_ends_at_the_step_limit() {
    for pes in [1, 2] {
        let config = Config { max_steps: Some(1000), ..Config::pes(pes) };
        let run = Simulation::new(config.clone()).unwrap().run(adds_for_ever).unwrap();
        assert!(matches!(run.verdict.kind, VerdictKind::StepLimit { steps: 1000 }), "{}", run.verdict);
        let report = format!("{:#}", run.verdict);
        assert!(report.contains("loop.ptx:"), "{report}");

        let mut ends = 0;
        let visit = |run: &onesided_sim::Run<()>| {
            assert!(matches!(run.verdict.kind, VerdictKind::StepLimit { .. }), "{}", run.verdict);
            ends += 1;
            if ends < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let explored =
            Simulation::new(config).unwrap().explore(Explore::All { limit: 3 }, adds_for_ever, visit).unwrap();
        assert!(!explored.complete && ends > 0);
    }
}

/// A block makes few instructions for each call. So it is looked at between its turns too: somebody wants an end, once PE 0 has seen five of
/// its signals.
#[test]
fn a_flag_ends_a_loop_of_calls_soon() {
    let flag = Arc::new(AtomicBool::new(false));
    let program = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 1 {
            let module = pe.module(&Source::ptx("loop.ptx", LOOP))?;
            let stream = pe.stream()?;
            // SAFETY: the kernel takes one pointer to a word.
            unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&word])? };
            pe.synchronize(&stream)?;
        } else {
            pe.host().signal_wait_until(word.signal(0), Cmp::Ge, 5)?;
            flag.store(true, Ordering::Relaxed);
        }
        pe.free(word)
    };
    let mut schedule = None;
    let config = |steps| Config { max_steps: Some(steps), ..Config::pes(2) };
    let visit = |run: &onesided_sim::Run<()>| {
        schedule = Some(run.schedule.clone());
        ControlFlow::Continue(())
    };
    Simulation::new(config(1000)).unwrap().explore(Explore::random(1, 0), program, visit).unwrap();
    assert!(flag.swap(false, Ordering::Relaxed), "PE 0 has seen them");

    let mut simulation = Simulation::new(config(1_000_000)).unwrap();
    simulation.stop_when(Arc::clone(&flag));
    let run = simulation.replay(&schedule.unwrap(), program).unwrap();
    assert!(matches!(run.verdict.kind, VerdictKind::Stopped { .. }), "{}", run.verdict);
    assert!(run.steps < 20_000, "{}", run.steps);
}
