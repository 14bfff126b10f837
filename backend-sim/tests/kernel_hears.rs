//! What a kernel sees behind a poll: by the specification, a load of its own shows nothing of what a transfer has brought, but for the word
//! itself. NVSHMEM's waits do. Over NVLink both do.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Effort, MissingEdge, Profile, Race, Sim, Simulation, prove, refute};

const HEARS: &str = include_str!("../ptx/kernels/hears.ptx");

// As in hears.cu.
const WAIT: i32 = 1;
const ACQUIRE: i32 = 2;
const READ: i32 = 4;
const ANSWER: i32 = 8;
const PASS: i32 = 16;
const ADD: i32 = 32;
const NBI: i32 = 64;
const THERE: i32 = 128;
const ADD_MORE: i32 = 256;
const STORE: i32 = 512;
const BACK: i32 = 1024;
const QUIET: i32 = 2048;

fn hears(pe: &Pe<Sim>, how: i32) -> Result<i32> {
    let (data, flags, seen) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<i32>(1)?);
    pe.write(data.slice(2..3), &[42])?;
    let module = pe.module(&Source::ptx("hears.ptx", HEARS))?;
    let stream = pe.stream()?;
    pe.host().barrier_all()?;
    // SAFETY: the kernel takes these arguments.
    unsafe {
        let arguments = args![&data, &flags, &seen, how];
        pe.on(&stream).launch(&module.kernel("hears")?, &Grid::new(2, 1).collective(), arguments)?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let result = pe.read_one(&seen)?;
    pe.free(seen)?;
    pe.free(flags)?;
    pe.free(data)?;
    Ok(result)
}

/// The races of the run in order.
fn races(profile: Profile, how: i32) -> Vec<Race> {
    let run =
        Simulation::new(Config { profile, ..Config::pes(2) }).unwrap().run(move |pe: &Pe<Sim>| hears(pe, how)).unwrap();
    let (reads, pe) = (how & (READ | PASS | ADD | BACK) != 0, usize::from(how & THERE == 0));
    assert_eq!(run.results[pe], Some(if reads { 42 } else { 0 }), "{profile} {how}: {}", run.verdict);
    run.verdict.races
}

#[test]
fn a_load_shows_no_data_that_a_transfer_has_brought() {
    for profile in Profile::ALL {
        for how in [READ, READ | ACQUIRE] {
            let races = races(profile, how);
            if profile == Profile::Nvlink {
                assert!(races.is_empty(), "{profile} {how}: {}", races[0]);
                continue;
            }
            let [race] = &races[..] else { panic!("{profile} {how}: {races:?}") };
            let lines = [race.first.at, race.second.at].map(|at| at.to_string());
            assert_eq!(lines, ["hears.cu:29", "hears.cu:54"], "{profile} {how}");
            let MissingEdge::Wait { at } = race.missing else { panic!("{profile} {how}: {race}") };
            assert_eq!(at.line(), if how & ACQUIRE == 0 { 9 } else { 48 });
        }
    }
    let race = &races(Profile::Spec, READ)[0];
    insta::assert_snapshot!(race.missing, @"a wait of NVSHMEM (nvshmem_signal_wait_until, nvshmem_uint64_wait_until, or a test) in place of the load at hears.cu:9: over a network, a load does not show what arrived before");
}

/// In place of a load that polls, a call that looks at the same word is tried: it shows what has arrived.
#[test]
fn a_call_in_place_of_the_load_repairs_it() {
    for how in [READ, READ | ACQUIRE, PASS] {
        let program = move |pe: &Pe<Sim>| hears(pe, how);
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let run = simulation.run(program).unwrap();
        let fix = simulation.fix(&run, Effort::LITTLE, program).unwrap().fix.expect("a fix");
        let line = if how & ACQUIRE == 0 { 9 } else { 48 };
        let proved =
            format!("`nvshmem_signal_fetch` in place of the load at hears.cu:{line}: proved; nothing weaker is enough");
        assert_eq!(fix.to_string(), proved, "{how}");
    }
}

#[test]
fn a_wait_of_nvshmem_shows_it_to_who_waits_and_to_whom_that_tells() {
    for profile in Profile::ALL {
        for how in [WAIT | READ, WAIT | READ | NBI, WAIT | PASS, WAIT | ADD, WAIT | READ | PASS | ANSWER] {
            assert!(races(profile, how).is_empty(), "{profile} {how}");
        }
    }
}

/// What a block has not seen, it cannot tell another one.
#[test]
fn a_block_that_polls_tells_others_nothing_of_the_data() {
    for how in [PASS, PASS | NBI, PASS | ACQUIRE, ADD] {
        let races = races(Profile::Spec, how);
        let [race] = &races[..] else { panic!("{how}: {races:?}") };
        assert!(matches!(race.missing, MissingEdge::Wait { .. }), "{race}");
        assert!(self::races(Profile::Nvlink, how).is_empty());
    }
}

/// What kernels tell by a word is told by stores, whatever a transfer had told by it before: who has waited tells another PE of the data.
#[test]
fn who_has_waited_tells_another_pe() {
    for profile in Profile::ALL {
        for how in [WAIT | BACK, WAIT | PASS | THERE, WAIT | ADD | THERE, WAIT | ADD | ADD_MORE | THERE] {
            assert!(races(profile, how).is_empty(), "{profile} {how}");
        }
    }
    // who looks after a store sees what that tells, and not what was told before
    assert_eq!(races(Profile::Spec, WAIT | ADD | STORE | THERE).len(), 1);
    for how in [ADD | THERE, ADD | ADD_MORE | THERE] {
        assert!(matches!(races(Profile::Spec, how)[0].missing, MissingEdge::Wait { .. }), "{how}");
    }
}

/// The load shows that the signal was sent: what its sender did before that is over.
#[test]
fn a_load_shows_what_the_sender_had_done_itself() {
    for profile in Profile::ALL {
        for how in [ANSWER, ANSWER | ACQUIRE, ANSWER | WAIT] {
            assert!(races(profile, how).is_empty(), "{profile} {how}");
        }
    }
}

/// A quiet completes: what it covers is visible to everybody, and the load shows that the signal came later.
#[test]
fn a_load_shows_what_a_quiet_had_completed() {
    for profile in Profile::ALL {
        for how in [QUIET | READ, QUIET | READ | ACQUIRE, QUIET | PASS] {
            assert!(races(profile, how).is_empty(), "{profile} {how}");
        }
    }
}

/// What a third PE has received is nothing that this PE's memory must show.
#[test]
fn a_load_shows_what_was_complete_elsewhere() {
    for how in [0, ACQUIRE, WAIT] {
        prove(3, move |pe: &Pe<Sim>| hears(pe, how));
    }
}

#[test]
fn proofs_tell_the_same() {
    prove(2, move |pe: &Pe<Sim>| hears(pe, WAIT | READ | PASS));
    for how in [WAIT | ADD, WAIT | BACK, WAIT | PASS | THERE, WAIT | ADD | THERE, WAIT | ADD | ADD_MORE | THERE] {
        prove(2, move |pe: &Pe<Sim>| hears(pe, how));
    }
    prove(2, move |pe: &Pe<Sim>| hears(pe, ANSWER));
    prove(Config { profile: Profile::Nvlink, ..Config::pes(2) }, move |pe: &Pe<Sim>| hears(pe, READ | PASS));
    for how in [READ, READ | ACQUIRE, PASS, ADD] {
        let run = refute(2, move |pe: &Pe<Sim>| hears(pe, how));
        assert!(matches!(run.verdict.races[0].missing, MissingEdge::Wait { .. }), "{how}: {}", run.verdict);
    }
}
