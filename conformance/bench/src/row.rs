//! A row of the table: one number of ours, one of a peer's, and what ours should be.

use serde_json::{Value, json};

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Nanoseconds per event of a schedule.
    NsPerEvent,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// 2^20 bytes of resident memory.
    MiB,
    /// 10^9 bytes a second.
    GBPerS,
    /// Schedules a second.
    SchedulesPerS,
}

impl Unit {
    /// As the table prints it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::NsPerEvent => "ns/event",
            Unit::Ms => "ms",
            Unit::S => "s",
            Unit::MiB => "MiB",
            Unit::GBPerS => "GB/s",
            Unit::SchedulesPerS => "schedules/s",
        }
    }

    /// Whether a larger number is the better one.
    pub(super) fn more_is_better(self) -> bool {
        matches!(self, Unit::GBPerS | Unit::SchedulesPerS)
    }

    /// The better of two numbers.
    pub(super) fn better(self, a: f64, b: f64) -> f64 {
        if self.more_is_better() { a.max(b) } else { a.min(b) }
    }
}

/// What a measurement gave.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// A number.
    Value(f64),
    /// There is nothing to compare with.
    Absent,
    /// It could not be measured here: something is absent on this machine.
    NotRun(String),
    /// It should have been measured, and went wrong.
    Failed(String),
}

impl Cell {
    /// The number, if there is one.
    pub(super) fn value(&self) -> Option<f64> {
        if let Cell::Value(value) = self { Some(*value) } else { None }
    }

    /// Why there is no number, if there should be one.
    pub(super) fn why_not(&self) -> Option<String> {
        match self {
            Cell::Value(_) | Cell::Absent => None,
            Cell::NotRun(why) => Some(format!("not run: {why}")),
            Cell::Failed(why) => Some(format!("failed: {why}")),
        }
    }

    /// The same number in another unit.
    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Cell {
        if let Cell::Value(value) = self { Cell::Value(change(value)) } else { self }
    }
}

impl From<onesided::Result<f64>> for Cell {
    fn from(result: onesided::Result<f64>) -> Cell {
        result.map_or_else(|error| Cell::Failed(error.to_string()), Cell::Value)
    }
}

/// What ours should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// At most so much.
    AtMost(f64),
    /// At least so much.
    AtLeast(f64),
    /// At least so many times as good as the peer.
    Ratio(f64),
    /// So many times the peer's number: at most, or at least where more is better.
    TimesPeer(f64),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) ours: Cell,
    /// `None` where there is no peer.
    pub(super) peer_name: Option<String>,
    pub(super) peer: Cell,
    /// Ours divided by the peer's, where that is more than the quotient of the two numbers: each may be the median of
    /// many, and this the median of their quotients.
    pub(super) times: Option<f64>,
    pub(super) target: Option<Target>,
}

impl Row {
    /// A row without peer and target.
    pub(super) fn new(name: impl Into<String>, unit: Unit, ours: Cell) -> Row {
        Row { name: name.into(), unit, ours, peer_name: None, peer: Cell::Absent, times: None, target: None }
    }

    /// Puts a peer's number beside.
    pub(super) fn beside(mut self, name: impl Into<String>, peer: Cell) -> Row {
        self.peer_name = Some(name.into());
        self.peer = peer;
        self
    }

    /// Says what ours should be.
    pub(super) fn target(mut self, target: Target) -> Row {
        self.target = Some(target);
        self
    }

    /// How many times as good ours is as the peer: above 1, ours is faster or smaller, whatever the unit.
    pub(super) fn ratio(&self) -> Option<f64> {
        let times = self.times_peer()?;
        Some(if self.unit.more_is_better() { times } else { times.recip() })
    }

    /// How many times the peer's number ours is.
    pub(super) fn times_peer(&self) -> Option<f64> {
        self.times.or_else(|| Some(self.ours.value()? / self.peer.value()?))
    }

    /// Whether the target is met; `None` where there is none, or nothing to judge by.
    pub(super) fn met(&self) -> Option<bool> {
        match self.target? {
            Target::AtMost(most) => Some(self.ours.value()? <= most),
            Target::AtLeast(least) => Some(self.ours.value()? >= least),
            Target::Ratio(least) => Some(self.ratio()? >= least),
            Target::TimesPeer(least) if self.unit.more_is_better() => Some(self.times_peer()? >= least),
            Target::TimesPeer(most) => Some(self.times_peer()? <= most),
        }
    }

    /// The target in words.
    pub(super) fn target_text(&self) -> Option<String> {
        Some(match self.target? {
            Target::AtMost(most) => format!("<= {most} {}", self.unit.name()),
            Target::AtLeast(least) => format!(">= {least} {}", self.unit.name()),
            Target::Ratio(least) => format!("ratio >= {least}"),
            Target::TimesPeer(least) if self.unit.more_is_better() => format!(">= {least} of the peer"),
            Target::TimesPeer(most) => format!("<= {most} of the peer"),
        })
    }

    /// As it is written to a file. Where a number is missing, a field more says why.
    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({
            "name": self.name,
            "unit": self.unit.name(),
            "ours": self.ours.value(),
            "peer_name": self.peer_name,
            "peer": self.peer.value(),
            "ratio": self.ratio(),
            "target": self.target_text(),
            "met": self.met(),
        });
        for (field, cell) in [("ours_missing", &self.ours), ("peer_missing", &self.peer)] {
            if let Some(why) = cell.why_not() {
                json[field] = why.into();
            }
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_is_better_whatever_the_unit() {
        let fast = Row::new("fast", Unit::Ns, Cell::Value(10.0)).beside("slow", Cell::Value(30.0));
        let wide = Row::new("wide", Unit::GBPerS, Cell::Value(30.0)).beside("narrow", Cell::Value(10.0));
        assert_eq!([fast.ratio(), wide.ratio()], [Some(3.0), Some(3.0)]);
        assert_eq!(wide.clone().target(Target::AtLeast(30.0)).met(), Some(true));
        assert_eq!(wide.clone().target(Target::AtLeast(31.0)).met(), Some(false));
        assert_eq!(fast.target(Target::Ratio(5.0)).met(), Some(false));
        assert_eq!(wide.target(Target::Ratio(2.0)).met(), Some(true));
    }

    #[test]
    fn times_the_peer_has_the_direction_of_the_unit() {
        let judged = |unit, ours, times| {
            let row = Row::new("x", unit, Cell::Value(ours)).beside("y", Cell::Value(100.0));
            let row = row.target(Target::TimesPeer(times));
            (row.met(), row.target_text().unwrap())
        };
        assert_eq!(judged(Unit::Ns, 105.0, 1.05), (Some(true), "<= 1.05 of the peer".into()));
        assert_eq!(judged(Unit::Ns, 106.0, 1.05), (Some(false), "<= 1.05 of the peer".into()));
        assert_eq!(judged(Unit::GBPerS, 99.0, 0.99), (Some(true), ">= 0.99 of the peer".into()));
        assert_eq!(judged(Unit::GBPerS, 98.0, 0.99), (Some(false), ">= 0.99 of the peer".into()));
    }

    #[test]
    fn a_quotient_of_its_own_is_what_is_judged() {
        let mut row = Row::new("x", Unit::Ns, Cell::Value(120.0)).beside("y", Cell::Value(100.0));
        row = row.target(Target::TimesPeer(1.05));
        row.times = Some(1.04);
        assert_eq!((row.times_peer(), row.ratio(), row.met()), (Some(1.04), Some(1.0 / 1.04), Some(true)));
        row.unit = Unit::GBPerS;
        assert_eq!((row.ratio(), row.met()), (Some(1.04), Some(false)));
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let row = Row::new("x", Unit::S, Cell::NotRun("no clock".into())).target(Target::AtMost(1.0));
        assert_eq!((row.met(), row.ratio()), (None, None));
        let json = row.to_json();
        assert_eq!(json["ours_missing"], "not run: no clock");
        assert_eq!(json["target"], "<= 1 s");
        assert!(json["peer_name"].is_null() && json.get("peer_missing").is_none());
    }
}
