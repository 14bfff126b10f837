//! Collectives: what all members of a team do together, from the host or on a stream.

use crate::at::At;
use crate::backend::Backend;
use crate::call::Call;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::issue::{Host, Issue};
use crate::members::Predefined;
use crate::op::Op;
use crate::operand::Symmetric;
use crate::operator::ReduceOp;
use crate::span::Span;
use crate::team::Team;

/// # Collectives
///
/// Every member of the team calls the same collectives in the same order, one at a time for each team, with the same element type,
/// count, operator, root and symmetric objects. Members that disagree are a bug of the whole program: the simulator's verdict names
/// what differs and every member's line; hardware hangs or corrupts memory. On streams, a team's collectives must also *run* in
/// the order in which the PE calls them, even if they are on different streams. Otherwise libnvshmem hangs between GPUs.
/// Allocating and freeing count as collectives of the world.
///
/// **No member waits for the others on entry.** A PE that has entered may write my `dst` at once, even before I have entered.
/// So no member may still use its `dst` when the first member enters. (The simulator does not notice such a use for
/// reductions.) A member returns when its own `dst` is complete and its own `src` may be reused. That says nothing about the
/// other members.
///
/// NVSHMEM documentation, "Collective Communication".
impl<B: Backend> Issue<'_, B> {
    /// Completes everything this scope issued (as [`quiet`](Issue::quiet)), then waits for every member's arrival
    /// (`nvshmem_barrier`).
    ///
    /// # Collective
    /// Over the team. From the host it does not wait for streams. As with a quiet, it completes a non-blocking transfer only if no
    /// earlier quiet or barrier of this PE was called after the transfer was issued.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::Predefined;
    /// # onesided_sim::example(2, |pe| {
    /// pe.host().barrier(pe.team(Predefined::Node).expect("every PE is on a node"))?;
    /// # Ok(()) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn barrier(&self, team: &Team) -> Result<()> {
        let call = self.call("barrier", At::caller());
        self.issue(Op::Barrier { team: call.team("team", team)? }, call).map(drop)
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
    /// # onesided_sim::example(2, |pe| {
    /// pe.host().barrier_all()?;
    /// # Ok(()) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn barrier_all(&self) -> Result<()> {
        let call = self.call("barrier_all", At::caller());
        self.issue(Op::Barrier { team: Predefined::World.id() }, call).map(drop)
    }

    /// Waits for every member's arrival (`nvshmem_team_sync`). Completes stores through a peer's pointer, and *no* transfer.
    ///
    /// # Collective
    /// Over the team.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// pe.host().quiet()?;
    /// pe.host().sync(pe.world())?; // both together are a barrier
    /// # Ok(()) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn sync(&self, team: &Team) -> Result<()> {
        let call = self.call("sync", At::caller());
        self.issue(Op::Sync { team: call.team("team", team)? }, call).map(drop)
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
    /// # onesided_sim::example(2, |pe| {
    /// pe.host().sync_all()?;
    /// # Ok(()) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn sync_all(&self) -> Result<()> {
        let call = self.call("sync_all", At::caller());
        self.issue(Op::Sync { team: Predefined::World.id() }, call).map(drop)
    }

    /// Copies the root's `src` to `dst` on every member, the root included (`nvshmem_broadcast`).
    ///
    /// # Collective
    /// Over the team. `root` is a rank *of the team*. Both operands have the same length. A member may return before others have
    /// entered.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ or are 0, the operands overlap,
    /// or there is no such root.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// pe.host().broadcast(pe.world(), &dst, &src, 0)?; // from the team's first PE
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[track_caller]
    pub fn broadcast<T: Element>(
        &self,
        team: &Team,
        dst: impl Symmetric<T>,
        src: impl Symmetric<T>,
        root: usize,
    ) -> Result<()> {
        let call = self.call("broadcast", At::caller());
        let (id, dst, src) = (call.team("team", team)?, call.span("dst", dst)?, call.span("src", src)?);
        check_lengths::<T>(call, dst, src, [1, 1])?;
        check_disjoint(call, dst, src)?;
        if root >= team.n_pes() {
            let message = format!("root {root} is not in the team, which has PEs 0 to {}", team.n_pes() - 1);
            return Err(call.refuse(message));
        }
        self.issue(Op::Broadcast { team: id, dst, src, dtype: T::DTYPE, root: root as u32 }, call).map(drop)
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
    /// # onesided_sim::example(2, |pe| {
    /// let mine = pe.alloc::<u32>(2)?;
    /// let all = pe.alloc::<u32>(2 * pe.n_pes())?;
    /// pe.host().fcollect(pe.world(), &all, &mine)?;
    /// pe.free(all)?;
    /// pe.free(mine)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn fcollect<T: Element>(&self, team: &Team, dst: impl Symmetric<T>, src: impl Symmetric<T>) -> Result<()> {
        let call = self.call("fcollect", At::caller());
        let (id, dst, src) = (call.team("team", team)?, call.span("dst", dst)?, call.span("src", src)?);
        check_lengths::<T>(call, dst, src, [1, team.n_pes()])?;
        check_disjoint(call, dst, src)?;
        self.issue(Op::Fcollect { team: id, dst, src, dtype: T::DTYPE }, call).map(drop)
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
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<u32>(pe.n_pes())?, pe.alloc::<u32>(pe.n_pes())?);
    /// pe.host().alltoall(pe.world(), &dst, &src)?; // a transposition
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[track_caller]
    pub fn alltoall<T: Element>(&self, team: &Team, dst: impl Symmetric<T>, src: impl Symmetric<T>) -> Result<()> {
        let call = self.call("alltoall", At::caller());
        let (id, dst, src) = (call.team("team", team)?, call.span("dst", dst)?, call.span("src", src)?);
        check_lengths::<T>(call, dst, src, [1, 1])?;
        let elements = src.len / size_of::<T>();
        if !elements.is_multiple_of(team.n_pes()) {
            let message = format!("length {elements} does not divide into a block for each of {} PEs", team.n_pes());
            return Err(call.refuse(message));
        }
        check_disjoint(call, dst, src)?;
        self.issue(Op::Alltoall { team: id, dst, src, dtype: T::DTYPE }, call).map(drop)
    }

    /// Reduces all members' `src` element by element into `dst` on every member (`nvshmem_sum_reduce` and so on).
    ///
    /// # Collective
    /// Over the team. Both operands have the same length; `dst` may be exactly `src`. A floating-point reduction promises no order of
    /// its operations, and not the same order on all PEs: compare results with a tolerance, also with each other.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ or are 0, the operands overlap
    /// without being the same, or `op` is bitwise and the elements are floats.
    ///
    /// ```
    /// # use onesided::ReduceOp;
    /// # onesided_sim::example(2, |pe| {
    /// # let sums = pe.alloc_zeroed::<u32>(16)?;
    /// pe.write(&sums, &[1; 16])?;
    /// pe.host().reduce(pe.world(), &sums, &sums, ReduceOp::Sum)?; // in place
    /// assert_eq!(pe.read(&sums)?, [pe.n_pes() as u32; 16]);
    /// # pe.free(sums) });
    /// ```
    #[track_caller]
    pub fn reduce<T: Element>(
        &self,
        team: &Team,
        dst: impl Symmetric<T>,
        src: impl Symmetric<T>,
        op: ReduceOp,
    ) -> Result<()> {
        let call = self.call("reduce", At::caller());
        let (id, dst, src) = (call.team("team", team)?, call.span("dst", dst)?, call.span("src", src)?);
        check_lengths::<T>(call, dst, src, [1, 1])?;
        call.reduction(T::DTYPE, op)?;
        if dst != src {
            check_disjoint(call, dst, src)?;
        }
        self.issue(Op::Reduce { team: id, dst, src, dtype: T::DTYPE, op }, call).map(drop)
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
    /// # onesided_sim::example(2, |pe| {
    /// let parts = pe.alloc::<u32>(pe.n_pes())?;
    /// let mine = pe.alloc::<u32>(1)?;
    /// pe.host().reducescatter(pe.world(), &mine, &parts, onesided::ReduceOp::Sum)?;
    /// pe.free(mine)?;
    /// pe.free(parts)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn reducescatter<T: Element>(
        &self,
        team: &Team,
        dst: impl Symmetric<T>,
        src: impl Symmetric<T>,
        op: ReduceOp,
    ) -> Result<()> {
        let call = self.call("reducescatter", At::caller());
        let (id, dst, src) = (call.team("team", team)?, call.span("dst", dst)?, call.span("src", src)?);
        check_lengths::<T>(call, dst, src, [team.n_pes(), 1])?;
        call.reduction(T::DTYPE, op)?;
        check_disjoint(call, dst, src)?;
        self.issue(Op::ReduceScatter { team: id, dst, src, dtype: T::DTYPE, op }, call).map(drop)
    }
}

/// # Collectives that return a value
impl<B: Backend> Host<'_, B> {
    /// Reduces one value of each member, and returns the result on every member: the sum of a local count, the largest local
    /// error.
    ///
    /// Composed: stores `value` to `scratch`, reduces `scratch` in place, and reads it.
    ///
    /// # Collective
    /// Over the team. `scratch` is one element of symmetric memory, the same on every member. Its content is replaced by the
    /// result. Nothing else may use it during the call. It can serve any number of calls.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `scratch` is not one element, or `op` is bitwise and the value is
    /// a float.
    ///
    /// ```
    /// # use onesided::ReduceOp;
    /// # onesided_sim::example(3, |pe| {
    /// let scratch = pe.alloc::<u64>(1)?;
    /// let mine = pe.my_pe() as u64;
    /// let sum = pe.host().reduce_value(pe.world(), &scratch, mine, ReduceOp::Sum)?;
    /// let largest = pe.host().reduce_value(pe.world(), &scratch, mine, ReduceOp::Max)?;
    /// assert_eq!((sum, largest), (3, 2));
    /// # pe.free(scratch) });
    /// ```
    #[track_caller]
    pub fn reduce_value<T: Element>(
        &self,
        team: &Team,
        scratch: impl Symmetric<T>,
        value: T,
        op: ReduceOp,
    ) -> Result<T> {
        let call = self.call("reduce_value", At::caller());
        let (team, word) = (call.team("team", team)?, call.element::<T>("scratch", scratch)?);
        call.reduction(T::DTYPE, op)?;
        let (backend, me) = (&self.pe.backend, self.pe.my_pe());
        backend.write(word, me, T::DTYPE, bytemuck::bytes_of(&value), call.at)?;
        self.issue(Op::Reduce { team, dst: word, src: word, dtype: T::DTYPE, op }, call)?;
        let mut result = T::zeroed();
        backend.read(word, me, T::DTYPE, bytemuck::bytes_of_mut(&mut result), call.at)?;
        Ok(result)
    }
}

/// `dst` must be `src.len() / of_src * of_dst` elements long, and neither may be empty.
#[inline]
fn check_lengths<T: Element>(call: Call, dst: Span, src: Span, parts: [usize; 2]) -> Result<()> {
    let [of_src, of_dst] = parts;
    let [want, have] = [(src.len, of_dst), (dst.len, of_src)].map(|(len, parts)| len.checked_mul(parts));
    if src.len > 0 && want.is_some() && want == have {
        return Ok(());
    }
    Err(wrong_lengths(call, [dst.len, src.len].map(|bytes| bytes / size_of::<T>()), parts))
}

#[cold]
fn wrong_lengths(call: Call, [dst, src]: [usize; 2], parts: [usize; 2]) -> Error {
    let want = match parts {
        [1, 1] => "as long as src".to_string(),
        [1, n] => format!("{n} times as long as src (one part for each PE of the team)"),
        [n, _] => format!("1/{n} as long as src (one part for each PE of the team)"),
    };
    call.refuse(format!("dst has length {dst} and src length {src}; dst must be {want}, and neither empty"))
}

#[inline]
fn check_disjoint(call: Call, dst: Span, src: Span) -> Result<()> {
    if dst.overlaps(&src) { Err(overlapping(call, dst, src)) } else { Ok(()) }
}

#[cold]
fn overlapping(call: Call, dst: Span, src: Span) -> Error {
    call.refuse(format!("dst {dst} and src {src} overlap; only reduce works in place, with both exactly the same"))
}
