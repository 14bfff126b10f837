//! [`inlined`]: source that is compiled with NVSHMEM's own headers, for speed: small calls become loads and stores.

use super::headers::{self, Installation};
use super::link::{Compiler, Linker, explained, read, stamp, write};
use super::nvjitlink::{Input, Kind};
use super::provider::{HEADERS, arguments, needs_shim, says_shim};
use super::{Cubin, LinkError, LinkOptions};
use crate::cache::{Store, Sum};
use crate::includes;
use crate::nvrtc::{Form, Job};
use crate::options::{DEFAULT_DEVICE, Options, Source};
use crate::ptx::Cached;

/// Compiles CUDA C++ with NVSHMEM's own headers, instead of those that only declare, and links it; or takes the result from the cache.
///
/// This takes 5 to 40 s the first time. What runs is not what a simulator ran: other code is behind each call, from the same source.
/// Only the folders, macros and name expressions of `source_options` are used. Everything else is in `options`.
///
/// # Errors
/// As [`link`](super::link::link), and [`LinkError::Compile`] where the source does not compile with NVSHMEM's headers.
pub fn inlined(
    source: &Source,
    source_options: &Options,
    installation: &Installation,
    options: &LinkOptions,
) -> Result<Cubin, LinkError> {
    source.check()?;
    source_options.check()?;
    options.check()?;
    let store = Store::of(&options.cache);
    let kept = store.as_ref().ok();
    let linker = Linker::find(options, kept)?;
    let compiler = Compiler::find(options, kept)?;
    let files = includes::closure(source, source_options);
    let key = files.as_ref().map(|files| {
        let mut sum = Sum::new("inlined 6");
        HEADERS.iter().for_each(|(name, text)| _ = sum.add(name).add(text));
        sum.add(&options.architecture).add(stamp(installation));
        sum.add(linker.place.stamp()).add(compiler.place.stamp());
        sum.add_compilation(source, source_options, files);
        sum.finish()
    });
    let cubin = |bytes, names, warnings, cached| Cubin {
        bytes,
        functions: vec!["nvshmem".to_string()],
        names,
        warnings,
        cached,
    };
    if let (Some(store), Ok(key)) = (kept, &key)
        && let Some((bytes, file)) = store.read_bytes(&format!("cubin-{key}"))
        && let Some(((names, warnings), _)) = store.read(&format!("names-{key}"))
    {
        return Ok(cubin(bytes, names, warnings, Cached::Read(file)));
    }

    let nvrtc = compiler.nvrtc()?;
    nvrtc.check_architecture(&options.architecture)?;
    let mut folders = source_options.folders();
    folders.push(installation.includes.clone());
    folders.extend(headers::cuda(&options.cuda, nvrtc.file())?);
    if let Some(notice) = options.notice {
        notice(&format!("compiling {} with NVSHMEM's headers, which takes 5 to 60 s", source.name));
    }
    let run = |with_shim: bool| {
        let defines = source_options.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
        let mut arguments = arguments(with_shim, &options.architecture, &folders);
        // Our nvshmemx.h includes nvshmem.h. NVSHMEM's own does so in later versions only, so nvshmem.h is included first.
        arguments.extend(["-lineinfo", "--pre-include=nvshmem.h"].map(str::to_string));
        arguments.extend(defines);
        if source_options.default_device && !arguments.iter().any(|known| known == DEFAULT_DEVICE) {
            arguments.push(DEFAULT_DEVICE.to_string());
        }
        nvrtc.run(&Job { source, headers: &HEADERS, arguments, names: &source_options.names, form: Form::Cubin })
    };
    let first = needs_shim(installation);
    let compiled = match run(first) {
        Err(why) if says_shim(&why) => run(!first).map_err(|_| why)?,
        other => other?,
    };
    let library = read(&installation.library)?;
    let inputs = [
        Input { kind: Kind::Cubin, name: &source.name, bytes: &compiled.bytes },
        Input { kind: Kind::Library, name: "libnvshmem_device.a", bytes: &library },
    ];
    let linked = linker.open()?.link(&options.architecture, &inputs);
    let bytes = linked.map_err(|refusal| explained(refusal, &source.name))?;
    let cached = match (&key, kept) {
        (Ok(_), Some(_)) if includes::closure(source, source_options) != files => {
            Cached::No(includes::CHANGED.to_string())
        }
        (Ok(key), Some(store)) => match store.write(&format!("names-{key}"), &(&compiled.names, &compiled.log)) {
            Ok(_) => write(&Ok(store.clone()), &format!("cubin-{key}"), &bytes),
            Err(why) => Cached::No(format!("{} cannot be written: {why}", store.folder().display())),
        },
        (Err(why), _) => Cached::No(why.to_string()),
        (_, None) => Cached::No(store.err().unwrap_or_default()),
    };
    Ok(cubin(bytes, compiled.names, compiled.log, cached))
}
