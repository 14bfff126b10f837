//! Kernels that call NVSHMEM in a loop without an end: the step limit ends them, although no block waits for anybody.

use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
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
