//! Writes onesided-nvshmem's `bindings.rs` from NVSHMEM's headers, and checks that it fits every version at hand.
//!
//! `ci/bindings` calls it: `onesided-bindings [--write] [--cuda INCLUDE]... bindings.rs NEWEST OLDER...`, with the
//! folders of CUDA's headers, and those of NVSHMEM's Python packages, which hold `include/` and `lib/`. The table is
//! made from the newest headers. With all of them:
//!
//! * the checked-in table is what the headers give;
//! * every function of the table is declared with the same types everywhere, and every constant has the same value;
//! * every reduction has the shape of the one of its form that is in the table;
//! * every library exports what its version should have.

mod exports;
mod generate;
mod names;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use table::Table;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let write = arguments.first().is_some_and(|first| first == "--write");
    arguments.drain(..usize::from(write));
    let mut cuda = Vec::new();
    while arguments.len() > 1 && arguments[0] == "--cuda" {
        cuda.extend(arguments.drain(..2).nth(1).map(PathBuf::from));
    }
    let [file, folders @ ..] = &arguments[..] else { return usage() };
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let Some((newest, older)) = folders.split_first() else { return usage() };
    match run(write, &cuda, Path::new(file), newest, older) {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            problems.iter().for_each(|problem| println!("{problem}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    println!("usage: onesided-bindings [--write] [--cuda INCLUDE]... BINDINGS_RS NEWEST OLDER...");
    println!("NEWEST and OLDER are folders with include/ and lib/");
    ExitCode::from(2)
}

/// Does everything, and returns what is wrong with the table. An error means that this is not known.
fn run(write: bool, cuda: &[PathBuf], file: &Path, newest: &Path, older: &[PathBuf]) -> Result<Vec<String>, String> {
    let curated = names::curated();
    let reductions = names::reductions();
    let mut problems = Vec::new();

    let text = generate::table(newest, cuda, &curated)?;
    if write {
        fs::write(file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
    } else if fs::read_to_string(file).ok().as_deref() != Some(&text) {
        let file = file.display();
        problems.push(format!("{file} is not what the headers give; `ci/bindings --write` makes it so"));
    }

    let mut all: Vec<String> = curated.clone();
    all.extend(reductions.iter().map(|reduction| reduction.name.clone()));
    all.sort();
    all.dedup(); // the four that stand for the others
    let reference = Table::read(&text)?;
    for folder in [newest].into_iter().chain(older.iter().map(PathBuf::as_path)) {
        let table = Table::read(&generate::table(folder, cuda, &all)?)?;
        let later: &[&str] = if folder == newest { &[] } else { &names::LATER };
        let mut found = table.differences(&reference, &curated, later);
        found.extend(reductions.iter().filter_map(|reduction| table.misshapen(reduction)));
        found.extend(exports::differences(folder, &all, later)?);
        println!("{}: {} functions looked at, {} problems", folder.display(), all.len(), found.len());
        problems.extend(found.iter().map(|problem| format!("{}: {problem}", folder.display())));
    }
    Ok(problems)
}
