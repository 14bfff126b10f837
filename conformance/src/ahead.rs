//! Compiles what modules need on GPUs, before any of them is loaded.
//!
//! NVRTC compiles one text at a time in a process. So each text of NVSHMEM's functions that the cache lacks gets a process of its own.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Mutex;
use std::thread;

use onesided::Source;
use onesided_harness::tool::progress::{Progress, Things};
use onesided_nvshmem::Ahead;

/// A text of NVSHMEM's functions that a module needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// The module's place among the sources.
    source: usize,
    /// Its number among those of the module.
    number: usize,
}

impl FromStr for Text {
    type Err = String;

    fn from_str(text: &str) -> Result<Text, String> {
        let numbers = text.split_once(':').and_then(|(one, other)| Some((one.parse().ok()?, other.parse().ok()?)));
        let (source, number) = numbers.ok_or("expected the number of a module, a colon, and the number of a text")?;
        Ok(Text { source, number })
    }
}

/// The modules that the suite loads with the installed NVSHMEM, with the backend's own.
pub(crate) fn of_the_suite(compiler: &Ahead) -> Vec<Source> {
    modules(compiler.has_kernel_extensions())
}

fn modules(extensions: bool) -> Vec<Source> {
    crate::suite::kernels(extensions).into_iter().chain([Ahead::atomics()]).collect()
}

/// Compiles one text.
///
/// # Errors
/// Why it does not compile, or that there is no such module.
pub(crate) fn one(compiler: &Ahead, sources: &[Source], Text { source, number }: Text) -> Result<(), String> {
    let source = sources.get(source).ok_or_else(|| format!("there is no module {source}"))?;
    compiler.provide(source, number).map_err(|error| error.message().to_string())
}

/// Compiles all texts that the cache lacks. Up to so many processes of this program share them. `arguments` are those of
/// `onesided compile` for the same sources.
///
/// # Errors
/// What one of them says that fails.
pub(crate) fn provide(
    compiler: &Ahead,
    sources: &[Source],
    arguments: &[OsString],
    jobs: Option<usize>,
) -> Result<(), String> {
    let mut missing = Vec::new();
    for (source, module) in sources.iter().enumerate() {
        let numbers = compiler.missing(module).map_err(|error| error.message().to_string())?;
        missing.extend(numbers.into_iter().map(|number| Text { source, number }));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|why| format!("the file of this program is not known: {why}"))?;
    let run = |Text { source, number }: Text| -> Result<(), String> {
        let mut command = Command::new(&program);
        command.args(arguments).args(["--only", &format!("{source}:{number}")]).stdin(Stdio::null());
        let ended = command.output().map_err(|why| format!("{} cannot be started: {why}", program.display()))?;
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let said = said.trim().trim_start_matches("error: ");
        Err(if said.is_empty() {
            format!("a process that compiled ended with {}", ended.status)
        } else {
            said.to_string()
        })
    };
    let jobs = jobs.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).min(missing.len());
    let progress = Progress::new(
        Some(missing.len() as u64),
        Things::new("text of NVSHMEM's functions compiled", "texts of NVSHMEM's functions compiled"),
    );
    let next = Mutex::new(missing.into_iter());
    let first_error = Mutex::new(None);
    let take = || next.lock().ok()?.next(); // locked only here, not while one is compiled
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(text) = take() {
                    if let Err(why) = run(text) {
                        if let Ok(mut first) = first_error.lock() {
                            first.get_or_insert(why);
                        }
                        return;
                    }
                    progress.step();
                }
            });
        }
    });
    first_error.into_inner().unwrap_or_default().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_two_numbers() {
        assert_eq!("3:14".parse(), Ok(Text { source: 3, number: 14 }));
        for wrong in ["", "3", "3:", ":1", "a:1", "-1:1"] {
            assert!(wrong.parse::<Text>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_suite_has_each_module_once() {
        let names = |extensions| -> std::collections::BTreeSet<String> {
            modules(extensions).iter().map(|source| source.name().to_string()).collect()
        };
        let all = names(true);
        assert_eq!((all.len(), all.contains("order.ptx"), all.contains("atomics.cu")), (18, true, true));
        let missing: Vec<String> = all.difference(&names(false)).cloned().collect();
        assert_eq!(missing, ["extensions.ptx"]);
    }
}
