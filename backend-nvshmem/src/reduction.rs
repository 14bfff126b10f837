//! Reductions, with those that the library computes wrongly if it is called once for the whole.
//!
//! The library's algorithms use a scratch of `NVSHMEM_REDUCE_SCRATCH_SIZE` bytes for each team. `MEASURED.md` has the sizes that
//! were seen to be wrong with 3.4.5 and 3.8.0. The library's header files show the reason:
//!
//! * A large reduction works in rounds. Each round sends from the source, then adds what came to the target. In place the
//!   target is the source, so from the second round on the others get sums. A reduction that fits into one round is right.
//! * A large reducescatter writes beyond the scratch: into other areas of its team, and then into those of other teams.
//!
//! So a large reduction in place is made in pieces of one round, and a large reducescatter block by block.
#![allow(unsafe_code)]

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, result};
use onesided::backend::Span;
use onesided::{At, Error, ErrorKind, Result};

use crate::bindings::cudaStream_t;
use crate::cuda::device;
use crate::memory::check;
use crate::pe::Nvshmem;
use crate::problem::Problem;
use crate::setting;
use crate::table::{Form, Reduction, function};

/// The library's scratch for reductions: bytes for each team.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scratch(usize);

/// Of which calls a reduction is composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One call.
    Whole,
    /// A call for each piece of so many bytes.
    Pieces(usize),
    /// A reduction for each block. Each PE keeps the result of its own block.
    Blocks,
    /// None: the scratch is too small for one element.
    Refused,
}

/// The variable from which the library takes the size of the scratch.
const SCRATCH_SIZE: &str = "NVSHMEM_REDUCE_SCRATCH_SIZE";

/// A round of the library holds a whole number of elements of every type only if the scratch is a multiple of this.
const STEP: usize = 128;

/// The alignment of pieces that are at least as large: the library's fast paths need it.
const ALIGNED: usize = 16;

impl Scratch {
    /// The size that the library too reads, when it is initialized.
    ///
    /// # Errors
    /// [`Problem::Variable`] if it is not a size, or one with which the library leaves elements out.
    pub(crate) fn from_environment() -> Result<Scratch, Problem> {
        Scratch::of(setting::size(SCRATCH_SIZE)?)
    }

    fn of(size: Option<usize>) -> Result<Scratch, Problem> {
        match size {
            None => Ok(Scratch(512 << 10)), // the library's own
            Some(size) if size.is_multiple_of(STEP) => Ok(Scratch(size)),
            Some(size) => {
                let why = format!("expected a multiple of {STEP} bytes, the same on all PEs");
                Err(setting::wrong(SCRATCH_SIZE, &size.to_string(), &why))
            }
        }
    }

    /// `members` is the size of the team.
    #[inline]
    fn way(self, reduction: &Reduction, members: usize) -> Way {
        let Reduction { form, dst, src, dtype, .. } = *reduction;
        if form == Form::ReduceScatter {
            // The library uses each half of the scratch in turn.
            return if src.len <= self.0 / 2 || members == 1 { Way::Whole } else { Way::Blocks };
        }
        if dst != src || members <= 2 {
            return Way::Whole;
        }
        // A round takes an eighth of one half. The contributions of all other members must fit into it.
        let piece = self.0 / 2 / 8 / (members - 1);
        match piece - piece % if piece < ALIGNED { dtype.size() } else { ALIGNED } {
            0 => Way::Refused,
            piece if dst.len <= piece => Way::Whole,
            piece => Way::Pieces(piece),
        }
    }
}

impl Nvshmem {
    /// Either form, from the host.
    pub(crate) fn reduce_from_host(&self, reduction: &Reduction, at: At) -> Result<()> {
        let call = reduction.form.name();
        if self.scratch.way(reduction, self.team_size(reduction.team)) != Way::Whole {
            let side = self.device().side(call, at)?;
            let enqueued = self.reduce_on(reduction, side, at);
            // After an error too: what was enqueued before the error uses the operands.
            let done = side.synchronize().map_err(|error| device(call, error, at));
            return enqueued.and(done);
        }
        let Some(reduce) = self.table.host_reduction(reduction) else {
            return Err(self.table.missing_reduction(reduction, "nvshmem", "", at));
        };
        let Reduction { team, dst, src, dtype, .. } = *reduction;
        let (to, from, count) = (self.memory.address(dst), self.memory.address(src), dst.len / dtype.size());
        // SAFETY: the addresses come from `Memory`, which asserts that each operand lies inside a living allocation;
        // `Pe` checked lengths and team. The count is that of the target, and the operator exists for the type.
        let status = unsafe { reduce(self.handle(team), to, from, count) };
        check(status, call, call, at)
    }

    /// Either form, on a stream.
    #[inline]
    pub(crate) fn reduce_on(&self, reduction: &Reduction, stream: &CudaStream, at: At) -> Result<()> {
        match self.scratch.way(reduction, self.team_size(reduction.team)) {
            Way::Whole => self.call_on(reduction, stream, at),
            Way::Pieces(most) => self.pieces_on(reduction, most, stream, at),
            Way::Blocks => self.scatter_on(reduction, stream, at),
            Way::Refused => Err(self.refused(reduction, at)),
        }
    }

    #[cold]
    fn refused(&self, reduction: &Reduction, at: At) -> Error {
        let members = self.team_size(reduction.team);
        let message = format!(
            "{members} PEs reduce in place only with a larger NVSHMEM_REDUCE_SCRATCH_SIZE, on all PEs alike, or into \
             other memory"
        );
        Error::new(ErrorKind::Unsupported, reduction.form.name(), message, at)
    }

    /// One call of the library.
    #[inline]
    fn call_on(&self, reduction: &Reduction, stream: &CudaStream, at: At) -> Result<()> {
        let Some(reduce) = self.table.stream_reduction(reduction) else {
            return Err(self.table.missing_reduction(reduction, "nvshmemx", "_on_stream", at));
        };
        let Reduction { form, team, dst, src, dtype, .. } = *reduction;
        let (to, from, count) = (self.memory.address(dst), self.memory.address(src), dst.len / dtype.size());
        let s: cudaStream_t = stream.cu_stream().cast();
        // SAFETY: as from the host; the stream is alive and of the context that is bound.
        let status = unsafe { reduce(self.handle(team), to, from, count, s) };
        check(status, form.name(), form.name(), at)
    }

    /// A reduction in place: a call for each piece in turn.
    #[cold]
    fn pieces_on(&self, reduction: &Reduction, most: usize, stream: &CudaStream, at: At) -> Result<()> {
        pieces(reduction, most).try_for_each(|piece| self.call_on(&piece, stream, at))
    }

    /// A reducescatter: a reduction of each block in turn, into the target. My own block is copied away until all are done.
    /// Between blocks the PEs meet, because no target may be written before its PE has finished the block before. If
    /// something fails here, this PE still takes part in every block: the others count on it.
    #[cold]
    fn scatter_on(&self, scatter: &Reduction, stream: &CudaStream, at: At) -> Result<()> {
        const CALL: &str = "reducescatter";
        let Reduction { team, dst, .. } = *scatter;
        let my_pe = function!(self.table, nvshmem_team_my_pe, CALL, at);
        let sync = function!(self.table, nvshmemx_team_sync_on_stream, CALL, at);
        // SAFETY: a team that this PE is in.
        let mine = unsafe { my_pe(self.handle(team)) } as usize;
        let (target, s) = (self.memory.address(dst) as CUdeviceptr, stream.cu_stream());
        let (workspace, mut done) = match self.workspaces.take(dst.len, stream) {
            Ok(workspace) => (Some(workspace), Ok(())),
            Err(error) => (None, Err(device(CALL, error, at))),
        };
        let mut also = |step: Result<()>| {
            if done.is_ok() {
                done = step;
            }
        };
        for (member, block) in blocks(scatter).enumerate() {
            if member > 0 {
                // SAFETY: as for the reduction.
                also(check(unsafe { sync(self.handle(team), s.cast()) }, "nvshmemx_team_sync_on_stream", CALL, at));
            }
            also(self.call_on(&block, stream, at));
            if let Some(workspace) = workspace.as_ref().filter(|_| member == mine) {
                // SAFETY: the target has so many bytes, as `Memory` asserted, and the workspace as many or more; until it is
                // put back it is this stream's alone.
                let copied = unsafe { result::memcpy_dtod_async(workspace.memory(), target, dst.len, s) };
                also(copied.map_err(|error| device(CALL, error, at)));
            }
        }
        if let Some(workspace) = workspace {
            // SAFETY: as above.
            let copied = unsafe { result::memcpy_dtod_async(target, workspace.memory(), dst.len, s) };
            let put_back = self.workspaces.put_back(workspace, stream);
            also(copied.and(put_back).map_err(|error| device(CALL, error, at)));
        }
        done
    }
}

/// The pieces of a reduction: of `most` bytes each, and a rest.
fn pieces(whole: &Reduction, most: usize) -> impl Iterator<Item = Reduction> + use<> {
    let whole = *whole;
    (0..whole.dst.len).step_by(most).map(move |start| {
        let len = most.min(whole.dst.len - start);
        let part = |span: Span| Span { start: span.start + start, len, ..span };
        Reduction { dst: part(whole.dst), src: part(whole.src), ..whole }
    })
}

/// The reductions of a reducescatter: each member's block, in the order of the members, into the target.
fn blocks(scatter: &Reduction) -> impl Iterator<Item = Reduction> + use<> {
    let scatter = *scatter;
    (0..scatter.src.len).step_by(scatter.dst.len).map(move |start| {
        let src = Span { start: scatter.src.start + start, len: scatter.dst.len, ..scatter.src };
        Reduction { form: Form::Reduce, src, ..scatter }
    })
}

#[cfg(test)]
mod tests {
    use onesided::backend::{AllocId, TeamId};
    use onesided::{DType, ReduceOp};

    use super::*;

    const USUAL: Scratch = Scratch(512 << 10);

    fn reduction(form: Form, dst: Span, src: Span) -> Reduction {
        Reduction { form, team: TeamId(0), dst, src, dtype: DType::U32, op: ReduceOp::Sum }
    }

    fn span(alloc: u32, start: usize, len: usize) -> Span {
        Span { alloc: AllocId(alloc), start, len }
    }

    #[test]
    fn a_scratch_that_is_not_understood_is_refused() {
        let size = |size| Scratch::of(size).map(|scratch| scratch.0);
        assert_eq!([size(None), size(Some(1280))], [Ok(512 << 10), Ok(1280)]);
        let why = size(Some(1000)).unwrap_err().to_string();
        assert_eq!(why, "NVSHMEM_REDUCE_SCRATCH_SIZE=1000: expected a multiple of 128 bytes, the same on all PEs");
    }

    /// What was measured: 3 PEs are right up to 16 KiB, 4 PEs as far as one round reaches.
    #[test]
    fn in_place_more_than_two_go_in_pieces_of_one_round() {
        let way = |members, len| USUAL.way(&reduction(Form::Reduce, span(1, 8, len), span(1, 8, len)), members);
        assert_eq!([way(1, 1 << 30), way(2, 1 << 30)], [Way::Whole; 2]);
        assert_eq!([way(3, 4), way(3, 16384), way(3, 16388)], [Way::Whole, Way::Whole, Way::Pieces(16384)]);
        assert_eq!([way(4, 10912), way(4, 10916)], [Way::Whole, Way::Pieces(10912)]);
        assert_eq!([way(8193, 4), way(8194, 4)], [Way::Whole, Way::Refused]);
    }

    /// In one round there is room for the piece from all others, and it begins where fast paths take it.
    #[test]
    fn pieces_fit_into_a_round_and_are_aligned() {
        for (members, dtype) in (3..100).flat_map(|members| DType::ALL.map(|dtype| (members, dtype))) {
            let whole = Reduction { dtype, ..reduction(Form::Reduce, span(1, 0, 1 << 20), span(1, 0, 1 << 20)) };
            let Way::Pieces(piece) = USUAL.way(&whole, members) else { panic!("{members} members: no pieces") };
            assert!(piece * (members - 1) <= 32 << 10 && piece.is_multiple_of(16), "{members} members: {piece}");
        }
    }

    #[test]
    fn into_other_memory_a_reduction_is_one_call() {
        let other = reduction(Form::Reduce, span(1, 0, 1 << 30), span(1, 1 << 30, 1 << 30));
        assert_eq!(USUAL.way(&other, 100), Way::Whole);
    }

    #[test]
    fn a_reducescatter_beyond_the_scratch_goes_block_by_block() {
        let way = |len, members| {
            USUAL.way(&reduction(Form::ReduceScatter, span(1, 0, len / members), span(2, 0, len)), members)
        };
        assert_eq!([way(256 << 10, 2), way((256 << 10) + 8, 2)], [Way::Whole, Way::Blocks]);
        assert_eq!(way(1 << 30, 1), Way::Whole);
    }

    #[test]
    fn pieces_are_the_whole() {
        let whole = reduction(Form::Reduce, span(3, 100, 25), span(4, 200, 25));
        let parts: Vec<_> = pieces(&whole, 10).map(|part| (part.dst, part.src)).collect();
        let expected = [(100, 200, 10), (110, 210, 10), (120, 220, 5)];
        assert_eq!(parts, expected.map(|(to, from, len)| (span(3, to, len), span(4, from, len))));
        assert!(pieces(&whole, 10).all(|part| part.form == Form::Reduce && part.op == ReduceOp::Sum));
    }

    #[test]
    fn blocks_are_reductions_to_the_same_target() {
        let scatter = reduction(Form::ReduceScatter, span(3, 100, 8), span(4, 200, 24));
        let parts: Vec<_> = blocks(&scatter).map(|part| (part.form, part.dst, part.src)).collect();
        let expected = [200, 208, 216].map(|start| (Form::Reduce, span(3, 100, 8), span(4, start, 8)));
        assert_eq!(parts, expected);
    }
}
