//! Words of 1, 2, 4 or 8 bytes in memory, little-endian.
//!
//! Each width is a case of its own: a copy whose length is known needs no call.

use crate::block::each_lane;

/// The word of `width` bytes at `at`. `None` if it is not within the memory.
#[inline(always)]
pub(crate) fn get(memory: &[u8], at: usize, width: u8) -> Option<u64> {
    let bytes = memory.get(at..at.checked_add(width.into())?)?;
    Some(match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    })
}

/// Writes the low `width` bytes. Returns whether that changed them; `None` if they are not within the memory.
#[inline(always)]
pub(crate) fn put(memory: &mut [u8], at: usize, width: u8, value: u64) -> Option<bool> {
    match width {
        1 => put_word::<1>(memory, at, value),
        2 => put_word::<2>(memory, at, value),
        4 => put_word::<4>(memory, at, value),
        8 => put_word::<8>(memory, at, value),
        _ => None,
    }
}

#[inline(always)]
fn put_word<const WIDTH: usize>(memory: &mut [u8], at: usize, value: u64) -> Option<bool> {
    let place: &mut [u8; WIDTH] = memory.get_mut(at..at.checked_add(WIDTH)?)?.first_chunk_mut()?;
    let new = word(&value.to_le_bytes(), 0);
    Some(std::mem::replace(place, new) != new)
}

/// The number of lanes, if their accesses of `width` bytes are to consecutive words: a word for each lane, from the first lane on. `None` if they are not.
/// Most accesses of warps are of this kind, and one range of memory holds them.
///
/// ```
/// let addresses = std::array::from_fn(|lane| 1000 + 4 * lane as u64);
/// assert_eq!(onesided_ptx::in_a_row(&addresses, u32::MAX, 4), Some(32));
/// assert_eq!(onesided_ptx::in_a_row(&addresses, 0b1110, 4), Some(3));
/// assert_eq!(onesided_ptx::in_a_row(&addresses, 0b1010, 4), None);
/// assert_eq!(onesided_ptx::in_a_row(&addresses, u32::MAX, 8), None);
/// ```
#[inline]
pub fn in_a_row(addresses: &[u64; 32], lanes: u32, width: u8) -> Option<usize> {
    let row = match lanes {
        u32::MAX => &addresses[..],
        _ => {
            let lead = lanes.trailing_zeros();
            let count = lanes.checked_shr(lead)?.trailing_ones();
            if count != lanes.count_ones() {
                return None;
            }
            &addresses[lead as usize..(lead + count) as usize]
        }
    };
    let steps = row.iter().zip(&row[1..]).map(|(one, next)| next.wrapping_sub(*one));
    (steps.fold(0, |differs, step| differs | (step ^ u64::from(width))) == 0).then_some(row.len())
}

/// Reads words of `width` bytes, little-endian, that lie one behind the other: as many as are given. A width other than 1, 2, 4 and 8
/// reads nothing.
///
/// ```
/// let mut values = [0; 2];
/// onesided_ptx::gather_row(&[1, 0, 2, 1], 2, &mut values);
/// assert_eq!(values, [1, 0x102]);
/// ```
#[inline]
pub fn gather_row(memory: &[u8], width: u8, into: &mut [u64]) {
    match width {
        1 => into.iter_mut().zip(memory).for_each(|(value, &byte)| *value = byte.into()),
        2 => gather_words(memory, into, |word| u16::from_le_bytes(word).into()),
        4 => gather_words(memory, into, |word| u32::from_le_bytes(word).into()),
        8 => gather_words(memory, into, u64::from_le_bytes),
        _ => {}
    }
}

#[inline(always)]
fn gather_words<const WIDTH: usize>(memory: &[u8], into: &mut [u64], number: impl Fn([u8; WIDTH]) -> u64) {
    into.iter_mut().zip(memory.as_chunks().0).for_each(|(value, &word)| *value = number(word));
}

/// Writes the low `width` bytes of each value to consecutive words. Returns a bit for each word that this has
/// changed, the lowest for the first word. A width other than 1, 2, 4 and 8 writes nothing.
///
/// ```
/// let mut memory = [0; 4];
/// assert_eq!(onesided_ptx::scatter_row(&mut memory, 2, &[0, 0x1_0203]), 0b10);
/// assert_eq!(memory, [0, 0, 3, 2]);
/// ```
#[inline]
pub fn scatter_row(memory: &mut [u8], width: u8, values: &[u64]) -> u32 {
    match width {
        1 => scatter_row_words::<1>(memory, values),
        2 => scatter_row_words::<2>(memory, values),
        4 => scatter_row_words::<4>(memory, values),
        8 => scatter_row_words::<8>(memory, values),
        _ => 0,
    }
}

#[inline(always)]
fn scatter_row_words<const WIDTH: usize>(memory: &mut [u8], values: &[u64]) -> u32 {
    let words = memory.as_chunks_mut::<WIDTH>().0.iter_mut();
    words.zip(values).enumerate().fold(0, |changed, (index, (place, value))| {
        let new = word(&value.to_le_bytes(), 0);
        changed | u32::from(std::mem::replace(place, new) != new) << index
    })
}

/// Reads a word of `width` bytes, little-endian, for each of the lanes: for a [`World`](crate::World) that makes accesses all at once. A
/// width other than 1, 2, 4 and 8 reads nothing.
///
/// # Panics
/// If a word is not within the memory.
///
/// ```
/// let (mut values, at) = ([0; 32], |lane| 2 * lane);
/// onesided_ptx::gather(&[1, 0, 2, 0, 3, 1], 2, 0b101, at, &mut values);
/// assert_eq!(values[..3], [1, 0, 0x103]);
/// ```
#[inline]
pub fn gather(memory: &[u8], width: u8, lanes: u32, at: impl Fn(usize) -> usize, into: &mut [u64; 32]) {
    match width {
        1 => each_lane(lanes).for_each(|lane| into[lane] = memory[at(lane)].into()),
        2 => each_lane(lanes).for_each(|lane| into[lane] = u16::from_le_bytes(word(memory, at(lane))).into()),
        4 => each_lane(lanes).for_each(|lane| into[lane] = u32::from_le_bytes(word(memory, at(lane))).into()),
        8 => each_lane(lanes).for_each(|lane| into[lane] = u64::from_le_bytes(word(memory, at(lane)))),
        _ => {}
    }
}

/// Writes the low `width` bytes of a value for each of the lanes, in ascending order. Returns the lanes that have changed the memory. A width
/// other than 1, 2, 4 and 8 writes nothing.
///
/// # Panics
/// If a word is not within the memory.
///
/// ```
/// let (mut memory, values) = ([0; 3], [7; 32]);
/// assert_eq!(onesided_ptx::scatter(&mut memory, 1, 0b101, |lane| lane, &values), 0b101);
/// assert_eq!(memory, [7, 0, 7]);
/// ```
#[inline]
pub fn scatter(memory: &mut [u8], width: u8, lanes: u32, at: impl Fn(usize) -> usize, values: &[u64; 32]) -> u32 {
    match width {
        1 => scatter_words::<1>(memory, lanes, at, values),
        2 => scatter_words::<2>(memory, lanes, at, values),
        4 => scatter_words::<4>(memory, lanes, at, values),
        8 => scatter_words::<8>(memory, lanes, at, values),
        _ => 0,
    }
}

#[inline(always)]
fn scatter_words<const WIDTH: usize>(
    memory: &mut [u8],
    lanes: u32,
    at: impl Fn(usize) -> usize,
    values: &[u64; 32],
) -> u32 {
    each_lane(lanes).fold(0, |changed, lane| {
        let (begin, new) = (at(lane), word(&values[lane].to_le_bytes(), 0));
        let place: &mut [u8; WIDTH] = (&mut memory[begin..begin + WIDTH]).try_into().expect("as many bytes");
        changed | u32::from(std::mem::replace(place, new) != new) << lane
    })
}

#[inline(always)]
fn word<const WIDTH: usize>(memory: &[u8], at: usize) -> [u8; WIDTH] {
    memory[at..at + WIDTH].try_into().expect("as many bytes")
}
