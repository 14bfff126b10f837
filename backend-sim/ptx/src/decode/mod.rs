//! From syntax to operations: names become numbers, and what is unknown is refused.

mod again;
mod anew;
mod arithmetic;
mod asks;
mod asynchronous;
mod awaits;
mod ballots;
mod besides;
mod builder;
mod control;
mod decides;
mod fetches;
mod floats;
mod form;
mod fragment;
mod group;
mod known;
mod layout;
mod looks;
mod matrix;
mod memory;
mod moves;
mod multi;
mod polls;
mod registers;
mod rounds;
mod simpler;
mod sync;
mod tensor;
mod text;
mod together;
mod twice;
mod unused;
mod values;
mod video;
mod votes;
mod wide;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::asks::Asks;
use self::polls::Poll;
use self::simpler::{Part, Simpler};
use crate::error::Error;
use crate::module::{External, Group, Kernel, Module, Parameter, Place, SharedVariable};
use crate::op::Callee;
use crate::source::Location;
use crate::syntax::{Function, Text};

/// The address windows of the spaces that have one, for generic addresses. Below them is global memory.
pub(crate) mod window {
    pub(crate) const SHARED: u64 = 1 << 56;
    pub(crate) const LOCAL: u64 = 2 << 56;
    pub(crate) const CONST: u64 = 3 << 56;
    pub(crate) const PARAM: u64 = 4 << 56;
}

/// What a name of the module stands for.
#[derive(Clone, Copy, Debug)]
enum Symbol {
    Global(u16),
    Const(u64),
    Shared(u64),
    /// The array whose length a launch gives: it begins behind all others.
    SharedDynamic,
}

/// The names of a module.
#[derive(Debug, Default)]
struct Names<'a> {
    symbols: BTreeMap<&'a str, Symbol>,
    callees: BTreeMap<&'a str, Callee>,
    /// Parameters and result of every function: their bytes.
    signatures: BTreeMap<&'a str, (Vec<u64>, u64)>,
    locations: Vec<Arc<Location>>,
    /// Bytes of the module's own shared variables.
    shared: u64,
    /// What the shared memory that a launch gives begins at a multiple of.
    dynamic_align: u32,
    shared_variables: Vec<SharedVariable>,
}

/// What decoding a function found, besides its code.
#[derive(Debug, Default)]
struct Found {
    calls: BTreeSet<u16>,
    /// With the first call of each.
    externals: BTreeMap<u16, Place>,
    shared: u64,
    /// Bytes of the shared variables that it declares, and where those of the module begin that it names.
    own_shared: u64,
    named_shared: BTreeSet<u64>,
    grid_sync: bool,
    /// It makes bulk copies.
    copies: bool,
    /// It looks at how many arrivals a phase of an mbarrier lacks.
    counts_arrivals: bool,
    /// It multiplies matrices in warp groups.
    multiplies: bool,
    narrowest: u8,
    shared_variables: Vec<SharedVariable>,
}

/// The loops of a function that are waits, and the atomics that only ask something.
struct Waits<'a> {
    polls: BTreeMap<Part, Poll<'a>>,
    awaits: BTreeSet<usize>,
    asks: BTreeMap<usize, Asks>,
}

pub(crate) fn module(text: &Text<'_>) -> Result<Module, Error> {
    let mut names = Names { locations: text.sources.resolve(), ..Names::default() };
    let (globals, constants) = layout::variables(text, &mut names)?;
    let mut externals = functions(text, &mut names)?;

    let mut places = Vec::new();
    let (mut code, mut found) = (Vec::new(), Vec::new());
    let bodies: Vec<&Function<'_>> = text.functions.iter().filter(|function| function.body.is_some()).collect();
    let (bases, kernels_base) = layout::shared_bases(&bodies, names.shared)?;
    let mut shared = names.shared_variables.clone();
    let defined: BTreeSet<&str> = bodies.iter().map(|function| function.name).collect();
    let simpler: Vec<Simpler<'_>> = bodies.iter().map(|function| Simpler::of(function, &defined)).collect();
    let texts: Vec<text::Text<'_>> =
        bodies.iter().zip(&simpler).map(|(function, simpler)| text::Text::of(function, simpler)).collect();
    let asks: Vec<_> = texts.iter().zip(&bodies).map(|(text, function)| asks::of(text, function)).collect();
    let waits = texts.iter().zip(polls::of_all(&texts)).zip(asks);
    let waits = waits.map(|((text, polls), asks)| Waits { polls, awaits: awaits::of(text), asks });
    for (((function, waits), base), index) in bodies.iter().zip(waits).zip(bases).zip(0..) {
        let base = if function.is_entry { kernels_base } else { base };
        let (decoded, mut facts) = builder::function(&names, function, (base, waits), &mut places)?;
        let of_kernel = function.is_entry.then_some(index);
        shared.extend(facts.shared_variables.drain(..).map(|one| SharedVariable { kernel: of_kernel, ..one }));
        code.push(decoded);
        found.push(facts);
    }

    for (&index, &place) in found.iter().flat_map(|facts| &facts.externals) {
        externals[usize::from(index)].called_at.get_or_insert(place);
    }

    let mut kernels: Vec<Kernel> = Vec::new();
    for (index, function) in bodies.iter().enumerate().filter(|(_, function)| function.is_entry) {
        let kernel = kernel(function, index, &found, (&names, text.version))?;
        if kernels.iter().any(|other| other.name == kernel.name) {
            return Err(Error::new(function.line, format!("the kernel {} is defined twice", function.name)));
        }
        kernels.push(kernel);
    }
    let counts_arrivals = found.iter().any(|facts| facts.counts_arrivals);
    let version = text.version;
    Ok(Module { kernels, code, globals, shared, externals, constants, places, counts_arrivals, version })
}

/// Gives every function a number. Those without a body are external.
fn functions<'a>(text: &Text<'a>, names: &mut Names<'a>) -> Result<Vec<External>, Error> {
    let mut externals: Vec<External> = Vec::new();
    let mut bodies = 0_u16;
    for function in &text.functions {
        let sizes = |variable: &crate::syntax::Variable<'_>| variable.size.unwrap_or(0);
        let parameters: Vec<u64> = function.parameters.iter().map(sizes).collect();
        let result = function.result.as_ref().map_or(0, sizes);
        let signature = (parameters, result);
        if names.signatures.get(function.name).is_some_and(|other| *other != signature) {
            let message = format!(
                "the function {} is declared elsewhere with parameters or a result of other sizes",
                function.name
            );
            return Err(Error::new(function.line, message));
        }
        names.signatures.insert(function.name, signature);
        if function.body.is_some() {
            let callee = Callee::Function(bodies);
            bodies = bodies.checked_add(1).ok_or_else(|| Error::new(function.line, "more than 65535 functions"))?;
            if let Some(Callee::Function(_)) = names.callees.insert(function.name, callee) {
                return Err(Error::new(function.line, format!("the function {} is defined twice", function.name)));
            }
        }
    }
    for function in text.functions.iter().filter(|function| function.body.is_none()) {
        if names.callees.contains_key(function.name) {
            continue; // declared before it is defined
        }
        if !function.is_external {
            return Err(Error::new(
                function.line,
                format!("{} is declared, and neither defined nor external", function.name),
            ));
        }
        let callee = match function.name {
            "vprintf" => Callee::Print,
            "__assertfail" => Callee::AssertFail,
            name => {
                let index =
                    u16::try_from(externals.len()).map_err(|_| Error::new(function.line, "too many functions"))?;
                let (parameters, result) = &names.signatures[name];
                externals.push(External {
                    name: name.to_owned(),
                    parameters: parameters.iter().map(|&size| u32::try_from(size).unwrap_or(u32::MAX)).collect(),
                    result: u32::try_from(*result).unwrap_or(u32::MAX),
                    group: Group::of(name),
                    line: function.line,
                    called_at: None,
                });
                Callee::External(index)
            }
        };
        names.callees.insert(function.name, callee);
    }
    Ok(externals)
}

fn kernel(
    function: &Function<'_>,
    index: usize,
    found: &[Found],
    (names, version): (&Names<'_>, (u32, u32)),
) -> Result<Kernel, Error> {
    let line = function.line;
    let (slots, parameter_bytes) = layout::parameters(&function.parameters)?;
    layout::check_parameters(function, parameter_bytes, version)?;
    let parameters = slots
        .iter()
        .zip(&function.parameters)
        .map(|(slot, parameter)| Parameter {
            name: parameter.name.to_owned(),
            offset: slot.offset,
            size: slot.size,
            align: parameter.align,
            ty: parameter.ty,
        })
        .collect();

    // Everything that the functions use that it may come to.
    let (mut reached, mut todo) = (BTreeSet::new(), vec![index]);
    while let Some(next) = todo.pop() {
        if reached.insert(next) {
            todo.extend(found[next].calls.iter().map(|&callee| usize::from(callee)));
        }
    }
    let used = || reached.iter().map(|&function| &found[function]);
    let shared = used().map(|facts| facts.shared).max().unwrap_or(0);
    layout::check_shared(function, &names.shared_variables, used())?;
    let calls: BTreeSet<usize> =
        used().flat_map(|facts| facts.externals.keys()).map(|&external| external.into()).collect();
    Ok(Kernel {
        name: function.name.to_owned(),
        parameters,
        parameter_bytes,
        dynamic_align: names.dynamic_align.max(16),
        shared_bytes: u32::try_from(shared).map_err(|_| Error::new(line, "more than 4 GiB of shared memory"))?,
        max_threads: function.max_threads.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)),
        required_threads: function.required_threads,
        cluster: function.cluster,
        uses_grid_sync: used().any(|facts| facts.grid_sync),
        makes_bulk_copies: used().any(|facts| facts.copies),
        multiplies_in_groups: used().any(|facts| facts.multiplies),
        calls: calls.into_iter().collect(),
        code: u16::try_from(index).map_err(|_| Error::new(line, "too many functions"))?,
        narrowest: used().map(|facts| facts.narrowest).min().unwrap_or(4).min(4),
    })
}
