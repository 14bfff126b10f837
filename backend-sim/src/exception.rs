//! [`Exception`]: a step that comes later than in order. A schedule in normal form is a list of them.

use std::fmt;
use std::str::FromStr;

/// A step of a run that waits for another one, unless no other step is possible.
///
/// Steps have names that do not depend on the schedule, nor on source lines: of a transfer its issuer, its number among the issuer's
/// transfers, the piece, and what happens to it; of a PE's host or stream its number among the steps that wait to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a step, and what it waits for")]
pub struct Exception {
    /// The step that comes later.
    pub late: StepName,
    /// The step that it waits for.
    pub after: StepName,
}

/// The name of a step: see [`Exception`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepName {
    /// As the machine names it: hosts and streams have the highest bit.
    pub(crate) key: u64,
    /// How many steps of that name came before it.
    pub(crate) times: u32,
}

/// Stands between the two steps of an exception.
const AFTER: char = 'l';
/// Stands between exceptions.
pub(crate) const AND: char = 'z';
/// The names of agents have this bit.
const AGENT: u64 = 1 << 63;

/// `t1c02` for a step of a transfer, `g100000002n3` for a step of an agent; both are hexadecimal.
impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key & AGENT {
            0 => write!(f, "t{:x}", self.key)?,
            _ => write!(f, "g{:x}", self.key & !AGENT)?,
        }
        if self.times > 0 { write!(f, "n{:x}", self.times) } else { Ok(()) }
    }
}

impl FromStr for StepName {
    type Err = ();

    fn from_str(text: &str) -> Result<StepName, ()> {
        let hex = |text: &str| match text.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)) {
            true => u64::from_str_radix(text, 16).map_err(|_| ()),
            false => Err(()),
        };
        let (kind, rest) = text.split_at_checked(1).ok_or(())?;
        let (key, times) = rest.split_once('n').unwrap_or((rest, "0"));
        let agent = match kind {
            "t" => 0,
            "g" => AGENT,
            _ => return Err(()),
        };
        let key = Some(hex(key)?).filter(|key| key & AGENT == 0).ok_or(())?;
        Ok(StepName { key: key | agent, times: u32::try_from(hex(times)?).map_err(|_| ())? })
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exception { late, after } = self;
        write!(f, "{late}{AFTER}{after}")
    }
}

impl FromStr for Exception {
    type Err = ();

    fn from_str(text: &str) -> Result<Exception, ()> {
        let (late, after) = text.split_once(AFTER).ok_or(())?;
        Ok(Exception { late: late.parse()?, after: after.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_short_texts() {
        let step = |key, times| StepName { key, times };
        for (exception, text) in [
            (Exception { late: step(0x1c02, 0), after: step(AGENT | 0x1_0000_0000, 3) }, "t1c02lg100000000n3"),
            (Exception { late: step(AGENT, 0), after: step(0x1c02, 18) }, "g0lt1c02n12"),
        ] {
            assert_eq!(exception.to_string(), text);
            assert_eq!(text.parse(), Ok(exception));
        }
        for text in
            ["", "t1", "t1l", "lt1", "x1lt1", "t1lg", "tGlt1", "t1lt8000000000000000", "t1n100000000lt1", "t1nlt1"]
        {
            assert_eq!(text.parse::<Exception>(), Err(()), "{text}");
        }
    }
}
