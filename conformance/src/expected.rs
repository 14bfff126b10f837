//! Outcome files: the reviewed set of what a case may do, and the relation that a backend must have to it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onesided::{Backend, count};
use onesided_harness::tool::output::Output;
use onesided_sim::Profile;

use crate::case::Case;
use crate::outcome::Visited;

/// The folder of outcome files: `chapter/case.txt` for `spec`. If a profile does not allow the same outcomes as `spec`,
/// `chapter/case.PROFILE.txt` has those of the profile.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// The folder's name in messages. They get into reports, which name no path of one machine.
    name: PathBuf,
}

impl Folder {
    /// The folder given, or else `expected/` in this crate's sources, where it was built. Messages name it as it was given, or
    /// as `conformance/expected`.
    pub fn new(folder: Option<&Path>) -> Folder {
        match folder {
            Some(folder) => Folder { path: folder.to_path_buf(), name: folder.to_path_buf() },
            None => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("expected");
                Folder { path, name: "conformance/expected".into() }
            }
        }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that there is such a folder, before cases are compared with its files.
    ///
    /// # Errors
    /// A sentence that names it.
    pub fn check(&self) -> Result<(), String> {
        match self.path.is_dir() {
            true => Ok(()),
            false => {
                let folder = self.path.display();
                Err(format!("there is no folder {folder}; run from the sources, or name it by --expected"))
            }
        }
    }

    /// The file that says what a case may do under a profile, relative to the folder: the profile's own file, or that of `spec`
    /// if the profile has none.
    pub fn name(&self, case: &str, profile: Profile) -> String {
        let own = own_name(case, profile);
        if self.path.join(&own).exists() { own } else { own_name(case, Profile::Spec) }
    }

    /// What a case may do under a profile.
    ///
    /// # Errors
    /// A sentence that names the file, when it is missing, cannot be read, or is not as [`Folder::write`] makes it.
    pub fn read(&self, case: &str, profile: Profile) -> Result<BTreeSet<String>, String> {
        let name = self.name(case, profile);
        let shown = self.name.join(&name);
        let shown = shown.display();
        let text = fs::read_to_string(self.path.join(&name)).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => {
                format!("there is no file {shown}; `onesided suite {case} --promote` writes it")
            }
            _ => format!("{shown}: {why}"),
        })?;
        parse(&text).map_err(|why| format!("{shown}: {why}"))
    }

    /// Writes the outcomes of a case under a profile. Returns whether a file changed. If a profile has the same outcomes as
    /// `spec`, it gets no file, and its old file is removed.
    ///
    /// # Errors
    /// Those of the file system, with the file's name. Also if the outcomes contradict the promises: the profile promises all
    /// that `spec` does and still has an outcome more, or promises less and has an outcome less.
    pub fn write<B: Backend>(&self, case: &Case<B>, profile: Profile, visited: &Visited) -> Result<bool, String> {
        let file = self.path.join(own_name(&case.name, profile));
        if profile != Profile::Spec {
            let spec = self.read(&case.name, Profile::Spec)?;
            let difference = Difference::new(visited.outcomes.keys(), &spec, Relation::Equal);
            let (promises, of_spec) = (profile.promises(), Profile::Spec.promises());
            if let Some(more) = difference.unexpected.first().filter(|_| promises.include(&of_spec)) {
                return Err(format!("{profile} allows {more}, which spec does not: a profile only promises more"));
            }
            if let Some(less) = difference.missing.first().filter(|_| of_spec.include(&promises)) {
                return Err(format!("spec allows {less}, which {profile} does not, although it promises less"));
            }
            if difference.is_empty() {
                return remove(&file);
            }
        }
        let text = print(case, profile, visited.outcomes.keys().map(String::as_str));
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            return Ok(false);
        }
        let parent = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|why| format!("{}: {why}", parent.display()))?;
        Output::prepare(&file)?.finish(|out| out.write_all(text.as_bytes()))?;
        Ok(true)
    }
}

/// The name of a profile's own file.
fn own_name(case: &str, profile: Profile) -> String {
    match profile {
        Profile::Spec => format!("{case}.txt"),
        other => format!("{case}.{other}.txt"),
    }
}

/// Removes a file; false if there was none.
fn remove(file: &Path) -> Result<bool, String> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(format!("{}: {why}", file.display())),
    }
}

/// A case's file: a comment with what the outcomes belong to, then one outcome a line, sorted.
pub fn print<'a, B: Backend>(case: &Case<B>, profile: Profile, outcomes: impl Iterator<Item = &'a str>) -> String {
    let Case { name, pes, nodes, gpus, .. } = case;
    let mut text = format!("# {name}\n# {}", count(*pes, "PE"));
    if *nodes > 1 {
        text += &format!(" on {nodes} nodes");
    }
    if let Some(gpus) = gpus {
        text += &format!(" sharing {}", count(*gpus, "GPU"));
    }
    text += &format!(", profile {profile}\n");
    for outcome in outcomes {
        text += outcome;
        text.push('\n');
    }
    text
}

fn parse(text: &str) -> Result<BTreeSet<String>, String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    if lines.is_empty() {
        return Err("it holds no outcome".to_string());
    }
    if !lines.is_sorted_by(|one, next| one < next) {
        return Err("its outcomes are not sorted, or one stands there twice".to_string());
    }
    Ok(lines.into_iter().map(str::to_string).collect())
}

/// How a set of outcomes must relate to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one set equals another, or is a part of it")]
pub enum Relation {
    /// The same outcomes: every schedule was visited.
    Equal,
    /// No other outcomes: some schedules were visited.
    Subset,
}

/// Where outcomes and their file differ. Empty where they do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Outcomes that are not in the file.
    pub unexpected: Vec<String>,
    /// Outcomes of the file that should have been seen.
    pub missing: Vec<String>,
}

impl Difference {
    /// Compares what was seen with the file.
    pub fn new<'a>(
        seen: impl IntoIterator<Item = &'a String>,
        expected: &BTreeSet<String>,
        relation: Relation,
    ) -> Difference {
        let seen: BTreeSet<&String> = seen.into_iter().collect();
        let unexpected = seen.iter().filter(|outcome| !expected.contains(**outcome)).map(ToString::to_string).collect();
        let missing = match relation {
            Relation::Equal => expected.iter().filter(|outcome| !seen.contains(outcome)).cloned().collect(),
            Relation::Subset => Vec::new(),
        };
        Difference { unexpected, missing }
    }

    /// Whether they agree.
    pub fn is_empty(&self) -> bool {
        self.unexpected.is_empty() && self.missing.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unexpected = self.unexpected.iter().map(|outcome| ("seen, not in the file", outcome));
        let missing = self.missing.iter().map(|outcome| ("in the file, not seen", outcome));
        for (index, (what, outcome)) in unexpected.chain(missing).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{what}: {outcome}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let case = Case::<onesided_sim::Sim>::new("chapter/case", 4, |_| unreachable!()).nodes(2).gpus(2);
        let text = print(&case, Profile::Spec, ["0: x=1", "0: x=2"].into_iter());
        assert_eq!(text, "# chapter/case\n# 4 PEs on 2 nodes sharing 2 GPUs, profile spec\n0: x=1\n0: x=2\n");
        assert_eq!(parse(&text).unwrap(), BTreeSet::from(["0: x=1".to_string(), "0: x=2".to_string()]));
    }

    #[test]
    fn a_profile_that_allows_more_than_spec_gets_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let case = Case::<onesided_sim::Sim>::new("chapter/case", 1, |_| unreachable!());
        std::fs::create_dir(folder.path().join("chapter")).unwrap();
        std::fs::write(folder.path().join("chapter/case.txt"), "0: x=1\n").unwrap();
        let expected = Folder::new(Some(folder.path()));
        let sighting =
            crate::outcome::Sighting { schedules: 1, example: "os2.1x1.nvlink.p4.o.00000000".parse().unwrap() };
        let outcomes = [("0: x=2".to_string(), sighting)].into();
        let visited = Visited { outcomes, schedules: 1, complete: true, race: None };
        let why = expected.write(&case, Profile::Nvlink, &visited).unwrap_err();
        assert!(why.starts_with("nvlink allows 0: x=2, which spec does not"), "{why}");
        assert_eq!(expected.name("chapter/case", Profile::Nvlink), "chapter/case.txt");
    }

    #[test]
    fn messages_name_the_folder_as_it_was_given() {
        let why = |folder: Option<&str>| {
            Folder::new(folder.map(Path::new)).read("chapter/absent", Profile::Spec).unwrap_err()
        };
        let absent = "chapter/absent.txt; `onesided suite chapter/absent --promote` writes it";
        assert_eq!(why(Some("./no/such")), format!("there is no file ./no/such/{absent}"));
        assert_eq!(why(None), format!("there is no file conformance/expected/{absent}"));
    }

    #[test]
    fn files_without_outcomes_or_order_are_refused() {
        for (text, why) in [("# only a comment\n", "no outcome"), ("b\na\n", "not sorted"), ("a\na\n", "twice")] {
            assert!(parse(text).unwrap_err().contains(why), "{text:?}");
        }
    }

    #[test]
    fn the_relation_decides_what_may_be_missing() {
        let expected = BTreeSet::from(["deadlock".to_string()]);
        assert!(Difference::new([], &expected, Relation::Subset).is_empty());
        let difference = Difference::new([], &expected, Relation::Equal);
        assert_eq!(difference.to_string(), "in the file, not seen: deadlock");
    }
}
