//! Plain stores to another PE's memory, as over NVLink, with no call of the library in between.
//!
//! The tutorial's `get_peer_array` cell. There, a kernel stores to the neighbour and a barrier on the *node* team
//! follows, so the ring here runs within the node. Where loads and stores do not reach the neighbour, the program sends the same
//! value by `p`, which works everywhere.
//!
//! To see it break: take the barrier away. A store is one-sided: other PEs are sure to see it only when a quiet, a sync or a
//! barrier has completed it.

use std::process::ExitCode;

use onesided::{Backend, Pe, Predefined, Result, expect_eq};
use onesided_harness::Program;

struct PeerStore;

impl Program for PeerStore {
    const NAME: &'static str = "peer";
    const ABOUT: &'static str = "Each PE stores its number in the next PE's memory directly.";
    const CHECKS: &'static str = "it holds the number of the PE before it on the node";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let me = pe.my_pe();
        let node = pe.team(Predefined::Node).expect("every PE is on a node");
        let (rank, size) = (node.my_pe(), node.n_pes());
        // Point-to-point calls want world ranks, whatever the team.
        let next = node.members().get((rank + 1) % size);
        let previous = node.members().get((rank + size - 1) % size);

        let array = pe.alloc::<i32>(1)?;
        let how = match pe.peer(&array, next)? {
            Some(peer) => {
                peer.write(&[me as i32])?;
                "stored to"
            }
            None => {
                pe.host().p(&array, me as i32, next)?;
                "put to (stores do not reach it)"
            }
        };
        pe.host().barrier(node)?; // completes the store, and waits for the one to me

        let found = pe.read(&array)?[0];
        expect_eq(found, previous as i32, "the number that the previous PE of the node left")?;
        pe.free(array)?;
        Ok(format!("PE {me} {how} PE {next}, and found {found} in its own array"))
    }
}

fn main() -> ExitCode {
    onesided_harness::main(PeerStore)
}
