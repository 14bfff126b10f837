//! Small tools of the command lines: each knows nothing of programs and cases.

pub(crate) mod interrupt;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod quiet;
pub(crate) mod say;
