//! What random kernels are drawn from.

use proptest::prelude::*;

use super::program::{PES, Part, Step, Vote, WORDS, Word};

/// With what comparison a loop goes on.
pub(crate) fn unless() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("lt"), 2 => Just("ne"), 1 => Just("eq"), 1 => Just("gt")]
}

pub(crate) fn poll() -> impl Strategy<Value = Step> {
    (0..WORDS, 1..=2u64, unless(), any::<bool>()).prop_map(|(word, value, unless, notes)| Step::Poll {
        word,
        unless,
        value,
        notes,
    })
}

pub(crate) fn poll_of_a_part() -> impl Strategy<Value = Step> {
    let part = prop_oneof![Just(Part::Odd), (0..=1u64).prop_map(Part::Above), (1..=2u64).prop_map(Part::From)];
    (0..WORDS, part, any::<bool>(), any::<bool>()).prop_map(|(word, part, gives_up, notes)| Step::PollPart {
        word,
        part,
        gives_up,
        notes,
    })
}

/// Polls of two words, which may be the same.
pub(crate) fn two_words() -> impl Strategy<Value = ([usize; 2], u64, bool)> {
    let words = prop_oneof![1 => Just([0, 1]), 2 => [0..WORDS, 0..WORDS]];
    (words, 1..=2u64, any::<bool>())
}

pub(crate) fn either() -> impl Strategy<Value = Step> {
    two_words().prop_map(|(words, value, notes)| Step::Either { words, value, notes })
}

pub(crate) fn both() -> impl Strategy<Value = Step> {
    two_words().prop_map(|(words, value, notes)| Step::Both { words, value, notes })
}

/// Threads that look at several words in each round, and change them.
pub(crate) fn talk_of_several() -> impl Strategy<Value = Vec<Step>> {
    let (word, value) = (|| 0..WORDS, || 1..=2u64);
    let step = prop_oneof![
        3 => both(),
        3 => either(),
        1 => poll(),
        1 => (word(), value()).prop_map(|(word, value)| Step::Store { word, value }),
        1 => word().prop_map(|word| Step::Store { word, value: 0 }),
        1 => word().prop_map(|word| Step::Load { word }),
        1 => word().prop_map(|word| Step::Add { word }),
        4 => (0..PES, word(), value()).prop_map(|(to, word, value)| Step::Signal { to, word, value }),
        1 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
    ];
    prop::collection::vec(step, 0..=3)
}

/// A poll of another PE's memory, mostly.
pub(crate) fn pull() -> impl Strategy<Value = Step> {
    (0..PES, 0..WORDS, 1..=2u64, any::<bool>()).prop_map(|(of, word, value, notes)| Step::Pull {
        of,
        word,
        value,
        notes,
    })
}

/// A poll of a PE's memory by an atomic fetch.
pub(crate) fn fetch() -> impl Strategy<Value = Step> {
    (0..PES, 0..WORDS, 1..=2u64, any::<bool>()).prop_map(|(of, word, value, notes)| Step::Fetch {
        of,
        word,
        value,
        notes,
    })
}

/// Threads that send words to each other and to themselves, with fences and quiets, and fetch them, take them, or test them together.
pub(crate) fn talk_of_fetches() -> impl Strategy<Value = Vec<Step>> {
    let (word, value) = (|| 0..WORDS, || 1..=2u64);
    let step = prop_oneof![
        4 => fetch(),
        3 => lock(),
        2 => value().prop_map(|value| Step::All { value }),
        4 => (0..PES, word(), value()).prop_map(|(to, word, value)| Step::Signal { to, word, value }),
        2 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
        1 => word().prop_map(|word| Step::Load { word }),
        1 => (word(), value()).prop_map(|(word, value)| Step::Store { word, value }),
        2 => Just(Step::Fence),
        1 => Just(Step::Quiet),
    ];
    prop::collection::vec(step, 1..=3)
}

/// A poll of shared memory.
pub(crate) fn wait_inside() -> impl Strategy<Value = Step> {
    (unless(), 1..=2u64, any::<bool>()).prop_map(|(unless, value, notes)| Step::Await { unless, value, notes })
}

/// Threads that talk in shared memory, and to those of the other PE.
pub(crate) fn talk_inside() -> impl Strategy<Value = Vec<Step>> {
    let swap = (0..=2u64, 0..=2u64).prop_map(|(from, to)| Step::SwapShared { from, to });
    let step = prop_oneof![
        5 => wait_inside(),
        3 => (0..=2u64).prop_map(|value| Step::SetShared { value }),
        2 => Just(Step::Count),
        1 => Just(Step::Ticket),
        2 => swap,
        2 => pull(),
        2 => (0..PES, 0..WORDS).prop_map(|(to, word)| Step::AddSignal { to, word }),
        1 => (0..WORDS, 1..=2u64).prop_map(|(word, value)| Step::Store { word, value }),
    ];
    prop::collection::vec(step, 0..=3)
}

pub(crate) fn swap() -> impl Strategy<Value = Step> {
    let from = prop_oneof![4 => Just(0u64), 2 => Just(1), 1 => Just(2)];
    (0..PES, 0..WORDS, from, 0..=2u64).prop_map(|(of, word, from, to)| Step::Swap { of, word, from, to })
}

/// A lock that is taken by a call.
pub(crate) fn lock() -> impl Strategy<Value = Step> {
    let from = prop_oneof![4 => Just(0u64), 2 => Just(1), 1 => Just(2)];
    (0..PES, 0..WORDS, from, 0..=2u64).prop_map(|(of, word, from, to)| Step::Lock { of, word, from, to })
}

/// Threads that send words to each other, and poll them.
pub(crate) fn talk() -> impl Strategy<Value = Vec<Step>> {
    let (word, value) = (|| 0..WORDS, || 1..=2u64);
    let step = prop_oneof![
        3 => poll(),
        2 => poll_of_a_part(),
        1 => swap(),
        1 => (word(), word(), value()).prop_map(|(one, other, value)| Step::Twice { words: [one, other], value }),
        1 => word().prop_map(|word| Step::Load { word }),
        1 => (word(), value()).prop_map(|(word, value)| Step::Store { word, value }),
        1 => word().prop_map(|word| Step::Add { word }),
        4 => (0..PES, word(), value()).prop_map(|(to, word, value)| Step::Signal { to, word, value }),
        2 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
    ];
    prop::collection::vec(step, 1..=3)
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(one(), 0..=2)
}

pub(crate) fn one() -> impl Strategy<Value = Step> {
    let word = || 0..WORDS;
    let value = || 1..=2u64;
    prop_oneof![
        3 => poll(),
        2 => poll_of_a_part(),
        1 => swap(),
        1 => (word(), word(), value()).prop_map(|(one, other, value)| Step::Twice { words: [one, other], value }),
        1 => either(),
        1 => both(),
        2 => fetch(),
        1 => lock(),
        1 => value().prop_map(|value| Step::All { value }),
        2 => (word(), any::<bool>(), value()).prop_map(|(word, least, value)| Step::Wait { word, least, value }),
        2 => word().prop_map(|word| Step::Load { word }),
        2 => (word(), value()).prop_map(|(word, value)| Step::Store { word, value }),
        1 => word().prop_map(|word| Step::Add { word }),
        1 => word().prop_map(|word| Step::Take { word }),
        4 => (0..PES, word(), value()).prop_map(|(to, word, value)| Step::Signal { to, word, value }),
        2 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
        1 => Just(Step::Ticket),
        1 => Just(Step::Count),
        1 => wait_inside(),
        1 => pull(),
        1 => Just(Step::Meet),
        1 => Just(Step::Fence),
        1 => Just(Step::Quiet),
    ]
}

/// Threads of a block that do something, vote in a loop, and do something, beside `others` that vote on nothing.
pub(crate) fn voters(voters: usize, others: usize) -> impl Strategy<Value = Vec<Vec<Step>>> {
    let word = || prop_oneof![1 => Just(None), 3 => (0..WORDS).prop_map(|word| Some(Word::Global(word))), 2 => Just(Some(Word::Shared))];
    let until = (word(), 1..=2u64).prop_map(|(word, value)| word.map(|word| (word, value)));
    let round = (until, word(), prop_oneof![3 => Just(None), 2 => (0..WORDS).prop_map(Some)]);
    // who waits at a barrier for those who vote is a finding of its own
    let other = || one().prop_map(|step| if matches!(step, Step::Meet) { Step::Count } else { step });
    let around = |most: usize| prop::collection::vec(prop_oneof![2 => other(), 1 => Just(Step::Count)], 0..=most);
    let voting = prop::collection::vec((around(1), round, around(1)), voters);
    let weighted = prop::bool::weighted;
    (weighted(0.7), weighted(0.4), voting, prop::collection::vec(around(2), others)).prop_map(
        move |(all, only_looks, voting, others)| {
            let steps = |(before, (until, reads, tells), behind): (Vec<Step>, _, Vec<Step>)| {
                let reads = if only_looks { None } else { reads };
                [before, vec![Step::Vote(Vote { voters, all, until, reads, tells })], behind].concat()
            };
            voting.into_iter().map(steps).chain(others).collect()
        },
    )
}

/// Threads that add to words, and take from them, and wait until the balance is right.
pub(crate) fn balances() -> impl Strategy<Value = Vec<Step>> {
    let (word, by) = (|| 0..WORDS - 1, || prop_oneof![Just(1i64), Just(-1), Just(2), Just(-2)]);
    let step = prop_oneof![
        2 => (word(), any::<bool>(), -1..=1i64).prop_map(|(word, least, value)| Step::Balance { word, least, value }),
        2 => (word(), by()).prop_map(|(word, by)| Step::Move { word, by }),
        3 => (0..PES, word(), by()).prop_map(|(to, word, by)| Step::MoveSignal { to, word, by }),
    ];
    prop::collection::vec(step, 0..=3)
}

/// Threads that count, and ask who comes last. Others look at what was counted, or begin anew.
pub(crate) fn arrives() -> impl Strategy<Value = Vec<Step>> {
    let word = || prop_oneof![4 => Just(0usize), 1 => Just(1)];
    let arrive = (word(), prop_oneof![6 => Just(1u64), 1 => Just(2)], 0..=3u64, prop::option::weighted(0.4, 1..WORDS))
        .prop_map(|(word, by, asks, tells)| Step::Arrive { word: Word::Global(word), by, asks, tells });
    let other = prop_oneof![
        2 => (0..WORDS).prop_map(|word| Step::Load { word }),
        1 => word().prop_map(|word| Step::Store { word, value: 0 }),
        1 => word().prop_map(|word| Step::Add { word }),
        1 => word().prop_map(|word| Step::Take { word }),
        2 => (1..WORDS, any::<bool>()).prop_map(|(word, notes)| Step::Poll { word, unless: "lt", value: 1, notes }),
        1 => (word(), 1..=3u64).prop_map(|(word, value)| Step::Poll { word, unless: "lt", value, notes: false }),
        1 => (0..PES, word()).prop_map(|(to, word)| Step::AddSignal { to, word }),
    ];
    prop::collection::vec(prop_oneof![3 => arrive, 1 => other], 1..=2)
}

/// The same in shared memory.
pub(crate) fn arrives_inside() -> impl Strategy<Value = Vec<Step>> {
    let arrive = (prop_oneof![6 => Just(1u64), 1 => Just(2)], 0..=3u64, prop::option::weighted(0.4, 0..WORDS))
        .prop_map(|(by, asks, tells)| Step::Arrive { word: Word::Shared, by, asks, tells });
    let other = prop_oneof![
        2 => (0..WORDS).prop_map(|word| Step::Load { word }),
        1 => Just(Step::SetShared { value: 0 }),
        1 => Just(Step::Count),
        1 => Just(Step::Ticket),
        2 => (0..WORDS, any::<bool>()).prop_map(|(word, notes)| Step::Poll { word, unless: "lt", value: 1, notes }),
        1 => wait_inside(),
        1 => (0..PES, 0..WORDS).prop_map(|(to, word)| Step::AddSignal { to, word }),
    ];
    prop::collection::vec(prop_oneof![3 => arrive, 1 => other], 1..=2)
}
