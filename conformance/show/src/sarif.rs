//! SARIF 2.1.0, by which code hosts show findings at the lines of a change. A race is a result at each of its two lines, so that it
//! shows at whichever of them was changed; the other is a related location.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::event::Place;
use crate::finding::{Access, Finding, Lint, Race, Side};

/// The finding as a SARIF log.
pub fn sarif(finding: &Finding) -> String {
    let mut results: Vec<Value> = Vec::new();
    for race in &finding.races {
        results.push(side(finding, race, &race.first, &race.second));
        if race.first.at != race.second.at {
            results.push(side(finding, race, &race.second, &race.first));
        }
    }
    results.extend(finding.lints.iter().map(|lint| note(lint, finding)));
    if finding.races.is_empty() && is_told(finding) {
        results.push(verdict(finding));
    }
    let rules: Vec<Value> = rules(finding);
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "onesided",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "properties": {
                "program": finding.program, "schedule": finding.schedule, "replay": finding.replay,
                "profile": finding.profile, "pes": finding.cluster.pes,
            },
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

/// Whether the verdict is a result of its own: a lint is one already.
fn is_told(finding: &Finding) -> bool {
    !finding.is_ok() && finding.verdict.outcome != "lint"
}

/// How much the run's own result matters. What the program takes for no finding is a note.
fn level(finding: &Finding) -> &'static str {
    if finding.is_wrong() { "error" } else { "note" }
}

/// A rule for each kind of finding: its name is the verdict's, with dashes.
fn rules(finding: &Finding) -> Vec<Value> {
    let rule = |id: String, text: &str| json!({ "id": id, "shortDescription": { "text": text } });
    let lints: BTreeMap<&str, &str> =
        finding.lints.iter().map(|lint| (lint.lint.as_str(), lint.text.lines().nth(1).unwrap_or_default())).collect();
    let lints = lints.into_iter().map(|(name, text)| rule(name.to_string(), text.trim()));
    let mut rules = match (finding.races.is_empty(), !is_told(finding)) {
        (false, _) => {
            vec![rule("data-race".into(), "Two accesses to the same memory, one of them a write, that nothing orders")]
        }
        (true, false) => {
            let text = match finding.is_given_up() {
                true => "A run of the program that was ended before its end",
                false => "A run of the program that must not be possible",
            };
            vec![rule(rule_of(&finding.verdict.outcome), text)]
        }
        (true, true) => Vec::new(),
    };
    rules.extend(lints);
    rules
}

fn rule_of(outcome: &str) -> String {
    let words: Vec<&str> = outcome.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// A race, as it shows at the line of `here`.
fn side(finding: &Finding, race: &Race, here: &Access, other: &Access) -> Value {
    let Race { pe, memory, missing, .. } = race;
    let message = format!(
        "Data race on {memory} of PE {pe}: {here}, and [{other}](1). Nothing orders them; missing: {}.{}",
        missing.text,
        fix(finding)
    );
    let mut related = vec![location(&other.at, Some((1, format!("the other access: {other}"))))];
    if let Some(made) = &race.made_at {
        related.push(location(made, Some((2, format!("{memory} was made here")))));
    }
    for (access, whose) in [(here, "this"), (other, "the other")] {
        for caller in &access.inlined_at {
            related.push(location(caller, Some((related.len() + 1, format!("where {whose} line was inlined")))));
        }
    }
    related.extend(places_of_the_fix(finding, related.len()));
    let lines = format!("{} {} {}", here.at, other.at, missing.call);
    json!({
        "ruleId": "data-race", "level": level(finding), "message": { "text": message },
        "locations": [location(&here.at, None)],
        "relatedLocations": related,
        "partialFingerprints": { "accesses/v1": lines },
    })
}

/// A lint, at the second of its lines.
fn note(lint: &Lint, finding: &Finding) -> Value {
    let level = if finding.verdict.outcome == "lint" { "error" } else { "note" };
    let text = lint.text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    let between = lint.between.iter().map(|at| location(at, Some((2, "the call between them".to_string()))));
    let first = location(&lint.first, Some((1, "the other call".to_string())));
    json!({
        "ruleId": lint.lint, "level": level, "message": { "text": text },
        "locations": [location(&lint.second, None)],
        "relatedLocations": std::iter::once(first).chain(between).collect::<Vec<_>>(),
    })
}

/// A finding that is no race: at its line, with what had not arrived and who waited.
fn verdict(finding: &Finding) -> Value {
    let places = finding.undelivered.iter().map(|transfer| (&transfer.at, format!("not delivered: {}", transfer.text)));
    let agents = finding.agents.iter().filter_map(|agent| Some((agent.at.as_ref()?, agent.text.clone())));
    let mut about: Vec<(Place, String)> = places.chain(agents).map(|(at, text)| (at.clone(), text)).collect();
    let at = finding.verdict.at.clone().or_else(|| about.first().map(|(at, _)| at.clone()));
    about.retain(|(place, _)| place.line > 0);
    let mut related: Vec<Value> =
        about.iter().enumerate().map(|(i, (place, text))| location(place, Some((i + 1, text.clone())))).collect();
    related.extend(places_of_the_fix(finding, related.len()));
    let outcome = &finding.verdict.outcome;
    json!({
        "ruleId": rule_of(outcome), "level": level(finding),
        "message": { "text": format!("{}: {}{}", finding.program, finding.verdict.text, fix(finding)) },
        "locations": at.iter().filter(|place| place.line > 0).map(|place| location(place, None)).collect::<Vec<_>>(),
        "relatedLocations": related,
    })
}

/// What would repair it, as a sentence behind others.
fn fix(finding: &Finding) -> String {
    finding.fix.as_ref().map(|fix| format!(" Fix: {}.", fix.text)).unwrap_or_default()
}

/// Where a repair goes: further related locations, behind so many.
fn places_of_the_fix(finding: &Finding, behind: usize) -> Vec<Value> {
    let edits = finding.fix.iter().flat_map(|fix| &fix.edits).filter(|edit| edit.after.line > 0).enumerate();
    edits
        .map(|(i, edit)| {
            let side = match edit.side {
                Side::Behind => "behind this",
                Side::InFront => "in front of this",
                Side::Instead => "in place of this",
            };
            location(&edit.after, Some((behind + i + 1, format!("{side}: {}", edit.call))))
        })
        .collect()
}

/// A location; one that is related has a number and a text.
fn location(place: &Place, related: Option<(usize, String)>) -> Value {
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&place.file) },
            "region": { "startLine": place.line.max(1) },
        },
    });
    if let Some((id, text)) = related {
        location["id"] = id.into();
        location["message"] = json!({ "text": text });
    }
    location
}

/// A path as a URI: what a URI cannot have is written as bytes.
fn uri(file: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let slashes = file.replace('\\', "/");
    slashes
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
