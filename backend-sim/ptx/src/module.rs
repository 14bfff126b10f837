//! A module that was loaded: its kernels, variables and external functions.

use std::sync::Arc;

use crate::change::{self, Change};
use crate::decode;
use crate::error::Error;
use crate::op::Code;
use crate::parser;
use crate::source::Location;
use crate::types::Type;

/// A PTX text, parsed and decoded. Everything in it can be run: what is unknown was refused.
#[derive(Debug)]
pub struct Module {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) code: Vec<Code>,
    pub(crate) globals: Vec<Global>,
    pub(crate) shared: Vec<SharedVariable>,
    pub(crate) externals: Vec<External>,
    /// The image of the module's `.const` variables.
    pub(crate) constants: Vec<u8>,
    /// For each operation of each function its line in the PTX and its place in the source.
    pub(crate) places: Vec<(u32, Option<Arc<Location>>)>,
    /// Whether something looks at how many arrivals a phase of an mbarrier lacks.
    pub(crate) counts_arrivals: bool,
    pub(crate) version: (u32, u32),
}

/// A kernel: what a launch must give it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel {
    /// The name as the linker knows it.
    pub name: String,
    /// The parameters, in their order.
    pub parameters: Vec<Parameter>,
    /// Bytes of all parameters, with the gaps that alignment makes.
    pub parameter_bytes: u32,
    /// Bytes of shared memory that every block has, besides what a launch asks for.
    pub shared_bytes: u32,
    /// The alignment of the memory behind that, which the launch adds.
    pub(crate) dynamic_align: u32,
    /// At most so many threads a block may have (`.maxntid`).
    pub max_threads: Option<u32>,
    /// Exactly these dimensions a block must have (`.reqntid`).
    pub required_threads: Option<[u32; 3]>,
    /// The dimensions of the clusters that its blocks form (`.reqnctapercluster`, CUDA's `__cluster_dims__`).
    pub cluster: Option<[u32; 3]>,
    /// Whether it synchronizes the grid: then it must be launched cooperatively.
    pub uses_grid_sync: bool,
    /// Whether it makes bulk copies or reductions, which run beside its threads.
    pub makes_bulk_copies: bool,
    /// Whether its warp groups multiply matrices, beside their threads.
    pub(crate) multiplies_in_groups: bool,
    /// The external functions that it, or a function it calls, may call: indices into [`Module::externals`].
    pub calls: Vec<usize>,
    pub(crate) code: u16,
    /// The width of the narrowest access to shared memory: what shadow memory must distinguish.
    pub(crate) narrowest: u8,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// The name in the PTX.
    pub name: String,
    /// Where it begins among the bytes of all parameters.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// The alignment of its type.
    pub align: u32,
    /// Its type, or that of an array's elements.
    pub ty: Type,
}

/// A `.global` variable: memory of the device, made when the module is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Global {
    /// The name as the linker knows it.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// What its address must be a multiple of.
    pub align: u32,
    /// The bytes that it begins with; what is missing is zero.
    pub initial: Vec<u8>,
    /// Addresses within it: at this offset the address of another variable (an index into [`Module::globals`]) plus a number.
    pub addresses: Vec<(u64, usize, i64)>,
    /// Whether another module defines it.
    pub is_external: bool,
}

/// A variable in shared memory, for findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedVariable {
    pub(crate) name: String,
    /// The kernel that it belongs to; `None` for one of the module or of a function.
    pub(crate) kernel: Option<u16>,
    pub(crate) begin: u64,
    /// `None` for the array whose length a launch gives.
    pub(crate) end: Option<u64>,
}

/// A function that the module calls and does not define, such as one of NVSHMEM's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct External {
    /// The name as the linker knows it.
    pub name: String,
    /// Bytes of each parameter.
    pub parameters: Vec<u32>,
    /// Bytes of the result; 0 without one.
    pub result: u32,
    /// Who makes the call together, as the name says.
    pub group: Group,
    /// The line of the PTX that declares it.
    pub line: u32,
    /// The first call of it in the text.
    pub called_at: Option<Place>,
}

/// Which threads make a call together, with equal arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "NVSHMEM has these groups; one more is one more way to wait")]
pub enum Group {
    /// Each thread for itself.
    Thread,
    /// All threads of a warp: the names end in `_warp`.
    Warp,
    /// All threads of four warps: the names end in `_warpgroup`.
    Warpgroup,
    /// All threads of the block: the names end in `_block`. `nvshmemx_give_smem` and `nvshmemx_release_smem` are of this kind, too.
    Block,
}

/// Functions that all threads of the block call together, though their names do not say so.
const BY_ALL: [&str; 2] = ["nvshmemx_give_smem", "nvshmemx_release_smem"];

impl External {
    /// The name that it has in NVSHMEM's headers, if it is one of the functions of NVSHMEM4Py for Numba. They have names such as
    /// `_Z24nvshmemx_int32_put_block_nbst`, and pass all arguments by reference.
    ///
    /// ```
    /// let text = ".version 9.0 .target sm_90 .address_size 64
    ///     .extern .func (.param .b32 r) _ZL23nvshmemx_team_sync_warpi_nbst(.param .b64 a, .param .b64 b);
    ///     .visible .entry none() { ret; }";
    /// let module = onesided_ptx::Module::parse(text)?;
    /// assert_eq!(module.externals()[0].demangled(), Some("nvshmemx_team_sync_warp"));
    /// # Ok::<(), onesided_ptx::Error>(())
    /// ```
    pub fn demangled(&self) -> Option<&str> {
        demangled(&self.name)
    }
}

/// `_Z`, the length of the name, the name; of a static function `_ZL`, and behind the name the types of its parameters.
fn demangled(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("_Z")?.strip_suffix("_nbst")?;
    let (rest, is_static) = rest.strip_prefix('L').map_or((rest, false), |rest| (rest, true));
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = rest[..digits].parse().ok()?;
    // The length of one name is wrong (`_Z11nvshmemx_mc_ptr_nbst`), so it is used only where something follows the name.
    if is_static { rest[digits..].get(..length) } else { Some(&rest[digits..]) }
}

impl Group {
    /// The group whose threads call a function of NVSHMEM together.
    ///
    /// ```
    /// use onesided_ptx::Group;
    /// assert_eq!(Group::of("nvshmemx_int_put_warp"), Group::Warp);
    /// assert_eq!(Group::of("nvshmemx_give_smem"), Group::Block);
    /// ```
    pub fn of(name: &str) -> Self {
        let name = demangled(name).unwrap_or(name);
        if name.ends_with("_block") || BY_ALL.contains(&name) {
            Self::Block
        } else if name.ends_with("_warpgroup") {
            Self::Warpgroup
        } else if name.ends_with("_warp") {
            Self::Warp
        } else {
            Self::Thread
        }
    }
}

impl Module {
    /// Parses and decodes a PTX text.
    ///
    /// # Errors
    /// If the text is cut off, of a version newer than those known, or holds anything that cannot be run: an unknown opcode, modifier or
    /// directive. The error names the line of the PTX, and that of the source if the text was compiled with `-lineinfo`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        decode::module(&parser::parse(text)?)
    }

    /// The same, of a text that is changed first: for whoever looks for what repairs a kernel. `is_at`: whether the change of this number is to be
    /// made at a line of the PTX, and of the source if that is known.
    ///
    /// ```
    /// use onesided_ptx::{Beside, Change, DeviceCall, Module};
    /// let text = ".version 9.0 .target sm_90 .address_size 64
    ///     .visible .entry store(.param .u64 p) {
    ///         .reg .b64 %rd<2>;
    ///         ld.param.u64 %rd1, [p];
    ///         st.global.u64 [%rd1], 1;
    ///         ret;
    ///     }";
    /// let fence = Change::Insert(DeviceCall::Fence, Beside::Behind);
    /// let module = Module::parse_changed(text, &[fence], &|_, line, _| line == 5)?;
    /// assert_eq!(module.externals()[0].name, "nvshmem_fence");
    /// # Ok::<(), onesided_ptx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Module::parse`].
    pub fn parse_changed(
        text: &str,
        changes: &[Change],
        is_at: &dyn Fn(usize, u32, Option<&Location>) -> bool,
    ) -> Result<Self, Error> {
        let mut text = parser::parse(text)?;
        change::change(&mut text, changes, is_at);
        decode::module(&text)
    }

    /// The version of PTX: major and minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// All kernels, in the order of the text.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// All `.global` variables. A launch gives each an address.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// All functions that are declared and not defined.
    pub fn externals(&self) -> &[External] {
        &self.externals
    }

    /// The line of the PTX, and of the source if it is known, of a place that an access, a call or a fault names.
    pub fn place(&self, place: Place) -> (u32, Option<&Arc<Location>>) {
        self.places.get(place.0 as usize).map_or((0, None), |(line, location)| (*line, location.as_ref()))
    }

    /// What lies at an offset of a kernel's shared memory, such as `tile+16`; the offset alone where no variable is. `dynamic`: where dynamic shared memory
    /// begins.
    pub(crate) fn in_shared(&self, kernel: u16, at: u64, dynamic: u64) -> String {
        let is_there = |variable: &&SharedVariable| match variable.end {
            Some(end) => variable.begin <= at && at < end && variable.kernel.is_none_or(|of| of == kernel),
            None => dynamic <= at,
        };
        let place = |variable: &SharedVariable| {
            let begin = if variable.end.is_some() { variable.begin } else { dynamic };
            format!("{}+{}", crate::demangle::variable(&variable.name), at - begin)
        };
        self.shared.iter().find(is_there).map_or_else(|| format!("{at:#x}"), place)
    }

    /// Whether there is an access at a place that ends a loop which does nothing but look: see [`Block::ends_loop`](crate::Block::ends_loop).
    pub fn is_look(&self, place: Place) -> bool {
        let is_in = |code: &Code| place.0.checked_sub(code.first_place).is_some_and(|at| code.polls.contains_key(&at));
        self.code.iter().any(is_in)
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// How a place reads: `ring.cu:12`, or the line of the PTX if the source is not known.
    pub fn describe(&self, place: Place) -> String {
        match self.place(place) {
            (_, Some(location)) => location.of_the_user().to_string(),
            (line, None) => format!("PTX line {line}"),
        }
    }
}

/// The place of an instruction in its module: see [`Module::place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place(pub(crate) u32);

impl Place {
    /// Its number, below [`Module::places`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
