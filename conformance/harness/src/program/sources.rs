//! The source files that a finding names. The sources of kernels come from the program, if it has them. A compiler's paths are
//! relative to the workspace in which it ran. So a file is looked for below the folders around this process, around the package
//! that cargo runs, and around the program's own file.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use onesided_show::Source;
use onesided_sim::kernel_text;

/// A larger file is left out: nobody wrote it by hand.
const LARGEST: u64 = 1 << 20;

/// The texts of these files, as far as they are found.
pub(super) fn of(files: &BTreeSet<String>) -> Vec<Source> {
    let folders =
        [env::current_dir().ok(), env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from), env::current_exe().ok()];
    let folders: Vec<PathBuf> = folders.into_iter().flatten().collect();
    let text = |file: &str| kernel_text(file).or_else(|| text(Path::new(file), &folders));
    files.iter().map(|file| Source { file: file.clone(), text: text(file) }).collect()
}

/// The text of the first file of that path below one of the folders, or below a folder around it.
fn text(file: &Path, folders: &[PathBuf]) -> Option<String> {
    let around = folders.iter().flat_map(|folder| folder.ancestors());
    let path = around.map(|folder| folder.join(file)).find(|path| path.is_file())?;
    let is_small = fs::metadata(&path).is_ok_and(|found| found.len() <= LARGEST);
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_below_a_folder_around() {
        let workspace = tempfile::tempdir().unwrap();
        let inside = workspace.path().join("package/src");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("main.rs"), "fn main() {}").unwrap();
        fs::write(inside.join("large.rs"), vec![b' '; LARGEST as usize + 1]).unwrap();
        fs::write(inside.join("latin.rs"), [0xe4]).unwrap();
        let found = |file: &str| text(Path::new(file), &[PathBuf::from("/no/such/folder"), inside.clone()]);
        assert_eq!(found("package/src/main.rs").as_deref(), Some("fn main() {}"));
        for absent in ["package/src/other.rs", "package/src/large.rs", "package/src/latin.rs", "package/src", ""] {
            assert_eq!(found(absent), None, "{absent}");
        }
    }
}
