//! Numbers on command lines: what is refused comes with what would be right.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Reads a whole number from `least` to `most`.
pub fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// Reads a time in seconds, which may have a fraction: more than none, and at most so many.
pub fn seconds(most: u64) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    move |text| {
        let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let time = time.filter(|time| !time.is_zero() && *time <= Duration::from_secs(most));
        time.ok_or_else(|| format!("expected a number of seconds, more than 0 and at most {most}"))
    }
}

/// One number or several, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is a list")]
pub struct Numbers(pub Vec<usize>);

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0[..] {
            [first, .., last] if self.0.len() == last - first + 1 => write!(f, "{first}..{last}"),
            _ => f.write_str(&self.0.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

/// Reads whole numbers from `least` to `most`: `8`, `2..8` with both ends, `2,4,8`, `2..4,8`.
pub fn several(least: usize, most: usize) -> impl Fn(&str) -> Result<Numbers, String> + Clone + Send + Sync {
    move |text| {
        let read = |text: &str| text.parse().ok().filter(|number| (least..=most).contains(number));
        let mut numbers = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            match (read(first), read(last)) {
                (Some(first), Some(last)) if first <= last => numbers.extend(first..=last),
                _ => {
                    return Err(format!("expected a whole number from {least} to {most}, or several: 2..8 or 2,4,8"));
                }
            }
        }
        Ok(Numbers(numbers.into_iter().collect()))
    }
}

/// Reads a number of bytes from `least` to `most`, both sizes themselves: `4096`, `64K`, `16M`, `1G`, `1T`.
pub fn bytes(least: &'static str, most: &'static str) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync {
    move |text| {
        let range = size(least)..=size(most);
        size(text).filter(|bytes| range.contains(&Some(*bytes))).ok_or_else(|| {
            format!("expected a size from {least} to {most}: a whole number, and K, M, G or T behind it")
        })
    }
}

fn size(text: &str) -> Option<usize> {
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        (at, 't' | 'T') => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_range() {
        let read = whole::<u64>(1, 32_000);
        assert_eq!(["1", "32000"].map(&read), [Ok(1), Ok(32_000)]);
        for wrong in ["0", "32001", "-1", "1e6", "1.5", "", "one", "99999999999999999999"] {
            assert_eq!(read(wrong).unwrap_err(), "expected a whole number from 1 to 32000", "{wrong}");
        }
        assert_eq!(whole::<u64>(0, u64::MAX)("0"), Ok(0));
        assert_eq!(whole::<u8>(0, 300)("300").unwrap_err(), "expected a whole number from 0 to 300");
    }

    #[test]
    fn several_numbers_are_a_range_or_a_list() {
        let read = several(1, 100);
        for (text, numbers, shown) in [
            ("8", &[8][..], "8"),
            ("2..5", &[2, 3, 4, 5], "2..5"),
            ("8,2,4,2", &[2, 4, 8], "2,4,8"),
            ("9,2..4", &[2, 3, 4, 9], "2,3,4,9"),
            ("3..3", &[3], "3"),
            ("2,3", &[2, 3], "2..3"),
        ] {
            let found = read(text).unwrap();
            assert_eq!((&found.0[..], found.to_string().as_str()), (numbers, shown), "{text}");
        }
        for wrong in ["", "0", "101", "5..2", "2..", "..5", "2..=5", "2,", "-1", "2-5", "one"] {
            let why = read(wrong).unwrap_err();
            assert_eq!(why, "expected a whole number from 1 to 100, or several: 2..8 or 2,4,8", "{wrong}");
        }
    }

    #[test]
    fn sizes_have_suffixes_and_a_range() {
        let read = bytes("1", "1T");
        assert_eq!(["1", "64K", "16m", "2G", "1T"].map(&read), [1, 64 << 10, 16 << 20, 2 << 30, 1 << 40].map(Ok));
        for wrong in ["", "K", "1.5G", "-1", "0", "1e6", "2T", "1025G", "99999999999G"] {
            let why = read(wrong).unwrap_err();
            assert_eq!(why, "expected a size from 1 to 1T: a whole number, and K, M, G or T behind it", "{wrong}");
        }
    }
}
