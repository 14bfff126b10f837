//! Random programs about words of 2, 4 and 8 bytes, some of whose bytes are moved by themselves, and about registered memory.

use onesided::Cmp;
use onesided::backend::AmoOp;
use proptest::prelude::*;
use proptest::sample::select;

use super::generate::{by, number};
use super::program::{Call, Collective, Op, Program, Update, host};

const PES: usize = 2;

/// Every byte of a word is a 1.
const ONES: u64 = u64::MAX / 255;

/// Calls of both PEs, of any size and anywhere; and messages, behind a flag that is a word.
pub(crate) fn programs(calls: usize, streams: usize) -> impl Strategy<Value = Program> {
    (select(vec![2usize, 4, 8]), 2usize..=3, 1usize..=4).prop_flat_map(move |(bytes, words, pieces)| {
        let some = |most| prop::collection::vec(call(bytes, words, streams), 1..=most);
        let free = (some(calls), some(calls)).prop_map(move |(first, second)| [first, second]);
        let send = (some(calls), prop::option::of(select(vec![Op::Fence, Op::Quiet])), by(streams));
        let look = prop::collection::vec(call(bytes, words, 0), 1..=2);
        let message = (send, wait(bytes, words), look).prop_map(move |((mut send, order, stream), wait, look)| {
            let order = order.map(|op| Call { stream, ..host(op) });
            let flag = Call { stream, ..host(Op::P { to: 1, dst: words - 1, value: ONES }) };
            send.extend(order.into_iter().chain([flag]));
            [send, [host(wait)].into_iter().chain(look).collect()]
        });
        let hosts = prop_oneof![1 => free, 2 => message];
        hosts.prop_map(move |hosts| number(Program::new(words, hosts).in_pieces(pieces).of_bytes(bytes)))
    })
}

/// A call about words, or about bytes.
fn call(bytes: usize, words: usize, streams: usize) -> impl Strategy<Value = Call> {
    let of_words = (by(streams), moves(words, 2)).prop_map(|(stream, op)| Call { stream, ..host(op) });
    let of_bytes =
        (by(streams), moves(words * bytes, 4)).prop_map(|(stream, op)| Call { stream, ..host(op).in_bytes() });
    let orders = vec![Op::Fence, Op::Quiet, Op::Flush];
    let orders = (by(streams), select(orders)).prop_map(|(stream, op)| Call { stream, ..host(op) });
    let waits = (by(streams), wait(bytes, words)).prop_map(|(stream, op)| Call { stream, ..host(op) });
    let any = prop_oneof![6 => of_words, 8 => of_bytes, 4 => orders, 1 => waits];
    let any = match bytes {
        8 => prop_oneof![2 => any, 1 => (by(streams), atomic(words)).prop_map(|(stream, op)| Call { stream, ..host(op) })].boxed(),
        _ => any.boxed(),
    };
    // what only hosts do, they do
    any.prop_map(|call| match call.op {
        Op::Amo { .. } | Op::SignalFetch { .. } => Call { stream: None, ..call },
        Op::G { .. } | Op::Read { .. } | Op::PeerStore { .. } | Op::PeerLoad { .. } => Call { stream: None, ..call },
        _ => call,
    })
}

/// A wait for the last word: mostly for anything, at times for what some of its bytes alone are.
fn wait(bytes: usize, words: usize) -> impl Strategy<Value = Op> {
    let whole = u64::MAX >> (64 - 8 * bytes);
    let part = (1u64..=3, 0..8 * bytes).prop_map(move |(number, shift)| ((ONES * number) & whole) >> (shift / 8 * 8));
    let wanted = prop_oneof![3 => Just((Cmp::Ge, 1)), 1 => (select(Cmp::ALL.to_vec()), part)];
    wanted.prop_map(move |(cmp, value)| Op::Wait { word: words - 1, cmp, value, signal: false })
}

/// What signals and atomic operations do with words of 8 bytes.
fn atomic(words: usize) -> impl Strategy<Value = Op> {
    let (pe, word) = (|| 0..PES, move || 0..words);
    let update = (word(), any::<bool>()).prop_map(|(word, add)| Update { word, value: 1, add });
    let amo = (pe(), word(), select(AmoOp::ALL.to_vec()), any::<bool>());
    prop_oneof![
        3 => (pe(), update).prop_map(|(to, update)| Op::Signal { to, update }),
        3 => amo.prop_map(|(to, dst, op, fetch)| {
            let fetch = fetch || matches!(op, AmoOp::Fetch | AmoOp::CompareSwap);
            Op::Amo { to, dst, op, value: 1, cond: 0, fetch }
        }),
        1 => word().prop_map(|word| Op::SignalFetch { word }),
        1 => word().prop_map(|word| Op::Wait { word, cmp: Cmp::Ge, value: 1, signal: true }),
    ]
}

/// What moves up to `most` elements among `elements`.
fn moves(elements: usize, most: usize) -> impl Strategy<Value = Op> {
    let pe = || 0..PES;
    let range = move || {
        (0..elements, 0..elements, 1..=most)
            .prop_map(move |(a, b, len)| (a.min(elements - len), b.min(elements - len), len))
    };
    let value = || prop_oneof![1 => Just(0), 5 => Just(ONES)];
    let strided = (0..elements, 0..elements, 1usize..=2, 1usize..=2).prop_map(move |(dst, src, a, b)| {
        let (a, b) = (a.min(elements - 1), b.min(elements - 1));
        (dst.min(elements - 1 - a), src.min(elements - 1 - b), (a, b))
    });
    prop_oneof![
        3 => (pe(), 0..elements, value()).prop_map(|(to, dst, value)| Op::P { to, dst, value }),
        5 => (pe(), range(), any::<bool>())
            .prop_map(|(to, (dst, src, len), nbi)| Op::Put { to, dst, src, len, nbi, signal: None }),
        2 => (pe(), range(), any::<bool>()).prop_map(|(from, (dst, src, len), nbi)| Op::Get { from, dst, src, len, nbi }),
        1 => (pe(), strided.clone())
            .prop_map(|(to, (dst, src, strides))| Op::IPut { to, dst, src, strides, count: 2 }),
        1 => (pe(), strided).prop_map(|(from, (dst, src, strides))| Op::IGet { from, dst, src, strides, count: 2 }),
        2 => (range(), value()).prop_map(|((dst, _, len), value)| Op::Write { dst, len, value }),
        2 => range().prop_map(|(_, src, len)| Op::Read { src, len }),
        1 => (pe(), 0..elements).prop_map(|(from, src)| Op::G { from, src }),
        3 => (pe(), range(), value()).prop_map(|(to, (dst, _, len), value)| Op::PeerStore { to, dst, len, value }),
        2 => (pe(), range()).prop_map(|(of, (_, src, len))| Op::PeerLoad { of, src, len }),
    ]
}

/// Transfers between words that are symmetric and words that are local operands, all of them registered, with what completes them.
pub(crate) fn registered(calls: usize, streams: usize) -> impl Strategy<Value = Program> {
    let (symmetric, local) = (2usize, 2usize);
    let mine = move || prop_oneof![2 => Just(symmetric), 1 => Just(symmetric + 1), 1 => Just(0usize), 1 => Just(1)];
    let (pe, theirs) = (|| 0..PES, move || 0..symmetric);
    let run = (pe(), prop_oneof![Just(symmetric), Just(0)], any::<bool>(), any::<bool>());
    let op = prop_oneof![
        4 => (pe(), theirs(), mine(), any::<bool>())
            .prop_map(|(to, dst, src, nbi)| Op::Put { to, dst, src, len: 1, nbi, signal: None }),
        3 => (pe(), mine(), theirs(), any::<bool>())
            .prop_map(|(from, dst, src, nbi)| Op::Get { from, dst, src, len: 1, nbi }),
        2 => run.prop_map(|(pe, mine, nbi, puts)| match puts {
            true => Op::Put { to: pe, dst: 0, src: mine, len: 2, nbi, signal: None },
            false => Op::Get { from: pe, dst: mine, src: 0, len: 2, nbi },
        }),
        1 => (pe(), theirs()).prop_map(|(to, dst)| Op::P { to, dst, value: 1 }),
        3 => select(vec![Op::Fence, Op::Quiet, Op::Flush]),
    ];
    let of_hosts = prop_oneof![
        2 => mine().prop_map(|dst| Op::Write { dst, len: 1, value: 1 }),
        2 => mine().prop_map(|src| Op::Read { src, len: 1 }),
        1 => (pe(), theirs()).prop_map(|(of, src)| Op::PeerLoad { of, src, len: 1 }),
        1 => Just(Op::Enter(Collective::Barrier)),
    ];
    let call = move || {
        let of_streams = (by(streams), op.clone()).prop_map(|(stream, op)| Call { stream, ..host(op) });
        prop_oneof![3 => of_streams, 1 => of_hosts.clone().prop_map(host)]
    };
    let [first, second] = [(); 2].map(|()| prop::collection::vec(call(), 1..=calls));
    (first, second, 1usize..=2).prop_map(move |(mut first, mut second, pieces)| {
        // as many barriers on both
        let barriers = |calls: &[Call]| calls.iter().filter(|call| matches!(call.op, Op::Enter(_))).count();
        while barriers(&first) != barriers(&second) {
            let fewer = if barriers(&first) < barriers(&second) { &mut first } else { &mut second };
            fewer.push(host(Op::Enter(Collective::Barrier)));
        }
        number(Program::new(symmetric + local, [first, second]).in_pieces(pieces).filled().registered(local))
    })
}
