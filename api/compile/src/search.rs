//! [`Search`]: where NVRTC may lie.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use process_control::{ChildExt as _, Control as _};

use crate::error::CompileError;

/// The library's file names: of CUDA 13 and of CUDA 12. The newer is preferred.
pub(crate) const SONAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];

/// Where Python's packages have it: `nvidia-cuda-nvrtc`, and `nvidia-cuda-nvrtc-cu12`.
const IN_PACKAGES: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];

/// Environment variable with the library's file, or the folder that holds it.
pub(crate) const VARIABLE: &str = "ONESIDED_NVRTC";

const PYTHON_LIMIT: Duration = Duration::from_secs(5);

/// What led to NVRTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Origin {
    /// The caller named it.
    Argument,
    /// The environment variable `ONESIDED_NVRTC` names it.
    Variable,
    /// It came with a Python package, `nvidia-cuda-nvrtc` or `nvidia-cuda-nvrtc-cu12`.
    Python,
    /// The system's loader finds it: `LD_LIBRARY_PATH`, then what the system is configured for.
    Loader,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Argument => "the path given",
            Origin::Variable => VARIABLE,
            Origin::Python => "a Python package",
            Origin::Loader => "the system's loader",
        })
    }
}

/// The places to look at, in this order: the caller's, `ONESIDED_NVRTC`, Python's packages, the loader's.
///
/// The first place that has the library decides, even if that library turns out to be damaged. A file that the user *named* (the
/// first two places) must exist. libnvshmem is found in the same way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    pub(crate) argument: Option<PathBuf>,
    pub(crate) variable: Option<PathBuf>,
    /// The folders of `LD_LIBRARY_PATH`.
    pub(crate) loader: Vec<PathBuf>,
}

impl Search {
    pub(crate) fn from_environment(argument: Option<&Path>) -> Search {
        Search {
            argument: argument.map(Path::to_path_buf),
            variable: std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from),
            loader: std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect(),
        }
    }

    /// The file that the user named, if any.
    ///
    /// # Errors
    /// It does not exist.
    pub(crate) fn named(&self) -> Result<Option<(PathBuf, Origin)>, CompileError> {
        let named = [(&self.argument, Origin::Argument), (&self.variable, Origin::Variable)];
        let Some((path, origin)) = named.into_iter().find_map(|(path, origin)| Some((path.clone()?, origin))) else {
            return Ok(None);
        };
        let why = match (path.is_dir(), path.exists()) {
            (true, _) => match in_folder(&path) {
                Some(file) => return Ok(Some((file, origin))),
                None => format!("{origin} names this folder, which holds neither {} nor {}", SONAMES[0], SONAMES[1]),
            },
            (false, true) => return Ok(Some((absolute(path), origin))),
            (false, false) => format!("{origin} names it: no such file"),
        };
        Err(CompileError::Unusable { file: path, why })
    }

    /// The file in these folders of Python, or in those of the loader that are known.
    pub(crate) fn in_folders(&self, python: &[PathBuf]) -> Option<(PathBuf, Origin)> {
        let packages = python.iter().flat_map(|site| IN_PACKAGES.map(|folder| site.join(folder)));
        let of_python = packages.map(|folder| (folder, Origin::Python));
        let of_loader = self.loader.iter().map(|folder| (folder.clone(), Origin::Loader));
        of_python.chain(of_loader).find_map(|(folder, origin)| Some((in_folder(&folder)?, origin)))
    }
}

fn in_folder(folder: &Path) -> Option<PathBuf> {
    SONAMES.iter().map(|name| absolute(folder.join(name))).find(|file| file.exists())
}

/// The path from the root. Given a path, the loader looks nowhere else.
fn absolute(file: PathBuf) -> PathBuf {
    std::path::absolute(&file).unwrap_or(file)
}

/// The folders in which `python3` looks for packages. It imports none of them: only the file matters.
///
/// # Errors
/// There is no `python3`, or it does not answer within 5 s: in words.
pub(crate) fn python_folders() -> Result<Vec<PathBuf>, String> {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print('\\n'.join(sys.path))"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let answer =
        child.and_then(|child| child.controlled_with_output().time_limit(PYTHON_LIMIT).terminate_for_timeout().wait());
    match answer {
        Err(error) => Err(format!("python3 cannot be asked for its packages ({error})")),
        Ok(None) => Err(format!("python3 does not answer within {} s", PYTHON_LIMIT.as_secs())),
        Ok(Some(output)) if !output.status.success() => Err("python3 ended with an error".to_string()),
        Ok(Some(output)) => {
            let printed = String::from_utf8_lossy(&output.stdout);
            Ok(printed.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn place(root: &Path, file: &str) -> PathBuf {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        file
    }

    #[test]
    fn the_places_are_tried_in_order_and_the_newer_release_first() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let [argument, variable] = ["a", "v"].map(|folder| place(root, &format!("{folder}/libnvrtc.so.12")));
        let newer = place(root, "site/nvidia/cu13/lib/libnvrtc.so.13");
        let older = place(root, "old/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        let loader = place(root, "ld/libnvrtc.so.13");
        place(root, "ld/libnvrtc.so.12");
        let mut search =
            Search { argument: Some(root.join("a")), variable: Some(variable.clone()), loader: vec![root.join("ld")] };
        assert_eq!(search.named(), Ok(Some((argument, Origin::Argument))));
        search.argument = None;
        assert_eq!(search.named(), Ok(Some((variable, Origin::Variable))));
        search.variable = None;
        assert_eq!(search.named(), Ok(None));
        let python = [root.join("empty"), root.join("site"), root.join("old")];
        assert_eq!(search.in_folders(&python), Some((newer, Origin::Python)));
        assert_eq!(search.in_folders(&python[2..]), Some((older, Origin::Python)));
        assert_eq!(search.in_folders(&python[..1]), Some((loader, Origin::Loader)));
        assert_eq!(Search::default().in_folders(&[]), None);
    }

    #[test]
    fn what_the_user_named_must_exist() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("absent.so");
        let search = Search { variable: Some(file.clone()), ..Search::default() };
        let why = search.named().unwrap_err().to_string();
        assert!(
            why.contains(&format!("{}: ONESIDED_NVRTC names it: no such file; remedy: pip", file.display())),
            "{why}"
        );
        let search = Search { argument: Some(root.path().into()), ..search };
        let why = search.named().unwrap_err().to_string();
        assert!(why.contains("the path given names this folder, which holds neither libnvrtc.so.13 nor"), "{why}");
    }

    #[test]
    fn a_relative_path_is_no_name_for_the_loader() {
        let search = Search { argument: Some("Cargo.toml".into()), ..Search::default() };
        assert!(search.named().unwrap().unwrap().0.is_absolute());
    }

    #[test]
    fn the_folders_of_this_machines_python_are_paths() {
        match python_folders() {
            Ok(folders) => assert!(folders.iter().any(|folder| folder.is_absolute()), "{folders:?}"),
            Err(why) => assert!(why.contains("python3"), "{why}"),
        }
    }
}
