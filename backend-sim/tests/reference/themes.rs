//! Random programs about something: PE 0 sends, then raises a flag, and PE 1 waits for the flag and looks.
//!
//! Words 0 and 1 of PE 1 are what is sent, its word 2 is the flag. Word 2 of PE 0 is a flag as well, which PE 1 raises in the
//! end, or in the beginning.

use onesided::Cmp;
use onesided::backend::AmoOp;
use proptest::prelude::*;

use super::generate::{by, call, number};
use super::program::{Call, Op, Program, Update, host};

const WORDS: usize = 4;
const FLAG: usize = 2;
const SOURCE: usize = 3;

/// Raises a flag.
fn raise(to: usize) -> Op {
    Op::Signal { to, update: Update { word: FLAG, value: 1, add: false } }
}

/// Waits for it.
fn wait() -> Op {
    Op::Wait { word: FLAG, cmp: Cmp::Ge, value: 1, signal: false }
}

/// Messages of all kinds: up to `calls` calls of PE 0, on up to `streams` streams, before the flag.
pub(crate) fn messages(calls: usize, streams: usize) -> impl Strategy<Value = Program> {
    let send = prop::collection::vec(call(2, WORDS - 1, streams), 1..=calls);
    // what everything else writes is looked at, and the flag's word is the flag's alone
    let send = send.prop_map(|calls| calls.into_iter().map(|call| Call { op: aimed(call.op), ..call }).collect());
    let look = prop_oneof![
        Just(Op::Read { src: 0, len: 3 }),
        Just(Op::Read { src: 0, len: 2 }),
        Just(Op::Put { to: 0, dst: 0, src: 0, len: 2, nbi: false, signal: None }),
        Just(Op::G { from: 1, src: 0 }),
    ];
    exchange(send, streams, look)
}

/// Messages by non-blocking puts, and what completes them: on all streams, in all orders.
pub(crate) fn claims(calls: usize, streams: usize) -> impl Strategy<Value = Program> {
    let put = |nbi, dst| Op::Put { to: 1, dst, src: SOURCE, len: 1, nbi, signal: None };
    let update = Update { word: 1, value: 1, add: false };
    let put_signal = Op::Put { to: 1, dst: 0, src: SOURCE, len: 1, nbi: true, signal: Some(update) };
    let anywhere = prop_oneof![
        5 => Just(put(true, 0)),
        1 => Just(put(true, 1)),
        1 => Just(put_signal),
        2 => Just(put(false, 0)),
        1 => Just(Op::Get { from: 1, dst: SOURCE, src: 1, len: 1, nbi: true }),
        6 => Just(Op::Quiet),
        4 => Just(Op::Fence),
        2 => Just(Op::Flush),
        2 => Just(wait()),
        2 => Just(Op::Write { dst: SOURCE, len: 1, value: 1 }),
    ];
    let of_streams = prop_oneof![Just(Op::Record { event: 0 }), Just(Op::WaitEvent { event: 0 })];
    let of_hosts = prop_oneof![
        1 => (0..streams).prop_map(|stream| Op::Synchronize { stream }),
        1 => Just(Op::SynchronizeEvent { event: 0 }),
        2 => Just(raise(0)),
    ];
    let call = (by(streams), anywhere, of_streams, of_hosts, prop::bool::weighted(0.2)).prop_map(
        |(stream, anywhere, of_streams, of_hosts, special)| {
            let special = special.then_some(if stream.is_some() { of_streams } else { of_hosts });
            Call { stream, op: special.unwrap_or(anywhere), in_bytes: false }
        },
    );
    let send = prop::collection::vec(call, 2..=calls);
    let send =
        send.prop_map(|calls| [host(Op::Write { dst: SOURCE, len: 1, value: 1 })].into_iter().chain(calls).collect());
    exchange(send, streams, Just(Op::Read { src: 0, len: 1 }))
}

/// Messages by non-blocking puts, which PE 1 answers into their source. What the flag tells of a delivery it tells of the source read.
pub(crate) fn answers(calls: usize) -> impl Strategy<Value = Program> {
    let put = |nbi, dst| Op::Put { to: 1, dst, src: SOURCE, len: 1, nbi, signal: None };
    let op = prop_oneof![
        5 => (0usize..2).prop_map(move |dst| put(true, dst)),
        1 => Just(put(false, 0)),
        1 => Just(Op::Put { to: 0, dst: 0, src: SOURCE, len: 1, nbi: true, signal: None }),
        5 => Just(Op::Fence),
        1 => Just(Op::Flush),
        1 => Just(Op::Quiet),
        1 => Just(Op::P { to: 0, dst: SOURCE, value: 1 }),
    ];
    let send = prop::collection::vec(op.prop_map(host), 1..=calls);
    exchange(
        send,
        0,
        prop_oneof![3 => Just(Op::P { to: 0, dst: SOURCE, value: 2 }), 1 => Just(Op::Read { src: 0, len: 1 })],
    )
}

/// Messages by stores through a peer's pointer.
pub(crate) fn stores(calls: usize) -> impl Strategy<Value = Program> {
    let range = || (0usize..2, 1usize..=2).prop_map(|(first, len)| (first.min(2 - len), len));
    let op = prop_oneof![
        6 => range().prop_map(|(dst, len)| Op::PeerStore { to: 1, dst, len, value: 1 }),
        3 => range().prop_map(|(src, len)| Op::PeerLoad { of: 1, src, len }),
        1 => (0usize..2).prop_map(|dst| Op::P { to: 1, dst, value: 1 }),
        1 => (0usize..2).prop_map(|src| Op::G { from: 1, src }),
        2 => Just(Op::Fence),
        1 => Just(Op::Quiet),
        1 => Just(wait()),
    ];
    let send = prop::collection::vec(op.prop_map(host), 2..=calls);
    exchange(send, 0, prop_oneof![Just(Op::Read { src: 0, len: 2 }), Just(Op::Read { src: 1, len: 1 })])
}

/// Counters, and words that are none: PEs 0 and 1 change words of PE 2 atomically, which waits for them and looks.
pub(crate) fn counters(calls: usize) -> impl Strategy<Value = Program> {
    let value = || 1u64..=2;
    let word = || 0usize..2;
    let update = (word(), value(), prop::bool::weighted(0.8));
    let change = prop_oneof![
        6 => update.prop_map(|(word, value, add)| Op::Signal { to: 2, update: Update { word, value, add } }),
        2 => (word(), value(), any::<bool>())
            .prop_map(|(dst, value, fetch)| Op::Amo { to: 2, dst, op: AmoOp::Add, value, cond: 0, fetch }),
        1 => (word(), value()).prop_map(|(dst, value)| Op::Amo { to: 2, dst, op: AmoOp::Set, value, cond: 0, fetch: false }),
        1 => Just(Op::Quiet),
        1 => Just(Op::Fence),
    ];
    let cmp = prop_oneof![6 => Just(Cmp::Ge), 2 => Just(Cmp::Gt), 3 => Just(Cmp::Eq), 1 => Just(Cmp::Ne)];
    let look = prop_oneof![
        4 => (word(), cmp, 1u64..=3).prop_map(|(word, cmp, value)| Op::Wait { word, cmp, value, signal: true }),
        2 => word().prop_map(|word| Op::SignalFetch { word }),
        1 => (word(), value()).prop_map(|(word, value)| Op::Signal { to: 0, update: Update { word, value, add: true } }),
    ];
    let senders = [(); 2].map(|()| prop::collection::vec(change.clone().prop_map(host), 1..=calls));
    (senders, prop::collection::vec(look.prop_map(host), 1..=calls))
        .prop_map(|([first, second], receive)| Program::new(2, [first, second, receive]).in_pieces(1))
}

/// Updates that return nothing, of which some commute: PEs 0 and 1 change words of PE 2, which looks, waits, and changes them too.
pub(crate) fn updates(calls: usize) -> impl Strategy<Value = Program> {
    let word = || prop_oneof![4 => Just(0usize), 1 => Just(1)];
    let op =
        prop::sample::select(vec![AmoOp::Add, AmoOp::Add, AmoOp::And, AmoOp::Or, AmoOp::Or, AmoOp::Xor, AmoOp::Set]);
    let value = || prop_oneof![4 => 1u64..=6, 1 => Just(u64::MAX)];
    let update = |to: usize| {
        (word(), op.clone(), value(), prop::bool::weighted(0.1)).prop_map(move |(dst, op, value, fetch)| Op::Amo {
            to,
            dst,
            op,
            value,
            cond: 0,
            fetch,
        })
    };
    let add =
        (word(), 1u64..=6).prop_map(|(word, value)| Op::Signal { to: 2, update: Update { word, value, add: true } });
    let change = prop_oneof![8 => update(2), 2 => add, 1 => Just(Op::Fence)];
    let fetch = word().prop_map(|dst| Op::Amo { to: 2, dst, op: AmoOp::Fetch, value: 0, cond: 0, fetch: true });
    let cmp = prop_oneof![4 => Just(Cmp::Ge), 1 => Just(Cmp::Eq), 1 => Just(Cmp::Ne), 1 => Just(Cmp::Lt)];
    let look = prop_oneof![
        3 => fetch,
        2 => update(2),
        1 => (word(), cmp, 1u64..=6).prop_map(|(word, cmp, value)| Op::Wait { word, cmp, value, signal: true }),
    ];
    let senders = [(); 2].map(|()| prop::collection::vec(change.clone().prop_map(host), 1..=calls));
    (senders, prop::collection::vec(look.prop_map(host), 0..=2))
        .prop_map(|([first, second], receive)| Program::new(2, [first, second, receive]).in_pieces(1))
}

/// Flags that grow, and some that do not: PEs 0 and 1 put data to PE 2 and set flags there, which waits for them and looks.
pub(crate) fn flags(calls: usize) -> impl Strategy<Value = Program> {
    let flag = || 1usize..=2;
    let set = |value: std::ops::RangeInclusive<u64>| {
        (flag(), value).prop_map(|(word, value)| Update { word, value, add: false })
    };
    let send = prop_oneof![
        4 => set(1..=3).prop_map(|update| Op::Signal { to: 2, update }),
        3 => (set(1..=3), any::<bool>())
            .prop_map(|(update, nbi)| Op::Put { to: 2, dst: 0, src: 0, len: 1, nbi, signal: Some(update) }),
        2 => Just(Op::P { to: 2, dst: 0, value: 1 }),
        1 => (flag(), 0u64..=3, any::<bool>())
            .prop_map(|(dst, value, fetch)| Op::Amo { to: 2, dst, op: AmoOp::Set, value, cond: 0, fetch }),
        1 => flag().prop_map(|dst| Op::P { to: 2, dst, value: 1 }),
        3 => Just(Op::Fence),
        1 => Just(Op::Quiet),
        1 => Just(Op::Wait { word: 1, cmp: Cmp::Ge, value: 1, signal: true }),
    ];
    let cmp = || prop_oneof![6 => Just(Cmp::Ge), 1 => Just(Cmp::Gt), 1 => Just(Cmp::Ne), 1 => Just(Cmp::Eq), 1 => Just(Cmp::Le)];
    let look = prop_oneof![
        4 => (flag(), cmp(), 0u64..=3, prop::bool::weighted(0.8))
            .prop_map(|(word, cmp, value, signal)| Op::Wait { word, cmp, value, signal }),
        1 => (cmp(), prop::option::of(0u64..=2), prop::option::of(1u64..=2))
            .prop_map(|(cmp, a, b)| Op::WaitAll { word: 1, cmp, values: [a, b] }),
        2 => Just(Op::Read { src: 0, len: 1 }),
        1 => flag().prop_map(|word| Op::SignalFetch { word }),
        1 => flag().prop_map(|dst| Op::Write { dst, len: 1, value: 0 }),
        1 => Just(Op::Put { to: 0, dst: 0, src: 0, len: 1, nbi: false, signal: Some(Update { word: 1, value: 1, add: false }) }),
    ];
    let senders = [(); 2].map(|()| prop::collection::vec(send.clone().prop_map(host), 0..=calls));
    let receive = prop::collection::vec((by(1), look), 1..=calls);
    let receive = receive.prop_map(|calls| {
        let on_host = |op: &Op| matches!(op, Op::Read { .. } | Op::SignalFetch { .. });
        calls
            .into_iter()
            .map(|(stream, op)| Call { stream: stream.filter(|_| !on_host(&op)), op, in_bytes: false })
            .collect()
    });
    (senders, receive).prop_map(|([first, second], receive)| Program::new(3, [first, second, receive]).in_pieces(1))
}

/// Flags that are set, seen, and taken back again, by turns: of each flag, somebody sets a value and its PE waits for it. Then some calls change places, and some
/// values are others.
pub(crate) fn turns(calls: usize) -> impl Strategy<Value = Program> {
    const PES: usize = 3;
    let cmp = prop_oneof![4 => Just(Cmp::Eq), 3 => Just(Cmp::Ne), 2 => Just(Cmp::Ge), 1 => Just(Cmp::Lt)];
    let turn = (0..PES, 1..PES, 1usize..=2, 0u64..=2, cmp, prop::bool::weighted(0.7), prop::bool::weighted(0.2));
    let turns = prop::collection::vec(turn, 2..=calls);
    let changes = prop::collection::vec((0..PES, any::<prop::sample::Index>(), any::<bool>()), 0..=2);
    (turns, changes).prop_map(|(turns, changes)| {
        let mut hosts: [Vec<Op>; PES] = Default::default();
        for (from, distance, word, value, cmp, is_awaited, has_data) in turns {
            let to = (from + distance) % PES;
            let update = Update { word, value, add: false };
            hosts[from].push(match has_data {
                true => Op::Put { to, dst: 0, src: 0, len: 1, nbi: false, signal: Some(update) },
                false => Op::Signal { to, update },
            });
            if is_awaited {
                let value = if cmp == Cmp::Ne { (value + 1) % 3 } else { value + u64::from(cmp == Cmp::Lt) };
                hosts[to].push(Op::Wait { word, cmp, value, signal: true });
                hosts[to].extend(has_data.then_some(Op::Read { src: 0, len: 1 }));
            }
        }
        for (pe, at, is_swap) in changes {
            let host = &mut hosts[pe];
            match (at.index(host.len().max(1)), is_swap) {
                (at, true) if at + 1 < host.len() => host.swap(at, at + 1),
                (at, false) if at < host.len() => drop(host.remove(at)),
                _ => {}
            }
        }
        Program::new(3, hosts.map(|ops| ops.into_iter().map(host).collect())).in_pieces(1)
    })
}

/// Loops that poll: PEs 0 and 1 raise flags of PE 2, and lock what is there; PE 2 polls for the flags, and looks.
pub(crate) fn polls(calls: usize) -> impl Strategy<Value = Program> {
    const LOCK: usize = 3;
    let flag = || 1usize..=2;
    let update = || (flag(), 1u64..=2, any::<bool>()).prop_map(|(word, value, add)| Update { word, value, add });
    let lock = Op::Lock { to: 2, dst: LOCK };
    let unlock = Op::Amo { to: 2, dst: LOCK, op: AmoOp::Set, value: 0, cond: 0, fetch: false };
    let one = prop_oneof![
        4 => update().prop_map(|update| Op::Signal { to: 2, update }),
        2 => update().prop_map(|update| Op::Put { to: 2, dst: 0, src: 0, len: 1, nbi: false, signal: Some(update) }),
        1 => Just(Op::P { to: 2, dst: 0, value: 1 }),
        1 => Just(Op::Fence),
        1 => Just(Op::Quiet),
    ];
    let send = prop_oneof![
        4 => one.clone().prop_map(|op| vec![op]),
        1 => Just(vec![lock, unlock]),
        1 => one.prop_map(move |op| vec![lock, op, Op::Quiet, unlock]),
        1 => Just(vec![lock, unlock, lock]),
    ];
    let cmp = || prop_oneof![5 => Just(Cmp::Ge), 1 => Just(Cmp::Eq), 1 => Just(Cmp::Ne)];
    let look = prop_oneof![
        4 => (any::<bool>(), flag(), cmp(), 1u64..=2, any::<bool>())
            .prop_map(|(plainly, word, cmp, value, two)| Op::Poll { plainly, word, also: two.then_some(3 - word), cmp, value }),
        2 => Just(Op::Read { src: 0, len: 1 }),
        1 => flag().prop_map(|word| Op::SignalFetch { word }),
        1 => flag().prop_map(|dst| Op::Amo { to: 2, dst, op: AmoOp::Set, value: 0, cond: 0, fetch: false }),
    ];
    let senders = [(); 2].map(|()| prop::collection::vec(send.clone(), 0..=calls));
    (senders, prop::collection::vec(look.prop_map(host), 1..=calls)).prop_map(|([first, second], receive)| {
        let hosts = [first, second].map(|calls| calls.into_iter().flatten().map(host).collect());
        Program::new(4, hosts.into_iter().chain([receive])).in_pieces(1)
    })
}

/// PE 0 sends and raises its flag, in any way; PE 1 waits and looks, and raises a flag before or behind that.
fn exchange(
    send: impl Strategy<Value = Vec<Call>>,
    streams: usize,
    look: impl Strategy<Value = Op>,
) -> impl Strategy<Value = Program> {
    let update = Update { word: FLAG, value: 1, add: false };
    let amo = Op::Amo { to: 1, dst: FLAG, op: AmoOp::Set, value: 1, cond: 0, fetch: false };
    let flag = prop_oneof![
        2 => (Just(raise(1)), by(streams)),
        1 => (Just(Op::P { to: 1, dst: FLAG, value: 1 }), by(streams)),
        1 => any::<bool>().prop_flat_map(move |nbi| {
            let put = Op::Put { to: 1, dst: 0, src: 1, len: 1, nbi, signal: Some(update) };
            (Just(put), by(streams))
        }),
        1 => (Just(amo), Just(None)),
        1 => (Just(Op::PeerStore { to: 1, dst: FLAG, len: 1, value: 1 }), Just(None)),
    ];
    (send, flag, prop::option::weighted(0.8, Just(wait())), look, 0u8..=2, 1usize..=4).prop_map(
        |(mut send, (flag, stream), wait, look, answer, pieces)| {
            send.push(Call { stream, op: flag, in_bytes: false });
            let mut receive: Vec<Call> = wait.into_iter().chain([look]).map(host).collect();
            match answer {
                0 => {}
                1 => receive.push(host(raise(0))),
                _ => receive.insert(0, host(raise(0))),
            }
            number(Program::new(WORDS, [send, receive]).in_pieces(pieces))
        },
    )
}

/// The same operation on words 0 and 1 of PE 1.
fn aimed(mut op: Op) -> Op {
    match &mut op {
        Op::P { to, dst, .. } | Op::Amo { to, dst, .. } | Op::PeerStore { to, dst, len: 1, .. } => {
            (*to, *dst) = (1, *dst % 2);
        }
        Op::Put { to, dst, signal, .. } => {
            *to = 1;
            *dst = 0;
            *signal = None;
        }
        Op::PeerStore { to, dst, .. } | Op::IPut { to, dst, strides: (1, _), .. } => (*to, *dst) = (1, 0),
        Op::Signal { to, update } => (*to, update.word) = (1, update.word % 2),
        Op::Wait { .. } | Op::WaitAll { .. } => op = Op::Fence,
        Op::Get { .. } | Op::IGet { .. } | Op::IPut { .. } | Op::Read { .. } | Op::PeerLoad { .. } => op = Op::Quiet,
        _ => {}
    }
    op
}
