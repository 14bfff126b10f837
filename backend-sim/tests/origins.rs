//! Where the values of a read come from: what a failed check says, and what a trace says of memory that nobody has written.

use std::collections::BTreeSet;

use crate::common::without_lines;
use onesided::{Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Event, Explore, Profile, Races, Run, Sim, Simulation, Writer};

fn recorded(config: Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Run<()> {
    let mut simulation = Simulation::new(Config { races: Races::Note, ..config }).unwrap();
    let run = simulation.run(&program).unwrap();
    simulation.reproduce(&run, &program).unwrap()
}

/// What a trace says of unwritten memory, by event.
fn unwritten(run: &Run<()>) -> Vec<String> {
    let said = |event: &Event| {
        let json = event.to_json();
        Some(format!("{}: {}", json["text"].as_str()?, json["unwritten"].as_str()?))
    };
    run.trace.iter().flatten().filter_map(said).map(without_lines).collect()
}

/// PE 0 writes four of eight words, and puts six of them to PE 1, which reads all.
fn partly_written(pe: &Pe<Sim>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(8)?, pe.alloc::<u32>(8)?);
    if pe.my_pe() == 0 {
        pe.write(src.slice(..4), &[1, 2, 3, 4])?;
        pe.host().put(dst.slice(..6), src.slice(..6), 1)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        let found = pe.read(&dst)?;
        expect_eq(&found[..], &[1, 2, 3, 4, 0, 0, 0, 0], "the array")?;
    }
    pe.free(src)?;
    pe.free(dst)
}

#[test]
fn a_failed_check_says_where_its_values_come_from() {
    let run = recorded(Config::pes(2), partly_written);
    insta::assert_snapshot!(without_lines(&run.verdict));
    insta::assert_debug_snapshot!(unwritten(&run));
}

/// In pieces too, and in every order.
#[test]
fn pieces_of_a_read_are_one_read() {
    let mut simulation = Simulation::new(Config { pieces: 2, ..Config::pes(2) }).unwrap();
    let mut failed = None;
    let explore = Explore::All { limit: 1000 };
    let explored = simulation.explore(explore, partly_written, |run| {
        failed.get_or_insert_with(|| run.without_results());
        std::ops::ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete);
    let run = simulation.reproduce(&failed.unwrap(), partly_written).unwrap();
    let [read] = &run.verdict.reads[..] else { panic!("{:?}", run.verdict.reads) };
    let parts: Vec<(usize, usize)> = read.parts.iter().map(|part| (part.span.start, part.span.len)).collect();
    assert_eq!(parts.iter().map(|(_, len)| len).sum::<usize>(), 32, "{read}");
    assert!(read.parts.iter().any(|part| part.by == onesided_sim::Writer::Allocation), "{read}");
}

/// A value that came long ago is named all the same, and so is the signal that a fetch returned.
#[test]
fn the_last_write_is_named_however_long_ago() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(3)?;
        if pe.my_pe() == 0 {
            pe.host().p(words.at(0), 5, 1)?;
            pe.host().fence()?;
            pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(words.signal(1), Cmp::Ge, 1)?;
        }
        for _ in 0..50 {
            pe.host().barrier_all()?;
            pe.write(words.at(2), &[1])?;
        }
        if pe.my_pe() == 1 {
            let (flag, data) = (pe.host().signal_fetch(words.signal(1))?, pe.read_one(words.at(0))?);
            assert_eq!((flag, data), (2, 6));
        }
        pe.free(words)
    };
    let run = recorded(Config::pes(2), program);
    insta::assert_snapshot!(without_lines(&run.verdict));
}

/// A flag in memory that was not zeroed, a get and a fetch of it: each read names it.
#[test]
fn every_read_of_unwritten_memory_is_named() {
    let program = |pe: &Pe<Sim>| {
        let (words, mine) = (pe.alloc::<u64>(4)?, pe.alloc_zeroed::<u64>(2)?);
        if pe.my_pe() == 0 {
            pe.host().g(words.at(0), 1)?;
            pe.host().get(&mine, words.slice(1..3), 1)?;
            pe.read(&mine)?;
            pe.host().atomic_set(words.at(1), 1, 1)?; // reads nothing
            pe.host().atomic_inc(words.at(2), 1)?;
            pe.host().g(words.at(2), 1)?;
            pe.host().wait_until(words.at(3), Cmp::Ne, 0)?;
            pe.write(words.at(3), &[1])?;
            pe.read(words.slice(2..))?;
        }
        pe.free(mine)?;
        pe.free(words)
    };
    let run = recorded(Config::pes(2), program);
    insta::assert_debug_snapshot!(unwritten(&run));
}

/// What nobody has written is not said of what is zeroed, external or registered.
#[test]
fn memory_that_starts_as_zeros_is_written() {
    let program = |pe: &Pe<Sim>| {
        let zeroed = pe.alloc_zeroed::<u32>(4)?;
        pe.read(&zeroed)?;
        let registered = pe.register_symmetric(pe.alloc_external::<u32>(4)?)?;
        pe.read(&registered)?;
        let external = pe.unregister_symmetric(registered)?;
        pe.read(&external)?;
        pe.free_external(external)?;
        pe.free(zeroed)
    };
    let run = recorded(Config::pes(2), program);
    assert!(run.is_ok(), "{}", run.verdict);
    assert!(unwritten(&run).is_empty(), "{:?}", unwritten(&run));
}

/// Who has written what a failed read has seen, of all failed schedules; `nothing` if that is not said.
fn writers(config: Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> BTreeSet<String> {
    let mut simulation = Simulation::new(Config { races: Races::Note, ..config }).unwrap();
    let mut failed = Vec::new();
    let explored = simulation.explore(Explore::All { limit: 10_000 }, &program, |run| {
        failed.extend((!run.is_ok()).then(|| run.without_results()));
        std::ops::ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete);
    let mut writers = BTreeSet::new();
    for run in failed {
        let run = simulation.reproduce(&run, &program).unwrap();
        let parts: Vec<_> = run.verdict.reads.iter().flat_map(|read| &read.parts).collect();
        writers.extend(parts.is_empty().then(|| "nothing".to_string()));
        writers.extend(parts.iter().map(|part| match &part.by {
            Writer::Call { call, .. } => (*call).to_string(),
            other => other.to_string(),
        }));
    }
    writers
}

/// A PE sees its own store through a pointer before that is there.
#[test]
fn an_own_store_that_is_on_its_way_is_not_what_was_there_before() {
    let program = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            let peer = pe.peer(&word, 1)?.expect("it is near");
            peer.write(&[7])?;
            expect_eq(peer.read()?[0], 8, "the word")?;
        }
        pe.host().barrier_all()?;
        pe.free(word)
    };
    assert_eq!(Vec::from_iter(writers(Config::pes(2), program)), ["nothing", "write"]);
}

/// On another path, a PE may not see yet what was written last.
#[test]
fn what_is_not_seen_on_another_path_is_not_what_was_read() {
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        match pe.my_pe() {
            1 => {
                pe.host().p(words.at(0), 5, 0)?;
                pe.host().quiet()?;
                pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 2)?;
            }
            2 => {
                pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
                expect_eq(pe.host().g(words.at(0), 0)?, 5, "the word")?;
            }
            _ => {}
        }
        pe.free(words)
    };
    let config = Config { nodes: 2, profile: Profile::MixedFabric, ..Config::pes(4) };
    assert_eq!(Vec::from_iter(writers(config, program)), ["nothing"]);
}

/// Who fetches a word, or does not find what a compare_swap expects, writes nothing.
#[test]
fn a_look_at_a_word_is_no_write() {
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let [fetched, swapped] = [pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?];
        if pe.my_pe() == 1 {
            pe.host().atomic_fetch(&fetched, 0)?;
            pe.host().atomic_compare_swap(&swapped, 7, 8, 0)?;
        }
        pe.host().barrier_all()?;
        if pe.my_pe() == 0 {
            let found = [pe.host().atomic_fetch(&fetched, 0)?, pe.host().atomic_fetch(&swapped, 0)?];
            expect_eq(&found, &[1, 1], "the words")?;
        }
        pe.free(swapped)?;
        pe.free(fetched)
    };
    let run = recorded(Config::pes(2), program);
    let by: Vec<&Writer> = run.verdict.reads.iter().flat_map(|read| &read.parts).map(|part| &part.by).collect();
    assert!(by.len() == 2 && by.iter().all(|by| matches!(by, Writer::Allocation)), "{by:?}");
}
