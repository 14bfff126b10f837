//! The programs of `searched.rs`, for threads, with the types of whoever searches them.

/// Makes `execution`, with `thread`, `Arc`, `mpsc`, `AtomicU64` and `Ordering` from where it is called.
macro_rules! programs {
    () => {
        /// One execution by so many threads, this one included: what each has seen.
        fn execution(program: Program, n: usize) -> Vec<u64> {
            match program {
                Program::Messages => messages(n),
                Program::Counter => counter(n),
                Program::Ring => ring(n),
            }
        }

        fn messages(n: usize) -> Vec<u64> {
            let words: Vec<_> = (0..n).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
            let words = Arc::new(words);
            let send = |me: usize| {
                let words = Arc::clone(&words);
                thread::spawn(move || {
                    words[me][0].store(me as u64, Ordering::Relaxed);
                    words[me][1].store(1, Ordering::Release);
                })
            };
            let senders: Vec<_> = (1..n).map(send).collect();
            let mut seen = 0;
            for sender in 1..n {
                if words[sender][1].load(Ordering::Acquire) == 1 {
                    assert_eq!(words[sender][0].load(Ordering::Relaxed), sender as u64, "the word of a sender");
                    seen |= 1 << sender;
                }
            }
            senders.into_iter().for_each(|sender| sender.join().expect("no thread panics"));
            vec![seen]
        }

        fn counter(n: usize) -> Vec<u64> {
            let counter = Arc::new(AtomicU64::new(0));
            let add = |_| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || counter.fetch_add(1, Ordering::AcqRel))
            };
            let others: Vec<_> = (1..n).map(add).collect();
            let mine = counter.fetch_add(1, Ordering::AcqRel);
            let others = others.into_iter().map(|other| other.join().expect("no thread panics"));
            std::iter::once(mine).chain(others).collect()
        }

        fn ring(n: usize) -> Vec<u64> {
            let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..n).map(|_| mpsc::channel::<u64>()).unzip();
            senders.rotate_left(1); // each sends to the next one
            let part = |me: usize, next: mpsc::Sender<u64>, own: mpsc::Receiver<u64>| {
                next.send(me as u64).expect("somebody listens");
                own.recv().expect("somebody sends")
            };
            let mut ends = senders.into_iter().zip(receivers).enumerate();
            let (_, (next, own)) = ends.next().expect("somebody takes part");
            let others: Vec<_> = ends.map(|(me, (next, own))| thread::spawn(move || part(me, next, own))).collect();
            let mine = part(0, next, own);
            let others = others.into_iter().map(|other| other.join().expect("no thread panics"));
            std::iter::once(mine).chain(others).collect()
        }
    };
}

pub(super) use programs;
