//! A finding in the formats of other tools.

use std::collections::{BTreeMap, BTreeSet};

use onesided_show::{EXPRESSION, Finding, perfetto, sarif, shiviz};
use serde_json::Value;

mod common;
use common::small;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn perfetto_has_a_slice_for_each_event_and_an_arrow_for_each_transfer() {
    let finding = small();
    let trace = parsed(&perfetto(&finding));
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("X").len(), finding.events.len());
    assert!(of("X").iter().all(|slice| slice["dur"].as_u64().unwrap() > 0 && slice["name"].is_string()));

    // an arrow begins and ends inside of slices of its threads
    let (starts, ends) = (of("s"), of("f"));
    assert!(starts.len() >= 5, "4 pieces and a signal: {}", starts.len());
    assert_eq!(starts.len(), ends.len());
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!(start["id"], end["id"]);
        assert!(start["ts"].as_u64() < end["ts"].as_u64(), "{start} {end}");
        for at in [start, end] {
            let slice = of("X")
                .iter()
                .any(|slice| [&slice["pid"], &slice["tid"], &slice["ts"]] == [&at["pid"], &at["tid"], &at["ts"]]);
            assert!(slice, "{at}");
        }
    }
    let names: BTreeSet<String> = of("M").iter().map(|name| name["args"]["name"].to_string()).collect();
    assert!(names.contains("\"PE 1\"") && names.contains("\"memory\""), "{names:?}");
    assert_eq!(of("i").iter().filter(|mark| mark["cat"] == "race").count(), 2);
}

/// An event of a finding.
fn event(stream: &str, kind: &str, op: &str, more: &str) -> onesided_show::Event {
    let text = format!(
        r#"{{ "step": 1, "pe": 0, "stream": {stream}, "event": "{kind}", "op": "{op}", "text": "{op}", "at": "x.rs:1"{more} }}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// What a kernel loads has been set by another lane, or by its own.
#[test]
fn a_flag_of_a_kernel_has_an_arrow_to_the_load_on_another_lane() {
    let mut finding = small();
    let store = event("0", "op", "release store", r#", "to": 0, "memory": "buf0+0..8", "values": ["1"]"#);
    let load = |stream: &str| event(stream, "op", "acquire load", r#", "from": 0, "memory": "buf0+0..8", "by": 0"#);
    finding.events = vec![store, load("1"), load("0")];
    (finding.races, finding.agents) = (Vec::new(), Vec::new());
    let trace = parsed(&perfetto(&finding));
    let of = |phase: &str| trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((of("s"), of("f")), (1, 1));
    let text = onesided_show::events(&finding.events, onesided_show::Terminal { colours: false, columns: 100 });
    assert_eq!(text.lines().filter(|line| line.contains("set by #0")).count(), 2, "{text}");
    assert!(!text.contains("ended by"), "{text}");
}

/// A log as ShiViz reads it: the expression, an empty line, then two lines an event.
fn log(finding: &Finding) -> Vec<(String, BTreeMap<String, u64>, String)> {
    let text = shiviz(finding);
    let mut lines = text.lines();
    assert_eq!((lines.next(), lines.next()), (Some(EXPRESSION), Some("")));
    let mut events = Vec::new();
    while let Some(line) = lines.next() {
        let (host, clock) = line.split_once(' ').unwrap();
        let clock: BTreeMap<String, u64> = serde_json::from_str(clock).unwrap();
        events.push((host.to_string(), clock, lines.next().expect("an event has two lines").to_string()));
    }
    events
}

#[test]
fn shiviz_has_clocks_that_are_clocks() {
    let events = log(&small());
    assert_eq!(events.len(), small().events.len());
    let mut times: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for (host, clock, text) in &events {
        let before = times.entry(host).or_default();
        assert_eq!(clock[host], before.get(host).copied().unwrap_or(0) + 1, "{host} counts its own events: {text}");
        for (other, time) in before.iter() {
            assert!(clock.get(other).is_some_and(|known| known >= time), "{host} forgets nothing: {text}");
        }
        *before = clock.clone();
        for (other, time) in clock {
            let seen = times.get(other.as_str()).and_then(|clock| clock.get(other)).copied().unwrap_or(0);
            assert!(*time <= seen, "{host} knows of {other} only what was before: {text}");
        }
    }
}

/// What the log says happened before what.
#[test]
fn shiviz_knows_what_the_signal_told_and_no_more() {
    let events = log(&small());
    let find = |words: &str| events.iter().find(|(_, _, text)| text.contains(words)).unwrap();
    let is_before = |first: &str, second: &str| {
        let ((host, clock, _), (_, later, _)) = (find(first), find(second));
        later.get(host).is_some_and(|known| *known >= clock[host])
    };
    assert!(is_before("#28 signal_op", "#31 signal_wait_until saw"));
    assert!(is_before("#19 put", "#31 signal_wait_until saw"), "the host put before it signalled");
    assert!(is_before("#4 alloc", "#19 put"), "everybody meets in alloc");
    assert!(!is_before("#17 signal_wait_until", "#19 put"), "and in nothing else");
    assert!(!is_before("#35 delivered", "#38 read"), "this is the race");
    assert!(!is_before("#34 read", "#35 delivered"));
}

/// A quiet knows what it has completed, and nothing that came after its call.
#[test]
fn shiviz_knows_what_a_quiet_completes() {
    let mut finding = small();
    finding.events = vec![
        event("null", "op", "put", r#", "does": "put", "to": 1"#),
        event("null", "op", "quiet", r#", "does": "quiet""#),
        event("null", "delivered", "", r#", "of": 0, "to": 1"#),
        event("null", "returned", "quiet", r#", "of": 1"#),
        event("null", "op", "fence", r#", "does": "fence""#),
    ];
    (finding.races, finding.agents) = (Vec::new(), Vec::new());
    let clocks: Vec<_> = log(&finding).into_iter().map(|(_, clock, _)| clock).collect();
    assert_eq!(clocks[1].get("PE1.memory"), None);
    assert_eq!(clocks[3].get("PE1.memory"), Some(&1));
    assert_eq!(clocks[4].get("PE1.memory"), Some(&1));
}

/// What a host of code requires of a SARIF file.
fn check_shape(log: &Value) {
    assert_eq!((&log["version"], log["$schema"].is_string()), (&"2.1.0".into(), true));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string());
    let rules: Vec<&Value> = driver["rules"].as_array().unwrap().iter().map(|rule| &rule["id"]).collect();
    for result in run["results"].as_array().unwrap() {
        assert!(rules.contains(&&result["ruleId"]), "{result}");
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let related = result["relatedLocations"].as_array().unwrap();
        for location in result["locations"].as_array().unwrap().iter().chain(related) {
            let physical = &location["physicalLocation"];
            let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.contains([' ', '\\', '<']) && !uri.is_empty(), "{uri}");
            assert!(physical["region"]["startLine"].as_u64().unwrap() >= 1);
        }
        let ids: BTreeSet<u64> = related.iter().map(|location| location["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), related.len(), "ids are unique");
        for link in result["message"]["text"].as_str().unwrap().split("](").skip(1) {
            let id: u64 = link.split_once(')').unwrap().0.parse().unwrap();
            assert!(ids.contains(&id), "a link goes to a related location");
        }
    }
}

#[test]
fn sarif_shows_a_race_at_both_lines() {
    let log = parsed(&sarif(&small()));
    check_shape(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let line = |location: &Value| location["physicalLocation"]["region"]["startLine"].as_u64().unwrap();
    let lines: Vec<(u64, u64)> =
        results.iter().map(|result| (line(&result["locations"][0]), line(&result["relatedLocations"][0]))).collect();
    assert_eq!(lines, [(34, 39), (39, 34)]);
    insta::assert_snapshot!("sarif", sarif(&small()));
}

/// A change of a kernel may go in front of its line, or in the place of what is there.
#[test]
fn sarif_says_where_a_change_goes() {
    for (side, words) in [
        (onesided_show::Side::Behind, "behind this: fence"),
        (onesided_show::Side::InFront, "in front of this: fence"),
        (onesided_show::Side::Instead, "in place of this: fence"),
    ] {
        let mut finding = small();
        finding.fix.as_mut().unwrap().edits[0].side = side;
        assert!(sarif(&finding).contains(words), "{words}");
        let mut file = Vec::new();
        finding.write(&mut file).unwrap();
        assert_eq!(Finding::read("f.json", std::str::from_utf8(&file).unwrap()).unwrap(), finding);
    }
}

#[test]
fn sarif_of_other_findings() {
    let mut finding = small();
    finding.races.clear();
    let log = parsed(&sarif(&finding));
    check_shape(&log);
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "failed-wrong-result");
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 41);

    finding.verdict.outcome = "step limit".to_string();
    let given_up = parsed(&sarif(&finding));
    check_shape(&given_up);
    let result = &given_up["runs"][0]["results"][0];
    assert_eq!([&result["ruleId"], &result["level"]], ["step-limit", "note"]);

    finding.verdict.outcome = "finished".to_string();
    let fine = parsed(&sarif(&finding));
    check_shape(&fine);
    assert_eq!(fine["runs"][0]["results"], serde_json::json!([]));
}

/// As under `--races note`: the program says that nothing is wrong.
#[test]
fn races_of_a_run_that_finished_are_notes() {
    let mut finding = small();
    assert!(finding.is_wrong());
    let levels = |finding: &Finding| {
        let log = parsed(&sarif(finding));
        check_shape(&log);
        log["runs"][0]["results"].as_array().unwrap().iter().map(|result| result["level"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(levels(&finding), ["error", "error"]);
    finding.verdict.outcome = "finished".to_string();
    assert!(finding.is_ok() && !finding.is_wrong());
    assert_eq!(levels(&finding), ["note", "note"]);
}

#[test]
fn a_path_becomes_a_uri() {
    let mut finding = small();
    finding.races[0].first.at = onesided_show::Place::from("my dir\\a<b>ü.rs:3".to_string());
    let log = parsed(&sarif(&finding));
    check_shape(&log);
    let uri = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "my%20dir/a%3Cb%3E%C3%BC.rs");
}
