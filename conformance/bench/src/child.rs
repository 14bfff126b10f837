//! This program once more, as a process of its own: for the time from start to end, and the memory at the peak.

use std::env;
use std::fmt;
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::Duration;

use onesided::{Backend, Pe, Result, expect_eq};
use onesided_sim::Simulation;

use super::lab::endless;
use super::machine::field;
use super::peers::threads;
use super::process;
use super::searched::{Searched, Task};

/// Names the part to play; set only by [`Part::measure`].
const VARIABLE: &str = "ONESIDED_BENCH_CHILD";

/// What a child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Runs a program that does nothing, on so many PEs.
    Empty(usize),
    /// Runs a ring and a barrier, on so many PEs.
    Ring(usize),
    /// The same on so many threads.
    Threads(usize),
    /// Searches all executions of a program.
    Search(Task),
}

/// How a child ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// From start to end of the process.
    pub(super) time: Duration,
    /// Resident memory at the peak, where the system tells.
    pub(super) peak_mib: Option<f64>,
    /// Of a search, what it has done.
    pub(super) searched: Option<Searched>,
}

impl Part {
    /// Starts a child that plays this part, and waits for its end.
    pub(super) fn measure(self) -> std::result::Result<Outcome, String> {
        let me = env::current_exe().map_err(|error| format!("this program's file is unknown: {error}"))?;
        let mut command = Command::new(me);
        command.arg("bench").env(VARIABLE, self.to_string());
        let finished = process::run(&mut command, Duration::from_secs(120))?;
        let told = |name: &str| field(&finished.output, name, '=');
        let peak = told("peak").ok_or("the child played no part")?;
        let searched = || {
            let number = |name| told(name)?.parse().ok();
            let (seconds, complete) = (told("seconds")?.parse().ok()?, told("complete")?.parse().ok()?);
            Some(Searched { begun: number("begun")?, distinct: number("distinct")?, seconds, complete })
        };
        Ok(Outcome { time: finished.time, peak_mib: peak.parse().ok(), searched: searched() })
    }

    fn play(self) -> Result<()> {
        match self {
            Part::Search(task) => {
                let Searched { begun, distinct, seconds, complete } = task.search()?;
                println!("begun={begun}\ndistinct={distinct}\nseconds={seconds}\ncomplete={complete}");
                Ok(())
            }
            Part::Empty(pes) => Simulation::new(endless(pes))?.run(|_| Ok(()))?.into_results().map(drop),
            Part::Ring(pes) => Simulation::new(endless(pes))?.run(ring)?.into_results().map(drop),
            Part::Threads(threads) => {
                threads::ring(threads).map_err(|error| onesided::Error::wrong_result(error.to_string()))
            }
        }
    }
}

/// If this process is such a child, plays its part and gives the exit status.
pub(super) fn play() -> Option<ExitCode> {
    let name = env::var(VARIABLE).ok()?;
    let played = name.parse::<Part>().and_then(|part| part.play().map_err(|error| error.to_string()));
    Some(match played {
        Ok(()) => {
            println!("peak={}", peak_mib().map_or_else(|| "unknown".into(), |mib| mib.to_string()));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    })
}

/// Every PE puts a word to the next one, and all meet.
fn ring(pe: &Pe<impl Backend>) -> Result<()> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[me as u64])?;
    pe.host().put(&dst, &src, (me + 1) % n)?;
    pe.host().barrier_all()?;
    expect_eq(pe.read(&dst)?[0], ((me + n - 1) % n) as u64, "what the PE before has put")?;
    pe.free(dst)?;
    pe.free(src)
}

/// The most memory that this process ever had resident. Linux tells; other systems have no such file.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib: f64 = field(&status, "VmHWM", ':')?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Empty(pes) => write!(f, "empty:{pes}"),
            Part::Ring(pes) => write!(f, "ring:{pes}"),
            Part::Threads(threads) => write!(f, "threads:{threads}"),
            Part::Search(task) => write!(f, "search:{task}"),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Part, String> {
        let part = text.split_once(':').and_then(|(name, number)| {
            if name == "search" {
                return number.parse().ok().map(Part::Search);
            }
            let number = number.parse().ok()?;
            match name {
                "empty" => Some(Part::Empty(number)),
                "ring" => Some(Part::Ring(number)),
                "threads" => Some(Part::Threads(number)),
                _ => None,
            }
        });
        part.ok_or_else(|| format!("{VARIABLE}={text} names no part of a benchmark"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::searched::{Program, TOOLS};
    use super::*;

    #[test]
    fn parts_are_named_and_recognized() {
        let search = |tool| Task { tool, program: Program::Ring, n: 3, executions: 200, seconds: 60 };
        let searches = TOOLS.map(|tool| Part::Search(search(tool)));
        for part in [Part::Empty(64), Part::Ring(4096), Part::Threads(2)].into_iter().chain(searches) {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        assert!("search:loom,ring,3,200".parse::<Part>().is_err());
        assert!("empty".parse::<Part>().is_err() && "nap:3".parse::<Part>().is_err());
    }

    #[test]
    fn every_part_can_be_played() {
        [Part::Empty(3), Part::Ring(5), Part::Threads(5)].into_iter().for_each(|part| part.play().unwrap());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_tells_the_peak() {
        assert!(peak_mib().unwrap() > 0.0);
    }
}
