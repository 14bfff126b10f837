//! [`Process`]: a process that is not yet a PE, with the library loaded.

use std::path::PathBuf;
use std::time::Duration;

use onesided::{Bootstrap, Error, ErrorKind, InitMethod, InitStatus, Pe, Result, UniqueId, VERSION, Version};

use crate::pe::Nvshmem;

/// What a process may say about itself before it becomes a PE.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// NVSHMEM's host library or the folder that holds it; `None` for the usual places.
    pub library: Option<PathBuf>,
    /// The GPU of this PE, as CUDA numbers it; `None` for the local rank modulo the number of GPUs.
    pub device: Option<u32>,
    /// How long to wait for the other PEs in `init`.
    pub limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { library: None, device: None, limit: Duration::from_secs(60) }
    }
}

/// A process that is not yet a PE, with the library loaded.
#[derive(Debug)]
pub struct Process {
    settings: Settings,
}

impl Process {
    /// Finds and loads the library.
    ///
    /// # Errors
    /// `Initialization`.
    #[track_caller]
    pub fn open(settings: Settings) -> Result<Process> {
        Ok(Process { settings })
    }
}

impl Bootstrap for Process {
    type Backend = Nvshmem;

    fn version(&self) -> Version {
        Version { openshmem_spec: (1, 3), onesided: VERSION, library: format!("{:?}", self.settings.library) }
    }
    fn init_status(&self) -> InitStatus {
        InitStatus::NotInitialized
    }
    #[track_caller]
    fn unique_id(&self) -> Result<UniqueId> {
        Err(Error::new(ErrorKind::Unsupported, "unique_id", "skeleton", std::panic::Location::caller()))
    }
    #[track_caller]
    fn init(&self, _method: InitMethod) -> Result<Pe<Nvshmem>> {
        Err(Error::new(ErrorKind::Unsupported, "init", "skeleton", std::panic::Location::caller()))
    }
}
