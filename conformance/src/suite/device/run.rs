//! The host program of the chapter's cases: memory, a launch, and what is seen of it.

use onesided::{Argument, Backend, Grid, Kernel, Pe, Result, Source, Stream, SymmetricBuf, TeamConfig, args};

use crate::case::{Seen, seen};

/// The memory that every kernel is given.
pub(super) struct Memory {
    /// 100 * rank + index.
    pub(super) mine: SymmetricBuf<i32>,
    pub(super) data: SymmetricBuf<i32>,
    pub(super) words: SymmetricBuf<u64>,
    pub(super) out: SymmetricBuf<i32>,
}

impl Memory {
    /// Launches a kernel with the memory, and what else it takes.
    pub(super) fn launch<B: Backend>(
        &self,
        pe: &Pe<B>,
        stream: &Stream<B>,
        kernel: &Kernel<'_, B>,
        grid: &Grid,
        further: &[Argument],
    ) -> Result<()> {
        let Memory { mine, data, words, out } = self;
        let arguments = [args![mine, data, words, out], further].concat();
        // SAFETY: every kernel of the chapter takes these, and stays inside them, but for some of cases that end in a verdict.
        #[expect(unsafe_code, reason = "kernels are launched")]
        unsafe {
            pe.on(stream).launch(kernel, grid, &arguments)
        }
    }
}

/// Does some work on a stream, and completes it on all PEs. What is seen is what stands in `data` and `words` then, and in `out`.
pub(super) fn with_memory<B: Backend>(
    pe: &Pe<B>,
    work: impl FnOnce(&Stream<B>, &Memory) -> Result<()>,
) -> Result<Seen> {
    let (mine, data) = (pe.alloc::<i32>(8)?, pe.alloc_zeroed::<i32>(32)?);
    let (words, out) = (pe.alloc_zeroed::<u64>(8)?, pe.alloc_zeroed::<i32>(8)?);
    let values: Vec<i32> = (0..8).map(|i| 100 * pe.my_pe() as i32 + i).collect();
    pe.write(&mine, &values)?;
    pe.host().barrier_all()?;
    let (stream, memory) = (pe.stream()?, Memory { mine, data, words, out });
    work(&stream, &memory)?;
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let Memory { mine, data, words, out } = memory;
    let saw =
        seen("data", pe.read(data.slice(..8))?).and("words", pe.read(words.slice(..4))?).and("out", pe.read(&out)?);
    pe.free(out)?;
    pe.free(words)?;
    pe.free(data)?;
    pe.free(mine)?;
    Ok(saw)
}

/// Runs a kernel on every PE.
pub(super) fn run<B: Backend>(pe: &Pe<B>, source: &Source, name: &str, grid: &Grid) -> Result<Seen> {
    let module = pe.module(source)?;
    let kernel = module.kernel(name)?;
    with_memory(pe, |stream, memory| memory.launch(pe, stream, &kernel, grid, &[]))
}

/// Runs a kernel on PEs 0 and 2, which are a team.
pub(super) fn run_on_a_team<B: Backend>(pe: &Pe<B>, source: &Source, name: &str, grid: &Grid) -> Result<Seen> {
    let module = pe.module(source)?;
    let kernel = module.kernel(name)?;
    let team = pe.team_split_strided(pe.world(), 0, 2, 2, TeamConfig::default())?;
    let saw = with_memory(pe, |stream, memory| match &team {
        Some(team) => memory.launch(pe, stream, &kernel, grid, args![team]),
        None => Ok(()),
    })?;
    if let Some(team) = team {
        pe.team_destroy(team)?;
    }
    Ok(saw)
}
