//! Whether the CPU can read a piece of memory. Reading memory that cannot be read ends the process, so the system is asked first.
//!
//! It copies a byte of each page into a pipe, and reports an address that it cannot read. Other ways to
//! ask (`process_vm_readv`) are forbidden in some containers.

use std::ffi::c_void;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::AsRawFd as _;
use std::ptr;

/// The smallest page of any system that CUDA runs on.
const PAGE: usize = 4096;
/// How many addresses the system takes at once: its `IOV_MAX`.
const AT_ONCE: usize = 1024;

/// Checks that every page of these bytes can be read.
///
/// # Errors
/// Half a sentence that says what is wrong with them.
pub(crate) fn readable(address: usize, size: usize) -> Result<(), String> {
    let last = size.checked_sub(1).ok_or("there are none")?;
    let last = address.checked_add(last).ok_or("they reach past the end of the address space")?;
    let (mut reader, writer) = io::pipe().map_err(|why| format!("a pipe to check them cannot be made: {why}"))?;
    // The first byte, then the first of each page behind it.
    let next_page = (address / PAGE + 1).checked_mul(PAGE);
    let others = next_page.filter(|next| *next <= last).map(|next| (next..=last).step_by(PAGE));
    let mut bytes = [address].into_iter().chain(others.into_iter().flatten()).peekable();
    while bytes.peek().is_some() {
        let some: Vec<usize> = bytes.by_ref().take(AT_ONCE).collect();
        check(&some, &mut reader, &writer)?;
    }
    Ok(())
}

/// Checks single bytes, which all fit into an empty pipe.
fn check(bytes: &[usize], reader: &mut PipeReader, writer: &PipeWriter) -> Result<(), String> {
    let byte = |address: &usize| libc::iovec { iov_base: ptr::without_provenance_mut::<c_void>(*address), iov_len: 1 };
    let bytes: Vec<libc::iovec> = bytes.iter().map(byte).collect();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        // SAFETY: the system reads the list, which is there, and checks each address in it itself. It writes no memory.
        let written = unsafe { libc::writev(writer.as_raw_fd(), rest.as_ptr(), rest.len() as i32) };
        let written = match usize::try_from(written) {
            Ok(written) => written,
            Err(_) => match io::Error::last_os_error() {
                why if why.kind() == io::ErrorKind::Interrupted => continue,
                why if why.raw_os_error() == Some(libc::EFAULT) => {
                    return Err("the CPU cannot read them".to_string());
                }
                why => return Err(format!("they cannot be checked: {why}")),
            },
        };
        let mut copied = vec![0; written];
        reader.read_exact(&mut copied).map_err(|why| format!("they cannot be checked: {why}"))?;
        rest = &rest[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_counts() {
        let pages = 2500; // more than are asked for at once
        let size = pages * PAGE;
        // SAFETY: a new mapping touches no memory of anyone.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let address = start.addr();
        assert_eq!(readable(address, size), Ok(()));
        for hole in [0, 1023, 1024, pages - 1] {
            // SAFETY: the page belongs to the mapping above, and nobody uses it.
            let protect = |how| unsafe { libc::mprotect(start.byte_add(hole * PAGE), PAGE, how) };
            assert_eq!(protect(libc::PROT_NONE), 0);
            assert_eq!(readable(address, size), Err("the CPU cannot read them".to_string()), "page {hole}");
            // What does not touch that page is in reach, from the middle of a page to the middle of another.
            if hole == 1024 {
                assert_eq!(readable(address + 7, 1024 * PAGE - 7), Ok(()));
                assert!(readable(address + 7, 1024 * PAGE - 6).is_err());
            }
            assert_eq!(protect(libc::PROT_READ | libc::PROT_WRITE), 0);
        }
        assert!(readable(address, 0).is_err());
        // SAFETY: nobody uses the mapping.
        unsafe { libc::munmap(start, size) };
    }
}
