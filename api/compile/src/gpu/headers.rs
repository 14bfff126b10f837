//! [`Installation`]: the headers and the device library of an installed NVSHMEM; and the headers of CUDA that they include.

use std::path::{Path, PathBuf};

use super::LinkError;
use crate::python::python_folders;

/// Environment variable with folders of CUDA's headers, separated as in `PATH`.
const VARIABLE: &str = "ONESIDED_CUDA_INCLUDE";

const LIBRARY: &str = "libnvshmem_device.a";

/// An installed NVSHMEM, as far as kernels need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    pub(super) includes: PathBuf,
    pub(super) library: PathBuf,
    pub(super) version: [i32; 3],
}

impl Installation {
    /// The installation that a host library belongs to: `file` is `libnvshmem_host.so.3` in its folder `lib`, `version` what the
    /// library says of itself.
    ///
    /// # Errors
    /// [`LinkError::Incomplete`]: `libnvshmem_device.a` does not lie beside it, or the headers not in `include` beside `lib`.
    pub fn of(file: &Path, version: [i32; 3]) -> Result<Installation, LinkError> {
        const REMEDY: &str = "install NVSHMEM as a whole, such as by pip install nvidia-nvshmem-cu13";
        let incomplete = |what: String| LinkError::Incomplete { what, remedy: REMEDY };
        let lib = file.parent().unwrap_or(Path::new(""));
        let library = lib.join(LIBRARY);
        if !library.is_file() {
            return Err(incomplete(format!("{LIBRARY}, which kernels are linked with, is not in {}", lib.display())));
        }
        // Debian puts libraries of a machine one folder lower.
        let parents = lib.ancestors().skip(1).take(2).map(|folder| folder.join("include"));
        let mut folders = parents.flat_map(|folder| [folder.clone(), folder.join("nvshmem")]);
        match folders.find(|folder| folder.join("nvshmem.h").is_file() && folder.join("nvshmemx.h").is_file()) {
            Some(includes) => Ok(Installation { includes, library, version }),
            None => Err(incomplete(format!("NVSHMEM's headers for kernels are not beside {}", lib.display()))),
        }
    }

    /// `libnvshmem_device.a`.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The library's version.
    #[must_use]
    pub fn version(&self) -> [i32; 3] {
        self.version
    }

    /// The folder of `nvshmem.h`.
    #[must_use]
    pub fn includes(&self) -> &Path {
        &self.includes
    }
}

/// The headers of CUDA by which its folders are known, and the Python packages that have them.
const WANTED: [(&str, &str); 3] = [
    ("cuda_runtime.h", "nvidia-cuda-runtime"),
    ("crt/host_config.h", "nvidia-cuda-crt"),
    ("cuda/std/type_traits", "nvidia-cuda-cccl"),
];

const IN_PACKAGES: [&str; 5] = [
    "nvidia/cu13/include",
    "nvidia/cu13/include/cccl",
    "nvidia/cuda_runtime/include",
    "nvidia/cuda_nvcc/include",
    "nvidia/cuda_cccl/include",
];

/// The folders of CUDA's headers. They are looked for in this order: the caller's folders, the environment variable, the
/// toolkit that NVRTC belongs to, Python's packages, `CUDA_HOME`, `CUDA_PATH` and `/usr/local/cuda`.
pub(super) fn cuda(given: &[PathBuf], nvrtc: &Path) -> Result<Vec<PathBuf>, LinkError> {
    let of_environment = std::env::var_os(VARIABLE);
    let of_environment = of_environment.iter().flat_map(std::env::split_paths);
    let first: Vec<PathBuf> = given.iter().cloned().chain(of_environment).collect();
    let first = first.into_iter();
    let own = nvrtc.ancestors().skip(2).take(2).map(|folder| folder.join("include")); // lib, or lib/x86_64-linux-gnu
    if let Ok(folders) = among(first.clone().chain(own.clone())) {
        return Ok(folders);
    }
    let python = python_folders().unwrap_or_default();
    let of_python = python.iter().flat_map(|site| IN_PACKAGES.map(|folder| site.join(folder)));
    let homes = ["CUDA_HOME", "CUDA_PATH"].map(std::env::var_os).into_iter().flatten().map(PathBuf::from);
    let homes = homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("include"));
    among(first.chain(own).chain(of_python).chain(homes)).map_err(|(header, package)| LinkError::Incomplete {
        what: format!(
            "{header} ({package}), which NVSHMEM's headers include, is in no folder of CUDA's headers: not beside NVRTC, in Python's \
             packages, or in CUDA_HOME"
        ),
        remedy: "pip install nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl, or set ONESIDED_CUDA_INCLUDE to the folders",
    })
}

/// For each header, the first folder that has it. The error is a header that no folder has, with its Python package.
fn among(folders: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>, (&'static str, &'static str)> {
    let folders: Vec<PathBuf> = folders.flat_map(|folder| [folder.join("cccl"), folder]).collect();
    let mut found = Vec::new();
    for (header, package) in WANTED {
        let folder = folders.iter().find(|folder| folder.join(header).is_file()).ok_or((header, package))?;
        if !found.contains(folder) {
            found.push(folder.clone());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn place(root: &Path, file: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
    }

    #[test]
    fn what_is_missing_of_an_installation_is_named() {
        let root = tempfile::tempdir().unwrap();
        let host = root.path().join("lib/libnvshmem_host.so.3");
        let of = || Installation::of(&host, [3, 8, 0]).map_err(|why| why.to_string());
        let why = of().unwrap_err();
        assert!(why.starts_with("libnvshmem_device.a, which kernels are linked with, is not in"), "{why}");
        place(root.path(), "lib/libnvshmem_device.a");
        let why = of().unwrap_err();
        assert!(why.contains("headers for kernels are not beside") && why.contains("remedy: install"), "{why}");
        place(root.path(), "include/nvshmem.h");
        place(root.path(), "include/nvshmemx.h");
        assert_eq!(of().unwrap().includes(), root.path().join("include"));
    }

    #[test]
    fn each_header_of_cuda_is_found_in_the_first_folder_that_has_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |folder: &str| root.path().join(folder);
        place(root.path(), "runtime/cuda_runtime.h");
        place(root.path(), "all/cuda_runtime.h");
        place(root.path(), "all/cccl/cuda/std/type_traits");
        let folders = || [at("runtime"), at("all")].into_iter();
        assert_eq!(among(folders()), Err(("crt/host_config.h", "nvidia-cuda-crt")));
        place(root.path(), "all/crt/host_config.h");
        assert_eq!(among(folders()), Ok(vec![at("runtime"), at("all"), at("all/cccl")]));
        let given = [at("runtime"), at("all")];
        assert_eq!(cuda(&given, Path::new("libnvrtc.so.13")).unwrap().len(), 3);
    }
}
