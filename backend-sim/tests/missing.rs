//! What a race lacks, in the words of its report: each is the call that repairs the program, between the lines where it belongs.

use onesided::{Backend, Cmp, Pe, ReduceOp, Result, SignalOp};
use onesided_sim::{Config, Effort, MissingEdge, Sim, Simulation, refute};

/// What the first race of the run in order lacks, with lines counted from that of `here`; and the proposal that was proved.
fn lacks(here: u32, program: fn(&Pe<Sim>) -> Result<()>) -> (String, String) {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run(program).unwrap();
    let race = run.verdict.races.first().expect("it races");
    let mut said = race.missing.to_string();
    let mut fix = simulation.fix(&run, Effort::LITTLE, program).unwrap().fix.expect("one call repairs it").to_string();
    for line in (here..here + 30).rev() {
        let place = format!("{}:{line}", file!());
        (said, fix) =
            (said.replace(&place, &format!("+{}", line - here)), fix.replace(&place, &format!("+{}", line - here)));
    }
    (said, fix)
}

fn text(said: &str, fix: &str) -> (String, String) {
    (said.to_string(), format!("{fix}: proved; nothing weaker is enough"))
}

/// The flag is a plain put, which ends the wait.
#[test]
fn a_fence_between_data_and_the_put_that_is_waited_for() {
    let found = lacks(line!(), |pe| {
        let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        if pe.my_pe() == 0 {
            pe.host().p(&data, 7, 1)?; // + 3
            pe.host().p(&flag, 1, 1)?;
        } else {
            pe.host().wait_until(&flag, Cmp::Eq, 1)?;
            pe.read_one(&data)?;
        }
        pe.free(flag)?;
        pe.free(data)
    });
    assert_eq!(found, text("a fence between +3 and +4", "insert `fence` after +3"));
}

/// The host tells the other PE of what its stream has not done yet.
#[test]
fn a_stream_is_synchronized_before_the_host_tells_of_its_work() {
    let found = lacks(line!(), |pe| {
        let (slot, out) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?);
        let (empty, stream) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?);
        if pe.my_pe() == 0 {
            pe.host().signal_wait_until(empty.signal(0), Cmp::Ge, 1)?;
            pe.host().p(&slot, 2, 1)?;
        } else {
            pe.on(&stream).get(&out, &slot, 1)?; // + 7
            pe.host().signal_op(empty.signal(0), 1, SignalOp::Set, 0)?;
        }
        pe.synchronize(&stream)?;
        pe.free(empty)?;
        pe.free(out)?;
        pe.free(slot)
    });
    assert_eq!(found, text("synchronizing the stream after +7 and before +8", "insert `synchronize` after +7"));
}

/// A wait on a stream, and the host reads: before the data has come, or behind the end of the wait.
fn waits_on_a_stream<const SENDER: usize>(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let stream = pe.stream()?;
    if pe.my_pe() == SENDER {
        pe.host().put_signal(&data, &data, flag.signal(0), 1, SignalOp::Set, 1 - SENDER)?;
    } else {
        pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // + 6
        pe.read_one(&data)?;
    }
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(data)
}
const WAITS: u32 = line!() - 13;

#[test]
fn a_stream_that_waits_is_synchronized_before_the_host_reads() {
    let expected = text("synchronizing the stream after +6 and before +7", "insert `synchronize` after +6");
    assert_eq!(lacks(WAITS, waits_on_a_stream::<0>), expected);
    assert_eq!(lacks(WAITS, waits_on_a_stream::<1>), expected);
}

/// The host reads what a stream has not brought yet: the stream's call comes first, and the read behind it.
#[test]
fn the_line_of_the_stream_comes_before_that_of_the_host() {
    let found = lacks(line!(), |pe| {
        let (sum, part) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
        let stream = pe.stream()?;
        pe.on(&stream).reduce(pe.world(), &sum, &part, ReduceOp::Sum)?; // + 3
        pe.read_one(&sum)?;
        pe.synchronize(&stream)?;
        pe.free(part)?;
        pe.free(sum)
    });
    assert_eq!(found, text("synchronizing the stream after +3 and before +4", "insert `synchronize` after +3"));
}

/// A second round writes what the reader of the first may not have read yet: the edge leads from the read to the next call.
#[test]
fn an_answer_of_the_reader_before_a_put_is_made_again() {
    let found = lacks(line!(), |pe| {
        let edge = pe.alloc_zeroed::<i32>(1)?;
        for round in 1..3 {
            if pe.my_pe() == 0 {
                pe.host().p(&edge, round, 1)?; // + 4
            }
            pe.host().barrier_all()?;
            pe.read_one(&edge)?; // + 7
        }
        pe.free(edge)
    });
    let said = "an answer behind +7, for which the writer waits before it calls +4 again: a signal, or a barrier";
    let fix = "insert `barrier_all` after +7: proved; `sync_all` in place of `barrier_all` is enough";
    assert_eq!(found, (said.to_string(), fix.to_string()));
}

/// A signal is enough to know of the earlier round. In the first round, nothing has been written yet: there it is the reader who must wait.
#[test]
fn only_what_the_reader_knows_of_makes_it_another_round() {
    let missing = |rounds: u64, waits: bool| {
        let run = Simulation::new(Config::pes(2)).unwrap().run(move |pe| {
            let (slot, full) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
            for round in 1..=rounds {
                if pe.my_pe() == 1 {
                    pe.host().put_signal(&slot, &slot, full.signal(0), round, SignalOp::Set, 0)?;
                    pe.host().fence()?;
                } else {
                    if waits {
                        pe.host().signal_wait_until(full.signal(0), Cmp::Ge, round)?;
                    }
                    pe.read_one(&slot)?;
                }
            }
            pe.free(full)?;
            pe.free(slot)
        });
        run.unwrap().verdict.races.first().map(|race| race.missing)
    };
    assert!(matches!(missing(2, true), Some(MissingEdge::Answer { .. })), "{:?}", missing(2, true));
    assert!(matches!(missing(1, false), Some(MissingEdge::Barrier { .. })), "{:?}", missing(1, false));
    assert_eq!(missing(1, true), None);
}

/// Data that comes with a signal is no flag: a poll of it needs an order, and no other call.
#[test]
fn what_comes_with_a_signal_is_not_to_be_put_otherwise() {
    let run = Simulation::new(Config::pes(2)).unwrap().run(|pe| {
        let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().put_signal(&data, &data, flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_fetch(data.signal(0))?;
        }
        pe.free(flag)?;
        pe.free(data)
    });
    let races = run.unwrap().verdict.races;
    assert!(matches!(races[0].missing, MissingEdge::Barrier { .. }), "{}", races[0]);
}

/// A signal of another PE cannot be waited for: it is fetched.
#[test]
fn a_plain_get_of_a_signal_is_to_be_a_fetch() {
    let missing = |there: bool| {
        let run = Simulation::new(Config::pes(2)).unwrap().run(move |pe| {
            let flag = pe.alloc_zeroed::<u64>(1)?;
            match pe.my_pe() {
                0 => pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?,
                _ if there => drop(pe.read_one(&flag)?),
                _ => {}
            }
            if pe.my_pe() == 0 && !there {
                pe.host().g(&flag, 1)?;
            }
            pe.free(flag)
        });
        let races = run.unwrap().verdict.races;
        races[0].missing.call().0
    };
    assert_eq!([missing(true), missing(false)], ["signal_fetch", "atomic_fetch"]);
}

/// A load through the pointer would see the store.
#[test]
fn a_quiet_between_a_store_and_a_get_of_the_same_host() {
    let found = lacks(line!(), |pe| {
        let data = pe.alloc_zeroed::<i64>(1)?;
        if let (0, Some(peer)) = (pe.my_pe(), pe.peer(&data, 1)?) {
            peer.write(&[7])?; // + 3
            pe.host().g(&data, 1)?;
        }
        pe.free(data)
    });
    assert_eq!(found, text("a quiet between +3 and +4", "insert `quiet` after +3"));
}

/// Each PE reads what a collective has brought, and enters the next one by the same line: what is missing is behind the read, not before it.
#[test]
fn a_collective_in_a_loop_lacks_an_answer() {
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        for root in 0..pe.n_pes() {
            pe.host().broadcast(pe.world(), &dst, &src, root)?;
            pe.read(&dst)?;
        }
        pe.free(src)?;
        pe.free(dst)
    };
    let run = Simulation::new(Config::pes(2)).unwrap().run(program).unwrap();
    let race = &run.verdict.races[0];
    let MissingEdge::Answer { after, before } = race.missing else { panic!("{}", race.missing) };
    assert_eq!(after.line(), before.line() + 1, "{}", race.missing);
}

/// Two PEs put to a third, each once.
#[test]
fn two_calls_of_one_line_need_not_be_of_a_loop() {
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let (dst, src) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() > 0 {
            pe.host().put(&dst, &src, 0)?;
        }
        pe.host().barrier_all()?;
        pe.free(src)?;
        pe.free(dst)
    };
    let run = Simulation::new(Config::pes(3)).unwrap().run(program).unwrap();
    let said = run.verdict.races[0].missing.to_string();
    assert!(said.contains("between the call of one PE at") && said.contains("other memory"), "{said}");
}

/// A get of the same scope is ordered behind a put by a quiet only, also where a signal to that PE comes between.
#[test]
fn a_fence_does_not_order_what_its_own_pe_fetches() {
    let found = lacks(line!(), |pe| {
        let (x, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().p(&x, 5, 1)?; // + 3
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
            pe.host().g(&x, 1)?; // + 5
        }
        pe.free(flag)?;
        pe.free(x)
    });
    assert_eq!(found, text("a quiet between +3 and +5", "insert `quiet` after +3"));
}

/// PE 0 counts where the data go, and tells another PE: who counts there tells that one nothing.
#[test]
fn the_signal_that_the_reader_waits_for_is_what_tells_it() {
    let run = refute(3, |pe: &Pe<Sim>| {
        let (x, count) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        let flag = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().p(&x, 5, 2)?;
            pe.host().atomic_inc(&count, 2)?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?; // tells
        } else if pe.my_pe() == 1 {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.host().g(&x, 2)?;
        }
        pe.free(flag)?;
        pe.free(count)?;
        pe.free(x)
    });
    let tells =
        include_str!("missing.rs").lines().position(|line| line.ends_with("// tells")).expect("a mark") as u32 + 1;
    let MissingEdge::Quiet { before, .. } = run.verdict.races[0].missing else { panic!("{}", run.verdict) };
    assert_eq!(before.line(), tells, "{}", run.verdict);
}

/// Two calls in one line are told apart.
#[test]
#[rustfmt::skip]
fn calls_in_one_line_have_columns() {
    let run = refute(2, |pe: &Pe<Sim>| {
        let (x, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().p(&x, 5, 1)?; pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.read_one(&x)?;
        }
        pe.free(flag)?;
        pe.free(x)
    });
    let missing = run.verdict.races[0].missing.to_string();
    assert!(missing.contains(" (columns 23 and 47)"), "{missing}");
}
