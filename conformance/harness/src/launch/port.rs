//! Where the PEs of a job meet: an address of this host at which PE 0 will listen.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port to try. Services have the ports below.
const FIRST: u16 = 10_240;
/// The first of the ports that the system hands out by itself, if the system does not tell.
const EPHEMERAL: u16 = 32_768;

/// How many ports this process has tried. The next try takes the next port, so that jobs of one process get different ones.
static ASKED: AtomicU16 = AtomicU16::new(0);

/// `127.0.0.1:PORT/JOB` with a port that is free now. `JOB` tells this job's PEs from those of another one.
///
/// PE 0 listens there only some time later. Until then any process may take the port. That is unlikely, because the system does
/// not hand out this port by itself, and because processes begin their search at different ports. And it is harmless: PEs
/// of another job do not know this job's key, and are told so.
pub(super) fn meeting() -> Result<String, String> {
    let port = free_port()?;
    Ok(format!("127.0.0.1:{port}/{}.{}", process::id(), ASKED.load(Ordering::Relaxed)))
}

/// A port of this host that is free now, and that this process has not been given before.
///
/// # Errors
/// None is free.
pub fn free_port() -> Result<u16, String> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    Ok(free(span(&range)).ok_or("no TCP port of 127.0.0.1 is free; PEs meet through one")?)
}

/// The number of ports from `FIRST` on that the system does not hand out by itself.
fn span(range: &str) -> u16 {
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(EPHEMERAL);
    if first > FIRST { first - FIRST } else { EPHEMERAL - FIRST }
}

fn free(span: u16) -> Option<u16> {
    // Neighbouring process numbers start far apart.
    let start = (process::id().wrapping_mul(2_654_435_761) >> 16) as u16;
    (0..span).find_map(|_| {
        let asked = ASKED.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(asked) % span;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_meets_elsewhere() {
        let (one, other) = (meeting().unwrap(), meeting().unwrap());
        let port = |meeting: &str| meeting.split([':', '/']).nth(1).unwrap().parse::<u16>().unwrap();
        assert_ne!(port(&one), port(&other));
        // another process may look at the same port in this moment
        let is_free = |meeting: &str| TcpListener::bind((Ipv4Addr::LOCALHOST, port(meeting))).is_ok();
        assert!((0..5).any(|_| is_free(&meeting().unwrap())), "each is taken");
    }

    #[test]
    fn the_ports_are_those_that_the_system_leaves_alone() {
        assert_eq!(span("32768\t60999\n"), 32_768 - FIRST);
        assert_eq!(span("20000\t60999\n"), 20_000 - FIRST);
        for odd in ["", "1024 65535", "nonsense"] {
            assert_eq!(span(odd), EPHEMERAL - FIRST, "{odd:?}");
        }
    }
}
