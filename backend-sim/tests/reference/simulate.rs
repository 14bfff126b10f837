//! A program on the simulator.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Pe, Predefined, RegisteredLocal, Result, SymmetricBuf, Team, TeamConfig, TeamUniqueId};
use onesided_sim::{
    Choices, Config, Explore, MissingEdge, Profile, Race, Races, Run, Sim, Simulation, Verdict, VerdictKind,
};

use super::fabrics::nodes;
use super::profiles::Rules;
use super::program::{Call, Op, Program};
use super::running::{Running, Word};
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
                    let shown = |verdict: &Verdict| format!("{} {:?}", verdict.kind, as_unrecorded(&verdict.races));
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

/// Races without what is known of recorded runs only: what is ineffective, and whether the stream that is to be synchronized has a quiet.
fn as_unrecorded(races: &[Race]) -> Vec<Race> {
    let mut races = races.to_vec();
    for race in &mut races {
        race.ineffective = None;
        if let MissingEdge::Synchronize { after, quiet, .. } = &mut race.missing {
            (*after, *quiet) = (race.first.at, false);
        }
    }
    races
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
        VerdictKind::StepLimit { .. } if !matches!(run.schedule.choices, Choices::Picks(_) | Choices::Stepwise(_)) => {
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
    match program.narrow {
        None | Some(8) => perform_with::<u64>(program, pe),
        Some(2) => perform_with::<u16>(program, pe),
        Some(4) => perform_with::<u32>(program, pe),
        Some(bytes) => unreachable!("no words of {bytes} bytes"),
    }
}

fn perform_with<T: Word>(program: &Program, pe: &Pe<Sim>) -> Result<Saw> {
    let Some(local) = program.local else {
        let buf = pe.alloc_zeroed::<T>(program.words)?;
        let saw = perform_in(program, pe, &buf, None)?;
        pe.free(buf)?;
        return Ok(saw);
    };
    let symmetric = pe.register_symmetric(pe.alloc_external::<T>(program.words - local)?)?;
    let registered = pe.register_local(pe.alloc_external::<T>(local)?)?;
    let saw = perform_in(program, pe, &symmetric, Some(&registered))?;
    pe.free_external(pe.unregister_symmetric(symmetric)?)?;
    pe.free_external(pe.unregister_local(registered)?)?;
    Ok(saw)
}

/// The same in the program's memory: symmetric words, and behind them local ones.
fn perform_in<T: Word>(
    program: &Program,
    pe: &Pe<Sim>,
    buf: &SymmetricBuf<T>,
    local: Option<&RegisteredLocal<T>>,
) -> Result<Saw> {
    let me = pe.my_pe();
    let mut running = Running {
        pe,
        buf,
        local,
        streams: (0..program.streams(me)).map(|_| pe.stream()).collect::<Result<_>>()?,
        events: (0..program.events(me)).map(|_| pe.event()).collect::<Result<_>>()?,
        teams: program.teams.iter().enumerate().map(|team| made(pe, team)).collect::<Result<_>>()?,
        saw: Vec::new(),
    };
    if program.filled || local.is_some() {
        let start = Vec::from_iter((0..program.words).map(|word| T::from_bits64(program.start(me, word))));
        pe.write(buf, &start[..buf.len()])?;
        local.map_or(Ok(()), |local| pe.write(local, &start[buf.len()..]))?;
        pe.host().barrier_all()?;
    }
    for (i, call) in program.hosts[me].iter().enumerate() {
        running.make(call)?;
        // a team ends as early as it can, whatever its other members are doing
        if let (None, Op::EnterOf { team, .. }) = (call.stream, call.op) {
            let is_used = |later: &Call| matches!(later.op, Op::EnterOf { team: other, .. } if other == team);
            if !program.hosts[me][i + 1..].iter().any(is_used) {
                running.teams[team].take().map_or(Ok(()), |team| pe.team_destroy(team))?;
            }
        }
    }
    let Running { streams, teams, saw, .. } = running;
    // first everything has to be issued: a quiet claims what other streams have in flight
    streams.iter().try_for_each(|stream| pe.synchronize(stream))?;
    for stream in &streams {
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
    }
    pe.host().barrier_all()?;
    teams.into_iter().flatten().try_for_each(|team| pe.team_destroy(team))?;
    let mut result = vec![saw];
    let cells = |words: &[T]| Vec::from_iter(words.iter().flat_map(|word| cells(program, word.to_bits64())));
    let is_reached = pe.team(Predefined::Node).is_some_and(|node| node.n_pes() == pe.n_pes());
    if !is_reached || local.is_some() {
        let mut mine = (0..buf.len()).map(|word| pe.read_one(buf.at(word))).collect::<Result<Vec<T>>>()?;
        mine.extend(local.map_or(Ok(Vec::new()), |local| pe.read(local))?);
        result.push(cells(&mine));
        return Ok(result);
    }
    for of in (0..program.pes()).filter(|_| me == 0) {
        // word by word: a load of several words is several steps
        let word = |word| Ok(pe.peer(buf.at(word), of)?.expect("all PEs are on one node").read()?[0]);
        result.push(cells(&(0..program.words).map(word).collect::<Result<Vec<T>>>()?));
    }
    Ok(result)
}

/// A word, or its bytes.
fn cells(program: &Program, word: u64) -> Vec<u64> {
    match program.narrow {
        None => vec![word],
        Some(bytes) => word.to_le_bytes()[..bytes].iter().map(|&byte| u64::from(byte)).collect(),
    }
}

/// The team of a program with this number, on one of its members. PEs at equal distances are split from the world.
fn made(pe: &Pe<Sim>, (number, members): (usize, &Vec<usize>)) -> Result<Option<Team>> {
    let (start, stride) = (members[0], members.get(1).map_or(1, |second| second.saturating_sub(members[0])));
    let team = if members.iter().enumerate().all(|(i, &member)| member == start + i * stride) {
        pe.team_split_strided(pe.world(), start, stride, members.len(), TeamConfig::default())?
    } else {
        let config = TeamConfig { unique_id: Some(TeamUniqueId(1 + number as u64)), ..TeamConfig::default() };
        let index = members.iter().position(|&member| member == pe.my_pe());
        index.map(|index| pe.team_init(config, members.len(), index)).transpose()?
    };
    for (i, &member) in members.iter().enumerate().filter(|_| team.is_some()) {
        let team = team.as_ref().expect("it is there");
        assert_eq!((team.n_pes(), members[team.my_pe()]), (members.len(), pe.my_pe()));
        assert_eq!(team.translate_pe(i, pe.world())?, Some(member));
        assert_eq!(pe.world().translate_pe(member, team)?, Some(i));
    }
    Ok(team)
}
