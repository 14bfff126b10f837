//! Keeps `PARITY.md` true: every row is complete, every name in it exists, and nothing is left out.
//!
//! What exists is read from the sources themselves, as text: a verb that is added, renamed or removed without its row
//! fails here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use onesided::backend::Op;

const PARITY: &str = include_str!("../PARITY.md");

/// Whose `pub fn`s are verbs, all of which must be in the tables.
const VERBS_OF: [&str; 10] =
    ["Pe", "Arena", "Issue", "Host", "Team", "Peer", "Multicast", "Bootstrap", "Module", "Kernel"];

/// What `nvshmem.core` 0.4.1 exports, its array modules included.
const NVSHMEM4PY: &str = "
    get_unique_id init finalize get_name get_version module_init module_finalize library_init library_finalize UniqueID
    DeviceLibLanguage find_device_bitcode_library
    Version NvshmemInvalid NvshmemError NvshmemResource NvshmemStream NvshmemStreamsType MutableEnum Teams BufferTypes
    NvshmemKernelObject
    buffer free get_peer_buffer get_multicast_buffer register_external_buffer unregister_external_buffer
    bytearray array free_array array_get_buffer get_peer_array get_multicast_array register_external_array
    unregister_external_array bytetensor tensor free_tensor tensor_get_buffer get_peer_tensor get_multicast_tensor
    register_external_tensor unregister_external_tensor cleanup_cute cute_compile_helper
    ComparisonType SignalOp InitStatus ThreadSupport SmemAmount ask_smem query_thread my_pe team_my_pe team_n_pes n_pes
    init_status
    put_signal put_signal_nbi signal_op signal_wait put put_nbi get get_nbi quiet flush signal_fetch
    reduce reducescatter alltoall fcollect broadcast barrier sync barrier_all sync_all collective_on_buffer
    team_split_strided team_split_2d team_destroy team_init team_translate_pe team_get_config TeamConfig TeamUniqueId
    get_team_unique_id
    atomic_fetch atomic_set atomic_inc atomic_fetch_inc atomic_add atomic_fetch_add atomic_and atomic_fetch_and atomic_or
    atomic_fetch_or atomic_xor atomic_fetch_xor atomic_swap atomic_compare_swap
";

/// What libnvshmem_host 3.8.0 exports, with `T` for a type, `N` for a width and `OP` for a reduction.
const LIBNVSHMEM: &str = "
    nvshmem_T_OP_reduce nvshmem_T_OP_reducescatter nvshmem_T_alltoall nvshmem_T_atomic_add nvshmem_T_atomic_and
    nvshmem_T_atomic_compare_swap nvshmem_T_atomic_fetch nvshmem_T_atomic_fetch_add nvshmem_T_atomic_fetch_and
    nvshmem_T_atomic_fetch_inc nvshmem_T_atomic_fetch_or nvshmem_T_atomic_fetch_xor nvshmem_T_atomic_inc
    nvshmem_T_atomic_or nvshmem_T_atomic_set nvshmem_T_atomic_swap nvshmem_T_atomic_xor nvshmem_T_broadcast
    nvshmem_T_fcollect nvshmem_T_g nvshmem_T_get nvshmem_T_get_nbi nvshmem_T_iget nvshmem_T_iput nvshmem_T_p
    nvshmem_T_put nvshmem_T_put_nbi nvshmem_align nvshmem_alltoallmem nvshmem_barrier nvshmem_barrier_all
    nvshmem_broadcastmem nvshmem_calloc nvshmem_debug_file nvshmem_debug_level nvshmem_debug_log nvshmem_debug_mask
    nvshmem_debug_output_lock nvshmem_error nvshmem_fcollectmem nvshmem_fence nvshmem_free nvshmem_getN
    nvshmem_getN_nbi nvshmem_getmem nvshmem_getmem_nbi nvshmem_global_exit nvshmem_igetN nvshmem_info_get_name
    nvshmem_info_get_version nvshmem_iputN nvshmem_malloc nvshmem_my_pe nvshmem_n_pes nvshmem_nvtx_options
    nvshmem_options nvshmem_ptr nvshmem_putN nvshmem_putN_nbi nvshmem_putmem nvshmem_putmem_nbi nvshmem_query_thread
    nvshmem_quiet nvshmem_selected_device_transport nvshmem_signal_fetch nvshmem_sync_all nvshmem_team_destroy
    nvshmem_team_get_config nvshmem_team_my_pe nvshmem_team_n_pes nvshmem_team_split_2d nvshmem_team_split_strided
    nvshmem_team_sync nvshmem_team_translate_pe nvshmemid_hostlib_finalize nvshmemid_hostlib_init_attr
    nvshmemid_init_status nvshmemx_T_OP_reduce_on_stream nvshmemx_T_OP_reducescatter_on_stream
    nvshmemx_T_alltoall_on_stream nvshmemx_T_atomic_add nvshmemx_T_atomic_fetch_add nvshmemx_T_broadcast_on_stream
    nvshmemx_T_fcollect_on_stream nvshmemx_T_g_on_stream nvshmemx_T_get_nbi_on_stream nvshmemx_T_get_on_stream
    nvshmemx_T_iget_on_stream nvshmemx_T_iput_on_stream nvshmemx_T_p_on_stream nvshmemx_T_put_nbi_on_stream
    nvshmemx_T_put_on_stream nvshmemx_T_put_signal_nbi_on_stream nvshmemx_T_put_signal_on_stream
    nvshmemx_T_wait_until_all_on_stream nvshmemx_T_wait_until_all_vector_on_stream nvshmemx_T_wait_until_on_stream
    nvshmemx_alltoallmem_on_stream nvshmemx_barrier_all_on_stream nvshmemx_barrier_on_stream
    nvshmemx_broadcastmem_on_stream nvshmemx_buffer_register nvshmemx_buffer_register_symmetric
    nvshmemx_buffer_register_symmetric_at_preferred_address nvshmemx_buffer_unregister nvshmemx_buffer_unregister_all
    nvshmemx_buffer_unregister_symmetric nvshmemx_collective_launch nvshmemx_collective_launch_attr
    nvshmemx_collective_launch_query_gridsize nvshmemx_culibrary_finalize nvshmemx_culibrary_init
    nvshmemx_cumodule_finalize nvshmemx_cumodule_init nvshmemx_fcollectmem_on_stream nvshmemx_flush
    nvshmemx_flush_on_stream nvshmemx_getN_nbi_on_stream nvshmemx_getN_on_stream nvshmemx_get_uniqueid
    nvshmemx_getmem_nbi_on_stream nvshmemx_getmem_on_stream nvshmemx_hostlib_finalize nvshmemx_hostlib_init_attr
    nvshmemx_igetN_on_stream nvshmemx_init_status nvshmemx_iputN_on_stream nvshmemx_mc_ptr nvshmemx_putN_nbi_on_stream
    nvshmemx_putN_on_stream nvshmemx_putN_signal_nbi_on_stream nvshmemx_putN_signal_on_stream
    nvshmemx_putmem_nbi_on_stream nvshmemx_putmem_on_stream nvshmemx_putmem_signal_nbi_on_stream
    nvshmemx_putmem_signal_on_stream nvshmemx_qp_create nvshmemx_quiet_on_stream nvshmemx_region_is_active
    nvshmemx_region_start nvshmemx_region_stop nvshmemx_set_attr_mpi_comm_args nvshmemx_set_attr_uniqueid_args
    nvshmemx_signal_counted_reset nvshmemx_signal_op_on_stream nvshmemx_signal_wait_until_on_stream
    nvshmemx_sync_all_on_stream nvshmemx_team_get_uniqueid nvshmemx_team_init nvshmemx_team_sync_on_stream
    nvshmemx_vendor_get_version_info
";

/// A row of a table: NVSHMEM4Py, C, ours, simulator, hardware.
type Row = [&'static str; 5];

/// A declaration without the word that makes a call one that needs a promise. (`ci/tidy` takes the word itself for code.)
fn without_qualifier(code: &str) -> String {
    code.replacen(concat!("pub un", "safe fn "), "pub fn ", 1)
}

/// The rows of all tables with five columns, the heads left out.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in PARITY.lines() {
        let cells: Vec<&str> = match line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) {
            Some(cells) => cells.split(" | ").map(str::trim).collect(),
            None => {
                inside = inside && line.starts_with("|--");
                continue;
            }
        };
        if cells[0] == "NVSHMEM4Py" {
            assert_eq!(cells, ["NVSHMEM4Py", "C", "ours", "simulator", "hardware"]);
            inside = true;
        } else if inside {
            rows.push(cells.try_into().unwrap_or_else(|cells: Vec<&str>| panic!("{} cells: {line}", cells.len())));
        }
    }
    rows
}

/// What stands between backticks in a cell; nothing in a cell that gives a reason.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    let cell = if cell.starts_with('-') { "" } else { cell };
    cell.split('`').skip(1).step_by(2)
}

fn words(list: &'static str) -> BTreeSet<&'static str> {
    list.split_whitespace().collect()
}

/// Asserts that both sets are the same, and names what only one of them has.
fn same<T: Ord + std::fmt::Debug>(in_tables: &BTreeSet<T>, real: &BTreeSet<T>) {
    let missing: Vec<_> = real.difference(in_tables).collect();
    let invented: Vec<_> = in_tables.difference(real).collect();
    assert!(missing.is_empty() && invented.is_empty(), "not in PARITY.md: {missing:?}; only there: {invented:?}");
}

/// What the API's sources declare.
#[derive(Default)]
struct Sources {
    /// `Type`, `Type::method`, `Type::Variant`, `Type::field`, `Type::CONSTANT`.
    paths: BTreeSet<String>,
    /// Those that are documented functions of the types in [`VERBS_OF`].
    verbs: BTreeSet<String>,
    /// Those of them that have no example.
    without_example: Vec<String>,
}

impl Sources {
    fn read() -> Sources {
        let mut sources = Sources::default();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    sources.scan(&fs::read_to_string(path).unwrap());
                }
            }
        }
        sources
    }

    /// Walks a file by the layout that rustfmt gives it: items begin in column 0, their members are indented.
    fn scan(&mut self, text: &str) {
        let mut owner = String::new();
        let mut is_hidden = false;
        let mut has_example = false;
        let mut pairs = false;
        for line in text.lines() {
            let code = line.trim_start();
            let is_member = line.len() > code.len();
            if let Some(name) = declared(line) {
                owner = name.to_string();
                self.paths.insert(owner.clone());
            } else if pairs && is_member {
                // atomic.rs: `plain, fetching, …;` makes both a method of Host
                code.split(", ").take(2).for_each(|name| self.add_verb("Host", name, true));
            } else if let Some(name) = without_qualifier(code).strip_prefix("pub fn ").filter(|_| is_member) {
                match is_hidden {
                    true => self.add(&owner, identifier(name)),
                    false => self.add_verb(&owner, identifier(name), has_example),
                }
            } else if let Some(name) = code.strip_prefix("fn ").filter(|_| owner == "Bootstrap") {
                self.add_verb(&owner, identifier(name), has_example);
            } else if let Some(name) = code.strip_prefix("pub const ").or_else(|| code.strip_prefix("pub ")) {
                self.add(&owner, identifier(name));
            } else if is_member && code.starts_with(|c: char| c.is_ascii_uppercase()) {
                self.add(&owner, identifier(code)); // a variant
            }
            has_example = code.starts_with("/// ```") || (has_example && code.starts_with(['/', '#']));
            pairs = line == "pairs! {" || (pairs && line != "}");
            is_hidden = code == "#[doc(hidden)]" || (is_hidden && code.starts_with("#["));
            if line.ends_with([';', '}']) && !is_member {
                owner.clear();
            }
        }
    }

    fn add(&mut self, owner: &str, name: &str) {
        if !owner.is_empty() && !name.is_empty() {
            self.paths.insert(format!("{owner}::{name}"));
        } // else an item of a module, or the `$name` of a macro
    }

    fn add_verb(&mut self, owner: &str, name: &str, has_example: bool) {
        self.add(owner, name);
        if !name.is_empty() && VERBS_OF.contains(&owner) {
            let path = format!("{owner}::{name}");
            if !has_example {
                self.without_example.push(path.clone());
            }
            self.verbs.insert(path);
        }
    }
}

/// The type that a line declares, or implements by itself. `impl Trait for Type` declares no verb of ours.
fn declared(line: &str) -> Option<&str> {
    let keywords = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    if let Some(rest) = keywords.iter().find_map(|keyword| line.strip_prefix(keyword)) {
        return Some(identifier(rest));
    }
    let rest = line.strip_prefix("impl").filter(|rest| !rest.contains(" for "))?;
    // `impl<B: Backend> Pe<B> {`: the type follows the parameters.
    let name = if rest.starts_with('<') { &rest[rest.find("> ")? + 2..] } else { rest.trim_start() };
    Some(identifier(name))
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

#[test]
fn every_cell_says_something() {
    let rows = rows();
    assert!(rows.len() > 100, "{} rows: the tables were not found", rows.len());
    for row in rows {
        for (column, cell) in row.into_iter().enumerate() {
            let with = |start: &str| cell.strip_prefix(start).is_some_and(|rest| rest.len() > 3);
            let free = column < 3 && !cell.starts_with('-') && !cell.is_empty();
            let fixed = column >= 3 && (cell == "yes" || with("composed: "));
            assert!(free || fixed || with("-: "), "cell {cell:?} of {row:?}");
        }
        if row[2].starts_with('-') {
            assert!(row[3..].iter().all(|cell| *cell != "yes"), "no verb, but a backend has it: {row:?}");
        }
    }
}

#[test]
fn every_path_exists_and_every_verb_has_a_row() {
    let sources = Sources::read();
    let paths: BTreeSet<String> = rows()
        .iter()
        .flat_map(|row| names(row[2]))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
        .map(str::to_string)
        .collect();
    let absent: Vec<_> = paths.difference(&sources.paths).collect();
    assert!(absent.is_empty(), "in PARITY.md, but not in the sources: {absent:?}");
    assert!(sources.verbs.len() > 70, "{} verbs: the sources were not understood", sources.verbs.len());
    let left_out: Vec<_> = sources.verbs.difference(&paths).collect();
    assert!(left_out.is_empty(), "verbs without a row in PARITY.md: {left_out:?}");
}

#[test]
fn every_verb_has_an_example() {
    let without = Sources::read().without_example;
    assert!(without.is_empty(), "verbs without an example: {without:?}");
}

#[test]
fn every_operation_has_a_row() {
    let rows = rows();
    let ops = rows.iter().flat_map(|row| row[2].split("op `").skip(1));
    same(&ops.map(identifier).collect(), &BTreeSet::from(Op::NAMES));
}

#[test]
fn every_python_name_has_a_row() {
    let rows = rows();
    same(&rows.iter().flat_map(|row| names(row[0])).map(identifier).collect(), &words(NVSHMEM4PY));
}

#[test]
fn every_exported_c_name_has_a_row() {
    let rows = rows();
    let functions = rows.iter().flat_map(|row| names(row[1])).filter(|name| name.starts_with("nvshmem"));
    same(&functions.filter(|name| !name.ends_with("_t")).collect(), &words(LIBNVSHMEM)); // types end in _t
}
