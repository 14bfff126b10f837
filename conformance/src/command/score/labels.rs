//! What a tool should find in each program: the labels of the corpus, or of a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use onesided_bugs::{Class, Edit, Lines, PROFILES, simulated};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The schema of a file of labels. The README of `onesided-bugs` describes it.
const SCHEMA: &str = "onesided-labels/1";

/// What should be found in a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) name: String,
    /// `None`: nothing.
    pub(super) class: Option<Class>,
    pub(super) pes: usize,
    /// It is run under each of these.
    pub(super) profiles: Vec<String>,
    /// The file that the lines are about; paths in findings end with it.
    pub(super) source: String,
    pub(super) lines: Lines,
    pub(super) fix: Option<Edit>,
}

/// The programs of the corpus: each bug, and its repaired twin under every profile. A bug that only `--strict` finds counts as
/// a right program.
pub(super) fn corpus() -> Vec<Label> {
    let labels = simulated().into_iter().flat_map(|bug| {
        let (label, lines) = (bug.label, bug.lines());
        let every = || PROFILES.map(str::to_string).to_vec();
        let fixed = Label {
            name: format!("{}_fixed", bug.name),
            class: None,
            pes: label.pes,
            profiles: every(),
            source: bug.file.to_string(),
            lines: Lines::default(),
            fix: None,
        };
        let buggy = match label.class {
            Class::Lint => Label { name: bug.name.to_string(), ..fixed.clone() },
            class => Label {
                name: bug.name.to_string(),
                class: Some(class),
                profiles: label.profiles.iter().map(|name| name.to_string()).collect(),
                lines,
                fix: label.fix,
                ..fixed.clone()
            },
        };
        [buggy, fixed]
    });
    labels.collect()
}

#[derive(Deserialize)]
struct File {
    schema: String,
    #[serde(default)]
    programs: Vec<Program>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    /// It must be there: a program without a class is a right one.
    #[serde(deserialize_with = "Option::deserialize")]
    class: Option<String>,
    pes: usize,
    profiles: Vec<String>,
    source: Option<String>,
    first: Option<u32>,
    second: Option<u32>,
    fix: Option<String>,
    fix_at: Option<u32>,
    /// Where it was seen, for readers.
    #[serde(rename = "seen", default)]
    _seen: Option<IgnoredAny>,
}

/// Reads a file of labels, and the marks in the sources that it names.
///
/// # Errors
/// A sentence that names the file, the program and what is wrong with it.
pub(super) fn read(file: &Path) -> Result<Vec<Label>, String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|why| format!("cannot read {shown}: {why}"))?;
    let schema = format!("expected {SCHEMA}, as the README of onesided-bugs describes it");
    let File { schema: found, programs } =
        serde_json::from_str(&text).map_err(|why| format!("{shown} is no file of labels: {why}; {schema}"))?;
    if found != SCHEMA {
        return Err(format!("{shown} is a {found}; {schema}"));
    }
    if programs.is_empty() {
        return Err(format!("{shown} has no programs; {schema}"));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let label = |program: Program| {
        let name = program.name.clone();
        program.label(folder).map_err(|why| format!("{shown}, program {name:?}: {why}"))
    };
    let labels = programs.into_iter().map(label).collect::<Result<Vec<Label>, String>>()?;
    let mut names = BTreeSet::new();
    match labels.iter().find(|label| !names.insert(label.name.as_str())) {
        Some(label) => Err(format!("{shown} has two programs {:?}", label.name)),
        None => Ok(labels),
    }
}

impl Program {
    fn label(self, folder: &Path) -> Result<Label, String> {
        let Program { name, class, pes, profiles, source, first, second, fix, fix_at, _seen: _ } = self;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("a name is one word".to_string());
        }
        if pes == 0 || profiles.is_empty() {
            return Err("it has no PEs, or no profiles; it is run with so many PEs under each profile".to_string());
        }
        if let Some(twice) = profiles.iter().enumerate().find(|(at, profile)| profiles[..*at].contains(profile)) {
            return Err(format!("it has the profile {:?} twice", twice.1));
        }
        if [first, second, fix_at].contains(&Some(0)) {
            return Err("it has a line 0; the first one is 1".to_string());
        }
        let class = class.as_deref().map(|name| named(name, "class", &Class::ALL, Class::name)).transpose()?;
        let fix = fix.as_deref().map(|name| named(name, "fix", &Edit::ALL, Edit::name)).transpose()?;
        let mut lines = Lines { first, second, fix: fix_at };
        if let Some(source) = source.as_deref().filter(|_| class.is_some()) {
            let path = folder.join(source);
            match fs::read_to_string(&path) {
                Ok(text) => {
                    let count = text.lines().count();
                    let given = [first, second, fix_at].into_iter().flatten();
                    if let Some(line) = given.max().filter(|line| *line as usize > count) {
                        return Err(format!("it has a line {line}, and {} has {count}", path.display()));
                    }
                    lines = lines.or(Lines::in_text(&text));
                }
                Err(_) if first.is_some() => {} // the lines are known, and the file need not be here
                Err(why) => return Err(format!("cannot read its source {}: {why}", path.display())),
            }
        }
        if class.is_some() && lines.first.is_none() {
            return Err("it has no lines: give \"first\", or mark a line of its source by `// bug: first`".to_string());
        }
        Ok(Label { name, class, pes, profiles, source: source.unwrap_or_default(), lines, fix })
    }
}

/// The one of that name.
fn named<T: Copy>(name: &str, field: &str, all: &[T], name_of: fn(T) -> &'static str) -> Result<T, String> {
    all.iter().copied().find(|one| name_of(*one) == name).ok_or_else(|| {
        let known: Vec<&str> = all.iter().copied().map(name_of).collect();
        format!("{name:?} is no {field}; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels that a file of programs has, beside a source with two marks.
    fn labels(programs: &str) -> Result<Vec<Label>, String> {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{{ \"schema\": \"onesided-labels/1\", \"programs\": [{programs}] }}");
        fs::write(folder.path().join("labels.json"), text).unwrap();
        fs::write(folder.path().join("mp.c"), "put(); // bug: first, fix\n\nread(); // bug: second\n").unwrap();
        let shown = format!("{}/", folder.path().display());
        read(&folder.path().join("labels.json")).map_err(|why| why.replace(&shown, ""))
    }

    #[test]
    fn lines_are_given_or_marked() {
        let program =
            r#"{ "name": "mp", "class": "race", "pes": 2, "profiles": ["spec"], "source": "mp.c", "fix": "fence" }"#;
        let label = &labels(program).unwrap()[0];
        assert_eq!((label.class, label.fix, label.source.as_str()), (Some(Class::Race), Some(Edit::Fence), "mp.c"));
        assert_eq!(label.lines, Lines { first: Some(1), second: Some(3), fix: Some(1) });
        let given =
            r#"{ "name": "mp", "class": "leak", "pes": 2, "profiles": ["spec"], "source": "absent.c", "first": 7 }"#;
        assert_eq!(labels(given).unwrap()[0].lines, Lines { first: Some(7), ..Lines::default() });
        let right = r#"{ "name": "mp_fixed", "class": null, "pes": 2, "profiles": ["spec", "ours"] }"#;
        assert_eq!(labels(right).unwrap()[0].profiles, ["spec", "ours"]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let with = |fields: &str| format!(r#"{{ "name": "mp", "pes": 2, "profiles": ["spec"], {fields} }}"#);
        let right = with(r#""class": null"#);
        for (programs, why) in [
            (String::new(), "labels.json has no programs; expected onesided-labels/1"),
            ("7".into(), "labels.json is no file of labels: "),
            (with(r#""class": "rase""#), "program \"mp\": \"rase\" is no class; there are race, deadlock, mismatch"),
            (with(r#""class": "race", "first": 1, "fix": "pray""#), "\"pray\" is no fix; there are fence, put_signal"),
            (with(r#""class": "race""#), "it has no lines: give \"first\", or mark"),
            (with(r#""class": "race", "source": "absent.c""#), "cannot read its source absent.c: "),
            (r#"{ "name": "m p", "class": null, "pes": 2, "profiles": ["spec"] }"#.into(), "a name is one word"),
            (r#"{ "name": "mp", "class": null, "pes": 2, "profiles": [] }"#.into(), "it has no PEs, or no profiles"),
            (r#"{ "name": "mp", "pes": 2, "profiles": ["spec"] }"#.into(), "missing field `class`"),
            (with(r#""klass": "race", "class": null"#), "unknown field `klass`"),
            (
                r#"{ "name": "mp", "class": null, "pes": 2, "profiles": ["spec", "spec"] }"#.into(),
                "it has the profile \"spec\" twice",
            ),
            (format!("{right}, {right}"), "labels.json has two programs \"mp\""),
            (with(r#""class": "race", "first": 0"#), "it has a line 0"),
            (with(r#""class": "race", "source": "mp.c", "second": 4"#), "it has a line 4, and mp.c has 3"),
        ] {
            let error = labels(&programs).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("labels.json");
        fs::write(&other, r#"{ "schema": "onesided-labels/2" }"#).unwrap();
        assert!(read(&other).unwrap_err().contains("is a onesided-labels/2; expected onesided-labels/1"));
        assert!(read(&folder.path().join("absent.json")).unwrap_err().starts_with("cannot read "));
    }

    /// The file beside the corpus says what the corpus says.
    #[test]
    fn the_file_of_the_corpus_is_the_corpus() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/src/bugs/labels.json");
        let (from_file, ours) = (read(&file).unwrap(), corpus());
        assert_eq!(from_file.len(), ours.len());
        for (from_file, ours) in from_file.iter().zip(&ours).filter(|(label, _)| label.class != Some(Class::Lint)) {
            let Label { name, class, pes, profiles, lines, fix, .. } = ours;
            assert_eq!((&from_file.name, from_file.class, from_file.pes), (name, *class, *pes));
            assert_eq!((&from_file.profiles, from_file.lines, from_file.fix), (profiles, *lines, *fix), "{name}");
        }
    }
}
