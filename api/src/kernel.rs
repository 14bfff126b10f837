//! [`Source`], [`Module`] and [`Kernel`]: code that runs on the device, and communicates from there.

use std::path::{Path, PathBuf};

use crate::at::At;
use crate::backend::{Backend, KernelInfo};
use crate::brand::Brand;
use crate::error::Result;
use crate::pe::Pe;

/// The text of a module of kernels, and how it is compiled: CUDA C++, or PTX that was compiled elsewhere.
///
/// The text is device code. It includes `nvshmem.h`, which both backends provide, and calls NVSHMEM's device functions.
///
/// ```
/// use onesided::Source;
/// let text = r#"
///     #include <nvshmem.h>
///     extern "C" __global__ void ring(int *next) {
///         nvshmem_int_p(next, nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
///     }"#;
/// let source = Source::cuda("ring.cu", text).define("CHUNKS", "4");
/// assert_eq!(source.name(), "ring.cu");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    language: Language,
    name: String,
    text: String,
    includes: Vec<PathBuf>,
    defines: Vec<(String, String)>,
    instances: Vec<String>,
    compiled_from: Vec<(String, String)>,
    default_device: bool,
    inlined: bool,
}

/// What a [`Source`] is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a backend must be able to load each")]
pub enum Language {
    /// CUDA C++: compiled when it is loaded, which needs NVRTC.
    Cuda,
    /// PTX: loaded as it is.
    Ptx,
}

impl Source {
    /// CUDA C++. Errors and findings call it by `name`, which need not be a file; `#include "…"` looks in its folder first.
    pub fn cuda(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source::new(Language::Cuda, name.into(), text.into())
    }

    /// PTX. Compile it with `-rdc=true -lineinfo`, so that calls of NVSHMEM stay calls and have source lines. Without source
    /// lines, findings name lines of the PTX: `ring.ptx:28`, or `PTX of ring.cu:28` where `name` does not end in `.ptx`.
    pub fn ptx(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source::new(Language::Ptx, name.into(), text.into())
    }

    fn new(language: Language, name: String, text: String) -> Source {
        let (includes, defines, instances, compiled_from) = Default::default();
        Source {
            language,
            name,
            text,
            includes,
            defines,
            instances,
            compiled_from,
            default_device: false,
            inlined: false,
        }
    }

    /// `#include` looks in this folder too.
    #[must_use]
    pub fn include(mut self, folder: impl AsRef<Path>) -> Source {
        self.includes.push(folder.as_ref().into());
        self
    }

    /// Defines a macro before the text.
    #[must_use]
    pub fn define(mut self, name: impl Into<String>, value: impl ToString) -> Source {
        self.defines.push((name.into(), value.to_string()));
        self
    }

    /// Compiles functions of CUDA C++ without `__host__` and `__device__` for the device only (`-default-device` of NVRTC).
    /// Headers that were written for any compiler need this.
    #[must_use]
    pub fn default_device(mut self) -> Source {
        self.default_device = true;
        self
    }

    /// A template's instance that is to be in the module, such as `scale<float, 4>`. [`Module::kernel`] finds it by this text.
    #[must_use]
    pub fn instance(mut self, expression: impl Into<String>) -> Source {
        self.instances.push(expression.into());
        self
    }

    /// Adds the text of a file that the PTX was compiled from. `file` is the name that the PTX has for it. Only reports use the
    /// text: they show its lines. The text of CUDA C++ need not be added, and neither need files that a report finds by their
    /// names.
    ///
    /// ```
    /// use onesided::Source;
    /// let (text, ptx) = ("extern \"C\" __global__ void ring() {}\n", ".version 9.0 …"); // include_str!("ring.cu"), include_str!("ring.ptx")
    /// let source = Source::ptx("ring.cu", ptx).compiled_from("ring.cu", text);
    /// assert_eq!(source.text_of("ring.cu"), Some(text));
    /// ```
    #[must_use]
    pub fn compiled_from(mut self, file: impl Into<String>, text: impl Into<String>) -> Source {
        self.compiled_from.push((file.into(), text.into()));
        self
    }

    /// On GPUs, compiles CUDA C++ with the headers of the installed NVSHMEM, which inline short functions. That is faster, but
    /// the GPU then runs other code than the simulator did. The simulator ignores this setting.
    #[must_use]
    pub fn inlined(mut self) -> Source {
        self.inlined = true;
        self
    }

    /// What it is written in.
    pub fn language(&self) -> Language {
        self.language
    }

    /// What errors and findings call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a file that reports name: the CUDA C++ itself, or a [text that PTX was compiled
    /// from](Source::compiled_from). `None` if this source does not have the file.
    pub fn text_of(&self, file: &str) -> Option<&str> {
        let own = self.language == Language::Cuda && self.name == file;
        let other = || self.compiled_from.iter().find(|(name, _)| name == file).map(|(_, text)| &**text);
        if own { Some(&self.text) } else { other() }
    }

    /// Folders in which `#include` looks.
    pub fn includes(&self) -> &[PathBuf] {
        &self.includes
    }

    /// Macros and their values.
    pub fn defines(&self) -> &[(String, String)] {
        &self.defines
    }

    /// Whether functions without `__host__` and `__device__` are the device's.
    pub fn is_default_device(&self) -> bool {
        self.default_device
    }

    /// Instances of templates.
    pub fn instances(&self) -> &[String] {
        &self.instances
    }

    /// Whether NVSHMEM's own headers are wanted on GPUs.
    pub fn is_inlined(&self) -> bool {
        self.inlined
    }
}

/// Kernels that are loaded on this PE. They stay loaded until the PE finalizes.
pub struct Module<B: Backend> {
    inner: B::Module,
    name: String,
    kernels: Vec<KernelInfo>,
    brand: Brand,
}

/// A kernel of a [`Module`].
pub struct Kernel<'m, B: Backend> {
    pub(crate) module: &'m B::Module,
    pub(crate) index: usize,
    pub(crate) info: &'m KernelInfo,
    pub(crate) brand: Brand,
}

impl<B: Backend> Module<B> {
    /// The kernel of this name: as it stands in the source if it is `extern "C"`, as the linker knows it, or an
    /// [instance](Source::instance) of a template. Local.
    ///
    /// ```no_run
    /// # use onesided::Source;
    /// # onesided_sim::example(1, |pe| {
    /// let text = "extern \"C\" __global__ void set(int *word, int value) { *word = value; }";
    /// let module = pe.module(&Source::cuda("set.cu", text))?;
    /// let set = module.kernel("set")?;
    /// assert_eq!(set.parameters(), 2);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the module has no such kernel; the message lists those that it
    /// has.
    #[track_caller]
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_, B>> {
        let is_it = |info: &KernelInfo| info.name == name || info.instance.as_deref() == Some(name);
        let Some(index) = self.kernels.iter().position(is_it) else {
            let names: Vec<&str> = self
                .kernels
                .iter()
                .map(|info| info.instance.as_ref().unwrap_or(&info.name))
                .map(|name| &**name)
                .collect();
            let message = match names.is_empty() {
                true => format!("{} has no kernel; a kernel is a `__global__` function", self.name),
                false => format!("{} has no kernel {name}; it has {}", self.name, names.join(", ")),
            };
            return Err(crate::Error::invalid("kernel", message, At::caller()));
        };
        Ok(Kernel { module: &self.inner, index, info: &self.kernels[index], brand: self.brand })
    }

    /// The names of all kernels, as the linker knows them. Local.
    ///
    /// ```no_run
    /// # use onesided::Source;
    /// # onesided_sim::example(1, |pe| {
    /// let text = "extern \"C\" __global__ void set(int *word, int value) { *word = value; }";
    /// let module = pe.module(&Source::cuda("set.cu", text))?;
    /// assert_eq!(module.kernels().collect::<Vec<_>>(), ["set"]);
    /// # Ok(()) });
    /// ```
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|info| &*info.name)
    }
}

impl<B: Backend> Kernel<'_, B> {
    /// The name, as the linker knows it. Local.
    ///
    /// ```no_run
    /// # use onesided::Source;
    /// # onesided_sim::example(1, |pe| {
    /// let text = "extern \"C\" __global__ void set(int *word, int value) { *word = value; }";
    /// let module = pe.module(&Source::cuda("set.cu", text))?;
    /// assert_eq!(module.kernel("set")?.name(), "set");
    /// # Ok(()) });
    /// ```
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// How many arguments it takes. Local.
    ///
    /// ```no_run
    /// # use onesided::Source;
    /// # onesided_sim::example(1, |pe| {
    /// let text = "extern \"C\" __global__ void set(int *word, int value) { *word = value; }";
    /// let module = pe.module(&Source::cuda("set.cu", text))?;
    /// assert_eq!(module.kernel("set")?.parameters(), 2);
    /// # Ok(()) });
    /// ```
    pub fn parameters(&self) -> usize {
        self.info.parameters.len()
    }
}

impl<B: Backend> std::fmt::Debug for Module<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module {}", self.name)
    }
}

impl<B: Backend> std::fmt::Debug for Kernel<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel {}", self.info.name)
    }
}

/// # Kernels
impl<B: Backend> Pe<B> {
    /// Compiles and loads a module of kernels (`cuModuleLoad`, `nvshmemx_cumodule_init`). Local; every PE that launches its kernels
    /// loads it.
    ///
    /// It stays loaded until [`Pe::finalize`], which also ends it for NVSHMEM (`nvshmemx_cumodule_finalize`).
    ///
    /// # Errors
    /// * [`Unsupported`](crate::ErrorKind::Unsupported) without [kernels](crate::Capabilities::kernels), or without NVRTC for CUDA C++: the
    ///   message says how to get it.
    /// * [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a text that does not compile, or holds what the backend cannot run: the
    ///   message has the compiler's words and lines.
    ///
    /// NVSHMEM documentation, "Kernel Launch Routines".
    ///
    /// ```
    /// use onesided::{Grid, Source, args};
    /// # let text = onesided_sim::RING_PTX;
    /// # onesided_sim::example(2, |pe| {
    /// let module = pe.module(&Source::ptx("ring.ptx", text))?;
    /// let ring = module.kernel("ring")?;
    /// let (next, stream) = (pe.alloc_zeroed::<i32>(1)?, pe.stream()?);
    /// // SAFETY: the kernel takes one pointer to an int.
    /// unsafe { pe.on(&stream).launch(&ring, &Grid::new(1, 1), args![&next])? };
    /// pe.on(&stream).barrier_all()?;
    /// pe.synchronize(&stream)?;
    /// assert_eq!(pe.read_one(&next)?, 1 - pe.my_pe() as i32);
    /// # pe.free(next) });
    /// ```
    #[track_caller]
    pub fn module(&self, source: &Source) -> Result<Module<B>> {
        let call = self.call("module", At::caller());
        call.require(self.capabilities().kernels)?;
        let (inner, kernels) = self.backend.module(source, call.at)?;
        Ok(Module { inner, name: source.name.clone(), kernels, brand: self.brand })
    }
}
