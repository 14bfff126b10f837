//! Opens libraries of CUDA's toolkit, for good.
#![allow(unsafe_code)]

use std::error::Error as _;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::Library;
use object::read::elf::ElfFile64;
use object::{Architecture, Object as _, ObjectKind, ObjectSegment as _, ReadCache};

/// Opens a library for good. All its symbols are resolved here, so that a missing one is no crash later.
pub(crate) fn open(file: &Path) -> Result<ManuallyDrop<Library>, String> {
    if file.is_absolute() {
        whole(file)?;
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
    opened.map(ManuallyDrop::new).map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// The function of that name.
///
/// # Errors
/// The name, if the library lacks it.
///
/// # Safety
/// `F` must be the function's type in C. The library must not be closed.
pub(crate) unsafe fn function<F: Copy>(library: &Library, name: &'static str) -> Result<F, &'static str> {
    // SAFETY: the caller's promise. The library is never closed, so the pointer may outlive the borrow.
    unsafe { library.get::<F>(name) }.map(|function| *function).map_err(|_| name)
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
