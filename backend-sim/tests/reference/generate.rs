//! Random programs about everything.

use onesided::backend::AmoOp;
use onesided::{Cmp, ReduceOp};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::program::{Call, Collective, Op, Program, Update};

/// What a kind of random program consists of.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Calls in all, of all PEs, collectives left out.
    pub(crate) calls: usize,
    /// The most streams of a PE.
    pub(crate) streams: usize,
    pub(crate) collectives: usize,
    /// Every PE enters them on a stream.
    pub(crate) on_streams: bool,
}

/// Programs whose calls and their places are all random.
pub(crate) fn programs(kind: Kind) -> impl Strategy<Value = Program> {
    // collectives with a block for each PE need the room; on streams they have many schedules
    let pes = if kind.on_streams { 2usize..=2 } else { 2..=3 };
    let words = if kind.collectives > 0 { 3usize..=4 } else { 2..=3 };
    let pieces = prop_oneof![3 => Just(4usize), 1 => Just(1), 1 => Just(2)];
    (pes, words, pieces).prop_flat_map(move |(pes, words, pieces)| {
        let calls = prop::collection::vec((0..pes, call(pes, words, kind.streams)), 1..=kind.calls);
        let entering = (collective(pes, words, kind.on_streams), prop::collection::vec(any::<Index>(), pes));
        (calls, prop::collection::vec(entering, kind.collectives)).prop_map(move |(calls, entered)| {
            let mut hosts = vec![Vec::new(); pes];
            calls.into_iter().for_each(|(pe, call)| hosts[pe].push(call));
            for pe in 0..pes {
                let entered = entered.iter().map(|(collective, places)| (*collective, &places[pe]));
                insert_collectives(&mut hosts[pe], entered, kind.on_streams);
            }
            number(Program::new(words, hosts).in_pieces(pieces))
        })
    })
}

/// A call of a PE that has up to `streams` streams.
pub(super) fn call(pes: usize, words: usize, streams: usize) -> impl Strategy<Value = Call> {
    by(streams).prop_flat_map(move |stream| {
        let op = match stream {
            None => prop_oneof![4 => anywhere(pes, words), 3 => of_hosts(pes, words, streams)].boxed(),
            Some(_) => prop_oneof![8 => anywhere(pes, words), 1 => of_streams()].boxed(),
        };
        op.prop_map(move |op| Call { stream, op, in_bytes: false })
    })
}

pub(super) fn by(streams: usize) -> impl Strategy<Value = Option<usize>> {
    match streams {
        0 => Just(None).boxed(),
        _ => prop_oneof![1 => Just(None), 2 => (0..streams).prop_map(Some)].boxed(),
    }
}

/// Two places for `len` words each.
fn ranges(words: usize) -> impl Strategy<Value = (usize, usize, usize)> {
    (0..words, 0..words, 1usize..=2).prop_map(move |(a, b, len)| (a.min(words - len), b.min(words - len), len))
}

/// Two places for words with a stride each.
fn strided(words: usize) -> impl Strategy<Value = (usize, usize, (usize, usize), usize)> {
    (ranges(words), 1usize..words, 1usize..words).prop_map(move |((dst, src, count), a, b)| match count {
        1 => (dst, src, (1, 1), 1),
        _ => (dst.min(words - 1 - a), src.min(words - 1 - b), (a, b), 2),
    })
}

/// Whether a store's value is to be zero (it may take away what a wait waits for) or a number of its own.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 5 => Just(1)]
}

fn update(words: usize) -> impl Strategy<Value = Update> {
    (0..words, any::<bool>()).prop_map(|(word, add)| Update { word, value: 1, add })
}

/// What hosts do as well as streams.
fn anywhere(pes: usize, words: usize) -> impl Strategy<Value = Op> {
    let (pe, word) = (move || 0..pes, move || 0..words);
    let put = (pe(), ranges(words), any::<bool>(), prop::option::weighted(0.3, update(words))).prop_map(
        |(to, (dst, src, len), nbi, signal)| {
            let signal = signal.filter(|update| !(dst..dst + len).contains(&update.word));
            Op::Put { to, dst, src, len, nbi, signal }
        },
    );
    let get = (pe(), ranges(words), any::<bool>()).prop_map(|(from, (dst, src, len), nbi)| Op::Get {
        from,
        dst,
        src,
        len,
        nbi,
    });
    let iput =
        (pe(), strided(words)).prop_map(|(to, (dst, src, strides, count))| Op::IPut { to, dst, src, strides, count });
    let iget = (pe(), strided(words)).prop_map(|(from, (dst, src, strides, count))| Op::IGet {
        from,
        dst,
        src,
        strides,
        count,
    });
    prop_oneof![
        4 => (pe(), word(), value()).prop_map(|(to, dst, value)| Op::P { to, dst, value }),
        5 => put,
        2 => get,
        1 => iput,
        1 => iget,
        2 => (pe(), update(words)).prop_map(|(to, update)| Op::Signal { to, update }),
        2 => (word(), 1usize..=2, value()).prop_map(move |(dst, len, value)| {
            Op::Write { dst: dst.min(words - len), len, value }
        }),
        3 => Just(Op::Fence),
        3 => Just(Op::Quiet),
        1 => Just(Op::Flush),
        3 => wait(words),
    ]
}

fn wait(words: usize) -> impl Strategy<Value = Op> {
    let cmp = || prop_oneof![4 => Just(Cmp::Ge), 2 => select(Cmp::ALL.to_vec())];
    // mostly until something has come; from the far half of the circle, a zero is ahead
    let wanted = || prop_oneof![8 => Just(1u64), 1 => Just(0), 1 => Just((1 << 63) + 1)];
    let one = (0..words, cmp(), wanted(), any::<bool>()).prop_map(|(word, cmp, value, signal)| Op::Wait {
        word,
        cmp,
        value,
        signal,
    });
    let all = (0..words - 1, cmp(), prop::option::of(wanted()), prop::option::of(wanted()))
        .prop_map(|(word, cmp, a, b)| Op::WaitAll { word, cmp, values: [a, b] });
    prop_oneof![3 => one, 1 => all]
}

/// What only hosts do.
fn of_hosts(pes: usize, words: usize, streams: usize) -> impl Strategy<Value = Op> {
    let (pe, word) = (move || 0..pes, move || 0..words);
    let amo =
        (pe(), word(), select(AmoOp::ALL.to_vec()), any::<bool>(), 0u64..=1).prop_map(|(to, dst, op, fetch, cond)| {
            let fetch = fetch || matches!(op, AmoOp::Fetch | AmoOp::CompareSwap);
            Op::Amo { to, dst, op, value: 1, cond, fetch }
        });
    let store =
        (pe(), ranges(words), value()).prop_map(|(to, (dst, _, len), value)| Op::PeerStore { to, dst, len, value });
    let on_host = prop_oneof![
        3 => amo,
        2 => (pe(), word()).prop_map(|(from, src)| Op::G { from, src }),
        4 => ranges(words).prop_map(|(_, src, len)| Op::Read { src, len }),
        1 => word().prop_map(|word| Op::SignalFetch { word }),
        2 => store,
        1 => (pe(), ranges(words)).prop_map(|(of, (_, src, len))| Op::PeerLoad { of, src, len }),
    ];
    if streams == 0 {
        return on_host.boxed();
    }
    let of_streams = prop_oneof![
        2 => (0..streams).prop_map(|stream| Op::Synchronize { stream }),
        1 => (0..EVENTS).prop_map(|event| Op::SynchronizeEvent { event }),
    ];
    prop_oneof![3 => on_host, 1 => of_streams].boxed()
}

/// Events of a PE.
const EVENTS: usize = 2;

/// What only streams do.
fn of_streams() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..EVENTS).prop_map(|event| Op::Record { event }),
        (0..EVENTS).prop_map(|event| Op::WaitEvent { event })
    ]
}

fn collective(pes: usize, words: usize, on_streams: bool) -> impl Strategy<Value = Collective> {
    let op = || select(ReduceOp::ALL.to_vec());
    let (dst, shift) = (move || 0..words, move || 1..words);
    let everywhere = prop_oneof![
        1 => Just(Collective::Sync),
        1 => Just(Collective::Barrier),
        2 => (0..pes, dst(), shift()).prop_map(move |(root, dst, shift)| {
            Collective::Broadcast { root, dst, src: (dst + shift) % words, len: 1 }
        }),
        2 => (dst(), 0..words, op()).prop_map(|(dst, src, op)| Collective::Reduce { dst, src, len: 1, op }),
        1 => op().prop_map(|op| Collective::Reduce { dst: 0, src: 0, len: 2, op }),
    ];
    let everywhere = match words.checked_sub(pes) {
        None | Some(0) => everywhere.boxed(),
        Some(_) => {
            // blocks for all members, and one more word
            let fcollect = prop_oneof![Just((1, 0)), Just((0, pes))];
            prop_oneof![
                4 => everywhere,
                1 => fcollect.prop_map(|(dst, src)| Collective::Fcollect { dst, src, len: 1 }),
                1 => op().prop_map(move |op| Collective::ReduceScatter { dst: pes, src: 0, len: 1, op }),
            ]
            .boxed()
        }
    };
    let everywhere = if words < 2 * pes {
        everywhere
    } else {
        let alltoall = prop_oneof![Just((0, pes)), Just((pes, 0))];
        prop_oneof![4 => everywhere, 1 => alltoall.prop_map(|(dst, src)| Collective::Alltoall { dst, src, len: 1 })]
            .boxed()
    };
    if on_streams {
        return everywhere;
    }
    prop_oneof![6 => everywhere, 1 => Just(Collective::AllocFree), 1 => Just(Collective::Team)].boxed()
}

/// Puts collectives among a PE's calls, in their order.
pub(super) fn insert_collectives<'a>(
    calls: &mut Vec<Call>,
    entered: impl Iterator<Item = (Collective, &'a Index)>,
    on_streams: bool,
) {
    let mut earliest = 0;
    for (collective, place) in entered {
        let place = earliest + place.index(calls.len() + 1 - earliest);
        calls.insert(place, super::program::by(on_streams.then_some(0), Op::Enter(collective)));
        earliest = place + 1;
    }
}

/// Gives everything that stores, and does not store a zero, a value of its own. Sums stay below 256. Drops what the API refuses.
pub(super) fn number(mut program: Program) -> Program {
    for (pe, host) in program.hosts.iter_mut().enumerate() {
        host.retain(|call| !overlaps_itself(&call.op, pe));
    }
    for (n, call) in program.hosts.iter_mut().flatten().enumerate() {
        let n = n as u64 + 1;
        match &mut call.op {
            Op::P { value, .. } | Op::Write { value, .. } | Op::PeerStore { value, .. } => *value *= n,
            Op::Amo { op: AmoOp::Add, value, .. } => *value = 16 * n,
            Op::Amo { value, .. } => *value = n,
            Op::Signal { update, .. } | Op::Put { signal: Some(update), .. } => {
                update.value = if update.add { 16 * n } else { n };
            }
            _ => {}
        }
    }
    program
}

/// Whether a transfer of a PE to itself writes words that it reads.
fn overlaps_itself(op: &Op, pe: usize) -> bool {
    let (peer, dst, src, strides, count) = match *op {
        Op::Put { to: peer, dst, src, len, .. } | Op::Get { from: peer, dst, src, len, .. } => {
            (peer, dst, src, (1, 1), if dst == src { 0 } else { len }) // onto itself it moves nothing
        }
        Op::IPut { to: peer, dst, src, strides, count } | Op::IGet { from: peer, dst, src, strides, count } => {
            (peer, dst, src, strides, count)
        }
        _ => return false,
    };
    let mut pairs = (0..count).flat_map(|i| (0..count).map(move |j| (dst + i * strides.0, src + j * strides.1)));
    peer == pe && pairs.any(|(written, read)| written == read)
}
