//! What a step reads and writes. An exhaustive search takes two steps in one order only where neither writes what the
//! other touches. So where a write of somebody else may come before a step or after it, both outcomes must be seen: that
//! the step waits to be chosen, and that the search knows its footprint.

use std::collections::BTreeSet;

use onesided::{Element, Issue, Pe, ReduceOp, Result, SignalOp, SymmetricBuf, TeamConfig, TeamUniqueId};
use onesided_sim::{Config, Profile, Sim};

use crate::common::{results, visit_all};

/// The word that is moved, and where it goes. Both begin a block of two words.
const FROM: usize = 0;
const TO: usize = 2;

/// An operation that moves PE 0's word `FROM` to its word `TO`, with its name.
type Move = (&'static str, fn(&Pe<Sim>, &Issue<'_, Sim>, &SymmetricBuf<u64>) -> Result<()>);

/// What PE 0 does, from its host or on a stream.
const TRANSFERS: [Move; 9] = [
    ("put", |_, on, x| on.put(x.at(TO), x.at(FROM), 0)),
    ("put_nbi", |_, on, x| on.put_nbi(x.at(TO), x.at(FROM), 0)),
    ("put_signal", |_, on, x| on.put_signal(x.at(TO), x.at(FROM), x.signal(TO + 1), 1, SignalOp::Set, 0)),
    ("iput", |_, on, x| on.iput(x.slice(TO..), x.slice(FROM..), 1, 1, 1, 0)),
    ("iput of two elements", |_, on, x| on.iput(x.slice(TO..), x.slice(FROM..), 2, 3, 2, 0)),
    ("get", |_, on, x| on.get(x.at(TO), x.at(FROM), 0)),
    ("get_nbi", |_, on, x| on.get_nbi(x.at(TO), x.at(FROM), 0)),
    ("iget", |_, on, x| on.iget(x.slice(TO..), x.slice(FROM..), 1, 1, 1, 0)),
    ("iget of two elements", |_, on, x| on.iget(x.slice(TO..), x.slice(FROM..), 2, 3, 2, 0)),
];

/// What the host of PE 0 does.
const READS: [Move; 10] = [
    ("read", |pe, _, x| store(pe, x, pe.read(x.at(FROM))?[0])),
    ("read of two", |pe, _, x| store(pe, x, pe.read(x.slice(FROM..FROM + 2))?[0])),
    ("peer read", |pe, _, x| store(pe, x, pe.peer(x.at(FROM), 0)?.expect("one node").read()?[0])),
    ("peer read of two", |pe, _, x| {
        let two = pe.peer(x.slice(FROM..FROM + 2), 0)?.expect("one node");
        store(pe, x, two.read()?[0])
    }),
    ("multicast read", |pe, _, x| {
        let all = pe.multicast(pe.world(), x.at(FROM))?.expect("there is multicast");
        store(pe, x, all.read_reduce(ReduceOp::Max)?[0])
    }),
    ("g", |pe, _, x| store(pe, x, pe.host().g(x.at(FROM), 0)?)),
    ("signal_fetch", |pe, _, x| store(pe, x, pe.host().signal_fetch(x.signal(FROM))?)),
    ("atomic_fetch", |pe, _, x| store(pe, x, pe.host().atomic_fetch(x.at(FROM), 0)?)),
    ("atomic_fetch_add", |pe, _, x| store(pe, x, pe.host().atomic_fetch_add(x.at(FROM), 0, 0)?)),
    ("atomic_compare_swap", |pe, _, x| store(pe, x, pe.host().atomic_compare_swap(x.at(FROM), 0, 0, 0)?)),
];

fn store(pe: &Pe<Sim>, x: &SymmetricBuf<u64>, value: u64) -> Result<()> {
    pe.write(x.at(TO), &[value])
}

/// What both PEs enter, by their hosts or on streams. The sources of PE 1 are zero.
const COLLECTIVES: [Move; 5] = [
    ("broadcast", |pe, on, x| on.broadcast(pe.world(), x.at(TO), x.at(FROM), 0)),
    ("fcollect", |pe, on, x| on.fcollect(pe.world(), x.slice(TO..TO + 2), x.at(FROM))),
    ("alltoall", |pe, on, x| on.alltoall(pe.world(), x.slice(TO..TO + 2), x.slice(..TO))),
    ("reduce", |pe, on, x| on.reduce(pe.world(), x.at(TO), x.at(FROM), ReduceOp::Max)),
    ("reducescatter", |pe, on, x| on.reducescatter(pe.world(), x.at(TO), x.slice(..TO), ReduceOp::Max)),
];

/// What PE 0 does to its own word `TO`: it becomes 5.
const WRITES: [Move; 8] = [
    ("p", |_, on, x| on.p(x.at(TO), 5, 0)),
    ("write", |_, on, x| on.write(x.at(TO), &[5])),
    ("signal_op", |_, on, x| on.signal_op(x.signal(TO), 5, SignalOp::Set, 0)),
    ("signal of a put", |_, on, x| on.put_signal(x.at(TO + 1), x.at(FROM), x.signal(TO), 5, SignalOp::Set, 0)),
    ("peer write", |pe, _, x| pe.peer(x.at(TO), 0)?.expect("one node").write(&[5])),
    ("multicast write", |pe, _, x| pe.multicast(pe.world(), x.at(TO))?.expect("there is multicast").write(&[5])),
    ("atomic_set", |pe, _, x| pe.host().atomic_set(x.at(TO), 5, 0)),
    ("atomic_swap", |pe, _, x| pe.host().atomic_swap(x.at(TO), 5, 0).map(drop)),
];

/// What PE 0's word `TO` holds in the end, when PE 1 puts 9 to its word `race` beside an operation of PE 0 (of both PEs
/// for a `collective`). PE 0's word `FROM` holds 5 before.
fn ends(config: &Config, (_, act): Move, on_stream: bool, collective: bool, race: usize) -> BTreeSet<u64> {
    let ends = results(config.clone(), |pe| {
        let x = pe.alloc_zeroed::<u64>(5)?;
        let (stream, beside) = (pe.stream()?, pe.stream()?);
        if pe.my_pe() == 0 {
            pe.write(x.at(FROM), &[5])?;
        }
        pe.host().barrier_all()?;
        match (pe.my_pe(), config.profile) {
            (1, profile) if !profile.promises().put_arrives => pe.host().p(x.at(race), 9, 0)?,
            (1, _) => pe.on(&beside).p(x.at(race), 9, 0)?, // the host's arrives before it goes on
            _ => {}
        }
        if pe.my_pe() == 0 || collective {
            let (host, on) = (pe.host(), pe.on(&stream));
            act(pe, if on_stream { &on } else { &host }, &x)?;
        }
        for stream in [&stream, &beside] {
            pe.synchronize(stream)?;
            pe.on(stream).quiet()?;
            pe.synchronize(stream)?;
        }
        pe.host().barrier_all()?;
        let end = pe.read(x.at(TO))?[0];
        pe.free(x)?;
        Ok(end)
    });
    ends.into_keys().map(|of_pes| of_pes[0]).collect()
}

/// Checks what both races lead to, from the host and, for the first `on_streams` of the operations, on a stream.
fn check(moves: &[Move], on_streams: usize, collective: bool, races: &[usize]) {
    for (profile, pieces) in Profile::ALL.into_iter().flat_map(|profile| [(profile, 4), (profile, 1)]) {
        let config = Config { profile, pieces, ..Config::pes(2) };
        for (i, &act) in moves.iter().enumerate() {
            for on_stream in if i < on_streams { &[false, true][..] } else { &[false] } {
                for &race in races {
                    let ends = ends(&config, act, *on_stream, collective, race);
                    let by = if *on_stream { "on a stream" } else { "from the host" };
                    let how = format!("{} {by} under {profile} in {pieces} pieces, word {race}", act.0);
                    assert_eq!(Vec::from_iter(ends), [5, 9], "{how}");
                }
            }
        }
    }
}

#[test]
fn transfers_read_their_sources_and_write_their_targets() {
    check(&TRANSFERS, TRANSFERS.len(), false, &[FROM, TO]);
}

#[test]
fn reads_of_the_host_see_what_was_there_before_and_what_came() {
    check(&READS, 0, false, &[FROM]);
}

#[test]
fn collectives_read_their_sources_and_write_their_targets() {
    check(&COLLECTIVES, COLLECTIVES.len(), true, &[FROM, TO]);
}

#[test]
fn what_writes_a_word_does_so_before_or_after_others() {
    check(&WRITES, 4, false, &[TO]);
}

/// A blocking put of elements of any size reads its source when it is chosen, not when it is called.
#[test]
fn elements_of_every_size_are_read_before_or_after_they_are_overwritten() {
    fn arrives<T: Element + Ord>(old: T, new: T) -> Vec<T> {
        let arrived = results(Config::pes(2), |pe| {
            let x = pe.alloc_zeroed::<T>(2)?;
            pe.write(x.at(0), &[old])?;
            pe.host().barrier_all()?;
            match pe.my_pe() {
                0 => pe.host().put(x.at(1), x.at(0), 1)?,
                _ => pe.host().p(x.at(0), new, 0)?,
            }
            pe.host().barrier_all()?;
            let end = pe.read(x.at(1))?[0];
            pe.free(x)?;
            Ok(end)
        });
        arrived.into_keys().map(|of_pes| of_pes[1]).collect::<BTreeSet<_>>().into_iter().collect()
    }
    assert_eq!(arrives(5u8, 9), [5, 9]);
    assert_eq!(arrives(5u16, 9), [5, 9]);
    assert_eq!(arrives(5u32, 9), [5, 9]);
    assert_eq!(arrives(5u64, 9), [5, 9]);
}

/// Under `nvlink` what two streams send to a PE arrives in the order of issue, and either stream may issue first.
#[test]
fn streams_issue_in_either_order_under_every_profile() {
    for profile in Profile::ALL {
        let config = Config { profile, ..Config::pes(2) };
        let last = results(config, |pe| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            let (a, b) = (pe.stream()?, pe.stream()?);
            if pe.my_pe() == 0 {
                pe.on(&a).signal_op(x.signal(0), 1, SignalOp::Set, 1)?;
                pe.on(&b).signal_op(x.signal(0), 2, SignalOp::Set, 1)?;
            }
            // a quiet in between would order the streams
            pe.synchronize(&a)?;
            pe.synchronize(&b)?;
            for stream in [&a, &b] {
                pe.on(stream).quiet()?;
                pe.synchronize(stream)?;
            }
            pe.host().barrier_all()?;
            let last = pe.read(&x)?[0];
            pe.free(x)?;
            Ok(last)
        });
        assert_eq!(Vec::from_iter(last.into_keys()), [[0, 1], [0, 2]], "{profile}");
    }
}

/// Two PEs compete for one place in a team that is being made. Whoever comes late waits for ever; if PE 0 comes last, the two
/// disagree.
#[test]
fn who_comes_first_decides_who_is_in_a_new_team() {
    let mut seen = BTreeSet::new();
    let program = |pe: &Pe<Sim>| {
        let config = TeamConfig { unique_id: Some(TeamUniqueId(5)), ..TeamConfig::default() };
        let team = pe.team_init(config, 2, pe.my_pe().min(1))?;
        Ok(Vec::from_iter(team.members().iter()))
    };
    visit_all(Config::pes(3), program, |run| {
        seen.insert((run.verdict.kind.outcome(), run.results[0].clone()));
    });
    let deadlock = |members| ("deadlock".to_string(), Some(members));
    let mismatch = ("collective mismatch: index".to_string(), None);
    assert_eq!(Vec::from_iter(seen), [mismatch, deadlock(vec![0, 1]), deadlock(vec![0, 2])]);
}
