//! `onesided list`, and the patterns by which the other commands choose cases.

use std::process::ExitCode;

use onesided::{Backend, count};
use onesided_harness::say;
use onesided_harness::tool::command::failed;
use onesided_sim::Sim;

use crate::case::Case;
use crate::suite;

/// What `onesided list` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// A chapter, a case, or a part of a case's name; all cases if left out
    patterns: Vec<String>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    let cases = match chosen::<Sim>(&options.patterns) {
        Ok(cases) => cases,
        Err(why) => return failed(why),
    };
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    for case in &cases {
        say!("{:<width$}  {}", case.name, describe(case));
    }
    say!("{}", count(cases.len(), "case"));
    ExitCode::SUCCESS
}

/// A case's cluster: `4 PEs on 2 nodes`.
fn describe(case: &Case<Sim>) -> String {
    let mut text = count(case.pes, "PE");
    if case.nodes > 1 {
        text += &format!(" on {} nodes", case.nodes);
    }
    if let Some(gpus) = case.gpus {
        text += &format!(" sharing {}", count(gpus, "GPU"));
    }
    text
}

/// The cases that a pattern matches, in the suite's order; all of them without a pattern.
///
/// A pattern is a chapter (`order`), a case (`litmus/mp`), or a part of names (`fenced`); the first of these that
/// exists is meant.
///
/// # Errors
/// A pattern that matches nothing: a run must not pass because nothing ran.
pub(super) fn chosen<B: Backend>(patterns: &[String]) -> Result<Vec<Case<B>>, String> {
    let cases = suite::cases::<B>();
    let mut taken = vec![patterns.is_empty(); cases.len()];
    for pattern in patterns {
        let chapter = format!("{pattern}/");
        let rules: [&dyn Fn(&str) -> bool; 3] =
            [&|name| name.starts_with(&chapter), &|name| name == pattern, &|name| name.contains(pattern.as_str())];
        let Some(rule) = rules.into_iter().find(|rule| cases.iter().any(|case| rule(&case.name))) else {
            return Err(format!("no case matches {pattern:?}; `onesided list` shows all"));
        };
        for (case, taken) in cases.iter().zip(&mut taken) {
            *taken |= rule(&case.name);
        }
    }
    Ok(cases.into_iter().zip(taken).filter_map(|(case, taken)| taken.then_some(case)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &str) -> Vec<String> {
        chosen::<Sim>(&[pattern.to_string()]).unwrap().into_iter().map(|case| case.name).collect()
    }

    #[test]
    fn a_pattern_is_a_chapter_a_case_or_a_part() {
        assert!(names("order").iter().all(|name| name.starts_with("order/")));
        assert_eq!(names("litmus/mp"), ["litmus/mp"]);
        assert!(names("mp_f").contains(&"litmus/mp_fenced".to_string()));
        assert!(chosen::<Sim>(&["no such case".to_string()]).is_err());
    }
}
