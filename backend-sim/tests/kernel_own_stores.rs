//! What a kernel stores to its own PE's memory is there at once for the kernels of that PE only. Others come after it if a fence of the system, a
//! quiet or a sync stands behind it.

use onesided::{Cmp, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Sim, Simulation, VerdictKind};

use crate::hand_over::{launch, run};

const OWN_STORES: &str = include_str!("../ptx/kernels/own_stores.ptx");

fn source() -> Source {
    Source::ptx("own_stores.ptx", OWN_STORES)
}

/// Launches a kernel of two threads, of which `writer` writes, or of two such blocks. What each PE has seen.
fn pull(name: &str, writer: i32) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let (data, signal) = (pe.alloc_zeroed::<i32>(3)?, pe.alloc_zeroed::<u64>(1)?);
        let blocks = if name.starts_with("block") { 2 } else { 1 };
        run(pe, &source(), name, &Grid::new(blocks, 2), args![&data, &signal, writer])?;
        let seen = pe.read_one(data.at(1))?;
        pe.free(signal)?;
        pe.free(data)?;
        Ok(seen)
    }
}

/// The host waits for a signal of its own kernel, and reads.
fn host(name: &str, writer: i32) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let (data, signal) = (pe.alloc_zeroed::<i32>(3)?, pe.alloc_zeroed::<u64>(1)?);
        let stream = launch(pe, &source(), name, &Grid::new(1, 2), args![&data, &signal, writer])?;
        pe.host().signal_wait_until(signal.signal(0), Cmp::Eq, 1)?;
        let seen = pe.read_one(data.at(0))?;
        pe.synchronize(&stream)?;
        pe.free(signal)?;
        pe.free(data)?;
        Ok(seen)
    }
}

/// What is missing in some schedule, if a proof finds a race; or what PE 1 has seen in all of them.
fn proved(profile: Profile, program: impl Fn(&Pe<Sim>) -> Result<i32>) -> std::result::Result<i32, String> {
    let (mut missing, mut seen) = (None, None);
    let mut simulation = Simulation::new(Config { profile, ..Config::pes(2) }).unwrap();
    let explored = simulation.explore(Explore::All { limit: 1_000 }, program, |run| {
        match &run.verdict.kind {
            VerdictKind::Race => missing = Some(run.verdict.races[0].missing.to_string()),
            _ => {
                assert!(run.is_ok(), "{}", run.verdict);
                let found = run.results[1];
                assert!(*seen.get_or_insert(found) == found, "{found:?} and {seen:?}");
            }
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert!(explored.unwrap().complete);
    missing.map_or_else(|| Ok(seen.flatten().expect("PE 1 has finished")), Err)
}

#[track_caller]
fn lacks_a_fence(found: &std::result::Result<i32, String>, name: &str) {
    let Err(missing) = found else { panic!("{name}: {found:?}") };
    assert!(missing.starts_with("a fence (__threadfence_system) between own_stores.cu:"), "{name}: {missing}");
    assert!(missing.ends_with(", which sets the flag"), "{name}: {missing}");
}

const PROFILES: [Profile; 4] = [Profile::Spec, Profile::Ibgda, Profile::Network, Profile::Nvlink];

#[test]
fn another_pe_comes_after_a_store_behind_a_fence_of_the_system_only() {
    for profile in PROFILES {
        for writer in [0, 1] {
            for tell in ["signal", "atomic", "put_signal", "get", "load", "p"] {
                let name = format!("{tell}_behind_nothing");
                lacks_a_fence(&proved(profile, pull(&name, writer)), &name);
                let name = format!("{tell}_behind_system_fence");
                assert_eq!(proved(profile, pull(&name, writer)), Ok(7), "{name} {profile:?} {writer}");
            }
            lacks_a_fence(&proved(profile, pull("exchange_behind_nothing", writer)), "exchange_behind_nothing");
            assert_eq!(proved(profile, pull("exchange_behind_system_fence", writer)), Ok(7), "{profile:?} {writer}");
            assert_eq!(proved(profile, pull("signal_behind_quiet", writer)), Ok(7), "{profile:?} {writer}");
            assert_eq!(proved(profile, pull("behind_sync", writer)), Ok(7), "{profile:?} {writer}");
            lacks_a_fence(&proved(profile, pull("signal_behind_gpu_fence", writer)), "signal_behind_gpu_fence");
            let behind_fence = proved(profile, pull("signal_behind_fence", writer));
            match profile.promises().fence_completes {
                true => assert_eq!(behind_fence, Ok(7), "{profile:?} {writer}"),
                // a fence orders what goes to one PE, and the signal goes to another
                false => lacks_a_fence(&behind_fence, "signal_behind_fence"),
            }
        }
    }
}

/// What the fences of a block tell behind its barrier: what each thread had done before its own.
#[test]
fn a_fence_before_the_barrier_is_about_its_own_thread() {
    for profile in PROFILES {
        for tell in ["store", "signal", "block"] {
            let found = |fences: &str| proved(profile, pull(&format!("{tell}_behind_{fences}"), 0));
            assert_eq!(found("fences_behind"), Ok(7), "{tell} {profile:?}");
            for fences in ["fences_in_front", "other_fence"] {
                assert!(found(fences).is_err(), "{tell} {fences} {profile:?}: {:?}", found(fences));
            }
        }
    }
}

#[test]
fn a_fence_puts_a_store_before_a_signal_to_the_own_pe() {
    for profile in PROFILES {
        assert_eq!(proved(profile, pull("to_itself_behind_fence", 0)), Ok(7), "{profile:?}");
        lacks_a_fence(&proved(profile, pull("to_itself_behind_nothing", 0)), "to_itself_behind_nothing");
    }
}

#[test]
fn what_was_read_needs_no_fence() {
    for profile in PROFILES {
        assert_eq!(proved(profile, pull("read_behind_nothing", 0)), Ok(0), "{profile:?}");
    }
}

#[test]
fn a_strong_store_is_known_behind_a_fence_only_too() {
    for profile in PROFILES {
        for store in ["volatile", "atomic_store"] {
            let name = format!("{store}_behind_nothing");
            lacks_a_fence(&proved(profile, pull(&name, 0)), &name);
            assert_eq!(proved(profile, pull(&format!("{store}_behind_system_fence"), 0)), Ok(7), "{store} {profile:?}");
        }
    }
}

#[test]
fn what_a_put_has_read_is_in_memory() {
    for profile in PROFILES {
        for writer in [0, 1] {
            for name in ["sent_and_read", "sent_and_answered"] {
                assert_eq!(proved(profile, pull(name, writer)), Ok(7), "{name} {profile:?} {writer}");
            }
        }
    }
}

#[test]
fn what_a_call_has_got_is_a_store() {
    for profile in PROFILES {
        lacks_a_fence(&proved(profile, pull("got_behind_nothing", 0)), "got_behind_nothing");
        assert_eq!(proved(profile, pull("got_behind_system_fence", 0)), Ok(0), "{profile:?}");
    }
}

#[test]
fn the_host_of_a_pe_comes_after_its_kernel_s_stores_as_others_do() {
    for profile in PROFILES {
        for writer in [0, 1] {
            lacks_a_fence(&proved(profile, host("host_behind_nothing", writer)), "host_behind_nothing");
            assert_eq!(proved(profile, host("host_behind_system_fence", writer)), Ok(7), "{profile:?} {writer}");
            // the store and the signal are both to its own memory
            assert_eq!(proved(profile, host("host_behind_fence", 0)), Ok(7), "{profile:?}");
        }
    }
}
