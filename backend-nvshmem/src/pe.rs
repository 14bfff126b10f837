//! [`Nvshmem`]: one PE's end of the backend.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute, CUdeviceptr};
use cudarc::driver::{CudaEvent as Event, CudaStream as Stream};
use onesided::backend::{
    AllocId, KernelInfo, LaunchRequest, Layout, Live, LiveKind, NewTeams, Op, Span, TeamId, TeamRequest, Values,
};
use onesided::count;
use onesided::{
    At, Backend, Capabilities, DType, Error, ErrorKind, InitStatus, Members, Predefined, ReduceOp, Result, Source,
    Support, TeamUniqueId, ThreadSupport, Version,
};

use crate::access::Extension;
use crate::atomics::Atomics;
use crate::capabilities::{CAPABILITIES, HeapKind, NO_MULTICAST, capabilities};
use crate::claim::Claim;
use crate::cuda::{self, Device, OwnContext};
use crate::kernels::{CudaModule, Modules};
use crate::launch::Launched;
use crate::lifecycle;
use crate::memory::Memory;
use crate::network::Slots;
use crate::reduction::Scratch;
use crate::table::Table;
use crate::unclaimed::Unclaimed;
use crate::workspace::Workspaces;

/// One PE on a GPU, through libnvshmem.
///
/// If it is dropped without `finalize`, because a program failed or panicked, it communicates nothing and frees nothing on
/// the device. To do so would wait for other PEs, which may wait for this one. The process is expected to end.
#[derive(Debug)]
pub struct Nvshmem {
    pub(crate) table: &'static Table,
    /// The device's.
    own: OwnContext,
    // Stands before the device, because it needs the device's context when it is dropped.
    pub(crate) memory: Memory,
    device: Rc<Device>,
    pub(crate) my_pe: usize,
    n_pes: usize,
    /// The PEs whose memory can be loaded and stored: the members of the library's team SHARED.
    pub(crate) reachable: Members,
    /// Whether these are not all.
    pub(crate) reaches_some_only: bool,
    pub(crate) slots: Slots,
    pub(crate) scratch: Scratch,
    pub(crate) workspaces: Workspaces,
    /// Sizes of the teams that this PE is in.
    teams: RefCell<BTreeMap<TeamId, usize>>,
    /// Whether a signal was enqueued for the host since its last quiet.
    pub(crate) side_used: Cell<bool>,
    pub(crate) unclaimed: Unclaimed,
    pub(crate) modules: Modules,
    pub(crate) launched: Launched,
    pub(crate) atomics: Atomics,
    /// Until finalize.
    claim: RefCell<Option<Claim>>,
    /// Keeps alive what brought the PEs together: MPI, for example.
    bootstrap: lifecycle::Bootstrapped,
}

/// A CUDA stream of a PE.
#[derive(Debug)]
pub struct CudaStream(pub(crate) Arc<Stream>);

/// A CUDA event of a PE.
#[derive(Debug)]
pub struct CudaEvent(pub(crate) Event);

impl Nvshmem {
    /// The PE of a library that has just been initialized.
    pub(crate) fn new(
        table: &'static Table,
        device: Device,
        scratch: Scratch,
        (my_pe, n_pes): (usize, usize),
        claim: Claim,
        bootstrap: lifecycle::Bootstrapped,
    ) -> Nvshmem {
        let mut pe = Nvshmem {
            table,
            own: device.own_context(),
            device: Rc::new(device),
            memory: Memory::default(),
            my_pe,
            n_pes,
            reachable: Members::Strided { start: my_pe as u32, stride: 1, size: 1 },
            reaches_some_only: false,
            slots: Slots::default(),
            scratch,
            workspaces: Workspaces::default(),
            teams: RefCell::default(),
            side_used: Cell::new(false),
            unclaimed: Unclaimed::new(n_pes),
            modules: Modules::default(),
            launched: Launched::default(),
            atomics: Atomics::default(),
            claim: RefCell::new(Some(claim)),
            bootstrap,
        };
        for which in Predefined::ALL {
            if let Some(members) = pe.predefined(which) {
                pe.teams.borrow_mut().insert(which.id(), members.len());
                if which == Predefined::Shared {
                    pe.reachable = members;
                    pe.reaches_some_only = pe.reachable.len() < n_pes;
                }
            }
        }
        pe
    }

    /// Makes ready what needs memory of the heap. Collective, at the end of `init`.
    pub(crate) fn prepare(&self, at: At) -> Result<()> {
        let first = self.memory.room.prepare(self.table, &self.device, self.n_pes, at)?;
        self.memory.heap.set(self.heap_kind(first, at)?);
        self.load_waits(first, at)
    }

    fn heap_kind(&self, first: CUdeviceptr, at: At) -> Result<HeapKind> {
        const ATOMIC: CUdevice_attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED;
        let is_host = self.device.is_host_memory(first, at)?;
        let other_gpus = self.reachable.len() > self.team_size(Predefined::SameGpu.id());
        let loses_updates = is_host && other_gpus && self.device.attribute(ATOMIC, "init", at)? == 0;
        Ok(HeapKind { is_host, loses_updates })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Number of members of a team that this PE is in. If the library does not have the team, 1: the backend asks for the team
    /// of the PEs that share a GPU without knowing whether there is one.
    #[inline]
    pub(crate) fn team_size(&self, team: TeamId) -> usize {
        if team == Predefined::World.id() { self.n_pes } else { self.teams.borrow().get(&team).copied().unwrap_or(1) }
    }

    /// The library's handles of the teams that this PE is in. The predefined teams are one more than have names here, which is
    /// as many as 3.8.0 has.
    pub(crate) fn team_handles(&self) -> impl Iterator<Item = usize> {
        let own: Vec<_> = self.teams.borrow().keys().map(|team| self.handle(*team) as usize).collect();
        (0..=Predefined::ALL.len()).chain(own)
    }

    pub(crate) fn adopt_team(&self, handle: i32) -> TeamId {
        let team = TeamId(handle as u32);
        let size = self.members(handle).map_or(0, |members| members.len());
        self.teams.borrow_mut().insert(team, size);
        team
    }

    pub(crate) fn forget_team(&self, team: TeamId) {
        self.teams.borrow_mut().remove(&team);
    }

    /// Gives back what the program did not, in the order in which it was made. What is made by a collective call is given back
    /// by one, and all PEs concerned made these things in the same order. So they also give them back in the same order.
    fn release(&self, leaks: &[Live], at: At) -> Result<()> {
        let mut done = Ok(());
        for Live { what, bytes, at: made } in leaks {
            let bytes = count(*bytes, "byte");
            let (what_it_is, size) = match what {
                LiveKind::Buffer(_) => ("symmetric memory", format!(" of {bytes}")),
                LiveKind::ExternalMemory(_) => ("memory outside the heap", format!(" of {bytes}")),
                LiveKind::Registered(_) => ("a local registration", format!(" of {bytes}")),
                LiveKind::RegisteredSymmetric(_) => ("a symmetric registration", format!(" of {bytes}")),
                LiveKind::Team(_) => ("a team", String::new()),
            };
            let (pe, file, line) = (self.my_pe, made.file(), made.line());
            // the other PEs count on this one also where nobody can read it
            let _ = writeln!(
                std::io::stderr(),
                "PE {pe}: {what_it_is}{size}, made at {file}:{line}, was not given back; finalize does it"
            );
            let given_back = match what {
                LiveKind::Buffer(alloc) => self.free(*alloc, at),
                LiveKind::ExternalMemory(alloc) => self.free_external(*alloc, at),
                LiveKind::Registered(alloc) => self.unregister_local(*alloc, at),
                LiveKind::RegisteredSymmetric(alloc) => self.unregister_symmetric(*alloc, at),
                LiveKind::Team(team) => self.team(&TeamRequest::Destroy { team: *team }, at).map(drop),
            };
            // After an error too: the other PEs count on this one for the rest.
            done = done.and(given_back);
        }
        done
    }
}

impl Drop for Nvshmem {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            claim.keep();
            // Closing the context would wait for what is enqueued, which may wait for PEs that never answer.
            std::mem::forget(Rc::clone(&self.device));
            // Memory is not given back either: peers or streams may still use it.
            std::mem::forget((std::mem::take(&mut self.memory), std::mem::take(&mut self.workspaces)));
            self.bootstrap.abandon();
        }
    }
}

impl Backend for Nvshmem {
    type Stream = CudaStream;
    type Event = CudaEvent;
    type Module = CudaModule;

    type Extension<'a> = Extension<'a>;

    const NAME: &'static str = "nvshmem";

    fn extension(&self) -> Extension<'_> {
        Extension(self)
    }

    fn my_pe(&self) -> usize {
        self.my_pe
    }

    fn n_pes(&self) -> usize {
        self.n_pes
    }

    fn predefined(&self, which: Predefined) -> Option<Members> {
        // A PE that is not a leader does not have this team, and 3.4.5 ends the process when it is asked about it. The leader
        // is the first PE of each GPU.
        if which == Predefined::GpuLeaders {
            let same_gpu = self.members(Predefined::SameGpu.id().0 as i32)?;
            if same_gpu.position(self.my_pe) != Some(0) {
                return None;
            }
        }
        self.members(which.id().0 as i32)
    }

    fn version(&self) -> Version {
        lifecycle::version(self.table)
    }

    fn init_status(&self) -> InitStatus {
        lifecycle::init_status(self.table)
    }

    fn thread_support(&self) -> ThreadSupport {
        lifecycle::thread_support(self.table)
    }

    fn capabilities(&self) -> Capabilities {
        let heap = self.memory.heap.get();
        capabilities(heap, self.table.version, self.atomics.support(self.table, heap))
    }

    #[inline]
    fn host_signals(&self) -> Support {
        CAPABILITIES.host_signals
    }

    #[inline]
    fn stream_fence(&self) -> Support {
        CAPABILITIES.stream_fence
    }

    fn finalize(&self, leaks: &[Live], at: At) -> Result<()> {
        self.device.bind("finalize", at)?;
        let ended = self.device.context().synchronize();
        ended.map_err(|error| self.launched.fault("finalize", error, at))?;
        self.workspaces.free_idle(); // these are all, unless the GPU has failed
        let released = self.release(leaks, at);
        let released = released.and(self.unload_modules(at));
        lifecycle::finalize(self.table, at)?;
        self.claim.take();
        released
    }

    fn global_exit(&self, status: i32, _at: At) -> ! {
        lifecycle::global_exit(self.table, status)
    }

    fn alloc(&self, layout: Layout, at: At) -> Result<AllocId> {
        self.device.bind("alloc", at)?;
        self.quiet_side("alloc", at)?; // as for free
        self.workspaces.free_idle(); // the heap may need the room
        let sharing = self.team_size(Predefined::SameGpu.id());
        self.memory.alloc(self.table, &self.device, layout, (sharing, self.n_pes), at)
    }

    fn free(&self, alloc: AllocId, at: At) -> Result<()> {
        self.device.bind("free", at)?;
        self.quiet_side("free", at)?; // its barrier completes what the host issued
        self.memory.free(self.table, &self.device, alloc, at)
    }

    fn alloc_external(&self, bytes: usize, at: At) -> Result<AllocId> {
        self.memory.alloc_external(&self.device, bytes, at)
    }

    fn free_external(&self, alloc: AllocId, at: At) -> Result<()> {
        self.memory.free_external(&self.device, alloc, at)
    }

    fn register_local(&self, alloc: AllocId, at: At) -> Result<()> {
        self.memory.register_local(self.table, &self.device, alloc, at)
    }

    fn unregister_local(&self, alloc: AllocId, at: At) -> Result<()> {
        self.memory.unregister_local(self.table, &self.device, alloc, at)
    }

    fn register_symmetric(&self, alloc: AllocId, at: At) -> Result<AllocId> {
        self.memory.register_symmetric(self.table, &self.device, alloc, at)
    }

    fn unregister_symmetric(&self, alloc: AllocId, at: At) -> Result<()> {
        self.device.bind("unregister_symmetric", at)?;
        self.quiet_side("unregister_symmetric", at)?; // as for free
        self.memory.unregister_symmetric(self.table, &self.device, alloc, at)
    }

    fn reaches(&self, pe: usize) -> bool {
        self.reachable.position(pe).is_some()
    }

    fn read(&self, src: Span, pe: usize, _dtype: DType, into: &mut [u8], at: At) -> Result<()> {
        self.load(src, pe, into, at)
    }

    fn write(&self, dst: Span, pe: usize, _dtype: DType, from: &[u8], at: At) -> Result<()> {
        self.store(dst, pe, from, at)
    }

    fn has_multicast(&self, _team: TeamId) -> bool {
        false
    }

    fn multicast_write(&self, _team: TeamId, _dst: Span, _dtype: DType, _from: &[u8], at: At) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "multicast write", NO_MULTICAST, at))
    }

    fn multicast_read(
        &self,
        _team: TeamId,
        _src: Span,
        _dtype: DType,
        _op: ReduceOp,
        _into: &mut [u8],
        at: At,
    ) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "multicast read", NO_MULTICAST, at))
    }

    fn team(&self, request: &TeamRequest<'_>, at: At) -> Result<NewTeams> {
        self.perform(request, at)
    }

    fn team_members(&self, team: TeamId) -> Members {
        self.members(self.handle(team)).expect("a team that this PE is in")
    }

    fn team_unique_id(&self, at: At) -> Result<TeamUniqueId> {
        self.fresh_team_id(at)
    }

    #[inline(always)] // as `issue_on` in stream.rs, and because a verb knows whether there is a stream
    fn issue(&self, op: &Op, values: &Values<'_>, stream: Option<&CudaStream>, at: At) -> Result<u64> {
        // The operation's name is looked up only for an error, because that costs a jump through a table.
        self.own.make_current().map_err(|error| cuda::device(op.name(), error, at))?;
        match stream {
            None => self.issue_from_host(op, values, at),
            Some(stream) => self.issue_on(op, values, &stream.0, at).map(|()| 0),
        }
    }

    fn stream(&self, at: At) -> Result<CudaStream> {
        self.device.stream(at).map(CudaStream)
    }

    fn stream_synchronize(&self, stream: &CudaStream, at: At) -> Result<()> {
        stream.0.synchronize().map_err(|error| self.launched.fault("synchronize", error, at))?;
        self.launched.ended(Some(&stream.0));
        Ok(())
    }

    fn event(&self, at: At) -> Result<CudaEvent> {
        self.device.event(at).map(CudaEvent)
    }

    fn event_record(&self, event: &CudaEvent, stream: &CudaStream, at: At) -> Result<()> {
        event.0.record(&stream.0).map_err(|error| cuda::device("record", error, at))
    }

    fn event_wait(&self, event: &CudaEvent, stream: &CudaStream, at: At) -> Result<()> {
        stream.0.wait(&event.0).map_err(|error| cuda::device("wait_event", error, at))
    }

    fn event_synchronize(&self, event: &CudaEvent, at: At) -> Result<()> {
        event.0.synchronize().map_err(|error| self.launched.fault("synchronize_event", error, at))
    }

    fn module(&self, source: &Source, at: At) -> Result<(CudaModule, Vec<KernelInfo>)> {
        self.load_module(source, at)
    }

    fn launch(&self, request: &LaunchRequest<'_, CudaModule>, stream: &CudaStream, at: At) -> Result<()> {
        self.launch_kernel(request, &stream.0, at)
    }
}
