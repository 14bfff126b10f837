//! Loops of a warp whose lanes vote on what some of them have polled: a lane that has come to the vote waits for those that are behind.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, prove};

const VOTES: &str = include_str!("../ptx/kernels/votes.ptx");

/// A warp polls, in its way, until another one has set a word.
fn polls<'a>(name: &'a str) -> impl Fn(&Pe<Sim>) -> Result<()> + 'a {
    move |pe| {
        let out = pe.alloc_zeroed::<i32>(1)?;
        let (module, stream) = (pe.module(&Source::ptx("votes.ptx", VOTES))?, pe.stream()?);
        // SAFETY: the kernel takes one element.
        unsafe { pe.on(&stream).launch(&module.kernel(name)?, &Grid::new(1, 35), args![&out])? };
        pe.synchronize(&stream)?;
        onesided::expect_eq(pe.read_one(&out)?, 0, "what is stored if the second word is large")?;
        pe.free(out)
    }
}

#[test]
fn a_word_that_stays_set_ends_a_loop_that_votes_on_it() {
    for name in ["votes", "voters_read", "all_read", "all_keep", "pauses"] {
        prove(1, polls(name));
        let mut simulation = Simulation::new(Config::pes(1)).unwrap();
        simulation
            .explore(Explore::random(500, 1), polls(name), |run| {
                assert!(run.is_ok(), "{name}: {}", run.verdict);
                std::ops::ControlFlow::<()>::Continue(())
            })
            .unwrap();
    }
}
