//! [`Running`]: the PEs from their start to their end.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::group::{Group, wait_for};
use super::{Channel, PeStatus};
use crate::tool::interrupt;

/// How long a PE has to end after it was asked to, unless it is given more; then it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the output of a PE is read after its end, if children of its own keep it open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long the system may take to end a killed process. After that the process is left behind: a driver may hold on to it.
const REAP: Duration = Duration::from_secs(5);
/// How often to check for Ctrl-C and SIGTERM.
const GLANCE: Duration = Duration::from_millis(100);
/// The longest line. A longer one comes in pieces.
const LINE: u64 = 1 << 16;
/// How many lines are read ahead. A PE that prints more has to wait.
const WAITING: usize = 1 << 12;

/// What happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who runs a job must learn of everything that can happen to it")]
pub enum Event {
    /// A PE wrote a line. Its last line may have had no end.
    Line {
        /// The PE.
        pe: usize,
        /// The output it wrote to.
        channel: Channel,
        /// The line without its end. Bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// A PE ended. All its lines came before. Children of its own may still write some.
    Ended {
        /// The PE.
        pe: usize,
        /// How it ended.
        status: PeStatus,
    },
    /// A PE was killed and is still there, because a driver may hold on to it. Nobody waits for its end.
    Stuck {
        /// The PE.
        pe: usize,
    },
    /// All PEs have ended or are stuck, and what they left in their group was killed. From now on every event is this one.
    AllEnded,
    /// Nothing happened in the given time.
    Quiet,
}

/// The PEs of a job, started by [`Job::start`](super::Job::start). Dropping it kills them and waits until they are gone,
/// except for stuck ones.
#[derive(Debug)]
pub struct Running {
    pes: Vec<State>,
    notes: Receiver<Note>,
    group: Group,
    /// How long processes have to end after they were asked to.
    grace: Duration,
    /// When to kill the processes that were asked to end; `None` while none was asked.
    kill_at: Option<Instant>,
    /// When killed processes that are still there count as stuck; `None` while none was killed.
    give_up_at: Option<Instant>,
}

/// What is known of one PE.
#[derive(Debug)]
struct State {
    process: Arc<Mutex<Child>>,
    status: Option<PeStatus>,
    /// How many of its two outputs have ended.
    closed: u8,
    /// When to announce its end even if its outputs are still open.
    announce_at: Option<Instant>,
    is_announced: bool,
    /// Waits for the process.
    waiter: JoinHandle<()>,
}

/// Why a program cannot be started, with what was probably meant: a bare name is looked for in `PATH` only.
pub fn cannot_start(command: &Command, why: &io::Error) -> String {
    let program = Path::new(command.get_program());
    let hint = if program.is_dir() {
        " (it is a folder)".to_string()
    } else if program.components().count() == 1 && program.is_file() {
        format!(" on PATH; the one of this folder is ./{}", program.display())
    } else {
        String::new()
    };
    format!("{} cannot be started: {why}{hint}", program.display())
}

/// What the threads report.
#[derive(Debug)]
enum Note {
    Line { pe: usize, channel: Channel, text: String },
    Closed { pe: usize },
    Ended { pe: usize, status: PeStatus },
}

impl Running {
    /// Starts these commands as the PEs of one job, whatever they are: nothing is added to their environment. Their standard
    /// input is empty, and their outputs are read.
    ///
    /// From now on the first Ctrl-C or SIGTERM ends them instead of this process.
    ///
    /// # Errors
    /// A sentence that says what cannot be started, and why. Nothing is left running then.
    pub fn start(commands: impl IntoIterator<Item = Command>) -> Result<Running, String> {
        interrupt::watch();
        let group = Group::start()?;
        let (sender, notes) = mpsc::sync_channel(WAITING);
        let mut running = Running { pes: Vec::new(), notes, group, grace: GRACE, kill_at: None, give_up_at: None };
        for (pe, mut command) in commands.into_iter().enumerate() {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            running.group.adopt(&mut command)?;
            let child = command.spawn().map_err(|why| cannot_start(&command, &why))?;
            running.pes.push(State::attend(pe, child, &sender));
        }
        Ok(running)
    }

    /// The next thing that happens; [`Event::Quiet`] if nothing does within `wait`.
    ///
    /// Call this again and again: a PE blocks while nobody takes its output. After Ctrl-C or SIGTERM this ends the PEs.
    pub fn next(&mut self, wait: Duration) -> Event {
        let until = Instant::now().checked_add(wait); // `None` is later than any time
        loop {
            let now = Instant::now();
            if interrupt::is_wanted() {
                self.kill();
            }
            if self.kill_at.is_some_and(|at| at <= now) {
                self.end();
            }
            if self.give_up_at.is_some_and(|at| at <= now) {
                return self.give_up();
            }
            if let Ok(note) = self.notes.try_recv() {
                match self.note(note) {
                    Some(event) => return event,
                    None => continue,
                }
            }
            if let Some(pe) = self.pes.iter().position(|state| state.is_ready(now)) {
                self.pes[pe].is_announced = true;
                return Event::Ended { pe, status: self.pes[pe].status.unwrap_or(PeStatus::Killed(0)) };
            }
            if self.pes.iter().all(|state| state.is_announced) {
                self.end();
                return Event::AllEnded;
            }
            if until.is_some_and(|until| until <= now) {
                return Event::Quiet;
            }
            let deadlines = self.pes.iter().filter_map(|state| state.announce_at);
            let deadlines = deadlines.chain(self.kill_at).chain(self.give_up_at).chain(until);
            let next = deadlines.map(|at| at.saturating_duration_since(now)).filter(|left| !left.is_zero()).min();
            match self.notes.recv_timeout(next.map_or(GLANCE, |next| next.min(GLANCE))) {
                Ok(note) => {
                    if let Some(event) = self.note(note) {
                        return event;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // All threads are done. Only announcements are left.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Gives processes another time than two seconds to end after they were asked to. They may have to end others first.
    pub fn set_grace(&mut self, grace: Duration) {
        self.grace = grace;
    }

    /// Asks all PEs and their children to end. [`next`](Self::next) kills those that are still there two seconds later. A PE
    /// that left the job's group is only killed.
    pub fn kill(&mut self) {
        if self.kill_at.is_none() {
            self.kill_at = Some(Instant::now() + self.grace);
            self.group.terminate();
        }
    }

    /// Kills what is left: the group, and each PE that left it. The children of such a PE are out of reach.
    fn end(&mut self) {
        if self.give_up_at.is_some() {
            return;
        }
        self.give_up_at = Some(Instant::now() + REAP);
        self.group.kill();
        for state in &self.pes {
            // This does nothing if the process has been waited for, so it never hits another process with the same number.
            let _ = state.process.lock().unwrap_or_else(PoisonError::into_inner).kill();
        }
    }

    /// The next event when the time after [`end`](Self::end) is up. Lines are no longer read, because a process out of reach may
    /// write for ever.
    fn give_up(&mut self) -> Event {
        let Some(pe) = self.pes.iter().position(|state| !state.is_announced) else { return Event::AllEnded };
        let state = &mut self.pes[pe];
        state.is_announced = true;
        let ended = state.process.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        state.status = state.status.or(ended.ok().flatten().map(status));
        state.status.map_or(Event::Stuck { pe }, |status| Event::Ended { pe, status })
    }

    /// How each PE ended; `None` if that is not known yet.
    pub fn statuses(&self) -> Vec<Option<PeStatus>> {
        self.pes.iter().map(|state| state.status).collect()
    }

    /// Takes a note. Returns the event, if the note is one.
    fn note(&mut self, note: Note) -> Option<Event> {
        match note {
            Note::Line { pe, channel, text } => return Some(Event::Line { pe, channel, text }),
            Note::Closed { pe } => self.pes[pe].closed += 1,
            Note::Ended { pe, status } => {
                self.pes[pe].status = Some(status);
                self.pes[pe].announce_at = Some(Instant::now() + DRAIN);
            }
        }
        None
    }
}

impl State {
    /// Starts the threads that read a PE's outputs and wait for its end.
    fn attend(pe: usize, mut child: Child, notes: &SyncSender<Note>) -> State {
        if let Some(out) = child.stdout.take() {
            let notes = notes.clone();
            thread::spawn(move || read(pe, Channel::Out, out, &notes));
        }
        if let Some(err) = child.stderr.take() {
            let notes = notes.clone();
            thread::spawn(move || read(pe, Channel::Err, err, &notes));
        }
        let (number, notes) = (child.id(), notes.clone());
        let process = Arc::new(Mutex::new(child));
        let waits = Arc::clone(&process);
        let waiter = thread::spawn(move || {
            wait_for(number); // without the lock, which killing it needs
            let status =
                waits.lock().unwrap_or_else(PoisonError::into_inner).wait().map_or(PeStatus::Killed(0), status);
            let _ = notes.send(Note::Ended { pe, status }); // fails when nobody listens any more
        });
        State { process, status: None, closed: 0, announce_at: None, is_announced: false, waiter }
    }

    /// Whether to announce its end now.
    fn is_ready(&self, now: Instant) -> bool {
        !self.is_announced && self.announce_at.is_some_and(|at| self.closed == 2 || at <= now)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        // The threads that wait for the processes must not block on a full channel.
        self.notes = mpsc::sync_channel(0).1;
        while self.pes.iter().any(|state| !state.waiter.is_finished())
            && self.give_up_at.is_some_and(|at| Instant::now() < at)
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Passes on line after line, to the end or until nobody listens.
fn read(pe: usize, channel: Channel, pipe: impl Read, notes: &SyncSender<Note>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let end = [&b"\r\n"[..], b"\n"].into_iter().find(|end| line.ends_with(end)).map_or(0, <[u8]>::len);
        let text = String::from_utf8_lossy(&line[..line.len() - end]).into_owned();
        if notes.send(Note::Line { pe, channel, text }).is_err() {
            return;
        }
        line.clear();
    }
    let _ = notes.send(Note::Closed { pe });
}

#[cfg(unix)]
fn status(status: ExitStatus) -> PeStatus {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => PeStatus::Exited(code),
        (None, signal) => PeStatus::Killed(signal.unwrap_or(0)),
    }
}

#[cfg(not(unix))]
fn status(status: ExitStatus) -> PeStatus {
    PeStatus::Exited(status.code().unwrap_or(1))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_pe_that_is_still_there_after_it_was_killed_is_not_waited_for() {
        let start = |script: &str| Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, notes) = mpsc::sync_channel(WAITING);
        // Nothing that a test can start survives SIGKILL: PE 1 is not killed, and writes for ever.
        let scripts = [(0, "exit 3"), (1, "exec yes")];
        let pes: Vec<State> = scripts.map(|(pe, script)| State::attend(pe, start(script), &sender)).into();
        let processes = [0, 1].map(|pe: usize| Arc::clone(&pes[pe].process));
        wait_for(processes[0].lock().unwrap().id());
        let group = Group::start().unwrap();
        let mut running = Running { pes, notes, group, grace: GRACE, kill_at: None, give_up_at: Some(Instant::now()) };
        let ended = Event::Ended { pe: 0, status: PeStatus::Exited(3) };
        let events = [(); 3].map(|()| running.next(Duration::MAX));
        assert_eq!(events, [ended, Event::Stuck { pe: 1 }, Event::AllEnded]);
        assert_eq!(running.statuses(), [Some(PeStatus::Exited(3)), None]);
        drop(running); // nor here
        processes[1].lock().unwrap().kill().unwrap();
    }
}
