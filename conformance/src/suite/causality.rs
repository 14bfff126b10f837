//! Litmus tests about causality: one PE sees a value and tells another. Does the other see the value too?
//!
//! Notation and names are those of `litmus.rs`. The memory of one PE is one memory for all readers, so a blocking read
//! that saw a value has settled it for everyone. Outcomes that need reads out of order are in the cases with
//! non-blocking gets (`_nbi`).

use onesided::{Backend, Pe, Result, SymmetricSlice};

use super::litmus::{set, wait};
use super::order::Between;
use crate::case::{Case, Seen, cases, seen};

/// This part of the chapter `litmus`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        wrc: 3,
        wrc_fenced: 3,
        wrc_nbi: 3 racy,
        wrc_nbi_fenced: 3 racy,
        wrc_nbi_quiet: 3 racy,
        rwc: 3 => |case| case.needs_host_atomics(),
        rwc_fenced: 3 => |case| case.needs_host_atomics(),
        rwc_get_fenced: 3 racy,
        rwc_get_quiet: 3 racy,
        isa2: 3 racy,
        isa2_fenced: 3,
        isa2_across_targets_fenced: 3 racy,
        isa2_across_targets_quiet: 3,
        iriw: 4 => |case| case.needs_host_atomics(),
        iriw_fenced: 4 => |case| case.needs_host_atomics(),
        iriw_nbi_fenced: 4 racy,
        iriw_copies: 4 => |case| case.needs_host_atomics(),
        iriw_copies_fenced: 4 => |case| case.needs_host_atomics(),
    ]
}

/// Write-to-read causality: PE 0 signals `x@1`; PE 1 waits for it and signals `y@2`; PE 2 waits for that and gets
/// `x@1`. PE 1's wait has seen `x`, so it is 1.
fn wrc<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    causality(pe, Between::Nothing)
}

/// The same with a fence.
fn wrc_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    causality(pe, Between::Fence)
}

fn causality<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, y) = (words.signal(0), words.signal(1));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => set(pe, x, 1)?,
        1 => {
            wait(pe, x)?;
            between.call(pe)?;
            set(pe, y, 2)?;
        }
        _ => {
            wait(pe, y)?;
            saw = seen("x", pe.host().g(words.at(0), 1)?);
        }
    }
    pe.free(words)?;
    Ok(saw)
}

/// WRC with both words on PE 2, where PE 1 reads `x` by a non-blocking get and then puts `y`: the get may read late,
/// so PE 1 may find `x` = 1 although PE 2 saw `y` = 1 and, after it, `x` = 0.
fn wrc_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    causality_nbi(pe, Between::Nothing)
}

/// A fence does not order gets: the outcome is still possible. Control: `wrc_nbi_quiet`.
fn wrc_nbi_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    causality_nbi(pe, Between::Fence)
}

/// With a quiet it is not possible. Control: `wrc_nbi_fenced`.
fn wrc_nbi_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    causality_nbi(pe, Between::Quiet)
}

fn causality_nbi<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (x, y, got) = (words.at(0), words.at(1), words.at(2));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => pe.host().p(x, 1, 2)?,
        1 => {
            pe.host().get_nbi(got, x, 2)?;
            between.call(pe)?;
            pe.host().p(y, 1, 2)?;
            pe.host().quiet()?;
            saw = seen("x", pe.read(got)?[0]);
        }
        _ => saw = seen("y", pe.read(y)?[0]).and("x", pe.read(x)?[0]),
    }
    pe.free(words)?;
    Ok(saw)
}

/// Read-to-write causality, all on PE 1: PE 0 signals `x`; PE 1 fetches `x`, then `y`; PE 2 signals `y`, then fetches
/// `x`. PE 1 may find 1 and 0, and PE 2 then 0, because PE 2's signal is still in flight.
fn rwc<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    read_to_write(pe, Between::Nothing, |pe, x| pe.host().atomic_fetch(x, 1))
}

/// With a fence it is not possible: the fetch is an atomic to the same target. Control: `rwc`.
fn rwc_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    read_to_write(pe, Between::Fence, |pe, x| pe.host().atomic_fetch(x, 1))
}

/// With a get in place of the fetch it is possible: a fence does not order gets. Control: `rwc_get_quiet`.
fn rwc_get_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    read_to_write(pe, Between::Fence, |pe, x| pe.host().g(x, 1))
}

/// With a get and a quiet it is not possible. Control: `rwc_get_fenced`.
fn rwc_get_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    read_to_write(pe, Between::Quiet, |pe, x| pe.host().g(x, 1))
}

fn read_to_write<B: Backend>(
    pe: &Pe<B>,
    between: Between,
    fetch: impl Fn(&Pe<B>, SymmetricSlice<'_, u64>) -> Result<u64>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, y) = (words.signal(0), words.signal(1));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => set(pe, x, 1)?,
        1 => saw = seen("x", pe.host().signal_fetch(x)?).and("y", pe.host().signal_fetch(y)?),
        _ => {
            set(pe, y, 1)?;
            between.call(pe)?;
            saw = seen("x", fetch(pe, words.at(0))?);
        }
    }
    pe.free(words)?;
    Ok(saw)
}

/// ISA2: PE 0 puts `x@1` and signals `y@1`; PE 1 waits and signals `z@2`; PE 2 waits and gets `x@1`. Unfenced, it may
/// be stale.
fn isa2<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    handed_on(pe, 1, Between::Nothing)
}

/// With a fence on PE 0 it is there, and the order holds for the third PE too. Control: `isa2`.
fn isa2_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    handed_on(pe, 1, Between::Fence)
}

/// With `x` on PE 2 the fence has two targets, which it does not order: `x` may be stale. Control:
/// `isa2_across_targets_quiet`.
fn isa2_across_targets_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    handed_on(pe, 2, Between::Fence)
}

/// A quiet orders both targets: `x` is there. Control: `isa2_across_targets_fenced`.
fn isa2_across_targets_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    handed_on(pe, 2, Between::Quiet)
}

/// ISA2 with `x` on PE `home`.
fn handed_on<B: Backend>(pe: &Pe<B>, home: usize, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (x, y, z) = (words.at(0), words.signal(1), words.signal(2));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => {
            pe.host().p(x, 1, home)?;
            between.call(pe)?;
            set(pe, y, 1)?;
        }
        1 => {
            wait(pe, y)?;
            set(pe, z, 2)?;
        }
        _ => {
            wait(pe, z)?;
            saw = seen("x", if home == 2 { pe.read(x)?[0] } else { pe.host().g(x, home)? });
        }
    }
    pe.free(words)?;
    Ok(saw)
}

/// Independent reads of independent writes: PE 0 sets `x@2`, PE 1 sets `y@3`; PE 2 fetches `x`, then `y`; PE 3 `y`,
/// then `x`. Blocking fetches of one memory cannot find the writes in opposite orders.
fn iriw<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    independent(pe, Between::Nothing)
}

/// The same with a fence between the reads.
fn iriw_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    independent(pe, Between::Fence)
}

fn independent<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, y) = (words.at(0), words.at(1));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => pe.host().atomic_set(x, 1, 2)?,
        1 => pe.host().atomic_set(y, 1, 3)?,
        2 => {
            let first = pe.host().atomic_fetch(x, 2)?;
            between.call(pe)?;
            saw = seen("x", first).and("y", pe.host().atomic_fetch(y, 3)?);
        }
        _ => {
            let first = pe.host().atomic_fetch(y, 3)?;
            between.call(pe)?;
            saw = seen("y", first).and("x", pe.host().atomic_fetch(x, 2)?);
        }
    }
    pe.free(words)?;
    Ok(saw)
}

/// IRIW with puts, and with non-blocking gets on PE 2: they read in either order, fence or not, so the readers may
/// find the writes in opposite orders. Control: `iriw_fenced`.
fn iriw_nbi_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (x, y, got) = (words.at(0), words.at(1), words.slice(2..));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => pe.host().p(x, 1, 2)?,
        1 => pe.host().p(y, 1, 3)?,
        2 => {
            pe.host().get_nbi(got.slice(..1), x, 2)?;
            pe.host().fence()?;
            pe.host().get_nbi(got.slice(1..), y, 3)?;
            pe.host().quiet()?;
            saw = seen("xy", pe.read(got)?);
        }
        _ => saw = seen("y", pe.host().g(y, 3)?).and("x", pe.host().g(x, 2)?),
    }
    pe.free(words)?;
    Ok(saw)
}

/// IRIW with a copy of `x` and `y` on each reader, as programs have it: each writer sets its word on both readers, which
/// read their own copies. Deliveries to different targets are unordered, so the readers may disagree.
fn iriw_copies<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    copies(pe, Between::Nothing)
}

/// The same with a fence between each writer's two sets: a fence orders nothing across targets.
fn iriw_copies_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    copies(pe, Between::Fence)
}

fn copies<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let me = pe.my_pe();
    let mut saw = Seen::nothing();
    if me < 2 {
        pe.host().atomic_set(words.at(me), 1, 2)?;
        between.call(pe)?;
        pe.host().atomic_set(words.at(me), 1, 3)?;
    } else {
        let (first, second) = if me == 2 { (0, 1) } else { (1, 0) };
        let read = |i: usize| pe.host().atomic_fetch(words.at(i), me);
        saw = seen("first", read(first)?).and("second", read(second)?);
    }
    pe.free(words)?;
    Ok(saw)
}
