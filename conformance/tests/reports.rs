//! The tables in `conformance/reports/README.md` say what the reports beside it say.
//!
//! `INSTA_UPDATE=always cargo test --test reports` writes them anew, as it does with snapshots.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The tables stand between these lines.
const BEGIN: &str = "<!-- reports -->";
const END: &str = "<!-- /reports -->";

#[test]
fn the_page_shows_the_reports() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let reports = read(&folder).unwrap();
    if reports.is_empty() {
        println!("not run: no reports");
    }
    let page = folder.join("README.md");
    let text = fs::read_to_string(&page).unwrap();
    let fresh = with_tables(&text, &tables(&reports).unwrap()).unwrap();
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        fs::write(&page, &fresh).unwrap();
        return;
    }
    let repair = "INSTA_UPDATE=always cargo test --test reports writes it";
    assert!(text == fresh, "conformance/reports/README.md and the reports differ; {repair}");
}

/// Reports are of machines in general: what they repeat of messages names files as the user did, relative to the sources.
#[test]
fn no_report_names_a_path_of_its_machine() {
    let paths = |text: &str| {
        let words = text.split(|c: char| c.is_whitespace() || "`'\"(;,".contains(c));
        let is_path = |word: &&str| word.strip_prefix('/').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
        words.filter(is_path).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(paths("no file /a/b.txt; `/c d` e/f 1 / 2"), ["/a/b.txt", "/c"]);
    for Report { file, json } in read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("reports")).unwrap() {
        let found = paths(&json.to_string());
        assert!(found.is_empty(), "{file} names {found:?}");
    }
}

/// Stands behind what was measured so that ours and C++ were in the same processes.
const IN_PAIRS: &str = ", in pairs";

/// A report and the name of its file.
struct Report {
    file: String,
    json: Value,
}

/// Rows of a benchmark of the same kind.
struct Group<'a> {
    /// Place, unit and target.
    key: [&'a str; 3],
    /// Whether ours and C++ were in the same processes.
    in_pairs: bool,
    /// Ours divided by the peer's, and whether that is good enough.
    values: Vec<(f64, bool)>,
}

/// The reports of a folder, by their files' names. None where there is no folder.
fn read(folder: &Path) -> Result<Vec<Report>, String> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let wrong = |file: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let files = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut files: Vec<PathBuf> = files.map_err(|why: std::io::Error| wrong(folder, &why))?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let report = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(|why| wrong(file, &why))?;
        let json = serde_json::from_str(&text).map_err(|why| wrong(file, &why))?;
        Ok(Report { file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(), json })
    };
    files.iter().map(report).collect()
}

/// The text with these tables between the two marks, and nothing else there.
fn with_tables(text: &str, tables: &str) -> Result<String, String> {
    let [before, rest] = split(text, BEGIN)?;
    let [_, after] = split(rest, END)?;
    let middle = if tables.is_empty() { String::new() } else { format!("\n{tables}\n") };
    Ok(format!("{before}{BEGIN}\n{middle}{END}{after}"))
}

fn split<'a>(text: &'a str, mark: &str) -> Result<[&'a str; 2], String> {
    match text.split(mark).collect::<Vec<_>>().as_slice() {
        [before, after] => Ok([*before, *after]),
        parts => Err(format!("reports/README.md has {} lines '{mark}'; expected one", parts.len() - 1)),
    }
}

/// A table of the runs, and one of the benchmarks if there are any.
fn tables(reports: &[Report]) -> Result<String, String> {
    if reports.is_empty() {
        return Ok(String::new());
    }
    let mut text =
        String::from("| date | GPUs | NVSHMEM | driver, CUDA | what | result |\n|---|---|---|---|---|---|\n");
    for report in reports {
        text += &report.row()?;
    }
    let speed: Vec<String> = reports.iter().map(Report::speed).collect::<Result<_, _>>()?;
    if speed.iter().any(|rows| !rows.is_empty()) {
        text += "\nOurs divided by the C++ program's, from the best to the worst of the group; two processes each";
        if speed.iter().any(|rows| rows.contains(IN_PAIRS)) {
            text += ". What is\nmeasured in pairs is both in the same processes, sample by sample in turn";
        }
        text += ":\n\n";
        text += "| GPUs | NVSHMEM | the 2 PEs on | what | ours / C++ | target | met |\n|---|---|---|---|---|---|---|\n";
        text += &speed.concat();
    }
    Ok(text)
}

impl Report {
    /// Which parts of `ci/hardware` were run: the file's name has them, if it was not all.
    fn parts(&self) -> String {
        let name = self.file.trim_start_matches("steps-");
        let parts: Vec<&str> =
            name.split('-').take_while(|part| !part.starts_with(|c: char| c.is_ascii_digit())).collect();
        if parts.is_empty() || name == self.file { "all parts".to_string() } else { parts.join(", ") }
    }

    /// One run in one line.
    fn row(&self) -> Result<String, String> {
        let (what, result) = match self.text("schema")? {
            "onesided-suite/2" => (self.suite()?, counts(self.each("cases", "status")?, ["passed", "failed"])),
            "onesided-hardware/1" => (self.parts(), counts(self.each("steps", "result")?, ["ok", "FAILED"])),
            "onesided-bench/1" => ("speed".to_string(), self.targets()?),
            other => return Err(self.wrong(&format!("schema {other}, of which this table knows nothing"))),
        };
        let date = self.text("date")?;
        let date = date.get(..10).unwrap_or(date);
        let driver = match (self.text("driver"), self.text("cuda")) {
            (Ok(driver), Ok(cuda)) => format!("{driver}, {cuda}"),
            (Err(_), Ok(cuda)) => cuda.to_string(),
            _ => String::new(),
        };
        let link = format!("[{what}]({})", self.file);
        Ok(format!("| {date} | {} | {} | {driver} | {link} | {result} |\n", self.gpus()?, self.library()?))
    }

    /// `suite, 1, 2 and 4 PEs, 20 runs each, MPS`.
    fn suite(&self) -> Result<String, String> {
        let pes: BTreeSet<u64> = self.list("cases")?.iter().filter_map(|case| case["pes"].as_u64()).collect();
        let pes: Vec<String> = pes.iter().map(u64::to_string).collect();
        let pes = match pes.split_last() {
            None => return Err(self.wrong("no case with a number of PEs")),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        };
        let runs = self.json["runs"].as_u64().ok_or_else(|| self.wrong("no field runs"))?;
        let mps = if self.json["mps"] == true { ", MPS" } else { "" };
        Ok(format!("suite, {pes} PEs, {runs} runs a case{mps}"))
    }

    /// How many of a benchmark's targets are met.
    fn targets(&self) -> Result<String, String> {
        let rows = self.list("rows")?;
        let judged: Vec<bool> = rows.iter().filter_map(|row| row["met"].as_bool()).collect();
        let met = judged.iter().filter(|met| **met).count();
        let went_wrong = |row: &&Value| row["ours_missing"].as_str().is_some_and(|why| why.starts_with("failed"));
        let failed = rows.iter().filter(went_wrong).count();
        let failed = if failed > 0 { format!(", failed measurements: {failed}") } else { String::new() };
        Ok(match judged.len() {
            0 => format!("measured, without targets{failed}"),
            all => format!("{met} of {all} targets met{failed}"),
        })
    }

    /// Of a benchmark, a line for each place and kind of target; nothing of other reports.
    fn speed(&self) -> Result<String, String> {
        if self.json["schema"] != "onesided-bench/1" {
            return Ok(String::new());
        }
        let mut groups: Vec<Group<'_>> = Vec::new();
        for row in self.list("rows")? {
            let text = |field: &str| row[field].as_str();
            let (Some(place), Some(unit), Some(target)) = (text("place"), text("unit"), text("target")) else {
                continue;
            };
            let (Some(times), Some(met)) = (row["times_peer"].as_f64(), row["met"].as_bool()) else { continue };
            let (key, in_pairs) = ([place, unit, target], row["program_jobs"].is_array());
            match groups.iter_mut().find(|group| group.key == key && group.in_pairs == in_pairs) {
                Some(group) => group.values.push((times, met)),
                None => groups.push(Group { key, in_pairs, values: vec![(times, met)] }),
            }
        }
        let (gpus, library) = (self.gpus()?, self.library()?);
        let line = |Group { key: [place, unit, target], in_pairs, mut values }: Group<'_>| {
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let what = match unit {
                "GB/s" => {
                    values.reverse();
                    "bandwidth of large puts"
                }
                "ns" => "issue of small operations",
                _ => "initialization",
            };
            let how = if in_pairs { IN_PAIRS } else { "" };
            let (best, worst) = (values[0].0, values[values.len() - 1].0);
            let range = if values.len() == 1 { format!("{best:.3}") } else { format!("{best:.3} … {worst:.3}") };
            let target = target.strip_suffix(" of the peer").unwrap_or(target);
            let target = target.replace("<=", "≤").replace(">=", "≥");
            let met = values.iter().filter(|(_, met)| *met).count();
            format!("| {gpus} | {library} | {place} | {what}{how} | {range} | {target} | {met} of {} |\n", values.len())
        };
        Ok(groups.into_iter().map(line).collect())
    }

    /// `2 × H200`, and how PEs reached each other, if not by loads and stores.
    fn gpus(&self) -> Result<String, String> {
        let fabric = match (self.text("fabric"), self.json["nodes"].as_u64()) {
            (Err(_) | Ok("p2p"), _) => String::new(),
            (Ok(fabric), None | Some(1)) => format!(", {fabric}"),
            (Ok(fabric), Some(nodes)) => format!(", {fabric}, {nodes} nodes"),
        };
        Ok(self.devices()? + &fabric)
    }

    fn devices(&self) -> Result<String, String> {
        if let Ok(device) = self.text("device") {
            return Ok(device.replacen('x', " × ", 1));
        }
        let names: Vec<&str> = self.list("gpus")?.iter().filter_map(Value::as_str).collect();
        match names.as_slice() {
            [] => Err(self.wrong("no name of a GPU")),
            [first, rest @ ..] if rest.iter().all(|name| name == first) => {
                Ok(format!("{} × {}", names.len(), first.trim_start_matches("NVIDIA ")))
            }
            several => Ok(several.join(", ")),
        }
    }

    /// The library's version: the last word of what a report says of it.
    fn library(&self) -> Result<&str, String> {
        self.text("library").map(|library| library.split(' ').next_back().unwrap_or(library))
    }

    fn text(&self, field: &str) -> Result<&str, String> {
        self.json[field].as_str().ok_or_else(|| self.wrong(&format!("no text {field}")))
    }

    fn list(&self, field: &str) -> Result<&Vec<Value>, String> {
        self.json[field].as_array().ok_or_else(|| self.wrong(&format!("no list {field}")))
    }

    /// A text field of all members of a list.
    fn each(&self, list: &str, field: &str) -> Result<Vec<&str>, String> {
        self.list(list)?
            .iter()
            .map(|member| member[field].as_str().ok_or_else(|| self.wrong(&format!("no {field} in each of {list}"))))
            .collect()
    }

    fn wrong(&self, why: &str) -> String {
        format!("{}: {why}", self.file)
    }
}

/// How often each word occurs: good and bad first, then the others. What is bad is always said.
fn counts(words: Vec<&str>, [good, bad]: [&str; 2]) -> String {
    let others: BTreeSet<&str> = words.iter().copied().filter(|word| *word != good && *word != bad).collect();
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    let words = [good, bad].into_iter().chain(others);
    words.map(|word| format!("{} {}", count(word), word.to_lowercase())).collect::<Vec<_>>().join(", ")
}

mod tests {
    use serde_json::json;

    use super::*;

    fn report(file: &str, json: Value) -> Report {
        Report { file: file.to_string(), json }
    }

    fn suite() -> Value {
        let case = |pes: u64, status: &str| json!({ "name": "rma/x", "pes": pes, "status": status });
        json!({
            "schema": "onesided-suite/2", "date": "2026-11-21T01:02:03Z", "backend": "nvshmem",
            "library": "libnvshmem 3.4.5", "driver": "580.95.05", "cuda": "13.0",
            "gpus": ["NVIDIA H200", "NVIDIA H200"], "mps": true, "runs": 20,
            "cases": [case(2, "passed"), case(1, "passed"), case(4, "not run"), case(2, "passed")],
        })
    }

    fn bench() -> Value {
        let row = |place: &str, unit: &str, target: &str, times: f64, met: bool| json!({ "place": place, "unit": unit, "target": target, "times_peer": times, "met": met, "ours": 1.0 });
        json!({
            "schema": "onesided-bench/1", "date": "2026-11-21", "library": "3.8.0", "driver": null, "cuda": "13.0",
            "gpus": ["NVIDIA H100 80GB HBM3"],
            "rows": [
                row("1 GPU", "ms", "<= 1.1 of the peer", 1.034, true),
                row("1 GPU", "ns", "<= 1.05 of the peer", 1.08, false),
                row("1 GPU", "ns", "<= 1.05 of the peer", 1.012, true),
                row("1 GPU", "GB/s", ">= 0.99 of the peer", 0.994, true),
                row("1 GPU", "GB/s", ">= 0.99 of the peer", 1.001, true),
                json!({ "place": "2 GPUs", "unit": "ns", "target": null, "met": null, "ours_missing": "not run: 1 GPU here" }),
                json!({ "place": "2 GPUs", "unit": "ns", "target": "x", "met": null, "ours_missing": "failed: no device" }),
            ],
        })
    }

    /// A report from when ours and C++ were measured in pairs, beside a program that is only initialization's peer.
    fn bench_in_pairs() -> Value {
        let mut json = bench();
        json["date"] = "2026-11-22".into();
        for row in json["rows"].as_array_mut().unwrap() {
            if row["place"] == "1 GPU" && row["unit"] != "ms" {
                row["program"] = 0.9.into();
                row["program_jobs"] = json!([0.9]);
            }
        }
        json
    }

    fn steps() -> Value {
        let step = |result: &str| json!({ "name": "ring", "result": result, "seconds": 1 });
        json!({
            "schema": "onesided-hardware/1", "date": "2026-11-21", "library": "3.4.5", "device": "1xH100",
            "driver": "580.95.05", "cuda": "13.0", "steps": [step("ok"), step("FAILED"), step("ok")],
        })
    }

    #[test]
    fn every_kind_of_report_has_its_rows() {
        let reports = [report("bench.json", bench()), report("steps.json", steps()), report("suite.json", suite())];
        insta::assert_snapshot!("reports", tables(&reports).unwrap());
        let reports = [report("bench.json", bench()), report("bench-in-pairs.json", bench_in_pairs())];
        insta::assert_snapshot!("reports_in_pairs", tables(&reports).unwrap());
    }

    #[test]
    fn a_report_of_a_network_says_so() {
        let over = |mut json: Value, fabric: &str, nodes: u64| {
            json["fabric"] = fabric.into();
            json["nodes"] = nodes.into();
            report("suite-3.4.5-2xH200-2026-11-22.json", json).gpus().unwrap()
        };
        assert_eq!(over(suite(), "p2p", 1), "2 × H200");
        assert_eq!(over(suite(), "network", 1), "2 × H200, network");
        assert_eq!(over(steps(), "mixed", 2), "1 × H100, mixed, 2 nodes");
    }

    #[test]
    fn without_reports_there_is_no_table() {
        assert_eq!(tables(&[]).unwrap(), "");
        assert_eq!(read(Path::new("/no/such/folder")).map(|reports| reports.len()), Ok(0));
    }

    #[test]
    fn what_a_report_lacks_is_named_with_its_file() {
        for (change, why) in [
            ("schema", "x.json: no text schema"),
            ("date", "x.json: no text date"),
            ("gpus", "x.json: no list gpus"),
            ("runs", "x.json: no field runs"),
            ("cases", "x.json: no list cases"),
        ] {
            let mut json = suite();
            json.as_object_mut().unwrap().remove(change);
            assert_eq!(tables(&[report("x.json", json)]).unwrap_err(), why);
        }
        let unknown = report("x.json", json!({ "schema": "onesided-trace/2" }));
        assert!(tables(&[unknown]).unwrap_err().contains("knows nothing"));
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let text = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        assert_eq!(with_tables(&text, "new\n").unwrap(), format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(with_tables(&text, "").unwrap(), format!("before\n{BEGIN}\n{END}\nafter\n"));
        assert!(with_tables("before", "").unwrap_err().starts_with("reports/README.md has 0 lines"));
    }

    #[test]
    fn reports_are_read_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", "notes.txt"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        let names: Vec<String> = read(folder.path()).unwrap().into_iter().map(|report| report.file).collect();
        assert_eq!(names, ["a.json", "b.json"]);
        fs::write(folder.path().join("c.json"), "{").unwrap();
        assert!(read(folder.path()).err().unwrap().contains("c.json: EOF"));
    }
}
