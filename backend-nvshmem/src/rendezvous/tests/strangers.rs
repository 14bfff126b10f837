//! Processes that do not belong to the job: at PE 0's door, and in PE 0's place.

use super::super::root::{HURRY, ROOM, Root};
use super::*;

/// All that PE 0 says to somebody until it ends the connection.
fn heard(mut stream: &TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard); // it may be cut off
    heard
}

/// Begins as a PE does; gives PE 0's challenge.
fn knock(mut stream: &TcpStream) -> Challenge {
    stream.write_all(&wire::KNOCK).unwrap();
    let mut said = [0; 40];
    stream.read_exact(&mut said).unwrap();
    *said.last_chunk().unwrap()
}

/// What PE 2 of 3 says to this challenge.
fn hello(place: &Place, of_pe_0: &Challenge) -> [u8; Hello::SIZE] {
    let challenge = seal::challenge().unwrap();
    Hello { rank: 2, n_pes: 3, host: Host::here() }.bytes(&place.session(of_pe_0, &challenge), &challenge, LONG)
}

/// PE 0 and PE 1 of 3 meet as if nobody else were there, once PE 2 has come too; `disturb` is it, and strangers before.
fn meets_in_spite_of(disturb: impl FnOnce(&Job)) {
    let job = &job("disturbed");
    thread::scope(|scope| {
        let others = [0, 1].map(|rank| scope.spawn(move || job.exchange(rank, 3, LONG)));
        disturb(job);
        for other in others {
            assert_eq!(other.join().unwrap(), Ok(id().unwrap()));
        }
    });
}

fn is_pe_2(job: &Job) {
    assert_eq!(job.exchange(2, 3, LONG), Ok(id().unwrap()));
}

#[test]
fn who_does_not_begin_as_a_pe_hears_nothing() {
    meets_in_spite_of(|job| {
        for words in [
            &b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody\r\n\r\n"[..],
            b"1sided>1 and what earlier versions said",
            b"1sided<2", // what PE 0 says
            &[0],
            &[0xff; 4096],
        ] {
            let mut stream = job.connect();
            let _ = stream.write_all(words); // it may not be wanted to the end
            assert_eq!(heard(&stream), [0_u8; 0], "{words:?}");
        }
        let silent = job.connect();
        is_pe_2(job);
        assert_eq!(heard(&silent), [0_u8; 0]);
    });
}

#[test]
fn who_has_another_key_or_another_job_or_repeats_a_pe_is_refused_and_learns_no_more() {
    meets_in_spite_of(|job| {
        let ours = job.place();
        let of_this_job = job.connect();
        let challenge = knock(&of_this_job);
        let right = hello(&ours, &challenge);

        let with_other_key =
            |of_pe_0: &Challenge| hello(&Place { key: Key::random().unwrap(), ..job.place() }, of_pe_0);
        let with_other_job = |of_pe_0: &Challenge| hello(&Place { job: "other/".to_string(), ..job.place() }, of_pe_0);
        let in_a_rehearsal =
            |of_pe_0: &Challenge| hello(&Place { job: ours.job.clone() + REHEARSAL, ..job.place() }, of_pe_0);
        let repeated = |_: &Challenge| right;
        let damaged = |of_pe_0: &Challenge| {
            let mut bytes = hello(&ours, of_pe_0);
            bytes[32] ^= 1; // another rank
            bytes
        };
        let mut challenges = vec![challenge];
        let all: [&dyn Fn(&Challenge) -> _; 5] =
            [&with_other_key, &with_other_job, &in_a_rehearsal, &repeated, &damaged];
        for says in all {
            let mut stream = job.connect();
            let challenge = knock(&stream);
            assert!(!challenges.contains(&challenge), "a challenge came twice");
            challenges.push(challenge);
            stream.write_all(&says(&challenge)).unwrap();
            assert_eq!(heard(&stream), wire::REFUSAL);
        }
        // Said by whom it is from, in its own connection, the same is welcome, and PE 2 has come.
        (&of_this_job).write_all(&right).unwrap();
        let said = heard(&of_this_job);
        assert_eq!(said[0], 1);
        assert!(said.windows(128).any(|bytes| bytes == id().unwrap()));
    });
}

#[test]
fn strangers_that_come_by_the_thousand_keep_nobody_out() {
    meets_in_spite_of(|job| {
        // More than are heard at a time say nothing, and stay.
        let silent: Vec<_> = (0..ROOM + 50).map(|_| job.connect()).collect();
        let address = job.place().addresses[0];
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for number in 0..1000 {
                        let said = if number % 2 == 0 { &wire::KNOCK[..] } else { b"garbage" };
                        let _ = TcpStream::connect(address).and_then(|mut stream| stream.write_all(said));
                    }
                });
            }
            is_pe_2(job);
        });
        drop(silent);
    });
}

/// The same step by step: who is heard, and who has to go.
#[test]
fn pe_0_hears_so_many_at_a_time_and_sends_the_silent_away() {
    let (job, hello) = (job("full"), Hello { rank: 0, n_pes: 2, host: Host::here() });
    let place = job.place();
    let mut root = Root::new(&place, hello, LONG, Instant::now() + LONG).unwrap();
    let mut silent = Vec::new();
    while silent.len() < ROOM + 20 {
        silent.push(TcpStream::connect(place.addresses[0]).unwrap());
        assert!(root.arrivals().is_empty()); // the system's queue is short
    }
    let visitor = thread::spawn({
        let job = job.clone();
        move || job.exchange(1, 2, LONG)
    });
    // Whom there is no room for waits.
    root.newcomers.iter_mut().for_each(|newcomer| newcomer.since = Instant::now());
    assert_eq!((root.arrivals().len(), root.newcomers.len()), (0, ROOM));
    // In a hurry, all go who have had their time. The others, and the PE behind them, get in.
    root.newcomers.iter_mut().for_each(|newcomer| newcomer.since -= HURRY);
    assert_eq!((root.arrivals().len(), root.newcomers.len()), (0, 0));
    let mut arrived = Vec::new();
    while arrived.is_empty() {
        arrived = root.arrivals();
    }
    assert_eq!((arrived.len(), arrived[0].1), (1, Hello { rank: 1, n_pes: 2, host: Host::here() }));
    root.admit(arrived.remove(0).0, hello, LONG).unwrap_err(); // it is welcomed, and told of a PE 0 too many
    // Where there is room, the silent have more time, and then go too.
    assert!(root.newcomers.len() >= 20);
    root.newcomers.iter_mut().for_each(|newcomer| newcomer.since -= HURRY);
    root.arrivals();
    assert!(root.newcomers.len() >= 20);
    root.newcomers.iter_mut().for_each(|newcomer| newcomer.since -= root::SILENCE);
    root.arrivals();
    assert!(root.newcomers.is_empty());
    says(&visitor.join().unwrap(), "two PEs have rank 0");
    drop(silent);
}

#[test]
fn another_job_at_the_same_place_is_told_and_disturbs_nobody() {
    let mine = &job("mine");
    let others = [
        Job { meeting: mine.meeting.replace("mine", "others"), ..mine.clone() },
        Job { key: Key::random().unwrap(), ..mine.clone() },
    ];
    thread::scope(|scope| {
        let root = scope.spawn(|| mine.exchange(0, 2, LONG));
        drop(mine.connect()); // it listens
        for (job, rank) in others.iter().zip([1, 0]) {
            let outcome = job.exchange(rank, 2, LONG); // PE 0 too, which wants the port
            assert!(matches!(outcome, Err(Problem::Disagreement { .. })), "{outcome:?}");
            says(&outcome, "PE 0 there is of another job, or has another ONESIDED_KEY; give each job its own port");
        }
        assert_eq!(mine.exchange(1, 2, LONG), Ok(id().unwrap()));
        assert_eq!(root.join().unwrap(), Ok(id().unwrap()));
    });
}

#[test]
fn a_rehearsal_is_a_job_of_its_own() {
    let job = &job("rehearsal");
    thread::scope(|scope| {
        let first = scope.spawn(|| job.pe(0, 2).rehearse(LONG));
        drop(job.connect()); // it listens
        says(&job.exchange(1, 2, LONG), "PE 0 there is of another job"); // a PE of a program
        assert_eq!(job.pe(1, 2).rehearse(LONG), Ok(2));
        assert_eq!(first.join().unwrap(), Ok(2));
    });
}

#[test]
fn pe_0_knows_of_those_whom_it_refused() {
    let (job, hello) = (job("refused"), Hello { rank: 0, n_pes: 2, host: Host::here() });
    let others = Job { key: Key::random().unwrap(), ..job.clone() };
    let place = job.place();
    let mut root = Root::new(&place, hello, LONG, Instant::now() + LONG).unwrap();
    assert!(!root.who_is_missing(&[1]).contains("refused"));
    let visitor = thread::spawn(move || others.exchange(1, 2, LONG));
    for (refused, words) in [(1, "1 that came was refused"), (2, "2 that came were refused")] {
        while root.refused < refused {
            assert!(root.arrivals().is_empty());
        }
        let why = root.who_is_missing(&[1]);
        assert!(why.starts_with("PE 1 of 2 did not arrive within 30 s") && why.contains(words), "{why}");
    }
    while !visitor.is_finished() {
        root.arrivals();
    }
    says(&visitor.join().unwrap(), "PE 0 there is of another job");
}

#[test]
fn without_a_key_nobody_meets() {
    for rank in 0..2 {
        let outcome = exchange(&Placement { key: None, ..job("").pe(rank, 2) }, PROGRAM, LONG, id);
        says(&outcome, "ONESIDED_KEY: not set, and onesided launch");
        says(&outcome, "export ONESIDED_KEY=$(openssl rand -hex 32)");
    }
}

type Welcome<'a> = dyn Fn(&[u8; Hello::SIZE]) -> Vec<u8> + Sync + 'a;

/// A program in PE 0's place, which knows how PE 0 speaks and not the key. `welcome` makes its welcome of the PE's hello.
fn impostor(listener: &TcpListener, welcome: &Welcome<'_>) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut knock = [0; 8];
        if stream.read_exact(&mut knock).is_err() {
            return; // the test is over
        }
        let mut hello = [0; Hello::SIZE];
        stream.write_all(&wire::challenge_bytes(&[7; 32])).unwrap();
        stream.read_exact(&mut hello).unwrap();
        let _ = stream.write_all(&welcome(&hello)); // it may not be believed to the end
    }
}

#[test]
fn a_pe_takes_nothing_from_a_program_that_has_pe_0s_place() {
    let answer =
        |session: &Session| [&wire::welcome_bytes(session)[..], &Answer::Bytes([9; 128]).bytes(session)].concat();
    let with_other_key = |hello: &[u8; Hello::SIZE]| {
        let place = Place { key: Key::random().unwrap(), ..job("impostor").place() };
        answer(&place.session(&[7; 32], hello.first_chunk().unwrap()))
    };
    // The PE's own seal, given back to it.
    let reflected =
        |hello: &[u8; Hello::SIZE]| [&[1], hello.last_chunk::<32>().unwrap().as_slice(), &[0; 200]].concat();
    let welcomes: [&Welcome<'_>; 2] = [&with_other_key, &reflected];
    for welcome in welcomes {
        let listener = &TcpListener::bind("127.0.0.1:0").unwrap();
        let meeting = format!("{}/impostor", listener.local_addr().unwrap());
        let job = Job { meeting, key: Key::random().unwrap() };
        thread::scope(|scope| {
            scope.spawn(move || impostor(listener, welcome));
            says(&job.exchange(1, 2, SHORT), "another program listens there; set ONESIDED_RENDEZVOUS to another port");
            drop(TcpStream::connect(listener.local_addr().unwrap()));
        });
    }
}

/// Somebody between the PEs who changes what PE 0 answers, though it cannot know the key.
#[test]
fn an_answer_that_was_changed_on_the_way_is_not_taken() {
    let listener = &TcpListener::bind("127.0.0.1:0").unwrap();
    let meeting = format!("{}/changed", listener.local_addr().unwrap());
    let job = &Job { meeting, key: Key::random().unwrap() };
    thread::scope(|scope| {
        scope.spawn(move || {
            impostor(listener, &|hello| {
                let session = job.place().session(&[7; 32], hello.first_chunk().unwrap());
                let mut answer = Answer::Bytes([9; 128]).bytes(&session);
                answer[100] ^= 1;
                [&wire::welcome_bytes(&session)[..], &answer].concat()
            });
        });
        says(&job.exchange(1, 2, SHORT), "it sent a damaged answer");
        drop(TcpStream::connect(listener.local_addr().unwrap()));
    });
}

/// What goes over the wire between two PEs, both ways, does not have the key in it.
#[test]
fn the_key_is_never_sent() {
    let job = &job("tapped");
    let tap = &TcpListener::bind("127.0.0.1:0").unwrap();
    let tapped = &Job { meeting: format!("{}/tapped", tap.local_addr().unwrap()), ..job.clone() };
    let heard = thread::scope(|scope| {
        let root = scope.spawn(|| job.exchange(0, 2, LONG));
        let visitor = scope.spawn(|| tapped.exchange(1, 2, LONG));
        let (visitors, roots) = (tap.accept().unwrap().0, job.connect());
        let copy = |mut from: TcpStream, mut to: TcpStream| {
            let mut heard = Vec::new();
            let mut byte = [0];
            while from.read(&mut byte).is_ok_and(|read| read == 1) {
                heard.push(byte[0]);
                let _ = to.write_all(&byte); // nobody may be there any more
            }
            let _ = to.shutdown(std::net::Shutdown::Write);
            heard
        };
        let (a, b) = (visitors.try_clone().unwrap(), roots.try_clone().unwrap());
        let there = scope.spawn(move || copy(a, b));
        let back = copy(roots, visitors);
        assert_eq!((root.join().unwrap(), visitor.join().unwrap()), (id(), id()));
        [there.join().unwrap(), back]
    });
    let digits = job.key.reveal();
    let bytes: Vec<u8> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    for heard in heard {
        assert!(heard.len() > 40, "{heard:?}");
        for part in digits.as_bytes().chunks(8).chain(bytes.chunks(8)) {
            assert!(!heard.windows(part.len()).any(|window| window == part));
        }
    }
}
