//! [`count`]: how many, in a message.

use std::fmt::Display;

/// A number of things: `1 byte`, `2 bytes`.
pub(crate) fn count<N: Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    let s = if number == N::from(1) { "" } else { "s" };
    format!("{number} {thing}{s}")
}
