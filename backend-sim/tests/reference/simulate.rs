//! A program on the simulator.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::backend::AmoOp;
use onesided::{Event, Pe, Predefined, Result, SignalOp, Stream, SymmetricBuf, TeamConfig};
use onesided_sim::{Choices, Config, Explore, Profile, Races, Run, Sim, Simulation, Verdict, VerdictKind};

use super::fabrics::nodes;
use super::profiles::Rules;
use super::program::{Call, Collective, Op, Program, Update};
use super::state::Outcome;

/// What a PE's host saw; on PE 0, then all PEs' memory, or on each PE its own.
type Saw = Vec<Vec<u64>>;

/// What was seen of a program.
#[derive(Default)]
pub(crate) struct Simulated {
    pub(crate) outcomes: BTreeSet<Outcome>,
    /// Whether all schedules were visited.
    pub(crate) complete: bool,
    /// Runs, and runs with a race.
    pub(crate) runs: u64,
    pub(crate) racy: u64,
    /// Different classes of random schedules.
    pub(crate) classes: Option<u64>,
    /// A race, in words.
    pub(crate) race: String,
}

/// Visits schedules of a program; `Err`: the search gives up. `races`: all outcomes, or a proof.
pub(crate) fn simulated(
    program: &Program,
    profile: Profile,
    how: Explore,
    races: Races,
) -> std::result::Result<Simulated, String> {
    visited(program, simulation(program, profile, races), how)
}

/// A proof that supposes that no value matters that a wait returns.
pub(crate) fn proved_without_values(
    program: &Program,
    profile: Profile,
    limit: u64,
) -> std::result::Result<Simulated, String> {
    let config = Config { values_matter: false, ..simulation(program, profile, Races::Find).config().clone() };
    visited(program, Simulation::new(config).unwrap(), Explore::All { limit })
}

fn visited(program: &Program, mut simulation: Simulation, how: Explore) -> std::result::Result<Simulated, String> {
    let mut seen = Simulated::default();
    let mut again = Simulation::new(simulation.config().clone()).unwrap();
    let mut gone = None;
    simulation.count_classes();
    let explored = simulation.explore(
        how,
        |pe| perform(program, pe),
        |run| {
            seen.outcomes.insert(outcome(run));
            if let Some(race) = run.verdict.races.first() {
                if seen.racy == 0 && matches!(how, Explore::All { .. }) {
                    let reproduced = again.reproduce(run, |pe| perform(program, pe)).map(|run| run.verdict);
                    // What a deadlock says of words that nothing was sent to is known of recorded runs only, and what is ineffective.
                    let shown = |verdict: &Verdict| {
                        let mut races = verdict.races.clone();
                        races.iter_mut().for_each(|race| race.ineffective = None);
                        format!("{} {races:?}", verdict.kind)
                    };
                    let is_same = reproduced.is_ok_and(|verdict| shown(&verdict) == shown(&run.verdict));
                    gone = (!is_same).then(|| race.to_string());
                }
                seen.racy += 1;
                seen.race = race.to_string();
            }
            ControlFlow::Continue(())
        },
    );
    let explored = explored.map_err(|error| error.to_string())?;
    if let Some(race) = gone {
        return Err(format!("a replay does not show {race}"));
    }
    if explored.redundant > 0 {
        return Err(format!("{} schedules were begun that are equivalent to others", explored.redundant));
    }
    if matches!(how, Explore::All { .. }) && explored.given_up > explored.polls_bounded {
        return Err("a schedule reaches the step limit".to_string());
    }
    let complete = explored.bound.is_none();
    Ok(Simulated { complete, runs: explored.schedules, classes: explored.classes, ..seen })
}

/// The outcome in order.
pub(crate) fn in_order(program: &Program, profile: Profile) -> Outcome {
    outcome(&simulation(program, profile, Races::Note).run(|pe| perform(program, pe)).unwrap())
}

fn simulation(program: &Program, profile: Profile, races: Races) -> Simulation {
    let max_steps = program.polls().then_some(5_000);
    let nodes = if Rules::of(profile).one_fabric { 1 } else { nodes(program.pes()) };
    let config = Config { profile, races, max_steps, nodes, pieces: program.pieces, ..Config::pes(program.pes()) };
    Simulation::new(config).unwrap()
}

fn outcome(run: &Run<Saw>) -> Outcome {
    match run.verdict.given_up.as_deref().unwrap_or(&run.verdict.kind) {
        VerdictKind::Finished | VerdictKind::Race => {}
        VerdictKind::Deadlock | VerdictKind::PollsBounded => return Outcome::Deadlock,
        // it polls for ever
        VerdictKind::StepLimit { .. } if !matches!(run.schedule.choices, Choices::Picks(_)) => {
            return Outcome::Deadlock;
        }
        _ => panic!("{}", run.verdict),
    }
    let results: Vec<&Saw> = run.results.iter().map(|result| result.as_ref().expect("every PE returned")).collect();
    // where there are two fabrics, each PE looks at its own memory
    let memory = results.iter().flat_map(|result| &result[1..]);
    Outcome::Finished(results.iter().map(|result| result[0].clone()).chain(memory.cloned()).collect())
}

/// Makes a PE's calls, then completes everything.
fn perform(program: &Program, pe: &Pe<Sim>) -> Result<Saw> {
    let me = pe.my_pe();
    let mut running = Running {
        pe,
        buf: pe.alloc_zeroed::<u64>(program.words)?,
        streams: (0..program.streams(me)).map(|_| pe.stream()).collect::<Result<_>>()?,
        events: (0..program.events(me)).map(|_| pe.event()).collect::<Result<_>>()?,
        saw: Vec::new(),
    };
    program.hosts[me].iter().try_for_each(|call| running.make(call))?;
    let Running { buf, streams, saw, .. } = running;
    // first everything has to be issued: a quiet claims what other streams have in flight
    streams.iter().try_for_each(|stream| pe.synchronize(stream))?;
    for stream in &streams {
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
    }
    pe.host().barrier_all()?;
    let mut result = vec![saw];
    if pe.team(Predefined::Node).is_some_and(|node| node.n_pes() < pe.n_pes()) {
        result.push((0..program.words).map(|word| pe.read_one(buf.at(word))).collect::<Result<_>>()?);
        pe.free(buf)?;
        return Ok(result);
    }
    for of in (0..program.pes()).filter(|_| me == 0) {
        // word by word: a load of several words is several steps
        let word = |word| Ok(pe.peer(buf.at(word), of)?.expect("all PEs are on one node").read()?[0]);
        result.push((0..program.words).map(word).collect::<Result<_>>()?);
    }
    pe.free(buf)?;
    Ok(result)
}

/// A PE that makes its calls.
struct Running<'a> {
    pe: &'a Pe<Sim>,
    buf: SymmetricBuf<u64>,
    streams: Vec<Stream<Sim>>,
    events: Vec<Event<Sim>>,
    saw: Vec<u64>,
}

impl Running<'_> {
    fn make(&mut self, call: &Call) -> Result<()> {
        let Running { pe, buf, streams, events, saw } = self;
        let host = pe.host();
        let on = call.stream.map(|stream| pe.on(&streams[stream]));
        let on = on.as_ref().unwrap_or(&host);
        let range = |start: usize, len: usize| buf.slice(start..start + len);
        let how = |update: Update| if update.add { SignalOp::Add } else { SignalOp::Set };
        match call.op {
            Op::P { to, dst, value } => on.p(buf.at(dst), value, to),
            Op::Put { to, dst, src, len, nbi: false, signal: None } => on.put(range(dst, len), range(src, len), to),
            Op::Put { to, dst, src, len, nbi: true, signal: None } => on.put_nbi(range(dst, len), range(src, len), to),
            Op::Put { to, dst, src, len, nbi, signal: Some(update) } => {
                let (dst, src, word) = (range(dst, len), range(src, len), buf.signal(update.word));
                match nbi {
                    false => on.put_signal(dst, src, word, update.value, how(update), to),
                    true => on.put_signal_nbi(dst, src, word, update.value, how(update), to),
                }
            }
            Op::IPut { to, dst, src, strides, count } => {
                on.iput(buf.slice(dst..), buf.slice(src..), strides.0, strides.1, count, to)
            }
            Op::Get { from, dst, src, len, nbi: false } => on.get(range(dst, len), range(src, len), from),
            Op::Get { from, dst, src, len, nbi: true } => on.get_nbi(range(dst, len), range(src, len), from),
            Op::IGet { from, dst, src, strides, count } => {
                on.iget(buf.slice(dst..), buf.slice(src..), strides.0, strides.1, count, from)
            }
            Op::Signal { to, update } => on.signal_op(buf.signal(update.word), update.value, how(update), to),
            Op::Write { dst, len, value } => on.write(range(dst, len), &vec![value; len]),
            Op::Fence => on.fence(),
            Op::Quiet => on.quiet(),
            Op::Flush => on.flush(),
            Op::Wait { word, cmp, value, signal: true } if call.stream.is_some() => {
                on.signal_wait_until(buf.signal(word), cmp, value)
            }
            Op::Wait { word, cmp, value, signal: true } => {
                host.signal_wait_until(buf.signal(word), cmp, value).map(|value| saw.push(value))
            }
            Op::Wait { word, cmp, value, signal: false } => on.wait_until(buf.at(word), cmp, value),
            Op::WaitAll { word, cmp, values } => {
                let skip = values.map(|value| value.is_none());
                let wanted = values.map(|value| value.unwrap_or_default());
                on.wait_until_all_vector(range(word, 2), Some(&skip), cmp, &wanted)
            }
            Op::Record { event } => pe.record(&events[event], &streams[call.stream.expect("of a stream")]),
            Op::WaitEvent { event } => pe.wait_event(&events[event], &streams[call.stream.expect("of a stream")]),
            Op::SynchronizeEvent { event } => pe.synchronize_event(&events[event]),
            Op::Synchronize { stream } => pe.synchronize(&streams[stream]),
            Op::Read { src, len } => pe.read(range(src, len)).map(|words| saw.extend(words)),
            Op::PeerLoad { of, src, len } => {
                let peer = pe.peer(range(src, len), of)?.expect("all PEs are on one node");
                peer.read().map(|words| saw.extend(words))
            }
            Op::PeerStore { to, dst, len, value } => {
                pe.peer(range(dst, len), to)?.expect("all PEs are on one node").write(&vec![value; len])
            }
            Op::G { from, src } => host.g(buf.at(src), from).map(|value| saw.push(value)),
            Op::Poll { word, also, cmp, value } => {
                let found = 'polls: loop {
                    for word in [word].into_iter().chain(also) {
                        let found = host.signal_fetch(buf.signal(word))?;
                        if cmp.holds(found, value) {
                            break 'polls [word as u64, found];
                        }
                    }
                };
                saw.extend(found);
                Ok(())
            }
            Op::Lock { to, dst } => {
                while host.atomic_compare_swap(buf.at(dst), 0, 1, to)? != 0 {}
                saw.push(0);
                Ok(())
            }
            Op::SignalFetch { word } => host.signal_fetch(buf.signal(word)).map(|value| saw.push(value)),
            Op::Amo { fetch: true, .. } => self.fetch(call.op).map(|old| self.saw.push(old)),
            Op::Amo { fetch: false, .. } => self.update(call.op),
            Op::Enter(Collective::Team) => {
                let team = pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), TeamConfig::default())?;
                pe.team_destroy(team.expect("of all PEs"))
            }
            Op::Enter(Collective::AllocFree) => pe.free(pe.alloc::<u64>(1)?),
            Op::Enter(Collective::Sync) => on.sync_all(),
            Op::Enter(Collective::Barrier) => on.barrier_all(),
            Op::Enter(Collective::Broadcast { root, dst, src, len }) => {
                on.broadcast(pe.world(), range(dst, len), range(src, len), root)
            }
            Op::Enter(Collective::Fcollect { dst, src, len }) => {
                on.fcollect(pe.world(), range(dst, len * pe.n_pes()), range(src, len))
            }
            Op::Enter(Collective::Alltoall { dst, src, len }) => {
                on.alltoall(pe.world(), range(dst, len * pe.n_pes()), range(src, len * pe.n_pes()))
            }
            Op::Enter(Collective::Reduce { dst, src, len, op }) => {
                on.reduce(pe.world(), range(dst, len), range(src, len), op)
            }
            Op::Enter(Collective::ReduceScatter { dst, src, len, op }) => {
                on.reducescatter(pe.world(), range(dst, len), range(src, len * pe.n_pes()), op)
            }
        }
    }

    fn fetch(&self, amo: Op) -> Result<u64> {
        let Op::Amo { to, dst, op, value, cond, .. } = amo else { unreachable!("{amo:?} is no atomic") };
        let (host, word) = (self.pe.host(), self.buf.at(dst));
        match op {
            AmoOp::Fetch => host.atomic_fetch(word, to),
            AmoOp::Set => host.atomic_swap(word, value, to),
            AmoOp::Add => host.atomic_fetch_add(word, value, to),
            AmoOp::And => host.atomic_fetch_and(word, value, to),
            AmoOp::Or => host.atomic_fetch_or(word, value, to),
            AmoOp::Xor => host.atomic_fetch_xor(word, value, to),
            AmoOp::CompareSwap => host.atomic_compare_swap(word, cond, value, to),
        }
    }

    fn update(&self, amo: Op) -> Result<()> {
        let Op::Amo { to, dst, op, value, .. } = amo else { unreachable!("{amo:?} is no atomic") };
        let (host, word) = (self.pe.host(), self.buf.at(dst));
        match op {
            AmoOp::Set => host.atomic_set(word, value, to),
            AmoOp::Add => host.atomic_add(word, value, to),
            AmoOp::And => host.atomic_and(word, value, to),
            AmoOp::Or => host.atomic_or(word, value, to),
            AmoOp::Xor => host.atomic_xor(word, value, to),
            AmoOp::Fetch | AmoOp::CompareSwap => unreachable!("always fetches"),
        }
    }
}
