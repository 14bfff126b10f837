//! Output files, which appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::say;

/// A file that a long run writes at its end. Whether it can be written is known at the start of the run.
///
/// The text is written to a file beside it, which then gets its name.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// The file beside it; `None` where the path is not a regular file (`/dev/full`) and is written directly.
    beside: Option<PathBuf>,
    /// `None`: standard output.
    file: Option<File>,
}

impl Output {
    /// Makes sure that `path` can be written. `-` is standard output, which then has nothing else: lines for people go to
    /// standard error from now on.
    ///
    /// # Errors
    /// A sentence with the path.
    pub fn prepare(path: &Path) -> Result<Output, String> {
        if path == Path::new("-") {
            say::take_standard_output();
            return Ok(Output { path: PathBuf::from("to standard output"), beside: None, file: None });
        }
        let wrong = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
        let beside = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(wrong(&"it is a folder")),
            Ok(there) if !there.is_file() => None,
            _ => {
                let name = path.file_name().ok_or_else(|| wrong(&"it names no file"))?;
                Some(path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id())))
            }
        };
        let file = File::create(beside.as_deref().unwrap_or(path)).map_err(|why| wrong(&why))?;
        Ok(Output { path: path.to_path_buf(), beside, file: Some(file) })
    }

    /// Lets `write` write the text, and gives the file its name.
    ///
    /// # Errors
    /// A sentence with the path.
    pub fn finish(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        let written = (|| {
            match &self.file {
                Some(file) => write_to(file, write)?,
                None => write_to(io::stdout().lock(), write)?,
            }
            self.beside.as_ref().map_or(Ok(()), |beside| fs::rename(beside, &self.path))
        })();
        if written.is_ok() {
            self.beside = None;
        }
        written.map_err(|why| format!("cannot write {}: {why}", self.path.display()))
    }
}

fn write_to(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write(&mut out)?;
    out.flush()
}

impl Drop for Output {
    /// Removes the file beside it, if that did not get its name.
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_file(beside); // it is hidden, and there is nobody to tell
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_at_the_end_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let names = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();

        let output = Output::prepare(&path).unwrap();
        assert!(!path.exists());
        output.finish(|out| writeln!(out, "text")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names().len()), ("text\n", 1));

        drop(Output::prepare(&path).unwrap());
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names().len()), ("text\n", 1));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let output = Output::prepare(Path::new("/dev/full")).unwrap();
        let why = output.finish(|out| writeln!(out, "text")).unwrap_err();
        assert!(why.starts_with("cannot write /dev/full: No space left"), "{why}");
    }

    #[test]
    fn what_cannot_be_written_is_known_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("absent/out.json"), PathBuf::new()] {
            let why = Output::prepare(&path).unwrap_err();
            assert!(why.starts_with("cannot write "), "{why}");
        }
    }
}
