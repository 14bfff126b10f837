//! Random kernels: two or three threads of a block on each of two PEs poll, wait, store, add and signal, also in shared memory.
//!
//! A search has to come to an end without saying that the program is not deterministic. Its outcomes are those of an independent model
//! (`kernel_random/model.rs`), and it finds every outcome that random schedules have. A proof has to find a race or a deadlock where they have one.
//!
//! Other programs, and more of them: `REFERENCE_SEED=7 REFERENCE_TIMES=5 cargo test -p onesided-sim --test all kernel_random`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::random;
use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Races, Run, Sim, Simulation, VerdictKind};
use proptest::prelude::*;

mod generate;
mod model;
mod program;

use generate::{
    arrives, arrives_inside, balances, one, steps, talk, talk_inside, talk_of_fetches, talk_of_several, voters,
};
use program::{PES, Program, Step, Vote, WORDS, Word, source};

fn perform(source: &Source, threads: usize, pe: &Pe<Sim>) -> Result<Vec<u64>> {
    let words = pe.alloc_zeroed::<u64>(WORDS + threads)?;
    let module = pe.module(source)?;
    let kernel = module.kernel("k")?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes one pointer.
    unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, threads as u32), args![&words])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let seen = pe.read(&words)?;
    pe.free(words)?;
    Ok(seen)
}

struct Seen {
    complete: bool,
    classes: u64,
    races: bool,
    outcomes: BTreeSet<String>,
}

fn outcome(run: &Run<Vec<u64>>) -> String {
    match &run.verdict.kind {
        VerdictKind::Finished => format!("{:?}", run.results.iter().flatten().collect::<Vec<_>>()),
        VerdictKind::Deadlock => "deadlock".to_string(),
        other => format!("{other:?}"),
    }
}

fn seen((source, threads): (&Source, usize), how: Explore, races: Races) -> std::result::Result<Seen, String> {
    let mut seen = Seen { complete: false, classes: 0, races: false, outcomes: BTreeSet::new() };
    let config = Config { races, pieces: 1, max_steps: Some(20_000), ..Config::pes(PES) };
    let explored = Simulation::new(config).unwrap().explore(
        how,
        |pe| perform(source, threads, pe),
        |run| {
            seen.races |= !run.verdict.races.is_empty();
            seen.outcomes.insert(outcome(run));
            ControlFlow::Continue(())
        },
    );
    let explored = explored.map_err(|error| format!("{races:?}: {error}"))?;
    let complete = explored.bound.is_none() && explored.given_up == 0;
    Ok(Seen { complete, classes: explored.schedules, ..seen })
}

/// Programs with more schedules, or more states of the model, are left out.
const LIMIT: u64 = 1_000;
const STATES: usize = 20_000;

/// Whether the program was small enough.
fn check(program: &Program) -> std::result::Result<bool, String> {
    let source = (&Source::ptx("random.ptx", source(program)), program.len() / PES);
    let all = Explore::All { limit: LIMIT };
    let proof = seen(source, all, Races::Find)?;
    let noted = seen(source, all, Races::Note)?;
    let random = seen(source, Explore::random(40, 1), Races::Note)?;
    if proof.complete && !proof.races && random.races {
        return Err("a random schedule has a race, and no proof".to_string());
    }
    if proof.complete && !proof.races && random.outcomes.contains("deadlock") && !proof.outcomes.contains("deadlock") {
        return Err(format!("a random schedule has a deadlock, and no proof: {:?}", proof.outcomes));
    }
    if noted.complete && !random.outcomes.is_subset(&noted.outcomes) {
        let missed: Vec<&String> = random.outcomes.difference(&noted.outcomes).collect();
        return Err(format!("a search misses {missed:?} of {:?}", noted.outcomes));
    }
    let Some(allowed) = model::outcomes(program, STATES).filter(|_| noted.complete) else { return Ok(false) };
    let allowed = BTreeSet::from_iter(allowed.iter().map(|outcome| match outcome {
        Some(seen) => format!("{seen:?}"),
        None => "deadlock".to_string(),
    }));
    if noted.outcomes != allowed {
        let missing = Vec::from_iter(allowed.difference(&noted.outcomes));
        let wrong = Vec::from_iter(noted.outcomes.difference(&allowed));
        return Err(format!("a search misses {missing:?}, and shows {wrong:?}"));
    }
    if proof.complete && !proof.races && proof.outcomes != allowed {
        let missing = Vec::from_iter(allowed.difference(&proof.outcomes));
        return Err(format!("a proof misses {missing:?}"));
    }
    Ok(proof.complete)
}

#[test]
fn a_search_of_kernels_that_vote_ends() {
    let small = Cell::new(0);
    let others = |threads| {
        let busy = prop::collection::vec(prop::collection::vec(one(), 0..=1), threads);
        prop_oneof![Just(vec![Vec::new(); threads]).boxed(), busy.boxed()]
    };
    let programs = (2..=4usize).prop_flat_map(move |threads| {
        let one = prop_oneof![voters(threads, 0).boxed(), voters(threads - 1, 1).boxed()];
        let other = match threads {
            2 => prop_oneof![voters(threads, 0).boxed(), others(threads).boxed()].boxed(),
            _ => others(threads).boxed(),
        };
        (one, other).prop_map(|(one, other)| [one, other].concat())
    });
    let cases = random::check_all(programs, 300, 0x766f_7465, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases * 7 / 10, "only {} of {cases} were small enough", small.get());
}

#[test]
fn a_search_of_kernels_that_talk_in_shared_memory_ends() {
    let small = Cell::new(0);
    let programs = (2..=3usize).prop_flat_map(|threads| {
        let silent = prop::collection::vec(prop::collection::vec(one(), 0..=1), threads);
        let other = prop_oneof![Just(vec![Vec::new(); threads]).boxed(), silent.boxed()];
        (prop::collection::vec(talk_inside(), threads), other).prop_map(|(one, other)| [one, other].concat())
    });
    let cases = random::check_all(programs, 600, 0x7368_6172, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases * 9 / 10, "only {} of {cases} were small enough", small.get());
}

#[test]
fn a_search_of_kernels_that_look_at_several_words_ends() {
    let small = Cell::new(0);
    let programs = (1..=2usize).prop_flat_map(|threads| prop::collection::vec(talk_of_several(), PES * threads));
    let cases = random::check_all(programs, 1_000, 0x7365_7665, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases * 9 / 10, "only {} of {cases} were small enough", small.get());
}

#[test]
fn a_search_of_kernels_that_add_and_take_away_ends() {
    let small = Cell::new(0);
    let programs = (1..=2usize).prop_flat_map(|threads| prop::collection::vec(balances(), PES * threads));
    let cases = random::check_all(programs, 600, 0x6261_6c61, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases * 9 / 10, "only {} of {cases} were small enough", small.get());
}

#[test]
fn a_search_of_kernels_that_ask_who_comes_last_ends() {
    let small = Cell::new(0);
    let programs = (2..=4usize, any::<bool>()).prop_flat_map(|(threads, inside)| {
        let some = || if inside { arrives_inside().boxed() } else { arrives().boxed() };
        let other =
            prop_oneof![Just(vec![Vec::new(); threads]).boxed(), prop::collection::vec(some(), threads).boxed()];
        (prop::collection::vec(some(), threads), other).prop_map(|(one, other)| [one, other].concat())
    });
    let cases = random::check_all(programs, 800, 0x6172_7276, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases / 2, "only {} of {cases} were small enough", small.get());
}

/// A search takes an arrival earlier than in the run. There it may get the other answer, and then it does not commute with arrivals that it commuted with in the
/// run. A search that did not know this missed an outcome.
#[test]
fn an_arrival_that_is_taken_earlier_may_come_first() {
    for word in [Word::Global(0), Word::Shared] {
        let arrive = |by, asks| Step::Arrive { word, by, asks, tells: None };
        let one = vec![vec![arrive(1, 0)]; 3];
        let other = vec![vec![arrive(1, 2)], vec![arrive(2, 0)], vec![arrive(1, 2), arrive(1, 2)]];
        assert_eq!(check(&[one, other].concat()), Ok(true));
    }
}

/// A loop that loads plainly where it looks may look elsewhere in the next round, where its races are no findings.
#[test]
fn a_loop_that_loads_where_it_looks_may_look_elsewhere() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 k_param_0)
{
.reg .b64 %rd<6>; .reg .b32 %r<3>; .reg .pred %p<3>;
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r2, %tid.x;
setp.ne.s32 %p1, %r2, 0;
add.u64 %rd2, %rd1, 8;
@!%p1 st.global.u64 [%rd1], %rd2;
barrier.sync 0;
@%p1 bra T;
L: ld.global.u64 %rd3, [%rd1];
ld.volatile.global.u64 %rd4, [%rd3];
setp.eq.u64 %p2, %rd4, 0;
@%p2 bra L;
bra.uni E;
T: add.u64 %rd2, %rd1, 16;
st.volatile.global.u64 [%rd2], 1;
st.global.u64 [%rd1], %rd2;
E: ret;
}
";
    let source = Source::ptx("elsewhere.ptx", text);
    let noted = seen((&source, 2), Explore::All { limit: LIMIT }, Races::Note).unwrap();
    assert!(noted.complete && noted.races && !noted.outcomes.contains("deadlock"), "{:?}", noted.outcomes);
    assert!(seen((&source, 2), Explore::All { limit: LIMIT }, Races::Find).unwrap().races);
}

/// Where something was taken away twice before a thread begins to wait, no single exchange leads to a schedule in which the wait comes between.
#[test]
fn what_is_taken_away_may_come_behind_a_wait() {
    let moves = |by| Step::Move { word: 0, by };
    let wait = Step::Balance { word: 0, least: true, value: 1 };
    for steps in 0..5 {
        let before = vec![Step::Move { word: 1, by: 1 }; steps];
        let waits = [before, vec![wait]].concat();
        let program = vec![vec![moves(1), moves(-1)], vec![moves(-1)], waits, vec![], vec![], vec![]];
        assert_eq!(check(&program), Ok(true));
    }
}

/// Who votes with others at another instruction may store in its rounds: the others do not only wait.
#[test]
fn a_thread_that_votes_elsewhere_goes_round() {
    let vote = |until, reads, tells| Step::Vote(Vote { voters: 2, all: true, until, reads, tells });
    let send = |word| Step::Signal { to: 0, word, value: 1 };
    let program = vec![
        vec![vote(Some((Word::Global(0), 1)), None, None)],
        vec![vote(None, Some(Word::Global(1)), Some(2))],
        vec![send(1), Step::Fence, send(0)],
        vec![],
    ];
    assert_eq!(check(&program), Ok(true));
    let waits = vec![vec![program[0][0], Step::Load { word: 2 }], vec![program[0][0]], program[2].clone(), vec![]];
    assert_eq!(check(&waits), Ok(true));
}

/// A thread that polls two words in turn is parked if neither has changed since it was read. Whether one had changed since the round began made one order of steps
/// differ from an equivalent one, and a search said that the program is not deterministic.
#[test]
fn a_change_before_a_word_is_read_again_is_no_news() {
    let add = |word| Step::AddSignal { to: 0, word };
    let program = vec![
        vec![Step::Store { word: 2, value: 1 }, Step::Poll { word: 1, unless: "lt", value: 1, notes: false }],
        vec![Step::Signal { to: 0, word: 2, value: 1 }, Step::Twice { words: [2, 1], value: 1 }],
        vec![add(2)],
        vec![add(1)],
    ];
    let source = Source::ptx("random.ptx", looking(&source(&program)));
    let found = seen((&source, 2), Explore::All { limit: LIMIT }, Races::Find);
    assert!(found.is_ok_and(|seen| !seen.races), "of its first classes");
}

#[test]
fn a_search_of_random_kernels_ends() {
    let small = Cell::new(0);
    let programs = (2..=3usize).prop_flat_map(|threads| prop::collection::vec(steps(), PES * threads));
    let cases = random::check_all(programs, 2_000, 0x6b65_726e, |program| {
        small.set(small.get() + u32::from(check(&program).map_err(TestCaseError::fail)?));
        Ok(())
    });
    eprintln!("{} of {cases} were small enough", small.get());
    assert!(small.get() > cases * 9 / 10, "only {} of {cases} were small enough", small.get());
}

/// The same kernel with loops that are no waits: with an instruction in each that is not known to do nothing.
fn looking(text: &str) -> String {
    let mut looks = text.to_string();
    for unless in ["lt", "ne", "eq", "gt"] {
        for (ty, loaded, value) in [("u64", "%rd4"), ("u64", "%rd5"), ("s64", "%rd5")]
            .iter()
            .flat_map(|(ty, loaded)| (0..=2).map(move |value| (ty, loaded, value)))
        {
            let [waits, tries] = [("", ""), (".and", ", %p2")]
                .map(|(and, more)| format!("setp.{unless}{and}.{ty} %p1, {loaded}, {value}{more};"));
            looks = looks.replace(&waits, &tries);
        }
    }
    looks.replace("setp.eq.s32 %p1, %r2, 0;", "setp.eq.and.s32 %p1, %r2, 0, %p2;")
}

/// A loop around a load is a wait only where the loop does nothing else. With an instruction that is not known to do nothing, it looks
/// in vain, step by step: that changes nothing but the number of classes.
#[test]
fn a_loop_that_is_a_wait_has_the_outcomes_of_one_that_looks_in_vain() {
    let programs = (1..=2usize).prop_flat_map(|threads| prop::collection::vec(talk(), PES * threads));
    let polls = |step: &Step| matches!(step, Step::Poll { .. } | Step::PollPart { .. } | Step::Swap { .. });
    compare_with_looks(programs, polls, 400, 0x6c6f_6f70);
}

/// The same of loops around atomic fetches and swaps, and around tests of two words, beside fences and quiets of others.
#[test]
fn a_loop_around_a_call_that_is_a_wait_has_the_outcomes_of_one_that_looks_in_vain() {
    let programs = (1..=2usize).prop_flat_map(|threads| prop::collection::vec(talk_of_fetches(), PES * threads));
    let polls = |step: &Step| matches!(step, Step::Fetch { .. } | Step::Lock { .. } | Step::All { .. });
    compare_with_looks(programs, polls, 400, 0x6665_7463);
}

fn compare_with_looks(programs: impl Strategy<Value = Program>, polls: impl Fn(&Step) -> bool, most: u32, seed: u64) {
    let (compared, fewer) = (Cell::new(0), Cell::new(0));
    let has_loop = |program: &Program| program.iter().flatten().any(&polls);
    random::check_all(programs.prop_filter("it has a loop", has_loop), most, seed, |program| {
        let (text, threads) = (source(&program), program.len() / PES);
        let looks = looking(&text);
        for races in [Races::Find, Races::Note] {
            let [waits, looks] = [("waits", &text), ("looks", &looks)].map(|(how, text)| {
                let source = Source::ptx("random.ptx", text.clone());
                let seen = seen((&source, threads), Explore::All { limit: LIMIT }, races);
                seen.map_err(|why| TestCaseError::fail(format!("{how}: {why}")))
            });
            let (waits, looks) = (waits?, looks?);
            if !looks.complete {
                continue;
            }
            prop_assert!(waits.complete, "{:?}", races);
            prop_assert_eq!(waits.races, looks.races, "{:?}", races);
            if races == Races::Note || !waits.races {
                prop_assert_eq!(&waits.outcomes, &looks.outcomes, "{:?}", races);
            }
            compared.set(compared.get() + 1);
            fewer.set(fewer.get() + u32::from(waits.classes < looks.classes));
        }
        Ok(())
    });
    eprintln!("{} searches compared; {} had fewer classes", compared.get(), fewer.get());
    assert!(fewer.get() * 4 > compared.get(), "only {} of {} searches had fewer classes", fewer.get(), compared.get());
}

/// Plain accesses under a mark are steps as strong ones are: they have the same outcomes, and no finding. So have those of a kernel whose races are none.
#[test]
fn plain_accesses_under_a_mark_have_the_outcomes_of_strong_ones() {
    let (compared, branching) = (Cell::new(0), Cell::new(0));
    let programs = (1..=2usize).prop_flat_map(|threads| prop::collection::vec(talk(), PES * threads));
    let cases = random::check_all(programs, 600, 0x6d61_726b, |program| {
        let (text, threads) = (source(&program), program.len() / PES);
        let plain = text.replace("ld.volatile.global", "ld.global").replace("st.volatile.global", "st.global");
        let first = "mov.u64 %rd2, 0;\n";
        let marked = plain.replacen(first, &format!("{first}.pragma \"onesided.intended_race: random\";\n"), 1);
        let search = |text: &str, races| {
            let source = Source::ptx("random.ptx", text);
            seen((&source, threads), Explore::All { limit: LIMIT }, races).map_err(TestCaseError::fail)
        };
        let strong = search(&text, Races::Note)?;
        for (text, races) in [(&marked, Races::Find), (&plain, Races::Note)] {
            let plain = search(text, races)?;
            prop_assert!(races == Races::Note || !plain.races, "a race is a finding");
            if strong.complete && plain.complete {
                prop_assert_eq!(&plain.outcomes, &strong.outcomes, "{:?}", races);
                compared.set(compared.get() + 1);
                branching.set(branching.get() + u32::from(plain.outcomes.len() > 1));
            }
        }
        Ok(())
    });
    eprintln!("{} searches of {cases} programs compared; {} had several outcomes", compared.get(), branching.get());
    assert!(compared.get() > cases, "only {} of {cases} programs were compared", compared.get() / 2);
    assert!(branching.get() * 12 > compared.get(), "only {} had several outcomes", branching.get());
}

/// One thread's poll takes nothing away from another's. Each of these was said not to be deterministic.
#[test]
fn threads_of_a_block_poll_beside_each_other() {
    use Step::*;
    let poll = |word| Poll { word, unless: "lt", value: 1, notes: false };
    let first_call_of_a_word_that_another_polls = vec![
        vec![],
        vec![Fence],
        vec![Signal { to: 1, word: 0, value: 2 }, Fetch { of: 1, word: 0, value: 1, notes: false }],
        vec![poll(0), Quiet],
    ];
    let load_of_another_word = vec![
        vec![Fence, Quiet],
        vec![Signal { to: 1, word: 2, value: 1 }, AddSignal { to: 1, word: 0 }],
        vec![poll(0)],
        vec![Load { word: 2 }, Quiet],
    ];
    let two_words = vec![
        vec![poll(2)],
        vec![poll(0)],
        vec![Signal { to: 0, word: 2, value: 1 }],
        vec![AddSignal { to: 1, word: 2 }, Signal { to: 0, word: 0, value: 2 }],
    ];
    for program in [first_call_of_a_word_that_another_polls, load_of_another_word, two_words] {
        assert_eq!(check(&program), Ok(true), "{program:?}");
    }
}

/// A vote waits for no thread that has ended. Each of these was said to come after what such a thread had done, and outcomes were missed.
#[test]
fn a_vote_waits_for_no_thread_that_has_ended() {
    use Step::*;
    let vote = |voters, until, reads, tells| Vote(self::Vote { voters, all: false, until, reads, tells });
    let alone = vec![
        vec![vote(1, Some((Word::Global(2), 1)), Some(Word::Shared), Some(2))],
        vec![Ticket, Count],
        vec![],
        vec![],
    ];
    let behind = vec![
        vec![Count, vote(2, Some((Word::Global(0), 1)), None, None)],
        vec![Count, vote(2, Some((Word::Shared, 1)), None, None), Take { word: 0 }],
        vec![Load { word: 0 }],
        vec![],
        vec![],
        vec![],
    ];
    let beside = vec![
        vec![vote(2, Some((Word::Shared, 1)), None, None)],
        vec![Ticket, vote(2, Some((Word::Global(0), 1)), Some(Word::Shared), Some(0))],
        vec![Count],
        vec![],
        vec![],
        vec![],
    ];
    for program in [alone, behind, beside] {
        assert_eq!(check(&program), Ok(true), "{program:?}");
    }
}

/// Who has arrived at a barrier and has ended is not waited for again: what it did in between can come behind what others do behind the barrier.
#[test]
fn a_barrier_does_not_wait_for_the_end_of_who_has_arrived() {
    let named = ("barrier.arrive 1, 64;", "barrier.sync 1, 64;");
    let cluster = ("barrier.cluster.arrive;", "barrier.cluster.arrive;\nbarrier.cluster.wait;");
    for (arrives, waits) in [named, cluster] {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 k_param_0)
{{
.shared .align 8 .b64 shared;
.reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .pred %p<3>;
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra $SECOND;
{arrives}
setp.ne.u32 %p2, %r1, 0;
@%p2 bra $END;
ld.volatile.global.u64 %rd2, [%rd1];
st.global.u64 [%rd1+8], %rd2;
bra.uni $END;
$SECOND:
setp.ne.u32 %p2, %r1, 32;
@!%p2 st.volatile.shared.u64 [shared], 1;
{waits}
@!%p2 st.volatile.global.u64 [%rd1], 1;
$END: ret;
}}
"
        );
        for races in [Races::Find, Races::Note] {
            let source = Source::ptx("arrives.ptx", text.clone());
            let seen = seen((&source, 64), Explore::All { limit: LIMIT }, races).unwrap();
            assert!(seen.complete && !seen.races, "{waits}");
            assert_eq!(
                seen.outcomes.len(),
                4,
                "{waits}: on each PE it is read before or behind the store: {:?}",
                seen.outcomes
            );
        }
    }
}
