//! How far a long work is: a bar on standard error where that is a terminal, else a line there now and then.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{complain, say};

/// How often a line is printed where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// How far a long work is. The work does not depend on it.
#[derive(Debug)]
pub struct Progress(Shown);

#[derive(Debug)]
enum Shown {
    Bar(ProgressBar),
    Lines { start: Instant, pace: Mutex<Pace> },
}

impl Progress {
    /// For so many `things`, or a count of them where nobody knows how many there are.
    pub fn new(total: Option<u64>, things: &'static str) -> Progress {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if bar.is_hidden() {
            let pace = Pace { things, total, done: 0, next: EVERY };
            return Progress(Shown::Lines { start: Instant::now(), pace: Mutex::new(pace) });
        }
        let template = match total {
            Some(_) => format!("{{wide_bar}} {{pos}} of {{len}} {things}, {{elapsed}}"),
            None => format!("{{spinner}} {{pos}} {things}, {{elapsed}}"),
        };
        bar.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress(Shown::Bar(bar))
    }

    /// One more is done.
    pub fn step(&self) {
        match &self.0 {
            Shown::Bar(bar) => bar.inc(1),
            Shown::Lines { start, pace } => {
                if let Ok(mut pace) = pace.lock()
                    && let Some(line) = pace.step(|| start.elapsed())
                {
                    complain!("{line}");
                }
            }
        }
    }

    /// Prints a line without tearing the bar.
    pub fn println(&self, line: &str) {
        match &self.0 {
            Shown::Bar(bar) => bar.suspend(|| say!("{line}")),
            Shown::Lines { .. } => say!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// When the next line is due.
#[derive(Debug)]
struct Pace {
    things: &'static str,
    total: Option<u64>,
    done: u64,
    next: Duration,
}

impl Pace {
    /// One more is done: a line, if one is due. The clock is asked rarely once things go by the thousand.
    fn step(&mut self, clock: impl FnOnce() -> Duration) -> Option<String> {
        self.done += 1;
        if self.done > 1000 && !self.done.is_multiple_of(100) {
            return None;
        }
        let now = clock();
        if now < self.next {
            return None;
        }
        self.next = now + EVERY;
        let Pace { things, total, done, .. } = self;
        let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
        Some(format!("{done}{of} {things}, {} s", now.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_every_ten_seconds() {
        let mut pace = Pace { things: "schedules", total: Some(9), done: 0, next: EVERY };
        let lines = [4, 9, 12, 13, 21, 22, 40].map(|now| pace.step(|| Duration::from_secs(now)));
        let said = lines.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(said, ["3 of 9 schedules, 12 s", "6 of 9 schedules, 22 s", "7 of 9 schedules, 40 s"]);
    }

    #[test]
    fn the_clock_is_asked_rarely_once_things_go_by_the_thousand() {
        let mut pace = Pace { things: "schedules", total: None, done: 0, next: EVERY };
        let mut asked = 0;
        for _ in 0..100_000 {
            pace.step(|| {
                asked += 1;
                Duration::ZERO
            });
        }
        assert_eq!(asked, 1000 + 990);
        let late: Vec<String> = (0..100).filter_map(|_| pace.step(|| Duration::from_secs(30))).collect();
        assert_eq!(late, ["100100 schedules, 30 s"]);
    }
}
