//! Programs that are not written in Rust: everything that is reported stands where they say.
//!
//! The "binding" here is Rust code that names a line of `program.py` for each call, as a binding for Python would.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::common;
use onesided::backend::{Placed, placed};
use onesided::{At, Bootstrap, Cmp, Error, ErrorKind, InitMethod, Pe, ReduceOp, Result, SignalOp, TeamConfig};
use onesided_sim::{Config, Explore, Races, Run, Sim, SimProcess, Simulation, VerdictKind};

/// A PE of a program in Python, which counts its lines.
struct Python {
    pe: Pe<Placed<Sim>>,
    line: Cell<u32>,
}

impl Python {
    fn init(process: &SimProcess) -> Result<Python> {
        let pe = placed(process.init_at(InitMethod::Launcher, line(1))?);
        Ok(Python { pe, line: Cell::new(1) })
    }

    /// The PE on the program's next line.
    fn next(&self) -> &Pe<Placed<Sim>> {
        self.line.set(self.line.get() + 1);
        self.pe.at(line(self.line.get()))
    }

    fn finalize(self) -> Result<()> {
        self.next();
        self.pe.finalize()
    }
}

fn line(number: u32) -> At {
    At::foreign("program.py", number, 0, Some("main"))
}

fn run(program: impl Fn(&SimProcess) -> Result<()>) -> Run<()> {
    let mut simulation = Simulation::new(Config { races: Races::Note, ..Config::pes(2) }).unwrap();
    let run = simulation.run_process(&program).unwrap();
    simulation.reproduce_process(&run, program).unwrap()
}

/// Calls of every kind: each event is of the program's line, none of the binding's.
#[test]
fn every_event_stands_where_the_program_says() {
    let run = run(|process| {
        let python = Python::init(process)?;
        let (words, source) = (python.next().alloc_zeroed::<u64>(4)?, python.next().alloc_aligned::<u64>(2, 64)?);
        let (stream, event) = (python.next().stream()?, python.next().event()?);
        let other = 1 - python.pe.my_pe();
        python.next().write(&source, &[1, 2])?;
        python.next().host().put(words.slice(..2), &source, other)?;
        python.next().host().fence()?;
        python.next().on(&stream).put_signal(words.at(0), source.at(0), words.signal(3), 1, SignalOp::Set, other)?;
        python.next().record(&event, &stream)?;
        python.next().synchronize_event(&event)?;
        python.next().host().signal_wait_until(words.signal(3), Cmp::Eq, 1)?;
        python.next().host().signal_fetch(words.signal(3))?;
        python.next().host().atomic_add(words.at(2), 1, other)?;
        python.next().on(&stream).quiet()?;
        python.next().synchronize(&stream)?;
        python.next().host().barrier_all()?;
        let team = python
            .next()
            .team_split_strided(python.pe.world(), 0, 1, 2, TeamConfig::default())?
            .expect("a team of all");
        python.next().host().reduce(&team, words.at(0), source.at(0), ReduceOp::Sum)?;
        python.next().team_destroy(team)?;
        let peer = python.next().peer(words.at(1), other)?.expect("it is on this node");
        python.next();
        peer.write(&[5])?;
        python.next();
        peer.read()?;
        python.next().host().sync_all()?;
        python.next().read(&words)?;
        let external = python.next().alloc_external::<u8>(1)?;
        let shared = python.next().register_symmetric(external)?;
        let external = python.next().unregister_symmetric(shared)?;
        python.next().free_external(external)?;
        python.next().free(source)?;
        python.next().free(words)?;
        python.finalize()
    });
    assert!(run.is_ok(), "{}", run.verdict);
    let trace = run.trace.unwrap();
    assert!(trace.len() > 60, "{} events", trace.len());
    for event in &trace {
        assert_eq!((event.at.file(), event.at.function()), ("program.py", Some("main")), "{}", event.to_json());
    }
    // each call its own: the first is init, the last finalize
    let lines: Vec<u32> = trace.iter().filter(|event| event.pe == 0).map(|event| event.at.line()).collect();
    assert_eq!((lines.iter().min(), lines.last()), (Some(&1), lines.iter().max()));
}

/// A bug of a foreign program is found by exploring, names the program's lines, and replays.
#[test]
fn findings_name_the_lines_of_the_program() {
    let missing_fence = |process: &SimProcess| {
        let python = Python::init(process)?;
        let (data, flag) = (python.next().alloc_zeroed::<u64>(1)?, python.next().alloc_zeroed::<u64>(1)?);
        if python.pe.my_pe() == 0 {
            python.next().host().p(&data, 1, 1)?;
            python.next().host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            python.next().host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            let found = python.next().read_one(&data)?;
            if found != 1 {
                return Err(Error::new(ErrorKind::WrongResult, "check", "the data is old", line(6)));
            }
        }
        python.next().free(flag)?;
        python.next().free(data)?;
        python.finalize()
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let mut found = None;
    let all = Explore::All { limit: common::ENOUGH };
    let visit = |run: &Run<()>| {
        if !run.is_ok() {
            found = Some(run.without_results());
        }
        ControlFlow::Continue(())
    };
    assert!(simulation.explore_process(all, missing_fence, visit).unwrap().complete);
    let again = simulation.reproduce_process(&found.expect("the bug is found"), missing_fence).unwrap();
    insta::assert_snapshot!(again.verdict, @r"
    PE 1 failed: check: the data is old (wrong result, program.py:6)
      besides, data race: delivery of p at program.py:4 by PE 0 and read at program.py:5 by PE 1, on buf0+0..8 of PE 1 (made at program.py:2)
        nothing orders them; missing: a fence between program.py:4 and program.py:5
        issued in steps 8 and 14
        PE 1 knows PE 0 up to signal_op at program.py:5
        PE 0 knows PE 1 up to alloc at program.py:3
      PE 1 last read at program.py:5 (read):
          bytes 0..8 of buf0 (made at program.py:2): zero, as they were allocated
      PE 0: in free at program.py:6, waits for a transfer to be delivered
      PE 1: failed here; its last call was at program.py:5
      not yet delivered to PE 1:
        p by PE 0 at program.py:4: 8 bytes of buf0+0..8 on PE 1, overtaken by signal_op at program.py:5
    ");
    assert_eq!(
        again.verdict.to_string(),
        simulation.replay_process(&again.schedule, missing_fence).unwrap().verdict.to_string()
    );
}

/// What is not given back, and a call that is refused, are named by the program's lines too: the ledger and the checks of
/// arguments are the API's own.
#[test]
fn leaks_and_errors_name_the_lines_of_the_program() {
    let leaks = run(|process| {
        let python = Python::init(process)?;
        let kept = python.next().alloc::<u8>(4)?;
        let error = python.next().host().p(kept.at(0), 1, 2).unwrap_err();
        assert_eq!(error.at(), line(3));
        python.finalize()
    });
    assert!(matches!(leaks.verdict.kind, VerdictKind::Leak { .. }), "{}", leaks.verdict);
    let report = leaks.verdict.to_string();
    assert!(report.contains("made at program.py:2") && !report.contains(".rs"), "{report}");
}

/// A call that names no place stands where the binding's code is.
#[test]
fn without_a_place_a_call_stands_in_rust() {
    let run = run(|process| {
        let pe = placed(process.init(InitMethod::Launcher)?);
        pe.host().barrier_all()?;
        pe.finalize()
    });
    assert!(run.trace.unwrap().iter().all(|event| event.at.file().ends_with("foreign.rs")));
}
