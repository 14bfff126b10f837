//! One finding against its label.

use onesided_bugs::{Class, Edit};
use onesided_show::{self as show, Finding, Missing, Place};

use super::labels::Label;

/// What came of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    /// The classes of what was found: `None` where no label has such a class.
    pub(super) found: Vec<Option<Class>>,
    /// Whether that is what the label says: its class, or nothing.
    pub(super) is_right: bool,
    /// Whether one report has the class and both lines.
    pub(super) is_strict: bool,
    /// Reports about other lines than the label's.
    pub(super) noise: usize,
    /// Whether the repair that the finding proposes is the label's. `None`: the label has none, or the bug was not found.
    pub(super) fix: Option<bool>,
    /// What was found, in words, and the command that shows it.
    pub(super) text: String,
}

/// One thing that a finding says.
struct Report<'a> {
    class: Option<Class>,
    /// Both lines, if they are known apart from its text.
    lines: Option<[&'a Place; 2]>,
    text: String,
    missing: Option<&'a Missing>,
}

pub(super) fn judge(label: &Label, finding: Option<&Finding>) -> Judged {
    let reports = finding.map(reports).unwrap_or_default();
    let of_class = |report: &Report<'_>| label.class.is_some() && report.class == label.class;
    let strict = reports.iter().find(|report| of_class(report) && report.names(label));
    let is_right = match label.class {
        Some(_) => reports.iter().any(of_class),
        None => reports.is_empty(),
    };
    let is_fixed = |fix: Edit| match finding.and_then(|finding| finding.fix.as_ref()) {
        Some(proposed) => proposed.edits.iter().any(|edit| is_edit(edit, fix, label)),
        None => strict.and_then(|report| report.missing).is_some_and(|missing| is_label(missing, fix, label)),
    };
    Judged {
        found: reports.iter().map(|report| report.class).collect(),
        is_right,
        is_strict: strict.is_some() || (label.class.is_none() && is_right),
        noise: reports.iter().filter(|report| !report.is_within(label)).count(),
        fix: label.fix.filter(|_| strict.is_some()).map(is_fixed),
        text: finding.filter(|_| !reports.is_empty()).map(in_words).unwrap_or_default(),
    }
}

/// What a finding reports: its races. If it has none, how the run ended. (After a race anything may go wrong, so the end of the
/// run does not count.)
fn reports(finding: &Finding) -> Vec<Report<'_>> {
    if !finding.is_wrong() {
        return Vec::new();
    }
    if finding.races.is_empty() {
        let agents = finding.agents.iter().map(|agent| agent.text.as_str());
        let text = [finding.verdict.text.as_str()].into_iter().chain(agents).collect::<Vec<_>>().join("\n");
        return vec![Report { class: Class::of_outcome(&finding.verdict.outcome), lines: None, text, missing: None }];
    }
    let reports = finding.races.iter().map(|race| Report {
        class: Some(Class::of_race([&race.first.call, &race.second.call])),
        lines: Some([&race.first.at, &race.second.at]),
        text: String::new(),
        missing: Some(&race.missing),
    });
    reports.collect()
}

impl Report<'_> {
    /// Whether it names the label's lines.
    fn names(&self, label: &Label) -> bool {
        let mut wanted = [label.lines.first, label.lines.second].into_iter().flatten();
        match self.lines {
            None => wanted.all(|line| mentions(&self.text, &label.source, line)),
            Some(lines) => wanted.all(|line| lines.iter().any(|place| is_line(place, label, line))),
        }
    }

    /// Whether it is about the label's lines, or some of them.
    fn is_within(&self, label: &Label) -> bool {
        let Some(lines) = self.lines else { return self.names(label) };
        let wanted = [label.lines.first, label.lines.second];
        lines.iter().all(|place| wanted.into_iter().flatten().any(|line| is_line(place, label, line)))
    }
}

fn is_line(place: &Place, label: &Label, line: u32) -> bool {
    place.line == line as usize && is_file(&place.file, &label.source)
}

/// Whether two paths name the same file: one must end with the other.
fn is_file(path: &str, source: &str) -> bool {
    let [path, source] = [path, source].map(std::path::Path::new);
    path.ends_with(source) || source.ends_with(path)
}

/// Whether a text has the place `source:line`, with more or less of the path before the file's name.
fn mentions(text: &str, source: &str, line: u32) -> bool {
    let end = format!(":{line}");
    text.match_indices(&end).any(|(at, _)| {
        let begin = text[..at].rfind([' ', '(', '\n']).map_or(0, |before| before + 1);
        is_file(&text[begin..at], source) && !text[at + end.len()..].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether the call of a missing edge is the label's edit, between the same lines.
fn is_label(missing: &Missing, fix: Edit, label: &Label) -> bool {
    is_call(&missing.call, fix) && is_between(&missing.after, Some(&missing.before), fix, label)
}

/// Whether a change that was tried is the label's edit.
fn is_edit(edit: &show::Edit, fix: Edit, label: &Label) -> bool {
    let is_there = match edit.side {
        show::Side::InFront => label
            .lines
            .fix
            .is_none_or(|line| is_file(&edit.after.file, &label.source) && (line as usize) < edit.after.line),
        show::Side::Behind | show::Side::Instead => is_between(&edit.after, edit.before.as_ref(), fix, label),
    };
    is_call(&edit.call, fix) && is_there
}

/// Whether a call of the host or of a kernel is that edit.
fn is_call(call: &str, fix: Edit) -> bool {
    let call = call.trim_start_matches("nvshmemx_").trim_start_matches("nvshmem_");
    call.trim_end_matches("_all") == fix.name()
}

/// Whether the label's line is between two lines. A barrier orders in both directions, so its place does not count.
fn is_between(after: &Place, before: Option<&Place>, fix: Edit, label: &Label) -> bool {
    label.lines.fix.is_none_or(|line| {
        let line = line as usize;
        // where the second is not behind the first, it comes in a loop's next round
        let ends = before.filter(|before| after.line < before.line).is_none_or(|before| line < before.line);
        fix == Edit::Barrier || (is_file(&after.file, &label.source) && after.line <= line && ends)
    })
}

fn in_words(finding: &Finding) -> String {
    let races = finding
        .races
        .iter()
        .map(|race| format!("race: {}, and {}; missing: {}", race.first, race.second, race.missing.text));
    let mut lines: Vec<String> = races.collect();
    if lines.is_empty() {
        lines.push(finding.verdict.text.clone());
        lines.extend(finding.agents.iter().map(|agent| format!("  {}", agent.text)));
    }
    lines.extend(finding.fix.iter().map(|fix| format!("fix: {}", fix.text)));
    if !finding.replay.is_empty() {
        lines.push(finding.replay.clone());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use onesided_bugs::Lines;
    use onesided_show::{Access, Agent, Part, Race, Standing, Verdict};

    use super::*;

    const SOURCE: &str = "order/mp.rs";

    fn label(class: Option<Class>, fix: Option<Edit>) -> Label {
        let lines = Lines { first: Some(10), second: Some(20), fix: fix.map(|_| 10) };
        let profiles = vec!["spec".to_string()];
        Label { name: "mp".into(), class, pes: 2, profiles, source: SOURCE.into(), lines, fix }
    }

    fn place(line: usize) -> Place {
        Place::from(format!("src/{SOURCE}:{line}"))
    }

    fn race(lines: [usize; 2], call: &str, missing: (&str, usize, usize)) -> Race {
        let access = |line, call: &str| Access {
            pe: 0,
            stream: None,
            thread: None,
            call: call.into(),
            at: place(line),
            inlined_at: Vec::new(),
            part: Part::Itself,
            how: "write".into(),
            step: 1,
        };
        let (edit, after, before) = missing;
        Race {
            first: access(lines[0], call),
            second: access(lines[1], "read"),
            pe: 1,
            memory: "buf0+0..8".into(),
            made_at: None,
            missing: Missing { text: "a fence".into(), call: edit.into(), after: place(after), before: place(before) },
            times: 1,
            known: Vec::new(),
        }
    }

    fn races(races: Vec<Race>) -> Finding {
        // the run itself went wrong behind the race
        let verdict = Verdict { outcome: "failed: wrong result".into(), ..Verdict::default() };
        Finding { races, verdict, ..Finding::default() }
    }

    fn ended(outcome: &str, text: &str, agents: &[&str]) -> Finding {
        let agent = |text: &&str| Agent {
            pe: 0,
            stream: None,
            call: String::new(),
            at: None,
            standing: Standing::Waits,
            text: text.to_string(),
        };
        let verdict = Verdict { outcome: outcome.into(), text: text.into(), ..Verdict::default() };
        Finding { verdict, agents: agents.iter().map(agent).collect(), ..Finding::default() }
    }

    /// Whether it is right, strict, how much is noise, and the fix.
    fn of(label: &Label, finding: &Finding) -> (bool, bool, usize, Option<bool>) {
        let Judged { is_right, is_strict, noise, fix, .. } = judge(label, Some(finding));
        (is_right, is_strict, noise, fix)
    }

    #[test]
    fn a_race_is_known_by_its_lines_in_any_order() {
        let label = label(Some(Class::Race), Some(Edit::Fence));
        let right = ("fence", 10, 12);
        assert_eq!(of(&label, &races(vec![race([10, 20], "put", right)])), (true, true, 0, Some(true)));
        assert_eq!(of(&label, &races(vec![race([20, 10], "put", right)])), (true, true, 0, Some(true)));
        assert_eq!(of(&label, &races(vec![race([10, 21], "put", right)])), (true, false, 1, None));
        let three = vec![race([11, 21], "put", right), race([10, 20], "put", right), race([10, 10], "put", right)];
        assert_eq!(of(&label, &races(three)), (true, true, 1, Some(true))); // the last is about the same lines
    }

    #[test]
    fn a_proposal_is_the_labels_where_edit_and_place_are() {
        let label = label(Some(Class::Race), Some(Edit::Fence));
        let fix = |missing| of(&label, &races(vec![race([10, 20], "put", missing)])).3;
        assert_eq!(fix(("quiet", 10, 12)), Some(false));
        assert_eq!(fix(("fence", 11, 12)), Some(false));
        assert_eq!(fix(("fence", 9, 10)), Some(false));
        assert_eq!(fix(("fence", 10, 8)), Some(true)); // round a loop
        let none =
            Finding { races: Vec::new(), ..ended("deadlock", "", &["in put at mp.rs:10, 20 at order/mp.rs:20"]) };
        let deadlock = Label {
            lines: Lines { first: Some(20), ..Lines::default() },
            ..self::label(Some(Class::Deadlock), Some(Edit::Fence))
        };
        assert_eq!(of(&deadlock, &none), (true, true, 0, Some(false)), "nothing is proposed");
        let barrier = self::label(Some(Class::Race), Some(Edit::Barrier));
        assert_eq!(of(&barrier, &races(vec![race([10, 20], "put", ("barrier_all", 20, 10))])).3, Some(true));
    }

    /// What was tried counts for more than what a race lacks.
    #[test]
    fn a_fix_that_was_tried_is_the_proposal() {
        let label = label(Some(Class::Race), Some(Edit::Quiet));
        let fix_on = |side, call: &str, after, before: Option<usize>| {
            let (after, before) = (place(after), before.map(place));
            let edit = show::Edit { call: call.into(), after, side, before, stream: false };
            let fix = show::Fix { text: String::new(), proved: true, weakest: true, edits: vec![edit] };
            of(&label, &Finding { fix: Some(fix), ..races(vec![race([10, 20], "put", ("fence", 10, 12))]) }).3
        };
        let fix = |call: &str, after, before| fix_on(show::Side::Behind, call, after, before);
        assert_eq!(fix_on(show::Side::InFront, "nvshmem_quiet", 11, None), Some(true));
        assert_eq!(fix_on(show::Side::InFront, "nvshmemx_quiet", 10, None), Some(false));
        assert_eq!(fix("quiet", 10, Some(12)), Some(true));
        assert_eq!(fix("quiet", 9, Some(12)), Some(true));
        assert_eq!(fix("quiet", 10, None), Some(true));
        assert_eq!(fix("quiet", 9, Some(10)), Some(false));
        assert_eq!(fix("fence", 10, Some(12)), Some(false));
    }

    #[test]
    fn a_race_with_the_end_of_memory_is_a_use_of_freed_memory() {
        let freed = race([10, 20], "free", ("quiet", 10, 12));
        assert_eq!(of(&label(Some(Class::Freed), None), &races(vec![freed.clone()])), (true, true, 0, None));
        assert_eq!(of(&label(Some(Class::Race), None), &races(vec![freed])), (false, false, 0, None));
    }

    #[test]
    fn what_is_no_race_names_its_lines_in_its_text() {
        let label = label(Some(Class::Deadlock), None);
        let at = |line| format!("PE 0: in free at src/order/mp.rs:{line}, waits");
        let both = ended("deadlock", "deadlock", &[&at(10), &at(20)]);
        assert_eq!(of(&label, &both), (true, true, 0, None));
        assert_eq!(of(&label, &ended("deadlock", "", &[&at(10), &at(200)])), (true, false, 1, None));
        assert_eq!(of(&label, &ended("deadlock", "", &["at other_order/mp.rs:10, mp.rs:20"])), (true, false, 1, None));
        assert_eq!(of(&label, &ended("leak: buffers", "", &[&at(10), &at(20)])), (false, false, 0, None));
    }

    #[test]
    fn nothing_is_right_where_nothing_is_wrong() {
        let right = label(None, None);
        assert!(judge(&right, None).is_right && judge(&right, Some(&ended("finished", "", &[]))).is_right);
        assert!(judge(&right, Some(&ended("step limit", "", &[]))).is_right);
        assert_eq!(of(&right, &ended("deadlock", "", &[])), (false, false, 1, None));
        let missed = judge(&label(Some(Class::Race), Some(Edit::Fence)), None);
        assert_eq!((missed.is_right, missed.is_strict, missed.fix), (false, false, None));
    }
}
