//! Ordering: what fence, quiet and barriers promise, and what they do not.

use onesided::{Backend, Pe, Result};

use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        two_puts_unfenced: 2,
        two_puts_fenced: 2,
    ]
}

/// Two puts of different values to the same element, no fence: either may arrive last.
fn two_puts_unfenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_puts(pe, false)
}

/// The same with a fence between: the second is never overtaken by the first.
fn two_puts_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_puts(pe, true)
}

fn two_puts<B: Backend>(pe: &Pe<B>, fence: bool) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        if fence {
            pe.host().fence()?;
        }
        pe.host().p(&x, 2, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(&x)?[0]) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}
