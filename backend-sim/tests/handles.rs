//! A handle is valid only on the `Pe` that made it. On any other it is an error that names the argument: never a look at
//! other memory, never a panic inside the simulator.

use std::cell::RefCell;

use onesided::{
    Bootstrap, Cmp, Error, ErrorKind, Event, ExternalBuf, InitMethod, Pe, ReduceOp, RegisteredLocal,
    RegisteredSymmetric, Result, SignalOp, Stream, SymmetricBuf, Team, TeamConfig, expect_eq,
};
use onesided_sim::{Config, Sim, Simulation, VerdictKind};

/// One handle of each kind, and two buffers.
struct Handles {
    dst: SymmetricBuf<u64>,
    src: SymmetricBuf<u64>,
    external: ExternalBuf<u64>,
    registered: RegisteredLocal<u64>,
    symmetric: RegisteredSymmetric<u64>,
    team: Team,
    stream: Stream<Sim>,
    event: Event<Sim>,
}

impl Handles {
    fn make(pe: &Pe<Sim>) -> Result<Handles> {
        Ok(Handles {
            dst: pe.alloc_zeroed(4 * pe.n_pes())?,
            src: pe.alloc_zeroed(4)?,
            external: pe.alloc_external(4)?,
            registered: pe.register_local(pe.alloc_external(4)?)?,
            symmetric: pe.register_symmetric(pe.alloc_external(4)?)?,
            team: pe.team_split_strided(pe.world(), 0, 1, pe.n_pes(), TeamConfig::default())?.expect("all are in it"),
            stream: pe.stream()?,
            event: pe.event()?,
        })
    }

    /// Gives everything back.
    fn end(self, pe: &Pe<Sim>) -> Result<()> {
        pe.team_destroy(self.team)?;
        pe.free_external(pe.unregister_symmetric(self.symmetric)?)?;
        pe.free_external(pe.unregister_local(self.registered)?)?;
        pe.free_external(self.external)?;
        pe.free(self.src)?;
        pe.free(self.dst)
    }
}

/// Collects the argument that each refusal names; a call that is not refused is an error.
#[derive(Default)]
struct Refused(Vec<String>);

impl Refused {
    fn note<T>(&mut self, result: Result<T>) -> Result<()> {
        let Err(error) = result else {
            return Err(Error::wrong_result(format!("call {} accepted a foreign handle", self.0.len())));
        };
        expect_eq(error.kind(), ErrorKind::InvalidArgument, "the kind")?;
        let Some((role, _)) = error.message().split_once(" belongs to another PE or to an earlier run; pass ") else {
            return Err(Error::wrong_result(format!("another refusal: {error}")));
        };
        self.0.push(format!("{} {role}", error.call()));
        Ok(())
    }
}

/// What every call that borrows says when one of its arguments is foreign and the others are mine.
fn borrowed(pe: &Pe<Sim>, mine: &Handles, theirs: &Handles) -> Result<Vec<String>> {
    let mut refused = Refused::default();
    let mut no = |result: Result<()>| refused.note(result);
    let (host, me) = (pe.host(), pe.my_pe());
    let (world, sum, set) = (pe.world(), ReduceOp::Sum, SignalOp::Set);
    let Handles { dst, src, .. } = mine;
    let part = dst.slice(..4);
    let (their, signal) = (&theirs.src, theirs.src.signal(0));

    no(pe.read(their).map(drop))?;
    no(pe.read(&theirs.external).map(drop))?;
    no(pe.read(theirs.registered.at(1)).map(drop))?;
    no(pe.read_into(&theirs.symmetric, &mut [0; 4]))?;
    no(pe.read_one(their.at(0)).map(drop))?;
    no(pe.write(their, &[1; 4]))?;
    no(pe.peer(their, me).map(drop))?;
    no(pe.multicast(world, their).map(drop))?;
    no(pe.multicast(&theirs.team, src).map(drop))?;

    for on in [&*host, &pe.on(&mine.stream)] {
        no(on.put(their, src, me))?;
        no(on.put(part, their, me))?;
        no(on.put(part, &theirs.registered, me))?;
        no(on.put_nbi(their.slice(..2), src.slice(..2), me))?;
        no(on.get(part, their, me))?;
        no(on.get_nbi(their, src, me))?;
        no(on.p(their.at(0), 1, me))?;
        no(on.iput(part, their, 1, 1, 2, me))?;
        no(on.iget(their, src, 1, 1, 2, me))?;
        no(on.write(their, &[1; 4]))?;
        no(on.put_signal(dst.at(0), their.at(0), dst.signal(pe.n_pes()), 1, set, me))?;
        no(on.put_signal(dst.at(0), src.at(0), signal, 1, set, me))?;
        no(on.put_signal_nbi(their, src, dst.signal(pe.n_pes()), 1, set, me))?;
        no(on.signal_op(signal, 1, set, me))?;
        no(on.signal_wait_until(signal, Cmp::Eq, 0))?;
        no(on.wait_until(their.at(0), Cmp::Eq, 0))?;
        no(on.wait_until_all(their, None, Cmp::Eq, 0))?;
        no(on.wait_until_all_vector(their, None, Cmp::Eq, &[0; 4]))?;
        no(on.barrier(&theirs.team))?;
        no(on.sync(&theirs.team))?;
        no(on.broadcast(&theirs.team, part, src, 0))?;
        no(on.fcollect(world, dst, their))?;
        no(on.alltoall(world, part, their))?;
        no(on.reduce(world, their, src, sum))?;
        no(on.reducescatter(world, their.at(0), dst.slice(..pe.n_pes()), sum))?;
    }
    no(host.g(their.at(0), me).map(drop))?;
    no(host.signal_fetch(signal).map(drop))?;
    no(host.signal_wait_until(signal, Cmp::Eq, 0).map(drop))?;
    no(host.atomic_fetch_add(their.at(0), 1, me).map(drop))?;

    no(pe.on(&theirs.stream).quiet())?;
    no(pe.on(&theirs.stream).put(part, src, me))?;
    no(pe.synchronize(&theirs.stream))?;
    no(pe.record(&theirs.event, &mine.stream))?;
    no(pe.record(&mine.event, &theirs.stream))?;
    no(pe.wait_event(&theirs.event, &mine.stream))?;
    no(pe.synchronize_event(&theirs.event))?;
    no(pe.team_split_strided(&theirs.team, 0, 1, 1, TeamConfig::default()).map(drop))?;
    no(pe.team_split_2d(&theirs.team, 1, TeamConfig::default(), TeamConfig::default()).map(drop))?;
    no(mine.team.translate_pe(0, &theirs.team).map(drop))?;
    Ok(refused.0)
}

/// The same for calls that consume the handle.
fn consumed(pe: &Pe<Sim>, theirs: Handles) -> Result<Vec<String>> {
    let mut refused = Refused::default();
    refused.note(pe.free(theirs.dst))?;
    refused.note(pe.free_external(theirs.external))?;
    refused.note(pe.unregister_local(theirs.registered))?;
    refused.note(pe.unregister_symmetric(theirs.symmetric))?;
    refused.note(pe.team_destroy(theirs.team))?;
    Ok(refused.0)
}

const CONSUMED: [&str; 5] =
    ["free buf", "free_external buf", "unregister_local buf", "unregister_symmetric buf", "team_destroy team"];

#[test]
fn handles_of_another_pe_are_refused() {
    let kept = RefCell::new(None);
    let run = Simulation::new(Config::pes(2)).unwrap().run(|pe| {
        let mine = Handles::make(pe)?;
        let mut named = Vec::new();
        if pe.my_pe() == 0 {
            *kept.borrow_mut() = Some(mine);
            pe.host().barrier_all()?;
            pe.host().barrier_all()?;
            kept.take().expect("PE 1 has only looked at it").end(pe)?;
        } else {
            pe.host().barrier_all()?;
            named = borrowed(pe, &mine, kept.borrow().as_ref().expect("PE 0 has left its handles"))?;
            pe.host().barrier_all()?;
            mine.end(pe)?;
        }
        Ok(named)
    });
    let named = run.unwrap().into_results().unwrap().pop().unwrap();
    let of_put = ["put dst", "put src", "put src", "put_nbi dst"];
    assert!(named.windows(4).any(|calls| calls == of_put), "{named:?}");
    for call in ["record event", "record stream", "quiet stream", "barrier team", "put_signal signal", "g src"] {
        assert!(named.iter().any(|named| named == call), "no {call} in {named:?}");
    }
}

#[test]
fn handles_of_an_earlier_simulation_are_refused() {
    let kept = RefCell::new(Vec::new());
    let run = Simulation::new(Config::pes(1)).unwrap().run(|pe| {
        let both = [Handles::make(pe)?, Handles::make(pe)?];
        kept.borrow_mut().extend(both);
        Ok(())
    });
    assert!(matches!(run.unwrap().verdict.kind, VerdictKind::Leak { .. }));
    let run = Simulation::new(Config::pes(1)).unwrap().run(|pe| {
        let mine = Handles::make(pe)?; // has the same ids as the first that were kept
        let theirs = kept.take();
        borrowed(pe, &mine, &theirs[0])?;
        for theirs in theirs {
            expect_eq(&consumed(pe, theirs)?[..], &CONSUMED.map(String::from)[..], "the refusals")?;
        }
        mine.end(pe) // nothing of mine was given back in their place
    });
    assert!(run.as_ref().unwrap().is_ok(), "{}", run.unwrap().verdict);
}

#[test]
fn handles_do_not_outlive_finalize() {
    let run = Simulation::new(Config::pes(2)).unwrap().run_process(|process| {
        let pe = process.init(InitMethod::Launcher)?;
        let (stream, event, external) = (pe.stream()?, pe.event()?, pe.alloc_external::<u64>(1)?);
        pe.finalize()?;

        let pe = process.init(InitMethod::Launcher)?;
        let mine = pe.stream()?;
        let mut refused = Refused::default();
        refused.note(pe.synchronize(&stream))?;
        refused.note(pe.on(&stream).barrier_all())?;
        refused.note(pe.wait_event(&event, &mine))?;
        refused.note(pe.free_external(external))?;
        pe.finalize()?;
        Ok(refused.0)
    });
    let run = run.unwrap();
    assert_eq!(run.verdict.kind.outcome(), "leak: buffers", "{}", run.verdict); // the external memory
    for named in run.results.into_iter().flatten() {
        assert_eq!(named, ["synchronize stream", "barrier_all stream", "wait_event event", "free_external buf"]);
    }
}

/// The world is borrowed from its `Pe`, and a program may keep one beyond its run.
#[test]
fn the_world_of_another_run_is_refused() {
    let kept = RefCell::new(Vec::new());
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let _ = simulation.run_process(|process| {
        kept.borrow_mut().push(process.init(InitMethod::Launcher)?);
        Ok(())
    });
    let run = simulation.run(|pe| {
        let kept = kept.borrow();
        let buf = pe.alloc::<u8>(1)?;
        let mut refused = Refused::default();
        refused.note(pe.host().barrier(kept[0].world()))?;
        refused.note(pe.multicast(kept[0].world(), &buf).map(drop))?;
        pe.free(buf)?;
        Ok(refused.0)
    });
    let run = run.unwrap();
    assert_eq!(run.results[0].as_deref().unwrap(), ["barrier team", "multicast team"]);
}
