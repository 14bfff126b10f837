//! What PTX is for: its version and its target.

/// The `.version` of PTX, as it stands there.
pub(super) fn version(ptx: &str) -> Option<&str> {
    directive(ptx, ".version")
}

/// The number of the architecture that PTX is for: 90 of `.target sm_90a`.
pub(super) fn target(ptx: &str) -> Option<u32> {
    number(directive(ptx, ".target")?.split(',').next()?.trim())
}

/// The architecture to link for: `sm_90a` on an sm_90 for PTX of that target, which other architectures do not run.
pub(super) fn for_target<'a>(ptx: &'a str, architecture: &'a str) -> &'a str {
    let target = directive(ptx, ".target").and_then(|targets| targets.split(',').next()).map(str::trim);
    let is_special = |target: &&str| target.ends_with(['a', 'f']) && number(target) == number(architecture);
    target.filter(is_special).unwrap_or(architecture)
}

/// The number in `sm_90a`.
pub(super) fn number(architecture: &str) -> Option<u32> {
    architecture.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}

fn directive<'a>(ptx: &'a str, name: &str) -> Option<&'a str> {
    let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    Some(line.split("//").next()?.trim())
}

/// The version that nvJitLink understands, if its log says that the PTX is newer.
pub(super) fn understood(log: &str) -> Option<&str> {
    let (_, rest) = log.split_once("Unsupported .version ")?;
    let (_, version) = rest.split_once("current version is '")?;
    Some(version.split_once('\'')?.0)
}

/// The same PTX under an older version. Most PTX uses nothing that is new in its version.
pub(super) fn lowered(ptx: &str, to: &str) -> Option<String> {
    let from = version(ptx)?;
    Some(ptx.replacen(&format!(".version {from}"), &format!(".version {to}"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_target_are_read() {
        let ptx = "//\n// .version 1.0\n//\n\n.version 9.3 // new\n.target sm_90a, debug\n";
        assert_eq!((version(ptx), target(ptx)), (Some("9.3"), Some(90)));
        assert_eq!((version("x"), target(".target gpu")), (None, None));
        assert_eq!(number("sm_121"), Some(121));
    }

    #[test]
    fn ptx_for_one_architecture_alone_is_linked_for_it() {
        for (target, architecture, expected) in [
            ("sm_90", "sm_90", "sm_90"),
            ("sm_90", "sm_100", "sm_100"),
            ("sm_90a, debug", "sm_90", "sm_90a"),
            ("sm_90a", "sm_100", "sm_100"), // which nvJitLink refuses
        ] {
            let ptx = format!(".version 9.3\n.target {target}\n");
            assert_eq!(for_target(&ptx, architecture), expected, "{target} on {architecture}");
        }
    }

    #[test]
    fn a_newer_version_is_lowered_to_what_the_log_names() {
        let log =
            "ptxas application ptx input, line 9; fatal   : Unsupported .version 9.3; current version is '9.0'\nERROR";
        assert_eq!(understood(log), Some("9.0"));
        assert_eq!(understood("Parsing error"), None);
        assert_eq!(lowered("// a\n.version 9.3\n.target sm_90", "9.0").unwrap(), "// a\n.version 9.0\n.target sm_90");
    }
}
