//! What there is only so much of, and who is who: heaps, memory, teams, topologies, initialization.

use std::collections::BTreeSet;

use crate::common;
use onesided::backend::{Live, LiveKind};
use onesided::{
    Bootstrap, Capabilities, Cmp, Error, ErrorKind, InitMethod, InitStatus, Pe, Predefined, ReduceOp, Result, SignalOp,
    Support, Team, TeamConfig, TeamUniqueId, UniqueId,
};
use onesided_sim::{Config, Races, Sim, SimProcess, Simulation, VerdictKind};

use crate::common::{in_order, results};

/// The kind and message of a call that fails.
fn failure<T>(result: Result<T>) -> (ErrorKind, String) {
    let error = result.err().expect("the call fails");
    (error.kind(), error.message().to_string())
}

#[test]
fn an_exhausted_heap_fails_alike_on_all_pes_and_recovers() {
    let config = Config { heap: 4096, ..Config::pes(3) };
    let program = |pe: &Pe<Sim>| {
        let half = pe.alloc::<u64>(256)?;
        let failed = failure(pe.alloc::<u64>(512));
        pe.host().barrier_all()?; // nobody has diverged
        pe.free(half)?;
        let whole = pe.alloc::<u64>(512)?;
        pe.free(whole)?;
        Ok(failed)
    };
    let expected =
        "there is no room for 4096 bytes in the symmetric heap, whose largest free block has 2048 (Config::heap)";
    let expected = (ErrorKind::OutOfMemory, expected.to_string());
    assert_eq!(in_order(config.clone(), program), vec![expected.clone(); 3]);
    assert_eq!(Vec::from_iter(results(config, program).into_keys()), [vec![expected; 3]]);
}

#[test]
fn the_memory_of_all_pes_together_is_limited() {
    let config = Config { memory: 10_000, ..Config::pes(4) };
    let program = |pe: &Pe<Sim>| {
        let fits = pe.alloc::<u8>(2000)?;
        let failed = failure(pe.alloc::<u8>(600)); // 2400 bytes in all, of 2000 left
        pe.free(fits)?;
        let again = pe.alloc::<u8>(2500)?;
        pe.free(again)?;
        Ok(failed)
    };
    for (kind, message) in in_order(config, program) {
        assert_eq!(kind, ErrorKind::OutOfMemory);
        assert_eq!(
            message,
            "4 PEs x 600 bytes is more memory than the simulation may still take (2000 bytes; Config::memory)"
        );
    }
    let config = Config { memory: 2500, ..Config::pes(1) };
    let program = |pe: &Pe<Sim>| {
        let first = pe.alloc_external::<u8>(2000)?;
        let failed = failure(pe.alloc_external::<u8>(600)).0;
        pe.free_external(first)?;
        let second = pe.alloc_external::<u8>(2500)?;
        pe.free_external(second)?;
        Ok(failed)
    };
    assert_eq!(in_order(config, program), [ErrorKind::OutOfMemory]);
}

#[test]
fn fresh_memory_is_poisoned_and_zeroed_memory_is_zero_whatever_was_there() {
    let program = |pe: &Pe<Sim>| {
        let mut saw = Vec::new();
        for len in [3, 5000] {
            let fresh = pe.alloc::<u8>(len)?;
            saw.push(pe.read(&fresh)?.iter().all(|&byte| byte == 0xa5));
            pe.write(&fresh, &vec![7; len])?;
            pe.free(fresh)?;
            let zeroed = pe.alloc_zeroed::<u8>(len)?;
            saw.push(pe.read(&zeroed)?.iter().all(|&byte| byte == 0));
            pe.free(zeroed)?;
            let external = pe.alloc_external::<u8>(len)?;
            saw.push(pe.read(&external)?.iter().all(|&byte| byte == 0));
            pe.free_external(external)?;
        }
        Ok(saw)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    for _ in 0..2 {
        // the second time memory of the first run is used again
        let run = simulation.run(program).unwrap();
        assert_eq!(run.into_results().unwrap(), [[true; 6]; 2]);
    }
}

#[test]
fn registration_moves_content_in_and_out_of_the_heap() {
    let program = |pe: &Pe<Sim>| {
        let me = pe.my_pe() as u32;
        let external = pe.alloc_external::<u32>(2)?;
        pe.write(&external, &[me, 10 + me])?;
        let shared = pe.register_symmetric(external)?;
        pe.host().p(shared.at(1), 20 + me, 1 - pe.my_pe())?;
        let private = pe.unregister_symmetric(shared)?; // begins with a barrier
        let saw = pe.read(&private)?;
        pe.free_external(private)?;
        Ok(saw)
    };
    let expected = vec![vec![0, 21], vec![1, 20]];
    assert_eq!(in_order(Config::pes(2), program), expected);
    assert_eq!(Vec::from_iter(results(Config::pes(2), program).into_keys()), [expected]);
}

fn split(pe: &Pe<Sim>, size: usize) -> Result<Option<Team>> {
    pe.team_split_strided(pe.world(), 0, 1, size, TeamConfig::default())
}

#[test]
fn teams_run_out_alike_on_all_members_and_come_back() {
    let config = Config { max_teams: 9, ..Config::pes(4) }; // six predefined, three of one's own
    let program = |pe: &Pe<Sim>| {
        let first = split(pe, 4)?.expect("a team of all");
        let second = split(pe, 2)?;
        // two rows and two columns do not fit where one team does
        let failed = failure(pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default()));
        let third = split(pe, 1)?;
        let also_failed = failure(split(pe, 4)).0;
        pe.team_destroy(first)?;
        let fourth = split(pe, 3)?;
        for team in [second, third, fourth].into_iter().flatten() {
            pe.team_destroy(team)?;
        }
        Ok((failed, also_failed))
    };
    let message = "there are 9 teams already, the most there can be".to_string();
    let expected = ((ErrorKind::OutOfTeams, message), ErrorKind::OutOfTeams);
    assert_eq!(in_order(config, program), vec![expected; 4]);

    let config = Config { max_teams: 6, ..Config::pes(2) };
    let program = |pe: &Pe<Sim>| {
        let unique_id = Some(TeamUniqueId(1));
        Ok(failure(pe.team_init(TeamConfig { unique_id, ..TeamConfig::default() }, 2, pe.my_pe())).0)
    };
    assert_eq!(in_order(config, program), [ErrorKind::OutOfTeams; 2]);
    assert!(Config { max_teams: 5, ..Config::default() }.check().is_err());
}

/// Whoever enters a split first: it is refused where one of the new team's members has no room.
#[test]
fn a_split_needs_room_on_every_new_member_and_on_no_other_pe() {
    let config = Config { max_teams: 9, ..Config::pes(2) };
    for member in [0, 1] {
        let program = |pe: &Pe<Sim>| {
            let alone = || pe.team_split_strided(pe.world(), member, 1, 1, TeamConfig::default());
            let mut teams = vec![alone()?, alone()?, alone()?];
            let refused = failure(alone()).0;
            let both = failure(split(pe, 2)).0;
            // one that is given back makes room, also where the other PE is in the next split before that
            teams.pop().into_iter().flatten().try_for_each(|team| pe.team_destroy(team))?;
            teams.push(split(pe, 2)?);
            teams.into_iter().flatten().try_for_each(|team| pe.team_destroy(team))?;
            Ok((refused, both))
        };
        assert_eq!(in_order(config.clone(), program), [(ErrorKind::OutOfTeams, ErrorKind::OutOfTeams); 2], "{member}");
    }
}

/// PE 1 enters after it has made the last team that it can have.
#[test]
fn a_member_without_room_that_comes_late_ends_the_run() {
    let program = |pe: &Pe<Sim>| {
        let alone = pe.team_split_strided(pe.world(), 1, 1, 1, TeamConfig::default())?;
        if let Some(alone) = &alone {
            pe.team_split_strided(alone, 0, 1, 1, TeamConfig::default())?;
        }
        split(pe, 2)
    };
    let run = Simulation::new(Config { max_teams: 8, ..Config::pes(2) }).unwrap().run(program).unwrap();
    assert_eq!(run.verdict.kind.outcome(), "failed: out of teams");
    assert!(run.verdict.to_string().contains("PE 1: failed"), "{}", run.verdict);
}

#[test]
fn nobody_shares_memory_without_peer_access() {
    let mut config = Config::pes(2);
    config.capabilities.peer_access = Support::Missing("for the test");
    let sizes = in_order(config, |pe| {
        let size = |which| pe.team(which).map(|team| team.n_pes());
        Ok((size(Predefined::Shared), size(Predefined::Node)))
    });
    assert_eq!(sizes, [(Some(1), Some(2)); 2]);
}

#[test]
fn predefined_teams_of_two_nodes_with_two_gpus_of_two_pes_each() {
    let config = Config { nodes: 2, gpus: Some(4), ..Config::pes(8) };
    let members = in_order(config, |pe| {
        let of = |which| pe.team(which).map(|team: &Team| team.members().iter().collect::<Vec<_>>());
        Ok(Predefined::ALL.map(of))
    });
    let all: Vec<usize> = (0..8).collect();
    for (pe, teams) in members.into_iter().enumerate() {
        let node: Vec<usize> = if pe < 4 { (0..4).collect() } else { (4..8).collect() };
        let gpu = vec![pe / 2 * 2, pe / 2 * 2 + 1];
        let leaders = (pe % 2 == 0).then(|| vec![0, 2, 4, 6]);
        let expected =
            [Some(all.clone()), Some(node.clone()), Some(node), Some(vec![pe % 4, pe % 4 + 4]), Some(gpu), leaders];
        assert_eq!(teams, expected, "PE {pe}");
    }
}

#[test]
fn other_nodes_are_out_of_reach_of_loads_stores_and_multicast() {
    let reach = |config: Config| {
        in_order(config, |pe| {
            let x = pe.alloc_zeroed::<u32>(1)?;
            let peers: Vec<bool> = (0..4).map(|of| Ok(pe.peer(&x, of)?.is_some())).collect::<Result<_>>()?;
            let world = pe.multicast(pe.world(), &x)?.is_some();
            let node = pe.multicast(pe.team(Predefined::Node).expect("a node"), &x)?.is_some();
            pe.free(x)?;
            Ok((peers, world, node))
        })
    };
    let (one, two) = (Config::pes(4), Config { nodes: 2, ..Config::pes(4) });
    assert_eq!(reach(one.clone()), vec![(vec![true; 4], true, true); 4]);
    let (first, second) = (vec![true, true, false, false], vec![false, false, true, true]);
    let near = |peers: &Vec<bool>| (peers.clone(), false, true);
    assert_eq!(reach(two), [near(&first), near(&first), near(&second), near(&second)]);
    let everything = one.capabilities;
    let without = |capabilities| Config { capabilities, ..one.clone() };
    let no_multicast = Capabilities { multicast: Support::Missing("none here"), ..everything };
    assert_eq!(reach(without(no_multicast)), vec![(vec![true; 4], false, false); 4]);
    let no_access = Capabilities { peer_access: Support::Missing("none here"), ..everything };
    assert_eq!(reach(without(no_access)), vec![(vec![false; 4], false, false); 4]);
}

/// A program that uses every optional family, as far as it is told that they work.
fn uses_everything(pe: &Pe<Sim>) -> Result<()> {
    let can = pe.capabilities();
    let (words, stream) = (pe.alloc_zeroed::<u64>(2)?, pe.stream()?);
    if can.host_atomics.is_available() {
        pe.host().atomic_inc(words.at(0), 0)?;
    }
    if can.host_signals.is_available() {
        pe.host().signal_op(words.signal(1), 1, SignalOp::Set, pe.my_pe())?;
        pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
    }
    if can.stream_fence.is_available() {
        pe.on(&stream).fence()?;
        pe.synchronize(&stream)?;
    }
    if let Some(peer) = pe.peer(words.at(0), (pe.my_pe() + 1) % pe.n_pes())? {
        peer.read()?;
    }
    if let Some(all) = pe.multicast(pe.world(), words.at(0))? {
        all.write(&[1])?;
    }
    if can.registration.is_available() {
        let external = pe.alloc_external::<u64>(1)?;
        pe.free_external(match can.symmetric_registration.is_available() {
            true => pe.unregister_symmetric(pe.register_symmetric(external)?)?,
            false => external,
        })?;
    }
    pe.free(words)
}

#[test]
fn a_family_that_is_missing_is_refused_and_its_use_is_told() {
    let without = |family: usize| {
        let support = |of: usize| if of == family { Support::Missing("none here") } else { Support::Native };
        Capabilities {
            host_atomics: support(0),
            host_signals: support(1),
            stream_fence: support(2),
            peer_access: support(3),
            multicast: support(4),
            registration: support(5),
            symmetric_registration: support(6),
            kernels: support(7),
            kernel_atomics: support(8),
            kernel_extensions: support(9),
        }
    };
    let mut simulation = Simulation::new(Config { races: Races::Note, ..Config::pes(2) }).unwrap();
    let run = simulation.run(uses_everything).unwrap();
    let trace = simulation.reproduce(&run, uses_everything).unwrap().trace.unwrap();
    assert_eq!(trace.iter().find_map(|event| event.unsupported(&without(10))), None);

    let families = [
        "atomics of the host",
        "signals and waits of the host",
        "fences on a stream",
        "access to a peer's memory",
        "multicast",
        "memory from outside the heap",
        "symmetric registration",
    ];
    for (number, family) in families.into_iter().enumerate() {
        let lacks: BTreeSet<_> = trace.iter().filter_map(|event| event.unsupported(&without(number))).collect();
        assert_eq!(Vec::from_iter(lacks), [(family, "none here")]);

        // A program that asks goes on without it, and then nothing is told of it.
        let mut simulation =
            Simulation::new(Config { capabilities: without(number), races: Races::Note, ..Config::pes(2) }).unwrap();
        let run = simulation.run(uses_everything).unwrap();
        assert!(run.is_ok(), "{}", run.verdict);
        let trace = simulation.reproduce(&run, uses_everything).unwrap().trace.unwrap();
        assert_eq!(trace.iter().find_map(|event| event.unsupported(&without(number))), None);
    }
    // One that does not ask is refused.
    let config = Config { capabilities: without(0), ..Config::pes(1) };
    let run = Simulation::new(config).unwrap().run(|pe| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        pe.host().atomic_inc(&word, 0)
    });
    let error = run.unwrap().into_results().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, "none here"));
}

#[test]
fn team_init_makes_a_team_of_any_pes_in_any_order() {
    let program = |pe: &Pe<Sim>| {
        // PEs 3, 0 and 2, in this order; PE 1 does not take part
        let index = [Some(1), None, Some(2), Some(0)][pe.my_pe()];
        let Some(index) = index else { return Ok(None) };
        let config = TeamConfig { unique_id: Some(TeamUniqueId(77)), num_contexts: Some(2) };
        let team = pe.team_init(config, 3, index)?;
        let saw = (team.members().iter().collect::<Vec<_>>(), team.my_pe(), team.config() == config);
        let in_world = team.translate_pe(0, pe.world())?;
        pe.host().barrier(&team)?;
        pe.team_destroy(team)?;
        Ok(Some((saw, in_world)))
    };
    let member = |index| Some(((vec![3, 0, 2], index, true), Some(3)));
    assert_eq!(in_order(Config::pes(4), program), [member(1), None, member(2), member(0)]);
    assert_eq!(results(Config::pes(4), program).len(), 1);
}

#[test]
fn collectives_of_a_listed_team_go_by_its_order() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u32>(5)?;
        let config = TeamConfig { unique_id: Some(TeamUniqueId(4)), ..TeamConfig::default() };
        let team = pe.team_init(config, 3, 2 - pe.my_pe())?;
        pe.write(x.at(0), &[10 + pe.my_pe() as u32])?;
        pe.host().fcollect(&team, x.slice(1..4), x.at(0))?;
        pe.host().broadcast(&team, x.at(4), x.at(0), 0)?; // the root is PE 2
        pe.host().reduce(&team, x.at(0), x.at(0), ReduceOp::Max)?;
        let saw = pe.read(&x)?;
        pe.team_destroy(team)?;
        pe.free(x)?;
        Ok(saw)
    };
    assert_eq!(in_order(Config::pes(3), program), vec![vec![12, 12, 11, 10, 12]; 3]);
}

/// Runs a program of the life cycle.
fn life<T>(config: Config, program: impl Fn(&SimProcess) -> Result<T>) -> Vec<T> {
    Simulation::new(config).unwrap().run_process(program).unwrap().into_results().unwrap()
}

#[test]
fn a_unique_id_brings_the_pes_together() {
    let id = life(Config::pes(1), |process| process.unique_id())[0];
    assert_ne!(id, UniqueId::EMPTY);
    let ranks = life(Config::pes(3), |process| {
        let (rank, n_pes) = (process.rank(), process.n_ranks());
        let pe = process.init(InitMethod::UniqueId { id, rank, n_pes })?;
        let saw = (pe.my_pe(), pe.n_pes());
        pe.finalize()?;
        Ok(saw)
    });
    assert_eq!(ranks, [(0, 3), (1, 3), (2, 3)]);
    let ids = life(Config::pes(1), |process| Ok([process.unique_id()?, process.unique_id()?]));
    assert_ne!(ids[0][0], ids[0][1], "each is fresh");
}

#[test]
fn a_wrong_rank_number_of_pes_or_id_is_refused_and_can_be_tried_again() {
    let id = UniqueId([9; 128]);
    let refusals = life(Config::pes(2), |process| {
        let (rank, n_pes) = (process.rank(), process.n_ranks());
        let wrong_rank = failure(process.init(InitMethod::UniqueId { id, rank: 1 - rank, n_pes }));
        let wrong_size = failure(process.init(InitMethod::UniqueId { id, rank, n_pes: 3 }));
        let no_id = failure(process.init(InitMethod::UniqueId { id: UniqueId::EMPTY, rank, n_pes }));
        process.init(InitMethod::UniqueId { id, rank, n_pes })?.finalize()?;
        Ok([wrong_rank, wrong_size, no_id])
    });
    let invalid = |message: &str| (ErrorKind::InvalidArgument, message.to_string());
    let empty = invalid("the unique id is empty; it comes from the PE that made it");
    let size = |pe| invalid(&format!("rank {pe} of 3, but this is process {pe} of 2"));
    let rank = |pe| invalid(&format!("rank {} of 2, but this is process {pe} of 2", 1 - pe));
    assert_eq!(refusals, [[rank(0), size(0), empty.clone()], [rank(1), size(1), empty]]);
}

#[test]
fn a_second_init_is_refused_until_finalize_and_lives_are_apart() {
    let statuses = life(Config::pes(2), |process| {
        let mut saw = vec![process.init_status()];
        for method in [InitMethod::Launcher, InitMethod::Mpi, InitMethod::EmulatedMpi] {
            let pe = process.init(method)?;
            saw.push(process.init_status());
            assert_eq!(failure(process.init(InitMethod::Mpi)).0, ErrorKind::InvalidArgument);
            let x = pe.alloc_zeroed::<u8>(1)?;
            pe.host().barrier_all()?;
            pe.free(x)?;
            pe.finalize()?;
            saw.push(process.init_status());
        }
        Ok(saw)
    });
    let (out, within) = (InitStatus::NotInitialized, InitStatus::Initialized);
    assert_eq!(statuses, vec![vec![out, within, out, within, out, within, out]; 2]);

    let status = life(Config { gpus: Some(1), ..Config::pes(2) }, |process| {
        let pe = process.init(InitMethod::Launcher)?;
        let statuses = [process.init_status(), pe.init_status()];
        pe.finalize()?;
        Ok(statuses)
    });
    assert_eq!(status, [[InitStatus::FullMpg; 2]; 2]);
}

#[test]
fn a_leak_of_the_first_life_is_found_at_its_end() {
    let run = Simulation::new(Config::pes(2)).unwrap().run_process(|process| {
        let pe = process.init(InitMethod::Launcher)?;
        let kept = pe.alloc::<u16>(5)?;
        pe.finalize()?;
        process.init(InitMethod::Launcher)?.finalize()?;
        Ok(kept)
    });
    let VerdictKind::Leak { leaks } = run.unwrap().verdict.kind else { panic!("a leak") };
    let [(0, Live { what, bytes: 10, .. }), (1, _)] = &leaks[..] else { panic!("{leaks:?}") };
    assert!(matches!(what, LiveKind::Buffer(_)));
}

#[test]
fn clusters_that_do_not_divide_are_refused() {
    for (config, why) in [
        (Config::pes(0), "0 PEs"),
        (Config::pes(40_000), "40000 PEs"),
        (Config { nodes: 3, ..Config::pes(4) }, "4 PEs cannot be spread evenly over 3 nodes"),
        (Config { nodes: 0, ..Config::pes(4) }, "0 nodes"),
        (Config { gpus: Some(3), ..Config::pes(4) }, "4 PEs on 1 node cannot share 3 GPUs evenly"),
        (Config { gpus: Some(1), nodes: 2, ..Config::pes(4) }, "4 PEs on 2 nodes cannot share 1 GPU evenly"),
        (Config { pieces: 0, ..Config::default() }, "at least 1"),
        (Config { pieces: 65, ..Config::default() }, "at most 64"),
        (Config { heap: 0, ..Config::default() }, "at least 1"),
        (Config { max_steps: Some(0), ..Config::default() }, "at least 1"),
    ] {
        let error = Simulation::new(config).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn external_memory_has_slices_and_elements() {
    let found = in_order(Config::pes(2), |pe| {
        let external = pe.alloc_external::<u16>(8)?;
        pe.write(external.slice(2..4), &[5, 6])?;
        let mut found = pe.read(external.slice(1..).slice(..3))?;
        found.push(pe.read_one(external.at(3))?);

        let dst = pe.alloc_zeroed::<u16>(8)?;
        let registered = pe.register_local(external)?;
        pe.host().put(dst.slice(..2), registered.slice(2..=3), 1 - pe.my_pe())?;
        pe.host().barrier_all()?;
        pe.host().get(registered.at(7), dst.at(1), pe.my_pe())?;
        found.push(pe.read_one(registered.at(7))?);
        found.push(registered.at(7).as_bytes().len() as u16);
        pe.free_external(pe.unregister_local(registered)?)?;
        pe.free(dst)?;
        Ok(found)
    });
    assert_eq!(found, [[0, 5, 6, 6, 6, 2], [0, 5, 6, 6, 6, 2]]);
}

/// PE 0 has an arena. PE 1 frees by itself what it allocated: the same order, or another.
fn beside_an_arena(last_first: bool) -> VerdictKind {
    let run = Simulation::new(Config::pes(2)).unwrap().run(|pe| {
        if pe.my_pe() == 0 {
            return pe.arena(|arena| arena.alloc::<u8>(1).and(arena.alloc_zeroed::<u64>(2)).map(drop));
        }
        let (first, last) = (pe.alloc::<u8>(1)?, pe.alloc_zeroed::<u64>(2)?);
        if last_first {
            pe.free(last)?;
            pe.free(first)
        } else {
            pe.free(first)?;
            pe.free(last)
        }
    });
    run.unwrap().verdict.kind
}

#[test]
fn an_arena_frees_the_last_allocation_first() {
    assert!(matches!(beside_an_arena(true), VerdictKind::Finished));
    assert!(matches!(beside_an_arena(false), VerdictKind::Mismatch { .. }));
}

#[test]
fn an_arena_whose_body_fails_frees_nothing() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(|pe| {
        let failed = pe.arena(|arena| {
            arena.alloc::<u16>(3)?;
            pe.arena(|inner| inner.alloc::<u8>(1).map(drop))?; // freed: its own body succeeds
            Err::<(), _>(Error::wrong_result("no"))
        });
        assert_eq!(failed.unwrap_err().message(), "no");
        Ok(())
    });
    let VerdictKind::Leak { leaks } = run.unwrap().verdict.kind else { panic!("a leak") };
    let [(0, Live { bytes: 6, at, .. })] = &leaks[..] else { panic!("{leaks:?}") };
    assert!(at.file().ends_with("resources.rs"), "the line of the allocation: {at}");
}

/// A blocking put has read its source when it returns, whatever of it is still on its way.
#[test]
fn a_source_may_be_unregistered_once_a_blocking_put_has_returned() {
    let endings = |nbi: bool| {
        common::endings(Config::pes(2), |pe| {
            let dst = pe.alloc_zeroed::<u64>(2)?;
            let src = pe.register_local(pe.alloc_external::<u64>(2)?)?;
            if pe.my_pe() == 0 {
                match nbi {
                    true => pe.host().put_nbi(&dst, &src, 1)?,
                    false => pe.host().put(&dst, &src, 1)?,
                }
            }
            pe.free_external(pe.unregister_local(src)?)?;
            pe.free(dst)
        })
    };
    assert_eq!(Vec::from_iter(endings(false).into_keys()), ["finished"]);
    assert_eq!(Vec::from_iter(endings(true).into_keys()), ["finished", "unregister_local of memory in use"]);
}

/// It is given back by name, too.
#[test]
fn memory_outside_the_heap_that_is_not_freed_is_a_leak() {
    let leaks = |registered: bool| {
        let run = Simulation::new(Config::pes(2)).unwrap().run(|pe| {
            let words = pe.alloc_external::<u64>(4)?;
            if registered {
                drop(pe.unregister_local(pe.register_local(words)?)?);
            }
            Ok(())
        });
        run.unwrap().verdict
    };
    for registered in [false, true] {
        let verdict = leaks(registered);
        assert_eq!(verdict.kind.outcome(), "leak: buffers");
        assert!(verdict.to_string().contains(" outside the heap, of 32 bytes"), "{verdict}");
    }
}

/// A registration takes the place of what is registered, and gives it back.
#[test]
fn registered_memory_keeps_its_content_and_its_share_of_the_memory() {
    let config = Config { memory: 1 << 20, ..Config::pes(2) };
    let values = in_order(config, |pe| {
        let external = pe.alloc_external::<u8>(400 << 10)?;
        pe.write(external.at(7), &[3])?;
        let shared = pe.register_symmetric(external)?;
        pe.host().barrier_all()?;
        let failed = failure(pe.alloc_external::<u8>(400 << 10)).0;
        let private = pe.unregister_symmetric(shared)?;
        let kept = pe.read_one(private.at(7))?;
        pe.free_external(private)?;
        Ok((failed, kept))
    });
    assert_eq!(values, [(ErrorKind::OutOfMemory, 3); 2]);
}
