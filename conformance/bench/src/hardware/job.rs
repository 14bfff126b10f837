//! One job: two processes of one program, from their start to the end of the last.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use onesided_harness::launch::{Channel, Event, Job, PeStatus};
use serde_json::Value;

use super::plan::Measurement;

/// So many PEs has every job.
pub(super) const PES: usize = 2;

/// Lines that are kept for the message of a job that fails.
const LAST_LINES: usize = 5;

/// A program and what it is called with.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(String, OsString)>,
}

/// What a job said, in the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// From the start of the processes until the last PE said that it is ready.
    pub(super) ready: Duration,
    /// What was printed of initialization: of each field the largest number over all PEs.
    pub(super) init: BTreeMap<String, f64>,
    /// The library's version, in the program's words.
    pub(super) library: String,
    /// The library's status after initialization.
    pub(super) status: String,
    /// The median of each measurement.
    pub(super) medians: BTreeMap<Measurement, Medians>,
    /// The median of the same calls in C++, of those measurements that were made in pairs.
    pub(super) pairs: BTreeMap<Measurement, Medians>,
    /// Why there are no pairs, if there should be.
    pub(super) no_pair: Option<String>,
}

/// Nanoseconds for each operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Medians {
    /// Until it is enqueued.
    pub(super) issue: f64,
    /// Until it is done.
    pub(super) done: f64,
}

impl Program {
    /// Runs the program on each of the devices, and ends it when the time is up.
    ///
    /// # Errors
    /// In words: it cannot be started, takes too long, fails, or leaves out a measurement.
    pub(super) fn run(&self, devices: [u32; PES], plan: &[Measurement], limit: Duration) -> Result<Measured, String> {
        let job = Job {
            pes: PES,
            program: self.file.clone(),
            arguments: self.arguments.iter().cloned().chain(plan.iter().map(|m| m.to_string().into())).collect(),
            environment: self.environment.clone(),
            devices: devices.into(),
            nodes: vec![],
        };
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let start = Instant::now();
        let mut running = job.start()?;
        let mut heard = Heard::default();
        loop {
            let Some(left) = limit.checked_sub(start.elapsed()) else {
                drop(running); // which ends its processes
                return Err(format!("{name} took longer than {} s{}", limit.as_secs(), heard.last()));
            };
            match running.next(left) {
                Event::Line { pe, channel, text } => {
                    heard.line(pe, channel, &text, start.elapsed()).map_err(|why| format!("{name}: {why}"))?;
                }
                Event::Ended { status, .. } if status.is_ok() => {}
                Event::Ended { pe, status } => {
                    heard.failed(pe, status);
                    running.kill(); // the other one may wait for it
                }
                Event::Quiet | Event::Stuck { .. } => {}
                Event::AllEnded => break,
            }
        }
        heard.end(plan).map_err(|why| format!("{name}: {why}"))
    }
}

/// What the processes printed so far.
#[derive(Debug, Default)]
struct Heard {
    ready: Vec<Value>,
    when: Duration,
    medians: BTreeMap<Measurement, Medians>,
    pairs: BTreeMap<Measurement, Medians>,
    no_pair: Option<String>,
    failed: Option<String>,
    last: VecDeque<String>,
}

impl Heard {
    fn line(&mut self, pe: usize, channel: Channel, text: &str, when: Duration) -> Result<(), String> {
        let said = (channel == Channel::Out && text.starts_with('{')).then(|| serde_json::from_str::<Value>(text));
        let Some(said) = said else {
            // The library prints warnings of its own.
            self.last.push_back(format!("PE {pe}: {text}"));
            if self.last.len() > LAST_LINES {
                self.last.pop_front();
            }
            return Ok(());
        };
        let wrong = || format!("PE {pe} printed a line that says nothing of a measurement: {text}");
        let said = said.map_err(|_| wrong())?;
        if said["ready"].is_object() {
            self.ready.push(said["ready"].clone());
            self.when = when;
            return Ok(());
        }
        if let Some(why) = said["no_pair"].as_str() {
            self.no_pair.get_or_insert_with(|| why.to_string());
            return Ok(());
        }
        let measurement = said["measured"].as_str().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        let medians = |issue: &str, done: &str| {
            let (issue, done) = (median_of(&said[issue])?, median_of(&said[done])?);
            Some(Medians { issue, done })
        };
        self.medians.insert(measurement, medians("issue_ns", "done_ns").ok_or_else(wrong)?);
        if said.get("cpp_issue_ns").is_some() {
            self.pairs.insert(measurement, medians("cpp_issue_ns", "cpp_done_ns").ok_or_else(wrong)?);
        }
        Ok(())
    }

    /// The first process that fails is the one that matters: others fail because it does.
    fn failed(&mut self, pe: usize, status: PeStatus) {
        self.failed.get_or_insert(format!("PE {pe} {status}"));
    }

    fn last(&self) -> String {
        if self.last.is_empty() {
            return "; it printed no message".to_string();
        }
        let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
        format!("; the last lines:\n{}", lines.join("\n"))
    }

    fn end(self, plan: &[Measurement]) -> Result<Measured, String> {
        if let Some(how) = &self.failed {
            return Err(format!("{how}{}", self.last()));
        }
        if self.ready.len() != PES {
            return Err(format!("{} of {PES} PEs said that they are ready{}", self.ready.len(), self.last()));
        }
        if let Some(missing) = plan.iter().find(|measurement| !self.medians.contains_key(measurement)) {
            return Err(format!("no line for {missing}{}", self.last()));
        }
        let text = |field: &str| self.ready[0][field].as_str().unwrap_or("unknown").to_string();
        let mut init = BTreeMap::new();
        for (field, value) in self.ready.iter().filter_map(Value::as_object).flatten() {
            let Some(value) = value.as_f64() else { continue };
            let most = init.entry(field.clone()).or_insert(value);
            *most = value.max(*most);
        }
        Ok(Measured {
            ready: self.when,
            init,
            library: text("library"),
            status: text("status"),
            medians: self.medians,
            pairs: self.pairs,
            no_pair: self.no_pair,
        })
    }
}

fn median_of(samples: &Value) -> Option<f64> {
    let samples: Option<Vec<f64>> = samples.as_array()?.iter().map(Value::as_f64).collect();
    median(samples?)
}

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (upper, lower) = (values.get(values.len() / 2)?, values.get((values.len() - 1) / 2)?);
    Some(upper.midpoint(*lower))
}

#[cfg(all(test, unix))]
pub(super) mod tests {
    use super::*;

    /// A program of the shell.
    pub(in super::super) fn shell(script: &str) -> Program {
        let arguments = ["-c", script, "script"].map(OsString::from).into();
        Program { file: "sh".into(), arguments, environment: Vec::new() }
    }

    /// A program that says ready, and of each measurement the same times.
    pub(in super::super) fn scripted(init_ms: u32, issue: &str, done: &str) -> Program {
        shell(&format!(
            r#"echo '{{"ready":{{"init_ns":{init_ms}000000,"status":"full MPG","library":"3.4.5"}}}}'
            [ "$ONESIDED_RANK" = 0 ] || exit 0
            for m in "$@"; do echo "{{\"measured\":\"$m\",\"issue_ns\":[{issue}],\"done_ns\":[{done}]}}"; done"#
        ))
    }

    /// The same with the C++ loops' times behind ours, for those measurements of which C++ has any.
    pub(in super::super) fn paired(init_ms: u32, ours: &str, cpp: &str) -> Program {
        shell(&format!(
            r#"echo '{{"ready":{{"init_ns":{init_ms}000000,"status":"full MPG","library":"3.4.5"}}}}'
            [ "$ONESIDED_RANK" = 0 ] || exit 0
            for m in "$@"; do
                cpp=",\"cpp_issue_ns\":[{cpp}],\"cpp_done_ns\":[{cpp}]"
                case $m in put:0:*) cpp= ;; esac
                echo "{{\"measured\":\"$m\",\"issue_ns\":[{ours}],\"done_ns\":[{ours}]$cpp}}"
            done"#
        ))
    }

    const LIMIT: Duration = Duration::from_secs(60);

    fn plan() -> Vec<Measurement> {
        vec!["put:8:200:3".parse().unwrap(), "barrier:0:100:3".parse().unwrap()]
    }

    fn why(script: &str) -> String {
        shell(script).run([0, 0], &plan(), LIMIT).unwrap_err()
    }

    #[test]
    fn medians_and_the_slowest_pe_are_what_counts() {
        let script = r#"echo "NVSHMEM: a warning"
            echo "{\"ready\":{\"init_ns\":$((5 + ONESIDED_DEVICE)),\"status\":\"initialized\",\"library\":\"3.4.5\"}}"
            [ "$ONESIDED_RANK" = 1 ] || for m in "$@"; do
            echo "{\"measured\":\"$m\",\"issue_ns\":[9,1,2.5],\"done_ns\":[4,2,30,10]}"; done"#;
        let measured = shell(script).run([3, 7], &plan(), LIMIT).unwrap();
        assert_eq!(measured.init, BTreeMap::from([("init_ns".to_string(), 12.0)]));
        assert_eq!((measured.library.as_str(), measured.status.as_str()), ("3.4.5", "initialized"));
        assert_eq!(measured.medians[&plan()[0]], Medians { issue: 2.5, done: 7.0 });
        assert_eq!(measured.medians.len(), 2);
        assert!(measured.ready > Duration::ZERO);
    }

    #[test]
    fn pairs_have_both_numbers_or_one_reason() {
        let measured = paired(1, "5,3,4", "2,1,9").run([0, 0], &plan(), LIMIT).unwrap();
        assert_eq!(measured.medians[&plan()[0]], Medians { issue: 4.0, done: 4.0 });
        assert_eq!((measured.pairs[&plan()[0]], measured.no_pair), (Medians { issue: 2.0, done: 2.0 }, None));
        let script = r#"echo '{"ready":{}}'; echo "{\"no_pair\":\"no file of PE $ONESIDED_RANK\"}""#;
        let measured = shell(script).run([0, 0], &[], LIMIT).unwrap();
        assert!(measured.pairs.is_empty() && measured.no_pair.unwrap().starts_with("no file of PE "));
    }

    #[test]
    fn a_job_that_fails_says_which_pe_and_its_last_words() {
        let failed = why(r#"[ "$ONESIDED_RANK" = 0 ] || { echo "no device" >&2; exit 7; }"#);
        assert!(failed.starts_with("sh: PE 1 ended with status 7; the last lines:\nPE 1: no device"), "{failed}");
        assert!(why("kill -9 $$").contains("was killed by signal 9; it printed no message"));
        assert_eq!(why("true"), "sh: 0 of 2 PEs said that they are ready; it printed no message");
        let part = r#"echo '{"ready":{}}'; echo '{"measured":"put:8:200:3","issue_ns":[1],"done_ns":[2]}'"#;
        assert_eq!(why(part), "sh: no line for barrier:0:100:3; it printed no message");
    }

    #[test]
    fn a_pe_that_waits_for_one_that_failed_is_ended() {
        let start = Instant::now();
        let failed = why(r#"[ "$ONESIDED_RANK" = 0 ] || exit 7; exec sleep 600"#);
        assert_eq!(failed, "sh: PE 1 ended with status 7; it printed no message");
        assert!(start.elapsed() < LIMIT);
    }

    #[test]
    fn lines_that_make_no_sense_are_refused() {
        for line in [
            r#"{"measured":"put:8:200:3","issue_ns":[],"done_ns":[1]}"#,
            r#"{"measured":"put:8:200:3","issue_ns":[1],"done_ns":[1],"cpp_issue_ns":[1]}"#,
            r#"{"what":1}"#,
            "{",
        ] {
            let refused = why(&format!("echo '{line}'"));
            assert!(refused.contains("says nothing of a measurement"), "{refused}");
        }
    }

    #[test]
    fn a_job_that_hangs_is_ended() {
        let start = Instant::now();
        let late = shell("exec sleep 600").run([0, 0], &plan(), Duration::from_millis(200)).unwrap_err();
        assert_eq!(late, "sh took longer than 0 s; it printed no message");
        assert!(start.elapsed() < LIMIT);
    }

    #[test]
    fn medians() {
        assert_eq!(
            [vec![], vec![3.0], vec![4.0, 1.0], vec![9.0, 1.0, 2.0]].map(median),
            [None, Some(3.0), Some(2.5), Some(2.0)]
        );
    }
}
