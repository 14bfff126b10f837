//! [`Ptx`]: what a text was compiled to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::HEADERS;
use crate::cache::Store;
use crate::options::Source;

/// PTX, with what NVRTC says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptx {
    pub(crate) text: String,
    pub(crate) names: BTreeMap<String, String>,
    pub(crate) version: (i32, i32),
    pub(crate) warnings: String,
    #[serde(skip)]
    pub(crate) cached: Cached,
}

/// Whether PTX came from the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "it was read, or written, or neither")]
pub enum Cached {
    /// It was read from this file.
    Read(PathBuf),
    /// It was compiled, and this file was written.
    Written(PathBuf),
    /// It was compiled and not written: why.
    No(String),
}

impl Default for Cached {
    fn default() -> Cached {
        Cached::No(String::new())
    }
}

impl Ptx {
    /// The PTX. It names files as the source was named; headers by their full paths.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The PTX, without the rest.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// The name in the PTX of a name expression of the options. `None` for any other.
    #[must_use]
    pub fn name(&self, expression: &str) -> Option<&str> {
        self.names.get(expression).map(String::as_str)
    }

    /// All name expressions with their names in the PTX.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(expression, name)| (expression.as_str(), name.as_str()))
    }

    /// The release of NVRTC that compiled it: `(13, 0)`.
    #[must_use]
    pub fn nvrtc_version(&self) -> (i32, i32) {
        self.version
    }

    /// What NVRTC warned of, `FILE:LINE: warning …`; empty if of nothing. PTX from the cache has its warnings too.
    #[must_use]
    pub fn warnings(&self) -> &str {
        &self.warnings
    }

    /// Whether it came from the cache.
    #[must_use]
    pub fn cached(&self) -> &Cached {
        &self.cached
    }
}

pub(crate) fn read(store: &Store, key: &str) -> Option<Ptx> {
    let (ptx, file) = store.read::<Ptx>(key)?;
    Some(Ptx { cached: Cached::Read(file), ..ptx })
}

pub(crate) fn write(store: &Store, key: &str, ptx: &Ptx) -> Cached {
    match store.write(key, ptx) {
        Ok(file) => Cached::Written(file),
        Err(why) => Cached::No(format!("{} cannot be written: {why}", store.folder().display())),
    }
}

/// NVRTC puts the current folder before names that are relative. Without it the PTX is the same from everywhere.
pub(crate) fn without_current_folder(text: String, source: &Source) -> String {
    let Ok(folder) = std::env::current_dir() else { return text };
    let names = HEADERS.iter().map(|(name, _)| *name).chain([source.name.as_str()]);
    let quoted = |path: &Path| format!("\"{}\"", escaped(path));
    names
        .map(Path::new)
        .filter(|name| name.is_relative())
        .fold(text, |text, name| text.replace(&quoted(&folder.join(name)), &quoted(name)))
}

/// Names files below the current folder by their relative paths, such as `inc/bump.cuh`, if the source itself has a relative
/// name. The cache stores absolute paths, because it may be read from another folder.
pub(crate) fn from_current_folder(ptx: Ptx, source: &Source) -> Ptx {
    match std::env::current_dir() {
        Ok(folder) if Path::new(&source.name).is_relative() => Ptx { text: names_from(ptx.text, &folder), ..ptx },
        _ => ptx,
    }
}

fn names_from(text: String, folder: &Path) -> String {
    let begin = format!("\"{}/", escaped(folder));
    if !text.contains(&begin) {
        return text;
    }
    let line = |line: &str| match line.trim_start().starts_with(".file") {
        true => line.replacen(&begin, "\"", 1),
        false => line.to_string(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// A path as it stands between the quotes of a string of PTX: other bytes than those of ASCII as octal numbers.
fn escaped(path: &Path) -> String {
    let byte = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    path.as_os_str().as_encoded_bytes().iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_named_from_the_current_folder() {
        let text = "\t.file\t1 \"/src/me/a.cu\"\n.file 2 \"/src/me/inc/b.cuh\", 7, 9\n.file 3 \"/src/meet/c.cuh\"\n.b8 \"/src/me/x\"\n";
        let named = names_from(text.to_string(), Path::new("/src/me"));
        let expected =
            "\t.file\t1 \"a.cu\"\n.file 2 \"inc/b.cuh\", 7, 9\n.file 3 \"/src/meet/c.cuh\"\n.b8 \"/src/me/x\"\n";
        assert_eq!(named, expected);
    }
}
