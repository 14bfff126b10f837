//! The element types in names of device functions, and which operations NVSHMEM has for which type.

use onesided::DType;

/// A type as it stands in a name: `float` in `nvshmem_float_put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedType {
    /// The name.
    pub(crate) name: &'static str,
    /// What it is. `long` has 64 bits on every platform of CUDA that NVSHMEM runs on.
    pub(crate) dtype: DType,
}

/// The operations that come with the same types. Each stands for one of the tables in NVSHMEM's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Puts, gets and the collectives that move: every type.
    Moving,
    /// Arithmetic reductions.
    Reducing,
    /// Bitwise reductions.
    ReducingBits,
    /// Waits and tests.
    Waiting,
    /// Atomic fetch, set and swap.
    Swapping,
    /// Atomic compare-and-swap, increment and add.
    Adding,
    /// Atomic and, or and exclusive or.
    Masking,
}

/// Every type, with the families that have it. A test compares it with the headers for kernels, and with the API's reductions.
pub(super) const TYPES: &[(&str, DType, &[Family])] = {
    use Family::{Adding, Masking, Moving, Reducing, ReducingBits, Swapping, Waiting};
    const MASKED: &[Family] = &[Moving, Reducing, ReducingBits, Waiting, Swapping, Adding, Masking];
    const COUNTED: &[Family] = &[Moving, Reducing, Waiting, Swapping, Adding];
    const SMALL: &[Family] = &[Moving, Reducing, ReducingBits];
    const FLOAT: &[Family] = &[Moving, Reducing, Swapping];
    &[
        ("char", DType::I8, &[Moving, Reducing]),
        ("schar", DType::I8, &[Moving, Reducing]),
        ("uchar", DType::U8, SMALL),
        ("short", DType::I16, &[Moving, Reducing, Waiting]),
        ("ushort", DType::U16, &[Moving, Reducing, ReducingBits, Waiting]),
        ("int", DType::I32, COUNTED),
        ("uint", DType::U32, MASKED),
        ("long", DType::I64, COUNTED),
        ("ulong", DType::U64, MASKED),
        ("longlong", DType::I64, COUNTED),
        ("ulonglong", DType::U64, MASKED),
        ("int8", DType::I8, SMALL),
        ("int16", DType::I16, SMALL),
        ("int32", DType::I32, MASKED),
        ("int64", DType::I64, MASKED),
        ("uint8", DType::U8, SMALL),
        ("uint16", DType::U16, SMALL),
        ("uint32", DType::U32, MASKED),
        ("uint64", DType::U64, MASKED),
        ("size", DType::U64, &[Moving, Reducing, ReducingBits, Waiting, Swapping, Adding]),
        ("ptrdiff", DType::I64, &[Moving, Waiting, Swapping, Adding]),
        ("half", DType::F16, FLOAT),
        ("bfloat16", DType::BF16, &[Moving, Reducing]),
        ("float", DType::F32, FLOAT),
        ("double", DType::F64, FLOAT),
    ]
};

/// The type of this name.
pub(crate) fn named(name: &str) -> Option<NamedType> {
    TYPES.iter().find(|(known, ..)| *known == name).map(|&(name, dtype, _)| NamedType { name, dtype })
}

/// Whether a family has the type.
pub(crate) fn has(family: Family, name: &str) -> bool {
    TYPES.iter().any(|(known, _, families)| *known == name && families.contains(&family))
}

/// The names of a family's types, for an error.
pub(crate) fn names(family: Family) -> String {
    let names = TYPES.iter().filter(|(_, _, families)| families.contains(&family)).map(|&(name, ..)| name);
    names.collect::<Vec<_>>().join(", ")
}
