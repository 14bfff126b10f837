//! The finding that the tests share, written by
//! `cargo run --bin missing_fence -- --races note --finding conformance/show/tests/missing_fence.json`.

use onesided_show::Finding;

/// The text of the file.
#[allow(dead_code, reason = "not every test reads the text")]
pub(crate) const SMALL: &str = include_str!("../missing_fence.json");

/// The finding.
pub(crate) fn small() -> Finding {
    Finding::read("missing_fence.json", SMALL).unwrap()
}
