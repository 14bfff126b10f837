//! Which pairs of steps of a run can be taken the other way round, and how.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::{Access, Awaited, BlockedWait, Object, ObjectKind, Past, Step, Test, Touch};

/// A step of the run.
#[derive(Debug)]
pub(crate) struct Event {
    key: u64,
    pub(crate) touches: Arc<[Access]>,
    /// What the bytes that it writes held before.
    before: Vec<(Object, Box<[u8]>)>,
    /// Steps that come before it in every schedule.
    past: Past,
    /// Steps that come before what it does to memory.
    meets: Past,
    /// For the end of a wait: what it waited for.
    test: Option<Awaited>,
    /// Earlier steps of which one at least must have been taken, if there are any.
    enabled_by: Vec<usize>,
    /// Whether it is taken before all others in any case.
    forced: bool,
}

impl Default for Event {
    fn default() -> Event {
        Event {
            key: 0,
            touches: Arc::from([]),
            before: Vec::new(),
            past: Past::default(),
            meets: Past::default(),
            test: None,
            enabled_by: Vec::new(),
            forced: false,
        }
    }
}

impl Event {
    pub(crate) fn new(key: u64, step: &Step, forced: bool) -> Event {
        Event {
            key,
            touches: Arc::from(&step.touched[..]),
            before: step.before.clone(),
            past: step.past.clone(),
            meets: step.meets.clone(),
            test: step.test,
            enabled_by: step.enabled_by.clone(),
            forced,
        }
    }

    /// What it touches.
    pub(super) fn touched(&self) -> &[Access] {
        &self.touches
    }

    /// The same, shared.
    pub(super) fn touches(&self) -> Arc<[Access]> {
        Arc::clone(&self.touches)
    }

    /// Bytes that only this event takes.
    pub(crate) fn memory(&self) -> usize {
        let before: usize = self.before.iter().map(|(object, bytes)| size_of_val(object) + bytes.len()).sum();
        let enabled_by = size_of_val(&self.enabled_by[..]);
        size_of_val(self) + before + enabled_by + self.past.memory() + self.meets.memory()
    }

    /// What the variable of a wait held before the step; `None` if that is not known.
    fn value_before(&self, test: &Test) -> Option<u64> {
        self.before.iter().find_map(|(object, bytes)| test.value_in(object, bytes))
    }
}

/// The steps of a run, and their order. A step is a number: the run's steps first, then waits that did not end in it, as if
/// they had ended behind it.
#[derive(Debug)]
pub(crate) struct Order {
    run: Vec<Event>,
    blocked: Vec<Event>,
    /// For each step, those that come before it: because every schedule has them so, or because the two do not commute.
    before: Vec<Past>,
    /// For each step, earlier ones that do not commute with it.
    conflicts: Vec<Vec<usize>>,
}

/// The end of a wait.
#[derive(Debug)]
struct Wait {
    /// What comes before it in every schedule.
    past: Past,
    /// Steps that add to its variable, and how much.
    adds: Vec<(usize, u64)>,
    /// Steps that do not commute with it.
    conflicts: Past,
}

/// A sequence of steps that takes two steps of a run the other way round.
#[derive(Debug)]
pub(crate) struct Reversal {
    /// It begins in place of this step.
    pub(crate) before: usize,
    pub(crate) steps: Vec<usize>,
    /// Steps that come before the last of them. A wait that ends earlier than in the run comes after fewer steps than there, and so does an
    /// arrival that does not come last.
    pub(crate) last: Past,
}

/// Steps in place of others, and what comes before the last of them. `is_reversed`: that one is taken earlier than in the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instead<'a> {
    pub(crate) steps: &'a [usize],
    pub(crate) last: &'a Past,
    pub(crate) is_reversed: bool,
}

impl Order {
    /// The steps.
    pub(super) fn into_steps(self) -> Vec<Event> {
        self.run
    }

    pub(crate) fn of(run: Vec<Event>, blocked: &[BlockedWait]) -> Order {
        let blocked = blocked.iter().map(|wait| Event {
            key: wait.key,
            touches: Arc::from([wait.access]),
            before: Vec::new(),
            past: wait.past.clone(),
            meets: Past::default(),
            test: Some(wait.test),
            enabled_by: Vec::new(),
            forced: false,
        });
        let mut order = Order { run, blocked: blocked.collect(), before: Vec::new(), conflicts: Vec::new() };
        let mut touched: BTreeMap<ObjectKind, Vec<(usize, Access)>> = BTreeMap::new();
        for step in 0..order.run.len() + order.blocked.len() {
            let mut conflicts = Vec::new();
            let meets = order.closure(&order.event(step).meets);
            for access in order.event(step).touches.iter() {
                let others = touched.entry(access.object.kind()).or_default();
                let is_met = |other: usize| matches!(access.object, Object::Memory { .. }) && meets.contains(other);
                let conflicting = others.iter().filter(|(other, theirs)| access.conflicts(theirs) && !is_met(*other));
                conflicts.extend(conflicting.map(|&(other, _)| other));
            }
            conflicts.sort_unstable();
            conflicts.dedup();
            if step < order.run.len() {
                for access in order.run[step].touches.iter() {
                    touched.entry(access.object.kind()).or_default().push((step, *access));
                }
            }
            let mut before = order.closure(&order.event(step).past);
            if step < order.run.len() {
                // a wait that did not end comes after nothing but what comes before its beginning
                for &other in conflicts.iter().rev() {
                    // mostly the last comes after all others already, and with a step comes all that is before it
                    if !before.contains(other) {
                        order.add(&mut before, other);
                    }
                }
            }
            order.before.push(before);
            order.conflicts.push(conflicts);
        }
        order
    }

    fn event(&self, step: usize) -> &Event {
        match step.checked_sub(self.run.len()) {
            None => &self.run[step],
            Some(blocked) => &self.blocked[blocked],
        }
    }

    fn add(&self, past: &mut Past, step: usize) {
        past.add(step);
        past.join(&self.before[step]);
    }

    /// A past, with everything that comes before its steps.
    fn closure(&self, past: &Past) -> Past {
        // a step that is the last to enter a collective is among those that it meets
        past.closure(|step| self.before.get(step))
    }

    pub(crate) fn key(&self, step: usize) -> u64 {
        self.event(step).key
    }

    /// Steps that come before it in the run.
    pub(crate) fn before(&self, step: usize) -> &Past {
        &self.before[step]
    }

    /// What a step of the run touches.
    pub(super) fn touched(&self, step: usize) -> &[Access] {
        &self.run[step].touches
    }

    /// Every way to take two steps the other way round.
    pub(crate) fn reversals(&self) -> impl Iterator<Item = Reversal> {
        (0..self.before.len()).flat_map(move |second| {
            let firsts = self.conflicts[second].iter().copied();
            let wait = self.wait(second);
            firsts.filter_map(move |first| {
                if !self.is_reversible(first, second, wait.as_ref()) {
                    return None;
                }
                let steps: Vec<usize> = self.behind(first, second).chain([second]).collect();
                let last = match &wait {
                    Some(wait) => self.before_at_the_end(wait, &steps),
                    None if self.is_last_behind(first, second) => self.before_refused(second, &steps),
                    None => self.before[second].clone(),
                };
                Some(Reversal { before: first, steps, last })
            })
        })
    }

    /// What comes before the end of a wait at the end of a sequence.
    fn before_at_the_end(&self, wait: &Wait, steps: &[usize]) -> Past {
        let mut before = wait.past.clone();
        steps.iter().filter(|&&step| wait.conflicts.contains(step)).for_each(|&step| self.add(&mut before, step));
        before
    }

    /// Whether a step is an arrival that comes last, and would not without another one.
    fn is_last_behind(&self, first: usize, second: usize) -> bool {
        let mut own = self.event(second).touches.iter();
        own.any(|access| self.event(first).touches.iter().any(|other| access.is_last_behind(other)))
    }

    /// What comes before an arrival at the end of a sequence, where it does not come last: no other one of its kind.
    fn before_refused(&self, second: usize, steps: &[usize]) -> Past {
        let event = self.event(second);
        let mut before = self.closure(&event.past);
        let conflicts = |&&step: &&usize| {
            let others = &self.event(step).touches;
            let conflicts = |access: &Access, other: &Access| access.conflicts(other) && !access.is_last_behind(other);
            event.touches.iter().any(|access| others.iter().any(|other| conflicts(access, other)))
        };
        steps.iter().filter(|&&step| step != second).filter(conflicts).for_each(|&step| self.add(&mut before, step));
        before
    }

    /// All steps behind the first that do not come after it, without the second.
    fn behind(&self, first: usize, second: usize) -> impl Iterator<Item = usize> {
        let free = (first + 1..self.run.len())
            .filter(move |&step| !self.before[step].contains(first) && !self.run[step].forced);
        free.filter(move |&step| step != second)
    }

    /// How much a step adds to the variable of a wait.
    fn added(&self, step: usize, test: &Test) -> u64 {
        self.event(step).touches.iter().map(|access| test.added_by(access)).fold(0, u64::wrapping_add)
    }

    /// What is to be known of the end of a wait, if the step is one.
    fn wait(&self, step: usize) -> Option<Wait> {
        let event = self.event(step);
        let others = (0..self.run.len()).filter(|&other| other != step);
        let adds = match event.test.as_ref()? {
            Awaited::Word(test) => {
                let added = others.clone().filter(|&other| !self.run[other].forced);
                added.map(|other| (other, self.added(other, test))).filter(|(_, by)| *by != 0).collect()
            }
            Awaited::Phase { .. } => Vec::new(),
        };
        let mut conflicts = Past::default();
        let do_not_commute = |&other: &usize| {
            let theirs = &self.run[other].touches;
            event.touches.iter().any(|access| theirs.iter().any(|other| access.conflicts(other)))
        };
        others.filter(do_not_commute).for_each(|other| conflicts.add(other));
        Some(Wait { past: self.closure(&event.past), adds, conflicts })
    }

    fn is_reversible(&self, first: usize, second: usize, wait: Option<&Wait>) -> bool {
        let event = self.event(second);
        let Some(Wait { past, adds, .. }) = wait else {
            return !event.past.contains(first) && self.is_next(first, second) && self.is_enabled_without(first, event);
        };
        if past.contains(first) {
            return false;
        }
        match event.test {
            // a wait may end before any update since it began, if its condition held then
            Some(Awaited::Word(test)) => self.without(first, second, &test).is_none_or(|(update, value)| {
                let behind = adds.iter().filter(|&&(step, _)| step > update && !self.before[step].contains(first));
                test.holds_after(value, behind.map(|(_, by)| *by).fold(0, u64::wrapping_add))
            }),
            // a look may come before any arrival in the phase behind the one that it sees
            Some(Awaited::Phase { mbarrier, is_odd }) => {
                let mut touched = self.event(first).touches.iter();
                let before = touched.find_map(|access| access.phase_before(&mbarrier));
                before.is_some_and(|before| before != is_odd)
            }
            None => unreachable!("the step ends a wait"),
        }
    }

    /// What the variable of a wait holds without a step and all that comes after it: its value before the first update among those. Returns that
    /// update, too. `None`: that is not known.
    fn without(&self, first: usize, second: usize, test: &Test) -> Option<(usize, u64)> {
        let variable = Object::memory(test.pe, test.variable);
        let updates = |step: usize| {
            let touches = &self.event(step).touches;
            touches.iter().any(|access| access.touch != Touch::Read && access.object.overlaps(&variable))
        };
        let is_left_out = |step: usize| step == first || step == second || self.before[step].contains(first);
        let update = (first..=second.min(self.run.len() - 1)).find(|&step| is_left_out(step) && updates(step))?;
        Some((update, self.run[update].value_before(test)?))
    }

    /// Whether a step can be taken without another one, and without what comes after that.
    fn is_enabled_without(&self, first: usize, event: &Event) -> bool {
        let other = |&step: &usize| step != first && !self.before[step].contains(first);
        event.enabled_by.is_empty() || event.enabled_by.iter().any(other)
    }

    /// Whether nothing comes between two steps that do not commute.
    fn is_next(&self, first: usize, second: usize) -> bool {
        let between = |&step: &usize| step != first && self.before[step].contains(first);
        !self.before[second].iter().any(|step| between(&step))
    }

    /// What a step of a sequence touches there. An arrival that is taken earlier may come last.
    pub(crate) fn touches_in(&self, Instead { steps, is_reversed, .. }: Instead<'_>, at: usize) -> Arc<[Access]> {
        let touches = &self.event(steps[at]).touches;
        match is_reversed && at + 1 == steps.len() && touches.iter().any(Access::is_refused) {
            true => touches.iter().map(|access| access.answered()).collect(),
            false => Arc::clone(touches),
        }
    }

    /// Whether a step can come first in a sequence that is equivalent to `steps`, or that `steps` is a part of. `last`: what comes
    /// before the last of them.
    pub(crate) fn is_weak_initial(&self, key: u64, touches: Option<&[Access]>, instead: Instead<'_>) -> bool {
        let Instead { steps, last, .. } = instead;
        match steps.iter().position(|&step| self.key(step) == key) {
            Some(at) => {
                let before = if at + 1 == steps.len() { last } else { &self.before[steps[at]] };
                !steps[..at].iter().any(|&earlier| before.contains(earlier))
            }
            None => touches.is_some_and(|touches| {
                let changes = |at: usize| {
                    let others = self.touches_in(instead, at);
                    touches.iter().any(|one| others.iter().any(|other| one.changes(other) || other.changes(one)))
                };
                !(0..steps.len()).any(changes)
            }),
        }
    }
}
