//! What bounds a search: [`Budget`], [`Bound`], and when each is reached.

use onesided::count;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a search may use besides its number of schedules. A search that has used it up ends, and keeps what it has found.
///
/// ```
/// use onesided::{Backend, Pe, Result};
/// use onesided_sim::{Bound, Budget, Config, Explore, Simulation};
/// use std::ops::ControlFlow;
///
/// /// Eight PEs add to one counter, in 8! orders.
/// fn program(pe: &Pe<impl Backend>) -> Result<u64> {
///     let counter = pe.alloc_zeroed::<u64>(1)?;
///     let before = pe.host().atomic_fetch_inc(&counter, 0)?;
///     pe.free(counter)?;
///     Ok(before)
/// }
///
/// let mut simulation = Simulation::new(Config::pes(8))?;
/// simulation.set_budget(Budget { memory: Some(4 << 10), ..Budget::default() });
/// let explored = simulation.explore(Explore::All { limit: 1_000_000 }, program, |_| ControlFlow::Continue(()))?;
/// assert_eq!((explored.complete, explored.bound), (false, Some(Bound::Memory(4 << 10))));
/// # Ok::<(), onesided::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Time. The search looks at the clock after each schedule, and while a kernel runs. Other schedules are completed before
    /// the search ends. It bounds a single run, too, while a kernel runs: [`VerdictKind::Stopped`](crate::VerdictKind::Stopped).
    pub time: Option<Duration>,
    /// Bytes for what an exhaustive search remembers: its path and the tree of what is still to be visited. The search counts
    /// them itself, so the same search ends at the same schedule. A random search remembers the classes that it counts.
    pub memory: Option<usize>,
}

/// Why a search ended before it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// As many schedules were begun as [`Explore`](crate::Explore) says.
    Schedules(u64),
    /// [`Budget::time`] was over.
    Time(Duration),
    /// What the search remembered took more than [`Budget::memory`].
    Memory(usize),
    /// The flag of [`Simulation::stop_when`](crate::Simulation::stop_when) was set.
    Stopped,
    /// The visitor broke.
    Visitor,
}

/// What can end a search that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) schedules: u64,
    pub(crate) budget: Budget,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Arc<AtomicBool>>,
}

impl Limits {
    /// What is left of the budget for a search within this one.
    pub(crate) fn left(&self) -> Budget {
        Budget { time: self.budget.time.map(|time| time.saturating_sub(self.start.elapsed())), ..self.budget }
    }

    /// What ends a run of the search.
    pub(crate) fn deadline(&self) -> Deadline {
        let Limits { budget, start, stop, .. } = self;
        let time = budget.time.and_then(|time| Some((start.checked_add(time)?, time)));
        Deadline { stop: stop.clone(), time }
    }

    /// What ends the search after so many schedules, if anything does. `memory` is asked only where it matters.
    pub(crate) fn reached(&self, begun: u64, memory: impl FnOnce() -> usize) -> Option<Bound> {
        let Limits { schedules, budget, start, stop } = self;
        if stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some(Bound::Stopped);
        }
        if begun >= *schedules {
            return Some(Bound::Schedules(*schedules));
        }
        if let Some(time) = budget.time.filter(|time| start.elapsed() >= *time) {
            return Some(Bound::Time(time));
        }
        budget.memory.filter(|most| is_due(begun) && memory() > *most).map(Bound::Memory)
    }
}

/// What ends a run from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadline {
    stop: Option<Arc<AtomicBool>>,
    time: Option<(Instant, Duration)>,
}

impl Deadline {
    /// What ends the run now, if anything does.
    pub(crate) fn over(&self) -> Option<Bound> {
        if self.stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some(Bound::Stopped);
        }
        self.time.filter(|(end, _)| Instant::now() >= *end).map(|(_, time)| Bound::Time(time))
    }
}

/// Whether to walk through the whole tree after so many schedules: often at first, later so rarely that it costs nothing.
pub(crate) fn is_due(begun: u64) -> bool {
    begun < 64 || begun.is_multiple_of(64)
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Schedules(n) => write!(f, "bounded by {}", count(*n, "schedule")),
            Bound::Time(time) => write!(f, "bounded by {} s", time.as_secs_f64()),
            Bound::Memory(bytes) => write!(f, "bounded by {}", size(*bytes)),
            Bound::Stopped => f.write_str("ended by you"),
            Bound::Visitor => f.write_str("ended there"),
        }
    }
}

/// A number of bytes, as a person writes it.
fn size(bytes: usize) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(|| count(bytes, "byte"), |(unit, name)| format!("{} {name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(schedules: u64, budget: Budget) -> Limits {
        Limits { schedules, budget, start: Instant::now(), stop: None }
    }

    #[test]
    fn each_bound_ends_a_search() {
        let free = limits(9, Budget::default());
        assert_eq!(free.reached(8, || unreachable!("memory is not bounded")), None);
        assert_eq!(free.reached(9, || 0), Some(Bound::Schedules(9)));

        let over = limits(9, Budget { time: Some(Duration::ZERO), memory: None });
        assert_eq!(over.reached(1, || 0), Some(Bound::Time(Duration::ZERO)));

        let small = limits(9000, Budget { time: None, memory: Some(100) });
        assert_eq!([100, 101].map(|bytes| small.reached(3, || bytes)), [None, Some(Bound::Memory(100))]);
        assert_eq!([127, 128].map(|begun| small.reached(begun, || 101)), [None, Some(Bound::Memory(100))]);

        let flag = Arc::new(AtomicBool::new(false));
        let stopped = Limits { stop: Some(Arc::clone(&flag)), ..limits(9, Budget::default()) };
        assert_eq!(stopped.reached(1, || 0), None);
        flag.store(true, Ordering::Relaxed);
        assert_eq!(stopped.reached(9, || 0), Some(Bound::Stopped));
    }

    #[test]
    fn bounds_read_well() {
        let bounds = [
            Bound::Schedules(1),
            Bound::Schedules(20),
            Bound::Time(Duration::from_millis(1500)),
            Bound::Memory(8 << 30),
            Bound::Memory(3 << 10),
            Bound::Memory(1025),
            Bound::Stopped,
        ];
        let words = [
            "bounded by 1 schedule",
            "bounded by 20 schedules",
            "bounded by 1.5 s",
            "bounded by 8 GiB",
            "bounded by 3 KiB",
            "bounded by 1025 bytes",
            "ended by you",
        ];
        assert_eq!(bounds.map(|bound| bound.to_string()), words);
    }
}
