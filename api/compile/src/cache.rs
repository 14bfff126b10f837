//! [`Store`]: what was compiled, on disk. A file is written as a whole or not at all, and begins with the sum of the rest.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::HEADERS;
use crate::options::{Cache, Options, Source};
use crate::place::Place;

/// Environment variable with the folder, or `off`.
const VARIABLE: &str = "ONESIDED_CACHE";

/// Digits of a sum.
const SUM: usize = 64;

/// A folder of cached values.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in the options' folder, else in the environment's, else in the platform's folder for caches. The error says
    /// why there is none.
    pub(crate) fn of(cache: &Cache) -> Result<Store, String> {
        Store::named(cache, std::env::var_os(VARIABLE).filter(|value| !value.is_empty()))
    }

    fn named(cache: &Cache, variable: Option<OsString>) -> Result<Store, String> {
        let folder = match (cache, variable) {
            (Cache::Off, _) => return Err("the cache is switched off".to_string()),
            (Cache::Folder(folder), _) => folder.clone(),
            (Cache::Usual, Some(value)) if value == "off" => return Err(format!("{VARIABLE}=off")),
            (Cache::Usual, Some(folder)) => PathBuf::from(folder),
            (Cache::Usual, None) => {
                let base = etcetera::choose_base_strategy().map_err(|why| format!("no folder for caches: {why}"))?;
                base.cache_dir().join("onesided")
            }
        };
        Ok(Store { folder })
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join(key)
    }

    /// The value under the key, with its file. `None` if there is none, or if the file is damaged.
    pub(crate) fn read<T: DeserializeOwned>(&self, key: &str) -> Option<(T, PathBuf)> {
        let (bytes, file) = self.read_bytes(key)?;
        Some((serde_json::from_slice(&bytes).ok()?, file))
    }

    /// The same, for bytes.
    pub(crate) fn read_bytes(&self, key: &str) -> Option<(Vec<u8>, PathBuf)> {
        let file = self.file(key);
        let mut bytes = fs::read(&file).ok()?;
        let (sum, value) = bytes.split_at_checked(SUM)?;
        (sum == hex(&Sha256::digest(value)).as_bytes()).then_some(())?;
        bytes.drain(..SUM);
        Some((bytes, file))
    }

    /// Writes the value under the key. Whoever reads at the same time sees the old file or the new one.
    pub(crate) fn write<T: Serialize>(&self, key: &str, value: &T) -> io::Result<PathBuf> {
        self.write_bytes(key, &serde_json::to_vec(value)?)
    }

    /// The same, for bytes.
    pub(crate) fn write_bytes(&self, key: &str, value: &[u8]) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        let mut new = unnamed(&self.folder)?;
        new.write_all(hex(&Sha256::digest(value)).as_bytes())?;
        new.write_all(value)?;
        new.persist(self.file(key))?;
        Ok(self.file(key))
    }

    /// Waits until no other process or thread makes the value under the key, and locks the key. The lock ends when the returned
    /// file is closed, or when the process ends. `None` if files cannot be locked here.
    pub(crate) fn lock(&self, key: &str) -> Option<fs::File> {
        fs::create_dir_all(&self.folder).ok()?;
        let file = fs::File::options().create(true).append(true).open(self.file(&format!("{key}.lock"))).ok()?;
        file.lock().ok()?;
        Some(file)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A file that gets its name once it is whole. Who may read it is as for any other file: several users may share the folder.
fn unnamed(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less the user's mask
    builder.tempfile_in(folder)
}

/// The name of everything that the PTX depends on.
pub(crate) fn key(source: &Source, options: &Options, files: &BTreeMap<PathBuf, Vec<u8>>, place: &Place) -> String {
    let mut sum = Sum::new("ptx 2");
    sum.add(env!("CARGO_PKG_VERSION"));
    HEADERS.iter().for_each(|(name, text)| _ = sum.add(name).add(text));
    sum.add_compilation(source, options, files).add(place.stamp());
    format!("ptx-{}", sum.finish())
}

/// The sum of several texts. Each is added with its length, so that different sequences of texts have different sums.
pub(crate) struct Sum(Sha256);

impl Sum {
    pub(crate) fn new(what: &str) -> Sum {
        let mut sum = Sum(Sha256::new());
        sum.add(what);
        sum
    }

    pub(crate) fn add(&mut self, bytes: impl AsRef<[u8]>) -> &mut Sum {
        self.0.update((bytes.as_ref().len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// What is compiled: the text, how, and all that it may include. The order of the include folders counts.
    pub(crate) fn add_compilation(
        &mut self,
        source: &Source,
        options: &Options,
        files: &BTreeMap<PathBuf, Vec<u8>>,
    ) -> &mut Sum {
        self.add(&source.name).add(&source.text);
        for part in [options.arguments(), options.names.iter().cloned().collect()] {
            self.add(part.len().to_string());
            part.iter().for_each(|text| _ = self.add(text));
        }
        for (file, bytes) in files {
            self.add(file.as_os_str().as_encoded_bytes()).add(bytes);
        }
        self
    }

    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_come_before_the_environment_and_that_before_the_platform() {
        let named = |cache: &Cache, variable: Option<&str>| {
            Store::named(cache, variable.map(OsString::from)).map(|store| store.folder)
        };
        let own = Cache::Folder("own".into());
        for variable in [None, Some("off"), Some("its")] {
            assert_eq!(named(&own, variable), Ok("own".into()));
            assert_eq!(named(&Cache::Off, variable), Err("the cache is switched off".to_string()));
        }
        assert_eq!(named(&Cache::Usual, Some("its")), Ok("its".into()));
        assert_eq!(named(&Cache::Usual, Some("off")), Err("ONESIDED_CACHE=off".to_string()));
        match named(&Cache::Usual, None) {
            Ok(folder) => assert!(folder.is_absolute() && folder.ends_with("onesided"), "{folder:?}"),
            Err(why) => assert!(why.starts_with("no folder for caches"), "{why}"),
        }
    }

    #[cfg(unix)]
    #[test]
    fn who_may_read_other_files_may_read_what_is_cached() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: folder.path().to_path_buf() };
        let [cached, other] = [store.write("k", &"value").unwrap(), folder.path().join("other")];
        fs::write(&other, "").unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode(&cached), mode(&other));
    }

    #[test]
    fn a_damaged_file_is_not_used_and_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: folder.path().join("not/there/yet") };
        assert!(store.read::<String>("k").is_none());
        let file = store.write("k", &"value").unwrap();
        let read = || store.read::<String>("k").map(|(value, _)| value);
        assert_eq!(read().as_deref(), Some("value"));
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&file, damaged).unwrap();
            assert_eq!(read(), None, "byte {at}");
            fs::write(&file, &whole[..at]).unwrap();
            assert_eq!(read(), None, "cut off at {at}");
        }
        store.write("k", &"value").unwrap();
        assert_eq!(read().as_deref(), Some("value"));
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn everything_that_matters_is_in_the_key() {
        let (source, options) = (Source::new("a.cu", "text"), Options::new().define("N", "1").name("k<1>"));
        let place = |version, size| {
            let mut place = Place::default();
            (place.version, place.size) = (version, size);
            place
        };
        let none = BTreeMap::new();
        let with = |path: &str, text: &str| BTreeMap::from([(path.into(), text.into())]);
        let keys = [
            key(&source, &options, &none, &place((13, 0), 1)),
            key(&source, &options, &none, &place((13, 1), 1)),
            key(&source, &options, &none, &place((13, 0), 2)),
            key(&Source::new("b.cu", "text"), &options, &none, &place((13, 0), 1)),
            key(&Source::new("a.cu", "texts"), &options, &none, &place((13, 0), 1)),
            key(&source, &options.clone().define("M", "1"), &none, &place((13, 0), 1)),
            key(&source, &options.clone().architecture("compute_80"), &none, &place((13, 0), 1)),
            key(&source, &options.clone().include("src"), &none, &place((13, 0), 1)),
            key(&source, &options.clone().name("k<2>"), &none, &place((13, 0), 1)),
            key(&source, &options, &with("/a.h", "x"), &place((13, 0), 1)),
            key(&source, &options, &with("/b.h", "x"), &place((13, 0), 1)),
            key(&source, &options, &with("/a.h", "y"), &place((13, 0), 1)),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        // Where it is cached, and where NVRTC was found, does not matter.
        let same = options.clone().cache("elsewhere").nvrtc("elsewhere");
        assert_eq!(key(&source, &same, &none, &place((13, 0), 1)), keys[0]);
    }
}
