//! The array of a reduction is freed while the stream is still in it.
//!
//! A free waits for the hosts of all PEs, not for their streams. On a GPU the reduction then writes memory that belongs to
//! somebody else. The tutorial of NVSHMEM4Py frees like this.

use onesided::{Backend, Pe, Predefined, ReduceOp, Result};

use crate::{Class, Edit, Label};

pub(crate) const LABEL: Label =
    Label::new(Class::Freed, 2).on_nvlink_too().seen("NVSHMEM4Py tutorial, reduce cell").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let sums = pe.alloc::<f32>(2)?;
    let (stream, team) = (pe.stream()?, pe.team(Predefined::Node).expect("every PE is on a node"));
    pe.write(&sums, &[pe.my_pe() as f32 + 1.0; 2])?;
    pe.on(&stream).reduce(team, &sums, &sums, ReduceOp::Sum)?; // bug: first, fix
    pe.free(sums) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let sums = pe.alloc::<f32>(2)?;
    let (stream, team) = (pe.stream()?, pe.team(Predefined::Node).expect("every PE is on a node"));
    pe.write(&sums, &[pe.my_pe() as f32 + 1.0; 2])?;
    pe.on(&stream).reduce(team, &sums, &sums, ReduceOp::Sum)?;
    pe.synchronize(&stream)?;
    pe.free(sums)
}
