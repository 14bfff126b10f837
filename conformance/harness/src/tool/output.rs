//! Output files, which appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::outside::{self, Waiting};
use super::say;

/// Other names of the standard output that this process was started with.
const STANDARD: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// How many files were begun here: a number in the name of each, so that no two of them share one.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A file that a long run writes at its end. Whether it can be written is known at the start of the run.
///
/// The text is written to a file beside it, which then gets its name. A new file would take the place of a link, so what
/// the link leads to is written directly.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// The file beside it; `None` where the path is a link, or no regular file (`/dev/full`), and is written directly.
    beside: Option<PathBuf>,
    /// `None`: standard output.
    file: Option<File>,
}

impl Output {
    /// Makes sure that `path` can be written. `-` is standard output, also by its other names (`/dev/stdout`). It then has
    /// nothing else: lines for people go to standard error from now on.
    ///
    /// # Errors
    /// A sentence with the path.
    pub fn prepare(path: &Path) -> Result<Output, String> {
        if is_standard(path) {
            say::take_standard_output();
            return Ok(Output { path: PathBuf::from("to standard output"), beside: None, file: None });
        }
        let wrong = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
        let beside = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(wrong(&"it is a folder")),
            Ok(there) if !there.is_file() => None,
            _ if path.is_symlink() => None,
            _ => {
                let name = path.file_name().ok_or_else(|| wrong(&"it names no file"))?;
                let number = BEGUN.fetch_add(1, Ordering::Relaxed);
                Some(path.with_file_name(format!(".{}.{}.{number}", name.to_string_lossy(), std::process::id())))
            }
        };
        // What a link leads to keeps its text until there is another.
        let mut open = File::options();
        open.write(true).create(true).truncate(beside.is_some());
        let path_to_open = beside.as_deref().unwrap_or(path);
        let opened = outside::wait(&format!("open {}", path.display()), || open.open(path_to_open));
        let file = opened.map_err(|why| wrong(&why))?;
        Ok(Output { path: path.to_path_buf(), beside, file: Some(file) })
    }

    /// Lets `write` write the text, and gives the file its name.
    ///
    /// # Errors
    /// A sentence with the path.
    pub fn finish(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        let written = (|| {
            match &self.file {
                Some(file) => {
                    if self.beside.is_none() && file.metadata()?.is_file() {
                        file.set_len(0)?;
                    }
                    write_to(Waiting::new(file, &self.path.display().to_string()), write)?;
                }
                None => say::unless_gone(write_to(Waiting::new(io::stdout().lock(), "standard output"), write))?,
            }
            self.beside.as_ref().map_or(Ok(()), |beside| fs::rename(beside, &self.path))
        })();
        if written.is_ok() {
            self.beside = None;
        }
        written.map_err(|why| format!("cannot write {}: {why}", self.path.display()))
    }
}

/// Refuses two options that name one file, in whatever words: the second would replace what the first has written.
///
/// # Errors
/// A sentence with both options.
pub fn each_its_own<'a>(files: impl IntoIterator<Item = (&'static str, &'a Path)>) -> Result<(), String> {
    let mut before: Vec<(&str, PathBuf)> = Vec::new();
    for (option, file) in files {
        let absolute = absolute(file);
        if let Some((other, _)) = before.iter().find(|(_, taken)| *taken == absolute) {
            return Err(format!("{other} and {option} both name {}: each writes a file of its own", file.display()));
        }
        before.push((option, absolute));
    }
    Ok(())
}

/// Refuses an option that names the file `read`, in whatever words: what is read would be replaced. `-` is standard input.
///
/// # Errors
/// A sentence with the option.
pub fn none_is_read<'a>(read: &Path, files: impl IntoIterator<Item = (&'static str, &'a Path)>) -> Result<(), String> {
    let read = if read == Path::new("-") { Path::new("/dev/stdin") } else { read };
    let whole = absolute(read);
    match files.into_iter().find(|(_, file)| !is_standard(file) && absolute(file) == whole) {
        Some((option, file)) => {
            Err(format!("{option} names {}, which is read: it would be replaced; name another file", file.display()))
        }
        None => Ok(()),
    }
}

/// Whether this path is standard output.
pub fn is_standard(path: &Path) -> bool {
    STANDARD.iter().any(|name| path == Path::new(name))
}

/// The path from the root, without links as far as it exists: the same for all names of a file.
fn absolute(path: &Path) -> PathBuf {
    if is_standard(path) {
        return PathBuf::from(STANDARD[0]);
    }
    if let Ok(there) = path.canonicalize() {
        return there;
    }
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (whole.parent().map(Path::canonicalize), whole.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => whole,
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

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, absent, dangling] =
            ["file", "link", "absent", "dangling"].map(|name| folder.path().join(name));
        fs::write(&file, "a longer text of an earlier run").unwrap();
        for (link, file) in [(&link, &file), (&dangling, &absent)] {
            std::os::unix::fs::symlink(file, link).unwrap();
            drop(Output::prepare(link).unwrap());
            Output::prepare(link).unwrap().finish(|out| writeln!(out, "text")).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(file).unwrap(), "text\n");
        }
        fs::write(&file, "kept").unwrap();
        drop(Output::prepare(&link).unwrap()); // nothing came of the run
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
    }

    #[test]
    fn a_file_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let (plain, roundabout) = (folder.path().join("f.json"), folder.path().join("sub/../f.json"));
        let check = |one: &Path, other: &Path| each_its_own([("--json", one), ("--trace", other)]);
        for _ in 0..2 {
            let why = check(&plain, &roundabout).unwrap_err();
            assert!(why.starts_with("--json and --trace both name ") && why.ends_with("a file of its own"), "{why}");
            fs::write(&plain, "it exists now").unwrap();
        }
        check(Path::new("f.json"), &std::env::current_dir().unwrap().join("f.json")).unwrap_err();
        check(Path::new("-"), Path::new("/dev/stdout")).unwrap_err();
        check(&plain, &folder.path().join("sub/f.json")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&plain, folder.path().join("link")).unwrap();
            check(&plain, &folder.path().join("link")).unwrap_err();
        }
    }

    #[test]
    fn what_is_read_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let read = folder.path().join("f.json");
        let check = |file: &Path| none_is_read(&read, [("--html", Path::new("-")), ("--sarif", file)]);
        let roundabout = folder.path().join("sub/../f.json");
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(&read, "read").unwrap();
        for file in [&read, &roundabout] {
            let expected =
                format!("--sarif names {}, which is read: it would be replaced; name another file", file.display());
            assert_eq!(check(file), Err(expected));
        }
        check(&folder.path().join("sub/f.json")).unwrap();
        none_is_read(Path::new("-"), [("--html", Path::new("-")), ("--sarif", read.as_path())]).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&read, folder.path().join("link")).unwrap();
            check(&folder.path().join("link")).unwrap_err();
            none_is_read(&folder.path().join("link"), [("--html", read.as_path())]).unwrap_err();
        }
    }

    /// Two outputs of one name are refused before; if they are not, no one's text is lost in the other's.
    #[test]
    fn no_two_share_a_hidden_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let [one, other] = [(); 2].map(|()| Output::prepare(&path).unwrap());
        assert_ne!(one.beside, other.beside);
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
