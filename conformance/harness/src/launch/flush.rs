//! The library that keeps a quiet over UCX from hanging, preloaded by PEs: see `conformance/ucx`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The name by which cargo builds it.
const BUILT: &str = "libonesided_ucx.so";
/// What is said where it is not there.
pub(super) const REMEDY: &str = "a quiet of the host can hang, which libonesided_ucx.so beside this program prevents: build it by \
                                 `cargo build --release -p onesided-ucx`";
/// The loader's variable for what comes before all other libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// The library beside this program, if it is there.
pub(super) fn beside_this_program() -> Option<PathBuf> {
    super::beside_this_program().map(|folder| folder.join(BUILT)).find(|file| file.exists())
}

/// What a PE needs in its environment, or why a quiet may hang. `users`: what the user preloads.
pub(super) fn environment(library: Option<&Path>, users: Option<&OsStr>) -> Result<(String, OsString), String> {
    let Some(library) = library else { return Err(format!("over UCX, {REMEDY}")) };
    // the loader takes both for the end of a name
    if library.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        let library = library.display();
        return Err(format!(
            "{library} cannot be preloaded for a blank or colon in its name: a quiet of the host can hang over UCX"
        ));
    }
    let mut list = library.as_os_str().to_os_string();
    if let Some(users) = users {
        list.push(":");
        list.push(users);
    }
    Ok((PRELOAD.to_string(), list))
}

/// The list that the library is added to.
pub(super) fn preloaded_by_the_user() -> Option<OsString> {
    std::env::var_os(PRELOAD).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_preloaded_before_what_the_user_preloads() {
        let (name, value) = environment(Some(Path::new("/x/lib.so")), None).unwrap();
        assert_eq!((&name[..], value.as_os_str()), ("LD_PRELOAD", OsStr::new("/x/lib.so")));
        let (_, value) = environment(Some(Path::new("/x/lib.so")), Some(OsStr::new("/mine.so"))).unwrap();
        assert_eq!(value, "/x/lib.so:/mine.so");
    }

    #[test]
    fn without_it_there_is_a_note() {
        let why = environment(None, None).unwrap_err();
        assert!(why.contains("cargo build --release -p onesided-ucx"), "{why}");
        let why = environment(Some(Path::new("/a b/lib.so")), None).unwrap_err();
        assert!(why.starts_with("/a b/lib.so cannot be preloaded"), "{why}");
    }
}
