//! Loops of a warp whose lanes vote on what some of them have polled: a lane that has come to the vote waits for those that are behind.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, prove};

const VOTES: &str = include_str!("../ptx/kernels/votes.ptx");

/// A block of so many threads runs a kernel.
fn runs<'a>(name: &'a str, threads: u32) -> impl Fn(&Pe<Sim>) -> Result<()> + 'a {
    move |pe| {
        let out = pe.alloc_zeroed::<i32>(3)?;
        let (module, stream) = (pe.module(&Source::ptx("votes.ptx", VOTES))?, pe.stream()?);
        // SAFETY: the kernel takes three elements.
        unsafe { pe.on(&stream).launch(&module.kernel(name)?, &Grid::new(1, threads), args![&out])? };
        pe.synchronize(&stream)?;
        onesided::expect_eq(pe.read(&out)?[0], 0, "what is stored if the second word is large")?;
        pe.free(out)
    }
}

#[test]
fn a_word_that_stays_set_ends_a_loop_that_votes_on_it() {
    for name in ["votes", "voters_read", "all_read", "all_keep", "pauses", "coordinates"] {
        prove(1, runs(name, 35));
        let mut simulation = Simulation::new(Config::pes(1)).unwrap();
        simulation
            .explore(Explore::random(500, 1), runs(name, 35), |run| {
                assert!(run.is_ok(), "{name}: {}", run.verdict);
                std::ops::ControlFlow::<()>::Continue(())
            })
            .unwrap();
    }
}

/// The first thread has ended before, which nobody has waited for.
#[test]
fn who_is_left_alone_in_a_warp_races_with_those_who_have_ended() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(runs("alone", 2)).unwrap();
    let said = run.verdict.to_string();
    assert!(said.contains("votes.cu:79") && said.contains("votes.cu:83"), "{said}");
    assert!(said.contains("race"), "{said}");
}
