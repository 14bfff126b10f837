//! [`exchange`]: PE 0 makes 128 bytes, and every PE of the job has them, within a limit of time.
//!
//! PE 0 listens. The others try to connect until it does. Each proves that it knows the job's key, and says who it is. When all
//! have come, each gets the bytes. If something goes wrong before (a PE is missing, two have the same rank, PEs disagree
//! about their number, two machines have one host name), all PEs that wait get a message.
//!
//! Any process may connect to PE 0, and any program may listen at PE 0's address. Therefore:
//!
//! * A process without the key gets neither a rank nor the bytes. If it does not begin as a PE does, PE 0 sends nothing. If it
//!   does, PE 0 sends a random challenge and then a refusal.
//! * The key is not sent. Both ends prove that they know it. So a PE does not accept bytes from a program that only listens at
//!   PE 0's address.
//! * PE 0 listens to a silent connection for 5 s, and for a quarter of a second if many wait (`root.rs`). A stranger cannot end
//!   or change a rendezvous. At worst the rendezvous lasts until its limit.
//!
//! The bytes are not encrypted: whoever can record the traffic between PEs can read them.
//!
//! | file | what it holds |
//! |---|---|
//! | `rendezvous/wire.rs` | the messages: a hello to PE 0, an answer from it |
//! | `rendezvous/host.rs` | on which machine a PE runs |
//! | `rendezvous/seal.rs` | how both ends prove that they know the key |
//! | `rendezvous/root.rs` | PE 0's end |

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use crate::key::Key;
use crate::launcher::{Placement, RENDEZVOUS, is_loopback};
use crate::limit::within;
use crate::problem::Problem;

mod host;
mod root;
mod seal;
mod wire;

use host::Host;
use seal::{Challenge, Session};
use wire::{Answer, Greeting, Hello, Talk};

/// What is exchanged: the size of NVSHMEM's unique id.
pub(crate) type Bytes = [u8; 128];

/// What PEs meet for: to run a program.
pub(crate) const PROGRAM: &str = "";
/// What PEs meet for: to see whether they can.
pub(crate) const REHEARSAL: &str = "rehearsal";

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long PE 0 may take to greet a PE. A program that does not answer in this time is not PE 0.
const GREETING: Duration = Duration::from_secs(5);
/// How long a PE tries again after it was refused: PE 0 of an earlier job may be there for a moment.
const REFUSED: Duration = Duration::from_secs(2);
/// The longest pause between two attempts. The first pause is 5 ms, and each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns, on every PE of a job, the bytes that `make` makes on PE 0. `placement` is this PE's. PEs that meet for one `topic`
/// do not meet those that meet for another.
///
/// # Errors
/// On all PEs that wait: [`Problem::Missing`] if not all came within the limit, or one ended while it waited;
/// [`Problem::Disagreement`] if two have the same rank, or another number of PEs, or are on two machines with one name; [`Problem::Failed`] if `make` failed, or
/// if the address cannot be used. On this PE: [`Problem::Variable`] if it has no key or no address;
/// [`Problem::Disagreement`] if its key or its job is not that of PE 0.
pub(crate) fn exchange(
    placement: &Placement,
    topic: &str,
    limit: Duration,
    make: impl FnOnce() -> Result<Bytes, Problem>,
) -> Result<Bytes, Problem> {
    let Placement { rank, n_pes, .. } = *placement;
    if n_pes <= 1 {
        return make(); // there is nobody to meet
    }
    let deadline = Instant::now() + limit;
    let place = Place::resolve(placement.meeting()?, topic, placement.key()?.clone(), limit)?;
    let hello = Hello { rank: rank as u64, n_pes: n_pes as u64, host: Host::here() };
    match rank {
        0 => root::host(&place, hello, limit, deadline, make),
        _ => visit(&place, hello, limit, deadline),
    }
}

fn made(bytes: Result<Bytes, Problem>) -> Result<Bytes, Problem> {
    bytes
        .map_err(|error| Problem::Failed { call: "PE 0 makes what the others wait for".into(), why: error.to_string() })
}

/// Where the PEs meet.
struct Place {
    /// As messages name it: `host:port`.
    name: String,
    addresses: Vec<SocketAddr>,
    /// Whether the name is written as a loopback address. The address that the name resolves to does not count: a host may
    /// resolve its own name to 127.0.1.1, and yet PEs of other hosts come to it.
    is_local: bool,
    /// The job's name and the topic, for meetings with the same key.
    job: String,
    key: Key,
}

impl Place {
    /// `meeting` is `host:port`, or `host:port/job`.
    fn resolve(meeting: &str, topic: &str, key: Key, limit: Duration) -> Result<Place, Problem> {
        let (name, job) = meeting.split_once('/').unwrap_or((meeting, ""));
        let wrong = |why: String| Problem::Variable { variable: format!("{RENDEZVOUS}={meeting}"), why };
        let port = name.rsplit_once(':').and_then(|(host, port)| port.parse::<u16>().ok().filter(|_| !host.is_empty()));
        if port.is_none_or(|port| port == 0) {
            return Err(wrong("no host:port with a port from 1 to 65535".to_string()));
        }
        // Names may be looked up in the network.
        let owned = name.to_string();
        let found = within(limit, name, move || {
            let found = owned.to_socket_addrs().map(Vec::from_iter);
            found.map_err(|why| Problem::Failed { call: owned, why: why.to_string() })
        });
        match found {
            Ok(addresses) if !addresses.is_empty() => {
                let (name, is_local) = (name.to_string(), is_loopback(name));
                Ok(Place { name, addresses, is_local, job: format!("{job}/{topic}"), key })
            }
            Ok(_) => Err(wrong("the host has no address; set it to PE 0's host by another name".to_string())),
            Err(Problem::Failed { why, .. }) => Err(wrong(format!(
                "the host is not known here: {why}; set it to PE 0's host by a name or an address that all know"
            ))),
            Err(problem) => Err(problem),
        }
    }

    fn session(&self, of_pe_0: &Challenge, of_the_other: &Challenge) -> Session {
        Session::new(&self.key, &self.job, of_pe_0, of_the_other)
    }

    fn missing(&self, why: String) -> Problem {
        Problem::Missing { at: self.name.clone(), why }
    }

    fn disagreement(&self, why: String) -> Problem {
        Problem::Disagreement { at: self.name.clone(), why }
    }
}

/// The end of every PE but PE 0.
fn visit(place: &Place, hello: Hello, limit: Duration, deadline: Instant) -> Result<Bytes, Problem> {
    let mut pause = Duration::from_millis(5);
    let (mut last, mut refused_since) = (None, None);
    loop {
        let mut is_refused = false;
        for address in &place.addresses {
            match ask(address, place, hello, deadline)? {
                Asked::Answered(Answer::Bytes(bytes)) => return Ok(bytes),
                Asked::Answered(Answer::Missing(why)) => return Err(place.missing(why)),
                Asked::Answered(Answer::Disagreement(why)) => return Err(place.disagreement(why)),
                Asked::Answered(Answer::Failed(why)) => return Err(Problem::Failed { call: "PE 0".to_string(), why }),
                Asked::Left => {
                    return Err(place.missing("PE 0 ended before all had arrived; see what it printed".to_string()));
                }
                Asked::Refused => is_refused = true,
                Asked::Nothing(why) => last = Some(why),
                // The last attempt may have been too short for an answer. An earlier reason says more.
                Asked::NoAnswer => {
                    last.get_or_insert_with(|| another_port("what listens there does not answer"));
                }
            }
        }
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        refused_since = is_refused.then(|| refused_since.unwrap_or(now));
        if refused_since.is_some_and(|since| left.is_zero() || now.duration_since(since) >= REFUSED) {
            return Err(place.disagreement(refusal()));
        }
        if left.is_zero() {
            let seconds = limit.as_secs_f32();
            let last = last.unwrap_or_default();
            return Err(place.missing(format!("PE {} waited {seconds} s for PE 0: {last}", hello.rank)));
        }
        thread::sleep(pause.min(left));
        pause = PAUSE.min(pause * 2);
    }
}

/// What a refusal means.
fn refusal() -> String {
    format!(
        "PE 0 there is of another job, or has another {key}; give each job its own port with {RENDEZVOUS}, and all PEs of \
         a job the same {key}",
        key = Key::VARIABLE
    )
}

/// How an attempt to ask PE 0 ended.
enum Asked {
    Answered(Answer),
    /// PE 0 was there and has ended.
    Left,
    /// PE 0 of another job was there, or a program that answers like it.
    Refused,
    /// It was not PE 0, or nobody listens. Why.
    Nothing(String),
    /// A program listens and does not answer.
    NoAnswer,
}

fn another_port(why: &str) -> String {
    format!("{why}; set {RENDEZVOUS} to another port")
}

/// # Errors
/// [`Problem::Failed`] if the system has no random numbers.
fn ask(address: &SocketAddr, place: &Place, hello: Hello, deadline: Instant) -> Result<Asked, Problem> {
    let challenge = seal::challenge()?;
    let left = deadline.saturating_duration_since(Instant::now());
    let stream = match TcpStream::connect_timeout(address, left.clamp(Duration::from_millis(1), CONNECT)) {
        Ok(stream) => stream,
        Err(why) => {
            let remedy = format!("see whether it was started, with the same {RENDEZVOUS}");
            return Ok(Asked::Nothing(format!("it does not listen there ({why}); {remedy}")));
        }
    };
    let mut talk = Talk::new(stream, deadline.min(Instant::now() + GREETING));
    let greeted = wire::greet(&mut talk, hello, left, &challenge, |of_pe_0| place.session(of_pe_0, &challenge));
    let session = match greeted {
        Ok(Greeting::Welcome(session)) => session,
        Ok(Greeting::Refusal) => return Ok(Asked::Refused),
        Ok(Greeting::Strange) => return Ok(Asked::Nothing(another_port("another program listens there"))),
        Err(why) if wire::is_timeout(&why) => return Ok(Asked::NoAnswer),
        Err(why) => {
            return Ok(Asked::Nothing(format!("what listens there does not answer as PE 0 would ({why})")));
        }
    };
    talk.deadline = deadline;
    Ok(match wire::read_answer(&mut talk, &session) {
        Ok(answer) => Asked::Answered(answer),
        Err(why) if wire::is_timeout(&why) => {
            Asked::Nothing("it still waits for others; see whether all were started".to_string())
        }
        Err(why) if why.kind() == ErrorKind::InvalidData => Asked::Nothing(format!("it sent {why}")),
        Err(_) => Asked::Left,
    })
}

#[cfg(test)]
mod tests;
