//! Plain stores of kernels to other PEs' memory: which calls order them for others, and which do not.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Grid, Pe, Result, SignalOp, Source, args};
use onesided_sim::{Config, Explore, Explored, Profile, Quiet, Races, Run, Sim, Simulation};

const STORES: &str = include_str!("../ptx/kernels/stores.ptx");

/// What the kernel leaves in `seen`. `behind`: it signals nobody, its stream does so behind it.
fn launch(pe: &Pe<Sim>, name: &str, grid: &Grid, behind: bool) -> Result<i32> {
    let (data, signal, seen) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    let stream = pe.stream()?;
    let module = pe.module(&Source::ptx("stores.ptx", STORES))?;
    let kernel = module.kernel(name)?;
    // SAFETY: every kernel of the file takes these three, and stays inside them.
    unsafe { pe.on(&stream).launch(&kernel, grid, args![&data, &signal, &seen])? };
    let mut result = 0;
    if behind {
        pe.on(&stream).signal_op(signal.signal(0), 1, SignalOp::Set, 1 - pe.my_pe())?;
        pe.host().signal_wait_until(signal.signal(0), Cmp::Eq, 1)?;
        result = pe.read(&data)?.iter().sum();
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    if !behind {
        result = pe.read_one(&seen)?;
    }
    pe.free(seen)?;
    pe.free(signal)?;
    pe.free(data)?;
    Ok(result)
}

fn explore(config: Config, how: Explore, program: impl Fn(&Pe<Sim>) -> Result<i32>) -> (BTreeSet<String>, Explored) {
    let mut outcomes = BTreeSet::new();
    let visit = |run: &Run<i32>| {
        outcomes.insert(match run.verdict.is_ok() {
            true => format!("{:?}", run.results.iter().flatten().collect::<Vec<_>>()),
            false => run.verdict.kind.outcome(),
        });
        ControlFlow::Continue(())
    };
    let explored = Simulation::new(config).unwrap().explore(how, program, visit).unwrap();
    (outcomes, explored)
}

/// Under every profile: a plain store is no transfer, so no promise about transfers is about it.
fn always(name: &str, behind: bool, outcome: &str) {
    let profiles = [Profile::Spec, Profile::Network, Profile::Nvlink];
    for (quiet, profile) in
        profiles.map(|profile| (Quiet::Pe, profile)).into_iter().chain([(Quiet::Thread, Profile::Spec)])
    {
        for how in [Explore::All { limit: 20_000 }, Explore::random(100, 1)] {
            let program = |pe: &Pe<Sim>| launch(pe, name, &Grid::new(1, 2), behind);
            let (outcomes, _) = explore(Config { quiet, profile, ..Config::pes(2) }, how, program);
            assert_eq!(outcomes, BTreeSet::from([outcome.to_string()]), "{name}, {quiet:?}, {profile}, {how:?}");
        }
    }
}

#[test]
fn a_signal_tells_of_no_store_that_nothing_has_completed() {
    for name in
        ["no_fence", "fence_of_the_gpu", "fence_of_one_before_the_barrier", "put_signal", "atomic", "put_behind"]
    {
        always(name, false, "race");
    }
}

#[test]
fn fences_quiets_releases_and_syncs_order_stores() {
    for name in [
        "fence_of_each",
        "fence_of_one_behind_the_barrier",
        "nvshmem_fence_of_one",
        "quiet_of_one",
        "release",
        "sync",
        "one_word",
    ] {
        always(name, false, "[3, 3]");
        // where the stores fly, they are waited for
        let config = Config { races: Races::Note, ..Config::pes(2) };
        let (outcomes, _) = explore(config, Explore::random(100, 1), |pe| launch(pe, name, &Grid::new(1, 2), false));
        assert_eq!(outcomes, BTreeSet::from(["[3, 3]".to_string()]), "{name}");
    }
    always("end", true, "[3, 3]");
}

/// Where races are no findings, the store is seen late, or not at all.
#[test]
fn a_fence_of_another_block_may_come_before_the_store() {
    let program = |pe: &Pe<Sim>| launch(pe, "beside", &Grid::new(2, 1), false);
    let find = explore(Config::pes(2), Explore::All { limit: 20_000 }, program).0;
    assert_eq!(find, BTreeSet::from(["race".to_string()]));
    let config = Config { races: Races::Note, ..Config::pes(2) };
    let seen = BTreeSet::from(["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"].map(String::from));
    assert_eq!(explore(config.clone(), Explore::random(3_000, 1), program).0, seen);
    let (all, explored) = explore(config.clone(), Explore::All { limit: 200_000 }, program);
    assert!(explored.complete);
    assert_eq!(all, seen);

    // a fence waits for no store that its thread does not come after, whichever is first
    let program = |pe: &Pe<Sim>| launch(pe, "beside_an_access", &Grid::new(2, 1), false);
    let (all, explored) = explore(config, Explore::All { limit: 200_000 }, program);
    assert!(explored.complete);
    assert_eq!(all, seen);
}

#[test]
fn a_sync_of_another_block_orders_nothing_of_this_one() {
    let program = |pe: &Pe<Sim>| launch(pe, "sync_of_another_block", &Grid::new(2, 1), false);
    for how in [Explore::All { limit: 1000 }, Explore::random(20, 1)] {
        assert_eq!(explore(Config::pes(2), how, program).0, BTreeSet::from(["race".to_string()]), "{how:?}");
    }
}

/// Also where transfers arrive in the order of issue.
#[test]
fn a_store_takes_no_turn() {
    let program = |pe: &Pe<Sim>| launch(pe, "no_fence", &Grid::new(1, 2), false);
    for profile in [Profile::Network, Profile::Nvlink] {
        let config = Config { races: Races::Note, profile, ..Config::pes(2) };
        let outcomes = explore(config, Explore::random(300, 1), program).0;
        assert!(outcomes.contains("[0, 0]") && outcomes.contains("[3, 3]"), "{profile}: {outcomes:?}");
    }
}

/// A load of the same address is in order with the store; a get is not, and its quiet is missing.
#[test]
fn a_get_races_with_what_its_own_thread_has_stored() {
    always("get_behind", false, "race");
    for name in ["get_behind_a_quiet", "load_behind"] {
        always(name, false, "[1, 1]");
    }
    let config = Config { races: Races::Note, ..Config::pes(2) };
    let program = |pe: &Pe<Sim>| launch(pe, "get_behind", &Grid::new(1, 1), false);
    let seen = BTreeSet::from(["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"].map(String::from));
    assert_eq!(explore(config, Explore::random(300, 1), program).0, seen);
}

/// Where a launch is marked, its plain accesses race as intended, and a search shows each of their outcomes: those that are shown where no race is a finding.
#[test]
fn marked_launches_have_the_outcomes_of_their_races() {
    let marked = |name: &'static str, grid: Grid| {
        move |pe: &Pe<Sim>| pe.intended_race("any value may be seen", |pe| launch(pe, name, &grid, false))
    };
    for (name, grid, most) in [("beside", (2, 1), 4), ("get_behind", (1, 1), 4), ("no_fence", (1, 2), 16)] {
        let program = marked(name, Grid::new(grid.0, grid.1));
        let note = Config { races: Races::Note, ..Config::pes(2) };
        let (noted, explored) = explore(note, Explore::All { limit: 200_000 }, program);
        assert!(explored.complete && noted.len() == most, "{name}: {noted:?}");
        let (found, explored) = explore(Config::pes(2), Explore::All { limit: 200_000 }, program);
        assert!(explored.complete, "{name}");
        assert_eq!(found, noted, "{name}");
        assert_eq!(explore(Config::pes(2), Explore::random(3_000, 1), program).0, noted, "{name}");
    }
}

/// Where races are no findings, each word of a bulk copy is a step.
#[test]
fn a_bulk_copy_of_several_words_ends() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{\n.shared .align 16 .b8 tile[32];\n\
                .reg .b64 %rd<2>; .reg .b32 %r<3>;\nld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, tile;\nmov.u32 %r2, 7;\n\
                st.shared.v4.u32 [tile], {%r2, %r2, %r2, %r2};\nst.shared.v4.u32 [tile+16], {%r2, %r2, %r2, %r2};\n\
                fence.proxy.async;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 32;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}\n";
    let program = |pe: &Pe<Sim>| {
        let data = pe.alloc_zeroed::<i32>(8)?;
        let (module, stream) = (pe.module(&Source::ptx("bulk.ptx", text))?, pe.stream()?);
        // SAFETY: the kernel takes one pointer.
        unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&data])? };
        pe.synchronize(&stream)?;
        let sum = pe.read(&data)?.iter().sum();
        pe.free(data)?;
        Ok(sum)
    };
    let config = Config { races: Races::Note, max_steps: Some(10_000), ..Config::pes(1) };
    let (outcomes, explored) = explore(config, Explore::All { limit: 100 }, program);
    assert!(explored.complete);
    assert_eq!(outcomes, BTreeSet::from(["[56]".to_string()]));
}
