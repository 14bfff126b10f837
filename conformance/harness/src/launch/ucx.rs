//! [`Ucx`]: where UCX is, the library that NVSHMEM's UCX transport links.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::flush;

/// The library that the transport links.
const LIBRARY: &str = "libucp.so.0";
/// UCX's module for memory of a GPU. A UCX that was built without CUDA does not have it.
const CUDA_MODULE: &str = "libuct_cuda.so";
/// NVSHMEM's transport. The name ends in a version.
const PLUGIN: &str = "nvshmem_transport_ucx.so";
/// Names a folder.
const VARIABLE: &str = "ONESIDED_UCX";
/// UCX's own variable for the folder of its modules.
const MODULES: &str = "UCX_MODULE_DIR";
const REMEDY: &str = "install the Python package libucx-cu13 (libucx-cu12 for CUDA 12), or name the folder by --ucx or \
                      ONESIDED_UCX; `ci/wheels ucx` makes one that can be brought along";
/// Where a system has its libraries, if the loader was not told otherwise.
const SYSTEM: [&str; 4] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// UCX with its CUDA modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ucx {
    /// The folder of its libraries.
    pub(super) libraries: PathBuf,
    /// The folder of its modules.
    pub(super) modules: PathBuf,
    /// Folders of libraries that came with it.
    pub(super) bundled: Vec<PathBuf>,
}

/// Where it is looked for.
#[derive(Debug, Default)]
struct Places {
    /// What the user named, and how. It must be there then.
    named: Option<(PathBuf, &'static str)>,
    beside_this_program: Vec<PathBuf>,
    python: Vec<PathBuf>,
    loader: Vec<PathBuf>,
    modules: Option<PathBuf>,
}

impl Ucx {
    /// Looks for it: `argument`, `ONESIDED_UCX`, a folder `ucx` beside this program, Python's packages, the loader's folders.
    ///
    /// # Errors
    /// It is in none of them, or has no module for CUDA; and what would help.
    pub(super) fn find(argument: Option<&Path>) -> Result<Ucx, String> {
        let variable = || Some((PathBuf::from(value(VARIABLE)?), VARIABLE));
        let named = argument.map(|folder| (folder.to_path_buf(), "--ucx")).or_else(variable);
        let is_named = named.is_some();
        let loader = value("LD_LIBRARY_PATH");
        let loader = loader.iter().flat_map(env::split_paths).chain(SYSTEM.map(PathBuf::from));
        Places {
            named,
            beside_this_program: super::beside_this_program().map(|folder| folder.join("ucx")).collect(),
            python: if is_named { Vec::new() } else { onesided_nvshmem::python_folders().unwrap_or_default() },
            loader: loader.collect(),
            modules: value(MODULES).map(PathBuf::from),
        }
        .find()
    }

    /// The folders in which the loader must look.
    pub(super) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        [self.libraries.clone()].into_iter().chain(self.bundled.iter().cloned())
    }
}

/// Checks that NVSHMEM's UCX transport lies beside this library.
///
/// # Errors
/// It does not, and what would help.
#[doc(hidden)]
pub fn has_plugin(library: &Path) -> Result<(), String> {
    let folder = library.parent().unwrap_or(Path::new("/"));
    if holds(folder, PLUGIN) {
        return Ok(());
    }
    let folder = folder.display();
    Err(format!(
        "NVSHMEM's transport {PLUGIN}.* is not beside its library, in {folder}: install the whole package \
         nvidia-nvshmem-cu13, or bring the transport along with the library"
    ))
}

/// UCX in a few words, or why there is none.
#[doc(hidden)]
pub fn ucx_in_words(argument: Option<&Path>) -> Result<String, String> {
    let ucx = Ucx::find(argument)?;
    let flush = match flush::beside_this_program() {
        Some(library) => format!("its quiet is kept from hanging by {}", library.display()),
        None => flush::REMEDY.to_string(),
    };
    Ok(format!("{}, modules in {}; {flush}", ucx.libraries.display(), ucx.modules.display()))
}

impl Places {
    fn find(&self) -> Result<Ucx, String> {
        if let Some((folder, by)) = &self.named {
            let ucx = self.below(folder)?;
            let folder = folder.display();
            return ucx.ok_or_else(|| format!("{by} names {folder}, and there is no {LIBRARY} in it, nor in its lib"));
        }
        let python = self.python.iter().map(|folder| folder.join("libucx"));
        let mut without_cuda = None;
        for folder in self.beside_this_program.iter().cloned().chain(python).chain(self.loader.iter().cloned()) {
            match self.below(&folder) {
                Ok(Some(ucx)) => return Ok(ucx),
                Ok(None) => {}
                Err(why) => _ = without_cuda.get_or_insert(why), // another one may have CUDA
            }
        }
        Err(without_cuda.unwrap_or_else(|| {
            format!("UCX is not found ({LIBRARY}, which NVSHMEM's network transport needs): {REMEDY}")
        }))
    }

    /// UCX in this folder or below it; `None` if it is not there.
    fn below(&self, folder: &Path) -> Result<Option<Ucx>, String> {
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let candidates = [absolute.clone(), absolute.join("lib"), absolute.join("libucx/lib")];
        let Some(libraries) = candidates.into_iter().find(|folder| folder.join(LIBRARY).exists()) else {
            return Ok(None);
        };
        let modules = self.modules.clone().unwrap_or_else(|| libraries.join("ucx"));
        if !holds(&modules, CUDA_MODULE) {
            return Err(format!(
                "UCX in {} has no module for CUDA ({CUDA_MODULE}.* in {}): {REMEDY}",
                libraries.display(),
                modules.display()
            ));
        }
        // Python's package has them beside its own folder, a folder that was brought along beside `lib`.
        let bundled = libraries.ancestors().skip(1).take(2).flat_map(bundled).collect();
        Ok(Some(Ucx { libraries, modules, bundled }))
    }
}

/// The folders `libucx….libs` in this one.
fn bundled(folder: &Path) -> Vec<PathBuf> {
    let is_bundle =
        |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("libucx") && name.ends_with(".libs"));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut bundles: Vec<PathBuf> =
        entries.filter(|entry| is_bundle(&entry.file_name())).map(|entry| entry.path()).collect();
    bundles.sort();
    bundles
}

/// Whether the folder has a file whose name begins so.
fn holds(folder: &Path, name: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(name.as_bytes()))
}

fn value(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, files: &[&str]) {
        for file in files.iter().map(|file| root.join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
    }

    #[test]
    fn it_is_found_where_it_was_named_and_in_the_usual_places() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        touch(root, &["site/libucx/lib/libucp.so.0", "site/libucx/lib/ucx/libuct_cuda.so.0"]);
        touch(root, &["site/libucx_cu13.libs/libcudart-1.so", "site/other.libs/x"]);
        touch(root, &["brought/lib/libucp.so.0", "brought/lib/ucx/libuct_cuda.so.0", "brought/libucx_cu13.libs/x"]);
        touch(root, &["bare/libucp.so.0"]);
        let python = Ucx {
            libraries: root.join("site/libucx/lib"),
            modules: root.join("site/libucx/lib/ucx"),
            bundled: vec![root.join("site/libucx_cu13.libs")],
        };
        let everywhere = || Places { python: vec![root.join("none"), root.join("site")], ..Places::default() };
        assert_eq!(everywhere().find().unwrap(), python);
        let named = |folder: &str| Places { named: Some((root.join(folder), "--ucx")), ..everywhere() };
        let brought = named("brought").find().unwrap();
        assert_eq!(
            (&brought.libraries, &brought.bundled),
            (&root.join("brought/lib"), &vec![root.join("brought/libucx_cu13.libs")])
        );
        assert_eq!(named("site").find().unwrap(), python);
        let beside = Places { beside_this_program: vec![root.join("brought")], ..everywhere() };
        assert_eq!(beside.find().unwrap(), brought);
        // One without CUDA does not hide another one, unless it was named.
        let loader = Places { loader: vec![root.join("bare"), root.join("brought/lib")], ..Places::default() };
        assert_eq!(loader.find().unwrap().libraries, brought.libraries);
        let why = named("bare").find().unwrap_err();
        assert!(why.contains("has no module for CUDA") && why.contains("libucx-cu13"), "{why}");
        let modules = Places { modules: Some(root.join("brought/lib/ucx")), ..named("bare") };
        assert_eq!(modules.find().unwrap().modules, root.join("brought/lib/ucx"));
        let why = named("none").find().unwrap_err();
        assert!(why.starts_with("--ucx names ") && why.contains("no libucp.so.0"), "{why}");
        let why = Places::default().find().unwrap_err();
        assert!(why.starts_with("UCX is not found (libucp.so.0") && why.contains("--ucx"), "{why}");
    }

    #[test]
    fn the_transport_lies_beside_the_library() {
        let root = tempfile::tempdir().unwrap();
        let library = root.path().join("libnvshmem_host.so.3");
        let why = has_plugin(&library).unwrap_err();
        assert!(why.starts_with("NVSHMEM's transport nvshmem_transport_ucx.so.* is not beside"), "{why}");
        touch(root.path(), &["nvshmem_transport_ucx.so.7"]);
        assert_eq!(has_plugin(&library), Ok(()));
    }
}
