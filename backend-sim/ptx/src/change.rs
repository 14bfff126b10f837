//! Changes of a text before it is decoded: a call that is added beside accesses, or a stronger access in place of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::source::Location;
use crate::syntax::{Function, Instruction, Operand, Statement, Text, Variable, VariableSpace};
use crate::types::Type;

/// A change at a line of the source, for whoever looks for what repairs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who shows a change must know each")]
pub enum Change {
    /// Each thread makes a call beside its accesses and calls of that line.
    Insert(DeviceCall, Beside),
    /// A fence, or a strong access, gets the scope of the GPU.
    Gpu,
    /// A fence, or a strong access, gets the scope of the system.
    System,
    /// A plain load or store becomes a volatile one.
    Volatile,
    /// A read-only load becomes a plain one.
    Plain,
    /// A load of a word of 8 bytes becomes a call of `nvshmem_signal_fetch`. A load of shared memory, or of another size, stays as it is.
    SignalFetch,
}

/// Where a call is inserted, seen from an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who shows a change must know each")]
pub enum Beside {
    /// Directly behind it.
    Behind,
    /// Directly in front of it.
    InFront,
    /// Behind the condition under which it is made, so that threads come that do not make it.
    BehindCondition,
    /// In front of that condition.
    InFrontOfCondition,
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
    /// `__threadfence_block`.
    ThreadfenceBlock,
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
    const ALL: [Self; 16] = [
        Self::Syncwarp,
        Self::Syncthreads,
        Self::ClusterSync,
        Self::ThreadfenceBlock,
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
            Self::ThreadfenceBlock => "__threadfence_block",
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
            Self::ThreadfenceBlock => &["membar.cta"],
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
        let group = [Self::Syncwarp, Self::Syncthreads, Self::ClusterSync, Self::SyncAllBlock, Self::BarrierAllBlock];
        let meets = group.contains(&self);
        let guard = guard.filter(|_| !meets);
        self.words().iter().map(move |words| {
            let mut words = words.split('.');
            let opcode = words.next().unwrap_or_default();
            let operands = match self {
                Self::Syncwarp => vec![Operand::Bits(0xffff_ffff)],
                Self::Syncthreads => vec![Operand::Bits(0)],
                Self::BulkWait if words.clone().next_back() == Some("wait_group") => vec![Operand::Bits(0)],
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
            let changed = Changed { changes, is_at, locations: &locations, body, inserted: BTreeMap::new() };
            function.body = Some(changed.made());
        }
    }
    let functions = DeviceCall::ALL.into_iter().filter(|call| call.is_function()).map(DeviceCall::name);
    for name in functions.chain([SIGNAL_FETCH]).filter(|name| calls_undeclared(text, name)).collect::<Vec<_>>() {
        text.functions.push(declared(name));
    }
}

/// A body that is changed.
struct Changed<'f, 'a> {
    changes: &'f [Change],
    is_at: IsAt<'f>,
    locations: &'f [Arc<Location>],
    body: Vec<Statement<'a>>,
    /// What goes in front of a statement, by its number.
    inserted: BTreeMap<usize, Vec<Statement<'a>>>,
}

/// Accesses and calls of one line that directly follow each other. They are changed as one: the line may call a function that was inlined.
#[derive(Default)]
struct Group<'a> {
    /// By their numbers.
    changes: Vec<usize>,
    /// The last statement of them.
    last: usize,
    line: u32,
    guard: Option<(&'a str, bool)>,
}

impl<'a> Changed<'_, 'a> {
    fn made(mut self) -> Vec<Statement<'a>> {
        let (mut location, mut group) = (None, Group::default());
        for number in 0..self.body.len() {
            match &self.body[number] {
                Statement::Loc(index) => location = self.locations.get(*index).map(|location| &**location),
                Statement::Instruction(access) if is_access(access) => {
                    let (line, guard) = (access.line, access.guard);
                    let is_here = |change: &usize| (self.is_at)(*change, line, location);
                    let changes: Vec<usize> = (0..self.changes.len()).filter(is_here).collect();
                    if changes != group.changes {
                        self.insert(&group, [Beside::Behind, Beside::BehindCondition]);
                        group = Group { changes, last: number, line, guard };
                        self.insert(&group, [Beside::InFront, Beside::InFrontOfCondition]);
                    }
                    (group.last, group.line, group.guard) = (number, line, guard);
                    self.strengthen(number, &group.changes);
                    self.fetch(number, &group.changes);
                }
                _ => {}
            }
        }
        self.insert(&group, [Beside::Behind, Beside::BehindCondition]);
        let mut all = Vec::with_capacity(self.body.len());
        for (number, statement) in self.body.into_iter().enumerate() {
            all.extend(self.inserted.remove(&number).into_iter().flatten());
            all.push(statement);
        }
        all.extend(self.inserted.into_values().flatten());
        all
    }

    /// Inserts calls on one side of a group.
    fn insert(&mut self, group: &Group<'a>, sides: [Beside; 2]) {
        for &number in &group.changes {
            let Change::Insert(call, beside) = self.changes[number] else { continue };
            let place = match beside {
                _ if !sides.contains(&beside) => None,
                Beside::Behind => Some((group.last + 1, group.guard)),
                Beside::InFront => Some((group.last, group.guard)),
                Beside::BehindCondition => self.condition_of(group.last).map(|(_, label)| (label + 1, None)),
                Beside::InFrontOfCondition => self.condition_of(group.last).map(|(branch, _)| (branch, None)),
            };
            if let Some((place, guard)) = place {
                self.inserted.entry(place).or_default().extend(call.instructions(group.line, guard));
            }
        }
    }

    fn strengthen(&mut self, number: usize, changes: &[usize]) {
        if let Statement::Instruction(access) = &mut self.body[number] {
            changes.iter().for_each(|&change| strengthen(access, self.changes[change]));
        }
    }

    /// Makes a load the end of a call that returns the same word.
    fn fetch(&mut self, number: usize, changes: &[usize]) {
        let Statement::Instruction(load) = &mut self.body[number] else { return };
        let is_asked = changes.iter().any(|&change| self.changes[change] == Change::SignalFetch);
        let [Operand::Name { .. }, Operand::Address { base: Some(base), offset }] = load.operands[..] else { return };
        let is_word = load.modifiers.last().is_some_and(|ty| matches!(*ty, "b64" | "u64" | "s64"));
        if !is_asked || load.opcode != "ld" || !is_word || load.modifiers.iter().any(|one| one.starts_with("shared")) {
            return;
        }
        let name = |name| Operand::Name { name, offset: 0 };
        let argument = |name| Operand::Address { base: Some(name), offset: 0 };
        let (line, guard) = (load.line, load.guard);
        let instruction = |opcode, modifiers: &[&'static str], operands| {
            Statement::Instruction(Instruction { line, guard, opcode, modifiers: modifiers.to_vec(), operands })
        };
        let arguments = [Operand::List(vec![name(RESULT)]), name(SIGNAL_FETCH), Operand::List(vec![name(WORD)])];
        let before = [
            Statement::Begin,
            Statement::Registers { ty: Type::B64, name: ADDRESS, count: None, line },
            Statement::Variable(parameter(RESULT, line)),
            Statement::Variable(parameter(WORD, line)),
            instruction("add", &["s64"], vec![name(ADDRESS), name(base), Operand::Bits(offset.cast_unsigned())]),
            instruction("st", &["param", "b64"], vec![argument(WORD), name(ADDRESS)]),
            instruction("call", &["uni"], arguments.to_vec()),
        ];
        (load.modifiers, load.operands[1]) = (vec!["param", "b64"], argument(RESULT));
        self.inserted.entry(number).or_default().extend(before);
        self.inserted.entry(number + 1).or_default().push(Statement::End);
    }

    /// The condition under which a statement is reached: the last branch in front of it that goes past it, and the label where it goes.
    fn condition_of(&self, number: usize) -> Option<(usize, usize)> {
        let label_of = |name: &str| {
            let is_it = |other: &Statement<'_>| matches!(other, Statement::Label(label, _) if *label == name);
            (number + 1..self.body.len()).find(|&at| is_it(&self.body[at]))
        };
        let branch = |at: usize| match &self.body[at] {
            Statement::Instruction(Instruction { opcode: "bra", operands, guard, .. }) => match operands[..] {
                [Operand::Name { name, .. }] => Some((name, guard.is_some())),
                _ => None,
            },
            _ => None,
        };
        (0..number).rev().find_map(|at| {
            let (name, is_guarded) = branch(at)?;
            let label = label_of(name)?;
            // `@p bra here; bra past;`
            let in_front = at.checked_sub(1).filter(|&other| branch(other).is_some_and(|(_, is_guarded)| is_guarded));
            Some((if is_guarded { at } else { in_front? }, label))
        })
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

/// A function that returns a word of 8 bytes, and names for its call.
const SIGNAL_FETCH: &str = "nvshmem_signal_fetch";
const RESULT: &str = "onesided_result";
const WORD: &str = "onesided_word";
const ADDRESS: &str = "%onesided_address";

/// A parameter of 8 bytes.
fn parameter<'a>(name: &'a str, line: u32) -> Variable<'a> {
    let (space, ty) = (VariableSpace::Param, Type::B64);
    Variable { name, line, space, ty, align: 8, size: Some(8), is_external: false, initial: Vec::new() }
}

/// The declaration of a function without arguments and result, or of the one that fetches a word.
fn declared<'a>(name: &'static str) -> Function<'a> {
    let fetches = name == SIGNAL_FETCH;
    Function {
        name,
        line: 0,
        is_entry: false,
        is_external: true,
        result: fetches.then(|| parameter(RESULT, 0)),
        parameters: if fetches { vec![parameter(WORD, 0)] } else { Vec::new() },
        max_threads: None,
        required_threads: None,
        cluster: None,
        body: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser;

    /// Line 3 of the source stores twice, in a function that was inlined, if the thread is the first; line 5 loads.
    const TEXT: &str = "
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    .loc 1 2 1
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra $past;
    .loc 1 9 5, function_name $name, inlined_at 1 3 7
    st.global.u32 [%rd1], 1;
    add.s32 %r1, %r1, 1;
    @%p2 st.global.u32 [%rd1+4], %r1;
    .loc 1 4 1
    atom.global.add.u32 %r2, [%rd1+8], 1;
$past:
    .loc 1 5 1
    ld.global.nc.u32 %r2, [%rd1];
    fence.acq_rel.gpu;
    .loc 1 6 1
    ld.volatile.global.u64 %rd1, [%rd1+16];
    ret;
}
.file 1 \"k.cu\"
";

    /// The instructions of the changed kernel; what was not there before is in brackets.
    fn changed(changes: &[(u32, Change)]) -> String {
        let is_at = |number: usize, _, location: Option<&Location>| {
            let lines = std::iter::successors(location, |location| location.inlined_at.as_deref());
            lines.into_iter().any(|location| location.line == changes[number].0)
        };
        let just: Vec<Change> = changes.iter().map(|(_, change)| *change).collect();
        let words = |text: &Text<'_>| -> Vec<String> {
            let body = text.functions.iter().find_map(|function| function.body.as_ref()).unwrap();
            let instructions = body.iter().filter_map(|statement| match statement {
                Statement::Instruction(of) => Some(of),
                _ => None,
            });
            let word = |of: &Instruction<'_>| {
                let guard = of.guard.map_or(String::new(), |(guard, _)| format!("@{guard} "));
                format!("{guard}{}", [&[of.opcode], &of.modifiers[..]].concat().join("."))
            };
            instructions.map(word).collect()
        };
        let mut text = parser::parse(TEXT).unwrap();
        let before = words(&text);
        change(&mut text, &just, &is_at);
        crate::decode::module(&text).unwrap();
        let mut left = before.iter().peekable();
        let mark = |word: String| match left.next_if(|known| **known == word) {
            Some(_) => word,
            None => format!("[{word}]"),
        };
        let marked: Vec<String> = words(&text).into_iter().map(mark).collect();
        marked.join(" ")
    }

    #[test]
    fn a_line_is_changed_as_a_whole() {
        let fence = |beside| changed(&[(3, Change::Insert(DeviceCall::Fence, beside))]);
        let stores = "@%p1 bra {}st.global.u32 add.s32 @%p2 st.global.u32 {}atom.global.add.u32 {}ld.global.nc.u32";
        let expected =
            |places: [&str; 3]| places.iter().fold(stores.to_string(), |text, place| text.replacen("{}", place, 1));
        for (beside, places) in [
            (Beside::Behind, ["", "[@%p2 call.uni] ", ""]),
            (Beside::InFront, ["[call.uni] ", "", ""]),
            (Beside::BehindCondition, ["", "", "[call.uni] "]),
        ] {
            let found = fence(beside);
            assert!(found.contains(&expected(places)), "{beside:?}: {found}");
        }
        let found = fence(Beside::InFrontOfCondition);
        assert!(found.contains("setp.ne.s32 [call.uni] @%p1 bra st.global.u32"), "{found}");
    }

    /// All threads come to a barrier, also those that do not make the access.
    #[test]
    fn threads_that_meet_come_all() {
        let found = changed(&[(3, Change::Insert(DeviceCall::Syncthreads, Beside::Behind))]);
        assert!(found.contains("@%p2 st.global.u32 [bar.sync] atom"), "{found}");
    }

    #[test]
    fn a_load_becomes_a_call_that_fetches() {
        let found = changed(&[(6, Change::SignalFetch), (5, Change::SignalFetch)]);
        assert!(
            found.ends_with("fence.acq_rel.gpu [add.s64] [st.param.b64] [call.uni] [ld.param.b64] [ret]"),
            "{found}"
        );
        let twice = changed(&[(6, Change::SignalFetch), (6, Change::Insert(DeviceCall::Threadfence, Beside::Behind))]);
        assert!(twice.ends_with("[call.uni] [ld.param.b64] [membar.gl] [ret]"), "{twice}");
    }

    #[test]
    fn two_changes_of_neighbouring_lines() {
        let behind = |call| Change::Insert(call, Beside::Behind);
        let found = changed(&[(3, behind(DeviceCall::Quiet)), (4, behind(DeviceCall::Threadfence))]);
        assert!(found.contains("[@%p2 call.uni] atom.global.add.u32 [membar.gl] ld"), "{found}");
        let found = changed(&[
            (5, Change::Insert(DeviceCall::BulkWait, Beside::InFront)),
            (4, behind(DeviceCall::Threadfence)),
        ]);
        assert!(
            found
                .contains("atom.global.add.u32 [membar.gl] [cp.async.bulk.commit_group] [cp.async.bulk.wait_group] ld"),
            "{found}"
        );
    }

    #[test]
    fn accesses_become_stronger() {
        for (line, change, expected) in [
            (4, Change::System, "[atom.sys.global.add.u32]"),
            (5, Change::System, "ld.global.nc.u32 [fence.acq_rel.sys]"),
            (3, Change::Volatile, "[st.volatile.global.u32] [add.s32] [@%p2 st.volatile.global.u32]"),
            (5, Change::Plain, "[ld.global.u32]"),
        ] {
            let found = changed(&[(line, change)]);
            let plain = found.replace(['[', ']'], "");
            assert!(plain.contains(&expected.replace(['[', ']'], "")) && found.contains('['), "{change:?}: {found}");
        }
    }

    /// Every call decodes.
    #[test]
    fn every_call_is_known() {
        for call in DeviceCall::ALL {
            assert!(changed(&[(4, Change::Insert(call, Beside::InFront))]).contains('['), "{call:?}");
        }
    }
}
