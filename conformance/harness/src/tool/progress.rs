//! A progress bar on standard error, where that is a terminal.

use crate::say;
use indicatif::{ProgressBar, ProgressStyle};

/// How far a long work is. Silent and free of cost where nobody looks.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar for so many `things`, or a count of them where nobody knows how many there are.
    pub fn new(total: Option<u64>, things: &str) -> Progress {
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if bar.is_hidden() {
            return Progress(None);
        }
        let template = match total {
            Some(_) => format!("{{wide_bar}} {{pos}} of {{len}} {things}, {{elapsed}}"),
            None => format!("{{spinner}} {{pos}} {things}, {{elapsed}}"),
        };
        bar.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress(Some(bar))
    }

    /// One more is done.
    pub fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }

    /// Prints a line without tearing the bar.
    pub fn println(&self, line: &str) {
        match &self.0 {
            Some(bar) => bar.suspend(|| say!("{line}")),
            None => say!("{line}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
