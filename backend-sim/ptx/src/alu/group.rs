//! Products of a warp group: where a matrix lies in shared memory, and 16 rows of the result.
//!
//! A descriptor lays a matrix out in units of 16 bytes. It is that of PTX 9.0, "Asynchronous warpgroup level matrix shared memory layout"; the
//! formulas below agree with a GPU for offsets, start addresses and base offsets of any kind.

use super::matrix::{Element, Sum};

/// A register of all lanes of a warp.
type Row = [u64; 32];

/// A product with 64 rows, of which each of four warps has 16: `d = a × b + d`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupProduct {
    pub(crate) columns: usize,
    pub(crate) a: Element,
    pub(crate) b: Element,
    pub(crate) sum: Sum,
    /// Whether one of the two matrices is negated: `d - a × b`.
    pub(crate) negates: bool,
}

/// A matrix in shared memory, as a descriptor says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    start: u64,
    leading: u64,
    stride: u64,
    /// Where the pattern of the swizzle begins: a row of 128 bytes of the 8 that it has.
    base: u64,
    /// Units of 16 bytes among which a swizzle changes places: 1, 2, 4 or 8.
    width: u64,
    /// The bytes of an element.
    bytes: u64,
    /// Elements of a row of `a`, or of a column of `b`, lie one behind the other; if transposed, those of a column of `a` do.
    transposed: bool,
}

impl Tile {
    pub(crate) fn new(descriptor: u64, element: Element, transposed: bool) -> Self {
        // 14 bits of a number whose lowest four are not there
        let field = |at: u32| (descriptor >> at & 0x3fff) << 4;
        let width = [1, 8, 4, 2][(descriptor >> 62) as usize];
        let bytes = element.bytes() as u64;
        Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: descriptor >> 49 & 7,
            width,
            bytes,
            transposed,
        }
    }

    /// The address of an element: in row `major` of `a`, or column `major` of `b`, and at place `k` there.
    pub(crate) fn address(&self, major: usize, k: usize) -> u64 {
        let (major, k) = (major as u64, k as u64);
        let in_unit = 16 / self.bytes;
        let offset = match (self.transposed, self.width) {
            (false, 1) => {
                major % 8 * 16 + major / 8 * self.stride + k % in_unit * self.bytes + k / in_unit * self.leading
            }
            (false, width) => major % 8 * 16 * width + major / 8 * self.stride + k * self.bytes,
            (true, 1) => {
                major % in_unit * self.bytes + major / in_unit * self.stride + k % 8 * 16 + k / 8 * self.leading
            }
            (true, width) => {
                let wide = in_unit * width;
                major % wide * self.bytes + major / wide * self.leading + k % 8 * 16 * width + k / 8 * self.stride
            }
        };
        swizzled(self.start + offset, self.base, self.width)
    }
}

/// Where an address of shared memory is, if so many units of 16 bytes (2, 4 or 8) change places: by the row of 128 bytes that it lies in, counted from
/// where the pattern begins. Tensor maps have the same.
pub(crate) fn swizzled(plain: u64, base: u64, width: u64) -> u64 {
    let row = (plain >> 7).wrapping_sub(base) & (width - 1);
    plain ^ row << 4
}

impl GroupProduct {
    /// Columns of `a`, rows of `b`: 32 bytes.
    pub(crate) fn depth(&self) -> usize {
        32 / self.a.bytes()
    }

    /// The registers of `d`.
    pub(crate) fn sums(&self) -> usize {
        self.columns / 8 * self.sum.in_block()
    }

    /// A warp's 16 rows of `a` as four registers hold them.
    pub(crate) fn rows_of(&self, registers: &[Row]) -> Vec<Vec<f64>> {
        (0..16).map(|row| (0..self.depth()).map(|k| self.a.of(registers, 2, row, k)).collect()).collect()
    }

    /// What the registers of `d` become, by 16 rows of `a`, all columns of `b`, and what they were.
    pub(crate) fn apply(&self, rows: &[Vec<f64>], columns: &[Vec<f64>], c: &[Row]) -> Vec<Row> {
        let mut d = vec![[0; 32]; c.len()];
        for (row, mine) in rows.iter().enumerate() {
            let mine: Vec<f64> = mine.iter().map(|&value| if self.negates { -value } else { value }).collect();
            for (column, theirs) in columns.iter().enumerate() {
                let (register, lane, shift) = self.sum.place(row, column % 8);
                let register = register + column / 8 * self.sum.in_block();
                d[register][lane] |= self.sum.of(&mine, theirs, c[register][lane] >> shift, self.sum) << shift;
            }
        }
        d
    }
}
