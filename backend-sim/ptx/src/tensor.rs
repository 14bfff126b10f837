//! Tensor maps: what a tensor in global memory and its tiles in shared memory look like, and how 128 bytes say so.
//!
//! On a GPU only the driver knows what the 128 bytes mean. Here they hold a tag, the fields below, and a checksum. So it is found if a kernel is given
//! other bytes, or writes into them.

use crate::alu::group::swizzled;
use crate::bytes;
use crate::op::Reg;
use crate::types::Type;
use crate::world::AtomicOp;

/// The most dimensions.
const DIMENSIONS: usize = 5;
/// The size of what stands for a map in a kernel's parameters.
const BYTES: usize = 128;
/// What it begins with.
const TAG: u64 = u64::from_le_bytes(*b"tensor 1");
/// Where its checksum is.
const CHECKSUM: usize = BYTES - 8;

/// A tensor in global memory, and the tile (or box) of it that one instruction copies: what `cuTensorMapEncodeTiled` is given. The innermost
/// dimension comes first; its elements lie one behind the other.
///
/// ```
/// use onesided_ptx::{TensorMap, Type};
///
/// // A matrix of 100 columns and 50 rows, whose rows are 512 bytes apart, and tiles of 32 × 8 of it.
/// let map = TensorMap {
///     address: 0x1000,
///     ty: Type::F32,
///     rank: 2,
///     sizes: [100, 50, 1, 1, 1],
///     strides: [512, 0, 0, 0],
///     tile: [32, 8, 1, 1, 1],
///     steps: [1; 5],
///     swizzle: 128,
///     fills_nan: false,
/// };
/// assert_eq!(map.bytes(), 32 * 8 * 4);
/// assert_eq!(map.encode().and_then(|bytes| TensorMap::decode(&bytes)), Some(map));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who makes a map says all of it")]
pub struct TensorMap {
    /// The first element.
    pub address: u64,
    /// The type of an element: an integer of 8 to 64 bits, `F16`, `Bf16`, `F32` or `F64`.
    pub ty: Type,
    /// How many dimensions it has: 1 to 5.
    pub rank: usize,
    /// Elements in each dimension, at least 1.
    pub sizes: [u64; DIMENSIONS],
    /// Bytes from an element to the next in each dimension but the first.
    pub strides: [u64; DIMENSIONS - 1],
    /// Elements of a tile in each dimension: 1 to 256. A row of it has a multiple of 16 bytes.
    pub tile: [u32; DIMENSIONS],
    /// The step between copied elements of a tile, in each dimension but the first: 1 to 8.
    pub steps: [u32; DIMENSIONS],
    /// The width in bytes within which units of 16 bytes are swapped in shared memory: 32, 64 or 128; 0 without a swizzle.
    pub swizzle: u32,
    /// Whether what lies outside of the tensor reads as NaN, and not as zero.
    pub fills_nan: bool,
}

/// The types that elements can have. Their places are their numbers.
const TYPES: [Type; 12] = [
    Type::U8,
    Type::S8,
    Type::U16,
    Type::S16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
];

/// # The 128 bytes
impl TensorMap {
    /// The bytes that a kernel is given as `CUtensorMap`. Only the interpreter understands them. `None` if a field is not within its limits.
    pub fn encode(&self) -> Option<[u8; BYTES]> {
        let ty = TYPES.iter().position(|ty| *ty == self.ty).filter(|_| self.is_possible())?;
        let mut to = [0; BYTES];
        let mut at = 0;
        let mut put = |value: u64, width: u8| {
            bytes::put(&mut to, at, width, value);
            at += usize::from(width);
        };
        put(TAG, 8);
        put(self.address, 8);
        self.sizes.iter().for_each(|size| put(size - 1, 4));
        self.tile.iter().for_each(|size| put(u64::from(size - 1), 1));
        self.steps.iter().for_each(|step| put(u64::from(*step), 1));
        put(ty as u64, 1);
        put(self.rank as u64, 1);
        self.strides.iter().for_each(|stride| put(*stride, 8));
        put(u64::from(self.swizzle), 1);
        put(self.fills_nan.into(), 1);
        let checksum = checksum(&to);
        bytes::put(&mut to, CHECKSUM, 8, checksum);
        Some(to)
    }

    /// The map that these bytes stand for. `None` if they are not a map, or were changed.
    pub fn decode(from: &[u8; BYTES]) -> Option<Self> {
        let mut at = 0;
        let mut get = |width: u8| {
            let value = bytes::get(from, at, width).unwrap_or(0);
            at += usize::from(width);
            value
        };
        if get(8) != TAG {
            return None;
        }
        let address = get(8);
        let sizes = std::array::from_fn(|_| get(4) + 1);
        let tile = std::array::from_fn(|_| get(1) as u32 + 1);
        let steps = std::array::from_fn(|_| get(1) as u32);
        let ty = *TYPES.get(get(1) as usize)?;
        let rank = get(1) as usize;
        let strides = std::array::from_fn(|_| get(8));
        let (swizzle, fills_nan) = (get(1) as u32, get(1) == 1);
        let map = Self { address, ty, rank, sizes, strides, tile, steps, swizzle, fills_nan };
        (bytes::get(from, CHECKSUM, 8)? == checksum(from) && map.is_possible()).then_some(map)
    }

    /// Whether everything is within its limits, so that nothing below overflows.
    fn is_possible(&self) -> bool {
        (1..=DIMENSIONS).contains(&self.rank)
            && self.address.is_multiple_of(16)
            && self.sizes.iter().all(|size| (1..=1 << 32).contains(size))
            && self.tile.iter().all(|size| (1..=256).contains(size))
            && self.strides.iter().all(|stride| stride.is_multiple_of(16) && *stride < 1 << 40)
            && self.steps.iter().all(|step| (1..=8).contains(step))
            && self.row_bytes().is_multiple_of(16)
            && matches!(self.swizzle, 0 | 32 | 64 | 128)
            && (self.swizzle == 0 || self.row_bytes() <= self.swizzle.into())
    }
}

/// FNV-1a of all bytes before it.
fn checksum(of: &[u8; BYTES]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    of[..CHECKSUM].iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// # Tiles
impl TensorMap {
    /// The bytes of an element.
    pub(crate) fn width(&self) -> u64 {
        self.ty.bytes().into()
    }

    /// The bytes of a row of a tile: of its innermost dimension, where no step is left out.
    fn row_bytes(&self) -> u64 {
        u64::from(self.tile[0]) * self.width()
    }

    /// Bytes from a row of a tile to the next in shared memory. A swizzle takes all of its width.
    fn pitch(&self) -> u64 {
        self.row_bytes().max(self.swizzle.into())
    }

    /// How many elements of a dimension but the first are copied.
    fn count(&self, dimension: usize) -> u64 {
        self.tile[dimension].div_ceil(self.steps[dimension]).into()
    }

    fn rows(&self) -> u64 {
        (1..self.rank).map(|dimension| self.count(dimension)).product()
    }

    /// The bytes of a tile that one instruction copies, including the part outside of the tensor. An mbarrier counts all of them.
    ///
    /// # Panics
    /// If the rank is more than 5, or a step is 0.
    pub fn bytes(&self) -> u64 {
        self.rows() * self.row_bytes()
    }

    /// The bytes of shared memory that a tile takes. That is more than the tile has if its rows are shorter than the swizzle.
    pub(crate) fn extent(&self) -> u64 {
        self.rows() * self.pitch()
    }

    /// The address in shared memory of a byte of a tile that begins at address `begin`. A swizzle depends on addresses, so a tile may begin in the middle of the
    /// swizzle's pattern.
    pub(crate) fn in_shared(&self, begin: u64, offset: u64) -> u64 {
        let (row, within) = (offset / self.row_bytes(), offset % self.row_bytes());
        let plain = begin + row * self.pitch() + within;
        if self.swizzle == 0 { plain } else { swizzled(plain, 0, u64::from(self.swizzle) / 16) }
    }

    /// The address of a byte of the tile that begins at these coordinates, and how many bytes of its row, from there on, lie in the tensor. `None` if the byte lies
    /// outside. `stores`: GPUs store whole units of 16 bytes, so bytes between the end of a row and the end of its last unit count as inside.
    pub(crate) fn in_global(&self, corner: &[i32; DIMENSIONS], offset: u64, stores: bool) -> Option<(u64, u64)> {
        let columns = if stores { self.sizes[0].next_multiple_of(16 / self.width()) } else { self.sizes[0] };
        let (mut row, within) = (offset / self.row_bytes(), offset % self.row_bytes());
        let inside = |at: i64, size: u64| u64::try_from(at).ok().filter(|at| *at < size);
        let first = inside(i64::from(corner[0]) + (within / self.width()) as i64, columns)?;
        let mut address = self.address.wrapping_add(first * self.width() + within % self.width());
        for (dimension, &begin) in corner.iter().enumerate().take(self.rank).skip(1) {
            let count = self.count(dimension);
            let place = row % count * u64::from(self.steps[dimension]);
            row /= count;
            let at = inside(i64::from(begin) + place as i64, self.sizes[dimension])?;
            address = address.wrapping_add(at.wrapping_mul(self.strides[dimension - 1]));
        }
        let left = (columns - first) * self.width() - within % self.width();
        Some((address, left.min(self.row_bytes() - within)))
    }

    /// Eight bytes that a load finds outside of the tensor.
    ///
    /// PTX does not say which NaN it is. GPUs are reported to write 0x7ff7 into each two bytes of elements of all types.
    pub(crate) fn outside(&self) -> u64 {
        if self.fills_nan { 0x7ff7_7ff7_7ff7_7ff7 } else { 0 }
    }

    /// Whether a reduction of elements is one that PTX has.
    pub(crate) fn reduces_with(&self, op: AtomicOp) -> bool {
        let is_half = matches!(self.ty, Type::F16 | Type::Bf16);
        match op {
            AtomicOp::Add => matches!(self.ty, Type::U32 | Type::S32 | Type::U64 | Type::F32) || is_half,
            AtomicOp::Min | AtomicOp::Max => {
                matches!(self.ty, Type::U32 | Type::S32 | Type::U64 | Type::S64) || is_half
            }
            AtomicOp::Inc | AtomicOp::Dec => self.ty == Type::U32,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => self.width() >= 4,
            AtomicOp::Exchange | AtomicOp::CompareSwap => false,
        }
    }
}

/// What an instruction does with a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileKind {
    Load,
    Store,
    Reduce(AtomicOp),
}

/// An instruction on tiles: the registers of its operands.
#[derive(Clone, Debug)]
pub(crate) struct TileForm {
    pub(crate) kind: TileKind,
    pub(crate) map: Reg,
    pub(crate) shared: Reg,
    /// As many as it says that the map has dimensions.
    pub(crate) corner: Vec<Reg>,
    /// Of a load.
    pub(crate) barrier: Option<Reg>,
}

/// The values of these operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    pub(crate) map: u64,
    pub(crate) shared: u64,
    pub(crate) rank: usize,
    pub(crate) corner: [i32; DIMENSIONS],
    pub(crate) barrier: u64,
}

impl TileForm {
    pub(crate) fn values(&self, get: impl Fn(Reg) -> u64) -> Tile {
        let coordinate =
            |dimension: usize| self.corner.get(dimension).map_or(0, |&register| get(register) as u32 as i32);
        Tile {
            map: get(self.map),
            shared: get(self.shared),
            rank: self.corner.len(),
            corner: std::array::from_fn(coordinate),
            barrier: self.barrier.map_or(0, get),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: TensorMap = TensorMap {
        address: 0x4000,
        ty: Type::F16,
        rank: 3,
        sizes: [1 << 32, 40, 7, 1, 1],
        strides: [96, (1 << 40) - 16, 0, 0],
        tile: [32, 256, 3, 1, 1],
        steps: [1, 2, 8, 1, 1],
        swizzle: 64,
        fills_nan: true,
    };

    #[test]
    fn whatever_changes_a_map_makes_it_none() {
        let encoded = MAP.encode().unwrap();
        assert_eq!(TensorMap::decode(&encoded), Some(MAP));
        for at in 0..BYTES {
            for bit in 0..8 {
                let mut other = encoded;
                other[at] ^= 1 << bit;
                assert_eq!(TensorMap::decode(&other), None, "bit {bit} of byte {at}");
            }
        }
        assert_eq!(TensorMap::decode(&[0; BYTES]), None);
    }

    #[test]
    fn what_is_beyond_the_limits_is_no_map() {
        let wrong = [
            TensorMap { rank: 0, ..MAP },
            TensorMap { rank: 6, ..MAP },
            TensorMap { address: 0x4008, ..MAP },
            TensorMap { strides: [8, 0, 0, 0], ..MAP },
            TensorMap { strides: [1 << 40, 0, 0, 0], ..MAP },
            TensorMap { steps: [1, 9, 1, 1, 1], ..MAP },
            TensorMap { steps: [1, 0, 1, 1, 1], ..MAP },
            TensorMap { tile: [12, 1, 1, 1, 1], ..MAP },
            TensorMap { tile: [40, 1, 1, 1, 1], ..MAP },
            TensorMap { swizzle: 16, ..MAP },
            TensorMap { ty: Type::B128, ..MAP },
            TensorMap { sizes: [0, 1, 1, 1, 1], ..MAP },
            TensorMap { sizes: [(1 << 32) + 1, 1, 1, 1, 1], ..MAP },
            TensorMap { tile: [32, 0, 1, 1, 1], ..MAP },
            TensorMap { tile: [32, 257, 1, 1, 1], ..MAP },
        ];
        for map in wrong {
            assert_eq!(map.encode(), None, "{map:?}");
        }
    }

    #[test]
    fn a_tile_takes_the_width_of_its_swizzle() {
        let map = TensorMap { tile: [8, 4, 1, 1, 1], steps: [1; 5], swizzle: 128, ..MAP };
        assert_eq!((map.bytes(), map.extent()), (64, 512));
        // rows of 16 bytes: the unit of row 1 lies in place 1 of its 128 bytes
        assert_eq!([0, 16, 32, 48].map(|offset| map.in_shared(1024, offset)), [1024, 1168, 1312, 1456]);
        // from an address within the pattern on
        assert_eq!(map.in_shared(1024 + 384, 0), 1024 + 384 + 48);
    }
}
