//! A loop waits although it writes to local memory: where that is as it was a round before, and only there.

use std::sync::Arc;

use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};

/// Runs one thread of a kernel with this body, a pointer to a word of zero, and local memory: how its turn ends, and what is in the word.
fn run(functions: &str, body: &str) -> (Stop, u32) {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n{functions}\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n\
         .reg .b64 %rd<4>;\n.local .align 16 .b8 stack[1024];\nld.param.u64 %rd1, [out];\nmov.u64 %rd2, stack;\n{body}\nret;\n}}\n"
    );
    let module = Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = FlatMemory::new();
    let out = memory.allocate(&[0; 4]);
    let mut launch = Launch::new(1, 1).parameter(&out.to_le_bytes());
    launch.max_steps = 200_000;
    let mut block = Block::new(&module, "k", &Arc::new(launch), [0; 3]).unwrap();
    let stop = block.run(&mut memory);
    if stop == Stop::Idle {
        let idle = block.idle();
        assert_eq!((idle.parked.len(), &idle.parked[0].reads[..]), (1, &[(out, 4)][..]));
    }
    (stop, u32::from_le_bytes(memory.bytes(out).try_into().unwrap()))
}

#[test]
fn what_is_as_it_was_a_round_before_changes_nothing() {
    // What is read goes into an array, and what is made of it into the same words, each of another size.
    let body = "loop:\nld.volatile.global.u32 %r1, [%rd1];\nst.local.u32 [stack+4], %r1;\nld.local.u32 %r2, [stack+4];\nadd.u32 %r2, %r2, 77;\n\
                st.local.u32 [stack+4], %r2;\nst.local.u8 [stack+5], 9;\nst.local.v2.u64 [stack+16], {%rd1, %rd2};\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra loop;";
    assert_eq!(run("", body).0, Stop::Idle);
    // Two buffers take turns.
    let turns = "mov.u32 %r3, 0;\nloop:\nxor.b32 %r3, %r3, 4;\ncvt.u64.u32 %rd3, %r3;\nadd.s64 %rd3, %rd2, %rd3;\nld.volatile.global.u32 %r1, [%rd1];\n\
                 ld.local.u32 %r2, [%rd3];\nxor.b32 %r2, %r2, 1;\nst.local.u32 [%rd3], %r2;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra loop;";
    assert_eq!(run("", turns).0, Stop::Idle);
}

#[test]
fn a_count_in_local_memory_goes_on() {
    // The registers are the same in each round: the loop ends all the same. The last one counts in many words.
    let count = "loop:\nld.volatile.global.u32 %r1, [%rd1];\nld.local.u32 %r2, [stack];\nadd.u32 %r2, %r2, 1;\nst.local.u32 [stack], %r2;\n\
                 setp.lt.u32 %p1, %r2, 1000;\nmov.u32 %r2, 0;\n@%p1 bra loop;\nst.global.u32 [%rd1], 5;";
    assert_eq!(run("", count), (Stop::Finished, 5));
    let words = "mov.u32 %r3, 0;\nloop:\nld.volatile.global.u32 %r1, [%rd1];\nadd.u32 %r3, %r3, 8;\nand.b32 %r3, %r3, 1023;\ncvt.u64.u32 %rd3, %r3;\n\
                 add.s64 %rd3, %rd2, %rd3;\nld.local.u32 %r2, [%rd3];\nadd.u32 %r2, %r2, 1;\nst.local.u32 [%rd3], %r2;\nsetp.lt.u32 %p1, %r2, 20;\n\
                 mov.u32 %r2, 0;\n@%p1 bra loop;\nst.global.u32 [%rd1], 5;";
    assert_eq!(run("", words), (Stop::Finished, 5));
}

/// A function's local memory is zero in each call. What it writes there in the first half of its calls makes the other half another one.
#[test]
fn the_local_memory_of_a_function_is_another_in_each_call() {
    let look = ".func look(.param .b64 at, .param .b32 what) {\n.reg .pred %p<3>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<2>;\n.local .align 8 .b8 mine[8];\n\
                ld.param.u64 %rd1, [at];\nld.param.u32 %r1, [what];\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 st.local.u32 [mine], 1;\nmov.u32 %r1, 0;\n\
                L:\nld.volatile.global.u32 %r2, [%rd1];\nld.local.u32 %r3, [mine];\nadd.u32 %r4, %r3, 1;\nst.local.u32 [mine+4], %r4;\n\
                ld.local.u32 %r4, [mine+4];\nadd.u32 %r4, %r4, 1;\nst.local.u32 [mine+4], %r4;\nsetp.ne.u32 %p2, %r3, 0;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\n@%p2 bra L2;\nret;\n\
                L2:\nst.local.u32 [mine], 0;\nbra L;\n}\n";
    // It is called with 1 and 0 by turns, ten times.
    let body = "mov.u32 %r3, 0;\nM:\n{ .param .b64 a; .param .b32 b;\nst.param.b64 [a], %rd1;\nand.b32 %r4, %r3, 1;\nst.param.b32 [b], %r4;\n\
                call.uni look, (a, b); }\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, 100;\n@%p1 bra M;\nst.global.u32 [%rd1], 5;";
    assert_eq!(run(look, body), (Stop::Finished, 5));
    // Nothing but the function's own memory is written in a loop that waits.
    let body = "M:\n{ .param .b64 a; .param .b32 b;\nst.param.b64 [a], %rd1;\nst.param.b32 [b], 0;\ncall.uni look, (a, b); }\n\
                ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra M;";
    assert_eq!(run(look, body).0, Stop::Idle);
}
