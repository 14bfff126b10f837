//! How this program was started, for commands that a person types.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What this program is started with, up to its arguments: `cargo run --release --bin ring --` if cargo runs it from a
/// workspace, else the path or name that it was called by.
pub fn invocation() -> String {
    let called = env::args_os().next().unwrap_or_default();
    let by_cargo = env::var_os("CARGO").is_some();
    env::current_exe().ok().filter(|_| by_cargo).and_then(|file| by_cargo_run(&file)).unwrap_or_else(|| quote(&called))
}

/// The cargo command that runs the program in this file, if the file is where cargo puts programs.
fn by_cargo_run(file: &Path) -> Option<String> {
    let name = quote(file.file_stem()?);
    let folder = file.parent()?;
    let (folder, kind) = match folder.file_name()?.to_str()? {
        "examples" => (folder.parent()?, "example"),
        _ => (folder, "bin"),
    };
    if !folder.join("deps").is_dir() {
        return None;
    }
    let profile = match folder.file_name()?.to_str()? {
        "debug" => String::new(),
        "release" => " --release".to_string(),
        other => format!(" --profile {}", quote(OsStr::new(other))),
    };
    Some(format!("cargo run{profile} --{kind} {name} --"))
}

/// A word as a shell reads it. Bytes that are not UTF-8 are replaced.
pub fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    // Only a zero byte cannot be quoted, and no argument of a process has one.
    shlex::try_quote(&word).map_or_else(|_| word.to_string(), Into::into)
}

/// Words as a shell reads them, each with a blank before it.
pub fn quoted(words: &[OsString]) -> String {
    words.iter().map(|word| format!(" {}", quote(word))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        for (word, quoted) in [("ring", "ring"), ("./target/my ring", "'./target/my ring'"), ("it's", "\"it's\"")] {
            assert_eq!(quote(OsStr::new(word)), quoted);
        }
        assert_eq!(quoted(&["--name".into(), "a b".into()]), " --name 'a b'");
    }

    #[test]
    fn a_program_where_cargo_puts_them_is_run_by_cargo() {
        let target = tempfile::tempdir().unwrap();
        for profile in ["debug", "release", "small"] {
            fs::create_dir_all(target.path().join(profile).join("deps")).unwrap();
        }
        let command = |file: &str| by_cargo_run(&target.path().join(file));
        assert_eq!(command("release/ring").unwrap(), "cargo run --release --bin ring --");
        assert_eq!(command("debug/my ring").unwrap(), "cargo run --bin 'my ring' --");
        assert_eq!(command("small/examples/ring").unwrap(), "cargo run --profile small --example ring --");
        assert_eq!(command("release/deps/ring-0123"), None);
        assert_eq!(command("ring"), None);
    }
}
