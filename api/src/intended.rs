//! Races that a program means.

use crate::at::At;
use crate::backend::{Backend, Intended};
use crate::pe::Pe;

/// # Races that are meant
impl<B: Backend> Pe<B> {
    /// Marks the host's accesses in `accesses` as intended to race: its reads and writes, and the operations that it issues or
    /// enqueues there. A kernel that is launched there is marked as a whole. A kernel can mark a part of its own accesses by
    /// `ONESIDED_INTENDED_RACE("reason")` of `<onesided.h>`, which every CUDA C++ source can include. That mark holds from
    /// there to the end of the enclosing braces.
    ///
    /// A race is no finding if one of its sides is marked. Summaries count such races with their reasons, and name a mark whose
    /// accesses did not race. A mark orders nothing: every order of the marked accesses is explored. A plain access of a kernel
    /// is a step of its own only if it is marked. So mark both sides to see all outcomes.
    ///
    /// # One-sided
    /// Local. On backends that do not look for races it does nothing, and costs nothing.
    ///
    /// ```
    /// # use onesided_sim::{Config, Simulation};
    /// # let run = Simulation::new(Config::pes(3))?.run(|pe| {
    /// let winner = pe.alloc_zeroed::<u32>(1)?;
    /// let me = pe.my_pe() as u32;
    /// // whoever comes last
    /// pe.intended_race("any PE may win", |pe| pe.host().p(&winner, me + 1, 0))?;
    /// pe.host().barrier_all()?;
    /// let name = pe.read_one(&winner)?;
    /// pe.free(winner)
    /// # })?;
    /// # assert!(run.is_ok(), "{}", run.verdict);
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn intended_race<T>(&self, reason: &'static str, accesses: impl FnOnce(&Pe<B>) -> T) -> T {
        let at = self.backend.place(At::caller());
        let outer = self.backend.intends(Some(Intended { reason, at }));
        let _until_the_end = Mark { backend: &self.backend, outer };
        accesses(self)
    }
}

/// Brings the mark around this one back, also if the accesses panic.
struct Mark<'a, B: Backend> {
    backend: &'a B,
    outer: Option<Intended>,
}

impl<B: Backend> Drop for Mark<'_, B> {
    #[inline]
    fn drop(&mut self) {
        self.backend.intends(self.outer);
    }
}
