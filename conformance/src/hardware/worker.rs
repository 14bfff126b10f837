//! A PE of a job that the suite started.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use onesided::{Backend, Pe, ReduceOp, Result, SymmetricBuf};
use onesided_harness::hardware::pe::{Lost, guarded, init, lost, not_started, ready};
use onesided_harness::hardware::protocol::{Message, Missing};
use onesided_nvshmem::Nvshmem;

use crate::case::{Case, Seen};

/// Runs cases on the hardware backend: the whole life of a PE.
pub(crate) fn main(names: &[String], runs: u64) -> ExitCode {
    let say = |message: Message| message.send();
    let all = crate::suite::cases::<Nvshmem>();
    let cases: Vec<&Case<Nvshmem>> =
        names.iter().filter_map(|name| all.iter().find(|case| case.name == *name)).collect();
    let done = init().map_err(|error| not_started(&error, &say)).and_then(|pe| {
        run(&pe, &cases, runs, &say)?;
        pe.finalize().map_err(|error| lost(&error, &say))
    });
    match done {
        Ok(()) => {
            say(Message::Finalized);
            ExitCode::SUCCESS
        }
        // Without returning: a destructor might wait for PEs that are gone.
        Err(Lost(status)) => std::process::exit(i32::from(status)),
    }
}

/// Runs each case so many times, and meets the other PEs after each run. Skips what the backend cannot do.
///
/// # Errors
/// [`Lost`], when a case failed.
pub(crate) fn run<B: Backend>(pe: &Pe<B>, cases: &[&Case<B>], runs: u64, say: &dyn Fn(Message)) -> Result<(), Lost> {
    say(ready(pe));
    let missing = Missing::of(&pe.capabilities());
    let clock = Clock::new(pe).map_err(|error| lost(&error, say))?;
    for case in cases.iter().filter(|case| case.needs.unmet(&missing).is_none()) {
        say(Message::Start { name: case.name.clone() });
        let began = Instant::now();
        for run in 1..=runs {
            let seen: Seen = guarded(|| (case.body)(pe), say)?;
            say(Message::Returned { text: seen.as_str().to_string() });
            pe.host().barrier_all().map_err(|error| lost(&error, say))?;
            if run < runs && clock.is_over(pe, began.elapsed()).map_err(|error| lost(&error, say))? {
                say(Message::Enough);
                break;
            }
        }
    }
    clock.end(pe).map_err(|error| lost(&error, say))
}

/// A case that took this long is not run again. Between two GPUs, making a team takes half a second.
const LONG: Duration = Duration::from_secs(2);

/// With this the PEs agree that a case has taken long enough. Each measures its own time, and all must make the same runs.
struct Clock {
    mine: SymmetricBuf<u32>,
    any: SymmetricBuf<u32>,
}

impl Clock {
    fn new<B: Backend>(pe: &Pe<B>) -> Result<Clock> {
        Ok(Clock { mine: pe.alloc_zeroed(1)?, any: pe.alloc_zeroed(1)? })
    }

    /// Whether it has taken long for any PE.
    fn is_over<B: Backend>(&self, pe: &Pe<B>, time: Duration) -> Result<bool> {
        pe.write(&self.mine, &[u32::from(time > LONG)])?;
        pe.host().reduce(pe.world(), &self.any, &self.mine, ReduceOp::Max)?;
        Ok(pe.read(&self.any)?[0] != 0)
    }

    fn end<B: Backend>(self, pe: &Pe<B>) -> Result<()> {
        pe.free(self.any)?;
        pe.free(self.mine)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use onesided::Error;
    use onesided_harness::hardware::protocol::{Failure, Panic};
    use onesided_sim::{Config, Sim, Simulation};

    use super::*;
    use crate::case::seen;

    /// What the PEs of a simulated job say about the cases.
    fn said(pes: usize, cases: &[&Case<Sim>], runs: u64) -> Vec<(usize, Message)> {
        let said = RefCell::new(Vec::new());
        let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
        let run = simulation.run(|pe| {
            let lost = run(pe, cases, runs, &|message| said.borrow_mut().push((pe.my_pe(), message)));
            if lost.is_err() { Err(Error::wrong_result("lost")) } else { Ok(()) }
        });
        drop(run);
        said.into_inner()
    }

    #[test]
    fn cases_run_as_often_as_asked_and_in_order() {
        let first = Case::<Sim>::new("first", 2, |pe| Ok(seen("pe", pe.my_pe())));
        let second = Case::<Sim>::new("second", 2, |_| Ok(Seen::nothing()));
        let said = said(2, &[&first, &second], 2);
        let of_pe_1: Vec<Message> = said.into_iter().filter(|(pe, _)| *pe == 1).map(|(_, message)| message).collect();
        let returned = |text: &str| Message::Returned { text: text.to_string() };
        let start = |name: &str| Message::Start { name: name.to_string() };
        assert!(matches!(&of_pe_1[0], Message::Ready(ready) if ready.library.starts_with("onesided-sim")));
        let expected =
            [start("first"), returned("pe=1"), returned("pe=1"), start("second"), returned(""), returned("")];
        assert_eq!(of_pe_1[1..], expected);
    }

    #[test]
    fn pes_agree_on_what_takes_long() {
        let run = Simulation::new(Config::pes(3)).unwrap().run(|pe| {
            let clock = Clock::new(pe)?;
            let long = LONG + Duration::from_millis(1);
            let none = clock.is_over(pe, LONG)?;
            let one = clock.is_over(pe, if pe.my_pe() == 2 { long } else { Duration::ZERO })?;
            clock.end(pe)?;
            Ok((none, one))
        });
        assert_eq!(run.unwrap().into_results().unwrap(), [(false, true); 3]);
    }

    #[test]
    fn an_error_and_a_panic_are_told_and_end_the_pe() {
        let fails = Case::<Sim>::new("fails", 1, |_| Err(Error::wrong_result("it is 1, expected 2")));
        let after = Case::<Sim>::new("after", 1, |_| Ok(Seen::nothing()));
        let last = said(1, &[&fails, &after], 2).pop().unwrap().1;
        let Message::Failed(Failure { kind, operating, text }) = last else { panic!("{last:?}") };
        assert!(kind == "wrong result" && !operating && text.contains("worker.rs:"), "{text}");

        let panics = Case::<Sim>::new("panics", 1, |pe| panic!("PE {} is lost", pe.my_pe()));
        let last = said(1, &[&panics, &after], 2).pop().unwrap().1;
        let Message::Panicked(Panic { text, at: Some(at) }) = last else { panic!("{last:?}") };
        assert!(text == "PE 0 is lost" && at.starts_with("conformance/src/hardware/worker.rs:"), "{text} at {at}");
    }
}
