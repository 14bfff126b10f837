//! The program, as a library, so that tests can run it.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_harness::{Program, clap};

/// PEs exchange a message with their partner: 0 with 1, 2 with 3, and so on.
#[derive(clap::Args, Clone, Debug)]
pub struct Exchange {
    /// Elements of a message
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub elements: usize,
}

impl Program for Exchange {
    const NAME: &'static str = "exchange";
    const ABOUT: &'static str = "PEs exchange a message with their partner.";
    const CHECKS: &'static str = "it received the message of its partner, whole";

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        match (n_pes % 2, self.elements) {
            (_, 0) => Err("a message has at least one element".to_string()),
            (0, _) => Ok(()),
            _ => Err("it needs an even number of PEs".to_string()),
        }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, partner) = (pe.my_pe(), pe.my_pe() ^ 1);
        let outbox = pe.alloc::<u32>(self.elements)?;
        let inbox = pe.alloc_zeroed::<u32>(self.elements)?;
        let arrived = pe.alloc_zeroed::<u64>(1)?;
        pe.write(&outbox, &vec![me as u32; self.elements])?;

        // The signal comes after the data. A put and then a signal_op would need a fence between them.
        pe.host().put_signal(&inbox, &outbox, arrived.signal(0), 1, SignalOp::Set, partner)?;
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Eq, 1)?;

        let received = pe.read(&inbox)?;
        expect_eq(&received, &vec![partner as u32; self.elements], "the message")?;
        pe.free(arrived)?;
        pe.free(inbox)?;
        pe.free(outbox)?;
        Ok(format!("PE {me} received {received:?}"))
    }
}
