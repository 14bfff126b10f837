//! Whole searches, beside loom and shuttle: executions begun, different ones, seconds, memory. Each is a process of its own.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::child::{Outcome, Part};
use super::lab::{Bench, Lab};
use super::searched::{PROGRAMS, Program, Searched, TOOLS, Task, Tool};

/// PEs or threads. Loom has at most 4 besides the one that waits for them.
const SIZES: [usize; 2] = [3, 4];

/// What ends a search that is not over.
const EXECUTIONS: u64 = 1_000_000;
const SECONDS: u64 = 60;

/// A line of the table.
#[derive(Clone, Debug)]
pub(super) struct Search {
    task: Task,
    /// What it did, and its memory at the peak; or why that is not known.
    found: Result<(Searched, Option<f64>), String>,
}

pub(super) fn benches() -> Vec<Bench> {
    let of = |program: Program, n: usize| Bench::of_searches(name(program, n), move |lab| searches(lab, program, n));
    PROGRAMS.into_iter().flat_map(|program| SIZES.map(|n| of(program, n))).collect()
}

fn name(program: Program, n: usize) -> String {
    format!("search: {program} of {n}")
}

fn searches(lab: &Lab, program: Program, n: usize) -> Vec<Search> {
    let search = |tool: Tool| {
        let executions = if lab.is_quick() { 200 } else { EXECUTIONS };
        let task = Task { tool, program, n, executions, seconds: SECONDS };
        let found = Part::Search(task)
            .measure()
            .and_then(|Outcome { searched, peak_mib, .. }| Ok((searched.ok_or("the search told nothing")?, peak_mib)));
        Search { task, found }
    };
    TOOLS.into_iter().map(search).collect()
}

impl Search {
    /// Whether it should have been measured, and went wrong.
    pub(super) fn has_failed(&self) -> bool {
        self.found.is_err()
    }

    /// Which limit ended it, if one did.
    fn stopped_at(&self) -> Option<String> {
        let Task { executions, seconds, .. } = self.task;
        let (searched, _) = self.found.as_ref().ok()?;
        match searched.complete {
            true => None,
            false if searched.begun >= executions => Some(format!("{executions} executions")),
            false => Some(format!("{seconds} s")),
        }
    }

    /// As it is written to a file. What is not known is null, and `missing` says why.
    pub(super) fn to_json(&self) -> Value {
        let Task { tool, program, n, .. } = self.task;
        let found = self.found.as_ref().ok();
        let mut json = json!({
            "name": name(program, n),
            "tool": tool.to_string(),
            "begun": found.map(|(searched, _)| searched.begun),
            "distinct": found.map(|(searched, _)| searched.distinct),
            "seconds": found.map(|(searched, _)| searched.seconds),
            "peak_mib": found.and_then(|(_, peak)| *peak),
            "complete": found.map(|(searched, _)| searched.complete),
            "stopped_at": self.stopped_at(),
        });
        if let Err(why) = &self.found {
            json["missing"] = why.as_str().into();
        }
        json
    }
}

/// All searches, those of one program below each other.
pub(super) fn table(searches: &[Search]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["search of all executions", "by", "begun", "distinct", "s", "MiB", "ended by"]);
    for search in searches {
        let Task { tool, program, n, .. } = search.task;
        let [begun, distinct, seconds, peak, end] = match &search.found {
            Ok((searched, peak)) => [
                searched.begun.to_string(),
                searched.distinct.to_string(),
                format!("{:.3}", searched.seconds),
                peak.map_or_else(|| "-".into(), |peak| format!("{peak:.1}")),
                search.stopped_at().unwrap_or_else(|| "its end".into()),
            ],
            Err(why) => ["-", "-", "-", "-", &format!("failed: {why}")].map(str::to_string),
        };
        table.add_row([format!("{program} of {n}"), tool.to_string(), begun, distinct, seconds, peak, end]);
    }
    for column in table.column_iter_mut().skip(2).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(begun: u64, seconds: f64, complete: bool) -> Search {
        let task = Task { tool: Tool::Loom, program: Program::Counter, n: 4, executions: 1000, seconds: 60 };
        Search { task, found: Ok((Searched { begun, distinct: 24, seconds, complete }, Some(7.25))) }
    }

    #[test]
    fn a_line_says_which_limit_ended_the_search() {
        let ends = [search(500, 1.0, true), search(1000, 1.0, false), search(500, 60.0, false)];
        assert_eq!(
            ends.each_ref().map(Search::stopped_at),
            [None, Some("1000 executions".to_string()), Some("60 s".to_string())]
        );
        let text = table(&ends).to_string();
        assert!(
            text.contains("| counter of 4             | loom |   500 |       24 |  1.000 | 7.2 | its end         |"),
            "{text}"
        );
        assert!(text.contains("|  1000 |       24 |  1.000 | 7.2 | 1000 executions |"), "{text}");
    }

    #[test]
    fn what_failed_says_why() {
        let failed = Search { found: Err("loom took longer than 120 s".into()), ..search(1, 1.0, true) };
        assert!(
            failed.has_failed()
                && table(std::slice::from_ref(&failed)).to_string().contains("failed: loom took longer")
        );
        let json = failed.to_json();
        assert!(json["begun"].is_null() && json["complete"].is_null());
        assert_eq!(json["missing"], "loom took longer than 120 s");
        let json = search(500, 1.5, true).to_json();
        assert_eq!(
            (&json["name"], &json["seconds"], &json["peak_mib"]),
            (&"search: counter of 4".into(), &1.5.into(), &7.25.into())
        );
        assert!(json.get("missing").is_none() && json["stopped_at"].is_null());
    }
}
