//! Whether PEs can find each other here. The rendezvous needs an address of this host, and NVSHMEM's own bootstrap needs a
//! network interface.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use onesided_nvshmem::Problem;

/// Where Linux lists its interfaces, each with its flags.
const INTERFACES: &str = "/sys/class/net";
/// The variable by which a user chooses among them for NVSHMEM.
const CHOICE: &str = "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME";
/// The flag of an interface that is up.
const UP: u32 = 1;

/// How PEs of this host can find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    /// The network interfaces that are up and that NVSHMEM may use. Empty if the system does not list them.
    pub(super) interfaces: Vec<String>,
}

/// Tries loopback, and looks for the interfaces.
pub(super) fn look(limit: Duration) -> Result<Network, Problem> {
    let failed = |why: std::io::Error| Problem::Failed {
        call: "a connection of 127.0.0.1 with itself".into(),
        why: why.to_string(),
    };
    meet(limit).map_err(failed)?;
    let choice = std::env::var(CHOICE).unwrap_or_default();
    let Some(up) = interfaces() else { return Ok(Network { interfaces: Vec::new() }) };
    let usable: Vec<String> = up.iter().filter(|name| is_chosen(&choice, name)).cloned().collect();
    if usable.is_empty() {
        let looked = if up.is_empty() {
            vec![format!("none of {INTERFACES} is up")]
        } else {
            vec![format!("{CHOICE}={choice} chooses none of {}", up.join(", "))]
        };
        return Err(Problem::NotFound { what: "network interface", looked });
    }
    Ok(Network { interfaces: usable })
}

/// Listens, connects, and says a word.
fn meet(limit: Duration) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut visitor = TcpStream::connect_timeout(&listener.local_addr()?, limit)?;
    let (mut host, _) = listener.accept()?; // it is connected, so this does not wait
    host.set_read_timeout(Some(limit))?;
    visitor.write_all(b"1")?;
    host.read_exact(&mut [0])
}

/// The names of all interfaces that are up, in order; `None` if the system does not list them.
fn interfaces() -> Option<Vec<String>> {
    let entries = fs::read_dir(INTERFACES).ok()?.flatten();
    let is_up =
        |flags: &str| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|flags| flags & UP != 0);
    let up = entries.filter(|entry| fs::read_to_string(entry.path().join("flags")).is_ok_and(|flags| is_up(&flags)));
    let mut names: Vec<String> = up.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Some(names)
}

/// Whether the user's choice includes an interface. The choice is a list of beginnings of names, separated by commas. `^` before
/// it makes it a list of interfaces that are not wanted; `=` makes it a list of whole names.
fn is_chosen(choice: &str, name: &str) -> bool {
    let (is_refusal, list) = choice.strip_prefix('^').map_or((false, choice), |list| (true, list));
    let (is_whole, list) = list.strip_prefix('=').map_or((false, list), |list| (true, list));
    let mut names = list.split(',').filter(|part| !part.is_empty()).peekable();
    names.peek().is_none()
        || names.any(|part| if is_whole { name == part } else { name.starts_with(part) }) != is_refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_can_meet_on_the_machine_that_tests_this() {
        let network = look(Duration::from_secs(10)).unwrap();
        assert_eq!(network.interfaces.is_empty(), interfaces().is_none(), "{network:?}");
    }

    #[test]
    fn interfaces_are_chosen_as_nvshmem_does() {
        for (choice, chosen) in [
            ("", &["eth0", "eth1", "ib0", "lo"][..]),
            ("eth", &["eth0", "eth1"]),
            ("ib,lo", &["ib0", "lo"]),
            ("=eth1", &["eth1"]),
            ("^eth,lo", &["ib0"]),
            ("^=eth0", &["eth1", "ib0", "lo"]),
            ("=eth", &[]),
        ] {
            let all = ["eth0", "eth1", "ib0", "lo"].into_iter();
            assert_eq!(all.filter(|name| is_chosen(choice, name)).collect::<Vec<_>>(), chosen, "{choice}");
        }
    }
}
