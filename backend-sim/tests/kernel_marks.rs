//! Marks in kernels (`onesided.h`): the accesses between a mark and the end of its braces are free to race, and no others.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{ErrorKind, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Races, Run, Sim, Simulation, example};

const MARKS: &str = include_str!("../ptx/kernels/marks.ptx");

/// The same kernels without their marks.
fn unmarked() -> String {
    MARKS.lines().filter(|line| !line.contains(".pragma")).map(|line| format!("{line}\n")).collect()
}

/// The same kernels with strong loads.
fn strong() -> String {
    MARKS.replace("ld.global.u32", "ld.volatile.global.u32")
}

/// What the kernel leaves in `seen`.
fn launch(pe: &Pe<Sim>, name: &str) -> Result<i32> {
    launch_of(pe, MARKS, name)
}

fn launch_of(pe: &Pe<Sim>, text: &str, name: &str) -> Result<i32> {
    let (data, signal, seen) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    let stream = pe.stream()?;
    let module = pe.module(&Source::ptx("marks.ptx", text))?;
    let kernel = module.kernel(name)?;
    let blocks = if name.starts_with("beside") { 2 } else { 1 };
    // SAFETY: every kernel of the file takes these three, and stays inside them.
    unsafe { pe.on(&stream).launch(&kernel, &Grid::new(blocks, 2), args![&data, &signal, &seen])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let result = pe.read_one(&seen)?;
    pe.free(seen)?;
    pe.free(signal)?;
    pe.free(data)?;
    Ok(result)
}

/// The outcomes, the races that were found, and those that are meant: each mark with its reason and line.
struct Seen {
    outcomes: BTreeSet<String>,
    races: BTreeSet<String>,
    marks: BTreeSet<String>,
    explored: Explored,
}

fn explore(config: Config, how: Explore, program: impl Fn(&Pe<Sim>) -> Result<i32>) -> Seen {
    let (mut outcomes, mut races, mut marks) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let visit = |run: &Run<i32>| {
        outcomes.insert(match run.verdict.is_ok() {
            true => format!("{:?}", run.results.iter().flatten().collect::<Vec<_>>()),
            false => run.verdict.kind.outcome(),
        });
        races.extend(run.verdict.races.iter().map(|race| format!("{} {}", race.first.at, race.second.at)));
        let raced = run.verdict.intended.iter().filter(|mark| mark.races > 0);
        marks.extend(raced.map(|mark| format!("{} ({})", mark.reason, mark.at)));
        ControlFlow::Continue(())
    };
    let explored = Simulation::new(config).unwrap().explore(how, program, visit).unwrap();
    Seen { outcomes, races, marks, explored }
}

const ALL: Explore = Explore::All { limit: 100_000 };

fn proof(name: &'static str) -> Seen {
    let seen = explore(Config::pes(2), ALL, |pe| launch(pe, name));
    assert!(seen.explored.complete && seen.explored.redundant == 0, "{name}: {:?}", seen.explored);
    seen
}

fn strings(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn marked_accesses_are_no_findings_and_have_every_outcome() {
    let Seen { outcomes, races, marks, .. } = proof("looks");
    assert_eq!(outcomes, strings(&["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]));
    assert_eq!(races, strings(&[]));
    // each names its line in the kernel
    assert_eq!(marks, strings(&["a hint (marks.cu:20)", "a look (marks.cu:23)"]));

    // the same as under a mark of the launch, and as where no race is a finding
    let unmarked = unmarked();
    let looks = |pe: &Pe<Sim>| launch_of(pe, &unmarked, "looks");
    let of_the_launch = |pe: &Pe<Sim>| pe.intended_race("any value", looks);
    let note = Config { races: Races::Note, ..Config::pes(2) };
    let noted = explore(note, ALL, looks);
    for other in [explore(Config::pes(2), ALL, of_the_launch), noted] {
        assert!(other.explored.complete);
        assert_eq!(other.outcomes, outcomes);
    }
    let random = explore(Config::pes(2), Explore::random(1_000, 1), |pe| launch(pe, "looks"));
    assert_eq!(random.outcomes, outcomes);
    assert_eq!(explore(Config::pes(2), ALL, looks).outcomes, strings(&["race"]));
}

#[test]
fn a_mark_ends_with_its_braces_however_they_are_left() {
    let Seen { outcomes, races, marks, .. } = proof("leaves");
    assert_eq!(outcomes, strings(&["race"]));
    assert_eq!(races, strings(&["marks.cu:39 marks.cu:38"]));
    assert_eq!(marks, strings(&["a hint (marks.cu:32)"]));
}

#[test]
fn a_mark_covers_functions_calls_and_what_follows_an_inner_mark() {
    let Seen { outcomes, races, marks, .. } = proof("nested");
    assert_eq!(races, strings(&[]));
    assert!(outcomes.contains("[0, 0]") && outcomes.contains("[0, 3]") && !outcomes.contains("race"), "{outcomes:?}");
    assert_eq!(
        marks.iter().map(|mark| mark.split(' ').next().unwrap()).collect::<BTreeSet<_>>(),
        BTreeSet::from(["inside", "outside"])
    );
}

#[test]
fn a_loop_under_a_mark_polls() {
    let marked = proof("payload");
    assert_eq!((marked.outcomes, marked.races), (strings(&["[3, 3]"]), strings(&[])));
    assert!(!marked.marks.is_empty());
    // it is a wait, as under a mark of the launch, and as where no race is a finding; and so is a strong one
    assert_eq!(marked.explored.schedules, 1);
    let (unmarked, strong) = (unmarked(), strong());
    let of_the_launch = |pe: &Pe<Sim>| pe.intended_race("any value", |pe| launch_of(pe, &unmarked, "payload"));
    let note = || Config { races: Races::Note, ..Config::pes(2) };
    for other in [
        explore(Config::pes(2), ALL, of_the_launch),
        explore(note(), ALL, |pe| launch_of(pe, &unmarked, "payload")),
        explore(note(), ALL, |pe| launch_of(pe, &strong, "payload")),
    ] {
        assert!(other.explored.complete && other.explored.redundant == 0, "{:?}", other.explored);
        assert_eq!((other.explored.schedules, other.outcomes), (1, strings(&["[3, 3]"])));
    }
    // what lies beside the payload has not come with it
    let Seen { outcomes, races, .. } = proof("payload_and_more");
    assert_eq!(outcomes, strings(&["race"]));
    assert_eq!(races, strings(&["marks.cu:77 marks.cu:86"]));
}

/// The first value that it sees is the first that was stored, or the second, which the other word follows or not.
#[test]
fn a_wait_for_a_marked_store_ends_with_any_value() {
    let values = [101, 102, 111, 112, 202, 212];
    let both = values.iter().flat_map(|one| values.iter().map(move |other| format!("[{one}, {other}]")));
    let both = BTreeSet::from_iter(both);
    assert_eq!(proof("values").outcomes, both);
    let note = || Config { races: Races::Note, ..Config::pes(2) };
    for text in [MARKS, &strong()] {
        let noted = explore(note(), ALL, |pe| launch_of(pe, text, "values"));
        assert!(noted.explored.complete, "{:?}", noted.explored);
        assert_eq!(noted.outcomes, both);
        assert_eq!(explore(note(), Explore::random(3_000, 1), |pe| launch_of(pe, text, "values")).outcomes, both);
    }
}

/// A fence of a block without a mark may come before the marked store of another one, or behind it.
#[test]
fn what_is_marked_and_what_is_not_come_in_every_order() {
    for name in ["beside", "beside_an_access"] {
        let marked = proof(name);
        assert_eq!(marked.outcomes, strings(&["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]), "{name}");
        let note = Config { races: Races::Note, ..Config::pes(2) };
        assert_eq!(explore(note, ALL, |pe| launch(pe, name)).outcomes, marked.outcomes, "{name}");
    }
}

#[test]
fn a_bulk_copy_has_the_mark_of_its_thread() {
    let Seen { races, marks, .. } = proof("bulk");
    assert_eq!(races, strings(&[]));
    assert_eq!(marks, strings(&["a copy (marks.cu:128)"]));
}

#[test]
fn a_load_past_the_cache_may_be_meant() {
    let Seen { outcomes, races, marks, .. } = proof("read_only");
    assert_eq!((outcomes, races), (strings(&["[1, 1]"]), strings(&[])));
    assert!(marks.len() == 1 && marks.iter().all(|mark| mark.starts_with("not cached on this GPU")), "{marks:?}");
    assert_eq!(explore(Config::pes(2), ALL, |pe| launch_of(pe, &unmarked(), "read_only")).outcomes, strings(&["race"]));
}

#[test]
fn a_mark_is_of_the_thread_that_comes_to_it() {
    let Seen { outcomes, races, marks, .. } = proof("one_of_two");
    assert_eq!((outcomes, races), (strings(&["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]), strings(&[])));
    assert!(!marks.is_empty());
}

#[test]
fn a_mark_needs_a_reason_and_a_known_name() {
    let text = |pragma: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.pragma \"{pragma}\";\nret;\n}}\n"
        )
    };
    let load = |pragma: &'static str| {
        let refused = std::cell::RefCell::new(String::new());
        example(1, |pe| {
            if let Err(why) = pe.module(&Source::ptx("k.ptx", text(pragma))) {
                assert_eq!(why.kind(), ErrorKind::InvalidArgument);
                *refused.borrow_mut() = why.to_string();
            }
            Ok(())
        });
        refused.into_inner()
    };
    assert_eq!(load("nounroll"), "");
    assert_eq!(load("onesided.intended_race: a hint"), "");
    for (pragma, why) in [
        ("onesided.intended_race: ", "an intended race needs a reason"),
        ("onesided.intended_rice: a hint", "the pragma \"onesided.intended_rice: a hint\" is not known here"),
    ] {
        let said = load(pragma);
        assert!(said.contains(why) && said.contains("line 6"), "{said}");
    }
}
