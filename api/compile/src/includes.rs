//! Which files a text may include: what is cached is right only as long as none of them has changed.
//!
//! The names are read from the text, whatever `#if` is around them, and looked for in every folder where the compiler might
//! look. Some of these files the compiler may not read. If such a file changes, one needless compilation follows.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::options::{Options, Source};

/// More files than the include folders of CUDA and CCCL have together. Larger ones are not looked through.
const MOST: usize = 20_000;

/// Why nothing is cached if an included file changes during a compilation: the compiler may have read the old or the new text.
pub(crate) const CHANGED: &str = "a file that may be included was changed while it was compiled";

/// All files that the text may include, directly and through others, with their contents.
///
/// If a header of an include folder computes a name by a macro, it may mean any file of these folders. Then all of them are there, with
/// their sizes and times instead of their contents.
///
/// # Errors
/// In words, if it cannot be known: the text itself computes a name, the folders are too large, or a file cannot be read.
pub(crate) fn closure(source: &Source, options: &Options) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let own = std::path::absolute(&source.name).map_err(|why| format!("there is no current folder ({why})"))?;
    let includes = options.folders();
    let is_of_folders = |file: &Path| {
        let whole = || includes.iter().filter_map(|folder| folder.canonicalize().ok());
        includes.iter().any(|folder| file.starts_with(folder)) || whole().any(|folder| file.starts_with(folder))
    };
    let folders: Vec<PathBuf> = own.parent().map(Path::to_path_buf).into_iter().chain(includes.clone()).collect();
    let mut files = BTreeMap::new();
    let computed = |file: &str, line| format!("{file}:{line}: what is included is not known before it is compiled");
    let names_in_text = names(&source.text).map_err(|line| computed(&source.name, line))?;
    let mut open = candidates(&names_in_text, &folders);
    while let Some(file) = open.pop() {
        if files.contains_key(&file) {
            continue;
        }
        let bytes = std::fs::read(&file).map_err(|why| format!("{} cannot be read ({why})", file.display()))?;
        let beside: Vec<_> = file.parent().map(Path::to_path_buf).into_iter().chain(folders.iter().cloned()).collect();
        match names(&String::from_utf8_lossy(&bytes)) {
            Ok(names) => open.extend(candidates(&names, &beside)),
            Err(_) if is_of_folders(&file) => return stamps(files, &includes),
            Err(line) => return Err(computed(&file.display().to_string(), line)),
        }
        files.insert(file, bytes);
    }
    Ok(files)
}

/// The sizes and times of all files below the folders, added to what was found until then.
fn stamps(mut files: BTreeMap<PathBuf, Vec<u8>>, folders: &[PathBuf]) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let failed = |folder: &Path, why: std::io::Error| format!("{} cannot be read ({why})", folder.display());
    let mut open = folders.to_vec();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|why| failed(&folder, why))? {
            let path = entry.map_err(|why| failed(&folder, why))?.path();
            let Ok(metadata) = std::fs::metadata(&path) else { continue }; // a link that leads nowhere
            if metadata.is_dir() {
                open.push(path);
            } else {
                files.insert(path, format!("{} {:?}", metadata.len(), metadata.modified()).into_bytes());
            }
        }
        if files.len() > MOST || open.len() > MOST {
            return Err(format!("the include folders have more than {MOST} files, and what is included is computed"));
        }
    }
    Ok(files)
}

/// The files that a name may mean.
fn candidates(names: &[&str], folders: &[PathBuf]) -> Vec<PathBuf> {
    let files = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.filter(|file| file.is_file()).map(direct).collect()
}

/// The path without `..`. Otherwise headers that include each other through their folders would get ever longer paths. Links
/// are not followed, because the compiler looks beside the link for what it includes.
fn direct(file: PathBuf) -> PathBuf {
    if !file.components().any(|part| part == Component::ParentDir) {
        return file;
    }
    match (file.parent().map(Path::canonicalize), file.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => file,
    }
}

/// The names behind each `#include`. The error is the line of one that is not a plain name.
fn names(text: &str) -> Result<Vec<&str>, usize> {
    let mut names = Vec::new();
    for (at, word) in text.match_indices("include") {
        let behind = &text[at + word.len()..];
        if text[..at].ends_with("__has_") {
            names.extend(quoted(behind.trim_start_matches([' ', '\t', '(']))); // it counts whether there is such a file
            continue;
        }
        let before = text[..at].trim_end_matches([' ', '\t']);
        let Some(before) = before.strip_suffix(['#', '\n']).or_else(|| before.strip_suffix("%:")) else { continue };
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        let ahead = before[begin..].trim();
        let is_continued = text[..at].ends_with('\n');
        let is_directive = if is_continued { ahead.ends_with('\\') } else { ahead.is_empty() || ahead.ends_with("*/") };
        if !is_directive {
            continue;
        }
        let name = quoted(behind.trim_start_matches([' ', '\t'])).filter(|_| !is_continued);
        names.push(name.ok_or_else(|| text[..at].matches('\n').count() + 1)?);
    }
    Ok(names)
}

/// The name of a header that a text begins with, in either kind of quotes.
fn quoted(text: &str) -> Option<&str> {
    match text.as_bytes().first() {
        Some(b'<') => text[1..].split(['>', '\n']).next(),
        Some(b'"') => text[1..].split(['"', '\n']).next(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_read_as_the_compiler_reads_them_or_not_at_all() {
        let text = "#include <a.h>\n  #  include \"b/c.h\" // d\n#if 0\n%:include <e>\n#endif\n/* f */ #include <g>\n\
                    // #include <no>\nint include = 1; // an include\n#define X \"#include <no>\"\n";
        assert_eq!(names(text), Ok(vec!["a.h", "b/c.h", "e", "g"]));
        let asked = "#if __has_include(<a.h>) || __has_include ( \"b.h\" ) || __has_include(NAME)\n";
        assert_eq!(names(asked), Ok(vec!["a.h", "b.h"]));
        for opaque in ["\n#include X", "\n#include_next <a.h>", "\n#include \\\n<a.h>", "#\\\ninclude <a.h>"] {
            assert_eq!(names(opaque), Err(2), "{opaque}");
        }
    }

    #[test]
    fn files_are_found_through_others_and_in_every_folder() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            file
        };
        let expected = [
            file("one/a.h", "#include \"deep/b.h\"\n#include <a.h>"),
            file("one/deep/b.h", "#include \"beside.h\""),
            file("one/deep/beside.h", ""),
            file("two/a.h", ""),
        ];
        let other = file("two/other.h", "");
        let source = Source::new("kernel.cu", "#include <a.h>\n#include <not_here.h>\n");
        let options = Options::new().include(root.path().join("one")).include(root.path().join("two"));
        assert_eq!(closure(&source, &options).unwrap().into_keys().collect::<Vec<_>>(), expected);
        let keys = || closure(&source, &options).map(|files| files.into_keys().collect::<Vec<_>>());
        // A header that computes a name may mean any file of the folders.
        fs::write(&expected[2], "#include COMPUTED").unwrap();
        let all = keys().unwrap();
        assert!(all.len() == 5 && all.contains(&other), "{all:?}");
        let before = closure(&source, &options).unwrap();
        fs::write(&other, "longer").unwrap();
        assert_ne!(closure(&source, &options).unwrap(), before);
        // The text itself may mean any file of the machine.
        let computed = Source::new("kernel.cu", "\n#include COMPUTED\n");
        let why = closure(&computed, &options).unwrap_err();
        assert_eq!(why, "kernel.cu:2: what is included is not known before it is compiled");
    }

    /// Without an end to the ways from one to the other, this takes for ever with a few more headers.
    #[test]
    fn headers_that_include_each_other_through_their_folders_are_two_files() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for (file, includes) in [("x/a.h", "#include \"../y/b.h\"\n"), ("y/b.h", "#include \"../x/a.h\"\n")] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), includes).unwrap();
        }
        let source = Source::new(root.join("kernel.cu").display().to_string(), "#include \"x/a.h\"\n");
        let keys = |options: &Options| closure(&source, options).unwrap().into_keys().collect::<Vec<_>>();
        assert_eq!(keys(&Options::new()), [root.join("x/a.h"), root.join("y/b.h")]);
        // A folder that is named in a roundabout way is one of the include folders still.
        let options = Options::new().include(root.join("x/../y"));
        fs::write(root.join("y/b.h"), "#include COMPUTED").unwrap();
        assert!(keys(&options).contains(&root.join("x/a.h")), "{:?}", keys(&options));
    }
}
