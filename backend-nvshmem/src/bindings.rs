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
)]

pub type cudaStream_t = *mut CUstream_st;
pub type nvshmemx_signal_op_t = ::std::os::raw::c_uint;
pub type nvshmemx_uniqueid_t = nvshmemx_uniqueid_v1;
pub type nvshmemx_uniqueid_args_t = nvshmemx_uniqueid_args_v1;
pub type nvshmemx_team_uniqueid_t = u64;
pub type nvshmem_team_t = i32;
pub type nvshmemx_init_args_t = nvshmemx_init_args_v2;
pub type nvshmemx_init_attr_t = nvshmemx_init_attr_v2;
pub type nvshmem_team_config_t = nvshmem_team_config_v2;
pub type nvshmemi_cmp_type = ::std::os::raw::c_uint;
pub type nvshmemi_thread_support = ::std::os::raw::c_uint;
pub type nvshmemx_init_status_t = ::std::os::raw::c_uint;
pub type nvshmem_team_id_t = ::std::os::raw::c_int;
pub type nvshmemx_status = ::std::os::raw::c_uint;
pub type flags = ::std::os::raw::c_int;
#[repr(C)]
#[derive(Debug)]
pub struct CUstream_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvshmemx_uniqueid_v1 {
    pub version: ::std::os::raw::c_int,
    pub internal: [::std::os::raw::c_char; 124usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvshmemx_uniqueid_args_v1 {
    pub version: ::std::os::raw::c_int,
    pub id: *mut nvshmemx_uniqueid_v1,
    pub myrank: ::std::os::raw::c_int,
    pub nranks: ::std::os::raw::c_int,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvshmemx_init_args_v2 {
    pub version: ::std::os::raw::c_int,
    pub uid_args: nvshmemx_uniqueid_args_t,
    pub cuda_device_id: ::std::os::raw::c_int,
    pub content: [::std::os::raw::c_char; 92usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvshmemx_init_attr_v2 {
    pub version: ::std::os::raw::c_int,
    pub mpi_comm: *mut ::std::os::raw::c_void,
    pub args: nvshmemx_init_args_t,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvshmem_team_config_v2 {
    pub version: ::std::os::raw::c_int,
    pub num_contexts: ::std::os::raw::c_int,
    pub uniqueid: nvshmemx_team_uniqueid_t,
    pub padding: [::std::os::raw::c_char; 48usize],
}
pub struct Functions {
    __library: ::libloading::Library,
    pub nvshmem_alltoallmem: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut ::std::os::raw::c_void,
            src: *const ::std::os::raw::c_void,
            nelems: usize,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_barrier: Result<
        unsafe extern "C" fn(team: nvshmem_team_t) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_barrier_all: Result<unsafe extern "C" fn(), ::libloading::Error>,
    pub nvshmem_team_sync: Result<
        unsafe extern "C" fn(team: nvshmem_team_t) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_broadcastmem: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut ::std::os::raw::c_void,
            src: *const ::std::os::raw::c_void,
            nelems: usize,
            PE_root: ::std::os::raw::c_int,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_fcollectmem: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut ::std::os::raw::c_void,
            src: *const ::std::os::raw::c_void,
            nelems: usize,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_int32_sum_reduce: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut i32,
            src: *const i32,
            nreduce: usize,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_int32_sum_reducescatter: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut i32,
            src: *const i32,
            nreduce: usize,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_init_status: Result<
        unsafe extern "C" fn() -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_query_thread: Result<
        unsafe extern "C" fn(provided: *mut ::std::os::raw::c_int),
        ::libloading::Error,
    >,
    pub nvshmem_global_exit: Result<
        unsafe extern "C" fn(status: ::std::os::raw::c_int),
        ::libloading::Error,
    >,
    pub nvshmem_info_get_version: Result<
        unsafe extern "C" fn(
            major: *mut ::std::os::raw::c_int,
            minor: *mut ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_vendor_get_version_info: Result<
        unsafe extern "C" fn(
            major: *mut ::std::os::raw::c_int,
            minor: *mut ::std::os::raw::c_int,
            patch: *mut ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_malloc: Result<
        unsafe extern "C" fn(size: usize) -> *mut ::std::os::raw::c_void,
        ::libloading::Error,
    >,
    pub nvshmem_calloc: Result<
        unsafe extern "C" fn(arg1: usize, arg2: usize) -> *mut ::std::os::raw::c_void,
        ::libloading::Error,
    >,
    pub nvshmem_align: Result<
        unsafe extern "C" fn(arg1: usize, arg2: usize) -> *mut ::std::os::raw::c_void,
        ::libloading::Error,
    >,
    pub nvshmem_free: Result<
        unsafe extern "C" fn(ptr: *mut ::std::os::raw::c_void),
        ::libloading::Error,
    >,
    pub nvshmem_ptr: Result<
        unsafe extern "C" fn(
            ptr: *const ::std::os::raw::c_void,
            pe: ::std::os::raw::c_int,
        ) -> *mut ::std::os::raw::c_void,
        ::libloading::Error,
    >,
    pub nvshmem_uint8_p: Result<
        unsafe extern "C" fn(dest: *mut u8, value: u8, pe: ::std::os::raw::c_int),
        ::libloading::Error,
    >,
    pub nvshmem_uint16_p: Result<
        unsafe extern "C" fn(dest: *mut u16, value: u16, pe: ::std::os::raw::c_int),
        ::libloading::Error,
    >,
    pub nvshmem_uint32_p: Result<
        unsafe extern "C" fn(dest: *mut u32, value: u32, pe: ::std::os::raw::c_int),
        ::libloading::Error,
    >,
    pub nvshmem_uint64_p: Result<
        unsafe extern "C" fn(dest: *mut u64, value: u64, pe: ::std::os::raw::c_int),
        ::libloading::Error,
    >,
    pub nvshmem_putmem: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iput8: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iput16: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iput32: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iput64: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_putmem_nbi: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_uint8_g: Result<
        unsafe extern "C" fn(src: *const u8, pe: ::std::os::raw::c_int) -> u8,
        ::libloading::Error,
    >,
    pub nvshmem_uint16_g: Result<
        unsafe extern "C" fn(src: *const u16, pe: ::std::os::raw::c_int) -> u16,
        ::libloading::Error,
    >,
    pub nvshmem_uint32_g: Result<
        unsafe extern "C" fn(src: *const u32, pe: ::std::os::raw::c_int) -> u32,
        ::libloading::Error,
    >,
    pub nvshmem_uint64_g: Result<
        unsafe extern "C" fn(src: *const u64, pe: ::std::os::raw::c_int) -> u64,
        ::libloading::Error,
    >,
    pub nvshmem_getmem: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iget8: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iget16: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iget32: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_iget64: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_getmem_nbi: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
        ),
        ::libloading::Error,
    >,
    pub nvshmem_quiet: Result<unsafe extern "C" fn(), ::libloading::Error>,
    pub nvshmem_team_my_pe: Result<
        unsafe extern "C" fn(team: nvshmem_team_t) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_team_n_pes: Result<
        unsafe extern "C" fn(team: nvshmem_team_t) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_team_translate_pe: Result<
        unsafe extern "C" fn(
            src_team: nvshmem_team_t,
            src_pe: ::std::os::raw::c_int,
            dest_team: nvshmem_team_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_team_split_strided: Result<
        unsafe extern "C" fn(
            parent_team: nvshmem_team_t,
            PE_start: ::std::os::raw::c_int,
            PE_stride: ::std::os::raw::c_int,
            PE_size: ::std::os::raw::c_int,
            config: *const nvshmem_team_config_t,
            config_mask: ::std::os::raw::c_long,
            new_team: *mut nvshmem_team_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_team_get_uniqueid: Result<
        unsafe extern "C" fn(
            uniqueid: *mut nvshmemx_team_uniqueid_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_team_init: Result<
        unsafe extern "C" fn(
            team: *mut nvshmem_team_t,
            config: *mut nvshmem_team_config_t,
            config_mask: ::std::os::raw::c_long,
            npes: ::std::os::raw::c_int,
            pe_idx_in_team: ::std::os::raw::c_int,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_team_split_2d: Result<
        unsafe extern "C" fn(
            parent_team: nvshmem_team_t,
            xrange: ::std::os::raw::c_int,
            xaxis_config: *const nvshmem_team_config_t,
            xaxis_mask: ::std::os::raw::c_long,
            xaxis_team: *mut nvshmem_team_t,
            yaxis_config: *const nvshmem_team_config_t,
            yaxis_mask: ::std::os::raw::c_long,
            yaxis_team: *mut nvshmem_team_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmem_team_destroy: Result<
        unsafe extern "C" fn(team: nvshmem_team_t),
        ::libloading::Error,
    >,
    pub nvshmemx_alltoallmem_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut ::std::os::raw::c_void,
            src: *const ::std::os::raw::c_void,
            nelem: usize,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_barrier_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_barrier_all_on_stream: Result<
        unsafe extern "C" fn(arg1: cudaStream_t),
        ::libloading::Error,
    >,
    pub nvshmemx_team_sync_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_broadcastmem_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut ::std::os::raw::c_void,
            src: *const ::std::os::raw::c_void,
            nelem: usize,
            PE_root: ::std::os::raw::c_int,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_fcollectmem_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut ::std::os::raw::c_void,
            src: *const ::std::os::raw::c_void,
            nelem: usize,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_int32_sum_reduce_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut i32,
            src: *const i32,
            nreduce: usize,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_int32_sum_reducescatter_on_stream: Result<
        unsafe extern "C" fn(
            team: nvshmem_team_t,
            dest: *mut i32,
            src: *const i32,
            nreduce: usize,
            stream: cudaStream_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_buffer_register: Result<
        unsafe extern "C" fn(
            addr: *mut ::std::os::raw::c_void,
            length: usize,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_buffer_unregister: Result<
        unsafe extern "C" fn(addr: *mut ::std::os::raw::c_void) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_hostlib_init_attr: Result<
        unsafe extern "C" fn(
            flags: ::std::os::raw::c_uint,
            attr: *mut nvshmemx_init_attr_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_hostlib_finalize: Result<unsafe extern "C" fn(), ::libloading::Error>,
    pub nvshmemx_set_attr_uniqueid_args: Result<
        unsafe extern "C" fn(
            myrank: ::std::os::raw::c_int,
            nranks: ::std::os::raw::c_int,
            uniqueid: *const nvshmemx_uniqueid_t,
            attr: *mut nvshmemx_init_attr_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_set_attr_mpi_comm_args: Result<
        unsafe extern "C" fn(
            mpi_comm: *mut ::std::os::raw::c_void,
            nvshmem_attr: *mut nvshmemx_init_attr_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_get_uniqueid: Result<
        unsafe extern "C" fn(
            uniqueid: *mut nvshmemx_uniqueid_t,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_buffer_register_symmetric: Result<
        unsafe extern "C" fn(
            buf_ptr: *mut ::std::os::raw::c_void,
            size: usize,
            flags: ::std::os::raw::c_int,
        ) -> *mut ::std::os::raw::c_void,
        ::libloading::Error,
    >,
    pub nvshmemx_buffer_unregister_symmetric: Result<
        unsafe extern "C" fn(
            mmap_ptr: *mut ::std::os::raw::c_void,
            size: usize,
        ) -> ::std::os::raw::c_int,
        ::libloading::Error,
    >,
    pub nvshmemx_uint8_p_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut u8,
            value: u8,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint16_p_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut u16,
            value: u16,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint32_p_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut u32,
            value: u32,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint64_p_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut u64,
            value: u64,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_putmem_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_putmem_signal_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            sig_addr: *mut u64,
            signal: u64,
            sig_op: ::std::os::raw::c_int,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_putmem_signal_nbi_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            sig_addr: *mut u64,
            signal: u64,
            sig_op: ::std::os::raw::c_int,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iput8_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iput16_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iput32_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iput64_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_putmem_nbi_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_getmem_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iget8_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iget16_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iget32_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_iget64_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            dst: isize,
            sst: isize,
            nelems: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_getmem_nbi_on_stream: Result<
        unsafe extern "C" fn(
            dest: *mut ::std::os::raw::c_void,
            source: *const ::std::os::raw::c_void,
            bytes: usize,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_flush: Result<unsafe extern "C" fn(), ::libloading::Error>,
    pub nvshmemx_quiet_on_stream: Result<
        unsafe extern "C" fn(cstrm: cudaStream_t),
        ::libloading::Error,
    >,
    pub nvshmemx_flush_on_stream: Result<
        unsafe extern "C" fn(cstrm: cudaStream_t),
        ::libloading::Error,
    >,
    pub nvshmemx_signal_op_on_stream: Result<
        unsafe extern "C" fn(
            sig_addr: *mut u64,
            signal: u64,
            sig_op: ::std::os::raw::c_int,
            pe: ::std::os::raw::c_int,
            cstrm: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_short_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            ivar: *mut ::std::os::raw::c_short,
            cmp: ::std::os::raw::c_int,
            cmp_value: ::std::os::raw::c_short,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_ushort_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            ivar: *mut ::std::os::raw::c_ushort,
            cmp: ::std::os::raw::c_int,
            cmp_value: ::std::os::raw::c_ushort,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_int32_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            ivar: *mut i32,
            cmp: ::std::os::raw::c_int,
            cmp_value: i32,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_int64_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            ivar: *mut i64,
            cmp: ::std::os::raw::c_int,
            cmp_value: i64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint32_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            ivar: *mut u32,
            cmp: ::std::os::raw::c_int,
            cmp_value: u32,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint64_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            ivar: *mut u64,
            cmp: ::std::os::raw::c_int,
            cmp_value: u64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_short_wait_until_all_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut ::std::os::raw::c_short,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: ::std::os::raw::c_short,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_ushort_wait_until_all_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut ::std::os::raw::c_ushort,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: ::std::os::raw::c_ushort,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_int32_wait_until_all_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut i32,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: i32,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_int64_wait_until_all_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut i64,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: i64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint32_wait_until_all_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut u32,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: u32,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint64_wait_until_all_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut u64,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: u64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_short_wait_until_all_vector_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut ::std::os::raw::c_short,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: *mut ::std::os::raw::c_short,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_ushort_wait_until_all_vector_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut ::std::os::raw::c_ushort,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: *mut ::std::os::raw::c_ushort,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_int32_wait_until_all_vector_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut i32,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: *mut i32,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_int64_wait_until_all_vector_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut i64,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: *mut i64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint32_wait_until_all_vector_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut u32,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: *mut u32,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_uint64_wait_until_all_vector_on_stream: Result<
        unsafe extern "C" fn(
            ivars: *mut u64,
            nelems: usize,
            status: *const ::std::os::raw::c_int,
            cmp: ::std::os::raw::c_int,
            cmp_value: *mut u64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
    pub nvshmemx_signal_wait_until_on_stream: Result<
        unsafe extern "C" fn(
            sig_addr: *mut u64,
            cmp: ::std::os::raw::c_int,
            cmp_value: u64,
            cstream: cudaStream_t,
        ),
        ::libloading::Error,
    >,
}
pub const NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS: u32 = 1;
pub const NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID: u32 = 2;
pub const NVSHMEM_MAX_NAME_LEN: u32 = 256;
pub const NVSHMEM_SIGNAL_SET: nvshmemx_signal_op_t = 9;
pub const NVSHMEM_SIGNAL_ADD: nvshmemx_signal_op_t = 10;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvshmemx_uniqueid_v1",
    ][::std::mem::size_of::<nvshmemx_uniqueid_v1>() - 128usize];
    [
        "Alignment of nvshmemx_uniqueid_v1",
    ][::std::mem::align_of::<nvshmemx_uniqueid_v1>() - 4usize];
    [
        "Offset of field: nvshmemx_uniqueid_v1::version",
    ][::std::mem::offset_of!(nvshmemx_uniqueid_v1, version) - 0usize];
    [
        "Offset of field: nvshmemx_uniqueid_v1::internal",
    ][::std::mem::offset_of!(nvshmemx_uniqueid_v1, internal) - 4usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvshmemx_uniqueid_args_v1",
    ][::std::mem::size_of::<nvshmemx_uniqueid_args_v1>() - 24usize];
    [
        "Alignment of nvshmemx_uniqueid_args_v1",
    ][::std::mem::align_of::<nvshmemx_uniqueid_args_v1>() - 8usize];
    [
        "Offset of field: nvshmemx_uniqueid_args_v1::version",
    ][::std::mem::offset_of!(nvshmemx_uniqueid_args_v1, version) - 0usize];
    [
        "Offset of field: nvshmemx_uniqueid_args_v1::id",
    ][::std::mem::offset_of!(nvshmemx_uniqueid_args_v1, id) - 8usize];
    [
        "Offset of field: nvshmemx_uniqueid_args_v1::myrank",
    ][::std::mem::offset_of!(nvshmemx_uniqueid_args_v1, myrank) - 16usize];
    [
        "Offset of field: nvshmemx_uniqueid_args_v1::nranks",
    ][::std::mem::offset_of!(nvshmemx_uniqueid_args_v1, nranks) - 20usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvshmemx_init_args_v2",
    ][::std::mem::size_of::<nvshmemx_init_args_v2>() - 128usize];
    [
        "Alignment of nvshmemx_init_args_v2",
    ][::std::mem::align_of::<nvshmemx_init_args_v2>() - 8usize];
    [
        "Offset of field: nvshmemx_init_args_v2::version",
    ][::std::mem::offset_of!(nvshmemx_init_args_v2, version) - 0usize];
    [
        "Offset of field: nvshmemx_init_args_v2::uid_args",
    ][::std::mem::offset_of!(nvshmemx_init_args_v2, uid_args) - 8usize];
    [
        "Offset of field: nvshmemx_init_args_v2::cuda_device_id",
    ][::std::mem::offset_of!(nvshmemx_init_args_v2, cuda_device_id) - 32usize];
    [
        "Offset of field: nvshmemx_init_args_v2::content",
    ][::std::mem::offset_of!(nvshmemx_init_args_v2, content) - 36usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvshmemx_init_attr_v2",
    ][::std::mem::size_of::<nvshmemx_init_attr_v2>() - 144usize];
    [
        "Alignment of nvshmemx_init_attr_v2",
    ][::std::mem::align_of::<nvshmemx_init_attr_v2>() - 8usize];
    [
        "Offset of field: nvshmemx_init_attr_v2::version",
    ][::std::mem::offset_of!(nvshmemx_init_attr_v2, version) - 0usize];
    [
        "Offset of field: nvshmemx_init_attr_v2::mpi_comm",
    ][::std::mem::offset_of!(nvshmemx_init_attr_v2, mpi_comm) - 8usize];
    [
        "Offset of field: nvshmemx_init_attr_v2::args",
    ][::std::mem::offset_of!(nvshmemx_init_attr_v2, args) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvshmem_team_config_v2",
    ][::std::mem::size_of::<nvshmem_team_config_v2>() - 64usize];
    [
        "Alignment of nvshmem_team_config_v2",
    ][::std::mem::align_of::<nvshmem_team_config_v2>() - 8usize];
    [
        "Offset of field: nvshmem_team_config_v2::version",
    ][::std::mem::offset_of!(nvshmem_team_config_v2, version) - 0usize];
    [
        "Offset of field: nvshmem_team_config_v2::num_contexts",
    ][::std::mem::offset_of!(nvshmem_team_config_v2, num_contexts) - 4usize];
    [
        "Offset of field: nvshmem_team_config_v2::uniqueid",
    ][::std::mem::offset_of!(nvshmem_team_config_v2, uniqueid) - 8usize];
    [
        "Offset of field: nvshmem_team_config_v2::padding",
    ][::std::mem::offset_of!(nvshmem_team_config_v2, padding) - 16usize];
};
pub const NVSHMEM_CMP_EQ: nvshmemi_cmp_type = 0;
pub const NVSHMEM_CMP_NE: nvshmemi_cmp_type = 1;
pub const NVSHMEM_CMP_GT: nvshmemi_cmp_type = 2;
pub const NVSHMEM_CMP_LE: nvshmemi_cmp_type = 3;
pub const NVSHMEM_CMP_LT: nvshmemi_cmp_type = 4;
pub const NVSHMEM_CMP_GE: nvshmemi_cmp_type = 5;
pub const NVSHMEM_CMP_SENTINEL: nvshmemi_cmp_type = 2147483647;
pub const NVSHMEM_THREAD_SINGLE: nvshmemi_thread_support = 0;
pub const NVSHMEM_THREAD_FUNNELED: nvshmemi_thread_support = 1;
pub const NVSHMEM_THREAD_SERIALIZED: nvshmemi_thread_support = 2;
pub const NVSHMEM_THREAD_MULTIPLE: nvshmemi_thread_support = 3;
pub const NVSHMEM_THREAD_TYPE_SENTINEL: nvshmemi_thread_support = 2147483647;
pub const NVSHMEM_STATUS_NOT_INITIALIZED: nvshmemx_init_status_t = 0;
pub const NVSHMEM_STATUS_IS_BOOTSTRAPPED: nvshmemx_init_status_t = 1;
pub const NVSHMEM_STATUS_IS_INITIALIZED: nvshmemx_init_status_t = 2;
pub const NVSHMEM_STATUS_LIMITED_MPG: nvshmemx_init_status_t = 3;
pub const NVSHMEM_STATUS_FULL_MPG: nvshmemx_init_status_t = 4;
pub const NVSHMEM_STATUS_INVALID: nvshmemx_init_status_t = 2147483647;
pub const NVSHMEM_TEAM_INVALID: nvshmem_team_id_t = -1;
pub const NVSHMEM_TEAM_WORLD: nvshmem_team_id_t = 0;
pub const NVSHMEM_TEAM_WORLD_INDEX: nvshmem_team_id_t = 0;
pub const NVSHMEM_TEAM_SHARED: nvshmem_team_id_t = 1;
pub const NVSHMEM_TEAM_SHARED_INDEX: nvshmem_team_id_t = 1;
pub const NVSHMEMX_TEAM_NODE: nvshmem_team_id_t = 2;
pub const NVSHMEM_TEAM_NODE_INDEX: nvshmem_team_id_t = 2;
pub const NVSHMEMX_TEAM_SAME_MYPE_NODE: nvshmem_team_id_t = 3;
pub const NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX: nvshmem_team_id_t = 3;
pub const NVSHMEMI_TEAM_SAME_GPU: nvshmem_team_id_t = 4;
pub const NVSHMEM_TEAM_SAME_GPU_INDEX: nvshmem_team_id_t = 4;
pub const NVSHMEMI_TEAM_GPU_LEADERS: nvshmem_team_id_t = 5;
pub const NVSHMEM_TEAM_GPU_LEADERS_INDEX: nvshmem_team_id_t = 5;
pub const NVSHMEM_TEAM_MC_SHARED: nvshmem_team_id_t = 6;
pub const NVSHMEM_TEAM_MC_SHARED_INDEX: nvshmem_team_id_t = 6;
pub const NVSHMEM_TEAMS_MIN: nvshmem_team_id_t = 7;
pub const NVSHMEM_TEAM_INDEX_MAX: nvshmem_team_id_t = 2147483647;
pub const NVSHMEMX_SUCCESS: nvshmemx_status = 0;
pub const NVSHMEMX_ERROR_INVALID_VALUE: nvshmemx_status = 1;
pub const NVSHMEMX_ERROR_OUT_OF_MEMORY: nvshmemx_status = 2;
pub const NVSHMEMX_ERROR_NOT_SUPPORTED: nvshmemx_status = 3;
pub const NVSHMEMX_ERROR_SYMMETRY: nvshmemx_status = 4;
pub const NVSHMEMX_ERROR_GPU_NOT_SELECTED: nvshmemx_status = 5;
pub const NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED: nvshmemx_status = 6;
pub const NVSHMEMX_ERROR_INTERNAL: nvshmemx_status = 7;
pub const NVSHMEMX_ERROR_SENTINEL: nvshmemx_status = 2147483647;
pub const NVSHMEMX_INIT_THREAD_PES: flags = 1;
pub const NVSHMEMX_INIT_WITH_MPI_COMM: flags = 2;
pub const NVSHMEMX_INIT_WITH_SHMEM: flags = 4;
pub const NVSHMEMX_INIT_WITH_UNIQUEID: flags = 8;
pub const NVSHMEMX_INIT_MAX: flags = -2147483648;
impl Functions {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let nvshmem_alltoallmem = unsafe { __library.get(b"nvshmem_alltoallmem\0") }
            .map(|sym| *sym);
        let nvshmem_barrier = unsafe { __library.get(b"nvshmem_barrier\0") }
            .map(|sym| *sym);
        let nvshmem_barrier_all = unsafe { __library.get(b"nvshmem_barrier_all\0") }
            .map(|sym| *sym);
        let nvshmem_team_sync = unsafe { __library.get(b"nvshmem_team_sync\0") }
            .map(|sym| *sym);
        let nvshmem_broadcastmem = unsafe { __library.get(b"nvshmem_broadcastmem\0") }
            .map(|sym| *sym);
        let nvshmem_fcollectmem = unsafe { __library.get(b"nvshmem_fcollectmem\0") }
            .map(|sym| *sym);
        let nvshmem_int32_sum_reduce = unsafe {
            __library.get(b"nvshmem_int32_sum_reduce\0")
        }
            .map(|sym| *sym);
        let nvshmem_int32_sum_reducescatter = unsafe {
            __library.get(b"nvshmem_int32_sum_reducescatter\0")
        }
            .map(|sym| *sym);
        let nvshmemx_init_status = unsafe { __library.get(b"nvshmemx_init_status\0") }
            .map(|sym| *sym);
        let nvshmem_query_thread = unsafe { __library.get(b"nvshmem_query_thread\0") }
            .map(|sym| *sym);
        let nvshmem_global_exit = unsafe { __library.get(b"nvshmem_global_exit\0") }
            .map(|sym| *sym);
        let nvshmem_info_get_version = unsafe {
            __library.get(b"nvshmem_info_get_version\0")
        }
            .map(|sym| *sym);
        let nvshmemx_vendor_get_version_info = unsafe {
            __library.get(b"nvshmemx_vendor_get_version_info\0")
        }
            .map(|sym| *sym);
        let nvshmem_malloc = unsafe { __library.get(b"nvshmem_malloc\0") }
            .map(|sym| *sym);
        let nvshmem_calloc = unsafe { __library.get(b"nvshmem_calloc\0") }
            .map(|sym| *sym);
        let nvshmem_align = unsafe { __library.get(b"nvshmem_align\0") }.map(|sym| *sym);
        let nvshmem_free = unsafe { __library.get(b"nvshmem_free\0") }.map(|sym| *sym);
        let nvshmem_ptr = unsafe { __library.get(b"nvshmem_ptr\0") }.map(|sym| *sym);
        let nvshmem_uint8_p = unsafe { __library.get(b"nvshmem_uint8_p\0") }
            .map(|sym| *sym);
        let nvshmem_uint16_p = unsafe { __library.get(b"nvshmem_uint16_p\0") }
            .map(|sym| *sym);
        let nvshmem_uint32_p = unsafe { __library.get(b"nvshmem_uint32_p\0") }
            .map(|sym| *sym);
        let nvshmem_uint64_p = unsafe { __library.get(b"nvshmem_uint64_p\0") }
            .map(|sym| *sym);
        let nvshmem_putmem = unsafe { __library.get(b"nvshmem_putmem\0") }
            .map(|sym| *sym);
        let nvshmem_iput8 = unsafe { __library.get(b"nvshmem_iput8\0") }.map(|sym| *sym);
        let nvshmem_iput16 = unsafe { __library.get(b"nvshmem_iput16\0") }
            .map(|sym| *sym);
        let nvshmem_iput32 = unsafe { __library.get(b"nvshmem_iput32\0") }
            .map(|sym| *sym);
        let nvshmem_iput64 = unsafe { __library.get(b"nvshmem_iput64\0") }
            .map(|sym| *sym);
        let nvshmem_putmem_nbi = unsafe { __library.get(b"nvshmem_putmem_nbi\0") }
            .map(|sym| *sym);
        let nvshmem_uint8_g = unsafe { __library.get(b"nvshmem_uint8_g\0") }
            .map(|sym| *sym);
        let nvshmem_uint16_g = unsafe { __library.get(b"nvshmem_uint16_g\0") }
            .map(|sym| *sym);
        let nvshmem_uint32_g = unsafe { __library.get(b"nvshmem_uint32_g\0") }
            .map(|sym| *sym);
        let nvshmem_uint64_g = unsafe { __library.get(b"nvshmem_uint64_g\0") }
            .map(|sym| *sym);
        let nvshmem_getmem = unsafe { __library.get(b"nvshmem_getmem\0") }
            .map(|sym| *sym);
        let nvshmem_iget8 = unsafe { __library.get(b"nvshmem_iget8\0") }.map(|sym| *sym);
        let nvshmem_iget16 = unsafe { __library.get(b"nvshmem_iget16\0") }
            .map(|sym| *sym);
        let nvshmem_iget32 = unsafe { __library.get(b"nvshmem_iget32\0") }
            .map(|sym| *sym);
        let nvshmem_iget64 = unsafe { __library.get(b"nvshmem_iget64\0") }
            .map(|sym| *sym);
        let nvshmem_getmem_nbi = unsafe { __library.get(b"nvshmem_getmem_nbi\0") }
            .map(|sym| *sym);
        let nvshmem_quiet = unsafe { __library.get(b"nvshmem_quiet\0") }.map(|sym| *sym);
        let nvshmem_team_my_pe = unsafe { __library.get(b"nvshmem_team_my_pe\0") }
            .map(|sym| *sym);
        let nvshmem_team_n_pes = unsafe { __library.get(b"nvshmem_team_n_pes\0") }
            .map(|sym| *sym);
        let nvshmem_team_translate_pe = unsafe {
            __library.get(b"nvshmem_team_translate_pe\0")
        }
            .map(|sym| *sym);
        let nvshmem_team_split_strided = unsafe {
            __library.get(b"nvshmem_team_split_strided\0")
        }
            .map(|sym| *sym);
        let nvshmemx_team_get_uniqueid = unsafe {
            __library.get(b"nvshmemx_team_get_uniqueid\0")
        }
            .map(|sym| *sym);
        let nvshmemx_team_init = unsafe { __library.get(b"nvshmemx_team_init\0") }
            .map(|sym| *sym);
        let nvshmem_team_split_2d = unsafe { __library.get(b"nvshmem_team_split_2d\0") }
            .map(|sym| *sym);
        let nvshmem_team_destroy = unsafe { __library.get(b"nvshmem_team_destroy\0") }
            .map(|sym| *sym);
        let nvshmemx_alltoallmem_on_stream = unsafe {
            __library.get(b"nvshmemx_alltoallmem_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_barrier_on_stream = unsafe {
            __library.get(b"nvshmemx_barrier_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_barrier_all_on_stream = unsafe {
            __library.get(b"nvshmemx_barrier_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_team_sync_on_stream = unsafe {
            __library.get(b"nvshmemx_team_sync_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_broadcastmem_on_stream = unsafe {
            __library.get(b"nvshmemx_broadcastmem_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_fcollectmem_on_stream = unsafe {
            __library.get(b"nvshmemx_fcollectmem_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int32_sum_reduce_on_stream = unsafe {
            __library.get(b"nvshmemx_int32_sum_reduce_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int32_sum_reducescatter_on_stream = unsafe {
            __library.get(b"nvshmemx_int32_sum_reducescatter_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_buffer_register = unsafe {
            __library.get(b"nvshmemx_buffer_register\0")
        }
            .map(|sym| *sym);
        let nvshmemx_buffer_unregister = unsafe {
            __library.get(b"nvshmemx_buffer_unregister\0")
        }
            .map(|sym| *sym);
        let nvshmemx_hostlib_init_attr = unsafe {
            __library.get(b"nvshmemx_hostlib_init_attr\0")
        }
            .map(|sym| *sym);
        let nvshmemx_hostlib_finalize = unsafe {
            __library.get(b"nvshmemx_hostlib_finalize\0")
        }
            .map(|sym| *sym);
        let nvshmemx_set_attr_uniqueid_args = unsafe {
            __library.get(b"nvshmemx_set_attr_uniqueid_args\0")
        }
            .map(|sym| *sym);
        let nvshmemx_set_attr_mpi_comm_args = unsafe {
            __library.get(b"nvshmemx_set_attr_mpi_comm_args\0")
        }
            .map(|sym| *sym);
        let nvshmemx_get_uniqueid = unsafe { __library.get(b"nvshmemx_get_uniqueid\0") }
            .map(|sym| *sym);
        let nvshmemx_buffer_register_symmetric = unsafe {
            __library.get(b"nvshmemx_buffer_register_symmetric\0")
        }
            .map(|sym| *sym);
        let nvshmemx_buffer_unregister_symmetric = unsafe {
            __library.get(b"nvshmemx_buffer_unregister_symmetric\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint8_p_on_stream = unsafe {
            __library.get(b"nvshmemx_uint8_p_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint16_p_on_stream = unsafe {
            __library.get(b"nvshmemx_uint16_p_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint32_p_on_stream = unsafe {
            __library.get(b"nvshmemx_uint32_p_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint64_p_on_stream = unsafe {
            __library.get(b"nvshmemx_uint64_p_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_putmem_on_stream = unsafe {
            __library.get(b"nvshmemx_putmem_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_putmem_signal_on_stream = unsafe {
            __library.get(b"nvshmemx_putmem_signal_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_putmem_signal_nbi_on_stream = unsafe {
            __library.get(b"nvshmemx_putmem_signal_nbi_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iput8_on_stream = unsafe {
            __library.get(b"nvshmemx_iput8_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iput16_on_stream = unsafe {
            __library.get(b"nvshmemx_iput16_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iput32_on_stream = unsafe {
            __library.get(b"nvshmemx_iput32_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iput64_on_stream = unsafe {
            __library.get(b"nvshmemx_iput64_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_putmem_nbi_on_stream = unsafe {
            __library.get(b"nvshmemx_putmem_nbi_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_getmem_on_stream = unsafe {
            __library.get(b"nvshmemx_getmem_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iget8_on_stream = unsafe {
            __library.get(b"nvshmemx_iget8_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iget16_on_stream = unsafe {
            __library.get(b"nvshmemx_iget16_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iget32_on_stream = unsafe {
            __library.get(b"nvshmemx_iget32_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_iget64_on_stream = unsafe {
            __library.get(b"nvshmemx_iget64_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_getmem_nbi_on_stream = unsafe {
            __library.get(b"nvshmemx_getmem_nbi_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_flush = unsafe { __library.get(b"nvshmemx_flush\0") }
            .map(|sym| *sym);
        let nvshmemx_quiet_on_stream = unsafe {
            __library.get(b"nvshmemx_quiet_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_flush_on_stream = unsafe {
            __library.get(b"nvshmemx_flush_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_signal_op_on_stream = unsafe {
            __library.get(b"nvshmemx_signal_op_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_short_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_short_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_ushort_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_ushort_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int32_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_int32_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int64_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_int64_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint32_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_uint32_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint64_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_uint64_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_short_wait_until_all_on_stream = unsafe {
            __library.get(b"nvshmemx_short_wait_until_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_ushort_wait_until_all_on_stream = unsafe {
            __library.get(b"nvshmemx_ushort_wait_until_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int32_wait_until_all_on_stream = unsafe {
            __library.get(b"nvshmemx_int32_wait_until_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int64_wait_until_all_on_stream = unsafe {
            __library.get(b"nvshmemx_int64_wait_until_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint32_wait_until_all_on_stream = unsafe {
            __library.get(b"nvshmemx_uint32_wait_until_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint64_wait_until_all_on_stream = unsafe {
            __library.get(b"nvshmemx_uint64_wait_until_all_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_short_wait_until_all_vector_on_stream = unsafe {
            __library.get(b"nvshmemx_short_wait_until_all_vector_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_ushort_wait_until_all_vector_on_stream = unsafe {
            __library.get(b"nvshmemx_ushort_wait_until_all_vector_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int32_wait_until_all_vector_on_stream = unsafe {
            __library.get(b"nvshmemx_int32_wait_until_all_vector_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_int64_wait_until_all_vector_on_stream = unsafe {
            __library.get(b"nvshmemx_int64_wait_until_all_vector_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint32_wait_until_all_vector_on_stream = unsafe {
            __library.get(b"nvshmemx_uint32_wait_until_all_vector_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_uint64_wait_until_all_vector_on_stream = unsafe {
            __library.get(b"nvshmemx_uint64_wait_until_all_vector_on_stream\0")
        }
            .map(|sym| *sym);
        let nvshmemx_signal_wait_until_on_stream = unsafe {
            __library.get(b"nvshmemx_signal_wait_until_on_stream\0")
        }
            .map(|sym| *sym);
        Ok(Functions {
            __library,
            nvshmem_alltoallmem,
            nvshmem_barrier,
            nvshmem_barrier_all,
            nvshmem_team_sync,
            nvshmem_broadcastmem,
            nvshmem_fcollectmem,
            nvshmem_int32_sum_reduce,
            nvshmem_int32_sum_reducescatter,
            nvshmemx_init_status,
            nvshmem_query_thread,
            nvshmem_global_exit,
            nvshmem_info_get_version,
            nvshmemx_vendor_get_version_info,
            nvshmem_malloc,
            nvshmem_calloc,
            nvshmem_align,
            nvshmem_free,
            nvshmem_ptr,
            nvshmem_uint8_p,
            nvshmem_uint16_p,
            nvshmem_uint32_p,
            nvshmem_uint64_p,
            nvshmem_putmem,
            nvshmem_iput8,
            nvshmem_iput16,
            nvshmem_iput32,
            nvshmem_iput64,
            nvshmem_putmem_nbi,
            nvshmem_uint8_g,
            nvshmem_uint16_g,
            nvshmem_uint32_g,
            nvshmem_uint64_g,
            nvshmem_getmem,
            nvshmem_iget8,
            nvshmem_iget16,
            nvshmem_iget32,
            nvshmem_iget64,
            nvshmem_getmem_nbi,
            nvshmem_quiet,
            nvshmem_team_my_pe,
            nvshmem_team_n_pes,
            nvshmem_team_translate_pe,
            nvshmem_team_split_strided,
            nvshmemx_team_get_uniqueid,
            nvshmemx_team_init,
            nvshmem_team_split_2d,
            nvshmem_team_destroy,
            nvshmemx_alltoallmem_on_stream,
            nvshmemx_barrier_on_stream,
            nvshmemx_barrier_all_on_stream,
            nvshmemx_team_sync_on_stream,
            nvshmemx_broadcastmem_on_stream,
            nvshmemx_fcollectmem_on_stream,
            nvshmemx_int32_sum_reduce_on_stream,
            nvshmemx_int32_sum_reducescatter_on_stream,
            nvshmemx_buffer_register,
            nvshmemx_buffer_unregister,
            nvshmemx_hostlib_init_attr,
            nvshmemx_hostlib_finalize,
            nvshmemx_set_attr_uniqueid_args,
            nvshmemx_set_attr_mpi_comm_args,
            nvshmemx_get_uniqueid,
            nvshmemx_buffer_register_symmetric,
            nvshmemx_buffer_unregister_symmetric,
            nvshmemx_uint8_p_on_stream,
            nvshmemx_uint16_p_on_stream,
            nvshmemx_uint32_p_on_stream,
            nvshmemx_uint64_p_on_stream,
            nvshmemx_putmem_on_stream,
            nvshmemx_putmem_signal_on_stream,
            nvshmemx_putmem_signal_nbi_on_stream,
            nvshmemx_iput8_on_stream,
            nvshmemx_iput16_on_stream,
            nvshmemx_iput32_on_stream,
            nvshmemx_iput64_on_stream,
            nvshmemx_putmem_nbi_on_stream,
            nvshmemx_getmem_on_stream,
            nvshmemx_iget8_on_stream,
            nvshmemx_iget16_on_stream,
            nvshmemx_iget32_on_stream,
            nvshmemx_iget64_on_stream,
            nvshmemx_getmem_nbi_on_stream,
            nvshmemx_flush,
            nvshmemx_quiet_on_stream,
            nvshmemx_flush_on_stream,
            nvshmemx_signal_op_on_stream,
            nvshmemx_short_wait_until_on_stream,
            nvshmemx_ushort_wait_until_on_stream,
            nvshmemx_int32_wait_until_on_stream,
            nvshmemx_int64_wait_until_on_stream,
            nvshmemx_uint32_wait_until_on_stream,
            nvshmemx_uint64_wait_until_on_stream,
            nvshmemx_short_wait_until_all_on_stream,
            nvshmemx_ushort_wait_until_all_on_stream,
            nvshmemx_int32_wait_until_all_on_stream,
            nvshmemx_int64_wait_until_all_on_stream,
            nvshmemx_uint32_wait_until_all_on_stream,
            nvshmemx_uint64_wait_until_all_on_stream,
            nvshmemx_short_wait_until_all_vector_on_stream,
            nvshmemx_ushort_wait_until_all_vector_on_stream,
            nvshmemx_int32_wait_until_all_vector_on_stream,
            nvshmemx_int64_wait_until_all_vector_on_stream,
            nvshmemx_uint32_wait_until_all_vector_on_stream,
            nvshmemx_uint64_wait_until_all_vector_on_stream,
            nvshmemx_signal_wait_until_on_stream,
        })
    }
    pub unsafe fn nvshmem_alltoallmem(
        &self,
        team: nvshmem_team_t,
        dest: *mut ::std::os::raw::c_void,
        src: *const ::std::os::raw::c_void,
        nelems: usize,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_alltoallmem
                .as_ref()
                .expect("Expected function, got error."))(team, dest, src, nelems)
        }
    }
    pub unsafe fn nvshmem_barrier(&self, team: nvshmem_team_t) -> ::std::os::raw::c_int {
        unsafe {
            (self.nvshmem_barrier.as_ref().expect("Expected function, got error."))(team)
        }
    }
    pub unsafe fn nvshmem_barrier_all(&self) {
        unsafe {
            (self.nvshmem_barrier_all.as_ref().expect("Expected function, got error."))()
        }
    }
    pub unsafe fn nvshmem_team_sync(
        &self,
        team: nvshmem_team_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_team_sync
                .as_ref()
                .expect("Expected function, got error."))(team)
        }
    }
    pub unsafe fn nvshmem_broadcastmem(
        &self,
        team: nvshmem_team_t,
        dest: *mut ::std::os::raw::c_void,
        src: *const ::std::os::raw::c_void,
        nelems: usize,
        PE_root: ::std::os::raw::c_int,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_broadcastmem
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(team, dest, src, nelems, PE_root)
        }
    }
    pub unsafe fn nvshmem_fcollectmem(
        &self,
        team: nvshmem_team_t,
        dest: *mut ::std::os::raw::c_void,
        src: *const ::std::os::raw::c_void,
        nelems: usize,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_fcollectmem
                .as_ref()
                .expect("Expected function, got error."))(team, dest, src, nelems)
        }
    }
    pub unsafe fn nvshmem_int32_sum_reduce(
        &self,
        team: nvshmem_team_t,
        dest: *mut i32,
        src: *const i32,
        nreduce: usize,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_int32_sum_reduce
                .as_ref()
                .expect("Expected function, got error."))(team, dest, src, nreduce)
        }
    }
    pub unsafe fn nvshmem_int32_sum_reducescatter(
        &self,
        team: nvshmem_team_t,
        dest: *mut i32,
        src: *const i32,
        nreduce: usize,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_int32_sum_reducescatter
                .as_ref()
                .expect("Expected function, got error."))(team, dest, src, nreduce)
        }
    }
    pub unsafe fn nvshmemx_init_status(&self) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_init_status
                .as_ref()
                .expect("Expected function, got error."))()
        }
    }
    pub unsafe fn nvshmem_query_thread(&self, provided: *mut ::std::os::raw::c_int) {
        unsafe {
            (self
                .nvshmem_query_thread
                .as_ref()
                .expect("Expected function, got error."))(provided)
        }
    }
    pub unsafe fn nvshmem_global_exit(&self, status: ::std::os::raw::c_int) {
        unsafe {
            (self
                .nvshmem_global_exit
                .as_ref()
                .expect("Expected function, got error."))(status)
        }
    }
    pub unsafe fn nvshmem_info_get_version(
        &self,
        major: *mut ::std::os::raw::c_int,
        minor: *mut ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_info_get_version
                .as_ref()
                .expect("Expected function, got error."))(major, minor)
        }
    }
    pub unsafe fn nvshmemx_vendor_get_version_info(
        &self,
        major: *mut ::std::os::raw::c_int,
        minor: *mut ::std::os::raw::c_int,
        patch: *mut ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmemx_vendor_get_version_info
                .as_ref()
                .expect("Expected function, got error."))(major, minor, patch)
        }
    }
    pub unsafe fn nvshmem_malloc(&self, size: usize) -> *mut ::std::os::raw::c_void {
        unsafe {
            (self.nvshmem_malloc.as_ref().expect("Expected function, got error."))(size)
        }
    }
    pub unsafe fn nvshmem_calloc(
        &self,
        arg1: usize,
        arg2: usize,
    ) -> *mut ::std::os::raw::c_void {
        unsafe {
            (self
                .nvshmem_calloc
                .as_ref()
                .expect("Expected function, got error."))(arg1, arg2)
        }
    }
    pub unsafe fn nvshmem_align(
        &self,
        arg1: usize,
        arg2: usize,
    ) -> *mut ::std::os::raw::c_void {
        unsafe {
            (self
                .nvshmem_align
                .as_ref()
                .expect("Expected function, got error."))(arg1, arg2)
        }
    }
    pub unsafe fn nvshmem_free(&self, ptr: *mut ::std::os::raw::c_void) {
        unsafe {
            (self.nvshmem_free.as_ref().expect("Expected function, got error."))(ptr)
        }
    }
    pub unsafe fn nvshmem_ptr(
        &self,
        ptr: *const ::std::os::raw::c_void,
        pe: ::std::os::raw::c_int,
    ) -> *mut ::std::os::raw::c_void {
        unsafe {
            (self.nvshmem_ptr.as_ref().expect("Expected function, got error."))(ptr, pe)
        }
    }
    pub unsafe fn nvshmem_uint8_p(
        &self,
        dest: *mut u8,
        value: u8,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_uint8_p
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe)
        }
    }
    pub unsafe fn nvshmem_uint16_p(
        &self,
        dest: *mut u16,
        value: u16,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_uint16_p
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe)
        }
    }
    pub unsafe fn nvshmem_uint32_p(
        &self,
        dest: *mut u32,
        value: u32,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_uint32_p
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe)
        }
    }
    pub unsafe fn nvshmem_uint64_p(
        &self,
        dest: *mut u64,
        value: u64,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_uint64_p
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe)
        }
    }
    pub unsafe fn nvshmem_putmem(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_putmem
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe)
        }
    }
    pub unsafe fn nvshmem_iput8(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iput8
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_iput16(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iput16
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_iput32(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iput32
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_iput64(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iput64
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_putmem_nbi(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_putmem_nbi
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe)
        }
    }
    pub unsafe fn nvshmem_uint8_g(
        &self,
        src: *const u8,
        pe: ::std::os::raw::c_int,
    ) -> u8 {
        unsafe {
            (self
                .nvshmem_uint8_g
                .as_ref()
                .expect("Expected function, got error."))(src, pe)
        }
    }
    pub unsafe fn nvshmem_uint16_g(
        &self,
        src: *const u16,
        pe: ::std::os::raw::c_int,
    ) -> u16 {
        unsafe {
            (self
                .nvshmem_uint16_g
                .as_ref()
                .expect("Expected function, got error."))(src, pe)
        }
    }
    pub unsafe fn nvshmem_uint32_g(
        &self,
        src: *const u32,
        pe: ::std::os::raw::c_int,
    ) -> u32 {
        unsafe {
            (self
                .nvshmem_uint32_g
                .as_ref()
                .expect("Expected function, got error."))(src, pe)
        }
    }
    pub unsafe fn nvshmem_uint64_g(
        &self,
        src: *const u64,
        pe: ::std::os::raw::c_int,
    ) -> u64 {
        unsafe {
            (self
                .nvshmem_uint64_g
                .as_ref()
                .expect("Expected function, got error."))(src, pe)
        }
    }
    pub unsafe fn nvshmem_getmem(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_getmem
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe)
        }
    }
    pub unsafe fn nvshmem_iget8(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iget8
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_iget16(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iget16
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_iget32(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iget32
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_iget64(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_iget64
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe)
        }
    }
    pub unsafe fn nvshmem_getmem_nbi(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
    ) {
        unsafe {
            (self
                .nvshmem_getmem_nbi
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe)
        }
    }
    pub unsafe fn nvshmem_quiet(&self) {
        unsafe {
            (self.nvshmem_quiet.as_ref().expect("Expected function, got error."))()
        }
    }
    pub unsafe fn nvshmem_team_my_pe(
        &self,
        team: nvshmem_team_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_team_my_pe
                .as_ref()
                .expect("Expected function, got error."))(team)
        }
    }
    pub unsafe fn nvshmem_team_n_pes(
        &self,
        team: nvshmem_team_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_team_n_pes
                .as_ref()
                .expect("Expected function, got error."))(team)
        }
    }
    pub unsafe fn nvshmem_team_translate_pe(
        &self,
        src_team: nvshmem_team_t,
        src_pe: ::std::os::raw::c_int,
        dest_team: nvshmem_team_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_team_translate_pe
                .as_ref()
                .expect("Expected function, got error."))(src_team, src_pe, dest_team)
        }
    }
    pub unsafe fn nvshmem_team_split_strided(
        &self,
        parent_team: nvshmem_team_t,
        PE_start: ::std::os::raw::c_int,
        PE_stride: ::std::os::raw::c_int,
        PE_size: ::std::os::raw::c_int,
        config: *const nvshmem_team_config_t,
        config_mask: ::std::os::raw::c_long,
        new_team: *mut nvshmem_team_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_team_split_strided
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                parent_team,
                PE_start,
                PE_stride,
                PE_size,
                config,
                config_mask,
                new_team,
            )
        }
    }
    pub unsafe fn nvshmemx_team_get_uniqueid(
        &self,
        uniqueid: *mut nvshmemx_team_uniqueid_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_team_get_uniqueid
                .as_ref()
                .expect("Expected function, got error."))(uniqueid)
        }
    }
    pub unsafe fn nvshmemx_team_init(
        &self,
        team: *mut nvshmem_team_t,
        config: *mut nvshmem_team_config_t,
        config_mask: ::std::os::raw::c_long,
        npes: ::std::os::raw::c_int,
        pe_idx_in_team: ::std::os::raw::c_int,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_team_init
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(team, config, config_mask, npes, pe_idx_in_team)
        }
    }
    pub unsafe fn nvshmem_team_split_2d(
        &self,
        parent_team: nvshmem_team_t,
        xrange: ::std::os::raw::c_int,
        xaxis_config: *const nvshmem_team_config_t,
        xaxis_mask: ::std::os::raw::c_long,
        xaxis_team: *mut nvshmem_team_t,
        yaxis_config: *const nvshmem_team_config_t,
        yaxis_mask: ::std::os::raw::c_long,
        yaxis_team: *mut nvshmem_team_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmem_team_split_2d
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(
                parent_team,
                xrange,
                xaxis_config,
                xaxis_mask,
                xaxis_team,
                yaxis_config,
                yaxis_mask,
                yaxis_team,
            )
        }
    }
    pub unsafe fn nvshmem_team_destroy(&self, team: nvshmem_team_t) {
        unsafe {
            (self
                .nvshmem_team_destroy
                .as_ref()
                .expect("Expected function, got error."))(team)
        }
    }
    pub unsafe fn nvshmemx_alltoallmem_on_stream(
        &self,
        team: nvshmem_team_t,
        dest: *mut ::std::os::raw::c_void,
        src: *const ::std::os::raw::c_void,
        nelem: usize,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_alltoallmem_on_stream
                .as_ref()
                .expect("Expected function, got error."))(team, dest, src, nelem, stream)
        }
    }
    pub unsafe fn nvshmemx_barrier_on_stream(
        &self,
        team: nvshmem_team_t,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_barrier_on_stream
                .as_ref()
                .expect("Expected function, got error."))(team, stream)
        }
    }
    pub unsafe fn nvshmemx_barrier_all_on_stream(&self, arg1: cudaStream_t) {
        unsafe {
            (self
                .nvshmemx_barrier_all_on_stream
                .as_ref()
                .expect("Expected function, got error."))(arg1)
        }
    }
    pub unsafe fn nvshmemx_team_sync_on_stream(
        &self,
        team: nvshmem_team_t,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_team_sync_on_stream
                .as_ref()
                .expect("Expected function, got error."))(team, stream)
        }
    }
    pub unsafe fn nvshmemx_broadcastmem_on_stream(
        &self,
        team: nvshmem_team_t,
        dest: *mut ::std::os::raw::c_void,
        src: *const ::std::os::raw::c_void,
        nelem: usize,
        PE_root: ::std::os::raw::c_int,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_broadcastmem_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(team, dest, src, nelem, PE_root, stream)
        }
    }
    pub unsafe fn nvshmemx_fcollectmem_on_stream(
        &self,
        team: nvshmem_team_t,
        dest: *mut ::std::os::raw::c_void,
        src: *const ::std::os::raw::c_void,
        nelem: usize,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_fcollectmem_on_stream
                .as_ref()
                .expect("Expected function, got error."))(team, dest, src, nelem, stream)
        }
    }
    pub unsafe fn nvshmemx_int32_sum_reduce_on_stream(
        &self,
        team: nvshmem_team_t,
        dest: *mut i32,
        src: *const i32,
        nreduce: usize,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_int32_sum_reduce_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(team, dest, src, nreduce, stream)
        }
    }
    pub unsafe fn nvshmemx_int32_sum_reducescatter_on_stream(
        &self,
        team: nvshmem_team_t,
        dest: *mut i32,
        src: *const i32,
        nreduce: usize,
        stream: cudaStream_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_int32_sum_reducescatter_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(team, dest, src, nreduce, stream)
        }
    }
    pub unsafe fn nvshmemx_buffer_register(
        &self,
        addr: *mut ::std::os::raw::c_void,
        length: usize,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_buffer_register
                .as_ref()
                .expect("Expected function, got error."))(addr, length)
        }
    }
    pub unsafe fn nvshmemx_buffer_unregister(
        &self,
        addr: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_buffer_unregister
                .as_ref()
                .expect("Expected function, got error."))(addr)
        }
    }
    pub unsafe fn nvshmemx_hostlib_init_attr(
        &self,
        flags: ::std::os::raw::c_uint,
        attr: *mut nvshmemx_init_attr_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_hostlib_init_attr
                .as_ref()
                .expect("Expected function, got error."))(flags, attr)
        }
    }
    pub unsafe fn nvshmemx_hostlib_finalize(&self) {
        unsafe {
            (self
                .nvshmemx_hostlib_finalize
                .as_ref()
                .expect("Expected function, got error."))()
        }
    }
    pub unsafe fn nvshmemx_set_attr_uniqueid_args(
        &self,
        myrank: ::std::os::raw::c_int,
        nranks: ::std::os::raw::c_int,
        uniqueid: *const nvshmemx_uniqueid_t,
        attr: *mut nvshmemx_init_attr_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_set_attr_uniqueid_args
                .as_ref()
                .expect("Expected function, got error."))(myrank, nranks, uniqueid, attr)
        }
    }
    pub unsafe fn nvshmemx_set_attr_mpi_comm_args(
        &self,
        mpi_comm: *mut ::std::os::raw::c_void,
        nvshmem_attr: *mut nvshmemx_init_attr_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_set_attr_mpi_comm_args
                .as_ref()
                .expect("Expected function, got error."))(mpi_comm, nvshmem_attr)
        }
    }
    pub unsafe fn nvshmemx_get_uniqueid(
        &self,
        uniqueid: *mut nvshmemx_uniqueid_t,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_get_uniqueid
                .as_ref()
                .expect("Expected function, got error."))(uniqueid)
        }
    }
    pub unsafe fn nvshmemx_buffer_register_symmetric(
        &self,
        buf_ptr: *mut ::std::os::raw::c_void,
        size: usize,
        flags: ::std::os::raw::c_int,
    ) -> *mut ::std::os::raw::c_void {
        unsafe {
            (self
                .nvshmemx_buffer_register_symmetric
                .as_ref()
                .expect("Expected function, got error."))(buf_ptr, size, flags)
        }
    }
    pub unsafe fn nvshmemx_buffer_unregister_symmetric(
        &self,
        mmap_ptr: *mut ::std::os::raw::c_void,
        size: usize,
    ) -> ::std::os::raw::c_int {
        unsafe {
            (self
                .nvshmemx_buffer_unregister_symmetric
                .as_ref()
                .expect("Expected function, got error."))(mmap_ptr, size)
        }
    }
    pub unsafe fn nvshmemx_uint8_p_on_stream(
        &self,
        dest: *mut u8,
        value: u8,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint8_p_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_uint16_p_on_stream(
        &self,
        dest: *mut u16,
        value: u16,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint16_p_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_uint32_p_on_stream(
        &self,
        dest: *mut u32,
        value: u32,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint32_p_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_uint64_p_on_stream(
        &self,
        dest: *mut u64,
        value: u64,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint64_p_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, value, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_putmem_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_putmem_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_putmem_signal_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        sig_addr: *mut u64,
        signal: u64,
        sig_op: ::std::os::raw::c_int,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_putmem_signal_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, bytes, sig_addr, signal, sig_op, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_putmem_signal_nbi_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        sig_addr: *mut u64,
        signal: u64,
        sig_op: ::std::os::raw::c_int,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_putmem_signal_nbi_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, bytes, sig_addr, signal, sig_op, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iput8_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iput8_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iput16_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iput16_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iput32_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iput32_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iput64_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iput64_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_putmem_nbi_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_putmem_nbi_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_getmem_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_getmem_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iget8_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iget8_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iget16_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iget16_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iget32_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iget32_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_iget64_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        dst: isize,
        sst: isize,
        nelems: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_iget64_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(dest, source, dst, sst, nelems, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_getmem_nbi_on_stream(
        &self,
        dest: *mut ::std::os::raw::c_void,
        source: *const ::std::os::raw::c_void,
        bytes: usize,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_getmem_nbi_on_stream
                .as_ref()
                .expect("Expected function, got error."))(dest, source, bytes, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_flush(&self) {
        unsafe {
            (self.nvshmemx_flush.as_ref().expect("Expected function, got error."))()
        }
    }
    pub unsafe fn nvshmemx_quiet_on_stream(&self, cstrm: cudaStream_t) {
        unsafe {
            (self
                .nvshmemx_quiet_on_stream
                .as_ref()
                .expect("Expected function, got error."))(cstrm)
        }
    }
    pub unsafe fn nvshmemx_flush_on_stream(&self, cstrm: cudaStream_t) {
        unsafe {
            (self
                .nvshmemx_flush_on_stream
                .as_ref()
                .expect("Expected function, got error."))(cstrm)
        }
    }
    pub unsafe fn nvshmemx_signal_op_on_stream(
        &self,
        sig_addr: *mut u64,
        signal: u64,
        sig_op: ::std::os::raw::c_int,
        pe: ::std::os::raw::c_int,
        cstrm: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_signal_op_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sig_addr, signal, sig_op, pe, cstrm)
        }
    }
    pub unsafe fn nvshmemx_short_wait_until_on_stream(
        &self,
        ivar: *mut ::std::os::raw::c_short,
        cmp: ::std::os::raw::c_int,
        cmp_value: ::std::os::raw::c_short,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_short_wait_until_on_stream
                .as_ref()
                .expect("Expected function, got error."))(ivar, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_ushort_wait_until_on_stream(
        &self,
        ivar: *mut ::std::os::raw::c_ushort,
        cmp: ::std::os::raw::c_int,
        cmp_value: ::std::os::raw::c_ushort,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_ushort_wait_until_on_stream
                .as_ref()
                .expect("Expected function, got error."))(ivar, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_int32_wait_until_on_stream(
        &self,
        ivar: *mut i32,
        cmp: ::std::os::raw::c_int,
        cmp_value: i32,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_int32_wait_until_on_stream
                .as_ref()
                .expect("Expected function, got error."))(ivar, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_int64_wait_until_on_stream(
        &self,
        ivar: *mut i64,
        cmp: ::std::os::raw::c_int,
        cmp_value: i64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_int64_wait_until_on_stream
                .as_ref()
                .expect("Expected function, got error."))(ivar, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_uint32_wait_until_on_stream(
        &self,
        ivar: *mut u32,
        cmp: ::std::os::raw::c_int,
        cmp_value: u32,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint32_wait_until_on_stream
                .as_ref()
                .expect("Expected function, got error."))(ivar, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_uint64_wait_until_on_stream(
        &self,
        ivar: *mut u64,
        cmp: ::std::os::raw::c_int,
        cmp_value: u64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint64_wait_until_on_stream
                .as_ref()
                .expect("Expected function, got error."))(ivar, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_short_wait_until_all_on_stream(
        &self,
        ivars: *mut ::std::os::raw::c_short,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: ::std::os::raw::c_short,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_short_wait_until_all_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_ushort_wait_until_all_on_stream(
        &self,
        ivars: *mut ::std::os::raw::c_ushort,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: ::std::os::raw::c_ushort,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_ushort_wait_until_all_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_int32_wait_until_all_on_stream(
        &self,
        ivars: *mut i32,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: i32,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_int32_wait_until_all_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_int64_wait_until_all_on_stream(
        &self,
        ivars: *mut i64,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: i64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_int64_wait_until_all_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_uint32_wait_until_all_on_stream(
        &self,
        ivars: *mut u32,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: u32,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint32_wait_until_all_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_uint64_wait_until_all_on_stream(
        &self,
        ivars: *mut u64,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: u64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint64_wait_until_all_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_short_wait_until_all_vector_on_stream(
        &self,
        ivars: *mut ::std::os::raw::c_short,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: *mut ::std::os::raw::c_short,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_short_wait_until_all_vector_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_ushort_wait_until_all_vector_on_stream(
        &self,
        ivars: *mut ::std::os::raw::c_ushort,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: *mut ::std::os::raw::c_ushort,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_ushort_wait_until_all_vector_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_int32_wait_until_all_vector_on_stream(
        &self,
        ivars: *mut i32,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: *mut i32,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_int32_wait_until_all_vector_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_int64_wait_until_all_vector_on_stream(
        &self,
        ivars: *mut i64,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: *mut i64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_int64_wait_until_all_vector_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_uint32_wait_until_all_vector_on_stream(
        &self,
        ivars: *mut u32,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: *mut u32,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint32_wait_until_all_vector_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_uint64_wait_until_all_vector_on_stream(
        &self,
        ivars: *mut u64,
        nelems: usize,
        status: *const ::std::os::raw::c_int,
        cmp: ::std::os::raw::c_int,
        cmp_value: *mut u64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_uint64_wait_until_all_vector_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(ivars, nelems, status, cmp, cmp_value, cstream)
        }
    }
    pub unsafe fn nvshmemx_signal_wait_until_on_stream(
        &self,
        sig_addr: *mut u64,
        cmp: ::std::os::raw::c_int,
        cmp_value: u64,
        cstream: cudaStream_t,
    ) {
        unsafe {
            (self
                .nvshmemx_signal_wait_until_on_stream
                .as_ref()
                .expect(
                    "Expected function, got error.",
                ))(sig_addr, cmp, cmp_value, cstream)
        }
    }
}
