//! Collectives: what all members of a team do together, from the host or on a stream.

use crate::at::At;
use crate::backend::Backend;
use crate::buffer::{Span, Symmetric};
use crate::element::{DType, Element};
use crate::error::{Error, Result};
use crate::issue::Issue;
use crate::op::Op;
use crate::operator::ReduceOp;
use crate::team::{Predefined, Team};

/// # Collectives
///
/// Every member of the team calls the same collectives in the same order, one at a time per team, with the same
/// element type, count, operator, root and symmetric objects. Members that disagree are a bug of the whole program:
/// the simulator's verdict names the field and every member's line; hardware hangs or corrupts memory. On streams, a team's
/// collectives must also run in the order in which the PE calls them, whatever stream each is on; those of the world include
/// allocating and freeing. Between GPUs, libnvshmem hangs otherwise.
///
/// **There is no synchronization on entry.** A peer may write my `dst` as soon as *that peer* has entered, even before
/// I have: `dst` must be free on every member before any member enters. A member returns when its own `dst` is
/// complete and its own `src` reusable, which says nothing about the others.
///
/// NVSHMEM documentation, "Collective Communication".
impl<B: Backend> Issue<'_, B> {
    /// Completes everything this scope issued (as [`quiet`](Issue::quiet)), then waits for every member's arrival
    /// (`nvshmem_barrier`).
    ///
    /// # Collective
    /// Over the team. From the host it does not wait for streams.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Predefined, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// pe.host().barrier(pe.team(Predefined::Node).expect("every PE is on a node"))?;
    /// # Ok(()) }
    /// ```
    #[inline]
    #[track_caller]
    pub fn barrier(&self, team: &Team) -> Result<()> {
        self.issue(Op::Barrier { team: team.id() }, At::caller()).map(drop)
    }

    /// [`Issue::barrier`] over all PEs (`nvshmem_barrier_all`).
    ///
    /// # Collective
    /// Over all PEs.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// pe.host().barrier_all()?;
    /// # Ok(()) }
    /// ```
    #[inline]
    #[track_caller]
    pub fn barrier_all(&self) -> Result<()> {
        self.issue(Op::Barrier { team: Predefined::World.id() }, At::caller()).map(drop)
    }

    /// Waits for every member's arrival, and completes *no* transfer (`nvshmem_team_sync`).
    ///
    /// # Collective
    /// Over the team.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// pe.host().quiet()?;
    /// pe.host().sync(pe.world())?; // both together are a barrier
    /// # Ok(()) }
    /// ```
    #[inline]
    #[track_caller]
    pub fn sync(&self, team: &Team) -> Result<()> {
        self.issue(Op::Sync { team: team.id() }, At::caller()).map(drop)
    }

    /// [`Issue::sync`] over all PEs (`nvshmem_sync_all`).
    ///
    /// # Collective
    /// Over all PEs.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// pe.host().sync_all()?;
    /// # Ok(()) }
    /// ```
    #[inline]
    #[track_caller]
    pub fn sync_all(&self) -> Result<()> {
        self.issue(Op::Sync { team: Predefined::World.id() }, At::caller()).map(drop)
    }

    /// Copies the root's `src` to `dst` on every member, the root included (`nvshmem_broadcast`).
    ///
    /// # Collective
    /// Over the team. `root` is a rank *of the team*. Both operands have the same length. A member may return before
    /// others have entered.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ or are 0, the operands overlap,
    /// or there is no such root.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// pe.host().broadcast(pe.world(), &dst, &src, 0)?; // from the team's first PE
    /// # pe.free(dst)?; pe.free(src) }
    /// ```
    #[track_caller]
    pub fn broadcast<T: Element>(
        &self,
        team: &Team,
        dst: impl Symmetric<T>,
        src: impl Symmetric<T>,
        root: usize,
    ) -> Result<()> {
        const CALL: &str = "broadcast";
        let (dst, src, at) = (dst.span(), src.span(), At::caller());
        check_lengths::<T>(CALL, dst, src, [1, 1], at)?;
        check_disjoint(CALL, dst, src, at)?;
        if root >= team.n_pes() {
            let message = format!("root {root} is not in the team, which has PEs 0 to {}", team.n_pes() - 1);
            return Err(Error::invalid(CALL, message, at));
        }
        self.issue(Op::Broadcast { team: team.id(), dst, src, dtype: T::DTYPE, root: root as u32 }, at).map(drop)
    }

    /// Gathers every member's `src`, in team order, in `dst` on every member (`nvshmem_fcollect`).
    ///
    /// # Collective
    /// Over the team. `dst` is `n_pes` times as long as `src`.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for other lengths, length 0, or overlapping operands.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// let mine = pe.alloc::<u32>(2)?;
    /// let all = pe.alloc::<u32>(2 * pe.n_pes())?;
    /// pe.host().fcollect(pe.world(), &all, &mine)?;
    /// pe.free(all)?;
    /// pe.free(mine)?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn fcollect<T: Element>(&self, team: &Team, dst: impl Symmetric<T>, src: impl Symmetric<T>) -> Result<()> {
        const CALL: &str = "fcollect";
        let (dst, src, at) = (dst.span(), src.span(), At::caller());
        check_lengths::<T>(CALL, dst, src, [1, team.n_pes()], at)?;
        check_disjoint(CALL, dst, src, at)?;
        self.issue(Op::Fcollect { team: team.id(), dst, src, dtype: T::DTYPE }, at).map(drop)
    }

    /// Sends block `j` of my `src` to block *my rank* of `dst` on member `j` (`nvshmem_alltoall`).
    ///
    /// # Collective
    /// Over the team. Both operands consist of `n_pes` blocks of equal length.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ, are 0 or no multiple of the
    /// team's size, or the operands overlap.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// # let (dst, src) = (pe.alloc::<u32>(pe.n_pes())?, pe.alloc::<u32>(pe.n_pes())?);
    /// pe.host().alltoall(pe.world(), &dst, &src)?; // a transposition
    /// # pe.free(dst)?; pe.free(src) }
    /// ```
    #[track_caller]
    pub fn alltoall<T: Element>(&self, team: &Team, dst: impl Symmetric<T>, src: impl Symmetric<T>) -> Result<()> {
        const CALL: &str = "alltoall";
        let (dst, src, at) = (dst.span(), src.span(), At::caller());
        check_lengths::<T>(CALL, dst, src, [1, 1], at)?;
        let elements = src.len / size_of::<T>();
        if !elements.is_multiple_of(team.n_pes()) {
            let message = format!("{elements} elements do not divide into a block for each of {} PEs", team.n_pes());
            return Err(Error::invalid(CALL, message, at));
        }
        check_disjoint(CALL, dst, src, at)?;
        self.issue(Op::Alltoall { team: team.id(), dst, src, dtype: T::DTYPE }, at).map(drop)
    }

    /// Reduces all members' `src` element by element into `dst` on every member:
    /// (`nvshmem_sum_reduce` and so on).
    ///
    /// # Collective
    /// Over the team. Both operands have the same length; `dst` may be exactly `src`. Floating-point sums promise no
    /// order, nor the same one on all PEs: compare them with a tolerance, also with each other.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ or are 0, the operands overlap
    /// without being the same, or `op` is bitwise and the elements are floats.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, ReduceOp, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// # let sums = pe.alloc::<f32>(16)?;
    /// pe.host().reduce(pe.world(), &sums, &sums, ReduceOp::Sum)?; // in place
    /// # pe.free(sums) }
    /// ```
    #[track_caller]
    pub fn reduce<T: Element>(
        &self,
        team: &Team,
        dst: impl Symmetric<T>,
        src: impl Symmetric<T>,
        op: ReduceOp,
    ) -> Result<()> {
        const CALL: &str = "reduce";
        let (dst, src, at) = (dst.span(), src.span(), At::caller());
        check_lengths::<T>(CALL, dst, src, [1, 1], at)?;
        check_reduction(CALL, T::DTYPE, op, at)?;
        if dst != src {
            check_disjoint(CALL, dst, src, at)?;
        }
        self.issue(Op::Reduce { team: team.id(), dst, src, dtype: T::DTYPE, op }, at).map(drop)
    }

    /// Reduces all members' `src` element by element and leaves block `i` of the result in `dst` on member `i`
    /// (`nvshmem_sum_reducescatter` and so on).
    ///
    /// # Collective
    /// Over the team. `src` is `n_pes` times as long as `dst`.
    ///
    /// # Errors
    /// As [`Issue::reduce`]; operands must not overlap at all.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// let parts = pe.alloc::<u32>(pe.n_pes())?;
    /// let mine = pe.alloc::<u32>(1)?;
    /// pe.host().reducescatter(pe.world(), &mine, &parts, onesided::ReduceOp::Sum)?;
    /// pe.free(mine)?;
    /// pe.free(parts)?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn reducescatter<T: Element>(
        &self,
        team: &Team,
        dst: impl Symmetric<T>,
        src: impl Symmetric<T>,
        op: ReduceOp,
    ) -> Result<()> {
        const CALL: &str = "reducescatter";
        let (dst, src, at) = (dst.span(), src.span(), At::caller());
        check_lengths::<T>(CALL, dst, src, [team.n_pes(), 1], at)?;
        check_reduction(CALL, T::DTYPE, op, at)?;
        check_disjoint(CALL, dst, src, at)?;
        self.issue(Op::ReduceScatter { team: team.id(), dst, src, dtype: T::DTYPE, op }, at).map(drop)
    }
}

/// `dst` must be `src.len() / of_src * of_dst` elements long, and neither may be empty.
#[inline]
fn check_lengths<T: Element>(call: &'static str, dst: Span, src: Span, parts: [usize; 2], at: At) -> Result<()> {
    let [of_src, of_dst] = parts;
    if src.len > 0 && src.len * of_dst == dst.len * of_src {
        return Ok(());
    }
    Err(wrong_lengths(call, [dst.len, src.len].map(|bytes| bytes / size_of::<T>()), parts, at))
}

#[cold]
fn wrong_lengths(call: &'static str, [dst, src]: [usize; 2], parts: [usize; 2], at: At) -> Error {
    let want = match parts {
        [1, 1] => "as long as src".to_string(),
        [1, n] => format!("{n} times as long as src (one part for each PE of the team)"),
        [n, _] => format!("1/{n} as long as src (one part for each PE of the team)"),
    };
    let message = format!("dst has {dst} elements and src {src}; dst must be {want}, and neither empty");
    Error::invalid(call, message, at)
}

#[inline]
fn check_disjoint(call: &'static str, dst: Span, src: Span, at: At) -> Result<()> {
    if dst.overlaps(&src) { Err(overlapping(call, dst, src, at)) } else { Ok(()) }
}

#[cold]
fn overlapping(call: &'static str, dst: Span, src: Span, at: At) -> Error {
    let in_place = if call == "reduce" { "; in place, both must be exactly the same" } else { "" };
    Error::invalid(call, format!("dst {dst} and src {src} overlap{in_place}"), at)
}

#[inline]
pub(crate) fn check_reduction(call: &'static str, dtype: DType, op: ReduceOp, at: At) -> Result<()> {
    if dtype.is_float() && op.is_bitwise() { Err(no_such_reduction(call, dtype, op, at)) } else { Ok(()) }
}

#[cold]
fn no_such_reduction(call: &'static str, dtype: DType, op: ReduceOp, at: At) -> Error {
    Error::invalid(call, format!("{dtype} does not reduce with {}; only integers do", op.name()), at)
}
