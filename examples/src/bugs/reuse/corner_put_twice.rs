//! Two neighbours send their edges to PE 0: one a row, one a column, and both the corner.
//!
//! Which corner stays is a matter of luck. It goes unnoticed where both have the same value there.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(3).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (grid, edge) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc::<u32>(2)?); // 2 rows of 2
    pe.write(&edge, &[pe.my_pe() as u32; 2])?;
    if pe.my_pe() == 1 {
        pe.host().put(grid.slice(..2), &edge, 0)?; // bug: first
    } else if pe.my_pe() == 2 {
        pe.host().iput(&grid, &edge, 2, 1, 2, 0)?; // bug: second
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read(&grid)?, vec![1, 1, 2, 0], "the grid")?;
    }
    pe.free(edge)?;
    pe.free(grid)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (grid, edge) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc::<u32>(2)?); // 2 rows of 2
    pe.write(&edge, &[pe.my_pe() as u32; 2])?;
    if pe.my_pe() == 1 {
        pe.host().put(grid.slice(..2), &edge, 0)?;
    } else if pe.my_pe() == 2 {
        pe.host().iput(grid.slice(2..), &edge, 2, 1, 1, 0)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read(&grid)?, vec![1, 1, 2, 0], "the grid")?;
    }
    pe.free(edge)?;
    pe.free(grid)
}
