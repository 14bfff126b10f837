//! The rows of `MISUSE.md` that no other test shows, and a check that the table is complete and true. Rows that are
//! races are in `races.rs`.

use std::marker::PhantomData;
use std::path::Path;

use onesided::backend::LiveKind;
use onesided::{
    Cmp, ErrorKind, ExternalBuf, ExternalSlice, Local, Multicast, Own, Pe, Peer, Predefined, RegisteredLocal,
    RegisteredSlice, RegisteredSymmetric, Result, SignalOp, Symmetric, SymmetricBuf, SymmetricSlice, Team, TeamConfig,
    TeamUniqueId,
};
use onesided_sim::{Config, Sim, VerdictKind};

use crate::common::{endings, in_order, verdict};

/// Whether a type has a trait, known when this file is compiled.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {{
        struct Probe<T>(PhantomData<T>);
        #[allow(dead_code, reason = "not used where the type has the trait")]
        trait Otherwise {
            const HAS: bool = false;
        }
        impl<T> Otherwise for Probe<T> {}
        #[allow(dead_code, reason = "not used where it has not")]
        impl<T: $($bound)+> Probe<T> {
            const HAS: bool = true;
        }
        let _ = Probe::<$type>(PhantomData);
        <Probe<$type>>::HAS
    }};
}

#[test]
fn types_say_what_may_be_an_operand() {
    assert!(has!(&'static SymmetricBuf<u8>: Symmetric<u8>) && has!(SymmetricSlice<'static, u8>: Symmetric<u8>));
    assert!(has!(&'static RegisteredSymmetric<u8>: Symmetric<u8>));
    assert!(has!(&'static RegisteredLocal<u8>: Local<u8>) && !has!(&'static RegisteredLocal<u8>: Symmetric<u8>));
    assert!(has!(&'static ExternalBuf<u8>: Own<u8>) && !has!(&'static ExternalBuf<u8>: Local<u8>));
    assert!(has!(RegisteredSlice<'static, u8>: Local<u8>) && !has!(RegisteredSlice<'static, u8>: Symmetric<u8>));
    assert!(has!(ExternalSlice<'static, u8>: Own<u8>) && !has!(ExternalSlice<'static, u8>: Local<u8>));
    assert!(!has!(&'static SymmetricBuf<u8>: Own<u16>), "of another type");
    assert!(!has!(Peer<'static, Sim, u8>: Own<u8>) && !has!(Multicast<'static, Sim, u8>: Own<u8>));
    assert!(!has!(&'static [u8]: Own<u8>), "private memory");
}

#[test]
fn types_say_what_is_used_once() {
    assert!(!has!(SymmetricBuf<u8>: Clone) && !has!(ExternalBuf<u8>: Clone) && !has!(Team: Clone));
    assert!(!has!(RegisteredLocal<u8>: Clone) && !has!(RegisteredSymmetric<u8>: Clone));
    assert!(!has!(Pe<Sim>: Clone) && !has!(Pe<Sim>: Send) && !has!(Pe<Sim>: Sync));
    // these take what they end, or change, by value
    let _: fn(&Pe<Sim>, SymmetricBuf<u8>) -> Result<()> = Pe::free;
    let _: fn(&Pe<Sim>, ExternalBuf<u8>) -> Result<RegisteredLocal<u8>> = Pe::register_local;
    let _: fn(&Pe<Sim>, RegisteredLocal<u8>) -> Result<ExternalBuf<u8>> = Pe::unregister_local;
    let _: fn(&Pe<Sim>, ExternalBuf<u8>) -> Result<RegisteredSymmetric<u8>> = Pe::register_symmetric;
    let _: fn(&Pe<Sim>, RegisteredSymmetric<u8>) -> Result<ExternalBuf<u8>> = Pe::unregister_symmetric;
    let _: fn(&Pe<Sim>, Team) -> Result<()> = Pe::team_destroy;
    let _: fn(Pe<Sim>) -> Result<()> = Pe::finalize;
}

#[test]
fn row_26_value_that_passed_by() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 1)?;
            pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 1)?;
        } else {
            pe.host().signal_wait_until(x.signal(0), Cmp::Eq, 1)?; // Ge would do
        }
        pe.free(x)
    };
    let found = endings(Config::pes(2), program);
    assert_eq!(Vec::from_iter(found.into_keys()), ["deadlock", "finished"]);
}

#[test]
fn row_34_outsiders_get_no_team() {
    let members = in_order(Config::pes(3), |pe| {
        let team = pe.team_split_strided(pe.world(), 0, 2, 2, TeamConfig::default())?;
        let (member, leader) = (team.is_some(), pe.team(Predefined::GpuLeaders).is_some());
        team.map_or(Ok(()), |team| pe.team_destroy(team))?;
        Ok((member, leader))
    });
    assert_eq!(members, [(true, true), (false, true), (true, true)]);
    let shared = Config { gpus: Some(1), ..Config::pes(2) };
    assert_eq!(in_order(shared, |pe| Ok(pe.team(Predefined::GpuLeaders).is_some())), [true, false]);
}

#[test]
fn row_40_destroyed_by_one_member() {
    let verdict = verdict(2, |pe| {
        let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?.expect("a team of all");
        if pe.my_pe() == 0 { pe.team_destroy(team) } else { Ok(()) }
    });
    // it waits for nobody, so nothing hangs; the other member still holds the team
    assert_eq!(verdict.kind.outcome(), "leak: teams");
    assert!(verdict.to_string().contains("PE 1 holds team 7, made at"), "{verdict}");
}

#[test]
fn row_42_team_init_with_different_ids() {
    let verdict = verdict(2, |pe| {
        let unique_id = Some(TeamUniqueId(pe.my_pe() as u64));
        pe.team_init(TeamConfig { unique_id, ..TeamConfig::default() }, 2, pe.my_pe())
    });
    assert!(matches!(verdict.kind, VerdictKind::Deadlock), "{verdict}");
    let report = verdict.to_string();
    assert!(report.contains("new team with id 0") && report.contains("new team with id 1"), "{report}");
}

#[test]
fn row_50_every_verb_reaches_other_nodes() {
    let config = Config { nodes: 2, ..Config::pes(2) };
    let arrived = in_order(config, |pe| {
        let x = pe.alloc_zeroed::<u64>(8)?;
        let other = 1 - pe.my_pe();
        pe.write(x.slice(..2), &[3, 4])?;
        pe.host().iput(x.slice(2..5), x.slice(..2), 2, 1, 2, other)?;
        pe.host().p(x.at(5), 5, other)?;
        pe.host().barrier_all()?;
        pe.host().iget(x.slice(6..8), x.slice(2..5), 1, 2, 2, other)?;
        let fetched = pe.host().g(x.at(5), other)?;
        let saw = (pe.read(x.slice(2..))?, fetched);
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(arrived, vec![(vec![3, 0, 4, 5, 3, 4], 5); 2]);
}

#[test]
fn row_53_wait_before_signal_on_one_stream() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        let stream = pe.stream()?;
        pe.on(&stream).signal_wait_until(x.signal(0), Cmp::Eq, 1)?;
        pe.on(&stream).signal_op(x.signal(0), 1, SignalOp::Set, pe.my_pe())?;
        pe.synchronize(&stream)?;
        pe.free(x)
    };
    let verdict = verdict(1, program);
    assert!(verdict.to_string().contains("PE 0 stream 0: in signal_wait_until at"), "{verdict}");
    assert_eq!(Vec::from_iter(endings(Config::pes(2), program).into_keys()), ["deadlock"]);
}

#[test]
fn row_56_dropped_on_one_pe() {
    let dropped = |by: fn(usize) -> bool| {
        let verdict = verdict(2, |pe| {
            let x = pe.alloc::<u8>(1)?;
            if by(pe.my_pe()) {
                drop(x);
                return Ok(());
            }
            pe.free(x)
        });
        verdict.kind.outcome()
    };
    assert_eq!(dropped(|pe| pe == 1), "collective mismatch: call");
    assert_eq!(dropped(|_| true), "leak: buffers");
    assert_eq!(dropped(|_| false), "finished");
}

#[test]
fn row_57_leftovers_are_listed_in_allocation_order() {
    let verdict = verdict(2, |pe| {
        let (a, b, c) = (pe.alloc::<u8>(1)?, pe.alloc::<u8>(2)?, pe.alloc::<u8>(3)?);
        let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?;
        let d = pe.alloc::<u8>(4)?;
        pe.free(b)?;
        // dropped in another order on each PE
        if pe.my_pe() == 0 {
            drop((a, c, d, team))
        } else {
            drop((d, team, c, a))
        }
        Ok(())
    });
    let VerdictKind::Leak { leaks } = verdict.kind else { panic!("{verdict}") };
    let of =
        |pe: usize| -> Vec<LiveKind> { leaks.iter().filter(|leak| leak.0 == pe).map(|leak| leak.1.what).collect() };
    assert_eq!(of(0), of(1));
    let sizes: Vec<usize> = leaks.iter().filter(|leak| leak.0 == 0).map(|leak| leak.1.bytes).collect();
    assert_eq!(sizes, [1, 3, 0, 4]);
}

/// A row of the table: number, misuse, diagnosis, tests.
struct Row<'a> {
    number: usize,
    diagnosis: &'a str,
    tests: Vec<&'a str>,
}

fn rows(table: &str) -> Vec<Row<'_>> {
    let lines = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [number, misuse, diagnosis, tests] = cells[..] else { panic!("not four cells: {line}") };
            assert!(!misuse.is_empty() && !diagnosis.is_empty() && !tests.is_empty(), "an empty cell: {line}");
            let number = number.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            let tests = tests.split(", ").filter(|&test| test != "none").map(|test| test.trim_matches('`')).collect();
            Row { number, diagnosis, tests }
        })
        .collect()
}

/// Checks that `path::name` is a test, a case of the suite, or an item with a `compile_fail` example.
fn check_exists(test: &str) {
    let (path, name) = test.split_once("::").unwrap_or_else(|| panic!("{test} is not path::name"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let source = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = source.lines().collect();
    let starts =
        |line: &str, with: &str| line.trim_start().strip_prefix(with).is_some_and(|rest| !rest.starts_with(is_name));
    let is_item =
        |line: &str| ["struct", "trait", "type"].iter().any(|kind| starts(line, &format!("pub {kind} {name}")));
    if let Some(item) = lines.iter().position(|line| is_item(line)) {
        let comment = lines[..item].iter().rev().take_while(|line| !line.is_empty());
        assert!(comment.into_iter().any(|line| line.contains("compile_fail")), "{test} has no compile_fail example");
        return;
    }
    let function = lines.iter().position(|line| starts(line, &format!("fn {name}")));
    let function = function.unwrap_or_else(|| panic!("there is no {test}"));
    let is_case = path.starts_with("conformance/src/suite/");
    let is_test = lines[..function].iter().rev().take(3).any(|line| line.trim() == "#[test]");
    assert!(is_case || is_test, "{test} is not run by anybody");
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[test]
fn the_table_has_every_row_and_names_tests_that_exist() {
    let table = include_str!("../MISUSE.md");
    let rows = rows(table);
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), Vec::from_iter(1..=68));
    for Row { number, diagnosis, tests } in &rows {
        assert!(!tests.is_empty() || diagnosis.starts_with("not expressible"), "row {number} has no test");
        tests.iter().for_each(|test| check_exists(test));
    }
    // and the tests of rows are named in their rows
    for (file, source) in [("misuse", include_str!("misuse.rs")), ("races", include_str!("races.rs"))] {
        let names =
            source.lines().filter_map(|line| line.strip_prefix("fn row_")?.split_once('(')).map(|(name, _)| name);
        for name in names {
            let (number, _) = name.split_once('_').expect("row_N_what");
            let row = rows.iter().find(|row| row.number.to_string() == number).expect("a row of this number");
            let test = format!("backend-sim/tests/{file}.rs::row_{name}");
            assert!(row.tests.contains(&test.as_str()), "row {number} does not name {test}");
        }
    }
}

/// A put or get of a PE to itself whose operands overlap in part. Another PE's memory is other memory; the same elements stay.
#[test]
fn row_60_a_transfer_to_oneself_that_overlaps() {
    in_order(Config::pes(2), |pe| {
        let (x, flag) = (pe.alloc_zeroed::<u32>(12)?, pe.alloc_zeroed::<u64>(1)?);
        let (me, other) = (pe.my_pe(), 1 - pe.my_pe());
        let (host, stream) = (pe.host(), pe.stream()?);
        let both = |dst: usize, src: usize, to: usize| {
            let (dst, src) = (x.slice(dst..dst + 4), x.slice(src..src + 4));
            [
                host.put(dst, src, to),
                host.put_nbi(dst, src, to),
                host.get(dst, src, to),
                host.get_nbi(dst, src, to),
                host.put_signal(dst, src, flag.signal(0), 1, SignalOp::Set, to),
                pe.on(&stream).put(dst, src, to),
            ]
        };
        for (dst, src, to, is_right) in [(0, 2, me, false), (2, 0, me, false), (0, 4, me, true), (4, 4, me, true)] {
            for done in both(dst, src, to) {
                assert_eq!(done.is_ok(), is_right, "{dst} {src}: {done:?}");
                if let Err(error) = done {
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                    assert!(error.message().ends_with("overlap, and both are of the calling PE"), "{error}");
                }
            }
            host.barrier_all()?;
        }
        let strided = |dst: usize, src: usize, strides: [usize; 2], to: usize| {
            let (dst, src) = (x.slice(dst..), x.slice(src..));
            let put = host.iput(dst, src, strides[0], strides[1], 4, to).is_ok();
            assert_eq!(put, host.iget(dst, src, strides[0], strides[1], 4, to).is_ok());
            put
        };
        // every second element, and those between them
        assert!(strided(0, 1, [2, 2], me) && strided(0, 0, [2, 2], me));
        assert!(!strided(0, 0, [2, 1], me) && !strided(1, 3, [2, 2], me) && !strided(3, 0, [1, 3], me));
        host.barrier_all()?;
        if me == 0 {
            both(0, 2, other).into_iter().collect::<Result<Vec<()>>>()?;
            assert!(strided(1, 3, [2, 2], other));
        }
        host.barrier_all()?;
        pe.synchronize(&stream)?;
        pe.free(flag)?;
        pe.free(x)
    });
}
