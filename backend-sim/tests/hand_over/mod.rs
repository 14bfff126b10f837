//! For tests of kernels that hand data over by a flag.

use onesided::{Argument, Grid, Pe, Result, Source, args};
use onesided_sim::Sim;

/// What a kernel that takes data, a flag and what it has seen has seen.
pub(crate) fn hand_over(pe: &Pe<Sim>, source: &Source, name: &str, grid: &Grid, how: &[Argument]) -> Result<i32> {
    let (data, flag, seen) = (pe.alloc_zeroed::<i32>(64)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    let module = pe.module(source)?;
    let stream = pe.stream()?;
    let arguments: Vec<Argument> = args![&data, &flag, &seen].iter().chain(how).cloned().collect();
    // SAFETY: the kernels take these arguments, and each test gives the rest.
    unsafe { pe.on(&stream).launch(&module.kernel(name)?, grid, &arguments)? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let result = pe.read_one(&seen)?;
    pe.free(seen)?;
    pe.free(flag)?;
    pe.free(data)?;
    Ok(result)
}
