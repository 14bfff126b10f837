//! Data races: which pairs of accesses are reported, in order and on every schedule, and which are not.

use crate::common::{pair, races, races_under, without_lines};
use onesided::{Cmp, Issue, Pe, Result, SignalOp, TeamConfig};
use onesided_sim::{Config, Profile, Races, Sim, Simulation};

/// PE 0 sends data and then a flag to PE 1, which waits for the flag and reads the data. `between`: what stands between the two.
fn message(between: impl Fn(&Pe<Sim>) -> Result<()>) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().p(&data, 42, 1)?;
            between(pe)?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.read(&data)?;
        }
        pe.free(flag)?;
        pe.free(data)
    }
}

#[test]
fn a_flag_needs_a_fence_behind_its_data() {
    assert_eq!(races(2, message(|_| Ok(()))), ["p | read"]);
    assert!(races(2, message(|pe| pe.host().fence())).is_empty());
    assert!(races(2, message(|pe| pe.host().quiet())).is_empty());
    let nvlink = Config { profile: Profile::Nvlink, ..Config::pes(2) };
    assert!(races_under(nvlink, message(|_| Ok(()))).is_empty(), "a put has arrived when it returns");
}

#[test]
fn a_put_signal_orders_its_own_data_and_no_other() {
    let program = |own: bool| {
        move |pe: &Pe<Sim>| {
            let (x, source, flag) =
                (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
            if pe.my_pe() == 0 {
                pe.host().put(x.at(0), source.at(0), 1)?;
                pe.host().put_signal_nbi(x.at(1), source.at(1), flag.signal(0), 1, SignalOp::Set, 1)?;
            } else {
                pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
                pe.read(x.at(usize::from(own)))?;
            }
            pe.host().barrier_all()?;
            pe.free(flag)?;
            pe.free(source)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(true)).is_empty());
    assert_eq!(races(2, program(false)), ["put | read"]);
}

#[test]
fn a_chain_of_signals_orders_what_its_links_order() {
    // 0 puts to 2, and tells 1, which tells 2: the put must be complete before
    let program = |complete: bool| {
        move |pe: &Pe<Sim>| {
            let (x, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            match pe.my_pe() {
                0 => {
                    pe.host().p(&x, 1, 2)?;
                    if complete { pe.host().quiet() } else { pe.host().fence() }?;
                    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
                }
                1 => {
                    pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, 1)?;
                    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?;
                }
                _ => {
                    pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, 1)?;
                    pe.read(&x)?;
                }
            }
            pe.free(flag)?;
            pe.free(x)
        }
    };
    assert!(races(3, program(true)).is_empty());
    assert_eq!(races(3, program(false)), ["p | read"]);
}

#[test]
fn a_barrier_orders_everything_and_a_sync_nothing_that_is_under_way() {
    let program = |meet: fn(&Pe<Sim>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            pe.host().p(&x, 1, 1 - pe.my_pe())?;
            meet(pe)?;
            pe.read(&x)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(|pe| pe.host().barrier_all())).is_empty());
    assert_eq!(races(2, program(|pe| pe.host().sync_all())), ["p | read"]);
    assert_eq!(races(2, program(|_| Ok(()))), ["p | read"]);
}

#[test]
fn sources_and_targets_of_what_is_under_way_are_not_to_be_touched() {
    let source = |complete: fn(&Pe<Sim>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let (x, source) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            if pe.my_pe() == 0 {
                pe.host().put_nbi(&x, &source, 1)?;
                complete(pe)?;
                pe.write(&source, &[1])?;
            }
            pe.host().barrier_all()?;
            pe.free(source)?;
            pe.free(x)
        }
    };
    assert_eq!(races(2, source(|_| Ok(()))), ["put_nbi | write"]);
    assert_eq!(races(2, source(|pe| pe.host().fence())), ["put_nbi | write"]);
    assert!(races(2, source(|pe| pe.host().quiet())).is_empty());
    let target = |complete: fn(&Pe<Sim>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let (x, target) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            if pe.my_pe() == 0 {
                pe.host().get_nbi(&target, &x, 1)?;
                complete(pe)?;
                pe.read(&target)?;
            }
            pe.host().barrier_all()?;
            pe.free(target)?;
            pe.free(x)
        }
    };
    assert_eq!(races(2, target(|pe| pe.host().fence())), ["get_nbi | read"]);
    assert!(races(2, target(|pe| pe.host().quiet())).is_empty());
}

#[test]
fn puts_to_one_word_need_a_fence_and_a_get_behind_a_put_needs_a_quiet() {
    let puts = |fence: bool| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            if pe.my_pe() == 0 {
                pe.host().p(&x, 1, 1)?;
                if fence {
                    pe.host().fence()?;
                }
                pe.host().p(&x, 2, 1)?;
            }
            pe.free(x)
        }
    };
    assert_eq!(races(2, puts(false)), ["p | p"]);
    assert!(races(2, puts(true)).is_empty());
    let get = |complete: fn(&Pe<Sim>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            if pe.my_pe() == 0 {
                pe.host().p(&x, 1, 1)?;
                complete(pe)?;
                pe.host().g(&x, 1)?;
            }
            pe.free(x)
        }
    };
    assert_eq!(races(2, get(|pe| pe.host().fence())), ["g | p"]);
    assert!(races(2, get(|pe| pe.host().quiet())).is_empty());
}

#[test]
fn a_word_is_updated_atomically_or_plainly() {
    let program = |act: fn(&Pe<Sim>, &onesided::SymmetricBuf<u64>) -> Result<()>| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            act(pe, &x)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(|pe, x| pe.host().atomic_add(x, 1, 0))).is_empty());
    assert!(races(2, program(|pe, x| pe.host().atomic_fetch_add(x, 1, 0).map(drop))).is_empty());
    let mixed = races(
        2,
        program(|pe, x| match pe.my_pe() {
            0 => pe.host().atomic_add(x, 1, 1),
            _ => pe.read(x).map(drop),
        }),
    );
    assert_eq!(mixed, ["atomic_add | read"]);
    let mixed = races(
        2,
        program(|pe, x| match pe.my_pe() {
            0 => pe.host().signal_op(x.signal(0), 1, SignalOp::Add, 1),
            _ => pe.host().p(x, 1, 1),
        }),
    );
    assert_eq!(mixed, ["p | signal_op"]);
}

/// The stream's quiet has claimed the put by the time of the second fence, and waits behind its stream's wait.
#[test]
fn what_a_fence_has_ordered_stays_ordered_whoever_claims_it_then() {
    let program = |first: bool| {
        move |pe: &Pe<Sim>| {
            let (x, source, go) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            let stream = pe.stream()?;
            if pe.my_pe() == 0 {
                pe.on(&stream).signal_wait_until(go.signal(0), Cmp::Eq, 1)?;
                pe.host().put_nbi(&x, &source, 1)?;
                if first {
                    pe.host().fence()?;
                }
                pe.on(&stream).quiet()?;
                pe.host().fence()?;
                pe.host().p(&x, 1, 1)?;
                pe.host().signal_op(go.signal(0), 1, SignalOp::Set, 0)?;
                pe.synchronize(&stream)?;
            }
            pe.free(go)?;
            pe.free(source)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(true)).is_empty());
    assert_eq!(races(2, program(false)), ["p | put_nbi"]);
}

#[test]
fn a_wait_may_look_at_what_a_put_delivers() {
    // the deliverer's earlier data, and one word of a put that is waited for
    let program = |fence: bool| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u64>(2)?;
            if pe.my_pe() == 0 {
                pe.host().p(x.at(0), 42, 1)?;
                if fence {
                    pe.host().fence()?;
                }
                pe.host().p(x.at(1), 1, 1)?;
            } else {
                pe.host().wait_until(x.at(1), Cmp::Eq, 1)?;
                pe.read(x.at(0))?;
            }
            pe.free(x)
        }
    };
    assert!(races(2, program(true)).is_empty());
    assert_eq!(races(2, program(false)), ["p | read"]);
}

#[test]
fn a_wait_for_one_word_of_a_put_orders_that_word_alone() {
    let program = |word: usize| {
        move |pe: &Pe<Sim>| {
            let (x, source) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(3)?);
            if pe.my_pe() == 0 {
                pe.write(&source, &[7, 8, 1])?;
                pe.host().put(&x, &source, 1)?;
            } else {
                pe.host().wait_until(x.at(2), Cmp::Eq, 1)?;
                pe.read(x.at(word))?;
            }
            pe.free(source)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(2)).is_empty());
    assert_eq!(races(2, program(0)), ["put | read"]);
}

/// PE 0 sends by `put_nbi`, then raises a flag at `flag_at`, which answers into the source. `on_stream`: by a stream.
fn answered(fence: bool, (data_to, flag_at): (usize, usize), on_stream: bool) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let (data, flag) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
        let stream = pe.stream()?;
        let (by_stream, by_host) = (pe.on(&stream), pe.host());
        let by: &Issue<'_, Sim> = if on_stream { &by_stream } else { &by_host };
        if pe.my_pe() == 0 {
            by.put_nbi(data.at(0), data.at(1), data_to)?;
            if fence {
                by.fence()?;
            }
            by.signal_op(flag.signal(0), 1, SignalOp::Set, flag_at)?;
        } else if pe.my_pe() == flag_at {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.host().p(data.at(1), 7, 0)?;
        }
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        pe.free(flag)?;
        pe.free(data)
    }
}

/// Whoever knows that a put has been delivered knows that its source has been read.
#[test]
fn a_fence_behind_a_put_orders_its_source_read_for_the_target() {
    for on_stream in [false, true] {
        assert!(races(2, answered(true, (1, 1), on_stream)).is_empty(), "on a stream: {on_stream}");
        assert_eq!(races(2, answered(false, (1, 1), on_stream)), ["p | put_nbi"], "on a stream: {on_stream}");
    }
    assert_eq!(races(3, answered(true, (1, 2), false)), ["p | put_nbi"], "a fence is about one target");
}

/// A later put behind the fence writes to the source itself.
#[test]
fn a_fence_orders_a_source_read_before_later_puts_to_the_same_pe() {
    let program = |fence: bool, to: usize| {
        move |pe: &Pe<Sim>| {
            let data = pe.alloc_zeroed::<u64>(3)?;
            if pe.my_pe() == 0 {
                pe.host().put_nbi(data.at(0), data.at(1), to)?;
                if fence {
                    pe.host().fence()?;
                }
                pe.host().put(data.at(1), data.at(2), 0)?;
            }
            pe.free(data)
        }
    };
    assert!(races(2, program(true, 0)).is_empty());
    assert_eq!(races(2, program(false, 0)), ["put | put_nbi"]);
    assert_eq!(races(2, program(true, 1)), ["put | put_nbi"], "a fence is about one target");
}

#[test]
fn streams_and_hosts_are_ordered_by_synchronizing() {
    let program = |synchronize: bool, quiet: bool| {
        move |pe: &Pe<Sim>| {
            let (x, source) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            let stream = pe.stream()?;
            pe.write(&source, &[7])?;
            pe.on(&stream).put(&x, &source, 1 - pe.my_pe())?;
            if quiet {
                pe.on(&stream).quiet()?;
            }
            if synchronize {
                pe.synchronize(&stream)?;
            }
            pe.write(&source, &[8])?;
            pe.host().barrier_all()?;
            pe.read(&x)?;
            pe.synchronize(&stream)?;
            pe.on(&stream).quiet()?;
            pe.synchronize(&stream)?;
            pe.free(source)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(true, true)).is_empty());
    assert_eq!(races(2, program(true, false)), ["put | read"]);
    assert_eq!(races(2, program(false, false)), ["put | read", "put | write"]);
}

#[test]
fn stores_through_peer_pointers_are_ordered_for_their_own_agent_and_completed_by_a_sync() {
    let program = |sync: bool| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u64>(1)?;
            if let (0, Some(peer)) = (pe.my_pe(), pe.peer(x.at(0), 1)?) {
                peer.write(&[1])?;
                peer.write(&[2])?;
                peer.read()?;
            }
            if sync {
                pe.host().sync_all()?;
            }
            if pe.my_pe() == 1 {
                pe.read(&x)?;
            }
            pe.free(x)
        }
    };
    assert!(races(2, program(true)).is_empty());
    assert_eq!(races(2, program(false)), ["read | write"]);
}

#[test]
fn what_an_agent_reads_behind_its_store_races_with_its_put_whatever_arrives_first() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        if let (0, Some(peer)) = (pe.my_pe(), pe.peer(x.at(0), 1)?) {
            peer.write(&[1])?;
            pe.host().p(&x, 2, 1)?;
            peer.read()?; // the store may arrive behind this
        }
        pe.free(x)
    };
    let in_order = Config { profile: Profile::Network, pieces: 1, ..Config::pes(2) };
    assert_eq!(races_under(in_order, program), ["p | read"]);
}

#[test]
fn a_fence_tells_what_others_of_its_scope_have_issued_and_not_what_they_are_about_to() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(2)?;
        let [a, b] = [pe.stream()?, pe.stream()?];
        if pe.my_pe() == 1 {
            pe.on(&a).fence()?;
            pe.on(&a).p(x.at(0), 1, 1)?;
            pe.write(x.at(0), &[2])?;
            pe.on(&b).get(x.at(1), x.at(0), 0)?; // comes behind the write, and may be enqueued before the fence is reached
        }
        pe.on(&a).quiet()?;
        pe.synchronize(&a)?;
        pe.synchronize(&b)?;
        pe.free(x)
    };
    assert_eq!(races(2, program), ["p | write"]);
}

#[test]
fn a_flush_is_for_the_sources_of_its_own_stream() {
    let program = |own: bool| {
        move |pe: &Pe<Sim>| {
            let (x, source) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            let [a, b] = [pe.stream()?, pe.stream()?];
            pe.on(&a).put_nbi(&x, &source, 1 - pe.my_pe())?;
            pe.on(if own { &a } else { &b }).flush()?;
            pe.synchronize(&a)?;
            pe.synchronize(&b)?;
            pe.write(&source, &[1])?;
            pe.on(&a).quiet()?;
            pe.synchronize(&a)?;
            pe.free(source)?;
            pe.free(x)
        }
    };
    assert!(races(2, program(true)).is_empty());
    assert_eq!(races(2, program(false)), ["put_nbi | write"]);
}

#[test]
fn accesses_of_different_sizes_meet_where_they_overlap() {
    let program = |byte: usize| {
        move |pe: &Pe<Sim>| {
            let x = pe.alloc_zeroed::<u8>(2048)?;
            let src = pe.alloc_zeroed::<u8>(2048)?;
            if pe.my_pe() == 0 {
                pe.host().put(x.slice(3..1500), src.slice(3..1500), 1)?;
            } else {
                pe.read(x.at(byte))?;
            }
            pe.host().barrier_all()?;
            pe.read(&x)?; // ordered, whatever its size
            pe.free(src)?;
            pe.free(x)
        }
    };
    for byte in [3, 1024, 1499] {
        assert_eq!(races(2, program(byte)), ["put | read"], "byte {byte}");
    }
    for byte in [2, 1500, 2047] {
        assert!(races(2, program(byte)).is_empty(), "byte {byte}");
    }
}

/// PE 0 looks before PE 1 has put anything, and fails: the put behind that is found all the same.
#[test]
fn a_failure_hides_no_race() {
    let run = Simulation::new(Config::pes(2)).unwrap().run(|pe| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        match pe.my_pe() {
            1 => onesided::expect_eq(pe.read(&x)?[0], 1, "the data")?,
            _ => pe.host().p(&x, 1, 1)?,
        }
        pe.free(x)
    });
    let verdict = run.unwrap().verdict;
    assert_eq!(verdict.kind.outcome(), "failed: wrong result");
    assert_eq!(verdict.races.iter().map(pair).collect::<Vec<_>>(), ["p | read"]);
}

#[test]
fn a_report_names_both_accesses_the_bytes_and_what_is_missing() {
    let run = Simulation::new(Config::pes(2)).unwrap().run(message(|_| Ok(()))).unwrap();
    assert_eq!(run.verdict.kind.outcome(), "race");
    insta::assert_snapshot!(without_lines(&run.verdict), @r"
    data race: delivery of p at backend-sim/tests/data_races.rs:_ by PE 0 and read at backend-sim/tests/data_races.rs:_ by PE 1, on buf0+0..8 of PE 1 (made at backend-sim/tests/data_races.rs:_)
        nothing orders them; missing: a fence between backend-sim/tests/data_races.rs:_ and backend-sim/tests/data_races.rs:_
        issued in steps 5 and 9
        PE 1 knows PE 0 up to signal_op at backend-sim/tests/data_races.rs:_
        PE 0 knows PE 1 up to alloc at backend-sim/tests/data_races.rs:_
    ");
}

/// Of each side, the last call that the other knows.
#[test]
fn a_race_says_what_each_side_knows_of_the_other() {
    let config = Config { races: Races::Note, ..Config::pes(2) };
    let known = |program: &dyn Fn(&Pe<Sim>) -> Result<()>| {
        let run = Simulation::new(config.clone()).unwrap().run(program).unwrap();
        let [race] = &run.verdict.races[..] else { panic!("{}", run.verdict) };
        race.known().iter().map(without_lines).collect::<Vec<_>>()
    };
    // a signal that the reader has waited for, and the barrier of the allocation
    assert_eq!(
        known(&message(|_| Ok(()))),
        [
            "PE 1 knows PE 0 up to signal_op at backend-sim/tests/data_races.rs:_",
            "PE 0 knows PE 1 up to alloc at backend-sim/tests/data_races.rs:_",
        ]
    );
    // a barrier of a team that is not the world, and what only one side has done since
    let team_barrier = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(2)?;
        let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?.unwrap();
        pe.host().barrier(&team)?;
        if pe.my_pe() == 0 {
            pe.host().p(word.at(0), 1, 1)?;
            pe.host().atomic_inc(word.at(1), 0)?;
        } else {
            pe.read(word.at(0))?;
        }
        pe.host().barrier_all()?;
        pe.team_destroy(team)?;
        pe.free(word)
    };
    assert_eq!(
        known(&team_barrier),
        [
            "PE 1 knows PE 0 up to barrier at backend-sim/tests/data_races.rs:_",
            "PE 0 knows PE 1 up to barrier at backend-sim/tests/data_races.rs:_",
        ]
    );
}

/// Transfers of a scope arrive in the order of issue under some profiles. Two streams issue in no order, unless something orders them.
#[test]
fn streams_that_nothing_orders_issue_in_no_order() {
    for profile in [Profile::Network, Profile::Nvlink] {
        for ordered in [false, true] {
            let config = Config { profile, ..Config::pes(2) };
            let run = Simulation::new(config).unwrap().run(|pe: &Pe<Sim>| {
                let (word, told) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
                let (a, b, event) = (pe.stream()?, pe.stream()?, pe.event()?);
                if pe.my_pe() == 0 {
                    pe.on(&a).p(&word, 1, 1)?;
                    if ordered {
                        pe.record(&event, &a)?;
                        pe.wait_event(&event, &b)?;
                    }
                    pe.on(&b).signal_op(told.signal(0), 1, SignalOp::Set, 1)?;
                } else {
                    pe.host().signal_wait_until(told.signal(0), Cmp::Eq, 1)?;
                    pe.read_one(&word)?;
                }
                pe.on(&a).barrier_all()?;
                pe.synchronize(&a)?;
                pe.synchronize(&b)?;
                pe.free(told)?;
                pe.free(word)
            });
            let races = run.unwrap().verdict.races;
            assert_eq!(races.len(), usize::from(!ordered), "{profile}: {races:?}");
        }
    }
}

/// A `compare_swap` that finds another value has read the word, and no more: nobody learns of it by the word, and whoever reads that plainly does
/// not race with it.
#[test]
fn a_compare_swap_that_fails_tells_nothing() {
    for (sender, cond) in [(0, 0), (1, 0), (0, 5), (1, 5)] {
        let found = races(2, |pe| {
            let (data, word) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
            if pe.my_pe() == sender {
                pe.host().p(&data, 1, 1 - sender)?;
                pe.host().quiet()?;
                pe.host().atomic_compare_swap(&word, cond, 1, 1 - sender)?;
            } else if pe.host().atomic_fetch(&word, pe.my_pe())? == 1 || cond == 5 {
                pe.read(&data)?;
            }
            pe.free(word)?;
            pe.free(data)
        });
        assert_eq!(found, if cond == 5 { vec!["p | read"] } else { vec![] }, "{sender} {cond}");
    }
    for (cond, expected) in [(0, vec!["atomic_compare_swap | read"]), (5, vec![])] {
        let found = races(2, |pe| {
            let word = pe.alloc_zeroed::<u64>(1)?;
            if pe.my_pe() == 0 {
                pe.host().atomic_compare_swap(&word, cond, 1, 1)?;
            } else {
                pe.read(&word)?;
            }
            pe.free(word)
        });
        assert_eq!(found, expected);
    }
}
