//! Random kernels that pass messages by strong accesses, fences, barriers and signals in every scope: they race exactly where PTX's memory model says
//! so, and without a race they have its outcomes.
//!
//! The model (`kernel_order/`) tries all orders of all steps and keeps sets of accesses, where the simulator explores and keeps clocks. It says once more
//! what a fence, a release, a quiet and a barrier tell, and shares nothing with the simulator.
//!
//! Other programs, and more of them: `REFERENCE_SEED=7 REFERENCE_TIMES=5 cargo test -p onesided-sim --test kernel_order`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Quiet, Races, Run, Sim, Simulation, VerdictKind};
use proptest::prelude::*;

#[path = "kernel_order/access.rs"]
mod access;
#[path = "kernel_order/model.rs"]
mod model;
#[path = "kernel_order/past.rs"]
mod past;
#[path = "kernel_order/program.rs"]
mod program;
mod random;
#[path = "kernel_order/steps.rs"]
mod steps;

use model::Allowed;
use program::{BLOCKS, Order, PES, Program, SHARED, Scope, Step, WORDS, source};

/// Programs with more schedules, or more states of the model, are left out.
const SCHEDULES: u64 = 2_000;
const STATES: usize = 6_000;

fn perform(source: &Source, threads: usize, pe: &Pe<Sim>) -> Result<Vec<u64>> {
    let words = pe.alloc_zeroed::<u64>(WORDS + 1 + BLOCKS * threads)?;
    let module = pe.module(source)?;
    let kernel = module.kernel("k")?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes one pointer.
    unsafe { pe.on(&stream).launch(&kernel, &Grid::new(BLOCKS as u32, threads as u32), args![&words])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let seen = pe.read(&words)?;
    pe.free(words)?;
    Ok(seen)
}

#[derive(Default)]
struct Seen {
    complete: bool,
    races: Option<String>,
    outcomes: BTreeSet<Option<Vec<Vec<u64>>>>,
}

fn proved(program: &Program, profile: Profile, quiet: Quiet) -> std::result::Result<Seen, String> {
    let (source, threads) = (Source::ptx("random.ptx", source(program)), program.len() / PES / BLOCKS);
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
            kind => other = Some(format!("{kind:?}")),
        }
        ControlFlow::Continue(())
    };
    let all = Explore::All { limit: SCHEDULES };
    let explored = Simulation::new(config).unwrap().explore(all, |pe| perform(&source, threads, pe), visit);
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

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![1 => Just(Scope::Cta), 2 => Just(Scope::Gpu), 3 => Just(Scope::Sys)]
}

fn strong() -> impl Strategy<Value = Order> {
    prop_oneof![scope().prop_map(Order::Relaxed), scope().prop_map(Order::Strong)]
}

const FLAG: usize = 2;

fn step() -> impl Strategy<Value = Step> {
    let (pe, data, flag) = (|| 0..PES, || 0..FLAG, || FLAG..WORDS);
    let of = || prop_oneof![5 => pe(), 1 => Just(SHARED)];
    let order = || prop_oneof![6 => Just(Order::Weak), 1 => strong()];
    prop_oneof![
        3 => (pe(), data(), order()).prop_map(|(of, word, order)| Step::Read { of, word, order }),
        3 => (pe(), data(), order()).prop_map(|(of, word, order)| Step::Write { of, word, value: 5, order }),
        1 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Read { of, word, order }),
        3 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Write { of, word, value: 1, order }),
        3 => (of(), flag(), 1..=2u64, strong()).prop_map(|(of, word, value, order)| Step::Await { of, word, value, order }),
        2 => (of(), flag(), strong(), any::<bool>()).prop_map(|(of, word, order, fetch)| Step::Add { of, word, order, fetch }),
        3 => scope().prop_map(Step::Fence),
        2 => Just(Step::Meet),
        2 => pe().prop_map(|to| Step::Signal { to }),
        2 => (1..=2u64).prop_map(|value| Step::Wait { value }),
        1 => (1..=2u64, prop_oneof![Just(Order::Relaxed(Scope::Sys)), Just(Order::Strong(Scope::Sys))])
            .prop_map(|(value, order)| Step::Look { value, order }),
        1 => (pe(), data()).prop_map(|(to, word)| Step::P { to, word, value: 5 }),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
        1 => pe().prop_map(|to| Step::Put { to, word: 0, src: 1 }),
        1 => Just(Step::NvshmemFence),
        1 => Just(Step::Quiet),
    ]
}

/// Few threads that hand something over: each waits for a flag or a signal, uses data, and sets the next flag.
fn chains() -> impl Strategy<Value = Program> {
    let (pe, data, flag) = (|| 0..PES, || 0..FLAG, || FLAG..WORDS);
    let of = || prop_oneof![5 => pe(), 1 => Just(SHARED)];
    let fence = || prop_oneof![3 => scope().prop_map(Step::Fence), 1 => Just(Step::NvshmemFence), 1 => Just(Step::Quiet), 2 => Just(Step::Meet)];
    let hear = prop_oneof![
        3 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Await { of, word, value: 1, order }),
        1 => Just(Step::Wait { value: 1 }),
        1 => prop_oneof![Just(Order::Relaxed(Scope::Sys)), Just(Order::Strong(Scope::Sys))]
            .prop_map(|order| Step::Look { value: 1, order }),
    ];
    let touch = prop_oneof![
        3 => (pe(), data()).prop_map(|(of, word)| Step::Read { of, word, order: Order::Weak }),
        3 => (pe(), data()).prop_map(|(of, word)| Step::Write { of, word, value: 5, order: Order::Weak }),
        1 => (pe(), data()).prop_map(|(to, word)| Step::P { to, word, value: 5 }),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
        1 => pe().prop_map(|to| Step::Put { to, word: 0, src: 1 }),
    ];
    let tell = prop_oneof![
        3 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Write { of, word, value: 1, order }),
        1 => (of(), flag(), strong(), any::<bool>()).prop_map(|(of, word, order, fetch)| Step::Add { of, word, order, fetch }),
        2 => pe().prop_map(|to| Step::Signal { to }),
    ];
    let maybe = |step: BoxedStrategy<Step>, often: f64| prop::option::weighted(often, step);
    let (hear, touch, tell) = (hear.boxed(), touch.boxed(), tell.boxed());
    let link = (
        maybe(hear, 0.7),
        maybe(fence().boxed(), 0.5),
        touch.clone(),
        maybe(touch, 0.3),
        maybe(fence().boxed(), 0.5),
        maybe(tell, 0.8),
    );
    let link = link.prop_map(|(hear, acquire, touch, more, release, tell)| {
        [hear, acquire, Some(touch), more, release, tell].into_iter().flatten().collect::<Vec<Step>>()
    });
    let threads = PES * BLOCKS * 2;
    prop::collection::vec((0..threads, link), 2..=4).prop_map(move |links| {
        let mut program = vec![Vec::new(); threads];
        links.into_iter().for_each(|(thread, link)| program[thread] = link);
        program
    })
}

#[test]
fn kernels_race_where_the_memory_model_says_so() {
    compare_all(prop::collection::vec(prop::collection::vec(step(), 0..=3), PES * BLOCKS * 2), 800);
}

#[test]
fn chains_of_threads_race_where_the_memory_model_says_so() {
    compare_all(chains(), 2_500);
}

/// A thread's plain store is no step of a search. So a quiet of another thread, which may come first, must not cover it.
#[test]
fn a_quiet_covers_no_store_that_nothing_puts_before_it() {
    let store = Step::Write { of: 0, word: 0, value: 5, order: Order::Weak };
    let mut program = vec![vec![]; PES * BLOCKS * 2];
    (program[4], program[7]) = (vec![Step::Quiet, store], vec![store]);
    assert_eq!(compare(&program), Ok(Some(true)));
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
