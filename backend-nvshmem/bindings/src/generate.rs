//! Runs bindgen over NVSHMEM's host headers.

use std::path::{Path, PathBuf};

use bindgen::{Builder, Formatter, RustEdition, RustTarget};

/// Stands above bindgen's text, which does not follow the rules for code written by hand.
const HEADER: &str = "\
//! The functions of libnvshmem_host that this crate calls, with their types and constants. A library that lacks a
//! function can be used: the field of that function is then an error.
//!
//! Generated from NVSHMEM's headers by `ci/bindings --write`, and compared with them by `ci/bindings`.

#![allow(
    dead_code,
    missing_debug_implementations,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unreachable_pub,
    unsafe_code,
    clippy::missing_errors_doc,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::type_complexity,
    clippy::undocumented_unsafe_blocks
)]";

/// Enums and structs. bindgen adds what they are made of, and what the functions mention.
const TYPES: [&str; 9] = [
    "flags", // of initialization
    "nvshmem_team_config_t",
    "nvshmem_team_id_t",
    "nvshmemi_cmp_type",
    "nvshmemi_thread_support",
    "nvshmemx_init_attr_t",
    "nvshmemx_init_status_t",
    "nvshmemx_signal_op_t",
    "nvshmemx_status",
];

const CONSTANTS: [&str; 3] =
    ["NVSHMEM_MAX_NAME_LEN", "NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS", "NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID"];

/// The table of these functions, as Rust's text, from the headers in `include` of the folder, and CUDA's, which they
/// include, in the folders `cuda`. A function that the headers do not declare is left out.
pub(crate) fn table(folder: &Path, cuda: &[PathBuf], functions: &[String]) -> Result<String, String> {
    let include = folder.join("include");
    let header = include.join("nvshmem_host.h");
    // The headers are C++ only. The edition of 2024 came with Rust 1.85.
    let target = RustTarget::stable(85, 0).map_err(|_| "bindgen does not know Rust 1.85")?;
    let mut builder = Builder::default()
        .header(header.to_string_lossy())
        .clang_args(["-x", "c++", "-std=c++17", "-I", &include.to_string_lossy()])
        // As a system's: what clang would warn of in them is not ours to change.
        .clang_args(cuda.iter().map(|folder| format!("-isystem{}", folder.display())))
        .rust_target(target)
        .rust_edition(RustEdition::Edition2024)
        .formatter(Formatter::Prettyplease)
        .disable_header_comment()
        .raw_line(HEADER)
        .dynamic_library_name("Functions")
        .dynamic_link_require_all(false)
        .wrap_unsafe_ops(true)
        .prepend_enum_name(false)
        .generate_comments(false)
        .sort_semantically(true);
    for name in functions {
        builder = builder.allowlist_function(name);
    }
    for name in TYPES {
        builder = builder.allowlist_type(name);
    }
    for name in CONSTANTS {
        builder = builder.allowlist_var(name);
    }
    builder.generate().map(|bindings| bindings.to_string()).map_err(|error| format!("{}: {error}", header.display()))
}
