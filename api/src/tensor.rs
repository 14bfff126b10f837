//! [`TensorLayout`] and [`TensorMap`]: tensors in memory, of which a kernel copies tiles by single instructions (the Tensor Memory Accelerator of Hopper).

use crate::at::At;
use crate::backend::Tensor;
use crate::brand::Brand;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::operand::Own;

/// The most dimensions.
const DIMENSIONS: usize = 5;

/// How a tensor lies in memory, and its tiles: what `cuTensorMapEncodeTiled` is given besides the memory. [`map`](Self::map) makes a
/// [`TensorMap`] of it, and finds what is wrong.
///
/// The innermost dimension comes first, as CUDA has it: a matrix in rows has its columns first. Its elements lie one behind the other.
///
/// | CUDA | here |
/// |---|---|
/// | `globalDim`, `boxDim` | `sizes`, `tile`, in elements |
/// | `globalStrides` | [`strides`](Self::strides), in bytes; otherwise everything lies without gaps |
/// | `elementStrides` | [`steps`](Self::steps); otherwise 1 |
/// | `swizzle`, `oobFill` | [`swizzle`](Self::swizzle), [`fill`](Self::fill) |
/// | `interleave`, `l2Promotion` | always none |
///
/// ```
/// # onesided_sim::example(1, |pe| {
/// use onesided::{Swizzle, TensorLayout};
///
/// // A matrix of 100 rows, each of 60 columns and 4 of padding, and tiles of 32 × 8 of it: 32 columns of 4 bytes are 128 bytes.
/// let matrix = pe.alloc::<f32>(100 * 64)?;
/// let layout = TensorLayout::new(&[60, 100], &[32, 8]).strides(&[64 * 4]).swizzle(Swizzle::Bytes128);
/// let map = layout.map(&matrix)?;
/// assert_eq!(map.tile_bytes(), 32 * 8 * 4);
/// # pe.free(matrix) });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    sizes: Vec<usize>,
    tile: Vec<usize>,
    strides: Option<Vec<usize>>,
    steps: Option<Vec<usize>>,
    swizzle: Swizzle,
    fill: Fill,
}

/// How units of 16 bytes of a tile change places in shared memory, so that columns of it lie in different banks: by the row of 128 bytes
/// in which they lie. Products of warp groups (`wgmma`) and threads that know the pattern read it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a backend must copy in each way")]
pub enum Swizzle {
    /// They do not.
    #[default]
    None,
    /// Among 32 bytes.
    Bytes32,
    /// Among 64 bytes.
    Bytes64,
    /// Among 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// Among how many bytes; 0 if they keep their places.
    ///
    /// ```
    /// assert_eq!(onesided::Swizzle::Bytes64.bytes(), 64);
    /// ```
    pub const fn bytes(self) -> usize {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }
}

/// What a load finds outside of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a backend must fill in each way")]
pub enum Fill {
    /// Zeros.
    #[default]
    Zeros,
    /// A value that is no number, of floating-point elements.
    NaN,
}

impl TensorLayout {
    /// A tensor of so many elements in each dimension, and tiles of so many: 1 to 5 dimensions, the innermost first. Everything lies
    /// without gaps, until [`strides`](Self::strides) says otherwise.
    ///
    /// GPUs copy rows in units of 16 bytes. So the first coordinate of a tile is a multiple of that, and a store overwrites what lies behind the end of
    /// a row in its last unit. So rows that are stored to have room for whole units, also the last one.
    ///
    /// ```
    /// # use onesided::TensorLayout;
    /// // 10 matrices of 128 rows of 64, in tiles of 16 rows.
    /// let layout = TensorLayout::new(&[64, 128, 10], &[64, 16, 1]);
    /// ```
    pub fn new(sizes: &[usize], tile: &[usize]) -> TensorLayout {
        let (strides, steps, swizzle, fill) = (None, None, Swizzle::None, Fill::Zeros);
        TensorLayout { sizes: sizes.into(), tile: tile.into(), strides, steps, swizzle, fill }
    }

    /// So many bytes from an element to the next in each dimension but the first.
    ///
    /// ```
    /// # use onesided::TensorLayout;
    /// // Rows of 60 numbers of 4 bytes, every 256 bytes.
    /// let layout = TensorLayout::new(&[60, 100], &[32, 8]).strides(&[256]);
    /// ```
    #[must_use]
    pub fn strides(self, bytes: &[usize]) -> TensorLayout {
        TensorLayout { strides: Some(bytes.into()), ..self }
    }

    /// Only each so many elements of a tile are copied, in each dimension; in the first, all are. A tile of 8 rows in steps of 2 has 4
    /// rows in shared memory.
    ///
    /// ```
    /// # use onesided::TensorLayout;
    /// let layout = TensorLayout::new(&[64, 100], &[32, 8]).steps(&[1, 2]);
    /// ```
    #[must_use]
    pub fn steps(self, elements: &[usize]) -> TensorLayout {
        TensorLayout { steps: Some(elements.into()), ..self }
    }

    /// Units of 16 bytes change places in shared memory.
    ///
    /// The pattern is one of addresses, and begins anew every 1024 bytes of shared memory at the latest: a tile that begins there lies as the
    /// pattern does. The rows of a tile have at most as many bytes as the swizzle, and take all of these.
    ///
    /// ```
    /// # use onesided::{Swizzle, TensorLayout};
    /// let layout = TensorLayout::new(&[64, 100], &[32, 8]).swizzle(Swizzle::Bytes128);
    /// ```
    #[must_use]
    pub fn swizzle(self, swizzle: Swizzle) -> TensorLayout {
        TensorLayout { swizzle, ..self }
    }

    /// What a load finds outside of the tensor.
    ///
    /// ```
    /// # use onesided::{Fill, TensorLayout};
    /// let layout = TensorLayout::new(&[64, 100], &[32, 8]).fill(Fill::NaN);
    /// ```
    #[must_use]
    pub fn fill(self, fill: Fill) -> TensorLayout {
        TensorLayout { fill, ..self }
    }

    /// The tensor in memory of this PE, as an argument of kernels: see [`TensorMap`]. Elements are of the memory's type. The tensor begins with
    /// the first of them, and need not have all.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for what `cuTensorMapEncodeTiled` refuses: other than 1 to 5 dimensions; a size of 0, or above
    /// 2<sup>32</sup>; memory or strides at no multiple of 16 bytes, or strides from 2<sup>40</sup> bytes on; a tile of 0 or more than
    /// 256 elements in a dimension, whose rows have no multiple of 16 bytes, or more bytes than the swizzle; steps of 0 or more than 8; NaN for
    /// integers. And for a tensor that reaches beyond the memory.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// # use onesided::TensorLayout;
    /// let matrix = pe.alloc::<u8>(100 * 100)?;
    /// let error = TensorLayout::new(&[100, 100], &[16, 16]).map(&matrix).unwrap_err();
    /// assert!(error.message().contains("multiple of 16")); // of rows, which are 100 bytes apart
    /// # pe.free(matrix) });
    /// ```
    #[track_caller]
    pub fn map<T: Element>(&self, memory: impl Own<T>) -> Result<TensorMap> {
        let at = At::caller();
        let wrong = |message| Error::invalid("map", message, at);
        let (memory, brand) = (memory.span(), memory.brand());
        let strides = self.check(T::DTYPE.size()).map_err(wrong)?;
        if self.fill == Fill::NaN && !T::DTYPE.is_float() {
            return Err(wrong(format!("fill is NaN, and elements are {}; integers are filled with zeros", T::DTYPE)));
        }
        if !memory.start.is_multiple_of(16) {
            let start = memory.start;
            return Err(wrong(format!(
                "memory begins at byte {start} of its allocation; a tensor begins at a multiple of 16"
            )));
        }
        let last = |(size, stride): (&usize, &usize)| (*size as u128 - 1) * *stride as u128;
        let end =
            self.sizes[1..].iter().zip(&strides).map(last).sum::<u128>() + (self.sizes[0] * T::DTYPE.size()) as u128;
        if end > memory.len as u128 {
            return Err(wrong(format!(
                "the tensor has {end} bytes from its first to its last, and memory has {}",
                memory.len
            )));
        }
        let [sizes, strides] = [&self.sizes, &strides].map(|all| all.iter().map(|&one| one as u64).collect());
        let one = vec![1; self.sizes.len()];
        let [tile, steps] =
            [&self.tile, self.steps.as_ref().unwrap_or(&one)].map(|all| all.iter().map(|&one| one as u32).collect());
        let (swizzle, fill) = (self.swizzle, self.fill);
        let tensor = Tensor { memory, dtype: T::DTYPE, sizes, strides, tile, steps, swizzle, fill };
        Ok(TensorMap { tensor, brand })
    }

    /// The strides, if all numbers are right for elements of so many bytes. Otherwise what is wrong.
    fn check(&self, size: usize) -> Result<Vec<usize>, String> {
        let TensorLayout { sizes, tile, strides, steps, swizzle, .. } = self;
        let rank = sizes.len();
        if !(1..=DIMENSIONS).contains(&rank) {
            return Err(format!("sizes has {rank} dimensions; a tensor has 1 to 5"));
        }
        let as_many = |name: &str, count: usize, right: usize, why: &str| match count == right {
            true => Ok(()),
            false => Err(format!("{name} has {count} numbers; a tensor of {rank} dimensions has {right}{why}")),
        };
        let between = |name: &str, numbers: &[usize], most: usize| match numbers
            .iter()
            .position(|&n| n == 0 || n > most)
        {
            None => Ok(()),
            Some(which) => Err(format!("{name}[{which}] is {}; it is at least 1 and at most {most}", numbers[which])),
        };
        as_many("tile", tile.len(), rank, "")?;
        between("sizes", sizes, 1 << 32)?;
        between("tile", tile, 256)?;
        if let Some(steps) = steps {
            as_many("steps", steps.len(), rank, "")?;
            between("steps", steps, 8)?;
            if steps[0] != 1 {
                return Err(format!(
                    "steps[0] is {}; in the first dimension all elements are copied, in steps of 1",
                    steps[0]
                ));
            }
        }
        let row = tile[0] * size;
        if !row.is_multiple_of(16) {
            let each = 16 / size;
            return Err(format!(
                "tile[0] is {}, of elements of {size} bytes; it is a multiple of {each}, so that a row has one of 16 bytes",
                tile[0]
            ));
        }
        if *swizzle != Swizzle::None && row > swizzle.bytes() {
            let most = swizzle.bytes();
            return Err(format!(
                "tile[0] is {}, of elements of {size} bytes; with a swizzle of {most} bytes it is at most {}",
                tile[0],
                most / size
            ));
        }
        let strides = match strides {
            Some(strides) => strides.clone(),
            None => {
                let ends = sizes.iter().scan(size, |end, size| {
                    *end = end.saturating_mul(*size);
                    Some(*end)
                });
                ends.take(rank - 1).collect()
            }
        };
        as_many("strides", strides.len(), rank - 1, ": one for each but the first")?;
        match strides.iter().position(|stride| !stride.is_multiple_of(16) || *stride >= 1 << 40) {
            None => Ok(strides),
            Some(which) => {
                let way = match self.strides {
                    Some(_) => "",
                    None => "; if the memory has gaps, say so with strides",
                };
                let stride = strides[which];
                Err(format!(
                    "strides[{which}] is {stride} bytes; it is a multiple of 16 and less than 1099511627776{way}"
                ))
            }
        }
    }
}

/// A tensor in memory of a PE, as a kernel is given it: [`args!`](crate::args) takes it by reference. [`TensorLayout::map`] makes it.
///
/// The kernel has it as `const __grid_constant__ CUtensorMap map`, and copies tiles by `cp.async.bulk.tensor`. `cuda.h` declares
/// the type. NVRTC cannot read that file; any structure of 128 bytes that is aligned to 64 will do. What the bytes are is a secret of the driver, and
/// of the simulator.
///
/// ```
/// # onesided_sim::example(1, |pe| {
/// use onesided::{Grid, Source, TensorLayout, args};
///
/// let matrix = pe.alloc_zeroed::<i32>(16 * 16)?;
/// let map = TensorLayout::new(&[16, 16], &[8, 4]).map(&matrix)?;
/// # let text = onesided_sim::FILL_TILE_PTX;
/// let module = pe.module(&Source::ptx("fill.ptx", text))?;
/// let stream = pe.stream()?;
/// // SAFETY: the kernel takes a tensor map, two coordinates and a value, and fills the tile of 8 × 4 that begins there.
/// unsafe { pe.on(&stream).launch(&module.kernel("fill")?, &Grid::new(1, 1), args![&map, 8i32, 2i32, 7i32])? };
/// pe.synchronize(&stream)?;
/// let values = pe.read(&matrix)?;
/// assert_eq!((values[2 * 16 + 7], values[2 * 16 + 8], values[5 * 16 + 15]), (0, 7, 7));
/// # pe.free(matrix) });
/// ```
#[derive(Clone, Debug)]
pub struct TensorMap {
    tensor: Tensor,
    brand: Brand,
}

impl TensorMap {
    /// The bytes of a tile that one instruction copies, also of its part outside of the tensor: what an mbarrier counts.
    pub fn tile_bytes(&self) -> usize {
        self.tensor.tile_bytes()
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    pub(crate) fn brand(&self) -> Brand {
        self.brand
    }
}
