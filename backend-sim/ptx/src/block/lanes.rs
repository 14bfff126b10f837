//! Threads of a warp that stand at the same instruction and execute it together, each on its own lane of the registers.

use crate::op::Reg;

/// One register of all threads of a warp.
pub(super) type Row = [u64; 32];

/// What the interpreter's loop is compiled for twice: one thread, and several.
pub(super) trait Lanes: Copy {
    /// Whether there can be more than one.
    const MANY: bool;

    fn mask(self) -> u32;

    /// The lanes, in ascending order.
    fn iter(self) -> impl Iterator<Item = usize> + Clone;

    /// Whether all threads of a whole warp take part.
    fn all(self) -> bool;

    fn lead(self) -> usize {
        self.mask().trailing_zeros() as usize
    }

    fn count(self) -> u64 {
        u64::from(self.mask().count_ones())
    }

    /// For each lane, in ascending order.
    #[inline(always)]
    fn each(self, f: impl FnMut(usize)) {
        if self.all() { (0..32).for_each(f) } else { self.iter().for_each(f) }
    }

    #[inline(always)]
    fn unary(self, rows: &mut [Row], d: Reg, a: Reg, f: impl Fn(u64) -> u64) {
        let (d, a) = (usize::from(d), usize::from(a));
        if self.all() {
            for part in 0..PARTS {
                let x = values(&rows[a], part);
                *values_mut(&mut rows[d], part) = x.map(&f);
            }
        } else {
            self.iter().for_each(|lane| rows[d][lane] = f(rows[a][lane]));
        }
    }

    #[inline(always)]
    fn binary(self, rows: &mut [Row], d: Reg, a: Reg, b: Reg, f: impl Fn(u64, u64) -> u64) {
        let (d, a, b) = (usize::from(d), usize::from(a), usize::from(b));
        if self.all() {
            for part in 0..PARTS {
                let (x, y) = (values(&rows[a], part), values(&rows[b], part));
                *values_mut(&mut rows[d], part) = std::array::from_fn(|lane| f(x[lane], y[lane]));
            }
        } else {
            self.iter().for_each(|lane| rows[d][lane] = f(rows[a][lane], rows[b][lane]));
        }
    }

    #[inline(always)]
    fn ternary(self, rows: &mut [Row], d: Reg, [a, b, c]: [Reg; 3], f: impl Fn(u64, u64, u64) -> u64) {
        let [d, a, b, c] = [d, a, b, c].map(usize::from);
        if self.all() {
            for part in 0..PARTS {
                let (x, y, z) = (values(&rows[a], part), values(&rows[b], part), values(&rows[c], part));
                *values_mut(&mut rows[d], part) = std::array::from_fn(|lane| f(x[lane], y[lane], z[lane]));
            }
        } else {
            self.iter().for_each(|lane| rows[d][lane] = f(rows[a][lane], rows[b][lane], rows[c][lane]));
        }
    }

    /// The same, by a quick function that also says on which lanes its result may be wrong. There the other one is called.
    #[inline(always)]
    fn ternary_quick(
        self,
        rows: &mut [Row],
        d: Reg,
        [a, b, c]: [Reg; 3],
        quick: impl Fn(u64, u64, u64) -> (u64, bool),
        exact: impl Fn(u64, u64, u64) -> u64,
    ) {
        let [d, a, b, c] = [d, a, b, c].map(usize::from);
        if self.all() {
            for part in 0..PARTS {
                let (x, y, z) = (values(&rows[a], part), values(&rows[b], part), values(&rows[c], part));
                let mut doubt = false;
                let results = values_mut(&mut rows[d], part);
                for lane in 0..PART {
                    let (result, may_be_wrong) = quick(x[lane], y[lane], z[lane]);
                    results[lane] = result;
                    doubt |= may_be_wrong;
                }
                if doubt {
                    *results = std::array::from_fn(|lane| exact(x[lane], y[lane], z[lane]));
                }
            }
        } else {
            for lane in self.iter() {
                let [x, y, z] = [a, b, c].map(|register| rows[register][lane]);
                let (result, may_be_wrong) = quick(x, y, z);
                rows[d][lane] = if may_be_wrong { exact(x, y, z) } else { result };
            }
        }
    }

    /// The lanes on which a condition holds.
    #[inline(always)]
    fn those(self, holds: impl Fn(usize) -> bool) -> u32 {
        let with = |all, lane| all | u32::from(holds(lane)) << lane;
        if self.all() { (0..32).fold(0, with) } else { self.iter().fold(0, with) }
    }

    /// Whether the lowest bit of a register is set, if it is the same on all lanes.
    #[inline(always)]
    fn condition(self, row: &Row) -> Option<bool> {
        let (some, every) = if self.all() {
            row.iter().fold((0, u64::MAX), |(some, every), value| (some | value, every & value))
        } else {
            self.iter().fold((0, u64::MAX), |(some, every), lane| (some | row[lane], every & row[lane]))
        };
        ((some ^ every) & 1 == 0).then_some(some & 1 == 1)
    }

    /// All bits that are set in a register on one of the lanes.
    #[inline(always)]
    fn bits(self, row: &Row) -> u64 {
        if self.all() {
            row.iter().fold(0, |bits, value| bits | value)
        } else {
            self.iter().fold(0, |bits, lane| bits | row[lane])
        }
    }

    /// Whether a register has the same value on all lanes.
    fn agree(self, rows: &[Row], register: Reg) -> bool {
        let row = &rows[usize::from(register)];
        self.iter().all(|lane| row[lane] == row[self.lead()])
    }
}

/// Values are taken in parts, before results are written: the result may be an operand.
const PART: usize = 8;
const PARTS: usize = 32 / PART;

#[inline(always)]
fn values(row: &Row, part: usize) -> [u64; PART] {
    row.as_chunks::<PART>().0[part]
}

#[inline(always)]
fn values_mut(row: &mut Row, part: usize) -> &mut [u64; PART] {
    &mut row.as_chunks_mut::<PART>().0[part]
}

/// Addresses that lie so many bytes behind those of a register.
#[inline(always)]
pub(super) fn plus(row: &Row, offset: i32) -> Row {
    std::array::from_fn(|lane| row[lane].wrapping_add_signed(offset.into()))
}

/// One thread, on this lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct One(pub(super) usize);

impl Lanes for One {
    const MANY: bool = false;

    #[inline(always)]
    fn mask(self) -> u32 {
        1 << (self.0 & 31)
    }

    #[inline(always)]
    fn lead(self) -> usize {
        self.0 & 31
    }

    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = usize> + Clone {
        std::iter::once(self.0 & 31)
    }

    #[inline(always)]
    fn all(self) -> bool {
        false
    }

    #[inline(always)]
    fn count(self) -> u64 {
        1
    }
}

/// The threads on these lanes: at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Many(pub(super) u32);

impl Lanes for Many {
    const MANY: bool = true;

    #[inline(always)]
    fn mask(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = usize> + Clone {
        each_lane(self.0)
    }

    #[inline(always)]
    fn all(self) -> bool {
        self.0 == u32::MAX
    }
}

/// The lanes of a set, a bit for each, in ascending order: what a [`World`](crate::World) is given for accesses that threads make together.
///
/// ```
/// assert_eq!(onesided_ptx::each_lane(0b1001).collect::<Vec<_>>(), [0, 3]);
/// ```
#[inline(always)]
pub fn each_lane(mut lanes: u32) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each form computes the same on the lanes that take part, also where the result is an operand, and leaves the others alone.
    #[test]
    fn every_set_of_lanes_computes_the_same() {
        let rows: Vec<Row> = (0..3).map(|row| std::array::from_fn(|lane| (row * 100 + lane) as u64)).collect();
        for mask in [1, 1 << 31, 0x8000_0001, 0x00ff_ff00, u32::MAX] {
            let [mut one, mut many] = [rows.clone(), rows.clone()];
            Many(mask).unary(&mut many, 0, 0, |a| a + 1);
            Many(mask).binary(&mut many, 1, 0, 1, |a, b| a * b);
            Many(mask).ternary(&mut many, 2, [2, 1, 2], |a, b, c| a + 2 * b + 3 * c);
            for lane in Many(mask).iter() {
                One(lane).unary(&mut one, 0, 0, |a| a + 1);
                One(lane).binary(&mut one, 1, 0, 1, |a, b| a * b);
                One(lane).ternary(&mut one, 2, [2, 1, 2], |a, b, c| a + 2 * b + 3 * c);
            }
            assert_eq!(one, many);
            let unchanged = (0..32).filter(|lane| mask >> lane & 1 == 0);
            assert!(unchanged.clone().all(|lane| (0..3).all(|row| many[row][lane] == rows[row][lane])));
            assert_eq!(32 - unchanged.count(), Many(mask).count() as usize);
            assert!(Many(mask).those(|lane| lane >= 16) == mask & 0xffff_0000);
            assert_eq!(Many(mask).agree(&rows, 0), mask.count_ones() == 1);
        }
    }
}
