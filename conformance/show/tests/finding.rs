//! Findings as files: what was written is read, and what is no finding is refused with a reason.

use onesided_show::{Finding, Place, Terminal};
use serde_json::{Value, json};

mod common;
use common::{SMALL, small};

#[test]
fn what_is_written_is_read() {
    let finding = small();
    let mut written = Vec::new();
    finding.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), SMALL, "the same bytes");
    assert_eq!((finding.events.len(), finding.races.len(), finding.cluster.pes), (40, 1, 2));
    assert!(finding.source("examples/src/bin/missing_fence.rs").unwrap().contains("fn main()"));
    assert_eq!(finding.files().len(), 1);
    assert!(!finding.is_ok());
}

/// The finding, with some fields changed.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Finding, String> {
    let mut file: Value = serde_json::from_str(SMALL).unwrap();
    change(&mut file);
    Finding::read("it.json", &file.to_string())
}

#[test]
fn what_is_no_finding_is_refused() {
    let read = |text: &str| Finding::read("it.json", text).unwrap_err();
    for (text, why) in [
        ("", "it.json is no finding: it is not JSON"),
        ("{}", "it.json is no finding: it has no schema; --finding FILE of a program writes one"),
        (r#"{ "schema": "onesided-trace/2" }"#, "it.json is a onesided-trace/2, and no finding"),
        (r#"{ "schema": "onesided-finding/1" }"#, "it.json is a broken onesided-finding/1: missing field `program`"),
    ] {
        assert!(read(text).starts_with(why), "{}", read(text));
    }
    let other = changed(|file| file["schema"] = "onesided-finding/2".into()).unwrap_err();
    assert!(other.contains("is a onesided-finding/2, and this version reads onesided-finding/1"), "{other}");
    assert!(
        other.ends_with(
            "missing_fence -- --replay os2.2x1.spec.p4.r5f5f9bc95e2a551b.467866cb --races note --finding FILE"
        ),
        "{other}"
    );
}

/// Fields that a later version adds are no reason to refuse a file.
#[test]
fn unknown_fields_are_passed_over() {
    let with_more = changed(|file| file["races"][0]["colour"] = "red".into());
    assert_eq!(with_more.unwrap(), small());
}

#[test]
fn a_finding_that_would_mislead_a_picture_is_refused() {
    for (event, field, value, why) in [
        (20, "pe", json!(7), "event 20 names PE 7, and the run has 2 PEs"),
        (22, "to", json!(2), "event 22 names PE 2"),
        (22, "of", json!(22), "event 22 names event 22 (of), which is not before it"),
        (31, "by", json!(99), "event 31 names event 99 (by)"),
    ] {
        let refused = changed(|file| file["events"][event][field] = value).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    for (place, value, why) in [
        ("/cluster/pes", json!(10_000_000_000_000_u64), "it has 10000000000000 PEs, and a run has from 1 to 32000"),
        ("/cluster/pes", json!(0), "it has 0 PEs"),
        ("/verdict/pe", json!(7), "the verdict names PE 7, and the run has 2 PEs"),
        ("/races/0/first/pe", json!(2), "race 0 names PE 2"),
        ("/races/0/second/pe", json!(3), "race 0 names PE 3"),
        ("/races/0/pe", json!(4), "race 0 names PE 4"),
        ("/agents/0/pe", json!(2), "agent 0 names PE 2"),
        (
            "/critical",
            json!({ "text": "", "step": "", "instead": "", "proved": true, "event": 40 }),
            "the run has 40 events",
        ),
        ("/events/0/on", json!(u64::MAX), "event 0 names stream 18446744073709551615"),
        ("/events/0/piece", json!(u64::MAX), "event 0 is about piece 18446744073709551615 of "),
    ] {
        let change = |file: &mut Value| match place {
            "/events/0/on" => file["events"][0]["on"] = value,
            "/events/0/piece" => file["events"][0]["piece"] = value,
            _ => *file.pointer_mut(place).expect(place) = value,
        };
        let refused = changed(change).unwrap_err();
        assert!(refused.contains(why), "{place}: {refused}");
    }
    let undelivered = json!([{ "pe": 0, "to": 9, "call": "p", "at": "a.rs:1", "text": "" }]);
    let refused = changed(|file| file["undelivered"] = undelivered).unwrap_err();
    assert!(refused.contains("undelivered transfer 0 names PE 9"), "{refused}");
    for kind in ["delivered", "signaled", "source read"] {
        let streamed =
            |file: &mut Value| (file["events"][22]["event"], file["events"][22]["stream"]) = (kind.into(), 0.into());
        let refused = changed(streamed).unwrap_err();
        assert!(refused.contains("event 22 is a step of a transfer, and names stream 0"), "{refused}");
    }
}

/// Numbers that say nothing wrong, and are larger than any that a program writes.
#[test]
fn large_numbers_are_drawn() {
    let large = changed(|file| {
        file["events"][0]["at"] = "examples/src/bin/missing_fence.rs:18446744073709551615".into();
        file["races"][0]["first"]["at"] = "examples/src/bin/missing_fence.rs:18446744073709551615".into();
        for event in file["events"].as_array_mut().unwrap() {
            event["memory"] = "buf1+0..18446744073709551615".into();
        }
    });
    let large = large.unwrap();
    assert!(onesided_show::terminal(&large, Terminal { colours: false, columns: 120 }).contains("data race"));
    assert!(!onesided_show::html(&large).is_empty() && !onesided_show::shiviz(&large).is_empty());
}

#[test]
fn on_a_terminal() {
    let drawn = onesided_show::terminal(&small(), Terminal { colours: false, columns: 120 });
    insta::assert_snapshot!("terminal", drawn);
    let narrow = onesided_show::terminal(&small(), Terminal { colours: false, columns: 40 });
    assert!(narrow.contains("PE 1") && !narrow.contains('\u{1b}'), "{narrow}");
    insta::assert_snapshot!(
        "events",
        onesided_show::events(&small().events, Terminal { colours: false, columns: 120 })
    );
}

/// As the program itself says it, under `--races note` and where it comes to a limit.
#[test]
fn only_what_is_wrong_is_a_finding() {
    let mut finding = small();
    for (outcome, said, status) in [
        ("race", "FINDING missing_fence: ", "finding"),
        ("failed: wrong result", "FINDING missing_fence: ", "finding"),
        ("exited: 1", "FINDING missing_fence: ", "finding"),
        ("exited: 0", "fine missing_fence: ", "fine"),
        ("finished", "fine missing_fence: ", "fine"),
        ("step limit", "GIVEN UP missing_fence: ", "given up"),
        ("instruction limit", "GIVEN UP missing_fence: ", "given up"),
        ("polls bounded", "GIVEN UP missing_fence: ", "given up"),
        ("stopped", "GIVEN UP missing_fence: ", "given up"),
    ] {
        finding.verdict.outcome = outcome.to_string();
        let drawn = onesided_show::terminal(&finding, Terminal { colours: false, columns: 120 });
        assert!(drawn.starts_with(said), "{outcome}: {drawn}");
        assert!(onesided_show::html(&finding).contains(&format!("\"status\":\"{status}\"")), "{outcome}");
    }
}

/// No terminal shows a command of megabytes, and no shell takes it.
#[test]
fn a_command_that_is_too_long_is_not_shown() {
    let mut finding = small();
    finding.replay = format!("ring --replay os2.2x1.spec.p4.c{}.none", "12".repeat(100_000));
    let drawn = onesided_show::terminal(&finding, Terminal { colours: false, columns: 120 });
    assert!(
        drawn.len() < 50_000
            && drawn.contains("  --replay @FILE of the program runs it again, where FILE is this finding")
    );
}

/// The lanes of a race are shown also where there is room for few.
#[test]
fn a_narrow_terminal_shows_both_sides_of_a_race() {
    let mut finding = small();
    for stream in 0..3 {
        let mut event = finding.events.last().unwrap().clone();
        (event.kind, event.pe, event.stream, event.of) = (onesided_show::Kind::Op, 0, Some(stream), None);
        finding.events.push(event);
    }
    let drawn = onesided_show::terminal(&finding, Terminal { colours: false, columns: 60 });
    let marked = drawn.lines().filter(|line| line.as_bytes().get(5) == Some(&b'!')).count();
    assert_eq!(marked, 2, "{drawn}");
}

#[test]
fn colours_are_for_terminals_that_show_them() {
    let coloured = onesided_show::terminal(&small(), Terminal { colours: true, columns: 120 });
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    let plain = onesided_show::terminal(&small(), Terminal { colours: false, columns: 120 });
    assert!(!plain.contains('\u{1b}'));
    let without: String = strip(&coloured);
    assert_eq!(without, plain);
}

/// The text without commands to the terminal.
fn strip(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, text)| text))
}

/// A program's own texts are characters for a terminal, and no commands.
#[test]
fn a_source_cannot_command_the_terminal() {
    let mut finding = small();
    let text = finding.sources[0].text.as_mut().unwrap();
    *text = text.replace("// BUG", "\u{1b}[2J// BUG");
    finding.verdict.text += "\u{1b}]0;title\u{7}";
    finding.events[33].values = vec!["\u{1b}[31m".to_string()];
    finding.verdict.at = Some(Place::from("a\u{1b}b.rs:1".to_string()));
    let drawn = onesided_show::terminal(&finding, Terminal { colours: false, columns: 120 });
    assert!(!drawn.contains('\u{1b}') && !drawn.contains('\u{7}'), "{drawn:?}");
}
