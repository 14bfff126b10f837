//! A schedule as a value: printed in one short line, parsed, replayed.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use onesided::{At, Error, Result};

use crate::config::{Config, Loads, Quiet};
use crate::exception::{AND, Exception};
use crate::profile::Profile;
use crate::search::MOST_DEPTH;
use crate::trace::{Event, EventKind, in_words};

/// Which of the possible runs of a program on a cluster.
///
/// The text form names everything that the run depends on besides the program: cluster, profile, pieces, the program's
/// arguments, and how each choice is made. It ends with a fingerprint of what happened. By that, a replay notices that
/// the program has changed.
///
/// The parts of `os2.8x2g4.spec.p4.a5d1c9a02.r2a.8c1d03e2`:
///
/// | part | meaning |
/// |---|---|
/// | `os2` | the version of this form |
/// | `8x2g4` | 8 PEs on 2 nodes, which share 4 GPUs; without `g…`, each PE has a GPU |
/// | `spec` | the profile |
/// | `p4` | a transfer arrives in at most 4 pieces; `p4t`: and quiets in kernels are those of threads, [`Quiet::Thread`]; `p4l`: and loads find old values, [`Loads::Oldest`] |
/// | `a5d1c9a02` | [`Config::arguments`], 8 hexadecimal digits; left out where it is 0 |
/// | `r2a` | the choices: `o` in order; `r` and a seed in hexadecimal, at random; `pos2a` and `pct3k1f4s2a` too, by another strategy; `c` and picks, one after the other, or `s` and picks, where threads that may be told to give up look step by step; `x` and exceptions from the order |
/// | `8c1d03e2` | the fingerprint, 8 hexadecimal digits; `none` if the run was not recorded |
///
/// A pick is the number of the step that was taken, among those that were possible: a base-32 digit, or `w28w` for 40.
/// `1y3e8y` are 1000 times the pick 1 (lengths are hexadecimal). Behind the last pick the first possible step is taken.
///
/// `t1c02lg100000000n3` is an [`Exception`]: a step, `l` (later than), and the step that it waits for. `z` stands between exceptions.
///
/// ```
/// use onesided_sim::{Choices, Schedule};
/// let text = "os2.4x2.spec.p4.r2a.8c1d03e2";
/// let schedule: Schedule = text.parse()?;
/// assert_eq!((schedule.pes, schedule.nodes, schedule.choices.clone()), (4, 2, Choices::Seed(0x2a)));
/// assert_eq!(schedule.to_string(), text);
///
/// let cut = "os2.4x2.spec.p4.r2a.8c1d03".parse::<Schedule>().unwrap_err();
/// assert!(cut.message().contains("its fingerprint has 6 of 8 digits"));
/// # Ok::<(), onesided::Error>(())
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
    /// What quiets in kernels are about.
    pub quiet: Quiet,
    /// What strong loads in kernels find.
    pub loads: Loads,
    /// How each choice is made.
    pub choices: Choices,
    /// What the program was given: [`Config::arguments`].
    pub arguments: u32,
    /// A hash of what happened; `None` if it was not recorded. Then a replay cannot tell whether the program is the one that the
    /// schedule was recorded from.
    pub fingerprint: Option<u32>,
}

/// How the choices of a run are made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choices {
    /// Every step happens at once.
    InOrder,
    /// By the generator with this seed, as [`Strategy::Plain`](crate::Strategy::Plain).
    Seed(u64),
    /// By the generator with this seed, as [`Strategy::Pos`](crate::Strategy::Pos).
    Pos {
        /// The seed.
        seed: u64,
    },
    /// By the generator with this seed, as [`Strategy::Pct`](crate::Strategy::Pct).
    Pct {
        /// Priorities change `depth - 1` times.
        depth: u32,
        /// They change during so many choices.
        steps: u64,
        /// The seed.
        seed: u64,
    },
    /// One after the other; the first possible step where the list ends.
    Picks(Vec<u32>),
    /// The same, for a proof in which a thread looks step by step if another word can tell it to give up its wait.
    Stepwise(Vec<u32>),
    /// Every step as soon as it can be, PEs by rank, but for these.
    Exceptions(Vec<Exception>),
}

const VERSION: &str = "os2";
/// Stands for the fingerprint of a run that was not recorded.
const UNRECORDED: &str = "none";
/// How many digits a fingerprint and a hash of arguments have. The number is fixed, so that a truncated text is noticed.
const DIGITS: usize = 8;

impl Schedule {
    pub(crate) fn new(config: &Config, choices: Choices) -> Schedule {
        let Config { pes, nodes, gpus, profile, pieces, quiet, loads, arguments, .. } = *config;
        Schedule { pes, nodes, gpus, profile, pieces, quiet, loads, choices, arguments, fingerprint: None }
    }

    /// `config` with the cluster, profile, pieces, quiets and loads of this schedule. What the program is given stays that of `config`.
    pub fn configure(&self, config: &Config) -> Config {
        let Schedule { pes, nodes, gpus, profile, pieces, quiet, loads, .. } = *self;
        Config { pes, nodes, gpus, profile, pieces, quiet, loads, ..config.clone() }
    }
}

/// Hashes what happened, without source lines: moving code does not make a schedule invalid.
pub(crate) fn fingerprint(trace: &[Event]) -> u32 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for Event { pe, stream, kind, .. } in trace.iter().filter(|event| !event.implied) {
        let _ = write!(hash, "{pe} {stream:?} "); // hashing cannot fail
        let _ = match kind {
            EventKind::Op { op, values } | EventKind::Enqueued { op, values, .. } => {
                hash.write_str(&in_words(op, values))
            }
            other => write!(hash, "{other:?}"),
        };
    }
    hash.folded()
}

/// Hashes a text to a number that is not 0.
pub(crate) fn hash_of(text: &str) -> u32 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let _ = hash.write_str(text); // hashing cannot fail
    hash.folded().max(1)
}

/// FNV-1a, so that a fingerprint is the same on every machine and in every version.
struct Fnv(u64);

impl Fnv {
    fn folded(&self) -> u32 {
        ((self.0 >> 32) ^ self.0) as u32
    }
}

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
        let Schedule { pes, nodes, gpus, profile, pieces, quiet, loads, choices, arguments, fingerprint } = self;
        write!(f, "{VERSION}.{pes}x{nodes}")?;
        if let Some(gpus) = gpus {
            write!(f, "g{gpus}")?;
        }
        let quiet = if *quiet == Quiet::Thread { "t" } else { "" };
        let loads = if *loads == Loads::Oldest { "l" } else { "" };
        write!(f, ".{profile}.p{pieces}{quiet}{loads}.")?;
        if *arguments != 0 {
            write!(f, "a{arguments:0DIGITS$x}.")?;
        }
        match choices {
            Choices::InOrder => f.write_str("o")?,
            Choices::Seed(seed) => write!(f, "r{seed:x}")?,
            Choices::Pos { seed } => write!(f, "pos{seed:x}")?,
            Choices::Pct { depth, steps, seed } => write!(f, "pct{depth}k{steps:x}s{seed:x}")?,
            Choices::Picks(picks) | Choices::Stepwise(picks) => {
                f.write_str(if matches!(choices, Choices::Picks(_)) { "c" } else { "s" })?;
                write_picks(f, picks)?;
            }
            Choices::Exceptions(exceptions) => {
                f.write_str("x")?;
                for (number, exception) in exceptions.iter().enumerate() {
                    let and = if number == 0 { None } else { Some(AND) };
                    and.map_or(Ok(()), |and| f.write_char(and))?;
                    exception.fmt(f)?;
                }
            }
        }
        match fingerprint {
            Some(fingerprint) => write!(f, ".{fingerprint:0DIGITS$x}"),
            None => write!(f, ".{UNRECORDED}"),
        }
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
                if count.saturating_add(picks.len() as u32) > 100_000_000 {
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
            let message =
                format!("{text:?} is not a schedule: {what}; expected e.g. {VERSION}.4x1.spec.p4.r2a.8c1d03e2");
            Error::invalid("replay", message, At::caller())
        };
        let fields: Vec<&str> = text.trim().split('.').collect();
        match fields[0] {
            VERSION => {}
            other if other.strip_prefix("os").is_some_and(|number| number.parse::<u32>().is_ok()) => {
                return Err(wrong("it is of another version of this project, and cannot be replayed by this one"));
            }
            _ => return Err(wrong(&format!("it does not begin with {VERSION:?}"))),
        }
        let (cluster, profile, pieces, arguments, choices, fingerprint) = match fields[1..] {
            [cluster, profile, pieces, choices, fingerprint] => (cluster, profile, pieces, None, choices, fingerprint),
            [cluster, profile, pieces, arguments, choices, fingerprint] => {
                (cluster, profile, pieces, Some(arguments), choices, fingerprint)
            }
            ref rest => {
                let why =
                    if rest.len() < 5 { "a part is missing, or it was cut" } else { "something stands behind it" };
                return Err(wrong(&format!("it has {} parts, and not 6, or 7 with arguments: {why}", fields.len())));
            }
        };
        let (pes, nodes) = cluster.split_once('x').ok_or_else(|| wrong("the cluster is not PEs x nodes"))?;
        let (nodes, gpus) = nodes.split_once('g').map_or((nodes, None), |(nodes, gpus)| (nodes, Some(gpus)));
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong(&format!("{text:?} is not a number")));
        let hex = |text: &str| match text.chars().all(|c| c.is_ascii_hexdigit()) {
            true => u64::from_str_radix(text, 16).map_err(|_| wrong(&format!("{text:?} is not a number of 64 bits"))),
            false => Err(wrong(&format!("{text:?} is not a hexadecimal number"))),
        };
        let hash = |what: &str, text: &str| match text.len() {
            DIGITS => hex(text).map(|hash| hash as u32),
            length => Err(wrong(&format!("its {what} has {length} of {DIGITS} digits"))),
        };
        let arguments = match arguments.map(|part| part.split_at_checked(1)) {
            None => 0,
            Some(Some(("a", digits))) => hash("part for arguments", digits)?,
            Some(_) => return Err(wrong("its fifth of seven parts does not begin with a")),
        };
        let choices = match choices.split_at_checked(1) {
            Some(("o", "")) => Choices::InOrder,
            Some(("p", rest)) if rest.starts_with("os") => Choices::Pos { seed: hex(&rest[2..])? },
            Some(("p", rest)) if rest.starts_with("ct") => {
                let parts = rest[2..].split_once('k').and_then(|(depth, rest)| Some((depth, rest.split_once('s')?)));
                let (depth, (steps, seed)) = parts.ok_or_else(|| wrong("its part for pct is damaged"))?;
                let depth = depth.parse().ok().filter(|depth| (1..=MOST_DEPTH).contains(depth));
                let depth = depth.ok_or_else(|| wrong("its depth of pct is not a number that can be"))?;
                Choices::Pct { depth, steps: hex(steps)?, seed: hex(seed)? }
            }
            Some(("r", seed)) => Choices::Seed(hex(seed)?),
            Some(("c", picks)) => Choices::Picks(read_picks(picks).ok_or_else(|| wrong("its picks are damaged"))?),
            Some(("s", picks)) => Choices::Stepwise(read_picks(picks).ok_or_else(|| wrong("its picks are damaged"))?),
            Some(("x", "")) => Choices::Exceptions(Vec::new()),
            Some(("x", list)) => {
                let exceptions = list.split(AND).map(str::parse).collect::<Result<Vec<Exception>, ()>>();
                Choices::Exceptions(exceptions.map_err(|()| wrong("its exceptions are damaged"))?)
            }
            _ => return Err(wrong(&format!("{choices:?} is not a way to choose"))),
        };
        let pieces = pieces.strip_prefix('p').ok_or_else(|| wrong("the pieces do not begin with p"))?;
        let (pieces, loads) = match pieces.strip_suffix('l') {
            Some(pieces) => (pieces, Loads::Oldest),
            None => (pieces, Loads::Newest),
        };
        let (pieces, quiet) = match pieces.strip_suffix('t') {
            Some(pieces) => (pieces, Quiet::Thread),
            None => (pieces, Quiet::Pe),
        };
        Ok(Schedule {
            pes: number(pes)?,
            nodes: number(nodes)?,
            gpus: gpus.map(number).transpose()?,
            profile: profile.parse().map_err(|why: String| wrong(&why))?,
            pieces: number(pieces)?,
            quiet,
            loads,
            choices,
            arguments,
            fingerprint: match fingerprint {
                UNRECORDED => None,
                digits => Some(hash("fingerprint", digits)?),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(picks: Vec<u32>) -> Schedule {
        Schedule {
            fingerprint: Some(0xabc),
            arguments: 0xd,
            ..Schedule::new(&Config::default(), Choices::Picks(picks))
        }
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
            let _ = format!("os2.4x1.spec.p4.c{text}.none").parse::<Schedule>();
        }
    }

    #[test]
    fn strategies_stand_in_schedules() {
        for (text, choices) in [
            ("os2.4x1.spec.p4.pos2a.none", Choices::Pos { seed: 0x2a }),
            ("os2.4x1.spec.p4.pct3k1f4s2a.none", Choices::Pct { depth: 3, steps: 0x1f4, seed: 0x2a }),
            ("os2.4x1.spec.p4.x.none", Choices::Exceptions(Vec::new())),
            ("os2.4x1.spec.p4t.r2a.none", Choices::Seed(0x2a)),
            (
                "os2.4x1.spec.p4.xt1c02lg100000000n3zt1c06lt1c02.none",
                Choices::Exceptions(["t1c02lg100000000n3", "t1c06lt1c02"].map(|text| text.parse().unwrap()).to_vec()),
            ),
        ] {
            let schedule: Schedule = text.parse().unwrap();
            assert_eq!((schedule.to_string().as_str(), schedule.choices), (text, choices));
        }
    }

    #[test]
    fn long_runs_are_short() {
        assert_eq!(
            with([vec![1; 1000], vec![40, 3]].concat()).to_string(),
            "os2.4x1.spec.p4.a0000000d.c1y3e8yw28w3.00000abc"
        );
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, why) in [
            ("", "begin with \"os2\""),
            ("os3.4x1.spec.p4.o.none", "of another version of this project"),
            ("os1.4x1.spec.p4.o.0", "of another version of this project"),
            ("ot2.4x1.spec.p4.o.none", "does not begin with \"os2\""),
            ("os2.4x1.spec.p4.o", "5 parts, and not 6, or 7 with arguments: a part is missing"),
            ("os2.4.spec.p4.o.none", "PEs x nodes"),
            ("os2.-4x1.spec.p4.o.none", "\"-4\" is not a number"),
            ("os2.4x1.fast.p4.o.none", "\"fast\" is not a profile"),
            ("os2.4x1.spec.p4q.o.none", "\"4q\" is not a number"),
            ("os2.4x1.spec.p4.q.none", "\"q\" is not a way to choose"),
            ("os2.4x1.spec.p4.r+1.none", "\"+1\" is not a hexadecimal number"),
            ("os2.4x1.spec.p4.cyy.none", "picks are damaged"),
            ("os2.4x1.spec.p4.xt1.none", "exceptions are damaged"),
            ("os2.4x1.spec.p4.xt1lt2z.none", "exceptions are damaged"),
            ("os2.4x1.spec.p4.pos.none", "\"\" is not a number of 64 bits"),
            ("os2.4x1.spec.p4.posg.none", "\"g\" is not a hexadecimal number"),
            ("os2.4x1.spec.p4.pct3.none", "its part for pct is damaged"),
            ("os2.4x1.spec.p4.pct0k1s1.none", "its depth of pct is not a number that can be"),
            ("os2.4x1.spec.p4.pct1001k1s1.none", "its depth of pct is not a number that can be"),
            ("os2.4x1.spec.p4.p2a.none", "\"p2a\" is not a way to choose"),
            ("os2.4x1.spec.p4.o.0", "its fingerprint has 1 of 8 digits"),
            ("os2.4x1.spec.p4.o.8c1d03e", "its fingerprint has 7 of 8 digits"),
            ("os2.4x1.spec.p4.o.", "its fingerprint has 0 of 8 digits"),
            ("os2.4x1.spec.p4.o.8c1d03ex", "not a hexadecimal number"),
            ("os2.4x1.spec.p4.a1.o.8c1d03e2", "its part for arguments has 1 of 8 digits"),
            ("os2.4x1.spec.p4.b12345678.o.8c1d03e2", "does not begin with a"),
        ] {
            let error = text.parse::<Schedule>().unwrap_err();
            assert!(error.message().contains(why), "{error}");
        }
    }
}
