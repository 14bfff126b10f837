//! [`link`]: PTX, with what it calls, to machine code.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use super::headers::Installation;
use super::nvjitlink::{Input, Kind, NvJitLink, Refusal};
use super::provider::{self, Unit};
use super::{External, LinkError, LinkOptions, externals, version};
use crate::cache::{Store, Sum};
use crate::nvrtc::Nvrtc;
use crate::place::Place;
use crate::ptx::Cached;
use crate::search::{NVJITLINK, NVRTC, Search, Tool};

/// Machine code for one architecture, that a driver can load.
#[derive(Clone, PartialEq, Eq)]
pub struct Cubin {
    pub(super) bytes: Vec<u8>,
    pub(super) functions: Vec<String>,
    pub(super) names: BTreeMap<String, String>,
    pub(super) warnings: String,
    pub(super) cached: Cached,
}

impl Cubin {
    /// For `cuModuleLoadData`.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it has NVSHMEM's device library in it: then the library must be told of the module before its kernels run
    /// (`nvshmemx_cumodule_init`).
    #[must_use]
    pub fn has_nvshmem(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The functions of NVSHMEM that were linked for PTX. Of source that was compiled with NVSHMEM's headers they are not known.
    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// The name of a name expression. `None` for any other, and for PTX.
    #[must_use]
    pub fn name(&self, expression: &str) -> Option<&str> {
        self.names.get(expression).map(String::as_str)
    }

    /// What NVRTC warned of; empty for PTX.
    #[must_use]
    pub fn warnings(&self) -> &str {
        &self.warnings
    }

    /// Whether it came from the cache.
    #[must_use]
    pub fn cached(&self) -> &Cached {
        &self.cached
    }
}

impl fmt::Debug for Cubin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cubin of {} bytes with {:?} ({:?})", self.bytes.len(), self.functions, self.cached)
    }
}

/// Links PTX with the functions of NVSHMEM that it calls, or takes the result from the cache. `name` is the PTX's in errors.
///
/// The first time, the functions are compiled from NVSHMEM's headers: 5 to 60 s, all at the same time. They are kept in the cache, by
/// their names, the architecture, and the versions of NVSHMEM and NVRTC. Of several processes that need them, one compiles. PTX that
/// calls none needs no NVRTC. Where PTX is of a newer version than nvJitLink understands, it is tried as the newest that it does.
///
/// # Errors
/// * [`LinkError::Ptx`]: it is no PTX, for a newer architecture or of a newer version, or calls what nobody has.
/// * [`LinkError::Missing`]: the installed NVSHMEM lacks a function.
/// * [`LinkError::Incomplete`]: headers of CUDA are not here.
/// * The others: NVRTC or nvJitLink is not here, or failed.
pub fn link(ptx: &str, name: &str, installation: &Installation, options: &LinkOptions) -> Result<Cubin, LinkError> {
    let needed = Needed::of(ptx, name, installation, options)?;
    let functions: Vec<String> = needed.functions.clone();
    let cubin = |bytes, cached| Cubin { bytes, functions, names: BTreeMap::new(), warnings: String::new(), cached };
    if let Some((bytes, file)) = needed.kept().and_then(|store| store.read_bytes(&needed.key)) {
        return Ok(cubin(bytes, Cached::Read(file)));
    }
    let provider = needed.compiled(&needed.units, installation, options)?;
    let library = if needed.units.is_empty() { Vec::new() } else { read(&installation.library)? };
    let bytes = linked(needed.linker.open()?, ptx, name, &provider, &library, &options.architecture)?;
    let cached = write(&needed.store, &needed.key, &bytes);
    Ok(cubin(bytes, cached))
}

/// The texts of NVSHMEM's functions that [`link`] would compile first, because the cache does not have them, by their numbers for
/// [`provide`]. NVRTC compiles one text at a time in a process, so several processes that provide one each are faster.
///
/// # Errors
/// As [`link`].
pub fn missing(
    ptx: &str,
    name: &str,
    installation: &Installation,
    options: &LinkOptions,
) -> Result<Vec<usize>, LinkError> {
    let needed = Needed::of(ptx, name, installation, options)?;
    let is_kept = |key: &str| needed.kept().is_some_and(|store| store.read_bytes(key).is_some());
    if is_kept(&needed.key) {
        return Ok(Vec::new());
    }
    let units = needed.units.iter().enumerate();
    Ok(units.filter(|(_, unit)| !is_kept(&unit.key)).map(|(place, _)| place).collect())
}

/// Compiles one text of NVSHMEM's functions that [`link`] needs for the PTX into the cache, unless it is there. Does nothing if
/// the number is not one of [`missing`]'s.
///
/// # Errors
/// As [`link`].
pub fn provide(
    ptx: &str,
    name: &str,
    installation: &Installation,
    options: &LinkOptions,
    place: usize,
) -> Result<(), LinkError> {
    let needed = Needed::of(ptx, name, installation, options)?;
    let one = needed.units.get(place..).and_then(|rest| rest.get(..1)).unwrap_or_default();
    needed.compiled(one, installation, options).map(drop)
}

/// What linking PTX takes.
struct Needed {
    /// Names of NVSHMEM's functions that are called.
    functions: Vec<String>,
    units: Vec<Unit>,
    store: Result<Store, String>,
    linker: Linker,
    /// `None` if no function is called.
    compiler: Option<Compiler>,
    /// What the machine code is kept under.
    key: String,
}

impl Needed {
    fn of(ptx: &str, name: &str, installation: &Installation, options: &LinkOptions) -> Result<Needed, LinkError> {
        options.check()?;
        let wrong = |why: String| LinkError::Ptx { name: name.to_string(), why };
        check(ptx, &options.architecture).map_err(wrong)?;
        let declared = externals(ptx).map_err(wrong)?;
        let functions: Vec<External> = declared.into_iter().filter(External::is_nvshmem).collect();

        let store = Store::of(&options.cache);
        let kept = store.as_ref().ok();
        let linker = Linker::find(options, kept)?;
        let compiler = if functions.is_empty() { None } else { Some(Compiler::find(options, kept)?) };
        let names = functions.iter().map(|function| function.name.clone()).collect();
        let units = compiler
            .as_ref()
            .map(|compiler| provider::units(functions, &options.architecture, installation, &compiler.place));
        let units = units.unwrap_or_default();
        let mut sum = Sum::new("linked 2");
        sum.add(ptx).add(&options.architecture).add(linker.place.stamp());
        if !units.is_empty() {
            sum.add(stamp(installation));
            units.iter().for_each(|unit| _ = sum.add(&unit.key));
        }
        let key = format!("cubin-{}", sum.finish());
        Ok(Needed { functions: names, units, store, linker, compiler, key })
    }

    fn kept(&self) -> Option<&Store> {
        self.store.as_ref().ok()
    }

    fn compiled(
        &self,
        units: &[Unit],
        installation: &Installation,
        options: &LinkOptions,
    ) -> Result<Vec<Vec<u8>>, LinkError> {
        match &self.compiler {
            Some(compiler) => provider::cubins(units, compiler.nvrtc()?, self.kept(), installation, options),
            None => Ok(Vec::new()),
        }
    }
}

/// Whether all that [`link`] needs is here, without compiling anything.
///
/// # Errors
/// As [`link`]: what is not here, and how to get it.
pub fn ready(options: &LinkOptions) -> Result<(), LinkError> {
    options.check()?;
    let store = Store::of(&options.cache);
    let kept = store.as_ref().ok();
    Linker::find(options, kept)?;
    let compiler = Compiler::find(options, kept)?;
    super::headers::cuda(&options.cuda, &compiler.place.file).map(drop)
}

/// Links PTX with a provider; if the PTX is too new, as the version that nvJitLink names.
fn linked(
    linker: &NvJitLink,
    ptx: &str,
    name: &str,
    provider: &[Vec<u8>],
    library: &[u8],
    architecture: &str,
) -> Result<Vec<u8>, LinkError> {
    let attempt = |ptx: &str| {
        let mut inputs = vec![Input { kind: Kind::Ptx, name, bytes: ptx.as_bytes() }];
        inputs.extend(provider.iter().map(|bytes| Input { kind: Kind::Cubin, name: "NVSHMEM's functions", bytes }));
        if !library.is_empty() {
            inputs.push(Input { kind: Kind::Library, name: "libnvshmem_device.a", bytes: library });
        }
        linker.link(version::for_target(ptx, architecture), &inputs)
    };
    let refusal = match attempt(ptx) {
        Ok(bytes) => return Ok(bytes),
        Err(refusal) => refusal,
    };
    let Some(newest) = version::understood(&refusal.log) else { return Err(explained(refusal, name)) };
    let older = version::lowered(ptx, newest).ok_or_else(|| explained_version(ptx, name, newest, linker, ""))?;
    attempt(&older).map_err(|again| explained_version(ptx, name, newest, linker, &again.log))
}

fn explained_version(ptx: &str, name: &str, newest: &str, linker: &NvJitLink, log: &str) -> LinkError {
    let (major, minor) = linker.version();
    let its = version::version(ptx).unwrap_or_default();
    let why = format!(
        "it is PTX of version {its}; nvJitLink {major}.{minor} understands {newest}, and as that it does not assemble; remedy: compile \
         it with NVRTC {major}.{minor} or older, or update nvJitLink\n{log}"
    );
    LinkError::Ptx { name: name.to_string(), why: why.trim_end().to_string() }
}

/// What nvJitLink's log says, of the PTX if it is about that.
pub(super) fn explained(refusal: Refusal, name: &str) -> LinkError {
    let Refusal { call, input, log } = refusal;
    let undefined = log.split("Undefined reference to '").nth(1).and_then(|rest| rest.split('\'').next());
    if let Some(function) = undefined.filter(|function| function.contains("nvshmemi_")) {
        let why = format!(
            "a function of NVSHMEM that it calls is declared for a type that the library does not have: it lacks {function}; remedy: another \
             type of the elements, such as unsigned ones"
        );
        return LinkError::Ptx { name: name.to_string(), why };
    }
    if let Some(function) = undefined {
        let why = format!("it calls {function}, which neither NVSHMEM nor the driver has");
        return LinkError::Ptx { name: name.to_string(), why };
    }
    if input == Some(0) {
        let lines = log.lines().filter(|line| !line.starts_with("ERROR"));
        let lines: Vec<_> = lines.map(|line| line.replace("ptxas application ptx input, ", "")).collect();
        return LinkError::Ptx { name: name.to_string(), why: lines.join("\n") };
    }
    LinkError::Failed { call, why: log }
}

/// Whether it looks like PTX, for this architecture or an older one.
fn check(ptx: &str, architecture: &str) -> Result<(), String> {
    if let Some(at) = ptx.find('\0') {
        return Err(format!("line {}: it has a NUL", ptx[..at].matches('\n').count() + 1));
    }
    if version::version(ptx).is_none() {
        return Err("it has no .version: it is not PTX".to_string());
    }
    let target = version::target(ptx).ok_or("it has no .target of a GPU, such as sm_90: it is not whole PTX")?;
    match version::number(architecture) {
        Some(has) if has < target => Err(format!(
            "it is PTX for sm_{target}, and this GPU is an {architecture}; remedy: compile it for compute_{has} or older"
        )),
        _ => Ok(()),
    }
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, LinkError> {
    fs::read(file).map_err(|why| LinkError::Incomplete {
        what: format!("{} cannot be read: {why}", file.display()),
        remedy: "install NVSHMEM again",
    })
}

pub(super) fn write(store: &Result<Store, String>, key: &str, bytes: &[u8]) -> Cached {
    match store {
        Ok(store) => match store.write_bytes(key, bytes) {
            Ok(file) => Cached::Written(file),
            Err(why) => Cached::No(format!("{} cannot be written: {why}", store.folder().display())),
        },
        Err(why) => Cached::No(why.clone()),
    }
}

/// Identifies an installation. A copy in another folder has the same stamp, so what is compiled on one machine serves another.
pub(super) fn stamp(installation: &Installation) -> String {
    let size = fs::metadata(&installation.library).ok().map(|metadata| metadata.len());
    format!("{:?} {size:?}", installation.version)
}

/// A library that is opened when it is needed.
pub(super) struct Lazy<T> {
    pub(super) place: Place,
    opened: OnceCell<T>,
}

pub(super) type Compiler = Lazy<Nvrtc>;
pub(super) type Linker = Lazy<NvJitLink>;

impl Compiler {
    pub(super) fn find(options: &LinkOptions, store: Option<&Store>) -> Result<Compiler, LinkError> {
        let find = |search: &Search| {
            let (nvrtc, python) = Nvrtc::find(search)?;
            Ok((Place::of(&nvrtc, python), nvrtc))
        };
        Lazy::remembered(&NVRTC, options.nvrtc.as_deref(), store, find)
    }

    pub(super) fn nvrtc(&self) -> Result<&Nvrtc, LinkError> {
        self.or_open(|place| Ok(Nvrtc::open(&place.file, place.origin)?))
    }
}

impl Linker {
    pub(super) fn find(options: &LinkOptions, store: Option<&Store>) -> Result<Linker, LinkError> {
        let find = |search: &Search| {
            let (linker, python) = NvJitLink::find(search)?;
            Ok((Place::new(linker.file(), linker.origin(), linker.version(), python), linker))
        };
        Lazy::remembered(&NVJITLINK, options.nvjitlink.as_deref(), store, find)
    }

    pub(super) fn open(&self) -> Result<&NvJitLink, LinkError> {
        self.or_open(|place| NvJitLink::open(&place.file, place.origin))
    }
}

impl<T> Lazy<T> {
    /// The library at the remembered place, not opened yet. If no place is remembered, searches for the library; then it is
    /// open.
    fn remembered(
        tool: &'static Tool,
        named: Option<&Path>,
        store: Option<&Store>,
        find: impl Fn(&Search) -> Result<(Place, T), LinkError>,
    ) -> Result<Lazy<T>, LinkError> {
        let search = Search::from_environment(tool, named);
        if let Some(place) = store.and_then(|store| Place::known(store, &search)) {
            return Ok(Lazy { place, opened: OnceCell::new() });
        }
        let (place, opened) = find(&search)?;
        if let Some(store) = store {
            place.remember(store, &search);
        }
        Ok(Lazy { place, opened: OnceCell::from(opened) })
    }

    fn or_open(&self, open: impl Fn(&Place) -> Result<T, LinkError>) -> Result<&T, LinkError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = open(&self.place)?;
        Ok(self.opened.get_or_init(|| opened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ptx_for_this_gpu_is_refused_before_it_is_linked() {
        let head = ".version 9.0\n.target sm_90\n";
        assert_eq!(check(head, "sm_90"), Ok(()));
        assert_eq!(check(head, "sm_120"), Ok(()));
        for (ptx, expected) in [
            ("", "it has no .version: it is not PTX"),
            (".version 9.0\n", "it has no .target of a GPU, such as sm_90: it is not whole PTX"),
            (".version 9.0\n.target sm_90\n\0", "line 3: it has a NUL"),
        ] {
            assert_eq!(check(ptx, "sm_90"), Err(expected.to_string()));
        }
        let why = check(head, "sm_80").unwrap_err();
        assert!(
            why.starts_with("it is PTX for sm_90, and this GPU is an sm_80; remedy: compile it for compute_80"),
            "{why}"
        );
    }
}
