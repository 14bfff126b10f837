//! A launch: what it asks for is checked, and a kernel with all that it was given waits on its stream.

use std::sync::Arc;

use onesided::backend::{AllocId, ArgumentValue, LaunchRequest, Span};
use onesided::{At, Error, ErrorKind, Grid, Together};
use onesided_ptx::{Block, COPIES, Global, Kernel, Launch, Parameter};

use super::super::agent::Task;
use super::super::ids::{AgentId, PeId};
use super::super::{Machine, Progress};
use super::tensor::encoded;
use super::{FIRST, STREAMS, address};
use crate::kernel::Code;
use crate::request::Reply;

/// Threads that a GPU holds at once: 132 multiprocessors of 2048.
const RESIDENT_THREADS: u64 = 132 * 2048;
/// Blocks that a multiprocessor holds at most, on all of them.
const RESIDENT_BLOCKS: u64 = 132 * 32;

/// A kernel that waits on a stream, with everything that its launch gave it.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(super) code: Arc<Code>,
    pub(super) name: String,
    pub(super) launch: Arc<Launch>,
    /// The memory that it was given.
    pub(super) memory: Vec<AllocId>,
    /// Threads of a cluster, by their numbers.
    pub(super) threads: u64,
    /// Clusters that run at the same time.
    pub(super) resident: u64,
    pub(super) stream: u32,
    /// Bulk copies in flight of a cluster that are told apart.
    pub(super) copies: u64,
    /// The line of the launch.
    pub(super) at: At,
    /// Its number among the operations that the PE called, over all of its streams.
    pub(super) called: u64,
}

impl Launched {
    /// Whether it was given this memory.
    pub(in crate::machine) fn uses(&self, alloc: AllocId) -> bool {
        self.memory.contains(&alloc)
    }

    /// How many clusters the grid has; without clusters, each block is one. A cluster is one [`Block`] of the interpreter.
    pub(super) fn clusters(&self) -> u64 {
        product(self.launch.grid) / self.blocks_in_cluster()
    }

    pub(super) fn blocks_in_cluster(&self) -> u64 {
        self.launch.blocks_in_cluster().into()
    }

    /// The number of a thread's block in its cluster.
    pub(super) fn rank_of(&self, thread: u64) -> u32 {
        if self.launch.cluster.is_none() { 0 } else { (thread * self.blocks_in_cluster() / self.threads) as u32 }
    }

    /// Agents of a cluster besides itself: its threads, and bulk copies in flight.
    pub(super) fn agents(&self) -> u64 {
        self.threads + self.copies
    }
}

fn product(of: [u32; 3]) -> u64 {
    of.iter().map(|&n| u64::from(n)).product()
}

/// How many bulk copies in flight a block of a kernel has agents for.
fn copies_of(kernel: &Kernel) -> u64 {
    if kernel.makes_bulk_copies { COPIES as u64 } else { 0 }
}

/// Why a kernel is not launched.
struct Refused {
    kind: ErrorKind,
    why: String,
}

impl Refused {
    /// It could be on a GPU.
    fn limit(why: String) -> Refused {
        Refused { kind: ErrorKind::Unsupported, why }
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused { kind: ErrorKind::InvalidArgument, why }
    }
}

/// # Launching
impl Machine {
    /// The host enqueues a kernel.
    pub(in crate::machine) fn enqueue_kernel(
        &mut self,
        host: AgentId,
        stream: u32,
        request: &LaunchRequest<'_, Arc<Code>>,
        at: At,
    ) -> Progress {
        let pe = self.agents[host].pe;
        self.lints_of_kernels();
        match self.launched(pe, stream, request, at) {
            Ok(launched) if request.grid.together == Together::AllPes && !self.launch_together(pe, &launched, at) => {
                self.block_for_ever(host)
            }
            Ok(launched) => self.enqueue(pe, stream, Task::Launch(Arc::new(launched)), at),
            Err(Refused { kind, why }) => {
                let message = format!("{}: {why}", request.name);
                let error = Error::new(kind, "launch", message, at);
                self.answer(host, Reply::Failed(error))
            }
        }
    }

    fn launched(
        &mut self,
        pe: PeId,
        stream: u32,
        request: &LaunchRequest<'_, Arc<Code>>,
        at: At,
    ) -> Result<Launched, Refused> {
        let LaunchRequest { module: code, kernel, name, grid, arguments } = *request;
        let Grid { blocks, threads, shared, together, cluster } = *grid;
        let info = &code.module.kernels()[kernel];
        let resident = (RESIDENT_THREADS / product(threads)).clamp(1, RESIDENT_BLOCKS);
        if together != Together::Nothing && product(blocks) > resident {
            let (blocks, threads) = (product(blocks), product(threads));
            return Err(Refused::from(format!(
                "{blocks} blocks that must run at the same time; a GPU holds {resident} of {threads} threads"
            )));
        }
        if stream >= STREAMS {
            return Err(Refused::limit(format!(
                "in the simulator, kernels are launched on a PE's first {STREAMS} streams; make streams once and use them again"
            )));
        }
        let cluster = cluster.or(info.cluster);
        // a block of a cluster has numbers for whole warps
        let numbers = if cluster.is_some() { product(threads).next_multiple_of(32) } else { product(threads) };
        let local = product(blocks).saturating_mul(numbers + copies_of(info) + 1);
        let names = local.saturating_add(1).saturating_mul(u64::from(STREAMS)).saturating_add(u64::from(FIRST));
        if names >= 1 << self.ordinals {
            return Err(Refused::limit(format!(
                "{local} blocks and threads are more than the simulator has names for; simulate a smaller grid"
            )));
        }
        let mut launch = Launch::new(1, 1);
        (launch.grid, launch.block, launch.dynamic_shared) = (blocks, threads, shared);
        launch.cluster = cluster;
        launch.max_steps = self.config.max_instructions;
        launch.checks.races = self.races.is_on();
        launch.checks.order = self.mode.needs.tracking;
        let mut memory = Vec::new();
        launch.parameters = vec![0; info.parameter_bytes as usize];
        for (number, (parameter, argument)) in info.parameters.iter().zip(arguments).enumerate() {
            fits(parameter, argument.value()).map_err(|why| format!("argument {number} is {why}"))?;
            let mut has_address = true;
            let mut place = |span: Span| {
                memory.push(span.alloc);
                address::join(pe, span.alloc, span.start).inspect_err(|_| has_address = false)
            };
            let (start, size) = (parameter.offset as usize, parameter.size as usize);
            let written = argument.value().write(
                &mut launch.parameters[start..start + size],
                &mut place,
                &|team| team.0,
                &encoded,
            );
            written.map_err(|why| if has_address { Refused::from(why) } else { Refused::limit(why) })?;
        }
        launch.globals = self.globals_of(pe, code)?;
        if info.uses_grid_sync && together != Together::Nothing {
            launch.workspace = self.workspace(pe)?;
        }
        let launch = Arc::new(launch);
        // what the launch cannot be is found before it is enqueued
        Block::check(&code.module, name, &launch).map_err(|why| {
            let text = why.to_string();
            text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_string()
        })?;
        self.pes[pe].called += 1;
        let called = self.pes[pe].called;
        let (copies, threads) = (copies_of(info), launch.numbers().into());
        let resident = (resident / u64::from(launch.blocks_in_cluster())).max(1);
        Ok(Launched {
            code: Arc::clone(code),
            name: name.into(),
            launch,
            memory,
            threads,
            resident,
            stream,
            copies,
            at,
            called,
        })
    }

    /// The addresses of a module's variables on a PE, which are made when it first launches one of the module's kernels.
    fn globals_of(&mut self, pe: PeId, code: &Arc<Code>) -> Result<Vec<u64>, String> {
        let mut known = self.kernels.globals.iter();
        if let Some((.., addresses)) = known.find(|(of, module, _)| *of == pe && Arc::ptr_eq(module, code)) {
            return Ok(addresses.clone());
        }
        let globals = code.module.globals();
        let place = |global: &Global| {
            let alloc = self.heap.alloc_external(pe, (global.size as usize).max(1))?;
            Ok((alloc, address::join(pe, alloc, 0)?))
        };
        let placed: Vec<(AllocId, u64)> = globals.iter().map(place).collect::<Result<_, String>>()?;
        let addresses: Vec<u64> = placed.iter().map(|(_, address)| *address).collect();
        for (global, (alloc, _)) in globals.iter().zip(&placed) {
            let mut bytes = global.initial.clone();
            bytes.resize((global.size as usize).max(1), 0);
            for &(offset, of, plus) in &global.addresses {
                let value = addresses[of].wrapping_add_signed(plus);
                bytes[offset as usize..offset as usize + 8].copy_from_slice(&value.to_le_bytes());
            }
            let span = Span { alloc: *alloc, start: 0, len: bytes.len() };
            self.heap.bytes_mut(pe, span).copy_from_slice(&bytes);
        }
        self.kernels.globals.push((pe, Arc::clone(code), addresses.clone()));
        Ok(addresses)
    }
}

/// Whether a parameter takes a value of its size. It is about integers and floating-point numbers, where the PTX says which it is, and tensor maps.
fn fits(parameter: &Parameter, value: &ArgumentValue) -> Result<(), String> {
    let (ty, align) = (parameter.ty, parameter.align);
    match value {
        ArgumentValue::Bits { ty: given, .. } if given.contains('f') && ty.is_integer() => {
            Err(format!("{given}; the parameter is an integer or a pointer"))
        }
        ArgumentValue::Bits { ty: given, .. } if !given.contains('f') && ty.is_float() => {
            Err(format!("{given}; the parameter is a floating-point number"))
        }
        ArgumentValue::Tensor(_) if align < 64 => Err(format!(
            "a tensor map; the parameter is aligned to {align}, and a const __grid_constant__ CUtensorMap is to 64"
        )),
        _ => Ok(()),
    }
}
