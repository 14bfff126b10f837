//! [`count`]: how many, in a text.

/// A number of things: `1 event`, `2 events`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
