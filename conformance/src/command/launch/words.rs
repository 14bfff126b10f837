//! [`Words`]: what PEs write to standard error. When a job fails, each of its PEs often writes the same error. It is printed
//! once.
//!
//! A line is printed at once, unless another PE wrote the same line before. Then it is held back for a moment. If its PE fails,
//! the line is left out, and the last line of the command names the PE. Otherwise the line is printed late.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a repeated line is held back.
pub(super) const HOLD: Duration = Duration::from_secs(1);
/// How many printed lines are remembered.
const KNOWN: usize = 256;

/// What the PEs of a job write.
#[derive(Debug)]
pub(super) struct Words {
    /// Lines that were printed, with their PEs.
    known: VecDeque<(usize, String)>,
    /// Lines that are held back, by PE.
    held: Vec<VecDeque<Held>>,
    /// PEs whose lines were left out.
    same: Vec<usize>,
}

#[derive(Debug)]
struct Held {
    until: Instant,
    text: String,
}

impl Words {
    pub(super) fn new(pes: usize) -> Words {
        Words { known: VecDeque::new(), held: (0..pes).map(|_| VecDeque::new()).collect(), same: Vec::new() }
    }

    /// Takes a line. Returns it if it is to be printed now.
    pub(super) fn hear(&mut self, pe: usize, text: String, now: Instant) -> Option<String> {
        // Lines behind a held line are held too, so that they stay in order.
        if self.is_known(pe, &text) || !self.held[pe].is_empty() {
            self.held[pe].push_back(Held { until: now + HOLD, text });
            return None;
        }
        self.remember(pe, &text);
        Some(text)
    }

    /// The lines whose time is up.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(usize, String)> {
        let mut due = Vec::new();
        for pe in 0..self.held.len() {
            while let Some(held) = self.held[pe].pop_front_if(|held| held.until <= now) {
                self.remember(pe, &held.text);
                due.push((pe, held.text));
            }
        }
        due
    }

    /// When [`due`](Self::due) will return a line.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.iter().filter_map(|held| Some(held.front()?.until)).min()
    }

    /// Notes that a PE ended. Returns those of its lines that are to be printed.
    pub(super) fn ended(&mut self, pe: usize, is_well: bool) -> Vec<String> {
        let held = std::mem::take(&mut self.held[pe]).into_iter().map(|held| held.text);
        // Other PEs may have written a line since it was held.
        let (repeated, others): (Vec<String>, Vec<String>) = held.partition(|text| !is_well && self.is_known(pe, text));
        if !repeated.is_empty() {
            self.same.push(pe);
        }
        others.iter().for_each(|text| self.remember(pe, text));
        others
    }

    /// The lines that are still held when all PEs have ended. Their own children may have written them.
    pub(super) fn rest(&mut self) -> Vec<(usize, String)> {
        let held =
            self.held.iter_mut().enumerate().flat_map(|(pe, held)| held.drain(..).map(move |held| (pe, held.text)));
        held.collect()
    }

    /// The PEs whose lines were left out, because another PE wrote them too.
    pub(super) fn same(&self) -> Vec<usize> {
        let mut same = self.same.clone();
        same.sort_unstable();
        same
    }

    /// Whether another PE wrote this line. Empty lines do not count.
    fn is_known(&self, pe: usize, text: &str) -> bool {
        !text.trim().is_empty()
            && self.known.iter().any(|(other, known)| *other != pe && is_same((pe, text), (*other, known)))
    }

    fn remember(&mut self, pe: usize, text: &str) {
        if self.known.len() == KNOWN {
            self.known.pop_front();
        }
        self.known.push_back((pe, text.to_string()));
    }
}

/// Whether two lines are the same, apart from the PE's own number.
pub(super) fn is_same((one, text): (usize, &str), (other, known): (usize, &str)) -> bool {
    without_number(one, text) == without_number(other, known)
}

/// A line without its PE's own number. So `PE 3 failed` of PE 3 equals `PE 0 failed` of PE 0.
fn without_number(pe: usize, text: &str) -> String {
    let name = format!("PE {pe}");
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        plain += before;
        plain += if behind.starts_with(|next: char| next.is_ascii_digit()) { &name } else { "PE" };
        rest = behind;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_string())
    }

    #[test]
    fn an_error_that_all_write_is_printed_once() {
        let (mut words, now) = (Words::new(12), Instant::now());
        assert_eq!(words.hear(1, "PE 1 failed: no GPU".to_string(), now), some("PE 1 failed: no GPU"));
        assert_eq!(words.hear(1, "see the doctor".to_string(), now), some("see the doctor"));
        for pe in [0, 11] {
            assert_eq!(words.hear(pe, format!("PE {pe} failed: no GPU"), now), None);
            assert_eq!(words.hear(pe, "see the doctor".to_string(), now), None);
        }
        // One that also has words of its own.
        assert_eq!(words.hear(2, "PE 2 failed: no GPU".to_string(), now), None);
        assert_eq!(words.hear(2, "and no library".to_string(), now), None);
        for (pe, left) in [(1, vec![]), (11, vec![]), (0, vec![]), (2, vec!["and no library".to_string()])] {
            assert_eq!(words.ended(pe, false), left);
        }
        assert_eq!((words.same(), words.next_due()), (vec![0, 2, 11], None));
    }

    #[test]
    fn errors_that_come_at_the_same_time_are_printed_once_too() {
        let (mut words, now) = (Words::new(2), Instant::now());
        assert_eq!(words.hear(0, "PE 0 failed".to_string(), now), some("PE 0 failed"));
        assert_eq!(words.hear(1, "PE 1 failed".to_string(), now), None);
        assert_eq!(words.hear(1, "see the doctor".to_string(), now), None); // nobody wrote that yet
        assert_eq!(words.hear(0, "see the doctor".to_string(), now), some("see the doctor"));
        assert!(words.ended(1, false).is_empty() && words.same() == [1]);
    }

    #[test]
    fn a_line_that_no_failure_follows_is_printed_a_little_late() {
        let (mut words, now) = (Words::new(3), Instant::now());
        assert_eq!(words.hear(0, "step 1".to_string(), now), some("step 1"));
        assert_eq!(words.hear(1, "step 1".to_string(), now), None);
        assert_eq!(words.hear(1, "of PE 1".to_string(), now + HOLD / 2), None); // its lines stay in order
        assert_eq!(words.hear(2, "step 1".to_string(), now), None);
        assert_eq!((words.due(now), words.next_due()), (vec![], Some(now + HOLD)));
        assert_eq!(words.due(now + HOLD), [(1, "step 1".to_string()), (2, "step 1".to_string())]);
        assert_eq!(words.ended(1, true), ["of PE 1"]);
        assert!(words.same().is_empty());
    }

    #[test]
    fn a_pe_that_ends_well_loses_no_line() {
        let (mut words, now) = (Words::new(2), Instant::now());
        words.hear(0, "a warning".to_string(), now);
        assert_eq!(words.hear(1, "a warning".to_string(), now), None);
        assert_eq!(words.ended(1, true), ["a warning"]);
        assert!(words.same().is_empty());
        // After its end its children may go on.
        words.hear(1, "a warning".to_string(), now);
        assert_eq!(words.rest(), [(1, "a warning".to_string())]);
    }

    #[test]
    fn a_pe_may_repeat_itself_and_empty_lines_are_everybodys() {
        let (mut words, now) = (Words::new(2), Instant::now());
        for (pe, text) in [(0, "again"), (0, "again"), (0, ""), (1, "")] {
            assert_eq!(words.hear(pe, text.to_string(), now), some(text));
        }
    }

    #[test]
    fn only_its_own_number_makes_no_difference() {
        assert_eq!(without_number(1, "PE 1 of 3: PE 12 waits, PE 1"), "PE of 3: PE 12 waits, PE");
        assert_ne!(without_number(1, "PE 1 waits for PE 0"), without_number(0, "PE 0 waits for PE 1"));
    }
}
