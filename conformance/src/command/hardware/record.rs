//! [`Record`]: what became of the steps, as lines and as a report.

use std::io::{self, Write};

use serde::Serialize;

use super::step::Outcome;

/// The steps so far, with all libraries.
#[derive(Debug, Default)]
pub(super) struct Record {
    steps: Vec<Done>,
    /// How many of them are in a report already.
    reported: usize,
}

#[derive(Debug)]
struct Done {
    name: String,
    /// The library's version.
    library: String,
    outcome: Outcome,
    seconds: u64,
    why: Option<String>,
    /// The last lines that a step printed which failed.
    printed: Option<String>,
}

/// The head of a report: what was tested, and where.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Head {
    pub(super) schema: &'static str,
    pub(super) library: String,
    pub(super) device: String,
    pub(super) fabric: String,
    pub(super) nodes: usize,
    pub(super) driver: String,
    pub(super) cuda: String,
    pub(super) date: String,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "FAILED",
            Outcome::NotRun => "not run",
        }
    }
}

impl Record {
    /// Records a step, and returns the line about it.
    pub(super) fn add(
        &mut self,
        name: &str,
        library: &str,
        outcome: Outcome,
        seconds: u64,
        why: Option<String>,
    ) -> String {
        let done = Done { name: name.to_string(), library: library.to_string(), outcome, seconds, why, printed: None };
        let line = done.line();
        self.steps.push(done);
        line
    }

    /// What the last step printed, for the report: a failure may not come again.
    pub(super) fn keep(&mut self, printed: &str) {
        if let Some(done) = self.steps.last_mut() {
            done.printed = Some(printed.to_string());
        }
    }

    /// Writes the report of the steps since the last one: `onesided-hardware/1`. A step that is not well has the reason, and one that failed
    /// its last lines.
    pub(super) fn report(&mut self, out: &mut dyn Write, head: &Head) -> io::Result<()> {
        #[derive(Serialize)]
        struct Step<'a> {
            name: &'a str,
            result: &'static str,
            seconds: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            why: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            printed: Option<&'a str>,
        }
        // A line for each step, so that two reports can be compared by eye.
        let head = serde_json::to_string(head)?;
        write!(out, "{},\"steps\":[", head.trim_end_matches('}'))?;
        for (index, done) in self.steps[self.reported..].iter().enumerate() {
            let Done { name, outcome, seconds, why, printed, .. } = done;
            let (why, printed) = (why.as_deref(), printed.as_deref());
            let step = Step { name, result: outcome.name(), seconds: *seconds, why, printed };
            write!(out, "{}\n{}", if index == 0 { "" } else { "," }, serde_json::to_string(&step)?)?;
        }
        self.reported = self.steps.len();
        writeln!(out, "\n]}}")
    }

    /// All lines, and the counts.
    pub(super) fn summary(&self) -> String {
        let count = |outcome| self.steps.iter().filter(|done| done.outcome == outcome).count();
        let [passed, failed, not_run] = [Outcome::Ok, Outcome::Failed, Outcome::NotRun].map(count);
        let lines = self.steps.iter().map(|done| done.line() + "\n");
        format!("{}{passed} passed, {failed} failed, {not_run} not run", lines.collect::<String>())
    }

    /// Whether something ran, and nothing failed.
    pub(super) fn is_well(&self) -> bool {
        let is = |outcome| self.steps.iter().any(|done| done.outcome == outcome);
        is(Outcome::Ok) && !is(Outcome::Failed)
    }
}

impl Done {
    fn line(&self) -> String {
        let Done { name, library, outcome, seconds, why, printed: _ } = self;
        let why = why.as_ref().map_or(String::new(), |why| format!("  {why}"));
        format!("{:<7} {library:<9} {name:<40} {seconds:>4} s{why}", outcome.name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lines_counts_and_reports() {
        let mut record = Record::default();
        assert!(!record.is_well());
        let line = record.add("doctor", "3.4.5", Outcome::Ok, 3, None);
        assert_eq!(line, "ok      3.4.5     doctor                                      3 s");
        let why = Some("no mpirun".to_string());
        let line = record.add("a \"name\"", "3.4.5", Outcome::NotRun, 0, why);
        assert_eq!(line, "not run 3.4.5     a \"name\"                                    0 s  no mpirun");
        assert!(record.is_well());

        let text = |text: &str| text.to_string();
        let head = Head {
            schema: "onesided-hardware/1",
            library: text("3.4.5"),
            device: text("1xH100"),
            fabric: text("p2p"),
            nodes: 1,
            driver: text("580.1"),
            cuda: text("13.0"),
            date: text("2026-11-21"),
        };
        let report = |record: &mut Record| {
            let mut bytes = Vec::new();
            record.report(&mut bytes, &head).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let first = report(&mut record);
        let begin = "{\"schema\":\"onesided-hardware/1\",\"library\":\"3.4.5\",\"device\":\"1xH100\",\"fabric\":\"p2p\",\"nodes\":1,\"driver\":\"580.1\",\
                     \"cuda\":\"13.0\",\"date\":\"2026-11-21\",\"steps\":[\n\
                     {\"name\":\"doctor\",\"result\":\"ok\",\"seconds\":3},\n";
        assert!(first.starts_with(begin), "{first}");
        let json: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(
            json["steps"][1],
            json!({ "name": "a \"name\"", "result": "not run", "seconds": 0, "why": "no mpirun" })
        );

        record.add("ring", "3.8.0", Outcome::Failed, 9999, Some("status 1".to_string()));
        record.keep("first\nlast");
        let second: Value = serde_json::from_str(&report(&mut record)).unwrap();
        let failed = json!({
            "name": "ring", "result": "FAILED", "seconds": 9999, "why": "status 1", "printed": "first\nlast"
        });
        assert_eq!(second["steps"], json!([failed]));
        assert!(!record.is_well());
        let summary = record.summary();
        assert_eq!(summary.lines().count(), 4);
        assert!(summary.ends_with("\n1 passed, 1 failed, 1 not run"), "{summary}");
    }
}
