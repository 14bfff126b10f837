//! The provider: NVSHMEM's functions under their public names, compiled from the headers of the installed NVSHMEM.
//!
//! The headers define these functions inline, or as static ones, so that nothing can be linked against them. A unit renames them
//! (`#define NAME os_NAME`), includes the headers, and defines each function under its name as a call of the renamed one
//! (`definitions.rs`).

use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;

use super::definitions::{ASSERTED, text};
use super::headers::Installation;
use super::{External, LinkError, LinkOptions};
use crate::MARKS;
use crate::cache::{Store, Sum};
use crate::error::CompileError;
use crate::nvrtc::{Form, Job, Nvrtc};
use crate::options::{DEFAULT_DEVICE, Source};
use crate::place::Place;

/// Collectives that move data, in all types and forms. NVRTC takes as long for one of them as for hundreds of other functions.
const SLOW: [&str; 8] =
    ["reduce", "reducescatter", "broadcast", "broadcastmem", "fcollect", "fcollectmem", "alltoall", "alltoallmem"];

/// Functions that are compiled together.
pub(super) struct Unit {
    functions: Vec<External>,
    text: String,
    pub(super) key: String,
}

impl Unit {
    /// What the user is told before it is compiled.
    fn notice(&self, is_kept: bool) -> String {
        let first: Vec<_> = self.functions.iter().take(3).map(|function| function.name.as_str()).collect();
        let others = match self.functions.len() - first.len() {
            0 => String::new(),
            1 => " and another".to_string(),
            others => format!(" and {others} others"),
        };
        let once = if is_kept { "once, for the cache, " } else { "" };
        format!("compiling {}{others} {once}from NVSHMEM's headers, which takes 5 to 60 s", first.join(", "))
    }
}

/// All that are needed: the quick ones together, each slow one by itself.
pub(super) fn units(
    functions: Vec<External>,
    architecture: &str,
    installation: &Installation,
    nvrtc: &Place,
) -> Vec<Unit> {
    let (slow, quick): (Vec<_>, Vec<_>) = functions.into_iter().partition(|function| is_slow(function.public_name()));
    let groups = [quick].into_iter().chain(slow.into_iter().map(|one| vec![one])).filter(|group| !group.is_empty());
    let unit = |functions: Vec<External>| {
        let text = text(&functions);
        let mut sum = Sum::new("provider 5");
        sum.add(env!("CARGO_PKG_VERSION"));
        HEADERS.iter().for_each(|(name, text)| _ = sum.add(name).add(text));
        sum.add(&text).add(architecture).add(format!("{:?}", installation.version)).add(nvrtc.stamp());
        Unit { functions, text, key: format!("provider-{}", sum.finish()) }
    };
    groups.map(unit).collect()
}

fn is_slow(name: &str) -> bool {
    let name = name.trim_end_matches("_warp").trim_end_matches("_block");
    SLOW.contains(&name.rsplit('_').next().unwrap_or(name))
}

/// Headers of NVSHMEM before 3.5 were not written for NVRTC: they use `std`, and leave `__device__` out.
const SHIM: (&str, &str) = (
    "onesided_std.h",
    "#include <cuda/std/type_traits>\n#include <cuda/std/limits>\nnamespace std { using namespace cuda::std; }\n",
);

/// nvcc compiled `libnvshmem_device.a`, and there 64-bit integers are `long`. Under NVRTC, CCCL makes them `long long`. This
/// changes the names of the library's C++ functions, and `put_signal` needs one of these. So the types of CCCL, and of two
/// headers of CUDA, get other names, and ours are `long`.
const INTEGERS: (&str, &str) = (
    "onesided_integers.h",
    "#define int64_t onesided_int64_t\n#define uint64_t onesided_uint64_t\n#include <cuda/std/cstdint>\n\
     #if __has_include(<cuda_awbarrier_primitives.h>)\n#include <cuda_awbarrier_primitives.h>\n#endif\n\
     #if __has_include(<cuda_pipeline_primitives.h>)\n#include <cuda_pipeline_primitives.h>\n#endif\n\
     #undef int64_t\n#undef uint64_t\n\
     typedef long int64_t;\ntypedef unsigned long uint64_t;\n\
     namespace cuda { namespace std { using ::int64_t; using ::uint64_t; } }\n",
);

/// Functions that `libnvshmem_device.a` has under their public names, and that the headers do not declare under NVRTC: see
/// [`IN_THE_LIBRARY`](super::definitions::IN_THE_LIBRARY).
const LIBRARY: (&str, &str) = ("onesided_library.h", "extern \"C\" __device__ void nvshmem_global_exit(int status);\n");

/// The headers of ours that stand before NVSHMEM's.
pub(super) const HEADERS: [(&str, &str); 4] = [INTEGERS, SHIM, LIBRARY, MARKS];

/// How NVSHMEM's own headers are compiled, plainly or with the shim.
pub(super) fn arguments(with_shim: bool, architecture: &str, folders: &[PathBuf]) -> Vec<String> {
    let fixed = [format!("--gpu-architecture={architecture}"), "-rdc=true".to_string(), "-std=c++17".to_string()];
    let fixed = fixed.into_iter().chain([INTEGERS, LIBRARY].map(|(name, _)| format!("--pre-include={name}")));
    let shim = [DEFAULT_DEVICE.to_string(), format!("--pre-include={}", SHIM.0)];
    let folders = folders.iter().map(|folder| format!("-I{}", folder.display()));
    fixed.chain(shim.into_iter().filter(|_| with_shim)).chain(folders).collect()
}

/// Whether to begin with the shim.
pub(super) fn needs_shim(installation: &Installation) -> bool {
    installation.version < [3, 5, 0]
}

/// Whether a log says that the other way should be tried.
pub(super) fn says_shim(why: &CompileError) -> bool {
    matches!(why, CompileError::Source { log, .. } if log.contains("considered a host function") || log.contains("namespace \"std\""))
}

/// The units as machine code, in their order: from the cache, or compiled at the same time. Of several processes and threads that
/// need the same unit, one compiles it.
pub(super) fn cubins(
    units: &[Unit],
    nvrtc: &Nvrtc,
    store: Option<&Store>,
    installation: &Installation,
    options: &LinkOptions,
) -> Result<Vec<Vec<u8>>, LinkError> {
    let cached = |unit: &Unit| Some(store?.read_bytes(&unit.key)?.0);
    let mut found: Vec<Option<Vec<u8>>> = units.iter().map(cached).collect();
    let missing: Vec<usize> = (0..units.len()).filter(|place| found[*place].is_none()).collect();
    if missing.is_empty() {
        return Ok(found.into_iter().flatten().collect());
    }
    nvrtc.check_architecture(&options.architecture)?;
    let folders: Vec<PathBuf> =
        [installation.includes.clone()].into_iter().chain(super::headers::cuda(&options.cuda, nvrtc.file())?).collect();
    let make = |unit: &Unit| -> Result<Vec<u8>, LinkError> {
        let _lock: Option<File> = store.and_then(|store| store.lock(&unit.key)); // until it is written
        if let Some(made_meanwhile) = cached(unit) {
            return Ok(made_meanwhile);
        }
        if let Some(notice) = options.notice {
            notice(&unit.notice(store.is_some()));
        }
        let cubin = compile(unit, nvrtc, &folders, installation, &options.architecture)?;
        if let Some(store) = store {
            let _ = store.write_bytes(&unit.key, &cubin); // else it takes as long the next time
        }
        Ok(cubin)
    };
    let next = Mutex::new(missing.iter().copied());
    let made = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let take = || next.lock().ok()?.next(); // locked only here, not while one is made
                while let Some(place) = take() {
                    let result = make(&units[place]);
                    if let Ok(mut made) = made.lock() {
                        made.push((place, result));
                    }
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_default();
    made.sort_by_key(|(place, _)| *place);
    for (place, result) in made {
        found[place] = Some(result?);
    }
    Ok(found.into_iter().flatten().collect())
}

fn compile(
    unit: &Unit,
    nvrtc: &Nvrtc,
    folders: &[PathBuf],
    installation: &Installation,
    architecture: &str,
) -> Result<Vec<u8>, LinkError> {
    let source = Source::new("provider.cu", unit.text.as_str());
    let run = |with_shim: bool| {
        let arguments = arguments(with_shim, architecture, folders);
        nvrtc.run(&Job { source: &source, headers: &HEADERS, arguments, names: &Default::default(), form: Form::Cubin })
    };
    let first = needs_shim(installation);
    let compiled = match run(first) {
        Err(why) if says_shim(&why) => run(!first),
        other => other,
    };
    match compiled {
        Ok(compiled) => Ok(compiled.bytes),
        Err(CompileError::Source { log, .. }) => Err(explained(&log, unit, installation)),
        Err(other) => Err(other.into()),
    }
}

/// What a log of NVRTC says of the functions that are called.
fn explained(log: &str, unit: &Unit, installation: &Installation) -> LinkError {
    let name = || "the PTX".to_string();
    if let Some((_, rest)) = log.split_once(&format!("static assertion failed with \"{ASSERTED}")) {
        let asserted = rest.split(['"', '\n']).next().unwrap_or_default();
        let [major, minor, patch] = installation.version;
        let why = format!("{asserted}, which is not how NVSHMEM {major}.{minor}.{patch} declares it");
        return LinkError::Ptx { name: name(), why };
    }
    let is_undefined =
        |function: &&External| log.contains(&format!("identifier \"os_{}\" is undefined", function.public_name()));
    if let Some(function) = unit.functions.iter().find(is_undefined) {
        let function = function.public_name().to_string();
        return LinkError::Missing { function, version: installation.version };
    }
    let first: Vec<_> = log.lines().take(20).collect();
    LinkError::Failed { call: "compiling NVSHMEM's functions", why: first.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_a_unit_of_its_own() {
        for slow in [
            "nvshmem_float_sum_reduce",
            "nvshmemx_int_max_reducescatter_warp",
            "nvshmemx_broadcastmem_block",
            "nvshmem_char_fcollect",
            "nvshmem_alltoallmem",
            "nvshmemx_double2_maxloc_reduce_block",
        ] {
            assert!(is_slow(slow), "{slow}");
        }
        for quick in ["nvshmem_int_p", "nvshmemx_barrier_all_block", "nvshmemx_putmem_signal_nbi_warp"] {
            assert!(!is_slow(quick), "{quick}");
        }
    }

    #[test]
    fn who_waits_is_told_that_something_is_compiled() {
        let function = External { name: "nvshmem_x".to_string(), result: None, parameters: vec![] };
        let unit = Unit { functions: vec![function; 5], text: String::new(), key: String::new() };
        let expected = "compiling nvshmem_x, nvshmem_x, nvshmem_x and 2 others once, for the cache, from NVSHMEM's headers, which takes \
                        5 to 60 s";
        assert_eq!(unit.notice(true), expected);
    }

    #[test]
    fn the_key_has_all_that_the_machine_code_depends_on() {
        let function = |parameters| External { name: "nvshmem_x".to_string(), result: None, parameters };
        let installation = |version| Installation { includes: "i".into(), library: "l".into(), version };
        let key = |function: &External, architecture: &str, version| {
            units(vec![function.clone()], architecture, &installation(version), &Place::default())[0].key.clone()
        };
        let keys = [
            key(&function(vec![8]), "sm_90", [3, 8, 0]),
            key(&function(vec![4]), "sm_90", [3, 8, 0]),
            key(&function(vec![8]), "sm_80", [3, 8, 0]),
            key(&function(vec![8]), "sm_90", [3, 4, 5]),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(key(&function(vec![8]), "sm_90", [3, 8, 0]), keys[0]);
    }
}
