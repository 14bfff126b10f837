//! Numbers and sizes in environment variables. Sizes are those of the library, and are read as the library reads them.

use crate::problem::Problem;

/// The bytes that `variable` says: a number, with K, M, G or T behind it. `None` if it is not set.
///
/// # Errors
/// [`Problem::Variable`] for any other text: it is not known what the library would make of it.
pub(crate) fn size(variable: &str) -> Result<Option<usize>, Problem> {
    text(variable).map(|text| size_in(variable, &text)).transpose()
}

pub(crate) fn size_in(variable: &str, text: &str) -> Result<usize, Problem> {
    parse(text).ok_or_else(|| {
        wrong(variable, text, "expected a number of bytes, with K, M, G or T behind it if need be, the same on all PEs")
    })
}

/// The whole number that `variable` says. `None` if it is not set, or empty.
///
/// # Errors
/// [`Problem::Variable`] for any other text, and for a number above `largest`.
pub(crate) fn number(variable: &str, largest: u64) -> Result<Option<u64>, Problem> {
    text(variable).filter(|text| !text.is_empty()).map(|text| number_in(variable, &text, largest)).transpose()
}

fn number_in(variable: &str, text: &str, largest: u64) -> Result<u64, Problem> {
    let number = text.parse().ok().filter(|number| *number <= largest);
    number.ok_or_else(|| wrong(variable, text, &format!("expected a whole number from 0 to {largest}")))
}

/// The problem of a variable whose value is not allowed.
pub(crate) fn wrong(variable: &str, text: &str, why: &str) -> Problem {
    Problem::Variable { variable: format!("{variable}={text}"), why: why.to_string() }
}

fn text(variable: &str) -> Option<String> {
    std::env::var_os(variable).map(|text| text.to_string_lossy().into_owned())
}

/// The number that `variable` says, if it says one.
pub(crate) fn count(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// The library reads a floating-point number and one letter, and rounds up.
fn parse(text: &str) -> Option<usize> {
    let text = text.trim_start();
    let number = text.trim_end_matches(|last: char| !last.is_ascii_digit() && last != '.');
    let shift = match text[number.len()..].chars().next().map(|unit| unit.to_ascii_uppercase()) {
        None => 0,
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        Some(_) => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let bytes = (number.parse::<f64>().ok().filter(|_| is_plain)? * (1_u64 << shift) as f64).ceil();
    (bytes > 0.0 && bytes < 2f64.powi(53)).then_some(bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_nvshmem_reads_them() {
        let sizes = ["2097152", "64M", "1g", " 64K", "0.25M", "1T", "0.7"].map(parse);
        assert_eq!(sizes, [2 << 20, 64 << 20, 1 << 30, 64 << 10, 256 << 10, 1 << 40, 1].map(Some));
    }

    #[test]
    fn what_is_no_size_is_not_guessed() {
        for text in ["nonsense", "0", "", "-1", "0x8000", "1e5", "64 K", "."] {
            let why = size_in("NVSHMEM_SIZE", text).unwrap_err().to_string();
            assert!(why.starts_with(&format!("NVSHMEM_SIZE={text}: expected a number of bytes")), "{why}");
        }
    }

    #[test]
    fn a_number_out_of_range_is_refused_with_the_range() {
        let number = |text| number_in("ONESIDED_TIMEOUT", text, 2147483647);
        assert_eq!((number("0"), number("2147483647")), (Ok(0), Ok(2147483647)));
        for text in ["2147483648", "18446744073709551615", "18446744073709551616", "-1", "soon"] {
            let expected = format!("ONESIDED_TIMEOUT={text}: expected a whole number from 0 to 2147483647");
            assert_eq!(number(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_no_mistake() {
        assert_eq!(size("ONESIDED_NO_SUCH_VARIABLE"), Ok(None));
    }
}
