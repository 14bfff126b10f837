//! Modules of kernels: compiled, linked with NVSHMEM's functions, loaded, and made known to the library.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::rc::Rc;

use cudarc::driver::{result, sys};
use onesided::backend::{KernelInfo, Parameter};
use onesided::{At, Error, ErrorKind, Result, Source};
use onesided_compile::gpu::{self, Cubin, Installation};

use crate::code::{Code, refused};
use crate::cuda::device;
use crate::launch::Limits;
use crate::memory::check;
use crate::pe::Nvshmem;

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

impl Modules {
    fn made_of(&self, code: &Code) -> Option<Functions> {
        let modules = self.0.borrow();
        let mut shared = modules.iter().filter_map(|loaded| loaded.again.as_ref());
        shared.find(|(known, _)| known == code).map(|(_, functions)| functions.clone())
    }
}

impl Nvshmem {
    /// Compiles, links and loads a module. The same code without variables is loaded only once, because each copy takes memory
    /// of the GPU.
    pub(crate) fn load_module(&self, source: &Source, at: At) -> Result<(CudaModule, Vec<KernelInfo>)> {
        const CALL: &str = "module";
        let architecture = self.device().architecture(CALL, at)?;
        let (code, instances) = Code::of(source, architecture).map_err(|why| refused(&why, CALL, at))?;
        let invalid = |why: String| Error::invalid(CALL, format!("{}: {why}", source.name()), at);
        let entries = gpu::entries(&code.ptx).map_err(invalid)?;
        let functions = match self.modules.made_of(&code) {
            Some(functions) => functions,
            None => self.load_code(code, source, &entries, architecture, at)?,
        };
        let kernel = |(gpu::Entry { name, parameters }, (_, limits)): (gpu::Entry, &(Function, Limits))| {
            let instance = instances.iter().find(|(_, lowered)| *lowered == name).map(|(own, _)| own.clone());
            let parameters = parameters.into_iter().map(|(size, align)| Parameter { size, align }).collect();
            KernelInfo { name, instance, parameters, cluster: limits.cluster }
        };
        let kernels = entries.into_iter().zip(functions.iter()).map(kernel).collect();
        Ok((CudaModule { functions }, kernels))
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
        let cubin = Installation::of(&self.table.file, self.table.version)
            .and_then(|installation| code.linked(source, &installation, architecture));
        let module = self.load_cubin(&cubin.map_err(|why| refused(&why, CALL, at))?, CALL, at)?;
        let functions = entries.iter().map(|gpu::Entry { name, .. }| {
            let found = function(module, name, CALL, at);
            let function = if code.inlined { found.or_else(|_| self.alike(module, name, at))? } else { found? };
            Ok((function, Limits::of(function).map_err(|error| device(CALL, error, at))?))
        });
        let functions: Functions = functions.collect::<Result<Vec<_>>>()?.into();
        if !gpu::has_variables(&code.ptx)
            && let Some(loaded) = self.modules.0.borrow_mut().last_mut()
        {
            loaded.again = Some((code, functions.clone()));
        }
        Ok(functions)
    }

    /// The kernel whose name differs only in the spelling of 64-bit integers. NVSHMEM's headers make them `long`; our headers
    /// and CCCL make them `long long`. C++ then gives the kernel another name.
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
            // SAFETY: a kernel of a module that is loaded. CUDA may not have loaded the kernel yet, so it is loaded first. The
            // name ends with a zero, and lives as long as the module.
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

    /// Ends all modules for the library, and unloads them. Call this while the library is still initialized and no kernel runs.
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

/// The type of `nvshmemx_cumodule_init` and `_finalize`.
pub(crate) type ModuleCall = unsafe extern "C" fn(*mut c_void) -> c_int;
