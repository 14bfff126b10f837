//! [`Nvrtc`]: NVIDIA's compiler as a library, opened at run time.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;

use crate::error::{CompileError, input};
use crate::options::{Options, Source, capability};
use crate::ptx::{Cached, Ptx};
use crate::search::{Origin, Search};
use crate::{HEADERS, library, log};

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
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    lowered_name: unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> Status,
}

/// What is compiled, once everything was checked.
pub(crate) struct Job<'a> {
    pub(crate) source: &'a Source,
    /// Headers that need no folder: names and texts.
    pub(crate) headers: &'a [(&'static str, &'static str)],
    pub(crate) arguments: Vec<String>,
    /// Name expressions.
    pub(crate) names: &'a BTreeSet<String>,
    pub(crate) form: Form,
}

/// What a text is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Ptx,
    /// Machine code, for the architecture of one GPU.
    Cubin,
}

/// What came out.
pub(crate) struct Compiled {
    pub(crate) bytes: Vec<u8>,
    /// Name expressions with the names that they have there.
    pub(crate) names: BTreeMap<String, String>,
    /// Warnings.
    pub(crate) log: String,
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
        Ok(search.open(Nvrtc::load)?)
    }

    /// Opens a file that was found before.
    pub(crate) fn open(file: &Path, origin: Origin) -> Result<Nvrtc, CompileError> {
        Nvrtc::load(file, origin).map_err(|why| CompileError::Unusable { file: file.to_path_buf(), why })
    }

    /// Opens a file, or the library that the loader finds under a bare name. The error is in words.
    fn load(file: &Path, origin: Origin) -> Result<Nvrtc, String> {
        let library = library::open(file)?;
        let functions = Functions::of(&library)
            .map_err(|name| format!("it does not export {name}: it is not NVRTC of CUDA 12 or 13"))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the function writes two integers, for which there is room.
        let status = unsafe { (functions.version)(&mut major, &mut minor) };
        let nvrtc = Nvrtc { functions, version: (major, minor), file: file.to_path_buf(), origin };
        nvrtc.check("nvrtcVersion", status).map_err(|why| why.to_string())?;
        // NVRTC opens its second library by name, and finds it only on the loader's path, or if it is open already.
        if let Some(builtins) = beside(file, &nvrtc.builtins()) {
            library::open(&builtins).map_err(|why| format!("{}: {why}", builtins.display()))?;
        }
        Ok(nvrtc)
    }

    /// The name of its second library.
    fn builtins(&self) -> String {
        format!("libnvrtc-builtins.so.{}.{}", self.version.0, self.version.1)
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
        self.check_architecture(&options.architecture)?;
        let arguments = options.arguments();
        let names = &options.names;
        let compiled = self.run(&Job { source, headers: &HEADERS, arguments, names, form: Form::Ptx })?;
        let text = String::from_utf8_lossy(&compiled.bytes);
        let text = crate::ptx::without_current_folder(text.trim_end_matches('\0').to_string(), source);
        let Compiled { names, log: warnings, .. } = compiled;
        Ok(Ptx { text, names, version: self.version, warnings, cached: Cached::No(String::new()) })
    }

    /// Whether it compiles for an architecture: `compute_90`, or `sm_90` and its kin.
    pub(crate) fn check_architecture(&self, architecture: &str) -> Result<(), CompileError> {
        let known = self.architectures()?;
        let virtually = architecture.replacen("sm_", "compute_", 1);
        if capability(&virtually).is_none_or(|wanted| !known.contains(&wanted)) {
            let (kind, _) = architecture.split_once('_').unwrap_or(("compute", ""));
            let known: Vec<_> = known.iter().map(|number| format!("{kind}_{number}")).collect();
            let why = format!("NVRTC {}.{} compiles for {}", self.version.0, self.version.1, known.join(", "));
            return Err(input(format!("the architecture {architecture}"), why));
        }
        Ok(())
    }

    /// Compiles on a thread of its own.
    pub(crate) fn run(&self, job: &Job<'_>) -> Result<Compiled, CompileError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || self.run_here(job));
            let failed = |why: String| CompileError::Failed { call: "nvrtcCompileProgram", why };
            match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(failed("it panicked".to_string()))),
                Err(error) => Err(failed(format!("no thread for it: {error}"))),
            }
        })
    }

    fn run_here(&self, job: &Job<'_>) -> Result<Compiled, CompileError> {
        let functions = &self.functions;
        let program = Created::new(self, job)?;
        let names = strings(job.names)?;
        for name in &names {
            // SAFETY: the program is created and not compiled yet; the name ends with a zero.
            self.check("nvrtcAddNameExpression", unsafe { (functions.add_name)(program.handle, name.as_ptr()) })?;
        }
        let arguments = strings(&job.arguments)?;
        let pointers = pointers(&arguments);
        // SAFETY: as many pointers as are told, to strings that live until the call returns.
        let status = unsafe { (functions.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr()) };
        let said = self.bytes("nvrtcGetProgramLog", program.handle, functions.log_size, functions.log)?;
        let log = log::readable(String::from_utf8_lossy(&said).trim_end_matches('\0'));
        if status == COMPILATION {
            return Err(CompileError::Source { name: job.source.name.clone(), hints: log::hints(&log), log });
        }
        if status != 0 && log.contains("failed to open libnvrtc-builtins") {
            let why =
                format!("{} is neither beside it nor where the loader looks; both come together", self.builtins());
            return Err(CompileError::Unusable { file: self.file.clone(), why });
        }
        if status != 0 && !log.is_empty() {
            return Err(CompileError::Failed { call: "nvrtcCompileProgram", why: log });
        }
        self.check("nvrtcCompileProgram", status)?;
        let bytes = match job.form {
            Form::Ptx => self.bytes("nvrtcGetPTX", program.handle, functions.ptx_size, functions.ptx)?,
            Form::Cubin => self.bytes("nvrtcGetCUBIN", program.handle, functions.cubin_size, functions.cubin)?,
        };
        let mut lowered = BTreeMap::new();
        for (expression, name) in job.names.iter().zip(&names) {
            let mut found = ptr::null();
            // SAFETY: the program is compiled, and the name is one that was added.
            let status = unsafe { (functions.lowered_name)(program.handle, name.as_ptr(), &mut found) };
            self.check("nvrtcGetLoweredName", status)?;
            // SAFETY: it is a string of the program, which ends with a zero and lives as long as the program.
            let found = unsafe { CStr::from_ptr(found) };
            lowered.insert(expression.clone(), found.to_string_lossy().into_owned());
        }
        Ok(Compiled { bytes, names: lowered, log })
    }

    /// An output of the program. `size` tells its size, and `write` writes it. Texts end with a zero byte.
    fn bytes(
        &self,
        call: &'static str,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        write: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, CompileError> {
        let mut bytes = 0;
        // SAFETY: the program is created; the function writes one number.
        self.check(call, unsafe { size(program, &mut bytes) })?;
        let mut read = vec![0_u8; bytes];
        // SAFETY: the function writes as many bytes as the other one said, for which there is room.
        self.check(call, unsafe { write(program, read.as_mut_ptr().cast()) })?;
        Ok(read)
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
        use library::function;
        // SAFETY: the types are those of nvrtc.h, which have not changed from CUDA 12.0 to 13.0.
        unsafe {
            Ok(Functions {
                version: function(library, "nvrtcVersion")?,
                error_string: function(library, "nvrtcGetErrorString")?,
                n_architectures: function(library, "nvrtcGetNumSupportedArchs")?,
                architectures: function(library, "nvrtcGetSupportedArchs")?,
                create: function(library, "nvrtcCreateProgram")?,
                destroy: function(library, "nvrtcDestroyProgram")?,
                add_name: function(library, "nvrtcAddNameExpression")?,
                compile: function(library, "nvrtcCompileProgram")?,
                log_size: function(library, "nvrtcGetProgramLogSize")?,
                log: function(library, "nvrtcGetProgramLog")?,
                ptx_size: function(library, "nvrtcGetPTXSize")?,
                ptx: function(library, "nvrtcGetPTX")?,
                cubin_size: function(library, "nvrtcGetCUBINSize")?,
                cubin: function(library, "nvrtcGetCUBIN")?,
                lowered_name: function(library, "nvrtcGetLoweredName")?,
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
    fn new(nvrtc: &'a Nvrtc, job: &Job<'_>) -> Result<Created<'a>, CompileError> {
        let own = strings([&job.source.text, &job.source.name])?;
        let headers = strings(job.headers.iter().map(|(_, text)| text))?;
        let names = strings(job.headers.iter().map(|(name, _)| name))?;
        let (header_texts, header_names) = (pointers(&headers), pointers(&names));
        let mut handle = ptr::null_mut();
        // SAFETY: the strings end with a zero and live until the call returns, which copies them; the numbers of pointers are right.
        let status = unsafe {
            (nvrtc.functions.create)(
                &mut handle,
                own[0].as_ptr(),
                own[1].as_ptr(),
                headers.len() as c_int,
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

/// The file `name` in the folder of another file, or in the folder of the file that the other one links to. `None` if neither
/// has it.
fn beside(file: &Path, name: &str) -> Option<PathBuf> {
    let folders = [Some(file.to_path_buf()), file.canonicalize().ok()].into_iter().flatten();
    folders.map(|file| file.with_file_name(name)).find(|other| other.is_absolute() && other.exists())
}

/// The texts as C strings. The user's texts were checked for NUL before, where the error can name the place.
fn strings<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Vec<CString>, CompileError> {
    let text = |text: T| CString::new(text.as_ref()).map_err(|_| input(format!("{:?}", text.as_ref()), "it has a NUL"));
    texts.into_iter().map(text).collect()
}

/// For C, as long as the strings live.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
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
