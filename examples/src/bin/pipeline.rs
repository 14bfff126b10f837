//! A stream of chunks from each PE to the next, through a ring of slots, with no host in the loop.
//!
//! Beyond the tutorial. Each PE has two streams that run concurrently:
//! ```text
//! producer   [wait for the slot's credit] fill the chunk, put_signal(slot, full)   ──► next PE
//! consumer   wait for full, copy the slot away, signal_op(credit)                  ──► previous PE
//! ```
//! A slot is written again only after its credit came back, and each slot has its own pair of signals. So at most one update of
//! a word is in flight, and its value is the round.
//!
//! To see it break: leave out the wait for credit (chunks get overwritten, and a wait can miss its round), the barrier
//! at the end (memory is freed under the last credits), or use one `full` signal for all slots (signals keep no order).

use std::process::ExitCode;

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_harness::{Program, clap};

/// Elements of a chunk.
const LEN: usize = 2;

/// Its options: `pipeline --chunks 9 --slots 3`.
#[derive(clap::Args)]
struct Pipeline {
    /// Chunks that each PE sends
    #[arg(long, value_name = "N", default_value_t = 5)]
    chunks: usize,
    /// Slots at the receiver: chunks that may be under way at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    slots: usize,
}

impl Program for Pipeline {
    const NAME: &'static str = "pipeline";
    const ABOUT: &'static str = "Sends chunks to the next PE through a few slots, with credits flowing back.";
    const CHECKS: &'static str = "it received all chunks of the PE before it, whole and in sequence";

    fn precondition(&self, _n_pes: usize) -> std::result::Result<(), String> {
        match self {
            Pipeline { chunks: 0, .. } | Pipeline { slots: 0, .. } => Err("it needs a chunk and a slot".to_string()),
            _ => Ok(()),
        }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let Pipeline { chunks, slots: n_slots } = *self;
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
        let outgoing = pe.alloc::<u32>(LEN)?;
        let slots = pe.alloc::<u32>(n_slots * LEN)?; // written by the previous PE
        let full = pe.alloc_zeroed::<u64>(n_slots)?; // likewise
        let credit = pe.alloc_zeroed::<u64>(n_slots)?; // written by the next PE
        let received = pe.alloc::<u32>(chunks * LEN)?;

        let (producer, consumer) = (pe.stream()?, pe.stream()?);
        for chunk in 0..chunks {
            let at = chunk % n_slots;
            let slot = slots.slice(at * LEN..(at + 1) * LEN);
            let round = (chunk / n_slots) as u64; // times that the slot was used before

            let produce = pe.on(&producer);
            if round > 0 {
                produce.signal_wait_until(credit.signal(at), Cmp::Eq, round)?;
            }
            // One chunk is enough at the source: a put on a stream ends when its source may be reused.
            produce.write(&outgoing, &content(me, chunk))?;
            produce.put_signal(slot, &outgoing, full.signal(at), round + 1, SignalOp::Set, next)?;

            let consume = pe.on(&consumer);
            consume.signal_wait_until(full.signal(at), Cmp::Eq, round + 1)?;
            consume.get(received.slice(chunk * LEN..(chunk + 1) * LEN), slot, me)?; // a copy within my memory
            consume.signal_op(credit.signal(at), round + 1, SignalOp::Set, previous)?;
        }

        // Nobody waits for the last credits, and freeing covers only what hosts issued: so a barrier behind both
        // streams completes them before the memory goes away.
        let produced = pe.event()?;
        pe.record(&produced, &producer)?;
        pe.wait_event(&produced, &consumer)?;
        pe.on(&consumer).barrier_all()?;
        pe.synchronize(&consumer)?;

        let found = pe.read(&received)?;
        let expected: Vec<u32> = (0..chunks).flat_map(|chunk| content(previous, chunk)).collect();
        expect_eq(&found, &expected, "the sequence of chunks")?;
        pe.free(received)?;
        pe.free(credit)?;
        pe.free(full)?;
        pe.free(slots)?;
        pe.free(outgoing)?;
        Ok(format!("PE {me} received {found:?} from PE {previous}"))
    }
}

/// What a PE sends as its `chunk`-th chunk: its number, then the chunk's, then the element's.
fn content(pe: usize, chunk: usize) -> [u32; LEN] {
    std::array::from_fn(|i| (100 * pe + 10 * chunk + i) as u32)
}

fn main() -> ExitCode {
    onesided_harness::main_with_options::<Pipeline>()
}
