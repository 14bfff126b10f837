//! One job: starts the PEs, reads their messages, and ends all PEs when one fails or none makes progress.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use onesided_nvshmem::COMPILES;

use super::protocol::{Message, Ready};
use super::trouble::{Trouble, What};
use crate::launch::{Channel, Event, Job, PeStatus};
use crate::tool::interrupt;
use onesided::count;

/// What the PEs of a job will do.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// What they run, in this order: cases, or one program. They may skip some.
    pub names: &'a [&'a str],
    /// How long they may take until all are initialized.
    pub start: Duration,
    /// How long none of them may make progress after that.
    pub limit: Duration,
}

/// What happens while a job runs.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "who listens to a job must learn of everything that it can say")]
pub enum News<'a> {
    /// All PEs are initialized, and agree on what they are.
    Ready(&'a Ready),
    /// A PE returned from a run.
    Returned {
        /// The PE.
        pe: usize,
        /// What it returned.
        text: &'a str,
    },
    /// All PEs are past this case.
    Done {
        /// Its place in [`Script::names`].
        name: usize,
        /// For each run, what each PE returned.
        runs: Vec<Vec<String>>,
        /// Whether the PEs agreed to make fewer runs than were asked for.
        enough: bool,
    },
    /// A PE printed a line.
    Printed {
        /// The PE.
        pe: usize,
        /// The output.
        channel: Channel,
        /// The line.
        text: &'a str,
    },
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who runs a job must learn of every way in which it can end")]
pub enum End {
    /// All PEs did everything, finalized, and ended.
    Complete,
    /// Not all PEs could be initialized.
    NotStarted(Trouble),
    /// Something went wrong later.
    Broke {
        /// The case in which it did; `None` before the first.
        name: Option<usize>,
        /// What each PE returned in its complete runs.
        runs: Vec<Vec<String>>,
        /// What happened.
        trouble: Trouble,
    },
    /// The user ended it.
    Interrupted,
}

/// How often to check for Ctrl-C and SIGTERM.
const TICK: Duration = Duration::from_millis(100);
/// How long to wait after trouble for what PEs print about it.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The two outputs of a PE are read separately, so a line may overtake messages that were written before it by this much.
const OVERTAKEN: Duration = Duration::from_secs(1);
/// How long PEs may take while one of them compiles functions of NVSHMEM: an empty cache is no hang.
const COMPILING: Duration = Duration::from_secs(180);
/// How many lines of each PE are kept, and how many characters of a line.
const TAIL: (usize, usize) = (8, 300);

/// Runs a job to its end. This never takes longer than the limits allow. [`crate::launch`] says what may be left behind.
pub fn follow(job: &Job, script: &Script<'_>, hear: &mut dyn FnMut(News<'_>)) -> End {
    if interrupt::is_wanted() {
        return End::Interrupted;
    }
    let mut running = match job.start() {
        Ok(running) => running,
        Err(why) => return End::NotStarted(Trouble { what: What::Start(why), pe: None, tail: Vec::new() }),
    };
    let mut state = State::new(job.pes, script);
    let began = Instant::now();
    let (mut progress, mut last_words) = (began, None);
    loop {
        if interrupt::is_wanted() {
            running.kill();
            return End::Interrupted;
        }
        let limit = if state.is_ready() { progress + state.limit() } else { began + script.start };
        let left = last_words.unwrap_or(limit).saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match running.next(left.min(TICK)) {
            Event::Line { pe, channel, text } => {
                if state.line(pe, channel, &text, hear) {
                    progress = Instant::now();
                }
            }
            Event::Ended { pe, status } => state.ended(pe, status),
            Event::AllEnded => break,
            Event::Quiet | Event::Stuck { .. } => {}
        }
        if last_words.is_none() && state.culprit.is_some() {
            last_words = Some(Instant::now() + LAST_WORDS);
        }
    }
    running.kill();
    state.end(hear)
}

/// What is known of the PEs.
#[derive(Debug)]
struct State<'a> {
    script: &'a Script<'a>,
    pes: Vec<PeState>,
    /// How many cases were reported as done.
    done: usize,
    /// The first PE with trouble.
    culprit: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct PeState {
    ready: Option<Ready>,
    /// The case that it runs now.
    at: Option<usize>,
    /// What it returned, by case.
    returned: BTreeMap<usize, Vec<String>>,
    /// Cases that it ran fewer times, because they take long.
    enough: BTreeSet<usize>,
    finalized: bool,
    /// When it has said that it compiles, if it has said nothing since.
    compiles: Option<Instant>,
    /// What it said before it failed.
    fault: Option<What>,
    ended: Option<PeStatus>,
    /// Its last lines in this case, and when each was heard.
    tail: VecDeque<(Instant, String)>,
}

impl<'a> State<'a> {
    fn new(pes: usize, script: &'a Script<'a>) -> State<'a> {
        State { script, pes: vec![PeState::default(); pes], done: 0, culprit: None }
    }

    fn is_ready(&self) -> bool {
        self.pes.iter().all(|pe| pe.ready.is_some())
    }

    /// How long no PE may make progress now.
    fn limit(&self) -> Duration {
        let compiles = self.pes.iter().any(|pe| pe.compiles.is_some());
        if compiles { self.script.limit.max(COMPILING) } else { self.script.limit }
    }

    /// Takes a line. Returns whether its PE made progress.
    fn line(&mut self, pe: usize, channel: Channel, text: &str, hear: &mut dyn FnMut(News<'_>)) -> bool {
        let message = if channel == Channel::Out { Message::read(text) } else { None };
        let (printed, message) = message.map_or((text, None), |(before, message)| (before, Some(message)));
        let compiles = &mut self.pes[pe].compiles;
        if printed.starts_with(COMPILES) {
            *compiles = Some(Instant::now());
        } else if message.is_some() && compiles.is_some_and(|since| since.elapsed() >= OVERTAKEN) {
            *compiles = None; // a message that comes sooner may have been overtaken
        }
        if !printed.is_empty() {
            let tail = &mut self.pes[pe].tail;
            if tail.len() == TAIL.0 {
                tail.pop_front();
            }
            tail.push_back((Instant::now(), printed.chars().take(TAIL.1).collect()));
            hear(News::Printed { pe, channel, text: printed });
        }
        let Some(message) = message else { return false };
        self.take(pe, message, hear);
        true
    }

    fn take(&mut self, pe: usize, message: Message, hear: &mut dyn FnMut(News<'_>)) {
        let state = &mut self.pes[pe];
        match message {
            Message::Ready(ready) => {
                state.ready = Some(ready);
                self.compare(pe, hear);
            }
            Message::Start { name } => match self.script.names.iter().position(|known| *known == name) {
                Some(at) => {
                    state.tail.retain(|(heard, _)| heard.elapsed() < OVERTAKEN);
                    state.at = Some(at);
                    self.tell_done(hear);
                }
                None => self.blame(pe, What::Start(format!("runs {name:?}, which nobody asked for"))),
            },
            Message::Returned { text } => {
                hear(News::Returned { pe, text: &text });
                if let Some(at) = state.at {
                    state.returned.entry(at).or_default().push(text);
                }
            }
            Message::Enough => state.enough.extend(state.at),
            Message::Failed(failure) => self.blame(pe, What::Failed(failure)),
            Message::Panicked(panic) => self.blame(pe, What::Panicked(panic)),
            Message::Finalized => state.finalized = true,
        }
    }

    /// Once the last PE is ready, checks that all are alike. Otherwise they would run different cases.
    fn compare(&mut self, pe: usize, hear: &mut dyn FnMut(News<'_>)) {
        let Some(all) = self.pes.iter().map(|pe| pe.ready.as_ref()).collect::<Option<Vec<_>>>() else { return };
        match all.iter().position(|ready| *ready != all[0]) {
            None => hear(News::Ready(all[0])),
            Some(other) => {
                let why = format!("differs from PE 0: {:?} and {:?}", all[other], all[0]);
                self.blame(pe, What::Start(why));
            }
        }
    }

    fn ended(&mut self, pe: usize, status: PeStatus) {
        let state = &mut self.pes[pe];
        state.ended = Some(status);
        // Lines from before may still come.
        if status != PeStatus::Exited(0) || !state.finalized {
            self.culprit.get_or_insert(pe);
        }
    }

    fn blame(&mut self, pe: usize, what: What) {
        self.pes[pe].fault.get_or_insert(what);
        self.culprit.get_or_insert(pe);
    }

    /// Reports the cases that all PEs are past.
    fn tell_done(&mut self, hear: &mut dyn FnMut(News<'_>)) {
        let Some(at) = self.pes.iter().map(|pe| pe.at).min().flatten() else { return };
        for name in self.done..at {
            self.tell(name, hear);
        }
        self.done = self.done.max(at);
    }

    fn tell(&mut self, name: usize, hear: &mut dyn FnMut(News<'_>)) {
        let runs = self.runs(name);
        if self.pes.iter().any(|pe| pe.returned.contains_key(&name)) {
            let enough = self.pes.iter().all(|pe| pe.enough.contains(&name));
            hear(News::Done { name, runs, enough });
        }
    }

    /// For each complete run, what each PE returned.
    fn runs(&self, name: usize) -> Vec<Vec<String>> {
        let of = |pe: &'_ PeState| pe.returned.get(&name).map_or(0, Vec::len);
        let complete = self.pes.iter().map(of).min().unwrap_or(0);
        (0..complete).map(|run| self.pes.iter().map(|pe| pe.returned[&name][run].clone()).collect()).collect()
    }

    /// The result, once nothing more comes.
    fn end(mut self, hear: &mut dyn FnMut(News<'_>)) -> End {
        let is_over = |pe: &PeState| pe.finalized && pe.ended == Some(PeStatus::Exited(0));
        if self.pes.iter().all(is_over) {
            for name in self.done..self.script.names.len() {
                self.tell(name, hear);
            }
            return End::Complete;
        }
        // A PE whose last message came after its end is not a culprit if it ended well.
        let culprit = self.culprit.filter(|&pe| !is_over(&self.pes[pe]));
        let trouble = Trouble { what: self.what(culprit), pe: culprit, tail: self.tail(culprit) };
        if !self.is_ready() || self.pes.iter().any(|pe| matches!(pe.fault, Some(What::Start(_)))) {
            return End::NotStarted(trouble);
        }
        let name = match culprit {
            Some(pe) => self.pes[pe].at,
            None => self.pes.iter().map(|pe| pe.at).min().flatten(),
        };
        // Earlier cases are done. A PE may still be in one of them, but only because it waits for the culprit.
        for earlier in self.done..name.unwrap_or(0) {
            self.tell(earlier, hear);
        }
        let runs = name.map(|name| self.runs(name)).unwrap_or_default();
        End::Broke { name, runs, trouble }
    }

    fn what(&self, culprit: Option<usize>) -> What {
        let Some(pe) = culprit.map(|pe| &self.pes[pe]) else {
            let limit = if self.is_ready() { self.limit() } else { self.script.start };
            return What::Hung { limit, places: self.places() };
        };
        match (&pe.fault, pe.ended) {
            (Some(fault), _) => fault.clone(),
            (None, Some(PeStatus::Killed(signal))) => What::Killed(signal),
            (None, Some(PeStatus::Exited(status))) => What::Exited(status),
            (None, None) => What::Exited(0),
        }
    }

    /// Where the PEs are, grouped by place. As long as not all are initialized, only those that are not.
    fn places(&self) -> String {
        let mut places: Vec<(String, Vec<String>)> = Vec::new();
        for (number, pe) in self.pes.iter().enumerate() {
            let place = match (&pe.ready, pe.at) {
                (None, _) => "not initialized".to_string(),
                _ if !self.is_ready() => continue,
                _ if pe.ended.is_some() => "ended".to_string(),
                _ if pe.finalized => "finalized, and still there".to_string(),
                (_, None) => "before the first case".to_string(),
                (_, Some(at)) => {
                    let name = self.script.names[at];
                    match pe.returned.get(&at).map_or(0, Vec::len) {
                        0 => format!("in {name}"),
                        runs => format!("in {name} after {}", count(runs, "run")),
                    }
                }
            };
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, pes)) => pes.push(number.to_string()),
                None => places.push((place, vec![number.to_string()])),
            }
        }
        let places = places.into_iter().map(|(place, pes)| match pes.as_slice() {
            [one] => format!("PE {one} {place}"),
            several => format!("PEs {} {place}", several.join(", ")),
        });
        places.collect::<Vec<_>>().join(", ")
    }

    /// The culprit's last lines, or those of all PEs if it printed none.
    fn tail(&self, culprit: Option<usize>) -> Vec<String> {
        let lines = |pe: usize| self.pes[pe].tail.iter().map(move |(_, line)| format!("PE {pe}: {line}"));
        match culprit {
            Some(pe) if !self.pes[pe].tail.is_empty() => lines(pe).collect(),
            _ => (0..self.pes.len()).flat_map(lines).collect(),
        }
    }
}
