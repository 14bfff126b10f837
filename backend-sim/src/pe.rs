//! [`Sim`]: one PE's end of the simulator, and [`SimProcess`], what it is before it is initialized.

use std::rc::Rc;
use std::sync::Arc;

use onesided::backend::{
    self, AllocId, Intended, KernelInfo, LaunchRequest, Layout, Live, NewTeams, Op, Span, TeamId, TeamRequest, Values,
};
use onesided::{
    At, Backend, Bootstrap, Capabilities, DType, Error, InitMethod, InitStatus, Members, Pe, Predefined, ReduceOp,
    Result, Source, TeamUniqueId, ThreadSupport, UniqueId, VERSION, Version,
};

use crate::config::Config;
use crate::coroutine::Channel;
use crate::kernel::Code;
use crate::machine::predefined_members;
use crate::request::{Call, Reply};

/// The simulator as a backend.
#[derive(Debug)]
pub struct Sim {
    channel: Channel,
    config: Rc<Config>,
    /// Whether the run initialized this PE: then it also finalizes it, as the last thing that happens.
    launched: bool,
}

/// A simulated process: becomes a PE by [`Bootstrap::init`].
///
/// Whatever runs a program usually does that; a program about the life cycle gets the process itself, from
/// [`Simulation::run_process`](crate::Simulation::run_process).
#[derive(Debug)]
pub struct SimProcess {
    channel: Channel,
    config: Rc<Config>,
}

/// A simulated stream: its number on its PE.
#[derive(Debug)]
pub struct SimStream(u32);

/// Simulated kernels.
#[derive(Debug)]
pub struct SimModule(Arc<Code>);

/// A simulated event: its number on its PE.
#[derive(Debug)]
pub struct SimEvent(u32);

impl SimProcess {
    pub(crate) fn new(channel: Channel, config: Rc<Config>) -> SimProcess {
        SimProcess { channel, config }
    }

    /// The rank that the launcher gave this process.
    pub fn rank(&self) -> usize {
        self.channel.pe() as usize
    }

    /// The number of processes that were launched.
    pub fn n_ranks(&self) -> usize {
        self.config.pes
    }

    fn version() -> Version {
        Version { openshmem_spec: (1, 3), onesided: VERSION, library: format!("onesided-sim {VERSION}") }
    }
}

impl Bootstrap for SimProcess {
    type Backend = Sim;

    fn version(&self) -> Version {
        SimProcess::version()
    }

    fn init_status(&self) -> InitStatus {
        match self.channel.call(Call::IsInitialized, At::caller()) {
            Reply::Value(1) => status(&self.config),
            _ => InitStatus::NotInitialized,
        }
    }

    fn unique_id_at(&self, at: At) -> Result<UniqueId> {
        match self.channel.call(Call::UniqueId, at) {
            Reply::UniqueId(id) => Ok(*id),
            other => Err(failed(other)),
        }
    }

    fn init_at(&self, method: InitMethod, at: At) -> Result<Pe<Sim>> {
        let (rank, launched) = (self.rank(), self.n_ranks());
        let name = method.name();
        let id = match method {
            InitMethod::UniqueId { id, rank: given, n_pes } => {
                if given != rank || n_pes != launched {
                    let message = format!("rank {given} of {n_pes}, but this is process {rank} of {launched}");
                    return Err(Error::invalid("init", message, at));
                }
                if id == UniqueId::EMPTY {
                    let message = "the unique id is empty; it comes from the PE that made it";
                    return Err(Error::invalid("init", message, at));
                }
                Some(id)
            }
            InitMethod::Launcher | InitMethod::Mpi | InitMethod::EmulatedMpi => None,
        };
        unit(self.channel.call(Call::Init { method: name, id }, at))?;
        Ok(backend::new_pe(self.pe(false)))
    }
}

impl SimProcess {
    fn pe(&self, launched: bool) -> Sim {
        Sim { channel: self.channel.clone(), config: Rc::clone(&self.config), launched }
    }

    /// The PE that this process is from the start, where the run initializes it.
    pub(crate) fn launched(&self) -> Pe<Sim> {
        backend::new_pe(self.pe(true))
    }
}

/// The status of an initialized PE.
fn status(config: &Config) -> InitStatus {
    if config.pes_per_gpu() > 1 { InitStatus::FullMpg } else { InitStatus::Initialized }
}

/// A reply without a value.
#[inline]
fn unit(reply: Reply) -> Result<()> {
    value(reply).map(drop)
}

#[inline]
fn value(reply: Reply) -> Result<u64> {
    let value = match reply {
        Reply::Value(value) => value,
        Reply::Unit => 0,
        other => return Err(failed(other)),
    };
    std::mem::forget(reply); // it owns nothing, and its drop would be a call
    Ok(value)
}

fn alloc_id(reply: Reply) -> Result<AllocId> {
    let alloc = match reply {
        Reply::Alloc(alloc) => alloc,
        other => return Err(failed(other)),
    };
    std::mem::forget(reply); // likewise
    Ok(alloc)
}

#[cold]
fn failed(reply: Reply) -> Error {
    match reply {
        Reply::Failed(error) => error,
        other => unreachable!("the machine answered {other:?} to another call"),
    }
}

impl Backend for Sim {
    type Stream = SimStream;
    type Event = SimEvent;

    type Module = SimModule;
    type Extension<'a> = ();

    const NAME: &'static str = "sim";

    fn intends(&self, mark: Option<Intended>) -> Option<Intended> {
        self.channel.intends(mark)
    }

    fn extension(&self) {}

    fn my_pe(&self) -> usize {
        self.channel.pe() as usize
    }

    fn n_pes(&self) -> usize {
        self.config.pes
    }

    fn predefined(&self, which: Predefined) -> Option<Members> {
        predefined_members(&self.config, which, self.my_pe())
    }

    fn version(&self) -> Version {
        SimProcess::version()
    }

    fn init_status(&self) -> InitStatus {
        status(&self.config)
    }

    fn thread_support(&self) -> ThreadSupport {
        ThreadSupport::Serialized
    }

    #[inline]
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities
    }

    fn finalize(&self, leaks: &[Live], at: At) -> Result<()> {
        if self.launched {
            return self.channel.leave(leaks, at);
        }
        unit(self.channel.call(Call::Finalize { leaks }, at))
    }

    fn global_exit(&self, status: i32, at: At) -> ! {
        self.channel.call(Call::GlobalExit { status }, at);
        // only a destructor that exits while the run is torn down gets here, and it has nothing to return to
        panic!("global_exit({status}) while the run ends")
    }

    fn alloc(&self, layout: Layout, at: At) -> Result<AllocId> {
        alloc_id(self.channel.call(Call::Alloc(layout), at))
    }

    fn free(&self, alloc: AllocId, at: At) -> Result<()> {
        unit(self.channel.call(Call::Free(alloc), at))
    }

    fn alloc_external(&self, bytes: usize, at: At) -> Result<AllocId> {
        alloc_id(self.channel.call(Call::AllocExternal(bytes), at))
    }

    fn free_external(&self, alloc: AllocId, at: At) -> Result<()> {
        unit(self.channel.call(Call::FreeExternal(alloc), at))
    }

    fn register_local(&self, _: AllocId, at: At) -> Result<()> {
        unit(self.channel.call(Call::RegisterLocal, at))
    }

    fn unregister_local(&self, alloc: AllocId, at: At) -> Result<()> {
        unit(self.channel.call(Call::UnregisterLocal(alloc), at))
    }

    fn register_symmetric(&self, alloc: AllocId, at: At) -> Result<AllocId> {
        alloc_id(self.channel.call(Call::RegisterSymmetric(alloc), at))
    }

    fn unregister_symmetric(&self, alloc: AllocId, at: At) -> Result<()> {
        unit(self.channel.call(Call::UnregisterSymmetric(alloc), at))
    }

    fn reaches(&self, pe: usize) -> bool {
        let per_node = self.config.pes_per_node();
        self.config.capabilities.peer_access.is_available() && pe / per_node == self.my_pe() / per_node
    }

    #[inline]
    fn read(&self, src: Span, pe: usize, dtype: DType, into: &mut [u8], at: At) -> Result<()> {
        match self.channel.call(Call::Read { src, pe: pe as u32, dtype, into }, at) {
            Reply::Bytes(bytes) => {
                into.copy_from_slice(&bytes);
                self.channel.recycle(bytes);
                Ok(())
            }
            reply => unit(reply),
        }
    }

    #[inline]
    fn write(&self, dst: Span, pe: usize, dtype: DType, from: &[u8], at: At) -> Result<()> {
        unit(self.channel.call(Call::Write { dst, pe: pe as u32, dtype, from }, at))
    }

    fn has_multicast(&self, team: TeamId) -> bool {
        let here = At::caller();
        let call = Call::TeamMembers(team);
        let Reply::Members(members) = self.channel.call(call, here) else { return false };
        self.config.capabilities.multicast.is_available() && members.iter().all(|pe| self.reaches(pe))
    }

    fn multicast_write(&self, team: TeamId, dst: Span, dtype: DType, from: &[u8], at: At) -> Result<()> {
        unit(self.channel.call(Call::MulticastWrite { team, dst, dtype, from }, at))
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
        unit(self.channel.call(Call::MulticastRead { team, src, dtype, op, into }, at))
    }

    fn team(&self, request: &TeamRequest<'_>, at: At) -> Result<NewTeams> {
        match self.channel.call(Call::Team(request), at) {
            Reply::Teams(teams) => Ok(teams),
            Reply::Unit => Ok(NewTeams::default()),
            other => Err(failed(other)),
        }
    }

    fn team_members(&self, team: TeamId) -> Members {
        match self.channel.call(Call::TeamMembers(team), At::caller()) {
            Reply::Members(members) => *members,
            other => unreachable!("the machine answered {other:?} for the members of a team"),
        }
    }

    fn team_unique_id(&self, at: At) -> Result<TeamUniqueId> {
        value(self.channel.call(Call::TeamUniqueId, at)).map(TeamUniqueId)
    }

    // not inlined: it contains the machine's code for every kind of operation, which would be copied into each program
    #[inline(never)]
    fn issue(&self, op: &Op, values: &Values<'_>, stream: Option<&SimStream>, at: At) -> Result<u64> {
        let stream = stream.map(|stream| stream.0);
        value(self.channel.call(Call::Issue { op, values, stream }, at))
    }

    fn stream(&self, at: At) -> Result<SimStream> {
        let number = value(self.channel.call(Call::Stream, at))?;
        Ok(SimStream(number as u32))
    }

    fn stream_synchronize(&self, stream: &SimStream, at: At) -> Result<()> {
        unit(self.channel.call(Call::Synchronize { stream: stream.0 }, at))
    }

    fn event(&self, at: At) -> Result<SimEvent> {
        let number = value(self.channel.call(Call::Event, at))?;
        Ok(SimEvent(number as u32))
    }

    fn event_record(&self, event: &SimEvent, stream: &SimStream, at: At) -> Result<()> {
        unit(self.channel.call(Call::Record { event: event.0, stream: stream.0 }, at))
    }

    fn event_wait(&self, event: &SimEvent, stream: &SimStream, at: At) -> Result<()> {
        unit(self.channel.call(Call::WaitEvent { event: event.0, stream: stream.0 }, at))
    }

    fn event_synchronize(&self, event: &SimEvent, at: At) -> Result<()> {
        unit(self.channel.call(Call::SynchronizeEvent { event: event.0 }, at))
    }

    fn module(&self, source: &Source, at: At) -> Result<(SimModule, Vec<KernelInfo>)> {
        let code = Code::load(source, self.channel.changes_of_kernels())
            .map_err(|(kind, why)| Error::new(kind, "module", why, at))?;
        let kernels = code.kernels.clone();
        Ok((SimModule(code), kernels))
    }

    fn launch(&self, request: &LaunchRequest<'_, SimModule>, stream: &SimStream, at: At) -> Result<()> {
        let LaunchRequest { module, kernel, name, grid, arguments } = *request;
        let request = LaunchRequest { module: &module.0, kernel, name, grid, arguments };
        unit(self.channel.call(Call::Launch { request: &request, stream: stream.0 }, at))
    }
}
