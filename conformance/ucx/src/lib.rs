#![doc = include_str!("../README.md")]
#![cfg(unix)]

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;

/// UCX's library, as the transport has loaded it.
const LIBRARY: &CStr = c"libucp.so.0";
/// `UCS_INPROGRESS`: more than 0, which is success. Errors are less.
const IN_PROGRESS: c_int = 1;
/// `UCS_ERR_UNSUPPORTED`.
const UNSUPPORTED: c_int = -22;
/// `UCS_ERR_LAST`: a pointer that is no less than this, as a number, is an error.
const LAST: isize = -100;

type Worker = *mut c_void;
type Request = *mut c_void;

/// UCX's functions that a flush needs.
#[derive(Clone, Copy, Debug)]
struct Ucx {
    flush: unsafe extern "C" fn(Worker, *const Parameters) -> Request,
    progress: unsafe extern "C" fn(Worker) -> c_uint,
    status: unsafe extern "C" fn(Request) -> c_int,
    free: unsafe extern "C" fn(Request),
}

/// `ucp_request_param_t`, in which a mask of 0 says that nothing else is given. It is larger than UCX's.
#[repr(C, align(16))]
#[derive(Debug)]
struct Parameters([u64; 64]);

static NONE: Parameters = Parameters([0; 64]);

/// Completes everything that the worker has begun, before it returns: null, or an error as UCX encodes it.
///
/// # Safety
/// As UCX says: `worker` is a worker. The parameters are not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_worker_flush_nbx(worker: *mut c_void, _parameters: *const c_void) -> *mut c_void {
    static UCX: OnceLock<Option<Ucx>> = OnceLock::new();
    match UCX.get_or_init(find) {
        // SAFETY: the functions are UCX's, and the worker is the caller's.
        Some(ucx) => unsafe { flush(ucx, worker) },
        None => error(UNSUPPORTED),
    }
}

/// # Safety
/// `ucx` has UCX's functions, or others that do the same with this worker.
unsafe fn flush(ucx: &Ucx, worker: Worker) -> Request {
    // SAFETY: the caller's promise. The request is freed once, here, because nobody else knows it.
    unsafe {
        let request = (ucx.flush)(worker, &raw const NONE);
        if request.is_null() || is_error(request) {
            return request;
        }
        let mut status = (ucx.status)(request);
        while status == IN_PROGRESS {
            (ucx.progress)(worker);
            status = (ucx.status)(request);
        }
        (ucx.free)(request);
        error(status)
    }
}

/// A status as a pointer: success is null.
fn error(status: c_int) -> Request {
    ptr::without_provenance_mut(status as isize as usize)
}

fn is_error(request: Request) -> bool {
    request.addr() >= LAST as usize
}

/// UCX's own functions; `None` if UCX is not loaded, and then nobody calls.
fn find() -> Option<Ucx> {
    // SAFETY: the name is a C string. A library that is loaded already runs no code again.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    let symbol = |name: &CStr| {
        // SAFETY: the handle is the library's, which stays loaded: it is never closed.
        let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    };
    // SAFETY: these are the functions of UCX's interface by these names, and so are their types.
    unsafe {
        Some(Ucx {
            flush: transmute::<*mut c_void, unsafe extern "C" fn(Worker, *const Parameters) -> Request>(symbol(
                c"ucp_worker_flush_nbx",
            )?),
            progress: transmute::<*mut c_void, unsafe extern "C" fn(Worker) -> c_uint>(symbol(c"ucp_worker_progress")?),
            status: transmute::<*mut c_void, unsafe extern "C" fn(Request) -> c_int>(symbol(
                c"ucp_request_check_status",
            )?),
            free: transmute::<*mut c_void, unsafe extern "C" fn(Request)>(symbol(c"ucp_request_free")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker with at most one request, which is itself.
    #[derive(Debug, Default)]
    struct Flushing {
        /// What a flush returns at once, if it is no request.
        at_once: Option<c_int>,
        /// Rounds of progress that the request needs, and its status in the end.
        rounds: u32,
        status: c_int,
        progressed: u32,
        freed: u32,
    }

    unsafe extern "C" fn begin(worker: Worker, parameters: *const Parameters) -> Request {
        // SAFETY: the test gives its own worker, and parameters that live.
        let (flushing, parameters) = unsafe { (&*worker.cast::<Flushing>(), &*parameters) };
        assert_eq!(parameters.0[0], 0, "a callback would free the request");
        flushing.at_once.map_or(worker, error)
    }

    unsafe extern "C" fn progress(worker: Worker) -> c_uint {
        // SAFETY: as in `begin`.
        let flushing = unsafe { &mut *worker.cast::<Flushing>() };
        flushing.progressed += 1;
        1
    }

    unsafe extern "C" fn status(request: Request) -> c_int {
        // SAFETY: as in `begin`.
        let flushing = unsafe { &*request.cast::<Flushing>() };
        assert_eq!(flushing.freed, 0, "a request that is free was asked");
        if flushing.progressed < flushing.rounds { IN_PROGRESS } else { flushing.status }
    }

    unsafe extern "C" fn free(request: Request) {
        // SAFETY: as in `begin`.
        unsafe { (*request.cast::<Flushing>()).freed += 1 };
    }

    fn flushed(mut flushing: Flushing) -> (isize, Flushing) {
        let ucx = Ucx { flush: begin, progress, status, free };
        // SAFETY: the functions are made for this worker.
        let request = unsafe { flush(&ucx, (&raw mut flushing).cast()) };
        (request.addr() as isize, flushing)
    }

    #[test]
    fn a_flush_ends_complete_and_its_request_is_freed_once() {
        for rounds in [0, 1, 7] {
            let (returned, flushing) = flushed(Flushing { rounds, ..Flushing::default() });
            assert_eq!((returned, flushing.progressed, flushing.freed), (0, rounds, 1));
        }
    }

    #[test]
    fn nothing_to_flush_and_errors_are_passed_on() {
        let (returned, flushing) = flushed(Flushing { at_once: Some(0), ..Flushing::default() });
        assert_eq!((returned, flushing.freed), (0, 0));
        let (returned, flushing) = flushed(Flushing { at_once: Some(-3), ..Flushing::default() });
        assert_eq!((returned, flushing.freed), (-3, 0));
        let (returned, flushing) = flushed(Flushing { rounds: 2, status: -80, ..Flushing::default() });
        assert_eq!((returned, flushing.freed), (-80, 1));
    }

    #[test]
    fn without_ucx_it_is_an_error_and_no_crash() {
        // SAFETY: no worker is looked at.
        let returned = unsafe { ucp_worker_flush_nbx(ptr::null_mut(), ptr::null()) };
        assert_eq!(returned.addr() as isize, UNSUPPORTED as isize);
    }
}
