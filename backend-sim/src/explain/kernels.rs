//! Changes of kernels that may repair a finding: they follow what its races lack.

use onesided::{At, Place, Result};
use onesided_ptx::Beside::{self, Behind, BehindCondition, InFront, InFrontOfCondition};
use onesided_ptx::Change;
use onesided_ptx::DeviceCall::{
    self, BarrierAll, BarrierAllBlock, BulkWait, ClusterSync, CopyWait, Fence, Flush, ProxyFence, Quiet, SyncAll,
    SyncAllBlock, Syncthreads, Syncwarp, Threadfence, ThreadfenceBlock, ThreadfenceSystem,
};

use super::edit::Edit;
use super::fix::{Fix, Search};
use super::lacking::{Lacking, lacking};
use super::trial::Trial;
use crate::kernel::kernel_text;
use crate::race::{MissingEdge, Reach, Side};
use crate::verdict::{Verdict, VerdictKind};

/// So many changes may be needed together: a flag often needs a fence on both sides, and a strong access.
const TOGETHER: usize = 3;

impl Search<'_, '_> {
    /// A change of kernels. Where it makes another edge missing, the next change is tried together with it.
    pub(super) fn in_kernels(&mut self, found: &Verdict) -> Result<Option<Fix>> {
        let fix = self.where_edges_are_missing(lacking(found))?;
        match found.kind {
            VerdictKind::Kernel { at, races_with: Some(other), .. } if fix.is_none() => self.in_shared(other, at),
            _ => Ok(fix),
        }
    }

    /// What the kernel's threads may lack between two accesses to shared memory: to meet, or to wait for a copy.
    fn in_shared(&mut self, after: At, before: At) -> Result<Option<Fix>> {
        let places = around(after, before);
        let one = [Syncwarp, ProxyFence, CopyWait, BulkWait, Syncthreads, ClusterSync];
        let waits = [CopyWait, BulkWait].into_iter();
        let two = waits
            .flat_map(|wait| places.iter().map(move |&place| [wait, Syncthreads].map(|call| edit_at(call, place))));
        let two = two.map(|both| both.into_iter().flatten().collect());
        self.one_of(&[], at_each(&one, &places).into_iter().chain(two).collect()).map(std::result::Result::ok)
    }

    /// The edge that the first race lacks; and together with it what the first one lacks that is left then.
    fn where_edges_are_missing(&mut self, mut races: Vec<Lacking>) -> Result<Option<Fix>> {
        let mut edits = Vec::new();
        while edits.len() < TOGETHER
            && let Some(race) = races.first()
        {
            let changes = changes_for(race).into_iter().filter(|more| !more.iter().all(|edit| edits.contains(edit)));
            let changes = changes.collect();
            match self.one_of(&edits, changes)? {
                Ok(fix) => return Ok(Some(fix)),
                Err(others) => {
                    let goes_on = |left: &[Lacking]| !left.is_empty() && !left.contains(race);
                    let Some((next, left)) = others.into_iter().find(|(_, left)| goes_on(left)) else { break };
                    (edits, races) = (next, left);
                }
            }
        }
        Ok(None)
    }
}

/// Changes that were tried together, and the races that are left with them.
type Tried = (Vec<Edit>, Vec<Lacking>);

impl Search<'_, '_> {
    /// The first of these changes that repairs the finding, together with what was changed before. If none does, what is left with each.
    fn one_of(&mut self, before: &[Edit], changes: Vec<Vec<Edit>>) -> Result<std::result::Result<Fix, Vec<Tried>>> {
        let mut all_fail = self.is_weakest;
        self.is_weakest &= before.is_empty(); // not all pairs are tried
        let all: Vec<Vec<Edit>> = changes.into_iter().map(|change| [before, &change].concat()).collect();
        self.trials.expect(all.iter().cloned());
        let mut failed = Vec::new();
        for edits in all {
            let trial = self.trials.of(&edits)?;
            match &trial {
                Trial::Fails(left) => failed.push((edits.clone(), left.clone())),
                _ => all_fail = false,
            }
            if let Some(fix) = self.judged(None, edits, trial)? {
                return Ok(Ok(fix));
            }
        }
        self.is_weakest = all_fail;
        Ok(Err(failed))
    }
}

/// What may make the missing edge of a race, the weakest first.
fn changes_for(race: &Lacking) -> Vec<Vec<Edit>> {
    let instead = |at: At, changes: &[Change]| -> Vec<Vec<Edit>> {
        changes.iter().filter_map(|&change| edit(at, change)).map(|one| vec![one]).collect()
    };
    match race.missing {
        MissingEdge::Fence { after, before, .. } | MissingEdge::BlocksFence { after, before, .. } => {
            at_each(&[ThreadfenceSystem, Fence, Quiet], &[(after, Behind), (before, InFront)])
        }
        MissingEdge::Quiet { after, before } => {
            // a fence orders what is sent, and no get
            at_each(if race.fetches { &[Quiet] } else { &[Fence, Quiet] }, &[(after, Behind), (before, InFront)])
        }
        MissingEdge::Flush { after, before } => at_each(&[Flush, Quiet], &[(after, Behind), (before, InFront)]),
        MissingEdge::ReleasingFence { after, flag, reach } => {
            at_each(fences(reach), &[(after, Behind), (flag, InFront)])
        }
        MissingEdge::AcquiringFence { read, before, reach } => {
            at_each(fences(reach), &[(read, Behind), (before, InFront)])
        }
        MissingEdge::ReadersFence { read, reach, .. } => at_each(fences(reach), &[(read, Behind)]),
        MissingEdge::Threads { after, before, side, cluster } => {
            let meetings: &[DeviceCall] = if cluster { &[ClusterSync] } else { &[Syncwarp, Syncthreads] };
            let widest = &meetings[meetings.len() - 1..];
            match side {
                // the run may have the two in another order than the program means
                Side::Both => at_each(meetings, &[around(after, before), around(before, after)].concat()),
                Side::First => at_each(widest, &[(after, Behind), (after, BehindCondition)]),
                Side::Second => at_each(widest, &[(before, InFront), (before, InFrontOfCondition)]),
            }
        }
        MissingEdge::SystemFence { at } | MissingEdge::GpuFence { at } => instead(at, &[Change::Gpu, Change::System]),
        MissingEdge::Scope { at, also, .. } => {
            let both = |change| [Some(at), also].into_iter().flatten().filter_map(|at| edit(at, change)).collect();
            Vec::from([Change::Gpu, Change::System].map(both))
        }
        MissingEdge::StrongLoad { at } | MissingEdge::StrongStore { at, .. } | MissingEdge::Atomic { at, .. } => {
            instead(at, &[Change::Volatile])
        }
        MissingEdge::PlainLoad { at } => instead(at, &[Change::Plain]),
        MissingEdge::Wait { at } => instead(at, &[Change::SignalFetch]),
        MissingEdge::Copy { at, before, writes: true } => at_each(&[BulkWait], &[(at, Behind), (before, InFront)]),
        MissingEdge::Barrier { after, before }
        | MissingEdge::Answer { after, before }
        | MissingEdge::Through { after, before, .. } => {
            at_each(&[SyncAll, SyncAllBlock, BarrierAll, BarrierAllBlock], &around(after, before))
        }
        // another protocol is needed, or a call of the host
        MissingEdge::Synchronize { .. }
        | MissingEdge::Blocks { .. }
        | MissingEdge::Copy { writes: false, .. }
        | MissingEdge::OneThread { .. }
        | MissingEdge::Reduction { .. }
        | MissingEdge::OneSize { .. } => Vec::new(),
    }
    .into_iter()
    .filter(|edits: &Vec<Edit>| !edits.is_empty())
    .collect()
}

/// Places between two lines for a call that others make, too.
fn around(after: At, before: At) -> [(At, Beside); 4] {
    [(after, Behind), (before, InFront), (after, BehindCondition), (before, InFrontOfCondition)]
}

/// Each call at each line, behind it or in front of it.
fn at_each(calls: &[DeviceCall], places: &[(At, Beside)]) -> Vec<Vec<Edit>> {
    let all = calls.iter().flat_map(|&call| places.iter().filter_map(move |&place| edit_at(call, place)));
    all.map(|edit| vec![edit]).collect()
}

/// A call beside a line.
fn edit_at(call: DeviceCall, (at, beside): (At, Beside)) -> Option<Edit> {
    edit(at, Change::Insert(call, beside))
}

/// A change at a line of a kernel: in a function that was inlined from a file that nobody gave, such as a header of the toolkit, at its call.
/// `None` if the line is one of the host.
fn edit(at: At, change: Change) -> Option<Edit> {
    let Place::Foreign(_) = at.place() else { return None };
    let own = std::iter::successors(Some(at), At::inlined_at).find(|at| kernel_text(at.file()).is_some());
    let own = own.unwrap_or(at);
    let at = At::foreign(own.file(), own.line(), own.column(), own.function());
    Some(Edit::InKernel { at, change })
}

/// The fences that reach so far, the weakest first.
fn fences(reach: Reach) -> &'static [DeviceCall] {
    match reach {
        Reach::Block => &[ThreadfenceBlock, Threadfence, ThreadfenceSystem],
        Reach::Gpu | Reach::System => &[Threadfence, ThreadfenceSystem],
    }
}
