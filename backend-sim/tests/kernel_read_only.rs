//! Read-only loads (`__ldg`, `ld.global.nc`): what they read must not be written while their kernel runs. Only its launch orders them.

use onesided::{Argument, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, MissingEdge, Profile, Race, Run, Sim, Simulation, prove, refute};

const READ_ONLY: &str = include_str!("../ptx/kernels/read_only.ptx");

// As in read_only.cu: how the data is read, and how it is written.
const PLAIN: i32 = 0;
const LDG: i32 = 1;
const FOUR: i32 = 2;
const PEER: i32 = 3;
const BESIDE: i32 = 4;
const PUT: i32 = 0;
const STORE: i32 = 1;
const ADD: i32 = 2;
const OWN: i32 = 3;

fn launch(pe: &Pe<Sim>, kernel: &str, grid: Grid, arguments: &[Argument]) -> Result<()> {
    let module = pe.module(&Source::ptx("read_only.ptx", READ_ONLY))?;
    let stream = pe.stream()?;
    // SAFETY: each test passes what its kernel takes.
    unsafe { pe.on(&stream).launch(&module.kernel(kernel)?, &grid, arguments)? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)
}

/// Gives a kernel data and room for what it has seen, and returns the first that it has.
fn with_data(pe: &Pe<Sim>, run: impl Fn(&Pe<Sim>, &[Argument]) -> Result<()>) -> Result<i32> {
    let (data, seen) = (pe.alloc_zeroed::<i32>(32)?, pe.alloc_zeroed::<i32>(32)?);
    pe.host().barrier_all()?;
    run(pe, args![&data, &seen])?;
    let value = pe.read_one(seen.slice(0..1))?;
    pe.free(seen)?;
    pe.free(data)?;
    Ok(value)
}

/// Each PE writes to the next one's data, meets it, and reads its own.
fn reads(pe: &Pe<Sim>, how: i32, writes: i32) -> Result<i32> {
    with_data(pe, |pe, given| launch(pe, "reads", Grid::new(1, 1).collective(), &[given, args![how, writes]].concat()))
}

fn run<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Run<T> {
    Simulation::new(config).unwrap().run(program).unwrap()
}

/// The races of the run in order, in which every PE sees what was written.
fn races(program: impl Fn(&Pe<Sim>) -> Result<i32>) -> Vec<Race> {
    let run = run(Config::pes(2), program);
    assert_eq!(run.results, [Some(42), Some(42)], "{}", run.verdict);
    run.verdict.races
}

/// The only race is by a read-only load.
fn is_of_a_read_only_load(races: &[Race]) -> bool {
    let load = |race: &Race| if race.first.writes { race.second } else { race.first };
    let is_one = |race: &Race| matches!(race.missing, MissingEdge::PlainLoad { at } if at == load(race).at);
    !races.is_empty() && races.iter().all(|race| is_one(race) && load(race).call == "read-only load")
}

#[test]
fn what_is_written_while_the_kernel_runs_is_read_by_a_plain_load() {
    for writes in [PUT, STORE, ADD, OWN] {
        for how in [LDG, FOUR, PEER] {
            let races = races(|pe| reads(pe, how, writes));
            assert!(is_of_a_read_only_load(&races), "{how} {writes}: {races:?}");
        }
        prove(2, |pe| reads(pe, PLAIN, writes));
    }
    let race = &races(|pe| reads(pe, LDG, PUT))[0];
    insta::assert_snapshot!(race.missing, @"a plain load in place of the read-only one at read_only.cu:12 (__ldg, ld.global.nc, or a load that the compiler has made one, through a pointer that is const and __restrict__: leave out one of these): memory that is read so must not be written while the kernel runs, and no wait, fence or barrier in the kernel orders the load behind a write");
}

/// On every transport: what is not coherent is the GPU's own cache.
#[test]
fn no_transport_makes_a_read_only_load_see_what_is_new() {
    for profile in Profile::ALL {
        let run = run(Config { profile, ..Config::pes(2) }, |pe| reads(pe, LDG, PUT));
        assert!(is_of_a_read_only_load(&run.verdict.races), "{profile}: {}", run.verdict);
    }
}

#[test]
fn a_search_finds_it_in_every_schedule() {
    let found = refute(2, |pe| reads(pe, LDG, STORE).map(drop));
    assert!(is_of_a_read_only_load(&found.verdict.races), "{}", found.verdict);
}

/// Other words of the same buffer are written.
#[test]
fn what_nobody_writes_is_read_as_one_likes() {
    prove(2, |pe| reads(pe, BESIDE, PUT));
}

/// A pointer that is const and `__restrict__`: the source has no read-only load, and what the report says names it.
#[test]
fn the_compiler_makes_read_only_loads_too() {
    let restricted = |pe: &Pe<Sim>| {
        let grid = Grid::new(1, 1).collective();
        with_data(pe, |pe, given| launch(pe, "restricted", grid, &[&given[..1], given].concat()))
    };
    let races = races(restricted);
    assert!(is_of_a_read_only_load(&races), "{races:?}");
    let said = races[0].missing.to_string();
    assert!(said.contains("through a pointer that is const and __restrict__"), "{said}");
}

/// A launch behind the write orders the two: by the host, by a put that the host has waited for, or by a kernel before it on the stream.
#[test]
fn a_launch_behind_the_write_orders_it() {
    for by_kernel in [false, true] {
        prove(2, |pe| {
            let (data, seen) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(1)?);
            match by_kernel {
                true => launch(pe, "reads", Grid::new(1, 1).collective(), args![&data, &seen, PLAIN, PUT])?,
                false => pe.host().p(data.slice(0..1), 42, (pe.my_pe() + 1) % pe.n_pes())?,
            }
            pe.host().barrier_all()?;
            launch(pe, "only_reads", Grid::new(1, 1), args![&data, &seen, LDG])?;
            onesided::expect_eq(pe.read_one(&seen)?, 42, "what was written before")?;
            pe.free(seen)?;
            pe.free(data)
        });
    }
}

/// Threads of a warp that load together are told apart, and so are words: only what was written is found.
#[test]
fn threads_that_load_together_are_found_too() {
    let neighbours = |how: i32| {
        move |pe: &Pe<Sim>| {
            with_data(pe, |pe, given| launch(pe, "neighbours", Grid::new(1, 32), &[given, args![how]].concat()))
        }
    };
    let races = races(neighbours(LDG));
    assert!(is_of_a_read_only_load(&races) && races[0].times >= 32, "{races:?}");
    prove(2, neighbours(PLAIN));
}

/// Who knows that the GPU at hand does it right, as DeepEP does, says so.
#[test]
fn a_program_may_mean_it() {
    let run = run(Config::pes(2), |pe| pe.intended_race("not cached on this GPU", |pe| reads(pe, FOUR, PUT)));
    assert!(run.is_ok() && run.verdict.intended.iter().any(|mark| mark.races > 0), "{}", run.verdict);
}

/// Where nothing orders the two, that is what is missing first.
#[test]
fn without_any_order_the_race_is_the_plain_one() {
    let run = run(Config::pes(2), |pe| {
        let (data, seen) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(1)?);
        pe.host().barrier_all()?;
        match pe.my_pe() {
            0 => pe.host().p(data.slice(0..1), 42, 1)?,
            _ => launch_alone(pe, args![&data, &seen, LDG])?,
        }
        pe.host().barrier_all()?;
        pe.free(seen)?;
        pe.free(data)
    });
    assert!(matches!(run.verdict.races[0].missing, MissingEdge::Barrier { .. }), "{}", run.verdict);
}

fn launch_alone(pe: &Pe<Sim>, arguments: &[Argument]) -> Result<()> {
    let module = pe.module(&Source::ptx("read_only.ptx", READ_ONLY))?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes these arguments.
    unsafe { pe.on(&stream).launch(&module.kernel("only_reads")?, &Grid::new(1, 1), arguments)? };
    pe.synchronize(&stream)
}
