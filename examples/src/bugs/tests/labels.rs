//! Labels are whole, every file is listed, and the table and `labels.json` are those of the labels.
//!
//! `INSTA_UPDATE=always cargo test -p onesided-bugs --test labels` writes both anew, as it does with snapshots.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use onesided_bugs::{Bug, Class, Edit, PROFILES, simulated};
use onesided_sim::{Profile, Sim};
use serde_json::json;

/// The most lines in which a twin differs, added ones and removed ones counted.
const FEW: usize = 10;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_file_is_a_bug_with_a_name_of_its_own() {
    let mut files = BTreeSet::new();
    for chapter in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if !chapter.join("mod.rs").exists() {
            continue;
        }
        for file in fs::read_dir(&chapter).unwrap().map(|entry| entry.unwrap().path()) {
            let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
            files.insert(format!("{}/{}", name(&chapter), name(&file)));
        }
    }
    files.retain(|file| !file.ends_with("/mod.rs") && !file.ends_with(".ptx")); // PTX is compiled from a file
    let listed: BTreeSet<String> = simulated().iter().map(|bug| bug.file.to_string()).collect();
    assert_eq!(files, listed);
    let names: BTreeSet<&str> = simulated().iter().map(|bug| bug.name).collect();
    assert_eq!(names.len(), listed.len());
}

#[test]
fn labels_are_whole() {
    for bug in simulated() {
        let Bug { name, label, .. } = &bug;
        let lines = bug.lines();
        assert!((2..=4).contains(&label.pes) && !label.seen.is_empty() && !label.profiles.is_empty(), "{name}");
        assert!(label.profiles.iter().all(|profile| profile.parse::<Profile>().is_ok()), "{name}");
        assert!(lines.first.is_some(), "{name} has no line");
        assert!(lines.second.is_some() || label.class != Class::Race, "{name} is a race of one line");
        assert_eq!(lines.fix.is_some(), label.fix.is_some(), "{name}: the fix and its line");
        let [buggy, fixed] = programs(&bug);
        assert!(buggy.contains("// bug: ") && !fixed.contains("// bug: "), "{name}: marks belong into `buggy`");
        let sentence = bug.sentence();
        assert!(sentence.len() < 160 && !sentence.contains('|'), "{name}: {sentence}");
    }
}

/// The text of both programs, without what they share.
fn programs<'a>(bug: &Bug<Sim>) -> [&'a str; 2]
where
    Bug<Sim>: 'a,
{
    let (_, programs) = bug.text.split_once(" buggy(").expect("a program with the bug");
    let (buggy, fixed) = programs.split_once(" fixed(").expect("a program without it");
    [buggy, fixed.split_once("\n}\n").map_or(fixed, |(program, _)| program)]
}

#[test]
fn twins_differ_in_few_lines() {
    for bug in simulated() {
        let lines = programs(&bug).map(|text| {
            let lines = text.lines().map(|line| line.split("// bug: ").next().unwrap_or_default().trim());
            lines.filter(|line| !line.is_empty() && *line != "}").collect::<Vec<_>>()
        });
        let differing = differing(&lines[0], &lines[1]);
        assert!((1..=FEW).contains(&differing), "{} differs from its twin in {differing} lines", bug.name);
    }
}

/// How many lines have to be added and removed to make one from the other.
fn differing(a: &[&str], b: &[&str]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, line) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let same = if line == other { diagonal } else { usize::MAX };
            diagonal = row[j + 1];
            row[j + 1] = same.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// Every row of the table of misuse that is a race, or a mistake of order, has a bug here.
#[test]
fn every_misuse_that_is_a_race_is_here() {
    let table = fs::read_to_string(folder().join("../../../backend-sim/MISUSE.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ") && line.contains("| by race"));
    let rows: Vec<u32> = rows.map(|line| line.split('|').nth(1).unwrap().trim().parse().unwrap()).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    let seen: Vec<&str> = simulated().iter().map(|bug| bug.label.seen).collect();
    for row in rows {
        let name = format!("MISUSE.md, row {row}");
        let is_it =
            |seen: &&str| seen.strip_prefix(&name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
        assert!(seen.iter().any(is_it), "no bug is of row {row}");
    }
}

#[test]
fn the_names_of_classes_and_edits_are_in_the_readme() {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    for class in Class::ALL {
        assert!(readme.contains(&format!("| `{}` |", class.name())), "{}", class.name());
    }
    for edit in Edit::ALL {
        assert!(readme.contains(&format!("`{}`", edit.name())), "{}", edit.name());
    }
}

#[test]
fn the_table_is_that_of_the_labels() {
    let path = folder().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- bugs -->\n").expect("where the table begins");
    let (_, after) = rest.split_once("<!-- /bugs -->\n").expect("where it ends");
    compare(&path, &format!("{before}<!-- bugs -->\n{}<!-- /bugs -->\n{after}", table()));
}

#[test]
fn the_file_is_that_of_the_labels() {
    compare(&folder().join("labels.json"), &labels());
}

/// Writes the file, or holds it to what it should be.
#[track_caller]
fn compare(path: &Path, fresh: &str) {
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        return fs::write(path, fresh).unwrap();
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let repair = "INSTA_UPDATE=always cargo test -p onesided-bugs --test labels writes it";
    assert!(text == fresh, "{} differs from the labels; {repair}", path.display());
}

fn table() -> String {
    let mut text = String::new();
    let mut chapter = "";
    for bug in simulated() {
        let Bug { name, label, file, .. } = &bug;
        if bug.chapter != chapter {
            chapter = bug.chapter;
            text +=
                &format!("\n**{chapter}**\n\n| bug | what is wrong | class | PEs | profiles | seen | repaired by |\n");
            text += "|---|---|---|---|---|---|---|\n";
        }
        let repair = label.fix.map_or("", Edit::name);
        let (class, pes, profiles, seen) = (label.class.name(), label.pes, label.profiles.join(", "), label.seen);
        text += &format!(
            "| [`{name}`]({file}) | {} | {class} | {pes} | {profiles} | {seen} | {repair} |\n",
            bug.sentence()
        );
    }
    text + "\n"
}

/// One program a line.
fn labels() -> String {
    let mut programs = Vec::new();
    for Bug { name, label, file, .. } in simulated() {
        let fix = label.fix.map(Edit::name);
        programs.push(json!({
            "name": name, "class": label.class.name(), "pes": label.pes, "profiles": label.profiles,
            "source": file, "fix": fix, "seen": label.seen,
        }));
        programs
            .push(json!({ "name": format!("{name}_fixed"), "class": null, "pes": label.pes, "profiles": PROFILES }));
    }
    let lines: Vec<String> = programs.iter().map(|program| format!("  {program}")).collect();
    format!("{{\n\"schema\": \"onesided-labels/1\",\n\"programs\": [\n{}\n]\n}}\n", lines.join(",\n"))
}
