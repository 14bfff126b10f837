//! Data and its flag in one access of a vector: right where eight bytes of a vector are accessed at once, which PTX's text does not promise.

use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Profile, Races, Sim, Simulation, VerdictKind};

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

const WIDE: &str = "
.version 8.3
.target sm_90
.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func (.param .b64 r) nvshmem_ptr (.param .b64 a, .param .b32 b);
.visible .entry wide(.param .u64 wide_param_0)
{
.reg .b64 %rd<7>; .reg .b32 %r<3>; .reg .pred %p<2>; .reg .b128 %rq<3>;
ld.param.u64 %rd1, [wide_param_0];
{ .param .b32 result; call.uni (result), nvshmem_my_pe, (); ld.param.b32 %r1, [result]; }
sub.s32 %r2, 1, %r1;
{ .param .b64 result; .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], %r2;
call.uni (result), nvshmem_ptr, (a, b); ld.param.b64 %rd2, [result]; }
mov.u64 %rd3, 7;
mov.u64 %rd4, 1;
mov.b128 %rq1, {%rd3, %rd4};
st.relaxed.sys.global.b128 [%rd2], %rq1;
again: ld.relaxed.sys.global.b128 %rq2, [%rd1];
mov.b128 {%rd5, %rd6}, %rq2;
setp.eq.u64 %p1, %rd6, 0;
@%p1 bra again;
st.global.u64 [%rd1+16], %rd5;
ret;
}
";

/// An access of 16 bytes is one by the text, also where it arrives later than it is made.
#[test]
fn sixteen_bytes_in_one_access_are_never_torn() {
    for profile in [Profile::Spec, Profile::Nvlink] {
        for how in [Explore::All { limit: 1_000 }, Explore::random(200, 1)] {
            let program = |pe: &Pe<Sim>| {
                let words = pe.alloc_zeroed::<u64>(4)?;
                let (module, stream) = (pe.module(&Source::ptx("wide.ptx", WIDE))?, pe.stream()?);
                // SAFETY: the kernel takes four words.
                unsafe {
                    let grid = Grid::new(1, 1).collective();
                    pe.on(&stream).launch(&module.kernel("wide")?, &grid, args![&words])?
                };
                pe.synchronize(&stream)?;
                let seen = pe.read(&words)?[2];
                pe.host().barrier_all()?;
                pe.free(words)?;
                Ok(seen)
            };
            let mut simulation = Simulation::new(under(profile, 2)).unwrap();
            let explored = simulation.explore(how, program, |run| {
                assert!(run.is_ok(), "{}", run.verdict);
                assert!(run.results.iter().all(|seen| *seen == Some(7)), "{:?}", run.results);
                ControlFlow::<()>::Continue(())
            });
            assert!(explored.unwrap().schedules > 1);
        }
    }
}

/// The end of such a wait depends on when it comes, as it loads the data with the flag. A search that took it at once said that the program is not deterministic.
#[test]
fn a_packet_that_is_overwritten_before_it_was_seen_is_waited_for_in_vain() {
    for (pes, fails) in [(2, false), (3, true), (4, true)] {
        let (mut simulation, mut failed) = (Simulation::new(under(Profile::Nvlink, pes)).unwrap(), false);
        let program = sends("packets_without_credits", 1);
        let explored = simulation.explore(Explore::All { limit: 1_000 }, program, |run| {
            let is_stuck = matches!(run.verdict.kind, VerdictKind::Deadlock);
            assert!(is_stuck || run.is_ok(), "{}", run.verdict);
            failed |= is_stuck;
            ControlFlow::<()>::Continue(())
        });
        assert!(explored.unwrap().complete);
        assert_eq!(failed, fails, "{pes} PEs");
    }
}
