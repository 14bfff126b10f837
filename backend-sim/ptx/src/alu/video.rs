//! Instructions on the bytes, or the halves, of registers: what PTX calls SIMD video instructions.

use crate::types::mask;

/// What is done with each pair of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Each {
    Add,
    Sub,
    /// Half of the sum, rounded away from zero.
    Average,
    Distance,
    Min,
    Max,
    Equal,
    Differs,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

const ALL: [Each; 12] = [
    Each::Add,
    Each::Sub,
    Each::Average,
    Each::Distance,
    Each::Min,
    Each::Max,
    Each::Equal,
    Each::Differs,
    Each::Less,
    Each::AtMost,
    Each::Greater,
    Each::AtLeast,
];

/// An instruction. It goes to [`video`] as a number, since operands are registers and constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Video {
    pub(crate) each: Each,
    /// Four bytes, or two halves.
    pub(crate) elements: u32,
    /// Whether the result and both operands have signs.
    pub(crate) signed: [bool; 3],
    pub(crate) saturates: bool,
    /// The results are added up, and to `c`. Otherwise they take the places of elements of `c`.
    pub(crate) sums: bool,
    /// A bit for each element that is computed.
    pub(crate) mask: u64,
    /// Which elements of `a` and `b` are the operands: those of `a` come first.
    pub(crate) chosen: [[u64; 4]; 2],
}

impl Video {
    pub(crate) fn pack(self) -> u64 {
        let flags = [self.elements == 4, self.signed[0], self.signed[1], self.signed[2], self.saturates, self.sums];
        let flags = flags.iter().rev().fold(0, |all, &flag| all << 1 | u64::from(flag));
        let chosen = self.chosen.iter().flatten().rev().fold(0, |all, place| all << 3 | place);
        flags | self.mask << 6 | (self.each as u64) << 10 | chosen << 14
    }

    fn unpack(packed: u64) -> Self {
        let flag = |place: u32| packed >> place & 1 == 1;
        let chosen = |operand: u32| [0, 1, 2, 3].map(|place| packed >> (14 + 3 * (4 * operand + place)) & 7);
        Self {
            each: ALL[(packed >> 10 & 15) as usize % ALL.len()],
            elements: if flag(0) { 4 } else { 2 },
            signed: [flag(1), flag(2), flag(3)],
            saturates: flag(4),
            sums: flag(5),
            mask: packed >> 6 & 15,
            chosen: [chosen(0), chosen(1)],
        }
    }
}

fn compute(each: Each, a: i64, b: i64) -> i64 {
    match each {
        Each::Add => a + b,
        Each::Sub => a - b,
        Each::Average => (a + b + i64::from(a + b >= 0)) >> 1,
        Each::Distance => (a - b).abs(),
        Each::Min => a.min(b),
        Each::Max => a.max(b),
        Each::Equal => (a == b).into(),
        Each::Differs => (a != b).into(),
        Each::Less => (a < b).into(),
        Each::AtMost => (a <= b).into(),
        Each::Greater => (a > b).into(),
        Each::AtLeast => (a >= b).into(),
    }
}

pub(crate) fn video(a: u64, b: u64, c: u64, how: u64) -> u64 {
    let how = Video::unpack(how);
    let width = 32 / how.elements;
    let both = (a & mask(32)) | b << 32;
    let operand = |which: usize, place: usize| {
        let bits = both >> (how.chosen[which][place] * u64::from(width)) & mask(width);
        let is_negative = how.signed[which + 1] && bits >> (width - 1) == 1;
        bits.cast_signed() - if is_negative { 1 << width } else { 0 }
    };
    let (lowest, highest) = match how.signed[0] {
        true => (-(1 << (width - 1)), (1 << (width - 1)) - 1),
        false => (0, (1 << width) - 1),
    };
    let mut result = c as u32;
    for place in (0..how.elements).filter(|place| how.mask >> place & 1 == 1) {
        let one = compute(how.each, operand(0, place as usize), operand(1, place as usize));
        let one = if how.saturates { one.clamp(lowest, highest) } else { one };
        result = match how.sums {
            true => result.wrapping_add(one as u32),
            false => {
                let here = (mask(width) as u32) << (place * width);
                result & !here | (one as u32) << (place * width) & here
            }
        };
    }
    result.into()
}
