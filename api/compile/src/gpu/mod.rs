//! PTX to what a GPU runs: the NVSHMEM functions that PTX calls by name are compiled from the installed NVSHMEM's own headers (the
//! *provider*), and nvJitLink links PTX, provider and `libnvshmem_device.a`.
//!
//! None of it needs a GPU: only loading the result does.

mod definitions;
mod error;
mod externals;
mod headers;
mod inlined;
mod link;
mod nvjitlink;
mod provider;
mod version;

use std::path::PathBuf;

pub use error::LinkError;
pub use externals::{Entry, External, entries, externals, has_variables};
pub use headers::Installation;
pub use inlined::inlined;
pub use link::{Cubin, link, missing, provide, ready};
pub use nvjitlink::{NvJitLink, find_linker};

use crate::error::{CompileError, input};
use crate::options::{Cache, capability};

/// How PTX is linked.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    pub(crate) architecture: String,
    pub(crate) nvrtc: Option<PathBuf>,
    pub(crate) nvjitlink: Option<PathBuf>,
    pub(crate) cuda: Vec<PathBuf>,
    pub(crate) cache: Cache,
    pub(crate) notice: Option<fn(&str)>,
}

impl LinkOptions {
    /// For the architecture of one GPU, such as `sm_90`.
    #[must_use]
    pub fn new(architecture: impl Into<String>) -> LinkOptions {
        LinkOptions {
            architecture: architecture.into(),
            nvrtc: None,
            nvjitlink: None,
            cuda: Vec::new(),
            cache: Cache::Usual,
            notice: None,
        }
    }

    /// NVRTC's file, or the folder that holds it, instead of the usual places.
    #[must_use]
    pub fn nvrtc(mut self, path: impl Into<PathBuf>) -> LinkOptions {
        self.nvrtc = Some(path.into());
        self
    }

    /// nvJitLink's file, or the folder that holds it, instead of the usual places.
    #[must_use]
    pub fn nvjitlink(mut self, path: impl Into<PathBuf>) -> LinkOptions {
        self.nvjitlink = Some(path.into());
        self
    }

    /// A folder with headers of CUDA, which those of NVSHMEM include: looked at before the usual ones.
    #[must_use]
    pub fn cuda(mut self, folder: impl Into<PathBuf>) -> LinkOptions {
        self.cuda.push(folder.into());
        self
    }

    /// The folder of the cache, instead of the usual one.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> LinkOptions {
        self.cache = Cache::Folder(folder.into());
        self
    }

    /// Neither reads nor writes a cache.
    #[must_use]
    pub fn without_cache(mut self) -> LinkOptions {
        self.cache = Cache::Off;
        self
    }

    /// Called with a line for the user before something is compiled that takes seconds.
    #[must_use]
    pub fn notice(mut self, notice: fn(&str)) -> LinkOptions {
        self.notice = Some(notice);
        self
    }

    fn check(&self) -> Result<(), CompileError> {
        let number = self.architecture.strip_prefix("sm_");
        if number.is_none_or(|number| capability(&format!("compute_{number}")).is_none()) {
            let why = "expected the architecture of a GPU, such as sm_90";
            return Err(input(format!("the architecture {:?}", self.architecture), why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_architecture_of_a_gpu_is_linked_for() {
        for architecture in ["sm_90", "sm_90a", "sm_120f"] {
            assert_eq!(LinkOptions::new(architecture).check(), Ok(()));
        }
        for architecture in ["compute_90", "90", "sm_", "sm_x", "sm_compute_90"] {
            let why = LinkOptions::new(architecture).check().unwrap_err().to_string();
            let expected =
                format!("the architecture {architecture:?}: expected the architecture of a GPU, such as sm_90");
            assert_eq!(why, expected);
        }
    }
}
