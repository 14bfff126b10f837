//! What a verb says to arguments that are wrong: the call, the argument, and what would be right.

use onesided::{
    Bootstrap, Cmp, ErrorKind, InitMethod, Pe, ReduceOp, Result, SignalOp, TeamConfig, TeamUniqueId, UniqueId,
};
use onesided_sim::{Config, Sim, Simulation};

/// The call and message of an error, which must be an `InvalidArgument`.
fn text<T>(result: Result<T>) -> String {
    let error = result.err().expect("the call is refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.at().file().ends_with("refusals.rs"), "the caller's line: {error}");
    format!("{}: {}", error.call(), error.message())
}

fn refusals(pe: &Pe<Sim>) -> Result<Vec<String>> {
    let (x, y) = (pe.alloc_zeroed::<u64>(4)?, pe.alloc_zeroed::<f32>(4)?);
    let (host, world, none) = (pe.host(), pe.world(), TeamConfig::default());
    let texts = vec![
        text(pe.alloc::<u8>(0)),
        text(pe.alloc_aligned::<u8>(8, 24)),
        text(pe.read_into(&x, &mut [0; 3])),
        text(pe.read_one(x.slice(..2))),
        text(pe.write(x.at(0), &[1, 2])),
        text(pe.peer(&x, 2)),
        text(host.put(x.slice(..2), x.slice(..3), 0)),
        text(host.put(&x, &x, 7)),
        text(host.p(x.slice(..0), 1, 0)),
        text(host.iput(&x, &x, 0, 1, 2, 0)),
        text(host.iput(&x, &x, 1, 2, 3, 0)),
        text(host.iget(&x, &x, 1, usize::MAX, 2, 0)),
        text(host.iget(x.at(0), x.at(0), usize::MAX, 1, 1, 0)),
        text(host.put_signal(&x, &x, x.signal(3), 1, SignalOp::Set, 0)),
        text(host.wait_until_all(&x, Some(&[true]), Cmp::Eq, 0)),
        text(host.wait_until_all_vector(&x, None, Cmp::Eq, &[0])),
        text(host.broadcast(world, x.slice(..2), x.slice(2..), 2)),
        text(host.broadcast(world, x.slice(..2), x.slice(1..3), 0)),
        text(host.fcollect(world, &x, x.at(0))),
        text(host.alltoall(world, x.at(0), x.at(1))),
        text(host.reduce(world, y.slice(..2), y.slice(2..), ReduceOp::Xor)),
        text(host.reduce_value(world, &x, 1, ReduceOp::Sum)),
        text(pe.team_split_strided(world, 0, 1, 0, none)),
        text(pe.team_split_strided(world, 1, 1, 2, none)),
        text(pe.team_split_2d(world, 0, none, none)),
        text(pe.team_init(none, 1, 0)),
        text(pe.team_init(TeamConfig { unique_id: Some(TeamUniqueId(u64::MAX)), ..none }, 1, 0)),
        text(world.translate_pe(2, world)),
    ];
    pe.free(y)?;
    pe.free(x)?;
    Ok(texts)
}

#[test]
fn refusals_name_the_argument_and_what_is_right() {
    let run = Simulation::new(Config::pes(2)).unwrap().run(refusals).unwrap();
    let found = run.into_results().unwrap().remove(0);
    let expected = [
        "alloc: the length must be at least 1",
        "alloc_aligned: alignment 24 must be a power of two and a multiple of 8",
        "read_into: src has length 4 and into length 3; both must be equal",
        "read_one: src has length 2; pass one element, as buf.at(i) is",
        "write: dst has length 1 and values length 2; both must be equal",
        "peer: there is no PE 2; the job has PEs 0 to 1",
        "put: dst has length 2 and src length 3; both must be equal",
        "put: there is no PE 7; the job has PEs 0 to 1",
        "p: dst has length 0; pass one element, as buf.at(i) is",
        "iput: the stride of dst is 0; it must be at least 1",
        "iput: src has length 4, too short for 3 elements at stride 2",
        "iget: src has length 4, too short for 2 elements at stride 18446744073709551615",
        "iget: count 1 and stride 18446744073709551615 of dst: neither may be above 4294967295",
        "put_signal: the signal buf0+24..32 lies inside dst buf0+0..32",
        "wait_until_all: vars has length 4 and skip length 1; both must be equal",
        "wait_until_all_vector: vars has length 4 and values length 1; both must be equal",
        "broadcast: root 2 is not in the team, which has PEs 0 to 1",
        "broadcast: dst buf0+0..16 and src buf0+8..24 overlap; only reduce works in place, with both exactly the same",
        "fcollect: dst has length 4 and src length 1; dst must be 2 times as long as src (one part for each PE of the team), \
         and neither empty",
        "alltoall: length 1 does not divide into a block for each of 2 PEs",
        "reduce: f32 does not reduce with xor; only integers do",
        "reduce_value: scratch has length 4; pass one element, as buf.at(i) is",
        "team_split_strided: size 0 and stride 1 must be at least 1",
        "team_split_strided: start 1, stride 1, size 2 reach past the parent, which has PEs 0 to 1",
        "team_split_2d: xrange must be at least 1",
        "team_init: config.unique_id is missing; make one with team_unique_id",
        "team_init: config.unique_id is missing; make one with team_unique_id",
        "translate_pe: PE 2 is not in the team, which has PEs 0 to 1",
    ];
    assert_eq!(found, expected);
}

/// The name is that of the verb that was called, and the stream is looked at even where nothing is to be copied.
#[test]
fn a_foreign_stream_is_refused_by_the_verb() {
    let run = Simulation::new(Config::pes(2)).unwrap().run_process(|process| {
        let pe = process.init(InitMethod::Launcher)?;
        let stream = pe.stream()?;
        pe.finalize()?;
        let pe = process.init(InitMethod::Launcher)?;
        let x = pe.alloc_zeroed::<u64>(4)?;
        let on = pe.on(&stream);
        let texts = vec![
            text(on.write(x.at(0), &[1])),
            text(on.barrier_all()),
            text(on.wait_until_all(&x, None, Cmp::Eq, 0)),
            text(on.iput(&x, &x, 1, 1, 0, 0)),
        ];
        let same = pe.host().iput(x.at(0), x.at(0), 2, 3, 1, pe.my_pe());
        pe.free(x)?;
        pe.finalize()?;
        same.map(|()| texts)
    });
    let texts = run.unwrap().into_results().unwrap().remove(0);
    let calls: Vec<&str> = texts.iter().filter_map(|text| text.split_once(": stream belongs")).map(|of| of.0).collect();
    assert_eq!(calls, ["write", "barrier_all", "wait_until_all", "iput"], "{texts:?}");
}

#[test]
fn an_error_of_memory_names_the_call() {
    let config = Config { heap: 4096, ..Config::pes(1) };
    let run = Simulation::new(config).unwrap().run(|pe| {
        let calls = [
            pe.alloc::<u8>(1 << 20).err(),
            pe.alloc_zeroed::<u8>(1 << 20).err(),
            pe.alloc_aligned::<u8>(1 << 20, 64).err(),
        ];
        Ok(calls.map(|error| error.expect("there is no room").call()))
    });
    assert_eq!(run.unwrap().into_results().unwrap(), [["alloc", "alloc_zeroed", "alloc_aligned"]]);
}

#[test]
fn an_identifier_is_256_digits_and_nothing_else() {
    assert!("ab".repeat(128).parse::<UniqueId>().is_ok());
    for wrong in ["+0".repeat(128), "0+".repeat(128), "a".repeat(255)] {
        assert!(wrong.parse::<UniqueId>().is_err(), "{wrong}");
    }
}
