//! Fragments of whole matrices (`wmma`). PTX leaves open which lane has which element. Here the elements are numbered row by row. Each lane has
//! equally many, in that order.

use super::matrix::{Element, Sum};

/// A register of all lanes.
type Row = [u64; 32];

/// A product of matrices that are held so: `d = a × b + c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) depth: usize,
    pub(crate) a: Element,
    pub(crate) b: Element,
    /// What `c` consists of, and what `d` does.
    pub(crate) from: Sum,
    pub(crate) to: Sum,
}

/// Where an element lies, by its number among those of its matrix: register, lane, and how far its bits are shifted.
fn place(number: usize, in_lane: usize, in_register: usize) -> (usize, usize, usize) {
    let (lane, within) = (number / in_lane, number % in_lane);
    (within / in_register, lane, within % in_register * (32 / in_register))
}

fn read(registers: &[Row], number: usize, in_lane: usize, in_register: usize) -> u64 {
    let (register, lane, shift) = place(number, in_lane, in_register);
    registers[register][lane] >> shift
}

impl Sum {
    /// How many a register holds.
    fn in_register(self) -> usize {
        if let Sum::F16 = self { 2 } else { 1 }
    }
}

impl Fragments {
    pub(crate) fn apply(&self, [a, b, c]: &[Vec<Row>; 3]) -> Vec<Row> {
        let &Self { rows, columns, depth, .. } = self;
        let element = |kind: Element, registers: &[Row], number: usize, all: usize| {
            kind.value(read(registers, number, all / 32, kind.in_register()))
        };
        let of_a = |row: usize| (0..depth).map(move |k| element(self.a, a, row * depth + k, rows * depth));
        let of_b = |column: usize| (0..depth).map(move |k| element(self.b, b, k * columns + column, depth * columns));
        let lines: Vec<Vec<f64>> = (0..columns).map(|column| of_b(column).collect()).collect();
        let in_lane = rows * columns / 32;
        let mut d = vec![[0; 32]; in_lane / self.to.in_register()];
        for row in 0..rows {
            let mine: Vec<f64> = of_a(row).collect();
            for (column, theirs) in lines.iter().enumerate() {
                let number = row * columns + column;
                let (register, lane, shift) = place(number, in_lane, self.to.in_register());
                let before = read(c, number, in_lane, self.from.in_register());
                d[register][lane] |= self.to.of(&mine, theirs, before, self.from) << shift;
            }
        }
        d
    }
}
