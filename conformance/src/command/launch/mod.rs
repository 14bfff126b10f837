//! `onesided launch`: starts the PEs of a program on this host, and ends them all when one fails.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use onesided_harness::complain;
use onesided_harness::launch::{
    Channel, Event, FabricOptions, Job, PeStatus, Rig, Services, Sharing, cannot_start, devices_on, load_kernels_early,
    meaning, most_on_one, replace,
};
use onesided_harness::tool::command::failed;
use onesided_harness::tool::number::whole;
use onesided_harness::tool::{interrupt, say};
use onesided_nvshmem::{Key, Launcher, Placement, Problem};

use words::{Words, is_same};

mod words;

/// How long the other PEs may go on printing after one has failed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The status when the time is up, like that of `timeout`.
const TIME_IS_UP: u8 = 124;
/// The longest limit that can be given: a year. A longer one can only be a mistake.
const YEAR: u64 = 365 * 24 * 3600;
/// Begins each line that is not a PE's.
const NAME: &str = "onesided launch";

/// What `onesided launch` takes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "onesided launch [OPTIONS] -n <N> -- <PROGRAM> [ARGUMENTS]...",
    after_help = "\
Each line that a PE prints is labelled with its number. An error that several PEs write is printed once. When one PE \
fails, the others have a second to say why. Then all are ended, with the processes that they started, except for those \
that left the job's process group (setsid).\n\n\
Started by mpirun, srun or torchrun, it starts nothing: it tells the program who it is, and becomes it.\n\n\
Exit status: 0 if all PEs ended with 0, otherwise the worst of theirs (128 + N for a PE that signal N ended); 124 when \
the time was up; 130 after Ctrl-C and 143 after SIGTERM; 2 if the PEs could not be started."
)]
pub(super) struct Options {
    /// How many PEs; may be left out under mpirun, srun or torchrun
    #[arg(short = 'n', long = "pes", value_name = "N", value_parser = whole::<u16>(1, 65_535))]
    pes: Option<u16>,
    /// The GPUs, which the PEs get in turn: how many (`2`), or which, as CUDA numbers them (`0,3`; `3,` is one). By
    /// default all that CUDA shows
    #[arg(long, value_name = "GPUS")]
    gpus: Option<Gpus>,
    /// Seconds after which all PEs are ended
    #[arg(long, value_name = "SECONDS", value_parser = whole::<u64>(1, YEAR))]
    timeout: Option<u64>,
    /// Start a CUDA multi-process service of its own, so that PEs can share a GPU, and end it with them; with several nodes
    /// one for each node, unless HOW says otherwise
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "node")]
    mps: Option<Sharing>,
    /// Spread the PEs over N nodes, in blocks. The nodes are made of namespaces of this host: each has a host name and a
    /// /dev/shm of its own. That takes root, or user namespaces [default: 1]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1000))]
    nodes: Option<usize>,
    #[command(flatten)]
    fabric: FabricOptions,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// More GPUs than any host has.
const MOST_GPUS: u32 = 65_535;

/// GPUs by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gpus(Vec<u32>);

impl FromStr for Gpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Gpus, String> {
        let number = |part: &str| part.trim().parse().map_err(|_| format!("'{part}' is not the number of a GPU"));
        let numbers = match text.split_once(',') {
            None => match number(text)? {
                count if count > MOST_GPUS => return Err(format!("expected at most {MOST_GPUS} GPUs")),
                count => (0..count).collect(),
            },
            Some(_) => text.trim_end_matches(',').split(',').map(number).collect::<Result<Vec<u32>, _>>()?,
        };
        if numbers.is_empty() {
            Err("it names no GPU; leave --gpus out for a program that needs none".to_string())
        } else {
            Ok(Gpus(numbers))
        }
    }
}

pub(super) fn run(options: &Options) -> ExitCode {
    let placement = match (onesided_nvshmem::placement(), options.pes) {
        (Ok(placement), _) => placement.filter(|placement| placement.from != Launcher::Onesided),
        // The PEs started here do not look at these variables.
        (Err(_), Some(_)) => None,
        (Err(problem), None) => return failed(problem),
    };
    let done = match placement {
        Some(placement) => become_the_program(options, &placement).map(|never| match never {}),
        None => start(options),
    };
    done.unwrap_or_else(failed)
}

/// Starts the PEs and stays with them to the end.
fn start(options: &Options) -> Result<ExitCode, String> {
    let pes = options.pes.ok_or("how many PEs? Say -n N; it can be left out under mpirun, srun or torchrun only")?;
    let pes = usize::from(pes);
    let gpus = match &options.gpus {
        Some(Gpus(gpus)) => Ok(gpus.clone()),
        None => onesided_nvshmem::driver().map(|driver| (0..).take(driver.gpus.len()).collect()),
    };
    let (program, arguments) = options.program.split_first().ok_or("no program")?;
    if let Some(how) =
        program.to_str().filter(|name| options.mps.is_some() && <Sharing as ValueEnum>::from_str(name, false).is_ok())
    {
        return Err(format!("the program would be {how}; --mps takes its value behind an equals sign: --mps={how}"));
    }
    let sharing = options.mps.filter(|how| *how != Sharing::None);
    if sharing.is_some() && gpus.as_ref().map_or(true, Vec::is_empty) {
        let why = gpus.err().map_or_else(|| "CUDA shows none".to_string(), |problem| problem.to_string());
        return Err(format!("--mps is for GPUs, and there is none to use: {why}"));
    }
    let gpus = gpus.unwrap_or_default(); // a program may need none
    let rig = Rig::prepare(&options.fabric, options.nodes)?;
    rig.notes().iter().for_each(|note| complain!("{NAME}: {note}"));
    let nodes = rig.nodes().len().max(1);
    let devices = devices_on(nodes, pes, &gpus);
    let services = Services::start(sharing.unwrap_or(Sharing::None), rig.nodes(), &devices)?;
    let most = most_on_one(devices.get(..pes / nodes).unwrap_or_default());
    if most > 1 && sharing.is_none() && env::var_os("CUDA_MPS_PIPE_DIRECTORY").is_none() {
        complain!("{NAME}: {most} PEs share a GPU, where most of NVSHMEM does not work without --mps");
    }
    let mut job = Job {
        arguments: arguments.to_vec(),
        environment: rig.environment().to_vec(),
        devices,
        nodes: rig.nodes().to_vec(),
        ..Job::new(pes, program)
    };
    services.equip(&mut job);
    let end = attend(&job, options.timeout.map(Duration::from_secs))?;
    if !end.stuck.is_empty() {
        complain!("{NAME}: {} stayed behind, killed and still there; a driver may hold on to it", Pes(&end.stuck));
    }
    if interrupt::is_wanted() {
        return Ok(interrupt::status());
    }
    if let Some(text) = end.text(options.timeout.unwrap_or(0)) {
        complain!("{NAME}: {text}");
    }
    Ok(end.status())
}

/// Prints what the PEs print, and ends them when it is time.
fn attend(job: &Job, limit: Option<Duration>) -> Result<End, String> {
    let mut running = job.start()?;
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut kill_at: Option<Instant> = None;
    let mut end = End::new(job.pes);
    let (mut labels, mut words) = (Labels::new(), Words::new(job.pes));
    loop {
        let now = Instant::now();
        words.due(now).into_iter().for_each(|(pe, text)| labels.print(pe, Channel::Err, text));
        if kill_at.is_none() && deadline.is_some_and(|deadline| deadline <= now) {
            end.too_long = (0..job.pes).filter(|&pe| running.statuses()[pe].is_none()).collect();
            kill_at = Some(now);
        }
        let is_ending = kill_at.is_some_and(|at| at <= now);
        if is_ending {
            running.kill();
        }
        let until = kill_at.or(deadline).map(|at| at.saturating_duration_since(now)).filter(|wait| !wait.is_zero());
        let held = words.next_due().map(|at| at.saturating_duration_since(now));
        let event = running.next(until.into_iter().chain(held).min().unwrap_or(LAST_WORDS));
        if let Event::Ended { pe, status } = event {
            words.ended(pe, status.is_ok()).into_iter().for_each(|text| labels.print(pe, Channel::Err, text));
        }
        match event {
            Event::Line { pe, channel: Channel::Out, text } => labels.print(pe, Channel::Out, text),
            Event::Line { pe, channel: Channel::Err, text } => {
                if !text.trim().is_empty() {
                    end.last[pe] = Some(text.clone());
                }
                end.meaning = end.meaning.or_else(|| Some((pe, meaning(&text)?)));
                words.hear(pe, text, now).into_iter().for_each(|text| labels.print(pe, Channel::Err, text));
            }
            Event::Ended { status, .. } if status.is_ok() => {}
            Event::Ended { pe, .. } if is_ending || interrupt::is_wanted() => end.ended.push(pe),
            Event::Ended { pe, status } => {
                end.failed.push((pe, status));
                kill_at.get_or_insert(now + LAST_WORDS);
            }
            Event::Stuck { pe } => end.stuck.push(pe),
            Event::Quiet => {}
            Event::AllEnded => {
                words.rest().into_iter().for_each(|(pe, text)| labels.print(pe, Channel::Err, text));
                return Ok(End { same: words.same(), printed: labels.printed, ..end });
            }
        }
    }
}

/// How a job ended.
#[derive(Debug)]
struct End {
    /// The last line that each PE wrote to standard error.
    last: Vec<Option<String>>,
    /// The PEs that failed by themselves, in the order of their ends.
    failed: Vec<(usize, PeStatus)>,
    /// The PEs that were ended here.
    ended: Vec<usize>,
    /// The PEs that still ran when the time was up.
    too_long: Vec<usize>,
    /// The PEs that are still there after they were killed.
    stuck: Vec<usize>,
    /// The PEs whose lines were left out, because another PE wrote them too.
    same: Vec<usize>,
    /// The last line that was printed to standard error, and its PE.
    printed: Option<(usize, String)>,
    /// What a library's line means that a PE wrote, if that is known: the first such PE.
    meaning: Option<(usize, &'static str)>,
}

impl End {
    fn new(pes: usize) -> End {
        let (last, meaning) = (vec![None; pes], None);
        End {
            last,
            failed: vec![],
            ended: vec![],
            too_long: vec![],
            stuck: vec![],
            same: vec![],
            printed: None,
            meaning,
        }
    }

    /// What went wrong, if anything did.
    fn text(&self, limit: u64) -> Option<String> {
        let mut text = match (self.too_long.as_slice(), self.failed.as_slice()) {
            ([], []) => return None,
            ([], [(pe, status), ..]) => format!("PE {pe} {status}"),
            (ran, _) => format!("the time of {limit} s is up, and {} still ran", Pes(ran)),
        };
        let others: Vec<usize> = self.failed.iter().skip(1).map(|(pe, _)| *pe).collect();
        if !others.is_empty() {
            text += &format!("; {} failed too", Pes(&others));
        }
        if !self.ended.is_empty() && self.too_long.is_empty() {
            text += &format!("; {} had to be ended", Pes(&self.ended));
        }
        if !self.same.is_empty() {
            text += &format!("; {} wrote the same to standard error", Pes(&self.same));
        }
        let first = self.failed.iter().map(|(pe, _)| pe).chain(&self.too_long);
        let first = first.filter_map(|&pe| Some((pe, self.last[pe].as_ref()?))).next();
        let is_above =
            |pe, line| self.printed.as_ref().is_some_and(|(other, last)| is_same((pe, line), (*other, last)));
        if let Some((pe, line)) = first.filter(|(pe, line)| !is_above(*pe, line)) {
            text += &format!("; PE {pe} last wrote to its standard error: {line}");
        }
        if let Some((pe, meaning)) = self.meaning {
            text += &format!("; what PE {pe} wrote means: {meaning}");
        }
        Some(text)
    }

    fn status(&self) -> ExitCode {
        let worst = self.failed.iter().map(|(_, status)| status.code()).max().unwrap_or(0);
        ExitCode::from(if self.too_long.is_empty() { u8::try_from(worst).unwrap_or(1) } else { TIME_IS_UP })
    }
}

/// `PE 3`, `PEs 0, 2`.
struct Pes<'a>(&'a [usize]);

impl fmt::Display for Pes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "PE{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
    }
}

/// How lines are labelled: faintly on a terminal, plainly elsewhere.
struct Labels {
    out: bool,
    err: bool,
    /// The last line that went to standard error, and its PE.
    printed: Option<(usize, String)>,
}

impl Labels {
    fn new() -> Labels {
        let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let (out, err) = (wanted && io::stdout().is_terminal(), wanted && io::stderr().is_terminal());
        Labels { out, err, printed: None }
    }

    fn print(&mut self, pe: usize, channel: Channel, text: String) {
        let is_faint = if channel == Channel::Out { self.out } else { self.err };
        let line = if is_faint { format!("\x1b[2m[{pe}]\x1b[0m {text}\n") } else { format!("[{pe}] {text}\n") };
        match channel {
            Channel::Out => say::bytes(line.as_bytes()),
            Channel::Err => {
                let _ = io::stderr().write_all(line.as_bytes()); // where nobody reads, nobody misses it
                if !text.trim().is_empty() {
                    self.printed = Some((pe, text));
                }
            }
        }
    }
}

/// Tells the program which PE it is, and becomes the program. Another launcher has started this process for one PE.
fn become_the_program(options: &Options, placement: &Placement) -> Result<Infallible, String> {
    let Placement { rank, n_pes, local_rank, from, .. } = placement;
    if options.pes.is_some_and(|pes| usize::from(pes) != *n_pes) {
        return Err(format!(
            "{from} started {n_pes} PE(s), which -n contradicts: leave it out here, and give {from} the number"
        ));
    }
    let given = [
        ("--mps", options.mps.is_some()),
        ("--timeout", options.timeout.is_some()),
        ("--nodes", options.nodes.is_some()),
    ];
    let given = given.into_iter().find_map(|(option, is_given)| is_given.then_some(option));
    if let Some(option) = given.or(options.fabric.given()) {
        return Err(format!("{option} is for PEs that are started here; {from} started this one"));
    }
    let (program, arguments) = options.program.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    command.args(arguments);
    load_kernels_early(&mut command);
    command.env("ONESIDED_RANK", rank.to_string()).env("ONESIDED_PES", n_pes.to_string());
    command.env("ONESIDED_LOCAL_RANK", local_rank.to_string());
    if *n_pes > 1 {
        let text = |problem: Problem| problem.to_string();
        command.env("ONESIDED_RENDEZVOUS", placement.meeting().map_err(text)?);
        command.env(Key::VARIABLE, placement.key().map_err(text)?.reveal());
    }
    if let Some(Gpus(gpus)) = &options.gpus {
        command.env("ONESIDED_DEVICE", gpus[local_rank % gpus.len()].to_string());
    }
    let why = replace(&mut command);
    Err(cannot_start(&command, &why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_a_number_of_them_or_their_numbers() {
        let gpus = |text: &str| text.parse::<Gpus>();
        assert_eq!(gpus("2"), Ok(Gpus(vec![0, 1])));
        assert_eq!(gpus("3,0"), Ok(Gpus(vec![3, 0])));
        assert_eq!(gpus("3,"), Ok(Gpus(vec![3])));
        for wrong in ["0", "", ",", "one", "1,two", "-1"] {
            assert!(gpus(wrong).is_err(), "{wrong:?}: {:?}", gpus(wrong));
        }
    }

    #[test]
    fn the_worst_status_counts_and_the_first_failure_is_told() {
        let end = End {
            last: vec![None, Some("no memory".to_string()), None, None],
            failed: vec![(2, PeStatus::Exited(3)), (1, PeStatus::Killed(9))],
            ended: vec![0],
            ..End::new(4)
        };
        assert_eq!(
            end.text(0).unwrap(),
            "PE 2 ended with status 3; PE 1 failed too; PE 0 had to be ended; \
             PE 1 last wrote to its standard error: no memory"
        );
        assert_eq!(format!("{:?}", end.status()), format!("{:?}", ExitCode::from(137)));

        // The line right above is not repeated. PEs whose lines were left out are named.
        let printed = |pe: usize, line: &str| Some((pe, line.to_string()));
        let end = End { printed: printed(1, "no memory"), same: vec![0, 3], ..end };
        let said = "PE 2 ended with status 3; PE 1 failed too; PE 0 had to be ended; PEs 0, 3 wrote the same to standard error";
        assert_eq!(end.text(0).unwrap(), said);
        let end = End { printed: printed(1, "something else"), same: vec![], ..end };

        let late = End { failed: vec![], ended: vec![1, 3], too_long: vec![1, 3], ..end };
        assert_eq!(
            late.text(5).unwrap(),
            "the time of 5 s is up, and PEs 1, 3 still ran; PE 1 last wrote to its standard error: no memory"
        );
    }
}
