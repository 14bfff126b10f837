//! [`Issue::launch`]: a kernel as work on a stream, with its [`Grid`] and its [`Argument`]s.
//!
//! It is the only function of the crate that is unsafe to call, because types cannot check what a kernel does with its arguments.
#![expect(unsafe_code, reason = "a kernel is code that no type system has seen")]

use crate::at::At;
use crate::backend::{ArgumentValue, Backend, KernelInfo, LaunchRequest};
use crate::brand::Brand;
use crate::buffer::{Buf, RegisteredSymmetric, Slice};
use crate::call::Call;
use crate::count::count;
use crate::element::Element;
use crate::error::Result;
use crate::issue::Issue;
use crate::kernel::Kernel;
use crate::operand::Operand;
use crate::team::Team;
use crate::tensor::TensorMap;
use crate::{bf16, f16};

/// How many blocks of how many threads run a kernel, and how.
///
/// A kernel that waits for other PEs is launched with [`Grid::collective`], on every PE. Otherwise some of its blocks may begin
/// only after others have ended, and the wait never ends. A kernel that waits for other blocks of its own grid needs
/// [`Grid::cooperative`].
///
/// ```
/// use onesided::Grid;
/// let grid = Grid::new(4, (32, 8)).shared(1024).cooperative();
/// assert_eq!((grid.blocks, grid.threads), ([4, 1, 1], [32, 8, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who launches says all of it")]
pub struct Grid {
    /// Blocks in each dimension.
    pub blocks: [u32; 3],
    /// Threads of a block in each dimension.
    pub threads: [u32; 3],
    /// Bytes of shared memory of each block, besides what the kernel declares.
    pub shared: u32,
    /// Which blocks run at the same time.
    pub together: Together,
    /// The blocks of a cluster in each dimension, if the launch says it: see [`Grid::clusters`].
    pub cluster: Option<[u32; 3]>,
}

/// Which blocks of a launch are sure to run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a backend must launch in each way")]
pub enum Together {
    /// None: a block may begin only after others have ended. Such a kernel must not wait for other blocks or other PEs, unless all of
    /// its blocks fit on the GPU.
    #[default]
    Nothing,
    /// All of the grid: it can synchronize the grid (`cudaLaunchCooperativeKernel`).
    Grid,
    /// All of the grids of all PEs, which launch the kernel together: they can wait for each other (`nvshmemx_collective_launch`).
    AllPes,
}

/// Numbers in up to three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims([u32; 3]);

impl From<u32> for Dims {
    #[inline]
    fn from(x: u32) -> Dims {
        Dims([x, 1, 1])
    }
}

impl From<(u32, u32)> for Dims {
    #[inline]
    fn from((x, y): (u32, u32)) -> Dims {
        Dims([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Dims {
    #[inline]
    fn from((x, y, z): (u32, u32, u32)) -> Dims {
        Dims([x, y, z])
    }
}

impl Grid {
    /// So many blocks of so many threads each.
    pub fn new(blocks: impl Into<Dims>, threads: impl Into<Dims>) -> Grid {
        let (Dims(blocks), Dims(threads)) = (blocks.into(), threads.into());
        Grid { blocks, threads, shared: 0, together: Together::Nothing, cluster: None }
    }

    /// Each block has so many bytes of shared memory besides what the kernel declares.
    #[must_use]
    pub fn shared(self, bytes: u32) -> Grid {
        Grid { shared: bytes, ..self }
    }

    /// All blocks of the grid run at the same time.
    #[must_use]
    pub fn cooperative(self) -> Grid {
        Grid { together: Together::Grid, ..self }
    }

    /// All blocks of all PEs run at the same time: they can wait for each other. Every PE launches the same kernel on the same grid, in the same order of collectives.
    #[must_use]
    pub fn collective(self) -> Grid {
        Grid { together: Together::AllPes, ..self }
    }

    /// So many blocks form a cluster, whose blocks run at the same time and reach each other's shared memory: 1 to 8 in all, and in each dimension the
    /// grid has a multiple of them (`cudaLaunchKernelEx` with `cudaLaunchAttributeClusterDimension`; GPUs from sm_90 on). A kernel with
    /// `__cluster_dims__` has its clusters without this call, and can be launched with no others.
    ///
    /// ```
    /// use onesided::Grid;
    /// assert_eq!(Grid::new(4, 32).clusters(2).cluster, Some([2, 1, 1]));
    /// ```
    #[must_use]
    pub fn clusters(self, blocks: impl Into<Dims>) -> Grid {
        let Dims(blocks) = blocks.into();
        Grid { cluster: Some(blocks), ..self }
    }

    fn check(&self, call: Call) -> Result<()> {
        let threads = self.threads.iter().try_fold(1, |threads: u32, &n| threads.checked_mul(n));
        let [x, y, z] = self.threads;
        if threads.is_none_or(|threads| threads == 0 || threads > 1024) || z > 64 {
            return Err(
                call.refuse(format!("a block of {x} x {y} x {z} threads; it has 1 to 1024, and at most 64 in z"))
            );
        }
        let [x, y, z] = self.blocks;
        if self.blocks.contains(&0) || x > i32::MAX as u32 || y > 65_535 || z > 65_535 {
            let message =
                format!("a grid of {x} x {y} x {z} blocks; at least 1 and at most 2147483647 x 65535 x 65535");
            return Err(call.refuse(message));
        }
        Ok(())
    }

    /// Whether the clusters are those that the kernel was compiled for, if it was, and the grid can be divided into them.
    fn check_clusters(&self, call: Call, kernel: &KernelInfo) -> Result<()> {
        let Some(size) = self.cluster.or(kernel.cluster) else { return Ok(()) };
        let text = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
        let refuse = |why: String| Err(call.refuse(format!("{}: {why}", kernel.name)));
        if let Some(compiled) = kernel.cluster.filter(|compiled| *compiled != size) {
            let [size, compiled] = [size, compiled].map(text);
            return refuse(format!("clusters of {size} blocks; it was compiled for clusters of {compiled} blocks"));
        }
        let blocks = size.iter().fold(1, |blocks: u64, &n| blocks.saturating_mul(n.into()));
        if blocks == 0 || blocks > MOST_IN_CLUSTER {
            return refuse(format!("clusters of {} blocks; they have 1 to {MOST_IN_CLUSTER} in all", text(size)));
        }
        if (0..3).any(|axis| !self.blocks[axis].is_multiple_of(size[axis])) {
            let [blocks, size] = [self.blocks, size].map(text);
            return refuse(format!(
                "a grid of {blocks} blocks in clusters of {size}: in each dimension, it has a multiple of a cluster's blocks"
            ));
        }
        Ok(())
    }
}

/// Blocks of a cluster on every GPU that has clusters.
const MOST_IN_CLUSTER: u64 = 8;

/// An argument of a kernel. [`args!`](crate::args) makes a list of them.
///
/// | Rust | CUDA C++ |
/// |---|---|
/// | a number of an element type, `usize`, `bool` | the number of that size |
/// | a buffer by reference, a slice | a pointer to its first element on this PE |
/// | a team by reference | `nvshmem_team_t` |
/// | a [`TensorMap`] by reference | `const __grid_constant__ CUtensorMap` |
/// | [`Argument::structure`] | a structure of such values, by value |
/// | [`Argument::bytes`] | any other structure, by value |
#[derive(Clone, Debug)]
pub struct Argument {
    value: ArgumentValue,
    /// The value's size in bytes. Every launch needs it, so it is computed once.
    size: usize,
    brands: Brands,
}

/// The brands of the handles in an argument. Most arguments have at most one, so making them allocates nothing.
#[derive(Clone, Debug)]
enum Brands {
    None,
    One(Brand),
    Many(Vec<Brand>),
}

impl Brands {
    #[inline]
    fn all(&self) -> &[Brand] {
        match self {
            Brands::None => &[],
            Brands::One(brand) => std::slice::from_ref(brand),
            Brands::Many(brands) => brands,
        }
    }
}

impl Argument {
    /// A structure by value: its bytes, as C lays them out, and the alignment of its type (`alignof`). Its place in an
    /// [`Argument::structure`] depends on that.
    ///
    /// # Panics
    /// If no structure has this alignment: it is a power of two, and the size a multiple of it.
    ///
    /// ```
    /// // struct { float x, y; }
    /// let bytes: Vec<u8> = [1f32, 2f32].into_iter().flat_map(f32::to_ne_bytes).collect();
    /// let point = onesided::Argument::bytes(&bytes, 4);
    /// ```
    #[track_caller]
    pub fn bytes(bytes: &[u8], align: usize) -> Argument {
        assert!(
            align.is_power_of_two() && bytes.len().is_multiple_of(align),
            "no structure of {} has an alignment of {align}",
            count(bytes.len(), "byte")
        );
        Argument::plain(ArgumentValue::Bytes { bytes: bytes.into(), align })
    }

    /// A structure by value, with these fields, laid out as in C: each field at the next multiple of its alignment. That of a tensor
    /// map is 128 bytes, as `cuda.h` of CUDA 13 has it. CUDA 12 has 64: a structure that is compiled with that header, or declares the
    /// map itself, says `alignas(128)`.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// # let buf = pe.alloc::<f32>(4)?;
    /// // struct { float *data; int length; }
    /// let vector = onesided::Argument::structure(onesided::args![&buf, 4i32]);
    /// # pe.free(buf) });
    /// ```
    pub fn structure(fields: &[Argument]) -> Argument {
        let (mut at, mut align) = (0usize, 1);
        let mut laid = Vec::with_capacity(fields.len());
        for Argument { value, .. } in fields {
            at = at.next_multiple_of(value.align());
            align = align.max(value.align());
            laid.push((at, value.clone()));
            at += value.size();
        }
        let value = ArgumentValue::Structure { fields: laid, size: at.next_multiple_of(align) };
        let brands = fields.iter().flat_map(|field| field.brands.all().iter().copied()).collect();
        Argument::of(value, Brands::Many(brands))
    }

    /// The null pointer.
    pub fn null() -> Argument {
        Argument::plain(ArgumentValue::Bits { bits: 0, size: 8, ty: "null" })
    }

    /// Its value, for a backend.
    pub fn value(&self) -> &ArgumentValue {
        &self.value
    }

    #[inline]
    fn plain(value: ArgumentValue) -> Argument {
        Argument::of(value, Brands::None)
    }

    #[inline]
    fn of(value: ArgumentValue, brands: Brands) -> Argument {
        Argument { size: value.size(), value, brands }
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl From<$t> for Argument {
            #[inline]
            fn from(value: $t) -> Argument {
                let value = ArgumentValue::Bits { bits: value.to_bits64(), size: size_of::<$t>(), ty: stringify!($t) };
                Argument::plain(value)
            }
        }
    )*};
}
numbers!(i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);

impl From<usize> for Argument {
    #[inline]
    fn from(value: usize) -> Argument {
        Argument::plain(ArgumentValue::Bits { bits: value as u64, size: 8, ty: "usize" })
    }
}

impl From<bool> for Argument {
    #[inline]
    fn from(value: bool) -> Argument {
        Argument::plain(ArgumentValue::Bits { bits: value.into(), size: 1, ty: "bool" })
    }
}

impl<T: Element, K> From<&Buf<T, K>> for Argument {
    #[inline]
    fn from(buf: &Buf<T, K>) -> Argument {
        Argument::of(ArgumentValue::Memory(buf.span()), Brands::One(buf.brand))
    }
}

impl<T: Element, K> From<Slice<'_, T, K>> for Argument {
    #[inline]
    fn from(slice: Slice<'_, T, K>) -> Argument {
        Argument::of(ArgumentValue::Memory(slice.span()), Brands::One(slice.brand))
    }
}

impl<T: Element> From<&RegisteredSymmetric<T>> for Argument {
    #[inline]
    fn from(buf: &RegisteredSymmetric<T>) -> Argument {
        Argument::of(ArgumentValue::Memory(buf.span()), Brands::One(buf.brand()))
    }
}

impl From<&Team> for Argument {
    #[inline]
    fn from(team: &Team) -> Argument {
        Argument::of(ArgumentValue::Team(team.id()), Brands::One(team.brand()))
    }
}

impl From<&TensorMap> for Argument {
    fn from(map: &TensorMap) -> Argument {
        Argument::of(ArgumentValue::Tensor(Box::new(map.tensor().clone())), Brands::One(map.brand()))
    }
}

/// The arguments of a kernel, for [`Issue::launch`](crate::Issue::launch): each is anything that an
/// [`Argument`](crate::Argument) can be made from.
///
/// ```
/// # onesided_sim::example(1, |pe| {
/// # let buf = pe.alloc::<f32>(4)?;
/// let arguments: &[onesided::Argument] = onesided::args![&buf, buf.slice(2..), 4u32, 0.5f32];
/// # pe.free(buf) });
/// ```
#[macro_export]
macro_rules! args {
    ($($argument:expr),* $(,)?) => { &[$($crate::Argument::from($argument)),*] };
}

/// # Kernels
impl<B: Backend> Issue<'_, B> {
    /// Enqueues a kernel: it begins when everything before it on the stream has ended, and the stream goes on when all of its blocks have
    /// ended (`cuLaunchKernel`, `cuLaunchCooperativeKernel`, `nvshmemx_collective_launch`).
    ///
    /// Kernels issue in a scope of their own. Fences, quiets and barriers of kernels order and complete what kernels issued.
    /// Quiets and barriers on a stream do so too, if they come after the kernel. Those of the host do not.
    ///
    /// # Collective
    /// Over all PEs if the grid is [collective](Grid::collective), otherwise local.
    ///
    /// # Safety
    /// The arguments must have the types of the kernel's parameters: only their number and sizes are checked. The kernel may
    /// access only the memory of its arguments, its own memory, and what NVSHMEM's device functions reach. This memory must not
    /// be freed, and teams among the arguments must not be destroyed, before the kernel has ended. (The simulator checks the
    /// accesses, so a mistake is a finding there.)
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for arguments of another number or size than the kernel's, a
    /// kernel or a handle of another PE or of an earlier run, a grid or blocks that are too large, too much shared memory,
    /// [clusters](Grid::clusters) that the grid or the kernel cannot have, a
    /// grid that must fit on the GPU at once and does not, or a call on the host: kernels are launched on streams.
    /// [`Unsupported`](crate::ErrorKind::Unsupported) beyond a limit of the simulator that GPUs do not have. A fault inside the
    /// kernel is no error of this call. On GPUs the call that synchronizes with the stream returns it. In the simulator it ends
    /// the run with a verdict.
    ///
    /// NVSHMEM documentation, "Kernel Launch Routines".
    ///
    /// ```no_run
    /// # use onesided::{Grid, Source, args};
    /// # onesided_sim::example(2, |pe| {
    /// let word = pe.alloc_zeroed::<i32>(1)?;
    /// let text = "extern \"C\" __global__ void set(int *word, int value) { *word = value; }";
    /// let module = pe.module(&Source::cuda("set.cu", text))?;
    /// let stream = pe.stream()?;
    /// // SAFETY: the kernel takes a pointer and a number, and writes one word.
    /// unsafe { pe.on(&stream).launch(&module.kernel("set")?, &Grid::new(1, 1), args![&word, 7i32])? };
    /// pe.synchronize(&stream)?;
    /// assert_eq!(pe.read_one(&word)?, 7);
    /// # pe.free(word) });
    /// ```
    #[track_caller]
    pub unsafe fn launch(&self, kernel: &Kernel<'_, B>, grid: &Grid, arguments: &[Argument]) -> Result<()> {
        let call = self.call("launch", At::caller());
        call.own(kernel.brand, "kernel", "a kernel of a module")?;
        grid.check(call)?;
        grid.check_clusters(call, kernel.info)?;
        let parameters = &kernel.info.parameters;
        if parameters.len() != arguments.len() {
            let (takes, given) = (count(parameters.len(), "argument"), arguments.len());
            return Err(call.refuse(format!("{} takes {takes}, not {given}", kernel.info.name)));
        }
        for (i, (argument, parameter)) in arguments.iter().zip(parameters).enumerate() {
            for &brand in argument.brands.all() {
                call.own(brand, "an argument", "a handle")?;
            }
            let size = argument.size;
            if size != parameter.size {
                let Parameter { size: wanted, .. } = *parameter;
                let (what, size) = (argument.value.describe(), count(size, "byte"));
                let name = &kernel.info.name;
                return Err(
                    call.refuse(format!("argument {i} of {name} is {what}, of {size}; the parameter has {wanted}"))
                );
            }
        }
        let request =
            LaunchRequest { module: kernel.module, kernel: kernel.index, name: &kernel.info.name, grid, arguments };
        self.launch_on_stream(&request, call)
    }

    fn launch_on_stream(&self, request: &LaunchRequest<'_, B::Module>, call: Call) -> Result<()> {
        let Some(stream) = self.stream() else {
            return Err(call.refuse("a kernel is launched on a stream: pe.on(&stream).launch(…)"));
        };
        self.pe.backend.launch(request, call.stream(stream)?, call.at)
    }
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a backend that loads kernels says both")]
pub struct Parameter {
    /// Bytes.
    pub size: usize,
    /// Alignment of its type.
    pub align: usize,
}
