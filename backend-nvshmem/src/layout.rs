//! Structs of NVSHMEM, filled for a call of the library.
//!
//! Each begins with a version word: the layout's number and the struct's size. NVSHMEM's headers fill these structs by
//! macros. bindgen cannot read macros, so this file fills the structs. A library accepts layouts older than its own, and
//! promises nothing about newer ones. So the layout follows the version that the loaded library reports.

use std::ffi::{c_int, c_long};
use std::mem::{offset_of, size_of};
use std::ptr;

use crate::bindings::{
    NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, nvshmem_team_config_t,
    nvshmemx_init_args_t, nvshmemx_init_attr_t, nvshmemx_uniqueid_args_t, nvshmemx_uniqueid_t,
};

/// From this version on, the attributes of initialization have `cuda_device_id` (layout 2). 3.4.5 has layout 1.
const DEVICE_IN_ATTR: [i32; 3] = [3, 5, 0];

/// The headers write this into a number that is not set.
const UNSET: c_int = -1;

/// The version word of `T` in layout `number`.
const fn word<T>(number: c_int) -> c_int {
    (number << 16) + size_of::<T>() as c_int
}

/// An id that the library has not filled in yet.
pub(crate) fn unique_id() -> nvshmemx_uniqueid_t {
    nvshmemx_uniqueid_t { version: word::<nvshmemx_uniqueid_t>(1), internal: [0; 124] }
}

/// The attributes of initialization with nothing set, for a library of this version.
pub(crate) fn init_attr(version: [i32; 3]) -> nvshmemx_init_attr_t {
    let has_device = version >= DEVICE_IN_ATTR;
    let number = if has_device { 2 } else { 1 };
    nvshmemx_init_attr_t {
        version: word::<nvshmemx_init_attr_t>(number),
        mpi_comm: ptr::null_mut(),
        args: nvshmemx_init_args_t {
            version: word::<nvshmemx_init_args_t>(number),
            uid_args: nvshmemx_uniqueid_args_t {
                version: word::<nvshmemx_uniqueid_args_t>(1),
                id: ptr::null_mut(),
                myrank: UNSET,
                nranks: UNSET,
            },
            // In layout 1 these bytes are padding, which is 0.
            cuda_device_id: if has_device { UNSET } else { 0 },
            content: [0; 92],
        },
    }
}

/// The configuration of a new team and the mask of what is set in it: layout 2, as all versions since 3.3 have it.
pub(crate) fn team_config(num_contexts: Option<u32>, unique_id: Option<u64>) -> (nvshmem_team_config_t, c_long) {
    let config = nvshmem_team_config_t {
        version: word::<nvshmem_team_config_t>(2),
        // The library ignores contexts today. A number that is too large for its field becomes the largest.
        num_contexts: num_contexts.map_or(UNSET, |number| c_int::try_from(number).unwrap_or(c_int::MAX)),
        uniqueid: unique_id.unwrap_or(u64::MAX),
        padding: [0; 48],
    };
    let contexts = num_contexts.map_or(0, |_| NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS);
    let id = unique_id.map_or(0, |_| NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID);
    (config, c_long::from(contexts | id))
}

// The sizes are part of the version words. The library reads these places, whatever bindgen saw.
const _: () = {
    assert!(size_of::<nvshmemx_uniqueid_t>() == 128);
    assert!(size_of::<nvshmemx_uniqueid_args_t>() == 24);
    assert!(size_of::<nvshmemx_init_args_t>() == 128);
    assert!(size_of::<nvshmemx_init_attr_t>() == 144);
    assert!(size_of::<nvshmem_team_config_t>() == 64);
    let args = offset_of!(nvshmemx_init_attr_t, args);
    let uid_args = args + offset_of!(nvshmemx_init_args_t, uid_args);
    assert!(offset_of!(nvshmemx_init_attr_t, mpi_comm) == 8 && args == 16 && uid_args == 24);
    assert!(uid_args + offset_of!(nvshmemx_uniqueid_args_t, id) == 32);
    assert!(uid_args + offset_of!(nvshmemx_uniqueid_args_t, myrank) == 40);
    assert!(uid_args + offset_of!(nvshmemx_uniqueid_args_t, nranks) == 44);
    assert!(args + offset_of!(nvshmemx_init_args_t, cuda_device_id) == 48);
    assert!(offset_of!(nvshmem_team_config_t, num_contexts) == 4);
    assert!(offset_of!(nvshmem_team_config_t, uniqueid) == 8);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_words_are_those_of_the_headers() {
        assert_eq!(unique_id().version, 0x10080);
        for (version, number, device) in [([3, 4, 5], 1, 0), ([3, 5, 0], 2, -1), ([3, 8, 0], 2, -1)] {
            let attr = init_attr(version);
            assert_eq!(attr.version, number << 16 | 144, "{version:?}");
            assert_eq!(attr.args.version, number << 16 | 128, "{version:?}");
            assert_eq!(attr.args.uid_args.version, 0x10018, "{version:?}");
            assert_eq!(attr.args.cuda_device_id, device, "{version:?}");
        }
        assert_eq!(team_config(None, None).0.version, 0x20040);
    }

    #[test]
    fn nothing_is_set_until_it_is_given() {
        let attr = init_attr([3, 8, 0]);
        assert!(attr.mpi_comm.is_null() && attr.args.uid_args.id.is_null());
        assert_eq!((attr.args.uid_args.myrank, attr.args.uid_args.nranks), (-1, -1));
        let (config, mask) = team_config(None, None);
        assert_eq!((config.num_contexts, config.uniqueid, mask), (-1, u64::MAX, 0));
    }

    #[test]
    fn the_mask_names_what_a_team_is_given() {
        let (config, mask) = team_config(Some(4), None);
        assert_eq!((config.num_contexts, config.uniqueid, mask), (4, u64::MAX, 1));
        let (config, mask) = team_config(None, Some(77));
        assert_eq!((config.num_contexts, config.uniqueid, mask), (-1, 77, 2));
        let (config, mask) = team_config(Some(u32::MAX), Some(0));
        assert_eq!((config.num_contexts, config.uniqueid, mask), (c_int::MAX, 0, 3));
    }
}
