//! Two programs in turn, round for round, and what came out side by side.
//!
//! Initialization is judged by the two programs. Calls are judged by what our processes measured in pairs, and the C++
//! program shows what they cost where nothing of ours is.

use std::time::{Duration, Instant};

use onesided_harness::tool::interrupt;

use super::figures::{Figure, Peer};
use super::job::{Measured, PES, Program, median};
use super::plan::{Beside, Measurement};
use crate::row::{Cell, Row};

/// Where the PEs of a job are, and what its processes need to know of that.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// As the rows say it.
    pub(super) name: &'static str,
    pub(super) devices: [u32; PES],
    pub(super) environment: Vec<(String, std::ffi::OsString)>,
}

/// What limits a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) rounds: usize,
    /// For one job.
    pub(super) job: Duration,
    /// After so long no further round begins.
    pub(super) all: Duration,
}

/// All jobs of one program.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) jobs: Vec<Measured>,
    /// Why there are no more.
    pub(super) failed: Option<String>,
}

/// A row with what each job gave, in the order of the rounds.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) place: &'static str,
    pub(super) row: Row,
    pub(super) ours: Vec<f64>,
    pub(super) peer: Vec<f64>,
    /// Of calls that are measured in pairs.
    pub(super) program: Option<Alone>,
}

/// What the C++ program says of calls, in processes of its own.
#[derive(Debug)]
pub(super) struct Alone {
    pub(super) cell: Cell,
    pub(super) jobs: Vec<f64>,
}

/// Both programs.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) ours: Side,
    pub(super) peer: Side,
}

impl Side {
    /// A side that cannot be started at all.
    fn absent(why: String) -> Side {
        Side { jobs: Vec::new(), failed: Some(why) }
    }

    /// One more job; none after one that failed.
    fn job(&mut self, program: &Program, place: &Place, plan: &[Measurement], limit: Duration) {
        if self.failed.is_some() {
            return;
        }
        let mut program = program.clone();
        program.environment.extend(place.environment.iter().cloned());
        match program.run(place.devices, plan, limit) {
            Ok(measured) => self.jobs.push(measured),
            Err(why) => self.failed = Some(why),
        }
    }

    /// What the jobs gave; nothing if one of them failed.
    fn values(&self, of: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
        let jobs = if self.failed.is_none() { self.jobs.as_slice() } else { &[] };
        jobs.iter().filter_map(of).collect()
    }

    /// The median over the jobs, or the first line of why there is none.
    fn cell(&self, values: &[f64], missing: fn(String) -> Cell) -> Cell {
        let why = || first_line(self.failed.as_deref().unwrap_or("it gave no number"));
        median(values.to_vec()).map_or_else(|| missing(why()), Cell::Value)
    }
}

/// Lets both programs measure, in turn. Who begins changes from round to round, so that neither has the colder machine.
/// A round before the first warms it up, and counts for nothing: it starts the multi-process service's server and reads
/// the library from the disk.
pub(super) fn compare(
    place: &Place,
    plan: &[Measurement],
    ours: &Program,
    peer: Result<&dyn Fn() -> Program, String>,
    limits: Limits,
) -> Compared {
    let start = Instant::now();
    let (mut mine, mut theirs) = (Side::default(), Side::default());
    let peer = peer.map_err(|why| theirs = Side::absent(why)).ok();
    let calls: Vec<Measurement> = plan.iter().copied().filter(|m| m.beside() == Beside::Cpp).collect();
    for round in 0..=limits.rounds {
        if round == 1 {
            mine.jobs.clear();
            theirs.jobs.clear();
        }
        let is_over = round > 1 && start.elapsed() > limits.all;
        if is_over || mine.failed.is_some() || interrupt::is_wanted() {
            break;
        }
        let mut theirs_now = || {
            if let Some(peer) = peer {
                theirs.job(&peer(), place, &calls, limits.job);
            }
        };
        if round % 2 == 1 {
            theirs_now();
        }
        mine.job(ours, place, plan, limits.job);
        if round % 2 == 0 {
            theirs_now();
        }
    }
    if let Some(why) = differ(&mine, &theirs) {
        theirs = Side::absent(why);
    }
    Compared { ours: mine, peer: theirs }
}

/// Why the two cannot be compared, if they ran on different libraries or in different ways.
fn differ(ours: &Side, peer: &Side) -> Option<String> {
    let (mine, theirs) = (ours.jobs.first()?, peer.jobs.first()?);
    // `libnvshmem 3.4.5` of ours, `3.4.5` of the peer's.
    let version = |side: &Measured| side.library.rsplit(' ').next().map(str::to_string);
    let same_library = version(mine) == version(theirs);
    if same_library && mine.status == theirs.status {
        return None;
    }
    let words = |side: &Measured| format!("{} ({})", side.library, side.status);
    Some(format!("it ran on {}, ours on {}: they cannot be compared", words(theirs), words(mine)))
}

impl Compared {
    /// Why the processes of ours measured no pairs, if they said so.
    pub(super) fn no_pair(&self) -> Option<&str> {
        self.ours.jobs.iter().find_map(|job| job.no_pair.as_deref())
    }

    /// A line for each figure. `no_pair` says why none was measured in pairs, if that is known.
    pub(super) fn lines(&self, place: &'static str, figures: &[Figure], no_pair: Option<&str>) -> Vec<Line> {
        figures.iter().map(|figure| self.line(place, figure, no_pair)).collect()
    }

    fn line(&self, place: &'static str, figure: &Figure, no_pair: Option<&str>) -> Line {
        let ours = self.ours.values(|job| figure.of(job));
        let program = self.peer.values(|job| figure.of(job));
        let mut row = Row::new(&figure.name, figure.unit, self.ours.cell(&ours, Cell::Failed));
        row.target = figure.target;
        let alone = self.peer.cell(&program, Cell::NotRun);
        match figure.peer {
            Peer::Nobody => Line { place, row, ours, peer: Vec::new(), program: None },
            Peer::Program => Line { place, row: row.beside("C++", alone), ours, peer: program, program: None },
            Peer::Pair | Peer::Headers => {
                let mut peer = self.ours.values(|job| figure.of_pair(job));
                if peer.len() < ours.len() {
                    peer.clear(); // what some jobs say is not to be compared with what all do
                }
                let why = || first_line(no_pair.unwrap_or("our processes gave no number of it"));
                let theirs = median(peer.clone()).map_or_else(|| Cell::NotRun(why()), Cell::Value);
                row = row.beside("C++", theirs);
                row.times = median(ours.iter().zip(&peer).map(|(ours, peer)| ours / peer).collect());
                let program = (figure.peer == Peer::Pair).then_some(Alone { cell: alone, jobs: program });
                Line { place, row, ours, peer, program }
            }
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::figures::figures;
    use super::super::job::Medians;
    use super::super::job::tests::{paired, scripted, shell};
    use super::*;

    const LIMITS: Limits = Limits { rounds: 3, job: Duration::from_secs(60), all: Duration::from_secs(600) };

    fn place() -> Place {
        Place { name: "1 GPU", devices: [0, 0], environment: vec![("ONESIDED_TEST".into(), "1".into())] }
    }

    fn plan() -> Vec<Measurement> {
        ["put:0:200:3", "put:8:200:3", "put:1048576:50:3"].map(|text| text.parse().unwrap()).into()
    }

    fn lines(ours: &Program, peer: Result<&dyn Fn() -> Program, String>) -> Vec<Line> {
        let plan = plan();
        compare(&place(), &plan, ours, peer, LIMITS).lines("1 GPU", &figures(&plan), Some("no loops\nat all"))
    }

    /// A job that measured nothing.
    fn measured(library: &str, status: &str) -> Measured {
        Measured {
            ready: Duration::ZERO,
            init: Default::default(),
            library: library.to_string(),
            status: status.to_string(),
            medians: Default::default(),
            pairs: Default::default(),
            no_pair: None,
        }
    }

    fn of<'a>(lines: &'a [Line], name: &str) -> &'a Line {
        lines.iter().find(|line| line.row.name == name).unwrap_or_else(|| panic!("no {name} in {lines:?}"))
    }

    #[test]
    fn calls_stand_beside_their_pairs_and_initialization_beside_the_program() {
        let peer = || scripted(200, "900", "9000");
        let lines = lines(&paired(230, "1040,1030,9999", "1000,2,1001"), Ok(&peer));
        let issue = of(&lines, "put 8 B, issue");
        assert_eq!((issue.ours.as_slice(), issue.peer.as_slice()), (&[1040.0; 3][..], &[1000.0; 3][..]));
        assert_eq!((issue.row.times_peer(), issue.row.met()), (Some(1.04), Some(true)));
        let alone = issue.program.as_ref().unwrap();
        assert_eq!((&alone.cell, alone.jobs.as_slice()), (&Cell::Value(900.0), &[900.0; 3][..]));
        let init = of(&lines, "init");
        assert_eq!(
            (init.row.ours.value(), init.row.peer.value(), init.row.met()),
            (Some(230.0), Some(200.0), Some(false))
        );
        assert!(init.peer == [200.0; 3] && init.program.is_none(), "{init:?}");
        let bulk = of(&lines, "put 1 MiB");
        assert_eq!(bulk.row.ours.value(), Some(1_048_576.0 / 1040.0));
        assert_eq!((bulk.row.peer.value(), bulk.row.met()), (Some(1_048_576.0 / 1000.0), Some(false)));
        let nothing = of(&lines, "put of nothing, issue (our own path)");
        assert_eq!((nothing.row.ours.value(), &nothing.row.peer), (Some(1040.0), &Cell::Absent));
        assert!(nothing.peer.is_empty() && nothing.program.is_none(), "{nothing:?}");
    }

    /// Three jobs, of which each has a quotient of its own: the median is one of them, and not that of two medians.
    #[test]
    fn the_quotient_is_the_median_of_the_quotients() {
        let measurement: Measurement = "put:8:200:3".parse().unwrap();
        let job = |ours: f64, cpp: f64| {
            let of = |time: f64| [(measurement, Medians { issue: time, done: time })].into();
            Measured { medians: of(ours), pairs: of(cpp), ..measured("3.4.5", "full MPG") }
        };
        let ours = Side { jobs: vec![job(10.0, 10.0), job(22.0, 20.0), job(36.0, 30.0)], failed: None };
        let mut compared = Compared { ours, peer: Side::absent("no g++".into()) };
        let figures = figures(&[measurement]);
        let lines = compared.lines("1 GPU", &figures, None);
        let row = &of(&lines, "put 8 B, issue").row;
        assert_eq!([row.ours.value(), row.peer.value(), row.times_peer()], [Some(22.0), Some(20.0), Some(1.1)]);
        compared.ours.jobs[1] = job(40.0, 20.0);
        let lines = compared.lines("1 GPU", &figures, None);
        let row = &of(&lines, "put 8 B, issue").row;
        assert_eq!([row.ours.value(), row.peer.value(), row.times_peer()], [Some(36.0), Some(20.0), Some(1.2)]);
        // A job without its pair leaves nothing to judge by.
        compared.ours.jobs[2].pairs.clear();
        let lines = compared.lines("1 GPU", &figures, None);
        let line = of(&lines, "put 8 B, issue");
        assert_eq!((line.row.times_peer(), line.peer.len(), line.ours.len()), (None, 0, 3));
    }

    #[test]
    fn without_loops_ours_and_the_program_are_shown_and_not_judged() {
        let peer = || scripted(1, "1000", "2000");
        let ours = scripted(1, "1040", "2100");
        let lines = lines(&ours, Ok(&peer));
        let issue = of(&lines, "put 8 B, issue");
        assert_eq!((issue.row.ours.value(), issue.row.met()), (Some(1040.0), None));
        assert_eq!(issue.row.peer, Cell::NotRun("no loops".into()));
        assert_eq!(issue.program.as_ref().unwrap().cell, Cell::Value(1000.0));
        assert!(of(&lines, "init").row.met().is_some());
    }

    #[test]
    fn the_processes_say_why_they_have_no_loops() {
        let mut ours = Side { jobs: vec![measured("3.4.5", "full MPG")], failed: None };
        ours.jobs[0].no_pair = Some("cannot be opened".into());
        let compared = Compared { ours, peer: Side::default() };
        assert_eq!(compared.no_pair(), Some("cannot be opened"));
    }

    #[test]
    fn who_begins_changes_from_round_to_round() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut programs = ["ours", "peer"].map(|name| {
            let mut program = scripted(1, "1", "1");
            let script = program.arguments[1].to_string_lossy().into_owned();
            program.arguments[1] = format!(
                "[ $ONESIDED_TEST = 1 ] || exit 9\n[ $ONESIDED_RANK = 1 ] || echo {name} >> {}\n{script}",
                log.display()
            )
            .into();
            program
        });
        let peer = std::mem::replace(&mut programs[1], shell("exit 1"));
        lines(&programs[0], Ok(&|| peer.clone()));
        let order = std::fs::read_to_string(log).unwrap();
        let warm_up_and_rounds = ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"];
        assert_eq!(order.split_whitespace().collect::<Vec<_>>(), warm_up_and_rounds);
    }

    #[test]
    fn a_program_that_is_missing_or_fails_leaves_ours_and_the_pairs() {
        let ours = paired(1, "1", "1");
        let fails = || shell("echo why >&2; exit 3");
        for (peer, why) in [
            (Err("no g++".to_string()), "not run: no g++"),
            (Ok(&fails as &dyn Fn() -> Program), "ended with status 3"),
        ] {
            let lines = lines(&ours, peer);
            let init = &of(&lines, "init").row;
            assert_eq!((init.ours.value(), init.met()), (Some(1.0), None));
            assert!(init.peer.why_not().unwrap().contains(why), "{init:?}");
            let issue = of(&lines, "put 8 B, issue");
            assert_eq!(issue.row.times_peer(), Some(1.0));
            assert!(issue.program.as_ref().unwrap().cell.why_not().unwrap().contains(why), "{issue:?}");
        }
    }

    #[test]
    fn ours_that_fails_is_a_failure_and_ends_the_comparison() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let ours = shell(&format!("echo x >> {}; echo gone >&2; exit 5", count.display()));
        let peer = || scripted(1, "1", "1");
        let lines = lines(&ours, Ok(&peer));
        let row = &of(&lines, "init").row;
        assert!(matches!(&row.ours, Cell::Failed(why) if why.contains("ended with status 5")), "{row:?}");
        assert!(std::fs::read_to_string(count).unwrap().lines().count() <= PES);
    }

    #[test]
    fn different_libraries_are_not_compared() {
        let peer = || shell(r#"echo '{"ready":{"init_ns":1,"status":"full MPG","library":"3.8.0"}}'"#);
        let compared = compare(&place(), &[], &scripted(1, "1", "1"), Ok(&peer), LIMITS);
        let lines = compared.lines("1 GPU", &figures(&[]), None);
        let why = of(&lines, "init").row.peer.why_not().unwrap();
        assert_eq!(why, "not run: it ran on 3.8.0 (full MPG), ours on 3.4.5 (full MPG): they cannot be compared");
    }

    #[test]
    fn the_same_library_may_be_named_in_two_ways() {
        let side = |library: &str, status: &str| Side { jobs: vec![measured(library, status)], failed: None };
        let ours = side("libnvshmem 3.4.5", "full MPG");
        assert_eq!(differ(&ours, &side("3.4.5", "full MPG")), None);
        assert!(differ(&ours, &side("3.4.5", "limited MPG")).is_some_and(|why| why.contains("limited MPG")));
        assert!(differ(&ours, &side("4.5", "full MPG")).is_some());
    }

    #[test]
    fn no_round_begins_when_the_time_is_up() {
        let limits = Limits { all: Duration::ZERO, ..LIMITS };
        let peer = || scripted(1, "1", "1");
        let compared = compare(&place(), &[], &scripted(1, "1", "1"), Ok(&peer), limits);
        assert_eq!((compared.ours.jobs.len(), compared.peer.jobs.len()), (1, 1));
    }
}
