//! `onesided compile`: what kernels need on GPUs, compiled into the cache before there is a GPU.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onesided::Source;
use onesided_harness::tool::command::failed;
use onesided_harness::tool::number::whole;
use onesided_harness::{complain, say};
use onesided_nvshmem::{Ahead, HostLibrary};

use crate::ahead::{self, Text};

/// What `onesided compile` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "What is compiled is kept in ONESIDED_CACHE, or in the folder that the system has for caches. \
                        PEs find it there if they use the same NVSHMEM, NVRTC and nvJitLink.")]
pub(super) struct Options {
    /// Modules: CUDA C++ (.cu) or PTX (.ptx). CUDA C++ is found again under the name that the program gives it
    #[arg(required_unless_present = "suite")]
    files: Vec<PathBuf>,
    /// Compile the kernels of the suite, and the backend's own
    #[arg(long)]
    suite: bool,
    /// The architecture of the GPUs, such as sm_90 [default: that of the GPU here]
    #[arg(long = "for", value_name = "ARCHITECTURE", value_parser = architecture)]
    architecture: Option<u32>,
    /// Look for headers in DIR too
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    includes: Vec<PathBuf>,
    /// Define a macro
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    defines: Vec<(String, String)>,
    /// Compile an instance of a template, such as 'scale<float, 4>'
    #[arg(long = "instance", value_name = "NAME")]
    instances: Vec<String>,
    /// Functions without __host__ and __device__ are the device's, as with `Source::default_device`
    #[arg(long)]
    default_device: bool,
    /// Compile with NVSHMEM's own headers, as programs do with `Source::inlined`
    #[arg(long)]
    inlined: bool,
    /// The NVSHMEM to compile with: the file or the folder of libnvshmem_host [default: where programs find it]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// Compile with N processes [default: one on each core]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1024))]
    jobs: Option<usize>,
    /// One text of one module, for the process that was started with these arguments
    #[arg(long, hide = true)]
    only: Option<Text>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    match try_run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(why),
    }
}

fn try_run(options: &Options) -> Result<(), String> {
    let library = onesided_nvshmem::host_library(options.library.as_deref());
    let library = library.map_err(|why| format!("NVSHMEM: {why}\n    remedy: {}", HostLibrary::remedy(&why)))?;
    let architecture = options.architecture.map_or_else(here, Ok)?;
    let compiler = Ahead::new(&library, architecture).map_err(|error| error.message().to_string())?;
    let sources = options.sources(&compiler)?;
    if let Some(text) = options.only {
        return ahead::one(&compiler, &sources, text);
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    ahead::provide(&compiler, &sources, &arguments, options.jobs)?;
    let [major, minor, patch] = library.version;
    for source in &sources {
        let bytes = compiler.link(source).map_err(|error| error.message().to_string())?;
        say!(
            "{}: {} KiB for sm_{architecture}, with NVSHMEM {major}.{minor}.{patch}",
            source.name(),
            bytes.div_ceil(1024)
        );
        let ptx = compiler.ptx(source).map_err(|error| error.message().to_string())?;
        if let Some(note) = note(&ptx) {
            complain!("note: {}: {note}", source.name());
        }
    }
    Ok(())
}

impl Options {
    fn sources(&self, compiler: &Ahead) -> Result<Vec<Source>, String> {
        let files = self.files.iter().map(|file| self.source(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(if self.suite { ahead::of_the_suite(compiler).into_iter().chain(files).collect() } else { files })
    }

    fn source(&self, file: &Path) -> Result<Source, String> {
        let (name, is) = (file.display().to_string(), |ending| file.extension().is_some_and(|has| has == ending));
        if !is("cu") && !is("ptx") {
            return Err(format!("{name}: expected a file of CUDA C++ (.cu) or of PTX (.ptx)"));
        }
        let text = fs::read_to_string(file).map_err(|why| format!("cannot read {name}: {why}"))?;
        if is("ptx") {
            return Ok(Source::ptx(name, text));
        }
        let source = Source::cuda(name, text);
        let source = self.includes.iter().fold(source, |source, folder| source.include(folder));
        let source = self.defines.iter().fold(source, |source, (name, value)| source.define(name, value));
        let source = self.instances.iter().fold(source, |source, instance| source.instance(instance));
        let source = if self.default_device { source.default_device() } else { source };
        Ok(if self.inlined { source.inlined() } else { source })
    }
}

/// What a program that loads this PTX would be surprised by.
fn note(ptx: &str) -> Option<String> {
    match onesided_ptx::Module::parse(ptx) {
        Ok(module) if module.kernels().is_empty() => Some(
            "it has no kernel; a kernel is a `__global__` function, and one of a template needs --instance".to_string(),
        ),
        Ok(_) => None,
        Err(why) => Some(format!("it does not run in the simulator: {why}")),
    }
}

/// The architecture of the GPUs of this machine.
fn here() -> Result<u32, String> {
    const REMEDY: &str = "name the architecture: --for sm_90 is H100 and H200";
    let driver = onesided_nvshmem::driver().map_err(|why| format!("there is no GPU here ({why}); {REMEDY}"))?;
    match driver.architectures.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(*first),
        [] => Err(format!("there is no GPU here; {REMEDY}")),
        _ => Err(format!("the GPUs here have several architectures ({:?}); {REMEDY}", driver.architectures)),
    }
}

/// 90 of `sm_90`.
fn architecture(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("sm_").and_then(|number| number.parse().ok());
    number.ok_or_else(|| "expected the architecture of a GPU, such as sm_90".to_string())
}

/// `NAME=VALUE`, or `NAME`, which is 1 then, as for compilers.
fn definition(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').unwrap_or((text, "1")) {
        ("", _) => Err("expected NAME=VALUE".to_string()),
        (name, value) => Ok((name.to_string(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::note;

    #[test]
    fn what_surprises_is_noted() {
        let text = |version: &str, body: &str| format!(".version {version}\n.target sm_90\n.address_size 64\n{body}");
        let kernel = ".visible .entry k()\n{\nret;\n}\n";
        assert_eq!(note(&text("8.0", kernel)), None);
        let empty = note(&text("8.0", "")).unwrap();
        assert!(empty.starts_with("it has no kernel; "), "{empty}");
        let new = note(&text("99.0", kernel)).unwrap();
        assert!(new.starts_with("it does not run in the simulator: PTX, line 1: this is PTX 99.0; "), "{new}");
        let odd = note(&text("8.0", &kernel.replace("ret;", "odd.u32 %r1;"))).unwrap();
        assert!(odd.contains("line 6") && odd.contains("odd"), "{odd}");
    }
}
