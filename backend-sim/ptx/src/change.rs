//! Changes of a text before it is decoded: a call that is added beside accesses, or a stronger access in place of one.

use std::sync::Arc;

use crate::source::Location;
use crate::syntax::{Function, Instruction, Operand, Statement, Text};

/// A change at a line of the source, for whoever looks for what repairs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who shows a change must know each")]
pub enum Change {
    /// Each thread makes the call directly behind its accesses and calls of that line.
    Behind(DeviceCall),
    /// Each thread makes the call directly in front of them.
    InFront(DeviceCall),
    /// A fence, or a strong access, gets the scope of the GPU.
    Gpu,
    /// A fence, or a strong access, gets the scope of the system.
    System,
    /// A plain load or store becomes a volatile one.
    Volatile,
    /// A read-only load becomes a plain one.
    Plain,
}

/// A call that orders others, completes them, or lets threads or PEs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who shows a change must know each call")]
pub enum DeviceCall {
    /// `__syncwarp`, of all lanes.
    Syncwarp,
    /// `__syncthreads`.
    Syncthreads,
    /// `cluster.sync` of cooperative groups.
    ClusterSync,
    /// `__threadfence`.
    Threadfence,
    /// `__threadfence_system`.
    ThreadfenceSystem,
    /// `fence.proxy.async`, for shared memory.
    ProxyFence,
    /// `cp.async.wait_all`.
    CopyWait,
    /// `cp.async.bulk.wait_group 0`, behind a commit.
    BulkWait,
    /// `nvshmem_fence`.
    Fence,
    /// `nvshmemx_flush`.
    Flush,
    /// `nvshmem_quiet`.
    Quiet,
    /// `nvshmem_sync_all`, by one thread.
    SyncAll,
    /// `nvshmemx_sync_all_block`.
    SyncAllBlock,
    /// `nvshmem_barrier_all`, by one thread.
    BarrierAll,
    /// `nvshmemx_barrier_all_block`.
    BarrierAllBlock,
}

impl DeviceCall {
    /// All of them.
    const ALL: [Self; 15] = [
        Self::Syncwarp,
        Self::Syncthreads,
        Self::ClusterSync,
        Self::Threadfence,
        Self::ThreadfenceSystem,
        Self::ProxyFence,
        Self::CopyWait,
        Self::BulkWait,
        Self::Fence,
        Self::Flush,
        Self::Quiet,
        Self::SyncAll,
        Self::SyncAllBlock,
        Self::BarrierAll,
        Self::BarrierAllBlock,
    ];

    /// Its name in CUDA C++, or in PTX where CUDA C++ has none.
    ///
    /// ```
    /// assert_eq!(onesided_ptx::DeviceCall::Quiet.name(), "nvshmem_quiet");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Syncwarp => "__syncwarp",
            Self::Syncthreads => "__syncthreads",
            Self::ClusterSync => "cluster.sync",
            Self::Threadfence => "__threadfence",
            Self::ThreadfenceSystem => "__threadfence_system",
            Self::ProxyFence => "fence.proxy.async.shared::cta",
            Self::CopyWait => "cp.async.wait_all",
            Self::BulkWait => "cp.async.bulk.wait_group 0",
            Self::Fence => "nvshmem_fence",
            Self::Flush => "nvshmemx_flush",
            Self::Quiet => "nvshmem_quiet",
            Self::SyncAll => "nvshmem_sync_all",
            Self::SyncAllBlock => "nvshmemx_sync_all_block",
            Self::BarrierAll => "nvshmem_barrier_all",
            Self::BarrierAllBlock => "nvshmemx_barrier_all_block",
        }
    }

    /// Its instructions, without their operands: words with dots.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Syncwarp => &["bar.warp.sync"],
            Self::Syncthreads => &["bar.sync"],
            Self::ClusterSync => &["barrier.cluster.arrive.aligned", "barrier.cluster.wait.aligned"],
            Self::Threadfence => &["membar.gl"],
            Self::ThreadfenceSystem => &["membar.sys"],
            Self::ProxyFence => &["fence.proxy.async.shared::cta"],
            Self::CopyWait => &["cp.async.wait_all"],
            Self::BulkWait => &["cp.async.bulk.commit_group", "cp.async.bulk.wait_group"],
            _ => &["call.uni"],
        }
    }

    /// Whether it is a function of NVSHMEM.
    fn is_function(self) -> bool {
        self.words() == ["call.uni"]
    }

    /// Its instructions. Threads that meet come all; what one thread orders is ordered by a thread that makes the access.
    fn instructions<'a>(self, line: u32, guard: Option<(&'a str, bool)>) -> impl Iterator<Item = Statement<'a>> {
        let meets = matches!(self, Self::Syncwarp | Self::Syncthreads | Self::ClusterSync);
        let guard = guard.filter(|_| !meets);
        self.words().iter().map(move |words| {
            let mut words = words.split('.');
            let opcode = words.next().unwrap_or_default();
            let operands = match self {
                Self::Syncwarp => vec![Operand::Bits(0xffff_ffff)],
                Self::Syncthreads => vec![Operand::Bits(0)],
                Self::BulkWait if words.clone().last() == Some("wait_group") => vec![Operand::Bits(0)],
                _ if self.is_function() => {
                    vec![Operand::Name { name: self.name(), offset: 0 }, Operand::List(Vec::new())]
                }
                _ => Vec::new(),
            };
            Statement::Instruction(Instruction { line, guard, opcode, modifiers: words.collect(), operands })
        })
    }
}

/// Whether the change of this number is to be made at a line of the PTX, and of the source if that is known.
pub(crate) type IsAt<'f> = &'f dyn Fn(usize, u32, Option<&Location>) -> bool;

/// Changes a text.
pub(crate) fn change(text: &mut Text<'_>, changes: &[Change], is_at: IsAt<'_>) {
    let locations = text.sources.resolve();
    for function in &mut text.functions {
        if let Some(body) = function.body.take() {
            let changed = Changed { changes, is_at, locations: &locations, statements: Vec::new() };
            function.body = Some(changed.body(body));
        }
    }
    let functions = DeviceCall::ALL.into_iter().filter(|call| call.is_function()).map(DeviceCall::name);
    for name in functions.filter(|name| calls_undeclared(text, name)).collect::<Vec<_>>() {
        text.functions.push(declared(name));
    }
}

/// A body that is changed.
struct Changed<'f, 'a> {
    changes: &'f [Change],
    is_at: IsAt<'f>,
    locations: &'f [Arc<Location>],
    statements: Vec<Statement<'a>>,
}

/// Accesses and calls of one line that directly follow each other. They are changed as one: the line may call a function that was inlined.
#[derive(Default)]
struct Group<'a> {
    /// By their numbers.
    changes: Vec<usize>,
    /// Behind the last of them.
    end: usize,
    line: u32,
    guard: Option<(&'a str, bool)>,
}

impl<'a> Changed<'_, 'a> {
    fn body(mut self, body: Vec<Statement<'a>>) -> Vec<Statement<'a>> {
        let mut location = None;
        let mut group = Group::default();
        for mut statement in body {
            match &mut statement {
                Statement::Loc(index) => location = self.locations.get(*index),
                Statement::Instruction(access) if is_access(access) => {
                    let (line, guard) = (access.line, access.guard);
                    let location = location.map(|location| &**location);
                    let is_here = |number: &usize| (self.is_at)(*number, line, location);
                    let changes: Vec<usize> = (0..self.changes.len()).filter(is_here).collect();
                    changes.iter().for_each(|&number| strengthen(access, self.changes[number]));
                    if changes != group.changes {
                        self.end(&group);
                        for &number in &changes {
                            if let Change::InFront(call) = self.changes[number] {
                                self.statements.extend(call.instructions(line, guard));
                            }
                        }
                    }
                    self.statements.push(statement);
                    group = Group { changes, end: self.statements.len(), line, guard };
                    continue;
                }
                _ => {}
            }
            self.statements.push(statement);
        }
        self.end(&group);
        self.statements
    }

    /// Puts calls behind a group.
    fn end(&mut self, group: &Group<'a>) {
        let calls = group.changes.iter().filter_map(|&number| match self.changes[number] {
            Change::Behind(call) => Some(call),
            _ => None,
        });
        let behind: Vec<Statement<'a>> = calls.flat_map(|call| call.instructions(group.line, group.guard)).collect();
        self.statements.splice(group.end..group.end, behind);
    }
}

/// Whether an instruction accesses memory that others see, orders such accesses, or calls a function that may.
fn is_access(instruction: &Instruction<'_>) -> bool {
    let Instruction { opcode, modifiers, .. } = instruction;
    match *opcode {
        "ld" | "ldu" | "st" => {
            !modifiers.iter().any(|one| matches!(one.split("::").next(), Some("param" | "local" | "const")))
        }
        "atom" | "red" | "call" | "multimem" | "fence" | "membar" | "cp" | "mbarrier" | "bar" | "barrier" => true,
        _ => false,
    }
}

/// A scope, as an instruction names it.
const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Makes an access or a fence stronger, if it is of the kind that the change is about.
fn strengthen(instruction: &mut Instruction<'_>, change: Change) {
    let Instruction { opcode, modifiers, .. } = instruction;
    let mut widen = |scope, fence| match *opcode {
        "membar" => *modifiers = vec![fence],
        "fence" | "ld" | "st" | "atom" | "red" => match modifiers.iter_mut().find(|one| SCOPES.contains(one)) {
            Some(narrow) => *narrow = scope,
            // an atomic that names no scope has the GPU's
            None if matches!(*opcode, "atom" | "red") => {
                let orders = ["relaxed", "acquire", "release", "acq_rel"];
                let behind = modifiers.iter().position(|one| orders.contains(one)).map_or(0, |order| order + 1);
                modifiers.insert(behind, scope);
            }
            None => {}
        },
        _ => {}
    };
    match change {
        Change::Gpu => widen("gpu", "gl"),
        Change::System => widen("sys", "sys"),
        Change::Volatile if matches!(*opcode, "ld" | "st") && !is_strong(modifiers) => modifiers.insert(0, "volatile"),
        Change::Plain if *opcode == "ld" => modifiers.retain(|one| *one != "nc"),
        _ => {}
    }
}

fn is_strong(modifiers: &[&str]) -> bool {
    let strong = ["volatile", "relaxed", "acquire", "release", "mmio", "nc"];
    modifiers.iter().any(|one| strong.contains(one))
}

fn calls_undeclared(text: &Text<'_>, name: &str) -> bool {
    let calls = |statement: &Statement<'_>| match statement {
        Statement::Instruction(Instruction { opcode: "call", operands, .. }) => {
            operands.iter().any(|operand| matches!(operand, Operand::Name { name: called, .. } if *called == name))
        }
        _ => false,
    };
    let is_called = text.functions.iter().flat_map(|function| function.body.iter().flatten()).any(calls);
    is_called && !text.functions.iter().any(|function| function.name == name)
}

/// The declaration of a function without arguments and result.
fn declared<'a>(name: &'static str) -> Function<'a> {
    Function {
        name,
        line: 0,
        is_entry: false,
        is_external: true,
        result: None,
        parameters: Vec::new(),
        max_threads: None,
        required_threads: None,
        cluster: None,
        body: None,
    }
}
