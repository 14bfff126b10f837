//! The functions that the backend calls, by name.
//!
//! Most are in the table of bindings. The reductions of a form all have the same shape, so the table has one reduction of each
//! form. The backend finds the others by name.

/// Widths, in bits, of the elements that are moved one by one.
const WIDTHS: [u32; 4] = [8, 16, 32, 64];

/// The types whose waits the backend uses. The types of 16 bits have no name with a number.
const WAITS: [&str; 6] = ["short", "int32", "int64", "ushort", "uint32", "uint64"];

const FIXED: &[&str] = &[
    // From start to end.
    "nvshmemx_get_uniqueid",
    "nvshmemx_set_attr_uniqueid_args",
    "nvshmemx_set_attr_mpi_comm_args",
    "nvshmemx_hostlib_init_attr",
    "nvshmemx_hostlib_finalize",
    "nvshmemx_init_status",
    "nvshmem_query_thread",
    "nvshmem_global_exit",
    "nvshmem_info_get_version",
    "nvshmemx_vendor_get_version_info",
    // Memory.
    "nvshmem_malloc",
    "nvshmem_calloc",
    "nvshmem_align",
    "nvshmem_free",
    "nvshmem_ptr",
    "nvshmemx_buffer_register",
    "nvshmemx_buffer_unregister",
    "nvshmemx_buffer_register_symmetric",
    "nvshmemx_buffer_unregister_symmetric",
    // Teams.
    "nvshmem_team_my_pe",
    "nvshmem_team_n_pes",
    "nvshmem_team_translate_pe",
    "nvshmem_team_split_strided",
    "nvshmem_team_split_2d",
    "nvshmem_team_destroy",
    "nvshmemx_team_get_uniqueid",
    "nvshmemx_team_init",
    // Blocks of bytes.
    "nvshmem_putmem",
    "nvshmem_getmem",
    "nvshmem_putmem_nbi",
    "nvshmem_getmem_nbi",
    "nvshmemx_putmem_on_stream",
    "nvshmemx_getmem_on_stream",
    "nvshmemx_putmem_nbi_on_stream",
    "nvshmemx_getmem_nbi_on_stream",
    // Signals.
    "nvshmemx_putmem_signal_on_stream",
    "nvshmemx_putmem_signal_nbi_on_stream",
    "nvshmemx_signal_op_on_stream",
    "nvshmemx_signal_wait_until_on_stream",
    // Order.
    "nvshmem_quiet",
    "nvshmemx_flush",
    "nvshmemx_quiet_on_stream",
    "nvshmemx_flush_on_stream",
    // Collectives.
    "nvshmem_barrier",
    "nvshmem_barrier_all",
    "nvshmem_team_sync",
    "nvshmemx_barrier_on_stream",
    "nvshmemx_barrier_all_on_stream",
    "nvshmemx_team_sync_on_stream",
    "nvshmem_broadcastmem",
    "nvshmem_fcollectmem",
    "nvshmem_alltoallmem",
    "nvshmemx_broadcastmem_on_stream",
    "nvshmemx_fcollectmem_on_stream",
    "nvshmemx_alltoallmem_on_stream",
    // Of the reductions one of each form.
    "nvshmem_int32_sum_reduce",
    "nvshmemx_int32_sum_reduce_on_stream",
    "nvshmem_int32_sum_reducescatter",
    "nvshmemx_int32_sum_reducescatter_on_stream",
];

/// The functions of the table that only newer libraries have: 3.4.5 lacks them, 3.7 has them.
pub(crate) const LATER: [&str; 2] = ["nvshmemx_flush", "nvshmemx_flush_on_stream"];

/// Every function of the table.
pub(crate) fn curated() -> Vec<String> {
    let moves = WIDTHS.iter().flat_map(|width| {
        [
            format!("nvshmem_uint{width}_p"),
            format!("nvshmem_uint{width}_g"),
            format!("nvshmemx_uint{width}_p_on_stream"),
            format!("nvshmem_iput{width}"),
            format!("nvshmem_iget{width}"),
            format!("nvshmemx_iput{width}_on_stream"),
            format!("nvshmemx_iget{width}_on_stream"),
        ]
    });
    let waits = WAITS
        .iter()
        .flat_map(|name| ["", "_all", "_all_vector"].map(|form| format!("nvshmemx_{name}_wait_until{form}_on_stream")));
    FIXED.iter().map(|name| name.to_string()).chain(moves).chain(waits).collect()
}

/// A reduction that the backend finds by name.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// Its name in the library.
    pub(crate) name: String,
    /// The element, as bindgen writes it.
    pub(crate) element: String,
    /// The function of the table whose shape it has.
    pub(crate) representative: String,
}

/// NVSHMEM's names of the integers, and bindgen's.
const INTEGERS: [(&str, &str); 8] = [
    ("int8", "i8"),
    ("int16", "i16"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("uint8", "u8"),
    ("uint16", "u16"),
    ("uint32", "u32"),
    ("uint64", "u64"),
];
const FLOATS: [(&str, &str); 4] =
    [("half", "half"), ("bfloat16", "__nv_bfloat16"), ("float", "f32"), ("double", "f64")];
/// Prefix and suffix of a name.
const FORMS: [(&str, &str); 4] = [
    ("nvshmem", "reduce"),
    ("nvshmemx", "reduce_on_stream"),
    ("nvshmem", "reducescatter"),
    ("nvshmemx", "reducescatter_on_stream"),
];
const OF_ALL: [&str; 4] = ["sum", "prod", "min", "max"];
const OF_INTEGERS: [&str; 3] = ["and", "or", "xor"];

/// All reductions: 72 pairs of an element and an operator, in four forms.
pub(crate) fn reductions() -> Vec<Reduction> {
    let every = INTEGERS.iter().chain(&FLOATS).flat_map(|pair| OF_ALL.map(|op| (pair, op)));
    let bitwise = INTEGERS.iter().flat_map(|pair| OF_INTEGERS.map(|op| (pair, op)));
    let pairs: Vec<_> = every.chain(bitwise).collect();
    FORMS
        .iter()
        .flat_map(|(prefix, form)| {
            pairs.iter().map(move |((name, element), op)| Reduction {
                name: format!("{prefix}_{name}_{op}_{form}"),
                element: element.to_string(),
                representative: format!("{prefix}_int32_sum_{form}"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let curated: BTreeSet<String> = curated().into_iter().collect();
        assert_eq!(curated.len(), super::curated().len());
        let reductions: BTreeSet<String> = reductions().into_iter().map(|reduction| reduction.name).collect();
        assert_eq!(reductions.len(), 288);
        assert_eq!(reductions.intersection(&curated).count(), 4); // one of each form
        assert!(LATER.iter().all(|name| curated.contains(*name)));
    }
}
