//! What is in flight when memory is freed, or when the job ends.

use onesided::{Issue, Result, SignalOp, SymmetricBuf};
use onesided_sim::{Config, Sim};

use crate::common::{endings, visit_all};

/// How freeing the second of two buffers ends, on all schedules, when a stream has put something before.
fn freed_under(put: fn(&Issue<'_, Sim>, [&SymmetricBuf<u64>; 2]) -> Result<()>) -> Vec<String> {
    let endings = endings(Config::pes(2), |pe| {
        let (x, word) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
        let stream = pe.stream()?;
        if pe.my_pe() == 0 {
            put(&pe.on(&stream), [&x, &word])?;
        }
        pe.synchronize(&stream)?;
        pe.free(word)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        pe.free(x)
    });
    endings.into_keys().collect()
}

#[test]
fn memory_is_in_use_until_every_part_of_a_put_has_arrived() {
    let signalled = freed_under(|on, [x, word]| on.put_signal(x.at(0), x.at(1), word.signal(0), 1, SignalOp::Set, 1));
    assert!(signalled.contains(&"free of memory in use".to_string()), "{signalled:?}");
    let written = freed_under(|on, [x, word]| on.put(word.at(0), x.at(0), 1));
    assert!(written.contains(&"free of memory in use".to_string()), "{written:?}");
    let other = freed_under(|on, [x, _]| on.put(x.at(0), x.at(1), 1));
    assert_eq!(other, ["finished"]);
}

/// A leak is found when all PEs have finalized: nothing is in flight then, whatever was before.
#[test]
fn finalize_waits_for_what_is_in_flight() {
    for (on_stream, nbi) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut runs = 0;
        visit_all(
            Config::pes(2),
            |pe| {
                let (x, stream) = (pe.alloc_zeroed::<u64>(2)?, pe.stream()?);
                let (host, on) = (pe.host(), pe.on(&stream));
                let by = if on_stream { &on } else { &host };
                match (pe.my_pe(), nbi) {
                    (0, false) => by.put(x.at(0), x.at(1), 1),
                    (0, true) => by.put_nbi(x.at(0), x.at(1), 1),
                    _ => Ok(()),
                }
            },
            |run| {
                assert_eq!(run.verdict.kind.outcome(), "leak: buffers", "{}", run.verdict);
                assert!(run.verdict.undelivered.is_empty(), "{}", run.verdict);
                runs += 1;
            },
        );
        assert!(runs > 0);
    }
}
