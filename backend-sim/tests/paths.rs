//! Two fabrics: what a PE of another path sees, and which races that makes.
//!
//! PEs 0 and 1 are a node, PEs 2 and 3 another. The random programs have no model of their own. They are held to what must be true of
//! any: a mixed fabric shows all that `spec` shows, and nothing else where no run has a race.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::random;
use onesided::{Cmp, Pe, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Explore, MissingEdge, Profile, Races, Sim, Simulation};
use proptest::prelude::*;
use proptest::sample::select;

/// One call of a PE. Words 0 and 1 are data, words 2 and 3 signals.
#[derive(Clone, Copy, Debug)]
enum Call {
    P { to: usize, word: usize, value: u64 },
    Store { to: usize, word: usize, value: u64 },
    Add { to: usize, word: usize, value: u64 },
    Signal { to: usize, word: usize },
    PutSignal { to: usize, word: usize },
    Wait { word: usize },
    G { from: usize, word: usize },
    Fence,
    Quiet,
    Barrier,
}
use Call::*;

const PES: usize = 4;

type Program = [Vec<Call>; PES];

fn config(profile: Profile, races: Races) -> Config {
    Config { nodes: 2, profile, races, pieces: 1, ..Config::pes(PES) }
}

/// What runs of a program are told of its races.
#[derive(Clone, Copy, PartialEq)]
enum Meant {
    Nothing,
    /// Each read of another PE may race.
    Reads,
}

/// Makes a PE's calls. What it has read is the result.
fn perform(program: &Program, meant: Meant, pe: &Pe<Sim>) -> Result<Vec<u64>> {
    let buf: SymmetricBuf<u64> = pe.alloc_zeroed(5)?;
    let source = buf.at(4);
    pe.write(source, &[7])?;
    let mut saw = Vec::new();
    for call in &program[pe.my_pe()] {
        match *call {
            P { to, word, value } => pe.host().p(buf.at(word), value, to)?,
            Store { to, word, value } => match pe.peer(buf.at(word), to)? {
                Some(peer) => peer.write(&[value])?,
                None => pe.host().p(buf.at(word), value, to)?,
            },
            Add { to, word, value } => pe.host().atomic_add(buf.at(word), value, to)?,
            Signal { to, word } => pe.host().signal_op(buf.signal(word), 1, SignalOp::Set, to)?,
            PutSignal { to, word } => {
                pe.host().put_signal(buf.at(0), source, buf.signal(word), 1, SignalOp::Set, to)?;
            }
            Wait { word } => drop(pe.host().signal_wait_until(buf.signal(word), Cmp::Ge, 1)?),
            G { from, word } => saw.push(match meant {
                Meant::Nothing => pe.host().g(buf.at(word), from)?,
                Meant::Reads => pe.intended_race("a look", |pe| pe.host().g(buf.at(word), from))?,
            }),
            Fence => pe.host().fence()?,
            Quiet => pe.host().quiet()?,
            Barrier => pe.host().barrier_all()?,
        }
    }
    pe.free(buf)?;
    Ok(saw)
}

/// What was seen of a program, and the first race in words.
struct Seen {
    outcomes: BTreeSet<String>,
    race: Option<String>,
    runs: u64,
    complete: bool,
}

fn seen(program: &Program, profile: Profile, how: Explore, races: Races) -> Seen {
    seen_with(Meant::Nothing, program, profile, how, races)
}

fn seen_with(meant: Meant, program: &Program, profile: Profile, how: Explore, races: Races) -> Seen {
    let mut seen = Seen { outcomes: BTreeSet::new(), race: None, runs: 0, complete: false };
    let mut simulation = Simulation::new(config(profile, races)).unwrap();
    let explored = simulation.explore(
        how,
        |pe| perform(program, meant, pe),
        |run| {
            let ended =
                if run.verdict.kind.outcome() == "race" { "finished".into() } else { run.verdict.kind.outcome() };
            seen.outcomes.insert(format!("{ended} {:?}", run.results));
            if seen.race.is_none() {
                seen.race = run.verdict.races.first().map(|race| format!("{}: {race}", run.schedule));
            }
            ControlFlow::Continue(())
        },
    );
    let explored = explored.unwrap();
    assert_eq!(explored.redundant, 0, "{program:?}");
    Seen { runs: explored.schedules, complete: explored.complete, ..seen }
}

const LIMIT: u64 = 3_000;

/// What must be true of every program; `Ok(true)` if it was small enough, and a path made a difference.
fn check(program: &Program) -> std::result::Result<Option<bool>, String> {
    let all = Explore::All { limit: LIMIT };
    let [spec, mixed] = [Profile::Spec, Profile::MixedFabric].map(|profile| seen(program, profile, all, Races::Note));
    if !spec.complete || !mixed.complete {
        return Ok(None);
    }
    if let Some(less) = spec.outcomes.difference(&mixed.outcomes).next() {
        return Err(format!("spec shows {less}, which a mixed fabric does not"));
    }
    if let (Some(race), None) = (&spec.race, &mixed.race) {
        return Err(format!("a race under spec alone: {race}"));
    }
    if mixed.race.is_none() && spec.outcomes != mixed.outcomes {
        let more = Vec::from_iter(mixed.outcomes.difference(&spec.outcomes));
        return Err(format!("no race, and a mixed fabric shows {more:?} too"));
    }
    let random = seen(program, Profile::MixedFabric, Explore::random(60, 1), Races::Note);
    if let Some(more) = random.outcomes.difference(&mixed.outcomes).next() {
        return Err(format!("{more} is an outcome of a random schedule, and of none of all {}", mixed.runs));
    }
    let proof = seen(program, Profile::MixedFabric, all, Races::Find);
    if proof.race.is_some() != mixed.race.is_some() {
        return Err(format!("a race in a proof: {:?}; in all schedules: {:?}", proof.race, mixed.race));
    }
    if mixed.race.is_none() && proof.outcomes != mixed.outcomes {
        return Err("a proof without a race has other outcomes than all schedules".to_string());
    }
    let meant = seen_with(Meant::Reads, program, Profile::MixedFabric, all, Races::Find);
    if meant.race.is_none() && meant.complete && meant.outcomes != mixed.outcomes {
        let less = Vec::from_iter(mixed.outcomes.difference(&meant.outcomes));
        return Err(format!("a proof in which reads may race does not show {less:?}"));
    }
    Ok(Some(spec.outcomes != mixed.outcomes || spec.race.is_some() != mixed.race.is_some()))
}

/// Any calls of any PEs.
fn calls(most: usize) -> impl Strategy<Value = Vec<(usize, Call)>> {
    let pe = || 0..PES;
    let data = || 0..2usize;
    let flag = || 2..4usize;
    let call = prop_oneof![
        4 => (select(vec![1usize, 2]), data(), 1..4u64).prop_map(|(to, word, value)| P { to, word, value }),
        1 => (select(vec![1usize, 2]), data(), 1..4u64).prop_map(|(to, word, value)| Store { to, word, value }),
        3 => (select(vec![1usize, 2]), data(), 1..4u64).prop_map(|(to, word, value)| Add { to, word, value: value << 4 }),
        5 => (pe(), flag()).prop_map(|(to, word)| Signal { to, word }),
        2 => (pe(), flag()).prop_map(|(to, word)| PutSignal { to, word }),
        5 => flag().prop_map(|word| Wait { word }),
        5 => (select(vec![1usize, 2]), data()).prop_map(|(from, word)| G { from, word }),
        1 => Just(Fence),
        3 => Just(Quiet),
    ];
    prop::collection::vec((pe(), call), 0..most)
}

/// A message: a PE writes to another and tells a third, who tells a fourth perhaps, who looks. All of them can be any PE.
fn message() -> impl Strategy<Value = Program> {
    let pe = || 0..PES;
    let order = select(vec![None, Some(Fence), Some(Quiet), Some(Quiet), Some(Barrier)]);
    let by_put_signal = prop::bool::weighted(0.2);
    (pe(), pe(), pe(), prop::option::of(pe()), order, by_put_signal).prop_map(
        |(from, home, told, last, order, whole)| {
            let mut program = Program::default();
            let data = P { to: home, word: 0, value: 5 };
            match (whole && told == home, order) {
                (true, _) => program[from].push(PutSignal { to: told, word: 2 }),
                (false, Some(Barrier)) => {
                    program[from].push(data);
                    program.iter_mut().for_each(|calls| calls.push(Barrier));
                    program[from].push(Signal { to: told, word: 2 });
                }
                (false, order) => {
                    program[from].extend([data].into_iter().chain(order).chain([Signal { to: told, word: 2 }]))
                }
            }
            program[told].push(Wait { word: 2 });
            let reader = last.unwrap_or(told);
            if last.is_some() {
                program[told].push(Signal { to: reader, word: 3 });
                program[reader].push(Wait { word: 3 });
            }
            program[reader].push(G { from: home, word: 0 });
            program
        },
    )
}

/// Messages with a few more calls anywhere, and any calls.
fn programs() -> impl Strategy<Value = Program> {
    let disturbed = (message(), prop::collection::vec((0..6usize, calls(2)), 0..3)).prop_map(|(mut program, more)| {
        for (at, (pe, call)) in more.into_iter().flat_map(|(at, calls)| calls.into_iter().map(move |call| (at, call))) {
            let at = at.min(program[pe].len());
            program[pe].insert(at, call);
        }
        program
    });
    let any = (calls(6), prop::option::of(calls(5)), 0..2usize).prop_map(|(first, second, barriers)| {
        let mut program = Program::default();
        first.into_iter().for_each(|(pe, call)| program[pe].push(call));
        for _ in 0..if second.is_some() { barriers + 1 } else { 0 } {
            program.iter_mut().for_each(|calls| calls.push(Barrier));
        }
        second.into_iter().flatten().for_each(|(pe, call)| program[pe].push(call));
        program
    });
    prop_oneof![3 => disturbed, 1 => any]
}

#[test]
fn a_mixed_fabric_shows_more_only_where_there_is_a_race() {
    let (compared, different) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let cases = random::check_all(programs(), 1_000, 0x7061_7468, |program| {
        if let Some(makes_a_difference) = check(&program).map_err(TestCaseError::fail)? {
            compared.set(compared.get() + 1);
            different.set(different.get() + u32::from(makes_a_difference));
        }
        Ok(())
    });
    eprintln!("{} of {cases} compared, {} differ", compared.get(), different.get());
    assert!(compared.get() > cases * 8 / 10, "only {} of {cases} were small enough", compared.get());
    assert!(different.get() > cases / 20, "the path makes a difference in {} of {cases} only", different.get());
}

/// What PE 3 sees of PE 2's word, which PE 0 has written, and whether there is a race.
fn third(profile: Profile, program: Program) -> (Vec<String>, Option<String>) {
    let all = Explore::All { limit: 100_000 };
    let seen = seen(&program, profile, all, Races::Note);
    assert!(seen.complete);
    let results =
        |outcome: &String| outcome.split("Some(").last().expect("four results").trim_end_matches(")]").to_string();
    (seen.outcomes.iter().map(results).collect(), seen.race)
}

/// PE 0 of the other node writes to PE 2, and PE 3, beside PE 2, reads there.
fn told_by(teller: impl Fn() -> Program) -> [(Vec<String>, bool); 2] {
    [Profile::Spec, Profile::MixedFabric].map(|profile| {
        let (seen, race) = third(profile, teller());
        (seen, race.is_some())
    })
}

const DATA: Call = P { to: 2, word: 0, value: 5 };
const LOOK: Call = G { from: 2, word: 0 };

fn is(seen: &[&str], race: bool) -> (Vec<String>, bool) {
    (seen.iter().map(ToString::to_string).collect(), race)
}

#[test]
fn a_complete_put_is_promised_to_its_destination_only() {
    let by_the_writer = || {
        let reader = vec![Wait { word: 3 }, LOOK];
        [vec![DATA, Quiet, Signal { to: 3, word: 3 }], vec![], vec![], reader]
    };
    assert_eq!(told_by(by_the_writer), [is(&["[5]"], false), is(&["[0]", "[5]"], true)]);
    let by_the_destination = || {
        let destination = vec![Wait { word: 2 }, Signal { to: 3, word: 3 }];
        [vec![DATA, Fence, Signal { to: 2, word: 2 }], vec![], destination, vec![Wait { word: 3 }, LOOK]]
    };
    assert_eq!(told_by(by_the_destination), [is(&["[5]"], false), is(&["[5]"], false)]);
    // a fourth PE can hand it on
    let through_another = || {
        let destination = vec![Wait { word: 2 }, Signal { to: 1, word: 2 }];
        let another = vec![Wait { word: 2 }, Signal { to: 3, word: 3 }];
        [vec![DATA, Fence, Signal { to: 2, word: 2 }], another, destination, vec![Wait { word: 3 }, LOOK]]
    };
    assert_eq!(told_by(through_another), [is(&["[5]"], false), is(&["[5]"], false)]);
}

#[test]
fn a_barrier_promises_it_to_the_destination_and_another_one_to_all() {
    let barriers = |n: usize| {
        let all = vec![Barrier; n];
        [[&[DATA], &all[..]].concat(), all.clone(), all.clone(), [&all[..], &[LOOK]].concat()]
    };
    assert_eq!(told_by(|| barriers(1)), [is(&["[5]"], false), is(&["[0]", "[5]"], true)]);
    assert_eq!(told_by(|| barriers(2)), [is(&["[5]"], false), is(&["[5]"], false)]);
}

#[test]
fn on_the_same_path_everybody_sees_it() {
    // PE 1 of the writer's node reads over the network too; PE 3 writes where PE 0 reads over NVLink
    let far = || [vec![DATA, Quiet, Signal { to: 1, word: 3 }], vec![Wait { word: 3 }, LOOK], vec![], vec![]];
    let seen = |program: Program| third_of(Profile::MixedFabric, &program);
    assert_eq!(seen(far()), (1, false));
    let near = [vec![], vec![], vec![DATA, Quiet, Signal { to: 3, word: 3 }], vec![Wait { word: 3 }, LOOK]];
    assert_eq!(seen(near), (1, false));
    let own = [vec![DATA, Quiet, LOOK], vec![], vec![], vec![]];
    assert_eq!(seen(own), (1, false));
    let crossed = [vec![Wait { word: 3 }, LOOK], vec![], vec![], vec![DATA, Quiet, Signal { to: 0, word: 3 }]];
    assert_eq!(seen(crossed), (2, true));
}

/// The number of outcomes, and whether there is a race.
fn third_of(profile: Profile, program: &Program) -> (usize, bool) {
    let seen = seen(program, profile, Explore::All { limit: 100_000 }, Races::Note);
    (seen.outcomes.len(), seen.race.is_some())
}

#[test]
fn the_missing_edge_leads_through_the_destination() {
    let program = [vec![DATA, Quiet, Signal { to: 3, word: 3 }], vec![], vec![], vec![Wait { word: 3 }, LOOK]];
    let mut simulation = Simulation::new(config(Profile::MixedFabric, Races::Find)).unwrap();
    let run = simulation.run(|pe| perform(&program, Meant::Nothing, pe)).unwrap();
    let [race] = &run.verdict.races[..] else { panic!("{}", run.verdict) };
    assert!(matches!(race.missing, MissingEdge::Through { pe: 2, .. }), "{race}");
    let said = race.missing.to_string();
    assert!(
        said.starts_with("a barrier, or a signal of PE 2, behind what tells PE 2 of the first, between "),
        "{said}"
    );
}

/// Everybody sends to the next PE, several times. Then PE 3 looks at what PE 0 has written to PE 2, where `looks` says so.
fn ring(pe: &Pe<Sim>, looks: bool) -> Result<u64> {
    const ROUNDS: usize = 3;
    let (me, next) = (pe.my_pe(), (pe.my_pe() + 1) % PES);
    let slots = pe.alloc_zeroed::<u64>(ROUNDS + 1)?;
    let flags = pe.alloc_zeroed::<u64>(ROUNDS)?;
    let hint = pe.alloc_zeroed::<u64>(1)?;
    if me == 0 {
        pe.host().p(&hint, 5, 2)?;
    }
    for round in 0..ROUNDS {
        let (from, to) = (slots.at(round), slots.at(round + 1));
        pe.host().put_signal(to, from, flags.signal(round), 1, SignalOp::Set, next)?;
        pe.host().signal_wait_until(flags.signal(round), Cmp::Eq, 1)?;
    }
    let look = |pe: &Pe<Sim>| pe.host().g(&hint, 2);
    let saw = if looks && me == 3 { pe.intended_race("a hint", look)? } else { 0 };
    pe.free(hint)?;
    pe.free(flags)?;
    pe.free(slots)?;
    Ok(saw)
}

/// The classes of a proof, and what PE 3 saw.
fn proved(profile: Profile, looks: bool) -> (u64, Vec<u64>) {
    let mut seen = BTreeSet::new();
    let mut simulation = Simulation::new(config(profile, Races::Find)).unwrap();
    let explored = simulation.explore(
        Explore::All { limit: 1_000 },
        |pe| ring(pe, looks),
        |run| {
            seen.extend(run.results[3]);
            ControlFlow::Continue(())
        },
    );
    let explored = explored.unwrap();
    assert!(explored.complete && explored.findings == 0, "{explored:?}");
    (explored.schedules, Vec::from_iter(seen))
}

/// What nobody reads on another path makes no class. A read that may race makes those of what it reads.
#[test]
fn a_proof_orders_only_what_a_read_may_see() {
    assert_eq!(proved(Profile::MixedFabric, false), proved(Profile::Spec, false));
    assert_eq!(proved(Profile::MixedFabric, false), (1, vec![0]));
    assert_eq!(proved(Profile::Spec, true), (2, vec![0, 5]));
    let (classes, seen) = proved(Profile::MixedFabric, true);
    assert!(classes < 200, "{classes}: what comes around the ring is in order with the hint");
    assert_eq!(seen, [0, 5]);
}

/// Two additions of another node leave one value between them behind, and which one depends on their order. So they are exchanged, though
/// they commute where a read finds their sum.
#[test]
fn additions_that_a_read_may_see_one_by_one_do_not_commute() {
    let add = |value, word| vec![Add { to: 2, word: 0, value }, Quiet, Signal { to: 3, word }];
    let reader = vec![Wait { word: 2 }, Wait { word: 3 }, LOOK, Signal { to: 2, word: 2 }];
    // PE 2 synchronizes with nobody before that
    let program = [add(1, 2), add(2, 3), vec![Wait { word: 2 }], reader];
    let all = Explore::All { limit: 10_000 };
    let outcomes =
        |seen: Seen| Vec::from_iter(seen.outcomes.iter().map(|outcome| outcome[outcome.len() - 4..].to_string()));
    let noted = outcomes(seen(&program, Profile::MixedFabric, all, Races::Note));
    let proof = outcomes(seen_with(Meant::Reads, &program, Profile::MixedFabric, all, Races::Find));
    assert_eq!(noted, ["0])]", "1])]", "2])]", "3])]"]);
    assert_eq!(proof, noted);
}

/// On one node there is one path.
#[test]
fn one_node_has_one_fabric() {
    let program = [vec![DATA, Quiet, Signal { to: 3, word: 3 }], vec![], vec![], vec![Wait { word: 3 }, LOOK]];
    for nodes in [1, 4] {
        let config = Config { nodes, ..config(Profile::MixedFabric, Races::Find) };
        let run = Simulation::new(config).unwrap().run(|pe| perform(&program, Meant::Nothing, pe)).unwrap();
        assert!(run.verdict.is_ok(), "{nodes} nodes: {}", run.verdict);
    }
}

/// A trace shows what a read on the other path has found, and not what is in memory.
#[test]
fn a_trace_has_the_old_value_that_was_read() {
    for by_get in [true, false] {
        let program = move |pe: &Pe<Sim>| {
            let (x, told) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
            let mut saw = 7;
            match pe.my_pe() {
                0 => {
                    pe.host().p(x.at(0), 7, 2)?;
                    pe.host().quiet()?;
                    pe.host().signal_op(told.signal(0), 1, SignalOp::Set, 3)?;
                }
                3 => {
                    pe.host().signal_wait_until(told.signal(0), Cmp::Eq, 1)?;
                    saw = if by_get {
                        pe.host().g(x.at(0), 2)?
                    } else {
                        pe.peer(x.at(0), 2)?.expect("one node").read()?[0]
                    };
                }
                _ => {}
            }
            pe.free(told)?;
            pe.free(x)?;
            Ok(saw)
        };
        let mut simulation = Simulation::new(config(Profile::MixedFabric, Races::Note)).unwrap();
        let mut old = None;
        let visit = |run: &onesided_sim::Run<u64>| {
            if run.results[3] == Some(0) {
                old = Some(run.schedule.clone());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        simulation.explore(Explore::random(1000, 0), program, visit).unwrap();
        let run = simulation.replay(&old.expect("an old value is seen"), program).unwrap();
        let trace = run.trace.unwrap();
        let read = trace.iter().rfind(|event| event.pe == 3 && event.moved.is_some()).unwrap();
        assert_eq!(read.moved.as_ref().unwrap().to_string(), "[0]", "{by_get}: {read:?}");
    }
}
