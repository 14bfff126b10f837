//! [`exchange`]: PE 0 makes 128 bytes, and every PE of the job has them, within a limit of time.
//!
//! PE 0 listens; the others connect, again and again until it does. Each says who it is, and when all have come, each
//! gets the bytes. Whatever goes wrong before (somebody is missing, two have the same rank, PEs disagree on how many
//! they are) becomes a message that all get who wait. A program that has nothing to do with it and connects, or has the
//! port, is told from a PE by the first bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | `rendezvous/wire.rs` | what is said: a hello to PE 0, an answer from it |
//! | `rendezvous/root.rs` | PE 0's end |

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use crate::launcher::{RENDEZVOUS, fnv, is_loopback};
use crate::limit::within;
use crate::problem::Problem;

mod root;
mod wire;

use wire::{Answer, Hello, Talk};

/// What is exchanged: the size of NVSHMEM's unique id.
pub(crate) type Bytes = [u8; 128];

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(1);
/// Attempts follow each other after 5 ms, then after twice as long, up to this.
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes that `make` makes on PE 0, on every PE. `meeting` is `host:port`, or `host:port/job` with what tells the
/// job from others; it is the same on all PEs, and `host` is PE 0's.
///
/// # Errors
/// On all PEs that wait: [`Problem::Missing`] if not all came within the limit, or one ended while it waited;
/// [`Problem::Disagreement`] if two have the same rank, or another number of PEs, or belong to another job;
/// [`Problem::Failed`] if `make` failed, or if the address cannot be used.
pub(crate) fn exchange(
    rank: usize,
    n_pes: usize,
    meeting: &str,
    limit: Duration,
    make: impl FnOnce() -> Result<Bytes, Problem>,
) -> Result<Bytes, Problem> {
    if n_pes <= 1 {
        return made(make());
    }
    let deadline = Instant::now() + limit;
    let place = Place::resolve(meeting, limit)?;
    let hello = Hello { job: place.job, rank: rank as u64, n_pes: n_pes as u64 };
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
    /// Whether the name says that all PEs are on this host. What it is looked up to does not: a host may know its own name
    /// as 127.0.1.1, and yet PEs of other hosts come to it.
    is_local: bool,
    job: u64,
}

impl Place {
    fn resolve(meeting: &str, limit: Duration) -> Result<Place, Problem> {
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
                let is_local = is_loopback(name);
                Ok(Place { name: name.to_string(), addresses, is_local, job: fnv(job.as_bytes()) })
            }
            Ok(_) => Err(wrong("the host has no address; set it to PE 0's host by another name".to_string())),
            Err(Problem::Failed { why, .. }) => Err(wrong(format!(
                "the host is not known here: {why}; set it to PE 0's host by a name or an address that all know"
            ))),
            Err(problem) => Err(problem),
        }
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
    loop {
        let mut last = String::new();
        for address in &place.addresses {
            match ask(address, hello, deadline) {
                Asked::Answered(Answer::Bytes(bytes)) => return Ok(bytes),
                Asked::Answered(Answer::Missing(why)) => return Err(place.missing(why)),
                Asked::Answered(Answer::Disagreement(why)) => return Err(place.disagreement(why)),
                Asked::Answered(Answer::Failed(why)) => return Err(Problem::Failed { call: "PE 0".to_string(), why }),
                Asked::Left => {
                    return Err(place.missing("PE 0 ended before all had arrived; see what it printed".to_string()));
                }
                Asked::Nothing(why) => last = why,
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = limit.as_secs_f32();
            return Err(place.missing(format!("PE {} waited {seconds} s for PE 0: {last}", hello.rank)));
        }
        thread::sleep(pause.min(left));
        pause = PAUSE.min(pause * 2);
    }
}

/// How an attempt to ask PE 0 ended.
enum Asked {
    Answered(Answer),
    /// PE 0 was there, and is not any more.
    Left,
    /// It was not PE 0, or nobody: why.
    Nothing(String),
}

fn ask(address: &SocketAddr, hello: Hello, deadline: Instant) -> Asked {
    let left = deadline.saturating_duration_since(Instant::now());
    let stream = match TcpStream::connect_timeout(address, left.clamp(Duration::from_millis(1), CONNECT)) {
        Ok(stream) => stream,
        Err(why) => {
            let remedy = format!("see whether it was started, with the same {RENDEZVOUS}");
            return Asked::Nothing(format!("it does not listen there ({why}); {remedy}"));
        }
    };
    let mut talk = Talk::new(stream, deadline);
    let mut is_welcome = false;
    let spoken = talk.say(&hello.bytes(left)).and_then(|()| {
        is_welcome = wire::read_welcome(&mut talk)?;
        if is_welcome { wire::read_answer(&mut talk).map(Some) } else { Ok(None) }
    });
    match spoken {
        Ok(Some(answer)) => Asked::Answered(answer),
        Ok(None) => Asked::Nothing(format!("another program listens there; set {RENDEZVOUS} to another port")),
        Err(why) if wire::is_timeout(&why) && is_welcome => {
            Asked::Nothing("it still waits for others; see whether all were started".to_string())
        }
        Err(why) if wire::is_timeout(&why) => {
            Asked::Nothing(format!("what listens there does not answer; set {RENDEZVOUS} to another port"))
        }
        Err(_) if is_welcome => Asked::Left,
        Err(why) => Asked::Nothing(format!("what listens there does not answer as PE 0 would ({why})")),
    }
}

#[cfg(test)]
mod tests;
