//! All lines: as a table for people, as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use comfy_table::{CellAlignment, Table, presets};
use onesided_harness::launch::Fabric;
use serde_json::{Value, json};

use super::compare::Line;
use crate::machine::Machine;
use crate::report::{cell, verdict};
use crate::row::Cell;

/// The GPUs and what drives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hardware {
    /// Each GPU's name.
    pub(super) gpus: Vec<String>,
    pub(super) driver: String,
    /// The newest CUDA that the driver supports.
    pub(super) cuda: String,
    /// NVSHMEM's version.
    pub(super) library: String,
    pub(super) file: PathBuf,
    /// The library's settings, as the environment has them.
    pub(super) settings: BTreeMap<String, String>,
    /// How the PEs reach each other.
    pub(super) fabric: Fabric,
}

/// What `onesided bench --backend nvshmem` found out.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) lines: Vec<Line>,
    /// Rounds in each place, as (name, number).
    pub(super) rounds: Vec<(&'static str, usize)>,
    /// What went wrong, in full.
    pub(super) notes: Vec<String>,
    pub(super) machine: Machine,
    pub(super) hardware: Hardware,
    pub(super) date: Option<String>,
    pub(super) quick: bool,
}

impl Report {
    /// No lines yet.
    pub(super) fn new(machine: Machine, hardware: Hardware, date: Option<String>, quick: bool) -> Report {
        Report { lines: Vec::new(), rounds: Vec::new(), notes: Vec::new(), machine, hardware, date, quick }
    }

    /// The lines as a file of schema `onesided-bench/1`.
    pub(super) fn to_json(&self) -> Value {
        let Machine { cpu, cores, os, build } = &self.machine;
        let Hardware { gpus, driver, cuda, library, settings, fabric, .. } = &self.hardware;
        let rounds: serde_json::Map<String, Value> =
            self.rounds.iter().map(|(place, rounds)| (place.to_string(), (*rounds).into())).collect();
        let row = |line: &Line| {
            let mut json = line.row.to_json();
            json["place"] = line.place.into();
            json["times_peer"] = line.row.times_peer().into();
            json["ours_jobs"] = line.ours.clone().into();
            json["peer_jobs"] = line.peer.clone().into();
            if let Some(program) = &line.program {
                json["program"] = program.cell.value().into();
                json["program_jobs"] = program.jobs.clone().into();
                if let Some(why) = program.cell.why_not() {
                    json["program_missing"] = why.into();
                }
            }
            json
        };
        let mut json = json!({
            "schema": "onesided-bench/1",
            "backend": "nvshmem",
            "machine": { "cpu": cpu, "cores": cores, "os": os, "build": build },
            "gpus": gpus,
            "driver": driver,
            "cuda": cuda,
            "library": library,
            "settings": settings,
            "fabric": fabric.to_string(),
            "quick": self.quick,
            "rounds": rounds,
            "rows": self.lines.iter().map(row).collect::<Vec<_>>(),
            "notes": self.notes,
        });
        if let Some(date) = &self.date {
            json["date"] = date.as_str().into();
        }
        json
    }

    /// The exit status: 0 also where targets are missed, 1 if a measurement of ours went wrong, 2 if there is none.
    pub(super) fn status(&self) -> u8 {
        let ours = |matches: fn(&Cell) -> bool| self.lines.iter().any(|line| matches(&line.row.ours));
        match () {
            () if ours(|cell| matches!(cell, Cell::Failed(_))) => 1,
            () if ours(|cell| matches!(cell, Cell::Value(_))) => 0,
            () => 2,
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["2 PEs on", "benchmark", "ours", "C++", "ours / C++", "C++ alone", "unit", "target"]);
        for Line { place, row, program, .. } in &self.lines {
            let times = row.times_peer().map_or_else(|| "-".into(), |times| format!("{times:.3}"));
            table.add_row([
                place.to_string(),
                row.name.clone(),
                cell(&row.ours),
                cell(&row.peer),
                times,
                program.as_ref().map_or_else(|| "-".into(), |program| cell(&program.cell)),
                row.unit.name().into(),
                verdict(row),
            ]);
        }
        for column in table.column_iter_mut().skip(2).take(4) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gpus = match self.gpus.as_slice() {
            [first, rest @ ..] if rest.iter().all(|gpu| gpu == first) => format!("{} x {first}", self.gpus.len()),
            several => several.join(", "),
        };
        write!(f, "{gpus}, driver {}, CUDA {}, NVSHMEM {}", self.driver, self.cuda, self.library)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n\n{}\n", self.machine, self.hardware, self.table())?;
        let rounds: Vec<String> = self.rounds.iter().map(|(place, rounds)| format!("{rounds} on {place}")).collect();
        writeln!(
            f,
            "Medians over jobs (rounds: {}); of a job, the median of its samples.\n\
             Calls: our processes make them through the API and in C++, sample by sample in turn, on the same memory\n\
             and stream; ours / C++ is the median of the jobs' own quotients. What ends a sample, a quiet and a wait for\n\
             the stream, is the API's for both. C++ alone: a C++ program, in turn with ours; its calls are in other\n\
             processes, which alone makes them differ. Initialization is compared with it. issue: until the call\n\
             returns. completed: until the stream is done. In a kernel: a call of one thread that makes many; under C++\n\
             is the same source compiled with NVSHMEM's own headers, which inline. Targets are in times of the number\n\
             under C++, and fail nothing.",
            rounds.join(", ")
        )?;
        let judged: Vec<bool> = self.lines.iter().filter_map(|line| line.row.met()).collect();
        let met = judged.iter().filter(|met| **met).count();
        writeln!(f, "{met} of {} targets met.", judged.len())?;
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        if self.quick {
            writeln!(f, "This was --quick: one short round, of which the numbers mean nothing.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Alone, Line};
    use super::*;
    use crate::row::{Row, Target, Unit};

    fn line(place: &'static str, name: &str, unit: Unit, numbers: [f64; 2], target: Option<Target>) -> Line {
        let [ours, peer] = numbers;
        let mut row = Row::new(name, unit, Cell::Value(ours)).beside("C++", Cell::Value(peer));
        row.target = target;
        let program = Some(Alone { cell: Cell::Value(peer + 100.0), jobs: vec![peer + 100.0] });
        Line { place, row, ours: vec![ours], peer: vec![peer], program }
    }

    fn report() -> Report {
        let (issue, rate) = (Some(Target::TimesPeer(1.05)), Some(Target::TimesPeer(0.99)));
        let alone = Row::new("loading the library", Unit::Ms, Cell::Value(9.0));
        let missing = Row::new("init", Unit::Ms, Cell::Failed("onesided: PE 1 ended with status 2".into()))
            .beside("C++", Cell::NotRun("no g++".into()));
        let unpaired = Row::new("reduce 4 B, issue", Unit::Ns, Cell::Value(5000.0))
            .beside("C++", Cell::NotRun("no loops".into()))
            .target(Target::TimesPeer(1.05));
        let no_program = Some(Alone { cell: Cell::NotRun("no g++".into()), jobs: vec![] });
        Report {
            lines: vec![
                line("1 GPU", "put 8 B, issue", Unit::Ns, [4600.0, 4500.0], issue),
                line("1 GPU", "barrier, issue", Unit::Ns, [6000.0, 5000.0], issue),
                line("1 GPU", "put 256 MiB", Unit::GBPerS, [1041.0, 1042.0], rate),
                line("1 GPU", "barrier, completed", Unit::Ns, [6000.0, 5000.0], None),
                Line { place: "1 GPU", row: unpaired, ours: vec![5000.0], peer: vec![], program: no_program },
                Line { place: "1 GPU", row: alone, ours: vec![9.0], peer: vec![], program: None },
                Line {
                    place: "2 GPUs",
                    row: missing.target(Target::TimesPeer(1.1)),
                    ours: vec![],
                    peer: vec![],
                    program: None,
                },
            ],
            rounds: vec![("1 GPU", 5), ("2 GPUs", 1)],
            notes: vec!["2 GPUs, ours: onesided: PE 1 ended with status 2; the last lines:\nPE 1: no device".into()],
            machine: Machine { cpu: "Abacus".into(), cores: 2, os: "Linux".into(), build: "release" },
            hardware: Hardware {
                gpus: vec!["NVIDIA H200".into(), "NVIDIA H200".into()],
                driver: "580.95.05".into(),
                cuda: "13.0".into(),
                library: "3.4.5".into(),
                file: PathBuf::new(),
                settings: [("NVSHMEM_DISABLE_NVLS".into(), "1".into())].into(),
                fabric: Fabric::P2p,
            },
            date: Some("2026-11-21".into()),
            quick: false,
        }
    }

    #[test]
    fn the_table_shows_both_numbers_and_missed_targets() {
        insta::assert_snapshot!("table", report().to_string());
    }

    #[test]
    fn the_json_has_what_a_reader_needs_to_judge() {
        let json = report().to_json();
        assert_eq!([&json["schema"], &json["backend"], &json["date"]], ["onesided-bench/1", "nvshmem", "2026-11-21"]);
        assert_eq!([&json["driver"], &json["cuda"], &json["library"]], ["580.95.05", "13.0", "3.4.5"]);
        assert_eq!([&json["settings"]["NVSHMEM_DISABLE_NVLS"], &json["fabric"]], ["1", "p2p"]);
        assert_eq!((&json["gpus"][1], &json["rounds"]["1 GPU"]), (&"NVIDIA H200".into(), &5.into()));
        let missed = &json["rows"][1];
        assert_eq!([&missed["place"], &missed["name"]], ["1 GPU", "barrier, issue"]);
        assert_eq!((&missed["times_peer"], &missed["met"]), (&1.2.into(), &false.into()));
        assert_eq!((&missed["ours_jobs"][0], &missed["peer_jobs"][0]), (&6000.0.into(), &5000.0.into()));
        assert_eq!([&missed["program"], &missed["program_jobs"][0]], [5100.0; 2]);
        let unpaired = &json["rows"][4];
        assert_eq!([&unpaired["peer_missing"], &unpaired["program_missing"]], ["not run: no loops", "not run: no g++"]);
        assert!(json["rows"][5].get("program").is_none(), "it has no peer");
        let failed = &json["rows"][6];
        assert!(failed["ours"].is_null() && failed["met"].is_null(), "{failed}");
        assert_eq!(failed["ours_missing"], "failed: onesided: PE 1 ended with status 2");
        assert!(json["notes"][0].as_str().unwrap().ends_with("no device"));
    }

    #[test]
    fn missed_targets_fail_nothing_and_measurements_do() {
        let mut report = report();
        assert_eq!(report.status(), 1);
        report.lines.pop();
        assert_eq!(report.status(), 0);
        report.lines.clear();
        report.lines.push(Line {
            place: "1 GPU",
            row: Row::new("everything", Unit::Ns, Cell::NotRun("no service".into())),
            ours: vec![],
            peer: vec![],
            program: None,
        });
        assert_eq!(report.status(), 2);
    }
}
