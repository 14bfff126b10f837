//! Quiets and fences of several threads: each completes or orders all that it is about, whoever else does.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Grid, Pe, Result, SignalOp, Source, Stream, SymmetricBuf, args};
use onesided_sim::{Config, Explore, Explored, Quiet, Races, Run, Sim, Simulation};

const QUIETS: &str = include_str!("../ptx/kernels/quiets.ptx");
const THREADS: u32 = 2;

/// Launches a kernel of quiets.cu on every PE, on the first of two streams; then does something more.
fn launch(
    pe: &Pe<Sim>,
    name: &str,
    more: impl FnOnce(&Memory, [&Stream<Sim>; 2], &dyn Fn(&str, &Stream<Sim>) -> Result<()>) -> Result<()>,
) -> Result<Vec<i32>> {
    let count = THREADS as usize;
    let (data, seen) = (pe.alloc_zeroed::<i32>(128)?, pe.alloc_zeroed::<i32>(count)?);
    let memory = Memory { data, seen, signals: pe.alloc_zeroed::<u64>(count)? };
    let (first, second) = (pe.stream()?, pe.stream()?);
    let module = pe.module(&Source::ptx("quiets.ptx", QUIETS))?;
    let launch = |name: &str, stream: &Stream<Sim>| {
        let arguments = args![&memory.data, &memory.signals, &memory.seen];
        // SAFETY: every kernel of the file takes these three, and stays inside them.
        unsafe { pe.on(stream).launch(&module.kernel(name)?, &Grid::new(1, THREADS), arguments) }
    };
    launch(name, &first)?;
    more(&memory, [&first, &second], &launch)?;
    pe.on(&first).barrier_all()?;
    pe.synchronize(&first)?;
    pe.synchronize(&second)?;
    let result = pe.read(&memory.seen)?;
    pe.free(memory.seen)?;
    pe.free(memory.signals)?;
    pe.free(memory.data)?;
    Ok(result)
}

struct Memory {
    data: SymmetricBuf<i32>,
    signals: SymmetricBuf<u64>,
    seen: SymmetricBuf<i32>,
}

fn simulation(quiet: Quiet) -> Simulation {
    Simulation::new(Config { quiet, ..Config::pes(2) }).unwrap()
}

/// Visits all schedules up to the first finding, in a text.
fn prove<T>(quiet: Quiet, program: impl Fn(&Pe<Sim>) -> Result<T>) -> (Explored, Option<String>) {
    let mut wrong = None;
    let visit = |run: &Run<T>| match run.verdict.is_ok() {
        true => ControlFlow::Continue(()),
        false => {
            wrong = Some(run.verdict.to_string());
            ControlFlow::Break(())
        }
    };
    let explored = simulation(quiet).explore(Explore::All { limit: 20_000 }, program, visit).unwrap();
    (explored, wrong)
}

#[test]
fn each_thread_completes_and_orders_its_own_beside_others() {
    for name in ["each_quiets", "each_quiets_nbi", "each_fences", "one_fences"] {
        for quiet in [Quiet::Pe, Quiet::Thread] {
            let program = |pe: &Pe<Sim>| launch(pe, name, |_, _, _| Ok(()));
            let run = simulation(quiet).run(program).unwrap();
            assert!(run.verdict.is_ok(), "{name}, {quiet:?}, in order: {}", run.verdict);
            assert_eq!(run.results, [Some(vec![1, 2]), Some(vec![1, 2])]);
            let (explored, wrong) = prove(quiet, program);
            assert_eq!(wrong, None, "{name}, {quiet:?}");
            // what a thread comes after is the same in every order: neither whose quiet comes first matters nor what it finds
            assert_eq!((explored.complete, explored.schedules), (true, 1), "{name}, {quiet:?}");
            let random = Explore::random(200, 1);
            let explored = simulation(quiet).explore(random, program, |run| {
                assert!(run.verdict.is_ok(), "{name}, {quiet:?}: {}", run.verdict);
                ControlFlow::Continue(())
            });
            assert_eq!(explored.unwrap().findings, 0);
        }
    }
}

#[test]
fn the_fence_of_another_thread_orders_nothing() {
    for quiet in [Quiet::Pe, Quiet::Thread] {
        let (_, wrong) = prove(quiet, |pe| launch(pe, "another_fences", |_, _, _| Ok(())));
        let wrong = wrong.expect("a race");
        assert!(wrong.contains("delivery of p at quiets.cu:42"), "{quiet:?}: {wrong}");
    }
}

/// The PE's second stream signals that the first words of the other's data are there; this PE waits for the same, and reads.
fn hand_over(pe: &Pe<Sim>, memory: &Memory, second: &Stream<Sim>) -> Result<()> {
    let signal = memory.signals.signal(0);
    pe.on(second).signal_op(signal, 1, SignalOp::Set, 1 - pe.my_pe())?;
    pe.host().signal_wait_until(signal, Cmp::Eq, 1)?;
    pe.read(memory.data.slice(..THREADS as usize)).map(drop)
}

#[test]
fn quiets_of_several_streams_complete_what_a_kernel_has_issued() {
    let program = |pe: &Pe<Sim>| {
        launch(pe, "puts", |memory, [first, second], _| {
            let event = pe.event()?;
            pe.record(&event, first)?;
            pe.on(first).quiet()?;
            pe.wait_event(&event, second)?;
            pe.on(second).quiet()?;
            hand_over(pe, memory, second)
        })
    };
    let (explored, wrong) = prove(Quiet::Pe, program);
    assert_eq!((wrong, explored.complete), (None, true));
}

/// In order the kernel has put when the other stream's quiet comes. Nothing orders the two.
#[test]
fn a_quiet_of_a_stream_that_may_come_before_the_kernel_is_found() {
    let program = |pe: &Pe<Sim>| {
        launch(pe, "puts", |memory, [_, second], launch| {
            launch("calls_the_other", second)?;
            pe.host().signal_wait_until(memory.signals.signal(1), Cmp::Eq, 1)?;
            pe.on(second).quiet()?;
            hand_over(pe, memory, second)
        })
    };
    let run = simulation(Quiet::Pe).run(program).unwrap();
    assert!(run.verdict.is_ok(), "{}", run.verdict);
    let (_, wrong) = prove(Quiet::Pe, program);
    assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains("data race")), "{wrong:?}");
}

/// Nothing has ordered two threads of a block: their operations are tried in both orders.
#[test]
fn operations_of_threads_are_tried_in_both_orders() {
    for quiet in [Quiet::Pe, Quiet::Thread] {
        let (_, wrong) = prove(quiet, |pe| {
            launch(pe, "quiet_beside_a_put", |memory, [first, _], _| {
                pe.synchronize(first)?;
                pe.read_one(memory.data.at(0)).map(drop)
            })
        });
        assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains("data race")), "{quiet:?}: {wrong:?}");
    }
    for how in [Explore::All { limit: 20_000 }, Explore::random(300, 1)] {
        let mut seen = BTreeSet::new();
        let program = |pe: &Pe<Sim>| launch(pe, "swap_beside_a_wait", |_, _, _| Ok(()));
        let visit = |run: &Run<Vec<i32>>| {
            seen.extend(run.results.iter().flatten().map(|values| values[0]));
            ControlFlow::Continue(())
        };
        simulation(Quiet::Pe).explore(how, program, visit).unwrap();
        assert_eq!(seen, BTreeSet::from([2, 3]), "{how:?}");
    }
}

#[test]
fn two_threads_that_poll_wait_for_each_other() {
    for quiet in [Quiet::Pe, Quiet::Thread] {
        let (explored, wrong) = prove(quiet, |pe| launch(pe, "hand_shake", |_, _, _| Ok(())));
        assert_eq!((wrong, explored.complete), (None, true), "{quiet:?}");
    }
}

/// A thread puts and raises a flag, and another one completes the put and signals. Only the flag says that it comes after the put, and no fence.
const RELIES: &str = "
.version 8.0
.target sm_90
.address_size 64
.extern .func nvshmem_quiet;
.extern .func nvshmem_int_p (.param .b64 a, .param .b32 b, .param .b32 c);
.extern .func nvshmemx_signal_op (.param .b64 a, .param .b64 b, .param .b32 c, .param .b32 d);
.visible .entry completes() { call.uni nvshmem_quiet, (); ret; }
.visible .entry relies(.param .u64 relies_param_0, .param .u64 relies_param_1)
{
    .reg .b64 %rd<4>; .reg .b32 %r<2>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [relies_param_0];
    ld.param.u64 %rd2, [relies_param_1];
    mov.u32 %r1, %tid.x;
    setp.eq.s32 %p1, %r1, 1;
    @%p1 bra $other;
    { .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], 5; .param .b32 c; st.param.b32 [c], 0;
      call.uni nvshmem_int_p, (a, b, c); }
    st.volatile.global.u64 [%rd2+8], 1;
    ret;
$other:
    ld.volatile.global.u64 %rd3, [%rd2+8];
    setp.eq.s64 %p1, %rd3, 0;
    @%p1 bra $other;
    call.uni nvshmem_quiet, ();
    { .param .b64 a; st.param.b64 [a], %rd2; .param .b64 b; st.param.b64 [b], 1; .param .b32 c; st.param.b32 [c], 9; .param .b32 d;
      st.param.b32 [d], 0; call.uni nvshmemx_signal_op, (a, b, c, d); }
    ret;
}";

/// PE 1 sends to PE 0: by a kernel that relies on a quiet about all of the PE, if it has found `when` in a word, else by its host.
fn sends(pe: &Pe<Sim>, when: u64) -> Result<u64> {
    let (data, signals) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<u64>(2)?);
    let word = pe.alloc_zeroed::<u64>(1)?;
    let module = pe.module(&Source::ptx("relies.ptx", RELIES))?;
    let mut found = 0;
    if pe.my_pe() == 0 {
        pe.host().atomic_set(&word, 1, 1)?;
        pe.host().signal_wait_until(signals.signal(0), Cmp::Eq, 1)?;
        onesided::expect_eq(&pe.read_one(&data)?, &5, "the data")?;
    } else {
        let stream = pe.stream()?;
        // SAFETY: it takes nothing.
        unsafe { pe.on(&stream).launch(&module.kernel("completes")?, &Grid::new(1, 1), args![])? };
        pe.synchronize(&stream)?;
        found = pe.host().atomic_fetch(&word, 1)?;
        if found == when {
            // SAFETY: it takes these, of which the signals are two.
            unsafe { pe.on(&stream).launch(&module.kernel("relies")?, &Grid::new(1, 2), args![&data, &signals])? };
            pe.on(&stream).quiet()?;
            pe.synchronize(&stream)?;
        } else {
            pe.host().p(&data, 5, 0)?;
            pe.host().fence()?;
            pe.host().signal_op(signals.signal(0), 1, SignalOp::Set, 0)?;
        }
    }
    pe.free(word)?;
    pe.free(signals)?;
    pe.free(data)?;
    Ok(found)
}

/// The program is right, but not where a thread's quiet is about what the thread comes after. The search finds that out in its second run.
#[test]
fn a_proof_that_begins_again_says_so() {
    let mut withdrawn = Vec::new();
    for when in [0, 1] {
        let mut runs = Vec::new();
        let program = |pe: &Pe<Sim>| sends(pe, when);
        let explored = simulation(Quiet::Pe).explore(Explore::All { limit: 1_000 }, program, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            runs.push((run.results[1], run.schedule.quiet, run.begins_again));
            ControlFlow::Continue(())
        });
        assert!(explored.as_ref().is_ok_and(|explored| explored.complete), "{explored:?}");
        let again = runs.iter().position(|(.., begins_again)| *begins_again).unwrap_or(0);
        assert_eq!(runs[again..].len() as u64, explored.unwrap().schedules);
        assert!(runs[..again].iter().all(|(_, quiet, _)| *quiet == Quiet::Thread), "{runs:?}");
        assert!(runs[again..].iter().all(|(_, quiet, _)| *quiet == Quiet::Pe), "{runs:?}");
        let seen: BTreeSet<u64> = runs[again..].iter().filter_map(|(found, ..)| *found).collect();
        assert_eq!(seen, BTreeSet::from([0, 1]));
        withdrawn.push(again);
    }
    withdrawn.sort_unstable();
    assert_eq!(withdrawn, [0, 1]);
}

/// A flag behind a pointer tells what a quiet before it has completed: puts and stores. A reader fences.
#[test]
fn a_flag_that_is_stored_behind_a_quiet_tells_what_is_complete() {
    let text = |quiet: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func (.param .b64 r) nvshmem_ptr (.param .b64 a, .param .b32 b);
.extern .func nvshmem_int_p (.param .b64 a, .param .b32 b, .param .b32 c);
.extern .func nvshmem_quiet;
.visible .entry k(.param .u64 k_param_0)
{{
.reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p<2>;
ld.param.u64 %rd1, [k_param_0];
{{ .param .b32 r; call.uni (r), nvshmem_my_pe, (); ld.param.b32 %r1, [r]; }}
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $READER;
{{ .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], %rd1; st.param.b32 [b], 1; call.uni (r), nvshmem_ptr, (a, b); ld.param.b64 %rd2, [r]; }}
{{ .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b32 [b], 3; st.param.b32 [c], 1; call.uni nvshmem_int_p, (a, b, c); }}
st.global.u32 [%rd2+4], 4;
{quiet}
st.volatile.global.u32 [%rd2+8], 1;
ret;
$READER:
ld.volatile.global.u32 %r1, [%rd1+8];
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $READER;
fence.acq_rel.sys;
ld.global.u32 %r1, [%rd1];
ld.global.u32 %r2, [%rd1+4];
add.u32 %r1, %r1, %r2;
st.global.u32 [%rd1+12], %r1;
ret;
}}
"
        )
    };
    let program = |quiet: &str| {
        let source = Source::ptx("flag.ptx", text(quiet));
        move |pe: &Pe<Sim>| {
            let words = pe.alloc_zeroed::<i32>(4)?;
            let (module, stream) = (pe.module(&source)?, pe.stream()?);
            // SAFETY: the kernel takes one pointer.
            unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&words])? };
            pe.on(&stream).barrier_all()?;
            pe.synchronize(&stream)?;
            let seen = pe.read(&words)?[3];
            pe.free(words)?;
            Ok(seen)
        }
    };
    for quiet in [Quiet::Pe, Quiet::Thread] {
        let right = program("call.uni nvshmem_quiet, ();");
        assert_eq!(simulation(quiet).run(&right).unwrap().results, [Some(0), Some(7)]);
        let (explored, wrong) = prove(quiet, right);
        assert_eq!((wrong, explored.complete), (None, true), "{quiet:?}");
        for wrong in ["", "fence.acq_rel.sys;"] {
            assert!(prove(quiet, program(wrong)).1.is_some(), "{quiet:?} {wrong}");
        }
    }
}

#[test]
fn a_store_ends_the_wait_of_another_thread_of_its_block() {
    let program = |pe: &Pe<Sim>| launch(pe, "store_ends_a_wait", |_, _, _| Ok(()));
    let run = simulation(Quiet::Pe).run(program).unwrap();
    assert!(run.verdict.is_ok(), "in order: {}", run.verdict);
    assert_eq!(run.results, [Some(vec![1, 0]), Some(vec![1, 0])]);
    let (explored, wrong) = prove(Quiet::Pe, program);
    assert!(explored.complete && wrong.is_none(), "{wrong:?}");
}

/// A proof visits it in the narrower reading of quiets, and says so in its schedule.
#[test]
fn a_run_is_reproduced_as_it_read_quiets() {
    let program = |pe: &Pe<Sim>| launch(pe, "barrier_beside_a_put", |_, _, _| Ok(()));
    let (mut simulation, mut runs) = (simulation(Quiet::Pe), Vec::new());
    let explored = simulation.explore(Explore::All { limit: 1000 }, program, |run| {
        runs.push((run.without_results(), run.steps));
        ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete);
    for (run, steps) in &runs {
        let again = simulation.reproduce(run, program).unwrap();
        assert_eq!((again.steps, again.schedule.quiet), (*steps, run.schedule.quiet));
    }
    assert!(runs.iter().any(|(run, _)| run.schedule.quiet == Quiet::Thread));
}

/// What a thread writes itself, by a pointer to the other PE's memory, comes after what its fence orders to that PE.
#[test]
fn a_fence_orders_what_a_thread_has_put_before_what_it_stores_at_the_same_pe() {
    for name in ["fence_and_store", "fence_and_atomic", "fence_and_plain_store", "fence_and_strong_store"] {
        for quiet in [Quiet::Pe, Quiet::Thread] {
            let program = |pe: &Pe<Sim>| launch(pe, name, |_, _, _| Ok(()));
            let run = simulation(quiet).run(program).unwrap();
            assert!(run.verdict.is_ok(), "{name}, {quiet:?}, in order: {}", run.verdict);
            let mut wrong = None;
            for how in [Explore::All { limit: 1000 }, Explore::random(200, 1)] {
                let explored = simulation(quiet).explore(how, program, |run| {
                    if !run.verdict.is_ok() || run.results != [Some(vec![1, 0]), Some(vec![1, 0])] {
                        wrong = Some(format!("{:?}: {}", run.results, run.verdict));
                    }
                    ControlFlow::Continue(())
                });
                let explored = explored.unwrap();
                assert_eq!((&wrong, explored.given_up), (&None, 0), "{name}, {quiet:?}");
                if matches!(how, Explore::All { .. }) {
                    assert_eq!((explored.complete, explored.redundant), (true, 0), "{name}, {quiet:?}");
                }
            }
        }
    }
}

#[test]
fn without_a_fence_between_them_a_put_and_a_store_are_in_no_order() {
    for quiet in [Quiet::Pe, Quiet::Thread] {
        for name in ["store_without_fence", "fence_before_the_put"] {
            let wrong = prove(quiet, |pe| launch(pe, name, |_, _, _| Ok(()))).1.expect("a race");
            assert!(
                wrong.contains("delivery of p at quiets.cu:") && wrong.contains("of load at quiets.cu:"),
                "{name}: {wrong}"
            );
        }
        for name in ["fence_and_store_elsewhere", "fence_and_flag_elsewhere"] {
            let mut results = BTreeSet::new();
            for races in [Races::Find, Races::Note] {
                let mut three = Simulation::new(Config { quiet, races, ..Config::pes(3) }).unwrap();
                let program = |pe: &Pe<Sim>| launch(pe, name, |_, _, _| Ok(()));
                let explored = three.explore(Explore::All { limit: 1000 }, program, |run| {
                    let races = &run.verdict.races;
                    assert!(races.iter().any(|race| race.to_string().contains("delivery of p")), "{name}: {races:?}");
                    results.extend(run.results[1].as_ref().map(|seen| seen[0]));
                    ControlFlow::Continue(())
                });
                assert!(explored.unwrap().complete);
            }
            assert_eq!(results, BTreeSet::from([0, 1]), "{name}, {quiet:?}");
        }
    }
}
