//! The suite itself: nothing is missing, nothing is left over, nothing stands there twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use onesided::backend::Op;
use onesided::{DType, SignalOp, Source};
use onesided_conformance::case::Case;
use onesided_conformance::expected::{Folder, print};
use onesided_conformance::known;
use onesided_conformance::outcome::{LIMIT, cluster, in_order, visit_on};
use onesided_conformance::suite::{cases, kernels};
use onesided_sim::{Config, EventKind, Explore, LintKind, Loads, Profile, Sim};

/// The chapters of the API, in the order of the suite.
const CHAPTERS: [&str; 14] = [
    "init",
    "team",
    "buffer",
    "rma",
    "order",
    "litmus",
    "signal",
    "atomic",
    "collective",
    "stream",
    "device",
    "nodes",
    "misuse",
    "lint",
];

#[test]
fn every_chapter_has_cases_and_every_case_its_own_name() {
    let cases = cases::<Sim>();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    assert!(names.len() >= 80, "only {} cases", names.len());

    let mut chapters: Vec<&str> = cases.iter().map(chapter).collect();
    chapters.dedup();
    assert_eq!(chapters, CHAPTERS);
}

/// These are about the order of strong accesses, or leave out a fence that other cases have. Cases of whatever else is right have none.
#[test]
fn cases_whose_strong_loads_can_find_older_values() {
    let mut stale = Vec::new();
    for case in cases::<Sim>() {
        let run = in_order(&case, Profile::Spec).unwrap();
        if run.verdict.lints.iter().any(|lint| lint.kind == LintKind::StaleLoad) {
            stale.push(case.name);
        }
    }
    insta::assert_snapshot!(stale.join("\n"), @r"
    device/store_then_load
    device/store_then_load_with_one_fence
    device/store_then_load_with_fences_of_the_gpu
    device/release_then_acquire
    device/add_then_load
    device/exchange_then_load
    device/fetch_then_load
    device/own_store_then_load_there
    device/relaxed_look_then_load
    device/blocks_store_then_load
    device/strong_data_then_flag
    device/store_then_load_with_acq_rel_fences
    device/store_then_load_with_one_acq_rel_fence
    device/packet_in_two_loads
    ");
}

/// Where no load can miss anything, the oldest values that PTX allows are the newest.
#[test]
fn cases_with_other_outcomes_where_loads_find_the_oldest_values() {
    let (cases, mut differ) = (cases::<Sim>(), Vec::new());
    for case in cases.iter().filter(|case| chapter(case) == "device") {
        let newest = cluster(case, Profile::Spec);
        let oldest = Config { loads: Loads::Oldest, ..newest.clone() };
        let [newest, oldest] = [newest, oldest].map(|cluster| {
            let visited = visit_on(cluster, case, Explore::All { limit: LIMIT }).unwrap();
            assert!(visited.complete, "{}", case.name);
            visited.outcomes.into_keys().collect::<Vec<_>>()
        });
        if newest != oldest {
            differ.push(&case.name[..]);
        }
    }
    insta::assert_snapshot!(differ.join("\n"), @r"
    device/store_then_load
    device/store_then_load_with_one_fence
    device/release_then_acquire
    device/add_then_load
    device/exchange_then_load
    device/fetch_then_load
    device/own_store_then_load_there
    device/relaxed_look_then_load
    device/blocks_store_then_load
    device/strong_data_then_flag
    device/store_then_load_with_acq_rel_fences
    device/store_then_load_with_one_acq_rel_fence
    device/packet_in_two_loads
    ");
}

fn chapter(case: &Case<Sim>) -> &str {
    case.name.split_once('/').expect("a case's name is chapter/name").0
}

#[test]
fn every_case_has_a_file_and_every_file_a_case() {
    let folder = Folder::new(None);
    let (mut files, mut spec) = (BTreeSet::new(), BTreeSet::new());
    for chapter in fs::read_dir(folder.path()).unwrap() {
        for file in fs::read_dir(chapter.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            files.insert(path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_string());
        }
    }
    let mut named = BTreeSet::new();
    for case in cases::<Sim>() {
        spec.insert(folder.name(&case.name, Profile::Spec));
        named.extend(Profile::ALL.map(|profile| folder.name(&case.name, profile)));
    }
    assert_eq!(files, named);
    assert!(spec.is_subset(&files));
}

/// Also the comments: they say on which cluster the outcomes were found. That the outcomes are all that the simulator shows is
/// what `--test suite` is about.
#[test]
fn every_file_is_laid_out_as_the_simulator_writes_it() {
    let folder = Folder::new(None);
    for case in cases::<Sim>() {
        for profile in Profile::ALL {
            let (name, outcomes) = (folder.name(&case.name, profile), folder.read(&case.name, profile).unwrap());
            let of = if name == folder.name(&case.name, Profile::Spec) { Profile::Spec } else { profile };
            let written = print(&case, of, outcomes.iter().map(String::as_str));
            let text = fs::read_to_string(folder.path().join(&name)).unwrap();
            assert!(text == written, "{name} differs: onesided suite {} --promote", case.name);
        }
    }
}

/// A program that is right under a profile is right under each that promises more.
#[test]
fn who_promises_more_allows_no_more() {
    let folder = Folder::new(None);
    for case in cases::<Sim>().iter().map(|case| &case.name) {
        let allowed = Profile::ALL.map(|profile| (profile, folder.read(case, profile).unwrap()));
        for (strong, of_strong) in &allowed {
            for (weak, of_weak) in allowed.iter().filter(|(weak, _)| strong.promises().include(&weak.promises())) {
                assert!(of_strong.is_subset(of_weak), "{case}: {strong} allows what {weak} does not");
            }
        }
    }
}

/// A profile has files only where they say something, and every profile has some but the adversary, whose schedules are those of `spec`.
#[test]
fn a_profiles_file_differs_from_that_of_spec() {
    let folder = Folder::new(None);
    for profile in Profile::ALL.into_iter().filter(|&profile| profile != Profile::Spec) {
        let cases = cases::<Sim>();
        let has_own = |case: &&Case<Sim>| folder.name(&case.name, profile) != folder.name(&case.name, Profile::Spec);
        let own: Vec<&Case<Sim>> = cases.iter().filter(has_own).collect();
        assert_eq!(own.is_empty(), profile == Profile::UnorderedNic, "{profile}");
        for case in own {
            let [of_spec, own] = [Profile::Spec, profile].map(|profile| folder.read(&case.name, profile).unwrap());
            assert!(own != of_spec, "{}: the file of {profile} says what that of spec says", case.name);
        }
    }
}

#[test]
fn a_case_ends_in_a_verdict_exactly_if_it_says_so() {
    let folder = Folder::new(None);
    for case in cases::<Sim>() {
        let recorded = |outcome: &String| outcome == "finished" || outcome.starts_with(|c: char| c.is_ascii_digit());
        let outcomes = folder.read(&case.name, Profile::Spec).unwrap();
        let ends = outcomes.iter().any(|outcome| !recorded(outcome));
        assert_eq!(ends, case.needs.verdict || case.breaks, "{}", case.name);
        // What GPUs are to show once must be all that can happen.
        assert!(!case.breaks || (outcomes.len() == 1 && !case.needs.verdict), "{}: {outcomes:?}", case.name);
    }
}

/// Where a family of calls is missing, the cases that use it are left out by what they say they need. The one case that
/// asks for the capabilities itself uses them as far as they go.
#[test]
fn a_case_that_uses_host_atomics_says_so() {
    for case in cases::<Sim>().iter().filter(|case| case.name != "init/capabilities_hold") {
        let run = in_order(case, Profile::Spec).unwrap();
        let is_atomic = |op: &Op| op.name().contains("atomic");
        let uses = run.trace.iter().flatten().any(|event| event.stream.is_none() && event.op().is_some_and(is_atomic));
        assert!(!uses || case.needs.host_atomics, "{} uses atomics and does not say that it needs them", case.name);
    }
}

/// Of kernels: those of whose words several PEs update one. What kernels do through pointers of peers is no operation, and is not looked at.
#[test]
fn a_case_that_needs_atomics_of_kernels_says_so() {
    for case in cases::<Sim>().iter().filter(|case| case.needs.kernels) {
        let run = in_order(case, Profile::Spec).unwrap();
        let mut updated: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for event in run.trace.iter().flatten().filter(|event| event.stream.is_some()) {
            let word = match event.op() {
                Some(Op::Amo { dst, pe, .. }) => format!("{dst:?} of {pe}"),
                Some(Op::Signal { update, pe } | Op::Put { signal: Some(update), pe, .. })
                    if update.op == SignalOp::Add =>
                {
                    format!("{:?} of {pe}", update.word)
                }
                _ => continue,
            };
            updated.entry(word).or_default().insert(event.pe);
        }
        let by_several = updated.values().any(|by| by.len() > 1);
        let says = case.needs.kernel_atomics;
        assert!(says || !by_several, "{} updates a word from several PEs and does not say so", case.name);
        assert!(by_several || !says || case.needs.peer_access, "{} does not need atomics", case.name);
    }
}

/// What NVSHMEM has for kernels from 3.8 on stands in a module of its own, because an older library refuses it as a whole.
#[test]
fn a_case_that_needs_extensions_for_kernels_says_so() {
    let newer = ["_flush", "_qp_", "_region_", "_smem", "_warpgroup", "_signal_counted"];
    let calls = |source: &Source| {
        let declared = source.text().lines().filter(|line| line.starts_with(".extern .func"));
        declared.filter(|line| newer.iter().any(|part| line.contains(part))).count()
    };
    let all = kernels(true);
    let older: Vec<_> = kernels(false).iter().map(|source| source.name().to_string()).collect();
    assert_eq!(kernels(false).iter().map(calls).sum::<usize>(), 0);
    let extensions: Vec<&Source> = all.iter().filter(|source| !older.contains(&source.name().to_string())).collect();
    let [extensions] = extensions[..] else { panic!("one module has them: {extensions:?}") };
    assert!(calls(extensions) >= 15);
    for case in cases::<Sim>().iter().filter(|case| case.needs.kernels) {
        let name = case.name.strip_prefix("device/").unwrap();
        let is_there = extensions.text().contains(&format!(".entry {name}("));
        assert_eq!(case.needs.kernel_extensions, is_there, "{}", case.name);
    }
}

#[test]
fn every_operation_and_every_type_occurs() {
    let (mut names, mut types) = (BTreeSet::new(), BTreeSet::new());
    for case in cases::<Sim>() {
        for event in in_order(&case, Profile::Spec).unwrap().trace.iter().flatten() {
            names.extend(event.op().map(Op::name));
            match &event.kind {
                EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => types.extend(op.dtype()),
                EventKind::Read { dtype, .. } | EventKind::Write { dtype, .. } => drop(types.insert(*dtype)),
                _ => {}
            }
        }
    }
    assert_eq!(names, BTreeSet::from(Op::NAMES));
    assert_eq!(types, BTreeSet::from(DType::ALL));
}

#[test]
fn known_deviations_name_cases() {
    let cases = cases::<Sim>();
    for backend in ["sim", "nvshmem"] {
        known::of(backend, &cases).unwrap();
    }
}
