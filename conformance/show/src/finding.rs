//! [`Finding`]: everything that is known of one run, as a file that is written and read.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::count::count;
use crate::event::{Event, Place, who};

/// The most PEs of a run.
const MOST_PES: usize = 32_000;
/// More streams of a PE, and pieces of a transfer, than a run has.
const MOST: usize = u32::MAX as usize;

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "onesided-finding/1";

/// One run: what ran, how it ended, and what happened. The README describes the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Finding {
    /// The program.
    pub program: String,
    /// What every PE checks, as the program says it.
    pub checks: String,
    /// The program's own options, as they were given.
    pub arguments: Vec<String>,
    /// The simulated cluster.
    pub cluster: Cluster,
    /// What the transport guarantees.
    pub profile: String,
    /// Which run it was.
    pub schedule: String,
    /// The command that runs it again.
    pub replay: String,
    /// How it ended.
    pub verdict: Verdict,
    /// The data races of the run, the one to look at first at the front.
    pub races: Vec<Race>,
    /// How the run differs from the one in order, in words: each step that comes later, and the one that it comes after.
    #[serde(default)]
    pub exceptions: Vec<[String; 2]>,
    /// Whether the first race changes a result, if that was looked for.
    #[serde(default)]
    pub matters: Option<Matters>,
    /// The step after which every schedule fails, if that was looked for and found.
    #[serde(default)]
    pub critical: Option<Critical>,
    /// What makes the program right, if that was looked for and found.
    #[serde(default)]
    pub fix: Option<Fix>,
    /// What works by luck or without a promise.
    #[serde(default)]
    pub lints: Vec<Lint>,
    /// What every host was doing at the end, and every stream that had work left.
    pub agents: Vec<Agent>,
    /// What was in flight at the end.
    pub undelivered: Vec<Undelivered>,
    /// What happened.
    pub events: Vec<Event>,
    /// The source files that are named here, as far as they could be read.
    pub sources: Vec<Source>,
}

/// A simulated cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Cluster {
    /// Number of PEs.
    pub pes: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of GPUs, if PEs share them.
    pub gpus: Option<usize>,
    /// The most pieces of a transfer.
    pub pieces: usize,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Verdict {
    /// Its short name: `finished`, `deadlock`, `failed: wrong result`.
    pub outcome: String,
    /// What was found, without what everybody was doing.
    pub text: String,
    /// The PE that failed, if one did.
    pub pe: Option<usize>,
    /// The line that the verdict is about, if it is about one.
    pub at: Option<Place>,
}

/// Two accesses to the same memory that nothing orders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Race {
    /// The access that was issued first.
    pub first: Access,
    /// The other.
    pub second: Access,
    /// The PE whose memory it is.
    pub pe: usize,
    /// Which bytes of which buffer.
    pub memory: String,
    /// The line that made the buffer.
    pub made_at: Option<Place>,
    /// What would order the two.
    pub missing: Missing,
    /// How often the two calls raced in the run.
    pub times: u64,
    /// What each side knows of the other, in words: up to which call.
    #[serde(default)]
    pub known: Vec<String>,
}

/// One side of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Access {
    /// The PE that made it, or issued the transfer that did.
    pub pe: usize,
    /// Which of its streams; `None` for the host.
    pub stream: Option<usize>,
    /// Which thread of the kernel that runs there, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The call.
    pub call: String,
    /// Its line.
    pub at: Place,
    /// Where the function around the line was inlined, and the one around that call, up to one that was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined_at: Vec<Place>,
    /// Which part of the call.
    pub part: Part,
    /// What it did to the memory: `read`, `write`, `atomic read`, `atomic write`.
    pub how: String,
    /// The step in which the call was made.
    pub step: u64,
}

/// Which part of a call touched the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a call acts itself, or its transfer does")]
pub enum Part {
    /// The call.
    Itself,
    /// The reading of its source.
    #[serde(rename = "source read")]
    SourceRead,
    /// Its delivery.
    Delivery,
    /// Its signal.
    Signal,
}

/// The edge that would order two accesses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Missing {
    /// In words.
    pub text: String,
    /// The call that belongs there: `fence`.
    pub call: String,
    /// The line behind which it belongs.
    pub after: Place,
    /// The line before which it belongs.
    pub before: Place,
}

/// Whether a race changes a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Matters {
    /// All of it in words.
    pub text: String,
    /// Whether a run was found in which it does.
    pub changes: bool,
    /// The command that runs it.
    pub replay: Option<String>,
}

/// The step of a failing run after which every schedule fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Critical {
    /// All of it in words, with what was shown.
    pub text: String,
    /// The step in words.
    pub step: String,
    /// The step in words that could have come in its place.
    pub instead: String,
    /// Whether it was shown that all fail. Otherwise none that was tried went well.
    pub proved: bool,
    /// The event of the step, as an index.
    pub event: Option<usize>,
}

/// A change that makes the program right, as far as it was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Fix {
    /// All of it in words, with what was shown.
    pub text: String,
    /// Whether the changed program was proved right. Otherwise nothing wrong was found in it.
    pub proved: bool,
    /// Whether every weaker change was tried and fails.
    pub weakest: bool,
    /// The changes: one, or several that are needed together.
    pub edits: Vec<Edit>,
}

/// One call that is inserted, or that takes the place of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Edit {
    /// The call: `fence`. A `put_signal` takes the place of the put at `after` and the signal at `before`.
    pub call: String,
    /// The line at which it goes: behind it, if `side` says nothing else.
    pub after: Place,
    /// Where it goes at that line.
    #[serde(default, skip_serializing_if = "Side::is_behind")]
    pub side: Side,
    /// The next call of the PE: the line before which it goes.
    pub before: Option<Place>,
    /// Whether it goes on the stream that the call at `after` is on.
    pub stream: bool,
}

/// Where a change goes at its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "who draws a change must know where it goes")]
pub enum Side {
    /// Behind the line.
    #[default]
    Behind,
    /// In front of it.
    InFront,
    /// It takes the place of what is there.
    Instead,
}

impl Side {
    /// Whether it goes behind the line.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_behind(&self) -> bool {
        *self == Side::Behind
    }
}

/// Two calls that work together by luck or without a promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Lint {
    /// Its name: `wait-on-plain-data`.
    pub lint: String,
    /// What is wrong, and what is better, in words.
    pub text: String,
    /// The line of the call that comes first.
    pub first: Place,
    /// The line of the other.
    pub second: Place,
    /// The line of the call between them that does not do what it seems to do.
    pub between: Option<Place>,
}

/// What a host or stream was doing at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Agent {
    /// The PE.
    pub pe: usize,
    /// Which of its streams; `None` for the host.
    pub stream: Option<usize>,
    /// The call that it was in.
    pub call: String,
    /// The line of its last call.
    pub at: Option<Place>,
    /// How it stood.
    pub standing: Standing,
    /// All of that in words.
    pub text: String,
}

/// How a host or stream stood at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "an agent is over, or goes on, or waits")]
pub enum Standing {
    /// Its program had returned.
    Finished,
    /// Its program ended the run.
    Failed,
    /// It could have gone on.
    Runs,
    /// It waited.
    Waits,
}

/// A transfer of which something was not delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Undelivered {
    /// The PE that issued it.
    pub pe: usize,
    /// The PE whose memory it is for.
    pub to: usize,
    /// The call.
    pub call: String,
    /// Its line.
    pub at: Place,
    /// All of that in words.
    pub text: String,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "who writes a finding fills in everything")]
pub struct Source {
    /// Its path, as the compiler has it.
    pub file: String,
    /// Its text; `None` where it could not be read.
    pub text: Option<String>,
}

impl Finding {
    /// Reads a finding. `name` is what errors call it: its file.
    ///
    /// # Errors
    /// A sentence: the text is no finding, or one of another version, or broken.
    ///
    /// ```
    /// let older = r#"{ "schema": "onesided-finding/0" }"#;
    /// let why = onesided_show::Finding::read("old.json", older).unwrap_err();
    /// assert!(why.starts_with("old.json is a onesided-finding/0, and this version reads onesided-finding/1"), "{why}");
    /// ```
    pub fn read(name: &str, text: &str) -> Result<Finding, String> {
        let file: Value = serde_json::from_str(text).map_err(|why| {
            format!("{name} is no finding: it is not JSON ({why}); --finding FILE of a program writes one")
        })?;
        match file.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some(other) if other.starts_with("onesided-finding/") => {
                let replay =
                    file.get("replay").and_then(Value::as_str).map(|command| format!(": {command} --finding FILE"));
                let again = replay.unwrap_or_default();
                return Err(format!(
                    "{name} is a {other}, and this version reads {SCHEMA}; show it with the version that wrote it, or write it again{again}"
                ));
            }
            Some(other) => {
                return Err(format!("{name} is a {other}, and no finding; --finding FILE of a program writes one"));
            }
            None => {
                return Err(format!("{name} is no finding: it has no schema; --finding FILE of a program writes one"));
            }
        }
        let finding: Finding =
            serde_json::from_value(file).map_err(|why| format!("{name} is a broken {SCHEMA}: {why}"))?;
        finding.check().map_err(|why| format!("{name} is a broken {SCHEMA}: {why}"))?;
        Ok(finding)
    }

    /// Writes the finding, one event a line: the same bytes for the same finding.
    ///
    /// # Errors
    /// As `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Value::Object(mut fields) = serde_json::to_value(self)? else { unreachable!("a finding is an object") };
        let events = fields.remove("events");
        writeln!(out, "{{\n\"schema\": {},", Value::from(SCHEMA))?;
        for (name, value) in &fields {
            writeln!(out, "{}: {value},", Value::from(name.as_str()))?;
        }
        writeln!(out, "\"events\": [")?;
        let mut events = events.iter().filter_map(Value::as_array).flatten().peekable();
        while let Some(event) = events.next() {
            writeln!(out, "{event}{}", if events.peek().is_some() { "," } else { "" })?;
        }
        writeln!(out, "]\n}}")
    }

    /// What was found, in a line: for a race its two accesses.
    pub fn headline(&self) -> String {
        match (self.verdict.outcome.as_str(), self.races.first()) {
            ("race", Some(Race { first, second, .. })) => format!("data race: {first} and {second}"),
            _ => self.verdict.text.clone(),
        }
    }

    /// Whether nothing was wrong. Races of a run that finished were looked at, and were no finding (`--races note`).
    pub fn is_ok(&self) -> bool {
        matches!(self.verdict.outcome.as_str(), "finished" | "exited: 0")
    }

    /// Whether the run was ended before its end: whether something is wrong is not known.
    pub fn is_given_up(&self) -> bool {
        matches!(self.verdict.outcome.as_str(), "step limit" | "instruction limit" | "polls bounded" | "stopped")
    }

    /// Whether something was wrong.
    pub fn is_wrong(&self) -> bool {
        !self.is_ok() && !self.is_given_up()
    }

    /// The source files that are named here.
    pub fn files(&self) -> BTreeSet<String> {
        let Finding { verdict, races, fix, lints, agents, undelivered, events, .. } = self;
        let of_lints = lints.iter().flat_map(|lint| [&lint.first, &lint.second].into_iter().chain(&lint.between));
        let of_fix = fix.iter().flat_map(|fix| &fix.edits).flat_map(|edit| [Some(&edit.after), edit.before.as_ref()]);
        let of_races = races.iter().flat_map(|race| {
            let missing = [&race.missing.after, &race.missing.before];
            let accesses = [&race.first, &race.second].into_iter();
            let lines = accesses.flat_map(|access| std::iter::once(&access.at).chain(&access.inlined_at));
            lines.chain(missing).chain(&race.made_at)
        });
        let places = (verdict.at.iter())
            .chain(of_races)
            .chain(of_fix.flatten())
            .chain(of_lints)
            .chain(agents.iter().filter_map(|agent| agent.at.as_ref()))
            .chain(undelivered.iter().map(|transfer| &transfer.at))
            .chain(events.iter().map(|event| &event.at));
        places.filter(|place| place.line > 0).map(|place| place.file.clone()).collect()
    }

    /// The lines of a source file that is named, if its text is here.
    pub fn source(&self, file: &str) -> Option<&str> {
        self.sources.iter().find(|source| source.file == file)?.text.as_deref()
    }

    /// Refuses what names PEs or events that are not there, and numbers that no run has: nothing that draws has to look again.
    fn check(&self) -> Result<(), String> {
        let pes = self.cluster.pes;
        if !(1..=MOST_PES).contains(&pes) {
            return Err(format!("it has {}, and a run has from 1 to {MOST_PES}", count(pes, "PE")));
        }
        let there_is = |who: &str, named: &[Option<usize>]| match named.iter().flatten().find(|pe| **pe >= pes) {
            Some(pe) => Err(format!("{who} names PE {pe}, and the run has {}", count(pes, "PE"))),
            None => Ok(()),
        };
        there_is("the verdict", &[self.verdict.pe])?;
        for (number, race) in self.races.iter().enumerate() {
            there_is(&format!("race {number}"), &[Some(race.first.pe), Some(race.second.pe), Some(race.pe)])?;
        }
        for (number, agent) in self.agents.iter().enumerate() {
            there_is(&format!("agent {number}"), &[Some(agent.pe)])?;
        }
        for (number, transfer) in self.undelivered.iter().enumerate() {
            there_is(&format!("undelivered transfer {number}"), &[Some(transfer.pe), Some(transfer.to)])?;
        }
        let critical = self.critical.as_ref().and_then(|critical| critical.event);
        if let Some(event) = critical.filter(|event| *event >= self.events.len()) {
            let events = count(self.events.len(), "event");
            return Err(format!("the critical step is event {event}, and the run has {events}"));
        }
        for (number, event) in self.events.iter().enumerate() {
            there_is(&format!("event {number}"), &[Some(event.pe), event.to, event.from])?;
            if let Some(stream) = event.stream.filter(|_| event.is_of_a_transfer()) {
                return Err(format!(
                    "event {number} is a step of a transfer, and names stream {stream}: transfers have none"
                ));
            }
            if let Some(stream) = [event.stream, event.on].into_iter().flatten().find(|stream| *stream >= MOST) {
                return Err(format!("event {number} names stream {stream}, and no PE has so many"));
            }
            let (piece, pieces) = (event.piece.unwrap_or(0), event.pieces.unwrap_or(MOST));
            if piece >= pieces || pieces > MOST {
                return Err(format!("event {number} is about piece {piece} of {pieces}, which counts from 0"));
            }
            let earlier = [("of", event.of), ("by", event.by), ("first", event.first)];
            for (field, other) in earlier.into_iter().filter_map(|(field, other)| Some((field, other?))) {
                // an entry may be its own first
                if other > number || (other == number && field != "first") {
                    return Err(format!("event {number} names event {other} ({field}), which is not before it"));
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Itself => "",
            Part::SourceRead => "the source read of ",
            Part::Delivery => "the delivery of ",
            Part::Signal => "the signal of ",
        };
        let Access { call, how, at, .. } = self;
        let thread = self.thread.as_ref().map(|thread| format!(", {thread},")).unwrap_or_default();
        write!(f, "{part}{call} by {}{thread} at {at}", who(self.pe, self.stream))?;
        self.inlined_at.iter().try_for_each(|caller| write!(f, ", inlined at {caller}"))?;
        write!(f, " ({how})")
    }
}
