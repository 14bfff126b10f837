//! Random programs about teams: collectives of teams that have members in common, among transfers.
//!
//! Each PE enters a team's collectives by one agent, in one order. What order it enters those of different teams in is random, so
//! that some of the programs have a deadlock.

use onesided::ReduceOp;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::generate::{call, number};
use super::program::{Call, Collective, Op, Program, by};

const PES: usize = 3;
const WORDS: usize = 4;

/// A collective of a team: the team, what it is, and where each PE's call goes.
type Entering = (usize, Collective, Vec<Index>);

/// Up to `calls` calls of all PEs, and `collectives` of teams. With `streams`, PEs enter some teams' collectives on a stream.
pub(crate) fn programs(calls: usize, collectives: usize, streams: usize) -> impl Strategy<Value = Program> {
    let pieces = prop_oneof![1 => Just(1usize), 1 => Just(2)];
    let ways = prop::collection::vec(prop::collection::vec(prop::option::of(0..streams.max(1)), PES), 3);
    (teams(), pieces, ways).prop_flat_map(move |(teams, pieces, ways)| {
        let calls = prop::collection::vec((0..PES, call(PES, WORDS, streams)), 0..=calls);
        let entering = prop::collection::vec(entering(teams.clone()), 1..=collectives);
        (calls, entering).prop_map(move |(calls, entering)| {
            let mut hosts = vec![Vec::new(); PES];
            calls.into_iter().for_each(|(pe, call)| hosts[pe].push(call));
            for (pe, calls) in hosts.iter_mut().enumerate() {
                enter(calls, pe, &teams, &entering, |team| ways[team][pe].filter(|_| streams > 0));
            }
            let program = Program::new(WORDS, hosts).in_pieces(pieces).filled();
            number(Program { teams: teams.clone(), ..program })
        })
    })
}

/// One or two teams.
fn teams() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let team = || select(vec![vec![0, 1], vec![1, 2], vec![0, 2], vec![1, 0], vec![2, 0], vec![2, 0, 1], vec![1]]);
    prop::collection::vec(team(), 1..=2)
}

/// A collective of the world (the last team) or of a team.
fn entering(teams: Vec<Vec<usize>>) -> impl Strategy<Value = Entering> {
    let which = prop_oneof![4 => 0..teams.len(), 1 => Just(teams.len())];
    which.prop_flat_map(move |team| {
        let members = teams.get(team).map_or(PES, Vec::len);
        (Just(team), collective(members), prop::collection::vec(any::<Index>(), PES))
    })
}

fn collective(members: usize) -> impl Strategy<Value = Collective> {
    let op = || select(vec![ReduceOp::Sum, ReduceOp::Max, ReduceOp::Xor]);
    let (a, b) = (0..WORDS, 1..WORDS);
    // a block for each member and one more word lie apart
    let ends = move || prop_oneof![Just((0, members)), Just((WORDS - members, 0))];
    let moves = (a, b, 0..members).prop_map(|(dst, shift, root)| (dst, (dst + shift) % WORDS, root));
    let any = prop_oneof![
        2 => Just(Collective::Sync),
        3 => Just(Collective::Barrier),
        4 => moves.clone().prop_map(|(dst, src, root)| Collective::Broadcast { root, dst, src, len: 1 }),
        2 => (moves, op()).prop_map(|((dst, src, _), op)| Collective::Reduce { dst, src, len: 1, op }),
        1 => op().prop_map(|op| Collective::Reduce { dst: 1, src: 1, len: 2, op }),
        2 => Just(Collective::Fcollect { dst: 0, src: WORDS - 1, len: 1 }),
        1 => op().prop_map(|op| Collective::ReduceScatter { dst: WORDS - 1, src: 0, len: 1, op }),
    ];
    match 2 * members <= WORDS {
        true => prop_oneof![
            6 => any,
            1 => ends().prop_map(|(dst, src)| Collective::Alltoall { dst, src, len: 1 }),
        ]
        .boxed(),
        false => any.boxed(),
    }
}

/// Puts a PE's entries among its calls. Those of one team keep their order.
fn enter(
    calls: &mut Vec<Call>,
    pe: usize,
    teams: &[Vec<usize>],
    entering: &[Entering],
    way: impl Fn(usize) -> Option<usize>,
) {
    let mut earliest = vec![0; teams.len() + 1];
    for (team, what, places) in entering {
        let op = match teams.get(*team) {
            Some(members) if !members.contains(&pe) => continue,
            Some(_) => Op::EnterOf { team: *team, what: *what },
            None => Op::Enter(*what),
        };
        let place = earliest[*team] + places[pe].index(calls.len() + 1 - earliest[*team]);
        let stream = teams.get(*team).and_then(|_| way(*team));
        calls.insert(place, by(stream, op));
        for (other, earliest) in earliest.iter_mut().enumerate() {
            *earliest = if other == *team { place + 1 } else { *earliest + usize::from(*earliest > place) };
        }
    }
}
