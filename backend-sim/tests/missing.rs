//! What a race lacks, in the words of its report: each is the call that repairs the program, between the lines where it belongs.

use onesided::{Backend, Cmp, Pe, ReduceOp, Result, SignalOp};
use onesided_sim::{Config, Effort, Sim, Simulation};

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
