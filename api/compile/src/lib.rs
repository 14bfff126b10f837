#![doc = include_str!("../README.md")]

mod cache;
mod error;
pub mod gpu;
mod includes;
mod library;
mod log;
mod nvrtc;
mod options;
mod place;
mod ptx;
mod python;
mod search;

use std::path::Path;

use crate::cache::Store;
use crate::place::Place;
use crate::search::Search;

pub use error::CompileError;
pub use nvrtc::Nvrtc;
pub use options::{Options, Source};
pub use ptx::{Cached, Ptx};
#[doc(hidden)]
pub use python::python_folders;
pub use search::Origin;

/// The headers that every text can include, without an include folder.
pub(crate) const HEADERS: [(&str, &str); 3] =
    [MARKS, ("nvshmem.h", include_str!("../include/nvshmem.h")), ("nvshmemx.h", include_str!("../include/nvshmemx.h"))];
/// Marks of races that a kernel means, whoever's NVSHMEM it is compiled with.
pub(crate) const MARKS: (&str, &str) = ("onesided.h", include_str!("../include/onesided.h"));

/// Compiles CUDA C++ to PTX, or takes the PTX from the cache.
///
/// # Errors
/// * [`CompileError::NotFound`], [`CompileError::Unusable`]: there is no NVRTC, or it does not work.
/// * [`CompileError::Input`]: an option, or the text as a whole, cannot be given to NVRTC.
/// * [`CompileError::Source`]: the text does not compile.
///
/// A cache that cannot be read or written is no error: [`Ptx::cached`] says so.
pub fn compile(source: &Source, options: &Options) -> Result<Ptx, CompileError> {
    source.check()?;
    options.check()?;
    let search = Search::from_environment(&search::NVRTC, options.nvrtc.as_deref());
    let store = Store::of(&options.cache);
    let files = includes::closure(source, options);

    let known = store.as_ref().ok().and_then(|store| Place::known(store, &search));
    let (place, nvrtc) = match known {
        Some(place) => (place, None),
        None => {
            let (nvrtc, python) = Nvrtc::find(&search)?;
            let place = Place::of(&nvrtc, python);
            if let Ok(store) = &store {
                place.remember(store, &search);
            }
            (place, Some(nvrtc))
        }
    };
    let key = files.as_ref().map(|files| cache::key(source, options, files, &place));
    if let (Ok(store), Ok(key)) = (&store, &key)
        && let Some(found) = ptx::read(store, key)
    {
        return Ok(ptx::from_current_folder(found, source));
    }
    let nvrtc = nvrtc.map_or_else(|| Nvrtc::open(&place.file, place.origin), Ok)?;
    let mut ptx = nvrtc.compile(source, options)?;
    ptx.cached = match (&store, &key) {
        (Ok(_), Ok(_)) if includes::closure(source, options) != files => Cached::No(includes::CHANGED.to_string()),
        (Ok(store), Ok(key)) => ptx::write(store, key, &ptx),
        (Err(why), _) => Cached::No(why.clone()),
        (_, Err(why)) => Cached::No(why.to_string()),
    };
    Ok(ptx::from_current_folder(ptx, source))
}

/// The NVRTC that [`compile`] uses: `named` is its file, or the folder that holds it. `None` looks in the usual places.
///
/// # Errors
/// [`CompileError::NotFound`] says in one line where it was looked for and how to get it; [`CompileError::Unusable`] what is wrong
/// with the file that was found.
pub fn find(named: Option<&Path>) -> Result<Nvrtc, CompileError> {
    Nvrtc::find(&Search::from_environment(&search::NVRTC, named)).map(|(nvrtc, _)| nvrtc)
}
