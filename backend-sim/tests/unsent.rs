//! Deadlocks at a word that nothing was sent to: the report says so, and where an update went instead.

use onesided::{Cmp, Grid, Pe, Result, SignalOp, Source, args};
use onesided_sim::{Config, Sim, Simulation, Standing, VerdictKind};

use crate::common::without_lines;

/// What PE 1 waits for at the end of the recorded run in order, from the value that it found on.
fn found_in_vain(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> String {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    let run = simulation.run(&program).unwrap();
    let verdict = simulation.reproduce(&run, &program).unwrap().verdict;
    assert!(matches!(verdict.kind, VerdictKind::Deadlock), "{verdict}");
    let of_pe = verdict.agents.iter().filter(|agent| agent.pe == 1);
    let mut waiting = of_pe.filter_map(|agent| match &agent.standing {
        Standing::Waits(text) if text.contains("found") => Some(text),
        _ => None,
    });
    let text = waiting.next().unwrap_or_else(|| panic!("{verdict}"));
    without_lines(text[text.find("found").expect("it found a value")..].to_string())
}

/// A signal to a wrong PE or slot, or to nobody: the report says so. Others' signals that somebody waits for are not meant for it.
#[test]
fn a_word_that_nothing_was_sent_to_is_named_with_what_went_elsewhere() {
    let ring = |to: fn(usize) -> Option<usize>, slot: usize| {
        found_in_vain(4, move |pe| {
            let flags = pe.alloc_zeroed::<u64>(2)?;
            if let Some(to) = to(pe.my_pe()) {
                let slot = if pe.my_pe() == 0 { slot } else { 0 };
                pe.host().signal_op(flags.signal(slot), 1, SignalOp::Set, to)?;
            }
            if pe.my_pe() != 3 {
                pe.host().signal_wait_until(flags.signal(0), Cmp::Eq, 1)?;
            }
            pe.free(flags)
        })
    };
    let nobody = ring(|pe| (pe > 0).then_some((pe + 1) % 4).filter(|to| *to != 3), 0);
    assert_eq!(nobody, "found 0 (u64); nothing was sent to it");
    let here = "at backend-sim/tests/unsent.rs:_ went to";
    let other_pe = ring(|pe| [Some(3), Some(2), None, Some(0)][pe], 0);
    assert_eq!(
        other_pe,
        format!(
            "found 0 (u64); nothing was sent to it, but signal_op of PE 0 {here} PE 3's copy, where nobody has looked"
        )
    );
    let other_slot = ring(|pe| [Some(1), Some(2), None, Some(0)][pe], 1);
    assert_eq!(
        other_slot,
        format!("found 0 (u64); nothing was sent to it, but signal_op of PE 0 {here} buf0+8, where nobody has looked")
    );

    // what was sent something is not said to be forgotten; and where a put wrote it plainly, a put may go astray
    let put = |value: u64, to: usize, clears: bool| {
        found_in_vain(3, move |pe| {
            let flag = pe.alloc_zeroed::<u64>(1)?;
            if clears {
                pe.write(&flag, &[0])?;
            }
            pe.host().barrier_all()?;
            match pe.my_pe() {
                0 => pe.host().p(&flag, value, to)?,
                1 => pe.host().wait_until(&flag, Cmp::Eq, 7)?,
                _ => {}
            }
            pe.free(flag)
        })
    };
    assert_eq!(put(6, 1, false), "found 6 (u64)");
    let astray =
        format!("found 0 (u64); nothing was sent to it, but p of PE 0 {here} PE 2's copy, where nobody has looked");
    assert_eq!([put(7, 2, false), put(7, 2, true)], [astray.clone(), astray]);
}

/// PE 0 signals; PE 1 waits, in one kernel. `first` and `then`: what PE 0 does before and after that.
fn kernel(to: usize, slot: usize, first: &str, then: &str) -> impl Fn(&Pe<Sim>) -> Result<()> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func (.param .b64 r) nvshmem_ptr (.param .b64 a, .param .b32 b);
.extern .func nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.extern .func (.param .b64 r) nvshmem_signal_wait_until (.param .b64 a, .param .b32 b, .param .b64 c);
.visible .entry k(.param .u64 k_param_0)
{{
.reg .b64 %rd<4>; .reg .b32 %r<2>; .reg .pred %p<2>;
ld.param.u64 %rd1, [k_param_0];
{{ .param .b32 r; call.uni (r), nvshmem_my_pe, (); ld.param.b32 %r1, [r]; }}
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $WAIT;
{{ .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], %rd1; st.param.b32 [b], 1;
call.uni (r), nvshmem_ptr, (a, b); ld.param.b64 %rd3, [r]; }}
{first}
add.u64 %rd2, %rd1, {offset};
{{ .param .b64 a; st.param.b64 [a], %rd2; .param .b64 b; st.param.b64 [b], 1; .param .b32 c; st.param.b32 [c], 9;
.param .b32 d; st.param.b32 [d], {to}; call.uni nvshmemx_signal_op, (a, b, c, d); }}
{then}
ret;
$WAIT:
{{ .param .b64 a; .param .b32 b; .param .b64 c; .param .b64 r; st.param.b64 [a], %rd1; st.param.b32 [b], 0; st.param.b64 [c], 1;
call.uni (r), nvshmem_signal_wait_until, (a, b, c); }}
ret;
}}
",
        offset = 8 * slot
    );
    let source = Source::ptx("unsent.ptx", text);
    move |pe| {
        let flags = pe.alloc_zeroed::<u64>(2)?;
        let (module, stream) = (pe.module(&source)?, pe.stream()?);
        // SAFETY: the kernel takes one pointer to two words.
        unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&flags])? };
        pe.synchronize(&stream)?;
        pe.free(flags)
    }
}

fn kernel_in_vain(to: usize, slot: usize, first: &str) -> String {
    let found = found_in_vain(2, kernel(to, slot, first, ""));
    match found.split_once("unsent.ptx:") {
        Some((before, after)) => format!("{before}_{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => found,
    }
}

#[test]
fn a_word_that_kernels_wait_for_is_named_with_what_went_elsewhere() {
    let astray = |place: &str| {
        format!(
            "found 0 (u64); nothing was sent to it, but signal_op of PE 0 at _ went to {place}, where nobody has looked"
        )
    };
    assert_eq!(kernel_in_vain(0, 0, ""), astray("PE 0's copy"));
    assert_eq!(kernel_in_vain(1, 1, ""), astray("buf0+8"));
    // who has stored there by a pointer may have meant that
    assert_eq!(kernel_in_vain(1, 1, "st.global.u64 [%rd3], 0;"), "found 0 (u64)");
    assert_eq!(kernel_in_vain(1, 1, "red.global.sys.add.u64 [%rd3+8], 1;"), "found 0 (u64)");
    // who looks at a copy by a pointer sees what has come there
    let seen = "found 0 (u64); nothing was sent to it";
    assert_eq!(kernel_in_vain(0, 0, "ld.volatile.global.u64 %rd2, [%rd1];"), seen);
}

/// PE 0 may still send it: nobody knows where its updates would have gone.
#[test]
fn nothing_went_elsewhere_while_a_kernel_can_go_on() {
    let works = "mov.u64 %rd2, 0;\n$WORKS:\nadd.u64 %rd2, %rd2, 1;\nst.global.u64 [%rd1+8], %rd2;\nsetp.lt.u64 %p1, %rd2, 100000;\n@%p1 bra $WORKS;";
    let program = kernel(0, 0, "", works);
    let mut simulation = Simulation::new(Config { max_instructions: 1_000, ..Config::pes(2) }).unwrap();
    let run = simulation.run(&program).unwrap();
    let verdict = simulation.reproduce(&run, &program).unwrap().verdict;
    assert!(
        matches!(verdict.kind, VerdictKind::InstructionLimit { .. })
            && !verdict.to_string().contains("nothing was sent"),
        "{verdict}"
    );
}

/// Where loads and stores do not reach a PE, its pointer is null, and the fault says why that may be.
#[test]
fn a_pointer_to_a_pe_of_another_node_is_null() {
    let program = kernel(0, 0, "st.global.u64 [%rd3], 1;", "");
    let fault =
        |nodes| Simulation::new(Config { nodes, ..Config::pes(2) }).unwrap().run(&program).unwrap().verdict.to_string();
    let why = "0x0 is a null pointer, or near to one; nvshmem_ptr returns null for a PE that is not reached by loads and stores";
    assert!(fault(2).contains(why) && !fault(1).contains("null"), "{}", fault(2));
}
