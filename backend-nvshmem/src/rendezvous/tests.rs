//! Real exchanges over loopback, between threads and between processes.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::{env, panic};

use super::*;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(600);

/// A place to meet for one test.
fn meeting(job: &str) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("127.0.0.1:{port}/{job}")
}

fn id() -> Result<Bytes, Problem> {
    Ok(std::array::from_fn(|index| index as u8))
}

/// What each of these ranks gets, each on a thread of its own, started one after the other.
fn meet(place: &str, n_pes: usize, limit: Duration, ranks: &[usize]) -> Vec<Result<Bytes, Problem>> {
    thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .map(|&rank| {
                let started = scope.spawn(move || exchange(rank, n_pes, place, limit, id));
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
        let outcomes = meet(&meeting("order"), 4, LONG, ranks);
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(id().unwrap())), "{ranks:?}: {outcomes:?}");
    }
}

#[test]
fn pe_0_makes_it_once_all_are_there_and_others_never_do() {
    let place = &meeting("late");
    thread::scope(|scope| {
        let other = scope.spawn(|| exchange(1, 2, place, LONG, || panic!("PE 1 makes nothing")));
        let (arrived, started) = (Duration::from_millis(300), Instant::now());
        thread::sleep(arrived); // PE 0 is late: the other has tried a few times by now
        assert_eq!(exchange(0, 2, place, LONG, id), Ok(id().unwrap()));
        assert_eq!(other.join().unwrap(), Ok(id().unwrap()));
        assert!(started.elapsed() >= arrived);
    });
}

#[test]
fn a_pe_alone_meets_nobody() {
    assert_eq!(exchange(0, 1, "no address at all", SHORT, id), Ok(id().unwrap()));
}

#[test]
fn who_is_missing_is_told_to_all_within_the_limit() {
    let started = Instant::now();
    let limit = Duration::from_secs(2);
    let outcomes = meet(&meeting("missing"), 6, limit, &[4, 0, 1]);
    for outcome in &outcomes {
        assert!(matches!(outcome, Err(Problem::Missing { .. })), "{outcome:?}");
        says(outcome, "PEs 2-3 and 5 of 6 did not arrive within 2 s");
    }
    assert!(started.elapsed() < limit + Duration::from_millis(500), "{:?}", started.elapsed());
}

#[test]
fn pe_0_missing_is_told_too() {
    let outcomes = meet(&meeting("no root"), 3, SHORT, &[1, 2]);
    says(&outcomes[0], "PE 1 waited 0.6 s for PE 0: it does not listen there");
    says(&outcomes[1], "PE 2 waited 0.6 s for PE 0");
    says(&outcomes[1], "see whether it was started, with the same ONESIDED_RENDEZVOUS");
}

#[test]
fn two_with_the_same_rank_are_told_to_all_at_once() {
    let started = Instant::now();
    for ranks in [[0, 1, 1], [1, 0, 0]] {
        let outcomes = meet(&meeting("twice"), 3, LONG, &ranks);
        for outcome in &outcomes {
            assert!(matches!(outcome, Err(Problem::Disagreement { .. })), "{ranks:?}: {outcome:?}");
            says(outcome, &format!("two PEs have rank {}; start each once and with its own rank", ranks[2]));
        }
    }
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}

#[test]
fn pes_that_count_differently_are_told_to_all() {
    let place = &meeting("count");
    thread::scope(|scope| {
        let of = |rank, n_pes| scope.spawn(move || exchange(rank, n_pes, place, LONG, id));
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
fn another_job_at_the_same_place_is_sent_away_and_disturbs_nobody() {
    let place = meeting("mine");
    let others = place.replace("mine", "others");
    let (place, others) = (&place, &others);
    thread::scope(|scope| {
        let root = scope.spawn(|| exchange(0, 2, place, LONG, id));
        thread::sleep(Duration::from_millis(50));
        says(&exchange(1, 2, others, LONG, id), "two jobs meet there");
        says(&exchange(0, 2, others, LONG, id), "two jobs meet there"); // its PE 0 too, which wants the port
        assert_eq!(exchange(1, 2, place, LONG, id), Ok(id().unwrap()));
        assert_eq!(root.join().unwrap(), Ok(id().unwrap()));
    });
}

#[test]
fn strangers_who_connect_are_ignored() {
    let place = &meeting("strangers");
    let address = place.split_once('/').unwrap().0;
    thread::scope(|scope| {
        let root = scope.spawn(|| exchange(0, 2, place, LONG, id));
        let connect = || loop {
            if let Ok(stream) = TcpStream::connect(address) {
                return stream;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let silent = connect();
        let mut chatty = connect();
        chatty.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody\r\n\r\n").unwrap();
        drop(connect());
        assert_eq!(exchange(1, 2, place, LONG, id), Ok(id().unwrap()));
        assert_eq!(root.join().unwrap(), Ok(id().unwrap()));
        drop((silent, chatty));
    });
}

#[test]
fn a_port_that_another_program_has_is_named() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = &stranger.local_addr().unwrap().to_string();
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
        let root = scope.spawn(|| exchange(0, 2, place, SHORT, id));
        let other = exchange(1, 2, place, SHORT, id);
        let root = root.join().unwrap();
        assert!(started.elapsed() < LONG);
        says(&root, "PE 0 listens at 127.0.0.1:");
        says(&root, "set ONESIDED_RENDEZVOUS to host:port");
        says(&other, "PE 1 waited 0.6 s for PE 0");
        while TcpStream::connect(place).is_ok() {} // until the stranger has seen its three
    });
}

#[test]
fn a_pe_that_ends_while_it_waits_is_not_waited_for() {
    let place = &meeting("gone");
    thread::scope(|scope| {
        let root = scope.spawn(|| exchange(0, 3, place, LONG, id));
        let other = scope.spawn(|| exchange(1, 3, place, LONG, id));
        // PE 2 says hello and goes, perhaps before PE 1 has come.
        let mut came = None;
        while came.is_none() {
            let place = Place::resolve(place, LONG).unwrap();
            let hello = Hello { job: place.job, rank: 2, n_pes: 3 };
            came = TcpStream::connect(place.addresses[0]).ok().map(|mut stream| stream.write_all(&hello.bytes(LONG)));
        }
        for outcome in [root.join().unwrap(), other.join().unwrap()] {
            says(&outcome, "PE 2 ended while it waited");
        }
    });
}

#[test]
fn pe_0_that_cannot_make_it_says_so_to_all() {
    let place = &meeting("fails");
    let fails = || Err(Problem::Failed { call: "unique_id".into(), why: "no interface".into() });
    thread::scope(|scope| {
        let other = scope.spawn(|| exchange(1, 2, place, LONG, id));
        says(&exchange(0, 2, place, LONG, fails), "no interface");
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
        let outcome = exchange(1, 2, place, LONG, id);
        says(&outcome, &format!("ONESIDED_RENDEZVOUS={place}: "));
        says(&outcome, why);
    }
}

/// The same between processes: this test starts itself, as PE 1 and PE 2.
#[test]
fn processes_meet() {
    const ROLE: &str = "ONESIDED_TEST_MEETS";
    if let Ok(role) = env::var(ROLE) {
        let (rank, place) = role.split_once(' ').unwrap();
        let bytes = exchange(rank.parse().unwrap(), 3, place, LONG, id).unwrap();
        println!("got {bytes:?}");
        return;
    }
    let place = meeting("processes");
    let children: Vec<_> = (1..3)
        .map(|rank| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", "rendezvous::tests::processes_meet", "--nocapture"]);
            command.env(ROLE, format!("{rank} {place}")).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    assert_eq!(exchange(0, 3, &place, LONG, id), Ok(id().unwrap()));
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains(&format!("got {:?}", id().unwrap())), "{said}");
    }
}
