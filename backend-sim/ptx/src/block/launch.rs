//! What a launch gives a kernel, and whether the kernel can take it.

use std::fmt;

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

/// Why a kernel cannot be launched so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError(pub(super) String);

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LaunchError {}
