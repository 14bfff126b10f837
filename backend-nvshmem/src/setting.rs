//! Sizes that the library takes from its environment, read here as the library reads them.

/// The bytes that `variable` says: a number, with K, M or G behind it. What it says otherwise, or 0, is `usual`.
pub(crate) fn size(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| parse(&text)).unwrap_or(usual)
}

fn parse(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|last: char| !last.is_ascii_digit());
    let shift = match text[digits.len()..].chars().next().map(|unit| unit.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    digits.parse::<usize>().ok().and_then(|number| number.checked_shl(shift)).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_nvshmem_reads_them() {
        assert_eq!(parse("2097152"), Some(2 << 20));
        assert_eq!(parse("64M"), Some(64 << 20));
        assert_eq!(parse("1g"), Some(1 << 30));
        assert_eq!([parse("nonsense"), parse("0"), parse("")], [None; 3]);
        assert_eq!(size("ONESIDED_NO_SUCH_VARIABLE", 7), 7);
    }
}
