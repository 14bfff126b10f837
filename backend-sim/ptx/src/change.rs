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

/// A call that orders others, completes them, or lets threads meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who shows a change must know each call")]
pub enum DeviceCall {
    /// `__syncwarp`, of all lanes.
    Syncwarp,
    /// `__syncthreads`.
    Syncthreads,
    /// `__threadfence`.
    Threadfence,
    /// `__threadfence_system`.
    ThreadfenceSystem,
    /// `nvshmem_fence`.
    Fence,
    /// `nvshmemx_flush`.
    Flush,
    /// `nvshmem_quiet`.
    Quiet,
}

impl DeviceCall {
    /// Its name in CUDA C++.
    ///
    /// ```
    /// assert_eq!(onesided_ptx::DeviceCall::Quiet.name(), "nvshmem_quiet");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Syncwarp => "__syncwarp",
            Self::Syncthreads => "__syncthreads",
            Self::Threadfence => "__threadfence",
            Self::ThreadfenceSystem => "__threadfence_system",
            Self::Fence => "nvshmem_fence",
            Self::Flush => "nvshmemx_flush",
            Self::Quiet => "nvshmem_quiet",
        }
    }

    /// The instruction. Threads that meet come all; what one thread orders is ordered by a thread that makes the access.
    fn instruction<'a>(self, line: u32, guard: Option<(&'a str, bool)>) -> Instruction<'a> {
        let make = |guard, opcode, modifiers: &[&'a str], operands| {
            let modifiers = modifiers.to_vec();
            Instruction { line, guard, opcode, modifiers, operands }
        };
        match self {
            Self::Syncwarp => make(None, "bar", &["warp", "sync"], vec![Operand::Bits(0xffff_ffff)]),
            Self::Syncthreads => make(None, "bar", &["sync"], vec![Operand::Bits(0)]),
            Self::Threadfence => make(guard, "membar", &["gl"], Vec::new()),
            Self::ThreadfenceSystem => make(guard, "membar", &["sys"], Vec::new()),
            Self::Fence | Self::Flush | Self::Quiet => {
                let function = Operand::Name { name: self.name(), offset: 0 };
                make(guard, "call", &["uni"], vec![function, Operand::List(Vec::new())])
            }
        }
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
    let mut called = [DeviceCall::Fence, DeviceCall::Flush, DeviceCall::Quiet].map(DeviceCall::name).to_vec();
    called.retain(|name| calls_undeclared(text, name));
    for name in called {
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
                                self.statements.push(Statement::Instruction(call.instruction(line, guard)));
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
        let behind = group.changes.iter().filter_map(|&number| match self.changes[number] {
            Change::Behind(call) => Some(Statement::Instruction(call.instruction(group.line, group.guard))),
            _ => None,
        });
        let behind: Vec<Statement<'a>> = behind.collect();
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
