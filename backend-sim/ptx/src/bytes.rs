//! Words of 1, 2, 4 or 8 bytes in memory, little-endian.
//!
//! Each width is a case of its own: a copy whose length is known needs no call.

/// The word of `width` bytes at `at`, or nothing if it is not within.
#[inline]
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

/// Writes the low `width` bytes. Whether that changed them; nothing if they are not within.
#[inline]
pub(crate) fn put(memory: &mut [u8], at: usize, width: u8, value: u64) -> Option<bool> {
    let old = get(memory, at, width)?;
    let bytes = memory.get_mut(at..at + usize::from(width))?;
    let new = value.to_le_bytes();
    match bytes {
        [a] => *a = new[0],
        [a, b] => [*a, *b] = [new[0], new[1]],
        [a, b, c, d] => [*a, *b, *c, *d] = [new[0], new[1], new[2], new[3]],
        all => all.copy_from_slice(&new[..usize::from(width)]),
    }
    Some(old != value & crate::types::mask(u32::from(width) * 8))
}
