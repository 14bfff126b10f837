//! Matrices that the lanes of a warp hold together: which lane has which element, and products.
//!
//! A register holds one element of 64 or 32 bits, two of 16 or four of 8. Four lanes hold a row of `a`, or a column of `b`, in blocks of as many
//! columns as their registers have elements; rows 8 to 15 are in registers of their own. So one rule gives the layouts of all shapes.

use super::eight::Eight;
use super::fragment::Fragments;
use super::round::{BFLOAT, HALF, Rounding, SINGLE};
use crate::op::Ternary;

/// A register of all lanes.
type Row = [u64; 32];

/// What a warp does with matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Matrix {
    /// Rows of 16 bytes, a lane each, become 8 × 8 elements of 16 bits that all lanes hold.
    Spread {
        transposed: bool,
    },
    /// The other way round.
    Gather {
        transposed: bool,
    },
    Transpose,
    Multiply(Multiply),
    Fragments(Fragments),
    /// Nothing: they meet before each loads or stores its part.
    Meet,
}

/// A product with a matrix of 8 columns: `d = a × b + c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiply {
    /// Rows of `a`: 8 or 16.
    pub(crate) rows: usize,
    /// Columns of `a`, rows of `b`.
    pub(crate) depth: usize,
    pub(crate) a: Element,
    pub(crate) b: Element,
    pub(crate) sum: Sum,
}

/// What `a` or `b` consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    /// The upper 19 bits of a number in single precision.
    Tf32,
    F64,
    E4m3,
    E5m2,
    S8,
    U8,
}

/// What `c` and `d` consist of, and how it is added up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum {
    F16,
    F32,
    /// By this fused multiply-add.
    F64(Ternary),
    S32 {
        saturates: bool,
    },
}

impl Element {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "f64" => Self::F64,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "s8" => Self::S8,
            "u8" => Self::U8,
            _ => return None,
        })
    }

    /// How many of them a register holds.
    pub(crate) fn in_register(self) -> usize {
        match self {
            Self::F64 | Self::Tf32 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 4,
        }
    }

    /// The bytes of one in memory.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            other => 4 / other.in_register(),
        }
    }

    /// The value of the lowest bits: a double holds each of every kind.
    pub(crate) fn value(self, bits: u64) -> f64 {
        match self {
            Self::F16 => HALF.to_f64(bits & 0xffff),
            Self::Bf16 => BFLOAT.to_f64(bits & 0xffff),
            Self::Tf32 => SINGLE.to_f64(bits & 0xffff_e000),
            Self::F64 => f64::from_bits(bits),
            Self::E4m3 => HALF.to_f64(Eight::E4m3.to_half(bits & 0xff)),
            Self::E5m2 => HALF.to_f64(Eight::E5m2.to_half(bits & 0xff)),
            Self::S8 => f64::from(bits as i8),
            Self::U8 => f64::from(bits as u8),
        }
    }

    /// The element in a row of a matrix that lies in these registers as `a` does; `height` is its rows by 8.
    pub(crate) fn of(self, registers: &[Row], height: usize, row: usize, column: usize) -> f64 {
        let elements = self.in_register();
        let (block, within) = (column / (4 * elements), column % (4 * elements));
        let word = registers[block * height + row / 8][row % 8 * 4 + within / elements];
        self.value(word >> (within % elements * (32 / elements)))
    }
}

impl Sum {
    /// How many registers hold 16 rows of 8 columns.
    pub(crate) fn in_block(self) -> usize {
        if let Sum::F16 = self { 2 } else { 4 }
    }

    /// Where an element lies: register, lane, and how far its bits are shifted.
    pub(crate) fn place(self, row: usize, column: usize) -> (usize, usize, usize) {
        let lane = row % 8 * 4 + column / 2;
        match self {
            Sum::F16 => (row / 8, lane, column % 2 * 16),
            _ => (row / 8 * 2 + column % 2, lane, 0),
        }
    }

    /// The number that these bits are.
    pub(crate) fn value(self, bits: u64) -> f64 {
        match self {
            Sum::F16 => HALF.to_f64(bits & 0xffff),
            Sum::F32 => SINGLE.to_f64(bits),
            Sum::F64(_) => f64::from_bits(bits),
            Sum::S32 { .. } => f64::from(bits as i32),
        }
    }

    /// The products added up in their order, then `c`, which may be of another floating-point type (`of_c`); the sum is rounded once. Products and sums of integers are exact in doubles.
    pub(crate) fn of(self, a: &[f64], b: &[f64], c: u64, of_c: Self) -> u64 {
        let products = || a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b);
        match self {
            Sum::F16 => HALF.round(products() + of_c.value(c), Rounding::Nearest),
            Sum::F32 => SINGLE.round(products() + of_c.value(c), Rounding::Nearest),
            Sum::F64(fma) => a.iter().zip(b).fold(c, |sum, (a, b)| fma(a.to_bits(), b.to_bits(), sum)),
            Sum::S32 { saturates } => {
                let sum = products() as i64 + i64::from(c as i32);
                let sum = if saturates { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                u64::from(sum as u32)
            }
        }
    }
}

impl Multiply {
    /// The registers of `a`, `b`, and of `c` and `d` each.
    pub(crate) fn registers(&self) -> [usize; 3] {
        let height = self.rows / 8;
        let blocks = |element: Element| self.depth / (4 * element.in_register());
        let sums = if let Sum::F16 = self.sum { height } else { 2 * height };
        [blocks(self.a) * height, blocks(self.b), sums]
    }

    fn apply(&self, [a, b, c]: &[Vec<Row>; 3]) -> Vec<Row> {
        let height = self.rows / 8;
        let columns: Vec<Vec<f64>> =
            (0..8).map(|column| (0..self.depth).map(|k| self.b.of(b, 1, column, k)).collect()).collect();
        let mut d = vec![[0; 32]; c.len()];
        for row in 0..self.rows {
            let mine: Vec<f64> = (0..self.depth).map(|k| self.a.of(a, height, row, k)).collect();
            for (column, theirs) in columns.iter().enumerate() {
                let (register, lane, shift) = self.sum.place(row, column);
                d[register][lane] |= self.sum.of(&mine, theirs, c[register][lane] >> shift, self.sum) << shift;
            }
        }
        d
    }
}

impl Matrix {
    /// The registers that it leaves behind, of all lanes.
    pub(crate) fn apply(&self, operands: &[Vec<Row>; 3]) -> Vec<Row> {
        let all = &operands[0][..];
        match *self {
            Matrix::Spread { transposed } => {
                // Each lane has its row of at most 4 matrices in two registers; 8 lanes have one.
                (0..4).map(|matrix| Small::of_rows(all, 8 * matrix).transposed_if(transposed).spread()).collect()
            }
            Matrix::Gather { transposed } => {
                let mut rows = vec![[0; 32]; 2];
                for (matrix, held) in all.iter().enumerate() {
                    Small::of_lanes(held).transposed_if(transposed).into_rows(&mut rows, 8 * matrix);
                }
                rows
            }
            Matrix::Transpose => all.iter().map(|held| Small::of_lanes(held).transposed_if(true).spread()).collect(),
            Matrix::Multiply(multiply) => multiply.apply(operands),
            Matrix::Fragments(fragments) => fragments.apply(operands),
            Matrix::Meet => vec![],
        }
    }
}

/// 8 × 8 elements of 16 bits.
struct Small([[u64; 8]; 8]);

impl Small {
    fn new(element: impl Fn(usize, usize) -> u64) -> Self {
        Small(std::array::from_fn(|row| std::array::from_fn(|column| element(row, column) & 0xffff)))
    }

    /// Each lane holds two neighbours of a row.
    fn of_lanes(held: &Row) -> Self {
        Small::new(|row, column| held[4 * row + column / 2] >> (column % 2 * 16))
    }

    fn spread(&self) -> Row {
        std::array::from_fn(|lane| {
            let pair = &self.0[lane / 4][lane % 4 * 2..];
            pair[0] | pair[1] << 16
        })
    }

    /// From lanes that have a row each, in two registers.
    fn of_rows(halves: &[Row], first: usize) -> Self {
        Small::new(|row, column| halves[column / 4][first + row] >> (column % 4 * 16))
    }

    fn into_rows(self, halves: &mut [Row], first: usize) {
        for (lane, row) in (first..).zip(self.0) {
            for (half, elements) in halves.iter_mut().zip(row.chunks(4)) {
                half[lane] = elements.iter().rev().fold(0, |word, element| word << 16 | element);
            }
        }
    }

    fn transposed_if(self, transposed: bool) -> Self {
        if transposed { Small::new(|row, column| self.0[column][row]) } else { self }
    }
}
