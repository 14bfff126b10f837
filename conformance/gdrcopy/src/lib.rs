#![doc = include_str!("../README.md")]
#![cfg(unix)]
//!
//! The names, arguments and structs are those of GDRCopy's header `gdrapi.h`. Each function returns 0 or an error number, as
//! there.

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::io::Write as _;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use pins::{PINS, Pin};

mod pins;
mod reach;

/// The version of GDRCopy whose functions these are. NVSHMEM requires the major version and at least the minor one that it was
/// built with.
const VERSION: (c_int, c_int) = (2, 5);
/// The size of a page of GPU memory. Callers align to it.
const GPU_PAGE: u32 = 1 << 16;
/// `GDR_ATTR_USE_PERSISTENT_MAPPING`: a mapping stays valid until it is undone.
const PERSISTENT_MAPPING: c_int = 1;
/// `GDR_MAPPING_TYPE_CACHING`: the memory is mapped as ordinary memory is.
const CACHING: c_int = 2;

/// Pinned memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// Its number.
    pub h: c_ulong,
}

/// What is known of pinned memory: `gdr_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Its address.
    pub va: u64,
    /// Its size in bytes.
    pub mapped_size: u64,
    /// The size of its pages.
    pub page_size: u32,
    /// Not used any more.
    pub tm_cycles: u64,
    /// Not used any more.
    pub cycles_per_ms: u32,
    /// Bit 0: it is mapped. Bit 1: without a cache.
    pub flags: c_uint,
}

/// What is known of pinned memory: `gdr_info_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoV2 {
    /// What the first version has.
    pub info: Info,
    /// How it is mapped.
    pub mapping_type: c_int,
}

/// `gdr_open`: a library that is open. There is nothing to open, but the caller takes null for a failure.
#[unsafe(no_mangle)]
pub extern "C" fn gdr_open() -> *mut c_void {
    ptr::from_ref(&PINS).cast_mut().cast()
}

/// `gdr_close`
#[unsafe(no_mangle)]
pub extern "C" fn gdr_close(_library: *mut c_void) -> c_int {
    0
}

/// `gdr_pin_buffer`: refuses memory that the CPU cannot read.
///
/// # Safety
/// `handle` is null or can be written. `address` may be anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_pin_buffer(
    _library: *mut c_void,
    address: c_ulong,
    size: usize,
    _token: u64,
    _space: u32,
    handle: *mut Handle,
) -> c_int {
    let pin = Pin { address: address as usize, size };
    if let Err(why) = reach::readable(pin.address, size) {
        // a panic would end the process
        let _ = writeln!(
            std::io::stderr(),
            "onesided's stand-in for GDRCopy: {size} bytes at {address:#x} cannot be pinned, because {why}: it reaches \
             only host memory; set NVSHMEM_HEAP_KIND=SYSMEM, or install GDRCopy with its driver"
        );
        return libc::EINVAL;
    }
    // SAFETY: the caller promises that it is null or can be written.
    unsafe { give(handle, Handle { h: PINS.add(pin) }) }
}

/// `gdr_pin_buffer_v2`
///
/// # Safety
/// As [`gdr_pin_buffer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_pin_buffer_v2(
    library: *mut c_void,
    address: c_ulong,
    size: usize,
    _flags: u32,
    handle: *mut Handle,
) -> c_int {
    // SAFETY: the caller promises the same.
    unsafe { gdr_pin_buffer(library, address, size, 0, 0, handle) }
}

/// `gdr_unpin_buffer`
#[unsafe(no_mangle)]
pub extern "C" fn gdr_unpin_buffer(_library: *mut c_void, handle: Handle) -> c_int {
    if PINS.remove(handle.h) { 0 } else { libc::EINVAL }
}

/// `gdr_get_callback_flag`: no memory is ever taken away.
///
/// # Safety
/// `flag` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_get_callback_flag(_library: *mut c_void, handle: Handle, flag: *mut c_int) -> c_int {
    // SAFETY: the caller promises that it is null or can be written.
    PINS.get(handle.h).map_or(libc::EINVAL, |_| unsafe { give(flag, 0) })
}

/// `gdr_get_info`
///
/// # Safety
/// `info` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_get_info(_library: *mut c_void, handle: Handle, info: *mut Info) -> c_int {
    // SAFETY: the caller promises that it is null or can be written.
    PINS.get(handle.h).map_or(libc::EINVAL, |pin| unsafe { give(info, describe(pin)) })
}

/// `gdr_get_info_v2`
///
/// # Safety
/// `info` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_get_info_v2(_library: *mut c_void, handle: Handle, info: *mut InfoV2) -> c_int {
    PINS.get(handle.h).map_or(libc::EINVAL, |pin| {
        // SAFETY: the caller promises that it is null or can be written.
        unsafe { give(info, InfoV2 { info: describe(pin), mapping_type: CACHING }) }
    })
}

/// `gdr_map`: where the memory is anyway.
///
/// # Safety
/// `mapped` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_map(
    _library: *mut c_void,
    handle: Handle,
    mapped: *mut *mut c_void,
    size: usize,
) -> c_int {
    match PINS.get(handle.h) {
        // SAFETY: the caller promises that it is null or can be written.
        Some(pin) if size <= pin.size => unsafe { give(mapped, ptr::with_exposed_provenance_mut(pin.address)) },
        _ => libc::EINVAL,
    }
}

/// `gdr_map_v2`
///
/// # Safety
/// As [`gdr_map`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_map_v2(
    library: *mut c_void,
    handle: Handle,
    mapped: *mut *mut c_void,
    size: usize,
    _kind: c_int,
    _flags: u32,
) -> c_int {
    // SAFETY: the caller promises the same.
    unsafe { gdr_map(library, handle, mapped, size) }
}

/// `gdr_unmap`
#[unsafe(no_mangle)]
pub extern "C" fn gdr_unmap(_library: *mut c_void, handle: Handle, _mapped: *mut c_void, _size: usize) -> c_int {
    PINS.get(handle.h).map_or(libc::EINVAL, |_| 0)
}

/// `gdr_copy_to_mapping`
///
/// # Safety
/// `source` can be read for `size` bytes. The pinned memory is still there, and does not overlap it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_copy_to_mapping(
    handle: Handle,
    mapped: *mut c_void,
    source: *const c_void,
    size: usize,
) -> c_int {
    if !is_inside(handle, mapped, size) {
        return libc::EINVAL;
    }
    // SAFETY: `mapped` is inside of pinned memory, which is still there; the caller promises the rest.
    unsafe { copy(mapped.cast(), source.cast(), size) };
    0
}

/// `gdr_copy_from_mapping`
///
/// # Safety
/// `target` can be written for `size` bytes. The pinned memory is still there, and does not overlap it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_copy_from_mapping(
    handle: Handle,
    target: *mut c_void,
    mapped: *const c_void,
    size: usize,
) -> c_int {
    if !is_inside(handle, mapped, size) {
        return libc::EINVAL;
    }
    // SAFETY: `mapped` is inside of pinned memory, which is still there; the caller promises the rest.
    unsafe { copy(target.cast(), mapped.cast(), size) };
    0
}

/// `gdr_runtime_get_version`
///
/// # Safety
/// Each pointer is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_runtime_get_version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: the caller promises it.
    unsafe { (give(major, VERSION.0), give(minor, VERSION.1)) };
}

/// `gdr_driver_get_version`
///
/// # Safety
/// Each pointer is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_driver_get_version(_library: *mut c_void, major: *mut c_int, minor: *mut c_int) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { give(major, VERSION.0) | give(minor, VERSION.1) }
}

/// `gdr_get_attribute`
///
/// # Safety
/// `value` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gdr_get_attribute(_library: *mut c_void, attribute: c_int, value: *mut c_int) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { give(value, c_int::from(attribute == PERSISTENT_MAPPING)) }
}

/// Stores a result of a function, and returns its status.
///
/// # Safety
/// `place` is null or can be written.
unsafe fn give<T>(place: *mut T, value: T) -> c_int {
    if place.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: it is not null, so it can be written. C promises no alignment.
    unsafe { place.write_unaligned(value) };
    0
}

fn describe(pin: Pin) -> Info {
    let Pin { address, size } = pin;
    Info { va: address as u64, mapped_size: size as u64, page_size: GPU_PAGE, flags: 1, ..Info::default() }
}

fn is_inside(handle: Handle, mapped: *const c_void, size: usize) -> bool {
    PINS.get(handle.h).is_some_and(|pin| pin.contains(mapped.addr(), size))
}

/// Copies memory that other threads, other processes and the GPU may read and write meanwhile. An aligned word is one access.
///
/// # Safety
/// Both can be accessed for `size` bytes, and they do not overlap.
unsafe fn copy(target: *mut u8, source: *const u8, size: usize) {
    macro_rules! word {
        ($atomic:ty) => {
            if size == size_of::<$atomic>()
                && target.addr().is_multiple_of(size)
                && source.addr().is_multiple_of(size)
            {
                // SAFETY: both are aligned and can be accessed for so many bytes. Others access them atomically, if at all.
                let (target, source) = unsafe { (&*target.cast::<$atomic>(), &*source.cast::<$atomic>()) };
                return target.store(source.load(Ordering::Acquire), Ordering::Release);
            }
        };
    }
    word!(AtomicU64);
    word!(AtomicU32);
    word!(AtomicU16);
    word!(AtomicU8);
    // SAFETY: the caller promises it.
    unsafe { ptr::copy_nonoverlapping(source, target, size) };
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn pinned(memory: &mut [u8]) -> Handle {
        let mut handle = Handle::default();
        // SAFETY: the handle can be written.
        let status = unsafe {
            gdr_pin_buffer(gdr_open(), memory.as_mut_ptr().addr() as c_ulong, memory.len(), 0, 0, &raw mut handle)
        };
        assert_eq!(status, 0);
        handle
    }

    #[test]
    fn pinned_memory_is_mapped_where_it_is() {
        let mut memory = vec![7_u8; 100_000];
        let handle = pinned(&mut memory);
        let (mut info, mut info_v2, mut mapped) = (Info::default(), InfoV2::default(), ptr::null_mut());
        let library = gdr_open();
        assert!(!library.is_null());
        // SAFETY: all places can be written.
        unsafe {
            assert_eq!(gdr_get_info(library, handle, &raw mut info), 0);
            assert_eq!(gdr_get_info_v2(library, handle, &raw mut info_v2), 0);
            assert_eq!(gdr_map(library, handle, &raw mut mapped, memory.len()), 0);
            assert_eq!(gdr_map(library, handle, &raw mut mapped, memory.len() + 1), libc::EINVAL);
        }
        assert_eq!((info.va as usize, info.mapped_size, info.flags & 1), (memory.as_ptr().addr(), 100_000, 1));
        assert_eq!((info_v2.info, mapped.addr()), (info, memory.as_ptr().addr()));
        // gdrapi.h: five fields and two bits; then an enum.
        assert_eq!((size_of::<Info>(), size_of::<InfoV2>()), (40, 48));
        assert_eq!([gdr_unmap(library, handle, mapped, 1), gdr_unpin_buffer(library, handle)], [0, 0]);
        assert_eq!([gdr_unpin_buffer(library, handle), gdr_close(library)], [libc::EINVAL, 0]);
        // SAFETY: as above.
        assert_eq!(unsafe { gdr_get_info(library, handle, &raw mut info) }, libc::EINVAL);
    }

    #[test]
    fn copies_go_both_ways_and_not_past_the_end() {
        for size in [1, 2, 3, 4, 8, 64, 4099] {
            let mut memory = vec![0_u64; 1024];
            let bytes = bytes_of(&mut memory);
            let handle = pinned(bytes);
            let source: Vec<u8> = (0..size).map(|at| at as u8 ^ 0x5a).collect();
            let mut back = vec![0_u8; size];
            let start: *mut c_void = bytes.as_mut_ptr().cast();
            // SAFETY: source and target have `size` bytes, and the pinned memory has more.
            unsafe {
                assert_eq!(gdr_copy_to_mapping(handle, start, source.as_ptr().cast(), size), 0);
                assert_eq!(gdr_copy_from_mapping(handle, back.as_mut_ptr().cast(), start, size), 0);
                let last = start.byte_add(8192 - size + 1);
                assert_eq!(gdr_copy_to_mapping(handle, last, source.as_ptr().cast(), size), libc::EINVAL);
                assert_eq!(gdr_copy_from_mapping(handle, back.as_mut_ptr().cast(), last, size), libc::EINVAL);
            }
            assert_eq!(back, source);
            gdr_unpin_buffer(gdr_open(), handle);
        }
    }

    fn bytes_of(words: &mut [u64]) -> &mut [u8] {
        // SAFETY: every byte of a word is a byte.
        unsafe { words.align_to_mut().1 }
    }

    #[test]
    fn memory_out_of_reach_is_refused() {
        // What CUDA reserves for memory of a GPU: addresses that the CPU can neither read nor write.
        let size = 1 << 20;
        // SAFETY: a new mapping touches no memory of anyone.
        let reserved = unsafe {
            libc::mmap(ptr::null_mut(), size, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(reserved, libc::MAP_FAILED);
        let mut handle = Handle { h: 99 };
        for (address, size) in [(reserved.addr(), size), (0, 4096), (usize::MAX - 4096, 8192)] {
            // SAFETY: the handle can be written.
            let status = unsafe { gdr_pin_buffer_v2(gdr_open(), address as c_ulong, size, 0, &raw mut handle) };
            assert_eq!((status, handle), (libc::EINVAL, Handle { h: 99 }), "{address:#x}");
        }
        // SAFETY: nobody uses the mapping.
        unsafe { libc::munmap(reserved, size) };
        // SAFETY: null is allowed.
        let nowhere =
            unsafe { gdr_pin_buffer(gdr_open(), [0_u8; 8].as_ptr().addr() as c_ulong, 8, 0, 0, ptr::null_mut()) };
        assert_eq!(nowhere, libc::EINVAL);
    }

    #[test]
    fn any_number_of_threads_pin_any_number_of_buffers() {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut memory = vec![0_u8; 64 * 1000];
                    let handles: Vec<Handle> = memory.chunks_mut(64).map(pinned).collect();
                    for (chunk, handle) in memory.chunks(64).zip(handles) {
                        let mut info = Info::default();
                        // SAFETY: the place can be written.
                        assert_eq!(unsafe { gdr_get_info(gdr_open(), handle, &raw mut info) }, 0);
                        assert_eq!(info.va as usize, chunk.as_ptr().addr());
                        assert_eq!(gdr_unpin_buffer(gdr_open(), handle), 0);
                    }
                });
            }
        });
    }

    #[test]
    fn versions_and_attributes_are_told() {
        let (mut major, mut minor, mut flag) = (0, 0, 9);
        let handle = pinned(&mut [0; 8]);
        // SAFETY: all places can be written.
        unsafe {
            gdr_runtime_get_version(&raw mut major, &raw mut minor);
            assert_eq!((major, minor), VERSION);
            assert_eq!(gdr_driver_get_version(gdr_open(), &raw mut major, ptr::null_mut()), libc::EINVAL);
            assert_eq!(gdr_driver_get_version(gdr_open(), &raw mut major, &raw mut minor), 0);
            assert_eq!((gdr_get_callback_flag(gdr_open(), handle, &raw mut flag), flag), (0, 0));
            assert_eq!((gdr_get_attribute(gdr_open(), PERSISTENT_MAPPING, &raw mut flag), flag), (0, 1));
            assert_eq!((gdr_get_attribute(gdr_open(), 2, &raw mut flag), flag), (0, 0));
        }
        gdr_unpin_buffer(gdr_open(), handle);
    }
}
