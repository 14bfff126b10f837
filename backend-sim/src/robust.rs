//! Robustness: whether delays add outcomes. A program is robust if its profile allows no outcome beyond those of sequential consistency.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use onesided::{Pe, Result, count};

use crate::config::{Config, Races};
use crate::limits::{Bound, Budget, Limits};
use crate::pe::Sim;
use crate::schedule::Schedule;
use crate::search::{Explore, Explored};
use crate::simulation::{Run, Simulation};
use crate::verdict::VerdictKind;

/// Whether every outcome of a program under its profile is one of sequential consistency.
///
/// An outcome is what the PEs return, or, if a run does not finish, how it ends. An outcome is *sequentially consistent* if some
/// order of the PEs and streams leads to it in which every operation is complete before its host or stream goes on. A put, signal or
/// atomic has then arrived, with its signal behind its data. Parts of collectives still move beside their members, as in every
/// profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Robustness<T> {
    /// The cluster and profile.
    pub config: Config,
    /// Different outcomes under the profile.
    pub outcomes: usize,
    /// Those that are not sequentially consistent.
    pub odd: Vec<Odd<T>>,
    /// The search under the profile, and the search with every operation complete at once. The second one is made first. If a bound ends
    /// it, nothing can be said, and the other one is not made.
    pub searches: [Explored; 2],
    /// The outcomes with every operation complete at once.
    pub(crate) consistent: BTreeMap<Outcome<T>, Schedule>,
}

/// An outcome that is not sequentially consistent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Odd<T> {
    /// What the PEs returned, if they did.
    pub results: Vec<Option<T>>,
    /// How the run ended, in a few words: `finished`, `deadlock`.
    pub ended: String,
    /// A schedule that leads to it, to be replayed with [`Races::Note`]. [`Simulation::odd_run`] finds a simpler one.
    pub schedule: Schedule,
}

/// How a run ended, in a few words, and what the PEs returned.
pub(crate) type Outcome<T> = (String, Vec<Option<T>>);

/// Compares all outcomes of a program under its profile with those of sequential consistency. Each of the two searches begins at
/// most `limit` schedules, on one core: [`Cores::robustness`](crate::Cores::robustness) uses several. A race is no finding here: a
/// program that is robust can have races.
///
/// ```
/// use onesided_sim::{Config, robustness};
/// let program = |fence: bool| {
///     move |pe: &onesided::Pe<onesided_sim::Sim>| {
///         let words = pe.alloc_zeroed::<u64>(2)?;
///         let mut seen = Vec::new();
///         if pe.my_pe() == 0 {
///             pe.host().p(words.at(0), 1, 1)?;
///             if fence {
///                 pe.host().fence()?;
///             }
///             pe.host().p(words.at(1), 1, 1)?;
///         } else {
///             seen = vec![pe.read_one(words.at(1))?, pe.read_one(words.at(0))?];
///         }
///         pe.free(words)?;
///         Ok(seen)
///     }
/// };
/// let fenced = robustness(Config::pes(2), 1000, program(true))?;
/// assert!(fenced.to_string().ends_with(": 3 outcomes, all sequentially consistent"));
/// let not = robustness(Config::pes(2), 1000, program(false))?;
/// assert_eq!(not.odd[0].results[1], Some(vec![1, 0]));
/// # Ok::<(), onesided::Error>(())
/// ```
///
/// # Errors
/// As [`Simulation::explore`].
#[track_caller]
pub fn robustness<T: Ord + Clone>(
    cluster: impl Into<Config>,
    limit: u64,
    program: impl Fn(&Pe<Sim>) -> Result<T>,
) -> Result<Robustness<T>> {
    compare(cluster.into(), Budget::default(), |config, _, visit| {
        Simulation::new(config)?.explore(Explore::All { limit }, &program, visit)
    })
}

/// Called with each run of a search. It breaks to end the search.
pub(crate) type Visitor<'a, T> = &'a mut dyn FnMut(&Run<T>) -> ControlFlow<()>;

/// Compares the outcomes that `explore` finds on both clusters. The searches share the time of the budget.
pub(crate) fn compare<T: Ord + Clone>(
    cluster: Config,
    budget: Budget,
    explore: impl Fn(Config, Budget, Visitor<'_, T>) -> Result<Explored>,
) -> Result<Robustness<T>> {
    let config = Config { races: Races::Note, strict: false, ..cluster };
    let limits = Limits { schedules: u64::MAX, budget, start: Instant::now(), stop: None };
    let (consistent, sequential) = outcomes(|visit| {
        let config = config.sequentially_consistent();
        explore(config, budget, visit)
    })?;
    if !sequential.complete {
        let not_made = Explored { bound: sequential.bound, ..Explored::default() };
        return Ok(Robustness { odd: Vec::new(), outcomes: 0, searches: [not_made, sequential], consistent, config });
    }
    let (found, mut profile) = outcomes(|visit| explore(config.clone(), limits.left(), visit))?;
    if let (Some(Bound::Time(_)), Some(time)) = (profile.bound, budget.time) {
        profile.bound = Some(Bound::Time(time)); // of both
    }
    let odd = found.iter().filter(|(outcome, _)| !consistent.contains_key(*outcome));
    let odd = odd.map(|((ended, results), schedule)| Odd {
        results: results.clone(),
        ended: ended.clone(),
        schedule: schedule.clone(),
    });
    Ok(Robustness { odd: odd.collect(), outcomes: found.len(), searches: [profile, sequential], consistent, config })
}

/// Every outcome, with the first schedule that leads to it.
fn outcomes<T: Ord + Clone>(
    explore: impl FnOnce(Visitor<'_, T>) -> Result<Explored>,
) -> Result<(BTreeMap<Outcome<T>, Schedule>, Explored)> {
    let mut found = BTreeMap::new();
    let explored = explore(&mut |run| {
        if run.is_given_up() {
            return ControlFlow::Continue(()); // nobody knows how it ends
        }
        let results = match run.verdict.kind {
            VerdictKind::Finished => run.results.clone(),
            _ => Vec::new(),
        };
        found.entry((run.verdict.kind.outcome(), results)).or_insert_with(|| run.schedule.clone());
        ControlFlow::Continue(())
    })?;
    Ok((found, explored))
}

impl<T: PartialEq> Odd<T> {
    /// Whether a run has this outcome.
    pub(crate) fn is_that_of(&self, kind: &VerdictKind, results: &[Option<T>]) -> bool {
        self.ended == kind.outcome() && (!matches!(kind, VerdictKind::Finished) || self.results == results)
    }
}

impl<T> Robustness<T> {
    /// Whether both searches were complete. If not, the outcomes in `odd` are odd, but there may be others.
    pub fn is_complete(&self) -> bool {
        self.searches.iter().all(|explored| explored.complete)
    }

    /// Whether every outcome is sequentially consistent.
    pub fn is_robust(&self) -> bool {
        self.is_complete() && self.odd.is_empty()
    }
}

/// `robust for 2 PEs under spec with …: 3 outcomes, all sequentially consistent`.
impl<T> fmt::Display for Robustness<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Robustness { config, outcomes, odd, searches, .. } = self;
        let cluster = config.in_words();
        let outcomes_in_words = count(*outcomes, "outcome");
        let unseen = searches.iter().find(|explored| !explored.complete).map(|search| {
            let bound = search.bound.map(|bound| format!(", {bound}")).unwrap_or_default();
            format!("not every schedule was seen{bound}")
        });
        if let (Some(unseen), []) = (&unseen, &odd[..]) {
            return write!(f, "not known for {cluster}: {unseen}");
        }
        let and = unseen.map(|unseen| format!("; {unseen}")).unwrap_or_default();
        match (odd.len(), *outcomes) {
            (0, 1) => write!(f, "robust for {cluster}: 1 outcome, which is sequentially consistent"),
            (0, _) => write!(f, "robust for {cluster}: {outcomes_in_words}, all sequentially consistent"),
            (n, _) => {
                let are = if n == 1 { "is" } else { "are" };
                write!(f, "not robust for {cluster}: {n} of {outcomes_in_words} {are} not sequentially consistent{and}")
            }
        }
    }
}
