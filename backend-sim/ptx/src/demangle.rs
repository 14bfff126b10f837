//! Names of C++ as people write them.

use cpp_demangle::{DemangleOptions, Symbol};

/// A linker's name as it was written, without parameters: `sweep<32, 2>` for `_Z5sweepILi32ELi2EEv4GridPfii`. Any other name is itself.
///
/// ```
/// assert_eq!(onesided_ptx::demangle("_Z5sweepILi32ELi2EEv4GridPfii"), "sweep<32, 2>");
/// assert_eq!(onesided_ptx::demangle("ring"), "ring");
/// ```
#[must_use]
pub fn demangle(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let written = Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    written.unwrap_or_else(|| name.to_string())
}

/// The name of a variable, without those of the function and namespaces that it stands in: `tile` for `_ZZ4ringE4tile`.
pub(crate) fn variable(name: &str) -> String {
    let written = demangle(name);
    let mut depth = 0_i32;
    let inner = written.char_indices().rev().find(|&(_, letter)| {
        depth += match letter {
            '>' | ')' => 1,
            '<' | '(' => -1,
            _ => 0,
        };
        depth == 0 && letter == ':'
    });
    inner.map_or(written.clone(), |(at, _)| written[at + 1..].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_they_were_written() {
        for (name, written, inner) in [
            ("counts", "counts", "counts"),
            ("_ZZ4ringE4tile", "ring::tile", "tile"),
            ("_ZZ5sweepILi32ELi2EEv4GridPfiiE4sums", "sweep<32, 2>(Grid, float*, int, int)::sums", "sums"),
            ("_ZZ10block_scanIiEvPT_PKS0_iE4sums", "block_scan<int>(int*, int const*, int)::sums", "sums"),
            ("_Z", "_Z", "_Z"),
            ("", "", ""),
        ] {
            assert_eq!((demangle(name).as_str(), variable(name).as_str()), (written, inner));
        }
    }
}
