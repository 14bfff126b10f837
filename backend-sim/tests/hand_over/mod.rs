//! For tests of kernels that hand data over.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Argument, Grid, Pe, Result, Source, Stream, args};
use onesided_sim::{Config, Explore, Run, Sim, Simulation};

/// Runs a kernel on all PEs, and waits for all of them. Each test gives what its kernel takes.
pub(crate) fn run(pe: &Pe<Sim>, source: &Source, name: &str, grid: &Grid, arguments: &[Argument]) -> Result<()> {
    let stream = launch(pe, source, name, grid, arguments)?;
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)
}

/// Launches a kernel, on a stream of its own.
pub(crate) fn launch(
    pe: &Pe<Sim>,
    source: &Source,
    name: &str,
    grid: &Grid,
    arguments: &[Argument],
) -> Result<Stream<Sim>> {
    let (module, stream) = (pe.module(source)?, pe.stream()?);
    // SAFETY: the kernels take these arguments.
    unsafe { pe.on(&stream).launch(&module.kernel(name)?, grid, arguments)? };
    Ok(stream)
}

/// How many schedules there are, and what the PEs return. None may end in a finding, and a search of all of them must be complete.
pub(crate) fn explored<T: Ord + Copy>(
    config: Config,
    how: Explore,
    program: impl Fn(&Pe<Sim>) -> Result<T>,
) -> (u64, BTreeSet<Vec<T>>) {
    let mut seen = BTreeSet::new();
    let explored = Simulation::new(config).unwrap().explore(how, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        seen.insert(run.results.iter().copied().flatten().collect());
        ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(!matches!(how, Explore::All { .. }) || explored.complete, "{explored:?}");
    (explored.schedules, seen)
}

/// What a kernel that takes data, a flag and what it has seen has seen.
pub(crate) fn hand_over(pe: &Pe<Sim>, source: &Source, name: &str, grid: &Grid, how: &[Argument]) -> Result<i32> {
    let (data, flag, seen) = (pe.alloc_zeroed::<i32>(64)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    let arguments: Vec<Argument> = args![&data, &flag, &seen].iter().chain(how).cloned().collect();
    run(pe, source, name, grid, &arguments)?;
    let result = pe.read_one(&seen)?;
    pe.free(seen)?;
    pe.free(flag)?;
    pe.free(data)?;
    Ok(result)
}

/// Classes, and the outcomes of all schedules, as `text` has them. The search must be complete. Random schedules have nothing else.
#[track_caller]
pub(crate) fn outcomes<T>(
    config: &Config,
    program: impl Fn(&Pe<Sim>) -> Result<T>,
    text: impl Fn(&Run<T>) -> String,
) -> (u64, BTreeSet<String>) {
    let of = |how: Explore| {
        let mut outcomes = BTreeSet::new();
        let explored = Simulation::new(config.clone()).unwrap().explore(how, &program, |run| {
            outcomes.insert(if run.is_ok() { text(run) } else { run.verdict.kind.outcome() });
            ControlFlow::<()>::Continue(())
        });
        (explored.unwrap(), outcomes)
    };
    let (explored, outcomes) = of(Explore::All { limit: 20_000 });
    assert!(explored.complete && explored.redundant == 0, "{explored:?}");
    let (_, at_random) = of(Explore::random(200, 1));
    assert!(at_random.is_subset(&outcomes), "{at_random:?} beside {outcomes:?}");
    (explored.schedules, outcomes)
}

/// A set of outcomes.
pub(crate) fn set(outcomes: &[&str]) -> BTreeSet<String> {
    outcomes.iter().map(|outcome| (*outcome).to_string()).collect()
}
