//! The words of a PTX text, each with its line.

use crate::error::Error;

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// An opcode with its modifiers, a directive, a register, a name.
    Word(&'a str),
    /// A number as it is written.
    Number(&'a str),
    /// A string as it is written, without its quotes.
    Text(&'a str),
    /// One character of punctuation.
    Mark(char),
}

/// Splits the text. Comments and white space are left out.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, Error> {
    let bytes = text.as_bytes();
    let mut all = Vec::with_capacity(text.len() / 5);
    let (mut at, mut line) = (0, 1);
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        match byte {
            b'\n' => {
                line += 1;
                at += 1;
            }
            b' ' | b'\t' | b'\r' | 0 => at += 1,
            b'/' if next == Some(b'/') => at += bytes[at..].iter().take_while(|&&b| b != b'\n').count(),
            b'/' if next == Some(b'*') => {
                let begin = at + 2; // `/*/` ends nothing
                let end = text[begin..].find("*/").ok_or_else(|| Error::new(line, "a comment does not end"))?;
                line += count_lines(&text[begin..begin + end]);
                at = begin + end + 2;
            }
            b'"' => {
                let end = text_length(&bytes[at + 1..]).ok_or_else(|| Error::new(line, "a string does not end"))?;
                let content = &text[at + 1..at + 1 + end];
                all.push((Token::Text(content), line));
                line += count_lines(content);
                at += end + 2;
            }
            _ if starts_word(byte) || (byte == b'.' && next.is_some_and(starts_word)) => {
                let length = word_length(&bytes[at..]);
                all.push((Token::Word(&text[at..at + length]), line));
                at += length;
            }
            b'0'..=b'9' => {
                let length = number_length(&bytes[at..]);
                all.push((Token::Number(&text[at..at + length]), line));
                at += length;
            }
            _ if byte.is_ascii_punctuation() => {
                all.push((Token::Mark(char::from(byte)), line));
                at += 1;
            }
            _ => {
                let found = text[at..].chars().next().unwrap_or('?');
                return Err(Error::new(line, format!("{found:?} is no part of PTX")));
            }
        }
    }
    Ok(all)
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|&b| b == b'\n').count()).unwrap_or(u32::MAX)
}

/// The bytes up to the quote that ends a string. One behind a backslash is part of the string.
fn text_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%')
}

/// A word goes on through dots (modifiers) and through `::` (`shared::cta`), but not through the `:` behind a label.
fn word_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        if starts_word(byte) || byte.is_ascii_digit() || byte == b'.' {
            at += 1;
        } else if byte == b':'
            && bytes.get(at + 1) == Some(&b':')
            && bytes.get(at + 2).is_some_and(u8::is_ascii_alphanumeric)
        {
            at += 2;
        } else {
            break;
        }
    }
    at
}

/// `12`, `0x1fU`, `0f3F800000`, `9.0`, `1e-5`.
fn number_length(bytes: &[u8]) -> usize {
    let plain = bytes.get(1).is_none_or(|b| !b.is_ascii_alphabetic() || matches!(b, b'e' | b'E'));
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        let sign = matches!(byte, b'+' | b'-') && plain && matches!(bytes[at - 1], b'e' | b'E');
        if byte.is_ascii_alphanumeric() || sign || (byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// An integer literal of PTX: decimal, `0x`, `0b` or octal, with an optional `U` behind it.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")) {
        u64::from_str_radix(binary, 2).ok()
    } else if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) {
        u64::from_str_radix(digits, 8).ok()
    } else {
        digits.parse().ok()
    }
}

/// A floating-point literal: the bits of `0f` (32) or `0d` (64), or a decimal one.
pub(crate) fn float(text: &str) -> Option<Float> {
    let bits = |prefix: [&str; 2], digits: usize| {
        let hex = text.strip_prefix(prefix[0]).or_else(|| text.strip_prefix(prefix[1]))?;
        (hex.len() == digits).then(|| u64::from_str_radix(hex, 16).ok()).flatten()
    };
    if let Some(single) = bits(["0f", "0F"], 8) {
        return Some(Float::Single(f32::from_bits(u32::try_from(single).ok()?)));
    }
    if let Some(double) = bits(["0d", "0D"], 16) {
        return Some(Float::Double(f64::from_bits(double)));
    }
    let decimal = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    (decimal && text.contains(['.', 'e', 'E'])).then(|| text.parse().ok().map(Float::Double)).flatten()
}

/// A floating-point literal with its precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Float {
    Single(f32),
    Double(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let all = tokens(text).unwrap().into_iter();
        all.filter_map(|(token, _)| if let Token::Text(text) = token { Some(text) } else { None }).collect()
    }

    #[test]
    fn a_quote_behind_a_backslash_does_not_end_a_string() {
        assert_eq!(texts(r#".file 1 "a\"b.cu" ; "c""#), [r#"a\"b.cu"#, "c"]);
        assert_eq!(texts(r#""ends\\" "c""#), [r"ends\\", "c"], "a backslash that is escaped escapes nothing");
        assert_eq!(texts("\"\u{e9}\\\u{e9}\""), ["\u{e9}\\\u{e9}"]);
        for open in [r#""a\""#, r#""a\"#, "\"a"] {
            assert!(tokens(open).is_err(), "{open}");
        }
    }
}
