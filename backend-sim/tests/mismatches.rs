//! Members of a team that disagree: each argument in which two calls of a collective can differ is named, with every
//! member's call and line.

use onesided::{Bootstrap, InitMethod, Pe, ReduceOp, Result, TeamConfig, TeamUniqueId, UniqueId};
use onesided_sim::{Config, Entered, Sim, SimProcess, Simulation, Verdict, VerdictKind};

use crate::common::{endings, verdict, without_lines};

/// Checks that two PEs disagree in `field`, in order and on every schedule, and returns the two calls.
fn differ<T>(field: &str, program: impl Fn(&Pe<Sim>) -> Result<T>) -> [String; 2] {
    let calls = mismatch(field, verdict(2, &program));
    let every = endings(Config::pes(2), program);
    assert_eq!(Vec::from_iter(every.into_keys()), [format!("collective mismatch: {field}")]);
    calls
}

/// The calls in a mismatch of `field`, after checking PEs and lines.
fn mismatch(found: &str, verdict: Verdict) -> [String; 2] {
    let VerdictKind::Mismatch { field, calls, .. } = verdict.kind else { panic!("no mismatch: {verdict}") };
    assert_eq!(field, found);
    assert_eq!(calls.iter().map(|entered| entered.pe).collect::<Vec<_>>(), [0, 1]);
    for Entered { call, at, .. } in &calls {
        assert!(at.file().ends_with("mismatches.rs") || call == "finalize", "{call} at {at}");
    }
    [0, 1].map(|pe| calls[pe].call.clone())
}

#[test]
fn another_call() {
    let calls = differ("call", |pe| if pe.my_pe() == 0 { pe.host().barrier_all() } else { pe.host().sync_all() });
    assert_eq!(calls, ["barrier(TEAM_WORLD)", "sync(TEAM_WORLD)"]);
    let calls = differ("call", |pe| {
        if pe.my_pe() == 0 {
            return pe.host().barrier_all();
        }
        let x = pe.alloc::<u8>(64)?;
        pe.free(x)
    });
    assert_eq!(calls, ["barrier(TEAM_WORLD)", "alloc(64 bytes)"]);
    // a PE that has returned is in finalize
    let calls = differ("call", |pe| if pe.my_pe() == 0 { pe.host().barrier_all() } else { Ok(()) });
    assert_eq!(calls[1], "finalize");
}

#[test]
fn allocations() {
    let calls = differ("size", |pe| pe.alloc::<u32>(1 + pe.my_pe()));
    assert_eq!(calls, ["alloc(4 bytes)", "alloc(8 bytes)"]);
    let calls = differ("alignment", |pe| pe.alloc_aligned::<u32>(1, 64 << pe.my_pe()));
    assert_eq!(calls, ["alloc(4 bytes, aligned to 64)", "alloc(4 bytes, aligned to 128)"]);
    let calls = differ("zeroed", |pe| if pe.my_pe() == 0 { pe.alloc::<u32>(1) } else { pe.alloc_zeroed(1) });
    assert_eq!(calls, ["alloc(4 bytes)", "alloc(4 bytes, zeroed)"]);
    let calls = differ("buffer", |pe| {
        let (a, b) = (pe.alloc::<u8>(1)?, pe.alloc::<u8>(1)?);
        let (first, second) = if pe.my_pe() == 0 { (a, b) } else { (b, a) };
        pe.free(first)?;
        pe.free(second)
    });
    assert_eq!(calls, ["free(buf0)", "free(buf1)"]);
}

#[test]
fn registrations() {
    let calls = differ("size", |pe| pe.register_symmetric(pe.alloc_external::<u16>(1 + pe.my_pe())?));
    assert_eq!(calls, ["register_symmetric(2 bytes)", "register_symmetric(4 bytes)"]);
    let calls = differ("buffer", |pe| {
        let register = || pe.register_symmetric(pe.alloc_external::<u16>(1)?);
        let (a, b) = (register()?, register()?);
        pe.unregister_symmetric(if pe.my_pe() == 0 { a } else { b }).map(drop)
    });
    assert_eq!(calls, ["unregister_symmetric(buf0)", "unregister_symmetric(buf1)"]);
}

/// A collective on eight words, of which every PE says which.
fn on_words(field: &str, call: impl Fn(&Pe<Sim>, &onesided::SymmetricBuf<u64>) -> Result<()>) -> [String; 2] {
    differ(field, |pe| {
        let x = pe.alloc_zeroed::<u64>(8)?;
        call(pe, &x)?;
        pe.free(x)
    })
}

#[test]
fn operands_of_data_collectives() {
    let calls = on_words("count", |pe, x| {
        let count = 1 + pe.my_pe();
        pe.host().broadcast(pe.world(), x.slice(..count), x.slice(4..4 + count), 0)
    });
    assert_eq!(
        calls,
        [
            "broadcast<u64>(TEAM_WORLD, buf0+0..8 <- buf0+32..40, root 0)",
            "broadcast<u64>(TEAM_WORLD, buf0+0..16 <- buf0+32..48, root 0)"
        ]
    );
    on_words("count", |pe, x| {
        let count = 1 + pe.my_pe();
        pe.host().fcollect(pe.world(), x.slice(..2 * count), x.slice(4..4 + count))
    });
    on_words("root", |pe, x| pe.host().broadcast(pe.world(), x.at(0), x.at(1), pe.my_pe()));
    on_words("dst", |pe, x| pe.host().alltoall(pe.world(), x.slice(pe.my_pe()..pe.my_pe() + 2), x.slice(4..6)));
    on_words("src", |pe, x| pe.host().fcollect(pe.world(), x.slice(..2), x.at(4 + pe.my_pe())));
}

#[test]
fn reductions() {
    let op = |pe: &Pe<Sim>| [ReduceOp::Sum, ReduceOp::Max][pe.my_pe()];
    let calls = on_words("operator", |pe, x| pe.host().reduce(pe.world(), x.at(0), x.at(1), op(pe)));
    assert!(calls[0].contains("sum buf0+0..8") && calls[1].contains("max buf0+0..8"), "{calls:?}");
    on_words("operator", |pe, x| pe.host().reducescatter(pe.world(), x.at(0), x.slice(1..3), op(pe)));
    on_words("src", |pe, x| pe.host().reduce(pe.world(), x.at(0), x.at(1 + pe.my_pe()), ReduceOp::Sum));
    on_words("dst", |pe, x| pe.host().reducescatter(pe.world(), x.at(pe.my_pe()), x.slice(2..4), ReduceOp::Min));
    // an allocation is a number of bytes; its elements have a type on each PE
    let calls = differ("element type", |pe| {
        let (a, b) = (pe.alloc_zeroed::<f32>(1)?, pe.alloc_zeroed::<u32>(1)?);
        let (c, d) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<f32>(1)?);
        match pe.my_pe() {
            0 => pe.host().reduce(pe.world(), &a, &d, ReduceOp::Sum),
            _ => pe.host().reduce(pe.world(), &b, &c, ReduceOp::Sum),
        }
    });
    assert!(calls[0].contains("<f32>") && calls[1].contains("<u32>"), "{calls:?}");
}

#[test]
fn splits() {
    let split = |pe: &Pe<Sim>, [start, stride, size]: [usize; 3], contexts| {
        let config = TeamConfig { num_contexts: contexts, ..TeamConfig::default() };
        pe.team_split_strided(pe.world(), start, stride, size, config).map(drop)
    };
    let calls = differ("start", |pe| split(pe, [pe.my_pe(), 1, 1], None));
    assert_eq!(calls[1], "team_split_strided(start 1, stride 1, size 1)");
    differ("stride", |pe| split(pe, [0, 1 + pe.my_pe(), 1], None));
    differ("size", |pe| split(pe, [0, 1, 1 + pe.my_pe()], None));
    differ("config", |pe| split(pe, [0, 1, 2], Some(pe.my_pe() as u32)));

    let split_2d = |pe: &Pe<Sim>, xrange, contexts| {
        let config = TeamConfig { num_contexts: contexts, ..TeamConfig::default() };
        pe.team_split_2d(pe.world(), xrange, TeamConfig::default(), config).map(drop)
    };
    assert_eq!(differ("xrange", |pe| split_2d(pe, 1 + pe.my_pe(), None))[1], "team_split_2d(xrange 2)");
    differ("config", |pe| split_2d(pe, 1, Some(pe.my_pe() as u32)));
}

#[test]
fn team_init() {
    let init = |pe: &Pe<Sim>, n_pes, index| {
        let unique_id = Some(TeamUniqueId(99));
        pe.team_init(TeamConfig { unique_id, ..TeamConfig::default() }, n_pes, index).map(drop)
    };
    let calls = differ("index", |pe| init(pe, 2, 1));
    assert_eq!(calls, ["team_init(n_pes 2, index 1)"; 2]);
    // the third PE does not come: neither team can be complete
    let verdict = verdict(3, |pe| if pe.my_pe() == 2 { Ok(()) } else { init(pe, 2 + pe.my_pe(), 0) });
    assert_eq!(mismatch("n_pes", verdict), ["team_init(n_pes 2, index 0)", "team_init(n_pes 3, index 0)"]);
}

#[test]
fn initialization() {
    let init = |field, method: fn(&SimProcess) -> Result<InitMethod>| {
        let program = |process: &SimProcess| process.init(method(process)?)?.finalize();
        mismatch(field, Simulation::new(Config::pes(2)).unwrap().run_process(program).unwrap().verdict)
    };
    let calls = init("method", |process| Ok([InitMethod::Mpi, InitMethod::EmulatedMpi][process.rank()].clone()));
    assert_eq!(calls, ["init(mpi)", "init(emulated_mpi)"]);
    init("unique id", |process| {
        let (rank, n_pes) = (process.rank(), process.n_ranks());
        Ok(InitMethod::UniqueId { id: UniqueId([1 + rank as u8; 128]), rank, n_pes })
    });
}

/// The number counts the team's collectives; members that have not called yet are not in the list.
#[test]
fn the_report_of_a_mismatch() {
    let verdict = verdict(3, |pe| {
        let x = pe.alloc_zeroed::<f64>(8)?;
        let team = pe.team_split_strided(pe.world(), 0, 1, 3, TeamConfig::default())?.expect("a team of all");
        pe.host().barrier(&team)?;
        let op = if pe.my_pe() == 1 { ReduceOp::Prod } else { ReduceOp::Sum };
        pe.host().reduce(&team, x.slice(..4), x.slice(4..), op)?;
        pe.team_destroy(team)?;
        pe.free(x)
    });
    insta::assert_snapshot!(without_lines(verdict.kind), @r"
    collective mismatch: collective #1 of team 7 differs in operator
        PE 0 called reduce<f64>(team 7, sum buf0+0..32 <- buf0+32..64) at backend-sim/tests/mismatches.rs:_
        PE 1 called reduce<f64>(team 7, prod buf0+0..32 <- buf0+32..64) at backend-sim/tests/mismatches.rs:_
    ");
}
