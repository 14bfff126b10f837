//! All rows: as a table for people, as JSON for programs.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::machine::Machine;
use super::peers::NO_OSHMEM;
use super::row::{Cell, Row};
use super::search::{self, Search};

/// So many characters of a reason fit into a cell.
const WIDEST: usize = 30;

/// What `onesided bench` found out.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) searches: Vec<Search>,
    machine: Machine,
    date: Option<String>,
    quick: bool,
}

impl Report {
    /// No rows yet.
    pub(super) fn new(machine: Machine, date: Option<String>, quick: bool) -> Report {
        Report { rows: Vec::new(), searches: Vec::new(), machine, date, quick }
    }

    /// The rows as a file of schema `onesided-bench/1`.
    pub(super) fn to_json(&self) -> Value {
        let Machine { cpu, cores, os, build } = &self.machine;
        let mut json = json!({
            "schema": "onesided-bench/1",
            "machine": { "cpu": cpu, "cores": cores, "os": os, "build": build },
            "quick": self.quick,
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        });
        if !self.searches.is_empty() {
            json["searches"] = self.searches.iter().map(Search::to_json).collect();
        }
        if let Some(date) = &self.date {
            json["date"] = date.as_str().into();
        }
        json
    }

    /// What is too long for a cell of the table. It stands below, once.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let reasons = self.rows.iter().flat_map(|row| [&row.ours, &row.peer]).filter_map(Cell::why_not);
        for reason in reasons.filter(|reason| reason.len() > WIDEST) {
            if !notes.contains(&reason) {
                notes.push(reason);
            }
        }
        notes
    }

    fn table(&self, notes: &[String]) -> Table {
        let cell = |of: &Cell| {
            let note = of.why_not().and_then(|why| notes.iter().position(|note| *note == why));
            note.map_or_else(|| cell(of), |number| format!("[{}]", number + 1))
        };
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["benchmark", "ours", "peer", "ratio", "unit", "target", "peer's name"]);
        for row in &self.rows {
            let ratio = row.ratio().map_or_else(|| "-".into(), number);
            table.add_row([
                row.name.clone(),
                cell(&row.ours),
                cell(&row.peer),
                ratio,
                row.unit.name().into(),
                verdict(row),
                row.peer_name.clone().unwrap_or_else(|| "-".into()),
            ]);
        }
        for column in table.column_iter_mut().skip(1).take(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        if !self.rows.is_empty() {
            let notes = self.notes();
            writeln!(f, "{}\n", self.table(&notes))?;
            for (number, note) in (1..).zip(&notes) {
                writeln!(f, "[{number}] {note}")?;
            }
            writeln!(
                f,
                "Best of several passes, ours and the peer's in turn. Above 1, a ratio says how many times as fast"
            )?;
            writeln!(f, "(or as small) ours is; below 1, the peer is better. Targets are for ours, and fail nothing.")?;
        }
        if !self.searches.is_empty() {
            let apart = if self.rows.is_empty() { "" } else { "\n" };
            writeln!(f, "{apart}{}\n", search::table(&self.searches))?;
            writeln!(
                f,
                "Each search is a process of its own, on one core. Ours looks for races and takes delays into account, loom the"
            )?;
            writeln!(
                f,
                "C11 memory model; shuttle's threads are sequentially consistent. \"distinct\": different results."
            )?;
        }
        if self.rows.iter().any(|row| matches!(&row.peer, Cell::NotRun(why) if why == NO_OSHMEM)) {
            writeln!(f, "{NO_OSHMEM}: install Open MPI with OpenSHMEM (Debian: openmpi-bin and libopenmpi-dev).")?;
        }
        if self.quick {
            writeln!(f, "This was --quick: one short pass, of which the numbers mean nothing.")?;
        }
        Ok(())
    }
}

/// The target and whether it is met.
pub(super) fn verdict(row: &Row) -> String {
    match (row.target_text(), row.met()) {
        (None, _) => String::new(),
        (Some(target), None) => format!("{target} (not judged)"),
        (Some(target), Some(true)) => format!("{target} (met)"),
        (Some(target), Some(false)) => format!("{target} (MISSED)"),
    }
}

/// The number, or why there is none.
pub(super) fn cell(cell: &Cell) -> String {
    cell.value().map(number).or_else(|| cell.why_not()).unwrap_or_else(|| "-".into())
}

/// Three significant digits, and all digits before the point.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::super::row::{Target, Unit};
    use super::*;

    fn report() -> Report {
        let machine = Machine { cpu: "Abacus".into(), cores: 2, os: "Linux".into(), build: "release" };
        let mut report = Report::new(machine, Some("2026-11-20".into()), false);
        let row = Row::new("put", Unit::Ns, Cell::Value(12.345)).beside("oshmem", Cell::NotRun("no oshcc".into()));
        report.rows.push(row.target(Target::AtMost(10.0)));
        report
    }

    #[test]
    fn the_table_shows_numbers_reasons_and_missed_targets() {
        let text = report().to_string();
        let line = "| put       | 12.3 | not run: no oshcc |     - | ns   | <= 10 ns (MISSED) | oshmem      |";
        assert!(text.starts_with("Abacus, 2 cores, Linux, release build\n"), "{text}");
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_long_reason_stands_below_the_table_once() {
        let mut report = report();
        let why = "the library that compiles kernels is not here";
        for name in ["compile", "load"] {
            report.rows.push(Row::new(name, Unit::S, Cell::NotRun(why.into())));
        }
        let text = report.to_string();
        assert!(text.contains("| load      |  [1] |"), "{text}");
        assert_eq!(text.matches(why).count(), 1, "{text}");
        assert!(text.contains(&format!("[1] not run: {why}\n")), "{text}");
    }

    #[test]
    fn the_json_keeps_all_digits() {
        let json = report().to_json();
        assert_eq!(json["schema"], "onesided-bench/1");
        assert_eq!((&json["machine"]["cores"], &json["date"]), (&2.into(), &"2026-11-20".into()));
        let row = &json["rows"][0];
        assert_eq!((&row["ours"], &row["met"]), (&12.345.into(), &false.into()));
        assert!(row["peer"].is_null() && row["ratio"].is_null());
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.0123, 1.234, 12.34, 1234.5].map(number), ["0.012", "1.23", "12.3", "1234"]);
    }
}
