//! Random programs of two nodes: a PE writes to another and tells a third, who tells a fourth perhaps, and somebody looks.
//!
//! Words 0 and 1 are data, words 2 and 3 flags, and word 4 is what puts read.

use onesided::Cmp;
use onesided::backend::AmoOp;
use proptest::prelude::*;
use proptest::sample::select;

use super::program::{Call, Collective, Op, Program, Update, host};

const PES: usize = 4;
const WORDS: usize = 5;
const SOURCE: usize = 4;

type Hosts = Vec<Vec<Op>>;

fn pe() -> impl Strategy<Value = usize> {
    0..PES
}

fn signal(to: usize, word: usize, add: bool) -> Op {
    Op::Signal { to, update: Update { word, value: 1, add } }
}

fn wait(word: usize) -> Op {
    Op::Wait { word, cmp: Cmp::Ge, value: 1, signal: true }
}

fn put(to: usize, dst: usize, word: usize) -> Op {
    let signal = Some(Update { word, value: 1, add: false });
    Op::Put { to, dst, src: SOURCE, len: 1, nbi: false, signal }
}

/// How `me` writes to a PE. Where it has no pointer, it puts.
fn write(me: usize, to: usize, dst: usize, how: u8, value: u64) -> Op {
    match how {
        0 if me / 2 == to / 2 => Op::PeerStore { to, dst, len: 1, value },
        1 => Op::Put { to, dst, src: SOURCE, len: 1, nbi: true, signal: None },
        2 => Op::Amo { to, dst, op: AmoOp::Add, value, cond: 0, fetch: false },
        3 => Op::Amo { to, dst, op: AmoOp::Set, value, cond: 0, fetch: true },
        _ => Op::P { to, dst, value },
    }
}

/// How `me` reads.
fn look(me: usize, from: usize, src: usize, how: u8) -> Op {
    match how {
        0 if me / 2 == from / 2 => Op::PeerLoad { of: from, src, len: 1 },
        1 => Op::Get { from, dst: SOURCE, src, len: 1, nbi: false },
        2 => Op::Get { from, dst: SOURCE, src, len: 1, nbi: true },
        _ => Op::G { from, src },
    }
}

/// Any call, by whom.
fn any_call() -> impl Strategy<Value = (usize, Op)> {
    let home = || select(vec![1usize, 2]);
    (pe(), 0..24u8, home(), 0..2usize, 0..8u8, pe(), any::<bool>()).prop_map(|(me, what, home, word, how, to, add)| {
        let op = match what {
            0..5 => write(me, home, word, how, 1 + word as u64),
            5..10 => look(me, home, word, how),
            10..14 => signal(to, 2 + word, add),
            14..16 => put(to, 0, 2 + word),
            16..20 => wait(2 + word),
            20 => Op::Fence,
            21 => Op::Write { dst: word, len: 1, value: 3 },
            _ => Op::Quiet,
        };
        (me, op)
    })
}

/// What stands between the data and the word of it.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Fence,
    Quiet,
    Collective(Collective),
}

fn message() -> impl Strategy<Value = Hosts> {
    use Between::*;
    let kinds = vec![Nothing, Fence, Quiet, Quiet, Collective(super::program::Collective::Barrier)];
    let with_last = prop::option::of(pe());
    (pe(), pe(), pe(), with_last, select(kinds), 0..8u8, 0..8u8).prop_map(
        |(from, home, told, last, between, how, looks)| {
            let mut hosts = vec![Vec::new(); PES];
            hosts[from].push(write(from, home, 0, how, 5));
            match between {
                Nothing => {}
                Fence => hosts[from].push(Op::Fence),
                Quiet => hosts[from].push(Op::Quiet),
                Collective(barrier) => hosts.iter_mut().for_each(|calls| calls.push(Op::Enter(barrier))),
            }
            hosts[from].push(signal(told, 2, false));
            hosts[told].push(wait(2));
            let reader = last.unwrap_or(told);
            if last.is_some() {
                hosts[told].push(signal(reader, 3, false));
                hosts[reader].push(wait(3));
            }
            hosts[reader].push(look(reader, home, 0, looks));
            hosts
        },
    )
}

fn program(hosts: Hosts) -> Program {
    let hosts = hosts.into_iter().map(|ops| ops.into_iter().map(host).collect::<Vec<Call>>());
    Program::new(WORDS, hosts).in_pieces(1)
}

/// Messages with a few more calls anywhere, and any calls with a barrier between them or none.
pub(crate) fn programs(calls: usize) -> impl Strategy<Value = Program> {
    let disturbed =
        (message(), prop::collection::vec((0..6usize, any_call()), 0..=calls)).prop_map(|(mut hosts, more)| {
            for (at, (pe, op)) in more {
                let at = at.min(hosts[pe].len());
                hosts[pe].insert(at, op);
            }
            program(hosts)
        });
    let some = |most| prop::collection::vec(any_call(), 0..=most);
    let any = (some(2 + calls), any::<bool>(), some(calls)).prop_map(|(first, meets, second)| {
        let mut hosts = vec![Vec::new(); PES];
        first.into_iter().for_each(|(pe, op)| hosts[pe].push(op));
        if meets {
            hosts.iter_mut().for_each(|calls| calls.push(Op::Enter(Collective::Barrier)));
        }
        second.into_iter().for_each(|(pe, op)| hosts[pe].push(op));
        program(hosts)
    });
    prop_oneof![2 => disturbed, 1 => any]
}
