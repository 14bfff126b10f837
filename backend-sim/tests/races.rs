//! The rows of `MISUSE.md` that are data races. Each is shown in three ways: the run in order is right, exploring finds
//! the wrong outcome, and with the mistake corrected exploring finds none.

use std::collections::BTreeSet;

use onesided::{Cmp, Pe, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Sim};

use crate::common::{in_order, results};

/// Checks a race: in order `right` is seen, on all schedules `right` and `wrong`, and with the mistake corrected
/// `right` alone. What is seen is the sum of what the PEs return.
fn race(pes: usize, right: u64, wrong: u64, program: impl Fn(&Pe<Sim>, &SymmetricBuf<u64>, bool) -> Result<u64>) {
    let program = |pe: &Pe<Sim>, correct: bool| {
        let x = pe.alloc_zeroed::<u64>(4)?;
        let saw = program(pe, &x, correct)?;
        pe.host().barrier_all()?;
        let stream = pe.stream()?; // whatever streams still have in flight
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        pe.host().barrier_all()?;
        pe.free(x)?;
        Ok(saw)
    };
    let seen = |correct: bool| -> BTreeSet<u64> {
        let all = results(Config::pes(pes), |pe| program(pe, correct));
        all.into_keys().map(|returned| returned.iter().sum()).collect()
    };
    assert_eq!(in_order(Config::pes(pes), |pe| program(pe, false)).iter().sum::<u64>(), right, "in order");
    assert_eq!(seen(false), BTreeSet::from([right, wrong]), "on all schedules");
    assert_eq!(seen(true), BTreeSet::from([right]), "with the mistake corrected");
}

/// The word that these programs signal, and the words that they put.
const FLAG: usize = 3;

fn signal(pe: &Pe<Sim>, x: &SymmetricBuf<u64>, to: usize) -> Result<()> {
    pe.host().signal_op(x.signal(FLAG), 1, SignalOp::Set, to)
}

/// Waits for the signal and reads the first word.
fn wait_and_read(pe: &Pe<Sim>, x: &SymmetricBuf<u64>) -> Result<u64> {
    pe.host().signal_wait_until(x.signal(FLAG), Cmp::Eq, 1)?;
    Ok(pe.read(x.at(0))?[0])
}

#[test]
fn row_13_source_of_put_nbi_changed() {
    race(2, 1, 2, |pe, x, correct| {
        if pe.my_pe() == 0 {
            pe.write(x.at(1), &[1])?;
            pe.host().put_nbi(x.at(0), x.at(1), 1)?;
            if correct {
                pe.host().flush()?;
            }
            pe.write(x.at(1), &[2])?;
        }
        pe.host().barrier_all()?;
        Ok(if pe.my_pe() == 1 { pe.read(x.at(0))?[0] } else { 0 })
    });
}

#[test]
fn row_14_target_of_get_nbi_read() {
    race(2, 7, 0, |pe, x, correct| {
        pe.write(x.at(1), &[7])?;
        pe.host().barrier_all()?;
        if pe.my_pe() == 1 {
            return Ok(0);
        }
        pe.host().get_nbi(x.at(0), x.at(1), 1)?;
        if correct {
            pe.host().quiet()?;
        }
        Ok(pe.read(x.at(0))?[0])
    });
}

#[test]
fn row_15_data_read_without_synchronization() {
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 1 {
            return wait_and_read(pe, x);
        }
        if !correct {
            signal(pe, x, 1)?; // about nothing that follows
        }
        pe.host().p(x.at(0), 7, 1)?;
        pe.host().quiet()?;
        if correct {
            signal(pe, x, 1)?;
        }
        Ok(0)
    });
}

#[test]
fn row_16_flag_overtakes_data() {
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 1 {
            pe.host().wait_until(x.at(FLAG), Cmp::Eq, 1)?;
            return Ok(pe.read(x.at(0))?[0]);
        }
        pe.host().p(x.at(0), 7, 1)?;
        if correct {
            pe.host().fence()?;
        }
        pe.host().p(x.at(FLAG), 1, 1)?;
        Ok(0)
    });
}

#[test]
fn row_17_fence_does_not_order_different_targets() {
    race(3, 7, 0, |pe, x, correct| {
        match pe.my_pe() {
            0 => pe.host().p(x.at(0), 7, 1)?,
            1 => return Ok(0),
            _ => {
                pe.host().signal_wait_until(x.signal(FLAG), Cmp::Eq, 1)?;
                return pe.host().g(x.at(0), 1);
            }
        }
        if correct {
            pe.host().quiet()?
        } else {
            pe.host().fence()?
        }
        signal(pe, x, 2)?;
        Ok(0)
    });
}

#[test]
fn row_18_signal_covers_its_own_put_only() {
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 1 {
            return wait_and_read(pe, x);
        }
        pe.host().p(x.at(0), 7, 1)?;
        if correct {
            pe.host().fence()?;
        }
        pe.host().put_signal(x.at(1), x.at(2), x.signal(FLAG), 1, SignalOp::Set, 1)?;
        Ok(0)
    });
}

#[test]
fn row_19_sync_completes_nothing() {
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 0 {
            pe.host().p(x.at(0), 7, 1)?;
        }
        if correct {
            pe.host().barrier_all()?
        } else {
            pe.host().sync_all()?
        }
        Ok(if pe.my_pe() == 1 { pe.read(x.at(0))?[0] } else { 0 })
    });
}

#[test]
fn row_20_quiet_of_the_other_scope() {
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 1 {
            return wait_and_read(pe, x);
        }
        let stream = pe.stream()?;
        pe.on(&stream).p(x.at(0), 7, 1)?;
        if correct {
            pe.on(&stream).quiet()?
        } else {
            pe.host().quiet()?
        }
        pe.synchronize(&stream)?;
        signal(pe, x, 1)?;
        Ok(0)
    });
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 1 {
            return wait_and_read(pe, x);
        }
        let stream = pe.stream()?;
        pe.host().p(x.at(0), 7, 1)?;
        if correct {
            pe.host().quiet()?
        } else {
            pe.on(&stream).quiet()?
        }
        pe.synchronize(&stream)?;
        signal(pe, x, 1)?;
        Ok(0)
    });
}

#[test]
fn row_21_quiet_that_another_stream_took_over() {
    race(2, 7, 0, |pe, x, correct| {
        if pe.my_pe() == 1 {
            return wait_and_read(pe, x);
        }
        let (a, b) = (pe.stream()?, pe.stream()?);
        pe.on(&a).p(x.at(0), 7, 1)?;
        pe.synchronize(&a)?;
        pe.on(&b).quiet()?; // takes the put over
        pe.on(&a).quiet()?; // and leaves nothing to this one
        pe.synchronize(&a)?;
        if correct {
            pe.synchronize(&b)?;
        }
        signal(pe, x, 1)?;
        pe.synchronize(&b)?;
        Ok(0)
    });
}

#[test]
fn row_22_stream_not_synchronized() {
    race(2, 7, 0, |pe, x, correct| {
        pe.write(x.at(1), &[7])?;
        pe.host().barrier_all()?;
        if pe.my_pe() == 1 {
            return Ok(0);
        }
        let stream = pe.stream()?;
        pe.on(&stream).get(x.at(0), x.at(1), 1)?;
        if correct {
            pe.synchronize(&stream)?;
        }
        let saw = pe.read(x.at(0))?[0];
        pe.synchronize(&stream)?;
        Ok(saw)
    });
}

#[test]
fn row_30_destination_not_free_when_a_peer_enters() {
    race(2, 7, 9, |pe, x, correct| {
        let root = pe.my_pe() == 1;
        if root {
            pe.write(x.at(1), &[7])?;
            pe.host().signal_wait_until(x.signal(FLAG), Cmp::Eq, 1)?;
        } else if correct {
            pe.write(x.at(0), &[9])?;
            signal(pe, x, 1)?;
        } else {
            signal(pe, x, 1)?;
            pe.write(x.at(0), &[9])?; // the root may have entered
        }
        pe.host().broadcast(pe.world(), x.at(0), x.at(1), 1)?;
        Ok(if root { 0 } else { pe.read(x.at(0))?[0] })
    });
}
