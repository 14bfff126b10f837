//! [`expect_eq`]: how programs check themselves.

use std::fmt::Debug;

use crate::count::count;
use crate::error::{Error, Result};

/// Values whose texts are shorter than this, both together, are shown whole.
const SHORT: usize = 200;

/// Returns `Err` with [`WrongResult`](crate::ErrorKind::WrongResult) unless both values are equal.
///
/// Programs check themselves with it. The failure is an ordinary error, on every backend, and names the caller's line. Of long
/// lists it shows the first element that differs, and how many do.
///
/// # Errors
/// [`WrongResult`](crate::ErrorKind::WrongResult) when `found` is not `expected`.
///
/// ```
/// use onesided::expect_eq;
/// assert!(expect_eq(2 + 2, 4, "the sum").is_ok());
///
/// let error = expect_eq(2 + 2, 5, "the sum").unwrap_err();
/// assert_eq!(error.message(), "the sum is 4, expected 5");
///
/// let mut found = vec![0; 100_000];
/// found[7] = 1;
/// let error = expect_eq(found, vec![0; 100_000], "the array").unwrap_err();
/// assert_eq!(error.message(), "the array[7] is 1, expected 0; 1 of 100000 elements differs");
/// ```
#[track_caller]
pub fn expect_eq<T: PartialEq + Debug>(found: T, expected: T, what: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::wrong_result(difference(what, &format!("{found:?}"), &format!("{expected:?}"))))
}

/// How two texts of [`Debug`] differ, in a few lines at most. `what` names what they are of.
fn difference(what: &str, found: &str, expected: &str) -> String {
    if found.len() + expected.len() <= SHORT {
        return format!("{what} is {found}, expected {expected}");
    }
    if let (Some(found), Some(expected)) = (elements(found), elements(expected)) {
        let differs = |i: &usize| found.get(*i) != expected.get(*i);
        let longer = found.len().max(expected.len());
        if let Some(first) = (0..longer).find(differs) {
            let [one, other] = [&found, &expected].map(|list| list.get(first).copied().unwrap_or("absent"));
            let at = difference(&format!("{what}[{first}]"), one, other);
            if found.len() != expected.len() {
                return format!("{at}; the length is {}, expected {}", found.len(), expected.len());
            }
            let different = (0..longer).filter(differs).count();
            let differ = if different == 1 { "differs" } else { "differ" };
            return format!("{at}; {different} of {} {differ}", count(longer, "element"));
        }
    }
    // The texts are not lists; or the texts are equal and the values are not, as with NaN.
    let common = found.char_indices().zip(expected.chars()).find(|((_, a), b)| a != b);
    let from = match common {
        Some(((index, _), _)) => index,
        None if found == expected => 0,
        None => found.len().min(expected.len()),
    };
    let [found, expected] = [found, expected].map(|text| around(text, from));
    format!("{what} is {found}, expected {expected}")
}

/// The part of a text around a byte, with `…` for what is left out.
fn around(text: &str, byte: usize) -> String {
    let start = text.floor_char_boundary(byte.saturating_sub(SHORT / 5));
    let end = text.ceil_char_boundary((start + SHORT / 2).min(text.len()));
    let [before, behind] = [start > 0, end < text.len()].map(|cut| if cut { "…" } else { "" });
    format!("{before}{}{behind}", &text[start..end])
}

/// The elements of a list, as [`Debug`] writes it; `None` if the text is not that of a list.
fn elements(text: &str) -> Option<Vec<&str>> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut elements = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0_usize, None);
    let mut characters = inside.char_indices();
    while let Some((index, c)) = characters.next() {
        match (c, quote) {
            ('\\', Some(_)) => drop(characters.next()),
            (_, Some(end)) => quote = quote.filter(|_| c != end),
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '(' | '{', None) => depth += 1,
            (']' | ')' | '}', None) => depth = depth.checked_sub(1)?,
            (',', None) if depth == 0 => {
                elements.push(inside[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    if !inside.is_empty() {
        elements.push(inside[start..].trim());
    }
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: PartialEq + Debug>(found: T, expected: T) -> String {
        expect_eq(found, expected, "it").unwrap_err().message().to_string()
    }

    #[test]
    fn short_values_are_shown_whole() {
        assert_eq!(message([1, 2], [1, 3]), "it is [1, 2], expected [1, 3]");
        assert_eq!(message("a", "b"), r#"it is "a", expected "b""#);
    }

    #[test]
    fn of_long_lists_the_first_difference_is_shown_and_the_count() {
        let mut found: Vec<u32> = (0..1000).collect();
        let expected = found.clone();
        (found[3], found[500]) = (7, 7);
        assert_eq!(message(&found, &expected), "it[3] is 7, expected 3; 2 of 1000 elements differ");
        let shorter = &expected[..990];
        assert_eq!(
            message(&expected[..], shorter),
            "it[990] is 990, expected absent; the length is 1000, expected 990"
        );
        let nested = |value| vec![vec![0; 100], vec![value; 100]];
        let of_nested = "it[1][0] is 1, expected 2; 100 of 100 elements differ; 1 of 2 elements differs";
        assert_eq!(message(nested(1), nested(2)), of_nested);
    }

    #[test]
    fn commas_inside_an_element_do_not_divide_it() {
        let text = r#"[("a,]", 'x'), {1: [2, 3]}, ',', "\",", S { a: 1, b: 2 }]"#;
        let parts = [r#"("a,]", 'x')"#, "{1: [2, 3]}", "','", r#""\",""#, "S { a: 1, b: 2 }"];
        assert_eq!(elements(text).unwrap(), parts);
        assert_eq!(elements("[]").unwrap(), [""; 0]);
        assert!(elements("7").is_none());
    }

    #[test]
    fn other_long_values_are_cut_around_the_difference() {
        let text = |middle: &str| format!("{}{middle}{}", "ä".repeat(5000), "z".repeat(5000));
        let message = message(text("one"), text("two"));
        assert!(message.contains("…") && message.contains("äone") && message.contains("ätwo"), "{message}");
        assert!(message.len() < 500, "{} bytes", message.len());
    }

    #[test]
    fn what_differs_from_itself_is_shown() {
        assert!(message(vec![f64::NAN; 1000], vec![f64::NAN; 1000]).starts_with("it is [NaN, NaN"));
    }
}
