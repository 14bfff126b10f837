//! What a person reads of a score, and what `--json` writes.

use std::io::{self, Write};
use std::time::Duration;

use onesided::count;
use onesided_bugs::{Class, Edit};
use onesided_harness::say;
use onesided_harness::tool::duration;
use serde_json::{Value, json};

use super::Scored;
use super::judge::Judged;
use super::labels::Label;

/// The sums over all programs.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    /// Programs with a bug, of which it was found.
    found: usize,
    /// Programs with a bug.
    bugs: usize,
    /// Programs without one, in which something was found.
    false_alarms: usize,
    /// Bugs of which a report has the class and both lines.
    strict: usize,
    noise: usize,
    /// Proposals that are the label's edit, and all proposals where the label has one.
    fixes: [usize; 2],
}

impl Sums {
    fn of(scored: &[Scored<'_>]) -> Sums {
        let mut sums = Sums::default();
        for Scored { label, judged, .. } in scored {
            sums.bugs += usize::from(label.class.is_some());
            let Ok(Judged { found, is_right, is_strict, noise, fix, .. }) = judged else { continue };
            sums.noise += noise;
            match label.class {
                None => sums.false_alarms += usize::from(!found.is_empty()),
                Some(_) => {
                    sums.found += usize::from(*is_right);
                    sums.strict += usize::from(*is_strict);
                }
            }
            sums.fixes[0] += usize::from(*fix == Some(true));
            sums.fixes[1] += usize::from(fix.is_some());
        }
        sums
    }

    fn precision(&self) -> Option<f64> {
        share(self.found, self.found + self.false_alarms)
    }

    fn recall(&self) -> Option<f64> {
        share(self.found, self.bugs)
    }
}

/// `None` of nothing.
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Whether nothing could be better.
pub(super) fn is_perfect(scored: &[Scored<'_>]) -> bool {
    let Sums { found, bugs, false_alarms, strict, noise, fixes } = Sums::of(scored);
    scored.iter().all(|scored| scored.judged.is_ok())
        && (found, strict, false_alarms, noise, fixes[0]) == (bugs, bugs, 0, 0, fixes[1])
}

/// The runs that a whole score has: each program under each profile of its label.
pub(super) fn runs(labels: &[Label]) -> usize {
    labels.iter().map(|label| label.profiles.len()).sum()
}

/// Prints what is not as the labels say, and the sums.
pub(super) fn print(labels: &[Label], scored: &[Scored<'_>], time: Duration) {
    let all = runs(labels);
    for scored in scored {
        if let Some(text) = complaint(scored) {
            say!("{} under {}: {text}\n", scored.label.name, scored.profile);
        }
    }
    let bugs = labels.iter().filter(|label| label.class.is_some()).count() as u64;
    let right = labels.len() as u64 - bugs;
    let time = duration(time);
    let runs = match scored.len() {
        done if done < all => format!("{done} of {}, ended by you", count(all, "run")),
        done => count(done, "run"),
    };
    say!("{} with a bug and {right} without, {runs}, {time}", count(bugs, "program"));
    let sums = Sums::of(scored);
    let Sums { found, bugs, false_alarms, strict, noise, fixes: [proposed, fixes] } = sums;
    let share = |share: Option<f64>| share.map_or("–".to_string(), |share| format!("{share:.3}"));
    say!(
        "precision  {:>5}  {found} of {} about a bug",
        share(sums.precision()),
        count(found + false_alarms, "finding")
    );
    say!("recall     {:>5}  {found} of {} found", share(sums.recall()), count(bugs, "bug"));
    let strict_share = share(self::share(strict, bugs));
    say!("strict     {strict_share:>5}  {strict} of {bugs} found with their class and both lines");
    say!("noise      {noise:>5}  further reports");
    let fixes_share = share(self::share(proposed, fixes));
    say!(
        "fixes      {fixes_share:>5}  {proposed} of {} as the labels have it: changes that were tried, or what the report says is missing",
        count(fixes, "proposal")
    );
}

/// What is not as the label says.
fn complaint(scored: &Scored<'_>) -> Option<String> {
    let Scored { label, judged, .. } = scored;
    let judged = match judged {
        Ok(judged) => judged,
        Err(why) => return Some(format!("could not be run: {why}")),
    };
    let wanted = label.class.map_or("nothing", Class::name);
    let Judged { found, is_right, is_strict, noise, fix, text } = judged;
    let what = match (is_right, is_strict, fix) {
        _ if found.is_empty() && !is_right => return Some(format!("{wanted} is not found")),
        (false, ..) => format!("{wanted} is expected, and this was found"),
        (_, false, _) => format!("the {wanted} is not that of {}", lines(label)),
        (_, _, Some(false)) => format!("the proposal is not the label's, {}", proposal(label)),
        _ if *noise > 0 => format!("{noise} further"),
        _ => return None,
    };
    Some(format!("{what}:\n{text}"))
}

fn lines(label: &Label) -> String {
    let lines: Vec<String> = [label.lines.first, label.lines.second].iter().flatten().map(u32::to_string).collect();
    format!("{}:{}", label.source, lines.join(" and "))
}

fn proposal(label: &Label) -> String {
    let at = label.lines.fix.map_or(String::new(), |line| format!(" behind {}:{line}", label.source));
    format!("{}{at}", label.fix.map_or("", Edit::name))
}

/// Writes each program's score, and the sums; and whether these are all.
pub(super) fn write(out: &mut dyn Write, labels: &[Label], scored: &[Scored<'_>]) -> io::Result<()> {
    let programs: Vec<Value> = scored.iter().map(program).collect();
    let sums = Sums::of(scored);
    let Sums { found, bugs, false_alarms, strict, noise, fixes: [proposed, fixes] } = sums;
    let score = json!({
        "schema": "onesided-score/1",
        "complete": scored.len() == runs(labels), "runs": runs(labels),
        "precision": sums.precision(), "recall": sums.recall(),
        "bugs": bugs, "found": found, "false_alarms": false_alarms, "strict": strict, "noise": noise,
        "fixes": fixes, "fixes_right": proposed,
        "programs": programs,
    });
    writeln!(out, "{score:#}")
}

fn program(Scored { label, profile, judged }: &Scored<'_>) -> Value {
    let judged_or = |of: fn(&Judged) -> Value| judged.as_ref().map_or(Value::Null, of);
    let found = |judged: &Judged| json!(judged.found.iter().map(|class| class.map(Class::name)).collect::<Vec<_>>());
    json!({
        "name": label.name, "profile": profile, "class": label.class.map(Class::name),
        "error": judged.as_ref().err(),
        "found": judged_or(found),
        "right": judged_or(|judged| json!(judged.is_right)),
        "strict": judged_or(|judged| json!(judged.is_strict)),
        "noise": judged_or(|judged| json!(judged.noise)),
        "fix": judged_or(|judged| json!(judged.fix)),
        "text": judged_or(|judged| json!(judged.text)),
    })
}
