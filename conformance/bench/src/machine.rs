//! Which machine this is: numbers without it are worth nothing.

use std::fmt;
use std::fs;

/// The machine and the build that the numbers belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// The processor's model.
    pub(super) cpu: String,
    /// Cores that this process may use.
    pub(super) cores: usize,
    /// The operating system.
    pub(super) os: String,
    /// `release`, or `debug`: numbers of unoptimized builds are not to be compared.
    pub(super) build: &'static str,
}

impl Machine {
    /// This one.
    pub(super) fn here() -> Machine {
        let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| field(&text, "model name", ':'));
        let system = fs::read_to_string("/etc/os-release").ok().and_then(|text| field(&text, "PRETTY_NAME", '='));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        let os = match (system, kernel) {
            (Some(system), Some(kernel)) => format!("{system}, kernel {}", kernel.trim()),
            (Some(system), None) => system,
            _ => std::env::consts::OS.to_string(),
        };
        Machine {
            cpu: cpu.unwrap_or_else(|| std::env::consts::ARCH.to_string()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os,
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cores, os, build } = self;
        write!(f, "{cpu}, {cores} cores, {os}, {build} build")
    }
}

/// The value of the first line `name SEPARATOR value`, without quotation marks.
pub(super) fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let of_line = |line: &str| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_string())
    };
    text.lines().find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: Abacus 9\nmodel name\t: Abacus 10\n";
        assert_eq!(field(text, "model name", ':').as_deref(), Some("Abacus 9"));
        assert_eq!(field("NAME=x\nPRETTY_NAME=\"X 12\"\n", "PRETTY_NAME", '=').as_deref(), Some("X 12"));
        assert_eq!(field(text, "flags", ':'), None);
    }
}
