//! Kernels in the simulator: operations of blocks and threads, order, spins, findings.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Argument, ErrorKind, Grid, Pe, Result, Source, TeamConfig, args};
use onesided_sim::{Config, Explore, MissingEdge, Run, Sim, Simulation, VerdictKind};

const LITMUS: &str = include_str!("../ptx/kernels/litmus.ptx");

/// Launches a kernel of litmus.cu on every PE, and waits for it and for everybody.
fn launch(pe: &Pe<Sim>, name: &str, grid: &Grid, arguments: &[Argument]) -> Result<()> {
    let module = pe.module(&Source::ptx("litmus.ptx", LITMUS))?;
    let kernel = module.kernel(name)?;
    let stream = pe.stream()?;
    // SAFETY: each test passes what its kernel takes.
    unsafe { pe.on(&stream).launch(&kernel, grid, arguments)? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)
}

/// A kernel that takes data, signals and what it has seen; returns the latter.
fn litmus(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + use<'_> {
    move |pe| {
        let (data, signal, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        launch(pe, name, &Grid::new(1, 1), args![&data, &signal, &seen])?;
        let result = pe.read_one(&seen)?;
        pe.free(seen)?;
        pe.free(signal)?;
        pe.free(data)?;
        Ok(result)
    }
}

fn simulation(n: usize) -> Simulation {
    Simulation::new(Config::pes(n)).unwrap()
}

fn run<T>(n: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Run<T> {
    simulation(n).run(program).unwrap()
}

/// Outcomes of all schedules, and how many classes there are.
fn all(n: usize, program: impl Fn(&Pe<Sim>) -> Result<i32>) -> (BTreeSet<String>, u64) {
    let mut outcomes = BTreeSet::new();
    let explored = simulation(n).explore(Explore::All { limit: 20_000 }, program, |run| {
        outcomes.insert(match run.verdict.kind {
            VerdictKind::Finished => {
                format!("{:?}", run.results.iter().map(|value| value.unwrap()).collect::<Vec<_>>())
            }
            ref kind => kind.outcome(),
        });
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete, "{explored:?}");
    (outcomes, explored.schedules)
}

fn set(outcomes: &[&str]) -> BTreeSet<String> {
    outcomes.iter().map(|outcome| outcome.to_string()).collect()
}

#[test]
fn a_message_arrives_in_order_and_in_all_schedules() {
    let run = run(2, litmus("message"));
    assert!(run.verdict.is_ok(), "{}", run.verdict);
    assert_eq!(run.results, [Some(0), Some(42)]);
    assert_eq!(all(2, litmus("message")).0, set(&["[0, 42]"]));
}

#[test]
fn a_message_without_a_fence_races() {
    let run = run(2, litmus("message_without_fence"));
    assert_eq!(run.verdict.kind.outcome(), "race", "{}", run.verdict);
    let race = &run.verdict.races[0];
    assert_eq!((race.first.at.to_string(), race.second.at.to_string()), ("litmus.cu:20".into(), "litmus.cu:24".into()));
    assert_eq!(all(2, litmus("message_without_fence")).0, set(&["race"]));
}

/// PTX without line information has its own lines. They have the name that the module was given.
#[test]
fn a_line_of_ptx_is_named_by_its_module() {
    let text: String = LITMUS
        .lines()
        .map(|line| if line.trim_start().starts_with(".loc\t") { "\n" } else { line })
        .fold(String::new(), |text, line| text + line.trim_end() + "\n");
    for (name, file) in [("ring.ptx", "ring.ptx"), ("ring.cu", "PTX of ring.cu"), ("", "PTX")] {
        let source = Source::ptx(name, &text);
        let program = |pe: &Pe<Sim>| {
            let (data, signal, seen) =
                (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
            let module = pe.module(&source)?;
            let (kernel, stream) = (module.kernel("message_without_fence")?, pe.stream()?);
            // SAFETY: it is what the kernel takes.
            unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 1), args![&data, &signal, &seen])? };
            pe.on(&stream).barrier_all()?;
            pe.synchronize(&stream)?;
            pe.free(seen)?;
            pe.free(signal)?;
            pe.free(data)
        };
        let run = run(2, program);
        let at = run.verdict.races.first().unwrap_or_else(|| panic!("{}", run.verdict)).first.at.to_string();
        let line = at.strip_prefix(file).and_then(|rest| rest.strip_prefix(':')).and_then(|line| line.parse().ok());
        let line: usize = line.unwrap_or_else(|| panic!("{name}: {at}"));
        let call = text.lines().take(line).skip(line - 3).find(|line| line.contains("call") || line.contains("st."));
        assert!(call.is_some(), "{at}: {:?}", text.lines().nth(line - 1));
    }
}

#[test]
fn a_flag_behind_a_pointer_is_released_and_acquired() {
    let run = run(2, litmus("pointer"));
    assert!(run.verdict.is_ok(), "{}", run.verdict);
    assert_eq!(run.results, [Some(0), Some(42)]);
    let (outcomes, _) = all(2, litmus("pointer"));
    assert_eq!(outcomes, set(&["[0, 42]"]));
    let without = self::run(2, litmus("pointer_without_fence"));
    assert_eq!(without.verdict.kind.outcome(), "race", "{}", without.verdict);
}

#[test]
fn a_scope_that_leaves_out_the_other_pe_is_found() {
    let run = run(2, litmus("narrow"));
    let missing: Vec<MissingEdge> = run.verdict.races.iter().map(|race| race.missing).collect();
    // a release of the GPU does not release what was stored to the other PE, either
    let [MissingEdge::Scope { at, also, blocks: false }, other] = missing[..] else { panic!("{}", run.verdict) };
    assert_eq!(other, missing[0], "{}", run.verdict);
    assert_eq!(
        [Some(at), also].map(|at| at.map(|at| at.to_string())),
        ["litmus.cu:61", "litmus.cu:65"].map(|at| Some(at.into()))
    );
}

#[test]
fn a_misaligned_address_names_its_memory() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 words)\n{\n.reg .b64 %rd<3>;\n\
                ld.param.u64 %rd1, [words];\nld.global.u64 %rd2, [%rd1+4];\nret;\n}\n";
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        let module = pe.module(&Source::ptx("misaligned.ptx", text))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes a pointer.
        unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&words])? };
        pe.synchronize(&stream)?;
        pe.free(words)
    };
    let run = run(1, program);
    let VerdictKind::Kernel { message, .. } = &run.verdict.kind else { panic!("{}", run.verdict) };
    let here = file!();
    assert!(message.contains("the size of what is accessed; it is offset 4 of buf0 (made at "), "{message}");
    assert!(message.contains(here), "{message}");
}

#[test]
fn threads_count_together() {
    let program = |pe: &Pe<Sim>| {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        launch(pe, "count", &Grid::new(2, 3), args![&counter])?;
        let value = pe.read_one(&counter)?;
        pe.free(counter)?;
        Ok(value)
    };
    let run = run(2, program);
    assert!(run.verdict.is_ok(), "{}", run.verdict);
    assert_eq!(run.results, [Some(12), Some(0)]);
    let random = simulation(2).explore(Explore::random(50, 1), program, |run| {
        assert_eq!(run.results, [Some(12), Some(0)], "{}", run.verdict);
        ControlFlow::Continue(())
    });
    assert_eq!(random.unwrap().schedules, 50);
}

#[test]
fn blocks_add_and_do_not_race_and_plain_stores_do() {
    let program = |name: &'static str| {
        move |pe: &Pe<Sim>| {
            let word = pe.alloc_zeroed::<u32>(1)?;
            launch(pe, name, &Grid::new(3, 32), args![&word])?;
            let value = pe.read_one(&word)?;
            pe.free(word)?;
            Ok(value as i32)
        }
    };
    assert_eq!(all(1, program("add")).0, set(&["[3]"]));
    let run = run(1, program("blocks_race"));
    assert_eq!(run.verdict.kind.outcome(), "race", "{}", run.verdict);
}

#[test]
fn a_spin_that_nobody_ends_is_a_deadlock_that_names_its_line() {
    let program = |pe: &Pe<Sim>| {
        let flag = pe.alloc_zeroed::<u64>(1)?;
        launch(pe, "spin", &Grid::new(1, 2), args![&flag])?;
        pe.free(flag)
    };
    let run = run(1, program);
    assert!(matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
    let text = run.verdict.to_string();
    assert!(text.contains("litmus.cu:89") && text.contains("polls buf0+0"), "{text}");
}

#[test]
fn polls_by_calls_are_waits_and_questions_are_nothing() {
    for name in ["poll_by_a_call", "poll_and_ask"] {
        let run = run(2, litmus(name));
        assert!(run.verdict.is_ok(), "{name}: {}", run.verdict);
        assert_eq!(all(2, litmus(name)).0, set(&["[0, 42]"]), "{name}");
    }
    let alone = run(1, |pe| {
        let signal = pe.alloc_zeroed::<u64>(1)?;
        launch(pe, "poll_alone", &Grid::new(1, 1), args![&signal])?;
        pe.free(signal)
    });
    assert!(matches!(alone.verdict.kind, VerdictKind::Deadlock), "{}", alone.verdict);
}

#[test]
fn a_block_that_cannot_begin_is_not_waited_for_in_vain_if_the_grid_fits() {
    let program = |blocks: u32| {
        move |pe: &Pe<Sim>| {
            let flag = pe.alloc_zeroed::<u32>(1)?;
            launch(pe, "last_block", &Grid::new(blocks, 1024), args![&flag])?;
            pe.free(flag)
        }
    };
    let fits = run(1, program(4));
    assert!(fits.verdict.is_ok(), "{}", fits.verdict);
    let run = run(1, program(265)); // 264 such blocks fit
    assert!(matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
    let text = run.verdict.to_string();
    assert!(text.contains("1 cannot begin before others end"), "{text}");
    // 264 blocks wait at one line
    assert!(text.contains("block 3, thread 0 polls") && !text.contains("block 4, thread 0 polls"), "{text}");
    assert!(text.contains("\n    and 260 more of this kernel at litmus.cu:98"), "{text}");
}

#[test]
fn an_access_beyond_the_end_names_the_buffer() {
    let run = run(1, |pe| {
        let buffer = pe.alloc_zeroed::<i32>(4)?;
        launch(pe, "beyond", &Grid::new(1, 1), args![&buffer, 4i32])?;
        pe.free(buffer)
    });
    let VerdictKind::Kernel { message, at, .. } = &run.verdict.kind else { panic!("{}", run.verdict) };
    assert!(message.contains("4 bytes at offset 16 of buf0, which has 16 (made at"), "{message}");
    assert_eq!(at.to_string(), "litmus.cu:104");
}

/// Also of the first buffer of a PE, and of one that follows another.
#[test]
fn an_access_before_the_beginning_names_the_buffer() {
    for number in 0..2 {
        let run = run(2, |pe| {
            let buffers = [pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(4)?];
            launch(pe, "beyond", &Grid::new(1, 1), args![&buffers[number], -2i32])?;
            buffers.into_iter().try_for_each(|buffer| pe.free(buffer))
        });
        let VerdictKind::Kernel { message, .. } = &run.verdict.kind else { panic!("{}", run.verdict) };
        assert!(message.contains(&format!("4 bytes, 8 before buf{number}, which has 16 (made at")), "{message}");
    }
}

/// PE 0's kernel ends in a fault, and the hosts of the others race: both are told, in order and in a search.
#[test]
fn a_fault_hides_no_race_of_the_others() {
    let program = |pe: &Pe<Sim>| {
        let (buffer, word) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<u64>(1)?);
        match pe.my_pe() {
            0 => launch(pe, "beyond", &Grid::new(1, 1), args![&buffer, 4i32])?,
            1 => pe.host().p(&word, 1, 2)?,
            _ => drop(pe.read(&word)?),
        }
        if pe.my_pe() > 0 {
            let stream = pe.stream()?;
            pe.on(&stream).barrier_all()?; // as PE 0 would
            pe.synchronize(&stream)?;
        }
        pe.free(word)?;
        pe.free(buffer)
    };
    let told = |run: &Run<()>| {
        assert!(matches!(run.verdict.kind, VerdictKind::Kernel { .. }), "{}", run.verdict);
        assert_eq!(run.verdict.races.len(), 1, "{}", run.verdict);
    };
    told(&run(3, program));
    let explored = simulation(3).explore(Explore::All { limit: 20_000 }, program, |run| {
        told(run);
        ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete);
}

#[test]
fn a_block_reduces() {
    let run = run(3, |pe| {
        let (total, mine) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc::<i32>(4)?);
        pe.write(&mine, &[pe.my_pe() as i32; 4])?;
        pe.host().barrier_all()?;
        launch(pe, "sum", &Grid::new(1, 32), args![&total, &mine])?;
        let value = pe.read(&total)?;
        pe.free(mine)?;
        pe.free(total)?;
        Ok(value)
    });
    assert!(run.verdict.is_ok(), "{}", run.verdict);
    assert_eq!(run.results, vec![Some(vec![3; 4]); 3]);
}

#[test]
fn a_wait_for_any_sees_whichever_comes_first() {
    let program = |pe: &Pe<Sim>| {
        let (words, which) = (pe.alloc_zeroed::<u64>(4)?, pe.alloc_zeroed::<i32>(1)?);
        launch(pe, "any", &Grid::new(1, 1), args![&words, &which])?;
        let value = pe.read_one(&which)?;
        pe.free(which)?;
        pe.free(words)?;
        Ok(value)
    };
    assert_eq!(all(3, program).0, set(&["[1, 0, 0]", "[2, 0, 0]"]));
}

#[test]
fn threads_of_a_block_take_tickets_in_any_order() {
    let program = |pe: &Pe<Sim>| {
        let (counter, ticket) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(2)?);
        launch(pe, "fetch", &Grid::new(1, 2), args![&counter, &ticket])?;
        let mine = pe.read(&ticket)?;
        pe.free(ticket)?;
        pe.free(counter)?;
        Ok((mine[0] * 10 + mine[1]) as i32)
    };
    assert_eq!(all(1, program).0, set(&["[1]", "[10]"]));
}

/// Whether a quiet covers what another thread issues beside it does not matter in a proof: DESIGN.md says why.
#[test]
fn quiets_of_threads_are_no_choices() {
    for (pes, blocks, threads) in [(1, 1, 1), (1, 1, 3), (1, 2, 1), (2, 1, 2), (2, 2, 4), (4, 2, 32)] {
        let program = |pe: &Pe<Sim>| {
            let counter = pe.alloc_zeroed::<u64>(1)?;
            launch(pe, "count", &Grid::new(blocks, threads), args![&counter])?;
            let value = pe.read_one(&counter)?;
            pe.free(counter)?;
            Ok(value as i32)
        };
        assert_eq!(all(pes, program).1, 1, "{pes} PEs, {blocks} blocks of {threads} threads");
    }
}

/// Each PE launches a kernel collectively, if it has one, on so many blocks.
fn launches(kernels: [Option<(&'static str, u32)>; 2]) -> (String, String) {
    let run = run(2, |pe| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if let Some((name, blocks)) = kernels[pe.my_pe()] {
            let module = pe.module(&Source::ptx("litmus.ptx", LITMUS))?;
            let stream = pe.stream()?;
            // SAFETY: both kernels take one pointer to a counter.
            unsafe { pe.on(&stream).launch(&module.kernel(name)?, &Grid::new(blocks, 1).collective(), args![&word])? };
            pe.synchronize(&stream)?;
        }
        pe.free(word)
    });
    (run.verdict.kind.outcome(), run.verdict.to_string())
}

#[test]
fn all_pes_launch_the_same_kernel_on_the_same_grid() {
    assert_eq!(launches([Some(("count", 2)), Some(("count", 2))]).0, "finished");
    let (outcome, text) = launches([Some(("count", 1)), Some(("add", 1))]);
    assert_eq!(outcome, "collective mismatch: kernel", "{text}");
    assert!(text.contains("collective #0 of TEAM_WORLD's collective launches differs in kernel"), "{text}");
    assert!(
        text.contains("PE 0 called launch of count on 1 x 1 x 1 blocks at backend-sim/tests/kernels.rs:"),
        "{text}"
    );
    assert!(text.contains("PE 1 called launch of add on 1 x 1 x 1 blocks at backend-sim/tests/kernels.rs:"), "{text}");
    let (outcome, text) = launches([Some(("count", 1)), Some(("count", 2))]);
    assert_eq!(outcome, "collective mismatch: grid", "{text}");
    let (outcome, text) = launches([Some(("count", 1)), None]);
    assert_eq!(outcome, "collective mismatch: call", "{text}");
    assert!(text.contains("PE 1 called finalize at"), "{text}");
}

#[test]
fn what_is_wrong_with_a_launch_is_said() {
    let run = run(1, |pe| {
        let module = pe.module(&Source::ptx("litmus.ptx", LITMUS))?;
        let stream = pe.stream()?;
        let none = module.kernel("nothing").unwrap_err();
        assert!(none.to_string().contains("it has message, message_without_fence"), "{none}");
        let kernel = module.kernel("beyond")?;
        let refused = |grid: &Grid, arguments: &[Argument]| {
            // SAFETY: the launch is refused.
            unsafe { pe.on(&stream).launch(&kernel, grid, arguments) }.unwrap_err().to_string()
        };
        let one = Grid::new(1, 1);
        assert!(refused(&one, args![1i32]).contains("beyond takes 2 arguments, not 1"));
        assert!(
            refused(&one, args![1i32, 2i32]).contains("argument 0 of beyond is i32, of 4 bytes; the parameter has 8")
        );
        let vector = [Argument::null(), Argument::bytes(&[0; 16], 4)]; // as four f32
        assert!(
            refused(&one, &vector).contains("argument 1 of beyond is a structure, of 16 bytes; the parameter has 4")
        );
        let float = refused(&one, args![Argument::null(), 2f32]);
        assert!(float.contains("beyond: argument 1 is f32; the parameter is an integer or a pointer"), "{float}");
        let null = Argument::null();
        let two = [null, Argument::from(2i32)];
        assert!(refused(&Grid::new(1, 2048), &two).contains("a block of 2048 x 1 x 1 threads"));
        assert!(refused(&Grid::new(0, 1), &two).contains("a grid of 0 x 1 x 1 blocks"));
        assert!(refused(&one.shared(1 << 20), &two).contains("bytes of shared memory"));
        assert!(refused(&Grid::new(1000, 1024).cooperative(), &two).contains("a GPU holds 264 of 1024 threads"));
        // the product of the first is 2^64, that of the second exceeds it by 1024
        for threads in [(1 << 31, 1 << 31, 4), (3_893_626_496, 2_368_838_420, 2)] {
            assert!(refused(&Grid::new(1, threads), &two).contains("it has 1 to 1024"));
        }
        // what a GPU takes, and the simulator does not
        // SAFETY: the launch is refused.
        let huge = unsafe { pe.on(&stream).launch(&kernel, &Grid::new((1 << 30, 1 << 15, 1 << 14), 1), &two) };
        assert_eq!(huge.unwrap_err().kind(), ErrorKind::Unsupported);
        let streams: Vec<_> = (0..16).map(|_| pe.stream()).collect::<Result<_>>()?;
        // SAFETY: the launch is refused.
        let late = unsafe { pe.on(&streams[15]).launch(&kernel, &one, &two) }.unwrap_err();
        assert!(late.kind() == ErrorKind::Unsupported && late.message().contains("first 16 streams"), "{late}");
        // SAFETY: the launch is refused.
        let on_host = unsafe { pe.host().launch(&kernel, &one, &two) }.unwrap_err();
        assert!(on_host.to_string().contains("launched on a stream"), "{on_host}");
        let unknown = pe.module(&Source::ptx(
            "wrong.ptx",
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { frob; }",
        ));
        assert!(unknown.unwrap_err().to_string().contains("frob"));
        Ok(())
    });
    assert!(run.verdict.is_ok(), "{}", run.verdict);
}

const MEET: &str = "
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) nvshmem_barrier (.param .b32 team);
.visible .entry meet(.param .u32 team) {
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [team];
    {
        .param .b32 given;
        st.param.b32 [given], %r1;
        .param .b32 result;
        call.uni (result), nvshmem_barrier, (given);
        ld.param.b32 %r2, [result];
    }
    ret;
}";

/// A kernel that is launched beside the end of a team that it uses, before or behind.
#[test]
fn a_kernel_cannot_use_a_team_that_is_destroyed() {
    let meets = |destroyed_before: Option<bool>| {
        run(2, move |pe| {
            let module = pe.module(&Source::ptx("meet.ptx", MEET))?;
            let stream = pe.stream()?;
            let pair = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?.expect("both");
            let given = [Argument::from(&pair)];
            let mut pair = Some(pair);
            if destroyed_before == Some(true) {
                pair.take().into_iter().try_for_each(|team| pe.team_destroy(team))?;
            }
            // SAFETY: the kernel takes a team, and reaches no memory.
            unsafe { pe.on(&stream).launch(&module.kernel("meet")?, &Grid::new(1, 1).collective(), &given)? };
            if destroyed_before == Some(false) {
                pair.take().into_iter().try_for_each(|team| pe.team_destroy(team))?;
            }
            pe.synchronize(&stream)?;
            pair.into_iter().try_for_each(|team| pe.team_destroy(team))
        })
    };
    assert!(meets(None).verdict.is_ok());
    for destroyed_before in [true, false] {
        let verdict = meets(Some(destroyed_before)).verdict;
        assert_eq!(verdict.kind.outcome(), "kernel fault", "{verdict}");
        assert!(verdict.to_string().contains("a member of and has not destroyed"), "{verdict}");
    }
}

/// The kernel has run, but nobody has waited for it.
#[test]
fn memory_outside_the_heap_is_not_freed_while_a_kernel_may_use_it() {
    let frees = |synchronizes: bool| {
        run(2, move |pe| {
            let module = pe.module(&Source::ptx("litmus.ptx", LITMUS))?;
            let stream = pe.stream()?;
            let word = pe.alloc_external::<i32>(1)?;
            // SAFETY: the kernel takes a pointer to a number.
            unsafe { pe.on(&stream).launch(&module.kernel("blocks_race")?, &Grid::new(1, 1), args![&word])? };
            pe.host().barrier_all()?;
            pe.host().barrier_all()?;
            if synchronizes {
                pe.synchronize(&stream)?;
            }
            pe.free_external(word)
        })
    };
    let verdict = frees(false).verdict;
    assert_eq!(verdict.kind.outcome(), "race", "{verdict}");
    assert!(verdict.to_string().contains("free_external"), "{verdict}");
    let right = frees(true).verdict;
    assert!(right.is_ok(), "{right}");
}
