//! Modules of kernels: compiled, linked with NVSHMEM's functions, loaded, and made known to the library.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::rc::Rc;

use cudarc::driver::{result, sys};
use onesided::backend::{KernelInfo, Language, Parameter};
use onesided::{At, Error, ErrorKind, Result, Source};
use onesided_compile::gpu::{self, Cubin, Installation, LinkError, LinkOptions};
use onesided_compile::{CompileError, Options};

use crate::cuda::device;
use crate::launch::Limits;
use crate::memory::check;
use crate::pe::Nvshmem;

/// The architecture that the simulator compiles for. A GPU of it, or a newer one, runs the same PTX.
const SIMULATED: u32 = 90;

/// Kernels that are loaded on a GPU.
#[derive(Debug)]
pub struct CudaModule {
    /// In the order in which the API knows them.
    pub(crate) functions: Functions,
}

/// The kernels of a module, and what they allow.
type Functions = Rc<[(Function, Limits)]>;

/// A kernel's handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(pub(crate) sys::CUfunction);

/// The modules of a PE, until it ends.
#[derive(Debug, Default)]
pub(crate) struct Modules(RefCell<Vec<Loaded>>);

#[derive(Debug)]
struct Loaded {
    module: sys::CUmodule,
    /// Whether the library was told of it.
    is_known: bool,
    /// What it was made of, if loading that again need not make another one.
    again: Option<(Code, Functions)>,
}

/// What a module is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Code {
    ptx: String,
    /// Whether it is compiled with NVSHMEM's own headers.
    inlined: bool,
}

impl Modules {
    fn made_of(&self, code: &Code) -> Option<Functions> {
        let modules = self.0.borrow();
        let mut shared = modules.iter().filter_map(|loaded| loaded.again.as_ref());
        shared.find(|(known, _)| known == code).map(|(_, functions)| functions.clone())
    }
}

impl Nvshmem {
    /// Compiles, links and loads a module. Where nothing in it can change, the same code is loaded once: it would take GPU memory for each.
    pub(crate) fn load_module(&self, source: &Source, at: At) -> Result<(CudaModule, Vec<KernelInfo>)> {
        const CALL: &str = "module";
        let architecture = self.device().architecture(CALL, at)?;
        let (ptx, instances) = self.ptx(source, architecture, at)?;
        let invalid = |why: String| Error::invalid(CALL, format!("{}: {why}", source.name()), at);
        let entries = gpu::entries(&ptx).map_err(invalid)?;
        let calls = gpu::externals(&ptx).map_err(invalid)?;
        let calls_nvshmem = calls.iter().any(gpu::External::is_nvshmem);
        let inlined = source.is_inlined() && source.language() == Language::Cuda && calls_nvshmem;
        let code = Code { ptx, inlined };
        let functions = match self.modules.made_of(&code) {
            Some(functions) => functions,
            None => self.load_code(code, source, &entries, architecture, at)?,
        };
        let kernel = |gpu::Entry { name, parameters }: gpu::Entry| {
            let instance = instances.iter().find(|(_, lowered)| *lowered == name).map(|(own, _)| own.clone());
            let parameters = parameters.into_iter().map(|(size, align)| Parameter { size, align }).collect();
            KernelInfo { name, instance, parameters }
        };
        Ok((CudaModule { functions }, entries.into_iter().map(kernel).collect()))
    }

    fn load_code(
        &self,
        code: Code,
        source: &Source,
        entries: &[gpu::Entry],
        architecture: u32,
        at: At,
    ) -> Result<Functions> {
        const CALL: &str = "module";
        let refused = |why: LinkError| refused(&why, CALL, at);
        let Code { ptx, inlined } = &code;
        let installation = Installation::of(&self.table.file, self.table.version).map_err(refused)?;
        let options = LinkOptions::new(format!("sm_{architecture}")).notice(notice);
        let linked = if *inlined {
            let text = onesided_compile::Source::new(source.name(), source.text());
            gpu::inlined(&text, &compile_options(source, architecture), &installation, &options)
        } else {
            gpu::link(ptx, source.name(), &installation, &options)
        };
        let module = self.load_cubin(&linked.map_err(refused)?, CALL, at)?;
        let functions = entries.iter().map(|gpu::Entry { name, .. }| {
            let found = function(module, name, CALL, at);
            let function = if *inlined { found.or_else(|_| self.alike(module, name, at))? } else { found? };
            Ok((function, Limits::of(function).map_err(|error| device(CALL, error, at))?))
        });
        let functions: Functions = functions.collect::<Result<Vec<_>>>()?.into();
        if !gpu::has_variables(ptx)
            && let Some(loaded) = self.modules.0.borrow_mut().last_mut()
        {
            loaded.again = Some((code, functions.clone()));
        }
        Ok(functions)
    }

    /// The source as PTX: what the simulator runs too, unless the GPU is older. With the names of instances.
    fn ptx(&self, source: &Source, architecture: u32, at: At) -> Result<(String, Vec<(String, String)>)> {
        if source.language() == Language::Ptx {
            return Ok((source.text().to_string(), Vec::new()));
        }
        let text = onesided_compile::Source::new(source.name(), source.text());
        let compiled = onesided_compile::compile(&text, &compile_options(source, architecture));
        let ptx = compiled.map_err(|why| refused(&why.into(), "module", at))?;
        let instances = ptx.names().map(|(own, lowered)| (own.to_string(), lowered.to_string())).collect();
        Ok((ptx.into_text(), instances))
    }

    /// The kernel whose name differs only in how 64-bit integers are spelled. Compiled with NVSHMEM's headers, they are `long`; ours and those of
    /// CCCL have `long long`, and C++ gives a kernel another name then.
    fn alike(&self, module: sys::CUmodule, name: &str, at: At) -> Result<Function> {
        let failed = |error| device("module", error, at);
        let mut count = 0;
        // SAFETY: the module is loaded; writes one number.
        unsafe { sys::cuModuleGetFunctionCount(&raw mut count, module) }.result().map_err(failed)?;
        let mut all = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: the module is loaded, and there is room for as many handles.
        unsafe { sys::cuModuleEnumerateFunctions(all.as_mut_ptr(), count, module) }.result().map_err(failed)?;
        for function in all {
            let mut its = std::ptr::null();
            // SAFETY: a kernel of a module that is loaded, and loaded itself, which CUDA may put off; the name ends with a zero and
            // lives as long as that.
            let its = unsafe {
                sys::cuFuncLoad(function).result().map_err(failed)?;
                sys::cuFuncGetName(&raw mut its, function).result().map_err(failed)?;
                CStr::from_ptr(its).to_string_lossy()
            };
            if spelled(&its) == spelled(name) {
                return Ok(Function(function));
            }
        }
        Err(Error::new(ErrorKind::Device, "module", format!("the machine code has no kernel {name}"), at))
    }

    /// Loads machine code, and tells the library of it if it communicates.
    pub(crate) fn load_cubin(&self, cubin: &Cubin, call: &'static str, at: At) -> Result<sys::CUmodule> {
        self.device().bind(call, at)?;
        // SAFETY: a whole cubin, which nvJitLink has made or which the cache's sum vouches for; the context is bound.
        let module = unsafe { result::module::load_data(cubin.bytes().as_ptr().cast()) };
        let module = module.map_err(|error| device(call, error, at))?;
        let mut loaded = Loaded { module, is_known: false, again: None };
        let known = if cubin.has_nvshmem() { self.tell(module, call, at) } else { Ok(()) };
        loaded.is_known = cubin.has_nvshmem() && known.is_ok();
        self.modules.0.borrow_mut().push(loaded);
        known.map(|()| module)
    }

    fn tell(&self, module: sys::CUmodule, call: &'static str, at: At) -> Result<()> {
        const SYMBOL: &str = "nvshmemx_cumodule_init";
        let init = self.table.module_init.ok_or_else(|| self.table.missing(SYMBOL, call, at))?;
        // SAFETY: a module of the context that is bound, with NVSHMEM's device library in it; the library is initialized.
        check(unsafe { init(module.cast()) }, SYMBOL, call, at)
    }

    /// Ends all modules for the library, and unloads them. When the library still is initialized, and no kernel runs.
    pub(crate) fn unload_modules(&self, at: At) -> Result<()> {
        const CALL: &str = "finalize";
        let mut done = Ok(());
        for Loaded { module, is_known, .. } in self.modules.0.take() {
            if let Some(finalize) = self.table.module_finalize.filter(|_| is_known) {
                // SAFETY: a module that the library was told of, and that is loaded.
                let status: c_int = unsafe { finalize(module.cast()) };
                done = done.and(check(status, "nvshmemx_cumodule_finalize", CALL, at));
            }
            // SAFETY: loaded once, and nobody uses it any more: the API's handles ended with the PE.
            let unloaded = unsafe { result::module::unload(module) };
            done = done.and(unloaded.map_err(|error| device(CALL, error, at)));
        }
        done
    }
}

/// The kernel of a module that is loaded.
pub(crate) fn function(module: sys::CUmodule, name: &str, call: &'static str, at: At) -> Result<Function> {
    let zero_terminated = CString::new(name).map_err(|_| Error::invalid(call, format!("{name:?} has a NUL"), at))?;
    // SAFETY: the module is loaded.
    let found = unsafe { result::module::get_function(module, zero_terminated) };
    found.map(Function).map_err(|error| device(call, error, at))
}

/// A name with one spelling for both.
fn spelled(name: &str) -> String {
    name.replace('x', "l").replace('y', "m")
}

fn compile_options(source: &Source, architecture: u32) -> Options {
    let mut options = Options::new().architecture(format!("compute_{}", architecture.min(SIMULATED)));
    for folder in source.includes() {
        options = options.include(folder);
    }
    for (name, value) in source.defines() {
        options = options.define(name, value);
    }
    source.instances().iter().fold(options, |options, instance| options.name(instance))
}

/// How the line begins that a PE prints on its standard error before it compiles functions of NVSHMEM, for up to a minute.
pub const COMPILES: &str = "onesided: compiling ";

/// What takes long is said, once for each job where it is compiled.
pub(crate) fn notice(line: &str) {
    eprintln!("onesided: {line}");
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

/// The type of `nvshmemx_cumodule_init` and `_finalize`.
pub(crate) type ModuleCall = unsafe extern "C" fn(*mut c_void) -> c_int;

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
