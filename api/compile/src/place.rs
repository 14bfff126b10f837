//! [`Place`]: where NVRTC, or nvJitLink, was found, remembered beside the PTX. Asking Python for its folders and opening the library take longer
//! than reading PTX from the cache.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::cache::{Store, Sum};
use crate::nvrtc::Nvrtc;
use crate::search::{Origin, Search};

/// The variables that, together with the options, decide which folders Python has.
const VARIABLES: [&str; 6] = ["PATH", "HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME"];

/// A library, without opening it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) version: (i32, i32),
    /// Of the file, which also tells builds of one version apart; 0 if the loader found it by its name.
    pub(crate) size: u64,
    /// When the file was changed, in nanoseconds since 1970.
    changed: u128,
    /// Python's folders, as Python told them.
    python: Vec<PathBuf>,
}

impl Place {
    pub(crate) fn of(nvrtc: &Nvrtc, python: Vec<PathBuf>) -> Place {
        Place::new(nvrtc.file(), nvrtc.origin(), nvrtc.version(), python)
    }

    pub(crate) fn new(file: &Path, origin: Origin, version: (i32, i32), python: Vec<PathBuf>) -> Place {
        let (size, changed) = stamp(file).unwrap_or_default();
        Place { file: file.to_path_buf(), origin, version, size, changed, python }
    }

    /// What tells this library from others.
    pub(crate) fn stamp(&self) -> String {
        format!("{:?} {}", self.version, self.size)
    }

    /// The place that was remembered for this environment, if the search would lead there again and the file has not changed.
    pub(crate) fn known(store: &Store, search: &Search) -> Option<Place> {
        let (place, _) = store.read::<Place>(&key(search))?;
        let found = search.named().ok()?.or_else(|| search.in_folders(&place.python))?;
        let is_same = found == (place.file.clone(), place.origin) && stamp(&place.file)? == (place.size, place.changed);
        is_same.then_some(place)
    }

    /// Remembers it for this environment. If that fails, the next search takes longer.
    pub(crate) fn remember(&self, store: &Store, search: &Search) {
        if self.file.is_absolute() {
            let _ = store.write(&key(search), self);
        }
    }
}

fn stamp(file: &Path) -> Option<(u64, u128)> {
    let metadata = file.is_absolute().then(|| std::fs::metadata(file).ok())??;
    Some((metadata.len(), metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos()))
}

/// The name of an environment.
fn key(search: &Search) -> String {
    let name = search.tool.name.to_lowercase();
    let mut sum = Sum::new(&format!("{name} 1"));
    for variable in VARIABLES {
        sum.add(std::env::var_os(variable).unwrap_or_default().as_encoded_bytes());
    }
    let folder = std::env::current_dir().unwrap_or_default(); // tools that choose a Python by the current folder
    for path in [Some(&folder), search.argument.as_ref(), search.variable.as_ref()]
        .into_iter()
        .chain(search.loader.iter().map(Some))
    {
        sum.add(path.map_or(&b"none"[..], |path| path.as_os_str().as_encoded_bytes()));
    }
    format!("{name}-{}", sum.finish())
}

#[cfg(test)]
impl Default for Place {
    fn default() -> Place {
        let (file, python) = (PathBuf::new(), Vec::new());
        Place { file, origin: Origin::Argument, version: (0, 0), size: 0, changed: 0, python }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::options::Options;

    #[test]
    fn a_place_is_known_until_the_search_leads_elsewhere_or_the_file_changes() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::of(&Options::new().cache(root.path().join("cache")).cache).unwrap();
        let library = |folder: &str| {
            let file = root.path().join(folder).join("libnvrtc.so.13");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "one").unwrap();
            file
        };
        let file = library("new/nvidia/cu13/lib");
        let search = Search::default();
        assert_eq!(Place::known(&store, &search), None);
        let (size, changed) = stamp(&file).unwrap();
        let python = vec![root.path().join("newer"), root.path().join("new")];
        let place = Place { file: file.clone(), origin: Origin::Python, version: (13, 0), size, changed, python };
        place.remember(&store, &search);
        assert_eq!(Place::known(&store, &search), Some(place.clone()));

        let named = Search { argument: Some(file.clone()), ..Search::default() };
        assert_eq!(Place::known(&store, &named), None, "another search");
        fs::write(&file, "three").unwrap();
        assert_eq!(Place::known(&store, &search), None, "another file");
        let (size, changed) = stamp(&file).unwrap();
        let place = Place { size, changed, ..place };
        place.remember(&store, &search);
        assert_eq!(Place::known(&store, &search), Some(place));
        library("newer/nvidia/cu13/lib");
        assert_eq!(Place::known(&store, &search), None, "one that comes first");
    }
}
