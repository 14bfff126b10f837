//! [`Placed`]: for programs in other languages, which say themselves where their calls stand.

use std::cell::Cell;

use crate::at::At;
use crate::backend::{
    AllocId, Backend, Intended, KernelInfo, LaunchRequest, Layout, NewTeams, Op, Span, TeamId, TeamRequest, Values,
};
use crate::capability::{Capabilities, Support};
use crate::element::DType;
use crate::error::Result;
use crate::kernel::Source;
use crate::life::{InitStatus, ThreadSupport, Version};
use crate::members::{Members, Predefined};
use crate::operator::ReduceOp;
use crate::pe::{Live, Pe};
use crate::team::TeamUniqueId;

/// The backend `B` under a binding for another language. Errors and reports name the place that the program gives, and not the
/// binding's Rust code.
///
/// Made by [`placed`], used through [`Pe::at`].
#[derive(Debug)]
pub struct Placed<B> {
    inner: B,
    place: Cell<Option<At>>,
}

/// Makes a PE whose program names the place of each call, by [`Pe::at`]. Buffers and teams that `pe` has made remain valid.
/// Streams, events and modules must be made afterwards. [`Team::translate_pe`](crate::Team::translate_pe) and
/// [`Module::kernel`](crate::Module::kernel) use no backend, so their errors name the Rust code. Local.
///
/// ```
/// use onesided::backend::placed;
/// use onesided::{At, Bootstrap, InitMethod};
/// # use onesided_sim::{Config, Simulation};
/// # let run = Simulation::new(Config::pes(1))?.run_process(|process| {
///
/// let pe = placed(process.init(InitMethod::Launcher)?);
/// let buf = pe.at(At::foreign("ring.py", 3, 7, Some("main"))).alloc::<u8>(16)?;
/// let why = pe.at(At::foreign("ring.py", 4, 1, Some("main"))).host().p(buf.at(0), 1, 7).unwrap_err();
/// assert_eq!(why.at().to_string(), "ring.py:4");
/// # pe.free(buf)?;
/// # pe.finalize()
/// # })?;
/// # run.into_results()?;
/// # Ok::<(), onesided::Error>(())
/// ```
pub fn placed<B: Backend>(pe: Pe<B>) -> Pe<Placed<B>> {
    pe.map_backend(|inner| Placed { inner, place: Cell::new(None) })
}

impl<B: Backend> Pe<Placed<B>> {
    /// This PE, whose calls from now on stand at `place`: errors, verdicts and traces name it. Before the first such call they
    /// stand where the Rust code is. Local.
    ///
    /// A binding names the place of each call:
    ///
    /// ```
    /// # use onesided::backend::placed;
    /// # use onesided::{At, Bootstrap, InitMethod};
    /// # use onesided_sim::{Config, Simulation};
    /// # Simulation::new(Config::pes(2))?.run_process(|process| {
    /// # let pe = placed(process.init(InitMethod::Launcher)?);
    /// let place = At::foreign("ring.py", 8, 5, Some("main"));
    /// pe.at(place).host().barrier_all()?;
    /// # pe.finalize()
    /// # })?.into_results()?;
    /// # Ok::<(), onesided::Error>(())
    /// ```
    #[inline]
    pub fn at(&self, place: At) -> &Self {
        self.backend.place.set(Some(place));
        self
    }
}

/// Every call is the inner backend's, at the place that was named.
impl<B: Backend> Backend for Placed<B> {
    type Stream = B::Stream;
    type Event = B::Event;
    type Module = B::Module;
    type Extension<'a>
        = B::Extension<'a>
    where
        B: 'a;

    const NAME: &'static str = B::NAME;

    #[inline]
    fn place(&self, caller: At) -> At {
        self.place.get().unwrap_or(caller)
    }

    #[inline]
    fn intends(&self, mark: Option<Intended>) -> Option<Intended> {
        self.inner.intends(mark)
    }

    fn extension(&self) -> B::Extension<'_> {
        self.inner.extension()
    }

    fn my_pe(&self) -> usize {
        self.inner.my_pe()
    }

    fn n_pes(&self) -> usize {
        self.inner.n_pes()
    }

    fn predefined(&self, which: Predefined) -> Option<Members> {
        self.inner.predefined(which)
    }

    fn version(&self) -> Version {
        self.inner.version()
    }

    fn init_status(&self) -> InitStatus {
        self.inner.init_status()
    }

    fn thread_support(&self) -> ThreadSupport {
        self.inner.thread_support()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    #[inline]
    fn host_signals(&self) -> Support {
        self.inner.host_signals()
    }

    #[inline]
    fn stream_fence(&self) -> Support {
        self.inner.stream_fence()
    }

    fn finalize(&self, leaks: &[Live], at: At) -> Result<()> {
        self.inner.finalize(leaks, self.place(at))
    }

    fn global_exit(&self, status: i32, at: At) -> ! {
        self.inner.global_exit(status, self.place(at))
    }

    fn alloc(&self, layout: Layout, at: At) -> Result<AllocId> {
        self.inner.alloc(layout, self.place(at))
    }

    fn free(&self, alloc: AllocId, at: At) -> Result<()> {
        self.inner.free(alloc, self.place(at))
    }

    fn alloc_external(&self, bytes: usize, at: At) -> Result<AllocId> {
        self.inner.alloc_external(bytes, self.place(at))
    }

    fn free_external(&self, alloc: AllocId, at: At) -> Result<()> {
        self.inner.free_external(alloc, self.place(at))
    }

    fn register_local(&self, alloc: AllocId, at: At) -> Result<()> {
        self.inner.register_local(alloc, self.place(at))
    }

    fn unregister_local(&self, alloc: AllocId, at: At) -> Result<()> {
        self.inner.unregister_local(alloc, self.place(at))
    }

    fn register_symmetric(&self, alloc: AllocId, at: At) -> Result<AllocId> {
        self.inner.register_symmetric(alloc, self.place(at))
    }

    fn unregister_symmetric(&self, alloc: AllocId, at: At) -> Result<()> {
        self.inner.unregister_symmetric(alloc, self.place(at))
    }

    fn reaches(&self, pe: usize) -> bool {
        self.inner.reaches(pe)
    }

    fn read(&self, src: Span, pe: usize, dtype: DType, into: &mut [u8], at: At) -> Result<()> {
        self.inner.read(src, pe, dtype, into, self.place(at))
    }

    fn write(&self, dst: Span, pe: usize, dtype: DType, from: &[u8], at: At) -> Result<()> {
        self.inner.write(dst, pe, dtype, from, self.place(at))
    }

    fn has_multicast(&self, team: TeamId) -> bool {
        self.inner.has_multicast(team)
    }

    fn multicast_write(&self, team: TeamId, dst: Span, dtype: DType, from: &[u8], at: At) -> Result<()> {
        self.inner.multicast_write(team, dst, dtype, from, self.place(at))
    }

    fn multicast_read(
        &self,
        team: TeamId,
        src: Span,
        dtype: DType,
        op: ReduceOp,
        into: &mut [u8],
        at: At,
    ) -> Result<()> {
        self.inner.multicast_read(team, src, dtype, op, into, self.place(at))
    }

    fn team(&self, request: &TeamRequest<'_>, at: At) -> Result<NewTeams> {
        self.inner.team(request, self.place(at))
    }

    fn team_members(&self, team: TeamId) -> Members {
        self.inner.team_members(team)
    }

    fn team_unique_id(&self, at: At) -> Result<TeamUniqueId> {
        self.inner.team_unique_id(self.place(at))
    }

    #[inline]
    fn issue(&self, op: &Op, values: &Values<'_>, stream: Option<&B::Stream>, at: At) -> Result<u64> {
        self.inner.issue(op, values, stream, self.place(at))
    }

    fn stream(&self, at: At) -> Result<B::Stream> {
        self.inner.stream(self.place(at))
    }

    fn stream_synchronize(&self, stream: &B::Stream, at: At) -> Result<()> {
        self.inner.stream_synchronize(stream, self.place(at))
    }

    fn event(&self, at: At) -> Result<B::Event> {
        self.inner.event(self.place(at))
    }

    fn event_record(&self, event: &B::Event, stream: &B::Stream, at: At) -> Result<()> {
        self.inner.event_record(event, stream, self.place(at))
    }

    fn event_wait(&self, event: &B::Event, stream: &B::Stream, at: At) -> Result<()> {
        self.inner.event_wait(event, stream, self.place(at))
    }

    fn event_synchronize(&self, event: &B::Event, at: At) -> Result<()> {
        self.inner.event_synchronize(event, self.place(at))
    }

    fn module(&self, source: &Source, at: At) -> Result<(B::Module, Vec<KernelInfo>)> {
        self.inner.module(source, self.place(at))
    }

    fn launch(&self, request: &LaunchRequest<'_, B::Module>, stream: &B::Stream, at: At) -> Result<()> {
        self.inner.launch(request, stream, self.place(at))
    }
}
