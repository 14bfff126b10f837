//! Random programs.

use proptest::prelude::*;

use super::program::{BLOCKS, Fetch, Order, PES, Program, SHARED, Scope, Step, WORDS};

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![1 => Just(Scope::Cta), 2 => Just(Scope::Gpu), 3 => Just(Scope::Sys)]
}

fn strong() -> impl Strategy<Value = Order> {
    prop_oneof![scope().prop_map(Order::Relaxed), scope().prop_map(Order::Strong)]
}

fn fence() -> impl Strategy<Value = Step> {
    (scope(), any::<bool>()).prop_map(|(scope, sc)| Step::Fence { scope, sc })
}

fn fetch() -> impl Strategy<Value = Fetch> {
    prop_oneof![Just(Fetch::Nothing), Just(Fetch::Notes)]
}

const FLAG: usize = 2;

/// What a thread does.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (pe, data, flag) = (|| 0..PES, || 0..FLAG, || FLAG..WORDS);
    let of = || prop_oneof![5 => pe(), 1 => Just(SHARED)];
    let order = || prop_oneof![6 => Just(Order::Weak), 1 => strong()];
    prop_oneof![
        3 => (of(), data(), order()).prop_map(|(of, word, order)| Step::Read { of, word, order }),
        3 => (of(), data(), order()).prop_map(|(of, word, order)| Step::Write { of, word, value: 5, order }),
        1 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Read { of, word, order }),
        3 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Write { of, word, value: 1, order }),
        3 => (of(), flag(), 1..=2u64, strong()).prop_map(|(of, word, value, order)| Step::Await { of, word, value, order }),
        2 => (of(), flag(), strong(), fetch()).prop_map(|(of, word, order, fetch)| Step::Add { of, word, order, fetch }),
        3 => fence(),
        2 => Just(Step::Meet),
        2 => pe().prop_map(|to| Step::Signal { to }),
        2 => (1..=2u64).prop_map(|value| Step::Wait { value }),
        1 => (1..=2u64, prop_oneof![Just(Order::Relaxed(Scope::Sys)), Just(Order::Strong(Scope::Sys))])
            .prop_map(|(value, order)| Step::Look { value, order }),
        1 => (pe(), data()).prop_map(|(to, word)| Step::P { to, word, value: 5 }),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
        1 => pe().prop_map(|to| Step::Put { to, word: 0, src: 1 }),
        1 => Just(Step::NvshmemFence),
        1 => Just(Step::Quiet),
    ]
}

/// Few threads that hand something over: each waits for a flag or a signal, uses data, and sets the next flag.
pub(crate) fn chains() -> impl Strategy<Value = Program> {
    let (pe, data, flag) = (|| 0..PES, || 0..FLAG, || FLAG..WORDS);
    let of = || prop_oneof![5 => pe(), 1 => Just(SHARED)];
    let orders =
        || prop_oneof![3 => fence(), 1 => Just(Step::NvshmemFence), 1 => Just(Step::Quiet), 2 => Just(Step::Meet)];
    let hear = prop_oneof![
        3 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Await { of, word, value: 1, order }),
        1 => Just(Step::Wait { value: 1 }),
        1 => prop_oneof![Just(Order::Relaxed(Scope::Sys)), Just(Order::Strong(Scope::Sys))]
            .prop_map(|order| Step::Look { value: 1, order }),
    ];
    let at = || prop_oneof![2 => pe(), 1 => Just(SHARED)];
    let touch = prop_oneof![
        3 => (at(), data()).prop_map(|(of, word)| Step::Read { of, word, order: Order::Weak }),
        3 => (at(), data()).prop_map(|(of, word)| Step::Write { of, word, value: 5, order: Order::Weak }),
        1 => (pe(), data()).prop_map(|(to, word)| Step::P { to, word, value: 5 }),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
        1 => pe().prop_map(|to| Step::Put { to, word: 0, src: 1 }),
    ];
    let tell = prop_oneof![
        3 => (of(), flag(), strong()).prop_map(|(of, word, order)| Step::Write { of, word, value: 1, order }),
        1 => (of(), flag(), strong(), fetch()).prop_map(|(of, word, order, fetch)| Step::Add { of, word, order, fetch }),
        2 => pe().prop_map(|to| Step::Signal { to }),
    ];
    let maybe = |step: BoxedStrategy<Step>, often: f64| prop::option::weighted(often, step);
    let (hear, touch, tell) = (hear.boxed(), touch.boxed(), tell.boxed());
    let link = (
        maybe(hear, 0.7),
        maybe(orders().boxed(), 0.5),
        touch.clone(),
        maybe(touch, 0.3),
        maybe(orders().boxed(), 0.5),
        maybe(tell, 0.8),
    );
    let link = link.prop_map(|(hear, acquire, touch, more, release, tell)| {
        [hear, acquire, Some(touch), more, release, tell].into_iter().flatten().collect::<Vec<Step>>()
    });
    let threads = PES * BLOCKS * 2;
    prop::collection::vec((0..threads, link), 2..=4).prop_map(move |links| {
        let mut steps = vec![Vec::new(); threads];
        links.into_iter().for_each(|(thread, link)| steps[thread] = link);
        Program::of_threads(steps)
    })
}

/// A few threads use data, count, and use data again if they are the one that comes last, or first, or if they are not. `inside`: mostly those of one block, in its
/// shared memory.
pub(crate) fn counts(inside: bool) -> impl Strategy<Value = Program> {
    let mostly = if inside { SHARED } else { 0 };
    let of = move || prop_oneof![8 => Just(mostly), 1 => Just(0), 1 => Just(1)];
    let touch = || {
        (of(), 0..FLAG, any::<bool>()).prop_map(|(of, word, writes)| match writes {
            true => Step::Write { of, word, value: 5, order: Order::Weak },
            false => Step::Read { of, word, order: Order::Weak },
        })
    };
    let fence = || prop::option::weighted(0.8, (prop_oneof![Just(Scope::Gpu), Just(Scope::Sys)], any::<bool>()));
    let of_fence = |(scope, sc)| Step::Fence { scope, sc };
    let far = || prop_oneof![Just(Scope::Gpu), Just(Scope::Sys)];
    let order = prop_oneof![far().prop_map(Order::Relaxed), far().prop_map(Order::Strong)];
    let word = prop_oneof![9 => Just(FLAG), 1 => Just(FLAG + 1)];
    let resets = prop::option::weighted(0.15, any::<bool>());
    let thread = (
        prop::option::weighted(0.7, touch()),
        fence(),
        (of(), word, order, 0..=2u64, prop::bool::weighted(0.2)),
        fence(),
        touch(),
        (resets, prop::option::weighted(0.3, touch())),
    );
    let thread = thread.prop_map(move |(before, release, count, acquire, behind, (resets, last))| {
        let (of, word, order, number, unless) = count;
        let reset = resets.map(|strongly| {
            let order = if strongly { Order::Strong(Scope::Sys) } else { Order::Weak };
            Step::Write { of, word, value: 0, order }
        });
        let then: Vec<Step> = [acquire.map(of_fence), Some(behind), reset].into_iter().flatten().collect();
        let fetch = Fetch::Asks { number, unless, steps: then.len() };
        let count = Step::Add { of, word, order, fetch };
        let first = [before, release.map(of_fence), Some(count)].into_iter().flatten();
        first.chain(then).chain(last).collect::<Vec<Step>>()
    });
    let threads = PES * BLOCKS * 2;
    let who = if inside { prop_oneof![6 => 0..2usize, 1 => 2..threads].boxed() } else { (0..threads).boxed() };
    prop::collection::vec((who, thread), 2..=3).prop_map(move |all| {
        let mut steps = vec![Vec::new(); threads];
        all.into_iter().for_each(|(thread, of_thread)| steps[thread] = of_thread);
        Program::of_threads(steps)
    })
}

/// Two threads of a block use a word, mostly one of its shared memory, and hear of each other by flags and signals, mostly through a thread of
/// another block.
pub(crate) fn relays() -> impl Strategy<Value = Program> {
    let (pe, flag) = (|| 0..PES, || FLAG..WORDS);
    let order = || {
        prop_oneof![
            4 => (prop_oneof![Just(Scope::Gpu), Just(Scope::Sys)], any::<bool>()).prop_map(|(scope, sc)| Step::Fence { scope, sc }),
            1 => Just(Step::Quiet),
            1 => Just(Step::NvshmemFence),
        ]
    };
    let far = || prop_oneof![1 => Just(Scope::Gpu), 4 => Just(Scope::Sys)];
    let strong = || prop_oneof![far().prop_map(Order::Relaxed), far().prop_map(Order::Strong)];
    let touch = || {
        let (word, order) = (0, Order::Weak);
        (prop_oneof![2 => Just(SHARED), 1 => Just(0)], any::<bool>()).prop_map(move |(of, writes)| match writes {
            true => Step::Write { of, word, value: 5, order },
            false => Step::Read { of, word, order },
        })
    };
    let tell = || {
        prop_oneof![
            2 => (pe(), flag(), strong()).prop_map(|(of, word, order)| Step::Write { of, word, value: 1, order }),
            1 => (pe(), flag(), strong()).prop_map(|(of, word, order)| Step::Add { of, word, order, fetch: Fetch::Notes }),
            1 => pe().prop_map(|to| Step::Signal { to }),
        ]
    };
    // whoever hears looks where the other tells, if it can
    let hears = |tell: &Step, order: Order| match *tell {
        Step::Write { of, word, .. } | Step::Add { of, word, .. } => Step::Await { of, word, value: 1, order },
        _ => Step::Wait { value: 1 },
    };
    let maybe = |step: BoxedStrategy<Step>| prop::option::weighted(0.8, step);
    let first = (touch(), maybe(order().boxed()), tell());
    let relay = prop::option::weighted(0.7, (strong(), maybe(order().boxed()), tell(), 2..PES * BLOCKS * 2));
    let last = (strong(), maybe(order().boxed()), touch());
    (first, relay, last).prop_map(move |(first, relay, last)| {
        let mut steps = vec![Vec::new(); PES * BLOCKS * 2];
        let (touch, release, tell) = first;
        steps[0] = [Some(touch), release, Some(tell)].into_iter().flatten().collect();
        let mut heard = tell;
        if let Some((strength, between, tell, thread)) = relay {
            steps[thread] = [Some(hears(&heard, strength)), between, Some(tell)].into_iter().flatten().collect();
            heard = tell;
        }
        let (strength, acquire, touch) = last;
        steps[1] = [Some(hears(&heard, strength)), acquire, Some(touch)].into_iter().flatten().collect();
        Program::of_threads(steps)
    })
}

/// Two threads of a block use words before, between and behind their arrival and their wait at a barrier. One of them may tell another PE of it,
/// mostly of what the other thread has used.
pub(crate) fn arrivals() -> impl Strategy<Value = Program> {
    let far = || prop_oneof![Just(Scope::Gpu), Just(Scope::Sys)];
    let strong = || prop_oneof![far().prop_map(Order::Relaxed), far().prop_map(Order::Strong)];
    let access = |(of, word, order, writes): (usize, usize, Order, bool)| match writes {
        true => Step::Write { of, word, value: 5, order },
        false => Step::Read { of, word, order },
    };
    let touch = move || {
        let at = || prop_oneof![2 => Just(SHARED), 2 => Just(0), 1 => Just(1)];
        prop_oneof![
            3 => (at(), 0..FLAG, Just(Order::Weak), any::<bool>()).prop_map(access),
            1 => (at(), FLAG..WORDS, strong(), any::<bool>()).prop_map(access),
        ]
    };
    let maybe = |step: BoxedStrategy<Step>, often: f64| prop::option::weighted(often, step);
    let thread = move || {
        let orders = |often| maybe(fence().boxed(), often);
        let arrive = prop_oneof![4 => Just(true), 1 => Just(false)].prop_map(|releases| Step::Arrive { releases });
        // who does not wait has ended, or never comes
        let meets = prop_oneof![8 => Just(2), 1 => Just(1), 1 => Just(0)];
        let touches = (maybe(touch().boxed(), 0.7), maybe(touch().boxed(), 0.3), maybe(touch().boxed(), 0.5));
        (touches, orders(0.5), arrive, meets, orders(0.2)).prop_map(
            |((before, between, behind), fence, arrive, meets, last)| {
                let (arrive, arrived) = ((meets > 0).then_some(arrive), (meets > 1).then_some(Step::Arrived));
                [before, fence, arrive, between, arrived, behind, last].into_iter().flatten().collect::<Vec<Step>>()
            },
        )
    };
    let flag = (0..PES, FLAG..WORDS, strong(), strong(), prop::option::weighted(0.2, touch()));
    (thread(), thread(), prop::option::weighted(0.7, flag)).prop_map(|(first, mut second, flag)| {
        let mut steps = vec![Vec::new(); PES * BLOCKS * 2];
        if let Some((of, word, tells, hears, touch)) = flag {
            let against = first.iter().find_map(|step| match *step {
                Step::Write { of, word, order, .. } if of != SHARED => Some(Step::Read { of, word, order }),
                Step::Read { of, word, order } if of != SHARED => Some(Step::Write { of, word, value: 5, order }),
                _ => None,
            });
            second.push(Step::Write { of, word, value: 1, order: tells });
            let hears =
                [Step::Await { of, word, value: 1, order: hears }, Step::Fence { scope: Scope::Sys, sc: false }];
            steps[PES * BLOCKS] = hears.into_iter().chain(touch.or(against)).collect();
        }
        (steps[0], steps[1]) = (first, second);
        Program::of_threads(steps)
    })
}

/// Threads that do anything.
pub(crate) fn threads() -> impl Strategy<Value = Program> {
    prop::collection::vec(prop::collection::vec(step(), 0..=3), PES * BLOCKS * 2).prop_map(Program::of_threads)
}

/// What a host or a stream does; `reads`: a host, which has memory at hand.
fn call(reads: bool) -> BoxedStrategy<Step> {
    let (pe, data) = (|| 0..PES, || 0..FLAG);
    let calls = prop_oneof![
        3 => (pe(), data()).prop_map(|(to, word)| Step::P { to, word, value: 5 }),
        3 => pe().prop_map(|to| Step::Signal { to }),
        3 => (1..=2u64).prop_map(|value| Step::Wait { value }),
        1 => Just(Step::NvshmemFence),
        2 => Just(Step::Quiet),
    ];
    let order = Order::Weak;
    let own = prop_oneof![
        3 => data().prop_map(move |word| Step::Read { of: 0, word, order }),
        3 => data().prop_map(move |word| Step::Write { of: 0, word, value: 5, order }),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
    ];
    match reads {
        true => prop_oneof![3 => calls, 2 => own].boxed(),
        false => calls.boxed(),
    }
}

/// What a host of this PE does: it reads and writes its own memory.
fn own(pe: usize) -> impl Fn(Step) -> Step {
    move |step| match step {
        Step::Read { word, order, .. } => Step::Read { of: pe, word, order },
        Step::Write { word, value, order, .. } => Step::Write { of: pe, word, value, order },
        step => step,
    }
}

/// A few of hosts, streams and threads hand something over, as in `chains`.
pub(crate) fn chains_with_hosts() -> impl Strategy<Value = Program> {
    let (pe, data, flag) = (|| 0..PES, || 0..FLAG, || FLAG..WORDS);
    let order = Order::Weak;
    let hear = Just(Step::Wait { value: 1 }).boxed();
    let complete = prop_oneof![Just(Step::NvshmemFence), Just(Step::Quiet)].boxed();
    let sends = (pe(), data()).prop_map(|(to, word)| Step::P { to, word, value: 5 });
    let tell = pe().prop_map(|to| Step::Signal { to }).boxed();
    let of_host = prop_oneof![
        3 => data().prop_map(move |word| Step::Read { of: 0, word, order }),
        3 => data().prop_map(move |word| Step::Write { of: 0, word, value: 5, order }),
        2 => sends.clone(),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
    ];
    let of_thread = prop_oneof![
        3 => (pe(), data()).prop_map(move |(of, word)| Step::Read { of, word, order }),
        3 => (pe(), data()).prop_map(move |(of, word)| Step::Write { of, word, value: 5, order }),
        2 => sends.clone(),
        1 => (pe(), data()).prop_map(|(of, word)| Step::G { of, word }),
        1 => pe().prop_map(|to| Step::Put { to, word: 0, src: 1 }),
    ];
    let system = || prop_oneof![Just(Order::Relaxed(Scope::Sys)), Just(Order::Strong(Scope::Sys))];
    let thread_hears = prop_oneof![
        3 => Just(Step::Wait { value: 1 }),
        1 => system().prop_map(|order| Step::Look { value: 1, order }),
        1 => (pe(), flag(), system()).prop_map(|(of, word, order)| Step::Await { of, word, value: 1, order }),
    ];
    let thread_tells = prop_oneof![
        3 => tell.clone(),
        1 => (pe(), flag(), system()).prop_map(|(of, word, order)| Step::Write { of, word, value: 1, order }),
    ];
    let thread_orders =
        prop_oneof![2 => complete.clone(), 1 => any::<bool>().prop_map(|sc| Step::Fence { scope: Scope::Sys, sc })];
    let link = |hear: BoxedStrategy<Step>,
                touch: BoxedStrategy<Step>,
                order: BoxedStrategy<Step>,
                tell: BoxedStrategy<Step>| {
        let maybe = |step: BoxedStrategy<Step>, often: f64| prop::option::weighted(often, step);
        let parts = (maybe(hear, 0.6), touch, maybe(order, 0.5), maybe(tell, 0.7));
        parts.prop_map(|(hear, touch, order, tell)| {
            [hear, Some(touch), order, tell].into_iter().flatten().collect::<Vec<Step>>()
        })
    };
    let host = || link(hear.clone(), of_host.clone().boxed(), complete.clone(), tell.clone());
    let thread = link(thread_hears.boxed(), of_thread.boxed(), thread_orders.boxed(), thread_tells.boxed()).boxed();
    let stream = link(hear.clone(), sends.boxed(), complete.clone(), tell.clone()).boxed();
    // one of a PE's host does something before, beside or behind its kernel, or nothing
    let host = (0..4usize, host(), any::<bool>()).prop_map(|(when, link, synchronizes)| {
        let at = |here: usize| if when == here { link.clone() } else { Vec::new() };
        let synchronize = (synchronizes || when == 2).then_some(Step::Synchronize);
        [at(0), vec![Step::Launch], at(1), Vec::from_iter(synchronize), at(2)].concat()
    });
    let often = |link: BoxedStrategy<Vec<Step>>, of: u32| prop_oneof![of => Just(Vec::new()), 10 => link];
    let threads = prop::collection::vec(often(thread, 15), PES * BLOCKS);
    let streams = prop::collection::vec(often(stream, 10), PES);
    assemble(threads, prop::collection::vec(host, PES), streams)
}

fn assemble(
    threads: impl Strategy<Value = Vec<Vec<Step>>>,
    hosts: impl Strategy<Value = Vec<Vec<Step>>>,
    streams: impl Strategy<Value = Vec<Vec<Step>>>,
) -> impl Strategy<Value = Program> {
    (threads, hosts, streams).prop_map(|(threads, hosts, streams)| {
        let mut program = Program::of_threads(threads);
        let hosts = hosts.into_iter().enumerate();
        program.steps.extend(hosts.map(|(pe, steps)| steps.into_iter().map(own(pe)).collect()));
        program.steps.extend(streams);
        program
    })
}

/// Hosts that launch a kernel with one thread in each block, and call NVSHMEM themselves, and on the stream behind the kernel.
pub(crate) fn hosts() -> impl Strategy<Value = Program> {
    let steps = |step: BoxedStrategy<Step>, most: usize| prop::collection::vec(step, 0..=most);
    let host = (steps(call(true), 2), steps(call(true), 1), any::<bool>(), steps(call(true), 2)).prop_map(
        |(before, beside, synchronizes, behind)| {
            let synchronize = synchronizes.then_some(Step::Synchronize);
            before
                .into_iter()
                .chain([Step::Launch])
                .chain(beside)
                .chain(synchronize)
                .chain(behind)
                .collect::<Vec<Step>>()
        },
    );
    let thread = prop_oneof![1 => Just(Vec::new()), 2 => steps(step().boxed(), 2)];
    let threads = prop::collection::vec(thread, PES * BLOCKS);
    let streams = prop::collection::vec(steps(call(false), 2), PES);
    assemble(threads, prop::collection::vec(host, PES), streams)
}
