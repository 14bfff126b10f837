//! [`Code`]: a module of kernels, compiled and decoded once for all PEs and runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use onesided::backend::{KernelInfo, Language, Parameter};
use onesided::{At, ErrorKind, Source};
use onesided_compile::CompileError;
use onesided_ptx::{Change, Location, Module, Place};

use super::Function;
use super::name::INSIDE;

/// A module of kernels.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) module: Arc<Module>,
    pub(crate) kernels: Vec<KernelInfo>,
    /// What its external functions are, in their order.
    pub(crate) functions: Vec<Function>,
    /// Source lines, as reports name them, once they are asked for.
    places: Vec<OnceLock<At>>,
    /// What a line of the PTX is said to be in, where it has no line of a source.
    ptx: String,
}

/// A module, or why there is none.
type Loaded = Result<Arc<Code>, (ErrorKind, String)>;

/// A change of a kernel, at a line of its source.
pub(crate) type ChangeAt = (At, Change);

/// What was loaded in this process, how it was changed, and what could not be loaded: what was needed last comes last. A search loads the same text in
/// every schedule, and every PE loads it, so it must be found fast.
static LOADED: Mutex<Vec<(Source, Vec<ChangeAt>, Loaded)>> = Mutex::new(Vec::new());

/// The most that are kept. Tests with random kernels load thousands.
const KEPT: usize = 1000;
/// A source among this many of the last ones stays where it is, and is found without a change of the list.
const RECENT: usize = 16;

impl Code {
    /// The module of a source that is changed, or is not.
    ///
    /// # Errors
    /// As [`onesided::Pe::module`] says.
    pub(crate) fn load(source: &Source, changes: &[ChangeAt]) -> Loaded {
        let known = || LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut known = known();
            let is_it = |(known, changed, _): &(Source, Vec<ChangeAt>, Loaded)| changed == changes && known == source;
            if let Some(at) = known.iter().rposition(is_it) {
                let loaded = known[at].2.clone();
                if at + RECENT < known.len() {
                    let found = known.remove(at);
                    known.push(found);
                }
                return loaded;
            }
        }
        let loaded = Code::new(source, changes).map(Arc::new);
        // what this machine lacks may come
        if !matches!(loaded, Err((ErrorKind::Unsupported, _))) {
            let mut known = known();
            if known.len() >= KEPT {
                drop(known.remove(0));
            }
            known.push((source.clone(), changes.to_vec(), loaded.clone()));
        }
        loaded
    }

    fn new(source: &Source, changes: &[ChangeAt]) -> Result<Code, (ErrorKind, String)> {
        let (text, instances) = match source.language() {
            Language::Ptx => (source.text().to_string(), BTreeMap::new()),
            Language::Cuda => compile(source)?,
        };
        let refused = |why: String| (ErrorKind::InvalidArgument, format!("{}: {why}", source.name()));
        let module = parse(&text, changes, &ptx_of(source)).map_err(|why| {
            let why = why.to_string();
            refused(if why.contains("the variable nvshmemi_") { format!("{why}; it {INSIDE}") } else { why })
        })?;
        if let Some(global) = module.globals().iter().find(|global| global.is_external) {
            let name = &global.name;
            return Err(refused(match name.starts_with("nvshmemi_") {
                true => format!("{name} {INSIDE}"),
                false => format!("{name} is defined in another module, and modules are not linked"),
            }));
        }
        let functions = module.externals().iter().map(|external| {
            let called = external.called_at.map(|place| format!(", called at {}", module.describe(place)));
            let line = external.line;
            Function::decode(external)
                .map_err(|why| refused(format!("{why} (line {line} of the PTX{})", called.unwrap_or_default())))
        });
        let functions = functions.collect::<Result<Vec<_>, _>>()?;
        let kernels = module.kernels().iter().map(|kernel| {
            let parameter = |parameter: &onesided_ptx::Parameter| Parameter {
                size: parameter.size as usize,
                align: parameter.align as usize,
            };
            let parameters = kernel.parameters.iter().map(parameter).collect();
            let instance = instances.get(&kernel.name).cloned();
            KernelInfo { name: kernel.name.clone(), instance, parameters, cluster: kernel.cluster }
        });
        let kernels = kernels.collect();
        let places = (0..module.places()).map(|_| OnceLock::new()).collect();
        Ok(Code { module: Arc::new(module), kernels, functions, places, ptx: ptx_of(source) })
    }

    /// An instruction's line in the source, or in the PTX if the source is not known.
    pub(crate) fn at(&self, place: Place) -> At {
        let Some(slot) = self.places.get(place.index()) else { return self.make_at(place) };
        *slot.get_or_init(|| self.make_at(place))
    }

    fn make_at(&self, place: Place) -> At {
        match self.module.place(place) {
            (_, Some(location)) => at_of(location.of_the_user()),
            (line, None) => At::foreign(&self.ptx, line, 0, None),
        }
    }
}

/// A text, changed where it is. `ptx`: what its lines are said to be in.
fn parse(text: &str, changes: &[ChangeAt], ptx: &str) -> Result<Module, onesided_ptx::Error> {
    if changes.is_empty() {
        return Module::parse(text);
    }
    let just: Vec<Change> = changes.iter().map(|(_, change)| *change).collect();
    Module::parse_changed(text, &just, &|number, line, location| {
        let at = changes[number].0;
        let Some(location) = location else { return at.file() == ptx && at.line() == line };
        let is_it = |of: &Location| &*of.file == at.file() && (of.line, of.column) == (at.line(), at.column());
        std::iter::successors(Some(location), |of| of.inlined_at.as_deref()).any(is_it)
    })
}

/// A line of the source, through inlining.
fn at_of(location: &Location) -> At {
    let at = At::foreign(&location.file, location.line, location.column, location.function.as_deref());
    match &location.inlined_at {
        Some(caller) => at.inlined(at_of(caller)),
        None => at,
    }
}

/// The text of a file that findings in kernels name, if a [`Source`] that this process has loaded [has it](Source::text_of). Local.
///
/// ```
/// use onesided::Source;
/// use onesided_sim::{RING_PTX, example, kernel_text};
/// example(1, |pe| pe.module(&Source::ptx("ring.ptx", RING_PTX).compiled_from("ring.cu", "// the kernel")).map(drop));
/// assert_eq!(kernel_text("ring.cu").as_deref(), Some("// the kernel"));
/// ```
pub fn kernel_text(file: &str) -> Option<String> {
    let known = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().find_map(|(source, ..)| source.text_of(file).map(str::to_string))
}

/// What the PTX is called: as its file, or by what it was compiled from.
fn ptx_of(source: &Source) -> String {
    match (source.language(), source.name()) {
        (_, "") => "PTX".to_string(),
        (Language::Ptx, name) if name.ends_with(".ptx") => name.to_string(),
        (_, name) => format!("PTX of {name}"),
    }
}

/// The PTX of CUDA C++, and which kernels of it are instances of templates.
fn compile(source: &Source) -> Result<(String, BTreeMap<String, String>), (ErrorKind, String)> {
    let mut options = onesided_compile::Options::new();
    for folder in source.includes() {
        options = options.include(folder);
    }
    for (name, value) in source.defines() {
        options = options.define(name, value);
    }
    for expression in source.instances() {
        options = options.name(expression);
    }
    if source.is_default_device() {
        options = options.default_device();
    }
    let text = onesided_compile::Source::new(source.name(), source.text());
    let ptx = onesided_compile::compile(&text, &options).map_err(|why| {
        let kind = match why {
            CompileError::NotFound { .. } | CompileError::Unusable { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::InvalidArgument,
        };
        (kind, why.to_string())
    })?;
    let instances = ptx.names().map(|(expression, name)| (name.to_string(), expression.to_string())).collect();
    Ok((ptx.into_text(), instances))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_elsewhere_is_refused_by_its_name() {
        let why = |variable: &str| {
            let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n.extern {variable}[8];\n");
            Code::load(&Source::ptx("inside.ptx", text), &[]).unwrap_err().1
        };
        let not_here = "inside.ptx: PTX, line 4: the variable nvshmemi_device_state_d is not defined here";
        assert_eq!(why(".const .align 8 .b8 nvshmemi_device_state_d"), format!("{not_here}; it {INSIDE}"));
        assert_eq!(why(".global .align 8 .b8 nvshmemi_state"), format!("inside.ptx: nvshmemi_state {INSIDE}"));
        let elsewhere = "inside.ptx: other is defined in another module, and modules are not linked";
        assert_eq!(why(".global .align 8 .b8 other"), elsewhere);
    }

    /// A function of the toolkit that is inlined has the line of the user who calls it; a function of the user has its own.
    #[test]
    fn lines_are_those_of_the_user() {
        let text = |files: &str| {
            format!(
                ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func nvshmem_quiet;\n.visible .entry k() {{\n.loc 1 7 3\n\
                 .loc 2 40 5, function_name $n, inlined_at 1 7 3\ncall.uni nvshmem_quiet, ();\nret;\n}}\n{files}"
            )
        };
        let own = ("/opt/include/mine.cuh", "/opt/include/mine.cuh:40, inlined at k.cu:7");
        for (header, expected) in [("/opt/include/cuda/atomic", "k.cu:7"), own] {
            let text = text(&format!(".file 1 \"k.cu\"\n.file 2 \"{header}\"\n"));
            let code = Code::load(&Source::ptx(header, text), &[]).unwrap();
            let call = code.module.externals()[0].called_at.unwrap();
            assert_eq!(format!("{:#}", code.at(call)), expected);
        }
    }

    /// To find an error takes seconds, where a text is compiled: it is found once for all PEs and runs.
    #[test]
    fn what_does_not_load_is_known_then() {
        let source = Source::ptx("broken.ptx", ".version 8.0\n.target sm_90\n.address_size 64\nnonsense");
        let known = || LOADED.lock().unwrap().iter().filter(|(known, ..)| *known == source).count();
        let why = Code::load(&source, &[]).unwrap_err();
        assert!(why.0 == ErrorKind::InvalidArgument && why.1.starts_with("broken.ptx: "), "{why:?}");
        assert_eq!((Code::load(&source, &[]).unwrap_err(), known()), (why, 1));
    }
}
