//! What the name of a device function means, by rule: `nvshmem[x]_[qp_][TYPE_]OPERATION[_warp|_warpgroup|_block]`.
//!
//! A name decodes exactly if NVSHMEM's headers declare it. What they do not declare fails to link on a GPU.

use onesided::backend::AmoOp;
use onesided::{DType, ReduceOp};
use onesided_ptx::{External, Group};

use super::signature::{self, Convention};
use super::types::{self, Family, NamedType};

/// A device function that a kernel calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name in NVSHMEM's headers.
    pub(crate) name: String,
    /// What it does.
    pub(crate) verb: Verb,
    /// What its counts count.
    pub(crate) unit: Option<Unit>,
    /// Who calls together.
    pub(crate) group: Group,
    /// Whether it names a queue pair, which changes nothing here.
    pub(crate) queue_pair: bool,
    /// How arguments and result are passed.
    pub(crate) convention: Convention,
}

/// The elements of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The type of an element, which never tears.
    pub(crate) dtype: DType,
    /// So many of them are one of what the caller counts: 2 for `put128`, else 1.
    pub(crate) times: usize,
}

impl Unit {
    /// One element of this type.
    pub(crate) fn of(dtype: DType) -> Unit {
        Unit { dtype, times: 1 }
    }

    /// Bytes of one of what the caller counts.
    pub(crate) fn bytes(self) -> usize {
        self.dtype.size() * self.times
    }
}

/// What a device function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Put, perhaps with a signal.
    Put { nbi: bool, signal: bool },
    /// Get.
    Get { nbi: bool },
    /// Put of one value.
    P,
    /// Get of one value.
    G,
    /// Strided put.
    IPut,
    /// Strided get.
    IGet,
    /// Update of a signal word.
    Signal,
    /// Read of a signal word.
    SignalFetch,
    /// Wait for a signal word.
    SignalWait,
    /// Wait for variables, or test them.
    Wait { form: Form, vector: bool, test: bool },
    /// Atomic operation. `inc` has no operand: it adds one.
    Amo { op: AmoOp, fetch: bool, inc: bool },
    /// Fence.
    Fence,
    /// Quiet.
    Quiet,
    /// Sources may be reused.
    Flush,
    /// Barrier, of a team or of all.
    Barrier { all: bool },
    /// Sync, of a team or of all.
    Sync { all: bool },
    /// Broadcast.
    Broadcast,
    /// Concatenation.
    Fcollect,
    /// Exchange of blocks.
    Alltoall,
    /// Reduction.
    Reduce(ReduceOp),
    /// Reduction whose blocks are spread.
    ReduceScatter(ReduceOp),
    /// My rank, in the world.
    MyPe,
    /// Number of PEs.
    NPes,
    /// My rank in a team.
    TeamMyPe,
    /// Number of a team's members.
    TeamNPes,
    /// A rank of one team in another.
    TeamTranslatePe,
    /// The address of a peer's memory.
    Ptr,
    /// The multicast address of a team's memory.
    McPtr,
    /// Version of the specification.
    Version,
    /// Version of the library.
    VendorVersion,
    /// Name of the library.
    Name,
    /// How much shared memory the library would like.
    AskSmem,
    /// The library may use this shared memory.
    GiveSmem,
    /// The library may no longer use it.
    ReleaseSmem,
    /// A block starts a region.
    RegionStart,
    /// A block stops its region.
    RegionStop,
    /// Whether the block is in a region.
    RegionIsActive,
    /// The job ends.
    GlobalExit,
}

/// How many variables a wait or test is about, and of how many it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// There is one.
    One,
    /// All of several.
    All,
    /// One of several.
    Any,
    /// At least one of several, and then all that compare true.
    Some,
}

/// What is said of names that begin with `nvshmemi_`.
pub(crate) const INSIDE: &str = "is inside of NVIDIA's library, which the simulator does not have; public functions do the same, such as \
                                 nvshmem_ptr, nvshmemx_putmem_nbi_warp or nvshmemx_qp_quiet";

/// Functions that NVSHMEM declares and that are not simulated, each with its reason. A `*` stands for the group.
pub(crate) const UNSUPPORTED: &[(&str, &str)] = &[
    ("nvshmemx_double2_maxloc_reduce_block", "reductions of pairs are not simulated"),
    (
        "nvshmem*_iput128*",
        "elements of 16 bytes with a stride are not simulated; use two calls of iput64 with twice the strides",
    ),
    (
        "nvshmem*_iget128*",
        "elements of 16 bytes with a stride are not simulated; use two calls of iget64 with twice the strides",
    ),
    ("nvshmemx_half_atomic_*", "atomic addition of floats is not simulated"),
    ("nvshmemx_float_atomic_*", "atomic addition of floats is not simulated"),
    ("nvshmemx_double_atomic_*", "atomic addition of floats is not simulated"),
    ("nvshmemx_signal_counted_*", COUNTED),
    ("nvshmemx_putmem_signal_counted_nbi_block", COUNTED),
];

/// What is said of counted signals.
const COUNTED: &str = "counted signals are not simulated, and NVIDIA's packages of NVSHMEM 3.8 are built without them; use \
                       nvshmemx_putmem_signal_nbi_block and nvshmem_signal_wait_until";

impl Function {
    /// What a function means that a module calls and does not define.
    ///
    /// # Errors
    /// If NVSHMEM has no such function, if it is not simulated, or if the module declares it with other parameters: a text that names
    /// the function and what would be right.
    pub(crate) fn decode(external: &External) -> Result<Function, String> {
        let (name, mangled) = match external.demangled() {
            Some(name) => (name, true),
            None => (external.name.as_str(), false),
        };
        let mut function = Function::of_name(name)?;
        function.convention = signature::convention(&function, external, mangled)?;
        Ok(function)
    }

    /// What a name of NVSHMEM's headers means.
    pub(crate) fn of_name(name: &str) -> Result<Function, String> {
        let unknown = |hint: String| format!("{name} is not a device function of NVSHMEM{hint}");
        let (extension, rest) = match (name.strip_prefix("nvshmemx_"), name.strip_prefix("nvshmem_")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ if name.starts_with("nvshmemi_") => return Err(format!("{name} {INSIDE}")),
            _ if matches!(name, "malloc" | "free") => {
                return Err(format!(
                    "{name}: memory that kernels allocate themselves (malloc, new) is not simulated; allocate it on the host, and \
                     give it to the kernel as an argument"
                ));
            }
            _ => {
                return Err(format!(
                    "{name} is declared and not defined; kernels can call NVSHMEM's functions and their own"
                ));
            }
        };
        if let Some((_, reason)) = UNSUPPORTED.iter().find(|(pattern, _)| matches(pattern, name)) {
            return Err(format!("{name}: {reason}"));
        }
        let group = Group::of(name);
        let form = ["_warp", "_warpgroup", "_block"].into_iter().find_map(|suffix| rest.strip_suffix(suffix));
        let (rest, is_form) = (form.unwrap_or(rest), form.is_some());
        let (rest, queue_pair) = rest.strip_prefix("qp_").map_or((rest, false), |rest| (rest, true));
        let (verb, unit) = meaning(rest).map_err(unknown)?;
        // Which prefix it has, and whether it exists for groups and queue pairs.
        let right = verb.is_extension() || is_form || queue_pair;
        if verb.is_for_blocks() && group != Group::Block {
            return Err(unknown(": in kernels all threads of a block call it together, as _block".into()));
        }
        if is_form && !verb.is_for_groups(queue_pair) {
            return Err(unknown(": there is no form of it for a warp or a block; each thread calls for itself".into()));
        }
        if group == Group::Warpgroup && verb != (Verb::Barrier { all: false }) {
            return Err(unknown(": only a team's barrier has a form for four warps".into()));
        }
        if queue_pair && !verb.is_for_queue_pairs(unit) {
            return Err(unknown(": there is no form of it with a queue pair".into()));
        }
        if right != extension {
            let prefix = if right { "nvshmemx" } else { "nvshmem" };
            return Err(unknown(format!("; its name is {prefix}{}", &name[name.find('_').unwrap_or(0)..])));
        }
        let unit = unit.map(|(_, unit)| unit);
        Ok(Function { name: name.to_owned(), verb, unit, group, queue_pair, convention: Convention::C })
    }

    /// The result, if it is the same in every call of a PE and there are no arguments.
    pub(crate) fn constant(&self, my_pe: usize, n_pes: usize) -> Option<u64> {
        match (self.verb, self.convention) {
            (Verb::MyPe, Convention::C) => Some(my_pe as u64),
            (Verb::NPes, Convention::C) => Some(n_pes as u64),
            _ => None,
        }
    }

    /// The result as the calling thread gets it, from the bits of an element: small signed integers are widened, as PTX passes them in
    /// 32 bits.
    pub(crate) fn widened(&self, bits: u64) -> u64 {
        match (self.verb, self.unit) {
            (Verb::G | Verb::Amo { .. }, Some(Unit { dtype: DType::I8, .. })) => bits as u8 as i8 as u64,
            (Verb::G | Verb::Amo { .. }, Some(Unit { dtype: DType::I16, .. })) => bits as u16 as i16 as u64,
            _ => bits,
        }
    }
}

impl Verb {
    /// Whether NVSHMEM counts it among its extensions.
    fn is_extension(self) -> bool {
        use Verb::*;
        let of_the_library = matches!(self, VendorVersion | AskSmem | GiveSmem | ReleaseSmem);
        of_the_library || matches!(self, Signal | McPtr | Flush | RegionStart | RegionStop | RegionIsActive)
    }

    /// Whether only a whole block calls it.
    fn is_for_blocks(self) -> bool {
        matches!(self, Verb::RegionStart | Verb::RegionStop)
    }

    /// Whether there are forms that a warp or a block calls together.
    fn is_for_groups(self, queue_pair: bool) -> bool {
        match self {
            Verb::Put { .. } | Verb::Get { .. } | Verb::IPut | Verb::IGet => true,
            Verb::Broadcast | Verb::Fcollect | Verb::Alltoall | Verb::Reduce(_) | Verb::ReduceScatter(_) => true,
            Verb::Barrier { .. } | Verb::Sync { .. } | Verb::Flush => true,
            Verb::Fence | Verb::Quiet => queue_pair,
            verb => verb.is_for_blocks(),
        }
    }

    /// Whether there are forms with a queue pair.
    fn is_for_queue_pairs(self, unit: Option<(&str, Unit)>) -> bool {
        match self {
            Verb::Put { .. } | Verb::Get { .. } => unit.is_some_and(|(name, _)| !name.is_empty()),
            Verb::P | Verb::G | Verb::Fence | Verb::Quiet | Verb::Signal => true,
            _ => false,
        }
    }
}

/// Whether a name is the pattern, where `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, behind)) => name
            .strip_prefix(before)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(behind, &rest[at..]))),
    }
}

/// An operation, and its elements with the name of their type; that is empty where the name has their size.
type Meaning<'a> = (Verb, Option<(&'a str, Unit)>);

/// The operation of a name without prefix, queue pair and group. The error is a hint.
fn meaning(rest: &str) -> Result<Meaning<'_>, String> {
    if let Some(verb) = untyped(rest) {
        return Ok((verb, None));
    }
    if let Some((verb, unit)) = sized(rest) {
        return Ok((verb, Some(("", unit))));
    }
    let Some((name, operation)) = rest.split_once('_') else { return Err(String::new()) };
    let Some((verb, family)) = typed(operation) else { return Err(String::new()) };
    let Some(NamedType { name: known, dtype }) = types::named(name) else {
        return Err(format!(": there is no type {name}; {operation} has {}", types::names(family)));
    };
    if !types::has(family, known) {
        return Err(format!(": there is no {operation} of {known}; it has {}", types::names(family)));
    }
    Ok((verb, Some((known, Unit::of(dtype)))))
}

/// Operations without elements.
fn untyped(rest: &str) -> Option<Verb> {
    Some(match rest {
        "my_pe" => Verb::MyPe,
        "n_pes" => Verb::NPes,
        "info_get_version" => Verb::Version,
        "info_get_name" => Verb::Name,
        "vendor_get_version_info" => Verb::VendorVersion,
        "team_my_pe" => Verb::TeamMyPe,
        "team_n_pes" => Verb::TeamNPes,
        "team_translate_pe" => Verb::TeamTranslatePe,
        "ptr" => Verb::Ptr,
        "mc_ptr" => Verb::McPtr,
        "signal_fetch" => Verb::SignalFetch,
        "signal_wait_until" => Verb::SignalWait,
        "signal_op" => Verb::Signal,
        "fence" => Verb::Fence,
        "quiet" => Verb::Quiet,
        "flush" => Verb::Flush,
        "ask_smem" => Verb::AskSmem,
        "give_smem" => Verb::GiveSmem,
        "release_smem" => Verb::ReleaseSmem,
        "region_start" => Verb::RegionStart,
        "region_stop" => Verb::RegionStop,
        "region_is_active" => Verb::RegionIsActive,
        "global_exit" => Verb::GlobalExit,
        "barrier" => Verb::Barrier { all: false },
        "barrier_all" => Verb::Barrier { all: true },
        "team_sync" => Verb::Sync { all: false },
        "sync_all" => Verb::Sync { all: true },
        _ => return None,
    })
}

/// Operations on bytes, or on elements of so many bits: `putmem`, `put32_signal_nbi`, `broadcastmem`.
fn sized(rest: &str) -> Option<(Verb, Unit)> {
    let of_bytes = match rest {
        "alltoallmem" => Some(Verb::Alltoall),
        "broadcastmem" => Some(Verb::Broadcast),
        "fcollectmem" => Some(Verb::Fcollect),
        _ => None,
    };
    if let Some(verb) = of_bytes {
        return Some((verb, Unit::of(DType::U8)));
    }
    let end = ["put", "get", "iput", "iget"].iter().find(|verb| rest.starts_with(*verb))?.len();
    let (verb, rest) = rest.split_at(end);
    let (size, suffix) = rest.split_at(rest.find('_').unwrap_or(rest.len()));
    let unit = match size {
        "mem" if !verb.starts_with('i') => Unit::of(DType::U8),
        "8" => Unit::of(DType::U8),
        "16" => Unit::of(DType::U16),
        "32" => Unit::of(DType::U32),
        "64" => Unit::of(DType::U64),
        "128" => Unit { dtype: DType::U64, times: 2 },
        _ => return None,
    };
    Some((moving(&format!("{verb}{suffix}"))?, unit))
}

/// Puts and gets.
fn moving(operation: &str) -> Option<Verb> {
    Some(match operation {
        "put" => Verb::Put { nbi: false, signal: false },
        "put_nbi" => Verb::Put { nbi: true, signal: false },
        "put_signal" => Verb::Put { nbi: false, signal: true },
        "put_signal_nbi" => Verb::Put { nbi: true, signal: true },
        "get" => Verb::Get { nbi: false },
        "get_nbi" => Verb::Get { nbi: true },
        "iput" => Verb::IPut,
        "iget" => Verb::IGet,
        _ => return None,
    })
}

/// Operations whose names begin with a type, and which types have them.
fn typed(operation: &str) -> Option<(Verb, Family)> {
    let moved = match operation {
        "p" => Some(Verb::P),
        "g" => Some(Verb::G),
        "alltoall" => Some(Verb::Alltoall),
        "broadcast" => Some(Verb::Broadcast),
        "fcollect" => Some(Verb::Fcollect),
        _ => moving(operation),
    };
    if let Some(verb) = moved {
        return Some((verb, Family::Moving));
    }
    if let Some(op) = operation.strip_prefix("atomic_") {
        return atomic(op);
    }
    if let Some((verb, family)) = reducing(operation) {
        return Some((verb, family));
    }
    let (rest, vector) = operation.strip_suffix("_vector").map_or((operation, false), |rest| (rest, true));
    let (form, test) = match rest {
        "wait_until" if !vector => (Form::One, false),
        "wait_until_all" => (Form::All, false),
        "wait_until_any" => (Form::Any, false),
        "wait_until_some" => (Form::Some, false),
        "test" if !vector => (Form::One, true),
        "test_all" => (Form::All, true),
        "test_any" => (Form::Any, true),
        "test_some" => (Form::Some, true),
        _ => return None,
    };
    Some((Verb::Wait { form, vector, test }, Family::Waiting))
}

fn atomic(op: &str) -> Option<(Verb, Family)> {
    let amo = |op, fetch| Verb::Amo { op, fetch, inc: false };
    Some(match op {
        "fetch" => (amo(AmoOp::Fetch, true), Family::Swapping),
        "set" => (amo(AmoOp::Set, false), Family::Swapping),
        "swap" => (amo(AmoOp::Set, true), Family::Swapping),
        "compare_swap" => (amo(AmoOp::CompareSwap, true), Family::Adding),
        "inc" => (Verb::Amo { op: AmoOp::Add, fetch: false, inc: true }, Family::Adding),
        "fetch_inc" => (Verb::Amo { op: AmoOp::Add, fetch: true, inc: true }, Family::Adding),
        "add" => (amo(AmoOp::Add, false), Family::Adding),
        "fetch_add" => (amo(AmoOp::Add, true), Family::Adding),
        "and" => (amo(AmoOp::And, false), Family::Masking),
        "fetch_and" => (amo(AmoOp::And, true), Family::Masking),
        "or" => (amo(AmoOp::Or, false), Family::Masking),
        "fetch_or" => (amo(AmoOp::Or, true), Family::Masking),
        "xor" => (amo(AmoOp::Xor, false), Family::Masking),
        "fetch_xor" => (amo(AmoOp::Xor, true), Family::Masking),
        _ => return None,
    })
}

fn reducing(operation: &str) -> Option<(Verb, Family)> {
    let (op, kind) = operation.split_once('_')?;
    let op = ReduceOp::ALL.into_iter().find(|known| known.name() == op)?;
    let family = if op.is_bitwise() { Family::ReducingBits } else { Family::Reducing };
    match kind {
        "reduce" => Some((Verb::Reduce(op), family)),
        "reducescatter" => Some((Verb::ReduceScatter(op), family)),
        _ => None,
    }
}
