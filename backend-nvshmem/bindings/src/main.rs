//! Writes onesided-nvshmem's `bindings.rs` from the headers of NVSHMEM: `onesided-bindings INCLUDE_FOLDER FILE`.

mod names;

/// What stands above bindgen's text. The lints are those of hand-written code.
const HEADER: &str = "\
//! Generated from NVSHMEM's host headers by `ci/bindings --write`, which also checks it; not to be edited.

#![allow(
    dead_code,
    missing_debug_implementations,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unreachable_pub,
    unsafe_code,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::type_complexity,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_errors_doc
)]";

const TYPES: [&str; 9] = [
    "flags",
    "nvshmemi_cmp_type",
    "nvshmemi_thread_support",
    "nvshmemx_init_attr_t",
    "nvshmemx_init_status_t",
    "nvshmemx_signal_op_t",
    "nvshmemx_status",
    "nvshmem_team_config_t",
    "nvshmem_team_id_t",
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let include = arguments.next().expect("include");
    let out = arguments.next().expect("out");
    let stubs = concat!(env!("CARGO_MANIFEST_DIR"), "/stubs");
    let mut builder = bindgen::Builder::default()
        .header(format!("{include}/nvshmem_host.h"))
        .clang_args(["-x", "c++", "-std=c++17", "-isystem", stubs, "-I", &include])
        .raw_line(HEADER)
        .disable_header_comment()
        .dynamic_library_name("Functions")
        .dynamic_link_require_all(false)
        .wrap_unsafe_ops(true)
        .rust_target(bindgen::RustTarget::stable(85, 0).ok().expect("known"))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .formatter(bindgen::Formatter::Prettyplease)
        .prepend_enum_name(false)
        .generate_comments(false)
        .sort_semantically(true);
    for name in names::curated() {
        builder = builder.allowlist_function(format!("^{name}$"));
    }
    for name in TYPES {
        builder = builder.allowlist_type(format!("^{name}$"));
    }
    builder = builder.allowlist_var("^NVSHMEM_TEAM_CONFIG_MASK_.*$").allowlist_var("^NVSHMEM_MAX_NAME_LEN$");
    builder.generate().expect("generate").write_to_file(out).expect("write");
}
