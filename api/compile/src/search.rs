//! [`Search`]: where NVRTC, or nvJitLink, may lie.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::python::python_folders;

/// A library of CUDA's toolkit that is opened at run time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The file names: of CUDA 13 and of CUDA 12. The newer is preferred.
    pub(crate) sonames: [&'static str; 2],
    /// Where Python's packages have it.
    packages: [&'static str; 2],
    /// Environment variable with the library's file, or the folder that holds it.
    pub(crate) variable: &'static str,
}

/// In `nvidia-cuda-nvrtc`, and `nvidia-cuda-nvrtc-cu12`.
pub(crate) const NVRTC: Tool = Tool {
    name: "NVRTC",
    sonames: ["libnvrtc.so.13", "libnvrtc.so.12"],
    packages: ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
    variable: "ONESIDED_NVRTC",
};

/// In `nvidia-nvjitlink`, and `nvidia-nvjitlink-cu12`.
pub(crate) const NVJITLINK: Tool = Tool {
    name: "nvJitLink",
    sonames: ["libnvJitLink.so.13", "libnvJitLink.so.12"],
    packages: ["nvidia/cu13/lib", "nvidia/nvjitlink/lib"],
    variable: "ONESIDED_NVJITLINK",
};

/// What led to NVRTC, or to nvJitLink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Origin {
    /// The caller named it.
    Argument,
    /// The environment variable `ONESIDED_NVRTC` names it; nvJitLink: `ONESIDED_NVJITLINK`.
    Variable,
    /// It came with a Python package, such as `nvidia-cuda-nvrtc`.
    Python,
    /// The system's loader finds it: `LD_LIBRARY_PATH`, then what the system is configured for.
    Loader,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Argument => "the path given",
            Origin::Variable => NVRTC.variable,
            Origin::Python => "a Python package",
            Origin::Loader => "the system's loader",
        })
    }
}

/// Why a library was not found, or cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// In none of these places.
    Nowhere(Vec<String>),
    /// The file that was found or named, and what is wrong with it.
    Unusable(PathBuf, String),
}

/// The places to look at, in this order: the caller's, the environment variable, Python's packages, the loader's.
///
/// The first place that has the library decides, even if that library turns out to be damaged. A file that the user *named* (the
/// first two places) must exist. libnvshmem is found in the same way.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub(crate) tool: &'static Tool,
    pub(crate) argument: Option<PathBuf>,
    pub(crate) variable: Option<PathBuf>,
    /// The folders of `LD_LIBRARY_PATH`.
    pub(crate) loader: Vec<PathBuf>,
}

impl Search {
    pub(crate) fn from_environment(tool: &'static Tool, argument: Option<&Path>) -> Search {
        Search {
            tool,
            argument: argument.map(Path::to_path_buf),
            variable: std::env::var_os(tool.variable).filter(|value| !value.is_empty()).map(PathBuf::from),
            loader: std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect(),
        }
    }

    /// The file that the user named, if any.
    ///
    /// # Errors
    /// [`Absent::Unusable`]: it does not exist.
    pub(crate) fn named(&self) -> Result<Option<(PathBuf, Origin)>, Absent> {
        let named = [(&self.argument, Origin::Argument), (&self.variable, Origin::Variable)];
        let Some((path, origin)) = named.into_iter().find_map(|(path, origin)| Some((path.clone()?, origin))) else {
            return Ok(None);
        };
        let by = self.words(origin);
        let why = match (path.is_dir(), path.exists()) {
            (true, _) => match self.in_folder(&path) {
                Some(file) => return Ok(Some((file, origin))),
                None => {
                    let [newer, older] = self.tool.sonames;
                    format!("{by} names this folder, which holds neither {newer} nor {older}")
                }
            },
            (false, true) => return Ok(Some((absolute(path), origin))),
            (false, false) => format!("{by} names it: no such file"),
        };
        Err(Absent::Unusable(path, why))
    }

    /// What led to this library, in words.
    pub(crate) fn words(&self, origin: Origin) -> String {
        if origin == Origin::Variable { self.tool.variable.to_string() } else { origin.to_string() }
    }

    /// The file in these folders of Python, or in those of the loader that are known.
    pub(crate) fn in_folders(&self, python: &[PathBuf]) -> Option<(PathBuf, Origin)> {
        let packages = python.iter().flat_map(|site| self.tool.packages.map(|folder| site.join(folder)));
        let of_python = packages.map(|folder| (folder, Origin::Python));
        let of_loader = self.loader.iter().map(|folder| (folder.clone(), Origin::Loader));
        of_python.chain(of_loader).find_map(|(folder, origin)| Some((self.in_folder(&folder)?, origin)))
    }

    fn in_folder(&self, folder: &Path) -> Option<PathBuf> {
        self.tool.sonames.iter().map(|name| absolute(folder.join(name))).find(|file| file.exists())
    }

    /// Opens the library where the search finds it. Also returns Python's folders, as far as Python was asked.
    pub(crate) fn open<T>(&self, open: fn(&Path, Origin) -> Result<T, String>) -> Result<(T, Vec<PathBuf>), Absent> {
        let opened = |file: PathBuf, origin| open(&file, origin).map_err(|why| Absent::Unusable(file, why));
        if let Some((file, origin)) = self.named()? {
            return Ok((opened(file, origin)?, Vec::new()));
        }
        let python = python_folders();
        let folders = python.as_deref().unwrap_or_default();
        if let Some((file, origin)) = self.in_folders(folders) {
            return Ok((opened(file, origin)?, folders.to_vec()));
        }
        let mut looked = vec![format!("{} is not set", self.tool.variable)];
        looked.push(match &python {
            Ok(folders) => format!("not in Python's {} package folders", folders.len()),
            Err(why) => why.clone(),
        });
        for name in self.tool.sonames {
            match open(Path::new(name), Origin::Loader) {
                Ok(library) => return Ok((library, folders.to_vec())),
                Err(why) => looked.push(format!("the loader: {why}")),
            }
        }
        Err(Absent::Nowhere(looked))
    }
}

/// The path from the root. Given a path, the loader looks nowhere else.
fn absolute(file: PathBuf) -> PathBuf {
    std::path::absolute(&file).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::CompileError;

    impl Default for Search {
        fn default() -> Search {
            Search { tool: &NVRTC, argument: None, variable: None, loader: Vec::new() }
        }
    }

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
        let mut search = Search {
            argument: Some(root.join("a")),
            variable: Some(variable.clone()),
            loader: vec![root.join("ld")],
            ..Search::default()
        };
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
        let why = CompileError::from(search.named().unwrap_err()).to_string();
        assert!(
            why.contains(&format!("{}: ONESIDED_NVRTC names it: no such file; remedy: pip", file.display())),
            "{why}"
        );
        let search = Search { argument: Some(root.path().into()), ..search };
        let why = CompileError::from(search.named().unwrap_err()).to_string();
        assert!(why.contains("the path given names this folder, which holds neither libnvrtc.so.13 nor"), "{why}");
        let search = Search { tool: &NVJITLINK, ..search };
        let Err(Absent::Unusable(_, why)) = search.named() else { panic!("{search:?}") };
        assert!(why.ends_with("neither libnvJitLink.so.13 nor libnvJitLink.so.12"), "{why}");
    }

    #[test]
    fn a_relative_path_is_no_name_for_the_loader() {
        let search = Search { argument: Some("Cargo.toml".into()), ..Search::default() };
        assert!(search.named().unwrap().unwrap().0.is_absolute());
    }
}
