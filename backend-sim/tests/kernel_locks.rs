//! Kernels that compare and swap a word, or exchange it, until they have found what they look for: each is a wait, and only the order in which they find it matters.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Sim, Simulation, Strategy, VerdictKind};

const LOCKS: &str = include_str!("../ptx/kernels/locks.ptx");

/// Blocks of a kernel on all PEs. What PE 0's words are then has to be `sum`.
fn runs<'a>(name: &'a str, blocks: u32, sum: i32) -> impl Fn(&Pe<Sim>) -> Result<()> + 'a {
    move |pe| {
        let words = [pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(2)?];
        let (module, stream) = (pe.module(&Source::ptx("locks.ptx", LOCKS))?, pe.stream()?);
        let [flags, data, seen] = &words;
        // SAFETY: the kernels take three pointers to numbers.
        unsafe {
            pe.on(&stream).launch(
                &module.kernel(name)?,
                &Grid::new(blocks, 32).collective(),
                args![flags, data, seen],
            )?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        if pe.my_pe() == 0 {
            onesided::expect_eq(pe.read_one(data)?, sum, "the sum")?;
        }
        words.into_iter().try_for_each(|words| pe.free(words))
    }
}

fn proved(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Explored {
    let explored = Simulation::new(Config::pes(pes)).unwrap().explore(Explore::All { limit: 10_000 }, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        std::ops::ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete && !explored.polls, "{explored:?}");
    explored
}

#[test]
fn a_lock_has_a_class_for_each_order_of_those_who_take_it() {
    for (pes, blocks, orders) in [(2, 1, 2), (3, 1, 6), (4, 1, 24), (2, 2, 24)] {
        let sum = (pes * blocks) as i32;
        for lock in ["under_a_lock", "under_an_exchanged_lock"] {
            assert_eq!(proved(pes, runs(lock, blocks as u32, sum)).schedules, orders, "{lock}: {blocks} of {pes}");
        }
    }
    for (blocks, orders) in [(1, 1), (2, 2), (4, 24)] {
        assert_eq!(proved(1, runs("blocks_under_a_lock", blocks, blocks as i32)).schedules, orders, "{blocks}");
    }
}

#[test]
fn flags_that_are_put_up_and_taken_down_by_turns_have_one() {
    for pes in [2, 3, 4] {
        assert_eq!(proved(pes, runs("meets", 1, 2)).schedules, 1, "{pes}");
    }
}

/// Each comes, and then looks twice: an atomic that leaves a word as it was may still tell something, so it does not commute with others.
#[test]
fn polls_by_atomics_that_change_nothing_have_a_class_for_each_order() {
    for (pes, come, look) in [(1, 1, 1), (2, 2, 6), (3, 6, 90)] {
        assert_eq!(proved(pes, runs("polls_by_atomics", 1, pes as i32)).schedules, come * look, "{pes}");
    }
}

/// Partial-order sampling draws the steps of threads again behind each on which they depend: that one of two takes all of its tickets first has a
/// probability of some 2^-8. If the other's priority stayed, it would be 1/9.
#[test]
fn sampling_knows_which_steps_of_threads_depend_on_each_other() {
    let program = |pe: &Pe<Sim>| {
        let (next, last) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(2)?);
        let (module, stream) = (pe.module(&Source::ptx("locks.ptx", LOCKS))?, pe.stream()?);
        let kernel = module.kernel("takes_tickets")?;
        // SAFETY: the kernel takes three pointers to numbers, and has two threads.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 2), args![&next, &last, &last])? };
        pe.synchronize(&stream)?;
        let tickets = pe.read(&last)?.to_vec();
        pe.free(last)?;
        pe.free(next)?;
        Ok(tickets)
    };
    let how = Explore::Random { schedules: 1000, seed: 0, strategy: Strategy::Pos };
    let mut first = 0;
    let explored = Simulation::new(Config::pes(1)).unwrap().explore(how, program, |run| {
        first += usize::from(run.results[0].as_ref().unwrap()[0] == 7);
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 1000);
    assert!(first < 20, "{first}");
}

/// What a lock is to order is not ordered where its release tells nothing.
#[test]
fn a_lock_that_tells_nothing_is_a_race() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let mut races = Vec::new();
    let explored = simulation.explore(Explore::All { limit: 100 }, runs("under_a_relaxed_lock", 1, 2), |run| {
        races.extend(run.verdict.races.iter().map(|race| race.to_string()));
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert!(explored.unwrap().findings > 0);
    assert!(races.iter().any(|race| race.contains("locks.cu:14")), "{races:?}");
}

/// Who waits for a lock that nobody gives back is said to wait for it.
#[test]
fn a_lock_that_is_not_given_back_is_a_deadlock() {
    let mut waits = Vec::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let program = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<i32>(4)?;
        pe.write(&words, &[1; 4])?;
        pe.host().barrier_all()?;
        let (module, stream) = (pe.module(&Source::ptx("locks.ptx", LOCKS))?, pe.stream()?);
        let kernel = module.kernel("under_a_lock")?;
        // SAFETY: the kernel takes three pointers to numbers.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 32).collective(), args![&words, &words, &words])? };
        pe.synchronize(&stream)?;
        pe.free(words)
    };
    simulation
        .explore(Explore::All { limit: 10 }, program, |run| {
            assert!(matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
            let text = run.verdict.to_string();
            waits.extend(text.lines().filter(|line| line.contains("found 1")).map(|line| line.trim().to_string()));
            std::ops::ControlFlow::<()>::Continue(())
        })
        .unwrap();
    insta::assert_snapshot!(waits.join("\n"));
}

/// The compiler computes the number of the others again for each swap. The others come in any order, to each of two tiles.
#[test]
fn what_is_swapped_need_be_no_constant() {
    for (others, orders) in [(1, 1), (2, 4), (3, 36)] {
        assert_eq!(proved(1, runs("collects", others + 1, 2 * others as i32)).schedules, orders, "{others}");
    }
}
