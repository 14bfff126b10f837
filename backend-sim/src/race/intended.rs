//! Races that a program means: accesses are marked, with a reason, by [`Pe::intended_race`](onesided::Pe::intended_race).

use std::collections::BTreeMap;
use std::fmt;

use onesided::At;
use onesided::backend::Intended;

use super::Detector;
use crate::machine::AgentId;
use crate::verdict::Verdict;

/// A mark of the program, and what it stood for in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IntendedRace {
    /// Why the accesses may race.
    pub reason: &'static str,
    /// The line of the mark.
    pub at: At,
    /// Pairs of calls that raced, of which one is marked by it.
    pub races: u64,
}

/// The marks of a run, by number; 0 is none.
pub(super) type Marks = Vec<Intended>;

impl Detector {
    /// From now on, what an agent does is marked, or is not. Returns the mark until now.
    pub(crate) fn intend(&mut self, agent: AgentId, mark: Option<Intended>) -> Option<Intended> {
        if !self.is_on() {
            return None;
        }
        let number = match mark {
            None => 0,
            Some(mark) => match self.marks.iter().position(|known| *known == mark) {
                Some(index) => index as u32 + 1,
                None => {
                    self.marks.push(mark);
                    self.marks.len() as u32
                }
            },
        };
        let before = std::mem::replace(&mut self.agents[agent].mark, number);
        before.checked_sub(1).map(|index| self.marks[index as usize])
    }

    /// The number of an agent's mark, to be given to what it enqueues.
    #[inline]
    pub(crate) fn mark(&self, agent: AgentId) -> u32 {
        if self.on { self.agents[agent].mark } else { 0 }
    }

    /// An agent, a stream, does what was enqueued under a mark.
    #[inline]
    pub(crate) fn set_mark(&mut self, agent: AgentId, mark: u32) {
        if self.on {
            self.agents[agent].mark = mark;
        }
    }

    /// Whether any race is marked.
    pub(crate) fn has_intended(&self) -> bool {
        self.on && self.found.marked(&self.sites).next().is_some()
    }

    /// The marks of the run that ended, by line.
    pub(crate) fn intended(&self) -> Vec<IntendedRace> {
        let mut marks: Vec<IntendedRace> =
            self.marks.iter().map(|&Intended { reason, at }| IntendedRace { reason, at, races: 0 }).collect();
        for mark in self.found.marked(&self.sites) {
            marks[mark as usize - 1].races += 1;
        }
        marks.sort_by_key(|mark| (mark.at, mark.reason));
        marks
    }
}

/// The marks of several runs, with the most races that each stood for in one of them.
///
/// ```
/// use onesided_sim::{Config, IntendedRaces, Simulation};
/// let run = Simulation::new(Config::pes(2))?.run(|pe| {
///     let word = pe.alloc_zeroed::<u32>(1)?;
///     pe.intended_race("any PE may win", |pe| pe.host().p(&word, 1, 0))?;
///     pe.free(word)
/// })?;
/// let mut marks = IntendedRaces::default();
/// marks.add(&run.verdict);
/// assert!(marks.to_string().starts_with("1 race is marked as intended: any PE may win ("));
/// # Ok::<(), onesided::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntendedRaces(BTreeMap<(At, &'static str), u64>);

impl IntendedRaces {
    /// Adds those of a run.
    pub fn add(&mut self, verdict: &Verdict) {
        for &IntendedRace { reason, at, races } in &verdict.intended {
            let most = self.0.entry((at, reason)).or_insert(0);
            *most = races.max(*most);
        }
    }

    /// Adds those of other runs.
    pub fn join(&mut self, other: &IntendedRaces) {
        for (&mark, &races) in &other.0 {
            let most = self.0.entry(mark).or_insert(0);
            *most = races.max(*most);
        }
    }

    /// Whether the program has marked nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each mark, by line.
    pub fn marks(&self) -> impl Iterator<Item = IntendedRace> + '_ {
        self.0.iter().map(|(&(at, reason), &races)| IntendedRace { reason, at, races })
    }
}

/// `2 races are marked as intended: any PE may win (app.rs:12)`; a mark that never raced has a line of its own.
impl fmt::Display for IntendedRaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (raced, idle): (Vec<IntendedRace>, Vec<IntendedRace>) = self.marks().partition(|mark| mark.races > 0);
        let mut lines = Vec::new();
        if !raced.is_empty() {
            let races: u64 = raced.iter().map(|mark| mark.races).sum();
            let are = if races == 1 { "race is" } else { "races are" };
            let reasons: Vec<String> = raced.iter().map(|mark| format!("{} ({})", mark.reason, mark.at)).collect();
            lines.push(format!("{races} {are} marked as intended: {}", reasons.join(", ")));
        }
        let idle = idle.iter().map(|mark| format!("what is marked at {} has not raced: {}", mark.at, mark.reason));
        lines.extend(idle);
        f.write_str(&lines.join("\n"))
    }
}
