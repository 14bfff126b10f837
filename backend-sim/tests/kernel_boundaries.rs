//! Between two kernels of a stream all threads fence, and who has read a signal by a load comes after that signal.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, MissingEdge, Profile, Race, Sim, Simulation, prove, refute};

const BOUNDARIES: &str = include_str!("../ptx/kernels/boundaries.ptx");

fn source() -> Source {
    Source::ptx("boundaries.ptx", BOUNDARIES)
}

/// PE 1 stores and sets a flag, PE 0 waits for it and reads: in one kernel, or each in a kernel of its own.
fn message(pe: &Pe<Sim>, at_once: bool) -> Result<()> {
    let (data, flags, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?);
    let module = pe.module(&source())?;
    let stream = pe.stream()?;
    let grid = Grid::new(1, 1).collective();
    // SAFETY: the kernels take these arguments.
    unsafe {
        if at_once {
            pe.on(&stream).launch(&module.kernel("at_once")?, &grid, args![&data, &flags, &seen])?;
        } else {
            pe.on(&stream).launch(&module.kernel("store")?, &grid, args![&data])?;
            pe.on(&stream).launch(&module.kernel("flag")?, &grid, args![&flags])?;
            pe.on(&stream).launch(&module.kernel("look")?, &grid, args![&data, &seen])?;
        }
    }
    pe.synchronize(&stream)?;
    if pe.my_pe() == 0 {
        onesided::expect_eq(pe.read_one(&seen)?, 42, "what PE 1 has stored")?;
    }
    pe.free(seen)?;
    pe.free(flags)?;
    pe.free(data)
}

#[test]
fn a_flag_tells_what_the_kernel_before_has_stored() {
    for profile in Profile::ALL {
        prove(Config { profile, ..Config::pes(2) }, |pe| message(pe, false));
    }
}

/// Within a kernel the flag tells nothing: both sides need a fence.
#[test]
fn within_a_kernel_a_flag_needs_fences() {
    let run = refute(2, |pe| message(pe, true));
    let MissingEdge::ReleasingFence { after, flag, .. } = run.verdict.races[0].missing else {
        panic!("{}", run.verdict)
    };
    assert_eq!([after.line(), flag.line()], [24, 25]);
}

/// The same with the flag in another stream: nothing puts the store before it.
#[test]
fn a_kernel_of_another_stream_tells_nothing() {
    let run = refute(2, |pe| {
        let (data, flags, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?);
        let module = pe.module(&source())?;
        let (one, other) = (pe.stream()?, pe.stream()?);
        let grid = Grid::new(1, 1);
        // SAFETY: the kernels take these arguments.
        unsafe {
            pe.on(&one).launch(&module.kernel("store")?, &grid, args![&data])?;
            pe.on(&other).launch(&module.kernel("flag")?, &grid, args![&flags])?;
            pe.on(&other).launch(&module.kernel("look")?, &grid, args![&data, &seen])?;
        }
        pe.synchronize(&one)?;
        pe.synchronize(&other)?;
        pe.free(seen)?;
        pe.free(flags)?;
        pe.free(data)
    });
    let Race { first, second, .. } = &run.verdict.races[0];
    assert_eq!([first.at, second.at].map(|at| at.line()), [7, 18], "{}", run.verdict);
}

fn take_back(pe: &Pe<Sim>, enough: u64, resets: bool) -> Result<()> {
    let signal = pe.alloc_zeroed::<u64>(1)?;
    let module = pe.module(&source())?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes these arguments.
    unsafe {
        let arguments = args![&signal, enough, resets];
        pe.on(&stream).launch(&module.kernel("take_back")?, &Grid::new(1, 1).collective(), arguments)?;
    }
    pe.synchronize(&stream)?;
    pe.free(signal)
}

/// The word that a load has shown is the PE's again, to write or to free. By PTX's coherence that needs no fence.
#[test]
fn who_has_read_a_signal_by_a_load_comes_after_it() {
    for profile in Profile::ALL {
        for resets in [false, true] {
            prove(Config { profile, ..Config::pes(2) }, |pe| take_back(pe, 1, resets));
            prove(Config { profile, ..Config::pes(3) }, |pe| take_back(pe, 2, resets));
            prove(Config { profile, nodes: 2, ..Config::pes(2) }, |pe| take_back(pe, 1, resets));
        }
    }
}

/// A signal that may come later is not among those that were read.
#[test]
fn a_signal_that_was_not_waited_for_races() {
    for resets in [false, true] {
        let run = refute(3, |pe| take_back(pe, 1, resets));
        let lines = |race: &Race| [race.first.at.line(), race.second.at.line()];
        let is_of_store = |race: &Race| lines(race).contains(&36) && lines(race).contains(&39);
        assert_eq!(run.verdict.races.iter().any(is_of_store), resets, "{}", run.verdict);
        assert!(run.verdict.races.iter().all(|race| lines(race).contains(&36)), "{}", run.verdict);
    }
}

/// A poll in place of a wait is no reason for a race that has nothing to do with what the network brings.
#[test]
fn threads_that_store_in_front_of_a_poll_lack_no_wait() {
    let program = |pe: &Pe<Sim>| {
        let (signal, word) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        let module = pe.module(&source())?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes these arguments.
        unsafe {
            let grid = Grid::new(1, 2);
            pe.on(&stream).launch(&module.kernel("all_store")?, &grid, args![&signal, &word])?;
        }
        pe.synchronize(&stream)?;
        pe.free(word)?;
        pe.free(signal)
    };
    let run = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap();
    let [race] = &run.verdict.races[..] else { panic!("{}", run.verdict) };
    assert!(matches!(race.missing, MissingEdge::OneThread { at, .. } if at.line() == 45), "{race}");
}

/// Threads of a kernel come after those of all kernels before it, whatever the sizes of their blocks.
#[test]
fn a_kernel_comes_after_kernels_with_blocks_of_other_sizes() {
    for between in [1, 32, 33, 64, 128] {
        prove(1, |pe| {
            let (from, to, beside) = (pe.alloc_zeroed::<i32>(64)?, pe.alloc_zeroed::<i32>(64)?, pe.alloc_zeroed(128)?);
            let (module, stream) = (pe.module(&source())?, pe.stream()?);
            let kernel = module.kernel("pass_on")?;
            // SAFETY: the kernel takes these arguments, and each block stays within them.
            unsafe {
                pe.on(&stream).launch(&kernel, &Grid::new(1, 64), args![&from, &to, 0_u32])?;
                pe.on(&stream).launch(&kernel, &Grid::new(1, between), args![&beside, &beside, 0_u32])?;
                pe.on(&stream).launch(&kernel, &Grid::new(1, 64), args![&to, &from, 32_u32])?;
            }
            pe.synchronize(&stream)?;
            onesided::expect_eq(pe.read(&from)?, vec![2; 64], "what was passed on twice")?;
            pe.free::<i32>(beside)?;
            pe.free(to)?;
            pe.free(from)
        });
    }
}
