//! [`count`]: how many, in a message.

use std::fmt::Display;

/// A number of things: `1 case`, `2 cases`, `2 classes`.
///
/// ```
/// assert_eq!(onesided::count(1, "byte"), "1 byte");
/// assert_eq!(onesided::count(0, "class"), "0 classes");
/// ```
#[doc(hidden)] // what builds on the API says it in the same way
pub fn count<N: Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    match (number == N::from(1), thing.ends_with('s')) {
        (true, _) => format!("{number} {thing}"),
        (false, false) => format!("{number} {thing}s"),
        (false, true) => format!("{number} {thing}es"),
    }
}
