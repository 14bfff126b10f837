//! Known deviations: cases in which a backend does something that the model forbids, each with the reason.
//!
//! A line of `known.txt` is a promise that is checked: the case must exist, and it must still deviate.

use onesided::Backend;

use crate::case::Case;

/// The file of this crate, embedded.
pub const TEXT: &str = include_str!("../known.txt");

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The backend that deviates.
    pub backend: String,
    /// The case in which it does.
    pub case: String,
    /// Why it deviates, and who could change that.
    pub reason: String,
}

/// Reads lines `backend · case · reason`; `#` begins a comment.
///
/// ```
/// let known = onesided_conformance::known::parse("# none yet\nnvshmem · atomic/tickets · stubs that do nothing\n")?;
/// assert_eq!(known[0].reason, "stubs that do nothing");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// The first line that is not so, with its number.
pub fn parse(text: &str) -> Result<Vec<Known>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let wrong = |what: &str| format!("line {} of the known deviations {what}: {line:?}", index + 1);
            let parts: Vec<&str> = line.splitn(3, '·').map(str::trim).collect();
            let [backend, case, reason] = parts[..] else {
                return Err(wrong("is not `backend · case · reason`"));
            };
            if !["sim", "nvshmem"].contains(&backend) {
                return Err(wrong("names no backend"));
            }
            if reason.is_empty() {
                return Err(wrong("gives no reason"));
            }
            Ok(Known { backend: backend.to_string(), case: case.to_string(), reason: reason.to_string() })
        })
        .collect()
}

/// The deviations of one backend.
///
/// # Errors
/// As [`parse`]; and a line that matches no case.
pub fn of<B: Backend>(backend: &str, cases: &[Case<B>]) -> Result<Vec<Known>, String> {
    let known = parse(TEXT)?;
    match known.iter().find(|known| cases.iter().all(|case| case.name != known.case)) {
        Some(known) => Err(format!("the known deviations name a case that does not exist: {}", known.case)),
        None => Ok(known.into_iter().filter(|known| known.backend == backend).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lines_are_named() {
        for (line, why) in
            [("sim · a/b", "is not"), ("gpu · a/b · slow", "names no backend"), ("sim · a/b · ", "no reason")]
        {
            let error = parse(&format!("# comment\n{line}\n")).unwrap_err();
            assert!(error.starts_with("line 2 ") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_reason_may_hold_the_separator() {
        let known = parse("nvshmem · a/b · one · two").unwrap();
        assert_eq!(known[0].reason, "one · two");
    }
}
