//! A schedule as a value: printed in one short line, parsed, replayed.

use std::fmt;
use std::str::FromStr;

use onesided::{At, Error, Result};

use crate::config::Config;
use crate::profile::Profile;
use crate::trace::{Event, EventKind, in_words};

/// Which of the possible runs of a program on a cluster.
///
/// The text form names everything that the run depends on besides the program: cluster, profile, pieces, and how each
/// choice is made; and it ends with a fingerprint of what happened, by which a replay notices that the program is
/// another one.
///
/// ```
/// use onesided_sim::Schedule;
/// let text = "os1.4x2.spec.p4.r2a.0";
/// let schedule: Schedule = text.parse().unwrap();
/// assert_eq!((schedule.pes, schedule.nodes), (4, 2));
/// assert_eq!(schedule.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Number of PEs.
    pub pes: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of GPUs, if PEs share them.
    pub gpus: Option<usize>,
    /// The profile.
    pub profile: Profile,
    /// The most pieces of a transfer.
    pub pieces: usize,
    /// How each choice is made.
    pub choices: Choices,
    /// What happened, as a hash; 0 if it was not recorded.
    pub fingerprint: u32,
}

/// How the choices of a run are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choices {
    /// Every step happens at once.
    InOrder,
    /// By the generator with this seed.
    Seed(u64),
    /// One after the other; the first possible step where the list ends.
    Picks(Vec<u32>),
}

const VERSION: &str = "os1";

impl Schedule {
    pub(crate) fn new(config: &Config, choices: Choices) -> Schedule {
        let Config { pes, nodes, gpus, profile, pieces, .. } = *config;
        Schedule { pes, nodes, gpus, profile, pieces, choices, fingerprint: 0 }
    }

    /// `config` with the cluster, profile and pieces of this schedule.
    pub fn configure(&self, config: &Config) -> Config {
        let Schedule { pes, nodes, gpus, profile, pieces, .. } = *self;
        Config { pes, nodes, gpus, profile, pieces, ..config.clone() }
    }
}

/// Hashes what happened, without source lines: moving code does not make a schedule invalid.
pub(crate) fn fingerprint(trace: &[Event]) -> u32 {
    use std::fmt::Write as _;
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for Event { pe, stream, kind, .. } in trace {
        let _ = write!(hash, "{pe} {stream:?} "); // hashing cannot fail
        let _ = match kind {
            EventKind::Op { op, values } | EventKind::Enqueued { op, values, .. } => {
                hash.write_str(&in_words(op, values))
            }
            other => write!(hash, "{other:?}"),
        };
    }
    ((hash.0 >> 32) ^ hash.0) as u32 | 1
}

/// FNV-1a, so that a fingerprint is the same on every machine and in every version.
struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Schedule { pes, nodes, gpus, profile, pieces, choices, fingerprint } = self;
        write!(f, "{VERSION}.{pes}x{nodes}")?;
        if let Some(gpus) = gpus {
            write!(f, "g{gpus}")?;
        }
        write!(f, ".{profile}.p{pieces}.")?;
        match choices {
            Choices::InOrder => f.write_str("o")?,
            Choices::Seed(seed) => write!(f, "r{seed:x}")?,
            Choices::Picks(picks) => {
                f.write_str("c")?;
                write_picks(f, picks)?;
            }
        }
        write!(f, ".{fingerprint:x}")
    }
}

/// One base-32 digit a pick; larger picks as `w…w` in hexadecimal, runs of at least four as `digit y count y`.
fn write_picks(f: &mut fmt::Formatter<'_>, picks: &[u32]) -> fmt::Result {
    let mut rest = picks;
    while let Some(&pick) = rest.first() {
        let run = rest.iter().take_while(|&&other| other == pick).count();
        let used = if run >= 4 { run } else { 1 };
        match char::from_digit(pick, 32) {
            Some(digit) => write!(f, "{digit}")?,
            None => write!(f, "w{pick:x}w")?,
        }
        if used > 1 {
            write!(f, "y{used:x}y")?;
        }
        rest = &rest[used..];
    }
    Ok(())
}

fn read_picks(text: &str) -> Option<Vec<u32>> {
    let mut picks = Vec::new();
    let mut rest = text;
    let until = |text: &mut &str, end: char| -> Option<u32> {
        let (digits, after) = text.split_once(end)?;
        *text = after;
        u32::from_str_radix(digits, 16).ok()
    };
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            'w' => picks.push(until(&mut rest, 'w')?),
            'y' => {
                let count = until(&mut rest, 'y')?.checked_sub(1)?;
                let last = *picks.last()?;
                if count > 100_000_000 {
                    return None;
                }
                picks.extend(std::iter::repeat_n(last, count as usize));
            }
            digit => picks.push(digit.to_digit(32)?),
        }
    }
    Some(picks)
}

impl FromStr for Schedule {
    type Err = Error;

    #[track_caller]
    fn from_str(text: &str) -> Result<Schedule> {
        let wrong = |what: &str| {
            let message = format!("{text:?} is no schedule: {what}; expected e.g. os1.4x1.spec.p4.r2a.8c1d03e2");
            Error::invalid("replay", message, At::caller())
        };
        let fields: Vec<&str> = text.trim().split('.').collect();
        let [version, cluster, profile, pieces, choices, fingerprint] = fields[..] else {
            return Err(wrong("it has not six parts"));
        };
        if version != VERSION {
            return Err(wrong(&format!("it does not begin with {VERSION:?}")));
        }
        let (pes, nodes) = cluster.split_once('x').ok_or_else(|| wrong("the cluster is not PEs x nodes"))?;
        let (nodes, gpus) = nodes.split_once('g').map_or((nodes, None), |(nodes, gpus)| (nodes, Some(gpus)));
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong(&format!("{text:?} is no number")));
        let hex = |text: &str| u64::from_str_radix(text, 16).map_err(|_| wrong(&format!("{text:?} is no number")));
        let choices = match choices.split_at_checked(1) {
            Some(("o", "")) => Choices::InOrder,
            Some(("r", seed)) => Choices::Seed(hex(seed)?),
            Some(("c", picks)) => Choices::Picks(read_picks(picks).ok_or_else(|| wrong("its picks are damaged"))?),
            _ => return Err(wrong(&format!("{choices:?} is no way to choose"))),
        };
        Ok(Schedule {
            pes: number(pes)?,
            nodes: number(nodes)?,
            gpus: gpus.map(number).transpose()?,
            profile: profile.parse().map_err(|why: String| wrong(&why))?,
            pieces: number(pieces.strip_prefix('p').ok_or_else(|| wrong("the pieces do not begin with p"))?)?,
            choices,
            fingerprint: u32::try_from(hex(fingerprint)?).map_err(|_| wrong("its fingerprint is too long"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(picks: Vec<u32>) -> Schedule {
        Schedule { fingerprint: 0xabc, ..Schedule::new(&Config::default(), Choices::Picks(picks)) }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn picks_round_trip(picks in prop::collection::vec(prop_oneof![0u32..4, 0u32..2000], 0..200)) {
            let schedule = with(picks);
            prop_assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule);
        }

        #[test]
        fn no_text_breaks_the_parser(text in "[ -~]{0,60}") {
            let _ = text.parse::<Schedule>();
            let _ = format!("os1.4x1.spec.p4.c{text}.0").parse::<Schedule>();
        }
    }

    #[test]
    fn long_runs_are_short() {
        assert_eq!(with([vec![1; 1000], vec![40, 3]].concat()).to_string(), "os1.4x1.spec.p4.c1y3e8yw28w3.abc");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, why) in [
            ("", "six parts"),
            ("os0.4x1.spec.p4.o.0", "begin with \"os1\""),
            ("os1.4.spec.p4.o.0", "PEs x nodes"),
            ("os1.4x1.fast.p4.o.0", "\"fast\" is no profile"),
            ("os1.4x1.spec.p4.q.0", "\"q\" is no way to choose"),
            ("os1.4x1.spec.p4.cyy.0", "picks are damaged"),
        ] {
            let error = text.parse::<Schedule>().unwrap_err();
            assert!(error.message().contains(why), "{error}");
        }
    }
}
