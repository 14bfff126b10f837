//! [`check`]: whether the library will find its bootstrap plugin.
//!
//! The plugins are libraries of their own beside libnvshmem_host. If the plugin is missing, 3.4 to 3.6 end the process
//! (`free(): double free detected`). So the backend looks before it asks the library.

use std::path::Path;

use crate::library::{self, Library};
use crate::limit::within;
use crate::problem::Problem;

/// A plugin: its file, and the environment variable by which a user names another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plugin {
    file: &'static str,
    variable: &'static str,
}

/// For unique ids.
pub(crate) const UID: Plugin = Plugin { file: "nvshmem_bootstrap_uid.so.3", variable: "NVSHMEM_BOOTSTRAP_UID_PLUGIN" };
/// For MPI.
pub(crate) const MPI: Plugin = Plugin { file: "nvshmem_bootstrap_mpi.so.3", variable: "NVSHMEM_BOOTSTRAP_MPI_PLUGIN" };

/// Looks for the plugin as the library `host` will: in the host library's folder, then where the loader looks.
///
/// # Errors
/// [`Problem::NotFound`], [`Problem::Refused`] for a plugin that the environment names, or [`Problem::NoAnswer`].
pub(crate) fn check(plugin: Plugin, host: &Path) -> Result<(), Problem> {
    let named = std::env::var_os(plugin.variable).filter(|name| !name.is_empty());
    let host = host.to_path_buf();
    within(library::LIMIT, plugin.file, move || find(plugin, named.as_deref().map(Path::new), &host))
}

fn find(plugin: Plugin, named: Option<&Path>, host: &Path) -> Result<(), Problem> {
    let file = named.unwrap_or(Path::new(plugin.file));
    let folder = host.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| folder.join(file).exists()) {
        return Ok(());
    }
    match Library::open(file) {
        Ok(_) => Ok(()),
        Err(_) if named.is_none() => {
            let beside = folder.map(|folder| format!("not in {}, where the library lies", folder.display()));
            let remedy = "it belongs to the library and comes with it: install the library again".to_string();
            let looked = beside.into_iter().chain(["not where the loader looks".to_string(), remedy]).collect();
            Err(Problem::NotFound { what: plugin.file, looked })
        }
        Err(problem) => {
            let variable = plugin.variable;
            let why = format!("{variable} names it: {problem}; unset {variable}, or set it to a plugin that is there");
            Err(Problem::Refused { file: file.to_path_buf(), why })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_plugin_beside_the_library_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("libnvshmem_host.so.3");
        let problem = find(UID, None, &host).unwrap_err().to_string();
        for part in [UID.file, &*folder.path().to_string_lossy(), "comes with it: install the library again"] {
            assert!(problem.contains(part), "{part} in {problem}");
        }
        fs::write(folder.path().join(UID.file), "").unwrap();
        assert_eq!(find(UID, None, &host), Ok(()));
        assert!(find(MPI, None, &host).is_err());
    }

    #[test]
    fn a_plugin_that_the_environment_names_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let (host, own) = (folder.path().join("libnvshmem_host.so.3"), folder.path().join("own.so"));
        let problem = find(UID, Some(&own), &host).unwrap_err().to_string();
        assert!(
            problem.contains("unset NVSHMEM_BOOTSTRAP_UID_PLUGIN") && problem.contains(&*own.to_string_lossy()),
            "{problem}"
        );
        fs::write(&own, "").unwrap();
        assert_eq!(find(UID, Some(&own), &host), Ok(()));
    }
}
