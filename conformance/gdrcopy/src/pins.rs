//! [`Pins`]: which memory is pinned.

use std::collections::BTreeMap;
use std::ffi::c_ulong;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pinned memory of this process.
pub(crate) static PINS: Pins = Pins { table: Mutex::new(Table { next: 1, pins: BTreeMap::new() }) };

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

/// Pieces of memory by number. Any number of threads may use it.
#[derive(Debug)]
pub(crate) struct Pins {
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// No number is used twice, so that a handle that is kept too long names nothing.
    next: c_ulong,
    pins: BTreeMap<c_ulong, Pin>,
}

impl Pin {
    /// Whether these bytes belong to it.
    pub(crate) fn contains(self, address: usize, size: usize) -> bool {
        let offset = address.checked_sub(self.address);
        offset.and_then(|offset| offset.checked_add(size)).is_some_and(|end| end <= self.size)
    }
}

impl Pins {
    pub(crate) fn add(&self, pin: Pin) -> c_ulong {
        let mut table = self.lock();
        let number = table.next;
        table.next += 1;
        table.pins.insert(number, pin);
        number
    }

    pub(crate) fn get(&self, number: c_ulong) -> Option<Pin> {
        self.lock().pins.get(&number).copied()
    }

    pub(crate) fn remove(&self, number: c_ulong) -> bool {
        self.lock().pins.remove(&number).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_inside_belong_to_a_pin() {
        let pin = Pin { address: 100, size: 10 };
        for (address, size, belongs) in
            [(100, 10, true), (109, 1, true), (110, 0, true), (109, 2, false), (99, 2, false), (105, usize::MAX, false)]
        {
            assert_eq!(pin.contains(address, size), belongs, "{address} + {size}");
        }
    }
}
