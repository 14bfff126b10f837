//! What a race lacks where several pairs of PEs race by the same two calls: one thing that is right for all of them, or a thing for each.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{Config, Effort, Explore, Run, Sim, Simulation};

/// All that races lack in the schedules of a search for all and in random ones, with lines counted from that of `here`; and what was proved to repair the run
/// in order. With 3 PEs.
fn lacks_everywhere(here: u32, program: fn(&Pe<Sim>) -> Result<()>) -> (BTreeSet<String>, String) {
    let (mut simulation, mut said) = (Simulation::new(Config::pes(3)).unwrap(), BTreeSet::new());
    let near = |text: String| {
        let places = (here..here + 30).rev().map(|line| (format!("{}:{line}", file!()), format!("+{}", line - here)));
        places.fold(text, |text, (place, short)| text.replace(&place, &short))
    };
    for how in [Explore::All { limit: 1000 }, Explore::random(200, 0)] {
        let see = |run: &Run<()>| {
            said.extend(run.verdict.races.iter().map(|race| near(race.missing_in_words())));
            ControlFlow::Continue(())
        };
        simulation.explore(how, program, see).unwrap();
    }
    let run = simulation.run(program).unwrap();
    let fix = simulation.fix(&run, Effort::LITTLE, program).unwrap().fix.expect("one call repairs it");
    (said, near(fix.to_string()))
}

/// Everybody sends to everybody, itself too, and all count at each PE. A quiet behind what a PE sends itself would repair that alone.
#[test]
fn a_fence_orders_what_a_pe_sends_itself_if_it_waits_for_its_own_signal() {
    let (said, fix) = lacks_everywhere(line!(), |pe| {
        let (data, count) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(1)?);
        (0..3).try_for_each(|to| pe.host().p(data.at(pe.my_pe()), 7, to))?; // + 2
        (0..3).try_for_each(|to| pe.host().signal_op(count.signal(0), 1, SignalOp::Add, to))?;
        pe.host().signal_wait_until(count.signal(0), Cmp::Ge, 3)?;
        pe.read(&data)?;
        pe.free(count)?;
        pe.free(data)
    });
    assert_eq!(Vec::from_iter(said), ["a fence between +2 and +3"]);
    assert_eq!(fix, "insert `fence` after +2: proved; nothing weaker is enough");
}

/// Streams, and a reader that learns more between its read and the late delivery.
#[test]
fn a_fence_is_enough_whenever_the_data_comes() {
    let (said, _) = lacks_everywhere(line!(), |pe| {
        let (data, count) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(1)?);
        let (own, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
        (0..3).try_for_each(|to| pe.on(&stream).put(data.at(pe.my_pe()), &own, to))?; // + 3
        (0..3).try_for_each(|to| pe.on(&stream).signal_op(count.signal(0), 1, SignalOp::Add, to))?;
        pe.on(&stream).signal_wait_until(count.signal(0), Cmp::Ge, 3)?;
        pe.synchronize(&stream)?;
        pe.read(&data)?;
        pe.free(own)?;
        pe.free(count)?;
        pe.free(data)
    });
    assert_eq!(Vec::from_iter(said), ["a fence between +3 and +4, or one put_signal"]);
}

/// All count at PE 0, which tells the others. A fence is enough for what goes to PE 0, and a quiet there orders that, too.
#[test]
fn a_quiet_for_all_where_a_fence_is_enough_for_some() {
    let (said, fix) = lacks_everywhere(line!(), |pe| {
        let (data, words) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(2)?);
        (0..3).try_for_each(|to| pe.host().p(data.at(pe.my_pe()), 7, to))?; // + 2
        pe.host().signal_op(words.signal(0), 1, SignalOp::Add, 0)?;
        if pe.my_pe() == 0 {
            pe.host().signal_wait_until(words.signal(0), Cmp::Ge, 3)?;
            (0..3).try_for_each(|to| pe.host().signal_op(words.signal(1), 1, SignalOp::Set, to))?;
        }
        pe.host().signal_wait_until(words.signal(1), Cmp::Ge, 1)?;
        pe.read(&data)?;
        pe.free(words)?;
        pe.free(data)
    });
    assert_eq!(Vec::from_iter(said), ["a quiet between +2 and +3"]);
    assert_eq!(fix, "insert `quiet` after +2: proved; nothing weaker is enough");
}

/// The data is fetched from where the counter is: whoever has learned that the count is full knows that a fence has put the data before.
#[test]
fn a_fence_orders_what_a_third_pe_fetches() {
    let (said, fix) = lacks_everywhere(line!(), |pe| {
        let (data, words) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(2)?);
        pe.host().p(data.at(pe.my_pe()), 7, 0)?; // + 2
        pe.host().signal_op(words.signal(0), 1, SignalOp::Add, 0)?;
        if pe.my_pe() == 0 {
            pe.host().signal_wait_until(words.signal(0), Cmp::Ge, 3)?;
            (0..3).try_for_each(|to| pe.host().signal_op(words.signal(1), 1, SignalOp::Set, to))?;
        }
        pe.host().signal_wait_until(words.signal(1), Cmp::Ge, 1)?;
        (0..3).try_for_each(|from| pe.host().g(data.at(from), 0).map(drop))?;
        pe.free(words)?;
        pe.free(data)
    });
    assert_eq!(Vec::from_iter(said), ["a fence between +2 and +3"]);
    assert_eq!(fix, "insert `fence` after +2: proved; nothing weaker is enough");
}

/// The PE that counts sends to itself, too, and does not count itself: its own data needs a quiet, and that of the others a fence.
#[test]
fn what_each_of_two_pairs_of_pes_lacks_is_named() {
    let (said, fix) = lacks_everywhere(line!(), |pe| {
        let (data, count) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(1)?);
        pe.host().p(data.at(pe.my_pe()), 7, 0)?; // + 2
        if pe.my_pe() > 0 {
            pe.host().signal_op(count.signal(0), 1, SignalOp::Add, 0)?;
        } else {
            pe.host().signal_wait_until(count.signal(0), Cmp::Ge, 2)?;
            pe.read(&data)?; // + 7
        }
        pe.free(count)?;
        pe.free(data)
    });
    let [quiet, fence] = ["a quiet between +2 and +7", "a fence between +2 and +4"];
    let expected = [format!("{fence}; of other PEs: {quiet}"), format!("{quiet}; of other PEs: {fence}")];
    assert_eq!(Vec::from_iter(said), expected);
    assert_eq!(fix, "insert `quiet` after +2: proved; nothing weaker is enough");
}

/// The delivery is late, and the read was before it: the put is the first of the two all the same.
#[test]
fn a_quiet_behind_what_a_pe_sends_itself() {
    let (said, fix) = lacks_everywhere(line!(), |pe| {
        let data = pe.alloc_zeroed::<u64>(1)?;
        pe.host().p(&data, 7, pe.my_pe())?; // + 2
        pe.read_one(&data)?;
        pe.free(data)
    });
    assert_eq!(Vec::from_iter(said), ["a quiet between +2 and +3"]);
    assert_eq!(fix, "insert `quiet` after +2: proved; nothing weaker is enough");
}

/// Senders by two lines: a call behind one of them repairs one race only, so the report names both.
#[test]
fn what_the_other_of_two_races_lacks_is_named() {
    let here = line!();
    let run = Simulation::new(Config::pes(3)).unwrap().run(|pe: &Pe<Sim>| {
        let (data, count) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc_zeroed::<u64>(1)?);
        match pe.my_pe() {
            1 => {
                pe.host().p(data.at(1), 7, 0)?; // + 5
                pe.host().signal_op(count.signal(0), 1, SignalOp::Add, 0)?;
            }
            2 => {
                pe.host().p(data.at(2), 7, 0)?; // + 9
                pe.host().signal_op(count.signal(0), 1, SignalOp::Add, 0)?;
            }
            _ => {
                pe.host().signal_wait_until(count.signal(0), Cmp::Ge, 2)?;
                pe.read(&data)?;
            }
        }
        pe.free(count)?;
        pe.free(data)
    });
    let said = run.unwrap().verdict.to_string();
    let fence = |line: u32| format!("a fence between {0}:{1} and {0}:{2}", file!(), here + line, here + line + 1);
    assert!(said.contains(&format!("missing: {}\n", fence(5))), "{said}");
    assert!(said.ends_with(&format!("one more pair of calls races; missing there: {}", fence(9))), "{said}");
}
