//! PE 0's end of the rendezvous: it listens, counts who comes, and answers all at once.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::wire::{Answer, Hello, Talk, WELCOME};
use super::{Asked, Bytes, Place, ask, made};
use crate::launcher::RENDEZVOUS;
use crate::problem::Problem;

/// How often PE 0 looks who came.
const GLANCE: Duration = Duration::from_millis(1);
/// Who connects and does not say within this who it is, is no PE.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the address may be somebody else's: a connection of the past may still hold it for a moment.
const TAKEN: Duration = Duration::from_secs(2);
/// How long PE 0 stays after a failure to tell those who come only now.
const LINGER: Duration = Duration::from_secs(1);
/// A write of a few bytes waits for nobody; this is for a network that is down.
const WRITE: Duration = Duration::from_secs(1);

/// Waits for all PEs, and gives them the bytes.
pub(super) fn host(
    place: &Place,
    hello: Hello,
    limit: Duration,
    deadline: Instant,
    make: impl FnOnce() -> Result<Bytes, Problem>,
) -> Result<Bytes, Problem> {
    let listener = listen(place, hello, deadline)?;
    let pes = (0..hello.n_pes).map(|_| None).collect();
    let mut root = Root { place, hello, limit, deadline, listener, newcomers: Vec::new(), pes };
    let end = deadline; // the root's own may be brought forward
    let outcome = root.gather().and_then(|()| made(make()));
    let answer = match &outcome {
        Ok(bytes) => Answer::Bytes(*bytes),
        Err(Problem::Missing { why, .. }) => Answer::Missing(why.clone()),
        Err(Problem::Disagreement { why, .. }) => Answer::Disagreement(why.clone()),
        Err(other) => Answer::Failed(other.to_string()),
    };
    root.answer(&answer);
    if outcome.is_err() {
        root.linger(&answer, end.min(Instant::now() + LINGER));
    }
    outcome
}

/// Takes the address. If somebody has it, it may be another PE of this job that thinks that it is PE 0.
fn listen(place: &Place, hello: Hello, deadline: Instant) -> Result<TcpListener, Problem> {
    let until = deadline.min(Instant::now() + TAKEN);
    loop {
        let why = match bind(place) {
            Ok(listener) => return Ok(listener),
            Err(why) => why,
        };
        let is_taken = why.kind() == ErrorKind::AddrInUse;
        for address in place.addresses.iter().filter(|_| is_taken) {
            match ask(address, hello, until) {
                Asked::Answered(Answer::Missing(why)) => return Err(place.missing(why)),
                Asked::Answered(Answer::Disagreement(why)) => return Err(place.disagreement(why)),
                _ => {}
            }
        }
        if !is_taken || Instant::now() >= until {
            let why = format!("{why}; set {RENDEZVOUS} to host:port with PE 0's host and a port that is free there");
            return Err(Problem::Failed { call: format!("PE 0 listens at {}", place.name), why });
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// An address that is written as one of this host alone is taken as it is. Any other may be one of several of this host,
/// or one that only others know it by: then all are taken.
fn bind(place: &Place) -> io::Result<TcpListener> {
    let here = place.addresses.iter().map(|address| match address.ip() {
        _ if place.is_local => *address,
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, address.port()).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, address.port()).into(),
    });
    let listener = TcpListener::bind(&*here.collect::<Vec<_>>())?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

struct Root<'a> {
    place: &'a Place,
    hello: Hello,
    limit: Duration,
    /// When PE 0 gives up: early enough for those who wait to hear of it.
    deadline: Instant,
    listener: TcpListener,
    newcomers: Vec<Newcomer>,
    /// By rank, who has come.
    pes: Vec<Option<TcpStream>>,
}

/// Somebody who has not yet said who it is.
struct Newcomer {
    stream: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

impl Root<'_> {
    /// Waits until all PEs have come.
    fn gather(&mut self) -> Result<(), Problem> {
        loop {
            for (stream, hello, left) in self.arrivals() {
                self.admit(stream, hello, left)?;
            }
            if let Some(rank) = self.pes.iter().position(|pe| pe.as_ref().is_some_and(has_left)) {
                return Err(self.place.missing(format!("PE {rank} ended while it waited; see what it printed")));
            }
            let missing: Vec<usize> = (1..self.pes.len()).filter(|&rank| self.pes[rank].is_none()).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if Instant::now() >= self.deadline {
                return Err(self.place.missing(format!(
                    "{} of {} did not arrive within {} s; see whether all were started, with the same {RENDEZVOUS}",
                    ranks(&missing),
                    self.pes.len(),
                    self.limit.as_secs_f32()
                )));
            }
            thread::sleep(GLANCE);
        }
    }

    /// Those who have said by now who they are.
    fn arrivals(&mut self) -> Vec<(TcpStream, Hello, Duration)> {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.newcomers.push(Newcomer { stream, said: Vec::new(), since: Instant::now() });
            }
        }
        let mut arrived = Vec::new();
        for mut newcomer in std::mem::take(&mut self.newcomers) {
            match newcomer.listen() {
                Said::Everything(bytes) => {
                    arrived.extend(Hello::read(&bytes).map(|(hello, left)| (newcomer.stream, hello, left)));
                }
                Said::Something => self.newcomers.push(newcomer),
                Said::Nonsense => {} // no PE
            }
        }
        arrived
    }

    /// Somebody said who it is.
    fn admit(&mut self, stream: TcpStream, hello: Hello, left: Duration) -> Result<(), Problem> {
        let mut talk = talk(&stream);
        let _ = talk.as_mut().map(|talk| talk.say(&WELCOME)); // one that does not hear it has left
        if hello.job != self.hello.job {
            let why = format!("two jobs meet there; give each its own port with {RENDEZVOUS}");
            let _ = talk.map(|mut talk| talk.say(&Answer::Disagreement(why).bytes()));
            return Ok(());
        }
        // The one who waits for the shortest time decides, less what an answer takes.
        let margin = (self.limit / 20).min(Duration::from_secs(1));
        self.deadline = self.deadline.min(Instant::now() + left.saturating_sub(margin));
        let Hello { rank, n_pes, .. } = hello;
        let ours = self.hello.n_pes;
        let wrong = if n_pes != ours {
            format!(
                "PE {rank} was started as one of {n_pes} PEs, PE 0 as one of {ours}; start all with the same number"
            )
        } else if rank >= n_pes {
            format!("one says that it is PE {rank} of {n_pes}; PEs count from 0, see how it was started")
        } else if rank == 0 || self.pes[rank as usize].is_some() {
            format!("two PEs have rank {rank}; start each once and with its own rank, best by one launcher")
        } else {
            self.pes[rank as usize] = Some(stream);
            return Ok(());
        };
        let _ = talk.map(|mut talk| talk.say(&Answer::Disagreement(wrong.clone()).bytes()));
        Err(self.place.disagreement(wrong))
    }

    /// Tells those who come after all was lost.
    fn linger(&mut self, answer: &Answer, until: Instant) {
        while Instant::now() < until {
            for (stream, ..) in self.arrivals() {
                let _ = talk(&stream).map(|mut talk| talk.say(&WELCOME).and_then(|()| talk.say(&answer.bytes())));
            }
            thread::sleep(GLANCE);
        }
    }

    /// Tells all who wait. One that cannot be told has left, and finds that out for itself.
    fn answer(&self, answer: &Answer) {
        let bytes = answer.bytes();
        for mut talk in self.pes.iter().flatten().filter_map(talk) {
            let _ = talk.say(&bytes);
        }
    }
}

/// A connection to be written to.
fn talk(stream: &TcpStream) -> Option<Talk> {
    stream.set_nonblocking(false).ok()?;
    Some(Talk::new(stream.try_clone().ok()?, Instant::now() + WRITE))
}

/// Whether a PE that was admitted has closed its end: it says nothing more, so there is nothing else to read.
fn has_left(stream: &TcpStream) -> bool {
    let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    !matches!(peeked, Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted))
}

enum Said {
    Everything([u8; Hello::SIZE]),
    Something,
    Nonsense,
}

impl Newcomer {
    /// What it has said by now.
    fn listen(&mut self) -> Said {
        let mut bytes = [0; Hello::SIZE];
        let room = Hello::SIZE - self.said.len();
        match self.stream.read(&mut bytes[..room]) {
            Ok(0) => return Said::Nonsense,
            Ok(more) => self.said.extend_from_slice(&bytes[..more]),
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Said::Nonsense,
        }
        match self.said.as_slice().try_into() {
            Ok(bytes) => Said::Everything(bytes),
            Err(_) if Hello::may_begin_with(&self.said) && self.since.elapsed() < SILENCE => Said::Something,
            Err(_) => Said::Nonsense,
        }
    }
}

/// `PE 3`, `PEs 1-3 and 7`: ascending ranks in words.
fn ranks(ranks: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => parts.push((rank, rank)),
        }
    }
    let mut text = String::from(if ranks.len() == 1 { "PE " } else { "PEs " });
    for (index, &(first, last)) in parts.iter().enumerate() {
        let before = if index == 0 {
            ""
        } else if index + 1 == parts.len() {
            " and "
        } else {
            ", "
        };
        // Writing to a String cannot fail.
        let _ = if first == last { write!(text, "{before}{first}") } else { write!(text, "{before}{first}-{last}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian does it: a host's own name is 127.0.1.1 there, and an address of the network elsewhere.
    #[test]
    fn pe_0_listens_to_all_unless_the_place_is_written_as_local() {
        let bound = |name: &str| {
            let mut place = Place::resolve(&format!("{name}:1"), Duration::from_secs(30)).unwrap();
            place.addresses = vec![(Ipv4Addr::new(127, 0, 1, 1), 0).into()];
            bind(&place).unwrap().local_addr().unwrap().ip()
        };
        assert!(bound("192.0.2.1").is_unspecified());
        assert!(bound("localhost").is_loopback() && bound("127.0.1.1").is_loopback());
    }

    #[test]
    fn ranks_are_given_in_words() {
        for (given, words) in [
            (&[3][..], "PE 3"),
            (&[1, 3], "PEs 1 and 3"),
            (&[1, 2], "PEs 1-2"),
            (&[1, 2, 3, 5, 7, 8], "PEs 1-3, 5 and 7-8"),
        ] {
            assert_eq!(ranks(given), words);
        }
    }
}
