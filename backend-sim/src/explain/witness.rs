//! [`Witness`]: a run in which a race changes a result.

use onesided::{Pe, Result};

use super::minimize::{Minimized, Runs};
use super::trial::Effort;
use crate::exception::{Exception, StepName};
use crate::execution::Executed;
use crate::explore::{Exceptions, InOrder, Named, Random};
use crate::pe::Sim;
use crate::race::Race;
use crate::schedule::Choices;
use crate::simulation::{Simulation, launched, with_pe};
use crate::verdict::VerdictKind;

/// Whether a race changes a result.
#[derive(Debug)]
#[non_exhaustive]
pub struct Witness<T> {
    /// What each PE returned in order.
    pub in_order: Vec<Option<T>>,
    /// A run with another result that this race explains: it differs from the run in order by the order of the race's two calls, or there is no
    /// other race. `None` if no run that was tried is one.
    pub run: Option<Minimized<T>>,
    /// Where there is none: a run with another result that this race does not explain. Another race may.
    pub other: Option<Minimized<T>>,
    /// Runs that were tried.
    pub tried: u64,
}

/// Random schedules that are tried.
const RANDOM: u64 = 200;
/// The most runs with another result that are looked at.
const OTHERS: usize = 8;

impl Simulation {
    /// Looks for a run in which a race changes what a PE returns, or how the program ends. The steps of each of the two calls are put
    /// last, and what follows from them; then schedules are drawn at random. A run counts if the result is another one because a step of the
    /// one call comes after a step of the other.
    ///
    /// ```
    /// use onesided::{Backend, Pe, Result};
    /// use onesided_sim::{Config, Effort, Simulation};
    ///
    /// fn program(pe: &Pe<impl Backend>) -> Result<u64> {
    ///     let word = pe.alloc_zeroed::<u64>(1)?;
    ///     if pe.my_pe() == 0 {
    ///         pe.host().p(&word, 7, 1)?;
    ///     }
    ///     pe.host().sync_all()?; // completes no put: a barrier would
    ///     let found = pe.read_one(&word)?;
    ///     pe.free(word)?;
    ///     Ok(found)
    /// }
    ///
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let run = simulation.run(program)?;
    /// let witness = simulation.witness(&run.verdict.races[0], Effort::LITTLE, program)?;
    /// assert_eq!(witness.in_order, [Some(0), Some(7)]);
    /// assert_eq!(witness.run.unwrap().run.results, [Some(0), Some(0)]);
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::explore`].
    pub fn witness<T: PartialEq>(
        &self,
        race: &Race,
        effort: Effort,
        program: impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Witness<T>> {
        let process = with_pe(program);
        let mut runs = Runs::new(self, effort, launched(&process), 0)?;
        let nothing = |tried, in_order, other| Ok(Witness { in_order, run: None, other, tried });
        let Some(usual) = runs.with(&mut InOrder)?.filter(|run| run.unseen.is_none()) else {
            return nothing(0, Vec::new(), None);
        };
        let (mut others, mut first_other) = (0, None);
        let last = [race.first, race.second].map(|access| Exceptions::with_last(access.at, access.pe));
        let random = (0..RANDOM).map(|index| Random::new(Random::nth_seed(0, index)));
        let attempts = last.into_iter().map(Attempt::Last).chain(random.map(Attempt::Random));
        for attempt in attempts {
            let tried = match attempt {
                Attempt::Last(chooser) => run_named(&mut runs, chooser)?,
                Attempt::Random(chooser) => run_named(&mut runs, chooser)?,
            };
            let Some((steps, other)) = tried else { break };
            if !differs(&other, &usual) {
                continue;
            }
            let alike = |run: &Executed<T>| {
                differs(run, &usual)
                    && run.verdict.kind.outcome() == other.verdict.kind.outcome()
                    && run.results == other.results
            };
            if let Some(run) = runs.reduce(&steps, alike)? {
                let (witness, other) = match is_the_only_one(race, &usual, &run) {
                    true => (Some(run), None),
                    false => (by_the_race(&mut runs, race, &run, alike)?, Some(run)),
                };
                if witness.is_some() {
                    return Ok(Witness { in_order: usual.results, run: witness, other: None, tried: runs.made });
                }
                first_other = first_other.or(other);
            }
            others += 1;
            if others == OTHERS {
                break;
            }
        }
        nothing(runs.made, usual.results, first_other)
    }
}

/// A way to look for another result.
enum Attempt {
    Last(Exceptions),
    Random(Random),
}

type Steps = Vec<StepName>;

fn run_named<T>(runs: &mut Runs<'_, T>, chooser: impl crate::explore::Chooser) -> Result<Option<(Steps, Executed<T>)>> {
    let mut named = Named::new(chooser);
    Ok(runs.with(&mut named)?.map(|executed| (named.steps, executed)))
}

/// Whether a run ends otherwise than another one that came to its end.
fn differs<T: PartialEq>(run: &Executed<T>, usual: &Executed<T>) -> bool {
    match run.verdict.kind {
        _ if run.unseen.is_some() => false,
        VerdictKind::Finished | VerdictKind::Race => run.results != usual.results,
        _ => run.verdict.kind.outcome() != usual.verdict.kind.outcome(),
    }
}

/// Whether nothing but this race can be why two runs end differently: all else is ordered in both. A plain access of a kernel is no step, so what
/// is done before or behind it need not be named.
fn is_the_only_one<T>(race: &Race, usual: &Executed<T>, other: &Minimized<T>) -> bool {
    let lines = |race: &Race| [race.first.at.min(race.second.at), race.first.at.max(race.second.at)];
    let all = usual.verdict.races.iter().chain(&other.run.verdict.races);
    other.exceptions.is_empty() && all.map(lines).all(|other| other == lines(race))
}

/// A run that ends like this one, and takes steps of the race's two calls in another order than the run in order does. The given run may differ by
/// another step instead, which a PE takes before or behind such a step.
fn by_the_race<T>(
    runs: &mut Runs<'_, T>,
    race: &Race,
    found: &Minimized<T>,
    alike: impl Fn(&Executed<T>) -> bool,
) -> Result<Option<Minimized<T>>> {
    let Choices::Exceptions(exceptions) = &found.run.schedule.choices else { return Ok(None) };
    let mut named = Named::new(Exceptions::naming_all(exceptions));
    if runs.with(&mut named)?.is_none() {
        return Ok(None);
    }
    let Named { chooser: Exceptions { words, .. }, steps, .. } = named;
    let lines = [race.first.at, race.second.at].map(|line| format!(" at {line} "));
    let is_of = |step: &StepName, line: usize| words.get(step).is_some_and(|text| text.contains(&lines[line]));
    let is_a_step = [0, 1].map(|line| steps.iter().any(|step| is_of(step, line)));
    for (number, &Exception { late, after }) in exceptions.iter().enumerate() {
        for (line, other) in [(0, 1), (1, 0)] {
            if !is_of(&late, line) && !is_of(&after, line) {
                continue;
            }
            // a plain access of a kernel is no step: nothing more can be said of it
            if is_of(&late, line) && is_of(&after, other) || !is_a_step[other] {
                return runs.recorded(exceptions.clone()).map(Some);
            }
            let place = |step: &StepName| steps.iter().position(|other| other == step);
            let instead = match is_of(&late, line) {
                true => {
                    let before = &steps[..place(&late).unwrap_or(steps.len())];
                    before.iter().rfind(|step| is_of(step, other)).map(|&after| Exception { late, after })
                }
                false => {
                    let behind = &steps[place(&after).map_or(steps.len(), |place| place + 1)..];
                    behind.iter().find(|step| is_of(step, other)).map(|&late| Exception { late, after })
                }
            };
            let Some(instead) = instead else { continue };
            let mut changed = exceptions.clone();
            changed[number] = instead;
            if runs.with(&mut Exceptions::new(&changed))?.is_some_and(|executed| alike(&executed)) {
                return runs.recorded(changed).map(Some);
            }
        }
    }
    Ok(None)
}
