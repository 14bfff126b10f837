//! What a launch gives a kernel, and whether the kernel can take it.

use std::fmt;

use super::fault::Who;
use crate::count::count;
use crate::module::{Kernel, Module};

/// The grid, the parameters and everything else that all blocks of a launch share.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// Blocks in the grid.
    pub grid: [u32; 3],
    /// Threads in a block.
    pub block: [u32; 3],
    /// Blocks in a cluster, which are those that the [kernel](Kernel::cluster) was compiled for, if it was. `None`: no blocks form clusters.
    pub cluster: Option<[u32; 3]>,
    /// The bytes of all parameters: each at its [`offset`](crate::Parameter::offset).
    pub parameters: Vec<u8>,
    /// Bytes of shared memory besides what the kernel declares.
    pub dynamic_shared: u32,
    /// The addresses of the module's variables, in the order of [`Module::globals`].
    pub globals: Vec<u64>,
    /// The address of the grid's workspace in global memory, 0 if the launch is not cooperative. Its second word of 4 bytes is the
    /// barrier of the grid; it begins as zero.
    pub workspace: u64,
    /// What is looked for.
    pub checks: Checks,
    /// A block that executes more instructions is given up: [`FaultKind::StepLimit`](crate::FaultKind::StepLimit).
    pub max_steps: u64,
}

/// What a block is checked for, besides what can never be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checks {
    /// Races between the threads of the block, in shared memory.
    pub races: bool,
    /// Reads of shared memory that nobody wrote.
    pub uninitialized: bool,
    /// Not a check: the world is told what orders threads, even if races are not looked for.
    pub order: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { races: true, uninitialized: true, order: false }
    }
}

impl Launch {
    /// A grid of `grid` blocks of `block` threads each, in one dimension, without parameters.
    pub fn new(grid: u32, block: u32) -> Self {
        Self {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: None,
            parameters: Vec::new(),
            dynamic_shared: 0,
            globals: Vec::new(),
            workspace: 0,
            checks: Checks::default(),
            max_steps: 100_000_000,
        }
    }

    /// Appends a parameter of 1, 2, 4 or 8 bytes, at its natural alignment.
    ///
    /// # Panics
    /// If the number of bytes is another one.
    #[must_use]
    pub fn parameter(mut self, bytes: &[u8]) -> Self {
        assert!(matches!(bytes.len(), 1 | 2 | 4 | 8), "a parameter of {} bytes: set `parameters` instead", bytes.len());
        self.parameters.resize(self.parameters.len().next_multiple_of(bytes.len()), 0);
        self.parameters.extend_from_slice(bytes);
        self
    }

    /// Gives the module's variables these addresses.
    #[must_use]
    pub fn globals(mut self, addresses: Vec<u64>) -> Self {
        self.globals = addresses;
        self
    }

    /// The dimensions of a cluster, in blocks.
    pub(super) fn cluster_size(&self) -> [u32; 3] {
        self.cluster.unwrap_or([1; 3])
    }

    /// How many blocks a cluster has.
    pub fn blocks_in_cluster(&self) -> u32 {
        self.cluster_size().iter().product()
    }

    /// How many clusters the grid has, in each dimension.
    pub(super) fn clusters(&self) -> [u32; 3] {
        let size = self.cluster_size();
        std::array::from_fn(|axis| self.grid[axis] / size[axis])
    }

    /// The position of the first block of a cluster, by the cluster's number. Without clusters, it is that of a block.
    pub fn first_block(&self, cluster: u64) -> [u32; 3] {
        let ([x, y, _], size) = (self.clusters().map(u64::from), self.cluster_size());
        let position = [cluster % x, cluster / x % y, cluster / x / y];
        std::array::from_fn(|axis| position[axis] as u32 * size[axis])
    }

    /// The position in its cluster of the block with this rank.
    pub(super) fn in_cluster(&self, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.cluster_size();
        [rank % x, rank / x % y, rank / x / y]
    }

    /// How many threads a block has.
    pub fn threads_in_block(&self) -> u32 {
        self.block.iter().product()
    }

    /// From the number of a block's first thread to that of the next block of its cluster, which begins another warp.
    pub(super) fn pitch(&self) -> u32 {
        let threads = self.threads_in_block();
        if self.blocks_in_cluster() == 1 { threads } else { threads.next_multiple_of(32) }
    }

    /// How many numbers the threads of a [`Block`](crate::Block) have. In a cluster, numbers that fill up a block's last warp are those of no thread.
    pub fn numbers(&self) -> u32 {
        self.blocks_in_cluster() * self.pitch()
    }

    /// The thread of that number in the cluster whose first block is at `first`: threads of a block have numbers that follow each other.
    #[inline]
    pub fn who(&self, first: [u32; 3], thread: u32) -> Who {
        if self.cluster.is_none() { Who::of(first, self.block, thread) } else { self.who_in_cluster(first, thread) }
    }

    #[cold]
    fn who_in_cluster(&self, first: [u32; 3], thread: u32) -> Who {
        let within = self.in_cluster(thread / self.pitch());
        Who::of(std::array::from_fn(|axis| first[axis] + within[axis]), self.block, thread % self.pitch())
    }

    /// Whether the grid can be divided into its clusters, and whether the kernel was compiled for no others.
    fn check_clusters(&self, kernel: &Kernel) -> Result<(), String> {
        let text = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
        if kernel.cluster.is_some() && kernel.cluster != self.cluster {
            let of = |cluster: Option<[u32; 3]>| {
                cluster.map_or("no clusters".into(), |size| format!("clusters of {} blocks", text(size)))
            };
            return Err(format!("{}; it was compiled for {}", of(self.cluster), of(kernel.cluster)));
        }
        let Some(size) = self.cluster else { return Ok(()) };
        let blocks = size.iter().fold(1, |all: u64, &n| all.saturating_mul(n.into()));
        if blocks == 0 || blocks > MOST_BLOCKS {
            return Err(format!("clusters of {} blocks; at least 1 and at most {MOST_BLOCKS} in all", text(size)));
        }
        if (0..3).any(|axis| !self.grid[axis].is_multiple_of(size[axis])) {
            return Err(format!(
                "a grid of {} blocks in clusters of {}: in each dimension, it has a multiple of a cluster's blocks",
                text(self.grid),
                text(size)
            ));
        }
        // groups of warps are counted over all threads of a cluster
        match blocks > 1 && kernel.multiplies_in_groups && !self.threads_in_block().is_multiple_of(128) {
            true => Err(format!(
                "blocks of {}; in the simulator, a block of a cluster that multiplies in warp groups has a multiple of 128",
                count(self.threads_in_block(), "thread")
            )),
            false => Ok(()),
        }
    }

    pub(super) fn check(&self, module: &Module, kernel: &Kernel, position: [u32; 3]) -> Result<(), LaunchError> {
        let fail = |what: String| Err(LaunchError(format!("{}: {what}", kernel.name)));
        let [x, y, z] = self.block;
        let threads = u64::from(x) * u64::from(y) * u64::from(z);
        if threads == 0 || threads > 1024 || x > 1024 || y > 1024 || z > 64 {
            return fail(format!(
                "a block of {x} x {y} x {z} threads; at least 1 and at most 1024 x 1024 x 64 and 1024 in all"
            ));
        }
        if self.grid.contains(&0) || self.grid[0] > i32::MAX as u32 || self.grid[1] > 65535 || self.grid[2] > 65535 {
            let [x, y, z] = self.grid;
            return fail(format!(
                "a grid of {x} x {y} x {z} blocks; at least 1 and at most 2147483647 x 65535 x 65535"
            ));
        }
        if let Err(what) = self.check_clusters(kernel) {
            return fail(what);
        }
        if (0..3).any(|axis| position[axis] >= self.grid[axis]) {
            return fail(format!("block {position:?} is outside of the grid"));
        }
        if kernel.max_threads.is_some_and(|most| threads > most.into()) {
            return fail(format!(
                "{} a block; it was compiled for at most {}",
                count(threads, "thread"),
                kernel.max_threads.unwrap_or(0)
            ));
        }
        if kernel.required_threads.is_some_and(|required| required != self.block) {
            return fail(format!(
                "blocks of {:?} threads; it was compiled for {:?}",
                self.block,
                kernel.required_threads.unwrap_or_default()
            ));
        }
        if self.parameters.len() != kernel.parameter_bytes as usize {
            return fail(format!(
                "{} of parameters given, it takes {}",
                count(self.parameters.len(), "byte"),
                kernel.parameter_bytes
            ));
        }
        let given = self.dynamic_shared > 0;
        let begin =
            if given { kernel.shared_bytes.next_multiple_of(kernel.dynamic_align) } else { kernel.shared_bytes };
        let shared = u64::from(begin) + u64::from(self.dynamic_shared);
        if shared > MOST_SHARED {
            return fail(format!("{shared} bytes of shared memory; a block has at most {MOST_SHARED}"));
        }
        if self.globals.len() != module.globals().len() {
            return fail(format!(
                "{} addresses of variables are given, the module has {}",
                self.globals.len(),
                module.globals().len()
            ));
        }
        if kernel.uses_grid_sync && self.workspace == 0 {
            return fail("it synchronizes the grid: launch it cooperatively".into());
        }
        Ok(())
    }
}

/// 227 KiB: what a block can have on sm_90.
const MOST_SHARED: u64 = 227 << 10;

/// Blocks of a cluster that every GPU with clusters takes.
const MOST_BLOCKS: u64 = 8;

/// Why a kernel cannot be launched so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError(pub(super) String);

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LaunchError {}
