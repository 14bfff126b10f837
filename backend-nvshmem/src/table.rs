//! [`Table`]: the functions of the library that was loaded, by name and version.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

use onesided::backend::{AllocId, Op, Span, TeamId};
use onesided::{At, DType, Error, ErrorKind, ReduceOp};

use crate::bindings::{Functions, cudaStream_t, nvshmem_team_t};
use crate::kernels::ModuleCall;
use crate::library::Library;
use crate::problem::{ANOTHER_LIBRARY, Problem};

/// `int nvshmem_T_OP_reduce(team, T*, const T*, size_t)` and the same for `reducescatter`: one shape for all types.
pub(crate) type HostReduction = unsafe extern "C" fn(nvshmem_team_t, *mut c_void, *const c_void, usize) -> c_int;
/// The same on a stream.
pub(crate) type StreamReduction =
    unsafe extern "C" fn(nvshmem_team_t, *mut c_void, *const c_void, usize, cudaStream_t) -> c_int;

/// The versions that this crate was tested with: the first and the last.
pub(crate) const TESTED: [[i32; 3]; 2] = [[3, 4, 5], [3, 8, 0]];

/// The functions of a loaded library. If the library lacks a function, only a call of it is an error.
pub(crate) struct Table {
    pub(crate) functions: Functions,
    pub(crate) version: [i32; 3],
    pub(crate) file: PathBuf,
    reductions: [Reductions; 2],
    /// `nvshmemx_cumodule_init`, and `_finalize`.
    pub(crate) module_init: Option<ModuleCall>,
    pub(crate) module_finalize: Option<ModuleCall>,
}

/// Which part of the result a reduction leaves on each PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Everything.
    Reduce,
    /// One block.
    ReduceScatter,
}

/// The arguments that `reduce` and `reducescatter` have in common.
#[derive(Clone, Copy)]
pub(crate) struct Reduction {
    pub(crate) form: Form,
    pub(crate) team: TeamId,
    pub(crate) dst: Span,
    pub(crate) src: Span,
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
}

impl Reduction {
    /// A reduction of single words over the world, for the backend's own use. Only its function is looked up.
    pub(crate) fn of_words(dtype: DType, op: ReduceOp) -> Reduction {
        let nothing = Span { alloc: AllocId(0), start: 0, len: 0 };
        Reduction { form: Form::Reduce, team: TeamId(0), dst: nothing, src: nothing, dtype, op }
    }

    /// The operation as a reduction, if it is one.
    #[inline]
    pub(crate) fn of(op: &Op) -> Option<Reduction> {
        let (form, team, dst, src, dtype, op) = match op {
            Op::Reduce { team, dst, src, dtype, op } => (Form::Reduce, team, dst, src, dtype, op),
            Op::ReduceScatter { team, dst, src, dtype, op } => (Form::ReduceScatter, team, dst, src, dtype, op),
            _ => return None,
        };
        Some(Reduction { form, team: *team, dst: *dst, src: *src, dtype: *dtype, op: *op })
    }
}

struct Reductions {
    host: ByTypeAndOperator<HostReduction>,
    stream: ByTypeAndOperator<StreamReduction>,
}

type ByTypeAndOperator<F> = [[Option<F>; ReduceOp::ALL.len()]; DType::ALL.len()];

impl Table {
    /// Looks up the functions of an open library. The library is never closed, because it starts threads.
    ///
    /// # Errors
    /// [`Problem::Version`] if the library has another major version, or is older than the first that was tested.
    pub(crate) fn new(library: Library) -> Result<&'static Table, Problem> {
        let (version, file) = (library.nvshmem_version()?, library.file().to_path_buf());
        check_version(version, &file)?;
        let reductions = [Form::Reduce, Form::ReduceScatter].map(|form| Reductions {
            // SAFETY: every `nvshmem_T_OP_reduce` and `…_reducescatter` of the headers has this shape; the gate
            // `ci/bindings` compares them all.
            host: unsafe { by_type_and_operator(&library, form, "nvshmem", "") },
            // SAFETY: as above.
            stream: unsafe { by_type_and_operator(&library, form, "nvshmemx", "_on_stream") },
        });
        // SAFETY: both are `int (CUmodule)`, a pointer, in nvshmemx_api.h 3.4 to 3.8.
        let [module_init, module_finalize] = ["nvshmemx_cumodule_init", "nvshmemx_cumodule_finalize"]
            .map(|name| unsafe { library.function::<ModuleCall>(name) }.ok());
        // SAFETY: the bindings were generated from this library's headers, versions 3.4 to 3.8.
        let functions = unsafe { Functions::from_library(library.into_handle()) }
            .map_err(|error| Problem::Failed { call: "dlsym".to_string(), why: error.to_string() })?;
        Ok(Box::leak(Box::new(Table { functions, version, file, reductions, module_init, module_finalize })))
    }

    /// Checks that the library has what every PE needs to begin and to end. What only some operations need is checked when
    /// they are called.
    ///
    /// # Errors
    /// [`Problem::Failed`] with the first function that is missing.
    pub(crate) fn check_complete(&self) -> Result<(), Problem> {
        macro_rules! needs {
            ($($name:ident)*) => {
                $(if self.functions.$name.is_err() { return Err(self.absent(stringify!($name))); })*
            };
        }
        needs!(nvshmemx_init_status nvshmemx_hostlib_init_attr nvshmemx_hostlib_finalize);
        needs!(nvshmem_team_my_pe nvshmem_team_n_pes nvshmem_team_translate_pe);
        Ok(())
    }

    /// The problem of a function that this library lacks, before there is a PE.
    pub(crate) fn absent(&self, symbol: &str) -> Problem {
        let file = self.file.display();
        let why = format!("{file} does not export it; remedy: {ANOTHER_LIBRARY}");
        Problem::Failed { call: symbol.to_string(), why }
    }

    /// The library's version, as text.
    pub(crate) fn version_text(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// The error of a call whose function this library lacks.
    #[cold]
    pub(crate) fn missing(&self, symbol: &str, call: &'static str, at: At) -> Error {
        let message = format!("libnvshmem_host {} has no {symbol} ({})", self.version_text(), self.file.display());
        Error::new(ErrorKind::Unsupported, call, message, at)
    }

    /// The error of a reduction that this library lacks.
    #[cold]
    pub(crate) fn missing_reduction(&self, reduction: &Reduction, prefix: &str, suffix: &str, at: At) -> Error {
        let Reduction { form, dtype, op, .. } = *reduction;
        self.missing(&reduction_name(prefix, form, dtype, op, suffix), form.name(), at)
    }

    /// The host form of a reduction.
    #[inline]
    pub(crate) fn host_reduction(&self, reduction: &Reduction) -> Option<HostReduction> {
        self.reductions[reduction.form as usize].host[reduction.dtype as usize][reduction.op as usize]
    }

    /// The stream form of a reduction.
    #[inline]
    pub(crate) fn stream_reduction(&self, reduction: &Reduction) -> Option<StreamReduction> {
        self.reductions[reduction.form as usize].stream[reduction.dtype as usize][reduction.op as usize]
    }
}

/// A function of the table. If the library lacks it, returns the error that names it from the method.
macro_rules! function {
    ($table:expr, $name:ident, $call:expr, $at:expr) => {
        match &$table.functions.$name {
            Ok(function) => *function,
            Err(_) => return Err($table.missing(stringify!($name), $call, $at)),
        }
    };
}
pub(crate) use function;

/// Calls a function of the library for an operation. If the library lacks it, returns an error from the method; only then is the
/// operation's name (`call`) looked up.
macro_rules! call_of {
    ($table:expr, $call:expr, $at:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let f = function!($table, $name, $call, $at);
        // SAFETY: the addresses come from `Memory`, which asserts that each operand lies inside a living allocation;
        // `Pe` checked PE numbers, lengths and teams. A stream is alive and of the context that is bound.
        unsafe { f($($argument),*) }
    }};
}
pub(crate) use call_of;

/// Calls (`call!`) the function for elements of this size, among those for 1, 2, 4 and 8 bytes.
macro_rules! by_size {
    ($size:expr, $call:ident![$one:ident $two:ident $four:ident $eight:ident] $arguments:tt) => {
        match $size {
            1 => $call!($one $arguments),
            2 => $call!($two $arguments),
            4 => $call!($four $arguments),
            _ => $call!($eight $arguments),
        }
    };
}
pub(crate) use by_size;

/// Refuses a library of a version that the bindings do not describe.
fn check_version(version: [i32; 3], file: &Path) -> Result<(), Problem> {
    let [major, minor, patch] = version;
    let [first, last] = TESTED;
    let why = if major != first[0] {
        format!(
            "version {major}.{minor}.{patch} is of another major version; this program needs 3.{} or later",
            first[1]
        )
    } else if version < [first[0], first[1], 0] {
        format!("version {major}.{minor}.{patch} is too old; this program needs 3.{} to 3.{}", first[1], last[1])
    } else {
        return Ok(());
    };
    Err(Problem::Version { file: file.to_path_buf(), why })
}

/// Looks up `PREFIX_TYPE_OPERATOR_FORM SUFFIX` for every type and operator.
///
/// # Safety
/// `F` must be the type of all of these functions.
unsafe fn by_type_and_operator<F: Copy>(
    library: &Library,
    form: Form,
    prefix: &str,
    suffix: &str,
) -> ByTypeAndOperator<F> {
    DType::ALL.map(|dtype| {
        ReduceOp::ALL.map(|op| {
            let name = reduction_name(prefix, form, dtype, op, suffix);
            // SAFETY: the caller's promise.
            unsafe { library.function::<F>(&name) }.ok()
        })
    })
}

fn reduction_name(prefix: &str, form: Form, dtype: DType, op: ReduceOp, suffix: &str) -> String {
    format!("{prefix}_{}_{}_{}{suffix}", c_name(dtype), op.name(), form.name())
}

impl Form {
    /// NVSHMEM's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Reduce => "reduce",
            Form::ReduceScatter => "reducescatter",
        }
    }
}

/// NVSHMEM's name of a type in its functions' names.
pub(crate) fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::F16 => "half",
        DType::BF16 => "bfloat16",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libnvshmem_host {} ({})", self.version_text(), self.file.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_indexed_by_place() {
        assert!(DType::ALL.iter().enumerate().all(|(place, dtype)| *dtype as usize == place));
        assert!(ReduceOp::ALL.iter().enumerate().all(|(place, op)| *op as usize == place));
    }

    #[test]
    fn versions_outside_the_range_are_refused_with_the_range() {
        let check = |version| {
            let refused = check_version(version, Path::new("lib"));
            refused.map_err(|problem| {
                assert!(matches!(problem, Problem::Version { .. }), "{problem:?}"); // has a remedy of its own
                problem.to_string()
            })
        };
        assert!(check([3, 4, 0]).is_ok() && check([3, 8, 0]).is_ok() && check([3, 9, 1]).is_ok());
        assert!(check([3, 3, 24]).unwrap_err().contains("3.3.24 is too old"));
        assert!(check([2, 11, 0]).unwrap_err().contains("another major version"));
        assert!(check([4, 0, 0]).unwrap_err().contains("another major version"));
    }
}
