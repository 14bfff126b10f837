//! A deadlock in a kernel names who waits: block and thread of a call, and of threads that wait for others of their block.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Sim, Simulation, VerdictKind};

/// Thread 3 waits for a signal that nobody sends. The others call what `body` says.
fn report(body: &str) -> String {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b64 r) nvshmem_signal_wait_until (.param .b64 a, .param .b32 b, .param .b64 c);
.extern .func nvshmemx_barrier_all_block;
.visible .entry k(.param .u64 k_param_0)
{{
.reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>;
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 3;
@%p1 bra $OTHERS;
{{
.param .b64 a; .param .b32 b; .param .b64 c; .param .b64 r;
st.param.b64 [a], %rd1; st.param.b32 [b], 5; st.param.b64 [c], 1;
call.uni (r), nvshmem_signal_wait_until, (a, b, c);
}}
$OTHERS:
{body}
ret;
}}
"
    );
    let source = Source::ptx("deadlocks.ptx", text);
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let words = pe.alloc_zeroed::<u64>(1)?;
        let (module, stream) = (pe.module(&source)?, pe.stream()?);
        // SAFETY: the kernel takes one pointer.
        unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 4), args![&words])? };
        pe.synchronize(&stream)?;
        pe.free(words)
    };
    let verdict = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap().verdict;
    assert!(matches!(verdict.kind, VerdictKind::Deadlock), "{verdict}");
    verdict.to_string()
}

#[test]
fn a_call_that_waits_and_a_barrier_of_the_others() {
    insta::assert_snapshot!(report("bar.sync 0;"));
}

#[test]
fn a_call_of_the_block_that_one_thread_does_not_come_to() {
    insta::assert_snapshot!(report("call.uni nvshmemx_barrier_all_block, ();"));
}
