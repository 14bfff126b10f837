//! Which programs are on this machine.

use std::env;
use std::path::{Path, PathBuf};

/// The files that a shell could run by this name, in the order of `PATH`, and then those in `others`.
pub fn on_path(name: &str, others: &[&str]) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).chain(others.iter().map(PathBuf::from)).collect();
    let name = name.to_string();
    folders.into_iter().map(move |folder| folder.join(&name)).filter(|file| is_program(file))
}

/// Whether this file can be run.
#[cfg(unix)]
pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name_and_a_file_that_cannot_be_run_is_none() {
        let sh = on_path("sh", &[]).next().unwrap();
        assert!(is_program(&sh) && !is_program(Path::new("Cargo.toml")) && !is_program(Path::new("src")));
        assert_eq!(on_path("no-such-program", &["/bin"]).next(), None);
    }
}
