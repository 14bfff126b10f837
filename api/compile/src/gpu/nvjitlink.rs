//! [`NvJitLink`]: NVIDIA's linker for machine code and PTX, opened at run time.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;

use super::LinkError;
use crate::library;
use crate::search::{NVJITLINK, Origin, Search};

type Handle = *mut c_void;
type Status = c_int;

/// An open nvJitLink. It is never closed.
#[derive(Debug)]
pub struct NvJitLink {
    functions: Functions,
    version: (i32, i32),
    file: PathBuf,
    origin: Origin,
}

/// The functions that are used, with the types of nvJitLink.h 12.3 to 13.0.
#[derive(Debug)]
struct Functions {
    version: unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> Status,
    create: unsafe extern "C" fn(*mut Handle, u32, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    add: unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> Status,
    complete: unsafe extern "C" fn(Handle) -> Status,
    size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    log_size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    log: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
}

/// What is linked, with the number that nvJitLink gives its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cubin = 1,
    Ptx = 2,
    Library = 6,
}

/// One of the things that are linked.
pub(super) struct Input<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

/// Why nothing was linked: which input was refused, or that all together were, and what the log says.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The call that failed.
    pub(super) call: &'static str,
    pub(super) input: Option<usize>,
    pub(super) log: String,
}

/// The nvJitLink that [`link`](super::link) uses: `named` is its file, or the folder that holds it. `None` looks in the usual places.
///
/// # Errors
/// [`LinkError::NotFound`] says in one line where it was looked for and how to get it; [`LinkError::Unusable`] what is wrong with
/// the file that was found.
pub fn find_linker(named: Option<&Path>) -> Result<NvJitLink, LinkError> {
    NvJitLink::find(&Search::from_environment(&NVJITLINK, named)).map(|(linker, _)| linker)
}

impl NvJitLink {
    /// Its release: `(13, 0)`.
    #[must_use]
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Its file; its bare name if the system's loader found it by itself.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What led to it.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn find(search: &Search) -> Result<(NvJitLink, Vec<PathBuf>), LinkError> {
        Ok(search.open(NvJitLink::load)?)
    }

    /// Opens a file that was found before.
    pub(super) fn open(file: &Path, origin: Origin) -> Result<NvJitLink, LinkError> {
        NvJitLink::load(file, origin).map_err(|why| LinkError::Unusable { file: file.to_path_buf(), why })
    }

    fn load(file: &Path, origin: Origin) -> Result<NvJitLink, String> {
        let library = library::open(file)?;
        let functions = Functions::of(&library)
            .map_err(|name| format!("it does not export {name}: it is not nvJitLink of CUDA 12.3 or later"))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the function writes two integers, for which there is room.
        let status = unsafe { (functions.version)(&mut major, &mut minor) };
        if status != 0 {
            return Err(format!("nvJitLinkVersion returned {status}"));
        }
        Ok(NvJitLink { functions, version: (major as i32, minor as i32), file: file.to_path_buf(), origin })
    }

    /// Links for an architecture.
    pub(super) fn link(&self, architecture: &str, inputs: &[Input<'_>]) -> Result<Vec<u8>, Refusal> {
        let Functions { add, complete, size, cubin, .. } = self.functions;
        let linking = Linking::new(self, architecture)?;
        for (place, input) in inputs.iter().enumerate() {
            // PTX must end with a zero, which counts.
            let terminated;
            let bytes = if input.kind == Kind::Ptx {
                terminated = [input.bytes, &[0]].concat();
                &terminated
            } else {
                input.bytes
            };
            let name = CString::new(input.name.replace('\0', " ")).unwrap_or_default();
            let kind = input.kind as c_int;
            // SAFETY: as many bytes as are told, which live until the call returns, as the name does; the handle is alive.
            let status = unsafe { add(linking.handle, kind, bytes.as_ptr().cast(), bytes.len(), name.as_ptr()) };
            linking.check(status, "nvJitLinkAddData", Some(place))?;
        }
        // SAFETY: the handle is alive.
        linking.check(unsafe { complete(linking.handle) }, "nvJitLinkComplete", None)?;
        let mut bytes = 0;
        // SAFETY: writes one number.
        linking.check(unsafe { size(linking.handle, &mut bytes) }, "nvJitLinkGetLinkedCubinSize", None)?;
        let mut linked = vec![0_u8; bytes];
        // SAFETY: writes as many bytes as the other function said, for which there is room.
        let status = unsafe { cubin(linking.handle, linked.as_mut_ptr().cast()) };
        linking.check(status, "nvJitLinkGetLinkedCubin", None)?;
        Ok(linked)
    }
}

impl Functions {
    fn of(library: &Library) -> Result<Functions, &'static str> {
        use library::function;
        // SAFETY: the types are those of nvJitLink.h, which have not changed from CUDA 12.3 to 13.0.
        unsafe {
            Ok(Functions {
                version: function(library, "nvJitLinkVersion")?,
                create: function(library, "nvJitLinkCreate")?,
                destroy: function(library, "nvJitLinkDestroy")?,
                add: function(library, "nvJitLinkAddData")?,
                complete: function(library, "nvJitLinkComplete")?,
                size: function(library, "nvJitLinkGetLinkedCubinSize")?,
                cubin: function(library, "nvJitLinkGetLinkedCubin")?,
                log_size: function(library, "nvJitLinkGetErrorLogSize")?,
                log: function(library, "nvJitLinkGetErrorLog")?,
            })
        }
    }
}

/// A handle, destroyed when it is dropped.
struct Linking<'a> {
    linker: &'a NvJitLink,
    handle: Handle,
}

impl<'a> Linking<'a> {
    fn new(linker: &'a NvJitLink, architecture: &str) -> Result<Linking<'a>, Refusal> {
        let options = [CString::new(format!("-arch={architecture}")).unwrap_or_default()];
        let pointers = [options[0].as_ptr()];
        let mut handle = ptr::null_mut();
        // SAFETY: one pointer, to a string that lives until the call returns.
        let status = unsafe { (linker.functions.create)(&mut handle, 1, pointers.as_ptr()) };
        if status != 0 {
            let log = format!("it does not link for {architecture} (status {status})");
            return Err(Refusal { call: "nvJitLinkCreate", input: None, log });
        }
        Ok(Linking { linker, handle })
    }

    fn check(&self, status: Status, call: &'static str, input: Option<usize>) -> Result<(), Refusal> {
        if status == 0 {
            return Ok(());
        }
        let log = self.log();
        Err(Refusal { call, input, log: if log.is_empty() { format!("status {status}") } else { log } })
    }

    fn log(&self) -> String {
        let mut bytes = 0;
        // SAFETY: the handle is alive; writes one number.
        if unsafe { (self.linker.functions.log_size)(self.handle, &mut bytes) } != 0 || bytes == 0 {
            return String::new();
        }
        let mut text = vec![0_u8; bytes + 1];
        // SAFETY: writes as many bytes as the other function said, for which there is room.
        if unsafe { (self.linker.functions.log)(self.handle, text.as_mut_ptr().cast()) } != 0 {
            return String::new();
        }
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(bytes);
        String::from_utf8_lossy(&text[..end]).trim().to_string()
    }
}

impl Drop for Linking<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle was created, and nobody uses it any more. What the call returns does not matter.
        unsafe { (self.linker.functions.destroy)(&mut self.handle) };
    }
}
