//! A finding on a terminal: what was found, the lines of the program, who was where, and what happened.

mod excerpt;
mod rows;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::count::count;
use crate::diagram::Diagram;
use crate::event::{Event, Kind, Place};
use crate::finding::{Finding, Race, Standing};

/// Where text for people goes.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "both are known of every terminal")]
pub struct Terminal {
    /// Whether it shows colours.
    pub colours: bool,
    /// Its columns.
    pub columns: usize,
}

/// What a text is, which decides how it looks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Look {
    /// A finding.
    Wrong,
    /// What is proved, or repairs something.
    Right,
    /// What a paragraph is about.
    Heading,
    /// A line of a source file.
    Place,
    /// What is read last.
    Faint,
}

impl Terminal {
    /// The text with the colours of what it is, if the terminal shows them.
    #[must_use]
    pub fn paint(self, look: Look, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_string();
        }
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        let style = match look {
            Look::Wrong => colour(AnsiColor::Red).bold(),
            Look::Right => colour(AnsiColor::Green).bold(),
            Look::Heading => Style::new().bold(),
            Look::Place => colour(AnsiColor::Cyan),
            Look::Faint => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// Draws a finding.
pub fn terminal(finding: &Finding, to: Terminal) -> String {
    let finding = &printable(finding);
    let mut out = String::new();
    let diagram = Diagram::new(finding);
    verdict(&mut out, finding, to);
    for (number, race) in finding.races.iter().enumerate() {
        draw_race(&mut out, finding, number, race, to);
    }
    for lint in &finding.lints {
        let _ = writeln!(out, "\n{} {}", to.paint(Look::Heading, "lint"), lint.text);
        out.push_str(&excerpt::excerpts(finding, &[lint.first.clone(), lint.second.clone()], to));
    }
    if finding.races.is_empty() && finding.verdict.outcome != "lint" {
        let places = places_of_the_verdict(finding);
        out += &excerpt::excerpts(finding, &places, to);
    }
    if !finding.exceptions.is_empty() {
        let _ = writeln!(out, "\n{}", to.paint(Look::Heading, "Other than in order"));
        for [late, after] in &finding.exceptions {
            let _ = writeln!(out, "  {late}\n    comes after {after}");
        }
    }
    if let Some(critical) = &finding.critical {
        let _ = writeln!(out, "\n{} {}", to.paint(Look::Heading, "critical step:"), critical.text);
    }
    if let Some(matters) = &finding.matters {
        let _ = writeln!(out, "\n{}", matters.text);
        let short = matters.replay.iter().filter(|replay| replay.len() <= LONGEST);
        short.for_each(|replay| out.push_str(&format!("  {}\n", to.paint(Look::Faint, replay))));
    }
    if let Some(fix) = &finding.fix {
        let _ = writeln!(out, "\n{} {}", to.paint(Look::Right, "fix:"), fix.text);
    }
    at_the_end(&mut out, finding, to);
    out += &rows::rows(&diagram, to);
    out
}

/// Every event, one a line, under headings.
pub fn events(events: &[Event], to: Terminal) -> String {
    let mut out = String::new();
    let width = events.iter().map(|event| event.who().len()).max().unwrap_or(0);
    if !events.is_empty() {
        let headings = format!("{:>5} {:>6}  {:<width$}  {:<11}  what, and where", "event", "step", "who", "kind");
        let _ = writeln!(out, "{}", to.paint(Look::Faint, &headings));
    }
    for (number, event) in events.iter().enumerate() {
        let of = event.of.map(|of| format!(" (#{of})")).unwrap_or_default();
        let ended = if event.kind == Kind::Returned { "ended" } else { "set" };
        let by = event.by.map(|by| format!(", {ended} by #{by}")).unwrap_or_default();
        let values = Some(event.values_in_words()).filter(|text| !text.is_empty()).map(|text| format!(": {text}"));
        let (kind, who, step) = (word(event), event.who(), event.step);
        let place = to.paint(Look::Place, &characters(&event.at.to_string()));
        let number = to.paint(Look::Faint, &format!("{number:>5} {step:>6}"));
        let blank = event.unwritten.as_ref().map(|blank| format!(", {blank}")).unwrap_or_default();
        let text = characters(&format!("{}{}{blank}{by}{of}", event.text, values.unwrap_or_default()));
        let _ = writeln!(out, "{number}  {who:<width$}  {kind:<11}  {text}  {place}");
    }
    out
}

/// The finding without characters that a terminal takes for commands: a program's texts and sources may have anything in them.
fn printable(finding: &Finding) -> Finding {
    fn clean(value: &mut Value) {
        match value {
            Value::String(text) => *text = characters(text),
            Value::Array(values) => values.iter_mut().for_each(clean),
            Value::Object(fields) => fields.values_mut().for_each(clean),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut json = serde_json::to_value(finding).expect("a finding is JSON");
    clean(&mut json);
    serde_json::from_value(json).expect("other texts are no other finding")
}

/// The text without control characters, line ends excepted.
fn characters(text: &str) -> String {
    let character = |c: char| match c {
        '\n' => c,
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(character).collect()
}

fn word(event: &Event) -> &'static str {
    match event.kind {
        Kind::Call => "call",
        Kind::Op => "op",
        Kind::Enqueue => "enqueue",
        Kind::Loads => "loads",
        Kind::SourceRead => "source read",
        Kind::Delivered => "delivered",
        Kind::Signaled => "signaled",
        Kind::Entered => "entered",
        Kind::Returned => "returned",
    }
}

/// Linux takes an argument of 128 KiB.
const LONGEST: usize = 100_000;
const TOO_LONG: &str = "--replay @FILE of the program runs it again, where FILE is this finding (its schedule is too long for a command line)";

fn verdict(out: &mut String, finding: &Finding, to: Terminal) {
    let Finding { program, cluster, profile, schedule, replay, arguments, .. } = finding;
    let (look, what) = match () {
        () if finding.is_ok() => (Look::Right, "fine"),
        () if finding.is_given_up() => (Look::Heading, "GIVEN UP"),
        () => (Look::Wrong, "FINDING"),
    };
    let what = to.paint(look, what);
    let _ = writeln!(out, "{what} {}: {}\n", to.paint(Look::Heading, program), finding.headline());
    let nodes = if cluster.nodes > 1 { format!(" on {} nodes", cluster.nodes) } else { String::new() };
    let given = if arguments.is_empty() { String::new() } else { format!(", {}", arguments.join(" ")) };
    let (pes, events) = (count(cluster.pes, "PE"), count(finding.events.len(), "event"));
    let _ = writeln!(out, "  {pes}{nodes}, profile {profile}{given}, {events}");
    let again = if replay.is_empty() { schedule } else { replay };
    let again = if again.len() > LONGEST { TOO_LONG } else { again };
    let _ = writeln!(out, "  {}", to.paint(Look::Faint, again));
}

fn draw_race(out: &mut String, finding: &Finding, number: usize, race: &Race, to: Terminal) {
    let Race { first, second, pe, memory, made_at, missing, times, known } = race;
    let of =
        if finding.races.len() > 1 { format!(" {} of {}", number + 1, finding.races.len()) } else { String::new() };
    let made = made_at.as_ref().map(|at| format!(", made at {at}")).unwrap_or_default();
    let often = if *times > 1 { format!(", {times} times") } else { String::new() };
    let _ = writeln!(out, "\n{}{of} on {memory} of PE {pe}{made}{often}", to.paint(Look::Wrong, "data race"));
    let _ = writeln!(out, "  {first}");
    out.push_str(&excerpt::excerpt(finding, &first.at, to));
    let _ = writeln!(out, "  {second}");
    out.push_str(&excerpt::excerpt(finding, &second.at, to));
    let _ = writeln!(out, "  nothing orders them; {} {}", to.paint(Look::Right, "missing:"), missing.text);
    let _ = writeln!(out, "  issued in steps {} and {}", first.step, second.step);
    known.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
}

/// The lines to look at first where there is no race: of the verdict, and of what had not arrived.
fn places_of_the_verdict(finding: &Finding) -> Vec<Place> {
    let mut places: Vec<Place> = finding.verdict.at.iter().cloned().collect();
    places.extend(finding.undelivered.iter().map(|transfer| transfer.at.clone()));
    if finding.verdict.outcome == "deadlock" {
        let waiting = finding.agents.iter().filter(|agent| agent.standing == Standing::Waits);
        places.extend(waiting.filter_map(|agent| agent.at.clone()));
    }
    places.sort();
    places.dedup();
    places.truncate(4);
    places
}

/// How many are listed of what there may be thousands of.
const LISTED: usize = 12;

fn at_the_end(out: &mut String, finding: &Finding, to: Terminal) {
    let agents: Vec<&str> = finding.agents.iter().map(|agent| agent.text.as_str()).collect();
    let undelivered: Vec<&str> = finding.undelivered.iter().map(|transfer| transfer.text.as_str()).collect();
    for (heading, lines) in [("At the end", agents), ("Not delivered", undelivered)] {
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", to.paint(Look::Heading, heading));
        lines.iter().take(LISTED).for_each(|line| out.push_str(&format!("  {line}\n")));
        if lines.len() > LISTED {
            let _ = writeln!(out, "  and {} more", lines.len() - LISTED);
        }
    }
}
