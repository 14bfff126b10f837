//! How far a long work is: a bar on standard error where that is a terminal, else a line there now and then.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use onesided_sim::Explored;

use crate::{complain, say};

/// How often a line is printed where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// What is counted: one of them, and many.
#[derive(Clone, Copy, Debug)]
pub struct Things {
    one: &'static str,
    many: &'static str,
}

impl Things {
    /// Schedules.
    pub const SCHEDULES: Things = Things::new("schedule", "schedules");
    /// Classes of equivalent schedules.
    pub const CLASSES: Things = Things::new("class", "classes");

    /// One of them, and many.
    pub const fn new(one: &'static str, many: &'static str) -> Things {
        Things { one, many }
    }

    fn of(self, number: u64) -> &'static str {
        if number == 1 { self.one } else { self.many }
    }
}

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
    pub fn new(total: Option<u64>, things: Things) -> Progress {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if bar.is_hidden() {
            let pace = Pace { things, total, done: 0, next: EVERY };
            return Progress(Shown::Lines { start: Instant::now(), pace: Mutex::new(pace) });
        }
        let template = match total {
            Some(_) => format!("{{wide_bar}} {{pos}} of {{len}} {}, {{rate}}, {{elapsed}}", things.many),
            None => "{spinner} {pos}{msg} {things}, {rate}, {elapsed}".to_string(),
        };
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = style.with_key("things", move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(things.of(state.pos())); // a bar that cannot be drawn is left out
        });
        bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&rate(state.per_sec())); // as above
        }));
        Progress(Shown::Bar(bar))
    }

    /// One more is done.
    pub fn step(&self) {
        self.step_of(|| None);
    }

    /// One more is done, of about so many, if that is known. It is asked for now and then.
    pub fn step_of(&self, estimated: impl FnOnce() -> Option<u64>) {
        match &self.0 {
            Shown::Bar(bar) => {
                bar.inc(1);
                if is_looked_at(bar.position())
                    && let Some(estimate) = estimated()
                {
                    bar.set_message(format!(" of about {}", Explored::in_words(estimate)));
                }
            }
            Shown::Lines { start, pace } => {
                if let Ok(mut pace) = pace.lock()
                    && let Some(line) = pace.step(estimated, || start.elapsed())
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

/// Whether to look at the clock and at estimates after so many things: rarely once things go by the thousand.
fn is_looked_at(done: u64) -> bool {
    done <= 1000 || done.is_multiple_of(100)
}

fn rate(per_second: f64) -> String {
    let digits = if per_second < 10.0 { 1 } else { 0 };
    format!("{per_second:.digits$}/s")
}

/// When the next line is due.
#[derive(Debug)]
struct Pace {
    things: Things,
    total: Option<u64>,
    done: u64,
    next: Duration,
}

impl Pace {
    /// One more is done: a line, if one is due.
    fn step(&mut self, estimated: impl FnOnce() -> Option<u64>, clock: impl FnOnce() -> Duration) -> Option<String> {
        self.done += 1;
        if !is_looked_at(self.done) {
            return None;
        }
        let now = clock();
        if now < self.next {
            return None;
        }
        self.next = now + EVERY;
        let Pace { things, total, done, .. } = self;
        let of = match total {
            Some(total) => format!(" of {total}"),
            None => {
                estimated().map(|estimate| format!(" of about {}", Explored::in_words(estimate))).unwrap_or_default()
            }
        };
        let things = if of.is_empty() { things.of(*done) } else { things.many };
        let rate = rate(*done as f64 / now.as_secs_f64());
        Some(format!("{done}{of} {things}, {rate}, {} s", now.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_every_ten_seconds() {
        let mut pace = Pace { things: Things::SCHEDULES, total: Some(9), done: 0, next: EVERY };
        let lines = [4, 9, 12, 13, 21, 22, 40].map(|now| pace.step(|| None, || Duration::from_secs(now)));
        let said = lines.into_iter().flatten().collect::<Vec<_>>();
        let expected =
            ["3 of 9 schedules, 0.2/s, 12 s", "6 of 9 schedules, 0.3/s, 22 s", "7 of 9 schedules, 0.2/s, 40 s"];
        assert_eq!(said, expected);
    }

    #[test]
    fn one_of_them_has_its_own_word() {
        let line = |total, estimate| {
            let mut pace = Pace { things: Things::CLASSES, total, done: 0, next: Duration::ZERO };
            pace.step(|| estimate, || Duration::from_secs(10)).unwrap()
        };
        assert_eq!(line(None, None), "1 class, 0.1/s, 10 s");
        assert_eq!(line(None, Some(7)), "1 of about 7 classes, 0.1/s, 10 s");
        assert_eq!(line(Some(7), None), "1 of 7 classes, 0.1/s, 10 s");
    }

    #[test]
    fn an_estimate_is_asked_for_with_the_line() {
        let mut pace = Pace { things: Things::CLASSES, total: None, done: 199, next: EVERY };
        assert_eq!(pace.step(|| unreachable!("no line is due"), || Duration::from_secs(9)), None);
        let line = pace.step(|| Some(3000), || Duration::from_secs(10));
        assert_eq!(line.as_deref(), Some("201 of about 3000 classes, 20/s, 10 s"));
        pace.done += 99;
        let line = pace.step(|| Some(u64::MAX), || Duration::from_secs(30));
        assert_eq!(line.as_deref(), Some("301 of about 10^19 classes, 10/s, 30 s"));
    }

    #[test]
    fn the_clock_is_asked_rarely_once_things_go_by_the_thousand() {
        let mut pace = Pace { things: Things::SCHEDULES, total: None, done: 0, next: EVERY };
        let mut asked = 0;
        for _ in 0..100_000 {
            pace.step(
                || None,
                || {
                    asked += 1;
                    Duration::ZERO
                },
            );
        }
        assert_eq!(asked, 1000 + 990);
        let late: Vec<String> = (0..100).filter_map(|_| pace.step(|| None, || Duration::from_secs(30))).collect();
        assert_eq!(late, ["100100 schedules, 3337/s, 30 s"]);
    }
}
