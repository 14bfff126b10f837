//! PE 0's end of the rendezvous. It listens, counts the PEs that come, and answers all of them at once.
//!
//! PE 0 listens to [`ROOM`] newcomers at a time. The others wait in the system's queue, or try again. A newcomer has to say all
//! that a PE says within [`SILENCE`], or within [`HURRY`] if there is no room for others. So N silent strangers that come at
//! once delay a PE by N / 256 quarters of a second.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::host::Host;
use super::seal::{self, Challenge, Session};
use super::wire::{self, Answer, Hello, KNOCK, Talk};
use super::{Asked, Bytes, Place, ask, made, refusal};
use crate::key::Key;
use crate::launcher::RENDEZVOUS;
use crate::problem::Problem;

/// How often PE 0 looks for newcomers.
const GLANCE: Duration = Duration::from_millis(1);
/// To how many newcomers PE 0 listens at a time. Each takes one of the files that a process may have open.
pub(super) const ROOM: usize = 256;
/// How long PE 0 listens to a newcomer.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// How long PE 0 listens to a newcomer if there is no room for others.
pub(super) const HURRY: Duration = Duration::from_millis(250);
/// How long another process may have the address. A past connection may hold it for a moment.
const TAKEN: Duration = Duration::from_secs(2);
/// How long PE 0 stays after a failure, to tell PEs that come late.
const LINGER: Duration = Duration::from_secs(1);
/// The limit for writing a few bytes, which only a network that is down reaches.
const WRITE: Duration = Duration::from_secs(1);

/// Waits for all PEs, and gives them the bytes.
pub(super) fn host(
    place: &Place,
    hello: Hello,
    limit: Duration,
    deadline: Instant,
    make: impl FnOnce() -> Result<Bytes, Problem>,
) -> Result<Bytes, Problem> {
    let mut root = Root::new(place, hello, limit, deadline)?;
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

/// Takes the address. If another process has it, that may be a PE of this job with rank 0.
fn listen(place: &Place, hello: Hello, deadline: Instant) -> Result<TcpListener, Problem> {
    let until = deadline.min(Instant::now() + TAKEN);
    let mut by_another = false;
    loop {
        let why = match bind(place) {
            Ok(listener) => return Ok(listener),
            Err(why) => why,
        };
        let is_taken = why.kind() == ErrorKind::AddrInUse;
        for address in place.addresses.iter().filter(|_| is_taken) {
            match ask(address, place, hello, until)? {
                Asked::Answered(Answer::Missing(why)) => return Err(place.missing(why)),
                Asked::Answered(Answer::Disagreement(why)) => return Err(place.disagreement(why)),
                Asked::Refused => by_another = true,
                _ => {}
            }
        }
        if !is_taken || Instant::now() >= until {
            if by_another {
                return Err(place.disagreement(refusal()));
            }
            let why = format!("{why}; set {RENDEZVOUS} to host:port with PE 0's host and a port that is free there");
            return Err(Problem::Failed { call: format!("PE 0 listens at {}", place.name), why });
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Listens at a loopback address as it is written. Any other may be one of several addresses of this host, or one by which only
/// others know it. Then PE 0 listens at all addresses.
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

pub(super) struct Root<'a> {
    place: &'a Place,
    hello: Hello,
    limit: Duration,
    /// When PE 0 gives up, early enough to tell the PEs that wait.
    deadline: Instant,
    listener: TcpListener,
    pub(super) newcomers: Vec<Newcomer>,
    /// The PEs that have come, by rank.
    pes: Vec<Option<Pe>>,
    /// How many newcomers said hello without the key.
    pub(super) refused: usize,
    /// Why the system accepts no connection, if that is so.
    not_accepted: Option<io::Error>,
}

/// A PE that has proved that it belongs to this job.
pub(super) struct Pe {
    stream: TcpStream,
    session: Session,
    host: Host,
}

impl<'a> Root<'a> {
    /// Listens from now on.
    pub(super) fn new(place: &'a Place, hello: Hello, limit: Duration, deadline: Instant) -> Result<Root<'a>, Problem> {
        let listener = listen(place, hello, deadline)?;
        let pes = (0..hello.n_pes).map(|_| None).collect();
        Ok(Root { place, hello, limit, deadline, listener, newcomers: vec![], pes, refused: 0, not_accepted: None })
    }

    /// Waits until all PEs have come.
    fn gather(&mut self) -> Result<(), Problem> {
        loop {
            for (pe, hello, left) in self.arrivals() {
                self.admit(pe, hello, left)?;
            }
            if let Some(rank) = self.pes.iter().position(|pe| pe.as_ref().is_some_and(Pe::has_left)) {
                return Err(self.place.missing(format!("PE {rank} ended while it waited; see what it printed")));
            }
            let missing: Vec<usize> = (1..self.pes.len()).filter(|&rank| self.pes[rank].is_none()).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if Instant::now() >= self.deadline {
                return Err(self.place.missing(self.who_is_missing(&missing)));
            }
            thread::sleep(GLANCE);
        }
    }

    pub(super) fn who_is_missing(&self, missing: &[usize]) -> String {
        let mut why = format!(
            "{} of {} did not arrive within {} s; see whether all were started, with the same {RENDEZVOUS}",
            ranks(missing),
            self.pes.len(),
            self.limit.as_secs_f32()
        );
        // Writing to a String cannot fail.
        let _ = match self.refused {
            0 => Ok(()),
            1 => write!(why, "; 1 that came was refused: it has not the same {}, or is of another job", Key::VARIABLE),
            n => write!(why, "; {n} that came were refused: not the same {}, or of another job", Key::VARIABLE),
        };
        let _ = self.not_accepted.as_ref().map_or(Ok(()), |system| write!(why, "; the system let nobody in: {system}"));
        why
    }

    /// The newcomers that have proved by now that they belong to this job, and what they said.
    pub(super) fn arrivals(&mut self) -> Vec<(Pe, Hello, Duration)> {
        while self.newcomers.len() < ROOM {
            match self.listener.accept() {
                Ok((stream, _)) => self.newcomers.extend(Newcomer::new(stream)),
                Err(why) => {
                    self.not_accepted = Some(why).filter(|why| why.kind() != ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        let patience = if self.newcomers.len() < ROOM { SILENCE } else { HURRY };
        let mut arrived = Vec::new();
        for mut newcomer in std::mem::take(&mut self.newcomers) {
            match newcomer.listen() {
                Said::Everything(bytes) => {
                    let session = |of_the_other: &Challenge| self.place.session(&newcomer.challenge, of_the_other);
                    match Hello::read(&bytes, session) {
                        Some((hello, left, session)) => {
                            arrived.push((Pe { stream: newcomer.stream, session, host: hello.host }, hello, left));
                        }
                        None => {
                            self.refused += 1;
                            let _ = newcomer.stream.write(&wire::REFUSAL); // it may have gone
                        }
                    }
                }
                Said::Something if newcomer.since.elapsed() < patience => self.newcomers.push(newcomer),
                Said::Something | Said::Nonsense => {} // not a PE
            }
        }
        arrived
    }

    /// Welcomes a PE of this job.
    pub(super) fn admit(&mut self, pe: Pe, hello: Hello, left: Duration) -> Result<(), Problem> {
        pe.tell(&wire::welcome_bytes(&pe.session));
        // The PE with the shortest limit decides, less the time for an answer.
        let margin = (self.limit / 20).min(Duration::from_secs(1));
        self.deadline = self.deadline.min(Instant::now() + left.saturating_sub(margin));
        let Hello { rank, n_pes, host } = hello;
        let ours = self.hello.n_pes;
        let wrong = if n_pes != ours {
            format!(
                "PE {rank} was started as one of {n_pes} PEs, PE 0 as one of {ours}; start all with the same number"
            )
        } else if rank >= n_pes {
            format!("one says that it is PE {rank} of {n_pes}; PEs count from 0, see how it was started")
        } else if rank == 0 || self.pes[rank as usize].is_some() {
            format!("two PEs have rank {rank}; start each once and with its own rank, best by one launcher")
        } else if let Some(other) = self.mistaken_for(host) {
            format!(
                "PE {other} and PE {rank} are on two machines with one host name (or on one, with a /dev/shm each), and NVSHMEM tells \
                 nodes apart by their names; give each machine or container a host name of its own"
            )
        } else {
            self.pes[rank as usize] = Some(pe);
            return Ok(());
        };
        pe.tell(&Answer::Disagreement(wrong.clone()).bytes(&pe.session));
        Err(self.place.disagreement(wrong))
    }

    /// The rank of a PE that the library would take for a PE of the same node as this host, although it is not; `None` if there
    /// is none.
    fn mistaken_for(&self, host: Host) -> Option<usize> {
        let hosts = self.pes.iter().map(|pe| pe.as_ref().map(|pe| pe.host));
        let mut hosts = [Some(self.hello.host)].into_iter().chain(hosts.skip(1));
        hosts.position(|other| other.is_some_and(|other| host.is_mistaken_for(other)))
    }

    /// Tells the failure to PEs that come late.
    fn linger(&mut self, answer: &Answer, until: Instant) {
        while Instant::now() < until {
            for (pe, ..) in self.arrivals() {
                pe.tell(&wire::welcome_bytes(&pe.session));
                pe.tell(&answer.bytes(&pe.session));
            }
            thread::sleep(GLANCE);
        }
    }

    /// Tells all PEs that wait.
    fn answer(&self, answer: &Answer) {
        self.pes.iter().flatten().for_each(|pe| pe.tell(&answer.bytes(&pe.session)));
    }
}

impl Pe {
    /// Sends bytes to it. If that fails, the PE has left.
    fn tell(&self, bytes: &[u8]) {
        let stream = self.stream.set_nonblocking(false).and_then(|()| self.stream.try_clone());
        let _ = stream.and_then(|stream| Talk::new(stream, Instant::now() + WRITE).say(bytes));
    }

    /// Whether it has closed its end. There is nothing else to read from it.
    fn has_left(&self) -> bool {
        let peeked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        !matches!(peeked, Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted))
    }
}

/// A connection whose other end has not proved yet that it is a PE of this job.
pub(super) struct Newcomer {
    stream: TcpStream,
    pub(super) since: Instant,
    /// What it said since it got an answer.
    said: Vec<u8>,
    /// What it must seal.
    challenge: Challenge,
    /// Whether it began as a PE does, and got the challenge.
    has_knocked: bool,
}

enum Said {
    Everything([u8; Hello::SIZE]),
    Something,
    Nonsense,
}

impl Newcomer {
    /// `None` if the system cannot serve it.
    fn new(stream: TcpStream) -> Option<Newcomer> {
        stream.set_nonblocking(true).ok()?;
        let challenge = seal::challenge().ok()?;
        Some(Newcomer { stream, since: Instant::now(), said: Vec::new(), challenge, has_knocked: false })
    }

    /// Reads what it has said by now. Sends the challenge, once it has begun as a PE does.
    fn listen(&mut self) -> Said {
        let wanted = if self.has_knocked { Hello::SIZE } else { KNOCK.len() };
        let mut bytes = [0; Hello::SIZE];
        match self.stream.read(&mut bytes[..wanted - self.said.len()]) {
            Ok(0) => return Said::Nonsense,
            Ok(more) => self.said.extend_from_slice(&bytes[..more]),
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Said::Nonsense,
        }
        if self.has_knocked {
            return self.said.as_slice().try_into().map_or(Said::Something, Said::Everything);
        }
        if !KNOCK.starts_with(&self.said) {
            return Said::Nonsense;
        }
        if self.said.len() == KNOCK.len() {
            let challenge = wire::challenge_bytes(&self.challenge);
            // A few bytes always fit into the buffer of a new connection.
            if !self.stream.write(&challenge).is_ok_and(|written| written == challenge.len()) {
                return Said::Nonsense;
            }
            self.has_knocked = true;
            self.said.clear();
        }
        Said::Something
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

    /// On Debian a host resolves its own name to 127.0.1.1, and other hosts resolve it to an address of the network.
    #[test]
    fn pe_0_listens_to_all_unless_the_place_is_written_as_local() {
        let bound = |name: &str| {
            let mut place =
                Place::resolve(&format!("{name}:1"), "", Key::random().unwrap(), Duration::from_secs(30)).unwrap();
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
