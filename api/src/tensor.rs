//! [`TensorLayout`] and [`TensorMap`]: tensors in memory. A kernel copies a tile of a tensor by one instruction (the Tensor
//! Memory Accelerator of Hopper).

use crate::at::At;
use crate::backend::Tensor;
use crate::brand::Brand;
use crate::count::count;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::operand::Own;

/// The largest number of dimensions.
const DIMENSIONS: usize = 5;

/// The layout of a tensor in memory, and of its tiles: the arguments of `cuTensorMapEncodeTiled` except the memory.
/// [`map`](Self::map) checks the layout and makes a [`TensorMap`] of it.
///
/// The innermost dimension comes first, as in CUDA: for a matrix in rows, the number of columns. Its elements are adjacent in
/// memory.
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

/// How units of 16 bytes of a tile are permuted in shared memory, so that the elements of a column lie in different banks. The
/// permutation of a unit depends on the row of 128 bytes in which it lies. Products of warp groups (`wgmma`), and threads that
/// know the pattern, read such tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a backend must copy in each way")]
pub enum Swizzle {
    /// They are not permuted.
    #[default]
    None,
    /// They are permuted within 32 bytes.
    Bytes32,
    /// They are permuted within 64 bytes.
    Bytes64,
    /// They are permuted within 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// The bytes within which units are permuted; 0 if they are not.
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
    /// NaN. Only for elements of a floating-point type.
    NaN,
}

impl TensorLayout {
    /// A tensor with `sizes` elements in each dimension, and tiles with `tile` elements: 1 to 5 dimensions, the innermost
    /// first. The tensor has no gaps, unless [`strides`](Self::strides) are set.
    ///
    /// GPUs copy rows in units of 16 bytes. So the first coordinate of a tile must be at a multiple of 16 bytes. A store also
    /// overwrites the bytes between the end of a row and the end of the row's last unit. So each row that is stored to must
    /// have room for whole units. This includes the last row.
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

    /// Sets the distance from one element to the next, in bytes, for each dimension but the first.
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

    /// Copies only every n-th element of a tile, with one n for each dimension. The first must be 1. A tile of 8 rows with a
    /// step of 2 has 4 rows in shared memory.
    ///
    /// ```
    /// # use onesided::TensorLayout;
    /// let layout = TensorLayout::new(&[64, 100], &[32, 8]).steps(&[1, 2]);
    /// ```
    #[must_use]
    pub fn steps(self, elements: &[usize]) -> TensorLayout {
        TensorLayout { steps: Some(elements.into()), ..self }
    }

    /// Permutes units of 16 bytes in shared memory.
    ///
    /// The pattern depends on the address in shared memory, and repeats after at most 1024 bytes. So a tile that begins at a
    /// multiple of 1024 begins with the pattern. A row of a tile must not have more bytes than the swizzle. In shared memory
    /// each row takes as many bytes as the swizzle.
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

    /// Makes an argument of kernels of this layout and memory of this PE: see [`TensorMap`]. The tensor has the memory's
    /// element type, and begins at the memory's first element. It may end before the memory does.
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
                "the tensor has {} from its first to its last, and memory has {}",
                count(end, "byte"),
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

    /// The strides, if the layout is valid for elements of `size` bytes. Otherwise a sentence that says what is wrong.
    fn check(&self, size: usize) -> Result<Vec<usize>, String> {
        let TensorLayout { sizes, tile, strides, steps, swizzle, .. } = self;
        let rank = sizes.len();
        if !(1..=DIMENSIONS).contains(&rank) {
            return Err(format!("sizes has {}; a tensor has 1 to 5", count(rank, "dimension")));
        }
        let dimensions = count(rank, "dimension");
        let as_many = |name: &str, given: usize, right: usize, why: &str| match given == right {
            true => Ok(()),
            false => Err(format!("{name} has {}; a tensor of {dimensions} has {right}{why}", count(given, "number"))),
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
        let (row, bytes) = (tile[0] * size, count(size, "byte"));
        if !row.is_multiple_of(16) {
            let each = 16 / size;
            return Err(format!(
                "tile[0] is {}, of elements of {bytes}; it is a multiple of {each}, so that a row has one of 16 bytes",
                tile[0]
            ));
        }
        if *swizzle != Swizzle::None && row > swizzle.bytes() {
            let most = swizzle.bytes();
            return Err(format!(
                "tile[0] is {}, of elements of {bytes}; with a swizzle of {most} bytes it is at most {}",
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
                let stride = count(strides[which], "byte");
                Err(format!("strides[{which}] is {stride}; it is a multiple of 16 and less than 1099511627776{way}"))
            }
        }
    }
}

/// A tensor in memory of a PE, as an argument of a kernel: [`args!`](crate::args) takes it by reference. [`TensorLayout::map`]
/// makes it.
///
/// The kernel declares the parameter as `const __grid_constant__ CUtensorMap map`, and copies tiles by `cp.async.bulk.tensor`.
/// `cuda.h` declares the type, but NVRTC cannot compile that header. Any structure of 128 bytes that is aligned to 64 works
/// too. Only the driver, or the simulator, knows what the bytes mean.
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
    /// The bytes of a tile that one instruction copies, including its part outside of the tensor. An mbarrier counts this
    /// number.
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
