//! Which line of the source a PTX instruction was compiled from (`.file`, `.loc`, the names in `.debug_str`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A line of the source, through inlining: a function that was inlined has the place that it was inlined at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Location {
    /// The file, as the compiler was told it.
    pub file: Arc<str>,
    /// The line, from 1. 0: the compiler gives none.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The function as the linker knows it, if it was inlined.
    pub function: Option<Arc<str>>,
    /// Where it was inlined.
    pub inlined_at: Option<Arc<Location>>,
}

impl Location {
    /// The line of the user that calls a function of the toolkit, if this is a line of such a function. Lines within CUDA's headers, and those of CCCL,
    /// help nobody.
    ///
    /// ```
    /// let text = ".version 9.0 .target sm_90 .address_size 64 .extern .func nvshmem_quiet;
    ///     .visible .entry k() { .loc 1 7 3 .loc 2 40 5, function_name $n, inlined_at 1 7 3 call.uni nvshmem_quiet, (); ret; }
    ///     .file 1 \"k.cu\" .file 2 \"/usr/local/cuda/include/cuda/atomic\"";
    /// let module = onesided_ptx::Module::parse(text)?;
    /// let (_, location) = module.place(module.externals()[0].called_at.unwrap());
    /// assert_eq!(location.unwrap().line, 40);
    /// assert_eq!(location.unwrap().of_the_user().line, 7);
    /// # Ok::<(), onesided_ptx::Error>(())
    /// ```
    pub fn of_the_user(&self) -> &Location {
        let mut lines = std::iter::successors(Some(self), |of| of.inlined_at.as_deref());
        lines.find(|of| !is_of_the_toolkit(&of.file)).unwrap_or(self)
    }
}

/// Whether a file is a header of CUDA or CCCL: of a folder of theirs in an include folder.
fn is_of_the_toolkit(file: &str) -> bool {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let is_header = |at: usize| match parts[at] {
        "cccl" => true,
        "include" => matches!(
            parts.get(at + 1),
            Some(&("cub" | "thrust" | "cuda" | "cooperative_groups" | "cooperative_groups.h"))
        ),
        _ => false,
    };
    (0..parts.len()).any(is_header)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        let mut outer = &self.inlined_at;
        while let Some(location) = outer {
            write!(f, ", inlined at {}:{}", location.file, location.line)?;
            outer = &location.inlined_at;
        }
        Ok(())
    }
}

/// One `.loc`, before the names and files are known: both may come at the end of the text.
#[derive(Clone, Debug)]
pub(crate) struct Loc<'a> {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The label of the inlined function's name in `.debug_str`.
    pub(crate) function: Option<&'a str>,
    /// File, line and column of the place that it was inlined at.
    pub(crate) inlined_at: Option<(u32, u32, u32)>,
}

/// What a text says about its sources.
#[derive(Default, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) files: BTreeMap<u32, Arc<str>>,
    pub(crate) names: BTreeMap<&'a str, Arc<str>>,
    pub(crate) locs: Vec<Loc<'a>>,
}

impl Sources<'_> {
    /// The locations of all `.loc`, in their order. For nested inlining, a `.loc` names only the place of its own call. The rest of the chain is that of
    /// the latest `.loc` at the same file, line and column.
    pub(crate) fn resolve(&self) -> Vec<Arc<Location>> {
        let mut known: BTreeMap<(u32, u32, u32), Arc<Location>> = BTreeMap::new();
        let mut all = Vec::with_capacity(self.locs.len());
        for loc in &self.locs {
            let inlined_at = loc.inlined_at.map(|place| {
                let plain = || Arc::new(self.location(place, None, None));
                known.get(&place).map_or_else(plain, Arc::clone)
            });
            let place = (loc.file, loc.line, loc.column);
            let function = loc.function.and_then(|label| self.names.get(label)).cloned();
            let location = Arc::new(self.location(place, function, inlined_at));
            // A chain is at most as deep as the calls of the source; one that grows beyond is not from a compiler.
            if depth(&location) <= 64 {
                known.insert(place, Arc::clone(&location));
            }
            all.push(location);
        }
        all
    }

    fn location(
        &self,
        (file, line, column): (u32, u32, u32),
        function: Option<Arc<str>>,
        inlined_at: Option<Arc<Location>>,
    ) -> Location {
        let file = self.files.get(&file).cloned().unwrap_or_else(|| "unknown file".into());
        Location { file, line, column, function, inlined_at }
    }
}

fn depth(location: &Location) -> usize {
    std::iter::successors(location.inlined_at.as_ref(), |outer| outer.inlined_at.as_ref()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_toolkit_are_known_by_their_folders() {
        let cuda = "/usr/local/cuda-12.4/targets/x86_64-linux/include";
        for file in ["cuda/std/detail/libcxx/include/atomic", "cub/block/block_scan.cuh", "cooperative_groups.h"] {
            assert!(is_of_the_toolkit(&format!("{cuda}/{file}")), "{file}");
        }
        assert!(is_of_the_toolkit("nvidia/cu13/include/cccl/cuda/std/__atomic/functions/cuda_ptx_generated.h"));
        for file in ["ring.cu", "include/ring.cuh", "src/cuda/ring.cuh", "include/mine/cuda/ring.cuh"] {
            assert!(!is_of_the_toolkit(file), "{file}");
        }
    }
}
