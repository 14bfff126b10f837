//! Repaired twins have no lint, and what a lint is about in a program with a bug is the bug.

use std::collections::BTreeMap;

use onesided_bugs::{Class, Program, simulated};
use onesided_sim::{Config, Lint, LintKind, Profile, Sim, Simulation};

/// Twins that wait for what a plain put writes. So did the programs that they come from, and NVSHMEM's examples do; the bug is
/// another one.
const WAIT_FOR_PUTS: [&str; 2] = ["flag_by_put", "two_puts_to_one_address"];

/// The lints of the run in order.
fn lints(pes: usize, profile: Profile, program: Program<Sim>) -> Vec<Lint> {
    let mut simulation = Simulation::new(Config { profile, ..Config::pes(pes) }).unwrap();
    let run = simulation.run(program).unwrap();
    simulation.reproduce(&run, program).unwrap().verdict.lints
}

#[test]
fn repaired_twins_have_no_lint() {
    let mut wrong = Vec::new();
    for profile in Profile::ALL {
        for bug in simulated() {
            let found = lints(bug.label.pes, profile, bug.fixed);
            let kinds: Vec<LintKind> = found.iter().map(|lint| lint.kind).collect();
            let expected: &[LintKind] = match WAIT_FOR_PUTS.contains(&bug.name) {
                true => &[LintKind::WaitOnPlainData],
                false => &[],
            };
            if kinds != expected {
                let found: Vec<String> = found.iter().map(Lint::to_string).collect();
                wrong.push(format!("{} under {profile}: {}", bug.name, found.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// In schedules other than the one in order too.
#[test]
fn repaired_twins_have_no_lint_in_random_orders() {
    for bug in simulated().into_iter().filter(|bug| !WAIT_FOR_PUTS.contains(&bug.name)) {
        let mut simulation = Simulation::new(Config { strict: true, ..Config::pes(bug.label.pes) }).unwrap();
        let explored = simulation.explore(onesided_sim::Explore::random(20, 0), bug.fixed, |run| {
            assert!(run.verdict.lints.is_empty(), "{} on {}: {}", bug.name, run.schedule, run.verdict.lints[0]);
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(explored.unwrap().findings, 0, "{}", bug.name);
    }
}

/// Which bugs have a lint in order, besides whatever else is found.
#[test]
fn bugs_with_a_lint() {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for bug in simulated() {
        for lint in lints(bug.label.pes, Profile::Spec, bug.buggy) {
            found.entry(lint.kind.name()).or_default().push(bug.name);
        }
    }
    insta::assert_debug_snapshot!(found);
}

/// A bug of this class has nothing else, and its lint names both lines.
#[test]
fn bugs_that_are_lints_are_found_at_their_lines() {
    for bug in simulated().into_iter().filter(|bug| bug.label.class == Class::Lint) {
        let found = lints(bug.label.pes, Profile::Spec, bug.buggy);
        let [lint] = &found[..] else { panic!("{}: {found:?}", bug.name) };
        let marks = bug.lines();
        let lines = [lint.first.at.line(), lint.second.at.line()].map(Some);
        assert_eq!(lines, [marks.first, marks.second], "{lint}");
    }
}
