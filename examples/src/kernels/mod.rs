//! The kernels of the examples: CUDA C++, and the PTX that was compiled from it (`ci/ptx --write`).

use onesided::Source;
use onesided_harness::clap;

/// A file of this folder.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) cuda: &'static str,
    pub(crate) ptx: &'static str,
    /// The PTX of the broken twin: the same file with `BROKEN` defined.
    pub(crate) broken: &'static str,
}

/// The file of a name.
macro_rules! kernel_file {
    ($name:literal) => {
        kernels::File {
            name: concat!($name, ".cu"),
            cuda: include_str!(concat!("../kernels/", $name, ".cu")),
            ptx: include_str!(concat!("../kernels/", $name, ".ptx")),
            broken: include_str!(concat!("../kernels/", $name, ".broken.ptx")),
        }
    };
}

/// How kernels are compiled.
#[derive(clap::Args, Debug)]
pub(crate) struct Compile {
    /// Compiles the CUDA C++ by NVRTC, in place of the PTX that was made before
    #[arg(long)]
    compile: bool,
}

impl Compile {
    /// The kernels of a file. Without a compiler on the machine they are those that were compiled before.
    pub(crate) fn source(&self, file: &File, broken: bool) -> Source {
        let File { name, cuda, .. } = *file;
        match (self.compile, broken) {
            (true, true) => Source::cuda(name, cuda).define("BROKEN", ""),
            (true, false) => Source::cuda(name, cuda),
            (false, _) => Source::ptx(name, if broken { file.broken } else { file.ptx }).compiled_from(name, cuda),
        }
    }
}
