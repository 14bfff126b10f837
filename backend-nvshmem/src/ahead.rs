//! [`Ahead`]: what modules need on GPUs, compiled before any GPU is there.

use onesided::{At, Result, Source};
use onesided_compile::gpu::{self, Installation, LinkError};

use crate::atomics;
use crate::capabilities;
use crate::code::{Code, link_options, refused};
use crate::machine::HostLibrary;

const CALL: &str = "module";

/// Compiles kernels for GPUs of one architecture into the cache, with an NVSHMEM that is installed here. The machine needs no GPU. PEs
/// that load the same modules with the same NVSHMEM and the same cache then compile nothing.
///
/// The functions of NVSHMEM that kernels call take most of the time: up to a minute each. NVRTC compiles one text at a time in a process,
/// so [`Ahead::missing`] and [`Ahead::provide`] let several processes share the work before [`Ahead::link`].
///
/// ```no_run
/// use onesided::Source;
/// use onesided_nvshmem::{Ahead, host_library};
///
/// let library = host_library(None)?; // where programs find it
/// let kernels = Source::ptx("ring.ptx", std::fs::read_to_string("ring.ptx")?);
/// let bytes = Ahead::new(&library, 90)?.link(&kernels)?;
/// println!("{bytes} bytes of machine code for sm_90");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ahead {
    installation: Installation,
    architecture: u32,
}

impl Ahead {
    /// For GPUs of this architecture, 90 for `sm_90`, with the NVSHMEM that the library belongs to.
    ///
    /// # Errors
    /// [`Unsupported`](onesided::ErrorKind::Unsupported) if its headers or its device library are not beside it.
    #[track_caller]
    pub fn new(library: &HostLibrary, architecture: u32) -> Result<Ahead> {
        let installation = Installation::of(&library.file, library.version);
        let installation = installation.map_err(|why| refused(&why, CALL, At::caller()))?;
        Ok(Ahead { installation, architecture })
    }

    /// The backend's own kernel: the atomics of the host.
    #[must_use]
    pub fn atomics() -> Source {
        atomics::source()
    }

    /// Whether modules may call what NVSHMEM has for kernels from 3.8 on: see [`kernel_extensions`](onesided::Capabilities::kernel_extensions).
    #[must_use]
    pub fn has_kernel_extensions(&self) -> bool {
        capabilities::has_kernel_extensions(self.installation.version())
    }

    /// The texts of NVSHMEM's functions that the module needs and the cache lacks, by their numbers for [`Ahead::provide`]. None for a
    /// module that is [inlined](Source::inlined).
    ///
    /// # Errors
    /// As [`Ahead::link`].
    #[track_caller]
    pub fn missing(&self, source: &Source) -> Result<Vec<usize>> {
        let Ahead { installation, architecture } = self;
        self.reported(Code::of(source, *architecture).and_then(|(code, _)| match code.inlined {
            true => Ok(Vec::new()),
            false => gpu::missing(&code.ptx, source.name(), installation, &link_options(*architecture)),
        }))
    }

    /// Compiles one of these texts.
    ///
    /// # Errors
    /// As [`Ahead::link`].
    #[track_caller]
    pub fn provide(&self, source: &Source, place: usize) -> Result<()> {
        let Ahead { installation, architecture } = self;
        self.reported(Code::of(source, *architecture).and_then(|(code, _)| {
            gpu::provide(&code.ptx, source.name(), installation, &link_options(*architecture), place)
        }))
    }

    /// The PTX of the module, which the simulator runs too, unless the GPUs are older than sm_90.
    ///
    /// # Errors
    /// As [`Ahead::link`].
    #[track_caller]
    pub fn ptx(&self, source: &Source) -> Result<String> {
        self.reported(Code::of(source, self.architecture).map(|(code, _)| code.ptx))
    }

    /// Compiles and links the module, as loading it does. Returns the size of the machine code in bytes.
    ///
    /// # Errors
    /// * [`InvalidArgument`](onesided::ErrorKind::InvalidArgument): the source does not compile, or is no PTX for the architecture.
    /// * [`Unsupported`](onesided::ErrorKind::Unsupported): NVRTC, nvJitLink or headers are not here, or this NVSHMEM lacks a function.
    #[track_caller]
    pub fn link(&self, source: &Source) -> Result<usize> {
        let Ahead { installation, architecture } = self;
        let linked = Code::of(source, *architecture)
            .and_then(|(code, _)| code.linked(source, installation, *architecture))
            .map(|cubin| cubin.bytes().len());
        self.reported(linked)
    }

    #[track_caller]
    fn reported<T>(&self, done: Result<T, LinkError>) -> Result<T> {
        let at = At::caller();
        done.map_err(|why| refused(&why, CALL, at))
    }
}
