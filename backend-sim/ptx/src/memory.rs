//! A plain global memory: for tests, for the examples, and for kernels of one block.

use crate::block::{Who, each_lane};
use crate::bytes::{self, gather, gather_row, in_a_row, scatter, scatter_row};
use crate::count::count;
use crate::module::Module;
use crate::world::{Access, Refusal, World};

/// Allocations at addresses that only grow, each checked at its bounds. Nothing ends a block's turn: strong accesses happen at once.
#[derive(Clone, Debug, Default)]
pub struct FlatMemory {
    /// Address and bytes, by address.
    allocations: Vec<(u64, Vec<u8>)>,
    /// The allocation of the last access. The next access is mostly in the same one.
    last: usize,
    /// What was printed.
    pub printed: String,
}

impl FlatMemory {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates, and gives the address, a multiple of 256. Between two allocations is a gap.
    pub fn allocate(&mut self, bytes: &[u8]) -> u64 {
        let end = self.allocations.last().map_or(0x1000, |(at, content)| at + content.len() as u64);
        let address = (end + 256).next_multiple_of(256);
        self.allocations.push((address, bytes.to_vec()));
        address
    }

    /// The bytes of the allocation at this address.
    ///
    /// # Panics
    /// If there is none.
    pub fn bytes(&self, address: u64) -> &[u8] {
        let found = self.allocations.binary_search_by_key(&address, |(at, _)| *at);
        &self.allocations[found.expect("an allocation begins there")].1
    }

    /// Allocates the module's variables, and gives their addresses in the order of [`Module::globals`].
    pub fn load_globals(&mut self, module: &Module) -> Vec<u64> {
        let globals = module.globals();
        let addresses: Vec<u64> = globals
            .iter()
            .map(|global| {
                let mut bytes = global.initial.clone();
                bytes.resize(usize::try_from(global.size).unwrap_or(0), 0);
                self.allocate(&bytes)
            })
            .collect();
        for (global, &at) in globals.iter().zip(&addresses) {
            for &(offset, other, plus) in &global.addresses {
                let value = addresses[other].wrapping_add_signed(plus);
                if let Some(bytes) = self.range(at + offset, 8) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        addresses
    }

    #[inline(always)]
    fn range(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let (start, content) = self.around(address)?;
        let first = usize::try_from(address - start).ok()?;
        content.get_mut(first..first.checked_add(bytes)?)
    }

    /// The last allocation that begins at an address or before it.
    #[inline(always)]
    fn around(&mut self, address: u64) -> Option<(u64, &mut [u8])> {
        let is_last = |(at, content): &(u64, Vec<u8>)| address.wrapping_sub(*at) < content.len() as u64;
        if !self.allocations.get(self.last).is_some_and(is_last) {
            self.last = self.behind(address).checked_sub(1)?;
        }
        let (at, content) = self.allocations.get_mut(self.last)?;
        Some((*at, content))
    }

    /// How many allocations begin at an address or before it.
    #[inline(never)]
    fn behind(&self, address: u64) -> usize {
        self.allocations.partition_point(|(at, _)| *at <= address)
    }

    /// The allocation that holds the accesses of all these lanes. `None` if no single allocation does.
    #[inline]
    fn around_all(&mut self, lanes: u32, addresses: &[u64; 32], bytes: u8) -> Option<(u64, &mut [u8])> {
        let ends = |(low, high): (u64, u64), lane: usize| (low.min(addresses[lane]), high.max(addresses[lane]));
        let (low, high) = each_lane(lanes).fold((u64::MAX, 0), ends);
        let (at, content) = self.around(low)?;
        ((high - at).checked_add(bytes.into())? <= content.len() as u64).then_some((at, content))
    }

    #[inline(always)]
    fn checked(&mut self, access: &Access) -> Result<&mut [u8], Refusal> {
        self.range(access.address, access.bytes.into()).ok_or_else(|| outside(access.address, access.bytes))
    }
}

#[cold]
fn outside(address: u64, bytes: u8) -> Refusal {
    Refusal::fault(format!("an access of {} at {address:#x} is in no allocation", count(bytes, "byte")))
}

impl World for FlatMemory {
    #[inline]
    fn stops(&mut self, _: &Access) -> bool {
        false
    }

    #[inline(always)]
    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        let bytes = self.checked(access)?;
        Ok(bytes::get(bytes, 0, access.bytes).unwrap_or(0))
    }

    #[inline(always)]
    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        let bytes = self.checked(access)?;
        Ok(bytes::put(bytes, 0, access.bytes, value).unwrap_or(false))
    }

    fn load_together(&mut self, access: &Access, lanes: u32, from: &[u64; 32], into: &mut [u64; 32]) -> bool {
        if let Some(count) = in_a_row(from, lanes, access.bytes) {
            let Some(words) = self.range(access.address, count * usize::from(access.bytes)) else { return false };
            let lead = lanes.trailing_zeros() as usize;
            gather_row(words, access.bytes, &mut into[lead..lead + count]);
            return true;
        }
        let Some((at, content)) = self.around_all(lanes, from, access.bytes) else { return false };
        gather(content, access.bytes, lanes, |lane| (from[lane] - at) as usize, into);
        true
    }

    fn store_together(&mut self, access: &Access, lanes: u32, to: &[u64; 32], values: &[u64; 32]) -> Option<u32> {
        if let Some(count) = in_a_row(to, lanes, access.bytes) {
            let words = self.range(access.address, count * usize::from(access.bytes))?;
            let lead = lanes.trailing_zeros() as usize;
            return Some(scatter_row(words, access.bytes, &values[lead..lead + count]) << lead);
        }
        let (at, content) = self.around_all(lanes, to, access.bytes)?;
        Some(scatter(content, access.bytes, lanes, |lane| (to[lane] - at) as usize, values))
    }

    fn print(&mut self, _: Who, text: &str) {
        self.printed.push_str(text);
    }
}
