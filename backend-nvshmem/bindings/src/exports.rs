//! What a library exports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::{Object, ObjectSymbol};

/// Which of the functions the library in `lib` of the folder lacks, or has although they are expected `later`.
pub(crate) fn differences(folder: &Path, functions: &[String], later: &[&str]) -> Result<Vec<String>, String> {
    let file = folder.join("lib/libnvshmem_host.so.3");
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = fs::read(&file).map_err(|error| wrong(&error))?;
    let library = object::File::parse(&*bytes).map_err(|error| wrong(&error))?;
    let exported: BTreeSet<&str> =
        library.dynamic_symbols().filter(|symbol| symbol.is_definition()).flat_map(|symbol| symbol.name()).collect();
    Ok(functions.iter().filter_map(|name| difference(name, exported.contains(&**name), later)).collect())
}

fn difference(name: &str, is_exported: bool, later: &[&str]) -> Option<String> {
    match (is_exported, later.contains(&name)) {
        (false, false) => Some(format!("{name} is not exported")),
        (true, true) => Some(format!("{name} is exported, but said to come in a later version")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_there_from_its_version_on_and_not_before() {
        assert_eq!(difference("put", true, &[]), None);
        assert_eq!(difference("flush", false, &["flush"]), None);
        assert_eq!(difference("put", false, &["flush"]).unwrap(), "put is not exported");
        assert!(difference("flush", true, &["flush"]).unwrap().contains("later"));
    }
}
