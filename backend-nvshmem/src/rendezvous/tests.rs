//! Real exchanges over loopback, between threads and between processes.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::{env, panic};

use super::*;
use crate::launcher::Launcher;

mod strangers;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(600);

/// A job of one test: a place to meet, and a key.
#[derive(Clone)]
struct Job {
    meeting: String,
    key: Key,
}

fn job(name: &str) -> Job {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Job { meeting: format!("127.0.0.1:{port}/{name}"), key: Key::random().unwrap() }
}

impl Job {
    fn pe(&self, rank: usize, n_pes: usize) -> Placement {
        let (meeting, key) = (Some(self.meeting.clone()), Some(self.key.clone()));
        Placement { rank, n_pes, local_rank: rank, local_size: Some(n_pes), meeting, key, from: Launcher::Onesided }
    }

    /// What a PE of it gets.
    fn exchange(&self, rank: usize, n_pes: usize, limit: Duration) -> Result<Bytes, Problem> {
        exchange(&self.pe(rank, n_pes), PROGRAM, limit, id)
    }

    fn place(&self) -> Place {
        Place::resolve(&self.meeting, PROGRAM, self.key.clone(), LONG).unwrap()
    }

    /// A connection to PE 0, as soon as it listens.
    fn connect(&self) -> TcpStream {
        let address = self.place().addresses[0];
        loop {
            if let Ok(stream) = TcpStream::connect(address) {
                return stream;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn id() -> Result<Bytes, Problem> {
    Ok(std::array::from_fn(|index| index as u8))
}

/// What each of these ranks gets, each on a thread of its own, started one after the other.
fn meet(job: &Job, n_pes: usize, limit: Duration, ranks: &[usize]) -> Vec<Result<Bytes, Problem>> {
    thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .map(|&rank| {
                let started = scope.spawn(move || job.exchange(rank, n_pes, limit));
                thread::sleep(Duration::from_millis(20));
                started
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn says(outcome: &Result<Bytes, Problem>, words: &str) {
    let problem = outcome.as_ref().expect_err(words).to_string();
    assert!(problem.contains(words), "{words:?} in {problem:?}");
}

#[test]
fn all_get_what_pe_0_made_in_whatever_order_they_come() {
    for ranks in [&[0, 1, 2, 3][..], &[3, 1, 2, 0], &[2, 0, 3, 1]] {
        let outcomes = meet(&job("order"), 4, LONG, ranks);
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(id().unwrap())), "{ranks:?}: {outcomes:?}");
    }
}

#[test]
fn pe_0_makes_it_once_all_are_there_and_others_never_do() {
    let job = &job("late");
    thread::scope(|scope| {
        let other = scope.spawn(|| exchange(&job.pe(1, 2), PROGRAM, LONG, || panic!("PE 1 makes nothing")));
        let (arrived, started) = (Duration::from_millis(300), Instant::now());
        thread::sleep(arrived); // PE 0 is late: the other has tried a few times by now
        assert_eq!(job.exchange(0, 2, LONG), Ok(id().unwrap()));
        assert_eq!(other.join().unwrap(), Ok(id().unwrap()));
        assert!(started.elapsed() >= arrived);
    });
}

/// Each PE on a machine of its own. The names of the hosts are the same, or not.
#[test]
fn two_machines_with_one_name_are_told_to_all() {
    for (names, expected) in [([1, 1], Some("PE 0 and PE 1 are on two machines with one host name")), ([1, 2], None)] {
        let (job, hello) = (job("hosts"), |rank| Hello {
            rank,
            n_pes: 2,
            host: Host { name: names[rank as usize], machine: 7 + rank },
        });
        let deadline = Instant::now() + LONG;
        let outcomes = thread::scope(|scope| {
            let root = scope.spawn(|| root::host(&job.place(), hello(0), LONG, deadline, id));
            let other = scope.spawn(|| visit(&job.place(), hello(1), LONG, deadline));
            [root, other].map(|thread| thread.join().unwrap())
        });
        for outcome in outcomes {
            match expected {
                Some(words) => says(&outcome, words),
                None => assert_eq!(outcome, Ok(id().unwrap())),
            }
        }
    }
}

#[test]
fn a_pe_alone_meets_nobody() {
    assert_eq!(exchange(&Placement::alone(), PROGRAM, SHORT, id), Ok(id().unwrap()));
}

#[test]
fn who_is_missing_is_told_to_all_within_the_limit() {
    let started = Instant::now();
    let limit = Duration::from_secs(2);
    let outcomes = meet(&job("missing"), 6, limit, &[4, 0, 1]);
    for outcome in &outcomes {
        assert!(matches!(outcome, Err(Problem::Missing { .. })), "{outcome:?}");
        says(outcome, "PEs 2-3 and 5 of 6 did not arrive within 2 s");
    }
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}

#[test]
fn pe_0_missing_is_told_too() {
    let outcomes = meet(&job("no root"), 3, SHORT, &[1, 2]);
    says(&outcomes[0], "PE 1 waited 0.6 s for PE 0: it does not listen there");
    says(&outcomes[1], "PE 2 waited 0.6 s for PE 0");
    says(&outcomes[1], "see whether it was started, with the same ONESIDED_RENDEZVOUS");
}

#[test]
fn two_with_the_same_rank_are_told_to_all_at_once() {
    let started = Instant::now();
    for ranks in [[0, 1, 1], [1, 0, 0]] {
        let outcomes = meet(&job("twice"), 3, LONG, &ranks);
        for outcome in &outcomes {
            assert!(matches!(outcome, Err(Problem::Disagreement { .. })), "{ranks:?}: {outcome:?}");
            says(outcome, &format!("two PEs have rank {}; start each once and with its own rank", ranks[2]));
        }
    }
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}

#[test]
fn pes_that_count_differently_are_told_to_all() {
    let job = &job("count");
    thread::scope(|scope| {
        let of = |rank, n_pes| scope.spawn(move || job.exchange(rank, n_pes, LONG));
        let first = [of(0, 4), of(1, 4)];
        thread::sleep(Duration::from_millis(200));
        let second = of(2, 3);
        for outcome in first.into_iter().chain([second]) {
            says(
                &outcome.join().unwrap(),
                "PE 2 was started as one of 3 PEs, PE 0 as one of 4; start all with the same number",
            );
        }
    });
}

#[test]
fn a_port_that_another_program_has_is_named() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let meeting = stranger.local_addr().unwrap().to_string();
    let job = &Job { meeting, key: Key::random().unwrap() };
    thread::scope(|scope| {
        scope.spawn(move || {
            // It answers some, and listens to the others in silence. It ends with the test's connections.
            let mut kept = Vec::new();
            for (number, stream) in stranger.incoming().take(3).flatten().enumerate() {
                kept.push(stream);
                if number == 1 {
                    let _ = kept[1].write_all(b"220 mail.example.org ESMTP\r\n");
                }
            }
            kept.iter().for_each(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
        });
        let started = Instant::now();
        let root = scope.spawn(|| job.exchange(0, 2, SHORT));
        let other = job.exchange(1, 2, SHORT);
        let root = root.join().unwrap();
        assert!(started.elapsed() < LONG);
        says(&root, "PE 0 listens at 127.0.0.1:");
        says(&root, "set ONESIDED_RENDEZVOUS to host:port");
        says(&other, "PE 1 waited 0.6 s for PE 0");
        while TcpStream::connect(&job.meeting).is_ok() {} // until the stranger has seen its three
    });
}

#[test]
fn a_pe_that_ends_while_it_waits_is_not_waited_for() {
    let job = &job("gone");
    thread::scope(|scope| {
        let root = scope.spawn(|| job.exchange(0, 4, LONG));
        let other = scope.spawn(|| job.exchange(1, 4, LONG));
        // PE 2 says hello and goes, perhaps before PE 1 has come. PE 3 never comes, so it cannot be too late for that.
        let (place, challenge) = (job.place(), seal::challenge().unwrap());
        let mut talk = Talk::new(job.connect(), Instant::now() + LONG);
        let session = |of_pe_0: &Challenge| place.session(of_pe_0, &challenge);
        let greeting =
            wire::greet(&mut talk, Hello { rank: 2, n_pes: 4, host: Host::here() }, LONG, &challenge, session).unwrap();
        assert!(matches!(greeting, Greeting::Welcome(_)));
        drop(talk);
        for outcome in [root.join().unwrap(), other.join().unwrap()] {
            says(&outcome, "PE 2 ended while it waited");
        }
    });
}

#[test]
fn pe_0_that_cannot_make_it_says_so_to_all() {
    let job = &job("fails");
    let fails = || Err(Problem::Failed { call: "unique_id".into(), why: "no interface".into() });
    thread::scope(|scope| {
        let other = scope.spawn(|| job.exchange(1, 2, LONG));
        says(&exchange(&job.pe(0, 2), PROGRAM, LONG, fails), "no interface");
        says(&other.join().unwrap(), "no interface");
    });
}

#[test]
fn a_place_that_is_none_is_refused_with_the_variable() {
    for (place, why) in [
        ("localhost", "no host:port"),
        ("localhost:0", "no host:port"),
        ("localhost:99999/job", "no host:port"),
        (":4000", "no host:port"),
        ("no.such.host.invalid:4000", "not known here"),
        ("no.such.host.invalid:4000", "set it to PE 0's host by a name or an address that all know"),
    ] {
        let outcome = Job { meeting: place.to_string(), ..job("") }.exchange(1, 2, LONG);
        says(&outcome, &format!("ONESIDED_RENDEZVOUS={place}: "));
        says(&outcome, why);
    }
}

/// The same between processes: this test starts itself, as PE 1 and PE 2.
#[test]
fn processes_meet() {
    const ROLE: &str = "ONESIDED_TEST_MEETS";
    if let Ok(role) = env::var(ROLE) {
        let (rank, rest) = role.split_once(' ').unwrap();
        let (meeting, key) = rest.split_once(' ').unwrap();
        let job = Job { meeting: meeting.to_string(), key: Key::from_user(key.to_string()).unwrap() };
        let bytes = job.exchange(rank.parse().unwrap(), 3, LONG).unwrap();
        println!("got {bytes:?}");
        return;
    }
    let job = job("processes");
    let children: Vec<_> = (1..3)
        .map(|rank| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", "rendezvous::tests::processes_meet", "--nocapture"]);
            let role = format!("{rank} {} {}", job.meeting, job.key.reveal());
            command.env(ROLE, role).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    assert_eq!(job.exchange(0, 3, LONG), Ok(id().unwrap()));
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains(&format!("got {:?}", id().unwrap())), "{said}");
    }
}
