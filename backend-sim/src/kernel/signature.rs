//! What each argument of a device function is, with its size, and how front ends pass arguments.

use onesided::count;
use onesided_ptx::External;

use super::name::{Form, Function, Verb};

/// How a kernel passes arguments and takes the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convention {
    /// As CUDA C++ and CuTe DSL do. Triton too, but for sizes: where it knows no type for an argument or a result it takes an integer of
    /// 8 bytes, or of 4.
    C,
    /// Numba's, for functions under their C names: the result goes where the first argument points to; a status is returned.
    Numba,
    /// NVSHMEM4Py's in Numba: as Numba's, and every argument is the address of its value.
    References,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Target of data.
    Dest,
    /// Source of data.
    Source,
    /// A value of the element's type.
    Value,
    /// What a word is compared with before it is swapped.
    Cond,
    /// Number of elements.
    Count,
    /// Distance of elements in the target.
    DestStride,
    /// Distance of elements in the source.
    SourceStride,
    /// Address of a signal word.
    SignalWord,
    /// A signal's value.
    SignalValue,
    /// How a signal changes its word.
    SignalOp,
    /// A PE.
    Pe,
    /// A queue pair.
    QueuePair,
    /// Address of queue pairs.
    QueuePairs,
    /// Number of queue pairs.
    QueuePairCount,
    /// Address of the variables of a wait or test.
    Vars,
    /// Address of flags that leave out variables, or null.
    Status,
    /// Where indices are written.
    Indices,
    /// A comparison.
    Cmp,
    /// What variables are compared with.
    CmpValue,
    /// Address of what each variable is compared with.
    CmpValues,
    /// A team.
    Team,
    /// A team into whose ranks another's are translated.
    DestTeam,
    /// A rank in a team: the root.
    Root,
    /// Any address.
    Address,
    /// For what shared memory is wanted.
    SmemAmount,
    /// Address of shared memory.
    Smem,
    /// Bytes of it.
    SmemSize,
    /// Where a region's handle goes.
    Region,
    /// A region's handle.
    RegionHandle,
    /// Address of what a region hints at, or null.
    RegionAttributes,
    /// What a region hints at.
    RegionHints,
    /// Where it goes whether there is a region.
    IsActive,
    /// The status with which a job ends.
    ExitStatus,
    /// Where the function writes its answer: first, second, third.
    Out(u8),
}

impl Role {
    /// The argument's name in NVSHMEM's documentation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Dest => "dest",
            Role::Source => "source",
            Role::Value => "value",
            Role::Cond => "cond",
            Role::Count => "nelems",
            Role::DestStride => "dst",
            Role::SourceStride => "sst",
            Role::SignalWord => "sig_addr",
            Role::SignalValue => "signal",
            Role::SignalOp => "sig_op",
            Role::Pe => "pe",
            Role::QueuePair => "qp_index",
            Role::QueuePairs => "qp_handle",
            Role::QueuePairCount => "num_qps",
            Role::Vars => "ivars",
            Role::Status => "status",
            Role::Indices => "indices",
            Role::Cmp => "cmp",
            Role::CmpValue => "cmp_value",
            Role::CmpValues => "cmp_values",
            Role::Team => "team",
            Role::DestTeam => "dest_team",
            Role::Root => "PE_root",
            Role::Address => "ptr",
            Role::SmemAmount => "flag",
            Role::Smem => "smem",
            Role::SmemSize => "size",
            Role::Region | Role::RegionHandle => "handle",
            Role::RegionAttributes => "attrs",
            Role::RegionHints => "hints",
            Role::IsActive => "active",
            Role::ExitStatus => "status",
            Role::Out(0) => "major",
            Role::Out(1) => "minor",
            Role::Out(_) => "patch",
        }
    }

    /// Bytes of the argument, where an element has so many.
    fn bytes(self, element: u32) -> u32 {
        match self {
            Role::Value | Role::Cond | Role::CmpValue => element,
            Role::SignalOp
            | Role::Pe
            | Role::QueuePair
            | Role::QueuePairCount
            | Role::Cmp
            | Role::Team
            | Role::DestTeam
            | Role::Root
            | Role::SmemAmount
            | Role::RegionHints
            | Role::ExitStatus => 4,
            _ => 8,
        }
    }
}

impl Function {
    /// The arguments, in their order.
    pub(crate) fn roles(&self) -> Vec<Role> {
        use Role::{
            Address, Cmp, CmpValue, CmpValues, Cond, Count, Dest, DestStride, DestTeam, ExitStatus, Indices, IsActive,
            Out, Pe, QueuePair, QueuePairCount, QueuePairs, Region, RegionAttributes, RegionHandle, RegionHints, Root,
            SignalOp, SignalValue, SignalWord, Smem, SmemAmount, SmemSize, Source, SourceStride, Status, Team, Value,
            Vars,
        };
        let mut roles = match self.verb {
            Verb::Put { signal: true, .. } => vec![Dest, Source, Count, SignalWord, SignalValue, SignalOp, Pe],
            Verb::Put { .. } | Verb::Get { .. } => vec![Dest, Source, Count, Pe],
            Verb::P => vec![Dest, Value, Pe],
            Verb::G => vec![Source, Pe],
            Verb::IPut | Verb::IGet => vec![Dest, Source, DestStride, SourceStride, Count, Pe],
            Verb::Signal => vec![SignalWord, SignalValue, SignalOp, Pe],
            Verb::SignalFetch => vec![SignalWord],
            Verb::SignalWait => vec![SignalWord, Cmp, CmpValue],
            Verb::Wait { form: Form::One, .. } => vec![Vars, Cmp, CmpValue],
            Verb::Wait { form, vector, .. } => {
                let values = if vector { CmpValues } else { CmpValue };
                let mut roles = vec![Vars, Count, Status, Cmp, values];
                if form == Form::Some {
                    roles.insert(2, Indices);
                }
                roles
            }
            Verb::Amo { inc: true, .. } => vec![Dest, Pe],
            Verb::Amo { op: onesided::backend::AmoOp::Fetch, .. } => vec![Source, Pe],
            Verb::Amo { op: onesided::backend::AmoOp::CompareSwap, .. } => vec![Dest, Cond, Value, Pe],
            Verb::Amo { .. } => vec![Dest, Value, Pe],
            Verb::Fence | Verb::Quiet if self.queue_pair => vec![Pe, QueuePairs, QueuePairCount],
            Verb::Fence | Verb::Quiet | Verb::Flush | Verb::MyPe | Verb::NPes => vec![],
            Verb::Barrier { all } | Verb::Sync { all } => {
                if all {
                    vec![]
                } else {
                    vec![Team]
                }
            }
            Verb::Broadcast => vec![Team, Dest, Source, Count, Root],
            Verb::Fcollect | Verb::Alltoall | Verb::Reduce(_) | Verb::ReduceScatter(_) => {
                vec![Team, Dest, Source, Count]
            }
            Verb::TeamMyPe | Verb::TeamNPes => vec![Team],
            Verb::TeamTranslatePe => vec![Team, Pe, DestTeam],
            Verb::Ptr => vec![Address, Pe],
            Verb::McPtr => vec![Team, Address],
            Verb::Version => vec![Out(0), Out(1)],
            Verb::VendorVersion => vec![Out(0), Out(1), Out(2)],
            Verb::Name => vec![Address],
            Verb::AskSmem => vec![SmemAmount],
            Verb::GiveSmem => vec![Smem, SmemSize],
            Verb::ReleaseSmem => vec![],
            Verb::RegionStart => vec![Region, RegionAttributes],
            Verb::RegionStop => vec![RegionHandle],
            Verb::RegionIsActive => vec![RegionHints, IsActive],
            Verb::GlobalExit => vec![ExitStatus],
        };
        if self.queue_pair && !matches!(self.verb, Verb::Fence | Verb::Quiet) {
            roles.push(QueuePair);
        }
        roles
    }

    /// Bytes of each argument.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let element = self.element();
        self.roles().into_iter().map(|role| role.bytes(element)).collect()
    }

    /// Bytes of the result; 0 without one.
    pub(crate) fn result(&self) -> u32 {
        match self.verb {
            Verb::G | Verb::Amo { fetch: true, .. } => self.element(),
            Verb::SignalFetch | Verb::SignalWait | Verb::Ptr | Verb::McPtr => 8,
            Verb::Wait { form: Form::Any | Form::Some, .. } => 8,
            Verb::Wait { test: true, .. } => 4,
            Verb::Broadcast | Verb::Fcollect | Verb::Alltoall | Verb::Reduce(_) | Verb::ReduceScatter(_) => 4,
            Verb::Barrier { all: false } | Verb::Sync { all: false } => 4,
            Verb::RegionStart | Verb::RegionStop | Verb::RegionIsActive => 4,
            Verb::MyPe | Verb::NPes | Verb::TeamMyPe | Verb::TeamNPes | Verb::TeamTranslatePe | Verb::AskSmem => 4,
            _ => 0,
        }
    }

    /// Whether an argument is passed in a register as wide as an integer of 8 bytes is. A float is not.
    fn widens(&self, role: Role) -> bool {
        let is_float = self.unit.is_some_and(|unit| unit.dtype.is_float());
        role.bytes(4) == 4 && !(is_float && role.bytes(2) == 2)
    }

    /// Bytes of an element; of a signal word where there is no element.
    fn element(&self) -> u32 {
        self.unit.map_or(8, |unit| unit.bytes() as u32)
    }

    /// The function as its documentation declares it, in sizes: `nvshmem_int_p(dest: 8, value: 4, pe: 4) without a result`.
    fn declaration(&self) -> String {
        let arguments = self.roles().into_iter().zip(self.sizes());
        let arguments: Vec<String> = arguments.map(|(role, bytes)| format!("{}: {bytes}", role.name())).collect();
        let result = match self.result() {
            0 => "without a result".to_owned(),
            bytes => format!("with a result of {}", count(bytes, "byte")),
        };
        format!("{}({}) {result}", self.name, arguments.join(", "))
    }
}

/// How a module passes arguments to a function.
///
/// # Errors
/// If it declares other parameters than the function has.
pub(super) fn convention(function: &Function, external: &External, mangled: bool) -> Result<Convention, String> {
    // Values of one or two bytes may be passed in 32 bits.
    let fits = |has: u32, wanted: u32| has == wanted || (has == 4 && (1..4).contains(&wanted));
    let same = |has: &[u32], wanted: &[u32]| {
        has.len() == wanted.len() && has.iter().zip(wanted).all(|(&has, &wanted)| fits(has, wanted))
    };
    let (wanted, has) = (function.sizes(), &external.parameters[..]);
    let indirect = has.split_first().filter(|(first, _)| **first == 8 && external.result == 4).map(|(_, rest)| rest);
    if mangled {
        if indirect.is_some_and(|rest| rest.len() == wanted.len() && rest.iter().all(|&bytes| bytes == 8)) {
            return Ok(Convention::References);
        }
    } else if same(has, &wanted) && fits(external.result, function.result()) {
        return Ok(Convention::C);
    } else if indirect.is_some_and(|rest| same(rest, &wanted)) {
        return Ok(Convention::Numba);
    } else {
        // Triton's `extern_elementwise` wants a result of every function, and PyTorch's declarations for it have 8 bytes for every integer.
        let roles = function.roles();
        let wide = |(at, &has): (usize, &u32)| fits(has, wanted[at]) || (has == 8 && function.widens(roles[at]));
        let result = external.result == 4 && matches!(function.result(), 0 | 4 | 8);
        if has.len() == wanted.len()
            && has.iter().enumerate().all(wide)
            && (result || fits(external.result, function.result()))
        {
            return Ok(Convention::C);
        }
    }
    let result = match external.result {
        0 => "without a result".to_owned(),
        bytes => format!("with a result of {}", count(bytes, "byte")),
    };
    let passed = if mangled { ", all by reference, behind the address of the result" } else { "" };
    Err(format!(
        "{} is declared with parameters of {has:?} bytes and {result} (PTX line {}); it is {}{passed}",
        external.name,
        external.line,
        function.declaration()
    ))
}
