//! Data and its flag in one access of a vector: right where eight bytes of a vector are accessed at once, which PTX's text does not promise.

use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Profile, Races, Sim, Simulation};

const PACKETS: &str = include_str!("../ptx/kernels/packets.ptx");

fn sends(name: &str, threads: u32) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let slots = pe.alloc_zeroed::<u32>(256)?;
        let (module, stream) = (pe.module(&Source::ptx("packets.ptx", PACKETS))?, pe.stream()?);
        // SAFETY: the kernels take four numbers for each thread.
        unsafe {
            let grid = Grid::new(1, threads).collective();
            pe.on(&stream).launch(&module.kernel(name)?, &grid, args![&slots])?
        };
        pe.synchronize(&stream)?;
        pe.free(slots)
    }
}

/// All schedules, and how many of them fail.
fn explored(config: Config, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Explored {
    let mut simulation = Simulation::new(config).unwrap();
    simulation.explore(Explore::All { limit: 20_000 }, program, |_| ControlFlow::<()>::Continue(())).unwrap()
}

fn under(profile: Profile, pes: usize) -> Config {
    Config { profile, ..Config::pes(pes) }
}

/// Where nothing is torn, a packet is waited for like a word.
#[test]
fn packets_of_eight_bytes_arrive_as_a_whole_over_nvlink() {
    for pes in 2..5 {
        for name in ["packet_of_two", "two_packets"] {
            let found = explored(under(Profile::Nvlink, pes), sends(name, 4));
            assert_eq!((found.schedules, found.findings, found.complete), (1, 0, true), "{pes} {name}: {found:?}");
            let config = Config { races: Races::Note, ..under(Profile::Nvlink, pes) };
            let found = explored(config, sends(name, 1));
            assert_eq!((found.findings, found.complete), (0, true), "{pes} {name}: {found:?}");
        }
    }
}

/// By the text, each element is by itself; and a flag says nothing of what lies beyond its word, on any GPU.
#[test]
fn a_flag_says_nothing_of_what_may_come_by_itself() {
    let text = ["packet_of_two", "two_packets"].map(|name| (Profile::Spec, name));
    for (profile, name) in text.into_iter().chain([(Profile::Nvlink, "two_packets_with_one_flag")]) {
        let found = explored(under(profile, 2), sends(name, 1));
        assert!(found.findings > 0 && found.complete, "{profile} {name}: {found:?}");
        assert!(found.schedules > found.findings, "{profile} {name}: {found:?}");
    }
}

#[test]
fn elements_that_say_for_themselves_that_they_have_come_need_no_flag() {
    for profile in Profile::ALL {
        let found = explored(under(profile, 3), sends("sentinels", 1));
        assert_eq!((found.schedules, found.findings, found.complete), (1, 0, true), "{profile}: {found:?}");
        // one by one: also where an earlier element leads back
        let found = explored(under(profile, 3), sends("sentinels_in_turn", 2));
        assert_eq!((found.schedules, found.findings, found.complete), (1, 0, true), "{profile}: {found:?}");
    }
    // what the rounds leave behind is seen
    let mut simulation = Simulation::new(under(Profile::Nvlink, 2)).unwrap();
    let found =
        simulation.explore(Explore::random(40, 1), sends("sentinels_counted", 1), |_| ControlFlow::<()>::Continue(()));
    assert!((1..40).contains(&found.unwrap().findings));
}

#[test]
fn a_packet_in_shared_memory_is_no_other() {
    let [text, nvlink] =
        [Profile::Spec, Profile::Nvlink].map(|profile| explored(under(profile, 1), sends("packet_in_shared", 2)));
    assert_eq!((nvlink.schedules, nvlink.findings, nvlink.complete), (1, 0, true), "{nvlink:?}");
    assert!(text.findings > 0 && text.complete, "{text:?}");
}

/// Both halves of a word are one step, so the steps of two threads that load and store it have as many orders as if it were one number: the loads come
/// first, in one order, or one thread comes behind the other.
#[test]
fn both_halves_are_one_step() {
    let found = explored(under(Profile::Nvlink, 1), sends("pairs", 2));
    assert_eq!((found.schedules, found.findings, found.complete), (4, 0, true), "{found:?}");
    assert!(explored(under(Profile::Spec, 1), sends("pairs", 2)).findings > 0);
    let config = Config { races: Races::Note, ..under(Profile::Nvlink, 1) };
    let mut failed = 0;
    let random = Simulation::new(config).unwrap().explore(Explore::random(300, 1), sends("pairs", 3), |run| {
        failed += usize::from(!run.is_ok());
        ControlFlow::<()>::Continue(())
    });
    assert_eq!((random.unwrap().schedules, failed), (300, 0));
}

/// Where races are no findings, each element of a plain vector is a step.
#[test]
fn plain_vectors_are_torn_everywhere() {
    let [text, nvlink] = [Profile::Spec, Profile::Nvlink].map(|profile| {
        let found = explored(Config { races: Races::Note, ..under(profile, 1) }, sends("plain_pair", 2));
        assert!(found.complete && found.findings > 0, "{profile}: {found:?}");
        (found.schedules, found.findings)
    });
    assert_eq!(text, nvlink);
}
