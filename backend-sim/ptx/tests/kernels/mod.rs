//! The kernels of `kernels/`, compiled by NVRTC, against what the same source means in Rust.

mod arithmetic;
mod calls;
mod gemm;
mod memory;
mod threads;
mod wgmma;
mod wmma;

use std::sync::Arc;

use onesided_ptx::{Block, FlatMemory, Launch, Module, Stop};

/// A module of `kernels/`, with its variables in a memory of its own.
pub(crate) struct Loaded {
    pub(crate) module: Arc<Module>,
    pub(crate) memory: FlatMemory,
    pub(crate) globals: Vec<u64>,
}

pub(crate) fn load(name: &str) -> Loaded {
    let path = format!("{}/kernels/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    parse(&path, &text)
}

/// The same of a text, of which a path says where it comes from.
pub(crate) fn parse(path: &str, text: &str) -> Loaded {
    let module = Arc::new(Module::parse(text).unwrap_or_else(|error| panic!("{path}: {error}")));
    let mut memory = FlatMemory::new();
    let globals = memory.load_globals(&module);
    Loaded { module, memory, globals }
}

impl Loaded {
    /// Allocates an array.
    pub(crate) fn array<T: Copy, const N: usize>(&mut self, values: &[T], bytes: fn(T) -> [u8; N]) -> u64 {
        let bytes: Vec<u8> = values.iter().flat_map(|&value| bytes(value)).collect();
        self.memory.allocate(&bytes)
    }

    pub(crate) fn read<T, const N: usize>(&self, address: u64, value: fn([u8; N]) -> T) -> Vec<T> {
        self.memory.bytes(address).chunks_exact(N).map(|bytes| value(bytes.try_into().unwrap())).collect()
    }

    /// A launch with the module's variables.
    pub(crate) fn launch(&self, grid: u32, block: u32) -> Launch {
        Launch::new(grid, block).globals(self.globals.clone())
    }

    /// Runs all blocks, one after another until each waits, again and again.
    pub(crate) fn run(&mut self, kernel: &str, launch: Launch) -> Stop {
        let launch = Arc::new(launch);
        let mut blocks: Vec<Block> = (0..launch.grid[0])
            .map(|x| Block::new(&self.module, kernel, &launch, [x, 0, 0]).unwrap_or_else(|error| panic!("{error}")))
            .collect();
        for _ in 0..1000 {
            let mut last = Stop::Finished;
            for block in &mut blocks {
                block.wake_all();
                match block.run(&mut self.memory) {
                    Stop::Finished => {}
                    Stop::Idle => last = Stop::Idle,
                    other => return other,
                }
            }
            if last == Stop::Finished {
                return last;
            }
        }
        panic!("the blocks wait for ever")
    }

    pub(crate) fn finishes(&mut self, kernel: &str, launch: Launch) {
        match self.run(kernel, launch) {
            Stop::Finished => {}
            other => panic!("{kernel}: {other:#?}"),
        }
    }
}
