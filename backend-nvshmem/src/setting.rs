//! Sizes that the library takes from its environment, read here as the library reads them.

/// The bytes that `variable` says: a number, with K, M, G or T behind it. `None` if it is not set.
///
/// # Errors
/// What it says, if that is no such number: the library may make something of it, and nobody knows what.
pub(crate) fn size(variable: &str) -> Result<Option<usize>, String> {
    match std::env::var(variable) {
        Ok(text) => parse(&text).map(Some).ok_or(text),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(text)) => Err(text.to_string_lossy().into_owned()),
    }
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
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_no_mistake() {
        assert_eq!(size("ONESIDED_NO_SUCH_VARIABLE"), Ok(None));
    }
}
