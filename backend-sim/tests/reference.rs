//! The simulator against an independent model: the same outcomes on random programs.
//!
//! `reference/model.rs` knows no sleep sets and no eager steps. Equal sets of outcomes on every program mean that the
//! simulator's search leaves out nothing but what is equivalent, and adds nothing.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp, Stream, SymmetricBuf};
use onesided_sim::{Config, Explore, Profile, Run, Sim, Simulation, VerdictKind};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

#[path = "reference/model.rs"]
mod model;

use model::{Agent, Collective, Op, Outcome, Program, Update};

/// Programs with more schedules, or more states of the reference, are left out; how many is checked in the end.
const SCHEDULES: u64 = 20_000;
const STATES: usize = 30_000;

/// Runs what a PE's host and streams do, then completes everything. PE 0 returns what its host saw and then all PEs'
/// memory, the others what their host saw.
fn perform(program: &Program, pe: &Pe<Sim>) -> Result<Vec<Vec<u8>>> {
    let me = pe.my_pe();
    let buf = pe.alloc_zeroed::<u64>(program.words)?;
    let work: Vec<&Agent> = program.agents[program.pes..].iter().filter(|agent| agent.pe == me).collect();
    let streams: Vec<Stream<Sim>> = work.iter().map(|_| pe.stream()).collect::<Result<_>>()?;
    let mut saw = Vec::new();
    for (agent, stream) in work.into_iter().zip(&streams) {
        agent.ops.iter().try_for_each(|op| issue(op, pe, Some(stream), &buf, &mut saw))?;
    }
    program.agents[me].ops.iter().try_for_each(|op| issue(op, pe, None, &buf, &mut saw))?;
    // first everything has to be issued: a quiet claims what other streams have in flight
    streams.iter().try_for_each(|stream| pe.synchronize(stream))?;
    for stream in &streams {
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
    }
    pe.host().barrier_all()?;
    let mut result = vec![saw];
    if me == 0 {
        for of in 0..program.pes {
            let memory = pe.peer(&buf, of)?.expect("all PEs are on one node").read()?;
            result.push(memory.into_iter().map(|word| word as u8).collect());
        }
    }
    pe.free(buf)?;
    Ok(result)
}

fn issue(
    op: &Op,
    pe: &Pe<Sim>,
    stream: Option<&Stream<Sim>>,
    buf: &SymmetricBuf<u64>,
    saw: &mut Vec<u8>,
) -> Result<()> {
    let host = pe.host();
    let on = stream.map(|stream| pe.on(stream));
    let on = on.as_ref().unwrap_or(&host);
    let range = |start: usize, len: usize| buf.slice(start..start + len);
    let how = |update: Update| if update.add { SignalOp::Add } else { SignalOp::Set };
    match *op {
        Op::P { to, dst, value } => on.p(buf.at(dst), u64::from(value), to),
        Op::PeerStore { to, dst, value } => {
            pe.peer(buf.at(dst), to)?.expect("all PEs are on one node").write(&[u64::from(value)])
        }
        Op::Put { to, dst, src, len, nbi, signal: None } => match nbi {
            false => on.put(range(dst, len), range(src, len), to),
            true => on.put_nbi(range(dst, len), range(src, len), to),
        },
        Op::Put { to, dst, src, len, nbi, signal: Some(update) } => {
            let (word, value) = (buf.signal(update.word), u64::from(update.value));
            match nbi {
                false => on.put_signal(range(dst, len), range(src, len), word, value, how(update), to),
                true => on.put_signal_nbi(range(dst, len), range(src, len), word, value, how(update), to),
            }
        }
        Op::Get { from, dst, src, len, nbi } => match nbi {
            false => on.get(range(dst, len), range(src, len), from),
            true => on.get_nbi(range(dst, len), range(src, len), from),
        },
        Op::G { from, src } => host.g(buf.at(src), from).map(|value| saw.push(value as u8)),
        Op::Add { to, dst, value, fetch: false } => host.atomic_add(buf.at(dst), u64::from(value), to),
        Op::Add { to, dst, value, fetch: true } => {
            host.atomic_fetch_add(buf.at(dst), u64::from(value), to).map(|old| saw.push(old as u8))
        }
        Op::Signal { to, update } => on.signal_op(buf.signal(update.word), u64::from(update.value), how(update), to),
        Op::Read { src, len } => pe.read(range(src, len)).map(|words| saw.extend(words.iter().map(|&word| word as u8))),
        Op::Write { dst, value } => on.write(buf.at(dst), &[u64::from(value)]),
        Op::Fence => on.fence(),
        Op::Quiet => on.quiet(),
        Op::Flush => on.flush(),
        Op::Wait { word } => on.wait_until(buf.at(word), Cmp::Ge, 1),
        Op::Enter(Collective::Sync) => on.sync_all(),
        Op::Enter(Collective::Barrier) => on.barrier_all(),
        Op::Enter(Collective::Broadcast { root, dst, src, len }) => {
            on.broadcast(pe.world(), range(dst, len), range(src, len), root)
        }
    }
}

/// A run's outcome in the reference's order: what every agent saw (streams see nothing), then all memory.
fn outcome(program: &Program, run: &Run<Vec<Vec<u8>>>) -> Outcome {
    match run.verdict.kind {
        VerdictKind::Finished => {}
        VerdictKind::Deadlock => return None,
        _ => panic!("{}", run.verdict),
    }
    let mut results = run.results.iter().map(|result| result.as_ref().expect("every PE returned"));
    let first = results.next().expect("there is a PE 0");
    let mut outcome = vec![first[0].clone()];
    outcome.extend(results.map(|result| result[0].clone()));
    outcome.resize(program.agents.len(), Vec::new());
    outcome.extend_from_slice(&first[1..]);
    Some(outcome)
}

/// The outcomes of a program, as far as `how` visits it; and whether that was all of them.
fn simulated(program: &Program, profile: Profile, how: Explore) -> (BTreeSet<Outcome>, bool) {
    let config = Config { profile, ..Config::pes(program.pes) };
    let mut seen = BTreeSet::new();
    let explored = Simulation::new(config).unwrap().explore(
        how,
        |pe| perform(program, pe),
        |run| {
            seen.insert(outcome(program, run));
            ControlFlow::Continue(())
        },
    );
    (seen, explored.unwrap().complete)
}

/// The operations of hosts; those that return something exist on the host only.
fn op(pes: usize, words: usize, on_stream: bool) -> impl Strategy<Value = Op> {
    let (pe, word) = (move || 0..pes, move || 0..words);
    // a zero stays: it may take away what a wait waits for
    let value = || prop_oneof![1 => Just(0), 4 => Just(1)];
    let update = move || (word(), any::<bool>()).prop_map(|(word, add)| Update { word, value: 0, add });
    // a range of one or two words, and a place for another such range
    let range =
        move || (word(), word(), 1usize..=2).prop_map(move |(a, b, len)| (a.min(words - len), b.min(words - len), len));
    let put = (pe(), range(), any::<bool>(), prop::option::weighted(0.3, update())).prop_map(
        |(to, (dst, src, len), nbi, signal)| {
            let signal = signal.filter(|update| !(dst..dst + len).contains(&update.word));
            Op::Put { to, dst, src, len, nbi, signal }
        },
    );
    let get =
        (pe(), range(), any::<bool>()).prop_map(|(from, (dst, src, len), nbi)| Op::Get { from, dst, src, len, nbi });
    let everywhere = prop_oneof![
        4 => (pe(), word(), value()).prop_map(|(to, dst, value)| Op::P { to, dst, value }),
        4 => put,
        2 => get,
        2 => (pe(), update()).prop_map(|(to, update)| Op::Signal { to, update }),
        2 => (word(), value()).prop_map(|(dst, value)| Op::Write { dst, value }),
        3 => Just(Op::Fence),
        2 => Just(Op::Quiet),
        1 => Just(Op::Flush),
        2 => word().prop_map(|word| Op::Wait { word }),
    ];
    if on_stream {
        return everywhere.boxed();
    }
    let on_host = prop_oneof![
        2 => (pe(), word()).prop_map(|(to, dst)| Op::PeerStore { to, dst, value: 0 }),
        3 => (pe(), word()).prop_map(|(from, src)| Op::G { from, src }),
        3 => (pe(), word(), any::<bool>()).prop_map(|(to, dst, fetch)| Op::Add { to, dst, value: 0, fetch }),
        5 => range().prop_map(|(_, src, len)| Op::Read { src, len }),
    ];
    prop_oneof![3 => everywhere, 2 => on_host].boxed()
}

/// Gives every operation that does not store a zero a value of its own. Sums of all stay below 256.
fn number(op: &mut Op, n: u8) {
    match op {
        Op::P { value, .. } | Op::Write { value, .. } => *value *= n,
        Op::PeerStore { value, .. } => *value = n,
        Op::Add { value, .. } => *value = 8 * n,
        Op::Signal { update, .. } | Op::Put { signal: Some(update), .. } => {
            update.value = if update.add { 8 * n } else { n }
        }
        _ => {}
    }
}

/// Programs of hosts and `streams` streams, with at most `ops` operations and `collectives` collectives in all.
fn programs(streams: usize, collectives: usize, ops: usize) -> impl Strategy<Value = Program> {
    // most streams are PE 0's, so that they share its scope
    let of = prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0usize..3], streams);
    (2usize..=3, 2usize..=3, of).prop_flat_map(move |(pes, words, of)| {
        let agents = pes + of.len();
        let action = (0..agents).prop_flat_map(move |agent| (Just(agent), op(pes, words, agent >= pes)));
        let entering = (collective(pes, words), prop::collection::vec(any::<prop::sample::Index>(), pes));
        let parts = (prop::collection::vec(action, 1..=ops), prop::collection::vec(entering, collectives));
        parts.prop_map(move |(actions, entered)| {
            let mut list: Vec<Agent> = (0..pes).map(|pe| Agent { pe, ops: Vec::new() }).collect();
            list.extend(of.iter().map(|pe| Agent { pe: pe % pes, ops: Vec::new() }));
            for (n, (agent, mut op)) in actions.into_iter().enumerate() {
                number(&mut op, n as u8 + 1);
                list[agent].ops.push(op);
            }
            let mut earliest = vec![0; pes];
            for (collective, places) in entered {
                for (pe, place) in places.into_iter().enumerate() {
                    let ops = &mut list[pe].ops;
                    let place = earliest[pe] + place.index(ops.len() + 1 - earliest[pe]);
                    ops.insert(place, Op::Enter(collective));
                    earliest[pe] = place + 1;
                }
            }
            Program { pes, words, agents: list }
        })
    })
}

fn collective(pes: usize, words: usize) -> impl Strategy<Value = Collective> {
    let broadcast = (0..pes, 0..words, 1..words).prop_map(move |(root, dst, shift)| Collective::Broadcast {
        root,
        dst,
        src: (dst + shift) % words,
        len: 1,
    });
    prop_oneof![1 => Just(Collective::Sync), 1 => Just(Collective::Barrier), 3 => broadcast]
}

/// Compares `cases` random programs in every way, and says how many were too large to compare.
fn compare(programs: impl Strategy<Value = Program>, cases: u32) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x6f73_696d),
        ..ProptestConfig::default()
    };
    let (compared, branching) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&programs, |program| {
        let Some(allowed) = model::outcomes(&program, STATES) else { return Ok(()) };
        let (seen, complete) = simulated(&program, Profile::Spec, Explore::All { limit: SCHEDULES });
        if complete {
            prop_assert_eq!(&seen, &allowed, "all schedules (left) against the reference (right)");
            compared.set(compared.get() + 1);
            branching.set(branching.get() + u32::from(allowed.len() > 1));
        }
        prop_assert!(seen.is_subset(&allowed), "not allowed: {:?}", seen.difference(&allowed));
        let (random, _) = simulated(&program, Profile::Spec, Explore::Random { schedules: 20, seed: 1 });
        prop_assert!(random.is_subset(&allowed), "at random: {:?}", random.difference(&allowed));
        let (nvlink, _) = simulated(&program, Profile::Nvlink, Explore::All { limit: 100 });
        prop_assert!(nvlink.is_subset(&allowed), "nvlink: {:?}", nvlink.difference(&allowed));
        for profile in Profile::ALL {
            let config = Config { profile, ..Config::pes(program.pes) };
            let run = Simulation::new(config).unwrap().run(|pe| perform(&program, pe)).unwrap();
            prop_assert!(allowed.contains(&outcome(&program, &run)), "in order under {profile}: {:?}", run.results);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (compared, branching) = (compared.get(), branching.get());
    eprintln!("{compared} of {cases} programs compared, {branching} with more than one outcome");
    assert!(compared >= cases * 9 / 10, "{compared} of {cases} programs were small enough to be compared");
    assert!(branching >= cases / 5, "{branching} of {cases} programs have more than one outcome");
}

#[test]
fn hosts_have_exactly_the_outcomes_of_the_reference() {
    compare(programs(0, 0, 7), 800);
}

#[test]
fn hosts_and_streams_have_exactly_the_outcomes_of_the_reference() {
    compare(programs(3, 0, 6), 400);
}

#[test]
fn collectives_have_exactly_the_outcomes_of_the_reference() {
    compare(programs(0, 2, 5), 200);
}
