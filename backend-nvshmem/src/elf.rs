//! Reads from a file's header whether it is a whole shared library for this machine.
//!
//! The loader maps a library before it knows that the file is whole. A file that was cut off (a full disk, a broken download)
//! then ends the process with SIGBUS. So the header is read first. This does not see damage in the middle.

use onesided::count;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::problem::Problem;

const HEADER: usize = 64;
const SHARED_OBJECT: u16 = 3;
/// Size of an entry in the table of parts, and what the entry of a part that is mapped begins with.
const PART: usize = 56;
const LOAD: [u8; 4] = [1, 0, 0, 0];

/// The machine that this program was compiled for, as ELF numbers it; `None` for one that the library never had.
const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// Accepts a file that the loader can map without danger. On systems other than Linux it accepts every file.
pub(crate) fn check(file: &Path) -> Result<(), Problem> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let damaged = |why| Problem::Damaged { file: file.to_path_buf(), why };
    match fault(file) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(damaged(why)),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// What is wrong with the file, if anything.
fn fault(path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length < HEADER as u64 {
        return Ok(Some(format!("it has {}, too few for a library", count(length, "byte"))));
    }
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    if header[..4] != *b"\x7fELF" {
        return Ok(Some("it does not begin as a library does".to_string()));
    }
    if header[4..6] != [2, 1] || Some(u16_at(&header, 18)) != MACHINE {
        return Ok(Some(format!("it is for another machine than {}", std::env::consts::ARCH)));
    }
    if u16_at(&header, 16) != SHARED_OBJECT {
        return Ok(Some("it is a program or an object file, not a shared library".to_string()));
    }
    let needed = loaded_end(&mut file, &header)?;
    Ok(match needed {
        u64::MAX => Some("its table of parts is damaged".to_string()),
        _ if needed > length => Some(format!("it is cut off: {} of at least {needed}", count(length, "byte"))),
        _ => None,
    })
}

/// The end in the file of the last part that the loader maps. If there is no such part, a number beyond every file.
fn loaded_end(file: &mut File, header: &[u8; HEADER]) -> io::Result<u64> {
    let (start, size, count) = (u64_at(header, 32), u16_at(header, 54), u16_at(header, 56));
    if usize::from(size) != PART {
        return Ok(u64::MAX);
    }
    let mut table = vec![0; PART * usize::from(count)];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut table)?;
    let loaded = table.chunks_exact(PART).filter(|part| part[..4] == LOAD);
    Ok(loaded.map(|part| u64_at(part, 8).saturating_add(u64_at(part, 32))).max().unwrap_or(u64::MAX))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    /// This test program: a position-independent ELF file, as shared libraries are.
    fn myself() -> Vec<u8> {
        fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    fn fault_of(bytes: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.so");
        fs::write(&file, bytes).unwrap();
        check(&file).err().map(|problem| problem.to_string())
    }

    #[test]
    fn a_whole_file_is_accepted_and_a_cut_one_is_not() {
        let whole = myself();
        assert_eq!(fault_of(&whole), None);
        let mut file = File::open(std::env::current_exe().unwrap()).unwrap();
        let needed = loaded_end(&mut file, whole[..HEADER].try_into().unwrap()).unwrap() as usize;
        assert_eq!(fault_of(&whole[..needed]), None);
        let cut = fault_of(&whole[..needed - 1]).unwrap();
        assert!(cut.contains(&format!("cut off: {} bytes of at least {needed}", needed - 1)), "{cut}");
    }

    #[test]
    fn what_is_no_library_is_told_apart() {
        let whole = myself();
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = whole.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            fault_of(&changed).unwrap()
        };
        assert!(fault_of(b"").unwrap().contains("0 bytes"));
        assert!(fault_of(&[b'x'; 4096]).unwrap().contains("does not begin"));
        assert!(with(18, &[0xff, 0xff]).contains("another machine"));
        assert!(with(16, &[2, 0]).contains("not a shared library"));
        assert!(with(54, &[55, 0]).contains("table of parts"));
        assert!(with(32, &u64::MAX.to_le_bytes()).contains("not a usable library")); // it cannot even be read
    }
}
