//! [`Nvrtc`]: NVIDIA's compiler as a library, opened at run time. The only file that calls C.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;
use object::read::elf::ElfFile64;
use object::{Architecture, Object as _, ObjectKind, ObjectSegment as _, ReadCache};

use crate::error::{CompileError, input};
use crate::options::{Options, Source, capability};
use crate::ptx::{Cached, Ptx};
use crate::search::{Origin, SONAMES, Search, python_folders};
use crate::{HEADERS, log};

/// NVRTC compiles on a thread of its own: it needs more stack for nested templates than a caller may have.
const STACK: usize = 64 << 20;

type Program = *mut c_void;
type Status = c_int;

const COMPILATION: Status = 6;

/// An open NVRTC. It is never closed.
#[derive(Debug)]
pub struct Nvrtc {
    functions: Functions,
    version: (i32, i32),
    file: PathBuf,
    origin: Origin,
}

/// The functions that are used, with the types of nvrtc.h 12.0 to 13.0.
#[derive(Debug)]
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    n_architectures: unsafe extern "C" fn(*mut c_int) -> Status,
    architectures: unsafe extern "C" fn(*mut c_int) -> Status,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    add_name: unsafe extern "C" fn(Program, *const c_char) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    lowered_name: unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> Status,
}

impl Nvrtc {
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

    /// Opens NVRTC where the search finds it. Also returns Python's folders, as far as Python was asked.
    pub(crate) fn find(search: &Search) -> Result<(Nvrtc, Vec<PathBuf>), CompileError> {
        if let Some((file, origin)) = search.named()? {
            return Ok((Nvrtc::open(&file, origin)?, Vec::new()));
        }
        let python = python_folders();
        let folders = python.as_deref().unwrap_or_default();
        if let Some((file, origin)) = search.in_folders(folders) {
            return Ok((Nvrtc::open(&file, origin)?, folders.to_vec()));
        }
        let mut looked = vec![format!("{} is not set", crate::search::VARIABLE)];
        looked.push(match &python {
            Ok(folders) => format!("not in Python's {} package folders", folders.len()),
            Err(why) => why.clone(),
        });
        for name in SONAMES {
            match Nvrtc::open(Path::new(name), Origin::Loader) {
                Ok(nvrtc) => return Ok((nvrtc, folders.to_vec())),
                Err(CompileError::Unusable { why, .. }) => looked.push(format!("the loader: {why}")),
                Err(other) => return Err(other),
            }
        }
        Err(CompileError::NotFound { looked })
    }

    /// Opens a file, or the library that the loader finds under a bare name.
    pub(crate) fn open(file: &Path, origin: Origin) -> Result<Nvrtc, CompileError> {
        let library = open_library(file)?;
        let functions = Functions::of(&library)
            .map_err(|name| unusable(file, format!("it does not export {name}: it is not NVRTC of CUDA 12 or 13")))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the function writes two integers, for which there is room.
        let status = unsafe { (functions.version)(&mut major, &mut minor) };
        let nvrtc = Nvrtc { functions, version: (major, minor), file: file.to_path_buf(), origin };
        nvrtc.check("nvrtcVersion", status)?;
        // NVRTC opens its second library by name, and finds it only on the loader's path, or if it is open already.
        let builtins = file.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
        if builtins.is_absolute() && builtins.exists() {
            open_library(&builtins)?;
        }
        Ok(nvrtc)
    }

    /// The virtual architectures that it compiles for, by their numbers.
    fn architectures(&self) -> Result<Vec<c_int>, CompileError> {
        let mut count = 0;
        // SAFETY: the function writes one integer.
        self.check("nvrtcGetNumSupportedArchs", unsafe { (self.functions.n_architectures)(&mut count) })?;
        let mut numbers = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the function writes as many integers as the other one said, for which there is room.
        self.check("nvrtcGetSupportedArchs", unsafe { (self.functions.architectures)(numbers.as_mut_ptr()) })?;
        Ok(numbers)
    }

    /// Compiles a text and options that were checked.
    pub(crate) fn compile(&self, source: &Source, options: &Options) -> Result<Ptx, CompileError> {
        let known = self.architectures()?;
        if capability(&options.architecture).is_none_or(|wanted| !known.contains(&wanted)) {
            let known: Vec<_> = known.iter().map(|number| format!("compute_{number}")).collect();
            let why = format!("NVRTC {}.{} compiles for {}", self.version.0, self.version.1, known.join(", "));
            return Err(input(format!("the architecture {}", options.architecture), why));
        }
        std::thread::scope(|scope| {
            let thread =
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || self.run(source, options));
            let failed = |why: String| CompileError::Failed { call: "nvrtcCompileProgram", why };
            match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(failed("it panicked".to_string()))),
                Err(error) => Err(failed(format!("no thread for it: {error}"))),
            }
        })
    }

    fn run(&self, source: &Source, options: &Options) -> Result<Ptx, CompileError> {
        let functions = &self.functions;
        let program = Created::new(self, source)?;
        let names = strings(&options.names)?;
        for name in &names {
            // SAFETY: the program is created and not compiled yet; the name ends with a zero.
            self.check("nvrtcAddNameExpression", unsafe { (functions.add_name)(program.handle, name.as_ptr()) })?;
        }
        let arguments = strings(options.arguments())?;
        let pointers = pointers(&arguments);
        // SAFETY: as many pointers as are told, to strings that live until the call returns.
        let status = unsafe { (functions.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr()) };
        let said = self.text("nvrtcGetProgramLog", program.handle, functions.log_size, functions.log)?;
        let log = log::readable(&said);
        if status == COMPILATION {
            return Err(CompileError::Source { name: source.name.clone(), hints: log::hints(&log), log });
        }
        if status != 0 && !log.is_empty() {
            return Err(CompileError::Failed { call: "nvrtcCompileProgram", why: log });
        }
        self.check("nvrtcCompileProgram", status)?;
        let text = self.text("nvrtcGetPTX", program.handle, functions.ptx_size, functions.ptx)?;
        let mut lowered = BTreeMap::new();
        for (expression, name) in options.names.iter().zip(&names) {
            let mut found = ptr::null();
            // SAFETY: the program is compiled, and the name is one that was added.
            let status = unsafe { (functions.lowered_name)(program.handle, name.as_ptr(), &mut found) };
            self.check("nvrtcGetLoweredName", status)?;
            // SAFETY: it is a string of the program, which ends with a zero and lives as long as the program.
            let found = unsafe { CStr::from_ptr(found) };
            lowered.insert(expression.clone(), found.to_string_lossy().into_owned());
        }
        let text = crate::ptx::without_current_folder(text, source);
        Ok(Ptx { text, names: lowered, version: self.version, warnings: log, cached: Cached::No(String::new()) })
    }

    /// A text of the program, by the function that tells its size and the one that writes it.
    fn text(
        &self,
        call: &'static str,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        write: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<String, CompileError> {
        let mut bytes = 0;
        // SAFETY: the program is created; the function writes one number.
        self.check(call, unsafe { size(program, &mut bytes) })?;
        let mut text = vec![0_u8; bytes];
        // SAFETY: the function writes as many bytes as the other one said, for which there is room.
        self.check(call, unsafe { write(program, text.as_mut_ptr().cast()) })?;
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(bytes);
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), CompileError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: for every number the function returns a string that lives as long as the library, which is never closed.
        let why = unsafe { CStr::from_ptr((self.functions.error_string)(status)) };
        Err(CompileError::Failed { call, why: why.to_string_lossy().into_owned() })
    }
}

impl Functions {
    /// Looks all of them up. The error is the name of one that is missing.
    fn of(library: &Library) -> Result<Functions, &'static str> {
        /// # Safety
        /// `F` must be the function's type in C.
        unsafe fn get<F: Copy>(library: &Library, name: &'static str) -> Result<F, &'static str> {
            // SAFETY: the caller's promise. The library is never closed, so the pointer may outlive the borrow.
            unsafe { library.get::<F>(name) }.map(|function| *function).map_err(|_| name)
        }
        // SAFETY: the types are those of nvrtc.h, which have not changed from CUDA 12.0 to 13.0.
        unsafe {
            Ok(Functions {
                version: get(library, "nvrtcVersion")?,
                error_string: get(library, "nvrtcGetErrorString")?,
                n_architectures: get(library, "nvrtcGetNumSupportedArchs")?,
                architectures: get(library, "nvrtcGetSupportedArchs")?,
                create: get(library, "nvrtcCreateProgram")?,
                destroy: get(library, "nvrtcDestroyProgram")?,
                add_name: get(library, "nvrtcAddNameExpression")?,
                compile: get(library, "nvrtcCompileProgram")?,
                log_size: get(library, "nvrtcGetProgramLogSize")?,
                log: get(library, "nvrtcGetProgramLog")?,
                ptx_size: get(library, "nvrtcGetPTXSize")?,
                ptx: get(library, "nvrtcGetPTX")?,
                lowered_name: get(library, "nvrtcGetLoweredName")?,
            })
        }
    }
}

/// A program of NVRTC, destroyed when it is dropped.
struct Created<'a> {
    nvrtc: &'a Nvrtc,
    handle: Program,
}

impl<'a> Created<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &Source) -> Result<Created<'a>, CompileError> {
        let own = strings([&source.text, &source.name])?;
        let headers = strings(HEADERS.map(|(_, text)| text))?;
        let names = strings(HEADERS.map(|(name, _)| name))?;
        let (header_texts, header_names) = (pointers(&headers), pointers(&names));
        let mut handle = ptr::null_mut();
        // SAFETY: the strings end with a zero and live until the call returns, which copies them; the numbers of pointers are right.
        let status = unsafe {
            (nvrtc.functions.create)(
                &mut handle,
                own[0].as_ptr(),
                own[1].as_ptr(),
                HEADERS.len() as c_int,
                header_texts.as_ptr(),
                header_names.as_ptr(),
            )
        };
        nvrtc.check("nvrtcCreateProgram", status)?;
        Ok(Created { nvrtc, handle })
    }
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created, and nobody uses it any more. What the call returns does not matter.
        unsafe { (self.nvrtc.functions.destroy)(&mut self.handle) };
    }
}

/// As C has them. What could have a NUL was checked before, and says so there with its place.
fn strings<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Vec<CString>, CompileError> {
    let text = |text: T| CString::new(text.as_ref()).map_err(|_| input(format!("{:?}", text.as_ref()), "it has a NUL"));
    texts.into_iter().map(text).collect()
}

/// For C, as long as the strings live.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

/// Opens a library for good. All its symbols are resolved here, so that a missing one is no crash later.
fn open_library(file: &Path) -> Result<ManuallyDrop<Library>, CompileError> {
    if file.is_absolute() {
        whole(file).map_err(|why| unusable(file, why))?;
    }
    #[cfg(unix)]
    // SAFETY: opening a library runs its initializers. It is NVIDIA's library, or the file that the user named for it; its
    // initializers need nothing from us. The file is whole, as far as its header tells.
    let opened = unsafe {
        use libloading::os::unix;
        unix::Library::open(Some(file), unix::RTLD_NOW | unix::RTLD_LOCAL).map(Library::from)
    };
    #[cfg(not(unix))]
    // SAFETY: the same.
    let opened = unsafe { Library::new(file) };
    opened
        .map(ManuallyDrop::new)
        .map_err(|error| unusable(file, error.source().map_or_else(|| error.to_string(), ToString::to_string)))
}

/// Whether the loader can map the file without danger: one that was cut off would end the process.
fn whole(path: &Path) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let cache = ReadCache::new(file);
    let elf: ElfFile64<'_, object::Endianness, _> =
        ElfFile64::parse(&cache).map_err(|why| format!("it is not a whole library ({why})"))?;
    let machine = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        _ => Architecture::Unknown,
    };
    if elf.architecture() != machine {
        return Err(format!("it is for another machine than {}", std::env::consts::ARCH));
    }
    if elf.kind() != ObjectKind::Dynamic {
        return Err("it is a program or an object file, not a shared library".to_string());
    }
    let ends = elf.segments().map(|segment| segment.file_range()).map(|(start, size)| start.saturating_add(size));
    let needed = ends.max().unwrap_or(u64::MAX);
    if needed > length { Err(format!("it is cut off: {length} bytes of at least {needed}")) } else { Ok(()) }
}

fn unusable(file: &Path, why: impl Into<String>) -> CompileError {
    CompileError::Unusable { file: file.to_path_buf(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn refused(file: &Path) -> String {
        let Err(CompileError::Unusable { file: named, why }) = Nvrtc::open(file, Origin::Argument) else {
            panic!("{} is taken for NVRTC", file.display());
        };
        assert_eq!(named, file);
        why
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_damaged_library_is_refused_before_the_loader_maps_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libnvrtc.so.13");
        fs::write(&file, [0x5a; 10_000]).unwrap();
        assert!(refused(&file).starts_with("it is not a whole library"), "{}", refused(&file));
        let own = std::env::current_exe().unwrap();
        let bytes = fs::read(&own).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let why = refused(&file);
        assert!(why.contains("whole library") || why.contains("cut off"), "{why}");
        assert!(refused(&folder.path().join("absent.so")).contains("No such file"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_library_is_refused_by_the_function_that_it_lacks() {
        let why = refused(Path::new("libc.so.6"));
        assert_eq!(why, "it does not export nvrtcVersion: it is not NVRTC of CUDA 12 or 13");
    }
}
