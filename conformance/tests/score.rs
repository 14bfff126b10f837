//! `onesided score`, as a user calls it.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::{stderr, stdout};
use serde_json::Value;

fn score(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.arg("score").args(arguments).env_remove("COLUMNS").output().unwrap()
}

/// How many runs it has.
fn programs_of(score: &Value) -> Option<u64> {
    Some(score["programs"].as_array()?.len() as u64)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Nothing is found in the repaired programs; each bug is found at its lines, and repaired where its label says by what.
#[test]
fn the_corpus_is_found() {
    let output = score(&["--json", "-"]);
    let score: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&score["schema"], &score["false_alarms"]), (&Value::from("onesided-score/1"), &Value::from(0)));
    assert_eq!((&score["complete"], score["runs"].as_u64()), (&Value::from(true), programs_of(&score)));
    assert!(stderr(&output).contains("\nprecision  1.000  "), "{}", stderr(&output));
    let programs = score["programs"].as_array().unwrap();
    assert!(score["bugs"].as_u64().unwrap() > 100 && programs.len() > 300);
    for program in programs {
        assert_eq!(program["strict"], true, "{program:#}");
        assert_ne!(program["fix"], false, "{program:#}");
        assert_eq!(program["noise"], 0, "{program:#}");
    }
}

/// A tool that is a shell script: it is given a name, PEs, a profile and a file for its finding.
#[cfg(unix)]
#[test]
fn programs_of_others_are_scored_by_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let (labels, tool) = (folder.path().join("labels.json"), folder.path().join("tool"));
    fs::write(folder.path().join("mp.c"), "put();      // bug: first, fix\nsignal();\nread();     // bug: second\n")
        .unwrap();
    let program = |name: &str, class: &str| {
        format!(
            r#"{{ "name": "{name}", "class": {class}, "pes": 2, "profiles": ["ours"], "source": "mp.c", "fix": "fence" }}"#
        )
    };
    let programs = [
        program("mp", "\"race\""),
        program("mp_fixed", "null"),
        program("quiet", "\"race\""),
        program("broken", "null"),
    ];
    fs::write(&labels, format!(r#"{{ "schema": "onesided-labels/1", "programs": [{}] }}"#, programs.join(",")))
        .unwrap();
    let access = |line: u32| {
        format!(
            r#"{{"pe":0,"stream":null,"call":"put","at":"src/mp.c:{line}","part":"delivery","how":"write","step":1}}"#
        )
    };
    let race = format!(
        r#"{{"first":{},"second":{},"pe":1,"memory":"x","made_at":null,"missing":{{"text":"a fence","call":"fence","after":"mp.c:1","before":"mp.c:2"}},"times":1}}"#,
        access(1),
        access(3)
    );
    let finding = format!(
        r#"{{"schema":"onesided-finding/1","program":"mp","checks":"","arguments":[],"cluster":{{"pes":2,"nodes":1,"gpus":null,"pieces":4}},"profile":"ours","schedule":"","replay":"","verdict":{{"outcome":"race","text":"","pe":null,"at":null}},"races":[{race}],"agents":[],"undelivered":[],"sources":[],"events":[]}}"#
    );
    fs::write(folder.path().join("finding"), finding).unwrap();
    let script = r#"
        [ "$1 $3 $4 $5 $6" = "run --pes 2 --profile ours" ] || { echo "not what was expected: $*"; exit 2; }
        case $2 in
            mp) cp "$0".finding "$8"; exit 1;;
            broken) echo "it does not work" >&2; exit 4;;
        esac"#;
    fs::write(&tool, script).unwrap();
    fs::rename(folder.path().join("finding"), folder.path().join("tool.finding")).unwrap();

    let json = folder.path().join("score.json");
    let output = score(&["--labels", path(&labels), "--json", path(&json), "--", "sh", path(&tool), "run"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(2), "{said}{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 4 programs could not be run"), "{}", stderr(&output));
    assert!(said.contains("broken under ours: could not be run: status 4: it does not work"), "{said}");
    assert!(said.contains("quiet under ours: race is not found"), "{said}");
    assert!(said.contains("precision  1.000  1 of 1 finding about"), "{said}");
    assert!(said.contains("recall     0.500  1 of 2 bugs"), "{said}");
    let found: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let [mp, fixed, quiet, broken] = &found["programs"].as_array().unwrap()[..] else { panic!("{found:#}") };
    assert_eq!([&mp["strict"], &mp["fix"], &fixed["right"], &quiet["right"]], [true, true, true, false]);
    assert_eq!(
        (&mp["found"], &broken["error"]),
        (&Value::from(vec!["race"]), &Value::from("status 4: it does not work"))
    );
}

/// What is known until then is printed, and that there was more to come.
#[cfg(unix)]
#[test]
fn a_sigterm_ends_it_with_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (labels, tool) = (folder.path().join("labels.json"), folder.path().join("tool"));
    fs::write(folder.path().join("p.c"), "put();\n").unwrap();
    let program = |number: usize| {
        format!(
            r#"{{ "name": "p{number}", "class": null, "pes": 2, "profiles": ["ours"], "source": "p.c", "fix": null }}"#
        )
    };
    let programs: Vec<String> = (0..500).map(program).collect();
    fs::write(&labels, format!(r#"{{ "schema": "onesided-labels/1", "programs": [{}] }}"#, programs.join(",")))
        .unwrap();
    // the first that comes here sends the signal: a second one would end the process at once
    fs::write(&tool, r#"mkdir "$0".once 2>/dev/null && kill -TERM $PPID; exit 0"#).unwrap();
    let output = score(&["--labels", path(&labels), "--", "sh", path(&tool), "run"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(143), "{said}{}", stderr(&output));
    assert!(said.contains(" of 500 runs, ended by you, ") && said.contains("recall "), "{said}");
}

#[test]
fn wrong_usage_is_refused() {
    for (arguments, why) in [
        (&["--labels", "absent.json"][..], "<COMMAND>..."),
        (&["--", "tool"], "--labels <FILE>"),
        (&["--labels", "absent.json", "--", "tool"], "cannot read absent.json: "),
        (&["--schedules", "0"], "expected a whole number from 1"),
    ] {
        let output = score(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}
