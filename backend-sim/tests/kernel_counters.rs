//! Words that threads of kernels count by and poll: who has read a word comes after those who changed it before, counts that nobody looks at
//! commute, and a loop that only loads a word is a wait.

use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation};

/// A kernel of one PE: `%rd1` is a word of global memory, `shared` one of shared memory, `%r1` the thread, `%r2` the block. It stores in `%rd2`.
fn source(body: &str) -> Source {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 k_param_0)
{{
.shared .align 4 .b32 shared;
.reg .b64 %rd<4>; .reg .b32 %r<32>; .reg .pred %p<2>;
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.u32 [shared], 0;
bar.sync 0;
mov.u32 %r5, %ntid.x;
mad.lo.u32 %r5, %r2, %r5, %r1;
add.u32 %r5, %r5, 1;
mad.wide.u32 %rd2, %r5, 4, %rd1;
{body}
ret;
}}
"
    );
    Source::ptx("counters.ptx", text)
}

fn perform(source: &Source, grid: &Grid, pe: &Pe<Sim>) -> Result<Vec<u32>> {
    let words = pe.alloc_zeroed::<u32>(128)?;
    let (module, stream) = (pe.module(source)?, pe.stream()?);
    // SAFETY: the kernel takes one pointer.
    unsafe { pe.on(&stream).launch(&module.kernel("k")?, grid, args![&words])? };
    pe.synchronize(&stream)?;
    let seen = pe.read(&words)?;
    pe.free(words)?;
    Ok(seen)
}

/// Classes of a proof, and whether one has a race.
fn proof(body: &str, grid: &Grid) -> (u64, bool) {
    let source = source(body);
    let mut races = false;
    let explored = Simulation::new(Config::pes(1)).unwrap().explore(
        Explore::All { limit: 1000 },
        |pe| perform(&source, grid, pe),
        |run| {
            races |= !run.verdict.races.is_empty();
            assert!(races || run.verdict.is_ok(), "{}", run.verdict);
            ControlFlow::Continue(())
        },
    );
    let explored = explored.unwrap();
    assert!(explored.complete, "{explored:?}");
    (explored.schedules, races)
}

/// As NVIDIA's `threadFenceReduction` does: the last block to come sets the counter back.
#[test]
fn who_was_the_last_to_count_may_reset_the_counter() {
    let last = "atom.global.add.u32 %r3, [%rd1], 1;\nsetp.eq.u32 %p1, %r3, 1;\n@%p1 st.global.u32 [%rd1], 0;";
    assert_eq!(proof(last, &Grid::new(2, 1)), (2, false));
    // another thread of the block sets it back, behind a barrier
    let other = "setp.eq.u32 %p1, %r1, 0;\n@%p1 atom.global.add.u32 %r3, [%rd1], 1;\n@%p1 st.shared.u32 [shared], %r3;\nbar.sync 0;\n\
                 ld.shared.u32 %r3, [shared];\nsetp.eq.u32 %p1, %r3, 1;\n@!%p1 bra $END;\nsetp.eq.u32 %p1, %r1, 1;\n\
                 @%p1 st.global.u32 [%rd1], 0;\n$END:";
    assert_eq!(proof(other, &Grid::new(2, 2)), (2, false));
    // without the barrier's order nobody knows
    let first = "atom.global.add.u32 %r3, [%rd1], 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 st.global.u32 [%rd1], 0;";
    assert!(proof(first, &Grid::new(2, 1)).1);
}

#[test]
fn who_has_polled_a_flag_may_reset_it_and_who_has_not_read_it_may_not() {
    let branch = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra $SEND;\n";
    let poll = "$POLL: ld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $POLL;\n";
    let end = "st.global.u32 [%rd1], 0;\nret;\n$SEND: st.volatile.global.u32 [%rd1], 1;";
    assert!(!proof(&[branch, poll, end].concat(), &Grid::new(2, 1)).1);
    let once = "ld.volatile.global.u32 %r3, [%rd1];\n";
    assert!(proof(&[branch, once, end].concat(), &Grid::new(2, 1)).1);
    assert!(proof(&[branch, end].concat(), &Grid::new(2, 1)).1);
    let blind =
        "red.global.add.u32 [%rd1], 1;\nst.global.u32 [%rd1], 0;\nret;\n$SEND: st.volatile.global.u32 [%rd1], 1;";
    assert!(
        proof(&[branch, blind].concat(), &Grid::new(2, 1)).1,
        "an atomic that returns nothing reads, too, but may come first"
    );
}

/// Such atomics commute, so one order stands for both: it must not be the one in which nothing races.
#[test]
fn an_atomic_whose_result_nobody_looks_at_tells_its_thread_nothing() {
    let blind = "red.global.add.u32 [%rd1], 1;\nsetp.eq.u32 %p1, %r2, 1;\n@%p1 st.global.u32 [%rd1], 0;";
    assert!(proof(blind, &Grid::new(2, 1)).1);
    for (space, grid, first) in [("global", Grid::new(2, 1), "%r2"), ("shared", Grid::new(1, 2), "%r1")] {
        let at = if space == "shared" { "shared" } else { "%rd1" };
        let body = |result: &str| {
            format!(
                "setp.eq.u32 %p1, {first}, 0;\n@!%p1 bra $SECOND;\nst.global.u32 [%rd1+400], 7;\natom.release.sys.{space}.add.u32 %r4, [{at}], 1;\nret;\n\
                 $SECOND: atom.acquire.sys.{space}.add.u32 %r3, [{at}], 1;\nfence.acq_rel.sys;\n{result}ld.global.u32 %r4, [%rd1+400];\n\
                 st.global.u32 [%rd2], %r4;\n$END:"
            )
        };
        assert!(proof(&body(""), &grid).1, "{space}");
        assert!(!proof(&body("setp.eq.u32 %p1, %r3, 0;\n@%p1 bra $END;\n"), &grid).1, "{space}");
    }
}

#[test]
fn counts_that_nobody_looks_at_commute_and_tickets_do_not() {
    let counts = "red.shared.add.u32 [shared], 1;\natom.global.add.u32 %r3, [%rd1], 1;\natom.global.or.b32 %r4, [%rd1+400], %r1;";
    assert_eq!(proof(counts, &Grid::new(2, 32)), (1, false));
    for space in ["shared", "global"] {
        let at = if space == "shared" { "shared" } else { "%rd1" };
        let tickets = format!("atom.{space}.add.u32 %r3, [{at}], 1;\nst.global.u32 [%rd2], %r3;");
        assert_eq!(proof(&tickets, &Grid::new(1, 3)), (6, false), "{space}");
    }
}

#[test]
fn minima_and_maxima_that_nobody_looks_at_commute_with_their_like() {
    let each = |update: &str| format!("{update} [%rd1], %r5;");
    for update in ["red.global.max.u32", "red.global.min.u32", "red.global.max.s32", "red.global.min.s32"] {
        assert_eq!(proof(&each(update), &Grid::new(1, 4)), (1, false), "{update}");
    }
    // signed and unsigned numbers have another order, and the largest number need not be the smallest
    for other in ["red.global.max.s32", "red.global.min.u32", "red.global.add.u32"] {
        let body =
            format!("setp.eq.u32 %p1, %r1, 0;\n@%p1 red.global.max.u32 [%rd1], %r5;\n@!%p1 {other} [%rd1], %r5;");
        assert_eq!(proof(&body, &Grid::new(1, 2)), (2, false), "{other}");
    }
    let looked_at = "atom.global.max.u32 %r3, [%rd1], %r5;\nst.global.u32 [%rd2], %r3;";
    assert_eq!(proof(looked_at, &Grid::new(1, 3)), (6, false));
}

/// What is polled is set once. A loop that does nothing but load it is a wait. Any other loop has looks in vain: what is polled is set before
/// the first, between the two that show that the thread only waits, or behind them.
#[test]
fn a_loop_around_a_load_is_a_wait_and_another_loop_waits_after_two_looks() {
    let body = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra $POLL;\nst.volatile.global.u32 [%rd1], 1;\nret;\n\
                $POLL: ld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $POLL;";
    assert_eq!(proof(body, &Grid::new(2, 1)), (1, false));
    let two_ways = body.replace("setp.eq.u32 %p1, %r3, 0;", "@!%p1 bra $POLL;\nsetp.eq.u32 %p1, %r3, 0;");
    assert_eq!(proof(&two_ways, &Grid::new(2, 1)), (3, false));
}

/// Each of some blocks writes a number for all others, sets its flag, and loads every other's flag until it is set. In each of these rounds
/// the flags have larger values, and the numbers other places.
fn rounds(blocks: u32, rounds: u32) -> String {
    let (flag, number) = (|block: u32| 4 * block, |block: u32, round: u32| 64 + 4 * (blocks * round + block));
    let mut body = String::new();
    for round in 1..=rounds {
        body += &format!(
            "mad.lo.u32 %r4, %r2, 4, {};\ncvt.u64.u32 %rd3, %r4;\nadd.u64 %rd3, %rd3, %rd1;\n",
            number(0, round)
        );
        body += &format!("st.global.u32 [%rd3], {round};\n");
        body += "mul.lo.u32 %r4, %r2, 4;\ncvt.u64.u32 %rd3, %r4;\nadd.u64 %rd3, %rd3, %rd1;\n";
        body += &format!("st.release.gpu.global.u32 [%rd3], {round};\n");
        for block in 0..blocks {
            let (label, loaded) = (format!("$R{round}B{block}"), 5 + blocks * round + block);
            body += &format!("{label}: ld.acquire.gpu.global.u32 %r{loaded}, [%rd1+{}];\n", flag(block));
            body += &format!("setp.lt.u32 %p1, %r{loaded}, {round};\n@%p1 bra {label};\n");
            body += &format!("ld.global.u32 %r3, [%rd1+{}];\n", number(block, round));
        }
    }
    body
}

#[test]
fn flags_that_all_load_until_they_are_set_have_one_class() {
    assert_eq!(proof(&rounds(4, 1), &Grid::new(4, 1)), (1, false));
    assert_eq!(proof(&rounds(3, 3), &Grid::new(3, 1)), (1, false), "a flag that only grows ends no loop later");
    let early = rounds(2, 2).replace(", 2;\n@%p1 bra", ", 1;\n@%p1 bra");
    assert!(proof(&early, &Grid::new(2, 1)).1, "in the second round, the flag of the first is enough");
    let relaxed = rounds(2, 1).replace("ld.acquire", "ld.relaxed");
    assert!(proof(&relaxed, &Grid::new(2, 1)).1);
}

/// The loop may have ended with the first update, which tells of one block only, also where it ended with the second.
#[test]
fn a_loop_learns_of_the_update_that_was_enough_for_it() {
    let exchange = "st.global.u32 [%rd2], 7;\natom.acq_rel.gpu.global.exch.b32 %r3, [%rd1], 1;\nret;\n";
    let wait = "$WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $WAIT;\n";
    let reads = |block: u32| {
        let two = format!(
            "setp.eq.u32 %p1, %r2, 2;\n@!%p1 bra $SET;\n{wait}ld.global.u32 %r3, [%rd1+{}];\nret;\n",
            4 + 4 * block
        );
        format!("{two}$SET: {exchange}")
    };
    for block in 0..2 {
        assert!(proof(&reads(block), &Grid::new(3, 1)).1, "block {block}");
    }
    let one = reads(0).replace("$SET: ", "$SET: setp.eq.u32 %p1, %r2, 1;\n@%p1 ret;\n");
    assert_eq!(proof(&one, &Grid::new(3, 1)), (1, false));
}

/// A flag that is set and loaded without any order tells nothing. So the loop behind it may have ended with the first update, also where the search
/// has both before it begins.
#[test]
fn a_loop_that_begins_late_learns_of_the_update_that_was_enough_for_it() {
    let until = |label: &str, order: &str, at: u32, loaded: &str| {
        format!(
            "{label}: ld.{order}.gpu.global.u32 {loaded}, [%rd1+{at}];\nsetp.eq.u32 %p1, {loaded}, 0;\n@%p1 bra {label};\n"
        )
    };
    let exchange =
        |value: u32| format!("st.global.u32 [%rd2], 7;\natom.acq_rel.gpu.global.exch.b32 %r3, [%rd1], {value};\n");
    let body = [
        "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra $SECOND;\nsetp.eq.u32 %p1, %r2, 2;\n@%p1 bra $READER;\n",
        &exchange(1),
        "ret;\n$SECOND: ",
        &until("$AFTER", "relaxed", 0, "%r10"),
        &exchange(2),
        "st.relaxed.gpu.global.u32 [%rd1+128], 1;\nret;\n$READER: ",
        &until("$FLAG", "relaxed", 128, "%r11"),
        &until("$WAIT", "acquire", 0, "%r12"),
        "ld.global.u32 %r3, [%rd1+8];",
    ]
    .concat();
    assert!(proof(&body, &Grid::new(3, 1)).1);
    let released = body.replace("st.relaxed.gpu", "st.release.gpu").replace("$FLAG: ld.relaxed", "$FLAG: ld.acquire");
    assert_eq!(proof(&released, &Grid::new(3, 1)), (1, false));
}

/// The loop has begun perhaps, and what it loads is no longer what it was.
#[test]
fn a_plain_write_races_with_the_beginning_of_a_loop_that_it_does_not_end() {
    let body = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra $POLL;\nst.global.u32 [%rd1], 0;\nst.release.gpu.global.u32 [%rd1], 1;\nret;\n\
                $POLL: ld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $POLL;";
    assert!(proof(body, &Grid::new(2, 1)).1);
    assert!(!proof(&body.replace("st.global.u32 [%rd1], 0;\n", ""), &Grid::new(2, 1)).1);
    // also where the loop never ends
    assert!(proof(&body.replace("st.release.gpu.global.u32 [%rd1], 1;\n", ""), &Grid::new(2, 1)).1);
}

/// The loop ends because of a plain write, which is no step. The search learns nothing of that: it takes the exchanges the other way round, where
/// the loop does not end.
#[test]
fn a_loop_that_a_plain_write_ends_is_a_race_and_no_program_without_determinism() {
    let body = "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra $POLL;\natom.global.exch.b32 %r3, [%rd1+128], 1;\nst.global.u32 [%rd2], %r3;\n\
                st.global.u32 [%rd1], 1;\nret;\n\
                $POLL: ld.volatile.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $POLL;\n\
                atom.global.exch.b32 %r3, [%rd1+128], 2;\nst.global.u32 [%rd2], %r3;";
    assert!(proof(body, &Grid::new(2, 1)).1);
}

/// A thread polls what others of its block count in shared memory.
#[test]
fn shared_memory_is_polled() {
    let body = "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra $POLL;\nst.global.u32 [%rd2], 7;\nfence.acq_rel.cta;\nred.shared.add.u32 [shared], 1;\nret;\n\
                $POLL: ld.volatile.shared.u32 %r3, [shared];\nsetp.lt.u32 %p1, %r3, 2;\n@%p1 bra $POLL;\nfence.acq_rel.cta;\nld.global.u32 %r4, [%rd2+4];\n\
                ld.global.u32 %r3, [%rd2+8];\nadd.u32 %r3, %r3, %r4;\nst.global.u32 [%rd1], %r3;";
    assert!(!proof(body, &Grid::new(1, 3)).1);
    let early = body.replace("%r3, 2", "%r3, 1");
    assert!(proof(&early, &Grid::new(1, 3)).1, "it may have seen one of them only");
}
