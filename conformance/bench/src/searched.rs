//! Programs that ours, loom and shuttle search: the same operations, so that what they count can be compared.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Budget, Config, Explore, Sim, Simulation};

use super::peers::{loom, shuttle};

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// All others send PE 0 a word and then a flag, and it looks at each flag once.
    Messages,
    /// Everybody adds one to a counter and sees what it held.
    Counter,
    /// Everybody sends its number to the next one and waits for that of the one before.
    Ring,
}

/// Who searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// The simulator, on one core.
    Ours,
    /// Loom, without a bound on preemptions.
    Loom,
    /// Shuttle's depth-first search.
    Shuttle,
}

/// A search of a program of so many PEs or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) tool: Tool,
    pub(super) program: Program,
    pub(super) n: usize,
    /// The most executions to begin, and the most seconds to take.
    pub(super) executions: u64,
    pub(super) seconds: u64,
}

/// What a search has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Searched {
    /// Executions that were begun.
    pub(super) begun: u64,
    /// Different results among them: what every PE or thread has seen. No two equivalent executions differ in that.
    pub(super) distinct: u64,
    pub(super) seconds: f64,
    /// Whether the search came to its end before a limit.
    pub(super) complete: bool,
}

pub(super) const PROGRAMS: [Program; 3] = [Program::Messages, Program::Counter, Program::Ring];
pub(super) const TOOLS: [Tool; 3] = [Tool::Ours, Tool::Loom, Tool::Shuttle];

impl Task {
    /// Searches.
    pub(super) fn search(self) -> Result<Searched> {
        let Task { tool, program, n, executions, .. } = self;
        let (time, start) = (Duration::from_secs(self.seconds), Instant::now());
        let (begun, distinct) = match tool {
            Tool::Ours => ours(self)?,
            Tool::Loom => loom::all(program, n, executions, time),
            Tool::Shuttle => shuttle::all(program, n, executions, time),
        };
        let spent = start.elapsed();
        let complete = begun < executions && spent < time;
        Ok(Searched { begun, distinct, seconds: spent.as_secs_f64(), complete })
    }
}

fn ours(task: Task) -> Result<(u64, u64)> {
    let mut simulation = Simulation::new(Config::pes(task.n))?;
    simulation.set_budget(Budget { time: Some(Duration::from_secs(task.seconds)), memory: None });
    let (mut seen, mut wrong) = (BTreeSet::new(), None);
    let visit = |run: &onesided_sim::Run<u64>| {
        match run.is_ok() {
            true => drop(seen.insert(run.results.clone())),
            false => wrong = Some(run.verdict.to_string()),
        }
        std::ops::ControlFlow::Continue(())
    };
    let all = Explore::All { limit: task.executions };
    let explored = simulation.explore(all, |pe| program(task.program, pe), visit)?;
    wrong.map_or(Ok((explored.schedules + explored.redundant, seen.len() as u64)), |wrong| {
        Err(onesided::Error::wrong_result(wrong))
    })
}

/// A PE's part, and what it has seen.
fn program(program: Program, pe: &Pe<Sim>) -> Result<u64> {
    match program {
        Program::Messages => messages(pe),
        Program::Counter => counter(pe),
        Program::Ring => ring(pe),
    }
}

fn messages(pe: &Pe<impl Backend>) -> Result<u64> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (data, flags) = (pe.alloc_zeroed::<u64>(n)?, pe.alloc_zeroed::<u64>(n)?);
    let mut seen = 0;
    if me == 0 {
        for sender in 1..n {
            if pe.host().signal_fetch(flags.signal(sender))? == 1 {
                expect_eq(pe.read_one(data.at(sender))?, sender as u64, "the word of a sender")?;
                seen |= 1 << sender;
            }
        }
    } else {
        pe.host().p(data.at(me), me as u64, 0)?;
        pe.host().fence()?;
        pe.host().signal_op(flags.signal(me), 1, SignalOp::Set, 0)?;
    }
    pe.free(flags)?;
    pe.free(data)?;
    Ok(seen)
}

fn counter(pe: &Pe<impl Backend>) -> Result<u64> {
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let seen = pe.host().atomic_fetch_inc(&counter, 0)?;
    pe.free(counter)?;
    Ok(seen)
}

fn ring(pe: &Pe<impl Backend>) -> Result<u64> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (words, flag) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(words.at(0), &[me as u64])?;
    pe.host().put_signal(words.at(1), words.at(0), flag.signal(0), 1, SignalOp::Set, (me + 1) % n)?;
    pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    let seen = pe.read_one(words.at(1))?;
    pe.free(flag)?;
    pe.free(words)?;
    Ok(seen)
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Program::Messages => "messages",
            Program::Counter => "counter",
            Program::Ring => "ring",
        })
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::Ours => "ours",
            Tool::Loom => "loom",
            Tool::Shuttle => "shuttle",
        })
    }
}

/// `loom,counter,3,200,60`.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task { tool, program, n, executions, seconds } = self;
        write!(f, "{tool},{program},{n},{executions},{seconds}")
    }
}

impl FromStr for Task {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Task, ()> {
        let [tool, program, n, executions, seconds] = *text.split(',').collect::<Vec<_>>() else { return Err(()) };
        let tool = TOOLS.into_iter().find(|other| other.to_string() == tool).ok_or(())?;
        let program = PROGRAMS.into_iter().find(|other| other.to_string() == program).ok_or(())?;
        let number = |text: &str| text.parse::<u64>().map_err(drop);
        let n = n.parse().map_err(drop)?;
        Ok(Task { tool, program, n, executions: number(executions)?, seconds: number(seconds)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tool: Tool, program: Program, n: usize) -> Task {
        Task { tool, program, n, executions: 1_000_000, seconds: 60 }
    }

    #[test]
    fn the_programs_do_the_same_wherever_they_run() {
        for (program, results) in [(Program::Messages, 4), (Program::Counter, 6), (Program::Ring, 1)] {
            for tool in TOOLS {
                let Searched { begun, distinct, complete, .. } = task(tool, program, 3).search().unwrap();
                assert_eq!((distinct, complete), (results, true), "{tool}, {program}");
                assert!(begun >= distinct, "{tool}, {program}: {begun}");
            }
        }
    }

    #[test]
    fn ours_begins_one_execution_of_each_class() {
        for (program, n, classes) in [(Program::Messages, 4, 8), (Program::Counter, 4, 24), (Program::Ring, 4, 1)] {
            assert_eq!(task(Tool::Ours, program, n).search().unwrap().begun, classes, "{program}");
        }
    }

    #[test]
    fn a_limit_ends_each_search() {
        for tool in TOOLS {
            let few = Task { executions: 4, ..task(tool, Program::Counter, 3) };
            let Searched { begun, complete, .. } = few.search().unwrap();
            assert_eq!((begun, complete), (4, false), "{tool}");
        }
    }
}
