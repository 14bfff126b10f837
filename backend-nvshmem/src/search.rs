//! [`Search`]: where libnvshmem_host may lie.

use std::fmt;
use std::path::{Path, PathBuf};

use onesided_compile::python_folders;

use crate::problem::Problem;

/// The library's file name: all releases 3.x have it.
pub const SONAME: &str = "libnvshmem_host.so.3";

/// Environment variable with the library's file, or the folder that holds it.
const VARIABLE: &str = "ONESIDED_NVSHMEM_LIB";
/// Environment variable with NVSHMEM's folder, as NVIDIA's own tools use it.
const HOME: &str = "NVSHMEM_HOME";

/// What led to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The caller named it.
    Argument,
    /// The environment variable `ONESIDED_NVSHMEM_LIB` names it.
    Variable,
    /// It lies in `lib` of the folder in the environment variable `NVSHMEM_HOME`.
    Home,
    /// It came with a Python package, `nvidia-nvshmem-cu13` or another of them.
    Python,
    /// The system's loader finds it: `LD_LIBRARY_PATH`, then what the system is configured for.
    Loader,
}

/// The places to look at, in this order: the caller's, `ONESIDED_NVSHMEM_LIB`, `NVSHMEM_HOME`, Python's packages, the
/// loader's.
///
/// The first place that has the library decides, even if that library turns out to be damaged. So a run never takes another
/// library than the user meant. For the same reason a file that the user *named* (the first two places) must exist.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// A file, or a folder with the library in it.
    pub(crate) argument: Option<PathBuf>,
    /// The same, from `ONESIDED_NVSHMEM_LIB`.
    pub(crate) variable: Option<PathBuf>,
    /// NVSHMEM's own folder, from `NVSHMEM_HOME`.
    pub(crate) home: Option<PathBuf>,
    /// The folders in which Python looks for packages, or why they are not known.
    pub(crate) python: Result<Vec<PathBuf>, String>,
    /// The folders of `LD_LIBRARY_PATH`.
    pub(crate) loader: Vec<PathBuf>,
}

impl Search {
    /// `argument`, then the places that the environment names. Python is not asked if the user named a file.
    pub(crate) fn from_environment(argument: Option<&Path>) -> Search {
        let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let variable = folder(VARIABLE);
        let is_named = argument.is_some() || variable.is_some();
        Search {
            argument: argument.map(Path::to_path_buf),
            variable,
            home: folder(HOME),
            python: if is_named { Ok(Vec::new()) } else { python_folders() },
            loader: std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect(),
        }
    }

    /// The library's file, as an absolute path, and what led to it.
    ///
    /// If the library is in none of the folders, only the loader's own list is left. Then this is the bare name [`SONAME`]
    /// with [`Origin::Loader`]. Given a path, the loader looks nowhere else; given a name, it never looks in the current
    /// folder.
    ///
    /// # Errors
    /// [`Problem::Absent`] if a file that the user named does not exist.
    pub(crate) fn locate(&self) -> Result<(PathBuf, Origin), Problem> {
        let named =
            [(&self.argument, "the path given", Origin::Argument), (&self.variable, VARIABLE, Origin::Variable)];
        for (path, named_by, origin) in named {
            let Some(path) = path else { continue };
            let file = absolute(library_at(path));
            return if file.exists() { Ok((file, origin)) } else { Err(Problem::Absent { file, named_by }) };
        }
        let home = self.home.iter().map(|home| (home.join("lib"), Origin::Home));
        let python = self.python.iter().flatten().map(|site| (site.join("nvidia/nvshmem/lib"), Origin::Python));
        let loader = self.loader.iter().map(|folder| (folder.clone(), Origin::Loader));
        let mut files =
            home.chain(python).chain(loader).map(|(folder, origin)| (absolute(folder.join(SONAME)), origin));
        Ok(files.find(|(file, _)| file.exists()).unwrap_or_else(|| (PathBuf::from(SONAME), Origin::Loader)))
    }

    /// One line for each place, for the message that the library is in none of them.
    pub(crate) fn places(&self) -> Vec<String> {
        let home = match &self.home {
            Some(home) => format!("not in {HOME}, {}", home.join("lib").display()),
            None => format!("{VARIABLE} and {HOME} are not set"),
        };
        let python = match &self.python {
            Ok(folders) => format!("not in Python's {} package folders", folders.len()),
            Err(why) => why.clone(),
        };
        vec![home, python]
    }
}

/// The file of NVSHMEM's host library that a path means. The path is the file itself, a folder that holds it, or the folder of
/// an installation, which holds it in `lib`. The file need not exist.
///
/// ```
/// use std::path::Path;
/// assert_eq!(onesided_nvshmem::library_at(Path::new("/no/such/file.so")), Path::new("/no/such/file.so"));
/// ```
pub fn library_at(path: &Path) -> PathBuf {
    if !path.is_dir() {
        return path.to_path_buf();
    }
    let below = path.join("lib").join(SONAME);
    let beside = path.join(SONAME);
    if !beside.exists() && below.exists() { below } else { beside }
}

/// The path from the root. Without a current folder there is none, and a relative path leads to no file.
fn absolute(file: PathBuf) -> PathBuf {
    std::path::absolute(&file).unwrap_or(file)
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Argument => "the path given",
            Origin::Variable => VARIABLE,
            Origin::Home => HOME,
            Origin::Python => "a Python package",
            Origin::Loader => "the system's loader",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Every place, each with a library of its own, below one folder.
    fn everywhere(root: &Path) -> Search {
        let place = |folder: &str| {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join(SONAME), folder).unwrap();
            root.join(folder)
        };
        place("home/lib");
        place("site/nvidia/nvshmem/lib");
        Search {
            argument: Some(place("argument")),
            variable: Some(place("variable").join(SONAME)),
            home: Some(root.join("home")),
            python: Ok(vec![root.join("empty"), root.join("site")]),
            loader: vec![root.join("empty"), place("loader")],
        }
    }

    #[test]
    fn the_places_are_tried_in_order() {
        let root = tempfile::tempdir().unwrap();
        let mut search = everywhere(root.path());
        let expect = |search: &Search, folder: &str, origin| {
            assert_eq!(search.locate().unwrap(), (root.path().join(folder).join(SONAME), origin));
        };
        expect(&search, "argument", Origin::Argument);
        search.argument = None;
        expect(&search, "variable", Origin::Variable);
        search.variable = None;
        expect(&search, "home/lib", Origin::Home);
        search.home = Some(root.path().join("empty"));
        expect(&search, "site/nvidia/nvshmem/lib", Origin::Python);
        search.python = Err("no python3 on PATH".to_string());
        expect(&search, "loader", Origin::Loader);
        search.loader.clear();
        assert_eq!(search.locate().unwrap(), (PathBuf::from(SONAME), Origin::Loader));
    }

    /// In the current folder, which for tests is the crate's.
    #[test]
    fn a_file_in_the_current_folder_is_a_path_and_no_name_for_the_loader() {
        let file = Path::new("Cargo.toml");
        let nowhere = Search { argument: None, variable: None, home: None, python: Ok(vec![]), loader: vec![] };
        for (search, origin) in [
            (Search { argument: Some(file.into()), ..nowhere.clone() }, Origin::Argument),
            (Search { variable: Some(file.into()), ..nowhere.clone() }, Origin::Variable),
        ] {
            assert_eq!(search.locate(), Ok((std::env::current_dir().unwrap().join(file), origin)));
        }
    }

    #[test]
    fn a_folder_may_be_that_of_the_library_or_of_the_whole_installation() {
        let root = tempfile::tempdir().unwrap();
        let others = everywhere(root.path());
        let named = |folder: &str| Search { argument: Some(root.path().join(folder)), ..others.clone() }.locate();
        for folder in ["home/lib", "home"] {
            assert_eq!(named(folder).unwrap(), (root.path().join("home/lib").join(SONAME), Origin::Argument));
        }
        let file = root.path().join("site").join(SONAME);
        assert_eq!(named("site"), Err(Problem::Absent { file, named_by: "the path given" }));
    }

    #[test]
    fn a_file_that_the_user_named_must_exist() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("absent.so");
        let others = everywhere(root.path());
        let argument = Search { argument: Some(file.clone()), ..others.clone() };
        assert_eq!(argument.locate(), Err(Problem::Absent { file: file.clone(), named_by: "the path given" }));
        let variable = Search { argument: None, variable: Some(file.clone()), ..others };
        let problem = variable.locate().unwrap_err();
        assert!(problem.to_string().contains("ONESIDED_NVSHMEM_LIB"), "{problem}");
        assert!(problem.to_string().contains(&*file.to_string_lossy()), "{problem}");
    }
}
