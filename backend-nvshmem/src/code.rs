//! A module's source as PTX and as machine code. Neither needs a GPU: only loading does.

use std::io::Write as _;

use onesided::backend::Language;
use onesided::{At, Error, ErrorKind, Source};
use onesided_compile::gpu::{self, Cubin, Installation, LinkError, LinkOptions};
use onesided_compile::{CompileError, Options};

/// The architecture that the simulator compiles for. A GPU of it, or a newer one, runs the same PTX.
const SIMULATED: u32 = 90;

/// What a module is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) ptx: String,
    /// Whether it is compiled with NVSHMEM's own headers.
    pub(crate) inlined: bool,
}

/// Instances of templates, each with the name that the linker knows it by.
pub(crate) type Instances = Vec<(String, String)>;

impl Code {
    /// The source as PTX: what the simulator runs too, unless the GPU is older.
    pub(crate) fn of(source: &Source, architecture: u32) -> Result<(Code, Instances), LinkError> {
        let (ptx, instances) = match source.language() {
            Language::Ptx => (source.text().to_string(), Vec::new()),
            Language::Cuda => {
                let ptx = onesided_compile::compile(&text(source), &compile_options(source, architecture))?;
                let instances = ptx.names().map(|(own, lowered)| (own.to_string(), lowered.to_string())).collect();
                (ptx.into_text(), instances)
            }
        };
        let calls = gpu::externals(&ptx).map_err(|why| LinkError::Ptx { name: source.name().to_string(), why })?;
        let calls_nvshmem = calls.iter().any(gpu::External::is_nvshmem);
        let inlined = source.is_inlined() && source.language() == Language::Cuda && calls_nvshmem;
        Ok((Code { ptx, inlined }, instances))
    }

    /// The machine code, compiled and linked, or from the cache.
    pub(crate) fn linked(
        &self,
        source: &Source,
        installation: &Installation,
        architecture: u32,
    ) -> Result<Cubin, LinkError> {
        let options = link_options(architecture).notice(notice);
        if self.inlined {
            let compile_options = compile_options(source, architecture);
            return gpu::inlined(&text(source), &compile_options, installation, &options);
        }
        gpu::link(&self.ptx, source.name(), installation, &options)
    }
}

pub(crate) fn link_options(architecture: u32) -> LinkOptions {
    LinkOptions::new(format!("sm_{architecture}"))
}

fn text(source: &Source) -> onesided_compile::Source {
    onesided_compile::Source::new(source.name(), source.text())
}

fn compile_options(source: &Source, architecture: u32) -> Options {
    let mut options = Options::new().architecture(format!("compute_{}", architecture.min(SIMULATED)));
    for folder in source.includes() {
        options = options.include(folder);
    }
    for (name, value) in source.defines() {
        options = options.define(name, value);
    }
    if source.is_default_device() {
        options = options.default_device();
    }
    source.instances().iter().fold(options, |options, instance| options.name(instance))
}

/// How the line begins that a PE prints on its standard error before it compiles functions of NVSHMEM, for up to a minute.
pub const COMPILES: &str = "onesided: compiling ";

/// What takes long is said, once for each job where it is compiled.
fn notice(line: &str) {
    let _ = writeln!(std::io::stderr(), "onesided: {line}"); // the call goes on also where nobody can read it
}

/// The program's error.
pub(crate) fn refused(why: &LinkError, call: &'static str, at: At) -> Error {
    let kind = match why {
        LinkError::Compile(CompileError::Source { .. } | CompileError::Input { .. }) | LinkError::Ptx { .. } => {
            ErrorKind::InvalidArgument
        }
        LinkError::Failed { .. } | LinkError::Compile(CompileError::Failed { .. }) => ErrorKind::Device,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, call, why.to_string(), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_compiled_as_for_the_simulator() {
        let source = Source::cuda("k.cu", "x").include("src").define("N", 3).instance("k<3>");
        let expected = Options::new().include("src").define("N", "3").name("k<3>");
        assert_eq!(compile_options(&source, 90), expected);
        assert_eq!(compile_options(&source, 120), expected);
        assert_eq!(compile_options(&source, 80), expected.architecture("compute_80"));
    }

    #[test]
    fn each_problem_has_its_kind() {
        let at = At::caller();
        let kind = |why: LinkError| refused(&why, "module", at).kind();
        assert_eq!(kind(LinkError::NotFound { looked: vec![] }), ErrorKind::Unsupported);
        assert_eq!(kind(CompileError::NotFound { looked: vec![] }.into()), ErrorKind::Unsupported);
        assert_eq!(kind(LinkError::Ptx { name: "k".into(), why: "w".into() }), ErrorKind::InvalidArgument);
        assert_eq!(kind(LinkError::Failed { call: "c", why: "w".into() }), ErrorKind::Device);
    }
}
