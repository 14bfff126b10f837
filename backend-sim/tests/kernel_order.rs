//! Random kernels that pass messages by strong accesses, fences, barriers and signals in every scope, and hosts and streams around them: they race
//! exactly where PTX's memory model and NVSHMEM's say so, and without a race they have their outcomes.
//!
//! The model (`kernel_order/`) tries all orders of all steps and keeps sets of accesses, where the simulator explores and keeps clocks. It says once more
//! what a fence, a release, a quiet and a barrier tell, and shares nothing with the simulator.
//!
//! Other programs, and more of them: `REFERENCE_SEED=7 REFERENCE_TIMES=5 cargo test -p onesided-sim --test all kernel_order`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::random;
use onesided::{Cmp, Grid, Pe, Result, SignalOp, Source, Stream, SymmetricBuf, args};
use onesided_sim::{Config, Explore, Profile, Quiet, Races, Run, Sim, Simulation, VerdictKind};
use proptest::prelude::*;

mod access;
mod generate;
mod model;
mod past;
mod program;
mod steps;

use model::Allowed;
use program::{BLOCKS, Fetch, Order, PES, Program, SHARED, SIGNAL, Scope, Step, WORDS, source};

/// Programs with more schedules, or more states of the model, are left out.
const SCHEDULES: u64 = 2_000;
const STATES: usize = 6_000;

fn perform(source: &Source, program: &Program, pe: &Pe<Sim>) -> Result<Vec<u64>> {
    let threads = program.threads / PES;
    let words = pe.alloc_zeroed::<u64>(WORDS + 1 + threads)?;
    let module = pe.module(source)?;
    let kernel = module.kernel("k")?;
    let stream = pe.stream()?;
    let grid = Grid::new(BLOCKS as u32, (threads / BLOCKS) as u32);
    let launch = || {
        // SAFETY: the kernel takes one pointer.
        unsafe { pe.on(&stream).launch(&kernel, &grid, args![&words]) }
    };
    let mut noted = None;
    if program.has_hosts() {
        let [host, behind] = [program.host(pe.my_pe()), program.stream(pe.my_pe())].map(|agent| &program.steps[agent]);
        noted = Some(host_does(pe, host, &words, &stream, || {
            launch()?;
            behind.iter().try_for_each(|step| stream_does(pe, step, &words, &stream))
        })?);
        pe.host().quiet()?;
    } else {
        launch()?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    if program.has_hosts() {
        pe.host().barrier_all()?;
    }
    let mut seen = pe.read(&words)?;
    seen.extend(noted);
    pe.free(words)?;
    Ok(seen)
}

/// What a host does; what it has noted.
fn host_does(
    pe: &Pe<Sim>,
    steps: &[Step],
    words: &SymmetricBuf<u64>,
    stream: &Stream<Sim>,
    launch: impl Fn() -> Result<()>,
) -> Result<u64> {
    let mut noted = 0;
    for step in steps {
        match *step {
            Step::Launch => launch()?,
            Step::Synchronize => pe.synchronize(stream)?,
            Step::Read { word, .. } => noted = noted * 10 + pe.read_one(words.at(word))?,
            Step::Write { word, value, .. } => pe.write(words.at(word), &[value])?,
            Step::P { to, word, value } => pe.host().p(words.at(word), value, to)?,
            Step::G { of, word } => noted = noted * 10 + pe.host().g(words.at(word), of)?,
            Step::Signal { to } => pe.host().signal_op(words.signal(SIGNAL), 1, SignalOp::Add, to)?,
            Step::Wait { value } => _ = pe.host().signal_wait_until(words.signal(SIGNAL), Cmp::Ge, value)?,
            Step::NvshmemFence => pe.host().fence()?,
            Step::Quiet => pe.host().quiet()?,
            step => unreachable!("a host does not {step:?}"),
        }
    }
    Ok(noted)
}

/// What is enqueued on a stream.
fn stream_does(pe: &Pe<Sim>, step: &Step, words: &SymmetricBuf<u64>, stream: &Stream<Sim>) -> Result<()> {
    let on = pe.on(stream);
    match *step {
        Step::P { to, word, value } => on.p(words.at(word), value, to),
        Step::Signal { to } => on.signal_op(words.signal(SIGNAL), 1, SignalOp::Add, to),
        Step::Wait { value } => on.signal_wait_until(words.signal(SIGNAL), Cmp::Ge, value),
        Step::NvshmemFence => on.fence(),
        Step::Quiet => on.quiet(),
        step => unreachable!("a stream does not {step:?}"),
    }
}

#[derive(Default)]
struct Seen {
    complete: bool,
    races: Option<String>,
    outcomes: BTreeSet<Option<Vec<Vec<u64>>>>,
}

fn proved(program: &Program, profile: Profile, quiet: Quiet) -> std::result::Result<Seen, String> {
    let source = Source::ptx("random.ptx", source(program));
    let mut seen = Seen::default();
    let mut other = None;
    let config = Config { profile, quiet, races: Races::Find, max_steps: Some(20_000), ..Config::pes(PES) };
    let visit = |run: &Run<Vec<u64>>| {
        if let Some(race) = run.verdict.races.first() {
            seen.races.get_or_insert_with(|| race.to_string());
        }
        match &run.verdict.kind {
            VerdictKind::Finished => {
                let results = run.results.iter().map(|result| result.clone().expect("it has finished"));
                seen.outcomes.insert(Some(results.collect()));
            }
            VerdictKind::Deadlock => _ = seen.outcomes.insert(None),
            VerdictKind::Race => {}
            VerdictKind::Kernel { message, .. } if message.starts_with("race in shared memory") => {
                seen.races.get_or_insert_with(|| message.clone());
            }
            kind => other = Some(format!("{kind:?}")),
        }
        ControlFlow::Continue(())
    };
    let all = Explore::All { limit: SCHEDULES };
    let explored = Simulation::new(config).unwrap().explore(all, |pe| perform(&source, program, pe), visit);
    let explored = explored.map_err(|error| error.to_string())?;
    if let Some(other) = other {
        return Err(other);
    }
    seen.complete = explored.bound.is_none() && explored.given_up == 0;
    Ok(seen)
}

/// Profiles and readings of a quiet that differ for kernels on one node.
const WAYS: [(Profile, Quiet); 5] = [
    (Profile::Spec, Quiet::Pe),
    (Profile::Spec, Quiet::Thread),
    (Profile::Network, Quiet::Thread),
    (Profile::Ibgda, Quiet::Pe),
    (Profile::Nvlink, Quiet::Thread),
];

/// Compares a program: whether it races, or `None` if it is too large.
fn compare(program: &Program) -> std::result::Result<Option<bool>, String> {
    let mut races = false;
    for (profile, quiet) in WAYS {
        let promises = &profile.promises();
        let Some(Allowed { outcomes, racy }) = model::allowed(program, quiet, promises, STATES) else {
            return Ok(None);
        };
        let seen = proved(program, profile, quiet)?;
        if !seen.complete {
            return Ok(None);
        }
        match seen.races {
            Some(race) if !racy => return Err(format!("{profile}, {quiet:?}: the model has no race: {race}")),
            None if racy => return Err(format!("{profile}, {quiet:?}: the model has a race, a proof has none")),
            _ if racy => {}
            _ if seen.outcomes != outcomes => {
                let missing = Vec::from_iter(outcomes.difference(&seen.outcomes));
                let wrong = Vec::from_iter(seen.outcomes.difference(&outcomes));
                return Err(format!("{profile}, {quiet:?}: a proof misses {missing:?}, and shows {wrong:?}"));
            }
            _ => {}
        }
        races |= racy;
    }
    Ok(Some(races))
}

#[test]
fn kernels_race_where_the_memory_model_says_so() {
    compare_all(generate::threads(), 800);
}

#[test]
fn chains_of_threads_race_where_the_memory_model_says_so() {
    compare_all(generate::chains(), 2_500);
}

#[test]
fn threads_that_ask_who_comes_last_race_where_the_memory_model_says_so() {
    compare_all(generate::counts(false), 1_500);
}

#[test]
fn threads_of_a_block_that_ask_who_comes_last_race_where_the_memory_model_says_so() {
    compare_all(generate::counts(true), 1_000);
}

#[test]
fn threads_of_a_block_that_hear_of_each_other_elsewhere_race_where_the_memory_model_says_so() {
    compare_all(generate::relays(), 800);
}

#[test]
fn threads_that_arrive_and_wait_later_race_where_the_memory_model_says_so() {
    compare_all(generate::arrivals(), 1_000);
}

#[test]
fn hosts_and_streams_race_with_kernels_where_the_model_says_so() {
    compare_all(generate::hosts(), 1_000);
}

#[test]
fn chains_of_hosts_streams_and_threads_race_where_the_model_says_so() {
    compare_all(generate::chains_with_hosts(), 1_500);
}

/// A thread's plain store is no step of a search. So a quiet of another thread, which may come first, must not cover it.
#[test]
fn a_quiet_covers_no_store_that_nothing_puts_before_it() {
    let store = Step::Write { of: 0, word: 0, value: 5, order: Order::Weak };
    let mut steps = vec![vec![]; PES * BLOCKS * 2];
    (steps[4], steps[7]) = (vec![Step::Quiet, store], vec![store]);
    assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(true)));
}

/// Where a fence completes, it releases, as a quiet does: a relaxed flag behind it tells of the store.
#[test]
fn a_fence_that_completes_releases() {
    let store = Step::Write { of: 1, word: 1, value: 5, order: Order::Weak };
    let flag = Step::Write { of: 0, word: 2, value: 1, order: Order::Relaxed(Scope::Sys) };
    let hear = Step::Await { of: 0, word: 2, value: 1, order: Order::Strong(Scope::Sys) };
    let get = Step::G { of: 1, word: 1 };
    let steps = |ordered| vec![vec![], vec![store, ordered, flag], vec![], vec![hear, get]];
    assert_eq!(compare(&Program::of_threads(steps(Step::NvshmemFence))), Ok(Some(true))); // not under `spec`
    assert_eq!(compare(&Program::of_threads(steps(Step::Quiet))), Ok(Some(false)));
}

/// A fence is about what goes to the same PE: what a thread knew when it signalled one PE is not before what goes to another.
#[test]
fn a_fence_tells_nothing_that_was_known_with_what_went_elsewhere() {
    let look = Step::Look { value: 1, order: Order::Relaxed(Scope::Sys) };
    let mut steps = vec![vec![]; PES * BLOCKS * 2];
    steps[4] = vec![look, Step::NvshmemFence, Step::P { to: 0, word: 1, value: 5 }];
    steps[5] = vec![Step::Read { of: 0, word: 1, order: Order::Weak }, Step::Signal { to: 1 }];
    assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(true)));
}

/// A thread sees a flag by a relaxed load, which tells it nothing, and sets it again: a wait may read that one, and then comes after nothing.
#[test]
fn a_flag_that_is_set_again_by_who_has_heard_nothing_tells_nothing() {
    let flag = |order| Step::Write { of: 0, word: 2, value: 1, order };
    let wait = |order| Step::Await { of: 0, word: 2, value: 1, order };
    for of in [0, SHARED] {
        for again in [2, 4] {
            let mut steps = vec![vec![]; PES * BLOCKS * 2];
            steps[0] = vec![Step::Write { of, word: 0, value: 5, order: Order::Weak }, flag(Order::Strong(Scope::Sys))];
            steps[1] = vec![wait(Order::Strong(Scope::Gpu)), Step::Read { of, word: 0, order: Order::Weak }];
            assert_eq!(compare(&Program::of_threads(steps.clone())), Ok(Some(false)));
            steps[again] = vec![wait(Order::Relaxed(Scope::Sys)), flag(Order::Relaxed(Scope::Sys))];
            assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(true)));
        }
    }
}

/// Who gets the answer no does not come after another atomic that got it, and may not write to the word plainly.
#[test]
fn who_does_not_come_last_comes_after_nobody() {
    for (of, threads) in [(0, [4, 6]), (SHARED, [0, 1]), (SHARED, [1, 0])] {
        let count = |fetch| Step::Add { of, word: 2, order: Order::Relaxed(Scope::Gpu), fetch };
        let asks = |unless, steps| count(Fetch::Asks { number: 2, unless, steps });
        let read = Step::Read { of, word: 0, order: Order::Weak };
        let reset = Step::Write { of, word: 2, value: 0, order: Order::Weak };
        let mut steps = vec![vec![]; PES * BLOCKS * 2];
        steps[threads[0]] = vec![asks(false, 1), read];
        steps[threads[1]] = vec![asks(true, 2), read, reset];
        assert_eq!(compare(&Program::of_threads(steps.clone())), Ok(Some(true)));
        // nor does who looks at nothing
        steps[threads[0]] = vec![count(Fetch::Nothing)];
        steps[threads[1]] = vec![count(Fetch::Nothing), reset];
        assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(true)));
    }
}

/// What a quiet completes was issued behind a store of the same thread: the fence in the quiet is about that store, too.
#[test]
fn the_fence_of_a_quiet_is_behind_what_it_completes() {
    let store = Step::Write { of: 0, word: 0, value: 5, order: Order::Weak };
    let put = Step::P { to: 0, word: 1, value: 5 };
    let flag = Step::Write { of: 1, word: 2, value: 1, order: Order::Relaxed(Scope::Gpu) };
    let hear = Step::Await { of: 1, word: 2, value: 1, order: Order::Relaxed(Scope::Cta) };
    let mut steps = vec![vec![]; PES * BLOCKS * 2];
    (steps[4], steps[5]) = (vec![store, put, flag], vec![hear, Step::Quiet, Step::Put { to: 0, word: 0, src: 1 }]);
    assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(true))); // only where a quiet is about the whole PE is there none
}

/// A plain store is no step of its own, and comes behind those fences of NVSHMEM alone that its thread knows of. Else what the next step of the thread
/// is would depend on whether another thread has fenced, and the program was said not to be deterministic.
#[test]
fn a_plain_store_comes_behind_no_fence_that_its_thread_does_not_know() {
    let mut steps = vec![vec![]; PES * BLOCKS * 2];
    let store = |word, value, order| Step::Write { of: 0, word, value, order };
    let never = Step::Await { of: 0, word: 3, value: 1, order: Order::Relaxed(Scope::Cta) };
    steps[0] = vec![never, Step::Read { of: 0, word: 0, order: Order::Weak }];
    steps[4] = vec![Step::Quiet, store(0, 5, Order::Weak), store(2, 1, Order::Relaxed(Scope::Cta))];
    steps[6] = vec![Step::P { to: 0, word: 1, value: 5 }, Step::NvshmemFence];
    assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(false)));
}

/// Also where it has read what it replaces.
#[test]
fn an_atomic_of_shared_memory_tells_a_loop_what_it_releases() {
    for fetch in [Fetch::Nothing, Fetch::Notes] {
        let mut steps = vec![vec![]; PES * BLOCKS * 2];
        let data = Step::Write { of: 0, word: 0, value: 5, order: Order::Weak };
        steps[0] = vec![data, Step::Add { of: SHARED, word: 2, order: Order::Strong(Scope::Cta), fetch }];
        steps[1] = vec![
            Step::Await { of: SHARED, word: 2, value: 1, order: Order::Relaxed(Scope::Cta) },
            Step::Fence { scope: Scope::Cta, sc: false },
            Step::Read { of: 0, word: 0, order: Order::Weak },
        ];
        assert_eq!(compare(&Program::of_threads(steps)), Ok(Some(false)), "{fetch:?}");
    }
}

/// Compares random programs, and checks that enough of them were small enough, that some race, and others do not.
fn compare_all(programs: impl Strategy<Value = Program>, cases: u32) {
    let (compared, racy) = (Cell::new(0), Cell::new(0));
    let cases = random::check_all(programs, cases, 0x6f72_6472, |program| {
        if let Some(race) = compare(&program).map_err(TestCaseError::fail)? {
            compared.set(compared.get() + 1);
            racy.set(racy.get() + u32::from(race));
        }
        Ok(())
    });
    let (compared, racy) = (compared.get(), racy.get());
    eprintln!("{compared} of {cases} programs compared, {racy} with a race");
    assert!(compared > cases / 2, "only {compared} of {cases} programs were small enough");
    assert!(racy > cases / 20 && compared - racy > cases / 20, "{racy} of {compared} programs have a race");
}
