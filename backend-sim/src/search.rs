//! A search over schedules: what it visits, how far it is, and what it has shown.

use onesided::count;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::{Config, Races};
use crate::limits::Bound;
use crate::lint::LintKind;
use crate::simulation::Run;
use crate::verdict::Unseen;

/// Which schedules to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who starts a search must say what each found")]
pub enum Explore {
    /// So many random ones, from a seed.
    Random {
        /// How many.
        schedules: u64,
        /// Where the series starts.
        seed: u64,
        /// How they are drawn.
        strategy: Strategy,
    },
    /// Every one, up to equivalence. The search begins again, and visits some schedules twice, when a run shows that an assumption was
    /// wrong: about a word, a poll, or quiets in kernels. [`Explored`] counts from there. If the assumption was
    /// about quiets, earlier runs (their `schedule.quiet` is not the configuration's) can have values that the program cannot have.
    All {
        /// The most to begin, redundant ones included.
        limit: u64,
    },
}

impl Explore {
    /// So many random schedules, drawn by [`Strategy::Plain`].
    pub const fn random(schedules: u64, seed: u64) -> Explore {
        Explore::Random { schedules, seed, strategy: Strategy::Plain }
    }
}

/// How random schedules are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Each possible step may be next. Each schedule has its own bias towards agents or transfers.
    #[default]
    Plain,
    /// Partial order sampling (Yuan, Yang, Gu: CAV 2018). Each pending step has a random priority, and the highest goes first;
    /// steps that depend on it are drawn again. Classes of equivalent schedules come up more evenly than by `Plain`, which favours
    /// classes of many schedules. Each step costs time in proportion to the number of pending ones.
    Pos,
    /// Probabilistic concurrency testing (Burckhardt and others: ASPLOS 2010). Agents and the PEs that transfers go to have random
    /// priorities, which change at `depth - 1` random steps. If a bug needs `depth` ordering constraints, each schedule
    /// finds it with a probability of at least 1/(n · k^(depth-1)), with n agents and PEs and k steps. After every 256 steps the highest priority becomes the
    /// lowest, so that no agent polls for ever. So the bound does not hold for longer schedules.
    Pct {
        /// Ordering constraints that a bug may need, from 1.
        depth: u32,
    },
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Plain => f.write_str("plain"),
            Strategy::Pos => f.write_str("pos"),
            Strategy::Pct { depth } => write!(f, "pct:{depth}"),
        }
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        match name {
            "plain" => Ok(Strategy::Plain),
            "pos" => Ok(Strategy::Pos),
            "pct" => Ok(Strategy::Pct { depth: DEPTH }),
            _ => {
                let depth = name.strip_prefix("pct:").and_then(|depth| depth.parse().ok());
                let depth = depth.filter(|depth| (1..=MOST_DEPTH).contains(depth));
                depth.map(|depth| Strategy::Pct { depth }).ok_or_else(|| {
                    format!(
                        "{name:?} is not a way to draw schedules; there are plain, pos and pct, which can have a depth from 1 to \
                         {MOST_DEPTH}: pct:{DEPTH}"
                    )
                })
            }
        }
    }
}

/// The depth of [`Strategy::Pct`] where none is given. Most bugs need no more (ASPLOS 2010).
const DEPTH: u32 = 3;
/// The largest depth. Each further depth adds a change of priorities, and among so many changes one has no effect.
pub(crate) const MOST_DEPTH: u32 = 1000;

/// What an exploration did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Schedules visited; no two of an exhaustive search are equivalent.
    pub schedules: u64,
    /// Further schedules of an exhaustive search that were begun and found equivalent to visited ones.
    pub redundant: u64,
    /// Of the schedules visited, those that ended with a finding.
    pub findings: u64,
    /// Of the schedules visited, those in which accesses raced, whether that is a finding or not ([`Races::Note`]).
    pub racy: u64,
    /// Schedules whose end was not seen: the run was given up, or the other PEs were given up after a finding, or a step was not possible behind an
    /// intended race.
    pub given_up: u64,
    /// Of those, the ones in which only polls were left ([`VerdictKind::PollsBounded`](crate::VerdictKind::PollsBounded)); the
    /// others reached the limit of steps or instructions.
    pub polls_bounded: u64,
    /// Whether an exhaustive search left out polls that would have read nothing new. It is complete then for loops that only poll, and
    /// not for those that count how often.
    pub polls: bool,
    /// Whether PTX lets a strong load of a kernel find an older value than it has found in a schedule ([`LintKind::StaleLoad`]), where that was looked for: in
    /// exhaustive searches, under [`Config::strict`], and with [`Loads::Oldest`](crate::Loads::Oldest). Or a run has made so many strong accesses that the last ones were not looked at
    /// ([`Verdict::lints_cut`](crate::Verdict::lints_cut)). A proof supposes then that it does not.
    pub stale_loads: bool,
    /// Whether an exhaustive search visited every schedule, and none was given up.
    pub complete: bool,
    /// Why the search ended early; `None` if it visited every schedule.
    pub bound: Option<Bound>,
    /// Different classes of equivalent schedules among random ones, if they were counted: see
    /// [`Simulation::count_classes`](crate::Simulation::count_classes).
    pub classes: Option<u64>,
    /// How many schedules there are up to equivalence, of an exhaustive search: the number itself if every one was visited,
    /// else an estimate, which is mostly too low.
    pub estimated: Option<u64>,
    /// Steps taken in all.
    pub steps: u64,
}

/// How far a search is, for whoever watches. See [`Simulation::outlook`](crate::Simulation::outlook).
#[derive(Debug, Default)]
pub struct Outlook {
    schedules: AtomicU64,
    estimated: AtomicU64,
}

/// A look at an [`Outlook`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// As [`Explored::schedules`], until now.
    pub schedules: u64,
    /// As [`Explored::estimated`], until now.
    pub estimated: Option<u64>,
}

impl Outlook {
    /// How far the search is now, or was at its end.
    pub fn look(&self) -> Searched {
        let (schedules, estimated) = (self.schedules.load(Ordering::Relaxed), self.estimated.load(Ordering::Relaxed));
        Searched { schedules, estimated: (estimated > 0).then_some(estimated) }
    }

    pub(crate) fn tell(&self, explored: &Explored) {
        self.schedules.store(explored.schedules, Ordering::Relaxed);
        self.estimated.store(explored.estimated.unwrap_or(0), Ordering::Relaxed);
    }
}

/// The findings that a proof excludes. "nothing else" stands for all other
/// verdicts, and for the program's own checks.
const ABSENT: &str = "no deadlock, nothing else";
/// The same, where races are looked for.
const NO_RACE_EITHER: &str = "no race, no deadlock, nothing else";

/// What a proof supposes where a program polls.
pub(crate) const UNLESS_POLLS_ARE_COUNTED: &str = ", if no loop counts more than 32 polls";
/// What a proof supposes where a kernel's strong load can miss a write.
const UNLESS_LOADS_ARE_STALE: &str = ", if the strong accesses of each thread keep their order (lint stale-load)";
/// What a proof supposes by [`Config::values_matter`].
const UNLESS_VALUES_MATTER: &str = ", if no value that signal_wait_until returns matters";

impl Explored {
    pub(crate) fn count<T>(&mut self, run: &Run<T>) {
        self.schedules += 1;
        self.given_up += u64::from(run.unseen.is_some());
        self.polls_bounded += u64::from(run.unseen == Some(Unseen::Polls));
        self.findings += u64::from(run.has_finding());
        self.racy += u64::from(!run.verdict.races.is_empty());
        self.stale_loads |= run.verdict.lints_cut;
        self.stale_loads |= run.verdict.lints.iter().any(|lint| lint.kind == LintKind::StaleLoad && !lint.is_shown);
        self.steps += run.steps;
    }

    /// An estimated number of schedules, as a person reads it. Of more than 10^12, only the power of ten is known at all. An estimate that does
    /// not fit into 64 bits is the largest number that does.
    ///
    /// ```
    /// use onesided_sim::Explored;
    /// assert_eq!([4096, u64::MAX].map(Explored::in_words), ["4096", "10^19"]);
    /// ```
    pub fn in_words(number: u64) -> String {
        match number.checked_ilog10() {
            Some(power) if power >= 12 => format!("10^{power}"),
            _ => number.to_string(),
        }
    }

    /// What an exhaustive search on this cluster has shown, in a sentence that can be quoted. It names what bounds the proof.
    ///
    /// ```
    /// use onesided::Backend;
    /// use onesided_sim::{Config, Explore, Simulation};
    /// use std::ops::ControlFlow;
    ///
    /// let mut simulation = Simulation::new(Config::pes(3))?;
    /// let count = |pe: &onesided::Pe<onesided_sim::Sim>| {
    ///     let counter = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.host().atomic_fetch_inc(&counter, 0)?;
    ///     pe.free(counter)
    /// };
    /// let explored = simulation.explore(Explore::All { limit: 1000 }, count, |_| ControlFlow::Continue(()))?;
    /// assert_eq!(
    ///     explored.proof(simulation.config()),
    ///     "proved for 3 PEs under spec with up to 4 pieces a transfer: 6 classes, no race, no deadlock, nothing else"
    /// );
    /// let bounded = simulation.explore(Explore::All { limit: 4 }, count, |_| ControlFlow::Continue(()))?;
    /// assert_eq!(
    ///     bounded.proof(simulation.config()),
    ///     "not proved for 3 PEs under spec with up to 4 pieces a transfer: nothing wrong in 4 classes of about 6, \
    ///      bounded by 4 schedules"
    /// );
    /// # Ok::<(), onesided::Error>(())
    /// ```
    pub fn proof(&self, config: &Config) -> String {
        let Explored { schedules, findings, given_up, polls_bounded, complete, bound, estimated, .. } = *self;
        let cluster = config.in_words();
        let classes = count(schedules, "class");
        if complete && findings == 0 {
            let absent = match (config.races, self.racy) {
                (Races::Ignore, _) => ABSENT.to_string(),
                (_, 0) => NO_RACE_EITHER.to_string(),
                (_, racy) => format!("{racy} of them with races, {ABSENT}"),
            };
            let values = if config.values_matter { "" } else { UNLESS_VALUES_MATTER };
            let polls = if self.polls { UNLESS_POLLS_ARE_COUNTED } else { "" };
            let stale = if self.stale_loads { UNLESS_LOADS_ARE_STALE } else { "" };
            return format!("proved for {cluster}: {classes}, {absent}{values}{polls}{stale}");
        }
        let (what, seen) = match findings {
            0 => ("not proved", "nothing wrong in ".to_string()),
            n => ("fails", format!("{n} of ")),
        };
        let more = estimated.filter(|&estimate| estimate > schedules);
        let of = more.map(|estimate| format!(" of about {}", Explored::in_words(estimate))).unwrap_or_default();
        let given_up = match given_up - polls_bounded {
            0 => String::new(),
            n => format!(", {n} given up at a limit of steps or instructions"),
        };
        let polls = match polls_bounded {
            0 => String::new(),
            n => format!(", polls bounded in {n}"),
        };
        let bound = bound.map(|bound| format!(", {bound}")).unwrap_or_default();
        format!("{what} for {cluster}: {seen}{classes}{of}{given_up}{polls}{bound}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_is_not_a_proof_says_why() {
        let config = Config { nodes: 2, gpus: Some(2), pieces: 1, ..Config::default() };
        let cluster = "for 4 PEs on 2 nodes with 2 GPUs under spec with up to 1 piece a transfer";
        let base = Explored { schedules: 7, estimated: Some(7), ..Explored::default() };
        let given_up = Explored { given_up: 2, ..base };
        assert_eq!(
            given_up.proof(&config),
            format!("not proved {cluster}: nothing wrong in 7 classes, 2 given up at a limit of steps or instructions")
        );
        let found = Explored { findings: 2, complete: true, ..base };
        assert_eq!(found.proof(&config), format!("fails {cluster}: 2 of 7 classes"));
        let bounded = Explored {
            schedules: 1,
            findings: 1,
            estimated: Some(30),
            bound: Some(Bound::Visitor),
            ..Explored::default()
        };
        assert_eq!(bounded.proof(&config), format!("fails {cluster}: 1 of 1 class of about 30, ended there"));
        let noted = Explored { racy: 3, complete: true, ..base };
        let note = Config { races: Races::Note, ..config.clone() };
        assert_eq!(
            noted.proof(&note),
            format!("proved {cluster}: 7 classes, 3 of them with races, no deadlock, nothing else")
        );
        let none = Explored { racy: 0, ..noted };
        assert_eq!(none.proof(&note), none.proof(&config));
        let endless = Explored { estimated: Some(u64::MAX), findings: 0, bound: Some(Bound::Stopped), ..bounded };
        assert_eq!(
            endless.proof(&config),
            format!("not proved {cluster}: nothing wrong in 1 class of about 10^19, ended by you")
        );
    }
}
