//! Printing that survives a reader who has seen enough (`ring | head -n 1`), where `println!` panics.

/// As `println!`, without its panic.
#[doc(hidden)]
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*); // nobody is left to tell
    }};
}
