//! The finding that the tests share: a real run of the example `missing_fence`.

use onesided_show::Finding;

/// The text of the file.
#[allow(dead_code, reason = "not every test reads the text")]
pub(crate) const SMALL: &str = include_str!("../missing_fence.json");

/// The finding.
pub(crate) fn small() -> Finding {
    Finding::read("missing_fence.json", SMALL).unwrap()
}
