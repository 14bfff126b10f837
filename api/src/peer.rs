//! Direct access to other PEs' memory: loads and stores through a peer's pointer, and multicast.

use crate::at::At;
use crate::backend::Backend;
use crate::element::Element;
use crate::error::Result;
use crate::operand::Symmetric;
use crate::operator::ReduceOp;
use crate::pe::Pe;
use crate::span::Span;
use crate::team::Team;

/// Another PE's copy of symmetric memory, reached by loads and stores: what `nvshmem_ptr` gives.
///
/// No verb takes it as an operand, because the pointer that NVSHMEM returns must not be passed back to NVSHMEM:
/// ```compile_fail,E0277
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     let buf = pe.alloc::<f32>(4)?;
///     let alias = pe.peer(&buf, 1)?.unwrap();
///     pe.host().put(alias, &buf, 2) // error: `Peer` is not symmetric memory
/// }
/// ```
pub struct Peer<'a, B: Backend, T> {
    pe: &'a Pe<B>,
    span: Span,
    of_pe: usize,
    of: std::marker::PhantomData<T>,
}

/// A team's copies of symmetric memory under one address: what `nvshmemx_mc_ptr` gives.
pub struct Multicast<'a, B: Backend, T> {
    pe: &'a Pe<B>,
    team: &'a Team,
    span: Span,
    of: std::marker::PhantomData<T>,
}

/// # Direct access
impl<B: Backend> Pe<B> {
    /// The copy of `buf` on PE `of_pe`, if loads and stores reach it (`nvshmem_ptr`); `None` otherwise.
    ///
    /// # One-sided
    /// Local.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when there is no such PE.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc::<i32>(4)?;
    /// let next = (pe.my_pe() + 1) % pe.n_pes();
    /// if let Some(peer) = pe.peer(&buf, next)? {
    ///     peer.write(&[1, 2, 3, 4])?; // a store over NVLink
    /// }
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn peer<'a, T: Element>(&'a self, buf: impl Symmetric<T> + 'a, of_pe: usize) -> Result<Option<Peer<'a, B, T>>> {
        let call = self.call("peer", At::caller());
        let (span, of_pe) = (call.span("buf", buf)?, call.pe(of_pe)? as usize);
        if !self.backend.reaches(of_pe) {
            return Ok(None);
        }
        Ok(Some(Peer { pe: self, span, of_pe, of: std::marker::PhantomData }))
    }

    /// The copies of `buf` on all members of `team` under one address, if the hardware offers that (`nvshmemx_mc_ptr`); `None`
    /// otherwise.
    ///
    /// # One-sided
    /// Local.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when another PE or an earlier run made the team or the memory.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<i32>(1)?;
    /// match pe.multicast(pe.world(), &buf)? {
    ///     Some(all) => assert_eq!(all.len(), 1),
    ///     None => println!("{} has no multicast", pe.name()),
    /// }
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn multicast<'a, T: Element>(
        &'a self,
        team: &'a Team,
        buf: impl Symmetric<T> + 'a,
    ) -> Result<Option<Multicast<'a, B, T>>> {
        let call = self.call("multicast", At::caller());
        let (id, span) = (call.team("team", team)?, call.span("buf", buf)?);
        if !self.backend.has_multicast(id) {
            return Ok(None);
        }
        Ok(Some(Multicast { pe: self, team, span, of: std::marker::PhantomData }))
    }
}

impl<B: Backend, T: Element> Peer<'_, B, T> {
    /// Number of elements.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc::<i32>(4)?;
    /// let peer = pe.peer(buf.slice(1..), 0)?.expect("PE 0 is on this node");
    /// assert_eq!(peer.len(), 3);
    /// # pe.free(buf) });
    /// ```
    pub fn len(&self) -> usize {
        self.span.len / size_of::<T>()
    }

    /// Whether there is no element.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc::<i32>(4)?;
    /// assert!(pe.peer(buf.slice(4..), 0)?.expect("PE 0 is on this node").is_empty());
    /// # pe.free(buf) });
    /// ```
    pub fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// Loads the elements.
    ///
    /// # One-sided
    /// Returns what has been delivered there by now, and what this PE's host stored there before.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<i32>(2)?;
    /// pe.write(&buf, &[pe.my_pe() as i32; 2])?;
    /// pe.host().barrier_all()?;
    /// let peer = pe.peer(&buf, 1)?.expect("PE 1 is on this node");
    /// assert_eq!(peer.read()?, [1, 1]);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn read(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.len()];
        let bytes = bytemuck::must_cast_slice_mut(&mut values);
        self.pe.backend.read(self.span, self.of_pe, T::DTYPE, bytes, At::caller())?;
        Ok(values)
    }

    /// Stores the elements.
    ///
    /// # One-sided
    /// Returns at once. The stores are ordinary stores of this PE's host. Its later loads and stores of the same address come
    /// after them. Its gets do not, unless a quiet is between. A fence, quiet, sync or barrier of the host orders the stores
    /// for other PEs. Until then they may become visible at any time.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<i32>(1)?;
    /// if let Some(peer) = pe.peer(&buf, 1 - pe.my_pe())? {
    ///     peer.write(&[7])?;
    /// }
    /// pe.host().barrier_all()?;
    /// assert_eq!(pe.read_one(&buf)?, 7);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn write(&self, values: &[T]) -> Result<()> {
        let call = self.pe.call("peer write", At::caller());
        call.same_len([("the memory", self.len()), ("values", values.len())])?;
        self.pe.backend.write(self.span, self.of_pe, T::DTYPE, bytemuck::must_cast_slice(values), call.at)
    }
}

impl<B: Backend, T: Element> Multicast<'_, B, T> {
    /// Number of elements on each member.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc::<i32>(4)?;
    /// let all = pe.multicast(pe.world(), buf.slice(1..))?.expect("a cluster with multicast");
    /// assert_eq!(all.len(), 3);
    /// # pe.free(buf) });
    /// ```
    pub fn len(&self) -> usize {
        self.span.len / size_of::<T>()
    }

    /// Whether there is no element.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc::<i32>(4)?;
    /// assert!(pe.multicast(pe.world(), buf.slice(4..))?.expect("a cluster with multicast").is_empty());
    /// # pe.free(buf) });
    /// ```
    pub fn is_empty(&self) -> bool {
        self.span.len == 0
    }

    /// Stores the elements on every member (`multimem.st`).
    ///
    /// # One-sided
    /// As [`Peer::write`], to each member.
    ///
    /// # Errors
    /// As [`Peer::write`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<i32>(1)?;
    /// let all = pe.multicast(pe.world(), &buf)?.expect("a cluster with multicast");
    /// if pe.my_pe() == 0 {
    ///     all.write(&[7])?;
    /// }
    /// pe.host().barrier_all()?;
    /// assert_eq!(pe.read_one(&buf)?, 7);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn write(&self, values: &[T]) -> Result<()> {
        let call = self.pe.call("multicast write", At::caller());
        call.same_len([("the memory", self.len()), ("values", values.len())])?;
        let bytes = bytemuck::must_cast_slice(values);
        self.pe.backend.multicast_write(self.team.id(), self.span, T::DTYPE, bytes, call.at)
    }

    /// Loads the reduction of all members' elements (`multimem.ld_reduce`).
    ///
    /// # One-sided
    /// Reads what has been delivered on each member by now.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `op` is bitwise and the elements are floats.
    ///
    /// ```
    /// # use onesided::ReduceOp;
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<i32>(1)?;
    /// pe.write(&buf, &[pe.my_pe() as i32])?;
    /// pe.host().barrier_all()?;
    /// let all = pe.multicast(pe.world(), &buf)?.expect("a cluster with multicast");
    /// assert_eq!(all.read_reduce(ReduceOp::Max)?, [1]);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn read_reduce(&self, op: ReduceOp) -> Result<Vec<T>> {
        let call = self.pe.call("multicast read", At::caller());
        call.reduction(T::DTYPE, op)?;
        let mut values = vec![T::zeroed(); self.len()];
        let bytes = bytemuck::must_cast_slice_mut(&mut values);
        self.pe.backend.multicast_read(self.team.id(), self.span, T::DTYPE, op, bytes, call.at)?;
        Ok(values)
    }
}

impl<B: Backend, T> std::fmt::Debug for Peer<'_, B, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on PE {}", self.span, self.of_pe)
    }
}

impl<B: Backend, T> std::fmt::Debug for Multicast<'_, B, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.span, self.team.id())
    }
}
