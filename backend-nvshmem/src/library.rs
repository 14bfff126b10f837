//! Opens libraries and calls those of their functions that are safe before initialization.
//!
//! Most functions of libnvshmem_host end the process if they are called before initialization. Those here were measured not
//! to. Callers set a time limit. Nothing is closed again, because these libraries start threads and register exit handlers.
#![allow(unsafe_code)]

use std::error::Error as _;
use std::ffi::c_int;
#[cfg(target_os = "linux")]
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::ManuallyDrop;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudarc::driver::{DriverError, sys};

use crate::elf;
use crate::problem::Problem;
use crate::search::{Origin, SONAME, Search};

/// How long opening a library may take, with what it then does by itself.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// An open library.
pub(crate) struct Library {
    handle: ManuallyDrop<libloading::Library>,
    file: PathBuf,
}

impl Library {
    /// Opens NVSHMEM's host library where the search finds it.
    pub(crate) fn find(search: &Search) -> Result<(Library, Origin), Problem> {
        let (file, origin) = search.locate()?;
        match Library::open(&file) {
            // Only the loader's own list was left. The answer must name the other places too.
            Err(refused) if file == Path::new(SONAME) => {
                let looked = search.places().into_iter().chain([format!("the loader: {refused}")]).collect();
                Err(Problem::NotFound { what: SONAME, looked })
            }
            opened => Ok((opened?, origin)),
        }
    }

    /// Opens a file, or the library that the loader finds under a bare name.
    pub(crate) fn open(file: &Path) -> Result<Library, Problem> {
        if file.components().count() > 1 {
            elf::check(file)?;
        }
        // SAFETY: opening a library runs its initializers. These are NVIDIA's and MPI's own libraries, or the file
        // that the user named for one; their initializers need nothing from us. The file is whole, as far as its
        // header tells.
        let opened = unsafe { open_now(file) };
        let (handle, loaded) = opened.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Problem::Refused { file: file.to_path_buf(), why }
        })?;
        Ok(Library { handle: ManuallyDrop::new(handle), file: loaded.unwrap_or_else(|| file.to_path_buf()) })
    }

    /// The file that was loaded, if the system tells it; otherwise the name that was opened.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the library exports `name`.
    pub(crate) fn exports(&self, name: &str) -> bool {
        // SAFETY: the address is looked up and never used, so its type does not matter.
        unsafe { self.handle.get::<*const ()>(name) }.is_ok()
    }

    /// The library itself, for generated bindings, which keep it open.
    pub(crate) fn into_handle(self) -> libloading::Library {
        ManuallyDrop::into_inner(self.handle)
    }

    /// The function `name`.
    ///
    /// # Safety
    /// `F` must be the function's type in C.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Problem> {
        // SAFETY: the caller's promise. The library is never closed, so the pointer may outlive the borrow.
        let found = unsafe { self.handle.get::<F>(name) };
        found.map(|function| *function).map_err(|_| Problem::Failed {
            call: name.to_string(),
            why: format!("{} does not export it", self.file.display()),
        })
    }

    /// `nvshmemx_vendor_get_version_info`: major, minor, patch of the library.
    pub(crate) fn nvshmem_version(&self) -> Result<[i32; 3], Problem> {
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: the type is that of nvshmemx_api.h 3.4 to 3.8; the function writes the three integers and works
        // before initialization.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) =
                self.function("nvshmemx_vendor_get_version_info")?;
            version(&mut major, &mut minor, &mut patch);
        }
        Ok([major, minor, patch])
    }

    /// `nvshmemx_init_status`, as NVSHMEM numbers it.
    pub(crate) fn nvshmem_init_status(&self) -> Result<i32, Problem> {
        // SAFETY: the type is that of nvshmemx_api.h; the function reads one variable and works before initialization.
        unsafe {
            let status: unsafe extern "C" fn() -> c_int = self.function("nvshmemx_init_status")?;
            Ok(status())
        }
    }
}

/// The driver's CUDA version (13000 is 13.0). cudarc has no safe call for it. It panics where there is no driver.
pub(crate) fn cuda_version() -> Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the function writes one integer, for which there is room, and needs no cuInit.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    Ok(version)
}

/// Opens a library and resolves all its symbols, so that a missing symbol is an error here and not a crash at the first
/// call. Also returns the file, which may lie anywhere if the library was opened by name.
///
/// # Safety
/// The library's initializers must be safe to run.
unsafe fn open_now(file: &Path) -> Result<(libloading::Library, Option<PathBuf>), libloading::Error> {
    #[cfg(unix)]
    {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        // SAFETY: the caller's promise; the handle goes out of a library and into one again.
        unsafe {
            let handle = Library::open(Some(file), RTLD_NOW | RTLD_LOCAL)?.into_raw();
            #[cfg(target_os = "linux")]
            let loaded = loaded_file(handle);
            #[cfg(not(target_os = "linux"))]
            let loaded = None;
            Ok((Library::from_raw(handle).into(), loaded))
        }
    }
    #[cfg(not(unix))]
    {
        // SAFETY: the caller's promise.
        unsafe { libloading::Library::new(file) }.map(|library| (library, None))
    }
}

/// The file behind a handle, as the loader found it. Links are not followed, because the folder of this path is the library's
/// own `$ORIGIN`, where it looks for its plugins.
///
/// # Safety
/// The handle must be one of `dlopen`, not closed.
#[cfg(target_os = "linux")]
unsafe fn loaded_file(handle: *mut c_void) -> Option<PathBuf> {
    /// `struct link_map` of `link.h`, as far as it is read here.
    #[repr(C)]
    struct LinkMap {
        address: usize,
        name: *const c_char,
    }
    const RTLD_DI_LINKMAP: c_int = 2;
    unsafe extern "C" {
        fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
    }
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: for this request `dlinfo` writes the address of the library's map, which stays as long as the library is
    // open; its name is a string that ends with a zero.
    let name = unsafe {
        if dlinfo(handle, RTLD_DI_LINKMAP, (&raw mut map).cast()) != 0 || map.is_null() || (*map).name.is_null() {
            return None;
        }
        CStr::from_ptr((*map).name).to_bytes()
    };
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_absent_file_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libabsent.so");
        let problem = Library::open(&file).map(drop).unwrap_err();
        assert!(problem.to_string().contains(&*file.to_string_lossy()), "{problem}");
    }

    #[test]
    fn a_file_of_garbage_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libgarbage.so");
        fs::write(&file, [0x5a; 10_000]).unwrap();
        let problem = Library::open(&file).map(drop).unwrap_err();
        assert!(matches!(&problem, Problem::Damaged { file: named, .. } if *named == file), "{problem:?}");
    }

    #[test]
    fn a_name_that_the_loader_does_not_know_is_refused_with_its_reason() {
        let problem = Library::open(Path::new("libonesided_is_not_here.so.9")).map(drop).unwrap_err();
        let Problem::Refused { file, why } = &problem else { panic!("{problem:?}") };
        assert_eq!(file, Path::new("libonesided_is_not_here.so.9"));
        assert!(why.len() > file.as_os_str().len(), "{why}");
    }

    /// The names in the generated table.
    fn names() -> impl Iterator<Item = &'static str> {
        include_str!("bindings.rs")
            .split(".get(b\"")
            .skip(1)
            .filter_map(|text| text.split_once("\\0"))
            .map(|(name, _)| name)
    }

    /// With the library that this machine has, if any.
    #[test]
    fn real_library_exports_the_table_else_not_run() {
        let required = std::env::var_os("ONESIDED_REQUIRE_LIBRARY").is_some();
        let library = Library::find(&Search::from_environment(None)).map(|(library, _)| library);
        let library = match library {
            Err(problem) if !required => return println!("not run: no library ({problem})"),
            library => library.unwrap(),
        };
        let version = library.nvshmem_version().unwrap();
        let missing: Vec<_> = names().filter(|name| !library.exports(name)).collect();
        let later: &[&str] = if version < [3, 7, 0] { &["nvshmemx_flush", "nvshmemx_flush_on_stream"] } else { &[] };
        assert!(names().count() > 90, "the names of the table were not found in the generated file");
        assert_eq!(missing.as_slice(), later, "{version:?}");
    }

    #[test]
    fn a_file_in_the_current_folder_is_looked_at_before_the_loader_sees_it() {
        let (argument, variable) = (Some("Cargo.toml".into()), None); // the current folder of tests is the crate's
        let search = Search { argument, variable, home: None, python: Ok(vec![]), loader: vec![] };
        let problem = Library::find(&search).map(drop).unwrap_err();
        assert!(matches!(&problem, Problem::Damaged { file, .. } if file.is_absolute()), "{problem:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_file_of_a_library_that_the_loader_found_is_known() {
        let libc = Library::open(Path::new("libc.so.6")).unwrap();
        assert!(libc.file().is_absolute() && libc.file().ends_with("libc.so.6"), "{:?}", libc.file());
        assert!(libc.file().exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_without_the_functions_is_an_error_and_no_call() {
        let libc = Library::open(Path::new("libc.so.6")).unwrap();
        assert!(libc.exports("malloc") && !libc.exports("nvshmem_malloc"));
        for problem in [libc.nvshmem_version().map(drop), libc.nvshmem_init_status().map(drop)] {
            assert!(problem.unwrap_err().to_string().contains("does not export it"));
        }
    }
}
