//! [`OddRun`]: a run whose outcome is not sequentially consistent, and the first value that shows it.

use std::collections::BTreeMap;
use std::fmt;

use onesided::backend::{Effect, Moves, Op};
use onesided::{At, Pe, Result};

use super::minimize::{LONG, Runs};
use super::trial::Effort;
use crate::pe::Sim;
use crate::robust::{Odd, Outcome, Robustness};
use crate::simulation::{Run, Simulation, launched, with_pe};
use crate::trace::{Event, EventKind};
use crate::verdict::VerdictKind;

/// A run with an outcome that is not sequentially consistent.
#[derive(Debug)]
#[non_exhaustive]
pub struct OddRun<T> {
    /// The run, recorded.
    pub run: Run<T>,
    /// How it differs from the run in order, in words: each step that comes later, and the one that it comes after. Empty where
    /// no such list was found.
    pub exceptions: Vec<[String; 2]>,
    /// The first value that differs from the nearest run that is sequentially consistent, if one differs.
    pub difference: Option<Difference>,
}

/// A call that found another value than in the nearest run that is sequentially consistent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The PE that called.
    pub pe: usize,
    /// The call.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// What it found.
    pub found: String,
    /// What it finds in the other run.
    pub usual: String,
}

/// So many sequentially consistent outcomes are compared with.
const NEAREST: usize = 32;

impl Simulation {
    /// Runs the first outcome that is not sequentially consistent again, as a run that differs little from the one in order, and looks
    /// for the first value that is not that of the nearest run that is sequentially consistent. `None`: there is no such outcome.
    ///
    /// ```
    /// use onesided::{Backend, Pe, Result};
    /// use onesided_sim::{Config, Effort, Simulation, robustness};
    ///
    /// /// Each PE writes to the other, and reads its own word.
    /// fn program(pe: &Pe<impl Backend>) -> Result<u64> {
    ///     let word = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.host().p(&word, 1, 1 - pe.my_pe())?;
    ///     let seen = pe.read_one(&word)?;
    ///     pe.free(word)?;
    ///     Ok(seen)
    /// }
    ///
    /// let found = robustness(Config::pes(2), 1000, program)?;
    /// let odd = Simulation::new(Config::pes(2))?.odd_run(&found, Effort::LITTLE, program)?.unwrap();
    /// assert_eq!(odd.run.results, [Some(0), Some(0)]);
    /// assert!(odd.difference.unwrap().to_string().contains(" found [0]; "));
    /// # Ok::<(), onesided::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Simulation::replay`].
    pub fn odd_run<T: Ord>(
        &self,
        found: &Robustness<T>,
        effort: Effort,
        program: impl Fn(&Pe<Sim>) -> Result<T>,
    ) -> Result<Option<OddRun<T>>> {
        let Some(odd) = found.odd.first() else { return Ok(None) };
        let process = with_pe(program);
        let mut own = Simulation::new_for(found.config.clone(), &self.pulse())?;
        own.stop.clone_from(&self.stop);
        own.set_budget(self.budget);
        let mut runs = Runs::new(&own, effort, launched(&process), LONG)?;
        let minimized = match runs.steps_of(&odd.schedule.choices)? {
            Some(steps) => runs.reduce(&steps, |run| odd.is_that_of(&run.verdict.kind, &run.results))?,
            None => None,
        };
        let (run, exceptions) = match minimized {
            Some(minimized) => (minimized.run, minimized.exceptions),
            None => (own.record(&odd.schedule.choices, &launched(&process))?, Vec::new()),
        };
        let mut usual = Simulation::new_for(found.config.sequentially_consistent(), &self.pulse())?;
        let mut best: Option<(usize, Difference)> = None;
        for (outcome, schedule) in nearest(odd, &found.consistent) {
            let other = usual.record(&schedule.choices, &launched(&process))?;
            let pes = differing(&run, outcome, found.config.pes);
            let first = pes.into_iter().find_map(|pe| difference(pe, &run, &other));
            if let Some(first) = first.filter(|(agreed, _)| best.as_ref().is_none_or(|(most, _)| agreed > most)) {
                best = Some(first);
            }
        }
        Ok(Some(OddRun { run, exceptions, difference: best.map(|(_, difference)| difference) }))
    }
}

/// The outcomes with the fewest other results.
fn nearest<'a, T: Ord, S>(
    odd: &Odd<T>,
    consistent: &'a BTreeMap<Outcome<T>, S>,
) -> impl Iterator<Item = (&'a Outcome<T>, &'a S)> {
    let distance = |(_, results): &Outcome<T>| match results.len() == odd.results.len() {
        true => results.iter().zip(&odd.results).filter(|(one, other)| one != other).count(),
        false => usize::MAX,
    };
    let mut all: Vec<_> = consistent.iter().map(|(outcome, schedule)| (distance(outcome), outcome, schedule)).collect();
    all.sort_by_key(|(distance, ..)| *distance);
    let least = all.first().map(|(distance, ..)| *distance);
    all.into_iter()
        .take_while(move |(distance, ..)| Some(*distance) == least)
        .take(NEAREST)
        .map(|(_, outcome, schedule)| (outcome, schedule))
}

/// The PEs to compare: the one that failed, or those that returned something else; all of them where neither says more.
fn differing<T: Ord>(run: &Run<T>, (_, results): &Outcome<T>, pes: usize) -> Vec<usize> {
    match run.verdict.kind {
        VerdictKind::Failed { pe, .. } | VerdictKind::Panicked { pe, .. } => vec![pe],
        VerdictKind::Finished if results.len() == pes => {
            (0..pes).filter(|&pe| run.results.get(pe) != results.get(pe)).collect()
        }
        _ => (0..pes).collect(),
    }
}

/// The first value of a PE that is another one in the other run, and how many before it are the same.
fn difference<T>(pe: usize, run: &Run<T>, other: &Run<T>) -> Option<(usize, Difference)> {
    let [found, usual] = [run, other].map(|run| values(run.trace.as_deref().unwrap_or_default(), pe));
    let agreed = found.iter().zip(&usual).take_while(|(found, usual)| found == usual).count();
    let (Value { call, at, text: found }, usual) = (found.get(agreed)?, usual.get(agreed)?);
    let is_one_call = (*call, *at) == (usual.call, usual.at);
    is_one_call.then(|| {
        let (found, usual) = (found.clone(), usual.text.clone());
        (agreed, Difference { pe, call, at: *at, found, usual })
    })
}

/// What a call of a PE found.
#[derive(Debug, PartialEq)]
struct Value {
    call: &'static str,
    at: At,
    text: String,
}

/// What a PE's reads, waits, gets and fetching atomics found, in the order of its calls.
fn values(trace: &[Event], pe: usize) -> Vec<Value> {
    let mut calls: BTreeMap<(usize, u16), Value> = BTreeMap::new();
    for (number, event) in trace.iter().enumerate().filter(|(_, event)| event.pe as usize == pe) {
        let (of, Some(moved)) = (event.of.unwrap_or(number), &event.moved) else { continue };
        let op = trace[of].op();
        let (piece, text) = match event.kind {
            EventKind::Read { piece, .. } => (piece, moved.to_string()),
            EventKind::Returned { variable: Some(_), .. } => (0, moved.to_string()),
            EventKind::Op { op, .. } if matches!(op.effect(), Effect::FetchSignal { .. }) => (0, moved.to_string()),
            EventKind::Delivered { piece, .. } => match op.map(Op::effect) {
                Some(Effect::Transfer(transfer)) => match (transfer.moves, moved.before_in_words()) {
                    (Moves::Get { .. } | Moves::Fetch, _) => (piece, moved.to_string()),
                    (Moves::Amo { .. }, Some(before)) => (piece, before),
                    _ => continue,
                },
                _ => continue,
            },
            _ => continue,
        };
        let call = match &trace[of].kind {
            EventKind::Call(name) => *name,
            _ => op.map_or("read", Op::name),
        };
        calls.insert((of, piece), Value { call, at: event.at, text });
    }
    let mut values: Vec<(usize, Value)> = Vec::new();
    for ((of, _), value) in calls {
        match values.last_mut().filter(|(last, _)| *last == of) {
            Some((_, whole)) => {
                whole.text.truncate(whole.text.len() - 1); // one list of all pieces
                whole.text += &format!(", {}", value.text.trim_start_matches('['));
            }
            None => values.push((of, value)),
        }
    }
    values.into_iter().map(|(_, value)| value).collect()
}

/// `PE 1's read at ring.rs:7 found [1, 0]; in the nearest run with complete operations it finds [1, 1]`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { pe, call, at, found, usual } = self;
        write!(
            f,
            "PE {pe}'s {call} at {at} found {found}; in the nearest run with complete operations it finds {usual}"
        )
    }
}
